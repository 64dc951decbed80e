/* SPDX-License-Identifier: Apache-2.0 */
/* The dumps of tests/dumps: whole ones give graphs, pieces as far as they go, others are refused. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "import_fixture.h"

static const struct {
	const char *file;
	int nnode; /* of a piece; -1: refused, with this text */
	const char *text;
} dumps[] = {
	{"1.3_execute_header.ir", 2, "within sub-graph @6_5_1_construct_wrapper.15"},
	{"1.7_step_parallel_begin_ffn_sharding_propagation.ir", 5, "para4_dense1.bias is not in this piece"},
	{"1.x_conv_bn_recompute.ir", -1, ":7: holds the backward pass"},
	{"2.0_execute_matmul.ir", -1, "holds what each device runs (AllReduce)"},
	{"2.0_step_parallel_begin_matmul.ir", 3, "para4_w2 is not in this piece"},
	{"2.1_recompute_relu_validate.ir", -1, ":1: holds the backward pass"},
	{"2.1_step_parallel_begin_mlp_recursive.ir", 4, "%1 is not in this piece"},
	{"2.1_validate_mlp.ir", -1, "holds what each device runs (AllReduce)"},
	{"2.6_mnist_inference_cnodes.txt", -1, "\"Flatten\" has no types"},
	{"docs_dump_conv2d.ir", 1, "a piece of the dump is left out here"},
	{"docs_graph_construction.ir", 1, "does not begin as a dump does"},
	{"docs_graph_optimization.ir", -1, ":14: there are two sub-graphs @1_func_14"},
	{"docs_mindformers_llama.ir", -1, ":4: holds what each device runs"},
	{"docs_mindir_2.3_1.ir", -1, ": control flow"},
	{"docs_mindir_2.3_2.ir", -1, "was written before types are known"},
	{"docs_mindir_2.3_3.ir", -1, "was written before types are known"},
	{"docs_recompute_2.x.ir", -1, ":10: holds the backward pass"},
};

static const char *text_of(const char *file)
{
	size_t len;

	return file_text(ap_arena_printf(ctx.arena, "tests/dumps/%s", file), &len);
}

START_TEST(pieces)
{
	const struct ap_import_params partial = {.micro_batches = 1, .partial = true};
	enum ap_status st;
	const char *json = imported(text_of(dumps[_i].file), &partial, &st);

	ck_assert_msg((st == AP_OK) == (dumps[_i].nnode >= 0), "%s: %s", dumps[_i].file, messages());
	holds(messages(), dumps[_i].text);
	if (st == AP_OK)
		ck_assert_int_eq(graph_of(json)->nnode, dumps[_i].nnode);
}
END_TEST

/* Without --partial nothing is taken for whole that is not. */
START_TEST(pieces_are_no_graphs)
{
	enum ap_status st;

	imported(text_of(dumps[_i].file), NULL, &st);
	ck_assert(st == AP_SYNTAX || st == AP_MEANING);
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
	uint32_t pinned = 0;

	ck_assert_uint_eq(g->nnode, 130);
	ck_assert_int_eq(g->batch, 8);
	ck_assert_uint_eq(g->ncell, 1);
	ck_assert_str_eq(g->cell[0].name, "network.layers.1.mlp");
	ck_assert_str_eq(ap_node_key(&ctx, g, (ap_id)(n - g->node)), "MatMul_layers.0.attention.q.weight");
	for (uint32_t i = 0; i < g->nnode; i++)
		pinned += g->node[i].in_pin.n > 0;
	ck_assert_uint_eq(pinned, 47);
	ck_assert_uint_eq(node_of_type(g, "LayerNorm", 0)->bound.nout, 3);
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

int main(void)
{
	Suite *s = suite_create("import dumps");
	TCase *c = tcase_create("files");
	SRunner *r = srunner_create(s);
	int failed, n = sizeof dumps / sizeof *dumps;

	tcase_add_checked_fixture(c, fixture_setup, fixture_teardown);
	tcase_add_loop_test(c, pieces, 0, n);
	tcase_add_loop_test(c, pieces_are_no_graphs, 0, n);
	tcase_add_test(c, mlp_is_the_bundled_model);
	tcase_add_test(c, transformer);
	tcase_add_test(c, same_bytes);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
