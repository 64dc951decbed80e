/* SPDX-License-Identifier: Apache-2.0 */
/* Joins things whose names differ only in numbers: the layers of a network become one line. */
#ifndef AP_BASE_NAME_FOLD_H
#define AP_BASE_NAME_FOLD_H

#include "base/ctx.h"

struct ap_name_item {
	const char *name;
	const char *same; /* must be equal to join */
};

struct ap_name_fold {
	const char *name; /* "blocks.[0-39].dense[1-3]" */
	uint32_t n;
	const uint32_t *item; /* ascending */
};

/* Every item is in one fold; folds are in the order of their first items. Numbers that differ
 * within a fold are bracketed lists of ranges (1-9), ranges with a step (0-38/2) and single
 * numbers; every combination is an item of the fold. A number that merely counts on (MatMul-op17 in
 * layer 0, MatMul-op41 in layer 1) becomes '*'. O(length of names) plus sorting. */
uint32_t ap_name_folds(struct ap_ctx *ctx, uint32_t n, const struct ap_name_item *item,
	const struct ap_name_fold **out);

#endif
