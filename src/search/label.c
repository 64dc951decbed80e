/* SPDX-License-Identifier: Apache-2.0 */
#include "search/label.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

/*
 * The labels of a step are made child by child, the last child first: `left` is what there was
 * before, `right` the label of the child. At the end of the chain `left` is AP_NONE and `right` the
 * candidate of the step's node. So walking a chain meets the children in their order.
 */
struct label {
	double cost;
	int64_t memory;
	double excess; /* of its price over the least there is for the same choices */
	uint32_t left, right;
};

struct range { /* of labels */
	uint32_t first, count;
};

struct pair { /* of labels of one step, both made of its children from `child` on */
	uint32_t step, child, a, b;
};

struct run {
	struct ap_ctx *ctx;
	struct ap_label_job *job;
	struct { struct label *v; size_t n, cap; } label;
	struct range **of; /* [step][group], least excess first */
	ap_id *own, *first_own; /* edges whose first node to go is that of the step */
	uint32_t *pick; /* scratch */
	struct { uint32_t *v; size_t n, cap; } child; /* of the step at hand */
	struct { struct label *v; size_t n, cap; } all; /* of the group at hand */
	struct { struct pair *v; size_t n, cap; } todo;
	double margin; /* for the rounding of excess */
};

/* ---- own terms ---- */

static void assign_edges(struct run *r)
{
	const struct ap_problem *p = r->job->p;
	const uint32_t *step_of = r->job->support->step_of;
	ap_id *first = AP_NEW_N(r->ctx->scratch, ap_id, (size_t)r->job->e->nstep + 2);
	r->own = AP_NEW_N(r->ctx->scratch, ap_id, p->nedge);
	for (uint32_t i = 0; i < p->nedge; i++) {
		uint32_t u = step_of[p->edge[i].u], v = step_of[p->edge[i].v];
		first[(u < v ? u : v) + 2]++;
	}
	for (uint32_t i = 0; i < r->job->e->nstep; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t i = 0; i < p->nedge; i++) {
		uint32_t u = step_of[p->edge[i].u], v = step_of[p->edge[i].v];
		r->own[first[(u < v ? u : v) + 1]++] = i;
	}
	r->first_own = first;
}

/* Cost and memory of the terms of a step at the choice in r->pick. */
static struct label own_label(const struct run *r, uint32_t step)
{
	const struct ap_problem *p = r->job->p;
	ap_id v = r->job->e->step[step].node;
	uint32_t x = r->pick[v];
	const struct ap_pnode *node = &p->node[v];
	struct label l = {node->cost[x], node->memory ? node->memory[x] : 0, 0, AP_NONE, x};
	for (ap_id i = r->first_own[step]; i < r->first_own[step + 1]; i++) {
		const struct ap_pedge *e = &p->edge[r->own[i]];
		const struct ap_pmatrix *m = &p->matrix[e->matrix];
		size_t at = (size_t)r->pick[e->u] * m->cols + r->pick[e->v];
		l.cost += m->cost[at];
		l.memory += m->memory ? m->memory[at] : 0;
	}
	return l;
}

/* ---- which labels stay ---- */

/* The roots are the children of one step more than there are. */
static uint32_t first_child(const struct run *r, uint32_t step)
{
	const struct ap_support *s = r->job->support;
	return step == r->job->e->nstep ? s->root : s->step[step].child;
}

/* Of two chains of a step: queues the children whose labels differ; returns the two ends. */
static struct pair walk_chains(struct run *r, struct pair at)
{
	for (; at.child != AP_NONE; at.child = r->job->support->step[at.child].sibling) {
		const struct label *a = &r->label.v[at.a], *b = &r->label.v[at.b];
		struct pair below = {at.child, first_child(r, at.child), a->right, b->right};
		if (below.a != below.b)
			AP_PUSH(r->ctx->scratch, r->todo, below);
		at.a = a->left;
		at.b = b->left;
	}
	return at;
}

/* Is at.a lexicographically smaller than at.b? Decided by the first node at which they differ,
 * wherever below it is. */
static bool lex_less(struct run *r, struct pair top)
{
	ap_id first = AP_NONE;
	bool less = false;
	AP_PUSH(r->ctx->scratch, r->todo, top);
	while (r->todo.n) {
		struct pair at = walk_chains(r, r->todo.v[--r->todo.n]);
		r->job->work++;
		if (at.step == r->job->e->nstep)
			continue;
		uint32_t x = r->label.v[at.a].right, y = r->label.v[at.b].right;
		ap_id node = r->job->e->step[at.step].node;
		if (x != y && node < first) {
			first = node;
			less = x < y;
		}
	}
	return less;
}

