/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a dump: operators, names, attributes, marks. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "harness.h"
#include "graph/graph.h"
#include "import/prims.h"
#include "rule/attr.h"
#include "import_fixture.h"

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_TEST(whole_graph)
{
	const struct ap_graph *g = graph_of(imported_ok(fixture_dump));
	const struct ap_node *product = node_of_type(g, "MatMul", 0);

	ck_assert_str_eq(g->name, "net");
	ck_assert_str_eq(g->optimizer, "momentum");
	ck_assert_uint_eq(g->nnode, 5);
	ck_assert_uint_eq(g->ninput, 1);
	ck_assert_int_eq(g->batch, 16);
	ck_assert_int_eq(g->parameters, 4 * 8 + 4);
	ck_assert_str_eq(product->name, "Default/network-Net/fc-Dense/MatMul-op0");
	ck_assert_str_eq(ap_node_key(&ctx, g, (ap_id)(product - g->node)), "MatMul_fc.weight");
	ck_assert(ap_attr_bool(&product->attrs, "transpose_b", false));
	ck_assert(!ap_attr_bool(&product->attrs, "transpose_a", true));
	ck_assert_uint_eq(product->in_pin.n, 2);
	ck_assert_int_eq(product->in_pin.v[1].cut[0], 4);
	ck_assert_str_eq(node_of_type(g, "ReduceMean", 0)->name, "Default/network-Net/ReduceMean-op0");
	ck_assert(g->loss != AP_NONE);
}
END_TEST

/* The activation was recomputed as a cell: both its operators are in it. */
START_TEST(recomputed_cell)
{
	const struct ap_graph *g = graph_of(imported_ok(fixture_dump));

	ck_assert_uint_eq(g->ncell, 1);
	ck_assert_str_eq(g->cell[0].name, "act");
	ck_assert_int_eq(g->cell[0].recompute, 1);
	ck_assert_int_eq(node_of_type(g, "Exp", 0)->recompute, -1);
	ck_assert(node_of_type(g, "Exp", 0)->recompute_cell == 0);
	ck_assert(node_of_type(g, "BiasAdd", 0)->recompute_cell == AP_NONE);
}
END_TEST

/* Arguments of recompute(), and what a primitive says of itself. */
START_TEST(recompute_arguments)
{
	const char *text = edited(fixture_dump, "PrimFunc_Exp(%para7_x)", "PrimFunc_Exp(%para7_x) "
		"primitive_attrs: {recompute_comm_op: Bool(0), slice_activation: Bool(1)}");
	const char *json = imported_ok(edited(text, "value=0.5))", "value=0.5)) cnode_attrs: "
		"{recompute: Bool(0)}"));
	const struct ap_graph *g = graph_of(json);

	ck_assert(!g->cell[0].mp_comm_recompute);
	ck_assert(g->cell[0].recompute_slice_activation);
	ck_assert_int_eq(node_of_type(g, "Mul", 0)->recompute, 0);
}
END_TEST

START_TEST(marks)
{
	const char *json = imported_ok(edited(fixture_dump, "PrimFunc_Exp(%para7_x)", "PrimFunc_Exp(%para7_x) "
		"primitive_attrs: {fusion: I64(3), stage: I64(1)} cnode_primal_attrs: {chunk: I64(1), "
		"unique_id: \"1\"}"));
	const struct ap_node *n = node_of_type(graph_of(json), "Exp", 0);

	ck_assert_int_eq(n->fusion, 3);
	ck_assert_int_eq(n->stage, 1);
	ck_assert_int_eq(n->segment, 1);
}
END_TEST

