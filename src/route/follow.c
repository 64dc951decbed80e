/* SPDX-License-Identifier: Apache-2.0 */
#include "route/follow.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/space.h"

/* The first reader of a tensor that has a strategy. */
struct reader {
	enum { NOBODY, VIEW, OPERATOR } kind;
	struct ap_use use; /* OPERATOR: which operand of it */
};

/* The layouts on both sides of an operator; rank -1: not known. */
struct ends {
	struct ap_layout from, to; /* of its producer's result, and as its reader needs it */
	bool keeps; /* its operand has layout `from`; else its result has layout `to` */
};

struct following {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	const struct ap_step *step;
	int64_t ndev;
	const int32_t **counts;
	struct reader *reader; /* [ntensor] */
	struct ap_pricer *pricer;
	struct ap_map *known; /* key_of() each row of decided */
	AP_VEC(const int32_t *) decided;
};

static const struct ap_layout unknown = {.rank = -1};

static bool is_view(const struct ap_node *n)
{
	return !ap_op_has_strategy(n->bound.row);
}

bool ap_follow_is(const struct ap_node *n)
{
	return is_view(n) || ap_op_follows(n->bound.row) || n->bound.row->unit == AP_OP_LINK;
}

/* Readers are searched for through operators that follow, but not through views. */
static struct reader reader_of(const struct following *f, const struct ap_tensor *t)
{
	struct reader first = {.kind = NOBODY};

	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ap_node *n = &f->g->node[t->use[u].node];
		struct reader r = {.kind = VIEW};

		if (f->counts[t->use[u].node])
			return (struct reader){OPERATOR, t->use[u]};
		if (!is_view(n))
			r = f->reader[n->out[0]];
		if (r.kind == OPERATOR)
			return r;
		first = first.kind == NOBODY ? r : first;
	}
	return first;
}

/* From the last operator to the first, as users come after producers. */
static void find_readers(struct following *f)
{
	const struct ap_graph *g = f->g;

	for (ap_id i = g->nnode; i-- > 0;)
		for (uint16_t k = 0; k < g->node[i].bound.nout; k++)
			f->reader[g->node[i].out[k]] = reader_of(f, &g->tensor[g->node[i].out[k]]);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM)
			f->reader[t] = reader_of(f, &g->tensor[t]);
}

static struct ap_layout whole(uint8_t rank)
{
	struct ap_layout l = {.rank = rank};

	for (int d = 0; d < rank; d++)
		l.dim[d].cut = 1;
	return l;
}

static struct ap_layout layout_of(const struct following *f, ap_id node, const struct ap_operand *t)
{
	struct ap_layout l = {0};
	struct ap_placement p;

	ap_placement_make(&f->g->node[node].bound, f->counts[node], f->ndev, &p);
	return ap_layout_make(&p, t, &l) ? l : whole(t->rank);
}

static struct ap_layout layout_read(const struct following *f, ap_id tensor)
{
	const struct reader *r = &f->reader[tensor];

	if (r->kind != OPERATOR)
		return unknown;
	return layout_of(f, r->use.node, &f->g->node[r->use.node].bound.in[r->use.operand]);
}

struct ap_arrival ap_follow_arrival(const struct ap_graph *g, const struct ap_step *step, ap_id tensor)
{
	for (uint32_t i = 0; step->arrival && i < g->ninput && i < step->narrival; i++)
		if (g->input[i] == tensor)
			return step->arrival[i];
	return (struct ap_arrival){0};
}

static struct ap_layout layout_arriving(const struct following *f, ap_id tensor)
{
	const struct ap_tensor *t = &f->g->tensor[tensor];
	struct ap_layout l;

	ap_input_layout(&t->shape, t->batch, ap_follow_arrival(f->g, f->step, tensor), f->ndev, f->step,
		&l);
	return l;
}

static struct ap_layout layout_made(const struct following *f, ap_id tensor)
{
	const struct ap_tensor *t = &f->g->tensor[tensor];

	switch (t->kind) {
	case AP_TENSOR_INPUT:
		return layout_arriving(f, tensor);
	case AP_TENSOR_PARAM:
		return layout_read(f, tensor);
	case AP_TENSOR_ACT:
		return layout_of(f, t->producer, &f->g->node[t->producer].bound.out[t->result]);
	case AP_TENSOR_CONST:
		break;
	}
	return whole(t->shape.rank);
}

static struct ends ends_of(const struct following *f, const struct ap_node *n)
{
	const struct ap_operand *out = &n->bound.out[0];
	struct ends e = {.from = unknown, .to = unknown};

	if (n->bound.nin == 0) {
		e.to = layout_arriving(f, n->out[0]);
		return e;
	}
	e.from = layout_made(f, n->in[0]);
	e.keeps = e.from.rank >= 0 && (!is_view(n) || f->reader[n->out[0]].kind == VIEW ||
		f->g->tensor[n->in[0]].kind == AP_TENSOR_PARAM);
	if (!e.keeps)
		e.to = layout_read(f, n->out[0]);
	if (!e.keeps && e.to.rank < 0)
		e.to = whole(out->rank);
	return e;
}

