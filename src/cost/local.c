/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/local.h"

#include "hw/chip.h"
#include "hw/group.h"

uint32_t ap_cut_mask(const struct ap_placement *p)
{
	uint32_t mask = 0;

	for (int f = 0; f < p->bound->nfactor; f++)
		if (p->count[f] > 1)
			mask |= 1u << f;
	return mask;
}

int64_t ap_local_elements(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step)
{
	int64_t n = 1;

	for (int d = 0; d < o->rank; d++) {
		int64_t extent = o->size[d];

		if (batch >> d & 1)
			extent /= step->micro_batches;
		for (int i = 0; i < o->dim[d].n; i++)
			extent /= ap_placement_parts(p, o, o->dim[d].factor[i]);
		n *= extent;
	}
	return n;
}

int64_t ap_slice_parts(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step, struct ap_axes *replicas)
{
	int64_t parts, extent;

	ap_placement_replicas(p, o, replicas);
	parts = ap_axes_size(replicas);
	if (o->rank == 0)
		return 1;
	extent = o->size[0] / (batch & 1 ? step->micro_batches : 1);
	for (int i = 0; i < o->dim[0].n; i++)
		extent /= ap_placement_parts(p, o, o->dim[0].factor[i]);
	return extent % parts == 0 ? parts : 1;
}

int64_t ap_local_bytes(const struct ap_operand *o, uint8_t batch, const struct ap_placement *p,
	const struct ap_step *step)
{
	return ap_local_elements(o, batch, p, step) * ap_dtype_bytes(o->dtype);
}

int64_t ap_stored_bytes(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step)
{
	return ap_local_elements(&t->bound->in[operand], t->in[operand].batch, p, step) *
		ap_dtype_bytes(ap_task_stored(t, operand));
}

int64_t ap_computed_bytes(const struct ap_bound *b, int result, uint8_t batch,
	const struct ap_placement *p, const struct ap_step *step)
{
	int64_t bytes = ap_local_bytes(&b->out[result], batch, p, step);

	for (int f = 0; result == 0 && f < b->nfactor; f++)
		if (p->dealt >> f & 1)
			bytes *= p->count[f];
	return bytes;
}

double ap_local_extent(const struct ap_bound *b, int f, const struct ap_placement *p,
	const struct ap_step *step)
{
	int64_t extent = b->factor[f].size;

	if (b->factor[f].flags & AP_FACTOR_BATCH)
		extent /= step->micro_batches;
	return (double)(extent / p->count[f]);
}

static bool is_half(enum ap_dtype t)
{
	return ap_dtype_is_float(t) && ap_dtype_bytes(t) == 2;
}

int ap_gradient_wire_bytes(enum ap_dtype t, const struct ap_step *step)
{
	return is_half(t) && (step->gradient_fp32_sync || step->force_fp32) ? 4 : ap_dtype_bytes(t);
}

int64_t ap_reduced_bytes(enum ap_coll kind, enum ap_dtype t, int64_t bytes, const struct ap_step *step)
{
	bool reduces = kind == AP_COLL_ALLREDUCE || kind == AP_COLL_REDUCESCATTER;

	return reduces && step->force_fp32 && is_half(t) ? 2 * bytes : bytes;
}

int ap_gradient_held_bytes(enum ap_dtype t, const struct ap_step *step)
{
	return is_half(t) && step->software ? step->software->gradient_bytes : ap_dtype_bytes(t);
}
