/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept, against the definition: a step that forgets all results but the kept ones finds, going
 * backwards, everything that the backward passes read, by computing marked operators again from what
 * is there; and it would not without any of what is kept and of what is said to be recomputed. Where
 * groups run again whole, all of their operators do, and find what they read.
 */
#include "base/arena.h"
#include "base/map.h"
#include "cost/recompute.h"
#include "cost/task.h"
#include "random_pipe.h"
#include "rule/op.h"
#include "trial.h"
#include "unit.h"

struct replay {
	const struct trial *t;
	const struct ap_graph *g;
	const struct ap_task *task;
	const struct ap_again *mark;
	bool *asked; /* [ntensor] */
	bool *used; /* [ntensor] kept ones that were found */
	bool *again; /* [nnode] ran once more */
	bool *direct; /* [ntensor] a backward pass asked for it */
};

static bool is_view(const struct ap_node *n)
{
	return n->bound.row->unit == AP_OP_VIEW;
}

/* The tensor has to be there. */
static void find(struct replay *r, ap_id tensor)
{
	const struct ap_tensor *t = &r->g->tensor[tensor];
	const struct ap_node *n;

	if (r->asked[tensor] || t->kind != AP_TENSOR_ACT)
		return;
	r->asked[tensor] = true;
	if (r->task[t->producer].out[t->result].kept) {
		r->used[tensor] = true;
		return;
	}
	n = &r->g->node[t->producer];
	if (!is_view(n)) {
		REQUIRE(r->t, r->mark[t->producer].group != AP_NONE, "%s is lost", t->name);
		REQUIRE(r->t, r->task[t->producer].recomputed, "%s is not made again", t->name);
		REQUIRE(r->t, r->task[t->producer].out[t->result].needed, "%s is not needed", t->name);
		r->again[t->producer] = true;
	}
	for (uint16_t i = 0; i < n->bound.nin; i++) {
		REQUIRE(r->t, r->task[t->producer].in[i].kept, "an operand of %s is not kept", n->name);
		find(r, n->in[i]);
	}
}

/* What the gradients of an operator are made of: what its row says, but of two factors each is there
 * for the gradient of the other. */
static bool reads(const struct ap_task *t, uint16_t i)
{
	bool other = false;

	for (uint16_t j = 0; j < t->bound->nin; j++)
		other |= j != i && t->bound->in[j].saved && t->in[j].grad;
	return t->bound->in[i].saved && (other || !ap_op_is_product(t->bound->row));
}

/* Marks what a backward pass reads itself; through views, what they show. */
static void ask(struct replay *r, ap_id tensor)
{
	const struct ap_tensor *t = &r->g->tensor[tensor];

	find(r, tensor);
	r->direct[tensor] = true;
	if (t->kind == AP_TENSOR_ACT && is_view(&r->g->node[t->producer]))
		ask(r, r->g->node[t->producer].in[0]);
}

static void backward_pass(struct replay *r, ap_id node)
{
	const struct ap_node *n = &r->g->node[node];
	const struct ap_task *t = &r->task[node];

	if (!t->backward)
		return;
	for (uint16_t i = 0; i < n->bound.nin; i++)
		if (reads(t, i)) {
			REQUIRE(r->t, t->in[i].kept, "%s loses an operand", n->name);
			ask(r, n->in[i]);
		}
	for (uint16_t o = 0; o < n->bound.nout; o++)
		if (n->bound.out[o].saved)
			ask(r, n->out[o]);
}

/* The operator runs again, whoever reads what it makes. */
static void repeat(struct replay *r, ap_id node)
{
	const struct ap_node *n = &r->g->node[node];

	r->again[node] = true;
	for (uint16_t i = 0; i < n->bound.nin; i++)
		if (!r->task[node].in[i].cast) {
			REQUIRE(r->t, r->task[node].in[i].kept, "%s loses an operand", n->name);
			find(r, n->in[i]);
		}
}

