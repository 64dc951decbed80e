/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions judged. */
#include "diff/limit.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "diff/diff_parts.h"
#include "diff/limit_parts.h"

/* Is it the fact, or that of one of several stages? */
static bool is_fact(const struct ap_saved_fact *f, const struct ap_metric *m)
{
	const char *dot = strrchr(f->key, '.');

	return f->is_number && !strcmp(f->section, m->section) &&
		(!strcmp(f->key, m->key) ||
			(!strcmp(m->section, "memory") && dot && !strcmp(dot + 1, m->key)));
}

/* The most of all stages; NULL after a message. */
static const struct ap_saved_fact *find_fact(struct ap_ctx *ctx, const struct ap_saved *s,
	const struct ap_metric *m)
{
	const struct ap_saved_fact *best = NULL;
	const char *of = s->is_plan ? "plan" : "strategy checkpoint";

	for (uint32_t i = 0; i < s->nfact; i++)
		if (is_fact(&s->fact[i], m) && (!best || s->fact[i].number > best->number))
			best = &s->fact[i];
	if (!best)
		(void)ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = s->file},
			NULL, "this %s holds no %s.%s, which %s is", of, m->section, m->key, m->name);
	return best;
}

static bool holds(enum ap_limit_op op, double value, double bound)
{
	switch (op) {
	case AP_ABOVE:
		return value > bound;
	case AP_AT_LEAST:
		return value >= bound;
	case AP_BELOW:
		return value < bound;
	case AP_AT_MOST:
		break;
	}
	return value <= bound;
}

static double bound_of(const struct ap_limit *l, double whole)
{
	return (l->change ? whole : 0) + l->value * (l->share ? whole : 1);
}

static const char *value_text(struct ap_ctx *ctx, const struct ap_metric *m,
	const struct ap_saved_fact *fact)
{
	struct ap_diff_figure f = {.section = m->section, .key = m->key, .was = fact->json,
		.is = fact->json, .was_number = fact->number, .is_number = fact->number};
	const char *was, *is;
	char buf[32];

	if (m->kind == AP_METRIC_SHARE)
		return ap_arena_printf(ctx->arena, "%s %%",
			ap_format_double(rint(1e6 * fact->number) / 1e4, buf));
	ap_diff_texts(ctx, &f, &was, &is);
	return is;
}

/* "+9.7 points" */
static const char *points_text(struct ap_ctx *ctx, double share)
{
	char buf[32];

	return ap_arena_printf(ctx->arena, "%s%s points", share < 0 ? "" : "+",
		ap_format_double(rint(1e6 * share) / 1e4, buf));
}

static enum ap_status judge_change(struct ap_ctx *ctx, const struct ap_limit *l,
	const struct ap_saved_fact *is, const struct ap_saved *old, struct ap_verdict *out)
{
	const struct ap_saved_fact *was = find_fact(ctx, old, l->metric);
	struct ap_diff_figure f = {.section = l->metric->section, .key = l->metric->key};

	if (!was)
		return AP_MEANING;
	f.changed = strcmp(was->json, is->json) != 0;
	f.was = was->json;
	f.is = is->json;
	f.was_number = was->number;
	f.is_number = is->number;
	ap_diff_texts(ctx, &f, &out->was, &out->is);
	out->note = ap_diff_change(ctx, was->number, is->number);
	if (l->metric->kind == AP_METRIC_SHARE) {
		out->was = value_text(ctx, l->metric, was);
		out->is = value_text(ctx, l->metric, is);
		out->note = points_text(ctx, is->number - was->number);
	}
	out->was_number = was->number;
	out->holds = holds(l->op, is->number, bound_of(l, was->number));
	return AP_OK;
}

/* "96.9 %" */
static const char *percent_text(struct ap_ctx *ctx, double share)
{
	char buf[32];

	return ap_arena_printf(ctx->arena, "%s %%", ap_format_double(rint(1e3 * share) / 10, buf));
}

static enum ap_status judge_alone(struct ap_ctx *ctx, const struct ap_limit *l,
	const struct ap_saved_fact *fact, const struct ap_saved *is, struct ap_verdict *out)
{
	const struct ap_metric *of = l->share ? ap_metric_find(l->metric->whole) : NULL;
	const struct ap_saved_fact *whole = of ? find_fact(ctx, is, of) : NULL;

	if (of && !whole)
		return AP_MEANING;
	out->is = value_text(ctx, l->metric, fact);
	if (whole && whole->number > 0)
		out->note = ap_arena_printf(ctx->arena, "%s of %s",
			percent_text(ctx, fact->number / whole->number), value_text(ctx, of, whole));
	out->holds = holds(l->op, fact->number, bound_of(l, whole ? whole->number : 0));
	return AP_OK;
}

/* Of a plan that is evaluated anew, the search that made it is the old one's. */
static bool is_evaluated(const struct ap_saved *s)
{
	for (uint32_t i = 0; i < s->nfact; i++)
		if (!strcmp(s->fact[i].section, "search") && !strcmp(s->fact[i].key, "status"))
			return !strcmp(s->fact[i].json, "\"given\"");
	return false;
}

enum ap_status ap_limit_judge(struct ap_ctx *ctx, const struct ap_limit *limit,
	const struct ap_saved *was, const struct ap_saved *is, struct ap_verdict *out)
{
	const struct ap_saved *told = limit->metric->searched && was && is_evaluated(is) ? was : is;
	const struct ap_saved_fact *fact = find_fact(ctx, told, limit->metric);

	if (!fact)
		return AP_MEANING;
	*out = (struct ap_verdict){.text = limit->text, .was = "", .note = "", .was_number = NAN,
		.is_number = fact->number, .metric = ap_diff_label(ctx, limit->metric->name)};
	return limit->change ? judge_change(ctx, limit, fact, was, out)
			     : judge_alone(ctx, limit, fact, is, out);
}
