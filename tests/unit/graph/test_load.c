/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/diag.h"
#include "graph/graph.h"
#include "rule/attr.h"
#include "graph_fixture.h"
#include "harness.h"

#define SCOPE FIXTURE_SCOPE

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_TEST(everything_in_the_file_is_in_the_graph)
{
	const struct ap_graph *g = load_ok(fixture_mlp);
	const struct ap_node *n = node_of(g, SCOPE "layer1-Dense/MatMul-op0");
	const struct ap_node *r = node_of(g, SCOPE "relu1-ReLU/ReLU-op0");
	const struct ap_tensor *w = tensor_of(g, "layer1.weight");
	const struct ap_tensor *w2 = tensor_of(g, "layer2.weight");

	ck_assert_str_eq(messages(), "");
	ck_assert_str_eq(g->name, "mlp");
	ck_assert_str_eq(g->file, "g.json");
	ck_assert_str_eq(g->optimizer, "sgd");
	ck_assert_uint_eq(g->nnode, 8);
	ck_assert_uint_eq(g->ntensor, 13);
	ck_assert_uint_eq(g->ninput, 2);
	ck_assert_int_eq(g->parameters, 512 * 784 + 512 + 512);
	ck_assert_int_eq(g->batch, 32);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	ck_assert_str_eq(n->cell, "_backbone.layer1");
	ck_assert_int_eq(n->stage, 1);
	ck_assert_int_eq(n->fusion, 3);
	ck_assert_int_eq(n->recompute, -1);
	ck_assert_uint_eq(n->in_pin.n, 2);
	ck_assert_uint_eq(n->out_pin.n, 0);
	ck_assert_int_eq(n->in_pin.v[1].rank, 2);
	ck_assert_int_eq(n->in_pin.v[1].cut[0], 4);
	ck_assert(n->measured);
	ck_assert_double_eq(n->measured_forward_s, 0.5);
	ck_assert_double_eq(n->measured_backward_s, 1.0);
	ck_assert_double_eq(n->measured_share, 0.25);
	ck_assert_int_eq(r->recompute, 1);
	ck_assert_str_eq(r->cell, "given");
	ck_assert(!r->measured);
	ck_assert_int_eq(r->stage, -1);
	ck_assert_int_eq(w->comm_fusion, 2);
	ck_assert_int_eq(w2->comm_fusion, -1);
	ck_assert(w->parallel_optimizer && !w->layerwise_parallel);
	ck_assert(!w2->parallel_optimizer && w2->layerwise_parallel);
	ck_assert_int_eq(ap_tensor_bytes(w), 4 * 512 * 784);
}
END_TEST

START_TEST(shapes_are_inferred)
{
	const struct ap_graph *g = load_ok(fixture_mlp);

	ck_assert_str_eq(shape_of(g, "flat"), "[32,784]");
	ck_assert_str_eq(shape_of(g, "h"), "[32,512]");
	ck_assert_str_eq(shape_of(g, "out"), "[32,1]");
	ck_assert_str_eq(shape_of(g, "loss"), "[]");
}
END_TEST

START_TEST(producers_and_uses_agree)
{
	const struct ap_graph *g = load_ok(fixture_mlp);

	for (ap_id t = 0; t < g->ntensor; t++) {
		const struct ap_tensor *x = &g->tensor[t];

		ck_assert_uint_eq(x->nuse, t == g->loss ? 0 : 1);
		for (uint32_t i = 0; i < x->nuse; i++)
			ck_assert_uint_eq(g->node[x->use[i].node].in[x->use[i].operand], t);
		if (x->kind == AP_TENSOR_ACT)
			ck_assert_uint_eq(g->node[x->producer].out[x->result], t);
		else
			ck_assert_uint_eq(x->producer, AP_NONE);
	}
}
END_TEST

