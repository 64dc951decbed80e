/* SPDX-License-Identifier: Apache-2.0 */
/* The models are what was published: parameters, operators and names. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "graph/graph.h"
#include "tools/models.h"

static struct ap_arena *arena;

static void setup(void)
{
	arena = ap_arena_create(0, NULL, NULL);
}

static void teardown(void)
{
	ap_arena_destroy(arena);
}

static struct model_gpt_params gpt(int64_t layers, int64_t hidden, int64_t heads)
{
	return (struct model_gpt_params){.name = "gpt", .layers = layers, .hidden = hidden,
		.heads = heads, .sequence = 2048, .vocabulary = 50304, .batch = 64,
		.dtype = AP_FLOAT16};
}

static void append(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

static const char *text_of(const struct model *m)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	model_write(m, append, &s);
	return s.s;
}

static int occurrences(const char *text, const char *what)
{
	int n = 0;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

/* Loads a model as a graph of this batch, without a warning. */
static const struct ap_graph *load(const struct model *m, int64_t batch)
{
	struct ap_ctx ctx = {.arena = arena, .scratch = ap_arena_create(0, NULL, NULL),
		.diag = ap_diag_create(arena, true), .jobs = 1};
	struct ap_graph_params params = {.batch = batch};
	const struct ap_graph *g;
	const char *text = text_of(m);
	struct ap_str said;
	struct ap_json *doc;

	ap_str_init(&said, arena);
	ck_assert_int_eq(ap_json_parse(&ctx, "model.json", text, strlen(text), 0, &doc), AP_OK);
	if (ap_graph_load(&ctx, doc, "", &params, &g) != AP_OK) {
		ap_diag_render(ctx.diag, AP_WARNING, 20, &said);
		ck_abort_msg("%s", said.s);
	}
	ap_arena_destroy(ctx.scratch);
	return g;
}

static const struct ap_tensor *tensor(const struct ap_graph *g, const char *name)
{
	for (uint32_t t = 0; t < g->ntensor; t++)
		if (!strcmp(g->tensor[t].name, name))
			return &g->tensor[t];
	ck_abort_msg("no tensor %s", name);
}

/* 784*512 + 512 + 512*512 + 512 + 512*1 + 1; Flatten, 3 MatMul, 3 BiasAdd, 2 ReLU, 5 of the loss. */
START_TEST(mix_is_the_sample)
{
	const struct model *m = model_multiple_mix(arena, "mix", 32);
	const char *text = text_of(m);

	ck_assert_int_eq(model_parameters(m), 665089);
	ck_assert_uint_eq(model_operators(m), 14);
	ck_assert_int_eq(occurrences(text, "\"recompute\": true"), 2);
	ck_assert_int_eq(occurrences(text, "\"shape\": [32, 32]"), 3);
	ck_assert_ptr_nonnull(strstr(text,
		"\"Default/network-WithLossCell/_backbone-Network/layer1-Dense/MatMul-op0\""));
	ck_assert_ptr_nonnull(strstr(text,
		"\"Default/network-WithLossCell/_loss_fn-MAELoss/ReduceMean-op0\""));
}
END_TEST

/* 12 L h^2 + 13 L h + (V + s) h + 2 h, worked out by hand. */
static const struct size {
	int64_t layers, hidden, heads, parameters;
} sizes[] = {
	{24, 2048, 16, 1315819520},
	{40, 5120, 40, 12853626880},
	{1, 128, 2, 6899584},
};

START_TEST(gpt_has_the_published_size)
{
	const struct size *s = &sizes[_i];
	struct model_gpt_params p = gpt(s->layers, s->hidden, s->heads);

	for (int flash = 0; flash < 2; flash++) {
		p.flash = flash;
		ck_assert_int_eq(model_parameters(model_gpt(arena, &p)), s->parameters);
	}
}
END_TEST

