/* SPDX-License-Identifier: Apache-2.0 */
/* MindSpore's cost graph: operators, the dataset before them, and shared parameters. */
#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/ms_cost.h"
#include "cost/task.h"
#include "route/propagation_parts.h"
#include "shard/layout.h"

struct build {
	struct prop *s;
	AP_VEC(struct prop_edge) edges;
};

static bool is_shared(const struct ap_tensor *t)
{
	return t->kind == AP_TENSOR_PARAM && t->nuse > 1;
}

static void add_edge(struct build *b, ap_id from, uint32_t result, const struct ap_use *to)
{
	struct prop_edge e = {from, to->node, (uint16_t)result, (uint16_t)to->operand};

	AP_PUSH(b->s->arena, b->edges, e);
}

static void add_operand(struct build *b, ap_id node, uint32_t operand)
{
	const struct ap_graph *g = b->s->g;
	const struct ap_tensor *t = &g->tensor[g->node[node].in[operand]];
	const struct ap_use use = {node, operand};

	if (t->kind == AP_TENSOR_ACT)
		add_edge(b, t->producer, t->result, &use);
	for (uint32_t i = 0; t->kind == AP_TENSOR_INPUT && i < g->ninput; i++)
		if (&g->tensor[g->input[i]] == t)
			add_edge(b, b->s->nnode - 1, i, &use);
}

static void add_edges(struct build *b)
{
	const struct ap_graph *g = b->s->g;
	ap_id node = g->nnode;

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint32_t k = 0; k < g->node[i].bound.nin; k++)
			add_operand(b, i, k);
	for (ap_id t = 0; t < g->ntensor; t++) {
		if (!is_shared(&g->tensor[t]))
			continue;
		for (uint32_t u = 0; u < g->tensor[t].nuse; u++)
			add_edge(b, node, 0, &g->tensor[t].use[u]);
		node++;
	}
}

/* Edges per node, in the order in which they were made. */
static void link_edges(struct build *b)
{
	struct prop *s = b->s;
	const struct prop_edge **prev = AP_NEW_N(s->arena, const struct prop_edge *, b->edges.n);
	const struct prop_edge **succ = AP_NEW_N(s->arena, const struct prop_edge *, b->edges.n);
	const struct prop_edge **seen = AP_NEW_N(s->arena, const struct prop_edge *, b->edges.n);
	uint32_t *at = AP_NEW_N(s->arena, uint32_t, 2 * (size_t)s->nnode), np = 0, ns = 0;

	for (size_t i = 0; i < b->edges.n; i++) {
		s->node[b->edges.v[i].to].nprev++;
		s->node[b->edges.v[i].from].nsucc++;
	}
	for (ap_id i = 0; i < s->nnode; i++) {
		struct prop_node *n = &s->node[i];

		n->prev = prev + np;
		n->succ = succ + ns;
		n->seen = seen + np;
		at[2 * i] = np;
		at[2 * i + 1] = ns;
		np += n->nprev;
		ns += n->nsucc;
	}
	for (size_t i = 0; i < b->edges.n; i++) {
		const struct prop_edge *e = &b->edges.v[i];

		prev[at[2 * e->to]++] = e;
		succ[at[2 * e->from + 1]++] = e;
	}
}

static uint32_t class_of(struct prop *s, const struct ap_node *n)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	const struct ap_bound *b = &n->bound;
	uint8_t *batch = AP_NEW_N(s->ctx->scratch, uint8_t, (size_t)b->nin + b->nout);
	uint32_t class;

	for (unsigned i = 0; i < b->nin; i++)
		batch[i] = s->g->tensor[n->in[i]].batch;
	for (unsigned i = 0; i < b->nout; i++)
		batch[b->nin + i] = s->g->tensor[n->out[i]].batch;
	class = ap_prop_class_of(s, b, batch, n->cross_batch);
	ap_arena_release(s->ctx->scratch, mark);
	return class;
}

/* What MindSpore does not know and does not cut along its first dimension: StandAlone. */
static bool is_alone(struct prop *s, uint32_t class)
{
	const struct ap_bound *b = s->classes.v[class].bound;

	return (ap_op_is_fallback(b->row) || strcmp(b->row->name, AP_OP_UNCUT) == 0) &&
		s->ndev > 1 && b->nin > 0 &&
		ap_layout_is_whole(&ap_prop_end(s, ap_prop_cand_ends(s, class, 0)[0])->layout);
}

