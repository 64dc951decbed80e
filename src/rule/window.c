/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of convolutions and poolings: their number, and what parts of them need. */
#include "rule/window.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "rule/attr.h"

enum pad_mode { PAD_VALID, PAD_SAME, PAD_GIVEN };

/* A dimension that windows slide over, before lengths are known. */
struct sliding {
	const struct ap_term *term;
	bool transposed; /* the term is at dimension dim of the result */
	unsigned operand;
	int dim;
	int number, total; /* its number among the operator's such dimensions */
	enum pad_mode mode;
};

/* MindSpore allows either case. word is in lower case. */
static bool is_word(const char *s, const char *word)
{
	while (*s && (*s == *word || (*s >= 'A' && *s <= 'Z' && *s - 'A' + 'a' == *word))) {
		s++;
		word++;
	}
	return !*s && !*word;
}

/* Is it a row of operators with numeric padding only, one number per dimension, too? */
static bool is_padded_by_numbers(const struct ap_binding *b)
{
	return strstr(b->row->when, "pad_mode?=pad");
}

static bool read_mode(struct ap_binding *b, enum pad_mode *mode)
{
	static const char *const words[] = {
		[PAD_VALID] = "valid", [PAD_SAME] = "same", [PAD_GIVEN] = "pad"};
	const char *s = ap_attr_str(b->in->attrs, "pad_mode",
		words[is_padded_by_numbers(b) ? PAD_GIVEN : PAD_VALID]);

	for (int m = PAD_VALID; m <= PAD_GIVEN; m++)
		if (is_word(s, words[m])) {
			*mode = (enum pad_mode)m;
			return true;
		}
	return ap_bind_fail(b, "operator-attr", -1,
		"attribute pad_mode is \"%s\"; valid, same or pad is expected", s);
}

static uint32_t values_of(const struct ap_attr *a, const int64_t **v)
{
	*v = a->type == AP_ATTR_INTS ? a->list : &a->i;
	return a->type == AP_ATTR_INTS ? a->n : 1;
}

/* Reads a value for all such dimensions, for each, or for these after batch and channels. */
static bool read_value(struct ap_binding *b, const struct sliding *s, const char *name,
	int64_t otherwise, int64_t *out)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, name);
	const int64_t *v;
	uint32_t n, total = (uint32_t)s->total, skip;

	*out = otherwise;
	if (!a)
		return true;
	n = values_of(a, &v);
	if (n != 1 && n != total && n != total + 2)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %s has %" PRIu32 " values; 1, %" PRIu32 " or %" PRIu32
			" are expected", name, n, total, total + 2);
	skip = n == total + 2 ? 2 : 0;
	for (uint32_t i = 0; i < n; i++)
		if (v[i] < 1 || v[i] > INT32_MAX || (i < skip && v[i] != 1))
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute %s has %" PRId64 " at %" PRIu32 "; %s is expected", name,
				v[i], i, i < skip ? "1" : "at least 1");
	*out = n == 1 ? v[0] : v[skip + (uint32_t)s->number];
	return true;
}

static bool read_kernel(struct ap_binding *b, const struct sliding *s)
{
	int64_t *length = &b->length[s->term->window - 'a'], value;

	if (!read_value(b, s, "kernel_size", *length, &value))
		return false;
	if (value < 1)
		return ap_bind_fail(b, "operator-attr", -1, "attribute kernel_size is missing");
	if (*length && *length != value)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute kernel_size is %" PRId64 "; the weight has a kernel of %" PRId64,
			value, *length);
	*length = value;
	return true;
}

/* Reads given padding: one value, or one for each end of each dimension. */
static bool read_pads(struct ap_binding *b, const struct sliding *s, struct ap_window *w)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, "pad");
	const int64_t *v;
	uint32_t n, total = (uint32_t)s->total, at = (uint32_t)s->number;
	bool sides = is_padded_by_numbers(b);

	if (!a)
		return true;
	n = values_of(a, &v);
	if (n != 1 && n != (sides ? total : 2 * total))
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute pad has %" PRIu32 " values; 1 or %" PRIu32 " are expected", n,
			sides ? total : 2 * total);
	for (uint32_t i = 0; i < n; i++)
		if (v[i] < 0 || v[i] > INT32_MAX || (v[i] > 0 && s->mode != PAD_GIVEN))
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute pad has %" PRId64 " at %" PRIu32 "; %s is expected",
				v[i], i, s->mode == PAD_GIVEN ? "at least 0"
				: "0 without pad_mode \"pad\"");
	w->before = n == 1 ? v[0] : n == total ? v[at] : v[2 * at];
	w->after = n <= total ? w->before : v[2 * at + 1];
	return true;
}

static bool count_windows(struct ap_binding *b, struct ap_window *w, enum pad_mode mode)
{
	int64_t padded = w->size + w->before + w->after;

	if (mode == PAD_SAME) {
		int64_t need;

		/* as many windows as strides; the missing elements are padded, the odd one at the
		 * end */
		w->count = (w->size - 1) / w->stride + 1;
		need = (w->count - 1) * w->stride + w->kernel - w->size;
		if (need > 0) {
			w->before = need / 2;
			w->after = need - need / 2;
		}
		return true;
	}
	if (padded < w->kernel)
		return ap_bind_fail(b, "operator-shape", w->operand,
			"dimension %d of operand %d is %" PRId64 ", %" PRId64 " with its padding; at "
			"least the window, %" PRId64 ", is expected", w->dim, w->operand, w->size,
			padded, w->kernel);
	w->count = (padded - w->kernel) / w->stride + 1;
	return true;
}

