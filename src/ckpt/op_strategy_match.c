/* SPDX-License-Identifier: Apache-2.0 */
/* Names of operators, and who stands behind those of a template. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "ckpt/op_strategy_parts.h"
#include "cost/recompute.h"

bool ap_op_says_recomputed(const char *name)
{
	return !strncmp(name, AP_OP_RECOMPUTED, strlen(AP_OP_RECOMPUTED));
}

const struct ap_map *ap_op_recomputed(struct ap_ctx *ctx, const struct ap_plan *p)
{
	struct ap_map *names = ap_map_create(ctx->scratch);
	const struct ap_again_cell *cell;
	uint32_t n;

	ap_recompute_cells(ctx, p->graph, p->step, &n, &cell);
	for (uint32_t i = 0; i < n; i++)
		ap_map_put_str(names, cell[i].name, NULL);
	return names;
}

struct ap_op_spelling ap_op_spell(const char *name)
{
	struct ap_op_spelling s = {.number = -1};
	const char *end, *digits;

	if (ap_op_says_recomputed(name))
		name += strlen(AP_OP_RECOMPUTED);
	end = digits = name + strlen(name);
	while (digits > name && isdigit((unsigned char)digits[-1]))
		digits--;
	if (digits < end && end - digits < 10 && digits - name > 3 && !strncmp(digits - 3, "-op", 3)) {
		s.number = 0;
		for (const char *d = digits; d < end; d++)
			s.number = 10 * s.number + (*d - '0');
		end = digits - 3;
	}
	s.base = name;
	s.nbase = (size_t)(end - name);
	for (s.prim = end; s.prim > name && s.prim[-1] != '/'; s.prim--)
		;
	s.nprim = (size_t)(end - s.prim);
	return s;
}

bool ap_op_prim_is(const char *name, const char *prim)
{
	struct ap_op_spelling s = ap_op_spell(name);

	return s.nprim == strlen(prim) && !strncmp(s.prim, prim, s.nprim);
}

struct side { /* a name of the template or of the plan */
	ap_id group; /* scope and primitive */
	bool plan;
	int64_t number;
	ap_id index; /* of the name, of the node */
};

static int by_group(const void *a, const void *b)
{
	const struct side *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->plan != y->plan)
		return x->plan ? 1 : -1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static struct side make_side(struct ap_map *groups, const char *name, bool plan, ap_id index)
{
	struct ap_op_spelling s = ap_op_spell(name);

	return (struct side){ap_map_put(groups, s.base, s.nbase, NULL), plan, s.number, index};
}

struct pairing {
	ap_id *node;
	bool *found;
	uint32_t renumbered;
};

static void pair(struct pairing *p, const struct side *name, const struct side *node)
{
	p->node[name->index] = node->index;
	p->found[node->index] = true;
	p->renumbered += name->number != node->number;
}

/* A group's names, and its operators behind them. */
static void pair_group(struct pairing *p, const struct side *name, size_t nname, const struct side *node,
	size_t nnode)
{
	bool in_order = nname == nnode;

	for (size_t i = 0, j = 0; i < nname && j < nnode;) {
		if (in_order || name[i].number == node[j].number)
			pair(p, &name[i++], &node[j++]);
		else if (name[i].number < node[j].number)
			i++;
		else
			j++;
	}
}

void ap_op_match_make(struct ap_ctx *ctx, const struct ap_op_template *t, const struct ap_graph *g,
	struct ap_op_match *out)
{
	struct pairing p = {.node = AP_NEW_N(ctx->arena, ap_id, t->n),
		.found = AP_NEW_N(ctx->arena, bool, g->nnode)};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct side *side = AP_NEW_N(ctx->scratch, struct side, t->n + (size_t)g->nnode);
	struct ap_map *groups = ap_map_create(ctx->scratch);
	size_t n = 0;

	for (ap_id i = 0; i < t->n; i++) {
		p.node[i] = AP_NONE;
		side[n++] = make_side(groups, ap_op_name_at(t, i), false, i);
	}
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].peer < 0)
			side[n++] = make_side(groups, g->node[i].name, true, i);
	qsort(side, n, sizeof *side, by_group);
	for (size_t from = 0, middle, to; from < n; from = to) {
		for (middle = from; middle < n && !side[middle].plan &&
			side[middle].group == side[from].group; middle++)
			;
		for (to = middle; to < n && side[to].group == side[from].group; to++)
			;
		pair_group(&p, side + from, middle - from, side + middle, to - middle);
	}
	ap_arena_release(ctx->scratch, mark);
	*out = (struct ap_op_match){p.node, p.found, p.renumbered};
}
