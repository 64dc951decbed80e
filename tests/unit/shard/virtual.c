/* SPDX-License-Identifier: Apache-2.0 */
#include "virtual.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define MAX_RANKS 64

struct world {
	int64_t ndev;
	int rank;
	int64_t len[AP_MAX_RANK]; /* of the running slice, the same on every rank */
	int32_t *slice[MAX_RANKS], *next[MAX_RANKS];
};

static int64_t product(const int64_t *v, int n)
{
	int64_t p = 1;

	for (int i = 0; i < n; i++)
		p *= v[i];
	return p;
}

static int64_t part_of(const struct ap_cut_dim *dim, int64_t rank)
{
	return dim->cut == 1 ? 0 : rank / dim->stride % dim->cut;
}

/* The numbers (row-major index in the tensor) of a rank's slice. */
static void fill(const struct ap_layout *l, const int64_t *size, int64_t rank, int32_t *out)
{
	int64_t len[AP_MAX_RANK];

	ap_layout_slice(l, size, len);
	for (int64_t i = 0; i < product(len, l->rank); i++) {
		int64_t left = i, index = 0, weight = 1;

		for (int d = l->rank - 1; d >= 0; d--) {
			index += (part_of(&l->dim[d], rank) * len[d] + left % len[d]) * weight;
			left /= len[d];
			weight *= size[d];
		}
		out[i] = (int32_t)index;
	}
}

struct view { /* a slice as [before][parts][after] */
	int64_t before, parts, after;
};

static struct view view_of(const struct world *w, int dim, int64_t outer, int64_t parts)
{
	struct view v = {product(w->len, dim) * outer, parts, 0};

	REQUIRE(w->len[dim] % (outer * parts) == 0);
	v.after = product(w->len, w->rank) / (v.before * parts);
	return v;
}

static void take_part(struct view v, int64_t part, const int32_t *slice, int32_t *piece)
{
	for (int64_t i = 0; i < v.before; i++)
		memcpy(piece + i * v.after, slice + (i * v.parts + part) * v.after,
			(size_t)v.after * sizeof *piece);
}

static void put_part(struct view v, int64_t part, const int32_t *piece, int32_t *slice)
{
	for (int64_t i = 0; i < v.before; i++)
		memcpy(slice + (i * v.parts + part) * v.after, piece + i * v.after,
			(size_t)v.after * sizeof *piece);
}

static void run_step(struct world *w, const struct ap_reshard_step *s, int32_t *piece)
{
	struct ap_axes axes = {1, {s->axis}};
	struct view from = {0}, to = {0};
	bool cut = s->move != AP_MOVE_GATHER, join = s->move != AP_MOVE_SLICE;
	int concat = s->move == AP_MOVE_GATHER ? s->dim : s->concat;

	REQUIRE(s->before == product(w->len, w->rank));
	if (cut) {
		from = view_of(w, s->dim, s->outer, s->axis.size);
		w->len[s->dim] /= s->axis.size;
	}
	if (join) {
		w->len[concat] *= s->axis.size;
		to = view_of(w, concat, cut ? s->concat_outer : s->outer, s->axis.size);
	}
	REQUIRE(s->after == product(w->len, w->rank));

	for (int64_t r = 0; r < w->ndev; r++) {
		int64_t group[MAX_RANKS], own = r / s->axis.stride % s->axis.size;

		ap_axes_group(&axes, r, group);
		REQUIRE(group[own] == r);
		for (int64_t i = 0; join && i < s->axis.size; i++) {
			const int32_t *sent = w->slice[group[i]];

			if (cut)
				take_part(from, own, sent, piece);
			put_part(to, i, cut ? piece : sent, w->next[r]);
		}
		if (!join)
			take_part(from, own, w->slice[r], w->next[r]);
	}
	for (int64_t r = 0; r < w->ndev; r++) {
		int32_t *old = w->slice[r];

		w->slice[r] = w->next[r];
		w->next[r] = old;
	}
}

/* A buffer that only grows, as hundreds of thousands of checks each need one. */
static int32_t *buffer(size_t count)
{
	static int32_t *memory;
	static size_t capacity;

	if (count > capacity) {
		capacity = 2 * count;
		free(memory);
		memory = malloc(capacity * sizeof *memory);
		REQUIRE(memory);
	}
	return memory;
}

