/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar: types, constants, nodes of all versions, as they stand. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "harness.h"
#include "import/dtype.h"
#include "import/ir.h"
#include "import/ir_parse.h"
#include "import_fixture.h"

/* The first node of a text. */
static const struct ap_ir_node *node(const char *text)
{
	struct ap_ir *ir = AP_NEW(ctx.arena, struct ap_ir);

	ck_assert_msg(ap_ir_parse(&ctx, "n.ir", text, strlen(text), false, ir) == AP_OK, "%s", messages());
	return &ir->funcs.v[0].nodes.v[0];
}

static const struct {
	const char *text;
	enum ap_dtype dtype;
	int rank; /* -1: no shape */
	int64_t last;
	const char *ref_key;
} types[] = {
	{"<Tensor[Float16], (32, 64)>", AP_FLOAT16, 2, 64, NULL},
	{"<Tensor[Float32], ()>", AP_FLOAT32, 0, 0, NULL},
	{"<Tensor[Int32], (32)>", AP_INT32, 1, 32, NULL},
	{"<Tensor[BFloat16], (-1, 8)>", AP_BFLOAT16, 2, 8, NULL},
	{"<Tensor[Bool], (2, 3), value=...>", AP_BOOL, 2, 3, NULL},
	{"<Tensor[Float32]x(64, 63)>", AP_FLOAT32, 2, 63, NULL},
	{"<Tensor[Float32]x[const vector][32, 62]>", AP_FLOAT32, 2, 62, NULL},
	{"<Tensor[Float32]x[const vector][]>", AP_FLOAT32, 0, 0, NULL},
	{"<Ref[Tensor(F32)], (64)>", AP_FLOAT32, 1, 64, NULL},
	{"<Ref[Tensor(F16)], (8, 16), ref_key=:w2>", AP_FLOAT16, 2, 16, "w2"},
	{"<Ref[Tensor[Float32]], (4), ref_key=layer1.bias, is_parameter>", AP_FLOAT32, 1, 4, "layer1.bias"},
	{"<Tensor[Float8E5M2], (4)>", AP_FLOAT8_E5M2, 1, 4, NULL},
	{"<Tensor[Float8E4M3FN], (4)>", AP_FLOAT8_E4M3FN, 1, 4, NULL},
	{"<Tensor[HiFloat8], (4)>", AP_DTYPE_COUNT, 1, 4, NULL},
};

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(tensor_types, AP_COUNT(types))
{
	const struct ap_ir_node *n = node(ap_arena_printf(ctx.arena, "%%0(a) = A(%%para1_x)\n  : (%s) -> (%s)\n",
		types[_i].text, types[_i].text));
	const struct ap_ir_type *t = &n->out;

	ck_assert_int_eq(t->form, AP_IR_TYPE_TENSOR);
	ck_assert_int_eq(t->dtype, types[_i].dtype);
	ck_assert_int_eq(t->shaped ? t->rank : -1, types[_i].rank);
	if (types[_i].rank > 0)
		ck_assert_int_eq(t->dim[t->rank - 1], types[_i].last);
	ck_assert_str_eq(t->ref_key ? t->ref_key : "", types[_i].ref_key ? types[_i].ref_key : "");
	ck_assert_int_eq(t->ref, types[_i].text[1] == 'R');
	ck_assert_uint_eq(n->nin, 1);
}
END_TEST

START_TEST(other_types)
{
	const struct ap_ir_node *n = node("%0(a) = A(U, %1, @f, %2)\n"
		"  : (<UMonad, NoShape>, <Tuple[Int64*3], TupleShape(NoShape, NoShape, NoShape), "
		"elements_use_flags={[const vector]{1, 1, 1}}>, <Func, NoShape>, <External, NoShape>) -> "
		"(<Tuple[Tensor[Float16],Tensor[Float32]*2,Int64], TupleShape((2), (3, 4), (), NoShape)>)\n"
		"  : (<Float16xNC1HWC0[const vector][32, 16]>) -> (<Float32>)\n");
	const struct ap_ir_type *t = &n->out;

	ck_assert_int_eq(n->in_type[1].form, AP_IR_TYPE_TUPLE);
	ck_assert_uint_eq(n->in_type[1].n, 3);
	ck_assert_uint_eq(t->n, 4);
	ck_assert_int_eq(t->v[0].dtype, AP_FLOAT16);
	ck_assert_int_eq(t->v[1].dim[1], 4);
	ck_assert(t->v[2].shaped && t->v[2].rank == 0);
	ck_assert_int_eq(t->v[3].form, AP_IR_TYPE_OTHER);
	ck_assert_int_eq(n->in[0].kind, AP_IR_MONAD);
	ck_assert_int_eq(n->in[2].kind, AP_IR_FUNC);
}
END_TEST

/* Tuples in tuples, lists, and what of them is not known before it runs. */
START_TEST(nested_types)
{
	const struct ap_ir_node *n = node("%0(a) = A()\n  : () -> (<Tuple[Tuple[Tensor[Float32]*2],"
		"List[Tensor[Int8]],Func,Tensor[Bool]], TupleShape(TupleShape((3), (4, 5)), ListShape((6)), "
		"NoShape, ()), elements_use_flags={[const vector]{1, 1, 1, 1}}>)\n");
	const struct ap_ir_type *t = &n->out;

	ck_assert_uint_eq(t->n, 4);
	ck_assert_uint_eq(t->v[0].n, 2);
	ck_assert_int_eq(t->v[0].v[0].dim[0], 3);
	ck_assert_int_eq(t->v[0].v[1].dim[1], 5);
	ck_assert_int_eq(t->v[1].form, AP_IR_TYPE_TUPLE);
	ck_assert_int_eq(t->v[1].v[0].dim[0], 6);
	ck_assert_int_eq(t->v[2].form, AP_IR_TYPE_OTHER);
	ck_assert(t->v[3].shaped && t->v[3].rank == 0);
	t = &node("%0(a) = A()\n  : () -> (<Dynamic Tuple[element: Tensor[Float32]], (2)>)\n")->out;
	ck_assert_int_eq(t->form, AP_IR_TYPE_OTHER);
	t = &node("%0(a) = A()\n  : () -> (<Tensor[Float32], (s1, -2, 99999999999999999999)>)\n")->out;
	ck_assert_uint_eq(t->rank, 3);
	ck_assert(t->dim[0] == -1 && t->dim[1] == -2 && t->dim[2] > INT32_MAX);
}
END_TEST

START_TEST(constants)
{
	const struct ap_ir_node *n = node("%7(a) = P(Bool(1), I64(-3), F32(1e-05), \"a, (b)\", (I64(0), I64(1)), (), "
		"Tensor(shape=[2, 3], dtype=Float32, value=\n[[ 1, 2]]), None, UMonad[U], Float16, U64(4), "
		"NameSpace[Entry: 'x, y'], {\"k\": 1}, Float32(0.5))\n");
	const struct ap_ir_value *v = n->in;

	ck_assert_uint_eq(n->nin, 14);
	ck_assert(v[0].kind == AP_IR_BOOL && v[0].i == 1);
	ck_assert(v[1].kind == AP_IR_INT && v[1].i == -3);
	ck_assert(v[2].kind == AP_IR_FLOAT && v[2].f > 0.99e-5 && v[2].f < 1.01e-5);
	ck_assert(v[3].kind == AP_IR_WORD && !strcmp(v[3].s, "a, (b)"));
	ck_assert(v[4].kind == AP_IR_LIST && v[4].n == 2 && v[4].v[1].i == 1);
	ck_assert(v[5].kind == AP_IR_LIST && v[5].n == 0);
	ck_assert(v[6].kind == AP_IR_TENSOR && v[6].n == 2 && v[6].v[1].i == 3);
	ck_assert_int_eq(v[7].kind, AP_IR_NONE);
	ck_assert_int_eq(v[8].kind, AP_IR_MONAD);
	ck_assert(v[9].kind == AP_IR_WORD && ap_import_dtype(v[9].s) == AP_FLOAT16);
	ck_assert(v[10].kind == AP_IR_INT && v[10].i == 4);
	ck_assert_int_eq(v[11].kind, AP_IR_OTHER);
	ck_assert_int_eq(v[12].kind, AP_IR_OTHER);
	ck_assert(v[13].kind == AP_IR_FLOAT && !strcmp(v[13].of, "Float32"));
}
END_TEST

START_TEST(attributes)
{
	const struct ap_ir_node *n = node("%3(x(y)) = MatMul(%1, $(@f.298:para4_d.bias)) {instance name: matmul} "
		"primitive_attrs: {out_strategy: None, transpose_b: false, in_strategy: ((2, 1), (1, 4)), "
		"output_names: [output], group: 4-63, eps: 0.000100, s: \"sum\"}cnode_primal_attrs:{micro: I64(2)}\n"
		" {in_strategy: ((2, 4), (4))}      : (<Tensor[Float32], (64, 64)>, <Ref[Tensor(F32)], (64)>) -> "
		"(<Tensor[Float32], (64, 64)>)\n      # scope: (Default/net-Net)\n");
	const struct ap_ir_value *v = ap_ir_attr(&n->prim_attrs, "in_strategy");

	ck_assert_str_eq(n->label, "x(y)");
	ck_assert_str_eq(n->instance, "matmul");
	ck_assert(n->in[1].kind == AP_IR_FREE && !strcmp(n->in[1].of, "f.298"));
	ck_assert_str_eq(n->in[1].s, "para4_d.bias");
	ck_assert_uint_eq(n->prim_attrs.n, 7);
	ck_assert(v->kind == AP_IR_LIST && v->v[1].v[1].i == 4);
	ck_assert_int_eq(ap_ir_attr(&n->prim_attrs, "out_strategy")->kind, AP_IR_NONE);
	ck_assert_int_eq(ap_ir_attr(&n->prim_attrs, "transpose_b")->kind, AP_IR_BOOL);
	ck_assert_str_eq(ap_ir_attr(&n->prim_attrs, "group")->s, "4-63");
	ck_assert_int_eq(ap_ir_attr(&n->primal_attrs, "micro")->i, 2);
	ck_assert_int_eq(ap_ir_attr(&n->derived, "in_strategy")->v[1].v[0].i, 4);
	ck_assert(n->typed && n->nin == 2);
	ck_assert_str_eq(n->scope, "Default/net-Net");
}
END_TEST

START_TEST(calls)
{
	const struct ap_ir_node *n = node("%6(CNode_306) = %5[@FuncUnion(@20_\xe2\x9c\x93__main, @21)]()\n"
		"      : () -> (<Tensor[Float32], ()>)\n      # Fullname with scope: (Default/A-op5)\n");

	ck_assert_ptr_null(n->prim);
	ck_assert(n->callee.kind == AP_IR_NODE && n->callee.i == 5);
	ck_assert(n->full && !strcmp(n->scope, "Default/A-op5"));
	n = node("%2 = call @f2(%para1_a, %para2_b)  # Call subgraph f2\n");
	ck_assert(n->callee.kind == AP_IR_FUNC && !strcmp(n->callee.s, "f2"));
	ck_assert(!n->typed && n->nin == 2);
}
END_TEST

/* As versions up to 1.5 write it. */
START_TEST(return_in_lower_case)
{
	const char *small = edited(imported_ok(fixture_dump), "{", "{"), *text = fixture_dump, *at;
	struct ap_str s;
	enum ap_status st;

	ap_str_init(&s, ctx.arena);
	for (; (at = strstr(text, "Return(")); text = at + strlen("Return("))
		ap_str_addf(&s, "%.*sreturn(", (int)(at - text), text);
	ap_str_add(&s, text);
	ck_assert_str_eq(imported(s.s, NULL, &st), small);
	ck_assert_int_eq(st, AP_OK);
}
END_TEST

START_TEST(numbers_of_types)
{
	ck_assert_int_eq(ap_import_type_id(43), AP_FLOAT32);
	ck_assert_int_eq(ap_import_type_id(45), AP_BFLOAT16);
	ck_assert_int_eq(ap_import_type_id(7), AP_DTYPE_COUNT);
	ck_assert_int_eq(ap_import_dtype("BF16"), AP_BFLOAT16);
	ck_assert_int_eq(ap_import_dtype("U8"), AP_UINT8);
	ck_assert_int_eq(ap_import_dtype("bool"), AP_BOOL);
	ck_assert_int_eq(ap_import_dtype("F"), AP_DTYPE_COUNT);
	ck_assert_int_eq(ap_import_dtype("a name that is far too long for a type"), AP_DTYPE_COUNT);
}
END_TEST
