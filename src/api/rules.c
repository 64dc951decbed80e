/* SPDX-License-Identifier: Apache-2.0 */
#include "api/rules.h"

#include <string.h>

#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"

enum { MOST_PRICED = 16, MOST_PAIRS = 10 };

static const enum ap_setting_id settings[AP_DEMAND_COUNT] = {[AP_DEMAND_PIN] = AP_SET_pin,
	[AP_DEMAND_FORBID] = AP_SET_forbid, [AP_DEMAND_SAME] = AP_SET_same};

static const char **text_of(struct ap_settings *set, enum ap_demand d)
{
	return d == AP_DEMAND_PIN ? &set->pin : d == AP_DEMAND_FORBID ? &set->forbid : &set->same;
}

/* ---- reading ---- */

static void append(struct ap_ctx *ctx, struct ap_settings *io, enum ap_demand d, const char *rule)
{
	const char **text = text_of(io, d);

	*text = *text ? ap_arena_printf(ctx->arena, "%s,%s", *text, rule) : rule;
	if (io->origin[settings[d]] < AP_FROM_CONFIG) {
		io->origin[settings[d]] = AP_FROM_CONFIG;
		io->name[settings[d]] = io->name[AP_SET_rules];
	}
}

/* A line without its comment: a word, blanks and a rule. */
static enum ap_status read_line(struct ap_ctx *ctx, char *line, const struct ap_where *where,
	struct ap_settings *io)
{
	struct ap_constraints one = {0};
	enum ap_demand d = 0;
	size_t len;
	char *end = line + strlen(line), *rule;

	line += strspn(line, " \t\r");
	for (char *c = line; *c; c++)
		if (*c == '#' && (c == line || c[-1] == ' ' || c[-1] == '\t')) {
			end = c;
			break;
		}
	while (end > line && strchr(" \t\r", end[-1]))
		end--;
	*end = '\0';
	if (!*line)
		return AP_OK;
	len = strcspn(line, " \t");
	rule = line + len + strspn(line + len, " \t");
	while (d < AP_DEMAND_COUNT &&
		(strlen(ap_demand_name(d)) != len || strncmp(line, ap_demand_name(d), len) != 0))
		d++;
	if (d == AP_DEMAND_COUNT)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, where, NULL,
			"\"%s\" is no rule; expected pin, forbid or same, and what it is about",
			ap_diag_name(ctx->diag, ap_arena_strndup(ctx->arena, line, len)));
	AP_TRY(ap_constraints_parse(ctx, d, rule, where, &one));
	append(ctx, io, d, rule);
	return AP_OK;
}

enum ap_status ap_rules_merge(struct ap_ctx *ctx, struct ap_settings *io)
{
	struct ap_where where = {.file = io->rules};
	struct ap_input in;
	enum ap_status worst = AP_OK;

	if (!io->rules)
		return AP_OK;
	AP_TRY(ap_input_read(ctx, io, io->rules, &in));
	for (char *line = in.text, *next; line; line = next) {
		char *end = strchr(line, '\n');
		enum ap_status st;

		next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		where.line++;
		st = read_line(ctx, line, &where, io);
		worst = worst == AP_OK ? st : worst;
	}
	io->rules = NULL;
	return worst;
}

enum ap_status ap_rules_parse(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_constraints *out)
{
	struct ap_settings own = *set;

	*out = (struct ap_constraints){0};
	for (enum ap_demand d = 0; d < AP_DEMAND_COUNT; d++)
		if (*text_of(&own, d))
			AP_TRY(ap_constraints_parse(ctx, d, *text_of(&own, d), NULL, out));
	return AP_OK;
}

/* ---- searching with some of them ---- */

struct trying {
	struct ap_ctx ctx;
	struct ap_settings set;
	const struct ap_sources *src;
	unsigned use;
	enum ap_status st;
	double step_s;
};

static void try_rules(void *user)
{
	struct trying *x = user;
	struct ap_inputs in;
	struct ap_plan plan;

	x->st = ap_inputs_make(&x->ctx, &x->set, x->src, x->use, &in);
	if (x->st == AP_OK)
		x->st = ap_inputs_give(&x->ctx, &x->set, x->src, x->use, &in);
	if (x->st == AP_OK)
		x->st = ap_inputs_plan(&x->ctx, &in, NULL, &plan, NULL);
	if (x->st == AP_OK)
		x->step_s = plan.prediction.step_time_s;
}

