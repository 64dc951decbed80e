/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of two plans: by kind, group size and phase, in all and where they are. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "diff/diff_fold.h"
#include "diff/diff_parts.h"

struct flows {
	struct ap_diff_flow *v;
	size_t n, cap;
};

struct count {
	struct ap_diff_task *t;
	struct ap_map *keys; /* of the totals */
	struct flows totals, places; /* places: with one name each */
};

static void add_load(struct ap_diff_load *to, int64_t count, int64_t bytes)
{
	if (!ap_add(to->count, count, &to->count))
		to->count = INT64_MAX;
	if (!ap_add(to->bytes, bytes, &to->bytes))
		to->bytes = INT64_MAX;
}

static bool is_equal(const struct ap_diff_flow *f)
{
	return f->was.count == f->is.count && f->was.bytes == f->is.bytes;
}

/* The flow of a list that this collective belongs to, made where there is none. */
static struct ap_diff_flow *flow_of(struct ap_ctx *ctx, struct ap_map *keys, struct flows *list,
	const struct ap_saved_comm *c)
{
	struct ap_mark mark;
	const char *key;
	bool fresh;
	ap_id id;

	mark = ap_arena_mark(ctx->arena);
	key = ap_arena_printf(ctx->arena, "%s\n%s\n%" PRId64, c->kind, c->phase, c->ranks);
	id = ap_map_put_str(keys, key, &fresh);
	ap_arena_release(ctx->arena, mark);
	if (fresh)
		AP_PUSH(ctx->scratch, *list,
			((struct ap_diff_flow){.kind = c->kind, .phase = c->phase,
				.ranks = c->ranks, .label = ""}));
	return &list->v[id];
}

/* The collectives of one operator: was or is may be NULL. */
static void add_op(struct count *c, const struct ap_saved_op *was, const struct ap_saved_op *is)
{
	const struct ap_saved_op *op = is ? is : was;
	struct ap_ctx *ctx = c->t->ctx;
	const char **name = AP_NEW(ctx->scratch, const char *);
	struct ap_map *keys = ap_map_create(ctx->scratch);
	struct flows own = {0};

	for (uint32_t i = 0; was && i < was->ncomm; i++) {
		const struct ap_saved_comm *m = &was->comm[i];

		add_load(&flow_of(ctx, keys, &own, m)->was, m->count, m->bytes);
		add_load(&flow_of(ctx, c->keys, &c->totals, m)->was, m->count, m->bytes);
	}
	for (uint32_t i = 0; is && i < is->ncomm; i++) {
		const struct ap_saved_comm *m = &is->comm[i];

		add_load(&flow_of(ctx, keys, &own, m)->is, m->count, m->bytes);
		add_load(&flow_of(ctx, c->keys, &c->totals, m)->is, m->count, m->bytes);
	}
	*name = op->name;
	for (size_t i = 0; i < own.n; i++) {
		own.v[i].label = op->label;
		own.v[i].name = name;
		own.v[i].n = 1;
		if (!is_equal(&own.v[i]))
			AP_PUSH(ctx->scratch, c->places, own.v[i]);
	}
}

static const char *same_text(struct ap_ctx *ctx, const struct ap_diff_flow *f)
{
	return ap_arena_printf(ctx->scratch,
		"%s\n%s\n%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, f->kind,
		f->phase, f->ranks, f->was.count, f->was.bytes, f->is.count, f->is.bytes);
}

static struct ap_diff_flow join_flows(struct ap_ctx *ctx, const struct ap_diff_flow *all,
	const struct ap_fold *fold)
{
	const char **name = AP_NEW_N(ctx->arena, const char *, fold->n);
	struct ap_diff_flow f = all[fold->item[0]];

	f.was = f.is = (struct ap_diff_load){0};
	f.label = fold->name;
	f.n = fold->n;
	f.name = name;
	for (uint32_t i = 0; i < fold->n; i++) {
		const struct ap_diff_flow *one = &all[fold->item[i]];

		add_load(&f.was, one->was.count, one->was.bytes);
		add_load(&f.is, one->is.count, one->is.bytes);
		name[i] = *one->name;
	}
	return f;
}

static void join(struct ap_ctx *ctx, const struct flows *all, struct ap_diff_flows *out)
{
	struct ap_fold_item *item = AP_NEW_N(ctx->scratch, struct ap_fold_item, all->n);
	const struct ap_fold *fold;
	struct ap_diff_flow *flow;

	for (size_t i = 0; i < all->n; i++)
		item[i] = (struct ap_fold_item){all->v[i].label, same_text(ctx, &all->v[i])};
	out->n = ap_fold_items(ctx, (uint32_t)all->n, item, &fold);
	flow = AP_NEW_N(ctx->arena, struct ap_diff_flow, out->n);
	for (uint32_t i = 0; i < out->n; i++)
		flow[i] = join_flows(ctx, all->v, &fold[i]);
	out->v = flow;
}

static void keep_totals(struct ap_ctx *ctx, const struct flows *all, struct ap_diff_flows *out)
{
	struct ap_diff_flow *flow = AP_NEW_N(ctx->arena, struct ap_diff_flow, all->n);

	for (size_t i = 0; i < all->n; i++)
		if (!is_equal(&all->v[i]))
			flow[out->n++] = all->v[i];
	out->v = flow;
}

void ap_diff_comms(struct ap_diff_task *t, struct ap_diff *out)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct count c = {.t = t, .keys = ap_map_create(t->ctx->scratch)};

	for (uint32_t i = 0; i < t->is->nop; i++) {
		ap_id old = t->pairs.old_op[i];

		add_op(&c, old == AP_NONE ? NULL : &t->was->op[old], &t->is->op[i]);
	}
	for (uint32_t i = 0; i < t->was->nop; i++)
		if (t->pairs.new_op[i] == AP_NONE)
			add_op(&c, &t->was->op[i], NULL);
	keep_totals(t->ctx, &c.totals, &out->totals);
	join(t->ctx, &c.places, &out->collectives);
	ap_arena_release(t->ctx->scratch, mark);
}
