/* SPDX-License-Identifier: Apache-2.0 */
/* A dump states whether an operator is in a recomputed cell, but not in which. It is taken to be
 * the outermost cell whose operators all are, except lists of cells, which run nothing
 * themselves. */
#include "import/cells.h"

#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "graph/cell.h"

struct tally {
	uint32_t all, recomputed;
	bool list; /* a CellList or SequentialCell */
	bool told;
};

struct cells {
	struct ap_ctx *ctx;
	struct ap_import *g;
	struct ap_map *names;
	AP_VEC(struct tally) tallies; /* by id of names */
};

/* Length of the cell path extended by one component; 0 at the end. */
static size_t next_cell(const char *cell, size_t len)
{
	if (!cell[len])
		return 0;
	len += len > 0;
	return len + strcspn(cell + len, ".");
}

/* Is component `depth` of the scope a list of cells? */
static bool is_list(const char *scope, size_t depth)
{
	static const char *const classes[] = {"-CellList/", "-SequentialCell/"};
	const char *part = scope;

	for (size_t i = 0; part && i < depth; i++)
		part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL;
	for (size_t i = 0; part && i < 2; i++) {
		const char *dash = memchr(part, '-', strcspn(part, "/"));

		if (dash && !strncmp(dash, classes[i], strlen(classes[i])))
			return true;
	}
	return false;
}

static const char *cell_of(struct ap_ctx *ctx, const struct ap_import_op *op)
{
	return op->cell ? op->cell : ap_graph_cell(ctx, op->name);
}

static size_t count(const char *text, char c)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == c;
	return n;
}

static struct tally *tally(struct cells *c, const char *cell, size_t len)
{
	bool fresh;
	ap_id id = ap_map_put(c->names, cell, len, &fresh);

	if (fresh)
		AP_PUSH(c->ctx->arena, c->tallies, (struct tally){0});
	return &c->tallies.v[id];
}

static void tell(struct cells *c, struct ap_import_op *op, const char *cell)
{
	for (size_t len = 0; (len = next_cell(cell, len));) {
		struct tally *t = tally(c, cell, len);
		struct ap_import_cell out = {.keeps_comm = op->keeps_comm, .slices = op->slices};

		if (t->list || t->recomputed < t->all)
			continue;
		if (t->told)
			return;
		t->told = true;
		out.name = ap_arena_strndup(c->ctx->arena, cell, len);
		AP_PUSH(c->ctx->arena, c->g->cells, out);
		return;
	}
	if (op->recompute < 0)
		op->recompute = 1;
}

void ap_import_find_cells(struct ap_ctx *ctx, struct ap_import *g)
{
	struct cells c = {.ctx = ctx, .g = g, .names = ap_map_create(ctx->arena)};
	bool any = false;

	for (size_t i = 0; i < g->ops.n; i++)
		any |= g->ops.v[i].in_recomputed;
	for (size_t i = 0; any && i < g->ops.n; i++) {
		const struct ap_import_op *op = &g->ops.v[i];
		const char *cell = cell_of(ctx, &g->ops.v[i]);
		size_t parts = *cell ? count(cell, '.') + 1 : 0, above = count(op->cell_class, '/') - parts;

		for (size_t len = 0, k = 0; (len = next_cell(cell, len)); k++) {
			struct tally *t = tally(&c, cell, len);

			t->all++;
			t->recomputed += op->in_recomputed;
			t->list |= is_list(op->cell_class, above + k);
		}
	}
	for (size_t i = 0; any && i < g->ops.n; i++)
		if (g->ops.v[i].in_recomputed)
			tell(&c, &g->ops.v[i], cell_of(ctx, &g->ops.v[i]));
}
