/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSpeed's configuration of a plan: data parallelism with ZeRO, and tensor parallelism by autotp. */
#ifndef AP_BUNDLE_DEEPSPEED_H
#define AP_BUNDLE_DEEPSPEED_H

#include "bundle/bundle.h"

#define AP_DEEPSPEED_FILE "ds_config.json"

/* text: the JSON, without optimizer and learning rate, which are the caller's. Stages, experts and sequences
 * in parts are the network's code there, so a plan with any has no file. */
void ap_deepspeed_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out);

#endif
