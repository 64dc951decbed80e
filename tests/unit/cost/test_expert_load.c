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
