/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "hw/group.h"
#include "exec.h"

struct ex_box ex_box_whole(const struct ap_shape *s)
{
	struct ex_box b = {.rank = s->rank, .dtype = s->dtype};

	memcpy(b.size, s->dim, s->rank * sizeof *b.size);
	memcpy(b.whole, s->dim, s->rank * sizeof *b.whole);
	return b;
}

struct ex_box ex_box_slice(const struct ex_box *whole, const struct ap_layout *l, int64_t rank)
{
	struct ex_box b = *whole;

	for (int d = 0; d < b.rank; d++) {
		int64_t part = l->dim[d].cut > 1 ? rank / l->dim[d].stride % l->dim[d].cut : 0;

		b.size[d] /= l->dim[d].cut;
		b.first[d] = part * b.size[d];
	}
	return b;
}

struct ex_tensor ex_tensor_new(struct ap_arena *a, const struct ex_box *b)
{
	return (struct ex_tensor){*b, AP_NEW_N(a, uint64_t, ex_count(b))};
}

/* Copies, or adds, the elements that both slices have, row by row. */
static void overlap(const struct ex_tensor *from, struct ex_tensor *to, bool add)
{
	const struct ex_box *a = &from->box, *b = &to->box;
	int last = b->rank - 1;
	int64_t lo[AP_MAX_RANK], hi[AP_MAX_RANK], at[AP_MAX_RANK] = {0}, n = 1; /* indices of b */

	for (int d = 0; d <= last; d++) {
		int64_t end = a->first[d] + a->size[d] - b->first[d];

		lo[d] = at[d] = a->first[d] > b->first[d] ? a->first[d] - b->first[d] : 0;
		hi[d] = end < b->size[d] ? end : b->size[d];
		if (lo[d] >= hi[d])
			return;
	}
	if (last >= 0)
		n = hi[last] - lo[last];
	for (;;) {
		const uint64_t *src = from->v;
		uint64_t *dst = to->v;
		int64_t i = 0, k = 0;
		int d = last - 1;

		for (int e = 0; e <= last; e++) {
			i = i * b->size[e] + at[e];
			k = k * a->size[e] + b->first[e] + at[e] - a->first[e];
		}
		for (int64_t e = 0; e < n; e++)
			dst[i + e] = add ? ex_add(dst[i + e], src[k + e]) : src[k + e];
		while (d >= 0 && ++at[d] == hi[d]) {
			at[d] = lo[d];
			d--;
		}
		if (d < 0)
			return;
	}
}

void ex_cut_out(const struct ex_tensor *from, struct ex_tensor *slice)
{
	overlap(from, slice, false);
}

void ex_add_overlap(const struct ex_tensor *from, struct ex_tensor *sum)
{
	overlap(from, sum, true);
}

struct ex_shards ex_cut(struct ap_arena *a, const struct ex_tensor *whole, const struct ap_layout *l,
	int64_t ndev)
{
	struct ex_shards s = ex_shards_new(a, ndev);

	for (int64_t r = 0; r < ndev; r++) {
		struct ex_box b = ex_box_slice(&whole->box, l, r);

		s.of[r] = ex_tensor_new(a, &b);
		ex_cut_out(whole, &s.of[r]);
	}
	return s;
}

struct ex_shards ex_shards_new(struct ap_arena *a, int64_t ndev)
{
	return (struct ex_shards){ndev, AP_NEW_N(a, struct ex_tensor, ndev)};
}

struct ex_shards ex_like(struct ap_arena *a, const struct ex_shards *x)
{
	struct ex_shards s = ex_shards_new(a, x->ndev);

	for (int64_t r = 0; r < x->ndev; r++)
		s.of[r] = ex_tensor_new(a, &x->of[r].box);
	return s;
}

void ex_accumulate(struct ex_shards *sum, const struct ex_shards *x)
{
	for (int64_t r = 0; r < sum->ndev; r++)
		for (int64_t i = 0; i < ex_count(&sum->of[r].box); i++)
			sum->of[r].v[i] = ex_add(sum->of[r].v[i], x->of[r].v[i]);
}

bool ex_layout_of_map(int ndev_axes, const int64_t *dev_matrix, uint8_t rank, const uint8_t *naxes,
	const int64_t (*axes)[AP_MAX_DIM_FACTOR], struct ap_layout *out)
{
	memset(out, 0, sizeof *out);
	out->rank = rank;
	for (int d = 0; d < rank; d++) {
		int64_t cut = 1, stride = 0;

		for (int i = 0; i < naxes[d]; i++) {
			int64_t size, inner = 1;

			if (axes[d][i] < 0 || axes[d][i] >= ndev_axes)
				return false;
			size = dev_matrix[ndev_axes - 1 - axes[d][i]];
			for (int64_t k = 0; k < axes[d][i]; k++)
				inner *= dev_matrix[ndev_axes - 1 - k];
			if (size == 1)
				continue;
			if (cut > 1 && inner * size != stride)
				return false;
			cut *= size;
			stride = inner;
		}
		out->dim[d] = (struct ap_cut_dim){(int32_t)cut, (int32_t)stride};
	}
	return true;
}

