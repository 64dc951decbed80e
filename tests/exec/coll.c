/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "exec.h"

static uint64_t combine(enum ap_reduction how, uint64_t a, uint64_t b)
{
	switch (how) {
	case AP_REDUCE_MAX:
		return a > b ? a : b;
	case AP_REDUCE_MIN:
		return a < b ? a : b;
	case AP_REDUCE_PROD:
		return ex_mul(a, b);
	case AP_REDUCE_SUM:
	case AP_REDUCE_MEAN:
		break;
	}
	return ex_add(a, b);
}

/* Slices of a group must be equally large; where they are not, the group is a wrong one. */
static bool alike(struct ex_world *w, const struct ex_shards *s, const int64_t *group, int64_t n)
{
	for (int64_t k = 1; k < n; k++)
		if (ex_count(&s->of[group[k]].box) != ex_count(&s->of[group[0]].box)) {
			ex_trouble(w, "a collective of slices of unequal size");
			return false;
		}
	return true;
}

static void executed(struct ex_world *w, const struct ex_shards *buffer)
{
	w->ncollective++;
	for (int64_t r = 0; r < buffer->ndev; r++)
		w->bytes += (uint64_t)(ex_count(&buffer->of[r].box) *
			ap_dtype_bytes(buffer->of[r].box.dtype));
}

void ex_all_reduce(struct ex_world *w, const struct ap_axes *axes, enum ap_reduction how,
	struct ex_shards *s)
{
	struct ex_shards out = ex_like(w->ctx->scratch, s);

	for (int64_t r = 0; r < s->ndev; r++) {
		int64_t group[EX_MAX_DEV], n = ex_group(w, axes, r, group);

		if (!alike(w, s, group, n))
			return;
		memcpy(out.of[r].v, s->of[group[0]].v,
			(size_t)ex_count(&out.of[r].box) * sizeof(uint64_t));
		for (int64_t k = 1; k < n; k++)
			for (int64_t i = 0; i < ex_count(&out.of[r].box); i++)
				out.of[r].v[i] = combine(how, out.of[r].v[i], s->of[group[k]].v[i]);
	}
	executed(w, s);
	*s = out;
}

/* A slice as [before][parts][inner], parts along dim. */
static void view_of(const struct ex_box *b, int dim, int64_t parts, int64_t *before, int64_t *inner)
{
	*before = 1;
	*inner = b->size[dim] / parts;
	for (int d = 0; d < dim; d++)
		*before *= b->size[d];
	for (int d = dim + 1; d < b->rank; d++)
		*inner *= b->size[d];
}

void ex_all_gather(struct ex_world *w, const struct ap_axes *axes, int dim, struct ex_shards *s)
{
	struct ex_shards out = ex_shards_new(w->ctx->scratch, s->ndev);

	for (int64_t r = 0; r < s->ndev; r++) {
		int64_t group[EX_MAX_DEV], n = ex_group(w, axes, r, group), before, inner;
		struct ex_box b = s->of[group[0]].box;

		if (!alike(w, s, group, n))
			return;
		b.size[dim] *= n;
		out.of[r] = ex_tensor_new(w->ctx->scratch, &b);
		view_of(&b, dim, n, &before, &inner);
		for (int64_t i = 0; i < before; i++)
			for (int64_t k = 0; k < n; k++)
				memcpy(out.of[r].v + (i * n + k) * inner, s->of[group[k]].v + i * inner,
					(size_t)inner * sizeof(uint64_t));
	}
	*s = out;
	executed(w, s);
}

void ex_all_to_all(struct ex_world *w, const struct ap_axes *axes, int dim, int concat, struct ex_shards *s)
{
	struct ex_shards out = ex_shards_new(w->ctx->scratch, s->ndev);

	for (int64_t r = 0; r < s->ndev; r++) {
		int64_t group[EX_MAX_DEV], n = ex_group(w, axes, r, group), own = 0, at[AP_MAX_RANK] = {0};
		struct ex_box b = s->of[r].box;

		if (!alike(w, s, group, n) || b.size[dim] % n != 0 || dim == concat) {
			ex_trouble(w, "no AlltoAll of dimensions %d and %d", dim, concat);
			return;
		}
		while (group[own] != r)
			own++;
		b.size[dim] /= n;
		b.first[dim] += own * b.size[dim];
		b.size[concat] *= n;
		b.first[concat] = s->of[group[0]].box.first[concat];
		out.of[r] = ex_tensor_new(w->ctx->scratch, &b);
		do {
			int64_t length = b.size[concat] / n, from[AP_MAX_RANK];
			const struct ex_tensor *x = &s->of[group[at[concat] / length]];

			memcpy(from, at, sizeof from);
			from[concat] %= length;
			from[dim] += own * b.size[dim];
			out.of[r].v[ex_at(&b, at)] = x->v[ex_at(&x->box, from)];
		} while (ex_step(&b, at));
	}
	*s = out;
	executed(w, s);
}

