/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs with pipeline stages in them: what holds of every one, and that it computes what the graph
 * without stages does, forward and backward. What fails names its case, whose number is added to
 * AP_SEED.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "graph/graph.h"
#include "game.h"
#include "harness.h"
#include "random_graph.h"
#include "stages.h"

enum { OPERATORS = 14, MOST_ELEMENTS = 4000, MOST_PARTS = 8 };

struct trial {
	struct fixture f;
	struct ex_world w;
	const struct ap_graph *g, *staged;
	const struct ap_spot *spot;
	int32_t *part; /* of the nodes of staged */
	ap_id *old; /* tensors of g that those of staged stand for */
	uint32_t pairs;
};

static ap_id node_named(const struct ap_graph *g, const char *name)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (strcmp(g->node[i].name, name) == 0)
			return i;
	return AP_NONE;
}

static ap_id tensor_named(const struct ap_graph *g, const char *name)
{
	for (ap_id i = 0; i < g->ntensor; i++)
		if (strcmp(g->tensor[i].name, name) == 0)
			return i;
	return AP_NONE;
}

static bool is_link(const struct ap_node *n)
{
	return n->peer >= 0;
}

/* Pairs that there must be: counted, not found as the program does. */
static uint32_t count_pairs(const struct trial *t)
{
	const struct ap_graph *g = t->g;
	uint32_t n = 0;

	for (ap_id x = 0; x < g->ntensor; x++) {
		const struct ap_tensor *tensor = &g->tensor[x];
		bool at[MOST_PARTS] = {false};
		int32_t home = MOST_PARTS;

		for (uint32_t u = 0; u < tensor->nuse; u++) {
			const struct ap_spot *s = &t->spot[tensor->use[u].node];

			at[tensor->kind == AP_TENSOR_ACT ? s->part : s->stage] = true;
			home = s->part < home ? s->part : home;
		}
		if (tensor->kind == AP_TENSOR_ACT)
			at[t->spot[tensor->producer].part] = false;
		for (int p = 0; p < MOST_PARTS; p++)
			n += at[p] && tensor->kind != AP_TENSOR_INPUT && tensor->kind != AP_TENSOR_CONST;
		n -= tensor->kind == AP_TENSOR_PARAM && tensor->nuse > 0; /* the stage that has it */
	}
	return n;
}

/* The old tensor that a new one stands for, seen through Send and Receive. */
static void trace_tensors(struct trial *t)
{
	const struct ap_graph *s = t->staged;

	t->old = AP_NEW_N(t->f.ctx.arena, ap_id, s->ntensor);
	for (ap_id x = 0; x < s->ntensor; x++) {
		const struct ap_node *n = s->tensor[x].producer == AP_NONE ? NULL
			: &s->node[s->tensor[x].producer];

		t->old[x] = n && is_link(n) ? t->old[n->in[0]] : tensor_named(t->g, s->tensor[x].name);
		ck_assert_uint_ne(t->old[x], AP_NONE);
	}
}

/* A node's part: of the old node, or of the pair's name. */
static void trace_parts(struct trial *t)
{
	const struct ap_graph *s = t->staged;

	t->part = AP_NEW_N(t->f.ctx.arena, int32_t, s->nnode);
	for (ap_id i = 0; i < s->nnode; i++) {
		ap_id old = node_named(t->g, s->node[i].name);
		const struct ap_spot *spot = NULL;

		for (ap_id k = 0; old == AP_NONE && k < t->g->nnode; k++)
			if (t->spot[k].stage == s->node[i].stage && t->spot[k].segment == s->node[i].segment)
				spot = &t->spot[k];
		spot = old == AP_NONE ? spot : &t->spot[old];
		ck_assert_ptr_nonnull(spot);
		t->part[i] = spot->part;
		ck_assert_int_eq(s->node[i].stage, spot->stage);
		ck_assert_int_eq(s->node[i].segment, spot->segment);
		ck_assert(is_link(&s->node[i]) == (old == AP_NONE));
	}
}

