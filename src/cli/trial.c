/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/trial.h"

#include <math.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "cli/given.h"
#include "cli/run.h"
#include "cli/settings.h"
#include "cost/pins.h"
#include "drive/choose.h"
#include "drive/lean.h"

#define FIND_WORK (UINT64_C(1) << 24) /* more finds little more */

/* Inner steps of a search, of which three take a nanosecond, and bytes. */
enum { TRIAL_STEPS = 1 << 23, OPERATOR_STEPS = 1 << 15, DEVICE_STEPS = 1 << 10 };
enum { PASS_STEPS = 1 << 7, STAGED_PASS_STEPS = 1 << 13 }; /* of one stage all micro-batches are alike */
enum { OPERATOR_BYTES = 4096, DEVICE_BYTES = 96, PASS_BYTES = 128 };
#define MOST_STEPS (UINT64_C(1) << 30) /* of what cannot be stopped: a third of a second */
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

struct ap_allowance ap_trial_price(const struct ap_options *o, const struct ap_sources *src,
	uint32_t operators)
{
	double devices = o->device_num ? (double)o->device_num : src->table ? src->table->ndev : 1;
	double passes = (double)o->pipeline_stages * (double)o->micro_batches *
		(o->pipeline_segments > 1 ? (double)o->pipeline_segments : 1);
	double steps = TRIAL_STEPS + operators * (double)OPERATOR_STEPS + devices * DEVICE_STEPS +
		passes * (o->pipeline_stages > 1 ? STAGED_PASS_STEPS : PASS_STEPS);
	double bytes = operators * (double)OPERATOR_BYTES + devices * DEVICE_BYTES + passes * PASS_BYTES;

	return (struct ap_allowance){(uint64_t)fmin(steps, 0x1p60), (uint64_t)fmin(bytes, 0x1p60)};
}

/* Takes from what is left; false: that is not enough. */
static bool afford(struct ap_allowance *left, const struct ap_allowance *price)
{
	if (!left)
		return true;
	if (price->steps > MOST_STEPS || price->steps >= left->steps || price->most_bytes > left->most_bytes)
		return false;
	left->steps -= price->steps;
	return true;
}

static void spend(struct ap_allowance *left, uint64_t steps)
{
	left->steps -= steps < left->steps ? steps : left->steps;
}

/* Does what operators need at least say that nothing fits? Cheaper than to look for what does. */
static bool is_hopeless(struct ap_run *run, const struct ap_inputs *in, struct ap_allowance *left)
{
	const int32_t *const *fixed;
	uint64_t work = 0;
	int64_t least;

	if (ap_pins_make(&run->ctx, in->graph, in->machine->ndev, &in->step, in->request.given,
			&fixed) != AP_OK)
		return false;
	least = ap_choose_least_bytes(&run->ctx, &in->request, fixed, &work);
	spend(left, work);
	return least > ap_choose_limit_bytes(&in->request);
}

static void judge(struct ap_run *run, const struct ap_sources *src, bool prove, struct ap_allowance *left,
	struct ap_trial *t)
{
	const struct ap_memory *m;
	struct ap_inputs in;
	struct ap_plan plan;
	bool fits;

	t->verdict = AP_VERDICT_NO_PLAN;
	if (prepare(run, src, &in) != AP_OK)
		return;
	t->verdict = ap_given_searches(run->opt) ? AP_VERDICT_UNKNOWN : AP_VERDICT_NO_PLAN;
	in.request.budget.work = FIND_WORK;
	if (left && is_hopeless(run, &in, left)) {
		t->verdict = AP_VERDICT_PROVEN_NOT;
		return;
	}
	if (left && (left->steps == 0 || ap_ctx_stopped(&run->ctx)))
		return;
	fits = ap_plan_lean(&run->ctx, &in.request, left ? &left->steps : NULL, &plan);
	m = &plan.prediction.memory;
	if (plan.graph) {
		t->bytes = m->total;
		t->hopeless = m->context > in.request.capacity_bytes;
	}
	if (fits)
		t->verdict = AP_VERDICT_FITS;
	else if (t->hopeless || (plan.graph && !ap_given_searches(run->opt)))
		t->verdict = AP_VERDICT_PROVEN_NOT;
	else if (ap_given_searches(run->opt) && prove)
		t->verdict = prove_it(run, &in, &t->bytes);
}

static uint32_t operators_of(const struct ap_sources *src)
{
	const struct ap_jv *list = ap_jv_get(ap_json_root(src->graph), "operators");

	return list ? (uint32_t)ap_jv_count(list) : 0;
}

struct judging {
	struct ap_run *run;
	const struct ap_sources *src;
	bool prove;
	struct ap_allowance *left;
	struct ap_trial *t;
};

static void try_judge(void *user)
{
	struct judging *j = user;

	j->run->ctx.diag = ap_diag_create(j->run->ctx.arena, false);
	judge(j->run, j->src, j->prove, j->left, j->t);
}

struct ap_trial ap_trial_make(const struct ap_run *run, const struct ap_sources *src,
	const struct ap_options *o, bool prove, struct ap_allowance *left)
{
	struct ap_trial t = {0};
	struct ap_options silent = *o;
	struct ap_run trial = *run;
	struct judging j = {&trial, src, prove, left, &t};
	struct ap_allowance price = ap_trial_price(o, src, operators_of(src));
	struct ap_arena *made; /* graphs and tables of many trials */

	if (!afford(left, &price))
		return (struct ap_trial){.verdict = AP_VERDICT_UNKNOWN};
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
