/* SPDX-License-Identifier: Apache-2.0 */
/* Words and figures of a plan that several of its readers share. */
#ifndef AP_PLAN_TERMS_H
#define AP_PLAN_TERMS_H

#include "hw/measured.h"
#include "plan/plan.h"

const char *ap_plan_status_name(enum ap_plan_status st); /* "optimal", ... */
const char *ap_step_status_name(enum ap_step_status st); /* "proven", "bounded", "open" */
const char *ap_move_name(enum ap_move m); /* "Slice", or the collective as MindSpore names it */

const char *ap_phase_name(enum ap_phase phase); /* "forward", ... */

/* The slice of a tensor in one micro-batch that a rank holds. */
void ap_plan_slice(const struct ap_plan *p, const struct ap_tensor *t, const struct ap_layout *l,
	int64_t slice[AP_MAX_RANK]);

/* The name of an operator inside its cell: the last part of a full scope name of MindSpore
 * ("Default/.."), else the whole name. */
const char *ap_short_name(const char *name);

/* Seconds of a micro-batch for adding the gradient that a use of a parameter makes to those before. A stage
 * that receives the parameter takes none: it gives the gradient back once a step. */
double ap_plan_sum_s(const struct ap_plan *p, const struct ap_use *use);

#define AP_MEMORY_KINDS 9

struct ap_memory_kind {
	const char *key; /* "weights_bytes" */
	const char *label; /* "weights" */
	int64_t bytes;
};
struct ap_memory_kind ap_memory_kind(const struct ap_memory *m, int i); /* i < AP_MEMORY_KINDS */

/* The pipeline stage of an operator, and its segment there; 0 without a pipeline. */
int32_t ap_plan_op_stage(const struct ap_plan *p, ap_id node);
int32_t ap_plan_op_segment(const struct ap_plan *p, ap_id node);

const char *ap_plan_scheduler(const struct ap_plan *p); /* "1f1b"; "" without a pipeline */

/* The tensor of a collective of node's operator. */
ap_id ap_plan_comm_tensor(const struct ap_graph *g, ap_id node, const struct ap_comm *c);

/* Ranks of a collective's group; of a Send 2, or 1 inside a stage. */
int64_t ap_plan_comm_ranks(const struct ap_comm *c);

/* Does the plan's bound hold for baselines? Not if a route completed the plan: they are not
 * completed. */
bool ap_plan_bounds_baselines(const struct ap_plan *p);

/* The number of operators that the strategy checkpoint pins. */
uint32_t ap_plan_pinned(const struct ap_plan *p);

/* Seconds per step of an operator with all its communication, and of a redistribution. */
double ap_plan_op_time_s(const struct ap_op_cost *c);
double ap_plan_move_time_s(const struct ap_plan_move *m);

/* What the operand of a redistribution is charged with: its own cost, or an equal part of that which
 * operands share, of all that might. */
struct ap_move_cost ap_plan_move_part(const struct ap_plan *p, const struct ap_plan_move *m);

/* The measured runs that are most like the plan, see hw/measured.h; NULL: none are. */
const struct ap_measured *ap_plan_measured(const struct ap_plan *p, bool *is_like);

#endif
