/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that text cannot express, because factors follow from shapes: "=reshape", "=flatten".
 *
 * Both sides of a reshape are row-major, so a factor is a run between two neighbouring prefix
 * products. A group is the shortest run of dimensions with equal product on both sides. If the
 * prefix products of both sides form one chain of divisors, its quotients are the group's factors
 * ([6, 4] -> [2, 3, 4]); if not ([6, 4] -> [8, 3]), no dimension of the group can be cut.
 */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "rule/attr.h"
#include "rule/binding.h"
#include "rule/expand.h"

struct side {
	const int64_t *size;
	struct ap_dim *dim;
	int n; /* number of dimensions */
	int at; /* current dimension */
	int64_t rest; /* of its length, not covered by factors yet */
};

/* Skips dimensions that are used up or of length one (which have no factor). */
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

static bool divides(const struct side *x, const struct side *y)
{
	return x->rest % y->rest == 0 || y->rest % x->rest == 0;
}

/* Does the group up to dimensions i, k factor into parts that each fit a dimension? */
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

/* Clamps an end of a range (negative: from the end of the dimension). */
static int64_t bound(int64_t v, int64_t have, int64_t stride)
{
	int64_t low = stride > 0 ? 0 : -1;

	v = v < 0 ? v + have : v;
	return v < low ? low : v > have + low ? have + low : v;
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

static bool wanted_shape(struct ap_binding *b, int64_t total, struct ap_operand *o)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, "shape");
	const struct ap_shape *said = ap_bind_declared(b, 0);

	if (a && a->type == AP_ATTR_INTS) {
		int64_t *dim;
		int64_t known = 1;
		int open = -1;

		if (a->n > AP_MAX_RANK)
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute shape has more than %d values", AP_MAX_RANK);
		o->rank = (uint8_t)a->n;
		/* attribute `shape`, with one -1 solved for; other extents at least 1 */
		dim = o->size;
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
	struct side x, y;

	if (!ap_product(out->size, out->rank, &have) || have != total)
		return ap_bind_fail(b, "operator-shape", 0,
			"operand 0 has shape %s, %" PRId64 " elements; %s has another number",
			ap_bind_shape(b, in->size, in->rank), total,
			ap_bind_shape(b, out->size, out->rank));
	/* O(rank^2): both products are equal and fit int64 */
	x = start(in->size, in->dim, in->rank);
	y = start(out->size, out->dim, out->rank);
	while (settle(&x) && settle(&y)) {
		int i = x.at, k = y.at;
		int64_t px = x.size[i], py = y.size[k];

		/* end of the group that starts at dimensions i and k: equal products */
		while (px != py) {
			if (px < py)
				px *= x.size[++i];
			else
				py *= y.size[++k];
		}
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

/* Takes the results' shapes and types from their declarations. */
static bool take_declared(struct ap_binding *b)
{
	for (uint16_t i = 0; i < b->nout; i++) {
		const struct ap_shape *said = ap_bind_declared(b, i);

		if (!said || said->dtype == AP_DTYPE_COUNT)
			return ap_bind_fail(b, "operator-outputs", -1,
				"shape and type of result %u do not follow from the operands; they must "
				"be declared", i);
		b->bout[i].rank = said->rank;
		memcpy(b->bout[i].size, said->dim, sizeof said->dim);
	}
	return true;
}

/* Operands, then results. */
static struct ap_operand *tensor_at(struct ap_binding *b, unsigned i)
{
	return i < b->in->nin ? &b->bin[i] : &b->bout[i - b->in->nin];
}

static unsigned tensor_count(const struct ap_binding *b)
{
	return b->in->nin + (unsigned)b->nout;
}

/* Counts work per element of the largest tensor; a factor of this size is part of it. */
static void count_all(struct ap_binding *b, int64_t size)
{
	double most = 1;

	for (unsigned i = 0; i < tensor_count(b); i++) {
		const struct ap_operand *o = tensor_at(b, i);
		double n = 1;

		for (uint8_t k = 0; k < o->rank; k++)
			n *= (double)o->size[k];
		most = n > most ? n : most;
	}
	b->bound.flops *= most / (double)size;
}

bool ap_expand_whole(struct ap_binding *b)
{
	if (!take_declared(b))
		return false;
	count_all(b, 1);
	return true;
}

/* Two numbers for each channel of operand 0, which depend on all of it. */
bool ap_expand_channel_range(struct ap_binding *b)
{
	const struct ap_operand *x = &b->bin[0];
	uint8_t axis;

	if (!ap_expand_axis(b, "channel_axis", 1, x->rank, &axis))
		return false;
	for (unsigned i = 1; i < 3; i++) {
		const struct ap_operand *o = &b->bin[i];

		if (o->rank != 1)
			return ap_bind_fail(b, "operator-rank", (int)i,
				"operand %u has shape %s; 1 dimension is expected", i,
				ap_bind_shape(b, o->size, o->rank));
		if (o->size[0] != x->size[axis])
			return ap_bind_fail(b, "operator-shape", (int)i, "dimension 0 of operand %u is %"
				PRId64 "; %" PRId64 ", the length of dimension %d of operand 0, is expected",
				i, o->size[0], x->size[axis], axis);
	}
	for (uint16_t i = 0; i < b->nout; i++)
		if (!ap_expand_add(b, &b->bout[i], x->size[axis], AP_NO_FACTOR))
			return false;
	count_all(b, 1);
	return true;
}

/* Does dimension 0 of o hold samples? Scalars and lengths of one stay whole if that is allowed. */
static bool has_samples(const struct ap_operand *o)
{
	return o->rank > 0 && o->size[0] > 1;
}

/* One factor b, the samples, along dimension 0 of each tensor that has samples. If lengths differ,
 * it is their common divisor, and a part has several samples of the longer ones: mixed are the
 * flags for that case. */
static bool cut_samples(struct ap_binding *b, uint8_t mixed)
{
	int64_t size = 0;
	uint8_t flags = 0, id;

	for (unsigned i = 0; i < tensor_count(b); i++) {
		const struct ap_operand *o = tensor_at(b, i);

		if (!has_samples(o))
			continue;
		flags = size && o->size[0] != size ? mixed : flags;
		size = ap_gcd(size, o->size[0]);
	}
	if (!ap_expand_factor(b, 'b', flags, size ? size : 1, &id))
		return false;
	for (unsigned i = 0; i < tensor_count(b); i++)
		if (has_samples(tensor_at(b, i)))
			ap_expand_put(&tensor_at(b, i)->dim[0], id);
	count_all(b, size ? size : 1);
	return true;
}

/* Cuts samples if all operands and results have them, else nothing. */
bool ap_expand_batch(struct ap_binding *b)
{
	if (!take_declared(b))
		return false;
	for (unsigned i = 0; i < tensor_count(b); i++)
		if (!has_samples(tensor_at(b, i))) {
			count_all(b, 1);
			return true;
		}
	return cut_samples(b, AP_FACTOR_MIXED);
}

/* Do dimensions d of operands 0 and 1 have equal lengths? */
static bool same_length(struct ap_binding *b, uint8_t d)
{
	return b->bin[1].size[d] == b->bin[0].size[d] || ap_bind_fail(b, "operator-shape", 1,
		"dimension %d of operand 1 is %" PRId64 ", that of operand 0 is %" PRId64
		"; equal lengths are expected", d, b->bin[1].size[d], b->bin[0].size[d]);
}

/* Checks right-hand sides of linear systems: matrices or vectors with operand 0's rows. */
static bool are_right_sides(struct ap_binding *b)
{
	uint8_t rank = b->bin[0].rank;

	if (!ap_expand_rank(b, 0, 2))
		return false;
	if (b->bin[1].rank != rank && b->bin[1].rank != rank - 1)
		return ap_bind_fail(b, "operator-rank", 1, "operand 1 has %d dimensions; %d or %d are "
			"expected", b->bin[1].rank, rank - 1, rank);
	for (uint8_t d = 0; d < rank - 1; d++)
		if (!same_length(b, d))
			return false;
	return true;
}

/* Checks their solutions, with a row per column of operand 0. */
static bool are_solutions(struct ap_binding *b)
{
	const struct ap_operand *a = &b->bin[0], *y = &b->bin[1], *x = &b->bout[0];
	uint8_t rank = a->rank;

	for (uint8_t d = 0; d < y->rank && x->rank == y->rank; d++) {
		int64_t want = d == rank - 2 ? a->size[rank - 1] : y->size[d];

		if (x->size[d] != want)
			return ap_bind_fail(b, "operator-shape", 0, "with operands of %s and %s, "
				"dimension %d of result 0 is declared as %" PRId64 "; %" PRId64
				" is expected", ap_bind_shape(b, a->size, rank),
				ap_bind_shape(b, y->size, y->rank), d, x->size[d], want);
	}
	return x->rank == y->rank || ap_bind_fail(b, "operator-rank", 1,
		"operand 1 has %d dimensions; %d, as many as result 0, are expected", y->rank, x->rank);
}

/* A single matrix has no batch to cut. */
bool ap_expand_matrices(struct ap_binding *b)
{
	return are_right_sides(b) &&
		(b->bin[0].rank > 2 ? ap_expand_batch(b) : ap_expand_whole(b)) && are_solutions(b);
}

/* Results are the operands passed on or, without operands, what is read. */
bool ap_expand_dataset(struct ap_binding *b)
{
	if (b->in->nin > 0 && b->nout > b->in->nin)
		return ap_bind_fail(b, "operator-outputs", -1,
			"%d results are declared; %s has one for each of its %d operands", b->nout,
			b->row->name, b->in->nin);
	if (b->in->nin == 0 && !take_declared(b))
		return false;
	for (uint16_t i = 0; b->in->nin > 0 && i < b->nout; i++) {
		b->bout[i].rank = b->bin[i].rank;
		memcpy(b->bout[i].size, b->bin[i].size, sizeof b->bin[i].size);
	}
	for (uint16_t i = 0; i < b->nout; i++)
		b->bout[i].silent = true; /* no other operand enters it */
	return cut_samples(b, 0); /* each is cut on its own */
}

/* Are all operands numbers? The first may be the result's shape. */
static bool are_numbers(struct ap_binding *b)
{
	for (unsigned i = 0; i < b->in->nin; i++) {
		const struct ap_operand *o = &b->bin[i];
		bool shape = ap_bind_slot(b, i) == 0 && o->rank == 1 && o->size[0] == b->bout[0].rank;

		if (!shape && (o->rank > 1 || (o->rank == 1 && o->size[0] != 1)))
			return ap_bind_fail(b, "operator-rank", (int)i,
				"operand %u has shape %s; one number is expected", i,
				ap_bind_shape(b, o->size, o->rank));
	}
	return true;
}

/* A tensor of numbers that depend only on their positions. */
bool ap_expand_fill(struct ap_binding *b)
{
	uint8_t id[AP_MAX_RANK];

	return take_declared(b) && are_numbers(b) && ap_expand_dims(b, &b->bout[0], 0, id);
}

bool ap_expand_new_dim(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t axis, id[AP_MAX_RANK];

	if (!ap_expand_list(b, "axis") ||
		!ap_expand_axis(b, "axis", 0, (uint8_t)(in->rank + 1), &axis) ||
		!ap_expand_dims(b, in, 0, id))
		return false;
	for (uint8_t k = 0; k <= in->rank; k++) {
		if (k == axis && !ap_expand_add(b, &b->bout[0], 1, AP_NO_FACTOR))
			return false;
		if (k < in->rank && !ap_expand_add(b, &b->bout[0], in->size[k], id[k]))
			return false;
	}
	return true;
}

/* Finds the dimensions to drop: those of axis, or all of length one. */
static bool squeezed(struct ap_binding *b, uint32_t *mask)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, "axis");
	const struct ap_operand *in = &b->bin[0];

	*mask = 0;
	for (uint8_t k = 0; k < in->rank && (!a || a->n == 0); k++)
		*mask |= (uint32_t)(in->size[k] == 1) << k;
	for (uint32_t i = 0; a && i < a->n; i++) {
		int64_t v = a->list[i], at = v < 0 ? v + in->rank : v;

		if (at < 0 || at >= in->rank)
			return ap_bind_fail(b, "operator-attr", -1, "attribute axis is %" PRId64
				"; with %d dimensions %d..%d is allowed", v, in->rank, -in->rank,
				in->rank - 1);
		if (in->size[at] != 1)
			return ap_bind_fail(b, "operator-shape", 0, "dimension %" PRId64
				" of operand 0 is %" PRId64 "; 1 is expected where it is dropped",
				at, in->size[at]);
		*mask |= UINT32_C(1) << at;
	}
	return true;
}

