/* SPDX-License-Identifier: Apache-2.0 */
/* How groups along axes map to blocks of the machine. */
#include "hw/group.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"

/* Merges axis i with its inner neighbour if they are contiguous. */
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

void ap_axes_without(const struct ap_axes *all, const struct ap_axes *part, struct ap_axes *out)
{
	*out = (struct ap_axes){0};
	for (int i = 0; i < all->n; i++) {
		int32_t lo = all->axis[i].stride, hi = lo * all->axis[i].size;

		for (int j = part->n; j-- > 0;) {
			int32_t plo = part->axis[j].stride, phi = plo * part->axis[j].size;

			plo = plo < lo ? lo : plo;
			phi = phi > hi ? hi : phi;
			if (plo >= phi)
				continue;
			if (plo > lo)
				ap_axes_add(out, (struct ap_axis){lo, plo / lo});
			lo = phi;
		}
		if (hi > lo)
			ap_axes_add(out, (struct ap_axis){lo, hi / lo});
	}
}

bool ap_axes_compatible(const struct ap_axes *a, const struct ap_axes *b)
{
	for (int i = 0; i < a->n; i++)
		for (int j = 0; j < b->n; j++) {
			int32_t x[2] = {a->axis[i].stride, a->axis[i].stride * a->axis[i].size};
			int32_t y[2] = {b->axis[j].stride, b->axis[j].stride * b->axis[j].size};

			for (int k = 0; k < 4; k++)
				if (x[k / 2] % y[k % 2] != 0 && y[k % 2] % x[k / 2] != 0)
					return false;
		}
	return true;
}

void ap_axes_group(const struct ap_axes *set, int64_t rank, int64_t *out)
{
	int64_t n = 1;

	for (int i = 0; i < set->n; i++)
		rank -= rank / set->axis[i].stride % set->axis[i].size * set->axis[i].stride;
	out[0] = rank;
	/* innermost axis first: each repeats the previous ranks, shifted, so they ascend */
	for (int i = set->n - 1; i >= 0; i--) {
		for (int64_t k = n; k < n * set->axis[i].size; k++)
			out[k] = out[k - n] + set->axis[i].stride;
		n *= set->axis[i].size;
	}
}

/* Members of a group in an aligned run of x ranks. */
static uint32_t members_within(const struct ap_axes *axes, int64_t x)
{
	int64_t n = 1;

	for (int i = 0; i < axes->n; i++) {
		int64_t inner = axes->axis[i].stride, outer = inner * axes->axis[i].size;

		if (x >= outer)
			n *= axes->axis[i].size;
		else if (x > inner)
			n *= x / inner;
	}
	return (uint32_t)n;
}

/* The common shape of all groups if blocks and axes nest; else false. */
static bool nested_shape(
	const struct ap_machine *m, const struct ap_axes *axes, struct ap_group_shape *s)
{
	uint32_t inside = 1;

	if (!m->regular)
		return false;
	for (int l = 0; l < m->nlevel; l++) {
		int64_t x = m->ranks[l];

		/* x must be a multiple or divisor of the bounds of every axis */
		for (int i = 0; i < axes->n; i++) {
			int64_t inner = axes->axis[i].stride, outer = inner * axes->axis[i].size;

			if (inner % x != 0 && (x % inner != 0 || (outer % x != 0 && x % outer != 0)))
				return false;
		}
	}
	for (int l = 0; l < m->nlevel; l++) {
		uint32_t n = members_within(axes, m->ranks[l]);

		s->fan[l] = s->few[l] = n / inside;
		s->members[l] = inside;
		inside = n;
	}
	return true;
}

/* Counts of one group: members and sub-blocks met per level and block; valid if stamp is the
 * group's. */
struct census {
	uint32_t *stamp, *members, *subs; /* [nblock] */
	uint32_t *touched;                /* blocks met, in order */
	uint32_t ntouched;
};

