/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/vec.h"
#include "harness.h"
#include "shard/layout.h"
#include "shard/reshard.h"
#include "layouts.h"

/* Layout of up to 4 dimensions from cut, stride pairs. */
static struct ap_layout layout(int rank, const int32_t *pair)
{
	struct ap_layout l = {.rank = rank};

	for (int d = 0; d < rank; d++)
		l.dim[d] = (struct ap_cut_dim){pair[2 * d], pair[2 * d + 1]};
	return l;
}

/* "gather 0 4x2 first; alltoall 1>0 4x2; slice 1/2 1x4": dimension, "/outer" unless 1, stride x
 * size. "gather 0+1/2 1x8 by 4": of two dimensions, the last 4 parts of the inner one. "alltoall 1+1>0+2 1x8
 * by 2": of dimension 1 to both others. */
static void step_text(const struct ap_reshard_step *s, char *out, size_t cap)
{
	static const char *const names[] = {"slice", "gather", "alltoall"};
	char dim[32], outer[32] = "", to[64] = "", to_outer[32] = "", parts[32] = "";

	snprintf(dim, sizeof dim, "%d", s->dim);
	if (s->outer > 1)
		snprintf(outer, sizeof outer, "/%d", s->outer);
	if (s->move == AP_MOVE_ALLTOALL)
		snprintf(to, sizeof to, ">%d", s->concat);
	if (s->inner_parts > 1) {
		if (s->move == AP_MOVE_ALLTOALL)
			snprintf(to, sizeof to, "+%d>%d+%d", s->inner, s->concat, s->concat_inner);
		else
			snprintf(to, sizeof to, "+%d", s->inner);
		snprintf(parts, sizeof parts, " by %d", s->inner_parts);
	}
	if (s->inner_outer > 1)
		snprintf(to_outer, sizeof to_outer, "/%d", s->inner_outer);
	if (s->concat_outer > 1)
		snprintf(to_outer, sizeof to_outer, "/%d", s->concat_outer);
	snprintf(out, cap, "%s %s%s%s%s %dx%d%s%s", names[s->move], dim, outer, to, to_outer,
		s->axis.stride, s->axis.size, parts, s->first ? " first" : "");
}

static void check_steps(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, unsigned ways, const char *want)
{
	struct ap_reshard_step steps[AP_RESHARD_MAX];
	int n = ap_reshard(a, b, size, ndev, ways, steps);
	char text[1024] = "";
	size_t len = 0;

	for (int i = 0; i < n; i++) {
		if (i)
			len += (size_t)snprintf(text + len, sizeof text - len, "; ");
		step_text(&steps[i], text + len, sizeof text - len);
		len = strlen(text);
	}
	ck_assert_str_eq(text, want);
}

struct example {
	int rank;
	int64_t ndev;
	int32_t a[8], b[8]; /* cut, stride of each dimension */
	int64_t size[4];
	const char *want, *without; /* steps, and those without AlltoAll where they are others */
};

