/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/blocks.h"

#include "base/arena.h"
#include "graph/family.h"
#include "plan/parts.h"

struct cutting {
	struct ap_arena *scratch;
	uint32_t nnode;
	const int32_t *part; /* [nnode] */
	ap_id *order; /* [nnode] part by part */
	uint32_t *block; /* [nnode] of the operator at that place in order, ascending */
};

static void put_in_order(struct cutting *c, int32_t npart)
{
	uint32_t *at = AP_NEW_N(c->scratch, uint32_t, (size_t)npart + 1);

	for (ap_id i = 0; i < c->nnode; i++)
		at[c->part[i] + 1]++;
	for (int32_t k = 0; k < npart; k++)
		at[k + 1] += at[k];
	for (ap_id i = 0; i < c->nnode; i++)
		c->order[at[c->part[i]]++] = i;
}

/* Joins all blocks of a part from the first to the last with one key; key[node] < 0: none. Returns the
 * number of blocks. */
static uint32_t join(struct cutting *c, const int32_t *key, uint32_t nblock)
{
	struct ap_mark mark = ap_arena_mark(c->scratch);
	uint32_t *until = AP_NEW_N(c->scratch, uint32_t, nblock), *first, n = 0, reach = 0;
	int32_t nkey = 0, *part;

	for (ap_id i = 0; i < c->nnode; i++)
		nkey = key[i] >= nkey ? key[i] + 1 : nkey;
	first = AP_NEW_N(c->scratch, uint32_t, nkey);
	part = AP_NEW_N(c->scratch, int32_t, nkey); /* of first, from 1 */
	for (uint32_t b = 0; b < nblock; b++)
		until[b] = b;
	for (uint32_t k = 0; k < c->nnode; k++) {
		ap_id node = c->order[k];

		if (key[node] < 0)
			continue;
		if (part[key[node]] != c->part[node] + 1)
			first[key[node]] = c->block[k];
		part[key[node]] = c->part[node] + 1;
		until[first[key[node]]] = c->block[k];
	}
	for (uint32_t k = 0; k < c->nnode; k++) {
		uint32_t old = c->block[k];

		n += k == 0 || old > reach;
		reach = until[old] > reach ? until[old] : reach;
		c->block[k] = n - 1;
	}
	ap_arena_release(c->scratch, mark);
	return n;
}

/* What stands between layers, or a part without any, is one block to begin with. */
static uint32_t begin(struct cutting *c, const int32_t *layer)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < c->nnode; k++) {
		ap_id node = c->order[k], before = k > 0 ? c->order[k - 1] : AP_NONE;

		n += before == AP_NONE || c->part[before] != c->part[node] || layer[before] >= 0 ||
			layer[node] >= 0;
		c->block[k] = n - 1;
	}
	return n;
}

void ap_blocks_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_task *task, struct ap_blocks *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t *of = AP_NEW_N(ctx->arena, uint32_t, g->nnode);
	int32_t *part_of = AP_NEW_N(ctx->scratch, int32_t, g->nnode);
	int32_t *set = AP_NEW_N(ctx->scratch, int32_t, g->nnode), *part, *layer;
	struct cutting c = {.scratch = ctx->scratch, .nnode = g->nnode, .part = part_of,
		.order = AP_NEW_N(ctx->scratch, ap_id, g->nnode),
		.block = AP_NEW_N(ctx->scratch, uint32_t, g->nnode)};
	struct ap_family_chain chain;
	int32_t npart = 1;

	ap_family_chain(ctx, g, &chain);
	for (ap_id i = 0; i < g->nnode; i++) {
		part_of[i] = ap_part_of(step, &g->node[i]);
		npart = part_of[i] >= npart ? part_of[i] + 1 : npart;
		set[i] = task[i].recompute_set == AP_NONE ? -1 : (int32_t)task[i].recompute_set;
	}
	put_in_order(&c, npart);
	out->n = join(&c, chain.layer, begin(&c, chain.layer));
	out->n = join(&c, set, out->n);
	part = AP_NEW_N(ctx->arena, int32_t, out->n);
	layer = AP_NEW_N(ctx->arena, int32_t, out->n);
	for (uint32_t k = c.nnode; k-- > 0;) {
		ap_id node = c.order[k];
		uint32_t b = c.block[k];

		if (k + 1 == c.nnode || c.block[k + 1] != b)
			layer[b] = -1;
		of[node] = b;
		part[b] = part_of[node];
		layer[b] = chain.layer[node] >= 0 ? chain.layer[node] : layer[b];
	}
	out->of = of;
	out->nlayer = chain.n;
	out->layer_of = chain.layer;
	out->part = part;
	out->layer = layer;
	ap_arena_release(ctx->scratch, mark);
}
