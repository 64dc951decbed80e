/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a plan. */
#ifndef AP_REPORT_SUMMARY_H
#define AP_REPORT_SUMMARY_H

#include "plan/plan.h"

struct ap_str;

struct ap_tried { /* a combination of settings that a search tried */
	const char *label; /* "pipeline_stages 2, micro_batches 4" */
	uint32_t nsetting; /* those that differ between combinations */
	const struct ap_setting *setting;
	double step_time_s; /* of its plan */
	int64_t memory_bytes;
	const char *why; /* there is no plan; NULL: there is one */
	bool taken;
};

struct ap_tries {
	size_t n;
	uint32_t among; /* combinations, of whose hybrids these were the fastest; 0: these are all */
	const struct ap_tried *v;
};

/* The summary as text (what to make of the plan, devices, step time with its bound and what takes it, memory
 * against capacity by kind, baselines, operators not pinned by the checkpoint, most expensive operators and
 * redistributions, of which layers are folded), and as one JSON object for --json. tries: the combinations of
 * settings of which p is one; NULL: there were no others. verbose: the objective of the search, too. */
void ap_emit_summary(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_tries *tries, bool verbose,
	struct ap_str *out);
void ap_emit_summary_json(const struct ap_plan *p, const struct ap_tries *tries, ap_write_fn *write,
	void *user);

/* A line about the route's decisions, and a table of the costliest; nothing if it decides
 * nothing. */
void ap_summary_route(struct ap_str *out, const struct ap_plan *p);
void ap_summary_differs(struct ap_str *out, const struct ap_plan *p);

/* Adds part / whole as "12.3 %", rounded, whatever the locale. */
void ap_summary_percent(struct ap_str *out, double part, double whole);

#endif
