/* SPDX-License-Identifier: Apache-2.0 */
/* Networks as the arguments of Megatron-LM and the YAML of MindFormers describe them. */
#ifndef AP_MODEL_LAUNCHED_H
#define AP_MODEL_LAUNCHED_H

#include "base/json.h"
#include "model/hf.h"

struct ap_launched_options {
	int64_t batch; /* samples of a step */
	int64_t sequence; /* tokens of a sample; 0: as the file says */
	enum ap_dtype dtype; /* AP_DTYPE_COUNT: as the file says */
	enum ap_model_loss loss;
	bool flash, small; /* which of both attention is; none: as the file says */
	const char *name; /* of the graph */
};

/*
 * The network of Megatron's arguments: members of the document, with _ for -. Kernels are fused, as
 * Megatron's are. The vocabulary is the padded one; where only vocab_size is said, it is padded to a multiple
 * of make_vocab_size_divisible_by x tensor_model_parallel_size. Reports, at its argument: what is missing, is
 * no number, out of range or contradicts another; networks that are not built (AP_MEANING). O(members).
 */
enum ap_status ap_launched_megatron(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_launched_options *options, struct ap_hf_net *out);

/*
 * The network of a MindFormers YAML: its sections model.model_config and moe_config, under the names of both
 * routes (use_legacy). Parameters have compute_dtype. Reports as ap_launched_megatron() does; AP_USAGE if
 * there is no model_config.
 */
enum ap_status ap_launched_mindformers(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_launched_options *options, struct ap_hf_net *out);

#endif