static const struct example examples[] = {
	/* formats 5.2, dev [2,4]: [1,-1] -> [-1,-1] */
	{2, 8, {2, 4, 1, 0}, {1, 0, 1, 0}, {4, 8}, "gather 0 4x2 first"},
	/* [-1,-1] -> [1,0] */
	{2, 8, {1, 0, 1, 0}, {2, 4, 4, 1}, {4, 8}, "slice 0 4x2; slice 1 1x4"},
	/* [1,-1] -> [-1,1] */
	{2, 8, {2, 4, 1, 0}, {1, 0, 2, 4}, {4, 8}, "alltoall 1>0 4x2 first",
		"gather 0 4x2 first; slice 1 4x2"},
	/* [-1,0] -> [0,-1]: the other way round, the copies are local */
	{2, 8, {1, 0, 4, 1}, {4, 1, 1, 0}, {4, 8}, "alltoall 0>1 1x4",
		"gather 1 1x4; slice 0 1x4"},
	/* the swap, dev [2,2]: [1,0] -> [0,1] */
	{2, 4, {2, 2, 2, 1}, {2, 1, 2, 2}, {4, 8},
		"gather 0 2x2 first; alltoall 0>1 1x2; slice 1 2x2",
		"gather 0 2x2 first; gather 1 1x2; slice 0 1x2; slice 1 2x2"},
	/* the swap on dev [2,4] becomes one on [2,2,2] */
	{2, 8, {2, 4, 4, 1}, {4, 1, 2, 4}, {4, 8},
		"alltoall 0>1 1x2; gather 0 4x2 first; alltoall 0>1 2x2; slice 1 4x2",
		"gather 1 1x2; slice 0 1x2; gather 0 4x2 first; gather 1 2x2; slice 0 2x2; slice 1 4x2"},
	/* a finer cut of the same dimension: its second sub-dimension */
	{1, 8, {2, 4}, {8, 1}, {16}, "slice 0 1x4"},
	{1, 8, {8, 1}, {2, 4}, {16}, "gather 0 1x4"},
	/* the same number of parts by another axis: exchanged through the whole */
	{1, 4, {2, 1}, {2, 2}, {4}, "gather 0 1x2 first; slice 0 2x2"},
	/* an outer cut that appears where an inner one was */
	{1, 4, {2, 1}, {4, 1}, {8}, "alltoall 0>0 1x2 first; slice 0 2x2",
		"gather 0 1x2 first; slice 0/2 1x2; slice 0 2x2"},
	{1, 4, {4, 1}, {2, 1}, {8}, "gather 0 2x2 first; alltoall 0>0 1x2",
		"gather 0 2x2 first; gather 0/2 1x2; slice 0 1x2"},
	/* leading dimensions of one do not count */
	{2, 8, {1, 0, 2, 4}, {1, 0, 1, 0}, {1, 8}, "gather 1 4x2 first"},
	{2, 8, {1, 0, 2, 4}, {1, 0, 1, 0}, {2, 8}, "gather 1 4x2"},
	/* dimensions that do not change are left alone */
	{3, 8, {2, 4, 2, 2, 1, 0}, {2, 4, 1, 0, 2, 2}, {2, 4, 6}, "alltoall 2>1 2x2",
		"gather 1 2x2; slice 2 2x2"},
	/* boundaries 2 and 3 of six ranks: brought together, cut anew */
	{2, 6, {2, 1, 1, 0}, {1, 0, 3, 1}, {4, 3}, "gather 0 1x2 first; slice 1 1x3"},
	{2, 12, {2, 6, 3, 1}, {3, 4, 2, 1}, {6, 6},
		"gather 0 6x2 first; gather 1 1x3; slice 0 4x3; slice 1 1x2"},
	/* 2 and 3 parts of one dimension */
	{1, 6, {2, 3}, {3, 1}, {6}, "gather 0 3x2 first; slice 0 1x3"},
	{1, 6, {1, 0}, {1, 0}, {6}, ""},
};

START_LOOP_TEST(worked_examples, AP_COUNT(examples))
{
	const struct example *e = &examples[_i];
	struct ap_layout a = layout(e->rank, e->a), b = layout(e->rank, e->b);

	check_steps(&a, &b, e->size, e->ndev, AP_RESHARD_ALLTOALL, e->want);
	check_steps(&a, &b, e->size, e->ndev, 0, e->without ? e->without : e->want);
}
END_TEST