void virtual_check(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, const struct ap_reshard_step *steps, int n)
{
	struct world w = {.ndev = ndev, .rank = a->rank};
	size_t elements = (size_t)product(size, a->rank);
	int32_t *memory = buffer((2 * (size_t)ndev + 1) * elements);
	int32_t *want = memory + 2 * (size_t)ndev * elements;

	REQUIRE(ndev <= MAX_RANKS);
	for (int64_t r = 0; r < ndev; r++) {
		w.slice[r] = memory + 2 * (size_t)r * elements;
		w.next[r] = w.slice[r] + elements;
		fill(a, size, r, w.slice[r]);
	}
	ap_layout_slice(a, size, w.len);
	for (int i = 0; i < n; i++)
		run_step(&w, &steps[i], want);
	for (int d = 0; d < b->rank; d++)
		REQUIRE(w.len[d] == size[d] / b->dim[d].cut);
	for (int64_t r = 0; r < ndev; r++) {
		fill(b, size, r, want);
		REQUIRE(!memcmp(w.slice[r], want,
			(size_t)product(w.len, w.rank) * sizeof *want));
	}
}

bool virtual_nested(const struct ap_layout *a, const struct ap_layout *b, int64_t ndev)
{
	for (int d = 0; d < a->rank; d++) {
		if (b->dim[d].cut % a->dim[d].cut)
			return false;
		for (int64_t r = 0; r < ndev; r++)
			if (part_of(&b->dim[d], r) / (b->dim[d].cut / a->dim[d].cut) !=
				part_of(&a->dim[d], r))
				return false;
	}
	return true;
}

void virtual_sizes(const struct ap_layout *a, const struct ap_layout *b, int spare, int64_t *size)
{
	for (int d = 0; d < a->rank; d++) {
		int64_t x = a->dim[d].cut, y = b->dim[d].cut;

		size[d] = x / ap_gcd(x, y) * y * (spare >> d & 1 ? 2 : 1);
	}
}

static bool apart(const struct ap_cut_dim *x, const struct ap_cut_dim *y)
{
	return x->cut == 1 || y->cut == 1 || x->stride % (y->stride * y->cut) == 0 ||
		y->stride % (x->stride * x->cut) == 0;
}

static bool is_layout(const struct ap_layout *l)
{
	for (int d = 0; d < l->rank; d++)
		for (int e = 0; e < d; e++)
			if (!apart(&l->dim[d], &l->dim[e]))
				return false;
	return true;
}

int virtual_layouts(int rank, int64_t ndev, struct ap_layout *out, int cap)
{
	struct ap_cut_dim axis[64] = {{1, 0}};
	int naxis = 1, n = 0, at[AP_MAX_RANK] = {0}, d;

	for (int32_t stride = 1; stride < ndev; stride++)
		for (int32_t end = 2 * stride; end <= ndev; end += stride)
			if (ndev % end == 0)
				axis[naxis++] = (struct ap_cut_dim){end / stride, stride};
	do {
		struct ap_layout l = {.rank = rank};

		for (d = 0; d < rank; d++)
			l.dim[d] = axis[at[d]];
		if (is_layout(&l) && n < cap)
			out[n++] = l;
		for (d = 0; d < rank && ++at[d] == naxis; d++)
			at[d] = 0;
	} while (d < rank);
	return n;
}

struct ap_layout virtual_random_layout(int rank, int64_t ndev, uint64_t *seed)
{
	struct ap_layout l = {.rank = rank};
	int64_t stride = 1;

	for (int d = 0; d < rank; d++)
		l.dim[d].cut = 1;
	while (stride < ndev) {
		int64_t divisors[256];
		size_t n = ap_divisors(ndev / stride, divisors, 256);
		int64_t cut = divisors[random_next(seed) % n];
		struct ap_cut_dim *dim = &l.dim[random_next(seed) % (uint64_t)rank];

		if (cut > 1 && dim->cut == 1 && random_next(seed) % 4)
			*dim = (struct ap_cut_dim){(int32_t)cut, (int32_t)stride};
		stride *= cut;
	}
	return l;
}
