/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges of gradients beside passes, and what parts share: the checker's times, by hand, and replays that
 * agree with it. */
#include <string.h>

#include "partition/partition.h"
#include "partition/replay.h"
#include "pipeline/schedule.h"
#include "unit.h"

enum { MOST_PARTS = 12 };

static const struct ap_partition_degree degree = {.name = ""};
static const char *const kind = "";
static const int64_t room[] = {AP_NO_LIMIT, AP_NO_LIMIT, AP_NO_LIMIT, AP_NO_LIMIT}, fixed[4];

/* Layers of classes 0, 1, ..., each a run of its own. */
static struct ap_partition problem(const char *scheduler, int32_t stages, int32_t segments, int64_t micro,
	const struct ap_partition_class *cls, const struct ap_partition_run *run, uint32_t n)
{
	return (struct ap_partition){.nstage = stages, .nsegment = segments, .nmicro = micro,
		.scheduler = ap_scheduler_find(scheduler), .ndegree = 1, .nkind = 1, .nclass = n, .nrun = n,
		.degree = &degree, .kind = &kind, .cls = cls, .run = run, .capacity_bytes = room,
		.fixed_bytes = fixed, .least_layers = 1, .least_at_ends = 1};
}

/*
 * Two stages of one layer, one micro-batch: the second stage's backward pass is at 2 to 4, the first one's at 4 to 6.
 * An exchange of 5 ends at 7, and at 9; the update follows.
 */
START_TEST(an_exchange_runs_beside_the_last_pass)
{
	static const struct ap_partition_row row = {.forward_s = 1, .backward_s = 2, .exchange_s = 5,
		.update_s = 0.5};
	static const struct ap_partition_class cls = {"block", &row};
	static const struct ap_partition_run run = {0, 2, AP_AT_BODY};
	struct ap_partition p = problem("1f1b", 2, 1, 1, &cls, &run, 1);
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;

	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.worth.stage[0].end_s, 9.5);
	ck_assert_double_eq(c.worth.stage[1].end_s, 7.5);
	ck_assert_double_eq(c.cost, 9.5);
	ck_assert_double_eq(c.lower_bound, 9.5);
	ck_assert_double_eq(ap_partition_bound(&ctx, &p), 9.5);
	/* Of four micro-batches the last backward pass of the first stage is at 13 to 15. */
	p.nmicro = 4;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 13 + 5 + 0.5);
	ctx_destroy(&ctx);
}
END_TEST

/*
 * Two parts in one stage: backward passes at 2 to 4 of the second part, at 4 to 6 of the first. What the second
 * exchanges holds the first one's up if it takes longer than the pass.
 */
START_TEST(parts_of_a_stage_exchange_in_turn)
{
	static const double second[] = {0, 1, 2, 3}, ends[] = {7, 7, 7, 8};
	struct ap_ctx ctx = ctx_create(true);

	for (int i = 0; i < 4; i++) {
		const struct ap_partition_row row[] = {{.forward_s = 1, .backward_s = 2, .exchange_s = 3},
			{.forward_s = 1, .backward_s = 2, .exchange_s = second[i]}};
		const struct ap_partition_class cls[] = {{"a", &row[0]}, {"b", &row[1]}};
		const struct ap_partition_run run[] = {{0, 1, AP_AT_BODY}, {1, 1, AP_AT_BODY}};
		struct ap_partition p = problem("interleaved", 1, 2, 1, cls, run, 2);
		const struct ap_partition_budget budget = {0};
		struct ap_partition_choice c;

		ap_partition_solve(&ctx, &p, &budget, &c);
		ck_assert_double_eq(c.cost, ends[i]);
		ck_assert_double_eq(ap_partition_bound(&ctx, &p), ends[i]);
	}
	ctx_destroy(&ctx);
}
END_TEST

/* Of a backward pass that is split, the pass for weights: here the last one of the first part, at 5 to 6. */
START_TEST(passes_for_weights_begin_it)
{
	static const struct ap_partition_row row = {.forward_s = 1, .backward_s = 1, .weight_s = 1,
		.exchange_s = 2};
	static const struct ap_partition_class cls = {"block", &row};
	static const struct ap_partition_run run = {0, 2, AP_AT_BODY};
	struct ap_partition p = problem("zero_bubble_v", 1, 2, 1, &cls, &run, 1);
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;

	/* F0 F1 B1 B0 W1 W0: exchanges from 4 and from 5 on, one behind the other. */
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 8);
	ctx_destroy(&ctx);
}
END_TEST

/*
 * The second stage waits for what it shares with the first one, which takes 5: its forward pass is at 5 to 6, or,
 * where results are sent in 0.5 behind it, at 5.5 to 6.5. Backward passes end at 8.5, and, sent in 0.5, at 11; what
 * comes back takes 4 behind that send, to 13.
 */