bool ap_expand_squeeze(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t id[AP_MAX_RANK];
	uint32_t gone;

	if (!squeezed(b, &gone) || !ap_expand_dims(b, in, gone, id))
		return false;
	for (uint8_t k = 0; k < in->rank; k++)
		if (!(gone >> k & 1) && !ap_expand_add(b, &b->bout[0], in->size[k], id[k]))
			return false;
	return true;
}

/* A list for the dimensions of the result, whose last ones are the operand's. */
static const struct ap_attr *per_dim(struct ap_binding *b, const char *name)
{
	const struct ap_attr *a = ap_expand_list(b, name);
	uint8_t rank = b->bin[0].rank;

	if (a && (a->n < rank || a->n > AP_MAX_RANK)) {
		ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRIu32
			" values; with %d dimensions %d..%d are allowed", name, a->n, rank, rank,
			AP_MAX_RANK);
		return NULL;
	}
	return a;
}

/* Length of dimension k of the result; have: the operand's length, 0 if it lacks the dimension. */
static bool broadcast_length(struct ap_binding *b, const struct ap_attr *a, uint8_t k,
	int64_t have, int64_t *want)
{
	*want = a->list[k] == -1 && have ? have : a->list[k];
	if (*want < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute shape has %" PRId64 " at %d; a length%s is expected", a->list[k],
			k, have ? " or -1" : "");
	return have <= 1 || have == *want || ap_bind_fail(b, "operator-shape", 0,
		"dimension %d of operand 0 is %" PRId64 "; 1 or, by attribute %s, %" PRId64
		" is expected", k - (int)a->n + b->bin[0].rank, have, a->name, *want);
}

