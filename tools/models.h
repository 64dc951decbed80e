/* SPDX-License-Identifier: Apache-2.0 */
/* The models that make_model knows, made from their dimensions. */
#ifndef AP_TOOLS_MODELS_H
#define AP_TOOLS_MODELS_H

#include "tools/model.h"

/*
 * The network of MindSpore's multiple_mix sample: Flatten, three Dense layers 784-512-512-1 with
 * ReLU between them, nn.MAELoss; SGD; both ReLU recomputed.
 *
 * The labels of the sample's data set have shape [batch] and the logits [batch, 1], so nn.MAELoss
 * subtracts [batch] from [batch, 1]: broadcasting gives [batch, batch], and that is what the sample
 * computes. The graph keeps it.
 */
struct model *model_multiple_mix(struct ap_arena *arena, const char *name, int64_t batch);

/*
 * GPT-3: learned positions, L pre-norm blocks of h hidden units, head tied to the word embedding.
 * Parameters: 12 L h^2 + 13 L h + (V + s) h + 2 h.
 */
struct model_gpt_params {
	const char *name;
	int64_t layers, hidden, heads, sequence, vocabulary, batch;
	bool flash; /* FlashAttentionScore instead of small operators */
	enum ap_dtype dtype; /* of parameters and activations; the loss is in float32 */
	double dropout; /* 0: no Dropout operators; FlashAttentionScore gets none inside */
};
struct model *model_gpt(struct ap_arena *arena, const struct model_gpt_params *params);

#endif
