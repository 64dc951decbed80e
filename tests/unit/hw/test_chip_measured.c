/* SPDX-License-Identifier: Apache-2.0 */
/* Chip profiles against published measurements. */
#include <math.h>

#include "base/vec.h"
#include "hw/coll.h"
#include "hw/group.h"

#include "hw_test.h"

/* Seconds of a collective over groups of one axis. */
static double time_s(
	const struct ap_machine *m, enum ap_coll c, int32_t stride, int32_t size, double bytes)
{
	struct ap_axes set = {0};
	struct ap_group g;

	ap_axes_add(&set, (struct ap_axis){stride, size});
	ap_group_make(ctx.arena, m, &set, &g);
	return ap_coll_time_s(m, c, &g, bytes, NULL);
}

#define ASSERT_NEAR(is, measured, tolerance)                                                       \
	ck_assert_double_eq_tol((is) / (measured), 1, (tolerance))

/* Microseconds of all-reduces of 1 MB, 2 MB, ... 1 GB over 2, 4 and 8 devices (vTrain's tables). */
enum { NSIZE = 11 };
static const double us[2][3][NSIZE] = {
	{ /* A100, behind a switch */
		{44.2, 53.4, 61.2, 86.9, 131.9, 230.0, 404.7, 763.6, 1455.8, 2838.4, 5442.8},
		{51.4, 55.7, 77.3, 116.8, 179.6, 284.2, 543.8, 998.6, 1929.0, 3720.0, 7259.4},
		{92.8, 93.2, 95.8, 134.3, 232.4, 358.1, 579.9, 1162.0, 2162.3, 4191.5, 8193.0},
	},
	{ /* V100, hybrid cube mesh */
		{70.1, 116.0, 208.6, 392.5, 764.1, 1508.9, 2998.9, 5968.0, 11915.0, 23807.0, 47610.0},
		{67.3, 95.3, 142.1, 177.8, 324.2, 618.4, 1202.1, 2364.8, 4714.0, 9437.4, 18869.0},
		{79.9, 101.3, 150.9, 237.9, 273.8, 479.3, 911.3, 1777.1, 3527.4, 7004.4, 13969.0},
	},
};

/* Mean error over the table; the largest goes to *worst. */
static double mean_error(const char *chip, const double us_of[3][NSIZE], double *worst)
{
	const struct ap_machine *m = make_machine(8, 8, chip);
	double sum = 0;

	*worst = 0;
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < NSIZE; k++) {
			double bytes = 1048576. * (1 << k);
			double s = time_s(m, AP_COLL_ALLREDUCE, 1, 2 << i, bytes);
			double error = fabs(s / (us_of[i][k] * 1e-6) - 1);

			sum += error;
			*worst = error > *worst ? error : *worst;
		}
	return sum / (3 * NSIZE);
}

TEST_FIXTURE(setup, teardown)

START_TEST(all_reduces_inside_a_server)
{
	double worst;

	ck_assert_double_lt(mean_error("a100-80", us[0], &worst), 0.1);
	ck_assert_double_lt(worst, 0.3); /* 1 MB over eight */
	ck_assert_double_lt(mean_error("v100-32", us[1], &worst), 0.05);
	ck_assert_double_lt(worst, 0.23);
}
END_TEST

/* Bus bandwidth of a large all-reduce in GB/s. */
static double bus_GBps(const char *chip, int32_t n)
{
	const double S = 1 << 30;

	return 2. * (n - 1) / n * S /
	       time_s(make_machine(8, 8, chip), AP_COLL_ALLREDUCE, 1, n, S) * 1e-9;
}

START_TEST(bus_bandwidths)
{
	ASSERT_NEAR(bus_GBps("a100-80", 8), 229.35, 0.02);
	ASSERT_NEAR(bus_GBps("a100-80", 4), 221.86, 0.04);
	/* one link, four, six */
	ASSERT_NEAR(bus_GBps("v100-16", 2), 22.55, 0.02);
	ASSERT_NEAR(bus_GBps("v100-16", 4), 85.36, 0.08);
	ASSERT_NEAR(bus_GBps("v100-16", 8), 134.51, 0.03);
}
END_TEST

/* Printed as bytes of the buffer a second: all-gather 173, all-reduce 89 over eight A800. */
START_TEST(a800_as_measured)
{
	const struct ap_machine *m = make_machine(8, 8, "a800-80");
	const double S = 1 << 30;

	ASSERT_NEAR(S / time_s(m, AP_COLL_ALLGATHER, 1, 8, S), 173e9, 0.03);
	ASSERT_NEAR(S / time_s(m, AP_COLL_ALLREDUCE, 1, 8, S), 89e9, 0.03);
}
END_TEST

