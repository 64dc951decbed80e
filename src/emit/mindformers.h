/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in the words of MindFormers (YAML) and Megatron-LM (arguments), as far as they can say them. */
#ifndef AP_EMIT_MINDFORMERS_H
#define AP_EMIT_MINDFORMERS_H

#include "plan/expert.h"

/* The sections parallel, parallel_config, recompute_config and what of model_config and runner_config
 * belongs to them. What YAML cannot say, and the loss, stand in comments. */
void ap_mindformers_write(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_expert *x,
	ap_write_fn *write, void *user);

/* One argument a line, for a shell; comments as above. */
void ap_megatron_write(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_expert *x,
	ap_write_fn *write, void *user);

#endif
