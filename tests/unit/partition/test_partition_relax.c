/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in fractions: bundles of paths, the linear program, and what both prove of equal layers. */
#include <math.h>

#include "partition/partition.h"
#include "partition/replay.h"
#include "partition/simplex.h"
#include "pipeline/schedule.h"
#include "unit.h"

enum { MOST_PARTS = 16 };

struct times {
	struct ap_ticks part[MOST_PARTS];
	int64_t send[MOST_PARTS], back[MOST_PARTS], there, home;
};

static void pick_times(struct times *x, int32_t npart, bool splits, uint64_t *seed)
{
	memset(x, 0, sizeof *x);
	for (int32_t q = 0; q < npart; q++) {
		for (int k = 0; k < AP_TIMES; k++)
			if (k != AP_TIME_WEIGHT || splits)
				x->part[q].t[k] = (int64_t)random_below(seed, 1000);
		if (q + 1 < npart) {
			x->send[q] = 1 + (int64_t)random_below(seed, 300);
			x->back[q] = 1 + (int64_t)random_below(seed, 300);
		}
	}
	x->there = (int64_t)random_below(seed, 6000);
	x->home = (int64_t)random_below(seed, 2000);
}

static double length(const struct ap_replay_flow *f, const struct times *x, int32_t npart)
{
	double sum = 0;

	for (int32_t q = 0; q < npart; q++) {
		for (int k = 0; k < AP_TIMES; k++)
			sum += (double)f->pass[q][k] * (double)x->part[q].t[k];
		sum += (double)f->send[q] * (double)x->send[q] + (double)f->send_back[q] * (double)x->back[q];
	}
	sum += (double)f->there * (double)x->there + (double)f->home * (double)x->home;
	return sum / (double)AP_REPLAY_FLOW;
}

/* Paths that end last are as long as the step; those that end near it are of no step that is shorter. */
START_TEST(bundles_are_of_paths)
{
	static const struct {
		const char *scheduler;
		int32_t p, v;
		int64_t m;
	} cases[] = {{"1f1b", 4, 1, 7}, {"gpipe", 3, 1, 5}, {"interleaved", 4, 3, 8},
		{"zero_bubble_v", 4, 2, 9}};
	uint64_t seed = 5;

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_scheduler *s = ap_scheduler_find(cases[i].scheduler);
		int32_t n = cases[i].p * cases[i].v;
		struct ap_ctx ctx = ctx_create(true);
		struct ap_replay *r = ap_replay_create(&ctx, s, cases[i].p, cases[i].v, cases[i].m);
		struct ap_replay_flow f = {ap_arena_alloc(ctx.arena, (size_t)n, sizeof *f.pass),
			AP_NEW_N(ctx.arena, int64_t, n), AP_NEW_N(ctx.arena, int64_t, n)};

		for (int k = 0; k < 20; k++) {
			struct times x, other;
			int64_t end;

			pick_times(&x, n, s->splits, &seed);
			pick_times(&other, n, s->splits, &seed);
			ap_replay_share(r, x.there, x.home);
			end = ap_replay_end(r, x.part, x.send, x.back);
			ap_replay_spread(r, x.send, x.back, true, 0, &f);
			ck_assert_double_eq(length(&f, &x, n), (double)end);
			ap_replay_spread(r, x.send, x.back, true, 400, &f);
			ck_assert(length(&f, &x, n) <= (double)end);
			ck_assert(length(&f, &x, n) > 0.5 * (double)end);
			ap_replay_share(r, other.there, other.home);
			end = ap_replay_end(r, other.part, other.send, other.back);
			ck_assert(length(&f, &other, n) <= (double)end);
		}
		ctx_destroy(&ctx);
	}
}
END_TEST

