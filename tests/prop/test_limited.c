/* SPDX-License-Identifier: Apache-2.0 */
/* Under a memory limit: the price found on few candidates, which candidates may be dropped, and picks put
 * together of two. */
#include <math.h>
#include <string.h>

#include "elim/elim_eval.h"
#include "elim/memory_limit.h"
#include "elim/price.h"
#include "random_problem.h"
#include "search/compact.h"
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
	value = ap_elim_room(ctx, out->e);
	if (!ap_elim_eval(ctx, out->e, out->p, value, &out->least) || isinf(out->least))
		return false;
	out->pick = AP_NEW_N(ctx->scratch, uint32_t, out->p->n);
	ap_elim_pick(ctx, out->e, value, out->pick);
	return ap_problem_memory(out->p, out->pick) > out->p->memory_limit;
}

static bool brute_best(struct ap_ctx *ctx, void *user, const struct ap_domain *few, uint64_t max_work,
	uint32_t *pick, uint64_t *work)
{
	const struct ap_problem *p = user;
	const struct ap_compact *rest = ap_compact_make(ctx, p, few);
	struct ap_budget none = {0};
	struct ap_choice best;
	(void)max_work;
	ap_engine_find("brute_force")->solve(ctx, &rest->p, &none, &best);
	*work += best.work;
	if (best.pick)
		ap_compact_expand(rest, p, best.pick, pick);
	return best.pick;
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
		struct ap_pricing g;
		struct limited l;
		if (make_limited(&ctx, p, &l)) {
			tried++;
			ap_engine_find("brute_force")->solve(&ctx, l.p, &none, &best);
			ap_pricing_open(&ctx, l.e, l.p, ap_elim_room(&ctx, l.e), &g);
			ap_focus_solve(&ctx, &(struct ap_focus_job){.g = &g, .left = &none,
				.least = l.least, .pick = l.pick, .best_of = brute_best,
				.user = (void *)l.p}, &few);
			ap_dual_solve(&ctx, &g, l.least, l.pick, UINT64_MAX, &all);
			ck_assert_int_eq(few.infeasible, best.outcome == AP_OUT_INFEASIBLE);
			ck_assert_int_eq(few.infeasible, all.infeasible);
			ck_assert_int_eq(few.least_memory, all.least_memory);
			if (!few.infeasible) {
				double near = 1e-5 * fabs(all.bound) + 4 * l.p->quantum;
				ck_assert_double_le(few.bound, best.cost);
				ck_assert(ap_focus_near(&few) || few.bound >= all.bound - near);
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
	ck_assert(n < 100 || found > n / 20);
}
END_TEST

/* The next pick of all, odometer-wise; false after the last. */
static bool next_pick(const struct ap_problem *p, uint32_t *pick)
{
	for (uint32_t i = p->n; i-- > 0;) {
		if (++pick[i] < p->node[i].k)
			return true;
		pick[i] = 0;
	}
	return false;
}

/* By candidate of each node, the least cost of all picks in which a node of equal table has it. */
static void least_by_hand(const struct ap_problem *p, const struct ap_elim *e, double least[][4])
{
	uint32_t pick[MAX_N] = {0};
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t c = 0; c < 4; c++)
			least[i][c] = INFINITY;
	do {
		double cost = ap_problem_cost(p, pick);
		for (uint32_t i = 0; i < p->n; i++)
			for (uint32_t j = 0; j < p->n; j++)
				if (e->own[i] == e->own[j] && cost < least[i][pick[j]])
					least[i][pick[j]] = cost;
	} while (next_pick(p, pick));
}

START_TEST(what_a_candidate_costs_at_least)
{
	uint64_t seed = random_seed(), n = case_count() / 4, far = 0, shared = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		const struct ap_elim_options options = {.table_bytes = 1 << 24, .by_memory = true};
		const struct ap_domain *all = ap_domain_all(&ctx, p);
		double want[MAX_N][4], least, threshold, **got;
		const struct ap_elim *e;
		const double **value;
		uint64_t work = 0;
		if (!ap_domain_empty(p, all) && (p = &ap_compact_make(&ctx, p, all)->p)->n) {
			e = ap_elim_plan(&ctx, p, &options);
			value = ap_elim_room(&ctx, e);
			ck_assert(ap_elim_eval(&ctx, e, p, value, &least));
			if (least < INFINITY) {
				threshold = least + (double)random_below(&seed, 40) * p->quantum *
					(random_below(&seed, 2) ? 1 : 0x1p40);
				got = AP_NEW_N(ctx.scratch, double *, e->ntable);
				ck_assert(ap_elim_least_with(&ctx, e, value, least, threshold, got, &work));
				least_by_hand(p, e, want);
				for (uint32_t v = 0; v < p->n; v++) {
					shared += e->own[v] < v;
					for (uint32_t c = 0; c < p->node[v].k; c++) {
						bool in = want[v][c] <= threshold;
						far += !in;
						ck_assert(got[e->own[v]][c] == (in ? want[v][c] : INFINITY));
					}
				}
			}
		}
		ctx_destroy(&ctx);
	}
	ck_assert(n < 100 || (far > n / 2 && shared > n / 4));
}
END_TEST

