/* SPDX-License-Identifier: Apache-2.0 */
/* What the document says of cells: read, checked, and what follows for operators and parameters. */
#include "base/arena.h"
#include "base/vec.h"
#include "graph/load.h"

static void read_recompute(struct ap_load *l, const struct ap_jv *v, struct ap_cell *c)
{
	static const char *const keys[] = {"mp_comm_recompute", "parallel_optimizer_comm_recompute",
		"recompute_slice_activation", NULL};
	const struct ap_jv *r = ap_jv_get(v, "recompute");

	if (!r)
		return;
	switch (ap_jv_type(r)) {
	case AP_JBOOL:
		c->recompute = ap_jv_bool(r);
		return;
	case AP_JOBJECT:
		c->recompute = 1;
		ap_load_ok(l, ap_json_known(l->ctx, l->doc, r, keys));
		ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, r, keys[0], &c->mp_comm_recompute));
		ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, r, keys[1],
			&c->parallel_optimizer_comm_recompute));
		ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, r, keys[2],
			&c->recompute_slice_activation));
		return;
	default:
		ap_load_say(l, AP_CHECK_KEY_TYPE, r, NULL,
			"expected a boolean, or an object of the arguments of Cell.recompute()");
	}
}

static void read_cell(struct ap_load *l, const struct ap_jv *v)
{
	static const char *const keys[] = {"name", "stage", "segment", "recompute", "comm_fusion", NULL};
	struct ap_raw_cell cell = {.at = v, .c = {.name = "", .recompute = -1,
		.mp_comm_recompute = true, .parent = AP_NONE}};
	int64_t stage = -1, segment = -1, fusion = -1;

	if (ap_load_ok(l, ap_json_get_str(l->ctx, l->doc, v, "name", &cell.c.name)) && !*cell.c.name)
		ap_load_say(l, AP_CHECK_NAME_EMPTY, ap_jv_get(v, "name"), NULL,
			"the name of a cell is empty");
	if (ap_jv_type(v) != AP_JOBJECT)
		return;
	ap_load_ok(l, ap_json_known(l->ctx, l->doc, v, keys));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "stage", 0, INT32_MAX, &stage));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "segment", 0, INT32_MAX, &segment));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "comm_fusion", 0, INT32_MAX, &fusion));
	read_recompute(l, v, &cell.c);
	cell.c.stage = (int32_t)stage;
	cell.c.segment = (int32_t)segment;
	cell.c.comm_fusion = (int32_t)fusion;
	AP_PUSH(l->ctx->scratch, l->cells, cell);
}

void ap_load_read_cells(struct ap_load *l, const struct ap_jv *root)
{
	const struct ap_jv *arr = NULL;

	if (!ap_load_ok(l, ap_json_opt_arr(l->ctx, l->doc, root, "cells", &arr)) || !arr)
		return;
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v))
		read_cell(l, v);
}

void ap_check_cell_unique(struct ap_load *l)
{
	struct ap_map *names = ap_map_create(l->ctx->arena);

	for (size_t i = 0; i < l->cells.n; i++) {
		const struct ap_raw_cell *c = &l->cells.v[i];
		bool fresh;

		ap_map_put_str(names, c->c.name, &fresh);
		if (!fresh && *c->c.name)
			ap_load_say(l, AP_CHECK_CELL_UNIQUE, ap_jv_get(c->at, "name"), NULL,
				"cell \"%s\" stands there twice", ap_load_name(l, c->c.name));
	}
}

void ap_check_cell_known(struct ap_load *l)
{
	struct ap_map *cells = ap_map_create(l->ctx->arena);

	if (l->cells.n == 0 || l->incomplete)
		return;
	for (size_t i = 0; i < l->nodes.n; i++)
		ap_cell_note(cells, l->nodes.v[i].n.cell);
	for (size_t i = 0; i < l->cells.n; i++) {
		const struct ap_raw_cell *c = &l->cells.v[i];

		if (*c->c.name && ap_map_get_str(cells, c->c.name) == AP_NONE)
			ap_load_say(l, AP_CHECK_CELL_KNOWN, ap_jv_get(c->at, "name"), NULL,
				"no operator is in a cell \"%s\"%s", ap_load_name(l, c->c.name),
				ap_cell_meant(l->ctx, cells, c->c.name));
	}
}

/* The innermost of a cell and those around it that says something of `what`. */
static ap_id who_says(const struct ap_cell *cell, ap_id c, bool (*says)(const struct ap_cell *c))
{
	while (c != AP_NONE && !says(&cell[c]))
		c = cell[c].parent;
	return c;
}

static bool says_recompute(const struct ap_cell *c)
{
	return c->recompute >= 0;
}

static bool says_fusion(const struct ap_cell *c)
{
	return c->comm_fusion >= 0;
}

static void place_fusion(const struct ap_graph *g, struct ap_tensor *t)
{
	ap_id c;

	if (t->kind != AP_TENSOR_PARAM || t->comm_fusion >= 0 || t->owner.node == AP_NONE)
		return;
	c = who_says(g->cell, g->node[t->owner.node].in_cell, says_fusion);
	if (c != AP_NONE)
		t->comm_fusion = g->cell[c].comm_fusion;
}

void ap_load_place_cells(struct ap_load *l, struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node)
{
	struct ap_cell *cell = AP_NEW_N(l->ctx->arena, struct ap_cell, l->cells.n);
	struct ap_map *named = ap_map_create(l->ctx->arena);

	g->ncell = (uint32_t)l->cells.n;
	g->cell = cell;
	for (uint32_t c = 0; c < g->ncell; c++) {
		cell[c] = l->cells.v[c].c;
		ap_map_put_str(named, cell[c].name, NULL);
	}
	for (uint32_t c = 0; c < g->ncell; c++)
		cell[c].parent = ap_cell_around(named, cell[c].name);
	for (ap_id i = 0; g->ncell > 0 && i < g->nnode; i++) {
		ap_id c = node[i].in_cell = ap_cell_find(named, node[i].cell);

		c = who_says(cell, c, says_recompute);
		node[i].recompute_cell = c != AP_NONE && cell[c].recompute == 1 ? c : AP_NONE;
	}
	for (ap_id t = 0; g->ncell > 0 && t < g->ntensor; t++)
		place_fusion(g, &tensor[t]);
}
