/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/buckets.h"

#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "plan/terms.h"

struct member {
	ap_id tensor, node;
	uint32_t comm;
	uint32_t bucket;
};

struct bucket_key { /* without padding */
	struct ap_axes axes;
	int32_t kind, stage, dtype, number, cut, alone;
};

struct bucketing {
	struct ap_ctx *ctx;
	const struct ap_plan *p;
	const struct ap_parts *x;
	struct ap_map *keys;
	AP_VEC(uint32_t) open; /* by keys: the bucket to put into */
	AP_VEC(struct ap_bucket) buckets;
	AP_VEC(struct member) members;
	int64_t *met; /* [nstage] AllReduces so far: the position for AP_FUSION_INDEX */
};

static bool is_ascend(const struct ap_plan *p)
{
	return p->machine->chip->hccl[0] != '\0';
}

/* The fusion number; -1: not given. */
static int32_t number_of(const struct ap_plan *p, const struct ap_tensor *t)
{
	if (!is_ascend(p) || t->kind == AP_TENSOR_ACT)
		return -1;
	return ap_task_fusion(p->graph, t);
}

static enum ap_dtype wire_type(const struct bucketing *b, const struct ap_tensor *t, enum ap_phase phase)
{
	return phase == AP_PHASE_GRADIENT ? ap_gradient_wire(t->shape.dtype, b->p->step) : t->shape.dtype;
}

static void make_key(struct bucketing *b, const struct ap_comm *c, const struct ap_tensor *t,
	int32_t stage, struct bucket_key *key)
{
	const struct ap_fusion *f = ap_comm_fusion(b->p->step, c->kind);
	int32_t number = number_of(b->p, t);

	memset(key, 0, sizeof *key);
	key->axes.n = c->axes.n;
	memcpy(key->axes.axis, c->axes.axis, (size_t)c->axes.n * sizeof *c->axes.axis);
	key->kind = (int32_t)c->kind;
	key->stage = stage;
	key->dtype = (int32_t)wire_type(b, t, c->phase);
	key->number = number < 0 ? 1 : number;
	if (c->kind == AP_COLL_ALLREDUCE) {
		int64_t position = b->met[stage]++;
		uint32_t n = 0;

		while (f->mode == AP_FUSION_INDEX && n < f->nindex && f->index[n] <= position)
			n++;
		key->cut = (int32_t)n;
	}
	if (f->mode == AP_FUSION_OFF || key->number == 0 || t->kind == AP_TENSOR_ACT ||
		!ap_task_fuses(b->p->graph, t))
		key->alone = 1 + (int32_t)b->members.n;
}

static void put(struct bucketing *b, ap_id node, uint32_t comm)
{
	const struct ap_comm *c = &b->p->op[node].comm[comm].comm;
	ap_id tensor = ap_plan_comm_tensor(b->p->graph, node, c);
	const struct ap_fusion *f = ap_comm_fusion(b->p->step, c->kind);
	int32_t stage = b->x->stage[b->x->part_of[node]];
	struct bucket_key key;
	struct ap_bucket *to;
	bool fresh;
	ap_id id;

	make_key(b, c, &b->p->graph->tensor[tensor], stage, &key);
	id = ap_map_put(b->keys, &key, sizeof key, &fresh);
	if (fresh)
		AP_PUSH(b->ctx->scratch, b->open, AP_NONE);
	to = fresh ? NULL : &b->buckets.v[b->open.v[id]];
	if (!to || (f->mode == AP_FUSION_SIZE && to->bytes + c->bytes > f->bytes)) {
		struct ap_bucket opened = {.kind = c->kind, .stage = stage, .axes = c->axes};

		b->open.v[id] = (uint32_t)b->buckets.n;
		AP_PUSH(b->ctx->scratch, b->buckets, opened);
		to = &b->buckets.v[b->open.v[id]];
	}
	to->bytes += c->bytes;
	to->n++;
	AP_PUSH(b->ctx->scratch, b->members, ((struct member){tensor, node, comm, b->open.v[id]}));
}

/* In the order in which gradients become ready: from the last part and operator to the first. */
static void put_gradients(struct bucketing *b)
{
	const struct ap_parts *x = b->x;

	for (uint32_t k = x->first[x->npart]; k-- > 0;) {
		ap_id node = x->node[k];

		for (uint32_t i = x->first_gradient[node]; i < x->first_gradient[node + 1]; i++)
			put(b, x->gradient[i].node, x->gradient[i].comm);
	}
}

static void price(struct ap_pricer *pricer, const struct ap_plan *p, struct ap_bucket *b)
{
	const struct ap_plan_comm *c = &p->op[b->part->node].comm[b->part->comm];
	struct ap_comm all = c->comm;

	all.bytes = b->bytes;
	b->time_s = b->n == 1 ? c->time_s : ap_comm_time_s(pricer, &all, NULL);
}

