/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/recompute.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/layer_parts.h"
#include "graph/cell.h"
#include "graph/family.h"
#include "rule/op.h"

struct marking {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	struct ap_again *mark;
	bool whole; /* groups run again as a whole */
};

/* Groups: from 0 up operators (a group's first), then layers; from AP_NONE - 1 down cells. */
static ap_id group_of_cell(ap_id cell)
{
	return AP_NONE - 1 - cell;
}

/* Is an operator in group `of`, directly or through an enclosing cell? */
static bool is_inside(const struct marking *k, const ap_id *group, ap_id node, ap_id of)
{
	if (group[node] == of)
		return true;
	for (ap_id c = k->g->node[node].in_cell; c != AP_NONE; c = k->g->cell[c].parent)
		if (group_of_cell(c) == of)
			return true;
	return false;
}

/* Does a result leave the group, directly or through a view? */
static bool result_leaves(const struct marking *k, const ap_id *group, const bool *leaves, ap_id node)
{
	const struct ap_node *n = &k->g->node[node];

	for (uint16_t o = 0; o < n->bound.nout; o++) {
		const struct ap_tensor *t = &k->g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id user = t->use[u].node;

			if (!is_inside(k, group, user, group[node]) ||
				(leaves[user] && ap_op_is_view(k->g->node[user].bound.row)))
				return true;
		}
	}
	return false;
}

/* Marks operators of groups, except marked ones and those whose results leave the group. A group of
 * which nothing runs back is not called again. */
static void mark_groups(struct marking *k, const ap_id *group, bool whole)
{
	struct ap_mark scratch = ap_arena_mark(k->ctx->scratch);
	bool *leaves = AP_NEW_N(k->ctx->scratch, bool, k->g->nnode);
	struct ap_map *back = ap_map_create(k->ctx->scratch);

	for (ap_id i = 0; i < k->g->nnode; i++)
		if (group[i] != AP_NONE && k->g->node[i].backward)
			ap_map_put(back, &group[i], sizeof group[i], NULL);
	for (ap_id i = k->g->nnode; i-- > 0;) {
		if (group[i] == AP_NONE)
			continue;
		leaves[i] = result_leaves(k, group, leaves, i);
		if (!leaves[i] && !k->mark[i].keeps && k->mark[i].group == AP_NONE)
			k->mark[i].group = group[i];
		if (whole && ap_map_get(back, &group[i], sizeof group[i]) != AP_NONE)
			k->mark[i].repeats = group[i];
	}
	ap_arena_release(k->ctx->scratch, scratch);
}

bool ap_recompute_refused(const struct ap_graph *g, const struct ap_node *n)
{
	ap_id c = n->in_cell;

	if (n->recompute >= 0)
		return n->recompute == 0;
	while (c != AP_NONE && g->cell[c].recompute < 0)
		c = g->cell[c].parent;
	return c != AP_NONE && g->cell[c].recompute == 0;
}

/* ---- layers ---- */

struct homes {
	int32_t nstage, nsegment;
	uint32_t *count; /* [layer][part] operators */
};

static int32_t part_of(const struct homes *h, const struct ap_node *n)
{
	int32_t stage = n->stage > 0 && n->stage < h->nstage ? n->stage : 0;
	int32_t segment = n->segment > 0 && n->segment < h->nsegment ? n->segment : 0;

	return segment * h->nstage + stage;
}

/* Is each operator's part of the pipeline known? */
static bool is_staged(const struct ap_graph *g, const struct ap_step *step)
{
	if (!step->pipe || step->pipe->nstage * step->pipe->nsegment == 1)
		return true;
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].stage < 0)
			return false;
	return true;
}

/* How many layers of each part, [segment * nstage + stage], a list means. */
static void deal(const struct ap_again_layers *l, const struct ap_recompute_first *first, int64_t *to)
{
	bool by_stage = first->nrow == 1 && first->ncol == l->nstage && first->ncol > 1;

	for (int32_t s = 0; s < l->nstage; s++) {
		int64_t left = by_stage ? first->count[s] : 0, before;

		for (int32_t v = 0; v < l->nsegment; v++)
			to[v * l->nstage + s] = by_stage ? 0
				: first->count[first->nrow == 1 ? 0 : v * first->ncol + s];
		do { /* segments take a stage's number in turns */
			before = left;
			for (int32_t v = 0; left > 0 && v < l->nsegment; v++)
				if (to[v * l->nstage + s] < l->part[v * l->nstage + s]) {
					to[v * l->nstage + s]++;
					left--;
				}
		} while (left > 0 && left < before);
	}
}

