/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of what one rank holds in one micro-batch. Shared by the files of this layer. */
#ifndef AP_COST_LOCAL_H
#define AP_COST_LOCAL_H

#include "cost/task.h"
#include "shard/layout.h"

/* Factors cut in more than one part. */
uint32_t ap_cut_mask(const struct ap_placement *p);

/* Elements and bytes of a tensor's slice; dimensions in the batch mask count for one micro-batch. */
int64_t ap_local_elements(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step);
int64_t ap_local_bytes(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step);

/* Bytes of an operand's slice as it is stored. */
int64_t ap_stored_bytes(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step);

/* Bytes of a result as they are computed: before its partial sums are dealt, where they are. */
int64_t ap_computed_bytes(const struct ap_bound *b, int result, uint8_t batch,
	const struct ap_placement *p, const struct ap_step *step);

/* Parts that the devices with the same slice can hold it in, along its first dimension; 1: they cannot.
 * *replicas: those devices. */
int64_t ap_slice_parts(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step, struct ap_axes *replicas);

/* Extent of factor f on one rank in one micro-batch. */
double ap_local_extent(const struct ap_bound *b, int f, const struct ap_placement *p,
	const struct ap_step *step);

/* An exchange of halos along one dimension, between each rank and those with the parts beside it. */
struct ap_exchange {
	int operand, factor;
	int64_t bytes; /* the most that one rank sends or receives, both sides together */
};

/*
 * Exchanges of an operator whose windows slide over a cut dimension, one dimension after the other:
 * a later one passes on what an earlier one brought, and so the corners. *copy_bytes: the operand's
 * slice with its halo, 0 without one. Returns their number.
 */
int ap_halo_exchanges(const struct ap_task *t, const struct ap_placement *p,
	const struct ap_step *step, struct ap_exchange out[AP_MAX_WINDOW], int64_t *copy_bytes);

/* Bytes per element of a parameter's gradient on the wire, and in memory. */
int ap_gradient_wire_bytes(enum ap_dtype t, const struct ap_step *step);
int ap_gradient_held_bytes(enum ap_dtype t, const struct ap_step *step);

/* Bytes that travel where `bytes` of a type go through a collective, which may reduce them. */
int64_t ap_reduced_bytes(enum ap_coll kind, enum ap_dtype t, int64_t bytes, const struct ap_step *step);

#endif
