/* SPDX-License-Identifier: Apache-2.0 */
/* An operator while it is priced. Private to this layer. */
#ifndef AP_COST_OPCOST_H
#define AP_COST_OPCOST_H

#include "cost/cost.h"
#include "cost/comms.h"
#include "cost/kernel.h"

/* Where seconds that are told belong to. */
enum ap_term_of { AP_TERM_NONE, AP_TERM_FORWARD, AP_TERM_BACKWARD, AP_TERM_OPTIMIZER };

/* A term of what an operator takes: so many times a step, seconds of a kernel. */
struct ap_op_term {
	enum ap_term_of of;
	const char *what; /* "kernel", "gradient of the weight" */
	double times, s; /* s: once */
	const struct ap_kernel *kernel; /* NULL: bytes, or what was measured */
	double bytes; /* then, at the rate of the memory; 0: measured, or the same again */
};
typedef void ap_op_term_fn(void *user, const struct ap_op_term *term);

struct ap_opcost {
	struct ap_pricer *pr;
	const struct ap_chip *chip;
	const struct ap_step *step;
	const struct ap_task *t;
	const struct ap_bound *b;
	const struct ap_placement *p;
	struct ap_op_cost *c;
	int halo_operand; /* the operand that windows slide over */
	int64_t halo_bytes; /* its slice with the halo; 0 if there is none */
	bool keeps_results; /* keeps the results of communication rather than repeat it */
	ap_op_term_fn *tell; /* NULL: nobody asks for terms */
	void *user;
	enum ap_term_of of; /* of what is timed now; AP_TERM_NONE: nothing that is told */
	double times;
	double *launch_s; /* of what is timed now, of a step; NULL: not counted */
};

/* Bytes of an operand's and a result's slice, and of a result before its sums are dealt: of the rank that has
 * most. */
static inline double ap_opcost_in(const struct ap_opcost *x, int i)
{
	return (double)ap_local_bytes(&x->b->in[i], x->t->in[i].batch, x->p, x->step) *
		(x->t->in[i].uneven ? x->c->load : 1);
}

static inline double ap_opcost_out(const struct ap_opcost *x, int o)
{
	return (double)ap_local_bytes(&x->b->out[o], x->t->out[o].batch, x->p, x->step) *
		(x->t->out[o].uneven ? x->c->load : 1);
}

static inline double ap_opcost_computed(const struct ap_opcost *x, int o)
{
	return (double)ap_computed_bytes(x->b, o, x->t->out[o].batch, x->p, x->step) *
		(x->t->out[o].uneven ? x->c->load : 1);
}

/* Bytes of an operand's slice as stored. */
static inline double ap_opcost_stored(const struct ap_opcost *x, int i)
{
	return (double)ap_stored_bytes(x->t, i, x->p, x->step) * (x->t->in[i].uneven ? x->c->load : 1);
}

/* Does the operator cast operand i into a copy? An operand read twice is cast once. */
static inline bool ap_opcost_casts(const struct ap_opcost *x, int i)
{
	return x->t->in[i].cast && x->t->in[i].twin == i;
}

/* Costs of an operator under a placement. O(factors * operands). */
void ap_op_cost_make(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	struct ap_op_cost *out);

/* Seconds of its kernels in a step, where the host runs ahead within a pass of one operator alone. */
double ap_op_cost_kernels_s(const struct ap_op_cost *c);

/* Tells the terms of the same: those of kernels are all of forward_s, backward_s and, but for the
 * gathering of weights, optimizer_s. The kernels live as long as the call. */
void ap_op_cost_terms(struct ap_pricer *pr, const struct ap_task *t, const struct ap_placement *p,
	ap_op_term_fn *tell, void *user);

/* Seconds of a micro-batch for adding the gradient of operand i, if it is of a weight, to those of the
 * micro-batches before, of the part that is kept; else 0. */
double ap_op_sum_s(const struct ap_chip *chip, const struct ap_step *step, const struct ap_bound *b,
	const struct ap_task *t, const struct ap_placement *p, int i);

/* Seconds of one of its collectives: of what goes round, what its work does not cover. */
double ap_op_comm_time_s(struct ap_pricer *pr, const struct ap_op_cost *cost, const struct ap_comm *c,
	const char **algorithm);

/* Share of the additive objective, quantised: kernels (the longer of device and host) + communication +
 * optimizer + exposed part of the gradient exchange. What goes in buckets is charged its bytes and its part
 * of a bucket's latency. */
double ap_op_cost_total_s(const struct ap_op_cost *c, const struct ap_step *step);

/* The part of the gradient exchange left out of the objective, quantised. */
double ap_op_cost_hidden_s(const struct ap_op_cost *c, const struct ap_step *step);

/* What buckets save of the share, by the latencies that collectives have alone, quantised. */
double ap_op_cost_bucketed_s(const struct ap_op_cost *c, const struct ap_step *step);

/* Memory that a search charges to the operator: weight + gathered + gradient + optimizer +
 * activations (those it does not lend, and its shares of those lent to it) of micro-batches in
 * flight and late ones, + its part of what recomputing brings back. Of sets that exist one at a
 * time, each is charged an equal part: exact if they are alike, never too much. */
int64_t ap_op_cost_memory_bytes(const struct ap_op_cost *c, const struct ap_task *t);

#endif
