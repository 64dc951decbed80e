/* SPDX-License-Identifier: Apache-2.0 */
/* Many tensors to one, and one to many: the joined dimension stays whole. */
#include <inttypes.h>

#include "base/num.h"
#include "rule/attr.h"
#include "rule/binding.h"
#include "rule/expand.h"

/* Gives all operands the factors of the first, except in dimensions `whole`. */
static bool join(struct ap_binding *b, uint32_t whole, uint8_t id[AP_MAX_RANK])
{
	for (unsigned i = 1; i < b->in->nin; i++)
		if (!ap_expand_same(b, i, whole))
			return false;
	if (!ap_expand_dims(b, &b->bin[0], whole, id))
		return false;
	for (unsigned i = 1; i < b->in->nin; i++)
		for (uint8_t k = 0; k < b->bin[i].rank; k++)
			ap_expand_put(&b->bin[i].dim[k], id[k]);
	return true;
}

bool ap_expand_concat(struct ap_binding *b)
{
	const struct ap_operand *first = &b->bin[0];
	uint8_t axis, id[AP_MAX_RANK];
	int64_t sum = 0;

	if (!ap_expand_rank(b, 0, 1) || !ap_expand_axis(b, "axis", 0, first->rank, &axis) ||
		!join(b, UINT32_C(1) << axis, id))
		return false;
	for (unsigned i = 0; i < b->in->nin; i++)
		if (!ap_add(sum, b->bin[i].size[axis], &sum))
			return ap_bind_fail(b, "operator-shape", (int)i,
				"dimension %d of the result overflows", axis);
	for (uint8_t k = 0; k < first->rank; k++)
		if (!ap_expand_add(b, &b->bout[0], k == axis ? sum : first->size[k], id[k]))
			return false;
	return true;
}

bool ap_expand_stack(struct ap_binding *b)
{
	const struct ap_operand *first = &b->bin[0];
	uint8_t axis, id[AP_MAX_RANK];

	if (!ap_expand_axis(b, ap_attr_get(b->in->attrs, "dim") ? "dim" : "axis", 0,
		(uint8_t)(first->rank + 1), &axis) || !join(b, 0, id))
		return false;
	for (uint8_t k = 0; k <= first->rank; k++) {
		if (k == axis && !ap_expand_add(b, &b->bout[0], b->in->nin, AP_NO_FACTOR))
			return false;
		if (k < first->rank && !ap_expand_add(b, &b->bout[0], first->size[k], id[k]))
			return false;
	}
	return true;
}

bool ap_expand_alike(struct ap_binding *b)
{
	uint8_t id[AP_MAX_RANK];

	if (!join(b, 0, id))
		return false;
	for (uint8_t k = 0; k < b->bin[0].rank; k++)
		if (!ap_expand_add(b, &b->bout[0], b->bin[0].size[k], id[k]))
			return false;
	return true;
}

/* Two operands of equal shape. */
bool ap_expand_pair(struct ap_binding *b)
{
	return ap_expand_alike(b);
}

static bool are_rows(struct ap_binding *b, const struct ap_attr *rows)
{
	int64_t have = b->bin[0].size[0], n = b->bin[1].size[0];

	if (n != rows->n)
		return ap_bind_fail(b, "operator-shape", 1, "dimension 0 of operand 1 is %" PRId64
			"; attribute %s has %" PRIu32 " values, as many are expected", n, rows->name,
			rows->n);
	for (uint32_t i = 0; i < rows->n; i++)
		if (rows->list[i] < 0 || rows->list[i] >= have)
			return ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRId64 " at %"
				PRIu32 "; for a length of %" PRId64 " 0..%" PRId64 " is allowed",
				rows->name, rows->list[i], i, have, have - 1);
	return true;
}

