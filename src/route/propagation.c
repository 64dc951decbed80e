/* SPDX-License-Identifier: Apache-2.0 */
/* The breadth-first searches of sharding_propagation, in MindSpore's order. */
#include "route/propagation.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/conflict.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/ms_cost.h"
#include "cost/task.h"
#include "route/ms_candidates.h"
#include "rule/bind.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/space.h"

struct prop_edge {
	ap_id from, to; /* nodes of the cost graph */
	uint16_t result, operand; /* of these */
};

enum prop_role {
	PROP_OPERATOR,
	PROP_RESHAPE, /* takes its layouts from its neighbours */
	PROP_PARAMETER, /* TmpIdentity: stands before the users of a shared parameter */
	PROP_DATASET /* _VirtualDataset */
};

struct prop_node { /* operators of the graph first, by their ids */
	enum prop_role role;
	uint32_t class;
	bool alone; /* nothing is propagated to or from it */
	ap_id tie; /* equal for operators that must have one strategy; AP_NONE: none */
	uint32_t nprev, nsucc;
	const struct prop_edge *const *prev, *const *succ; /* in MindSpore's order */

	/* Of a run: */
	bool configured, visited;
	const int32_t *count; /* the chosen counts; NULL: not yet */
	const ap_id *end; /* its ends as MindSpore has them; of a Reshape, of its two sides; AP_NONE:
	                     unknown */
	ap_id *own; /* buffer for ends that belong to no candidate; NULL: not yet */
	uint32_t nseen;
	const struct prop_edge **seen; /* [nprev] edges from visited producers, if there are several
	                                  operands */
};

struct prop {
	struct ap_ms_candidates cand;
	const struct ap_graph *g;
	const int32_t *const *held;
	uint32_t nnode;
	struct prop_node *node;
	struct ap_map *tie_ids;
	AP_VEC(ap_id) ends; /* buffer of ends_at() */
};

static inline const struct ap_bound *bound_of(const struct prop *s, ap_id node)
{
	return s->cand.classes.v[s->node[node].class].bound;
}

/* MindSpore's cost graph: operators, the dataset before them, and shared parameters. */
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

	AP_PUSH(b->s->cand.arena, b->edges, e);
}

static void add_edges(struct build *b)
{
	const struct ap_graph *g = b->s->g;
	ap_id node = g->nnode;

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint32_t k = 0; k < g->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[k]];
			const struct ap_use use = {i, k};

			if (t->kind == AP_TENSOR_ACT)
				add_edge(b, t->producer, t->result, &use);
			for (uint32_t d = 0; t->kind == AP_TENSOR_INPUT && d < g->ninput; d++)
				if (&g->tensor[g->input[d]] == t)
					add_edge(b, b->s->nnode - 1, d, &use);
		}
	for (ap_id t = 0; t < g->ntensor; t++) {
		if (!is_shared(&g->tensor[t]))
			continue;
		for (uint32_t u = 0; u < g->tensor[t].nuse; u++)
			add_edge(b, node, 0, &g->tensor[t].use[u]);
		node++;
	}
}

/* Lists the edges of each node, in the order in which they were made. */
static void link_edges(struct build *b)
{
	struct prop *s = b->s;
	const struct prop_edge **prev = AP_NEW_N(s->cand.arena, const struct prop_edge *, b->edges.n);
	const struct prop_edge **succ = AP_NEW_N(s->cand.arena, const struct prop_edge *, b->edges.n);
	const struct prop_edge **seen = AP_NEW_N(s->cand.arena, const struct prop_edge *, b->edges.n);
	uint32_t *at = AP_NEW_N(s->cand.arena, uint32_t, 2 * (size_t)s->nnode), np = 0, ns = 0;

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
	struct ap_mark mark = ap_arena_mark(s->cand.ctx->scratch);
	const struct ap_bound *b = &n->bound;
	uint8_t *batch = AP_NEW_N(s->cand.ctx->scratch, uint8_t, (size_t)b->nin + b->nout);
	uint32_t class;

	for (unsigned i = 0; i < b->nin; i++)
		batch[i] = s->g->tensor[n->in[i]].batch;
	for (unsigned i = 0; i < b->nout; i++)
		batch[b->nin + i] = s->g->tensor[n->out[i]].batch;
	class = ap_ms_class_of(&s->cand, b, batch, n->cross_batch);
	ap_arena_release(s->cand.ctx->scratch, mark);
	return class;
}

