/* SPDX-License-Identifier: Apache-2.0 */
#include "api/decided.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "api/cut_bound.h"
#include "api/operator_cuts.h"
#include "api/points.h"
#include "api/unequal.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/work.h"
#include "pipeline/schedule.h"

/* ---- machines ---- */

#define HOURS 3600.0

/* Seconds of the training; 0: --tokens does not say. */
static double training_s(const struct ap_settings *set, const struct ap_decision *d)
{
	double tokens = (double)d->space.batch * (double)(d->sequence ? d->sequence : 1);

	return ap_setting_given(set, AP_SET_tokens) && tokens > 0
		? (double)set->tokens / tokens * d->trial[d->best].step_s : 0;
}

/* Does the best plan keep the limits of time? */
static bool is_in_time(const struct ap_settings *set, const struct ap_decision *d)
{
	return (!ap_setting_given(set, AP_SET_max_step_time) ||
		d->trial[d->best].step_s <= set->max_step_time) &&
		(!ap_setting_given(set, AP_SET_deadline) || training_s(set, d) <= set->deadline);
}

static enum ap_status too_slow(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision *d)
{
	char step[32];

	return ap_diag_add(ctx->diag, AP_ERROR, AP_INFEASIBLE, NULL, "plan",
		"no plan keeps %s: the shortest step is %s, of %s on %" PRId64 " x %s",
		ap_setting_said(ctx, set, ap_setting_given(set, AP_SET_max_step_time) ? AP_SET_max_step_time
			: AP_SET_deadline), ap_format_seconds(d->trial[d->best].step_s, step),
		ap_points_words(ctx, &d->space, &d->trial[d->best].point), d->space.devices, d->chip->name);
}

/* The machines, before anything is decided. */
struct machines {
	size_t n;
	struct ap_settings *set;
	struct ap_sources *src;
	double *price;
};

/* The chips of a list, "h100,910b", as texts; one, which may be NULL, if there is no list. */
static size_t split_chips(struct ap_ctx *ctx, const char *text, const char *const **out)
{
	AP_VEC(const char *) list = {0};

	for (const char *at = text; at && *at; at += *at == ',') {
		size_t len = strcspn(at, ",");

		AP_PUSH(ctx->arena, list, ap_arena_strndup(ctx->arena, at, len));
		at += len;
	}
	if (!list.n)
		AP_PUSH(ctx->arena, list, text);
	*out = list.v;
	return list.n;
}

static enum ap_status list_cases(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const char *const *tables, struct machines *out)
{
	const struct ap_choices *numbers = set->among[AP_SET_device_num];
	const char *const *chip;
	size_t nchip = split_chips(ctx, set->chip, &chip), ntable = 0, each;
	const struct ap_chip *known;

	while (tables[ntable])
		ntable++;
	for (size_t c = 0; set->chip && c < nchip; c++)
		AP_TRY(ap_chip_get(ctx, chip[c], &known));
	if (numbers && numbers->any)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL, "%s: expected numbers, such as "
			"8..1024", ap_setting_said(ctx, set, AP_SET_device_num));
	if (numbers && src->table)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: the %s %s says how many devices it has; expected one of both",
			ap_setting_said(ctx, set, AP_SET_device_num), ap_topo_what(src->table),
			src->table_path);
	if (set->price.n > 1 && set->price.n != nchip)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"%s: expected one price, or one for each of %zu chips",
			ap_setting_said(ctx, set, AP_SET_price), nchip);
	each = numbers ? numbers->n : 1 + ntable;
	*out = (struct machines){.n = nchip * each};
	out->set = AP_NEW_N(ctx->arena, struct ap_settings, out->n);
	out->src = AP_NEW_N(ctx->arena, struct ap_sources, out->n);
	out->price = AP_NEW_N(ctx->arena, double, out->n);
	for (size_t i = 0; i < out->n; i++) {
		size_t k = i % each, c = i / each;

		out->set[i] = *set;
		out->set[i].chip = chip[c];
		out->src[i] = *src;
		if (numbers)
			ap_setting_pick(&out->set[i], AP_SET_device_num, k);
		else if (k && c)
			out->src[i] = out->src[k];
		else if (k)
			AP_TRY(ap_sources_table(ctx, set, tables[k - 1], &out->src[i]));
		if (set->price.n)
			out->price[i] = set->price.v[set->price.n > 1 ? c : 0];
	}
	return AP_OK;
}

/* What a step costs: money where there is a price, else devices. */
static double step_cost(const struct ap_decision *d, double price, double step_s)
{
	return (double)d->space.devices * (price > 0 ? price * step_s / HOURS : 1);
}

