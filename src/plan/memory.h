/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a plan: by stage, by operator, by redistribution. */
#ifndef AP_PLAN_MEMORY_H
#define AP_PLAN_MEMORY_H

#include "plan/plan.h"

/* The machine->nstage stages of a plan whose operators are priced, in the run arena, with additive
 * memory: static + activations at the instant when they are the most + largest set of recomputed
 * activations + largest temporary + context and buffers. Times and peaks are left to the
 * simulation. O(operands + instants). */
const struct ap_plan_stage *ap_plan_stages(struct ap_ctx *ctx, const struct ap_plan *p);

/* An operator's and a redistribution's part of memory.activations, which is the sum of all. */
int64_t ap_plan_activation_bytes(const struct ap_plan *p, ap_id node);
int64_t ap_plan_move_activation_bytes(const struct ap_plan *p, const struct ap_plan_move *m);

/* What a redistribution keeps, or where its copy is made again, what recomputing brings back of it. */
int64_t ap_plan_move_kept_bytes(const struct ap_plan *p, const struct ap_plan_move *m);

/* An operator's part of the memory of its stage, without temporaries. */
int64_t ap_plan_op_memory_bytes(const struct ap_plan *p, ap_id node);

/* The step that makes a search charge what the plan's stages hold at their worst instant; step
 * itself if it already does. */
const struct ap_step *ap_plan_weigh(struct ap_ctx *ctx, const struct ap_plan *p,
	const struct ap_step *step);

/* The largest parts of the memory of the stage that needs most, as text: "optimizer states 40.1
 * GiB, activations 20.3 GiB; of operators \"a\" 3.2 GiB, ...". In the run arena. */
const char *ap_memory_contributors(struct ap_ctx *ctx, const struct ap_plan *p);

#endif
