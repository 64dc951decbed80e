/* SPDX-License-Identifier: Apache-2.0 */
/* Which dimension of a network a factor is. */
#include "base/str.h"
#include "planfile/dimension.h"
#include "emit_test.h"

enum { MOST = 6 };

struct given {
	const char *type, *cell;
	struct ap_saved_factor factor[MOST]; /* up to the first without a size */
	int64_t parts[AP_DIMENSION_COUNT]; /* expected; 0 stands for 1 */
};

static struct ap_saved_op op_of(const struct given *g)
{
	struct ap_saved_op op = {.type = g->type, .cell = g->cell, .factor = g->factor};

	while (op.nfactor < MOST && g->factor[op.nfactor].size)
		op.nfactor++;
	return op;
}

static void check(const struct ap_dimensions *d, const struct given *g)
{
	struct ap_saved_op op = op_of(g);
	int64_t parts[AP_DIMENSION_COUNT];

	ap_dimensions_parts(d, &op, parts);
	for (int i = 0; i < AP_DIMENSION_COUNT; i++)
		ck_assert_msg(parts[i] == (g->parts[i] ? g->parts[i] : 1), "%s in %s: %s in %d parts",
			g->type, g->cell, ap_dimension_look[i].name, (int)parts[i]);
}

/* A decoder of 512 samples in 32 micro-batches, 4096 tokens each, as wide as it is long. */
static struct ap_dimensions decoder(void)
{
	static const struct given seen[] = {
		{"Gather", "embedding", {{'v', false, 1, 1, 32000}, {'d', false, 1, 1, 4096}}, {0}},
		{"Gather", "positions", {{'v', false, 1, 1, 4096}, {'d', false, 1, 1, 4096}}, {0}},
		{"FlashAttentionScore", "attention",
			{{'b', true, 1, 1, 512}, {'n', false, 1, 1, 8}, {'g', false, 1, 1, 4},
				{'s', false, 1, 1, 4096}},
			{0}},
		{"TopK", "router",
			{{'A', true, 1, 1, 512}, {'B', false, 1, 1, 4096}, {'C', false, 1, 1, 8}}, {0}},
	};
	struct ap_dimensions d = {.batch = 512, .micro_batches = 32};

	for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
		struct ap_saved_op op = op_of(&seen[i]);

		ap_dimensions_learn(&d, &op);
	}
	ck_assert_int_eq(d.vocabulary, 32000);
	ck_assert_int_eq(d.sequence, 4096);
	ck_assert_int_eq(d.experts, 8);
	return d;
}

START_TEST(factors_of_decoders)
{
	static const struct given given[] = {
		{"Add", "layers.0",
			{{'A', true, 16, 4, 512}, {'B', false, 4, 1, 4096}, {'C', false, 2, 1, 4096}},
			{[AP_DIMENSION_BATCH] = 16,
				[AP_DIMENSION_SEQUENCE] = 4,
				[AP_DIMENSION_HIDDEN] = 2}},
		{"MatMul", "layers.0.attention.wq",
			{{'m', true, 16, 4, 2097152}, {'k', false, 1, 1, 4096}, {'n', false, 4, 1, 4096}},
			{[AP_DIMENSION_BATCH] = 16, [AP_DIMENSION_HIDDEN] = 4}},
		/* 16 samples in a micro-batch: more parts of its rows are parts of samples */
		{"MatMul", "lm_head",
			{{'m', true, 64, 1, 2097152}, {'k', false, 1, 1, 4096}, {'n', false, 2, 64, 32000}},
			{[AP_DIMENSION_BATCH] = 16,
				[AP_DIMENSION_SEQUENCE] = 4,
				[AP_DIMENSION_VOCABULARY] = 2}},
		{"FlashAttentionScore", "layers.0.attention.flash",
			{{'b', true, 16, 4, 512}, {'n', false, 4, 1, 8}, {'g', false, 2, 1, 4},
				{'s', false, 3, 1, 4096}, {'t', false, 1, 1, 4096}},
			{[AP_DIMENSION_BATCH] = 16, [AP_DIMENSION_HEADS] = 8, [AP_DIMENSION_SEQUENCE] = 3}},
		{"Transpose", "layers.0.attention",
			{{'A', true, 1, 1, 512}, {'B', false, 2, 1, 4096}, {'C', false, 4, 1, 32},
				{'D', false, 1, 1, 128}},
			{[AP_DIMENSION_SEQUENCE] = 2, [AP_DIMENSION_HEADS] = 4}},
		{"BatchMatMul", "layers.0.feed_forward.w1",
			{{'A', true, 8, 8, 512}, {'B', false, 8, 1, 8}, {'m', false, 1, 1, 1280},
				{'k', false, 1, 1, 4096}, {'n', false, 2, 1, 14336}},
			{[AP_DIMENSION_BATCH] = 8, [AP_DIMENSION_EXPERT] = 8, [AP_DIMENSION_HIDDEN] = 2}},
		{"Gather", "embedding",
			{{'v', false, 8, 1, 32000}, {'d', false, 2, 8, 4096}, {'A', true, 4, 16, 512},
				{'B', false, 1, 1, 4096}},
			{[AP_DIMENSION_VOCABULARY] = 8,
				[AP_DIMENSION_HIDDEN] = 2,
				[AP_DIMENSION_BATCH] = 4}},
		{"RmsNorm", "layers.0.norm",
			{{'A', true, 4, 1, 512}, {'B', false, 1, 1, 4096}, {'x', false, 1, 1, 4096}},
			{[AP_DIMENSION_BATCH] = 4}},
	};
	struct ap_dimensions d = decoder();

	for (size_t i = 0; i < sizeof given / sizeof *given; i++)
		check(&d, &given[i]);
}
END_TEST

START_TEST(factors_of_images)
{
	static const struct given conv = {"Conv2D", "conv1",
		{{'n', true, 8, 4, 256}, {'c', false, 1, 1, 3}, {'h', false, 2, 2, 112},
			{'w', false, 1, 1, 112}, {'d', false, 2, 1, 64}},
		{[AP_DIMENSION_BATCH] = 8, [AP_DIMENSION_OTHER] = 2, [AP_DIMENSION_HIDDEN] = 2}};
	struct ap_dimensions d = {.batch = 256, .micro_batches = 1};
	struct ap_saved_op op = op_of(&conv);

	ap_dimensions_learn(&d, &op);
	check(&d, &conv);
}
END_TEST

START_TEST(words)
{
	int64_t parts[AP_DIMENSION_COUNT] = {8, 4, 1, 1, 1, 1, 1};
	struct ap_ctx ctx = new_ctx();
	struct ap_str some = new_str(&ctx), none = new_str(&ctx);

	ap_dimensions_add(&some, parts);
	ck_assert_str_eq(some.s, "batch 8, sequence 4");
	parts[0] = parts[1] = 1;
	ap_dimensions_add(&none, parts);
	ck_assert_str_eq(none.s, "not cut");
	free_ctx(&ctx);
}
END_TEST
