/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/vec.h"
#include "hw/coll.h"
#include "hw/group.h"

#include "hw_test.h"

static const char *winner; /* algorithm of the last time_s() */

/* Seconds over groups of one axis. */
static double time_s(
	const struct ap_machine *m, enum ap_coll c, int32_t stride, int32_t size, double bytes)
{
	struct ap_axes set = {0};
	struct ap_group g;

	ap_axes_add(&set, (struct ap_axis){stride, size});
	ap_group_make(ctx.arena, m, &set, &g);
	return ap_coll_time_s(m, c, &g, bytes, &winner);
}

#define ASSERT_CLOSE(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-12)

TEST_FIXTURE(setup, teardown)

START_TEST(collectives_are_rows)
{
	ck_assert_str_eq(ap_coll_name(AP_COLL_ALLREDUCE), "AllReduce");
	ck_assert_str_eq(ap_coll_name(AP_COLL_ALLTOALL), "AlltoAll");
	ck_assert_int_eq(ap_coll_adjoint(AP_COLL_ALLGATHER), AP_COLL_REDUCESCATTER);
	for (int c = 0; c < AP_COLL_COUNT; c++)
		ck_assert_int_eq(ap_coll_adjoint(ap_coll_adjoint((enum ap_coll)c)), c);
}
END_TEST

START_TEST(groups_of_one_cost_nothing)
{
	for (int c = 0; c < AP_COLL_COUNT; c++) {
		ck_assert_double_eq(
			time_s(make_machine(8, 8, "a100-80"), (enum ap_coll)c, 1, 1, 1e9), 0);
		ck_assert_double_eq(
			time_s(make_machine(1, 1, "a100-80"), (enum ap_coll)c, 1, 1, 1e9), 0);
	}
}
END_TEST

/* The whole buffer goes once along a chain: seven hops over NVLink's 300 GB/s; a small one, with flags, down a
 * tree three deep. */
START_TEST(broadcast_law)
{
	const struct ap_machine *m = make_machine(8, 8, "a100-80");
	const double S = 1 << 30, fixed = 30e-6, a = 3.4e-6;

	ASSERT_CLOSE(time_s(m, AP_COLL_BROADCAST, 1, 8, S), fixed + 7 * a + S / (0.76 * 300e9));
	ck_assert_str_eq(winner, "ring");
	ASSERT_CLOSE(time_s(m, AP_COLL_BROADCAST, 1, 8, 1024), fixed + 3 * a + 2048 / (0.76 * 300e9));
	ck_assert_str_eq(winner, "tree");
	ASSERT_CLOSE(time_s(m, AP_COLL_BROADCAST, 1, 2, S), fixed + a + S / (0.76 * 300e9));
}
END_TEST

/* 910B: a link of 28 GB/s to each other rank, 70 % of it reached: n ranks have n - 1 links. */
START_TEST(full_mesh_law)
{
	const struct ap_machine *m = make_machine(8, 8, "ascend910b3");
	const double S = 1 << 30, fixed = 10e-6, a = 0.5e-6;

	ASSERT_CLOSE(
		time_s(m, AP_COLL_ALLREDUCE, 1, 2, S), fixed + 2 * (1 * a + S / 2 / (0.7 * 28e9)));
	ck_assert_str_eq(winner, "ring");
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, 4, S),
		fixed + 2 * (3 * a + S * 3 / 4 / (0.7 * 84e9)));
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, 8, S),
		fixed + 2 * (7 * a + S * 7 / 8 / (0.7 * 196e9)));
	/* gathering by doubling: three steps, the same volume */
	ASSERT_CLOSE(
		time_s(m, AP_COLL_ALLGATHER, 1, 8, S), fixed + 3 * a + S * 7 / 8 / (0.7 * 196e9));
	ASSERT_CLOSE(time_s(m, AP_COLL_REDUCESCATTER, 2, 4, S),
		fixed + 2 * a + S * 3 / 4 / (0.7 * 84e9));
	ck_assert_str_eq(winner, "tree");
	/* all-gather as measured over 2, 4, 8 devices: 38, 64, 149 GB/s */
	ck_assert_double_eq_tol(S / time_s(m, AP_COLL_ALLGATHER, 1, 2, S) / 38e9, 1, 0.05);
	ck_assert_double_eq_tol(S / time_s(m, AP_COLL_ALLGATHER, 1, 4, S) / 64e9, 1, 0.25);
	ck_assert_double_eq_tol(S / time_s(m, AP_COLL_ALLGATHER, 1, 8, S) / 149e9, 1, 0.06);
}
END_TEST

