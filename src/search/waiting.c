/* SPDX-License-Identifier: Apache-2.0 */
#include "search/waiting.h"

#include <assert.h>

#include "base/arena.h"

void ap_waiting_init(struct ap_waiting *w, struct ap_ctx *ctx, uint32_t capacity)
{
	w->n = 0;
	w->heap = AP_NEW_N(ctx->scratch, ap_id, capacity);
	w->in = AP_NEW_N(ctx->scratch, bool, capacity);
}

void ap_waiting_add(struct ap_waiting *w, ap_id v)
{
	uint32_t i = w->n;

	if (w->in[v])
		return;
	w->in[v] = true;
	w->n++;
	for (; i > 0 && w->heap[(i - 1) / 2] > v; i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = v;
}

ap_id ap_waiting_take(struct ap_waiting *w)
{
	ap_id least = w->heap[0], last = w->heap[--w->n];
	uint32_t i = 0, child;

	assert(w->in[least]);
	while ((child = 2 * i + 1) < w->n) {
		child += child + 1 < w->n && w->heap[child + 1] < w->heap[child];
		if (w->heap[child] >= last)
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return least;
}
