/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/recut.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/opcost.h"
#include "drive/choose.h"
#include "plan/terms.h"

/* Powers of two by which the mean price of memory is multiplied, beside none at all. The last is for plans
 * that are as small as can be. */
static const int prices[] = {-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 10};

/* The problem with memory charged at so many seconds per byte, on the scratch arena. */
static struct ap_problem at_price(struct ap_ctx *ctx, const struct ap_table *t, double price)
{
	const struct ap_problem *from = t->problem;
	struct ap_problem p;
	double **cost = AP_NEW_N(ctx->scratch, double *, t->nclass), quantum = from->quantum;
	struct ap_pmatrix *matrix = ap_arena_memdup(ctx->scratch, from->matrix,
		from->nmatrix * sizeof *matrix);

	for (uint32_t c = 0; c < t->nclass; c++) {
		const struct ap_table_class *cls = &t->cls[c];

		cost[c] = AP_NEW_N(ctx->scratch, double, cls->k);
		for (uint32_t i = 0; i < cls->k; i++)
			cost[c][i] = cls->cost[i] + floor(price * (double)cls->memory[i] / quantum) * quantum;
	}
	for (uint32_t m = 0; m < from->nmatrix; m++) {
		size_t cells = (size_t)matrix[m].rows * matrix[m].cols;
		double *priced;

		if (!matrix[m].memory)
			continue;
		priced = AP_NEW_N(ctx->scratch, double, cells);
		for (size_t i = 0; i < cells; i++)
			priced[i] = matrix[m].cost[i] +
				floor(price * (double)matrix[m].memory[i] / quantum) * quantum;
		matrix[m].cost = priced;
	}
	p = ap_table_repriced(ctx->scratch, t, cost);
	p.matrix = matrix;
	p.memory_limit = AP_NO_LIMIT;
	return p;
}

/* The optimum at a price, or something near where that would take long; NULL: none. */
static const int32_t *const *plan_at(struct ap_ctx *ctx, const struct ap_request *rq,
	const struct ap_table *t, double price, uint64_t *work)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_problem p = at_price(ctx, t, price);
	struct ap_budget budget = {.work = 4 * t->work + (UINT64_C(1) << 24), .whole = true,
		.table_bytes = rq->budget.table_bytes, .no_fold = rq->budget.no_fold};
	const int32_t *const *counts = NULL;
	struct ap_choice c = {0};

	ap_engine_of_parts()->solve(ctx, &p, &budget, &c);
	*work += c.work;
	if (ap_choice_any(&c))
		counts = ap_chosen_counts(ctx, t, c.pick);
	ap_arena_release(ctx->scratch, mark);
	return counts;
}

struct learning {
	struct ap_ctx *ctx;
	const struct ap_request *rq;
	struct ap_map *names; /* of operators before they were staged; ids as there */
};

static ap_id before(const struct learning *l, const struct ap_graph *g, ap_id node)
{
	return g->node[node].peer >= 0 ? AP_NONE : ap_map_get_str(l->names, g->node[node].name);
}

/* What the operators take in a plan. A redistribution is its reader's; to a send, its maker's. */
static struct ap_cut_way way_of(const struct learning *l, const struct ap_plan *p)
{
	ap_id n = l->rq->cutting->graph->nnode;
	double *time_s = AP_NEW_N(l->ctx->arena, double, n);
	int64_t *held = AP_NEW_N(l->ctx->arena, int64_t, n), *each = AP_NEW_N(l->ctx->arena, int64_t, n);
	int64_t *border = AP_NEW_N(l->ctx->scratch, int64_t, p->nstage);
	struct ap_cut_way way = {.time_s = time_s, .held = held, .each = each};
	bool late = p->step->pipe && p->step->pipe->late;

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		const struct ap_op_cost *c = &p->op[i].cost;
		ap_id at = before(l, p->graph, i);
		int64_t kept = c->activation_bytes + (late ? c->late_bytes : 0);