/* Is machine i to be taken rather than j? Both have plans; limited: both keep the limits of time. */
static bool is_preferred(const struct ap_decided *all, bool limited, size_t i, size_t j)
{
	const struct ap_decision *a = &all->decision[i], *b = &all->decision[j];
	const double step[] = {a->trial[a->best].step_s, b->trial[b->best].step_s};
	const double devices[] = {(double)a->space.devices, (double)b->space.devices};
	const double cost[] = {step_cost(a, all->price[i], step[0]), step_cost(b, all->price[j], step[1])};
	const double *const by[2][3] = {{step, devices, cost}, {devices, cost, step}};

	for (int k = 0; k < 3; k++) {
		const double *v = by[limited][k];

		if (v[0] < v[1] || v[0] > v[1])
			return v[0] < v[1];
	}
	return false;
}

/* Says of each machine why it has no plan. */
static enum ap_status none_has(struct ap_ctx *ctx, const struct ap_decided *all, enum ap_status first)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct ap_settings *o = &all->set[i];
		const char *chip = o->chip ? o->chip : all->src[i].table ? all->src[i].table->chip_info : "";

		if (all->src[i].table)
			(void)ap_diag_add(ctx->diag, AP_ERROR, first, &(struct ap_where){
				.file = all->src[i].table_path}, "plan", "%s: %s", chip, all->why[i]);
		else
			(void)ap_diag_add(ctx->diag, AP_ERROR, first, NULL, "plan", "%" PRId64 " x %s: %s",
				ap_sources_devices(o, &all->src[i]), chip, all->why[i]);
	}
	return ap_diag_add(ctx->diag, AP_ERROR, first, NULL, "plan",
		"on none of these %zu machines there is a plan that fits", all->n);
}

enum ap_status ap_decide_machines(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const char *const *tables, struct ap_decided *out)
{
	bool limited = ap_setting_given(set, AP_SET_max_step_time) || ap_setting_given(set, AP_SET_deadline);
	enum ap_status early = AP_OK, first = AP_OK;
	struct ap_decision *d;
	struct machines m = {0};
	const char **why;
	size_t best, fastest;
	const struct ap_old_decision *old;

	AP_TRY(ap_old_decision_read(ctx, set, &old));
	AP_TRY(list_cases(ctx, set, src, tables, &m));
	d = AP_NEW_N(ctx->arena, struct ap_decision, m.n);
	why = AP_NEW_N(ctx->arena, const char *, m.n);
	best = fastest = m.n;
	*out = (struct ap_decided){m.n, m.set, m.src, d, m.price, why, m.n, old, NULL};
	for (size_t i = 0; i < m.n; i++) {
		struct ap_ctx own = m.n > 1 ? ap_diag_apart(ctx) : *ctx;
		enum ap_status st;

		d[i].best = AP_NONE;
		st = ap_decide(&own, &m.set[i], &m.src[i], NULL, &d[i]);
		if (st == AP_STOPPED || st == AP_LIMIT)
			early = AP_STOPPED;
		if (st != AP_OK && st != AP_STOPPED) {
			if (m.n == 1)
				return st;
			why[i] = ap_diag_first_error(own.diag);
			why[i] = why[i] ? why[i] : ap_status_text(st);
			first = first == AP_OK || st == AP_INFEASIBLE ? st : first;
			d[i].best = AP_NONE;
			continue;
		}
		if (fastest == m.n || is_preferred(out, false, i, fastest))
			fastest = i;
		if ((!limited || is_in_time(&m.set[i], &d[i])) &&
			(best == m.n || is_preferred(out, limited, i, best)))
			best = i;
	}
	out->taken = best;
	if (fastest == m.n)
		return none_has(ctx, out, first);
	return best == m.n ? too_slow(ctx, set, &d[fastest]) : early;
}

/* ---- what is told of it ---- */

/* What varies among points, as messages name it. */
#define DIMENSIONS(X) \
	X(pp, "pp") X(vpp, "v") X(tp, "tp") X(cp, "cp") X(ep, "ep") X(sp, "sp") X(mbs, "mbs") \
	X(scheduler, "scheduler") X(mix, "recompute") X(level, "level") \
	X(shard, "shard") X(regathers, "gathers")
#define VALUE_OF(field, name) \
	static int64_t field##_of(const struct ap_decision_point *p) \
	{ \
		return (int64_t)p->field; \
	}
DIMENSIONS(VALUE_OF)
#undef VALUE_OF

static const struct dimension {
	const char *name;
	int64_t (*of)(const struct ap_decision_point *p);
} dimensions[] = {
#define ROW(field, name) {name, field##_of},
	DIMENSIONS(ROW)
#undef ROW
};

