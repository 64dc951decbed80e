/* SPDX-License-Identifier: Apache-2.0 */
/* The busiest rank's share of experts' tokens, held against all ways of dealing experts of random loads. */
#include <math.h>

#include "bound.h"
#include "cost/expert_load.h"
#include "harness.h"

START_TEST(shares_of_the_busiest_rank)
{
	/* an expert a rank; all on one; v = 0.5 and sqrt(3 / 15), sqrt(1 / 63) of it */
	ck_assert_double_eq(ap_expert_load(1.5, 16, 16), 1.5);
	ck_assert_double_eq(ap_expert_load(1.5, 16, 1), 1);
	ck_assert_double_eq_tol(ap_expert_load(1.5, 16, 4), 1.2236067977499790, 1e-15);
	ck_assert_double_eq_tol(ap_expert_load(1.5, 64, 2), 1.0629940788348711, 1e-15);
	/* no rank has more than all tokens */
	ck_assert_double_eq(ap_expert_load(100, 256, 8), 8);
	ck_assert_double_eq(ap_expert_load(1, 16, 8), 1);
	ck_assert_double_eq(ap_expert_load(0, 16, 8), 1);
	ck_assert_double_eq(ap_expert_load(2, 1, 1), 1);
}
END_TEST

/* The spread of a rank's mean load over all choices of its experts / the spread of the experts' loads: what the
 * excess of the busiest is scaled by. */
START_TEST(excess_shrinks_as_the_spread_of_dealt_loads)
{
	uint64_t seed = random_seed("excess_shrinks_as_the_spread_of_dealt_loads");
	enum { E = 12 };

	for (int round = 0; round < 20; round++) {
		double load[E], mean = 0, spread = 0;

		for (int e = 0; e < E; e++) {
			load[e] = (double)(random_next(&seed) % 1000);
			mean += load[e] / E;
		}
		for (int e = 0; e < E; e++)
			spread += (load[e] - mean) * (load[e] - mean) / E;
		for (int parts = 1; parts <= E; parts++) {
			double of_ranks = 0, n = 0;

			for (unsigned set = 0; set < 1u << E && E % parts == 0; set++) {
				double sum = 0;

				if (__builtin_popcount(set) != E / parts)
					continue;
				for (int e = 0; e < E; e++)
					sum += set >> e & 1 ? load[e] * parts / E : 0;
				of_ranks += (sum - mean) * (sum - mean);
				n++;
			}
			if (n > 0 && spread > 0)
				ck_assert_double_eq_tol(ap_expert_load(1.25, E, parts),
					1 + 0.25 * sqrt(of_ranks / n / spread), 1e-6);
		}
	}
}
END_TEST

/* The mean, over all sets of k experts in a of the groups, of the parts that a set is in. */
static double counted(const struct ap_expert_choice *c, int64_t parts)
{
	int64_t each = c->groups ? c->experts / c->groups : c->experts, all = 0, sets = 0;

	for (unsigned allowed = 0; allowed < 1u << (c->groups ? c->groups : 1); allowed++) {
		if (__builtin_popcount(allowed) != (c->groups ? c->groups_active : 1))
			continue;
		for (unsigned set = 0; set < 1u << c->experts; set++) {
			unsigned met = 0;
			bool legal = __builtin_popcount(set) == c->active;

			for (int64_t e = 0; legal && e < c->experts; e++)
				if (set >> e & 1) {
					legal = allowed >> (e / each) & 1;
					met |= 1u << (e * parts / c->experts);
				}
			sets += legal;
			all += legal ? __builtin_popcount(met) : 0;
		}
	}
	return (double)all / (double)sets;
}

/* Tokens go to each part that has any of their experts once. */
START_TEST(parts_that_a_token_reaches_are_those_counted)
{
	static const struct ap_expert_choice choices[] = {
		{.experts = 8, .active = 2}, {.experts = 12, .active = 1}, {.experts = 12, .active = 5},
		{.experts = 12, .active = 12}, {.experts = 12, .active = 3, .groups = 4, .groups_active = 2},
		{.experts = 12, .active = 4, .groups = 6, .groups_active = 3},
		{.experts = 12, .active = 2, .groups = 2, .groups_active = 1},
		{.experts = 16, .active = 4, .groups = 8, .groups_active = 4},
		{.experts = 16, .active = 4, .groups = 4, .groups_active = 4},
		{.experts = 16, .active = 3, .groups = 8, .groups_active = 2},
	};

	for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
		for (int64_t parts = 1; parts <= choices[i].experts; parts++) {
			int64_t groups = choices[i].groups;

			if (choices[i].experts % parts || (groups && groups % parts && parts % groups))
				continue;
			ck_assert_double_eq_tol(ap_expert_parts(&choices[i], parts),
				counted(&choices[i], parts), 1e-12);
		}
}
END_TEST

/* DeepSeek-V3: 8 of 256 experts, in 4 of 8 groups, over 8 servers and 64 devices. */
START_TEST(limited_tokens_reach_few_servers)
{
	const struct ap_expert_choice limited = {256, 8, 8, 4}, anywhere = {256, 8, 0, 0};

	/* 4 (1 - C(96, 8) / C(128, 8)), 8 (1 - C(224, 8) / C(256, 8)) */
	ck_assert_double_eq_tol(ap_expert_parts(&limited, 8), 3.6290109244, 1e-9);
	ck_assert_double_eq_tol(ap_expert_parts(&anywhere, 8), 5.2946520004, 1e-9);
	ck_assert_double_lt(ap_expert_parts(&limited, 64), ap_expert_parts(&anywhere, 64));
	ck_assert_double_lt(ap_expert_parts(&anywhere, 64), 8);
	ck_assert_double_eq(ap_expert_parts(&limited, 1), 1);
}
END_TEST
