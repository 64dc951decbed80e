/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of one operator each, and chains of them. */
#include <string.h>

#include "base/arena.h"
#include "draw/picture_frame.h"

enum { MOST_CHAINED = 6 }; /* operators in a chain */

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

void ap_pic_heads_join(struct ap_pic_heads *h, uint32_t a, uint32_t b)
{
	h->head[b] = a;
	h->nbox--;
}

/* Of one operator that is drawn. */
struct degree {
	uint32_t from; /* the operator it reads of, AP_NONE when there are several or none */
	uint32_t users; /* different operators that read of it, 2: several */
	uint32_t user;
	bool moved; /* something it reads is redistributed, or comes from another copy or loop */
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

/* Rules as "*->*", "b*x,x->b*x": the result is as the first operand, every dimension is free. */
static bool by_element(const char *rule)
{
	size_t first = strcspn(rule, ",-");
	const char *result = strstr(rule, "->");

	return result && strlen(result + 2) == first && !strncmp(rule, result + 2, first) &&
		!strpbrk(rule, "![~");
}

static bool is_small(const char *type)
{
	const struct ap_op_row *row = ap_op_next(NULL, type);

	if (!row)
		return false;
	return row->unit == AP_OP_VIEW || (row->unit == AP_OP_MEMORY && *row->rule == '*') ||
		(row->unit == AP_OP_VECTOR && by_element(row->rule));
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
			ap_pic_heads_join(h, head, i);
	}
}
