/* SPDX-License-Identifier: Apache-2.0 */
#include "report/varied.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "report/sheet.h"

static const struct unit {
	const char *unit, *prefix;
	double factor;
} units[] = {
	/* the largest of a unit that a value reaches is taken */
	{"B/s", "TB/s", 1e12},
	{"B/s", "GB/s", 1e9},
	{"B/s", "MB/s", 1e6},
	{"B/s", "kB/s", 1e3},
	{"B/s", "B/s", 0},
	{"FLOP/s", "PFLOP/s", 1e15},
	{"FLOP/s", "TFLOP/s", 1e12},
	{"FLOP/s", "GFLOP/s", 1e9},
	{"FLOP/s", "FLOP/s", 0},
	{"s", "s", 1},
	{"s", "ms", 1e-3},
	{"s", "us", 1e-6},
	{"s", "ns", 0},
	{"B", "TiB", 0x1p40},
	{"B", "GiB", 0x1p30},
	{"B", "MiB", 0x1p20},
	{"B", "KiB", 0x1p10},
	{"B", "B", 0},
};

#define WORTH 1e-4 /* a step that is shorter by so much is told of */

/* Four digits, whatever the locale. */
static const char *four_digits(double v, char buf[32])
{
	double scale = v > 0 ? pow(10, 3 - floor(log10(v))) : 1;

	return ap_format_double(scale > 1 ? round(v * scale) / scale : round(v), buf);
}

const char *ap_varied_value(struct ap_arena *arena, const char *unit, double value)
{
	char buf[32];

	for (size_t i = 0; i < AP_COUNT(units); i++) {
		const struct unit *u = &units[i];
		double factor = u->factor > 0 ? u->factor : !strcmp(unit, "s") ? 1e-9 : 1;

		if (!strcmp(u->unit, unit) && value >= u->factor * 0.99995)
			return ap_arena_printf(
				arena, "%s %s", four_digits(value / factor, buf), u->prefix);
	}
	return ap_arena_strdup(arena, four_digits(value, buf));
}

const char *ap_varied_letter(struct ap_arena *arena, uint32_t plan)
{
	return plan < 26 ? ap_arena_printf(arena, "%c", (char)('A' + plan))
		: ap_arena_printf(arena, "%c%" PRIu32, (char)('A' + plan % 26), plan / 26);
}

/* ---- the table ---- */

static const char *times(struct ap_arena *arena, const struct ap_varied *v, double value)
{
	char buf[32];

	return v->base > 0 ? ap_arena_printf(arena, "%sx", four_digits(value / v->base, buf)) : NULL;
}

static const char *status(struct ap_arena *arena, const struct ap_varied_interval *t)
{
	char buf[32];

	if (t->proven)
		return t->plan == AP_NONE || !(t->margin > 0)
			? "proven"
			: ap_arena_printf(arena, "proven within %s %%",
				  four_digits(ceil(t->margin * 1e4) / 100, buf));
	if (!(t->margin < 0.1) && t->gap >= 0 && t->gap < 1)
		return ap_arena_printf(arena,
			"probed (%" PRIu32 " search%s; there none faster by over %s %%)", t->searches,
			t->searches == 1 ? "" : "es", four_digits(ceil(t->gap * 1e3) / 10, buf));
	if (!(t->margin < 0.1))
		return ap_arena_printf(arena, "probed (%" PRIu32 " search%s)", t->searches,
			t->searches == 1 ? "" : "es");
	return ap_arena_printf(arena, "probed (%" PRIu32 " search%s; none faster by over %s %%)",
		t->searches, t->searches == 1 ? "" : "es", four_digits(ceil(t->margin * 1e3) / 10, buf));
}