/* Operand 1 replaces rows of operand 0, which are whole on every device. */
bool ap_expand_into_rows(struct ap_binding *b)
{
	const struct ap_attr *rows = ap_expand_list(b, "indices");
	uint8_t id[AP_MAX_RANK];

	if (!rows || !ap_expand_rank(b, 0, 1) || !join(b, 1, id) || !are_rows(b, rows))
		return false;
	for (uint8_t k = 0; k < b->bin[0].rank; k++)
		if (!ap_expand_add(b, &b->bout[0], b->bin[0].size[k], id[k]))
			return false;
	return true;
}

/* Operand 1, broadcast to operand 0's shape, is put into it. */
bool ap_expand_onto(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *y = &b->bin[1];
	int less = x->rank - y->rank;
	uint8_t id[AP_MAX_RANK];

	if (less < 0)
		return ap_bind_fail(b, "operator-rank", 1, "operand 1 has shape %s, operand 0 has %s; at "
			"most %d dimensions are expected", ap_bind_shape(b, y->size, y->rank),
			ap_bind_shape(b, x->size, x->rank), x->rank);
	if (!ap_expand_dims(b, x, 0, id))
		return false;
	for (uint8_t k = 0; k < y->rank; k++) {
		if (y->size[k] != 1 && y->size[k] != x->size[k + less])
			return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %"
				PRId64 "; 1 or %" PRId64 " is expected", k, y->size[k],
				x->size[k + less]);
		if (y->size[k] != 1)
			ap_expand_put(&y->dim[k], id[k + less]);
	}
	for (uint8_t k = 0; k < x->rank; k++)
		if (!ap_expand_add(b, &b->bout[0], x->size[k], id[k]))
			return false;
	return true;
}

bool ap_expand_sums(struct ap_binding *b)
{
	uint8_t id[AP_MAX_RANK];

	return join(b, 0, id); /* the results are scalars */
}

/* How a dimension is split: part i has length `each`, or list[i] (-1: the rest). */
struct parts {
	const char *attr; /* the attribute that gives it */
	uint8_t axis;
	int64_t n, each;
	const int64_t *list; /* [n]; NULL: all parts have `each`, the last one the rest */
};

static int64_t part_length(const struct parts *p, int64_t total, int64_t i)
{
	int64_t known = 0;

	if (!p->list)
		return i < p->n - 1 ? p->each : total - i * p->each;
	for (int64_t k = 0; p->list[i] < 0 && k < p->n; k++)
		known += p->list[k] < 0 ? 0 : p->list[k];
	return p->list[i] < 0 ? total - known : p->list[i];
}

static bool check_list(struct ap_binding *b, const struct parts *p, int64_t total)
{
	int64_t sum = 0;
	int open = 0;

	for (int64_t i = 0; i < p->n; i++) {
		open += p->list[i] == -1;
		if (p->list[i] == -1 && open == 1)
			continue;
		if (p->list[i] < 1 || !ap_add(sum, p->list[i], &sum))
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute %s has %" PRId64 " at %" PRId64
				"; a length or one -1 is expected", p->attr, p->list[i], i);
	}
	if (open ? sum < total : sum == total)
		return true;
	return ap_bind_fail(b, "operator-shape", 0,
		"dimension %d of operand 0 is %" PRId64 "; attribute %s adds up to %" PRId64
		", %s is expected", p->axis, total, p->attr, sum, open ? "less" : "as much");
}

static bool split(struct ap_binding *b, const struct parts *p)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t id[AP_MAX_RANK];

	if (p->n != b->nout)
		return ap_bind_fail(b, "operator-outputs", -1,
			"%d results are declared; by attribute %s %" PRId64 " are expected", b->nout,
			p->attr, p->n);
	if (!ap_expand_dims(b, in, UINT32_C(1) << p->axis, id))
		return false;
	for (uint16_t i = 0; i < b->nout; i++) {
		struct ap_operand *out = &b->bout[i];

		for (uint8_t k = 0; k < in->rank; k++)
			if (!ap_expand_add(b, out, k == p->axis
				? part_length(p, in->size[k], i) : in->size[k], id[k]))
				return false;
	}
	return true;
}

