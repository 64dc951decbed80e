/* SPDX-License-Identifier: Apache-2.0 */
/* Checks layouts of a strategy checkpoint against each other, the strategies in the file and, if
 * there is one, a graph. Redundant data must agree: MindSpore uses the strategies, its tools the
 * layouts. */
#ifndef AP_CKPT_CKPT_LAYOUTS_H
#define AP_CKPT_CKPT_LAYOUTS_H

#include "ckpt/ckpt.h"

/* Returns AP_MEANING if a sorted file, whose values have been checked, contradicts itself: a layout
 * matches no vector of its operators, or is missing though there is one stage; vectors are for
 * another number of devices; optimizer shards do not fit the ranks with the same slice; a state's
 * layout is not its parameter's. O(items * vectors + layouts * prefixes). */
enum ap_status ap_ckpt_check_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c);

/* Returns AP_MEANING if a parameter read by operators with counts (rows may be NULL) has another
 * layout than they need, another shape, or rows that cannot be dealt to its shards. */
enum ap_status ap_ckpt_match_layouts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const int32_t *const *counts);

#endif
