/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/label.h"

#include "base/arena.h"
#include "base/vec.h"
#include "elim/label_front.h"

struct reading { /* of a label of a step, while the answer is read off */
	uint32_t step, label;
};

struct run {
	struct ap_ctx *ctx;
	struct ap_label_job *job;
	struct ap_lfront f;
	struct ap_lrange **of; /* [step][group], least excess first */
	ap_id *own, *first_own; /* edges whose first node to go is that of the step */
	uint32_t *pick; /* scratch */
	AP_VEC(uint32_t) child; /* of the step at hand */
	struct ap_labels all; /* of the group at hand */
	AP_VEC(struct reading) pending;
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
static struct ap_label own_label(const struct run *r, uint32_t step)
{
	const struct ap_problem *p = r->job->p;
	ap_id v = r->job->e->step[step].node;
	uint32_t x = r->pick[v];
	const struct ap_pnode *node = &p->node[v];
	struct ap_label l = {node->cost[x], node->memory ? node->memory[x] : 0, 0, AP_NONE, x};
	for (ap_id i = r->first_own[step]; i < r->first_own[step + 1]; i++) {
		const struct ap_pedge *e = &p->edge[r->own[i]];
		const struct ap_pmatrix *m = &p->matrix[e->matrix];
		size_t at = (size_t)r->pick[e->u] * m->cols + r->pick[e->v];
		l.cost += m->cost[at];
		l.memory += m->memory ? m->memory[at] : 0;
	}
	return l;
}

/* ---- making them ---- */

static bool spent(const struct run *r)
{
	return r->f.pool.n + r->f.front.n + r->f.fresh.n > r->job->max_labels ||
		(r->job->max_work && r->f.work > r->job->max_work) || ap_ctx_stopped(r->ctx);
}

/* One label with every one of b: all are as good as before, and in the same order. */
static struct ap_lrange extend(struct run *r, uint32_t a, struct ap_lrange b, double slack)
{
	struct ap_lrange out = {(uint32_t)r->f.pool.n, 0};
	struct ap_label x = r->f.pool.v[a];
	for (uint32_t j = b.first; j < b.first + b.count; j++) {
		struct ap_label y = r->f.pool.v[j];
		r->f.work++;
		if (x.excess + y.excess > slack)
			break;
		AP_PUSH(r->ctx->scratch, r->f.pool, ((struct ap_label){x.cost + y.cost,
			x.memory + y.memory, x.excess + y.excess, a, j}));
		out.count++;
	}
	return out;
}

/* Every label of a, of a step, with every one of b, of its child, as far as their excess is at most
 * slack. */
static struct ap_lrange join(struct run *r, uint32_t step, uint32_t child, struct ap_lrange a,
	struct ap_lrange b, double slack)
{
	if (a.count == 1)
		return extend(r, a.first, b, slack);
	ap_lfront_start(&r->f, step, child);
	for (uint32_t i = a.first; i < a.first + a.count && !spent(r); i++) {
		struct ap_label x = r->f.pool.v[i];
		for (uint32_t j = b.first; j < b.first + b.count; j++) {
			struct ap_label y = r->f.pool.v[j];
			r->f.work++;
			if (x.excess + y.excess > slack)
				break;
			ap_lfront_add(&r->f, (struct ap_label){x.cost + y.cost, x.memory + y.memory,
				x.excess + y.excess, i, j});
		}
	}
	return ap_lfront_finish(&r->f);
}

static void list_children(struct run *r, uint32_t step)
{
	r->child.n = 0;
	for (uint32_t c = ap_lfront_child(&r->f, step); c != AP_NONE;
		c = r->job->support->step[c].sibling)
		AP_PUSH(r->ctx->scratch, r->child, c);
}

/* The least priced cost of what is below a group. */
static double least_below(const struct run *r, uint32_t step, uint32_t group)
{
	size_t cell = r->job->support->step[step].group.v[group].cell;
	return r->job->value[r->job->e->step[step].result][cell];
}

/* The group of a child that tuple t of its parent implies. */
static uint32_t implied(const struct run *r, uint32_t child, uint32_t t)
{
	return r->job->support->step[child].link[t];
}

/* The labels of tuple t, whose choice is in r->pick. */
static struct ap_lrange tuple_labels(struct run *r, uint32_t step, uint32_t t)
{
	const struct ap_sstep *s = &r->job->support->step[step];
	const struct ap_stuple *tuple = &s->tuple.v[t];
	struct ap_label own = own_label(r, step);
	double least = least_below(r, step, tuple->group);
	for (size_t i = 0; i < r->child.n; i++)
		least -= least_below(r, r->child.v[i], implied(r, r->child.v[i], t));
	own.excess = own.cost + r->job->priced->price * (double)own.memory - least;
	AP_PUSH(r->ctx->scratch, r->f.pool, own);
	struct ap_lrange labels = {(uint32_t)r->f.pool.n - 1, 1};
	double slack = r->job->threshold - s->group.v[tuple->group].through + r->margin;
	for (size_t i = r->child.n; i-- > 0 && labels.count;) {
		uint32_t c = r->child.v[i];
		labels = join(r, step, c, labels, r->of[c][implied(r, c, t)], slack);
	}
	return labels;
}

static struct ap_lrange group_labels(struct run *r, uint32_t step, const struct ap_sgroup *group)
{
	const struct ap_sstep *s = &r->job->support->step[step];
	const struct ap_estep *e = &r->job->e->step[step];
	r->all.n = 0;
	ap_support_decode(r->job->e, e, group->cell, r->pick);
	if (group->count == 1) {
		r->pick[e->node] = s->tuple.v[group->first].x;
		return tuple_labels(r, step, group->first);
	}
	for (uint32_t t = group->first; t < group->first + group->count; t++) {
		r->pick[e->node] = s->tuple.v[t].x;
		struct ap_lrange labels = tuple_labels(r, step, t);
		for (uint32_t i = 0; i < labels.count; i++)
			AP_PUSH(r->ctx->scratch, r->all, r->f.pool.v[labels.first + i]);
	}
	ap_lfront_start(&r->f, step, ap_lfront_child(&r->f, step));
	for (size_t i = 0; i < r->all.n; i++)
		ap_lfront_add(&r->f, r->all.v[i]);
	return ap_lfront_finish(&r->f);
}

static bool make_steps(struct run *r)
{
	for (uint32_t i = 0; i < r->job->e->nstep; i++) {
		const struct ap_sstep *s = &r->job->support->step[i];
		r->of[i] = AP_NEW_N(r->ctx->scratch, struct ap_lrange, s->group.n);
		list_children(r, i);
		for (size_t g = 0; g < s->group.n; g++) {
			r->of[i][g] = group_labels(r, i, &s->group.v[g]);
			if (spent(r))
				return false;
		}
	}
	return true;
}

/* All roots together. */
static struct ap_lrange make_top(struct run *r)
{
	struct ap_label empty = {.left = AP_NONE};
	list_children(r, r->job->e->nstep);
	AP_PUSH(r->ctx->scratch, r->f.pool, empty);
	struct ap_lrange labels = {(uint32_t)r->f.pool.n - 1, 1};
	double slack = r->job->threshold - r->job->least + r->margin;
	for (size_t i = r->child.n; i-- > 0 && labels.count;) {
		uint32_t c = r->child.v[i];
		labels = join(r, r->job->e->nstep, c, labels, r->of[c][0], slack);
	}
	return labels;
}

/* ---- the answer ---- */

/* The cheapest that fits; of those the smallest. */
static uint32_t best_label(struct run *r, struct ap_lrange top)
{
	uint32_t best = AP_NONE, step = r->job->e->nstep;
	ap_lfront_start(&r->f, step, ap_lfront_child(&r->f, step));
	for (uint32_t i = top.first; i < top.first + top.count; i++) {
		const struct ap_label *l = &r->f.pool.v[i];
		if (l->memory > r->job->p->memory_limit)
			continue;
		if (best == AP_NONE || ap_lfront_prefer(&r->f, l, &r->f.pool.v[best]))
			best = i;
	}
	return best;
}

/* Reads the choices off a label of the top. */
static void read_off(struct run *r, uint32_t label, uint32_t *pick)
{
	struct reading top = {r->job->e->nstep, label};
	AP_PUSH(r->ctx->scratch, r->pending, top);
	while (r->pending.n) {
		struct reading at = r->pending.v[--r->pending.n];
		const struct ap_label *l = &r->f.pool.v[at.label];
		for (uint32_t c = ap_lfront_child(&r->f, at.step); c != AP_NONE;
			c = r->job->support->step[c].sibling) {
			struct reading below = {c, l->right};
			AP_PUSH(r->ctx->scratch, r->pending, below);
			l = &r->f.pool.v[l->left];
		}
		if (at.step < r->job->e->nstep)
			pick[r->job->e->step[at.step].node] = l->right;
	}
}

static enum ap_label_end solve(struct run *r, uint32_t *pick)
{
	if (!make_steps(r))
		return AP_LABEL_LIMIT;
	struct ap_lrange top = make_top(r);
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
	r.of = AP_NEW_N(ctx->scratch, struct ap_lrange *, job->e->nstep);
	r.pick = AP_NEW_N(ctx->scratch, uint32_t, job->p->n);
	r.f = (struct ap_lfront){.arena = ctx->scratch, .e = job->e, .support = job->support,
		.ties = job->ties};
	r.margin = ((double)job->p->n + job->p->nedge + 8) * job->priced->quantum;
	assign_edges(&r);
	enum ap_label_end end = solve(&r, pick);
	job->work += r.f.work;
	ap_arena_release(ctx->scratch, mark);
	return end;
}
