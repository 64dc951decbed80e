/* SPDX-License-Identifier: Apache-2.0 */
/* The double recursion, on tables that say what cutting further gives, and on a view of its own. */
#include "rec/rec.h"
#include "search_unit.h"

static const char engine[] = "recursive_programming";

/* Counts of two factors on four devices: (1,1), (2,1), (1,2), (4,1), (2,2), (1,4). */
static const int32_t next4[6][2] = {{1, 2}, {3, 4}, {4, 5}, {-1, -1}, {-1, -1}, {-1, -1}};

static ap_id node4(struct table *t, const double *cost, const int64_t *memory)
{
	ap_id id = table_node(t, 6, cost, memory);

	t->node[id].nway = 2;
	t->node[id].next = &next4[0][0];
	return id;
}

START_TEST(each_level_takes_the_cheapest_way)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double cost[] = {100, 60, 50, 40, 30, 20};
	struct ap_choice c;

	node4(t, cost, NULL);
	c = solve(&ctx, engine, &t->p);
	ck_assert_str_eq(c.engine, engine);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL); /* no edges: the plain bound is reached */
	ck_assert_uint_eq(c.pick[0], 5);
	ck_assert_double_eq(c.cost, 20);
	ctx_destroy(&ctx);
}
END_TEST

/* Where cutting does not pay, nothing is cut. */
START_TEST(a_level_may_repeat)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	struct ap_choice c;

	node4(t, (double[]){10, 11, 12, 30, 30, 30}, NULL);
	c = solve(&ctx, engine, &t->p);
	ck_assert_uint_eq(c.pick[0], 0);
	ctx_destroy(&ctx);
}
END_TEST

/* Ten nodes that gain 1 each by being cut, but lose 10 where a neighbour is not cut alike: one at a time
 * they would stay. */
START_TEST(operators_decide_together)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double cost[] = {5, 4, 5, 3, 5, 5};
	double unlike[36];
	struct ap_choice c;
	ap_id matrix;

	for (int i = 0; i < 36; i++)
		unlike[i] = i % 7 ? 10 : 0;
	for (int i = 0; i < 10; i++)
		node4(t, cost, NULL);
	matrix = table_matrix(t, 6, 6, unlike, NULL);
	for (uint32_t i = 1; i < 10; i++)
		table_edge(t, i - 1, i, matrix);
	c = solve(&ctx, engine, &t->p);
	ck_assert_double_eq(c.cost, 30);
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(c.pick[i], 3);
	table_edge(t, 9, 0, matrix); /* a ring, too */
	c = solve(&ctx, engine, &t->p);
	ck_assert_double_eq(c.cost, 30);
	ctx_destroy(&ctx);
}
END_TEST

/* Three nodes that must be equal: what suits one alone is forbidden. */
START_TEST(ties_hold)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	double equal[36];
	struct ap_choice c;
	ap_id matrix;

	for (int i = 0; i < 36; i++)
		equal[i] = i % 7 ? INFINITY : 0;
	node4(t, (double[]){50, 40, 30, 20, 20, 0}, NULL);
	node4(t, (double[]){50, 30, 40, 0, 19, 20}, NULL);
	node4(t, (double[]){50, 40, 40, 20, 5, 21}, NULL);
	matrix = table_matrix(t, 6, 6, equal, NULL);
	table_edge(t, 1, 0, matrix);
	table_edge(t, 1, 2, matrix);
	c = solve(&ctx, engine, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ck_assert_double_eq(c.cost, 40); /* all 3; all 4 would cost 44, all 5 41 */
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(c.pick[i], 3);
	ctx_destroy(&ctx);
}
END_TEST

/* A node without a choice, and one that is tied to it through another: both follow. */
START_TEST(what_is_tied_to_a_fixed_node_follows)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double cost[] = {1, 2, 3, 4, 5, 6};
	double equal[36], fourth[6];
	struct ap_choice c;
	ap_id matrix;

	for (int i = 0; i < 36; i++)
		equal[i] = i % 7 ? INFINITY : 0;
	for (int i = 0; i < 6; i++)
		fourth[i] = i == 4 ? 0 : INFINITY;
	node4(t, cost, NULL);
	node4(t, cost, NULL);
	table_node(t, 1, (double[]){7}, NULL);
	matrix = table_matrix(t, 6, 6, equal, NULL);
	table_edge(t, 0, 1, matrix);
	table_edge(t, 2, 1, table_matrix(t, 1, 6, fourth, NULL));
	c = solve(&ctx, engine, &t->p);
	ck_assert_double_eq(c.cost, 5 + 5 + 7);
	ck_assert_uint_eq(c.pick[0], 4);
	ck_assert_uint_eq(c.pick[1], 4);
	ctx_destroy(&ctx);
}
END_TEST

