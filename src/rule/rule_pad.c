/* SPDX-License-Identifier: Apache-2.0 */
/* Padding: a dimension that gets longer or shorter stays whole. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "rule/expand.h"

/* Padding of the dimension that is d-th from the end: pairs, or all before and then all after. */
static void pads_of(const struct ap_attr *a, bool pairs, uint32_t d, int64_t *before, int64_t *after)
{
	*before = a->list[pairs ? 2 * d : d];
	*after = a->list[pairs ? 2 * d + 1 : d + a->n / 2];
}

/* A mirror shows all but the edge, and a ring goes round once. */
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

/* The last dimension's padding comes first. */
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