static int by_cost(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	if (x->left != y->left)
		return x->left < y->left ? -1 : 1;
	return (x->right > y->right) - (x->right < y->right);
}

static int by_excess(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	if (x->excess != y->excess)
		return x->excess < y->excess ? -1 : 1;
	return by_cost(a, b);
}

/* Keeps, of labels sorted by cost, those that need less memory than all before them. */
static uint32_t keep_frontier(struct label *l, uint32_t n)
{
	uint32_t kept = 0;
	int64_t least = INT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		if (l[i].memory < least) {
			least = l[i].memory;
			l[kept++] = l[i];
		}
	}
	return kept;
}

/* Is at.b beaten by one of those kept (none of which costs more)? One of
 * equal cost and memory that it beats gives its place to it. */
static bool settle_tie(struct run *r, struct range kept, struct pair at)
{
	struct label *l = r->label.v;
	for (at.a = kept.first; at.a < kept.first + kept.count; at.a++) {
		if (l[at.a].memory > l[at.b].memory)
			continue;
		if (lex_less(r, at))
			return true;
		if (l[at.a].cost == l[at.b].cost && l[at.a].memory == l[at.b].memory) {
			l[at.a] = l[at.b];
			return true;
		}
	}
	return false;
}

static uint32_t keep_smallest(struct run *r, struct range all, struct pair at)
{
	struct range kept = {all.first, 0};
	for (at.b = all.first; at.b < all.first + all.count; at.b++) {
		if (!settle_tie(r, kept, at))
			r->label.v[kept.first + kept.count++] = r->label.v[at.b];
	}
	return kept.count;
}

/* The labels of a step, made of its children from `child` on, from `first` to the end of the pool:
 * without what is beaten, least excess first. */
static struct range filter(struct run *r, uint32_t step, uint32_t child, uint32_t first)
{
	struct label *l = r->label.v + first;
	struct range all = {first, (uint32_t)r->label.n - first};
	struct pair at = {step, child, 0, 0};
	qsort(l, all.count, sizeof *l, by_cost);
	all.count = r->job->ties ? keep_smallest(r, all, at) : keep_frontier(l, all.count);
	qsort(l, all.count, sizeof *l, by_excess);
	r->label.n = all.first + all.count;
	return all;
}

/* ---- making them ---- */

static bool spent(const struct run *r)
{
	return r->label.n > r->job->max_labels ||
		(r->job->max_work && r->job->work > r->job->max_work);
}

/* Every label of a, of a step, with every one of b, of its child, as far as their excess is at most
 * slack. */
static struct range join(struct run *r, uint32_t step, uint32_t child, struct range a,
	struct range b, double slack)
{
	uint32_t first = (uint32_t)r->label.n;
	for (uint32_t i = a.first; i < a.first + a.count && !spent(r); i++) {
		for (uint32_t j = b.first; j < b.first + b.count; j++) {
			struct label x = r->label.v[i], y = r->label.v[j];
			r->job->work++;
			if (x.excess + y.excess > slack)
				break;
			struct label sum = {x.cost + y.cost, x.memory + y.memory, x.excess + y.excess,
				i, j};
			AP_PUSH(r->ctx->scratch, r->label, sum);
		}
	}
	return filter(r, step, child, first);
}

static void list_children(struct run *r, uint32_t step)
{
	r->child.n = 0;
	for (uint32_t c = first_child(r, step); c != AP_NONE; c = r->job->support->step[c].sibling)
		AP_PUSH(r->ctx->scratch, r->child, c);
}

/* The least priced cost of what is below a group. */
static double least_below(const struct run *r, uint32_t step, uint32_t group)
{
	size_t cell = r->job->support->step[step].group.v[group].cell;
	return r->job->value[r->job->e->step[step].result][cell];
}

/* The labels of tuple t, whose choice is in r->pick. */
static struct range tuple_labels(struct run *r, uint32_t step, uint32_t t)
{
	const struct ap_sstep *s = &r->job->support->step[step];
	const struct ap_stuple *tuple = &s->tuple.v[t];
	struct label own = own_label(r, step);
	double least = tuple->through - s->group.v[tuple->group].through +
		least_below(r, step, tuple->group);
	for (size_t i = 0; i < r->child.n; i++)
		least -= least_below(r, r->child.v[i], r->job->support->step[r->child.v[i]].link[t]);
	own.excess = own.cost + r->job->priced->price * (double)own.memory - least;
	AP_PUSH(r->ctx->scratch, r->label, own);
	struct range labels = {(uint32_t)r->label.n - 1, 1};
	double slack = r->job->threshold - tuple->through + r->margin;
	for (size_t i = r->child.n; i-- > 0 && labels.count;) {
		uint32_t c = r->child.v[i];
		labels = join(r, step, c, labels, r->of[c][r->job->support->step[c].link[t]], slack);
	}
	return labels;
}

