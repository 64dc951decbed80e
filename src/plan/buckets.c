/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/buckets.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "plan/blocks.h"
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
	int32_t nalone; /* collectives that go with no others */
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
		key->alone = ++b->nalone;
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

/* The larger a bucket is, the less time a byte takes (hw/coll.h). */
double ap_buckets_least_s(struct ap_pricer *pricer, const struct ap_comm *c)
{
	double bytes = ap_buckets_most_bytes(ap_pricer_step(pricer), c);
	struct ap_comm all = *c;

	if (c->bytes == 0)
		return 0;
	all.bytes = (int64_t)bytes;
	return ap_comm_time_s(pricer, &all, NULL) / bytes * (double)c->bytes;
}

#define ANY_BYTES 0x1p40 /* of a bucket that may have any number of collectives */

/* Of a bucket with several collectives of a kind. */
static double room(const struct ap_step *step, enum ap_coll kind)
{
	const struct ap_fusion *f = ap_comm_fusion(step, kind);

	return f->mode == AP_FUSION_INDEX ? ANY_BYTES : f->mode == AP_FUSION_SIZE ? (double)f->bytes : 0;
}

double ap_buckets_most_bytes(const struct ap_step *step, const struct ap_comm *c)
{
	return fmax(room(step, c->kind), (double)c->bytes);
}

/* ---- the least in a block ---- */

enum { MOST_WAYS = 64 };
#define NONE UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)

struct kind { /* gradients that may share buckets */
	uint32_t after; /* those of another kind that its gradients follow on; NONE; SEVERAL */
	bool open; /* nobody knows whether its buckets are complete, but for gradients that fill one */
	bool seen;
	uint32_t run; /* of the last block that has some; its number, from 1 */
};

struct run { /* gradients of a kind in a block, in the order in which they go into buckets */
	uint32_t kind, nway;
	AP_VEC(uint32_t) v;
};

struct ap_bucket_ways {
	struct ap_ctx *ctx;
	const struct ap_parts *x;
	struct ap_pricer *pricer;
	const uint32_t *kind; /* [gradients] */
	const bool *shared; /* [gradients] several blocks use the parameter */
	struct kind *kinds;
	AP_VEC(struct run) runs; /* block by block */
	AP_VEC(uint32_t) block; /* the first run of each, and the end */
	uint32_t nway;
	uint32_t *of; /* [gradients] */
	struct ap_bucket *bucket; /* [gradients] */
	uint32_t nbucket;
};

static const struct ap_plan_comm *comm_of(const struct ap_bucket_ways *w, uint32_t gradient)
{
	return ap_gradient_comm(w->x->p, &w->x->gradient[gradient]);
}

static bool fills_one(const struct ap_bucket_ways *w, uint32_t gradient)
{
	const struct ap_comm *c = &comm_of(w, gradient)->comm;

	return ap_buckets_most_bytes(w->x->p->step, c) <= (double)c->bytes;
}

static bool is_shared(const struct ap_plan *p, const struct ap_tensor *t)
{
	for (uint32_t u = 1; u < t->nuse; u++)
		if (p->blocks->of[t->use[u].node] != p->blocks->of[t->use[0].node])
			return true;
	return false;
}

/* Tells the kinds of all gradients, in the order in which they go into buckets. */
static void tell_kinds(struct ap_bucket_ways *w)
{
	const struct ap_parts *x = w->x;
	const struct ap_plan *p = x->p;
	uint32_t n = x->first_gradient[p->graph->nnode];
	uint32_t *kind = AP_NEW_N(w->ctx->scratch, uint32_t, n);
	bool *shared = AP_NEW_N(w->ctx->scratch, bool, n);
	struct bucketing b = {.ctx = w->ctx, .p = p, .x = x, .keys = ap_map_create(w->ctx->scratch),
		.met = AP_NEW_N(w->ctx->scratch, int64_t, 1)};

	w->kind = kind;
	w->shared = shared;
	w->kinds = AP_NEW_N(w->ctx->scratch, struct kind, n);
	for (uint32_t k = x->first[x->npart]; k-- > 0;)
		for (uint32_t i = x->first_gradient[x->node[k]]; i < x->first_gradient[x->node[k] + 1]; i++) {
			const struct ap_comm *c = &comm_of(w, i)->comm;
			const struct ap_tensor *t = &p->graph->tensor[ap_plan_comm_tensor(p->graph,
				x->gradient[i].node, c)];
			uint32_t after = x->gradient[i].chained ? kind[i - 1] : NONE;
			struct bucket_key key;
			struct kind *own;

			make_key(&b, c, t, 0, &key);
			kind[i] = ap_map_put(b.keys, &key, sizeof key, NULL);
			shared[i] = is_shared(p, t);
			own = &w->kinds[kind[i]];
			own->after = own->seen && own->after != after ? SEVERAL : after;
			own->seen = true;
			own->open = own->open || own->after == SEVERAL || (shared[i] && !fills_one(w, i));
		}
}

static struct run *run_of(struct ap_bucket_ways *w, uint32_t first, uint32_t kind)
{
	if (w->kinds[kind].run <= first) {
		AP_PUSH(w->ctx->scratch, w->runs, ((struct run){.kind = kind}));
		w->kinds[kind].run = (uint32_t)w->runs.n;
	}
	return &w->runs.v[w->kinds[kind].run - 1];
}

