/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/label.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

/*
 * The labels of a step are made child by child, last child first: `left` is the label so far,
 * `right` the child's label. At the end of the chain, `left` is AP_NONE and `right` the candidate
 * of the step's node. So walking a chain meets the children in order. The roots of the forest are
 * children of an extra step after the plan's last.
 */
struct label {
	double cost;
	int64_t memory;
	double excess; /* of its price over the least price for the same choices */
	uint32_t left, right;
};

struct labels {
	struct label *v;
	size_t n, cap;
};

struct range { /* a range of labels in the pool */
	uint32_t first, count;
};

struct pending_pair {
	uint32_t step, a, b;
};

/*
 * The front: labels of one step, made of the same children, that no other label makes useless; by
 * ascending cost, then descending memory (so memory descends throughout). A label makes useless any
 * that needs no less memory and costs more; at equal cost, without ties any that needs no less
 * memory, with ties only those that are also lexicographically larger. (A cheaper label that fits
 * wherever the dearer one does keeps that out of any optimum; of equal ones, the smaller may need
 * more memory and still fit.)
 */
struct front {
	struct ap_arena *arena;
	const struct ap_elim *e;
	const struct ap_support *support;
	bool ties;
	uint64_t work; /* counted up */
	struct labels pool; /* all finished labels */
	struct labels front;
	struct labels fresh; /* not yet merged with the front */
	struct labels merged, level; /* scratch for merging */
	uint32_t step, child; /* made of the children of step from `child` on */
	AP_VEC(struct pending_pair) pending;
};

enum { RUN = 8 };

/* The first child of a step, or AP_NONE. */
static uint32_t front_child(const struct front *f, uint32_t step)
{
	return step == f->e->nstep ? f->support->root : f->support->step[step].child;
}

/* ---- the lexicographic order ---- */

struct chains { /* the chains of two labels of a step, followed to their ends */
	const struct label *a, *b;
};

/* Walks down from `child` and queues children whose labels differ. */
static struct chains walk(struct front *f, uint32_t child, struct chains at)
{
	for (; child != AP_NONE; child = f->support->step[child].sibling) {
		struct pending_pair below = {child, at.a->right, at.b->right};
		if (below.a != below.b)
			AP_PUSH(f->arena, f->pending, below);
		at.a = &f->pool.v[at.a->left];
		at.b = &f->pool.v[at.b->left];
	}
	return at;
}

/* The first node that differs, at any depth, decides. */
static bool lex_less(struct front *f, const struct label *a, const struct label *b)
{
	ap_id first = AP_NONE;
	bool less = false;
	uint32_t step = f->step;
	struct chains end = walk(f, f->child, (struct chains){a, b});
	for (;;) {
		f->work++;
		if (step != f->e->nstep && end.a->right != end.b->right &&
			f->e->step[step].node < first) {
			first = f->e->step[step].node;
			less = end.a->right < end.b->right;
		}
		if (!f->pending.n)
			return less;
		struct pending_pair next = f->pending.v[--f->pending.n];
		step = next.step;
		end = walk(f, f->support->step[step].child,
			(struct chains){&f->pool.v[next.a], &f->pool.v[next.b]});
	}
}

/* ---- the front ---- */

/* Starts an empty front for labels of step made of its children from `child` on. */
static void front_start(struct front *f, uint32_t step, uint32_t child)
{
	f->front.n = f->fresh.n = 0;
	f->step = step;
	f->child = child;
}

