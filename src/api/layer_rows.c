/* SPDX-License-Identifier: Apache-2.0 */
#include "api/layer_rows.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/points.h"
#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/par.h"
#include "base/vec.h"
#include "cost/comms.h"
#include "pipeline/schedule.h"
#include "plan/block_costs.h"
#include "plan/blocks.h"
#include "plan/make.h"
#include "plan/terms.h"

enum { WHY_BYTES = 200 };
enum { CHUNKS = 4 }; /* of entries, for each job, at least */

struct stages { /* of a pipeline */
	uint32_t n;
	const struct ap_machine *all, *one; /* the machine in stages, and one of them by itself */
};

struct entry {
	struct ap_decision_point one; /* with the same degrees, in one stage; recompute: the kind */
	uint32_t degrees; /* equal where operators are cut alike */
	const struct stages *among; /* of the points */
	const struct ap_scheduler *splitting; /* that splits backward passes; NULL: none does */
	struct ap_partition_row *row; /* of made, as are: */
	struct ap_partition_border *behind;
	struct ap_layer_rows made;
	char why[WHY_BYTES];
};

struct ap_layer_table {
	struct ap_ctx ctx; /* its arenas; what is told may end before the table */
	const struct ap_settings *set;
	const struct ap_sources *src;
	const struct ap_layer_fold *fold;
	const struct ap_decision_space *space;
	struct ap_map *words; /* kinds */
	struct ap_map *seen; /* ids are entries */
	struct ap_map *degrees;
	AP_VEC(struct entry *) entries;
	size_t nmade; /* of them */
	struct ap_map *stage_numbers; /* ids are stages */
	AP_VEC(const struct stages *) stages;
	struct ap_map *schedules; /* ids are pipes */
	AP_VEC(const struct ap_pipe *) pipes;
};

struct ap_layer_table *ap_layer_table_create(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_layer_fold *fold,
	const struct ap_decision_space *space)
{
	struct ap_layer_table *t = AP_NEW(ctx->arena, struct ap_layer_table);

	*t = (struct ap_layer_table){.ctx = *ctx, .set = set, .src = src, .fold = fold, .space = space,
		.words = ap_map_create(ctx->arena), .seen = ap_map_create(ctx->arena),
		.degrees = ap_map_create(ctx->arena), .stage_numbers = ap_map_create(ctx->arena),
		.schedules = ap_map_create(ctx->arena)};
	return t;
}

const struct ap_layer_fold *ap_layer_table_fold(const struct ap_layer_table *t)
{
	return t->fold;
}

/* The point in one stage, with all that rows depend on. */
static struct ap_decision_point in_one_stage(const struct ap_layer_table *t,
	const struct ap_decision_point *p, int kind)
{
	struct ap_decision_point one = {.pp = 1, .vpp = 1, .micro_batches = p->micro_batches, .dp = p->dp,
		.tp = p->tp, .cp = p->cp, .ep = p->ep, .etp = p->etp, .sp = p->sp, .mbs = p->mbs,
		.level = p->level, .shard = p->shard, .regathers = p->regathers,
		.recompute = ap_decision_kinds(t->space, p)[kind]};

	while (ap_scheduler_at((size_t)one.scheduler) != ap_scheduler_find("1f1b"))
		one.scheduler++;
	return one;
}

static const struct ap_scheduler *scheduler_of(const struct ap_decision_point *p)
{
	return ap_scheduler_at((size_t)p->scheduler);
}

enum { KEY = 14 };

static void make_key(const struct ap_layer_table *t, const struct ap_decision_point *p, int kind,
	int64_t key[KEY])
{
	const char *word = ap_decision_kinds(t->space, p)[kind];
	const int64_t all[KEY] = {p->pp, p->micro_batches, p->dp, p->tp, p->cp, p->ep, p->etp, p->sp, p->mbs,
		p->level, p->shard, scheduler_of(p)->splits, p->regathers, ap_map_get_str(t->words, word)};

	memcpy(key, all, sizeof all);
}

/* Equal for points whose operators are cut alike: neither what is recomputed nor how parameters are dealt
 * matters. */
static uint32_t degrees_of(struct ap_layer_table *t, const struct ap_decision_point *p)
{
	const int64_t key[] = {p->pp, p->micro_batches, p->dp, p->tp, p->cp, p->ep, p->etp, p->sp, p->mbs};

	return ap_map_put(t->degrees, key, sizeof key, NULL);
}

