/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/layers.h"

#include <ctype.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/layer_parts.h"
#include "cost/recompute.h"
#include "graph/family.h"
#include "pipeline/schedule.h"
#include "rule/op.h"

#define DIGITS "0123456789"

struct finding {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	struct ap_layers *out;
	size_t len; /* of the family's name */
	const int64_t *number; /* [n] ascending */
	const int32_t *layer; /* [nnode] index in number; -1: none */
	int32_t npart;
	int32_t *home; /* [n] part, in data order, with most of a layer's operators */
	const struct ap_again *mark; /* [nnode] */
};

/* ---- layers, and where they run ---- */

static bool is_sent(const struct ap_node *n)
{
	return n->peer >= 0;
}

static const struct ap_scheduler *scheduler_of(const struct ap_plan *p)
{
	return p->step->pipe ? p->step->pipe->scheduler : NULL;
}

/* The node's part, in data order. */
static int32_t part_of(const struct finding *f, const struct ap_node *n)
{
	const struct ap_scheduler *s = scheduler_of(f->p);

	return s && f->npart > 1 ? ap_schedule_part(s, f->out->nstage, n->stage, n->segment) : 0;
}

static int32_t place_of(const struct finding *f, int32_t part)
{
	const struct ap_scheduler *s = scheduler_of(f->p);
	int32_t stage = 0, segment = 0;

	if (s && f->npart > 1)
		ap_schedule_spot(s, f->out->nstage, part, &stage, &segment);
	return segment * f->out->nstage + stage;
}

static void find_homes(struct finding *f)
{
	const struct ap_graph *g = f->p->graph;
	size_t npart = (size_t)f->npart;
	uint32_t *count = AP_NEW_N(f->ctx->scratch, uint32_t, f->out->n * npart);

	for (ap_id i = 0; i < g->nnode; i++)
		if (f->layer[i] >= 0)
			count[(size_t)f->layer[i] * npart + (size_t)part_of(f, &g->node[i])]++;
	f->home = AP_NEW_N(f->ctx->scratch, int32_t, f->out->n);
	for (uint32_t k = 0; k < f->out->n; k++, count += npart) {
		uint32_t used = 0;

		/* on ties, the first part */
		for (int32_t i = 0; i < f->npart; i++) {
			used += count[i] > 0;
			f->home[k] = count[i] > count[f->home[k]] ? i : f->home[k];
		}
		if (used > 1 && f->out->nsplit++ == 0)
			f->out->first_split = f->number[k];
	}
}

static void find_outside(struct finding *f)
{
	const struct ap_graph *g = f->p->graph;

	for (ap_id i = 0; i < g->nnode; i++) {
		int32_t part = part_of(f, &g->node[i]);

		if (f->layer[i] < 0 && !is_sent(&g->node[i]) && part > 0 && part < f->npart - 1 &&
			f->out->noutside++ == 0)
			f->out->first_outside = g->node[i].name;
	}
}

static void count_parts(struct finding *f)
{
	int64_t *part = AP_NEW_N(f->ctx->arena, int64_t, f->npart);
	int32_t *place = AP_NEW_N(f->ctx->arena, int32_t, f->npart);

	for (int32_t i = 0; i < f->npart; i++)
		place[i] = place_of(f, i);
	f->out->place = place;
	if (f->out->n == 0)
		f->out->why = "no cells of the graph are numbered NAME.0, NAME.1, ..";
	for (uint32_t k = 0; k < f->out->n; k++) {
		part[place[f->home[k]]]++;
		if (k > 0 && f->home[k] < f->home[k - 1]) {
			f->out->why = "the stages do not take the layers in the order of their numbers";
			return;
		}
	}
	if (f->out->n > 0)
		f->out->part = part;
}

/* ---- layers recomputed as a whole or in part ---- */

/* Does a result go to an operator outside the layer, directly or through views? */
static bool leaves(const struct finding *f, const bool *left, ap_id node)
{
	const struct ap_graph *g = f->p->graph;

	for (uint16_t o = 0; o < g->node[node].bound.nout; o++) {
		const struct ap_tensor *t = &g->tensor[g->node[node].out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id user = t->use[u].node;

			if (f->layer[user] != f->layer[node] ||
				(left[user] && ap_op_is_view(g->node[user].bound.row)))
				return true;
		}
	}
	return false;
}

static bool is_again(const struct finding *f, ap_id node)
{
	return f->mark[node].group != AP_NONE;
}

/* Layers of which something is recomputed, and all that is not leaves the layer. */
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
		if (f->layer[i] >= 0 && !is_again(f, i) && !ap_op_is_view(g->node[i].bound.row) && !left[i])
			full[f->layer[i]] = false;
	}
	return full;
}

/* "attention.softmax": the cell inside the layer and the type in lower case. In scratch. */
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

/* Do the layers that have it come first in each part, behind full ones? */
static bool come_first(const struct finding *f, const bool *full, const bool *has)
{
	for (uint32_t k = 1; k < f->out->n; k++)
		if (has[k] && !has[k - 1] && !full[k - 1] && f->home[k] == f->home[k - 1])
			return false;
	return true;
}

