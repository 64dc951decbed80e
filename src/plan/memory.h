/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a plan: by stage, by operator, by redistribution. */
#ifndef AP_PLAN_MEMORY_H
#define AP_PLAN_MEMORY_H

#include "plan/plan.h"

/* The stages of a plan whose operators are priced, machine->nstage of them, in the run arena: additive memory
 * of each, static + kept at the instant when that is most + largest set of recomputed activations + largest
 * temporary + context and buffers. Times and peaks are simulated. O(operands + instants). */
const struct ap_plan_stage *ap_plan_stages(struct ap_ctx *ctx, const struct ap_plan *p);

/* Of that kept, an operator's part and that of a redistribution: their sums are memory.activations. */
int64_t ap_plan_activation_bytes(const struct ap_plan *p, ap_id node);
int64_t ap_plan_move_kept_bytes(const struct ap_plan *p, const struct ap_plan_move *m);

/* An operator's part of the memory of its stage, without temporaries. */
int64_t ap_plan_op_memory_bytes(const struct ap_plan *p, ap_id node);

/* The step in which a search charges what the plan's stages hold when it is most; step itself where
 * it does so already. */
const struct ap_step *ap_plan_weigh(struct ap_ctx *ctx, const struct ap_plan *p,
	const struct ap_step *step);

/* What takes most of the memory of the stage that needs most, in words: "optimizer states 40.1 GiB,
 * activations 20.3 GiB; of operators \"a\" 3.2 GiB, ...". In the run arena. */
const char *ap_memory_contributors(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
