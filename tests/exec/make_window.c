/* SPDX-License-Identifier: Apache-2.0 */
/* Random convolutions and poolings. */
#include "make_parts.h"

#include <string.h>

enum { VALID, SAME, GIVEN };

struct slide {
	int64_t count, in, kernel, stride, dilation, before, after;
};

struct slides {
	int n, mode;
	struct slide v[AP_MAX_WINDOW];
};

/* The newer ones are padded by numbers alone, both ends alike. */
static bool has_mode(const struct ex_sample *s)
{
	return strcmp(s->type, "Conv2DExt") != 0 && strcmp(s->type, "Convolution") != 0;
}

/* Half of them so that the operand is as many strides long as there are windows. */
static void draw_padding(struct ex_sample *s, struct slide *v)
{
	int64_t span = (v->kernel - 1) * v->dilation + 1;

	if (span >= v->stride && ex_once_in(s, 2)) {
		v->before = ex_draw(s, span - v->stride + 1);
		v->after = span - v->stride - v->before;
	} else {
		v->before = ex_draw(s, span);
		v->after = ex_draw(s, span);
	}
	if (!has_mode(s))
		v->after = v->before;
	v->in = (v->count - 1) * v->stride + span - v->before - v->after;
	if (v->in < 1) {
		v->before = v->after = 0;
		v->in = (v->count - 1) * v->stride + span;
	}
}

static void draw_slide(struct ex_sample *s, int n, int mode, int64_t most, bool dilated,
	struct slide *v)
{
	int64_t rest;

	*v = (struct slide){.count = ex_length(s), .kernel = 1 + ex_draw(s, 3),
		.stride = 1 + ex_draw(s, n == 2 ? 3 : 2), .dilation = dilated && ex_once_in(s, 4) ? 2 : 1};
	while (v->count > most)
		v->count /= 2;
	rest = ex_once_in(s, 3) ? ex_draw(s, v->stride) : 0;
	if (mode == SAME)
		v->in = v->count * v->stride - rest;
	else if (mode == VALID)
		v->in = (v->count - 1) * v->stride + (v->kernel - 1) * v->dilation + 1 + rest;
	else
		draw_padding(s, v);
}

static void draw_slides(struct ex_sample *s, int n, bool given, bool dilated, struct slides *w)
{
	static const int64_t most[2][AP_MAX_WINDOW] = {{24, 6}, {12, 4, 2}};

	w->n = n;
	w->mode = has_mode(s) ? (int)ex_draw(s, given ? 3 : 2) : GIVEN;
	for (int k = 0; k < n; k++)
		draw_slide(s, n, w->mode, most[n - 2][k], dilated, &w->v[k]);
	if (ex_once_in(s, 2) && n > 1) { /* the long one at another place */
		struct slide first = w->v[0];

		w->v[0] = w->v[1];
		w->v[1] = first;
	}
}

/* One number where all are the same, one for each, or for batch and channels too. */
static void add_values(struct ex_sample *s, const char *name, int n, const int64_t *v)
{
	int64_t all[2 + AP_MAX_WINDOW] = {1, 1};
	bool same = true;

	for (int k = 1; k < n; k++)
		same &= v[k] == v[0];
	memcpy(all + 2, v, (size_t)n * sizeof *v);
	if (same && ex_once_in(s, 2))
		ex_add_list(s, name, 1, v);
	else if (ex_once_in(s, 2))
		ex_add_list(s, name, (uint32_t)n, v);
	else
		ex_add_list(s, name, (uint32_t)n + 2, all);
}

static void add_slides(struct ex_sample *s, const struct slides *w, bool kernel, bool dilated)
{
	static const char *const modes[][2] = {{"valid", "VALID"}, {"same", "SAME"}, {"pad", "PAD"}};
	int64_t sizes[AP_MAX_WINDOW], strides[AP_MAX_WINDOW], dilations[AP_MAX_WINDOW];
	int64_t ends[2 * AP_MAX_WINDOW], befores[AP_MAX_WINDOW];

	for (int k = 0; k < w->n; k++) {
		sizes[k] = w->v[k].kernel;
		strides[k] = w->v[k].stride;
		dilations[k] = w->v[k].dilation;
		befores[k] = ends[2 * k] = w->v[k].before;
		ends[2 * k + 1] = w->v[k].after;
	}
	if (has_mode(s) && (w->mode != VALID || !ex_once_in(s, 3)))
		ex_add_text(s, "pad_mode", modes[w->mode][ex_draw(s, 2)]);
	add_values(s, ex_once_in(s, 2) ? "strides" : "stride", w->n, strides);
	if (dilated)
		add_values(s, "dilation", w->n, dilations);
	if (kernel)
		add_values(s, "kernel_size", w->n, sizes);
	if (!has_mode(s))
		ex_add_list(s, "pad", befores[0] == befores[1] ? 1 : 2, befores);
	else if (w->mode == GIVEN)
		ex_add_list(s, "pad", 2 * (uint32_t)w->n, ends);
}

