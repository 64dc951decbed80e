/* SPDX-License-Identifier: Apache-2.0 */
/* Matches a strategy checkpoint with a graph. */
#ifndef AP_CKPT_CKPT_MATCH_H
#define AP_CKPT_CKPT_MATCH_H

#include "ckpt/ckpt.h"

/* Fills tensor_shape of every layout from a graph (optimizer states by prefix). Returns AP_MEANING,
 * naming them, if the graph lacks parameters. */
enum ap_status ap_ckpt_add_shapes(struct ap_ctx *ctx, const struct ap_graph *g,
	struct ap_ckpt *c);

/* Counts per node ([nnode], NULL rows where the checkpoint has nothing) of a checkpoint for a graph
 * on ndev devices a stage. Returns AP_MEANING if keys match no operator or operators with a
 * parameter are missing (the first 10 are named), strategies are illegal, the device count or
 * stages differ from those of the step, or an operator's stage, if the graph gives one, is
 * another. */
enum ap_status ap_ckpt_counts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const int32_t *const **out);

/* The same for a file that may cover part of the graph, to start a search from: warns of operators
 * that are only in one of them. Returns AP_MEANING if they share none. */
enum ap_status ap_ckpt_counts_some(struct ap_ctx *ctx, const struct ap_ckpt *c,
	const struct ap_graph *g, int64_t ndev, const struct ap_step *step,
	const int32_t *const **out);

/* Are the operators of a graph with stages in those of their items? */
bool ap_ckpt_has_stages(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *staged);

/* [nnode] stage of each operator's item; -1 where there is none, or the key has several, or operators share
 * it. In the run arena. */
const int32_t *ap_ckpt_stages_said(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g);

/* Checks that strategies of operators that the graph shares with the file are legal, and that
 * layouts follow from them. Both may have more operators; the number of devices is the file's. */
enum ap_status ap_ckpt_fits(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g);

#endif
