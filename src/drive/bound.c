/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/bound.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "drive/choose.h"
#include "drive/fit.h"
#include "plan/path.h"

enum {
	MOST_SOLVES = 32,
	MOST_PLANS = 72,
	MOST_IN_BRANCH = 6, /* solves */
	BRANCH_BYTES = 64 << 20,
	BRANCH_PART = 4, /* of the work so far that branching may take without having lifted the bound */
	FEW_SOLVES = 2048, /* that it may take in any case, within FEW_STEPS */
	FEW_STEPS = 1 << 28,
	LIFTED_PART = 16, /* of the gap */
	LEAST_SOLVES = 16, /* that branching must have room for */
	MOST_IN_POOL = 32, /* solves among candidates known before one among all */
	POOL_PART = 4, /* of a solve among all candidates a plan of the pool may take */
	PLAN_STEPS = 32768, /* for each operator of a plan that is simulated and whose path is found */
	ENGINE_STEPS = 2, /* in time, of a step of its work: matrices are hardly pruned, and large */
	TABLE_STEPS = 4,
	PIVOTS = 1024
};

#define NEAR 1e-4 /* to the best mixture of a pool */
#define SAME 1e-5 /* a better bound by less is none */
#define WITHIN 64 /* part of the gap known before that a solve within the memory may leave open */

/* Of paths and plans known so far. */
struct game {
	uint32_t npath, nplan;
	struct ap_path path[MOST_PLANS];
	struct ap_path_terms terms[MOST_PLANS]; /* of plans */
	double length_s[MOST_PLANS][MOST_PLANS]; /* [path][plan] */
};

/*
 * The mixture of paths whose shortest length in the known plans is largest: of which no known plan shows
 * that it is no better a bound. Returns that length. A matrix game: with lengths moved to [1, 2], which
 * changes no best mixture, its linear program is to make sum(z) largest with sum over plans of
 * length * z at most 1 for each path; the mixture is its dual, which the simplex method finds from z = 0
 * (Bland's rule, so that it ends; of one that does not in time, any mixture is a bound).
 */
static double answer(struct ap_ctx *ctx, const struct game *g, double share[MOST_PLANS])
{
	enum { WIDE = 2 * MOST_PLANS + 1 };
	const double nil = 1e-11;
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t rows = g->npath, cols = g->nplan, width = cols + rows + 1, base[MOST_PLANS];
	double(*t)[WIDE] = ap_arena_alloc(ctx->scratch, MOST_PLANS + 1, sizeof *t);
	double least = INFINITY, most = 0, sum = 0, shortest = INFINITY;

	for (uint32_t j = 0; j < rows; j++)
		for (uint32_t i = 0; i < cols; i++) {
			least = fmin(least, g->length_s[j][i]);
			most = fmax(most, g->length_s[j][i]);
		}
	for (uint32_t j = 0; j < rows; j++) {
		for (uint32_t i = 0; i < cols; i++)
			t[j][i] = 1 + (most > least ? (g->length_s[j][i] - least) / (most - least) : 0);
		t[j][cols + j] = t[j][width - 1] = 1;
		base[j] = cols + j;
	}
	for (uint32_t i = 0; i < cols; i++)
		t[rows][i] = -1;
	for (int pivots = 0; pivots < PIVOTS; pivots++) {
		uint32_t in = 0, out = rows;
		double factor;

		while (in + 1 < width && t[rows][in] >= -nil)
			in++;
		if (in + 1 == width)
			break;
		for (uint32_t j = 0; j < rows; j++) {
			double more; /* than the least ratio so far */

			if (t[j][in] <= nil)
				continue;
			more = out == rows ? -1 : t[j][width - 1] * t[out][in] - t[out][width - 1] * t[j][in];
			if (more < 0 || (more <= 0 && base[j] < base[out]))
				out = j;
		}
		if (out == rows)
			break;
		factor = 1 / t[out][in];
		for (uint32_t i = 0; i < width; i++)
			t[out][i] *= factor;
		for (uint32_t j = 0; j <= rows; j++) {
			factor = j == out ? 0 : t[j][in];
			for (uint32_t i = 0; i < width && factor != 0; i++)
				t[j][i] -= factor * t[out][i];
		}
		base[out] = in;
	}
	for (uint32_t j = 0; j < rows; j++)
		sum += share[j] = fmax(0, t[rows][cols + j]);
	for (uint32_t j = 0; j < rows; j++)
		share[j] /= sum;
	for (uint32_t i = 0; i < cols; i++) {
		double length = 0;

		for (uint32_t j = 0; j < rows; j++)
			length += share[j] * g->length_s[j][i];
		shortest = fmin(shortest, length);
	}
	ap_arena_release(ctx->scratch, mark);
	return shortest;
}

