/* SPDX-License-Identifier: Apache-2.0 */
#include "drive/certify.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "drive/fit.h"

#define CERTIFIED "dynamic_programming"
#define CERTIFIER "integer_programming"

/* The exact engine that the answer is not of. */
static const struct ap_engine *certifier(const struct ap_choice *found)
{
	return ap_engine_find(found->engine && !strcmp(found->engine, CERTIFIER) ? CERTIFIED : CERTIFIER);
}

enum ap_status ap_certify_check(struct ap_ctx *ctx, const char *search_mode)
{
	if (strcmp(search_mode, "auto") != 0 && strcmp(search_mode, CERTIFIED) != 0)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--certify is for --search-mode %s, and not for %s", CERTIFIED, search_mode);
	return AP_OK;
}

/* "no choice" or its cost. */
static const char *answer_of(struct ap_ctx *ctx, const struct ap_choice *c)
{
	char cost[32], bound[32];

	if (!c->pick)
		return c->outcome == AP_OUT_INFEASIBLE ? "no choice" : ap_arena_printf(ctx->arena,
			"a bound of %s", ap_format_double(c->lower_bound, bound));
	return ap_arena_printf(ctx->arena, "a choice that costs %s and a bound of %s",
		ap_format_double(c->cost, cost), ap_format_double(c->lower_bound, bound));
}

/* A pick may not cost less than the other's bound, which is infinite if INFEASIBLE. */
static bool contradict(const struct ap_choice *a, const struct ap_choice *b)
{
	return (a->pick && a->cost < b->lower_bound) || (b->pick && b->cost < a->lower_bound);
}

enum ap_status ap_certify_compare(struct ap_ctx *ctx, const struct ap_choice *found,
	const struct ap_choice *other, struct ap_certificate *out)
{
	*out = (struct ap_certificate){.engine = other->engine, .work = other->work,
		.lower_bound = other->lower_bound};
	if (contradict(found, other))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_INTERNAL, NULL, "certify",
			"%s finds %s, %s finds %s on the same table: this is a bug", found->engine,
			answer_of(ctx, found), other->engine, answer_of(ctx, other));
	out->proven = found->pick ? other->lower_bound >= found->cost
		: found->outcome == AP_OUT_INFEASIBLE && other->outcome == AP_OUT_INFEASIBLE;
	return AP_OK;
}

static void take_over(struct ap_choice *found, const struct ap_choice *other)
{
	if (found->outcome == AP_OUT_OPTIMAL || found->outcome == AP_OUT_INFEASIBLE)
		return;
	if (other->pick && (!found->pick || other->cost < found->cost)) {
		found->pick = other->pick;
		found->cost = other->cost;
		found->memory = other->memory;
	}
	found->lower_bound = fmax(found->lower_bound, other->lower_bound);
	found->outcome = found->pick ? (found->lower_bound < found->cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL)
		: other->outcome;
	found->least_memory = other->least_memory;
	if (found->outcome == AP_OUT_OPTIMAL || found->outcome == AP_OUT_INFEASIBLE)
		found->ended = AP_ENDED_PROVEN;
}

static enum ap_status conclude(struct ap_ctx *ctx, struct ap_choice *found,
	const struct ap_choice *other)
{
	struct ap_certificate *certificate = AP_NEW(ctx->arena, struct ap_certificate);

	found->certificate = certificate;
	AP_TRY(ap_certify_compare(ctx, found, other, certificate));
	take_over(found, other);
	AP_TRY(ap_certify_compare(ctx, found, other, certificate));
	if (found->outcome == AP_OUT_INFEASIBLE)
		ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "certify", certificate->proven
			? "%s, too, proves that nothing fits"
			: "%s has not proven within the limit that nothing fits", other->engine);
	return AP_OK;
}

static struct ap_budget budget_of(const struct ap_budget *budget, const struct ap_choice *found)
{
	return (struct ap_budget){.work = budget->work, .table_bytes = budget->table_bytes,
		.start = {found->pick}};
}

enum ap_status ap_certify_problem(struct ap_ctx *ctx, const struct ap_problem *p,
	const struct ap_budget *budget, struct ap_choice *found)
{
	struct ap_budget own = budget_of(budget, found);
	struct ap_choice other;

	certifier(found)->solve(ctx, p, &own, &other);
	return conclude(ctx, found, &other);
}

enum ap_status ap_certify(struct ap_ctx *ctx, const struct ap_request *rq, struct ap_chosen *c)
{
	struct ap_budget own = budget_of(&rq->budget, &c->choice);
	struct ap_choice other;

	if (!rq->certify || ap_ctx_stopped(ctx))
		return AP_OK;
	if (!c->table) {
		ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "certify",
			"no certificate: there is no table to search");
		return AP_OK;
	}
	ap_ctx_phase(ctx, "certifying");
	ap_fit_staged(ctx, c->table, certifier(&c->choice), &own, ap_choose_limit_bytes(rq), false,
		&other);
	return conclude(ctx, &c->choice, &other);
}
