/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/schedule.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "pipeline/schedule_orders.h"

static const char *takes_any(int32_t nstage, int32_t nsegment, int64_t nmicro)
{
	(void)nstage;
	(void)nsegment;
	(void)nmicro;
	return NULL;
}

static const char *needs_a_round(int32_t nstage, int32_t nsegment, int64_t nmicro)
{
	(void)nsegment;
	return nmicro < nstage ? "needs at least as many micro-batches as stages" : NULL;
}

static const struct ap_scheduler schedulers[] = {
#define SCHEDULER(name, order, refuses, splits, vee, least, most, help)                            \
	{name, help, splits, vee, least, most, order, refuses},
#include "pipeline/schedulers.def"
#undef SCHEDULER
};

const struct ap_scheduler *ap_scheduler_at(size_t i)
{
	return i < AP_COUNT(schedulers) ? &schedulers[i] : NULL;
}

const struct ap_scheduler *ap_scheduler_find(const char *name)
{
	for (size_t i = 0; ap_scheduler_at(i); i++) {
		if (strcmp(schedulers[i].name, name) == 0)
			return &schedulers[i];
	}
	return NULL;
}

size_t ap_schedule_slots(const struct ap_scheduler *s, int32_t nsegment, int64_t nmicro)
{
	return (size_t)(s->splits ? 3 : 2) * (size_t)nsegment * (size_t)nmicro;
}

void ap_schedule_spot(const struct ap_scheduler *s, int32_t nstage, int32_t part, int32_t *stage,
	int32_t *segment)
{
	int32_t at = part % nstage;

	*segment = part / nstage;
	*stage = s->vee && *segment % 2 ? nstage - 1 - at : at;
}

int32_t ap_schedule_part(
	const struct ap_scheduler *s, int32_t nstage, int32_t stage, int32_t segment)
{
	return segment * nstage + (s->vee && segment % 2 ? nstage - 1 - stage : stage);
}

struct counting {
	struct ap_ctx *ctx;
	const struct ap_scheduler *s;
	size_t n; /* counts of an instant: held by segment, then late */
	int32_t nsegment;
	struct ap_map *seen;
	AP_VEC(const int64_t *) tops; /* distinct instants [n], in order of time */
};

/* The last state before a stage gives something back: of all in between none holds more. */
static void note_tops(struct counting *c, const struct ap_schedule_slot *slot, int64_t nmicro)
{
	struct ap_arena *scratch = c->ctx->scratch;
	size_t nslot = ap_schedule_slots(c->s, c->nsegment, nmicro);
	enum ap_pass last = c->s->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;
	int64_t *now = AP_NEW_N(scratch, int64_t, 2 * c->nsegment);
	const int64_t *top;

	for (size_t i = 0; i < nslot; i++) {
		int64_t *held = &now[slot[i].segment], *late = held + c->nsegment;
		bool gives = slot[i].pass == last, fresh;

		*held += (slot[i].pass == AP_PASS_FORWARD) - gives;
		if (c->s->splits)
			*late += (slot[i].pass == AP_PASS_BACKWARD) - gives;
		if (gives || (i + 1 < nslot && slot[i + 1].pass != last))
			continue;
		ap_map_put(c->seen, now, c->n * sizeof *now, &fresh);
		if (!fresh)
			continue;
		top = ap_arena_memdup(scratch, now, c->n * sizeof *now);
		AP_PUSH(scratch, c->tops, top);
	}
}

static int64_t sum_of(const int64_t *count, size_t n)
{
	int64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += count[i];
	return sum;
}

static bool holds_as_much(const int64_t *a, const int64_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i] < b[i])
			return false;
	return true;
}

/* Distinct instants: only one of a larger sum holds as much of every segment. */
static bool is_dominated(const struct counting *c, const int64_t *sum, size_t i)
{
	for (size_t k = 0; k < c->tops.n; k++)
		if (sum[k] > sum[i] && holds_as_much(c->tops.v[k], c->tops.v[i], c->n))
			return true;
	return false;
}

/* *best: the instant of the largest sum. */
static void take_instants(const struct counting *c, struct ap_instants *out, uint32_t *best)
{
	struct ap_arena *arena = c->ctx->arena;
	size_t n = c->tops.n, m = (size_t)c->nsegment;
	int64_t *sum = AP_NEW_N(c->ctx->scratch, int64_t, n), most = 0;
	int64_t *held = AP_NEW_N(arena, int64_t, n * m);
	int64_t *late = c->s->splits ? AP_NEW_N(arena, int64_t, n * m) : NULL;

	*out = (struct ap_instants){.held = held, .late = late};
	for (size_t i = 0; i < n; i++)
		sum[i] = sum_of(c->tops.v[i], c->n);
	for (size_t i = 0; i < n; i++) {
		const int64_t *count = c->tops.v[i];

		if (is_dominated(c, sum, i))
			continue;
		memcpy(held + out->n * m, count, m * sizeof *held);
		if (late)
			memcpy(late + out->n * m, count + m, m * sizeof *late);
		if (sum[i] > most) {
			most = sum[i];
			*best = out->n;
		}
		out->n++;
	}
}

static void count_stage(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int32_t stage, int64_t nmicro, struct ap_instants *out, uint32_t *best)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct counting c = {.ctx = ctx, .s = s, .nsegment = nsegment,
		.n = (s->splits ? 2 : 1) * (size_t)nsegment, .seen = ap_map_create(ctx->scratch)};

	note_tops(&c, s->order(ctx->scratch, nstage, nsegment, stage, (int32_t)nmicro), nmicro);
	take_instants(&c, out, best);
	ap_arena_release(ctx->scratch, mark);
}

const struct ap_pipe *ap_schedule_at(struct ap_arena *arena, const struct ap_pipe *pipe,
	const uint32_t *at)
{
	struct ap_pipe *out = ap_arena_memdup(arena, pipe, sizeof *pipe);
	size_t m = (size_t)pipe->nsegment, n = (size_t)pipe->nstage * m;
	int64_t *in_flight = AP_NEW_N(arena, int64_t, n);
	int64_t *late = pipe->scheduler->splits ? AP_NEW_N(arena, int64_t, n) : NULL;

	for (size_t s = 0; s < (size_t)pipe->nstage; s++) {
		const struct ap_instants *x = &pipe->instants[s];

		memcpy(in_flight + s * m, x->held + at[s] * m, m * sizeof *in_flight);
		if (late)
			memcpy(late + s * m, x->late + at[s] * m, m * sizeof *late);
	}
	out->in_flight = in_flight;
	out->late = late;
	return out;
}

void ap_schedule_pipe(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int64_t nmicro, struct ap_pipe *out)
{
	struct ap_instants *instants = AP_NEW_N(ctx->arena, struct ap_instants, nstage);
	uint32_t *best = AP_NEW_N(ctx->arena, uint32_t, nstage);

	assert(!s->refuses(nstage, nsegment, nmicro) && nmicro <= INT32_MAX);
	*out = (struct ap_pipe){.nstage = nstage, .nsegment = nsegment, .scheduler = s,
		.instants = instants};
	for (int32_t stage = 0; stage < nstage; stage++)
		count_stage(ctx, s, nstage, nsegment, stage, nmicro, &instants[stage], &best[stage]);
	*out = *ap_schedule_at(ctx->arena, out, best);
}