/* The rank's part, by its place in the group, of what the group has added up. */
static struct ex_tensor own_part(struct ex_world *w, const struct ex_tensor *sum, int dim, int64_t n,
	int64_t own)
{
	struct ex_box b = sum->box;
	struct ex_tensor out;
	int64_t before, inner;

	view_of(&b, dim, n, &before, &inner);
	b.size[dim] /= n;
	b.first[dim] += own * b.size[dim];
	out = ex_tensor_new(w->ctx->scratch, &b);
	for (int64_t i = 0; i < before; i++)
		memcpy(out.v + i * inner, sum->v + (i * n + own) * inner,
			(size_t)inner * sizeof(uint64_t));
	return out;
}

void ex_reduce_scatter(struct ex_world *w, const struct ap_axes *axes, int dim, struct ex_shards *s)
{
	struct ex_shards sum = *s;

	ex_all_reduce(w, axes, AP_REDUCE_SUM, &sum);
	*s = ex_shards_new(w->ctx->scratch, sum.ndev);
	for (int64_t r = 0; r < s->ndev; r++) {
		int64_t group[EX_MAX_DEV], n = ex_group(w, axes, r, group), own = 0;

		while (own < n - 1 && group[own] != r)
			own++;
		if (sum.of[r].box.size[dim] % n != 0)
			ex_trouble(w, "%" PRId64 " rows are dealt to %" PRId64 " ranks",
				sum.of[r].box.size[dim], n);
		s->of[r] = own_part(w, &sum.of[r], dim, n, own);
	}
}

struct next { /* ranks before and after in the group, -1 where there is none */
	int64_t before, after;
};

static struct next next_of(struct ex_world *w, const struct ap_axes *axes, int64_t r)
{
	int64_t group[EX_MAX_DEV], n = ex_group(w, axes, r, group), own = 0;

	while (own < n - 1 && group[own] != r)
		own++;
	return (struct next){own > 0 ? group[own - 1] : -1, own < n - 1 ? group[own + 1] : -1};
}

/* Rows that rank r gets must be there, with the neighbour that they are asked of. */
static bool can_give(struct ex_world *w, const struct ex_shards *own, int dim, int64_t r, int64_t from,
	int64_t rows)
{
	if (rows <= 0 || (from >= 0 && rows <= own->of[from].box.size[dim]))
		return true;
	ex_trouble(w, "rank %" PRId64 " wants %" PRId64 " rows of a neighbour that has not so many", r,
		rows);
	return false;
}

/* Most elements that a rank sends or receives; own: slices without what is exchanged. */
static int64_t busiest(struct ex_world *w, const struct ap_axes *axes, int dim, const int64_t *before,
	const int64_t *after, const struct ex_shards *own)
{
	int64_t most = 0;

	for (int64_t r = 0; r < own->ndev; r++) {
		const struct ex_box *b = &own->of[r].box;
		int64_t row = b->size[dim] ? ex_count(b) / b->size[dim] : 0;
		struct next n = next_of(w, axes, r);
		int64_t sent = (n.before >= 0 ? after[n.before] : 0) +
			(n.after >= 0 ? before[n.after] : 0);
		int64_t received = before[r] + after[r];

		most = sent * row > most ? sent * row : most;
		most = received * row > most ? received * row : most;
	}
	w->ncollective++;
	return most;
}

int64_t ex_exchange(struct ex_world *w, const struct ap_axes *axes, int dim, const int64_t *before,
	const int64_t *after, struct ex_shards *s)
{
	struct ex_shards own = *s;

	*s = ex_shards_new(w->ctx->scratch, own.ndev);
	for (int64_t r = 0; r < own.ndev; r++) {
		struct next n = next_of(w, axes, r);
		struct ex_box b = own.of[r].box;

		assert(before[r] >= 0 && after[r] >= 0);
		b.size[dim] += before[r] + after[r];
		b.first[dim] -= before[r];
		s->of[r] = ex_tensor_new(w->ctx->scratch, &b);
		ex_cut_out(&own.of[r], &s->of[r]);
		if (before[r] > 0 && can_give(w, &own, dim, r, n.before, before[r]))
			ex_cut_out(&own.of[n.before], &s->of[r]);
		if (after[r] > 0 && can_give(w, &own, dim, r, n.after, after[r]))
			ex_cut_out(&own.of[n.after], &s->of[r]);
	}
	return busiest(w, axes, dim, before, after, &own);
}

int64_t ex_exchange_back(struct ex_world *w, const struct ap_axes *axes, int dim,
	const int64_t *before, const int64_t *after, struct ex_shards *s)
{
	struct ex_shards grown = *s;

	*s = ex_shards_new(w->ctx->scratch, grown.ndev);
	for (int64_t r = 0; r < grown.ndev; r++) {
		struct next n = next_of(w, axes, r);
		struct ex_box b = grown.of[r].box;

		b.size[dim] -= before[r] + after[r];
		b.first[dim] += before[r];
		s->of[r] = ex_tensor_new(w->ctx->scratch, &b);
		ex_cut_out(&grown.of[r], &s->of[r]);
		if (n.before >= 0 && after[n.before] > 0)
			ex_add_overlap(&grown.of[n.before], &s->of[r]);
		if (n.after >= 0 && before[n.after] > 0)
			ex_add_overlap(&grown.of[n.after], &s->of[r]);
	}
	return busiest(w, axes, dim, before, after, s);
}
