/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy checkpoint of a plan. */
#ifndef AP_CKPT_CKPT_MAKE_H
#define AP_CKPT_CKPT_MAKE_H

#include "ckpt/ckpt.h"

/* Makes the file of a pipeline stage: items of its operators with a trainable parameter (no
 * Reshape), layouts of their trainable parameters that the stage owns and of optimizer states
 * ("moments.<param>"; accu_grads.<param> with micro-batches or a pipeline). Frozen parameters are
 * left out, as in MindSpore 2.x, unless frozen is set. */
void ap_ckpt_of_stage(struct ap_ctx *ctx, const struct ap_plan *p, int32_t stage, bool frozen,
	struct ap_ckpt *out);

/* Makes the file of a whole plan: merged if there are several stages. */
void ap_ckpt_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, bool frozen, struct ap_ckpt *out);

/* The key of an operator, "<type>_<parameter>", with its first trainable parameter, or, if frozen
 * is set, its first of any; NULL if it has none. */
const char *ap_ckpt_key(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node, bool frozen);

/* Returns AP_MEANING if a parameter name contains '-' (where MindSpore splits merged names), or if
 * operators with the same key have strategies of different form. To be called before a search for a
 * checkpoint. */
enum ap_status ap_ckpt_check_names(struct ap_ctx *ctx, const struct ap_graph *g, bool frozen);

#endif
