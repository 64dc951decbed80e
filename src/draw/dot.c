/* SPDX-License-Identifier: Apache-2.0 */
/* DOT text, and all use of cgraph. */
#include "draw/dot.h"

#include <graphviz/cgraph.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
#include "draw/picture_columns.h"
#include "plan/terms.h"

/* ---- texts ---- */

/* dot reads at most 16384 bytes between quotes. A label may hold two names, and cgraph doubles
 * names that are nothing but quotes. */
enum { NAME_BYTES = 3000 };

/* Length of the character at s if it must not appear as it is, else 0; *code: its number. SVG
 * forbids control characters; bidi controls reorder the text after them. */
static size_t hidden(const unsigned char *s, unsigned *code)
{
	*code = s[0];
	if ((s[0] < ' ' && s[0] != '\t') || s[0] == 0x7F)
		return 1;
	if (s[0] == 0xC2 && s[1] >= 0x80 && s[1] < 0xA0) {
		*code = s[1];
		return 2;
	}
	if ((s[0] & 0xF0) != 0xE0 || !s[1] || !s[2])
		return 0;
	*code = (s[0] & 0x0Fu) << 12 | (s[1] & 0x3Fu) << 6 | (s[2] & 0x3Fu);
	return (*code >= 0x202A && *code <= 0x202E) || (*code >= 0x2066 && *code <= 0x2069) ||
		(*code >= 0xFFFE && *code <= 0xFFFF) ? 3 : 0;
}

/* Appends a name (UTF-8) for a label or tooltip: backslashes doubled, a newline as
 * \n, control and bidi characters as \x1b or \u202e, cut to NAME_BYTES with "...". cgraph escapes
 * quotes. */
static void add_name(struct ap_str *out, const char *name)
{
	size_t before = out->len;
	unsigned code;
	size_t len;

	for (; *name; name += len ? len : 1) {
		if (out->len - before >= NAME_BYTES && ((unsigned char)*name & 0xC0) != 0x80) {
			ap_str_add(out, "...");
			return;
		}
		len = *name == '\n' ? 0 : hidden((const unsigned char *)name, &code);
		if (*name == '\n')
			ap_str_add(out, "\\n");
		else if (len)
			ap_str_addf(out, code < 0x100 ? "\\\\x%02x" : "\\\\u%04x", code);
		else if (*name == '\\')
			ap_str_add(out, "\\\\");
		else
			ap_str_addc(out, *name);
	}
}

/* ---- labels of boxes and frames: rows of text, measured ---- */

/* Widths of the printable ASCII characters in thousandths of the size, regular and bold, of DejaVu Sans:
 * Verdana is as wide, other fonts that "sans-serif" stands for are narrower. So a box has room for its text
 * whatever font the picture is looked at with, also where dot knows none. */
static const uint16_t widths[2][95] = {
	{318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636,
		636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
		575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989,
		685, 611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278,
		278, 579, 278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636,
		337, 636, 838},
	{348, 456, 521, 838, 696, 1002, 872, 306, 457, 457, 523, 838, 380, 415, 380, 365, 696, 696, 696,
		696, 696, 696, 696, 696, 696, 696, 400, 400, 838, 838, 838, 580, 1000, 774, 762, 734, 830,
		683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850, 733, 850, 770, 720, 682, 812, 774,
		1103, 771, 724, 725, 457, 365, 457, 838, 500, 500, 675, 716, 593, 716, 678, 435, 716, 712,
		343, 343, 665, 343, 1042, 712, 687, 716, 716, 493, 595, 478, 712, 652, 924, 645, 652, 582,
		712, 365, 712, 838},
};

enum { OTHER_WIDTH = 800, WIDE = 1000 }; /* of other characters; of those of East Asia, and later ones */

double ap_dot_width(const char *text, double size, bool bold)
{
	double sum = 0;

	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= ' ' && c < 0x7F)
			sum += widths[bold][c - ' '];
		else if (c >= 0xC0)
			sum += c >= 0xE1 ? WIDE : OTHER_WIDTH;
	}
	return sum * size / 1000;
}

#define INK "#1c1e21"
#define MUTED "#62676c"

#define LINE_HEIGHT 1.2 /* of the size of its font */

enum { NAME_SHOWN = 80, PADDING = 4 }; /* bytes of a name in a box; points left of and right of a row */

struct label { /* an HTML-like label in the making, row by row */
	struct ap_ctx *ctx;
	struct ap_str rows;
	double width; /* of the widest row, in points */
	double height; /* of all rows */
};

static struct label begin_label(struct ap_ctx *ctx)
{
	struct label l = {.ctx = ctx};

	ap_str_init(&l.rows, ctx->scratch);
	return l;
}

/* Adds text of an HTML-like label. */
static void add_escaped(struct ap_str *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("<>&\"'", *text))
			ap_str_addf(out, "&#%d;", *text);
		else
			ap_str_addc(out, *text);
	}
}

