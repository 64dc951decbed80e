/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/op_strategy.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/move.h"
#include "cost/recompute.h"
#include "graph/cell.h"
#include "shard/imposed.h"
#include "shard/layout.h"
#include "shard/strategy.h"

#define DATASET_CELL "-_VirtualDatasetCell/"

/* Does MindSpore ask for the operator's strategy? Not for sends, which are added later, nor for
 * casts, which accept any layout. Attention that exchanges heads for the sequence is several operators
 * of MindFormers' there. */
static bool is_asked(const struct ap_node *n)
{
	return n->peer < 0 && !n->bound.swaps && strcmp(n->type, "Cast") != 0;
}

/* Is the template's value kept? Any strategy of a Reshape will do. */
static bool is_kept(const struct ap_node *n)
{
	return strcmp(n->type, "Reshape") == 0;
}

/* Names of the cells that a plan recomputes, in scratch. */
static const struct ap_map *recomputed_cells(struct ap_ctx *ctx, const struct ap_plan *p)
{
	struct ap_map *names = ap_map_create(ctx->scratch);
	const struct ap_again_cell *cell;
	uint32_t n;

	ap_recompute_cells(ctx, p->graph, p->step, &n, &cell);
	for (uint32_t i = 0; i < n; i++)
		ap_map_put_str(names, cell[i].name, NULL);
	return names;
}

/* The layout in which graph input i arrives. */
static struct ap_layout input_layout(const struct ap_plan *p, uint32_t i)
{
	const struct ap_tensor *t = &p->graph->tensor[p->graph->input[i]];
	struct ap_arrival given = {0};
	struct ap_layout layout;

	if (i < p->step->narrival)
		given = p->step->arrival[i];
	ap_input_layout(&t->shape, t->batch, given, p->machine->ndev, p->step, &layout);
	return layout;
}

/* The strategy of the operator that feeds the graph's inputs to devices. */
static struct ap_strategy cuts_of_inputs(struct ap_ctx *ctx, const struct ap_plan *p)
{
	uint32_t n = p->graph->ninput;
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, n);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->scratch, n, sizeof *cut);

	for (uint32_t i = 0; i < n; i++) {
		struct ap_layout layout = input_layout(p, i);

		rank[i] = (uint8_t)layout.rank;
		for (int d = 0; d < layout.rank; d++)
			cut[i][d] = layout.dim[d].cut;
	}
	return (struct ap_strategy){n, rank, (const int32_t(*)[AP_MAX_RANK])cut};
}

/* Can no strategy express how inputs arrive? Strategies repeat on the left: neighbouring ranks get
 * different parts. */
static bool inputs_need_layouts(const struct ap_plan *p)
{
	for (uint32_t i = 0; i < p->graph->ninput; i++) {
		struct ap_layout layout = input_layout(p, i);

		for (int d = 0; d < layout.rank; d++)
			if (layout.dim[d].cut > 1 && layout.dim[d].stride != 1)
				return true;
	}
	return false;
}

static void write_strategy(struct ap_jw *w, struct ap_strategy c, int64_t stage)
{
	ap_jw_obj_flat(w);
	ap_jw_karr_flat(w, "parallel_strategy");
	for (uint32_t i = 0; i < c.n; i++)
		ap_jw_int32s(w, c.cut[i], c.rank[i]);
	ap_jw_end(w);
	ap_jw_kint(w, "stage", stage);
	ap_jw_end(w);
}

/* The key after `key` among 0 to n - 1 in text order (0, 1, 10, 11, 2), in which MindSpore reads
 * layouts. */
static uint32_t next_key(uint32_t key, uint32_t n)
{
	if (!key)
		return 1;
	if (key < n && key * (uint64_t)10 < n)
		return key * 10;
	while (key % 10 == 9 || key + 1 == n)
		key /= 10;
	return key + 1;
}

