/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "cost/conflict.h"
#include "drive/baseline.h"
#include "shard/legal.h"
#include "shard/space.h"

/* The outermost batch factor of an operator, the first in dev order; -1 if none. */
static int batch_factor(const struct ap_bound *b)
{
	for (int i = 0; i < b->ndev; i++)
		if (b->factor[b->dev[i]].flags & AP_FACTOR_BATCH)
			return b->dev[i];
	return -1;
}

struct cut_key { /* compared by its bytes */
	struct ap_bound bound;
	int64_t ndev;
};

/* Cuts every operator; equal ones share counts. Returns the first that cannot be cut; AP_NONE. */
static ap_id cut_all(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step, const int32_t **counts, const char **reason)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *seen = ap_map_create(ctx->scratch);
	ap_id *first = AP_NEW_N(ctx->scratch, ap_id, g->nnode), fault = AP_NONE;

	for (ap_id i = 0; i < g->nnode && fault == AP_NONE; i++) {
		const struct ap_bound *b = &g->node[i].bound;
		int64_t own = ap_graph_devices(g, i, ndev);
		struct cut_key key;
		bool fresh;
		ap_id id;

		memcpy(&key.bound, b, sizeof *b);
		key.ndev = own;
		id = ap_map_put(seen, &key, sizeof key, &fresh);

		if (fresh) {
			int32_t *count = AP_NEW_N(ctx->arena, int32_t, AP_MAX_FACTOR);
			int f = batch_factor(b);

			first[id] = i;
			ap_space_start(b, own, count);
			if (f >= 0 && !ap_space_is_imposed(b))
				count[f] = (int32_t)ap_gcd(g->batch / step->micro_batches, own);
			counts[i] = count;
			if (!ap_space_legal(ctx, b, counts[i], own, step, reason))
				fault = i;
		}
		counts[i] = counts[first[id]];
	}
	ap_arena_release(ctx->scratch, mark);
	return fault;
}

const int32_t *const *ap_baseline_data_parallel(struct ap_ctx *ctx, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const char **why)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, g->nnode);
	const char *reason;
	ap_id node;

	if (g->batch == 0) {
		*why = "no graph input has a batch dimension";
		return NULL;
	}
	node = cut_all(ctx, g, ndev, step, counts, &reason);
	if (node != AP_NONE) {
		*why = ap_arena_printf(ctx->arena, "operator \"%s\" cannot be cut by the batch: %s",
			g->node[node].name, reason);
		return NULL;
	}
	*why = ap_plan_conflict(ctx, g, ndev, counts, &node);
	return *why ? NULL : counts;
}
