/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/schedule.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "plan/schedule_orders.h"

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
#include "plan/schedulers.def"
#undef SCHEDULER
};

const struct ap_scheduler *ap_scheduler_at(size_t i)
{
	return i < sizeof schedulers / sizeof *schedulers ? &schedulers[i] : NULL;
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

/* The most micro-batches that have been through one pass of each segment of a stage and not through
 * another: most[nsegment]. */
static void count_between(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int32_t stage, int64_t nmicro, enum ap_pass first, int64_t *most)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_slot *slot =
		s->order(ctx->scratch, nstage, nsegment, stage, (int32_t)nmicro);
	int64_t *held = AP_NEW_N(ctx->scratch, int64_t, nsegment);
	enum ap_pass last = s->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD;

	for (size_t i = 0; i < ap_schedule_slots(s, nsegment, nmicro); i++) {
		int64_t *h = &held[slot[i].segment];

		*h += (slot[i].pass == first) - (slot[i].pass == last);
		if (*h > most[slot[i].segment])
			most[slot[i].segment] = *h;
	}
	ap_arena_release(ctx->scratch, mark);
}

void ap_schedule_pipe(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int64_t nmicro, struct ap_pipe *out)
{
	size_t n = (size_t)nstage * (size_t)nsegment;
	int64_t *in_flight = AP_NEW_N(ctx->arena, int64_t, n);
	int64_t *late = s->splits ? AP_NEW_N(ctx->arena, int64_t, n) : NULL;

	assert(!s->refuses(nstage, nsegment, nmicro) && nmicro <= INT32_MAX);
	for (int32_t stage = 0; stage < nstage; stage++) {
		count_between(ctx, s, nstage, nsegment, stage, nmicro, AP_PASS_FORWARD,
			&in_flight[stage * nsegment]);
		if (late)
			count_between(ctx, s, nstage, nsegment, stage, nmicro, AP_PASS_BACKWARD,
				&late[stage * nsegment]);
	}
	*out = (struct ap_pipe){.nstage = nstage, .nsegment = nsegment, .scheduler = s,
		.in_flight = in_flight, .late = late};
}
