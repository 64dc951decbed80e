/* SPDX-License-Identifier: Apache-2.0 */
/* The batch strategy on random graphs, held against what its rule says, found the long way. */
#include "route/follow.h"
#include "route/semi_auto.h"
#include "rule/batch.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/strategy.h"
#include "trial.h"
#include "unit.h"

enum { OPERATORS = 16, DEVICES = 24, STAGES = 3, MOST_VECTORS = 16 };

static struct ap_ctx quiet(struct trial *t)
{
	struct ap_ctx ctx = t->f.ctx;

	ctx.diag = ap_diag_create(ctx.arena, false);
	return ctx;
}

/* NULL where it is refused. */
static const int32_t *const *complete(struct trial *t, const int32_t *const *held)
{
	struct ap_ctx ctx = quiet(t);
	const int32_t *const *counts;
	enum ap_status st =
		ap_semi_auto_complete(&ctx, t->f.graph, t->f.machine, &t->f.step, held, &counts);

	REQUIRE(t, st == AP_OK || st == AP_INFEASIBLE, "%s", messages(&ctx));
	return st == AP_OK ? counts : NULL;
}

static int64_t length(const struct trial *t, ap_id tensor, int d)
{
	const struct ap_tensor *x = &t->f.graph->tensor[tensor];

	return x->shape.dim[d] / (x->batch >> d & 1 ? t->f.step.micro_batches : 1);
}

/* Do so many parts divide all that is cut? */
static bool divides(const struct trial *t, const struct ap_node *n, const uint8_t *mask, int64_t parts)
{
	for (uint16_t k = 0; k < n->bound.nin; k++)
		for (int d = 0; d < n->bound.in[k].rank; d++)
			if (mask[k] >> d & 1 && length(t, n->in[k], d) % parts != 0)
				return false;
	return true;
}

/* The largest number of parts that divides devices and lengths, by trying. */
static int64_t largest_parts(const struct trial *t, const struct ap_node *n, const uint8_t *mask)
{
	int64_t parts = t->f.machine->ndev;

	while (t->f.machine->ndev % parts != 0 || !divides(t, n, mask, parts))
		parts--;
	return parts;
}

/* Vectors of a node that is cut by its batch: the largest number of parts where it is cut, else 1. */
static void check_node(struct trial *t, const struct ap_node *n, const int32_t *count)
{
	int32_t cut[MOST_VECTORS][AP_MAX_RANK];
	uint8_t mask[AP_MAX_OPERAND], rank[MOST_VECTORS];
	struct ap_placement p;
	int64_t parts;

	if (*n->bound.row->strategy || n->bound.nin > MOST_VECTORS ||
		ap_op_batch_positions(&n->bound, mask) != AP_BATCH_COMMON)
		return;
	parts = largest_parts(t, n, mask);
	ap_placement_make(&n->bound, count, t->f.machine->ndev, &p);
	ap_space_to_strategy(&p, rank, cut, MOST_VECTORS);
	for (uint16_t k = 0; k < n->bound.nin; k++)
		for (int d = 0; d < rank[k]; d++)
			REQUIRE(t, cut[k][d] == (mask[k] >> d & 1 ? parts : 1), "%s: %d of operand %d in %d",
				n->name, d, k, cut[k][d]);
	t->telling |= parts > 1 && parts < t->f.machine->ndev;
}

static bool is_same(const struct trial *t, ap_id i, const int32_t *a, const int32_t *b)
{
	return memcmp(a, b, t->f.graph->node[i].bound.nfactor * sizeof *a) == 0;
}

/* What a checkpoint holds of a plan leads back to it, and what is fixed is of every plan. */
static void check_again(struct trial *t, const int32_t *const *counts)
{
	const struct ap_graph *g = t->f.graph;
	const int32_t **held = AP_NEW_N(t->f.ctx.arena, const int32_t *, g->nnode);
	const int32_t *const *again, *const *fixed;

	for (ap_id i = 0; i < g->nnode; i++)
		held[i] = g->node[i].param != AP_NONE ? counts[i] : NULL;
	again = complete(t, held);
	REQUIRE(t, again, "held, it is refused");
	REQUIRE(t, ap_semi_auto_fix(&t->f.ctx, g, t->f.machine, &t->f.step, NULL, &fixed) == AP_OK,
		"what is fixed of a plan");
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];

		REQUIRE(t, is_same(t, i, counts[i], again[i]), "%s", n->name);
		REQUIRE(t, (fixed[i] != NULL) == (n->param == AP_NONE && !ap_follow_is(n)), "%s", n->name);
		REQUIRE(t, !fixed[i] || is_same(t, i, counts[i], fixed[i]), "%s", n->name);
	}
}

static void completes(struct trial *t)
{
	const int32_t *const *counts = complete(t, NULL);
	const char *why;

	if (!counts)
		return;
	for (ap_id i = 0; i < t->f.graph->nnode; i++) {
		const struct ap_node *n = &t->f.graph->node[i];

		REQUIRE(t, counts[i], "%s is open", n->name);
		REQUIRE(t, ap_space_legal(&t->f.ctx, &n->bound, counts[i], t->f.machine->ndev, &t->f.step,
			&why), "%s: %s", n->name, why);
		if (!ap_follow_is(n))
			check_node(t, n, counts[i]);
	}
	check_again(t, counts);
}

START_TEST(the_batch_is_cut_as_the_rule_says)
{
	trial_each(600, OPERATORS, DEVICES, completes);
}
END_TEST

/* What a staged graph sends lies as it is made, wherever one cut of it says so. */
static void check_send(struct trial *t, const int32_t *const *counts, ap_id i)
{
	const struct ap_node *n = &t->f.graph->node[i];
	const struct ap_tensor *x = &t->f.graph->tensor[n->in[0]];
	struct ap_placement p, mine;
	struct ap_layout made, read;

	if (n->bound.row->unit != AP_OP_LINK || x->kind != AP_TENSOR_ACT)
		return;
	ap_placement_make(&t->f.graph->node[x->producer].bound, counts[x->producer], t->f.machine->ndev, &p);
	ap_placement_make(&n->bound, counts[i], t->f.machine->ndev, &mine);
	REQUIRE(t, ap_layout_make(&p, &p.bound->out[x->result], &made), "%s", n->name);
	REQUIRE(t, ap_layout_make(&mine, &n->bound.in[0], &read), "%s", n->name);
	t->telling |= !ap_layout_is_whole(&made);
	if (n->peer > n->stage || ap_layout_equal(&made, &read))
		return;
	REQUIRE(t, t->f.graph->node[x->producer].bound.row->unit != AP_OP_LINK, "%s received otherwise",
		n->name);
}

static void sends(struct trial *t)
{
	const int32_t *const *counts;

	if (!trial_staged(t, 2 + (uint32_t)random_below(&t->random, STAGES - 1), 1))
		return;
	counts = complete(t, NULL);
	for (ap_id i = 0; counts && i < t->f.graph->nnode; i++) {
		REQUIRE(t, counts[i], "%s is open", t->f.graph->node[i].name);
		check_send(t, counts, i);
	}
}

START_TEST(what_is_sent_lies_as_it_is_made)
{
	trial_each(300, OPERATORS, DEVICES, sends);
}
END_TEST
