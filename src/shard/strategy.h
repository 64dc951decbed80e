/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy vectors, as shard() takes them. */
#ifndef AP_SHARD_STRATEGY_H
#define AP_SHARD_STRATEGY_H

#include "shard/space.h"

/* The strategy vectors that shard() takes for these counts: one per operand, or as the row's
 * strategy column says. Returns their number, of which at most cap are written; rank 0 for
 * scalars. */
uint32_t ap_space_to_strategy(const struct ap_placement *p, uint8_t rank[],
	int32_t cut[][AP_MAX_RANK], uint32_t cap);

/* All of them, kept in the arena. */
struct ap_strategy {
	uint32_t n;
	const uint8_t *rank;
	const int32_t (*cut)[AP_MAX_RANK];
};
struct ap_strategy ap_strategy_of(struct ap_arena *a, const struct ap_placement *p);

/*
 * Counts from a strategy as shard() and the checkpoint hold it: one vector per strategy operand
 * (n vectors). False with *why (number of vectors, length, value < 1, not dividing, not a power of
 * two on a power-of-two machine, unequal cuts of one factor, product) when it is none.
 */
bool ap_space_from_strategy(struct ap_ctx *ctx, const struct ap_bound *b, int64_t ndev,
	const struct ap_step *step, uint32_t n, const uint8_t *rank,
	const int32_t (*cut)[AP_MAX_RANK], int32_t count[AP_MAX_FACTOR], const char **why);

#endif
