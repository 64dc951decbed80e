/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as DOT text. */
#ifndef AP_DRAW_DOT_H
#define AP_DRAW_DOT_H

#include "base/str.h"
#include "draw/picture_view.h"

/* Makes DOT text through cgraph: ids such as n17, names only in labels (escaped) and tooltips,
 * clusters by cell and repetition, hue by the dimension that is cut, strength by the share of time,
 * redistributions as edge labels, a legend below the title. Short pictures run from left to right, others
 * down, in columns where they would be taller than two screens: lines between these end at circles c3 with
 * numbers.
 * Labels are tables that have room for their text whatever font it is drawn with.
 * *text is in the run arena; *nbox: boxes drawn. Pipeline stages are the outermost clusters, with
 * dashed edges between them. Not thread-safe: cgraph has global state. In labels, control and bidi
 * characters of names are shown as \x1b or \u202e; of a full scope name of MindSpore ("Default/..")
 * only the last part is shown, with all of it in the tooltip. */
enum ap_status ap_emit_dot(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox);

/* Points that a text takes at most in a font of this size, whatever font it is drawn with. O(length). */
double ap_dot_width(const char *text, double size, bool bold);

#define AP_DOT_MOVE_COLOR "#b34700"
#define AP_DOT_RANK_COLOR "#8b0000"
#define AP_DOT_PART_COLOR "#0072b2"

#endif