/* z >= 3 x0 + x1, z >= x0 + 2 x1, x0 + x1 >= 6, x0 >= 1: z = 10 at (2, 4); with x1 <= 3, 12 at (3, 3). */
START_TEST(a_program_grows_by_rows)
{
	static const double first[] = {-3, -1}, second[] = {-1, -2}, sum[] = {1, 1}, least[] = {1, 0},
		most[] = {0, -1};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_simplex *l = ap_simplex_create(ctx.arena, 2, 8), *copy = ap_simplex_create(ctx.arena, 2, 8);
	double x[2], y[5];
	uint64_t work = 0;

	ck_assert_int_eq(ap_simplex_add(l, first, 1, 0), 0);
	ck_assert_int_eq(ap_simplex_add(l, sum, 0, 6), 1);
	ck_assert_int_eq(ap_simplex_solve(l, 100, &work), AP_SIMPLEX_SOLVED);
	ck_assert_double_eq_tol(ap_simplex_z(l), 6, 1e-9);
	ap_simplex_copy(copy, l);
	ck_assert_int_eq(ap_simplex_add(l, second, 1, 0), 2);
	ck_assert_int_eq(ap_simplex_add(l, least, 0, 1), 3);
	ck_assert_int_eq(ap_simplex_solve(l, 100, &work), AP_SIMPLEX_SOLVED);
	ck_assert_double_eq_tol(ap_simplex_z(l), 10, 1e-9);
	ap_simplex_x(l, x);
	ck_assert_double_eq_tol(x[0], 2, 1e-9);
	ck_assert_double_eq_tol(x[1], 4, 1e-9);
	ap_simplex_duals(l, y, 4);
	ck_assert_double_eq_tol(y[0] + y[2], 1, 1e-6);
	ck_assert_double_eq_tol(y[1] * 6, 10, 1e-6);
	ck_assert_double_eq_tol(y[3], 0, 1e-9);
	ck_assert_int_eq(ap_simplex_add(l, most, 0, -3), 4);
	ck_assert_int_eq(ap_simplex_solve(l, 100, &work), AP_SIMPLEX_SOLVED);
	ck_assert_double_eq_tol(ap_simplex_z(l), 12, 1e-9);
	ck_assert_double_eq_tol(ap_simplex_z(copy), 6, 1e-9);
	ck_assert(work > 0);
	ctx_destroy(&ctx);
}
END_TEST

/* x0 + x1 >= 6, x0 <= 2, x1 <= 3 cannot be; the multipliers that say so add them up to 0 >= 1. */
START_TEST(a_program_without_a_solution_says_why)
{
	static const double rows[][2] = {{-1, -1}, {1, 1}, {-1, 0}, {0, -1}, {1, 0}};
	static const double b[] = {0, 6, -2, -3, 1};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_simplex *l = ap_simplex_create(ctx.arena, 2, 8);
	double y[5], sum[2] = {0, 0}, right = 0;
	uint64_t work = 0;

	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(ap_simplex_add(l, rows[i], i == 0, b[i]), i);
	ck_assert_int_eq(ap_simplex_solve(l, 100, &work), AP_SIMPLEX_NONE);
	ap_simplex_refusal(l, y, 5);
	ck_assert_double_eq_tol(y[0], 0, 1e-9);
	for (int i = 1; i < 5; i++) {
		ck_assert_double_ge(y[i], 0);
		sum[0] += y[i] * rows[i][0];
		sum[1] += y[i] * rows[i][1];
		right += y[i] * b[i];
	}
	ck_assert_double_le(sum[0], 1e-9);
	ck_assert_double_le(sum[1], 1e-9);
	ck_assert_double_gt(right, 0.5);
	ctx_destroy(&ctx);
}
END_TEST

enum { COLUMNS = 40, ROWS = 90, GROUPS = 8 };

struct rows { /* of a random program */
	double a[ROWS][COLUMNS], az[ROWS], b[ROWS];
	int n;
};

static double some(uint64_t *seed)
{
	return (double)random_below(seed, 1000) / 100;
}