/* The value of a dimension, as options have it. */
static const char *value_text(struct ap_ctx *ctx, const struct ap_decision *j,
	const struct ap_decision_point *p, const struct dimension *dim)
{
	if (dim->of == scheduler_of)
		return ap_scheduler_at((size_t)p->scheduler)->name;
	if (dim->of == mix_of)
		return ap_points_recompute(&j->space, p);
	if (dim->of == level_of)
		return p->level ? ap_arena_printf(ctx->arena, "level%d", p->level) : "none";
	if (dim->of == shard_of && !p->shard)
		return p->level ? "all" : "none";
	if (dim->of == regathers_of)
		return p->regathers ? "again" : "once";
	return ap_arena_printf(ctx->arena, "%" PRId64, dim->of(p));
}

struct bounds { /* of a decision's trials; of those that were made in a hurry, better ones once asked for */
	const struct ap_decision *of;
	double *s; /* [trials] */
	bool *hurried; /* [trials] there may be a better one */
};

static struct bounds begin_bounds(struct ap_ctx *ctx, const struct ap_decision *j)
{
	struct bounds b = {j, AP_NEW_N(ctx->arena, double, j->n), AP_NEW_N(ctx->arena, bool, j->n)};

	for (uint32_t i = 0; i < j->n; i++) {
		b.s[i] = j->trial[i].bound_s;
		b.hurried[i] = j->trial[i].hurried_s > 0;
	}
	return b;
}

/* The bound of trial i, as good as it can be if that is less than `most`. */
static double bound_below(struct ap_ctx *ctx, struct bounds *b, uint32_t i, double most)
{
	const struct ap_decision *j = b->of;

	if (b->hurried[i] && b->s[i] < most) {
		b->s[i] = ap_trial_bound_s(ctx, j->rows, &j->space, j->usable_bytes, &j->trial[i]);
		b->hurried[i] = false;
	}
	return b->s[i];
}

static bool may_be_faster(const struct ap_decision_trial *t)
{
	return t->verdict == AP_DECISION_BOUNDED || t->verdict == AP_DECISION_OPEN ||
		(t->verdict == AP_DECISION_FITS && t->point.kind < 0);
}

/* The best of the plans that differ from the decided one in each dimension. cut_s: bounds of plans with other
 * cuts, by trial; NULL: there are none. */
static void find_instead(struct ap_ctx *ctx, const struct ap_decision *j, struct bounds *bounds,
	const double *cut_s, struct ap_plan_joint *out)
{
	const struct ap_decision_trial *best = &j->trial[j->best];
	AP_VEC(struct ap_plan_instead) list = {0};

	for (size_t d = 0; d < AP_COUNT(dimensions); d++) {
		const struct ap_decision_trial *other = NULL;
		struct ap_plan_instead one = {.name = dimensions[d].name, .least_s = INFINITY};

		for (uint32_t i = 0; i < j->n; i++) {
			const struct ap_decision_trial *t = &j->trial[i];

			if (dimensions[d].of(&t->point) == dimensions[d].of(&best->point))
				continue;
			if (t->verdict == AP_DECISION_FITS && (!other || t->step_s < other->step_s))
				other = t;
			if (may_be_faster(t) && !bounds->hurried[i])
				one.least_s = fmin(one.least_s, bounds->s[i]);
			if (cut_s)
				one.least_s = fmin(one.least_s, cut_s[i]);
		}
		if (!other)
			continue;
		one.least_s = fmin(one.least_s, other->step_s);
		for (uint32_t i = 0; i < j->n; i++)
			if (bounds->hurried[i] && may_be_faster(&j->trial[i]) &&
				dimensions[d].of(&j->trial[i].point) != dimensions[d].of(&best->point))
				one.least_s = fmin(one.least_s, bound_below(ctx, bounds, i, one.least_s));
		one.value = value_text(ctx, j, &other->point, &dimensions[d]);
		one.taken = value_text(ctx, j, &best->point, &dimensions[d]);
		one.step_s = other->step_s;
		AP_PUSH(ctx->arena, list, one);
	}
	out->ninstead = (uint32_t)list.n;
	out->instead = list.v;
}

/* The fastest trials, at most `most`, the best first; returns how many. */
static uint32_t fastest(const struct ap_decision *j, int64_t most, uint32_t *at)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < j->n; i++) {
		uint32_t place = n;

		if (j->trial[i].verdict != AP_DECISION_FITS)
			continue;
		while (place > 0 && j->trial[i].step_s < j->trial[at[place - 1]].step_s)
			place--;
		if (place == most)
			continue;
		n += n < most;
		for (uint32_t m = n - 1; m > place; m--)
			at[m] = at[m - 1];
		at[place] = i;
	}
	return n;
}

