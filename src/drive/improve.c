/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/improve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/conflict.h"
#include "cost/task.h"
#include "route/route.h"
#include "shard/space.h"

#define SKETCH_STEPS 2048 /* inner steps of a search that take as long as one operator of a trial */
#define GUESS_STEPS 8192 /* or the estimated cost of one candidate */
#define MOST_ALONE 4 /* candidates of a group that are tried alone */
#define MOST_TOGETHER 4 /* and with their neighbours */
#define MOST_MOVED 64 /* groups that change together */
#define MOST_NEXT 16 /* plans that are kept to go on from */
#define MOST_VAIN 8 /* plans that are gone on from without one that is faster */
#define MOST_RUN 12 /* groups that change one after the other */

enum kind { ALONE, TOGETHER, RUN }; /* trials */
enum { BEFORE, AFTER, BOTH }; /* whom a run goes to */

struct group { /* equal operators that are cut alike, numbered by their first */
	ap_id first;
	uint32_t n, id;
	double cost_s; /* of all, with redistributions and the whole gradient exchange */
};

struct trial { /* a candidate of a group */
	uint32_t group, candidate;
	double score_s; /* what it costs more, by the guess */
};

struct trials { /* AP_VEC */
	struct trial *v;
	size_t n, cap;
};

struct tried { /* a plan that is no faster than the best */
	double step_s;
	int32_t *count; /* of all operators, one after the other */
};

struct local {
	struct ap_improving *job;
	struct ap_ctx quiet; /* refusals are not reported */
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
	const uint32_t *class_of;
	bool *open; /* [nnode] may be changed */
	const int32_t **row; /* [nnode] of the plan that trials begin with */
	const int32_t **best; /* [nnode] of the best plan */
	bool apart; /* each operator is a group of its own */
	uint32_t *group_of; /* [nnode] */
	AP_VEC(struct group) groups;
	struct ap_arena *lists; /* of trials */
	struct ap_map *tried; /* hashes of plans */
	struct tried next[MOST_NEXT]; /* the fastest of them that were not gone on from, fastest first */
	uint32_t nnext;
	size_t ncount; /* of a plan */
	struct trials alone, together; /* of a round, not made yet */
	double best_s;
	bool better; /* than start */
	struct ap_space *space; /* [classes], made when first asked for */
	bool *spaced; /* [classes] */
};

static bool spend(struct local *x, uint64_t steps)
{
	uint64_t *left = &x->job->steps;

	*left -= steps < *left ? steps : *left;
	return *left > 0 && !ap_ctx_stopped(x->job->ctx);
}

/* Is there anything left to spend? */
static bool is_going(const struct local *x)
{
	return x->job->steps > 0 && !ap_ctx_stopped(x->job->ctx);
}

static size_t row_bytes(const struct local *x, ap_id node)
{
	return x->g->node[node].bound.nfactor * sizeof(int32_t);
}

static const struct ap_space *space_of(struct local *x, ap_id node)
{
	uint32_t c = x->class_of[node];

	if (!x->spaced[c])
		ap_space_make(x->job->ctx, &x->g->node[node].bound, ap_graph_devices(x->g, node, x->ndev),
			x->step, &x->space[c]);
	x->spaced[c] = true;
	return &x->space[c];
}

/* Cost of a group's first operator with these counts, its equals cut alike, the others as in row. */
static struct ap_plan_guess guess(struct local *x, ap_id node, const int32_t *count,
	const int32_t *const *row)
{
	return ap_plan_guess(x->job->maker, node, count, row, row[node]);
}

static int by_cost(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->cost_s != y->cost_s)
		return x->cost_s > y->cost_s ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* Groups of the plan, dearest first. Rows of a group are made one, so that equal pointers tell it. */
