/* SPDX-License-Identifier: Apache-2.0 */
/* DOT text, and all use of cgraph. */
#include "draw/dot.h"

#include <graphviz/cgraph.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"
#include "base/vec.h"
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

/* Appends a name for an HTML-like label, where a newline becomes <BR>. */
static void add_html(struct ap_str *out, const char *name)
{
	unsigned code;

	for (size_t len; *name; name += len ? len : 1) {
		len = *name == '\n' ? 0 : hidden((const unsigned char *)name, &code);
		if (len)
			ap_str_addf(out, code < 0x100 ? "\\x%02x" : "\\u%04x", code);
		else if (*name == '\n')
			ap_str_add(out, "<BR ALIGN=\"LEFT\"/>");
		else if (strchr("<>&\"", *name))
			ap_str_addf(out, "&#%d;", *name);
		else
			ap_str_addc(out, *name);
	}
}

/* ---- labels and tooltips; a blank or backslash in each makes cgraph quote it ---- */

enum { MOST_TYPES = 4 }; /* named per chain */

/* Colours of operators by enum ap_pic_class, chosen to be distinct for the colour-blind (Okabe and
 * Ito, 2008). */
static const struct {
	const char *word, *fill, *legend;
} looks[] = {
	[AP_PIC_NONE] = {"", "#ffffff", ""},
	[AP_PIC_WHOLE] = {"whole", "#dddddd", "nothing is cut"},
	[AP_PIC_BATCH] = {"batch", "#56b4e9", "the batch is cut"},
	[AP_PIC_MODEL] = {"model", "#f0e442", "other dimensions are cut"},
	[AP_PIC_BOTH] = {"batch+model", "#e69f00", "batch and other dimensions are cut"},
};

/* The class of a box: what any of its operators cuts. */
static enum ap_pic_class class_of(const struct ap_pic_view *v, const struct ap_pic_box *box)
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
	add_name(out, text);
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

/* Adds the part of the cell that frames do not show, and the name. */
static void add_place(struct ap_str *out, const struct ap_pic_view *v, const struct ap_pic_box *box,
	const struct ap_pic_node *node)
{
	const char *path = box->frame == AP_NONE ? "" : v->frame[box->frame].path;
	size_t len = strlen(path);
	const char *rest = node->cell + len;

	ap_str_add(out, "\\n");
	if (ap_short_name(node->name) != node->name && !strncmp(node->cell, path, len) && *rest &&
		(!len || *rest == '.')) {
		add_name(out, rest + (len > 0));
		ap_str_addc(out, '/');
	}
	add_name(out, ap_short_name(node->name));
}

