/* SPDX-License-Identifier: Apache-2.0 */
/* Places given for each dimension, and the largest or smallest of any dimension. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

/* Operand 1 + d holds places in dimension d. */
static bool index_by_all(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0];
	const struct ex_box *out = &j->out[0].box, *first = &j->in[1].box;
	int n = j->nin - 1, found = first->rank;
	int64_t at[AP_MAX_RANK] = {0};

	if (out->rank != found + x->box.rank - n)
		return false;
	for (int d = 0; d < out->rank; d++)
		if (out->size[d] != (d < found ? first->size[d] : x->box.size[d - found + n]))
			return false;
	do {
		int64_t own[AP_MAX_RANK];

		for (int d = 0; d < x->box.rank; d++) {
			own[d] = d < n ? (int64_t)ex_value_of(j->tape, ex_get(&j->in[1 + d], at))
				: at[d - n + found];
			if (own[d] >= x->box.size[d])
				return false;
		}
		ex_put(&j->out[0], at, ex_get(x, own));
	} while (ex_step(out, at));
	return true;
}

struct line { /* elements of operand 0 that differ in one dimension */
	const struct ex_job *j;
	int dim;
	int64_t at[AP_MAX_RANK]; /* of the first */
};

static ex_id get(struct line *l, int64_t i)
{
	l->at[l->dim] = i;
	return ex_get(&l->j->in[0], l->at);
}

/* Of equals the one with the lower index first. */
static bool precedes(struct line *l, int64_t a, int64_t b)
{
	bool smallest = !ap_attr_bool(l->j->attrs, "largest", true);
	ex_id x = get(l, a), y = get(l, b);
	bool less = ex_less(l->j->tape, x, y), more = ex_less(l->j->tape, y, x);

	return less || more ? (smallest ? less : more) : a < b;
}

static void top_of_line(struct line *l, int64_t n, int64_t k)
{
	for (int64_t i = 0; i < n; i++) {
		int64_t place = 0;
		ex_id v;

		for (int64_t other = 0; other < n; other++)
			place += precedes(l, other, i);
		if (place >= k)
			continue;
		v = get(l, i);
		l->at[l->dim] = place;
		ex_put(&l->j->out[0], l->at, v);
		if (l->j->nout > 1)
			ex_put(&l->j->out[1], l->at, ex_leaf(l->j->tape, (uint64_t)i));
	}
	l->at[l->dim] = 0;
}

static bool top(const struct ex_job *j)
{
	const struct ex_box *in = &j->in[0].box, *out = &j->out[0].box;
	struct line l = {.j = j, .dim = ex_axis(j, "dim", -1, in->rank)};
	struct ex_box lines = *in;
	int64_t k = ap_attr_int(j->attrs, "k", 0);

	if (l.dim < 0 || in->rank != out->rank || out->size[l.dim] != k || k > in->size[l.dim])
		return false;
	for (int d = 0; d < in->rank; d++)
		if (d != l.dim && in->size[d] != out->size[d])
			return false;
	lines.size[l.dim] = 1;
	do
		top_of_line(&l, in->size[l.dim], k);
	while (ex_step(&lines, l.at));
	return true;
}

static int64_t limit_index(const struct ap_node *n, unsigned slot)
{
	return slot > 0 ? n->bound.in[0].size[slot - 1] : 0;
}

const struct ex_kernel ex_kernels_gather[] = {
	{.type = "Index", .forward = index_by_all, .make = ex_make_index, .limit = limit_index,
		.no_grad = ~UINT32_C(1)},
	{.type = "TopkExt", .forward = top, .make = ex_make_top_along, .ordered = true},
	{0}
};
