/* SPDX-License-Identifier: Apache-2.0 */
#include "api/vary.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/decided.h"
#include "api/points.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "drive/expert.h"
#include "hw/constant.h"
#include "pipeline/schedule.h"
#include "planfile/dimension.h"

enum { MOST_SEARCHES = 256, MOST_DECISIONS = 40, MOST_MEANT = 3 };

/* Searches that only prove are made until all took as many inner steps as one may take; others, until so many
 * times as many. */
enum { MOST_WORK = 8 };

static const double near = 1.001; /* values that no more is searched between */
static const double wide = 2.1; /* values that something is searched between, whatever is known */
static const double proven = 0.005; /* of a step; or --gap, if that is more */
static const double tie = 1e-9;

/* ---- what is varied ---- */

struct varied { /* a number, and from where to where it goes */
	const char *key; /* as spelled */
	const char *path; /* of a profile; NULL: a setting */
	enum ap_setting_id setting;
	const char *what, *unit;
	double least, most; /* what is allowed */
	double base; /* what it is; 0: not known */
	enum ap_constant_more more;
	bool whole, in_steps;
	double from, to;
};

static const struct {
	const char *key;
	enum ap_setting_id setting;
	const char *what, *unit;
	double most;
	enum ap_constant_more more;
	bool in_steps;
} settings[] = {
	{"memory", AP_SET_memory, "usable memory of a device", "B", 0x1p50, AP_CONSTANT_FASTER, false},
	{"batch", AP_SET_batch, "samples of a step", "samples", 0x1p40, AP_CONSTANT_EITHER, true},
	{"device-num", AP_SET_device_num, "devices", "devices", 0x1p20, AP_CONSTANT_EITHER, true},
};

static const char *const in_steps[] = {"devices_per_server", "devices_per_pod", "row_bytes",
	"master_bytes", "gradient_bytes", "gradient_copy_bytes"};

/* Is key a path, or one without "levels." in front or its unit behind? */
static bool is_short_for(const char *key, const char *path)
{
	static const char levels[] = "levels.", *const behind[] = {"", "_Bps", "_s", "_bytes"};

	for (int cut = 0; cut < 2; cut++) {
		const char *p = path + (cut ? strlen(levels) : 0);

		if (cut && strncmp(path, levels, strlen(levels)) != 0)
			continue;
		for (size_t i = 0; i < AP_COUNT(behind); i++) {
			size_t len = strlen(p), tail = strlen(behind[i]);

			if (len > tail && !strcmp(p + len - tail, behind[i]) &&
				strlen(key) == len - tail && !strncmp(key, p, len - tail))
				return true;
		}
	}
	return false;
}

/* The nearest names of what can be varied. */
struct nearest {
	const char *wanted, *name[MOST_MEANT];
	int distance[MOST_MEANT];
	size_t n;
};

static void consider(struct nearest *near_to, const char *name)
{
	int d = ap_str_distance(near_to->wanted, name, (int)strlen(near_to->wanted) / 2);
	size_t at = near_to->n;

	while (at > 0 && d < near_to->distance[at - 1])
		at--;
	if (at == MOST_MEANT || d > (int)strlen(near_to->wanted) / 2)
		return;
	near_to->n += near_to->n < MOST_MEANT;
	for (size_t i = near_to->n - 1; i > at; i--) {
		near_to->name[i] = near_to->name[i - 1];
		near_to->distance[i] = near_to->distance[i - 1];
	}
	near_to->name[at] = name;
	near_to->distance[at] = d;
}

/* A path without "levels." and its unit, as people would write it. */
static const char *short_of(struct ap_arena *arena, const char *path)
{
	const char *p = !strncmp(path, "levels.", strlen("levels.")) ? path + strlen("levels.") : path;
	size_t len = strlen(p);

	return ap_arena_strndup(arena, p, len > 4 && !strcmp(p + len - 4, "_Bps") ? len - 4 : len);
}

static enum ap_status unknown(struct ap_ctx *ctx, const char *key, const struct ap_constant *list[2],
	const size_t n[2], const char *const profile[2])
{
	struct nearest nearest = {.wanted = key};
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(settings); i++)
		consider(&nearest, settings[i].key);
	for (int k = 0; k < 2; k++)
		for (size_t i = 0; i < n[k]; i++)
			consider(&nearest, short_of(ctx->arena, list[k][i].path));
	for (size_t i = 0; i < nearest.n; i++)
		ap_str_addf(&text, "%s%s",
			i == 0 ? "did you mean " : i + 1 < nearest.n ? ", " : " or ",
			nearest.name[i]);
	if (nearest.n)
		ap_str_add(&text, "? ");
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"--vary: there is no number \"%s\"; %sexpected memory, batch, device-num, or a number of the "
		"profiles that `list chips %s` and `list software %s` show",
		ap_diag_name(ctx->diag, key), text.s, profile[0], profile[1]);
}

