/* SPDX-License-Identifier: Apache-2.0 */
/* Casts of parameters: said of the parameter where it is only read so, operators where it is not. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "harness.h"
#include "import_fixture.h"

#define SCOPE "      # Scope: (Default/network-Net/fc-Dense)\n"
#define CAST(number, of, id, shape, from, to) \
	"  %" number "(c) = PrimFunc_Cast(" of ", I64(" id "))\n      : (<Tensor[" from "], (" shape ")>, " \
	"<Int64, NoShape>) -> (<Tensor[" to "], (" shape ")>)\n" SCOPE
#define PRODUCT(number, of, type, attrs) \
	"  %" number "(m) = PrimFunc_MatMul(" of ", Bool(0), Bool(1))" attrs "\n      : (<Tensor[" type "], (16, 8)>, " \
	"<Tensor[" type "], (4, 8)>, <Bool, NoShape>, <Bool, NoShape>) -> (<Tensor[" type "], (16, 4)>)\n" \
	SCOPE
#define SUM \
	"  %19(s) = PrimFunc_Add(%9, %18)\n      : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (16, 4)>) -> " \
	"(<Tensor[Float32], (16, 4)>)\n" SCOPE
#define HALF_X CAST("6", "%para5_x", "42", "16, 8", "Float32", "Float16")
#define BACK CAST("9", "%8", "43", "16, 4", "Float16", "Float32")

/* The layer as nn.Dense has it in a cell that computes in half precision: input and weight are cast, the
 * result is cast back. */
#define LAYER CAST("2", "%0", "42", "4, 8", "Float32", "Float16") HALF_X \
	PRODUCT("8", "%6, %2", "Float16", " primitive_attrs: {in_strategy: ((2, 1), (4, 1))}") BACK

/* The fixture with these lines, %2 to %19, in the place of its product; sum is what its bias is added to. */
static const char *net(const char *lines, const char *sum)
{
	const char *begin = strstr(fixture_dump, "  %1(x) = PrimFunc_MatMul"), *text;
	const char *end = strstr(fixture_dump, "  %2(b) = Load");

	text = ap_arena_printf(ctx.arena, "%.*s%s%s", (int)(begin - fixture_dump), fixture_dump, lines, end);
	text = edited(text, "  %2(b) = Load", "  %20(b) = Load");
	text = edited(text, "  %3(y) = PrimFunc_BiasAdd(%1, %2,", ap_arena_printf(ctx.arena,
		"  %%21(y) = PrimFunc_BiasAdd(%s, %%20,", sum));
	text = edited(text, "  %4(z) = call @3_act(%3)", "  %22(z) = call @3_act(%21)");
	text = edited(text, "  %5(l) = PrimFunc_ReduceMean(%4,", "  %23(l) = PrimFunc_ReduceMean(%22,");
	return edited(text, "Return(%5)", "Return(%23)");
}

static uint32_t casts_of_params(const struct ap_graph *g)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < g->nnode; i++)
		n += !strcmp(g->node[i].type, "Cast") && g->tensor[g->node[i].in[0]].kind == AP_TENSOR_PARAM;
	return n;
}

