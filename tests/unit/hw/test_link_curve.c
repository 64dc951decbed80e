/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "hw/coll.h"
#include "hw/group.h"
#include "hw/link_curve.h"
#include "hw_test.h"

TEST_FIXTURE(setup, teardown)

static struct ap_link_curves read_curves(const char *text)
{
	struct ap_link_curves c;

	ck_assert_msg(ap_link_curves_read(&ctx, "curve.txt", text, strlen(text), &c) == AP_OK, "%s",
		messages(&ctx));
	return c;
}

static const char nccl_table[] =
	"#  Rank  0 Group  0 Pid   3077 on   node01 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
	"#  Rank  1 Group  0 Pid   3077 on   node01 device  1 [0x0f] NVIDIA A100-SXM4-80GB\n"
	"#  Rank  2 Group  0 Pid   3078 on   node02 device  0 [0x07] NVIDIA A100-SXM4-80GB\n"
	"#  Rank  3 Group  0 Pid   3078 on   node02 device  1 [0x0f] NVIDIA A100-SXM4-80GB\n"
	"#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
	"     8388608       2097152     float     sum      -1    162.3   51.69   77.53      0\n"
	"    33554432       8388608     float     sum      -1    391.1   85.79  128.69      0\n"
	"# Avg bus bandwidth    : 154.0\n";

START_TEST(what_programs_print)
{
	struct ap_link_curves c = read_curves(nccl_table);

	ck_assert_uint_eq(c.all.n, 1); /* an AllReduce by its bandwidths */
	ck_assert_int_eq(c.all.v[0].coll, AP_COLL_ALLREDUCE);
	ck_assert_int_eq(c.all.v[0].ranks, 4);
	ck_assert_int_eq(c.all.v[0].servers, 2);
	ck_assert_uint_eq(c.all.v[0].points.n, 2);
	ck_assert_double_eq_tol(c.all.v[0].points.v[1].time_s, 391.1e-6, 1e-12);
	c = read_curves("mpirun -n 8 ./bin/all_gather_test -b 8M -e 64M -p 8\n"
		"data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n"
		"1048576           | 100            | 83.886               | success\n"
		"./build/alltoall_perf -b 8M -g 4\n"
		"     8388608       2097152     float    none      -1    200.0   41.9   31.5      0\n"
		"    16777216       4194304     float    none      -1    300.0\n");
	ck_assert_uint_eq(c.all.n, 2);
	ck_assert_int_eq(c.all.v[0].coll, AP_COLL_ALLGATHER);
	ck_assert_int_eq(c.all.v[0].ranks, 8);
	ck_assert_double_eq(c.all.v[0].points.v[0].bytes, 8 * 1048576); /* of all ranks: its bandwidth says so */
	ck_assert_int_eq(c.all.v[1].coll, AP_COLL_ALLTOALL);
	ck_assert_int_eq(c.all.v[1].ranks, 4);
	ck_assert_uint_eq(c.all.v[1].points.n, 1);
	c = read_curves("collective,ranks,bytes,busbw_GBps\nall_reduce,8,1048576,20\nall_reduce,8,2097152,30\n"
		"reduce_scatter,4,1048576,10\n");
	ck_assert_uint_eq(c.all.n, 2);
	ck_assert_double_eq_tol(c.all.v[0].points.v[0].time_s, 2 * 7. / 8 * 1048576 / 20e9, 1e-12);
	ck_assert_double_eq_tol(c.all.v[1].points.v[0].time_s, 3. / 4 * 1048576 / 10e9, 1e-12);
}
END_TEST

START_TEST(what_cannot_be_told)
{
	static const struct { const char *text, *message; } cases[] = {
		{"", "curve.txt: holds no measured collective"},
		{"     8388608       2097152     float    none      -1    200.0   41.9   31.5      0\n",
			"curve.txt:1: does not say which collective"},
		{"./all_reduce_test\n1048576 | 100 | 10.5 | success\n", "curve.txt:2: does not say how many ranks"},
		{"mpirun -n 1048576 ./all_reduce_test -p 8\n1048576 | 100 | 10.5 | success\n",
			"curve.txt:2: says that 1048576 ranks took part; expected at most 65536"},
		{"ranks,bytes,time_us\n8,0,5\n", "curve.txt:2: expected a number above 0 under bytes"},
		{"ranks,bytes,time_us\n1,8,5\n", "curve.txt:2: expected two ranks or more"},
		{"ranks,bytes\n8,8\n", "curve.txt:2: expected a time"},
		{"ranks,bytes,time_us\n8,8\n", "curve.txt:2: has not as many fields"},
		{"collective,ranks,bytes,time_us\nall,8,8,8\n", "curve.txt:2: the collective is none of"},
		{"ranks,bytes,time_us\n\"8,8,8\n", "curve.txt:2: a field begins with a quote"},
	};
	struct ap_link_curves c;

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		ck_assert_int_ne(ap_link_curves_read(&ctx, "curve.txt", cases[i].text, strlen(cases[i].text), &c),
			AP_OK);
		ck_contains(messages(&ctx), cases[i].message);
	}
}
END_TEST