/* The same where neighbouring steps are put together, without AlltoAll. */
static const struct example joint[] = {
	/* tokens: whole samples, then the sequence: what lies one behind the other needs no copies */
	{3, 8, {2, 4, 4, 1, 1, 0}, {1, 0, 1, 0, 1, 0}, {2, 16, 4}, "gather 0+1 1x8 by 4 first", NULL},
	{3, 8, {1, 0, 1, 0, 1, 0}, {2, 4, 4, 1, 1, 0}, {2, 16, 4}, "slice 0+1 1x8 by 4", NULL},
	/* of samples that are dealt to others too */
	{3, 16, {4, 4, 4, 1, 1, 0}, {2, 8, 1, 0, 1, 0}, {4, 16, 4}, "gather 0+1 1x8 by 4 first", NULL},
	{3, 8, {1, 0, 8, 1, 1, 0}, {1, 0, 1, 0, 1, 0}, {1, 16, 4}, "gather 1 1x8 first", NULL},
	{3, 16, {2, 8, 8, 1, 1, 0}, {2, 8, 1, 0, 1, 0}, {2, 16, 4}, "gather 1 1x8 first", NULL},
	/* of several samples on a rank, or others in between, parts lie apart */
	{3, 8, {2, 4, 4, 1, 1, 0}, {1, 0, 1, 0, 1, 0}, {6, 16, 4}, "gather 0+1 1x8 by 4", NULL},
	{3, 8, {2, 4, 1, 0, 4, 1}, {1, 0, 1, 0, 1, 0}, {2, 3, 4}, "gather 0+2 1x8 by 4", NULL},
	{2, 8, {4, 1, 2, 4}, {1, 0, 1, 0}, {4, 8}, "gather 1+0 1x8 by 4", NULL},
	/* axes with others between them */
	{2, 8, {2, 4, 2, 1}, {1, 0, 1, 0}, {2, 4}, "gather 0 4x2 first; gather 1 1x2", NULL},
	/* two steps of one dimension are one, in whichever order */
	{1, 4, {2, 1}, {4, 1}, {8}, "gather 0 1x2 first; slice 0 1x4", NULL},
	{1, 4, {4, 1}, {2, 1}, {8}, "gather 0 1x4 first; slice 0 1x2", NULL},
	/* two and two of six: those before them stay */
	{2, 8, {2, 4, 4, 1}, {4, 1, 2, 4}, {4, 8},
		"gather 1 1x2; slice 0 1x2; gather 0+1 2x4 by 2 first; slice 1+0 2x4 by 2", NULL},
};

START_LOOP_TEST(neighbouring_steps_are_one, AP_COUNT(joint))
{
	const struct example *e = &joint[_i];
	struct ap_layout a = layout(e->rank, e->a), b = layout(e->rank, e->b);

	check_steps(&a, &b, e->size, e->ndev, AP_RESHARD_JOINT, e->want);
}
END_TEST

/* Exchanges of tokens [samples, experts, places, width] with experts on ranks of several axes. */
static const struct example exchanges[] = {
	/* dp 4 x tp 2: samples and places, to eight parts of the experts, and back */
	{4, 8, {4, 2, 1, 0, 2, 1, 1, 0}, {1, 0, 8, 1, 1, 0, 1, 0}, {4, 8, 4, 2}, "alltoall 1+1>0+2 1x8 by 2 first",
		NULL},
	{4, 8, {1, 0, 8, 1, 1, 0, 1, 0}, {4, 2, 1, 0, 2, 1, 1, 0}, {4, 8, 4, 2}, "alltoall 0+2>1+1 1x8 by 2",
		NULL},
	/* experts on four of eight data-parallel ranks and both of tp: samples stay cut in two, outside */
	{4, 16, {8, 2, 1, 0, 2, 1, 1, 0}, {2, 8, 8, 1, 1, 0, 1, 0}, {8, 8, 4, 2},
		"alltoall 1+1>0+2 1x8 by 2", NULL},
	/* what is put together by one and cut by the next stays two */
	{3, 8, {4, 2, 2, 1, 1, 0}, {1, 0, 4, 2, 2, 1}, {4, 8, 4}, "alltoall 1>0 2x2; alltoall 2>1 1x2; alltoall 1>0 4x2 first",
		NULL},
};

START_LOOP_TEST(exchanges_over_neighbouring_axes_are_one, AP_COUNT(exchanges))
{
	const struct example *e = &exchanges[_i];
	struct ap_layout a = layout(e->rank, e->a), b = layout(e->rank, e->b);

	check_steps(&a, &b, e->size, e->ndev, AP_RESHARD_JOINT | AP_RESHARD_ALLTOALL, e->want);
}
END_TEST

static void unify(const struct ap_layout *a, const struct ap_layout *b, int64_t ndev,
	struct ap_unified *u)
{
	static const int64_t size[AP_MAX_RANK] = {512, 1024};
	struct ap_reshard_end from, to;

