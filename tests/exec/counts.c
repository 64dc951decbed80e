/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "cost/conflict.h"
#include "cost/pins.h"
#include "shard/space.h"
#include "program.h"

struct ex_choice {
	const struct ap_graph *g;
	int64_t ndev;
	struct ap_space *space; /* [nnode] */
	const int32_t *const *fixed; /* by pins; may be NULL */
	bool *tied; /* [nnode] by a parameter that others use, too */
};

struct ex_choice *ex_choice_make(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_step *step)
{
	struct ex_choice *c = AP_NEW(ctx->arena, struct ex_choice);

	c->g = g;
	c->ndev = ndev;
	c->space = AP_NEW_N(ctx->arena, struct ap_space, g->nnode);
	c->tied = AP_NEW_N(ctx->arena, bool, g->nnode);
	if (ap_pins_make(ctx, g, ndev, step, NULL, &c->fixed) != AP_OK)
		return NULL;
	for (ap_id i = 0; i < g->nnode; i++) {
		ap_space_make(ctx, &g->node[i].bound, ap_graph_devices(g, i, ndev), step, &c->space[i]);
		for (int k = 0; k < g->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[k]];

			c->tied[i] |= t->kind == AP_TENSOR_PARAM && t->nuse > 1;
		}
	}
	return c;
}

double ex_choice_picks(const struct ex_choice *c)
{
	double n = 1;

	for (ap_id i = 0; i < c->g->nnode; i++)
		n *= c->fixed && c->fixed[i] ? 1 : c->space[i].n;
	return n;
}

/* One of node i's candidates that goes with what is chosen so far; NULL: none does. */
static const int32_t *draw(struct ap_ctx *ctx, const struct ex_choice *c, const int32_t **counts, ap_id i,
	uint64_t *rng)
{
	const struct ap_space *s = &c->space[i];
	uint32_t n = 0, *fit = AP_NEW_N(ctx->scratch, uint32_t, s->n);
	ap_id node;

	for (uint32_t k = 0; k < s->n; k++) {
		counts[i] = s->count + (size_t)k * s->nfactor;
		if (!c->tied[i] || !ap_plan_conflict(ctx, c->g, c->ndev, counts, &node))
			fit[n++] = k;
	}
	return n ? s->count + (size_t)fit[ex_below(rng, n)] * s->nfactor : NULL;
}

const int32_t *const *ex_choice_draw(struct ap_ctx *ctx, const struct ex_choice *c, uint64_t *rng)
{
	const int32_t **counts = AP_NEW_N(ctx->arena, const int32_t *, c->g->nnode);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	bool found = true;

	for (ap_id i = 0; i < c->g->nnode; i++)
		counts[i] = c->fixed ? c->fixed[i] : NULL;
	for (ap_id i = 0; i < c->g->nnode && found; i++)
		if (!counts[i]) {
			counts[i] = draw(ctx, c, counts, i, rng);
			found = counts[i] != NULL;
		}
	ap_arena_release(ctx->scratch, mark);
	return found ? counts : NULL;
}
