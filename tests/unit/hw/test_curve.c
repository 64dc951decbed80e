/* SPDX-License-Identifier: Apache-2.0 */
/* Measured curves of collectives: between points, before and behind them, and where they fall. */
#include "unit.h"

#include <math.h>

#include "hw/coll.h"
#include "hw/curve.h"
#include "hw/group.h"
#include "hw/profile_write.h"
#include "hw_test.h"

TEST_FIXTURE(setup, teardown)

static const struct ap_curve_point rising[] = {{2048, 30e-6}, {1024, 20e-6}, {8192, 60e-6}, {16384, 60e-6},
	{32768, 220e-6}};

static struct ap_curve curve_of(const struct ap_curve_point *v, size_t n)
{
	struct ap_curve c = {.coll = AP_COLL_ALLREDUCE, .ranks = 4, .servers = 1, .source = "by hand"};

	ap_curve_set(ctx.arena, v, n, &c);
	return c;
}

START_TEST(straight_lines_between_points)
{
	static const struct { double bytes, s; } at[] = {{0, 10e-6}, {512, 15e-6}, {1024, 20e-6}, {1536, 25e-6},
		{2048, 30e-6}, {5120, 45e-6}, {12288, 60e-6}, {24576, 140e-6}, {32768, 220e-6}, {65536, 540e-6}};
	struct ap_curve c = curve_of(rising, AP_COUNT(rising));

	ck_assert_int_eq(c.npoint, 5);
	for (size_t i = 0; i < AP_COUNT(at); i++)
		ck_assert_double_eq_tol(ap_curve_time_s(&c, at[i].bytes), at[i].s, 1e-15);
	ck_assert_double_eq(ap_curve_off(&c), 0);
	/* the lowest line from 10 us: to 16384 bytes; up to 8192 bytes, there */
	ck_assert_double_eq_tol(ap_curve_least_slope(&c, 0x1p40), 50e-6 / 16384, 1e-18);
	ck_assert_double_eq_tol(ap_curve_least_slope(&c, 8192), 50e-6 / 8192, 1e-18);
}
END_TEST

/* 50, 40 and 45 us are pooled to 45; sizes that were measured twice have their mean. Where the last ones are pooled,
 * the curve goes on as from the origin. A first line that would begin below 0 begins there. */
START_TEST(points_that_fall)
{
	static const struct ap_curve_point falling[] = {{1000, 10e-6}, {2000, 50e-6}, {3000, 30e-6}, {3000, 50e-6},
		{4000, 45e-6}};
	static const double want_s[] = {10e-6, 45e-6, 45e-6, 45e-6};
	struct ap_curve c = curve_of(falling, AP_COUNT(falling));

	ck_assert_int_eq(c.npoint, 4);
	for (int i = 0; i < 4; i++)
		ck_assert_double_eq_tol(ap_curve_time_s(&c, c.point[i].bytes), want_s[i], 1e-15);
	ck_assert_double_eq_tol(ap_curve_off(&c), (0 + 0.1 + 0.125 + 0) / 4, 1e-12);
	ck_assert_double_eq_tol(ap_curve_time_s(&c, 8000), 90e-6, 1e-15);
	ck_assert_double_eq(ap_curve_time_s(&c, 0), 0);
	ck_assert_double_eq_tol(ap_curve_time_s(&c, 500), 5e-6, 1e-15);
}
END_TEST

/* Of random points, in any order: the curve does not fall, no line from its start with the least slope is above it, one
 * that is a little steeper is, and points that rise are met. */
