/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/fold.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "graph/family.h"
#include "graph/index.h"

enum { NO_LAYER = -1, UNREAD = -2 };
enum { WORDS = 256 };

struct word { /* seen last of those with the same place */
	const char *text;
	uint32_t number;
};

struct folding {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	struct ap_family_chain chain;
	bool *output; /* [ntensor] of the graph */
	int32_t *home; /* [ntensor] of what no operator makes: the only layer that reads it; NO_LAYER: several
			or what is in none; UNREAD */
	ap_id *first, *order; /* [chain.n + 1] in order, [nnode]: operators of the layers */
	uint32_t *place; /* [nnode] among those of its layer */
	uint32_t *own; /* [ntensor] place among what only its layer reads, by first use, from 1 */
	uint32_t *traits; /* [ntensor] AP_NONE: not known yet */
	uint32_t *settings; /* [ncell] of a cell and those around it */
	uint32_t *bound; /* [nnode] by rules: number of the bound rule */
	uint32_t *content, *class; /* [chain.n] equal insides; equal layers */
	uint32_t *name_len, *family; /* [chain.n] */
	struct ap_map *texts, *tensors, *rules, *bounds, *cells, *nodes, *contents, *classes;
	struct word *word; /* [WORDS] */
	AP_VEC(uint64_t) key;
	uint32_t nkept;
	uint32_t *kept; /* [nkept] layers */
	uint32_t *like; /* [chain.n] a layer that stands for it, which another may stand for in turn */
	uint32_t *before; /* [chain.n] of one that stands for others: that of the repetition before */
};

/* ---- keys: what is equal has one number ---- */

static void add(struct folding *f, uint64_t word)
{
	AP_PUSH(f->ctx->scratch, f->key, word);
}

static void add_real(struct folding *f, double x)
{
	uint64_t word;

	memcpy(&word, &x, sizeof word);
	add(f, word);
}

static void add_text(struct folding *f, const char *text)
{
	add(f, text ? ap_map_put_str(f->texts, text, NULL) : AP_NONE);
}

/* The same of words that mostly are one string wherever they stand: types, names of attributes. */
static void add_word(struct folding *f, const char *word)
{
	struct word *w = &f->word[((uintptr_t)word >> 3) % WORDS];

	if (!word || w->text != word)
		*w = (struct word){word, word ? ap_map_put_str(f->texts, word, NULL) : AP_NONE};
	add(f, w->number);
}

static uint32_t number_of(struct folding *f, struct ap_map *of)
{
	return ap_map_put(of, f->key.v, f->key.n * sizeof *f->key.v, NULL);
}

static uint32_t traits_of(struct folding *f, ap_id tensor)
{
	const struct ap_tensor *t = &f->g->tensor[tensor];

	if (f->traits[tensor] != AP_NONE)
		return f->traits[tensor];
	f->key.n = 0;
	add(f, (uint64_t)t->kind | (uint64_t)t->shape.rank << 8 | (uint64_t)t->shape.dtype << 16 |
		(uint64_t)t->read_as << 24 | (uint64_t)t->batch << 32 | (uint64_t)t->uneven << 40 |
		(uint64_t)t->needs_grad << 48 | (uint64_t)t->trainable << 49 |
		(uint64_t)t->layerwise_parallel << 50 | (uint64_t)t->parallel_optimizer << 51);
	add(f, (uint64_t)t->comm_fusion);
	add_real(f, t->imbalance);
	for (int d = 0; d < t->shape.rank; d++) {
		add(f, (uint64_t)t->shape.dim[d]);
		if (t->batch >> d & 1)
			add(f, (uint64_t)t->batch_outer[d]);
	}
	return f->traits[tensor] = number_of(f, f->tensors);
}

static void add_operand(struct folding *f, const struct ap_operand *o)
{
	add(f, (uint64_t)o->rank | (uint64_t)o->dtype << 8 | (uint64_t)o->saved << 16 |
		(uint64_t)o->differentiable << 17 | (uint64_t)o->silent << 18 | (uint64_t)o->factors << 32);
	for (int d = 0; d < o->rank; d++) {
		uint64_t factors = o->dim[d].n;

		for (int i = 0; i < o->dim[d].n; i++)
			factors |= (uint64_t)o->dim[d].factor[i] << (8 + 8 * i);
		add(f, (uint64_t)o->size[d]);
		add(f, factors);
	}
}