static enum ap_status find_constant(
	struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src, struct varied *v)
{
	const struct ap_software *software;
	const struct ap_constant *list[2];
	struct ap_software own_software;
	struct ap_constant *made[2];
	const char *profile[2];
	struct ap_chip own_chip;
	const struct ap_chip *chip;
	size_t n[2];

	AP_TRY(ap_input_chip(ctx, set, src, &chip));
	AP_TRY(ap_input_software(ctx, set, &software));
	own_chip = *chip;
	own_software = *software;
	n[0] = ap_chip_constants(ctx->arena, &own_chip, &made[0]);
	n[1] = ap_software_constants(ctx->arena, &own_software, &made[1]);
	profile[0] = chip->name;
	profile[1] = software->name;
	for (int k = 0; k < 2; k++) {
		list[k] = made[k];
		for (size_t i = 0; i < n[k]; i++) {
			const struct ap_constant *c = &list[k][i];

			if (!is_short_for(v->key, c->path))
				continue;
			v->path = c->path;
			v->what = ap_arena_printf(
				ctx->arena, "%s of %s %s", c->path, k ? "software" : "chip", profile[k]);
			v->unit = c->unit;
			v->least = c->least;
			v->most = c->most;
			v->base = ap_constant_get(c);
			v->more = c->more;
			v->whole = c->type != AP_CONSTANT_REAL;
			for (size_t s = 0; s < AP_COUNT(in_steps); s++)
				v->in_steps |= !strcmp(c->path, in_steps[s]);
			return AP_OK;
		}
	}
	return unknown(ctx, v->key, list, n, profile);
}

static enum ap_status find_setting(
	struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src, struct varied *v)
{
	const struct ap_chip *chip;
	struct ap_inputs in;

	switch (v->setting) {
	case AP_SET_memory:
		AP_TRY(ap_input_chip(ctx, set, src, &chip));
		v->base = (double)(set->memory ? set->memory : chip->usable_bytes);
		return AP_OK;
	case AP_SET_device_num:
		if (src->table)
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"--vary device-num: the %s %s says how many devices it has",
				ap_topo_what(src->table), src->table_path);
		v->base = (double)set->device_num;
		return AP_OK;
	default:
		AP_TRY(ap_inputs_make(ctx, set, src, AP_FOR_search, &in));
		v->base = (double)in.loaded->batch;
		if (in.loaded->batch)
			return AP_OK;
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--vary batch: no input of the graph has a batch_dim");
	}
}

/* "0.5x", "25GB/s", "3e-6", "5us", "20GB"; false: none of these. */
static bool read_value(const struct varied *v, const char *text, double *value)
{
	static const struct {
		const char *unit, *behind;
		double factor;
	} units[] = {
		{"B/s", "TB/s", 1e12},
		{"B/s", "GB/s", 1e9},
		{"B/s", "MB/s", 1e6},
		{"B/s", "B/s", 1},
		{"FLOP/s", "PFLOP/s", 1e15},
		{"FLOP/s", "TFLOP/s", 1e12},
		{"FLOP/s", "GFLOP/s", 1e9},
	};
	char number[40];
	size_t len = strlen(text);
	int64_t bytes;

	if (len > 1 && text[len - 1] == 'x' && len < sizeof number) {
		memcpy(number, text, len - 1);
		number[len - 1] = '\0';
		if (!ap_parse_double(number, value))
			return false;
		*value *= v->base;
		return v->base > 0;
	}
	for (size_t i = 0; i < AP_COUNT(units); i++) {
		size_t tail = strlen(units[i].behind);

		if (strcmp(v->unit, units[i].unit) != 0 || len <= tail || len - tail >= sizeof number ||
			strcmp(text + len - tail, units[i].behind) != 0)
			continue;
		memcpy(number, text, len - tail);
		number[len - tail] = '\0';
		if (!ap_parse_double(number, value))
			return false;
		*value *= units[i].factor;
		return true;
	}
	if (ap_parse_double(text, value))
		return true;
	if (!strcmp(v->unit, "s"))
		return ap_parse_time(text, value);
	if (strcmp(v->unit, "B") != 0 || !ap_parse_bytes(text, &bytes))
		return false;
	*value = (double)bytes;
	return true;
}

/* A value as it may be given, some times what it is. */
static const char *example(struct ap_arena *arena, const struct varied *v, double times)
{
	double usual = !strcmp(v->unit, "s") ? 1e-5 : 1;
	char *text = ap_arena_strdup(
		arena, ap_varied_value(arena, v->unit, (v->base > 0 ? v->base : usual) * times));
	char *blank = strchr(text, ' ');

	if (blank)
		memmove(blank, blank + 1, strlen(blank));
	return text;
}

static enum ap_status read_range(struct ap_ctx *ctx, const char *text, struct varied *v)
{
	const char *dots = strstr(text, ".."), *shown = ap_diag_name(ctx->diag, text);

	if (!dots ||
		!read_value(v, ap_arena_strndup(ctx->arena, text, (size_t)(dots - text)), &v->from) ||
		!read_value(v, dots + 2, &v->to))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--vary %s=%s: expected FROM..TO, such as %s%s..%s", v->key, shown,
			v->base > 0 ? "0.5x..2x or " : "", example(ctx->arena, v, 0.5),
			example(ctx->arena, v, 2));
	if (v->whole) {
		v->from = round(v->from);
		v->to = round(v->to);
	}
	if (!(v->from > 0))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--vary %s=%s: a range begins above 0, as it is divided in proportion", v->key,
			shown);
	if (v->from >= v->to)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--vary %s=%s: the range %s; expected "
			"FROM..TO with FROM below TO",
			v->key, shown, v->from > v->to ? "goes down" : "is empty");
	if (v->from < v->least || v->to > v->most)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--vary %s=%s: it is from %s to %s; %s is from %s to %s", v->key, shown,
			ap_varied_value(ctx->arena, v->unit, v->from),
			ap_varied_value(ctx->arena, v->unit, v->to), v->what,
			ap_varied_value(ctx->arena, v->unit, v->least),
			ap_varied_value(ctx->arena, v->unit, v->most));
	return AP_OK;
}

