/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes from one stage of a pipeline to another one that has another number of devices: each device of
 * the receiving stage gets the part of the tensor that its layout there says, piece by piece, from devices
 * that have it.
 */
#ifndef AP_SHARD_PIECES_H
#define AP_SHARD_PIECES_H

#include "base/arena.h"
#include "shard/layout.h"

struct ap_pieces_side {
	const struct ap_layout *layout;
	int64_t ndev; /* devices of the stage; the layout's parts divide it */
};

struct ap_piece {
	int64_t from, to; /* ranks, each in its own stage */
	int64_t start[AP_MAX_RANK], extent[AP_MAX_RANK]; /* of the whole tensor */
	int64_t elements;
};

/*
 * Calls take for every piece: by receiver, ascending, then by the sender's part, row by row. Ranks that
 * receive something of one part of the sender's layout are dealt, in ascending order, in runs as equal as may
 * be, to the ranks that have this part, in ascending order. So of a pair of ranks there is at most one piece,
 * and no rank that has a part sends more often than another one but once. size: of the tensor, [rank], which
 * the parts of both layouts divide. What it needs is left in the arena. O(pieces + devices).
 */
void ap_pieces_each(struct ap_arena *arena, const struct ap_pieces_side *from,
	const struct ap_pieces_side *to, const int64_t *size,
	void (*take)(void *user, const struct ap_piece *piece), void *user);

#endif
