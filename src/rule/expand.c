/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/expand.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "rule/attr.h"

bool ap_expand_factor(struct ap_binding *b, char letter, uint8_t flags, int64_t size, uint8_t *id)
{
	*id = AP_NO_FACTOR;
	return size == 1 || ap_bind_factor(b, letter, flags, size, id);
}

void ap_expand_put(struct ap_dim *dim, uint8_t id)
{
	if (id != AP_NO_FACTOR)
		dim->factor[dim->n++] = id;
}

bool ap_expand_dims(struct ap_binding *b, struct ap_operand *o, uint32_t whole,
	uint8_t id[AP_MAX_RANK])
{
	for (uint8_t i = 0; i < o->rank; i++) {
		id[i] = AP_NO_FACTOR;
		if (!(whole >> i & 1) &&
			!ap_expand_factor(b, (char)('A' + i), 0, o->size[i], &id[i]))
			return false;
		ap_expand_put(&o->dim[i], id[i]);
	}
	return true;
}

bool ap_expand_add(struct ap_binding *b, struct ap_operand *o, int64_t size, uint8_t id)
{
	if (o->rank == AP_MAX_RANK)
		return ap_bind_fail(b, "operator-rank", -1,
			"the result would have more than %d dimensions", AP_MAX_RANK);
	o->size[o->rank] = size;
	ap_expand_put(&o->dim[o->rank++], id);
	return true;
}

bool ap_expand_number(struct ap_binding *b, const char *name, int64_t otherwise, int64_t *v)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, name);

	*v = ap_attr_int(b->in->attrs, name, otherwise);
	return !a || a->type != AP_ATTR_INTS || a->n == 1 || ap_bind_fail(b, "operator-attr", -1,
		"attribute %s has %" PRIu32 " values; one number is expected", name, a->n);
}

bool ap_expand_axis(struct ap_binding *b, const char *name, int64_t otherwise, uint8_t rank,
	uint8_t *at)
{
	int64_t v;

	if (!ap_expand_number(b, name, otherwise, &v))
		return false;
	if (v < -(int64_t)rank || v >= rank)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %s is %" PRId64 "; with %d dimensions %d..%d is allowed", name,
			v, rank, -rank, rank - 1);
	*at = (uint8_t)(v < 0 ? v + rank : v);
	return true;
}

const struct ap_attr *ap_expand_list(struct ap_binding *b, const char *name)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, name);

	if (!a)
		ap_bind_fail(b, "operator-attr", -1, "attribute %s is missing", name);
	return a;
}

bool ap_expand_rank(struct ap_binding *b, unsigned i, uint8_t least)
{
	return b->bin[i].rank >= least || ap_bind_fail(b, "operator-rank", (int)i,
		"operand %u has shape %s; %s needs at least %d dimensions there", i,
		ap_bind_shape(b, b->bin[i].size, b->bin[i].rank), b->row->name, least);
}

bool ap_expand_same(struct ap_binding *b, unsigned i, uint32_t except)
{
	const struct ap_operand *o = &b->bin[i], *first = &b->bin[0];

	if (o->rank != first->rank)
		return ap_bind_fail(b, "operator-rank", (int)i,
			"operand %u has shape %s, operand 0 has %s; equal ranks are expected", i,
			ap_bind_shape(b, o->size, o->rank),
			ap_bind_shape(b, first->size, first->rank));
	for (uint8_t k = 0; k < o->rank; k++)
		if (!(except >> k & 1) && o->size[k] != first->size[k])
			return ap_bind_fail(b, "operator-shape", (int)i,
				"dimension %d of operand %u is %" PRId64
				", that of operand 0 is %" PRId64 "; equal lengths are expected", k,
				i, o->size[k], first->size[k]);
	return true;
}
