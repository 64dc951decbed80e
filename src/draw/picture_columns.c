/* SPDX-License-Identifier: Apache-2.0 */
/* Places to cut are tried: a sketch ranks boxes as dot does, frame by frame, each then standing for what is
 * in it, and adds up what is tallest of each rank. Cuts are added one by one where they help most, and moved
 * while that helps. */
#include "draw/picture_columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum {
	MOST_CUTS = 12,
	MOST_BOXES = 4 * AP_PIC_MOST_BOXES, /* of more, no page has room */
	MOST_ROUNDS = 4 /* of moving cuts */
};

/* Points that dot leaves between ranks, for a line's label, around what is in a frame, between neighbours. */
enum { RANK_GAP = 22, LINE_LABEL = 14, FRAME_MARGIN = 8, NODE_GAP = 15 };

#define MUCH 1.1 /* times the height wanted: more costs more */
#define WIDTH_COST 0.15 /* of a point of width, in points of height */
#define UNEVEN 0.2 /* of a rank's square: cuts go where columns are even, though only the tallest counts */

/* What is worth how many points of height. */
enum {
	LOOSE = 30, /* a line into another column */
	NESTED = 150, /* a column in a frame, and in each frame around that */
	LONELY = 250, /* a column of a single rank */
	BESIDE = 50, /* what stands beside the columns of a frame before it */
	WORTH = 60 /* a cut brings at least */
};

struct item { /* a box, a frame, or, the last one, the picture */
	uint32_t parent;
	bool listed; /* among its parent's children */
	uint32_t depth; /* ranks in it */
	uint32_t at; /* rank of the first of them in the parent */
	uint32_t column; /* in the parent */
	double width, top, bottom; /* of a frame: what it adds at its first and last rank */
	bool cut; /* begins a column */
	bool several; /* columns are in it */
};

struct link { /* a line that pushes down what it leads to */
	uint32_t line, from, to; /* boxes */
	uint32_t in, a, b; /* the innermost item that has both, and its children that have them */
};

struct sketch {
	const struct ap_pic_view *v;
	const struct ap_pic_size *box, *label;
	uint32_t nbox, nitem; /* boxes without notes; items */
	struct item *item;
	uint32_t *child, *first_child; /* those of item i from child[first_child[i]] */
	uint32_t nlink;
	struct link *link; /* by item, then by what they lead to */
	uint32_t *first_link; /* [nitem + 1] */
	double *note_height; /* [nbox] of the tallest note of a box; 0: none */
	double *height, *top, *bottom, *gap; /* [ranks] */
	double *across; /* [ranks] */
	uint32_t lonely, beside; /* columns of a single rank; items beside the columns of a frame before */
	double uneven;
};

struct score {
	double height, width;
	uint32_t loose, nested, lonely, beside;
	double uneven; /* squares of columns' ranks */
};

static uint32_t frame_item(const struct sketch *s, uint32_t frame)
{
	return frame == AP_NONE ? s->nitem - 1 : s->nbox + frame;
}

/* The ancestor of i, or i, that is a child of item in; AP_NONE: it is not in there. */
static uint32_t child_in(const struct sketch *s, uint32_t i, uint32_t in)
{
	while (i != s->nitem - 1 && s->item[i].parent != in)
		i = s->item[i].parent;
	return i == s->nitem - 1 ? AP_NONE : i;
}

/* The rank of a box in item `in`, or in the picture. */
static uint32_t rank_in(const struct sketch *s, uint32_t box, uint32_t in)
{
	uint32_t rank = 0;

	for (uint32_t i = box; i != in && i != s->nitem - 1; i = s->item[i].parent)
		rank += s->item[i].at;
	return rank;
}

