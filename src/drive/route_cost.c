/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/route_cost.h"

#include <string.h>

#include "base/arena.h"
#include "cost/opcost.h"

struct comparing {
	const struct ap_plan *plan, *free;
	uint32_t n;
	struct ap_route_differ *differ;
	uint32_t *at; /* [nnode] place among those that differ, from 1; 0: it does not */
};

static bool is_same(const struct comparing *c, ap_id node)
{
	return memcmp(c->plan->op[node].place.count, c->free->op[node].place.count,
		c->plan->graph->node[node].bound.nfactor * sizeof(int32_t)) == 0;
}

/* Each redistribution belongs to the operator behind it, or where that is the same to the one before. Where
 * both are the same, so is what lies between them. */
static void compare_moves(struct comparing *c, const struct ap_plan *p, double sign)
{
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];
		uint32_t at;

		if (m->from == AP_NONE)
			continue;
		at = c->at[m->to] ? c->at[m->to] : c->at[m->from];
		if (at)
			c->differ[at - 1].moves_s += sign *
				ap_quantise_s(m->cost.forward_s + m->cost.backward_s, p->step->quantum_s);
	}
}

const struct ap_plan_route *ap_route_compare(struct ap_ctx *ctx, const struct ap_route *route,
	const struct ap_plan *plan, const struct ap_plan *free)
{
	struct ap_plan_route *r = AP_NEW(ctx->arena, struct ap_plan_route);
	struct comparing c = {.plan = plan, .free = free};

	c.differ = AP_NEW_N(ctx->arena, struct ap_route_differ, plan->graph->nnode);
	c.at = AP_NEW_N(ctx->arena, uint32_t, plan->graph->nnode);
	for (ap_id i = 0; i < plan->graph->nnode; i++) {
		if (is_same(&c, i))
			continue;
		c.differ[c.n++] = (struct ap_route_differ){
			.node = i,
			.free_count = free->op[i].place.count,
			.operator_s = ap_op_cost_total_s(&plan->op[i].cost, plan->step) -
				ap_op_cost_total_s(&free->op[i].cost, free->step),
		};
		c.at[i] = c.n;
	}
	compare_moves(&c, plan, 1);
	compare_moves(&c, free, -1);
	*r = (struct ap_plan_route){
		.route = route,
		.free_objective_s = free->search.objective_s,
		.free_step_time_s = free->prediction.step_time_s,
		.loss_s = plan->search.objective_s - free->search.objective_s,
		.n = c.n,
		.differ = c.differ,
	};
	return r;
}
