/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of cells, and who goes by it; stages put into a graph, by hand. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "graph/cell.h"
#include "graph/graph.h"
#include "graph/staged.h"
#include "graph_fixture.h"
#include "harness.h"

#define NODE(scope, type, in, out) \
	"{\"name\":\"Default/net-WithLossCell/" scope "\",\"type\":\"" type "\",\"inputs\":[" in "]," \
	"\"outputs\":[{\"name\":\"" out "\"}]"
#define HEAD \
	"{\"schema\":\"autopar-graph/1\",\"name\":\"cells\"," \
	"\"inputs\":[{\"name\":\"x\",\"shape\":[8,4],\"dtype\":\"float32\",\"batch_dim\":0}]," \
	"\"parameters\":[{\"name\":\"table\",\"shape\":[4,4],\"dtype\":\"float32\"}," \
	"{\"name\":\"w\",\"shape\":[4,4],\"dtype\":\"float32\",\"comm_fusion\":9}," \
	"{\"name\":\"b\",\"shape\":[4],\"dtype\":\"float32\"}]," \
	"\"constants\":[{\"name\":\"c\",\"shape\":[4],\"dtype\":\"float32\"}],\"operators\":[" \
	NODE("_backbone-Net/embed-Dense/MatMul-op0", "MatMul", "\"x\",\"table\"", "e") "}," \
	NODE("_backbone-Net/embed-Dense/Add-op0", "Add", "\"e\",\"c\"", "e2") "}," \
	NODE("_backbone-Net/layer-Block/dense-Dense/MatMul-op0", "MatMul", "\"e2\",\"w\"", "h") "}," \
	NODE("_backbone-Net/layer-Block/dense-Dense/BiasAdd-op0", "BiasAdd", "\"h\",\"b\"", "h2") "}," \
	NODE("_backbone-Net/layer-Block/relu-ReLU/ReLU-op0", "ReLU", "\"h2\"", "r") "}," \
	NODE("_backbone-Net/layer-Block/Add-op0", "Add", "\"r\",\"e2\"", "r2") "}," \
	NODE("_backbone-Net/head-Dense/MatMul-op0", "MatMul", "\"r2\",\"table\"", "y") "}," \
	NODE("_loss-Loss/Add-op0", "Add", "\"y\",\"c\"", "y2") "}," \
	NODE("_loss-Loss/ReduceMean-op0", "ReduceMean", "\"y2\"", "l") "}],"
#define TAIL "\"outputs\":[\"l\"]}"

static const char cells[] = HEAD "\"cells\":["
	"{\"name\":\"_backbone.layer\",\"stage\":1,\"recompute\":{\"mp_comm_recompute\":false}},"
	"{\"name\":\"_backbone\",\"stage\":0,\"recompute\":true,\"comm_fusion\":2},"
	"{\"name\":\"_backbone.layer.relu\",\"recompute\":false,\"segment\":1},"
	"{\"name\":\"_backbone.layer.dense\",\"comm_fusion\":3}]," TAIL;

static const char *cell_name(const struct ap_graph *g, ap_id cell)
{
	return cell == AP_NONE ? "" : g->cell[cell].name;
}

static const struct ap_node *scope_of(const struct ap_graph *g, const char *rest)
{
	return node_of(g, ap_arena_printf(ctx.arena, "Default/net-WithLossCell/%s", rest));
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_TEST(cells_as_read)
{
	const struct ap_graph *g = load_ok(cells);

	ck_assert_uint_eq(g->ncell, 4);
	ck_assert_int_eq(g->cell[0].stage, 1);
	ck_assert_int_eq(g->cell[0].segment, -1);
	ck_assert_int_eq(g->cell[0].recompute, 1);
	ck_assert(!g->cell[0].mp_comm_recompute);
	ck_assert(g->cell[1].mp_comm_recompute && !g->cell[1].parallel_optimizer_comm_recompute &&
		!g->cell[1].recompute_slice_activation);
	ck_assert_int_eq(g->cell[2].recompute, 0);
	ck_assert_int_eq(g->cell[2].segment, 1);
	ck_assert_int_eq(g->cell[3].recompute, -1);
	ck_assert_int_eq(g->cell[3].stage, -1);
	ck_assert_str_eq(cell_name(g, g->cell[0].parent), "_backbone");
	ck_assert_uint_eq(g->cell[1].parent, AP_NONE);
	ck_assert_str_eq(cell_name(g, g->cell[2].parent), "_backbone.layer");
}
END_TEST

START_TEST(inner_cells_go_before)
{
	static const struct {
		const char *node, *cell, *recompute;
	} rows[] = {
		{"_backbone-Net/embed-Dense/MatMul-op0", "_backbone", "_backbone"},
		{"_backbone-Net/layer-Block/dense-Dense/MatMul-op0", "_backbone.layer.dense", "_backbone.layer"},
		{"_backbone-Net/layer-Block/relu-ReLU/ReLU-op0", "_backbone.layer.relu", ""},
		{"_backbone-Net/layer-Block/Add-op0", "_backbone.layer", "_backbone.layer"},
		{"_loss-Loss/Add-op0", "", ""},
	};
	const struct ap_graph *g = load_ok(cells);

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_node *n = scope_of(g, rows[i].node);

		ck_assert_str_eq(cell_name(g, n->in_cell), rows[i].cell);
		ck_assert_str_eq(cell_name(g, n->recompute_cell), rows[i].recompute);
		ck_assert_int_eq(n->stage, -1);
	}
	ck_assert_int_eq(tensor_of(g, "table")->comm_fusion, 2); /* of the cell that uses it first */
	ck_assert_int_eq(tensor_of(g, "w")->comm_fusion, 9); /* its own */
	ck_assert_int_eq(tensor_of(g, "b")->comm_fusion, 3);
}
END_TEST