static enum ap_status read_varied(
	struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src, struct varied *v)
{
	const char *equals = strchr(set->vary, '=');

	*v = (struct varied){.setting = AP_SET_COUNT};
	if (!equals || equals == set->vary)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"--vary %s: expected KEY=FROM..TO, such as memory=0.5x..2x",
			ap_diag_name(ctx->diag, set->vary));
	v->key = ap_arena_strndup(ctx->arena, set->vary, (size_t)(equals - set->vary));
	for (size_t i = 0; i < AP_COUNT(settings); i++) {
		const char *key = settings[i].key, *field = ap_setting_at(settings[i].setting)->key;

		if (strcmp(v->key, key) != 0 && strcmp(v->key, field) != 0)
			continue;
		v->setting = settings[i].setting;
		v->what = settings[i].what;
		v->unit = settings[i].unit;
		v->least = 1;
		v->most = settings[i].most;
		v->more = settings[i].more;
		v->in_steps = settings[i].in_steps;
		v->whole = true;
	}
	AP_TRY(v->setting == AP_SET_COUNT ? find_constant(ctx, set, src, v)
		: find_setting(ctx, set, src, v));
	return read_range(ctx, equals + 1, v);
}

/* The settings with the number at a value. */
static void give_value(struct ap_ctx *ctx, const struct varied *v, double value, struct ap_settings *o)
{
	struct ap_profile_number *number;

	if (v->setting != AP_SET_COUNT) {
		ap_points_give(
			ctx, o, v->setting, ap_arena_printf(ctx->arena, "%" PRId64, (int64_t)value));
		return;
	}
	number = AP_NEW(ctx->arena, struct ap_profile_number);
	*number = (struct ap_profile_number){v->path, value};
	o->number = number;
}

/* ---- plans, and searches for them ---- */

struct found_plan { /* can be priced under other settings */
	const char *words;
	int64_t memory_bytes;
	double value; /* at which it was found first */
	struct ap_settings set; /* with which it is made */
	unsigned use;
	ap_id nnode; /* of its graph */
	bool counted; /* its counts were searched: found; else the settings say them */
	struct ap_found found;
	ap_id nspot; /* 0: prices do not decide which operator is in which stage */
	const struct ap_spot *spot; /* [nspot] where they do, what they decided */
};

struct point {
	double value;
	enum ap_status st;
	const char *why; /* there is no plan */
	uint32_t own; /* the plan that the search there found; AP_NONE: none */
	double bound_s, samples; /* of a step */
	AP_VEC(double)
	step; /* of plans, as far as they are known there; NAN: not yet */
};

struct varying {
	struct ap_ctx *ctx;
	const struct ap_settings *set;
	struct ap_sources src;
	unsigned use;
	struct varied varied;
	double headroom; /* per cent of the memory that plans leave free */
	AP_VEC(struct found_plan) plans;
	AP_VEC(struct point) points; /* ascending */
	uint64_t steps, work; /* of searches so far; that one may take */
	double within;
	bool stopped;
};

struct attempt { /* a search at a value */
	struct ap_ctx ctx;
	const struct varying *all;
	double value;
	enum ap_status st;
	struct ap_settings set; /* of the plan */
	unsigned use;
	struct ap_inputs *in;
	struct ap_found found;
	struct ap_plan plan;
	const char *words; /* NULL: to be made */
	double bound_s, headroom;
};

static enum ap_status make(struct attempt *t)
{
	AP_TRY(ap_inputs_make(&t->ctx, &t->set, &t->all->src, t->use, t->in));
	AP_TRY(ap_inputs_give(&t->ctx, &t->set, &t->all->src, t->use, t->in));
	return ap_inputs_plan(&t->ctx, t->in, &t->found, &t->plan, NULL);
}

/* Decides the settings first. */
static enum ap_status decide(struct attempt *t)
{
	static const char *const none[] = {NULL};
	const struct ap_settings set = t->set;
	const struct ap_plan_joint *told;
	struct ap_decided all;

	AP_TRY(ap_decide_machines(&t->ctx, &set, &t->all->src, none, &all));
	told = ap_decided_take(&t->ctx, &all, true, &t->set, &t->use);
	t->headroom = all.decision[all.taken].headroom;
	t->bound_s = told->bound_s;
	t->words = t->use == AP_FOR_evaluate ? told->decided
		: ap_arena_printf(t->ctx.arena, "%s, operators cut one by one", told->decided);
	return make(t);
}

static void run_try(void *user)
{
	struct attempt *t = user;

	t->ctx.diag = ap_diag_create(t->ctx.arena, t->all->set->strict);
	t->in = AP_NEW(t->ctx.arena, struct ap_inputs);
	t->set = *t->all->set;
	t->use = t->all->use;
	give_value(&t->ctx, &t->all->varied, t->value, &t->set);
	if (t->use == AP_FOR_plan) {
		t->st = decide(t);
		return;
	}
	t->st = make(t);
	t->bound_s = t->plan.search.step_bound_s;
}

/* What a device has room for at a value. */
static int64_t capacity(struct ap_ctx *ctx, const struct varying *all, double value)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_settings set = *all->set;
	const struct ap_chip *chip;
	double bytes;

	give_value(&quiet, &all->varied, value, &set);
	if (set.memory)
		bytes = (double)set.memory;
	else
		bytes = ap_input_chip(&quiet, &set, &all->src, &chip) == AP_OK
			? (double)chip->usable_bytes
			: 0;
	return (int64_t)(bytes * (1 - all->headroom / 100));
}