/* Values that were tried one by one. */
static void add_values_tried(struct ap_arena *arena, const struct ap_varied *v, struct ap_sheet *s)
{
	static const struct ap_column columns[] = {{"value", "value", AP_CELL_TEXT},
		{"times", "times", AP_CELL_TEXT}, {"plan", "plan", AP_CELL_TEXT},
		{"step_s", "step", AP_CELL_SECONDS}, {"samples_per_s", "samples/s", AP_CELL_TEXT},
		{"status", "best there", AP_CELL_TEXT}};
	char buf[32];

	ap_sheet_block(s, "intervals", "the best plans");
	ap_sheet_columns(s, columns, AP_COUNT(columns));
	for (uint32_t i = 0; i < v->ninterval; i++) {
		const struct ap_varied_interval *t = &v->interval[i];

		ap_sheet_cell_text(s, ap_varied_value(arena, v->unit, t->from));
		ap_sheet_cell_text(s, times(arena, v, t->from));
		ap_sheet_cell_text(s, t->plan == AP_NONE ? "none" : ap_varied_letter(arena, t->plan));
		ap_sheet_cell(s, t->from_s);
		ap_sheet_cell_text(s,
			v->point[i].rate > 0 ? ap_arena_strdup(arena, four_digits(v->point[i].rate, buf))
				: NULL);
		ap_sheet_cell_text(s, status(arena, t));
	}
}

static void add_intervals(
	struct ap_arena *arena, const struct ap_varied *v, bool json, struct ap_sheet *s)
{
	static const struct ap_column for_people[] = {{"from", "from", AP_CELL_TEXT},
		{"to", "to", AP_CELL_TEXT}, {"times_from", "times", AP_CELL_TEXT},
		{"times_to", "", AP_CELL_TEXT}, {"plan", "plan", AP_CELL_TEXT},
		{"step_from_s", "step from", AP_CELL_SECONDS}, {"step_to_s", "to", AP_CELL_SECONDS},
		{"status", "best there", AP_CELL_TEXT}};
	static const struct ap_column for_programs[] = {{"from", "", AP_CELL_NUMBER},
		{"to", "", AP_CELL_NUMBER}, {"plan", "", AP_CELL_TEXT},
		{"step_from_s", "", AP_CELL_SECONDS}, {"step_to_s", "", AP_CELL_SECONDS},
		{"status", "", AP_CELL_TEXT}, {"margin", "", AP_CELL_SHARE}, {"gap", "", AP_CELL_SHARE},
		{"searches", "", AP_CELL_INT}, {"why", "", AP_CELL_TEXT}};

	ap_sheet_block(s, "intervals", "the best plan");
	if (json)
		ap_sheet_columns(s, for_programs, AP_COUNT(for_programs));
	else
		ap_sheet_columns(s, for_people, AP_COUNT(for_people));
	for (uint32_t i = 0; i < v->ninterval; i++) {
		const struct ap_varied_interval *t = &v->interval[i];
		const char *plan = t->plan == AP_NONE ? NULL : ap_varied_letter(arena, t->plan);

		if (json) {
			ap_sheet_cell(s, t->from);
			ap_sheet_cell(s, t->to);
			ap_sheet_cell_text(s, plan);
			ap_sheet_cell(s, t->from_s);
			ap_sheet_cell(s, t->to_s);
			ap_sheet_cell_text(s, t->proven ? "proven" : "probed");
			ap_sheet_cell(s, t->margin);
			ap_sheet_cell(s, t->gap);
			ap_sheet_cell(s, t->searches);
			ap_sheet_cell_text(s, t->why);
			continue;
		}
		ap_sheet_cell_text(s, ap_varied_value(arena, v->unit, t->from));
		ap_sheet_cell_text(s, ap_varied_value(arena, v->unit, t->to));
		ap_sheet_cell_text(s, times(arena, v, t->from));
		ap_sheet_cell_text(s, times(arena, v, t->to));
		ap_sheet_cell_text(s, plan ? plan : "none fits");
		ap_sheet_cell(s, t->from_s);
		ap_sheet_cell(s, t->to_s);
		ap_sheet_cell_text(s, status(arena, t));
	}
}

