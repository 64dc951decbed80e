/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/picture_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

/* Above this number of boxes, small operators join those they read. */
enum { MANY_BOXES = 12 };

/* Above this number of boxes, what is cut alike throughout is a box. */
enum { PLENTY = 24 };

/* Operator inputs with a note of their own; the rest share one. */
enum { MANY_NOTES = 8 };

/* Above this number of readers, only the first is connected; others get a note. */
enum { MANY_USERS = 8 };

struct viewer {
	struct ap_ctx *ctx;
	struct ap_pic_view *v;
	const uint8_t *rank; /* [noperator] of drawn operators; 0: none */
	struct ap_map *lines; /* (from, to, again): ids are line indices */
	AP_VEC(struct ap_pic_line) line;
	struct ap_map *notes; /* (box, place): ids are note indices */
	struct ap_map *tensors; /* (note, tensor) */
	AP_VEC(struct ap_pic_box) note;
	const uint32_t *only; /* [nbox] the only box that may connect to it; AP_NONE: all */
};

struct spent {
	double time_s;
	uint32_t oper;
};

static int by_time(const void *a, const void *b)
{
	const struct spent *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s > y->time_s ? -1 : 1;
	return x->oper < y->oper ? -1 : 1;
}

/* Ranks of the most expensive drawn operators, counting all copies. */
static const uint8_t *make_ranks(struct ap_ctx *ctx, const struct ap_picture *pic,
	const struct ap_pic_fold *fold)
{
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, pic->noperator);
	struct spent *spent = AP_NEW_N(ctx->scratch, struct spent, pic->noperator);

	for (uint32_t i = 0; i < pic->noperator; i++) {
		spent[i].oper = i;
		spent[fold->stand[i]].time_s += pic->node[i].time_s;
	}
	if (pic->noperator)
		qsort(spent, pic->noperator, sizeof *spent, by_time);
	for (uint8_t k = 0; k < AP_PIC_RANKS && k < pic->noperator && spent[k].time_s > 0; k++)
		rank[spent[k].oper] = k + 1;
	return rank;
}

/* Numbers boxes in the order of their heads. */
static void number_boxes(struct viewer *w, const struct ap_pic_heads *h, uint32_t *box_of)
{
	struct ap_pic_view *v = w->v;

	v->box = AP_NEW_N(w->ctx->scratch, struct ap_pic_box, h->nbox);
	for (uint32_t i = 0; i < v->pic->noperator; i++) {
		struct ap_pic_box *box;

		if (v->fold.stand[i] != i) {
			box_of[i] = box_of[v->fold.stand[i]];
			continue;
		}
		if (h->head[i] == i) {
			v->box[v->nbox].title = h->title[i];
			v->box[v->nbox].frame = h->frame[i];
			box_of[i] = v->nbox++;
		}
		box_of[i] = box_of[ap_pic_head(h, i)];
		box = &v->box[box_of[i]];
		if (box->nmember++)
			box->kind = box->title ? AP_BOX_GROUP : AP_BOX_CHAIN;
		if (w->rank[i]) { /* ascending */
			uint32_t k = box->nrank++;

			for (; k > 0 && box->rank[k - 1] > w->rank[i]; k--)
				box->rank[k] = box->rank[k - 1];
			box->rank[k] = w->rank[i];
		}
	}
}

static void fill_boxes(struct viewer *w, const uint32_t *box_of)
{
	struct ap_pic_view *v = w->v;
	uint32_t *member = AP_NEW_N(w->ctx->scratch, uint32_t, v->pic->noperator);

	for (uint32_t b = 0; b < v->nbox; b++) {
		v->box[b].member = member;
		member += v->box[b].nmember;
		v->box[b].nmember = 0;
		if (v->box[b].title && v->box[b].kind == AP_BOX_OPERATOR)
			v->box[b].title = NULL;
	}
	for (uint32_t i = 0; i < v->pic->noperator; i++) {
		struct ap_pic_box *box = &v->box[box_of[i]];
		const struct ap_pic_node *node = &v->pic->node[i];

		if (v->fold.stand[i] == i)
			((uint32_t *)box->member)[box->nmember++] = i;
		box->operators++;
		box->ncomm += node->ncomm;
		box->time_s += node->time_s;
	}
}

