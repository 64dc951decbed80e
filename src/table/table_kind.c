/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/par.h"
#include "base/vec.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "shard/space.h"
#include "shard/strategy.h"
#include "table/table_parts.h"

void ap_kind_placement(const struct ap_making *mk, const struct ap_kind *kd, uint32_t c,
	struct ap_placement *out)
{
	ap_placement_make(kd->task->bound, &kd->space.count[(size_t)c * kd->space.nfactor],
		mk->m->ndev, out);
}

uint32_t ap_kind_strategy(const struct ap_making *mk, const struct ap_kind *kd, uint32_t c,
	int32_t cut[AP_MAX_STRATEGY][AP_MAX_RANK])
{
	uint8_t rank[AP_MAX_STRATEGY];
	struct ap_placement p;
	uint32_t n;

	memset(cut, 0, AP_MAX_STRATEGY * sizeof *cut);
	ap_kind_placement(mk, kd, c, &p);
	n = ap_space_to_strategy(&p, rank, cut, AP_MAX_STRATEGY);
	/* Of more operands all are cut alike: the first ones speak for the others. */
	return n < AP_MAX_STRATEGY ? n : AP_MAX_STRATEGY;
}

/* Layouts of one operand or result over all candidates, equal ones shared. */
static void fill_slot(const struct ap_making *mk, const struct ap_kind *kd,
	const struct ap_operand *t, struct ap_slot *s)
{
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	uint32_t *of = AP_NEW_N(mk->ctx->arena, uint32_t, kd->k);
	struct ap_layout *layouts = AP_NEW_N(mk->ctx->scratch, struct ap_layout, kd->k);

	for (uint32_t c = 0; c < kd->k; c++) {
		struct ap_layout l = {0};
		struct ap_placement p;

		ap_kind_placement(mk, kd, c, &p);
		ap_layout_make(&p, t, &l);
		of[c] = ap_map_put(seen, &l, sizeof l, NULL);
		layouts[of[c]] = l;
	}
	s->nlayout = (uint32_t)ap_map_size(seen);
	s->layout = ap_arena_memdup(mk->ctx->arena, layouts, s->nlayout * sizeof *layouts);
	s->of = of;
}

static void fill_strategy(const struct ap_making *mk, const struct ap_kind *kd, struct ap_slot *s)
{
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	uint32_t *of = AP_NEW_N(mk->ctx->arena, uint32_t, kd->k);

	for (uint32_t c = 0; c < kd->k; c++) {
		int32_t cut[AP_MAX_STRATEGY][AP_MAX_RANK];
		uint32_t n = ap_kind_strategy(mk, kd, c, cut);

		of[c] = ap_map_put(seen, cut, n * sizeof *cut, NULL);
	}
	s->nlayout = (uint32_t)ap_map_size(seen);
	s->of = of;
}

static void fill_slots(struct ap_making *mk, struct ap_kind *kd)
{
	const struct ap_bound *b = kd->task->bound;
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);

	kd->in = AP_NEW_N(mk->ctx->arena, struct ap_slot, b->nin);
	kd->out = AP_NEW_N(mk->ctx->arena, struct ap_slot, b->nout);
	for (uint16_t i = 0; i < b->nin; i++)
		fill_slot(mk, kd, &b->in[i], &kd->in[i]);
	for (uint16_t o = 0; o < b->nout; o++)
		fill_slot(mk, kd, &b->out[o], &kd->out[o]);
	fill_strategy(mk, kd, &kd->strategy);
	ap_arena_release(mk->ctx->scratch, mark);
}

/* Does candidate c hold a parameter that the operator reads twice in one layout? */
static bool holds_alike(const struct ap_kind *kd, uint32_t c)
{
	for (uint16_t i = 0; i < kd->task->bound->nin; i++) {
		const struct ap_task_operand *o = &kd->task->in[i];
		const struct ap_slot *own = &kd->in[i], *twin = &kd->in[o->twin];

		if (o->kind == AP_TENSOR_PARAM &&
			!ap_layout_equal(&own->layout[own->of[c]], &twin->layout[twin->of[c]]))
			return false;
	}
	return true;
}