/* What the graph says of the cell of a layer, or of the innermost around it that says anything. */
static unsigned said_of(const struct ap_graph *g, const struct ap_map *cells, const char *layer)
{
	ap_id c = ap_cell_find(cells, layer);

	while (c != AP_NONE && !g->cell[c].again)
		c = g->cell[c].parent;
	return c == AP_NONE ? AP_RECOMPUTE_NONE : g->cell[c].again;
}

static bool is_list_of(const struct ap_recompute_first *first, const struct ap_again_layers *l)
{
	return (first->nrow == 1 && (first->ncol == 1 || first->ncol == l->nstage)) ||
		(first->nrow == l->nsegment && first->ncol == l->nstage);
}

void ap_recompute_layers(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	struct ap_again_layers *out)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct homes h = {.nstage = step->pipe ? step->pipe->nstage : 1,
		.nsegment = step->pipe ? step->pipe->nsegment : 1};
	uint32_t npart = (uint32_t)(h.nstage * h.nsegment);
	int64_t *place = AP_NEW_N(ctx->arena, int64_t, npart), *most = AP_NEW_N(ctx->arena, int64_t, npart);
	struct ap_map *cells = ap_map_create(ctx->scratch);
	struct ap_family_chain chain;
	struct ap_again_layer *at;

	ap_family_chain(ctx, g, &chain);
	at = AP_NEW_N(ctx->arena, struct ap_again_layer, chain.n);
	*out = (struct ap_again_layers){.names = chain.names, .n = chain.n, .layer = chain.layer,
		.nstage = h.nstage, .nsegment = h.nsegment, .part = place, .at = at};
	h.count = AP_NEW_N(ctx->scratch, uint32_t, (size_t)chain.n * npart);
	for (ap_id i = 0; i < g->nnode; i++)
		if (chain.layer[i] >= 0)
			h.count[(uint32_t)chain.layer[i] * npart + (uint32_t)part_of(&h, &g->node[i])]++;
	for (ap_id c = 0; c < g->ncell; c++)
		ap_map_put_str(cells, g->cell[c].name, NULL);
	for (uint32_t k = 0; k < chain.n; k++) {
		for (uint32_t p = 1; p < npart; p++)
			if (h.count[k * npart + p] > h.count[k * npart + at[k].part])
				at[k].part = p;
		at[k].name = chain.name[k];
		at[k].place = place[at[k].part]++;
		at[k].what = !step->training ? AP_RECOMPUTE_NONE
			: step->recompute | said_of(g, cells, chain.name[k]);
	}
	for (uint32_t f = 0; step->training && is_staged(g, step) && f < step->nrecompute_first; f++) {
		const struct ap_recompute_first *first = &step->recompute_first[f];

		if (!is_list_of(first, out))
			continue;
		deal(out, first, most);
		for (uint32_t k = 0; k < chain.n; k++)
			at[k].what |= at[k].place < most[at[k].part] ? first->what : 0;
	}
	for (uint32_t k = 0; k < chain.n; k++) {
		uint32_t unit = step->recompute_unit > 1 ? (uint32_t)step->recompute_unit : 1;

		at[k].what = at[k].what & AP_RECOMPUTE_FULL ? AP_RECOMPUTE_FULL : at[k].what;
		at[k].unit = k;
		if (k > 0 && at[k].place % unit && at[k - 1].part == at[k].part)
			at[k].unit = at[k - 1].unit;
	}
	ap_arena_release(ctx->scratch, scratch);
}

static enum ap_status too_many(struct ap_ctx *ctx, const char *said, const struct ap_again_layers *l,
	uint32_t part, int64_t n)
{
	int32_t stage = (int32_t)part % l->nstage, segment = (int32_t)part / l->nstage;
	const char *where = l->nstage * l->nsegment == 1 ? "the network"
		: l->nsegment == 1 ? ap_arena_printf(ctx->arena, "stage %" PRId32, stage)
		: ap_arena_printf(ctx->arena, "segment %" PRId32 " of stage %" PRId32, segment, stage);

	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"%s: %" PRId64 " layers are to be recomputed, but %s has %" PRId64, said, n, where,
		l->part[part]);
}