static void add_plans(struct ap_arena *arena, const struct ap_varied *v, struct ap_sheet *s)
{
	static const struct ap_column columns[] = {{"plan", "plan", AP_CELL_TEXT},
		{"memory_bytes", "memory", AP_CELL_BYTES}, {"what", "what it is", AP_CELL_TEXT}};

	ap_sheet_block(s, "plans", "the plans");
	ap_sheet_columns(s, columns, AP_COUNT(columns));
	for (uint32_t i = 0; i < v->nplan; i++) {
		ap_sheet_cell_text(s, ap_varied_letter(arena, i));
		ap_sheet_cell(s, (double)v->plan[i].memory_bytes);
		ap_sheet_cell_text(s, v->plan[i].words);
	}
}

/* Why there are no plans, each reason once. */
static void add_reasons(const struct ap_varied *v, struct ap_sheet *s)
{
	for (uint32_t i = 0; i < v->ninterval; i++) {
		const char *why = v->interval[i].why;
		bool said = false;

		for (uint32_t k = 0; why && k < i && !said; k++)
			said = v->interval[k].why && !strcmp(v->interval[k].why, why);
		if (why && !said)
			ap_sheet_remark(s, "No plan: %s.", why);
	}
}

static void add_points(struct ap_arena *arena, const struct ap_varied *v, struct ap_sheet *s)
{
	static const struct ap_column columns[] = {{"value", "value", AP_CELL_NUMBER},
		{"plan", "plan", AP_CELL_TEXT}, {"step_s", "step", AP_CELL_SECONDS},
		{"own_step_s", "own step", AP_CELL_SECONDS}, {"step_bound_s", "bound", AP_CELL_SECONDS},
		{"samples_per_s", "samples/s", AP_CELL_NUMBER}};

	ap_sheet_block(s, "points", "values that were searched");
	ap_sheet_columns(s, columns, AP_COUNT(columns));
	for (uint32_t i = 0; i < v->npoint; i++) {
		const struct ap_varied_point *p = &v->point[i];

		ap_sheet_cell(s, p->value);
		ap_sheet_cell_text(s, p->plan == AP_NONE ? NULL : ap_varied_letter(arena, p->plan));
		ap_sheet_cell(s, p->plan == AP_NONE ? NAN : p->step_s[p->plan]);
		ap_sheet_cell(s, isfinite(p->own_s) ? p->own_s : NAN);
		ap_sheet_cell(s, p->bound_s > 0 ? p->bound_s : NAN);
		ap_sheet_cell(s, p->rate > 0 ? p->rate : NAN);
	}
}

/* Where a plan that was found at another value is faster than what the search of now finds. */
static void add_present(struct ap_arena *arena, const struct ap_varied *v, struct ap_sheet *s)
{
	char buf[32];

	for (uint32_t i = 0; i < v->npoint && !v->in_steps; i++) {
		const struct ap_varied_point *p = &v->point[i];
		double gain = p->plan == AP_NONE ? 0 : 1 - p->step_s[p->plan] / p->own_s;

		if (p->value < v->base || p->value > v->base || gain < WORTH)
			continue;
		if (!isfinite(p->own_s)) {
			ap_sheet_remark(s,
				"Now, at %s, plan %s fits, which was found at %s; without --vary none is "
				"found; --plan-out writes it.", ap_varied_value(arena, v->unit, p->value),
				ap_varied_letter(arena, p->plan),
				ap_varied_value(arena, v->unit, p->found_at));
			continue;
		}
		ap_sheet_remark(s, "Now, at %s, plan %s, which was found at %s, is %s %% faster than what is "
			"found without --vary; --plan-out writes it.",
			ap_varied_value(arena, v->unit, p->value), ap_varied_letter(arena, p->plan),
			ap_varied_value(arena, v->unit, p->found_at),
			four_digits(ceil(gain * 1e4) / 100, buf));
	}
}

