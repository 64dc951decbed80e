/* SPDX-License-Identifier: Apache-2.0 */
#include "route/semi_auto.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/conflict.h"
#include "route/follow.h"
#include "rule/batch.h"
#include "shard/space.h"
#include "shard/strategy.h"

/* Operators that MindSpore would stop at, by reason, as those of repeated layers share one. */
struct refusals {
	struct ap_map *reasons; /* ids of v */
	struct {
		struct refusal {
			const struct ap_node *first;
			const char *reason;
			uint32_t n;
		} *v;
		size_t n, cap;
	} list;
};

/* The batch strategy of a node. */
struct batch {
	struct ap_ctx *ctx;
	struct refusals *refusals;
	const struct ap_graph *g;
	const struct ap_node *n;
	int64_t ndev;
	const struct ap_step *step;
	uint32_t nvector;
	uint8_t *mask; /* [nvector] dimensions that are cut */
	uint8_t *rank;
	int32_t (*cut)[AP_MAX_RANK];
};

/* In one micro-batch. */
static int64_t length_of(const struct batch *x, ap_id tensor, int d)
{
	const struct ap_tensor *t = &x->g->tensor[tensor];

	return t->shape.dim[d] / (t->batch >> d & 1 ? x->step->micro_batches : 1);
}

/* Is there a vector of as many values as dimensions for each operand? */
static bool is_of_operands(const struct batch *x)
{
	const struct ap_bound *b = &x->n->bound;

	if (x->nvector != b->nin)
		return false;
	for (uint32_t v = 0; v < x->nvector; v++)
		if (x->rank[v] != b->in[v].rank)
			return false;
	return true;
}

static bool is_divided(const struct batch *x, uint16_t n, const struct ap_operand *o, const ap_id *tensor)
{
	return n > 0 && o[0].rank > 0 && length_of(x, tensor[0], 0) % x->ndev == 0;
}

static int64_t data_parts(const struct batch *x)
{
	struct ap_arrival given = {0};

	if (x->n->bound.nin > 0)
		given = ap_follow_arrival(x->g, x->step, x->n->in[0]);
	if (given.cut > 0)
		return given.dim == 0 && given.cut == x->ndev ? x->ndev : 1;
	return x->step->full_batch ? 1 : x->ndev;
}

static int64_t parts_of(const struct batch *x, enum ap_batch way)
{
	const struct ap_node *n = x->n;
	bool divided = is_divided(x, n->bound.nin, n->bound.in, n->in);
	int64_t parts = x->ndev;

	switch (way) {
	case AP_BATCH_COMMON:
		break;
	case AP_BATCH_WHOLLY:
		return divided ? x->ndev : 1;
	case AP_BATCH_SAMPLES:
		return divided && is_divided(x, n->bound.nout, n->bound.out, n->out) ? x->ndev : 1;
	case AP_BATCH_DATA:
		return data_parts(x);
	}
	for (uint32_t v = 0; is_of_operands(x) && v < x->nvector; v++)
		for (int d = 0; d < x->rank[v]; d++)
			if (x->mask[v] >> d & 1)
				parts = ap_gcd(parts, length_of(x, x->n->in[v], d));
	return parts;
}

/* "(8,1),(1)" */
static const char *vectors_text(const struct batch *x)
{
	struct ap_str s;

	ap_str_init(&s, x->ctx->arena);
	for (uint32_t v = 0; v < x->nvector; v++) {
		ap_str_add(&s, v ? ",(" : "(");
		for (int d = 0; d < x->rank[v]; d++)
			ap_str_addf(&s, "%s%" PRId32, d ? "," : "", x->cut[v][d]);
		ap_str_addc(&s, ')');
	}
	return s.s;
}

static enum ap_status tell(struct ap_ctx *ctx, const struct ap_graph *g, const struct refusal *r)
{
	const char *more = "";

	if (r->n > 1)
		more = ap_arena_printf(ctx->arena, ", and %" PRIu32 " more like it do", r->n - 1);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE,
		&(struct ap_where){.file = g->file, .oper = r->first->name}, "semi-auto",
		"semi_auto_parallel gives %s; it needs an in_strategy, that is shard()%s", r->reason,
		more);
}