/* Writes a layout; its axes are named by number. */
static void write_layout(struct ap_jw *w, uint32_t key, const struct ap_dev_matrix *dev,
	const struct ap_layout *layout)
{
	char text[16];

	snprintf(text, sizeof text, "%" PRIu32, key);
	ap_jw_kobj_flat(w, text);
	ap_jw_karr_flat(w, "alias_name");
	for (int i = dev->n; i-- > 0;) {
		snprintf(text, sizeof text, "axis%d", i);
		ap_jw_str(w, text);
	}
	ap_jw_end(w);
	ap_jw_key(w, "dev_matrix");
	ap_jw_int32s(w, dev->axis, (size_t)dev->n);
	ap_jw_kbool(w, "interleaved_parallel", false);
	ap_jw_karr_flat(w, "tensor_map");
	for (int d = 0; d < layout->rank; d++) {
		struct ap_cut_dim dim = layout->dim[d];
		int64_t stride = 1, bound = (int64_t)dim.stride * dim.cut;
		int32_t axes[AP_MAX_FACTOR + 1];
		int n = 0; /* axes of dev that cut the dimension, counted from the right, outermost first */

		for (int i = 0; i < dev->n; i++)
			stride *= dev->axis[i];
		for (int i = 0; dim.cut > 1 && i < dev->n; i++) {
			stride /= dev->axis[i];
			if (stride >= dim.stride && stride < bound)
				axes[n++] = dev->n - 1 - i;
		}
		if (!n)
			axes[n++] = -1;
		ap_jw_int32s(w, axes, (size_t)n);
	}
	ap_jw_end(w);
	ap_jw_end(w);
}

static void write_layouts(struct ap_jw *w, const struct ap_placement *place, const struct ap_layout *layout,
	uint32_t n)
{
	struct ap_dev_matrix dev;

	ap_dev_matrix_standard(place, &dev);
	ap_jw_obj_flat(w);
	for (uint32_t i = 0, key = 0; i < n; i++, key = next_key(key, n))
		write_layout(w, key, &dev, &layout[i]);
	ap_jw_end(w);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* A device matrix that can express all inputs' layouts; n 0 if there is none. */
static struct ap_dev_matrix common_matrix(struct ap_ctx *ctx, int64_t ndev, const struct ap_layout *layout,
	uint32_t ninput)
{
	int64_t *bound = AP_NEW_N(ctx->scratch, int64_t, 2 * (size_t)ninput * AP_MAX_RANK + 2);
	struct ap_dev_matrix dev = {0};
	size_t n = 0;

	bound[n++] = 1;
	bound[n++] = ndev;
	for (uint32_t i = 0; i < ninput; i++)
		for (int d = 0; d < layout[i].rank; d++)
			if (layout[i].dim[d].cut > 1) {
				bound[n++] = layout[i].dim[d].stride;
				bound[n++] = (int64_t)layout[i].dim[d].stride * layout[i].dim[d].cut;
			}
	qsort(bound, n, sizeof *bound, by_value);
	for (size_t i = n - 1; i > 0; i--) {
		if (bound[i] == bound[i - 1])
			continue;
		if (bound[i] % bound[i - 1] || dev.n > AP_MAX_FACTOR)
			return (struct ap_dev_matrix){0};
		dev.axis[dev.n++] = (int32_t)(bound[i] / bound[i - 1]);
	}
	return dev;
}

static void write_input_layouts(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p)
{
	uint32_t n = p->graph->ninput;
	struct ap_layout *layout = AP_NEW_N(ctx->scratch, struct ap_layout, n);
	struct ap_dev_matrix common;

	for (uint32_t i = 0; i < n; i++)
		layout[i] = input_layout(p, i);
	common = common_matrix(ctx, p->machine->ndev, layout, n);
	ap_jw_obj_flat(w);
	for (uint32_t i = 0, key = 0; i < n; i++, key = next_key(key, n)) {
		struct ap_dev_matrix own = common;
		int32_t map[AP_MAX_RANK];

		if (!common.n)
			ap_layout_dev_matrix(&layout[i], p->machine->ndev, &own, map);
		write_layout(w, key, &own, &layout[i]);
	}
	ap_jw_end(w);
}

static struct ap_strategy cuts_of_results(struct ap_ctx *ctx, const struct ap_placement *place, uint32_t n)
{
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, n);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->scratch, n, sizeof *cut);

	for (uint32_t i = 0; i < n; i++) {
		rank[i] = place->bound->out[i].rank;
		ap_strategy_vector(place, &place->bound->out[i], cut[i]);
	}
	return (struct ap_strategy){n, rank, (const int32_t(*)[AP_MAX_RANK])cut};
}