	ap_reshard_end_make(a, size, ndev, &from);
	ap_reshard_end_make(b, size, ndev, &to);
	ck_assert(ap_reshard_unify(&from, &to, u));
}

/* Stride of an axis, 0 none. */
static int32_t stride_of(const struct ap_unified *u, uint32_t axis)
{
	return axis ? u->stride[ap_lowest_bit(axis)] : 0;
}

/* Formats 5.1: dev [8,4], map [1,0], over [4,2,2,2] becomes map [3,2,1,0]; times: of all strides. */
static void check_unified(int32_t times)
{
	static const int32_t in[] = {8, 4, 2, 1}, out[] = {8, 0, 2, 0}, size[] = {4, 2, 2, 2};
	struct ap_layout a = layout(2, (const int32_t[]){8, 4 * times, 4, times});
	struct ap_layout b = layout(2, (const int32_t[]){4, 8 * times, 2, 2 * times});
	struct ap_unified u;

	unify(&a, &b, 32 * times, &u);
	ck_assert_int_eq(u.n, 4);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(stride_of(&u, u.sub[i].in), in[i] * times);
		ck_assert_int_eq(stride_of(&u, u.sub[i].out), out[i] * times);
		ck_assert_int_eq(u.sub[i].size, size[i]);
		ck_assert_int_eq(u.sub[i].dim, i / 2);
	}
	ck_assert_int_eq(u.in, u.sub[0].in | u.sub[1].in | u.sub[2].in | u.sub[3].in);
	ck_assert_int_eq(u.out, u.sub[0].out | u.sub[2].out);
}

START_TEST(unified_shape_and_device_matrix)
{
	check_unified(1);
	check_unified(3);
}
END_TEST

/* Dimension 1 cut in 2 and 4 divides b's axis 1x4 at 2; that divides a's axis 1x8 of dimension 0
 * there too; and that b's axis 8x8 at 16. */
static void check_stable(int32_t times)
{
	static const int32_t in[] = {4, 2, 1, 16, 0}, out[] = {32, 16, 8, 2, 1};
	struct ap_layout a = layout(2, (const int32_t[]){8, times, 2, 16 * times});
	struct ap_layout b = layout(2, (const int32_t[]){8, 8 * times, 4, times});
	struct ap_unified u;

	unify(&a, &b, 64 * times, &u);
	ck_assert_int_eq(u.n, 5);
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(stride_of(&u, u.sub[i].in), in[i] * times);
		ck_assert_int_eq(stride_of(&u, u.sub[i].out), out[i] * times);
		ck_assert_int_eq(u.sub[i].size, 2);
	}
}

START_TEST(unification_runs_until_it_is_stable)
{
	check_stable(1);
	check_stable(5);
}
END_TEST

/* What must hold of the steps whatever the layouts, besides that they arrive, which tests/exec shows. */
static void check_kinds(const struct ap_layout *a, const struct ap_layout *b, int64_t ndev,
	const struct ap_reshard_step *steps, int n)
{
	bool finer = layouts_nested(a, b, ndev), coarser = layouts_nested(b, a, ndev);

	REQUIRE(n <= AP_RESHARD_MAX);
	REQUIRE((n == 0) == ap_layout_equal(a, b));
	for (int i = 0; i < n; i++) {
		REQUIRE(!finer || steps[i].move == AP_MOVE_SLICE);
		REQUIRE(!coarser || steps[i].move == AP_MOVE_GATHER);
	}
}

static void check_pair(const struct ap_layout *a, const struct ap_layout *b, int64_t ndev,
	int spare)
{
	struct ap_reshard_step steps[AP_RESHARD_MAX];
	int64_t size[AP_MAX_RANK];
	int n;

	layouts_sizes(a, b, spare, size);
	n = ap_reshard(a, b, size, ndev, true, steps);
	check_kinds(a, b, ndev, steps, n);
}

#define MAX_LAYOUTS 400