bool ap_expand_split(struct ap_binding *b)
{
	struct parts p = {.attr = "output_num"};
	int64_t total;

	if (!ap_expand_rank(b, 0, 1) || !ap_expand_axis(b, "axis", 0, b->bin[0].rank, &p.axis))
		return false;
	p.n = ap_attr_int(b->in->attrs, p.attr, 1);
	total = b->bin[0].size[p.axis];
	if (p.n < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute output_num is %" PRId64 "; at least 1 is expected", p.n);
	if (total % p.n != 0)
		return ap_bind_fail(b, "operator-shape", 0, "dimension %d of operand 0 is %" PRId64
			"; a multiple of attribute %s, %" PRId64 ", is expected", p.axis, total,
			p.attr, p.n);
	p.each = total / p.n;
	return split(b, &p);
}

/* SplitV and SplitWithSize: equal but for the attribute's name. */
bool ap_expand_split_sizes(struct ap_binding *b)
{
	bool v = ap_attr_get(b->in->attrs, "size_splits");
	struct parts p = {.attr = v ? "size_splits" : "split_sizes"};
	const struct ap_attr *a = ap_expand_list(b, p.attr);
	int64_t said;

	if (!a || !ap_expand_rank(b, 0, 1) ||
		!ap_expand_axis(b, v ? "split_dim" : "dim", 0, b->bin[0].rank, &p.axis))
		return false;
	p.list = a->list;
	p.n = a->n;
	said = ap_attr_int(b->in->attrs, "num_split", p.n);
	if (said != p.n)
		return ap_bind_fail(b, "operator-attr", -1, "attribute num_split is %" PRId64
			"; attribute %s has %" PRId64 " values", said, p.attr, p.n);
	return check_list(b, &p, b->bin[0].size[p.axis]) && split(b, &p);
}

bool ap_expand_split_chunks(struct ap_binding *b)
{
	struct parts p = {.attr = "split_size"};
	int64_t total;

	if (!ap_expand_list(b, p.attr) || !ap_expand_rank(b, 0, 1) ||
		!ap_expand_axis(b, "dim", 0, b->bin[0].rank, &p.axis))
		return false;
	p.each = ap_attr_int(b->in->attrs, p.attr, 0);
	if (p.each < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute split_size is %" PRId64 "; at least 1 is expected", p.each);
	total = b->bin[0].size[p.axis];
	p.n = total / p.each + (total % p.each != 0);
	return split(b, &p);
}

/* Combines the halves of a dimension. It stays whole; its factor has the length of a half, which is
 * the work. */
bool ap_expand_halves(struct ap_binding *b)
{
	struct ap_operand *in = &b->bin[0];
	uint8_t axis, id;

	if (!ap_expand_rank(b, 0, 1) || !ap_expand_axis(b, "dim", -1, in->rank, &axis))
		return false;
	if (in->size[axis] % 2 != 0)
		return ap_bind_fail(b, "operator-shape", 0,
			"dimension %d of operand 0 is %" PRId64 "; it has no two halves", axis,
			in->size[axis]);
	for (uint8_t k = 0; k < in->rank; k++) {
		int64_t size = k == axis ? in->size[k] / 2 : in->size[k];
		uint8_t flags = k == axis ? AP_FACTOR_FROZEN | AP_FACTOR_MIXED : 0;

		if (!ap_expand_factor(b, (char)('A' + k), flags, size, &id) ||
			!ap_expand_add(b, &b->bout[0], size, id))
			return false;
		ap_expand_put(&in->dim[k], id);
	}
	return true;
}

/* Dimension by[0][i] of operand 0 is paired with by[1][i] of operand 1. */
struct pairs {
	uint8_t n;
	uint8_t by[2][AP_MAX_RANK];
	uint32_t mask[2];
};

static bool read_dim(struct ap_binding *b, struct pairs *p, unsigned operand, int64_t v)
{
	uint8_t rank = b->bin[operand].rank;

	if (v < -(int64_t)rank || v >= rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute axes has %" PRId64
			"; with %d dimensions of operand %u %d..%d is allowed", v, rank, operand,
			-rank, rank - 1);
	v += v < 0 ? rank : 0;
	if (p->mask[operand] >> v & 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute axes names dimension %" PRId64 " of operand %u twice; "
			"once is allowed", v, operand);
	p->mask[operand] |= UINT32_C(1) << v;
	p->by[operand][p->n] = (uint8_t)v;
	return true;
}

/* Pairs the last n dimensions of operand 0 with the first n of operand 1. */
static bool pair_ends(struct ap_binding *b, struct pairs *p, int64_t n)
{
	if (n < 0 || n > b->bin[0].rank || n > b->bin[1].rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute axes is %" PRId64
			"; operands of %d and %d dimensions have no more in common", n,
			b->bin[0].rank, b->bin[1].rank);
	for (p->n = 0; p->n < n; p->n++)
		if (!read_dim(b, p, 0, b->bin[0].rank - n + p->n) || !read_dim(b, p, 1, p->n))
			return false;
	return true;
}

static bool read_pairs(struct ap_binding *b, struct pairs *p)
{
	const struct ap_attr *a = ap_expand_list(b, "axes");
	uint32_t half;

	if (!a)
		return false;
	if (a->type == AP_ATTR_INT)
		return pair_ends(b, p, a->i);
	if (a->n == 1)
		return pair_ends(b, p, a->list[0]);
	half = a->n / 2;
	if (a->n % 2 || half > b->bin[0].rank || half > b->bin[1].rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute axes has %" PRIu32
			" values; as many dimensions of one operand as of the other are expected",
			a->n);
	for (p->n = 0; p->n < half; p->n++)
		if (!read_dim(b, p, 0, a->list[p->n]) || !read_dim(b, p, 1, a->list[half + p->n]))
			return false;
	return true;
}

static bool lengths_agree(struct ap_binding *b, const struct pairs *p)
{
	for (uint8_t i = 0; i < p->n; i++) {
		int64_t x = b->bin[0].size[p->by[0][i]], y = b->bin[1].size[p->by[1][i]];

		if (x != y)
			return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %"
				PRId64 ", dimension %d of operand 0 is %" PRId64
				"; equal lengths are expected", p->by[1][i], y, p->by[0][i], x);
	}
	return true;
}

bool ap_expand_tensordot(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *y = &b->bin[1];
	uint8_t id[AP_MAX_RANK], own;
	struct pairs p = {0};

	if (!read_pairs(b, &p) || !lengths_agree(b, &p) || !ap_expand_dims(b, x, 0, id))
		return false;
	for (uint8_t i = 0; i < p.n; i++)
		ap_expand_put(&y->dim[p.by[1][i]], id[p.by[0][i]]);
	for (uint8_t i = 0; i < x->rank; i++)
		if (!(p.mask[0] >> i & 1) && !ap_expand_add(b, &b->bout[0], x->size[i], id[i]))
			return false;
	for (uint8_t i = 0; i < y->rank; i++) {
		if (p.mask[1] >> i & 1)
			continue;
		if (!ap_expand_factor(b, (char)('A' + x->rank + i), 0, y->size[i], &own))
			return false;
		ap_expand_put(&y->dim[i], own);
		if (!ap_expand_add(b, &b->bout[0], y->size[i], own))
			return false;
	}
	return true;
}

/* One number from all elements. A mean over the batch is not cut: parts would divide by their
 * own. */
bool ap_expand_divergence(struct ap_binding *b)
{
	const char *how = ap_attr_str(b->in->attrs, "reduction", "mean");
	bool batch = how[0] == 'b';
	uint8_t id[AP_MAX_RANK];

	if (!ap_expand_rank(b, 0, batch) || !ap_expand_same(b, 1, 0) ||
		!ap_expand_dims(b, &b->bin[0], batch, id))
		return false;
	for (uint8_t i = 0; i < b->bin[0].rank; i++)
		ap_expand_put(&b->bin[1].dim[i], id[i]);
	return true;
}
