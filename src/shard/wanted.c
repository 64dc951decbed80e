/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/space.h"

/* The length of dimension d of an operand on one device, of a micro-batch. */
static int64_t slice_length(const struct ap_bound *b, const struct ap_operand *o, int d,
	const int32_t *count, const struct ap_step *step)
{
	int64_t length = o->size[d];

	for (int i = 0; i < o->dim[d].n; i++) {
		uint8_t f = o->dim[d].factor[i];

		length = length / b->factor[f].size * (ap_factor_extent(b, f, step) / count[f]);
	}
	return length;
}

/* A product of two operands, without a window: what MindSpore aligns the slices of. */
static bool is_product(const struct ap_bound *b)
{
	return b->row->unit == AP_OP_CUBE && b->nwindow == 0 && b->nin == 2 && b->in[0].rank >= 2 &&
		b->in[1].rank >= 2;
}

static bool is_aligned(const struct ap_bound *b, const int32_t *count, const struct ap_step *step)
{
	for (uint16_t i = 0; i < b->nin; i++)
		for (int d = b->in[i].rank - 2; d < b->in[i].rank; d++)
			if (slice_length(b, &b->in[i], d, count, step) % step->slice_align)
				return false;
	return true;
}

bool ap_space_wanted(const struct ap_bound *b, const int32_t *count, int64_t ndev,
	const struct ap_step *step)
{
	int64_t parts = 1;

	if ((!step->fully_use && !step->slice_align) || b->row->unit == AP_OP_LINK ||
		!ap_op_has_strategy(b->row))
		return true; /* there is no strategy of its own to search */
	for (int f = 0; f < b->nfactor; f++)
		parts *= count[f];
	if (parts == 1)
		return true;
	if (step->fully_use && parts != ndev)
		return false;
	return !step->slice_align || !is_product(b) || is_aligned(b, count, step);
}