START_LOOP_TEST(finer_layouts_are_sliced_and_coarser_ones_gathered, 12)
{
	static const int64_t ndevs[] = {4, 6, 8, 12};
	static struct ap_layout all[MAX_LAYOUTS];
	int64_t ndev = ndevs[_i / 3];
	int rank = _i % 3 + 1;
	int n = layouts_all(rank, ndev, all, MAX_LAYOUTS);

	ck_assert_int_lt(n, MAX_LAYOUTS);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			check_pair(&all[i], &all[j], ndev, (i + j) % 4);
}
END_TEST

/* Each rank thrice: cuts and strides that are powers of two no more give the same steps. */
START_TEST(powers_of_two_take_a_short_cut_to_the_same_steps)
{
	uint64_t seed = random_seed("powers_of_two_take_a_short_cut_to_the_same_steps");

	for (int round = 0; round < 20000; round++) {
		struct ap_layout pair[2];
		struct ap_reshard_step steps[2][AP_RESHARD_MAX];
		int64_t size[AP_MAX_RANK];
		int n;

		for (int i = 0; i < 2; i++)
			pair[i] = layouts_random(1 + round % 5, 1024, &seed);
		layouts_sizes(&pair[0], &pair[1], 1, size);
		n = ap_reshard(&pair[0], &pair[1], size, 1024, true, steps[0]);
		for (int i = 0; i < 2; i++)
			for (int d = 0; d < pair[i].rank; d++)
				pair[i].dim[d].stride *= 3;
		REQUIRE(ap_reshard(&pair[0], &pair[1], size, 3072, true, steps[1]) == n);
		for (int i = 0; i < n; i++) {
			char text[2][128];

			steps[0][i].axis.stride *= 3;
			step_text(&steps[0][i], text[0], sizeof text[0]);
			step_text(&steps[1][i], text[1], sizeof text[1]);
			REQUIRE(!strcmp(text[0], text[1]));
			REQUIRE(steps[0][i].before == steps[1][i].before);
			REQUIRE(steps[0][i].after == steps[1][i].after);
		}
	}
}
END_TEST

/* The passes of formats 5.2, word for word, to compare the steps with. */
struct plain {
	struct ap_unified u;
	uint32_t axis[AP_MAX_SUBS]; /* that cuts each sub-dimension now */
	struct ap_reshard_step steps[AP_RESHARD_MAX];
	int n;
	bool alltoall;
};

static void plain_step(struct plain *p, enum ap_move move, uint32_t axis, int dim, int concat)
{
	REQUIRE(p->n < AP_RESHARD_MAX);
	p->steps[p->n++] = (struct ap_reshard_step){.move = move,
		.axis = {stride_of(&p->u, axis), p->u.sub[dim].size},
		.dim = (uint8_t)p->u.sub[dim].dim, .concat = (uint8_t)p->u.sub[concat].dim,
		.first = p->u.sub[0].dim == 0 && (move == AP_MOVE_GATHER ? dim == 0 :
			move == AP_MOVE_ALLTOALL && concat == 0)};
	if (move != AP_MOVE_ALLTOALL)
		p->steps[p->n - 1].concat = 0;
}

static int plain_holder(const struct plain *p, uint32_t axis)
{
	for (int k = 0; k < p->u.n; k++)
		if (p->axis[k] == axis)
			return k;
	return -1;
}

static bool plain_wanted(const struct plain *p, uint32_t axis)
{
	for (int k = 0; k < p->u.n; k++)
		if (p->u.sub[k].out == axis)
			return true;
	return false;
}

/* SPLIT where the axis is free, PERMUTE where another has it; true when any was done. */
static bool plain_pass(struct plain *p, enum ap_move move)
{
	int before = p->n;

	for (int k = 0; k < p->u.n; k++) {
		uint32_t out = p->u.sub[k].out;
		int from = plain_holder(p, out);

		if (p->axis[k] || !out || (from >= 0) != (move == AP_MOVE_ALLTOALL))
			continue;
		if (from >= 0 && !p->alltoall) {
			plain_step(p, AP_MOVE_GATHER, out, from, 0);
			plain_step(p, AP_MOVE_SLICE, out, k, 0);
		} else {
			plain_step(p, move, out, k, from < 0 ? 0 : from);
		}
		p->axis[k] = out;
		if (from >= 0)
			p->axis[from] = 0;
	}
	return p->n > before;
}