static bool fits(struct ap_ctx *ctx, const struct varying *all, const struct ap_plan *plan, double value)
{
	return plan->prediction.memory.total <= capacity(ctx, all, value);
}

/* Makes a known plan under settings with another number. */
static enum ap_status make_again(struct ap_ctx *ctx, const struct varying *all, const struct found_plan *f,
	const struct ap_settings *set, struct ap_inputs *in, struct ap_plan *plan)
{
	struct ap_found found = f->found;

	found.search =
		(struct ap_search_info){.mode = "given", .status = AP_PLAN_GIVEN, .complete = true};
	AP_TRY(ap_inputs_make(ctx, set, &all->src, f->use, in));
	if (f->nspot && (!in->cutting.graph || in->cutting.graph->nnode != f->nspot ||
		!ap_inputs_place(ctx, f->spot, AP_CUT_BY_STRATEGY, in)))
		return AP_USAGE;
	AP_TRY(ap_inputs_give(ctx, set, &all->src, f->use, in));
	return in->counts ? ap_inputs_plan(ctx, in, NULL, plan, NULL)
		: ap_drive_again(ctx, &in->request, &found, plan);
}

struct pricing { /* a known plan at a value */
	struct ap_ctx ctx;
	const struct varying *all;
	const struct found_plan *plan;
	double value, step_s;
};

static void run_pricing(void *user)
{
	struct pricing *p = user;
	struct ap_inputs *in = AP_NEW(p->ctx.arena, struct ap_inputs);
	struct ap_settings set = p->plan->set;
	struct ap_plan plan;

	p->ctx.diag = ap_diag_create(p->ctx.arena, false);
	give_value(&p->ctx, &p->all->varied, p->value, &set);
	set.memory = INT64_C(1) << 50; /* whether it fits is seen below */
	if (make_again(&p->ctx, p->all, p->plan, &set, in, &plan) == AP_OK &&
		fits(&p->ctx, p->all, &plan, p->value))
		p->step_s = plan.prediction.step_time_s;
}

/* The step of a known plan at a value; INFINITY: it does not fit there, or is
 * none. */
static double price(const struct varying *all, uint32_t plan, double value)
{
	struct pricing p = {.ctx = *all->ctx,
		.all = all,
		.plan = &all->plans.v[plan],
		.value = value,
		.step_s = INFINITY};
	struct ap_arena *made;

	p.ctx.phase = NULL;
	p.ctx.progress = NULL;
	p.ctx.stop = NULL; /* half a plan has no step */
	if (ap_attempt_apart(&p.ctx, run_pricing, NULL, &p, &made))
		ap_arena_destroy(made);
	return p.step_s;
}

static bool is_same(const struct found_plan *a, const struct found_plan *b)
{
	if (a->counted != b->counted || a->nnode != b->nnode || a->use != b->use)
		return false;
	if (!a->counted)
		return !strcmp(a->words, b->words);
	if (a->nspot != b->nspot ||
		(a->nspot && memcmp(a->spot, b->spot, a->nspot * sizeof *a->spot) != 0) ||
		memcmp(&a->found.hybrid, &b->found.hybrid, sizeof a->found.hybrid) != 0)
		return false;
	for (ap_id i = 0; i < a->nnode; i++)
		if (memcmp(a->found.count[i], b->found.count[i],
			    AP_MAX_FACTOR * sizeof **a->found.count) != 0)
			return false;
	return a->use == AP_FOR_search || !strcmp(a->words, b->words);
}

/* "dp=8,tp=4", "dp=8,tp=4 but for 12 of 90 operators", "batch over 4, hidden
 * over 8; near dp=8,tp=4, but for 40 of 90 operators". Of settings that say it
 * themselves, what they say. */
static const char *words_of(struct ap_ctx *ctx, const struct attempt *t)
{
	struct ap_expert e;
	struct ap_str cut;

	if (t->words)
		return t->words;
	if (!t->found.any)
		return ap_settings_giver(ctx, &t->set);
	if (t->plan.search.hybrid)
		return t->plan.search.hybrid;
	ap_expert_find(ctx, &t->plan, NULL, &e);
	if (e.hybrid.dp && e.same)
		return ap_hybrid_degrees(ctx, &e.hybrid);
	if (e.hybrid.dp && e.differ <= t->plan.graph->nnode / 4)
		return ap_arena_printf(ctx->arena, "%s but for %" PRIu32 " of %" PRIu32 " operators",
			ap_hybrid_degrees(ctx, &e.hybrid), e.differ, t->plan.graph->nnode);
	ap_str_init(&cut, ctx->arena);
	ap_dimensions_of_plan(ctx, &t->plan, &cut);
	if (e.hybrid.dp)
		ap_str_addf(&cut, "; nearest to %s, but for %" PRIu32 " of %" PRIu32 " operators",
			ap_hybrid_degrees(ctx, &e.hybrid), e.differ, t->plan.graph->nnode);
	return cut.s;
}

static bool is_equal(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* What was decided beyond the settings of the run, whose texts outlive it. */
static struct ap_settings keep_settings(const struct varying *all, const struct ap_settings *decided)
{
	struct ap_settings set = *all->set;

	for (int i = 0; i < AP_SET_COUNT && all->use == AP_FOR_plan; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);
		const char *is = ap_setting_text(all->ctx->arena, row, decided);

		if (!set.among[i] && is_equal(is, ap_setting_text(all->ctx->arena, row, all->set)))
			continue;
		if (is)
			ap_points_give(all->ctx, &set, (enum ap_setting_id)i,
				ap_arena_strdup(all->ctx->arena, is));
		else
			ap_setting_unset(&set, (enum ap_setting_id)i);
	}
	return set;
}

