/* SPDX-License-Identifier: Apache-2.0 */
#include "api/compare.h"

#include <string.h>

#include "api/replan.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "ckpt/ckpt_file.h"
#include "diff/diff_write.h"
#include "planfile/plan_form.h"
#include "report/show.h"

static const char *option_name(struct ap_ctx *ctx)
{
	return ap_option_spelling(ctx->arena, "--", ap_setting_at(AP_SET_fail_if));
}

enum ap_status ap_fail_if_read(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_fail_if *out)
{
	*out = (struct ap_fail_if){0};
	if (!set->fail_if)
		return AP_OK;
	AP_TRY(ap_limits_parse(ctx, option_name(ctx), set->fail_if, &out->n,
		&out->limit));
	for (uint32_t i = 0; i < out->n; i++)
		out->nchange += out->limit[i].change;
	return AP_OK;
}

static enum ap_status check_plan(struct ap_ctx *ctx, const struct ap_saved *s)
{
	if (s->is_plan)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, &(struct ap_where){.file = s->file}, NULL,
		"%s needs a plan; a strategy checkpoint holds no figures", option_name(ctx));
}

static enum ap_status check_sides(struct ap_ctx *ctx, const struct ap_fail_if *f,
	const struct ap_saved *was, const struct ap_saved *is)
{
	uint32_t i = 0;

	AP_TRY(check_plan(ctx, is));
	if (was)
		return check_plan(ctx, was);
	if (!f->nchange)
		return AP_OK;
	while (!f->limit[i].change)
		i++;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, &(struct ap_where){.file = is->file}, NULL,
		"%s %s is about a change, but there is nothing to compare with; leave the sign out, or "
		"use diff or check --against", option_name(ctx), f->limit[i].text);
}

static void report(struct ap_ctx *ctx, const struct ap_saved *is, const struct ap_verdict *v)
{
	(void)ap_diag_add(ctx->diag, AP_ERROR, AP_DIFFERS, &(struct ap_where){.file = is->file},
		"fail-if", "%s: %s %s%s%s%s%s%s", v->text, v->metric, v->was, *v->was ? " -> " : "",
		v->is, *v->note ? " (" : "", v->note, *v->note ? ")" : "");
}

enum ap_status ap_fail_if_judge(struct ap_ctx *ctx, const struct ap_fail_if *f, const struct ap_saved *was,
	const struct ap_saved *is, const struct ap_verdict **verdict)
{
	struct ap_verdict *v = AP_NEW_N(ctx->arena, struct ap_verdict, f->n);
	enum ap_status st = AP_OK;

	if (!f->n)
		return AP_OK;
	AP_TRY(check_sides(ctx, f, was, is));
	for (uint32_t i = 0; i < f->n; i++) {
		AP_TRY(ap_limit_judge(ctx, &f->limit[i], was, is, &v[i]));
		if (!v[i].holds)
			continue;
		report(ctx, is, &v[i]);
		st = AP_DIFFERS;
	}
	if (verdict)
		*verdict = v;
	return st;
}

/* Reads a plan or a strategy checkpoint. */
static enum ap_status read_file(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_json **plan, struct ap_ckpt *ckpt)
{
	struct ap_known file;

	*plan = NULL;
	if (ap_file_is_folder(path))
		return ap_ckpt_load(ctx, set, path, ckpt);
	AP_TRY(ap_kind_read(ctx, set, path, &file));
	if (file.kind == AP_KIND_PLAN) {
		*plan = file.doc;
		return AP_OK;
	}
	if (file.kind != AP_KIND_STRATEGY)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = file.in.path}, NULL,
			"is %s; expected a plan or a strategy checkpoint", ap_kind_text(file.kind));
	return ap_ckpt_read(ctx, file.in.path, file.in.text, file.in.len, file.json, ckpt);
}

