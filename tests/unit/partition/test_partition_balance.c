/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published cases of pipeline balancing, as tables: layers of one class between an embedding and a head, kinds of
 * recompute, memory in MB. What the balancer's integer program chose, and what is the best that can be.
 */
#include <math.h>

#include "base/vec.h"
#include "partition/partition.h"
#include "pipeline/schedule.h"
#include "unit.h"

enum { MOST_KINDS = 4, MOST_STAGES = 16, LAYERS = 96, MOST_PARTS = 48 };

struct table { /* layers: forward passes, bytes whatever is in flight; of a block in each kind */
	double embedding, block, head;
	int64_t embedding_mb, block_mb, head_mb, capacity_mb;
	uint32_t nkind;
	double back[MOST_KINDS];
	int64_t kept_mb[MOST_KINDS];
};

static const struct table small = {30, 180, 90, 11000, 1583, 2473, 53000, 2, {360, 540}, {826, 32}};
static const struct table demo = {90, 90, 180, 4245, 2141, 1203, 62000, 4,
	{180, 187.20000000000002, 202.5, 209.70000000000002}, {852, 767, 535, 511}};

struct pipeline {
	struct ap_partition p;
	struct ap_partition_row row[3][MOST_KINDS];
	struct ap_partition_class cls[3];
	struct ap_partition_run run[3];
	struct ap_partition_degree degree;
	int64_t capacity[MOST_STAGES], fixed[MOST_STAGES];
};

static void make(struct pipeline *x, const struct table *t, int32_t nsegment)
{
	static const char *const kinds[] = {"none", "select", "comm", "both"};
	const double end[] = {t->embedding, t->head};
	const int64_t end_mb[] = {t->embedding_mb, t->head_mb};

	memset(x, 0, sizeof *x);
	x->p = (struct ap_partition){.nstage = 16, .nsegment = nsegment, .nmicro = 16,
		.scheduler = ap_scheduler_find(nsegment > 1 ? "interleaved" : "1f1b"), .ndegree = 1,
		.nkind = t->nkind, .nclass = 3, .nrun = 3, .degree = &x->degree, .kind = kinds, .cls = x->cls,
		.run = x->run, .capacity_bytes = x->capacity, .fixed_bytes = x->fixed, .least_layers = 1,
		.least_at_ends = 1};
	x->degree.name = "";
	for (uint32_t k = 0; k < t->nkind; k++) {
		for (int e = 0; e < 2; e++)
			x->row[2 * e][k] = (struct ap_partition_row){.absent = k > 0, .forward_s = end[e],
				.backward_s = 2 * end[e], .weights_bytes = end_mb[e]};
		x->row[1][k] = (struct ap_partition_row){.forward_s = t->block, .backward_s = t->back[k],
			.weights_bytes = t->block_mb, .kept_bytes = t->kept_mb[k]};
	}
	for (uint32_t c = 0; c < 3; c++)
		x->cls[c] = (struct ap_partition_class){"class", x->row[c]};
	x->run[0] = (struct ap_partition_run){0, 1, AP_AT_FIRST};
	x->run[1] = (struct ap_partition_run){1, LAYERS, AP_AT_BODY};
	x->run[2] = (struct ap_partition_run){2, 1, AP_AT_LAST};
	for (int s = 0; s < MOST_STAGES; s++)
		x->capacity[s] = t->capacity_mb;
	ck_assert_ptr_null(ap_partition_fault(&x->p));
}

/* Judges the plan of counts[kind][part]. */
static struct ap_partition_worth judge(struct ap_ctx *ctx, const struct pipeline *x,
	const int counts[MOST_KINDS][MOST_PARTS])
{
	int32_t parts = x->p.nstage * x->p.nsegment;
	uint32_t kind[LAYERS + 2] = {0}, degree[MOST_STAGES] = {0}, n = 1;
	int64_t first[MOST_PARTS + 1] = {0};
	struct ap_partition_plan plan = {first, degree, kind, NULL};
	struct ap_partition_worth worth;

	for (int32_t q = 0; q < parts; q++) {
		for (uint32_t k = 0; k < x->p.nkind; k++)
			for (int i = 0; i < counts[k][q]; i++)
				kind[n++] = k;
		first[q + 1] = n - 1;
	}
	ap_partition_judge(ctx, &x->p, &plan, &worth);
	return worth;
}

