/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of ranks that factors are cut over, and the counts that come of them. */
#include "base/arena.h"
#include "base/num.h"
#include "hybrid/hybrid_parts.h"
#include "shard/space.h"

static const struct ap_cut_dim uncut = {1, 0};

void ap_hybrid_uncut(struct ap_cut_dim want[AP_MAX_FACTOR])
{
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		want[f] = uncut;
}

bool ap_hybrid_meets(const struct ap_cut_dim *range, int32_t low, int32_t high)
{
	return range->cut > 1 && range->stride < high && (int64_t)range->stride * range->cut > low;
}

void ap_hybrid_strip(struct ap_cut_dim *range, int32_t low, int32_t high)
{
	int64_t end = (int64_t)range->stride * range->cut;

	if (!ap_hybrid_meets(range, low, high))
		return;
	*range = end > high ? (struct ap_cut_dim){(int32_t)(end / high), high} : uncut;
}

static void take_dim(const struct hybrid *s, const struct ap_bound *b, const struct ap_dim *dim,
	struct ap_cut_dim range, struct ap_cut_dim *want)
{
	for (int k = 0; k < dim->n && range.cut > 1; k++) {
		int f = dim->factor[k];
		int64_t extent = ap_factor_extent(b, f, s->step);
		int32_t cut = (int32_t)ap_gcd(range.cut, extent);

		if (b->factor[f].flags & AP_FACTOR_FROZEN)
			return;
		range.cut /= cut;
		if (cut > want[f].cut)
			want[f] = (struct ap_cut_dim){cut, range.stride * range.cut};
		if (cut != extent)
			return;
	}
}

void ap_hybrid_take(const struct hybrid *s, const struct ap_bound *b, const struct ap_operand *o,
	const struct ap_layout *l, struct ap_cut_dim *want)
{
	for (int d = 0; d < o->rank; d++) {
		struct ap_dim dim = o->dim[d];

		if (o == b->out && d == 0 && b->dealt_rows > 0)
			dim.n--; /* what the executor deals is nobody's wish */
		take_dim(s, b, &dim, l->dim[d], want);
	}
}

static struct ap_cut_dim compose(const struct ap_dim *dim, const struct ap_cut_dim *want)
{
	struct ap_cut_dim all = uncut;

	for (int k = 0; k < dim->n; k++) {
		struct ap_cut_dim r = want[dim->factor[k]];

		if (r.cut == 1)
			continue;
		if (all.cut > 1 && all.stride != r.stride * r.cut)
			break;
		all.cut *= r.cut;
		all.stride = r.stride;
	}
	return all;
}

void ap_hybrid_layout(const struct ap_operand *o, const struct ap_cut_dim *want, struct ap_layout *out)
{
	*out = (struct ap_layout){.rank = o->rank};
	for (int d = 0; d < o->rank; d++)
		out->dim[d] = compose(&o->dim[d], want);
}

int ap_hybrid_batch_factor(const struct ap_bound *b)
{
	for (int i = 0; i < b->ndev; i++)
		if (b->factor[b->dev[i]].flags & AP_FACTOR_BATCH)
			return b->factor[b->dev[i]].flags & AP_FACTOR_FROZEN ? -1 : b->dev[i];
	return -1;
}

static void cut_batch(const struct hybrid *s, const struct ap_bound *b, struct ap_cut_dim *want)
{
	int32_t low = s->tp * s->cp;
	int f = ap_hybrid_batch_factor(b);

	for (int i = 0; i < b->nfactor; i++)
		if (s->ep == 1 && !(b->factor[i].flags & AP_FACTOR_BATCH) &&
			ap_hybrid_meets(&want[i], low, low * s->dp))
			want[i] = uncut;
		else if (ap_hybrid_meets(&want[i], low, low * s->dp))
			return;
	if (f >= 0 && s->dp > 1 && ap_factor_extent(b, f, s->step) % s->dp == 0)
		want[f] = (struct ap_cut_dim){s->dp, low};
}

static void claim(struct ap_cut_dim *want, int f, uint32_t *taken)
{
	for (int o = 0; o < AP_MAX_FACTOR && want[f].cut > 1; o++)
		if (*taken >> o & 1 &&
			ap_hybrid_meets(&want[o], want[f].stride, want[f].stride * want[f].cut))
			want[f] = uncut;
	*taken |= UINT32_C(1) << f;
}

void ap_hybrid_settle(const struct hybrid *s, const struct ap_bound *b, struct ap_cut_dim *want)
{
	uint32_t taken = 0;

	cut_batch(s, b, want);
	for (int i = 0; i < b->ndev; i++)
		if (b->factor[b->dev[i]].flags & AP_FACTOR_BATCH)
			claim(want, b->dev[i], &taken);
	for (int i = 0; i < b->ndev; i++)
		if (!(taken >> b->dev[i] & 1))
			claim(want, b->dev[i], &taken);
}

/* Leaves out cuts of factors, the innermost first, the batch last, until the rest is legal. */
static void make_legal(struct hybrid *s, const struct ap_bound *b, struct ap_cut_dim *want, int32_t *count)
{
	for (int pass = 0; pass < 2; pass++)
		for (int i = b->ndev; i-- > 0;) {
			int f = b->dev[i];

			if (count[f] == 1 || (pass == 0 && b->factor[f].flags & AP_FACTOR_BATCH))
				continue;
			want[f] = uncut;
			count[f] = 1;
			if (ap_space_legal(s->ctx, b, count, s->ndev, s->step, NULL))
				return;
		}
}

void ap_hybrid_apply(struct hybrid *s, ap_id node, const struct ap_cut_dim *want, const char **dropped)
{
	const struct ap_bound *b = &s->g->node[node].bound;
	struct hybrid_node *n = &s->node[node];

	n->want = ap_arena_memdup(s->ctx->scratch, want, AP_MAX_FACTOR * sizeof *want);
	n->count = AP_NEW_N(s->ctx->arena, int32_t, AP_MAX_FACTOR);
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		n->count[f] = f < b->nfactor ? want[f].cut : 1;
	if (dropped)
		*dropped = NULL;
	if (ap_space_is_imposed(b)) { /* what it hands on is wanted all the same */
		ap_space_start(b, s->ndev, n->count);
		return;
	}
	if (!ap_space_legal(s->ctx, b, n->count, s->ndev, s->step, dropped))
		make_legal(s, b, n->want, n->count);
}
