/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows over what is on the rank: the own rows and those of the neighbours. What lies outside is
 * padding, zero for sums and left out of extremes and means.
 */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "oper.h"
#include "rule/attr.h"

enum { FIRST = 2 }; /* dimensions before those of the windows */

struct sliding {
	const struct ex_job *j;
	int n; /* dimensions that windows slide over */
	int64_t stride[AP_MAX_WINDOW], dilation[AP_MAX_WINDOW], kernel[AP_MAX_WINDOW];
};

/* kernel[k] as far as the weight says it, else 0. */
static bool read_sliding(const struct ex_job *j, const struct ex_value *weight, struct sliding *s)
{
	*s = (struct sliding){.j = j, .n = j->in[0].box.rank - FIRST};
	for (int k = 0; k < s->n; k++) {
		struct ex_slide slide;
		int dim;

		if (!ex_slide_of(j, k, &slide, &dim))
			return false;
		s->stride[k] = slide.stride;
		s->kernel[k] = weight ? weight->box.size[dim] : slide.kernel;
		s->dilation[k] = s->kernel[k] > 1 ? (slide.kernel - 1) / (s->kernel[k] - 1) : 1;
	}
	return true;
}

/* Row of the strided tensor that element `in` of window `window` lies on; false: on padding. */
static bool reach(const struct sliding *s, const struct ex_box *b, const int64_t *window,
	const int64_t *in, int64_t *row)
{
	for (int k = 0; k < s->n; k++) {
		row[k] = window[k] * s->stride[k] - s->j->kernel_pad[k] + in[k] * s->dilation[k];
		if (row[k] < 0 || row[k] >= b->size[FIRST + k])
			return false;
	}
	return true;
}

/* The box of channels and window of a weight. */
static struct ex_box window_box(const struct sliding *s, int64_t channels)
{
	struct ex_box b = {.rank = (uint8_t)(s->n + 1), .size = {channels}};

	memcpy(b.size + 1, s->kernel, (size_t)s->n * sizeof *b.size);
	return b;
}

static ex_id convolve_at(const struct sliding *s, const int64_t *at, int64_t first_channel)
{
	const struct ex_value *x = &s->j->in[0], *w = &s->j->in[1];
	struct ex_box inner = window_box(s, w->box.size[1]);
	int64_t in[AP_MAX_RANK] = {0}, from[AP_MAX_RANK] = {at[0]}, by[AP_MAX_RANK] = {at[1]};
	ex_id sum = 0;

	do {
		memcpy(by + 1, in, (AP_MAX_RANK - 1) * sizeof *by);
		from[1] = first_channel + in[0];
		if (reach(s, &x->box, at + FIRST, in + 1, from + FIRST))
			sum = ex_mad(s->j->tape, sum, ex_get(x, from), ex_get(w, by));
	} while (ex_step(&inner, in));
	return sum;
}

static bool convolution(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box, *w = &j->in[1].box, *out = &j->out[0].box;
	const struct ex_value *bias = ex_in(j, 2);
	int64_t groups = ap_attr_int(j->attrs, "group", 1), at[AP_MAX_RANK] = {0};
	struct sliding s;

	if (!read_sliding(j, &j->in[1], &s) || x->size[1] != groups * w->size[1] ||
		out->size[1] != w->size[0] || out->size[1] % groups != 0 ||
		x->size[0] != out->size[0] || (bias && bias->box.size[0] != w->size[0]))
		return false;
	do {
		int64_t group = at[1] / (out->size[1] / groups);
		ex_id sum = convolve_at(&s, at, group * w->size[1]);

		ex_put(&j->out[0], at, bias ? ex_plus(j->tape, sum, bias->id[at[1]]) : sum);
	} while (ex_step(out, at));
	return true;
}

