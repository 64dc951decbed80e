/* SPDX-License-Identifier: Apache-2.0 */
/* Which operator and parameter of the old plan is which of the new one. */
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "diff/diff_parts.h"

/* One of the two plans, by name. */
struct side {
	const struct ap_saved *s;
	struct ap_map *made; /* tensors that operators make; ids into maker */
	AP_VEC(uint32_t) maker;
	struct ap_map *given; /* tensors that operators read and none makes */
	struct ap_map *params; /* ids are indices */
};

struct matching {
	struct ap_diff_task *t;
	struct ap_arena *a; /* scratch */
	struct side was, is;
	struct ap_map *old_name; /* tensors of the new plan that the old one has under a name */
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

	m->t->pairs.new_op[old] = new;
	m->t->pairs.old_op[new] = old;
	for (uint32_t j = 0; j < was->nout && j < is->nout; j++) {
		bool fresh;

		ap_map_put_str(m->old_name, is->out[j], &fresh);
		if (fresh)
			AP_PUSH(m->a, m->old_names, was->out[j]);
	}
}

static void pair_by_name(struct matching *m)
{
	struct ap_map *names = ap_map_create(m->a);

	for (uint32_t i = 0; i < m->was.s->nop; i++)
		ap_map_put_str(names, m->was.s->op[i].name, NULL);
	for (uint32_t i = 0; i < m->is.s->nop; i++) {
		ap_id id = ap_map_get_str(names, m->is.s->op[i].name);

		if (id != AP_NONE)
			pair_ops(m, id, i);
	}
}

/* What an operand that no operator makes is known by in both plans: its name where both have it,
 * else the form of the parameter. False: by nothing. */
static bool add_given(const struct side *own, const struct side *other, const char *tensor,
	struct ap_str *key)
{
	ap_id param = ap_map_get_str(own->params, tensor);
	const struct ap_saved_param *p = param == AP_NONE ? NULL : &own->s->param[param];

	if (ap_map_get_str(other->given, tensor) != AP_NONE)
		ap_str_add(key, tensor);
	else if (p)
		ap_str_addf(key, "%s%s", p->field[AP_SAVED_DTYPE], p->field[AP_SAVED_TENSOR_SHAPE]);
	else
		return false;
	return true;
}

static bool old_key(const struct matching *m, const struct ap_saved_op *op, struct ap_str *key)
{
	ap_str_add(key, op->type);
	for (uint32_t j = 0; j < op->nin; j++) {
		ap_str_addc(key, '\0');
		if (ap_map_get_str(m->was.made, op->in[j]) != AP_NONE)
			ap_str_add(key, op->in[j]);
		else if (!add_given(&m->was, &m->is, op->in[j], key))
			return false;
	}
	return op->nin;
}

static bool new_key(const struct matching *m, const struct ap_saved_op *op, struct ap_str *key)
{
	ap_str_add(key, op->type);
	for (uint32_t j = 0; j < op->nin; j++) {
		ap_id id = ap_map_get_str(m->old_name, op->in[j]);

		ap_str_addc(key, '\0');
		if (id != AP_NONE)
			ap_str_add(key, m->old_names.v[id]);
		else if (ap_map_get_str(m->is.made, op->in[j]) != AP_NONE ||
			!add_given(&m->is, &m->was, op->in[j], key))
			return false;
	}
	return op->nin;
}

struct waiting { /* operators of one key, in the order of the plan */
	uint32_t *v;
	size_t n, cap, taken;
};

/* An operator whose name is gone and a new one of the same type that reads the same are one. The new
 * ones come in topological order, so what they read has been found by then. */
static void pair_by_place(struct matching *m)
{
	struct waiting *waiting = AP_NEW_N(m->a, struct waiting, m->was.s->nop);
	struct ap_map *keys = ap_map_create(m->a);
	struct ap_str key;

	ap_str_init(&key, m->a);
	for (uint32_t i = 0; i < m->was.s->nop; i++) {
		key.len = 0;
		if (m->t->pairs.new_op[i] == AP_NONE && old_key(m, &m->was.s->op[i], &key))
			AP_PUSH(m->a, waiting[ap_map_put(keys, key.s, key.len, NULL)], i);
	}
	for (uint32_t i = 0; i < m->is.s->nop; i++) {
		ap_id id;

		key.len = 0;
		if (m->t->pairs.old_op[i] != AP_NONE || !new_key(m, &m->is.s->op[i], &key))
			continue;
		id = ap_map_get(keys, key.s, key.len);
		if (id != AP_NONE && waiting[id].taken < waiting[id].n)
			pair_ops(m, waiting[id].v[waiting[id].taken++], i);
	}
}

static void pair_params(struct matching *m, ap_id old, ap_id new)
{
	struct ap_diff_pairs *p = &m->t->pairs;

	if (old == AP_NONE || new == AP_NONE || p->new_param[old] != AP_NONE ||
		p->old_param[new] != AP_NONE)
		return;
	p->new_param[old] = new;
	p->old_param[new] = old;
}

/* By name, then those that are the same operand of the same operator. */
static void match_params(struct matching *m)
{
	const struct ap_saved *is = m->is.s;

	for (uint32_t i = 0; i < is->nparam; i++)
		pair_params(m, ap_map_get_str(m->was.params, is->param[i].name), i);
	for (uint32_t i = 0; i < is->nop; i++) {
		const struct ap_saved_op *op = &is->op[i], *was;

		if (m->t->pairs.old_op[i] == AP_NONE)
			continue;
		was = &m->was.s->op[m->t->pairs.old_op[i]];
		for (uint32_t j = 0; was->nin == op->nin && j < op->nin; j++)
			pair_params(m, ap_map_get_str(m->was.params, was->in[j]),
				ap_map_get_str(m->is.params, op->in[j]));
	}
}

static ap_id *none(struct ap_arena *a, uint32_t n)
{
	ap_id *v = ap_arena_alloc_raw(a, n, sizeof *v);

	for (uint32_t i = 0; i < n; i++)
		v[i] = AP_NONE;
	return v;
}

void ap_diff_match(struct ap_diff_task *t)
{
	struct ap_arena *a = t->ctx->arena;
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct matching m = {.t = t, .a = t->ctx->scratch};

	t->pairs = (struct ap_diff_pairs){none(a, t->was->nop), none(a, t->is->nop),
		none(a, t->was->nparam), none(a, t->is->nparam)};
	index_side(m.a, t->was, &m.was);
	index_side(m.a, t->is, &m.is);
	m.old_name = ap_map_create(m.a);
	pair_by_name(&m);
	pair_by_place(&m);
	match_params(&m);
	ap_arena_release(t->ctx->scratch, mark);
}