static void find_top(struct ap_ctx *ctx, const struct ap_decision *j, int64_t most, struct ap_plan_joint *out)
{
	struct ap_plan_decision *top = AP_NEW_N(ctx->arena, struct ap_plan_decision, most);
	uint32_t *at = AP_NEW_N(ctx->scratch, uint32_t, most), n = fastest(j, most, at);

	for (uint32_t k = 0; k < n; k++)
		top[k] = (struct ap_plan_decision){ap_points_words(ctx, &j->space, &j->trial[at[k]].point),
			j->trial[at[k]].step_s, j->trial[at[k]].memory_bytes};
	out->ntop = n;
	out->top = top;
}

/* How many plans cannot be told from the best, by the error of predictions, and what they have in common. */
static void find_near(struct ap_ctx *ctx, const struct ap_decision *j, struct bounds *bounds,
	struct ap_plan_joint *out)
{
	const struct ap_decision_point *best = &j->trial[j->best].point;
	double most_s = j->trial[j->best].step_s * (1 + j->software->step_error / 100);
	bool varies[AP_COUNT(dimensions)] = {false}, differs[AP_COUNT(dimensions)] = {false};
	struct ap_str common;

	out->step_error = j->software->step_error;
	out->memory_error = j->software->memory_error;
	out->memory_within = j->software->memory_within;
	for (uint32_t i = 0; i < j->n; i++) {
		const struct ap_decision_trial *t = &j->trial[i];
		bool near = t->verdict == AP_DECISION_FITS && t->step_s <= most_s;

		out->near += near;
		out->maybe += (t->verdict == AP_DECISION_BOUNDED || t->verdict == AP_DECISION_OPEN) &&
			bound_below(ctx, bounds, i, nextafter(most_s, INFINITY)) <= most_s;
		for (size_t d = 0; d < AP_COUNT(dimensions); d++) {
			bool other = dimensions[d].of(&t->point) != dimensions[d].of(best);

			varies[d] |= other;
			differs[d] |= near && other;
		}
	}
	ap_str_init(&common, ctx->arena);
	for (size_t d = 0; d < AP_COUNT(dimensions); d++)
		if (out->near > 1 && varies[d] && !differs[d])
			ap_str_addf(&common, "%s%s=%s", common.len ? " " : "", dimensions[d].name,
				value_text(ctx, j, best, &dimensions[d]));
	out->common = common.s;
}

/* Settings that were given, of those that may be decided: "pipeline_stages=8, hybrid=tp=4". */
static const char *given(struct ap_ctx *ctx, const struct ap_settings *set)
{
	static const enum ap_setting_id decided[] = {AP_SET_pipeline_stages, AP_SET_pipeline_segments,
		AP_SET_pipeline_scheduler, AP_SET_micro_batches, AP_SET_recompute,
		AP_SET_enable_parallel_optimizer, AP_SET_optimizer_level, AP_SET_optimizer_weight_shard_size,
		AP_SET_hybrid, AP_SET_batch};
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(decided); i++) {
		const struct ap_setting_row *row = ap_setting_at(decided[i]);

		if (ap_setting_given(set, decided[i]))
			ap_str_addf(&s, "%s%s=%s", s.len ? " " : "", row->key,
				ap_setting_text(ctx->arena, row, set));
	}
	return s.s;
}

/* Is another machine as fast and as cheap as machine i, and better in one of both? */
static bool is_dominated(const struct ap_decided *all, size_t i)
{
	const struct ap_decision *d = &all->decision[i];
	double step_s = d->trial[d->best].step_s, cost = step_cost(d, all->price[i], step_s);

	for (size_t k = 0; k < all->n; k++) {
		const struct ap_decision *o = &all->decision[k];
		double other_s = o->best == AP_NONE ? INFINITY : o->trial[o->best].step_s;
		double other_cost = o->best == AP_NONE ? INFINITY : step_cost(o, all->price[k], other_s);

		if (other_s <= step_s && other_cost <= cost && (other_s < step_s || other_cost < cost))
			return true;
	}
	return false;
}

