/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps over random tables of every shape: what is said of all picks is held against all picks. */
#include <math.h>

#include "random_problem.h"
#include "search/polish.h"
#include "search/drop_dear.h"
#include "search/sweep.h"
#include "unit.h"

enum { MAX_N = 6, SWEEPS = 4 };

static uint64_t case_count(void)
{
	const char *text = getenv("AP_CASES");
	return text ? strtoull(text, NULL, 0) : 2000;
}

#define CASE_FAILS(ctx, p, i, what, ...) \
	ck_abort_msg("case %" PRIu64 ", " what "\n%s", (i), __VA_ARGS__, problem_text((ctx), (p)))

/* Steps to the next pick; false after the last. */
static bool next_pick(const struct ap_problem *p, uint32_t *pick)
{
	for (uint32_t i = p->n; i-- > 0;) {
		if (++pick[i] < p->node[i].k)
			return true;
		pick[i] = 0;
	}
	return false;
}

static double least_cost(struct ap_ctx *ctx, const struct ap_problem *p)
{
	uint32_t *pick = AP_NEW_N(ctx->arena, uint32_t, p->n);
	double least = INFINITY;
	do
		least = fmin(least, ap_problem_cost(p, pick));
	while (next_pick(p, pick));
	return least;
}

/* What a pick costs with all that was moved: the same. */
static double moved_cost(const struct ap_sweep *s, const uint32_t *pick)
{
	double sum = s->constant;
	for (uint32_t i = 0; i < s->p->n; i++)
		sum += s->cost[i][pick[i]];
	for (uint32_t e = 0; e < s->p->nedge; e++) {
		const struct ap_pedge *x = &s->p->edge[e];
		const struct ap_pmatrix *m = &s->p->matrix[x->matrix];
		double pair = m->cost[(size_t)pick[x->u] * m->cols + pick[x->v]] -
			(s->taken[0][e][pick[x->u]] + s->taken[1][e][pick[x->v]]);
		ck_assert(!(pair < 0));
		sum += pair;
	}
	return sum;
}

static bool any_out(const struct ap_sweep *s, const uint32_t *pick)
{
	for (uint32_t i = 0; i < s->p->n; i++)
		if (s->out[i][pick[i]])
			return true;
	return false;
}

/* No pick that is wanted has lost a candidate, or costs something else than before or less than the
 * bound. */
static void check_sweep(struct ap_ctx *ctx, const struct ap_sweep *s, uint64_t i)
{
	uint32_t *pick = AP_NEW_N(ctx->arena, uint32_t, s->p->n);
	do {
		double cost = ap_problem_cost(s->p, pick);
		if (!(cost < INFINITY) || cost > s->most)
			continue;
		if (any_out(s, pick) || cost < s->constant || moved_cost(s, pick) != cost)
			CASE_FAILS(ctx, s->p, i, "bound %.17g, a pick of %.17g%s, moved %.17g",
				s->constant, cost, any_out(s, pick) ? " is out" : "",
				moved_cost(s, pick));
	} while (next_pick(s->p, pick));
}

START_TEST(no_pick_that_is_wanted_is_lost)
{
	uint64_t seed = random_seed() + 11, n = case_count(), met = 0, dropped = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		double least = least_cost(&ctx, p), slack = i % 3 == 0 ? 0 : i % 3 == 1 ? 0.1 : 1;
		struct ap_sweep_job job = {.p = p, .grain = ap_sweep_grain(&ctx, p),
			.most = least + floor(slack * fabs(least) / p->quantum) * p->quantum};
		struct ap_sweep s;
		if (least < INFINITY && ap_sweep_open(&ctx, &job, &s)) {
			uint64_t left = s.left;
			for (int k = 0; k < SWEEPS && s.alive; k++) {
				ap_sweep_once(&s);
				if (s.alive)
					check_sweep(&ctx, &s, i);
			}
			ck_assert(s.constant <= least);
			met += s.constant == least;
			dropped += s.left < left;
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " bounds meet the optimum, %" PRIu64 " drop something\n", met, dropped);
	ck_assert(n < 1000 || (met > n / 4 && dropped > n / 4));
}
END_TEST

static bool holds(const struct ap_domain *d, uint32_t c)
{
	for (uint32_t i = 0; i < d->n; i++)
		if (d->c[i] == c)
			return true;
	return false;
}

static void check_sifted(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_sifted *s,
	uint64_t n)
{
	uint32_t *pick = AP_NEW_N(ctx->arena, uint32_t, p->n);
	if (ap_problem_cost(p, s->pick) != s->cost)
		CASE_FAILS(ctx, p, n, "the pick is said to cost %.17g", s->cost);
	do {
		double cost = ap_problem_cost(p, pick);
		if (cost < s->bound)
			CASE_FAILS(ctx, p, n, "bound %.17g, a pick of %.17g", s->bound, cost);
		for (uint32_t i = 0; i < p->n && cost <= s->cost && cost < INFINITY; i++)
			if (!holds(&s->domain[i], pick[i]))
				CASE_FAILS(ctx, p, n, "node %u lost %u of a pick of %.17g", i, pick[i],
					cost);
	} while (next_pick(p, pick));
}

/* All optima pass, and the pick never gets worse. */
START_TEST(sifting_keeps_what_is_no_dearer)
{
	uint64_t seed = random_seed() + 12, n = case_count(), better = 0, exact = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_problem p = *random_problem(&ctx, &seed, MAX_N);
		uint32_t *pick = AP_NEW_N(ctx.arena, uint32_t, p.n);
		struct ap_sifted s;
		uint64_t work = 0;
		p.memory_limit = AP_NO_LIMIT;
		ap_polish(&ctx, &p, i % 4, pick);
		if (ap_problem_cost(&p, pick) < INFINITY) {
			ap_drop_dear(&ctx, &p, pick, i % 5 == 0 ? 1 : UINT64_MAX, &s, &work);
			check_sifted(&ctx, &p, &s, i);
			ck_assert(s.cost <= ap_problem_cost(&p, pick));
			better += s.cost < ap_problem_cost(&p, pick);
			exact += s.cost == s.bound;
		}
		ctx_destroy(&ctx);
	}
	printf("%" PRIu64 " better picks, %" PRIu64 " proven\n", better, exact);
	ck_assert(n < 1000 || (better > n / 10 && exact > n / 4));
}
END_TEST
