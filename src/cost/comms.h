/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of an operator, and the slices of tensors that they carry. */
#ifndef AP_COST_COMMS_H
#define AP_COST_COMMS_H

#include "cost/cost.h"
#include "cost/task.h"
#include "shard/layout.h"

/* An exchange of halos along a dimension, between each rank and those with adjacent parts. */
struct ap_exchange {
	int operand, factor;
	int64_t bytes; /* the most that a rank sends or receives, both sides together */
};

/* Halo exchanges of an operator whose windows slide over a cut dimension, one dimension after
 * another: a later one also passes on what earlier ones brought, which covers corners. *copy_bytes:
 * the operand's slice with its halo; 0 if there is none. Returns their number. */
int ap_halo_exchanges(const struct ap_task *t, const struct ap_placement *p,
	const struct ap_step *step, struct ap_exchange out[AP_MAX_WINDOW], int64_t *copy_bytes);

/* Elements and bytes of a tensor's slice, for one micro-batch of the dimensions in mask batch. */
int64_t ap_local_elements(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step);

/* Number of parts, along the first dimension, in which the devices with the same slice can hold it;
 * 1 if they cannot. *replicas: those devices. */
int64_t ap_slice_parts(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step, struct ap_axes *replicas);
int64_t ap_local_bytes(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step);

/* Bytes of an operand's slice as it is stored. */
int64_t ap_stored_bytes(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step);

/* Bytes of a result as computed, before partial sums are dealt. */
int64_t ap_computed_bytes(const struct ap_bound *b, int result, uint8_t batch,
	const struct ap_placement *p, const struct ap_step *step);

/* Extent of factor f on one rank in one micro-batch. */
double ap_local_extent(const struct ap_bound *b, int f, const struct ap_placement *p,
	const struct ap_step *step);

/* The type in which a parameter's gradient is on the wire; bytes per element in memory. */
enum ap_dtype ap_gradient_wire(enum ap_dtype t, const struct ap_step *step);
int ap_gradient_held_bytes(enum ap_dtype t, const struct ap_step *step);

/* Bytes of an element of a weight as it is stored and gathered. */
int ap_weight_bytes(const struct ap_task *t, int operand, const struct ap_step *step);

/* Is it sent in 8 bits, as a weight that is stored so, or the gradient of a dealt result? */
bool ap_comm_in_8_bits(const struct ap_task *t, const struct ap_comm *c, const struct ap_step *step);
/* How collectives of this kind go in buckets; mode AP_FUSION_OFF where they do not. */
const struct ap_fusion *ap_comm_fusion(const struct ap_step *step, enum ap_coll kind);

/*
 * All collectives of an operator under a placement, derived from its rule:
 *   forward   AllReduce of a result over the split factors that it lacks, ReduceScatter if its
 *             partial sums are dealt (with an AllGather of its gradient);
 *             mindspore: over repeats, too, for statistics that another result is made from;
 *             nothing if cross_batch leaves each device the reduction of its own part;
 *             Send of a result that another stage waits for, and backward of its gradient;
 *             Ring of operands that go round while the operator works (backward with their gradients);
 *             AlltoAll of operands whose sequence changes place with heads, and back of results;
 *   recompute those of the forward pass again, if the operator is recomputed;
 *   backward  mindspore: the adjoint of each forward collective; generic: none of an operand, whose
 *             gradient is summed on its way back, ap_gradient_partial();
 *   gradient  generic: of a weight that another stage sent, AllReduce over the split factors that
 *             the operand lacks, once for all micro-batches;
 *             of an owned trainable parameter: mindspore over all ranks that hold the same slice,
 *             generic over the split factors it lacks; with optimizer sharding a ReduceScatter (for
 *             each micro-batch if gradients are kept dealt), and an AllGather of the weight (phase
 *             OPTIMIZER; FORWARD and RECOMPUTE if it is gathered for each use); a Broadcast of the
 *             weight if whole parameters are dealt (OPTIMIZER).
 * Calls take() for each in this order; its argument is valid during the call. Pure.
 */
void ap_comms_derive(const struct ap_task *t, const struct ap_placement *p,
	const struct ap_step *step, void (*take)(void *user, const struct ap_comm *c), void *user);

/* The axes over which the gradient of an operand is partial when it leaves the operator: generic, of an
 * activation, the split factors that the operand lacks, which cut the work but not what it is done with.
 * Unused entries are 0. */
void ap_gradient_partial(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step, struct ap_axes *out);

/* How a parameter is dealt by the parallel optimizer, by the step's rule; O(rank). */
void ap_opt_shard_make(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step, struct ap_opt_shard *out);

#endif