START_TEST(a_switch_does_not_care_for_the_group)
{
	const struct ap_machine *m = make_machine(8, 8, "a100-80");
	const double S = 1 << 30, a = 3.4e-6, B = 0.76 * 300e9;

	for (int n = 2; n <= 8; n *= 2)
		ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, n, S),
			30e-6 + 2 * ((n - 1) * a + S * (n - 1) / n / B));
	/* a kilobyte is all latency, and the tree has less of it */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, 8, 1024), 30e-6 + 2 * (3 * a + 2 * 1024 / B));
	ck_assert_str_eq(winner, "tree");
}
END_TEST

/* Published all-reduce times over eight A100 behind a switch. */
START_TEST(all_reduces_as_measured)
{
	static const struct {
		double bytes, seconds, tolerance;
	} rows[] = {
		{4194304, 95.8e-6, 0.25},
		{16777216, 232.4e-6, 0.25},
		{67108864, 579.9e-6, 0.10},
		{268435456, 2162.3e-6, 0.05},
		{1073741824, 8193.0e-6, 0.03},
	};
	const struct ap_machine *m = make_machine(8, 8, "a100-80");

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		ck_assert_double_eq_tol(
			time_s(m, AP_COLL_ALLREDUCE, 1, 8, rows[i].bytes) / rows[i].seconds, 1,
			rows[i].tolerance);
}
END_TEST

/* A group drives the cards of its members: measured 44.7 GB/s with 8 on each of two servers, 20.8
 * with 4 and 8.1 with one. */
START_TEST(cards_follow_members)
{
	const struct ap_machine *m = make_machine(16, 8, "a100-80");
	const double S = 1 << 30, nic = 0.9 * 25e9;
	double busbw[5] = {0};

	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 8, 2, S), 30e-6 + 2 * (14e-6 + S / 2 / nic));
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, 16, S),
		30e-6 + 2 * (14 * 3.4e-6 + 14e-6 + S * 15 / 16 / (8 * nic)));
	ck_assert_str_eq(winner, "ring");
	/* NCCL has no hierarchical algorithm: a ring through both servers, over four cards of each */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 2, 8, S),
		30e-6 + 2 * (6 * 3.4e-6 + 14e-6 + S * 7 / 8 / (4 * nic)));
	ck_assert_str_eq(winner, "ring");
	for (int i = 1; i <= 4; i++) {
		int n = 1 << i;

		busbw[i] = 2. * (n - 1) / n * S / time_s(m, AP_COLL_ALLREDUCE, 16 / n, n, S);
		ck_assert_double_gt(busbw[i], 1.5 * busbw[i - 1]);
	}
	ck_assert_double_eq_tol(busbw[4] / busbw[3], 44.7 / 20.8, 0.4);
	ck_assert_double_eq_tol(busbw[4] / busbw[1], 44.7 / 8.1, 2.6);
}
END_TEST

START_TEST(a_bus_is_shared_by_all_its_ranks)
{
	const struct ap_machine *m = make_machine(8, 8, "ascend910a");
	const double S = 1 << 30, hccs = 0.7 * 30e9, pcie = 0.7 * 64e9 / 8;

	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 4, 2, S), 10e-6 + 2 * (1e-6 + S / 2 / pcie));
	/* inside by the mesh's three links, across a quarter of the buffer, and back */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, 8, S),
		10e-6 + 2 * (3 * 0.5e-6 + S * 3 / 4 / (3 * hccs)) + 2 * (1e-6 + S / 4 / 2 / pcie));
	ck_assert_str_eq(winner, "hierarchical");
}
END_TEST

START_TEST(all_to_all_is_pairwise)
{
	const struct ap_machine *m = make_machine(16, 8, "ascend910b3");
	const double S = 1 << 28, part = S / 16;

	ASSERT_CLOSE(time_s(m, AP_COLL_ALLTOALL, 1, 16, S),
		10e-6 + 7 * (0.5e-6 + part / (0.7 * 196e9)) + 8 * (1.5e-6 + part / (0.7 * 25e9)));
	ck_assert_str_eq(winner, "pairwise");
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLTOALL, 8, 2, S), 10e-6 + 1.5e-6 + S / 2 / (0.7 * 25e9));
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLTOALL, 1, 2, S), 10e-6 + 0.5e-6 + S / 2 / (0.7 * 28e9));
}
END_TEST

