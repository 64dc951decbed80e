/* SPDX-License-Identifier: Apache-2.0 */
/* What faults do to collectives. */
#include <string.h>

#include "faults.h"
#include "hw/group.h"

struct ap_comm *ex_nth_comm(struct ex_comms *c, enum ap_phase phase, enum ap_coll kind,
	enum ex_of of, int n)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->v[i].phase == phase && c->v[i].kind == kind &&
			(c->v[i].operand < 0) == (of == EX_OF_RESULT) && n-- == 0)
			return &c->v[i];
	return NULL;
}

bool ex_drop_comm(struct ex_comms *c, const struct ap_comm *which)
{
	size_t i;

	if (!which)
		return false;
	i = (size_t)(which - c->v);
	c->n--;
	memmove(&c->v[i], &c->v[i + 1], (c->n - i) * sizeof *c->v);
	return true;
}

struct ap_comm *ex_first_comm(struct ex_comms *c, enum ap_phase phase)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->v[i].phase == phase)
			return &c->v[i];
	return NULL;
}

bool ex_regroup_comm(struct ap_comm *c, const struct ap_axes *axes)
{
	if (!c || ap_axes_equal(&c->axes, axes))
		return false;
	c->axes = *axes;
	return true;
}

bool ex_move_comm(struct ex_world *w, struct ap_comm *c)
{
	struct ap_axis *a = c && c->axes.n == 1 ? &c->axes.axis[0] : NULL;

	if (!a)
		return false;
	if ((int64_t)a->stride * a->size * a->size <= w->ndev)
		a->stride *= a->size;
	else if (a->stride % a->size == 0)
		a->stride /= a->size;
	else
		return false;
	return true;
}

bool ex_double_comm(struct ex_comms *c, const struct ap_comm *which)
{
	if (!which || c->n == EX_MAX_COMM)
		return false;
	c->v[c->n++] = *which;
	return true;
}

bool ex_change_comm(struct ap_comm *c, enum ap_coll kind)
{
	if (c)
		c->kind = kind;
	return c;
}

bool ex_misname_comm(const struct ex_oper *o, struct ap_comm *c)
{
	if (!c || o->nin < 2)
		return false;
	c->operand = (c->operand + 1) % o->nin;
	return true;
}