/* A plan, and the longest path through it, where plans have these strategies in common. Returns false if no
 * path tells it from one that was there. */
static bool add_plan(struct ap_ctx *ctx, struct game *g, const struct ap_plan *p, const bool *fixed)
{
	uint32_t plan = g->nplan, path = g->npath;

	ap_path_terms_make(ctx, p, &g->terms[plan]);
	for (uint32_t j = 0; j < path; j++)
		g->length_s[j][plan] = ap_path_length_s(&g->path[j], p->graph, &g->terms[plan]);
	for (uint32_t i = 0; i < plan; i++) {
		uint32_t j = 0;

		while (j < path && g->length_s[j][plan] == g->length_s[j][i])
			j++;
		if (j == path)
			return false;
	}
	ap_path_longest(ctx, p, &g->terms[plan], fixed, &g->path[path]);
	for (uint32_t i = 0; i <= plan; i++)
		g->length_s[path][i] = ap_path_length_s(&g->path[path], p->graph, &g->terms[i]);
	g->nplan++;
	g->npath++;
	return true;
}

/* The problem without edges that cost nothing whatever is picked: redistributions that the path does not
 * pass. Not for a problem with a memory limit. O(cells). */
static const struct ap_problem *without_idle(struct ap_ctx *ctx, const struct ap_problem *p)
{
	struct ap_problem *out = ap_arena_memdup(ctx->arena, p, sizeof *p);
	struct ap_pedge *edge = AP_NEW_N(ctx->arena, struct ap_pedge, p->nedge + 1);
	bool *idle = AP_NEW_N(ctx->arena, bool, p->nmatrix + 1);

	for (uint32_t m = 0; m < p->nmatrix; m++) {
		size_t cells = (size_t)p->matrix[m].rows * p->matrix[m].cols, at = 0;

		while (at < cells && p->matrix[m].cost[at] == 0)
			at++;
		idle[m] = at == cells;
	}
	out->edge = edge;
	out->nedge = 0;
	for (uint32_t e = 0; e < p->nedge; e++)
		if (!idle[p->edge[e].matrix])
			edge[out->nedge++] = p->edge[e];
	return out;
}

/* The plan of which the path takes least, within the memory if that binds, then so near the least; from the
 * pool, or (NULL) all, and from what is left of each node's candidates. */
static bool solve(struct ap_ctx *ctx, const struct ap_request *rq, const struct ap_table *table,
	const struct ap_table_legs *legs, const struct ap_table_pool *pool, const bool *const *left,
	const struct ap_path *path, uint64_t work, double within, const struct ap_table **weighted,
	struct ap_choice *c)
{
	const struct ap_engine *exact = ap_engine_of_parts();
	int64_t limit = ap_choose_limit_bytes(rq);
	struct ap_budget budget = {.work = work / ENGINE_STEPS + 1, .table_bytes = rq->budget.table_bytes,
		.no_fold = rq->budget.no_fold, .gap = AP_ANY_OPTIMUM};
	double bound;

	*weighted = ap_table_weighted(ctx, table, legs, &path->weights, pool, left);
	if (!*weighted)
		return false;
	*c = (struct ap_choice){.outcome = AP_OUT_LIMIT};
	exact->solve(ctx, without_idle(ctx, (*weighted)->problem), &budget, c);
	if (!ap_choice_any(c) || ap_fit_need_bytes(ctx, *weighted, c->pick) <= limit)
		return true;
	bound = c->lower_bound;
	*weighted = ap_table_by_memory(ctx, *weighted);
	if (!*weighted)
		return false;
	*c = (struct ap_choice){.outcome = AP_OUT_LIMIT};
	budget.gap = within;
	ap_fit_staged(ctx, *weighted, exact, &budget, limit, true, c);
	c->lower_bound = fmax(c->lower_bound, bound);
	return true;
}

/* The counts of a pick, apart from its table. */
static const int32_t *const *keep(struct ap_arena *arena, const struct ap_table *t, const uint32_t *pick)
{
	const int32_t **counts = AP_NEW_N(arena, const int32_t *, t->graph->nnode);

	for (ap_id i = 0; i < t->graph->nnode; i++)
		counts[i] = ap_arena_memdup(arena, ap_table_counts(t, i, pick[i]),
			t->graph->node[i].bound.nfactor * sizeof **counts);
	return counts;
}

