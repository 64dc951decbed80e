/* SPDX-License-Identifier: Apache-2.0 */
/* What one number of devices that parameters are dealt to tells of another one: never more than is held and takes as
 * long there, where rows do not divide. */
#include "api/kin.h"
#include "api/trial.h"
#include "shard/dealing.h"
#include "unit.h"

enum { DEVICES = 24 };

/* Elements of a part of one weight; all of it where the rule leaves it whole. */
static int64_t part(enum ap_dealing rule, const int64_t slice[2], int64_t n)
{
	int64_t dealt = ap_dealing_part(rule, 2, slice, n);

	return dealt ? dealt : slice[0] * slice[1];
}

/* Seconds of a ring that gathers it: n - 1 steps. */
static double gather_s(enum ap_dealing rule, const int64_t slice[2], int64_t n)
{
	return (double)(n - 1) * (double)part(rule, slice, n);
}

static void setup_trial(struct ap_decision_trial *t, int64_t dp, int level)
{
	*t = (struct ap_decision_trial){.point = {.pp = 1, .vpp = 1, .micro_batches = 2, .dp = dp, .tp = 1, .cp = 1,
		.ep = 1, .etp = 1, .mbs = 1, .level = level}};
}

/* The least bytes and seconds of n devices by what few tell. */
static void bound(struct ap_ctx *ctx, enum ap_dealing rule, const int64_t slice[2], int level, int64_t few, int64_t n,
	double *bytes, double *s)
{
	const struct ap_recompute_mix mix = {.kind = {{"none"}, {"none"}}};
	struct ap_decision_space space = {.layers = 1, .batch = 1, .mix = &mix, .nmix = 1};
	struct ap_decision_trial trial[2];
	struct ap_kin_told told = {.any = true, .pass_s = gather_s(rule, slice, few), .gathers = few,
		.static_bytes = (double)part(rule, slice, few), .dealt = few, .level = level};
	struct ap_kins *kins;
	int32_t by;

	setup_trial(&trial[0], few, level);
	setup_trial(&trial[1], n, level);
	kins = ap_kins_make(ctx, &space, 2, trial);
	ck_assert(ap_kins_of(kins, 0) == ap_kins_of(kins, 1));
	ck_assert(ap_kins_learn(kins, 0, &told));
	*bytes = ap_kins_least_bytes(kins, 1, trial, &by);
	*s = ap_kins_least_s(kins, 1, trial);
}

START_TEST(dealt_to_others)
{
	struct ap_ctx ctx = ctx_create(false);
	uint64_t rng = random_seed();
	int sharp = 0;

	for (int i = 0; i < 2000; i++) {
		int64_t slice[2] = {1 + (int64_t)random_below(&rng, 64), 1 + (int64_t)random_below(&rng, 4)};
		int64_t few = 1 + (int64_t)random_below(&rng, DEVICES), n = few + (int64_t)random_below(&rng, DEVICES);
		enum ap_dealing rule = (enum ap_dealing)random_below(&rng, 3);
		int level = 1 + (int)random_below(&rng, 3);
		double bytes, s;

		bound(&ctx, rule, slice, level, few, n, &bytes, &s);
		ck_assert_msg(bytes > 0 && bytes <= (double)part(rule, slice, n) * (1 + 1e-12),
			"rule %d, [%d,%d] dealt to %d: %g are said to be held at least, by %d", (int)rule, (int)slice[0],
			(int)slice[1], (int)n, bytes, (int)few);
		sharp += n % few == 0 && bytes > 0.9 * (double)part(rule, slice, n);
		/* each of two micro-batches gathers it at level 3 */
		if (level == 3 && rule != AP_DEALING_ROWS)
			ck_assert_msg(s <= 2 * gather_s(rule, slice, n) * (1 + 1e-12),
				"rule %d, [%d,%d] gathered from %d: %g s at least, by %d", (int)rule, (int)slice[0],
				(int)slice[1], (int)n, s, (int)few);
	}
	ck_assert_int_gt(sharp, 100);
	ctx_destroy(&ctx);
}
END_TEST

/* Of kin of which nothing is known, the trial that is likely to fit comes first, and that of smaller
 * micro-batches before it, as long as these are open. */
START_TEST(turns)
{
	const struct ap_recompute_mix mix = {.kind = {{"none"}, {"none"}}};
	const struct ap_decision_space space = {.layers = 8, .batch = 8, .mix = &mix, .nmix = 1};
	const struct ap_kin_told told = {.any = true, .pass_s = 1, .gathers = 1};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_decision_trial trial[4];
	struct ap_kins *kins;

	for (int i = 0; i < 4; i++) {
		setup_trial(&trial[i], 2, 0);
		trial[i].point.pp = 1 + i % 2; /* more stages hold less */
		trial[i].point.mbs = 1 + i / 2;
	}
	kins = ap_kins_make(&ctx, &space, 4, trial);
	ck_assert_uint_eq(ap_kins_count(kins), 2);
	ck_assert_int_eq(ap_kins_turn(kins, 0), AP_KIN_WAITS);
	ck_assert_int_eq(ap_kins_turn(kins, 1), AP_KIN_FIRST);
	ck_assert_int_eq(ap_kins_turn(kins, 3), AP_KIN_WAITS);
	ap_kins_note(kins, 0, false); /* nobody waits for it */
	ck_assert_int_eq(ap_kins_turn(kins, 3), AP_KIN_WAITS);
	ap_kins_note(kins, 1, false);
	ck_assert_int_eq(ap_kins_turn(kins, 0), AP_KIN_FIRST);
	ck_assert_int_eq(ap_kins_turn(kins, 3), AP_KIN_FIRST);
	ck_assert_int_eq(ap_kins_turn(kins, 2), AP_KIN_WAITS);
	ck_assert(ap_kins_learn(kins, 2, &told));
	ck_assert(ap_kins_is_told(kins, 3) && !ap_kins_is_told(kins, 0));
	ck_assert_int_eq(ap_kins_turn(kins, 2), AP_KIN_KNOWN);
	ck_assert_int_eq(ap_kins_turn(kins, 3), AP_KIN_KNOWN);
	ck_assert_int_eq(ap_kins_turn(kins, 0), AP_KIN_FIRST);
	ctx_destroy(&ctx);
}
END_TEST