/* Where the operators of the graph before it was cut into stages are in the
 * plan. */
static const struct ap_spot *keep_spots(struct ap_ctx *ctx, const struct attempt *t, ap_id *n)
{
	const struct ap_stages_request *cutting = &t->in->cutting;
	const struct ap_graph *g = t->plan.graph;
	struct ap_spot *spot = AP_NEW_N(ctx->arena, struct ap_spot, cutting->graph->nnode);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *names = ap_map_create(ctx->scratch);

	for (ap_id i = 0; i < g->nnode; i++)
		ap_map_put_str(names, g->node[i].name, NULL);
	for (ap_id i = 0; i < cutting->graph->nnode; i++) {
		ap_id at = ap_map_get_str(names, cutting->graph->node[i].name);

		assert(at != AP_NONE);
		spot[i] = (struct ap_spot){g->node[at].stage, g->node[at].segment,
			ap_schedule_part(cutting->scheduler, cutting->nstage, g->node[at].stage,
				g->node[at].segment)};
	}
	ap_arena_release(ctx->scratch, mark);
	*n = cutting->graph->nnode;
	return spot;
}

/* The plan of a search, in the run's arena. */
static struct found_plan keep(struct varying *all, struct attempt *t)
{
	struct ap_arena *arena = all->ctx->arena;
	struct found_plan p = {.memory_bytes = t->plan.prediction.memory.total,
		.use = t->use,
		.set = keep_settings(all, &t->set),
		.nnode = t->plan.graph->nnode,
		.counted = t->found.any && !t->in->counts,
		.found = t->found};

	p.found.arena = NULL;
	if (!p.counted)
		return p;
	p.found.count = AP_NEW_N(arena, int32_t *, t->found.room);
	for (ap_id i = 0; i < t->found.room; i++) {
		p.found.count[i] = AP_NEW_N(arena, int32_t, AP_MAX_FACTOR);
		if (i < p.nnode)
			memcpy(p.found.count[i], t->found.count[i],
				t->plan.graph->node[i].bound.nfactor * sizeof **p.found.count);
	}
	p.found.other = p.found.recut = false;
	p.found.spot = NULL;
	if (t->in->cutting.graph)
		p.spot = keep_spots(all->ctx, t, &p.nspot);
	return p;
}

static uint32_t add_plan(struct varying *all, struct attempt *t)
{
	struct found_plan p = keep(all, t);

	p.value = t->value;
	if (t->words || !p.counted)
		p.words = ap_arena_strdup(all->ctx->arena, words_of(&t->ctx, t));
	for (uint32_t i = 0; i < all->plans.n; i++)
		if (is_same(&all->plans.v[i], &p))
			return i;
	if (!p.words)
		p.words = ap_arena_strdup(all->ctx->arena, words_of(&t->ctx, t));
	AP_PUSH(all->ctx->arena, all->plans, p);
	return (uint32_t)all->plans.n - 1;
}

/* Adds a point; returns its place. */
static size_t insert(struct varying *all, const struct point *p)
{
	size_t at = all->points.n;

	AP_PUSH(all->ctx->arena, all->points, *p);
	for (; at > 0 && all->points.v[at - 1].value > p->value; at--)
		all->points.v[at] = all->points.v[at - 1];
	all->points.v[at] = *p;
	return at;
}

static void put_step(struct varying *all, struct point *p, uint32_t plan, double step_s)
{
	while (p->step.n <= plan)
		AP_PUSH(all->ctx->arena, p->step, (double)NAN);
	p->step.v[plan] = step_s;
}

/* Searches at a value, and adds what is found. Returns the status of a run that
 * cannot go on. */
static enum ap_status search_at(struct varying *all, double value)
{
	struct attempt t = {.ctx = *all->ctx, .all = all, .value = value, .st = AP_LIMIT};
	struct point p = {.value = value, .own = AP_NONE};
	struct ap_ctx *ctx = all->ctx;
	struct ap_arena *made;
	const char *why;

	ap_ctx_progress(ctx, 0, 0, -1);
	t.ctx.phase = NULL;
	t.ctx.progress = NULL;
	if (!ap_attempt_apart(&t.ctx, run_try, NULL, &t, &made))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, NULL, NULL,
			"memory ran out in the search with %s", all->varied.key);
	t.ctx.arena = made;
	if (t.found.arena)
		ap_arena_own(made, t.found.arena);
	if (t.st == AP_STOPPED || ap_ctx_stopped(ctx)) {
		all->stopped = true;
		ap_arena_destroy(made);
		return AP_OK;
	}
	if ((t.st == AP_OK && !all->plans.n) || t.st == AP_INTERNAL)
		ap_diag_pass_on(ctx->diag, t.ctx.diag);
	p.st = t.st;
	all->steps += t.found.steps;
	all->headroom = fmax(all->headroom, t.headroom);
	if (t.st == AP_OK && !fits(&t.ctx, all, &t.plan, value)) {
		p.st = AP_INFEASIBLE;
		p.why = "what the settings ask for does not fit the memory";
	}
	if (p.st == AP_OK) {
		p.bound_s = t.bound_s;
		p.samples = t.plan.prediction.samples_per_s * t.plan.prediction.step_time_s;
		p.own = add_plan(all, &t);
		put_step(all, &p, p.own, t.plan.prediction.step_time_s);
	} else if (!p.why) {
		why = ap_diag_first_error(t.ctx.diag);
		p.why = ap_arena_strdup(ctx->arena, why ? why : ap_status_text(t.st));
	}
	ap_arena_destroy(made);
	(void)insert(all, &p);
	return t.st == AP_INTERNAL ? t.st : AP_OK;
}

