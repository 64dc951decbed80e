/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/leg.h"

#include <math.h>

#include "cost/comms.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "hw/coll.h"
#include "hw/group.h"

#define ENDLESS 0x1p50 /* bytes */

struct legs {
	struct ap_pricer *pr;
	const struct ap_task *t;
	double times; /* a step */
	const struct ap_op_cost *cost;
	double gathered_s; /* by collectives of the optimizer, each on its own */
	double *leg;
};

/* Adds a collective that runs in a bucket to `leg` and the two after it. */
static void add_bucketed(struct legs *x, const struct ap_comm *c, enum ap_leg leg)
{
	struct ap_pricer *pr = ap_pricer_at(x->pr, c->block);
	const struct ap_machine *m = ap_pricer_machine(pr);
	const struct ap_fusion *f = ap_comm_fusion(ap_pricer_step(x->pr), c->kind);
	double bytes = (double)c->bytes, most, each, empty;
	const struct ap_group *group;

	if (f->mode == AP_FUSION_OFF || c->bytes == 0) {
		x->leg[leg] += ap_comm_time_s(x->pr, c, NULL);
		return;
	}
	most = f->mode == AP_FUSION_SIZE ? fmax(bytes, (double)f->bytes) : ENDLESS;
	group = ap_pricer_group(pr, &c->axes);
	each = ap_coll_least_slope(m, c->kind, group, most, &empty);
	x->leg[leg] += bytes * each;
	x->leg[leg + 1] += bytes / most * empty;
	x->leg[leg + 2] += empty;
}

static void add(void *user, const struct ap_comm *c)
{
	struct legs *x = user;
	bool result = c->result >= 0;
	double s = ap_op_comm_time_s(x->pr, x->cost, c, NULL);

	switch (c->phase) {
	case AP_PHASE_FORWARD:
		x->leg[c->kind == AP_COLL_SEND ? AP_LEG_SEND : result ? AP_LEG_FORWARD_OUT
			: AP_LEG_FORWARD_IN] += x->times * s;
		break;
	case AP_PHASE_RECOMPUTE:
		x->leg[result ? AP_LEG_AGAIN_OUT : AP_LEG_AGAIN_IN] += x->times * s;
		break;
	case AP_PHASE_BACKWARD:
		x->leg[c->kind == AP_COLL_SEND ? AP_LEG_SEND_BACK : result ? AP_LEG_BACKWARD_IN
			: AP_LEG_BACKWARD_OUT] += x->times * s;
		break;
	case AP_PHASE_GRADIENT:
		if (!x->t->in[c->operand].owner && x->t->in[c->operand].trainable)
			break; /* the owner's may have it */
		add_bucketed(x, c, AP_LEG_EXCHANGE); /* once, if dealt gradients are reduced with each
		                                        micro-batch as well */
		break;
	case AP_PHASE_OPTIMIZER:
		x->gathered_s += s;
		add_bucketed(x, c, AP_LEG_OPTIMIZER);
		break;
	}
}

void ap_legs_make(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	const struct ap_op_cost *cost, struct ap_legs *out)
{
	const struct ap_step *step = ap_pricer_step(pr);
	struct legs x = {.pr = pr, .t = t, .times = t->once ? 1 : (double)step->micro_batches, .leg = out->s,
		.cost = cost};

	*out = (struct ap_legs){0};
	ap_comms_derive(t, p, step, add, &x);
	out->s[AP_LEG_INPUT] = cost->input_s;
	out->s[AP_LEG_FORWARD] = cost->forward_s;
	out->s[AP_LEG_AGAIN] = cost->recompute_s;
	out->s[AP_LEG_BACKWARD] = cost->backward_s - cost->recompute_s;
	out->s[AP_LEG_FORWARD_LAUNCH] = cost->forward_launch_s;
	out->s[AP_LEG_AGAIN_LAUNCH] = cost->recompute_launch_s;
	out->s[AP_LEG_BACKWARD_LAUNCH] = cost->backward_launch_s - cost->recompute_launch_s;
	out->s[AP_LEG_OPTIMIZER] += fmax(0, cost->optimizer_s - x.gathered_s);
}
