/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of redistributions. */
#include <string.h>

#include "faults.h"

#define STEPS(name) static bool name(struct ex_world *w, int *n, struct ap_reshard_step *s)

static struct ap_reshard_step *first_of(struct ap_reshard_step *s, int n, enum ap_move move)
{
	for (int i = 0; i < n; i++)
		if (s[i].move == move)
			return &s[i];
	return NULL;
}

STEPS(no_first_step)
{
	(void)w;
	memmove(s, s + 1, (size_t)--*n * sizeof *s);
	return true;
}

STEPS(no_last_step)
{
	(void)w, (void)s;
	--*n;
	return true;
}

STEPS(gathered_along_another)
{
	struct ap_reshard_step *g = first_of(s, *n, AP_MOVE_GATHER);

	(void)w;
	if (g)
		g->dim = g->dim ? 0 : 1;
	return g;
}

STEPS(cut_along_another)
{
	struct ap_reshard_step *c = first_of(s, *n, AP_MOVE_SLICE);

	(void)w;
	if (c)
		c->dim = c->dim ? 0 : 1;
	return c;
}

STEPS(outer_forgotten)
{
	bool any = false;

	(void)w;
	for (int i = 0; i < *n; i++) {
		any |= s[i].outer > 1;
		s[i].outer = 1;
	}
	return any;
}

STEPS(split_and_concat_swapped)
{
	struct ap_reshard_step *a = first_of(s, *n, AP_MOVE_ALLTOALL);
	uint8_t split;

	(void)w;
	if (!a || a->dim == a->concat)
		return false;
	split = a->dim;
	a->dim = a->concat;
	a->concat = split;
	return true;
}

STEPS(gathered_instead)
{
	struct ap_reshard_step *a = first_of(s, *n, AP_MOVE_ALLTOALL);

	(void)w;
	if (!a)
		return false;
	a->move = AP_MOVE_GATHER;
	a->dim = a->concat;
	a->outer = a->concat_outer;
	return true;
}

STEPS(first_two_swapped)
{
	struct ap_reshard_step first = s[0];

	(void)w;
	if (*n < 2 || (s[0].dim == s[1].dim && s[0].axis.stride == s[1].axis.stride))
		return false;
	s[0] = s[1];
	s[1] = first;
	return true;
}

/* What was to be added up is not. */
STEPS(part_of_no_sum)
{
	struct ap_reshard_step *r = first_of(s, *n, AP_MOVE_REDUCESCATTER);

	(void)w;
	if (r)
		r->move = AP_MOVE_SLICE;
	return r;
}

STEPS(sum_forgotten)
{
	struct ap_reshard_step *r = first_of(s, *n, AP_MOVE_ALLREDUCE);

	(void)w;
	if (r)
		memmove(r, r + 1, (size_t)(s + --*n - r) * sizeof *s);
	return r;
}

/* An axis of as many ranks beside it. */
STEPS(over_another_axis)
{
	struct ap_axis *a = &s[0].axis;

	(void)n;
	if ((int64_t)a->stride * a->size * a->size <= w->ndev)
		a->stride *= a->size;
	else if (a->stride % a->size == 0)
		a->stride /= a->size;
	else
		return false;
	return true;
}

static bool swapped(struct ex_world *w, int64_t rank, int64_t n, int64_t *ranks)
{
	int64_t first = ranks[0];

	(void)w, (void)rank;
	if (n < 2)
		return false;
	ranks[0] = ranks[1];
	ranks[1] = first;
	return true;
}

static bool of_rank_0(struct ex_world *w, int64_t rank, int64_t n, int64_t *ranks)
{
	int64_t first = ranks[0];

	(void)w, (void)rank;
	for (int64_t k = 0; k < n; k++)
		ranks[k] -= first;
	return first > 0;
}

const struct ex_fault ex_faults_move[] = {
	{"move-no-first-step", "the first step is missing", "redistribution", .steps = no_first_step},
	{"move-no-last-step", "the last step is missing", "redistribution", .steps = no_last_step},
	{"move-gathered-along-another", "slices are put together along another dimension",
		"redistribution", .steps = gathered_along_another},
	{"move-cut-along-another", "another dimension is cut", "redistribution",
		.steps = cut_along_another},
	{"move-outer-forgotten", "parts are put together as if nothing were outside",
		"redistribution", .steps = outer_forgotten},
	{"move-split-and-concat", "an AlltoAll splits what it should put together", "redistribution",
		.steps = split_and_concat_swapped},
	{"move-gathered-instead", "an AllGather where an AlltoAll is due", "redistribution",
		.steps = gathered_instead},
	{"move-order", "two steps in the other order", "redistribution", .steps = first_two_swapped},
	{"move-part-of-no-sum", "a ReduceScatter keeps a part of what was not added up", "redistribution",
		.steps = part_of_no_sum},
	{"move-sum-forgotten", "an AllReduce of a gradient is missing", "redistribution",
		.steps = sum_forgotten},
	{"move-over-another-axis", "a step over other ranks, as many", "redistribution",
		.steps = over_another_axis},
	{"move-group-order", "two ranks of a group stand in the wrong order", "redistribution",
		.group = swapped},
	{"move-group-of-rank-0", "each group is that of rank 0", "redistribution",
		.group = of_rank_0},
	{0},
};