/* Is it StandAlone: a type unknown to MindSpore, and not cut in its first dimension? */
static bool is_alone(struct prop *s, uint32_t class)
{
	const struct ap_bound *b = s->cand.classes.v[class].bound;

	return (ap_op_is_fallback(b->row) || strcmp(b->row->name, AP_OP_UNCUT) == 0) &&
		s->cand.ndev > 1 && b->nin > 0 &&
		ap_layout_is_whole(&ap_ms_end_at(&s->cand, ap_ms_cand_ends(&s->cand, class, 0)[0])->layout);
}

static void make_operator(struct prop *s, ap_id i)
{
	const struct ap_node *n = &s->g->node[i];
	struct prop_node *p = &s->node[i];
	struct ap_mark mark;
	const char *tie;

	p->class = class_of(s, n);
	mark = ap_arena_mark(s->cand.ctx->scratch);
	tie = ap_task_tie(s->cand.ctx, s->g, i);
	p->tie = tie ? ap_map_put_str(s->tie_ids, tie, NULL) : AP_NONE;
	ap_arena_release(s->cand.ctx->scratch, mark);
	if (!ap_op_has_strategy(n->bound.row) && n->bound.nin > 0) {
		p->role = PROP_RESHAPE;
		return;
	}
	p->alone = is_alone(s, p->class);
}

/* TmpIdentity: an element-wise operator on the parameter. */
static void make_parameter(struct prop *s, struct prop_node *p, const struct ap_tensor *t)
{
	static const struct ap_attrs none;
	static const uint8_t no_batch[2];
	struct ap_bind_in in = {.type = "Identity", .attrs = &none, .nin = 1, .in = &t->shape};
	struct ap_bound *b = AP_NEW(s->cand.arena, struct ap_bound);
	struct ap_bind_fault fault;
	enum ap_status st = ap_rule_bind(s->cand.ctx, &in, b, &fault);

	assert(st == AP_OK);
	(void)st;
	p->role = PROP_PARAMETER;
	p->class = ap_ms_class_of(&s->cand, b, no_batch, false);
}

static void make_dataset(struct prop *s, struct prop_node *p)
{
	const struct ap_graph *g = s->g;
	ap_id *end = AP_NEW_N(s->cand.arena, ap_id, g->ninput);

	p->role = PROP_DATASET;
	p->end = end;
	for (uint32_t i = 0; i < g->ninput; i++) {
		const struct ap_tensor *t = &g->tensor[g->input[i]];
		struct ap_arrival given = {0};
		int64_t size[AP_MAX_RANK];
		struct ap_layout l;
		struct ap_ms_end e;

		if (i < s->cand.step->narrival && s->cand.step->arrival)
			given = s->cand.step->arrival[i];
		ap_input_layout(&t->shape, t->batch, given, s->cand.ndev, s->cand.step, &l);
		for (int d = 0; d < t->shape.rank; d++)
			size[d] = t->shape.dim[d] /
				(t->batch >> d & 1 ? s->cand.step->micro_batches : 1);
		ap_ms_end_bare(&l, size, s->cand.ndev, &e);
		end[i] = ap_ms_end_id(&s->cand, &e);
	}
}

