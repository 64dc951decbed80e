/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline schedules of equal stages: known times, known activations in flight. */
#include <math.h>

#include "pipeline/schedule.h"
#include "unit.h"

enum { MOST_STAGES = 16, MOST_MICRO = 64 };

struct times {
	double forward_s, backward_s, weight_s, send_s;
};

/* All parts take the same time. */
static void run(struct ap_ctx *ctx, const char *name, int32_t nstage, int32_t nsegment,
	int64_t nmicro, const struct times *t, struct ap_pipe *pipe, struct ap_timeline *out)
{
	const struct ap_scheduler *s = ap_scheduler_find(name);
	struct ap_pass_times *time = AP_NEW_N(ctx->arena, struct ap_pass_times, nstage * nsegment);

	ck_assert_ptr_nonnull(s);
	for (int32_t p = 0; p < nstage * nsegment; p++)
		time[p] = (struct ap_pass_times){t->forward_s, t->backward_s, t->weight_s,
			t->send_s, t->send_s, s->splits ? t->weight_s : t->backward_s};
	ap_schedule_pipe(ctx, s, nstage, nsegment, nmicro, pipe);
	ap_schedule_run(ctx, pipe, nmicro, true, time, out);
}

/* The most that one segment of a stage holds, or has waiting for its pass for weights. */
static int64_t most_of(const struct ap_pipe *pipe, int32_t stage, int32_t segment, bool late)
{
	const struct ap_instants *x = &pipe->instants[stage];
	int64_t most = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		int64_t n = (late ? x->late : x->held)[(size_t)i * (size_t)pipe->nsegment + (size_t)segment];

		most = n > most ? n : most;
	}
	return most;
}

static double end_of(
	const char *name, int32_t nstage, int32_t nsegment, int64_t nmicro, const struct times *t)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_pipe pipe;
	struct ap_timeline line;

	run(&ctx, name, nstage, nsegment, nmicro, t, &pipe, &line);
	ctx_destroy(&ctx);
	return line.end_s;
}

static void close_to(double is, double wanted, int32_t nstage, int32_t nsegment, int64_t nmicro)
{
	ck_assert_msg(fabs(is - wanted) <= 1e-9 * wanted,
		"%d stages, %d segments, %d micro-batches: %.17g s, expected %.17g", (int)nstage,
		(int)nsegment, (int)nmicro, is, wanted);
}

static const struct times uneven = {.forward_s = 3e-3, .backward_s = 7.1e-3};

START_TEST(gpipe_and_1f1b_fill_and_drain_once)
{
	for (int32_t s = 1; s <= MOST_STAGES; s++)
		for (int64_t m = 1; m <= MOST_MICRO; m++) {
			double wanted =
				(double)(m + s - 1) * (uneven.forward_s + uneven.backward_s);

			close_to(end_of("gpipe", s, 1, m, &uneven), wanted, s, 1, m);
			close_to(end_of("1f1b", s, 1, m, &uneven), wanted, s, 1, m);
		}
}
END_TEST

START_TEST(interleaving_fills_in_smaller_steps)
{
	for (int32_t s = 1; s <= MOST_STAGES; s++)
		for (int32_t v = 1; v <= 4; v++)
			for (int64_t m = s; m <= MOST_MICRO; m += s) {
				struct times t = {.forward_s = uneven.forward_s / v,
					.backward_s = uneven.backward_s / v};
				double wanted = ((double)m + (double)(s - 1) / v) *
						(uneven.forward_s + uneven.backward_s);

				close_to(end_of("interleaved", s, v, m, &t), wanted, s, v, m);
			}
}
END_TEST

/* Also where rounds are uneven it is no slower than 1f1b of the same passes. */
START_TEST(interleaving_takes_any_number_of_micro_batches)
{
	for (int32_t s = 1; s <= MOST_STAGES; s++)
		for (int32_t v = 2; v <= 4; v++)
			for (int64_t m = s; m <= MOST_MICRO; m++) {
				struct times t = {.forward_s = 1.0 / v, .backward_s = 2.0 / v};
				double end = end_of("interleaved", s, v, m, &t);

				ck_assert(
					end >= 3 * ((double)m + (double)(s - 1) / v) * (1 - 1e-12));
				ck_assert_msg(end <= 3 * (double)(m + s - 1) * (1 + 1e-12),
					"%d stages, %d segments, %d micro-batches: %g", (int)s,
					(int)v, (int)m, end);
			}
}
END_TEST