struct bounding {
	struct ap_ctx *ctx; /* without phases; its memory ends with the solves */
	const struct ap_request *rq;
	const struct ap_table *table;
	struct ap_plan_maker *maker;
	struct ap_table_legs legs;
	struct ap_table_pool pool; /* candidates of plans met */
	struct game *game;
	void (*found)(void *user, const int32_t *const *counts);
	void *user;
	double fastest_s;
	double within; /* how near its optimum a solve within the memory has to come */
	uint64_t work;
};

/* The plan of counts joins the game, and competes if that is asked for or it is the fastest. Returns false if
 * no path tells it from one that was there. */
static bool meet(struct bounding *b, const int32_t *const *counts, bool compete)
{
	struct ap_plan *plan = AP_NEW(b->ctx->arena, struct ap_plan);

	ap_plan_sketch_in(b->maker, b->ctx->arena, counts, plan);
	if (compete || plan->prediction.step_time_s < b->fastest_s)
		b->found(b->user, counts);
	b->work += PLAN_STEPS * (uint64_t)plan->graph->nnode;
	b->fastest_s = fmin(b->fastest_s, plan->prediction.step_time_s);
	ap_table_pool_add(&b->pool, b->table, counts);
	return b->game->nplan < MOST_PLANS && add_plan(b->ctx, b->game, plan, NULL);
}

/* The least that the path takes, among the pool's candidates or (NULL) all, and what is left of each node's;
 * INFINITY if there is no such plan. *counts: a plan of which it takes so much, in the memory of ctx;
 * NULL: none was found. */
static double solve_path(struct bounding *b, struct ap_ctx *ctx, const struct ap_table_pool *pool,
	const bool *const *left, const struct ap_path *path, uint64_t most_work,
	const int32_t *const **counts)
{
	struct ap_ctx own = *b->ctx; /* with memory of its own, for the table */
	const struct ap_table *weighted;
	struct ap_choice c = {0};

	own.arena = ap_arena_create_like(ctx->arena);
	*counts = NULL;
	if (solve(&own, b->rq, b->table, &b->legs, pool, left, path, most_work, b->within, &weighted, &c)) {
		b->work += ENGINE_STEPS * c.work + TABLE_STEPS * weighted->work;
		if (ap_choice_any(&c) && !ap_ctx_stopped(&own))
			*counts = keep(ctx->arena, weighted, c.pick);
	}
	ap_arena_destroy(own.arena);
	return c.outcome == AP_OUT_INFEASIBLE ? INFINITY : c.lower_bound;
}

/* The least that the mixture of paths by these shares takes, among the pool's candidates or (NULL) all.
 * *counts: that plan, in the memory of ctx; NULL: none was found. */
static double solve_mixture(struct bounding *b, struct ap_ctx *ctx, const struct ap_table_pool *pool,
	const double *share, uint64_t most_work, const int32_t *const **counts)
{
	const struct ap_path *paths[MOST_PLANS];
	struct ap_ctx own = *b->ctx;
	struct ap_path mixed;
	double length_s;

	for (uint32_t j = 0; j < b->game->npath; j++)
		paths[j] = &b->game->path[j];
	own.arena = ap_arena_create_like(ctx->arena);
	ap_path_mix(&own, paths, share, b->game->npath, b->table->graph, &mixed);
	length_s = solve_path(b, ctx, pool, NULL, &mixed, most_work, counts);
	ap_arena_destroy(own.arena);
	return length_s;
}

/*
 * Improves a mixture, of which the pool's best plan takes most_s, by plans of the pool. Each trial goes half
 * the way to the mixture that the game would have, or all of it where the last one told nothing.
 */
static void mix_in_pool(struct bounding *b, struct ap_ctx *ctx, double *most, double most_s, uint64_t work)
{
	double share[MOST_PLANS];
	bool by_far = !(most_s > 0);

	for (int n = 0; n < MOST_IN_POOL && b->work < work && !ap_ctx_stopped(ctx); n++) {
		const int32_t *const *counts;
		double length_s;
		bool fresh;

		memset(share, 0, sizeof share);
		if (answer(ctx, b->game, share) <= most_s * (1 + NEAR))
			return;
		for (uint32_t j = 0; j < b->game->npath; j++)
			share[j] = by_far ? share[j] : 0.5 * (share[j] + most[j]);
		length_s = solve_mixture(b, ctx, &b->pool, share, work - b->work, &counts);
		if (!counts)
			return;
		if (length_s > most_s)
			memcpy(most, share, sizeof share);
		most_s = fmax(most_s, length_s);
		fresh = meet(b, counts, false);
		if (by_far && !fresh)
			return;
		by_far = !fresh;
	}
}