/* Nodes and edges of the cost graph. */
static void make_graph(struct prop *s)
{
	const struct ap_graph *g = s->g;
	struct build b = {.s = s};
	ap_id node = g->nnode;

	s->nnode = g->nnode + 1;
	for (ap_id t = 0; t < g->ntensor; t++)
		s->nnode += is_shared(&g->tensor[t]);
	s->node = AP_NEW_N(s->cand.arena, struct prop_node, s->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		make_operator(s, i);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (is_shared(&g->tensor[t]))
			make_parameter(s, &s->node[node++], &g->tensor[t]);
	make_dataset(s, &s->node[node]);
	add_edges(&b);
	link_edges(&b);
}

/* Begins a run: held operators are configured, all others are undecided. */
static void hold_given(struct prop *s, const int32_t *const *held)
{
	struct prop_node *dataset = &s->node[s->nnode - 1];

	s->held = held;
	for (ap_id i = 0; i + 1 < s->nnode; i++) {
		const int32_t *count = held && i < s->g->nnode ? held[i] : NULL;
		struct prop_node *n = &s->node[i];

		n->visited = false;
		n->nseen = 0;
		n->configured = count && n->role == PROP_OPERATOR;
		n->count = n->configured ? count : NULL;
		n->end = n->configured ? ap_ms_ends(&s->cand, n->class, count) : NULL;
	}
	dataset->configured = s->g->ninput > 0;
	dataset->visited = false;
}

/* The buffer for a node's own ends: operands and results, or the two sides of a Reshape. */
static ap_id *own_ends(struct prop *s, ap_id node)
{
	struct prop_node *n = &s->node[node];
	uint32_t nend = s->cand.classes.v[n->class].nend;

	if (!n->own)
		n->own = AP_NEW_N(s->cand.arena, ap_id, nend > 2 ? nend : 2);
	return n->own;
}

struct search {
	struct prop *s;
	ap_id *queue; /* [nnode] each node enters once */
	uint32_t first, end;
	bool *waiting; /* [nnode] for the visit of further operands */
	uint32_t nwaiting;
	ap_id lowest; /* no node below it waits */
	ap_id next_root; /* the next configured operator after the root; AP_NONE */
};

static enum ap_dtype type_of(const struct prop *s, const struct prop_edge *e)
{
	return bound_of(s, e->to)->in[e->operand].dtype;
}

static ap_id out_end(const struct prop *s, const struct prop_edge *e)
{
	const struct prop_node *n = &s->node[e->from];
	uint32_t nin = n->role == PROP_DATASET ? 0 : bound_of(s, e->from)->nin;

	return n->end[nin + e->result];
}

static void push(struct search *r, ap_id node)
{
	r->s->node[node].visited = true;
	r->queue[r->end++] = node;
}

static void set_counts(struct prop *s, ap_id node, const int32_t *count)
{
	s->node[node].count = count;
	s->node[node].end = ap_ms_ends(&s->cand, s->node[node].class, count);
}

static void settle(struct prop *s, ap_id node, uint32_t candidate)
{
	set_counts(s, node, ap_ms_count(ap_ms_class(&s->cand, s->node[node].class), candidate));
}

/* Chooses by what is known; an element-wise operator may take the known layout for its ends. */
static void decide(struct search *r, ap_id node, enum ap_ms_choice kind, uint32_t n,
	const struct ap_ms_known *known)
{
	struct prop *s = r->s;
	const struct ap_bound *b = bound_of(s, node);
	uint32_t class = s->node[node].class, best = ap_ms_choose(&s->cand, class, kind, n, known);

	settle(s, node, best);
	if (ap_ms_takes_layout(&s->cand, class, best, n, known)) {
		ap_id *end = own_ends(s, node);

		for (unsigned i = 0; i < (unsigned)b->nin + b->nout; i++)
			end[i] = i <= b->nin ? known[0].end : s->node[node].end[i];
		s->node[node].end = end;
	}
	push(r, node);
}

static void decide_beside(struct search *r, ap_id node, enum ap_ms_choice kind, uint32_t slot, ap_id end)
{
	decide(r, node, kind, 1, &(struct ap_ms_known){slot, end});
}

/* Chooses by the producers that were visited. */
static void decide_joint(struct search *r, ap_id node)
{
	const struct prop_node *n = &r->s->node[node];
	struct ap_mark mark = ap_arena_mark(r->s->cand.ctx->scratch);
	struct ap_ms_known *known = AP_NEW_N(r->s->cand.ctx->scratch, struct ap_ms_known, n->nseen);

	for (uint32_t i = 0; i < n->nseen; i++)
		known[i] = (struct ap_ms_known){n->seen[i]->operand, out_end(r->s, n->seen[i])};
	decide(r, node, AP_MS_JOINT, n->nseen, known);
	ap_arena_release(r->s->cand.ctx->scratch, mark);
}

static void set_waiting(struct search *r, ap_id node, bool waits)
{
	r->nwaiting += waits - r->waiting[node];
	r->waiting[node] = waits;
	if (waits && node < r->lowest)
		r->lowest = node;
}

/* Tries the ends of a Reshape's neighbour on that side: its configured one, or all candidates'. */
static void reach_neighbour(struct prop *s, ap_id known, bool forward, const struct prop_edge *e,
	struct ap_ms_reach *best)
{
	ap_id node = forward ? e->to : e->from;
	const struct prop_node *n = &s->node[node];
	uint32_t slot = forward ? e->operand : bound_of(s, node)->nin + e->result, count;
	const ap_id *end;

	if (n->configured) {
		ap_ms_reach(&s->cand, known, forward, n->end[slot], type_of(s, e), best);
		return;
	}
	end = ap_ms_cand_ends(&s->cand, n->class, slot);
	count = ap_ms_class(&s->cand, n->class)->n;
	for (uint32_t i = 0; i < count; i++)
		ap_ms_reach(&s->cand, known, forward, end[i], type_of(s, e), best);
}

/* A Reshape has its producer's layout on one side, and on the other the first layout that one of
 * its consumers may take and that is the cheapest to reach; backwards, the reverse. */
static void cross_reshape(struct search *r, ap_id node, bool forward, ap_id known)
{
	struct prop *s = r->s;
	struct prop_node *n = &s->node[node];
	struct ap_ms_reach best = {.end = AP_NONE};
	ap_id *end = own_ends(s, node);

	for (uint32_t i = 0; i < (forward ? n->nsucc : n->nprev); i++) {
		const struct prop_edge *e = forward ? n->succ[i] : n->prev[i];
		enum prop_role role = s->node[forward ? e->to : e->from].role;

		if (role == PROP_DATASET)
			best.end = out_end(s, e);
		else if (role != PROP_RESHAPE)
			reach_neighbour(s, known, forward, e, &best);
	}
	end[0] = forward ? known : best.end;
	end[1] = forward ? best.end : known;
	n->end = end;
	push(r, node);
}

/* A neighbour of a Reshape takes its first strategy with the Reshape's end there, or none. */
static void decide_at_reshape(struct search *r, ap_id node, uint32_t slot, ap_id end)
{
	struct prop *s = r->s;
	uint32_t class = s->node[node].class, n = ap_ms_class(&s->cand, class)->n;
	uint32_t found = end == AP_NONE ? n : ap_ms_find(&s->cand, class, slot, end);

	if (found == n)
		return;
	settle(s, node, found);
	push(r, node);
}

/* Does propagation stop at a Reshape before this operator? */
static bool ends_reshape(const struct prop *s, ap_id node)
{
	const char *name = bound_of(s, node)->row->name;

	return strcmp(name, "Concat") == 0 || strcmp(name, "VirtualOutput") == 0;
}

static void visit_several(struct search *r, const struct prop_edge *e)
{
	struct prop_node *to = &r->s->node[e->to];

	to->seen[to->nseen++] = e;
	if (to->nseen < bound_of(r->s, e->to)->nin) {
		set_waiting(r, e->to, true);
		return;
	}
	set_waiting(r, e->to, false);
	decide_joint(r, e->to);
}

static void visit_next(struct search *r, const struct prop_edge *e)
{
	struct prop *s = r->s;
	const struct prop_node *from = &s->node[e->from], *to = &s->node[e->to];

	if (from->alone || to->alone || to->visited || to->configured)
		return;
	if (to->role == PROP_RESHAPE) {
		if (from->role != PROP_RESHAPE)
			cross_reshape(r, e->to, true, out_end(s, e));
	} else if (from->role == PROP_RESHAPE) {
		if (ends_reshape(s, e->to))
			s->node[e->to].visited = true;
		else
			decide_at_reshape(r, e->to, e->operand, from->end[1]);
	} else if (e->from < s->g->nnode && s->g->node[e->from].out_pin.n > 0) {
		settle(s, e->to, ap_ms_find_cuts(&s->cand, to->class, e->operand, out_end(s, e)));
		push(r, e->to);
	} else if (bound_of(s, e->to)->nin > 1) {
		visit_several(r, e);
	} else {
		decide_beside(r, e->to, AP_MS_FORWARD, e->operand, out_end(s, e));
	}
}

static void visit_prev(struct search *r, const struct prop_edge *e)
{
	struct prop *s = r->s;
	const struct prop_node *from = &s->node[e->from], *to = &s->node[e->to];
	uint32_t slot;

	if (from->alone || to->alone || from->visited || from->configured ||
		from->role == PROP_DATASET)
		return;
	slot = bound_of(s, e->from)->nin + e->result;
	if (from->role == PROP_RESHAPE) {
		if (to->role == PROP_RESHAPE)
			return;
		if (ends_reshape(s, e->to))
			s->node[e->from].visited = true;
		else
			cross_reshape(r, e->from, false, to->end[e->operand]);
	} else if (to->role == PROP_RESHAPE) {
		decide_at_reshape(r, e->from, slot, to->end[0]);
	} else {
		decide_beside(r, e->from, AP_MS_BACKWARD, slot, to->end[e->operand]);
	}
}

/* If the queue is empty, decides the first operator that waits, unless it was visited or comes
 * after the next configured one: then it waits for that one's search. */
static void wake_one(struct search *r)
{
	if (r->first < r->end || r->nwaiting == 0)
		return;
	while (!r->waiting[r->lowest])
		r->lowest++;
	if (r->s->node[r->lowest].visited || r->lowest > r->next_root)
		return;
	set_waiting(r, r->lowest, false);
	decide_joint(r, r->lowest);
}

static void search_from(struct search *r, ap_id root)
{
	r->first = r->end = 0;
	push(r, root);
	while (r->first < r->end) {
		const struct prop_node *n = &r->s->node[r->queue[r->first++]];

		for (uint32_t i = 0; i < n->nsucc; i++)
			visit_next(r, n->succ[i]);
		for (uint32_t i = 0; i < n->nprev; i++)
			visit_prev(r, n->prev[i]);
		wake_one(r);
	}
}

static ap_id next_configured(const struct prop *s, ap_id from)
{
	while (from < s->g->nnode && !s->node[from].configured)
		from++;
	return from < s->g->nnode ? from : AP_NONE;
}

static enum ap_status refuse(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node,
	const char *conflict)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE,
		&(struct ap_where){.file = g->file, .oper = g->node[node].name}, "propagation",
		"%s; in sharding_propagation each of them needs an in_strategy", conflict);
}