static int windows_of(const struct ex_sample *s)
{
	return strstr(s->type, "3D") ? 3 : 2;
}

/* Points of the windows, and elements of a channel of the operand. */
static void sizes_of(const struct slides *w, int64_t *points, int64_t *elements)
{
	*points = *elements = 1;
	for (int k = 0; k < w->n; k++) {
		*points *= w->v[k].count * w->v[k].kernel;
		*elements *= w->v[k].in;
	}
}

/* For batch and channels together. */
static int64_t room(int64_t points, int64_t elements)
{
	int64_t n = points < elements ? points : elements;

	return n < 1 ? 1 : n;
}

static void add_operand(struct ex_sample *s, int64_t n, int64_t c, const struct slides *w)
{
	int64_t size[AP_MAX_RANK] = {n, c};

	for (int k = 0; k < w->n; k++)
		size[2 + k] = w->v[k].in;
	ex_add_in(s, "float32", (uint8_t)(2 + w->n), size);
}

static void add_weight(struct ex_sample *s, int64_t from, int64_t to, const struct slides *w)
{
	int64_t size[AP_MAX_RANK] = {from, to};

	for (int k = 0; k < w->n; k++)
		size[2 + k] = w->v[k].kernel;
	ex_add_in(s, "float32", (uint8_t)(2 + w->n), size);
}

/* Groups of several channels, or of one. */
void ex_make_convolution(struct ex_sample *s)
{
	int64_t groups = windows_of(s) == 2 && ex_once_in(s, 2) ? 2 + ex_draw(s, 2) : 1;
	bool single = groups > 1 && ex_once_in(s, 2);
	int64_t points, elements, size[3]; /* batch, channels of a group: result, operand */
	struct slides w;

	draw_slides(s, windows_of(s), true, true, &w);
	sizes_of(&w, &points, &elements);
	ex_draw_shape(s, 3, room(24000 / groups / points, 3000 / groups / elements), size);
	if (single)
		size[2] = 1;
	add_operand(s, size[0], groups * size[2], &w);
	add_weight(s, groups * size[1], size[2], &w);
	add_slides(s, &w, ex_once_in(s, 2), true);
	if (groups > 1 || ex_once_in(s, 2))
		ex_add_int(s, "group", groups);
	if (!has_mode(s) && ex_once_in(s, 2))
		ex_add_in(s, "float32", 1, s->in[1].dim);
}

/* The operand is what a convolution makes, and the result as long as what that slides over. */
void ex_make_transposed(struct ex_sample *s)
{
	int64_t points, elements, size[3], length[4]; /* batch, channels: operand, result */
	struct slides w, made;

	draw_slides(s, 2, true, true, &w);
	sizes_of(&w, &points, &elements);
	ex_draw_shape(s, 3, room(24000 / points, 3000 / elements), size);
	made = w;
	for (int k = 0; k < 2; k++)
		made.v[k].in = w.v[k].count;
	add_operand(s, size[0], size[1], &made);
	add_weight(s, size[1], size[2], &w);
	add_slides(s, &w, ex_once_in(s, 2), true);
	length[0] = size[0];
	length[1] = size[2];
	length[2] = w.v[0].in;
	length[3] = w.v[1].in;
	ex_add_list(s, "input_size", 4, length);
}

void ex_make_pooling(struct ex_sample *s)
{
	int64_t points, elements, size[2];
	struct slides w;

	draw_slides(s, windows_of(s), windows_of(s) == 3, false, &w);
	for (int k = 0; k < w.n; k++) /* windows of their own are what may be cut */
		if (ex_once_in(s, 2)) {
			w.v[k].kernel = w.v[k].stride;
			w.v[k].in = w.v[k].count * w.v[k].stride;
			w.v[k].before = w.v[k].after = 0;
		}
	sizes_of(&w, &points, &elements);
	ex_draw_shape(s, 2, room(24000 / points, 3000 / elements), size);
	add_operand(s, size[0], size[1], &w);
	add_slides(s, &w, true, false);
}
