/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/lean.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/pins.h"
#include "drive/choose.h"
#include "drive/fit.h"
#include "drive/recursive.h"
#include "plan/make.h"
#include "plan/memory.h"
#include "table/table.h"

#define MOST_NAMED 3
#define MOST_LETTERS 80 /* of a name in a message, base/diag.h */
#define MOST_TRIES 4
#define MOST_EXACT (UINT64_C(1) << 24) /* steps, where they are limited: more finds little more */
#define PART 4 /* of the steps left, for one plan */

struct leaning {
	struct ap_ctx ctx; /* that says nothing */
	const struct ap_request *rq;
	const int32_t *const *fixed;
	struct ap_plan_maker *maker;
	struct ap_plan *best; /* graph NULL: none yet */
	uint64_t *steps; /* left; NULL: no limit */
};

/* What the stage that needs most has to spare; below 0: it does not fit. */
static int64_t weigh(struct leaning *l, const int32_t *const *counts)
{
	struct ap_plan p;

	ap_plan_price(l->maker, counts, &p);
	if (!l->best->graph || p.prediction.memory.total < l->best->prediction.memory.total)
		*l->best = p;
	return l->rq->capacity_bytes - p.prediction.memory.total;
}

static void spend(struct leaning *l, uint64_t steps)
{
	if (l->steps)
		*l->steps -= steps < *l->steps ? steps : *l->steps;
}

static bool is_spent(const struct leaning *l)
{
	return l->steps && (*l->steps == 0 || ap_ctx_stopped(&l->ctx));
}

/* The recursion knows what all stages need together: where one of them needs more than it has, all have
 * to do with less, twice as much less at each try. */
static bool try_recursion(struct leaning *l)
{
	const struct ap_request *rq = l->rq;
	uint32_t nstage = rq->machine->nstage;
	struct ap_rec_limits limits = {.insist = !l->steps, .first = l->steps,
		.bytes = ap_choose_sum_bytes(rq)};

	for (int i = 0; i < MOST_TRIES && !is_spent(l); i++) {
		struct ap_recursive r;
		int64_t spare;

		if (l->steps)
			limits.work = *l->steps / PART / AP_RECURSION_STEPS + 1;
		ap_plan_recursive(&l->ctx, rq->graph, rq->machine, rq->step, l->fixed, &limits, &r);
		spend(l, r.work * AP_RECURSION_STEPS);
		spare = r.allowed ? weigh(l, r.counts) : 0;
		if (spare >= 0 || !r.fits || nstage == 1)
			return r.allowed && spare >= 0;
		limits.bytes = r.memory_bytes + spare * (INT64_C(1) << i);
	}
	return false;
}

static bool try_exact(struct leaning *l)
{
	const struct ap_engine *exact = ap_engine_find("dynamic_programming");
	struct ap_choice c = {.outcome = AP_OUT_LIMIT};
	struct ap_request rq = *l->rq;
	const struct ap_table *t;
	enum ap_status st;

	if (ap_ctx_stopped(&l->ctx) || is_spent(l))
		return false;
	if (l->steps)
		rq.budget.work = *l->steps < MOST_EXACT ? *l->steps : MOST_EXACT;
	st = ap_choose_table(&l->ctx, &rq, l->fixed, true, &t);
	if (st == AP_OK || st == AP_LIMIT)
		spend(l, t->work);
	if (st != AP_OK || is_spent(l))
		return false;
	return ap_fit_lean(&l->ctx, t, exact, INT64_MAX, &c) &&
		weigh(l, ap_chosen_counts(&l->ctx, t, c.pick)) >= 0;
}

bool ap_plan_lean(struct ap_ctx *ctx, const struct ap_request *rq, uint64_t *steps, struct ap_plan *out)
{
	struct leaning l = {.ctx = *ctx, .rq = rq, .best = out, .steps = steps};

	*out = (struct ap_plan){0};
	l.ctx.diag = ap_diag_create(ctx->arena, false);
	l.ctx.phase = NULL;
	if (ap_pins_make(&l.ctx, rq->graph, rq->machine->ndev, rq->step, rq->given, &l.fixed) != AP_OK)
		return false;
	l.maker = ap_plan_maker_create(&l.ctx, rq->graph, rq->machine, rq->step, rq->capacity_bytes);
	return try_recursion(&l) || try_exact(&l);
}

struct share {
	const char *name;
	int64_t bytes;
	uint32_t order;
};

static int by_bytes(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void add_shares(struct ap_str *s, struct share *v, size_t n, const char *quote)
{
	char text[32];

	qsort(v, n, sizeof *v, by_bytes);
	for (size_t i = 0; i < n && i < MOST_NAMED && v[i].bytes > 0; i++)
		ap_str_addf(s, "%s%s%s%s %s", i ? ", " : "", quote, v[i].name, quote,
			ap_format_bytes(v[i].bytes, text));
}

static void add_kinds(struct ap_str *s, const struct ap_memory *m)
{
	struct share v[] = {{"weights", m->weights, 0}, {"gathered weights", m->gathered, 1},
		{"gradients", m->gradients, 2}, {"optimizer states", m->optimizer, 3},
		{"activations", m->activations, 4}, {"recomputed activations", m->recompute, 5},
		{"temporary", m->temporary, 6}, {"context", m->context, 7}, {"buffers", m->buffers, 8}};

	add_shares(s, v, AP_COUNT(v), "");
}

static uint32_t worst_stage(const struct ap_plan *p)
{
	uint32_t worst = 0;

	for (uint32_t s = 1; s < p->nstage; s++)
		if (p->stage[s].memory.total > p->stage[worst].memory.total)
			worst = s;
	return worst;
}

/* A name that a message would cut at its end, which tells it from others, is that of its cell. */
static const char *name_of(struct ap_ctx *ctx, const struct ap_node *n)
{
	const char *last = strrchr(n->name, '/');

	return ap_diag_name(ctx->diag, strlen(n->name) > MOST_LETTERS && *n->cell && last
		? ap_arena_printf(ctx->arena, "%s%s", n->cell, last) : n->name);
}

const char *ap_plan_contributors(struct ap_ctx *ctx, const struct ap_plan *p)
{
	uint32_t worst = worst_stage(p), n = 0;
	struct share *v = AP_NEW_N(ctx->arena, struct share, p->graph->nnode);
	struct ap_str s;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->nstage == 1 || p->graph->node[i].stage == (int32_t)worst)
			v[n++] = (struct share){name_of(ctx, &p->graph->node[i]),
				ap_plan_op_memory_bytes(p, i), i};
	ap_str_init(&s, ctx->arena);
	add_kinds(&s, &p->stage[worst].memory);
	ap_str_add(&s, "; of operators ");
	add_shares(&s, v, n, "\"");
	return s.s;
}