static enum ap_status refuse_nothing(struct ap_ctx *ctx, const struct ap_graph *g)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, &(struct ap_where){.file = g->file},
		"propagation", "no operator has a strategy; sharding_propagation needs an in_strategy of "
		"at least one that is no Reshape");
}

/* counts[] becomes held rows as they are, and copies in row of others. */
static void copy_rows(const struct prop *s, int32_t (*row)[AP_MAX_FACTOR], const int32_t **counts)
{
	for (ap_id i = 0; i < s->g->nnode; i++) {
		counts[i] = s->node[i].count;
		if (s->held && s->held[i])
			continue;
		memcpy(row[i], counts[i], sizeof row[i]);
		counts[i] = row[i];
	}
}

static bool is_known(const struct prop *s, ap_id node)
{
	return s->node[node].count != NULL;
}

static ap_id in_end(const struct prop *s, const struct prop_edge *e)
{
	return is_known(s, e->to) ? s->node[e->to].end[e->operand] : AP_NONE;
}

/* The end of an edge at its producer; AP_NONE if that is not decided. */
static ap_id known_out_end(const struct prop *s, const struct prop_edge *e)
{
	const struct prop_node *n = &s->node[e->from];

	if (n->role == PROP_DATASET)
		return n->end[e->result];
	return is_known(s, e->from) ? n->end[bound_of(s, e->from)->nin + e->result] : AP_NONE;
}

