/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of what one rank holds in one micro-batch. Shared by the files of this layer. */
#ifndef AP_COST_LOCAL_H
#define AP_COST_LOCAL_H

#include "shard/layout.h"
#include "shard/step.h"

/* Factors cut in more than one part. */
uint32_t ap_cut_mask(const struct ap_placement *p);

/* Elements and bytes of a tensor's slice; dimensions in the batch mask count for one micro-batch. */
int64_t ap_local_elements(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step);
int64_t ap_local_bytes(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step);

/* Extent of factor f on one rank in one micro-batch. */
double ap_local_extent(const struct ap_bound *b, int f, const struct ap_placement *p,
	const struct ap_step *step);

/* Bytes per element of a parameter's gradient on the wire, and in memory. */
int ap_gradient_wire_bytes(enum ap_dtype t, const struct ap_step *step);
int ap_gradient_held_bytes(enum ap_dtype t, const struct ap_step *step);

#endif
