/* SPDX-License-Identifier: Apache-2.0 */
/* Machines whose ranks are dealt to stages, and what goes from one stage to another. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/vec.h"
#include "hw/coll.h"
#include "hw/group.h"

#include "hw_test.h"

#define ASSERT_CLOSE(a, b) ck_assert_double_eq_tol((a) / (b), 1, 1e-12)

static uint64_t seed;

/* splitmix64 */
static uint32_t roll(uint32_t n)
{
	uint64_t z = seed += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return (uint32_t)((z ^ z >> 31) % n);
}

static void seed_from_environment(void)
{
	const char *s = getenv("AP_SEED");

	seed = s ? strtoull(s, NULL, 10) : 20240607;
	printf("AP_SEED=%" PRIu64 "\n", seed);
}

static const struct ap_machine *staged(const struct ap_machine *m, uint32_t nstage)
{
	const struct ap_machine *s = NULL;

	ap_machine_staged(&ctx, m, nstage, &s);
	return s;
}

static const struct ap_machine *staged_machine(int64_t ndev, int64_t per_server, const char *chip,
	uint32_t nstage)
{
	return staged(make_machine(ndev, per_server, chip), nstage);
}

/* Ranks dealt to servers by where(); devices numbered in the order they come. */
static const struct ap_machine *dealt_machine(uint32_t ndev, const char *chip,
	uint32_t (*where)(uint32_t r))
{
	struct ap_topo *topo = AP_NEW(ctx.arena, struct ap_topo);
	struct ap_place *place = AP_NEW_N(ctx.arena, struct ap_place, ndev);
	const struct ap_machine *m = NULL;

	*topo = *make_topo(ndev, 1); /* as many servers as there can be */
	for (uint32_t r = 0; r < ndev; r++) {
		place[r].server = where(r);
		for (uint32_t q = 0; q < r; q++)
			place[r].device_id += place[q].server == place[r].server;
	}
	topo->place = place;
	ck_assert_int_eq(ap_machine_make(&ctx, topo, get_chip(chip), &m), AP_OK);
	return m;
}

static void assert_axes(const struct ap_machine *a, const struct ap_machine *b)
{
	ck_assert_int_eq(a->naxis, b->naxis);
	for (int i = 0; i < a->naxis; i++) {
		ck_assert_int_eq(a->axis[i].size, b->axis[i].size);
		ck_assert_int_eq(a->axis[i].stride, b->axis[i].stride);
		ck_assert_int_eq(a->axis[i].level, b->axis[i].level);
	}
}

/* The axes of a machine whose bits are in the mask, as a group. */
static void group_of(const struct ap_machine *m, const struct ap_prime_axis *axis, int n,
	uint32_t mask, struct ap_group *g)
{
	struct ap_axes set = {0};

	for (int i = 0; i < n; i++)
		if (mask >> i & 1)
			ap_axes_add(&set, (struct ap_axis){axis[i].stride, axis[i].size});
	ap_group_make(ctx.arena, m, &set, g);
}

/* Every group of axes of stage-wide machine a costs there what it costs on b. */
static void assert_prices(const struct ap_machine *a, const struct ap_machine *b)
{
	for (uint32_t mask = 1; mask < 1u << a->naxis; mask++) {
		struct ap_group g, h;

		group_of(a, a->axis, a->naxis, mask, &g);
		group_of(b, a->axis, a->naxis, mask, &h);
		for (int c = 0; c < AP_COLL_SEND; c++)
			ck_assert_double_eq(ap_coll_time_s(a, (enum ap_coll)c, &g, 3e6, NULL),
				ap_coll_time_s(b, (enum ap_coll)c, &h, 3e6, NULL));
	}
}

TEST_FIXTURE(setup, teardown)

START_TEST(one_stage_is_the_machine)
{
	static const int64_t sizes[][2] = {{1, 1}, {8, 8}, {6, 4}, {24, 8}, {30, 5}};

	for (size_t i = 0; i < AP_COUNT(sizes); i++) {
		const struct ap_machine *m = make_machine(sizes[i][0], sizes[i][1], "ascend910a");
		const struct ap_machine *s = staged(m, 1);

		ck_assert_uint_eq(s->ndev, m->ndev);
		ck_assert_uint_eq(s->total, m->ndev);
		ck_assert_uint_eq(s->nstage, 1);
		ck_assert_int_eq(s->regular, m->regular);
		assert_axes(s, m);
		assert_prices(s, m);
	}
}
END_TEST

