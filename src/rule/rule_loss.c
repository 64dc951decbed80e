/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of two equal tensors. */
#include "rule/expand.h"

/* One number of all elements. A part would divide by its own batch where the mean is over that. */
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
