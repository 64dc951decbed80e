/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where parts may end, and what is sent over their borders at least: a border takes one layer's results, and
 * each border another's, so all together seldom come to the least of one times their number.
 */
#ifndef AP_PARTITION_BORDERS_H
#define AP_PARTITION_BORDERS_H

#include "partition/options.h"

struct ap_borders;

/* Of plans of the degrees from `from` to `to` - 1. O(degrees * layers), arena. */
struct ap_borders *ap_borders_make(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_options *c, uint32_t from, uint32_t to);

/* Ticks that all sends take at least, each counted so many times: [part] from the part to the next one, and
 * back; 0 if the layers cannot be cut like that. at: where these borders are then, behind so many layers of
 * the body, [part]; may be NULL. O(parts * layers). */
double ap_borders_least(struct ap_borders *b, const int64_t *times, const int64_t *times_back, int64_t *at);

/* Ticks of a send over a border behind so many layers of the body, at least. */
int64_t ap_borders_send(const struct ap_borders *b, int64_t at);
int64_t ap_borders_send_back(const struct ap_borders *b, int64_t at);

#endif