struct said { /* taken from a template */
	uint32_t nout; /* leading results in a map of results */
	int64_t stage; /* of a strategy: in MindSpore that of the saving rank, mostly 0 for all */
};

/* Writes the value of an operator, or of the inputs (AP_NONE), for a map: vectors, or layouts of
 * operands or results on the operator's dev_matrix; for inputs, on a common dev_matrix if there is
 * one. Not for nested maps. */
static void write_value(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p, ap_id node,
	enum ap_op_map map, struct said said)
{
	const struct ap_plan_op *op = node == AP_NONE ? NULL : &p->op[node];
	struct ap_mark mark = ap_arena_mark(ctx->scratch);

	if (map == AP_OP_STRATEGY)
		write_strategy(w, op ? ap_strategy_of(ctx->scratch, &op->place) : cuts_of_inputs(ctx, p),
			said.stage);
	else if (!op)
		write_input_layouts(ctx, w, p);
	else if (map == AP_OP_OUT_STRATEGY)
		write_strategy(w, cuts_of_results(ctx, &op->place, said.nout), said.stage);
	else if (map == AP_OP_LAYOUT)
		write_layouts(w, &op->place, op->in, op->place.bound->nin);
	else
		write_layouts(w, &op->place, op->out, said.nout);
	ap_arena_release(ctx->scratch, mark);
}

struct line { /* of a map without template */
	const char *name;
	ap_id node; /* AP_NONE: graph inputs */
};

static int by_name(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Name of the operator that feeds the inputs. If the script has it in a cell of its own, all
 * operators' scopes contain the cell; else MindSpore adds it outside cells. NULL if the graph has
 * the operator, or no inputs. */
static const char *dataset_name(struct ap_ctx *ctx, const struct ap_graph *g)
{
	const char *cell = NULL;

	for (ap_id i = 0; i < g->nnode; i++) {
		if (!strcmp(g->node[i].type, "VirtualDataset"))
			return NULL;
		if (!cell && (cell = strstr(g->node[i].name, DATASET_CELL)))
			cell = ap_arena_printf(ctx->scratch, "%.*s" DATASET_CELL AP_OP_DATASET "-op0",
				(int)(cell - g->node[i].name), g->node[i].name);
	}
	if (!g->ninput)
		return NULL;
	return cell ? cell : "Default/" AP_OP_DATASET "-op0";
}

/* Does the map hold the operator's value: of operands, or of a result whose sums require it? */
static bool belongs(const struct ap_plan *p, ap_id node, enum ap_op_map map)
{
	bool placed = node == AP_NONE && inputs_need_layouts(p);

	if (map == AP_OP_STRATEGY || map == AP_OP_LAYOUT)
		return placed == (map == AP_OP_LAYOUT);
	return map == AP_OP_OUT_STRATEGY && node != AP_NONE &&
		ap_placement_says_out(&p->op[node].place, p->step);
}

static void write_map(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p, enum ap_op_map map)
{
	const struct ap_graph *g = p->graph;
	const struct ap_map *recomputed = recomputed_cells(ctx, p);
	struct line dataset = {dataset_name(ctx, g), AP_NONE};
	AP_VEC(struct line) lines = {0};

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		struct line line = {n->name, i};

		if (!is_asked(n) || !belongs(p, i, map))
			continue;
		if (!ap_op_says_recomputed(n->name) && ap_cell_find(recomputed, n->cell) != AP_NONE)
			line.name = ap_arena_printf(ctx->scratch, AP_OP_RECOMPUTED "%s", n->name);
		AP_PUSH(ctx->scratch, lines, line);
	}
	if (dataset.name && belongs(p, AP_NONE, map))
		AP_PUSH(ctx->scratch, lines, dataset);
	if (!lines.n && map != AP_OP_STRATEGY && map != AP_OP_OUT_STRATEGY)
		return;
	if (lines.n)
		qsort(lines.v, lines.n, sizeof *lines.v, by_name);
	ap_jw_kobj(w, ap_op_map_key[map]);
	for (size_t i = 0; i < lines.n; i++) {
		ap_jw_key(w, lines.v[i].name);
		write_value(ctx, w, p, lines.v[i].node, map, (struct said){.nout = 1});
	}
	ap_jw_end(w);
}

static bool is_layout(enum ap_op_map map)
{
	return map == AP_OP_LAYOUT || map == AP_OP_OUT_LAYOUT;
}

