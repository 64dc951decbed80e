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
#include "emit/dot_text.h"
#include "emit/emit.h"
#include "emit/terms.h"

/* An operator whose result more operators read than this is kept from pulling them together. */
enum { MANY_USERS = 8 };

/* Colours that people who see no red or no green tell apart too (Okabe and Ito, 2008). */
static const struct look {
	const char *word, *fill, *legend;
} looks[] = {
	[AP_PIC_NONE] = {"", "#ffffff", ""},
	[AP_PIC_WHOLE] = {"whole", "#dddddd", "nothing is cut"},
	[AP_PIC_BATCH] = {"batch", "#56b4e9", "the batch is cut"},
	[AP_PIC_MODEL] = {"model", "#f0e442", "other dimensions are cut"},
	[AP_PIC_BOTH] = {"batch+model", "#e69f00", "batch and other dimensions are cut"},
};
#define MOVE_COLOR "#d55e00"

/* ---- what cgraph asks of its host ---- */

struct host {
	Agdisc_t disc; /* first: cgraph hands it back */
	struct ap_arena *arena;
	Agraph_t *g;
	struct ap_map *names;
	struct { /* the names by id, as strings of cgraph's own: it looks at what stands before them */
		char **v;
		size_t n, cap;
	} known;
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
	const struct ap_picture *pic;
	Agraph_t *g;
	Agnode_t **node;
	uint32_t *degree; /* edges drawn from each node */
	double longest_node_s, longest_edge_s;
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

static void declare(struct drawing *d, int kind, const char *key, const char *value)
{
	agattr(d->g, kind, mutable(key), mutable(value));
}

static void declare_all(struct drawing *d)
{
	declare(d, AGRAPH, "label", "");
	declare(d, AGRAPH, "labelloc", "t");
	declare(d, AGRAPH, "fontname", "Helvetica");
	declare(d, AGRAPH, "linelength", "0");
	declare(d, AGRAPH, "style", "rounded");
	declare(d, AGRAPH, "color", "#999999");
	declare(d, AGNODE, "label", "");
	declare(d, AGNODE, "tooltip", "");
	declare(d, AGNODE, "shape", "box");
	declare(d, AGNODE, "style", "filled");
	declare(d, AGNODE, "fillcolor", "#ffffff");
	declare(d, AGNODE, "fontname", "Helvetica");
	declare(d, AGNODE, "fontsize", "10");
	declare(d, AGNODE, "penwidth", "1.0");
	declare(d, AGEDGE, "label", "");
	declare(d, AGEDGE, "tooltip", "");
	declare(d, AGEDGE, "color", "#666666");
	declare(d, AGEDGE, "fontcolor", MOVE_COLOR);
	declare(d, AGEDGE, "fontname", "Helvetica");
	declare(d, AGEDGE, "fontsize", "9");
	declare(d, AGEDGE, "penwidth", "1.0");
	declare(d, AGEDGE, "constraint", "true");
}

/* From 1.0 to 5.0 points by the part of the longest time. */
static void set_width(void *object, double time_s, double longest_s)
{
	int tenths = 10 + (longest_s > 0 ? (int)lrint(40 * time_s / longest_s) : 0);
	char text[16];

	snprintf(text, sizeof text, "%d.%d", tenths / 10, tenths % 10);
	set(object, "penwidth", text);
}

static void set_tooltip(struct drawing *d, void *object, const char *kind, const char *name)
{
	struct ap_str text;

	ap_str_init(&text, d->ctx->scratch);
	ap_str_addf(&text, "%s ", kind); /* the blank makes cgraph quote it */
	ap_dot_add_name(&text, name);
	set(object, "tooltip", text.s);
}

static void add_cut(struct ap_str *text, const struct ap_pic_node *node)
{
	if (node->cls == AP_PIC_NONE)
		return;
	ap_str_addf(text, "\\n%s", looks[node->cls].word);
	if (*node->cut && node->cls != AP_PIC_WHOLE)
		ap_str_addf(text, " %s", node->cut);
}

/* At least two lines, so that cgraph always quotes it. */
static void set_label(struct drawing *d, Agnode_t *n, const struct ap_pic_node *node)
{
	struct ap_str text;
	char buf[32];

	ap_str_init(&text, d->ctx->scratch);
	ap_dot_add_name(&text, node->type);
	ap_str_add(&text, "\\n");
	ap_dot_add_name(&text, ap_short_name(node->name));
	add_cut(&text, node);
	if (node->time_s > 0)
		ap_str_addf(&text, "\\n%s", ap_format_seconds(node->time_s, buf));
	set(n, "label", text.s);
}

static Agnode_t *add_node(struct drawing *d, char prefix, uint32_t i)
{
	char id[16];

	snprintf(id, sizeof id, "%c%" PRIu32, prefix, i);
	return agnode(d->g, id, 1);
}

static void draw_nodes(struct drawing *d)
{
	for (uint32_t i = 0; i < d->pic->nnode; i++) {
		const struct ap_pic_node *node = &d->pic->node[i];
		Agnode_t *n = d->node[i] = add_node(d, 'n', i);

		set_label(d, n, node);
		set_tooltip(d, n, "operator", node->name);
		set(n, "fillcolor", looks[node->cls].fill);
		set_width(n, node->time_s, d->longest_node_s);
	}
}

/* The blank in front keeps the text off the line, and makes cgraph quote it. */
static void set_moves(struct drawing *d, Agedge_t *e, const struct ap_pic_edge *edge)
{
	struct ap_str text;

	ap_str_init(&text, d->ctx->scratch);
	ap_str_addc(&text, ' ');
	ap_dot_add_name(&text, edge->moves);
	set(e, "label", text.s);
	set(e, "color", MOVE_COLOR);
	set_width(e, edge->time_s, d->longest_edge_s);
}

static void draw_edges(struct drawing *d)
{
	for (uint32_t i = 0; i < d->pic->nedge; i++) {
		const struct ap_pic_edge *edge = &d->pic->edge[i];
		Agedge_t *e = agedge(d->g, d->node[edge->from], d->node[edge->to], NULL, 1);

		set_tooltip(d, e, "tensor", edge->tensor);
		if (*edge->moves)
			set_moves(d, e, edge);
		if (d->degree[edge->from]++ >= MANY_USERS)
			set(e, "constraint", "false");
	}
}

static Agraph_t *add_cluster(struct drawing *d, const char *id, const char *label)
{
	Agraph_t *cluster = agsubg(d->g, mutable(id), 1);

	set(cluster, "label", label);
	return cluster;
}

static Agraph_t *add_cell(struct drawing *d, uint32_t i, const char *cell, uint32_t operators)
{
	struct ap_str label;
	char id[24];

	snprintf(id, sizeof id, "cluster_%" PRIu32, i);
	ap_str_init(&label, d->ctx->scratch);
	ap_dot_add_name(&label, cell);
	ap_str_addf(&label, " (%" PRIu32 ")", operators); /* the blank makes cgraph quote it */
	return add_cluster(d, id, label.s);
}

/* A frame around the operators of each cell that has several. */
static void draw_cells(struct drawing *d)
{
	struct ap_map *cells = ap_map_create(d->ctx->scratch);
	uint32_t *size = AP_NEW_N(d->ctx->scratch, uint32_t, d->pic->nnode);
	ap_id *cell = AP_NEW_N(d->ctx->scratch, ap_id, d->pic->nnode);
	Agraph_t **frame;

	for (uint32_t i = 0; i < d->pic->nnode; i++) {
		cell[i] = AP_NONE;
		if (*d->pic->node[i].cell)
			size[cell[i] = ap_map_put_str(cells, d->pic->node[i].cell, NULL)]++;
	}
	frame = AP_NEW_N(d->ctx->scratch, Agraph_t *, ap_map_size(cells));
	for (uint32_t i = 0; i < d->pic->nnode; i++) {
		ap_id c = cell[i];

		if (c == AP_NONE || size[c] < 2)
			continue;
		if (!frame[c])
			frame[c] = add_cell(d, c, d->pic->node[i].cell, size[c]);
		agsubnode(frame[c], d->node[i], 1);
	}
}

static void draw_legend(struct drawing *d)
{
	uint32_t seen = 0;
	Agraph_t *frame;

	for (uint32_t i = 0; i < d->pic->nnode; i++)
		seen |= UINT32_C(1) << d->pic->node[i].cls;
	if (!(seen & ~(UINT32_C(1) << AP_PIC_NONE)))
		return;
	frame = add_cluster(d, "cluster_legend", "legend: border and line by time per step");
	for (uint32_t c = AP_PIC_WHOLE; c <= AP_PIC_BOTH; c++) {
		Agnode_t *n = add_node(d, 'l', c);
		struct ap_str label;

		ap_str_init(&label, d->ctx->scratch);
		ap_str_addf(&label, "%s\\n%s", looks[c].word, looks[c].legend);
		set(n, "label", label.s);
		set(n, "fillcolor", looks[c].fill);
		agsubnode(frame, n, 1);
	}
}

static void draw(struct drawing *d)
{
	struct ap_str title;

	for (uint32_t i = 0; i < d->pic->nnode; i++)
		d->longest_node_s = fmax(d->longest_node_s, d->pic->node[i].time_s);
	for (uint32_t i = 0; i < d->pic->nedge; i++)
		d->longest_edge_s = fmax(d->longest_edge_s, d->pic->edge[i].time_s);
	d->node = AP_NEW_N(d->ctx->scratch, Agnode_t *, d->pic->nnode);
	d->degree = AP_NEW_N(d->ctx->scratch, uint32_t, d->pic->nnode);
	declare_all(d);
	ap_str_init(&title, d->ctx->scratch);
	ap_dot_add_name(&title, d->pic->title);
	ap_str_add(&title, "\\n"); /* makes cgraph quote it */
	set(d->g, "label", title.s);
	draw_nodes(d);
	draw_cells(d);
	draw_edges(d);
	draw_legend(d);
}

static int draw_to(struct ap_ctx *ctx, const struct ap_picture *pic, struct ap_str *out)
{
	Agmemdisc_t mem = {mem_open, mem_alloc, mem_resize, mem_free, NULL};
	Agiodisc_t io = {in_none, out_put, out_flush};
	Agiddisc_t id = {id_open, id_map, id_alloc, id_free, id_print, id_close, id_register};
	struct host host = {.disc = {&mem, &id, &io}, .arena = ctx->scratch,
		.names = ap_map_create(ctx->scratch)};
	struct drawing d = {.ctx = ctx, .pic = pic};
	int failed;

	d.g = agopen(mutable("plan"), Agdirected, &host.disc);
	draw(&d);
	failed = agwrite(d.g, out);
	return agclose(d.g) | failed;
}

enum ap_status ap_emit_dot(struct ap_ctx *ctx, const struct ap_picture *pic, const char **text,
	size_t *len)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	agusererrf before = agseterrf(swallow);
	struct ap_str out;
	int failed;

	ap_str_init(&out, ctx->arena);
	agreseterrors();
	failed = draw_to(ctx, pic, &out) || agerrors();
	agseterrf(before);
	ap_arena_release(ctx->scratch, mark);
	*text = out.s;
	*len = out.len;
	if (!failed)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_INTERNAL, NULL, NULL,
		"cgraph could not make the picture");
}