static void add_window(struct folding *f, const struct ap_window *w)
{
	add(f, (uint64_t)w->operand | (uint64_t)w->dim << 8 | (uint64_t)w->factor << 16 |
		(uint64_t)w->inside << 24 | (uint64_t)w->transposed << 25);
	add(f, (uint64_t)w->size);
	add(f, (uint64_t)w->count);
	add(f, (uint64_t)w->kernel);
	add(f, (uint64_t)w->stride);
	add(f, (uint64_t)w->before);
	add(f, (uint64_t)w->after);
}

/* All of a bound rule but its operands. */
static void add_rule(struct folding *f, const struct ap_bound *b)
{
	add(f, (uint64_t)(uintptr_t)b->row);
	add(f, (uint64_t)b->nin | (uint64_t)b->nout << 16 | (uint64_t)b->nfactor << 32 |
		(uint64_t)b->ndev << 40 | (uint64_t)b->nwindow << 48 | (uint64_t)b->deal_asked << 56 |
		(uint64_t)b->even << 57);
	add(f, (uint64_t)b->left | (uint64_t)b->dealt << 32);
	add(f, (uint64_t)b->rounds | (uint64_t)b->swaps << 32);
	add(f, (uint64_t)b->round | (uint64_t)b->heads << 8 | (uint64_t)b->dealt_beside << 32);
	add(f, (uint64_t)b->dealt_rows);
	add_real(f, b->flops);
	for (int i = 0; i < b->nfactor; i++) {
		add(f, (uint64_t)b->factor[i].letter | (uint64_t)b->factor[i].flags << 8 |
			(uint64_t)(i < b->ndev ? b->dev[i] : 0) << 16);
		add(f, (uint64_t)b->factor[i].size);
	}
	for (int i = 0; i < b->nwindow; i++)
		add_window(f, &b->window[i]);
}

/* Equal operators mostly share their operands, so that these are seldom looked at. */
static uint32_t bound_of(struct folding *f, const struct ap_bound *b)
{
	bool fresh;
	uint32_t rule;

	f->key.n = 0;
	add_rule(f, b);
	add(f, (uint64_t)(uintptr_t)b->in);
	add(f, (uint64_t)(uintptr_t)b->out);
	rule = ap_map_put(f->rules, f->key.v, f->key.n * sizeof *f->key.v, &fresh);
	if (!fresh)
		return f->bound[rule];
	f->key.n -= 2;
	for (uint32_t i = 0; i < b->nin; i++)
		add_operand(f, &b->in[i]);
	for (uint32_t i = 0; i < b->nout; i++)
		add_operand(f, &b->out[i]);
	return f->bound[rule] = number_of(f, f->bounds);
}

static void add_attr(struct folding *f, const struct ap_attr *a)
{
	add_word(f, a->name);
	add(f, (uint64_t)a->type | (uint64_t)a->n << 32);
	switch (a->type) {
	case AP_ATTR_STRING:
		add_text(f, a->s);
		break;
	case AP_ATTR_INTS:
	case AP_ATTR_PAIR:
		for (uint32_t i = 0; i < a->n; i++)
			add(f, (uint64_t)a->list[i]);
		break;
	case AP_ATTR_FLOAT:
		add_real(f, a->f);
		break;
	default:
		add(f, (uint64_t)a->i);
	}
}

static void add_pin(struct folding *f, const struct ap_pin *p)
{
	add(f, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		add(f, p->v[i].rank);
		for (int d = 0; d < p->v[i].rank; d++)
			add(f, (uint64_t)p->v[i].cut[d]);
	}
}

/* ---- the insides of layers ---- */

static bool is_next(const struct folding *f, int32_t layer, int32_t behind)
{
	return layer >= 0 && behind == layer + 1 && f->family[layer] == f->family[behind];
}

