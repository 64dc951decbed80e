/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/family.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

#define DIGITS "0123456789"
#define MOST_DIGITS 9 /* more are no number of a layer */

struct count {
	uint32_t noperator, nmember;
	uint32_t last; /* operator */
	bool inner; /* members have cells of their own */
	uint32_t ntrained; /* members with parameters */
};

struct families {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	struct ap_map *names, *members, *trained;
	AP_VEC(struct count) all; /* by names */
};

/* The next part of a cell's name that is a number: where it starts; *from: where to go on. NULL: none. */
static const char *next_number(const char *cell, size_t *from)
{
	while (cell[*from]) {
		const char *start = cell + *from;
		size_t len = strcspn(start, "."), digits = strspn(start, DIGITS);

		*from += len + (start[len] == '.');
		if (len > 0 && len == digits && len <= MOST_DIGITS && start > cell)
			return start;
	}
	return NULL;
}

static bool is_sent(const struct ap_node *n)
{
	return n->peer >= 0;
}

static bool has_parameter(const struct ap_graph *g, const struct ap_node *n)
{
	for (uint16_t i = 0; i < n->bound.nin; i++)
		if (g->tensor[n->in[i]].kind == AP_TENSOR_PARAM)
			return true;
	return false;
}

/* Does the node lie in the same cell as the one before it? */
static bool goes_on(const struct ap_graph *g, ap_id node)
{
	const struct ap_node *n = &g->node[node];

	return node > 0 && !is_sent(n) && !is_sent(n - 1) && strcmp(n->cell, n[-1].cell) == 0;
}

/* Counts the nodes of one cell from the first to before the end. */
static void count_nodes(struct families *x, ap_id first, ap_id end)
{
	const struct ap_node *n = &x->g->node[first];
	bool trained = false;
	size_t from = 0;
	const char *at;

	for (ap_id i = first; i < end; i++)
		trained = trained || has_parameter(x->g, &x->g->node[i]);

	while ((at = next_number(n->cell, &from))) {
		size_t len = (size_t)(at - n->cell), whole = len + strspn(at, DIGITS);
		bool fresh;
		ap_id id = ap_map_put(x->names, n->cell, len - 1, &fresh);

		if (fresh)
			AP_PUSH(x->ctx->scratch, x->all, (struct count){0});
		ap_map_put(x->members, n->cell, whole, &fresh);
		x->all.v[id].noperator += end - first;
		x->all.v[id].nmember += fresh;
		x->all.v[id].last = end - 1;
		x->all.v[id].inner |= n->cell[whole] == '.';
		if (!trained)
			continue;
		ap_map_put(x->trained, n->cell, whole, &fresh);
		x->all.v[id].ntrained += fresh;
	}
}

/* Counts all families; the main one, AP_NONE: there is none. */
static ap_id count_all(struct families *x, struct ap_ctx *ctx, const struct ap_graph *g)
{
	ap_id best = AP_NONE;

	*x = (struct families){.ctx = ctx, .g = g, .names = ap_map_create(ctx->scratch),
		.members = ap_map_create(ctx->scratch), .trained = ap_map_create(ctx->scratch)};
	for (ap_id i = 0, end; i < g->nnode; i = end) {
		end = i + 1;
		while (end < g->nnode && goes_on(g, end))
			end++;
		if (!is_sent(&g->node[i]))
			count_nodes(x, i, end);
	}
	for (ap_id id = 0; id < x->all.n; id++)
		if (x->all.v[id].nmember > 1 &&
			(best == AP_NONE || x->all.v[id].noperator > x->all.v[best].noperator))
			best = id;
	return best;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* Numbers the members: number[node] of each, -1 of what is in none. */
static void place_members(struct ap_ctx *ctx, const struct ap_graph *g, const int64_t *number,
	struct ap_family *out)
{
	int64_t *all = AP_NEW_N(ctx->arena, int64_t, g->nnode);
	int32_t *member = AP_NEW_N(ctx->arena, int32_t, g->nnode);
	uint32_t n = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		if (number[i] >= 0 && (n == 0 || all[n - 1] != number[i]))
			all[n++] = number[i];
	if (n > 0)
		qsort(all, n, sizeof *all, by_number);
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || all[i] != all[i - 1])
			all[out->n++] = all[i];
	for (ap_id i = 0; i < g->nnode; i++) {
		const int64_t *at;

		member[i] = -1;
		if (number[i] < 0)
			continue;
		at = i > 0 && number[i - 1] == number[i] ? &all[member[i - 1]]
			: bsearch(&number[i], all, out->n, sizeof *all, by_number);
		member[i] = (int32_t)(at - all);
	}
	out->number = all;
	out->member = member;
}

