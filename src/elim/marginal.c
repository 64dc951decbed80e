/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/marginal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "elim/elim_eval.h"
#include "search/compact.h"

struct visit { /* a step on the way back */
	uint32_t step;
	double *outside; /* least cost of all that is outside the step, over its scope */
	struct ap_mark mark; /* of scratch, before the step was opened */
	bool open;
};

struct backward { /* the pass back through an evaluated elimination */
	struct ap_ctx *ctx;
	const struct ap_elim *e;
	const double *const *value;
	uint32_t *child, *sibling; /* [nstep] the steps below that lead to wanted nodes; AP_NONE: no more */
	bool *wanted; /* [n] */
	double **marginal; /* [n] by candidate of the rest; NULL: not wanted */
	AP_VEC(struct visit) way; /* from a root to the step of now, and what is open beside it */
	uint64_t work;
};

/* Finds the steps that lead to wanted nodes. The roots are children of none: of step nstep. */
static void find_ways(struct backward *b)
{
	const struct ap_elim *e = b->e;
	uint32_t *step_of = AP_NEW_N(b->ctx->scratch, uint32_t, e->n);
	bool *leads = AP_NEW_N(b->ctx->scratch, bool, e->nstep + 1);

	b->child = AP_NEW_N(b->ctx->scratch, uint32_t, e->nstep + 1);
	b->sibling = AP_NEW_N(b->ctx->scratch, uint32_t, e->nstep + 1);
	for (uint32_t i = 0; i <= e->nstep; i++)
		b->child[i] = b->sibling[i] = AP_NONE;
	for (uint32_t i = 0; i < e->nstep; i++)
		step_of[e->step[i].node] = i;
	for (uint32_t i = 0; i < e->nstep; i++) { /* what a result becomes part of comes later */
		const struct ap_estep *s = &e->step[i];
		uint32_t parent = e->nstep;

		for (uint32_t k = 0; k < s->nscope; k++)
			parent = step_of[s->scope[k]] < parent ? step_of[s->scope[k]] : parent;
		if (!leads[i] && !b->wanted[s->node])
			continue;
		leads[parent] = true;
		b->sibling[i] = b->child[parent];
		b->child[parent] = i;
	}
}

static bool same_scope(const struct ap_efactor *f, const struct ap_estep *s)
{
	return f->nscope == s->nscope && memcmp(f->scope, s->scope, s->nscope * sizeof *s->scope) == 0;
}

static void add_table(const struct backward *b, ap_id t, double *sum)
{
	for (size_t c = 0; c < b->e->table[t].cells; c++)
		sum[c] += b->value[t][c];
}

/* Adds to sum the terms of table t but one use of `but`. One term was added at a time. */
static void add_others(const struct backward *b, ap_id t, ap_id but, double *sum)
{
	while (t != but) {
		const struct ap_etable *table = &b->e->table[t];
		bool in_a = table->a == but || (table->b != but && b->e->table[table->a].kind == AP_ET_SUM);

		assert(table->kind == AP_ET_SUM);
		add_table(b, in_a ? table->b : table->a, sum);
		t = in_a ? table->a : table->b;
	}
}

/* Goes to the steps below, and tells the step's own node. */
static bool open_step(struct backward *b, const struct visit *v)
{
	const struct ap_estep *s = &b->e->step[v->step];
	double **of = AP_NEW_N(b->ctx->scratch, double *, s->nfactor);

	for (uint32_t i = 0; i < s->nfactor; i++) {
		const struct ap_efactor *f = &b->e->factor[s->factor[i]];
		bool asked = f->nscope == 1 && b->wanted[s->node];

		for (uint32_t c = b->child[v->step]; c != AP_NONE; c = b->sibling[c])
			asked |= same_scope(f, &b->e->step[c]);
		if (asked)
			of[i] = ap_arena_alloc_raw(b->ctx->scratch, b->e->table[f->table].cells, sizeof **of);
	}
	if (!ap_elim_outside(b->ctx, b->e, b->value, s, v->outside, of, &b->work))
		return false;
	for (uint32_t i = 0; i < s->nfactor; i++) {
		const struct ap_efactor *f = &b->e->factor[s->factor[i]];

		for (uint32_t c = b->child[v->step]; of[i] && c != AP_NONE; c = b->sibling[c]) {
			struct visit below = {.step = c, .mark = ap_arena_mark(b->ctx->scratch)};

			if (!same_scope(f, &b->e->step[c]))
				continue;
			below.outside = ap_arena_memdup(b->ctx->scratch, of[i],
				b->e->table[f->table].cells * sizeof **of);
			add_others(b, f->table, b->e->step[c].result, below.outside);
			AP_PUSH(b->ctx->arena, b->way, below);
		}
		for (uint32_t x = 0; of[i] && f->nscope == 1 && b->wanted[s->node] &&
			x < b->e->k[s->node]; x++)
			b->marginal[s->node][x] = of[i][x] + b->value[f->table][x];
	}
	return true;
}

