/* SPDX-License-Identifier: Apache-2.0 */
/* Times of collectives and of sends between stages. */
#ifndef AP_HW_COLL_H
#define AP_HW_COLL_H

#include "base/arena.h"
#include "hw/machine.h"

/* "AllReduce", "AllGather", ... */
const char *ap_coll_name(enum ap_coll c);

/* The collective of its gradient. */
enum ap_coll ap_coll_adjoint(enum ap_coll c);

/* Seconds of a collective in all groups of the set at once. bytes: the whole buffer of a rank, that
 * is the input of AllReduce, ReduceScatter and AlltoAll, the output of AllGather; for
 * NeighborExchange, what a rank sends to both neighbours. What the chip has a measured curve of ("measured"),
 * else the best of ring and tree, alpha-beta per link
 * level, and of hierarchical where the chip has rules of HCCL, the library that has it; *algorithm (may be
 * NULL): its name. 0 for groups of one. Monotone in bytes. */
double ap_coll_time_s(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g,
	double bytes, const char **algorithm);

/* The greatest s such that none of up to `most` bytes takes less than *none_s + s bytes, of which *none_s is
 * what no bytes take, or 0. */
double ap_coll_least_slope(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g, double most,
	double *none_s);

/* The same in parts that add up to it: starting the call, latencies of its steps, sending; of a measured one
 * what no bytes take, and the rest. */
struct ap_coll_parts {
	const char *algorithm;
	double fixed_s, latency_s, transfer_s;
};
void ap_coll_parts(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g, double bytes,
	struct ap_coll_parts *out);

/* What a rank has for others of its group, of which several may need the same. */
struct ap_relay {
	double bytes; /* of a rank, each counted once */
	double (*reached)(const void *of, int64_t parts); /* if the group is in so many equal parts: in how
	                                                     many of them a byte is needed, on average */
	const void *of;
};

/*
 * Seconds of an exchange in which what several ranks of a block need goes to it once, to the rank there that
 * lies as the sender in its own block, and on to the others from there, while more is coming. So across each
 * level each part of the group below it gets once what is needed in it, but where it already is, and the
 * level that takes longest decides. One kernel writes to all others at once, as those of DeepEP and HybridEP
 * do, so that a level's latency counts once, where a call of NCCL pays it for each peer.
 */
double ap_relay_time_s(const struct ap_machine *m, const struct ap_group *g, const struct ap_relay *relay);

struct ap_sent { /* from one rank to another, all of them at once */
	uint32_t from, to;
	double bytes;
};

/*
 * Seconds of n sends that run at once, with one call; of each pair of ranks at most one. A rank pays the
 * latency of a level for each rank that it sends to, or receives from, over it. What it sends, or receives,
 * goes over the levels side by side, each at the rate of the rank's links there, or, where a block shares
 * them, with all that is sent in the block over that level; the longest counts. The slowest rank decides.
 * 0 if nothing is sent. O(n levels + ranks levels).
 */
double ap_sends_time_s(struct ap_arena *scratch, const struct ap_machine *m, const struct ap_sent *sent,
	size_t n);

/* Seconds for every rank of stage `from` to send bytes to its counterpart in stage `to`, which has as
 * many, all at once; the slowest pair decides. 0 if from equals to or bytes is 0. O(ndev levels). */
double ap_send_time_s(const struct ap_machine *m, uint32_t from, uint32_t to, double bytes);

#endif
