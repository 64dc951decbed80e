/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: what is too tall for a page goes on beside itself. Boxes and inner frames of a frame, in their
 * order, are cut into stretches that all begin at the frame's top. */
#ifndef AP_DRAW_PICTURE_COLUMNS_H
#define AP_DRAW_PICTURE_COLUMNS_H

#include "draw/picture_view.h"

struct ap_pic_size { /* points */
	double width, height;
};

struct ap_pic_columns {
	uint32_t ncut; /* columns begun beside others, in all frames together */
	const bool *loose; /* [nline] leads into another column, and does not push down what it leads to */
	double height, width; /* about what dot will take */
};

/* Cuts until the picture is about most->height tall, as far as it does not become wider than most->width.
 * box: sizes, notes included; label: of frames' labels. Pictures of very many boxes are left as they are.
 * In the scratch arena. O(cuts * boxes * (boxes + lines)). */
void ap_pic_columns_make(struct ap_ctx *ctx, const struct ap_pic_view *v, const struct ap_pic_size *box,
	const struct ap_pic_size *label, const struct ap_pic_size *most, struct ap_pic_columns *out);

#endif
