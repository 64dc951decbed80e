/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the plan file, and those of its members that the summary shares. */
#ifndef AP_PLANFILE_PLAN_JSON_H
#define AP_PLANFILE_PLAN_JSON_H

#include "base/vec.h"
#include "plan/plan.h"

struct ap_map;

struct ap_plan_text { /* text written more than once */
	const char *s;
	size_t len;
};

struct ap_plan_writer {
	struct ap_jw w;
	const struct ap_plan *p;
	struct ap_arena *arena, *scratch;
	struct ap_map *group_ids, *cut_ids; /* ids of (stage, axes), and of operator cuts */
	AP_VEC(struct ap_plan_text) groups, cuts; /* by these ids */
};

/* Each writes a member of the plan with its key. */
void ap_plan_write_machine(struct ap_plan_writer *pw);
void ap_plan_write_search(struct ap_plan_writer *pw);
void ap_plan_write_prediction(struct ap_plan_writer *pw);
void ap_plan_write_baselines(struct ap_plan_writer *pw);
void ap_plan_write_pipeline(struct ap_plan_writer *pw);

/* Writes key "recompute", if anything is asked to be. */
void ap_plan_write_recompute(struct ap_plan_writer *pw);
void ap_plan_write_joint(struct ap_plan_writer *pw); /* nothing where nothing was decided */
void ap_plan_write_stage_figures(struct ap_plan_writer *pw, uint32_t stage); /* in the current object */
void ap_plan_write_route_figures(struct ap_plan_writer *pw); /* in the current object */

/* Writes plan JSON, autopar-plan/1. Streamed; O(plan). */
void ap_emit_plan_json(struct ap_ctx *ctx, const struct ap_plan *p, ap_write_fn *write, void *user);

#endif
