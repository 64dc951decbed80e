/* SPDX-License-Identifier: Apache-2.0 */
/* Things whose names differ in numbers only, joined: the layers of a network become one line. */
#ifndef AP_DIFF_DIFF_FOLD_H
#define AP_DIFF_DIFF_FOLD_H

#include "base/ctx.h"

struct ap_fold_item {
	const char *name;
	const char *same; /* only items in which this is equal are joined */
};

struct ap_fold {
	const char *name; /* "blocks.[0-39].dense[1-3]" */
	uint32_t n;
	const uint32_t *item; /* ascending */
};

/*
 * Every item is in one fold; folds come in the order of their first items. Numbers that differ
 * within a fold stand in brackets, as ranges (1-9), ranges with a step (0-38/2) and single ones:
 * every combination of them is an item of the fold. Where a number says nothing but that it was
 * counted on (MatMul-op17 in layer 0, MatMul-op41 in layer 1), '*' stands for it. O(length of the
 * names), but for sorting.
 */
uint32_t ap_fold_items(struct ap_ctx *ctx, uint32_t n, const struct ap_fold_item *item,
	const struct ap_fold **out);

#endif