static void add_moved(struct ap_pic_moved *m, const struct ap_pic_edge *e)
{
	if (!*e->moves)
		return;
	m->n++;
	m->bytes += e->bytes;
	m->time_s += e->time_s;
}

static void add_line(struct viewer *w, uint32_t from, uint32_t to, bool again,
	const struct ap_pic_edge *e)
{
	const uint32_t key[3] = {from, to, again};
	struct ap_pic_line *line, new = {.from = from, .to = to, .again = again, .first = e,
		.one_kind = true};
	bool fresh;
	ap_id id = ap_map_put(w->lines, key, sizeof key, &fresh);

	if (fresh)
		AP_PUSH(w->ctx->scratch, w->line, new);
	line = &w->line.v[id];
	line->count++;
	line->sent += e->sent;
	line->sent_bytes += e->sent_bytes;
	if (*e->moves && line->moved.n && strcmp(e->moves, line->first->moves) != 0)
		line->one_kind = false;
	if (*e->moves && !line->moved.n)
		line->first = e;
	add_moved(&line->moved, e);
}

/* The note for an operator's place, or one for all places of a group. place: index of the drawn
 * operator's edge. */
static uint32_t find_note(struct viewer *w, uint32_t to, uint32_t place,
	const struct ap_pic_edge *e)
{
	const struct ap_pic_box *box = &w->v->box[to];
	const uint32_t key[2] = {to, box->kind == AP_BOX_GROUP ? AP_NONE : place};
	struct ap_pic_box new = {.kind = AP_BOX_NOTE, .nmember = 1, .member = &e->from,
		.frame = box->frame};
	const char *tensor;
	bool fresh;
	ap_id id = ap_map_put(w->notes, key, sizeof key, &fresh);

	if (fresh)
		AP_PUSH(w->ctx->scratch, w->note, new);
	tensor = ap_arena_printf(w->ctx->scratch, "%u/%s", (unsigned)id, e->tensor);
	ap_map_put_str(w->tensors, tensor, &fresh);
	w->note.v[id].operators += fresh;
	return w->v->nbox + id;
}

/* operand: index among the operator's edges. */
static void add_edge(struct viewer *w, const uint32_t *box_of, uint32_t operand,
	const struct ap_pic_edge *e)
{
	struct ap_pic_view *v = w->v;
	bool outside = e->from >= v->pic->noperator, again = false;
	uint32_t to = box_of[e->to], from = outside ? AP_NONE : box_of[e->from];
	bool far = !outside && from != to && w->only && w->only[from] != AP_NONE && w->only[from] != to;

	if (outside || far)
		from = find_note(w, to, v->fold.stand[e->to] * UINT32_C(16) +
			(operand < MANY_NOTES ? operand : MANY_NOTES), e);
	else
		again = v->fold.nloop && ap_pic_fold_again(&v->fold, e->from, e->to);
	if (from == to && (!again || v->box[to].kind == AP_BOX_GROUP))
		add_moved(&v->box[to].inside, e);
	else
		add_line(w, from, to, again, e);
}

static void make_lines(struct viewer *w, const uint32_t *box_of)
{
	const struct ap_picture *pic = w->v->pic;
	uint32_t *operand = AP_NEW_N(w->ctx->scratch, uint32_t, pic->noperator);

	w->lines = ap_map_create(w->ctx->scratch);
	w->notes = ap_map_create(w->ctx->scratch);
	w->tensors = ap_map_create(w->ctx->scratch);
	w->line.n = w->note.n = 0;
	for (uint32_t e = 0; e < pic->nedge; e++)
		add_edge(w, box_of, operand[pic->edge[e].to]++, &pic->edge[e]);
}

