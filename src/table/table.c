/* SPDX-License-Identifier: Apache-2.0 */
#include "table/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "cost/move.h"
#include "cost/task.h"
#include "table/table_parts.h"

#define WORTH_THREADS 30000 /* prices: some milliseconds, a thread takes a tenth of one to start */

static void fill_class(const struct ap_making *mk, const struct ap_class *c,
	struct ap_table_class *out)
{
	const struct ap_kind *kd = &mk->kinds.v[c->kind];
	uint8_t nf = kd->space.nfactor;
	int32_t *count = AP_NEW_N(mk->ctx->arena, int32_t, (size_t)c->k * nf);
	double *cost = AP_NEW_N(mk->ctx->arena, double, c->k);
	int64_t *memory = AP_NEW_N(mk->ctx->arena, int64_t, c->k);
	int64_t *temporary = AP_NEW_N(mk->ctx->arena, int64_t, c->k);
	double *hidden = AP_NEW_N(mk->ctx->arena, double, c->k);

	for (uint32_t i = 0; i < c->k; i++) {
		uint32_t j = c->candidate[i];

		memcpy(count + (size_t)i * nf, kd->space.count + (size_t)j * nf, nf * sizeof *count);
		cost[i] = kd->cost[j];
		memory[i] = kd->memory[j];
		temporary[i] = kd->temporary[j];
		hidden[i] = kd->hidden[j];
	}
	*out = (struct ap_table_class){.k = c->k, .before = kd->k, .nfactor = nf, .count = count,
		.cost = cost, .hidden = hidden, .memory = memory, .temporary = temporary};
}

static void fill_matrix(const struct ap_making *mk, const struct ap_tie *l, struct ap_pmatrix *out)
{
	const struct ap_bond *b = &mk->bonds.v[l->bond];
	const struct ap_class *cu = &mk->classes.v[mk->class_of[l->u]];
	const struct ap_class *cv = &mk->classes.v[mk->class_of[l->v]];
	size_t cells = (size_t)cu->k * cv->k, at = 0;
	double *cost = ap_arena_alloc_raw(mk->ctx->arena, cells, sizeof *cost);
	int64_t *memory = b->kept ? ap_arena_alloc_raw(mk->ctx->arena, cells, sizeof *memory) : NULL;

	for (uint32_t r = 0; r < cu->k; r++) {
		size_t row = (size_t)b->u.of[cu->candidate[r]] * b->v.nlayout;

		for (uint32_t c = 0; c < cv->k; c++, at++) {
			size_t from = row + b->v.of[cv->candidate[c]];

			cost[at] = b->cost[from];
			if (memory)
				memory[at] = b->kept[from];
		}
	}
	*out = (struct ap_pmatrix){.rows = cu->k, .cols = cv->k, .cost = cost, .memory = memory};
}

/* Classes with equal candidates left have equal numbers. [classes], in scratch. */
static const uint32_t *number_lists(const struct ap_making *mk)
{
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	uint32_t *list = AP_NEW_N(mk->ctx->scratch, uint32_t, mk->classes.n);

	for (size_t i = 0; i < mk->classes.n; i++) {
		const struct ap_class *c = &mk->classes.v[i];
		uint32_t *key = ap_arena_alloc_raw(mk->ctx->scratch, (size_t)c->k + 1, sizeof *key);
		bool fresh;

		key[0] = c->kind;
		if (c->k > 0)
			memcpy(key + 1, c->candidate, c->k * sizeof *key);
		list[i] = ap_map_put(seen, key, ((size_t)c->k + 1) * sizeof *key, &fresh);
	}
	return list;
}

