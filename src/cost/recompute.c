/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/recompute.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/cell.h"
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
static void mark_groups(struct marking *k, const ap_id *group)
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
		if (!leaves[i] && k->mark[i].group == AP_NONE)
			k->mark[i].group = group[i];
		if (k->whole && ap_map_get(back, &group[i], sizeof group[i]) != AP_NONE)
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

/* A layer is a numeric part of a cell's name, with everything before it. */
struct layers {
	struct ap_map *names, *parents; /* "blocks.3", "blocks" */
	uint32_t *parent; /* [layer] */
	uint64_t *content; /* [layer] hash of the operators' types in order */
	bool *repeated; /* [parent] */
};

/* Length of the name up to the next numeric part, or 0; *from: where to continue. */
static size_t next_layer(const char *cell, size_t *from)
{
	while (cell[*from]) {
		size_t start = *from, len = strcspn(cell + start, "."), end = start + len;

		*from = end + (cell[end] == '.');
		if (len > 0 && strspn(cell + start, "0123456789") == len)
			return end;
	}
	return 0;
}

static size_t parent_of(const char *cell, size_t end)
{
	while (end > 0 && cell[end - 1] != '.')
		end--;
	return end;
}

static size_t count_layers(const struct ap_graph *g)
{
	size_t n = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		for (size_t at = 0; next_layer(g->node[i].cell, &at) > 0;)
			n++;
	return n;
}

/* The outermost repeated layer around a cell; layers are numbered after operators. */
static ap_id layer_of(const struct ap_graph *g, const struct layers *l, const char *cell)
{
	for (size_t at = 0, end; (end = next_layer(cell, &at)) > 0;) {
		ap_id id = ap_map_get(l->names, cell, end);

		if (l->repeated[l->parent[id]])
			return g->nnode + id;
	}
	return AP_NONE;
}

/* Allocated in scratch. */
static struct layers find_layers(struct ap_ctx *ctx, const struct ap_graph *g)
{
	struct ap_arena *scratch = ctx->scratch;
	size_t most = count_layers(g);
	struct layers l = {ap_map_create(scratch), ap_map_create(scratch),
		AP_NEW_N(scratch, uint32_t, most), AP_NEW_N(scratch, uint64_t, most),
		AP_NEW_N(scratch, bool, most)};
	struct ap_map *seen;

	for (ap_id i = 0; i < g->nnode; i++) {
		const char *cell = g->node[i].cell, *type = g->node[i].type;

		for (size_t at = 0, end; (end = next_layer(cell, &at)) > 0;) {
			ap_id id = ap_map_put(l.names, cell, end, NULL);

			l.parent[id] = ap_map_put(l.parents, cell, parent_of(cell, end), NULL);
			l.content[id] = ap_hash(type, strlen(type), l.content[id]);
		}
	}
	seen = ap_map_create(ctx->scratch);
	for (uint32_t i = 0; i < ap_map_size(l.names); i++) {
		const uint64_t key[] = {l.parent[i], l.content[i]};
		bool fresh;

		ap_map_put(seen, key, sizeof key, &fresh);
		l.repeated[l.parent[i]] |= !fresh;
	}
	return l;
}

static void mark_layers(struct marking *k)
{
	struct ap_arena *scratch = k->ctx->scratch;
	struct ap_mark mark = ap_arena_mark(scratch);
	struct layers l = find_layers(k->ctx, k->g);
	ap_id *group = AP_NEW_N(scratch, ap_id, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++)
		group[i] = layer_of(k->g, &l, k->g->node[i].cell);
	mark_groups(k, group);
	ap_arena_release(scratch, mark);
}

/* Tensors that depend on an input of the graph, rather than on weights alone. */
static bool *find_data(const struct marking *k)
{
	bool *data = AP_NEW_N(k->ctx->scratch, bool, k->g->ntensor);

	for (ap_id t = 0; t < k->g->ntensor; t++)
		data[t] = k->g->tensor[t].kind == AP_TENSOR_INPUT;
	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *n = &k->g->node[i];
		bool any = false;

		for (uint16_t x = 0; x < n->bound.nin; x++)
			any |= data[n->in[x]];
		for (uint16_t o = 0; o < n->bound.nout; o++)
			data[n->out[o]] = any;
	}
	return data;
}

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

