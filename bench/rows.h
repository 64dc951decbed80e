/* SPDX-License-Identifier: Apache-2.0 */
/* Published measurements: rows of a CSV file. The first line names the columns (COLUMNS below); others are
 * left alone. A row is predicted from FACTS alone. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"

enum { EXIT_USAGE = 2, EXIT_CSV = 3, EXIT_IO = 6 };

/* What a prediction may look at, and what it may not. */
#define FACTS(X) \
	X(framework) X(model) X(arch) X(layers) X(hidden) X(heads) X(kv_heads) X(head_dim) X(ffn) \
	X(ffn_type) X(vocab) X(seq_len) X(experts) X(topk) X(moe_ffn) X(hw) X(hw_mem_gib) X(devices) \
	X(devices_per_node) \
	X(interconnect) X(dp) X(tp) X(pp) X(vpp) X(cp) X(ep) X(sp) X(zero) X(grad_accum) X(mbs) X(gbs) \
	X(recompute) X(precision) X(flash_attn) X(overlap)
/* The same, of files that have it. */
#define REMARKS(X) X(notes)
#define COLUMNS(X) \
	FACTS(X) REMARKS(X) X(id) X(source_id) X(grade) X(iter_time_s) X(samples_per_s) \
	X(tokens_per_s_per_dev) X(mem_bytes) X(mem_kind) X(outcome)

enum column {
#define COLUMN(name) COL_##name,
	COLUMNS(COLUMN)
#undef COLUMN
	NCOLUMN
};

struct terms { /* of a step, in seconds */
	double compute, exposed, bubble, optimizer;
};

struct row {
	const char *field[NCOLUMN];
	const char *reason; /* why there is no prediction; NULL: there is one */
	double measured_s, predicted_s; /* 0: none */
	/* The predicted ones are what such a measurement counts; those that are needed count all. */
	int64_t measured_bytes, predicted_bytes, needed_bytes;
	struct terms terms;
};

struct table {
	struct row *v;
	size_t n, cap;
};

extern const char *const bench_program; /* the name that messages begin with; each program has its own */

/* Ends the program with a message about a file. */
_Noreturn void die(int status, const char *file, const char *what);

/* Rows of a CSV file as RFC 4180 has it, with what they measured. What a file has no column for is blank, but
 * the facts it must have. Ends the program where the file cannot be read. */
struct table read_table(struct ap_ctx *ctx, const char *file);

/* A number above 0; 0 for anything else. */
double number(const char *text);

/* What became of a run, as its column outcome has it; one that measured something ran. UNTOLD: nothing is
 * known, it failed for another reason, or the row says too little to tell what it needs. */
enum outcome { UNTOLD, RAN, DIED };
enum outcome outcome_of(const struct row *r);
bool fits(const struct row *r); /* is it predicted to fit the device? Of a row with a prediction. */

/* Is the measurement one to be judged by: complete, and plausible? */
bool is_judged(const struct row *r);
bool has_time(const struct row *r); /* it is, and both times are there */
bool has_memory(const struct row *r); /* the same of bytes */

#endif
