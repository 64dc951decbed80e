/* SPDX-License-Identifier: Apache-2.0 */
/* The legend: totals, and what colours and marks mean, of those that are there. */
#include <inttypes.h>

#include "draw/dot_text.h"

static void add_row(struct ap_str *out, const char *fill, const char *word, const char *text)
{
	ap_str_addf(out, "<TR><TD BGCOLOR=\"%s\">%s</TD><TD ALIGN=\"LEFT\">%s</TD></TR>", fill, word,
		text);
}

static void add_classes(struct ap_str *out, const struct ap_pic_view *v)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < v->pic->noperator; i++)
		seen |= UINT32_C(1) << v->pic->node[i].cls;
	for (enum ap_pic_class c = AP_PIC_WHOLE; c <= AP_PIC_BOTH; c++)
		if (seen >> c & 1)
			add_row(out, ap_dot_look(c)->fill, ap_dot_look(c)->word,
				ap_dot_look(c)->legend);
}

struct marks { /* what there is to explain */
	bool ranks, moves, again, sends, chains, groups, notes, shares;
};

static struct marks find_marks(const struct ap_pic_view *v)
{
	struct marks m = {.shares = v->total_s > 0};

	for (uint32_t b = 0; b < v->nbox; b++) {
		m.ranks |= v->box[b].nrank > 0;
		m.moves |= v->box[b].inside.n > 0;
		m.chains |= v->box[b].kind == AP_BOX_CHAIN;
		m.groups |= v->box[b].kind == AP_BOX_GROUP;
		m.notes |= v->box[b].kind == AP_BOX_NOTE;
	}
	for (uint32_t i = 0; i < v->nline; i++) {
		m.again |= v->line[i].again;
		m.sends |= v->line[i].sent > 0;
		m.moves |= v->line[i].moved.n > 0;
	}
	return m;
}

static void add_marks(struct ap_str *out, const struct ap_pic_view *v)
{
	struct marks m = find_marks(v);
	static const char plain[] = "#ffffff";

	if (m.ranks)
		add_row(out, plain, "<FONT COLOR=\"" AP_DOT_RANK_COLOR "\"><B>#1 .. #10</B></FONT>",
			"most time, all copies together; the border is thicker");
	if (m.shares)
		add_row(out, plain, "(4.2%)", "share of the time of all operators and redistributions");
	if (m.moves)
		add_row(out, plain, "<FONT COLOR=\"" AP_DOT_MOVE_COLOR "\">AllGather 2 MiB</FONT>",
			"redistribution: steps, bytes a rank receives, time per step; wider: longer");
	if (v->fold.nloop)
		add_row(out, plain, "x 40", "drawn once: so many equal copies in a row");
	if (m.again)
		add_row(out, plain, "<I>dashed</I>", "into the next copy");
	if (m.sends)
		add_row(out, plain, "<I>dashed, Send 2 MiB</I>",
			"to another part of the pipeline: bytes a rank sends for one micro-batch");
	if (m.chains)
		add_row(out, plain, "A, B", "operators that feed one another, in one box");
	if (m.groups)
		add_row(out, plain, "3D box", "operators of a cell or in a row, in one box");
	if (m.notes)
		add_row(out, plain, "note",
			"input, shared tensor or much-read result, drawn where it is read");
}

void ap_dot_add_legend(struct ap_str *out, const struct ap_pic_view *v)
{
	ap_str_add(out, "<TABLE BORDER=\"1\" CELLBORDER=\"0\" CELLSPACING=\"2\" CELLPADDING=\"2\" "
		"COLOR=\"#999999\">");
	ap_str_add(out, "<TR><TD COLSPAN=\"2\" ALIGN=\"LEFT\" BALIGN=\"LEFT\">");
	if (*v->pic->facts) {
		ap_dot_add_html(out, v->pic->facts);
		ap_str_add(out, "<BR/>");
	}
	ap_str_addf(out, "%" PRIu32 " operators in %" PRIu32 " boxes</TD></TR>",
		v->pic->noperator, v->nbox - v->nnote);
	add_classes(out, v);
	add_marks(out, v);
	ap_str_add(out, "</TABLE>");
}
