/* SPDX-License-Identifier: Apache-2.0 */
/* Mixtures of experts as their fields say: the parameters that formulas give, and graphs that bind. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "harness.h"
#include "model/cells.h"
#include "model/experts.h"

enum { B = 2, S = 16, H = 24 };

static struct ap_arena *arena;
static struct ap_ctx ctx;

static void setup(void)
{
	arena = ap_arena_create(0, NULL, NULL);
	ctx = (struct ap_ctx){.arena = arena, .scratch = ap_arena_create(0, NULL, NULL),
		.diag = ap_diag_create(arena, false), .jobs = 1};
}

static void teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(arena);
}

TEST_FIXTURE(setup, teardown)

static const struct ap_experts_names names = {.router = "gate", .selection_bias = "gate.correction",
	.experts = "experts", .gate = "gate_proj", .up = "up_proj", .down = "down_proj", .shared = "shared",
	.shared_gate = "shared_gate"};
static const struct ap_experts_names paired = {.router = "router", .experts = "experts",
	.gate = "gate_up_proj", .down = "down_proj"};

static const struct {
	struct ap_experts e;
	int64_t parameters, not_trained;
} kinds[] = {
	/* E H + 3 E H F */
	{{.names = &names, .count = 8, .active = 2, .inner = 12, .rescale = true,
		.activation = AP_MODEL_SWIGLU}, 8 * 24 + 3 * 8 * 24 * 12, 0},
	/* E H + 2 E H F: no gate */
	{{.names = &names, .count = 4, .active = 1, .inner = 12, .activation = AP_MODEL_SQUARED_RELU},
		4 * 24 + 2 * 4 * 24 * 12, 0},
	/* and a shared expert of 36 units with a gate of H */
	{{.names = &names, .count = 4, .active = 2, .inner = 12, .shared_inner = 36, .shared_gate = true,
		.activation = AP_MODEL_SWIGLU}, 4 * 24 + 3 * 4 * 24 * 12 + 3 * 24 * 36 + 24, 0},
	/* a bias of E where experts are chosen, out of 2 of 4 groups, is not trained */
	{{.names = &names, .count = 16, .active = 4, .inner = 8, .shared_inner = 8, .groups = 4,
		.groups_active = 2, .score = AP_EXPERTS_SIGMOID, .selection_bias = true, .rescale = true,
		.activation = AP_MODEL_SWIGLU}, 16 * 24 + 3 * 16 * 24 * 8 + 3 * 24 * 8, 16},
	/* biases of the router and of both products: E + E (2 F + H) */
	{{.names = &paired, .count = 4, .active = 4, .inner = 12, .rescale = true, .bias = true,
		.activation = AP_MODEL_SWIGLU}, 4 * 24 + 4 + 3 * 4 * 24 * 12 + 4 * (2 * 12 + 24), 0},
};

static struct ap_model *build(const struct ap_experts *e, bool fused)
{
	struct ap_model *m = ap_model_create(arena, "experts", "adam");
	struct ap_shape tokens = AP_MODEL_SHAPE(AP_BFLOAT16, B, S, H);
	ap_id x;

	if (fused)
		ap_model_fuse(m);
	x = ap_model_input(m, "x", tokens);
	x = ap_model_reshape(m, "top", x, AP_MODEL_SHAPE(AP_BFLOAT16, B * S, H), "rows");
	x = ap_model_experts(m, e, "top/mlp-MoE", "mlp", x, tokens);
	ap_model_reduce(m, "top", "ReduceSum", x, 2, false, "loss");
	return m;
}

START_LOOP_TEST(parameters_follow_the_formula_and_the_graph_binds, AP_COUNT(kinds) * 4)
{
	struct ap_experts e = kinds[_i / 4].e;
	const struct ap_graph_params params = {.micro_batches = 1};
	struct ap_model *m;
	const struct ap_graph *g;
	struct ap_json *doc;
	struct ap_str text;
	int64_t fixed = 0;

	e.way = _i % 2 ? AP_EXPERTS_MASKED : AP_EXPERTS_MOVED;
	m = build(&e, _i / 2 % 2);
	ck_assert_int_eq(ap_model_parameters(m), kinds[_i / 4].parameters);
	ap_str_init(&text, arena);
	ap_model_write(m, ap_str_take, &text);
	ck_assert_int_eq(ap_json_parse(&ctx, "experts.json", text.s, text.len, 0, &doc), AP_OK);
	if (ap_graph_load(&ctx, doc, "", &params, &g) != AP_OK) {
		ap_str_init(&text, arena);
		ap_diag_render(ctx.diag, AP_NOTE, 100, &text);
		ck_abort_msg("%s", text.s);
	}
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM && !g->tensor[t].trainable)
			fixed += g->tensor[t].shape.dim[0];
	ck_assert_int_eq(fixed, kinds[_i / 4].not_trained);
}
END_TEST