static const struct ap_jv *first_of(const struct ap_jv *v, enum ap_op_map map)
{
	return ap_jv_first(is_layout(map) ? v : ap_jv_get(v, "parallel_strategy"));
}

static size_t length_of(const struct ap_jv *v, enum ap_op_map map)
{
	return ap_jv_count(is_layout(map) ? ap_jv_get(v, "tensor_map") : v);
}

/* Lengths of a value's vectors or tensor_maps. */
struct form {
	uint32_t n;
	const uint8_t *rank;
};

/* Does a value have this form? For results it may cover only the first. */
static bool form_fits(const struct ap_jv *value, enum ap_op_map map, struct form form)
{
	uint32_t i = 0;

	for (const struct ap_jv *v = first_of(value, map); v; v = ap_jv_next(v), i++)
		if (i == form.n || length_of(v, map) != form.rank[i])
			return false;
	return i == form.n || !ap_op_map_is_asked(map);
}

static struct form form_of_node(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node, enum ap_op_map map)
{
	const struct ap_bound *b = p->op[node].place.bound;
	const struct ap_operand *t = map == AP_OP_LAYOUT ? b->in : b->out;
	uint32_t n = map == AP_OP_LAYOUT ? b->nin : b->nout;
	uint8_t *rank;

	if (map == AP_OP_STRATEGY) {
		struct ap_strategy cuts = ap_strategy_of(ctx->scratch, &p->op[node].place);

		return (struct form){cuts.n, cuts.rank};
	}
	rank = AP_NEW_N(ctx->scratch, uint8_t, n);
	for (uint32_t i = 0; i < n; i++)
		rank[i] = t[i].rank;
	return (struct form){n, rank};
}

/* Is this the name of the operator that feeds the inputs, as far as the form of its value shows? */
static bool is_dataset(struct ap_ctx *ctx, const struct ap_op_template *t, ap_id id, const struct ap_plan *p)
{
	static const enum ap_op_map maps[] = {AP_OP_LAYOUT, AP_OP_STRATEGY};
	const struct ap_op_name *name = &t->name[id];
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_strategy cuts;
	bool fits = !name->at[AP_OP_NESTED];

	if (!ap_op_prim_is(ap_op_name_at(t, id), AP_OP_DATASET))
		return false;
	cuts = cuts_of_inputs(ctx, p);
	for (size_t i = 0; i < AP_COUNT(maps); i++)
		fits = fits && (!name->at[maps[i]] || form_fits(name->at[maps[i]], maps[i],
			(struct form){cuts.n, cuts.rank}));
	ap_arena_release(ctx->scratch, mark);
	return fits;
}

/* Is it a strategy without vectors, next to layouts? */
static bool is_empty(const struct ap_op_name *name, enum ap_op_map map)
{
	return map == AP_OP_STRATEGY && name->at[AP_OP_LAYOUT] && !first_of(name->at[map], map);
}

struct filling { /* fills a template with a plan's values */
	struct ap_ctx *ctx;
	struct ap_jw *w;
	const struct ap_plan *p;
	const struct ap_op_template *t;
	struct ap_op_match match;
	bool placed; /* inputs need layouts */
};

/* Does the plan have a value for this name? If not, the template's stays. */
static bool is_said(const struct filling *f, ap_id id)
{
	ap_id node = f->match.node[id];

	return node == AP_NONE ? is_dataset(f->ctx, f->t, id, f->p) : !is_kept(&f->p->graph->node[node]);
}

/* Does the plan add a value that the template lacks: results, or inputs as layouts? */
static bool is_added(const struct filling *f, ap_id id, enum ap_op_map map)
{
	const struct ap_op_name *name = &f->t->name[id];
	ap_id node = f->match.node[id];

	if (name->at[map] || !is_said(f, id))
		return false;
	if (node == AP_NONE)
		return f->placed && map == AP_OP_LAYOUT;
	return ap_placement_says_out(&f->p->op[node].place, f->p->step) &&
		map == (name->at[AP_OP_LAYOUT] ? AP_OP_OUT_LAYOUT : AP_OP_OUT_STRATEGY);
}