/* Index of the first label in the front that costs at least `cost`. */
static size_t level_of(const struct front *f, double cost)
{
	size_t low = 0, high = f->front.n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (f->front.v[middle].cost < cost)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool beats_equal(struct front *f, const struct label *a, const struct label *b)
{
	return a->memory <= b->memory && (!f->ties || lex_less(f, a, b));
}

static bool useless(struct front *f, const struct label *l)
{
	size_t level = level_of(f, l->cost);
	if (level > 0 && f->front.v[level - 1].memory <= l->memory)
		return true;
	for (size_t i = level; i < f->front.n && f->front.v[i].cost == l->cost; i++) {
		if (beats_equal(f, &f->front.v[i], l))
			return true;
	}
	return false;
}

/* ---- sorting, inlined per order: it takes half of the time ---- */

typedef bool less_fn(const struct label *x, const struct label *y);

static inline bool cost_less(const struct label *x, const struct label *y)
{
	if (x->cost != y->cost)
		return x->cost < y->cost;
	if (x->memory != y->memory)
		return x->memory < y->memory;
	return x->left != y->left ? x->left < y->left : x->right < y->right;
}

static inline bool excess_less(const struct label *x, const struct label *y)
{
	if (x->excess != y->excess)
		return x->excess < y->excess;
	return x->cost != y->cost ? x->cost < y->cost : x->memory < y->memory;
}

static inline void sort_run(struct label *v, size_t n, less_fn *less)
{
	for (size_t i = 1; i < n; i++) {
		struct label x = v[i];
		size_t j = i;
		for (; j > 0 && less(&x, &v[j - 1]); j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

static inline void merge_runs(const struct label *a, size_t na, const struct label *b,
	size_t nb, struct label *out, less_fn *less)
{
	while (na && nb) {
		bool second = less(b, a);
		*out++ = second ? *b++ : *a++;
		nb -= second;
		na -= !second;
	}
	memcpy(out, na ? a : b, (na ? na : nb) * sizeof *out);
}

/* Stable merge sort; room has the size of v. */
static inline void sort_labels(struct label *v, size_t n, struct label *room, less_fn *less)
{
	struct label *from = v, *to = room, *other;
	for (size_t i = 0; i < n; i += RUN)
		sort_run(v + i, n - i < RUN ? n - i : RUN, less);
	for (size_t width = RUN; width < n; width *= 2) {
		for (size_t i = 0; i < n; i += 2 * width) {
			size_t na = n - i < width ? n - i : width;
			size_t nb = n - i - na < width ? n - i - na : width;
			merge_runs(from + i, na, from + i + na, nb, to + i, less);
		}
		other = from;
		from = to;
		to = other;
	}
	if (from != v)
		memcpy(v, from, n * sizeof *v);
}

static struct label *room_for(struct front *f, size_t n)
{
	AP_RESERVE(f->arena, f->level, n);
	return f->level.v;
}

/* Adds l to the current level, of equal cost, unless a label there beats it. */
static void add_to_level(struct front *f, const struct label *l)
{
	size_t kept = 0, place = 0;
	for (size_t i = 0; i < f->level.n; i++) {
		if (beats_equal(f, &f->level.v[i], l))
			return;
	}
	for (size_t i = 0; i < f->level.n; i++) {
		if (beats_equal(f, l, &f->level.v[i]))
			continue;
		place += f->level.v[i].memory > l->memory;
		f->level.v[kept++] = f->level.v[i];
	}
	f->level.n = kept;
	AP_PUSH(f->arena, f->level, *l);
	memmove(&f->level.v[place + 1], &f->level.v[place], (kept - place) * sizeof *l);
	f->level.v[place] = *l;
}

/* Merges the waiting labels with the front, one cost level at a time. */
static void merge(struct front *f)
{
	size_t i = 0, j = 0;
	int64_t least = INT64_MAX; /* least memory of all cheaper labels */
	sort_labels(f->fresh.v, f->fresh.n, room_for(f, f->fresh.n), cost_less);
	f->merged.n = 0;
	while (i < f->front.n || j < f->fresh.n) {
		bool old = j == f->fresh.n ||
			(i < f->front.n && f->front.v[i].cost <= f->fresh.v[j].cost);
		double cost = old ? f->front.v[i].cost : f->fresh.v[j].cost;
		f->level.n = 0;
		for (; i < f->front.n && f->front.v[i].cost == cost; i++) {
			if (f->front.v[i].memory < least)
				add_to_level(f, &f->front.v[i]);
		}
		for (; j < f->fresh.n && f->fresh.v[j].cost == cost; j++) {
			if (f->fresh.v[j].memory < least)
				add_to_level(f, &f->fresh.v[j]);
		}
		for (size_t k = 0; k < f->level.n; k++) {
			AP_PUSH(f->arena, f->merged, f->level.v[k]);
			least = f->level.v[k].memory;
		}
	}
	f->fresh.n = 0;
}

static void flush(struct front *f)
{
	if (!f->fresh.n)
		return;
	merge(f);
	struct labels old = f->front;
	f->front = f->merged;
	f->merged = old;
}

/* Adds a label unless useless, and in time drops those it makes useless. O(log) on average. */
static void front_add(struct front *f, struct label l)
{
	if (useless(f, &l))
		return;
	AP_PUSH(f->arena, f->fresh, l);
	if (f->fresh.n >= 64 && f->fresh.n >= f->front.n / 2)
		flush(f);
}

/* Is a better than b, both of the front's step: cheaper, or with ties as cheap and smaller? */
static bool front_prefer(struct front *f, const struct label *a, const struct label *b)
{
	return a->cost != b->cost ? a->cost < b->cost : f->ties && lex_less(f, a, b);
}

/* Moves the front to the pool, by ascending excess. */
static struct range front_finish(struct front *f)
{
	flush(f);
	struct range r = {(uint32_t)f->pool.n, (uint32_t)f->front.n};
	sort_labels(f->front.v, f->front.n, room_for(f, f->front.n), excess_less);
	for (size_t i = 0; i < f->front.n; i++)
		AP_PUSH(f->arena, f->pool, f->front.v[i]);
	return r;
}

struct reading { /* a label of a step, while reading off the answer */
	uint32_t step, label;
};

struct run {
	struct ap_ctx *ctx;
	struct ap_label_job *job;
	struct front f;
	struct range **of; /* [step][group], by ascending excess */
	ap_id *own, *first_own; /* edges, by the step that first eliminates one of their nodes */
	uint32_t *pick; /* scratch */
	AP_VEC(uint32_t) child; /* children of the current step */
	struct labels all; /* of the current group */
	AP_VEC(struct reading) pending;
	double margin; /* for rounding errors of excess */
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

/* Cost and memory of a step's own terms for the choice in r->pick. */
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

/* ---- making labels ---- */

static bool spent(const struct run *r)
{
	return r->f.pool.n + r->f.front.n + r->f.fresh.n > r->job->max_labels ||
		r->f.work > r->job->max_work || ap_ctx_stopped(r->ctx);
}

/* Combines every label of a (of a step) with every one of b (of its child) whose total excess is at
 * most slack. */
static struct range join(struct run *r, uint32_t step, uint32_t child, struct range a,
	struct range b, double slack)
{
	if (a.count == 1) {
		struct range out = {(uint32_t)r->f.pool.n, 0};
		struct label x = r->f.pool.v[a.first];

		/* a single label with every one of b: none becomes useless, and the order stays */
		for (uint32_t j = b.first; j < b.first + b.count; j++) {
			struct label y = r->f.pool.v[j];
			r->f.work++;
			if (x.excess + y.excess > slack)
				break;
			AP_PUSH(r->ctx->scratch, r->f.pool, ((struct label){x.cost + y.cost,
				x.memory + y.memory, x.excess + y.excess, a.first, j}));
			out.count++;
		}
		return out;
	}
	front_start(&r->f, step, child);
	for (uint32_t i = a.first; i < a.first + a.count && !spent(r); i++) {
		struct label x = r->f.pool.v[i];
		for (uint32_t j = b.first; j < b.first + b.count; j++) {
			struct label y = r->f.pool.v[j];
			r->f.work++;
			if (x.excess + y.excess > slack)
				break;
			front_add(&r->f, (struct label){x.cost + y.cost, x.memory + y.memory,
				x.excess + y.excess, i, j});
		}
	}
	return front_finish(&r->f);
}

static void list_children(struct run *r, uint32_t step)
{
	r->child.n = 0;
	for (uint32_t c = front_child(&r->f, step); c != AP_NONE;
		c = r->job->support->step[c].sibling)
		AP_PUSH(r->ctx->scratch, r->child, c);
}

/* The least priced cost of everything below a group. */
static double least_below(const struct run *r, uint32_t step, uint32_t group)
{
	size_t cell = r->job->support->step[step].group.v[group].cell;
	return r->job->value[r->job->e->step[step].result][cell];
}

/* The child's group that tuple t of its parent implies. */
static uint32_t implied(const struct run *r, uint32_t child, uint32_t t)
{
	return r->job->support->step[child].link[t];
}

/* The labels of tuple t; its choice is in r->pick. */
static struct range tuple_labels(struct run *r, uint32_t step, uint32_t t)
{
	const struct ap_sstep *s = &r->job->support->step[step];
	const struct ap_stuple *tuple = &s->tuple.v[t];
	struct label own = own_label(r, step);
	double least = least_below(r, step, tuple->group);
	for (size_t i = 0; i < r->child.n; i++)
		least -= least_below(r, r->child.v[i], implied(r, r->child.v[i], t));
	own.excess = own.cost + r->job->priced->price * (double)own.memory - least;
	AP_PUSH(r->ctx->scratch, r->f.pool, own);
	struct range labels = {(uint32_t)r->f.pool.n - 1, 1};
	double slack = r->job->threshold - s->group.v[tuple->group].through + r->margin;
	for (size_t i = r->child.n; i-- > 0 && labels.count;) {
		uint32_t c = r->child.v[i];
		labels = join(r, step, c, labels, r->of[c][implied(r, c, t)], slack);
	}
	return labels;
}

static struct range group_labels(struct run *r, uint32_t step, const struct ap_sgroup *group)
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
		struct range labels = tuple_labels(r, step, t);
		for (uint32_t i = 0; i < labels.count; i++)
			AP_PUSH(r->ctx->scratch, r->all, r->f.pool.v[labels.first + i]);
	}
	front_start(&r->f, step, front_child(&r->f, step));
	for (size_t i = 0; i < r->all.n; i++)
		front_add(&r->f, r->all.v[i]);
	return front_finish(&r->f);
}

/* Combines all roots. */
static struct range make_top(struct run *r)
{
	struct label empty = {.left = AP_NONE};
	list_children(r, r->job->e->nstep);
	AP_PUSH(r->ctx->scratch, r->f.pool, empty);
	struct range labels = {(uint32_t)r->f.pool.n - 1, 1};
	double slack = r->job->threshold - r->job->least + r->margin;
	for (size_t i = r->child.n; i-- > 0 && labels.count;) {
		uint32_t c = r->child.v[i];
		labels = join(r, r->job->e->nstep, c, labels, r->of[c][0], slack);
	}
	return labels;
}

/* ---- the answer ---- */

/* The cheapest label that fits; of several, the smallest. */
static uint32_t best_label(struct run *r, struct range top)
{
	uint32_t best = AP_NONE, step = r->job->e->nstep;
	front_start(&r->f, step, front_child(&r->f, step));
	for (uint32_t i = top.first; i < top.first + top.count; i++) {
		const struct label *l = &r->f.pool.v[i];
		if (l->memory > r->job->p->memory_limit)
			continue;
		if (best == AP_NONE || front_prefer(&r->f, l, &r->f.pool.v[best]))
			best = i;
	}
	return best;
}

/* Reads the choices off a label of the extra step. */
static void read_off(struct run *r, uint32_t label, uint32_t *pick)
{
	struct reading top = {r->job->e->nstep, label};
	AP_PUSH(r->ctx->scratch, r->pending, top);
	while (r->pending.n) {
		struct reading at = r->pending.v[--r->pending.n];
		const struct label *l = &r->f.pool.v[at.label];
		for (uint32_t c = front_child(&r->f, at.step); c != AP_NONE;
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
	for (uint32_t i = 0; i < r->job->e->nstep; i++) {
		const struct ap_sstep *s = &r->job->support->step[i];
		r->of[i] = AP_NEW_N(r->ctx->scratch, struct range, s->group.n);
		list_children(r, i);
		for (size_t g = 0; g < s->group.n; g++) {
			r->of[i][g] = group_labels(r, i, &s->group.v[g]);
			if (spent(r))
				return AP_LABEL_LIMIT;
		}
	}
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
	r.f = (struct front){.arena = ctx->scratch, .e = job->e, .support = job->support,
		.ties = job->ties};
	r.margin = ((double)job->p->n + job->p->nedge + 8) * job->priced->quantum;
	assign_edges(&r);
	enum ap_label_end end = solve(&r, pick);
	job->work += r.f.work;
	ap_arena_release(ctx->scratch, mark);
	return end;
}
