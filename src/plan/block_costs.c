/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/block_costs.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "plan/blocks.h"
#include "plan/buckets.h"
#include "plan/whole_step.h"

/* What makes blocks equal; without padding. */
struct key {
	double forward_s, backward_s, weight_s, left_s, collectives_s, update_s;
	int64_t kept, late, once, again, temporary, fixed, shared;
	uint32_t nlayer, noperator;
};

static void add_passes(const struct ap_whole_step *w, struct ap_block_cost *out)
{
	for (int32_t part = 0; part < w->x.npart; part++)
		for (int pass = 0; pass <= AP_PASS_WEIGHT; pass++) {
			const struct ap_pass_run *run = &w->part[part].run[pass];

			for (size_t i = 0; i < run->blocks.n; i++) {
				const struct ap_pass_block *b = &run->blocks.v[i];
				struct ap_block_cost *c = &out[b->block];
				double *s = pass == AP_PASS_FORWARD ? &c->forward_s
					: pass == AP_PASS_BACKWARD  ? &c->backward_s
								    : &c->weight_s;

				*s = b->own_s;
				c->left_s += b->left_s;
				if (pass == (w->maker.splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD))
					c->collectives_s = b->collectives_s;
			}
		}
}

/* Reductions that no block before it adds to. */
static void add_left(struct ap_whole_step *w, struct ap_block_cost *out)
{
	bool splits = w->maker.splits, waits = false;

	for (int32_t part = 0; part < w->x.npart; part++) {
		struct ap_pass_run run;

		ap_pass_make(&w->maker, part, splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD, AP_PASS_APART,
			&run);
		for (size_t i = 0; i < run.blocks.n; i++) {
			const struct ap_pass_block *b = &run.blocks.v[i];
			struct ap_block_cost *c = &out[b->block];

			c->least_left_s = b->left_s;
			waits = waits || b->own_s < (splits ? c->weight_s : c->backward_s);
		}
	}
	for (uint32_t b = 0; waits && b < w->x.p->blocks->n; b++)
		out[b].least_left_s = 0;
}

/* The last passes, in which gradients are exchanged: of all ways in which they may go into buckets the least,
 * block by block. */
static void add_last(struct ap_ctx *ctx, struct ap_whole_step *w, struct ap_block_cost *out)
{
	bool splits = w->maker.splits;
	struct ap_bucket_ways *ways = ap_bucket_ways_make(ctx, &w->x);

	for (uint32_t b = 0; b < w->x.p->blocks->n; b++)
		out[b].last_s = w->x.p->step->training ? INFINITY : out[b].backward_s + out[b].weight_s;
	for (uint32_t way = 0; w->x.p->step->training && way < ap_bucket_ways_count(ways); way++) {
		struct ap_pass_maker maker;
		struct ap_buckets buckets;
		struct ap_mark mark;

		ap_bucket_ways_at(ways, way, &buckets);
		mark = ap_arena_mark(ctx->scratch);
		ap_pass_maker_init(ctx, &w->x, &w->live, &buckets, splits, false, &maker);
		for (int32_t part = w->x.npart; part-- > 0;) {
			struct ap_pass_run run;

			ap_pass_make(&maker, part, splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD, AP_PASS_LEAST,
				&run);
			for (size_t i = 0; i < run.blocks.n; i++) {
				struct ap_block_cost *c = &out[run.blocks.v[i].block];

				c->last_s = fmin(c->last_s,
					(splits ? c->backward_s : 0) + run.blocks.v[i].own_s);
			}
		}
		ap_arena_release(ctx->scratch, mark);
	}
	for (uint32_t b = 0; b < w->x.p->blocks->n; b++) /* nothing of it runs with every micro-batch */
		if (!(out[b].last_s < INFINITY))
			out[b].last_s = out[b].backward_s + out[b].weight_s;
}

static void add_operator(const struct ap_whole_step *w, ap_id node, struct ap_block_cost *c)
{
	const struct ap_op_cost *op = &w->x.p->op[node].cost;

	c->noperator++;
	c->static_bytes += op->weight_bytes + op->gathered_bytes + op->gradient_bytes + op->optimizer_bytes;
	c->kept_bytes += w->live.kept[node];
	c->late_bytes += w->live.late[node];
	c->once_bytes += w->x.p->task[node].once ? op->activation_bytes : 0;
	c->update_s += ap_whole_step_update_s(w->x.p, node);
	if (op->temporary_bytes > c->temporary_bytes)
		c->temporary_bytes = op->temporary_bytes;
}

/* Constants, which each stage has under one name: of several blocks, or their own. */
struct constants {
	struct ap_map *names;
	uint32_t *block, *nblock; /* by names: the block that read it last, from 1; number of them */
};

/* Is the tensor a constant that this block reads for the first time? *id: by names. */
static bool is_first(struct constants *c, const struct ap_tensor *t, uint32_t block, ap_id *id)
{
	if (t->kind != AP_TENSOR_CONST)
		return false;
	*id = ap_map_put_str(c->names, t->name, NULL);
	if (c->block[*id] == block + 1)
		return false;
	c->block[*id] = block + 1;
	return true;
}

