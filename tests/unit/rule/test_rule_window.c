/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of convolutions and poolings: how many, which cuts are legal, what parts exchange. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "rule/legal.h"
#include "rule/window.h"

#include "harness.h"
#include "rule_fixture.h"

/* ck_assert for inner loops: Check notes every call of its own, which costs a system call. */
#define REQUIRE(x) \
	do { \
		if (!(x)) \
			ck_abort_msg("'%s' does not hold", #x); \
	} while (0)

/* Height and width by MindSpore's formulas: same ceil(H / s), else (H + pads - k') / s + 1, k' with
 * its dilation; an odd padding of same goes behind. */
static const struct {
	const char *shapes, *attrs;
	int64_t count[2], kernel[2], before[2], after[2];
} extents[] = {
	{"float32[1,3,224,224] float32[64,3,7,7]", "stride=2 pad_mode=same", {112, 112}, {7, 7},
		{2, 2}, {3, 3}},
	{"float32[1,3,224,224] float32[64,3,7,7]", "stride=2 pad_mode=pad pad=3", {112, 112},
		{7, 7}, {3, 3}, {3, 3}},
	{"float32[1,3,224,224] float32[64,3,7,7]", "stride=2", {109, 109}, {7, 7}, {0, 0}, {0, 0}},
	{"float32[1,8,13,12] float32[8,8,3,3]", "stride=2 pad_mode=same", {7, 6}, {3, 3}, {1, 0},
		{1, 1}},
	{"float32[1,8,56,56] float32[8,8,1,1]", "stride=2 pad_mode=same", {28, 28}, {1, 1}, {0, 0},
		{0, 0}},
	{"float32[1,8,10,9] float32[8,8,3,2]", "dilation=2,3 pad_mode=same", {10, 9}, {5, 4},
		{2, 1}, {2, 2}},
	{"float32[1,8,10,9] float32[8,8,3,2]", "dilation=1,1,2,3 stride=1,1,1,2", {6, 3}, {5, 4},
		{0, 0}, {0, 0}},
	{"float32[1,8,10,9] float32[8,8,3,2]", "pad_mode=pad pad=1,2,0,3", {11, 11}, {3, 2}, {1, 0},
		{2, 3}},
	{"float32[1,8,13,28] float32[8,8,3,5]", "stride=2,1 pad_mode=Valid", {6, 24}, {3, 5},
		{0, 0}, {0, 0}},
};

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(windows_are_counted, AP_COUNT(extents))
{
	struct ap_bound b = bind_ok("Conv2D", extents[_i].shapes, extents[_i].attrs, "");

	ck_assert_uint_eq(b.nwindow, 2);
	for (int i = 0; i < 2; i++) {
		const struct ap_window *w = &b.window[i];

		ck_assert_int_eq(w->operand, 0);
		ck_assert_int_eq(w->dim, 2 + i);
		ck_assert_int_eq(w->size, b.in[0].size[2 + i]);
		ck_assert_int_eq(w->count, extents[_i].count[i]);
		ck_assert_int_eq(b.out[0].size[2 + i], extents[_i].count[i]);
		ck_assert_int_eq(b.factor[w->factor].size, extents[_i].count[i]);
		ck_assert_int_eq(w->kernel, extents[_i].kernel[i]);
		ck_assert_int_eq(w->before, extents[_i].before[i]);
		ck_assert_int_eq(w->after, extents[_i].after[i]);
	}
}
END_TEST

static double work(const struct ap_bound *b)
{
	double flops = b->flops;

	for (uint8_t f = 0; f < b->nfactor; f++)
		flops *= (double)b->factor[f].size;
	return flops;
}

/* 2 N Ho Wo Co (Ci / group) kh kw. */
START_TEST(work_of_windows)
{
	struct ap_bound conv1 = bind_ok("Conv2D", "float32[32,3,224,224] float32[64,3,7,7]",
		"stride=2 pad_mode=same", "");
	struct ap_bound grouped = bind_ok("Conv2D", "float32[2,32,8,8] float32[64,16,3,3]",
		"group=2 pad_mode=same", "");
	struct ap_bound each = bind_ok("Conv2D", "float32[2,32,8,8] float32[64,1,3,3]",
		"group=32 pad_mode=same", "");
	struct ap_bound pool = bind_ok("MaxPool", "float32[2,32,8,8]",
		"kernel_size=3 strides=2 pad_mode=same", "");

	ck_assert_double_eq(work(&conv1), 7552892928.);
	ck_assert_double_eq(work(&grouped), 2. * 2 * 8 * 8 * 64 * 16 * 9);
	ck_assert_double_eq(work(&each), 2. * 2 * 8 * 8 * 64 * 1 * 9);
	ck_assert_int_eq(grouped.row->unit, AP_OP_CUBE);
	ck_assert_int_eq(each.row->unit, AP_OP_VECTOR);
	ck_assert_double_eq(work(&pool), 2. * 32 * 4 * 4 * 9);
}
END_TEST

/* counts: by letter, "h4 w2"; factors not named are not cut. */
static bool is_legal(const struct ap_bound *b, const char *counts)
{
	int32_t count[AP_MAX_FACTOR];

	for (uint8_t f = 0; f < b->nfactor; f++) {
		const char *p = strchr(counts, b->factor[f].letter);

		count[f] = p ? (int32_t)strtol(p + 1, NULL, 10) : 1;
	}
	return ap_rule_legal(b, count, 64, true, NULL);
}

static const struct {
	const char *type, *shapes, *attrs;
	const char *legal, *illegal; /* counts of one case parted by ";" */
} cuts[] = {
	/* k > stride: halos of 2 and 3, no further than a neighbour; 112 outputs */
	{"Conv2D", "float32[8,4,224,224] float32[64,4,7,7]", "stride=2 pad_mode=same",
		"n8 c4 d2;h2;h8;h16;w7;h2 w4 n2", "h32;h2 w32;h224"},
	/* 224 + 6 - 7 is no multiple of the stride */
	{"Conv2D", "float32[8,4,224,224] float32[64,4,7,7]", "stride=2 pad_mode=pad pad=3",
		"n8 c4 d2", "h2;w2"},
	/* whole windows: the slice is a multiple of the stride */
	{"Conv2D", "float32[8,4,56,56] float32[8,4,1,1]", "stride=2 pad_mode=same", "h2;h4;h28 w2",
		"h8;w8"},
	{"Conv2D", "float32[8,4,56,56] float32[8,4,2,2]", "stride=2", "h2;h4;h28 w2", "h8;w8"},
	{"Conv2D", "float32[8,4,12,12] float32[8,4,2,2]", "stride=3", "h2;h4", "h12"},
	/* k > stride inside the operand only: never */
	{"Conv2D", "float32[8,4,6,6] float32[8,4,3,3]", "", "n2", "h2;w2"},
	/* the same windows, padded by nothing: they may reach into the next part */
	{"Conv2D", "float32[8,4,6,6] float32[8,4,3,3]", "pad_mode=pad", "h2;h2 w2", "h3;h4"},
	/* halos of 1: down to slices of 1 */
	{"Conv2D", "float32[8,4,56,56] float32[8,4,3,3]", "pad_mode=pad pad=1", "h2;h28;h56 w56",
		"h16"},
	/* halos of 2 and a slice of 1 */
	{"Conv2D", "float32[8,4,8,8] float32[8,4,5,5]", "pad_mode=same", "h2;h4", "h8"},
	/* dilated: 5 long; a slice of 1 is too short for a halo of 2 */
	{"Conv2D", "float32[8,4,8,8] float32[8,4,3,3]", "pad_mode=same dilation=2", "h2;h4", "h8"},
	/* whole windows must not be padded */
	{"Conv2D", "float32[8,4,4,4] float32[8,4,1,1]", "pad_mode=pad pad=1", "n2", "h2"},
	/* halos that differ from part to part: 3; 1 and 2; 2 and 1; 3 */
	{"Conv2D", "float32[8,4,12,12] float32[8,4,5,5]", "pad_mode=pad", "h2;h4", "h3;h8"},
	/* a window over padding alone */
	{"Conv2D", "float32[8,4,1,4] float32[8,4,1,3]", "pad_mode=pad pad=2,1,1,1", "w2;w4", "h2;h4"},
	{"Conv3D", "float32[8,4,8,8,8] float32[8,4,3,5,3]", "pad_mode=same", "d8;d4 h4;h2", "h8"},
	{"MaxPool", "float32[8,4,112,112]", "kernel_size=2 strides=2", "n8 c4;h2;h8;h56 w56", "h16"},
	{"MaxPool", "float32[8,4,112,112]", "kernel_size=3 strides=2 pad_mode=same", "n8 c4",
		"h2;w2"},
	{"AvgPool", "float32[8,4,9,112]", "kernel_size=3,2 strides=3,2 pad_mode=same", "h3 w7",
		"h9"},
	{"MaxPool3D", "float32[8,4,8,8,8]", "kernel_size=3 strides=1 pad_mode=same", "n8;d8 h4",
		"h16"},
	/* windows over the result: halos of 1 and of 1 behind alone */
	{"Conv2DTranspose", "float32[8,4,8,8] float32[4,6,4,3]",
		"stride=2 pad_mode=pad pad=1,1,1,0", "n8 d4 c2;h2;h8;w2;w8 h2", "h16"},
	{"Conv2DTranspose", "float32[8,4,8,8] float32[4,6,2,2]", "stride=2", "h2;h8 w8", "h16"},
	{"Conv2DTranspose", "float32[8,4,8,8] float32[4,6,3,3]", "stride=2", "n2", "h2"},
	{"Conv2DTranspose", "float32[8,4,8,8] float32[4,6,1,1]", "stride=2", "n2", "h2"},
	{"Conv2DBackpropInput", "float32[8,4,8,8] float32[4,6,1,1]",
		"stride=2 input_size=8,6,16,15", "h2", "w2"},
	/* halos of 2 and a slice of 1 */
	{"Conv2DBackpropInput", "float32[8,4,8,8] float32[4,6,5,5]", "pad_mode=same", "h2;h4", "h8"},
};

START_LOOP_TEST(cuts_of_windows, AP_COUNT(cuts))
{
	struct ap_bound b = bind_ok(cuts[_i].type, cuts[_i].shapes, cuts[_i].attrs, "");

	for (int good = 0; good < 2; good++) {
		char text[128], *save, *one;

		snprintf(text, sizeof text, "%s", good ? cuts[_i].legal : cuts[_i].illegal);
		for (one = strtok_r(text, ";", &save); one; one = strtok_r(NULL, ";", &save))
			ck_assert_msg(is_legal(&b, one) == good, "%s %s %s: %s", cuts[_i].type,
				cuts[_i].shapes, cuts[_i].attrs, one);
	}
}
END_TEST

START_TEST(groups_are_not_cut)
{
	struct ap_bound b = bind_ok("Conv2D", "float32[2,32,8,8] float32[64,16,3,3]",
		"group=2 pad_mode=same", "");

	for (uint8_t f = 0; f < b.nfactor; f++)
		ck_assert_int_eq((b.factor[f].flags & AP_FACTOR_FROZEN) != 0,
			strchr("gcd", b.factor[f].letter) != NULL);
	ck_assert(is_legal(&b, "n2 h2 w4"));
}
END_TEST

static void expect_halos(const struct ap_window *w, int64_t parts, const char *want)
{
	char text[128];
	size_t n = 0;

	for (int64_t p = 0; p < parts; p++) {
		struct ap_halo h = ap_window_halo(w, parts, p);

		n += (size_t)snprintf(text + n, sizeof text - n, "%s%" PRId64 "+%" PRId64,
			p ? " " : "", h.before, h.after);
	}
	ck_assert_str_eq(text, want);
}

/* Worked by hand, and by the formula: before = pad + (H - Ho s) p / P, after = (p + 1) (Ho s - H) / P
 * + k - s - pad. */
START_TEST(halos_by_hand)
{
	struct ap_bound b = bind_ok("Conv2D", "float32[8,4,224,224] float32[64,4,7,7]",
		"stride=2 pad_mode=same", "");

	expect_halos(&b.window[0], 4, "0+3 2+3 2+3 2+0");
	b = bind_ok("Conv2D", "float32[8,4,12,8] float32[8,4,5,3]", "pad_mode=pad pad=0,0,1,1", "");
	expect_halos(&b.window[0], 4, "0+3 1+2 2+1 3+0");
	expect_halos(&b.window[1], 4, "0+1 1+1 1+1 1+0");
	b = bind_ok("Conv2DTranspose", "float32[8,4,8,8] float32[4,6,4,3]",
		"stride=2 pad_mode=pad pad=1,1,1,0", "");
	expect_halos(&b.window[0], 4, "0+1 1+1 1+1 1+0");
	expect_halos(&b.window[1], 2, "0+1 0+0");
	b = bind_ok("Conv2D", "float32[8,4,56,56] float32[8,4,1,1]", "stride=2 pad_mode=same", "");
	expect_halos(&b.window[0], 2, "0+-1 0+0"); /* the odd row is not needed */
	b = bind_ok("Conv2D", "float32[8,4,8,8] float32[8,4,3,3]", "pad_mode=same dilation=2", "");
	expect_halos(&b.window[0], 2, "0+2 2+0");
}
END_TEST

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % n;
}