START_TEST(gradients_flow_between_parameters_and_loss)
{
	static const struct ap_graph_params inference = {.inference = true};
	const struct ap_graph *g = load_ok(fixture_mlp);

	ck_assert(tensor_of(g, "layer1.weight")->needs_grad);
	ck_assert(!tensor_of(g, "layer1.bias")->needs_grad);
	ck_assert(!tensor_of(g, "flat")->needs_grad);
	ck_assert(!tensor_of(g, "y")->needs_grad);
	ck_assert(tensor_of(g, "h")->needs_grad);
	ck_assert(tensor_of(g, "loss")->needs_grad);
	ck_assert(!node_of(g, SCOPE "flatten-Flatten/Flatten-op0")->backward);
	ck_assert(node_of(g, SCOPE "layer1-Dense/MatMul-op0")->backward);
	ck_assert_int_eq(load_text(fixture_mlp, &inference, &g), AP_OK);
	ck_assert(!tensor_of(g, "h")->needs_grad);
	ck_assert(!node_of(g, "mean")->backward);
}
END_TEST

START_TEST(checkpoint_keys)
{
	const struct ap_graph *g = load_ok(fixture_mlp);
	ap_id i = (ap_id)(node_of(g, SCOPE "layer1-Dense/MatMul-op0") - g->node);
	ap_id bias = (ap_id)(node_of(g, SCOPE "layer1-Dense/BiasAdd-op0") - g->node);

	ck_assert_str_eq(ap_node_key(&ctx, g, i), "MatMul_layer1.weight");
	ck_assert_ptr_null(ap_node_key(&ctx, g, bias)); /* its parameter is not trainable */
	ck_assert_ptr_null(ap_node_key(&ctx, g, (ap_id)(node_of(g, "sub") - g->node)));
}
END_TEST

static bool has_batch(const struct ap_node *n, char letter)
{
	for (uint8_t f = 0; f < n->bound.nfactor; f++)
		if (n->bound.factor[f].letter == letter)
			return n->bound.factor[f].flags & AP_FACTOR_BATCH;
	ck_abort_msg("no factor %c", letter);
	return false;
}

START_TEST(batch_is_marked_along_the_graph)
{
	const struct ap_graph *g = load_ok(fixture_mlp);

	ck_assert_int_eq(tensor_of(g, "x")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "flat")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "h")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "d")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "loss")->batch, 0);
	ck_assert_int_eq(tensor_of(g, "layer1.weight")->batch, 0);
	ck_assert(has_batch(node_of(g, SCOPE "layer1-Dense/MatMul-op0"), 'm'));
	ck_assert(!has_batch(node_of(g, SCOPE "layer1-Dense/MatMul-op0"), 'n'));
	ck_assert(!has_batch(node_of(g, SCOPE "layer1-Dense/MatMul-op0"), 'k'));
	ck_assert(has_batch(node_of(g, "mean"), 'A'));
}
END_TEST

START_TEST(batch_is_rescaled)
{
	const struct ap_graph_params params = {.batch = 48};
	const struct ap_graph *g;

	ck_assert_msg(load_text(fixture_mlp, &params, &g) == AP_OK, "%s", messages());
	ck_assert_int_eq(g->batch, 48);
	ck_assert_str_eq(shape_of(g, "x"), "[48,1,28,28]");
	ck_assert_str_eq(shape_of(g, "y"), "[48,1]");
	ck_assert_str_eq(shape_of(g, "h"), "[48,512]");
	ck_assert_str_eq(shape_of(g, "loss"), "[]");
	ck_assert_str_eq(shape_of(g, "layer1.weight"), "[512,784]");
	ck_assert_int_eq(node_of(g, "sub")->bound.factor[0].size, 48);
}
END_TEST

#define HEAD "{\"schema\": \"autopar-graph/1\", "
#define OP(name, type, in, out, attrs) \
	"{\"name\": \"" name "\", \"type\": \"" type "\", \"inputs\": " in \
	", \"outputs\": [" out "], \"attrs\": {" attrs "}}"
#define T(name) "{\"name\": \"" name "\"}"

