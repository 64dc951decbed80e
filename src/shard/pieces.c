/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/pieces.h"

#include <string.h>

struct sharing {
	const struct ap_layout *a, *b;
	const int64_t *size;
	int64_t *wanted; /* [parts of a] receivers of something of it */
	int64_t *served; /* [parts of a] of these, already */
	const int64_t *first; /* [parts of a + 1] its ranks in holder */
	const int64_t *holder;
	void (*take)(void *user, const struct ap_piece *piece); /* NULL: counts */
	void *user;
};

/* The number of the part that a rank has, counted row by row. */
static int64_t part_of(const struct ap_layout *l, int64_t rank)
{
	int64_t part = 0;

	for (int d = 0; d < l->rank; d++) {
		int64_t cut = l->dim[d].cut;

		part = part * cut + (cut > 1 ? rank / l->dim[d].stride % cut : 0);
	}
	return part;
}

static void send(struct sharing *x, const struct ap_piece *piece, int64_t part)
{
	int64_t holders = x->first[part + 1] - x->first[part];
	struct ap_piece p = *piece;

	if (!x->take) {
		x->wanted[part]++;
		return;
	}
	p.from = x->holder[x->first[part] + x->served[part]++ * holders / x->wanted[part]];
	x->take(x->user, &p);
}

/* Goes through all parts of a that a receiver needs something of. */
static void receive(struct sharing *x, int64_t rank)
{
	int64_t low[AP_MAX_RANK], high[AP_MAX_RANK], at[AP_MAX_RANK]; /* parts of a by dimension */
	int64_t start[AP_MAX_RANK], end[AP_MAX_RANK];
	int rest;

	for (int d = 0; d < x->a->rank; d++) {
		int64_t cut = x->b->dim[d].cut, own = x->size[d] / cut, part = x->size[d] / x->a->dim[d].cut;

		start[d] = own * (cut > 1 ? rank / x->b->dim[d].stride % cut : 0);
		end[d] = start[d] + own;
		low[d] = at[d] = start[d] / part;
		high[d] = (end[d] - 1) / part;
	}
	do {
		struct ap_piece piece = {.to = rank, .elements = 1};
		int64_t number = 0;

		for (int d = 0; d < x->a->rank; d++) {
			int64_t part = x->size[d] / x->a->dim[d].cut, from = at[d] * part, to = from + part;

			piece.start[d] = from > start[d] ? from : start[d];
			piece.extent[d] = (to < end[d] ? to : end[d]) - piece.start[d];
			piece.elements *= piece.extent[d];
			number = number * x->a->dim[d].cut + at[d];
		}
		send(x, &piece, number);
		for (rest = x->a->rank - 1; rest >= 0 && ++at[rest] > high[rest]; rest--)
			at[rest] = low[rest];
	} while (rest >= 0);
}

void ap_pieces_each(struct ap_arena *arena, const struct ap_pieces_side *from,
	const struct ap_pieces_side *to, const int64_t *size,
	void (*take)(void *user, const struct ap_piece *piece), void *user)
{
	int64_t parts = ap_layout_parts(from->layout);
	int64_t *first = AP_NEW_N(arena, int64_t, parts + 1), *holder = AP_NEW_N(arena, int64_t, from->ndev);
	int64_t *next;
	struct sharing x = {.a = from->layout, .b = to->layout, .size = size, .first = first,
		.holder = holder, .wanted = AP_NEW_N(arena, int64_t, parts),
		.served = AP_NEW_N(arena, int64_t, parts), .user = user};

	for (int64_t r = 0; r < from->ndev; r++)
		first[part_of(x.a, r) + 1]++;
	for (int64_t p = 0; p < parts; p++)
		first[p + 1] += first[p];
	next = ap_arena_memdup(arena, first, (size_t)(parts + 1) * sizeof *next);
	for (int64_t r = 0; r < from->ndev; r++)
		holder[next[part_of(x.a, r)]++] = r;
	for (int64_t r = 0; r < to->ndev; r++)
		receive(&x, r);
	x.take = take;
	for (int64_t r = 0; r < to->ndev; r++)
		receive(&x, r);
}
