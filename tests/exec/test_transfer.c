/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one plan's checkpoint to another's on virtual ranks that hold numbers: parameters in random layouts, dealt
 * to an optimizer group or not, in another stage, on more or fewer devices. Every rank ends with its slice, each
 * element written once, and nothing comes from farther than it must. What a rank holds is worked out here from
 * coordinates in the dev_matrix and lists of ranks, not from strides.
 */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "diff/transfer.h"
#include "emit_test.h"
#include "exec.h"
#include "harness.h"

enum { DIMS = 3 };

struct param { /* as a plan tells it */
	int64_t shape[DIMS], slice[DIMS], dev[6], map[DIMS];
	struct ap_saved_axis axis[6];
	struct ap_saved_param p;
	bool in_group[6]; /* axes of dev, from the left, of the optimizer group */
};

struct run {
	const struct param *was, *is;
	int64_t elements, nrank;
	int nlevel;
	int64_t span[3];
	int64_t *value; /* [rank][element]; 0: not there */
	int64_t *written; /* [rank][element] */
	bool *had; /* [rank][element] */
	uint64_t npiece, nmoved;
};

static int64_t ndev_of(const struct param *q)
{
	int64_t n = 1;

	for (size_t i = 0; i < q->p.dev_matrix.n; i++)
		n *= q->dev[i];
	return n;
}

/* The coordinate of a rank of the stage on axis i, from the left. */
static int64_t coordinate(const struct param *q, int64_t r, size_t i)
{
	for (size_t k = q->p.dev_matrix.n; --k > i;)
		r /= q->dev[k];
	return r % q->dev[i];
}

/* Does a rank hold the element at these places? */
static bool holds(const struct param *q, int64_t rank, const int64_t *at)
{
	int64_t ndev = ndev_of(q), r = rank - q->p.stage * ndev, number = 0, in_slice;

	if (r < 0 || r >= ndev)
		return false;
	for (size_t d = 0; d < q->p.shape.n; d++) {
		int64_t part = q->map[d] < 0 ? 0
			: coordinate(q, r, q->p.dev_matrix.n - 1 - (size_t)q->map[d]);

		if (at[d] / q->slice[d] != part)
			return false;
	}
	if (q->p.shards == 1)
		return true;
	/* its number among the ranks that differ from it in axes of the group alone */
	for (int64_t other = 0; other < r; other++) {
		bool member = true;

		for (size_t i = 0; i < q->p.dev_matrix.n; i++)
			member &= q->in_group[i] || coordinate(q, other, i) == coordinate(q, r, i);
		number += member;
	}
	in_slice = at[0] % q->slice[0];
	if (q->p.part) { /* a row is where its last element is */
		int64_t row = 1;

		for (size_t d = 1; d < q->p.shape.n; d++)
			row *= q->slice[d];
		return (row * in_slice + row - 1) / q->p.part == number;
	}
	return in_slice / (q->slice[0] / q->p.shards) == number;
}

static void place(const struct run *x, int64_t element, int64_t at[DIMS])
{
	for (size_t d = x->was->p.shape.n; d-- > 0;) {
		at[d] = element % x->was->shape[d];
		element /= x->was->shape[d];
	}
}

static int distance(const struct run *x, int64_t a, int64_t b)
{
	for (int l = 0; l < x->nlevel; l++)
		if (a / x->span[l] == b / x->span[l])
			return l;
	return x->nlevel;
}

static void carry(void *user, const struct ap_transfer_piece *p)
{
	struct run *x = user;
	int64_t n = 0, at[DIMS];

	x->npiece++;
	x->nmoved += p->from != p->to;
	for (int64_t e = 0; e < x->elements; e++) {
		bool inside = true;

		place(x, e, at);
		for (size_t d = 0; d < x->was->p.shape.n; d++)
			inside &= p->lo[d] <= at[d] && at[d] < p->hi[d];
		if (!inside)
			continue;
		n++;
		ck_assert_msg(x->had[p->from * x->elements + e], "rank %" PRId64 " has no element %" PRId64,
			p->from, e);
		for (int64_t r = 0; r < x->nrank && p->from != p->to; r++)
			ck_assert(!x->had[r * x->elements + e] ||
				(r != p->to && distance(x, r, p->to) >= distance(x, p->from, p->to)));
		x->value[p->to * x->elements + e] = e + 1;
		x->written[p->to * x->elements + e]++;
	}
	ck_assert_int_eq(n, p->elements);
}

