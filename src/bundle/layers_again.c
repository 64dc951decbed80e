/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are recomputed, as a whole or some of their operators. */
#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "bundle/layers_parts.h"

#define DIGITS "0123456789"

static bool is_view(const struct ap_node *n)
{
	return n->bound.row->unit == AP_OP_VIEW;
}

/* Does a result go to an operator that is not of this layer, by itself or through views? */
static bool leaves(const struct finding *f, const bool *left, ap_id node)
{
	const struct ap_graph *g = f->p->graph;

	for (uint16_t o = 0; o < g->node[node].bound.nout; o++) {
		const struct ap_tensor *t = &g->tensor[g->node[node].out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id user = t->use[u].node;

			if (f->layer[user] != f->layer[node] || (left[user] && is_view(&g->node[user])))
				return true;
		}
	}
	return false;
}

static bool is_again(const struct finding *f, ap_id node)
{
	return f->mark[node].group != AP_NONE;
}

/* Something is recomputed, and all that is not leaves the layer. */
static bool *full_layers(const struct finding *f)
{
	const struct ap_graph *g = f->p->graph;
	bool *full = AP_NEW_N(f->ctx->scratch, bool, f->out->n);
	bool *left = AP_NEW_N(f->ctx->scratch, bool, g->nnode);

	for (ap_id i = 0; i < g->nnode; i++)
		if (f->layer[i] >= 0)
			full[f->layer[i]] |= is_again(f, i);
	for (ap_id i = g->nnode; i-- > 0;) {
		left[i] = leaves(f, left, i);
		if (f->layer[i] >= 0 && !is_again(f, i) && !is_view(&g->node[i]) && !left[i])
			full[f->layer[i]] = false;
	}
	return full;
}

static void count_full(struct finding *f, const bool *full)
{
	int64_t *part = AP_NEW_N(f->ctx->arena, int64_t, f->npart);

	f->out->full_first = true;
	for (uint32_t k = 0; k < f->out->n; k++) {
		f->out->nfull += full[k];
		part[ap_layers_place(f, f->home[k])] += full[k];
		if (k > 0 && full[k] && !full[k - 1] && f->home[k] == f->home[k - 1])
			f->out->full_first = false;
	}
	f->out->full = part;
}

/* "attention.softmax": the cell inside the layer and the operator's type, small. In scratch. */
static const char *name_inside(const struct finding *f, const struct ap_node *n)
{
	const char *rest = n->cell + f->len + 1;
	struct ap_str s;

	rest += strspn(rest, DIGITS);
	ap_str_init(&s, f->ctx->scratch);
	if (*rest == '.')
		ap_str_addf(&s, "%s.", rest + 1);
	for (const char *c = n->type; *c; c++)
		ap_str_addc(&s, (char)tolower((unsigned char)*c));
	return s.s;
}

struct listing {
	struct finding *f;
	struct ap_map *names, *seen; /* names inside layers; those of each layer */
	AP_VEC(struct ap_layer_again) list;
	AP_VEC(int64_t *) part;
};

static void list_operator(struct listing *l, ap_id node)
{
	struct finding *f = l->f;
	const char *name = name_inside(f, &f->p->graph->node[node]);
	bool fresh;
	const uint32_t key[] = {ap_map_put_str(l->names, name, &fresh), (uint32_t)f->layer[node]};

	if (fresh) {
		AP_PUSH(f->ctx->scratch, l->part, AP_NEW_N(f->ctx->arena, int64_t, f->npart));
		AP_PUSH(f->ctx->arena, l->list,
			((struct ap_layer_again){.name = ap_arena_strdup(f->ctx->arena, name),
				.part = l->part.v[l->part.n - 1]}));
	}
	ap_map_put(l->seen, key, sizeof key, &fresh);
	if (fresh)
		l->part.v[key[0]][ap_layers_place(f, f->home[f->layer[node]])]++;
}

/* An operator that is not recomputed: is its name one of its layer's that are? */
static void note_shared(struct listing *l, ap_id node)
{
	ap_id id = ap_map_get_str(l->names, name_inside(l->f, &l->f->p->graph->node[node]));
	const uint32_t key[] = {id, (uint32_t)l->f->layer[node]};

	if (id != AP_NONE && ap_map_get(l->seen, key, sizeof key) != AP_NONE)
		l->list.v[id].shared = true;
}

static void list_again(struct finding *f, const bool *full)
{
	const struct ap_graph *g = f->p->graph;
	struct listing l = {.f = f, .names = ap_map_create(f->ctx->scratch),
		.seen = ap_map_create(f->ctx->scratch)};

	for (ap_id i = 0; i < g->nnode; i++) {
		if (!is_again(f, i) || is_view(&g->node[i]))
			continue;
		if (f->layer[i] < 0)
			f->out->nagain_outside++;
		else if (!full[f->layer[i]])
			list_operator(&l, i);
	}
	for (ap_id i = 0; l.list.n > 0 && i < g->nnode; i++)
		if (f->layer[i] >= 0 && !full[f->layer[i]] && !is_again(f, i) && !is_view(&g->node[i]))
			note_shared(&l, i);
	f->out->nagain = (uint32_t)l.list.n;
	f->out->again = l.list.v;
}

/* With which arguments. */
static void find_arguments(struct finding *f)
{
	const struct ap_again *first = NULL;

	f->out->keep_comm = f->p->step->recompute_keeps_comm;
	f->out->regather = f->p->step->recompute_regathers;
	f->out->slice = f->p->step->recompute_slices;
	for (ap_id i = 0; i < f->p->graph->nnode; i++) {
		const struct ap_again *m = &f->mark[i];

		if (m->group == AP_NONE)
			continue;
		first = first ? first : m;
		f->out->mixed |= m->keep_comm != first->keep_comm || m->regather != first->regather ||
			m->slice != first->slice;
	}
	if (!first)
		return;
	f->out->keep_comm = first->keep_comm;
	f->out->regather = first->regather;
	f->out->slice = first->slice;
}

void ap_layers_find_again(struct finding *f)
{
	const struct ap_graph *g = f->p->graph;
	struct ap_again *mark = AP_NEW_N(f->ctx->scratch, struct ap_again, g->nnode);
	const bool *full;

	ap_recompute_mark(f->ctx, g, f->p->step, mark);
	f->mark = mark;
	full = full_layers(f);
	count_full(f, full);
	list_again(f, full);
	find_arguments(f);
}