static struct range group_labels(struct run *r, uint32_t step, const struct ap_sgroup *group)
{
	const struct ap_sstep *s = &r->job->support->step[step];
	const struct ap_estep *e = &r->job->e->step[step];
	r->all.n = 0;
	ap_support_decode(r->job->e, e, group->cell, r->pick);
	for (uint32_t t = group->first; t < group->first + group->count; t++) {
		r->pick[e->node] = s->tuple.v[t].x;
		struct range labels = tuple_labels(r, step, t);
		for (uint32_t i = 0; i < labels.count; i++)
			AP_PUSH(r->ctx->scratch, r->all, r->label.v[labels.first + i]);
	}
	uint32_t first = (uint32_t)r->label.n;
	for (size_t i = 0; i < r->all.n; i++)
		AP_PUSH(r->ctx->scratch, r->label, r->all.v[i]);
	return filter(r, step, first_child(r, step), first);
}

static bool make_steps(struct run *r)
{
	for (uint32_t i = 0; i < r->job->e->nstep; i++) {
		const struct ap_sstep *s = &r->job->support->step[i];
		r->of[i] = AP_NEW_N(r->ctx->scratch, struct range, s->group.n);
		list_children(r, i);
		for (size_t g = 0; g < s->group.n; g++) {
			r->of[i][g] = group_labels(r, i, &s->group.v[g]);
			if (spent(r) || ap_ctx_stopped(r->ctx))
				return false;
		}
	}
	return true;
}

/* All roots together. */
static struct range make_top(struct run *r)
{
	struct label empty = {.left = AP_NONE};
	list_children(r, r->job->e->nstep);
	AP_PUSH(r->ctx->scratch, r->label, empty);
	struct range labels = {(uint32_t)r->label.n - 1, 1};
	double slack = r->job->threshold - r->job->least + r->margin;
	for (size_t i = r->child.n; i-- > 0 && labels.count;) {
		uint32_t c = r->child.v[i];
		labels = join(r, r->job->e->nstep, c, labels, r->of[c][0], slack);
	}
	return labels;
}

/* ---- the answer ---- */

static uint32_t best_label(struct run *r, struct range top)
{
	uint32_t best = AP_NONE, step = r->job->e->nstep;
	for (uint32_t i = top.first; i < top.first + top.count; i++) {
		const struct label *l = &r->label.v[i];
		if (l->memory > r->job->p->memory_limit)
			continue;
		if (best == AP_NONE || l->cost < r->label.v[best].cost ||
			(r->job->ties && l->cost == r->label.v[best].cost &&
				lex_less(r, (struct pair){step, first_child(r, step), i, best})))
			best = i;
	}
	return best;
}

/* Reads the choices off a label of the top. */
static void read_off(struct run *r, uint32_t label, uint32_t *pick)
{
	struct pair top = {r->job->e->nstep, AP_NONE, label, label};
	AP_PUSH(r->ctx->scratch, r->todo, top);
	while (r->todo.n) {
		struct pair at = r->todo.v[--r->todo.n];
		for (uint32_t c = first_child(r, at.step); c != AP_NONE;
			c = r->job->support->step[c].sibling) {
			struct pair below = {c, AP_NONE, r->label.v[at.a].right, 0};
			AP_PUSH(r->ctx->scratch, r->todo, below);
			at.a = r->label.v[at.a].left;
		}
		if (at.step < r->job->e->nstep)
			pick[r->job->e->step[at.step].node] = r->label.v[at.a].right;
	}
}

static enum ap_label_end solve(struct run *r, uint32_t *pick)
{
	if (!make_steps(r))
		return AP_LABEL_LIMIT;
	struct range top = make_top(r);
	if (spent(r))
		return AP_LABEL_LIMIT;
	uint32_t best = best_label(r, top);
	if (best == AP_NONE)
		return AP_LABEL_NONE;
	read_off(r, best, pick);
	return AP_LABEL_FOUND;
}

enum ap_label_end ap_label_solve(struct ap_ctx *ctx, struct ap_label_job *job, uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct run r = {.ctx = ctx, .job = job};
	r.of = AP_NEW_N(ctx->scratch, struct range *, job->e->nstep);
	r.pick = AP_NEW_N(ctx->scratch, uint32_t, job->p->n);
	r.margin = ((double)job->p->n + job->p->nedge + 8) * job->priced->quantum;
	assign_edges(&r);
	enum ap_label_end end = solve(&r, pick);
	ap_arena_release(ctx->scratch, mark);
	return end;
}
