/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as DOT text. */
#ifndef AP_DRAW_DOT_H
#define AP_DRAW_DOT_H

#include "base/str.h"
#include "draw/picture_view.h"

/*
 * DOT through cgraph: our own ids (n17), names only in labels (escaped, always quoted), clusters by
 * cell and repetition, colour by what is cut, redistributions as edge labels, legend. The text is
 * made in memory (run arena). Pipeline stages are the outermost clusters, dashed edges lead from one to
 * another. Not to be called by two threads at once: cgraph has global state.
 * *nbox: boxes drawn.
 *
 * In a label a name stands as it is, but for control and bidi characters, which are shown as \x1b
 * or \u202e; of a full scope name of MindSpore ("Default/..") only the last part is shown, the
 * tooltip holds all of it.
 */
enum ap_status ap_emit_dot(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox);

#define AP_DOT_MOVE_COLOR "#b34700"
#define AP_DOT_RANK_COLOR "#8b0000"
#define AP_DOT_PART_COLOR "#0072b2"

#endif