/* Holds one list against the layers. */
static enum ap_status check_list(struct ap_ctx *ctx, const char *said, const struct ap_again_layers *l,
	const struct ap_recompute_first *first)
{
	int64_t *to;
	uint32_t fullest = 0;

	if (!l->names)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: the graph has no layers to count; they are cells NAME.0, NAME.1, ..", said);
	if (!is_list_of(first, l))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: a list of %" PRId32 " by %" PRId32 " numbers, but there are %" PRId32
			" stages of %" PRId32 " segments", said, first->nrow, first->ncol, l->nstage,
			l->nsegment);
	to = AP_NEW_N(ctx->scratch, int64_t, l->nstage * l->nsegment);
	deal(l, first, to);
	for (uint32_t p = 0; p < (uint32_t)(l->nstage * l->nsegment); p++) {
		fullest = l->part[p] > l->part[fullest] ? p : fullest;
		if (to[p] > l->part[p] && first->nrow * first->ncol > 1)
			return too_many(ctx, said, l, p, to[p]);
	}
	if (first->nrow * first->ncol == 1) /* where there are fewer, all */
		return to[0] > l->part[fullest] ? too_many(ctx, said, l, fullest, to[0]) : AP_OK;
	for (int32_t s = 0; first->nrow == 1 && s < l->nstage; s++) {
		int64_t all = 0;

		for (int32_t v = 0; v < l->nsegment; v++)
			all += l->part[v * l->nstage + s];
		if (first->count[s] > all)
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: %" PRId64 " layers are to be recomputed, but stage %" PRId32 " has %"
				PRId64, said, first->count[s], s, all);
	}
	return AP_OK;
}

static bool is_asked(const struct ap_again_layers *l, ap_id node, unsigned what)
{
	return l->layer[node] >= 0 && (l->at[l->layer[node]].what & what);
}

static void mark_layers(struct marking *k, const struct ap_again_layers *l)
{
	struct ap_mark scratch = ap_arena_mark(k->ctx->scratch);
	ap_id *group = AP_NEW_N(k->ctx->scratch, ap_id, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++)
		group[i] = is_asked(l, i, AP_RECOMPUTE_FULL)
			? k->g->nnode + l->at[l->layer[i]].unit : AP_NONE;
	mark_groups(k, group, k->whole);
	ap_arena_release(k->ctx->scratch, scratch);
}

/* ---- parts of layers ---- */

static bool is_fused_attention(const struct ap_node *n)
{
	return n->bound.row->unit == AP_OP_CUBE && n->bound.nin > 2;
}

/* Weights of experts are not a matrix. */
static bool are_experts(const struct ap_graph *g, const bool *data, const struct ap_node *n)
{
	for (uint16_t x = 0; x < n->bound.nin; x++)
		if (!data[n->in[x]] && g->tensor[n->in[x]].needs_grad && n->bound.in[x].rank == 3)
			return true;
	return false;
}

/* All of a layer but the results of products: of those with a weight matrix, and of fused attention. */
static void mark_all_but_products(struct marking *k, const struct ap_again_layers *l, const bool *data)
{
	ap_id *group = AP_NEW_N(k->ctx->scratch, ap_id, k->g->nnode);
	uint32_t *nproduct = AP_NEW_N(k->ctx->scratch, uint32_t, l->n);
	bool *kept = AP_NEW_N(k->ctx->scratch, bool, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *n = &k->g->node[i];
		bool weight = ap_layer_has_weight(k->g, data, n);

		group[i] = AP_NONE;
		if (!is_asked(l, i, AP_RECOMPUTE_PRODUCTS))
			continue;
		group[i] = k->g->nnode + (ap_id)l->layer[i];
		if (!weight) {
			kept[i] = is_fused_attention(n);
		} else if (!are_experts(k->g, data, n)) {
			kept[i] = nproduct[l->layer[i]]++ % 2 == 0 || !is_asked(l, i, AP_RECOMPUTE_HALF);
		}
	}
	for (ap_id i = 0; i < k->g->nnode; i++)
		if (kept[i] && k->mark[i].group == AP_NONE)
			k->mark[i].keeps = true;
	mark_groups(k, group, false);
}

