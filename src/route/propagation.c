/* SPDX-License-Identifier: Apache-2.0 */
/* The breadth-first searches of sharding_propagation, in MindSpore's order. */
#include "route/propagation.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cost/conflict.h"
#include "route/propagation_parts.h"

struct search {
	struct prop *s;
	ap_id *queue; /* [nnode] each comes once */
	uint32_t first, end;
	bool *waiting; /* [nnode] operators with several operands, some of them not visited */
	uint32_t nwaiting;
	ap_id lowest; /* none that waits is below it */
	ap_id next_root; /* configured operator after the one whose search this is; AP_NONE */
};

static enum ap_dtype type_of(const struct prop *s, const struct prop_edge *e)
{
	return ap_prop_bound(s, e->to)->in[e->operand].dtype;
}

static ap_id out_end(const struct prop *s, const struct prop_edge *e)
{
	const struct prop_node *n = &s->node[e->from];
	uint32_t nin = n->role == PROP_DATASET ? 0 : ap_prop_bound(s, e->from)->nin;

	return n->end[nin + e->result];
}

static void push(struct search *r, ap_id node)
{
	r->s->node[node].visited = true;
	r->queue[r->end++] = node;
}

static void settle(struct prop *s, ap_id node, uint32_t candidate)
{
	struct prop_node *n = &s->node[node];

	n->count = ap_prop_count(ap_prop_class(s, n->class), candidate);
	n->end = ap_prop_ends(s, n->class, n->count);
}

/* Chooses by what is known; MindSpore may have the known layout on all sides of an operator by element. */
static void decide(struct search *r, ap_id node, enum prop_choice kind, uint32_t n,
	const struct prop_known *known)
{
	struct prop *s = r->s;
	const struct ap_bound *b = ap_prop_bound(s, node);
	uint32_t class = s->node[node].class, best = ap_prop_choose(s, class, kind, n, known);

	settle(s, node, best);
	if (ap_prop_takes_layout(s, class, best, n, known)) {
		ap_id *end = ap_prop_own_ends(s, node);

		for (unsigned i = 0; i < (unsigned)b->nin + b->nout; i++)
			end[i] = i <= b->nin ? known[0].end : s->node[node].end[i];
		s->node[node].end = end;
	}
	push(r, node);
}

static void decide_beside(struct search *r, ap_id node, enum prop_choice kind, uint32_t slot, ap_id end)
{
	decide(r, node, kind, 1, &(struct prop_known){slot, end});
}

/* From those of its producers that were visited. */
static void decide_joint(struct search *r, ap_id node)
{
	const struct prop_node *n = &r->s->node[node];
	struct ap_mark mark = ap_arena_mark(r->s->ctx->scratch);
	struct prop_known *known = AP_NEW_N(r->s->ctx->scratch, struct prop_known, n->nseen);

	for (uint32_t i = 0; i < n->nseen; i++)
		known[i] = (struct prop_known){n->seen[i]->operand, out_end(r->s, n->seen[i])};
	decide(r, node, PROP_JOINT, n->nseen, known);
	ap_arena_release(r->s->ctx->scratch, mark);
}

static void set_waiting(struct search *r, ap_id node, bool waits)
{
	r->nwaiting += waits - r->waiting[node];
	r->waiting[node] = waits;
	if (waits && node < r->lowest)
		r->lowest = node;
}

/* Ends that a neighbour of a Reshape may have on that side: of its candidates, or what it was given. */
static void reach_neighbour(struct prop *s, ap_id known, bool forward, const struct prop_edge *e,
	struct prop_reach *best)
{
	ap_id node = forward ? e->to : e->from;
	const struct prop_node *n = &s->node[node];
	uint32_t slot = forward ? e->operand : ap_prop_bound(s, node)->nin + e->result, count;
	const ap_id *end;

	if (n->configured) {
		ap_prop_reach(s, known, forward, n->end[slot], type_of(s, e), best);
		return;
	}
	end = ap_prop_cand_ends(s, n->class, slot);
	count = ap_prop_class(s, n->class)->n;
	for (uint32_t i = 0; i < count; i++)
		ap_prop_reach(s, known, forward, end[i], type_of(s, e), best);
}

/* A Reshape carries its producer's layout on to the first layout that any of its consumers could take and
 * that is the cheapest to come to. */
static void reshape_forward(struct search *r, ap_id node, ap_id from)
{
	struct prop *s = r->s;
	struct prop_node *n = &s->node[node];
	struct prop_reach best = {.end = AP_NONE};
	ap_id *end = ap_prop_own_ends(s, node);

	for (uint32_t i = 0; i < n->nsucc; i++)
		if (s->node[n->succ[i]->to].role == PROP_OPERATOR)
			reach_neighbour(s, from, true, n->succ[i], &best);
	end[0] = from;
	end[1] = best.end;
	n->end = end;
	push(r, node);
}