void ap_family_find(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_family *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	int64_t *number = AP_NEW_N(ctx->scratch, int64_t, g->nnode);
	struct families x;
	ap_id best = count_all(&x, ctx, g);

	*out = (struct ap_family){0};
	if (best != AP_NONE)
		out->name = ap_arena_strdup(ctx->arena, ap_map_key(x.names, best, &out->len));
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		size_t from = 0;
		const char *at;

		number[i] = -1;
		while (out->name && !is_sent(n) && (at = next_number(n->cell, &from)))
			if ((size_t)(at - n->cell) == out->len + 1 &&
				strncmp(n->cell, out->name, out->len) == 0)
				number[i] = strtoll(at, NULL, 10);
	}
	place_members(ctx, g, number, out);
	ap_arena_release(ctx->scratch, mark);
}

struct link { /* a family of the chain */
	ap_id id;
	uint32_t last; /* operator */
	uint32_t outer; /* operators that are in no cell of another family around it */
};

static int by_last(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	return (x->last > y->last) - (x->last < y->last);
}

/* The outermost family of several members that a cell is in, and its number there; AP_NONE: none. */
static ap_id outermost(const struct families *x, const char *cell, int64_t *number)
{
	size_t from = 0;
	const char *at;

	while ((at = next_number(cell, &from))) {
		ap_id id = ap_map_get(x->names, cell, (size_t)(at - cell) - 1);

		*number = strtoll(at, NULL, 10);
		if (x->all.v[id].nmember > 1)
			return id;
	}
	*number = -1;
	return AP_NONE;
}

static void find_chain(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_family_chain *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	int32_t *layer = AP_NEW_N(ctx->arena, int32_t, g->nnode);
	int64_t *number = AP_NEW_N(ctx->scratch, int64_t, g->nnode);
	ap_id *family = AP_NEW_N(ctx->scratch, ap_id, g->nnode);
	struct families x;
	ap_id best = count_all(&x, ctx, g);
	struct link *link = AP_NEW_N(ctx->scratch, struct link, x.all.n);
	uint32_t nlink = 0;
	const char **name;
	struct ap_str names;

	*out = (struct ap_family_chain){.layer = layer};
	for (ap_id id = 0; id < x.all.n; id++)
		link[id] = (struct link){.id = id, .last = x.all.v[id].last};
	for (ap_id i = 0; i < g->nnode; i++) {
		family[i] = AP_NONE;
		if (goes_on(g, i)) {
			family[i] = family[i - 1];
			number[i] = number[i - 1];
		} else if (!is_sent(&g->node[i])) {
			family[i] = outermost(&x, g->node[i].cell, &number[i]);
		}
		if (family[i] != AP_NONE)
			link[family[i]].outer++;
		layer[i] = -1;
	}
	for (ap_id id = 0; id < x.all.n; id++) {
		const struct count *c = &x.all.v[id];

		if (link[id].outer > 0 && (id == best || (c->inner && c->ntrained == c->nmember)))
			link[nlink++] = link[id];
	}
	if (nlink > 0)
		qsort(link, nlink, sizeof *link, by_last);
	ap_str_init(&names, ctx->arena);
	for (uint32_t k = 0; k < nlink; k++) {
		struct ap_family f = {0};
		int64_t *own = AP_NEW_N(ctx->scratch, int64_t, g->nnode);

		for (ap_id i = 0; i < g->nnode; i++)
			own[i] = family[i] == link[k].id ? number[i] : -1;
		place_members(ctx, g, own, &f);
		for (ap_id i = 0; i < g->nnode; i++)
			if (f.member[i] >= 0)
				layer[i] = f.member[i] + (int32_t)out->n;
		out->n += f.n;
		ap_str_addf(&names, "%s%s.N", k == 0 ? "" : k + 1 < nlink ? ", " : " and ",
			ap_arena_strdup(ctx->scratch, ap_map_key(x.names, link[k].id, NULL)));
	}
	out->names = nlink > 0 ? names.s : NULL;
	name = AP_NEW_N(ctx->arena, const char *, out->n);
	for (ap_id i = 0; i < g->nnode; i++)
		if (layer[i] >= 0 && !name[layer[i]]) {
			const char *cell = g->node[i].cell;
			size_t len;

			ap_map_key(x.names, family[i], &len);
			name[layer[i]] = ap_arena_strndup(ctx->arena, cell,
				len + 1 + strspn(cell + len + 1, DIGITS));
		}
	out->name = name;
	ap_arena_release(ctx->scratch, mark);
}

void ap_family_chain(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_family_chain *out)
{
	if (g->layers)
		*out = *g->layers;
	else
		find_chain(ctx, g, out);
}

const struct ap_graph *ap_family_note(struct ap_ctx *ctx, const struct ap_graph *g)
{
	struct ap_graph *out = ap_arena_memdup(ctx->arena, g, sizeof *g);
	struct ap_family_chain *layers = AP_NEW(ctx->arena, struct ap_family_chain);

	ap_family_chain(ctx, g, layers);
	out->layers = layers;
	return out;
}