/* Bundles, sums of groups, and limits that few or many plans keep. */
static void pick_rows(struct rows *r, uint64_t *seed)
{
	bool tight = random_below(seed, 3) == 0;

	memset(r, 0, sizeof *r);
	for (; r->n < 30; r->n++) {
		r->az[r->n] = 1;
		for (int j = 0; j < COLUMNS; j++)
			r->a[r->n][j] = random_below(seed, 3) ? -some(seed) : 0;
	}
	for (int g = 0; g < GROUPS; g++, r->n++) {
		r->b[r->n] = 1 + some(seed);
		for (int j = g; j < COLUMNS; j += GROUPS)
			r->a[r->n][j] = 1;
	}
	for (; r->n < ROWS; r->n++) {
		r->b[r->n] = -(tight ? 60 : 200) - some(seed);
		for (int j = 0; j < COLUMNS; j++)
			r->a[r->n][j] = random_below(seed, 2) ? -some(seed) : 0;
	}
}

/* What rows times y add up to, of each column, and of what is on the right. */
static double add_up(const struct rows *r, const double *y, double *sum, double *z)
{
	double right = 0;

	memset(sum, 0, COLUMNS * sizeof *sum);
	*z = 0;
	for (int i = 0; i < r->n; i++) {
		ck_assert_double_ge(y[i], 0);
		right += y[i] * r->b[i];
		*z += y[i] * r->az[i];
		for (int j = 0; j < COLUMNS; j++)
			sum[j] += y[i] * r->a[i][j];
	}
	return right;
}

/* A solution keeps all rows, and its multipliers prove that there is none of a smaller z; or they prove that there
 * is no solution. One that ends early proves what it has come to. */
static void check_program(const struct rows *r, uint64_t seed, bool *solved)
{
	struct ap_ctx ctx = ctx_create(true);
	struct ap_simplex *l = ap_simplex_create(ctx.arena, COLUMNS, ROWS);
	enum ap_simplex_end end = AP_SIMPLEX_SOLVED;
	double x[COLUMNS], y[ROWS], sum[COLUMNS], z, right, enough = 1e300;
	uint64_t work = 0;

	for (int i = 0; i < r->n && end == AP_SIMPLEX_SOLVED; i++) {
		ck_assert_int_eq(ap_simplex_add(l, r->a[i], r->az[i], r->b[i]), i);
		if (random_below(&seed, 4) == 0)
			end = ap_simplex_solve(l, 1000, &work);
	}
	if (end == AP_SIMPLEX_SOLVED) {
		size_t pivots = 1000;

		enough = ap_simplex_z(l) + 0.1;
		end = ap_simplex_solve_to(l, &pivots, enough, &work);
	}
	if (end == AP_SIMPLEX_ENOUGH) {
		ap_simplex_duals(l, y, ROWS);
		right = add_up(r, y, sum, &z);
		ck_assert_double_eq_tol(z, 1, 1e-9);
		ck_assert_double_gt(right, enough - 1e-4);
		for (int j = 0; j < COLUMNS; j++)
			ck_assert_double_le(sum[j], 1e-7);
		end = ap_simplex_solve(l, 1000, &work);
	}
	*solved = end == AP_SIMPLEX_SOLVED;
	if (*solved) {
		ap_simplex_x(l, x);
		ap_simplex_duals(l, y, ROWS);
		right = add_up(r, y, sum, &z);
		ck_assert_double_eq_tol(z, 1, 1e-9);
		ck_assert_double_eq_tol(right, ap_simplex_z(l), 1e-5);
		for (int j = 0; j < COLUMNS; j++)
			ck_assert_double_le(sum[j], 1e-7);
		for (int i = 0; i < r->n; i++) {
			double left = r->az[i] * ap_simplex_z(l);

			for (int j = 0; j < COLUMNS; j++)
				left += r->a[i][j] * x[j];
			ck_assert_double_ge(left, r->b[i] - 1e-6);
		}
	} else {
		ck_assert_int_eq(end, AP_SIMPLEX_NONE);
		ap_simplex_refusal(l, y, ROWS);
		right = add_up(r, y, sum, &z);
		ck_assert_double_gt(right, 1e-6);
		for (int j = 0; j < COLUMNS; j++)
			ck_assert_double_le(sum[j], 1e-7);
	}
	ctx_destroy(&ctx);
}