static bool holds(const struct ap_domain *d, uint32_t c)
{
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->c[i] == c)
			return true;
	}
	return false;
}

START_TEST(no_pick_that_is_as_cheap_is_dropped)
{
	uint64_t seed = random_seed(), n = case_count() / 4, dropped = 0, kept = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		uint32_t pick[MAX_N] = {0};
		struct ap_domain *d;
		struct ap_pricing g;
		struct ap_dual dual;
		struct limited l;
		uint64_t work = 0;
		if (make_limited(&ctx, p, &l)) {
			double cost;
			ap_pricing_open(&ctx, l.e, l.p, ap_elim_room(&ctx, l.e), &g);
			ap_dual_solve(&ctx, &g, l.least, l.pick, UINT64_MAX, &dual);
			ck_assert(ap_pricing_at(&ctx, &g, dual.price / (double)(1 + random_below(&seed, 2))));
			cost = dual.pick ? dual.cost : dual.bound + 10 * l.p->quantum;
			d = ap_limit_narrow(&ctx, &g, cost, &work);
			ck_assert(d);
			do {
				if (ap_problem_cost(l.p, pick) > cost ||
					ap_problem_memory(l.p, pick) > l.p->memory_limit)
					continue;
				kept++;
				for (uint32_t v = 0; v < l.p->n; v++)
					ck_assert(holds(&d[v], pick[v]));
			} while (next_pick(l.p, pick));
			for (uint32_t v = 0; v < l.p->n; v++)
				dropped += l.p->node[v].k - d[v].n;
		}
		ctx_destroy(&ctx);
	}
	ck_assert(n < 100 || (kept > n / 20 && dropped > n / 20));
}
END_TEST

/* What the caller of ap_narrow() accepts. */
static bool acceptable(const struct ap_problem *p, const uint32_t *pick)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < p->n; i++)
		sum += pick[i];
	return sum % 3 != 1 && ap_problem_memory(p, pick) <= p->memory_limit &&
		ap_problem_cost(p, pick) < INFINITY;
}

static bool acceptable_best(struct ap_ctx *ctx, void *user, const struct ap_domain *few,
	uint64_t max_work, uint32_t *out, uint64_t *work)
{
	const struct ap_problem *p = user;
	uint32_t pick[MAX_N] = {0};
	double best = INFINITY;
	(void)ctx;
	(void)max_work;
	do {
		bool in = acceptable(p, pick) && ap_problem_cost(p, pick) < best;
		for (uint32_t v = 0; v < p->n; v++)
			in = in && holds(&few[v], pick[v]);
		if (!in)
			continue;
		best = ap_problem_cost(p, pick);
		memcpy(out, pick, p->n * sizeof *pick);
	} while (next_pick(p, pick));
	++*work;
	return best < INFINITY;
}

/* What is left of p holds every pick as good as the one found. */
static void check_narrowed(const struct ap_problem *p, const struct ap_narrowed *out)
{
	uint32_t pick[MAX_N] = {0};
	do {
		if (ap_problem_memory(p, pick) <= p->memory_limit)
			ck_assert(ap_problem_cost(p, pick) >= out->bound);
		if (!out->domain || !acceptable(p, pick) || ap_problem_cost(p, pick) > out->cost)
			continue;
		for (uint32_t v = 0; v < p->n; v++)
			ck_assert(holds(&out->domain[v], pick[v]));
	} while (next_pick(p, pick));
	if (!out->pick)
		return;
	ck_assert(acceptable(p, out->pick));
	ck_assert(ap_problem_cost(p, out->pick) == out->cost);
}

START_TEST(narrowing_keeps_what_is_acceptable)
{
	uint64_t seed = random_seed(), n = case_count() / 4, narrowed = 0, from_start = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_budget budget = {0};
		uint32_t start[MAX_N] = {0};
		struct ap_narrowed out;
		if (p->memory_limit != AP_NO_LIMIT) {
			for (uint32_t v = 0; v < p->n; v++)
				start[v] = (uint32_t)random_below(&seed, p->node[v].k);
			budget.start[0] = acceptable(p, start) ? start : NULL;
			ap_narrow(&ctx, &(struct ap_narrow_job){.p = p, .budget = &budget,
				.best_of = acceptable_best, .user = (void *)p}, &out);
			check_narrowed(p, &out);
			narrowed += out.domain != NULL;
			from_start += out.domain && budget.start[0];
		}
		ctx_destroy(&ctx);
	}
	ck_assert(n < 100 || (narrowed > n / 50 && from_start > n / 100));
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
	ck_assert(n < 100 || found > n / 4);
}
END_TEST
