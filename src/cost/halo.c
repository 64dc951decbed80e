/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/local.h"

/* Elements along the dimension that the widest part gets from its neighbours, and that it gives. */
struct width {
	int64_t received, sent;
};

/* Halos change evenly from part to part, so the widest is at one of the ends. */
static struct width widest(const struct ap_window *w, int64_t parts)
{
	const int64_t ends[] = {0, 1, parts - 2, parts - 1};
	struct width most = {0, 0};

	for (int i = 0; i < 4; i++) {
		int64_t part = ends[i], sent = 0;
		struct ap_halo h = ap_window_halo(w, parts, part);

		if (part > 0)
			sent += ap_window_halo(w, parts, part - 1).after;
		if (part < parts - 1)
			sent += ap_window_halo(w, parts, part + 1).before;
		if (h.before + h.after > most.received)
			most.received = h.before + h.after;
		if (sent > most.sent)
			most.sent = sent;
	}
	return most;
}

int ap_halo_exchanges(const struct ap_task *t, const struct ap_placement *p,
	const struct ap_step *step, struct ap_exchange out[AP_MAX_WINDOW], int64_t *copy_bytes)
{
	const struct ap_bound *b = t->bound;
	int64_t bytes = 0;
	int n = 0;

	for (int i = 0; i < b->nwindow; i++) {
		const struct ap_window *w = &b->window[i];
		int64_t parts = w->factor == AP_NO_FACTOR ? 1 : p->count[w->factor];
		struct width width;

		if (parts == 1)
			continue;
		width = widest(w, parts);
		if (width.received == 0)
			continue;
		if (n == 0)
			bytes = ap_local_bytes(&b->in[w->operand], t->in[w->operand].batch, p, step);
		bytes /= w->size / parts;
		out[n++] = (struct ap_exchange){w->operand, w->factor, bytes *
			(width.sent > width.received ? width.sent : width.received)};
		bytes *= w->size / parts + width.received;
	}
	*copy_bytes = bytes;
	return n;
}