/* Plans with the rules that are kept; AP_LIMIT if memory runs out. */
static enum ap_status plan_with(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src,
	unsigned use, const struct ap_constraints *all, const bool *kept, double *step_s)
{
	struct trying x = {.ctx = ap_diag_apart(ctx), .set = *set, .src = src, .use = use, .st = AP_LIMIT};
	struct ap_arena *made;

	for (enum ap_demand d = 0; d < AP_DEMAND_COUNT; d++)
		ap_setting_unset(&x.set, settings[d]);
	for (uint32_t i = 0; i < all->n; i++)
		if (kept[i])
			append(ctx, &x.set, all->v[i].demand, all->v[i].text);
	x.ctx.phase = NULL;
	if (ap_attempt_apart(&x.ctx, try_rules, NULL, &x, &made))
		ap_arena_destroy(made);
	*step_s = x.step_s;
	return x.st;
}

static const char *said(struct ap_ctx *ctx, const struct ap_constraint *c)
{
	return ap_arena_printf(ctx->arena, "%s %s", ap_demand_name(c->demand), ap_diag_name(ctx->diag,
		c->text));
}

void ap_rules_price(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	unsigned use, struct ap_plan *plan)
{
	struct ap_settings own = *set;
	struct ap_plan_rule *rule;
	struct ap_constraints all;
	bool *kept;

	if (ap_rules_merge(ctx, &own) != AP_OK || ap_rules_parse(ctx, &own, &all) != AP_OK || !all.n)
		return;
	rule = AP_NEW_N(ctx->arena, struct ap_plan_rule, all.n);
	kept = AP_NEW_N(ctx->arena, bool, all.n);
	memset(kept, true, all.n * sizeof *kept);
	ap_ctx_phase(ctx, "pricing rules");
	for (uint32_t i = 0; i < all.n; i++) {
		rule[i].text = said(ctx, &all.v[i]);
		kept[i] = false;
		if (all.n <= MOST_PRICED && !ap_ctx_stopped(ctx) &&
			plan_with(ctx, &own, src, use, &all, kept, &rule[i].without_s) != AP_OK)
			rule[i].without_s = 0;
		kept[i] = true;
	}
	plan->nrule = all.n;
	plan->rule = rule;
}

/* ---- conflicts ---- */

struct conflict {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	const struct ap_constraints *all;
	bool *kept;
};

static bool conflicts(struct conflict *x)
{
	double step_s;

	return !ap_ctx_stopped(x->ctx) && plan_with(x->ctx, x->set, x->src, AP_FOR_search, x->all, x->kept,
		&step_s) == AP_INFEASIBLE;
}

/* Leaves one or two rules that conflict by themselves. */
static bool find_few(struct conflict *x)
{
	uint32_t n = x->all->n;

	for (uint32_t i = 0; i < n; i++) {
		memset(x->kept, false, n * sizeof *x->kept);
		x->kept[i] = true;
		if (conflicts(x))
			return true;
	}
	for (uint32_t i = 0; i < n && n <= MOST_PAIRS; i++)
		for (uint32_t k = i + 1; k < n; k++) {
			memset(x->kept, false, n * sizeof *x->kept);
			x->kept[i] = x->kept[k] = true;
			if (conflicts(x))
				return true;
		}
	return false;
}

/* Leaves rules of which none can be spared. */
static void spare(struct conflict *x)
{
	uint32_t n = x->all->n;

	memset(x->kept, true, n * sizeof *x->kept);
	for (uint32_t i = 0; i < n; i++) {
		x->kept[i] = false;
		x->kept[i] = !conflicts(x);
	}
}

void ap_rules_conflict(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src)
{
	struct ap_settings own = *set;
	struct ap_constraints all;
	struct conflict x = {ctx, &own, src, &all, NULL};
	struct ap_str text;
	bool few;

	if (ap_rules_merge(ctx, &own) != AP_OK || ap_rules_parse(ctx, &own, &all) != AP_OK || !all.n)
		return;
	ap_ctx_phase(ctx, "looking for rules that conflict");
	x.kept = AP_NEW_N(ctx->arena, bool, all.n);
	if (conflicts(&x)) /* without any rule */
		return;
	few = find_few(&x);
	if (!few)
		spare(&x);
	if (ap_ctx_stopped(ctx))
		return;
	ap_str_init(&text, ctx->arena);
	for (uint32_t i = 0; i < all.n; i++)
		if (x.kept[i])
			ap_str_addf(&text, "%s%s", text.len ? "; " : "", said(ctx, &all.v[i]));
	(void)ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "rule-conflict",
		"without rules there is a plan; %s: %s",
		few || all.n <= MOST_PAIRS ? "a smallest set of rules with which there is none"
			: "of these rules none can be spared", text.s);
}