/* Stages that lie alike are each a machine: its axes, its groups, its prices. */
START_TEST(stages_alike_are_machines)
{
	static const struct {
		const char *chip;
		int64_t ndev, per_server;
		uint32_t nstage;
	} rows[] = {
		{"ascend910a", 8, 8, 2}, {"ascend910a", 32, 8, 4}, {"ascend910b3", 32, 8, 2},
		{"a100-80", 64, 8, 4}, {"a100-80", 48, 8, 2}, {"ascend910c", 64, 16, 2},
		{"ascend910a", 8, 8, 8},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_machine *s = staged_machine(rows[i].ndev, rows[i].per_server,
			rows[i].chip, rows[i].nstage);
		int64_t each = rows[i].ndev / rows[i].nstage;
		const struct ap_machine *one = make_machine(each,
			each < rows[i].per_server ? each : rows[i].per_server, rows[i].chip);

		ck_assert(s->regular);
		ck_assert_uint_eq(s->ndev, each);
		ck_assert_uint_eq(s->total, rows[i].ndev);
		assert_axes(s, one);
		assert_prices(s, one);
	}
}
END_TEST

/* Levels that no stage crosses stay for what is sent. */
START_TEST(outer_levels_stay)
{
	const struct ap_machine *s = staged_machine(32, 8, "ascend910a", 8);

	ck_assert_uint_eq(s->ndev, 4);
	ck_assert_int_eq(s->nlevel, 3); /* hccs, pcie, roce */
	ck_assert_uint_eq(s->ranks[2], 32);
	ck_assert_int_eq(s->naxis, 2);
	ck_assert_int_eq(s->axis[0].level, 0);
	ck_assert_int_eq(s->axis[1].level, 0);
	s = staged_machine(24, 8, "ascend910a", 2); /* the second stage begins within a server */
	ck_assert(!s->regular);
	ck_assert_uint_eq(s->ndev, 12);
	ck_assert_int_eq(s->naxis, 3);
	ck_assert_int_eq(s->axis[0].size, 3);
	ck_assert_int_eq(s->axis[0].stride, 4);
	ck_assert_int_eq(s->axis[0].level, 2);
	ck_assert_int_eq(s->axis[2].level, 0);
}
END_TEST

/* Ranks 0-3 | 4 5: the group of the first stage lies within a server, that of the second does not. */
START_TEST(the_slowest_stage_decides)
{
	const struct ap_machine *m = make_machine(6, 4, "a100-80"), *s = staged(m, 2);
	const double S = 1 << 28, nic = 0.9 * 25e9;
	struct ap_group g;

	group_of(s, s->axis, s->naxis, 1, &g);
	ck_assert_int_eq(g.size, 3);
	ck_assert_int_eq(g.nshape, 2);
	/* 3 | 4 5: a ring through one card on the first server */
	ASSERT_CLOSE(ap_coll_time_s(s, AP_COLL_ALLREDUCE, &g, S, NULL),
		30e-6 + 2 * (3.4e-6 + 14e-6 + S * 2 / 3 / nic));
	assert_prices(s, m);
}
END_TEST

START_TEST(ascend910a_sends)
{
	const double S = 1 << 26, fixed = 10e-6;
	const struct ap_machine *m = staged_machine(8, 8, "ascend910a", 2);

	/* four pairs over the bus between the two groups of four */
	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S), fixed + 1e-6 + S / (0.7 * 64e9 / 4));
	ck_assert_double_eq(ap_send_time_s(m, 1, 0, S), ap_send_time_s(m, 0, 1, S));
	m = staged_machine(8, 8, "ascend910a", 4);
	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S), fixed + 0.5e-6 + S / (0.7 * 30e9)); /* a link each */
	ASSERT_CLOSE(ap_send_time_s(m, 1, 2, S), fixed + 1e-6 + S / (0.7 * 64e9 / 2));
	m = staged_machine(16, 8, "ascend910a", 4);
	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S), fixed + 1e-6 + S / (0.7 * 64e9 / 4));
	ASSERT_CLOSE(ap_send_time_s(m, 1, 2, S), fixed + 1.5e-6 + S / (0.7 * 12.5e9));
	ASSERT_CLOSE(ap_send_time_s(m, 3, 0, S), fixed + 1.5e-6 + S / (0.7 * 12.5e9));
}
END_TEST

