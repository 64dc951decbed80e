/* SPDX-License-Identifier: Apache-2.0 */
/* Random parts of tensors. */
#include "make_parts.h"

void ex_make_slice(struct ex_sample *s)
{
	int64_t begin[AP_MAX_RANK], size[AP_MAX_RANK];
	int rank;

	ex_add_any(s, "float32", 3);
	rank = s->in[0].rank;
	for (int d = 0; d < rank; d++) {
		int64_t n = s->in[0].dim[d];

		begin[d] = ex_once_in(s, 2) ? 0 : ex_draw(s, n);
		size[d] = ex_once_in(s, 2) ? -1 : 1 + ex_draw(s, n - begin[d]);
	}
	ex_add_list(s, "begin", (uint32_t)rank, begin);
	ex_add_list(s, "size", (uint32_t)rank, size);
}

/* Entries of a strided slice, and the bits that speak of them. */
struct spec {
	int64_t begin[2 * AP_MAX_RANK], end[2 * AP_MAX_RANK], stride[2 * AP_MAX_RANK];
	uint32_t n;
	int64_t begin_mask, end_mask, ellipsis, added, shrunk;
};

static void entry(struct spec *p, int64_t begin, int64_t end, int64_t stride)
{
	p->begin[p->n] = begin;
	p->end[p->n] = end;
	p->stride[p->n++] = stride;
}

/* A range that is not empty out of n; where masked, other numbers stand in its place. */
static void add_range(struct ex_sample *s, struct spec *p, int64_t n)
{
	int64_t from = ex_draw(s, n), step = 1 + ex_draw(s, 2);
	int64_t to = from + 1 + ex_draw(s, n - from);

	switch (ex_draw(s, 6)) {
	case 0:
		entry(p, from, to, step);
		break;
	case 1: /* backward */
		entry(p, to - 1, from - 1 - n, -step);
		break;
	case 2:
		p->begin_mask |= INT64_C(1) << p->n;
		p->end_mask |= INT64_C(1) << p->n;
		entry(p, 7, -7, ex_once_in(s, 2) ? 1 : -step);
		break;
	default: /* the whole, in one way of several */
		to = n + ex_draw(s, 3);
		entry(p, ex_once_in(s, 2) ? 0 : -n - ex_draw(s, 3), to, 1);
	}
}

/* Goes through the dimensions, naming one, adding one, dropping one or passing over several. */
static void draw_spec(struct ex_sample *s, struct spec *p)
{
	const struct ap_shape *in = &s->in[0];

	for (int d = 0; d < in->rank;) {
		int64_t what = ex_draw(s, 10);

		if (what == 0 && p->n < 3) {
			p->added |= INT64_C(1) << p->n;
			entry(p, 5, 5, 3);
		} else if (what == 1 && !p->ellipsis) {
			p->ellipsis = INT64_C(1) << p->n;
			entry(p, 5, 5, 3);
			d += (int)ex_draw(s, in->rank - d + 1);
		} else if (what == 2) {
			p->shrunk |= INT64_C(1) << p->n;
			entry(p, ex_draw(s, in->dim[d++]), 9, 1);
		} else if (what == 3 && !p->ellipsis && p->n > 0) {
			return;
		} else {
			add_range(s, p, in->dim[d++]);
		}
	}
}

static void add_mask(struct ex_sample *s, const char *name, int64_t mask)
{
	if (mask || ex_once_in(s, 2))
		ex_add_int(s, name, mask);
}

void ex_make_strided(struct ex_sample *s)
{
	struct spec p = {.n = 0};

	ex_add_any(s, "float32", 3);
	draw_spec(s, &p);
	ex_add_list(s, "begin", p.n, p.begin);
	ex_add_list(s, "end", p.n, p.end);
	ex_add_list(s, "strides", p.n, p.stride);
	add_mask(s, "begin_mask", p.begin_mask);
	add_mask(s, "end_mask", p.end_mask);
	add_mask(s, "ellipsis_mask", p.ellipsis);
	add_mask(s, "new_axis_mask", p.added);
	add_mask(s, "shrink_axis_mask", p.shrunk);
}

/* start:end:step of one dimension, not empty, each end counted from the front or the back. */
void ex_make_slice_one(struct ex_sample *s)
{
	bool whole;
	int64_t n, from, to;

	ex_add_any(s, "float32", 3);
	n = s->in[0].dim[ex_add_axis(s, "dim", s->in[0].rank)];
	whole = ex_once_in(s, 3);
	from = whole ? 0 : ex_draw(s, n);
	to = whole ? n : from + 1 + ex_draw(s, n - from);
	ex_add_int(s, "start", ex_once_in(s, 2) ? from : from - n);
	ex_add_int(s, "end", to == n || ex_once_in(s, 2) ? to : to - n);
	ex_add_int(s, "step", whole ? 1 : 1 + ex_draw(s, 3));
}

/* Rows before and behind, the last dimension first; reflected ones must be inside. */
void ex_make_pad(struct ex_sample *s)
{
	static const char *const modes[] = {"constant", "edge", "circular", "reflect"};
	int64_t mode = ex_draw(s, 4), rows[2 * AP_MAX_RANK];
	uint32_t n;

	ex_add_any(s, "float32", 3);
	n = 1 + (uint32_t)ex_draw(s, s->in[0].rank);
	for (uint32_t k = 0; k < n; k++) {
		int64_t most = mode == 0 ? 3 : s->in[0].dim[s->in[0].rank - 1 - k];
		bool none = ex_once_in(s, 2);

		rows[2 * k] = none ? 0 : ex_draw(s, most);
		rows[2 * k + 1] = none ? 0 : ex_draw(s, most);
	}
	ex_add_list(s, "paddings", 2 * n, rows);
	if (mode > 0 || ex_once_in(s, 2))
		ex_add_text(s, "mode", modes[mode]);
	if (mode > 0 || ex_once_in(s, 2))
		return;
	ex_skip_in(s);
	ex_add_in(s, "float32", 0, NULL);
}

static void add_matrices(struct ex_sample *s)
{
	uint8_t rank = (uint8_t)(2 + ex_draw(s, 3));
	int64_t size[AP_MAX_RANK] = {0};

	ex_draw_shape(s, rank, 600, size);
	ex_add_in(s, "float32", rank, size);
}

void ex_make_triangle(struct ex_sample *s)
{
	add_matrices(s);
	if (!ex_once_in(s, 3))
		ex_add_int(s, "diagonal", ex_draw(s, 5) - 2);
}

void ex_make_diagonal(struct ex_sample *s)
{
	int rank, row;

	add_matrices(s);
	rank = s->in[0].rank;
	if (ex_once_in(s, 2))
		ex_add_int(s, "offset", ex_draw(s, 5) - 2);
	if (ex_once_in(s, 3))
		return;
	row = ex_add_axis(s, "axis1", rank);
	ex_add_int(s, "axis2", (row + 1 + ex_draw(s, rank - 1)) % rank);
}
