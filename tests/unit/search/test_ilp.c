/* SPDX-License-Identifier: Apache-2.0 */
/* integer_programming, and the child process that it runs in. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ilp/child.h"
#include "problem/quantise.h"
#include "search_unit.h"

#define ENGINE "integer_programming"

enum { REPORT = 100000 }; /* more than a pipe holds */

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void expect_no_child(void)
{
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}

/* A triangle each of whose edges wants its ends to differ: the relaxation costs nothing, by halves;
 * two candidates cannot do it for less than 1. */
START_TEST(halves_are_no_choice)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	ap_id m = table_matrix(t, 2, 2, (double[]){1, 0, 0, 1}, NULL);
	static const double none[] = {0, 0};
	for (int i = 0; i < 3; i++)
		table_node(t, 2, none, NULL);
	table_edge(t, 0, 1, m);
	table_edge(t, 1, 2, m);
	table_edge(t, 0, 2, m);
	struct ap_choice c = solve(&ctx, ENGINE, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, 1);
	ck_assert_double_eq(c.lower_bound, 1);
	expect_no_child();
	ctx_destroy(&ctx);
}
END_TEST

/* Of ten equal things, each worth 7 and weighing 3, four fit 14 bytes; by fractions, 4 2/3. */
START_TEST(a_knapsack)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double worth[] = {7, 0};
	static const int64_t weight[] = {0, 3};
	for (int i = 0; i < 10; i++)
		table_node(t, 2, worth, weight);
	t->p.memory_limit = 14;
	struct ap_choice c = solve(&ctx, ENGINE, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, 42);
	ck_assert_int_eq(c.memory, 12);
	ctx_destroy(&ctx);
}
END_TEST

/* Costs that differ in the last of 50 bits are told apart, which no tolerance of a solver would do. */
START_TEST(a_quantum_decides)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double large = 0x1p49, pair[] = {3, 0x1p49, 0x1p49, 2};
	static const double cost[2][2] = {{0x1p49 + 1, 0x1p49 + 1}, {0x1p49 + 1, 0x1p49 + 2}};
	ap_id m = table_matrix(t, 2, 2, pair, NULL);
	for (int i = 0; i < 4; i++)
		table_node(t, 2, cost[i % 2], NULL);
	for (ap_id i = 0; i < 3; i++)
		table_edge(t, i, i + 1, m);
	struct ap_choice want = solve(&ctx, "brute_force", &t->p);
	struct ap_choice c = solve(&ctx, ENGINE, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.cost, want.cost);
	ck_assert_double_eq(c.cost, 4 * large + 12);
	ctx_destroy(&ctx);
}
END_TEST

/* Numbers that fill a double's 53 bits leave no room to move them about. */
START_TEST(numbers_that_cannot_be_moved)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	static const double own[] = {-18735.3, 23031, -27515.3};
	static const double pair[] = {-24410, 20574.800000000003, 35273.600000000006, -21655.9,
		-18323.8, -15088.8, 24663.800000000003, 44444.2, -20135.1};
	table_node(t, 3, own, NULL);
	table_node(t, 3, own, NULL);
	table_edge(t, 0, 1, table_matrix(t, 3, 3, pair, NULL));
	ck_assert(ap_problem_quantise(&ctx, &t->p));
	struct ap_choice c = solve(&ctx, ENGINE, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_uint_eq(c.pick[0], 2);
	ck_assert_uint_eq(c.pick[1], 2);
	ck_assert_double_eq_tol(c.cost, -75165.7, 1e-9);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(nothing_fits)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = table_create(&ctx);
	ap_id m = table_matrix(t, 2, 2, (double[]){0, INFINITY, INFINITY, 0},
		(int64_t[]){1, 0, 0, 2});
	table_node(t, 2, (double[]){0, 0}, (int64_t[]){4, 6});
	table_node(t, 2, (double[]){0, 0}, (int64_t[]){5, 2});
	table_edge(t, 0, 1, m);
	t->p.memory_limit = 9;
	struct ap_choice c = solve(&ctx, ENGINE, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_INFEASIBLE);
	ck_assert_int_eq(c.least_memory, 10);
	t->p.memory_limit = 10;
	c = solve(&ctx, ENGINE, &t->p);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ctx_destroy(&ctx);
}
END_TEST