static void fill_map(struct filling *f, enum ap_op_map map)
{
	bool wanted = f->t->map[map] || map == AP_OP_STRATEGY || map == AP_OP_OUT_STRATEGY;

	for (ap_id id = 0; id < f->t->n && !wanted; id++)
		wanted = is_added(f, id, map);
	if (!wanted)
		return;
	ap_jw_kobj(f->w, ap_op_map_key[map]);
	if (f->t->map[map])
		for (const struct ap_jv *v = ap_jv_first(f->t->map[map]); v; v = ap_jv_next(v)) {
			ap_id id = ap_map_get_str(f->t->ids, ap_jv_key(v));
			bool vectors = map == AP_OP_STRATEGY || map == AP_OP_OUT_STRATEGY;
			struct said said = {.nout = (uint32_t)ap_jv_count(vectors ?
				ap_jv_get(v, "parallel_strategy") : v)};

			if (vectors)
				ap_jv_int(f->t->doc, ap_jv_get(v, "stage"), &said.stage);
			if (id == AP_NONE || !is_said(f, id) || is_empty(&f->t->name[id], map)) {
				ap_jw_key(f->w, ap_jv_key(v));
				ap_jw_value(f->w, f->t->doc, v);
			} else if (f->match.node[id] != AP_NONE || map != AP_OP_STRATEGY || !f->placed) {
				ap_jw_key(f->w, ap_jv_key(v));
				write_value(f->ctx, f->w, f->p, f->match.node[id], map, said);
			}
		}
	for (ap_id id = 0; id < f->t->n; id++)
		if (is_added(f, id, map)) {
			ap_jw_key(f->w, ap_op_name_at(f->t, id));
			write_value(f->ctx, f->w, f->p, f->match.node[id], map, (struct said){.nout = 1});
		}
	ap_jw_end(f->w);
}

void ap_op_strategy_write(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_op_template *t,
	ap_write_fn *write, void *user)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct filling f = {.ctx = ctx, .p = p, .t = t, .placed = inputs_need_layouts(p)};
	struct ap_jw w;

	f.w = &w;
	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_kint(&w, "current_stage", t ? t->current_stage : 0);
	if (t)
		ap_op_match_make(ctx, t, p->graph, &f.match);
	for (enum ap_op_map map = 0; map < AP_OP_MAP_COUNT; map++)
		if (t)
			fill_map(&f, map);
		else
			write_map(ctx, &w, p, map);
	ap_jw_end(&w);
	ap_jw_finish(&w);
	ap_arena_release(ctx->scratch, mark);
}

struct checking {
	struct ap_ctx *ctx;
	const struct ap_op_template *t;
	const struct ap_plan *p;
	enum ap_status st;
};

/* Reports a name that the plan does not have. */
static void check_alone(struct checking *c, ap_id id)
{
	static const char *const undecided[] = {"Reshape", "Cast", "VirtualOutput"};
	static const enum ap_op_map maps[] = {AP_OP_STRATEGY, AP_OP_LAYOUT, AP_OP_NESTED};
	const char *name = ap_op_name_at(c->t, id);
	const struct ap_jv *place = NULL;

	for (size_t i = 0; i < AP_COUNT(undecided); i++)
		if (ap_op_prim_is(name, undecided[i]))
			return;
	if (is_dataset(c->ctx, c->t, id, c->p))
		return;
	for (size_t i = 0; i < AP_COUNT(maps) && !place; i++)
		place = c->t->name[id].at[maps[i]];
	if (!ap_op_prim_is(name, AP_OP_DATASET))
		c->st = ap_json_report(c->ctx, c->t->doc, place, AP_ERROR, AP_MEANING, name,
			"op-strategy-operators", "no operator of the plan has this name; the graph has to be "
			"of the network that the file was saved of");
	else if (ap_json_report(c->ctx, c->t->doc, place, AP_WARNING, AP_OK, name,
			"op-strategy-inputs", "does not take what the graph's inputs are; what is said of it "
			"stays as it was saved") != AP_OK)
		c->st = AP_MEANING;
}

