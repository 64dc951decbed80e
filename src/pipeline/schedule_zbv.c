/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zero bubble in a V. With passes of equal length and at least 2 S micro-batches, no stage s of S
 * waits from its first slot to its last, and none holds more than 2 S segments' activations, which
 * is what 1f1b's first stage holds. With F, B, W of segments 0 and 1, a stage runs:
 *
 *   2 (S - s) - 1 times   F0                     until the first micro-batch is back in segment 1
 *   s times               F1 F0, then once F1    2 S are held: now the first B1 has come
 *   S - 1 - s times       B1 W1 F1               it has yet to turn at the last stage
 *   m - 2 S + s + 1 times B1 W1 B0 W0 F0 F1      steady, six slots for a micro-batch
 *   S - 1 - s times       B1 W1 B0 W0 F1         F0 has none left
 *   s times               B1 B0, then once B1
 *   S - s times           B0 W, then the other W the last B0 go back through all stages
 *
 * Let stage s begin at slot s. The steady block of number j then begins at 5 S - 3 - 2 s + 6 j, and
 * every other slot by counting; what a slot needs has always ended: F0 and B1, which go up the
 * stages, have 4 slots for a hop in the steady blocks, F1 and B0, which go down, 2; in all others 1
 * or more. The micro-batches that the steady blocks lack when m < 2 S - 1 are left out of the order
 * of 2 S - 1: each micro-batch depends on itself only.
 */
#include <assert.h>

#include "base/arena.h"
#include "pipeline/schedule_orders.h"

struct writing {
	struct ap_schedule_slot *to;
	int32_t nmicro;                      /* there are; further ones are left out */
	int32_t next[AP_PASS_WEIGHT + 1][2]; /* micro-batch, by pass and segment */
};

static void put(struct writing *w, enum ap_pass pass, int segment)
{
	int32_t micro = w->next[pass][segment]++;

	if (micro < w->nmicro)
		*w->to++ = (struct ap_schedule_slot){(uint8_t)pass, (int16_t)segment, micro};
}

/* A weight pass that is due, of the second segment first. */
static void put_weight(struct writing *w)
{
	put(w, AP_PASS_WEIGHT, w->next[AP_PASS_WEIGHT][1] < w->next[AP_PASS_BACKWARD][1]);
}

static void both(struct writing *w, int segment)
{
	put(w, AP_PASS_BACKWARD, segment);
	put(w, AP_PASS_WEIGHT, segment);
}

static void fill(struct writing *w, int32_t nstage, int32_t stage)
{
	for (int32_t i = 0; i < 2 * (nstage - stage) - 1; i++)
		put(w, AP_PASS_FORWARD, 0);
	for (int32_t i = 0; i < stage; i++) {
		put(w, AP_PASS_FORWARD, 1);
		put(w, AP_PASS_FORWARD, 0);
	}
	put(w, AP_PASS_FORWARD, 1);
	for (int32_t i = 0; i < nstage - 1 - stage; i++) {
		both(w, 1);
		put(w, AP_PASS_FORWARD, 1);
	}
}

static void steady(struct writing *w, int32_t blocks, bool more)
{
	for (int32_t i = 0; i < blocks; i++) {
		both(w, 1);
		both(w, 0);
		if (more)
			put(w, AP_PASS_FORWARD, 0);
		put(w, AP_PASS_FORWARD, 1);
	}
}

static void drain(struct writing *w, int32_t nstage, int32_t stage)
{
	for (int32_t i = 0; i < stage; i++) {
		put(w, AP_PASS_BACKWARD, 1);
		put(w, AP_PASS_BACKWARD, 0);
	}
	put(w, AP_PASS_BACKWARD, 1);
	for (int32_t i = 0; i < nstage - stage; i++) {
		put(w, AP_PASS_BACKWARD, 0);
		put_weight(w);
	}
	for (int32_t i = 0; i < 2 * stage + 1; i++)
		put_weight(w);
}

struct ap_schedule_slot *ap_order_zero_bubble_v(
	struct ap_arena *arena, int32_t nstage, int32_t nsegment, int32_t stage, int32_t nmicro)
{
	struct ap_schedule_slot *slot = AP_NEW_N(arena, struct ap_schedule_slot, 6 * (size_t)nmicro);
	struct writing w = {.to = slot, .nmicro = nmicro};
	int32_t run = nmicro < 2 * nstage - 1 ? 2 * nstage - 1 : nmicro;

	assert(nsegment == 2);
	fill(&w, nstage, stage);
	steady(&w, run - 2 * nstage + stage + 1, true);
	steady(&w, nstage - 1 - stage, false);
	drain(&w, nstage, stage);
	assert(w.to == slot + 6 * (size_t)nmicro);
	return slot;
}