/* Puts constants of several blocks from the bytes of their owners to those of all readers. */
static void add_constants(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_block_cost *out)
{
	const struct ap_graph *g = p->graph;
	struct constants c = {ap_map_create(ctx->scratch), AP_NEW_N(ctx->scratch, uint32_t, g->ntensor),
		AP_NEW_N(ctx->scratch, uint32_t, g->ntensor)};
	ap_id id;

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint32_t k = 0; k < g->node[i].bound.nin; k++)
			if (is_first(&c, &g->tensor[g->node[i].in[k]], p->blocks->of[i], &id))
				c.nblock[id]++;
	memset(c.block, 0, g->ntensor * sizeof *c.block);
	for (ap_id i = 0; i < g->nnode; i++)
		for (uint32_t k = 0; k < g->node[i].bound.nin; k++) {
			const struct ap_task_operand *in = &p->task[i].in[k];
			struct ap_block_cost *to = &out[p->blocks->of[i]];
			bool first = is_first(&c, &g->tensor[g->node[i].in[k]], p->blocks->of[i], &id);
			int64_t bytes;

			if (in->kind != AP_TENSOR_CONST || (!first && !in->owner))
				continue;
			id = ap_map_get_str(c.names, g->tensor[g->node[i].in[k]].name);
			if (c.nblock[id] < 2)
				continue;
			bytes = ap_local_bytes(&g->node[i].bound.in[k], in->batch, &p->op[i].place, p->step);
			to->static_bytes -= in->owner ? bytes : 0;
			to->shared_bytes += first ? bytes : 0;
		}
}

/* The most recomputed bytes held at once, block by block. */
static void add_again(struct ap_ctx *ctx, const struct ap_whole_step *w, struct ap_block_cost *out)
{
	const struct ap_live *live = &w->live;
	int64_t *held = AP_NEW_N(ctx->scratch, int64_t, w->x.p->blocks->n);

	for (uint32_t k = w->x.first[w->x.npart]; k-- > 0;) {
		ap_id node = w->x.node[k];
		uint32_t b = w->x.p->blocks->of[node];

		for (uint32_t s = live->sets_at[node]; s != AP_NONE; s = live->next_set[s])
			for (uint32_t i = live->set_first[s]; i < live->set_first[s + 1]; i++)
				held[b] += live->again[live->set_node[i]];
		if (held[b] > out[b].again_bytes)
			out[b].again_bytes = held[b];
		held[b] -= live->freed_again[node];
	}
}

/* A bucket's time is divided among its collectives by bytes. */
static void add_buckets(struct ap_ctx *ctx, const struct ap_whole_step *w, struct ap_block_cost *out)
{
	struct ap_pricer *pricer = ap_pricer_create(ctx->scratch, w->x.p->machine, w->x.p->step);

	for (uint32_t k = 0; k < w->buckets.n; k++) {
		const struct ap_bucket *b = &w->buckets.v[k];
		bool gathers = ap_whole_step_gathers(w->x.p, b);

		for (uint32_t i = 0; i < b->n; i++) {
			const struct ap_bucket_part *part = &b->part[i];
			const struct ap_comm *comm = &w->x.p->op[part->node].comm[part->comm].comm;
			struct ap_block_cost *c = &out[w->x.p->blocks->of[part->node]];

			*(gathers ? &c->gather_s : &c->exchange_s) +=
				b->time_s * ((double)comm->bytes / (double)b->bytes);
			*(gathers ? &c->least_gather_s : &c->least_exchange_s) +=
				ap_buckets_least_s(pricer, comm);
		}
	}
}

static void count_layers(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_block_cost *out)
{
	const struct ap_blocks *b = p->blocks;
	uint32_t *seen = AP_NEW_N(ctx->scratch, uint32_t, b->nlayer); /* block, from 1 */

	for (ap_id i = 0; i < p->graph->nnode; i++) {
		int32_t layer = b->layer_of[i];

		if (layer < 0 || seen[layer] == b->of[i] + 1)
			continue;
		seen[layer] = b->of[i] + 1;
		out[b->of[i]].nlayer++;
	}
}

static uint32_t class_of(struct ap_map *classes, const struct ap_block_cost *c)
{
	const struct key key = {c->forward_s, c->backward_s, c->weight_s, c->left_s, c->collectives_s,
		c->update_s, c->kept_bytes, c->late_bytes, c->once_bytes, c->again_bytes, c->temporary_bytes,
		c->static_bytes, c->shared_bytes, c->nlayer, c->noperator};

	return ap_map_put(classes, &key, sizeof key, NULL);
}

const struct ap_block_cost *ap_block_costs_make(struct ap_ctx *ctx, const struct ap_plan *p)
{
	struct ap_block_cost *out = AP_NEW_N(ctx->arena, struct ap_block_cost, p->blocks->n);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *classes = ap_map_create(ctx->scratch);
	struct ap_whole_step w;

	ap_whole_step_passes(ctx, p, &w);
	for (uint32_t b = 0; b < p->blocks->n; b++) {
		out[b].part = p->blocks->part[b];
		out[b].layer = p->blocks->layer[b];
	}
	for (ap_id i = 0; i < p->graph->nnode; i++)
		add_operator(&w, i, &out[p->blocks->of[i]]);
	add_passes(&w, out);
	add_left(&w, out);
	add_last(ctx, &w, out);
	add_again(ctx, &w, out);
	add_buckets(ctx, &w, out);
	add_constants(ctx, p, out);
	count_layers(ctx, p, out);
	for (uint32_t b = 0; b < p->blocks->n; b++)
		out[b].class = class_of(classes, &out[b]);
	ap_arena_release(ctx->scratch, mark);
	return out;
}