static void deal_nodes(struct folding *f)
{
	const struct ap_graph *g = f->g;
	uint32_t *n = AP_NEW_N(f->ctx->scratch, uint32_t, f->chain.n);

	for (ap_id i = 0; i < g->nnode; i++)
		if (f->chain.layer[i] >= 0)
			f->place[i] = n[f->chain.layer[i]]++;
	for (uint32_t l = 0; l < f->chain.n; l++)
		f->first[l + 1] = f->first[l] + n[l];
	for (ap_id i = 0; i < g->nnode; i++)
		if (f->chain.layer[i] >= 0)
			f->order[f->first[f->chain.layer[i]] + f->place[i]] = i;
}

static void find_homes(struct folding *f)
{
	const struct ap_graph *g = f->g;

	for (ap_id t = 0; t < g->ntensor; t++)
		f->home[t] = UNREAD; /* of activations, for good */
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			int32_t *home = &f->home[g->node[i].in[k]], layer = f->chain.layer[i];

			if (g->tensor[g->node[i].in[k]].kind == AP_TENSOR_ACT)
				continue;
			*home = *home == UNREAD || *home == layer ? layer : NO_LAYER;
		}
}

static void name_families(struct folding *f)
{
	struct ap_map *names = ap_map_create(f->ctx->scratch);

	for (uint32_t l = 0; l < f->chain.n; l++) {
		const char *name = f->chain.name[l];

		f->name_len[l] = (uint32_t)strlen(name);
		f->family[l] = ap_map_put(names, name, (size_t)(strrchr(name, '.') - name), NULL);
	}
}

/* Settings of each cell and of those around it. Cells of a layer are told apart by what their names have more
 * than its own; there are few others. */
static uint32_t settings_of(struct folding *f, ap_id cell, uint32_t layer)
{
	f->key.n = 0;
	for (ap_id id = cell; id != AP_NONE; id = f->g->cell[id].parent) {
		const struct ap_cell *c = &f->g->cell[id];
		size_t len = strlen(c->name);

		add(f, len >= f->name_len[layer] ? (uint64_t)(len - f->name_len[layer]) : UINT64_MAX - id);
		add(f, (uint64_t)(uint32_t)c->stage | (uint64_t)(uint32_t)c->segment << 32);
		add(f, (uint64_t)(uint8_t)c->recompute | (uint64_t)c->mp_comm_recompute << 8 |
			(uint64_t)c->parallel_optimizer_comm_recompute << 9 |
			(uint64_t)c->recompute_slice_activation << 10 | (uint64_t)c->again << 32);
		add(f, (uint64_t)(uint32_t)c->comm_fusion);
	}
	return number_of(f, f->cells);
}

static void add_operands(struct folding *f, ap_id node, uint32_t layer, uint32_t *nown)
{
	const struct ap_node *n = &f->g->node[node];

	for (uint16_t k = 0; k < n->bound.nin; k++) {
		const struct ap_tensor *t = &f->g->tensor[n->in[k]];
		bool owner = t->owner.node == node && t->owner.operand == k;
		enum { INSIDE, OWN, SHARED, GIVEN } from = t->kind != AP_TENSOR_ACT
			? (f->home[n->in[k]] == (int32_t)layer ? OWN : SHARED)
			: f->chain.layer[t->producer] == (int32_t)layer ? INSIDE : GIVEN;

		if (from == OWN && !f->own[n->in[k]])
			f->own[n->in[k]] = ++*nown;
		add(f, (uint64_t)from | (uint64_t)(owner && from == OWN) << 8 | (uint64_t)t->result << 32);
		add(f, from == INSIDE ? f->place[t->producer] : from == OWN ? f->own[n->in[k]]
			: from == SHARED ? n->in[k] : 0);
		add(f, f->traits[n->in[k]]);
	}
	for (uint16_t k = 0; k < n->bound.nout; k++)
		add(f, f->traits[n->out[k]]);
}

