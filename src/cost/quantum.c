/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/quantum.h"

#include <math.h>

#include "base/arena.h"
#include "base/num.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "hw/coll.h"
#include "shard/layout.h"

enum { EXACT_BITS = 52 }; /* of a total; one bit is left for intermediate sums */

/* Time to bring each operand and result to all ranks, and to sum its gradient there, once. */
static double moved_s(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	const struct ap_group *all)
{
	const struct ap_step *step = ap_pricer_step(pr);
	const struct ap_bound *b = t->bound;
	double sum = 0;

	for (int i = 0; i < b->nin; i++)
		sum += ap_coll_time_s(ap_pricer_machine(pr), AP_COLL_ALLREDUCE, all,
			(double)ap_local_bytes(&b->in[i], t->in[i].batch, p, step), NULL);
	for (int o = 0; o < b->nout; o++)
		sum += ap_coll_time_s(ap_pricer_machine(pr), AP_COLL_ALLREDUCE, all,
			(double)ap_local_bytes(&b->out[o], t->out[o].batch, p, step), NULL);
	return 2 * sum * (double)step->micro_batches;
}

/* Cost of an operator that every rank of its stage computes whole. */
static double whole_s(struct ap_pricer *pr, const struct ap_task *t)
{
	struct ap_pricer *at = ap_pricer_at(pr, t->block);
	uint32_t ndev = ap_pricer_machine(at)->ndev;
	const struct ap_axes every = {.n = ndev > 1, .axis = {{.stride = 1, .size = (int32_t)ndev}}};
	int32_t ones[AP_MAX_FACTOR];
	struct ap_placement p;
	struct ap_op_cost c;

	for (int f = 0; f < AP_MAX_FACTOR; f++)
		ones[f] = 1;
	ap_placement_make(t->bound, ones, ndev, &p);
	ap_op_cost_make(pr, t, &p, &c);
	return ap_op_cost_kernels_s(&c) + c.forward_comm_s + c.backward_comm_s + c.input_s + c.optimizer_s +
		c.gradient_s + c.gradient_each_s + moved_s(at, t, &p, ap_pricer_group(at, &every));
}

double ap_cost_quantum_s(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_machine *m,
	const struct ap_step *step)
{
	struct ap_ctx local = *ctx; /* with memory of its own, freed at the end */
	const struct ap_task *task;
	const uint32_t *class_of;
	struct ap_pricer *pr;
	double *of_class, sum = 0;
	int exponent;

	local.arena = ap_arena_create_like(ctx->arena);
	pr = ap_pricer_create(local.arena, m, step);
	ap_tasks_make(&local, g, step, &task);
	class_of = ap_task_classes(&local, task, g->nnode);
	of_class = AP_NEW_N(local.arena, double, g->nnode + 1);
	for (ap_id i = 0; i < g->nnode; i++) {
		double *s = &of_class[class_of[i]];

		if (*s == 0)
			*s = whole_s(pr, &task[i]);
		sum += *s;
	}
	ap_arena_destroy(local.arena);
	(void)frexp(sum, &exponent);
	return fmax(AP_QUANTUM_S, ldexp(1, exponent - EXACT_BITS));
}
