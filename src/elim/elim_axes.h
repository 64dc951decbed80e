/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reduction as a product of two matrices, which is how both directions through a plan see it. Of the
 * axes of its clique, x is the one eliminated, col the last of the others, row one that shares no input
 * with col; the rest are outer and walked by an odometer. At each outer place
 *   out[row][col] = min over x of left[row][x] + right[x][col],
 * left and right being the sums of the inputs without and with col.
 */
#ifndef AP_ELIM_ELIM_AXES_H
#define AP_ELIM_ELIM_AXES_H

#include "elim/elim.h"

enum { AP_MAX_WIDTH = 64 };

#define AP_NO_AXIS UINT32_MAX

struct ap_eview { /* an input seen along the axes of the clique */
	const double *value;
	size_t stride[AP_MAX_WIDTH]; /* in elements, 0 where it lacks the axis */
	size_t offset; /* of the outer place at hand */
};

struct ap_eaxes {
	const struct ap_reduction *r;
	struct ap_eview *view; /* [ninput] */
	uint32_t row, col; /* or AP_NO_AXIS */
	uint32_t nouter;
	uint32_t outer[AP_MAX_WIDTH];
	size_t at[AP_MAX_WIDTH]; /* of the outer axes */
	size_t out_stride[AP_MAX_WIDTH]; /* of the result, by axis */
};

/* At the first outer place. In scratch. */
struct ap_eaxes *ap_eaxes_make(struct ap_ctx *ctx, const struct ap_reduction *r,
	const double *const *value);

/* Steps to the next outer place; false after the last. */
bool ap_eaxes_advance(struct ap_eaxes *a);

/* How many outer places there are, and to the one of a number, from any. */
size_t ap_eaxes_places(const struct ap_eaxes *a);
void ap_eaxes_go_to(struct ap_eaxes *a, size_t place);

/* Where the result of the outer place begins. */
size_t ap_eaxes_out(const struct ap_eaxes *a);

/* Candidates along an axis, 1 of none. */
size_t ap_eaxes_extent(const struct ap_eaxes *a, uint32_t axis);

/* Does the input have the axis? */
bool ap_eaxes_holds(const struct ap_einput *input, uint32_t axis);

/* The stride of a view along an axis, 0 of none. */
size_t ap_eaxes_along(const struct ap_eview *v, uint32_t axis);

#endif
