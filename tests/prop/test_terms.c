/* SPDX-License-Identifier: Apache-2.0 */
/* The terms by which a price is explained add up to it. */
#include <math.h>

#include "cost/move.h"
#include "cost/opcost.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "plan/make.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 14, DEVICES = 16 };

struct sums {
	double s[AP_TERM_OPTIMIZER + 1];
	const struct ap_chip *chip;
	double worst; /* relative error of a kernel's parts */
};

static void take(void *user, const struct ap_op_term *term)
{
	struct sums *x = user;

	x->s[term->of] += term->times * term->s;
	if (term->kernel) {
		struct ap_kernel_parts p;
		double work_s;

		ap_kernel_parts(x->chip, term->kernel, &p);
		work_s = fmax(p.flops_per_s > 0 ? p.flops / p.flops_per_s : 0, p.bytes / p.Bps);
		x->worst = fmax(x->worst, fabs((p.fixed_s + work_s) / term->s - 1));
	}
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b)) + 1e-24;
}

static void add_up(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	struct ap_pricer *pricer = ap_pricer_create(t->f.ctx.arena, t->f.machine, &t->f.step);
	struct ap_plan p;

	if (!counts)
		return;
	trial_plan(t, counts, &p);
	for (ap_id i = 0; i < p.graph->nnode; i++) {
		const struct ap_op_cost *c = &p.op[i].cost;
		struct sums x = {.chip = t->f.machine->chip};
		double gather_s = 0;

		ap_op_cost_terms(pricer, &p.task[i], &p.op[i].place, take, &x);
		for (uint32_t k = 0; k < p.op[i].ncomm; k++) {
			const struct ap_plan_comm *pc = &p.op[i].comm[k];
			struct ap_coll_parts parts;
			struct ap_group g;

			gather_s += pc->comm.phase == AP_PHASE_OPTIMIZER ? pc->time_s : 0;
			if (pc->comm.kind == AP_COLL_SEND)
				continue;
			ap_group_make(t->f.ctx.arena, t->f.machine, &pc->comm.axes, &g);
			ap_coll_parts(t->f.machine, pc->comm.kind, &g, (double)pc->comm.bytes, &parts);
			REQUIRE(t, near(parts.fixed_s + parts.latency_s + parts.transfer_s,
				ap_coll_time_s(t->f.machine, pc->comm.kind, &g, (double)pc->comm.bytes, NULL)) &&
				parts.latency_s >= 0 && parts.transfer_s >= 0, "a collective's parts");
		}
		REQUIRE(t, x.worst < 1e-12, "%s: a kernel's parts", p.graph->node[i].name);
		REQUIRE(t, near(x.s[AP_TERM_FORWARD], c->forward_s), "%s forward: %.17g, not %.17g",
			p.graph->node[i].name, x.s[AP_TERM_FORWARD], c->forward_s);
		REQUIRE(t, near(x.s[AP_TERM_BACKWARD], c->backward_s), "%s backward: %.17g, not %.17g",
			p.graph->node[i].name, x.s[AP_TERM_BACKWARD], c->backward_s);
		REQUIRE(t, near(x.s[AP_TERM_OPTIMIZER] + gather_s, c->optimizer_s),
			"%s optimizer: %.17g and %.17g, not %.17g", p.graph->node[i].name,
			x.s[AP_TERM_OPTIMIZER], gather_s, c->optimizer_s);
		t->telling |= c->backward_s > 0 && c->optimizer_s > 0;
	}
}

START_TEST(terms_add_up_to_costs)
{
	trial_each(100, OPERATORS, DEVICES, add_up);
}
END_TEST