static bool plain_concat(struct plain *p, bool any)
{
	int before = p->n;

	for (int k = 0; k < p->u.n && !(any && p->n > before); k++) {
		uint32_t in = p->axis[k];

		if (!in || in == p->u.sub[k].out || (!any && plain_wanted(p, in)))
			continue;
		plain_step(p, AP_MOVE_GATHER, in, k, 0);
		p->axis[k] = 0;
	}
	return p->n > before;
}

static void plain_infer(struct plain *p)
{
	bool done;

	for (int k = 0; k < p->u.n; k++)
		p->axis[k] = p->u.sub[k].in;
	do {
		int before = p->n, round;

		do {
			round = p->n;
			plain_pass(p, AP_MOVE_SLICE);
			while (plain_pass(p, AP_MOVE_ALLTOALL))
				;
		} while (p->n > round);
		plain_concat(p, false);
		if (p->n == before)
			plain_concat(p, true);
		done = p->n == before;
	} while (!done);
}

START_TEST(steps_are_those_of_the_passes)
{
	static const int64_t ndevs[] = {64, 1024, 65536, 48, 1000, 1296};
	uint64_t seed = random_seed("steps_are_those_of_the_passes");
	int unified = 0;

	for (int round = 0; round < 20000; round++) {
		int64_t ndev = ndevs[random_next(&seed) % 6], size[AP_MAX_RANK];
		int rank = 1 + (int)(random_next(&seed) % 6), n;
		struct ap_layout a = layouts_random(rank, ndev, &seed);
		struct ap_layout b = layouts_random(rank, ndev, &seed);
		struct ap_reshard_step steps[AP_RESHARD_MAX];
		struct ap_reshard_end from, to;
		struct plain p = {.alltoall = round % 2};

		layouts_sizes(&a, &b, ~0, size);
		ap_reshard_end_make(&a, size, ndev, &from);
		ap_reshard_end_make(&b, size, ndev, &to);
		if (!ap_reshard_unify(&from, &to, &p.u))
			continue;
		unified++;
		plain_infer(&p);
		n = ap_reshard_moves(&from, &to, p.alltoall, steps);
		REQUIRE(n == p.n);
		for (int i = 0; i < n; i++) {
			REQUIRE(steps[i].move == p.steps[i].move);
			REQUIRE(steps[i].axis.stride == p.steps[i].axis.stride);
			REQUIRE(steps[i].axis.size == p.steps[i].axis.size);
			REQUIRE(steps[i].dim == p.steps[i].dim);
			REQUIRE(steps[i].concat == p.steps[i].concat);
			REQUIRE(steps[i].first == p.steps[i].first);
		}
	}
	REQUIRE(unified > 5000);
}
END_TEST

/* On 2^20 devices, without executing them: bounds of the fixed-size arrays, sizes, last slice. */
START_TEST(largest_machines_stay_within_bounds)
{
	static const int64_t ndevs[] = {1 << 20, 720720, 531441, 65536, 60466176 / 64};
	uint64_t seed = random_seed("largest_machines_stay_within_bounds");

	for (int round = 0; round < 20000; round++) {
		int64_t ndev = ndevs[random_next(&seed) % 5], size[AP_MAX_RANK], slice = 1, last;
		struct ap_layout a = layouts_random(8, ndev, &seed);
		struct ap_layout b = layouts_random(8, ndev, &seed);
		struct ap_reshard_step steps[AP_RESHARD_MAX];
		int n;

		layouts_sizes(&a, &b, 0, size);
		n = ap_reshard(&a, &b, size, ndev, round % 2, steps);
		for (int d = 0; d < 8; d++)
			slice *= size[d] / b.dim[d].cut;
		last = n ? steps[n - 1].after : slice;
		REQUIRE(last == slice);
		for (int i = 1; i < n; i++)
			REQUIRE(steps[i].before == steps[i - 1].after);
	}
}
END_TEST
