/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as Markdown with tables, for a comment on a change under review. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "diff/diff_parts.h"

static const char *const signs[] = {
	[AP_DIFF_CHANGED] = "",
	[AP_DIFF_ADDED] = "new",
	[AP_DIFF_REMOVED] = "gone",
	[AP_DIFF_RENAMED] = "renamed",
};

/* Without a character that means something to Markdown, a table, HTML or a forge. */
static void add_escaped(struct ap_str *out, const char *s)
{
	for (; *s; s++)
		if (strchr("&<>\"'`|\\*_[]~!#@$", *s))
			ap_str_addf(out, "&#%d;", *s);
		else
			ap_str_addc(out, *s);
}

/* What comes from the files, as code: between backticks; in HTML where it holds one of these, or
 * what a table or HTML would see in it. */
static void add_code(struct ap_str *out, const char *s)
{
	if (!*s)
		return;
	if (!strpbrk(s, "`|\\<>&")) {
		ap_str_addf(out, "`%s`", s);
		return;
	}
	ap_str_add(out, "<code>");
	add_escaped(out, s);
	ap_str_add(out, "</code>");
}

static void add_cell(struct ap_str *out, struct ap_diag *names, enum ap_diff_sort sort,
	const char *cell)
{
	const char *safe = cell ? ap_diag_path(names, cell) : "";

	ap_str_addc(out, ' ');
	if (sort == AP_DIFF_NUMBER || sort == AP_DIFF_WORDS)
		ap_str_add(out, safe);
	else
		add_code(out, safe);
	ap_str_add(out, *safe ? " |" : "|");
}

static bool has_signs(const struct ap_diff_table *t)
{
	for (uint32_t r = 0; r < t->nrow; r++)
		if (*signs[t->row[r].kind])
			return true;
	return false;
}

static void add_heads(struct ap_str *out, const struct ap_diff_table *t, bool sign)
{
	ap_str_add(out, sign ? "| |" : "|");
	for (uint32_t c = 0; c < t->ncolumn; c++)
		ap_str_addf(out, " %s%s|", t->head[c], *t->head[c] ? " " : "");
	ap_str_add(out, sign ? "\n| --- |" : "\n|");
	for (uint32_t c = 0; c < t->ncolumn; c++)
		ap_str_add(out, t->sort[c] == AP_DIFF_NUMBER ? " ---: |" : " --- |");
	ap_str_addc(out, '\n');
}

static void add_table(struct ap_str *out, struct ap_diag *names, const struct ap_diff_table *t)
{
	bool sign = has_signs(t);

	ap_str_addf(out, "\n#### %s\n\n", t->title);
	add_heads(out, t, sign);
	for (uint32_t r = 0; r < t->nrow; r++) {
		ap_str_addc(out, '|');
		if (sign)
			add_cell(out, names, AP_DIFF_WORDS, signs[t->row[r].kind]);
		for (uint32_t c = 0; c < t->ncolumn; c++)
			add_cell(out, names, t->sort[c], t->row[r].cell[c]);
		ap_str_addc(out, '\n');
	}
}

void ap_diff_write_markdown(struct ap_ctx *ctx, const struct ap_diff *d,
	const struct ap_diff_style *style, struct ap_str *out)
{
	struct ap_diag *names = ap_diag_create(ctx->arena, false);
	struct ap_diff_show show;

	(void)style;
	ap_diff_show_make(ctx, d, &show);
	ap_str_add(out, "### ");
	add_code(out, ap_diag_path(names, d->file[0]));
	ap_str_add(out, " to ");
	add_code(out, ap_diag_path(names, d->file[1]));
	ap_str_addf(out, "\n\n**%s**\n", show.headline);
	for (uint32_t i = 0; i < show.ntable; i++)
		add_table(out, names, &show.table[i]);
}