static struct ap_bucket *finish(struct bucketing *b)
{
	struct ap_arena *arena = b->ctx->arena;
	struct ap_bucket *out = AP_NEW_N(arena, struct ap_bucket, b->buckets.n);
	ap_id *tensor = AP_NEW_N(arena, ap_id, b->members.n), **tensors;
	struct ap_bucket_part *part = AP_NEW_N(arena, struct ap_bucket_part, b->members.n), **parts;
	uint32_t *number = AP_NEW_N(b->ctx->scratch, uint32_t, b->buckets.n), n = 0;
	uint32_t *left = AP_NEW_N(b->ctx->scratch, uint32_t, b->buckets.n);
	struct ap_pricer *pricer = NULL;

	/* Buckets are numbered by their last members. */
	for (size_t i = 0; i < b->buckets.n; i++)
		left[i] = b->buckets.v[i].n;
	for (size_t i = 0; i < b->members.n; i++)
		if (--left[b->members.v[i].bucket] == 0)
			number[b->members.v[i].bucket] = n++;
	tensors = AP_NEW_N(b->ctx->scratch, ap_id *, b->buckets.n);
	parts = AP_NEW_N(b->ctx->scratch, struct ap_bucket_part *, b->buckets.n);
	for (size_t i = 0; i < b->buckets.n; i++) {
		struct ap_bucket *to = &out[number[i]];

		*to = b->buckets.v[i];
		to->tensor = tensors[i] = tensor;
		to->part = parts[i] = part;
		tensor += to->n;
		part += to->n;
	}
	for (size_t i = 0; i < b->members.n; i++) {
		const struct member *m = &b->members.v[i];

		*tensors[m->bucket]++ = m->tensor;
		*parts[m->bucket]++ = (struct ap_bucket_part){m->node, m->comm};
	}
	for (size_t i = 0; i < b->buckets.n; i++) {
		if (out[i].n > 1 && !pricer)
			pricer = ap_pricer_create(b->ctx->scratch, b->p->machine, b->p->step);
		price(pricer, b->p, &out[i]);
	}
	for (size_t i = 0; i < b->members.n; i++)
		b->members.v[i].bucket = number[b->members.v[i].bucket];
	return out;
}

void ap_buckets_make(struct ap_ctx *ctx, const struct ap_parts *x, struct ap_buckets *out)
{
	const struct ap_plan *p = x->p;
	struct bucketing b = {.ctx = ctx, .p = p, .x = x, .keys = ap_map_create(ctx->scratch),
		.met = AP_NEW_N(ctx->scratch, int64_t, x->nstage)};
	uint32_t *bucket_of, at = 0;

	bucket_of = AP_NEW_N(ctx->scratch, uint32_t, x->first_gradient[p->graph->nnode]);
	put_gradients(&b);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		for (uint32_t c = 0; c < p->op[i].ncomm; c++)
			if (p->op[i].comm[c].comm.phase == AP_PHASE_OPTIMIZER)
				put(&b, i, c);
	out->v = finish(&b);
	out->n = (uint32_t)b.buckets.n;
	for (uint32_t k = x->first[x->npart]; k-- > 0;) {
		ap_id node = x->node[k];

		for (uint32_t i = x->first_gradient[node]; i < x->first_gradient[node + 1]; i++)
			bucket_of[i] = b.members.v[at++].bucket;
	}
	out->of = bucket_of;
}

#define ANY_BYTES 0x1p40 /* of a bucket that may have any number of collectives */

double ap_buckets_most_bytes(const struct ap_step *step, const struct ap_comm *c)
{
	const struct ap_fusion *f = ap_comm_fusion(step, c->kind);

	if (f->mode == AP_FUSION_INDEX)
		return ANY_BYTES;
	return f->mode == AP_FUSION_SIZE && f->bytes > c->bytes ? (double)f->bytes : (double)c->bytes;
}

static void explain_numbers(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_graph *g = p->graph;
	bool given = false;

	for (ap_id t = 0; t < g->ntensor; t++)
		given |= g->tensor[t].kind == AP_TENSOR_PARAM && g->tensor[t].comm_fusion >= 0;
	for (ap_id i = 0; i < g->nnode; i++)
		given |= g->node[i].fusion >= 0;
	if (given && !is_ascend(p))
		ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "fusion",
			"fusion and comm_fusion are without effect: %s is no Ascend processor",
			ap_diag_name(ctx->diag, p->machine->chip->name));
}

void ap_buckets_explain(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_graph *g = p->graph;

	explain_numbers(ctx, p);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM && g->tensor[t].trainable &&
			g->tensor[t].comm_fusion > 0 && !ap_task_fuses(g, &g->tensor[t]))
			ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "fusion",
				"parameter \"%s\" has comm_fusion %d, but its users compute in "
				"different types: its gradient is exchanged alone",
				ap_diag_name(ctx->diag, g->tensor[t].name), g->tensor[t].comm_fusion);
}
