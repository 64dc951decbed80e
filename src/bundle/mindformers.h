/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for MindFormers (YAML) and Megatron-LM (arguments), as far as these can express them. */
#ifndef AP_BUNDLE_MINDFORMERS_H
#define AP_BUNDLE_MINDFORMERS_H

#include "bundle/bundle.h"

/* Writes parallel, parallel_config, recompute_config and the related parts of model_config,
 * runner_config and context. Comments give the loss and what YAML cannot express. */
void ap_mindformers_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user);

/* Writes one argument a line, for a shell; comments as above. */
void ap_megatron_write(struct ap_ctx *ctx, const struct ap_bundle *b, ap_write_fn *write, void *user);

#endif