/* A part sends to both sides at once: over two of a mesh's links, or over one to the next server. */
START_TEST(neighbours_use_their_own_links)
{
	const struct ap_machine *m = make_machine(16, 8, "ascend910b3");
	const double S = 1 << 28, fixed = 10e-6, a = 0.5e-6, link = 0.7 * 28e9, nic = 0.7 * 25e9;

	ASSERT_CLOSE(time_s(m, AP_COLL_NEIGHBOREXCHANGE, 1, 2, S), fixed + a + S / link);
	ck_assert_str_eq(winner, "neighbours");
	ASSERT_CLOSE(time_s(m, AP_COLL_NEIGHBOREXCHANGE, 1, 4, S), fixed + a + S / (2 * link));
	ASSERT_CLOSE(time_s(m, AP_COLL_NEIGHBOREXCHANGE, 1, 8, S), fixed + a + S / (2 * link));
	/* two servers: rank 7 has one of its neighbours on the other one */
	ASSERT_CLOSE(time_s(m, AP_COLL_NEIGHBOREXCHANGE, 1, 16, S), fixed + 1.5e-6 + S / 2 / nic);
	ASSERT_CLOSE(time_s(m, AP_COLL_NEIGHBOREXCHANGE, 8, 2, S), fixed + 1.5e-6 + S / nic);
}
END_TEST

/* A part goes to the next rank, over one of a mesh's links, seven times of eight ranks; each is a call. */
START_TEST(parts_go_round)
{
	const struct ap_machine *m = make_machine(16, 8, "ascend910b3");
	const double S = 1 << 28, fixed = 10e-6, a = 0.5e-6, link = 0.7 * 28e9, nic = 0.7 * 25e9;

	ASSERT_CLOSE(time_s(m, AP_COLL_RING, 1, 2, S), fixed + a + S / 2 / link);
	ck_assert_str_eq(winner, "rounds");
	ASSERT_CLOSE(time_s(m, AP_COLL_RING, 1, 8, S), 7 * (fixed + a + S / 8 / link));
	/* one rank of each server sends to the other server */
	ASSERT_CLOSE(time_s(m, AP_COLL_RING, 1, 16, S), 15 * (fixed + 1.5e-6 + S / 16 / nic));
	ASSERT_CLOSE(time_s(m, AP_COLL_RING, 8, 2, S), fixed + 1.5e-6 + S / 2 / nic);
}
END_TEST

/* But for what uses a single link of a mesh, which may be slower than a card. */
START_TEST(near_beats_far)
{
	const char *chip;

	for (size_t i = 0; (chip = ap_chip_at(i, NULL)); i++) {
		const struct ap_machine *m = make_machine(64, 8, chip);

		for (int c = 0; c < AP_COLL_COUNT; c++)
			for (double bytes = 1; c != AP_COLL_RING && bytes < 1e10; bytes *= 10)
				ck_assert_double_lt(time_s(m, (enum ap_coll)c, 1, 8, bytes),
					time_s(m, (enum ap_coll)c, 8, 8, bytes));
	}
}
END_TEST

START_TEST(unaligned_groups_pay_for_the_slowest)
{
	const struct ap_machine *m = make_machine(6, 4, "a100-80"); /* ranks 0-3 | 4-5 */
	const double S = 1 << 30, nic = 0.9 * 25e9, nvlink = 0.76 * 300e9, a = 14e-6, b = 3.4e-6;

	/* 0 2 | 4: a ring through one card on the second server */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 2, 3, S), 30e-6 + 2 * (b + a + S * 2 / 3 / nic));
	/* all six: two cards on the second server */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, 6, S),
		30e-6 + 2 * (4 * b + a + S * 5 / 6 / 2 / nic));
	/* the two ranks of the second server gather from four, by their own cards */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLTOALL, 1, 6, S),
		30e-6 + b + S / 6 / nvlink + 4 * (a + S / 6 / nic));
	/* 0 3 inside, 1 | 4 across: as the one across */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 3, 2, S), 30e-6 + 2 * (a + S / 2 / nic));
	/* all inside */
	ASSERT_CLOSE(time_s(m, AP_COLL_ALLREDUCE, 1, 2, S), 30e-6 + 2 * (b + S / 2 / nvlink));
}
END_TEST

