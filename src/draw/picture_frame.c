/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/picture_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "rule/op.h"

/* ---- boxes of one operator each, and chains of them ---- */

enum { MOST_CHAINED = 6 }; /* per chain */

void ap_pic_heads_make(struct ap_ctx *ctx, const struct ap_picture *pic,
	const struct ap_pic_fold *fold, struct ap_pic_heads *h)
{
	*h = (struct ap_pic_heads){.pic = pic, .fold = fold};
	h->head = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator);
	h->frame = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator);
	h->title = AP_NEW_N(ctx->scratch, const char *, pic->noperator);
	for (uint32_t i = 0; i < pic->noperator; i++) {
		h->head[i] = i;
		h->frame[i] = AP_NONE;
		h->nbox += fold->stand[i] == i;
	}
}

uint32_t ap_pic_head(const struct ap_pic_heads *h, uint32_t i)
{
	while (h->head[i] != i) {
		h->head[i] = h->head[h->head[i]];
		i = h->head[i];
	}
	return i;
}

static bool is_head(const struct ap_pic_heads *h, uint32_t i)
{
	return h->fold->stand[i] == i && h->head[i] == i;
}

/* Merges the box of head b into that of head a; a < b. */
static void join_heads(struct ap_pic_heads *h, uint32_t a, uint32_t b)
{
	h->head[b] = a;
	h->nbox--;
}

/* Neighbours of a drawn operator. */
struct degree {
	uint32_t from; /* the only operator it reads; AP_NONE if several or none */
	uint32_t users; /* different operators that read it; 2: several */
	uint32_t user;
	bool moved; /* an operand is redistributed, or comes from another copy or loop */
};

static void add_edge(const struct ap_pic_heads *h, const struct ap_pic_edge *e, struct degree *d)
{
	uint32_t n = h->pic->noperator, to = h->fold->stand[e->to], from;

	if (e->from >= n) {
		d[to].moved |= *e->moves != '\0';
		return;
	}
	from = h->fold->stand[e->from];
	d[to].moved |= *e->moves || e->sent || h->fold->in[from] != h->fold->in[to] ||
		(h->fold->nloop && ap_pic_fold_again(h->fold, e->from, e->to));
	d[to].moved |= d[to].from != AP_NONE && d[to].from != from;
	d[to].from = from;
	if (!d[from].users || d[from].user != to)
		d[from].users += d[from].users < 2;
	d[from].user = to;
}

static bool is_small(const char *type)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);
	const char *result = row ? strstr(row->rule, "->") : NULL;
	size_t first = row ? strcspn(row->rule, ",-") : 0;

	if (!row || row->unit != AP_OP_VECTOR)
		return row && (row->unit == AP_OP_VIEW || (row->unit == AP_OP_MEMORY && *row->rule == '*'));
	/* elementwise rules, such as "*->*", "b*x,x->b*x": the result has the dimensions of the
	 * first operand, all free */
	return result && strlen(result + 2) == first && !strncmp(row->rule, result + 2, first) &&
		!strpbrk(row->rule, "![~");
}

void ap_pic_heads_chain(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank)
{
	uint32_t n = h->pic->noperator;
	struct degree *d = AP_NEW_N(ctx->scratch, struct degree, n);
	uint32_t *joined = AP_NEW_N(ctx->scratch, uint32_t, n);

	for (uint32_t i = 0; i < n; i++)
		d[i].from = AP_NONE;
	for (uint32_t e = 0; e < h->pic->nedge; e++)
		add_edge(h, &h->pic->edge[e], d);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from = d[i].from, head;

		if (h->fold->stand[i] != i || from >= i || d[i].moved || d[from].users > 1 ||
			rank[i] || !is_small(h->pic->node[i].type))
			continue;
		head = ap_pic_head(h, from);
		if (++joined[head] < MOST_CHAINED)
			join_heads(h, head, i);
	}
}

/* ---- frames around boxes: cells, nested by the parts of their names, and loops ---- */

struct framer {
	struct ap_ctx *ctx;
	struct ap_pic_heads *h;
	AP_VEC(struct ap_pic_frame) frames;
	struct ap_map *places; /* (parent, loop, part, path): ids into latest */
	struct {
		struct latest {
			uint32_t frame, box; /* its last box */
		} *v;
		size_t n, cap;
	} latest;
	uint32_t box; /* boxes so far */
	uint32_t base; /* frame of the operator's part; AP_NONE */
	struct extent {
		size_t all, first; /* bytes of the cell common to all copies, and to the first */
	} *extent; /* [fold.nloop] */
};