/* Is there no communication on the edge? */
static bool is_consistent(struct prop *s, const struct prop_edge *e)
{
	ap_id from = known_out_end(s, e), to = in_end(s, e);

	return from != AP_NONE && to != AP_NONE &&
		ap_ms_cost_between(&s->cand, from, to, type_of(s, e))->communication == 0;
}

/* MindSpore's repair (ProcessDiffStraParams): the parameter follows its first configured user, and
 * users that are not configured follow the parameter. */
static void repair_parameter(struct prop *s, ap_id node)
{
	const struct prop_node *n = &s->node[node];
	uint32_t first = 0, slot = 1;

	while (first < n->nsucc && !s->node[n->succ[first]->to].configured)
		first++;
	if (first < n->nsucc && !is_consistent(s, n->succ[first])) {
		const struct ap_ms_known known = {slot, in_end(s, n->succ[first])};

		settle(s, node, ap_ms_choose(&s->cand, n->class, AP_MS_BACKWARD, 1, &known));
	}
	for (uint32_t i = 0; i < n->nsucc && is_known(s, node); i++) {
		const struct prop_edge *e = n->succ[i];
		const struct ap_ms_known known = {e->operand, n->end[slot]};
		const struct prop_node *to = &s->node[e->to];

		if (!to->configured && to->role == PROP_OPERATOR && !is_consistent(s, e))
			settle(s, e->to, ap_ms_choose(&s->cand, to->class, AP_MS_FORWARD, 1, &known));
	}
}