START_TEST(order_of_ranks_matters_by_place_only)
{
	struct ap_topo topo = *make_topo(16, 8);
	struct ap_place place[16];
	const struct ap_machine *straight = make_machine(16, 8, "ascend910b3"), *dealt = NULL;
	const double S = 1 << 26;

	for (uint32_t r = 0; r < 16; r++) /* servers alternate */
		place[r] = (struct ap_place){.server = r % 2, .device_id = (int32_t)(r / 2)};
	topo.place = place;
	ck_assert_int_eq(ap_machine_make(&ctx, &topo, get_chip("ascend910b3"), &dealt), AP_OK);
	for (int c = 0; c < AP_COLL_COUNT; c++) {
		enum ap_coll k = (enum ap_coll)c;

		ck_assert_double_eq(time_s(dealt, k, 2, 8, S), time_s(straight, k, 1, 8, S));
		ck_assert_double_eq(time_s(dealt, k, 1, 2, S), time_s(straight, k, 8, 2, S));
		ck_assert_double_eq(time_s(dealt, k, 1, 16, S), time_s(straight, k, 1, 16, S));
	}
}
END_TEST

/* So does a part of it, less: of two buffers the larger one takes less for each byte. */
START_TEST(time_is_positive_finite_and_grows)
{
	static const char *const chips[] = {
		"ascend910a", "ascend910b3", "ascend910c", "v100-32", "a100-80", "gb200-186"};
	static const int64_t devices[][2] = {
		{8, 8}, {6, 4}, {64, 8}, {1000, 8}, {30, 5}, {65536, 8}};

	for (int i = 0; i < 6 * 6; i++) {
		const int64_t *d = devices[i % 6];
		const struct ap_machine *m = make_machine(d[0], d[1], chips[i / 6]);

		for (int k = 0; k < m->naxis * AP_COLL_COUNT; k++) {
			struct ap_prime_axis x = m->axis[k % m->naxis];
			double last = 0, share = INFINITY;

			for (double bytes = 0; bytes < 1e13; bytes = bytes * 3 + 1) {
				double t = time_s(
					m, (enum ap_coll)(k / m->naxis), x.stride, x.size, bytes);

				ck_assert(isfinite(t));
				ck_assert_double_gt(t, last);
				last = t;
				ck_assert(bytes == 0 || t / bytes <= share * (1 + 1e-12));
				share = bytes > 0 ? t / bytes : share;
			}
		}
	}
}
END_TEST

static double wanted_in(const void *of, int64_t parts)
{
	return fmin((double)parts, *(const double *)of);
}

/* What each rank needs goes over a network once to each server that has some who need it, and there to as many; to
 * all of them at once. */
START_TEST(relayed_bytes_cross_a_level_once)
{
	const struct ap_machine *m = make_machine(32, 8, "a100-80");
	const double most = 3, few = 1, alone = 2, all = 32, S = 1 << 30;
	struct ap_relay relay = {S, wanted_in, &most};
	struct ap_axes set = {0};
	struct ap_group g;
	double net_Bps = m->level[1].bandwidth_Bps * m->level[1].efficiency;
	double in_Bps = m->level[0].bandwidth_Bps * m->level[0].efficiency;
	double latency = m->level[1].latency_s + m->level[0].latency_s + m->chip->collective_fixed_s;

	if (m->level[1].kind == AP_LINK_BUS)
		net_Bps /= 8;
	ap_axes_add(&set, (struct ap_axis){1, 32});
	ap_group_make(ctx.arena, m, &set, &g);
	/* 3 of 4 servers, of which the own one is one as often as any: 9/4 times; there 3 of 32 ranks in all */
	ASSERT_CLOSE(ap_relay_time_s(m, &g, &relay), latency + fmax(S * 3 * 3 / 4 / net_Bps, S * 3 * 7 / 8 / in_Bps));
	relay.of = &few;
	ASSERT_CLOSE(ap_relay_time_s(m, &g, &relay), latency + fmax(S * 3 / 4 / net_Bps, S * 7 / 8 / in_Bps));
	relay.of = &all; /* in each server by all: inside 32 times, over the network 4 */
	ASSERT_CLOSE(ap_relay_time_s(m, &g, &relay), latency + fmax(S * 3 / net_Bps, S * 28 / in_Bps));
	/* inside a server alone */
	set = (struct ap_axes){0};
	ap_axes_add(&set, (struct ap_axis){1, 8});
	ap_group_make(ctx.arena, m, &set, &g);
	relay.of = &alone;
	ASSERT_CLOSE(ap_relay_time_s(m, &g, &relay), m->chip->collective_fixed_s + m->level[0].latency_s +
		S * 2 * 7 / 8 / in_Bps);
}
END_TEST
