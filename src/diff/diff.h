/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changed between two plans, or two strategies: compared once into an immutable result, which
 * each writer shows in its own form. All of it in the run arena.
 */
#ifndef AP_DIFF_DIFF_H
#define AP_DIFF_DIFF_H

#include "diff/limit.h"

struct ap_diff_figure { /* one per fact of either, in the order of the sections */
	const char *section, *key;
	const char *was, *is; /* JSON; NULL: absent */
	double was_number, is_number; /* NaN where it is no number */
	bool changed;
	bool noted; /* how the result came about, not what it is: no difference by itself */
};

enum ap_diff_kind { AP_DIFF_CHANGED, AP_DIFF_ADDED, AP_DIFF_REMOVED, AP_DIFF_RENAMED };

struct ap_diff_field {
	uint32_t field; /* enum ap_saved_..._field */
	const char *was, *is; /* JSON; of what is new or gone one is NULL */
};

/* What changed alike in things whose names differ in numbers only. */
struct ap_diff_line {
	enum ap_diff_kind kind;
	const char *label; /* "blocks.[0-39].attention/MatMul-op0": ap_fold_items() */
	const char *old_label; /* where it was renamed */
	const char *type; /* "MatMul"; "" none */
	int64_t operand; /* of a redistribution; -1: of no operand */
	uint32_t n;
	const char *const *name; /* [n], whole */
	const char *const *old_name; /* [n] where they were renamed */
	uint32_t nfield;
	const struct ap_diff_field *field;
};

struct ap_diff_load { /* of a step */
	int64_t count, bytes;
};

/* Collectives of one kind, group size and phase. */
struct ap_diff_flow {
	const char *kind, *phase;
	int64_t ranks;
	const char *label; /* the operators that they belong to; "" all of the plan */
	uint32_t n;
	const char *const *name; /* [n] */
	struct ap_diff_load was, is; /* of all of them */
};

struct ap_diff_lines {
	uint32_t n;
	const struct ap_diff_line *v;
	uint32_t things; /* that are on the lines */
	uint32_t of[2]; /* how many there are in the old and in the new one */
};

struct ap_diff_flows {
	uint32_t n;
	const struct ap_diff_flow *v;
};

struct ap_diff {
	const char *file[2]; /* old, new */
	bool is_plan[2];
	bool reduced; /* a plan and a checkpoint: only strategies were compared */
	bool equal;
	uint32_t nfigure;
	const struct ap_diff_figure *figure;
	struct ap_diff_lines operators, parameters, redistributions;
	struct ap_diff_flows totals, collectives; /* collectives: where the totals come from */
	uint32_t nverdict;
	const struct ap_verdict *verdict; /* of conditions on the two, where somebody judges them */
};

/* Compares all that both files speak of. O(size of both), but for sorting. */
void ap_diff_make(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	struct ap_diff *out);

/* A figure by section and key, NULL when neither has it. */
const struct ap_diff_figure *ap_diff_figure(const struct ap_diff *d, const char *section,
	const char *key);

#endif
