/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups along any dimension of a table. */
#include <inttypes.h>

#include "rule/expand.h"

struct lookup {
	struct ap_operand *table, *index;
	uint8_t axis, batch; /* dimension looked up in; leading dimensions that both have */
	uint8_t of_index[AP_MAX_RANK], of_table[AP_MAX_RANK]; /* factors */
};

static bool read_lookup(struct ap_binding *b, struct lookup *l)
{
	uint8_t index = l->index->rank;
	int64_t batch;

	if (!ap_expand_rank(b, 0, 1) || !ap_expand_axis(b, "axis", 0, l->table->rank, &l->axis) ||
		!ap_expand_number(b, "batch_dims", 0, &batch))
		return false;
	if (batch < -(int64_t)index || batch > index || batch + (batch < 0 ? index : 0) > l->axis)
		return ap_bind_fail(b, "operator-attr", -1, "attribute batch_dims is %" PRId64
			"; with %d dimensions of the indices and axis %d at most %d is allowed", batch,
			index, l->axis, l->axis < index ? l->axis : index);
	l->batch = (uint8_t)(batch + (batch < 0 ? index : 0));
	for (uint8_t i = 0; i < l->batch; i++)
		if (l->index->size[i] != l->table->size[i])
			return ap_bind_fail(b, "operator-shape", 1, "dimension %d of operand 1 is %"
				PRId64 ", that of operand 0 is %" PRId64
				"; equal lengths are expected", i, l->index->size[i],
				l->table->size[i]);
	return true;
}

/* May the dimension be cut by masking? Of a matrix looked up in along its rows, where the sums can
 * be dealt along the columns. */
static bool is_masked(const struct lookup *l)
{
	return l->table->rank == 2 && l->axis == 1 && l->batch == 0 && l->table->size[0] > 1;
}

/* Factors of the indices, then those of the table, in whose batch dimensions they are the same. */
static bool add_factors(struct ap_binding *b, struct lookup *l)
{
	static const char letters[AP_MAX_RANK + 1] = "defghijk";
	uint8_t flags = is_masked(l) ? AP_FACTOR_LOOKUP : 0;

	if (!ap_expand_dims(b, l->index, 0, l->of_index))
		return false;
	for (uint8_t i = 0; i < l->table->rank; i++) {
		uint8_t *id = &l->of_table[i];

		*id = AP_NO_FACTOR;
		if (i < l->batch)
			*id = l->of_index[i];
		else if (i != l->axis && !ap_expand_factor(b, letters[i], 0, l->table->size[i], id))
			return false;
		else if (i == l->axis && flags &&
			!ap_expand_factor(b, 'v', flags, l->table->size[i], id))
			return false;
		ap_expand_put(&l->table->dim[i], *id);
	}
	return true;
}

/* What a part of the table adds to the result is dealt along the first dimension. */
static void deal(struct ap_binding *b, uint8_t id)
{
	ap_expand_put(&b->bout[0].dim[0], id);
	if (id != AP_NO_FACTOR)
		b->bound.dealt = UINT32_C(1) << id;
}

/* The result has the table's dimensions before the axis, those of the indices that are not the
 * table's, and the table's behind the axis. */
bool ap_expand_gather(struct ap_binding *b)
{
	struct lookup l = {.table = &b->bin[0], .index = &b->bin[1]};
	struct ap_operand *out = &b->bout[0];

	if (!read_lookup(b, &l) || !add_factors(b, &l))
		return false;
	for (uint8_t i = 0; i < l.axis; i++)
		if (!ap_expand_add(b, out, l.table->size[i], l.of_table[i]))
			return false;
	for (uint8_t i = l.batch; i < l.index->rank; i++)
		if (!ap_expand_add(b, out, l.index->size[i], l.of_index[i]))
			return false;
	for (uint8_t i = (uint8_t)(l.axis + 1); i < l.table->rank; i++)
		if (!ap_expand_add(b, out, l.table->size[i], l.of_table[i]))
			return false;
	if (is_masked(&l))
		deal(b, l.of_table[1]);
	return true;
}

/* All indices of Index have the shape of the first. */
static bool add_index(struct ap_binding *b, unsigned k, const uint8_t *id)
{
	struct ap_operand *o = &b->bin[k], *first = &b->bin[1];

	for (uint8_t i = 0; i < o->rank || i < first->rank; i++) {
		if (o->rank != first->rank || o->size[i] != first->size[i])
			return ap_bind_fail(b, "operator-shape", (int)k,
				"operand %u has shape %s, operand 1 has %s; equal shapes are expected", k,
				ap_bind_shape(b, o->size, o->rank),
				ap_bind_shape(b, first->size, first->rank));
		ap_expand_put(&o->dim[i], id[i]);
	}
	return true;
}

/* Index: operand 1 + i holds places in dimension i; those dimensions of operand 0 stay whole. */
bool ap_expand_index(struct ap_binding *b)
{
	struct ap_operand *x = &b->bin[0], *first = &b->bin[1], *out = &b->bout[0];
	uint8_t n = (uint8_t)(b->in->nin - 1), index[AP_MAX_RANK], id[AP_MAX_RANK];

	if (!ap_expand_rank(b, 0, n) || !ap_expand_dims(b, first, 0, index))
		return false;
	for (uint8_t i = 0; i < first->rank; i++)
		if (!ap_expand_add(b, out, first->size[i], index[i]))
			return false;
	for (unsigned k = 2; k <= n; k++)
		if (!add_index(b, k, index))
			return false;
	for (uint8_t i = n; i < x->rank; i++) {
		if (!ap_expand_factor(b, (char)('a' + i), 0, x->size[i], &id[i]) ||
			!ap_expand_add(b, out, x->size[i], id[i]))
			return false;
		ap_expand_put(&x->dim[i], id[i]);
	}
	return true;
}