static const struct ap_tensor *weight_of(const struct ap_graph *g)
{
	const struct ap_tensor *t = &g->tensor[node_of_type(g, "MatMul", 0)->param];

	ck_assert_str_eq(t->name, "fc.weight");
	ck_assert_int_eq(t->shape.dtype, AP_FLOAT32);
	return t;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

/* The product reads the parameter itself, keeps its key and its strategy. */
START_TEST(folded)
{
	const char *json = imported_ok(net(LAYER, "%9"));
	const struct ap_graph *g = graph_of(json);
	const struct ap_node *n = node_of_type(g, "MatMul", 0);

	holds(json, "{\"name\": \"fc.weight\", \"shape\": [4, 8], \"dtype\": \"float32\", "
		"\"read_as\": \"float16\"}");
	holds(json, "{\"name\": \"fc.bias\", \"shape\": [4], \"dtype\": \"float32\"}");
	ck_assert_int_eq(weight_of(g)->read_as, AP_FLOAT16);
	ck_assert_uint_eq(g->nnode, 7); /* the input's Cast and the result's stay */
	ck_assert_uint_eq(casts_of_params(g), 0);
	ck_assert_str_eq(g->tensor[n->in[1]].name, "fc.weight");
	ck_assert_int_eq(n->bound.in[1].dtype, AP_FLOAT16);
	ck_assert_str_eq(ap_node_key(&ctx, g, (ap_id)(n - g->node)), "MatMul_fc.weight");
	ck_assert_uint_eq(n->in_pin.n, 2);
	ck_assert_int_eq(n->in_pin.v[1].cut[0], 4);
	ck_assert_ptr_null(strstr(messages(), "dump-casts"));
}
END_TEST

/* The line of types is held against the Cast before it goes. */
START_TEST(checked_first)
{
	enum ap_status st;

	imported(edited(net(LAYER, "%9"), "I64(42)", "I64(45)"), NULL, &st);
	ck_assert_int_eq(st, AP_MEANING);
	holds(messages(), "result 0 is float16; from its operands follows bfloat16 [output-dtype]");
}
END_TEST

/* Two readers, each with a Cast to the same type. */
START_TEST(two_casts)
{
	const struct ap_graph *g = graph_of(imported_ok(net(LAYER
		CAST("10", "%0", "42", "4, 8", "Float32", "Float16") PRODUCT("11", "%6, %10", "Float16", "")
		CAST("18", "%11", "43", "16, 4", "Float16", "Float32") SUM, "%19")));

	ck_assert_uint_eq(casts_of_params(g), 0);
	ck_assert_int_eq(weight_of(g)->read_as, AP_FLOAT16);
	ck_assert_uint_eq(weight_of(g)->nuse, 2);
}
END_TEST

static const struct {
	const char *lines;
	uint32_t casts;
} others[] = {
	/* read as it is stored, too */
	{LAYER PRODUCT("18", "%para5_x, %0", "Float32", "") SUM, 1},
	/* in two other types */
	{LAYER CAST("10", "%0", "45", "4, 8", "Float32", "BFloat16")
		CAST("11", "%para5_x", "45", "16, 8", "Float32", "BFloat16")
		PRODUCT("12", "%11, %10", "BFloat16", "")
		CAST("18", "%12", "43", "16, 4", "BFloat16", "Float32") SUM, 2},
};

START_LOOP_TEST(read_otherwise, AP_COUNT(others))
{
	const struct ap_graph *g = graph_of(imported_ok(net(others[_i].lines, "%19")));
	const struct ap_node *n = node_of_type(g, "MatMul", 0);

	ck_assert_uint_eq(casts_of_params(g), others[_i].casts);
	ck_assert_int_eq(weight_of(g)->read_as, AP_DTYPE_COUNT);
	ck_assert_str_eq(ap_node_key(&ctx, g, (ap_id)(n - g->node)), "MatMul_fc.weight");
	holds(messages(), "1 parameter, \"fc.weight\" first, is read in more than one type, so that each Cast of "
		"it stays an operator [dump-casts]");
}
END_TEST

/* A Cast behind the Cast reads what the first one gave. */
START_TEST(cast_twice)
{
	const struct ap_graph *g = graph_of(imported_ok(net(CAST("2", "%0", "42", "4, 8", "Float32", "Float16")
		CAST("3", "%2", "43", "4, 8", "Float16", "Float32")
		CAST("4", "%3", "42", "4, 8", "Float32", "Float16")
		HALF_X PRODUCT("8", "%6, %4", "Float16", "") BACK, "%9")));

	ck_assert_int_eq(weight_of(g)->read_as, AP_FLOAT16);
	ck_assert_uint_eq(casts_of_params(g), 1);
	ck_assert_uint_eq(g->nnode, 9);
}
END_TEST
