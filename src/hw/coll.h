/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives and sends between stages cost. */
#ifndef AP_HW_COLL_H
#define AP_HW_COLL_H

#include "hw/machine.h"
/* "AllReduce", "AllGather", ... */
const char *ap_coll_name(enum ap_coll c);

/* what autodiff makes of it */
enum ap_coll ap_coll_adjoint(enum ap_coll c);

/*
 * Seconds of one collective over every group of the set at once. bytes: the size of the whole buffer
 * on one rank, that is the input of AllReduce, ReduceScatter and AlltoAll, the output of AllGather;
 * of NeighborExchange what one rank sends to the ranks before and after it together.
 * Best of ring, tree and hierarchical (costmodel-facts section 4), per link level with alpha-beta;
 * *algorithm (may be NULL) names the winner. 0 for groups of one. Monotone in bytes.
 */
double ap_coll_time_s(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g,
	double bytes, const char **algorithm);

/* Seconds in which every rank of stage `from` sends bytes to its counterpart in stage `to`, all at
 * once; the slowest pair decides. 0 where from equals to or bytes are 0. O(ndev levels). */
double ap_send_time_s(const struct ap_machine *m, uint32_t from, uint32_t to, double bytes);

#endif
