/* SPDX-License-Identifier: Apache-2.0 */
/* Redistributions on virtual ranks, and their adjoints. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "fault.h"

struct view { /* a slice as [before][parts][after] */
	int64_t before, parts, after;
};

struct step { /* of all ranks, as it is carried out */
	struct ex_world *w;
	const struct ap_reshard_step *s;
	bool cuts, joins, sums;
	struct ex_box before, after; /* extents before and after, of any rank */
	struct view from, to; /* of the slices before and after */
	struct view from_inner, to_inner; /* of their parts; parts 1 but of an ALLTOALL of two dimensions */
};

static bool look(struct ex_world *w, const struct ex_box *b, int dim, int64_t outer, int64_t parts,
	struct view *v)
{
	if (dim >= b->rank || outer < 1 || b->size[dim] % (outer * parts) != 0) {
		ex_trouble(w, "a step divides dimension %d of %" PRId64 " elements by %" PRId64
			" and %" PRId64, dim, dim < b->rank ? b->size[dim] : 0, outer, parts);
		return false;
	}
	v->before = outer;
	for (int d = 0; d < dim; d++)
		v->before *= b->size[d];
	v->parts = parts;
	v->after = ex_count(b) / (v->before * parts);
	return true;
}

/* False, with trouble, where the step does not go with slices of these extents. */
static bool prepare(struct ex_world *w, const struct ap_reshard_step *s, const struct ex_box *b,
	struct step *out)
{
	struct ex_box part;
	int64_t inner = s->move == AP_MOVE_ALLTOALL ? s->inner_parts : 1, n = s->axis.size / inner;
	int join = s->move == AP_MOVE_GATHER ? s->dim : s->concat;
	int32_t join_outer = s->move == AP_MOVE_GATHER ? s->outer : s->concat_outer;

	*out = (struct step){.w = w, .s = s, .cuts = s->move != AP_MOVE_GATHER && s->move != AP_MOVE_ALLREDUCE,
		.joins = s->move == AP_MOVE_GATHER || s->move == AP_MOVE_ALLTOALL,
		.sums = s->move == AP_MOVE_REDUCESCATTER || s->move == AP_MOVE_ALLREDUCE,
		.before = *b, .after = *b};
	if (out->cuts && !look(w, b, s->dim, s->outer, n, &out->from))
		return false;
	if (out->cuts)
		out->after.size[s->dim] /= n;
	if (inner > 1 && !look(w, &out->after, s->inner, s->inner_outer, inner, &out->from_inner))
		return false;
	if (inner > 1)
		out->after.size[s->inner] /= inner;
	if (inner > 1 && s->concat_inner < b->rank)
		out->after.size[s->concat_inner] *= inner;
	part = out->after;
	if (out->joins && join < b->rank)
		out->after.size[join] *= n;
	if (inner > 1 && !look(w, &part, s->concat_inner, s->concat_inner_outer, inner, &out->to_inner))
		return false;
	if (out->joins && !look(w, &out->after, join, join_outer, n, &out->to))
		return false;
	if (ex_count(&out->before) != s->before || ex_count(&out->after) != s->after)
		ex_trouble(w, "a step from %" PRId64 " to %" PRId64 " elements is charged as one from %"
			PRId64 " to %" PRId64, ex_count(&out->before), ex_count(&out->after),
			s->before, s->after);
	return true;
}

/* Ranks of r's group, and r's place among them. */
static int64_t group_of(const struct step *t, int64_t r, int64_t group[EX_MAX_DEV], int64_t *own)
{
	struct ap_axes axes = {1, {t->s->axis}};
	int64_t n = ex_group(t->w, &axes, r, group);

	*own = 0;
	while (*own < n - 1 && group[*own] != r)
		(*own)++;
	return n;
}

static uint64_t *take_one(const struct step *t, const struct view *v, int64_t part, const uint64_t *slice)
{
	uint64_t *piece = AP_NEW_N(t->w->ctx->scratch, uint64_t, v->before * v->after);

	for (int64_t i = 0; i < v->before; i++)
		memcpy(piece + i * v->after, slice + (i * v->parts + part) * v->after,
			(size_t)v->after * sizeof *piece);
	return piece;
}