static void list_machines(struct ap_ctx *ctx, const struct ap_decided *all, struct ap_plan_joint *out)
{
	struct ap_plan_machine *row = AP_NEW_N(ctx->arena, struct ap_plan_machine, all->n);

	for (size_t i = 0; i < all->n; i++) {
		const struct ap_decision *d = &all->decision[i];
		const struct ap_settings *set = &all->set[i];
		const struct ap_topo *table = all->src[i].table;
		const struct ap_decision_trial *best = d->best == AP_NONE ? NULL : &d->trial[d->best];

		row[i] = (struct ap_plan_machine){.devices = best ? d->space.devices
			: ap_sources_devices(set, &all->src[i]), .chip = best ? d->chip->name
			: set->chip ? set->chip
			: table ? table->chip_info : "", .table = table ? all->src[i].table_path : NULL,
			.taken = i == all->taken, .why = all->why[i]};
		if (!best)
			continue;
		row[i].decided = ap_points_words(ctx, &d->space, &best->point);
		row[i].step_s = best->step_s;
		row[i].memory_bytes = best->memory_bytes;
		row[i].rate = (double)d->space.batch * (double)(d->sequence ? d->sequence : 1) /
			best->step_s / (double)d->space.devices;
		row[i].undominated = !is_dominated(all, i);
		out->unit = d->sequence ? "tokens" : "samples";
		row[i].days = training_s(set, d) / (24 * HOURS);
		row[i].cost = training_s(set, d) / HOURS * (double)d->space.devices * all->price[i];
	}
	out->priced = all->price[all->taken] > 0;
	out->nmachine = (uint32_t)all->n;
	out->machine = row;
}

/* What was rejected, by reason, with what comes next to the plan. */
static void list_rejected(struct ap_ctx *ctx, const struct ap_decision *d, struct bounds *bounds,
	struct ap_plan_joint *out)
{
	const struct ap_decision_trial *large = NULL, *refused = NULL;
	uint32_t slow;
	bool again;
	AP_VEC(const char *) list = {0};
	char bytes[32], step[32];

	for (uint32_t i = 0; i < d->n; i++) {
		const struct ap_decision_trial *t = &d->trial[i];

		if (t->verdict == AP_DECISION_TOO_LARGE && t->memory_bytes > 0 &&
			(!large || t->memory_bytes < large->memory_bytes))
			large = t;
		if (t->verdict == AP_DECISION_REFUSED && !refused)
			refused = t;
	}
	do { /* the first of those with the least bound, which then is as good as it can be */
		slow = AP_NONE;
		for (uint32_t i = 0; i < d->n; i++)
			if (d->trial[i].verdict == AP_DECISION_BOUNDED &&
				(slow == AP_NONE || bounds->s[i] < bounds->s[slow]))
				slow = i;
		again = slow != AP_NONE && bounds->hurried[slow];
		if (again)
			(void)bound_below(ctx, bounds, slow, INFINITY);
	} while (again);
	if (large)
		AP_PUSH(ctx->arena, list, ap_arena_printf(ctx->arena, "%" PRIu32 " need too much memory: "
			"next is %s, short by %s", d->count[AP_DECISION_TOO_LARGE],
			ap_points_words(ctx, &d->space, &large->point),
			ap_format_bytes(large->memory_bytes - d->usable_bytes, bytes)));
	if (slow != AP_NONE)
		AP_PUSH(ctx->arena, list, ap_arena_printf(ctx->arena, "%" PRIu32 " are slower by a bound: "
			"next is %s, at least %s", d->count[AP_DECISION_BOUNDED],
			ap_points_words(ctx, &d->space, &d->trial[slow].point),
			ap_format_seconds(bounds->s[slow], step)));
	if (refused)
		AP_PUSH(ctx->arena, list, ap_arena_printf(ctx->arena, "%" PRIu32 " cannot be: such as %s: %s",
			d->count[AP_DECISION_REFUSED], ap_points_words(ctx, &d->space, &refused->point),
			refused->why));
	out->nrejected = (uint32_t)list.n;
	out->rejected = list.v;
}

/* What a plan tells of the decision that was taken. */
static struct ap_plan_joint *tell(struct ap_ctx *ctx, const struct ap_decided *all)
{
	const struct ap_decision *j = &all->decision[all->taken];
	const struct ap_settings *set = &all->set[all->taken];
	struct ap_plan_joint *out = AP_NEW(ctx->arena, struct ap_plan_joint);
	const struct ap_decision_trial *best = &j->trial[j->best];
	struct bounds bounds = begin_bounds(ctx, j);
	const double *cut_s = NULL;

	*out = (struct ap_plan_joint){.decided = ap_points_words(ctx, &j->space, &best->point),
		.given = given(ctx, set), .complete = j->complete, .step_s = best->step_s,
		.bound_s = j->bound_s, .headroom = j->headroom,
		.headroom_given = set->headroom >= 0, .usable_bytes = j->usable_bytes, .n = j->n,
		.evaluated = j->evaluated, .fit = j->count[AP_DECISION_FITS],
		.too_large = j->count[AP_DECISION_TOO_LARGE], .refused = j->count[AP_DECISION_REFUSED],
		.slower = j->count[AP_DECISION_BOUNDED], .open = j->count[AP_DECISION_OPEN]};
	if (ap_operator_cuts_sayable(set)) {
		struct ap_decision_point *point = AP_NEW_N(ctx->scratch, struct ap_decision_point, j->n);

		for (uint32_t i = 0; i < j->n; i++)
			point[i] = j->trial[i].point;
		cut_s = ap_cut_bound(ctx, set, &all->src[all->taken], point, j->n);
		out->least_hybrid_s = j->bound_s;
		for (uint32_t i = 0; cut_s && i < j->n; i++)
			out->bound_s = fmin(out->bound_s, cut_s[i]);
		if (!cut_s)
			out->bound_s = 0;
	}
	find_top(ctx, j, set->top, out);
	find_instead(ctx, j, &bounds, cut_s, out);
	find_near(ctx, j, &bounds, out);
	if (set->rejected)
		list_rejected(ctx, j, &bounds, out);
	list_machines(ctx, all, out);
	return out;
}