/* The tokenizer's own vocabulary, without padding. */
START_TEST(gpt_without_padding)
{
	struct model_gpt_params p = gpt(24, 2048, 16);

	p.vocabulary = 50257;
	ck_assert_int_eq(model_parameters(model_gpt(arena, &p)), 1315723264);
}
END_TEST

START_TEST(gpt_operators)
{
	struct model_gpt_params p = gpt(3, 256, 4);
	uint32_t small = model_operators(model_gpt(arena, &p)), dropped;

	ck_assert_uint_eq(small, 3 + 3 * 34 + 3 + 13);
	p.dropout = 0.1;
	dropped = model_operators(model_gpt(arena, &p));
	ck_assert_uint_eq(dropped, small + 1 + 3 * 3);
	p.flash = true;
	ck_assert_uint_eq(model_operators(model_gpt(arena, &p)), 3 + 1 + 3 * (34 - 8 + 2) + 3 + 13);
}
END_TEST

START_TEST(mix_loads)
{
	const struct ap_graph *g = load(model_multiple_mix(arena, "mix", 32), 0);

	ck_assert_uint_eq(g->nnode, 14);
	ck_assert_int_eq(g->parameters, 665089);
	ck_assert_int_eq(g->batch, 32);
	ck_assert_str_eq(g->optimizer, "sgd");
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	ck_assert_uint_eq(tensor(g, "error")->batch, 3);
	ck_assert_uint_eq(tensor(g, "layer1.weight")->batch, 0);
	ck_assert_str_eq(g->node[1].cell, "_backbone.layer1");
}
END_TEST

/* _i: bit 0 fused attention, bit 1 dropout. The batch is 8 instead of 64. */
START_TEST(gpt_loads)
{
	struct model_gpt_params p = gpt(2, 256, 4);
	const struct ap_graph *g;
	const struct ap_tensor *rows;

	p.flash = _i & 1;
	p.dropout = _i & 2 ? 0.1 : 0;
	g = load(model_gpt(arena, &p), 8);
	ck_assert_int_eq(g->batch, 8);
	ck_assert_int_eq(g->parameters, 12 * 2 * 256 * 256 + 13 * 2 * 256 + 52352 * 256 + 512);
	ck_assert_str_eq(g->tensor[g->loss].name, "loss");
	rows = tensor(g, "blocks.1.context.rows");
	ck_assert_int_eq(rows->shape.dim[0], 8 * 2048);
	ck_assert_uint_eq(rows->batch, 1);
	ck_assert_uint_eq(tensor(g, "labels.rows")->batch, 1);
	ck_assert_uint_eq(tensor(g, "attention_mask")->batch, 0);
}
END_TEST

/* MindSpore cannot merge checkpoints of parameters whose names hold '-'. */
START_TEST(parameters_have_no_dash)
{
	struct model_gpt_params p = gpt(2, 256, 4);
	const char *text = text_of(model_gpt(arena, &p));
	const char *at = strstr(text, "\"parameters\""), *end = strstr(at, "\"constants\"");
	int names = 0;

	for (; at < end; at++) {
		ck_assert_int_ne(*at, '-');
		names += !strncmp(at, "\"name\"", 6);
	}
	ck_assert_int_eq(names, 2 + 2 * 16 + 2);
}
END_TEST

START_TEST(same_model_same_bytes)
{
	struct model_gpt_params p = gpt(2, 256, 4);

	ck_assert_str_eq(text_of(model_gpt(arena, &p)), text_of(model_gpt(arena, &p)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model");
	TCase *tcase = tcase_create("model");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, mix_is_the_sample);
	tcase_add_loop_test(tcase, gpt_has_the_published_size, 0, sizeof sizes / sizeof *sizes);
	tcase_add_test(tcase, gpt_without_padding);
	tcase_add_test(tcase, gpt_operators);
	tcase_add_test(tcase, mix_loads);
	tcase_add_loop_test(tcase, gpt_loads, 0, 4);
	tcase_add_test(tcase, parameters_have_no_dash);
	tcase_add_test(tcase, same_model_same_bytes);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
