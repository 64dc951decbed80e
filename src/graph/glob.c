/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/glob.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"

enum { MOST_NEAR = 4, FAR = 6, LONGEST = 512 };

/* Does the pattern mean a text, or what begins in it behind a dot or a slash? */
static bool means(const char *pattern, const char *text)
{
	bool found = fnmatch(pattern, text, 0) == 0;

	for (const char *c = text; *c && !found; c++)
		found = (*c == '.' || *c == '/') && fnmatch(pattern, c + 1, 0) == 0;
	return found;
}

static const char *last_part(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash && slash[1] ? slash + 1 : name;
}

static bool is_meant(const struct ap_graph *g, const struct ap_node *n, const char *pattern)
{
	char text[LONGEST];
	bool found = means(pattern, n->name);

	if (!found && *n->cell &&
		snprintf(text, sizeof text, "%s/%s", n->cell, last_part(n->name)) < (int)sizeof text)
		found = means(pattern, text);
	if (!found && *n->cell)
		found = means(pattern, n->cell);
	for (uint32_t i = 0; i < n->bound.nin && !found; i++)
		found = g->tensor[n->in[i]].kind == AP_TENSOR_PARAM && means(pattern,
		g->tensor[n->in[i]].name);
	return found;
}

uint32_t ap_glob_operators(const struct ap_graph *g, const char *pattern, bool *out)
{
	uint32_t n = 0;

	bool exact = false;

	for (ap_id i = 0; i < g->nnode; i++) {
		out[i] = strcmp(g->node[i].name, pattern) == 0;
		exact |= out[i];
	}
	for (ap_id i = 0; i < g->nnode; i++) {
		out[i] = exact ? out[i] : is_meant(g, &g->node[i], pattern);
		n += out[i];
	}
	return n;
}

/* How far a pattern is from the nearest end of a text that begins behind a dot or a slash; FAR: more
 * than half of it is other. */
static int distance(const char *pattern, const char *text)
{
	int half = (int)(strlen(pattern) / 2), best = half < FAR ? half : FAR, least = best;

	for (const char *c = text; *c && best > 0; c++)
		if (c == text || c[-1] == '.' || c[-1] == '/') {
			int d = ap_str_distance(pattern, c, best);

			best = d < best ? d : best;
		}
	return best < least ? best : FAR;
}

struct near {
	int far[MOST_NEAR];
	const char *name[MOST_NEAR];
	uint32_t n;
};

/* Adds a text if it is one of the nearest, and not there yet. */
static void add_near(struct near *x, const char *pattern, const char *text)
{
	int d = distance(pattern, text);
	uint32_t at = x->n;

	for (uint32_t k = 0; k < x->n; k++)
		if (!strcmp(x->name[k], text))
			return;
	while (at > 0 && x->far[at - 1] > d)
		at--;
	if (d >= FAR || at == MOST_NEAR)
		return;
	x->n = x->n < MOST_NEAR ? x->n + 1 : x->n;
	for (uint32_t k = x->n - 1; k > at; k--) {
		x->far[k] = x->far[k - 1];
		x->name[k] = x->name[k - 1];
	}
	x->far[at] = d;
	x->name[at] = text;
}

const char *ap_glob_near(struct ap_ctx *ctx, const struct ap_graph *g, const char *pattern)
{
	struct near x = {.n = 0};
	struct ap_str s;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];

		if (*n->cell)
			add_near(&x, pattern, ap_arena_printf(ctx->arena, "%s/%s", n->cell,
			last_part(n->name)));
		if (*n->cell)
			add_near(&x, pattern, n->cell);
		add_near(&x, pattern, n->name);
		for (uint32_t k = 0; k < n->bound.nin; k++)
			if (g->tensor[n->in[k]].kind == AP_TENSOR_PARAM)
				add_near(&x, pattern, g->tensor[n->in[k]].name);
	}
	ap_str_init(&s, ctx->arena);
	for (uint32_t k = 0; k < x.n; k++)
		ap_str_addf(&s, "%s%s", k ? ", " : "; near: ", ap_diag_name(ctx->diag, x.name[k]));
	return s.s;
}
