/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs in seconds and bytes, as functions of (operator, cut, step, machine, software). Each term of
 * the formulas and its source is explained in man autopar-cost(7).
 *
 * All seconds are per optimizer step: what runs per micro-batch is multiplied by their number.
 */
#ifndef AP_COST_COST_H
#define AP_COST_COST_H

#include "cost/optimizer.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "shard/reshard.h"

/* Prices with; one per thread (it caches the shapes of groups). */
struct ap_pricer;

/* A collective that an operator brings with it. */
enum ap_phase {
	AP_PHASE_FORWARD,
	AP_PHASE_BACKWARD,
	AP_PHASE_GRADIENT,
	AP_PHASE_OPTIMIZER,
	AP_PHASE_RECOMPUTE
};
struct ap_comm {
	enum ap_phase phase; /* RECOMPUTE: in the backward pass, with the operator's second forward run;
	                        GRADIENT: once a step, may overlap the backward pass; OPTIMIZER: weights
	                        gathered after the update */
	enum ap_coll kind;
	struct ap_axes axes;
	int64_t bytes; /* of the buffer, as ap_coll_time_s() takes it */
	bool each; /* GRADIENT: after every micro-batch, not once a step */
	bool part; /* GRADIENT: of the part of the slice that the rank updates, not of all of it */
	int operand; /* index of the operand whose gradient it is; -1: a result's */
	int result; /* index of the result; -1: an operand's */
	enum ap_reduction reduce; /* the rule's in the forward pass; gradients are summed */
	int32_t from_stage, to_stage; /* of AP_COLL_SEND, which has no axes: every rank of one stage sends to
	                                 its counterpart in the other; else 0 */
};

/* Optimizer sharding of an owned parameter under a placement (formats 1.5). shards == 1: not applied. */
struct ap_opt_shard {
	int64_t shards; /* parts that dimension 0 of the slice is dealt to */
	int32_t weight_step, weight_size; /* opt_weight_shard_step and _size of the checkpoint */
	struct ap_axes replicas; /* all ranks with the same slice */
	struct ap_axes group; /* of the shard; equals replicas when shard_size is -1 */
	bool weight, gradient; /* are these dealt, too (with the states)? */
	bool regather; /* the weight is gathered anew for each use, not once a step */
};

struct ap_op_cost {
	double forward_s, backward_s; /* kernels; backward_s has the second forward run of what is
	                                 recomputed */
	double recompute_s; /* that run's part of backward_s */
	double forward_comm_s, backward_comm_s; /* the latter with that run's collectives */
	double gradient_s; /* gradient exchange at the end of the step, before overlap */
	double gradient_each_s; /* gradient exchange after every micro-batch, all of them, likewise */
	double optimizer_s; /* update and weight gathering */
	double input_s; /* graph inputs brought into the layout wanted */
	int64_t weight_bytes, gradient_bytes, optimizer_bytes; /* of owned parameters and constants */
	int64_t gathered_bytes; /* whole copies of dealt weights, where they live through the step */
	int64_t activation_bytes; /* kept, of one micro-batch; of what runs once a step, of the step */
	int64_t lent_bytes; /* the part of it that a search charges to those that read it */
	int64_t read_bytes; /* and its own part of what is lent to it, however that comes: one micro-batch */
	int64_t late_bytes; /* gradients of results of one micro-batch, kept for the pass for weights */
	int64_t recompute_bytes; /* that recomputing brings back for one micro-batch */
	int64_t temporary_bytes; /* working set beyond what is kept */
};

/* What is redistributed along an edge. Equal flows have equal costs. */
struct ap_flow {
	uint8_t rank;
	enum ap_dtype dtype;
	bool grad; /* a gradient comes back */
	bool kept; /* the consumer needs its copy in the backward pass */
	bool again; /* and has it made anew for that, not held */
	bool once; /* once a step, not once a micro-batch */
	bool shown; /* by a view, of what is lent: what is held of it is charged where the view is read */
	uint16_t share; /* of a result that its producer is not charged with: operands that may share it,
	                   each of which is charged a part for itself; 0: the producer is */
	uint32_t sets; /* recomputed one at a time, each charged with a part; where it is made anew */
	int64_t in_flight; /* copies of it that a search charges, where it is kept and not made anew */
	int64_t size[AP_MAX_RANK]; /* extents of one micro-batch */
};
struct ap_move_cost {
	double forward_s, backward_s; /* per step; backward_s with the way there again */
	double again_s; /* that part of backward_s */
	int64_t kept_bytes; /* of the redistributed copy of one micro-batch, 0 when the layouts are equal
	                       or not kept; of one that is made anew the edge's part of what recomputing
	                       brings back */
	int64_t charged_bytes; /* what a search charges, without the part that its consumer is charged with;
	                          never more than a plan with this edge holds for it */
	int64_t bytes; /* sent or received by one rank, forward, one micro-batch */
};

#endif
