/* SPDX-License-Identifier: Apache-2.0 */
/* Words and figures of a plan that more than one reader of it uses. */
#ifndef AP_PLAN_TERMS_H
#define AP_PLAN_TERMS_H

#include "plan/plan.h"

const char *ap_plan_status_name(enum ap_plan_status st); /* "optimal", ... */
const char *ap_move_name(enum ap_move m); /* "Slice", or the collective as MindSpore names it */

const char *ap_phase_name(enum ap_phase phase); /* "forward", ... */

/* The slice of a tensor of one micro-batch: what a rank holds while it computes. */
void ap_plan_slice(const struct ap_plan *p, const struct ap_tensor *t, const struct ap_layout *l,
	int64_t slice[AP_MAX_RANK]);

/* The part of an operator's name that is shown where its cell is known: of a full scope name of
 * MindSpore ("Default/..") the last one. */
const char *ap_short_name(const char *name);

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

/* The tensor that a collective of node's operator is about. */
ap_id ap_plan_comm_tensor(const struct ap_graph *g, ap_id node, const struct ap_comm *c);

/* Ranks of a group of a collective; of a Send the pair. */
int64_t ap_plan_comm_ranks(const struct ap_comm *c);

/* Is the plan's bound one of the baselines too? Not where its route decides and they are run as they are. */
bool ap_plan_bounds_baselines(const struct ap_plan *p);

/* Operators that the strategy checkpoint pins. */
uint32_t ap_plan_pinned(const struct ap_plan *p);

/* Seconds per step of an operator with all its communication, and of a redistribution. */
double ap_plan_op_time_s(const struct ap_op_cost *c);
double ap_plan_move_time_s(const struct ap_plan_move *m);

#endif
