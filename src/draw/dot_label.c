/* SPDX-License-Identifier: Apache-2.0 */
/* What is written in and at boxes, edges and frames. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "draw/dot_text.h"
#include "plan/terms.h"

enum { MOST_TYPES = 4 }; /* of a chain that are named */

/* Colours that people who see no red or no green tell apart too (Okabe and Ito, 2008). */
static const struct ap_dot_look looks[] = {
	[AP_PIC_NONE] = {"", "#ffffff", ""},
	[AP_PIC_WHOLE] = {"whole", "#dddddd", "nothing is cut"},
	[AP_PIC_BATCH] = {"batch", "#56b4e9", "the batch is cut"},
	[AP_PIC_MODEL] = {"model", "#f0e442", "other dimensions are cut"},
	[AP_PIC_BOTH] = {"batch+model", "#e69f00", "batch and other dimensions are cut"},
};

const struct ap_dot_look *ap_dot_look(enum ap_pic_class cls)
{
	return &looks[cls];
}

enum ap_pic_class ap_dot_class(const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	bool batch = false, model = false, known = false;

	for (uint32_t i = 0; i < box->nmember; i++) {
		enum ap_pic_class cls = v->pic->node[box->member[i]].cls;

		known |= cls != AP_PIC_NONE;
		batch |= cls == AP_PIC_BATCH || cls == AP_PIC_BOTH;
		model |= cls == AP_PIC_MODEL || cls == AP_PIC_BOTH;
	}
	if (!known)
		return AP_PIC_NONE;
	if (batch)
		return model ? AP_PIC_BOTH : AP_PIC_BATCH;
	return model ? AP_PIC_MODEL : AP_PIC_WHOLE;
}

static void add_line_of(struct ap_str *out, const char *text)
{
	ap_str_add(out, "\\n");
	ap_dot_add_name(out, text);
}

static void add_share(struct ap_str *out, const struct ap_pic_view *v, double time_s)
{
	if (v->total_s > 0)
		ap_str_addf(out, " (%.1f%%)", 100 * time_s / v->total_s);
}

static void add_time(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box,
	bool share)
{
	uint32_t copies = box->operators / box->nmember;
	char buf[32];

	if (!(box->time_s > 0))
		return;
	ap_str_addf(out, "\\n%s", ap_format_seconds(box->time_s / copies, buf));
	if (copies > 1)
		ap_str_addf(out, " x %" PRIu32, copies);
	if (share)
		add_share(out, v, box->time_s);
}

/* "MatMul, BiasAdd, Reshape" */
static void add_types(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	for (uint32_t i = 0; i < box->nmember && i < MOST_TYPES; i++) {
		ap_str_add(out, i ? ", " : "");
		ap_dot_add_name(out, v->pic->node[box->member[i]].type);
	}
	if (box->nmember > MOST_TYPES)
		ap_str_addf(out, ", %" PRIu32 " more", box->nmember - MOST_TYPES);
}

static void add_cut(struct ap_str *out, const struct ap_pic_node *node, enum ap_pic_class cls)
{
	if (cls == AP_PIC_NONE)
		return;
	ap_str_addf(out, "\\n%s", looks[cls].word);
	if (*node->cut && cls != AP_PIC_WHOLE)
		ap_str_addf(out, " %s", node->cut);
}

static void add_comms(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	for (uint32_t i = 0; i < box->nmember; i++)
		if (*v->pic->node[box->member[i]].comms)
			add_line_of(out, v->pic->node[box->member[i]].comms);
}

static void add_ranks(struct ap_str *out, const struct ap_pic_box *box)
{
	for (uint32_t i = 0; i < box->nrank; i++)
		ap_str_addf(out, "#%u ", (unsigned)box->rank[i]);
}

/* The cell, as far as no frame says it, and the name. */
static void add_place(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box,
	const struct ap_pic_node *node)
{
	const char *path = box->frame == AP_NONE ? "" : v->frame[box->frame].path;
	size_t len = strlen(path);
	const char *rest = node->cell + len;

	ap_str_add(out, "\\n");
	if (ap_short_name(node->name) != node->name && !strncmp(node->cell, path, len) && *rest &&
		(!len || *rest == '.')) {
		ap_dot_add_name(out, rest + (len > 0));
		ap_str_addc(out, '/');
	}
	ap_dot_add_name(out, ap_short_name(node->name));
}

