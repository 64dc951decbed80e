/* SPDX-License-Identifier: Apache-2.0 */
/* Plans for MindFormers, as YAML. */
#ifndef AP_BUNDLE_MINDFORMERS_H
#define AP_BUNDLE_MINDFORMERS_H

#include "bundle/bundle.h"

/* Sections that a configuration of MindFormers takes over: parallel, parallel_config, recompute_config,
 * moe_config, and the parts of model_config, runner_config and context that say the plan. */
void ap_mindformers_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out);

#endif
