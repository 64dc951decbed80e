/* SPDX-License-Identifier: Apache-2.0 */
/* The strategy checkpoint of a plan. */
#ifndef AP_CKPT_CKPT_MAKE_H
#define AP_CKPT_CKPT_MAKE_H

#include "ckpt/ckpt.h"

/* The file of one pipeline stage: items of its operators with a trainable parameter (no Reshape),
 * layouts of all their trainable parameters that the stage owns and of the optimizer's states
 * ("moments.<param>"; accu_grads.<param> with micro-batches or a pipeline). Frozen parameters are left
 * out, as MindSpore 2.x does, unless frozen says that they count like the others. */
void ap_ckpt_of_stage(struct ap_ctx *ctx, const struct ap_plan *p, int32_t stage, bool frozen,
	struct ap_ckpt *out);

/* The file of the whole plan: of several stages it is the merged one. */
void ap_ckpt_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, bool frozen, struct ap_ckpt *out);

/* The key of an operator, "<type>_<first parameter>": the first that is trained, or with frozen the first
 * at all; NULL when there is none. */
const char *ap_ckpt_key(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node, bool frozen);

/* AP_MEANING when a parameter name holds '-' (MindSpore splits merged names there), or two operators
 * of one key take strategies of different form: to be called before the search when a checkpoint is
 * asked for. */
enum ap_status ap_ckpt_check_names(struct ap_ctx *ctx, const struct ap_graph *g, bool frozen);

#endif
