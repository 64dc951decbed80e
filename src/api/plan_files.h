/* SPDX-License-Identifier: Apache-2.0 */
/* A finished plan as files: each that settings ask for, all or none; or one of them as bytes. */
#ifndef AP_API_PLAN_FILES_H
#define AP_API_PLAN_FILES_H

#include "api/outputs.h"
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

#endif
