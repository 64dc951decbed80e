/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prices of bonds along which a tensor flows. Bonds of equal tensors are priced together, row by row: from
 * one layout of a producer to all that consumers want, each once, however many bonds ask for it.
 */
#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/par.h"
#include "base/vec.h"
#include "cost/move.h"
#include "shard/reshard.h"
#include "table/table_parts.h"

#define SHARE 20000 /* prices that one thread makes at a time: a millisecond or two */

struct row { /* of a bond */
	struct ap_bond *bond;
	const uint32_t *column; /* layouts of the bond's columns */
	uint32_t at;
	uint32_t next; /* of the same layout; AP_NONE: none */
};

struct layout {
	struct ap_reshard_end end;
	uint32_t first; /* row, AP_NONE: of no producer */
	size_t asked; /* prices in its rows */
};

struct tensor {
	struct ap_flow flow; /* kept by all, where that costs no time: bonds that do not do not ask; of one
	                        copy in flight */
	struct ap_map *ids; /* of layouts */
	AP_VEC(struct layout) layouts;
};

/* Layouts [first, end) of a tensor. */
struct share {
	uint32_t tensor, first, end;
	uint32_t base; /* layouts in shares before this one: they are numbered over all tensors */
};

struct price {
	uint32_t number; /* of the layout from which; 0 none */
	double cost;
	int64_t kept;
};

struct flows {
	const struct ap_making *mk;
	AP_VEC(struct tensor) tensors;
	AP_VEC(struct row) rows;
	AP_VEC(struct share) shares;
	size_t most; /* layouts of one tensor */
	struct price *price; /* [worker][most] the last one asked for of each layout */
};

static uint32_t layout_id(const struct flows *f, struct tensor *t, const struct ap_layout *l)
{
	struct ap_arena *scratch = f->mk->ctx->scratch;
	bool fresh;
	uint32_t id = ap_map_put(t->ids, l->dim, (size_t)l->rank * sizeof *l->dim, &fresh);

	if (fresh) {
		AP_PUSH(scratch, t->layouts, ((struct layout){.first = AP_NONE}));
		ap_reshard_end_make(l, t->flow.size, f->mk->m->ndev, &t->layouts.v[id].end);
	}
	return id;
}

static struct tensor *tensor_of(struct flows *f, struct ap_map *seen, const struct ap_flow *flow)
{
	struct ap_arena *scratch = f->mk->ctx->scratch;
	struct ap_flow key = *flow;
	bool fresh;
	ap_id id;

	key.kept |= f->mk->step->executor == AP_EXECUTOR_MINDSPORE; /* for others time depends on it */
	key.in_flight = 1;
	id = ap_map_put(seen, &key, sizeof key, &fresh);
	if (fresh)
		AP_PUSH(scratch, f->tensors, ((struct tensor){key, ap_map_create(scratch), {0}}));
	return &f->tensors.v[id];
}

static void add_bond(struct flows *f, struct ap_map *seen, struct ap_bond *b)
{
	struct ap_arena *scratch = f->mk->ctx->scratch;
	struct tensor *t = tensor_of(f, seen, &b->flow);
	uint32_t *column = AP_NEW_N(scratch, uint32_t, b->v.nlayout);

	for (uint32_t c = 0; c < b->v.nlayout; c++)
		column[c] = layout_id(f, t, &b->v.layout[c]);
	for (uint32_t r = 0; r < b->u.nlayout; r++) {
		uint32_t id = layout_id(f, t, &b->u.layout[r]);
		struct layout *l = &t->layouts.v[id];

		AP_PUSH(scratch, f->rows, ((struct row){b, column, r, l->first}));
		l->first = (uint32_t)f->rows.n - 1;
		l->asked += b->v.nlayout;
	}
}

/* Tensors in parts of about SHARE prices. */
static void share_out(struct flows *f)
{
	uint32_t base = 0;

	for (uint32_t i = 0; i < f->tensors.n; i++) {
		const struct tensor *t = &f->tensors.v[i];
		struct share s = {.tensor = i};
		size_t prices = 0;

		for (uint32_t l = 0; l < t->layouts.n; l++) {
			prices += t->layouts.v[l].asked;
			if (prices < SHARE && l + 1 < t->layouts.n)
				continue;
			s.end = l + 1;
			s.base = base;
			AP_PUSH(f->mk->ctx->scratch, f->shares, s);
			base += s.end - s.first;
			s.first = s.end;
			prices = 0;
		}
		f->most = t->layouts.n > f->most ? t->layouts.n : f->most;
	}
}

static struct price make_price(struct ap_pricer *pricer, const struct tensor *t, uint32_t from,
	uint32_t to)
{
	struct ap_move_cost mc;

	ap_move_cost_between(pricer, &t->flow, &t->layouts.v[from].end, &t->layouts.v[to].end, &mc);
	return (struct price){0, ap_quantise_s(mc.forward_s + mc.backward_s,
		ap_pricer_step(pricer)->quantum_s), mc.charged_bytes};
}

static void price_layout(const struct flows *f, const struct share *s, uint32_t from, int worker)
{
	const struct tensor *t = &f->tensors.v[s->tensor];
	struct ap_pricer *pricer = ap_worker_pricer(f->mk, worker);
	struct price *prices = f->price + (size_t)worker * f->most;
	uint32_t number = s->base + (from - s->first) + 1;

	for (uint32_t i = t->layouts.v[from].first; i != AP_NONE; i = f->rows.v[i].next) {
		const struct row *r = &f->rows.v[i];
		size_t at = (size_t)r->at * r->bond->v.nlayout;
		int64_t copies = t->flow.again ? 1 : r->bond->flow.in_flight;

		for (uint32_t c = 0; c < r->bond->v.nlayout; c++, at++) {
			struct price *p = &prices[r->column[c]];

			if (p->number != number) {
				*p = make_price(pricer, t, from, r->column[c]);
				p->number = number;
			}
			r->bond->cost[at] = p->cost;
			if (r->bond->kept)
				r->bond->kept[at] = p->kept * copies;
		}
	}
}

static void price_share(void *user, size_t i, int worker)
{
	const struct flows *f = user;
	const struct share *s = &f->shares.v[i];

	for (uint32_t l = s->first; l < s->end && !ap_ctx_stopped(f->mk->ctx); l++)
		price_layout(f, s, l, worker);
}

void ap_table_flows(const struct ap_making *mk)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	struct flows f = {.mk = mk};
	size_t prices = 0;
	int jobs;

	for (size_t i = 0; i < mk->bonds.n; i++) {
		struct ap_bond *b = &mk->bonds.v[i];

		if (b->type != AP_BOND_FLOW)
			continue;
		add_bond(&f, seen, b);
		prices += (size_t)b->u.nlayout * b->v.nlayout;
	}
	share_out(&f);
	jobs = ap_making_jobs(mk, prices);
	f.price = AP_NEW_N(mk->ctx->scratch, struct price, (size_t)jobs * f.most);
	ap_par_for(mk->ctx->arena, jobs, f.shares.n, price_share, &f);
	ap_arena_release(mk->ctx->scratch, mark);
}