		if (at == AP_NONE) {
			border[ap_plan_op_stage(p, i)] += p->task[i].once ? 0 : kept;
			continue;
		}
		time_s[at] += ap_op_cost_total_s(c, p->step);
		held[at] += c->weight_bytes + c->gathered_bytes + c->gradient_bytes + c->optimizer_bytes;
		*(p->task[i].once ? &held[at] : &each[at]) += kept;
	}
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];
		ap_id at = before(l, p->graph, m->to);

		if (m->from == AP_NONE)
			continue;
		at = at != AP_NONE ? at : before(l, p->graph, m->from);
		if (at == AP_NONE)
			continue;
		time_s[at] += m->cost.objective_s;
		if (!p->task[m->to].in[m->operand].again)
			*(p->task[m->to].once ? &held[at] : &each[at]) += m->cost.kept_bytes;
	}
	for (uint32_t s = 0; s < p->nstage; s++) {
		const struct ap_memory *m = &p->stage[s].memory;

		way.once = m->recompute + m->temporary > way.once ? m->recompute + m->temporary : way.once;
		way.border = border[s] > way.border ? border[s] : way.border;
	}
	return way;
}

/* Of all stages, what depends on the plan. */
static double sum_bytes(const struct ap_plan *p)
{
	double sum = 0;

	for (uint32_t s = 0; s < p->nstage; s++) {
		const struct ap_memory *m = &p->stage[s].memory;

		sum += (double)(m->total - m->context - m->buffers);
	}
	return fmax(sum, 1);
}

static struct learning learn(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_graph *whole)
{
	struct learning l = {ctx, rq, ap_map_create(ctx->scratch)};

	for (ap_id i = 0; i < whole->nnode; i++)
		ap_map_put_str(l.names, whole->node[i].name, NULL);
	return l;
}

bool ap_recut_ways(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_table *t,
	struct ap_plan_maker *maker, struct ap_stage_ways *out, uint64_t *work)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct learning l = learn(ctx, rq, rq->cutting->graph);
	struct ap_cut_way *way = AP_NEW_N(ctx->arena, struct ap_cut_way, AP_COUNT(prices) + 1);
	double unit = 0, before_s = 0;
	bool binds = false;

	*out = (struct ap_stage_ways){.way = way, .limit_bytes = ap_choose_limit_bytes(rq)};
	for (size_t k = 0; k <= AP_COUNT(prices) && !ap_ctx_stopped(ctx); k++) {
		double price = k ? ldexp(unit, prices[k - 1]) : 0;
		const int32_t *const *counts = plan_at(ctx, rq, t, price, work);
		struct ap_plan p;

		if (!counts)
			break;
		ap_plan_price(maker, counts, &p);
		if (k == 0) {
			binds = p.prediction.memory.total > rq->capacity_bytes;
			unit = p.search.objective_s / sum_bytes(&p);
		} else if (p.search.objective_s == before_s) {
			continue;
		}
		if (!binds)
			break;
		before_s = p.search.objective_s;
		way[out->n++] = way_of(&l, &p);
	}
	ap_arena_release(ctx->scratch, mark);
	return binds && out->n > 1;
}

const struct ap_spot *ap_recut_spots(struct ap_ctx *ctx, const struct ap_stages_request *cutting,
	const struct ap_graph *staged)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct learning l = learn(ctx, NULL, cutting->graph);
	struct ap_spot *spot = AP_NEW_N(ctx->arena, struct ap_spot, cutting->graph->nnode);

	for (ap_id i = 0; i < staged->nnode; i++) {
		const struct ap_node *n = &staged->node[i];
		ap_id at = before(&l, staged, i);
		int32_t segment = n->segment > 0 ? n->segment : 0;

		if (at != AP_NONE)
			spot[at] = (struct ap_spot){n->stage, segment,
				ap_schedule_part(cutting->scheduler, cutting->nstage, n->stage, segment)};
	}
	ap_arena_release(ctx->scratch, mark);
	return spot;
}