/* The cut of the first of a chain, which works, the slice of the last. */
static void add_operators(struct ap_str *out, const struct ap_pic_view *v,
	const struct ap_pic_box *box)
{
	const struct ap_pic_node *first = &v->pic->node[box->member[0]];
	const struct ap_pic_node *last = &v->pic->node[box->member[box->nmember - 1]];

	add_ranks(out, box);
	add_types(out, v, box);
	add_place(out, v, box, first);
	add_cut(out, first, ap_dot_class(v, box));
	if (*last->slice)
		add_line_of(out, last->slice);
	add_comms(out, v, box);
	add_time(out, v, box, box->nrank > 0);
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

static void add_group(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	enum ap_pic_class cls = ap_dot_class(v, box);
	char buf[32];

	ap_dot_add_name(out, *box->title ? box->title : "operators in a row");
	ap_str_addf(out, "\\n%" PRIu32 " operators", box->operators);
	if (cls != AP_PIC_NONE)
		ap_str_addf(out, "\\n%s", looks[cls].word);
	if (box->ncomm)
		ap_str_addf(out, "\\n%" PRIu32 " collective%s", box->ncomm, box->ncomm > 1 ? "s" : "");
	if (box->inside.n) {
		ap_str_add(out, "\\n");
		add_moved(out, &box->inside);
	}
	if (box->time_s > 0) {
		ap_str_addf(out, "\\n%s", ap_format_seconds(box->time_s, buf));
		add_share(out, v, box->time_s);
	}
	if (box->nrank) {
		ap_str_add(out, "\\nwith ");
		add_ranks(out, box);
	}
}

static void add_note(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	const struct ap_pic_node *node = &v->pic->node[*box->member];

	if (node->kind == AP_PIC_OPERATOR)
		ap_str_add(out, "from ");
	ap_dot_add_name(out, node->type);
	add_line_of(out, ap_short_name(node->name));
	if (box->operators > 1)
		ap_str_addf(out, "\\nand %" PRIu32 " more", box->operators - 1);
}

void ap_dot_add_box(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box)
{
	switch (box->kind) {
	case AP_BOX_OPERATOR:
	case AP_BOX_CHAIN:
		add_operators(out, v, box);
		break;
	case AP_BOX_GROUP:
		add_group(out, v, box);
		break;
	case AP_BOX_NOTE:
		add_note(out, v, box);
		break;
	}
}

void ap_dot_add_box_tip(struct ap_str *out, const struct ap_pic_view *v,
	const struct ap_pic_box *box)
{
	const struct ap_pic_node *node = &v->pic->node[*box->member];

	ap_str_add(out, node->kind == AP_PIC_OPERATOR ? "operator " : "tensor ");
	ap_dot_add_name(out, node->name);
	if (box->operators > 1)
		ap_str_addf(out, "\\nand %" PRIu32 " more", box->operators - 1);
}

static void add_sent(struct ap_str *out, const struct ap_pic_line *line)
{
	char buf[32];

	ap_str_addf(out, " Send %s", ap_format_bytes(line->sent_bytes, buf));
	if (line->sent > 1)
		ap_str_addf(out, " in %" PRIu32, line->sent);
}

/* The blank in front keeps the text off the line. */
void ap_dot_add_line(struct ap_str *out, const struct ap_pic_line *line)
{
	if (line->again)
		ap_str_add(out, " next copy");
	if (line->sent)
		add_sent(out, line);
	if ((line->again || line->sent) && line->moved.n)
		ap_str_add(out, "\\n");
	if (!line->moved.n)
		return;
	ap_str_addc(out, ' ');
	if (!line->one_kind) {
		add_moved(out, &line->moved);
		return;
	}
	ap_dot_add_name(out, line->first->moves);
	if (line->moved.n > 1)
		ap_str_addf(out, " x %" PRIu32, line->moved.n);
}

/* Lines end in \l: they begin at the left. */
void ap_dot_add_frame(struct ap_str *out, const struct ap_pic_view *v,
	const struct ap_pic_frame *frame)
{
	uint32_t copies = frame->loop == AP_NONE ? 1 : v->fold.loop[frame->loop].copies;
	char buf[32];

	ap_dot_add_name(out, frame->label);
	if (frame->loop == AP_NONE) {
		ap_str_addf(out, " (%" PRIu32 ")", frame->operators); /* the blank: for quotes */
		return;
	}
	ap_str_addf(out, "\\l%" PRIu32 " operators each", frame->operators);
	if (frame->time_s > 0) {
		ap_str_addf(out, ", %s x %" PRIu32,
			ap_format_seconds(frame->time_s / (frame->all / frame->operators), buf),
			copies);
		add_share(out, v, frame->time_s);
	}
	ap_str_add(out, "\\l");
}
