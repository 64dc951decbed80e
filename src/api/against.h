/* SPDX-License-Identifier: Apache-2.0 */
/* Is a plan, or a strategy, still right for a graph and a machine? */
#ifndef AP_API_AGAINST_H
#define AP_API_AGAINST_H

#include "api/compare.h"
#include "api/request.h"
#include "diff/diff.h"
#include "planfile/plan_compare.h"

enum { AP_AGAINST_INPUTS = 4 };

struct ap_against { /* what was found */
	const char *file, *graph, *table; /* as the user named them; table NULL: none */
	enum ap_file_kind kind; /* of the file */
	bool fits;
	uint32_t ninput;
	struct ap_against_input { /* a file that the plan was made from, and the one that is there */
		const char *role; /* "graph", "rank_table" */
		const char *was, *is; /* SHA-256; NULL: none */
		bool other;
	} input[AP_AGAINST_INPUTS];
	uint32_t nfinding;
	const char *const *finding; /* what cannot be at all, a line each */
	const struct ap_diff *diff; /* what changed; NULL: it did not come so far */
	struct ap_plan_values values; /* of a plan whose inputs are as they were: what it says otherwise than
	                                 this program does of them */
};

/* Holds the file, or the folder of a bundle or of stage files, against inputs, under the settings that it was
 * made with where set gives none. AP_OK whatever is found: out->fits. AP_DIFFERS where a condition of
 * set->fail_if holds is an error of ctx. */
enum ap_status ap_against(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const struct ap_named *named, struct ap_against *out);

/* What was found, as text or as autopar-check/1, as the settings say. */
void ap_against_write(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_against *a,
	bool color, struct ap_str *out);

/* Holds a plan against itself, its settings among it. AP_MEANING, every fault located. */
enum ap_status ap_plan_check_file(struct ap_ctx *ctx, const struct ap_json *doc);

#endif