/* Attributes that hold primitives; where a dump tells any, what has none is held by none. */
START_TEST(instances)
{
	const struct ap_graph *g = graph_of(imported_ok(fixture_dump));

	ck_assert_str_eq(node_of_type(g, "MatMul", 0)->instance, "matmul");
	ck_assert_str_eq(node_of_type(g, "Exp", 0)->instance, "");
	g = graph_of(imported_ok(edited(fixture_dump, " {instance name: matmul}", "")));
	ck_assert_ptr_null(node_of_type(g, "MatMul", 0)->instance);
	ck_assert_ptr_null(node_of_type(g, "Exp", 0)->instance);
	g = graph_of(imported_ok(edited(fixture_dump, "PrimFunc_Exp(%para7_x)",
		"PrimFunc_Exp(%para7_x) {instance name: exp} primitive_attrs: {fusion: I64(3)}")));
	ck_assert_str_eq(node_of_type(g, "Exp", 0)->instance, "exp");
	ck_assert_int_eq(node_of_type(g, "Exp", 0)->fusion, 3);
	g = graph_of(imported_ok(edited(fixture_dump, "PrimFunc_Exp(%para7_x)",
		"PrimFunc_Exp(%para7_x) {instance name: <lambda>}")));
	ck_assert_str_eq(node_of_type(g, "Exp", 0)->instance, "");
	holds(messages(), "Exp: the instance name \"<lambda>\" is left out");
}
END_TEST

/* What has side effects ends in a monad, which is no operand. */
START_TEST(monads)
{
	const char *text = edited(fixture_dump, "PrimFunc_Exp(%para7_x)\n      : (<Tensor[Float32], (16, 4)>)",
		"PrimFunc_Exp(%para7_x, UMonad[U], IOMonad[IO])\n      : (<Tensor[Float32], (16, 4)>, "
		"<UMonad, NoShape>, <IOMonad, NoShape>)");
	const struct ap_graph *g = graph_of(imported_ok(text));

	ck_assert_uint_eq(node_of_type(g, "Exp", 0)->bound.nin, 1);
}
END_TEST

/* A tuple of which the dump does not tell the shapes, as those of 1.x: they follow from the operator. */
START_TEST(tuples_without_shapes)
{
	const char *text = edited(fixture_dump, "PrimFunc_Exp(%para7_x)\n      : (<Tensor[Float32], (16, 4)>) -> "
		"(<Tensor[Float32], (16, 4)>)\n      # Scope: (recompute_Default/network-Net/act-Act)\n  %1(m) = "
		"PrimFunc_Mul(%0", "Dropout(%para7_x)\n      : (<Tensor[Float32], (16, 4)>) -> "
		"(<Tuple[Tensor[Float32]*2]>)\n  %1(g) = TupleGetItem(%0, I64(0))\n      : "
		"(<Tuple[Tensor[Float32]*2]>, <Int64>) -> (<Tensor[Float32], (16, 4)>)\n  %2(m) = "
		"PrimFunc_Mul(%1");
	const char *json = imported_ok(edited(text, "Return(%1)", "Return(%2)"));
	const struct ap_graph *g = graph_of(json);

	holds(json, "Dropout-op0:1\", \"shape\": [16, 4]");
	ck_assert_int_eq(node_of_type(g, "Mul", 0)->bound.in[0].size[1], 4);
}
END_TEST

/* Every call of a sub-graph is a copy of its operators with names of their own. */
START_TEST(two_calls)
{
	const char *text = edited(fixture_dump, "PrimFunc_ReduceMean(%4", "PrimFunc_ReduceMean(%6"), *json;
	const struct ap_graph *g;

	text = edited(text, "  %5(l)", "  %6(zz) = call @3_act(%4)\n"
		"      : (<Tensor[Float32], (16, 4)>) -> (<Tensor[Float32], (16, 4)>)\n  %7(l)");
	json = imported_ok(edited(text, "Return(%5)", "Return(%7)"));
	g = graph_of(json);
	ck_assert_uint_eq(g->nnode, 7);
	ck_assert_str_eq(node_of_type(g, "Exp", 1)->name, "Default/network-Net/act-Act/Exp-op1");
}
END_TEST

START_TEST(full_names_stay)
{
	const char *text = edited(fixture_dump, "# Scope: (Default/network-Net/fc-Dense)\n  %2",
		"# Fullname with scope: (Default/network-Net/fc-Dense/MatMul-op7)\n  %2");
	const struct ap_graph *g = graph_of(imported_ok(text));

	ck_assert_str_eq(node_of_type(g, "MatMul", 0)->name, "Default/network-Net/fc-Dense/MatMul-op7");
}
END_TEST

