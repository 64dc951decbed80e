/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/opcost.h"
#include "pipeline/schedule.h"
#include "plan/liveness.h"
#include "plan/terms.h"

#define MOST_NAMED 3
#define MOST_LETTERS 80 /* of a name in a message, base/diag.h */

static bool recomputes(const struct ap_plan *p)
{
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->task[i].recompute_set != AP_NONE)
			return true;
	return false;
}

/* Sets are recomputed one at a time, but may overlap: one is needed until the next has begun. */
static void add_recompute(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_plan_stage *stage)
{
	struct ap_parts index;
	struct ap_live live;
	const int64_t *bytes;

	if (!recomputes(p))
		return;
	ap_parts_make(ctx, p, &index);
	ap_live_make(ctx, &index, false, &live);
	bytes = ap_live_recomputed(ctx, &index, &live);
	for (int32_t s = 0; s < index.nstage; s++)
		stage[s].memory.recompute = bytes[s];
}

/* Does the redistribution keep a copy? One that is made again counts as recomputed. */
static bool holds(const struct ap_plan *p, const struct ap_plan_move *move)
{
	return move->from != AP_NONE && !p->task[move->to].in[move->operand].again;
}

/* Activations of a stage. */
struct kept {
	int64_t once; /* bytes */
	int64_t *each, *late; /* [segments] bytes of one micro-batch */
};

static struct kept *kept_of(struct ap_ctx *ctx, const struct ap_plan *p)
{
	struct kept *k = AP_NEW_N(ctx->scratch, struct kept, p->machine->nstage);
	int32_t nsegment = p->step->pipe ? p->step->pipe->nsegment : 1;

	for (uint32_t s = 0; s < p->machine->nstage; s++) {
		k[s].each = AP_NEW_N(ctx->scratch, int64_t, nsegment);
		k[s].late = AP_NEW_N(ctx->scratch, int64_t, nsegment);
	}
	return k;
}

static int32_t segment_of(const struct ap_plan *p, ap_id node)
{
	int32_t segment = p->graph->node[node].segment;

	return p->step->pipe && segment > 0 ? segment : 0;
}

static void add_operators(const struct ap_plan *p, struct ap_plan_stage *stage, struct kept *kept)
{
	for (ap_id i = 0; i < p->graph->nnode; i++) {
		struct ap_plan_stage *s = &stage[ap_plan_op_stage(p, i)];
		struct kept *k = &kept[ap_plan_op_stage(p, i)];
		const struct ap_op_cost *c = &p->op[i].cost;

		s->noperator++;
		s->memory.weights += c->weight_bytes;
		s->memory.gathered += c->gathered_bytes;
		s->memory.gradients += c->gradient_bytes;
		s->memory.optimizer += c->optimizer_bytes;
		*(p->task[i].once ? &k->once : &k->each[segment_of(p, i)]) += c->activation_bytes;
		k->late[segment_of(p, i)] += c->late_bytes;
		if (c->temporary_bytes > s->memory.temporary)
			s->memory.temporary = c->temporary_bytes;
	}
	for (uint32_t i = 0; i < p->nmove; i++) {
		const struct ap_plan_move *m = &p->move[i];
		struct kept *k = &kept[ap_plan_op_stage(p, m->to)];

		if (holds(p, m))
			*(p->task[m->to].once ? &k->once : &k->each[segment_of(p, m->to)]) +=
				m->cost.kept_bytes;
	}
}

/* The micro-batches held at instant i of stage s, by segment. */
static void look(const struct ap_pipe *pipe, uint32_t s, uint32_t i, const int64_t **held,
	const int64_t **late)
{
	static const int64_t one[] = {1};
	size_t n = pipe ? (size_t)pipe->nsegment : 1;

	if (pipe && pipe->instants) {
		*held = pipe->instants[s].held + i * n;
		*late = pipe->instants[s].late ? pipe->instants[s].late + i * n : NULL;
	} else {
		*held = pipe ? pipe->in_flight + s * n : one;
		*late = pipe && pipe->late ? pipe->late + s * n : NULL;
	}
}

/* Finds the instant at which a stage holds most bytes. */
static void add_activations(const struct ap_pipe *pipe, uint32_t s, const struct kept *k,
	struct ap_plan_stage *stage)
{
	uint32_t n = pipe && pipe->instants ? pipe->instants[s].n : 1;
	int32_t nsegment = pipe ? pipe->nsegment : 1;
	int64_t most = -1;

	for (uint32_t i = 0; i < n; i++) {
		const int64_t *held, *late;
		int64_t bytes = k->once, passes = 0;

		look(pipe, s, i, &held, &late);
		for (int32_t v = 0; v < nsegment; v++) {
			passes += held[v];
			bytes += held[v] * k->each[v] + (late ? late[v] * k->late[v] : 0);
		}
		stage->in_flight = passes > stage->in_flight ? passes : stage->in_flight;
		if (bytes <= most)
			continue;
		most = bytes;
		stage->instant = i;
		stage->held = held;
		stage->late = late;
	}
	stage->memory.activations = most;
}

int64_t ap_plan_activation_bytes(const struct ap_plan *p, ap_id node)
{
	const struct ap_plan_stage *s = &p->stage[ap_plan_op_stage(p, node)];
	const struct ap_op_cost *c = &p->op[node].cost;
	int32_t v = segment_of(p, node);

	return p->task[node].once ? c->activation_bytes
		: c->activation_bytes * s->held[v] + (s->late ? c->late_bytes * s->late[v] : 0);
}