void ap_varied_write(struct ap_ctx *ctx, const struct ap_varied *v, bool json, struct ap_str *out)
{
	struct ap_sheet *s = ap_sheet_create(ctx, "autopar-vary/1");
	const char *from = ap_varied_value(ctx->arena, v->unit, v->from);
	const char *to = ap_varied_value(ctx->arena, v->unit, v->to);

	if (v->base > 0)
		ap_sheet_thing(s, "varied", v->key, "%s, from %s to %s; without --vary it is %s", v->what,
			from, to, ap_varied_value(ctx->arena, v->unit, v->base));
	else
		ap_sheet_thing(s, "varied", v->key, "%s, from %s to %s", v->what, from, to);
	if (v->in_steps && !json)
		add_values_tried(ctx->arena, v, s);
	else
		add_intervals(ctx->arena, v, json, s);
	ap_sheet_remark(s, "%" PRIu32 " searches%s.%s", v->npoint,
		v->in_steps || v->ninterval == 1 ? "" : v->nopen ? "; some ends are not narrowed down"
			: "; ends are known to 0.1 %",
		v->complete ? "" : " Stopped before all was known.");
	add_present(ctx->arena, v, s);
	add_reasons(v, s);
	add_plans(ctx->arena, v, s);
	if (json) {
		add_points(ctx->arena, v, s);
		ap_sheet_number(s, "base", "base", AP_CELL_NUMBER, v->base > 0 ? v->base : NAN);
		ap_sheet_number(s, "proven_within", "proven within", AP_CELL_SHARE, v->within);
		ap_sheet_words(s, "unit", "unit", v->unit);
		ap_sheet_number(s, "work", "work", AP_CELL_INT, (double)v->work);
		ap_sheet_number(s, "open_ends", "open ends", AP_CELL_INT, v->nopen);
		ap_sheet_number(s, "complete", "complete", AP_CELL_BOOL, v->complete);
	}
	ap_sheet_write(s, json ? AP_SHEET_JSON : AP_SHEET_TEXT, out);
}

/* ---- the plot ---- */

enum {
	WIDTH = 860,
	HEIGHT = 440,
	LEFT = 76,
	RIGHT = 24,
	TOP = 64,
	BOTTOM = 64,
	TICKS = 4,
	CHARACTER = 7
};

/* After the bright qualitative palette of Paul Tol ("Colour schemes", 2021). */
static const char *const hues[] = {"#4477aa", "#ee6677", "#228833", "#aa8811", "#66ccee", "#aa3377"};

struct axes {
	const struct ap_varied *v;
	double least_s, most_s;
};

