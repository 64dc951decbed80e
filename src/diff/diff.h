/* SPDX-License-Identifier: Apache-2.0 */
/* The differences of two plans or strategies: compared once into an immutable result in the run
 * arena, which each writer formats. */
#ifndef AP_DIFF_DIFF_H
#define AP_DIFF_DIFF_H

#include "diff/diff_parts.h"
#include "diff/limit.h"
#include "diff/transfer.h"

struct ap_diff_figure { /* one per fact of either plan, in section order */
	const char *section, *key;
	const char *was, *is; /* JSON; NULL: absent */
	double was_number, is_number; /* NaN: no number */
	bool changed;
	bool noted; /* describes how the plan was made: no difference by itself */
};

enum ap_diff_kind { AP_DIFF_CHANGED, AP_DIFF_ADDED, AP_DIFF_REMOVED, AP_DIFF_RENAMED };

struct ap_diff_field {
	uint32_t field; /* enum ap_saved_..._field */
	const char *was, *is; /* JSON; NULL if added or removed */
};

/* The same change of things whose names differ only in numbers. */
struct ap_diff_line {
	enum ap_diff_kind kind;
	const char *label; /* "blocks.[0-39].attention/MatMul-op0"; see ap_name_folds() */
	const char *old_label; /* if renamed */
	const char *type; /* "MatMul"; "": none */
	int64_t operand; /* of a redistribution; else -1 */
	uint32_t n;
	const char *const *name; /* [n], in full */
	const char *const *old_name; /* [n] if renamed */
	double was_s, is_s; /* their time in a step, all together; 0: unknown */
	uint32_t nfield;
	const struct ap_diff_field *field;
};

struct ap_diff_load { /* per step */
	int64_t count, bytes;
};

/* Collectives of one kind, group size and phase. */
struct ap_diff_flow {
	const char *kind, *phase;
	int64_t ranks;
	const char *label; /* operators it belongs to; "": the plan */
	uint32_t n;
	const char *const *name; /* [n] */
	struct ap_diff_load was, is; /* sums */
};

struct ap_diff_lines {
	uint32_t n;
	const struct ap_diff_line *v;
	uint32_t things; /* changed things on the lines */
	uint32_t of[2]; /* things in the old and the new plan */
};

struct ap_diff_flows {
	uint32_t n;
	const struct ap_diff_flow *v;
};

struct ap_diff_alone { /* the old plan's run repeated with one thing of the new plan's */
	const char *what; /* "nothing, by this version", "machine", "settings: micro batches", "all of it" */
	double step_s; /* 0 if there is no plan */
	const char *why; /* NULL if there is one */
};

struct ap_diff {
	const char *file[2]; /* old, new */
	bool is_plan[2];
	bool reduced; /* one is a checkpoint: only strategies were compared */
	bool equal;
	bool held; /* a plan held against inputs (plan_match.h): no plan that could take its place */
	uint32_t nfigure;
	const struct ap_diff_figure *figure;
	uint32_t npart; /* 0 if one is a checkpoint */
	struct ap_diff_part part[AP_SAVED_PART_COUNT];
	uint32_t nrest; /* operators beside those of parts that are cut otherwise */
	struct ap_diff_layers layers;
	/* operators and redistributions in the order of how much their time changed */
	struct ap_diff_lines operators, parameters, redistributions;
	struct ap_diff_flows totals, collectives; /* collectives: totals by operator */
	const ap_id *old_param; /* [parameters of the new plan] their counterparts; AP_NONE: none */
	const struct ap_transfer *transfer; /* from one checkpoint to the other; NULL: not asked for */
	uint32_t nalone; /* 0 if nothing was planned anew; the first is of nothing */
	const struct ap_diff_alone *alone;
	uint32_t nverdict;
	const struct ap_verdict *verdict; /* of conditions, if any */
};

/* Compares everything that both files contain. O(size of both) plus sorting. */
void ap_diff_make(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	struct ap_diff *out);

/* A figure by section and key; NULL if neither plan has it. */
const struct ap_diff_figure *ap_diff_figure(const struct ap_diff *d, const char *section,
	const char *key);

#endif
