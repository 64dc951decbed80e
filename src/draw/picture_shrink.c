/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer boxes: frames become boxes, neighbours one box. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "draw/picture_frame.h"

struct shrinker {
	struct ap_pic_heads *h;
	bool timed; /* else operators stand for time */
	uint32_t *boxes; /* frame -> boxes in it and in the frames within */
	bool *gone; /* frame -> it is a box, or part of one */
	uint32_t *first, *next; /* frame -> its first box -> the next one, AP_NONE: none */
	uint32_t *child, *sibling; /* frame -> first frame in it -> the next one */
};

struct choice {
	double hidden; /* time that is hidden for each box saved */
	uint32_t frame, boxes;
};

static int by_hidden(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;

	if (x->hidden != y->hidden)
		return x->hidden < y->hidden ? -1 : 1;
	return x->frame < y->frame ? 1 : -1; /* inner ones first */
}

static bool is_head(const struct ap_pic_heads *h, uint32_t i)
{
	return h->fold->stand[i] == i && h->head[i] == i;
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

/* The head of all that is in a frame: the boxes become one. */
static uint32_t merge(struct shrinker *s, uint32_t frame)
{
	uint32_t head = s->first[frame];

	for (uint32_t i = head == AP_NONE ? AP_NONE : s->next[head]; i != AP_NONE; i = s->next[i])
		ap_pic_heads_join(s->h, head, i);
	for (uint32_t k = s->child[frame]; k != AP_NONE; k = s->sibling[k]) {
		uint32_t other = s->gone[k] ? AP_NONE : merge(s, k);

		if (other == AP_NONE)
			continue;
		if (head != AP_NONE)
			ap_pic_heads_join(s->h, head < other ? head : other,
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
	if (parent != AP_NONE) { /* keeps its boxes in order */
		uint32_t *place = &s->first[parent];

		while (*place < head)
			place = &s->next[*place];
		s->next[head] = *place;
		*place = head;
	}
	for (; parent != AP_NONE; parent = h->tree[parent].parent)
		s->boxes[parent] -= saved;
}

/* The frames that may become boxes, best first. */
static uint32_t list_choices(const struct shrinker *s, struct choice *choice)
{
	const struct ap_pic_heads *h = s->h;
	uint32_t n = 0;

	for (uint32_t k = 0; k < h->nframe; k++) {
		double hidden = s->timed ? h->tree[k].time_s : h->tree[k].all;

		if (!s->gone[k] && s->boxes[k] > 1)
			choice[n++] = (struct choice){hidden / (s->boxes[k] - 1), k, s->boxes[k]};
	}
	if (n)
		qsort(choice, n, sizeof *choice, by_hidden);
	return n;
}

/*
 * Collapses frames in order until one comes up that has changed since; false when none was.
 * One that holds most of what would still be shown is none to collapse.
 */
static bool collapse_some(struct shrinker *s, struct choice *choice, uint32_t most)
{
	uint32_t n = list_choices(s, choice), before = s->h->nbox;

	for (uint32_t k = 0; k < n && s->h->nbox > most; k++) {
		uint32_t frame = choice[k].frame;

		if (s->gone[frame] || s->h->nbox - s->boxes[frame] < most / 2)
			continue;
		if (s->boxes[frame] != choice[k].boxes)
			break;
		collapse(s, frame);
	}
	return s->h->nbox < before;
}

/* The innermost frame that holds both. */
static uint32_t common_frame(const struct ap_pic_heads *h, uint32_t a, uint32_t b)
{
	while (a != b) {
		uint32_t *inner = b == AP_NONE || (a != AP_NONE && a > b) ? &a : &b;

		*inner = h->tree[*inner].parent;
	}
	return a;
}

/* Joins so many neighbours each; strict: only those of one frame. */
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
		ap_pic_heads_join(h, head, i);
	}
}

static void number_frames(struct ap_pic_heads *h, bool *used, uint32_t *place)
{
	uint32_t n = 0;

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
}

/* Frames that have no boxes any more are gone. */
static void remove_empty(struct ap_ctx *ctx, struct ap_pic_heads *h)
{
	bool *used = AP_NEW_N(ctx->scratch, bool, h->nframe);
	uint32_t *place = AP_NEW_N(ctx->scratch, uint32_t, h->nframe);

	number_frames(h, used, place);
	for (uint32_t i = 0; i < h->pic->noperator; i++)
		if (is_head(h, i) && h->frame[i] != AP_NONE)
			h->frame[i] = place[h->frame[i]];
}

static void shrink(struct ap_ctx *ctx, struct ap_pic_heads *h, uint32_t most)
{
	struct choice *choice = AP_NEW_N(ctx->scratch, struct choice, h->nframe);
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
	while (h->nbox > most && collapse_some(&s, choice, most))
		;
	for (uint32_t each = (h->nbox + most - 1) / most; h->nbox > most; each *= 2) {
		join_neighbours(h, each, true);
		if (h->nbox > most)
			join_neighbours(h, (h->nbox + most - 1) / most, false);
	}
}

void ap_pic_frames_shrink(struct ap_ctx *ctx, struct ap_pic_heads *h, uint32_t most)
{
	if (h->nbox <= most)
		return;
	shrink(ctx, h, most);
	remove_empty(ctx, h);
}
