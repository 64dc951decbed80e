/* SPDX-License-Identifier: Apache-2.0 */
/* Graphviz in child processes: one makes DOT text, the program dot renders it. */
#ifndef AP_DRAW_GRAPHVIZ_H
#define AP_DRAW_GRAPHVIZ_H

#include "draw/picture_view.h"

/* ap_emit_dot in a child process on copied memory. Returns AP_LIMIT, without a message, if memory
 * runs out in either, AP_STOPPED if ctx is stopped meanwhile; leaves nothing behind. */
enum ap_status ap_emit_dot_apart(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox);

/* Renders DOT text to "svg", "png" or "pdf" with Graphviz' dot (found on PATH, no shell); bytes in
 * the run arena. Returns AP_IO if dot is absent or fails, AP_STOPPED if the run is stopped
 * meanwhile, AP_LIMIT, without a message, if memory runs out. */
enum ap_status ap_emit_rendered(struct ap_ctx *ctx, const char *dot, size_t len, const char *format,
	const char **bytes, size_t *nbytes);

#endif