/* The ends of a candidate, in s->ends. */
static const ap_id *ends_at(struct prop *s, ap_id node, uint32_t candidate)
{
	uint32_t class = s->node[node].class;

	AP_RESERVE(s->cand.arena, s->ends, s->cand.classes.v[class].nend);
	for (uint32_t k = 0; k < s->cand.classes.v[class].nend; k++)
		s->ends.v[k] = ap_ms_cand_ends(&s->cand, class, k)[candidate];
	return s->ends.v;
}

/* Cost of a candidate's edges before and behind it, as far as the other ends are known. */
struct around {
	struct ap_ms_cost before, behind;
};

static void add_cost(struct prop *s, ap_id from, ap_id to, enum ap_dtype type, struct ap_ms_cost *sum)
{
	const struct ap_ms_cost *c;

	if (from == AP_NONE || to == AP_NONE)
		return;
	c = ap_ms_cost_between(&s->cand, from, to, type);
	sum->communication += c->communication;
	sum->computation += c->computation;
}

static struct around cost_around(struct prop *s, ap_id node, const ap_id *end)
{
	const struct prop_node *n = &s->node[node];
	uint32_t nin = bound_of(s, node)->nin;
	struct around a = {{0}, {0}};

	for (uint32_t i = 0; i < n->nprev; i++)
		add_cost(s, known_out_end(s, n->prev[i]), end[n->prev[i]->operand], type_of(s, n->prev[i]),
			&a.before);
	for (uint32_t i = 0; i < n->nsucc; i++)
		add_cost(s, end[nin + n->succ[i]->result], in_end(s, n->succ[i]),
			type_of(s, n->succ[i]), &a.behind);
	return a;
}

static bool is_cheaper(const struct around *a, const struct around *b)
{
	const double x[] = {a->before.communication, a->before.computation, a->behind.communication,
		a->behind.computation};
	const double y[] = {b->before.communication, b->before.computation, b->behind.communication,
		b->behind.computation};

	for (size_t i = 0; i < AP_COUNT(x); i++)
		if (x[i] != y[i])
			return x[i] < y[i];
	return false;
}

static bool is_held(const struct prop *s, ap_id node)
{
	return s->held && s->held[node];
}

/* All users of a parameter, and all operators of one checkpoint key, must agree. */
struct sharing {
	struct prop *s;
	const struct ap_layout **settled; /* [ntensor] of shared parameters; NULL: not yet */
	ap_id *first; /* first operator of each tie; AP_NONE: not yet */
};

/* The first operator of the node's tie; the node itself if it has none. */
static ap_id first_of_key(struct sharing *h, ap_id node)
{
	ap_id tie = h->s->node[node].tie;

	if (tie == AP_NONE)
		return node;
	if (h->first[tie] == AP_NONE)
		h->first[tie] = node;
	return h->first[tie];
}

static const struct ap_layout *layout_of(const struct prop *s, ap_id end)
{
	return &ap_ms_end_at(&s->cand, end)->layout;
}

static bool operands_agree(const struct sharing *h, ap_id node, const ap_id *end)
{
	const struct ap_graph *g = h->s->g;
	const struct ap_node *n = &g->node[node];

	for (uint32_t k = 0; k < n->bound.nin; k++) {
		const struct ap_layout *own = layout_of(h->s, end[k]), *other = NULL;

		if (!is_shared(&g->tensor[n->in[k]]))
			continue;
		other = h->settled[n->in[k]];
		for (uint32_t j = 0; j < k && !other; j++)
			if (n->in[j] == n->in[k])
				other = layout_of(h->s, end[j]);
		if (other && !ap_layout_equal(own, other))
			return false;
	}
	return true;
}

