/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of a strategy checkpoint held against one another, against the strategies of the same file
 * and, where there is one, against a graph. What a file says twice has to agree: MindSpore takes the
 * strategies from it, its tools the layouts.
 */
#ifndef AP_CKPT_CKPT_LAYOUTS_H
#define AP_CKPT_CKPT_LAYOUTS_H

#include "ckpt/ckpt.h"

/* AP_MEANING where a sorted file, whose values were checked one by one, contradicts itself: a layout that
 * none of its operator's vectors cuts so, or that is missing though all is in one stage, vectors for other
 * numbers of devices, dealing that the ranks with one slice do not allow, states that lie otherwise than
 * their parameters. O(items * vectors + layouts * prefixes). */
enum ap_status ap_ckpt_check_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c);

/* AP_MEANING where a parameter of the graph, of operators that have counts (rows may be NULL), lies
 * otherwise than these say, has another shape, or rows that cannot be dealt so. */
enum ap_status ap_ckpt_match_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const int32_t *const *counts);

#endif
