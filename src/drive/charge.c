/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/charge.h"

#include "base/arena.h"
#include "cost/opcost.h"

struct ap_problem ap_charged_problem(struct ap_ctx *ctx, const struct ap_table *t, enum ap_charge charge)
{
	double **cost = AP_NEW_N(ctx->arena, double *, t->nclass);

	if (charge == AP_CHARGE_USUAL)
		return *t->problem;
	for (uint32_t c = 0; c < t->nclass; c++) {
		const struct ap_table_class *cls = &t->cls[c];
		const double *more = charge == AP_CHARGE_ALL ? cls->hidden : cls->bucketed;

		cost[c] = AP_NEW_N(ctx->arena, double, cls->k);
		for (uint32_t i = 0; i < cls->k; i++)
			cost[c][i] = cls->cost[i] + more[i];
	}
	return ap_table_repriced(ctx->arena, t, cost);
}

double ap_charged_more_s(const struct ap_op_cost *cost, const struct ap_step *step, enum ap_charge charge)
{
	switch (charge) {
	case AP_CHARGE_ALL:
		return ap_op_cost_hidden_s(cost, step);
	case AP_CHARGE_ALONE:
		return ap_op_cost_bucketed_s(cost, step);
	default:
		return 0;
	}
}

double ap_charged_objective_s(const struct ap_plan *p, enum ap_charge charge)
{
	double sum = p->search.objective_s;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		sum += ap_charged_more_s(&p->op[i].cost, p->step, charge);
	return sum;
}

const char *ap_charge_text(enum ap_charge charge)
{
	static const char *const text[AP_CHARGE_COUNT] = {
		[AP_CHARGE_USUAL] = "",
		[AP_CHARGE_ALL] = ", with all of the gradient exchange",
		[AP_CHARGE_ALONE] = ", with each gradient exchanged alone",
	};

	return text[charge];
}
