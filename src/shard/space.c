/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/space.h"

#include <assert.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "rule/deal.h"
#include "rule/legal.h"
#include "rule/op.h"

/* The length of dimension d of an operand on one device, of a micro-batch. */
static int64_t slice_length(const struct ap_bound *b, const struct ap_operand *o, int d,
	const int32_t *count, const struct ap_step *step)
{
	int64_t length = o->size[d];

	for (int i = 0; i < o->dim[d].n; i++) {
		uint8_t f = o->dim[d].factor[i];

		length = length / b->factor[f].size *
			(ap_factor_extent(b, f, step) / ap_rule_parts(count[f]));
	}
	return length;
}

/* A product of two operands, without a window: what MindSpore aligns the slices of. */
static bool is_product(const struct ap_bound *b)
{
	return b->row->unit == AP_OP_CUBE && b->nwindow == 0 && b->nin == 2 && b->in[0].rank >= 2 &&
		b->in[1].rank >= 2;
}

static bool is_aligned(const struct ap_bound *b, const int32_t *count, const struct ap_step *step)
{
	for (uint16_t i = 0; i < b->nin; i++)
		for (int d = b->in[i].rank - 2; d < b->in[i].rank; d++)
			if (slice_length(b, &b->in[i], d, count, step) % step->slice_align)
				return false;
	return true;
}

bool ap_space_wanted(const struct ap_bound *b, const int32_t *count, int64_t ndev,
	const struct ap_step *step)
{
	int64_t parts = 1;

	if ((!step->fully_use && !step->slice_align) || b->row->unit == AP_OP_LINK ||
		!ap_op_has_strategy(b->row))
		return true; /* there is no strategy of its own to search */
	for (int f = 0; f < b->nfactor; f++)
		parts *= ap_rule_parts(count[f]);
	if (parts == 1)
		return true;
	if (step->fully_use && parts != ndev)
		return false;
	return !step->slice_align || !is_product(b) || is_aligned(b, count, step);
}

#define MAX_DIVISORS 240 /* of any number up to AP_MAX_DEVICES */

int64_t ap_factor_extent(const struct ap_bound *b, int f, const struct ap_step *step)
{
	const struct ap_factor *factor = &b->factor[f];

	if (!(factor->flags & AP_FACTOR_BATCH))
		return factor->size;
	assert(factor->size % step->micro_batches == 0);
	return factor->size / step->micro_batches;
}

/* An enumeration under way. */
struct walk {
	struct ap_ctx *ctx;
	const struct ap_bound *b;
	const struct ap_step *step;
	int64_t ndev;
	int64_t extent[AP_MAX_FACTOR];
	uint32_t outer[AP_MAX_FACTOR]; /* factors before it in a composed dimension */
	bool composed; /* there is a composed dimension */
	int ndiv[AP_MAX_FACTOR];
	int32_t div[AP_MAX_FACTOR][MAX_DIVISORS]; /* counts a factor may take, ascending */
	int32_t parts[AP_MAX_FACTOR];
	int at[AP_MAX_FACTOR]; /* odometer, a wheel per factor in dev order: index into its div */
	int64_t left[AP_MAX_FACTOR + 1]; /* devices that the wheels before it leave */
	AP_VEC(int32_t) found; /* counts of all candidates, in scratch */
	uint32_t nfound;
};

static void list_divisors(struct walk *w, int f)
{
	int64_t list[MAX_DIVISORS];
	uint8_t flags = w->b->factor[f].flags;
	bool frozen = flags & (AP_FACTOR_FROZEN | AP_FACTOR_BARRED);
	int64_t common = frozen ? 1 : ap_gcd(w->extent[f], w->ndev);
	size_t n = ap_divisors(common, list, MAX_DIVISORS);

	assert(n <= MAX_DIVISORS);
	if (flags & AP_FACTOR_WHOLLY) {
		w->ndiv[f] = 1;
		w->div[f][0] = (int32_t)w->ndev;
		return;
	}
	if (flags & AP_FACTOR_EITHER) { /* if all devices divide it, they come last */
		n = common == w->ndev && n > 1 ? 2 : 1;
		list[n - 1] = n > 1 ? common : 1;
	}
	w->ndiv[f] = (int)n;
	for (size_t i = 0; i < n; i++)
		w->div[f][i] = (int32_t)list[i];
}

static void note_composed(struct walk *w, uint16_t n, const struct ap_operand *t)
{
	for (; n > 0; n--, t++)
		for (int d = 0; d < t->rank; d++) {
			const struct ap_dim *dim = &t->dim[d];
			uint32_t outer = 0;

			w->composed = w->composed || dim->n > 1;
			for (int i = 0; i < dim->n; i++) {
				bool dealt = w->b->dealt >> dim->factor[i] & 1;

				w->outer[dim->factor[i]] |= dealt ? 0 : outer;
				outer |= 1u << dim->factor[i];
			}
		}
}