/* Nothing leads to candidate 70, as after pruning; it is found all the same. */
START_TEST(candidates_that_nothing_leads_to)
{
	enum { K = 100 };
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	double cost[K];
	int32_t next[K];
	struct ap_choice c;

	for (int i = 0; i < K; i++) {
		cost[i] = 200 - i;
		next[i] = i < 50 ? i + 1 : -1;
	}
	cost[70] = 1;
	table_node(t, K, cost, NULL);
	t->node[0].nway = 1;
	t->node[0].next = next;
	c = solve(&ctx, engine, &t->p);
	ck_assert_uint_eq(c.pick[0], 70);
	for (int i = 0; i < K; i++)
		next[i] = (i + 1) % K; /* around and around: no counts, but a table may say so */
	c = solve(&ctx, engine, &t->p);
	ck_assert_uint_eq(c.pick[0], 70);
	ctx_destroy(&ctx);
}
END_TEST

/* Of ten nodes, 60 bytes may be used: the three whose speed pays most for its bytes get them. */
START_TEST(memory_goes_where_it_pays)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const int64_t memory[] = {20, 10, 10, 2, 2, 2};
	struct ap_choice c;

	for (int i = 0; i < 10; i++) {
		double *cost = AP_NEW_N(ctx.arena, double, 6);

		for (int s = 0; s < 6; s++)
			cost[s] = s == 0 ? 10 : 20 + i; /* cutting node i loses 10 + i */
		node4(t, cost, memory);
	}
	c = solve(&ctx, engine, &t->p);
	ck_assert_double_eq(c.cost, 100);
	ck_assert_int_eq(c.memory, 200);
	t->p.memory_limit = 20 + 3 * 18 - 1;
	c = solve(&ctx, engine, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ck_assert_int_le(c.memory, t->p.memory_limit);
	ck_assert_int_eq(c.memory, 20 + 2 * 18);
	ck_assert_double_eq(c.cost, 10 + 10 + 20 * 8 + 28);
	ck_assert_uint_eq(c.pick[9], 0);
	ck_assert_uint_eq(c.pick[8], 0);
	t->p.memory_limit = 19; /* two each are the least */
	c = solve(&ctx, engine, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_LIMIT); /* which proves nothing */
	ck_assert_ptr_null(c.pick);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(everything_forbidden)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double never[36] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
	struct ap_choice c;

	node4(t, never, NULL);
	c = solve(&ctx, engine, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_LIMIT);
	ck_assert_ptr_null(c.pick);
	ctx_destroy(&ctx);
}
END_TEST

static struct table *long_chain(struct ap_ctx *ctx, uint32_t n, uint64_t *seed)
{
	struct table *t = table_create(ctx);
	const double *cost = random_costs(ctx, seed, 6, 100);
	ap_id matrix = table_matrix(t, 6, 6, random_costs(ctx, seed, 36, 30), NULL);

	for (uint32_t i = 0; i < n; i++) {
		node4(t, cost, NULL);
		if (i > 0)
			table_edge(t, i - 1, i, matrix);
	}
	return t;
}

/* The optimum of a chain is found, whatever its numbers: with six candidates all lie beside another. */
START_TEST(chains_are_exact)
{
	uint64_t seed = random_seed();

	for (int i = 0; i < 200; i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct table *t = long_chain(&ctx, 2 + (uint32_t)random_below(&seed, 30), &seed);
		struct ap_choice c = solve(&ctx, engine, &t->p);
		struct ap_choice want = solve(&ctx, "dynamic_programming", &t->p);

		ck_assert_double_eq(c.cost, want.cost);
		ctx_destroy(&ctx);
	}
}
END_TEST

/* Equal surroundings are decided once: the work does not grow with the chain. */
START_TEST(repeated_nodes_cost_look_ups)
{
	uint64_t seed = 7, work[2];

	for (int i = 0; i < 2; i++) {
		struct ap_ctx ctx = ctx_create(false);
		uint64_t same = seed;
		struct table *t = long_chain(&ctx, i ? 2000 : 200, &same);

		work[i] = solve(&ctx, engine, &t->p).work;
		ctx_destroy(&ctx);
	}
	ck_assert_uint_gt(work[0], 0);
	ck_assert_uint_le(work[1], work[0] + work[0] / 10);
}
END_TEST