static void draw(uint64_t *rng, int64_t ndim, const int64_t *shape, struct param *q)
{
	static const int64_t sizes[] = {1, 2, 2, 3, 4};
	size_t n = 1 + ex_below(rng, 4), ngroup = 0;
	bool used[6] = {false};
	int64_t stride = 1, shards = 1, unit = 1, units = 1;
	bool even = ex_below(rng, 2), rows = ex_below(rng, 2);

	memset(q, 0, sizeof *q);
	for (size_t i = 0; i < n; i++) {
		q->dev[i] = sizes[ex_below(rng, AP_COUNT(sizes))];
		if (stride * q->dev[i] > 24)
			q->dev[i] = 1;
		stride *= q->dev[i];
	}
	q->p.dev_matrix = (struct ap_saved_vector){n, q->dev};
	for (int64_t d = 0; d < ndim; d++) {
		size_t i = ex_below(rng, (uint32_t)n);

		q->shape[d] = q->slice[d] = shape[d];
		q->map[d] = -1;
		if (used[i] || shape[d] % q->dev[i] || !ex_below(rng, 3))
			continue;
		used[i] = true;
		q->map[d] = (int64_t)(n - 1 - i);
		q->slice[d] /= q->dev[i];
	}
	for (size_t i = 0; i < n && ex_below(rng, 3); i++) { /* dealt over axes that cut nothing */
		if (used[i] || q->dev[i] == 1 || (even && q->slice[0] % (shards * q->dev[i])))
			continue;
		q->in_group[i] = true;
		shards *= q->dev[i];
		stride = 1;
		for (size_t k = i + 1; k < n; k++)
			stride *= q->dev[k];
		q->axis[ngroup++] = (struct ap_saved_axis){stride, q->dev[i]};
	}
	q->p.shape = (struct ap_saved_vector){(size_t)ndim, q->shape};
	q->p.slice = (struct ap_saved_vector){(size_t)ndim, q->slice};
	q->p.tensor_map = (struct ap_saved_vector){(size_t)ndim, q->map};
	q->p.shards = shards;
	for (int64_t d = 0; d < ndim; d++)
		*(rows && d > 0 ? &unit : &units) *= q->slice[d];
	while (q->slice[0] % shards && q->p.part * shards < units * unit)
		q->p.part += unit;
	q->p.nshard_axis = (uint32_t)ngroup;
	q->p.shard_axis = q->axis;
	q->p.stage = ex_below(rng, 3) ? 0 : 1;
	q->p.first_rank = q->p.stage * ndev_of(q);
}

START_TEST(checkpoints_arrive)
{
	static const int64_t extents[] = {1, 4, 6, 8, 12};
	uint64_t rng = ex_seed("checkpoints_arrive"), cases = ex_cases(600), moved = 0, pieces = 0, dealt = 0,
		padded = 0;

	for (uint64_t i = 0; i < cases; i++) {
		struct ap_ctx ctx = new_ctx();
		int64_t shape[DIMS], ndim = 1 + ex_below(&rng, 3), elements = 1, ends[2];
		struct ap_transfer_side was, is;
		struct param a, b;
		struct run x;

		for (int64_t d = 0; d < ndim; d++)
			elements *= shape[d] = extents[ex_below(&rng, AP_COUNT(extents))];
		draw(&rng, ndim, shape, &a);
		draw(&rng, ndim, shape, &b);
		ends[0] = (a.p.stage + 1) * ndev_of(&a);
		ends[1] = (b.p.stage + 1) * ndev_of(&b);
		x = (struct run){.was = &a, .is = &b, .elements = elements, .nlevel = 2,
			.nrank = ends[0] > ends[1] ? ends[0] : ends[1], .span = {4, 8}};
		x.value = AP_NEW_N(ctx.arena, int64_t, x.nrank * elements);
		x.written = AP_NEW_N(ctx.arena, int64_t, x.nrank * elements);
		x.had = AP_NEW_N(ctx.arena, bool, x.nrank * elements);
		for (int64_t r = 0; r < x.nrank; r++)
			for (int64_t e = 0; e < elements; e++) {
				int64_t at[DIMS];

				place(&x, e, at);
				x.had[r * elements + e] = holds(&a, r, at);
			}
		ck_assert(ap_transfer_side_make(&a.p, &was) && ap_transfer_side_make(&b.p, &is));
		ap_transfer_pieces(&ctx, &was, &is, x.nlevel, x.span, carry, &x);
		for (int64_t r = 0; r < x.nrank; r++)
			for (int64_t e = 0; e < elements; e++) {
				int64_t at[DIMS], k = r * elements + e;
				bool want;

				place(&x, e, at);
				want = holds(&b, r, at);
				ck_assert_msg(x.written[k] == want && x.value[k] == (want ? e + 1 : 0),
					"case %" PRIu64 ": rank %" PRId64 ", element %" PRId64, i, r, e);
			}
		moved += x.nmoved;
		pieces += x.npiece;
		dealt += a.p.shards > 1 || b.p.shards > 1;
		padded += a.p.part > 0 || b.p.part > 0;
		free_ctx(&ctx);
	}
	ck_assert_uint_gt(moved, cases);
	ck_assert_uint_gt(pieces, 4 * cases);
	ck_assert_uint_gt(dealt, cases / 8);
	ck_assert_uint_gt(padded, cases / 16);
}
END_TEST
