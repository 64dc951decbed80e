/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeepSpeed's configuration of a plan: data parallelism with ZeRO, tensor parallelism by autotp, parts of
 * sequences as Ulysses has them. Stages, and what is recomputed, are said in the network's code there: with
 * the executor deepspeed by Python beside the configuration.
 */
#ifndef AP_BUNDLE_DEEPSPEED_H
#define AP_BUNDLE_DEEPSPEED_H

#include "bundle/bundle.h"

#define AP_DEEPSPEED_FILE "ds_config.json"
#define AP_DEEPSPEED_PYTHON "deepspeed_plan.py"

/* text: the JSON, without optimizer and learning rate, which are the caller's. With the executor deepspeed
 * also script, which demands SCRIPT, and python, which that calls; else a plan with stages or parts of
 * sequences has no file. */
void ap_deepspeed_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out);

#endif
