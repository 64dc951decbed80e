/* SPDX-License-Identifier: Apache-2.0 */
/* Planning: from sources to a searched or evaluated plan, and its files. */
#ifndef AP_API_PLANNING_H
#define AP_API_PLANNING_H

#include "api/outputs.h"
#include "api/request.h"
#include "problem/problem.h"
#include "report/summary.h"

struct ap_op_template;

struct ap_made { /* what a search or an evaluation made */
	const struct ap_plan *plan;
	const struct ap_problem *problem; /* NULL if not asked for, or stopped before */
	const struct ap_op_template *op_template; /* of operator strategies; NULL: none given */
	const struct ap_tries *tries; /* the combinations of settings, of which this is one; NULL: the only */
	const struct ap_decoder *decoder; /* the network that the graph was made from; NULL: not known */
	const struct ap_graph *loaded; /* as its file has it, without stages; NULL: not known */
	const struct ap_hybrid *hybrid; /* that was asked for; dp 0: none; NULL: not known */
};

/* ap_out_check() and a check of the bundle's folder. */
enum ap_status ap_plan_check_outputs(struct ap_writing *to);

/* The file beside a strategy checkpoint with the settings that were decided, which must go with it, for
 * --config: "FILE.settings.json"; NULL: the settings name no checkpoint, or standard output. */
const char *ap_plan_settings_path(struct ap_ctx *ctx, const struct ap_settings *set);

/* Checks that a checkpoint of nstage stages can be written where the settings say. AP_USAGE, AP_IO
 * if that is standard output, or if the folder for stage files is not usable. Called before any
 * work if the number is known. */
enum ap_status ap_plan_check_stages(struct ap_writing *to, uint32_t nstage);

/* Stages the files of a finished plan. *taken: one of them is standard output. AP_STOPPED: files
 * that were still to be made when the run was told to stop are missing; a warning names them. */
enum ap_status ap_plan_stage(struct ap_writing *to, const struct ap_made *made, bool *taken);

/* Writes one file of a plan through write: setting id (AP_SET_plan_out, ..) selects it, name gives
 * its form. For pipelines, the merged checkpoint. AP_USAGE if this plan has no such file. */
enum ap_status ap_plan_write(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_made *made,
	enum ap_setting_id id, const char *name, ap_write_fn *write, void *user);

struct ap_planning { /* must not be copied */
	struct ap_inputs in;
	struct ap_found found; /* of the search, freed when no longer needed */
	struct ap_plan plan;
	struct ap_made made; /* the plan, and what belongs to it */
};

/* Checks before any work. AP_USAGE, AP_IO for settings that no plan can meet, and for outputs that
 * cannot be written. use: AP_FOR_search or AP_FOR_evaluate. */
enum ap_status ap_planning_check(struct ap_writing *to, unsigned use, struct ap_planning *out);

/* Makes the inputs and locks the bundle. AP_USAGE, AP_IO if outputs cannot be written. */
enum ap_status ap_planning_begin(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p);

/* Searches, or evaluates the given strategies; from here on to->ctx may be stopped. p->made is set
 * on AP_OK, and on AP_STOPPED (the best so far). AP_INFEASIBLE: messages say what is short and what
 * would fit. An evaluated plan that does not fit is a warning. */
enum ap_status ap_planning_make(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p);

/* A search without the outputs and without advice where nothing fits: inputs and plan under set, as the two
 * above make them. */
enum ap_status ap_planning_try(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_planning *p);

/* What is left to do for a plan that was tried, to be written under to->set: outputs are checked, the bundle
 * is locked, and the table is made if it is asked for. */
enum ap_status ap_planning_take(struct ap_writing *to, struct ap_planning *p);

/* Writes the summary and all files, or nothing. If memory runs out, frees the search's memory and
 * makes the plan again. *rest: the summary if a file takes standard output, else "". AP_STOPPED:
 * complete but for what ap_plan_stage() left out. */
enum ap_status ap_planning_write(struct ap_writing *to, struct ap_planning *p, const char **rest);

#endif
