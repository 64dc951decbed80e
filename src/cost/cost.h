/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs in seconds and bytes, as functions of (operator, cut, step, machine, software). man
 * autopar-cost(7) explains each term of the formulas, with its source.
 *
 * All seconds are per optimizer step: the time of a micro-batch is multiplied by their number.
 */
#ifndef AP_COST_COST_H
#define AP_COST_COST_H

#include "cost/expert_load.h"
#include "cost/optimizer.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "shard/reshard.h"

/* Computes prices; one per thread (it caches shapes of groups). */
struct ap_pricer;

/* A collective that an operator needs. */
enum ap_phase {
	AP_PHASE_FORWARD,
	AP_PHASE_BACKWARD,
	AP_PHASE_GRADIENT,
	AP_PHASE_OPTIMIZER,
	AP_PHASE_RECOMPUTE
};
struct ap_comm {
	enum ap_phase phase; /* RECOMPUTE: in the backward pass, with the operator's second forward
	                        run; GRADIENT: once a step, may overlap the backward pass;
	                        OPTIMIZER: gathering of weights after the update */
	enum ap_coll kind;
	struct ap_axes axes;
	int64_t bytes; /* size of the buffer, as for ap_coll_time_s() */
	bool each; /* GRADIENT: after every micro-batch, not once a step */
	bool part; /* GRADIENT: of the part of the slice that the rank updates only */
	uint8_t dim; /* RING: the dimension whose parts go round; ALLTOALL: that is parted */
	uint8_t concat; /* ALLTOALL: the dimension whose parts are put together */
	bool uneven; /* of experts with uneven numbers of tokens: bytes are those of the mean rank */
	int operand; /* the operand, or the operand of a gradient; -1: a result's */
	int result; /* the result; -1: an operand's */
	enum ap_reduction reduce; /* as in the rule in the forward pass; gradients are summed */
	int32_t block; /* of its operator, see struct ap_task */
	int32_t from_stage, to_stage; /* of AP_COLL_SEND, which has no axes: each rank of a stage
	                                 sends to its counterpart in the other; else 0 */
};

/* Optimizer sharding of an owned parameter under a placement (formats 1.5). shards == 1: none. */
struct ap_opt_shard {
	int64_t shards; /* number of parts that the slice is dealt in */
	int64_t part; /* elements of one, with what pads it (shard/dealing.h): no rank holds more, and
	                 shards * part are in the buffers of collectives; of one that is whole, the slice's */
	bool by_rows; /* parts are rows of dimension 0, equally many: what a checkpoint can say */
	int32_t weight_step, weight_size; /* opt_weight_shard_step and _size of the group, as checkpoints
	                                     have them */
	struct ap_axes replicas; /* all ranks with the same slice */
	struct ap_axes group; /* ranks of the shard; equals replicas if shard_size is -1 */
	bool weight, gradient; /* dealt too, beside the states? */
	bool regather; /* the weight is gathered for each use, not once a step */
};

struct ap_op_cost {
	double load; /* work of the rank that has most of it / the mean: see cost/expert_load.h */
	double forward_s, backward_s; /* kernels on the device; backward_s includes the second forward run */
	double recompute_s; /* part of backward_s for that run */
	double forward_launch_s, backward_launch_s, recompute_launch_s; /* in which the host starts these,
	                                                                   likewise */
	double forward_comm_s, backward_comm_s; /* the latter includes that run's collectives */
	double covered_s, covered_back_s; /* of a micro-batch: the work behind which operands go round, of
	                                     each operand */
	double gradient_s; /* gradient exchange at the end of the step, before overlap */
	double gradient_each_s; /* all exchanges after micro-batches, before overlap */
	double joined_s, joined_each_s; /* what of these does not run, since gradients are added to another
	                                   use's; searches, which do not know, charge it */
	double bucketed_s, bucketed_each_s; /* what of gradient_s and gradient_each_s buckets save by their
	                                       latencies, as the objective has it */
	double optimizer_s; /* update, and gathering of weights */
	double bucketed_gather_s; /* what of it buckets save likewise */
	double input_s; /* bringing graph inputs into the wanted layout */
	int64_t weight_bytes, gradient_bytes, optimizer_bytes; /* owned parameters and constants */
	int64_t gathered_bytes; /* whole copies of dealt weights, and copies of weights in 8 bits, that live
	                           through the step */
	int64_t activation_bytes; /* kept for one micro-batch, or of a step if run once a step */
	int64_t lent_bytes; /* the part of activation_bytes that a search charges to its readers */
	int64_t read_bytes; /* its share of what is lent to it, in any layout, per micro-batch */
	int64_t late_bytes; /* result gradients of one micro-batch, kept for the pass for weights */
	int64_t recompute_bytes; /* brought back by recomputing, for one micro-batch */
	int64_t temporary_bytes; /* working set beyond what is kept */
};

/* What is redistributed along an edge. Equal flows have equal costs. */
struct ap_flow {
	uint8_t rank;
	enum ap_dtype dtype;
	bool grad; /* a gradient flows back */
	bool kept; /* the consumer needs its copy in the backward pass */
	bool again; /* if kept: the copy is made anew for that, not held */
	bool once; /* once per step instead of per micro-batch */
	bool returns; /* the gradient flows back once per step */
	bool float8; /* products in 8 bits alone read it: it is sent so where it is gathered */
	bool beside; /* its consumer is a product that runs beside what is gathered for it */
	uint8_t uneven; /* mask of dimensions, and */
	double imbalance; /* of their parts, as of tasks */
	uint8_t fused; /* enum ap_fused: what redistributing it makes to be written and read */
	bool shown; /* by a view of a lent result: what is held is charged to the view's readers */
	uint16_t share; /* if the producer is not charged with the result: the number of operands
	                   that may share it, each charged with a part; else 0 */
	uint16_t sharers; /* number of operands that may share the copy and the way back, each charged
	                     with an equal part; 0: only this one has it */
	uint32_t sets; /* if made anew: sets recomputed one at a time, each charged with a part */
	int64_t in_flight; /* copies that a search charges if it is kept and not made anew */
	int32_t block; /* of the consumer, see struct ap_task */
	bool sent; /* from a Send to a Receive in a stage with another number of devices: there are no steps
	              that both could take, but each device there gets its part (shard/pieces.h) */
	int32_t from_stage, to_stage; /* then */
	int64_t size[AP_MAX_RANK]; /* extents for one micro-batch */
	struct ap_expert_choice choice; /* tokens on their way to experts or back, each to a block of ranks
	                                   once; active 0: all else */
};
struct ap_move_cost {
	double forward_s, backward_s; /* per step; backward_s includes making the copy again */
	double again_s; /* part of backward_s for that */
	double objective_s; /* its part in the additive objective, quantised */
	int64_t kept_bytes; /* the redistributed copy of one micro-batch, 0 if layouts are equal or
	                       it is not kept; if it is made anew, the edge's share of what
	                       recomputing brings back */
	int64_t charged_bytes; /* charged by a search, without the consumer's share; never more than
	                          a plan with this edge holds for it */
	int64_t bytes; /* sent or received by one rank, forward, per micro-batch */
	int element_bytes; /* of what is sent forward; 0 without steps */
};

#endif
