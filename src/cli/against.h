/* SPDX-License-Identifier: Apache-2.0 */
/* check FILE --against GRAPH [RANK_TABLE]: is a plan, or a strategy, still right for these inputs? */
#ifndef AP_CLI_AGAINST_H
#define AP_CLI_AGAINST_H

#include "cli/kind.h"
#include "diff/plan_match.h"
#include "planfile/plan_compare.h"

struct ap_cli;

enum { AP_AGAINST_INPUTS = 4 };

struct ap_against { /* what was found */
	const char *file, *graph, *table; /* as the user named them; table NULL: none */
	enum ap_kind kind; /* of the file */
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

/* The command, where --against is given. AP_DIFFERS: no longer right. */
enum ap_status ap_against(struct ap_run *run);

/* Holds a plan against itself, its settings among it. AP_MEANING, every fault located. */
enum ap_status ap_against_check_plan(struct ap_run *run, const struct ap_json *doc);

/* For against*.c: a strategy checkpoint instead of a plan. AP_OK whatever is found. */
enum ap_status ap_against_ckpt(struct ap_run *run, struct ap_against *out);

/* For against*.c: the run as a search of the graph, and of the rank table that is the second argument, would
 * be; *own and *cli are the caller's. Messages go into a sink of their own. */
void ap_against_run(struct ap_run *run, struct ap_cli *cli, struct ap_run *own);

/* For against*.c: the errors of a sink as findings. */
void ap_against_findings(struct ap_run *run, const struct ap_diag *diag, struct ap_against *out);

/* For against*.c: what was found on standard output, as text or as autopar-check/1. */
enum ap_status ap_against_print(struct ap_run *run, const struct ap_against *a);

#endif
