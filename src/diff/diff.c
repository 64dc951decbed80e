/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/name_fold.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "planfile/plan_read.h"

struct task {
	struct ap_ctx *ctx;
	const struct ap_saved *was, *is;
	/* the counterpart of each operator, parameter and redistribution; AP_NONE: none */
	ap_id *new_op, *old_op; /* [was->nop], [is->nop] */
	ap_id *new_param, *old_param;
	ap_id *new_move, *old_move;
};

/* ---- figures ---- */

/* Indexes facts by section, key and occurrence of the key; ids are indices. */
static const struct ap_map *index_facts(struct ap_ctx *ctx, const struct ap_saved *s)
{
	struct ap_map *m = ap_map_create(ctx->scratch), *times = ap_map_create(ctx->scratch);
	uint32_t *seen = AP_NEW_N(ctx->scratch, uint32_t, s->nfact);
	struct ap_str key;

	ap_str_init(&key, ctx->scratch);
	for (uint32_t i = 0; i < s->nfact; i++) {
		uint32_t time;

		key.len = 0;
		ap_str_add(&key, s->fact[i].section);
		ap_str_addc(&key, '\0');
		ap_str_add(&key, s->fact[i].key);
		time = seen[ap_map_put(times, key.s, key.len, NULL)]++;
		ap_str_addn(&key, (const char *)&time, sizeof time);
		ap_map_put(m, key.s, key.len, NULL);
	}
	return m;
}

/* Compares two facts; either may be NULL. */
static struct ap_diff_figure make_figure(const struct ap_saved_fact *was, const struct ap_saved_fact *is)
{
	const struct ap_saved_fact *f = was ? was : is;

	return (struct ap_diff_figure){
		.section = f->section,
		.key = f->key,
		.was = was ? was->json : NULL,
		.is = is ? is->json : NULL,
		.was_number = was && was->is_number ? was->number : NAN,
		.is_number = is && is->is_number ? is->number : NAN,
		.changed = !was || !is || strcmp(was->json, is->json) != 0,
		/* a new version with the same plan is no difference */
		.noted = !strcmp(f->section, "tool") ||
			(!strcmp(f->section, "search") && !strcmp(f->key, "work")),
	};
}

static void make_figures(struct task *t, struct ap_diff *out)
{
	static const char *const sections[] = {"prediction", "memory", "stages", "search", "route",
		"baselines", "pipeline", "recompute", "graph", "machine", "settings", "inputs", "tool"};
	const struct ap_saved *was = t->was, *is = t->is;
	struct ap_arena *a = t->ctx->scratch;
	const struct ap_map *keys = index_facts(t->ctx, was), *others = index_facts(t->ctx, is);
	ap_id *partner = AP_NEW_N(a, ap_id, was->nfact);
	bool *known = AP_NEW_N(a, bool, is->nfact);
	AP_VEC(struct ap_diff_figure) all = {0};

	for (uint32_t i = 0; i < was->nfact; i++) {
		size_t len;
		const char *key = ap_map_key(keys, i, &len);

		partner[i] = ap_map_get(others, key, len);
		if (partner[i] != AP_NONE)
			known[partner[i]] = true;
	}
	for (size_t s = 0; s < AP_COUNT(sections); s++) {
		for (uint32_t i = 0; i < was->nfact; i++)
			if (!strcmp(was->fact[i].section, sections[s]))
				AP_PUSH(t->ctx->arena, all, make_figure(&was->fact[i],
					partner[i] == AP_NONE ? NULL : &is->fact[partner[i]]));
		for (uint32_t i = 0; i < is->nfact; i++)
			if (!known[i] && !strcmp(is->fact[i].section, sections[s]))
				AP_PUSH(t->ctx->arena, all, make_figure(NULL, &is->fact[i]));
	}
	out->nfigure = (uint32_t)all.n;
	out->figure = all.v;
}