/* ---- intervals ---- */

/* Is plan a, of equal steps the one that was found first, taken where two have
 * these steps? */
static bool is_taken(uint32_t a, double a_s, uint32_t b, double b_s)
{
	if (a == AP_NONE || b == AP_NONE)
		return b == AP_NONE ? a != AP_NONE && isfinite(a_s) : !isfinite(b_s);
	return fabs(a_s - b_s) <= tie * fmin(a_s, b_s) || (!isfinite(a_s) && !isfinite(b_s)) ? a < b
		: a_s < b_s;
}

/* The best of all plans that are known at a point; AP_NONE: none fits. */
static uint32_t best_at(struct varying *all, size_t point)
{
	struct point *p = &all->points.v[point];
	uint32_t best = AP_NONE;

	for (uint32_t i = 0; i < all->plans.n; i++) {
		if (p->step.n <= i || isnan(p->step.v[i]))
			put_step(all, p, i, price(all, i, p->value));
		if (isfinite(p->step.v[i]) &&
			(best == AP_NONE || is_taken(i, p->step.v[i], best, p->step.v[best])))
			best = i;
	}
	return best;
}

static double step_of(const struct varying *all, size_t point, uint32_t plan)
{
	return all->points.v[point].step.v[plan];
}

static bool are_near(const struct varying *all, double from, double to)
{
	return to <= from * near || (all->varied.whole && to - from <= 1);
}

/* A value in the middle, in proportion. */
static double middle(const struct varying *all, double from, double to)
{
	double mid = sqrt(from * to);

	return all->varied.whole ? fmin(fmax(round(mid), from + 1), to - 1) : mid;
}

/* Between two points with other plans: where these meet, as far as they are
 * priced. */
static void narrow(struct varying *all, size_t i, double *lo, double *hi)
{
	uint32_t a = best_at(all, i), b = best_at(all, i + 1);

	*lo = all->points.v[i].value;
	*hi = all->points.v[i + 1].value;
	while (!are_near(all, *lo, *hi)) {
		double mid = middle(all, *lo, *hi);
		double a_s = a == AP_NONE ? INFINITY : price(all, a, mid);
		double b_s = b == AP_NONE ? INFINITY : price(all, b, mid);

		*(is_taken(a, a_s, b, b_s) ? lo : hi) = mid;
	}
}

static bool is_point(const struct varying *all, double value)
{
	for (size_t i = 0; i < all->points.n; i++)
		if (!(all->points.v[i].value < value) && !(all->points.v[i].value > value))
			return true;
	return false;
}

static bool is_over(const struct varying *all)
{
	return all->stopped || ap_ctx_stopped(all->ctx) || all->steps >= MOST_WORK * all->work ||
		all->points.n >= (all->use == AP_FOR_plan ? MOST_DECISIONS : MOST_SEARCHES);
}

/* Searches on both sides of where plans meet, until every two neighbours with
 * other plans are near. */
static enum ap_status find_ends(struct varying *all)
{
	for (size_t i = 0; i + 1 < all->points.n && !is_over(all);) {
		double lo, hi;

		if (best_at(all, i) == best_at(all, i + 1) ||
			are_near(all, all->points.v[i].value, all->points.v[i + 1].value)) {
			i++;
			continue;
		}
		narrow(all, i, &lo, &hi);
		if (!is_point(all, lo))
			AP_TRY(search_at(all, lo));
		if (!is_point(all, hi) && !is_over(all))
			AP_TRY(search_at(all, hi));
		i = 0; /* a plan that was found now may be the best elsewhere, too */
	}
	return AP_OK;
}

/*
 * By how much a plan may be faster than the one that is best at both ends of a
 * cell, at most, anywhere in it, as a share of its step; NAN: not known. No
 * plan is faster in the cell than the fastest at the better end, which is
 * bounded, and this plan is nowhere slower than at the other. And where a
 * number that times depend on is r times another, no step is more than r times
 * as long: so no plan is faster in the cell than what the bound at the slower
 * end leaves of it in proportion, and this plan no slower than its step at the
 * better end in proportion. *at_end: what of it an end alone has.
 */
static double margin(struct varying *all, size_t i, double *at_end)
{
	const struct varied *v = &all->varied;
	uint32_t plan = best_at(all, i);
	size_t fast = v->more == AP_CONSTANT_SLOWER ? i : i + 1, slow = 2 * i + 1 - fast;
	const struct point *p = all->points.v;
	double times = p[i + 1].value / p[i].value, share;

	*at_end = NAN;
	if (v->more == AP_CONSTANT_EITHER)
		return NAN;
	if (plan == AP_NONE)
		return p[fast].st == AP_INFEASIBLE ? 0 : NAN;
	if (!(p[fast].bound_s > 0))
		return NAN;
	*at_end = step_of(all, fast, plan) / p[fast].bound_s - 1;
	share = step_of(all, slow, plan) / p[fast].bound_s - 1;
	if (strcmp(v->unit, "B") != 0 && p[slow].bound_s > 0) { /* memory says what fits */
		*at_end = fmin(*at_end, step_of(all, slow, plan) / p[slow].bound_s - 1);
		share = fmin(share, step_of(all, fast, plan) * times / p[slow].bound_s - 1);
	}
	return fmax(0, share);
}

