/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text in columns. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "diff/diff_parts.h"

enum { WIDEST = 64 }; /* a longer cell pushes the rest of its line aside */

static const struct {
	char sign;
	const char *color;
} kinds[] = {
	[AP_DIFF_CHANGED] = {'~', "\033[33m"},
	[AP_DIFF_ADDED] = {'+', "\033[32m"},
	[AP_DIFF_REMOVED] = {'-', "\033[31m"},
	[AP_DIFF_RENAMED] = {'=', "\033[36m"},
};

struct page {
	struct ap_diag *names;
	const struct ap_diff_style *style;
	struct ap_str *out;
};

/* Columns of a terminal, as long as every character takes one. */
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

static void colored(struct page *p, const char *color, const char *text)
{
	ap_str_addf(p->out, "%s%s%s", p->style->color ? color : "", text,
		p->style->color ? "\033[0m" : "");
}

static void measure(struct page *p, const struct ap_diff_table *t, int width[AP_DIFF_COLUMNS])
{
	for (uint32_t c = 0; c < t->ncolumn; c++) {
		width[c] = 0;
		for (uint32_t r = 0; r < t->nrow; r++) {
			const char *cell = t->row[r].cell[c];
			int w = cell ? width_of(ap_diag_path(p->names, cell)) : 0;

			if (w > width[c] && w <= WIDEST)
				width[c] = w;
		}
	}
}

/* Between the cells of a row: an arrow where something became something else. */
static const char *gap_before(const struct ap_diff_table *t, const struct ap_diff_row *row,
	uint32_t c)
{
	if (t->sort[c] != AP_DIFF_IS)
		return "  ";
	return *row->cell[c - 1] && *row->cell[c] ? " -> " : "    ";
}

static void add_row(struct page *p, const struct ap_diff_table *t, const struct ap_diff_row *row,
	const int width[AP_DIFF_COLUMNS])
{
	char sign[3] = {kinds[row->kind].sign, '\0'};
	int owed = 0; /* blanks that are due before the next text */

	ap_str_add(p->out, "  ");
	colored(p, kinds[row->kind].color, sign);
	for (uint32_t c = 0; c < t->ncolumn; c++) {
		const char *cell = row->cell[c] ? ap_diag_path(p->names, row->cell[c]) : "";
		const char *gap = gap_before(t, row, c);
		int missing = width[c] - width_of(cell);
		bool right = t->sort[c] == AP_DIFF_NUMBER;

		if (!*cell) {
			owed += (int)strlen(gap) + (missing > 0 ? missing : 0);
			continue;
		}
		pad(p->out, owed);
		ap_str_add(p->out, gap);
		pad(p->out, right ? missing : 0);
		ap_str_add(p->out, cell);
		owed = right || missing < 0 ? 0 : missing;
	}
	ap_str_addc(p->out, '\n');
}

static void add_table(struct page *p, const struct ap_diff_table *t)
{
	int width[AP_DIFF_COLUMNS];

	measure(p, t, width);
	ap_str_addc(p->out, '\n');
	colored(p, "\033[1m", t->title);
	ap_str_addc(p->out, '\n');
	for (uint32_t r = 0; r < t->nrow; r++)
		add_row(p, t, &t->row[r], width);
}

void ap_diff_write_text(struct ap_ctx *ctx, const struct ap_diff *d,
	const struct ap_diff_style *style, struct ap_str *out)
{
	struct page p = {ap_diag_create(ctx->arena, false), style, out};
	struct ap_diff_show show;

	ap_diff_show_make(ctx, d, &show);
	ap_str_addf(out, "%s -> %s\n", ap_diag_path(p.names, d->file[0]),
		ap_diag_path(p.names, d->file[1]));
	colored(&p, "\033[1m", show.headline);
	ap_str_addc(out, '\n');
	for (uint32_t i = 0; i < show.ntable; i++)
		add_table(&p, &show.table[i]);
}
