/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Legality of one vector of counts, for checking what others chose: shares nothing with the
 * enumeration of space.c, so that each can be tested by the other.
 */
#include "shard/legal.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/str.h"
#include "rule/deal.h"
#include "rule/legal.h"
#include "shard/refusal.h"

struct candidate {
	struct ap_ctx *ctx;
	const struct ap_bound *b;
	const int32_t *count; /* of parts */
	uint32_t dealt; /* factors whose sums are */
	int64_t ndev;
	const struct ap_step *step;
	const char **why; /* NULL: no words are wanted */
};

#define SAY(c, ...) \
	((c)->why ? *(c)->why = ap_arena_printf((c)->ctx->arena, __VA_ARGS__), false : false)

static const char *place(const struct candidate *c, const struct ap_operand *t, int dim)
{
	return ap_cut_place(c->ctx, c->b, t, dim, c->step);
}

/* A factor is refused; `allowed` ends the sentence. */
static bool refuse_factor(const struct candidate *c, int f, const char *allowed)
{
	const struct ap_operand *t;
	int dim = 0;

	if (!c->why)
		return false;
	t = ap_cut_along(c->b, f, &dim);
	if (t->dim[dim].n == 1)
		return SAY(c, "%s: %" PRId32 " parts; %s", place(c, t, dim), c->count[f], allowed);
	return SAY(c, "%s: %" PRId32 " parts of its factor of %" PRId64 "; %s", place(c, t, dim),
		c->count[f], c->b->factor[f].size, allowed);
}

/* Why the executor leaves no choice. */
static const char *imposed(const struct candidate *c, int64_t parts)
{
	if (!c->why)
		return "";
	return ap_arena_printf(c->ctx->arena, "%" PRId64 " is allowed: MindSpore takes %s for batch "
		"parallel, dimension 0 by all devices of the stage where it divides, of operand and result, "
		"else whole", parts, c->b->row->name);
}

static bool factor_fits(const struct candidate *c, int f)
{
	int64_t extent = ap_factor_extent(c->b, f, c->step);
	int32_t count = c->count[f];

	if (c->b->factor[f].flags & AP_FACTOR_WHOLLY && count != c->ndev)
		return refuse_factor(c, f, imposed(c, c->ndev));
	if (count == 1)
		return true;
	if (c->b->factor[f].flags & AP_FACTOR_EITHER && count != c->ndev)
		return refuse_factor(c, f, "1 or the number of devices is allowed");
	if (count < 1)
		return refuse_factor(c, f, "at least 1 is needed");
	if (c->b->factor[f].flags & AP_FACTOR_BARRED)
		return refuse_factor(c, f, "a rule forbids to cut it");
	if (c->b->factor[f].flags & AP_FACTOR_FROZEN)
		return refuse_factor(c, f, ap_space_is_imposed(c->b) ? imposed(c, 1) : "1 is allowed");
	if (extent % count)
		return refuse_factor(c, f, c->why ? ap_cut_allowed(c->ctx, extent, c->ndev) : "");
	return true;
}

static const char *all_parts(const struct candidate *c)
{
	struct ap_str s;

	ap_str_init(&s, c->ctx->arena);
	for (int f = 0; f < c->b->nfactor; f++)
		if (c->count[f] > 1)
			ap_str_addf(&s, "%s%" PRId32, s.len ? " x " : "", c->count[f]);
	return s.s;
}

static bool devices_suffice(const struct candidate *c)
{
	int64_t rest = c->ndev;

	for (int f = 0; f < c->b->nfactor; f++) {
		if (rest % c->count[f])
			return SAY(c, "%s parts; a divisor of the %" PRId64 " devices is allowed",
				all_parts(c), c->ndev);
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
static bool is_interval(const struct candidate *c, const struct ap_operand *t, int d, int inner)
{
	const struct ap_dim *dim = &t->dim[d];

	for (int i = 0; i < inner; i++) {
		int f = dim->factor[i];

		if (c->count[f] != ap_factor_extent(c->b, f, c->step))
			return SAY(c, "%s: %" PRId32 " parts of its factor of %" PRId64
				"; 1 is allowed unless its factor of %" PRId64 " outside that is cut "
				"wholly", place(c, t, d), c->count[dim->factor[inner]],
				c->b->factor[dim->factor[inner]].size, c->b->factor[f].size);
	}
	return true;
}

/* And its part number is a coordinate of the ranks along one axis. */
static bool dim_fits(const struct candidate *c, const struct ap_operand *t, int d)
{
	const struct ap_dim *dim = &t->dim[d];
	uint32_t summed = c->b->dealt & ~c->dealt;
	int last = -1;

	for (int i = 0; i < dim->n; i++) {
		int f = dim->factor[i];

		if (c->count[f] == 1 || (t == c->b->out && summed >> f & 1))
			continue;
		if (!(c->b->dealt >> f & 1) && !is_interval(c, t, d, i))
			return false;
		if (last >= 0 && next_cut(c, last) != f)
			return SAY(c, "%s: its factors of %" PRId64 " and %" PRId64
				" are both cut, and no neighbours in the dev_matrix; one of them is "
				"allowed", place(c, t, d), c->b->factor[last].size,
				c->b->factor[f].size);
		last = f;
	}
	return true;
}

static bool dims_fit(const struct candidate *c, uint16_t n, const struct ap_operand *t)
{
	for (uint16_t i = 0; i < n; i++)
		for (int d = 0; d < t[i].rank; d++)
			if (!dim_fits(c, &t[i], d))
				return false;
	return true;
}

/* What is dealt along the first dimension of the result makes equal parts of it. */
static bool deal_fits(const struct candidate *c)
{
	const struct ap_dim *dim = &c->b->out[0].dim[0];
	int64_t extent, parts = 1;

	if (!c->dealt)
		return true;
	extent = ap_factor_extent(c->b, dim->factor[0], c->step);
	for (int i = 0; i < dim->n; i++)
		parts *= c->count[dim->factor[i]];
	if (extent % parts)
		return SAY(c, "%s: %" PRId64 " parts with those of the sum dealt; %s",
			place(c, &c->b->out[0], 0), parts, ap_cut_allowed(c->ctx, extent, c->ndev));
	return true;
}

static bool condition_holds(const struct candidate *c)
{
	struct ap_legal_why why;

	if (ap_rule_legal(c->b, c->count, c->ndev, c->step->executor == AP_EXECUTOR_MINDSPORE, &why))
		return true;
	return SAY(c, "%s: %" PRId64 " parts; %s", place(c, why.tensor, why.dim),
		why.parts, why.allowed);
}

bool ap_space_legal(struct ap_ctx *ctx, const struct ap_bound *b, const int32_t *count,
	int64_t ndev, const struct ap_step *step, const char **why)
{
	int32_t parts[AP_MAX_FACTOR];
	struct candidate c = {ctx, b, parts, 0, ndev, step, why};

	for (int f = 0; f < b->nfactor; f++) {
		parts[f] = ap_rule_asks(b, count, f) ? -count[f] : count[f];
		if (!factor_fits(&c, f))
			return false;
	}
	c.dealt = ap_rule_dealt(b, count);
	return devices_suffice(&c) && dims_fit(&c, b->nin, b->in) && dims_fit(&c, b->nout, b->out) &&
		deal_fits(&c) && condition_holds(&c);
}