int64_t ap_plan_move_kept_bytes(const struct ap_plan *p, const struct ap_plan_move *m)
{
	return !holds(p, m) || p->task[m->to].once ? m->cost.kept_bytes
		: m->cost.kept_bytes * p->stage[ap_plan_op_stage(p, m->to)].held[segment_of(p, m->to)];
}

int64_t ap_plan_move_activation_bytes(const struct ap_plan *p, const struct ap_plan_move *m)
{
	return holds(p, m) ? ap_plan_move_kept_bytes(p, m) : 0;
}

int64_t ap_plan_op_memory_bytes(const struct ap_plan *p, ap_id node)
{
	struct ap_op_cost c = p->op[node].cost;
	struct ap_task one = p->task[node];

	c.activation_bytes = ap_plan_activation_bytes(p, node);
	one.in_flight = 1;
	one.late = 0;
	return ap_op_cost_memory_bytes(&c, &one);
}

const struct ap_step *ap_plan_weigh(struct ap_ctx *ctx, const struct ap_plan *p,
	const struct ap_step *step)
{
	const struct ap_pipe *pipe = step->pipe;
	struct ap_step *out;
	uint32_t *at;
	size_t bytes;

	if (!pipe || !pipe->instants)
		return step;
	bytes = (size_t)pipe->nstage * (size_t)pipe->nsegment * sizeof *pipe->in_flight;
	at = AP_NEW_N(ctx->arena, uint32_t, pipe->nstage);
	for (uint32_t s = 0; s < p->nstage; s++)
		at[s] = p->stage[s].instant;
	out = ap_arena_memdup(ctx->arena, step, sizeof *step);
	out->pipe = ap_schedule_at(ctx->arena, pipe, at);
	return memcmp(out->pipe->in_flight, pipe->in_flight, bytes) == 0 &&
		(!pipe->late || memcmp(out->pipe->late, pipe->late, bytes) == 0) ? step : out;
}

const struct ap_plan_stage *ap_plan_stages(struct ap_ctx *ctx, const struct ap_plan *p)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_software *sw = p->step->software;
	uint32_t n = p->machine->nstage;
	struct ap_plan_stage *stage = AP_NEW_N(ctx->arena, struct ap_plan_stage, n);
	struct kept *kept = kept_of(ctx, p);

	add_operators(p, stage, kept);
	add_recompute(ctx, p, stage);
	for (uint32_t s = 0; s < n; s++) {
		struct ap_memory *m = &stage[s].memory;

		stage[s].first_rank = ap_machine_first(p->machine, (int32_t)s);
		stage[s].devices = ap_machine_at(p->machine, (int32_t)s)->ndev;
		add_activations(p->step->pipe, s, &kept[s], &stage[s]);
		m->context = sw ? sw->context_bytes : 0;
		m->buffers = sw && p->machine->total > 1 ? sw->comm_buffer_bytes : 0;
		m->total = m->weights + m->gathered + m->gradients + m->optimizer +
			m->activations + m->recompute + m->temporary + m->context + m->buffers;
	}
	ap_arena_release(ctx->scratch, mark);
	return stage;
}

struct share {
	const char *name;
	int64_t bytes;
	uint32_t order;
};

static int by_bytes(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void add_shares(struct ap_str *s, struct share *v, size_t n, const char *quote)
{
	char text[32];

	qsort(v, n, sizeof *v, by_bytes);
	for (size_t i = 0; i < n && i < MOST_NAMED && v[i].bytes > 0; i++)
		ap_str_addf(s, "%s%s%s%s %s", i ? ", " : "", quote, v[i].name, quote,
			ap_format_bytes(v[i].bytes, text));
}

static void add_kinds(struct ap_str *s, const struct ap_memory *m)
{
	struct share v[] = {{"weights", m->weights, 0}, {"gathered weights", m->gathered, 1},
		{"gradients", m->gradients, 2}, {"optimizer states", m->optimizer, 3},
		{"activations", m->activations, 4}, {"recomputed activations", m->recompute, 5},
		{"temporary", m->temporary, 6}, {"context", m->context, 7}, {"buffers", m->buffers, 8}};

	add_shares(s, v, AP_COUNT(v), "");
}

static uint32_t worst_stage(const struct ap_plan *p)
{
	uint32_t worst = 0;

	for (uint32_t s = 1; s < p->nstage; s++)
		if (p->stage[s].memory.total > p->stage[worst].memory.total)
			worst = s;
	return worst;
}

/* Messages cut long names at the end, which tells them apart: the cell replaces the scope. */
static const char *name_of(struct ap_ctx *ctx, const struct ap_node *n)
{
	const char *last = strrchr(n->name, '/');

	return ap_diag_name(ctx->diag, strlen(n->name) > MOST_LETTERS && *n->cell && last
		? ap_arena_printf(ctx->arena, "%s%s", n->cell, last) : n->name);
}

const char *ap_memory_contributors(struct ap_ctx *ctx, const struct ap_plan *p)
{
	uint32_t worst = worst_stage(p), n = 0;
	struct share *v = AP_NEW_N(ctx->arena, struct share, p->graph->nnode);
	struct ap_str s;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->nstage == 1 || p->graph->node[i].stage == (int32_t)worst)
			v[n++] = (struct share){name_of(ctx, &p->graph->node[i]),
				ap_plan_op_memory_bytes(p, i), i};
	ap_str_init(&s, ctx->arena);
	add_kinds(&s, &p->stage[worst].memory);
	ap_str_add(&s, "; of operators ");
	add_shares(&s, v, n, "\"");
	return s.s;
}
