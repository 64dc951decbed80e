/* SPDX-License-Identifier: Apache-2.0 */
#include "report/compared.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"

enum { DIGITS = 4, SHOWN_TERMS = 5 };

double ap_compared_predicted_s(const struct ap_compared_run *r)
{
	return r->predicted_s > 0 ? r->predicted_s : r->planned_s;
}

/* A number with one digit behind the point, in any locale. */
static const char *tenths(struct ap_arena *arena, double v)
{
	int64_t t = llround(fmin(fabs(v), 1e15) * 10);

	return ap_arena_printf(arena, "%s%" PRId64 ".%" PRId64, v < 0 && t ? "-" : "", t / 10, t % 10);
}

/* A share as "+2.3 %". */
static const char *percent(struct ap_arena *arena, double share)
{
	return ap_arena_printf(arena, "%s%s %%", share >= 0 ? "+" : "", tenths(arena, share * 100));
}

/* A number of a profile in few digits, with its unit. */
static const char *value(struct ap_arena *arena, const struct ap_compared_term *t, double v)
{
	char text[32], buf[32];

	if (!strcmp(t->unit, "s"))
		return ap_arena_strdup(arena, ap_format_seconds(v, buf));
	if (!strcmp(t->unit, "B"))
		return ap_arena_strdup(arena, ap_format_bytes((int64_t)v, buf));
	snprintf(text, sizeof text, "%.*e", DIGITS - 1, v);
	return ap_arena_strdup(arena, ap_format_double(ap_strtod(text, NULL), buf));
}

static void line(struct ap_str *out, struct ap_arena *arena, const char *what, const char *measured,
	const char *predicted, double error, const char *rest)
{
	ap_str_addf(out, "%-22s%12s%12s%10s   %s\n", what, measured, predicted, percent(arena, error), rest);
}

static void write_run(struct ap_ctx *ctx, const struct ap_compared_run *r, struct ap_str *out)
{
	struct ap_arena *arena = ctx->arena;
	const struct ap_settled *s = &r->settled;
	double predicted = ap_compared_predicted_s(r);
	char a[32], b[32], c[32], d[32], e[32];

	ap_str_addf(out, "%s and %s (%s)\n", ap_diag_path(ctx->diag, r->plan),
		ap_diag_path(ctx->diag, r->log), r->format);
	if (s->read)
		ap_str_addf(out, "iterations read %zu, left out at the beginning %zu\n", s->read,
			s->left_out);
	ap_str_addf(out, "%-22s%12s%12s%10s\n", "", "measured", "predicted", "error");
	if (s->read) {
		line(out, arena, "step", ap_format_seconds(s->median_s, a), ap_format_seconds(predicted, b),
			predicted / s->median_s - 1, ap_arena_printf(arena,
			"half of them %s to %s, all %s to %s", ap_format_seconds(s->quarter_s, c),
			ap_format_seconds(s->three_quarters_s, d), ap_format_seconds(s->least_s, e),
			ap_format_seconds(s->most_s, (char[32]){0})));
		if (r->tokens_of_device > 0)
			line(out, arena, "tokens/s of a device",
				tenths(arena, r->tokens_of_device / s->median_s),
				tenths(arena, r->tokens_of_device / predicted),
				s->median_s / predicted - 1, "");
	}
	for (size_t i = 0; i < r->nmemory; i++) {
		const struct ap_compared_memory *m = &r->memory[i];

		line(out, arena, m->stage < 0 ? "memory, fullest device"
			: ap_arena_printf(arena, "memory, stage %" PRId64, m->stage),
			ap_format_bytes(m->measured_bytes, a), ap_format_bytes(m->predicted_bytes, b),
			(double)m->predicted_bytes / (double)m->measured_bytes - 1,
			ap_arena_printf(arena, "%s; most of %zu figure%s", ap_run_bytes_name(m->kind),
			m->lines, m->lines == 1 ? "" : "s"));
	}
	if (s->read && r->predicted_s > 0 && fabs(r->predicted_s / r->planned_s - 1) > 1e-9)
		ap_str_addf(out, "the plan file says %s\n", ap_format_seconds(r->planned_s, a));
	if (s->read && r->fitted_s > 0)
		line(out, arena, "step, fitted profile", ap_format_seconds(s->median_s, a),
			ap_format_seconds(r->fitted_s, b), r->fitted_s / s->median_s - 1, "");
	if (r->ndiffer)
		ap_str_addf(out,
			"settings that log and plan both state: %zu, of which %zu differ, as messages say\n",
			r->nstated, r->ndiffer);
	else if (r->nstated)
		ap_str_addf(out, "settings that log and plan both state: %zu, none of which differs\n",
			r->nstated);
}

static void write_term(struct ap_arena *arena, const struct ap_compared_term *t, struct ap_str *out)
{
	bool plain = strcmp(t->unit, "s") != 0 && strcmp(t->unit, "B") != 0;

	ap_str_addf(out, "  %s, %s: %s -> %s%s%s", t->profile, t->path, value(arena, t, t->was),
		value(arena, t, t->is), plain ? " " : "", plain ? t->unit : "");
}