static bool agrees(struct sharing *h, ap_id node, const int32_t *count, const ap_id *end)
{
	ap_id first = first_of_key(h, node);
	const struct prop *s = h->s;

	return operands_agree(h, node, end) &&
		(first == node || ap_ms_same_strategy(&s->cand, bound_of(s, first),
			s->node[first].count,
			bound_of(s, node), count));
}

/* Settles on the candidate with the cheapest edges, if h is not NULL of those that agree; false if
 * none. A Reshape so takes its producer's layout, as far as its counts allow. */
static bool settle_cheapest(struct prop *s, struct sharing *h, ap_id node)
{
	const struct ap_ms_class *c = ap_ms_class(&s->cand, s->node[node].class);
	struct around least = {{0}, {0}};
	uint32_t best = c->n;

	for (uint32_t i = 0; i < c->n; i++) {
		struct around a;

		if (h && !agrees(h, node, ap_ms_count(c, i), ends_at(s, node, i)))
			continue;
		a = cost_around(s, node, ends_at(s, node, i));
		if (best == c->n || is_cheaper(&a, &least)) {
			best = i;
			least = a;
		}
	}
	if (best < c->n)
		settle(s, node, best);
	return best < c->n;
}

/* No layout suits all users: the tensor stays whole, with all operators connected by parameters. */
static void leave_whole(struct sharing *h, ap_id tensor)
{
	const struct ap_graph *g = h->s->g;
	struct ap_layout *whole = AP_NEW(h->s->cand.ctx->arena, struct ap_layout);
	int32_t *start;
	AP_VEC(ap_id) left = {0};

	whole->rank = g->tensor[tensor].shape.rank;
	for (int d = 0; d < whole->rank; d++)
		whole->dim[d].cut = 1;
	h->settled[tensor] = whole;
	for (uint32_t u = 0; u < g->tensor[tensor].nuse; u++) {
		ap_id node = g->tensor[tensor].use[u].node;
		const struct ap_node *n = &g->node[node];

		if (is_held(h->s, node))
			continue;
		start = AP_NEW_N(h->s->cand.ctx->arena, int32_t, AP_MAX_FACTOR);
		ap_space_start(&n->bound, h->s->cand.ndev, start);
		set_counts(h->s, node, start);
		for (uint32_t k = 0; k < n->bound.nin; k++)
			if (is_shared(&g->tensor[n->in[k]]) && (!h->settled[n->in[k]] ||
				!ap_layout_is_whole(h->settled[n->in[k]])))
				AP_PUSH(h->s->cand.ctx->arena, left, n->in[k]);
	}
	for (size_t i = 0; i < left.n; i++)
		if (!h->settled[left.v[i]] || !ap_layout_is_whole(h->settled[left.v[i]]))
			leave_whole(h, left.v[i]);
}

static void settle_parameter(struct sharing *h, ap_id tensor)
{
	struct prop *s = h->s;
	const struct ap_tensor *t = &s->g->tensor[tensor];
	uint32_t anchor = 0;

	while (anchor < t->nuse && !is_held(s, t->use[anchor].node))
		anchor++;
	anchor = anchor < t->nuse ? anchor : 0;
	for (uint32_t i = 0; i <= t->nuse; i++) {
		const struct ap_use *u = &t->use[i == 0 ? anchor : i - 1];
		const struct prop_node *n = &s->node[u->node];

		if (!is_held(s, u->node) && !agrees(h, u->node, n->count, n->end) &&
			!settle_cheapest(s, h, u->node)) {
			leave_whole(h, tensor);
			return;
		}
		if (i == 0)
			h->settled[tensor] = layout_of(s, n->end[u->operand]);
	}
}

/* Decides, after the searches, users of shared parameters that disagree, operators that were not
 * reached, and Reshapes: then all have counts. */
