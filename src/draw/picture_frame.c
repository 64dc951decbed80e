/* SPDX-License-Identifier: Apache-2.0 */
/* Frames around boxes: cells, nested by the parts of their names, and loops. */
#include "draw/picture_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"

struct framer {
	struct ap_ctx *ctx;
	struct ap_pic_heads *h;
	AP_VEC(struct ap_pic_frame) frames;
	struct ap_map *places; /* (parent, loop, part of a cell): ids into latest */
	struct {
		struct latest {
			uint32_t frame, box; /* the last box in it */
		} *v;
		size_t n, cap;
	} latest;
	uint32_t box; /* how many boxes came before */
	uint32_t base; /* frame of the part that the operator is in, AP_NONE */
	struct extent {
		size_t all, first; /* bytes of the cell that all copies, that the first one has in common */
	} *extent; /* [fold.nloop] */
};

/* Bytes of the longest run of whole parts that cells a and b begin with alike, at most len. */
static size_t common_bytes(const char *a, const char *b, size_t len)
{
	size_t common = 0;

	for (size_t i = 0;; i++) {
		bool end_a = i == len || !a[i] || a[i] == '.', end_b = !b[i] || b[i] == '.';

		if (end_a && end_b)
			common = i;
		if (end_a != end_b || i == len || !a[i] || a[i] != b[i])
			return common;
	}
}

static void measure_loops(struct framer *f)
{
	const struct ap_pic_fold *fold = f->h->fold;

	f->extent = AP_NEW_N(f->ctx->scratch, struct extent, fold->nloop);
	for (uint32_t l = 0; l < fold->nloop; l++) {
		const struct ap_pic_loop *loop = &fold->loop[l];
		const struct ap_pic_node *node = &f->h->pic->node[loop->first];
		struct extent *x = &f->extent[l];

		x->all = strlen(node->cell);
		for (uint32_t i = 0; i < loop->length * loop->copies; i++) {
			x->all = common_bytes(node->cell, node[i].cell, x->all);
			if (i < loop->length)
				x->first = x->all;
		}
	}
}

/* A cell that is left and entered again is framed again: frames are stretches of an order in which
 * everything comes after what it reads, so that no two of them read of each other. */
static uint32_t place(struct framer *f, const struct ap_pic_frame *frame)
{
	const struct latest none = {AP_NONE, 0};
	struct latest *latest;
	bool fresh;
	ap_id id = ap_map_put_str(f->places, ap_arena_printf(f->ctx->scratch, "%u/%u/%s/%s",
		(unsigned)frame->parent, (unsigned)frame->loop, frame->part ? frame->part : "",
		frame->path), &fresh);

	if (fresh)
		AP_PUSH(f->ctx->scratch, f->latest, none);
	latest = &f->latest.v[id];
	if (latest->frame == AP_NONE || latest->box + 1 < f->box) {
		latest->frame = (uint32_t)f->frames.n;
		AP_PUSH(f->ctx->scratch, f->frames, *frame);
	}
	latest->box = f->box;
	return latest->frame;
}

static uint32_t enter(struct framer *f, uint32_t parent, uint32_t loop, const char *cell,
	size_t len)
{
	const struct ap_pic_frame frame = {.parent = parent, .loop = loop,
		.path = ap_arena_strndup(f->ctx->scratch, cell, len)};

	return place(f, &frame);
}

/* The frame of a part of the pipeline; AP_NONE without one. */
static uint32_t enter_part(struct framer *f, const char *part)
{
	const struct ap_pic_frame frame = {.parent = AP_NONE, .loop = AP_NONE, .part = part,
		.path = ""};

	return part ? place(f, &frame) : AP_NONE;
}

/* The frames of the parts of a cell between byte from and byte to. */
static uint32_t enter_parts(struct framer *f, uint32_t frame, const char *cell, size_t from,
	size_t to)
{
	for (size_t i = from ? from + 1 : 0; i <= to && to > from; i++)
		if (i == to || cell[i] == '.')
			frame = enter(f, frame, AP_NONE, cell, i);
	return frame;
}

/* *from: bytes of the cell that are then told by the frames. */
static uint32_t enter_loops(struct framer *f, uint32_t loop, const char *cell, size_t *from)
{
	const struct extent *x = &f->extent[loop == AP_NONE ? 0 : loop];
	uint32_t frame;

	*from = 0;
	if (loop == AP_NONE)
		return f->base;
	frame = enter_loops(f, f->h->fold->loop[loop].parent, cell, from);
	frame = enter_parts(f, frame, cell, *from, x->all);
	*from = x->first > *from ? x->first : *from;
	return enter(f, frame, loop, cell, *from);
}

static void enter_all(struct framer *f)
{
	struct ap_pic_heads *h = f->h;

	for (uint32_t i = 0; i < h->pic->noperator; i++) {
		const char *cell = h->pic->node[i].cell;
		size_t from;

		if (h->fold->stand[i] != i || h->head[i] != i)
			continue;
		f->base = enter_part(f, h->pic->node[i].part);
		h->frame[i] = enter_loops(f, h->fold->in[i], cell, &from);
		h->frame[i] = enter_parts(f, h->frame[i], cell, from, strlen(cell));
		f->box++;
	}
}

/* The nearest frame that is kept, from this one outwards. */
static uint32_t kept_frame(const struct framer *f, const uint32_t *kept, uint32_t frame)
{
	while (frame != AP_NONE && kept[frame] == AP_NONE)
		frame = f->frames.v[frame].parent;
	return frame;
}