/* Goes back in depth, so that what is outside is held along one way only. */
static bool go_back(struct backward *b, double least)
{
	find_ways(b);
	for (uint32_t c = b->child[b->e->nstep]; c != AP_NONE; c = b->sibling[c]) {
		struct visit root = {.step = c, .mark = ap_arena_mark(b->ctx->scratch),
			.outside = AP_NEW(b->ctx->scratch, double)};

		*root.outside = least - b->value[b->e->step[c].result][0];
		AP_PUSH(b->ctx->arena, b->way, root);
	}
	while (b->way.n > 0) {
		struct visit v = b->way.v[b->way.n - 1];

		b->way.v[b->way.n - 1].open = true;
		if (v.open) {
			ap_arena_release(b->ctx->scratch, v.mark);
			b->way.n--;
		} else if (!open_step(b, &v)) {
			return false;
		}
	}
	return true;
}

/* Evaluates the rest, all of whose nodes have a choice, and goes back. */
static bool tell_rest(struct ap_ctx *ctx, const struct ap_compact *rest, const struct ap_budget *budget,
	struct backward *b, double *least)
{
	struct ap_elim_options options = {.table_bytes = ap_budget_bytes(budget), .work = budget->work,
		.whole = true, .no_share = budget->no_fold};
	const double **value;

	b->ctx = ctx;
	b->e = ap_elim_plan(ctx, &rest->p, &options);
	if (b->e->split)
		return false;
	value = ap_elim_room(ctx, b->e);
	b->value = value;
	b->work += b->e->work;
	if (!ap_elim_eval(ctx, b->e, &rest->p, value, least))
		return false;
	return *least == INFINITY || go_back(b, *least);
}

/* What the rest's marginals are in the whole. The rest has neither candidates that are forbidden nor
 * nodes with one candidate, which is in all picks. c, rest: NULL if no pick is allowed. */
static void expand(struct ap_ctx *ctx, const struct ap_compact *c, const struct ap_problem *p,
	const bool *wanted, double *const *rest, struct ap_marginals *out)
{
	double **of = AP_NEW_N(ctx->arena, double *, p->n);

	for (uint32_t i = 0; i < p->n; i++) {
		if (wanted && !wanted[i])
			continue;
		of[i] = ap_arena_alloc_raw(ctx->arena, p->node[i].k, sizeof **of);
		for (uint32_t x = 0; x < p->node[i].k; x++)
			of[i][x] = INFINITY;
	}
	out->of = of;
	if (out->least == INFINITY)
		return;
	for (uint32_t i = 0; i < p->n; i++)
		if (of[i] && c->domain[i].n == 1)
			of[i][c->domain[i].c[0]] = out->least;
	for (uint32_t r = 0; r < c->p.n; r++) {
		const struct ap_domain *d = &c->domain[c->node[r]];

		for (uint32_t x = 0; rest[r] && x < d->n; x++)
			of[c->node[r]][d->c[x]] = rest[r][x] + c->cost;
	}
}

bool ap_marginals_make(struct ap_ctx *ctx, const struct ap_problem *p, const bool *wanted,
	const struct ap_budget *budget, struct ap_marginals *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_domain *domain = ap_domain_all(ctx, p);
	struct backward b = {.work = 0};
	const struct ap_compact *c;
	double least = 0;
	bool done = true;

	*out = (struct ap_marginals){.least = INFINITY};
	if (ap_domain_empty(p, domain)) {
		expand(ctx, NULL, p, wanted, NULL, out);
	} else {
		c = ap_compact_make(ctx, p, domain);
		b.wanted = AP_NEW_N(ctx->scratch, bool, c->p.n);
		b.marginal = AP_NEW_N(ctx->scratch, double *, c->p.n);
		for (uint32_t r = 0; r < c->p.n; r++) {
			b.wanted[r] = !wanted || wanted[c->node[r]];
			if (b.wanted[r])
				b.marginal[r] = AP_NEW_N(ctx->scratch, double, c->p.node[r].k);
		}
		done = c->p.n == 0 || tell_rest(ctx, c, budget, &b, &least);
		out->least = least + c->cost;
		if (done)
			expand(ctx, c, p, wanted, b.marginal, out);
	}
	out->work = b.work;
	ap_arena_release(ctx->scratch, mark);
	return done;
}