static void find_groups(struct local *x)
{
	struct ap_mark mark = ap_arena_mark(x->quiet.scratch);
	struct ap_map *seen = ap_map_create(x->quiet.scratch);
	uint32_t *rank;

	x->groups.n = 0;
	x->alone.n = x->together.n = 0;
	for (ap_id i = 0; i < x->g->nnode; i++) {
		int32_t key[3 + AP_MAX_FACTOR] = {(int32_t)x->class_of[i], x->open[i],
			x->apart ? (int32_t)i : 0};
		bool fresh;

		memcpy(key + 3, x->row[i], row_bytes(x, i));
		x->group_of[i] = ap_map_put(seen, key, sizeof key, &fresh);
		if (fresh)
			AP_PUSH(x->job->ctx->arena, x->groups,
				((struct group){.first = i, .id = x->group_of[i]}));
		x->row[i] = x->row[x->groups.v[x->group_of[i]].first];
		x->groups.v[x->group_of[i]].n++;
	}
	for (size_t k = 0; k < x->groups.n; k++) {
		struct group *q = &x->groups.v[k];
		struct ap_plan_guess c = guess(x, q->first, x->row[q->first], x->row);

		q->cost_s = q->n * (c.busy_s + c.exchange_s);
	}
	qsort(x->groups.v, x->groups.n, sizeof *x->groups.v, by_cost);
	rank = AP_NEW_N(x->quiet.scratch, uint32_t, x->groups.n);
	for (uint32_t k = 0; k < x->groups.n; k++)
		rank[x->groups.v[k].id] = k;
	for (ap_id i = 0; i < x->g->nnode; i++)
		x->group_of[i] = rank[x->group_of[i]];
	ap_arena_release(x->quiet.scratch, mark);
}

/* The rows completed by the route, if there is one; NULL: they are no plan. */
static const int32_t *const *complete(struct local *x, const int32_t *const *row)
{
	struct ap_completer *c = x->job->completer;
	const int32_t **held;
	const int32_t *const *all;
	ap_id at;

	if (!c)
		return ap_plan_conflict(&x->quiet, x->g, x->ndev, row, &at) ? NULL : row;
	held = AP_NEW_N(x->quiet.arena, const int32_t *, x->g->nnode);
	for (ap_id i = 0; i < x->g->nnode; i++)
		if (ap_plan_is_held(&x->g->node[i]) || (x->job->fixed && x->job->fixed[i]))
			held[i] = row[i];
	if (ap_plan_conflict(&x->quiet, x->g, x->ndev, held, &at) ||
		c->complete(c, &x->quiet, held, &all) != AP_OK)
		return NULL;
	return all;
}

/* Was a plan of these rows tried before? Then it is no better than the best of now. */
static bool was_tried(struct local *x, const int32_t *const *row)
{
	uint64_t hash[2] = {0, 1};
	bool fresh;

	for (ap_id i = 0; i < x->g->nnode; i++)
		for (int k = 0; k < 2; k++)
			hash[k] = ap_hash(row[i], row_bytes(x, i), hash[k]);
	ap_map_put(x->tried, hash, sizeof hash, &fresh);
	return !fresh;
}

/* Keeps a plan to go on from if it is one of the fastest. */
static void keep(struct local *x, const int32_t *const *row, double step_s)
{
	uint32_t at = x->nnext;
	struct tried t;
	int32_t *to;

	if (!x->job->deep || (at == MOST_NEXT && step_s >= x->next[at - 1].step_s))
		return;
	if (at < MOST_NEXT && !x->next[at].count)
		x->next[at].count = AP_NEW_N(x->lists, int32_t, x->ncount);
	if (at < MOST_NEXT)
		x->nnext++;
	else
		at--;
	t = (struct tried){step_s, x->next[at].count};
	to = t.count;
	for (ap_id i = 0; i < x->g->nnode; to += x->g->node[i++].bound.nfactor)
		memcpy(to, row[i], row_bytes(x, i));
	for (; at > 0 && x->next[at - 1].step_s > step_s; at--)
		x->next[at] = x->next[at - 1];
	x->next[at] = t;
}

/* Takes the rows if their plan is faster than the best, and fits. */
static bool take_if_faster(struct local *x, const int32_t *const *row)
{
	struct ap_mark mark = ap_arena_mark(x->quiet.arena);
	const int32_t *const *all;
	struct ap_plan p;
	bool faster = false;

	if (was_tried(x, row) || !spend(x, (uint64_t)x->g->nnode * SKETCH_STEPS))
		return false;
	x->quiet = ap_diag_apart(&x->quiet);
	all = complete(x, row);
	if (all) {
		bool fits = ap_plan_sketch_if_fits(x->job->maker, x->quiet.arena, all, &p);

		faster = fits && p.prediction.step_time_s < x->best_s;
		if (fits && !faster)
			keep(x, all, p.prediction.step_time_s);
	}
	for (ap_id i = 0; faster && i < x->g->nnode; i++)
		if (memcmp(x->row[i], all[i], row_bytes(x, i)) != 0)
			x->row[i] = ap_arena_memdup(x->job->ctx->arena, all[i], row_bytes(x, i));
	if (faster) {
		x->best_s = p.prediction.step_time_s;
		memcpy(x->best, x->row, x->g->nnode * sizeof *x->best);
	}
	x->better |= faster;
	ap_arena_release(x->quiet.arena, mark);
	return faster;
}

