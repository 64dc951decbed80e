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

static double least_s(struct legs *x, const struct ap_comm *c)
{
	const struct ap_step *step = ap_pricer_step(x->pr);
	const struct ap_fusion *f = c->kind == AP_COLL_ALLREDUCE ? &step->allreduce
		: c->kind == AP_COLL_REDUCESCATTER ? &step->reducescatter
		: c->kind == AP_COLL_ALLGATHER ? &step->allgather : NULL;
	double bytes = (double)c->bytes, most;

	if (!f || f->mode == AP_FUSION_OFF || c->bytes == 0)
		return ap_comm_time_s(x->pr, c, NULL);
	most = f->mode == AP_FUSION_SIZE ? fmax(bytes, (double)f->bytes) : ENDLESS;
	return bytes / most * ap_coll_time_s(ap_pricer_machine(x->pr), c->kind,
		ap_pricer_group(x->pr, &c->axes), most, NULL);
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
		x->leg[AP_LEG_EXCHANGE] += least_s(x, c); /* once, if dealt gradients are reduced with
		                                             each micro-batch as well */
		break;
	case AP_PHASE_OPTIMIZER:
		x->gathered_s += s;
		x->leg[AP_LEG_OPTIMIZER] += least_s(x, c);
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
	out->s[AP_LEG_OPTIMIZER] += fmax(0, cost->optimizer_s - x.gathered_s);
}