static void count_boxes(const struct framer *f, uint32_t *boxes)
{
	const struct ap_pic_heads *h = f->h;

	for (uint32_t i = 0; i < h->pic->noperator; i++)
		if (h->fold->stand[i] == i && h->head[i] == i && h->frame[i] != AP_NONE)
			boxes[h->frame[i]]++;
	for (size_t k = f->frames.n; k-- > 0;)
		if (f->frames.v[k].parent != AP_NONE)
			boxes[f->frames.v[k].parent] += boxes[k];
}

/* Marks cells whose boxes all lie in one cell of theirs: the inner frame says more. */
static void find_shells(const struct framer *f, const uint32_t *boxes, bool *shell)
{
	for (size_t k = 0; k < f->frames.n; k++) {
		uint32_t parent = f->frames.v[k].parent;

		if (parent != AP_NONE && f->frames.v[k].loop == AP_NONE &&
			boxes[parent] == boxes[k])
			shell[parent] = true;
	}
}

/* A part of the pipeline is always framed; a cell when it has several boxes, but not all of what is
 * around it. */
static void keep_useful(struct framer *f)
{
	struct ap_pic_heads *h = f->h;
	uint32_t n = (uint32_t)f->frames.n, *boxes = AP_NEW_N(f->ctx->scratch, uint32_t, n);
	uint32_t *kept = AP_NEW_N(f->ctx->scratch, uint32_t, n);
	bool *shell = AP_NEW_N(f->ctx->scratch, bool, n);

	count_boxes(f, boxes);
	find_shells(f, boxes, shell);
	h->tree = AP_NEW_N(f->ctx->scratch, struct ap_pic_frame, n);
	for (uint32_t k = 0; k < n; k++) {
		struct ap_pic_frame frame = f->frames.v[k];
		uint32_t parent = kept_frame(f, kept, frame.parent);

		kept[k] = AP_NONE;
		if (frame.loop == AP_NONE && !frame.part && (shell[k] || boxes[k] < 2 ||
			boxes[k] == (parent == AP_NONE ? h->nbox : boxes[parent])))
			continue;
		frame.parent = parent == AP_NONE ? AP_NONE : kept[parent];
		kept[k] = h->nframe;
		h->tree[h->nframe++] = frame;
	}
	for (uint32_t i = 0; i < h->pic->noperator; i++)
		if (h->fold->stand[i] == i && h->head[i] == i) {
			uint32_t frame = kept_frame(f, kept, h->frame[i]);

			h->frame[i] = frame == AP_NONE ? AP_NONE : kept[frame];
		}
}

/* Without what the frame around it says. */
static const char *short_path(const struct ap_pic_heads *h, uint32_t parent, const char *path)
{
	size_t len = parent == AP_NONE ? 0 : strlen(h->tree[parent].path);

	if (!len || strncmp(path, h->tree[parent].path, len) != 0 || path[len] != '.')
		return path;
	return path + len + 1;
}

/* "x 40: blocks.0 to blocks.39" */
static const char *loop_label(struct framer *f, const struct ap_pic_frame *frame)
{
	const struct ap_pic_loop *loop = &f->h->fold->loop[frame->loop];
	const struct ap_pic_node *last =
		&f->h->pic->node[loop->first + (loop->copies - 1) * loop->length];
	const char *from = short_path(f->h, frame->parent, frame->path), *to;
	size_t len = strlen(last->cell);

	for (uint32_t i = 0; i < loop->length; i++)
		len = common_bytes(last->cell, last[i].cell, len);
	to = short_path(f->h, frame->parent, ap_arena_strndup(f->ctx->scratch, last->cell, len));
	return ap_arena_printf(f->ctx->scratch, "x %u%s%s%s%s%s", (unsigned)loop->copies,
		loop->chained ? "" : " side by side", *from ? ": " : "", from,
		*from && strcmp(from, to) != 0 ? " to " : "",
		*from && strcmp(from, to) != 0 ? to : "");
}

static void name_frames(struct framer *f)
{
	for (uint32_t k = 0; k < f->h->nframe; k++) {
		struct ap_pic_frame *frame = &f->h->tree[k];

		frame->label = frame->part ? frame->part : frame->loop == AP_NONE ?
			short_path(f->h, frame->parent, frame->path) : loop_label(f, frame);
	}
}

/* Operators and time, of the frames within too. */
static void sum_up(struct ap_pic_heads *h)
{
	const struct ap_pic_fold *fold = h->fold;

	for (uint32_t i = 0; i < h->pic->noperator; i++) {
		uint32_t frame = h->frame[ap_pic_head(h, fold->stand[i])];

		for (; frame != AP_NONE; frame = h->tree[frame].parent) {
			h->tree[frame].all++;
			h->tree[frame].time_s += h->pic->node[i].time_s;
		}
	}
	for (uint32_t k = 0; k < h->nframe; k++) {
		h->tree[k].operators = h->tree[k].all;
		for (uint32_t up = k; up != AP_NONE; up = h->tree[up].parent)
			if (h->tree[up].loop != AP_NONE)
				h->tree[k].operators /= fold->loop[h->tree[up].loop].copies;
	}
}

void ap_pic_frames_make(struct ap_ctx *ctx, struct ap_pic_heads *h)
{
	struct framer f = {.ctx = ctx, .h = h, .places = ap_map_create(ctx->scratch)};

	measure_loops(&f);
	enter_all(&f);
	keep_useful(&f);
	name_frames(&f);
	sum_up(h);
}
