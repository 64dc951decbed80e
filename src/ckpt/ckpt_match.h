/* SPDX-License-Identifier: Apache-2.0 */
/* A strategy checkpoint held against a graph. */
#ifndef AP_CKPT_CKPT_MATCH_H
#define AP_CKPT_CKPT_MATCH_H

#include "ckpt/ckpt.h"

/* Fills tensor_shape of every layout from a graph (optimizer states by their prefix). AP_MEANING
 * naming the parameters that the graph lacks. */
enum ap_status ap_ckpt_add_shapes(struct ap_ctx *ctx, const struct ap_graph *g,
	struct ap_ckpt *c);

/* Counts per node ([nnode], rows NULL where the checkpoint says nothing) of a checkpoint for a
 * graph on ndev devices a stage. AP_MEANING: keys that match no operator and operators with a parameter
 * that are missing (first 10 named), strategies that are illegal, other device count, stages that are
 * not those of the step's pipeline, an operator in another stage than the graph has it in (where it
 * has one). */
enum ap_status ap_ckpt_counts(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g,
	int64_t ndev, const struct ap_step *step, const int32_t *const **out);

/* The same of a file that need not be of the whole graph, to start a search from: operators that only
 * one of the two has are warned of, and it is AP_MEANING when they share none. */
enum ap_status ap_ckpt_counts_some(struct ap_ctx *ctx, const struct ap_ckpt *c,
	const struct ap_graph *g, int64_t ndev, const struct ap_step *step,
	const int32_t *const **out);

/* Is what the file says of the operators that the graph has too as they can be cut, and do its layouts
 * follow from that? Neither has to be whole, and the number of devices is the file's. */
enum ap_status ap_ckpt_fits(struct ap_ctx *ctx, const struct ap_ckpt *c, const struct ap_graph *g);

#endif
