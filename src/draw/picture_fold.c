/* SPDX-License-Identifier: Apache-2.0 */
/* Folds innermost repetitions first: what repeats becomes one item of a shorter list, until nothing
 * repeats. Searches for windows of w = 1, 2, 4, .. items that recur after a period of w to 2w - 1
 * items; a window extends to the longest run of equal items a period apart, and the wiring decides
 * which part of the run is copies. */
#include "draw/picture_fold.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

/* Boxes that a fold must save; copies needed if they are side by side. */
enum { LEAST_SAVED = 6, LEAST_ASIDE = 4 };

/* ---- the wiring of stretches of operators, compared ---- */

struct item { /* an operator or a loop */
	uint32_t first, length; /* operators in all copies */
	uint32_t drawn; /* operators with a box */
	ap_id sig; /* equal for items equal in all but names and outside sources */
	uint32_t loop; /* AP_NONE: an operator */
};

struct wire {
	const struct ap_picture *pic;
	uint32_t nitem;
	struct item *item;
	uint32_t *item_of; /* operator -> item */
	uint32_t *last_user; /* operator -> last item that reads its result */
	int32_t *across; /* item -> number of earlier operators read at or after it */
	const uint32_t *first_in; /* [noperator + 1] into in */
	const uint32_t *in; /* edges by consumer */
	const ap_id *moves; /* edge -> id of its redistribution text */
};

/* Items j and j + period of a run. */
struct pair {
	bool same; /* same wiring, if copies begin at or after least */
	uint32_t least;
	uint32_t lo, hi; /* if not same: fit as parts of a first and second copy if the second
			begins in [lo, hi] (lo > hi: never) */
};

struct run { /* items in [begin, end) have the sig of the item a period later */
	uint32_t begin, end, period;
	struct pair *pair; /* [end - begin] */
};

static void count_across(struct wire *w)
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

static void wire_index(struct wire *w)
{
	for (uint32_t i = 0; i < w->nitem; i++)
		for (uint32_t k = 0; k < w->item[i].length; k++)
			w->item_of[w->item[i].first + k] = i;
	count_across(w);
}

/* Makes an item of each operator. */
static void wire_init(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_map *sigs, struct wire *w)
{
	struct ap_map *texts = ap_map_create(ctx->scratch);
	ap_id *moves = AP_NEW_N(ctx->scratch, ap_id, pic->nedge);
	uint32_t *first = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator + 2);
	uint32_t *in = AP_NEW_N(ctx->scratch, uint32_t, pic->nedge);

	*w = (struct wire){.pic = pic, .nitem = pic->noperator, .first_in = first, .in = in, .moves = moves};
	w->item = AP_NEW_N(ctx->scratch, struct item, pic->noperator);
	w->item_of = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator + 1);
	w->last_user = AP_NEW_N(ctx->scratch, uint32_t, pic->noperator + 1);
	w->across = AP_NEW_N(ctx->scratch, int32_t, pic->noperator + 2);
	for (uint32_t i = 0; i < pic->noperator; i++) {
		const char *key = ap_arena_printf(ctx->scratch, "o%s", pic->node[i].key);
		ap_id sig = ap_map_put_str(sigs, key, NULL);

		w->item[i] = (struct item){i, 1, 1, sig, AP_NONE};
	}
	wire_index(w);
	for (uint32_t e = 0; e < pic->nedge; e++) {
		moves[e] = ap_map_put_str(texts, pic->edge[e].moves, NULL);
		first[pic->edge[e].to + 2]++;
	}
	for (uint32_t i = 0; i < pic->noperator; i++)
		first[i + 2] += first[i + 1];
	for (uint32_t e = 0; e < pic->nedge; e++) /* edges by consumer, in order */
		in[first[pic->edge[e].to + 1]++] = e;
}

static bool same_source(const struct wire *w, const struct run *run, uint32_t a,
	uint32_t b, uint32_t distance, struct pair *pair)
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

/* Narrows where the second copy may begin: it reads from the first copy, which reads from before
 * lo. */
static void narrow(const struct wire *w, uint32_t period, uint32_t a, uint32_t b,
	struct pair *pair)
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

static void compare_operands(const struct wire *w, const struct run *run, uint32_t x,
	uint32_t y, struct pair *pair)
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

