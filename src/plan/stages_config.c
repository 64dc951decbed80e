/* SPDX-License-Identifier: Apache-2.0 */
/* Stages of a graph as MindSpore's stage_config. */
#include "base/arena.h"
#include "base/json.h"
#include "graph/cell.h"
#include "plan/stages.h"

enum { NOT_YET = -1, SEVERAL = -2 };

struct cells {
	struct ap_map *names;
	int32_t *stage; /* by id */
};

static void note_names(struct ap_ctx *ctx, const struct ap_graph *g, struct cells *c)
{
	c->names = ap_map_create(ctx->scratch);
	for (ap_id i = 0; i < g->nnode; i++)
		ap_cell_note(c->names, g->node[i].cell);
	c->stage = AP_NEW_N(ctx->scratch, int32_t, ap_map_size(c->names));
	for (size_t id = 0; id < ap_map_size(c->names); id++)
		c->stage[id] = NOT_YET;
}

static void note_stages(const struct ap_node *n, struct cells *c)
{
	for (ap_id id = ap_cell_find(c->names, n->cell); id != AP_NONE;
			id = ap_cell_around(c->names, ap_map_key(c->names, id, NULL)))
		c->stage[id] = c->stage[id] == NOT_YET || c->stage[id] == n->stage ? n->stage : SEVERAL;
}

void ap_stages_write_config(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct cells c;
	struct ap_jw w;

	note_names(ctx, staged, &c);
	for (ap_id i = 0; i < staged->nnode; i++)
		if (staged->node[i].peer < 0)
			note_stages(&staged->node[i], &c);
	ap_jw_str_init(&w, out, 2);
	ap_jw_obj(&w);
	for (ap_id id = 0; id < ap_map_size(c.names); id++) {
		const char *cell = ap_map_key(c.names, id, NULL);
		ap_id around = ap_cell_around(c.names, cell);

		if (c.stage[id] >= 0 && (around == AP_NONE || c.stage[around] == SEVERAL))
			ap_jw_kint(&w, cell, c.stage[id]);
	}
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, mark);
}