/* A curve of points that a chip predicts. */
static struct ap_link_curve curve_of(const struct ap_chip *chip, enum ap_coll coll, int64_t ranks, int64_t servers)
{
	struct ap_link_curve c = {.coll = coll, .ranks = ranks, .servers = servers};
	struct ap_axes axes = {0};
	const struct ap_machine *m;
	struct ap_group g;

	ck_assert_int_eq(ap_machine_make(&ctx, make_topo(ranks, ranks / servers), chip, &m), AP_OK);
	ap_axes_add(&axes, (struct ap_axis){1, (int32_t)ranks});
	ap_group_make(ctx.arena, m, &axes, &g);
	for (double bytes = 1 << 16; bytes <= 1 << 30; bytes *= 4)
		AP_PUSH(ctx.arena, c.points, ((struct ap_link_point){bytes, ap_coll_time_s(m, coll, &g, bytes, NULL)}));
	return c;
}

/* Links that are planted are found again, and those that no curve crosses stay. */
START_TEST(links_found_again)
{
	const struct ap_chip *chip = get_chip("a100-80"), *is;
	struct ap_chip planted = *chip;
	struct ap_link_curves c = {.file = "curve.txt"};

	planted.level[0].latency_s *= 2.5;
	planted.level[0].efficiency *= 0.6;
	AP_PUSH(ctx.arena, c.all, curve_of(&planted, AP_COLL_ALLREDUCE, 8, 1));
	AP_PUSH(ctx.arena, c.all, curve_of(&planted, AP_COLL_ALLGATHER, 4, 1));
	ck_assert_int_eq(ap_link_curves_chip(&ctx, &c, chip, &is), AP_OK);
	ck_assert_double_eq_tol(is->level[0].efficiency / planted.level[0].efficiency, 1, 0.02);
	ck_assert_double_eq_tol(is->level[0].latency_s / planted.level[0].latency_s, 1, 0.05);
	ck_assert_double_eq(is->level[1].efficiency, chip->level[1].efficiency);
	ck_assert_double_eq(is->level[1].latency_s, chip->level[1].latency_s);
	ck_assert_str_ne(is->sha256, chip->sha256);
	ck_contains(messages(&ctx), "of 2 curves; links of a100-80 are 0.");
	planted.level[1].efficiency *= 0.5;
	AP_PUSH(ctx.arena, c.all, curve_of(&planted, AP_COLL_ALLREDUCE, 16, 2));
	ck_assert_int_eq(ap_link_curves_chip(&ctx, &c, chip, &is), AP_OK);
	ck_assert_double_eq_tol(is->level[1].efficiency / planted.level[1].efficiency, 1, 0.03);
}
END_TEST

/* What was measured takes what was measured, at and between points, whatever links are fitted; a new measurement of
 * the same group replaces it. */
START_TEST(measured_groups_take_their_curves)
{
	struct ap_link_curves c = read_curves("collective,ranks,bytes,time_us\n"
		"all_reduce,8,1048576,90\nall_reduce,8,4194304,150\nall_reduce,8,1073741824,8200\n"
		"all_gather,4,1048576,40\n");
	const struct ap_chip *is, *again;
	const struct ap_machine *m;
	struct ap_axes axes = {0};
	struct ap_group g;
	const char *algorithm;

	ck_assert_int_eq(ap_link_curves_chip(&ctx, &c, get_chip("a100-80"), &is), AP_OK);
	ck_assert_int_eq(is->ncurve, 1); /* of one point there is no curve */
	ck_assert_str_eq(is->curve[0].source, "measured: curve.txt");
	ck_contains(messages(&ctx), "take as long as their curves, at most 0.0 % off");
	ck_assert_int_eq(ap_machine_make(&ctx, make_topo(8, 8), is, &m), AP_OK);
	ap_axes_add(&axes, (struct ap_axis){1, 8});
	ap_group_make(ctx.arena, m, &axes, &g);
	ck_assert_double_eq_tol(ap_coll_time_s(m, AP_COLL_ALLREDUCE, &g, 4194304, &algorithm), 150e-6, 1e-15);
	ck_assert_str_eq(algorithm, "measured");
	ck_assert_double_eq_tol(ap_coll_time_s(m, AP_COLL_ALLREDUCE, &g, 2621440, NULL), 120e-6, 1e-15);
	c = read_curves("ranks,bytes,time_us\n8,1048576,190\n8,4194304,250\n");
	ck_assert_int_eq(ap_link_curves_chip(&ctx, &c, is, &again), AP_OK);
	ck_assert_int_eq(again->ncurve, 1);
	ck_assert_double_eq_tol(ap_curve_time_s(&again->curve[0], 2621440), 220e-6, 1e-15);
}
END_TEST

START_TEST(groups_that_cannot_be)
{
	const struct ap_link_curves c = read_curves("ranks,servers,bytes,time_us\n32,2,1048576,100\n");
	const struct ap_chip *is;

	ck_assert_int_eq(ap_link_curves_chip(&ctx, &c, get_chip("a100-80"), &is), AP_MEANING);
	ck_contains(messages(&ctx), "curve.txt:2: has 32 ranks on 2 servers, of which one has 8 devices of a100-80");
}
END_TEST