/* Compares the pairs of a run; run->pair has end - begin entries. O(operands). */
static void compare_run(const struct wire *w, struct run *run)
{
	for (uint32_t j = run->begin; j < run->end; j++) {
		struct pair *pair = &run->pair[j - run->begin];
		const struct item *item = &w->item[j];
		uint32_t distance = w->item[j + run->period].first - item->first;

		*pair = (struct pair){.same = true, .hi = UINT32_MAX};
		for (uint32_t x = item->first; x < item->first + item->length; x++)
			compare_operands(w, run, x, x + distance, pair);
	}
}

/* What the last copy reads from the others. */
enum link {
	LINK_NONE, /* nothing: side by side */
	LINK_CHAIN, /* from the previous copy */
	LINK_FAR /* from an earlier copy */
};
static enum link link_of(const struct wire *w, uint32_t begin, uint32_t period,
	uint32_t copies)
{
	uint32_t last = begin + (copies - 1) * period;
	const struct item *item = &w->item[last];
	const struct item *end = &w->item[last + period - 1];
	enum link link = LINK_NONE;

	for (uint32_t k = w->first_in[item->first]; k < w->first_in[end->first + end->length]; k++) {
		uint32_t from = w->pic->edge[w->in[k]].from;

		if (from >= w->pic->noperator || w->item_of[from] < begin ||
			w->item_of[from] >= last)
			continue;
		if (w->item_of[from] < last - period)
			return LINK_FAR;
		link = LINK_CHAIN;
	}
	return link;
}

/* ---- the search for repetition ---- */

struct found { /* copies in the item list */
	uint32_t begin, period, copies;
	bool chained;
};

struct folder {
	struct ap_ctx *ctx;
	struct wire wire;
	struct ap_map *sigs;
	AP_VEC(struct ap_pic_loop) loops; /* children before parents */
	AP_VEC(struct found) found; /* ascending, disjoint */
	uint32_t *searched; /* period -> end of searched runs */
};

/* Number of cells that items i - 1 and i share: layers should begin where cells do. */
static uint32_t depth_before(const struct folder *f, uint32_t i)
{
	uint32_t first = f->wire.item[i].first, depth = 0;
	const struct ap_pic_node *node = &f->wire.pic->node[first];
	const char *a, *b;

	if (!first)
		return 0;
	for (a = node[-1].cell, b = node->cell;; a++, b++) { /* common leading parts of both cells */
		bool end_a = !*a || *a == '.', end_b = !*b || *b == '.';

		if (end_a != end_b || (!end_a && *a != *b))
			return depth;
		depth += end_a;
		if (!*a || !*b)
			return depth;
	}
}

/* Does a part of the pipeline begin with operator i? */
static bool begins_part(const struct folder *f, uint32_t i)
{
	const struct ap_pic_node *node = &f->wire.pic->node[i];

	return i > 0 && node->part && (!node[-1].part || strcmp(node->part, node[-1].part) != 0);
}

/* Are copies whole parts, or do they all lie in one? O(operators of the copies). */
static bool keeps_parts(const struct folder *f, const struct found *c)
{
	const struct item *first = &f->wire.item[c->begin], *end = &f->wire.item[c->begin + c->period - 1];
	uint32_t length = end->first + end->length - first->first, borders = 0;

	if (!f->wire.pic->node[first->first].part)
		return true;
	for (uint32_t i = 1; i < length * c->copies; i++) {
		if (!begins_part(f, first->first + i))
			continue;
		if (i % length)
			return false;
		borders++;
	}
	/* copies that are parts are all of each */
	return !borders ||
		(borders == c->copies - 1 && begins_part(f, first->first) &&
			(first->first + length * c->copies == f->wire.pic->noperator ||
				begins_part(f, first->first + length * c->copies)));
}

/* Properties of copies of a run whose second (or first, if alone) copy begins at an item. */
struct start {
	uint32_t same_until; /* end of the pairs from here with the same wiring */
	uint32_t least; /* earliest begin of these copies */
	int32_t misfits; /* items of the previous copy that do not fit (first as differences) */
};

/* Counts misfits of the copy [q - p, q) before each q: an item adds one from the first to the last
 * q for which the copy contains it but it does not fit. */
static void count_misfits(const struct run *run, struct start *start)
{
	uint32_t n = run->end - run->begin, p = run->period;

	for (uint32_t j = 0; j < n; j++) {
		const struct pair *pair = &run->pair[j];
		uint32_t first = j + 1, last = j + p < n ? j + p : n;
		uint32_t lo = pair->lo > run->begin + first ? pair->lo - run->begin : first;
		uint32_t hi = pair->hi < run->begin + last ? pair->hi - run->begin : last;

		if (pair->hi < run->begin || pair->same)
			hi = pair->same ? last : 0;
		if (pair->least + p > run->begin + lo)
			lo = pair->least + p - run->begin;
		start[first].misfits++;
		start[last + 1].misfits--;
		if (lo <= hi) {
			start[lo].misfits--;
			start[hi + 1].misfits++;
		}
	}
	for (uint32_t j = 0; j < n; j++)
		start[j + 1].misfits += start[j].misfits;
}

