/* SPDX-License-Identifier: Apache-2.0 */
/* Of the summary: pipeline, stages, and what the plan is held against. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "base/str.h"
#include "plan/terms.h"
#include "report/summary_parts.h"

enum { MOST_BASELINES = 5 };

void ap_summary_tenths(struct ap_str *out, double v)
{
	int64_t tenths = llrint(fmin(fabs(v), 1e15) * 10);

	ap_str_addf(out, "%s%" PRId64 ".%" PRId64, v < 0 && tenths ? "-" : "", tenths / 10, tenths % 10);
}

void ap_summary_percent(struct ap_str *out, double part, double whole)
{
	ap_summary_tenths(out, whole > 0 ? 100 * part / whole : 0);
	ap_str_add(out, " %");
}

void ap_summary_pipeline(struct ap_str *out, const struct ap_plan *p)
{
	const struct ap_pipe *pipe = p->step->pipe;

	if (p->nstage == 1)
		return;
	ap_str_addf(out, "%-18s%" PRIu32 " stages of %" PRIu32 " device%s", "pipeline", p->nstage,
		p->machine->ndev, p->machine->ndev == 1 ? "" : "s");
	if (pipe->nsegment > 1)
		ap_str_addf(out, ", %" PRId32 " segments each", pipe->nsegment);
	ap_str_addf(out, ", %s, %" PRId64 " micro-batch%s, bubble ", ap_plan_scheduler(p),
		p->step->micro_batches, p->step->micro_batches == 1 ? "" : "es");
	ap_summary_percent(out, p->prediction.bubble_s, p->prediction.step_time_s);
	ap_str_addc(out, '\n');
}

uint32_t ap_summary_worst_stage(const struct ap_plan *p)
{
	uint32_t worst = 0;

	for (uint32_t s = 1; s < p->nstage; s++)
		if (p->stage[s].memory.total > p->stage[worst].memory.total)
			worst = s;
	return worst;
}

static void add_stage(struct ap_str *out, const struct ap_plan *p, uint32_t s)
{
	const struct ap_plan_stage *stage = &p->stage[s];
	int64_t last = stage->first_rank + p->machine->ndev - 1;
	double segments = p->step->pipe ? p->step->pipe->nsegment : 1;
	char ranks[48], buf[32];

	if (p->machine->ndev == 1)
		snprintf(ranks, sizeof ranks, "%" PRId64, stage->first_rank);
	else
		snprintf(ranks, sizeof ranks, "%" PRId64 "-%" PRId64, stage->first_rank, last);
	snprintf(buf, sizeof buf, segments > 1 ? "%.2f" : "%.0f", (double)stage->in_flight / segments);
	ap_str_addf(out, "%5" PRIu32 "  %-13s%9" PRIu32 "%11s", s, ranks, stage->noperator, buf);
	ap_str_addf(out, "%12s", ap_format_bytes(stage->memory.total, buf));
	ap_str_addf(out, "%12s", ap_format_bytes(stage->peak_bytes, buf));
	ap_str_addf(out, "%11s", ap_format_seconds(stage->forward_s, buf));
	ap_str_addf(out, "%11s", ap_format_seconds(stage->backward_s, buf));
	ap_str_addf(out, "%11s\n", ap_format_seconds(stage->idle_s, buf));
}

void ap_summary_stages(struct ap_str *out, const struct ap_plan *p)
{
	if (p->nstage == 1)
		return;
	ap_str_add(out, "\nstages, times of one micro-batch, idle time of the step:\n");
	ap_str_addf(out, "%5s  %-13s%9s%11s%12s%12s%11s%11s%11s\n", "", "ranks", "operators",
		"in flight", "memory", "peak", "forward", "backward", "idle");
	for (uint32_t s = 0; s < p->nstage; s++)
		add_stage(out, p, s);
}

static void add_baseline(struct ap_str *out, const struct ap_plan *p, const struct ap_baseline *b)
{
	char buf[32];

	ap_str_addf(out, "%-17s ", b->name); /* a longer name still has its blank */
	if (!b->applicable) {
		ap_str_addf(out, "%10s  %s\n", "-", b->why_not ? b->why_not : "");
		return;
	}
	ap_str_addf(out, "%10s, ", ap_format_seconds(b->step_time_s, buf));
	if (p->prediction.step_time_s > 0) {
		ap_summary_tenths(out, b->step_time_s / p->prediction.step_time_s);
		ap_str_add(out, " times the plan's, ");
	}
	ap_str_addf(out, "%s%s", ap_format_bytes(b->memory_bytes, buf),
		b->fits ? "" : " (does not fit)");
	if (b->fits && ap_plan_bounds_baselines(p))
		ap_str_addf(out, ", %.1f %% above the bound",
			100 * (b->objective_s / p->search.lower_bound_s - 1));
	ap_str_addc(out, '\n');
}

/* Those that could be run first, then those that fit, then by time. */
static bool is_better(const struct ap_baseline *a, const struct ap_baseline *b)
{
	if (a->applicable != b->applicable || !a->applicable)
		return a->applicable && !b->applicable;
	if (a->fits != b->fits)
		return a->fits;
	return a->step_time_s < b->step_time_s;
}

void ap_summary_baselines(struct ap_str *out, const struct ap_plan *p)
{
	uint32_t best[MOST_BASELINES], n = 0;

	if (p->nbaseline <= MOST_BASELINES) {
		for (uint32_t i = 0; i < p->nbaseline; i++)
			add_baseline(out, p, &p->baseline[i]);
		return;
	}
	for (uint32_t i = 0; i < p->nbaseline; i++) {
		uint32_t at = n;

		while (at > 0 && is_better(&p->baseline[i], &p->baseline[best[at - 1]]))
			at--;
		if (at == MOST_BASELINES)
			continue;
		n += n < MOST_BASELINES;
		for (uint32_t j = n - 1; j > at; j--)
			best[j] = best[j - 1];
		best[at] = i;
	}
	for (uint32_t i = 0; i < n; i++)
		add_baseline(out, p, &p->baseline[best[i]]);
	ap_str_addf(out, "%-18s%10s %" PRIu32 " more, which --plan-out lists\n", "", "and",
		p->nbaseline - n);
}