static void pair_holds(const struct trial *t, ap_id send)
{
	const struct ap_graph *s = t->staged;
	const struct ap_node *a = &s->node[send], *b;
	const struct ap_tensor *sent = &s->tensor[a->out[0]], *from = &s->tensor[a->in[0]], *got;

	ck_assert_uint_eq(sent->nuse, 1);
	b = &s->node[sent->use[0].node];
	got = &s->tensor[b->out[0]];
	ck_assert_str_eq(b->type, "Receive");
	ck_assert_int_eq(a->peer, b->stage);
	ck_assert_int_eq(b->peer, a->stage);
	ck_assert_int_lt(t->part[send], t->part[sent->use[0].node]);
	ck_assert(a->once == b->once && a->once == (from->kind == AP_TENSOR_PARAM));
	ck_assert(a->once || from->kind == AP_TENSOR_ACT);
	ck_assert(!a->once || a->stage != b->stage);
	ck_assert(from->producer == AP_NONE || t->part[from->producer] == t->part[send]);
	ck_assert_mem_eq(&got->shape, &from->shape, sizeof got->shape);
	ck_assert_int_eq(got->batch, from->batch);
	ck_assert_int_eq(sent->batch, from->batch);
	ck_assert_uint_eq(a->param, AP_NONE);
	ck_assert_str_eq(strchr(a->name, '/'), strchr(b->name, '/'));
	for (int f = 0; f < b->bound.nfactor; f++)
		ck_assert_int_eq(b->bound.factor[f].flags, a->bound.factor[f].flags);
	for (int d = 0; d < from->shape.rank; d++)
		if (a->bound.in[0].dim[d].n > 0)
			ck_assert_int_eq(!!(a->bound.factor[a->bound.in[0].dim[d].factor[0]].flags &
				AP_FACTOR_BATCH), from->batch >> d & 1);
}

/* Reads what is in its own part, or came there, or lies in its stage's memory. */
static void operands_are_there(const struct trial *t, ap_id node)
{
	const struct ap_graph *s = t->staged;
	const struct ap_node *n = &s->node[node];

	for (int k = 0; k < n->bound.nin; k++) {
		const struct ap_tensor *x = &s->tensor[n->in[k]];
		const struct ap_node *from = x->producer == AP_NONE ? NULL : &s->node[x->producer];

		ck_assert(!from || x->producer < node);
		if (strcmp(n->type, "Receive") == 0)
			ck_assert(from && strcmp(from->type, "Send") == 0);
		else if (from && is_link(from))
			ck_assert(strcmp(from->type, "Receive") == 0 && from->stage == n->stage &&
				(from->once || t->part[x->producer] == t->part[node]));
		else if (from)
			ck_assert_int_eq(t->part[x->producer], t->part[node]);
		for (uint32_t u = 0; u < x->nuse && (x->kind == AP_TENSOR_PARAM ||
				x->kind == AP_TENSOR_CONST); u++)
			ck_assert_int_eq(s->node[x->use[u].node].stage, n->stage);
	}
}

static void node_is_kept(const struct trial *t, ap_id node)
{
	const struct ap_node *n = &t->staged->node[node], *o;
	struct ap_ctx ctx = t->f.ctx;
	const char *key;

	o = &t->g->node[node_named(t->g, n->name)];
	ck_assert_str_eq(n->type, o->type);
	ck_assert(n->backward == o->backward);
	ck_assert_uint_eq(n->bound.nin, o->bound.nin);
	ck_assert_uint_eq(n->bound.nout, o->bound.nout);
	for (int k = 0; k < n->bound.nin; k++)
		ck_assert_uint_eq(t->old[n->in[k]], o->in[k]);
	for (int k = 0; k < n->bound.nout; k++)
		ck_assert_uint_eq(t->old[n->out[k]], o->out[k]);
	key = ap_node_key(&ctx, t->g, (ap_id)(o - t->g->node));
	ck_assert_pstr_eq(ap_node_key(&ctx, t->staged, node), key);
}

static void tensor_holds(const struct trial *t, ap_id x)
{
	const struct ap_graph *s = t->staged;
	const struct ap_tensor *n = &s->tensor[x], *o = &t->g->tensor[t->old[x]];
	bool link = n->producer != AP_NONE && is_link(&s->node[n->producer]), own = false;

	ck_assert_mem_eq(&n->shape, &o->shape, sizeof n->shape);
	if (!link) {
		ck_assert_int_eq(n->kind, o->kind);
		ck_assert(n->needs_grad == o->needs_grad || n->kind == AP_TENSOR_CONST);
	}
	ck_assert(!n->needs_grad || o->needs_grad);
	for (uint32_t u = 0; u < n->nuse; u++) {
		ck_assert_uint_eq(s->node[n->use[u].node].in[n->use[u].operand], x);
		own |= n->use[u].node == n->owner.node && n->use[u].operand == n->owner.operand;
	}
	ck_assert(own == (n->nuse > 0));
	if (n->producer != AP_NONE)
		ck_assert_uint_eq(s->node[n->producer].out[n->result], x);
}

