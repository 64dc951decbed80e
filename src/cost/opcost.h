/* SPDX-License-Identifier: Apache-2.0 */
/* An operator that is being priced. Private to this layer. */
#ifndef AP_COST_OPCOST_H
#define AP_COST_OPCOST_H

#include "cost/cost.h"
#include "cost/comms.h"

struct ap_opcost {
	struct ap_pricer *pr;
	const struct ap_chip *chip;
	const struct ap_step *step;
	const struct ap_task *t;
	const struct ap_bound *b;
	const struct ap_placement *p;
	struct ap_op_cost *c;
	int halo_operand; /* that windows slide over */
	int64_t halo_bytes; /* its slice with the halo, 0: there is none */
	bool keeps_results; /* which communication gave, rather than make them again */
};

/* Bytes of an operand's and of a result's slice, and of a result before its sums are dealt. */
static inline double ap_opcost_in(const struct ap_opcost *x, int i)
{
	return (double)ap_local_bytes(&x->b->in[i], x->t->in[i].batch, x->p, x->step);
}

static inline double ap_opcost_out(const struct ap_opcost *x, int o)
{
	return (double)ap_local_bytes(&x->b->out[o], x->t->out[o].batch, x->p, x->step);
}

static inline double ap_opcost_computed(const struct ap_opcost *x, int o)
{
	return (double)ap_computed_bytes(x->b, o, x->t->out[o].batch, x->p, x->step);
}

/* The same of an operand as it is stored. */
static inline double ap_opcost_stored(const struct ap_opcost *x, int i)
{
	return (double)ap_stored_bytes(x->t, i, x->p, x->step);
}

/* Does the operator make itself a copy of operand i in another type? One read twice is cast once. */
static inline bool ap_opcost_casts(const struct ap_opcost *x, int i)
{
	return x->t->in[i].cast && x->t->in[i].twin == i;
}

/* Costs of an operator under a placement. O(factors * operands). */
void ap_op_cost_make(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	struct ap_op_cost *out);

/* The additive objective's share, quantised: kernels + communication + optimizer + the exposed part
 * of the gradient exchange. */
double ap_op_cost_total_s(const struct ap_op_cost *c, const struct ap_step *step);

/* The part of the gradient exchange that the objective leaves out, quantised. */
double ap_op_cost_hidden_s(const struct ap_op_cost *c, const struct ap_step *step);

/* What a search charges to the operator: weight + gathered + gradient + optimizer + activations that are
 * not lent and its shares of those that are lent to it, of the micro-batches in flight and of those that
 * are late, and the operator's part of what recomputing brings back: of several sets of which one at a
 * time is there each is charged an equal part, which is exact where they are alike and never too much. */
int64_t ap_op_cost_memory_bytes(const struct ap_op_cost *c, const struct ap_task *t);

#endif
