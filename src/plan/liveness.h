/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Liveness of kept activations: what each node's pass over a micro-batch allocates and frees, in
 * bytes on one rank. A node's results are kept until the last operator whose backward pass reads
 * them has run; if the scheduler splits, those that a gradient of weights reads until the pass for
 * weights. Recomputed activations are allocated, set by set, before the first operator that reads
 * one of the set, and freed when all have read them, at the latest at the end of the backward pass.
 */
#ifndef AP_PLAN_LIVENESS_H
#define AP_PLAN_LIVENESS_H

#include "plan/parts.h"

struct ap_live {
	const int64_t *kept; /* [nnode] allocated by the forward pass */
	const int64_t *again; /* [nnode] allocated when it is recomputed */
	const int64_t *freed; /* [nnode] after its backward pass */
	const int64_t *freed_again; /* [nnode] the recomputed part of freed */
	const int64_t *freed_late; /* [nnode] after its pass for weights */
	const int64_t *late; /* [nnode] gradients of its results, held from its backward pass to its
	                        pass for weights */
	const int64_t *rest; /* [npart] read by nothing: freed at the end of the backward pass */
	const double *weight_share; /* [nnode] share of its backward kernel run in the pass for
	                               weights; 0 unless the scheduler splits */
	uint32_t nset; /* sets that are recomputed together, each in one part */
	const uint32_t *set_first; /* [nset + 1] nodes of a set are set_node[set_first[set]] .., ascending */
	const ap_id *set_node;
	const uint32_t *sets_at; /* [nnode] the first set that is recomputed before its backward pass, or
	                            AP_NONE */
	const uint32_t *next_set; /* [nset] the next one there, or AP_NONE */
	const int64_t *fixed; /* [nstage] activations made once a step, and held through it */
};

/* The tensor that a view, or a chain of views, shows. */
ap_id ap_live_root(const struct ap_graph *g, ap_id tensor);

/* The most bytes of recomputed activations held at once, [x->nstage], in scratch. */
const int64_t *ap_live_recomputed(struct ap_ctx *ctx, const struct ap_parts *x,
	const struct ap_live *live);

/* In scratch. O(operands + redistributions). */
void ap_live_make(struct ap_ctx *ctx, const struct ap_parts *x, bool splits, struct ap_live *out);

#endif
