/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator adds to a path through the step, leg by leg. A path is a chain of kernels and of
 * collectives that wait for one another, so that the sum of its legs is no more than the step takes,
 * whatever runs beside it (plan/path.h).
 */
#ifndef AP_COST_LEG_H
#define AP_COST_LEG_H

#include "cost/cost.h"

enum ap_leg { /* in seconds of a step, all micro-batches */
	AP_LEG_INPUT, /* bringing graph inputs into the layout of operands, at the start of a pass */
	AP_LEG_FORWARD, /* the kernel */
	AP_LEG_FORWARD_IN, /* collectives of operands before it */
	AP_LEG_FORWARD_OUT, /* of results after it */
	AP_LEG_AGAIN, /* the kernel that is run again */
	AP_LEG_AGAIN_IN, /* collectives of operands before that, or before the backward kernel if only
	                    weights are gathered anew */
	AP_LEG_AGAIN_OUT, /* of results after it */
	AP_LEG_BACKWARD, /* the kernel, without the one run again */
	AP_LEG_BACKWARD_IN, /* collectives of results' gradients before it */
	AP_LEG_BACKWARD_OUT, /* of operands' gradients after it */
	AP_LEG_FORWARD_LAUNCH, AP_LEG_AGAIN_LAUNCH, AP_LEG_BACKWARD_LAUNCH, /* the host starts these */
	AP_LEG_SEND, AP_LEG_SEND_BACK, /* to another stage, and the gradient back */
	AP_LEG_EXCHANGE, /* of gradients, without latencies */
	AP_LEG_EXCHANGE_SHARE, /* its part of the latency of full buckets, see ap_legs_make() */
	AP_LEG_EXCHANGE_CALL, /* the latency of one bucket */
	AP_LEG_OPTIMIZER, /* update, and the gathering of weights after it, likewise */
	AP_LEG_OPTIMIZER_SHARE, AP_LEG_OPTIMIZER_CALL,
	AP_LEG_COUNT
};

struct ap_legs {
	double s[AP_LEG_COUNT];
};

/* How often a path through the step passes each operator's legs and each redistribution, as parts of
 * what these take in a step (0 to 1: all micro-batches). */
struct ap_path_weights {
	const struct ap_legs *node; /* [nnode] */
	const uint32_t *first; /* [nnode + 1] operands of node v: there[first[v]] .. */
	const double *there; /* of an operand's redistribution; may be below 0 where back counts it, too */
	const double *back; /* of the way back, and what is taken once more before it */
};

/*
 * The legs of an operator whose cost is *cost. A collective of gradients or weights runs in a bucket with
 * others. A bucket of b bytes takes at least L + b (T - L) / M, with T the time of one filled to the
 * fusion's limit of M bytes, or without a limit, to no end, and L that of an empty one, since times are
 * concave; of a measured curve, which may be anything that does not fall, the slope is the least of a line
 * from L to any size up to M. So it takes the sum of its members' legs without latencies, and, since b <= M,
 * of their shares, L b / M each; or, if it has no more than n members, of an nth of their calls, L; or of one
 * member's whole call.
 */
void ap_legs_make(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	const struct ap_op_cost *cost, struct ap_legs *out);

#endif