static void finish(struct prop *s)
{
	const ap_id nnode = s->g->nnode;
	struct sharing h = {.s = s};

	for (ap_id i = nnode; i + 1 < s->nnode; i++)
		repair_parameter(s, i);
	for (ap_id i = 0; i < nnode; i++) {
		struct prop_node *n = &s->node[i];

		if (is_held(s, i))
			set_counts(s, i, s->held[i]);
		else if (n->role == PROP_RESHAPE)
			n->count = NULL;
		else if (!n->count)
			settle(s, i, 0);
	}
	for (ap_id i = 0; i < nnode; i++)
		if (!s->node[i].count)
			settle_cheapest(s, NULL, i);
	h.settled = AP_NEW_N(s->cand.ctx->arena, const struct ap_layout *, s->g->ntensor);
	h.first = AP_NEW_N(s->cand.ctx->arena, ap_id, s->g->nnode);
	memset(h.first, 0xff, s->g->nnode * sizeof *h.first);
	for (ap_id i = 0; i < s->g->nnode; i++)
		if (is_held(s, i))
			first_of_key(&h, i);
	for (ap_id t = 0; t < s->g->ntensor; t++)
		if (is_shared(&s->g->tensor[t]))
			settle_parameter(&h, t);
}

/* Returns false if no operator has a strategy. */
static bool complete(struct prop *s, const int32_t *const *held, int32_t (*row)[AP_MAX_FACTOR],
	const int32_t **counts)
{
	struct search r = {.s = s};
	ap_id root;

	hold_given(s, held);
	if (s->g->ninput == 0 && next_configured(s, 0) == AP_NONE)
		return false;
	root = next_configured(s, 0);
	r.queue = AP_NEW_N(s->cand.ctx->arena, ap_id, s->nnode);
	r.waiting = AP_NEW_N(s->cand.ctx->arena, bool, s->nnode);
	r.next_root = root;
	if (s->node[s->nnode - 1].configured)
		search_from(&r, s->nnode - 1);
	while (root != AP_NONE) {
		r.next_root = next_configured(s, root + 1);
		search_from(&r, root);
		root = r.next_root;
	}
	finish(s);
	copy_rows(s, row, counts);
	return true;
}

struct completer {
	struct ap_completer base;
	struct prop s;
};

static enum ap_status complete_again(struct ap_completer *c, struct ap_ctx *ctx,
	const int32_t *const *held, const int32_t *const **out)
{
	struct prop *s = &((struct completer *)c)->s;
	const struct ap_graph *g = s->g;
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	int32_t (*row)[AP_MAX_FACTOR] = ap_arena_alloc(ctx->arena, g->nnode, sizeof *row);
	struct ap_mark mark = ap_arena_mark(ctx->arena);
	const char *conflict;
	bool has_source;
	ap_id node;

	s->cand.ctx = ctx;
	has_source = complete(s, held, row, counts);
	ap_arena_release(ctx->arena, mark);
	*out = counts;
	if (!has_source)
		return refuse_nothing(ctx, g);
	conflict = ap_plan_conflict(ctx, g, s->cand.ndev, counts, &node);
	return conflict ? refuse(ctx, g, node, conflict) : AP_OK;
}

static void destroy(struct ap_completer *c)
{
	ap_arena_destroy(((struct completer *)c)->s.cand.arena);
}

struct ap_completer *ap_propagation_completer(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step)
{
	struct ap_arena *arena = ap_arena_create_like(ctx->arena);
	struct completer *c = AP_NEW(arena, struct completer);

	c->base = (struct ap_completer){complete_again, destroy};
	c->s = (struct prop){.g = g,
		.cand = {.ctx = ctx, .arena = arena, .ndev = m->ndev, .step = step}};
	c->s.cand.class_ids = ap_map_create(arena);
	c->s.cand.end_ids = ap_map_create(arena);
	c->s.cand.cost_ids = ap_map_create(arena);
	c->s.cand.row_ids = ap_map_create(arena);
	c->s.tie_ids = ap_map_create(arena);
	c->s.cand.choice_ids = ap_map_create(arena);
	make_graph(&c->s);
	return &c->base;
}

enum ap_status ap_propagation_complete(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const int32_t *const *held,
	const int32_t *const **out)
{
	struct ap_completer *c = ap_propagation_completer(ctx, g, m, step);
	enum ap_status st = c->complete(c, ctx, held, out);

	c->destroy(c);
	return st;
}