/* Raw text without what must not be shown, cut to most bytes, in scratch. A newline stays. */
static const char *clean(struct ap_ctx *ctx, const char *raw, size_t most)
{
	struct ap_str out;
	unsigned code;

	ap_str_init(&out, ctx->scratch);
	for (size_t len; *raw; raw += len) {
		len = *raw == '\n' ? 0 : hidden((const unsigned char *)raw, &code);
		if (out.len >= most && ((unsigned char)*raw & 0xC0) != 0x80) {
			ap_str_add(&out, "...");
			break;
		}
		if (len)
			ap_str_addf(&out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
		else
			ap_str_addc(&out, *raw);
		len = len ? len : 1;
	}
	return out.s;
}

struct style {
	double size;
	const char *color;
	bool bold;
};

static const struct style title_style = {11, INK, true}, name_style = {8.5, MUTED, false},
			  line_style = {9, INK, false}, moved_style = {9, AP_DOT_MOVE_COLOR, true};

/* Adds a row for each line of a text. */
static void add_text(struct label *l, const char *raw, const struct style *style)
{
	const char *text = clean(l->ctx, raw, 20 * NAME_SHOWN);

	for (const char *end; *text; text = end + (*end == '\n')) {
		const char *line;

		end = text + strcspn(text, "\n");
		if (text + strspn(text, " \t") >= end) /* dot takes none between tags */
			continue;
		line = ap_arena_strndup(l->ctx->scratch, text, (size_t)(end - text));
		l->width = fmax(l->width, ap_dot_width(line, style->size, style->bold));
		l->height += LINE_HEIGHT * style->size + 2;
		ap_str_addf(&l->rows, "<TR><TD ALIGN=\"LEFT\"><FONT POINT-SIZE=\"%d.%d\" COLOR=\"%s\">%s",
			(int)style->size, (int)(style->size * 10) % 10, style->color,
			style->bold ? "<B>" : "");
		add_escaped(&l->rows, line);
		ap_str_addf(&l->rows, "%s</FONT></TD></TR>", style->bold ? "</B>" : "");
	}
}

/* Ends a table in a row, of which `used` points are taken: dot would spread its cells over the rest of the
 * row, which end_label() fills. Texts have no such bytes: clean(). */
static void add_fill(struct label *l, double used)
{
	ap_str_addf(&l->rows, "\x01%d\x02</TR></TABLE></TD></TR>", (int)used);
	l->width = fmax(l->width, used);
}

/* Adds a row of chips, one for each dimension that is cut. */
static void add_chips(struct label *l, const int64_t parts[AP_DIMENSION_COUNT])
{
	double width = 0;

	for (int d = 0; d < AP_DIMENSION_COUNT; d++) {
		char text[64];

		if (parts[d] <= 1)
			continue;
		snprintf(text, sizeof text, "%s %" PRId64, ap_dimension_look[d].name, parts[d]);
		ap_str_add(&l->rows,
			width > 0 ? ""
				  : "<TR><TD ALIGN=\"LEFT\"><TABLE BORDER=\"0\" CELLBORDER=\"0\" "
				    "CELLSPACING=\"2\" CELLPADDING=\"2\"><TR>");
		ap_str_addf(&l->rows,
			"<TD BGCOLOR=\"%s\" WIDTH=\"%d\"><FONT POINT-SIZE=\"9\" COLOR=\"" INK "\">%s</"
			"FONT></TD>",
			ap_dimension_look[d].fill, (int)ap_dot_width(text, 9, false) + 5, text);
		width += ap_dot_width(text, 9, false) + 9;
	}
	if (width > 0) {
		add_fill(l, width);
		l->height += 9 * LINE_HEIGHT + 10;
	}
}

/* Adds a bar for a share of the longest time. */
static void add_bar(struct label *l, const char *color, double share)
{
	int width = (int)lrint(90 * share);

	if (width < 1)
		return;
	ap_str_addf(&l->rows,
		"<TR><TD ALIGN=\"LEFT\"><TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" "
		"CELLPADDING=\"0\"><TR><TD FIXEDSIZE=\"TRUE\" WIDTH=\"%d\" HEIGHT=\"5\" "
		"BGCOLOR=\"%s\"></TD>",
		width, color);
	add_fill(l, width);
	l->height += 7;
}

/* The label: a table that is as wide as its widest row at least. */
static const char *end_label(struct label *l)
{
	int width = (int)ceil(l->width) + 2 * PADDING;
	struct ap_str out;

	ap_str_init(&out, l->ctx->scratch);
	ap_str_addf(&out,
		"<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"1\">"
		"<TR><TD HEIGHT=\"0\" WIDTH=\"%d\"></TD></TR>",
		width);
	for (const char *row = l->rows.s, *mark; *row;
		row = mark + strcspn(mark, "\x02") + (*mark != '\0')) {
		mark = row + strcspn(row, "\x01");
		ap_str_addn(&out, row, (size_t)(mark - row));
		if (*mark && width - (int)strtol(mark + 1, NULL, 10) > 0)
			ap_str_addf(
				&out, "<TD WIDTH=\"%d\"></TD>", width - (int)strtol(mark + 1, NULL, 10));
	}
	ap_str_add(&out, "</TABLE>");
	return out.s;
}

enum { MOST_TYPES = 4 }; /* named per chain */

/* The dimension that gives a box its hue: of those that are cut, the one in most parts that is not the
 * batch; AP_DIMENSION_COUNT: nothing is cut. */
static enum ap_dimension hue_of(const int64_t parts[AP_DIMENSION_COUNT])
{
	enum ap_dimension best = AP_DIMENSION_COUNT;

	for (int d = AP_DIMENSION_SEQUENCE; d < AP_DIMENSION_COUNT; d++)
		if (parts[d] > 1 && (best == AP_DIMENSION_COUNT || parts[d] > parts[best]))
			best = (enum ap_dimension)d;
	return best == AP_DIMENSION_COUNT && parts[AP_DIMENSION_BATCH] > 1 ? AP_DIMENSION_BATCH : best;
}

/* What a box cuts: of a chain its first operator, which does the work; of a group all of them. */
static void parts_of(
	const struct ap_pic_view *v, const struct ap_pic_box *box, int64_t parts[AP_DIMENSION_COUNT])
{
	for (int d = 0; d < AP_DIMENSION_COUNT; d++) {
		parts[d] = v->pic->node[box->member[0]].cut_in[d];
		for (uint32_t i = 1; i < box->nmember && box->kind == AP_BOX_GROUP; i++)
			if (v->pic->node[box->member[i]].cut_in[d] > parts[d])
				parts[d] = v->pic->node[box->member[i]].cut_in[d];
	}
}

static void add_share(struct ap_str *out, const struct ap_pic_view *v, double time_s)
{
	if (v->total_s > 0)
		ap_str_addf(out, " (%.1f%%)", 100 * time_s / v->total_s);
}

static void add_ranks(struct ap_str *out, const struct ap_pic_box *box)
{
	for (uint32_t i = 0; i < box->nrank; i++)
		ap_str_addf(out, "#%u ", (unsigned)box->rank[i]);
}

static const char *cut_name(struct ap_ctx *ctx, const char *name)
{
	return clean(ctx, name, NAME_SHOWN);
}

/* The part of the cell that frames do not show, and the name. */
static const char *place_of(struct ap_ctx *ctx, const struct ap_pic_view *v, const struct ap_pic_box *box,
	const struct ap_pic_node *node)
{
	const char *path = box->frame == AP_NONE ? "" : v->frame[box->frame].path;
	const char *rest = ap_pic_short_path(path, v->nshell, v->shell, node->cell);
	bool all = !strcmp(node->cell, path);

	for (uint32_t i = 0; i < v->nshell && !all; i++)
		all = !strcmp(node->cell, v->shell[i]);
	if (ap_short_name(node->name) == node->name || !*node->cell || all)
		return cut_name(ctx, ap_short_name(node->name));
	return ap_arena_printf(
		ctx->scratch, "%s/%s", cut_name(ctx, rest), cut_name(ctx, ap_short_name(node->name)));
}

/* "MatMul, BiasAdd, Reshape", or of a group "Conv2D 3, BatchNorm 3". */
static void add_types(
	struct ap_ctx *ctx, struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	uint32_t named = 0;

	for (uint32_t i = 0; i < box->nmember; i++) {
		const char *type = v->pic->node[box->member[i]].type;
		uint32_t same = 1;
		bool seen = false;

		for (uint32_t j = 0; j < box->nmember && box->kind == AP_BOX_GROUP; j++) {
			bool equal = j != i && !strcmp(v->pic->node[box->member[j]].type, type);

			seen |= equal && j < i;
			same += equal;
		}
		if (seen)
			continue;
		if (named++ == MOST_TYPES) {
			ap_str_add(out, box->kind == AP_BOX_GROUP ? ", more" : "");
			if (box->kind != AP_BOX_GROUP)
				ap_str_addf(out, ", %" PRIu32 " more", box->nmember - MOST_TYPES);
			break;
		}
		ap_str_addf(out, "%s%s", named > 1 ? ", " : "", cut_name(ctx, type));
		if (same > 1)
			ap_str_addf(out, " %" PRIu32, same);
	}
}

static void add_moved(struct ap_str *out, const struct ap_pic_moved *m)
{
	char bytes[32], time[32];

	ap_str_addf(out, "%" PRIu32 " redistribution%s", m->n, m->n > 1 ? "s" : "");
	if (m->bytes > 0)
		ap_str_addf(out, " %s", ap_format_bytes(m->bytes, bytes));
	if (m->time_s > 0)
		ap_str_addf(out, " %s", ap_format_seconds(m->time_s, time));
}

/* Adds a bar and "2.00 us x 40 (11.8%)". */
static void add_time(struct label *l, const struct ap_pic_view *v, const struct ap_pic_box *box,
	uint32_t copies, const char *color, double longest_s)
{
	struct ap_str text;
	char buf[32];

	if (!(box->time_s > 0))
		return;
	ap_str_init(&text, l->ctx->scratch);
	ap_str_add(&text, ap_format_seconds(box->time_s / copies, buf));
	if (copies > 1)
		ap_str_addf(&text, " x %" PRIu32, copies);
	add_share(&text, v, box->time_s);
	add_bar(l, color, box->time_s / longest_s);
	add_text(l, text.s, &line_style);
}

/* Adds how operators were cut in the plan that this one is held against. */
static void add_was(struct label *l, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	uint32_t changed = 0, alike = 0;
	const char *first = v->pic->node[box->member[0]].was;

	for (uint32_t i = 0; i < box->nmember; i++) {
		const char *was = v->pic->node[box->member[i]].was;

		changed += was != NULL;
		alike += was && first && !strcmp(was, first);
	}
	if (!changed)
		return;
	if (box->kind == AP_BOX_GROUP && alike == box->nmember) {
		add_text(l, first, &moved_style);
		return;
	}
	if (box->kind == AP_BOX_GROUP)
		add_text(l,
			ap_arena_printf(l->ctx->scratch, "%" PRIu32 " of %" PRIu32 " changed", changed,
				box->nmember),
			&moved_style);
	for (uint32_t i = 0; i < box->nmember && box->kind != AP_BOX_GROUP; i++)
		if (v->pic->node[box->member[i]].was) {
			add_text(l, v->pic->node[box->member[i]].was, &moved_style);
			break;
		}
}

static void add_operators(
	struct label *l, const struct ap_pic_view *v, const struct ap_pic_box *box, double longest_s)
{
	const struct ap_pic_node *first = &v->pic->node[box->member[0]];
	const struct ap_pic_node *last = &v->pic->node[box->member[box->nmember - 1]];
	int64_t parts[AP_DIMENSION_COUNT];
	struct ap_str text;
	enum ap_dimension hue;

	parts_of(v, box, parts);
	hue = hue_of(parts);
	ap_str_init(&text, l->ctx->scratch);
	add_ranks(&text, box);
	add_types(l->ctx, &text, v, box);
	add_text(l, text.s, &title_style);
	add_text(l, place_of(l->ctx, v, box, first), &name_style);
	add_chips(l, parts);
	if (*first->cut && hue != AP_DIMENSION_COUNT)
		add_text(l, first->cut, &name_style);
	else if (first->cls == AP_PIC_WHOLE)
		add_text(l, "whole", &name_style);
	add_was(l, v, box);
	if (*last->slice)
		add_text(l, last->slice, &name_style);
	for (uint32_t i = 0; i < box->nmember; i++)
		add_text(l, v->pic->node[box->member[i]].comms, &line_style);
	add_time(l, v, box, box->operators / box->nmember,
		hue == AP_DIMENSION_COUNT ? MUTED : ap_dimension_look[hue].strong, longest_s);
}

static void add_group(
	struct label *l, const struct ap_pic_view *v, const struct ap_pic_box *box, double longest_s)
{
	uint32_t copies = box->operators / box->nmember / ap_pic_copies(v, box->frame);
	int64_t parts[AP_DIMENSION_COUNT];
	enum ap_dimension hue;
	struct ap_str text;

	parts_of(v, box, parts);
	hue = hue_of(parts);
	ap_str_init(&text, l->ctx->scratch);
	add_ranks(&text, box);
	if (*box->title) {
		ap_str_add(&text, cut_name(l->ctx, box->title));
		add_text(l, text.s, &title_style);
		ap_str_init(&text, l->ctx->scratch);
		if (copies > 1)
			ap_str_addf(&text, "%" PRIu32 " x ", copies);
		ap_str_addf(&text, "%" PRIu32 " operators: ", box->nmember);
		add_types(l->ctx, &text, v, box);
		add_text(l, text.s, &name_style);
	} else {
		add_types(l->ctx, &text, v, box);
		add_text(l, text.s, &title_style);
		add_text(l, ap_arena_printf(l->ctx->scratch, "%" PRIu32 " operators in a row", box->nmember),
			&name_style);
	}
	add_chips(l, parts);
	add_was(l, v, box);
	if (box->ncomm)
		add_text(l,
			ap_arena_printf(l->ctx->scratch, "%" PRIu32 " collective%s", box->ncomm,
				box->ncomm > 1 ? "s" : ""),
			&line_style);
	if (box->inside.n) {
		ap_str_init(&text, l->ctx->scratch);
		add_moved(&text, &box->inside);
		add_text(l, text.s, &moved_style);
	}
	add_time(
		l, v, box, 1, hue == AP_DIMENSION_COUNT ? MUTED : ap_dimension_look[hue].strong, longest_s);
}

static void add_note(struct label *l, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	const struct ap_pic_node *node = &v->pic->node[*box->member];

	add_text(l,
		ap_arena_printf(l->ctx->scratch, "%s%s", node->kind == AP_PIC_OPERATOR ? "from " : "",
			cut_name(l->ctx, node->type)),
		&name_style);
	add_text(l, cut_name(l->ctx, ap_pic_short_path("", v->nshell, v->shell, ap_short_name(node->name))),
		&line_style);
	if (box->operators > 1)
		add_text(l, ap_arena_printf(l->ctx->scratch, "and %" PRIu32 " more", box->operators - 1),
			&name_style);
}

/* Adds the label of a line; the leading blank keeps the text off the line. */
static void add_line(struct ap_str *out, const struct ap_pic_line *line)
{
	char buf[32];

	if (line->again)
		ap_str_add(out, " next copy");
	if (line->sent)
		ap_str_addf(out, " Send %s", ap_format_bytes(line->sent_bytes, buf));
	if (line->sent > 1)
		ap_str_addf(out, " in %" PRIu32, line->sent);
	if (!line->moved.n)
		return;
	ap_str_add(out, line->again || line->sent ? "\\n " : " ");
	if (!line->one_kind) {
		add_moved(out, &line->moved);
		return;
	}
	add_name(out, line->first->moves);
	if (line->moved.n > 1)
		ap_str_addf(out, " x %" PRIu32, line->moved.n);
}

/* Adds the label of a frame. */
static void add_frame(struct label *l, const struct ap_pic_view *v, const struct ap_pic_frame *frame)
{
	uint32_t copies = frame->loop == AP_NONE ? 1 : v->fold.loop[frame->loop].copies;
	struct ap_str text;
	char buf[32];

	if (frame->loop == AP_NONE) {
		add_text(l,
			ap_arena_printf(l->ctx->scratch, "%s (%" PRIu32 ")", cut_name(l->ctx, frame->label),
				frame->operators),
			frame->part ? &title_style : &line_style);
		return;
	}
	add_text(l, frame->label, &title_style);
	ap_str_init(&text, l->ctx->scratch);
	ap_str_addf(&text, "%" PRIu32 " operators each", frame->operators);
	if (frame->time_s > 0) {
		ap_str_addf(&text, ", %s x %" PRIu32,
			ap_format_seconds(frame->time_s / (frame->all / frame->operators), buf), copies);
		add_share(&text, v, frame->time_s);
	}
	add_text(l, text.s, &name_style);
}

/* ---- the legend: totals, and the meaning of colours and marks that occur ---- */

#define WHITE "#ffffff"

struct legend_row {
	bool wanted;
	const char *fill, *color;
	const char *word, *text; /* as it is in the picture, and what it means */
};

enum { MOST_LEGEND_COLUMNS = 4 };

/* Adds rows in n columns; empty cells end the last one. */
static void add_grid(struct ap_str *out, const struct legend_row *row, uint32_t nrow, uint32_t n)
{
	uint32_t tall = (nrow + n - 1) / n;

	ap_str_add(out, "<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"2\" CELLPADDING=\"2\">");
	for (uint32_t r = 0; r < tall; r++) {
		ap_str_add(out, "<TR>");
		for (uint32_t i = r; i < n * tall; i += tall) {
			static const struct legend_row none = {true, WHITE, INK, "", ""};
			const struct legend_row *l = i < nrow ? &row[i] : &none;

			ap_str_addf(out, "<TD BGCOLOR=\"%s\" WIDTH=\"%d\">", l->fill,
				(int)ap_dot_width(l->word, 9, true) + 2 * PADDING);
			if (*l->word)
				ap_str_addf(out, "<FONT POINT-SIZE=\"9\" COLOR=\"%s\">%s</FONT>", l->color,
					l->word);
			ap_str_addf(out, "</TD><TD ALIGN=\"LEFT\" WIDTH=\"%d\">",
				(int)ap_dot_width(l->text, 9, false) + 2 * PADDING);
			if (*l->text)
				ap_str_addf(out, "<FONT POINT-SIZE=\"9\">%s</FONT>", l->text);
			ap_str_add(out, "</TD>");
		}
		ap_str_add(out, "</TR>");
	}
	ap_str_add(out, "</TABLE>");
}

/* Adds text as lines of one cell; returns how wide it is. */
static double add_lines(struct ap_ctx *ctx, struct ap_str *out, const char *raw)
{
	const char *text = clean(ctx, raw, 20 * NAME_SHOWN);
	double width = 0;

	for (const char *end; *text; text = end + (*end == '\n')) {
		const char *line;

		end = text + strcspn(text, "\n");
		line = ap_arena_strndup(ctx->scratch, text, (size_t)(end - text));
		width = fmax(width, ap_dot_width(line, 9, false));
		add_escaped(out, line);
		ap_str_add(out, "<BR ALIGN=\"LEFT\"/>");
	}
	return width;
}

/* The title, what there is in figures, and what marks mean, in as many columns as a picture so wide has room
 * for. */
static const char *head_of(struct ap_ctx *ctx, const struct ap_pic_view *v, bool circles, double width)
{
	bool ranks = false, moves = false, chains = false, groups = false, notes = false, again = false,
	     sends = false, changed = false, seen[AP_DIMENSION_COUNT] = {false};
	const struct style big = {15, INK, true};
	struct label title = begin_label(ctx);
	double widest = 0, facts_width;
	uint32_t nrow = 0;
	struct ap_str facts, out;

	for (uint32_t i = 0; i < v->pic->noperator; i++) {
		changed |= v->pic->node[i].was != NULL;
		for (int d = 0; d < AP_DIMENSION_COUNT; d++)
			seen[d] |= v->pic->node[i].cut_in[d] > 1;
	}
	for (uint32_t b = 0; b < v->nbox; b++) {
		ranks |= v->box[b].nrank > 0;
		moves |= v->box[b].inside.n > 0;
		chains |= v->box[b].kind == AP_BOX_CHAIN;
		groups |= v->box[b].kind == AP_BOX_GROUP;
		notes |= v->box[b].kind == AP_BOX_NOTE;
	}
	for (uint32_t i = 0; i < v->nline; i++) {
		again |= v->line[i].again;
		sends |= v->line[i].sent > 0;
		moves |= v->line[i].moved.n > 0;
	}
	add_text(&title, v->pic->title, &big);
	ap_str_init(&facts, ctx->scratch);
	facts_width = add_lines(ctx, &facts,
		ap_arena_printf(ctx->scratch, "%s%s%" PRIu32 " operators in %" PRIu32 " boxes", v->pic->facts,
			*v->pic->facts ? "\n" : "", v->pic->noperator, v->nbox - v->nnote));
	{
		const struct legend_row marks[] = {
			{changed, WHITE, AP_DOT_MOVE_COLOR, "was ..",
				"cut otherwise in the plan that it is held against"},
			{ranks, WHITE, INK, "#1 .. #10",
				"most time, all copies together; a bar for the time"},
			{v->total_s > 0, WHITE, INK, "(4.2%)",
				"share of the time of all operators and redistributions"},
			{moves, WHITE, AP_DOT_MOVE_COLOR, "AllGather 2 MiB",
				"redistribution: steps, bytes a rank receives, time per step"},
			{v->fold.nloop > 0, WHITE, INK, "x 40", "drawn once: so many equal copies in a row"},
			{again, WHITE, INK, "dashed", "into the next copy"},
			{sends, WHITE, INK, "dashed, Send 2 MiB",
				"to another part of the pipeline: bytes a rank sends for one micro-batch"},
			{chains, WHITE, INK, "A, B", "operators that feed one another, in one box"},
			{groups, WHITE, INK, "3D box", "operators of a cell or in a row, in one box"},
			{circles, WHITE, INK, "(1)", "goes on at the same number"},
			{notes, WHITE, INK, "note",
				"input, shared tensor or much-read result, drawn where it is read"}};
		struct legend_row row[AP_DIMENSION_COUNT + AP_COUNT(marks)];

		for (int d = 0; d < AP_DIMENSION_COUNT; d++)
			if (seen[d])
				row[nrow++] = (struct legend_row){true, ap_dimension_look[d].fill, INK,
					ap_arena_printf(ctx->scratch, "%s 8", ap_dimension_look[d].name),
					ap_arena_printf(ctx->scratch, "%s are cut into 8 parts",
						ap_dimension_look[d].legend)};
		for (size_t i = 0; i < AP_COUNT(marks); i++)
			if (marks[i].wanted)
				row[nrow++] = marks[i];
		for (uint32_t i = 0; i < nrow; i++)
			widest = fmax(widest, ap_dot_width(row[i].word, 9, true) +
					ap_dot_width(row[i].text, 9, false));
		ap_str_init(&out, ctx->scratch);
		ap_str_addf(&out,
			"<TABLE BORDER=\"0\" CELLBORDER=\"0\" CELLSPACING=\"2\" CELLPADDING=\"2\"><TR>"
			"<TD COLSPAN=\"2\" ALIGN=\"LEFT\">%s</TD></TR>",
			end_label(&title));
		if (v->nbox) {
			double room = (width - facts_width) / (widest + 6 * PADDING);
			uint32_t n = (uint32_t)fmin(fmax(room, 1), MOST_LEGEND_COLUMNS);

			ap_str_addf(&out,
				"<TR><TD ALIGN=\"LEFT\" VALIGN=\"TOP\" WIDTH=\"%d\"><FONT POINT-SIZE=\"9\" "
				"COLOR=\"" INK "\">%s</FONT></TD><TD ALIGN=\"LEFT\">",
				(int)facts_width + 4 * PADDING, facts.s);
			if (nrow)
				add_grid(&out, row, nrow, n);
			ap_str_add(&out, "</TD></TR>");
		}
		ap_str_add(&out, "</TABLE>");
	}
	return out.s;
}

/* ---- callbacks of cgraph ---- */

struct host {
	Agdisc_t disc; /* first: cgraph passes it back */
	struct ap_arena *arena;
	Agraph_t *g;
	struct ap_map *names;
	/* names by id, as cgraph strings: it reads the bytes before them */
	AP_VEC(char *) known;
	IDTYPE nameless;
};

/* Memory from an arena, which never fails: cgraph does not check its allocations. */
static void *mem_open(Agdisc_t *disc)
{
	return ((struct host *)disc)->arena;
}

static void *mem_alloc(void *arena, size_t size)
{
	return ap_arena_alloc(arena, size, 1);
}

static void *mem_resize(void *arena, void *old, size_t old_size, size_t size)
{
	void *new = ap_arena_alloc(arena, size, 1);

	if (old)
		memcpy(new, old, old_size < size ? old_size : size);
	return new;
}

static void mem_free(void *arena, void *p)
{
	(void)arena;
	(void)p;
}

/* Ids in order of appearance: even for named things, odd for others. cgraph writes subgraphs by id,
 * and its default ids are addresses. */
static void *id_open(Agraph_t *g, Agdisc_t *disc)
{
	((struct host *)disc)->g = g;
	return disc;
}

static long id_map(void *state, int kind, char *name, IDTYPE *id, int create)
{
	struct host *h = state;
	bool fresh = false;
	ap_id known;

	(void)kind;
	if (!name) {
		*id = 2 * h->nameless++ + 1;
		return 1;
	}
	known = create ? ap_map_put_str(h->names, name, &fresh) : ap_map_get_str(h->names, name);
	if (fresh)
		AP_PUSH(h->arena, h->known, agstrdup(h->g, name));
	*id = 2 * (IDTYPE)known + 2;
	return known != AP_NONE;
}

static long id_alloc(void *state, int kind, IDTYPE id)
{
	(void)state;
	(void)kind;
	(void)id;
	return 0;
}

static void id_free(void *state, int kind, IDTYPE id)
{
	(void)state;
	(void)kind;
	(void)id;
}

static char *id_print(void *state, int kind, IDTYPE id)
{
	struct host *h = state;

	(void)kind;
	return id % 2 ? NULL : h->known.v[id / 2 - 1];
}

static void id_close(void *state)
{
	(void)state;
}

static void id_register(void *state, int kind, void *object)
{
	(void)state;
	(void)kind;
	(void)object;
}

static int out_put(void *out, const char *text)
{
	ap_str_add(out, text);
	return 0;
}

static int out_flush(void *out)
{
	(void)out;
	return 0;
}

static int in_none(void *in, char *buf, int size)
{
	(void)in;
	(void)buf;
	(void)size;
	return 0;
}

/* cgraph's message callback has no user pointer, so only the number of errors is known. */
static int swallow(char *text)
{
	(void)text;
	return 0;
}

/* ---- the picture as a cgraph graph ---- */

struct drawing {
	struct ap_ctx *ctx;
	const struct ap_pic_view *view;
	Agraph_t *g;
	Agnode_t **node;
	Agraph_t **frame;
	Agraph_t *order; /* all boxes, since dot puts columns to the right in the order that it reads */
	double longest_box_s, longest_line_s;
	const char **box_label, **frame_label; /* HTML-like */
	struct ap_pic_columns columns;
	uint32_t ncircle, nnumber;
	uint32_t *number; /* [nbox] of the circle that its lines into other columns go to; 0: none */
};

/* cgraph takes char *, but does not write. */
static char *mutable(const char *s)
{
	return (char *)s;
}

static void set(void *object, const char *key, const char *value)
{
	agset(object, mutable(key), mutable(value));
}

static const struct attribute {
	int kind;
	const char *key, *value;
} attributes[] = {
	{AGRAPH, "label", ""},
	{AGRAPH, "labelloc", "t"},
	{AGRAPH, "rankdir", "TB"},
	{AGRAPH, "fontname", "sans-serif"},
	{AGRAPH, "linelength", "0"},
	{AGRAPH, "style", "rounded"},
	{AGRAPH, "color", "#999999"},
	{AGRAPH, "penwidth", "1.0"},
	{AGRAPH, "labeljust", "l"},
	{AGRAPH, "ranksep", "0.3"},
	{AGRAPH, "nodesep", "0.2"},
	{AGNODE, "label", ""},
	{AGNODE, "tooltip", ""},
	{AGNODE, "shape", "box"},
	{AGNODE, "style", "rounded,filled"},
	{AGNODE, "color", "#c9cbc8"},
	{AGNODE, "fillcolor", "#ffffff"},
	{AGNODE, "fontname", "sans-serif"},
	{AGNODE, "fontsize", "10"},
	{AGNODE, "penwidth", "1.0"},
	{AGNODE, "height", "0.3"},
	{AGNODE, "width", "0.75"},
	{AGNODE, "fixedsize", "false"},
	{AGNODE, "margin", "0.03,0.02"},
	{AGEDGE, "label", ""},
	{AGEDGE, "tooltip", ""},
	{AGEDGE, "style", ""},
	{AGEDGE, "color", "#666666"},
	{AGEDGE, "fontcolor", AP_DOT_MOVE_COLOR},
	{AGEDGE, "fontname", "sans-serif"},
	{AGEDGE, "fontsize", "9"},
	{AGEDGE, "penwidth", "1.0"},
	{AGEDGE, "arrowsize", "0.7"},
	{AGEDGE, "constraint", "true"},
};

/* Sets a line width of 1.0 to 5.0 points, linear in the share of the longest time. */
static void set_width(void *object, double time_s, double longest_s)
{
	int tenths = 10 + (longest_s > 0 ? (int)lrint(40 * time_s / longest_s) : 0);
	char text[16];

	snprintf(text, sizeof text, "%d.%d", tenths / 10, tenths % 10);
	set(object, "penwidth", text);
}

static void set_label(struct drawing *d, void *object, const char *html)
{
	set(object, "label", agstrdup_html(d->g, mutable(html)));
}

static void add_id(char id[24], const char *prefix, uint32_t i)
{
	snprintf(id, 24, "%s%" PRIu32, prefix, i);
}

/* Draws frames, outer ones first. */
static void draw_frames(struct drawing *d)
{
	const struct ap_pic_view *v = d->view;

	for (uint32_t i = 0; i < v->nframe; i++) {
		uint32_t parent = v->frame[i].parent;
		char id[24];
		bool loop, part;

		add_id(id, "cluster_", i);
		d->frame[i] = agsubg(parent == AP_NONE ? d->g : d->frame[parent], id, 1);
		set_label(d, d->frame[i], d->frame_label[i]);
		loop = v->frame[i].loop != AP_NONE; /* set all attributes: frames inherit them */
		part = v->frame[i].part != NULL;
		set(d->frame[i], "color", part ? AP_DOT_PART_COLOR : loop ? "#000000" : "#999999");
		set(d->frame[i], "penwidth", loop || part ? "2.0" : "1.0");
		set(d->frame[i], "style", loop && !part ? "rounded,dashed" : "rounded");
	}
}

/* Mixes a colour "#rrggbb" with white: share 0 is white. */
static const char *tint(struct ap_ctx *ctx, const char *color, double share)
{
	unsigned long rgb = strtoul(color + 1, NULL, 16);
	unsigned out[3];

	for (int i = 0; i < 3; i++) {
		unsigned c = (unsigned)(rgb >> (16 - 8 * i)) & 0xFF;

		out[i] = 255 - (unsigned)lrint((255 - c) * share);
	}
	return ap_arena_printf(ctx->scratch, "#%02x%02x%02x", out[0], out[1], out[2]);
}

/* Hue: what is cut; strength: the share of the time. */
static void colour(struct drawing *d, Agnode_t *node, const struct ap_pic_box *box)
{
	int64_t parts[AP_DIMENSION_COUNT];
	enum ap_dimension hue;
	double share = d->view->total_s > 0 ? box->time_s / d->view->total_s : 0, strength;
	bool changed = false;

	parts_of(d->view, box, parts);
	hue = hue_of(parts);
	for (uint32_t i = 0; i < box->nmember; i++)
		changed |= d->view->pic->node[box->member[i]].was != NULL;
	if (hue != AP_DIMENSION_COUNT) {
		strength = share > 0.08 ? 0.75 : share > 0.02 ? 0.45 : 0.15;
		set(node, "fillcolor", tint(d->ctx, ap_dimension_look[hue].fill, strength));
		set(node, "color", ap_dimension_look[hue].strong);
	}
	if (changed) {
		set(node, "color", AP_DOT_MOVE_COLOR);
		set(node, "penwidth", "3.0");
	}
}

static void draw_boxes(struct drawing *d)
{
	const struct ap_pic_view *v = d->view;

	for (uint32_t i = 0; i < v->nbox; i++) {
		const struct ap_pic_box *box = &v->box[i];
		const struct ap_pic_node *first = &v->pic->node[*box->member];
		struct ap_str text;
		char id[24];

		add_id(id, "n", i);
		d->node[i] = agnode(d->g, id, 1);
		if (d->order)
			agsubnode(d->order, d->node[i], 1);
		set_label(d, d->node[i], d->box_label[i]);
		ap_str_init(&text, d->ctx->scratch);
		ap_str_add(&text, first->kind == AP_PIC_OPERATOR ? "operator " : "tensor ");
		add_name(&text, first->name);
		if (box->operators > 1)
			ap_str_addf(&text, "\\nand %" PRIu32 " more", box->operators - 1);
		set(d->node[i], "tooltip", text.s);
		if (box->kind == AP_BOX_NOTE) {
			set(d->node[i], "shape", "note");
			set(d->node[i], "style", "filled");
		} else {
			if (box->kind == AP_BOX_GROUP)
				set(d->node[i], "shape", "box3d");
			if (box->kind == AP_BOX_GROUP)
				set(d->node[i], "style", "filled");
			colour(d, d->node[i], box);
		}
		if (box->frame != AP_NONE)
			agsubnode(d->frame[box->frame], d->node[i], 1);
	}
}

/* A circle with a number, where a line goes on in another column. */
static Agnode_t *draw_circle(struct drawing *d, uint32_t box, uint32_t number)
{
	uint32_t frame = d->view->box[box].frame;
	char text[24];
	Agnode_t *n;

	add_id(text, "c", d->ncircle++);
	n = agnode(d->g, text, 1);
	add_id(text, "", number);
	set(n, "label", text);
	set(n, "tooltip", "goes on at the same number");
	set(n, "shape", "circle");
	set(n, "style", "filled");
	set(n, "fontsize", "9");
	set(n, "width", "0.25");
	set(n, "height", "0.25");
	set(n, "fixedsize", "true");
	if (frame != AP_NONE)
		agsubnode(d->frame[frame], n, 1);
	return n;
}

/* Draws the ends of a line into another column; returns the second. Lines out of a box share the first. */
static Agedge_t *draw_ends(struct drawing *d, const struct ap_pic_line *line)
{
	bool dashed = line->again || line->sent;
	uint32_t *number = &d->number[line->from];
	Agedge_t *e;

	if (!*number) {
		*number = ++d->nnumber;
		e = agedge(d->g, d->node[line->from], draw_circle(d, line->from, *number), NULL, 1);
		set(e, "style", dashed ? "dashed" : "");
	}
	return agedge(d->g, draw_circle(d, line->to, *number), d->node[line->to], NULL, 1);
}

static void draw_lines(struct drawing *d)
{
	d->number = AP_NEW_N(d->ctx->scratch, uint32_t, d->view->nbox);
	for (uint32_t i = 0; i < d->view->nline; i++) {
		const struct ap_pic_line *line = &d->view->line[i];
		Agedge_t *e = d->columns.loose[i] ? draw_ends(d, line)
				: agedge(d->g, d->node[line->from], d->node[line->to], NULL, 1);
		struct ap_str text;

		ap_str_init(&text, d->ctx->scratch);
		add_line(&text, line);
		set(e, "label", text.s);
		ap_str_init(&text, d->ctx->scratch);
		ap_str_add(&text, "tensor "); /* the blank makes cgraph quote it */
		add_name(&text, line->first->tensor);
		set(e, "tooltip", text.s);
		if (line->moved.n) {
			set(e, "color", AP_DOT_MOVE_COLOR);
			set_width(e, line->moved.time_s, d->longest_line_s);
		}
		if (line->again || line->sent) {
			set(e, "style", "dashed");
			set(e, "fontcolor", line->moved.n ? AP_DOT_MOVE_COLOR : "#333333");
		}
		if (line->again && !d->columns.loose[i])
			set(e, "constraint", "false");
	}
}

enum { BOX_MARGIN = 6 }; /* around a label, both sides together */

enum { SHORT = 7 }; /* boxes in a row that a screen has room for beside each other */

/* Boxes on the longest path without notes; boxes and lines are in topological order but for lines into
 * another copy. */
static uint32_t depth_of(struct ap_ctx *ctx, const struct ap_pic_view *v)
{
	uint32_t *depth = AP_NEW_N(ctx->scratch, uint32_t, v->nbox), most = 0;
	bool more = true;

	for (uint32_t round = 0; more && round <= SHORT; round++) {
		more = false;
		for (uint32_t i = 0; i < v->nline; i++) {
			const struct ap_pic_line *line = &v->line[i];

			if (line->again || line->from == line->to || depth[line->to] > depth[line->from] ||
				v->box[line->from].kind == AP_BOX_NOTE)
				continue;
			depth[line->to] = depth[line->from] + 1;
			most = depth[line->to] > most ? depth[line->to] : most;
			more = true;
		}
	}
	return most + 1;
}

static struct ap_pic_size size_of(const struct label *l, double around)
{
	return (struct ap_pic_size){l->width + 2 * PADDING + around, l->height + around};
}

/* Makes the labels of boxes and frames, and columns of what would be too tall; wide: it goes from left to
 * right. */
static void arrange(struct drawing *d, bool wide)
{
	static const struct ap_pic_size page = {2100, 1750}, any = {1e9, 1e9};
	const struct ap_pic_view *v = d->view;
	struct ap_pic_size *box = AP_NEW_N(d->ctx->scratch, struct ap_pic_size, v->nbox),
			   *frame = AP_NEW_N(d->ctx->scratch, struct ap_pic_size, v->nframe);

	d->box_label = AP_NEW_N(d->ctx->scratch, const char *, v->nbox);
	d->frame_label = AP_NEW_N(d->ctx->scratch, const char *, v->nframe);
	for (uint32_t i = 0; i < v->nbox; i++) {
		struct label label = begin_label(d->ctx);

		if (v->box[i].kind == AP_BOX_GROUP)
			add_group(&label, v, &v->box[i], d->longest_box_s);
		else if (v->box[i].kind == AP_BOX_NOTE)
			add_note(&label, v, &v->box[i]);
		else
			add_operators(&label, v, &v->box[i], d->longest_box_s);
		d->box_label[i] = end_label(&label);
		box[i] = size_of(&label, BOX_MARGIN);
	}
	for (uint32_t i = 0; i < v->nframe; i++) {
		struct label label = begin_label(d->ctx);

		add_frame(&label, v, &v->frame[i]);
		d->frame_label[i] = end_label(&label);
		frame[i] = size_of(&label, BOX_MARGIN);
	}
	ap_pic_columns_make(d->ctx, v, box, frame, wide ? &any : &page, &d->columns);
}

static void draw(struct drawing *d)
{
	const struct ap_pic_view *v = d->view;
	bool wide = depth_of(d->ctx, v) <= SHORT;

	for (uint32_t i = 0; i < v->nbox; i++)
		d->longest_box_s = fmax(d->longest_box_s, v->box[i].time_s);
	for (uint32_t i = 0; i < v->nline; i++)
		d->longest_line_s = fmax(d->longest_line_s, v->line[i].moved.time_s);
	arrange(d, wide);
	d->node = AP_NEW_N(d->ctx->scratch, Agnode_t *, v->nbox);
	d->frame = AP_NEW_N(d->ctx->scratch, Agraph_t *, v->nframe);
	for (size_t i = 0; i < AP_COUNT(attributes); i++)
		agattr(d->g, attributes[i].kind, mutable(attributes[i].key),
			mutable(attributes[i].value));
	set_label(d, d->g, head_of(d->ctx, v, d->columns.ncut > 0, d->columns.width));
	if (wide)
		set(d->g, "rankdir", "LR");
	if (d->columns.ncut)
		d->order = agsubg(d->g, mutable("order"), 1);
	draw_frames(d);
	draw_boxes(d);
	draw_lines(d);
}

static int draw_to(struct ap_ctx *ctx, const struct ap_pic_view *view, struct ap_str *out)
{
	Agmemdisc_t mem = {mem_open, mem_alloc, mem_resize, mem_free, NULL};
	Agiodisc_t io = {in_none, out_put, out_flush};
	Agiddisc_t id = {id_open, id_map, id_alloc, id_free, id_print, id_close, id_register};
	struct host host = {.disc = {&mem, &id, &io}, .arena = ctx->scratch,
		.names = ap_map_create(ctx->scratch)};
	struct drawing d = {.ctx = ctx, .view = view};
	int failed;

	d.g = agopen(mutable("plan"), Agdirected, &host.disc);
	draw(&d);
	failed = agwrite(d.g, out);
	return agclose(d.g) | failed;
}

enum ap_status ap_emit_dot(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	agusererrf before = agseterrf(swallow);
	struct ap_pic_view view;
	struct ap_str out;
	int failed;

	ap_pic_view_make(ctx, pic, detail, &view);
	*nbox = view.nbox;
	ap_str_init(&out, ctx->arena);
	agreseterrors();
	failed = draw_to(ctx, &view, &out) || agerrors();
	agseterrf(before);
	ap_arena_release(ctx->scratch, mark);
	*text = out.s;
	*len = out.len;
	if (!failed)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INTERNAL, NULL, NULL,
		"cgraph could not make the picture");
}