START_TEST(programs_prove_their_solutions)
{
	int nsolved = 0;

	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t state = seed;
		struct rows r;
		bool solved;

		pick_rows(&r, &state);
		check_program(&r, state, &solved);
		nsolved += solved;
	}
	ck_assert(nsolved > 60 && nsolved < 180);
}
END_TEST

static const struct ap_partition_row block = {.forward_s = 1, .backward_s = 2, .kept_bytes = 1};
static const struct ap_partition_row head = {.forward_s = 0.5, .backward_s = 1};
static const struct ap_partition_class classes[] = {{"block", &block}, {"head", &head}};
static const struct ap_partition_degree degree = {.name = ""};
static const char *const kind = "";

static struct ap_partition equal_layers(const struct ap_partition_run *run, uint32_t nrun, int32_t v,
	int64_t *room)
{
	for (int i = 0; i < 8; i++)
		room[i] = AP_NO_LIMIT;
	return (struct ap_partition){.nstage = 8, .nsegment = v, .nmicro = 48,
		.scheduler = ap_scheduler_find(v > 1 ? "interleaved" : "1f1b"), .ndegree = 1, .nkind = 1,
		.nclass = 2,
		.nrun = nrun, .degree = &degree, .kind = &kind, .cls = classes, .run = run,
		.capacity_bytes = room,
		.fixed_bytes = &room[8], .least_layers = 1, .least_at_ends = 1};
}

/* Equal layers that are shared out evenly fill a pipeline of eight in a v-th of seven stages' passes. */
START_TEST(even_plans_are_found_and_proven_at_once)
{
	for (int32_t v = 2; v <= 12; v += 2) {
		const struct ap_partition_run run = {0, 8 * v * 2, AP_AT_BODY};
		const struct ap_partition_budget budget = {.work = 1000000};
		int64_t room[16] = {0};
		struct ap_partition p = equal_layers(&run, 1, v, room);
		struct ap_ctx ctx = ctx_create(true);
		struct ap_partition_choice c;

		ap_partition_solve(&ctx, &p, &budget, &c);
		ck_assert_double_eq_tol(c.cost, 48 * 6 * v + 7 * 6, 1e-9);
		ck_assert_double_ge(c.lower_bound, c.cost * 0.98);
		ck_assert_double_le(ap_partition_bound(&ctx, &p), c.cost);
		ck_assert_double_ge(ap_partition_bound(&ctx, &p), c.cost * 0.98);
		ctx_destroy(&ctx);
	}
}
END_TEST

/* Times that no fixed tick has room for. */
START_TEST(steps_of_any_length_are_planned)
{
	static const struct ap_partition_row slow[] = {{.forward_s = 1e15, .backward_s = 2e15, .kept_bytes = 1}};
	static const struct ap_partition_class slow_layers[] = {{"slow", slow}};
	const struct ap_partition_run run = {0, 16, AP_AT_BODY};
	const struct ap_partition_budget budget = {.work = 1000000};
	struct ap_ctx ctx = ctx_create(true);
	int64_t room[16] = {0};
	struct ap_partition p = equal_layers(&run, 1, 1, room);
	struct ap_partition_choice c;

	p.cls = slow_layers;
	p.nclass = 1;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq_tol(c.cost, (48 * 6 + 7 * 6) * 1e15, 1e6);
	ctx_destroy(&ctx);
}
END_TEST

/* 30 layers on eight stages: some have four, which fractions alone do not say. */
START_TEST(stages_have_whole_layers)
{
	static const struct ap_partition_run run[] = {{0, 30, AP_AT_BODY}, {1, 1, AP_AT_LAST}};
	int64_t room[16] = {0};
	struct ap_partition p = equal_layers(run, 2, 2, room);
	struct ap_ctx ctx = ctx_create(true);
	const struct ap_partition_budget budget = {.work = 20000000};
	struct ap_partition_choice c;
	double bound = ap_partition_bound(&ctx, &p);
	uint64_t work = 0;

	ck_assert_double_gt(bound, 48 * 4 * 3);
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_ge(c.cost, bound);
	ck_assert_double_ge(bound, c.cost * 0.97);
	ck_assert_double_ge(ap_partition_bound_to(&ctx, &p, 500, 1, &work), 500);
	ck_assert_double_lt(ap_partition_bound_to(&ctx, &p, 500, 1, &work), bound);
	ctx_destroy(&ctx);
}
END_TEST