/* The mesh of the 910B, opposite to a switch: 38, 64, 149 GB/s gathered and 18, 30, 72 reduced over 2,
 * 4 and 8 devices. */
START_TEST(mesh_of_910b_as_measured)
{
	static const char *const chips[] = {"ascend910b1", "ascend910b3", "ascend910b4-1"};
	static const double gather[] = {38e9, 64e9, 149e9}, reduce[] = {18e9, 30e9, 72e9},
			    tolerance[] = {0.1, 0.32, 0.1};
	const double S = 1 << 30;

	for (int c = 0; c < 3; c++) {
		const struct ap_machine *m = make_machine(8, 8, chips[c]);

		for (int i = 0; i < 3; i++) {
			ASSERT_NEAR(S / time_s(m, AP_COLL_ALLGATHER, 1, 2 << i, S), gather[i],
				tolerance[i]);
			ASSERT_NEAR(S / time_s(m, AP_COLL_ALLREDUCE, 1, 2 << i, S), reduce[i],
				tolerance[i]);
		}
	}
}
END_TEST

/* Between NPUs 167 GB/s in a node and 164 across nodes of a super node; each die has half of an NPU's
 * 25 GB/s beyond. */
START_TEST(levels_of_a3_as_measured)
{
	const struct ap_topo *topo = NULL;
	const struct ap_machine *m = NULL;
	const double S = 1 << 30;
	double near, far;

	ck_assert_int_eq(ap_topo_make_pods(&ctx, make_topo(64, 16), 32, &topo), AP_OK);
	ck_assert_int_eq(ap_machine_make(&ctx, topo, get_chip("ascend910c"), &m), AP_OK);
	ASSERT_NEAR(S / 2 / time_s(m, AP_COLL_ALLGATHER, 2, 2, S), 167e9, 0.01);
	ASSERT_NEAR(S / 2 / time_s(m, AP_COLL_ALLGATHER, 16, 2, S), 164e9, 0.01);
	ASSERT_NEAR(S / 2 / time_s(m, AP_COLL_ALLGATHER, 32, 2, S), 0.7 * 24.5e9, 0.01);
	near = time_s(m, AP_COLL_ALLGATHER, 2, 2, 1);
	far = time_s(m, AP_COLL_ALLGATHER, 16, 2, 1);
	ck_assert_double_le(far - near, 1e-6 + 1e-12);
}
END_TEST

/* SimuMax's fits to its measurements on the B200. */
START_TEST(collectives_of_b200_as_fitted)
{
	static const struct {
		enum ap_coll coll;
		double passes, efficiency, latency_us, fixed_us, tolerance;
	} rows[] = {
		{AP_COLL_ALLREDUCE, 2, 0.7424, 5.5183, 22.2316, 0.08},
		{AP_COLL_ALLGATHER, 1, 0.6735, 9.1828, 23.1049, 0.1},
		{AP_COLL_REDUCESCATTER, 1, 0.6731, 8.0325, 25.5604, 0.1},
		{AP_COLL_ALLTOALL, 1, 0.5968, 7.3039, 0, 0.2},
	};
	const struct ap_machine *m = make_machine(8, 8, "b200-180");

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		for (double bytes = 1 << 29; bytes < 1e10; bytes *= 2) {
			double fit = rows[i].passes * (7. / 8 * bytes / (rows[i].efficiency * 900e9) +
							      7 * rows[i].latency_us * 1e-6) +
				     rows[i].fixed_us * 1e-6;

			ASSERT_NEAR(time_s(m, rows[i].coll, 1, 8, bytes), fit, rows[i].tolerance);
		}
}
END_TEST

/* All 72 devices of a domain are as near as the four of a tray. */
START_TEST(one_domain_of_gb200)
{
	const struct ap_topo *topo = NULL;
	const struct ap_machine *m = NULL;
	const double S = 1 << 28;
	double tray, domain, beyond;

	ck_assert_int_eq(ap_topo_make_pods(&ctx, make_topo(144, 4), 72, &topo), AP_OK);
	ck_assert_int_eq(ap_machine_make(&ctx, topo, get_chip("gb200"), &m), AP_OK);
	tray = time_s(m, AP_COLL_ALLGATHER, 1, 2, S);
	domain = time_s(m, AP_COLL_ALLGATHER, 36, 2, S);
	beyond = time_s(m, AP_COLL_ALLGATHER, 72, 2, S);
	ck_assert_double_eq(domain, tray);
	ASSERT_NEAR(S / 2 / beyond, 0.9 * 50e9, 0.02);
}
END_TEST

