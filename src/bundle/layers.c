/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/layers.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "bundle/layers_parts.h"
#include "pipeline/schedule.h"

#define DIGITS "0123456789"
#define MOST_DIGITS 9 /* more are no number of a layer */

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

struct family {
	uint32_t noperator, nmember;
};

struct families {
	struct ap_map *names, *members;
	AP_VEC(struct family) all; /* by names */
};

static void count_families(struct finding *f, const struct ap_node *n, struct families *x)
{
	size_t from = 0;
	const char *at;

	while ((at = next_number(n->cell, &from))) {
		bool fresh;
		ap_id id = ap_map_put(x->names, n->cell, (size_t)(at - n->cell) - 1, &fresh);

		if (fresh)
			AP_PUSH(f->ctx->scratch, x->all, (struct family){0});
		ap_map_put(x->members, n->cell, (size_t)(at - n->cell) + strspn(at, DIGITS), &fresh);
		x->all.v[id].noperator++;
		x->all.v[id].nmember += fresh;
	}
}

/* The family with the most operators of those that have two members. */
static void find_family(struct finding *f)
{
	const struct ap_graph *g = f->p->graph;
	struct families x = {ap_map_create(f->ctx->scratch), ap_map_create(f->ctx->scratch), {0}};
	ap_id best = AP_NONE;

	for (ap_id i = 0; i < g->nnode; i++)
		if (!is_sent(&g->node[i]))
			count_families(f, &g->node[i], &x);
	for (ap_id id = 0; id < x.all.n; id++)
		if (x.all.v[id].nmember > 1 &&
			(best == AP_NONE || x.all.v[id].noperator > x.all.v[best].noperator))
			best = id;
	if (best != AP_NONE)
		f->out->name = ap_arena_strdup(f->ctx->arena, ap_map_key(x.names, best, &f->len));
}

/* The number of the layer that a node is in; -1: it is in none. */
static int64_t number_of(const struct finding *f, const struct ap_node *n)
{
	const char *at;
	size_t digits;

	if (!f->out->name || is_sent(n) || strlen(n->cell) <= f->len + 1 || n->cell[f->len] != '.' ||
		strncmp(n->cell, f->out->name, f->len) != 0)
		return -1;
	at = n->cell + f->len + 1;
	digits = strspn(at, DIGITS);
	if (digits == 0 || digits > MOST_DIGITS || digits != strcspn(at, "."))
		return -1;
	return strtoll(at, NULL, 10);
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void number_layers(struct finding *f)
{
	const struct ap_graph *g = f->p->graph;
	struct ap_arena *scratch = f->ctx->scratch;
	AP_VEC(int64_t) all = {0};

	for (ap_id i = 0; i < g->nnode; i++) {
		int64_t number = number_of(f, &g->node[i]);

		if (number >= 0)
			AP_PUSH(scratch, all, number);
	}
	if (all.n > 0)
		qsort(all.v, all.n, sizeof *all.v, by_number);
	for (size_t i = 0; i < all.n; i++)
		if (i == 0 || all.v[i] != all.v[i - 1])
			all.v[f->out->n++] = all.v[i];
	f->number = all.v;
	f->layer = AP_NEW_N(scratch, int32_t, g->nnode);
	for (ap_id i = 0; i < g->nnode; i++) {
		int64_t number = number_of(f, &g->node[i]);
		const int64_t *at = number < 0 ? NULL
			: bsearch(&number, f->number, f->out->n, sizeof number, by_number);

		f->layer[i] = at ? (int32_t)(at - f->number) : -1;
	}
}

static const struct ap_scheduler *scheduler_of(const struct ap_plan *p)
{
	return p->step->pipe ? p->step->pipe->scheduler : NULL;
}

/* In the order of the data. */
static int32_t part_of(const struct finding *f, const struct ap_node *n)
{
	const struct ap_scheduler *s = scheduler_of(f->p);

	return s && f->npart > 1 ? ap_schedule_part(s, f->out->nstage, n->stage, n->segment) : 0;
}

int32_t ap_layers_place(const struct finding *f, int32_t part)
{
	const struct ap_scheduler *s = scheduler_of(f->p);
	int32_t stage = 0, segment = 0;

	if (s && f->npart > 1)
		ap_schedule_spot(s, f->out->nstage, part, &stage, &segment);
	return segment * f->out->nstage + stage;
}

/* The first of the parts with most operators of a layer. */
static int32_t home_of(struct finding *f, const uint32_t *count, int64_t number)
{
	int32_t home = 0, used = 0;

	for (int32_t k = 0; k < f->npart; k++) {
		used += count[k] > 0;
		home = count[k] > count[home] ? k : home;
	}
	if (used > 1 && f->out->nsplit++ == 0)
		f->out->first_split = number;
	return home;
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
	for (uint32_t k = 0; k < f->out->n; k++)
		f->home[k] = home_of(f, count + k * npart, f->number[k]);
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
	const struct ap_scheduler *s = scheduler_of(f->p);

	if (f->out->n == 0)
		f->out->why = "no cells of the graph are numbered NAME.0, NAME.1, ..";
	for (uint32_t k = 0; k < f->out->n; k++) {
		part[ap_layers_place(f, f->home[k])]++;
		if (k > 0 && f->home[k] < f->home[k - 1]) {
			f->out->why = "the stages do not take the layers in the order of their numbers";
			return;
		}
	}
	if (s && s->vee && !ap_layers_even(f->out, part)) {
		f->out->why = "the second segments of stages run back through them, and the stages have "
			"different numbers of layers";
		return;
	}
	if (f->out->n > 0)
		f->out->part = part;
}

void ap_layers_find(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_layers *out)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	const struct ap_pipe *pipe = p->step->pipe;
	struct finding f = {.ctx = ctx, .p = p, .out = out};

	*out = (struct ap_layers){.nstage = pipe ? pipe->nstage : 1, .nsegment = pipe ? pipe->nsegment : 1};
	f.npart = out->nstage * out->nsegment;
	find_family(&f);
	number_layers(&f);
	find_homes(&f);
	find_outside(&f);
	count_parts(&f);
	ap_layers_find_again(&f);
	ap_arena_release(ctx->scratch, scratch);
}

bool ap_layers_even(const struct ap_layers *l, const int64_t *part)
{
	for (int32_t k = 1; k < l->nstage * l->nsegment; k++)
		if (part[k] != part[0])
			return false;
	return true;
}