/* Names are keys of MindSpore's files, also where they say that a cell is recomputed. */
START_TEST(recomputed_full_name)
{
	const char *text = edited(fixture_dump, "# Scope: (recompute_Default/network-Net/act-Act)",
		"# Fullname with scope: (recompute_Default/network-Net/act-Act/Exp-op3)");
	const struct ap_graph *g;
	const struct ap_node *n;

	g = graph_of(imported_ok(text));
	n = node_of_type(g, "Exp", 0);
	ck_assert_str_eq(n->name, "recompute_Default/network-Net/act-Act/Exp-op3");
	ck_assert_str_eq(n->cell, "act");
	ck_assert(n->recompute_cell != AP_NONE);
	ck_assert_str_eq(node_of_type(g, "Mul", 0)->name, "Default/network-Net/act-Act/Mul-op0");
}
END_TEST

/* Made names are said to be made; a dump with full names has nothing to say. */
START_TEST(names_are_told)
{
	const char *text = fixture_dump, *from;

	imported_ok(text);
	holds(messages(), "net.ir:34: 5 of 5 operators have no full name of their own here");
	fixture_teardown();
	fixture_setup();
	for (int i = 0; (from = strstr(text, "# Scope: (")); i++)
		text = ap_arena_printf(ctx.arena, "%.*s# Fullname with scope: (Default/n%d-op%d%s",
			(int)(from - text), text, i, i, strchr(from, ')'));
	imported_ok(text);
	ck_assert_ptr_null(strstr(messages(), "full name"));
}
END_TEST

/* What a network asks of a shape that is known is known as well. */
START_TEST(shape_is_a_constant)
{
	const char *text = edited(fixture_dump, "  %5(l) = PrimFunc_ReduceMean(%4, (I64(0), I64(1)), Bool(0))",
		"  %5(s) = Shape(%4)\n      : (<Tensor[Float32], (16, 4)>) -> (<Tuple[Int64*2], TupleShape(NoShape, "
		"NoShape)>)\n  %6(k) = TupleGetItem(%5, I64(1))\n      : (<Tuple[Int64*2], TupleShape(NoShape, "
		"NoShape)>, <Int64, NoShape>) -> (<Int64, NoShape>)\n  %7(r) = PrimFunc_Reshape(%4, (%6, I64(16)))\n"
		"      : (<Tensor[Float32], (16, 4)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape)>) -> "
		"(<Tensor[Float32], (4, 16)>)\n  %8(l) = PrimFunc_ReduceMean(%7, (I64(0), I64(1)), Bool(0))");
	const struct ap_graph *g;
	const struct ap_attr *shape;

	text = edited(text, "<Tensor[Float32], (16, 4)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape), el",
		"<Tensor[Float32], (4, 16)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape), el");
	g = graph_of(imported_ok(edited(text, "Return(%5)", "Return(%8)")));
	shape = ap_attr_get(&node_of_type(g, "Reshape", 0)->attrs, "shape");
	ck_assert_uint_eq(shape->n, 2);
	ck_assert_int_eq(shape->list[0], 4);
	ck_assert_int_eq(shape->list[1], 16);
}
END_TEST

/* A condition that is constant chooses a sub-graph, whatever its form. */
START_TEST(constant_condition)
{
	static const char *const conditions[] = {"Bool(1)", "Tensor(shape=[], dtype=Bool, value=True)",
		"Tensor(shape=[], dtype=Bool, value=[...])"};
	const char *text = edited(fixture_dump, "  %4(z) = call @3_act(%3)\n      : (<Tensor[Float32], (16, 4)>) -> ",
		"  %4(f) = Switch(COND, @3_act, @2_net)\n      : (<Bool, NoShape>, <Func, NoShape>, "
		"<Func, NoShape>) -> (<Func, NoShape>)\n  %40(z) = %4[@FuncUnion(@3_act, @2_net)](%3)\n"
		"      : (<Tensor[Float32], (16, 4)>) -> ");
	enum ap_status st;

	text = edited(edited(text, "ReduceMean(%4, ", "ReduceMean(%40, "), "  %5(l)", "  %50(l)");
	text = edited(text, "Return(%5)", "Return(%50)");
	for (size_t i = 0; i < 2; i++)
		ck_assert_uint_eq(graph_of(imported_ok(edited(text, "COND", conditions[i])))->nnode, 5);
	imported(edited(text, "COND", conditions[2]), NULL, &st);
	ck_assert_int_eq(st, AP_MEANING);
	holds(messages(), "net.ir:43: control flow");
}
END_TEST