static void check_staged(struct trial *t)
{
	const struct ap_graph *s = t->staged;
	uint32_t slots = 0, uses = 0, sends = 0;

	trace_tensors(t);
	trace_parts(t);
	for (ap_id i = 0; i < s->nnode; i++) {
		slots += s->node[i].bound.nin;
		sends += strcmp(s->node[i].type, "Send") == 0;
		ck_assert(i == 0 || t->part[i - 1] <= t->part[i]);
		operands_are_there(t, i);
		if (strcmp(s->node[i].type, "Send") == 0)
			pair_holds(t, i);
		else if (!is_link(&s->node[i]))
			node_is_kept(t, i);
	}
	for (ap_id x = 0; x < s->ntensor; x++) {
		uses += s->tensor[x].nuse;
		tensor_holds(t, x);
	}
	t->pairs = count_pairs(t);
	ck_assert_uint_eq(uses, slots);
	ck_assert_uint_eq(sends, t->pairs);
	ck_assert_uint_eq(s->nnode, t->g->nnode + 2 * t->pairs);
	ck_assert_uint_eq(s->ninput, t->g->ninput);
	ck_assert_uint_eq(s->noutput, t->g->noutput);
	for (uint32_t i = 0; i < s->noutput; i++)
		ck_assert_uint_eq(t->old[s->output[i]], t->g->output[i]);
	ck_assert_uint_eq(s->loss == AP_NONE ? AP_NONE : t->old[s->loss], t->g->loss);
	ck_assert_int_eq(s->parameters, t->g->parameters);
}

static void same_values(const struct trial *t, const char *what, const struct ex_tensor *a,
	const struct ex_tensor *b, ap_id x)
{
	ck_assert_msg(!a->v == !b->v, "%s of \"%s\" is only in one graph", what, t->staged->tensor[x].name);
	if (a->v)
		ck_assert_msg(memcmp(a->v, b->v, (size_t)ex_count(&a->box) * sizeof *a->v) == 0,
			"%s of \"%s\" differs", what, t->staged->tensor[x].name);
}

/* False where the graph's own numbers cannot go through it. */
static bool compute_alike(struct trial *t, uint64_t seed)
{
	struct ex_graph_truth plain, staged;

	t->f.step.micro_batches = t->g->batch ? (int64_t[]){1, 2, 3}[ex_below(&t->w.rng, 3)] : 1;
	if (t->g->batch % t->f.step.micro_batches != 0)
		t->f.step.micro_batches = 1;
	if (!ex_graph_truth_make(&t->w, t->g, &t->f.step, seed, &plain))
		return false;
	ck_assert_msg(ex_graph_truth_make(&t->w, t->staged, &t->f.step, seed, &staged), "%s",
		t->w.trouble);
	for (ap_id x = 0; x < t->staged->ntensor; x++) {
		ap_id old = t->old[x];

		for (int64_t b = 0; b < plain.nbatch; b++) {
			same_values(t, "value", &plain.batch[b].value[old], &staged.batch[b].value[x], x);
			if (t->staged->tensor[x].producer != AP_NONE && t->staged->tensor[x].needs_grad &&
				!is_link(&t->staged->node[t->staged->tensor[x].producer]))
				same_values(t, "gradient", &plain.batch[b].grad[old],
					&staged.batch[b].grad[x], x);
		}
		if (t->staged->tensor[x].kind != AP_TENSOR_PARAM)
			continue;
		same_values(t, "gradient", &plain.param_grad[old], &staged.param_grad[x], x);
		same_values(t, "update", &plain.new_param[old], &staged.new_param[x], x);
	}
	return true;
}

static bool is_small(const struct ap_graph *g)
{
	for (ap_id x = 0; x < g->ntensor; x++)
		if (ap_tensor_bytes(&g->tensor[x]) > MOST_ELEMENTS * 8)
			return false;
	return !ex_graph_lacks(g);
}

struct sums {
	uint64_t pairs, computed;
};

static void try_case(uint64_t seed, struct sums *sums)
{
	uint64_t state = 1 + ex_hash(seed, 0) / 2;
	struct random_graph text;
	struct trial t = {.w.rng = 1 + ex_hash(seed, 1) / 2};
	struct ex_pipe pipe = ex_random_pipe(&t.w.rng, 4);

	fixture_open(&t.f, 2, 2, "ascend910b");
	t.w.ctx = &t.f.ctx;
	t.w.executor = t.f.step.executor;
	random_graph(&t.f.ctx, &state, OPERATORS, &text);
	fixture_graph(&t.f, text.text);
	t.g = t.f.graph;
	t.spot = ex_random_spots(&t.f.ctx, t.g, &pipe, &t.w.rng);
	ap_graph_staged(&t.f.ctx, t.g, t.spot, &t.staged);
	check_staged(&t);
	if (is_small(t.g) && !strstr(text.text, "null"))
		sums->computed += compute_alike(&t, seed);
	sums->pairs += t.pairs;
	fixture_close(&t.f);
}

START_LOOP_TEST(stages_change_no_number, ex_cases(400))
{
	struct sums sums = {0};

	try_case(ex_seed("staged") + (uint64_t)_i, &sums);
}
END_TEST

START_TEST(there_is_enough_to_do)
{
	struct sums sums = {0};

	for (uint64_t i = 0; i < 60; i++)
		try_case(EX_USUAL_SEED + i, &sums);
	ck_assert_uint_gt(sums.pairs, 60);
	ck_assert_uint_gt(sums.computed, 10);
}
END_TEST