/* Plans of some of the operators' candidates. */
struct branch {
	const bool *const *left; /* [nnode] of each candidate: is it one of them? NULL: all are */
	const struct ap_path *path;
	const int32_t *const *counts; /* a plan of which the path takes least */
	double bound_s; /* of their steps: the path takes no less of any */
};

struct branches { /* a heap: no bound is less than that of v[(i - 1) / 2] */
	struct branch *v;
	size_t n, cap;
};

static void push_branch(struct ap_arena *arena, struct branches *h, const struct branch *br)
{
	size_t i = h->n;

	AP_PUSH(arena, *h, *br);
	for (; i > 0 && br->bound_s < h->v[(i - 1) / 2].bound_s; i = (i - 1) / 2)
		h->v[i] = h->v[(i - 1) / 2];
	h->v[i] = *br;
}

static struct branch pop_branch(struct branches *h)
{
	struct branch least = h->v[0], last = h->v[--h->n];
	size_t i = 0, next;

	for (; (next = 2 * i + 1) < h->n; i = next) {
		if (next + 1 < h->n && h->v[next + 1].bound_s < h->v[next].bound_s)
			next++;
		if (last.bound_s <= h->v[next].bound_s)
			break;
		h->v[i] = h->v[next];
	}
	h->v[i] = last;
	return least;
}

/* Is a single candidate left of the node's? */
static bool is_fixed(const struct bounding *b, const struct branch *br, ap_id node)
{
	uint32_t n = 0, k = ap_table_candidates(b->table, node);

	for (uint32_t c = 0; c < k && n < 2; c++)
		n += !br->left[node] || br->left[node][c];
	return n < 2;
}

/* The operator whose candidates the branch's path tells apart most, of those that have several; AP_NONE: none
 * has. */
static ap_id find_fork(const struct bounding *b, const struct branch *br)
{
	ap_id fork = AP_NONE;
	double most_s = -1;

	for (ap_id i = 0; i < b->table->graph->nnode; i++) {
		double s;

		if (is_fixed(b, br, i))
			continue;
		s = ap_table_spread_s(b->table, &b->legs, &br->path->weights, i, br->left[i]);
		if (s > most_s) {
			most_s = s;
			fork = i;
		}
	}
	return fork;
}

/* Is the bound as near to the fastest step as is asked for? */
static bool is_near(const struct bounding *b, double bound_s)
{
	return b->fastest_s <= bound_s * (1 + b->rq->step_gap);
}

/* What the bound must come to in its term for another. */
static double lifted_s(const struct bounding *b, double bound_s)
{
	return bound_s + (b->fastest_s - bound_s) / LIFTED_PART;
}

/* Lifts the bound of a branch by the paths of plans in it, first of the one that is known unless it is NULL;
 * that of a single plan to its step. */
static void bound_branch(struct bounding *b, struct branch *br, const int32_t *const *known, uint64_t work)
{
	const struct ap_graph *g = b->table->graph;
	bool single = find_fork(b, br) == AP_NONE;
	double share[MOST_PLANS] = {1};
	const struct ap_path *best = NULL;
	struct ap_ctx own = *b->ctx;
	struct game *game;
	bool *fixed;

	own.arena = ap_arena_create_like(b->ctx->arena);
	fixed = AP_NEW_N(own.arena, bool, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++)
		fixed[i] = is_fixed(b, br, i);
	game = AP_NEW(own.arena, struct game);
	game->path[game->npath++] = *br->path;
	br->counts = known;
	for (int n = 0; n < MOST_IN_BRANCH && b->work < work && !ap_ctx_stopped(&own); n++) {
		struct ap_plan *plan = AP_NEW(own.arena, struct ap_plan);
		const int32_t *const *counts = n == 0 ? known : NULL;

		if (!counts) {
			const struct ap_path *paths[MOST_PLANS];
			struct ap_path *mixed = AP_NEW(own.arena, struct ap_path);
			double length_s;

			for (uint32_t j = 0; j < game->npath; j++)
				paths[j] = &game->path[j];
			ap_path_mix(&own, paths, share, game->npath, g, mixed);
			length_s = solve_path(b, b->ctx, NULL, br->left, mixed, work - b->work, &counts);
			if (!counts) {
				br->bound_s = fmax(br->bound_s, length_s);
				break;
			}
			if (length_s > br->bound_s) {
				br->bound_s = length_s;
				best = mixed;
			}
			if (length_s >= br->bound_s || !br->counts)
				br->counts = counts;
		}
		ap_plan_sketch_in(b->maker, own.arena, counts, plan);
		b->work += PLAN_STEPS * (uint64_t)g->nnode;
		if (plan->prediction.step_time_s < b->fastest_s) {
			b->found(b->user, counts);
			b->fastest_s = plan->prediction.step_time_s;
		}
		if (single)
			br->bound_s = fmax(br->bound_s, plan->prediction.step_time_s);
		if (single || is_near(b, br->bound_s) || !add_plan(&own, game, plan, fixed) ||
			answer(&own, game, share) <= br->bound_s * (1 + SAME))
			break;
	}
	if (best) {
		struct ap_path *kept = AP_NEW(b->ctx->arena, struct ap_path);

		ap_path_mix(b->ctx, &best, (double[]){1}, 1, g, kept);
		kept->weights.first = br->path->weights.first;
		br->path = kept;
	}
	ap_arena_destroy(own.arena);
}