/* Bytes of the longest common prefix of whole parts of cells a and b, at most len. */
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

/* Enters a frame; a cell that is left and entered again gets a new frame: frames are stretches of a
 * topological order, so no two of them read each other. */
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

/* Enters the frames of a cell's parts between bytes `from` and `to`. */
static uint32_t enter_parts(struct framer *f, uint32_t frame, const char *cell, size_t from,
	size_t to)
{
	for (size_t i = from ? from + 1 : 0; i <= to && to > from; i++)
		if (i == to || cell[i] == '.')
			frame = enter(f, frame, AP_NONE, cell, i);
	return frame;
}

/* Enters the frames of a loop and its parents. *from: bytes of the cell that frames then show. */
static uint32_t enter_loops(struct framer *f, uint32_t loop, const char *cell, size_t *from)
{
	const struct extent *x = &f->extent[loop == AP_NONE ? 0 : loop];
	uint32_t frame;

	*from = 0;
	if (loop == AP_NONE || f->h->fold->loop[loop].parts)
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
		const struct ap_pic_node *node = &h->pic->node[i];
		struct ap_pic_frame part = {
			.parent = AP_NONE, .loop = AP_NONE, .part = node->part, .path = ""};
		size_t from;

		if (!is_head(h, i))
			continue;
		for (uint32_t l = h->fold->in[i]; l != AP_NONE; l = h->fold->loop[l].parent)
			part.loop = h->fold->loop[l].parts ? l : part.loop;
		f->base = node->part ? place(f, &part) : AP_NONE;
		h->frame[i] = enter_loops(f, h->fold->in[i], node->cell, &from);
		h->frame[i] = enter_parts(f, h->frame[i], node->cell, from, strlen(node->cell));
		f->box++;
	}
}

/* The nearest kept frame, from this one outwards. */
static uint32_t kept_frame(const struct framer *f, const uint32_t *kept, uint32_t frame)
{
	while (frame != AP_NONE && kept[frame] == AP_NONE)
		frame = f->frames.v[frame].parent;
	return frame;
}

#define NEARLY_ALL 0.7 /* of the boxes around a cell: its frame would show nothing */

/* Keeps frames of pipeline parts and loops, and of cells with several boxes, but not nearly all boxes of
 * the picture, of a part, or all of other surroundings. */
static void keep_useful(struct framer *f)
{
	struct ap_pic_heads *h = f->h;
	uint32_t n = (uint32_t)f->frames.n, *boxes = AP_NEW_N(f->ctx->scratch, uint32_t, n);
	uint32_t *kept = AP_NEW_N(f->ctx->scratch, uint32_t, n);
	bool *shell = AP_NEW_N(f->ctx->scratch, bool, n);

	for (uint32_t i = 0; i < h->pic->noperator; i++)
		if (is_head(h, i) && h->frame[i] != AP_NONE)
			boxes[h->frame[i]]++;
	for (uint32_t k = n; k-- > 0;)
		if (f->frames.v[k].parent != AP_NONE)
			boxes[f->frames.v[k].parent] += boxes[k];
	/* if all boxes of a cell are in one inner cell, the inner frame shows more */
	for (uint32_t k = 0; k < n; k++) {
		uint32_t parent = f->frames.v[k].parent;

		if (parent != AP_NONE && f->frames.v[k].loop == AP_NONE && boxes[parent] == boxes[k])
			shell[parent] = true;
	}
	h->tree = AP_NEW_N(f->ctx->scratch, struct ap_pic_frame, n);
	h->shell = AP_NEW_N(f->ctx->scratch, const char *, n);
	for (uint32_t k = 0; k < n; k++) {
		struct ap_pic_frame frame = f->frames.v[k];
		uint32_t parent = kept_frame(f, kept, frame.parent);
		bool outer = parent == AP_NONE || f->frames.v[parent].part;
		uint32_t around = parent == AP_NONE ? h->nbox : boxes[parent];

		kept[k] = AP_NONE;
		if (frame.loop == AP_NONE && !frame.part) {
			bool nearly = outer && boxes[k] >= NEARLY_ALL * around;

			if (nearly)
				h->shell[h->nshell++] = frame.path;
			if (nearly || shell[k] || boxes[k] < 2 || boxes[k] == around)
				continue;
		}
		frame.parent = parent == AP_NONE ? AP_NONE : kept[parent];
		kept[k] = h->nframe;
		h->tree[h->nframe++] = frame;
	}
	for (uint32_t i = 0; i < h->pic->noperator; i++)
		if (is_head(h, i)) {
			uint32_t frame = kept_frame(f, kept, h->frame[i]);

			h->frame[i] = frame == AP_NONE ? AP_NONE : kept[frame];
		}
}