static uint32_t node_of(struct folding *f, ap_id node, uint32_t layer, uint32_t *nown)
{
	const struct ap_node *n = &f->g->node[node];
	uint32_t bound = bound_of(f, &n->bound);

	for (uint16_t k = 0; k < n->bound.nin; k++)
		traits_of(f, n->in[k]);
	for (uint16_t k = 0; k < n->bound.nout; k++)
		traits_of(f, n->out[k]);
	if (n->in_cell != AP_NONE && f->settings[n->in_cell] == AP_NONE)
		f->settings[n->in_cell] = settings_of(f, n->in_cell, layer);
	f->key.n = 0;
	add(f, bound);
	add_word(f, n->type);
	add_text(f, n->cell + f->name_len[layer]);
	add_word(f, n->instance);
	add(f, n->in_cell == AP_NONE ? AP_NONE : f->settings[n->in_cell]);
	add(f, (uint64_t)(uint8_t)n->recompute | (uint64_t)n->cross_batch << 8 | (uint64_t)n->once << 9 |
		(uint64_t)n->backward << 10 | (uint64_t)n->measured << 11 |
		(uint64_t)(uint32_t)n->fusion << 32);
	add(f, (uint64_t)(uint32_t)n->stage | (uint64_t)(uint32_t)n->segment << 32);
	if (n->measured) {
		add_real(f, n->measured_forward_s);
		add_real(f, n->measured_backward_s);
	}
	add_real(f, n->measured_share);
	add_pin(f, &n->in_pin);
	add_pin(f, &n->out_pin);
	add(f, n->attrs.n);
	for (uint32_t i = 0; i < n->attrs.n; i++)
		add_attr(f, &n->attrs.v[i]);
	add_operands(f, node, layer, nown);
	return number_of(f, f->nodes);
}

static void find_contents(struct folding *f)
{
	uint32_t *nodes = AP_NEW_N(f->ctx->scratch, uint32_t, f->g->nnode + 1);

	for (uint32_t l = 0; l < f->chain.n; l++) {
		uint32_t n = 0, nown = 0;

		nodes[n++] = f->family[l];
		for (ap_id i = f->first[l]; i < f->first[l + 1]; i++)
			nodes[n++] = node_of(f, f->order[i], l, &nown);
		f->content[l] = ap_map_put(f->contents, nodes, n * sizeof *nodes, NULL);
	}
}

/* ---- what is around layers ---- */

enum around { NOTHING, NEIGHBOUR, OUTSIDE, ALONE };

static void add_around(struct folding *f, enum around what, uint64_t which)
{
	add(f, what);
	add(f, which);
}

/* What runs before the layer's first operator, or behind its last: nothing else may be among equal layers. */
static void add_order(struct folding *f, uint32_t layer)
{
	ap_id first = f->order[f->first[layer]], last = f->order[f->first[layer + 1] - 1];
	const int32_t *of = f->chain.layer;

	if (first == 0)
		add_around(f, NOTHING, 0);
	else if (is_next(f, of[first - 1], (int32_t)layer))
		add_around(f, NEIGHBOUR, f->content[layer - 1]);
	else
		add_around(f, ALONE, layer);
	if (last + 1 == f->g->nnode)
		add_around(f, NOTHING, 1);
	else if (is_next(f, (int32_t)layer, of[last + 1]))
		add_around(f, NEIGHBOUR, f->content[layer + 1]);
	else
		add_around(f, ALONE, layer);
	if (last - first != f->first[layer + 1] - f->first[layer] - 1)
		add_around(f, ALONE, layer);
}

/* What it reads that others make, and what it is recomputed together with. */
static void add_given(struct folding *f, uint32_t layer, ap_id node)
{
	const struct ap_node *n = &f->g->node[node];

	for (uint16_t k = 0; k < n->bound.nin; k++) {
		const struct ap_tensor *t = &f->g->tensor[n->in[k]];
		int32_t from;

		if (t->owner.node == node && f->home[n->in[k]] == NO_LAYER)
			add_around(f, ALONE, layer);
		if (t->kind != AP_TENSOR_ACT || f->chain.layer[t->producer] == (int32_t)layer)
			continue;
		from = f->chain.layer[t->producer];
		if (from < 0)
			add_around(f, OUTSIDE, n->in[k]);
		else if (is_next(f, from, (int32_t)layer))
			add_around(f, NEIGHBOUR, (uint64_t)f->place[t->producer] << 32 | t->result);
		else
			add_around(f, ALONE, layer);
	}
	if (n->recompute_cell != AP_NONE && strlen(f->g->cell[n->recompute_cell].name) < f->name_len[layer])
		add_around(f, ALONE, layer);
}