/* Seconds from one layout of a tensor to another. */
static double move_s(struct following *f, ap_id tensor, const struct ap_layout *a,
	const struct ap_layout *b)
{
	const struct ap_tensor *t = &f->g->tensor[tensor];
	struct ap_flow flow = {.rank = t->shape.rank, .dtype = t->shape.dtype, .in_flight = 1};
	struct ap_move_cost cost;

	if (a->rank < 0 || b->rank < 0 || ap_layout_equal(a, b))
		return 0;
	for (int d = 0; d < flow.rank; d++)
		flow.size[d] = t->shape.dim[d] /
			(t->batch >> d & 1 ? f->step->micro_batches : 1);
	ap_move_cost_make(f->pricer, &flow, a, b, NULL, &cost);
	return cost.forward_s;
}

/* Seconds of redistribution before and behind the node with its present counts. */
static double cost_between(struct following *f, ap_id node, const struct ends *e, bool *fits)
{
	const struct ap_node *n = &f->g->node[node];
	struct ap_layout in = unknown, out = layout_of(f, node, &n->bound.out[0]);

	if (n->bound.nin > 0)
		in = layout_of(f, node, &n->bound.in[0]);
	*fits = e->keeps ? ap_layout_equal(&in, &e->from) : ap_layout_equal(&out, &e->to);
	return (n->bound.nin > 0 ? move_s(f, n->in[0], &e->from, &in) : 0) +
		move_s(f, n->out[0], &out, &e->to);
}

static const int32_t *best_between(struct following *f, ap_id node, const struct ends *e)
{
	const struct ap_bound *b = &f->g->node[node].bound;
	int32_t *best = AP_NEW_N(f->ctx->arena, int32_t, AP_MAX_FACTOR);
	int32_t count[AP_MAX_FACTOR];
	double least = 0;
	bool fit = false;
	struct ap_space space;

	ap_space_make(f->ctx, b, f->ndev, f->step, &space);
	for (uint32_t c = 0; c < space.n; c++) {
		bool fits;
		double s;

		for (int i = 0; i < AP_MAX_FACTOR; i++)
			count[i] = i < b->nfactor ? space.count[(size_t)c * b->nfactor + (size_t)i] : 1;
		f->counts[node] = count;
		s = cost_between(f, node, e, &fits);
		if (c > 0 && (fit > fits || (fit == fits && s >= least)))
			continue;
		fit = fits;
		least = s;
		for (int i = 0; i < AP_MAX_FACTOR; i++)
			best[i] = count[i];
	}
	return best;
}

#define KEY(key, x) ap_str_addn((key), (const char *)&(x), sizeof(x))

/* All that the choice depends on, as bytes; equal operators share their bound. */
static struct ap_str key_of(const struct following *f, const struct ap_node *n, const struct ends *e)
{
	const struct ap_bound *b = &n->bound;
	struct ap_str key;

	ap_str_init(&key, f->ctx->scratch);
	KEY(&key, b->row);
	KEY(&key, b->in);
	KEY(&key, b->out);
	for (int i = 0; i < b->nfactor; i++)
		KEY(&key, b->factor[i].flags);
	if (b->nin > 0)
		KEY(&key, f->g->tensor[n->in[0]].batch);
	KEY(&key, f->g->tensor[n->out[0]].batch);
	KEY(&key, e->from);
	KEY(&key, e->to);
	KEY(&key, e->keeps);
	return key;
}

static const int32_t *decide(struct following *f, ap_id node)
{
	struct ends e = ends_of(f, &f->g->node[node]);
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	struct ap_str key = key_of(f, &f->g->node[node], &e);
	ap_id id = ap_map_get(f->known, key.s, key.len);
	const int32_t *count;

	if (id == AP_NONE) {
		count = best_between(f, node, &e);
		ap_map_put(f->known, key.s, key.len, NULL);
		AP_PUSH(f->ctx->arena, f->decided, count);
	} else {
		count = f->decided.v[id];
	}
	ap_arena_release(f->ctx->scratch, mark);
	return count;
}

void ap_follow_layouts(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, const int32_t **counts)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_step any = *step; /* without the limits that hold for searched operators only */
	struct following f = {.ctx = ctx, .g = g, .step = &any, .ndev = m->ndev, .counts = counts};

	any.fully_use = false;
	any.slice_align = 0;
	f.reader = AP_NEW_N(ctx->scratch, struct reader, g->ntensor);
	f.pricer = ap_pricer_create(ctx->arena, m, &any);
	f.known = ap_map_create(ctx->arena);
	find_readers(&f);
	for (ap_id i = 0; i < g->nnode; i++)
		if (!counts[i])
			counts[i] = decide(&f, i);
	ap_arena_release(ctx->scratch, mark);
}
