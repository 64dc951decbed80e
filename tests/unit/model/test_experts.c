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

START_LOOP_TEST(parameters_follow_the_formula_and_the_graph_binds, AP_COUNT(kinds) * 6)
{
	static const enum ap_experts_way ways[] = {AP_EXPERTS_MOVED, AP_EXPERTS_MASKED, AP_EXPERTS_GATHERED};
	struct ap_experts e = kinds[_i / 6].e;
	const struct ap_graph_params params = {.micro_batches = 1};
	struct ap_model *m;
	const struct ap_graph *g;
	struct ap_json *doc;
	struct ap_str text;
	int64_t fixed = 0;

	e.way = ways[_i / 2 % 3];
	m = build(&e, _i % 2);
	ck_assert_int_eq(ap_model_parameters(m), kinds[_i / 6].parameters);
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
	ck_assert_int_eq(fixed, kinds[_i / 6].not_trained);
}
END_TEST

/* Loads the graph of one kind; what is said otherwise is in *text. */
static const struct ap_graph *loaded(const struct ap_experts *e, const char *instead, struct ap_str *text)
{
	const struct ap_graph_params params = {.micro_batches = 1};
	static const char stated[] = "\"imbalance\": 1.52";
	struct ap_model *m = build(e, true);
	const struct ap_graph *g = NULL;
	struct ap_json *doc;
	struct ap_str s, other;
	const char *at;

	ap_str_init(&s, arena);
	ap_str_init(&other, arena);
	ap_model_write(m, ap_str_take, &s);
	at = instead ? strstr(s.s, stated) : NULL;
	ck_assert(at || !instead);
	if (instead) {
		ap_str_addn(&other, s.s, (size_t)(at - s.s));
		ap_str_add(&other, instead);
		ap_str_add(&other, at + strlen(stated));
		s = other;
	}
	ck_assert_int_eq(ap_json_parse(&ctx, "experts.json", s.s, s.len, 0, &doc), AP_OK);
	(void)ap_graph_load(&ctx, doc, "", &params, &g);
	ap_str_init(text, arena);
	ap_diag_render(ctx.diag, AP_NOTE, 100, text);
	return g;
}

/* From MoeDispatch to MoeCombine activations are uneven in the dimension of experts, and only there. */
START_LOOP_TEST(activations_of_experts_are_uneven, AP_COUNT(kinds) * 2)
{
	struct ap_experts e = kinds[_i / 2].e;
	const struct ap_graph *g;
	struct ap_str text;
	int uneven = 0, all = 0;

	e.way = AP_EXPERTS_MOVED;
	e.capacity = _i % 2 ? 1.25 : 0;
	g = loaded(&e, NULL, &text);
	ck_assert_msg(g != NULL, "%s", text.s);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_tensor *t = &g->tensor[g->node[i].out[0]];
		const struct ap_node *n = &g->node[i];
		bool of_experts = !strcmp(n->type, "MoeDispatch") || !strcmp(n->type, "MoeWeights") ||
			strstr(n->name, "ffn-MoEFeedForward") != NULL;

		all += of_experts;
		uneven += t->uneven != 0;
		ck_assert(!t->uneven || of_experts);
		ck_assert(!t->uneven || (t->uneven == 1 << 1 && t->shape.dim[1] == e.count));
		ck_assert_double_eq(t->imbalance, !t->uneven ? 0 : e.selection_bias ? 1.04 : 1.52);
	}
	ck_assert_int_eq(uneven, _i % 2 ? 0 : all);
	ck_assert_int_gt(all, 3);
	for (ap_id t = 0; t < g->ntensor; t++)
		ck_assert(g->tensor[t].kind != AP_TENSOR_PARAM || !g->tensor[t].uneven);
}
END_TEST

START_TEST(an_imbalance_below_one_is_refused)
{
	struct ap_experts e = kinds[0].e;
	struct ap_str text;

	e.way = AP_EXPERTS_MOVED;
	ck_assert_ptr_null(loaded(&e, "\"imbalance\": 0.5", &text));
	ck_assert_msg(strstr(text.s, "imbalance of 0.5; expected at least 1") != NULL, "%s", text.s);
}
END_TEST

static int place_of(const struct ap_graph *g, const char *part)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (strstr(g->node[i].name, part))
			return (int)i;
	return -1;
}

/* Behind the experts, or its wide products between dispatch and experts, its narrow one before what collects. */
START_LOOP_TEST(the_shared_expert_runs_behind_or_beside, 2)
{
	struct ap_experts e = kinds[2].e;
	const struct ap_graph *g;
	int there, back, wide, narrow, first;
	struct ap_str text;

	e.way = AP_EXPERTS_MOVED;
	e.shared_beside = _i;
	g = loaded(&e, NULL, &text);
	ck_assert_msg(g != NULL, "%s", text.s);
	there = place_of(g, "/MoeDispatch");
	back = place_of(g, "/MoeCombine");
	first = place_of(g, "ffn-MoEFeedForward/gate_proj-Linear/BatchMatMul");
	wide = place_of(g, "shared-FeedForward/gate-Linear/MatMul");
	narrow = place_of(g, "shared-FeedForward/down-Linear/MatMul");
	ck_assert_int_ge(there, 0);
	ck_assert(there < first && first < back && wide >= 0 && wide < narrow);
	if (_i)
		ck_assert(there < wide && wide < first && first < narrow && narrow < back);
	else
		ck_assert(back < wide);
}
END_TEST
