/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest plans of a decision as folders that can be run: `plan --top K --bundle DIR`. */
#ifndef AP_API_SHORTLIST_H
#define AP_API_SHORTLIST_H

#include "api/decide.h"
#include "api/outputs.h"

#define AP_SHORTLIST_CSV "plans.csv" /* with an empty column for measured times */
#define AP_SHORTLIST_TEXT "plans.txt"

struct ap_shortlist {
	const char *dir; /* DIR, without slashes at its end */
	struct ap_shortlist_row {
		const struct ap_settings *set; /* NULL: of the plan that the run itself writes */
		const char *decided; /* "dp=16 tp=4 pp=8 .." */
		double step_s;
		int64_t memory_bytes; /* of row 1 not used */
	} *row; /* row k - 1 is DIR/k */
	uint32_t n;
};

/* Is a list of bundles asked for: --bundle, and --top of more than one? */
bool ap_shortlist_asked(const struct ap_settings *set);

/* DIR/k, from 1 on, in the run arena; of 0 DIR itself. */
const char *ap_shortlist_folder(struct ap_ctx *ctx, const struct ap_settings *set, uint32_t k);

/* Checks before any work: DIR is new, empty or one of an earlier list, and its table has no measured times
 * in it, which would be lost. AP_USAGE, AP_IO, reported. O(files in DIR). */
enum ap_status ap_shortlist_check(struct ap_writing *to);

/*
 * Makes DIR. Called before the run's own bundle, DIR/1, is begun. Folders of a longer list that lie there
 * stay, with a warning.
 */
enum ap_status ap_shortlist_begin(struct ap_writing *to, const struct ap_shortlist *list);

/*
 * Makes the plans of rows 2 and on, each of which is put in place by itself, and stages the table with the
 * run's own outputs; own: the plan of row 1. A plan that its executor cannot be told of is left out, with a
 * warning; its row says why. AP_STOPPED: the run was stopped, the rest is missing. Memory: of one plan at a
 * time.
 */
enum ap_status ap_shortlist_stage(struct ap_writing *to, const struct ap_sources *src,
	const struct ap_shortlist *list, const struct ap_plan *own);

#endif