static void nothing_in_vain(const struct replay *r)
{
	for (ap_id i = 0; i < r->g->nnode; i++) {
		const struct ap_task *t = &r->task[i];

		REQUIRE(r->t, t->recomputed == r->again[i], "%s runs again in vain", r->g->node[i].name);
		for (uint16_t o = 0; o < t->bound->nout; o++) {
			ap_id out = r->g->node[i].out[o];
			const struct ap_task_result *x = &t->out[o];

			REQUIRE(r->t, x->kept == r->used[out] || is_view(&r->g->node[i]),
				"%s is kept in vain", r->g->tensor[out].name);
			REQUIRE(r->t, !x->kept || r->mark[i].group == AP_NONE,
				"%s is kept beside", r->g->tensor[out].name);
			REQUIRE(r->t, x->again == (t->recomputed && !x->twice && r->direct[out]),
				"%s, again",
				r->g->tensor[out].name);
		}
	}
}

/* Sets: those who hand each other what has to be made anew are one; a stage counts its own. */
static void sets_hold_together(const struct replay *r)
{
	struct ap_map *sets = ap_map_create(r->t->f.ctx.scratch);

	for (ap_id i = 0; i < r->g->nnode; i++) {
		const struct ap_task *t = &r->task[i];
		bool inside = t->recompute_set != AP_NONE;

		REQUIRE(r->t, inside == (t->recompute_sets > 0) && inside >= t->recomputed, "sets");
		if (!inside)
			continue;
		ap_map_put(sets, &t->recompute_set, sizeof t->recompute_set, NULL);
		for (uint16_t x = 0; x < t->bound->nin; x++) {
			ap_id from = r->g->tensor[r->g->node[i].in[x]].producer;

			REQUIRE(r->t, from == AP_NONE || !t->recomputed || !r->task[from].recomputed ||
				r->task[from].recompute_set == t->recompute_set, "parted");
		}
	}
	for (ap_id i = 0; i < r->g->nnode; i++)
		if (r->task[i].recompute_set != AP_NONE)
			REQUIRE(r->t, r->task[i].recompute_sets == ap_map_size(sets) &&
				r->task[i].recompute_set < ap_map_size(sets), "numbers");
}

static struct ap_graph flagged(struct trial *t)
{
	struct ap_graph g = *t->f.graph;
	struct ap_node *node = ap_arena_memdup(t->f.ctx.arena, g.node, g.nnode * sizeof *node);
	uint64_t often = 1 + random_below(&t->random, 4);

	for (ap_id i = 0; i < g.nnode; i++)
		node[i].recompute = (int8_t)(random_below(&t->random, often) == 0
			? random_below(&t->random, 3) - 1 : 1);
	g.node = node;
	return g;
}

static void forgetting(struct trial *t)
{
	struct ap_arena *arena = t->f.ctx.arena;
	struct ap_graph g = flagged(t);
	struct ap_again *mark = AP_NEW_N(arena, struct ap_again, g.nnode);
	struct replay r = {.t = t, .g = &g, .mark = mark};

	t->f.step.training = true;
	t->f.step.recompute = random_kinds(t);
	t->f.step.recompute_whole = random_below(&t->random, 2);
	ap_recompute_mark(&t->f.ctx, &g, &t->f.step, mark);
	ap_tasks_make(&t->f.ctx, &g, &t->f.step, &r.task);
	r.asked = AP_NEW_N(arena, bool, g.ntensor);
	r.used = AP_NEW_N(arena, bool, g.ntensor);
	r.direct = AP_NEW_N(arena, bool, g.ntensor);
	r.again = AP_NEW_N(arena, bool, g.nnode);
	for (ap_id i = g.nnode; i-- > 0;) {
		backward_pass(&r, i);
		if (mark[i].repeats != AP_NONE && !is_view(&g.node[i]))
			repeat(&r, i);
	}
	nothing_in_vain(&r);
	sets_hold_together(&r);
	for (ap_id i = 0; i < g.nnode; i++)
		t->telling |= r.again[i];
}

START_TEST(what_is_kept_is_what_it_takes)
{
	trial_each(2000, 24, 8, forgetting);
}
END_TEST