/* Batch 4, sequence 6, heads 2 of 5: merged, cut apart, transposed, merged again. */
static const char heads[] = HEAD
	"\"inputs\": [{\"name\": \"x\", \"shape\": [4,6,10], \"dtype\": \"float16\","
	" \"batch_dim\": 0}, {\"name\": \"t\", \"shape\": [24], \"dtype\": \"int32\"}],"
	"\"parameters\": [{\"name\": \"w\", \"shape\": [10,10], \"dtype\": \"float16\"}],"
	"\"operators\": ["
	OP("a", "Reshape", "[\"x\"]", T("a"), "\"shape\": [24, 10]") ","
	OP("m", "MatMul", "[\"a\",\"w\"]", T("m"), "") ","
	OP("b", "Reshape", "[\"m\"]", T("b"), "\"shape\": [4, 6, -1, 5]") ","
	OP("c", "Transpose", "[\"b\"]", T("c"), "\"perm\": [0,2,1,3]") ","
	OP("d", "Reshape", "[\"c\"]", "{\"name\": \"d\", \"shape\": [8,30]}", "") ","
	OP("e", "OneHot", "[\"t\"]", "{\"name\": \"e\", \"dtype\": \"float16\"}",
		"\"depth\": 10") ","
	OP("f", "Mul", "[\"m\",\"e\"]", T("f"), "") ","
	OP("g", "ReduceSum", "[\"f\"]", T("g"), "") "],"
	"\"outputs\": [\"g\", \"d\"]}";

START_TEST(batch_follows_reshapes)
{
	const struct ap_graph *g = load_ok(heads);

	ck_assert_str_eq(messages(), "");
	ck_assert_int_eq(tensor_of(g, "a")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "m")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "b")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "c")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "d")->batch, 1);
	ck_assert_int_eq(tensor_of(g, "t")->batch, 1); /* implied: no batch_dim in the file */
	ck_assert_int_eq(tensor_of(g, "e")->batch, 1);
	ck_assert_int_eq(g->batch, 4);
}
END_TEST

START_TEST(batch_is_rescaled_through_reshapes)
{
	const struct ap_graph_params params = {.batch = 2};
	const struct ap_graph *g;

	ck_assert_msg(load_text(heads, &params, &g) == AP_OK, "%s", messages());
	ck_assert_str_eq(shape_of(g, "x"), "[2,6,10]");
	ck_assert_str_eq(shape_of(g, "a"), "[12,10]");
	ck_assert_str_eq(shape_of(g, "b"), "[2,6,2,5]");
	ck_assert_str_eq(shape_of(g, "d"), "[4,30]");
	ck_assert_str_eq(shape_of(g, "e"), "[12,10]");
	ck_assert_str_eq(shape_of(g, "t"), "[12]");
	ck_assert_int_eq(ap_attr_get(&node_of(g, "b")->attrs, "shape")->list[2], -1);
	ck_assert_int_eq(ap_attr_get(&node_of(g, "b")->attrs, "shape")->list[0], 2);
}
END_TEST

/* Other names of attributes, and two lists as one. */
START_TEST(attributes_as_written)
{
	const struct ap_graph *g = load_ok(HEAD
		"\"inputs\": [{\"name\": \"x\", \"shape\": [4,6], \"dtype\": \"float16\"}],"
		"\"operators\": ["
		OP("a", "Transpose", "[\"x\"]", T("a"), "\"input_perm\": [1,0]") ","
		OP("b", "ReduceSum", "[\"a\"]", T("b"),
			"\"axes\": [[1,2],[3,0]], \"means\": [0.5]") "],"
		"\"outputs\": [\"b\"]}");
	const struct ap_attr *axes = ap_attr_get(&node_of(g, "b")->attrs, "axes");

	ck_assert_str_eq(shape_of(g, "a"), "[6,4]");
	ck_assert_int_eq(axes->type, AP_ATTR_INTS);
	ck_assert_uint_eq(axes->n, 4);
	ck_assert_int_eq(axes->list[1], 2);
	ck_assert_int_eq(axes->list[2], 3);
	ck_assert_int_eq(ap_attr_get(&node_of(g, "b")->attrs, "means")->type, AP_ATTR_ANY);
}
END_TEST

