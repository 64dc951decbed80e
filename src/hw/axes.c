/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "hw/machine.h"

/* Joins axis i with its inner neighbour where the two are one run of ranks. */
static bool merge(struct ap_axes *set, int i)
{
	struct ap_axis *outer, *inner;

	if (i < 0 || i + 1 >= set->n)
		return false;
	outer = &set->axis[i];
	inner = &set->axis[i + 1];
	assert(outer->stride % (inner->stride * inner->size) == 0);
	if (outer->stride != inner->stride * inner->size)
		return false;
	outer->stride = inner->stride;
	outer->size *= inner->size;
	set->n--;
	memmove(inner, inner + 1, (size_t)(set->n - i - 1) * sizeof *inner);
	return true;
}

void ap_axes_add(struct ap_axes *set, struct ap_axis axis)
{
	int i = 0;

	assert(axis.stride >= 1 && axis.size >= 1);
	if (axis.size == 1)
		return;
	assert(set->n < AP_MAX_AXES);
	while (i < set->n && set->axis[i].stride > axis.stride)
		i++;
	memmove(&set->axis[i + 1], &set->axis[i], (size_t)(set->n - i) * sizeof axis);
	set->axis[i] = axis;
	set->n++;
	merge(set, i);
	merge(set, i - 1);
}

int64_t ap_axes_size(const struct ap_axes *set)
{
	int64_t size = 1;

	for (int i = 0; i < set->n; i++)
		size *= set->axis[i].size;
	return size;
}

bool ap_axes_equal(const struct ap_axes *a, const struct ap_axes *b)
{
	if (a->n != b->n)
		return false;
	for (int i = 0; i < a->n; i++)
		if (a->axis[i].stride != b->axis[i].stride || a->axis[i].size != b->axis[i].size)
			return false;
	return true;
}

void ap_axes_group(const struct ap_axes *set, int64_t rank, int64_t *out)
{
	int64_t n = 1;

	for (int i = 0; i < set->n; i++)
		rank -= rank / set->axis[i].stride % set->axis[i].size * set->axis[i].stride;
	out[0] = rank;
	/* Innermost axis first: each axis repeats what is there, shifted, so the order ascends. */
	for (int i = set->n - 1; i >= 0; i--) {
		for (int64_t k = n; k < n * set->axis[i].size; k++)
			out[k] = out[k - n] + set->axis[i].stride;
		n *= set->axis[i].size;
	}
}