static struct start *make_starts(const struct folder *f, struct run *run)
{
	uint32_t n = run->end - run->begin;
	struct start *start = AP_NEW_N(f->ctx->scratch, struct start, n + 2);

	run->pair = AP_NEW_N(f->ctx->scratch, struct pair, n);
	compare_run(&f->wire, run);
	start[n].same_until = run->end;
	for (uint32_t j = n; j-- > 0;) {
		start[j].same_until = run->begin + j;
		if (!run->pair[j].same)
			continue;
		start[j].same_until = start[j + 1].same_until;
		start[j].least = run->pair[j].least > start[j + 1].least ? run->pair[j].least :
			start[j + 1].least;
	}
	count_misfits(run, start);
	return start;
}

/* The copies whose second (or first) copy begins at item q. */
static struct found copies_at(const struct run *run, const struct start *start,
	uint32_t floor, uint32_t q)
{
	const struct start *at = &start[q - run->begin];
	uint32_t p = run->period, least = at->least > floor ? at->least : floor;
	struct found c = {.begin = q, .period = p, .copies = 1};

	if (q >= least)
		c.copies += (at->same_until - q) / p;
	if (c.copies == 1)
		least = floor;
	if (q >= run->begin + p && q - p >= least && !at->misfits) {
		c.begin -= p;
		c.copies++;
	}
	return c;
}

/* Prefers copies that begin with a part of the pipeline, less deep in cells, then more copies, fewer
 * results read across the start, an earlier start. */
static bool is_better(const struct folder *f, const struct found *a, const struct found *b)
{
	uint32_t depth_a = depth_before(f, a->begin), depth_b = depth_before(f, b->begin);
	bool part_a = begins_part(f, f->wire.item[a->begin].first),
	     part_b = begins_part(f, f->wire.item[b->begin].first);

	if (part_a != part_b)
		return part_a;
	if (depth_a != depth_b)
		return depth_a < depth_b;
	if (a->copies != b->copies)
		return a->copies > b->copies;
	if (f->wire.across[a->begin] != f->wire.across[b->begin])
		return f->wire.across[a->begin] < f->wire.across[b->begin];
	return a->begin < b->begin;
}

/* The best copies that begin within a period of q, among those with the most copies or one less:
 * whole layers show more than one more copy cut within layers. */
static struct found best_copies(const struct folder *f, const struct run *run,
	const struct start *start, uint32_t floor, uint32_t q)
{
	uint32_t last = q + run->period < run->end ? q + run->period - 1 : run->end, most = 0;
	struct found best = {0};

	for (uint32_t i = q; i <= last; i++) {
		uint32_t copies = copies_at(run, start, floor, i).copies;

		most = copies > most ? copies : most;
	}
	for (uint32_t i = q; i <= last; i++) {
		struct found c = copies_at(run, start, floor, i);

		if (c.copies >= 2 && c.copies + 1 >= most &&
			(!best.copies || is_better(f, &c, &best)))
			best = c;
	}
	return best;
}

static bool worth_it(const struct folder *f, struct found *c)
{
	enum link link = link_of(&f->wire, c->begin, c->period, c->copies);
	uint64_t drawn = 0;

	for (uint32_t i = 0; i < c->period; i++)
		drawn += f->wire.item[c->begin + i].drawn;
	c->chained = link == LINK_CHAIN;
	return (c->copies - 1) * drawn >= LEAST_SAVED && link != LINK_FAR &&
		(c->chained || c->copies >= LEAST_ASIDE) && keeps_parts(f, c);
}

/* Finds all copies in a run, none before floor; returns the end of the last. */
static uint32_t search_run(struct folder *f, struct run *run, uint32_t floor)
{
	struct ap_mark mark = ap_arena_mark(f->ctx->scratch);
	struct start *start = make_starts(f, run);
	uint32_t q = run->begin > floor ? run->begin : floor;

	while (q <= run->end) {
		struct found copies;

		if (copies_at(run, start, floor, q).copies < 2) {
			q++;
			continue;
		}
		copies = best_copies(f, run, start, floor, q);
		q = copies.begin + copies.copies * copies.period;
		if (worth_it(f, &copies)) {
			f->found.v[f->found.n++] = copies;
			floor = q;
		}
	}
	ap_arena_release(f->ctx->scratch, mark);
	return floor;
}

