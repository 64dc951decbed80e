/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/cost.h"

#define DIRECT_SLOTS 1024 /* power of two; a machine has at most a few hundred single axes */
#define TIME_SLOTS 4096 /* power of two; axes times sizes of the slices of a tensor */

/* The last time asked for of this collective, axis and size. */
struct remembered {
	struct ap_axis axis;
	enum ap_coll coll;
	double bytes, time_s;
};

struct ap_pricer {
	struct ap_arena *arena;
	const struct ap_machine *machine;
	const struct ap_step *step;
	struct ap_map *ids;
	struct {
		struct ap_group **v;
		size_t n, cap;
	} groups;
	const struct ap_group *direct[DIRECT_SLOTS]; /* single axes, by stride and size */
	struct remembered time[TIME_SLOTS];
};

struct ap_pricer *ap_pricer_create(struct ap_arena *arena, const struct ap_machine *m,
	const struct ap_step *step)
{
	struct ap_pricer *p = AP_NEW(arena, struct ap_pricer);

	p->arena = arena;
	p->machine = m;
	p->step = step;
	p->ids = ap_map_create(arena);
	return p;
}

const struct ap_machine *ap_pricer_machine(const struct ap_pricer *p)
{
	return p->machine;
}

const struct ap_step *ap_pricer_step(const struct ap_pricer *p)
{
	return p->step;
}

static const struct ap_group *interned(struct ap_pricer *p, const struct ap_axes *axes)
{
	bool fresh;
	ap_id id = ap_map_put(p->ids, axes->axis, (size_t)axes->n * sizeof *axes->axis, &fresh);

	if (fresh) {
		struct ap_group *g = AP_NEW(p->arena, struct ap_group);

		ap_group_make(p->arena, p->machine, axes, g);
		AP_PUSH(p->arena, p->groups, g);
	}
	return p->groups.v[id];
}

const struct ap_group *ap_pricer_group(struct ap_pricer *p, const struct ap_axes *axes)
{
	const struct ap_group **slot;

	if (axes->n != 1)
		return interned(p, axes);
	slot = &p->direct[((uint32_t)axes->axis[0].stride * 37u + (uint32_t)axes->axis[0].size) &
		(DIRECT_SLOTS - 1)];
	if (!*slot || !ap_axes_equal(&(*slot)->axes, axes))
		*slot = interned(p, axes);
	return *slot;
}

double ap_comm_time_s(struct ap_pricer *pr, const struct ap_comm *c, const char **algorithm)
{
	return ap_coll_time_s(pr->machine, c->kind, ap_pricer_group(pr, &c->axes),
		(double)c->bytes, algorithm);
}

static uint32_t time_slot(enum ap_coll c, const struct ap_axis *axis, double bytes)
{
	uint64_t h = (uint64_t)bytes * UINT64_C(0x9e3779b97f4a7c15);

	h ^= ((uint64_t)axis->stride << 26 ^ (uint64_t)axis->size << 3 ^ (uint64_t)c) *
		UINT64_C(0xff51afd7ed558ccd);
	return (uint32_t)(h >> 40) & (TIME_SLOTS - 1);
}

double ap_axis_time_s(struct ap_pricer *pr, enum ap_coll c, const struct ap_axis *axis, double bytes)
{
	struct remembered *r = &pr->time[time_slot(c, axis, bytes)];
	struct ap_axes axes = {.n = 1};

	if (r->axis.stride == axis->stride && r->axis.size == axis->size && r->coll == c &&
		r->bytes == bytes)
		return r->time_s;
	axes.axis[0] = *axis;
	*r = (struct remembered){*axis, c, bytes,
		ap_coll_time_s(pr->machine, c, ap_pricer_group(pr, &axes), bytes, NULL)};
	return r->time_s;
}
