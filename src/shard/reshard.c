/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/reshard.h"

#include <assert.h>

#include "shard/reshard_unify.h"

struct writer {
	struct ap_reshard_step *steps;
	int n;
	int64_t elements; /* of the running slice */
	int waiting, in_the_way; /* sub-dimensions of each kind */
};

/* Not cut, and shall be. */
static bool is_waiting(const struct ap_sub *s)
{
	return !s->in && s->out;
}

/* Cut by an axis that it shall not be cut by. */
static bool is_in_the_way(const struct ap_sub *s)
{
	return s->in && s->in != s->out;
}

static void take(struct writer *w, struct ap_sub *s)
{
	s->in = s->out;
	w->waiting--;
}

static void release(struct writer *w, struct ap_sub *s)
{
	s->in = 0;
	w->in_the_way--;
	w->waiting += s->out != 0;
}

static struct ap_reshard_step *emit(struct writer *w, enum ap_move move, struct ap_axis axis,
	int dim)
{
	struct ap_reshard_step *step = &w->steps[w->n++];

	assert(w->n <= AP_RESHARD_MAX);
	*step = (struct ap_reshard_step){.move = move, .axis = axis, .dim = (uint8_t)dim,
		.outer = 1, .concat_outer = 1, .before = w->elements};
	if (move == AP_MOVE_SLICE)
		w->elements /= axis.size;
	else if (move == AP_MOVE_GATHER)
		w->elements *= axis.size;
	step->after = w->elements;
	return step;
}

/* Elements of its tensor dimension's running slice that stand outside sub-dimension k. */
static int32_t outer_of(const struct ap_unified *u, int k)
{
	int32_t outer = 1;

	for (int i = k - 1; i >= 0 && u->sub[i].dim == u->sub[k].dim; i--)
		if (!u->sub[i].in)
			outer *= u->sub[i].size;
	return outer;
}

/* The sub-dimension that an axis cuts now, -1 none. */
static int holder(const struct ap_unified *u, int32_t axis)
{
	for (int k = 0; k < u->n; k++)
		if (u->sub[k].in == axis)
			return k;
	return -1;
}

static bool wanted(const struct ap_unified *u, int32_t axis)
{
	for (int k = 0; k < u->n; k++)
		if (u->sub[k].out == axis)
			return true;
	return false;
}

static void gather(struct writer *w, struct ap_unified *u, int k)
{
	struct ap_sub *s = &u->sub[k];
	struct ap_axis axis = {s->in, s->size};
	struct ap_reshard_step *step = emit(w, AP_MOVE_GATHER, axis, s->dim);

	step->outer = outer_of(u, k);
	step->first = s->first;
	release(w, s);
}

static void slice(struct writer *w, struct ap_unified *u, int k)
{
	struct ap_sub *s = &u->sub[k];
	struct ap_axis axis = {s->out, s->size};

	emit(w, AP_MOVE_SLICE, axis, s->dim)->outer = outer_of(u, k);
	take(w, s);
}

/* Sub-dimension k takes over the axis of sub-dimension from. */
static void permute(struct writer *w, struct ap_unified *u, int k, int from)
{
	struct ap_sub *s = &u->sub[k], *f = &u->sub[from];
	struct ap_axis axis = {s->out, s->size};
	struct ap_reshard_step *step = emit(w, AP_MOVE_ALLTOALL, axis, s->dim);

	step->outer = outer_of(u, k);
	take(w, s);
	step->concat = f->dim;
	step->concat_outer = outer_of(u, from);
	step->first = f->first;
	release(w, f);
}

static void split_pass(struct writer *w, struct ap_unified *u)
{
	for (int k = 0; k < u->n; k++)
		if (is_waiting(&u->sub[k]) && holder(u, u->sub[k].out) < 0)
			slice(w, u, k);
}

static void permute_pass(struct writer *w, struct ap_unified *u)
{
	for (int k = 0; k < u->n; k++) {
		int from = is_waiting(&u->sub[k]) ? holder(u, u->sub[k].out) : -1;

		if (from >= 0)
			permute(w, u, k, from);
	}
}

static void concat_pass(struct writer *w, struct ap_unified *u)
{
	for (int k = 0; k < u->n; k++)
		if (is_in_the_way(&u->sub[k]) && !wanted(u, u->sub[k].in))
			gather(w, u, k);
}

/* SPLIT and PERMUTE passes until neither does anything. */
static void settle(struct writer *w, struct ap_unified *u)
{
	int before, round = -1;

	while (w->waiting && w->n > round) {
		round = w->n;
		split_pass(w, u);
		do {
			before = w->n;
			if (w->waiting)
				permute_pass(w, u);
		} while (w->n > before);
	}
}

static int first_in_the_way(const struct ap_unified *u)
{
	int k = 0;

	while (!is_in_the_way(&u->sub[k]))
		k++;
	return k;
}

/* Formats 5.2. What is finished never moves again, so nothing needs to be crossed off. */
static void infer(struct writer *w, struct ap_unified *u)
{
	for (int k = 0; k < u->n; k++) {
		w->waiting += is_waiting(&u->sub[k]);
		w->in_the_way += is_in_the_way(&u->sub[k]);
	}
	while (w->waiting || w->in_the_way) {
		int before = w->n;

		settle(w, u);
		if (w->in_the_way)
			concat_pass(w, u);
		if (w->n == before) /* a cycle of axes */
			gather(w, u, first_in_the_way(u));
	}
}

/* Formats 5.1 step 5: nothing in common, so all is brought together and dealt out anew. */
static void through_whole(struct writer *w, const struct ap_layout *a, const struct ap_layout *b,
	const int64_t *size)
{
	bool first = true;

	for (int d = 0; d < a->rank; d++) {
		struct ap_axis axis = {a->dim[d].stride, a->dim[d].cut};

		if (a->dim[d].cut > 1)
			emit(w, AP_MOVE_GATHER, axis, d)->first = first;
		first = first && size[d] == 1;
	}
	for (int d = 0; d < b->rank; d++) {
		struct ap_axis axis = {b->dim[d].stride, b->dim[d].cut};

		if (b->dim[d].cut > 1)
			emit(w, AP_MOVE_SLICE, axis, d);
	}
}

int ap_reshard(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	int64_t ndev, struct ap_reshard_step steps[AP_RESHARD_MAX])
{
	struct writer w = {.steps = steps, .elements = 1};
	struct ap_unified u;
	int64_t parts = ap_layout_parts(a);

	assert(a->rank == b->rank && ndev % parts == 0);
	for (int d = 0; d < a->rank; d++)
		w.elements *= size[d];
	w.elements /= parts;
	if (!ap_reshard_unify(a, b, size, &u))
		through_whole(&w, a, b, size);
	else
		infer(&w, &u);
	return w.n;
}