START_TEST(other_chips_send)
{
	const double S = 1 << 26;
	const struct ap_machine *m = staged_machine(16, 8, "ascend910b3", 2);

	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S), 10e-6 + 1.5e-6 + S / (0.7 * 25e9));
	m = staged_machine(16, 8, "ascend910b3", 4);
	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S), 10e-6 + 0.5e-6 + S / (0.7 * 28e9));
	ASSERT_CLOSE(ap_send_time_s(m, 1, 2, S), 10e-6 + 1.5e-6 + S / (0.7 * 25e9));
	m = staged_machine(32, 8, "a100-80", 8);
	ASSERT_CLOSE(ap_send_time_s(m, 2, 3, S), 30e-6 + 3.4e-6 + S / (0.76 * 300e9));
	ASSERT_CLOSE(ap_send_time_s(m, 3, 4, S), 30e-6 + 14e-6 + S / (0.9 * 25e9));
	m = staged_machine(16, 16, "ascend910c", 16); /* two dies of a chip, then the switch */
	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S),
		m->chip->collective_fixed_s + 0.2e-6 + S / (0.7 * 224e9));
	ASSERT_CLOSE(ap_send_time_s(m, 1, 2, S),
		m->chip->collective_fixed_s + 0.5e-6 + S / (0.85 * 196e9));
}
END_TEST

START_TEST(the_slowest_pair_decides)
{
	const double S = 1 << 26;
	const struct ap_machine *m = staged_machine(6, 4, "a100-80", 2);

	/* 0 to 3 stays in the server, 1 to 4 and 2 to 5 leave it */
	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S), 30e-6 + 14e-6 + S / (0.9 * 25e9));
	m = staged_machine(6, 4, "a100-80", 3);
	ASSERT_CLOSE(ap_send_time_s(m, 0, 1, S), 30e-6 + 3.4e-6 + S / (0.76 * 300e9));
	ASSERT_CLOSE(ap_send_time_s(m, 1, 2, S), 30e-6 + 14e-6 + S / (0.9 * 25e9));
}
END_TEST

static uint32_t alternating(uint32_t r)
{
	return r % 2;
}

/* Ranks that alternate between two servers: counterparts share one. */
START_TEST(dealt_ranks_send)
{
	const double S = 1 << 26, fixed = 10e-6;
	const struct ap_machine *m = dealt_machine(16, "ascend910a", alternating);
	const struct ap_machine *s = staged(m, 2);

	ASSERT_CLOSE(ap_send_time_s(s, 0, 1, S), fixed + 1e-6 + S / (0.7 * 64e9 / 4));
	s = staged(m, 8); /* a pair on each server */
	ASSERT_CLOSE(ap_send_time_s(s, 0, 1, S), fixed + 0.5e-6 + S / (0.7 * 30e9));
	ASSERT_CLOSE(ap_send_time_s(s, 0, 4, S), fixed + 1e-6 + S / (0.7 * 64e9));
	s = staged(m, 16);
	ASSERT_CLOSE(ap_send_time_s(s, 0, 1, S), fixed + 1.5e-6 + S / (0.7 * 12.5e9));
}
END_TEST

START_TEST(nothing_to_send)
{
	const struct ap_machine *m = staged_machine(8, 8, "ascend910a", 4);

	ck_assert_double_eq(ap_send_time_s(m, 2, 2, 1e9), 0);
	ck_assert_double_eq(ap_send_time_s(m, 0, 1, 0), 0);
	ck_assert_double_eq(ap_send_time_s(make_machine(1, 1, "a100-80"), 0, 0, 1e9), 0);
}
END_TEST

/* Bandwidth of one pair over level l, which `sharers` pairs of a block use; worked out from the
 * profile. */
static double slow_Bps(const struct ap_link_level *level, uint32_t sharers)
{
	double Bps = level->bandwidth_Bps * level->efficiency;

	if (level->kind == AP_LINK_MESH && level->nlinks)
		return Bps * level->links[0];
	return level->kind == AP_LINK_BUS ? Bps / sharers : Bps;
}

static int join_of(const struct ap_machine *m, uint32_t a, uint32_t b)
{
	for (int l = 0; l < m->nlevel; l++)
		if (m->block[l][a] == m->block[l][b])
			return l;
	ck_abort_msg("no level joins ranks %u and %u", a, b);
}

/* The same, pair against pair. */
static double slow_send_s(const struct ap_machine *m, uint32_t from, uint32_t to, double bytes)
{
	double worst = 0;

	for (uint32_t r = 0; r < m->ndev; r++) {
		uint32_t a = from * m->ndev, b = to * m->ndev, sharers = 0;
		int l = join_of(m, a + r, b + r);

		for (uint32_t q = 0; q < m->ndev; q++)
			sharers += join_of(m, a + q, b + q) == l &&
				m->block[l][a + q] == m->block[l][a + r];
		worst = fmax(worst, m->level[l].latency_s + bytes / slow_Bps(&m->level[l], sharers));
	}
	return m->chip->collective_fixed_s + worst;
}

