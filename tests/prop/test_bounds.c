/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds on the simulated step: no plan is faster. */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "plan/make.h"
#include "plan/path.h"
#include "random_pipe.h"
#include "trial.h"
#include "unit.h"

#define ROUNDING 1e-9 /* of sums in another order */

static const int32_t *const *some_plan(struct trial *t, struct ap_plan_maker *maker, struct ap_plan *out)
{
	const int32_t *const *counts = trial_counts(t);

	if (counts)
		ap_plan_sketch(maker, counts, out);
	return counts;
}

/* A path of one plan takes no longer than the step of any other. */
static void paths_are_bounds(struct trial *t)
{
	struct ap_plan_maker *maker;
	struct ap_plan one;
	struct ap_path path;

	random_recompute(t);
	random_fusion(t);
	(void)random_pipe(t);
	maker = ap_plan_maker_create(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step, NO_MEMORY_LIMIT);
	if (!some_plan(t, maker, &one))
		return;
	ap_path_longest(&t->f.ctx, &one, &path);
	REQUIRE(t, path.length_s <= one.prediction.step_time_s * (1 + ROUNDING), "its own: %.17g, step %.17g",
		path.length_s, one.prediction.step_time_s);
	for (int i = 0; i < 8; i++) {
		struct ap_path other, mixed;
		struct ap_plan p;
		double length_s;

		if (!some_plan(t, maker, &p))
			continue;
		length_s = ap_path_length_s(&t->f.ctx, &path, &p);
		REQUIRE(t, length_s <= p.prediction.step_time_s * (1 + ROUNDING), "plan %d: %.17g, step %.17g",
			i, length_s, p.prediction.step_time_s);
		t->telling |= length_s > 0.5 * p.prediction.step_time_s && length_s < path.length_s;
		ap_path_longest(&t->f.ctx, &p, &other);
		ap_path_mix(&t->f.ctx, (const struct ap_path *[]){&path, &other}, (double[]){0.75, 0.25}, 2,
			t->f.graph, &mixed);
		length_s = ap_path_length_s(&t->f.ctx, &mixed, &one);
		REQUIRE(t, length_s <= one.prediction.step_time_s * (1 + ROUNDING), "mixed: %.17g, step %.17g",
			length_s, one.prediction.step_time_s);
		path = mixed;
	}
}

START_TEST(paths_are_lower_bounds)
{
	trial_each(2000, 12, 16, paths_are_bounds);
}
END_TEST
