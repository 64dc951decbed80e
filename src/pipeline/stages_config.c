/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of a graph as MindSpore's stage_config, and segments in the same form. */
#include "base/arena.h"
#include "base/json_write.h"
#include "graph/cell.h"
#include "pipeline/stages.h"

enum { NOT_YET = -1, SEVERAL = -2 };

struct cells {
	struct ap_map *names;
	int32_t *part; /* by id */
};

static int32_t stage_of(const struct ap_node *n)
{
	return n->stage;
}

static int32_t segment_of(const struct ap_node *n)
{
	return n->segment;
}

static void note_names(struct ap_ctx *ctx, const struct ap_graph *g, struct cells *c)
{
	c->names = ap_map_create(ctx->scratch);
	for (ap_id i = 0; i < g->nnode; i++)
		ap_cell_note(c->names, g->node[i].cell);
	c->part = AP_NEW_N(ctx->scratch, int32_t, ap_map_size(c->names));
	for (size_t id = 0; id < ap_map_size(c->names); id++)
		c->part[id] = NOT_YET;
}

static void note_part(const struct ap_node *n, int32_t part, struct cells *c)
{
	for (ap_id id = ap_cell_find(c->names, n->cell); id != AP_NONE;
			id = ap_cell_around(c->names, ap_map_key(c->names, id, NULL)))
		c->part[id] = c->part[id] == NOT_YET || c->part[id] == part ? part : SEVERAL;
}

/* The part that all operators of a cell are in, on the scratch arena. */
static void find_cells(struct ap_ctx *ctx, const struct ap_graph *staged,
	int32_t (*part_of)(const struct ap_node *n), struct cells *c)
{
	note_names(ctx, staged, c);
	for (ap_id i = 0; i < staged->nnode; i++)
		if (staged->node[i].peer < 0)
			note_part(&staged->node[i], part_of(&staged->node[i]), c);
}

static void write_parts(struct ap_ctx *ctx, const struct ap_graph *staged,
	int32_t (*part_of)(const struct ap_node *n), struct ap_str *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct cells c;
	struct ap_jw w;

	find_cells(ctx, staged, part_of, &c);
	ap_jw_str_init(&w, out, 2);
	ap_jw_obj(&w);
	for (ap_id id = 0; id < ap_map_size(c.names); id++) {
		const char *cell = ap_map_key(c.names, id, NULL);
		ap_id around = ap_cell_around(c.names, cell);

		if (c.part[id] >= 0 && (around == AP_NONE || c.part[around] == SEVERAL))
			ap_jw_kint(&w, cell, c.part[id]);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, mark);
}

void ap_stages_write_config(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out)
{
	write_parts(ctx, staged, stage_of, out);
}

void ap_stages_write_segments(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out)
{
	write_parts(ctx, staged, segment_of, out);
}

/* Is it in a cell of one stage? */
static bool is_placed(const struct cells *c, const struct ap_node *n)
{
	ap_id cell = ap_cell_find(c->names, n->cell);

	return cell != AP_NONE && c->part[cell] >= 0;
}

/* The latest stage of what a node reads, where[] of which is known; else its own. */
static int32_t latest_read(const struct ap_graph *g, const int32_t *where, const struct ap_node *n)
{
	int32_t latest = NOT_YET;

	for (uint16_t x = 0; x < n->bound.nin; x++) {
		ap_id from = g->tensor[n->in[x]].producer;

		if (from != AP_NONE && where[from] > latest)
			latest = where[from];
	}
	return latest == NOT_YET ? n->stage : latest;
}

void ap_stages_astray(struct ap_ctx *ctx, const struct ap_graph *staged, uint32_t *n, const ap_id **out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	int32_t *where = AP_NEW_N(ctx->scratch, int32_t, staged->nnode);
	ap_id *astray = AP_NEW_N(ctx->arena, ap_id, staged->nnode);
	struct cells c;

	find_cells(ctx, staged, stage_of, &c);
	*n = 0;
	for (ap_id i = 0; i < staged->nnode; i++) {
		const struct ap_node *node = &staged->node[i];
		bool sent = node->peer >= 0; /* not there when MindSpore places what it goes to */

		where[i] = !sent && is_placed(&c, node) ? node->stage : latest_read(staged, where, node);
		if (!sent && where[i] != node->stage)
			astray[(*n)++] = i;
	}
	*out = astray;
	ap_arena_release(ctx->scratch, mark);
}
