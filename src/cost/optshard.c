/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"
#include "cost/cost.h"
#include "cost/local.h"
#include "hw/group.h"

/* First and last rank of the group of rank 0. */
static int64_t span_of(const struct ap_axes *axes)
{
	int64_t last = 0;

	for (int i = 0; i < axes->n; i++)
		last += (int64_t)(axes->axis[i].size - 1) * axes->axis[i].stride;
	return last;
}

/* The `size` first ranks of a group, innermost axes first: consecutive chunks of it. False when
 * size does not follow the axes' extents. */
static bool chunk_of(const struct ap_axes *axes, int64_t size, struct ap_axes *out)
{
	*out = (struct ap_axes){0};
	for (int i = axes->n; i-- > 0 && size > 1;) {
		int64_t take = ap_gcd(size, axes->axis[i].size);

		if (take != size && take != axes->axis[i].size)
			return false;
		if (take > 1)
			ap_axes_add(out, (struct ap_axis){axes->axis[i].stride, (int32_t)take});
		size /= take;
	}
	return size == 1;
}

static int64_t first_extent(const struct ap_operand *o, const struct ap_placement *p)
{
	int64_t extent = o->size[0];

	for (int i = 0; i < o->dim[0].n; i++)
		extent /= p->count[o->dim[0].factor[i]];
	return extent;
}

void ap_opt_shard_make(const struct ap_task *t, int operand, const struct ap_placement *p,
	const struct ap_step *step, struct ap_opt_shard *out)
{
	const struct ap_operand *o = &t->bound->in[operand];
	int64_t n;

	*out = (struct ap_opt_shard){.shards = 1};
	ap_placement_replicas(p, o, &out->replicas);
	n = ap_axes_size(&out->replicas);
	if (!step->training || !step->optimizer_sharding || !t->in[operand].shardable || n == 1 ||
		o->rank == 0)
		return;
	if (step->shard_size > 0 && step->shard_size < n) {
		if (n % step->shard_size != 0 ||
			!chunk_of(&out->replicas, step->shard_size, &out->group))
			return;
		out->weight_size = (int32_t)step->shard_size;
	} else {
		out->group = out->replicas;
		out->weight_size = step->shard_size > 0 ? (int32_t)n : -1;
	}
	if (first_extent(o, p) % ap_axes_size(&out->group) != 0) {
		out->weight_size = 0;
		return;
	}
	out->shards = ap_axes_size(&out->group);
	out->weight_step = (int32_t)(span_of(&out->replicas) / (n - 1));
	out->gradient = step->optimizer_level >= 2;
	out->regather = t->in[operand].regather;
	out->weight = out->regather || step->executor == AP_EXECUTOR_MINDSPORE;
}
