/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/num.h"
#include "base/vec.h"
#include "hw/group.h"
#include "hw_test.h"

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

static struct ap_axes axes_of(int n, const struct ap_axis *axis)
{
	struct ap_axes set = {0};

	for (int i = 0; i < n; i++)
		ap_axes_add(&set, axis[i]);
	return set;
}

#define AXES(...)                                                                                  \
	axes_of(sizeof((struct ap_axis[]){__VA_ARGS__}) / sizeof(struct ap_axis),                  \
		(struct ap_axis[]){__VA_ARGS__})

TEST_FIXTURE(setup, teardown)

START_TEST(axes_merge_into_normal_form)
{
	struct ap_axes a = AXES({8, 2}, {4, 2});

	ck_assert_int_eq(a.n, 1);
	ck_assert_int_eq(a.axis[0].stride, 4);
	ck_assert_int_eq(a.axis[0].size, 4);
	a = AXES({1, 2}, {8, 3}, {4, 1});
	ck_assert_int_eq(a.n, 2);
	ck_assert_int_eq(a.axis[0].stride, 8);
	ck_assert_int_eq(a.axis[1].stride, 1);
	ck_assert_int_eq(ap_axes_size(&a), 6);
	ap_axes_add(&a, (struct ap_axis){2, 4}); /* closes the gap */
	ck_assert_int_eq(a.n, 1);
	ck_assert_int_eq(ap_axes_size(&a), 24);
}
END_TEST

START_TEST(groups_ascend)
{
	static const int64_t expected[] = {2, 3, 10, 11, 18, 19};
	struct ap_axes a = AXES({1, 2}, {8, 3});
	int64_t group[6];

	for (int r = 0; r < 6; r++) {
		ap_axes_group(&a, expected[r], group);
		ck_assert_mem_eq(group, expected, sizeof expected);
	}
}
END_TEST

/* A random ordered factorisation of n, outermost first, as axes. */
static int factorise(int32_t n, struct ap_axis *axis)
{
	int64_t primes[63];
	int count = (int)ap_primes(n, primes);
	int32_t stride = n;

	for (int i = count - 1; i > 0; i--) {
		int j = (int)roll((uint32_t)i + 1);
		int64_t swap = primes[i];

		primes[i] = primes[j];
		primes[j] = swap;
	}
	for (int i = 0; i < count; i++) {
		stride /= (int32_t)primes[i];
		axis[i] = (struct ap_axis){stride, (int32_t)primes[i]};
	}
	return count;
}

/* Some of the axes, in random order. */
static int choose(struct ap_axis *axis, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (roll(2)) {
			struct ap_axis swap = axis[i];

			axis[i] = axis[kept];
			axis[kept++] = swap;
		}
	return kept;
}

/* Ranks that differ from r in none but these coordinates, by their definition. */
static int64_t enumerate(const struct ap_axis *all, int nall, const struct ap_axes *set,
	int64_t ndev, int64_t r, int64_t *out)
{
	int64_t n = 0;

	for (int64_t q = 0; q < ndev; q++) {
		bool same = true;

		for (int i = 0; i < nall; i++) {
			bool free_axis = false;

			for (int k = 0; k < set->n; k++)
				free_axis |=
					all[i].stride >= set->axis[k].stride &&
					all[i].stride < set->axis[k].stride * set->axis[k].size;
			same &= free_axis ||
				q / all[i].stride % all[i].size == r / all[i].stride % all[i].size;
		}
		if (same)
			out[n++] = q;
	}
	return n;
}