/* Comments of the dumper are text, whatever they say. */
START_TEST(comments)
{
	const char *text = edited(fixture_dump, "  %2(b) = Load", "      # Comment:\n        subgraph @x() {\n"
		"        %9(y) = Exp(\n      # Corresponding code candidate:\n      # %9 = \"\n  %2(b) = Load");

	ck_assert_uint_eq(graph_of(imported_ok(text))->nnode, 5);
}
END_TEST

/* Before 2.3: constants are attributes of the primitive, but those that were operands. */
START_TEST(old_form)
{
	const char *text = edited(fixture_dump, "PrimFunc_MatMul(%para5_x, %0, Bool(0), Bool(1))",
		"MatMul(%para5_x, %0)");
	const struct ap_graph *g;

	text = edited(text, "{in_strategy: ((2, 1), (4, 1))}", "{output_names: [output], transpose_b: true, "
		"input_names: [x1, x2], transpose_x2: true, transpose_a: false}");
	text = edited(text, ", <Bool, NoShape>, <Bool, NoShape>) ->", ") ->");
	text = edited(text, "PrimFunc_ReduceMean(%4, (I64(0), I64(1)), Bool(0))", "ReduceMean(%4, (I64(0), I64(1)))"
		" primitive_attrs: {keep_dims: Bool(0)}");
	text = edited(text, "elements_use_flags={[const vector]{1, 1}}>, <Bool, NoShape>", "x>");
	g = graph_of(imported_ok(text));
	ck_assert(ap_attr_bool(&node_of_type(g, "MatMul", 0)->attrs, "transpose_b", false));
	ck_assert_uint_eq(ap_attr_get(&node_of_type(g, "ReduceMean", 0)->attrs, "axis")->n, 2);
}
END_TEST

/* Numbers among tensors have no vector in MindSpore's strategies. */
START_TEST(number_operand)
{
	const char *text = edited(fixture_dump, "Tensor(shape=[], dtype=Float32, value=0.5))",
		"F32(0.5)) primitive_attrs: {in_strategy: ((2, 1))}");
	const struct ap_node *n;

	text = edited(text, "<Tensor[Float32], (), value=...>", "<Float32, NoShape>");
	n = node_of_type(graph_of(imported_ok(text)), "Mul", 0);
	ck_assert_uint_eq(n->in_pin.n, 2);
	ck_assert_uint_eq(n->in_pin.v[0].rank, 2);
	ck_assert_uint_eq(n->in_pin.v[1].rank, 0);
}
END_TEST

/* What MindSpore searched stands behind the node; it is a pin only where that is asked for. */
START_TEST(searched_strategies)
{
	const struct ap_import_params keep = {.micro_batches = 1, .searched = true};
	const char *text = edited(fixture_dump, "BiasAdd(%1, %2, I64(0))",
		"BiasAdd(%1, %2, I64(0)) {in_strategy: ((2, 4), (4))}");
	enum ap_status st;

	ck_assert_uint_eq(node_of_type(graph_of(imported_ok(text)), "BiasAdd", 0)->in_pin.n, 0);
	ck_assert_uint_eq(node_of_type(graph_of(imported(text, &keep, &st)), "BiasAdd", 0)->in_pin.n, 2);
}
END_TEST

START_TEST(free_variable_by_label)
{
	const char *text = edited(fixture_dump, "subgraph @3_act(", "subgraph @3_act parent: [subgraph @2_net](");
	const struct ap_graph *g = graph_of(imported_ok(edited(text, "Mul(%0, ", "Mul($(@2_net:y), ")));

	ck_assert(node_of_type(g, "Mul", 0)->in[0] == node_of_type(g, "BiasAdd", 0)->out[0]);
}
END_TEST