static void set_group(const struct local *x, uint32_t group, const int32_t *count, const int32_t **row)
{
	for (ap_id i = x->groups.v[group].first; i < x->g->nnode; i++)
		if (x->group_of[i] == group)
			row[i] = count;
}

/* The candidate of a group's first operator that is best between its neighbours as they are now; NULL: none
 * is better than the one it has. */
static const int32_t *best_between(struct local *x, uint32_t group, const int32_t *const *row)
{
	ap_id node = x->groups.v[group].first;
	const struct ap_space *space = space_of(x, node);
	struct ap_plan_guess now = guess(x, node, row[node], row);
	double best_s = now.busy_s + now.exchange_s;
	const int32_t *best = NULL;

	for (uint32_t c = 0; c < space->n && spend(x, GUESS_STEPS); c++) {
		const int32_t *count = &space->count[(size_t)c * space->nfactor];
		struct ap_plan_guess q = guess(x, node, count, row);

		if (q.busy_s + q.exchange_s < best_s) {
			best_s = q.busy_s + q.exchange_s;
			best = count;
		}
	}
	return best;
}

/* Lists the groups beside one, each once. */
static void add_beside(const struct local *x, uint32_t group, int side, uint32_t *list, uint32_t *n)
{
	const struct ap_node *node = &x->g->node[x->groups.v[group].first];

	for (int pass = side == AFTER; pass < 2 - (side == BEFORE); pass++)
		for (uint32_t k = 0; k < (pass ? node->bound.nout : node->bound.nin); k++) {
			const struct ap_tensor *t = &x->g->tensor[pass ? node->out[k] : node->in[k]];
			bool shared = pass || t->kind == AP_TENSOR_PARAM;
			uint32_t many = shared ? t->nuse : t->kind == AP_TENSOR_ACT;

			for (uint32_t u = 0; u < many && *n < MOST_MOVED; u++) {
				ap_id beside = shared ? t->use[u].node : t->producer;
				uint32_t other = x->group_of[beside], at = 0;

				while (at < *n && list[at] != other)
					at++;
				if (at == *n && x->open[beside])
					list[(*n)++] = other;
			}
		}
}

/* Gives a group a candidate, then the groups around it what is best beside it, outwards, each once. */
static void move_together(struct local *x, uint32_t group, const int32_t *count, const int32_t **row)
{
	uint32_t list[MOST_MOVED] = {group}, n = 1;

	set_group(x, group, count, row);
	add_beside(x, group, BOTH, list, &n);
	for (uint32_t at = 1; at < n; at++) {
		const int32_t *better = best_between(x, list[at], row);

		if (!better)
			continue;
		set_group(x, list[at], better, row);
		add_beside(x, list[at], BOTH, list, &n);
	}
}

