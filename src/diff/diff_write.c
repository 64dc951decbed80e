/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/diff_write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "planfile/plan_form.h"

enum {
	COLUMNS = 8,
	WIDEST = 64 /* wider cells of text shift the rest of the line */
};

static const struct {
	char sign;
	const char *color; /* text */
	const char *word; /* Markdown */
	const char *key; /* JSON */
} kinds[] = {
	[AP_DIFF_CHANGED] = {'~', "\033[33m", "", "changed"},
	[AP_DIFF_ADDED] = {'+', "\033[32m", "new", "added"},
	[AP_DIFF_REMOVED] = {'-', "\033[31m", "gone", "removed"},
	[AP_DIFF_RENAMED] = {'=', "\033[36m", "renamed", "renamed"},
};

/* Names of a field: its key in the plan file, and a label. */
struct field_name {
	const char *key, *text;
	unsigned unless; /* mask of fields; if one changed, this one is not shown */
	bool brief; /* also shown of what is new or gone */
};

static const struct field_name op_names[AP_SAVED_OP_FIELDS] = {
#define OP(name, key, type, may, text, unless, brief) {key, text, unless, brief},
#include "planfile/plan_fields.def"
};

static const struct field_name param_names[AP_SAVED_PARAM_FIELDS] = {
#define PARAM(name, key, type, may, text, unless, brief) {key, text, unless, brief},
#include "planfile/plan_fields.def"
};

static const struct field_name move_names[AP_SAVED_MOVE_FIELDS] = {
#define MOVE(name, key, type, may, text, unless, brief) {key, text, unless, brief},
#include "planfile/plan_fields.def"
};

/* ---- values for display ---- */

/* A JSON value without quotes and outer brackets; "" if NULL. */
static const char *plain(struct ap_ctx *ctx, const char *json)
{
	size_t len = json ? strlen(json) : 0;
	struct ap_str text;

	if (!json)
		return "";
	if (!strcmp(json, "null"))
		return "none";
	if ((*json == '"' && !strchr(json, '\\')) || !strncmp(json, "[[", 2))
		return ap_arena_strndup(ctx->arena, json + 1, len - 2);
	if (strncmp(json, "[\"", 2) != 0 || strchr(json, '\\'))
		return json;
	ap_str_init(&text, ctx->arena);
	for (size_t i = 1; i + 1 < len; i++)
		if (json[i] != '"')
			ap_str_addc(&text, json[i]);
	return text.s;
}

static const char *count_text(struct ap_ctx *ctx, int64_t n)
{
	return ap_arena_printf(ctx->arena, "%" PRId64, n);
}

static const char *bytes_text(struct ap_ctx *ctx, int64_t bytes)
{
	char buf[32];

	return ap_arena_strdup(ctx->arena, ap_format_bytes(bytes, buf));
}

const char *ap_diff_change(struct ap_ctx *ctx, double was, double is)
{
	double percent = 100 * (is / was - 1);
	int64_t tenths;

	if (!(was > 0) || !isfinite(percent))
		return "";
	tenths = llrint(fmax(-1e15, fmin(1e15, percent)) * 10);
	return ap_arena_printf(ctx->arena, "%c%" PRId64 ".%" PRId64 " %%",
		percent < 0 ? '-' : '+', (tenths < 0 ? -tenths : tenths) / 10,
		(tenths < 0 ? -tenths : tenths) % 10);
}

/* The change of a figure; of one that is a share itself in points of a per cent. */
static const char *change_text(struct ap_ctx *ctx, const struct ap_diff_figure *f)
{
	double points = 100 * (f->is_number - f->was_number);

	if (ap_plan_unit_of(f->key) != AP_PLAN_SHARE || !isfinite(points))
		return ap_diff_change(ctx, f->was_number, f->is_number);
	return ap_arena_printf(ctx->arena, "%+.2f points", points);
}

/* v with this many significant digits, in the shortest form. */
static const char *rounded_text(struct ap_ctx *ctx, double v, int digits)
{
	double scale = v == 0 ? 1 : pow(10, digits - 1 - (int)floor(log10(fabs(v))));
	char buf[32];

	if (!isfinite(scale) || scale == 0 || digits > 15)
		return ap_arena_strdup(ctx->arena, ap_format_double(v, buf));
	return ap_arena_strdup(ctx->arena, ap_format_double(
		scale < 1 ? rint(v * scale) * rint(1 / scale) : rint(v * scale) / scale, buf));
}

/* A number with the unit that its key implies; integers without a unit are counts, and in full. like: a
 * number whose unit it takes. */
