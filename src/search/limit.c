/* SPDX-License-Identifier: Apache-2.0 */
#include "search/limit.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "search/dual.h"
#include "search/focus.h"
#include "search/label.h"
#include "search/support.h"

#define FIRST_STEP 0.0005 /* of the bound: where the target starts, */
#define FIRST_PART 32 /* or at this part of what is between the bound and the best known pick */

#define MAX_TIE_WORK (UINT64_C(1) << 26) /* of finding the smallest optimum once one is known */

#define FOCUS_WORK (UINT64_C(1) << 26) /* of an evaluation that is worth saving */

enum { LABEL_WORK = 1024 }; /* inner steps of a table that take as long as one of the labels */

enum { LABELS_NEED = 4 }; /* evaluations that must be left to try labels of a large problem */

enum { BYTES_PER_TUPLE = 64, BYTES_PER_LABEL = 128 }; /* with what growing arrays leave behind */

struct limited {
	struct ap_ctx *ctx;
	const struct ap_problem *p;
	const struct ap_elim *e;
	const struct ap_budget *budget;
	struct ap_priced priced;
	const double **value;
	double least; /* of priced.p */
	struct ap_limited *out;
	double cost; /* of out->pick, INFINITY: none */
};

static size_t table_bytes(const struct ap_budget *budget)
{
	return budget->table_bytes ? budget->table_bytes : (size_t)1 << 30;
}

/* What is left of the budget; false when it is used up. 0 stands for no limit, as in a budget. */
static bool work_left(const struct limited *l, uint64_t *left)
{
	*left = 0;
	if (l->budget->work == 0)
		return true;
	if (l->out->work >= l->budget->work)
		return false;
	*left = l->budget->work - l->out->work;
	return true;
}

/* The priced total that a pick of at most `target` that fits can have, rounded up. */
static double threshold_of(const struct limited *l, double target)
{
	double rent = l->priced.price * (double)l->p->memory_limit;
	double sum = target + rent;
	return sum + l->priced.quantum + 0x1p-51 * (fabs(rent) + fabs(sum));
}

/* Looks for the cheapest pick of at most target; ties: for the lexicographically smallest one. */
static enum ap_label_end look(struct limited *l, double target, bool ties, uint32_t *pick)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_label_job job = {
		.e = l->e, .p = l->p, .priced = &l->priced,
		.value = l->value, .least = l->least,
		.threshold = threshold_of(l, target), .ties = ties,
		.max_labels = table_bytes(l->budget) / BYTES_PER_LABEL,
	};
	enum ap_label_end end = AP_LABEL_LIMIT;
	if (job.max_labels > UINT32_MAX / 2)
		job.max_labels = UINT32_MAX / 2;
	if (job.threshold < l->least) { /* rounding aside, the target is below the bound */
		ap_arena_release(l->ctx->scratch, mark);
		return AP_LABEL_NONE;
	}
	if (work_left(l, &job.max_work)) {
		if (job.max_work)
			job.max_work = job.max_work / LABEL_WORK + 1;
		if (ties && (job.max_work == 0 || job.max_work > MAX_TIE_WORK))
			job.max_work = MAX_TIE_WORK;
		job.support = ap_support_make(l->ctx, l->e, l->value, l->least, job.threshold,
			table_bytes(l->budget) / BYTES_PER_TUPLE);
		if (job.support) {
			end = ap_label_solve(l->ctx, &job, pick);
			l->out->work += job.work * LABEL_WORK + job.support->ntuple;
		}
	}
	ap_arena_release(l->ctx->scratch, mark);
	return end;
}

static void take(struct limited *l, const uint32_t *pick)
{
	if (!l->out->pick)
		l->out->pick = AP_NEW_N(l->ctx->scratch, uint32_t, l->p->n);
	memcpy(l->out->pick, pick, l->p->n * sizeof *pick);
	l->cost = ap_problem_cost(l->p, pick);
}

static bool close_enough(const struct limited *l)
{
	return l->out->bound >= l->cost ||
		l->cost <= l->out->bound + l->budget->gap * fabs(l->out->bound);
}

/* The pick is an optimum: makes it the smallest of those, if there are not too many. */
static void settle_ties(struct limited *l, uint32_t *pick)
{
	if (look(l, l->cost, true, pick) == AP_LABEL_FOUND)
		take(l, pick);
}

/* Raises the target until a pick is found. A target that failed is a bound. */
static void raise_target(struct limited *l, uint32_t *pick)
{
	double bound = l->out->bound, q = l->p->quantum;
	double step = fmin(FIRST_STEP * fabs(bound), (l->cost - bound) / FIRST_PART);
	step = step > q ? step : q;
	for (;; step *= 2) {
		double target = floor((bound + step) / q) * q;
		target = target < l->cost ? target : l->cost;
		enum ap_label_end end = look(l, target, false, pick);
		if (end == AP_LABEL_LIMIT)
			return;
		if (end == AP_LABEL_FOUND && ap_problem_cost(l->p, pick) <= target) {
			take(l, pick);
			l->out->bound = l->cost;
			settle_ties(l, pick);
			return;
		}
		if (end == AP_LABEL_FOUND && ap_problem_cost(l->p, pick) < l->cost)
			take(l, pick);
		assert(target < l->cost); /* the support held l->out->pick, too */
		l->out->bound = target + q;
		if (l->budget->gap > 0 && close_enough(l))
			return;
	}
}

static bool price_tables(struct limited *l, double price)
{
	uint64_t left;
	if (!work_left(l, &left) || (left && left < l->e->work))
		return false;
	ap_priced_make(l->ctx, l->e, l->p, price, &l->priced);
	l->value = AP_NEW_N(l->ctx->scratch, const double *, l->e->ntable);
	l->out->work += l->e->work;
	return ap_elim_eval(l->ctx, l->e, &l->priced.p, l->value, &l->least);
}

static void search_labels(struct limited *l, double price)
{
	uint32_t *pick = AP_NEW_N(l->ctx->scratch, uint32_t, l->p->n);
	if (!price_tables(l, price))
		return;
	if (l->out->bound >= l->cost)
		settle_ties(l, pick);
	else
		raise_target(l, pick);
}

void ap_limit_solve(struct ap_ctx *ctx, const struct ap_problem *p, const struct ap_elim *e,
	const struct ap_budget *budget, double least, const uint32_t *pick,
	struct ap_limited *out)
{
	struct limited l = {.ctx = ctx, .p = p, .e = e, .budget = budget, .out = out,
		.cost = INFINITY};
	struct ap_dual dual;
	uint64_t left;
	*out = (struct ap_limited){.bound = least, .least_memory = AP_NO_LIMIT, .work = out->work};
	if (!work_left(&l, &left))
		return;
	if (e->work >= FOCUS_WORK && !e->split)
		ap_focus_solve(ctx, e, p, least, pick,
			&(struct ap_budget){.work = left, .table_bytes = budget->table_bytes,
				.start = {budget->start[0], budget->start[1]}}, &dual);
	else
		ap_dual_solve(ctx, e, p, least, pick, left, &dual);
	out->work += dual.work;
	out->bound = dual.bound;
	if (dual.infeasible) {
		out->infeasible = true;
		out->least_memory = e->split ? AP_NO_LIMIT : dual.least_memory;
		return;
	}
	if (dual.pick)
		take(&l, dual.pick);
	if (dual.stopped || e->split || (budget->gap > 0 && close_enough(&l)))
		return;
	if (e->work >= FOCUS_WORK && work_left(&l, &left) && left && left / LABELS_NEED < e->work)
		return; /* labels of so large a problem would not end */
	search_labels(&l, dual.price);
}