/* A chain of random costs, with a memory limit that binds. */
static struct table *long_chain(struct ap_ctx *ctx, uint32_t n, uint32_t k)
{
	uint64_t seed = 7;
	struct table *t = table_create(ctx);
	ap_id m = table_matrix(t, k, k, random_costs(ctx, &seed, (size_t)k * k, 400000), NULL);
	for (uint32_t i = 0; i < n; i++) {
		double *cost = random_costs(ctx, &seed, k, 1000000);
		int64_t *memory = AP_NEW_N(ctx->arena, int64_t, k);
		for (uint32_t c = 0; c < k; c++)
			memory[c] = 1000000 - (int64_t)cost[c] + (int64_t)random_below(&seed, 300000);
		table_node(t, k, cost, memory);
		if (i)
			table_edge(t, i - 1, i, m);
	}
	t->p.memory_limit = 600000 * (int64_t)n;
	return t;
}

START_TEST(a_size_too_large_is_not_built)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = long_chain(&ctx, 100, 30);
	static const size_t bytes[] = {1000000, 4000000}; /* no room for the table; or for that only */
	for (int i = 0; i < 2; i++) {
		struct ap_budget budget = {.table_bytes = bytes[i]};
		struct ap_choice c;
		ap_engine_find(ENGINE)->solve(&ctx, &t->p, &budget, &c);
		ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
		ck_assert(c.lower_bound > 0 && c.lower_bound < c.cost);
		ck_assert_uint_lt(c.work, 100000000); /* a relaxation takes a hundred times as much */
	}
	ctx_destroy(&ctx);
}
END_TEST

static volatile sig_atomic_t stop;

static void on_alarm(int sig)
{
	stop = sig;
}

/* What would take minutes ends at once, with what is known. */
START_TEST(it_stops_when_told_to)
{
	struct ap_ctx ctx = ctx_create(false);
	struct table *t = long_chain(&ctx, 300, 40);
	struct sigaction act = {.sa_handler = on_alarm};
	double before = seconds();
	stop = 0;
	ctx.stop = &stop;
	sigaction(SIGALRM, &act, NULL);
	alarm(1);
	struct ap_choice c = solve(&ctx, ENGINE, &t->p);
	ck_assert_int_eq(stop, SIGALRM);
	ck_assert_double_lt(seconds() - before, 1.5);
	ck_assert_int_ne(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_int_ne(c.outcome, AP_OUT_INFEASIBLE);
	ck_assert(c.lower_bound > 0 && c.lower_bound < INFINITY);
	expect_no_child();
	ctx_destroy(&ctx);
}
END_TEST

struct errand {
	unsigned char report[REPORT];
	bool crash;
};

static void do_errand(struct ap_ctx *ctx, const struct ap_child *c, void *user)
{
	struct errand *e = user;
	ck_assert(ap_child_wanted(c));
	for (int i = 1; i <= 3; i++) {
		memset(e->report, i, REPORT);
		ap_child_report(c, e->report);
	}
	ap_arena_alloc(ctx->scratch, 1, 1000);
	if (e->crash)
		raise(SIGKILL);
}

/* The last report counts, whatever becomes of the child then. */
START_TEST(a_child_reports)
{
	struct ap_ctx ctx = ctx_create(false);
	for (int i = 0; i < 2; i++) {
		struct errand e = {.crash = i};
		unsigned char got[REPORT] = {0};
		ck_assert_int_eq(ap_child_run(&ctx, do_errand, &e, got, REPORT), !e.crash);
		ck_assert_int_eq(got[0], 3);
		ck_assert_int_eq(got[REPORT - 1], 3);
		ck_assert_int_eq(e.report[0], 0); /* the child had a copy */
		expect_no_child();
	}
	ctx_destroy(&ctx);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {halves_are_no_choice, a_knapsack, a_quantum_decides,
		numbers_that_cannot_be_moved, nothing_fits, a_size_too_large_is_not_built, it_stops_when_told_to, a_child_reports};
	return RUN_TESTS("integer programming", tests);
}