/* The branch with that candidate of a node alone, or all others. */
static struct branch split(struct bounding *b, const struct branch *br, ap_id node, uint32_t candidate,
	bool alone)
{
	uint32_t n = b->table->graph->nnode, k = ap_table_candidates(b->table, node);
	const bool **left = ap_arena_memdup(b->ctx->arena, br->left, n * sizeof *left);
	bool *row = AP_NEW_N(b->ctx->arena, bool, k);
	struct branch out = *br;

	for (uint32_t c = 0; c < k; c++)
		row[c] = (c == candidate) == alone && (!br->left[node] || br->left[node][c]);
	left[node] = row;
	out.left = left;
	return out;
}

/*
 * A mixture of paths weighs what some plans do well against what others do well. Where that is far from any
 * plan's step, plans are told apart: those that share an operator's candidate with the plan of which the
 * mixture takes least, and all others. Each half has a bound of its own; the least counts, and is lifted
 * next, as long as that pays. solve: the work of one.
 */
static void branch_out(struct bounding *b, const struct ap_path *path, const int32_t *const *counts,
	uint64_t solve, uint64_t work, struct ap_step_bound *out)
{
	const struct ap_graph *g = b->table->graph;
	size_t bytes = g->nnode * (sizeof(struct ap_legs) + 4 * sizeof(void *)) +
		path->weights.first[g->nnode] * 2 * sizeof(double);
	struct branch root = {.path = path, .counts = counts, .bound_s = out->bound_s};
	struct branches open = {0};
	uint64_t few = FEW_SOLVES * solve < FEW_STEPS ? FEW_SOLVES * solve : FEW_STEPS;
	uint64_t part = b->work / BRANCH_PART;
	uint64_t term = part > few ? part : few;
	uint64_t due = b->work + term;
	double due_s = lifted_s(b, out->bound_s);

	if (LEAST_SOLVES * solve > term)
		return;
	root.left = AP_NEW_N(b->ctx->arena, const bool *, g->nnode);
	push_branch(b->ctx->arena, &open, &root);
	for (size_t made = 0; open.n && b->work < work && !ap_ctx_stopped(b->ctx); made += 2) {
		struct branch least = pop_branch(&open), with, without;
		ap_id fork = find_fork(b, &least);
		uint32_t c;

		out->bound_s = fmax(out->bound_s, least.bound_s);
		if (fork == AP_NONE || !least.counts || is_near(b, least.bound_s) ||
			made * bytes > BRANCH_BYTES)
			return;
		if (b->work >= due) {
			if (least.bound_s < due_s)
				return;
			due = b->work + term;
			due_s = lifted_s(b, least.bound_s);
		}
		c = ap_table_candidate(b->table, fork, least.counts[fork]);
		with = split(b, &least, fork, c, true);
		bound_branch(b, &with, least.counts, work);
		if (with.bound_s < INFINITY)
			push_branch(b->ctx->arena, &open, &with);
		without = split(b, &least, fork, c, false);
		bound_branch(b, &without, NULL, work);
		if (without.bound_s < INFINITY)
			push_branch(b->ctx->arena, &open, &without);
	}
	if (open.n == 0)
		out->bound_s = b->fastest_s;
}

