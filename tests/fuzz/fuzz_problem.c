/* SPDX-License-Identifier: Apache-2.0 */
/* Problems: solved by every engine, whose answers must agree, and written in the forms of other solvers. */
#include <string.h>

#include "base/json.h"
#include "base/vec.h"
#include "fuzz.h"
#include "search/engine.h"

enum { MOST_WORK = 20000 };

static const char *word(size_t i)
{
	static const char *const words[] = {"memory_limit", "nodes", "edges", "matrices", "name", "cost", "memory",
		"from", "to", "matrix", "rows", "cols", "next", "autopar-problem/1", "schema"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static int has_next(const struct ap_problem *p)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->node[i].k > 1 && !p->node[i].next)
			return 0;
	return 1;
}

/* Engines that prove something prove the same; nobody is below a bound. */
static void agree(const struct ap_choice *a, const struct ap_choice *b)
{
	int exact = a->outcome == AP_OUT_OPTIMAL && b->outcome == AP_OUT_OPTIMAL;
	int none = a->outcome == AP_OUT_INFEASIBLE || b->outcome == AP_OUT_INFEASIBLE;
	int one = a->outcome == AP_OUT_OPTIMAL || b->outcome == AP_OUT_OPTIMAL;

	fuzz_require(!exact || a->cost == b->cost, "two engines have different optima");
	fuzz_require(!none || !one, "one engine has an optimum, another proves that there is none");
}

static void solve_all(struct ap_ctx *ctx, const char *text, size_t len)
{
	struct ap_budget budget = {.work = MOST_WORK, .table_bytes = 1 << 20};
	struct ap_choice first = {.outcome = AP_OUT_LIMIT}, c;
	const struct ap_engine *e;
	const struct ap_problem *p;
	struct ap_json *doc;

	if (ap_json_parse(ctx, "in.json", text, len, 0, &doc) != AP_OK || ap_problem_load(ctx, doc, &p) != AP_OK)
		return;
	for (size_t i = 0; (e = ap_engine_at(i)); i++) {
		if ((p->memory_limit != AP_NO_LIMIT && !(e->flags & AP_ENGINE_MEMORY)) ||
			(e->flags & AP_ENGINE_NEXT && !has_next(p)) || !(e->flags & AP_ENGINE_EXACT))
			continue;
		if (!strcmp(e->name, "integer_programming") && p->n % 8 != 3)
			continue; /* it starts a process */
		e->solve(ctx, p, &budget, &c);
		if (first.outcome == AP_OUT_LIMIT || first.outcome == AP_OUT_FEASIBLE)
			first = c;
		agree(&first, &c);
	}
}

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in.json", data, size);
	if (fuzz_run("check in.json") != AP_OK)
		return 0;
	fuzz_with(solve_all, data, size);
	(void)fuzz_run("solve in.json --write-lp out.lp --work-limit 20000");
	(void)fuzz_run("solve in.json --search-mode recursive_programming --work-limit 20000");
	(void)fuzz_run("solve in.json --write-wcsp out.wcsp --search-mode dynamic_programming --work-limit 20000");
	return 0;
}

FUZZ_TARGET(problem, word, try_input)