START_TEST(curves_do_not_fall)
{
	uint64_t state = random_seed();

	for (int i = 0; i < 500; i++) {
		struct ap_curve_point v[12];
		size_t n = 2 + random_below(&state, 11);
		double before = 0, most, least;
		bool rises = random_below(&state, 2), touches = false;
		struct ap_curve c;

		for (size_t k = 0; k < n; k++)
			v[k] = (struct ap_curve_point){exp2((double)random_below(&state, 30)) +
				(double)random_below(&state, 100), 1e-6 * (double)(1 + random_below(&state, 5000))};
		for (size_t k = 0; rises && k < n; k++)
			v[k].time_s = 1e-6 + 1e-9 * sqrt(v[k].bytes);
		c = curve_of(v, n);
		if (c.npoint < 2)
			continue;
		if (rises)
			ck_assert_double_lt(ap_curve_off(&c), 1e-12);
		most = exp2((double)(1 + random_below(&state, 40)));
		least = ap_curve_least_slope(&c, most);
		for (double bytes = 0; bytes <= 0x1p42; bytes = bytes < 1 ? 1 : bytes * 1.07) {
			double s = ap_curve_time_s(&c, bytes), line = ap_curve_time_s(&c, 0) + least * bytes;

			ck_assert_msg(s >= before * (1 - 1e-12), "falls at %g: %.17g, %.17g", bytes, before, s);
			ck_assert_msg(bytes > most || s >= line * (1 - 1e-12), "%g bytes: %.17g below %.17g", bytes,
				s, line);
			before = s;
		}
		for (int k = 0; k <= c.npoint; k++) {
			double bytes = k < c.npoint ? c.point[k].bytes : most;

			touches |= bytes <= most && ap_curve_time_s(&c, bytes) <=
				ap_curve_time_s(&c, 0) + least * bytes * (1 + 1e-9) + 1e-18;
		}
		ck_assert(touches);
	}
}
END_TEST

/* The chip with a curve, for groups of four on one server, and what a machine of it takes. */
START_TEST(groups_that_were_measured)
{
	static const struct { int64_t ranks, servers; bool is; } groups[] = {{4, 1, true}, {8, 1, false}, {4, 2, false},
		{2, 1, false}};
	struct ap_curve curve = curve_of(rising, AP_COUNT(rising));
	struct ap_chip chip = *get_chip("a100-80");

	chip.curve = &curve;
	chip.ncurve = 1;
	for (size_t i = 0; i < AP_COUNT(groups); i++) {
		const struct ap_machine *m, *without;
		struct ap_axes axes = {0};
		struct ap_coll_parts parts;
		struct ap_group g;
		const char *algorithm;
		double s;

		ck_assert_int_eq(ap_machine_make(&ctx, make_topo(groups[i].ranks,
			groups[i].ranks / groups[i].servers), &chip, &m), AP_OK);
		ck_assert_int_eq(ap_machine_make(&ctx, m->topo, get_chip("a100-80"), &without), AP_OK);
		ap_axes_add(&axes, (struct ap_axis){1, (int32_t)groups[i].ranks});
		ap_group_make(ctx.arena, m, &axes, &g);
		s = ap_coll_time_s(m, AP_COLL_ALLREDUCE, &g, 5120, &algorithm);
		ck_assert_int_eq(!strcmp(algorithm, "measured"), groups[i].is);
		ck_assert_double_eq_tol(s, groups[i].is ? 45e-6
			: ap_coll_time_s(without, AP_COLL_ALLREDUCE, &g, 5120, NULL), 1e-15);
		ap_coll_parts(m, AP_COLL_ALLREDUCE, &g, 5120, &parts);
		ck_assert_double_eq_tol(parts.fixed_s + parts.latency_s + parts.transfer_s, s, 1e-15);
		if (groups[i].is)
			ck_assert_double_eq_tol(parts.latency_s, 10e-6, 1e-15);
		(void)ap_coll_time_s(m, AP_COLL_ALLGATHER, &g, 5120, &algorithm);
		ck_assert_str_ne(algorithm, "measured");
	}
}
END_TEST

/* As a profile it is read back as it was, and written the same; one's own collectives, slower as a whole, are so. */
START_TEST(a_profile_with_curves)
{
	struct ap_curve curve = curve_of(rising, AP_COUNT(rising));
	struct ap_chip chip = *get_chip("a100-80"), back;
	struct ap_software slow = {.kernel_slowdown = 1, .collective_slowdown = 1.5};
	struct ap_str text, again;
	struct ap_json *doc;

	chip.curve = &curve;
	chip.ncurve = 1;
	ap_str_init(&text, ctx.arena);
	ap_chip_write(&chip, &text);
	ck_assert_int_eq(ap_json_parse(&ctx, "own.json", text.s, text.len, 0, &doc), AP_OK);
	ck_assert_msg(ap_chip_parse(&ctx, doc, &back) == AP_OK, "%s", messages(&ctx));
	ck_assert_int_eq(back.ncurve, 1);
	ck_assert(ap_curve_is_like(&back.curve[0], &curve));
	ck_assert_str_eq(back.curve[0].source, "by hand");
	for (double bytes = 1; bytes < 1e9; bytes *= 3)
		ck_assert_double_eq(ap_curve_time_s(&back.curve[0], bytes), ap_curve_time_s(&curve, bytes));
	ap_str_init(&again, ctx.arena);
	ap_chip_write(&back, &again);
	ck_assert_str_eq(again.s, text.s);
	ck_assert_double_eq_tol(ap_curve_time_s(&ap_chip_driven(ctx.arena, &chip, &slow)->curve[0], 5120), 67.5e-6,
		1e-15);
}
END_TEST

START_TEST(faults_of_curves)
{
#define GROUP "{'collective':'AllReduce','ranks':4,'curve':"
	static const struct { const char *collectives, *message; } cases[] = {
		{"{}", "expected an array"},
		{"[1]", "a measured collective is an object"},
		{"[{'collective':'AllReduce','ranks':4}]", "curve"},
		{"[{'collective':'Reduce','ranks':4,'curve':[[1,1],[2,2]]}]", "\"Reduce\"; expected AllReduce"},
		{"[{'collective':'Send','ranks':2,'curve':[[1,1],[2,2]]}]", "\"Send\"; expected AllReduce"},
		{"[{'collective':'AllReduce','ranks':1,'curve':[[1,1],[2,2]]}]", "ranks"},
		{"[{'collective':'AllReduce','ranks':4,'servers':3,'curve':[[1,1],[2,2]]}]", "3 servers of 4 ranks"},
		{"[" GROUP "[[1,1]]}]", "a curve has 2 to 256 points"},
		{"[" GROUP "[[1,1],[1,2]]}]", "all points are of one size"},
		{"[" GROUP "[[1,1],[0,2]]}]", "a point is [bytes, seconds], both above 0"},
		{"[" GROUP "[[1,1],[2]]}]", "a point is [bytes, seconds]"},
		{"[" GROUP "[[1,1],[2,'2']]}]", "a point is [bytes, seconds]"},
		{"[" GROUP "[[1,1],[2,2]]}," GROUP "[[1,1],[2,2]]}]", "the same group has a curve already"},
		{"[{'collective':'AllReduce','ranks':4,'curv':[[1,1],[2,2]]}]", "curv"},
	};
	struct ap_str text;

	ap_str_init(&text, ctx.arena);
	ap_chip_write(get_chip("a100-80"), &text);
	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const char *head = strstr(text.s, "\"levels\"");
		char *bad = ap_arena_printf(ctx.arena, "%.*s\"collectives\":%s,%s", (int)(head - text.s), text.s,
			cases[i].collectives, head);
		struct ap_json *doc;
		struct ap_chip chip;

		for (char *p = bad + (head - text.s); p < bad + (head - text.s) + strlen(cases[i].collectives) + 20; p++)
			*p = *p == '\'' ? '"' : *p;
		ck_assert_msg(ap_json_parse(&ctx, "bad.json", bad, strlen(bad), 0, &doc) == AP_OK, "%s", bad);
		ck_assert_int_ne(ap_chip_parse(&ctx, doc, &chip), AP_OK);
		ck_contains(messages(&ctx), cases[i].message);
	}
}
END_TEST