/* Finds boxes with too many readers to connect all; NULL if there are none. */
static const uint32_t *find_hubs(const struct viewer *w)
{
	uint32_t n = w->v->nbox, *only = AP_NEW_N(w->ctx->scratch, uint32_t, n);
	uint32_t *users = AP_NEW_N(w->ctx->scratch, uint32_t, n);
	bool any = false;

	memset(only, 0xFF, n * sizeof *only);
	for (size_t i = w->line.n; i-- > 0;) {
		const struct ap_pic_line *line = &w->line.v[i];

		if (line->from >= n || line->again)
			continue;
		any |= ++users[line->from] > MANY_USERS;
		only[line->from] = line->to;
	}
	for (uint32_t b = 0; b < n; b++)
		if (users[b] <= MANY_USERS)
			only[b] = AP_NONE;
	return any ? only : NULL;
}

static void draw_boxes(struct viewer *w, const struct ap_pic_heads *h)
{
	uint32_t *box_of = AP_NEW_N(w->ctx->scratch, uint32_t, w->v->pic->noperator);
	struct ap_pic_view *v = w->v;
	struct ap_pic_box *all;

	v->nbox = 0;
	number_boxes(w, h, box_of);
	fill_boxes(w, box_of);
	w->only = NULL;
	make_lines(w, box_of);
	w->only = find_hubs(w);
	if (w->only) {
		for (uint32_t b = 0; b < v->nbox; b++)
			v->box[b].inside = (struct ap_pic_moved){0};
		make_lines(w, box_of);
	}
	all = AP_NEW_N(w->ctx->scratch, struct ap_pic_box, v->nbox + w->note.n);
	for (uint32_t b = 0; b < v->nbox; b++)
		all[b] = v->box[b];
	for (size_t k = 0; k < w->note.n; k++)
		all[v->nbox + k] = w->note.v[k];
	v->box = all;
	v->nnote = (uint32_t)w->note.n;
	v->nbox += v->nnote;
	v->line = w->line.v;
	v->nline = (uint32_t)w->line.n;
	v->box_of = box_of;
	v->nframe = h->nframe;
	v->frame = h->tree;
	v->nshell = h->nshell;
	v->shell = h->shell;
}

/* Draws fewer boxes until they fit with notes and legend: a group has one note. */
static void draw_few(struct viewer *w, struct ap_pic_heads *h)
{
	uint32_t most = AP_PIC_MOST_BOXES - 1;

	for (;;) {
		uint32_t less;

		ap_pic_frames_shrink(w->ctx, h, most);
		draw_boxes(w, h);
		if (w->v->nbox < AP_PIC_MOST_BOXES || h->nbox <= 1)
			return;
		less = (w->v->nbox - AP_PIC_MOST_BOXES) / 2 + 1;
		most = h->nbox > 2 * less ? h->nbox - less : h->nbox / 2;
	}
}

uint32_t ap_pic_copies(const struct ap_pic_view *v, uint32_t frame)
{
	return frame == AP_NONE ? 1 : v->frame[frame].all / v->frame[frame].operators;
}

void ap_pic_view_make(struct ap_ctx *ctx, const struct ap_picture *pic, enum ap_pic_detail detail,
	struct ap_pic_view *out)
{
	struct viewer w = {.ctx = ctx, .v = out};
	struct ap_pic_heads h;

	*out = (struct ap_pic_view){.pic = pic};
	for (uint32_t i = 0; i < pic->noperator; i++)
		out->total_s += pic->node[i].time_s;
	for (uint32_t e = 0; e < pic->nedge; e++)
		out->total_s += pic->edge[e].time_s;
	if (detail == AP_PIC_FULL)
		ap_pic_fold_none(ctx, pic, &out->fold);
	else
		ap_pic_fold_make(ctx, pic, &out->fold);
	w.rank = make_ranks(ctx, pic, &out->fold);
	ap_pic_heads_make(ctx, pic, &out->fold, &h);
	if (detail == AP_PIC_FOLD && h.nbox > MANY_BOXES)
		ap_pic_heads_chain(ctx, &h, w.rank);
	ap_pic_frames_make(ctx, &h);
	if (detail == AP_PIC_FOLD)
		ap_pic_frames_tidy(ctx, &h, w.rank, PLENTY);
	if (detail == AP_PIC_FULL)
		draw_boxes(&w, &h);
	else
		draw_few(&w, &h);
}
