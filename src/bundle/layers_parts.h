/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the search for layers: which there are and where they run (layers.c), what of them is recomputed
 * (layers_again.c). */
#ifndef AP_BUNDLE_LAYERS_PARTS_H
#define AP_BUNDLE_LAYERS_PARTS_H

#include "bundle/layers.h"
#include "cost/recompute.h"

struct finding {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	struct ap_layers *out;
	size_t len; /* of the family's name */
	int64_t *number; /* [n] ascending */
	int32_t *layer; /* [nnode] place in number; -1: in none */
	int32_t npart;
	int32_t *home; /* [n] part of the data's order with most of a layer's operators */
	const struct ap_again *mark; /* [nnode] */
};

/* Where the counts of a part of the data's order are. */
int32_t ap_layers_place(const struct finding *f, int32_t part);

/* Fills what the layers tell of recomputation. */
void ap_layers_find_again(struct finding *f);

#endif
