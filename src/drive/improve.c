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

struct group { /* equal operators that are cut alike, numbered by their first */
	ap_id first;
	uint32_t n;
	double cost_s; /* of all, with redistributions and the whole gradient exchange */
};

struct local {
	struct ap_improving *job;
	struct ap_ctx quiet; /* refusals are not reported */
	const struct ap_graph *g;
	int64_t ndev;
	const struct ap_step *step;
	const uint32_t *class_of;
	bool *open; /* [nnode] may be changed */
	const int32_t **row; /* [nnode] of the best plan */
	uint32_t *group_of; /* [nnode] */
	AP_VEC(struct group) groups;
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

static size_t row_bytes(const struct local *x, ap_id node)
{
	return x->g->node[node].bound.nfactor * sizeof(int32_t);
}

static const struct ap_space *space_of(struct local *x, ap_id node)
{
	uint32_t c = x->class_of[node];

	if (!x->spaced[c])
		ap_space_make(x->job->ctx, &x->g->node[node].bound, x->ndev, x->step, &x->space[c]);
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

/* Groups of the best plan, dearest first. Rows of a group are made one, so that equal pointers tell it. */
static void find_groups(struct local *x)
{
	struct ap_mark mark = ap_arena_mark(x->quiet.scratch);
	struct ap_map *seen = ap_map_create(x->quiet.scratch);

	x->groups.n = 0;
	for (ap_id i = 0; i < x->g->nnode; i++) {
		int32_t key[2 + AP_MAX_FACTOR] = {(int32_t)x->class_of[i], x->open[i]};
		bool fresh;
		uint32_t id;

		memcpy(key + 2, x->row[i], row_bytes(x, i));
		id = ap_map_put(seen, key, sizeof key, &fresh);
		if (fresh)
			AP_PUSH(x->job->ctx->arena, x->groups, ((struct group){.first = i}));
		x->row[i] = x->row[x->groups.v[id].first];
		x->groups.v[id].n++;
	}
	ap_arena_release(x->quiet.scratch, mark);
	for (size_t k = 0; k < x->groups.n; k++) {
		struct group *q = &x->groups.v[k];
		struct ap_plan_guess c = guess(x, q->first, x->row[q->first], x->row);

		q->cost_s = q->n * (c.busy_s + c.exchange_s);
	}
	qsort(x->groups.v, x->groups.n, sizeof *x->groups.v, by_cost);
	for (ap_id i = 0; i < x->g->nnode; i++)
		x->group_of[i] = UINT32_MAX;
	for (uint32_t k = 0; k < x->groups.n; k++) {
		ap_id first = x->groups.v[k].first;

		for (ap_id i = first; i < x->g->nnode; i++)
			if (x->row[i] == x->row[first] && x->open[i] == x->open[first])
				x->group_of[i] = k;
	}
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
		if (x->open[i] || (x->job->fixed && x->job->fixed[i]))
			held[i] = row[i];
	if (ap_plan_conflict(&x->quiet, x->g, x->ndev, held, &at) ||
		c->complete(c, &x->quiet, held, &all) != AP_OK)
		return NULL;
	return all;
}

/* Takes the rows if their plan is faster than the best, and fits. */
static bool take_if_faster(struct local *x, const int32_t *const *row)
{
	struct ap_mark mark = ap_arena_mark(x->quiet.arena);
	const int32_t *const *all;
	struct ap_plan p;
	bool faster = false;

	x->quiet = ap_diag_apart(&x->quiet);
	all = complete(x, row);
	if (all) {
		ap_plan_sketch_in(x->job->maker, x->quiet.arena, all, &p);
		faster = p.prediction.step_time_s < x->best_s &&
			p.prediction.memory.total <= p.capacity_bytes;
	}
	for (ap_id i = 0; faster && i < x->g->nnode; i++)
		if (memcmp(x->row[i], all[i], row_bytes(x, i)) != 0)
			x->row[i] = ap_arena_memdup(x->job->ctx->arena, all[i], row_bytes(x, i));
	if (faster)
		x->best_s = p.prediction.step_time_s;
	x->better |= faster;
	ap_arena_release(x->quiet.arena, mark);
	return faster;
}

struct scored {
	uint32_t candidate;
	double score_s;
};

/* Keeps the least n of the scores, of equals the first. */
static void keep(struct scored *list, int *n, int most, struct scored s)
{
	int at = *n;

	if (at == most && s.score_s >= list[most - 1].score_s)
		return;
	*n += *n < most;
	for (at = at < most ? at : most - 1; at > 0 && list[at - 1].score_s > s.score_s; at--)
		list[at] = list[at - 1];
	list[at] = s;
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
static void add_beside(const struct local *x, uint32_t group, uint32_t *list, uint32_t *n)
{
	const struct ap_node *node = &x->g->node[x->groups.v[group].first];

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t k = 0; k < (pass ? node->bound.nout : node->bound.nin); k++) {
			const struct ap_tensor *t = &x->g->tensor[pass ? node->out[k] : node->in[k]];
			uint32_t many = pass ? t->nuse : t->kind == AP_TENSOR_ACT;

			for (uint32_t u = 0; u < many && *n < MOST_MOVED; u++) {
				ap_id beside = pass ? t->use[u].node : t->producer;
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
	add_beside(x, group, list, &n);
	for (uint32_t at = 1; at < n; at++) {
		const int32_t *better = best_between(x, list[at], row);

		if (!better)
			continue;
		set_group(x, list[at], better, row);
		add_beside(x, list[at], list, &n);
	}
}

/* Tries a group's candidates; true: one was faster, and was taken. */
static bool try_group(struct local *x, uint32_t group)
{
	ap_id node = x->groups.v[group].first;
	const struct ap_space *space = space_of(x, node);
	struct ap_plan_guess now = guess(x, node, x->row[node], x->row);
	struct scored alone[MOST_ALONE], together[MOST_TOGETHER];
	int nalone = 0, ntogether = 0;
	struct ap_mark mark;
	const int32_t **row;
	bool faster = false;

	for (uint32_t c = 0; c < space->n && spend(x, GUESS_STEPS); c++) {
		const int32_t *count = &space->count[(size_t)c * space->nfactor];
		struct ap_plan_guess q;
		double gain_s, own_s;

		if (memcmp(count, x->row[node], row_bytes(x, node)) == 0)
			continue;
		q = guess(x, node, count, x->row);
		gain_s = fmin(q.busy_s - now.busy_s, q.busy_s + q.exchange_s - now.busy_s - now.exchange_s);
		own_s = fmin(q.own_s - now.own_s, q.own_s + q.exchange_s - now.own_s - now.exchange_s);
		if (gain_s < 0)
			keep(alone, &nalone, MOST_ALONE, (struct scored){c, gain_s});
		if (own_s < 0)
			keep(together, &ntogether, MOST_TOGETHER, (struct scored){c, own_s});
	}
	mark = ap_arena_mark(x->quiet.arena);
	row = AP_NEW_N(x->quiet.arena, const int32_t *, x->g->nnode);
	for (int k = 0; k < nalone + ntogether && !faster; k++) {
		uint32_t c = k < nalone ? alone[k].candidate : together[k - nalone].candidate;
		const int32_t *count = &space->count[(size_t)c * space->nfactor];

		if (!spend(x, (uint64_t)x->g->nnode * SKETCH_STEPS))
			break;
		memcpy(row, x->row, x->g->nnode * sizeof *row);
		if (k < nalone)
			set_group(x, group, count, row);
		else
			move_together(x, group, count, row);
		faster = take_if_faster(x, row);
	}
	ap_arena_release(x->quiet.arena, mark);
	return faster;
}

/* One round through all groups; they are found anew where one changed. */
static bool try_all(struct local *x)
{
	bool any = false;

	for (uint32_t k = 0; k < x->groups.n && x->job->steps && !ap_ctx_stopped(x->job->ctx); k++)
		if (x->open[x->groups.v[k].first] && try_group(x, k)) {
			any = true;
			find_groups(x);
		}
	return any;
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
			(!job->completer || start->op[i].in_checkpoint) &&
			!ap_space_is_imposed(&start->graph->node[i].bound);
		nopen += x.open[i];
	}
	job->done = nopen == 0;
	if (nopen == 0)
		return start;
	x.space = AP_NEW_N(arena, struct ap_space, nclass);
	x.spaced = AP_NEW_N(arena, bool, nclass);
	find_groups(&x);
	while (job->steps && !ap_ctx_stopped(job->ctx) && !job->done)
		job->done = !try_all(&x) && job->steps && !ap_ctx_stopped(job->ctx);
	if (!x.better)
		return start;
	out = AP_NEW(arena, struct ap_plan);
	ap_plan_sketch(job->maker, x.row, out);
	return out;
}