START_TEST(what_parts_share_is_sent_once)
{
	static const struct ap_partition_row row = {.forward_s = 1, .backward_s = 2, .update_s = 0.25};
	static const struct ap_partition_class cls = {"block", &row};
	static const struct ap_partition_run run = {0, 2, AP_AT_BODY};
	static const struct ap_partition_degree sends = {"", 0.5, 0.5};
	struct ap_partition p = problem("1f1b", 2, 1, 1, &cls, &run, 1);
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;

	p.shared.send_s = 5;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 10.25);
	p.degree = &sends;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 11.25);
	p.shared.send_back_s = 4;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_int_eq(c.outcome, AP_OUT_OPTIMAL);
	ck_assert_double_eq(c.worth.stage[0].end_s, 13.25);
	ck_assert_double_eq(c.worth.stage[1].end_s, 8.75);
	ck_assert_double_eq(c.cost, 13.25);
	ck_assert_double_eq(ap_partition_bound(&ctx, &p), 13.25);
	/* In one stage nothing is sent: of a schedule that goes back through the stages, the last part. */
	p = problem("zero_bubble_v", 2, 2, 1, &cls, &run, 1);
	p.least_layers = 0;
	p.shared = (struct ap_partition_shared){100, 100};
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_lt(c.cost, 10);
	ctx_destroy(&ctx);
}
END_TEST

/*
 * One stage, three micro-batches: forward passes take 2, backward passes 4. Beside all but the last one runs what
 * takes 5, so the step takes 3 * 2 + 5 + 5 + 4.
 */
START_TEST(what_runs_beside_makes_passes_longer)
{
	struct ap_partition_row row = {.forward_s = 1, .backward_s = 2, .beside_s = 2.5};
	const struct ap_partition_class cls = {"block", &row};
	static const struct ap_partition_run run = {0, 2, AP_AT_BODY};
	struct ap_partition p = problem("1f1b", 1, 1, 3, &cls, &run, 1);
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;

	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 20);
	ck_assert_double_eq(c.worth.stage[0].busy_s, 6);
	ck_assert_double_eq(ap_partition_bound(&ctx, &p), 20);
	row.beside_s = 1.5;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 18);
	ctx_destroy(&ctx);
}
END_TEST

/*
 * Two stages of a layer each, two micro-batches: 1 and 2 forward and back. What is left behind the second stage's
 * pass, 0.5, makes its first one longer, not its last; the first stage's passes are none of it, nor is a second
 * stage without a layer.
 */
START_TEST(what_is_left_makes_passes_longer)
{
	const struct ap_partition_row row = {.forward_s = 1, .backward_s = 2, .beside_s = 2};
	const struct ap_partition_class cls = {"block", &row};
	static const struct ap_partition_run two = {0, 2, AP_AT_BODY}, one = {0, 1, AP_AT_BODY};
	static const struct ap_partition_degree left = {.name = "", .left_s = 0.5};
	struct ap_partition p = problem("1f1b", 2, 1, 2, &cls, &two, 1);
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;

	p.degree = &left;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 10 - 0.5);
	ck_assert_double_eq(c.worth.stage[1].busy_s, 3);
	ck_assert_double_le(ap_partition_bound(&ctx, &p), c.cost);
	p.run = &one;
	p.least_at_ends = 0;
	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 6);
	ctx_destroy(&ctx);
}
END_TEST

/*
 * Two stages of a layer each, two micro-batches: 1 and 2 forward and back. The last backward passes take 0.5 more:
 * the second stage ends at 1 + 1 + 2 + 1 + 2.5, the first one behind it, with 2.5 of its own.
 */
START_TEST(last_passes_are_slowed)
{
	const struct ap_partition_row row = {.forward_s = 1, .backward_s = 2, .slowed_s = 0.5};
	const struct ap_partition_class cls = {"block", &row};
	static const struct ap_partition_run run = {0, 2, AP_AT_BODY};
	struct ap_partition p = problem("1f1b", 2, 1, 2, &cls, &run, 1);
	const struct ap_partition_budget budget = {0};
	struct ap_ctx ctx = ctx_create(true);
	struct ap_partition_choice c;

	ap_partition_solve(&ctx, &p, &budget, &c);
	ck_assert_double_eq(c.cost, 10);
	ck_assert_double_eq(c.worth.stage[0].busy_s, 3);
	ck_assert_double_eq(c.lower_bound, 10);
	ck_assert_double_eq(ap_partition_bound(&ctx, &p), 10);
	ctx_destroy(&ctx);
}
END_TEST

