/* SPDX-License-Identifier: Apache-2.0 */
/* Under a memory limit: the price found on few candidates, and picks put together of two. */
#include <math.h>
#include <string.h>

#include "random_problem.h"
#include "search/compact.h"
#include "search/dual.h"
#include "search/focus.h"
#include "search/splice.h"
#include "unit.h"

enum { MAX_N = 7 };

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");
	return text ? strtoull(text, NULL, 0) : 10000;
}

/* A problem with a limit, its elimination, and its least pick without the limit, which breaks it. */
struct limited {
	const struct ap_problem *p;
	const struct ap_elim *e;
	double least;
	uint32_t *pick;
};

static bool make_limited(struct ap_ctx *ctx, const struct ap_problem *p, struct limited *out)
{
	const struct ap_elim_options options = {.table_bytes = 1 << 24, .by_memory = true};
	const struct ap_domain *all = ap_domain_all(ctx, p);
	const double **value;
	if (p->memory_limit == AP_NO_LIMIT || ap_domain_empty(p, all))
		return false;
	out->p = &ap_compact_make(ctx, p, all)->p;
	if (out->p->n == 0)
		return false;
	out->e = ap_elim_plan(ctx, out->p, &options);
	value = AP_NEW_N(ctx->scratch, const double *, out->e->ntable);
	if (!ap_elim_eval(ctx, out->e, out->p, value, &out->least) || isinf(out->least))
		return false;
	out->pick = AP_NEW_N(ctx->scratch, uint32_t, out->p->n);
	ap_elim_pick(ctx, out->e, value, out->pick);
	return ap_problem_memory(out->p, out->pick) > out->p->memory_limit;
}

START_TEST(the_price_of_few_candidates_is_that_of_all)
{
	uint64_t seed = random_seed(), n = case_count(), tried = 0, found = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_budget none = {0};
		struct ap_choice best;
		struct ap_dual few, all;
		struct limited l;
		if (make_limited(&ctx, p, &l)) {
			tried++;
			ap_engine_find("brute_force")->solve(&ctx, l.p, &none, &best);
			ap_focus_solve(&ctx, l.e, l.p, l.least, l.pick, &none, &few);
			ap_dual_solve(&ctx, l.e, l.p, l.least, l.pick, 0, &all);
			ck_assert_int_eq(few.infeasible, best.outcome == AP_OUT_INFEASIBLE);
			ck_assert_int_eq(few.infeasible, all.infeasible);
			ck_assert_int_eq(few.least_memory, all.least_memory);
			if (!few.infeasible) {
				double near = 1e-5 * fabs(all.bound) + 4 * l.p->quantum;
				ck_assert_double_le(few.bound, best.cost);
				ck_assert_double_ge(few.bound, all.bound - near);
			}
			if (few.pick) {
				found++;
				ck_assert_int_le(ap_problem_memory(l.p, few.pick),
					l.p->memory_limit);
				ck_assert(ap_problem_cost(l.p, few.pick) == few.cost);
				ck_assert_double_ge(few.cost, best.cost);
			}
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " problems whose limit binds, %" PRIu64 " with a pick\n", tried, found);
	ck_assert_uint_gt(found, n / 20);
}
END_TEST

static void random_pick(const struct ap_problem *p, uint64_t *seed, uint32_t *pick)
{
	for (uint32_t i = 0; i < p->n; i++)
		pick[i] = (uint32_t)random_below(seed, p->node[i].k);
}

/* The least cost of all picks that follow a up to a node and b from it, and fit. */
static double best_seam(const struct ap_problem *p, const uint32_t *a, const uint32_t *b,
	uint32_t *pick)
{
	double best = INFINITY;
	for (uint32_t seam = 0; seam <= p->n; seam++) {
		for (uint32_t i = 0; i < p->n; i++)
			pick[i] = i < seam ? a[i] : b[i];
		if (ap_problem_memory(p, pick) <= p->memory_limit)
			best = fmin(best, ap_problem_cost(p, pick));
	}
	return best;
}

START_TEST(a_splice_is_the_best_seam)
{
	uint64_t seed = random_seed(), n = case_count(), found = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		uint32_t a[MAX_N], b[MAX_N], out[MAX_N];
		double best;
		random_pick(p, &seed, a);
		random_pick(p, &seed, b);
		best = fmin(best_seam(p, a, b, out), best_seam(p, b, a, out));
		if (ap_splice(&ctx, p, a, b, out)) {
			found++;
			ck_assert(ap_problem_cost(p, out) == best);
			ck_assert_int_le(ap_problem_memory(p, out), p->memory_limit);
		} else {
			ck_assert(isinf(best));
		}
		ctx_destroy(&ctx);
	}
	ck_assert_uint_gt(found, n / 4);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		the_price_of_few_candidates_is_that_of_all, a_splice_is_the_best_seam};
	return RUN_TESTS("limited", tests);
}