/* Every device makes repeated dimensions whole. */
bool ap_expand_broadcast(struct ap_binding *b)
{
	const struct ap_attr *a = per_dim(b, "shape");
	struct ap_operand *in = &b->bin[0];
	uint8_t id[AP_MAX_RANK];

	if (!a || !ap_expand_dims(b, in, 0, id))
		return false;
	for (uint8_t k = 0; k < a->n; k++) {
		int d = k - (int)a->n + in->rank;
		int64_t want;

		if (!broadcast_length(b, a, k, d < 0 ? 0 : in->size[d], &want) ||
			!ap_expand_add(b, &b->bout[0], want, d < 0 ? AP_NO_FACTOR : id[d]))
			return false;
	}
	return true;
}

/* Dimension k of the result: n copies of dimension d of the operand, which then stays whole. */
static bool tile_dim(struct ap_binding *b, uint8_t k, int64_t n, int d)
{
	struct ap_operand *in = &b->bin[0], *out = &b->bout[0];
	int64_t have = d < 0 ? 1 : in->size[d], size;
	uint8_t copies, inner;

	if (n < 1 || !ap_mul(n, have, &size))
		return ap_bind_fail(b, "operator-attr", -1, "attribute multiples has %" PRId64
			" at %d; a number of at least 1 is expected", n, k);
	if (!ap_expand_factor(b, (char)('A' + k), 0, n, &copies) ||
		!ap_expand_factor(b, (char)(n > 1 ? 'a' + k : 'A' + k),
			n > 1 ? AP_FACTOR_FROZEN : 0, have, &inner) ||
		!ap_expand_add(b, out, size, copies))
		return false;
	ap_expand_put(&out->dim[k], inner);
	if (d >= 0)
		ap_expand_put(&in->dim[d], inner);
	return true;
}

