/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text in columns, as JSON or as Markdown; and its values as people write them. */
#ifndef AP_DIFF_DIFF_WRITE_H
#define AP_DIFF_DIFF_WRITE_H

#include "diff/diff.h"

struct ap_diff_style {
	bool color; /* of text, for a terminal */
};

/* Writer i: text, json, markdown; NULL past the last. */
struct ap_diff_writer {
	const char *name;
	void (*write)(struct ap_ctx *ctx, const struct ap_diff *d, const struct ap_diff_style *style,
		struct ap_str *out);
};
const struct ap_diff_writer *ap_diff_writer_at(size_t i);

const char *ap_diff_change(struct ap_ctx *ctx, double was, double is); /* "-2.6 %"; "" of nothing */
const char *ap_diff_label(struct ap_ctx *ctx, const char *key); /* "compute" of "compute_s" */

/* Both values of a figure with their units, so that what differs looks different. */
void ap_diff_texts(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char **was,
	const char **is);

#endif