static int by_place(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	if (x->in != y->in)
		return x->in < y->in ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static void make_items(struct ap_ctx *ctx, struct sketch *s)
{
	const struct ap_pic_view *v = s->v;

	s->nbox = v->nbox - v->nnote;
	s->nitem = s->nbox + v->nframe + 1;
	s->item = AP_NEW_N(ctx->scratch, struct item, s->nitem);
	s->child = AP_NEW_N(ctx->scratch, uint32_t, s->nitem);
	s->first_child = AP_NEW_N(ctx->scratch, uint32_t, s->nitem + 2);
	for (uint32_t i = 0; i < s->nitem; i++)
		s->item[i] = (struct item){.parent = AP_NONE, .depth = 1};
	for (uint32_t b = 0; b < s->nbox; b++)
		s->item[b].parent = frame_item(s, v->box[b].frame);
	for (uint32_t k = 0; k < v->nframe; k++)
		s->item[s->nbox + k].parent = frame_item(s, v->frame[k].parent);
	/* children in the order of their first boxes: a frame follows when its first box does */
	for (uint32_t i = 0; i + 1 < s->nitem; i++)
		s->first_child[s->item[i].parent + 2]++;
	for (uint32_t i = 0; i < s->nitem; i++)
		s->first_child[i + 2] += s->first_child[i + 1];
	for (uint32_t b = 0; b < s->nbox; b++)
		for (uint32_t i = b; i != s->nitem - 1 && !s->item[i].listed; i = s->item[i].parent) {
			s->item[i].listed = true;
			s->child[s->first_child[s->item[i].parent + 1]++] = i;
		}
}

static void make_links(struct ap_ctx *ctx, struct sketch *s)
{
	const struct ap_pic_view *v = s->v;

	s->link = AP_NEW_N(ctx->scratch, struct link, v->nline);
	s->first_link = AP_NEW_N(ctx->scratch, uint32_t, s->nitem + 1);
	s->note_height = AP_NEW_N(ctx->scratch, double, s->nbox);
	for (uint32_t i = 0; i < v->nline; i++) {
		const struct ap_pic_line *line = &v->line[i];
		struct link l = {.line = i, .from = line->from, .to = line->to};

		if (line->from >= s->nbox)
			s->note_height[line->to] = fmax(s->note_height[line->to], s->box[line->from].height);
		if (line->from >= s->nbox || line->again || line->from >= line->to)
			continue;
		l.in = s->item[line->from].parent;
		while (child_in(s, line->to, l.in) == AP_NONE)
			l.in = s->item[l.in].parent;
		l.a = child_in(s, line->from, l.in);
		l.b = child_in(s, line->to, l.in);
		s->link[s->nlink++] = l;
	}
	if (s->nlink)
		qsort(s->link, s->nlink, sizeof *s->link, by_place);
	for (uint32_t i = 0, k = 0; i <= s->nitem; i++) {
		while (k < s->nlink && s->link[k].in < i)
			k++;
		s->first_link[i] = k;
	}
}

/* Ranks the children of a frame, or the picture, and measures how wide their columns are together. */
static void rank_children(struct sketch *s, uint32_t in)
{
	struct item *frame = &s->item[in];
	uint32_t column = 0;

	for (uint32_t k = s->first_child[in]; k < s->first_child[in + 1]; k++) {
		struct item *c = &s->item[s->child[k]];

		column += c->cut;
		c->column = column;
		c->at = s->child[k] < s->nbox && s->note_height[s->child[k]] > 0;
	}
	for (uint32_t k = s->first_link[in]; k < s->first_link[in + 1]; k++) {
		const struct link *l = &s->link[k];
		uint32_t from = s->item[l->a].at + rank_in(s, l->from, l->a) + 1,
			 to = rank_in(s, l->to, l->b);

		if (s->item[l->a].column == s->item[l->b].column && from > to && from - to > s->item[l->b].at)
			s->item[l->b].at = from - to;
	}
	frame->several = column > 0;
	frame->depth = 1;
	frame->width = 0;
	for (uint32_t k = s->first_child[in]; k < s->first_child[in + 1];) {
		uint32_t now = s->item[s->child[k]].column, depth = 0, end = 0;
		double width = 0;

		for (; k < s->first_child[in + 1] && s->item[s->child[k]].column == now; k++) {
			const struct item *c = &s->item[s->child[k]];

			s->beside += c->at < end;
			if (c->several && c->at + c->depth > end)
				end = c->at + c->depth;
			for (; depth < c->at + c->depth; depth++)
				s->across[depth] = 0;
			for (uint32_t r = c->at; r < c->at + c->depth; r++) {
				s->across[r] += c->width + NODE_GAP;
				width = fmax(width, s->across[r]);
			}
		}
		s->lonely += depth == 1 && column;
		s->uneven += (double)depth * depth;
		frame->depth = depth > frame->depth ? depth : frame->depth;
		frame->width += width;
	}
	if (in < s->nitem - 1)
		frame->width = fmax(frame->width, s->label[in - s->nbox].width) + 2 * FRAME_MARGIN;
}

static struct score judge(struct sketch *s)
{
	uint32_t picture = s->nitem - 1, depth;
	struct score score = {0};

	s->lonely = s->beside = 0;
	s->uneven = 0;
	for (uint32_t i = picture; i-- > s->nbox;) /* inner frames come after outer ones */
		rank_children(s, i);
	rank_children(s, picture);
	depth = s->item[picture].depth;
	for (uint32_t r = 0; r < depth; r++)
		s->height[r] = s->top[r] = s->bottom[r] = s->gap[r] = 0;
	for (uint32_t b = 0; b < s->nbox; b++) {
		uint32_t r = rank_in(s, b, picture);

		s->height[r] = fmax(s->height[r], s->box[b].height);
		if (r)
			s->height[r - 1] = fmax(s->height[r - 1], s->note_height[b]);
	}
	for (uint32_t k = 0; k < s->v->nframe; k++) {
		struct item *f = &s->item[s->nbox + k];
		const struct item *up = &s->item[f->parent];
		uint32_t r = rank_in(s, s->nbox + k, picture), last = r + f->depth - 1;

		f->top = s->label[k].height + FRAME_MARGIN + (f->at || f->parent == picture ? 0 : up->top);
		f->bottom = FRAME_MARGIN +
			(f->at + f->depth < up->depth || f->parent == picture ? 0 : up->bottom);
		s->top[r] = fmax(s->top[r], f->top);
		s->bottom[last] = fmax(s->bottom[last], f->bottom);
	}
	for (uint32_t i = 0; i < s->v->nline; i++) {
		const struct ap_pic_line *line = &s->v->line[i];

		if (line->from < s->nbox && (line->moved.n || line->sent))
			s->gap[rank_in(s, line->from, picture)] = LINE_LABEL;
	}
	for (uint32_t r = 0; r < depth; r++)
		score.height += s->height[r] + s->top[r] + s->bottom[r] + s->gap[r] + RANK_GAP;
	for (uint32_t k = 0; k < s->nlink; k++)
		score.loose += s->item[s->link[k].a].column != s->item[s->link[k].b].column;
	for (uint32_t i = 0; i < picture; i++)
		for (uint32_t in = s->item[i].cut ? s->item[i].parent : picture; in != picture;
			in = s->item[in].parent)
			score.nested++;
	score.lonely = s->lonely;
	score.beside = s->beside;
	score.uneven = s->uneven;
	score.width = s->item[picture].width;
	return score;
}

/* What is to be least. */
static double badness(const struct score *score, const struct ap_pic_size *most)
{
	return fmax(score->height - most->height, 0) + 3 * fmax(score->height - MUCH * most->height, 0) +
		WIDTH_COST * score->width + 2 * fmax(score->width - most->width, 0) + LOOSE * score->loose +
		NESTED * score->nested + LONELY * score->lonely + BESIDE * score->beside +
		UNEVEN * score->uneven;
}

/* May a column begin with the k-th child of all? Not with the first of its parent. */
static bool may_cut(const struct sketch *s, uint32_t k)
{
	return k != s->first_child[s->item[s->child[k]].parent] && !s->item[s->child[k]].cut;
}

/* Adds the cut that is best, if there is a place. */
static void add_cut(struct sketch *s, struct score *now, const struct ap_pic_size *most)
{
	double least = INFINITY;
	uint32_t best = AP_NONE;

	for (uint32_t k = 0; k + 1 < s->nitem; k++) {
		struct score score;

		if (!may_cut(s, k))
			continue;
		s->item[s->child[k]].cut = true;
		score = judge(s);
		s->item[s->child[k]].cut = false;
		if (badness(&score, most) < least) {
			least = badness(&score, most);
			best = k;
		}
	}
	if (best != AP_NONE)
		s->item[s->child[best]].cut = true;
	*now = judge(s);
}

/* Moves cuts, to any place, while that helps. */
static void move_cuts(struct sketch *s, struct score *now, const struct ap_pic_size *most)
{
	bool moved = true;

	for (int round = 0; round < MOST_ROUNDS && moved; round++) {
		moved = false;
		for (uint32_t k = 0; k + 1 < s->nitem; k++) {
			uint32_t best = k;
			double least = badness(now, most);

			if (!s->item[s->child[k]].cut)
				continue;
			s->item[s->child[k]].cut = false;
			for (uint32_t j = 0; j + 1 < s->nitem; j++) {
				struct score score;

				if (!may_cut(s, j))
					continue;
				s->item[s->child[j]].cut = true;
				score = judge(s);
				s->item[s->child[j]].cut = false;
				if (badness(&score, most) < least - 1) {
					least = badness(&score, most);
					best = j;
				}
			}
			s->item[s->child[best]].cut = true;
			moved |= best != k;
			*now = judge(s);
		}
	}
}

/* Does a line lead into another column of the innermost item that has both ends? */
static bool leads_beside(const struct sketch *s, const struct ap_pic_line *line)
{
	uint32_t in;

	if (line->from >= s->nbox || line->from == line->to)
		return false;
	in = s->item[line->from].parent;
	while (child_in(s, line->to, in) == AP_NONE)
		in = s->item[in].parent;
	return s->item[child_in(s, line->from, in)].column != s->item[child_in(s, line->to, in)].column;
}

void ap_pic_columns_make(struct ap_ctx *ctx, const struct ap_pic_view *v, const struct ap_pic_size *box,
	const struct ap_pic_size *label, const struct ap_pic_size *most, struct ap_pic_columns *out)
{
	struct sketch s = {.v = v, .box = box, .label = label};
	bool *loose = AP_NEW_N(ctx->scratch, bool, v->nline);
	bool better = true, *kept;
	struct score now;

	*out = (struct ap_pic_columns){.loose = loose};
	if (v->nbox > MOST_BOXES || v->nbox == v->nnote)
		return;
	make_items(ctx, &s);
	make_links(ctx, &s);
	kept = AP_NEW_N(ctx->scratch, bool, s.nitem);
	s.height = AP_NEW_N(ctx->scratch, double, 2 * s.nbox);
	s.top = AP_NEW_N(ctx->scratch, double, 2 * s.nbox);
	s.bottom = AP_NEW_N(ctx->scratch, double, 2 * s.nbox);
	s.gap = AP_NEW_N(ctx->scratch, double, 2 * s.nbox);
	s.across = AP_NEW_N(ctx->scratch, double, 2 * s.nbox);
	for (uint32_t b = 0; b < s.nbox; b++)
		s.item[b].width = box[b].width;
	now = judge(&s);
	for (int cuts = 0; cuts < MOST_CUTS && (now.height > most->height || now.beside) && better; cuts++) {
		double before = badness(&now, most);

		for (uint32_t i = 0; i < s.nitem; i++)
			kept[i] = s.item[i].cut;
		add_cut(&s, &now, most);
		move_cuts(&s, &now, most);
		better = badness(&now, most) < before - WORTH;
		for (uint32_t i = 0; i < s.nitem && !better; i++)
			s.item[i].cut = kept[i];
	}
	now = judge(&s); /* what was tried last may have been given up */
	for (uint32_t i = 0; i < s.nitem; i++)
		out->ncut += s.item[i].cut;
	for (uint32_t i = 0; i < v->nline; i++)
		loose[i] = leads_beside(&s, &v->line[i]);
	out->height = now.height;
	out->width = now.width;
}