/* Lists of operators that grow with the batch: copies, lengths, ends. */
static const char listed[] = HEAD
	"\"inputs\": [{\"name\": \"x\", \"shape\": [4,6,10], \"dtype\": \"float16\","
	" \"batch_dim\": 0}],"
	"\"parameters\": [{\"name\": \"w\", \"shape\": [1,1,10], \"dtype\": \"float16\"}],"
	"\"operators\": ["
	OP("tile", "Tile", "[\"w\"]", T("token"), "\"multiples\": [4, 1, 1]") ","
	OP("cat", "Concat", "[\"token\",\"x\"]", T("longer"), "\"axis\": 1") ","
	OP("twice", "Tile", "[\"longer\"]", T("wider"), "\"multiples\": [1, 1, 2]") ","
	OP("cut", "Slice", "[\"wider\"]", T("part"),
		"\"begin\": [0, 2, 0], \"size\": [4, 3, 10]") ","
	OP("first", "StridedSlice", "[\"part\"]", T("row"), "\"begin\": [0, 0],"
		"\"end\": [4, 1], \"strides\": [1, 1], \"shrink_axis_mask\": 2") ","
	OP("sum", "ReduceSum", "[\"row\"]", T("loss"), "") "],"
	"\"outputs\": [\"loss\"]}";

START_TEST(batch_is_rescaled_in_lists)
{
	const struct ap_graph_params params = {.batch = 12};
	const struct ap_graph *g;

	ck_assert_msg(load_text(listed, &params, &g) == AP_OK, "%s", messages());
	ck_assert_str_eq(shape_of(g, "token"), "[12,1,10]");
	ck_assert_str_eq(shape_of(g, "longer"), "[12,7,10]");
	ck_assert_str_eq(shape_of(g, "wider"), "[12,7,20]");
	ck_assert_str_eq(shape_of(g, "part"), "[12,3,10]");
	ck_assert_str_eq(shape_of(g, "row"), "[12,10]");
	ck_assert_int_eq(ap_attr_get(&node_of(g, "tile")->attrs, "multiples")->list[0], 12);
	ck_assert_int_eq(ap_attr_get(&node_of(g, "cut")->attrs, "begin")->list[1], 2);
	ck_assert_int_eq(ap_attr_get(&node_of(g, "first")->attrs, "end")->list[1], 1);
}
END_TEST

START_TEST(batch_that_cannot_be_scaled)
{
	static const char tied[] = HEAD
		"\"inputs\": [{\"name\": \"x\", \"shape\": [4,6], \"dtype\": \"float16\","
		" \"batch_dim\": 0}], \"parameters\": [{\"name\": \"w\", \"shape\": [4,6],"
		" \"dtype\": \"float16\"}], \"operators\": ["
		OP("a", "Add", "[\"x\",\"w\"]", T("a"), "") ","
		OP("s", "ReduceSum", "[\"a\"]", T("s"), "") "], \"outputs\": [\"s\"]}";
	const struct ap_graph_params params = {.batch = 8}, micro = {.micro_batches = 2};
	const struct ap_graph *g;
	const char *check;
	enum ap_level level;

	ck_assert_int_eq(load_text(tied, &params, &g), AP_USAGE);
	ck_assert_ptr_nonnull(strstr(messages(), "(operator \"a\"): the batch of 4 cannot be "
		"changed to 8: dimension 0"));
	fixture_teardown();
	fixture_setup();
	ck_assert_int_eq(load_text(tied, NULL, &g), AP_OK);
	ck_assert_ptr_null(ap_diag_text(ctx.diag, 0, &level, &check));
	ck_assert_int_eq(load_text(tied, &micro, &g), AP_OK);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, &level, &check), "the batch meets a dimension "
		"of w; micro-batches would change the result");
	ck_assert_str_eq(check, "batch-mixed");
	ck_assert_int_eq(level, AP_NOTE);
}
END_TEST