/* The rest of a cell behind an outer one; NULL if it is not in that. */
static const char *behind(const char *outer, const char *cell)
{
	size_t len = strlen(outer);

	return len && !strncmp(cell, outer, len) && cell[len] == '.' ? cell + len + 1 : NULL;
}

const char *ap_pic_short_path(const char *path, uint32_t nshell, const char *const *shell, const char *cell)
{
	const char *best = behind(path, cell);

	for (uint32_t i = 0; i < nshell && !best; i++) {
		const char *rest = behind(shell[nshell - 1 - i], cell);

		if (rest && (*rest < '0' || *rest > '9')) /* "blocks.3" says more than "3" */
			best = rest;
	}
	return best ? best : cell;
}

static const char *short_path(const struct ap_pic_heads *h, uint32_t parent, const char *path)
{
	return ap_pic_short_path(
		parent == AP_NONE ? "" : h->tree[parent].path, h->nshell, h->shell, path);
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

/* "stage 1 to stage 6, alike" */
static const char *part_label(const struct framer *f, const struct ap_pic_frame *frame)
{
	const struct ap_pic_loop *loop = frame->loop == AP_NONE ? NULL : &f->h->fold->loop[frame->loop];

	return loop ? ap_arena_printf(f->ctx->scratch, "%s to %s, alike", frame->part,
			      f->h->pic->node[loop->first + (loop->copies - 1) * loop->length].part)
		    : frame->part;
}

/* Sums operators and times, inner frames included. */
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
	for (uint32_t k = 0; k < h->nframe; k++) {
		struct ap_pic_frame *frame = &h->tree[k];

		frame->label = frame->part       ? part_label(&f, frame)
			: frame->loop == AP_NONE ? short_path(h, frame->parent, frame->path)
						 : loop_label(&f, frame);
	}
	sum_up(h);
}

/* ---- fewer boxes: a frame becomes a box, or neighbours join ---- */

struct shrinker {
	struct ap_pic_heads *h;
	bool timed; /* else operator counts replace times */
	uint32_t *boxes; /* frame -> boxes in it, inner frames included */
	bool *gone; /* frame -> has become a box, or part of one */
	uint32_t *first, *next; /* frame -> its first box -> next box; AP_NONE: none */
	uint32_t *child, *sibling; /* frame -> its first inner frame -> next one */
};

struct choice {
	double hidden; /* time hidden per box saved */
	uint32_t frame, boxes;
};

static int by_hidden(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;

	if (x->hidden != y->hidden)
		return x->hidden < y->hidden ? -1 : 1;
	return x->frame < y->frame ? 1 : -1; /* inner ones first */
}

static void list_boxes(struct shrinker *s)
{
	const struct ap_pic_heads *h = s->h;

	memset(s->first, 0xFF, h->nframe * sizeof *s->first);
	memset(s->child, 0xFF, h->nframe * sizeof *s->child);
	for (uint32_t i = h->pic->noperator; i-- > 0;)
		if (is_head(h, i) && h->frame[i] != AP_NONE) {
			s->next[i] = s->first[h->frame[i]];
			s->first[h->frame[i]] = i;
			s->boxes[h->frame[i]]++;
		}
	for (uint32_t k = h->nframe; k-- > 0;) {
		uint32_t parent = h->tree[k].parent;

		if (parent == AP_NONE)
			continue;
		s->boxes[parent] += s->boxes[k];
		s->sibling[k] = s->child[parent];
		s->child[parent] = k;
	}
}