START_TEST(plans_of_the_integer_program_take_what_was_published)
{
	static const int of_small[MOST_KINDS][MOST_PARTS] = {{2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 6, 6, 7, 6, 6, 6},
		{3, 2, 3, 3, 2, 2, 1, 1}};
	static const int of_demo[MOST_KINDS][MOST_PARTS] = {{0, 0, 0, 1, 1, 2, 2, 4, 6, 7, 7, 6, 6, 6, 6, 5},
		{0, 0, 1, 0, 0, 0, 2}, {0, 0, 5, 2, 1, 4, 2, 2}, {5, 6, 0, 3, 4}};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_worth worth;
	struct pipeline x;

	make(&x, &small, 1);
	worth = judge(&ctx, &x, of_small);
	ck_assert_ptr_null(worth.fault);
	ck_assert_double_eq(worth.step_s, 110610);
	ck_assert_double_eq(worth.largest_s, 3780);
	make(&x, &demo, 1);
	worth = judge(&ctx, &x, of_demo);
	ck_assert_ptr_null(worth.fault);
	ck_assert_double_eq_tol(worth.step_s, 55996.2, 1e-9 * 55996.2);
	ck_assert_double_eq(worth.largest_s, 1890);
	ctx_destroy(&ctx);
}
END_TEST

static struct ap_partition_choice solve(struct ap_ctx *ctx, const struct pipeline *x, uint64_t work)
{
	const struct ap_partition_budget budget = {.work = work};
	struct ap_partition_choice c;

	ap_partition_solve(ctx, &x->p, &budget, &c);
	ck_assert_ptr_nonnull(c.plan);
	return c;
}

START_TEST(the_least_largest_stage)
{
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &small, 1);
	x.p.objective = AP_OBJECTIVE_STAGE;
	c = solve(&ctx, &x, 0);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, 3780);
	make(&x, &demo, 1);
	x.p.objective = AP_OBJECTIVE_STAGE;
	c = solve(&ctx, &x, 0);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, 1890);
	ctx_destroy(&ctx);
}
END_TEST

/* Steps that were the best known, now proven to be the best. */
START_TEST(the_shortest_step)
{
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &small, 1);
	c = solve(&ctx, &x, 0);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, 107460);
	make(&x, &demo, 1);
	c = solve(&ctx, &x, 0);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq_tol(c.cost, 54102.6, 1e-6);
	ck_assert(ap_partition_bound(&ctx, &x.p) <= c.cost);
	ck_assert(ap_partition_bound(&ctx, &x.p) > 0.5 * c.cost);
	ctx_destroy(&ctx);
}
END_TEST

/* The same answer each time. */
START_TEST(work_narrows_the_bound)
{
	static const uint64_t works[] = {1, 300000, 1000000, 3000000, 30000000};
	struct ap_ctx ctx = ctx_create(true);
	double bound = 0;
	struct pipeline x;

	make(&x, &demo, 1);
	for (size_t i = 0; i < AP_COUNT(works); i++) {
		struct ap_partition_choice c = solve(&ctx, &x, works[i]), again = solve(&ctx, &x, works[i]);

		ck_assert_double_eq(c.cost, again.cost);
		ck_assert_double_eq(c.lower_bound, again.lower_bound);
		ck_assert_uint_eq(c.work, again.work);
		ck_assert_mem_eq(c.plan->first, again.plan->first, 17 * sizeof *c.plan->first);
		ck_assert(c.lower_bound <= 54102.6 + 1e-6 && c.cost >= 54102.6 - 1e-6);
		bound = c.lower_bound;
	}
	ck_assert_double_eq_tol(bound, 54102.6, 1e-6);
	ctx_destroy(&ctx);
}
END_TEST

