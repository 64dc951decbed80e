/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/limit.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "diff/diff_write.h"
#include "planfile/plan_form.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

struct ap_metric {
	const char *section, *key; /* of the fact in a plan */
	const char *name;
	const char *whole; /* the metric that it is a part of, or NULL */
};

static const struct ap_metric metrics[] = {
#define KEY(...)
#define SINCE(path, version)
#define FIGURE(section, key, name, whole, text) {section, key, name, whole},
#include "planfile/plan_form.def"
#undef KEY
#undef SINCE
#undef FIGURE
};

static const struct {
	const char *name;
	enum ap_plan_unit unit;
	double factor;
} units[] = {
	{"s", AP_PLAN_S, 1},
	{"ms", AP_PLAN_S, 1e-3},
	{"us", AP_PLAN_S, 1e-6},
	{"", AP_PLAN_PER_S, 1},
};

static const char *const expected_units[] = {
	[AP_PLAN_S] = "s, ms or us",
	[AP_PLAN_BYTES] = "B, KB, MB, GB or TB (or KiB, K and so on)",
	[AP_PLAN_PER_S] = "none",
	[AP_PLAN_SHARE] = "%",
};

static enum ap_plan_unit unit_of(const struct ap_metric *m)
{
	return ap_plan_unit_of(m->key);
}

/* Is it a figure of the search, missing in evaluations? */
static bool is_searched(const struct ap_metric *m)
{
	return ap_plan_key_searched(m->section, m->key) || ap_plan_key_searched("prediction", m->key);
}

static const struct ap_metric *find_metric(const char *name)
{
	for (size_t i = 0; i < AP_COUNT(metrics); i++)
		if (!strcmp(metrics[i].name, name))
			return &metrics[i];
	return NULL;
}

/* ---- reading conditions ---- */

struct reader {
	struct ap_ctx *ctx;
	const char *option, *text, *at;
	struct ap_str kept; /* the condition so far, without blanks */
};

static enum ap_status fault(struct reader *r, const char *at, const char *what)
{
	return ap_diag_add(r->ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s \"%s\": character %zu: %s",
		r->option, ap_diag_name(r->ctx->diag, r->text), (size_t)(at - r->text) + 1, what);
}

static void skip_blanks(struct reader *r)
{
	r->at += strspn(r->at, " \t");
}

/* Takes the next characters in a set. */
static const char *take(struct reader *r, const char *set)
{
	size_t len = strspn(r->at, set);
	const char *word = ap_arena_strndup(r->ctx->arena, r->at, len);

	ap_str_addn(&r->kept, r->at, len);
	r->at += len;
	skip_blanks(r);
	return word;
}

static enum ap_status unknown_metric(struct reader *r, const char *at, const char *word)
{
	const char *best = NULL;
	struct ap_str names;
	int nearest = strlen(word) < 4 ? 2 : 4;

	ap_str_init(&names, r->ctx->arena);
	for (size_t i = 0; i < AP_COUNT(metrics); i++) {
		int d = ap_str_distance(word, metrics[i].name, nearest - 1);

		ap_str_addf(&names, "%s%s", i ? ", " : "", metrics[i].name);
		if (*word && d < nearest) {
			nearest = d;
			best = metrics[i].name;
		}
	}
	if (best)
		return fault(r, at, ap_arena_printf(r->ctx->arena,
			"no figure \"%s\"; did you mean %s?", word, best));
	return fault(r, at, ap_arena_printf(r->ctx->arena, "expected one of %s", names.s));
}

static enum ap_status bad_unit(struct reader *r, const char *at, const struct ap_limit *l)
{
	const struct ap_metric *m = l->metric;
	const char *also = unit_of(m) == AP_PLAN_SHARE ? ""
		: l->change ? ", or % of the old value"
		: m->whole  ? ap_arena_printf(r->ctx->arena, ", or %% of the %s",
			  strcmp(m->whole, "step_time") ? "device's memory" : "step's time")
			    : "; a change in % has a sign, as in +2%";

	return fault(r, at, ap_arena_printf(r->ctx->arena, "the unit of %s is %s%s", m->name,
		expected_units[unit_of(m)], also));
}

/* Reads a unit; "%" is one if there is a whole to relate to. */
static enum ap_status read_unit(struct reader *r, struct ap_limit *l)
{
	const char *at = r->at, *word = take(r, "%" LETTERS);

	if (!strcmp(word, "%") && (l->change || l->metric->whole || unit_of(l->metric) == AP_PLAN_SHARE)) {
		l->share = unit_of(l->metric) != AP_PLAN_SHARE;
		l->value /= 100;
		return AP_OK;
	}
	if (unit_of(l->metric) == AP_PLAN_BYTES && *word && ap_unit_shift(word) >= 0) {
		l->value *= (double)(INT64_C(1) << ap_unit_shift(word));
		return AP_OK;
	}
	for (size_t i = 0; i < AP_COUNT(units); i++)
		if (units[i].unit == unit_of(l->metric) && !strcmp(units[i].name, word)) {
			l->value *= units[i].factor;
			return AP_OK;
		}
	return bad_unit(r, at, l);
}

static enum ap_status read_limit(struct reader *r, struct ap_limit *l)
{
	static const char *const ops[] = {
		[AP_ABOVE] = ">",
		[AP_AT_LEAST] = ">=",
		[AP_BELOW] = "<",
		[AP_AT_MOST] = "<=",
	};
	const char *at, *word;
	size_t op = 0;
	bool minus;

