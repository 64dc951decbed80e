/* SPDX-License-Identifier: Apache-2.0 */
/* Graphviz in processes of its own: DOT text made in a child, and rendered by the program dot. */
#ifndef AP_DRAW_GRAPHVIZ_H
#define AP_DRAW_GRAPHVIZ_H

#include "draw/picture_view.h"

/* The same in a child process, on a copy of all there is: AP_LIMIT, without a message, where memory runs out
 * there or here, AP_STOPPED where ctx is told to stop meanwhile; nothing is left behind. */
enum ap_status ap_emit_dot_apart(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox);

/* Renders DOT text with Graphviz' dot (searched on PATH, no shell) to "svg", "png" or "pdf"; AP_IO
 * when it is absent or fails, AP_STOPPED when the run is stopped meanwhile, AP_LIMIT, without a message,
 * when memory runs out. Bytes into the run
 * arena. */
enum ap_status ap_emit_rendered(struct ap_ctx *ctx, const char *dot, size_t len, const char *format,
	const char **bytes, size_t *nbytes);

#endif
