/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/conflict.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "shard/strategy.h"

#define MOST_VECTORS 32 /* in a strategy */

struct choice {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	int64_t ndev;
	const int32_t *const *counts;
};

static void place(const struct choice *c, ap_id node, struct ap_placement *out)
{
	ap_placement_make(&c->g->node[node].bound, c->counts[node],
		ap_graph_devices(c->g, node, c->ndev), out);
}

static bool same_layout(const struct choice *c, const struct ap_use *a, const struct ap_use *b)
{
	struct ap_placement pa, pb;
	struct ap_layout la = {0}, lb = {0};

	place(c, a->node, &pa);
	place(c, b->node, &pb);
	return ap_layout_make(&pa, &pa.bound->in[a->operand], &la) &&
		ap_layout_make(&pb, &pb.bound->in[b->operand], &lb) && ap_layout_equal(&la, &lb);
}

/* Do all decided users hold the parameter in the same layout? */
static bool users_agree(const struct choice *c, const struct ap_tensor *t, ap_id *node)
{
	const struct ap_use *first = NULL;

	for (uint32_t u = 0; u < t->nuse; u++) {
		if (!c->counts[t->use[u].node])
			continue;
		if (!first)
			first = &t->use[u];
		else if (!same_layout(c, first, &t->use[u])) {
			*node = t->use[u].node;
			return false;
		}
	}
	return true;
}

static bool same_strategy(const struct choice *c, ap_id a, ap_id b)
{
	uint8_t ra[MOST_VECTORS] = {0}, rb[MOST_VECTORS] = {0};
	int32_t ca[MOST_VECTORS][AP_MAX_RANK] = {{0}}, cb[MOST_VECTORS][AP_MAX_RANK] = {{0}};
	struct ap_placement pa, pb;

	place(c, a, &pa);
	place(c, b, &pb);
	return ap_space_to_strategy(&pa, ra, ca, MOST_VECTORS) ==
		ap_space_to_strategy(&pb, rb, cb, MOST_VECTORS) &&
		memcmp(ra, rb, sizeof ra) == 0 && memcmp(ca, cb, sizeof ca) == 0;
}

/* [ntensor] number of operators named after a parameter. In scratch. */
static const uint32_t *count_named(const struct choice *c)
{
	uint32_t *named = AP_NEW_N(c->ctx->scratch, uint32_t, c->g->ntensor);

	for (ap_id i = 0; i < c->g->nnode; i++)
		if (c->g->node[i].param != AP_NONE)
			named[c->g->node[i].param]++;
	return named;
}

/* Do all operators with one key have the same strategy? */
static bool keys_agree(const struct choice *c, ap_id *node)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	struct ap_map *keys = ap_map_create(c->ctx->scratch);
	ap_id *first = AP_NEW_N(c->ctx->scratch, ap_id, c->g->nnode);
	const uint32_t *named = count_named(c);
	bool agree = true;

	for (ap_id i = 0; i < c->g->nnode && agree; i++) {
		ap_id param = c->g->node[i].param, id;
		bool fresh;

		if (param == AP_NONE || named[param] < 2 || !c->counts[i])
			continue;
		id = ap_map_put_str(keys, ap_task_tie(c->ctx, c->g, i), &fresh);
		if (fresh)
			first[id] = i;
		agree = fresh || same_strategy(c, first[id], i);
		*node = i;
	}
	ap_arena_release(c->ctx->scratch, mark);
	return agree;
}

/* Do all decided operators with one number have equal counts? */
static bool same_agree(const struct choice *c, ap_id *node)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	ap_id *first = AP_NEW_N(c->ctx->scratch, ap_id, c->g->nnode + 1);
	bool agree = true;

	for (ap_id i = 0; i < c->g->nnode && agree; i++) {
		const struct ap_node *n = &c->g->node[i];
		const struct ap_node *of = n->same && first[n->same] ? &c->g->node[first[n->same] - 1] : NULL;

		if (!n->same || !c->counts[i])
			continue;
		if (!of)
			first[n->same] = i + 1;
		else
			agree = of->bound.nfactor == n->bound.nfactor && memcmp(c->counts[i],
				c->counts[first[n->same] - 1], n->bound.nfactor * sizeof **c->counts) == 0;
		*node = i;
	}
	ap_arena_release(c->ctx->scratch, mark);
	return agree;
}

const char *ap_plan_conflict(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const int32_t *const *counts, ap_id *node)
{
	struct choice c = {ctx, g, ndev, counts};

	for (ap_id i = 0; i < c.g->ntensor; i++)
		if (c.g->tensor[i].kind == AP_TENSOR_PARAM &&
			!users_agree(&c, &c.g->tensor[i], node))
			return "users of a shared parameter would hold it in different layouts";
	if (!keys_agree(&c, node))
		return "operators that share a checkpoint key would have different strategies";
	if (!same_agree(&c, node))
		return "operators that a rule says are the same would be cut differently";
	return NULL;
}
