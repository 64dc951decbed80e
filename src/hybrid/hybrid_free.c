/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that no product with a parameter comes before: what they make can be had in any cut, so
 * they take that of their users, as far as the dev_matrix puts it where it is wanted.
 */
#include "hybrid/hybrid_parts.h"
#include "shard/space.h"

/* The largest cut that a user wants of a result. */
static void widest(const struct hybrid *s, ap_id tensor, struct ap_layout *out)
{
	const struct ap_tensor *t = &s->g->tensor[tensor];
	struct ap_layout l;

	*out = (struct ap_layout){0};
	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct hybrid_node *n = &s->node[t->use[u].node];

		if (!n->want)
			continue;
		ap_hybrid_layout(&s->g->node[t->use[u].node].bound.in[t->use[u].operand], n->want, &l);
		if (out->rank == 0 || ap_layout_parts(&l) > ap_layout_parts(out))
			*out = l;
	}
}

/* Only factors of the batch are cut by dp, unless it is a weight that a user has cut so. */
static void keep_batch(const struct hybrid *s, const struct ap_bound *b, bool weight,
	struct ap_cut_dim *want)
{
	int32_t low = s->tp * s->cp;

	for (int f = 0; f < b->nfactor && !weight; f++)
		if (!(b->factor[f].flags & AP_FACTOR_BATCH))
			ap_hybrid_strip(&want[f], low, low * s->dp);
}

/* Drops the first cut that the ranks would not lie at as its user's; false where there is none. */
static bool drop_displaced(struct hybrid *s, ap_id node, struct ap_cut_dim *want)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	struct ap_placement p;

	if (ap_space_is_imposed(b))
		return false;
	ap_placement_make(b, s->node[node].count, s->ndev, &p);
	for (int f = 0; f < b->nfactor; f++)
		if (p.count[f] > 1 && p.stride[f] != want[f].stride &&
			!(b->factor[f].flags & AP_FACTOR_BATCH)) {
			want[f] = (struct ap_cut_dim){1, 0};
			return true;
		}
	return false;
}

static void decide(struct hybrid *s, ap_id node)
{
	const struct ap_node *n = &s->g->node[node];
	bool weight = n->bound.nout > 0 && s->tensor[n->out[0]].origin <= HYBRID_WEIGHT;
	struct ap_cut_dim want[AP_MAX_FACTOR];
	struct ap_layout l;

	ap_hybrid_uncut(want);
	for (int r = 0; r < n->bound.nout; r++) {
		widest(s, n->out[r], &l);
		if (l.rank > 0)
			ap_hybrid_take(s, &n->bound, &n->bound.out[r], &l, want);
	}
	keep_batch(s, &n->bound, weight, want);
	ap_hybrid_settle(s, &n->bound, want);
	do
		ap_hybrid_apply(s, node, want, NULL);
	while (drop_displaced(s, node, want));
}

void ap_hybrid_free(struct hybrid *s)
{
	for (ap_id i = s->g->nnode; i-- > 0;)
		if (!s->node[i].want)
			decide(s, i);
}
