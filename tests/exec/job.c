/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"
#include "rule/attr.h"

const struct ex_value *ex_in(const struct ex_job *j, unsigned slot)
{
	for (int i = 0; i < j->nin; i++)
		if (j->slot[i] == slot)
			return &j->in[i];
	return NULL;
}

bool ex_broadcasts(const struct ex_value *t, const struct ex_box *to)
{
	if (t->box.rank > to->rank)
		return false;
	for (int d = 0; d < t->box.rank; d++)
		if (t->box.size[d] != 1 && t->box.size[d] != to->size[to->rank - t->box.rank + d])
			return false;
	return true;
}

int ex_axis(const struct ex_job *j, const char *name, int64_t otherwise, int rank)
{
	int64_t axis = otherwise;
	const struct ap_attr *a = ap_attr_get(j->attrs, name);

	if (a)
		axis = a->type == AP_ATTR_INTS ? (a->n ? a->list[0] : otherwise) : a->i;
	axis += axis < 0 ? rank : 0;
	return axis < 0 || axis >= rank ? -1 : (int)axis;
}

bool ex_axes(const struct ex_job *j, const char *name, int rank, bool none_is_all, uint32_t *mask)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, name);
	uint32_t n = a ? (a->type == AP_ATTR_INTS ? a->n : 1) : 0;

	*mask = n == 0 && none_is_all ? (UINT32_C(1) << rank) - 1 : 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t axis = a->type == AP_ATTR_INTS ? a->list[i] : a->i;

		axis += axis < 0 ? rank : 0;
		if (axis < 0 || axis >= rank)
			return false;
		*mask |= UINT32_C(1) << axis;
	}
	return true;
}
