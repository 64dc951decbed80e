/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/par.h"
#include "base/vec.h"
#include "cost/table_parts.h"

struct bond_key { /* equal bytes: equal bond */
	uint32_t type, kind_u, slot_u, kind_v, slot_v;
	uint32_t pad;
	struct ap_flow flow;
};

static ap_id intern_bond(struct ap_making *mk, struct ap_map *seen, const struct bond_key *key)
{
	const struct ap_kind *ku = &mk->kinds.v[key->kind_u], *kv = &mk->kinds.v[key->kind_v];
	struct ap_bond b = {.type = (enum ap_bond_type)key->type, .flow = key->flow,
		.kind_u = key->kind_u, .kind_v = key->kind_v};
	bool fresh;
	ap_id id = ap_map_put(seen, key, sizeof *key, &fresh);

	if (!fresh)
		return id;
	switch (b.type) {
	case AP_BOND_FLOW:
		b.u = ku->out[key->slot_u];
		b.v = kv->in[key->slot_v];
		break;
	case AP_BOND_LAYOUT:
		b.u = ku->in[key->slot_u];
		b.v = kv->in[key->slot_v];
		break;
	case AP_BOND_STRATEGY:
		b.u = ku->strategy;
		b.v = kv->strategy;
		break;
	}
	AP_PUSH(mk->ctx->arena, mk->bonds, b);
	return id;
}

static void add_link(struct ap_making *mk, struct ap_map *seen, struct bond_key *key, ap_id u, ap_id v)
{
	struct ap_tie link = {.u = u, .v = v};

	key->kind_u = mk->kind_of[u];
	key->kind_v = mk->kind_of[v];
	link.bond = intern_bond(mk, seen, key);
	AP_PUSH(mk->ctx->arena, mk->links, link);
}

static void flow_links(struct ap_making *mk, struct ap_map *seen, ap_id v)
{
	const struct ap_node *n = &mk->g->node[v];

	for (uint32_t i = 0; i < n->bound.nin; i++) {
		const struct ap_tensor *t = &mk->g->tensor[n->in[i]];
		struct bond_key key;

		if (t->kind != AP_TENSOR_ACT)
			continue;
		memset(&key, 0, sizeof key);
		key.type = AP_BOND_FLOW;
		key.slot_u = t->result;
		key.slot_v = i;
		ap_flow_make(mk->g, mk->task, v, i, mk->step, &key.flow);
		add_link(mk, seen, &key, t->producer, v);
	}
}

/* All users of one parameter hold it in one layout: each is tied to the first. */
static void parameter_links(struct ap_making *mk, struct ap_map *seen, const struct ap_tensor *t)
{
	for (uint32_t u = 1; u < t->nuse; u++) {
		struct bond_key key;

		if (t->use[u].node == t->use[0].node)
			continue;
		memset(&key, 0, sizeof key);
		key.type = AP_BOND_LAYOUT;
		key.slot_u = t->use[0].operand;
		key.slot_v = t->use[u].operand;
		add_link(mk, seen, &key, t->use[0].node, t->use[u].node);
	}
}

/* Operators of one type with one first parameter share a checkpoint key, and so their strategy, where
 * they take the same form of it. */
static void key_links(struct ap_making *mk, struct ap_map *seen)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	struct ap_map *keys = ap_map_create(mk->ctx->scratch);
	ap_id *first = AP_NEW_N(mk->ctx->scratch, ap_id, mk->g->nnode);

	for (ap_id i = 0; i < mk->g->nnode; i++) {
		const char *name = ap_task_tie(mk->ctx, mk->g, i);
		struct bond_key key;
		bool fresh;
		ap_id id;

		if (!name)
			continue;
		id = ap_map_put_str(keys, name, &fresh);
		if (fresh) {
			first[id] = i;
			continue;
		}
		memset(&key, 0, sizeof key);
		key.type = AP_BOND_STRATEGY;
		add_link(mk, seen, &key, first[id], i);
	}
	ap_arena_release(mk->ctx->scratch, mark);
}