/* The balancer's plan of three segments takes 43,891.2. */
START_TEST(segments_are_balanced_too)
{
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &demo, 3);
	c = solve(&ctx, &x, 60000000);
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ck_assert(c.cost < 43891.2);
	ck_assert(c.lower_bound > 0.98 * c.cost);
	ck_assert_ptr_null(c.worth.fault);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(no_memory_holds_it)
{
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &small, 1);
	x.capacity[0] = 12000;
	ap_partition_solve(&ctx, &x.p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
	ck_assert_int_eq(c.ended, AP_ENDED_PROVEN);
	ck_assert_int_eq(c.short_bytes, 11000 + 1583 + 16 * 32 - 12000);
	ck_assert_ptr_null(c.plan);
	ck_assert(isinf(c.lower_bound));
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(more_parts_than_layers)
{
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &small, 1);
	x.run[1].count = 15;
	ap_partition_solve(&ctx, &x.p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
	ck_assert_int_eq(c.short_bytes, 0);
	x.p.least_layers = x.p.least_at_ends = 0;
	ap_partition_solve(&ctx, &x.p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ctx_destroy(&ctx);
}
END_TEST

/* The embedding and the head have a stage each: every other one has one layer. */
START_TEST(ends_without_layers)
{
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &small, 1);
	x.run[1].count = 14;
	ck_assert(isinf(ap_partition_bound(&ctx, &x.p)));
	x.p.least_at_ends = 0;
	ck_assert_int_eq(ap_partition_least(&x.p, 0), 0);
	ck_assert_int_eq(ap_partition_least(&x.p, 1), 1);
	ck_assert_int_eq(ap_partition_least_before(&x.p, 15), 14);
	ck_assert_int_eq(ap_partition_least_before(&x.p, 16), 14);
	ap_partition_solve(&ctx, &x.p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	for (int32_t q = 0; q < 16; q++)
		ck_assert_int_eq(c.plan->first[q + 1], q < 15 ? q : 14);
	/* The stage before the head waits for it, but for its own second forward pass. */
	ck_assert_double_eq(c.cost, 3 * 30 + (13 + 16) * 3 * 180 + 3 * 90 - 180);
	x.run[1].count = 13;
	ap_partition_solve(&ctx, &x.p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
	ctx_destroy(&ctx);
}
END_TEST

/* All layers on one stage: a sum. */
START_TEST(one_stage)
{
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &small, 1);
	x.p.nstage = 1;
	x.run[1].count = 4;
	x.row[1][0].update_s = x.row[1][1].update_s = 7;
	x.capacity[0] = 11000 + 2473 + 4 * 1583 + 2 * 826 + 2 * 32;
	ap_partition_solve(&ctx, &x.p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, 16 * (3 * 30 + 3 * 90 + 2 * 540 + 2 * 720) + 4 * 7);
	ck_assert_int_eq(c.worth.stage[0].memory_bytes, x.capacity[0]);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(nothing_takes_time)
{
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;
	struct pipeline x;

	make(&x, &small, 1);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++)
			x.row[i][k].forward_s = x.row[i][k].backward_s = 0;
	ap_partition_solve(&ctx, &x.p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, 0);
	ctx_destroy(&ctx);
}
END_TEST

/* Rules of a list: the first layers of a part take the last kind. */
START_TEST(lists_have_an_order)
{
	static const uint32_t good[] = {0, 1, 0, 1, 0, 0}, bad[] = {0, 0, 1, 1, 0, 0}, uneven[] = {0, 1, 0, 0, 0, 0};
	uint32_t degree[2] = {0};
	int64_t first[] = {0, 2, 4}, number[] = {0, 1};
	struct ap_partition_plan plan = {first, degree, good, number};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_worth worth;
	struct pipeline x;

	make(&x, &small, 1);
	x.p.nstage = 2;
	x.run[1].count = 4;
	x.p.kinds = AP_KINDS_LIST;
	ap_partition_judge(&ctx, &x.p, &plan, &worth);
	ck_assert_ptr_null(worth.fault);
	plan.kind = bad;
	ap_partition_judge(&ctx, &x.p, &plan, &worth);
	ck_assert_str_eq(worth.fault, "the kinds of a part are not in the order of a list");
	ck_assert_int_eq(worth.at, 0);
	plan.kind = uneven;
	ap_partition_judge(&ctx, &x.p, &plan, &worth);
	ck_assert_ptr_null(worth.fault);
	x.p.kinds = AP_KINDS_UNIFORM;
	ap_partition_judge(&ctx, &x.p, &plan, &worth);
	ck_assert_str_eq(worth.fault, "the kinds differ by part");
	plan.kind = good;
	ap_partition_judge(&ctx, &x.p, &plan, &worth);
	ck_assert_ptr_null(worth.fault);
	first[1] = 4;
	ap_partition_judge(&ctx, &x.p, &plan, &worth);
	ck_assert_str_eq(worth.fault, "a part has too few layers");
	ck_assert_int_eq(worth.at, 1);
	ctx_destroy(&ctx);
}
END_TEST
