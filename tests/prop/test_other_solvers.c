/* SPDX-License-Identifier: Apache-2.0 */
/* glpsol and toulbar2, where installed, find our optimum in the files that we write for them. */
#include <math.h>
#include <unistd.h>

#include "random_problem.h"
#include "search/engine.h"
#include "unit.h"

enum { CASES = 40, MAX_N = 6 };

typedef void write_problem(const struct ap_problem *p, ap_write_fn *write, void *user);

static bool installed(const char *program)
{
	char command[80];
	snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", program);
	return system(command) == 0;
}

static void append(void *user, const char *bytes, size_t len)
{
	ck_assert_uint_eq(fwrite(bytes, 1, len, user), len);
}

/* Writes p to dir/name, runs the command there, and finds the number after `before` in its output.
 * False when it is not there: no solution. */
static bool solve_with(const char *dir, const char *name, const struct ap_problem *p,
	write_problem *write, const char *command, const char *before, double *found)
{
	char path[256], line[4096];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	write(p, append, f);
	ck_assert_int_eq(fclose(f), 0);
	snprintf(line, sizeof line, "cd %s && %s", dir, command);
	FILE *out = popen(line, "r");
	bool any = false;
	while (fgets(line, sizeof line, out)) {
		const char *at = strstr(line, before);
		if (at) {
			*found = strtod(at + strlen(before), NULL);
			any = true;
		}
	}
	pclose(out);
	remove(path);
	return any;
}

static double lp_scale(const struct ap_problem *p)
{
	double most = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		for (uint32_t c = 0; c < p->node[i].k; c++)
			most = p->node[i].cost[c] < INFINITY ? fmax(most, fabs(p->node[i].cost[c])) : most;
	}
	for (uint32_t i = 0; i < p->nmatrix; i++) {
		for (size_t c = 0; c < (size_t)p->matrix[i].rows * p->matrix[i].cols; c++) {
			double cost = p->matrix[i].cost[c];
			most = cost < INFINITY ? fmax(most, fabs(cost)) : most;
		}
	}
	int exponent;
	frexp(most, &exponent);
	return most > 0 && most < 1 ? ldexp(1, 20 - exponent) : 1;
}

static void check_lp(const char *dir, const struct ap_problem *p, const struct ap_choice *want)
{
	double found;
	bool any = solve_with(dir, "p.lp", p, ap_problem_write_lp,
		"glpsol --lp p.lp -w p.sol >/dev/null && grep '^s mip' p.sol; rm p.sol", " o ",
		&found);
	ck_assert_int_eq(any, want->outcome == AP_OUT_OPTIMAL);
	if (any)
		ck_assert_double_eq_tol(found / lp_scale(p), want->cost, 1e-7 * (1 + fabs(want->cost)) / lp_scale(p));
}

static void check_wcsp(const char *dir, const struct ap_problem *p, const struct ap_choice *want)
{
	double found, offset = 0;
	if (p->memory_limit != AP_NO_LIMIT)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		double low = 0;
		for (uint32_t c = 0; c < p->node[i].k; c++)
			low = fmin(low, p->node[i].cost[c]);
		offset += low;
	}
	for (uint32_t i = 0; i < p->nedge; i++) {
		const struct ap_pmatrix *m = &p->matrix[p->edge[i].matrix];
		double low = 0;
		for (size_t c = 0; c < (size_t)m->rows * m->cols; c++)
			low = fmin(low, m->cost[c]);
		offset += low;
	}
	bool any = solve_with(dir, "p.wcsp", p, ap_problem_write_wcsp, "toulbar2 p.wcsp 2>&1",
		"Optimum: ", &found);
	ck_assert_int_eq(any, want->outcome == AP_OUT_OPTIMAL);
	if (any)
		ck_assert_double_eq(found * p->quantum + offset, want->cost);
}

START_TEST(other_solvers_find_our_optimum)
{
	uint64_t seed = random_seed() + 2;
	bool glpsol = installed("glpsol"), toulbar2 = installed("toulbar2");
	char dir[] = "/tmp/autopar-test-XXXXXX";
	ck_assert_ptr_nonnull(mkdtemp(dir));
	printf("glpsol: %s, toulbar2: %s\n", glpsol ? "yes" : "not installed",
		toulbar2 ? "yes" : "not installed");
	for (int i = 0; i < CASES; i++) {
		struct ap_ctx ctx = ctx_create(false);
		const struct ap_problem *p = random_problem(&ctx, &seed, MAX_N);
		struct ap_choice want;
		ap_engine_find("dynamic_programming")->solve(&ctx, p, &(struct ap_budget){0}, &want);
		if (glpsol)
			check_lp(dir, p, &want);
		if (toulbar2)
			check_wcsp(dir, p, &want);
		ctx_destroy(&ctx);
	}
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST
