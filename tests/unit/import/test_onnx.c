/* SPDX-License-Identifier: Apache-2.0 */
/* Models of ONNX, written here byte by byte, become the graphs that they should. */
#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "harness.h"
#include "import/write.h"
#include "import_fixture.h"
#include "rule/attr.h"

/* ---- the wire format ---- */

enum { FLOAT = 1, INT64 = 7, MOST = 16 << 20 };

static struct ap_str bytes(void)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	return s;
}

static void varint(struct ap_str *s, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		ap_str_addc(s, (char)(v | 0x80));
	ap_str_addc(s, (char)v);
}

static void number(struct ap_str *s, unsigned field, int64_t v)
{
	varint(s, field << 3);
	varint(s, (uint64_t)v);
}

static void part(struct ap_str *s, unsigned field, struct ap_str in)
{
	varint(s, field << 3 | 2);
	varint(s, in.len);
	ap_str_addn(s, in.s, in.len);
}

static void text(struct ap_str *s, unsigned field, const char *t)
{
	struct ap_str in = bytes();

	ap_str_add(&in, t);
	part(s, field, in);
}

/* Adds words between blanks, a field each. */
static void words(struct ap_str *s, unsigned field, const char *list)
{
	for (const char *p = list; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");

		text(s, field, ap_arena_strndup(ctx.arena, p, len));
		p += len;
	}
}

/* ---- a model ---- */

static struct ap_str net; /* the graph in the making */

static struct ap_str value(const char *name, int64_t type, const char *dims)
{
	struct ap_str v = bytes(), shape = bytes(), tensor = bytes(), any = bytes();

	for (const char *p = dims; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");
		struct ap_str dim = bytes();
		char *word = ap_arena_strndup(ctx.arena, p, len);

		if (strspn(word, "0123456789") == len)
			number(&dim, 1, atoll(word));
		else
			text(&dim, 2, word);
		part(&shape, 1, dim);
		p += len;
	}
	number(&tensor, 1, type);
	part(&tensor, 2, shape);
	part(&any, 1, tensor);
	text(&v, 1, name);
	part(&v, 2, any);
	return v;
}

static void input(const char *name, const char *dims)
{
	part(&net, 11, value(name, FLOAT, dims));
}

static void output(const char *name, const char *dims)
{
	part(&net, 12, value(name, FLOAT, dims));
}

static struct ap_str tensor(const char *name, int64_t type, const char *dims)
{
	struct ap_str t = bytes();

	for (const char *p = dims; *p; p += strspn(p, " ")) {
		number(&t, 1, atoll(p));
		p += strcspn(p, " ");
	}
	number(&t, 2, type);
	if (*name)
		text(&t, 8, name);
	return t;
}

static void weight(const char *name, const char *dims)
{
	part(&net, 5, tensor(name, FLOAT, dims));
}

static void ints(const char *name, const char *dims, const char *values)
{
	struct ap_str t = tensor(name, INT64, dims);

	for (const char *p = values; *p; p += strspn(p, " ")) {
		number(&t, 7, atoll(p));
		p += strcspn(p, " ");
	}
	part(&net, 5, t);
}

static void real(const char *name, float v)
{
	struct ap_str t = tensor(name, FLOAT, ""), raw = bytes();

	ap_str_addn(&raw, (const char *)&v, sizeof v);
	part(&t, 9, raw);
	part(&net, 5, t);
}

static struct ap_str attr_int(const char *name, int64_t v)
{
	struct ap_str a = bytes();

	text(&a, 1, name);
	number(&a, 3, v);
	return a;
}

static struct ap_str attr_ints(const char *name, const char *values)
{
	struct ap_str a = bytes();

	text(&a, 1, name);
	for (const char *p = values; *p; p += strspn(p, " ")) {
		number(&a, 8, atoll(p));
		p += strcspn(p, " ");
	}
	return a;
}

/* attr: of a node; NULL: none */
static void node(const char *type, const char *in, const char *out, const struct ap_str *attr)
{
	struct ap_str n = bytes();

	words(&n, 1, in);
	words(&n, 2, out);
	text(&n, 4, type);
	if (attr)
		part(&n, 5, *attr);
	part(&net, 1, n);
}

static struct ap_str model(void)
{
	struct ap_str m = bytes(), opset = bytes();

	number(&m, 1, 8);
	text(&m, 2, "test");
	part(&m, 7, net);
	number(&opset, 2, 13);
	part(&m, 8, opset);
	return m;
}

static void begin(void)
{
	fixture_setup();
	net = bytes();
	text(&net, 2, "net");
}

/* ---- what is made of it ---- */

static const struct ap_onnx_params plain = {.dtype = AP_DTYPE_COUNT};

static enum ap_status status_of(struct ap_str m, const struct ap_onnx_params *params, const struct ap_import **g)
{
	return ap_import_onnx(&ctx, "net.onnx", m.s, m.len, MOST, params ? params : &plain, g);
}

/* The graph, loaded; the test fails with the first message where there is none. */
static const struct ap_graph *made(const struct ap_onnx_params *params)
{
	const struct ap_import *g;
	struct ap_str json = bytes();

	ck_assert_msg(status_of(model(), params, &g) == AP_OK, "%s", messages());
	ap_import_write(&ctx, g, ap_str_take, &json);
	return graph_of(json.s);
}

static uint32_t count(const struct ap_graph *g, const char *type)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->nnode; i++)
		n += !strcmp(g->node[i].type, type);
	return n;
}

/* The message of a model that is refused with this status. */
static const char *refused(enum ap_status expected, const struct ap_onnx_params *params)
{
	const struct ap_import *g;

	ck_assert_int_eq(status_of(model(), params, &g), expected);
	return messages();
}

static void says(const char *all, const char *word)
{
	ck_assert_msg(strstr(all, word), "no \"%s\" in: %s", word, all);
}

TEST_FIXTURE(begin, fixture_teardown)

/* ---- constants ---- */

/* As torch writes x.view(x.size(0), -1): Shape, Gather, Unsqueeze, Concat, Reshape. */
START_TEST(chains_of_shapes_are_computed)
{
	const struct ap_onnx_params batch = {.batch = 6, .dtype = AP_DTYPE_COUNT};
	const struct ap_graph *g;
	const struct ap_node *n;
	const struct ap_attr *shape;
	struct ap_str axis = attr_int("axis", 0);

	input("x", "batch 4 5");
	ints("zero", "", "0");
	ints("first", "1", "0");
	ints("rest", "1", "-1");
	node("Relu", "x", "r", NULL);
	node("Shape", "r", "s", NULL);
	node("Gather", "s zero", "b", &axis);
	node("Unsqueeze", "b first", "u", NULL);
	node("Concat", "u rest", "c", &axis);
	node("Reshape", "r c", "y", NULL);
	output("y", "batch n");
	g = made(&batch);
	ck_assert_int_eq(count(g, "Reshape"), 1);
	ck_assert_int_eq(count(g, "Gather") + count(g, "Concat") + count(g, "ExpandDims"), 0);
	n = node_of_type(g, "Reshape", 0);
	shape = ap_attr_get(&n->attrs, "shape");
	ck_assert_ptr_nonnull(shape);
	ck_assert_int_eq(shape->n, 2);
	ck_assert_int_eq(shape->list[0], 6);
	ck_assert_int_eq(shape->list[1], 20);
}
END_TEST

/* Range, Slice backwards, Where, ConstantOfShape: worked by hand. [5,4,3,2,1,0][0:4:2] = [5,3]; + [1,2] = [6,5]. */
START_TEST(arithmetic_of_constants)
{
	const struct ap_graph *g;
	const struct ap_attr *shape;

	input("x", "30");
	ints("zero", "", "0");
	ints("six", "", "6");
	ints("one", "", "1");
	ints("a0", "1", "0");
	ints("a4", "1", "4");
	ints("two", "1", "2");
	ints("minus", "1", "-1");
	ints("end", "1", "-1000");
	ints("more", "2", "1 2");
	node("Range", "zero six one", "r", NULL);
	node("Slice", "r minus end a0 minus", "b", NULL);
	node("Slice", "b a0 a4 a0 two", "c", NULL);
	node("Add", "c more", "d", NULL);
	node("Reshape", "x d", "y", NULL);
	output("y", "6 5");
	g = made(NULL);
	shape = ap_attr_get(&node_of_type(g, "Reshape", 0)->attrs, "shape");
	ck_assert_int_eq(shape->list[0], 6);
	ck_assert_int_eq(shape->list[1], 5);
}
END_TEST

/* As torch writes the bounds of pad(): pairs in two columns, turned over and transposed. [1,2,3,4] as [[1,2],[3,4]],
 * rows in reverse [[3,4],[1,2]], transposed [[3,1],[4,2]]. */
START_TEST(columns_of_constants_are_turned)
{
	struct ap_str axis = attr_int("axis", 0), perm = attr_ints("perm", "1 0");
	const struct ap_graph *g;
	const struct ap_attr *pads;

	input("x", "5 6");
	ints("p", "4", "1 2 3 4");
	ints("pairs", "2", "-1 2");
	ints("all", "1", "-1");
	ints("a0", "1", "0");
	ints("minus", "1", "-1");
	ints("end", "1", "-1000");
	node("Reshape", "p pairs", "q", &axis);
	node("Slice", "q minus end a0 minus", "r", NULL);
	node("Transpose", "r", "s", &perm);
	node("Reshape", "s all", "t", NULL);
	node("Pad", "x t", "y", NULL);
	output("y", "12 9");
	g = made(NULL);
	pads = ap_attr_get(&node_of_type(g, "PadV3", 0)->attrs, "paddings");
	ck_assert_int_eq(pads->n, 4); /* of the last dimension first */
	ck_assert_int_eq(pads->list[0], 1);
	ck_assert_int_eq(pads->list[1], 2);
	ck_assert_int_eq(pads->list[2], 3);
	ck_assert_int_eq(pads->list[3], 4);
}
END_TEST

START_TEST(what_the_file_says_of_shapes_is_held)
{
	const char *all;

	input("x", "4 6");
	node("Relu", "x", "r", NULL);
	part(&net, 13, value("r", FLOAT, "4 7"));
	node("Neg", "r", "y", NULL);
	output("y", "4 6");
	all = refused(AP_MEANING, NULL);
	says(all, "[4, 7]");
	says(all, "[4, 6] is inferred");
}
END_TEST

START_TEST(open_lengths_are_listed)
{
	static const struct ap_onnx_length seq = {"seq", 3};
	const struct ap_onnx_params params = {.batch = 2, .dim = &seq, .ndim = 1, .dtype = AP_DTYPE_COUNT};
	const char *all;
	const struct ap_graph *g;

	input("x", "batch seq 8");
	node("Relu", "x", "y", NULL);
	output("y", "batch seq 8");
	all = refused(AP_MEANING, NULL);
	says(all, "batch of \"x\"");
	says(all, "seq of \"x\"");
	g = made(&params);
	ck_assert_int_eq(g->batch, 2);
}
END_TEST

/* ---- weights ---- */

/* An Identity of a vector is another parameter that was equal; of a matrix it is the same one. */
START_TEST(equal_vectors_are_parameters_of_their_own)
{
	const struct ap_graph *g;

	input("x", "2 8");
	weight("a.weight", "8 8");
	weight("a.bias", "8");
	node("Identity", "a.weight", "b.weight", NULL);
	node("Identity", "a.bias", "b.bias", NULL);
	node("MatMul", "x a.weight", "m", NULL);
	node("Add", "m a.bias", "n", NULL);
	node("MatMul", "n b.weight", "o", NULL);
	node("Add", "o b.bias", "y", NULL);
	output("y", "2 8");
	g = made(NULL);
	ck_assert_int_eq(g->parameters, 64 + 8 + 8);
}
END_TEST

/* Copies of a layer have names that differ by numbers. */
START_TEST(equal_layers_are_not_shared)
{
	const struct ap_graph *g;

	input("x", "2 8");
	weight("layers.0.weight", "8 8");
	node("Identity", "layers.0.weight", "layers.1.weight", NULL);
	node("Identity", "layers.0.weight", "head.weight", NULL);
	node("MatMul", "x layers.0.weight", "a", NULL);
	node("MatMul", "a layers.1.weight", "b", NULL);
	node("MatMul", "b head.weight", "y", NULL);
	output("y", "2 8");
	g = made(NULL);
	ck_assert_int_eq(g->parameters, 2 * 64);
}
END_TEST

/* A matrix that an exporter has turned is the other one, where their elements say so. */
START_TEST(a_turned_matrix_is_shared)
{
	const float v[6] = {1, 2, 3, 4, 5, 6}, turned[6] = {1, 4, 2, 5, 3, 6}, other[6] = {1, 4, 2, 5, 3, 7};

	for (int same = 0; same < 2; same++) {
		struct ap_str a, b, raw;
		const struct ap_graph *g;

		fixture_teardown();
		begin();
		input("x", "4 3");
		a = tensor("wte.weight", FLOAT, "2 3");
		raw = bytes();
		ap_str_addn(&raw, (const char *)v, sizeof v);
		part(&a, 9, raw);
		part(&net, 5, a);
		b = tensor("onnx::MatMul_7", FLOAT, "3 2");
		raw = bytes();
		ap_str_addn(&raw, (const char *)(same ? turned : other), sizeof v);
		part(&b, 9, raw);
		part(&net, 5, b);
		node("MatMul", "x onnx::MatMul_7", "m", NULL);
		node("MatMul", "m wte.weight", "y", NULL);
		output("y", "4 3");
		g = made(NULL);
		ck_assert_int_eq(g->parameters, same ? 6 : 12);
	}
}
END_TEST

/* Three gigabytes of weights in a file with holes: nothing of them is read. */
START_TEST(weights_are_skipped_by_their_length)
{
	const uint64_t large = UINT64_C(3) << 30;
	char path[] = "/tmp/autopar-onnx-XXXXXX";
	struct ap_str t = tensor("w", FLOAT, "28672 28672"), m = bytes(), head = bytes();
	int fd = mkstemp(path);
	const struct ap_import *g;

	ck_assert_int_ge(fd, 0);
	/* the graph: the tensor with its bytes first, then the rest */
	varint(&t, 9 << 3 | 2);
	varint(&t, large);
	input("x", "2 28672");
	node("MatMul", "x w", "y", NULL);
	output("y", "2 28672");
	varint(&head, 5 << 3 | 2);
	varint(&head, t.len + large);
	number(&m, 1, 8);
	varint(&m, 7 << 3 | 2);
	varint(&m, head.len + t.len + large + net.len);
	ap_str_addn(&m, head.s, head.len);
	ap_str_addn(&m, t.s, t.len);
	ck_assert_int_eq(pwrite(fd, m.s, m.len, 0), (ssize_t)m.len);
	ck_assert_int_eq(pwrite(fd, net.s, net.len, (off_t)(m.len + large)), (ssize_t)net.len);
	close(fd);
	ck_assert_msg(ap_import_onnx(&ctx, path, NULL, 0, 1 << 20, &plain, &g) == AP_OK, "%s", messages());
	unlink(path);
	ck_assert_int_gt(ap_import_size(g), 0);
}
END_TEST

/* ---- chains ---- */

static void add_layer_norm(const char *x, const char *y)
{
	struct ap_str axes = attr_ints("axes", "-1");
	const char *in;

	real("two", 2);
	real("eps", 1e-5F);
	weight("gamma", "8");
	weight("beta", "8");
	node("ReduceMean", x, "mean", &axes);
	in = ap_arena_printf(ctx.arena, "%s mean", x);
	node("Sub", in, "c", NULL);
	node("Pow", "c two", "sq", NULL);
	node("ReduceMean", "sq", "var", &axes);
	node("Add", "var eps", "ve", NULL);
	node("Sqrt", "ve", "sd", NULL);
	node("Div", "c sd", "n", NULL);
	node("Mul", "n gamma", "g", NULL);
	node("Add", "g beta", y, NULL);
}

START_TEST(a_layer_norm_is_one)
{
	const struct ap_graph *g;
	const struct ap_node *n;

	input("x", "2 3 8");
	add_layer_norm("x", "y");
	output("y", "2 3 8");
	g = made(NULL);
	n = node_of_type(g, "LayerNorm", 0);
	ck_assert_int_eq(ap_attr_int(&n->attrs, "begin_norm_axis", -9), 2);
	ck_assert_double_eq_tol(ap_attr_get(&n->attrs, "epsilon")->f, 1e-5, 1e-9);
	ck_assert_int_eq(count(g, "Sqrt"), 0);
}
END_TEST

/* Who else reads a step needs it. */
START_TEST(a_chain_that_is_read_inside_stays)
{
	const struct ap_graph *g;

	input("x", "2 3 8");
	add_layer_norm("x", "z");
	node("Mul", "z sd", "y", NULL);
	output("y", "2 3 8");
	g = made(NULL);
	ck_assert_int_eq(count(g, "LayerNorm"), 0);
	ck_assert_int_eq(count(g, "Sqrt"), 1);
}
END_TEST

START_TEST(activations_are_one)
{
	const struct ap_graph *g;

	input("x", "4 8");
	real("root", 1.41421356F);
	real("half", 0.5F);
	real("one", 1);
	node("Div", "x root", "a", NULL);
	node("Erf", "a", "b", NULL);
	node("Add", "b one", "c", NULL);
	node("Mul", "x c", "d", NULL);
	node("Mul", "d half", "e", NULL);
	node("Sigmoid", "e", "f", NULL);
	node("Mul", "e f", "y", NULL);
	output("y", "4 8");
	g = made(NULL);
	ck_assert_int_eq(count(g, "GeLU"), 1);
	ck_assert_int_eq(count(g, "SiLU"), 1);
	ck_assert_int_eq(count(g, "Erf") + count(g, "Sigmoid"), 0);
}
END_TEST

/* 1 / sqrt(64) as a scale, keys transposed in the exporter's single step. */
START_TEST(attention_is_one)
{
	const struct ap_onnx_params flash = {.flash = true, .dtype = AP_DTYPE_COUNT};
	struct ap_str heads = attr_ints("perm", "0 2 1 3"), keys = attr_ints("perm", "0 2 3 1");
	const struct ap_graph *g;
	const struct ap_node *n;

	input("q", "2 16 4 64");
	input("k", "2 16 4 64");
	input("v", "2 16 4 64");
	real("scale", 8);
	node("Transpose", "q", "qt", &heads);
	node("Transpose", "k", "kt", &keys);
	node("Transpose", "v", "vt", &heads);
	node("MatMul", "qt kt", "s", NULL);
	node("Div", "s scale", "t", NULL);
	node("Softmax", "t", "p", NULL);
	node("MatMul", "p vt", "y", NULL);
	output("y", "2 4 16 64");
	g = made(&flash);
	n = node_of_type(g, "FlashAttentionScore", 0);
	ck_assert_int_eq(ap_attr_int(&n->attrs, "head_num", 0), 4);
	ck_assert_double_eq_tol(ap_attr_get(&n->attrs, "scale_value")->f, 0.125, 1e-9);
	ck_assert_int_eq(count(g, "Transpose"), 3);
	g = made(NULL);
	ck_assert_int_eq(count(g, "FlashAttentionScore"), 0);
	ck_assert_int_eq(count(g, "BatchMatMul"), 2);
}
END_TEST

/* A product of einsum: batches, and dimensions in another order. bsh,ehf->bsef is [2*3, 8] times [8, 5*7]. */
START_TEST(einsum_is_a_product)
{
	struct ap_str equation = bytes();
	const struct ap_graph *g;
	const struct ap_node *n;

	text(&equation, 1, "equation");
	text(&equation, 4, "bsh,ehf->bsef");
	input("x", "2 3 8");
	weight("w", "5 8 7");
	node("Einsum", "x w", "y", &equation);
	output("y", "2 3 5 7");
	g = made(NULL);
	ck_assert_int_eq(count(g, "MatMul"), 1);
	n = node_of_type(g, "MatMul", 0);
	ck_assert_int_eq(g->tensor[n->in[0]].shape.dim[0], 6);
	ck_assert_int_eq(g->tensor[n->in[1]].shape.dim[1], 35);
}
END_TEST

/* The turn of torch's newer exporter, by way of a list of matrices. */
START_TEST(keys_turned_as_a_list_of_matrices)
{
	struct ap_str turn = attr_ints("perm", "0 2 1");
	const struct ap_onnx_params flash = {.flash = true, .dtype = AP_DTYPE_COUNT};

	input("q", "2 4 16 64");
	input("k", "2 4 16 64");
	input("v", "2 4 16 64");
	ints("list", "3", "-1 16 64");
	ints("back", "4", "2 4 64 16");
	real("root", 0.35355339F);
	real("zero", 0);
	node("Reshape", "k list", "k1", NULL);
	node("Transpose", "k1", "k2", &turn);
	node("Reshape", "k2 back", "k3", NULL);
	node("Mul", "k3 root", "k4", NULL);
	node("Mul", "q root", "q1", NULL);
	node("MatMul", "q1 k4", "s", NULL);
	node("Softmax", "s", "p", NULL);
	node("IsNaN", "p", "nan", NULL);
	node("Where", "nan zero p", "p1", NULL);
	node("MatMul", "p1 v", "y", NULL);
	output("y", "2 4 16 64");
	ck_assert_int_eq(count(made(&flash), "FlashAttentionScore"), 1);
}
END_TEST

/* ---- branches and functions ---- */

static struct ap_str branch_of(const char *name, const char *type)
{
	struct ap_str a = bytes(), g = bytes(), n = bytes();

	text(&n, 1, "x");
	text(&n, 2, name);
	text(&n, 4, type);
	part(&g, 1, n);
	part(&g, 12, value(name, FLOAT, "2 8"));
	text(&a, 1, name);
	part(&a, 6, g);
	return a;
}

/* The condition is known from a shape: the rank of x is 2. */
START_TEST(a_known_branch_is_taken)
{
	const struct ap_graph *g;
	struct ap_str n = bytes();

	input("x", "2 8");
	ints("two", "", "2");
	node("Shape", "x", "s", NULL);
	node("Size", "s", "r", NULL);
	node("Equal", "r two", "c", NULL);
	text(&n, 1, "c");
	text(&n, 2, "y");
	text(&n, 4, "If");
	part(&n, 5, branch_of("then_branch", "Tanh"));
	part(&n, 5, branch_of("else_branch", "Exp"));
	part(&net, 1, n);
	output("y", "2 8");
	g = made(NULL);
	ck_assert_int_eq(count(g, "Tanh"), 1);
}
END_TEST

/* A function of the model with an attribute of its call, twice; the second result of it is not asked for. */
START_TEST(functions_are_put_in_place)
{
	struct ap_str m, f = bytes(), n = bytes(), ref = bytes(), call = bytes(), axis = attr_int("dim", 1);
	const struct ap_import *g;
	struct ap_str json = bytes();
	const struct ap_graph *graph;

	text(&f, 1, "normed");
	text(&f, 10, "pkg.test");
	text(&f, 4, "a");
	text(&f, 5, "b");
	text(&f, 6, "dim");
	text(&ref, 1, "axis");
	text(&ref, 21, "dim");
	text(&n, 1, "a");
	text(&n, 2, "b");
	text(&n, 4, "Softmax");
	part(&n, 5, ref);
	part(&f, 7, n);
	input("x", "2 5 8");
	for (int i = 0; i < 2; i++) {
		call = bytes();
		text(&call, 1, i ? "h" : "x");
		text(&call, 2, i ? "y" : "h");
		text(&call, 4, "normed");
		text(&call, 7, "pkg.test");
		part(&call, 5, axis);
		part(&net, 1, call);
	}
	node("Relu", "y", "z", NULL);
	output("z", "2 5 8");
	m = model();
	part(&m, 25, f);
	ck_assert_msg(status_of(m, NULL, &g) == AP_OK, "%s", messages());
	ap_import_write(&ctx, g, ap_str_take, &json);
	graph = graph_of(json.s);
	ck_assert_int_eq(count(graph, "Softmax"), 2);
	ck_assert_int_eq(ap_attr_get(&node_of_type(graph, "Softmax", 1)->attrs, "axis")->list[0], 1);
}
END_TEST

/* A function that calls itself ends with a message. */
START_TEST(endless_calls_are_refused)
{
	struct ap_str m, f = bytes(), n = bytes();
	const struct ap_import *g;

	text(&f, 1, "again");
	text(&f, 10, "pkg.test");
	text(&f, 4, "a");
	text(&f, 5, "b");
	text(&n, 1, "a");
	text(&n, 2, "b");
	text(&n, 4, "again");
	text(&n, 7, "pkg.test");
	part(&f, 7, n);
	input("x", "2 8");
	n = bytes();
	text(&n, 1, "x");
	text(&n, 2, "y");
	text(&n, 4, "again");
	text(&n, 7, "pkg.test");
	part(&net, 1, n);
	output("y", "2 8");
	m = model();
	part(&m, 25, f);
	ck_assert_int_eq(status_of(m, NULL, &g), AP_MEANING);
	says(messages(), "call each other");
}
END_TEST

/* A few lines that stand for very much. */
START_TEST(calls_that_multiply_are_limited)
{
	struct ap_str m, n;
	const struct ap_import *g;

	input("x", "2 8");
	n = bytes();
	text(&n, 1, "x");
	text(&n, 2, "y");
	text(&n, 4, "f0");
	text(&n, 7, "pkg.test");
	part(&net, 1, n);
	output("y", "2 8");
	m = model();
	for (int i = 0; i < 12; i++) {
		struct ap_str f = bytes();

		text(&f, 1, ap_arena_printf(ctx.arena, "f%d", i));
		text(&f, 10, "pkg.test");
		text(&f, 4, "a");
		text(&f, 5, "b0");
		for (int k = 0; k < 10; k++) {
			n = bytes();
			text(&n, 1, "a");
			text(&n, 2, ap_arena_printf(ctx.arena, "b%d", k));
			text(&n, 4, i == 11 ? "Relu" : ap_arena_printf(ctx.arena, "f%d", i + 1));
			text(&n, 7, i == 11 ? "" : "pkg.test");
			part(&f, 7, n);
		}
		part(&m, 25, f);
	}
	ck_assert_int_eq(status_of(m, NULL, &g), AP_LIMIT);
	says(messages(), "calls of its functions");
}
END_TEST

/* ---- faults ---- */

START_TEST(unknown_operators_are_listed_at_once)
{
	const char *all;

	input("x", "2 8");
	node("Relux", "x", "a", NULL);
	node("Relux", "x", "b", NULL);
	node("Frobnicate", "a", "c", NULL);
	node("Add", "b c", "y", NULL);
	output("y", "2 8");
	all = refused(AP_MEANING, NULL);
	says(all, "Relux (2; near: ");
	says(all, "Relu");
	says(all, "Frobnicate (1)");
}
END_TEST

START_TEST(a_circle_is_told)
{
	input("x", "2 8");
	node("Add", "x b", "a", NULL);
	node("Relu", "a", "b", NULL);
	output("b", "2 8");
	says(refused(AP_MEANING, NULL), "circle");
}
END_TEST

/* Nodes may stand in any order. */
START_TEST(nodes_are_sorted)
{
	input("x", "2 8");
	node("Exp", "a", "y", NULL);
	node("Relu", "x", "a", NULL);
	output("y", "2 8");
	ck_assert_int_eq(count(made(NULL), "ReLU"), 1);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
	struct ap_str inner = bytes();
	struct ap_str attr;

	for (int i = 0; i < 20; i++) {
		struct ap_str n = bytes(), outer = bytes();

		attr = bytes();
		text(&attr, 1, "then_branch");
		part(&attr, 6, inner);
		text(&n, 4, "If");
		part(&n, 5, attr);
		part(&outer, 1, n);
		inner = outer;
	}
	net = inner;
	says(refused(AP_LIMIT, NULL), "graphs in graphs");
}
END_TEST

START_TEST(lengths_beyond_the_end_are_told)
{
	struct ap_str m = bytes();
	const struct ap_import *g;

	number(&m, 1, 8);
	varint(&m, 7 << 3 | 2);
	varint(&m, UINT64_C(2) << 30);
	ap_str_add(&m, "abc");
	ck_assert_int_eq(status_of(m, NULL, &g), AP_SYNTAX);
	says(messages(), "2147483648 bytes");
}
END_TEST

/* A model that is cut anywhere has no graph, or is told to be cut. */
START_TEST(cut_anywhere)
{
	struct ap_str m;
	const struct ap_import *g;
	size_t graph_end;

	input("x", "2 3 8");
	add_layer_norm("x", "y");
	output("y", "2 3 8");
	m = model();
	graph_end = m.len - 4; /* the operator set behind it */
	for (size_t n = 0; n < graph_end; n++) {
		struct ap_str cut = {.arena = m.arena, .s = m.s, .len = n};

		ck_assert_int_eq(status_of(cut, NULL, &g), AP_SYNTAX);
	}
	ck_assert_int_eq(status_of(m, NULL, &g), AP_OK);
}
END_TEST

START_TEST(what_may_be_kept_is_limited)
{
	struct ap_str m;
	const struct ap_import *g;

	input("x", "2 8");
	for (int i = 0; i < 100; i++)
		weight(ap_arena_printf(ctx.arena, "w%d", i), "8 8");
	output("x", "2 8");
	m = model();
	ck_assert_int_eq(ap_import_onnx(&ctx, "net.onnx", m.s, m.len, 1000, &plain, &g), AP_LIMIT);
}
END_TEST