/* Joins all boxes in a frame; returns the head. */
static uint32_t merge(struct shrinker *s, uint32_t frame)
{
	uint32_t head = s->first[frame];

	for (uint32_t i = head == AP_NONE ? AP_NONE : s->next[head]; i != AP_NONE; i = s->next[i])
		join_heads(s->h, head, i);
	for (uint32_t k = s->child[frame]; k != AP_NONE; k = s->sibling[k]) {
		uint32_t other = s->gone[k] ? AP_NONE : merge(s, k);

		if (other == AP_NONE)
			continue;
		if (head != AP_NONE)
			join_heads(s->h, head < other ? head : other,
				head < other ? other : head);
		head = head < other ? head : other;
	}
	s->gone[frame] = true;
	return head;
}

static void collapse(struct shrinker *s, uint32_t frame)
{
	struct ap_pic_heads *h = s->h;
	uint32_t parent = h->tree[frame].parent, saved = s->boxes[frame] - 1;
	uint32_t head = merge(s, frame);

	h->title[head] = h->tree[frame].label;
	h->frame[head] = parent;
	if (parent != AP_NONE) { /* keeps its boxes sorted */
		uint32_t *place = &s->first[parent];

		while (*place < head)
			place = &s->next[*place];
		s->next[head] = *place;
		*place = head;
	}
	for (; parent != AP_NONE; parent = h->tree[parent].parent)
		s->boxes[parent] -= saved;
}

/* Collapses frames, cheapest first, until one has changed since sorting; false if none was. Skips a
 * frame if fewer than most / 2 other boxes would be left. */
static bool collapse_some(struct shrinker *s, struct choice *choice, uint32_t most)
{
	struct ap_pic_heads *h = s->h;
	uint32_t n = 0, before = h->nbox;

	for (uint32_t k = 0; k < h->nframe; k++) {
		double hidden = s->timed ? h->tree[k].time_s : h->tree[k].all;

		if (!s->gone[k] && s->boxes[k] > 1)
			choice[n++] = (struct choice){hidden / (s->boxes[k] - 1), k, s->boxes[k]};
	}
	if (n)
		qsort(choice, n, sizeof *choice, by_hidden);
	for (uint32_t k = 0; k < n && h->nbox > most; k++) {
		uint32_t frame = choice[k].frame;

		if (s->gone[frame] || h->nbox - s->boxes[frame] < most / 2)
			continue;
		if (s->boxes[frame] != choice[k].boxes)
			break;
		collapse(s, frame);
	}
	return h->nbox < before;
}

/* The innermost frame that contains both. */
static uint32_t common_frame(const struct ap_pic_heads *h, uint32_t a, uint32_t b)
{
	while (a != b) {
		uint32_t *inner = b == AP_NONE || (a != AP_NONE && a > b) ? &a : &b;

		*inner = h->tree[*inner].parent;
	}
	return a;
}

/* Joins each run of `each` neighbours; strict: only within a frame. */
static void join_neighbours(struct ap_pic_heads *h, uint32_t each, bool strict)
{
	uint32_t k = each, head = 0;

	for (uint32_t i = 0; i < h->pic->noperator; i++) {
		if (!is_head(h, i))
			continue;
		if (k++ >= each || (strict && h->frame[i] != h->frame[head])) {
			head = i;
			k = 1;
			continue;
		}
		h->frame[head] = common_frame(h, h->frame[head], h->frame[i]);
		h->title[head] = "";
		join_heads(h, head, i);
	}
}

/* Removes frames that have no boxes left. */
static void remove_empty(struct ap_ctx *ctx, struct ap_pic_heads *h)
{
	bool *used = AP_NEW_N(ctx->scratch, bool, h->nframe);
	uint32_t *place = AP_NEW_N(ctx->scratch, uint32_t, h->nframe), n = 0;

	for (uint32_t i = 0; i < h->pic->noperator; i++)
		for (uint32_t k = is_head(h, i) ? h->frame[i] : AP_NONE; k != AP_NONE && !used[k];
			k = h->tree[k].parent)
			used[k] = true;
	for (uint32_t k = 0; k < h->nframe; k++) {
		struct ap_pic_frame frame = h->tree[k];

		if (!used[k])
			continue;
		if (frame.parent != AP_NONE)
			frame.parent = place[frame.parent];
		place[k] = n;
		h->tree[n++] = frame;
	}
	h->nframe = n;
	for (uint32_t i = 0; i < h->pic->noperator; i++)
		if (is_head(h, i) && h->frame[i] != AP_NONE)
			h->frame[i] = place[h->frame[i]];
}

#define LITTLE 0.005 /* share of the time that need not be shown in detail */