/* Who reads its results. */
static void add_readers(struct folding *f, uint32_t layer, ap_id node)
{
	const struct ap_node *n = &f->g->node[node];

	for (uint16_t k = 0; k < n->bound.nout; k++) {
		const struct ap_tensor *t = &f->g->tensor[n->out[k]];
		uint32_t before = (uint32_t)f->key.n;

		for (uint32_t u = 0; u < t->nuse; u++) {
			int32_t to = f->chain.layer[t->use[u].node];

			if (to == (int32_t)layer)
				continue;
			if (is_next(f, (int32_t)layer, to))
				add_around(f, NEIGHBOUR, (uint64_t)f->place[t->use[u].node] << 32 |
					t->use[u].operand);
			else
				add_around(f, ALONE, layer);
		}
		if (f->output[n->out[k]])
			add_around(f, ALONE, layer);
		if (f->key.n > before)
			add(f, (uint64_t)f->place[node] << 32 | k);
	}
}

static void find_classes(struct folding *f)
{
	for (uint32_t l = 0; l < f->chain.n; l++) {
		f->key.n = 0;
		add(f, f->content[l]);
		add_order(f, l);
		for (ap_id i = f->first[l]; i < f->first[l + 1]; i++)
			add_given(f, l, f->order[i]);
		for (ap_id i = f->first[l]; i < f->first[l + 1]; i++)
			add_readers(f, l, f->order[i]);
		f->class[l] = number_of(f, f->classes);
	}
}

/* ---- which to keep ---- */

/* How often the first `period` of n layers come one after the other. */
static uint32_t repeats(const struct folding *f, const uint32_t *layer, uint32_t n, uint32_t period)
{
	uint32_t i = period;

	while (i < n && f->class[layer[i]] == f->class[layer[i - period]])
		i++;
	return i / period;
}

/* Leaves repetitions out, once; false: there is none. */
static bool leave_out(struct folding *f, uint32_t keep)
{
	uint32_t n = 0, i = 0;

	while (i < f->nkept) {
		uint32_t least = 0, period = 1, stay = 1;

		for (uint32_t p = 1; p <= AP_FOLD_PERIOD && p <= f->nkept - i; p++) {
			uint32_t times = repeats(f, f->kept + i, f->nkept - i, p);

			if (times > keep && (times - keep) * p > least) {
				least = (times - keep) * p;
				period = p;
				stay = keep * p;
			}
		}
		for (uint32_t k = 0; k < least; k++)
			f->like[f->kept[i + stay + k]] = f->kept[i + stay - period + k % period];
		for (uint32_t k = stay - period; least && k < stay && keep > 1; k++)
			f->before[f->kept[i + k]] = f->kept[i + k - period];
		memmove(f->kept + n, f->kept + i, stay * sizeof *f->kept);
		n += stay;
		i += stay + least;
	}
	if (n == f->nkept)
		return false;
	f->nkept = n;
	return true;
}

static void choose(struct folding *f, uint32_t keep)
{
	f->nkept = f->chain.n;
	for (uint32_t l = 0; l < f->chain.n; l++)
		f->kept[l] = f->like[l] = l;
	memset(f->before, 0xff, f->chain.n * sizeof *f->before);
	while (leave_out(f, keep)) /* what is left may be a pattern that repeats */
		;
}

static void tell(const struct folding *f, struct ap_layer_fold *out)
{
	uint32_t *of = ap_arena_memdup(f->ctx->arena, f->kept, f->nkept * sizeof *of);
	uint32_t *count = AP_NEW_N(f->ctx->arena, uint32_t, f->nkept);
	uint32_t *by = AP_NEW_N(f->ctx->arena, uint32_t, f->chain.n);
	uint32_t *before = AP_NEW_N(f->ctx->arena, uint32_t, f->nkept);

	for (uint32_t k = 0; k < f->nkept; k++)
		by[of[k]] = k;
	for (uint32_t l = 0; l < f->chain.n; l++) {
		by[l] = by[f->like[l]]; /* an earlier one */
		count[by[l]]++;
	}
	for (uint32_t k = 0; k < f->nkept; k++)
		before[k] = f->before[of[k]] == AP_NONE ? AP_NONE : by[f->before[of[k]]];
	*out = (struct ap_layer_fold){f->chain.n, f->nkept, of, count, by, before};
}