/* The feed-forward parts. */
static void mark_parts(struct marking *k, const struct ap_again_layers *l, const struct ap_layer_parts *parts)
{
	ap_id *group = AP_NEW_N(k->ctx->scratch, ap_id, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		enum ap_layer_part part = parts->part[i];

		group[i] = (part == AP_PART_DENSE && is_asked(l, i, AP_RECOMPUTE_MLP)) ||
			(part == AP_PART_EXPERTS && is_asked(l, i, AP_RECOMPUTE_MOE)) ||
			(part == AP_PART_SHARED && is_asked(l, i, AP_RECOMPUTE_SHARED | AP_RECOMPUTE_MOE))
			? parts->group[i] : AP_NONE;
	}
	mark_groups(k, group, k->whole);
}

/* What is computed again beside the rest, with all results: norms, activation functions, and queries, keys
 * and values. And what is gathered again. */
static void mark_operators(struct marking *k, const struct ap_again_layers *l,
	const struct ap_layer_parts *parts, bool holds_gathered)
{
	for (ap_id i = 0; i < k->g->nnode; i++) {
		bool experts = parts->part[i] == AP_PART_EXPERTS;

		if (k->mark[i].group == AP_NONE &&
			((parts->part[i] == AP_PART_NORM && is_asked(l, i, AP_RECOMPUTE_NORM)) ||
			(parts->latent[i] && is_asked(l, i, AP_RECOMPUTE_LATENT)) ||
			(parts->activation[i] && is_asked(l, i, AP_RECOMPUTE_ACTIVATION |
				(experts ? AP_RECOMPUTE_MOE_ACT : 0u)))))
			k->mark[i].group = i;
		if (holds_gathered && is_asked(l, i, AP_RECOMPUTE_COMMUNICATION))
			k->mark[i].gathers = parts->norm[i];
	}
}

/* ---- cores of attention ---- */

struct core {
	bool product; /* a product of two activations */
	bool weight; /* reads a weight, or is the end of a part of a pipeline */
	bool after, before; /* it comes after, or before, a product, with no weight between */
};

static struct core core_of(const struct marking *k, const bool *data, const struct ap_node *n)
{
	struct core c = {.product = n->bound.row->unit == AP_OP_CUBE && n->bound.nin == 2,
		.weight = n->peer >= 0};

	for (uint16_t x = 0; x < n->bound.nin; x++) {
		const struct ap_tensor *t = &k->g->tensor[n->in[x]];

		c.product &= data[n->in[x]] && t->needs_grad;
		c.weight |= !data[n->in[x]] && t->needs_grad;
	}
	return c;
}

static bool before_product(const struct marking *k, const struct core *core, ap_id node)
{
	const struct ap_node *n = &k->g->node[node];

	for (uint16_t o = 0; o < n->bound.nout; o++) {
		const struct ap_tensor *t = &k->g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			const struct core *c = &core[t->use[u].node];

			if (c->product || (c->before && !c->weight))
				return true;
		}
	}
	return false;
}

static bool after_product(const struct marking *k, const struct core *core, ap_id node)
{
	const struct ap_node *n = &k->g->node[node];

	for (uint16_t x = 0; x < n->bound.nin; x++) {
		ap_id from = k->g->tensor[n->in[x]].producer;

		if (from != AP_NONE && (core[from].product || core[from].after))
			return true;
	}
	return false;
}

/* everywhere: also where it is in no layer. */
static void mark_cores(struct marking *k, const struct ap_again_layers *l, const bool *data, bool everywhere)
{
	struct ap_mark scratch = ap_arena_mark(k->ctx->scratch);
	struct core *core = AP_NEW_N(k->ctx->scratch, struct core, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		core[i] = core_of(k, data, &k->g->node[i]);
		core[i].after = !core[i].product && !core[i].weight && after_product(k, core, i);
	}
	for (ap_id i = k->g->nnode; i-- > 0;) {
		bool inside = core[i].product || core[i].after;

		core[i].before = before_product(k, core, i);
		if (l->layer[i] >= 0 ? !is_asked(l, i, AP_RECOMPUTE_SELECTIVE) : !everywhere)
			continue;
		if (core[i].before && inside && k->mark[i].group == AP_NONE)
			k->mark[i].group = i;
		if (k->whole && (core[i].product ? core[i].before || after_product(k, core, i)
				: core[i].before && inside))
			k->mark[i].repeats = i;
	}
	ap_arena_release(k->ctx->scratch, scratch);
}

bool ap_recompute_is_asked(const struct ap_graph *g, const struct ap_step *step)
{
	bool any = step->recompute || step->nrecompute_first > 0;

	for (ap_id c = 0; c < g->ncell; c++)
		any |= g->cell[c].again != AP_RECOMPUTE_NONE;
	return step->training && any;
}