static struct shrinker begin_shrinking(struct ap_ctx *ctx, struct ap_pic_heads *h)
{
	struct shrinker s = {.h = h,
		.boxes = AP_NEW_N(ctx->scratch, uint32_t, h->nframe),
		.gone = AP_NEW_N(ctx->scratch, bool, h->nframe),
		.first = AP_NEW_N(ctx->scratch, uint32_t, h->nframe),
		.next = AP_NEW_N(ctx->scratch, uint32_t, h->pic->noperator),
		.child = AP_NEW_N(ctx->scratch, uint32_t, h->nframe),
		.sibling = AP_NEW_N(ctx->scratch, uint32_t, h->nframe)};

	for (uint32_t i = 0; i < h->pic->noperator && !s.timed; i++)
		s.timed = h->pic->node[i].time_s > 0;
	list_boxes(&s);
	return s;
}

/* The pipeline part that a frame is in, "" without one. */
static const char *part_of(const struct ap_pic_heads *h, uint32_t frame)
{
	while (frame != AP_NONE && !h->tree[frame].part)
		frame = h->tree[frame].parent;
	return frame == AP_NONE ? "" : h->tree[frame].label;
}

/* Joins loops that are equal to one in which more time is spent. */
static void join_twins(struct ap_ctx *ctx, struct shrinker *s)
{
	const struct ap_pic_heads *h = s->h;

	for (uint32_t k = 0; k < h->nframe; k++) {
		const struct ap_pic_frame *frame = &h->tree[k];
		uint32_t twin = AP_NONE;

		if (frame->loop == AP_NONE || frame->part || s->gone[k] || s->boxes[k] < 2)
			continue;
		for (uint32_t j = 0; j < h->nframe; j++)
			if (j != k && h->tree[j].loop != AP_NONE && !h->tree[j].part && !s->gone[j] &&
				h->fold->loop[h->tree[j].loop].like == h->fold->loop[frame->loop].like &&
				(h->tree[j].time_s > frame->time_s ||
					(h->tree[j].time_s == frame->time_s &&
						h->tree[j].all >= frame->all && j < k)))
				twin = twin == AP_NONE || h->tree[j].time_s > h->tree[twin].time_s ? j
												   : twin;
		if (twin == AP_NONE)
			continue;
		h->tree[k].label = ap_arena_printf(ctx->scratch, "%s, as in %s", frame->label,
			*part_of(h, twin) ? part_of(h, twin) : h->tree[twin].label);
		collapse(s, k);
	}
}

/* The time of all operators and redistributions. */
static double all_time_of(const struct ap_picture *pic)
{
	double all_s = 0;

	for (uint32_t i = 0; i < pic->noperator; i++)
		all_s += pic->node[i].time_s;
	for (uint32_t e = 0; e < pic->nedge; e++)
		all_s += pic->edge[e].time_s;
	return all_s;
}

/* Marks frames that show something if they stay: operators cut otherwise than others, redistributions,
 * changes; unless all of it takes next to no time. */
static bool *find_mixed(struct ap_ctx *ctx, const struct ap_pic_heads *h)
{
	const struct ap_picture *pic = h->pic;
	double *time_s = AP_NEW_N(ctx->scratch, double, h->nframe), all_s = all_time_of(pic);
	bool *mixed = AP_NEW_N(ctx->scratch, bool, h->nframe),
	     *changed = AP_NEW_N(ctx->scratch, bool, h->nframe);
	const struct ap_pic_node **first = AP_NEW_N(ctx->scratch, const struct ap_pic_node *, h->nframe);

	for (uint32_t i = 0; i < pic->noperator; i++) {
		const struct ap_pic_node *node = &pic->node[i];

		if (h->fold->stand[i] != i)
			continue;
		for (uint32_t k = h->frame[ap_pic_head(h, i)]; k != AP_NONE; k = h->tree[k].parent) {
			first[k] = first[k] ? first[k] : node;
			mixed[k] |= memcmp(first[k]->cut_in, node->cut_in, sizeof node->cut_in) != 0;
			changed[k] |= node->was != NULL;
		}
	}
	for (uint32_t e = 0; e < pic->nedge; e++) {
		const struct ap_pic_edge *edge = &pic->edge[e];
		uint32_t k = h->frame[ap_pic_head(h, h->fold->stand[edge->to])];

		for (; *edge->moves && k != AP_NONE; k = h->tree[k].parent) {
			mixed[k] = true;
			time_s[k] += edge->time_s;
		}
	}
	for (uint32_t k = 0; k < h->nframe; k++)
		mixed[k] = h->tree[k].part || changed[k] ||
			(mixed[k] && h->tree[k].time_s + time_s[k] >= LITTLE * all_s);
	return mixed;
}

