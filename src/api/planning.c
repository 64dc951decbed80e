/* SPDX-License-Identifier: Apache-2.0 */
#include "api/planning.h"

#include "api/bundle.h"
#include "api/relax.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "ckpt/ckpt_make.h"
#include "drive/certify.h"
#include "report/summary.h"

/* Do they ask for what no plan under them has? */
static enum ap_status check_settings(struct ap_ctx *ctx, const struct ap_settings *set, unsigned use)
{
	if (use == AP_FOR_evaluate && !set->strategy && !set->hybrid)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"evaluate: no strategy; expected --strategy FILE or --hybrid LIST");
	if (use == AP_FOR_evaluate || !set->certify)
		return AP_OK;
	if (!ap_settings_search(set))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--certify: %s leaves nothing to search", ap_settings_giver(ctx, set));
	return ap_certify_check(ctx, ap_setting_text(ctx->arena, ap_setting_at(AP_SET_search_mode), set));
}

enum ap_status ap_planning_check(struct ap_writing *to, unsigned use, struct ap_planning *p)
{
	*p = (struct ap_planning){0};
	AP_TRY(check_settings(to->ctx, to->set, use));
	AP_TRY(ap_plan_check_outputs(to));
	return ap_bundle_template(to->ctx, to->set, &p->made.op_template);
}

enum ap_status ap_planning_begin(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p)
{
	AP_TRY(ap_inputs_make(to->ctx, to->set, src, use, &p->in));
	AP_TRY(ap_inputs_give(to->ctx, to->set, src, use, &p->in));
	AP_TRY(ap_plan_check_stages(to, p->in.machine->nstage));
	if (to->set->strategy_ckpt_save_file || to->set->bundle)
		AP_TRY(ap_ckpt_check_names(to->ctx, p->in.graph, !to->set->only_trainable_params));
	return ap_bundle_begin(to);
}

/* A plan that was not searched, held against the memory. */
static enum ap_status check_memory(struct ap_ctx *ctx, const struct ap_settings *set, unsigned use,
	const struct ap_plan *plan)
{
	int64_t bytes = plan->prediction.memory.total, usable = plan->capacity_bytes;
	char need[32], have[32], lack[32];

	if (bytes <= usable)
		return AP_OK;
	if (use == AP_FOR_evaluate)
		return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, NULL, "memory-fits",
			"this strategy needs %s on a device that has %s", ap_format_bytes(bytes, need),
			ap_format_bytes(usable, have));
	(void)ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "memory",
		"%s does not fit the memory: %s are needed on a device, %s are usable, %s are short",
		ap_settings_giver(ctx, set), ap_format_bytes(bytes, need), ap_format_bytes(usable, have),
		ap_format_bytes(bytes - usable, lack));
	ap_diag_figure(ctx->diag, "needed_bytes", bytes);
	ap_diag_figure(ctx->diag, "usable_bytes", usable);
	ap_diag_figure(ctx->diag, "short_bytes", bytes - usable);
	return AP_INFEASIBLE;
}

enum ap_status ap_planning_make(struct ap_writing *to, const struct ap_sources *src, unsigned use,
	struct ap_planning *p)
{
	struct ap_ctx *ctx = to->ctx;
	enum ap_status st;

	ap_ctx_phase(ctx, use == AP_FOR_search ? "planning" : "evaluating");
	st = ap_inputs_plan(ctx, &p->in, &p->found, &p->plan, &p->made.problem);
	if (p->found.arena)
		ap_arena_own(ctx->arena, p->found.arena);
	if (st == AP_OK && p->in.counts)
		st = check_memory(ctx, to->set, use, &p->plan);
	if (st == AP_INFEASIBLE && use == AP_FOR_search && !to->set->quiet)
		ap_relax_report(ctx, to->set, src, &p->in, p->found.steps);
	p->made.plan = &p->plan;
	if (st == AP_OK && to->set->problem_out && !p->made.problem) /* what needed no table has one, too */
		return ap_drive_table(ctx, &p->in.request, &p->made.problem);
	return st;
}

struct writing {
	struct ap_writing *to;
	const struct ap_made *made;
	const char *rest;
	enum ap_status st;
};

static void add_text(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

static enum ap_status write_all(struct writing *w)
{
	const struct ap_settings *set = w->to->set;
	struct ap_str summary;
	bool taken;
	enum ap_status st = ap_plan_stage(w->to, w->made, &taken);

	if (st != AP_OK && st != AP_STOPPED)
		return st;
	ap_str_init(&summary, w->to->ctx->arena);
	if (set->json)
		ap_emit_summary_json(w->made->plan, add_text, &summary);
	else if (!set->quiet)
		ap_emit_summary(w->made->plan, &summary);
	if (!taken && summary.len)
		AP_TRY(ap_out_text(w->to, summary.s, summary.len));
	AP_TRY(ap_out_commit(w->to));
	w->rest = taken ? summary.s : "";
	return st;
}

static void try_write(void *user)
{
	struct writing *w = user;

	w->st = write_all(w);
}

static void discard(void *user)
{
	struct writing *w = user;

	ap_outputs_discard(w->to->staged);
	w->to->staged = NULL;
}

enum ap_status ap_planning_write(struct ap_writing *to, struct ap_planning *p, const char **rest)
{
	bool again = p->found.arena && !to->set->problem_out && !to->staged;
	struct writing w = {.to = to, .made = &p->made, .rest = ""};
	struct ap_arena *made = NULL;

	ap_ctx_phase(to->ctx, "writing");
	if (!again) {
		try_write(&w);
	} else if (!ap_attempt_apart(to->ctx, try_write, discard, &w, &made)) {
		AP_TRY(ap_drive_again(to->ctx, &p->in.request, &p->found, &p->plan));
		try_write(&w);
	}
	if (made)
		ap_arena_own(to->ctx->arena, made);
	if (p->found.arena)
		ap_arena_own(to->ctx->arena, p->found.arena);
	*rest = w.rest;
	return w.st;
}