const struct ap_diff_figure *ap_diff_figure(const struct ap_diff *d, const char *section,
	const char *key)
{
	for (uint32_t i = 0; i < d->nfigure; i++)
		if (!strcmp(d->figure[i].section, section) && !strcmp(d->figure[i].key, key))
			return &d->figure[i];
	return NULL;
}

/* ---- pairs: by name or, if the name is gone, by operands ---- */

/* One of the two plans, indexed by name. */
struct side {
	const struct ap_saved *s;
	struct ap_map *made; /* results of operators; ids into maker */
	AP_VEC(uint32_t) maker;
	struct ap_map *given; /* operands that no operator makes */
	struct ap_map *params; /* ids are indices */
};

struct matching {
	struct task *t;
	struct ap_arena *a; /* scratch */
	struct side was, is;
	struct ap_map *old_name; /* results of paired operators in the new plan; ids into old_names */
	AP_VEC(const char *) old_names;
};

static void index_side(struct ap_arena *a, const struct ap_saved *s, struct side *out)
{
	*out = (struct side){.s = s, .made = ap_map_create(a), .given = ap_map_create(a),
		.params = ap_map_create(a)};
	for (uint32_t i = 0; i < s->nop; i++)
		for (uint32_t j = 0; j < s->op[i].nout; j++) {
			bool fresh;

			ap_map_put_str(out->made, s->op[i].out[j], &fresh);
			if (fresh)
				AP_PUSH(a, out->maker, i);
		}
	for (uint32_t i = 0; i < s->nop; i++)
		for (uint32_t j = 0; j < s->op[i].nin; j++)
			if (ap_map_get_str(out->made, s->op[i].in[j]) == AP_NONE)
				ap_map_put_str(out->given, s->op[i].in[j], NULL);
	for (uint32_t i = 0; i < s->nparam; i++)
		ap_map_put_str(out->params, s->param[i].name, NULL);
}

static void pair_ops(struct matching *m, uint32_t old, uint32_t new)
{
	const struct ap_saved_op *was = &m->was.s->op[old], *is = &m->is.s->op[new];

	m->t->new_op[old] = new;
	m->t->old_op[new] = old;
	for (uint32_t j = 0; j < was->nout && j < is->nout; j++) {
		bool fresh;

		ap_map_put_str(m->old_name, is->out[j], &fresh);
		if (fresh)
			AP_PUSH(m->a, m->old_names, was->out[j]);
	}
}

/* Adds a key of an operand valid in both plans: a result's name in the old plan; else its name if
 * both plans have it; else the dtype and shape of the parameter. Returns false if there is none. */
static bool add_operand(const struct matching *m, const struct side *own, const char *tensor,
	struct ap_str *key)
{
	const struct side *other = own == &m->was ? &m->is : &m->was;
	ap_id made = ap_map_get_str(own->made, tensor);
	ap_id old = own == &m->was ? made : ap_map_get_str(m->old_name, tensor);
	ap_id param = ap_map_get_str(own->params, tensor);

	ap_str_addc(key, '\0');
	if (old != AP_NONE)
		ap_str_add(key, own == &m->was ? tensor : m->old_names.v[old]);
	else if (made != AP_NONE)
		return false;
	else if (ap_map_get_str(other->given, tensor) != AP_NONE)
		ap_str_add(key, tensor);
	else if (param != AP_NONE)
		ap_str_addf(key, "%s%s", own->s->param[param].field[AP_SAVED_DTYPE],
			own->s->param[param].field[AP_SAVED_TENSOR_SHAPE]);
	else
		return false;
	return true;
}

/* Key of an operator: type and operands, in names of the old plan. Returns false if one is
 * unknown. */
static bool place_key(const struct matching *m, const struct side *own, const struct ap_saved_op *op,
	struct ap_str *key)
{
	key->len = 0;
	ap_str_add(key, op->type);
	for (uint32_t j = 0; j < op->nin; j++)
		if (!add_operand(m, own, op->in[j], key))
			return false;
	return op->nin;
}

struct waiting { /* operators with the same key, in plan order */
	uint32_t *v;
	size_t n, cap, taken;
};

