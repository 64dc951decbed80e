/* SPDX-License-Identifier: Apache-2.0 */
/* The planning call: what a search or an evaluation is made of and what it makes, and its files. */
#ifndef AP_API_PLANNING_H
#define AP_API_PLANNING_H

#include "api/plan_files.h"
#include "api/request.h"

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
