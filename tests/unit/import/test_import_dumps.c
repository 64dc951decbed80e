/* SPDX-License-Identifier: Apache-2.0 */
/* The dumps of tests/dumps: whole ones give graphs, pieces as far as they go, others are refused. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "harness.h"
#include "import_fixture.h"

static const struct {
	const char *file;
	const char *types; /* of a piece as far as it goes; NULL: refused. The text is among the messages. */
	const char *text;
} dumps[] = {
	{"1.3_execute_header.ir", "Add Mul", ":18: the dump ends here, within sub-graph @6_5_1_construct_wrapper.15"},
	{"1.7_step_parallel_begin_ffn_sharding_propagation.ir", "MatMul Add ReLU MatMul Add",
		":3: para4_dense1.bias is not in this piece"},
	{"1.x_conv_bn_recompute.ir", "Conv2D BatchNorm",
		":7: the piece is read up to here: what follows holds the backward pass"},
	{"2.0_execute_matmul.ir", "MatMul",
		":4: the piece is read up to here: what follows holds what each device runs (AllReduce)"},
	{"2.0_step_parallel_begin_matmul.ir", "MatMul ReLU MatMul", ":7: para4_w2 is not in this piece"},
	{"2.1_recompute_relu_validate.ir", NULL, ":1: holds the backward pass, so it is no source of a graph; "
		"expected NN_pre_auto_parallel"},
	{"2.1_step_parallel_begin_mlp_recursive.ir", "Flatten MatMul BiasAdd ReLU", ":1: %1 is not in this piece"},
	{"2.1_validate_mlp.ir", "MatMul", ":4: the piece is read up to here"},
	{"2.6_mnist_inference_cnodes.txt", NULL, ":1: \"Flatten\" has no types; expected a dump written with"},
	{"docs_dump_conv2d.ir", "Conv2D", ":7: a piece of the dump is left out here"},
	{"docs_graph_construction.ir", "Add", ":1: does not begin as a dump does"},
	{"docs_graph_optimization.ir", "Add", ":12: another piece begins here"},
	{"docs_mindformers_llama.ir", "MatMul Reshape Transpose",
		":4: holds what each device runs: shapes are those of its slices"},
	{"docs_mindir_2.3_1.ir", "Sub Add Cast", ":49: the piece is read up to here: control flow"},
	{"docs_mindir_2.3_2.ir", NULL, ":18: was written before types are known"},
	{"docs_mindir_2.3_3.ir", NULL, ":19: was written before types are known"},
	{"docs_recompute_2.x.ir", "RealDiv BatchMatMul", ":10: the piece is read up to here"},
	{"cnn_pre_auto_parallel_0023.ir", "Conv2D BatchNorm ReLU MaxPool Conv2D BiasAdd ReLU MaxPool Flatten MatMul BiasAdd "
		"ReLU MatMul BiasAdd SparseSoftmaxCrossEntropyWithLogits", "the batch is 64"},
	{"bert_insert-virtual-dataset_0027.ir", "", "the batch is 16, dimension 0 of input input_ids"},
	{"mlp_step_auto_parallel_begin_0031.ir", "Flatten MatMul BiasAdd ReLU MatMul BiasAdd ReLU MatMul BiasAdd Cast "
		"Sub Abs Mul ReduceMean", "the batch is 32, dimension 0 of input x"},
	{"transformer_step_parallel_begin_0052.ir", "", "the batch is 8, dimension 0 of input input_ids"},
};

static const int whole = 4, scoped = 2; /* the last ones; those of them without full names */

static const char *text_of(const char *file)
{
	size_t len;

	return file_text(ap_arena_printf(ctx.arena, "tests/dumps/%s", file), &len);
}

static const char *types_of(const struct ap_graph *g)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (uint32_t i = 0; i < g->nnode; i++)
		ap_str_addf(&s, "%s%s", i ? " " : "", g->node[i].type);
	return s.s;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(pieces, AP_COUNT(dumps))
{
	const struct ap_import_params partial = {.micro_batches = 1, .partial = true};
	enum ap_status st;
	const char *json = imported(text_of(dumps[_i].file), &partial, &st);

	ck_assert_msg((st == AP_OK) == (dumps[_i].types != NULL), "%s: %s", dumps[_i].file, messages());
	holds(messages(), dumps[_i].text);
	if (st == AP_OK && *dumps[_i].types)
		ck_assert_str_eq(types_of(graph_of(json)), dumps[_i].types);
}
END_TEST