START_TEST(partial_call)
{
	const char *text = edited(fixture_dump, "  %4(z) = call @3_act(%3)\n"
		"      : (<Tensor[Float32], (16, 4)>) -> ", "  %4(p) = Partial(@3_act, %3)\n"
		"      : (<Func, NoShape>, <Tensor[Float32], (16, 4)>) -> (<Func, NoShape>)\n"
		"  %40(z) = %4[@Partial(@3_act)]()\n      : () -> ");

	text = edited(text, "ReduceMean(%4, ", "ReduceMean(%40, ");
	text = edited(edited(text, "  %5(l)", "  %50(l)"), "Return(%5)", "Return(%50)");
	ck_assert_uint_eq(graph_of(imported_ok(text))->nnode, 5);
}
END_TEST

/* Statistics of a normalisation are no weights. */
START_TEST(what_learns)
{
	const char *text = edited(fixture_dump, "PrimFunc_BiasAdd(%1, %2, I64(0))",
		"PrimFunc_BatchNorm(%1, %2, %2, $(@1_step:para4_moments.fc.weight), "
		"$(@1_step:para4_moments.fc.weight), Bool(0), F32(1e-05), F32(0.1), I64(0))");
	const struct ap_graph *g;

	text = edited(text, "<Tensor[Float32], (16, 4)>, <Tensor[Float32], (4)>, <Int64, NoShape>) -> "
		"(<Tensor[Float32], (16, 4)>)", "<Tensor[Float32], (16, 4)>, <Tensor[Float32], (4)>, "
		"<Tensor[Float32], (4)>, <Ref[Tensor[Float32]], (4)>, <Ref[Tensor[Float32]], (4)>, "
		"<Bool, NoShape>, <Float32, NoShape>, <Float32, NoShape>, <Int64, NoShape>) -> "
		"(<Tuple[Tensor[Float32]*5], TupleShape((16, 4), (4), (4), (4), (4))>)");
	text = edited(text, "(4, 8), ref_key=moments.fc.weight", "(4), ref_key=bn.mean");
	text = edited(text, "  %4(z) = call @3_act(%3)", "  %39(t) = TupleGetItem(%3, I64(0))\n"
		"      : (<Tuple[Tensor[Float32]*5]>, <Int64, NoShape>) -> (<Tensor[Float32], (16, 4)>)\n"
		"  %40(z) = call @3_act(%39)");
	text = edited(text, "ReduceMean(%4, ", "ReduceMean(%40, ");
	text = edited(edited(text, "  %5(l)", "  %50(l)"), "Return(%5)", "Return(%50)");
	g = graph_of(imported_ok(text));
	for (uint32_t t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM)
			ck_assert_int_eq(g->tensor[t].trainable, strcmp(g->tensor[t].name, "bn.mean") != 0);
}
END_TEST

/* The table of primitives knows operators, and names attributes that the rules know. */
START_TEST(table_of_primitives)
{
	static const char *const unread[] = {"ignore_index", "chunks", "maxlen", "normalized_shape",
		"start_dim", "end_dim"};
	struct ap_prims *prims = ap_prims_create(&ctx);
	const char *text, *name;
	uint32_t n, told = 0;

	for (size_t i = 0; (name = ap_prim_at(i, &text)); i++) {
		const struct ap_prim_slot *slot = ap_prim_slots(prims, name, &n);

		ck_assert_ptr_nonnull(slot);
		for (uint32_t k = 0; k < n; k++) {
			enum ap_attr_type type;
			bool known = !slot[k].constant || ap_attr_find(name, slot[k].name, &type);

			for (size_t u = 0; u < AP_COUNT(unread); u++)
				known |= !strcmp(slot[k].name, unread[u]);
			ck_assert_msg(known, "%s: %s", name, slot[k].name);
			told++;
		}
	}
	ck_assert_uint_gt(told, 250);
	ck_assert_str_eq(ap_prim_number("pad_mode", 1), "same");
	ck_assert_ptr_null(ap_prim_number("pad_mode", 7));
}
END_TEST