bool ap_expand_tile(struct ap_binding *b)
{
	const struct ap_attr *a = per_dim(b, "multiples");

	for (uint8_t k = 0; a && k < a->n; k++)
		if (!tile_dim(b, k, a->list[k], k - (int)a->n + b->bin[0].rank))
			return false;
	return a;
}

/* Length of a dimension whose elements are each repeated, by one number or by one per element. */
static bool repeated_length(struct ap_binding *b, const struct ap_attr *a, int64_t have, int64_t *size)
{
	int64_t once = ap_attr_int(b->in->attrs, a->name, 1);

	if (a->type != AP_ATTR_INTS || a->n == 1)
		return (once >= 1 && ap_mul(once, have, size)) || ap_bind_fail(b, "operator-attr", -1,
			"attribute %s is %" PRId64 "; a number of at least 1 is expected", a->name, once);
	if (a->n != (uint64_t)have)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRIu32
			" values; 1 or %" PRId64 " are expected", a->name, a->n, have);
	*size = 0;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->list[i] < 0 || !ap_add(*size, a->list[i], size))
			return ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRId64
				" at %" PRIu32 "; at least 0 is expected", a->name, a->list[i], i);
	return *size > 0 || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s has no number above 0", a->name);
}

/* Is every element repeated once? Lengths cannot tell: 2, 1, 0 of three elements. */
static bool all_once(const struct ap_attr *a)
{
	for (uint32_t i = 0; a->type == AP_ATTR_INTS && i < a->n; i++)
		if (a->list[i] != 1)
			return false;
	return a->type == AP_ATTR_INTS || a->i == 1;
}

