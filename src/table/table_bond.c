/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/par.h"
#include "base/vec.h"
#include "shard/layout.h"
#include "table/table_parts.h"

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
	case AP_BOND_FOLLOW:
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

struct linking {
	struct ap_making *mk;
	struct ap_map *seen; /* bonds by key */
};

static void add_link(void *user, const struct ap_joint *link)
{
	struct linking *k = user;
	struct ap_making *mk = k->mk;
	struct ap_tie tie = {.u = link->u, .v = link->v};
	struct bond_key key;

	if (link->type == AP_BOND_FOLLOW && mk->params->fixed && mk->params->fixed[link->u])
		return; /* what is given follows nobody */
	memset(&key, 0, sizeof key);
	key.type = (uint32_t)link->type;
	key.kind_u = mk->kind_of[link->u];
	key.slot_u = link->slot_u;
	key.kind_v = mk->kind_of[link->v];
	key.slot_v = link->slot_v;
	key.flow = link->flow;
	tie.bond = intern_bond(mk, k->seen, &key);
	AP_PUSH(mk->ctx->arena, mk->links, tie);
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

static void price_rule(void *user, size_t i, int worker)
{
	const struct ap_making *mk = user;
	struct ap_bond *b = &mk->bonds.v[i];

	(void)worker;
	if (b->type == AP_BOND_LAYOUT || b->type == AP_BOND_FOLLOW)
		price_layout(b);
	else if (b->type == AP_BOND_STRATEGY && !ap_ctx_stopped(mk->ctx))
		price_strategy(mk, b);
}

static size_t pairs_of(const struct ap_bond *b)
{
	return (size_t)b->u.nlayout * b->v.nlayout;
}

/* Is there any memory to charge to the bond? */
static bool holds_any(const struct ap_flow *f)
{
	return f->kept && (f->again || !f->shown);
}

/* Are the prices of all pairs of layouts within the limits? */
static enum ap_status check_size(struct ap_making *mk)
{
	const struct ap_table_params *params = mk->params;
	size_t budget = params->budget_bytes ? params->budget_bytes : (size_t)2 << 30;
	size_t pairs = 0, bytes = 0;

	for (size_t i = 0; i < mk->bonds.n; i++) {
		const struct ap_bond *b = &mk->bonds.v[i];

		pairs += pairs_of(b);
		bytes += pairs_of(b) * (sizeof(double) + (holds_any(&b->flow) ? sizeof(int64_t) : 0));
	}
	if (bytes <= budget && (params->work == 0 || pairs <= params->work / AP_PRICE_WORK)) {
		mk->work += pairs * AP_PRICE_WORK;
		return AP_OK;
	}
	ap_diag_add(mk->ctx->diag, AP_WARNING, AP_LIMIT, NULL, "table-size",
		"a search of the whole table would have to price %zu pairs of layouts, %zu MiB: more "
		"than %s allows",
		pairs, bytes >> 20, bytes > budget ? "--planner-memory" : "--work-limit");
	return AP_LIMIT;
}

static void allocate(struct ap_making *mk)
{
	for (size_t i = 0; i < mk->bonds.n; i++) {
		struct ap_bond *b = &mk->bonds.v[i];

		b->cost = ap_arena_alloc_raw(mk->ctx->arena, pairs_of(b), sizeof *b->cost);
		if (holds_any(&b->flow))
			b->kept = AP_NEW_N(mk->ctx->arena, int64_t, pairs_of(b));
	}
}

static void price_rules(struct ap_making *mk)
{
	size_t pairs = 0;

	for (size_t i = 0; i < mk->bonds.n; i++)
		if (mk->bonds.v[i].type != AP_BOND_FLOW)
			pairs += pairs_of(&mk->bonds.v[i]);
	ap_par_for(mk->ctx->arena, ap_making_jobs(mk, pairs), mk->bonds.n, price_rule, mk);
}

enum ap_status ap_table_bonds(struct ap_making *mk)
{
	struct linking k = {mk, ap_map_create(mk->ctx->arena)};

	ap_ctx_phase(mk->ctx, "pricing redistributions");
	ap_joints_each(mk->ctx, mk->g, mk->task, mk->step, add_link, &k);
	AP_TRY(check_size(mk));
	allocate(mk);
	ap_table_flows(mk);
	price_rules(mk);
	return ap_ctx_stopped(mk->ctx) ? AP_STOPPED : AP_OK;
}