/* Replays end when the checker says so, and the path that ends last takes as long; it is a path of all times. */
START_TEST(replays_exchange_as_the_checker_does)
{
	static const struct {
		const char *scheduler;
		int32_t stages, segments;
		int64_t micro;
	} cases[] = {{"1f1b", 3, 1, 4}, {"gpipe", 2, 1, 3}, {"interleaved", 3, 3, 5}, {"interleaved", 2, 4, 2},
		{"zero_bubble_v", 3, 2, 4}};
	uint64_t seed = 11;

	for (size_t i = 0; i < AP_COUNT(cases) * 40; i++) {
		const struct ap_scheduler *s = ap_scheduler_find(cases[i / 40].scheduler);
		int32_t n = cases[i / 40].stages * cases[i / 40].segments;
		struct ap_ctx ctx = ctx_create(true);
		struct ap_partition_row row[MOST_PARTS];
		struct ap_partition_class cls[MOST_PARTS];
		struct ap_partition_run run[MOST_PARTS];
		struct ap_ticks time[MOST_PARTS], other[MOST_PARTS];
		int64_t first[MOST_PARTS + 1] = {0}, send[MOST_PARTS] = {0}, back[MOST_PARTS] = {0}, end;
		int64_t sum, length;
		struct ap_partition_degree own = {"", i % 3 ? (double)random_below(&seed, 4) : 0,
			i % 3 ? (double)random_below(&seed, 4) : 0};
		uint32_t degrees[4] = {0}, kinds[MOST_PARTS] = {0};
		struct ap_partition_plan plan = {first, degrees, kinds, NULL};
		struct ap_partition_worth worth;
		struct ap_partition p;
		struct ap_replay *r;
		struct ap_replay_path path = {ap_arena_alloc(ctx.arena, (size_t)n, sizeof *path.pass),
			AP_NEW_N(ctx.arena, int32_t, n), AP_NEW_N(ctx.arena, int32_t, n)};

		for (int32_t q = 0; q < n; q++) {
			for (int k = 0; k < AP_TIMES; k++) {
				time[q].t[k] = (int64_t)random_below(&seed, k == AP_TIME_EXCHANGE ? 40 : 10);
				other[q].t[k] = (int64_t)random_below(&seed, k == AP_TIME_EXCHANGE ? 40 : 10);
			}
			if (!s->splits)
				time[q].t[AP_TIME_WEIGHT] = other[q].t[AP_TIME_WEIGHT] = 0;
			row[q] = (struct ap_partition_row){.forward_s = (double)time[q].t[AP_TIME_FORWARD],
				.backward_s = (double)time[q].t[AP_TIME_BACKWARD],
				.weight_s = (double)time[q].t[AP_TIME_WEIGHT],
				.beside_s = (double)time[q].t[AP_TIME_BESIDE],
				.exchange_s = (double)time[q].t[AP_TIME_EXCHANGE],
				.slowed_s = (double)time[q].t[AP_TIME_SLOWED],
				.update_s = (double)time[q].t[AP_TIME_UPDATE]};
			cls[q] = (struct ap_partition_class){"", &row[q]};
			run[q] = (struct ap_partition_run){(uint32_t)q, 1, AP_AT_BODY};
			first[q + 1] = q + 1;
		}
		p = problem(cases[i / 40].scheduler, cases[i / 40].stages, cases[i / 40].segments,
			cases[i / 40].micro, cls, run, (uint32_t)n);
		p.degree = &own;
		p.shared.send_s = (double)random_below(&seed, 60);
		p.shared.send_back_s = (double)random_below(&seed, 60);
		for (int32_t q = 0; q + 1 < n; q++) {
			send[q] = (int64_t)own.send_s;
			back[q] = (int64_t)own.send_back_s;
		}
		ap_partition_judge(&ctx, &p, &plan, &worth);
		ck_assert_ptr_null(worth.fault);
		r = ap_replay_create(&ctx, s, p.nstage, p.nsegment, p.nmicro);
		ap_replay_share(r, (int64_t)p.shared.send_s, (int64_t)p.shared.send_back_s);
		end = ap_replay_end(r, time, send, back);
		ck_assert_double_eq(worth.step_s, (double)end);
		ap_replay_path(r, send, back, true, &path);
		sum = length = path.once;
		for (int32_t q = 0; q < n; q++) {
			sum += path.send[q] * send[q] + path.send_back[q] * back[q];
			length += path.send[q] * send[q] + path.send_back[q] * back[q];
			for (int k = 0; k < AP_TIMES; k++) {
				sum += path.pass[q][k] * time[q].t[k];
				length += path.pass[q][k] * other[q].t[k];
			}
		}
		ck_assert_int_eq(sum, end);
		ck_assert_int_le(length, ap_replay_end(r, other, send, back));
		ctx_destroy(&ctx);
	}
}
END_TEST