START_TEST(axes_equal_their_enumeration)
{
	static int64_t group[400], expected[400];

	seed_from_environment();
	for (int round = 0; round < 2000; round++) {
		struct ap_axis all[16], some[16];
		int32_t ndev = (int32_t)roll(400) + 1;
		int nall = factorise(ndev, all), n;
		struct ap_axes set;
		int64_t r = roll((uint32_t)ndev), size;

		memcpy(some, all, sizeof all);
		n = choose(some, nall);
		set = axes_of(n, some);
		for (int i = 0; i + 1 < set.n; i++)
			ck_assert_int_gt(set.axis[i].stride,
				(int64_t)set.axis[i + 1].stride * set.axis[i + 1].size);
		size = enumerate(all, nall, &set, ndev, r, expected);
		ck_assert_int_eq(ap_axes_size(&set), size);
		ap_axes_group(&set, r, group);
		ck_assert_mem_eq(group, expected, (size_t)size * sizeof *group);
	}
}
END_TEST

START_TEST(levels_in_use)
{
	static const struct {
		const char *chip;
		int64_t ndev, per_server;
		int nlevel;
		const char *name[3];
		uint32_t ranks[3];
		bool regular;
	} rows[] = {
		{"ascend910a", 1, 8, 0, {NULL}, {0}, true},
		{"ascend910a", 4, 8, 1, {"hccs"}, {4}, true},
		{"ascend910a", 8, 8, 2, {"hccs", "pcie"}, {4, 8}, true},
		{"ascend910a", 16, 8, 3, {"hccs", "pcie", "roce"}, {4, 8, 16}, true},
		{"ascend910a", 8, 4, 2, {"hccs", "roce"}, {4, 8}, true},
		{"ascend910a", 8, 1, 1, {"roce"}, {8}, true},
		{"ascend910a", 6, 8, 2, {"hccs", "pcie"}, {4, 6}, false},
		{"ascend910b3", 64, 8, 2, {"hccs", "roce"}, {8, 64}, true},
		{"ascend910b3", 16, 16, 2, {"hccs", "roce"}, {8, 16}, true},
		{"a100-80", 6, 4, 2, {"nvlink", "ib"}, {4, 6}, false},
		{"a100-80", 12, 6, 2, {"nvlink", "ib"}, {6, 12}, true},
		{"a100-80", 1 << 20, 8, 2, {"nvlink", "ib"}, {8, 1 << 20}, true},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_machine *m =
			make_machine(rows[i].ndev, rows[i].per_server, rows[i].chip);

		ck_assert_int_eq(m->nlevel, rows[i].nlevel);
		ck_assert_int_eq(m->regular, rows[i].regular);
		for (int l = 0; l < m->nlevel; l++) {
			ck_assert_str_eq(m->level[l].name, rows[i].name[l]);
			ck_assert_uint_eq(m->ranks[l], rows[i].ranks[l]);
		}
		if (m->nlevel)
			ck_assert_uint_eq(m->nblock[m->nlevel - 1], 1);
	}
}
END_TEST

/* Super pods of the chip's kind of server, with links of their own. */
START_TEST(levels_of_super_pods)
{
	static const struct {
		const char *chip;
		int64_t ndev, per_server, per_pod; /* 0: none */
		int nlevel;
		const char *name[4];
		uint32_t ranks[4];
		int notes;
	} rows[] = {
		{"ascend910c", 64, 16, 0, 3, {"sio", "hccs", "roce"}, {2, 16, 64}, 0},
		{"ascend910c", 64, 16, 32, 4, {"sio", "hccs", "pod", "roce"}, {2, 16, 32, 64}, 0},
		{"ascend910c", 64, 16, 768, 3, {"sio", "hccs", "pod"}, {2, 16, 64}, 0},
		{"ascend910c", 64, 16, 16, 3, {"sio", "hccs", "roce"}, {2, 16, 64}, 0},
		{"gb200-186", 144, 4, 72, 2, {"nvlink", "ib"}, {72, 144}, 0},
		{"gb200-186", 144, 4, 0, 2, {"nvlink", "ib"}, {4, 144}, 0},
		{"gb200-186", 144, 72, 0, 2, {"nvlink", "ib"}, {72, 144}, 0},
		{"ascend910b3", 64, 8, 32, 2, {"hccs", "roce"}, {8, 64}, 1},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_topo *topo = make_topo(rows[i].ndev, rows[i].per_server);
		const struct ap_machine *m = NULL;

		ctx.diag = ap_diag_create(ctx.arena, false);
		if (rows[i].per_pod)
			ck_assert_int_eq(
				ap_topo_make_pods(&ctx, topo, rows[i].per_pod, &topo), AP_OK);
		ck_assert_int_eq(ap_machine_make(&ctx, topo, get_chip(rows[i].chip), &m), AP_OK);
		ck_assert_int_eq(m->nlevel, rows[i].nlevel);
		ck_assert(m->regular);
		for (int l = 0; l < m->nlevel; l++) {
			ck_assert_str_eq(m->level[l].name, rows[i].name[l]);
			ck_assert_uint_eq(m->ranks[l], rows[i].ranks[l]);
		}
		ck_assert_int_eq(said(AP_NOTE, "pod-level"), rows[i].notes);
	}
}
END_TEST

