/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in DOT. Private to draw/dot*.c. */
#ifndef AP_DRAW_DOT_TEXT_H
#define AP_DRAW_DOT_TEXT_H

#include "base/str.h"
#include "draw/picture_view.h"

/*
 * Appends a name (UTF-8) for a label or tooltip: the backslash doubled, a newline as \n; control
 * and bidi characters become visible, as \x1b or \u202e; cut to 3000 bytes with "...", for dot does
 * not read longer ones. Quotes are left to cgraph.
 */
void ap_dot_add_name(struct ap_str *out, const char *name);

/* The same for a label in Graphviz' HTML, where a newline becomes <BR>. */
void ap_dot_add_html(struct ap_str *out, const char *name);

#define AP_DOT_MOVE_COLOR "#b34700"
#define AP_DOT_RANK_COLOR "#8b0000"
#define AP_DOT_PART_COLOR "#0072b2"

/* How operators are coloured, by enum ap_pic_class. */
struct ap_dot_look {
	const char *word, *fill, *legend;
};
const struct ap_dot_look *ap_dot_look(enum ap_pic_class cls);

/* The class of a box: what any of its operators cuts. */
enum ap_pic_class ap_dot_class(const struct ap_pic_view *v, const struct ap_pic_box *box);

/* Labels and tooltips of boxes and edges, raw bytes of names made safe. Each has a blank or a
 * backslash, so that cgraph quotes it. */
void ap_dot_add_box(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box);
void ap_dot_add_box_tip(struct ap_str *out, const struct ap_pic_view *v,
	const struct ap_pic_box *box);
void ap_dot_add_line(struct ap_str *out, const struct ap_pic_line *line);
void ap_dot_add_frame(struct ap_str *out, const struct ap_pic_view *v,
	const struct ap_pic_frame *frame);

/* The legend, in Graphviz' HTML. */
void ap_dot_add_legend(struct ap_str *out, const struct ap_pic_view *v);

#endif
