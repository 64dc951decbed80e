/* SPDX-License-Identifier: Apache-2.0 */
/* A script that starts torchtitan with a plan, and the Python that says what its flags do not. */
#ifndef AP_BUNDLE_TORCHTITAN_H
#define AP_BUNDLE_TORCHTITAN_H

#include "bundle/bundle.h"

#define AP_TORCHTITAN_PYTHON "torchtitan_plan.py"

/* text: the script, which demands MODULE and CONFIG; python: apply(), which a config function calls. */
void ap_torchtitan_say(struct ap_ctx *ctx, const struct ap_bundle *b, struct ap_said *out);

#endif