/* Sites of `servers` servers of eight each. */
static const struct ap_topo *sites_topo(uint32_t nsite, uint32_t servers)
{
	struct ap_topo *topo = AP_NEW(ctx.arena, struct ap_topo);
	uint32_t *of = AP_NEW_N(ctx.arena, uint32_t, nsite * servers);
	static const char *const id[] = {"a", "b", "c", "d"};

	*topo = *make_topo(nsite * servers * 8, 8);
	for (uint32_t s = 0; s < topo->nserver; s++)
		of[s] = s / servers;
	topo->cluster = (struct ap_tier){.n = nsite, .id = id, .of = of};
	return topo;
}

START_TEST(clusters_are_a_level)
{
	static const uint32_t ranks[] = {8, 32, 128};
	const struct ap_machine *m = NULL;

	ck_assert_int_eq(
		ap_machine_make(&ctx, sites_topo(4, 4), get_chip("ascend910b3"), &m), AP_OK);
	ck_assert_int_eq(m->nlevel, 3);
	ck_assert_mem_eq(m->ranks, ranks, sizeof ranks);
	ck_assert_str_eq(m->level[1].name, "roce");
	ck_assert_str_eq(m->level[2].name, "cluster");
	ck_assert_double_eq(m->level[2].bandwidth_Bps, m->level[1].bandwidth_Bps);
	ck_assert_int_eq(m->axis[0].level, 2);
	ck_assert_int_eq(m->axis[1].level, 2);
	ck_assert_int_eq(m->axis[2].level, 1);
	ck_assert_int_eq(said(AP_NOTE, "cluster-level"), 1);

	/* one site is no level, and sites of one server are not joined inside */
	ck_assert_int_eq(
		ap_machine_make(&ctx, sites_topo(1, 4), get_chip("ascend910b3"), &m), AP_OK);
	ck_assert_int_eq(m->nlevel, 2);
	ck_assert_int_eq(said(AP_NOTE, "cluster-level"), 1);
	ck_assert_int_eq(
		ap_machine_make(&ctx, sites_topo(4, 1), get_chip("ascend910b3"), &m), AP_OK);
	ck_assert_int_eq(m->nlevel, 2);
	ck_assert_str_eq(m->level[1].name, "cluster");
}
END_TEST

/* A profile may say what joins clusters. */
START_TEST(a_link_between_clusters)
{
	struct ap_chip chip = *get_chip("a100-80");
	const struct ap_machine *m = NULL;

	chip.level[2] = chip.level[1];
	chip.level[1].within = AP_WITHIN_CLUSTER;
	chip.level[2].name = "wan";
	chip.level[2].bandwidth_Bps = 1e9;
	chip.nlevel = 3;
	ck_assert_int_eq(ap_machine_make(&ctx, sites_topo(2, 2), &chip, &m), AP_OK);
	ck_assert_int_eq(m->nlevel, 3);
	ck_assert_str_eq(m->level[2].name, "wan");
	ck_assert_uint_eq(m->ranks[1], 16);
	ck_assert_int_eq(said(AP_NOTE, NULL), 0);
	/* and without clusters there is nothing for it to join */
	ck_assert_int_eq(ap_machine_make(&ctx, make_topo(32, 8), &chip, &m), AP_OK);
	ck_assert_int_eq(m->nlevel, 2);
	ck_assert_str_eq(m->level[1].name, "ib");
}
END_TEST

