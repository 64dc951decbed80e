/* SPDX-License-Identifier: Apache-2.0 */
/* Times of collectives and of sends between stages. */
#ifndef AP_HW_COLL_H
#define AP_HW_COLL_H

#include "hw/machine.h"
/* "AllReduce", "AllGather", ... */
const char *ap_coll_name(enum ap_coll c);

/* The collective of its gradient. */
enum ap_coll ap_coll_adjoint(enum ap_coll c);

/* Seconds of a collective in all groups of the set at once. bytes: the whole buffer of a rank, that
 * is the input of AllReduce, ReduceScatter and AlltoAll, the output of AllGather; for
 * NeighborExchange, what a rank sends to both neighbours. The best of ring, tree and hierarchical
 * (costmodel-facts section 4), alpha-beta per link level; *algorithm (may be NULL): its name. 0 for
 * groups of one. Monotone in bytes. */
double ap_coll_time_s(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g,
	double bytes, const char **algorithm);

/* Seconds for every rank of stage `from` to send bytes to its counterpart in stage `to`, all at
 * once; the slowest pair decides. 0 if from equals to or bytes is 0. O(ndev levels). */
double ap_send_time_s(const struct ap_machine *m, uint32_t from, uint32_t to, double bytes);

#endif