static void no_gap(const struct ap_timeline *line, int32_t stage, int32_t nmicro)
{
	for (uint32_t i = line->first[stage] + 1; i < line->first[stage + 1]; i++)
		ck_assert_msg(line->slot[i].start_s == line->slot[i - 1].end_s,
			"%d stages, %d micro-batches: stage %d waits before slot %d",
			(int)line->nstage, (int)nmicro, (int)stage, (int)(i - line->first[stage]));
	ck_assert(line->slot[line->first[stage]].start_s == stage);
}

START_TEST(zero_bubble_leaves_no_gap)
{
	const struct times one = {1, 1, 1, 0};

	for (int32_t s = 1; s <= MOST_STAGES; s++)
		for (int32_t m = 2 * s; m <= 6 * s; m++) {
			struct ap_ctx ctx = ctx_create(false);
			struct ap_pipe pipe;
			struct ap_timeline line;

			run(&ctx, "zero_bubble_v", s, 2, m, &one, &pipe, &line);
			for (int32_t stage = 0; stage < s; stage++) {
				no_gap(&line, stage, m);
				ck_assert_int_eq(
					most_of(&pipe, stage, 0, false) + most_of(&pipe, stage, 1, false),
					2 * (int)s);
			}
			ck_assert(line.end_s == 6.0 * m + (double)s - 1);
			ctx_destroy(&ctx);
		}
}
END_TEST

/* Short of micro-batches it has gaps, but holds no more and is not slower than gpipe on two
 * segments: a part after the other, up and down the V. */
START_TEST(zero_bubble_with_few_micro_batches)
{
	const struct times one = {1, 1, 1, 0};

	for (int32_t s = 1; s <= MOST_STAGES; s++)
		for (int32_t m = 1; m < 2 * s; m++) {
			struct ap_ctx ctx = ctx_create(false);
			struct ap_pipe pipe;
			struct ap_timeline line;

			run(&ctx, "zero_bubble_v", s, 2, m, &one, &pipe, &line);
			for (int32_t p = 0; p < 2 * s; p++)
				ck_assert(most_of(&pipe, p / 2, p % 2, false) >= 1 &&
					most_of(&pipe, p / 2, p % 2, false) <= m);
			for (int32_t stage = 0; stage < s; stage++)
				ck_assert(
					most_of(&pipe, stage, 0, false) + most_of(&pipe, stage, 1, false) <=
					2 * s);
			ck_assert_msg(line.end_s <= 6 * ((double)m + (double)s - 1), "%d %d: %g",
				(int)s, m, line.end_s);
			ctx_destroy(&ctx);
		}
}
END_TEST

START_TEST(micro_batches_in_flight)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_pipe pipe;

	for (int32_t s = 1; s <= MOST_STAGES; s++)
		for (int64_t m = 1; m <= MOST_MICRO; m++) {
			ap_schedule_pipe(&ctx, ap_scheduler_find("gpipe"), s, 1, m, &pipe);
			for (int32_t i = 0; i < s; i++)
				ck_assert_int_eq(pipe.in_flight[i], m);
			ap_schedule_pipe(&ctx, ap_scheduler_find("1f1b"), s, 1, m, &pipe);
			for (int32_t i = 0; i < s; i++)
				ck_assert_int_eq(pipe.in_flight[i], m < s - i ? m : s - i);
			ck_assert_int_eq(pipe.nstage, (int)s);
			ck_assert_int_eq(pipe.nsegment, 1);
		}
	ctx_destroy(&ctx);
}
END_TEST

/* Of 4 stages the first one goes forward 4 + 2 * 3 times and once more before it goes back:
 * micro-batches 0 to 6, then 7 of the first segment, which goes back only when the second has gone
 * back with 0 to 3, and 0 to 3 of the second. The last one turns at once. With 17 the first round
 * is of 5. Both segments are never full at the same time. */
