/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/picture_wire.h"

#include <string.h>

#include "base/arena.h"

static void count_across(struct ap_pic_wire *w)
{
	memset(w->last_user, 0, w->pic->noperator * sizeof *w->last_user);
	memset(w->across, 0, (w->nitem + 2) * sizeof *w->across);
	for (uint32_t e = 0; e < w->pic->nedge; e++) {
		uint32_t from = w->pic->edge[e].from, user = w->item_of[w->pic->edge[e].to];

		if (from < w->pic->noperator && user > w->last_user[from])
			w->last_user[from] = user;
	}
	for (uint32_t i = 0; i < w->pic->noperator; i++)
		if (w->last_user[i] > w->item_of[i]) {
			w->across[w->item_of[i] + 1]++;
			w->across[w->last_user[i] + 1]--;
		}
	for (uint32_t i = 0; i < w->nitem; i++)
		w->across[i + 1] += w->across[i];
}

void ap_pic_wire_index(struct ap_pic_wire *w)
{
	for (uint32_t i = 0; i < w->nitem; i++)
		for (uint32_t k = 0; k < w->item[i].length; k++)
			w->item_of[w->item[i].first + k] = i;
	count_across(w);
}

/* The edges of each operator, in their order. */
static void sort_edges(struct ap_ctx *ctx, struct ap_pic_wire *w)
{
	uint32_t *first = AP_NEW_N(ctx->scratch, uint32_t, w->pic->noperator + 2);
	uint32_t *in = AP_NEW_N(ctx->scratch, uint32_t, w->pic->nedge);

	for (uint32_t e = 0; e < w->pic->nedge; e++)
		first[w->pic->edge[e].to + 2]++;
	for (uint32_t i = 0; i < w->pic->noperator; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t e = 0; e < w->pic->nedge; e++)
		in[first[w->pic->edge[e].to + 1]++] = e;
	w->first_in = first;
	w->in = in;
}

static void number_moves(struct ap_ctx *ctx, struct ap_pic_wire *w)
{
	struct ap_map *texts = ap_map_create(ctx->scratch);
	ap_id *moves = AP_NEW_N(ctx->scratch, ap_id, w->pic->nedge);

	for (uint32_t e = 0; e < w->pic->nedge; e++)
		moves[e] = ap_map_put_str(texts, w->pic->edge[e].moves, NULL);
	w->moves = moves;
}

void ap_pic_wire_init(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_map *sigs,
	struct ap_pic_wire *w)
{
	*w = (struct ap_pic_wire){.pic = pic, .nitem = pic->noperator};
	w->item = AP_NEW_N(ctx->scratch, struct ap_pic_item, pic->noperator);
	w->item_of = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator + 1);
	w->last_user = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator + 1);
	w->across = AP_NEW_N(ctx->scratch, int32_t, pic->noperator + 2);
	for (uint32_t i = 0; i < pic->noperator; i++) {
		const char *key = ap_arena_printf(ctx->scratch, "o%s", pic->node[i].key);
		ap_id sig = ap_map_put_str(sigs, key, NULL);

		w->item[i] = (struct ap_pic_item){i, 1, 1, sig, AP_NONE};
	}
	ap_pic_wire_index(w);
	sort_edges(ctx, w);
	number_moves(ctx, w);
}

static bool same_source(const struct ap_pic_wire *w, const struct ap_pic_run *run, uint32_t a,
	uint32_t b, uint32_t distance, struct ap_pic_pair *pair)
{
	uint32_t n = w->pic->noperator;

	if (a >= n || b >= n)
		return a >= n && b >= n && w->pic->node[a].kind == w->pic->node[b].kind;
	if (b == a + distance && w->item_of[a] >= run->begin)
		return true;
	if (a == b && w->item_of[a] + 1 > pair->least) /* outside, so before the first copy */
		pair->least = w->item_of[a] + 1;
	return a == b;
}

/* The second copy reads what the first one, which lies before lo, made; the first one does not. */
static void narrow(const struct ap_pic_wire *w, uint32_t period, uint32_t a, uint32_t b,
	struct ap_pic_pair *pair)
{
	uint32_t n = w->pic->noperator, lo, hi;

	pair->same = false;
	lo = b < n ? w->item_of[b] + 1 : 1;
	hi = b < n ? w->item_of[b] + period : 0;
	if (a < n && w->item_of[a] + period + 1 > lo)
		lo = w->item_of[a] + period + 1;
	pair->lo = lo > pair->lo ? lo : pair->lo;
	pair->hi = hi < pair->hi ? hi : pair->hi;
}

static void compare_operands(const struct ap_pic_wire *w, const struct ap_pic_run *run, uint32_t x,
	uint32_t y, struct ap_pic_pair *pair)
{
	const uint32_t *in = &w->in[w->first_in[x]], *later = &w->in[w->first_in[y]];
	uint32_t n = w->first_in[x + 1] - w->first_in[x];

	if (w->first_in[y + 1] - w->first_in[y] != n) {
		pair->same = false;
		pair->hi = 0;
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t a = w->pic->edge[in[i]].from, b = w->pic->edge[later[i]].from;

		if (w->moves[in[i]] != w->moves[later[i]] ||
			!same_source(w, run, a, b, y - x, pair))
			narrow(w, run->period, a, b, pair);
	}
}

void ap_pic_wire_run(const struct ap_pic_wire *w, struct ap_pic_run *run)
{
	for (uint32_t j = run->begin; j < run->end; j++) {
		struct ap_pic_pair *pair = &run->pair[j - run->begin];
		const struct ap_pic_item *item = &w->item[j];
		uint32_t distance = w->item[j + run->period].first - item->first;

		*pair = (struct ap_pic_pair){.same = true, .hi = UINT32_MAX};
		for (uint32_t x = item->first; x < item->first + item->length; x++)
			compare_operands(w, run, x, x + distance, pair);
	}
}

enum ap_pic_link ap_pic_wire_link(const struct ap_pic_wire *w, uint32_t begin, uint32_t period,
	uint32_t copies)
{
	uint32_t last = begin + (copies - 1) * period;
	const struct ap_pic_item *item = &w->item[last];
	const struct ap_pic_item *end = &w->item[last + period - 1];
	enum ap_pic_link link = AP_LINK_NONE;

	for (uint32_t k = w->first_in[item->first]; k < w->first_in[end->first + end->length]; k++) {
		uint32_t from = w->pic->edge[w->in[k]].from;

		if (from >= w->pic->noperator || w->item_of[from] < begin ||
			w->item_of[from] >= last)
			continue;
		if (w->item_of[from] < last - period)
			return AP_LINK_FAR;
		link = AP_LINK_CHAIN;
	}
	return link;
}