/* Ends early when told to stop. */
static void fill_edges(const struct ap_making *mk, struct ap_problem *p)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	const uint32_t *list = number_lists(mk);
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	struct ap_pedge *edge = AP_NEW_N(mk->ctx->arena, struct ap_pedge, mk->links.n);
	AP_VEC(struct ap_pmatrix) matrices = {0};

	for (size_t i = 0; i < mk->links.n && !ap_ctx_stopped(mk->ctx); i++) {
		const struct ap_tie *l = &mk->links.v[i];
		uint32_t key[] = {l->bond, list[mk->class_of[l->u]], list[mk->class_of[l->v]]};
		bool fresh;

		edge[i] = (struct ap_pedge){l->u, l->v, ap_map_put(seen, key, sizeof key, &fresh)};
		if (fresh) {
			struct ap_pmatrix m;

			fill_matrix(mk, l, &m);
			AP_PUSH(mk->ctx->arena, matrices, m);
		}
	}
	p->nedge = (uint32_t)mk->links.n;
	p->edge = edge;
	p->nmatrix = (uint32_t)matrices.n;
	p->matrix = matrices.v;
	ap_arena_release(mk->ctx->scratch, mark);
}

static const struct ap_problem *make_problem(const struct ap_making *mk,
	const struct ap_table_class *cls)
{
	struct ap_problem *p = AP_NEW(mk->ctx->arena, struct ap_problem);
	struct ap_pnode *node = AP_NEW_N(mk->ctx->arena, struct ap_pnode, mk->g->nnode);

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		const struct ap_table_class *c = &cls[mk->class_of[i]];

		node[i] = (struct ap_pnode){.name = mk->g->node[i].name, .k = c->k, .cost = c->cost,
			.memory = c->memory, .nway = c->nway, .next = c->next,
			.fixed = mk->params->fixed && mk->params->fixed[i]};
	}
	p->n = mk->g->nnode;
	p->node = node;
	p->memory_limit = AP_NO_LIMIT;
	p->quantum = mk->step->quantum_s;
	fill_edges(mk, p);
	return p;
}

/* What the candidates of operators cost and need at least, whatever is redistributed between them. */
static double least_s(const struct ap_making *mk)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	double *least = AP_NEW_N(mk->ctx->scratch, double, mk->kinds.n), sum = 0;

	for (size_t i = 0; i < mk->kinds.n; i++) {
		const struct ap_kind *kd = &mk->kinds.v[i];

		least[i] = INFINITY;
		for (uint32_t c = 0; c < kd->k; c++)
			least[i] = kd->cost[c] < least[i] ? kd->cost[c] : least[i];
	}
	for (ap_id i = 0; i < mk->g->nnode; i++)
		sum += least[mk->kind_of[i]];
	ap_arena_release(mk->ctx->scratch, mark);
	return sum;
}

/* A candidate that keeps less than those of smaller temporaries. */
struct step {
	uint32_t kind;
	int64_t temporary, memory;
};

struct steps {
	struct step *v; /* by temporary */
	size_t n;
};

