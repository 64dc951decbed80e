/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of another size. */
#include <inttypes.h>

#include "rule/expand.h"

/* Height and width of the result, by the attribute or as they are declared. */
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

/* Pictures [N, C, H, W]: each point of the result is of points around its place, so that height and
 * width stay whole. */
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