static uint32_t by_chance(uint32_t r)
{
	(void)r;
	return roll(5);
}

START_TEST(sends_equal_their_enumeration)
{
	static const char *const chips[] = {"ascend910a", "ascend910b3", "a100-80", "v100-32"};

	seed_from_environment();
	for (int round = 0; round < 400; round++) {
		uint32_t each = roll(9) + 1, nstage = roll(5) + 2, n = each * nstage;
		const char *chip = chips[roll(4)];
		const struct ap_machine *m = roll(3) ? make_machine(n, roll(2) ? 8 : roll(8) + 1, chip)
			: dealt_machine(n, chip, by_chance);
		const struct ap_machine *s = staged(m, nstage);
		uint32_t from = roll(nstage), to = (from + 1 + roll(nstage - 1)) % nstage;
		double last = 0;

		for (double bytes = 1; bytes < 1e10; bytes *= 10) {
			double t = ap_send_time_s(s, from, to, bytes);

			ck_assert_double_eq(t, slow_send_s(s, from, to, bytes));
			ck_assert_double_eq(t, ap_send_time_s(s, to, from, bytes));
			ck_assert_double_gt(t, last);
			last = t;
		}
		assert_prices(s, m);
	}
}
END_TEST

/* Of each stage of 4,096 ranks three on every server, and four on the last one. */
static uint32_t many_servers(uint32_t r)
{
	r %= 4096;
	return r < 4092 ? r / 3 : 1364 + (r - 4092) / 4;
}

START_TEST(busy_buses_are_found_among_many)
{
	const double S = 1 << 26;
	const struct ap_machine *s = staged(dealt_machine(8192, "ascend910a", many_servers), 2);

	/* two of three pairs cross the bus on each of 1,364 servers, all four on the last */
	ASSERT_CLOSE(ap_send_time_s(s, 0, 1, S), 10e-6 + 1e-6 + S / (0.7 * 64e9 / 4));
}
END_TEST

static const struct ap_machine *divided(const struct ap_machine *m, uint32_t n, const uint32_t *devices)
{
	const struct ap_machine *d = NULL;

	ap_machine_divided(&ctx, m, n, devices, &d);
	return d;
}

START_TEST(unequal_stages_are_machines)
{
	static const uint32_t devices[] = {8, 16, 8, 4, 4};
	static const uint32_t like[] = {0, 1, 0, 3, 3}, first[] = {0, 8, 24, 32, 36};
	const struct ap_machine *m = make_machine(40, 8, "ascend910a"), *d = divided(m, 5, devices);

	ck_assert_uint_eq(d->nstage, 5);
	ck_assert_uint_eq(d->total, 40);
	ck_assert_uint_eq(d->ndev, 16); /* of the largest */
	for (int32_t s = 0; s < 5; s++) {
		const struct ap_machine *own = ap_machine_at(d, s);

		ck_assert_uint_eq(ap_machine_first(d, s), first[s]);
		ck_assert_uint_eq(d->part[s].like, like[s]);
		ck_assert_ptr_eq(own, ap_machine_at(d, (int32_t)like[s]));
		ck_assert_uint_eq(own->ndev, devices[s]);
		ck_assert_uint_eq(own->total, devices[s]);
		ck_assert(!own->part && own->nstage == 1);
	}
	assert_prices(make_machine(8, 8, "ascend910a"), ap_machine_at(d, 0));
	assert_prices(make_machine(16, 8, "ascend910a"), ap_machine_at(d, 1));
}
END_TEST

/* Equal numbers of devices that lie differently are told apart: 4 | 4 and 3 | 1. */
START_TEST(stages_across_servers_differ)
{
	static const uint32_t devices[] = {4, 1, 4, 3};
	const struct ap_machine *d = divided(make_machine(12, 8, "a100-80"), 4, devices);
	const double S = 1 << 28;
	struct ap_group g;

	ck_assert_uint_eq(d->part[2].like, 2);
	ck_assert_ptr_ne(ap_machine_at(d, 0), ap_machine_at(d, 2));
	ap_group_make(ctx.arena, ap_machine_at(d, 0), &(struct ap_axes){1, {{1, 4}}}, &g);
	ck_assert_double_eq(ap_coll_time_s(ap_machine_at(d, 0), AP_COLL_ALLREDUCE, &g, S, NULL),
		30e-6 + 2 * (3 * 3.4e-6 + S * 3 / 4 / (0.76 * 300e9)));
	ap_group_make(ctx.arena, ap_machine_at(d, 2), &(struct ap_axes){1, {{1, 4}}}, &g);
	ck_assert_double_gt(ap_coll_time_s(ap_machine_at(d, 2), AP_COLL_ALLREDUCE, &g, S, NULL),
		S * 3 / 4 / (0.9 * 25e9)); /* over the card of rank 8 */
}
END_TEST

