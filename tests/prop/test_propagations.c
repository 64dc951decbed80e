/* SPDX-License-Identifier: Apache-2.0 */
/* Propagation on random graphs: every row is decided and legal, what is held stays, and what was completed
 * is complete. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cost/conflict.h"
#include "harness.h"
#include "route/propagation.h"
#include "shard/legal.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 14, DEVICES = 16 };

static bool is_same(const struct trial *t, ap_id i, const int32_t *a, const int32_t *b)
{
	return memcmp(a, b, t->f.graph->node[i].bound.nfactor * sizeof *a) == 0;
}

static const int32_t *const *complete(struct trial *t, const int32_t *const *held)
{
	struct ap_ctx ctx = t->f.ctx;
	const int32_t *const *out;
	enum ap_status st;

	ctx.diag = ap_diag_create(ctx.arena, false);
	st = ap_propagation_complete(&ctx, t->f.graph, t->f.machine, &t->f.step, held, &out);
	REQUIRE(t, st == AP_OK || st == AP_INFEASIBLE, "%s", ap_status_text(st));
	return st == AP_OK ? out : NULL;
}

/* Some rows of counts; every one in `one_in`, or none at all. */
static const int32_t **some_of(struct trial *t, const int32_t *const *counts, uint64_t one_in)
{
	const int32_t **held = AP_NEW_N(t->f.ctx.arena, const int32_t *, t->f.graph->nnode);

	for (ap_id i = 0; counts && i < t->f.graph->nnode; i++)
		if (random_below(&t->random, one_in) == 0)
			held[i] = counts[i];
	return held;
}

static void rows_are_a_plan(struct trial *t, const int32_t *const *held, const int32_t *const *out)
{
	const char *why;
	ap_id node;

	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		const struct ap_node *n = &t->f.graph->node[i];

		REQUIRE(t, ap_space_legal(&t->f.ctx, &n->bound, out[i], t->f.machine->ndev, &t->f.step,
			&why), "%s: %s", n->name, why);
		REQUIRE(t, !held[i] || is_same(t, i, held[i], out[i]), "%s", n->name);
	}
	why = ap_plan_conflict(&t->f.ctx, t->f.graph, t->f.machine->ndev, out, &node);
	REQUIRE(t, !why, "%s: %s", t->f.graph->node[node].name, why);
}

static void completes_to_a_plan(struct trial *t)
{
	const int32_t **held = some_of(t, trial_counts(t), 4);
	const int32_t *const *out = complete(t, held), *const *again;

	if (!out)
		return;
	rows_are_a_plan(t, held, out);
	again = complete(t, held);
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		REQUIRE(t, is_same(t, i, out[i], again[i]), "%s", t->f.graph->node[i].name);
	again = complete(t, out);
	for (ap_id i = 0; i < t->f.graph->nnode; i++)
		REQUIRE(t, is_same(t, i, out[i], again[i]), "%s", t->f.graph->node[i].name);
	t->telling = t->f.machine->ndev > 1;
}

/* What is kept from one run to the next decides nothing. */
static void completes_again(struct trial *t)
{
	struct ap_ctx quiet = t->f.ctx;
	struct ap_completer *c = ap_propagation_completer(&t->f.ctx, t->f.graph, t->f.machine, &t->f.step);

	quiet.diag = ap_diag_create(quiet.arena, false);
	for (int run = 0; run < 4; run++) {
		const int32_t **held = some_of(t, trial_counts(t), 1 + random_below(&t->random, 6));
		const int32_t *const *out = complete(t, held), *const *again;
		enum ap_status st = c->complete(c, &quiet, held, &again);

		REQUIRE(t, out ? st == AP_OK : st == AP_INFEASIBLE, "%s", ap_status_text(st));
		for (ap_id i = 0; out && i < t->f.graph->nnode; i++)
			REQUIRE(t, is_same(t, i, out[i], again[i]), "%s", t->f.graph->node[i].name);
		t->telling |= out != NULL;
	}
	c->destroy(c);
}

static void completes_stages(struct trial *t)
{
	if (trial_staged(t, 2, 1))
		completes_to_a_plan(t);
}

START_TEST(pipelines_are_completed)
{
	trial_each(200, OPERATORS, DEVICES, completes_stages);
}
END_TEST

START_TEST(what_is_kept_decides_nothing)
{
	trial_each(200, OPERATORS, DEVICES, completes_again);
}
END_TEST

START_TEST(what_is_completed_is_a_plan)
{
	trial_each(400, OPERATORS, DEVICES, completes_to_a_plan);
}
END_TEST