/* The step of a plan whose parts have one layer each, but the first and the last, and parts a and b one more. */
static double step_with(struct ap_ctx *ctx, const struct ap_partition *p, int32_t a, int32_t b)
{
	int32_t n = p->nstage * p->nsegment;
	int64_t *first = AP_NEW_N(ctx->arena, int64_t, n + 1);
	const struct ap_partition_plan plan = {.first = first,
		.degree = AP_NEW_N(ctx->arena, uint32_t, p->nstage),
		.kind = AP_NEW_N(ctx->arena, uint32_t, ap_partition_layers(p))};
	struct ap_partition_worth worth;

	for (int32_t q = 0; q < n; q++)
		first[q + 1] = first[q] + (q > 0 && q < n - 1) + (q == a) + (q == b);
	ap_partition_judge(ctx, p, &plan, &worth);
	ck_assert_ptr_null(worth.fault);
	return worth.step_s;
}

/* 32 layers in 32 parts, of which the first and the last may have none. */
START_TEST(parts_have_whole_layers)
{
	static const struct ap_partition_run run[] = {{0, 32, AP_AT_BODY}, {1, 1, AP_AT_LAST}};
	int64_t room[16] = {0};
	struct ap_partition p = equal_layers(run, 2, 8, room);
	struct ap_ctx ctx = ctx_create(true);
	double least = INFINITY, bound;
	uint64_t work = 0;

	p.nstage = 4;
	p.nmicro = 4;
	p.least_at_ends = 0;
	for (int32_t a = 0; a < 32; a++)
		for (int32_t b = a; b < 32; b++)
			least = fmin(least, step_with(&ctx, &p, a, b));
	bound = ap_partition_bound_to(&ctx, &p, INFINITY, 64, &work);
	ck_assert_double_le(bound, least);
	ck_assert_msg(bound >= least * 0.9995, "%.9g of %.9g", bound, least);
	ck_assert_uint_gt(work, 0);
	ctx_destroy(&ctx);
}
END_TEST

/* Four stages have room for 3.9 layers, so for three: of 40 the others have seven each, not 6.1. */
START_TEST(room_for_a_part_of_a_layer_is_none)
{
	static const struct ap_partition_row rows[] = {{.forward_s = 1, .backward_s = 2, .weights_bytes = 100}};
	static const struct ap_partition_class heavy[] = {{"block", rows}};
	const struct ap_partition_run run = {0, 40, AP_AT_BODY};
	struct ap_ctx ctx = ctx_create(true);
	int64_t room[16] = {0};
	struct ap_partition p = equal_layers(&run, 1, 2, room);

	p.cls = heavy;
	p.nclass = 1;
	for (int i = 0; i < 4; i++)
		room[2 * i] = 390;
	ck_assert_double_ge(ap_partition_bound(&ctx, &p), 48 * 7 * 3);
	for (int i = 0; i < 4; i++)
		room[2 * i] = 400;
	ck_assert_double_lt(ap_partition_bound(&ctx, &p), 48 * 7 * 3);
	ctx_destroy(&ctx);
}
END_TEST

/* Of eight layers of 100 bytes in 64 parts, room for 730 has two that recompute, of 50, where 1.4 would be enough:
 * as many as room for 700. */
START_TEST(layers_recompute_whole)
{
	static const struct ap_partition_row rows[] = {{.forward_s = 1, .backward_s = 2, .weights_bytes = 100},
		{.forward_s = 1, .backward_s = 3, .weights_bytes = 50}};
	static const struct ap_partition_class heavy[] = {{"block", rows}};
	static const char *const kinds[] = {"none", "full"};
	static const int64_t bytes[] = {800, 730, 700};
	const struct ap_partition_run run = {0, 64, AP_AT_BODY};
	struct ap_ctx ctx = ctx_create(true);
	int64_t room[16] = {0};
	struct ap_partition p = equal_layers(&run, 1, 8, room);

	p.cls = heavy;
	p.nclass = 1;
	p.kind = kinds;
	p.nkind = 2;
	p.kinds = AP_KINDS_LIST;
	for (int i = 0; i < 2; i++) {
		double bound[3];

		p.counts = i ? AP_COUNTS_FREE : AP_COUNTS_EQUAL;
		p.least_at_ends = i ? 0 : 1; /* two layers may be anywhere then */
		for (int k = 0; k < 3; k++) {
			for (int stage = 0; stage < 8; stage++)
				room[stage] = bytes[k];
			bound[k] = ap_partition_bound(&ctx, &p);
		}
		ck_assert_double_gt(bound[2], bound[0] + 40);
		ck_assert_msg(bound[1] > bound[0] + 0.95 * (bound[2] - bound[0]), "%g of %g to %g", bound[1],
			bound[0], bound[2]);
	}
	ctx_destroy(&ctx);
}
END_TEST

/* Each stage has room for the layers that its parts have at least, but all together they have less than 56 need:
 * which is seen at once. */
START_TEST(stages_that_are_too_small_together_are_proven_to_be)
{
	static const struct ap_partition_row rows[] = {{.forward_s = 1, .backward_s = 2, .kept_bytes = 1,
		.weights_bytes = 100}};
	static const struct ap_partition_class heavy[] = {{"block", rows}};
	const struct ap_partition_run run = {0, 56, AP_AT_BODY};
	const struct ap_partition_budget budget = {.work = 100000};
	struct ap_ctx ctx = ctx_create(true);
	int64_t room[16] = {0};
	struct ap_partition p = equal_layers(&run, 1, 2, room);
	struct ap_partition_choice c;

	p.cls = heavy;
	p.nclass = 1;
	for (int i = 0; i < 8; i++)
		room[i] = i % 2 ? 700 : 799;
	ck_assert_int_eq(ap_partition_lack(&ctx, &p), 0);
	ck_assert(isinf(ap_partition_bound(&ctx, &p)));
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
	ctx_destroy(&ctx);
}
END_TEST

/* Kinds of the same numbers in all parts, and parts of any size: what the best even plan takes, or less. */
START_TEST(uniform_plans_are_found_in_parts_of_any_size)
{
	static const struct ap_partition_row rows[] = {{.forward_s = 1, .backward_s = 2, .kept_bytes = 10},
		{.forward_s = 1, .backward_s = 3, .kept_bytes = 1}};
	static const struct ap_partition_class both[] = {{"block", rows}};
	static const char *const kinds[] = {"none", "full"};
	const struct ap_partition_run run = {0, 50, AP_AT_BODY};
	const struct ap_partition_budget budget = {.work = 20000000};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice any, even;
	int64_t room[16] = {0};
	struct ap_partition p = equal_layers(&run, 1, 2, room);

	p.cls = both;
	p.nclass = 1;
	p.kind = kinds;
	p.nkind = 2;
	p.kinds = AP_KINDS_UNIFORM;
	for (int i = 0; i < 8; i++)
		room[i] = 600;
	ap_partition_solve(&ctx, &p, &budget, &any);
	ck_assert_ptr_nonnull(any.plan);
	ck_assert(any.lower_bound <= any.cost && any.lower_bound > 0.8 * any.cost);
	p.counts = AP_COUNTS_EQUAL;
	ap_partition_solve(&ctx, &p, &budget, &even);
	ck_assert_int_eq(even.outcome, AP_OUT_INFEASIBLE);
	p.run = &(const struct ap_partition_run){0, 48, AP_AT_BODY};
	ap_partition_solve(&ctx, &p, &budget, &even);
	ck_assert_int_eq(even.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(ap_partition_bound(&ctx, &p), even.cost);
	p.counts = AP_COUNTS_FREE;
	ap_partition_solve(&ctx, &p, &budget, &any);
	ck_assert_double_le(any.cost, even.cost);
	ctx_destroy(&ctx);
}
END_TEST