static int by_temporary(const void *a, const void *b)
{
	const struct step *x = a, *y = b;

	if (x->temporary != y->temporary)
		return x->temporary < y->temporary ? -1 : 1;
	if (x->memory != y->memory)
		return x->memory < y->memory ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Drops from v[from..] what keeps no less than one before it. */
static void keep_falling(struct steps *s, size_t from)
{
	size_t n = from;

	qsort(s->v + from, s->n - from, sizeof *s->v, by_temporary);
	for (size_t i = from; i < s->n; i++)
		if (n == from || s->v[i].memory < s->v[n - 1].memory)
			s->v[n++] = s->v[i];
	s->n = n;
}

static struct steps steps_of(const struct ap_making *mk)
{
	struct steps s = {0};
	size_t candidates = 0;

	for (size_t i = 0; i < mk->kinds.n; i++)
		candidates += mk->kinds.v[i].k;
	s.v = ap_arena_alloc_raw(mk->ctx->scratch, candidates, sizeof *s.v);
	for (uint32_t i = 0; i < mk->kinds.n; i++) {
		const struct ap_kind *kd = &mk->kinds.v[i];
		size_t from = s.n;

		for (uint32_t c = 0; c < kd->k; c++)
			if (isfinite(kd->cost[c]))
				s.v[s.n++] = (struct step){i, kd->temporary[c], kd->memory[c]};
		keep_falling(&s, from);
	}
	qsort(s.v, s.n, sizeof *s.v, by_temporary);
	return s;
}

/* The least over all sizes of the largest temporary: what operators keep at least with candidates of
 * temporaries up to that size, and the size. nodes: of each kind on the stage. */
static int64_t least_of_stage(const struct ap_making *mk, const struct steps *s, const uint32_t *nodes)
{
	int64_t *kept = ap_arena_alloc_raw(mk->ctx->scratch, mk->kinds.n, sizeof *kept);
	int64_t sum = 0, least = -1;
	uint32_t missing = 0; /* kinds without a candidate yet */

	for (size_t i = 0; i < mk->kinds.n; i++) {
		kept[i] = -1;
		missing += nodes[i] > 0;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct step *x = &s->v[i];
		int64_t before = kept[x->kind];

		if (nodes[x->kind] == 0)
			continue;
		missing -= before < 0;
		sum += (x->memory - (before < 0 ? 0 : before)) * nodes[x->kind];
		kept[x->kind] = x->memory;
		if (missing == 0 && (least < 0 || sum + x->temporary < least))
			least = sum + x->temporary;
	}
	return least;
}

static int64_t least_bytes(const struct ap_making *mk, int32_t *stage)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	uint32_t nstage = mk->m->nstage;
	uint32_t *nodes = AP_NEW_N(mk->ctx->scratch, uint32_t, nstage * mk->kinds.n);
	struct steps s = steps_of(mk);
	int64_t most = -1;

	for (ap_id i = 0; i < mk->g->nnode; i++)
		nodes[(nstage > 1 ? (size_t)mk->g->node[i].stage : 0) * mk->kinds.n + mk->kind_of[i]]++;
	for (uint32_t i = 0; i < nstage; i++) {
		int64_t least = least_of_stage(mk, &s, nodes + i * mk->kinds.n);

		if (i > 0 && least <= most)
			continue;
		most = least;
		*stage = (int32_t)i;
	}
	ap_arena_release(mk->ctx->scratch, mark);
	return most;
}

static void make_table(struct ap_making *mk, struct ap_table *t)
{
	struct ap_table_class *cls = AP_NEW_N(mk->ctx->arena, struct ap_table_class, mk->classes.n);

	for (size_t i = 0; i < mk->classes.n; i++) {
		fill_class(mk, &mk->classes.v[i], &cls[i]);
		ap_table_next(mk, &cls[i]);
	}
	*t = (struct ap_table){.graph = mk->g, .machine = mk->m, .step = mk->step,
		.task = mk->task, .class_of = mk->class_of, .nclass = (uint32_t)mk->classes.n,
		.cls = cls, .problem = make_problem(mk, cls), .least_s = least_s(mk),
		.work = mk->work, .making = mk};
	t->least_bytes = least_bytes(mk, &t->least_stage);
}

static void open_workers(struct ap_making *mk)
{
	mk->worker = AP_NEW_N(mk->ctx->arena, struct ap_worker, mk->ctx->jobs);
	for (int w = 0; w < mk->ctx->jobs; w++) {
		mk->worker[w].arena = ap_arena_create_like(mk->ctx->arena);
	}
}

struct ap_pricer *ap_worker_pricer(const struct ap_making *mk, int worker)
{
	struct ap_worker *w = &mk->worker[worker];

	if (!w->pricer)
		w->pricer = ap_pricer_create(w->arena, mk->m, mk->step);
	return w->pricer;
}

int ap_making_jobs(const struct ap_making *mk, size_t work)
{
	return work < WORTH_THREADS ? 1 : mk->ctx->jobs;
}

