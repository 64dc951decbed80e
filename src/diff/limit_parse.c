/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions as text. */
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "diff/limit_parts.h"

static const struct ap_metric metrics[] = {
	{"step_time", "prediction", "step_time_s", NULL, AP_METRIC_TIME, false,
		"time of a step"},
	{"compute", "prediction", "compute_s", "step_time", AP_METRIC_TIME, false,
		"kernels; %: of the step"},
	{"communication", "prediction", "communication_s", "step_time", AP_METRIC_TIME, false,
		"all collectives; %: of the step"},
	{"exposed_communication", "prediction", "exposed_communication_s", "step_time",
		AP_METRIC_TIME, false, "what nothing hides of them; %: of the step"},
	{"bubble", "prediction", "bubble_s", "step_time", AP_METRIC_TIME, false,
		"stages waiting for one another; %: of the step"},
	{"optimizer", "prediction", "optimizer_s", "step_time", AP_METRIC_TIME, false,
		"updates of the parameters; %: of the step"},
	{"samples_per_s", "prediction", "tokens_or_samples_per_s", NULL, AP_METRIC_RATE, false,
		"samples in a second"},
	{"memory", "memory", "total_bytes", "capacity", AP_METRIC_BYTES, false,
		"of a device, where it is most; %: of what is usable"},
	{"objective", "search", "objective_s", NULL, AP_METRIC_TIME, false,
		"what the search makes small"},
	{"gap", "search", "gap", NULL, AP_METRIC_SHARE, true,
		"how far the objective may be from the best one"},
	{"capacity", "machine", "capacity_bytes", NULL, AP_METRIC_BYTES, false,
		"usable memory of a device"},
};

static const struct {
	const char *name;
	enum ap_metric_kind kind;
	double factor;
} units[] = {
	{"s", AP_METRIC_TIME, 1},
	{"ms", AP_METRIC_TIME, 1e-3},
	{"us", AP_METRIC_TIME, 1e-6},
	{"", AP_METRIC_RATE, 1},
};

static const char *const expected_units[] = {
	[AP_METRIC_TIME] = "s, ms or us",
	[AP_METRIC_BYTES] = "B, KB, MB, GB or TB (or KiB, K and so on)",
	[AP_METRIC_RATE] = "none",
	[AP_METRIC_SHARE] = "%",
};

const char *ap_metric_at(size_t i, const char **text)
{
	if (i >= AP_COUNT(metrics))
		return NULL;
	*text = metrics[i].text;
	return metrics[i].name;
}

const struct ap_metric *ap_metric_find(const char *name)
{
	for (size_t i = 0; i < AP_COUNT(metrics); i++)
		if (!strcmp(metrics[i].name, name))
			return &metrics[i];
	return NULL;
}

struct reader {
	struct ap_ctx *ctx;
	const char *option, *text, *at;
	struct ap_str kept; /* the condition that is read, without blanks */
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

/* The next characters of a set, kept. */
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

static enum ap_status read_metric(struct reader *r, struct ap_limit *l)
{
	const char *at = r->at;
	const char *word = take(r, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

	l->metric = ap_metric_find(word);
	return l->metric ? AP_OK : unknown_metric(r, at, word);
}

static enum ap_status read_op(struct reader *r, struct ap_limit *l)
{
	static const char *const names[] = {
		[AP_ABOVE] = ">",
		[AP_AT_LEAST] = ">=",
		[AP_BELOW] = "<",
		[AP_AT_MOST] = "<=",
	};
	const char *at = r->at, *word = take(r, "<>=!");

	for (int i = AP_ABOVE; i <= AP_AT_MOST; i++)
		if (!strcmp(names[i], word)) {
			l->op = (enum ap_limit_op)i;
			return AP_OK;
		}
	return fault(r, at, "expected >, >=, < or <=");
}

static enum ap_status bad_unit(struct reader *r, const char *at, const struct ap_limit *l)
{
	const struct ap_metric *m = l->metric;
	const char *also = m->kind == AP_METRIC_SHARE ? ""
		: l->change ? ", or % of the old value"
		: m->whole  ? ap_arena_printf(r->ctx->arena, ", or %% of the %s",
			  strcmp(m->whole, "step_time") ? "device's memory" : "step's time")
			    : "; a change in % has a sign, as in +2%";

	return fault(r, at, ap_arena_printf(r->ctx->arena, "the unit of %s is %s%s", m->name,
		expected_units[m->kind], also));
}

/* A per cent sign is a unit of its own where there is something that it is a part of. */
static enum ap_status read_unit(struct reader *r, struct ap_limit *l)
{
	const char *at = r->at, *word = take(r, "%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

	if (!strcmp(word, "%") && (l->change || l->metric->whole || l->metric->kind == AP_METRIC_SHARE)) {
		l->share = l->metric->kind != AP_METRIC_SHARE;
		l->value /= 100;
		return AP_OK;
	}
	if (l->metric->kind == AP_METRIC_BYTES && *word && ap_unit_shift(word) >= 0) {
		l->value *= (double)(INT64_C(1) << ap_unit_shift(word));
		return AP_OK;
	}
	for (size_t i = 0; i < AP_COUNT(units); i++)
		if (units[i].kind == l->metric->kind && !strcmp(units[i].name, word)) {
			l->value *= units[i].factor;
			return AP_OK;
		}
	return bad_unit(r, at, l);
}

static enum ap_status read_number(struct reader *r, struct ap_limit *l)
{
	bool minus = *r->at == '-';
	const char *at;

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
	return read_unit(r, l);
}

static enum ap_status read_limit(struct reader *r, struct ap_limit *l)
{
	*l = (struct ap_limit){0};
	ap_str_init(&r->kept, r->ctx->arena);
	skip_blanks(r);
	AP_TRY(read_metric(r, l));
	AP_TRY(read_op(r, l));
	AP_TRY(read_number(r, l));
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