static void census_level(const struct census *c, const struct census *inner, uint32_t *fan,
	uint32_t *few, uint32_t *members)
{
	*fan = *few = *members = 1;
	for (uint32_t i = 0; i < c->ntouched; i++) {
		uint32_t n = c->subs[c->touched[i]];

		if (n > *fan)
			*fan = n;
		if (n > 1 && (*few == 1 || n < *few))
			*few = n;
	}
	for (uint32_t i = 0; inner && i < inner->ntouched; i++) {
		uint32_t n = inner->members[inner->touched[i]];

		if (i == 0 || n < *members)
			*members = n;
	}
}

static bool leads_group(const struct ap_axes *axes, int64_t rank)
{
	for (int i = 0; i < axes->n; i++)
		if (rank / axes->axis[i].stride % axes->axis[i].size)
			return false;
	return true;
}

/* Finds distinct shapes of all groups of all stages; the first `cap` go to out. Returns their
 * number. */
static size_t count_shapes(struct ap_arena *arena, const struct ap_machine *m,
	const struct ap_axes *axes, struct ap_group_shape *out, size_t cap)
{
	struct census census[AP_MAX_LEVELS] = {0};
	struct ap_map *shapes = ap_map_create(arena);
	int64_t size = ap_axes_size(axes), *ranks = AP_NEW_N(arena, int64_t, size);
	struct ap_group_shape s;
	uint32_t group = 0;

	for (int l = 0; l < m->nlevel; l++) {
		struct census *c = &census[l];

		c->stamp = AP_NEW_N(arena, uint32_t, m->nblock[l]);
		c->members = AP_NEW_N(arena, uint32_t, m->nblock[l]);
		c->subs = AP_NEW_N(arena, uint32_t, m->nblock[l]);
		c->touched = AP_NEW_N(arena, uint32_t, m->nblock[l]);
	}
	for (int64_t r = 0; r < m->total; r++) {
		if (!leads_group(axes, r))
			continue;
		ap_axes_group(axes, r, ranks);
		group++;
		for (int64_t k = 0; k < size; k++) {
			int64_t rank = ranks[k];
			bool fresh = true; /* first member in its sub-block */

			for (int l = 0; l < m->nlevel; l++) {
				uint32_t b = m->block[l][rank];
				bool first = census[l].stamp[b] != group;

				if (first) {
					census[l].stamp[b] = group;
					census[l].members[b] = census[l].subs[b] = 0;
					census[l].touched[census[l].ntouched++] = b;
				}
				census[l].members[b]++;
				census[l].subs[b] += fresh;
				fresh = first;
			}
		}
		memset(&s, 0, sizeof s); /* shapes are compared as bytes */
		for (int l = 0; l < m->nlevel; l++)
			census_level(&census[l], l ? &census[l - 1] : NULL, &s.fan[l], &s.few[l],
				&s.members[l]);
		for (int l = 0; l < m->nlevel; l++)
			census[l].ntouched = 0;
		ap_map_put(shapes, &s, sizeof s, NULL);
	}
	for (size_t i = 0; i < cap && i < ap_map_size(shapes); i++)
		memcpy(&out[i], ap_map_key(shapes, (ap_id)i, NULL), sizeof *out);
	return ap_map_size(shapes);
}

void ap_group_make(struct ap_arena *arena, const struct ap_machine *m, const struct ap_axes *axes,
	struct ap_group *out)
{
	struct ap_group_shape *shape = AP_NEW(arena, struct ap_group_shape);
	size_t n = 1;

	assert(!m->part); /* ranks of one of its stages are meant */
	assert(!axes->n || m->ndev % (axes->axis[0].stride * axes->axis[0].size) == 0);
	*out = (struct ap_group){.axes = *axes, .size = ap_axes_size(axes)};
	if (!nested_shape(m, axes, shape))
		/* counting needs temporary memory: count, and repeat with more room if needed */
		for (size_t room = 0; room < n;) {
			struct ap_mark mark;

			room = n;
			shape = AP_NEW_N(arena, struct ap_group_shape, room);
			mark = ap_arena_mark(arena);
			n = count_shapes(arena, m, axes, shape, room);
			ap_arena_release(arena, mark);
		}
	out->shape = shape;
	out->nshape = (int)n;
}