/* The result has the operand's dimensions, with a new length for the repeated one. */
static bool repeat_along(struct ap_binding *b, uint8_t axis, int64_t size, bool once)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t id[AP_MAX_RANK];

	if (!ap_expand_dims(b, in, once ? 0 : UINT32_C(1) << axis, id))
		return false;
	for (uint8_t k = 0; k < in->rank; k++)
		if (!ap_expand_add(b, &b->bout[0], k == axis ? size : in->size[k], id[k]))
			return false;
	return true;
}

bool ap_expand_repeat(struct ap_binding *b)
{
	const struct ap_attr *rep = ap_attr_get(b->in->attrs, "rep");
	const struct ap_attr *a = rep ? rep : ap_attr_get(b->in->attrs, "repeats");
	const char *dim = ap_attr_get(b->in->attrs, "dim") ? "dim" : "axis";
	const struct ap_operand *in = &b->bin[0];
	int64_t size, all;
	uint8_t axis;

	if (!a)
		return ap_bind_fail(b, "operator-attr", -1, "attribute rep or repeats is missing");
	if (!ap_expand_rank(b, 0, 1))
		return false;
	if (rep || ap_attr_get(b->in->attrs, dim))
		return ap_expand_axis(b, dim, 0, in->rank, &axis) &&
			repeated_length(b, a, in->size[axis], &size) &&
			repeat_along(b, axis, size, all_once(a));
	return (ap_product(in->size, in->rank, &all) || ap_bind_fail(b, "operator-shape", 0,
		"the result's length overflows")) && repeated_length(b, a, all, &size) &&
		ap_expand_add(b, &b->bout[0], size, AP_NO_FACTOR);
}

/* Repeats by a tensor's values: the length is the declared one. */
bool ap_expand_repeat_by(struct ap_binding *b)
{
	const struct ap_shape *said = ap_bind_declared(b, 0);
	const struct ap_operand *in = &b->bin[0];
	uint8_t axis;

	if (!ap_expand_rank(b, 0, 1))
		return false;
	if (!said)
		return ap_bind_fail(b, "operator-outputs", -1, "the length of the result does not follow "
			"from the shapes of the operands; it must be declared");
	if (!ap_attr_get(b->in->attrs, "dim"))
		return said->rank == 1 ? ap_expand_add(b, &b->bout[0], said->dim[0], AP_NO_FACTOR) :
			ap_bind_fail(b, "operator-outputs", -1, "without attribute dim the result has 1 "
				"dimension; %d are declared", said->rank);
	return ap_expand_axis(b, "dim", 0, in->rank, &axis) &&
		(said->rank == in->rank || ap_bind_fail(b, "operator-outputs", -1,
			"the result has %d dimensions; %d are declared", in->rank, said->rank)) &&
		repeat_along(b, axis, said->dim[axis], false);
}

/* Keeps dimension d of the operand unchanged. */
static bool take_whole(struct ap_binding *b, uint8_t d)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t id;

	if (!ap_expand_factor(b, (char)('A' + d), 0, in->size[d], &id))
		return false;
	ap_expand_put(&in->dim[d], id);
	return ap_expand_add(b, &b->bout[0], in->size[d], id);
}

static bool check_values(struct ap_binding *b, const struct ap_attr *a, uint32_t wanted)
{
	return a->n == wanted || ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRIu32
		" values; %" PRIu32 " are expected", a->name, a->n, wanted);
}

