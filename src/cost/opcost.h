/* SPDX-License-Identifier: Apache-2.0 */
/* An operator that is being priced. Private to this layer. */
#ifndef AP_COST_OPCOST_H
#define AP_COST_OPCOST_H

#include "cost/cost.h"
#include "cost/local.h"

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

/* activation_bytes, recompute_bytes and temporary_bytes, and the gradient of a received parameter, once
 * the collectives are known. */
void ap_opcost_memory(struct ap_opcost *x);

#endif