/* Tries the run through items i and i + p, which begin equal windows; uses nothing before floor. */
static uint32_t try_period(struct folder *f, uint32_t i, uint32_t p, uint32_t floor)
{
	const struct item *item = f->wire.item;
	struct run run = {.begin = i, .end = i, .period = p};

	if (i < f->searched[p])
		return floor;
	while (run.begin > floor && item[run.begin - 1].sig == item[run.begin - 1 + p].sig)
		run.begin--;
	while (run.end + p < f->wire.nitem && item[run.end].sig == item[run.end + p].sig)
		run.end++;
	f->searched[p] = run.end;
	if (run.end - run.begin < p)
		return floor;
	return search_run(f, &run, floor);
}

/* The next equal window of each window; AP_NONE if none. */
static void find_next(struct ap_ctx *ctx, const ap_id *window, uint32_t n, size_t nid,
	uint32_t *next)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t *last = AP_NEW_N(ctx->scratch, uint32_t, nid);

	memset(last, 0xFF, nid * sizeof *last);
	for (uint32_t i = n; i-- > 0;) {
		next[i] = last[window[i]];
		last[window[i]] = i;
	}
	ap_arena_release(ctx->scratch, mark);
}

/* Ids of windows of w items from those of w / 2; returns the number of ids. */
static size_t double_windows(struct ap_ctx *ctx, ap_id *window, uint32_t n, uint32_t w)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *ids = ap_map_create(ctx->scratch);
	size_t nid;

	for (uint32_t i = 0; i < n; i++) {
		const ap_id halves[2] = {window[i], window[i + w / 2]};

		window[i] = ap_map_put(ids, halves, sizeof halves, NULL);
	}
	nid = ap_map_size(ids);
	ap_arena_release(ctx->scratch, mark);
	return nid;
}

/* Searches the list once, shortest periods first. */
static bool search(struct folder *f)
{
	uint32_t n = f->wire.nitem, *next = AP_NEW_N(f->ctx->scratch, uint32_t, n);
	ap_id *window = AP_NEW_N(f->ctx->scratch, ap_id, n);
	size_t nid = ap_map_size(f->sigs);

	f->searched = AP_NEW_N(f->ctx->scratch, uint32_t, n + 1);
	for (uint32_t i = 0; i < n; i++)
		window[i] = f->wire.item[i].sig;
	for (uint32_t w = 1; w <= n / 2; w *= 2) {
		uint32_t nwindow = n + 1 - w;

		if (w > 1)
			nid = double_windows(f->ctx, window, nwindow, w);
		if (w > 1 && nid == nwindow)
			return false;
		find_next(f->ctx, window, nwindow, nid, next);
		f->found.n = 0;
		for (uint32_t i = 0, floor = 0; i < nwindow; i++) /* periods from w to 2w - 1 */
			if (i >= floor && next[i] != AP_NONE && next[i] - i >= w && next[i] - i < 2 * w)
				floor = try_period(f, i, next[i] - i, floor);
		if (f->found.n > 0)
			return true;
	}
	return false;
}

static struct item make_loop(struct folder *f, const struct found *c)
{
	const struct item *body = &f->wire.item[c->begin];
	struct ap_pic_loop loop = {.parent = AP_NONE, .first = body->first,
		.copies = c->copies, .chained = c->chained};
	struct item item = {.first = body->first, .loop = (uint32_t)f->loops.n};
	struct ap_str key;

	for (uint32_t i = 0; i < c->period; i++) {
		loop.length += body[i].length;
		item.drawn += body[i].drawn;
		if (body[i].loop != AP_NONE)
			f->loops.v[body[i].loop].parent = item.loop;
	}
	item.length = loop.length * c->copies;
	loop.parts = begins_part(f, loop.first + loop.length);
	ap_str_init(&key, f->ctx->scratch);
	ap_str_addc(&key, ':');
	for (uint32_t i = 0; i < c->period; i++)
		ap_str_addn(&key, (const char *)&body[i].sig, sizeof(ap_id));
	loop.like = ap_map_put(f->sigs, key.s, key.len, NULL);
	ap_str_addf(&key, "x%u", (unsigned)c->copies);
	item.sig = ap_map_put(f->sigs, key.s, key.len, NULL);
	AP_PUSH(f->ctx->scratch, f->loops, loop);
	return item;
}