static void close_workers(struct ap_making *mk)
{
	for (int w = 0; w < mk->ctx->jobs; w++)
		ap_arena_destroy(mk->worker[w].arena);
}

/* NULL when told to stop. */
static const struct ap_table *finish(struct ap_making *mk)
{
	struct ap_table *t = AP_NEW(mk->ctx->arena, struct ap_table);

	ap_ctx_phase(mk->ctx, "pruning candidates");
	ap_table_classes(mk);
	if (ap_ctx_stopped(mk->ctx))
		return NULL;
	make_table(mk, t);
	return ap_ctx_stopped(mk->ctx) ? NULL : t;
}

enum ap_status ap_table_make(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ap_machine *m, const struct ap_step *step, const struct ap_table_params *params,
	const struct ap_table **out)
{
	struct ap_making *mk = AP_NEW(ctx->arena, struct ap_making);
	enum ap_status st;

	*mk = (struct ap_making){.ctx = ctx, .params = ap_arena_memdup(ctx->arena, params,
		sizeof *params), .g = g, .m = m, .step = step};
	open_workers(mk);
	ap_ctx_phase(ctx, "pricing operators");
	ap_tasks_make(ctx, g, step, &mk->task);
	ap_table_kinds(mk);
	st = ap_ctx_stopped(ctx) ? AP_STOPPED : ap_table_bonds(mk);
	*out = st == AP_OK ? finish(mk) : NULL;
	close_workers(mk);
	if (st == AP_LIMIT) {
		struct ap_table *t = AP_NEW(ctx->arena, struct ap_table);

		t->least_s = least_s(mk);
		t->least_bytes = least_bytes(mk, &t->least_stage);
		t->work = mk->work;
		*out = t;
	}
	return st == AP_OK && !*out ? AP_STOPPED : st;
}

/* A table of the same prices with other candidates left. */
static const struct ap_table *again(struct ap_ctx *ctx, const struct ap_table *t, bool by_memory,
	const uint32_t *only)
{
	struct ap_making *mk = ap_arena_memdup(ctx->arena, t->making, sizeof *mk);
	struct ap_table_params *params = ap_arena_memdup(ctx->arena, mk->params, sizeof *params);
	const struct ap_table *made;

	params->by_memory = by_memory;
	mk->ctx = ctx;
	mk->params = params;
	mk->only = only;
	mk->classes = (struct ap_class_list){0};
	open_workers(mk);
	made = finish(mk);
	close_workers(mk);
	return made;
}

const struct ap_table *ap_table_by_memory(struct ap_ctx *ctx, const struct ap_table *t)
{
	return t->making->params->by_memory ? t : again(ctx, t, true, t->making->only);
}

/* AP_NONE: the kind has no such candidate. */
static uint32_t find_candidate(const struct ap_kind *kd, const int32_t *count)
{
	size_t bytes = kd->space.nfactor * sizeof *count;

	for (uint32_t c = 0; c < kd->k; c++)
		if (memcmp(kd->space.count + (size_t)c * kd->space.nfactor, count, bytes) == 0)
			return c;
	return AP_NONE;
}

const struct ap_table *ap_table_narrow(struct ap_ctx *ctx, const struct ap_table *t,
	const int32_t *const *fixed)
{
	const struct ap_making *mk = t->making;
	uint32_t *only = AP_NEW_N(ctx->arena, uint32_t, mk->g->nnode);

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		const struct ap_kind *kd = &mk->kinds.v[mk->kind_of[i]];

		only[i] = fixed[i] ? find_candidate(kd, fixed[i]) : AP_NONE;
		if (fixed[i] && only[i] == AP_NONE)
			return NULL;
	}
	return again(ctx, t, false, only);
}

const int32_t *ap_table_counts(const struct ap_table *t, ap_id node, uint32_t c)
{
	const struct ap_table_class *cls = &t->cls[t->class_of[node]];

	return cls->count + (size_t)c * cls->nfactor;
}
