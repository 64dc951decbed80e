/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the blocks of a plan (plan/blocks.h) take, one by one: times of a micro-batch's passes, and bytes. A
 * pass of a part takes the sum of its blocks' times, and a stage holds the sum of their bytes (of temporary,
 * recomputed and shared ones the largest). So the figures of one plan are those of any other whose layers
 * are in other stages, as long as they are cut alike. What differs at a border:
 *
 *   the last layer of a part does not hold its result, which is held where it is received, in a block in
 *   front of the first layer (nor does the network's last layer, if what the head reads is a copy of its
 *   own); sends are behind the last layer, and take no time of a pass;
 *   a layer that wants its operand in another layout than it has brings a received one there itself;
 *   who uses a parameter of another part receives it, and holds it through the step (once_bytes, and its
 *   gradient in static_bytes).
 */
#ifndef AP_PLAN_BLOCK_COSTS_H
#define AP_PLAN_BLOCK_COSTS_H

#include "plan/plan.h"

struct ap_block_cost {
	int32_t part;
	int32_t layer; /* the first one in it, by its number in the chain (graph/family.h); -1: none */
	uint32_t nlayer; /* several where they are recomputed together */
	uint32_t noperator;
	uint32_t class; /* equal blocks have one number; the order is that of their first ones */
	double forward_s, backward_s, weight_s; /* of a micro-batch, beside no exchange of gradients */
	double left_s; /* of a micro-batch's reductions of dealt gradients: runs beside the next block, and
	                  adds to the backward (weight) pass of a part whose pass ends with this block */
	double least_left_s; /* the same at least, beside which block ever, where reductions that run on from
	                        other blocks make none wait; else 0 */
	double collectives_s; /* of a micro-batch's backward (weight) pass, these reductions included: one
	                         after the other, so a part's pass takes no less than its blocks' */
	int64_t kept_bytes; /* held by a micro-batch from its forward pass on */
	int64_t late_bytes; /* and beside them from its backward pass to its pass for weights */
	int64_t once_bytes; /* activations made once a step */
	int64_t again_bytes; /* most recomputed ones held at once */
	int64_t temporary_bytes; /* largest of an operator */
	int64_t static_bytes; /* weights, gathered copies, gradients, states of the optimizer, constants */
	int64_t shared_bytes; /* but for constants that other blocks read, too: a stage has them once */
	double update_s; /* of its parameters, in a step */
	double exchange_s, gather_s; /* its share of the buckets of gradients, and of dealt weights. Not
	                                part of what makes blocks equal: buckets are of several blocks */
	double least_exchange_s, least_gather_s; /* the same in buckets that are as large as can be */
	double last_s; /* of the last backward pass of its part (and pass for weights), at least: beside it,
	                  instead of reductions of dealt gradients, its own are exchanged, as little as there
	                  is in any plan (struct ap_bucket_ways), and none that were left by other blocks */
};

/* The figures of a priced plan, [p->blocks->n], in the run arena. Simulates the plan once more. O(operators +
 * collectives + redistributions + slots). */
const struct ap_block_cost *ap_block_costs_make(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
