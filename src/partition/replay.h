/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule as a list of steps in an order in which they can be carried out, whatever its passes take: the
 * same times as ap_schedule_run(), in whole ticks, some hundred times as fast. The end is a maximum over
 * paths, each a sum of passes, sends, exchanges and an update: it does not fall when any of them grows.
 */
#ifndef AP_PARTITION_REPLAY_H
#define AP_PARTITION_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_scheduler;

enum { /* beside: the pass that makes gradients of weights takes it if that is more, but for the last one */
	AP_TIME_FORWARD,
	AP_TIME_BACKWARD,
	AP_TIME_WEIGHT,
	AP_TIME_BESIDE,
	AP_TIME_EXCHANGE,
	AP_TIME_SLOWED, /* added to the last pass that makes gradients of weights */
	AP_TIME_UPDATE,
	AP_TIMES
};

struct ap_ticks { /* of a part */
	int64_t t[AP_TIMES];
};

struct ap_replay_path { /* how often the end counts each time */
	int32_t (*pass)[AP_TIMES]; /* [part] */
	int32_t *send, *send_back; /* [part] to the next part; from it */
	int64_t once; /* ticks of what is sent once */
};

struct ap_replay;

/* In arena of ctx, which the first ap_replay_end() adds to. O(parts), and O(slots) then. */
struct ap_replay *ap_replay_create(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int64_t nmicro);

/* Ticks of what the first part sends to the last one once, and of what comes back, as ap_partition_shared
 * says: of all runs from now on. Nothing where these are in one stage. */
void ap_replay_share(struct ap_replay *r, int64_t there, int64_t home);

/* The end of a step. time, send, send_back: [part] in data order. O(slots). */
int64_t ap_replay_end(struct ap_replay *r, const struct ap_ticks *time, const int64_t *send,
	const int64_t *send_back);

/* The path that ends last in the last run of ap_replay_end(), into the arrays of *out. queues: a send that
 * waited for another one counts that too, which is a path of all plans unless a send takes time in some of
 * them and none in others; else the path begins with such a send. O(slots). */
void ap_replay_path(struct ap_replay *r, const int64_t *send, const int64_t *send_back, bool queues,
	struct ap_replay_path *out);

#define AP_REPLAY_FLOW (INT64_C(1) << 24) /* paths in a bundle of them */

struct ap_replay_flow { /* how often they all count each time, together; below 2^47 */
	int64_t (*pass)[AP_TIMES]; /* [part] */
	int64_t *send, *send_back; /* [part] to the next part; from it */
	int64_t there, home; /* what is sent once, and what comes back of it */
};

/* A bundle of AP_REPLAY_FLOW paths that are long in the last run of ap_replay_end(), into the arrays of *out:
 * they part wherever two things that a pass waits for end within `near` ticks of each other, half and half if
 * they end at once. Divided by their number it bounds every step from below, as each of them does. queues: as
 * above, else no path goes through a queue. O(slots). */
void ap_replay_spread(struct ap_replay *r, const int64_t *send, const int64_t *send_back, bool queues,
	int64_t near, struct ap_replay_flow *out);

/* Ticks that a bundle takes beside passes and sends: of what is sent once. */
double ap_replay_once(const struct ap_replay *r, const struct ap_replay_flow *flow);

/* Steps of one run, as a measure of work. */
uint64_t ap_replay_steps(const struct ap_replay *r);

#endif