static bool have_layouts(const struct ap_placement *p, uint16_t n, const struct ap_operand *t)
{
	struct ap_layout l;

	for (; n > 0; n--, t++)
		if (!ap_layout_make(p, t, &l))
			return false;
	return true;
}

static bool deals_evenly(const struct walk *w)
{
	const struct ap_dim *dim = &w->b->out[0].dim[0];
	int64_t rest = w->extent[dim->factor[0]];

	for (int i = 0; i < dim->n; rest /= w->parts[dim->factor[i++]])
		if (rest % w->parts[dim->factor[i]])
			return false;
	return true;
}

static bool composition_fits(const struct walk *w, const int32_t *count)
{
	struct ap_placement p;

	for (int f = 0; f < w->b->nfactor; f++)
		for (int o = 0; w->parts[f] > 1 && o < w->b->nfactor; o++)
			if (w->outer[f] >> o & 1 && w->parts[o] != w->extent[o])
				return false;
	ap_placement_make(w->b, count, w->ndev, &p);
	if (p.dealt && !deals_evenly(w))
		return false;
	return have_layouts(&p, w->b->nin, w->b->in) && have_layouts(&p, w->b->nout, w->b->out);
}

static void take_as(struct walk *w, const int32_t *count)
{
	if (w->composed && !composition_fits(w, count))
		return;
	for (int f = 0; f < w->b->nfactor; f++)
		AP_PUSH(w->ctx->scratch, w->found, count[f]);
	w->nfound++;
}

static void take(struct walk *w)
{
	int32_t asking[AP_MAX_FACTOR];
	uint32_t dealt = 0;

	if (!ap_rule_legal(w->b, w->parts, w->ndev, w->step->executor == AP_EXECUTOR_MINDSPORE, NULL) ||
		!ap_space_wanted(w->b, w->parts, w->ndev, w->step))
		return;
	take_as(w, w->parts);
	for (int f = 0; f < w->b->nfactor; f++) {
		asking[f] = w->parts[f];
		if (w->b->deal_asked && w->b->dealt >> f & 1 && w->parts[f] > 1) {
			asking[f] = -asking[f];
			dealt |= UINT32_C(1) << f;
		}
	}
	if (dealt & ~ap_rule_dealt(w->b, w->parts))
		take_as(w, asking);
}

/* Turns wheel i to its next smaller count; false, and back to its start, after the last. */
static bool turn(struct walk *w, int i)
{
	int f = w->b->dev[i];

	do
		w->at[i]--;
	while (w->at[i] >= 0 && w->left[i] % w->div[f][w->at[i]]);
	if (w->at[i] < 0) {
		w->at[i] = w->ndiv[f];
		return false;
	}
	w->parts[f] = w->div[f][w->at[i]];
	w->left[i + 1] = w->left[i] / w->parts[f];
	return true;
}

void ap_space_start(const struct ap_bound *b, int64_t ndev, int32_t count[AP_MAX_FACTOR])
{
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		count[f] = f < b->nfactor && b->factor[f].flags & AP_FACTOR_WHOLLY ? (int32_t)ndev : 1;
}

bool ap_space_is_imposed(const struct ap_bound *b)
{
	for (int f = 0; f < b->nfactor; f++)
		if (!(b->factor[f].flags & (AP_FACTOR_FROZEN | AP_FACTOR_WHOLLY)))
			return false;
	return ap_op_is_batch_parallel(b->row);
}

void ap_space_make(struct ap_ctx *ctx, const struct ap_bound *b, int64_t ndev,
	const struct ap_step *step, struct ap_space *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct walk *w = AP_NEW(ctx->scratch, struct walk);
	int n, i = 0;

	assert(ndev >= 1 && ndev <= AP_MAX_DEVICES && b->ndev == b->nfactor);
	w->ctx = ctx;
	w->b = b;
	w->step = step;
	w->ndev = ndev;
	for (int f = 0; f < b->nfactor; f++) {
		w->extent[f] = ap_factor_extent(b, f, step);
		list_divisors(w, f);
	}
	note_composed(w, b->nin, b->in);
	note_composed(w, b->nout, b->out);
	n = w->b->ndev;
	w->left[0] = w->ndev;
	for (int j = 0; j < n; j++)
		w->at[j] = w->ndiv[w->b->dev[j]];
	while (i >= 0)
		if (i < n && turn(w, i)) {
			i++;
		} else {
			if (i == n)
				take(w);
			i--;
		}
	out->n = w->nfound;
	out->nfactor = b->nfactor;
	out->count = ap_arena_memdup(ctx->arena, w->found.v, w->found.n * sizeof *w->found.v);
	ap_arena_release(ctx->scratch, mark);
}