/* Slices under one layout are the same where they begin at the same place. */
static bool same_slice(const struct ex_box *a, const struct ex_box *b)
{
	return memcmp(a->first, b->first, sizeof a->first) == 0;
}

struct ex_shards ex_deal_partial(struct ap_arena *a, const struct ex_tensor *whole,
	const struct ap_layout *l, int64_t ndev, uint64_t *rng)
{
	struct ex_shards s = ex_cut(a, whole, l, ndev);

	for (int64_t r = 0; r < ndev; r++) {
		int64_t first = 0;

		while (!same_slice(&s.of[first].box, &s.of[r].box))
			first++;
		for (int64_t i = 0; first < r && i < ex_count(&s.of[r].box); i++) {
			uint64_t share = ex_hash(ex_next(rng), 0);

			s.of[r].v[i] = share;
			s.of[first].v[i] = ex_sub(s.of[first].v[i], share);
		}
	}
	return s;
}

struct ex_shards ex_deal_over(struct ap_arena *a, const struct ex_tensor *whole,
	const struct ap_layout *l, const struct ap_axes *axes, int64_t ndev, uint64_t *rng)
{
	struct ex_shards s = ex_cut(a, whole, l, ndev);
	uint64_t salt = ex_next(rng);

	for (int64_t r = 0; r < ndev; r++) {
		int64_t group[EX_MAX_DEV], n = ap_axes_size(axes), own = 0;

		ap_axes_group(axes, r, group);
		while (group[own] != r)
			own++;
		for (int64_t i = 0; i < ex_count(&s.of[r].box); i++) {
			uint64_t rest = s.of[r].v[i];

			for (int64_t k = 1; k < n; k++) {
				uint64_t share = ex_hash(salt + (uint64_t)k, (uint64_t)i);

				rest = ex_sub(rest, share);
				if (k == own)
					s.of[r].v[i] = share;
			}
			if (own == 0)
				s.of[r].v[i] = rest;
		}
	}
	return s;
}

/* What the ranks hold of element i of rank r's slice: r alone, or all holders of the slice added up. */
static uint64_t held(const struct ex_shards *got, const struct ex_shards *slices, int64_t r, int64_t i,
	enum ex_holds holds)
{
	uint64_t v = 0;

	if (holds == EX_EVERY)
		return got->of[r].v[i];
	for (int64_t q = 0; q < got->ndev; q++)
		if (same_slice(&slices->of[r].box, &slices->of[q].box))
			v = ex_add(v, got->of[q].v[i]);
	return v;
}

static const char *element_text(struct ap_ctx *ctx, const struct ex_box *b, int64_t i)
{
	struct ap_str s;
	int64_t inner = ex_count(b);

	ap_str_init(&s, ctx->scratch);
	for (int d = 0; d < b->rank; d++) {
		inner /= b->size[d];
		ap_str_addf(&s, "%s%" PRId64, d ? ", " : "", i / inner % b->size[d]);
	}
	return s.s;
}

const char *ex_differs(struct ap_ctx *ctx, const struct ex_shards *got, const struct ex_tensor *want,
	const struct ap_layout *l, enum ex_holds holds)
{
	struct ex_shards right = ex_cut(ctx->scratch, want, l, got->ndev);

	for (int64_t r = 0; r < got->ndev; r++) {
		const struct ex_box *b = &right.of[r].box, *own = &got->of[r].box;

		if (memcmp(b->size, own->size, b->rank * sizeof *b->size) != 0 || b->rank != own->rank)
			return ap_arena_printf(ctx->arena, "rank %" PRId64 ": a slice of other extents", r);
	}
	for (int64_t r = 0; r < got->ndev; r++) {
		const struct ex_box *b = &right.of[r].box;

		for (int64_t i = 0; i < ex_count(b); i++) {
			uint64_t v = held(got, &right, r, i, holds);

			if (v != right.of[r].v[i])
				return ap_arena_printf(ctx->arena,
					"rank %" PRId64 ", element [%s]: %" PRIu64 ", want %" PRIu64, r,
					element_text(ctx, b, i), v, right.of[r].v[i]);
		}
	}
	return NULL;
}