static bool slice_dim(struct ap_binding *b, uint8_t d, int64_t begin, int64_t size)
{
	int64_t have = b->bin[0].size[d];

	if (begin < 0 || begin >= have)
		return ap_bind_fail(b, "operator-attr", -1, "attribute begin has %" PRId64
			" at %d; for a length of %" PRId64 " 0..%" PRId64 " is allowed", begin, d,
			have, have - 1);
	if (size == -1)
		size = have - begin;
	if (size < 1 || size > have - begin)
		return ap_bind_fail(b, "operator-attr", -1, "attribute size has %" PRId64
			" at %d; from %" PRId64 " on 1..%" PRId64 " or -1 is allowed", size, d,
			begin, have - begin);
	return size == have ? take_whole(b, d)
			    : ap_expand_add(b, &b->bout[0], size, AP_NO_FACTOR);
}

bool ap_expand_slice(struct ap_binding *b)
{
	const struct ap_attr *begin = ap_expand_list(b, "begin");
	const struct ap_attr *size = begin ? ap_expand_list(b, "size") : NULL;
	uint8_t rank = b->bin[0].rank;

	if (!size || !check_values(b, begin, rank) || !check_values(b, size, rank))
		return false;
	for (uint8_t d = 0; d < rank; d++)
		if (!slice_dim(b, d, begin->list[d], size->list[d]))
			return false;
	return true;
}

/* Clamps a position (negative: from the end) in a dimension of length n. */
static int64_t clamp(int64_t at, int64_t n)
{
	at = at < 0 ? at + n : at;
	return at < 0 ? 0 : at > n ? n : at;
}