static double across(const struct axes *a, double value)
{
	double share = a->v->to > a->v->from ? log(value / a->v->from) / log(a->v->to / a->v->from) : 0.5;

	return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double up(const struct axes *a, double s)
{
	return HEIGHT - BOTTOM - (s - a->least_s) / (a->most_s - a->least_s) * (HEIGHT - TOP - BOTTOM);
}

/* A tenth of a pixel is as good as any. */
static void add_at(struct ap_str *out, double x, double y)
{
	char a[32], b[32];

	ap_str_addf(out, "%s,%s ", ap_format_double(round(x * 10) / 10, a),
		ap_format_double(round(y * 10) / 10, b));
}

static void add_line(struct ap_str *out, const char *class, const char *colour, double x1, double y1,
	double x2, double y2)
{
	ap_str_addf(out, "<polyline class=\"%s\" stroke=\"%s\" points=\"", class, colour);
	add_at(out, x1, y1);
	add_at(out, x2, y2);
	ap_str_add(out, "\"/>\n");
}

static void add_dot(struct ap_str *out, double x, double y)
{
	char a[32], b[32];

	ap_str_addf(out, "<circle fill=\"%s\" cx=\"%s\" cy=\"%s\" r=\"4\"/>\n", hues[0],
		ap_format_double(round(x * 10) / 10, a), ap_format_double(round(y * 10) / 10, b));
}

static void add_text(struct ap_str *out, double x, double y, const char *anchor, const char *text)
{
	char a[32], b[32];

	ap_str_addf(out, "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">", ap_format_double(round(x), a),
		ap_format_double(round(y), b), anchor);
	for (; *text; text++)
		if (strchr("<>&", *text))
			ap_str_addf(out, "&#%d;", *text);
		else
			ap_str_addc(out, *text);
	ap_str_add(out, "</text>\n");
}

static double step_at(const struct ap_varied *v, uint32_t point, uint32_t plan)
{
	return plan == AP_NONE ? INFINITY : v->point[point].step_s[plan];
}

static bool is_best_somewhere(const struct ap_varied *v, uint32_t plan)
{
	for (uint32_t i = 0; i < v->ninterval; i++)
		if (v->interval[i].plan == plan)
			return true;
	return false;
}

/* The steps of a plan from point to point, where it fits; as the best of them,
 * from `from` to `to`. */
static void add_curve(struct ap_str *out, const struct axes *a, uint32_t plan, const char *class,
	double from, double to)
{
	const struct ap_varied *v = a->v;

	ap_str_addf(out, "<polyline class=\"%s\" stroke=\"%s\" points=\"", class,
		hues[plan % AP_COUNT(hues)]);
	for (uint32_t i = 0; i < v->npoint; i++)
		if (v->point[i].value >= from && v->point[i].value <= to && isfinite(step_at(v, i, plan)))
			add_at(out, across(a, v->point[i].value), up(a, step_at(v, i, plan)));
	ap_str_add(out, "\"/>\n");
}

static void find_range(const struct ap_varied *v, struct axes *a)
{
	*a = (struct axes){v, INFINITY, 0};
	for (uint32_t i = 0; i < v->npoint; i++) {
		double best_s = step_at(v, i, v->point[i].plan);

		if (v->point[i].bound_s > 0)
			a->least_s = fmin(a->least_s, v->point[i].bound_s);
		a->least_s = fmin(a->least_s, best_s);
		for (uint32_t p = 0; p < v->nplan; p++)
			if (isfinite(step_at(v, i, p)) && is_best_somewhere(v, p))
				a->most_s = fmax(a->most_s, fmin(step_at(v, i, p), 2 * best_s));
	}
	if (!isfinite(a->least_s))
		a->least_s = 0;
	if (!(a->most_s > a->least_s))
		a->most_s = a->least_s > 0 ? a->least_s * 1.1 : 1;
	a->least_s -= (a->most_s - a->least_s) * 0.08;
	a->most_s += (a->most_s - a->least_s) * 0.08;
	a->least_s = fmax(a->least_s, 0);
}

/* Values below the axis: those of the ends, the usual one, and where the plan
 * changes, as far as there is room. */
static void add_values(struct ap_ctx *ctx, struct ap_str *out, const struct axes *a)
{
	const struct ap_varied *v = a->v;
	AP_VEC(double) all = {0};
	double *taken = AP_NEW_N(ctx->scratch, double, 2 * (v->ninterval + 3));
	size_t ntaken = 0;

	AP_PUSH(ctx->scratch, all, v->from);
	AP_PUSH(ctx->scratch, all, v->to);
	if (v->base > v->from && v->base < v->to)
		AP_PUSH(ctx->scratch, all, v->base);
	for (uint32_t i = 1; i < v->ninterval; i++)
		AP_PUSH(ctx->scratch, all, v->interval[i].from);
	for (size_t i = 0; i < all.n; i++) {
		const char *text = ap_varied_value(ctx->arena, v->unit, all.v[i]);
		double x = across(a, all.v[i]), half = (double)strlen(text) * CHARACTER / 2 + 4;
		bool free = true;

		add_line(out, "tick", "currentColor", x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 5);
		x = fmin(fmax(x, half), WIDTH - half);
		for (size_t k = 0; k < ntaken && free; k++)
			free = fabs(taken[2 * k] - x) >= taken[2 * k + 1] + half;
		if (!free)
			continue;
		taken[2 * ntaken] = x;
		taken[2 * ntaken++ + 1] = half;
		add_text(out, x, HEIGHT - BOTTOM + 20, "middle", text);
	}
}

static void add_intervals_behind(struct ap_ctx *ctx, struct ap_str *out, const struct axes *a)
{
	const struct ap_varied *v = a->v;

	for (uint32_t i = 0; i < v->ninterval; i++) {
		const struct ap_varied_interval *t = &v->interval[i];
		double from = across(a, t->from), to = across(a, t->to);
		char x[32], w[32];

		if (t->plan == AP_NONE)
			ap_str_addf(out,
				"<rect class=\"none\" x=\"%s\" y=\"%d\" width=\"%s\" "
				"height=\"%d\"/>\n",
				ap_format_double(round(from), x), TOP,
				ap_format_double(round(fmax(to - from, 1)), w), HEIGHT - TOP - BOTTOM);
		if (i)
			add_line(out, "end", "currentColor", from, TOP, from, HEIGHT - BOTTOM);
		if (to - from >= 2 * CHARACTER)
			add_text(out, (from + to) / 2, TOP - 8, "middle",
				t->plan == AP_NONE ? to - from > 10 * CHARACTER ? "none fits" : "-"
					: ap_varied_letter(ctx->arena, t->plan));
	}
}

void ap_varied_plot(struct ap_ctx *ctx, const struct ap_varied *v, struct ap_str *out)
{
	struct axes a;
	char buf[32];

	find_range(v, &a);
	ap_str_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"width=\"%d\" "
		"height=\"%d\" role=\"img\">\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	ap_str_add(out,
		"<style>svg{color:#222;background:#fff;font:13px "
		"sans-serif}text{fill:currentColor}"
		"polyline{fill:none}.grid{opacity:.15}.tick{opacity:.6}.end{"
		"opacity:.45;stroke-dasharray:4 4}"
		".thin{stroke-width:1.2;opacity:.55}.best{stroke-width:3.2}"
		".bound{stroke-width:1.4;stroke-dasharray:1 "
		"4;stroke-linecap:round}.none{fill:#888;opacity:.15}"
		"@media(prefers-color-scheme:dark){svg{color:#ddd;background:"
		"#181a1b}}</style>\n");
	ap_str_add(out, "<title>");
	ap_str_addf(out, "step over %s</title>\n", v->key);
	add_text(out, LEFT, 24, "start",
		ap_arena_printf(ctx->arena,
			"step over %s, the best plan strong; dotted: "
			"no plan is below",
			v->key));
	for (int i = 0; i <= TICKS; i++) {
		double s = a.least_s + (a.most_s - a.least_s) * i / TICKS;

		add_line(out, "grid", "currentColor", LEFT, up(&a, s), WIDTH - RIGHT, up(&a, s));
		add_text(out, LEFT - 8, up(&a, s) + 4, "end", ap_format_seconds(s, buf));
	}
	add_intervals_behind(ctx, out, &a);
	add_values(ctx, out, &a);
	ap_str_add(out, "<polyline class=\"bound\" stroke=\"currentColor\" points=\"");
	for (uint32_t i = 0; i < v->npoint; i++)
		if (v->point[i].bound_s > 0)
			add_at(out, across(&a, v->point[i].value), up(&a, v->point[i].bound_s));
	ap_str_add(out, "\"/>\n<clipPath id=\"area\">");
	ap_str_addf(out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n"
		"<g clip-path=\"url(#area)\">\n",
		LEFT - 2, TOP, WIDTH - LEFT - RIGHT + 4, HEIGHT - TOP - BOTTOM);
	for (uint32_t p = 0; p < v->nplan && !v->in_steps; p++)
		if (is_best_somewhere(v, p))
			add_curve(out, &a, p, "thin", v->from, v->to);
	for (uint32_t i = 0; i < v->ninterval; i++)
		if (v->interval[i].plan != AP_NONE)
			add_curve(out, &a, v->interval[i].plan, "best", v->interval[i].from,
				v->interval[i].to);
	for (uint32_t i = 0; i < v->npoint && v->in_steps; i++)
		if (v->point[i].plan != AP_NONE)
			add_dot(out, across(&a, v->point[i].value),
				up(&a, step_at(v, i, v->point[i].plan)));
	ap_str_add(out, "</g>\n");
	add_text(out, LEFT, HEIGHT - 16, "start", v->what);
	ap_str_add(out, "</svg>\n");
}
