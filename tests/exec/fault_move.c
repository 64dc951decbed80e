/* SPDX-License-Identifier: Apache-2.0 */
/* Redistributions with a fault in them. */
#include <string.h>

#include "base/arena.h"
#include "hw/group.h"
#include "shard/reshard.h"
#include "faults.h"

enum { TRIES = 40 };

/* Some of the axes of a mesh of 2 x 2 x 2 or 2 x 3 x 2, each on a dimension; neighbours may share
 * one. */
static struct ap_layout draw_layout(struct ex_world *w, int rank)
{
	int32_t stride = 1, size[3] = {2, w->ndev == 12 ? 3 : 2, 2};
	struct ap_layout l = {.rank = rank};

	for (int d = 0; d < rank; d++)
		l.dim[d].cut = 1;
	for (int i = 3; i-- > 0;) {
		int d = (int)ex_below(&w->rng, (uint32_t)rank + 1);

		if (d < rank && l.dim[d].cut == 1)
			l.dim[d] = (struct ap_cut_dim){size[i], stride};
		else if (d < rank && l.dim[d].stride * l.dim[d].cut == stride)
			l.dim[d].cut *= size[i];
		stride *= size[i];
	}
	return l;
}

static struct ex_tensor draw_tensor(struct ex_world *w, int rank)
{
	struct ap_shape shape = {.rank = (uint8_t)rank, .dtype = AP_FLOAT32};
	struct ex_tensor x;
	struct ex_box b;

	for (int d = 0; d < rank; d++)
		shape.dim[d] = 24;
	b = ex_box_whole(&shape);
	x = ex_tensor_new(w->ctx->scratch, &b);
	for (int64_t i = 0; i < ex_count(&b); i++)
		x.v[i] = ex_hash(ex_next(&w->rng), 0);
	return x;
}

/* The ranks beside those that cut a layout. */
static void others(const struct ap_layout *l, int64_t ndev, struct ap_axes *out)
{
	const struct ap_axes all = {1, {{1, (int32_t)ndev}}};
	struct ap_axes own = {0};

	for (int d = 0; d < l->rank; d++)
		ap_axes_add(&own, (struct ap_axis){l->dim[d].cut > 1 ? l->dim[d].stride : 1, l->dim[d].cut});
	ap_axes_without(&all, &own, out);
}

enum way { THERE, BACK, SUMMED };

/* There, the gradient back, or its sum back. */
static const char *run(struct ex_world *w, const struct ap_layout *a, const struct ap_layout *b,
	const struct ex_tensor *x, enum way way)
{
	struct ap_reshard_step step[AP_RESHARD_MAX];
	int n = ap_reshard(a, b, x->box.whole, w->ndev, true, step);
	bool back = way == BACK;
	struct ex_shards s;
	const char *why;

	if (way == SUMMED) {
		struct ap_reshard_end from, to;

		ap_reshard_end_make(a, x->box.whole, w->ndev, &to);
		ap_reshard_end_make(b, x->box.whole, w->ndev, &from);
		others(b, w->ndev, &from.partial);
		s = ex_deal_over(w->ctx->scratch, x, b, &from.partial, w->ndev, &w->rng);
		n = ap_reshard_back(&from, &to, AP_RESHARD_ALLTOALL | AP_RESHARD_JOINT, step);
		ex_move(w, step, n, a, &s);
		why = ex_differs(w->ctx, &s, x, a, EX_EVERY);
		return w->trouble ? w->trouble : why;
	}
	if (back) {
		s = ex_deal_partial(w->ctx->scratch, x, b, w->ndev, &w->rng);
		ex_move_back(w, step, n, a, &s);
	} else {
		s = ex_cut(w->ctx->scratch, x, a, w->ndev);
		ex_move(w, step, n, b, &s);
	}
	why = ex_differs(w->ctx, &s, x, back ? a : b, back ? EX_SUM : EX_EVERY);
	return w->trouble ? w->trouble : why;
}

void ex_fault_move(struct ap_ctx *ctx, const struct ex_fault *f, uint64_t seed,
	struct ex_fault_tally *t)
{
	for (uint64_t i = 0; i < TRIES; i++) {
		struct ap_mark mark = ap_arena_mark(ctx->scratch);
		struct ex_world w = {.ctx = ctx, .ndev = i % 2 ? 12 : 8, .rng = 1 + ex_hash(seed, i)};
		int rank = 2 + (int)(i / 2 % 2);
		struct ap_layout a = draw_layout(&w, rank), b = draw_layout(&w, rank);
		struct ex_tensor x = draw_tensor(&w, rank);
		uint64_t rng = w.rng;
		const char *why;

		ex_fault_note(t, run(&w, &a, &b, &x, (enum way)(i / 4 % 3)), false, false);
		w.rng = rng;
		w.fault = f;
		why = run(&w, &a, &b, &x, (enum way)(i / 4 % 3));
		ex_fault_note(t, why, true, w.faulted);
		ap_arena_release(ctx->scratch, mark);
	}
}