START_TEST(without_cells)
{
	const struct ap_graph *g = load_ok(HEAD TAIL);

	ck_assert_uint_eq(g->ncell, 0);
	for (ap_id i = 0; i < g->nnode; i++) {
		ck_assert_uint_eq(g->node[i].in_cell, AP_NONE);
		ck_assert_uint_eq(g->node[i].recompute_cell, AP_NONE);
	}
	ck_assert_int_eq(tensor_of(g, "table")->comm_fusion, -1);
}
END_TEST

START_TEST(names_that_may_be_meant)
{
	static const struct {
		const char *name, *meant;
	} rows[] = {
		{"layer", "; did you mean \"a.layer\" or \"b.layer\"?"},
		{"a.layr", "; did you mean \"a.layer\"?"},
		{"net.a.layer", "; did you mean \"a.layer\"?"},
		{"quite.something.else", ""},
	};
	struct ap_map *all = ap_map_create(ctx.arena);

	ap_cell_note(all, "a.layer");
	ap_cell_note(all, "b.layer.dense");
	ck_assert_uint_eq(ap_map_size(all), 5);
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		ck_assert_str_eq(ap_cell_meant(&ctx, all, rows[i].name), rows[i].meant);
	ck_assert_uint_eq(ap_cell_find(all, "b.layer.dense.x"), ap_map_get_str(all, "b.layer.dense"));
	ck_assert_uint_eq(ap_cell_around(all, "b.layer.dense"), ap_map_get_str(all, "b.layer"));
	ck_assert_uint_eq(ap_cell_find(all, "bb.layer"), AP_NONE);
}
END_TEST

/* Three stages: embedding; layer; head and loss, which uses the embedding's table and the constant again. */
static const struct ap_graph *staged_by_hand(void)
{
	static const int32_t stage[] = {0, 0, 1, 1, 1, 1, 2, 2, 2};
	const struct ap_graph *g = load_ok(cells), *staged;
	struct ap_spot spot[9];

	ck_assert_uint_eq(g->nnode, 9);
	for (int i = 0; i < 9; i++)
		spot[i] = (struct ap_spot){stage[i], 0, stage[i]};
	ap_graph_staged(&ctx, g, spot, &staged);
	return staged;
}

START_TEST(staged_names_and_order)
{
	static const char *const want[] = {"MatMul", "Add", "Send/e2/0.0->1.0", "Send/table/0.0->2.0",
		"Receive/e2/0.0->1.0", "MatMul", "BiasAdd", "ReLU", "Add", "Send/r2/1.0->2.0",
		"Receive/r2/1.0->2.0", "Receive/table/0.0->2.0", "MatMul", "Add", "ReduceMean"};
	const struct ap_graph *g = staged_by_hand();
	uint32_t constants = 0;

	ck_assert_uint_eq(g->nnode, AP_COUNT(want));
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		bool link = strchr(want[i], '/') != NULL;

		ck_assert_str_eq(link ? n->name : n->type, want[i]);
		ck_assert_int_eq(n->once, link && strstr(want[i], "table") != NULL);
		ck_assert_int_eq(n->peer >= 0, link);
	}
	for (ap_id t = 0; t < g->ntensor; t++)
		constants += g->tensor[t].kind == AP_TENSOR_CONST;
	ck_assert_uint_eq(constants, 2);
}
END_TEST

START_TEST(staged_owners_and_keys)
{
	const struct ap_graph *g = staged_by_hand();
	const struct ap_tensor *table = tensor_of(g, "table");
	ap_id head = (ap_id)(scope_of(g, "_backbone-Net/head-Dense/MatMul-op0") - g->node);

	ck_assert_uint_eq(table->nuse, 2);
	ck_assert_str_eq(g->node[table->owner.node].type, "MatMul"); /* not the Send, which is as near */
	ck_assert_int_eq(g->node[table->owner.node].stage, 0);
	ck_assert_str_eq(ap_node_key(&ctx, g, head), "MatMul_table");
	ck_assert_str_eq(g->tensor[g->node[head].in[1]].name, "Receive/table/0.0->2.0");
	ck_assert(g->tensor[g->node[head].in[1]].needs_grad);
	ck_assert_int_eq(g->tensor[g->node[head].in[0]].batch, 1);
	ck_assert_int_eq(g->tensor[g->node[head].in[1]].batch, 0);
	ck_assert_int_eq(tensor_of(g, "Receive/r2/1.0->2.0")->batch, 1);
	ck_assert_str_eq(shape_of(g, "Receive/r2/1.0->2.0"), "[8,4]");
}
END_TEST
