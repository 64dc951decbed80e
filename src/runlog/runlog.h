/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training run printed: how long its iterations took, how much memory its ranks had, and which
 * settings it said it runs under. Lines of several ranks may be mixed, have the prefixes of launchers and
 * colours, and the last one may be cut: what is no line of a known kind is left alone.
 */
#ifndef AP_RUNLOG_RUNLOG_H
#define AP_RUNLOG_RUNLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_run_step { /* a line about an iteration, or about several, of which it gives the mean */
	int64_t number; /* of the (last) iteration; as the log counts, from 0 or from 1; -1: not said */
	int64_t rank; /* that the prefix of the line names; -1: none does */
	double time_s; /* 0: not said */
	double samples_per_s; /* of all devices; 0: not said */
	double tokens_per_s; /* of a device; 0: not said */
	int64_t line;
};

enum ap_run_bytes { /* what a figure of memory counts */
	AP_RUN_ALLOCATED, /* tensors, at their peak */
	AP_RUN_RESERVED, /* what the allocator holds for them, at its peak */
	AP_RUN_USED, /* all that the device has in use, libraries included */
	AP_RUN_BYTES
};

struct ap_run_memory {
	int64_t rank, stage; /* -1: not said */
	enum ap_run_bytes kind;
	int64_t bytes;
	int64_t line;
};

struct ap_run_said { /* a setting that the log states */
	const char *key; /* one of --hybrid ("tp"), or of --config ("batch"); "zero": 0 to 3, what is dealt */
	const char *value;
	int64_t line;
};

struct ap_runlog {
	const char *file;
	const char *format; /* "Megatron-LM" */
	struct { struct ap_run_step *v; size_t n, cap; } steps; /* in the order of the file */
	struct { struct ap_run_memory *v; size_t n, cap; } memory;
	struct { struct ap_run_said *v; size_t n, cap; } said; /* each key once: what was said last */
	int64_t after; /* iterations after which memory was reported; 0: not said, or as the run went on */
	int64_t lines; /* read */
};

/* Reads a log; text ends with NUL, which is not counted in len. AP_MEANING where there is no iteration of a
 * known form in it, AP_SYNTAX for a table that is none. In the run arena. O(len * formats). */
enum ap_status ap_runlog_read(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_runlog *out);

/* Name of format i, and in a few words what prints it; NULL past the end. */
const char *ap_runlog_format_at(size_t i, const char **what);

const char *ap_run_bytes_name(enum ap_run_bytes kind); /* "allocated", .. */

/* Settled iterations, of which a run goes on to be made. */
struct ap_settled {
	size_t read, left_out; /* iterations with a time; at the beginning, before times settle */
	size_t n; /* read - left_out */
	double least_s, quarter_s, median_s, three_quarters_s, most_s; /* of the n; the median counts */
};

/*
 * What a log says of the time of a step. samples, tokens: of a step, to make times of rates, 0: not known.
 * Of ranks that print the same iteration the slowest counts. Left out are the first line, where there are
 * others, since the first iteration loads and compiles; and what follows it and is more than a tenth above
 * the median of the second half. Sudden ones in between (evaluation, checkpoints) stay, and the median does
 * not mind them. False: nothing has a time. O(n log n).
 */
bool ap_runlog_settle(struct ap_ctx *ctx, const struct ap_runlog *log, double samples,
	double tokens_of_device, struct ap_settled *out);

#endif