struct product {
	double batch, m, n, k, tflops;
};

/* The model of products that the profiles are fitted for; TF/s. */
static double product_tflops(const struct ap_chip *c, double peak, const struct product *p)
{
	double s = c->fixed_s[AP_UNIT_CUBE] +
		   2 * p->batch * (p->m + c->matmul_half[0]) * (p->n + c->matmul_half[1]) *
			   (p->k + c->matmul_half[2]) / (peak * c->matmul_efficiency);

	return 2e-12 * p->batch * p->m * p->n * p->k / s;
}

static double mean_product_error(const char *chip, const struct product *p, size_t n)
{
	const struct ap_chip *c = get_chip(chip);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabs(product_tflops(c, c->peak_flops[AP_UNIT_CUBE][AP_FLOAT16], &p[i]) /
				    p[i].tflops -
			    1);
	return sum / (double)n;
}

#define MEAN_ERROR(chip, rows) mean_product_error(chip, rows, AP_COUNT(rows))

START_TEST(products_of_hopper_as_measured)
{
	static const struct product h100[] = { /* XLA's table */
		{1, 256, 256, 256, 6.45},
		{1, 512, 512, 256, 21.6},
		{1, 512, 512, 1024, 71.2},
		{1, 1024, 256, 2048, 113.2},
		{1, 512, 1024, 1024, 138.7},
		{1, 1024, 512, 1024, 141.3},
		{1, 2048, 512, 512, 142.8},
		{1, 256, 2048, 1024, 138.1},
		{1, 256, 2048, 2048, 215.8},
		{1, 2048, 2048, 256, 213},
		{1, 256, 4096, 1024, 225.2},
		{1, 1024, 1024, 1024, 236.3},
		{1, 512, 4096, 512, 236.3},
		{1, 2048, 1024, 512, 238.4},
		{1, 2048, 4096, 256, 299.3},
		{1, 1024, 4096, 512, 338.9},
		{1, 2048, 2048, 512, 345.5},
		{1, 512, 4096, 2048, 522.2},
		{1, 4096, 1024, 2048, 632},
		{1, 4096, 2048, 2048, 716.1},
		{1, 2048, 2048, 4096, 738},
		{1, 2048, 4096, 4096, 753.6},
		{4, 1024, 4096, 4096, 773.5},
	};
	static const struct product h800[] = { /* TileLang */
		{1, 8192, 8192, 256, 386}, {1, 8192, 8192, 512, 520}, {1, 8192, 8192, 1024, 628},
		{1, 8192, 8192, 2048, 705}, {1, 8192, 8192, 4096, 736}, {1, 8192, 8192, 8192, 758},
		{1, 8192, 8192, 16384, 766},
	};

	ck_assert_double_lt(MEAN_ERROR("h100-80", h100), 0.085);
	ck_assert_double_lt(MEAN_ERROR("h800-80", h800), 0.01);
}
END_TEST

START_TEST(products_of_others_as_measured)
{
	static const struct product v100[] = {{1, 8192, 8192, 8192, 95}};
	static const struct product a800[] = {{1, 16384, 16384, 16384, 286}};
	static const struct product b200[] = { /* forward, both backward; SimuMax */
		{1, 4096, 10240, 8192, 1451.6},
		{1, 10240, 8192, 4096, 1345.4},
		{1, 4096, 8192, 8192, 1116.8},
		{1, 4096, 57344, 8192, 1095.1},
		{1, 57344, 8192, 4096, 1020.6},
		{1, 4096, 28672, 8192, 1066.9},
		{1, 4096, 128256, 8192, 1096.6},
		{1, 128256, 8192, 4096, 1023.2},
		{1, 4096, 8192, 5120, 1446.3},
		{1, 4096, 8192, 4096, 1035.8},
		{1, 8192, 4096, 4096, 1283.2},
		{1, 4096, 8192, 28672, 1084.3},
		{1, 4096, 8192, 14336, 1071.6},
		{1, 8192, 14336, 4096, 1027.7},
	};

	ck_assert_double_lt(MEAN_ERROR("v100-32", v100), 0.02);
	ck_assert_double_lt(MEAN_ERROR("a800-80", a800), 0.03);
	ck_assert_double_lt(MEAN_ERROR("b200-180", b200), 0.12);
}
END_TEST