/* Pairs operators whose names are gone with new ones of the same type and operands. New ones come
 * in topological order, so their operands are already paired. */
static void pair_by_place(struct matching *m)
{
	struct waiting *waiting = AP_NEW_N(m->a, struct waiting, m->was.s->nop);
	struct ap_map *keys = ap_map_create(m->a);
	struct ap_str key;

	ap_str_init(&key, m->a);
	for (uint32_t i = 0; i < m->was.s->nop; i++)
		if (m->t->new_op[i] == AP_NONE && place_key(m, &m->was, &m->was.s->op[i], &key))
			AP_PUSH(m->a, waiting[ap_map_put(keys, key.s, key.len, NULL)], i);
	for (uint32_t i = 0; i < m->is.s->nop; i++) {
		ap_id id;

		if (m->t->old_op[i] != AP_NONE || !place_key(m, &m->is, &m->is.s->op[i], &key))
			continue;
		id = ap_map_get(keys, key.s, key.len);
		if (id != AP_NONE && waiting[id].taken < waiting[id].n)
			pair_ops(m, waiting[id].v[waiting[id].taken++], i);
	}
}

static void pair_params(struct task *t, ap_id old, ap_id new)
{
	if (old == AP_NONE || new == AP_NONE || t->new_param[old] != AP_NONE ||
		t->old_param[new] != AP_NONE)
		return;
	t->new_param[old] = new;
	t->old_param[new] = old;
}

/* Pairs parameters by name, then by operand of paired operators. */
static void match_params(struct matching *m)
{
	const struct ap_saved *is = m->is.s;

	for (uint32_t i = 0; i < is->nparam; i++)
		pair_params(m->t, ap_map_get_str(m->was.params, is->param[i].name), i);
	for (uint32_t i = 0; i < is->nop; i++) {
		const struct ap_saved_op *op = &is->op[i], *was;

		if (m->t->old_op[i] == AP_NONE)
			continue;
		was = &m->was.s->op[m->t->old_op[i]];
		for (uint32_t j = 0; was->nin == op->nin && j < op->nin; j++)
			pair_params(m->t, ap_map_get_str(m->was.params, was->in[j]),
				ap_map_get_str(m->is.params, op->in[j]));
	}
}

/* Pairs redistributions of the same operand. */
static void match_moves(struct task *t, struct ap_map *places)
{
	for (uint32_t i = 0; i < t->was->nmove; i++) {
		const int64_t place[] = {t->was->move[i].to, t->was->move[i].operand};

		ap_map_put(places, place, sizeof place, NULL);
	}
	for (uint32_t i = 0; i < t->is->nmove; i++) {
		const int64_t place[] = {t->old_op[t->is->move[i].to], t->is->move[i].operand};
		ap_id id = ap_map_get(places, place, sizeof place);

		t->old_move[i] = id;
		if (id != AP_NONE)
			t->new_move[id] = i;
	}
}

static ap_id *none(struct ap_arena *a, uint32_t n)
{
	ap_id *v = ap_arena_alloc_raw(a, n, sizeof *v);

	for (uint32_t i = 0; i < n; i++)
		v[i] = AP_NONE;
	return v;
}

static void match(struct task *t)
{
	struct ap_arena *a = t->ctx->scratch;
	struct matching m = {.t = t, .a = a, .old_name = ap_map_create(a)};
	struct ap_map *names = ap_map_create(a);

	t->new_op = none(a, t->was->nop);
	t->old_op = none(a, t->is->nop);
	t->new_param = none(a, t->was->nparam);
	t->old_param = none(a, t->is->nparam);
	t->new_move = none(a, t->was->nmove);
	t->old_move = none(a, t->is->nmove);
	index_side(a, t->was, &m.was);
	index_side(a, t->is, &m.is);
	for (uint32_t i = 0; i < t->was->nop; i++)
		ap_map_put_str(names, t->was->op[i].name, NULL);
	for (uint32_t i = 0; i < t->is->nop; i++) {
		ap_id id = ap_map_get_str(names, t->is->op[i].name);

		if (id != AP_NONE)
			pair_ops(&m, id, i);
	}
	pair_by_place(&m);
	match_params(&m);
	match_moves(t, ap_map_create(a));
}