START_TEST(prime_axes)
{
	static const struct {
		const char *chip;
		int64_t ndev, per_server;
		int n;
		struct ap_prime_axis axis[6]; /* size, stride, level */
	} rows[] = {
		{"ascend910a", 1, 8, 0, {{0}}},
		{"ascend910a", 16, 8, 4, {{2, 8, 2}, {2, 4, 1}, {2, 2, 0}, {2, 1, 0}}},
		{"ascend910b3", 24, 8, 4, {{3, 8, 1}, {2, 4, 0}, {2, 2, 0}, {2, 1, 0}}},
		{"ascend910b3", 1000, 8, 6,
			{{5, 200, 1}, {5, 40, 1}, {5, 8, 1}, {2, 4, 0}, {2, 2, 0}, {2, 1, 0}}},
		{"a100-80", 12, 6, 3, {{2, 6, 1}, {3, 2, 0}, {2, 1, 0}}},
		{"a100-80", 6, 4, 2, {{3, 2, 1}, {2, 1, 0}}},
		{"a100-80", 7, 7, 1, {{7, 1, 0}}},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_machine *m =
			make_machine(rows[i].ndev, rows[i].per_server, rows[i].chip);

		ck_assert_int_eq(m->naxis, rows[i].n);
		for (int k = 0; k < m->naxis; k++) {
			ck_assert_int_eq(m->axis[k].size, rows[i].axis[k].size);
			ck_assert_int_eq(m->axis[k].stride, rows[i].axis[k].stride);
			ck_assert_int_eq(m->axis[k].level, rows[i].axis[k].level);
		}
	}
	ck_assert_int_eq(make_machine(1 << 20, 8, "a100-80")->naxis, 20);
}
END_TEST

/* ndev ranks dealt to servers in a random order; devices numbered in the order they come. */
static const struct ap_topo *shuffled_topo(uint32_t ndev, uint32_t per_server)
{
	struct ap_topo *topo = AP_NEW(ctx.arena, struct ap_topo);
	struct ap_place *place = AP_NEW_N(ctx.arena, struct ap_place, ndev);

	*topo = *make_topo(ndev, per_server);
	memcpy(place, topo->place, ndev * sizeof *place);
	for (uint32_t i = ndev - 1; i > 0; i--) {
		uint32_t j = roll(i + 1);
		struct ap_place swap = place[i];

		place[i] = place[j];
		place[j] = swap;
	}
	topo->place = place;
	return topo;
}

START_TEST(interleaved_servers)
{
	struct ap_topo topo = *make_topo(8, 4);
	struct ap_place place[8];
	const struct ap_machine *m = NULL;

	for (uint32_t r = 0; r < 8; r++)
		place[r] = (struct ap_place){.server = r % 2, .device_id = (int32_t)(r / 2)};
	topo.place = place;
	ck_assert_int_eq(ap_machine_make(&ctx, &topo, get_chip("a100-80"), &m), AP_OK);
	ck_assert(!m->regular);
	ck_assert_int_eq(m->naxis, 3);
	ck_assert_int_eq(m->axis[0].level, 0); /* ranks 0 and 4 share a server */
	ck_assert_int_eq(m->axis[1].level, 0);
	ck_assert_int_eq(m->axis[2].level, 1); /* ranks 0 and 1 do not */
}
END_TEST

/* The shape of one group, counted the slow way. */
static struct ap_group_shape slow_shape(const struct ap_machine *m, const int64_t *rank, int64_t n)
{
	struct ap_group_shape s = {0};