/* The cell to divide next, so that its plan can be proven; the number of points
 * if there is none. */
static size_t find_open(struct varying *all)
{
	size_t best = all->points.n;
	double most = 0;

	for (size_t i = 0; i + 1 < all->points.n; i++) {
		double at_end, share;

		if (best_at(all, i) != best_at(all, i + 1) ||
			are_near(all, all->points.v[i].value, all->points.v[i + 1].value))
			continue;
		share = margin(all, i, &at_end);
		if (share > fmax(most, all->within) && at_end < all->within && all->steps < all->work) {
			most = share;
			best = i;
		}
	}
	return best;
}

/* A value in the middle of points that are far apart; false: none are. */
static bool find_wide(const struct varying *all, double *value)
{
	for (size_t i = 0; i + 1 < all->points.n; i++)
		if (all->points.v[i + 1].value > all->points.v[i].value * wide) {
			*value = middle(all, all->points.v[i].value, all->points.v[i + 1].value);
			return true;
		}
	return false;
}

static enum ap_status find_intervals(struct varying *all)
{
	const struct varied *v = &all->varied;
	double value;

	AP_TRY(search_at(all, v->from));
	if (!is_over(all))
		AP_TRY(search_at(all, v->to));
	if (!is_over(all) && v->base > v->from && v->base < v->to)
		AP_TRY(search_at(all, v->base));
	while (find_wide(all, &value) && !is_over(all))
		AP_TRY(search_at(all, value));
	while (!is_over(all)) {
		size_t i;

		AP_TRY(find_ends(all));
		i = find_open(all);
		if (i == all->points.n || is_over(all))
			break;
		AP_TRY(search_at(all, middle(all, all->points.v[i].value, all->points.v[i + 1].value)));
	}
	return AP_OK;
}

/* ---- values one by one ---- */

/* Searches at each value; two have no plan in common, as they have other graphs
 * or machines. */
static enum ap_status try_all(struct varying *all)
{
	for (double value = all->varied.from; value <= all->varied.to && !is_over(all); value *= 2)
		AP_TRY(search_at(all, value));
	return AP_OK;
}

static uint32_t own_plan(const struct point *p)
{
	uint32_t i = 0;

	while (i < p->step.n && !isfinite(p->step.v[i]))
		i++;
	return i < p->step.n ? i : AP_NONE;
}

/* ---- what is told ---- */

static uint32_t plan_at(struct varying *all, size_t point)
{
	return all->varied.in_steps ? own_plan(&all->points.v[point]) : best_at(all, point);
}

/* What one point proves alone. */
static double margin_at(struct varying *all, size_t point)
{
	const struct point *p = &all->points.v[point];
	uint32_t plan = plan_at(all, point);

	if (plan == AP_NONE)
		return p->st == AP_INFEASIBLE ? 0 : NAN;
	return p->bound_s > 0 ? fmax(0, step_of(all, point, plan) / p->bound_s - 1) : NAN;
}

/* The points from..to as an interval. */
static struct ap_varied_interval tell_interval(struct varying *all, size_t from, size_t to)
{
	uint32_t plan = plan_at(all, from);
	struct ap_varied_interval t = {.from = all->points.v[from].value,
		.to = all->points.v[to].value,
		.plan = plan,
		.from_s = NAN,
		.to_s = NAN,
		.margin = margin_at(all, from),
		.searches = (uint32_t)(to - from + 1)};

	if (plan == AP_NONE)
		t.why = all->points.v[from].why;
	else {
		t.from_s = step_of(all, from, plan);
		t.to_s = step_of(all, to, plan);
	}
	for (size_t i = from; i <= to; i++)
		t.gap = isnan(margin_at(all, i)) || isnan(t.gap) ? NAN : fmax(t.gap, margin_at(all, i));
	for (size_t i = from; i < to; i++) {
		double at_end, share = margin(all, i, &at_end);

		t.margin = isnan(share) || isnan(t.margin) ? NAN : fmax(t.margin, share);
	}
	t.proven = t.margin <= all->within;
	return t;
}

/* Tells plans that are best somewhere, in the order of where they are; *number:
 * their new numbers. */
static void tell_plans(struct varying *all, struct ap_varied_interval *interval, uint32_t n,
	struct ap_varied *out, uint32_t **number)
{
	struct ap_varied_plan *plan = AP_NEW_N(all->ctx->arena, struct ap_varied_plan, all->plans.n);

	*number = AP_NEW_N(all->ctx->arena, uint32_t, all->plans.n);
	for (size_t i = 0; i < all->plans.n; i++)
		(*number)[i] = AP_NONE;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t old = interval[i].plan;

		if (old == AP_NONE)
			continue;
		if ((*number)[old] == AP_NONE) {
			(*number)[old] = out->nplan;
			plan[out->nplan++] = (struct ap_varied_plan){
				all->plans.v[old].words, all->plans.v[old].memory_bytes};
		}
		interval[i].plan = (*number)[old];
	}
	out->plan = plan;
}

