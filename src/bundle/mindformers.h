/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in the words of MindFormers (YAML) and Megatron-LM (arguments), as far as they can say them. */
#ifndef AP_BUNDLE_MINDFORMERS_H
#define AP_BUNDLE_MINDFORMERS_H

#include "bundle/bundle.h"

/* The sections parallel, parallel_config, recompute_config and what of model_config, runner_config and
 * context belongs to them. What YAML cannot say, and the loss, stand in comments. */
void ap_mindformers_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user);

/* One argument a line, for a shell; comments as above. */
void ap_megatron_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user);

#endif