void ap_compared_write(struct ap_ctx *ctx, const struct ap_compared *c, struct ap_str *out)
{
	struct ap_arena *arena = ctx->arena;
	size_t shown = c->nterm < SHOWN_TERMS ? c->nterm : SHOWN_TERMS;

	for (size_t i = 0; i < c->nrun; i++) {
		if (i)
			ap_str_addc(out, '\n');
		write_run(ctx, &c->run[i], out);
	}
	if (c->nterm)
		ap_str_addf(out, "\nwhat explains the times best, of numbers of profiles, each moved alone "
			"(mean error now %s %%):\n", tenths(arena, c->error * 100));
	for (size_t i = 0; i < shown; i++) {
		write_term(arena, &c->term[i], out);
		ap_str_addf(out, "; error then %s %%\n", tenths(arena, c->term[i].error * 100));
	}
	if (c->profile)
		ap_str_addf(out, "\nprofile %s:\n", ap_diag_path(ctx->diag, c->profile));
	for (size_t i = 0; i < c->nfitted; i++) {
		write_term(arena, &c->fitted[i], out);
		ap_str_addc(out, '\n');
	}
	if (c->profile && !c->nfitted)
		ap_str_add(out, "  no number of it had to be moved\n");
	if (c->again)
		ap_str_addf(out, "\nwhat changes in the plan then: %s\n", c->again);
}

static void write_term_json(struct ap_jw *w, const struct ap_compared_term *t)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "profile", t->profile);
	ap_jw_kstr(w, "path", t->path);
	ap_jw_kstr(w, "unit", t->unit);
	ap_jw_knum(w, "was", t->was);
	ap_jw_knum(w, "is", t->is);
	ap_jw_knum(w, "error_percent", t->error * 100);
	ap_jw_end(w);
}

static void write_run_json(struct ap_ctx *ctx, const struct ap_compared_run *r, struct ap_jw *w)
{
	const struct ap_settled *s = &r->settled;
	double predicted = ap_compared_predicted_s(r);

	ap_jw_obj(w);
	ap_jw_kstr(w, "plan", ap_diag_path(ctx->diag, r->plan));
	ap_jw_kstr(w, "log", ap_diag_path(ctx->diag, r->log));
	ap_jw_kstr(w, "format", r->format);
	ap_jw_kobj(w, "iterations");
	ap_jw_kint(w, "read", (int64_t)s->read);
	ap_jw_kint(w, "left_out", (int64_t)s->left_out);
	ap_jw_end(w);
	ap_jw_kobj(w, "step");
	if (s->read) {
		const struct { const char *key; double v; } times[] = {{"measured_s", s->median_s},
			{"least_s", s->least_s}, {"quarter_s", s->quarter_s},
			{"three_quarters_s", s->three_quarters_s}, {"most_s", s->most_s}};

		for (size_t i = 0; i < sizeof times / sizeof *times; i++)
			ap_jw_knum(w, times[i].key, times[i].v);
		ap_jw_knum(w, "error_percent", (predicted / s->median_s - 1) * 100);
	}
	ap_jw_knum(w, "predicted_s", predicted);
	ap_jw_knum(w, "planned_s", r->planned_s);
	if (r->fitted_s > 0)
		ap_jw_knum(w, "fitted_s", r->fitted_s);
	if (r->tokens_of_device > 0 && s->read)
		ap_jw_knum(w, "measured_tokens_per_s_per_device", r->tokens_of_device / s->median_s);
	if (r->tokens_of_device > 0)
		ap_jw_knum(w, "predicted_tokens_per_s_per_device", r->tokens_of_device / predicted);
	ap_jw_end(w);
	ap_jw_karr(w, "memory");
	for (size_t i = 0; i < r->nmemory; i++) {
		const struct ap_compared_memory *m = &r->memory[i];

		ap_jw_obj_flat(w);
		if (m->stage >= 0)
			ap_jw_kint(w, "stage", m->stage);
		ap_jw_kstr(w, "counts", ap_run_bytes_name(m->kind));
		ap_jw_kint(w, "figures", (int64_t)m->lines);
		ap_jw_kint(w, "measured_bytes", m->measured_bytes);
		ap_jw_kint(w, "predicted_bytes", m->predicted_bytes);
		ap_jw_knum(w, "error_percent",
			((double)m->predicted_bytes / (double)m->measured_bytes - 1) * 100);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_kobj(w, "settings");
	ap_jw_kint(w, "stated_by_both", (int64_t)r->nstated);
	ap_jw_kint(w, "differ", (int64_t)r->ndiffer);
	ap_jw_end(w);
	ap_jw_end(w);
}

void ap_compared_write_json(struct ap_ctx *ctx, const struct ap_compared *c, struct ap_str *out)
{
	struct ap_jw w;

	ap_jw_str_init(&w, out, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-compare/1");
	ap_jw_karr(&w, "runs");
	for (size_t i = 0; i < c->nrun; i++)
		write_run_json(ctx, &c->run[i], &w);
	ap_jw_end(&w);
	ap_jw_knum(&w, "error_percent", c->error * 100);
	ap_jw_karr(&w, "explained_by");
	for (size_t i = 0; i < c->nterm; i++)
		write_term_json(&w, &c->term[i]);
	ap_jw_end(&w);
	if (c->again)
		ap_jw_kstr(&w, "what_changes", c->again);
	if (c->profile) {
		ap_jw_kstr(&w, "profile", ap_diag_path(ctx->diag, c->profile));
		ap_jw_karr(&w, "fitted");
		for (size_t i = 0; i < c->nfitted; i++)
			write_term_json(&w, &c->fitted[i]);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