	*l = (struct ap_limit){0};
	ap_str_init(&r->kept, r->ctx->arena);
	skip_blanks(r);
	at = r->at;
	word = take(r, LETTERS "_0123456789");
	l->metric = find_metric(word);
	if (!l->metric)
		return unknown_metric(r, at, word);
	at = r->at;
	word = take(r, "<>=!");
	while (op < AP_COUNT(ops) && strcmp(ops[op], word) != 0)
		op++;
	if (op == AP_COUNT(ops))
		return fault(r, at, "expected >, >=, < or <=");
	l->op = (enum ap_limit_op)op;
	minus = *r->at == '-';
	l->change = minus || *r->at == '+';
	if (l->change) {
		ap_str_addc(&r->kept, *r->at++);
		skip_blanks(r);
	}
	at = r->at;
	if (!ap_parse_double(take(r, "0123456789."), &l->value))
		return fault(r, at, "expected a number");
	if (minus)
		l->value = -l->value;
	AP_TRY(read_unit(r, l));
	l->text = r->kept.s;
	return *r->at && *r->at != ',' ? fault(r, r->at, "expected a comma or the end") : AP_OK;
}

enum ap_status ap_limits_parse(struct ap_ctx *ctx, const char *option, const char *text, uint32_t *n,
	const struct ap_limit **out)
{
	struct reader r = {.ctx = ctx, .option = option, .text = text, .at = text};
	AP_VEC(struct ap_limit) all = {0};

	for (;;) {
		struct ap_limit l;

		AP_TRY(read_limit(&r, &l));
		AP_PUSH(ctx->arena, all, l);
		if (!*r.at)
			break;
		r.at++;
	}
	*n = (uint32_t)all.n;
	*out = all.v;
	return AP_OK;
}

/* ---- judging ---- */

/* The fact of a metric; NULL after a message. */
static const struct ap_saved_fact *find_fact(struct ap_ctx *ctx, const struct ap_saved *s,
	const struct ap_metric *m)
{
	const struct ap_saved_fact *f = ap_saved_fact(s, m->section, m->key);

	if (f && f->is_number)
		return f;
	(void)ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = s->file}, NULL,
		"this %s holds no %s.%s, which %s is", s->is_plan ? "plan" : "strategy checkpoint",
		m->section, m->key, m->name);
	return NULL;
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

/* Formats a share in per cent with log10(scale) decimals: "96.9". */
static const char *percent(double share, double scale, char buf[32])
{
	return ap_format_double(rint(100 * scale * share) / scale, buf);
}

static const char *value_text(struct ap_ctx *ctx, const struct ap_metric *m,
	const struct ap_saved_fact *fact)
{
	struct ap_diff_figure f = {.section = m->section, .key = m->key, .was = fact->json,
		.is = fact->json, .was_number = fact->number, .is_number = fact->number};
	const char *was, *is;
	char buf[32];

	if (unit_of(m) == AP_PLAN_SHARE)
		return ap_arena_printf(ctx->arena, "%s %%", percent(fact->number, 1e4, buf));
	ap_diff_texts(ctx, &f, &was, &is);
	return is;
}

static enum ap_status judge_change(struct ap_ctx *ctx, const struct ap_limit *l,
	const struct ap_saved_fact *is, const struct ap_saved *old, struct ap_verdict *out)
{
	const struct ap_saved_fact *was = find_fact(ctx, old, l->metric);
	double more;
	char buf[32];

	if (!was)
		return AP_MEANING;
	if (unit_of(l->metric) == AP_PLAN_SHARE) {
		more = is->number - was->number;
		out->was = value_text(ctx, l->metric, was);
		out->is = value_text(ctx, l->metric, is);
		out->note = ap_arena_printf(ctx->arena, "%s%s points", more < 0 ? "" : "+",
			percent(more, 1e4, buf));
	} else {
		struct ap_diff_figure f = {.section = l->metric->section, .key = l->metric->key,
			.was = was->json, .is = is->json, .was_number = was->number,
			.is_number = is->number, .changed = strcmp(was->json, is->json) != 0};

		ap_diff_texts(ctx, &f, &out->was, &out->is);
		out->note = ap_diff_change(ctx, was->number, is->number);
	}
	out->was_number = was->number;
	out->holds = holds(l->op, is->number, bound_of(l, was->number));
	return AP_OK;
}

static enum ap_status judge_alone(struct ap_ctx *ctx, const struct ap_limit *l,
	const struct ap_saved_fact *fact, const struct ap_saved *is, struct ap_verdict *out)
{
	const struct ap_metric *of = l->share ? find_metric(l->metric->whole) : NULL;
	const struct ap_saved_fact *whole = of ? find_fact(ctx, is, of) : NULL;
	char buf[32];

	if (of && !whole)
		return AP_MEANING;
	out->is = value_text(ctx, l->metric, fact);
	if (whole && whole->number > 0)
		out->note = ap_arena_printf(ctx->arena, "%s %% of %s",
			percent(fact->number / whole->number, 10, buf), value_text(ctx, of, whole));
	out->holds = holds(l->op, fact->number, bound_of(l, whole ? whole->number : 0));
	return AP_OK;
}

enum ap_status ap_limit_judge(struct ap_ctx *ctx, const struct ap_limit *limit,
	const struct ap_saved *was, const struct ap_saved *is, struct ap_verdict *out)
{
	const struct ap_saved_fact *status = ap_saved_fact(is, "search", "status"), *fact;
	bool evaluated = status && !strcmp(status->json, "\"given\"");

	/* an evaluated plan has no search: use that of the old plan */
	fact = find_fact(ctx, is_searched(limit->metric) && was && evaluated ? was : is, limit->metric);
	if (!fact)
		return AP_MEANING;
	*out = (struct ap_verdict){.text = limit->text, .was = "", .note = "", .was_number = NAN,
		.is_number = fact->number, .metric = ap_diff_label(ctx, limit->metric->name)};
	return limit->change ? judge_change(ctx, limit, fact, was, out)
			     : judge_alone(ctx, limit, fact, is, out);
}