START_TEST(interleaved_in_flight)
{
	static const int64_t wanted[2][4] = {{8, 4, 5, 1}, {9, 5, 6, 2}};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_pipe pipe;

	for (int more = 0; more < 2; more++) {
		ap_schedule_pipe(&ctx, ap_scheduler_find("interleaved"), 4, 2, 16 + more, &pipe);
		for (int i = 0; i < 2; i++) {
			ck_assert_int_eq(most_of(&pipe, 0, i, false), wanted[more][i]);
			ck_assert_int_eq(most_of(&pipe, 3, i, false), wanted[more][2 + i]);
		}
		ck_assert_int_eq(pipe.in_flight[0] + pipe.in_flight[1], 11 + more);
		ck_assert_int_eq(pipe.in_flight[6] + pipe.in_flight[7], 5 + more);
	}
	ctx_destroy(&ctx);
}
END_TEST

/* Two stages, one micro-batch: f, send, f, b, send back, b. */
START_TEST(sends_delay)
{
	struct ap_ctx ctx = ctx_create(false);
	const struct times t = {.forward_s = 1, .backward_s = 2, .send_s = 0.25};
	struct ap_pipe pipe;
	struct ap_timeline line;

	run(&ctx, "1f1b", 2, 1, 1, &t, &pipe, &line);
	ck_assert(line.end_s == 1 + 0.25 + 1 + 2 + 0.25 + 2);
	ck_assert_uint_eq(line.nsend, 2);
	ck_assert(line.send[0].from_part == 0 && line.send[0].to_part == 1);
	ck_assert(line.send[0].start_s == 1 && line.send[0].end_s == 1.25);
	ck_assert(line.send[1].from_part == 1 && line.send[1].to_part == 0);
	ck_assert(line.send[1].start_s == 4.25 && line.send[1].end_s == 4.5);
	ctx_destroy(&ctx);
}
END_TEST

/* A part's times say how long its results travel, and how long their gradients come back. */
START_TEST(gradients_come_back)
{
	struct ap_ctx ctx = ctx_create(false);
	const struct ap_pass_times time[] = {{1, 2, 0, .send_s = 0.25, .send_back_s = 0.5, 2},
		{1, 2, 0, .send_s = 8, .send_back_s = 0.75, 2},
		{1, 2, 0, .send_s = 16, .send_back_s = 32, 2}};
	struct ap_pipe pipe;
	struct ap_timeline line;

	ap_schedule_pipe(&ctx, ap_scheduler_find("gpipe"), 3, 1, 1, &pipe);
	ap_schedule_run(&ctx, &pipe, 1, true, time, &line);
	ck_assert(line.end_s == 1 + 0.25 + 1 + 8 + 1 + 2 + 0.75 + 2 + 0.5 + 2);
	ctx_destroy(&ctx);
}
END_TEST

/* A link that is slower than the passes sets the pace. */
START_TEST(sends_queue)
{
	struct ap_ctx ctx = ctx_create(false);
	const struct times t = {.forward_s = 1, .backward_s = 1, .send_s = 3};
	struct ap_pipe pipe;
	struct ap_timeline line;

	run(&ctx, "gpipe", 2, 1, 4, &t, &pipe, &line);
	for (int i = 0; i < 4; i++)
		ck_assert(line.slot[line.first[1] + i].start_s == 1 + 3 * (i + 1));
	ck_assert(line.end_s == 1 + 4 * 3 + 1 + 1 + 4 * 3 + 1);
	ctx_destroy(&ctx);
}
END_TEST

/* The middle of a V is one stage: nothing is sent there. */
START_TEST(nothing_is_sent_within_a_stage)
{
	struct ap_ctx ctx = ctx_create(false);
	const struct times t = {1, 1, 1, 0.5};
	struct ap_pipe pipe;
	struct ap_timeline line;

	run(&ctx, "zero_bubble_v", 2, 2, 3, &t, &pipe, &line);
	ck_assert_uint_eq(line.nsend, 2 * 2 * 3);
	for (uint32_t i = 0; i < line.nsend; i++)
		ck_assert(line.send[i].from_part + line.send[i].to_part != 3);
	ctx_destroy(&ctx);
}
END_TEST

