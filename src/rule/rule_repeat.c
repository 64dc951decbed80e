/* SPDX-License-Identifier: Apache-2.0 */
/* Dimensions added, dropped and repeated. */
#include <inttypes.h>

#include "base/num.h"
#include "rule/expand.h"

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

/* The dimensions that go: those that axis names, or all of length one. */
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

/* A list for the dimensions of the result, of which the operand has the last ones. */
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

/* Length of dimension k of the result; have: that of the operand, 0 where it has none. */
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

/* Repeated dimensions are made as a whole on every device. */
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

/* Length of a dimension whose elements are repeated: each as often as one number says, or each as
 * often as its own. */
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

/* Is every element there once, so that nothing changes? Lengths do not tell: 2, 1, 0 of three. */
static bool all_once(const struct ap_attr *a)
{
	for (uint32_t i = 0; a->type == AP_ATTR_INTS && i < a->n; i++)
		if (a->list[i] != 1)
			return false;
	return a->type == AP_ATTR_INTS || a->i == 1;
}

/* The result has the operand's dimensions, the repeated one with its new length. */
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

/* As often as a tensor says: the length is the declared one. */
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