/* Every step-th element of one dimension, from start to end. */
bool ap_expand_slice_one(struct ap_binding *b)
{
	const struct ap_operand *in = &b->bin[0];
	int64_t start, end, step, have;
	uint8_t dim;

	if (!ap_expand_rank(b, 0, 1) || !ap_expand_axis(b, "dim", 0, in->rank, &dim))
		return false;
	have = in->size[dim];
	if (!ap_expand_number(b, "start", 0, &start) || !ap_expand_number(b, "end", have, &end) ||
		!ap_expand_number(b, "step", 1, &step))
		return false;
	if (step < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute step is %" PRId64 "; at least 1 is expected", step);
	start = clamp(start, have);
	end = clamp(end, have);
	if (end <= start)
		return ap_bind_fail(b, "operator-attr", -1, "attributes start and end leave nothing of "
			"dimension %d of length %" PRId64 "; at least one element is expected", dim, have);
	for (uint8_t d = 0; d < in->rank; d++)
		if (d == dim && (end - start < have || step > 1)
			? !ap_expand_add(b, &b->bout[0], (end - start - 1) / step + 1, AP_NO_FACTOR)
			: !take_whole(b, d))
			return false;
	return true;
}

/* Sums of diagonals through two dimensions, which stay whole. */
bool ap_expand_trace(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t first, second, id[AP_MAX_RANK];
	uint32_t whole;

	if (!ap_expand_rank(b, 0, 2) || !ap_expand_axis(b, "axis1", 1, in->rank, &first) ||
		!ap_expand_axis(b, "axis2", 0, in->rank, &second))
		return false;
	if (first == second)
		return ap_bind_fail(b, "operator-attr", -1, "attributes axis1 and axis2 both name "
			"dimension %d; two dimensions are expected", first);
	whole = UINT32_C(1) << first | UINT32_C(1) << second;
	if (!ap_expand_dims(b, in, whole, id))
		return false;
	for (uint8_t d = 0; d < in->rank; d++)
		if (!(whole >> d & 1) && !ap_expand_add(b, &b->bout[0], in->size[d], id[d]))
			return false;
	return true;
}

enum { MAX_SPEC = 2 * AP_MAX_RANK }; /* as many new dimensions as old ones */

/* Attributes of a strided slice: bit i of the masks changes what entry i means. */
struct strided {
	const struct ap_attr *begin, *end, *strides; /* strides is NULL if all are 1 */
	uint32_t begin_mask, end_mask, ellipsis, new_axis, shrink;
	uint8_t n;
	uint8_t d; /* the operand's next dimension */
};

static bool read_mask(struct ap_binding *b, const char *name, uint32_t *mask)
{
	int64_t v = ap_attr_int(b->in->attrs, name, 0);

	*mask = (uint32_t)(v & ((1 << MAX_SPEC) - 1));
	return v >= 0 || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s is %" PRId64 "; at least 0 is expected", name, v);
}

static bool read_masks(struct ap_binding *b, struct strided *s)
{
	return read_mask(b, "begin_mask", &s->begin_mask) &&
		read_mask(b, "end_mask", &s->end_mask) &&
		read_mask(b, "ellipsis_mask", &s->ellipsis) &&
		read_mask(b, "new_axis_mask", &s->new_axis) &&
		read_mask(b, "shrink_axis_mask", &s->shrink);
}

static bool read_strided(struct ap_binding *b, struct strided *s)
{
	s->begin = ap_expand_list(b, "begin");
	s->end = s->begin ? ap_expand_list(b, "end") : NULL;
	s->strides = ap_attr_get(b->in->attrs, "strides");
	if (!s->end || !read_masks(b, s))
		return false;
	if (s->begin->n > MAX_SPEC)
		return ap_bind_fail(b, "operator-attr", -1, "attribute begin has %" PRIu32
			" values; at most %d are expected", s->begin->n, MAX_SPEC);
	s->n = (uint8_t)s->begin->n;
	s->ellipsis &= (UINT32_C(1) << s->n) - 1;
	if (s->ellipsis & (s->ellipsis - 1))
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute ellipsis_mask has several bits; one is allowed");
	return check_values(b, s->end, s->n) && (!s->strides || check_values(b, s->strides, s->n));
}

/* Takes one index of dimension d, which is dropped. */
static bool take_index(struct ap_binding *b, struct strided *s, uint8_t i)
{
	int64_t have = b->bin[0].size[s->d++];
	int64_t v = s->begin_mask >> i & 1 ? 0 : s->begin->list[i];

	return (v >= -have && v < have) || ap_bind_fail(b, "operator-attr", -1,
		"attribute begin has %" PRId64 " at %d; for a length of %" PRId64 " %" PRId64
		"..%" PRId64 " is allowed", v, i, have, -have, have - 1);
}

static bool take_range(struct ap_binding *b, struct strided *s, uint8_t i)
{
	int64_t have = b->bin[0].size[s->d], step = s->strides ? s->strides->list[i] : 1;
	int64_t sign = step > 0 ? 1 : -1, from, to;

	if (step == 0)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute strides has 0 at %d; another number is expected", i);
	from = s->begin_mask >> i & 1 ? (step > 0 ? 0 : have - 1)
				      : bound(s->begin->list[i], have, step);
	to = s->end_mask >> i & 1 ? (step > 0 ? have : -1) : bound(s->end->list[i], have, step);
	if ((to - from) * sign < 1)
		return ap_bind_fail(b, "operator-shape", 0, "of dimension %d of operand 0, "
			"length %" PRId64 ", nothing is taken; at least one element is expected", s->d,
			have);
	if (step == 1 && to - from == have)
		return take_whole(b, s->d++);
	s->d++;
	return ap_expand_add(b, &b->bout[0], (to - from - sign) / step + 1, AP_NO_FACTOR);
}

/* Keeps n dimensions without an entry. */
static bool take_others(struct ap_binding *b, struct strided *s, int n)
{
	for (; n > 0; n--)
		if (!take_whole(b, s->d++))
			return false;
	return true;
}

static bool take_entry(struct ap_binding *b, struct strided *s, uint8_t i, int others)
{
	if (s->ellipsis >> i & 1)
		return take_others(b, s, others);
	if (s->new_axis >> i & 1)
		return ap_expand_add(b, &b->bout[0], 1, AP_NO_FACTOR);
	return s->shrink >> i & 1 ? take_index(b, s, i) : take_range(b, s, i);
}

bool ap_expand_strided(struct ap_binding *b)
{
	uint8_t rank = b->bin[0].rank;
	struct strided s = {0};
	int others = rank;

	if (!read_strided(b, &s))
		return false;
	for (uint8_t i = 0; i < s.n; i++)
		others -= !((s.ellipsis | s.new_axis) >> i & 1);
	if (others < 0)
		return ap_bind_fail(b, "operator-attr", -1, "attribute begin is for %d "
			"dimensions; at most %d are expected", rank - others, rank);
	for (uint8_t i = 0; i < s.n; i++)
		if (!take_entry(b, &s, i, others))
			return false;
	return take_others(b, &s, rank - s.d);
}

/* Padding of the d-th dimension from the end: pairs, or all before and then all after. */
static void pads_of(const struct ap_attr *a, bool pairs, uint32_t d, int64_t *before, int64_t *after)
{
	*before = a->list[pairs ? 2 * d : d];
	*after = a->list[pairs ? 2 * d + 1 : d + a->n / 2];
}

/* Mirroring excludes the edge; circular padding goes round at most once. */
static bool check_copies(struct ap_binding *b, uint8_t k, int64_t before, int64_t after)
{
	const char *mode = ap_attr_str(b->in->attrs, "mode", "constant");
	int64_t size = b->bin[0].size[k], most = before > after ? before : after;
	int64_t allowed = strcmp(mode, "reflect") == 0 ? size - 1 : size;

	if ((strcmp(mode, "reflect") != 0 && strcmp(mode, "circular") != 0) || most <= allowed)
		return true;
	return ap_bind_fail(b, "operator-attr", -1, "attribute paddings has %" PRId64
		" for dimension %d of length %" PRId64 "; with mode \"%s\" at most %" PRId64
		" is allowed", most, k, size, mode, allowed);
}

/* Padding of the last dimension comes first. */
bool ap_expand_pad(struct ap_binding *b)
{
	const struct ap_attr *a = ap_expand_list(b, "paddings");
	bool pairs = ap_attr_bool(b->in->attrs, "paddings_contiguous", true);
	struct ap_operand *in = &b->bin[0];

	if (!a)
		return false;
	if (a->n % 2 || a->n == 0 || a->n / 2 > in->rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute paddings has %" PRIu32
			" values; with %d dimensions an even number from 2 to %d is allowed", a->n,
			in->rank, 2 * in->rank);
	for (uint8_t k = 0; k < in->rank; k++) {
		uint32_t d = in->rank - 1u - k;
		int64_t before = 0, after = 0, size = 0;
		uint8_t id = AP_NO_FACTOR;

		if (d < a->n / 2)
			pads_of(a, pairs, d, &before, &after);
		if (!ap_add(in->size[k], before, &size) || !ap_add(size, after, &size) || size < 1)
			return ap_bind_fail(b, "operator-attr", -1, "attribute paddings has %" PRId64
				" and %" PRId64 " for dimension %d of length %" PRId64
				"; at least one element must be left", before, after, k,
				in->size[k]);
		if (!check_copies(b, k, before, after))
			return false;
		if (before == 0 && after == 0 &&
			!ap_expand_factor(b, (char)('A' + k), 0, in->size[k], &id))
			return false;
		ap_expand_put(&in->dim[k], id);
		if (!ap_expand_add(b, &b->bout[0], size, id))
			return false;
	}
	return true;
}

/* Height and width of the result: from the attribute or the declaration. */
static bool read_size(struct ap_binding *b, int64_t size[2])
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, "size");
	const struct ap_shape *said = ap_bind_declared(b, 0);
	const int64_t *v = a && a->type == AP_ATTR_INTS ? a->list : NULL;

	if (a && (!v || a->n != 2))
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute size must have two values, height and width");
	if (!a && (!said || said->rank != 4))
		return ap_bind_fail(b, "operator-outputs", -1, "shape of result 0 does not follow "
			"from the operands; attribute size or its 4 dimensions must be declared");
	for (int i = 0; i < 2; i++) {
		size[i] = a ? v[i] : said->dim[2 + i];
		if (size[i] < 1)
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute size has %" PRId64 "; at least 1 is expected", size[i]);
	}
	return true;
}

/* Pictures [N, C, H, W]: each point depends on points around it, so height and width stay whole. */
bool ap_expand_resize(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t id[AP_MAX_RANK];
	int64_t size[2];

	if (in->rank != 4)
		return ap_bind_fail(b, "operator-rank", 0,
			"operand 0 has shape %s; 4 dimensions are expected",
			ap_bind_shape(b, in->size, in->rank));
	if (!read_size(b, size) || !ap_expand_dims(b, in, 0xc, id))
		return false;
	b->bound.flops *= (double)size[0] * (double)size[1];
	for (uint8_t i = 0; i < 4; i++)
		if (!ap_expand_add(b, &b->bout[0], i < 2 ? in->size[i] : size[i - 2], id[i]))
			return false;
	return true;
}