/* ---- operators, parameters and redistributions: added, removed, renamed or changed ---- */

/* One change, before folding. */
struct entry {
	enum ap_diff_kind kind;
	const char *label, *old_label, *type, *name, *old_name;
	int64_t operand;
	double was_s, is_s;
	uint32_t nfield;
	struct ap_diff_field *field;
};

struct entries {
	struct ap_ctx *ctx;
	struct entry *v;
	size_t n, cap;
};

struct thing { /* an operator, a parameter or a redistribution of one plan */
	const char *name, *label, *type;
	int64_t operand;
	double time_s;
	const char *const *field;
};

static struct thing op_thing(const struct ap_saved *s, ap_id i)
{
	return (struct thing){s->op[i].name, s->op[i].label, s->op[i].type, -1, s->op[i].time_s,
		s->op[i].field};
}

static struct thing param_thing(const struct ap_saved *s, ap_id i)
{
	return (struct thing){s->param[i].name, s->param[i].name, "", -1, 0, s->param[i].field};
}

static struct thing move_thing(const struct ap_saved *s, ap_id i)
{
	const struct ap_saved_op *to = &s->op[s->move[i].to];

	return (struct thing){to->name, to->label, to->type, s->move[i].operand, s->move[i].time_s,
		s->move[i].field};
}

/* Adds an entry with the fields that differ; false if none do. was or is NULL: added or removed. absent: a
 * field whose absence means the value of field stands; n: none. */
static bool add_entry(struct entries *all, struct entry e, const char *const *was, const char *const *is,
	uint32_t n, uint32_t absent, uint32_t stands)
{
	e.field = AP_NEW_N(all->ctx->arena, struct ap_diff_field, n);
	for (uint32_t i = 0; i < n; i++) {
		const char *a = was ? was[i] : NULL, *b = is ? is[i] : NULL;

		if (was && is && i == absent && !a != !b) {
			a = a ? a : was[stands];
			b = b ? b : is[stands];
		}
		if (was && is ? a && b && strcmp(a, b) != 0 : a || b)
			e.field[e.nfield++] = (struct ap_diff_field){i, a, b};
	}
	if (e.kind != AP_DIFF_CHANGED || e.nfield)
		AP_PUSH(all->ctx->scratch, *all, e);
	return e.nfield > 0;
}

/* Text that must be equal for two entries to be folded. */
static const char *same_text(struct ap_ctx *ctx, const struct entry *e)
{
	struct ap_str s;

	ap_str_init(&s, ctx->scratch);
	ap_str_addf(&s, "%d %" PRId64 " %s", (int)e->kind, e->operand, e->type);
	for (uint32_t i = 0; i < e->nfield; i++)
		ap_str_addf(&s, "\n%" PRIu32 " %s\n%s", e->field[i].field,
			e->field[i].was ? e->field[i].was : "-",
			e->field[i].is ? e->field[i].is : "-");
	for (const char *c = e->old_label ? e->old_label : ""; *c; c++)
		if (!strchr("0123456789", *c))
			ap_str_addc(&s, *c);
		else if (!strchr("0123456789", c[1]) || !c[1])
			ap_str_addc(&s, '0');
	return s.s;
}

/* The folded old names of a fold's entries. */
static const char *old_label(struct ap_ctx *ctx, const struct entry *all,
	const struct ap_name_fold *fold)
{
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, fold->n);
	const struct ap_name_fold *old;
	uint32_t n;

	if (!all[fold->item[0]].old_label)
		return NULL;
	for (uint32_t i = 0; i < fold->n; i++)
		item[i] = (struct ap_name_item){all[fold->item[i]].old_label, ""};
	n = ap_name_folds(ctx, fold->n, item, &old);
	return n == 1 ? old[0].name : ap_arena_printf(ctx->arena, "%s ..", old[0].name);
}