static const struct stages *stages_of(struct ap_layer_table *t, int64_t n)
{
	bool fresh;
	ap_id id = ap_map_put(t->stage_numbers, &n, sizeof n, &fresh);

	if (fresh) {
		struct stages *s = AP_NEW(t->ctx.arena, struct stages);

		s->n = (uint32_t)n;
		ap_machine_staged(&t->ctx, t->src->machine, s->n, &s->all);
		ap_machine_stage(&t->ctx, t->src->machine, s->n, &s->one);
		AP_PUSH(t->ctx.arena, t->stages, s);
	}
	return t->stages.v[id];
}

enum { SCHEDULE_KEY = 4 };

static void make_schedule_key(const struct ap_decision_point *p, int64_t key[SCHEDULE_KEY])
{
	const int64_t all[SCHEDULE_KEY] = {p->scheduler, p->pp, p->vpp, p->micro_batches};

	memcpy(key, all, sizeof all);
}

static void want_schedule(struct ap_layer_table *t, const struct ap_decision_point *p)
{
	int64_t key[SCHEDULE_KEY];
	struct ap_pipe *pipe;
	bool fresh;

	make_schedule_key(p, key);
	(void)ap_map_put(t->schedules, key, sizeof key, &fresh);
	if (!fresh)
		return;
	pipe = AP_NEW(t->ctx.arena, struct ap_pipe);
	ap_schedule_pipe(&t->ctx, scheduler_of(p), (int32_t)p->pp, (int32_t)p->vpp, p->micro_batches, pipe);
	AP_PUSH(t->ctx.arena, t->pipes, pipe);
}

const struct ap_pipe *ap_layer_table_pipe(const struct ap_layer_table *t,
	const struct ap_decision_point *point)
{
	int64_t key[SCHEDULE_KEY];
	uint32_t id;

	make_schedule_key(point, key);
	id = ap_map_get(t->schedules, key, sizeof key);
	assert(id < t->pipes.n);
	return t->pipes.v[id];
}

void ap_layer_table_want(struct ap_layer_table *t, const struct ap_decision_point *point)
{
	want_schedule(t, point);
	ap_layer_table_want_rows(t, point);
}

void ap_layer_table_want_rows(struct ap_layer_table *t, const struct ap_decision_point *point)
{
	const char *const *kind = ap_decision_kinds(t->space, point);

	for (int k = 0; k < AP_MIX_KINDS && kind[k]; k++) {
		int64_t key[KEY];
		bool fresh;

		(void)ap_map_put_str(t->words, kind[k], NULL);
		make_key(t, point, k, key);
		(void)ap_map_put(t->seen, key, sizeof key, &fresh);
		if (fresh) {
			struct entry *e = AP_NEW(t->ctx.arena, struct entry);

			e->among = stages_of(t, point->pp);
			e->one = in_one_stage(t, point, k);
			e->degrees = degrees_of(t, point);
			e->splitting = scheduler_of(point)->splits ? scheduler_of(point) : NULL;
			e->row = AP_NEW_N(t->ctx.arena, struct ap_partition_row,
				t->fold->nkept + AP_LAYERS_ENDS);
			e->behind = AP_NEW_N(t->ctx.arena, struct ap_partition_border, t->fold->nkept + 1);
			AP_PUSH(t->ctx.arena, t->entries, e);
		}
	}
}

const struct ap_layer_rows *ap_layer_table_find(const struct ap_layer_table *t,
	const struct ap_decision_point *point, int kind)
{
	int64_t key[KEY];
	uint32_t id;

	make_key(t, point, kind, key);
	id = ap_map_get(t->seen, key, sizeof key);
	assert(id < t->nmade);
	return &t->entries.v[id]->made;
}

/* Adds a block to a row. */
static void add_block(const struct ap_step *step, const struct ap_block_cost *c, struct ap_partition_row *r)
{
	int64_t temporary = c->again_bytes + c->temporary_bytes;

	r->forward_s += c->forward_s;
	r->backward_s += fmin(c->backward_s, c->last_s - c->weight_s);
	r->weight_s += c->weight_s;
	r->slowed_s += fmax(0, c->last_s - (c->backward_s + c->weight_s));
	r->exchange_s += step->exchange_behind ? 0 : c->least_exchange_s;
	r->update_s += c->update_s + c->least_gather_s + (step->exchange_behind ? c->least_exchange_s : 0);
	r->kept_bytes += c->kept_bytes;
	r->late_bytes += c->late_bytes;
	r->weights_bytes += c->static_bytes + c->once_bytes;
	if (temporary > r->temporary_bytes)
		r->temporary_bytes = temporary;
}