	for (int l = 0; l < m->nlevel; l++) {
		s.fan[l] = s.few[l] = s.members[l] = 1;
		for (uint32_t b = 0; b < m->nblock[l]; b++) {
			uint32_t subs = 0;

			for (int64_t i = 0; i < n; i++) {
				bool fresh = m->block[l][rank[i]] == b;

				for (int64_t k = 0; l && k < i; k++)
					fresh &= m->block[l - 1][rank[k]] !=
						 m->block[l - 1][rank[i]];
				subs += fresh;
			}
			if (subs > s.fan[l])
				s.fan[l] = subs;
			if (subs > 1 && (s.few[l] == 1 || subs < s.few[l]))
				s.few[l] = subs;
		}
		for (int64_t i = 0; l && i < n; i++) {
			uint32_t members = 0;

			for (int64_t k = 0; k < n; k++)
				members += m->block[l - 1][rank[k]] == m->block[l - 1][rank[i]];
			if (i == 0 || members < s.members[l])
				s.members[l] = members;
		}
	}
	return s;
}

/* Does the group hold exactly the shapes of all its groups? */
static void check_shapes(const struct ap_machine *m, const struct ap_group *g)
{
	static int64_t rank[200];
	bool met[200] = {false};

	for (int64_t r = 0; r < m->ndev; r++) {
		struct ap_group_shape s;
		int i = 0;

		ap_axes_group(&g->axes, r, rank);
		s = slow_shape(m, rank, g->size);
		while (i < g->nshape && memcmp(&s, &g->shape[i], sizeof s) != 0)
			i++;
		ck_assert_int_lt(i, g->nshape);
		met[i] = true;
	}
	for (int i = 0; i < g->nshape; i++)
		ck_assert(met[i]);
}

START_TEST(group_shapes_equal_their_enumeration)
{
	static const char *const chips[] = {"ascend910a", "ascend910b3", "a100-80"};
	int nested = 0, many = 0;

	seed_from_environment();
	for (int round = 0; round < 600; round++) {
		uint32_t ndev = roll(3) ? (roll(12) + 1) * (roll(8) + 1) : 1u << roll(7);
		uint32_t per_server = roll(2) ? 8 : roll(16) + 1;
		const struct ap_topo *topo = make_topo(ndev, per_server);
		const struct ap_machine *m = NULL;
		struct ap_axis all[16];
		struct ap_axes set;
		struct ap_group g;

		if (roll(4) == 0)
			topo = shuffled_topo(ndev, per_server);
		ck_assert_int_eq(ap_machine_make(&ctx, topo, get_chip(chips[roll(3)]), &m), AP_OK);
		set = axes_of(choose(all, factorise((int32_t)ndev, all)), all);
		ap_group_make(ctx.arena, m, &set, &g);
		ck_assert_int_eq(g.size, ap_axes_size(&set));
		check_shapes(m, &g);
		nested += m->regular && g.size > 1;
		many += g.nshape > 1;
	}
	ck_assert_int_gt(nested, 100); /* both ways were really taken */
	ck_assert_int_gt(many, 50);
}
END_TEST

START_TEST(groups_across_unequal_servers)
{
	const struct ap_machine *m = make_machine(6, 4, "a100-80");
	struct ap_axes whole = AXES({1, 6}), strided = AXES({2, 3}), pairs = AXES({3, 2});
	struct ap_group g;

	ap_group_make(ctx.arena, m, &whole, &g); /* ranks 0-3 and 4-5 */
	ck_assert_int_eq(g.nshape, 1);
	ck_assert_uint_eq(g.shape->fan[0], 4);
	ck_assert_uint_eq(g.shape->few[0], 2);
	ck_assert_uint_eq(g.shape->fan[1], 2);
	ck_assert_uint_eq(g.shape->members[1], 2);
	ap_group_make(ctx.arena, m, &strided, &g); /* 0 2 | 4 and 1 3 | 5 */
	ck_assert_int_eq(g.nshape, 1);
	ck_assert_uint_eq(g.shape->fan[0], 2);
	ck_assert_uint_eq(g.shape->members[1], 1);
	ap_group_make(ctx.arena, m, &pairs, &g); /* 0 3 inside a server, 1 | 4 and 2 | 5 across */
	ck_assert_int_eq(g.nshape, 2);
}
END_TEST