/* Checks that the number and lengths of vectors are the operator's. */
static void check_form(struct checking *c, ap_id id, ap_id node, enum ap_op_map map)
{
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	const struct ap_jv *value = c->t->name[id].at[map];
	struct form form = form_of_node(c->ctx, c->p, node, map);
	struct ap_str has, takes;

	if (!form_fits(value, map, form)) {
		ap_str_init(&has, c->ctx->arena);
		ap_str_init(&takes, c->ctx->arena);
		for (const struct ap_jv *v = first_of(value, map); v; v = ap_jv_next(v))
			ap_str_addf(&has, "%s%zu", has.len ? ", " : "", length_of(v, map));
		for (uint32_t i = 0; i < form.n; i++)
			ap_str_addf(&takes, "%s%d", i ? ", " : "", form.rank[i]);
		c->st = ap_json_report(c->ctx, c->t->doc, value, AP_ERROR, AP_MEANING,
			ap_op_name_at(c->t, id), "op-strategy-form",
			"has %s of these lengths: %s; operator \"%s\" of the plan takes: %s",
			is_layout(map) ? "layouts" : "vectors", has.len ? has.s : "none",
			ap_diag_name(c->ctx->diag, c->p->graph->node[node].name),
			takes.len ? takes.s : "none");
	}
	ap_arena_release(c->ctx->scratch, mark);
}

static void check_pair(struct checking *c, ap_id id, ap_id node)
{
	const struct ap_op_name *name = &c->t->name[id];

	if (is_kept(&c->p->graph->node[node]))
		return;
	for (enum ap_op_map map = 0; map < AP_OP_MAP_COUNT; map++)
		if (name->at[map] && (map == AP_OP_NESTED || map == AP_OP_OUT_NESTED))
			c->st = ap_json_report(c->ctx, c->t->doc, name->at[map], AP_ERROR, AP_MEANING,
				ap_op_name_at(c->t, id), "op-strategy-nested",
				"has layouts of tuples of tensors, in which no plan can be said; save the "
				"file without a Layout of such operands");
		else if (name->at[map] && !is_empty(name, map))
			check_form(c, id, node, map);
}

/* MindSpore looks for the names that result from the plan's calls of recompute(). */
static enum ap_status check_recomputed(struct checking *c, const struct ap_op_match *match)
{
	struct ap_where where = {.file = ap_json_file(c->t->doc)};
	struct ap_mark mark = ap_arena_mark(c->ctx->scratch);
	const struct ap_map *cells = recomputed_cells(c->ctx, c->p);
	uint32_t n = 0;

	for (ap_id i = 0; i < c->t->n; i++)
		n += match->node[i] != AP_NONE && ap_op_says_recomputed(ap_op_name_at(c->t, i)) !=
			(ap_cell_find(cells, c->p->graph->node[match->node[i]].cell) != AP_NONE);
	ap_arena_release(c->ctx->scratch, mark);
	if (!n)
		return AP_OK;
	return ap_diag_add(c->ctx->diag, AP_WARNING, AP_OK, &where, "op-strategy-recompute",
		"%" PRIu32 " names begin with \"" AP_OP_RECOMPUTED "\" where the plan does not recompute "
		"their cell, or do not where it does; MindSpore will ask for others, unless the file was "
		"saved with the calls of recompute() that the training makes", n);
}

enum ap_status ap_op_template_check(struct ap_ctx *ctx, const struct ap_op_template *t,
	const struct ap_plan *p)
{
	struct checking c = {.ctx = ctx, .t = t, .p = p};
	struct ap_where where = {.file = ap_json_file(t->doc)};
	struct ap_op_match match;

	ap_op_match_make(ctx, t, p->graph, &match);
	for (ap_id i = 0; i < t->n; i++)
		if (match.node[i] == AP_NONE)
			check_alone(&c, i);
		else
			check_pair(&c, i, match.node[i]);
	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (is_asked(&p->graph->node[i]) && !match.found[i])
			c.st = ap_json_report(ctx, t->doc, ap_json_root(t->doc), AP_ERROR, AP_MEANING, NULL,
				"op-strategy-operators", "no name for operator \"%s\" of the plan",
				ap_diag_path(ctx->diag, p->graph->node[i].name));
	AP_TRY(c.st);
	AP_TRY(check_recomputed(&c, &match));
	if (match.renumbered)
		AP_TRY(ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &where, "op-strategy-numbers",
			"%" PRIu32 " of %" PRIu32 " names have other numbers than the plan's; they were "
			"matched by scope and type, in the order of their numbers", match.renumbered, t->n));
	return AP_OK;
}