/* Bytes of a micro-batch that each block's operators pass on to others; the most of a layer's. */
static int64_t passed_on(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_graph *g = p->graph;
	int64_t *bytes = AP_NEW_N(ctx->scratch, int64_t, p->blocks->n), most = 0;
	bool *met = AP_NEW_N(ctx->scratch, bool, g->ntensor);

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++) {
			ap_id t = g->node[i].in[k], from = g->tensor[t].producer;
			const struct ap_node *n = &g->node[from == AP_NONE ? 0 : from];

			if (from == AP_NONE || met[t] || p->blocks->of[from] == p->blocks->of[i])
				continue;
			met[t] = true;
			for (uint16_t o = 0; o < n->bound.nout; o++)
				if (n->out[o] == t)
					bytes[p->blocks->of[from]] += ap_local_bytes(&n->bound.out[o],
						p->task[from].out[o].batch, &p->op[from].place, p->step);
		}
	for (uint32_t b = 0; b < p->blocks->n; b++)
		if (p->blocks->layer[b] >= 0 && bytes[b] > most)
			most = bytes[b];
	return most;
}

/* Of the pass in which gradients are reduced. */
static double reducing_s(const struct ap_block_cost *c, bool splits)
{
	return splits ? c->weight_s : c->backward_s;
}

/*
 * Where dealt gradients are reduced with every micro-batch, but for the last one, the other passes take
 * more than that one: as long as their blocks, or as their collectives, one after the other. Of these what
 * is more in all is taken. What is behind the layers comes first in a pass: collectives begin after it at the
 * earliest. What is in front of them comes last, and a pass waits for its reductions.
 */
static void lay_beside(const struct ap_block_cost *cost, const uint32_t *row_of, uint32_t nblock, bool splits,
	const double *summed_s, struct ap_partition_row *row, uint32_t nlayer, double *left_s)
{
	struct ap_partition_row *last = &row[nlayer + AP_LAYERS_LAST];
	double blocks_s = 0, collectives_s = 0, least_s = INFINITY;
	bool reduces = false;

	*left_s = 0;
	for (uint32_t b = 0; b < nblock; b++) {
		reduces = reduces || cost[b].left_s > 0 ||
			cost[b].last_s < cost[b].backward_s + cost[b].weight_s;
		blocks_s += reducing_s(&cost[b], splits);
		collectives_s += cost[b].collectives_s;
		least_s = row_of[b] < nlayer ? fmin(least_s, cost[b].least_left_s) : least_s;
	}
	for (uint32_t b = 0; b < nblock && reduces; b++)
		row[row_of[b]].beside_s += collectives_s > blocks_s ? cost[b].collectives_s
			: reducing_s(&cost[b], splits);
	if (reduces && collectives_s <= blocks_s) {
		for (uint32_t i = 0; i < nlayer + AP_LAYERS_ENDS; i++)
			row[i].beside_s -= summed_s[i];
		row[row_of[0]].beside_s += row_of[0] == nlayer + AP_LAYERS_FIRST ? cost[0].least_left_s : 0;
		*left_s = least_s < INFINITY ? least_s : 0;
	}
	if (reduces)
		last->beside_s = fmax(last->beside_s, splits ? last->weight_s : last->backward_s);
}

/* The step of one stage with passes for weights of their own: all layers lie in its first segment. */
static void split_passes(struct ap_ctx *ctx, const struct ap_scheduler *splitting, struct ap_step *step)
{
	struct ap_pipe *pipe = AP_NEW(ctx->arena, struct ap_pipe);

	ap_schedule_pipe(ctx, splitting, 1, splitting->least_segments, step->micro_batches, pipe);
	step->pipe = pipe;
}

/*
 * Parts that use a parameter of another stage receive it, and add nothing up: of each row, the seconds of
 * a micro-batch by which its backward pass may be shorter. Of the first row that uses a parameter there are
 * none.
 */
