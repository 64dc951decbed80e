/* SPDX-License-Identifier: Apache-2.0 */
/* Orders whose backward passes are whole. */
#include <assert.h>

#include "base/arena.h"
#include "pipeline/schedule_orders.h"

static struct ap_schedule_slot slot_of(enum ap_pass pass, int32_t segment, int32_t micro)
{
	return (struct ap_schedule_slot){.pass = (uint8_t)pass, .segment = (int16_t)segment, .micro = micro};
}

struct ap_schedule_slot *ap_order_gpipe(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct ap_schedule_slot *slot = AP_NEW_N(arena, struct ap_schedule_slot, 2 * (size_t)nmicro);

	(void)nstage;
	(void)stage;
	assert(nsegment == 1);
	for (int32_t i = 0; i < nmicro; i++) {
		slot[i] = slot_of(AP_PASS_FORWARD, 0, i);
		slot[nmicro + i] = slot_of(AP_PASS_BACKWARD, 0, i);
	}
	return slot;
}

/*
 * Micro-batches go through the segments in rounds: so many of them through the first segment, then
 * through the second, and so on. All rounds are of nstage micro-batches, so that what left the last
 * stage is just in time for the next segment of the first; the first one is longer where the number
 * of micro-batches asks for it.
 */
struct rounds {
	int32_t nsegment, first, other; /* micro-batches */
};

static struct ap_schedule_slot unit(const struct rounds *r, enum ap_pass pass, int64_t k)
{
	int64_t head = (int64_t)r->first * r->nsegment, start = 0, size = r->first;
	int64_t segment;

	if (k >= head) {
		size = r->other;
		start = r->first + (k - head) / (size * r->nsegment) * size;
		k = (k - head) % (size * r->nsegment);
	}
	segment = k / size;
	if (pass == AP_PASS_BACKWARD)
		segment = r->nsegment - 1 - segment;
	return slot_of(pass, (int32_t)segment, (int32_t)(start + k % size));
}

/* So many forward passes, then one forward and one backward by turns, then the other backward
 * passes. */
static struct ap_schedule_slot *by_turns(
	struct ap_arena *arena, const struct rounds *r, int64_t warm_up, int64_t nmicro)
{
	int64_t n = nmicro * r->nsegment, ahead = warm_up < n ? warm_up : n;
	struct ap_schedule_slot *slot = AP_NEW_N(arena, struct ap_schedule_slot, 2 * n), *to = slot;

	for (int64_t k = 0; k < n + ahead; k++) {
		if (k < n)
			*to++ = unit(r, AP_PASS_FORWARD, k);
		if (k >= ahead)
			*to++ = unit(r, AP_PASS_BACKWARD, k - ahead);
	}
	return slot;
}

struct ap_schedule_slot *ap_order_1f1b(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct rounds one = {1, nmicro, nmicro};

	assert(nsegment == 1);
	return by_turns(arena, &one, nstage - stage - 1, nmicro);
}

struct ap_schedule_slot *ap_order_interleaved(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct rounds r = {nsegment, nstage + nmicro % nstage, nstage};
	int64_t warm_up = (int64_t)(nsegment - 1) * r.first + 2 * (int64_t)(nstage - stage - 1);

	assert(nmicro >= nstage);
	if (nsegment == 1) /* nothing to interleave */
		return ap_order_1f1b(arena, nstage, nsegment, stage, nmicro);
	return by_turns(arena, &r, warm_up, nmicro);
}