/* The gradients that are exchanged beside it lengthen the last backward pass of each part only. */
START_TEST(last_backward_pass)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_pass_times time[2] = {{.forward_s = 1, .backward_s = 2, .last_backward_s = 2.5},
		{.forward_s = 1, .backward_s = 2, .last_backward_s = 3}};
	struct ap_pipe pipe;
	struct ap_timeline line;

	ap_schedule_pipe(&ctx, ap_scheduler_find("1f1b"), 2, 1, 4, &pipe);
	ap_schedule_run(&ctx, &pipe, 4, true, time, &line);
	for (int s = 0; s < 2; s++)
		for (uint32_t i = line.first[s]; i < line.first[s + 1]; i++) {
			const struct ap_slot_time *x = &line.slot[i];
			bool last = i + 1 == line.first[s + 1];

			ck_assert(x->end_s - x->start_s == (x->slot.pass == AP_PASS_FORWARD ? 1
								   : last ? time[s].last_backward_s
									  : 2));
		}
	ck_assert(line.end_s == 5 * 3 + 1 + 0.5);
	ctx_destroy(&ctx);
}
END_TEST

/* Without training nothing goes back, and nothing waits for it. */
START_TEST(forward_alone)
{
	for (int32_t s = 1; s <= MOST_STAGES; s++)
		for (size_t k = 0; ap_scheduler_at(k); k++) {
			struct ap_ctx ctx = ctx_create(false);
			const struct ap_scheduler *x = ap_scheduler_at(k);
			int32_t v = x->least_segments;
			struct ap_pass_times *time =
				AP_NEW_N(ctx.arena, struct ap_pass_times, s * v);
			struct ap_pipe pipe;
			struct ap_timeline line;

			for (int32_t p = 0; p < s * v; p++)
				time[p] = (struct ap_pass_times){.forward_s = 1, .send_s = 0.5};
			ap_schedule_pipe(&ctx, x, s, v, 32, &pipe);
			ap_schedule_run(&ctx, &pipe, 32, false, time, &line);
			ck_assert_uint_eq(line.first[s], 32 * s * (size_t)v);
			if (v == 1)
				ck_assert(line.end_s == 32 + 1.5 * (double)(s - 1));
			ctx_destroy(&ctx);
		}
}
END_TEST

START_TEST(parts_have_places)
{
	const struct ap_scheduler *vee = ap_scheduler_find("zero_bubble_v");
	const struct ap_scheduler *round = ap_scheduler_find("interleaved");
	int32_t stage, segment;

	ap_schedule_spot(vee, 4, 4, &stage, &segment);
	ck_assert(stage == 3 && segment == 1);
	ap_schedule_spot(vee, 4, 7, &stage, &segment);
	ck_assert(stage == 0 && segment == 1);
	ap_schedule_spot(round, 4, 6, &stage, &segment);
	ck_assert(stage == 2 && segment == 1);
	for (size_t k = 0; ap_scheduler_at(k); k++)
		for (int32_t s = 1; s <= 8; s++)
			for (int32_t p = 0; p < 2 * s; p++) {
				const struct ap_scheduler *x = ap_scheduler_at(k);

				ap_schedule_spot(x, s, p, &stage, &segment);
				ck_assert(stage >= 0 && stage < s && segment == p / s);
				ck_assert_int_eq(ap_schedule_part(x, s, stage, segment), p);
			}
}
END_TEST

/* Backward passes run ahead of those for weights only while the pipeline drains: of the second segment s
 * and once more on stage s, of the first as many, and on while the second's are made up for. */