static void reshape_backward(struct search *r, ap_id node, ap_id to)
{
	struct prop *s = r->s;
	struct prop_node *n = &s->node[node];
	struct prop_reach best = {.end = AP_NONE};
	ap_id *end = ap_prop_own_ends(s, node);

	for (uint32_t i = 0; i < n->nprev; i++) {
		const struct prop_node *p = &s->node[n->prev[i]->from];

		if (p->role == PROP_DATASET)
			best.end = out_end(s, n->prev[i]);
		else if (p->role != PROP_RESHAPE)
			reach_neighbour(s, to, false, n->prev[i], &best);
	}
	end[0] = best.end;
	end[1] = to;
	n->end = end;
	push(r, node);
}

/* A neighbour of a Reshape takes its first strategy that has what the Reshape carries, or none. */
static void decide_at_reshape(struct search *r, ap_id node, uint32_t slot, ap_id end)
{
	struct prop *s = r->s;
	uint32_t class = s->node[node].class, n = ap_prop_class(s, class)->n;
	uint32_t found = end == AP_NONE ? n : ap_prop_find(s, class, slot, end);

	if (found == n)
		return;
	settle(s, node, found);
	push(r, node);
}

/* Does a Reshape before it end the propagation? */
static bool ends_reshape(const struct prop *s, ap_id node)
{
	const char *name = ap_prop_bound(s, node)->row->name;

	return strcmp(name, "Concat") == 0 || strcmp(name, "VirtualOutput") == 0;
}

static bool has_out_strategy(const struct prop *s, ap_id node)
{
	return node < s->g->nnode && s->g->node[node].out_pin.n > 0;
}

static void visit_several(struct search *r, const struct prop_edge *e)
{
	struct prop_node *to = &r->s->node[e->to];

	to->seen[to->nseen++] = e;
	if (to->nseen < ap_prop_bound(r->s, e->to)->nin) {
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
			reshape_forward(r, e->to, out_end(s, e));
	} else if (from->role == PROP_RESHAPE) {
		if (ends_reshape(s, e->to))
			s->node[e->to].visited = true;
		else
			decide_at_reshape(r, e->to, e->operand, from->end[1]);
	} else if (has_out_strategy(s, e->from)) {
		settle(s, e->to, ap_prop_find_cuts(s, to->class, e->operand, out_end(s, e)));
		push(r, e->to);
	} else if (ap_prop_bound(s, e->to)->nin > 1) {
		visit_several(r, e);
	} else {
		decide_beside(r, e->to, PROP_FORWARD, e->operand, out_end(s, e));
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
	slot = ap_prop_bound(s, e->from)->nin + e->result;
	if (from->role == PROP_RESHAPE) {
		if (to->role == PROP_RESHAPE)
			return;
		if (ends_reshape(s, e->to))
			s->node[e->from].visited = true;
		else
			reshape_backward(r, e->from, to->end[e->operand]);
	} else if (to->role == PROP_RESHAPE) {
		decide_at_reshape(r, e->from, slot, to->end[0]);
	} else {
		decide_beside(r, e->from, PROP_BACKWARD, slot, to->end[e->operand]);
	}
}

/* When nothing else is left: the first operator that waits, unless it was reached another way or comes
 * after the next configured one, whose search it then waits for. */
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

static void search_all(struct prop *s)
{
	struct search r = {.s = s};
	ap_id root = next_configured(s, 0);

	r.queue = AP_NEW_N(s->ctx->arena, ap_id, s->nnode);
	r.waiting = AP_NEW_N(s->ctx->arena, bool, s->nnode);
	r.next_root = root;
	if (s->node[s->nnode - 1].configured)
		search_from(&r, s->nnode - 1);
	while (root != AP_NONE) {
		r.next_root = next_configured(s, root + 1);
		search_from(&r, root);
		root = r.next_root;
	}
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

/* Rows that are held stay; others are copied to row. */
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

/* False: no operator has a strategy. */
static bool complete(struct prop *s, const int32_t *const *held, int32_t (*row)[AP_MAX_FACTOR],
	const int32_t **counts)
{
	ap_prop_graph_hold(s, held);
	if (s->g->ninput == 0 && next_configured(s, 0) == AP_NONE)
		return false;
	search_all(s);
	ap_prop_finish(s);
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

	s->ctx = ctx;
	has_source = complete(s, held, row, counts);
	ap_arena_release(ctx->arena, mark);
	*out = counts;
	if (!has_source)
		return refuse_nothing(ctx, g);
	conflict = ap_plan_conflict(ctx, g, s->ndev, counts, &node);
	return conflict ? refuse(ctx, g, node, conflict) : AP_OK;
}

static void destroy(struct ap_completer *c)
{
	ap_arena_destroy(((struct completer *)c)->s.arena);
}

struct ap_completer *ap_propagation_completer(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step)
{
	struct ap_arena *arena = ap_arena_create_like(ctx->arena);
	struct completer *c = AP_NEW(arena, struct completer);

	c->base = (struct ap_completer){complete_again, destroy};
	c->s = (struct prop){.ctx = ctx, .arena = arena, .g = g, .ndev = m->ndev, .step = step};
	c->s.class_ids = ap_map_create(arena);
	c->s.end_ids = ap_map_create(arena);
	c->s.cost_ids = ap_map_create(arena);
	c->s.row_ids = ap_map_create(arena);
	c->s.tie_ids = ap_map_create(arena);
	c->s.choice_ids = ap_map_create(arena);
	ap_prop_graph_make(&c->s);
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