/* Holds the old plan against what is taken, and gives that up for it if it is near enough. */
static void hold_old(struct ap_ctx *ctx, struct ap_decided *all, bool cuts, struct ap_settings *out,
	unsigned *use, double *cuts_s, uint32_t *trial)
{
	struct ap_decision *d = ap_arena_memdup(ctx->arena, all->decision, all->n * sizeof *d);
	const struct ap_old_decision_rivals rivals = {&all->set[all->taken], &all->src[all->taken], cuts,
		&d[all->taken], out, use, cuts_s, trial};

	all->kept = ap_old_decision_hold(ctx, all->old, &rivals);
	all->decision = d;
}

/* Takes a plan of stages with unequal numbers of devices, if one is faster and all that is to be written can
 * hold it. */
static void take_unequal(struct ap_ctx *ctx, const struct ap_decided *all, struct ap_plan_joint *told,
	struct ap_settings *out, unsigned *use)
{
	static const enum ap_setting_id equal_alone[] = {AP_SET_strategy_ckpt_save_file, AP_SET_bundle,
		AP_SET_group_ckpt_save_file};
	const struct ap_decision *d = &all->decision[all->taken];
	const struct ap_settings *set = &all->set[all->taken];
	struct ap_plan_unequal *u = &told->unequal;
	struct ap_decision_point point;

	if (!ap_unequal_look(ctx, d, set, &all->src[all->taken],
		told->cuts_s > 0 ? told->cuts_s : told->step_s, u, &point))
		return;
	for (size_t i = 0; i < AP_COUNT(equal_alone); i++)
		if (ap_setting_given(set, equal_alone[i])) {
			u->not_taken = ap_arena_printf(ctx->arena,
				"%s is made for stages of equal numbers of devices",
				ap_setting_said(ctx, set, equal_alone[i]));
			return;
		}
	u->taken = true;
	*use = AP_FOR_evaluate;
	ap_points_settings(ctx, set, &d->space, &point, out);
	told->decided = u->plan;
	told->step_s = u->plan_s;
	told->cuts_s = 0;
	told->bound_s = fmin(told->bound_s, u->bound_s);
	told->least_hybrid_s = fmin(told->least_hybrid_s, u->bound_s);
}

struct ap_plan_joint *ap_decided_take(struct ap_ctx *ctx, struct ap_decided *all, bool cuts,
	struct ap_settings *out, unsigned *use)
{
	const struct ap_decision *decision = &all->decision[all->taken];
	const struct ap_settings *set = &all->set[all->taken];
	struct ap_plan_joint *told;
	uint32_t trial = decision->best;
	double cuts_s = 0;

	*use = AP_FOR_evaluate;
	ap_points_settings(ctx, set, &decision->space, &decision->trial[decision->best].point, out);
	if (cuts && ap_operator_cuts_search(ctx, set, &all->src[all->taken], decision, out, &cuts_s, &trial))
		*use = AP_FOR_search;
	if (all->old)
		hold_old(ctx, all, cuts, out, use, &cuts_s, &trial);
	told = tell(ctx, all);
	if (cuts_s > 0) {
		decision = &all->decision[all->taken];
		told->cuts_s = cuts_s;
		told->decided = ap_points_words(ctx, &decision->space, &decision->trial[trial].point);
	}
	if (set->unequal_stages && all->kept && !all->kept->left)
		told->unequal = (struct ap_plan_unequal){.asked = true, .why = "the old plan is kept"};
	else if (set->unequal_stages)
		take_unequal(ctx, all, told, out, use);
	return told;
}

/* ---- what a search leaves ---- */

enum { HINT_LEAST = 2, HINT_MOST = 4 }; /* trials */
enum { HINT_OPERATOR = 1 << 17 }; /* search's work for each operator of a trial: a tenth of the time */
#define HINT_WORTH 0.01 /* of the step */

struct hint {
	struct ap_ctx ctx;
	const struct ap_settings *set;
	const struct ap_sources *src;
	struct ap_arena *to; /* of the text */
	uint32_t most;
	double step_s;
	const char *text;
};

