/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trial.h"

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "cli/given.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "plan/lean.h"

#define FIND_WORK (UINT64_C(1) << 24) /* more finds little more */
#define PROVE_WORK (UINT64_C(1) << 32)

static enum ap_status prepare(struct ap_run *run, const struct ap_sources *src, struct ap_inputs *in)
{
	const int32_t *const *counts;

	ap_settings_check(&run->ctx, run->opt);
	AP_TRY(ap_diag_status(run->ctx.diag));
	AP_TRY(ap_inputs_make(run, src, in));
	AP_TRY(ap_given_counts(run, in, &counts));
	if (counts)
		in->request.given = counts;
	return AP_OK;
}

static enum ap_verdict prove_it(struct ap_run *run, struct ap_inputs *in, int64_t *bytes)
{
	struct ap_plan plan;
	enum ap_status st;

	in->request.budget.work = PROVE_WORK;
	st = ap_drive_search(&run->ctx, &in->request, &plan, NULL);
	if (st == AP_OK)
		*bytes = plan.prediction.memory.total;
	return st == AP_OK ? AP_VERDICT_FITS
		: st == AP_INFEASIBLE ? AP_VERDICT_PROVEN_NOT : AP_VERDICT_UNKNOWN;
}

static void judge(struct ap_run *run, const struct ap_sources *src, bool prove, struct ap_trial *t)
{
	const struct ap_memory *m;
	struct ap_inputs in;
	struct ap_plan plan;
	bool fits;

	t->verdict = AP_VERDICT_NO_PLAN;
	if (prepare(run, src, &in) != AP_OK)
		return;
	in.request.budget.work = FIND_WORK;
	fits = ap_plan_lean(&run->ctx, &in.request, &plan);
	m = &plan.prediction.memory;
	if (plan.graph) {
		t->bytes = m->total;
		t->hopeless = m->context > in.request.capacity_bytes;
	}
	if (fits)
		t->verdict = AP_VERDICT_FITS;
	else if (t->hopeless || (plan.graph && !ap_given_searches(run->opt)))
		t->verdict = AP_VERDICT_PROVEN_NOT;
	else if (ap_given_searches(run->opt))
		t->verdict = prove ? prove_it(run, &in, &t->bytes) : AP_VERDICT_UNKNOWN;
}

struct judging {
	struct ap_run *run;
	const struct ap_sources *src;
	bool prove;
	struct ap_trial *t;
};

static void try_judge(void *user)
{
	struct judging *j = user;

	j->run->ctx.diag = ap_diag_create(j->run->ctx.arena, false);
	judge(j->run, j->src, j->prove, j->t);
}

struct ap_trial ap_trial_make(const struct ap_run *run, const struct ap_sources *src,
	const struct ap_options *o, bool prove)
{
	struct ap_trial t = {0};
	struct ap_options silent = *o;
	struct ap_run trial = *run;
	struct judging j = {&trial, src, prove, &t};
	struct ap_arena *made; /* graphs and tables of many trials */

	silent.verbose = silent.progress = false;
	trial.opt = &silent;
	trial.phase = NULL;
	trial.phase_shown = false;
	trial.ctx.phase = NULL;
	if (!ap_attempt_apart(&trial.ctx, try_judge, NULL, &j, &made))
		return (struct ap_trial){.verdict = AP_VERDICT_UNKNOWN};
	ap_arena_destroy(made);
	return t;
}
