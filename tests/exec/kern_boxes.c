/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes and what is seen in them. How much a point of a picture counts is a fixed function of the box
 * and of both places, so that every point that is here counts, and no other.
 */
#include "kern_parts.h"
#include "make_parts.h"

static bool encode(const struct ex_job *j)
{
	const struct ex_value *a = &j->in[0], *b = &j->in[1];
	int64_t n = a->box.size[0];

	if (a->box.size[1] != 4 || b->box.size[1] != 4 || b->box.size[0] != n ||
		ex_count(&j->out[0].box) != 4 * n)
		return false;
	for (int64_t i = 0; i < 4 * n; i++) {
		int64_t next = i / 4 * 4 + (i + 1) % 4;
		ex_id side = ex_fn2(j->tape, "side", a->id[next], b->id[next]);

		j->out[0].id[i] = ex_plus(j->tape, side, ex_fn2(j->tape, "place", a->id[i], b->id[i]));
	}
	return true;
}

/* Rows of the result are the boxes of operand 1. */
static bool common(const struct ex_job *j)
{
	const struct ex_box *out = &j->out[0].box;
	int64_t n = j->in[0].box.size[0];

	if (out->size[0] != j->in[1].box.size[0] || out->size[1] != n || j->in[0].box.size[1] != 4 ||
		j->in[1].box.size[1] != 4)
		return false;
	for (int64_t i = 0; i < out->size[0] * n; i++) {
		ex_id sum = 0;

		for (int64_t c = 0; c < 4; c++)
			sum = ex_plus(j->tape, sum, ex_fn2(j->tape, j->type,
				j->in[0].id[i % n * 4 + c], j->in[1].id[i / n * 4 + c]));
		j->out[0].id[i] = sum;
	}
	return true;
}

struct seen { /* a place of the result, and the two numbers that say what is seen there */
	const struct ex_job *j;
	int64_t picture, channel, row, column;
	ex_id vertical, horizontal;
	bool last; /* channels are the last dimension */
};

static ex_id weight(const struct seen *s, ex_id number, int64_t place, int64_t at)
{
	return ex_fn2(s->j->tape, "weight", number, ex_leaf(s->j->tape,
		ex_hash((uint64_t)place, (uint64_t)at)));
}

static ex_id see(const struct seen *s)
{
	const struct ex_value *x = &s->j->in[0];
	int h = s->last ? 1 : 2;
	int64_t at[4];
	ex_id sum = 0;

	at[0] = s->picture;
	at[s->last ? 3 : 1] = s->channel;
	for (at[h] = 0; at[h] < x->box.size[h]; at[h]++)
		for (at[h + 1] = 0; at[h + 1] < x->box.size[h + 1]; at[h + 1]++)
			sum = ex_mad(s->j->tape, sum, ex_get(x, at), ex_times(s->j->tape,
				weight(s, s->vertical, s->row, at[h]),
				weight(s, s->horizontal, s->column, at[h + 1])));
	return sum;
}

static bool crop(const struct ex_job *j)
{
	const struct ex_value *box = &j->in[1];
	struct ex_value *out = &j->out[0];
	int64_t at[AP_MAX_RANK] = {0};

	if (out->box.size[0] != box->box.size[0] || out->box.size[3] != j->in[0].box.size[3] ||
		box->box.size[1] != 4 || j->in[2].box.size[0] != box->box.size[0])
		return false;
	do {
		const ex_id *b = box->id + 4 * at[0];
		struct seen s = {.j = j, .channel = at[3], .row = at[1], .column = at[2], .last = true,
			.picture = (int64_t)ex_value_of(j->tape, j->in[2].id[at[0]]),
			.vertical = ex_plus(j->tape, b[0], b[2]),
			.horizontal = ex_plus(j->tape, b[1], b[3])};

		if (s.picture >= j->in[0].box.size[0])
			return false;
		ex_put(out, at, see(&s));
	} while (ex_step(&out->box, at));
	return true;
}

/* A box is the number of its picture and two corners; no gradient flows into it. */
static bool align(const struct ex_job *j)
{
	struct ex_value *out = &j->out[0];
	int64_t at[AP_MAX_RANK] = {0};

	if (out->box.size[0] != j->in[1].box.size[0] || j->in[1].box.size[1] != 5 ||
		out->box.size[1] != j->in[0].box.size[1])
		return false;
	do {
		const ex_id *b = j->in[1].id + 5 * at[0];
		struct seen s = {.j = j, .channel = at[1], .row = at[2], .column = at[3],
			.picture = (int64_t)(ex_value_of(j->tape, b[0]) %
				(uint64_t)j->in[0].box.size[0]),
			.vertical = ex_leaf(j->tape, ex_value_of(j->tape, b[2])),
			.horizontal = ex_leaf(j->tape, ex_value_of(j->tape, b[3]))};

		ex_put(out, at, see(&s));
	} while (ex_step(&out->box, at));
	return true;
}

static bool sample_grid(const struct ex_job *j)
{
	const struct ex_value *grid = &j->in[1];
	struct ex_value *out = &j->out[0];
	int64_t at[AP_MAX_RANK] = {0};

	for (int d = 0; d < 4; d++)
		if (out->box.size[d] != (d == 0 ? grid->box.size[0] :
			d == 1 ? j->in[0].box.size[1] : grid->box.size[d - 1]))
			return false;
	if (j->in[0].box.size[0] != grid->box.size[0] || grid->box.size[3] != 2)
		return false;
	do {
		int64_t y[] = {at[0], at[2], at[3], 0}, x[] = {at[0], at[2], at[3], 1};
		struct seen s = {.j = j, .picture = at[0], .channel = at[1],
			.vertical = ex_get(grid, y), .horizontal = ex_get(grid, x)};

		ex_put(out, at, see(&s));
	} while (ex_step(&out->box, at));
	return true;
}

static int64_t limit_pictures(const struct ap_node *n, unsigned slot)
{
	return slot == 2 ? n->bound.in[0].size[0] : 0;
}

const struct ex_kernel ex_kernels_boxes[] = {
	{.type = "BoundingBoxEncode", .forward = encode, .make = ex_make_boxes, .no_grad = 3},
	{.type = "IOU", .forward = common, .make = ex_make_boxes, .no_grad = 3},
	{.type = "CropAndResize", .forward = crop, .make = ex_make_crop, .limit = limit_pictures,
		.no_grad = 4},
	{.type = "ROIAlign", .forward = align, .make = ex_make_align, .no_grad = 2},
	{.type = "GridSampler2D", .forward = sample_grid, .make = ex_make_grid},
	{0}
};