/* Without --partial nothing is taken for whole that is not. */
START_LOOP_TEST(pieces_are_no_graphs, AP_COUNT(dumps) - whole)
{
	enum ap_status st;

	imported(text_of(dumps[_i].file), NULL, &st);
	ck_assert(st == AP_SYNTAX || st == AP_MEANING);
}
END_TEST

/* Every file of the folder is in the table. */
START_TEST(all_files)
{
	size_t n = 0;
	DIR *dir = opendir(AP_SOURCE_ROOT "/tests/dumps");

	ck_assert_ptr_nonnull(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += *entry->d_name != '.' && strcmp(entry->d_name, "README.md") != 0;
	closedir(dir);
	ck_assert_uint_eq(n, AP_COUNT(dumps));
}
END_TEST

/* A whole dump that is cut anywhere is told as such, or read as far as it goes: as soon as it holds an operator. */
START_LOOP_TEST(cut_anywhere, scoped)
{
	const struct ap_import_params cut = {.micro_batches = 1}, partial = {.micro_batches = 1, .partial = true};
	size_t len, from = 0, step = _i ? 13 : 1;
	const struct ap_import *g;
	char *text = file_text(ap_arena_printf(ctx.arena, "tests/dumps/%s",
		dumps[AP_COUNT(dumps) - 1 - (size_t)_i].file), &len);
	const char *first = strstr(strstr(text, "PrimFunc_"), "\n      # Scope");
	char *copy = malloc(len);

	memcpy(copy, text, len);
	for (size_t k = 0; (from += strcspn(copy + from, "\n") + 1) < len - 4; k++) {
		enum ap_status st;

		if (k % step)
			continue;
		fixture_teardown();
		fixture_setup();
		st = ap_import_ir(&ctx, "net.ir", copy, from - k % 7, &cut, &g);
		ck_assert_msg(st == AP_SYNTAX, "cut at %zu: %d %s", from, st, messages());
		holds(messages(), "net.ir:");
		fixture_teardown();
		fixture_setup();
		st = ap_import_ir(&ctx, "net.ir", copy, from - k % 7, &partial, &g);
		ck_assert_msg((st == AP_OK) == (from - k % 7 >= (size_t)(first - text)), "cut at %zu: %s",
			from, messages());
		ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), st != AP_OK);
	}
	free(copy);
}
END_TEST

static const struct ap_graph *model(const char *path)
{
	size_t len;

	return graph_of(file_text(path, &len));
}

/* Operators, checkpoint keys, shapes and attributes are those of the bundled model. */
START_TEST(mlp_is_the_bundled_model)
{
	const struct ap_graph *g = graph_of(imported_ok(text_of("mlp_step_auto_parallel_begin_0031.ir")));
	const struct ap_graph *m = model("models/multiple_mix.json");

	ck_assert_uint_eq(g->nnode, m->nnode);
	ck_assert_str_eq(g->optimizer, m->optimizer);
	ck_assert_int_eq(g->parameters, m->parameters);
	ck_assert_int_eq(g->batch, m->batch);
	for (uint32_t i = 0; i < g->nnode; i++) {
		const struct ap_node *a = &g->node[i], *b = &m->node[i];
		const char *key = ap_node_key(&ctx, g, i), *other = ap_node_key(&ctx, m, i);

		ck_assert_str_eq(a->type, b->type);
		ck_assert_str_eq(key ? key : "", other ? other : "");
		ck_assert_str_eq(strrchr(a->name, '/'), strrchr(b->name, '/'));
		ck_assert_uint_eq(a->bound.nin, b->bound.nin);
		for (uint16_t k = 0; k < a->bound.nin; k++)
			ck_assert_mem_eq(&g->tensor[a->in[k]].shape, &m->tensor[b->in[k]].shape,
				sizeof(struct ap_shape));
		ck_assert_mem_eq(&g->tensor[a->out[0]].shape, &m->tensor[b->out[0]].shape,
			sizeof(struct ap_shape));
	}
}
END_TEST

