/* SPDX-License-Identifier: Apache-2.0 */
/* What runs measured beside what was predicted of them: as text, and as autopar-compare/1. */
#ifndef AP_REPORT_COMPARED_H
#define AP_REPORT_COMPARED_H

#include "base/ctx.h"
#include "runlog/runlog.h"

struct ap_str;

struct ap_compared_memory {
	int64_t stage; /* -1: of the device that has most, whichever it is */
	enum ap_run_bytes kind;
	int64_t measured_bytes, predicted_bytes; /* of what the kind counts */
	size_t lines; /* figures of which the measured one is the most */
};

struct ap_compared_run {
	const char *plan, *log; /* as the user named them */
	const char *format;
	struct ap_settled settled; /* read 0: the log tells no times of steps */
	double planned_s; /* that the plan file says */
	double predicted_s; /* with the profiles of this run of the program; 0: its graph is not at hand */
	double fitted_s; /* with the profile that was fitted; 0: none was */
	double tokens_of_device; /* of a step; 0: not known */
	size_t nmemory;
	const struct ap_compared_memory *memory;
	size_t nstated, ndiffer; /* settings that both the log and the plan state, and that differ */
};

struct ap_compared_term { /* a number of a profile, moved alone */
	const char *profile; /* "software megatron" */
	const char *path, *unit;
	double was, is;
	double error; /* of the runs' times then, mean of amounts, as a share */
};

struct ap_compared {
	size_t nrun;
	const struct ap_compared_run *run;
	double error; /* of predicted times, mean of amounts, as a share; of runs with both times */
	size_t nterm;
	const struct ap_compared_term *term; /* the one that explains the times best comes first */
	const char *again; /* command that says what changes in the first plan under other figures; NULL */
	const char *profile; /* that was written; NULL: none was */
	size_t nfitted;
	const struct ap_compared_term *fitted; /* numbers of it that were moved; error: of all together */
};

/* What a run is held against: with the profiles at hand, else as the plan file says. */
double ap_compared_predicted_s(const struct ap_compared_run *r);

void ap_compared_write(struct ap_ctx *ctx, const struct ap_compared *c, struct ap_str *out);
void ap_compared_write_json(struct ap_ctx *ctx, const struct ap_compared *c, struct ap_str *out);

#endif
