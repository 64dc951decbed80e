/* SPDX-License-Identifier: Apache-2.0 */
#include "elim/elim_axes.h"

#include "base/arena.h"

size_t ap_eaxes_extent(const struct ap_eaxes *a, uint32_t axis)
{
	return axis == AP_NO_AXIS ? 1 : a->r->dim[axis];
}

bool ap_eaxes_holds(const struct ap_einput *input, uint32_t axis)
{
	return axis != AP_NO_AXIS && (input->mask >> axis & 1);
}

size_t ap_eaxes_along(const struct ap_eview *v, uint32_t axis)
{
	return axis == AP_NO_AXIS ? 0 : v->stride[axis];
}

static uint32_t col_axis(const struct ap_reduction *r)
{
	if (r->width == 1)
		return AP_NO_AXIS;
	return r->at == r->width - 1 ? r->width - 2 : r->width - 1;
}

static bool together(const struct ap_reduction *r, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < r->ninput; i++) {
		if (ap_eaxes_holds(&r->input[i], a) && ap_eaxes_holds(&r->input[i], b))
			return true;
	}
	return false;
}

static uint32_t row_axis(const struct ap_reduction *r, uint32_t col)
{
	uint32_t best = AP_NO_AXIS;
	for (uint32_t i = 0; i < r->width; i++) {
		if (i == r->at || i == col || together(r, i, col))
			continue;
		if (best == AP_NO_AXIS || r->dim[i] >= r->dim[best])
			best = i;
	}
	return best;
}

static void set_views(struct ap_eaxes *a, const double *const *value)
{
	for (uint32_t i = 0; i < a->r->ninput; i++) {
		struct ap_eview *v = &a->view[i];
		*v = (struct ap_eview){.value = value[a->r->input[i].table]};
		size_t stride = 1;
		for (uint32_t axis = a->r->width; axis-- > 0;) {
			if (!ap_eaxes_holds(&a->r->input[i], axis))
				continue;
			v->stride[axis] = stride;
			stride *= a->r->dim[axis];
		}
	}
}

static void set_axes(struct ap_eaxes *a)
{
	const struct ap_reduction *r = a->r;
	a->col = col_axis(r);
	a->row = row_axis(r, a->col);
	size_t stride = 1;
	for (uint32_t axis = r->width; axis-- > 0;) {
		if (axis == r->at)
			continue;
		a->out_stride[axis] = stride;
		stride *= r->dim[axis];
	}
	for (uint32_t axis = 0; axis < r->width; axis++) {
		if (axis != r->at && axis != a->row && axis != a->col)
			a->outer[a->nouter++] = axis;
	}
}

struct ap_eaxes *ap_eaxes_make(struct ap_ctx *ctx, const struct ap_reduction *r,
	const double *const *value)
{
	struct ap_eaxes *a = AP_NEW(ctx->scratch, struct ap_eaxes);
	a->r = r;
	a->view = AP_NEW_N(ctx->scratch, struct ap_eview, r->ninput);
	set_views(a, value);
	set_axes(a);
	return a;
}

bool ap_eaxes_advance(struct ap_eaxes *a)
{
	for (uint32_t i = a->nouter; i-- > 0;) {
		uint32_t axis = a->outer[i];
		bool carry = ++a->at[i] == a->r->dim[axis];
		size_t back = carry ? a->at[i] : 0;
		for (uint32_t k = 0; k < a->r->ninput; k++) {
			struct ap_eview *v = &a->view[k];
			v->offset = v->offset + v->stride[axis] - back * v->stride[axis];
		}
		if (!carry)
			return true;
		a->at[i] = 0;
	}
	return false;
}

size_t ap_eaxes_places(const struct ap_eaxes *a)
{
	size_t n = 1;
	for (uint32_t i = 0; i < a->nouter; i++)
		n *= a->r->dim[a->outer[i]];
	return n;
}

void ap_eaxes_go_to(struct ap_eaxes *a, size_t place)
{
	for (uint32_t k = 0; k < a->r->ninput; k++)
		a->view[k].offset = 0;
	for (uint32_t i = a->nouter; i-- > 0;) {
		uint32_t axis = a->outer[i];
		a->at[i] = place % a->r->dim[axis];
		place /= a->r->dim[axis];
		for (uint32_t k = 0; k < a->r->ninput; k++)
			a->view[k].offset += a->at[i] * a->view[k].stride[axis];
	}
}

size_t ap_eaxes_out(const struct ap_eaxes *a)
{
	size_t out = 0;
	for (uint32_t i = 0; i < a->nouter; i++)
		out += a->at[i] * a->out_stride[a->outer[i]];
	return out;
}