/* Length of the result: from attribute input_size, or as given by the windows without a rest. */
static bool read_length(struct ap_binding *b, const struct sliding *s, struct ap_window *w)
{
	const struct ap_attr *a = ap_attr_get(b->in->attrs, "input_size");
	uint32_t rank = b->rule.out[0].nterm;
	const int64_t *v;

	if (!a) {
		w->size = s->mode == PAD_SAME ? w->count * w->stride
			: (w->count - 1) * w->stride + w->kernel - w->before - w->after;
		return w->size > 0 || ap_bind_fail(b, "operator-attr", -1,
			"attribute pad leaves nothing of dimension %d of the result", s->dim);
	}
	if (values_of(a, &v) != rank || v[s->dim] < 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute input_size has other than %" PRIu32 " lengths; those of the result are "
			"expected", rank);
	w->size = v[s->dim];
	return true;
}

/* The windows of the convolution that is transposed: as many as the operand's length. */
static bool transpose(struct ap_binding *b, const struct sliding *s, struct ap_window *w)
{
	int64_t elements = w->size;

	w->count = elements;
	if (!read_length(b, s, w) || !count_windows(b, w, s->mode))
		return false;
	if (w->count != elements)
		return ap_bind_fail(b, "operator-attr", -1, "attribute input_size has %" PRId64
			" at %d; windows over that are %" PRId64 ", operand 0 has %" PRId64,
			w->size, s->dim, w->count, elements);
	w->transposed = true;
	w->count = w->size;
	w->size = elements;
	return true;
}

static bool slide(struct ap_binding *b, const struct sliding *s)
{
	const struct ap_attrs *attrs = b->in->attrs;
	const char *stride = ap_attr_get(attrs, "strides") ? "strides" : "stride";
	struct ap_window w = {.operand = (uint8_t)s->operand, .dim = (uint8_t)s->dim,
		.factor = AP_NO_FACTOR, .inside = s->mode == PAD_VALID,
		.size = b->in->in[s->operand].dim[s->dim]};
	int64_t elements, dilation;

	if (!read_kernel(b, s) || !read_value(b, s, stride, 1, &w.stride) ||
		!read_value(b, s, "dilation", 1, &dilation) || !read_pads(b, s, &w))
		return false;
	elements = b->length[s->term->window - 'a'];
	w.kernel = (elements - 1) * dilation + 1;
	if (s->transposed ? !transpose(b, s, &w) : !count_windows(b, &w, s->mode))
		return false;
	b->length[s->term->letter[0] - 'a'] = s->transposed ? w.size : w.count;
	b->bound.flops *= (double)elements;
	b->window_letter[b->bound.nwindow] = s->term->letter[0];
	b->bound.window[b->bound.nwindow++] = w;
	return true;
}

static int add_sliding(const struct ap_tensor_rule *t, unsigned operand, bool transposed, int n,
	struct sliding v[AP_MAX_WINDOW])
{
	for (int k = 0; k < t->nterm; k++)
		if (t->term[k].window) {
			assert(n < AP_MAX_WINDOW);
			v[n] = (struct sliding){.term = &t->term[k], .transposed = transposed,
				.operand = operand, .dim = k, .number = n};
			n++;
		}
	return n;
}

/* Finds the row's dimensions with windows. No "*" precedes them, so a term's index is its
 * dimension; those of a result are at the same index in operand 0. */
static int find_sliding(const struct ap_binding *b, struct sliding v[AP_MAX_WINDOW])
{
	int n = 0;

	for (unsigned i = 0; i < b->in->nin; i++)
		n = add_sliding(&b->rule.in[ap_bind_slot(b, i)], i, false, n, v);
	return add_sliding(&b->rule.out[0], 0, true, n, v);
}

bool ap_bind_windows(struct ap_binding *b)
{
	struct sliding v[AP_MAX_WINDOW];
	int n = find_sliding(b, v);
	enum pad_mode mode = PAD_VALID;

	if (n > 0 && !read_mode(b, &mode))
		return false;
	for (int i = 0; i < n; i++) {
		v[i].total = n;
		v[i].mode = mode;
		if (!slide(b, &v[i]))
			return false;
	}
	return true;
}

static int64_t floor_over(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Part p of P holds elements p size/P .. (p + 1) size/P - 1 and makes windows p count/P .. (p + 1)
 * count/P - 1; window i reads i stride - before .. + kernel - 1. Transposed: element i makes i
 * stride - before .. + kernel - 1 of the result. */
struct ap_halo ap_window_halo(const struct ap_window *w, int64_t parts, int64_t part)
{
	int64_t slice = w->size / parts, made = w->count / parts;
	int64_t first = part * made * w->stride - w->before;
	int64_t last = ((part + 1) * made - 1) * w->stride - w->before + w->kernel - 1;

	if (w->transposed) {
		first = floor_over(part * made + w->before - w->kernel + w->stride, w->stride);
		last = floor_over((part + 1) * made - 1 + w->before, w->stride);
	}

	return (struct ap_halo){
		.before = part == 0 ? 0 : part * slice - first,
		.after = part == parts - 1 ? 0 : last - ((part + 1) * slice - 1),
	};
}