/* An element of the operand spreads over a window of the result. */
static void spread(const struct sliding *s, const int64_t *at)
{
	const struct ex_value *x = &s->j->in[0], *w = &s->j->in[1];
	struct ex_value *out = &s->j->out[0];
	struct ex_box inner = window_box(s, w->box.size[1]);
	int64_t in[AP_MAX_RANK] = {0}, to[AP_MAX_RANK] = {at[0]}, by[AP_MAX_RANK] = {at[1]};

	do {
		memcpy(by + 1, in, (AP_MAX_RANK - 1) * sizeof *by);
		to[1] = in[0];
		if (reach(s, &out->box, at + FIRST, in + 1, to + FIRST))
			ex_put(out, to, ex_mad(s->j->tape, ex_get(out, to), ex_get(x, at),
				ex_get(w, by)));
	} while (ex_step(&inner, in));
}

static bool transposed(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box, *w = &j->in[1].box, *out = &j->out[0].box;
	int64_t at[AP_MAX_RANK] = {0};
	struct sliding s;

	if (!read_sliding(j, &j->in[1], &s) || x->size[1] != w->size[0] ||
		out->size[1] != w->size[1] || x->size[0] != out->size[0])
		return false;
	do
		spread(&s, at);
	while (ex_step(x, at));
	return true;
}

static ex_id larger(const struct ex_job *j, ex_id a, ex_id b)
{
	return ex_less(j->tape, a, b) ? b : a;
}

static ex_id mean_of(const struct ex_job *j, ex_id sum, int64_t inside, int64_t all)
{
	int64_t n = ap_attr_int(j->attrs, "divisor_override", 0);

	if (n == 0)
		n = ap_attr_bool(j->attrs, "count_include_pad", ex_ends(j, "3D")) ? all : inside;
	return ex_scale(j->tape, sum, ex_inverse((uint64_t)n));
}

static ex_id pool_at(const struct sliding *s, const int64_t *at)
{
	const struct ex_value *x = &s->j->in[0];
	struct ex_box inner = window_box(s, 1);
	int64_t in[AP_MAX_RANK] = {0}, from[AP_MAX_RANK] = {at[0], at[1]}, inside = 0;
	bool most = ex_begins(s->j, "Max");
	ex_id all = 0;

	do {
		ex_id v;

		if (!reach(s, &x->box, at + FIRST, in + 1, from + FIRST))
			continue;
		v = ex_get(x, from);
		all = inside++ == 0 ? v : most ? larger(s->j, all, v) : ex_plus(s->j->tape, all, v);
	} while (ex_step(&inner, in));
	return most || inside == 0 ? all : mean_of(s->j, all, inside, ex_count(&inner));
}

static bool pooling(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box, *out = &j->out[0].box;
	int64_t at[AP_MAX_RANK] = {0};
	struct sliding s;

	if (!read_sliding(j, NULL, &s) || x->size[0] != out->size[0] || x->size[1] != out->size[1])
		return false;
	do
		ex_put(&j->out[0], at, pool_at(&s, at));
	while (ex_step(out, at));
	return true;
}

#define CONV(name) {.type = name, .forward = convolution, .make = ex_make_convolution}
#define MAX_POOL(name) \
	{.type = name, .forward = pooling, .make = ex_make_pooling, .ordered = true}
#define TRANSPOSED(name) {.type = name, .forward = transposed, .make = ex_make_transposed}
#define MEAN_POOL(name) {.type = name, .forward = pooling, .make = ex_make_pooling}

const struct ex_kernel ex_kernels_window[] = {
	CONV("Conv2D"), CONV("Conv3D"), CONV("Conv2DExt"), CONV("Convolution"),
	TRANSPOSED("Conv2DTranspose"), TRANSPOSED("Conv2DBackpropInput"),
	MAX_POOL("MaxPool"), MAX_POOL("MaxPoolV2"), MAX_POOL("MaxPool3D"),
	MEAN_POOL("AvgPool"), MEAN_POOL("AvgPool3D"),
	{0}
};