#define FEW 0.05 /* share of the time of operators that may be told of by what they are like */

/* The first operator of a frame; one copy of it is h->tree[frame].operators in a row. */
static uint32_t first_of(const struct ap_pic_heads *h, const struct shrinker *s, uint32_t frame)
{
	uint32_t first = s->first[frame];

	for (uint32_t k = s->child[frame]; k != AP_NONE; k = s->sibling[k]) {
		uint32_t inner = first_of(h, s, k);

		first = inner < first ? inner : first;
	}
	return first;
}

/* Operators of a stretch that are cut otherwise than those of another of the same types; AP_NONE: the types
 * differ. */
static uint32_t count_others(const struct ap_picture *pic, uint32_t a, uint32_t b, uint32_t n)
{
	uint32_t others = 0;

	if (a + n > pic->noperator || b + n > pic->noperator)
		return AP_NONE;
	for (uint32_t i = 0; i < n; i++) {
		const struct ap_pic_node *x = &pic->node[a + i], *y = &pic->node[b + i];

		if (strcmp(x->type, y->type) != 0)
			return AP_NONE;
		others += strcmp(x->key, y->key) != 0;
	}
	return others;
}

/* Joins frames of little time that have the operators of a loop of more, and says how many of these they
 * cut otherwise. */
static void join_likes(struct ap_ctx *ctx, struct shrinker *s)
{
	const struct ap_pic_heads *h = s->h;
	double most_s = FEW * all_time_of(h->pic);

	for (uint32_t k = 0; k < h->nframe; k++) {
		struct ap_pic_frame *frame = &h->tree[k];

		if (frame->part || s->gone[k] || s->boxes[k] < 2 || frame->time_s > most_s)
			continue;
		for (uint32_t j = 0; j < h->nframe; j++) {
			const struct ap_pic_frame *other = &h->tree[j];
			uint32_t others;

			if (j == k || other->loop == AP_NONE || other->part || s->gone[j] ||
				other->operators != frame->operators || other->time_s < frame->time_s)
				continue;
			others = count_others(
				h->pic, first_of(h, s, k), first_of(h, s, j), frame->operators);
			if (others == AP_NONE)
				continue;
			frame->label = ap_arena_printf(ctx->scratch, "%s, %s %s", frame->label,
				others ? ap_arena_printf(ctx->scratch, "%u of %u cut otherwise than in",
						 (unsigned)others, (unsigned)frame->operators)
				       : "as in",
				other->label);
			collapse(s, k);
			break;
		}
	}
}

#define RUN 0.03 /* share of the time of neighbours that become a box */

struct run { /* boxes joined so far, by their head */
	double time_s; /* all copies */
	bool alone; /* joins no others */
};

/* Did they change in the same way, or not at all? */
static bool same_was(const struct ap_pic_node *a, const struct ap_pic_node *b)
{
	return a->was && b->was ? !strcmp(a->was, b->was) : a->was == b->was;
}

static struct run *measure_boxes(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank)
{
	const struct ap_picture *pic = h->pic;
	struct run *run = AP_NEW_N(ctx->scratch, struct run, pic->noperator);

	for (uint32_t i = 0; i < pic->noperator; i++) {
		uint32_t head = ap_pic_head(h, h->fold->stand[i]);
		const struct ap_pic_node *node = &pic->node[i], *first = &pic->node[head];

		run[head].time_s += node->time_s;
		run[head].alone |= rank[i] || !same_was(node, first) || h->title[head] ||
			memcmp(node->cut_in, first->cut_in, sizeof node->cut_in) != 0;
	}
	return run;
}

/* Edges by the box that reads: those of head i are edge[first[i]] to edge[first[i + 1] - 1]. */
static const uint32_t *edges_by_box(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint32_t **first)
{
	const struct ap_picture *pic = h->pic;
	uint32_t *edge = AP_NEW_N(ctx->scratch, uint32_t, pic->nedge);
	uint32_t *at = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator + 2);

	for (uint32_t e = 0; e < pic->nedge; e++)
		at[ap_pic_head(h, h->fold->stand[pic->edge[e].to]) + 2]++;
	for (uint32_t i = 0; i < pic->noperator; i++)
		at[i + 2] += at[i + 1];
	for (uint32_t e = 0; e < pic->nedge; e++)
		edge[at[ap_pic_head(h, h->fold->stand[pic->edge[e].to]) + 1]++] = e;
	*first = at;
	return edge;
}