static void cut_batch(struct batch *x, const int32_t **out)
{
	int32_t *count = AP_NEW_N(x->ctx->arena, int32_t, AP_MAX_FACTOR);
	struct ap_mark mark;
	const char *why;
	const struct ap_bound *b = &x->n->bound;
	enum ap_batch way;
	int64_t parts;

	*out = count;
	if (ap_space_is_imposed(b)) {
		ap_space_start(&x->n->bound, x->ndev, count);
		return;
	}
	mark = ap_arena_mark(x->ctx->scratch);
	x->nvector = ap_op_vectors(b);
	x->mask = AP_NEW_N(x->ctx->scratch, uint8_t, x->nvector);
	x->rank = AP_NEW_N(x->ctx->scratch, uint8_t, x->nvector);
	x->cut = ap_arena_alloc(x->ctx->scratch, x->nvector, sizeof *x->cut);
	way = ap_op_batch_positions(b, x->mask);
	for (uint32_t v = 0; v < x->nvector; v++) {
		const struct ap_operand *t = ap_op_vector(b, v);

		x->rank[v] = t ? t->rank : 0;
		while (x->mask[v] >> x->rank[v])
			x->rank[v]++;
	}
	parts = parts_of(x, way);
	for (uint32_t v = 0; v < x->nvector; v++)
		for (int d = 0; d < x->rank[v]; d++)
			x->cut[v][d] = x->mask[v] >> d & 1 ? (int32_t)parts : 1;
	if (!ap_space_from_strategy(x->ctx, b, x->ndev, x->step, x->nvector, x->rank,
		    (const int32_t(*)[AP_MAX_RANK])x->cut, count, &why)) {
		struct refusals *r = x->refusals;
		const char *reason = ap_arena_printf(x->ctx->arena,
			"%s the batch strategy (%s), which is not possible on %" PRId64 " devices: %s",
			x->n->type, vectors_text(x), x->ndev, why);
		bool fresh;
		ap_id id = ap_map_put(r->reasons, reason, strlen(reason), &fresh);

		if (fresh)
			AP_PUSH(x->ctx->arena, r->list, ((struct refusal){x->n, reason, 0}));
		r->list.v[id].n++;
	}
	ap_arena_release(x->ctx->scratch, mark);
}

/* all: operators with a parameter as well. */
static enum ap_status cut_open(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step, bool all, const int32_t *const *held, const int32_t **counts)
{
	struct refusals refusals = {.reasons = ap_map_create(ctx->arena)};
	enum ap_status st = AP_OK;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		struct batch x = {.ctx = ctx, .refusals = &refusals, .g = g, .n = n, .ndev = m->ndev,
			.step = step};

		if (held && held[i])
			counts[i] = held[i];
		else if (!ap_follow_is(n) && (all || n->param == AP_NONE))
			cut_batch(&x, &counts[i]);
	}
	for (size_t i = 0; i < refusals.list.n; i++)
		st = tell(ctx, g, &refusals.list.v[i]);
	return st;
}

/* Reports the first operator, in the graph's order, that conflicts with another. */
static enum ap_status check_together(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const int32_t *const *counts)
{
	ap_id node;
	const char *conflict = ap_plan_conflict(ctx, g, ndev, counts, &node);

	if (!conflict)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE,
		&(struct ap_where){.file = g->file, .oper = g->node[node].name}, "semi-auto",
		"%s; in semi_auto_parallel each of them needs an in_strategy", conflict);
}

enum ap_status ap_semi_auto_fix(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);

	*out = counts;
	AP_TRY(cut_open(ctx, g, m, step, false, held, counts));
	return check_together(ctx, g, m->ndev, counts);
}

enum ap_status ap_semi_auto_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);

	*out = counts;
	AP_TRY(cut_open(ctx, g, m, step, true, held, counts));
	ap_follow_layouts(ctx, g, m, step, counts);
	return check_together(ctx, g, m->ndev, counts);
}
