/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that no text can state, because their factors come from the shapes: "=reshape", "=flatten".
 *
 * Both sides of a reshape are row-major, so a factor is a run between two neighbouring prefix
 * products. A group is the shortest run of dimensions with equal product on both sides; where the
 * prefix products of both sides form one chain of divisors, its quotients are the group's factors
 * ([6, 4] -> [2, 3, 4]); where they do not ([6, 4] -> [8, 3]) no dimension of it can be cut.
 */
#include "rule/expand.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"

struct side {
	const int64_t *size;
	struct ap_dim *dim;
	int n; /* dimensions */
	int at; /* current dimension */
	int64_t rest; /* of it, what no factor covers yet */
};

/* Moves past dimensions of length one (they carry no factor) and those that are used up. */
static bool settle(struct side *s)
{
	while (s->rest == 1 && s->at + 1 < s->n)
		s->rest = s->size[++s->at];
	return s->rest > 1;
}

static struct side start(const int64_t *size, struct ap_dim *dim, int n)
{
	return (struct side){size, dim, n, -1, 1};
}

/* The end of the group that starts at dimensions i and k: equal products. */
static void group_end(const struct side *x, const struct side *y, int *i, int *k)
{
	int64_t px = x->size[*i], py = y->size[*k];

	while (px != py) {
		if (px < py)
			px *= x->size[++*i];
		else
			py *= y->size[++*k];
	}
}

static bool divides(const struct side *x, const struct side *y)
{
	return x->rest % y->rest == 0 || y->rest % x->rest == 0;
}

/* Does the group up to dimensions i, k factor cleanly into parts that fit a dimension? */
static bool chain(struct side x, struct side y, int i, int k)
{
	int nx = 0, ny = 0, atx = x.at, aty = y.at;

	while (settle(&x) && settle(&y) && x.at <= i && y.at <= k) {
		int64_t f = x.rest < y.rest ? x.rest : y.rest;

		nx = x.at == atx ? nx + 1 : 1;
		ny = y.at == aty ? ny + 1 : 1;
		atx = x.at;
		aty = y.at;
		if (!divides(&x, &y) || nx > AP_MAX_DIM_FACTOR || ny > AP_MAX_DIM_FACTOR)
			return false;
		x.rest /= f;
		y.rest /= f;
	}
	return true;
}

static bool take(struct ap_binding *b, struct side *x, struct side *y)
{
	int64_t f = x->rest < y->rest ? x->rest : y->rest;
	struct ap_dim *dx = &x->dim[x->at], *dy = &y->dim[y->at];
	uint8_t id;

	if (!ap_bind_factor(b, (char)('A' + b->bound.nfactor), 0, f, &id))
		return false;
	dx->factor[dx->n++] = id;
	dy->factor[dy->n++] = id;
	x->rest /= f;
	y->rest /= f;
	return true;
}

static void skip_to(struct side *s, int last)
{
	s->at = last;
	s->rest = 1;
}

/* O(rank^2). Both products are equal and within int64. */
static bool factorise(struct ap_binding *b, struct side x, struct side y)
{
	while (settle(&x) && settle(&y)) {
		int i = x.at, k = y.at;

		group_end(&x, &y, &i, &k);
		if (!chain(x, y, i, k)) {
			skip_to(&x, i);
			skip_to(&y, k);
			continue;
		}
		while (settle(&x) && settle(&y) && x.at <= i && y.at <= k)
			if (!take(b, &x, &y))
				return false;
	}
	return true;
}

/* Attribute `shape` with its one -1 solved for; all other extents at least 1. */
static bool read_shape(struct ap_binding *b, const struct ap_attr *a, int64_t total, int64_t *dim)
{
	int64_t known = 1;
	int open = -1;

	for (uint32_t i = 0; i < a->n; i++) {
		dim[i] = a->list[i];
		if (dim[i] == -1 && open >= 0)
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute shape has more than one -1");
		if (dim[i] == -1)
			open = (int)i;
		else if (dim[i] < 1 || !ap_mul(known, dim[i], &known))
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute shape has %" PRId64 " at %" PRIu32
				"; a length or one -1 is expected", a->list[i], i);
	}
	if (open < 0)
		return true;
	dim[open] = total % known == 0 ? total / known : 0;
	return dim[open] > 0 || ap_bind_fail(b, "operator-shape", 0,
		"%" PRId64 " elements cannot be shaped as %s; as many are expected", total,
		ap_bind_shape(b, a->list, (uint8_t)a->n));
}

static bool wanted_shape(struct ap_binding *b, int64_t total, struct ap_operand *o)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, "shape");
	const struct ap_shape *said = ap_bind_declared(b, 0);

	if (a && a->type == AP_ATTR_INTS) {
		if (a->n > AP_MAX_RANK)
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute shape has more than %d values", AP_MAX_RANK);
		o->rank = (uint8_t)a->n;
		return read_shape(b, a, total, o->size);
	}
	if (!said)
		return ap_bind_fail(b, "operator-attr", -1,
			"neither attribute shape nor the shape of the result is given");
	o->rank = said->rank;
	memcpy(o->size, said->dim, sizeof o->size);
	return true;
}

static bool expand_to(struct ap_binding *b, int64_t total)
{
	struct ap_operand *in = &b->bin[0], *out = &b->bout[0];
	int64_t have;

	if (!ap_product(out->size, out->rank, &have) || have != total)
		return ap_bind_fail(b, "operator-shape", 0,
			"operand 0 has shape %s, %" PRId64 " elements; %s has another number",
			ap_bind_shape(b, in->size, in->rank), total,
			ap_bind_shape(b, out->size, out->rank));
	return factorise(b, start(in->size, in->dim, in->rank),
		start(out->size, out->dim, out->rank));
}

static bool count_elements(struct ap_binding *b, int64_t *total)
{
	return ap_product(b->bin[0].size, b->bin[0].rank, total) ||
		ap_bind_fail(b, "operator-shape", 0, "the element count overflows");
}

bool ap_expand_reshape(struct ap_binding *b)
{
	int64_t total;

	return count_elements(b, &total) && wanted_shape(b, total, &b->bout[0]) &&
		expand_to(b, total);
}

bool ap_expand_flatten(struct ap_binding *b)
{
	struct ap_operand *out = &b->bout[0];
	int64_t total;

	if (!ap_expand_rank(b, 0, 1) || !count_elements(b, &total))
		return false;
	out->rank = 2;
	out->size[0] = b->bin[0].size[0];
	out->size[1] = total / out->size[0];
	return expand_to(b, total);
}