/* The largest change of time first; else as they were. */
static int compare_lines(const void *a, const void *b)
{
	const struct ap_diff_line *x = *(const struct ap_diff_line *const *)a;
	const struct ap_diff_line *y = *(const struct ap_diff_line *const *)b;
	double dx = fabs(x->is_s - x->was_s), dy = fabs(y->is_s - y->was_s);

	if (dx != dy)
		return dx > dy ? -1 : 1;
	return x < y ? -1 : x > y;
}

static const struct ap_diff_line *by_time(struct ap_ctx *ctx, const struct ap_diff_line *line, uint32_t n)
{
	const struct ap_diff_line **order = AP_NEW_N(ctx->scratch, const struct ap_diff_line *, n);
	struct ap_diff_line *sorted = AP_NEW_N(ctx->arena, struct ap_diff_line, n);

	for (uint32_t i = 0; i < n; i++)
		order[i] = &line[i];
	qsort(order, n, sizeof *order, compare_lines);
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = *order[i];
	return sorted;
}

static void join_entries(struct entries *all, uint32_t was, uint32_t is, struct ap_diff_lines *out)
{
	struct ap_ctx *ctx = all->ctx;
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, all->n);
	struct ap_diff_line *line;
	const struct ap_name_fold *fold;

	for (size_t i = 0; i < all->n; i++)
		item[i] = (struct ap_name_item){all->v[i].label, same_text(ctx, &all->v[i])};
	*out = (struct ap_diff_lines){.things = (uint32_t)all->n, .of = {was, is}};
	out->n = ap_name_folds(ctx, (uint32_t)all->n, item, &fold);
	line = AP_NEW_N(ctx->scratch, struct ap_diff_line, out->n);
	for (uint32_t i = 0; i < out->n; i++) {
		const struct entry *e = &all->v[fold[i].item[0]];
		uint32_t n = fold[i].n;
		const char **name = AP_NEW_N(ctx->arena, const char *, n);
		const char **old = e->old_name ? AP_NEW_N(ctx->arena, const char *, n) : NULL;

		double was_s = 0, is_s = 0;

		for (uint32_t j = 0; j < n; j++) {
			const struct entry *one = &all->v[fold[i].item[j]];

			name[j] = one->name;
			if (old)
				old[j] = one->old_name;
			was_s += one->was_s;
			is_s += one->is_s;
		}
		line[i] = (struct ap_diff_line){.kind = e->kind, .label = fold[i].name,
			.old_label = old_label(ctx, all->v, &fold[i]), .type = e->type,
			.operand = e->operand, .n = n, .name = name, .old_name = old, .was_s = was_s,
			.is_s = is_s, .nfield = e->nfield, .field = e->field};
	}
	out->v = by_time(ctx, line, out->n);
}

/* changed[nis] (may be NULL) receives which things of the new plan have a field that differs. */
static void compare_things(struct task *t, struct thing get(const struct ap_saved *s, ap_id i), uint32_t nwas,
	uint32_t nis, const ap_id *new_of, const ap_id *old_of, bool *changed, struct ap_diff_lines *out)
{
	bool params = get == param_thing, moves = get == move_thing;
	uint32_t nfield = params ? AP_SAVED_PARAM_FIELDS : moves ? AP_SAVED_MOVE_FIELDS : AP_SAVED_OP_FIELDS;
	struct entries all = {.ctx = t->ctx};

	for (uint32_t i = 0; i < nis; i++) {
		bool known = old_of[i] != AP_NONE;
		struct thing is = get(t->is, i), was = known ? get(t->was, old_of[i]) : (struct thing){0};
		struct entry e = {.label = is.label, .type = is.type, .name = is.name,
			.operand = is.operand, .was_s = was.time_s, .is_s = is.time_s,
			.kind = known ? AP_DIFF_CHANGED : AP_DIFF_ADDED};
		bool differs;

		if (known && !moves && strcmp(was.name, is.name) != 0) {
			e.kind = AP_DIFF_RENAMED;
			e.old_label = was.label;
			e.old_name = was.name;
		}
		/* no "read as" type means the stored type */
		differs = add_entry(&all, e, was.field, is.field, nfield, params ? AP_SAVED_READ_AS : nfield,
			AP_SAVED_DTYPE);
		if (changed)
			changed[i] = differs;
	}
	for (uint32_t i = 0; i < nwas; i++) {
		struct thing was = get(t->was, i);

		if (new_of[i] == AP_NONE)
			add_entry(&all, (struct entry){.kind = AP_DIFF_REMOVED, .label = was.label,
				.type = was.type, .name = was.name, .operand = was.operand,
				.was_s = was.time_s}, was.field, NULL, nfield, nfield, 0);
	}
	join_entries(&all, nwas, nis, out);
}

