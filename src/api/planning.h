/* SPDX-License-Identifier: Apache-2.0 */
/* The planning call: what a search or an evaluation is made of and what it makes, and its files. */
#ifndef AP_API_PLANNING_H
#define AP_API_PLANNING_H

#include "api/outputs.h"
#include "api/request.h"
#include "problem/problem.h"

struct ap_op_template;

struct ap_made { /* what a search or an evaluation made */
	const struct ap_plan *plan;
	const struct ap_problem *problem; /* NULL: none was asked for, or the search was stopped before */
	const struct ap_op_template *op_template; /* of operator strategies; NULL: none is given */
};

/* ap_out_check(), and the folder of the bundle. */
enum ap_status ap_plan_check_outputs(struct ap_writing *to);

/* AP_USAGE, AP_IO where a checkpoint of so many pipeline stages cannot be written as the settings say: to
 * standard output, or beside a folder of stage files that is none. Before any work, where the number is
 * known. */
enum ap_status ap_plan_check_stages(struct ap_writing *to, uint32_t nstage);

/* Stages the files of a finished plan. *taken: one of them is standard output. AP_STOPPED: all but what was
 * still to be made when we were told to stop, which a warning names. */
enum ap_status ap_plan_stage(struct ap_writing *to, const struct ap_made *made, bool *taken);

/* One of them as it is in a file of this name, whole, that setting id names (AP_SET_plan_out, ..): of
 * pipeline stages the merged checkpoint. AP_USAGE where there is no such file of this plan. */
enum ap_status ap_plan_write(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	enum ap_setting_id id, const char *name, ap_write_fn *write, void *user);

struct ap_planning { /* not to be copied */
	struct ap_inputs in;
	struct ap_found found; /* of the search, as long as it is needed */
	struct ap_plan plan;
	struct ap_made made; /* the plan, and what belongs to it */
};

/* Before any work: AP_USAGE, AP_IO for settings that ask for what no plan under them has, and for outputs
 * that cannot be. use: AP_FOR_search or AP_FOR_evaluate. */
enum ap_status ap_planning_check(struct ap_writing *to, unsigned use, struct ap_planning *out);

/* The inputs; AP_USAGE, AP_IO where what the settings name cannot be written of them. Locks the bundle. */
enum ap_status ap_planning_begin(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p);

/*
 * Searches, or evaluates what is given; from here on to->ctx may be stopped. AP_OK, and AP_STOPPED with the
 * best so far: p->made is there. AP_INFEASIBLE: messages say what is short, and what would fit. An evaluation
 * that does not fit is a warning.
 */
enum ap_status ap_planning_make(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p);

/* Writes summary and files, all or none. Where memory runs out, the search gives back what it holds, and the
 * plan is made and written again. *rest: the summary, where a file has taken standard output; else "".
 * AP_STOPPED: all but what ap_plan_stage() has left out. */
enum ap_status ap_planning_write(struct ap_writing *to, struct ap_planning *p, const char **rest);

#endif