START_TEST(stopping_leaves_a_pick)
{
	struct ap_ctx ctx = ctx_create(false);
	uint64_t seed = 7;
	struct table *t = long_chain(&ctx, 100, &seed);
	volatile sig_atomic_t stop = 1;
	struct ap_choice c;

	ctx.stop = &stop;
	c = solve(&ctx, engine, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ck_assert_double_eq(c.cost, ap_problem_cost(&t->p, c.pick));
	ctx.stop = NULL;
	ap_engine_find(engine)->solve(&ctx, &t->p, &(struct ap_budget){.work = 1}, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
	ctx_destroy(&ctx);
}
END_TEST

/* A view of its own: temporaries, of which the largest counts. State s has 8 - s seconds, s bytes, and
 * a temporary of 1 << s. */
static uint32_t zero(void *self, uint32_t cls)
{
	(void)self;
	(void)cls;
	return 0;
}

static struct ap_rec_list one_more(void *self, uint32_t cls, uint32_t state, int32_t prime)
{
	static const uint32_t state_of[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

	(void)self;
	(void)cls;
	(void)prime;
	return (struct ap_rec_list){state < 8, &state_of[state < 8 ? state + 1 : 0]};
}

static struct ap_rec_list around(void *self, uint32_t cls, uint32_t state)
{
	static const uint32_t near[9][2] = {
		{1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 6}, {5, 7}, {6, 8}, {7}};

	(void)self;
	(void)cls;
	return (struct ap_rec_list){state == 0 || state == 8 ? 1 : 2, near[state]};
}

static struct ap_rec_price price(void *self, uint32_t cls, uint32_t state)
{
	(void)self;
	(void)cls;
	return (struct ap_rec_price){8.0 - state, state, INT64_C(1) << state};
}

static struct ap_rec_result solve_view(struct ap_ctx *ctx, int64_t limit)
{
	static const uint32_t cls[2] = {0, 0};
	static const int32_t prime[8] = {2, 2, 2, 2, 2, 2, 2, 2};
	static const struct ap_rec_view view = {.n = 2, .cls = cls, .quantum = 1, .nlevel = 8,
		.prime = prime, .start = zero, .further = one_more, .beside = around, .node = price};
	struct ap_rec_result r;

	ap_rec_solve(ctx, &view, &(struct ap_rec_limits){.bytes = limit}, &r);
	return r;
}

START_TEST(the_largest_temporary_counts)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_rec_result r = solve_view(&ctx, AP_NO_LIMIT);

	ck_assert(r.allowed && r.fits);
	ck_assert_double_eq(r.s, 0);
	ck_assert_int_eq(r.bytes, 16);
	ck_assert_int_eq(r.temporary, 256);
	r = solve_view(&ctx, 16 + 256);
	ck_assert_double_eq(r.s, 0);
	r = solve_view(&ctx, 15 + 256); /* one gives a byte */
	ck_assert_double_eq(r.s, 1);
	ck_assert_int_eq(r.bytes + r.temporary, 15 + 256);
	r = solve_view(&ctx, 255); /* both must give way */
	ck_assert(r.fits);
	ck_assert_double_eq(r.s, 2);
	ck_assert_int_eq(r.bytes + r.temporary, 14 + 128);
	r = solve_view(&ctx, 1);
	ck_assert(r.fits);
	ck_assert_int_eq(r.bytes + r.temporary, 1);
	r = solve_view(&ctx, 0);
	ck_assert(r.allowed && !r.fits);
	ck_assert_int_eq(r.bytes + r.temporary, 1); /* the leanest */
	ctx_destroy(&ctx);
}
END_TEST

/* Cut further a node takes more seconds and fewer bytes: where nothing is cut little fits. */
static struct ap_rec_price lean_price(void *self, uint32_t cls, uint32_t state)
{
	(void)self;
	(void)cls;
	return (struct ap_rec_price){state, 8 - (int64_t)state, 0};
}

START_TEST(it_stops_when_something_fits)
{
	static const uint32_t cls[2] = {0, 0};
	static const int32_t prime[8] = {2, 2, 2, 2, 2, 2, 2, 2};
	static const struct ap_rec_view view = {.n = 2, .cls = cls, .quantum = 1, .nlevel = 8,
		.prime = prime, .start = zero, .further = one_more, .beside = around,
		.node = lean_price};
	struct ap_ctx ctx = ctx_create(false);
	volatile sig_atomic_t stop = 1;
	struct ap_rec_result r;

	ctx.stop = &stop;
	ap_rec_solve(&ctx, &view, &(struct ap_rec_limits){.bytes = 3}, &r);
	ck_assert(r.allowed && !r.fits);
	ap_rec_solve(&ctx, &view, &(struct ap_rec_limits){.bytes = 3, .insist = true}, &r);
	ck_assert(r.allowed && r.fits);
	ck_assert_int_le(r.bytes, 3);
	ap_rec_solve(&ctx, &view, &(struct ap_rec_limits){.bytes = -1, .insist = true}, &r);
	ck_assert(r.allowed && !r.fits);
	ck_assert_int_eq(r.bytes, 0); /* the leanest */
	ctx_destroy(&ctx);
}
END_TEST
