/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as tables for people. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "diff/diff_parts.h"

struct rows {
	struct ap_ctx *ctx;
	struct ap_diff_row *v;
	size_t n, cap;
};

struct tables {
	struct ap_diff_table *v;
	size_t n, cap;
};

static void end_table(struct rows *rows, struct tables *out, struct ap_diff_table t)
{
	while (t.ncolumn < AP_DIFF_COLUMNS && t.head[t.ncolumn])
		t.ncolumn++;
	t.nrow = (uint32_t)rows->n;
	t.row = rows->v;
	if (t.nrow)
		AP_PUSH(rows->ctx->arena, *out, t);
	*rows = (struct rows){.ctx = rows->ctx};
}

static const char *count_text(struct ap_ctx *ctx, int64_t n)
{
	return ap_arena_printf(ctx->arena, "%" PRId64, n);
}

static void add_figures(struct rows *rows, const struct ap_diff *d, const char *section,
	bool named)
{
	struct ap_ctx *ctx = rows->ctx;

	for (uint32_t i = 0; i < d->nfigure; i++) {
		const struct ap_diff_figure *f = &d->figure[i];
		struct ap_diff_row row = {.kind = !f->was ? AP_DIFF_ADDED
			: !f->is ? AP_DIFF_REMOVED : AP_DIFF_CHANGED};

		if (!f->changed || strcmp(f->section, section) != 0)
			continue;
		row.cell[0] = ap_diff_label(ctx, f->key);
		if (named)
			row.cell[0] = ap_arena_printf(ctx->arena, "%s: %s", section, row.cell[0]);
		ap_diff_texts(ctx, f, &row.cell[1], &row.cell[2]);
		row.cell[3] = ap_diff_change(ctx, f->was_number, f->is_number);
		AP_PUSH(ctx->arena, *rows, row);
	}
}

static const struct ap_diff_table figure_table = {
	.head = {"", "old", "new", "change"},
	.sort = {AP_DIFF_NAME, AP_DIFF_WAS, AP_DIFF_IS, AP_DIFF_NUMBER},
};

static void show_figures(struct ap_ctx *ctx, const struct ap_diff *d, struct tables *out)
{
	static const struct {
		const char *title;
		const char *section[6];
	} groups[] = {
		{"prediction", {"prediction"}},
		{"memory of a device", {"memory"}},
		{"stages", {"stages"}},
		{"search", {"search"}},
		{"route", {"route"}},
		{"baselines", {"baselines"}},
		{"made from", {"pipeline", "graph", "machine", "settings", "inputs", "tool"}},
	};

	for (size_t i = 0; i < AP_COUNT(groups); i++) {
		struct ap_diff_table t = figure_table;
		struct rows rows = {.ctx = ctx};
		bool several = groups[i].section[1];

		t.title = groups[i].title;
		for (int s = 0; s < 6 && groups[i].section[s]; s++)
			add_figures(&rows, d, groups[i].section[s], several);
		end_table(&rows, out, t);
	}
}

static void show_verdicts(struct ap_ctx *ctx, const struct ap_diff *d, struct tables *out)
{
	const struct ap_diff_table t = {
		.title = "conditions",
		.head = {"condition", "", "old", "new", "", ""},
		.sort = {AP_DIFF_NAME, AP_DIFF_WORDS, AP_DIFF_WAS, AP_DIFF_IS, AP_DIFF_WORDS,
			AP_DIFF_WORDS},
	};
	struct rows rows = {.ctx = ctx};

	for (uint32_t i = 0; i < d->nverdict; i++) {
		const struct ap_verdict *v = &d->verdict[i];
		struct ap_diff_row row = {.kind = AP_DIFF_CHANGED, .cell = {v->text, v->metric, v->was,
			v->is, v->note, v->holds ? "holds" : "does not hold"}};

		AP_PUSH(ctx->arena, rows, row);
	}
	end_table(&rows, out, t);
}

static unsigned changed_fields(const struct ap_diff_line *l)
{
	unsigned changed = 0;

	for (uint32_t i = 0; i < l->nfield; i++)
		changed |= 1U << l->field[i].field;
	return changed;
}

static void add_value(struct ap_ctx *ctx, struct ap_str *s, const struct ap_diff_name *name,
	const char *json)
{
	if (!json)
		return;
	if (s->len)
		ap_str_add(s, "; ");
	if (*name->text)
		ap_str_addf(s, "%s ", name->text);
	ap_str_add(s, ap_diff_plain(ctx, json));
}

