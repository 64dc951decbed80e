/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a comparison as text in columns, JSON or Markdown; formats its values. */
#ifndef AP_DIFF_DIFF_WRITE_H
#define AP_DIFF_DIFF_WRITE_H

#include "diff/diff.h"

struct ap_diff_style {
	bool color; /* of text, on a terminal */
	bool all; /* figures that changed by less than 0.05 %, too; JSON has them always */
};

/* Writer i: text, json, markdown; NULL past the end. */
struct ap_diff_writer {
	const char *name;
	void (*write)(struct ap_ctx *ctx, const struct ap_diff *d, const struct ap_diff_style *style,
		struct ap_str *out);
};
const struct ap_diff_writer *ap_diff_writer_at(size_t i);

const char *ap_diff_change(struct ap_ctx *ctx, double was, double is); /* "-2.6 %"; "" if undefined */
const char *ap_diff_label(struct ap_ctx *ctx, const char *key); /* "compute" of "compute_s" */

/* The comparison in a line: "attention: heads over 8 instead of sequence over 2; FFN unchanged; step -3.1 %".
 * NULL if no plans are compared, or nothing changed. */
const char *ap_diff_message(struct ap_ctx *ctx, const struct ap_diff *d);

/* Which of what a plan is made of has the value under a key: "graph", "machine", "settings" or "planner";
 * NULL: it is a result. Settings that name the machine are of the machine. */
const char *ap_diff_cause(const char *section, const char *key);

/* Both values of a figure with units, in three digits, or more if they would look equal. */
void ap_diff_texts(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char **was,
	const char **is);

#endif
