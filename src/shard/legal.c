/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Legality of one vector of counts, for checking what others chose: shares nothing with the
 * enumeration of space.c, so that each can be tested by the other.
 */
#include <inttypes.h>

#include "base/arena.h"
#include "shard/space.h"

struct candidate {
	struct ap_ctx *ctx;
	const struct ap_bound *b;
	const int32_t *count;
	const struct ap_step *step;
	const char **why;
};

#define SAY(c, ...) (*(c)->why = ap_arena_printf((c)->ctx->arena, __VA_ARGS__), false)

static bool factor_fits(const struct candidate *c, int f)
{
	const struct ap_factor *factor = &c->b->factor[f];
	int64_t extent = ap_factor_extent(c->b, f, c->step);
	int32_t count = c->count[f];

	if (count == 1)
		return true;
	if (count < 1)
		return SAY(c, "factor %c: %" PRId32 " parts, at least 1 is needed", factor->letter,
			count);
	if (factor->flags & AP_FACTOR_FROZEN)
		return SAY(c, "factor %c may not be cut", factor->letter);
	if (extent % count)
		return SAY(c, "factor %c of length %" PRId64 " cannot be cut in %" PRId32
			      " equal parts",
			factor->letter, extent, count);
	return true;
}

static bool devices_suffice(const struct candidate *c, int64_t ndev)
{
	int64_t rest = ndev;

	for (int f = 0; f < c->b->nfactor; f++) {
		if (rest % c->count[f])
			return SAY(c, "the parts do not divide the %" PRId64 " devices", ndev);
		rest /= c->count[f];
	}
	return true;
}

/* The factor whose axis follows f's in the dev_matrix, axes of size one left out; -1 none. */
static int next_cut(const struct candidate *c, int f)
{
	int i = 0;

	while (c->b->dev[i] != f)
		i++;
	while (++i < c->b->ndev)
		if (c->count[c->b->dev[i]] > 1)
			return c->b->dev[i];
	return -1;
}

/* On each rank the dimension stays one interval. */
static bool is_interval(const struct candidate *c, const struct ap_dim *dim, int inner)
{
	const struct ap_factor *factor = c->b->factor;

	for (int i = 0; i < inner; i++) {
		int f = dim->factor[i];

		if (c->count[f] != ap_factor_extent(c->b, f, c->step))
			return SAY(c,
				"factor %c is cut, so factor %c outside it must be cut wholly",
				factor[dim->factor[inner]].letter, factor[f].letter);
	}
	return true;
}

/* And its part number is a coordinate of the ranks along one axis. */
static bool dim_fits(const struct candidate *c, const struct ap_dim *dim)
{
	int last = -1;

	for (int i = 0; i < dim->n; i++) {
		int f = dim->factor[i];

		if (c->count[f] == 1)
			continue;
		if (!(c->b->dealt >> f & 1) && !is_interval(c, dim, i))
			return false;
		if (last >= 0 && next_cut(c, last) != f)
			return SAY(c, "factors %c and %c of one dimension are not adjacent in the "
				      "dev_matrix",
				c->b->factor[last].letter, c->b->factor[f].letter);
		last = f;
	}
	return true;
}

static bool dims_fit(const struct candidate *c, uint16_t n, const struct ap_operand *t)
{
	for (uint16_t i = 0; i < n; i++)
		for (int d = 0; d < t[i].rank; d++)
			if (!dim_fits(c, &t[i].dim[d]))
				return false;
	return true;
}

/* What is dealt along the first dimension of the result makes equal parts of it. */
static bool deal_fits(const struct candidate *c)
{
	const struct ap_dim *dim = &c->b->out[0].dim[0];
	int64_t extent, parts = 1;

	if (!c->b->dealt)
		return true;
	extent = ap_factor_extent(c->b, dim->factor[0], c->step);
	for (int i = 0; i < dim->n; i++)
		parts *= c->count[dim->factor[i]];
	if (extent % parts)
		return SAY(c, "the result's first dimension of length %" PRId64
			      " cannot be dealt in %" PRId64 " equal parts",
			extent, parts);
	return true;
}

bool ap_space_legal(struct ap_ctx *ctx, const struct ap_bound *b, const int32_t *count,
	int64_t ndev, const struct ap_step *step, const char **why)
{
	struct candidate c = {ctx, b, count, step, why};

	for (int f = 0; f < b->nfactor; f++)
		if (!factor_fits(&c, f))
			return false;
	if (!devices_suffice(&c, ndev) || !dims_fit(&c, b->nin, b->in) ||
		!dims_fit(&c, b->nout, b->out) || !deal_fits(&c))
		return false;
	if (!ap_rule_legal(b, count, ndev))
		return SAY(&c, "%s does not allow this combination of cuts (%s)", b->row->name,
			b->row->legal);
	return true;
}