void ap_bound_step(struct ap_ctx *outer, const struct ap_request *rq, const struct ap_table *table,
	struct ap_plan_maker *maker, const struct ap_plan *best, const int32_t *const *const *known,
	uint32_t nknown, double known_s, uint64_t work, uint64_t first,
	void (*found)(void *user, const int32_t *const *counts), void *user,
	struct ap_step_bound *out)
{
	double share[MOST_PLANS] = {0}, most[MOST_PLANS] = {1};
	struct ap_ctx one_phase = *outer, *ctx = &one_phase;
	struct ap_ctx with_legs = one_phase; /* whose memory ends with the solves */
	struct bounding b = {.ctx = &with_legs, .rq = rq, .table = table, .maker = maker,
		.game = AP_NEW(outer->arena, struct game), .found = found, .user = user,
		.fastest_s = best->prediction.step_time_s, .within = AP_ANY_OPTIMUM};
	uint64_t plan_steps = PLAN_STEPS * (uint64_t)table->graph->nnode;
	uint64_t whole; /* about what a solve among all candidates takes */
	bool by_far = true; /* all the way to the mixture that may be best, instead of half of it */
	const int32_t *const *met = NULL; /* of which the best mixture takes least */

	if (known_s > 0)
		b.within = fmax(b.within, (b.fastest_s / known_s - 1) / WITHIN);
	*out = (struct ap_step_bound){0};
	ap_ctx_phase(outer, "bounding the step");
	one_phase.phase = with_legs.phase = NULL;
	one_phase.progress = with_legs.progress = NULL;
	with_legs.arena = ap_arena_create_like(outer->arena);
	ap_table_pool_init(&with_legs, table, &b.pool);
	add_plan(&with_legs, b.game, best, NULL);
	ap_table_pool_add(&b.pool, table, ap_plan_counts(&with_legs, best));
	for (uint32_t i = 0; i < nknown; i++) {
		struct ap_plan *p = AP_NEW(with_legs.arena, struct ap_plan);

		ap_plan_sketch_in(maker, with_legs.arena, known[i], p);
		add_plan(&with_legs, b.game, p, NULL);
		ap_table_pool_add(&b.pool, table, known[i]);
	}
	ap_table_legs_make(&with_legs, table, &b.legs);
	b.work = b.legs.work;
	whole = TABLE_STEPS * b.legs.work;
	for (int n = 0; n < MOST_SOLVES && b.work < work && !ap_ctx_stopped(ctx); n++) {
		bool pooled = whole / POOL_PART > plan_steps, fresh;
		uint64_t left = work - b.work;
		const int32_t *const *counts;
		double bound_s;
		uint64_t before;

		if (pooled) {
			memcpy(share, most, sizeof share);
			mix_in_pool(&b, ctx, share, out->bound_s,
				b.work + (whole < left / 2 ? whole : left / 2));
			if (n > 0 && memcmp(share, most, sizeof share) == 0)
				break; /* the best mixture of the pool, proven for all */
		} else {
			if (answer(ctx, b.game, share) <= out->bound_s * (1 + SAME))
				break; /* no mixture of known paths is a better bound */
			for (uint32_t j = 0; j < b.game->npath; j++)
				share[j] = by_far ? share[j] : 0.5 * (share[j] + most[j]);
		}
		if (b.work >= work || (n > 0 && work - b.work < whole / 4))
			break;
		before = b.work;
		bound_s = solve_mixture(&b, ctx, NULL, share, (n ? 1 : first) * (work - b.work), &counts);
		whole = b.work - before;
		if (bound_s > out->bound_s) {
			memcpy(most, share, sizeof most);
			met = counts;
		}
		out->bound_s = fmax(out->bound_s, bound_s);
		if (!counts)
			break;
		fresh = meet(&b, counts, true);
		if (is_near(&b, out->bound_s))
			break;
		if (by_far && !fresh && !pooled)
			break; /* the next mixture would be the same */
		by_far = !fresh;
	}
	if (b.work < work && !is_near(&b, out->bound_s)) {
		const struct ap_path *paths[MOST_PLANS];
		struct ap_path mixed;

		for (uint32_t j = 0; j < b.game->npath; j++)
			paths[j] = &b.game->path[j];
		ap_path_mix(&with_legs, paths, most, b.game->npath, table->graph, &mixed);
		if (met)
			branch_out(&b, &mixed, met, whole, work, out);
	}
	ap_arena_destroy(with_legs.arena);
	out->work = b.work;
	out->bound_s = fmin(out->bound_s, b.fastest_s); /* rounding errors of the simulation's sums */
}
