/* SPDX-License-Identifier: Apache-2.0 */
/* How MindFormers spells the parameters of networks, by its two routes: that of its own layers (legacy), and
 * that of layers as Megatron has them (mcore). */
#ifndef AP_MODEL_MINDFORMERS_H
#define AP_MODEL_MINDFORMERS_H

#include "model/decoder.h"

extern const struct ap_decoder_names ap_mindformers_llama, ap_mindformers_deepseek, ap_mindformers_gpt2;
extern const struct ap_experts_names ap_mindformers_llama_experts, ap_mindformers_deepseek_experts;

/* Names the parameters of a model of Hugging Face's `type` as MindFormers does, and joins or parts products
 * as its checkpoints do. False: how it spells them is not known. */
bool ap_mindformers_spell(const char *type, struct ap_decoder *d);

/* Type i whose spelling is known; NULL past the end. */
const char *ap_mindformers_type_at(size_t i);

#endif