/* What gets compared is a small part of the file: only a plan's document is kept. */
static enum ap_status read_side(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	struct ap_saved *out, struct ap_replan_side *side)
{
	struct ap_ctx own = *ctx;
	struct ap_json *plan;
	struct ap_ckpt ckpt;
	enum ap_status st;

	own.arena = ap_arena_create_like(ctx->arena);
	st = read_file(&own, set, path, &plan, &ckpt);
	*side = (struct ap_replan_side){plan, out};
	if (st == AP_OK && plan) {
		ap_arena_own(ctx->arena, own.arena);
		return ap_saved_of_plan(ctx, plan, out);
	}
	if (st == AP_OK)
		ap_saved_of_ckpt(ctx, &ckpt, out);
	ap_arena_destroy(own.arena);
	return st;
}

enum ap_status ap_show_plan(struct ap_writing *to, const char *path, struct ap_str *text)
{
	struct ap_ctx *ctx = to->ctx;
	struct ap_saved plan;
	struct ap_known file;

	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(ctx, "reading");
	AP_TRY(ap_kind_read(ctx, to->set, path, &file));
	if (file.kind != AP_KIND_PLAN)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING,
			&(struct ap_where){.file = file.in.path}, NULL,
			"is %s; expected a plan, as --plan-out writes it", ap_kind_text(file.kind));
	AP_TRY(ap_plan_form_check(ctx, file.doc));
	AP_TRY(ap_saved_of_plan(ctx, file.doc, &plan));
	ap_show(ctx, &plan, to->set->figures, text);
	return AP_OK;
}

/* The writer that --format or --json names. */
static enum ap_status choose_writer(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_diff_writer **out)
{
	const struct ap_settings *o = set;
	size_t i = (size_t)o->format;

	*out = ap_diff_writer_at(i);
	if (!o->json || !strcmp((*out)->name, "json"))
		return AP_OK;
	if (o->origin[AP_SET_format] == AP_FROM_OPTION)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--json and --format %s contradict each other", (*out)->name);
	for (i = 0; strcmp(ap_diff_writer_at(i)->name, "json") != 0; i++)
		;
	*out = ap_diff_writer_at(i);
	return AP_OK;
}

enum ap_status ap_compare(struct ap_writing *to, const char *old, const char *new, bool color,
	struct ap_str *text)
{
	const struct ap_diff_style style = {.color = color, .all = to->set->verbose};
	const struct ap_settings *set = to->set;
	const struct ap_diff_writer *writer;
	struct ap_ctx *ctx = to->ctx;
	struct ap_fail_if conditions;
	struct ap_replan_side side[2];
	struct ap_transfer transfer;
	struct ap_saved was, is;
	enum ap_status verdict;
	struct ap_diff d;

	AP_TRY(choose_writer(ctx, set, &writer));
	AP_TRY(ap_fail_if_read(ctx, set, &conditions));
	AP_TRY(ap_out_check(to, NULL));
	ap_ctx_phase(ctx, "reading");
	AP_TRY(read_side(ctx, set, old, &was, &side[0]));
	AP_TRY(read_side(ctx, set, new, &is, &side[1]));
	ap_ctx_phase(ctx, "comparing");
	ap_diff_make(ctx, &was, &is, &d);
	if (set->reshard && (!was.is_plan || !is.is_plan))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--reshard compares plans; a strategy checkpoint does not tell the machine");
	if (set->reshard) {
		ap_transfer_make(ctx, &was, &is, d.old_param, &transfer);
		d.transfer = &transfer;
	}
	AP_TRY(ap_replan(ctx, set, &side[0], &side[1], &d));
	verdict = ap_fail_if_judge(ctx, &conditions, &was, &is, &d.verdict);
	if (verdict != AP_DIFFERS)
		AP_TRY(verdict);
	d.nverdict = conditions.n;
	writer->write(ctx, &d, &style, text);
	return d.equal || conditions.n ? AP_OK : AP_DIFFERS;
}