/* Removes frames of cells that a run has made a single box of. */
static void unframe_runs(struct ap_pic_heads *h, const uint32_t *boxes)
{
	for (uint32_t i = 0; i < h->pic->noperator; i++) {
		uint32_t frame = is_head(h, i) ? h->frame[i] : AP_NONE;

		if (frame == AP_NONE || boxes[frame] > 1 || h->tree[frame].loop != AP_NONE ||
			h->tree[frame].part || !h->title[i])
			continue;
		h->title[i] = *h->title[i] ? h->title[i] : h->tree[frame].label;
		h->frame[i] = h->tree[frame].parent;
	}
}

/* Joins boxes that follow one another in a frame, feed one another, are cut alike and take little time
 * together. O(operators + edges). */
static void join_runs(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank)
{
	const struct ap_picture *pic = h->pic;
	struct run *run = measure_boxes(ctx, h, rank);
	uint32_t head = AP_NONE, *boxes = AP_NEW_N(ctx->scratch, uint32_t, h->nframe);
	double most_s = RUN * all_time_of(pic);
	const uint32_t *first, *edge = edges_by_box(ctx, h, &first);

	for (uint32_t i = 0; i < pic->noperator; i++) {
		bool fed = false, apart = false;

		if (!is_head(h, i))
			continue;
		apart = head == AP_NONE || run[head].alone || run[i].alone || h->frame[i] != h->frame[head] ||
			memcmp(pic->node[i].cut_in, pic->node[head].cut_in, sizeof pic->node->cut_in) ||
			!same_was(&pic->node[i], &pic->node[head]) ||
			run[head].time_s + run[i].time_s > most_s;
		for (uint32_t k = first[i]; k < first[i + 1] && !apart; k++) {
			const struct ap_pic_edge *e = &pic->edge[edge[k]];

			if (e->from >= pic->noperator || ap_pic_head(h, h->fold->stand[e->from]) != head)
				continue;
			fed = true;
			apart = *e->moves || e->sent || ap_pic_fold_again(h->fold, e->from, e->to);
		}
		if (apart || !fed) {
			head = i;
			continue;
		}
		run[head].time_s += run[i].time_s;
		h->title[head] = "";
		join_heads(h, head, i);
	}
	for (uint32_t i = 0; i < pic->noperator; i++)
		for (uint32_t k = is_head(h, i) ? h->frame[i] : AP_NONE; k != AP_NONE; k = h->tree[k].parent)
			boxes[k]++;
	unframe_runs(h, boxes);
	remove_empty(ctx, h);
}

void ap_pic_frames_tidy(struct ap_ctx *ctx, struct ap_pic_heads *h, const uint8_t *rank, uint32_t plenty)
{
	struct choice *choice = AP_NEW_N(ctx->scratch, struct choice, h->nframe);
	const bool *mixed = find_mixed(ctx, h);
	struct shrinker s = begin_shrinking(ctx, h);

	join_twins(ctx, &s);
	if (s.timed && h->nbox > plenty)
		join_likes(ctx, &s);
	for (uint32_t k = 0; k < h->nframe; k++)
		s.gone[k] |= mixed[k];
	while (s.timed && h->nbox > plenty && collapse_some(&s, choice, plenty))
		;
	remove_empty(ctx, h);
	if (s.timed && h->nbox > plenty)
		join_runs(ctx, h, rank);
}

void ap_pic_frames_shrink(struct ap_ctx *ctx, struct ap_pic_heads *h, uint32_t most)
{
	struct choice *choice = AP_NEW_N(ctx->scratch, struct choice, h->nframe);
	struct shrinker s;

	if (h->nbox <= most)
		return;
	s = begin_shrinking(ctx, h);
	while (h->nbox > most && collapse_some(&s, choice, most))
		;
	for (uint32_t each = (h->nbox + most - 1) / most; h->nbox > most; each *= 2) {
		join_neighbours(h, each, true);
		if (h->nbox > most)
			join_neighbours(h, (h->nbox + most - 1) / most, false);
	}
	remove_empty(ctx, h);
}