/* ---- collectives by kind, group size and phase, in total and by operator ---- */

struct flows {
	struct ap_diff_flow *v;
	size_t n, cap;
};

struct count {
	struct ap_ctx *ctx;
	struct ap_map *keys; /* for totals */
	struct flows totals, places; /* places: one operator each */
};

static void add_load(struct ap_diff_load *to, struct ap_diff_load load)
{
	to->count = ap_add(to->count, load.count, &to->count) ? to->count : INT64_MAX;
	to->bytes = ap_add(to->bytes, load.bytes, &to->bytes) ? to->bytes : INT64_MAX;
}

static bool same_load(const struct ap_diff_flow *f)
{
	return f->was.count == f->is.count && f->was.bytes == f->is.bytes;
}

/* The flow of a collective in a list, added if new. */
static struct ap_diff_flow *flow_of(struct ap_ctx *ctx, struct ap_map *keys, struct flows *list,
	const struct ap_saved_comm *c)
{
	struct ap_mark mark = ap_arena_mark(ctx->arena);
	const char *key = ap_arena_printf(ctx->arena, "%s\n%s\n%" PRId64, c->kind, c->phase, c->ranks);
	bool fresh;
	ap_id id = ap_map_put_str(keys, key, &fresh);

	ap_arena_release(ctx->arena, mark);
	if (fresh)
		AP_PUSH(ctx->scratch, *list,
			((struct ap_diff_flow){.kind = c->kind, .phase = c->phase,
				.ranks = c->ranks, .label = ""}));
	return &list->v[id];
}

/* Counts the collectives of an operator; was or is may be NULL. */
static void count_op(struct count *c, const struct ap_saved_op *was, const struct ap_saved_op *is)
{
	const struct ap_saved_op *op = is ? is : was;
	struct ap_ctx *ctx = c->ctx;
	const char **name = AP_NEW(ctx->scratch, const char *);
	struct ap_map *keys = ap_map_create(ctx->scratch);
	struct flows own = {0};

	for (int new = 0; new < 2; new++) {
		const struct ap_saved_op *one = new ? is : was;

		for (uint32_t i = 0; one && i < one->ncomm; i++) {
			struct ap_diff_load load = {one->comm[i].count,
				one->comm[i].count * one->comm[i].bytes};
			struct ap_diff_flow *here = flow_of(ctx, keys, &own, &one->comm[i]);
			struct ap_diff_flow *total = flow_of(ctx, c->keys, &c->totals, &one->comm[i]);

			add_load(new ? &here->is : &here->was, load);
			add_load(new ? &total->is : &total->was, load);
		}
	}
	*name = op->name;
	for (size_t i = 0; i < own.n; i++) {
		own.v[i].label = op->label;
		own.v[i].name = name;
		own.v[i].n = 1;
		if (!same_load(&own.v[i]))
			AP_PUSH(ctx->scratch, c->places, own.v[i]);
	}
}