static int by_score(const void *a, const void *b)
{
	const struct trial *x = a, *y = b;

	if (x->score_s != y->score_s)
		return x->score_s < y->score_s ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

static const int32_t *counts_of(struct local *x, const struct trial *t)
{
	const struct ap_space *space = space_of(x, x->groups.v[t->group].first);

	return &space->count[(size_t)t->candidate * space->nfactor];
}

/* The candidate, other than the present one, of a group's first operator with the least redistributions
 * to and from operators that have a row, of equals the one that costs least itself; NULL: none. */
static const int32_t *best_other(struct local *x, uint32_t group, const int32_t *const *row)
{
	ap_id node = x->groups.v[group].first;
	const struct ap_space *space = space_of(x, node);
	double best_s = INFINITY, best_own_s = INFINITY;
	const int32_t *best = NULL;

	for (uint32_t c = 0; c < space->n && spend(x, GUESS_STEPS); c++) {
		const int32_t *count = &space->count[(size_t)c * space->nfactor];
		struct ap_plan_guess q;
		double links_s;

		if (memcmp(count, x->row[node], row_bytes(x, node)) == 0)
			continue;
		q = guess(x, node, count, row);
		links_s = q.busy_s - q.own_s;
		if (links_s < best_s || (links_s <= best_s && q.own_s + q.exchange_s < best_own_s)) {
			best_s = links_s;
			best_own_s = q.own_s + q.exchange_s;
			best = count;
		}
	}
	return best;
}

/* A group changes, then one more at a time beside those that did; each to what costs least beside those
 * alone. */
static bool try_run(struct local *x, const struct trial *t, int side, const int32_t **row)
{
	uint32_t list[MOST_MOVED] = {t->group}, n = 1;
	const int32_t **part = AP_NEW_N(x->quiet.arena, const int32_t *, x->g->nnode);

	memcpy(row, x->row, x->g->nnode * sizeof *row);
	for (uint32_t at = 0; at < n && at < MOST_RUN; at++) {
		const int32_t *count = at ? best_other(x, list[at], part) : counts_of(x, t);

		if (!count)
			continue;
		set_group(x, list[at], count, part);
		set_group(x, list[at], count, row);
		if (take_if_faster(x, row))
			return true;
		add_beside(x, list[at], side, list, &n);
	}
	return false;
}

/* Makes a trial; true: it was faster, and was taken. */
static bool try_one(struct local *x, const struct trial *t, enum kind kind)
{
	struct ap_mark mark = ap_arena_mark(x->quiet.arena);
	const int32_t **row = AP_NEW_N(x->quiet.arena, const int32_t *, x->g->nnode);
	bool faster = false;

	memcpy(row, x->row, x->g->nnode * sizeof *row);
	if (kind == ALONE)
		set_group(x, t->group, counts_of(x, t), row);
	else if (kind == TOGETHER)
		move_together(x, t->group, counts_of(x, t), row);
	if (kind != RUN)
		faster = take_if_faster(x, row);
	for (int side = BOTH; kind == RUN && side >= BEFORE && !faster && is_going(x); side--)
		faster = try_run(x, t, side, row);
	ap_arena_release(x->quiet.arena, mark);
	return faster;
}

/* Makes those trials from `first` on that promise most, as far as they promise anything. */
static bool try_best(struct local *x, struct trials *list, size_t first, size_t most, enum kind kind)
{
	size_t n = list->n - first;

	if (n == 0)
		return false;
	qsort(list->v + first, n, sizeof *list->v, by_score);
	for (size_t k = 0; k < n && k < most && list->v[first + k].score_s < 0; k++)
		if (try_one(x, &list->v[first + k], kind))
			return true;
	return false;
}

/* Tries a group's candidates that promise most, and lists the others; true: one was faster, and was taken. */
static bool try_group(struct local *x, uint32_t group)
{
	ap_id node = x->groups.v[group].first;
	const struct ap_space *space = space_of(x, node);
	struct ap_plan_guess now = guess(x, node, x->row[node], x->row);
	size_t alone = x->alone.n, together = x->together.n;

	for (uint32_t c = 0; c < space->n && spend(x, GUESS_STEPS); c++) {
		const int32_t *count = &space->count[(size_t)c * space->nfactor];
		struct ap_plan_guess q;
		struct trial t = {group, c, 0};

		if (memcmp(count, x->row[node], row_bytes(x, node)) == 0)
			continue;
		q = guess(x, node, count, x->row);
		t.score_s = fmin(q.busy_s - now.busy_s,
			q.busy_s + q.exchange_s - now.busy_s - now.exchange_s);
		if (t.score_s < INFINITY)
			AP_PUSH(x->lists, x->alone, t);
		t.score_s = fmin(q.own_s - now.own_s, q.own_s + q.exchange_s - now.own_s - now.exchange_s);
		AP_PUSH(x->lists, x->together, t);
	}
	return try_best(x, &x->alone, alone, MOST_ALONE, ALONE) ||
		try_best(x, &x->together, together, MOST_TOGETHER, TOGETHER);
}

/* One round through all groups; they are found anew where one changed. */
static bool try_all(struct local *x)
{
	bool any = false;

	x->alone.n = x->together.n = 0;
	for (uint32_t k = 0; k < x->groups.n && is_going(x); k++)
		if (x->open[x->groups.v[k].first] && try_group(x, k)) {
			any = true;
			find_groups(x);
		}
	return any;
}

/* All trials of a round that found none faster, the one that costs least more by the guess first: alone and
 * together by turns, then runs. */
static bool try_rest(struct local *x)
{
	size_t nalone = x->alone.n, n = x->together.n;

	if (nalone > 0)
		qsort(x->alone.v, nalone, sizeof *x->alone.v, by_score);
	if (n > 0)
		qsort(x->together.v, n, sizeof *x->together.v, by_score);
	for (int runs = 0; runs < 2; runs++)
		for (size_t i = 0; i < n && is_going(x); i++)
			if ((!runs && i < nalone && try_one(x, &x->alone.v[i], ALONE)) ||
				try_one(x, &x->together.v[i], runs ? RUN : TOGETHER)) {
				find_groups(x);
				return true;
			}
	return false;
}

/* Goes on until no trial is faster. */
static bool descend(struct local *x)
{
	bool any = false;

	find_groups(x);
	do {
		while (is_going(x) && try_all(x))
			any = true;
	} while (x->job->deep && is_going(x) && try_rest(x) && (any = true));
	return any;
}

/* The fastest plan that was tried is gone on from. */
static void go_on(struct local *x)
{
	struct tried t = x->next[0];
	const int32_t *from = t.count;

	memmove(x->next, x->next + 1, --x->nnext * sizeof *x->next);
	for (ap_id i = 0; i < x->g->nnode; from += x->g->node[i++].bound.nfactor)
		if (memcmp(x->row[i], from, row_bytes(x, i)) != 0)
			x->row[i] = ap_arena_memdup(x->job->ctx->arena, from, row_bytes(x, i));
	x->next[x->nnext].count = t.count;
}

/* The same where equal operators may part. */
static bool descend_apart(struct local *x)
{
	bool any;

	if (x->groups.n == x->g->nnode)
		return false;
	for (ap_id i = 0; i < x->g->nnode; i++)
		x->row[i] = ap_arena_memdup(x->job->ctx->arena, x->row[i], row_bytes(x, i));
	x->apart = true;
	any = descend(x);
	x->apart = false;
	return any;
}

/* Goes on until no trial is faster: from the best plan, then from those that were hardly slower. */
static void improve(struct local *x)
{
	int vain = 0; /* plans gone on from since one was faster */

	descend(x);
	while (x->job->deep && is_going(x) && vain <= MOST_VAIN) {
		if (vain == 0 && descend_apart(x)) {
			descend(x);
		} else if (x->nnext > 0) {
			go_on(x);
			vain = descend(x) ? 0 : vain + 1;
		} else {
			return;
		}
	}
}

const struct ap_plan *ap_improve(struct ap_improving *job, const struct ap_plan *start)
{
	struct ap_arena *arena = job->ctx->arena;
	ap_id n = start->graph->nnode;
	struct local x = {.job = job, .quiet = *job->ctx, .g = start->graph, .ndev = start->machine->ndev,
		.step = start->step, .best_s = start->prediction.step_time_s};
	uint32_t nclass = 0, nopen = 0;
	struct ap_plan *out;

	ap_ctx_phase(job->ctx, "improving by the step");
	x.quiet.arena = job->scratch;
	x.quiet.stop = NULL;
	x.open = AP_NEW_N(arena, bool, n);
	x.row = AP_NEW_N(arena, const int32_t *, n);
	x.group_of = AP_NEW_N(arena, uint32_t, n);
	x.class_of = ap_task_classes(job->ctx, start->task, n);
	for (ap_id i = 0; i < n; i++) {
		nclass = x.class_of[i] >= nclass ? x.class_of[i] + 1 : nclass;
		x.row[i] = ap_placement_counts(arena, &start->op[i].place);
		x.open[i] = !(job->fixed && job->fixed[i]) &&
			(!job->completer || ap_plan_is_held(&start->graph->node[i])) &&
			!ap_space_is_imposed(&start->graph->node[i].bound);
		nopen += x.open[i];
	}
	job->done = nopen == 0;
	if (nopen == 0)
		return start;
	x.space = AP_NEW_N(arena, struct ap_space, nclass);
	x.spaced = AP_NEW_N(arena, bool, nclass);
	x.lists = ap_arena_create_like(arena);
	x.tried = ap_map_create(x.lists);
	x.best = AP_NEW_N(arena, const int32_t *, n);
	for (ap_id i = 0; i < n; i++)
		x.ncount += start->graph->node[i].bound.nfactor;
	was_tried(&x, x.row);
	improve(&x);
	job->done = is_going(&x);
	ap_arena_destroy(x.lists);
	if (!x.better)
		return start;
	out = AP_NEW(arena, struct ap_plan);
	ap_plan_sketch(job->maker, x.best, out);
	return out;
}