/* What the step and words of cells ask for. */
static void mark_asked(struct marking *k, const struct ap_step *step)
{
	struct ap_mark scratch = ap_arena_mark(k->ctx->scratch);
	const bool *data = ap_layer_data(k->ctx, k->g);
	struct ap_layer_parts parts;
	struct ap_again_layers l;
	unsigned any = 0;

	ap_recompute_layers(k->ctx, k->g, step, &l);
	for (uint32_t i = 0; i < l.n; i++)
		any |= l.at[i].what;
	if (any & AP_RECOMPUTE_FULL)
		mark_layers(k, &l);
	if (any & AP_RECOMPUTE_PRODUCTS)
		mark_all_but_products(k, &l, data);
	if (any & ~(unsigned)(AP_RECOMPUTE_FULL | AP_RECOMPUTE_PRODUCTS | AP_RECOMPUTE_HALF |
		AP_RECOMPUTE_SELECTIVE)) {
		ap_layer_parts(k->ctx, k->g, l.layer, data, &parts);
		mark_parts(k, &l, &parts);
		mark_operators(k, &l, &parts, step->executor == AP_EXECUTOR_MINDSPORE);
	}
	if ((any | step->recompute) & AP_RECOMPUTE_SELECTIVE)
		mark_cores(k, &l, data, step->recompute & AP_RECOMPUTE_SELECTIVE);
	ap_arena_release(k->ctx->scratch, scratch);
}

void ap_recompute_mark(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	struct ap_again *mark)
{
	struct marking k = {ctx, g, mark, step->recompute_whole};
	struct ap_mark scratch;
	ap_id *group;

	for (ap_id i = 0; i < g->nnode; i++)
		mark[i] = (struct ap_again){.group = AP_NONE, .repeats = AP_NONE, .gathers = AP_NONE};
	if (!step->training)
		return;
	scratch = ap_arena_mark(k.ctx->scratch);
	group = AP_NEW_N(k.ctx->scratch, ap_id, k.g->nnode);
	for (ap_id i = 0; i < k.g->nnode; i++) {
		ap_id c = k.g->node[i].recompute_cell;

		group[i] = c == AP_NONE ? AP_NONE : group_of_cell(c);
		if (c == AP_NONE)
			continue;
		k.mark[i].keep_comm = !k.g->cell[c].mp_comm_recompute;
		k.mark[i].regather = k.g->cell[c].parallel_optimizer_comm_recompute;
		k.mark[i].slice = k.g->cell[c].recompute_slice_activation;
	}
	mark_groups(&k, group, k.whole);
	ap_arena_release(k.ctx->scratch, scratch);
	if (ap_recompute_is_asked(g, step))
		mark_asked(&k, step);
	/* An operator's own setting takes precedence; AP_NONE marks operators that must not be
	 * recomputed. */
	for (ap_id i = 0; i < k.g->nnode; i++) {
		const struct ap_node *n = &k.g->node[i];

		if (n->recompute == 1)
			k.mark[i].group = i;
		else if (n->peer >= 0 || ap_recompute_refused(k.g, n))
			k.mark[i].group = k.mark[i].repeats = k.mark[i].gathers = AP_NONE;
	}
	/* The step's settings apply to all that is recomputed, beside those of cells. */
	for (ap_id i = 0; i < k.g->nnode; i++) {
		if (k.mark[i].group == AP_NONE && k.mark[i].repeats == AP_NONE)
			continue;
		k.mark[i].keep_comm |= step->recompute_keeps_comm;
		k.mark[i].regather |= step->recompute_regathers;
		k.mark[i].slice |= step->recompute_slices;
	}
	for (ap_id i = 0; i < k.g->nnode; i++) {
		const struct ap_node *n = &k.g->node[i];
		ap_id from = ap_op_is_view(n->bound.row) ? k.g->tensor[n->in[0]].producer : AP_NONE;

		if (from != AP_NONE && k.mark[from].group != AP_NONE)
			k.mark[i] = k.mark[from];
	}
}

struct told {
	struct ap_map *names;
	AP_VEC(struct ap_again_cell) cells;
};