static void price_kind(void *user, size_t i, int worker)
{
	struct ap_making *mk = user;
	struct ap_kind *kd = &mk->kinds.v[i];

	for (uint32_t c = 0; c < kd->k && !ap_ctx_stopped(mk->ctx); c++) {
		struct ap_placement p;
		struct ap_op_cost oc;

		ap_kind_placement(mk, kd, c, &p);
		ap_op_cost_make(ap_worker_pricer(mk, worker), kd->task, &p, &oc);
		kd->cost[c] = holds_alike(kd, c) ? ap_op_cost_total_s(&oc, mk->step) : INFINITY;
		kd->memory[c] = ap_op_cost_memory_bytes(&oc, kd->task);
		kd->temporary[c] = oc.temporary_bytes;
		kd->hidden[c] = ap_op_cost_hidden_s(&oc, mk->step);
	}
}

static void add_kind(struct ap_making *mk, ap_id node)
{
	const int32_t *fixed = mk->params->fixed ? mk->params->fixed[node] : NULL;
	struct ap_kind kd = {.task = &mk->task[node]};
	const struct ap_bound *b = kd.task->bound;

	if (fixed) {
		kd.space = (struct ap_space){.n = 1, .nfactor = b->nfactor,
			.count = ap_arena_memdup(mk->ctx->arena, fixed, b->nfactor * sizeof *fixed)};
	} else {
		ap_space_make(mk->ctx, b, mk->m->ndev, mk->step, &kd.space);
	}
	kd.k = kd.space.n;
	kd.cost = AP_NEW_N(mk->ctx->arena, double, kd.k);
	kd.memory = AP_NEW_N(mk->ctx->arena, int64_t, kd.k);
	kd.temporary = AP_NEW_N(mk->ctx->arena, int64_t, kd.k);
	kd.hidden = AP_NEW_N(mk->ctx->arena, double, kd.k);
	fill_slots(mk, &kd);
	AP_PUSH(mk->ctx->arena, mk->kinds, kd);
}

/* The task's signature, and for a fixed node its counts. */
static ap_id intern(struct ap_making *mk, struct ap_map *seen, ap_id node, bool *fresh)
{
	const int32_t *fixed = mk->params->fixed ? mk->params->fixed[node] : NULL;
	size_t len, more = fixed ? mk->task[node].bound->nfactor * sizeof *fixed : 0;
	const void *sig = ap_task_signature(mk->ctx, &mk->task[node], &len);
	char *key = ap_arena_alloc_raw(mk->ctx->scratch, 1, len + more + 1);

	memcpy(key, sig, len);
	if (fixed)
		memcpy(key + len, fixed, more);
	return ap_map_put(seen, key, len + more, fresh);
}

void ap_table_kinds(struct ap_making *mk)
{
	struct ap_map *seen = ap_map_create(mk->ctx->arena);
	size_t candidates = 0;

	mk->kind_of = AP_NEW_N(mk->ctx->arena, uint32_t, mk->g->nnode);
	for (ap_id i = 0; i < mk->g->nnode && !ap_ctx_stopped(mk->ctx); i++) {
		struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
		bool fresh;

		mk->kind_of[i] = intern(mk, seen, i, &fresh);
		ap_arena_release(mk->ctx->scratch, mark);
		if (fresh)
			add_kind(mk, i);
	}
	for (size_t i = 0; i < mk->kinds.n; i++)
		candidates += mk->kinds.v[i].k;
	mk->work += AP_CANDIDATE_WORK * (uint64_t)candidates;
	ap_par_for(mk->ctx->arena, ap_making_jobs(mk, candidates), mk->kinds.n, price_kind, mk);
}
