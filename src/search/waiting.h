/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that wait, the smallest first: a binary heap. A node may be added again, it waits once. */
#ifndef AP_SEARCH_WAITING_H
#define AP_SEARCH_WAITING_H

#include <stdbool.h>

#include "base/ctx.h"

struct ap_waiting {
	uint32_t n;
	ap_id *heap; /* [capacity] */
	bool *in; /* [capacity] was added */
};

/* For nodes 0..capacity-1, in scratch. */
void ap_waiting_init(struct ap_waiting *w, struct ap_ctx *ctx, uint32_t capacity);

/* O(log n). Without effect for a node that was added before. */
void ap_waiting_add(struct ap_waiting *w, ap_id v);

/* Removes the smallest. Requires n > 0. O(log n). */
ap_id ap_waiting_take(struct ap_waiting *w);

#endif
