/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The candidates of an operator: every vector of counts, one per factor, whose values divide.
 *   - a count divides the factor's extent (of a micro-batch, for factors that carry the batch);
 *   - frozen factors are not cut, those that the executor cuts are in ndev parts;
 *   - the product of counts divides ndev (the rest repeats);
 *   - inside a composed dimension an inner factor is cut only where all outer ones are cut wholly;
 *   - every operand and result has a layout; the row's extra condition holds;
 *   - what is dealt along the first dimension of the result (out_strategy) divides it; where counts
 *     may ask for that, they do so by a negative count, right after the same without.
 * In descending lexicographic order of the counts in dev order: cutting the first factor (mostly
 * the batch) comes first, everything repeated last.
 */
#ifndef AP_SHARD_SPACE_H
#define AP_SHARD_SPACE_H

#include "graph/graph.h"
#include "shard/layout.h"
#include "shard/step.h"

struct ap_space {
	uint32_t n;
	uint8_t nfactor;
	const int32_t *count; /* [n][nfactor] */
};

/* Extent of factor f in one micro-batch; the whole extent for factors without the batch. Requires
 * that micro_batches divides it. */
int64_t ap_factor_extent(const struct ap_bound *b, int f, const struct ap_step *step);

/* The candidate that cuts nothing but what the executor cuts. */
void ap_space_start(const struct ap_bound *b, int64_t ndev, int32_t count[AP_MAX_FACTOR]);

/* Is that the only candidate, because the executor imposes it (ap_graph_imposed())? */
bool ap_space_is_imposed(const struct ap_bound *b);

/* All candidates that are wanted, into ctx's arena; ap_space_start() is always there. O(vectors whose
 * product divides ndev * factors). */
void ap_space_make(struct ap_ctx *ctx, const struct ap_bound *b, int64_t ndev,
	const struct ap_step *step, struct ap_space *out);

/* Do MindSpore's search settings (fully_use, slice_align) allow a legal vector of counts? Always if it cuts
 * nothing, and for operators for which MindSpore has no strategy. */
bool ap_space_wanted(const struct ap_bound *b, const int32_t *count, int64_t ndev,
	const struct ap_step *step);

#endif