/* Layers in which a norm's result is gathered again, and what the step asks for. */
static void find_asked(struct finding *f, const bool *full)
{
	const struct ap_graph *g = f->p->graph;
	bool *has = AP_NEW_N(f->ctx->scratch, bool, f->out->n);
	int64_t *part = AP_NEW_N(f->ctx->arena, int64_t, f->npart);
	const bool *data = ap_layer_data(f->ctx, g);
	struct ap_layer_parts parts;
	struct ap_again_layers asked;

	for (ap_id i = 0; i < g->nnode; i++)
		if (f->layer[i] >= 0 && f->mark[i].gathers != AP_NONE)
			has[f->layer[i]] = true;
	for (uint32_t k = 0; k < f->out->n; k++) {
		part[place_of(f, f->home[k])] += has[k];
		f->out->ngathered += has[k];
	}
	f->out->gathered = part;
	f->out->gathered_first = come_first(f, full, has);
	ap_recompute_layers(f->ctx, g, f->p->step, &asked);
	f->out->alike = asked.n > 0;
	f->out->what = asked.n > 0 ? asked.at[0].what : 0;
	f->out->unit = f->p->step->recompute_unit;
	for (uint32_t k = 0; k < asked.n; k++)
		f->out->alike &= asked.at[k].what == f->out->what;
	ap_layer_parts(f->ctx, g, f->layer, data, &parts);
	for (ap_id i = 0; i < g->nnode; i++) {
		f->out->experts |= parts.part[i] == AP_PART_EXPERTS;
		f->out->latent |= parts.latent[i];
	}
}

struct listing {
	struct finding *f;
	struct ap_map *names, *seen; /* names inside layers; in each layer */
	AP_VEC(struct ap_layer_again) list;
	AP_VEC(int64_t *) part;
	AP_VEC(bool *) has; /* [n] */
};

static void list_operator(struct listing *l, ap_id node)
{
	struct finding *f = l->f;
	const char *name = name_inside(f, &f->p->graph->node[node]);
	bool fresh;
	const uint32_t key[] = {ap_map_put_str(l->names, name, &fresh), (uint32_t)f->layer[node]};

	if (fresh) {
		AP_PUSH(f->ctx->scratch, l->part, AP_NEW_N(f->ctx->arena, int64_t, f->npart));
		AP_PUSH(f->ctx->scratch, l->has, AP_NEW_N(f->ctx->scratch, bool, f->out->n));
		AP_PUSH(f->ctx->arena, l->list,
			((struct ap_layer_again){.name = ap_arena_strdup(f->ctx->arena, name),
				.part = l->part.v[l->part.n - 1]}));
	}
	ap_map_put(l->seen, key, sizeof key, &fresh);
	if (fresh)
		l->part.v[key[0]][place_of(f, f->home[f->layer[node]])]++;
	l->has.v[key[0]][f->layer[node]] = true;
}

static void list_again(struct finding *f, const bool *full)
{
	const struct ap_graph *g = f->p->graph;
	struct listing l = {.f = f, .names = ap_map_create(f->ctx->scratch),
		.seen = ap_map_create(f->ctx->scratch)};

	for (ap_id i = 0; i < g->nnode; i++) {
		if (!is_again(f, i) || ap_op_is_view(g->node[i].bound.row))
			continue;
		if (f->layer[i] < 0)
			f->out->nagain_outside++;
		else if (!full[f->layer[i]])
			list_operator(&l, i);
	}
	for (ap_id i = 0; l.list.n > 0 && i < g->nnode; i++) { /* names of others of a layer, too */
		ap_id key[2];

		if (f->layer[i] < 0 || full[f->layer[i]] || is_again(f, i) ||
			ap_op_is_view(g->node[i].bound.row))
			continue;
		key[0] = ap_map_get_str(l.names, name_inside(f, &g->node[i]));
		key[1] = (ap_id)f->layer[i];
		if (key[0] != AP_NONE && ap_map_get(l.seen, key, sizeof key) != AP_NONE)
			l.list.v[key[0]].shared = true;
	}
	for (size_t k = 0; k < l.list.n; k++)
		l.list.v[k].first = come_first(f, full, l.has.v[k]);
	f->out->nagain = (uint32_t)l.list.n;
	f->out->again = l.list.v;
}

/* The arguments of recompute() of all recomputed operators; if there are none, the step's. */
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

bool ap_layers_even(const struct ap_layers *l, const int64_t *part)
{
	for (int32_t k = 1; k < l->nstage * l->nsegment; k++)
		if (part[k] != part[0])
			return false;
	return true;
}

void ap_layers_find(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_layers *out)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	const struct ap_pipe *pipe = p->step->pipe;
	struct ap_again *mark = AP_NEW_N(ctx->scratch, struct ap_again, p->graph->nnode);
	struct finding f = {.ctx = ctx, .p = p, .out = out};
	struct ap_family family;
	const bool *full;
	int64_t *part;

	*out = (struct ap_layers){.nstage = pipe ? pipe->nstage : 1, .nsegment = pipe ? pipe->nsegment : 1};
	f.npart = out->nstage * out->nsegment;
	ap_family_find(ctx, p->graph, &family);
	out->name = family.name;
	out->n = family.n;
	f.len = family.len;
	f.number = family.number;
	f.layer = family.member;
	find_homes(&f);
	find_outside(&f);
	count_parts(&f);
	ap_recompute_mark(ctx, p->graph, p->step, mark);
	f.mark = mark;
	full = full_layers(&f);
	part = AP_NEW_N(ctx->arena, int64_t, f.npart);
	f.out->full_first = true;
	for (uint32_t k = 0; k < f.out->n; k++) {
		f.out->nfull += full[k];
		part[place_of(&f, f.home[k])] += full[k];
		if (k > 0 && full[k] && !full[k - 1] && f.home[k] == f.home[k - 1])
			f.out->full_first = false;
	}
	f.out->full = part;
	list_again(&f, full);
	find_asked(&f, full);
	find_arguments(&f);
	ap_arena_release(ctx->scratch, scratch);
}
