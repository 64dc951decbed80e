/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the layers of a part can run: for a part and a range of the body, what no other choice of kinds is
 * better than in every time and every byte. Times are whole ticks, so that sums are exact in any order.
 */
#ifndef AP_PARTITION_OPTIONS_H
#define AP_PARTITION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "partition/partition.h"
#include "partition/replay.h"
#include "shard/step.h"

enum { AP_HELD_ALWAYS, AP_HELD_EACH, AP_HELD_LATE, AP_HELD_ONCE, AP_HELDS };

struct ap_part_choice {
	struct ap_ticks time;
	int64_t bytes[AP_HELDS]; /* weights; of each micro-batch in flight; of each late one; temporary */
	uint32_t self, before; /* among what was made of the range, and of the range without its last layer */
	uint16_t kind; /* of its last layer */
	uint16_t said; /* in a list: kinds that later layers may take are at most this one */
};

struct ap_part_choices {
	uint32_t n;
	const struct ap_part_choice *v; /* by times, then bytes */
	bool cut; /* there are more than are kept: the fastest in each way of counting may be missing */
};

struct ap_options; /* made on demand, kept */

/* number: [nkind] of a uniform plan; NULL otherwise. */
struct ap_options *ap_options_create(struct ap_ctx *ctx, const struct ap_partition *p, const int64_t *number);

/* After so many comparisons of choices ranges are cut: for a problem that is not to take long. */
void ap_options_limit(struct ap_options *c, uint64_t comparisons);

double ap_options_tick_s(const struct ap_options *c); /* a power of two */
double ap_options_error_s(const struct ap_options *c); /* by which rounding moves an objective at most */

/* Ticks of ap_partition_send_s(), ap_partition_send_back_s(); AP_NONE: what the other end takes alone, or the
 * border, which is behind so many layers of the body. */
int64_t ap_options_send(const struct ap_options *c, uint32_t from, uint32_t to, int64_t layers);
int64_t ap_options_send_back(const struct ap_options *c, uint32_t from, uint32_t to, int64_t layers);

/* What sends over the border behind so many layers take at least in plans of the degrees from `from` to
 * `to` - 1, into *there and *home; *most: an end of any of them, at most. O(degrees). */
void ap_options_least_sends(const struct ap_options *c, uint32_t from, uint32_t to, int64_t layers,
	int64_t *there, int64_t *home, int64_t *most);

/* What every send takes at least in plans of the degrees from `from` to `to` - 1, wherever borders are, into
 * *there and *home. Returns whether paths may go through queues of sends: not if some take time in some of
 * these plans, and none in others. O(degrees * layers). */
bool ap_options_sends(const struct ap_options *c, uint32_t from, uint32_t to, int64_t *there, int64_t *home);

/* A replay of the problem's schedule, with what its parts share, in the arena of ctx. */
struct ap_replay *ap_options_replay(struct ap_ctx *ctx, const struct ap_options *c);

/* Ticks added to AP_TIME_BESIDE of part q, if it has layers of the body. */
int64_t ap_options_left(const struct ap_options *c, int32_t q, uint32_t degree);

/* One layer of a class: times and bytes into *out. Returns false if it does not run like this. */
bool ap_options_layer(const struct ap_options *c, uint32_t cls, uint32_t degree, uint32_t kind,
	struct ap_part_choice *out);

/* Ranges with the same *from and *to have the same choices. */
void ap_options_range(const struct ap_options *c, int32_t q, int64_t a, int64_t b, int64_t *from,
	int64_t *to);

/* Of part q with layers a .. b - 1 of the body in a degree: those with which its stage fits if all other
 * parts of that hold as little as any can. */
const struct ap_part_choices *ap_options_of(struct ap_options *c, int32_t q, uint32_t degree, int64_t a,
	int64_t b);

/* Writes the kinds of one of these into kind, [layers of all runs]. */
void ap_options_kinds(struct ap_options *c, int32_t q, uint32_t degree, int64_t a, int64_t b,
	const struct ap_part_choice *choice, uint32_t *kind);

/* Bytes of a stage with part[segment]; parts that are NULL hold as little as any can. */
int64_t ap_options_bytes(const struct ap_options *c, int32_t stage, const struct ap_part_choice *const *part);

const struct ap_pipe *ap_options_pipe(const struct ap_options *c);

/* Ticks per byte of one micro-batch in flight at which kind k and the one before it cost the same, for the
 * layers of the body's longest run; 0: one of them is never better. */
double ap_options_price(const struct ap_options *c, uint32_t degree, uint32_t k);

/* Each time on its own in the quickest kind: of all layers of part q from a to b - 1. O(1). */
struct ap_ticks ap_options_floor(const struct ap_options *c, int32_t q, uint32_t degree, int64_t a,
	int64_t b);

#endif
