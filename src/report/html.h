/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as one HTML page for people who review it: complete in itself, without network, for screens of any
 * width, for paper, in light and dark, usable by keyboard and without its script. All of its figures are
 * the plan file's, or sums of them. */
#ifndef AP_REPORT_HTML_H
#define AP_REPORT_HTML_H

#include "draw/picture_view.h"
#include "report/figures.h"

struct ap_html_plan {
	const char *file; /* base name, for display */
	struct ap_figures figures;
	const struct ap_picture *picture;
	const char *change; /* in words, what changed since the old plan; NULL: nothing, or there is none */
};

/* Writes the page of a plan onto *out; old: a plan to put beside it, or NULL. Names are escaped, and cut
 * where they are longer than people read; a page has at most AP_HTML_BYTES, whatever the plan: of more
 * lines than there is room for the longest stay, and a line says what is left out. O(n log n) for n
 * operators. */
enum { AP_HTML_BYTES = 2000000 };
void ap_html_write(struct ap_ctx *ctx, const struct ap_html_plan *plan, const struct ap_html_plan *old,
	struct ap_str *out);

#endif