static void find_hint(void *user)
{
	struct hint *h = user;
	struct ap_ctx quiet = ap_diag_apart(&h->ctx);
	struct ap_decision d;
	char takes[32], instead[32];
	enum ap_status st = ap_decide(&quiet, h->set, h->src,
		&(struct ap_decision_asked){.most = h->most,
			.below_s = h->step_s * (1 - HINT_WORTH)}, &d);
	double step_s;
	struct ap_str s;

	if ((st != AP_OK && st != AP_STOPPED) || d.best == AP_NONE)
		return;
	step_s = d.trial[d.best].step_s;
	ap_str_init(&s, h->to);
	ap_str_addf(&s, "%s would take %s instead of %s", ap_points_words(&quiet, &d.space,
		&d.trial[d.best].point), ap_format_seconds(step_s, takes),
		ap_format_seconds(h->step_s, instead));
	if (h->step_s / step_s - 1 < d.software->step_error / 100)
		ap_str_add(&s, ", which is within the error of predictions");
	if (!d.complete)
		ap_str_addf(&s, ", after %" PRIu32 " of %" PRIu32 " combinations", d.evaluated, d.n);
	h->text = s.s;
}

const char *ap_decided_hint(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_plan *plan)
{
	static const enum ap_setting_id given[] = {AP_SET_pipeline_stages, AP_SET_micro_batches,
		AP_SET_hybrid, AP_SET_strategy_ckpt_load_file, AP_SET_stage_config, AP_SET_planner_memory,
		AP_SET_work_limit};
	struct hint h = {.ctx = *ctx, .set = set, .src = src, .to = ctx->arena,
		.step_s = plan->prediction.step_time_s};
	double most = (double)plan->search.work / HINT_OPERATOR / (plan->graph->nnode + 1);
	struct ap_arena *made;

	for (size_t i = 0; i < AP_COUNT(given); i++)
		if (ap_setting_given(set, given[i]))
			return NULL;
	if (set->run_phase == AP_RUN_INFERENCE || set->parallel_mode != AP_MODE_AUTO_PARALLEL)
		return NULL;
	h.most = (uint32_t)fmin(fmax(most, HINT_LEAST), HINT_MOST);
	h.ctx.phase = NULL;
	if (ap_attempt_apart(&h.ctx, find_hint, NULL, &h, &made))
		ap_arena_destroy(made);
	return h.text;
}

/* "tp=4 inside a server, dp=32: 2 inside a server, 16 across": ranks of a hybrid lie in this order, the first
 * side by side. */
static const char *rank_order(struct ap_ctx *ctx, const struct ap_decision_point *p,
	const struct ap_machine *m)
{
	const struct {
		const char *name;
		int64_t n;
	} dim[] = {{"tp", p->tp}, {"cp", p->cp}, {"dp", p->dp}, {"pp", p->pp}};
	int64_t server = m->total / m->topo->nserver, stride = 1;
	struct ap_str s;

	if (m->topo->nserver == 1)
		return "all inside one server";
	if (m->total % m->topo->nserver)
		return NULL;
	ap_str_init(&s, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(dim); i++) {
		int64_t n = dim[i].n, inside = server / stride;

		if (n == 1)
			continue;
		ap_str_addf(&s, "%s%s=%" PRId64, s.len ? ", " : "", dim[i].name, n);
		if (inside <= 1)
			ap_str_add(&s, " across servers");
		else if (n <= inside)
			ap_str_add(&s, " inside a server");
		else
			ap_str_addf(&s, ": %" PRId64 " inside a server, %" PRId64 " across", inside,
				n / inside);
		stride *= n;
	}
	return s.s;
}

/* The type of the operands that most of the products' work is done on. */
static enum ap_dtype products_type(const struct ap_graph *g)
{
	double flops[AP_DTYPE_COUNT] = {0};
	int most = 0;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &g->node[i].bound;
		double n = b->flops;

		if (b->row->unit != AP_OP_CUBE || !b->nin)
			continue;
		for (int f = 0; f < b->nfactor; f++)
			n *= (double)b->factor[f].size;
		flops[g->tensor[g->node[i].in[0]].shape.dtype] += n;
	}
	for (int t = 1; t < AP_DTYPE_COUNT; t++)
		if (flops[t] > flops[most])
			most = t;
	return (enum ap_dtype)most;
}

struct freeing {
	struct ap_ctx ctx;
	const struct ap_decided *all;
	struct ap_arena *to; /* of the text */
	double below_s;
	struct ap_plan_free *out;
};

