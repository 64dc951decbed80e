/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether a plan or a strategy is still right for a graph and a machine. */
#ifndef AP_API_AGAINST_H
#define AP_API_AGAINST_H

#include "api/compare.h"
#include "api/request.h"
#include "diff/diff.h"
#include "planfile/plan_compare.h"

enum { AP_AGAINST_INPUTS = 4 };

struct ap_against { /* the findings */
	const char *file, *graph, *table; /* as the user named them; table may be NULL */
	enum ap_file_kind kind; /* kind of file */
	bool fits;
	uint32_t ninput;
	struct ap_against_input { /* an input when the plan was made, and the one given now */
		const char *role; /* "graph", "rank_table" */
		const char *was, *is; /* SHA-256; NULL if there is none */
		bool other;
	} input[AP_AGAINST_INPUTS];
	uint32_t nfinding;
	const char *const *finding; /* why there can be no such plan, one line each */
	const struct ap_diff *diff; /* NULL if evaluation did not get that far */
	struct ap_plan_values values; /* values that this program computes differently, if the
	                                 inputs are unchanged */
};

/* Compares a plan or checkpoint file, or a folder (bundle or stage files), with inputs, under the
 * settings it was made with, except those given in set. Returns AP_OK whatever the finding is: see
 * out->fits. A condition of set->fail_if that holds is an error of ctx with AP_DIFFERS. */
enum ap_status ap_against(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_named *named, struct ap_against *out);

/* Is path, of evaluate --strategy, a plan, or the bundle of one? Says nothing; reads no standard input. */
bool ap_against_is_plan(struct ap_ctx *ctx, const struct ap_settings *set, const char *path);

/*
 * Makes the inputs of the plan in file path, or in a bundle, to evaluate it: *set, asked with the plan's
 * settings where none are given, and in->counts, of all operators or of those that a hybrid is of. *set, *src
 * and *in refer to each other. A warning tells how many operators the plan has no valid cut of; they are
 * completed. AP_USAGE and others, reported, if there is no such plan of these inputs.
 */
enum ap_status ap_against_inputs(struct ap_ctx *ctx, const struct ap_settings *asked, const char *path,
	const struct ap_named *named, struct ap_settings *set, struct ap_sources *src, struct ap_inputs *in);

/* Repeats the run that made a plan, of doc (its settings, inputs, machine, search and given operators), on
 * the named inputs, which must be the ones of doc. *why: why there is no plan, in the arena, and *step_s is
 * 0; else NULL. plan: the plan file that the given operators are of. AP_MEANING, reported, if an input is
 * another. */
enum ap_status ap_against_repeat(struct ap_ctx *ctx, const struct ap_settings *asked,
	const struct ap_json *doc, const struct ap_saved *plan, const struct ap_named *named, double *step_s,
	const char **why);

/* Writes the findings as text or as autopar-check/1, depending on the settings. */
void ap_against_write(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_against *a,
	bool color, struct ap_str *out);

/* Checks a plan file for consistency, settings included. AP_MEANING; faults have locations. */
enum ap_status ap_plan_check_file(struct ap_ctx *ctx, const struct ap_json *doc);

#endif
