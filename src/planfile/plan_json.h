/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the plan writer share. Private to planfile/plan_json*.c. */
#ifndef AP_PLANFILE_PLAN_JSON_H
#define AP_PLANFILE_PLAN_JSON_H

#include "base/vec.h"
#include "plan/plan.h"

struct ap_map;

struct ap_plan_text { /* that is written more than once */
	const char *s;
	size_t len;
};

struct ap_plan_writer {
	struct ap_jw w;
	const struct ap_plan *p;
	struct ap_arena *arena, *scratch;
	struct ap_map *group_ids, *cut_ids; /* stages and axes of groups; operators and their cuts */
	AP_VEC(struct ap_plan_text) groups, cuts; /* by these ids */
};

/* Members of the plan, each with its key. */
void ap_plan_write_machine(struct ap_plan_writer *pw);
void ap_plan_write_search(struct ap_plan_writer *pw);
void ap_plan_write_prediction(struct ap_plan_writer *pw);
void ap_plan_write_baselines(struct ap_plan_writer *pw);
void ap_plan_write_operators(struct ap_plan_writer *pw);
void ap_plan_write_moves(struct ap_plan_writer *pw);
void ap_plan_write_pipeline(struct ap_plan_writer *pw);
void ap_plan_write_memory(struct ap_plan_writer *pw); /* of each stage, by kind */
void ap_plan_write_stages(struct ap_plan_writer *pw);
void ap_plan_write_stage_figures(struct ap_plan_writer *pw, uint32_t stage); /* of the current object */
void ap_plan_write_fusion(struct ap_plan_writer *pw);
void ap_plan_write_route(struct ap_plan_writer *pw);
void ap_plan_write_route_figures(struct ap_plan_writer *pw); /* of the current object */

/* A member: the vectors that shard() takes for a placement. */
void ap_plan_write_strategy(struct ap_plan_writer *pw, const char *key, const struct ap_placement *place);

/* Members "axes" ([stride, size], outermost first) and, of a group that is not large, "ranks" (of the one
 * that the first rank of the stage is in, all of them) of the current object. */
void ap_plan_write_group(struct ap_plan_writer *pw, int32_t stage, const struct ap_axes *axes);

void ap_plan_write_kint32s(struct ap_jw *w, const char *key, const int32_t *v, size_t n);

/* Plan JSON, autopar-plan/1 (contract section 5). Streamed; O(plan). */
void ap_emit_plan_json(struct ap_ctx *ctx, const struct ap_plan *p, ap_write_fn *write, void *user);

#endif