static ap_id tie_of(struct prop *s, ap_id i)
{
	struct ap_mark mark = ap_arena_mark(s->ctx->scratch);
	const char *tie = ap_task_tie(s->ctx, s->g, i);
	ap_id id = tie ? ap_map_put_str(s->tie_ids, tie, NULL) : AP_NONE;

	ap_arena_release(s->ctx->scratch, mark);
	return id;
}

static void make_operator(struct prop *s, ap_id i)
{
	const struct ap_node *n = &s->g->node[i];
	struct prop_node *p = &s->node[i];

	p->class = class_of(s, n);
	p->tie = tie_of(s, i);
	if (!ap_op_has_strategy(n->bound.row) && n->bound.nin > 0) {
		p->role = PROP_RESHAPE;
		return;
	}
	p->alone = is_alone(s, p->class);
}

/* As an operator by element on the parameter: TmpIdentity. */
static void make_parameter(struct prop *s, struct prop_node *p, const struct ap_tensor *t)
{
	static const struct ap_attrs none;
	static const uint8_t no_batch[2];
	struct ap_bind_in in = {.type = "Identity", .attrs = &none, .nin = 1, .in = &t->shape};
	struct ap_bound *b = AP_NEW(s->arena, struct ap_bound);
	struct ap_bind_fault fault;
	enum ap_status st = ap_rule_bind(s->ctx, &in, b, &fault);

	assert(st == AP_OK);
	(void)st;
	p->role = PROP_PARAMETER;
	p->class = ap_prop_class_of(s, b, no_batch, false);
}

static void make_dataset(struct prop *s, struct prop_node *p)
{
	const struct ap_graph *g = s->g;
	ap_id *end = AP_NEW_N(s->arena, ap_id, g->ninput);

	p->role = PROP_DATASET;
	p->end = end;
	for (uint32_t i = 0; i < g->ninput; i++) {
		const struct ap_tensor *t = &g->tensor[g->input[i]];
		struct ap_arrival given = {0};
		int64_t size[AP_MAX_RANK];
		struct ap_layout l;
		struct ap_ms_end e;

		if (i < s->step->narrival && s->step->arrival)
			given = s->step->arrival[i];
		ap_input_layout(&t->shape, t->batch, given, s->ndev, s->step, &l);
		for (int d = 0; d < t->shape.rank; d++)
			size[d] = t->shape.dim[d] /
				(t->batch >> d & 1 ? s->step->micro_batches : 1);
		ap_ms_end_bare(&l, size, s->ndev, &e);
		end[i] = ap_prop_end_id(s, &e);
	}
}

void ap_prop_graph_make(struct prop *s)
{
	const struct ap_graph *g = s->g;
	struct build b = {.s = s};
	ap_id node = g->nnode;

	s->nnode = g->nnode + 1;
	for (ap_id t = 0; t < g->ntensor; t++)
		s->nnode += is_shared(&g->tensor[t]);
	s->node = AP_NEW_N(s->arena, struct prop_node, s->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		make_operator(s, i);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (is_shared(&g->tensor[t]))
			make_parameter(s, &s->node[node++], &g->tensor[t]);
	make_dataset(s, &s->node[node]);
	add_edges(&b);
	link_edges(&b);
}

static void hold(struct prop *s, ap_id node, const int32_t *count)
{
	struct prop_node *n = &s->node[node];

	n->visited = false;
	n->nseen = 0;
	n->configured = count && n->role == PROP_OPERATOR;
	n->count = n->configured ? count : NULL;
	n->end = n->configured ? ap_prop_ends(s, n->class, count) : NULL;
}

void ap_prop_graph_hold(struct prop *s, const int32_t *const *held)
{
	struct prop_node *dataset = &s->node[s->nnode - 1];

	s->held = held;
	for (ap_id i = 0; i + 1 < s->nnode; i++)
		hold(s, i, held && i < s->g->nnode ? held[i] : NULL);
	dataset->configured = s->g->ninput > 0;
	dataset->visited = false;
}

ap_id *ap_prop_own_ends(struct prop *s, ap_id node)
{
	struct prop_node *n = &s->node[node];
	uint32_t nend = s->classes.v[n->class].nend;

	if (!n->own)
		n->own = AP_NEW_N(s->arena, ap_id, nend > 2 ? nend : 2);
	return n->own;
}
