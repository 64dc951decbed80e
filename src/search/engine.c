/* SPDX-License-Identifier: Apache-2.0 */
#include "search/engine.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "search/compact.h"
#include "search/engines.h"

static const struct ap_engine engines[] = {
#define ENGINE(name, solve, flags, help) {#name, help, flags, solve},
#include "search/engines.def"
#undef ENGINE
};

const struct ap_engine *ap_engine_at(size_t i)
{
	return i < AP_COUNT(engines) ? &engines[i] : NULL;
}

const struct ap_engine *ap_engine_find(const char *name)
{
	for (size_t i = 0; ap_engine_at(i); i++) {
		if (strcmp(engines[i].name, name) == 0)
			return &engines[i];
	}
	return NULL;
}

const struct ap_engine *ap_engine_of_parts(void)
{
	size_t i = 0;

	while (!(engines[i].flags & AP_ENGINE_PARTS))
		i++;
	return &engines[i];
}

bool ap_engine_closed(const struct ap_budget *budget, const struct ap_choice *c)
{
	return c->outcome == AP_OUT_OPTIMAL || c->outcome == AP_OUT_INFEASIBLE ||
		(c->pick && c->cost <= c->lower_bound + budget->gap * fabs(c->lower_bound));
}

void ap_engine_end(const struct ap_ctx *ctx, const struct ap_budget *budget, enum ap_ended lack,
	struct ap_choice *out)
{
	if (out->outcome == AP_OUT_OPTIMAL || out->outcome == AP_OUT_INFEASIBLE)
		out->ended = AP_ENDED_PROVEN;
	else if (ap_engine_closed(budget, out))
		out->ended = AP_ENDED_GAP;
	else
		out->ended = ap_ctx_stopped(ctx) ? AP_ENDED_STOPPED : lack;
}

void ap_engine_solve_within(struct ap_ctx *ctx, const struct ap_engine *engine,
	const struct ap_problem *p, const struct ap_domain *domain, const struct ap_budget *budget,
	struct ap_choice *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_compact *rest = ap_compact_make(ctx, p, domain);
	struct ap_budget own = *budget;
	for (int s = 0; s < 2 && budget->start[s]; s++) {
		uint32_t *start = AP_NEW_N(ctx->scratch, uint32_t, rest->p.n);
		ap_compact_narrow(rest, budget->start[s], start);
		own.start[s] = start;
	}
	engine->solve(ctx, &rest->p, &own, out);
	out->lower_bound += rest->cost;
	if (out->least_memory >= 0)
		out->least_memory += rest->memory;
	if (out->pick) {
		uint32_t *pick = AP_NEW_N(ctx->arena, uint32_t, p->n);
		ap_compact_expand(rest, p, out->pick, pick);
		out->pick = pick;
		out->cost = ap_problem_cost(p, pick);
		out->memory = ap_problem_memory(p, pick);
	}
	ap_arena_release(ctx->scratch, mark);
}
