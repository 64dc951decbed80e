/* SPDX-License-Identifier: Apache-2.0 */
/* Windows by the definition of their operators, and what a part of them needs of its neighbours. */
#include <string.h>

#include "base/vec.h"
#include "rule/attr.h"

#include "oper.h"

enum { FIRST = 2 }; /* the dimensions before the windows': batch and channels */

static const struct window_type {
	const char *type;
	uint8_t rank; /* of the operand */
	bool weight; /* the window's extents are those of operand 1; else of kernel_size */
	bool transposed;
} window_types[] = {
	{"Conv2D", 4, true, false},
	{"Conv2DExt", 4, true, false},
	{"Convolution", 4, true, false},
	{"Conv3D", 5, true, false},
	{"Conv2DTranspose", 4, true, true},
	{"Conv2DBackpropInput", 4, true, true},
	{"MaxPool", 4, false, false},
	{"MaxPoolV2", 4, false, false},
	{"AvgPool", 4, false, false},
	{"MaxPool3D", 5, false, false},
	{"AvgPool3D", 5, false, false},
};

static const struct window_type *type_of(const char *type)
{
	for (size_t i = 0; i < AP_COUNT(window_types); i++)
		if (strcmp(window_types[i].type, type) == 0)
			return &window_types[i];
	return NULL;
}

static const struct ap_attr *first_of(const struct ap_attrs *attrs, const char *const *names)
{
	const struct ap_attr *a = NULL;

	for (; *names && !a; names++)
		a = ap_attr_get(attrs, *names);
	return a;
}

/* The value for window k of n: one for all, one for each, or for these after batch and channels. */
static int64_t value_of(const struct ap_attr *a, int k, int n, int64_t otherwise)
{
	if (!a || (a->type == AP_ATTR_INTS && a->n == 0))
		return otherwise;
	if (a->type != AP_ATTR_INTS)
		return a->i;
	return a->list[a->n == 1 ? 0 : (int)a->n == n ? k : k + FIRST];
}

static bool is_mode(const struct ap_attr *a, const char *small, const char *capital)
{
	return a && a->type == AP_ATTR_STRING && (strcmp(a->s, small) == 0 || strcmp(a->s, capital) == 0);
}

/* As much as the windows reach beyond the shorter of the two lengths' grid; the odd one behind. */
static void pad_same(struct ex_slide *s)
{
	int64_t windows = s->transposed ? s->in : s->out, length = s->transposed ? s->out : s->in;
	int64_t need = (windows - 1) * s->stride + s->kernel - length;

	s->before = need > 0 ? need / 2 : 0;
	s->after = need > 0 ? need - need / 2 : 0;
}

static void pad_given(const struct ap_attr *a, int k, int n, struct ex_slide *s)
{
	bool ends = a && a->type == AP_ATTR_INTS && (int)a->n == 2 * n && n > 0;

	s->before = ends ? a->list[2 * k] : value_of(a, k, n, 0);
	s->after = ends ? a->list[2 * k + 1] : s->before;
}

bool ex_slide_of(const struct ex_job *j, int window, struct ex_slide *out, int *dim)
{
	static const char *const strides[] = {"strides", "stride", NULL};
	static const char *const pads[] = {"pad", "pad_list", "padding", NULL};
	static const char *const modes[] = {"pad_mode", "padding", NULL};
	const struct window_type *t = type_of(j->type);
	const struct ap_attr *mode = first_of(j->attrs, modes);
	int n;

	if (!t || window >= t->rank - FIRST || j->in[0].box.rank != t->rank)
		return false;
	n = t->rank - FIRST;
	*dim = FIRST + window;
	*out = (struct ex_slide){
		.in = j->in[0].box.whole[*dim],
		.out = j->out[0].box.whole[*dim],
		.stride = value_of(first_of(j->attrs, strides), window, n, 1),
		.transposed = t->transposed || ap_attr_bool(j->attrs, "transposed", false),
	};
	out->kernel = t->weight ? j->in[1].box.whole[*dim]
		: value_of(ap_attr_get(j->attrs, "kernel_size"), window, n, 1);
	out->kernel = (out->kernel - 1) *
		value_of(ap_attr_get(j->attrs, "dilation"), window, n, 1) + 1;
	if (is_mode(mode, "same", "SAME"))
		pad_same(out);
	else if (!is_mode(mode, "valid", "VALID"))
		pad_given(first_of(j->attrs, pads), window, n, out);
	return true;
}

static int64_t floor_of(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Rows of the operand from first on that part of a transposed one's result is made of. */
static void reach_of(const struct ex_slide *s, int64_t parts, int64_t part, int64_t *first,
	int64_t *last)
{
	int64_t from = part * (s->out / parts), to = (part + 1) * (s->out / parts) - 1;

	*first = floor_of(from + s->before - s->kernel + s->stride, s->stride);
	*last = floor_of(to + s->before, s->stride);
	*first = *first < 0 ? 0 : *first;
	*last = *last >= s->in ? s->in - 1 : *last;
}

void ex_halo(const struct ex_slide *s, int64_t parts, int64_t part, int64_t *before, int64_t *after)
{
	int64_t more = s->out * s->stride - s->in; /* windows begin so much later, over all parts */

	if (s->transposed) {
		int64_t slice = s->in / parts, first, last;

		reach_of(s, parts, part, &first, &last);
		*before = part * slice - first;
		*after = last - ((part + 1) * slice - 1);
	} else {
		*before = s->before - more * part / parts;
		*after = (part + 1) * more / parts + s->kernel - s->stride - s->before;
	}
	*before = part == 0 || *before < 0 ? 0 : *before;
	*after = part == parts - 1 || *after < 0 ? 0 : *after;
}