/* ---- the folded graph ---- */

struct building {
	const struct folding *f;
	struct ap_graph *g;
	struct ap_tensor *tensor;
	struct ap_node *node;
	struct ap_cell *cell;
	ap_id *tensor_id, *node_id, *cell_id; /* new ids of old ones; AP_NONE: left out */
	uint32_t *place; /* [chain.n] in f->kept; AP_NONE: left out */
	bool whole; /* nothing is missing */
};

static bool is_left_out(const struct building *b, int32_t layer)
{
	return layer >= 0 && b->place[layer] == AP_NONE;
}

static void place_tensor(struct building *b, ap_id old)
{
	b->tensor_id[old] = b->g->ntensor;
	b->tensor[b->g->ntensor] = b->f->g->tensor[old];
	b->tensor[b->g->ntensor++].nuse = 0;
}

/* What a kept operator reads instead of an old tensor: that of the kept layer before its own. */
static ap_id read_instead(const struct building *b, ap_id node, ap_id tensor)
{
	const struct folding *f = b->f;
	const struct ap_tensor *t = &f->g->tensor[tensor];
	int32_t layer = f->chain.layer[node];
	uint32_t before;

	if (b->tensor_id[tensor] != AP_NONE)
		return b->tensor_id[tensor];
	if (t->producer == AP_NONE || layer < 0 || b->place[layer] == 0)
		return AP_NONE;
	before = f->kept[b->place[layer] - 1];
	assert(f->content[before] == f->content[f->chain.layer[t->producer]]);
	return b->tensor_id[f->g->node[f->order[f->first[before] + f->place[t->producer]]].out[t->result]];
}

static ap_id cell_instead(const struct building *b, ap_id cell)
{
	return cell == AP_NONE ? AP_NONE : b->cell_id[cell];
}

static void place_node(struct building *b, ap_id old)
{
	const struct ap_node *from = &b->f->g->node[old];
	struct ap_node *n = &b->node[b->node_id[old]];
	ap_id *in = AP_NEW_N(b->f->ctx->arena, ap_id, from->bound.nin);
	ap_id *out = AP_NEW_N(b->f->ctx->arena, ap_id, from->bound.nout);

	*n = *from;
	n->in = in;
	n->out = out;
	for (uint16_t k = 0; k < from->bound.nin; k++) {
		in[k] = read_instead(b, old, from->in[k]);
		b->whole &= in[k] != AP_NONE;
	}
	for (uint16_t k = 0; k < from->bound.nout; k++) {
		place_tensor(b, from->out[k]);
		out[k] = b->tensor_id[from->out[k]];
		b->tensor[out[k]].producer = b->node_id[old];
	}
	n->in_cell = cell_instead(b, from->in_cell);
	n->recompute_cell = cell_instead(b, from->recompute_cell);
	n->param = from->param == AP_NONE ? AP_NONE : b->tensor_id[from->param];
	b->whole &= from->param == AP_NONE || n->param != AP_NONE;
}

/* Leaves out cells that only layers have that are left out. */
static void place_cells(struct building *b)
{
	const struct ap_graph *g = b->f->g;
	bool *had = AP_NEW_N(b->f->ctx->scratch, bool, g->ncell);
	bool *has = AP_NEW_N(b->f->ctx->scratch, bool, g->ncell);

	for (ap_id i = 0; i < g->nnode; i++)
		for (ap_id c = g->node[i].in_cell; c != AP_NONE; c = g->cell[c].parent) {
			had[c] = true;
			has[c] |= b->node_id[i] != AP_NONE;
		}
	b->g->ncell = 0;
	for (ap_id c = 0; c < g->ncell; c++)
		b->cell_id[c] = had[c] && !has[c] ? AP_NONE : b->g->ncell++;
	b->cell = AP_NEW_N(b->f->ctx->arena, struct ap_cell, b->g->ncell);
	for (ap_id c = 0; c < g->ncell; c++)
		if (b->cell_id[c] != AP_NONE) {
			b->cell[b->cell_id[c]] = g->cell[c];
			b->cell[b->cell_id[c]].parent = cell_instead(b, g->cell[c].parent);
		}
	b->g->cell = b->cell;
}

