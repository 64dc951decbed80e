/* SPDX-License-Identifier: Apache-2.0 */
/* compare: plans beside what training runs of them measured. */
#ifndef AP_API_RUNS_H
#define AP_API_RUNS_H

#include "api/outputs.h"
#include "api/request.h"
#include "report/compared.h"

struct ap_str;

struct ap_run_held { /* a plan and the log of a run of it */
	struct ap_runlog log;
	struct ap_compared_run found;
	int64_t memory_kind; /* enum ap_run_bytes that the fullest device is judged by; -1: none */
	int64_t memory_bytes; /* measured of it */
	/* What the plan is evaluated with; graph NULL: its graph is not at hand. */
	struct ap_inputs in;
	const struct ap_graph *graph;
	const char *path; /* of the graph, or of what it is made of */
	struct ap_settings set;
	struct ap_sources src;
	/* Profiles that a fit changes: those of the plan at first. */
	struct ap_software software;
	struct ap_chip chip;
};

struct ap_run_predicted {
	double step_s;
	int64_t bytes[AP_RUN_BYTES]; /* of the fullest device, as each kind counts */
};

/* Evaluates a run's plan with the profiles as they stand in it; run->graph is not NULL. Milliseconds. */
void ap_run_predict(struct ap_ctx *ctx, const struct ap_run_held *run, struct ap_run_predicted *out);

/*
 * Compares n / 2 plans with logs: path holds a plan (or its bundle), its log, the next plan, ... Writes
 * the result to text, as to->set asks, and stages set->profile, if one is asked for. Settings of a run
 * that differ from the plan's are warnings. AP_USAGE for an odd number of paths, and where a profile is
 * asked for and a graph is not at hand, or no log has a time.
 */
enum ap_status ap_runs_compare(struct ap_writing *to, size_t n, const char *const *path, struct ap_str *text);

#endif