static void put_one(const struct view *v, int64_t part, const uint64_t *piece, uint64_t *slice)
{
	for (int64_t i = 0; i < v->before; i++)
		memcpy(slice + (i * v->parts + part) * v->after, piece + i * v->after,
			(size_t)v->after * sizeof *piece);
}

/* A part of the slice as v has it, or of two dimensions, a part of such a part. */
static uint64_t *take(const struct step *t, const struct view *v, int64_t part,
	const struct ex_tensor *slice)
{
	const struct view *inner = v == &t->from ? &t->from_inner : &t->to_inner;
	uint64_t *piece;

	if (inner->parts == 0)
		return take_one(t, v, part, slice->v);
	piece = take_one(t, v, part / inner->parts, slice->v);
	return take_one(t, inner, part % inner->parts, piece);
}

static void put(const struct step *t, const struct view *v, int64_t part, const uint64_t *piece,
	struct ex_tensor *slice)
{
	const struct view *inner = v == &t->from ? &t->from_inner : &t->to_inner;
	uint64_t *whole;

	if (inner->parts == 0) {
		put_one(v, part, piece, slice->v);
		return;
	}
	whole = take_one(t, v, part / inner->parts, slice->v);
	put_one(inner, part % inner->parts, piece, whole);
	put_one(v, part / inner->parts, whole, slice->v);
}

/* Slices of these extents on each rank. */
static struct ex_shards slices(struct ex_world *w, const struct ex_box *b, const struct ex_shards *s)
{
	struct ex_shards out = ex_shards_new(w->ctx->scratch, s->ndev);

	for (int64_t r = 0; r < s->ndev; r++)
		out.of[r] = ex_tensor_new(w->ctx->scratch, b);
	return out;
}

/* Adds what a rank sends of its sum to part `own`, or to all. */
static void add_up(const struct step *t, int64_t own, const struct ex_tensor *sent, struct ex_tensor *sum)
{
	const uint64_t *piece = t->cuts ? take(t, &t->from, own, sent) : sent->v;

	for (int64_t i = 0; i < ex_count(&t->after); i++)
		sum->v[i] = ex_add(sum->v[i], piece[i]);
}

/* Elements that each rank gets from others, to put them together. */
static int64_t run(const struct step *t, struct ex_shards *s)
{
	struct ex_shards out = slices(t->w, &t->after, s);
	int64_t got = 0;

	for (int64_t r = 0; r < s->ndev; r++) {
		int64_t group[EX_MAX_DEV], own, n = group_of(t, r, group, &own);

		if (!t->joins && !t->sums)
			out.of[r].v = take(t, &t->from, own, &s->of[r]);
		for (int64_t i = 0; t->sums && i < n; i++)
			add_up(t, own, &s->of[group[i]], &out.of[r]);
		got = 0;
		for (int64_t i = 0; t->joins && i < n; i++) {
			const struct ex_tensor *sent = &s->of[group[i]];

			put(t, &t->to, i, t->cuts ? take(t, &t->from, own, sent) : sent->v,
				&out.of[r]);
			got += i == own ? 0 : ex_count(&t->after) / n;
		}
	}
	t->w->ncollective += t->joins || t->sums;
	*s = out;
	return got;
}

/* SLICE: zeroes around; GATHER: the parts of the group added up; ALLTOALL: back. */
static void run_back(const struct step *t, struct ex_shards *g)
{
	struct ex_shards out = slices(t->w, &t->before, g);

	for (int64_t r = 0; r < g->ndev; r++) {
		int64_t group[EX_MAX_DEV], own, n = group_of(t, r, group, &own);

		if (!t->joins)
			put(t, &t->from, own, g->of[r].v, &out.of[r]);
		for (int64_t k = 0; t->joins && k < n; k++) {
			const uint64_t *piece = take(t, &t->to, own, &g->of[group[k]]);

			if (t->cuts)
				put(t, &t->from, k, piece, &out.of[r]);
			for (int64_t i = 0; !t->cuts && i < ex_count(&t->before); i++)
				out.of[r].v[i] = ex_add(out.of[r].v[i], piece[i]);
		}
	}
	t->w->ncollective += t->joins;
	*g = out;
}