static const ap_id *renumber(struct building *b, const ap_id *old, uint32_t *n)
{
	ap_id *v = AP_NEW_N(b->f->ctx->arena, ap_id, *n);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *n; i++)
		if (b->tensor_id[old[i]] != AP_NONE)
			v[kept++] = b->tensor_id[old[i]];
	*n = kept;
	return v;
}

static void number_nodes(struct building *b)
{
	const struct folding *f = b->f;
	struct ap_arena *a = f->ctx->arena;
	uint32_t ntensor = f->g->ntensor;

	for (uint32_t l = 0; l < f->chain.n; l++)
		b->place[l] = AP_NONE;
	for (uint32_t k = 0; k < f->nkept; k++)
		b->place[f->kept[k]] = k;
	b->g->nnode = b->g->ntensor = 0;
	for (ap_id i = 0; i < f->g->nnode; i++)
		b->node_id[i] = is_left_out(b, f->chain.layer[i]) ? AP_NONE : b->g->nnode++;
	for (ap_id t = 0; t < f->g->ntensor; t++) {
		ap_id producer = f->g->tensor[t].producer;

		b->tensor_id[t] = AP_NONE;
		ntensor -= producer != AP_NONE && b->node_id[producer] == AP_NONE;
	}
	b->node = AP_NEW_N(a, struct ap_node, b->g->nnode);
	b->tensor = AP_NEW_N(a, struct ap_tensor, ntensor);
}

static bool is_trained(const struct ap_graph *g)
{
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].needs_grad)
			return true;
	return false;
}

static void build(struct building *b)
{
	const struct ap_graph *old = b->f->g;

	number_nodes(b);
	place_cells(b);
	b->g->parameters = 0;
	for (ap_id t = 0; t < old->ntensor; t++) {
		const struct ap_tensor *from = &old->tensor[t];
		int64_t elements = 0;

		if (from->kind == AP_TENSOR_ACT || is_left_out(b, b->f->home[t]))
			continue;
		place_tensor(b, t);
		ap_product(from->shape.dim, from->shape.rank, &elements);
		b->g->parameters += from->kind == AP_TENSOR_PARAM ? elements : 0;
	}
	for (ap_id i = 0; i < old->nnode; i++)
		if (b->node_id[i] != AP_NONE)
			place_node(b, i);
	b->g->tensor = b->tensor;
	b->g->node = b->node;
	b->g->input = renumber(b, old->input, &b->g->ninput);
	b->g->output = renumber(b, old->output, &b->g->noutput);
	b->whole &= b->g->noutput == old->noutput;
	if (old->loss != AP_NONE)
		b->g->loss = b->tensor_id[old->loss];
	if (b->whole)
		ap_graph_index(b->f->ctx, b->g, b->tensor, b->node, !is_trained(old));
}

/* Do its operators and tensors have the roles that they had? */
static bool is_like(const struct building *b)
{
	const struct ap_graph *old = b->f->g;

	for (ap_id t = 0; t < old->ntensor; t++) {
		const struct ap_tensor *from = &old->tensor[t];
		const struct ap_tensor *to = &b->tensor[b->tensor_id[t]];

		if (b->tensor_id[t] == AP_NONE)
			continue;
		if (to->needs_grad != from->needs_grad || (to->nuse > 0) != (from->nuse > 0))
			return false;
		if (from->kind != AP_TENSOR_ACT && from->nuse > 0 &&
			(to->owner.node != b->node_id[from->owner.node] ||
			to->owner.operand != from->owner.operand))
			return false;
	}
	for (ap_id i = 0; i < old->nnode; i++)
		if (b->node_id[i] != AP_NONE && b->node[b->node_id[i]].backward != old->node[i].backward)
			return false;
	return true;
}