START_TEST(results_kept_for_backward_become_tensors)
{
	const struct ap_graph *g = load_ok(HEAD
		"\"inputs\": [{\"name\": \"x\", \"shape\": [4,6], \"dtype\": \"float16\"}],"
		"\"operators\": [" OP("drop", "Dropout", "[\"x\"]", T("drop:1"), "") ","
		OP("s", "ReduceSum", "[\"drop:1\"]", T("s"), "") "], \"outputs\": [\"s\"]}");
	const struct ap_node *n = node_of(g, "drop");

	ck_assert_uint_eq(n->bound.nout, 2);
	ck_assert_str_eq(g->tensor[n->out[0]].name, "drop:1");
	ck_assert_str_eq(g->tensor[n->out[1]].name, "drop:1'");
	ck_assert_int_eq(g->tensor[n->out[1]].shape.dtype, AP_UINT8);
	ck_assert_uint_eq(g->tensor[n->out[1]].nuse, 0);
	ck_assert(n->bound.out[1].saved);
}
END_TEST

START_TEST(optional_operands_may_be_null)
{
	const struct ap_graph *g = load_ok(HEAD
		"\"inputs\": [{\"name\": \"q\", \"shape\": [2,8,12], \"dtype\": \"float16\"},"
		" {\"name\": \"mask\", \"shape\": [8,8], \"dtype\": \"bool\"}],"
		"\"operators\": [" OP("f", "FlashAttentionScore",
			"[\"q\",\"q\",\"q\",null,null,null,\"mask\"]", T("f"), "\"head_num\": 3") ","
		OP("s", "ReduceSum", "[\"f\"]", T("s"), "") "], \"outputs\": [\"s\"]}");
	const struct ap_node *n = node_of(g, "f");

	ck_assert_uint_eq(n->bound.nin, 4);
	ck_assert_str_eq(g->tensor[n->in[3]].name, "mask");
	ck_assert_uint_eq(tensor_of(g, "q")->nuse, 3);
	ck_assert(!n->bound.in[3].differentiable);
	ck_assert(n->bound.in[3].saved);
}
END_TEST

START_TEST(parameters_are_seen_through_casts)
{
	const struct ap_graph *g = load_ok(HEAD
		"\"inputs\": [{\"name\": \"x\", \"shape\": [4,6], \"dtype\": \"float16\"}],"
		"\"parameters\": [{\"name\": \"w\", \"shape\": [6,2], \"dtype\": \"float32\"}],"
		"\"operators\": ["
		OP("c", "Cast", "[\"w\"]", T("c"), "\"dst_type\": \"float16\"") ","
		OP("m", "MatMul", "[\"x\",\"c\"]", T("m"), "") ","
		OP("s", "ReduceSum", "[\"m\"]", T("s"), "") "], \"outputs\": [\"s\"]}");
	ap_id m = (ap_id)(node_of(g, "m") - g->node);

	ck_assert_str_eq(ap_node_key(&ctx, g, m), "MatMul_w");
}
END_TEST

START_TEST(without_a_scalar_every_output_starts_gradients)
{
	const struct ap_graph *g = load_ok(HEAD
		"\"parameters\": [{\"name\": \"w\", \"shape\": [6,2], \"dtype\": \"float32\"}],"
		"\"operators\": [" OP("r", "ReLU", "[\"w\"]", T("r"), "") "],"
		"\"outputs\": [\"r\"]}");
	enum ap_level level;
	const char *check;

	ck_assert_uint_eq(g->loss, AP_NONE);
	ck_assert(tensor_of(g, "w")->needs_grad);
	ck_assert_ptr_nonnull(ap_diag_text(ctx.diag, 0, &level, &check));
	ck_assert_str_eq(check, "loss");
	ck_assert_int_eq(level, AP_NOTE);
}
END_TEST

START_TEST(one_tensor_may_be_two_operands)
{
	const struct ap_graph *g = load_ok(HEAD
		"\"inputs\": [{\"name\": \"x\", \"shape\": [], \"dtype\": \"float32\"}],"
		"\"operators\": [" OP("r", "TensorAdd", "[\"x\", \"x\"]", T("r"), "") "],"
		"\"outputs\": [\"r\"]}");

	ck_assert_uint_eq(tensor_of(g, "x")->nuse, 2);
	ck_assert_str_eq(node_of(g, "r")->type, "Add");
}
END_TEST