/* Replaces found copies by an item each. */
static void shorten(struct folder *f)
{
	struct item *item = f->wire.item;
	uint32_t n = 0;

	for (uint32_t i = 0, k = 0; i < f->wire.nitem; n++) {
		if (k < f->found.n && f->found.v[k].begin == i) {
			item[n] = make_loop(f, &f->found.v[k]);
			i += f->found.v[k].copies * f->found.v[k].period;
			k++;
		} else {
			item[n] = item[i++];
		}
	}
	f->wire.nitem = n;
	wire_index(&f->wire);
}

/* Keeps loops that are drawn, parents first; nested loops are drawn only in first copies. */
static void keep_drawn(struct folder *f, struct ap_pic_fold *out)
{
	uint32_t n = (uint32_t)f->loops.n, *place = AP_NEW_N(f->ctx->scratch, uint32_t, n);
	struct ap_pic_loop *kept = AP_NEW_N(f->ctx->scratch, struct ap_pic_loop, n);

	memset(place, 0xFF, n * sizeof *place);
	for (uint32_t i = 0; i < f->wire.nitem; i++)
		if (f->wire.item[i].loop != AP_NONE)
			place[f->wire.item[i].loop] = 0;
	for (uint32_t l = n; l-- > 0;) {
		struct ap_pic_loop loop = f->loops.v[l];

		if (loop.parent != AP_NONE)
			place[l] = place[loop.parent];
		if (place[l] == AP_NONE)
			continue;
		if (loop.parent != AP_NONE)
			loop.parent = place[loop.parent];
		place[l] = out->nloop;
		kept[out->nloop++] = loop;
	}
	out->loop = kept;
}

static void set_stands(struct ap_ctx *ctx, uint32_t n, struct ap_pic_fold *out)
{
	uint32_t *stand = AP_NEW_N(ctx->scratch, uint32_t, n), *in = AP_NEW_N(ctx->scratch, uint32_t, n);

	for (uint32_t i = 0; i < n; i++) {
		stand[i] = i;
		in[i] = AP_NONE;
	}
	for (uint32_t l = out->nloop; l-- > 0;) { /* children first */
		const struct ap_pic_loop *loop = &out->loop[l];
		uint32_t end = loop->first + loop->length * loop->copies;

		for (uint32_t i = loop->first + loop->length; i < end; i++)
			stand[i] = stand[i - loop->length];
	}
	for (uint32_t l = 0; l < out->nloop; l++)
		for (uint32_t i = 0; i < out->loop[l].length; i++)
			in[out->loop[l].first + i] = l;
	out->stand = stand;
	out->in = in;
}

void ap_pic_fold_none(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_pic_fold *out)
{
	*out = (struct ap_pic_fold){0};
	set_stands(ctx, pic->noperator, out);
}

void ap_pic_fold_make(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_pic_fold *out)
{
	struct folder f = {.ctx = ctx, .sigs = ap_map_create(ctx->scratch)};
	bool more = true;

	*out = (struct ap_pic_fold){0};
	wire_init(ctx, pic, f.sigs, &f.wire);
	f.found.v = AP_NEW_N(ctx->scratch, struct found, pic->noperator / 2 + 1);
	while (more) {
		more = search(&f);
		if (more)
			shorten(&f);
	}
	keep_drawn(&f, out);
	set_stands(ctx, pic->noperator, out);
}

/* Maps operator i into the first copy of the parents of loop l. */
static uint32_t place_before(const struct ap_pic_fold *f, uint32_t l, uint32_t i)
{
	uint32_t parent = f->loop[l].parent;
	const struct ap_pic_loop *loop = &f->loop[parent == AP_NONE ? l : parent];

	if (parent == AP_NONE)
		return i;
	i = place_before(f, parent, i);
	return loop->first + (i - loop->first) % loop->length;
}

bool ap_pic_fold_again(const struct ap_pic_fold *f, uint32_t from, uint32_t to)
{
	for (uint32_t l = f->in[f->stand[to]]; l != AP_NONE; l = f->loop[l].parent) {
		const struct ap_pic_loop *loop = &f->loop[l];
		uint32_t stand = f->stand[from];

		if (stand >= loop->first && stand - loop->first < loop->length &&
			(place_before(f, l, from) - loop->first) / loop->length !=
				(place_before(f, l, to) - loop->first) / loop->length)
			return true;
	}
	return false;
}