static double *find_summed(struct ap_ctx *ctx, const struct ap_plan *p, const uint32_t *row_of,
	uint32_t nlayer)
{
	double *summed_s = AP_NEW_N(ctx->scratch, double, nlayer + AP_LAYERS_ENDS);

	for (ap_id i = 0; i < p->graph->ntensor; i++) {
		const struct ap_tensor *t = &p->graph->tensor[i];
		uint32_t first = nlayer + AP_LAYERS_LAST;

		for (uint32_t u = 0; t->kind == AP_TENSOR_PARAM && u < t->nuse; u++) {
			uint32_t row = row_of[p->blocks->of[t->use[u].node]];

			if (first != nlayer + AP_LAYERS_FIRST &&
				(row < first || row == nlayer + AP_LAYERS_FIRST))
				first = row;
		}
		for (uint32_t u = 0; t->kind == AP_TENSOR_PARAM && u < t->nuse; u++) {
			uint32_t row = row_of[p->blocks->of[t->use[u].node]];

			summed_s[row] += row == first ? 0 : ap_plan_sum_s(p, &t->use[u]);
		}
	}
	return summed_s;
}

/* A kernel that is slowed by an exchange beside it takes more, and so is what it loses. With passes for
 * weights of their own, either pass may be the one that loses it. */
static void leave_summed(const struct ap_step *step, const double *summed_s, bool splits,
	struct ap_partition_row *row, uint32_t nrow)
{
	double slowdown = step->software ? step->software->overlap_slowdown : 1;

	for (uint32_t i = 0; i < nrow; i++) {
		double slowed = (slowdown - 1) * summed_s[i];

		row[i].backward_s -= summed_s[i] + fmax(0, slowed - row[i].slowed_s);
		row[i].slowed_s = fmax(0, row[i].slowed_s - slowed);
		if (splits)
			row[i].weight_s = fmax(0, row[i].weight_s - summed_s[i]);
	}
}

struct cut { /* of operators */
	const struct ap_graph *graph; /* NULL: not made yet */
	const int32_t *const *counts;
};

/* The inputs of an entry. cut: that of others whose operators are cut alike, if there is one. */
static enum ap_status make_inputs(struct ap_ctx *ctx, const struct ap_layer_table *t, struct entry *e,
	const struct cut *cut, struct ap_inputs *in)
{
	struct ap_sources src = *t->src;
	struct ap_settings o;

	src.apart = e->among->n;
	src.stage = e->among->one;
	ap_points_settings(ctx, t->set, t->space, &e->one, &o);
	ap_settings_check(ctx, &o, AP_FOR_evaluate);
	AP_TRY(ap_diag_status(ctx->diag));
	AP_TRY(ap_inputs_make(ctx, &o, &src, AP_FOR_evaluate, in));
	if (cut->graph) {
		in->graph = in->request.graph = cut->graph;
		in->counts = cut->counts;
		return AP_OK;
	}
	e->made.by_degrees = true;
	AP_TRY(ap_inputs_give(ctx, &o, &src, AP_FOR_evaluate, in));
	e->made.by_degrees = false;
	return AP_OK;
}

/* Makes the rows of an entry from its inputs. AP_LIMIT without a report if layers are no blocks of their
 * own. */
static enum ap_status make(struct ap_ctx *ctx, const struct ap_layer_table *t, struct ap_inputs *in,
	struct entry *e)
{
	int32_t next = 0, nlayer = (int32_t)t->fold->nkept;
	const struct ap_block_cost *cost;
	struct ap_plan plan;
	uint32_t nrow = t->fold->nkept + AP_LAYERS_ENDS;
	double *summed_s;
	uint32_t *row_of;

	if (e->splitting)
		split_passes(ctx, e->splitting, &in->step);
	ap_plan_price(ap_plan_maker_create(ctx, in->request.graph, in->machine, &in->step, AP_NO_LIMIT),
		in->counts, &plan);
	if (plan.blocks->nlayer != t->fold->nkept)
		return AP_LIMIT;
	cost = ap_block_costs_make(ctx, &plan);
	row_of = AP_NEW_N(ctx->scratch, uint32_t, plan.blocks->n);
	for (uint32_t b = 0; b < plan.blocks->n; b++) {
		int32_t layer = cost[b].layer;

		if (layer >= 0 && (layer != next || cost[b].nlayer != 1))
			return AP_LIMIT;
		next += layer >= 0;
		/* What lies between layers is with the next one. */
		layer = layer >= 0 ? layer : next == 0 ? nlayer + AP_LAYERS_FIRST
			: next == nlayer ? nlayer + AP_LAYERS_LAST : next;
		row_of[b] = (uint32_t)layer;
		add_block(&in->step, &cost[b], &e->row[layer]);
	}
	summed_s = find_summed(ctx, &plan, row_of, t->fold->nkept);
	for (uint32_t i = 0; i < nrow && e->among->n == 1; i++) {
		e->made.summed_s += summed_s[i];
		summed_s[i] = 0;
	}
	leave_summed(&in->step, summed_s, e->splitting != NULL, e->row, nrow);
	lay_beside(cost, row_of, plan.blocks->n, e->splitting != NULL, summed_s, e->row, t->fold->nkept,
		&e->made.left_s);
	e->made.row = e->row;
	e->made.passed_bytes = passed_on(ctx, &plan);
	e->made.context_bytes = plan.prediction.memory.context + plan.prediction.memory.buffers;
	ap_layer_border_make(ctx, &plan, row_of, t->fold->nkept, e->among->all,
		in->hybrid.sp || in->hybrid.ep > 1 || in->hybrid.pp_scatter, e->behind, &e->made.border);
	return next == nlayer ? AP_OK : AP_LIMIT;
}