static void mark_cores(struct marking *k)
{
	struct ap_mark scratch = ap_arena_mark(k->ctx->scratch);
	const bool *data = find_data(k);
	struct core *core = AP_NEW_N(k->ctx->scratch, struct core, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		core[i] = core_of(k, data, &k->g->node[i]);
		core[i].after = !core[i].product && !core[i].weight && after_product(k, core, i);
	}
	for (ap_id i = k->g->nnode; i-- > 0;) {
		bool inside = core[i].product || core[i].after;

		core[i].before = before_product(k, core, i);
		if (core[i].before && inside && k->mark[i].group == AP_NONE)
			k->mark[i].group = i;
		if (k->whole && (core[i].product ? core[i].before || after_product(k, core, i)
				: core[i].before && inside))
			k->mark[i].repeats = i;
	}
	ap_arena_release(k->ctx->scratch, scratch);
}

void ap_recompute_mark(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	struct ap_again *mark)
{
	struct marking k = {ctx, g, mark, step->recompute_whole};
	struct ap_mark scratch;
	ap_id *group;

	for (ap_id i = 0; i < g->nnode; i++)
		mark[i] = (struct ap_again){.group = AP_NONE, .repeats = AP_NONE};
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
	mark_groups(&k, group);
	ap_arena_release(k.ctx->scratch, scratch);
	if (step->recompute == AP_RECOMPUTE_FULL)
		mark_layers(&k);
	if (step->recompute == AP_RECOMPUTE_SELECTIVE)
		mark_cores(&k);
	/* An operator's own setting takes precedence; AP_NONE marks operators that must not be
	 * recomputed. */
	for (ap_id i = 0; i < k.g->nnode; i++) {
		const struct ap_node *n = &k.g->node[i];

		if (n->recompute == 1)
			k.mark[i].group = i;
		else if (n->peer >= 0 || ap_recompute_refused(k.g, n))
			k.mark[i].group = k.mark[i].repeats = AP_NONE;
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
	if (step->training && step->recompute == AP_RECOMPUTE_FULL) {
		struct layers l = find_layers(ctx, g);

		for (ap_id i = 0; i < g->nnode; i++) {
			ap_id layer = g->node[i].peer < 0 ? layer_of(g, &l, g->node[i].cell) : AP_NONE;
			const char *name;

			if (layer == AP_NONE)
				continue;
			name = ap_map_key(l.names, layer - g->nnode, NULL);
			if (ap_cell_find(told.names, name) != AP_NONE)
				continue;
			ap_map_put_str(told.names, name, NULL);
			AP_PUSH(ctx->arena, told.cells, ((struct ap_again_cell){
				.name = ap_arena_strdup(ctx->arena, name),
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

/* Does the step's setting mark anything that is not marked otherwise? */
static bool adds_marks(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_again *mark)
{
	struct ap_again *without = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct ap_step other = *step;
	bool adds = false;

	other.recompute = AP_RECOMPUTE_NONE;
	ap_recompute_mark(ctx, g, &other, without);
	for (ap_id i = 0; i < g->nnode; i++)
		adds |= without[i].group != mark[i].group;
	return adds;
}

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
	if (step->recompute != AP_RECOMPUTE_NONE && !adds_marks(ctx, g, step, mark))
		note(&k, step->recompute == AP_RECOMPUTE_FULL
			? "full recompute adds nothing: there are no repeated layers, which are cells "
			  "NAME.0, NAME.1, .. of which two have the same operators"
			: "selective recompute adds nothing: there is no attention made of two products "
			  "of activations; fused attention recomputes its scores itself");
	ap_arena_release(ctx->scratch, scratch);
	return k.st;
}