/* Adds the cut of a chain's first operator, which does the work, and the slice of its last. */
static void add_operators(struct ap_str *out, const struct ap_pic_view *v,
	const struct ap_pic_box *box)
{
	const struct ap_pic_node *first = &v->pic->node[box->member[0]];
	const struct ap_pic_node *last = &v->pic->node[box->member[box->nmember - 1]];
	uint32_t copies = box->operators / box->nmember;
	enum ap_pic_class cls = class_of(v, box);
	char buf[32];

	add_ranks(out, box);
	for (uint32_t i = 0; i < box->nmember && i < MOST_TYPES; i++) { /* "MatMul, BiasAdd, Reshape" */
		ap_str_add(out, i ? ", " : "");
		add_name(out, v->pic->node[box->member[i]].type);
	}
	if (box->nmember > MOST_TYPES)
		ap_str_addf(out, ", %" PRIu32 " more", box->nmember - MOST_TYPES);
	add_place(out, v, box, first);
	if (cls != AP_PIC_NONE)
		ap_str_addf(out, "\\n%s", looks[cls].word);
	if (*first->cut && cls != AP_PIC_NONE && cls != AP_PIC_WHOLE)
		ap_str_addf(out, " %s", first->cut);
	if (*last->slice)
		add_line_of(out, last->slice);
	for (uint32_t i = 0; i < box->nmember; i++)
		if (*v->pic->node[box->member[i]].comms)
			add_line_of(out, v->pic->node[box->member[i]].comms);
	if (!(box->time_s > 0))
		return;
	ap_str_addf(out, "\\n%s", ap_format_seconds(box->time_s / copies, buf));
	if (copies > 1)
		ap_str_addf(out, " x %" PRIu32, copies);
	if (box->nrank)
		add_share(out, v, box->time_s);
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
	enum ap_pic_class cls = class_of(v, box);
	char buf[32];

	add_name(out, *box->title ? box->title : "operators in a row");
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
	add_name(out, node->type);
	add_line_of(out, ap_short_name(node->name));
	if (box->operators > 1)
		ap_str_addf(out, "\\nand %" PRIu32 " more", box->operators - 1);
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

/* Adds the label of a frame; lines end in \l, which aligns them left. */
static void add_frame(struct ap_str *out, const struct ap_pic_view *v,
	const struct ap_pic_frame *frame)
{
	uint32_t copies = frame->loop == AP_NONE ? 1 : v->fold.loop[frame->loop].copies;
	char buf[32];

	add_name(out, frame->label);
	if (frame->loop == AP_NONE) {
		ap_str_addf(out, " (%" PRIu32 ")", frame->operators); /* the blank makes cgraph quote it */
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

/* ---- the legend: totals, and the meaning of colours and marks that occur ---- */

#define WHITE "#ffffff"

static void add_row(struct ap_str *out, bool wanted, const char *fill, const char *word, const char *text)
{
	if (wanted)
		ap_str_addf(out, "<TR><TD BGCOLOR=\"%s\">%s</TD><TD ALIGN=\"LEFT\">%s</TD></TR>", fill,
			word, text);
}

static void add_legend(struct ap_str *out, const struct ap_pic_view *v)
{
	bool ranks = false, moves = false, chains = false, groups = false, notes = false, again = false,
	     sends = false;
	uint32_t seen = 0;

	for (uint32_t i = 0; i < v->pic->noperator; i++)
		seen |= UINT32_C(1) << v->pic->node[i].cls;
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
	ap_str_add(out, "<TABLE BORDER=\"1\" CELLBORDER=\"0\" CELLSPACING=\"2\" CELLPADDING=\"2\" "
		"COLOR=\"#999999\">");
	ap_str_add(out, "<TR><TD COLSPAN=\"2\" ALIGN=\"LEFT\" BALIGN=\"LEFT\">");
	if (*v->pic->facts) {
		add_html(out, v->pic->facts);
		ap_str_add(out, "<BR/>");
	}
	ap_str_addf(out, "%" PRIu32 " operators in %" PRIu32 " boxes</TD></TR>",
		v->pic->noperator, v->nbox - v->nnote);
	for (enum ap_pic_class c = AP_PIC_WHOLE; c <= AP_PIC_BOTH; c++)
		add_row(out, seen >> c & 1, looks[c].fill, looks[c].word, looks[c].legend);
	add_row(out, ranks, WHITE, "<FONT COLOR=\"" AP_DOT_RANK_COLOR "\"><B>#1 .. #10</B></FONT>",
		"most time, all copies together; the border is thicker");
	add_row(out, v->total_s > 0, WHITE, "(4.2%)",
		"share of the time of all operators and redistributions");
	add_row(out, moves, WHITE, "<FONT COLOR=\"" AP_DOT_MOVE_COLOR "\">AllGather 2 MiB</FONT>",
		"redistribution: steps, bytes a rank receives, time per step; wider: longer");
	add_row(out, v->fold.nloop, WHITE, "x 40", "drawn once: so many equal copies in a row");
	add_row(out, again, WHITE, "<I>dashed</I>", "into the next copy");
	add_row(out, sends, WHITE, "<I>dashed, Send 2 MiB</I>",
		"to another part of the pipeline: bytes a rank sends for one micro-batch");
	add_row(out, chains, WHITE, "A, B", "operators that feed one another, in one box");
	add_row(out, groups, WHITE, "3D box", "operators of a cell or in a row, in one box");
	add_row(out, notes, WHITE, "note",
		"input, shared tensor or much-read result, drawn where it is read");
	ap_str_add(out, "</TABLE>");
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
	double longest_box_s, longest_line_s;
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
	{AGRAPH, "fontname", "Helvetica"},
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
	{AGNODE, "style", "filled"},
	{AGNODE, "color", "#333333"},
	{AGNODE, "fillcolor", "#ffffff"},
	{AGNODE, "fontname", "Helvetica"},
	{AGNODE, "fontsize", "10"},
	{AGNODE, "penwidth", "1.0"},
	{AGNODE, "height", "0.3"},
	{AGNODE, "margin", "0.08,0.04"},
	{AGEDGE, "label", ""},
	{AGEDGE, "tooltip", ""},
	{AGEDGE, "style", ""},
	{AGEDGE, "color", "#666666"},
	{AGEDGE, "fontcolor", AP_DOT_MOVE_COLOR},
	{AGEDGE, "fontname", "Helvetica"},
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
		struct ap_str label;
		char id[24];
		bool loop, part;

		add_id(id, "cluster_", i);
		ap_str_init(&label, d->ctx->scratch);
		add_frame(&label, v, &v->frame[i]);
		d->frame[i] = agsubg(parent == AP_NONE ? d->g : d->frame[parent], id, 1);
		set(d->frame[i], "label", label.s);
		loop = v->frame[i].loop != AP_NONE; /* set all attributes: frames inherit them */
		part = v->frame[i].part != NULL;
		set(d->frame[i], "color", part ? AP_DOT_PART_COLOR : loop ? "#000000" : "#999999");
		set(d->frame[i], "penwidth", loop || part ? "2.0" : "1.0");
		set(d->frame[i], "style", loop ? "rounded,dashed" : "rounded");
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
		ap_str_init(&text, d->ctx->scratch);
		if (box->kind == AP_BOX_GROUP)
			add_group(&text, v, box);
		else if (box->kind == AP_BOX_NOTE)
			add_note(&text, v, box);
		else
			add_operators(&text, v, box);
		set(d->node[i], "label", text.s);
		ap_str_init(&text, d->ctx->scratch);
		ap_str_add(&text, first->kind == AP_PIC_OPERATOR ? "operator " : "tensor ");
		add_name(&text, first->name);
		if (box->operators > 1)
			ap_str_addf(&text, "\\nand %" PRIu32 " more", box->operators - 1);
		set(d->node[i], "tooltip", text.s);
		set(d->node[i], "fillcolor", looks[class_of(v, box)].fill);
		if (box->kind == AP_BOX_NOTE) {
			set(d->node[i], "shape", "note");
			set(d->node[i], "color", "#777777");
		} else {
			if (box->kind == AP_BOX_GROUP)
				set(d->node[i], "shape", "box3d");
			set_width(d->node[i], box->time_s, d->longest_box_s);
			if (box->nrank)
				set(d->node[i], "color", AP_DOT_RANK_COLOR);
		}
		if (box->frame != AP_NONE)
			agsubnode(d->frame[box->frame], d->node[i], 1);
	}
}

static void draw_lines(struct drawing *d)
{
	for (uint32_t i = 0; i < d->view->nline; i++) {
		const struct ap_pic_line *line = &d->view->line[i];
		Agedge_t *e = agedge(d->g, d->node[line->from], d->node[line->to], NULL, 1);
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
		if (line->again)
			set(e, "constraint", "false");
	}
}

static void draw_legend(struct drawing *d)
{
	struct ap_str text;
	char *label;
	Agnode_t *n;

	if (!d->view->nbox)
		return;
	ap_str_init(&text, d->ctx->scratch);
	add_legend(&text, d->view);
	label = agstrdup_html(d->g, text.s);
	n = agnode(d->g, mutable("legend"), 1);
	set(n, "label", label);
	set(n, "shape", "plain");
	set(n, "tooltip", "the legend");
}

static void draw(struct drawing *d)
{
	const struct ap_pic_view *v = d->view;
	struct ap_str title;

	for (uint32_t i = 0; i < v->nbox; i++)
		d->longest_box_s = fmax(d->longest_box_s, v->box[i].time_s);
	for (uint32_t i = 0; i < v->nline; i++)
		d->longest_line_s = fmax(d->longest_line_s, v->line[i].moved.time_s);
	d->node = AP_NEW_N(d->ctx->scratch, Agnode_t *, v->nbox);
	d->frame = AP_NEW_N(d->ctx->scratch, Agraph_t *, v->nframe);
	for (size_t i = 0; i < AP_COUNT(attributes); i++)
		agattr(d->g, attributes[i].kind, mutable(attributes[i].key),
			mutable(attributes[i].value));
	ap_str_init(&title, d->ctx->scratch);
	add_name(&title, v->pic->title);
	ap_str_add(&title, "\\n"); /* makes cgraph quote it */
	set(d->g, "label", title.s);
	draw_frames(d);
	draw_boxes(d);
	draw_lines(d);
	draw_legend(d);
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
