/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fail_if.h"

#include "base/arena.h"
#include "base/diag.h"

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