static void tell_cell(struct ap_ctx *ctx, const struct ap_step *step, const struct ap_cell *c,
	struct told *out)
{
	ap_map_put_str(out->names, c->name, NULL);
	AP_PUSH(ctx->arena, out->cells, ((struct ap_again_cell){
		.name = c->name,
		.keep_comm = step->recompute_keeps_comm || !c->mp_comm_recompute,
		.regather = step->recompute_regathers || c->parallel_optimizer_comm_recompute,
		.slice = step->recompute_slices || c->recompute_slice_activation,
	}));
}

static int depth_of(const struct ap_graph *g, ap_id cell)
{
	int depth = 0;

	while ((cell = g->cell[cell].parent) != AP_NONE)
		depth++;
	return depth;
}

void ap_recompute_cells(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	uint32_t *n, const struct ap_again_cell **out)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct told told = {.names = ap_map_create(ctx->scratch)};

	if (step->training) {
		int deepest = 0;

		for (ap_id c = 0; c < g->ncell; c++)
			deepest = depth_of(g, c) > deepest ? depth_of(g, c) : deepest;
		for (int depth = deepest; depth >= 0; depth--)
			for (ap_id c = 0; c < g->ncell; c++)
				if (g->cell[c].recompute == 1 && depth_of(g, c) == depth)
					tell_cell(ctx, step, &g->cell[c], &told);
	}
	if (step->training) {
		struct ap_again_layers l;

		ap_recompute_layers(ctx, g, step, &l);
		for (ap_id i = 0; i < g->nnode; i++) {
			const char *name;

			if (!is_asked(&l, i, AP_RECOMPUTE_FULL | AP_RECOMPUTE_PRODUCTS))
				continue;
			name = l.at[l.layer[i]].name;
			if (ap_cell_find(told.names, name) != AP_NONE)
				continue;
			ap_map_put_str(told.names, name, NULL);
			AP_PUSH(ctx->arena, told.cells, ((struct ap_again_cell){
				.name = name,
				.keep_comm = step->recompute_keeps_comm,
				.regather = step->recompute_regathers,
				.slice = step->recompute_slices,
			}));
		}
	}
	*n = (uint32_t)told.cells.n;
	*out = told.cells.v;
	ap_arena_release(ctx->scratch, scratch);
}

struct naming {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	const struct ap_again *mark;
	enum ap_status st;
};

static void note(struct naming *k, const char *text)
{
	const struct ap_where where = {.file = k->g->file};
	enum ap_status st =
		ap_diag_add(k->ctx->diag, AP_NOTE, AP_OK, &where, "recompute-nothing", "%s", text);

	k->st = k->st == AP_OK ? st : k->st;
}

/* Notes a cell in which nothing is marked, and why. */
static void note_cell(struct naming *k, ap_id cell, uint32_t members)
{
	const char *name = ap_diag_name(k->ctx->diag, k->g->cell[cell].name);

	note(k, ap_arena_printf(k->ctx->arena, members == 1
		? "nothing of cell \"%s\" is recomputed: its only operator is its output, which is kept; "
		  "recompute of the operator itself would do"
		: "nothing of cell \"%s\" is recomputed: what its operators make leaves it, and is kept",
		name));
}

static void note_cells(struct naming *k)
{
	uint32_t *members = AP_NEW_N(k->ctx->scratch, uint32_t, k->g->ncell);
	uint32_t *marked = AP_NEW_N(k->ctx->scratch, uint32_t, k->g->ncell);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		ap_id c = k->g->node[i].recompute_cell;

		if (c == AP_NONE)
			continue;
		members[c]++;
		marked[c] += k->mark[i].group != AP_NONE;
	}
	for (ap_id c = 0; c < k->g->ncell; c++)
		if (k->g->cell[c].recompute == 1 && marked[c] == 0)
			note_cell(k, c, members[c]);
}

/* Notes cells with words for layers that are no layer, and in which none lies. */
static void note_said(struct naming *k)
{
	struct ap_family_chain chain;
	bool said = false;

	for (ap_id c = 0; c < k->g->ncell; c++)
		said |= k->g->cell[c].again != 0;
	if (!said)
		return;
	ap_family_chain(k->ctx, k->g, &chain);
	for (ap_id c = 0; c < k->g->ncell; c++) {
		const char *name = k->g->cell[c].name;
		size_t len = strlen(name);
		bool any = !k->g->cell[c].again;

		for (uint32_t i = 0; i < chain.n && !any; i++)
			any = strncmp(chain.name[i], name, len) == 0 &&
				(chain.name[i][len] == '.' || !chain.name[i][len]);
		if (!any)
			note(k, ap_arena_printf(k->ctx->arena, "nothing of cell \"%s\" is recomputed: it is "
				"no layer NAME.0, NAME.1, .. and none is in it",
				ap_diag_name(k->ctx->diag, name)));
	}
}

