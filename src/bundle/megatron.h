/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that start Megatron-LM, and MindSpeed-LLM on Ascend, with a plan. */
#ifndef AP_BUNDLE_MEGATRON_H
#define AP_BUNDLE_MEGATRON_H

#include "bundle/bundle.h"

/* A script for bash that sets what the arguments ask of the environment and starts pretrain_gpt.py on each
 * server. It demands what b->network lacks of the network as MODEL_ARGS. */
void ap_megatron_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out);

/* The same in MindSpeed's own words where it has such. */
void ap_mindspeed_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out);

#endif