/* How many of a run may join a bucket of other blocks: none, or one, .. 0: too little is known, or all
 * may. */
static uint32_t count_ways(const struct ap_bucket_ways *w, const struct run *r)
{
	double most = room(w->x->p->step, comm_of(w, r->v.v[0])->comm.kind), bytes = 0;
	bool known = !w->kinds[r->kind].open;
	uint32_t n = 0;

	for (size_t i = 0; i < r->v.n; i++) {
		bytes += (double)comm_of(w, r->v.v[i])->comm.bytes;
		n += bytes <= most && n == i;
		known = known && !w->shared[r->v.v[i]];
	}
	return known && bytes > most ? n + 1 : 0;
}

/* Those of a block: what all runs have together, or some of them, if that is too much. */
static void close_block(struct ap_bucket_ways *w, uint32_t first)
{
	uint32_t ways = 1;

	for (size_t r = first; r < w->runs.n; r++) {
		struct run *run = &w->runs.v[r];

		run->nway = count_ways(w, run);
		if (run->nway > MOST_WAYS / ways)
			run->nway = 0;
		ways *= run->nway ? run->nway : 1;
	}
	w->nway = ways > w->nway ? ways : w->nway;
}

struct ap_bucket_ways *ap_bucket_ways_make(struct ap_ctx *ctx, const struct ap_parts *x)
{
	struct ap_bucket_ways *w = AP_NEW(ctx->scratch, struct ap_bucket_ways);
	uint32_t n = x->first_gradient[x->p->graph->nnode], first = 0, at = NONE;

	*w = (struct ap_bucket_ways){.ctx = ctx, .x = x, .nway = 1,
		.pricer = ap_pricer_create(ctx->scratch, x->p->machine, x->p->step),
		.of = AP_NEW_N(ctx->scratch, uint32_t, n),
		.bucket = AP_NEW_N(ctx->scratch, struct ap_bucket, n)};
	tell_kinds(w);
	for (uint32_t k = x->first[x->npart]; k-- > 0;) {
		ap_id node = x->node[k];

		if (x->p->blocks->of[node] != at) {
			close_block(w, first);
			first = (uint32_t)w->runs.n;
			AP_PUSH(ctx->scratch, w->block, first);
			at = x->p->blocks->of[node];
		}
		for (uint32_t i = x->first_gradient[node]; i < x->first_gradient[node + 1]; i++)
			AP_PUSH(ctx->scratch, run_of(w, first, w->kind[i])->v, i);
	}
	close_block(w, first);
	AP_PUSH(ctx->scratch, w->block, (uint32_t)w->runs.n);
	return w;
}

uint32_t ap_bucket_ways_count(const struct ap_bucket_ways *w)
{
	return w->nway;
}

/* Puts gradient i into the last bucket, or a new one, which is returned. */
static struct ap_bucket *fill(struct ap_bucket_ways *w, uint32_t i, bool fresh)
{
	const struct ap_comm *c = &comm_of(w, i)->comm;
	struct ap_bucket *to;

	if (fresh)
		w->bucket[w->nbucket++] = (struct ap_bucket){.kind = c->kind, .axes = c->axes};
	to = &w->bucket[w->nbucket - 1];
	to->bytes += c->bytes;
	to->n++;
	w->of[i] = w->nbucket - 1;
	return to;
}

/* Those of which `joined` gradients come into a bucket of other blocks. */
static void fill_run(struct ap_bucket_ways *w, const struct run *r, uint32_t joined)
{
	double most = room(w->x->p->step, comm_of(w, r->v.v[0])->comm.kind);
	struct ap_bucket *to = NULL;

	for (size_t i = 0; i < r->v.n; i++) {
		const struct ap_plan_comm *c = comm_of(w, r->v.v[i]);

		to = fill(w, r->v.v[i], i == 0 || i == joined ||
			(i > joined && (double)(to->bytes + c->comm.bytes) > most));
		if (i < joined)
			to->time_s += ap_buckets_least_s(w->pricer, &c->comm);
		else if (to->n == 1) {
			to->time_s = c->time_s;
		} else {
			struct ap_comm all = c->comm;

			all.bytes = to->bytes;
			to->time_s = ap_comm_time_s(w->pricer, &all, NULL);
		}
	}
	to->n += (double)to->bytes < most; /* it may wait for other blocks */
}

/* Those of which only gradients that fill a bucket are known to be exchanged. */
static void fill_alone(struct ap_bucket_ways *w, const struct run *r)
{
	for (size_t i = 0; i < r->v.n; i++) {
		uint32_t g = r->v.v[i];
		struct ap_bucket *to = fill(w, g, true);

		to->time_s = comm_of(w, g)->time_s;
		to->n += w->shared[g] || !fills_one(w, g);
	}
}

void ap_bucket_ways_at(struct ap_bucket_ways *w, uint32_t way, struct ap_buckets *out)
{
	w->nbucket = 0;
	for (size_t b = 0; b + 1 < w->block.n; b++) {
		uint32_t left = way;

		for (uint32_t r = w->block.v[b]; r < w->block.v[b + 1]; r++) {
			const struct run *run = &w->runs.v[r];

			if (run->nway == 0) {
				fill_alone(w, run);
				continue;
			}
			fill_run(w, run, left % run->nway);
			left /= run->nway;
		}
	}
	*out = (struct ap_buckets){w->nbucket, w->bucket, w->of};
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