START_TEST(transformer)
{
	const struct ap_graph *g = graph_of(imported_ok(text_of("transformer_step_parallel_begin_0052.ir")));
	const struct ap_node *n = node_of_type(g, "MatMul", 0);
	uint32_t pinned = 0, cast = 0;

	ck_assert_uint_eq(g->nnode, 105); /* and 25 Casts of parameters, which have none any more */
	ck_assert_int_eq(g->batch, 8);
	ck_assert_uint_eq(g->ncell, 1);
	ck_assert_str_eq(g->cell[0].name, "network.layers.1.mlp");
	ck_assert_str_eq(ap_node_key(&ctx, g, (ap_id)(n - g->node)), "MatMul_layers.0.attention.q.weight");
	for (uint32_t i = 0; i < g->nnode; i++)
		pinned += g->node[i].in_pin.n > 0;
	ck_assert_uint_eq(pinned, 47);
	for (uint32_t t = 0; t < g->ntensor; t++) {
		const struct ap_tensor *of = &g->tensor[t];

		cast += of->kind == AP_TENSOR_PARAM && of->read_as == AP_FLOAT16 &&
			of->shape.dtype == AP_FLOAT32;
	}
	ck_assert_uint_eq(cast, 25);
	ck_assert_int_eq(n->bound.in[1].dtype, AP_FLOAT16);
	ck_assert_uint_eq(node_of_type(g, "LayerNorm", 0)->bound.nout, 3);
	ck_assert_str_eq(node_of_type(g, "BatchMatMul", 0)->instance, "batch_matmul");
	ck_assert_str_eq(node_of_type(g, "BatchMatMul", 1)->instance, "batch_matmul2");
}
END_TEST

/* Full names stay as they are, and what has side effects reads no monad. */
START_TEST(full_names)
{
	const struct ap_graph *g = graph_of(imported_ok(text_of("cnn_pre_auto_parallel_0023.ir")));
	const struct ap_node *n = node_of_type(g, "BatchNorm", 0);

	ck_assert_ptr_null(strstr(messages(), "dump-names"));
	ck_assert_str_eq(n->name, "Default/network-WithLossCell/_backbone-LeNetBn/bn1-BatchNorm2d/BatchNorm-op0");
	ck_assert_uint_eq(n->bound.nin, 5);
	ck_assert_uint_eq(n->bound.nout, 5);
	ck_assert(!g->tensor[n->in[3]].trainable);
	ck_assert_str_eq(g->optimizer, "momentum");
	ck_assert_str_eq(ap_node_key(&ctx, g, 4), "Conv2D_conv2.weight");
}
END_TEST

/* Data of several lengths carries the batch, whatever is a multiple of it. */
START_TEST(data)
{
	const struct ap_graph *g = graph_of(imported_ok(text_of("bert_insert-virtual-dataset_0027.ir")));
	const struct ap_node *n = node_of_type(g, "VirtualDataset", 0);
	const struct ap_node *attention = node_of_type(g, "FlashAttentionScore", 1);

	ck_assert_uint_eq(g->nnode, 80); /* and 16 Casts of parameters */
	ck_assert_uint_eq(n->bound.nin, 4);
	for (uint16_t k = 0; k < 4; k++)
		ck_assert_uint_eq(g->tensor[n->out[k]].batch, 1);
	ck_assert_uint_eq(attention->bound.nin, 4);
	ck_assert_str_eq(g->cell[0].name, "bert.layers.1");
	ck_assert(attention->recompute_cell == 0);
	ck_assert_uint_eq(node_of_type(g, "Split", 0)->bound.nout, 3);
	ck_assert_uint_eq(node_of_type(g, "Concat", 0)->bound.nin, 2);
	ck_assert_ptr_null(strstr(messages(), "warning"));
}
END_TEST

/* The same bytes each time, also after another dump. */
START_TEST(same_bytes)
{
	const char *text = text_of("transformer_step_parallel_begin_0052.ir"), *first = imported_ok(text);

	imported_ok(fixture_dump);
	ck_assert_str_eq(first, imported_ok(text));
}
END_TEST