/* What its fields were and are, those that say nothing of their own left out. */
static void field_texts(struct ap_ctx *ctx, const struct ap_diff_line *l,
	const struct ap_diff_name *names, uint32_t skip, const char **was, const char **is)
{
	unsigned changed = changed_fields(l);
	bool whole = l->kind == AP_DIFF_CHANGED || l->kind == AP_DIFF_RENAMED;
	struct ap_str old, new;

	ap_str_init(&old, ctx->arena);
	ap_str_init(&new, ctx->arena);
	for (uint32_t i = 0; i < l->nfield; i++) {
		const struct ap_diff_name *name = &names[l->field[i].field];

		if (l->field[i].field == skip || (whole ? name->unless & changed : !name->brief))
			continue;
		add_value(ctx, &old, name, l->field[i].was);
		add_value(ctx, &new, name, l->field[i].is);
	}
	*was = old.s;
	*is = new.s;
}

static const char *name_text(struct ap_ctx *ctx, const struct ap_diff_line *l)
{
	if (l->operand >= 0)
		return ap_arena_printf(ctx->arena, "%s, input %" PRId64, l->label, l->operand);
	return l->old_label ? ap_arena_printf(ctx->arena, "%s, was %s", l->label, l->old_label)
			    : l->label;
}

static void add_lines(struct rows *rows, const struct ap_diff_lines *lines,
	const struct ap_diff_name *names, bool typed)
{
	for (uint32_t i = 0; i < lines->n; i++) {
		const struct ap_diff_line *l = &lines->v[i];
		struct ap_diff_row row = {.kind = l->kind};
		int c = 0;

		row.cell[c++] = count_text(rows->ctx, l->n);
		if (typed)
			row.cell[c++] = l->type;
		row.cell[c++] = name_text(rows->ctx, l);
		field_texts(rows->ctx, l, names, UINT32_MAX, &row.cell[c], &row.cell[c + 1]);
		AP_PUSH(rows->ctx->arena, *rows, row);
	}
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

static void show_operators(struct ap_ctx *ctx, const struct ap_diff *d, struct tables *out)
{
	bool typed = d->is_plan[0] && d->is_plan[1];
	struct ap_diff_table t = {
		.title = lines_title(ctx, "operators", &d->operators),
		.head = {"n", "operator", "old", "new"},
		.sort = {AP_DIFF_NUMBER, AP_DIFF_NAME, AP_DIFF_WAS, AP_DIFF_IS},
	};
	struct ap_diff_table with_type = {
		.title = t.title,
		.head = {"n", "type", "operator", "old", "new"},
		.sort = {AP_DIFF_NUMBER, AP_DIFF_NAME, AP_DIFF_NAME, AP_DIFF_WAS, AP_DIFF_IS},
	};
	struct rows rows = {.ctx = ctx};

	add_lines(&rows, &d->operators, ap_diff_op_names, typed);
	end_table(&rows, out, typed ? with_type : t);
}

static void show_params(struct ap_ctx *ctx, const struct ap_diff *d, struct tables *out)
{
	struct ap_diff_table t = {
		.title = lines_title(ctx, "parameters", &d->parameters),
		.head = {"n", "parameter", "old", "new"},
		.sort = {AP_DIFF_NUMBER, AP_DIFF_NAME, AP_DIFF_WAS, AP_DIFF_IS},
	};
	struct rows rows = {.ctx = ctx};

	add_lines(&rows, &d->parameters, ap_diff_param_names, false);
	end_table(&rows, out, t);
}

/* The bytes of all that is on a line, NULL where there are none. */
static const char *move_bytes(struct ap_ctx *ctx, const struct ap_diff_line *l, bool is)
{
	for (uint32_t i = 0; i < l->nfield; i++) {
		const char *json = is ? l->field[i].is : l->field[i].was;
		int64_t bytes;

		if (l->field[i].field != AP_SAVED_BYTES || !json)
			continue;
		if (ap_parse_int(json, 0, INT64_MAX, &bytes) && ap_mul(bytes, l->n, &bytes))
			return ap_diff_bytes(ctx, bytes);
	}
	return "";
}

static void show_moves(struct ap_ctx *ctx, const struct ap_diff *d, struct tables *out)
{
	const struct ap_diff_lines *lines = &d->redistributions;
	struct ap_diff_table t = {
		.title = lines_title(ctx, "redistributions", lines),
		.head = {"n", "before", "old", "new", "bytes old", "bytes new"},
		.sort = {AP_DIFF_NUMBER, AP_DIFF_NAME, AP_DIFF_WAS, AP_DIFF_IS, AP_DIFF_WAS,
			AP_DIFF_IS},
	};
	struct rows rows = {.ctx = ctx};

	for (uint32_t i = 0; i < lines->n; i++) {
		const struct ap_diff_line *l = &lines->v[i];
		struct ap_diff_row row = {.kind = l->kind};

		row.cell[0] = count_text(ctx, l->n);
		row.cell[1] = name_text(ctx, l);
		field_texts(ctx, l, ap_diff_move_names, AP_SAVED_BYTES, &row.cell[2], &row.cell[3]);
		row.cell[4] = move_bytes(ctx, l, false);
		row.cell[5] = move_bytes(ctx, l, true);
		AP_PUSH(ctx->arena, rows, row);
	}
	end_table(&rows, out, t);
}

static struct ap_diff_row flow_row(struct ap_ctx *ctx, const struct ap_diff_flow *f)
{
	struct ap_diff_row row = {.kind = !f->was.count ? AP_DIFF_ADDED
		: !f->is.count ? AP_DIFF_REMOVED : AP_DIFF_CHANGED};

	row.cell[0] = ap_arena_printf(ctx->arena, "%s over %" PRId64, f->kind, f->ranks);
	row.cell[1] = f->phase;
	row.cell[2] = count_text(ctx, f->was.count);
	row.cell[3] = count_text(ctx, f->is.count);
	row.cell[4] = ap_diff_bytes(ctx, f->was.bytes);
	row.cell[5] = ap_diff_bytes(ctx, f->is.bytes);
	return row;
}

static void show_flows(struct ap_ctx *ctx, const struct ap_diff *d, struct tables *out)
{
	struct ap_diff_table totals = {
		.title = "collectives of a step",
		.head = {"kind", "phase", "n old", "n new", "bytes old", "bytes new"},
		.sort = {AP_DIFF_NAME, AP_DIFF_NAME, AP_DIFF_WAS, AP_DIFF_IS, AP_DIFF_WAS,
			AP_DIFF_IS},
	}, places = totals;
	struct rows rows = {.ctx = ctx};

	for (uint32_t i = 0; i < d->totals.n; i++)
		AP_PUSH(ctx->arena, rows, flow_row(ctx, &d->totals.v[i]));
	end_table(&rows, out, totals);
	places.title = "collectives by operator";
	places.head[6] = "operator";
	places.sort[6] = AP_DIFF_NAME;
	for (uint32_t i = 0; i < d->collectives.n; i++) {
		struct ap_diff_row row = flow_row(ctx, &d->collectives.v[i]);

		row.cell[6] = d->collectives.v[i].label;
		AP_PUSH(ctx->arena, rows, row);
	}
	end_table(&rows, out, places);
}

static void add_headline(struct ap_ctx *ctx, const struct ap_diff *d, struct ap_str *s,
	const char *section, const char *key, const char *text)
{
	const struct ap_diff_figure *f = ap_diff_figure(d, section, key);
	const char *was, *is, *change;

	if (!f || !f->was || !f->is)
		return;
	ap_diff_texts(ctx, f, &was, &is);
	change = ap_diff_change(ctx, f->was_number, f->is_number);
	ap_str_addf(s, "%s%s %s", s->len ? ", " : "", text, was);
	if (f->changed)
		ap_str_addf(s, " -> %s%s%s%s", is, *change ? " (" : "", change,
			*change ? ")" : "");
	else
		ap_str_add(s, " as before");
}

static const char *headline(struct ap_ctx *ctx, const struct ap_diff *d)
{
	struct ap_str s;

	if (d->equal)
		return d->reduced ? "no difference between the strategies" : "no difference";
	ap_str_init(&s, ctx->arena);
	add_headline(ctx, d, &s, "prediction", "step_time_s", "step time");
	add_headline(ctx, d, &s, "memory", "total_bytes", "memory");
	ap_str_addf(&s, "%s%s", s.len ? ", " : "",
		lines_title(ctx, "operators changed", &d->operators));
	return s.s;
}

void ap_diff_show_make(struct ap_ctx *ctx, const struct ap_diff *d, struct ap_diff_show *out)
{
	struct tables tables = {0};

	show_verdicts(ctx, d, &tables);
	show_operators(ctx, d, &tables);
	show_flows(ctx, d, &tables);
	show_moves(ctx, d, &tables);
	show_params(ctx, d, &tables);
	show_figures(ctx, d, &tables);
	*out = (struct ap_diff_show){
		.headline = headline(ctx, d),
		.ntable = (uint32_t)tables.n,
		.table = tables.v,
	};
}
