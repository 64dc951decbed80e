/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/pins.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "cost/conflict.h"
#include "shard/space.h"
#include "shard/strategy.h"

static enum ap_status pin_counts(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node,
	int64_t ndev, const struct ap_step *step, const int32_t **out)
{
	const struct ap_node *n = &g->node[node];
	const struct ap_where where = {.file = g->file, .oper = n->name};
	int32_t *count = AP_NEW_N(ctx->arena, int32_t, AP_MAX_FACTOR);
	uint8_t *rank = AP_NEW_N(ctx->arena, uint8_t, n->in_pin.n);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->arena, n->in_pin.n, sizeof *cut);
	const char *why;

	for (uint32_t i = 0; i < n->in_pin.n; i++) {
		rank[i] = n->in_pin.v[i].rank;
		memcpy(cut[i], n->in_pin.v[i].cut, sizeof *cut);
	}
	*out = count;
	ndev = ap_graph_devices(g, node, ndev);
	if (ap_space_from_strategy(ctx, &n->bound, ndev, step, n->in_pin.n, rank,
		    (const int32_t(*)[AP_MAX_RANK])cut, count, &why))
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &where, "pin-legal",
		"in_strategy is not possible on %lld devices: %s", (long long)ndev, why);
}

static enum ap_status check_together(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const int32_t *const *fixed)
{
	struct ap_where where = {.file = g->file};
	const char *conflict;
	ap_id node;

	conflict = ap_plan_conflict(ctx, g, ndev, fixed, &node);
	if (!conflict)
		return AP_OK;
	where.oper = g->node[node].name;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, &where, "pin-conflict",
		"the strategies that are given cannot stand together: %s", conflict);
}

enum ap_status ap_pins_make(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t *const *given, const int32_t *const **out)
{
	const int32_t **fixed = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	enum ap_status worst = AP_OK;
	bool any = false;

	for (ap_id i = 0; i < g->nnode; i++) {
		enum ap_status st = AP_OK;

		if (g->node[i].in_pin.n > 0)
			st = pin_counts(ctx, g, i, ndev, step, &fixed[i]);
		else if (given)
			fixed[i] = given[i];
		any |= fixed[i] != NULL;
		worst = worst == AP_OK ? st : worst;
	}
	*out = any ? fixed : NULL;
	return worst == AP_OK && any ? check_together(ctx, g, ndev, fixed) : worst;
}

bool ap_pins_hold(const struct ap_graph *g, const int32_t *const *fixed,
	const int32_t *const *counts)
{
	for (ap_id i = 0; fixed && i < g->nnode; i++)
		if (fixed[i] && memcmp(fixed[i], counts[i],
				g->node[i].bound.nfactor * sizeof *counts[i]) != 0)
			return false;
	return true;
}