static void find_free(void *user)
{
	struct freeing *f = user;
	struct ap_ctx quiet = ap_diag_apart(&f->ctx);
	const struct ap_decision *told = &f->all->decision[f->all->taken];
	const struct ap_decision_asked asked = {.told = told, .below_s = f->below_s};
	const struct ap_settings *set = &f->all->set[f->all->taken];
	const struct ap_sources *src = &f->all->src[f->all->taken];
	struct ap_decision d;
	enum ap_status st = ap_decide(&quiet, set, src, &asked, &d);
	const double *least_s;

	if ((st != AP_OK && st != AP_STOPPED) || d.nall == told->n)
		return;
	least_s = ap_cut_bound(&quiet, set, src, d.shape, d.nshape);
	if (ap_ctx_stopped(&f->ctx))
		return;
	f->out->executor = told->space.language->route;
	f->out->bound_s = f->below_s;
	for (uint32_t i = 0; i < d.nshape; i++)
		f->out->bound_s = fmin(f->out->bound_s, least_s ? least_s[i] : 0);
	if (d.best == AP_NONE)
		return;
	f->out->step_s = d.trial[d.best].step_s;
	f->out->decided = ap_arena_strdup(f->to, ap_points_words(&quiet, &d.space, &d.trial[d.best].point));
}

/* What the executor cannot be told, if it is faster. */
static void look_beyond(struct ap_ctx *ctx, const struct ap_decided *all, double step_s,
	struct ap_plan_free *out)
{
	struct freeing f = {.ctx = *ctx, .all = all, .to = ctx->arena, .below_s = step_s, .out = out};
	struct ap_arena *made;

	if (!all->decision[all->taken].complete || !all->set[all->taken].prune || ap_ctx_stopped(ctx))
		return;
	f.ctx.phase = NULL;
	if (ap_attempt_apart(&f.ctx, find_free, NULL, &f, &made))
		ap_arena_destroy(made);
	else
		*out = (struct ap_plan_free){0};
}

void ap_decided_finish(struct ap_ctx *ctx, const struct ap_decided *all, const struct ap_inputs *in,
	struct ap_plan *plan, struct ap_plan_joint *told)
{
	const struct ap_decision *d = &all->decision[all->taken];
	const struct ap_graph_work work = ap_graph_work(in->loaded);
	enum ap_dtype type = products_type(in->loaded);
	double peak = d->chip->peak_flops[AP_UNIT_CUBE][type] * (double)plan->machine->total;
	int passes = all->set[all->taken].run_phase == AP_RUN_INFERENCE ? 1 : 3; /* a backward pass is two */

	if (!(told->cuts_s > 0) && !told->unequal.taken)
		told->ranks = rank_order(ctx, &d->trial[d->best].point, plan->machine);
	if (peak > 0 && work.trained == in->loaded->parameters && plan->prediction.step_time_s > 0)
		told->mfu = passes * work.products_flop / peak / plan->prediction.step_time_s;
	told->peak = ap_dtype_name(type);
	if (all->kept)
		ap_old_decision_finish(ctx, all->old, all->kept, plan);
	look_beyond(ctx, all, plan->prediction.step_time_s, &told->free);
}

void ap_decided_shortlist(struct ap_ctx *ctx, const struct ap_decided *all, struct ap_plan_joint *told,
	struct ap_shortlist *out)
{
	const struct ap_decision *j = &all->decision[all->taken];
	const struct ap_settings *set = &all->set[all->taken];
	uint32_t *at = AP_NEW_N(ctx->scratch, uint32_t, set->top), n = fastest(j, set->top, at);

	*out = (struct ap_shortlist){.dir = ap_shortlist_folder(ctx, set, 0), .n = 1};
	out->row = AP_NEW_N(ctx->arena, struct ap_shortlist_row, set->top);
	out->row[0] = (struct ap_shortlist_row){.decided = told->decided,
		.step_s = told->cuts_s > 0 ? told->cuts_s : told->step_s};
	for (uint32_t k = 0; k < n && out->n < set->top; k++) {
		const struct ap_decision_trial *t = &j->trial[at[k]];
		struct ap_settings *o;

		if (!(told->cuts_s > 0) && !told->unequal.taken && at[k] == j->best)
			continue; /* the run's */
		o = AP_NEW(ctx->arena, struct ap_settings);
		ap_points_settings(ctx, set, &j->space, &t->point, o);
		out->row[out->n++] = (struct ap_shortlist_row){o, ap_points_words(ctx, &j->space, &t->point),
			t->step_s, t->memory_bytes};
	}
	told->bundles = ap_arena_printf(ctx->arena, "%s to %s, and %s with a column for measured times",
		ap_shortlist_folder(ctx, set, 1), ap_shortlist_folder(ctx, set, out->n),
		ap_path_join(ctx->arena, out->dir, AP_SHORTLIST_CSV));
}