static void price_flow(const struct ap_making *mk, struct ap_bond *b, int worker)
{
	for (uint32_t r = 0; r < b->u.nlayout; r++) {
		for (uint32_t c = 0; c < b->v.nlayout; c++) {
			size_t at = (size_t)r * b->v.nlayout + c;
			struct ap_move_cost mc;

			ap_move_cost_make(mk->worker[worker].pricer, &b->flow, &b->u.layout[r],
				&b->v.layout[c], &mc);
			b->cost[at] = ap_quantise_s(mc.forward_s + mc.backward_s);
			if (b->kept)
				b->kept[at] = mc.kept_bytes;
		}
	}
}

static void price_layout(struct ap_bond *b)
{
	for (uint32_t r = 0; r < b->u.nlayout; r++)
		for (uint32_t c = 0; c < b->v.nlayout; c++)
			b->cost[(size_t)r * b->v.nlayout + c] =
				ap_layout_equal(&b->u.layout[r], &b->v.layout[c]) ? 0 : INFINITY;
}

/* Strategies of two kinds are numbered apart, so the vectors themselves are compared. */
static void price_strategy(const struct ap_making *mk, struct ap_bond *b)
{
	const struct ap_kind *ku = &mk->kinds.v[b->kind_u], *kv = &mk->kinds.v[b->kind_v];
	int32_t cu[AP_MAX_STRATEGY][AP_MAX_RANK], cv[AP_MAX_STRATEGY][AP_MAX_RANK];

	for (uint32_t r = 0; r < ku->k; r++) {
		uint32_t n = ap_kind_strategy(mk, ku, r, cu);

		for (uint32_t c = 0; c < kv->k; c++) {
			bool equal = ap_kind_strategy(mk, kv, c, cv) == n &&
				memcmp(cu, cv, n * sizeof *cu) == 0;

			b->cost[(size_t)b->u.of[r] * b->v.nlayout + b->v.of[c]] =
				equal ? 0 : INFINITY;
		}
	}
}

static void price_bond(void *user, size_t i, int worker)
{
	struct ap_making *mk = user;
	struct ap_bond *b = &mk->bonds.v[i];

	switch (b->type) {
	case AP_BOND_FLOW:
		price_flow(mk, b, worker);
		break;
	case AP_BOND_LAYOUT:
		price_layout(b);
		break;
	case AP_BOND_STRATEGY:
		price_strategy(mk, b);
		break;
	}
}

static enum ap_status allocate(struct ap_making *mk)
{
	size_t budget = mk->params->budget_bytes ? mk->params->budget_bytes : (size_t)2 << 30;
	size_t total = 0;

	for (size_t i = 0; i < mk->bonds.n; i++) {
		struct ap_bond *b = &mk->bonds.v[i];
		size_t cells = (size_t)b->u.nlayout * b->v.nlayout;

		total += cells * (sizeof(double) + (b->flow.kept ? sizeof(int64_t) : 0));
		if (total > budget)
			return ap_diag_add(mk->ctx->diag, AP_ERROR, AP_LIMIT, NULL, "table-size",
				"the cost table of redistributions would exceed %zu MiB; "
				"fewer devices, or a larger --planner-memory",
				budget >> 20);
		b->cost = ap_arena_alloc_raw(mk->ctx->arena, cells, sizeof *b->cost);
		if (b->flow.kept)
			b->kept = AP_NEW_N(mk->ctx->arena, int64_t, cells);
	}
	return AP_OK;
}

enum ap_status ap_table_bonds(struct ap_making *mk)
{
	struct ap_map *seen = ap_map_create(mk->ctx->arena);

	for (ap_id v = 0; v < mk->g->nnode; v++)
		flow_links(mk, seen, v);
	for (ap_id t = 0; t < mk->g->ntensor; t++)
		if (mk->g->tensor[t].kind == AP_TENSOR_PARAM)
			parameter_links(mk, seen, &mk->g->tensor[t]);
	key_links(mk, seen);
	AP_TRY(allocate(mk));
	ap_par_for(mk->ctx->jobs, mk->bonds.n, price_bond, mk);
	return AP_OK;
}