START_TEST(equal_stages_are_no_others)
{
	static const uint32_t devices[] = {4, 4, 4, 4};
	const struct ap_machine *m = make_machine(16, 8, "ascend910a"), *d = divided(m, 4, devices);
	const struct ap_machine *s = staged(m, 4);

	ck_assert(!d->part && d->regular == s->regular && d->ndev == s->ndev && d->nstage == s->nstage);
	assert_axes(d, s);
	for (int32_t k = 0; k < 4; k++) {
		ck_assert_ptr_eq(ap_machine_at(d, k), d);
		ck_assert_uint_eq(ap_machine_first(d, k), 4 * (uint32_t)k);
	}
}
END_TEST

/* The axes of all stages together have the primes of the least common multiple. */
START_TEST(axes_of_unequal_stages)
{
	static const uint32_t devices[] = {4, 6, 18, 1};
	const struct ap_machine *d = divided(make_machine(29, 8, "a100-80"), 4, devices);
	int twos = 0, threes = 0;

	for (int i = 0; i < d->naxis; i++) {
		twos += d->axis[i].size == 2;
		threes += d->axis[i].size == 3;
	}
	ck_assert_int_eq(d->naxis, 4);
	ck_assert_int_eq(twos, 2);
	ck_assert_int_eq(threes, 2);
}
END_TEST

START_TEST(sends_to_more_and_to_fewer)
{
	const double S = 1 << 26, nvlink = 0.76 * 300e9, nic = 0.9 * 25e9;
	const struct ap_machine *m = make_machine(16, 8, "a100-80");
	const struct ap_sent more[] = {{0, 2, S}, {0, 3, S}, {1, 4, S}, {1, 5, S}};
	const struct ap_sent fewer[] = {{2, 0, S}, {3, 0, S / 2}, {4, 1, S}};
	const struct ap_sent far[] = {{7, 6, S}, {7, 8, 3 * S}, {5, 9, S}};

	ASSERT_CLOSE(ap_sends_time_s(ctx.scratch, m, more, 4), 30e-6 + 2 * 3.4e-6 + 2 * S / nvlink);
	ASSERT_CLOSE(ap_sends_time_s(ctx.scratch, m, fewer, 3), 30e-6 + 2 * 3.4e-6 + 1.5 * S / nvlink);
	/* rank 7 sends over both at once */
	ASSERT_CLOSE(ap_sends_time_s(ctx.scratch, m, far, 3), 30e-6 + 3.4e-6 + 14e-6 + 3 * S / nic);
	ck_assert_double_eq(ap_sends_time_s(ctx.scratch, m, more, 0), 0);
	m = make_machine(8, 8, "ascend910a"); /* four of them share the bus to the other four */
	ASSERT_CLOSE(ap_sends_time_s(ctx.scratch, m, (const struct ap_sent[]){{0, 4, S}, {0, 5, S}, {1, 6, S}}, 3),
		10e-6 + 2 * 1e-6 + 3 * S / (0.7 * 64e9));
}
END_TEST

/* To as many, one each, they are what ap_send_time_s() says. */
START_TEST(sends_to_counterparts)
{
	static const char *const chips[] = {"ascend910a", "ascend910b3", "a100-80", "v100-32"};

	seed_from_environment();
	for (int round = 0; round < 200; round++) {
		uint32_t each = roll(9) + 1, nstage = roll(4) + 2, n = each * nstage;
		const char *chip = chips[roll(4)];
		const struct ap_machine *m = roll(3) ? make_machine(n, roll(2) ? 8 : roll(8) + 1, chip)
			: dealt_machine(n, chip, by_chance);
		const struct ap_machine *s = staged(m, nstage);
		uint32_t from = roll(nstage), to = (from + 1 + roll(nstage - 1)) % nstage;
		struct ap_sent sent[9];

		for (uint32_t r = 0; r < each; r++)
			sent[r] = (struct ap_sent){from * each + r, to * each + r, 1e6};
		ASSERT_CLOSE(ap_sends_time_s(ctx.scratch, s, sent, each), ap_send_time_s(s, from, to, 1e6));
	}
}
END_TEST
