/* SPDX-License-Identifier: Apache-2.0 */
/* DOT, and the cage of cgraph. */
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
#include "draw/dot_text.h"
#include "draw/draw.h"
#include "plan/terms.h"

/* ---- what cgraph asks of its host ---- */

struct host {
	Agdisc_t disc; /* first: cgraph hands it back */
	struct ap_arena *arena;
	Agraph_t *g;
	struct ap_map *names;
	/* the names by id, as strings of cgraph's own: it looks at what stands before them */
	AP_VEC(char *) known;
	IDTYPE nameless;
};

/* Memory from an arena, which does not fail: cgraph does not look whether an allocation did. */
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

/*
 * Ids in order of appearance, even for names, odd for what has none: cgraph writes subgraphs in the
 * order of their ids, and its own ids are addresses.
 */
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

/* cgraph's callback for messages knows no user, so that there were any is all that can be known. */
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

/* cgraph takes char *, and changes nothing. */
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

static void declare_all(Agraph_t *g)
{
	for (size_t i = 0; i < AP_COUNT(attributes); i++)
		agattr(g, attributes[i].kind, mutable(attributes[i].key),
			mutable(attributes[i].value));
}

/* From 1.0 to 5.0 points by the part of the longest time. */
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

/* Outer ones first. */
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
		ap_dot_add_frame(&label, v, &v->frame[i]);
		d->frame[i] = agsubg(parent == AP_NONE ? d->g : d->frame[parent], id, 1);
		set(d->frame[i], "label", label.s);
		loop = v->frame[i].loop != AP_NONE; /* all set, for a frame inherits of that around it */
		part = v->frame[i].part != NULL;
		set(d->frame[i], "color", part ? AP_DOT_PART_COLOR : loop ? "#000000" : "#999999");
		set(d->frame[i], "penwidth", loop || part ? "2.0" : "1.0");
		set(d->frame[i], "style", loop ? "rounded,dashed" : "rounded");
	}
}

static void set_look(struct drawing *d, Agnode_t *n, const struct ap_pic_box *box)
{
	set(n, "fillcolor", ap_dot_look(ap_dot_class(d->view, box))->fill);
	if (box->kind == AP_BOX_NOTE) {
		set(n, "shape", "note");
		set(n, "color", "#777777");
		return;
	}
	if (box->kind == AP_BOX_GROUP)
		set(n, "shape", "box3d");
	set_width(n, box->time_s, d->longest_box_s);
	if (box->nrank)
		set(n, "color", AP_DOT_RANK_COLOR);
}

static void draw_boxes(struct drawing *d)
{
	const struct ap_pic_view *v = d->view;

	for (uint32_t i = 0; i < v->nbox; i++) {
		const struct ap_pic_box *box = &v->box[i];
		struct ap_str text;
		char id[24];

		add_id(id, "n", i);
		d->node[i] = agnode(d->g, id, 1);
		ap_str_init(&text, d->ctx->scratch);
		ap_dot_add_box(&text, v, box);
		set(d->node[i], "label", text.s);
		ap_str_init(&text, d->ctx->scratch);
		ap_dot_add_box_tip(&text, v, box);
		set(d->node[i], "tooltip", text.s);
		set_look(d, d->node[i], box);
		if (box->frame != AP_NONE)
			agsubnode(d->frame[box->frame], d->node[i], 1);
	}
}

static void set_line(struct drawing *d, Agedge_t *e, const struct ap_pic_line *line)
{
	struct ap_str text;

	ap_str_init(&text, d->ctx->scratch);
	ap_dot_add_line(&text, line);
	set(e, "label", text.s);
	ap_str_init(&text, d->ctx->scratch);
	ap_str_add(&text, "tensor "); /* the blank makes cgraph quote it */
	ap_dot_add_name(&text, line->first->tensor);
	set(e, "tooltip", text.s);
	if (line->moved.n) {
		set(e, "color", AP_DOT_MOVE_COLOR);
		set_width(e, line->moved.time_s, d->longest_line_s);
	}
	if (line->again || line->sent) {
		set(e, "style", "dashed");
		set(e, "fontcolor", line->moved.n ? AP_DOT_MOVE_COLOR : "#333333");
	}
}

static void draw_lines(struct drawing *d)
{
	for (uint32_t i = 0; i < d->view->nline; i++) {
		const struct ap_pic_line *line = &d->view->line[i];
		Agedge_t *e = agedge(d->g, d->node[line->from], d->node[line->to], NULL, 1);

		set_line(d, e, line);
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
	ap_dot_add_legend(&text, d->view);
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
	declare_all(d->g);
	ap_str_init(&title, d->ctx->scratch);
	ap_dot_add_name(&title, v->pic->title);
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