/* The step with one word of what is asked for. */
static struct ap_step with_one(struct ap_ctx *ctx, const struct ap_step *step, unsigned what)
{
	struct ap_step one = *step;
	struct ap_recompute_first *first = AP_NEW_N(ctx->scratch, struct ap_recompute_first,
		step->nrecompute_first);

	for (uint32_t i = 0; i < step->nrecompute_first; i++) {
		first[i] = step->recompute_first[i];
		first[i].what &= what;
	}
	one.recompute &= what;
	one.recompute_first = first;
	return one;
}

/* Does a word of the step's setting mark anything that is not marked otherwise? */
static bool adds_marks(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	unsigned what)
{
	struct ap_again *with = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct ap_again *without = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	const struct ap_step none = with_one(ctx, step, 0), one = with_one(ctx, step, what);
	bool adds = false;

	ap_recompute_mark(ctx, g, &none, without);
	ap_recompute_mark(ctx, g, &one, with);
	for (ap_id i = 0; i < g->nnode; i++)
		adds |= without[i].group != with[i].group || without[i].gathers != with[i].gathers;
	return adds;
}

static const char no_layers[] = "there are no layers, which are cells NAME.0, NAME.1, .. with more in them "
	"than what leaves them";

static const struct {
	unsigned what;
	const char *why_nothing;
} wanted[] = {
	{AP_RECOMPUTE_SELECTIVE, "there is no attention made of two products of activations; fused attention "
		"recomputes its scores itself"},
	{AP_RECOMPUTE_COMMUNICATION, "no layer has a norm with a weight, or the executor holds nothing that "
		"is gathered, and gathers it again anyway"},
	{AP_RECOMPUTE_FULL, no_layers},
	{AP_RECOMPUTE_NORM, "no layer has a norm with a weight"},
	{AP_RECOMPUTE_MLP, "no layer has a dense feed-forward part between a norm and a residual sum"},
	{AP_RECOMPUTE_MOE, "no layer chooses experts"},
	{AP_RECOMPUTE_SHARED, "no layer has experts beside those that it chooses"},
	{AP_RECOMPUTE_ACTIVATION, "no layer has operators element by element between two products with "
		"weights"},
	{AP_RECOMPUTE_MOE_ACT, "no layer chooses experts"},
	{AP_RECOMPUTE_LATENT, "no layer makes queries, keys or values of what a norm within its attention "
		"gives"},
	{AP_RECOMPUTE_PRODUCTS, no_layers},
};

enum ap_status ap_recompute_notes(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_step *step)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct naming k = {ctx, g, mark, AP_OK};

	if (!step->training)
		return AP_OK;
	ap_recompute_mark(ctx, g, step, mark);
	note_cells(&k);
	note_said(&k);
	ap_arena_release(ctx->scratch, scratch);
	return k.st;
}

static void note_words(struct naming *k, const struct ap_step *step)
{
	unsigned asked = step->recompute;

	for (uint32_t i = 0; i < step->nrecompute_first; i++)
		for (int32_t n = 0; n < step->recompute_first[i].nrow * step->recompute_first[i].ncol; n++)
			asked |= step->recompute_first[i].count[n] ? step->recompute_first[i].what : 0;
	for (size_t i = 0; i < AP_COUNT(wanted); i++)
		if ((asked & wanted[i].what) && !adds_marks(k->ctx, k->g, step, wanted[i].what))
			note(k, ap_arena_printf(k->ctx->arena, "%s recompute adds nothing: %s",
				ap_again_text(k->ctx->arena, wanted[i].what), wanted[i].why_nothing));
}

enum ap_status ap_recompute_check(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const char *said)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct naming k = {.ctx = ctx, .g = g};
	struct ap_again_layers l;

	if (!step->training || (!step->recompute && step->nrecompute_first == 0))
		return AP_OK;
	ap_recompute_layers(ctx, g, step, &l);
	for (uint32_t i = 0; i < step->nrecompute_first; i++)
		AP_TRY(check_list(ctx, said, &l, &step->recompute_first[i]));
	note_words(&k, step);
	ap_arena_release(ctx->scratch, scratch);
	return k.st;
}