START_TEST(weights_wait_while_it_drains)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_pipe pipe;

	for (int32_t n = 1; n <= 6; n++) {
		ap_schedule_pipe(&ctx, ap_scheduler_find("zero_bubble_v"), n, 2, 2 * n + 3, &pipe);
		for (int32_t s = 0; s < n; s++) {
			ck_assert_int_eq(most_of(&pipe, s, 1, true), s + 1);
			ck_assert_int_eq(most_of(&pipe, s, 0, true), 2 * s + 2 < n ? 2 * s + 2 : n);
		}
		ap_schedule_pipe(&ctx, ap_scheduler_find("1f1b"), n, 1, n, &pipe);
		ck_assert_ptr_null(pipe.late);
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(rows)
{
	const struct ap_scheduler *x = ap_scheduler_find("interleaved");

	ck_assert_ptr_null(ap_scheduler_find("seqpipe"));
	ck_assert_ptr_null(ap_scheduler_at(4));
	ck_assert_str_eq(ap_scheduler_at(0)->name, "gpipe");
	ck_assert_ptr_null(x->refuses(4, 2, 4));
	ck_contains(x->refuses(4, 2, 3), "as many micro-batches as stages");
	ck_assert_ptr_null(ap_scheduler_find("1f1b")->refuses(4, 1, 1));
}
END_TEST

/* A forward and a backward pass as one. Without a pipeline: one forward pass, then both, then one backward pass. */
START_TEST(passes_beside_each_other_take_what_both_need)
{
	static const struct {
		double rest_s[2], comm_s[2], both_s;
	} cases[] = { /* of a forward pass of 2 s and a backward pass of 4 */
		{{2, 4}, {0, 0}, 6}, /* nothing to hide */
		{{1.5, 3}, {0.5, 1}, 4.5}, /* all is hidden */
		{{0.25, 0.5}, {1.75, 3.5}, 5.25}, /* the communication of both one after the other */
		{{0.5, 1.5}, {0.5, 2.5}, 4}, /* no less than the longer */
	};
	struct ap_ctx ctx = ctx_create(false);
	const struct ap_scheduler *s = ap_scheduler_beside(ap_scheduler_find("1f1b"));

	ck_assert_ptr_nonnull(s);
	ck_assert_ptr_null(ap_scheduler_beside(s));
	ck_assert_ptr_null(ap_scheduler_beside(ap_scheduler_find("gpipe")));
	ck_assert_ptr_null(ap_scheduler_beside(ap_scheduler_find("zero_bubble_v")));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (int64_t m = 1; m < 6; m++) {
			struct ap_pass_times time = {.forward_s = 2, .backward_s = 4, .last_backward_s = 5,
				.forward_beside = {cases[i].rest_s[0], cases[i].comm_s[0]},
				.backward_beside = {cases[i].rest_s[1], cases[i].comm_s[1]}};
			struct ap_pipe pipe;
			struct ap_timeline line;

			ck_assert(ap_schedule_both_s(&time, &time) == cases[i].both_s);
			ap_schedule_pipe(&ctx, s, 1, 1, m, &pipe);
			ap_schedule_run(&ctx, &pipe, m, true, &time, &line);
			close_to(line.end_s, 2 + (double)(m - 1) * cases[i].both_s + 5, 1, 1, m);
			ck_assert_int_eq(pipe.in_flight[0], m > 1 ? 2 : 1);
		}
	ctx_destroy(&ctx);
}
END_TEST

/* Interleaved stages of equal parts wait for nothing in between: stage 0 runs its first passes, then pairs, then
 * the last; the first one of the last stage comes p - 1 forward passes later, and holds one unit more. */
START_TEST(interleaved_stages_run_passes_as_one_without_waiting)
{
	struct ap_ctx ctx = ctx_create(false);

	for (int32_t p = 1; p <= 5; p++)
		for (int32_t v = p > 1 ? 2 : 1; v <= 4; v++) {
			enum { EACH = 3 };
			int64_t m = EACH * p, n = m * v, ahead = (v - 1) * p + 1, most;
			const struct ap_pass_times one = {.forward_s = 1, .backward_s = 1,
				.last_backward_s = 1, .forward_beside = {0.5, 0.5},
				.backward_beside = {0.5, 0.5}};
			struct ap_pass_times time[20];
			struct ap_pipe pipe;
			struct ap_timeline line;
			double last;

			for (int32_t i = 0; i < p * v; i++)
				time[i] = one;
			ap_schedule_pipe(&ctx, ap_scheduler_beside(ap_scheduler_find("interleaved")), p, v, m,
				&pipe);
			ap_schedule_run(&ctx, &pipe, m, true, time, &line);
			last = line.slot[line.first[p] - 1].end_s; /* passes and pairs take 1 s each */
			close_to(last, (double)(p - 1 + n + ahead), p, v, m);
			most = 0;
			for (int32_t c = 0; c < v; c++)
				most += pipe.in_flight[(p - 1) * v + c];
			ck_assert_int_eq(most, ahead + 1);
		}
	ctx_destroy(&ctx);
}
END_TEST
