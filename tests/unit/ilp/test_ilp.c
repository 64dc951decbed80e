/* SPDX-License-Identifier: Apache-2.0 */
/* integer_programming, and the program that solves its linear programs: AP_HELPERS is its folder, AP_STUB
 * one that does badly. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ilp/lp.h"
#include "problem/quantise.h"
#include "search_unit.h"

#define ENGINE "integer_programming"

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

static struct ap_ctx ctx_with(const char *helpers)
{
	struct ap_ctx ctx = ctx_create(false);
	ctx.helpers = helpers;
	return ctx;
}

/* A triangle each of whose edges wants its ends to differ: the relaxation costs nothing, by halves;
 * two candidates cannot do it for less than 1. */
START_TEST(halves_are_no_choice)
{
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
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
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
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
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
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
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
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
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
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
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
	struct table *t = long_chain(&ctx, 100, 30);
	static const size_t bytes[] = {1000000, 4000000}; /* no room for the table; or for that only */
	for (int i = 0; i < 2; i++) {
		struct ap_budget budget = {.table_bytes = bytes[i]};
		struct ap_choice c;
		ap_engine_find(ENGINE)->solve(&ctx, &t->p, &budget, &c);
		ck_assert_int_eq(c.outcome, AP_OUT_FEASIBLE);
		ck_assert(c.lower_bound > 0 && c.lower_bound < c.cost);
		ck_assert_uint_lt(c.work, 500000000); /* a relaxation takes a hundred times as much */
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
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
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

/* Least -2 x - y with x + y <= 1 and x = y / 3: a quarter and three, of which 5/4 come. */
static const struct ap_lp small_lp = {2, 2, 4, (const double[]){-2, -1}, (const double[]){1, 0},
	(const bool[]){true, false}, (const int32_t[]){0, 1, 1, 2, 2}, (const int32_t[]){0, 1, 2, 1, 2},
	(const double[]){0, 1, 1, 3, -1}};

START_TEST(a_linear_program)
{
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
	struct ap_lp_solver s = {.ctx = &ctx};
	double x[2], dual[2];
	uint64_t iterations = 0;
	for (int again = 0; again < 2; again++) {
		ck_assert(ap_lp_start(&s));
		ck_assert_int_eq(ap_lp_solve(&s, &small_lp, &(struct ap_lp_limits){0}, x, dual, &iterations),
			AP_LP_OPTIMAL);
		ck_assert_double_eq_tol(x[0], 0.25, 1e-12);
		ck_assert_double_eq_tol(x[1], 0.75, 1e-12);
		ck_assert_double_eq_tol(dual[0], -1.25, 1e-12);
		ck_assert_uint_gt(iterations, 0);
	}
	ap_lp_end(&s);
	expect_no_child();
	ap_lp_end(&s);
	ctx_destroy(&ctx);
}
END_TEST

/* What GLPK gives up for want of memory ends that program, and no more. */
START_TEST(a_linear_program_too_large)
{
	enum { N = 60000 };
	struct ap_ctx ctx = ctx_with(AP_HELPERS);
	struct ap_lp_solver s = {.ctx = &ctx};
	double *many = AP_NEW_N(ctx.arena, double, N + 1), *dual = AP_NEW_N(ctx.arena, double, N);
	int32_t *at = AP_NEW_N(ctx.arena, int32_t, N + 1);
	struct ap_lp lp = {N, N, N, many, many, AP_NEW_N(ctx.arena, bool, N), at, at, many};
	uint64_t iterations = 0;
	for (int32_t i = 0; i <= N; i++) {
		many[i] = 1;
		at[i] = i;
	}
	ck_assert(ap_lp_start(&s));
	ck_assert_int_eq(ap_lp_solve(&s, &lp, &(struct ap_lp_limits){.bytes = 1 << 20},
		AP_NEW_N(ctx.arena, double, N), dual, &iterations), AP_LP_UNANSWERED);
	expect_no_child();
	ck_assert(!ap_lp_start(&s));
	ck_assert_str_eq(s.failed, "autopar-plan-glpk ended before it had answered");
	ctx_destroy(&ctx);
}
END_TEST

/* It ends with whoever started it, however that ends: the pipe that it inherits is closed then. */
START_TEST(the_program_does_not_outlive_its_parent)
{
	int fd[2];
	struct pollfd p = {.events = POLLIN};
	ck_assert_int_eq(pipe(fd), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct ap_ctx ctx = ctx_with(AP_HELPERS);
		struct ap_lp_solver s = {.ctx = &ctx};
		if (ap_lp_start(&s) && write(fd[1], "x", 1) == 1)
			raise(SIGKILL);
		_exit(1);
	}
	close(fd[1]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	p.fd = fd[0];
	for (int i = 0; i < 2; i++) { /* what was written, then the end */
		char c;
		ck_assert_int_eq(poll(&p, 1, 5000), 1);
		ck_assert_int_eq(read(fd[0], &c, 1), i == 0);
	}
	close(fd[0]);
}
END_TEST

static int open_files(void)
{
	int n = 0;
	DIR *dir = opendir("/proc/self/fd");
	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* A folder whose autopar-plan-glpk is the stub; its name is what the stub does. */
static const char *folder_of_stub(const struct ap_ctx *ctx, const char *root, const char *mode)
{
	const char *folder = ap_arena_printf(ctx->arena, "%s/%s", root, mode);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	ck_assert_int_eq(symlink(AP_STUB, ap_arena_printf(ctx->arena, "%s/autopar-plan-glpk", folder)), 0);
	return folder;
}

static void remove_stub(const struct ap_ctx *ctx, const char *folder)
{
	ck_assert_int_eq(unlink(ap_arena_printf(ctx->arena, "%s/autopar-plan-glpk", folder)), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* A table that sweeps alone do not settle: a grid of edges that want their ends to differ. */
static struct table *grid(struct ap_ctx *ctx, uint64_t *seed, bool limited)
{
	enum { SIDE = 3, K = 3 };
	struct table *t = table_create(ctx);
	for (ap_id i = 0; i < SIDE * SIDE; i++) {
		int64_t *memory = AP_NEW_N(ctx->arena, int64_t, K);
		for (int c = 0; c < K; c++)
			memory[c] = (int64_t)random_below(seed, 50);
		table_node(t, K, random_costs(ctx, seed, K, 20), memory);
		for (int d = 0; d < 2; d++)
			if (d ? i >= SIDE : i % SIDE != 0)
				table_edge(t, i - (d ? SIDE : 1), i,
					table_matrix(t, K, K, random_costs(ctx, seed, K * K, 30), NULL));
	}
	t->p.memory_limit = limited ? 18 * SIDE * SIDE : AP_NO_LIMIT;
	return t;
}

/* Whatever the program says or does, or if it is not there: the optimum, and a note where there is no
 * answer. No file stays open and no process alive. */
START_TEST(no_program_is_believed)
{
	static const struct {
		const char *mode, *note;
	} modes[] = {{"quits", "ended before it had answered"}, {"dies", "ended before it had answered"},
		{"short", "ended before it had answered"}, {"another-version", "is it of another version?"},
		{"bad-end", "is it of another version?"}, {"nan", "is it of another version?"},
		{"busy", "is it of another version?"}, {"zeros", NULL}, {"odd", NULL}, {"huge", NULL},
		{"infeasible", NULL}, {"stopped", NULL}, {"missing", "No such file or directory"}};
	char root[] = "/tmp/autopar-stub-XXXXXX";
	int files = open_files();
	ck_assert_ptr_nonnull(mkdtemp(root));
	for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
		struct ap_ctx ctx = ctx_create(false);
		uint64_t seed = 5;
		bool missing = !strcmp(modes[m].mode, "missing");
		ctx.helpers = missing ? "/nowhere" : folder_of_stub(&ctx, root, modes[m].mode);
		for (int i = 0; i < 20; i++) {
			struct table *t = grid(&ctx, &seed, i % 2);
			struct ap_choice want = solve(&ctx, "brute_force", &t->p);
			struct ap_choice got = solve(&ctx, ENGINE, &t->p);
			ck_assert_int_eq(got.outcome, want.outcome);
			ck_assert_double_eq(got.cost, want.cost);
			ck_assert_double_eq(got.lower_bound, want.lower_bound);
			ck_assert_int_eq(got.least_memory, want.least_memory);
			expect_no_child();
		}
		ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_NOTE), modes[m].note != NULL);
		if (modes[m].note)
			ck_contains(messages(&ctx), modes[m].note);
		if (!missing)
			remove_stub(&ctx, ctx.helpers);
		ctx_destroy(&ctx);
	}
	ck_assert_int_eq(rmdir(root), 0);
	ck_assert_int_eq(open_files(), files);
}
END_TEST

START_TEST(a_program_that_hangs_is_stopped)
{
	char root[] = "/tmp/autopar-stub-XXXXXX";
	struct ap_ctx ctx = ctx_create(false);
	struct sigaction act = {.sa_handler = on_alarm};
	uint64_t seed = 5;
	double before = seconds();
	ck_assert_ptr_nonnull(mkdtemp(root));
	ctx.helpers = folder_of_stub(&ctx, root, "hangs");
	ctx.stop = &stop;
	stop = 0;
	sigaction(SIGALRM, &act, NULL);
	alarm(1);
	for (int i = 0; i < 20 && !stop; i++)
		solve(&ctx, ENGINE, &grid(&ctx, &seed, i % 2)->p);
	ck_assert_int_eq(stop, SIGALRM);
	ck_assert_double_lt(seconds() - before, 1.5);
	expect_no_child();
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_NOTE), 0);
	remove_stub(&ctx, ctx.helpers);
	ck_assert_int_eq(rmdir(root), 0);
	ctx_destroy(&ctx);
}
END_TEST
