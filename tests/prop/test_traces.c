/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of random plans, as files: read back, can the step be so? */
#include "random_pipe.h"
#include "plan/plan.h"
#include "report/trace.h"
#include "trace.h"
#include "unit.h"

static void traced(struct trial *t)
{
	const int32_t *const *counts = trial_counts(t);
	struct ap_ctx *ctx = &t->f.ctx;
	struct ap_plan p;
	size_t events[AP_TRACE_FULL + 1];

	if (!counts)
		return;
	trial_plan(t, counts, &p);
	for (enum ap_trace_detail detail = AP_TRACE_BRIEF; detail <= AP_TRACE_FULL; detail++) {
		struct ap_str text;
		struct trace trace;
		const char *fault;

		ap_str_init(&text, ctx->arena);
		ap_emit_trace(ctx, &p, detail, ap_str_take, &text);
		fault = trace_read(ctx, "trace.json", text.s, text.len, &trace);
		if (!fault)
			fault = trace_check(ctx, &trace);
		REQUIRE(t, !fault, "%s", fault);
		REQUIRE(t, trace.nstage == (int64_t)p.nstage && trace.nmicro == p.step->micro_batches,
			"another step");
		t->telling = trace.flows.n > 0;
		events[detail] = trace.events.n;
	}
	REQUIRE(t, events[AP_TRACE_BRIEF] <= events[AP_TRACE_FULL], "more events in brief");
}

static void one_stage(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	traced(t);
	t->telling = t->f.step.training;
}

static void pipelines(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	if (random_pipe(t))
		traced(t);
}

static void unequal(struct trial *t)
{
	random_layers(t);
	random_recompute(t);
	if (random_pipe_unequal(t))
		traced(t);
}

START_TEST(of_one_stage)
{
	trial_each(200, 20, 16, one_stage);
}
END_TEST

START_TEST(of_pipelines)
{
	trial_each(500, 24, 16, pipelines);
}
END_TEST

START_TEST(of_unequal_stages)
{
	trial_each(500, 24, 16, unequal);
}
END_TEST