/* A step of two dimensions is one of each, the inner one first; one collective all the same. An ALLTOALL is
 * carried out as it is. */
static int take_apart(struct ex_world *w, const struct ap_reshard_step *s, struct ap_reshard_step *out)
{
	int32_t parts = s->inner_parts;

	out[0] = *s;
	if (parts == 1 || (s->move == AP_MOVE_ALLTOALL && parts > 1 && s->axis.size % parts == 0))
		return 1;
	if (parts < 1 || s->axis.size % parts || s->move == AP_MOVE_ALLTOALL ||
		s->move == AP_MOVE_ALLREDUCE || s->inner == s->dim) {
		ex_trouble(w, "a step of dimensions %d and %d over %" PRId32 " devices, %" PRId32
			" of them inside", s->dim, s->inner, s->axis.size, parts);
		return 1;
	}
	out[0].inner_parts = out[1].inner_parts = 1;
	out[1] = out[0];
	out[0].dim = s->inner;
	out[0].outer = s->inner_outer;
	out[0].axis.size = parts;
	out[1].axis = (struct ap_axis){s->axis.stride * parts, s->axis.size / parts};
	out[0].after = out[1].before = s->move == AP_MOVE_GATHER ? s->before * parts : s->before / parts;
	w->ncollective -= s->move != AP_MOVE_SLICE;
	return 2;
}

/* The steps, as the fault leaves them, of one dimension each. */
static int all_steps(struct ex_world *w, const struct ap_reshard_step *steps, int n,
	struct ap_reshard_step *out)
{
	struct ap_reshard_step own[AP_RESHARD_MAX];
	int nout = 0;

	assert(n <= AP_RESHARD_MAX);
	if (n == 0)
		return 0;
	memcpy(own, steps, (size_t)n * sizeof *steps);
	if (w->fault && w->fault->steps)
		w->faulted |= w->fault->steps(w, &n, own);
	for (int i = 0; i < n; i++)
		nout += take_apart(w, &own[i], out + nout);
	return nout;
}

/* Where slices begin, which steps between say nothing of. */
static void settle(struct ex_world *w, const struct ex_box *whole, const struct ap_layout *l,
	struct ex_shards *s)
{
	for (int64_t r = 0; r < s->ndev; r++) {
		struct ex_box b = ex_box_slice(whole, l, r);

		if (memcmp(b.size, s->of[r].box.size, b.rank * sizeof *b.size) != 0) {
			ex_trouble(w, "steps end in slices of other extents");
			s->of[r] = ex_tensor_new(w->ctx->scratch, &b);
		}
		s->of[r].box = b;
	}
}

int64_t ex_move(struct ex_world *w, const struct ap_reshard_step *steps, int n,
	const struct ap_layout *b, struct ex_shards *s)
{
	struct ap_reshard_step own[2 * AP_RESHARD_MAX];
	struct ex_box whole = s->of[0].box;
	int64_t got = 0;

	memcpy(whole.size, whole.whole, sizeof whole.size);
	n = all_steps(w, steps, n, own);
	for (int i = 0; i < n; i++) {
		struct step t;

		if (prepare(w, &own[i], &s->of[0].box, &t))
			got += run(&t, s);
	}
	settle(w, &whole, b, s);
	return got;
}

void ex_move_back(struct ex_world *w, const struct ap_reshard_step *steps, int n,
	const struct ap_layout *a, struct ex_shards *g)
{
	struct ap_reshard_step own[2 * AP_RESHARD_MAX];
	struct step step[2 * AP_RESHARD_MAX];
	struct ex_box whole = g->of[0].box, b;
	bool sound = true;

	memcpy(whole.size, whole.whole, sizeof whole.size);
	n = all_steps(w, steps, n, own);
	b = ex_box_slice(&whole, a, 0);
	for (int i = 0; i < n && sound; i++) {
		sound = prepare(w, &own[i], &b, &step[i]) && !step[i].sums;
		b = step[i].after;
	}
	if (sound && ex_count(&b) != ex_count(&g->of[0].box)) {
		ex_trouble(w, "a gradient of other extents than its redistribution");
		sound = false;
	}
	for (int i = n; sound && i-- > 0;)
		run_back(&step[i], g);
	settle(w, &whole, a, g);
}