/* Which elements windows first..last read, by looking at each of them. */
static void reads(const struct ap_window *w, int64_t first, int64_t last, int64_t *lo, int64_t *hi)
{
	*lo = w->size;
	*hi = -1;
	for (int64_t i = first; i <= last; i++)
		for (int64_t k = 0; k < w->kernel; k++) {
			int64_t at = i * w->stride + k - w->before;

			if (at >= 0 && at < w->size) {
				*lo = at < *lo ? at : *lo;
				*hi = at > *hi ? at : *hi;
			}
		}
}

/* For legal cuts: own slice and halo together are what the part's windows read, or more where a
 * rest of the slice is not read at all. */
START_TEST(halos_are_what_windows_read)
{
	const char *given = getenv("AP_SEED");
	uint64_t rng = (given ? strtoull(given, NULL, 10) : 20240607) | 1;
	int checked = 0;

	printf("AP_SEED=%" PRIu64 "\n", rng);
	for (int round = 0; round < 3000; round++) {
		static const char *const modes[] = {"valid", "same", "pad"};
		int64_t h = 1 + draw(&rng, 40), k = 1 + draw(&rng, 6), pad[2] = {0, 0};
		int mode = (int)draw(&rng, 3);
		char shapes[128], attrs[128];
		struct ap_bind_fault fault;
		struct ap_bound b;

		if (mode == 2)
			for (int i = 0; i < 2; i++)
				pad[i] = draw(&rng, 4);
		snprintf(shapes, sizeof shapes, "float32[1,1,%" PRId64 ",1] float32[1,1,%" PRId64
			",1]", h, k);
		snprintf(attrs, sizeof attrs, "stride=%u,1 dilation=%u,1 pad_mode=%s pad=%" PRId64
			",%" PRId64 ",0,0", 1 + draw(&rng, 4), 1 + draw(&rng, 3), modes[mode],
			pad[0], pad[1]);
		if (bind_text("Conv2D", shapes, attrs, "", &b, &fault) != AP_OK)
			continue;
		for (int64_t parts = 2; parts <= b.window[0].count; parts++) {
			const struct ap_window *w = &b.window[0];
			int64_t slice = h / parts, made = w->count / parts;
			char counts[32];

			snprintf(counts, sizeof counts, "h%" PRId64, parts);
			if (!is_legal(&b, counts))
				continue;
			for (int64_t p = 0; p < parts; p++) {
				struct ap_halo halo = ap_window_halo(w, parts, p);
				int64_t lo, hi;

				reads(w, p * made, (p + 1) * made - 1, &lo, &hi);
				REQUIRE(lo >= p * slice - halo.before);
				REQUIRE(hi < (p + 1) * slice + halo.after);
				REQUIRE(halo.before <= 0 || lo == p * slice - halo.before);
				REQUIRE(halo.after <= 0 || hi == (p + 1) * slice + halo.after - 1);
				checked++;
			}
		}
	}
	ck_assert_int_gt(checked, 1000);
}
END_TEST