static const char *number_text(struct ap_ctx *ctx, const char *key, double v, double like, int digits)
{
	static const struct {
		double s;
		const char *name;
	} times[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
	static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	enum ap_plan_unit unit = ap_plan_unit_of(key);
	double scale = 1;
	char buf[32];
	size_t t = 0;

	if (unit == AP_PLAN_BYTES && fabs(v) < 0x1p62 && digits == 3)
		return bytes_text(ctx, (int64_t)v);
	if (unit == AP_PLAN_BYTES && fabs(v) < 0x1p62) {
		while (t + 1 < AP_COUNT(sizes) && fabs(like) >= 1024 * scale) {
			scale *= 1024;
			t++;
		}
		return ap_arena_printf(ctx->arena, "%s %s", rounded_text(ctx, v / scale, digits), sizes[t]);
	}
	if (unit == AP_PLAN_BYTES_PER_S)
		return ap_arena_printf(ctx->arena, "%s GB/s", rounded_text(ctx, v / 1e9, digits));
	if (unit == AP_PLAN_S && digits == 3)
		return ap_arena_strdup(ctx->arena, ap_format_seconds(v, buf));
	if (unit == AP_PLAN_S) {
		while (t + 1 < AP_COUNT(times) && fabs(like) < 0.9995 * times[t].s)
			t++;
		return ap_arena_printf(ctx->arena, "%s %s", rounded_text(ctx, v / times[t].s, digits),
			times[t].name);
	}
	if (unit == AP_PLAN_SHARE && fabs(v) < 1e12)
		return ap_arena_printf(ctx->arena, "%s %%", rounded_text(ctx, 100 * v, digits));
	if (unit == AP_PLAN_NONE && v == rint(v))
		return ap_arena_strdup(ctx->arena, ap_format_double(v, buf));
	return rounded_text(ctx, v, fabs(v) >= 1000 && digits == 3 ? 4 : digits);
}

const char *ap_diff_label(struct ap_ctx *ctx, const char *key)
{
	enum ap_plan_unit unit = ap_plan_unit_of(key);
	char *label = ap_arena_strdup(ctx->arena, key);

	if (unit == AP_PLAN_S || unit == AP_PLAN_BYTES || unit == AP_PLAN_BYTES_PER_S)
		*strrchr(label, '_') = '\0';
	for (char *c = label; *c; c++)
		if (*c == '_' || *c == '.')
			*c = ' ';
	return label;
}

static const char *value_text(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char *json,
	double number, int digits)
{
	const char *text = plain(ctx, json);

	if (json && !isnan(number))
		return !strcmp(f->section, "settings")
			? json : number_text(ctx, f->key, number, f->was_number, digits);
	return !strcmp(f->section, "inputs") && strlen(text) == 64
		? ap_arena_strndup(ctx->arena, text, 12)
		: text;
}

void ap_diff_texts(struct ap_ctx *ctx, const struct ap_diff_figure *f, const char **was,
	const char **is)
{
	int digits = 3;

	do {
		*was = value_text(ctx, f, f->was, f->was_number, digits);
		*is = value_text(ctx, f, f->is, f->is_number, digits);
	} while (f->changed && f->was && f->is && !strcmp(*was, *is) && ++digits <= 17);
	if (digits > 17) { /* in full */
		*was = plain(ctx, f->was);
		*is = plain(ctx, f->is);
	}
}

const char *ap_diff_cause(const char *section, const char *key)
{
	static const char *const machine[] = {"device_num", "devices_per_server", "devices_per_pod", "chip",
		"memory"};
	static const struct {
		const char *section, *cause;
	} sections[] = {{"graph", "graph"}, {"machine", "machine"}, {"settings", "settings"},
		{"tool", "planner"}};

	if (!strcmp(section, "inputs"))
		return !strcmp(key, "graph") || !strcmp(key, "model") ? "graph"
			: !strcmp(key, "rank_table") || !strcmp(key, "chip") ? "machine" : "settings";
	for (size_t i = 0; !strcmp(section, "settings") && i < AP_COUNT(machine); i++)
		if (!strcmp(key, machine[i]))
			return "machine";
	for (size_t i = 0; i < AP_COUNT(sections); i++)
		if (!strcmp(section, sections[i].section))
			return sections[i].cause;
	return NULL;
}

/* Did a number change so little that it tells nothing? */
static bool is_noise(const struct ap_diff_figure *f)
{
	return f->changed && !ap_diff_cause(f->section, f->key) && !isnan(f->was_number) &&
		!isnan(f->is_number) &&
		fabs(f->is_number - f->was_number) < 5e-4 * fabs(f->was_number);
}

/* ---- the tables that text and Markdown show ---- */

enum sort { /* type of column */
	WORDS, /* our own text, as in NUMBER */
	NAME, /* from the files, as in WAS and IS: writers escape it */
	NUMBER, /* aligned right */
	WAS, /* before an arrow */
	IS /* after it */
};

struct table {
	const char *title;
	int ncolumn;
	const char *head[COLUMNS];
	enum sort sort[COLUMNS];
	struct row {
		enum ap_diff_kind kind;
		const char *cell[COLUMNS];
	} *v;
	size_t n, cap;
};

struct page { /* tables to show, if they have rows or a title of their own */
	const char *message; /* NULL: none */
	const char *headline;
	const char *end; /* the last line; NULL: none */
	uint32_t hidden; /* figures that are left out */
	struct table *v;
	size_t n, cap;
};

static void add_column(struct table *t, const char *head, enum sort sort)
{
	t->head[t->ncolumn] = head;
	t->sort[t->ncolumn++] = sort;
}

static void end_table(struct ap_ctx *ctx, struct page *page, const struct table *t)
{
	if (t->n)
		AP_PUSH(ctx->arena, *page, *t);
}

static enum ap_diff_kind kind_of(bool was, bool is)
{
	return !was ? AP_DIFF_ADDED : !is ? AP_DIFF_REMOVED : AP_DIFF_CHANGED;
}

static void add_figures(struct ap_ctx *ctx, const struct ap_diff *d, const char *section, bool all,
	struct page *page, struct table *t)
{
	for (uint32_t i = 0; i < d->nfigure; i++) {
		const struct ap_diff_figure *f = &d->figure[i];
		struct row row = {.kind = kind_of(f->was, f->is)};

		if (!f->changed || strcmp(f->section, section) != 0)
			continue;
		if (!all && is_noise(f)) {
			page->hidden++;
			continue;
		}
		row.cell[0] = ap_diff_label(ctx, f->key);
		ap_diff_texts(ctx, f, &row.cell[1], &row.cell[2]);
		row.cell[3] = change_text(ctx, f);
		AP_PUSH(ctx->arena, *t, row);
	}
}

struct figures {
	const char *title, *section;
};

static void show_figures(struct ap_ctx *ctx, const struct ap_diff *d, const struct figures *groups, size_t n,
	bool all, struct page *page)
{
	for (size_t g = 0; g < n; g++) {
		struct table t = {.title = groups[g].title, .ncolumn = 4,
			.head = {"", "old", "new", "change"}, .sort = {NAME, WAS, IS, NUMBER}};

		add_figures(ctx, d, groups[g].section, all, page, &t);
		end_table(ctx, page, &t);
	}
}

/* "graph, machine and planner". */
static const char *and_text(struct ap_ctx *ctx, const char *const *word, size_t n)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (size_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%s", !i ? "" : i + 1 < n ? ", " : " and ", word[i]);
	return s.s;
}

/* What the plans are made of: which of it changed, and from what to what. */
static void show_cause(struct ap_ctx *ctx, const struct ap_diff *d, struct page *page)
{
	static const char *const causes[] = {"graph", "machine", "settings", "planner"};
	const struct ap_diff_figure *mode = ap_diff_figure(d, "search", "mode");
	const struct ap_diff_figure *complete = ap_diff_figure(d, "search", "complete");
	bool searched = (mode && mode->changed) || (complete && complete->changed);
	const char *changed[AP_COUNT(causes)], *same[AP_COUNT(causes)];
	size_t nchanged = 0, nsame = 0;
	struct table t = {.ncolumn = 3, .head = {"", "old", "new"}, .sort = {NAME, WAS, IS}};

	for (size_t c = 0; c < AP_COUNT(causes); c++) {
		bool known = false;
		size_t before = t.n;

		for (uint32_t i = 0; i < d->nfigure; i++) {
			const struct ap_diff_figure *f = &d->figure[i];
			const char *cause = ap_diff_cause(f->section, f->key);
			struct row row = {.kind = kind_of(f->was, f->is)};

			if (!cause || strcmp(cause, causes[c]) != 0)
				continue;
			known = true;
			if (!f->changed)
				continue;
			row.cell[0] = ap_arena_printf(ctx->arena, "%s: %s", f->section,
				ap_diff_label(ctx, f->key));
			ap_diff_texts(ctx, f, &row.cell[1], &row.cell[2]);
			AP_PUSH(ctx->arena, t, row);
		}
		if (t.n > before)
			changed[nchanged++] = causes[c];
		else if (known)
			same[nsame++] = causes[c];
	}
	if (d->equal || d->held || !d->is_plan[0] || !d->is_plan[1]) {
		t.title = "made from";
		end_table(ctx, page, &t);
		return;
	}
	if (!nchanged && searched)
		changed[nchanged++] = "the search";
	t.title = ap_arena_printf(ctx->arena, "cause: %s%s%s%s",
		nchanged ? and_text(ctx, changed, nchanged) : "not told by the files",
		nsame ? "; " : "", and_text(ctx, same, nsame),
		!nsame ? "" : nsame > 1 ? " are the same" : " is the same");
	AP_PUSH(ctx->arena, *page, t);
}

static void show_verdicts(struct ap_ctx *ctx, const struct ap_diff *d, struct page *page)
{
	struct table t = {.title = "conditions", .ncolumn = 6,
		.head = {"condition", "", "old", "new", "", ""},
		.sort = {NAME, WORDS, WAS, IS, WORDS, WORDS}};

	for (uint32_t i = 0; i < d->nverdict; i++) {
		const struct ap_verdict *v = &d->verdict[i];

		AP_PUSH(ctx->arena, t, ((struct row){AP_DIFF_CHANGED, {v->text, v->metric, v->was,
			v->is, v->note, v->holds ? "holds" : "does not hold"}}));
	}
	end_table(ctx, page, &t);
}

static void add_value(struct ap_ctx *ctx, struct ap_str *s, const struct field_name *name,
	const char *json)
{
	if (json)
		ap_str_addf(s, "%s%s%s%s", s->len ? "; " : "", name->text, *name->text ? " " : "",
			plain(ctx, json));
}

/* Old and new texts of fields, without skip and fields implied by others. */
static void field_texts(struct ap_ctx *ctx, const struct ap_diff_line *l,
	const struct field_name *names, uint32_t skip, const char **was, const char **is)
{
	bool whole = l->kind == AP_DIFF_CHANGED || l->kind == AP_DIFF_RENAMED;
	struct ap_str old, new;
	unsigned changed = 0;

	ap_str_init(&old, ctx->arena);
	ap_str_init(&new, ctx->arena);
	for (uint32_t i = 0; i < l->nfield; i++)
		changed |= 1U << l->field[i].field;
	for (uint32_t i = 0; i < l->nfield; i++) {
		const struct field_name *name = &names[l->field[i].field];

		if (l->field[i].field == skip || (whole ? name->unless & changed : !name->brief))
			continue;
		add_value(ctx, &old, name, l->field[i].was);
		add_value(ctx, &new, name, l->field[i].is);
	}
	*was = old.s;
	*is = new.s;
}

/* Total bytes of a line's redistributions; "" if there are none. */
static const char *move_bytes(struct ap_ctx *ctx, const struct ap_diff_line *l, bool is)
{
	for (uint32_t i = 0; i < l->nfield; i++) {
		const char *json = is ? l->field[i].is : l->field[i].was;
		int64_t bytes;

		if (l->field[i].field == AP_SAVED_BYTES && json &&
			ap_parse_int(json, 0, INT64_MAX, &bytes) && ap_mul(bytes, l->n, &bytes))
			return bytes_text(ctx, bytes);
	}
	return "";
}

static const char *lines_title(struct ap_ctx *ctx, const char *what,
	const struct ap_diff_lines *lines)
{
	if (lines->of[0] == lines->of[1])
		return ap_arena_printf(ctx->arena, "%s: %" PRIu32 " of %" PRIu32, what,
			lines->things, lines->of[1]);
	return ap_arena_printf(ctx->arena, "%s: %" PRIu32 " of %" PRIu32 " -> %" PRIu32, what,
		lines->things, lines->of[0], lines->of[1]);
}

static const char *time_text(struct ap_ctx *ctx, double s)
{
	char buf[32];

	return s > 0 ? ap_arena_strdup(ctx->arena, ap_format_seconds(s, buf)) : "";
}

static void show_lines(struct ap_ctx *ctx, const struct ap_diff *d, const struct ap_diff_lines *lines,
	const char *what, const char *noun, const struct field_name *names, bool typed, struct page *page)
{
	bool moves = names == move_names, timed = false;
	struct table t = {.title = lines_title(ctx, what, lines)};

	for (uint32_t i = 0; i < lines->n && !d->held; i++)
		timed |= lines->v[i].was_s > 0 || lines->v[i].is_s > 0;

	add_column(&t, "n", NUMBER);
	if (typed)
		add_column(&t, "type", NAME);
	add_column(&t, noun, NAME);
	add_column(&t, "old", WAS);
	add_column(&t, "new", IS);
	if (moves) {
		add_column(&t, "bytes old", WAS);
		add_column(&t, "bytes new", IS);
	}
	if (timed) {
		add_column(&t, "time old", WAS);
		add_column(&t, "time new", IS);
	}
	for (uint32_t i = 0; i < lines->n; i++) {
		const struct ap_diff_line *l = &lines->v[i];
		struct row row = {.kind = l->kind};
		int c = 0;

		row.cell[c++] = count_text(ctx, l->n);
		if (typed)
			row.cell[c++] = l->type;
		row.cell[c++] = l->operand >= 0
			? ap_arena_printf(ctx->arena, "%s, input %" PRId64, l->label, l->operand)
			: l->old_label ? ap_arena_printf(ctx->arena, "%s, was %s", l->label, l->old_label)
				       : l->label;
		field_texts(ctx, l, names, moves ? AP_SAVED_BYTES : UINT32_MAX, &row.cell[c],
			&row.cell[c + 1]);
		if (moves) {
			row.cell[c + 2] = move_bytes(ctx, l, false);
			row.cell[c + 3] = move_bytes(ctx, l, true);
		}
		c += moves ? 4 : 2;
		if (timed) {
			row.cell[c] = time_text(ctx, l->was_s);
			row.cell[c + 1] = time_text(ctx, l->is_s);
		}
		AP_PUSH(ctx->arena, t, row);
	}
	end_table(ctx, page, &t);
}

static void show_flows(struct ap_ctx *ctx, const struct ap_diff_flows *flows, const char *title,
	bool labelled, struct page *page)
{
	struct table t = {.title = title, .ncolumn = labelled ? 7 : 6,
		.head = {"kind", "phase", "n old", "n new", "bytes old", "bytes new", "operator"},
		.sort = {NAME, NAME, WAS, IS, WAS, IS, NAME}};

	for (uint32_t i = 0; i < flows->n; i++) {
		const struct ap_diff_flow *f = &flows->v[i];

		AP_PUSH(ctx->arena, t, ((struct row){kind_of(f->was.count, f->is.count), {
			ap_arena_printf(ctx->arena, "%s over %" PRId64, f->kind, f->ranks), f->phase,
			count_text(ctx, f->was.count), count_text(ctx, f->is.count),
			bytes_text(ctx, f->was.bytes), bytes_text(ctx, f->is.bytes), f->label}}));
	}
	end_table(ctx, page, &t);
}

static void add_headline(struct ap_ctx *ctx, const struct ap_diff *d, struct ap_str *s,
	const char *section, const char *key, const char *text)
{
	const struct ap_diff_figure *f = ap_diff_figure(d, section, key);
	const char *was, *is, *change;

	if (!f || !f->was || !f->is)
		return;
	change = ap_diff_change(ctx, f->was_number, f->is_number);
	if (is_noise(f)) {
		ap_str_addf(s, "%s%s %s (%s)", s->len ? ", " : "", text,
			value_text(ctx, f, f->is, f->is_number, 3), change);
		return;
	}
	ap_diff_texts(ctx, f, &was, &is);
	ap_str_addf(s, "%s%s %s", s->len ? ", " : "", text, was);
	if (f->changed)
		ap_str_addf(s, " -> %s%s%s%s", is, *change ? " (" : "", change,
			*change ? ")" : "");
	else
		ap_str_add(s, " as before");
}

static void show_alone(struct ap_ctx *ctx, const struct ap_diff *d, struct page *page)
{
	struct table t = {.title = "planned anew from what the old plan was made of, but for", .ncolumn = 4,
		.head = {"exchanged", "step", "change", ""}, .sort = {WORDS, NUMBER, NUMBER, NAME}};

	for (uint32_t i = 0; i < d->nalone; i++) {
		const struct ap_diff_alone *a = &d->alone[i];
		const struct ap_diff_figure *step = ap_diff_figure(d, "prediction", "step_time_s");
		double was = i ? d->alone[0].step_s : step ? step->was_number : 0;

		AP_PUSH(ctx->arena, t, ((struct row){AP_DIFF_CHANGED, {a->what,
			a->why ? "no plan" : time_text(ctx, a->step_s),
			a->why ? "" : ap_diff_change(ctx, was, a->step_s), a->why ? a->why : ""}}));
	}
	end_table(ctx, page, &t);
}

static void show_transfer(struct ap_ctx *ctx, const struct ap_transfer *t, struct page *page)
{
	struct table table = {.ncolumn = 4, .head = {"link", "bytes", "of a rank at most", "time"},
		.sort = {NAME, NUMBER, NUMBER, NUMBER}};
	struct ap_str title;

	ap_str_init(&title, ctx->arena);
	ap_str_addf(&title, "from the old checkpoint to the new one: %s",
		t->time_s > 0 ? time_text(ctx, t->time_s) : "nothing goes over a link");
	ap_str_addf(&title, ", %s stay; %" PRIu32 " parameters%s", bytes_text(ctx, t->stays_bytes), t->nparam,
		t->states ? " with their states" : ", without states: the optimizers differ");
	if (t->nnew)
		ap_str_addf(&title, "; %" PRIu32 " new", t->nnew);
	if (t->nodd)
		ap_str_addf(&title, "; %" PRIu32 " left out, of other shapes", t->nodd);
	table.title = title.s;
	for (int i = 0; i < t->nlink; i++) {
		const struct ap_transfer_link *l = &t->link[i];

		AP_PUSH(ctx->arena, table, ((struct row){AP_DIFF_CHANGED, {l->name, bytes_text(ctx, l->bytes),
			bytes_text(ctx, l->most_bytes), time_text(ctx, l->time_s)}}));
	}
	AP_PUSH(ctx->arena, *page, table);
}

/* Adds a clause "heads over 8 instead of sequence over 2", or "heads over 8 instead of 4". */
static void add_turn(struct ap_str *s, const struct ap_diff_part *p)
{
	const char *of = strchr(p->is, ' '), *number = strrchr(p->was, ' ');
	bool same = of && !strstr(p->is, " and ") && !strstr(p->was, " and ") &&
		!strncmp(p->was, p->is, (size_t)(of - p->is) + 1);

	if (!strcmp(p->was, p->is))
		ap_str_addf(s, *p->is ? "%s, of other dimensions" : "cut along other dimensions", p->is);
	else if (!*p->is)
		ap_str_addf(s, "no longer %s", p->was);
	else if (!*p->was)
		ap_str_addf(s, "now also %s", p->is);
	else
		ap_str_addf(s, "%s instead of %s", p->is, same ? number + 1 : p->was);
	if (p->n < p->of)
		ap_str_addf(s, " in %" PRIu32 " of %" PRIu32, p->n, p->of);
}

/* Are both parts, all of them, cut otherwise alike? */
static bool same_turn(const struct ap_diff_part *a, const struct ap_diff_part *b)
{
	return a->n && a->n == a->of && b->n && b->n == b->of && !strcmp(a->was, b->was) &&
		!strcmp(a->is, b->is);
}

/* Adds a clause "8 stages instead of 4" if a number changed that is 1 where it is not told. */
static void add_number(const struct ap_diff *d, const char *section, const char *key, const char *one,
	const char *many, struct ap_str *s)
{
	const struct ap_diff_figure *f = ap_diff_figure(d, section, key);
	double was = f && f->was && !isnan(f->was_number) ? f->was_number : 1;
	double is = f && f->is && !isnan(f->is_number) ? f->is_number : 1;

	if (f && was != is)
		ap_str_addf(s, "%s%.0f %s instead of %.0f", s->len ? "; " : "", is, is == 1 ? one : many,
			was);
}

const char *ap_diff_message(struct ap_ctx *ctx, const struct ap_diff *d)
{
	const struct ap_diff_figure *step = ap_diff_figure(d, "prediction", "step_time_s");
	const char *alike[AP_SAVED_PART_COUNT];
	size_t nalike = 0;
	struct ap_str s;

	if (d->equal || d->held || !d->is_plan[0] || !d->is_plan[1])
		return NULL;
	ap_str_init(&s, ctx->arena);
	add_number(d, "machine", "devices", "device", "devices", &s);
	add_number(d, "pipeline", "stages", "stage", "stages", &s);
	add_number(d, "settings", "micro_batches", "micro-batch", "micro-batches", &s);
	for (uint32_t i = 0; i < d->npart; i++) {
		const struct ap_diff_part *p = &d->part[i];
		const char *name[AP_SAVED_PART_COUNT];
		size_t nname = 0;

		if (!p->n) {
			alike[nalike++] = p->name;
			continue;
		}
		for (uint32_t j = 0; j < i && !nname; j++)
			nname += same_turn(&d->part[j], p);
		if (nname) /* told with that part */
			continue;
		name[nname++] = p->name;
		for (uint32_t j = i + 1; j < d->npart; j++)
			if (same_turn(p, &d->part[j]))
				name[nname++] = d->part[j].name;
		ap_str_addf(&s, "%s%s: ", s.len ? "; " : "", and_text(ctx, name, nname));
		add_turn(&s, p);
	}
	if (nalike == d->npart && !d->nrest)
		ap_str_addf(&s, "%scuts unchanged", s.len ? "; " : "");
	else if (nalike)
		ap_str_addf(&s, "%s%s unchanged", s.len ? "; " : "", and_text(ctx, alike, nalike));
	if (nalike == d->npart && d->nrest)
		ap_str_addf(&s, "%s%" PRIu32 " operator%s that %s no product%s cut otherwise",
			s.len ? "; " : "", d->nrest, d->nrest == 1 ? "" : "s", d->nrest == 1 ? "is" : "are",
			d->nrest == 1 ? "" : "s");
	if (step && step->was && step->is)
		ap_str_addf(&s, "; step %s", !step->changed ? "as before"
			: is_noise(step) ? "as before to 0.05 %"
			: ap_diff_change(ctx, step->was_number, step->is_number));
	return s.s;
}

/* "Plan: 3 of 40 layers to change, 0 added, 0 removed", and operators that are in no layer. */
static const char *last_line(struct ap_ctx *ctx, const struct ap_diff *d)
{
	const struct ap_diff_layers *l = &d->layers;
	struct ap_str s;

	if (d->equal || d->held)
		return NULL;
	ap_str_init(&s, ctx->arena);
	ap_str_addf(&s, "%s: ", d->is_plan[1] ? "Plan" : "Strategy");
	if (l->nlayer || l->removed)
		ap_str_addf(&s, "%" PRIu32 " of %" PRIu32 " layer%s to change, %" PRIu32 " added, %" PRIu32
			" removed", l->changed, l->nlayer, l->nlayer == 1 ? "" : "s", l->added, l->removed);
	if (s.len > 6 && !l->op_changed && !l->op_added && !l->op_removed && (l->nlayer || l->removed))
		return s.s;
	ap_str_addf(&s, "%s%" PRIu32 " %soperator%s to change, %" PRIu32 " added, %" PRIu32 " removed",
		l->nlayer || l->removed ? "; " : "", l->op_changed, l->nlayer || l->removed ? "other " : "",
		l->op_changed == 1 ? "" : "s", l->op_added, l->op_removed);
	return s.s;
}

static struct page make_page(struct ap_ctx *ctx, const struct ap_diff *d, bool all)
{
	static const struct figures first[] = {{"prediction", "prediction"},
		{"memory of a device", "memory"}};
	static const struct figures last[] = {{"pipeline", "pipeline"}, {"stages", "stages"},
		{"recomputation", "recompute"}, {"search", "search"}, {"route", "route"},
		{"baselines", "baselines"}};
	struct page page = {.headline = d->reduced ? "no difference between the strategies"
						   : "no difference",
		.message = ap_diff_message(ctx, d), .end = last_line(ctx, d)};
	struct ap_str s;

	if (!d->equal) {
		ap_str_init(&s, ctx->arena);
		add_headline(ctx, d, &s, "prediction", "step_time_s", "step time");
		add_headline(ctx, d, &s, "memory", "total_bytes", "memory");
		ap_str_addf(&s, "%s%s", s.len ? ", " : "",
			lines_title(ctx, "operators changed", &d->operators));
		page.headline = s.s;
	}
	show_verdicts(ctx, d, &page);
	show_cause(ctx, d, &page);
	show_alone(ctx, d, &page);
	if (d->transfer)
		show_transfer(ctx, d->transfer, &page);
	show_figures(ctx, d, first, AP_COUNT(first), all, &page);
	show_lines(ctx, d, &d->operators, "operators", "operator", op_names,
		d->is_plan[0] && d->is_plan[1], &page);
	show_flows(ctx, &d->totals, "collectives of a step", false, &page);
	show_lines(ctx, d, &d->redistributions, "redistributions", "before", move_names, false, &page);
	show_lines(ctx, d, &d->parameters, "parameters", "parameter", param_names, false, &page);
	show_flows(ctx, &d->collectives, "collectives by operator", true, &page);
	show_figures(ctx, d, last, AP_COUNT(last), all, &page);
	return page;
}

/* "3 figures changed by less than 0.05 %; -v shows them"; NULL if none are left out. */
static const char *hidden_text(struct ap_ctx *ctx, const struct page *page)
{
	return !page->hidden ? NULL
		: ap_arena_printf(ctx->arena,
			"%" PRIu32 " figure%s changed by less than 0.05 %%; -v shows %s",
			page->hidden, page->hidden == 1 ? "" : "s", page->hidden == 1 ? "it" : "them");
}

/* ---- text in columns ---- */

/* Terminal columns, if each character takes one. */
static int width_of(const char *s)
{
	int n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void pad(struct ap_str *out, int n)
{
	for (; n > 0; n--)
		ap_str_addc(out, ' ');
}

static void add_colored(struct ap_str *out, bool color, const char *code, const char *text)
{
	ap_str_addf(out, "%s%s%s", color ? code : "", text, color ? "\033[0m" : "");
}

static void add_text_row(struct ap_str *out, const struct table *t, const struct row *row,
	const int width[COLUMNS], struct ap_diag *names)
{
	int owed = 0; /* blanks due before the next text */

	for (int c = 0; c < t->ncolumn; c++) {
		const char *cell = row->cell[c] ? ap_diag_path(names, row->cell[c]) : "";
		const char *gap = t->sort[c] != IS ? "  "
			: *row->cell[c - 1] && *row->cell[c] ? " -> " : "    ";
		int missing = width[c] - width_of(cell);
		bool right = t->sort[c] == NUMBER;

		if (!*cell) {
			owed += (int)strlen(gap) + (missing > 0 ? missing : 0);
			continue;
		}
		pad(out, owed);
		ap_str_add(out, gap);
		pad(out, right ? missing : 0);
		ap_str_add(out, cell);
		owed = right || missing < 0 ? 0 : missing;
	}
	ap_str_addc(out, '\n');
}

static void write_text(struct ap_ctx *ctx, const struct ap_diff *d,
	const struct ap_diff_style *style, struct ap_str *out)
{
	struct ap_diag *names = ap_diag_create(ctx->arena, false);
	struct page page = make_page(ctx, d, style->all);
	const char *hidden = hidden_text(ctx, &page);

	ap_str_addf(out, "%s -> %s\n", ap_diag_path(names, d->file[0]),
		ap_diag_path(names, d->file[1]));
	if (page.message) {
		add_colored(out, style->color, "\033[1m", page.message);
		ap_str_addf(out, "\n%s", page.headline);
	} else {
		add_colored(out, style->color, "\033[1m", page.headline);
	}
	ap_str_addc(out, '\n');
	for (size_t i = 0; i < page.n; i++) {
		const struct table *t = &page.v[i];
		int width[COLUMNS] = {0};

		for (size_t r = 0; r < t->n; r++)
			for (int c = 0; c < t->ncolumn; c++) {
				const char *cell = t->v[r].cell[c];
				int w = cell ? width_of(ap_diag_path(names, cell)) : 0;

				if (w > width[c] && w <= WIDEST)
					width[c] = w;
			}
		ap_str_addc(out, '\n');
		add_colored(out, style->color, "\033[1m", t->title);
		ap_str_addc(out, '\n');
		for (size_t r = 0; r < t->n; r++) {
			const char sign[] = {kinds[t->v[r].kind].sign, '\0'};

			ap_str_add(out, "  ");
			add_colored(out, style->color, kinds[t->v[r].kind].color, sign);
			add_text_row(out, t, &t->v[r], width, names);
		}
	}
	if (hidden)
		ap_str_addf(out, "\n%s\n", hidden);
	if (page.end)
		ap_str_addf(out, "\n%s\n", page.end);
}

/* ---- Markdown with tables, for review comments ---- */

/* Adds text from the files as code: between backticks, or as HTML with all special characters
 * escaped if it contains a backtick or what tables or HTML would interpret. */
static void add_code(struct ap_str *out, const char *s)
{
	if (!*s)
		return;
	if (!strpbrk(s, "`|\\<>&")) {
		ap_str_addf(out, "`%s`", s);
		return;
	}
	ap_str_add(out, "<code>");
	for (; *s; s++)
		if (strchr("&<>\"'`|\\*_[]~!#@$", *s))
			ap_str_addf(out, "&#%d;", *s);
		else
			ap_str_addc(out, *s);
	ap_str_add(out, "</code>");
}

static void add_cell(struct ap_str *out, struct ap_diag *names, enum sort sort, const char *cell)
{
	const char *safe = cell ? ap_diag_path(names, cell) : "";

	ap_str_addc(out, ' ');
	if (sort == NUMBER || sort == WORDS)
		ap_str_add(out, safe);
	else
		add_code(out, safe);
	ap_str_add(out, *safe ? " |" : "|");
}

static void add_markdown_table(struct ap_str *out, struct ap_diag *names, const struct table *t)
{
	bool sign = false;

	for (size_t r = 0; r < t->n; r++)
		sign = sign || *kinds[t->v[r].kind].word;
	ap_str_addf(out, "\n#### %s\n", t->title);
	if (!t->n)
		return;
	ap_str_addc(out, '\n');
	ap_str_add(out, sign ? "| |" : "|");
	for (int c = 0; c < t->ncolumn; c++)
		ap_str_addf(out, " %s%s|", t->head[c], *t->head[c] ? " " : "");
	ap_str_add(out, sign ? "\n| --- |" : "\n|");
	for (int c = 0; c < t->ncolumn; c++)
		ap_str_add(out, t->sort[c] == NUMBER ? " ---: |" : " --- |");
	ap_str_addc(out, '\n');
	for (size_t r = 0; r < t->n; r++) {
		ap_str_addc(out, '|');
		if (sign)
			add_cell(out, names, WORDS, kinds[t->v[r].kind].word);
		for (int c = 0; c < t->ncolumn; c++)
			add_cell(out, names, t->sort[c], t->v[r].cell[c]);
		ap_str_addc(out, '\n');
	}
}

static void write_markdown(struct ap_ctx *ctx, const struct ap_diff *d,
	const struct ap_diff_style *style, struct ap_str *out)
{
	struct ap_diag *names = ap_diag_create(ctx->arena, false);
	struct page page = make_page(ctx, d, style->all);
	const char *hidden = hidden_text(ctx, &page);

	ap_str_add(out, "### ");
	add_code(out, ap_diag_path(names, d->file[0]));
	ap_str_add(out, " to ");
	add_code(out, ap_diag_path(names, d->file[1]));
	if (page.message)
		ap_str_addf(out, "\n\n**%s**", page.message);
	ap_str_addf(out, page.message ? "\n\n%s\n" : "\n\n**%s**\n", page.headline);
	for (size_t i = 0; i < page.n; i++)
		add_markdown_table(out, names, &page.v[i]);
	if (hidden)
		ap_str_addf(out, "\n%s\n", hidden);
	if (page.end)
		ap_str_addf(out, "\n%s\n", page.end);
}

/* ---- JSON, autopar-diff/1 ---- */

static void write_names(struct ap_jw *w, const char *key, uint32_t n, const char *const *name)
{
	ap_jw_karr_flat(w, key);
	for (uint32_t i = 0; i < n; i++)
		ap_jw_str(w, name[i]);
	ap_jw_end(w);
}

static void write_lines(struct ap_jw *w, const char *key, const struct ap_diff_lines *lines,
	const struct field_name *names)
{
	ap_jw_karr(w, key);
	for (uint32_t k = 0; k < lines->n; k++) {
		const struct ap_diff_line *l = &lines->v[k];

		ap_jw_obj(w);
		ap_jw_kstr(w, "change", kinds[l->kind].key);
		ap_jw_kstr(w, "label", l->label);
		if (*l->type)
			ap_jw_kstr(w, "type", l->type);
		if (l->operand >= 0)
			ap_jw_kint(w, "operand", l->operand);
		ap_jw_kobj(w, "fields");
		for (uint32_t i = 0; i < l->nfield; i++) {
			ap_jw_kobj_flat(w, names[l->field[i].field].key);
			ap_jw_kraw(w, "old", l->field[i].was);
			ap_jw_kraw(w, "new", l->field[i].is);
			ap_jw_end(w);
		}
		ap_jw_end(w);
		ap_jw_kint(w, "count", l->n);
		if (l->was_s > 0 || l->is_s > 0) {
			ap_jw_kobj_flat(w, "time_s");
			ap_jw_knum(w, "old", l->was_s);
			ap_jw_knum(w, "new", l->is_s);
			ap_jw_end(w);
		}
		write_names(w, "names", l->n, l->name);
		if (l->old_name)
			write_names(w, "old_names", l->n, l->old_name);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_load(struct ap_jw *w, const char *key, const struct ap_diff_load *load)
{
	ap_jw_kobj_flat(w, key);
	ap_jw_kint(w, "count", load->count);
	ap_jw_kint(w, "bytes", load->bytes);
	ap_jw_end(w);
}

static void write_flows(struct ap_jw *w, const char *key, const struct ap_diff_flows *flows)
{
	ap_jw_karr(w, key);
	for (uint32_t i = 0; i < flows->n; i++) {
		const struct ap_diff_flow *f = &flows->v[i];

		ap_jw_obj(w);
		ap_jw_kstr(w, "kind", f->kind);
		ap_jw_kint(w, "ranks", f->ranks);
		ap_jw_kstr(w, "phase", f->phase);
		write_load(w, "old", &f->was);
		write_load(w, "new", &f->is);
		if (f->n) {
			ap_jw_kstr(w, "label", f->label);
			write_names(w, "names", f->n, f->name);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_parts(struct ap_jw *w, const struct ap_diff *d)
{
	ap_jw_karr(w, "parts");
	for (uint32_t i = 0; i < d->npart; i++) {
		const struct ap_diff_part *p = &d->part[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "part", p->name);
		ap_jw_kint(w, "changed", p->n);
		ap_jw_kint(w, "of", p->of);
		if (p->n) {
			ap_jw_kstr(w, "old", p->was);
			ap_jw_kstr(w, "new", p->is);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

static void write_layers(struct ap_jw *w, const struct ap_diff_layers *l)
{
	ap_jw_kobj_flat(w, "layers");
	ap_jw_kint(w, "of", l->nlayer);
	ap_jw_kint(w, "changed", l->changed);
	ap_jw_kint(w, "added", l->added);
	ap_jw_kint(w, "removed", l->removed);
	ap_jw_end(w);
	ap_jw_kobj_flat(w, "other_operators");
	ap_jw_kint(w, "changed", l->op_changed);
	ap_jw_kint(w, "added", l->op_added);
	ap_jw_kint(w, "removed", l->op_removed);
	ap_jw_end(w);
}

static void write_transfer(struct ap_jw *w, const struct ap_transfer *t)
{
	ap_jw_kobj(w, "reshard");
	ap_jw_knum(w, "time_s", t->time_s);
	ap_jw_kint(w, "stays_bytes", t->stays_bytes);
	ap_jw_kint(w, "parameters", t->nparam);
	ap_jw_kint(w, "new_parameters", t->nnew);
	ap_jw_kint(w, "left_out", t->nodd);
	ap_jw_kbool(w, "states", t->states);
	ap_jw_karr(w, "links");
	for (int i = 0; i < t->nlink; i++) {
		const struct ap_transfer_link *l = &t->link[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "link", l->name);
		ap_jw_kint(w, "bytes", l->bytes);
		ap_jw_kint(w, "most_bytes_of_a_rank", l->most_bytes);
		ap_jw_knum(w, "time_s", l->time_s);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

static void write_json(struct ap_ctx *ctx, const struct ap_diff *d,
	const struct ap_diff_style *style, struct ap_str *out)
{
	static const char *const keys[] = {"old", "new"};
	const char *message = ap_diff_message(ctx, d), *cause;
	struct ap_jw w;

	(void)style;
	ap_jw_str_init(&w, out, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-diff/1");
	for (int i = 0; i < 2; i++) {
		ap_jw_kobj_flat(&w, keys[i]);
		ap_jw_kstr(&w, "file", d->file[i]);
		ap_jw_kstr(&w, "kind", d->is_plan[i] ? "plan" : "strategy");
		ap_jw_end(&w);
	}
	ap_jw_kbool(&w, "equal", d->equal);
	if (d->nverdict) {
		ap_jw_karr(&w, "conditions");
		for (uint32_t i = 0; i < d->nverdict; i++) {
			ap_jw_obj_flat(&w);
			ap_jw_kstr(&w, "condition", d->verdict[i].text);
			ap_jw_knum(&w, "old", d->verdict[i].was_number);
			ap_jw_knum(&w, "new", d->verdict[i].is_number);
			ap_jw_kbool(&w, "holds", d->verdict[i].holds);
			ap_jw_end(&w);
		}
		ap_jw_end(&w);
	}
	if (message) {
		ap_jw_kstr(&w, "message", message);
		write_parts(&w, d);
		write_layers(&w, &d->layers);
	}
	if (d->transfer)
		write_transfer(&w, d->transfer);
	if (d->nalone) {
		ap_jw_karr(&w, "planned_anew");
		for (uint32_t i = 0; i < d->nalone; i++) {
			ap_jw_obj_flat(&w);
			ap_jw_kstr(&w, "exchanged", d->alone[i].what);
			if (d->alone[i].why)
				ap_jw_kstr(&w, "no_plan", d->alone[i].why);
			else
				ap_jw_knum(&w, "step_time_s", d->alone[i].step_s);
			ap_jw_end(&w);
		}
		ap_jw_end(&w);
	}
	ap_jw_karr(&w, "figures");
	for (uint32_t i = 0; i < d->nfigure; i++) {
		const struct ap_diff_figure *f = &d->figure[i];

		ap_jw_obj_flat(&w);
		ap_jw_kstr(&w, "section", f->section);
		ap_jw_kstr(&w, "key", f->key);
		ap_jw_kraw(&w, "old", f->was);
		ap_jw_kraw(&w, "new", f->is);
		ap_jw_kbool(&w, "changed", f->changed);
		if (f->changed && (cause = ap_diff_cause(f->section, f->key)))
			ap_jw_kstr(&w, "cause", cause);
		if (f->was_number > 0 && f->changed)
			ap_jw_knum(&w, "ratio", f->is_number / f->was_number);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	write_lines(&w, "operators", &d->operators, op_names);
	write_flows(&w, "collectives", &d->totals);
	write_flows(&w, "collectives_by_operator", &d->collectives);
	write_lines(&w, "redistributions", &d->redistributions, move_names);
	write_lines(&w, "parameters", &d->parameters, param_names);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

const struct ap_diff_writer *ap_diff_writer_at(size_t i)
{
	static const struct ap_diff_writer writers[] = {
		{"text", write_text},
		{"json", write_json},
		{"markdown", write_markdown},
	};

	return i < AP_COUNT(writers) ? &writers[i] : NULL;
}
