/* SPDX-License-Identifier: Apache-2.0 */
/* How the graph's inputs arrive on the devices: the setting dataset_strategy. */
#ifndef AP_SHARD_ARRIVAL_H
#define AP_SHARD_ARRIVAL_H

#include "graph/graph.h"
#include "shard/step.h"

/*
 * Reads the setting from a value of doc: "data_parallel", "full_batch", or an array with one entry for
 * each input of the graph, in its order:
 *   [parts per dimension]   repeats on the left
 *   {"device_matrix": [..], "alias_name": [..], "tensor_map": [..]}   a Layout of the stage's devices
 * An input is cut in one dimension at most, all that are cut in the same number of parts, which divides
 * the stage's ndev devices and the length (of a micro-batch, where the dimension carries the batch).
 * Sets full_batch, arrival and narrival of step, whose micro_batches are there; what the entries say is
 * in the run arena. AP_USAGE with a located message [dataset-strategy] otherwise; AP_MEANING where
 * a member of a Layout is missing or of another type.
 */
enum ap_status ap_arrival_parse(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *value, const struct ap_graph *g, int64_t ndev, struct ap_step *step);

/* The same from an option's text: one of these words, or an array, also with Python's parentheses:
 * ((8, 1), (8,)). Messages call it from. */
enum ap_status ap_arrival_parse_text(struct ap_ctx *ctx, const char *from, const char *text,
	const struct ap_graph *g, int64_t ndev, struct ap_step *step);

#endif