struct chunk { /* of entries whose operators are cut alike */
	uint32_t first, n;
};

struct filling {
	struct ap_layer_table *t;
	struct ap_workers *workers;
	struct entry **order; /* of what is filled, by degrees */
	const struct chunk *chunk;
};

/* Takes what was made of an entry, or why it was not. */
static void take_made(struct ap_ctx *ctx, enum ap_status st, struct entry *e)
{
	const char *why;

	if (st == AP_OK)
		return;
	why = ap_diag_first_error(ctx->diag);
	snprintf(e->why, sizeof e->why, "%s", why ? why : "");
	e->made = (struct ap_layer_rows){.why = why ? e->why : NULL, .by_degrees = e->made.by_degrees};
}

static void make_chunk(void *user, size_t i, int worker)
{
	struct filling *f = user;
	const struct chunk *c = &f->chunk[i];
	struct ap_ctx ctx = ap_worker_begin(&f->workers->worker[worker]);
	struct cut cut = {NULL, NULL};

	for (uint32_t k = 0; k < c->n; k++) {
		struct entry *e = f->order[c->first + k];
		struct ap_mark mark = ap_arena_mark(ctx.arena), scratch = ap_arena_mark(ctx.scratch);
		struct ap_inputs in;
		enum ap_status st;

		ctx.diag = ap_diag_create(ctx.arena, false);
		st = make_inputs(&ctx, f->t, e, &cut, &in);
		if (st == AP_OK && !cut.graph) {
			cut = (struct cut){in.graph, in.counts};
			mark = ap_arena_mark(ctx.arena);
		}
		take_made(&ctx, st == AP_OK ? make(&ctx, f->t, &in, e) : st, e);
		ap_arena_release(ctx.scratch, scratch);
		ap_arena_release(ctx.arena, mark);
	}
	ap_worker_end(&f->workers->worker[worker]);
}

struct place { /* of an entry */
	uint32_t degrees, at;
};

static int by_degrees(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->degrees != y->degrees)
		return x->degrees < y->degrees ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

void ap_layer_table_fill(struct ap_layer_table *t, struct ap_workers *workers)
{
	struct ap_mark mark = ap_arena_mark(t->ctx.scratch);
	uint32_t n = (uint32_t)(t->entries.n - t->nmade), nchunk = 0;
	uint32_t most = 1 + n / (CHUNKS * (uint32_t)workers->n);
	struct chunk *chunk = AP_NEW_N(t->ctx.scratch, struct chunk, n);
	struct place *place = AP_NEW_N(t->ctx.scratch, struct place, n);
	struct filling f = {t, workers, AP_NEW_N(t->ctx.scratch, struct entry *, n), chunk};

	for (uint32_t i = 0; i < n; i++)
		place[i] = (struct place){t->entries.v[t->nmade + i]->degrees, i};
	if (n > 1)
		qsort(place, n, sizeof *place, by_degrees);
	for (uint32_t i = 0; i < n; i++) {
		f.order[i] = t->entries.v[t->nmade + place[i].at];
		if (nchunk == 0 || chunk[nchunk - 1].n == most || place[i].degrees != place[i - 1].degrees)
			chunk[nchunk++].first = i;
		chunk[nchunk - 1].n++;
	}
	ap_par_for(t->ctx.arena, workers->n, nchunk, make_chunk, &f);
	t->nmade = t->entries.n;
	ap_arena_release(t->ctx.scratch, mark);
}