static void tell(struct varying *all, struct ap_varied *out)
{
	const struct varied *v = &all->varied;
	struct ap_arena *arena = all->ctx->arena;
	size_t n = all->points.n;
	struct ap_varied_interval *interval = AP_NEW_N(arena, struct ap_varied_interval, n);
	struct ap_varied_point *point = AP_NEW_N(arena, struct ap_varied_point, n);
	uint32_t *number;

	*out = (struct ap_varied){.key = v->key,
		.what = v->what,
		.unit = v->unit,
		.base = v->base,
		.from = v->from,
		.to = v->to,
		.in_steps = v->in_steps,
		.within = all->within,
		.complete = !all->stopped,
		.work = all->steps,
		.point = point,
		.npoint = (uint32_t)n,
		.interval = interval};
	for (size_t from = 0, to; from < n; from = to + 1) {
		to = from;
		while (!v->in_steps && to + 1 < n && plan_at(all, to + 1) == plan_at(all, from))
			to++;
		interval[out->ninterval++] = tell_interval(all, from, to);
	}
	for (uint32_t i = 0; !v->in_steps && i + 1 < out->ninterval; i++)
		out->nopen += !are_near(all, interval[i].to, interval[i + 1].from);
	tell_plans(all, interval, out->ninterval, out, &number);
	for (size_t i = 0; i < n; i++) {
		const struct point *p = &all->points.v[i];
		double *step_s = AP_NEW_N(arena, double, out->nplan);
		uint32_t best = plan_at(all, i);

		for (uint32_t k = 0; k < out->nplan; k++)
			step_s[k] = INFINITY;
		for (size_t k = 0; k < p->step.n; k++)
			if (number[k] != AP_NONE && !isnan(p->step.v[k]))
				step_s[number[k]] = p->step.v[k];
		point[i] = (struct ap_varied_point){.value = p->value,
			.own_s = p->own == AP_NONE ? INFINITY : p->step.v[p->own],
			.found_at = best == AP_NONE ? 0 : all->plans.v[best].value,
			.plan = best == AP_NONE ? AP_NONE : number[best],
			.step_s = step_s,
			.bound_s = p->bound_s,
			.rate = best == AP_NONE ? 0 : p->samples / step_of(all, i, best),
			.why = p->why};
	}
}

/* No value has a plan. If nothing but memory is in the way, that is an answer.
 */
static enum ap_status explain_none(struct varying *all)
{
	for (size_t i = 0; i < all->points.n; i++)
		if (all->points.v[i].st == AP_OK || all->points.v[i].st == AP_INFEASIBLE)
			return AP_OK;
	if (!all->points.n)
		return AP_LIMIT;
	return ap_diag_add(all->ctx->diag, AP_ERROR, all->points.v[0].st, NULL, NULL,
		"--vary %s: at %s there is "
		"no plan: %s",
		all->varied.key,
		ap_varied_value(all->ctx->arena, all->varied.unit, all->points.v[0].value),
		all->points.v[0].why);
}

/* ---- the plan of now ---- */

/* Is there a value of now, and is it among those that are searched? */
static enum ap_status check_present(struct ap_ctx *ctx, const struct ap_settings *set, const struct varied *v)
{
	if (!set->plan_out || (!v->in_steps && v->base >= v->from && v->base <= v->to))
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"%s: beside --vary it is the best plan of what the number is now%s%s; expected %s",
		ap_setting_said(ctx, set, AP_SET_plan_out), v->base > 0 ? ", " : "",
		v->base > 0 ? ap_varied_value(ctx->arena, v->unit, v->base) : "",
		v->in_steps ? "a number whose values are not tried one by one" : "a range with it inside");
}

/* Makes the best plan of what the number is without --vary. */
static enum ap_status make_present(struct varying *all, struct ap_vary_present *out)
{
	const struct found_plan *f;
	struct ap_settings set;
	size_t at = 0;

	*out = (struct ap_vary_present){.any = false};
	while (at < all->points.n && (all->points.v[at].value < all->varied.base ||
		all->points.v[at].value > all->varied.base))
		at++;
	if (!all->set->plan_out || at == all->points.n || best_at(all, at) == AP_NONE)
		return AP_OK;
	f = &all->plans.v[best_at(all, at)];
	set = f->set;
	set.number = all->set->number;
	if (all->varied.setting == AP_SET_memory)
		set.memory = all->set->memory;
	out->any = true;
	return make_again(all->ctx, all, f, &set, &out->in, &out->plan);
}

enum ap_status ap_vary(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	unsigned use, struct ap_varied *out, struct ap_vary_present *present)
{
	struct varying all = {.ctx = ctx,
		.set = set,
		.src = *src,
		.use = use,
		.work = ap_setting_given(set, AP_SET_work_limit) ? (uint64_t)set->work_limit
			: AP_DEFAULT_WORK,
		.within = fmax(proven, set->gap / 100)};
	struct ap_inputs *in = AP_NEW(ctx->arena, struct ap_inputs);
	struct ap_ctx quiet = ap_diag_apart(ctx);

	AP_TRY(read_varied(ctx, set, src, &all.varied));
	AP_TRY(check_present(ctx, set, &all.varied));
	if (use == AP_FOR_search && all.varied.setting != AP_SET_batch &&
		ap_inputs_make(&quiet, set, src, use, in) == AP_OK) {
		ap_diag_pass_on(ctx->diag, quiet.diag);
		all.src.ready = in->loaded;
	}
	ap_ctx_phase(ctx, "varying");
	AP_TRY(all.varied.in_steps ? try_all(&all) : find_intervals(&all));
	all.stopped |= ap_ctx_stopped(ctx);
	AP_TRY(explain_none(&all));
	tell(&all, out);
	AP_TRY(make_present(&all, present));
	return all.stopped ? AP_STOPPED : AP_OK;
}