/* Are its layers those that are kept? A family may have become too small to be one. */
static bool has_kept(const struct building *b)
{
	const struct folding *f = b->f;
	struct ap_family_chain chain;

	ap_family_chain(f->ctx, b->g, &chain);
	if (chain.n != f->nkept)
		return false;
	for (uint32_t k = 0; k < chain.n; k++)
		if (strcmp(chain.name[k], f->chain.name[f->kept[k]]) != 0)
			return false;
	for (ap_id i = 0; i < f->g->nnode; i++) {
		int32_t layer = f->chain.layer[i];

		if (b->node_id[i] != AP_NONE &&
			chain.layer[b->node_id[i]] != (layer < 0 ? NO_LAYER : (int32_t)b->place[layer]))
			return false;
	}
	return true;
}

static void open_folding(struct folding *f, struct ap_ctx *ctx, const struct ap_graph *g)
{
	struct ap_arena *a = ctx->scratch;
	uint32_t n;

	*f = (struct folding){.ctx = ctx, .g = g};
	ap_family_chain(ctx, g, &f->chain);
	n = f->chain.n;
	f->output = AP_NEW_N(a, bool, g->ntensor);
	f->home = AP_NEW_N(a, int32_t, g->ntensor);
	f->own = AP_NEW_N(a, uint32_t, g->ntensor);
	f->traits = AP_NEW_N(a, uint32_t, g->ntensor);
	f->bound = AP_NEW_N(a, uint32_t, g->nnode);
	f->place = AP_NEW_N(a, uint32_t, g->nnode);
	f->order = AP_NEW_N(a, ap_id, g->nnode);
	f->first = AP_NEW_N(a, ap_id, n + 1);
	f->settings = AP_NEW_N(a, uint32_t, g->ncell);
	f->content = AP_NEW_N(a, uint32_t, n);
	f->class = AP_NEW_N(a, uint32_t, n);
	f->name_len = AP_NEW_N(a, uint32_t, n);
	f->family = AP_NEW_N(a, uint32_t, n);
	f->kept = AP_NEW_N(a, uint32_t, n);
	f->like = AP_NEW_N(a, uint32_t, n);
	f->before = AP_NEW_N(a, uint32_t, n);
	f->word = AP_NEW_N(a, struct word, WORDS);
	f->texts = ap_map_create(a);
	f->tensors = ap_map_create(a);
	f->rules = ap_map_create(a);
	f->bounds = ap_map_create(a);
	f->cells = ap_map_create(a);
	f->nodes = ap_map_create(a);
	f->contents = ap_map_create(a);
	f->classes = ap_map_create(a);
	memset(f->traits, 0xff, g->ntensor * sizeof *f->traits);
	memset(f->settings, 0xff, g->ncell * sizeof *f->settings);
	for (uint32_t i = 0; i < g->noutput; i++)
		f->output[g->output[i]] = true;
}

const struct ap_graph *ap_graph_fold(struct ap_ctx *ctx, const struct ap_graph *g, uint32_t keep,
	struct ap_layer_fold *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_graph *folded = g;
	struct folding f;

	open_folding(&f, ctx, g);
	name_families(&f);
	deal_nodes(&f);
	find_homes(&f);
	find_contents(&f);
	find_classes(&f);
	choose(&f, keep);
	if (f.nkept < f.chain.n) {
		struct building b = {.f = &f, .g = ap_arena_memdup(ctx->arena, g, sizeof *g),
			.tensor_id = AP_NEW_N(ctx->scratch, ap_id, g->ntensor),
			.node_id = AP_NEW_N(ctx->scratch, ap_id, g->nnode),
			.cell_id = AP_NEW_N(ctx->scratch, ap_id, g->ncell),
			.place = AP_NEW_N(ctx->scratch, uint32_t, f.chain.n), .whole = true};

		b.g->layers = NULL;
		build(&b);
		if (b.whole && is_like(&b) && has_kept(&b))
			folded = b.g;
		else
			choose(&f, f.chain.n);
	}
	tell(&f, out);
	ap_arena_release(ctx->scratch, mark);
	return folded;
}
