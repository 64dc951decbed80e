/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the comparison and of its writers. Private to diff/diff*.c. */
#ifndef AP_DIFF_DIFF_PARTS_H
#define AP_DIFF_DIFF_PARTS_H

#include "base/str.h"
#include "diff/diff.h"

/* Which operator and parameter of one is which of the other, by name or, where the name is gone, by
 * what stands around it. AP_NONE: none. */
struct ap_diff_pairs {
	ap_id *new_op, *old_op; /* [old->nop], [new->nop] */
	ap_id *new_param, *old_param;
};

struct ap_diff_task {
	struct ap_ctx *ctx;
	const struct ap_saved *was, *is;
	struct ap_diff_pairs pairs;
};

void ap_diff_match(struct ap_diff_task *t);
void ap_diff_figures(struct ap_diff_task *t, struct ap_diff *out);
void ap_diff_operators(struct ap_diff_task *t, struct ap_diff_lines *out);
void ap_diff_params(struct ap_diff_task *t, struct ap_diff_lines *out);
void ap_diff_moves(struct ap_diff_task *t, struct ap_diff_lines *out);
void ap_diff_comms(struct ap_diff_task *t, struct ap_diff *out);

/* What a field is called: its key in the plan file, and for people. */
struct ap_diff_name {
	const char *key, *text;
	unsigned unless; /* fields (bits) that say it already, where they changed */
	bool brief; /* shown of what is new or gone, too */
};
extern const struct ap_diff_name ap_diff_op_names[AP_SAVED_OP_FIELDS];
extern const struct ap_diff_name ap_diff_param_names[AP_SAVED_PARAM_FIELDS];
extern const struct ap_diff_name ap_diff_move_names[AP_SAVED_MOVE_FIELDS];

ap_diff_write_fn ap_diff_write_text, ap_diff_write_json, ap_diff_write_markdown;

/*
 * What people are shown: tables of texts, the same for every form. A cell holds bytes as they are in
 * the files; the writer makes them safe.
 */
enum { AP_DIFF_COLUMNS = 8 };

enum ap_diff_sort { /* of a column */
	AP_DIFF_WORDS, /* our own, as AP_DIFF_NUMBER */
	AP_DIFF_NAME, /* from the files, as the last two */
	AP_DIFF_NUMBER, /* to the right */
	AP_DIFF_WAS, /* before an arrow */
	AP_DIFF_IS /* behind it */
};

struct ap_diff_row {
	enum ap_diff_kind kind;
	const char *cell[AP_DIFF_COLUMNS];
};

struct ap_diff_table {
	const char *title;
	uint32_t ncolumn;
	const char *head[AP_DIFF_COLUMNS];
	enum ap_diff_sort sort[AP_DIFF_COLUMNS];
	uint32_t nrow;
	const struct ap_diff_row *row;
};

/* A value of JSON without quotes and outer brackets; "" of NULL. */
const char *ap_diff_plain(struct ap_ctx *ctx, const char *json);
const char *ap_diff_bytes(struct ap_ctx *ctx, int64_t bytes); /* "1.50 GiB" */
const char *ap_diff_change(struct ap_ctx *ctx, double was, double is); /* "-2.6 %"; "" of nothing */
const char *ap_diff_label(struct ap_ctx *ctx, const char *key); /* "compute" of "compute_s" */

/* Both values of a figure with their units, so that what differs looks different. */
void ap_diff_texts(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char **was,
	const char **is);

struct ap_diff_show {
	const char *headline;
	uint32_t ntable;
	const struct ap_diff_table *table; /* those with rows */
};
void ap_diff_show_make(struct ap_ctx *ctx, const struct ap_diff *d, struct ap_diff_show *out);

#endif