static void join_flows(struct ap_ctx *ctx, const struct flows *all, struct ap_diff_flows *out)
{
	struct ap_name_item *item = AP_NEW_N(ctx->scratch, struct ap_name_item, all->n);
	const struct ap_name_fold *fold;
	struct ap_diff_flow *flow;

	for (size_t i = 0; i < all->n; i++) {
		const struct ap_diff_flow *f = &all->v[i];

		item[i].name = f->label;
		item[i].same = ap_arena_printf(ctx->scratch,
			"%s\n%s\n%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, f->kind,
			f->phase, f->ranks, f->was.count, f->was.bytes, f->is.count, f->is.bytes);
	}
	out->n = ap_name_folds(ctx, (uint32_t)all->n, item, &fold);
	out->v = flow = AP_NEW_N(ctx->arena, struct ap_diff_flow, out->n);
	for (uint32_t i = 0; i < out->n; i++) {
		const char **name = AP_NEW_N(ctx->arena, const char *, fold[i].n);
		struct ap_diff_flow f = all->v[fold[i].item[0]];

		f.was = f.is = (struct ap_diff_load){0};
		f.label = fold[i].name;
		f.n = fold[i].n;
		f.name = name;
		for (uint32_t j = 0; j < f.n; j++) {
			const struct ap_diff_flow *one = &all->v[fold[i].item[j]];

			add_load(&f.was, one->was);
			add_load(&f.is, one->is);
			name[j] = *one->name;
		}
		flow[i] = f;
	}
}

static void compare_comms(struct task *t, struct ap_diff *out)
{
	struct count c = {.ctx = t->ctx, .keys = ap_map_create(t->ctx->scratch)};
	AP_VEC(struct ap_diff_flow) totals = {0};

	for (uint32_t i = 0; i < t->is->nop; i++) {
		ap_id old = t->old_op[i];

		count_op(&c, old == AP_NONE ? NULL : &t->was->op[old], &t->is->op[i]);
	}
	for (uint32_t i = 0; i < t->was->nop; i++)
		if (t->new_op[i] == AP_NONE)
			count_op(&c, &t->was->op[i], NULL);
	for (size_t i = 0; i < c.totals.n; i++)
		if (!same_load(&c.totals.v[i]))
			AP_PUSH(t->ctx->arena, totals, c.totals.v[i]);
	out->totals = (struct ap_diff_flows){(uint32_t)totals.n, totals.v};
	join_flows(t->ctx, &c.places, &out->collectives);
}

void ap_diff_make(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	struct ap_diff *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct task t = {.ctx = ctx, .was = was, .is = is};
	struct ap_diff_pairs pairs;
	struct ap_saved strategies;
	bool *changed;

	*out = (struct ap_diff){.file = {was->file, is->file},
		.is_plan = {was->is_plan, is->is_plan}, .reduced = was->is_plan != is->is_plan};
	if (out->reduced) {
		ap_saved_strategies(ctx, was->is_plan ? was : is, &strategies);
		t.was = was->is_plan ? &strategies : was;
		t.is = is->is_plan ? &strategies : is;
	}
	match(&t);
	make_figures(&t, out);
	changed = AP_NEW_N(ctx->scratch, bool, t.is->nop);
	compare_things(&t, op_thing, t.was->nop, t.is->nop, t.new_op, t.old_op, changed, &out->operators);
	pairs = (struct ap_diff_pairs){t.new_op, t.old_op};
	ap_diff_layers(ctx, t.was, t.is, &pairs, changed, &out->layers);
	if (was->is_plan && is->is_plan)
		out->npart = ap_diff_parts(ctx, was, is, &pairs, out->part, &out->nrest);
	compare_things(&t, param_thing, t.was->nparam, t.is->nparam, t.new_param, t.old_param,
		NULL, &out->parameters);
	compare_things(&t, move_thing, t.was->nmove, t.is->nmove, t.new_move, t.old_move,
		NULL, &out->redistributions);
	compare_comms(&t, out);
	out->old_param = ap_arena_memdup(ctx->arena, t.old_param, t.is->nparam * sizeof *t.old_param);
	out->equal = !out->operators.n && !out->parameters.n && !out->redistributions.n &&
		!out->collectives.n;
	for (uint32_t i = 0; i < out->nfigure; i++)
		out->equal = out->equal && (!out->figure[i].changed || out->figure[i].noted);
	ap_arena_release(ctx->scratch, mark);
}
