/* SPDX-License-Identifier: Apache-2.0 */
/* Who runs in which part of a pipeline. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "fixture.h"
#include "harness.h"
#include "pipeline/stages.h"
#include "unit.h"

#define SCOPE "Default/net-WithLossCell/_backbone-Net/"

/* The network of seed 000: flatten, three layers, two activations; the loss has no stage. */
#define DENSE(name, in, out, weight) \
	"{'name': '" SCOPE name "-Dense/MatMul-op0', 'type': 'MatMul', 'inputs': ['" in "', '" weight "']," \
	"'outputs': [{'name': '" out "'}]}"
#define RELU(name, in, out) \
	"{'name': '" SCOPE name "-ReLU/ReLU-op0', 'type': 'ReLU', 'inputs': ['" in "']," \
	"'outputs': [{'name': '" out "'}]}"
#define HEAD \
	"{'schema': 'autopar-graph/1', 'name': 'mix'," \
	"'inputs': [{'name': 'x', 'shape': [32, 1, 64], 'dtype': 'float32', 'batch_dim': 0}," \
	"{'name': 'label', 'shape': [32, 16], 'dtype': 'int32', 'batch_dim': 0}]," \
	"'parameters': [{'name': 'w1', 'shape': [64, 128], 'dtype': 'float32'}," \
	"{'name': 'w2', 'shape': [128, 128], 'dtype': 'float32'}," \
	"{'name': 'w3', 'shape': [128, 16], 'dtype': 'float32'}],"
#define OPERATORS \
	"'operators': [" \
	"{'name': '" SCOPE "flatten-Flatten/Flatten-op0', 'type': 'Flatten', 'inputs': ['x']," \
	"'outputs': [{'name': 'flat'}]}," \
	DENSE("layer1", "flat", "h1", "w1") "," RELU("relu1", "h1", "r1") "," \
	DENSE("layer2", "r1", "h2", "w2") "," RELU("relu2", "h2", "r2") "," \
	DENSE("layer3", "r2", "h3", "w3") "," \
	"{'name': 'Default/net-WithLossCell/_loss_fn-Loss/Cast-op0', 'type': 'Cast'," \
	"'inputs': ['label'], 'outputs': [{'name': 'l'}], 'attrs': {'dst_type': 'float32'}}," \
	"{'name': 'Default/net-WithLossCell/_loss_fn-Loss/Sub-op0', 'type': 'Sub'," \
	"'inputs': ['h3', 'l'], 'outputs': [{'name': 'd'}]}," \
	"{'name': 'Default/net-WithLossCell/_loss_fn-Loss/ReduceMean-op0', 'type': 'ReduceMean'," \
	"'inputs': ['d'], 'outputs': [{'name': 'loss'}]}],"
#define TAIL "'outputs': ['loss']}"
#define MIX HEAD OPERATORS TAIL
#define SEED_CONFIG \
	"{'_backbone.layer1': 0, '_backbone.relu1': 0, '_backbone.layer2': 1, '_backbone.relu2': 1, " \
	"'_backbone.layer3': 1}"

struct world {
	struct fixture f;
	struct ap_stages_request rq;
};

static void open_world(struct world *w, const char *graph, const char *config, const char *scheduler,
	int32_t nstage, int32_t nsegment)
{
	struct ap_json *doc;

	memset(w, 0, sizeof *w);
	fixture_open(&w->f, 8, 8, "ascend910b");
	fixture_graph(&w->f, graph);
	w->rq = (struct ap_stages_request){.graph = w->f.graph, .step = &w->f.step, .nstage = nstage,
		.nsegment = nsegment, .scheduler = ap_scheduler_find(scheduler)};
	ap_machine_staged(&w->f.ctx, w->f.machine, (uint32_t)nstage, &w->rq.machine);
	if (!config)
		return;
	config = ap_arena_strdup(w->f.ctx.arena, config);
	for (char *c = strchr(config, '\''); c; c = strchr(c, '\''))
		*c = '"';
	ck_assert_int_eq(ap_json_parse(&w->f.ctx, "stages.json", config, strlen(config), 0, &doc), AP_OK);
	w->rq.doc = doc;
	w->rq.config = ap_json_root(doc);
}

/* Stages of the operators in the graph's order, a digit each; with several segments "stage.segment". */
static const char *stages_of(struct world *w)
{
	const struct ap_spot *spot;
	struct ap_str s;

	ap_str_init(&s, w->f.ctx.arena);
	if (ap_stages_make(&w->f.ctx, &w->rq, &spot, NULL) != AP_OK) {
		ap_diag_render(w->f.ctx.diag, AP_ERROR, 5, &s);
		return s.s;
	}
	for (ap_id i = 0; i < w->f.graph->nnode; i++) {
		ap_str_addf(&s, "%" PRId32, spot[i].stage);
		if (w->rq.nsegment > 1)
			ap_str_addf(&s, ".%" PRId32 " ", spot[i].segment);
		ck_assert_int_eq(spot[i].part, ap_schedule_part(w->rq.scheduler, w->rq.nstage,
			spot[i].stage, spot[i].segment));
	}
	return s.s;
}

/* a and b are said; p is used by join, which needs b, and by other, of which nothing else tells. */
#define OPERATOR(name, type, in, said) \
	"{'name': '" name "', 'type': '" type "', 'inputs': [" in "]," said "'outputs': [{'name': '" name "'}]}"
#define FORK \
	"{'schema': 'autopar-graph/1', 'name': 'fork'," \
	"'inputs': [{'name': 'x', 'shape': [32, 64], 'dtype': 'float32', 'batch_dim': 0}]," \
	"'operators': [" OPERATOR("a", "ReLU", "'x'", "'stage': 0,") "," \
	OPERATOR("b", "ReLU", "'a'", "'stage': 1,") "," OPERATOR("p", "ReLU", "'x'", "") "," \
	OPERATOR("join", "Add", "'b', 'p'", "") "," OPERATOR("other", "ReLU", "'p'", "") "]," \
	"'outputs': ['join', 'other']}"

#define CELLS(text) HEAD "'cells': [" text "]," OPERATORS TAIL

/* Of flatten, layer1, relu1, layer2, relu2, layer3, Cast, Sub, ReduceMean. */
static const struct {
	const char *graph, *config, *scheduler;
	int32_t nstage, nsegment;
	const char *stages;
} said[] = {
	{MIX, SEED_CONFIG, "1f1b", 2, 1, "000111111"},
	{MIX, "{'_backbone': 0, '_loss_fn': 1}", "1f1b", 2, 1, "000000111"},
	/* an inner cell before the one around it, whichever comes first */
	{MIX, "{'_backbone.layer3': 1, '_backbone': 0}", "1f1b", 2, 1, "000001111"},
	{CELLS("{'name': '_backbone', 'stage': 0}, {'name': '_backbone.layer3', 'stage': 1}"), NULL, "1f1b",
		2, 1, "000001111"},
	/* the configuration before the graph's cells */
	{CELLS("{'name': '_backbone.relu2', 'stage': 0}, {'name': '_backbone.layer1', 'stage': 0}"),
		"{'_backbone.relu2': 1}", "1f1b", 2, 1, "001111111"},
	/* what nothing is said of goes with the earliest user, else with the latest producer */
	{MIX, "{'_backbone.relu1': 0, '_backbone.layer3': 1}", "1f1b", 2, 1, "000111111"},
	{MIX, "{'_backbone.relu2': 1, '_backbone.flatten': 0}", "1f1b", 2, 1, "011111111"},
	/* and once more, so that nothing goes back; of p, a, b, join, other */
	{FORK, NULL, "1f1b", 2, 1, "10111"},
	/* one stage: what the graph says does not matter */
	{CELLS("{'name': '_backbone', 'stage': 3}"), NULL, "1f1b", 1, 1, "000000000"},
	/* segments follow from the order */
	{MIX, "{'_backbone.flatten': 0, '_backbone.layer1': 0, '_backbone.relu1': 1, '_backbone.layer2': 0, "
		"'_backbone.relu2': 0, '_backbone.layer3': 1}", "interleaved", 2, 2,
		"0.0 0.0 1.0 0.1 0.1 1.1 1.1 1.1 1.1 "},
	{CELLS("{'name': '_backbone', 'stage': 0}, {'name': '_backbone.relu1', 'stage': 1},"
		"{'name': '_backbone.layer3', 'segment': 1}, {'name': '_loss_fn', 'stage': 1}"), NULL,
		"interleaved", 2, 2, "0.0 0.0 1.0 0.1 0.1 0.1 1.0 1.1 1.1 "},
};

/* Two branches, listed in turns: each is in a stage of its own, so that one result crosses instead of two.
 * Operators are in the order of the structure, one branch before the other. */
#define WEIGHT(name) "{'name': '" name "', 'shape': [4096, 4096], 'dtype': 'float16'}"
#define PRODUCT(name, in, weight) OPERATOR(name, "MatMul", "'" in "', '" weight "'", "")
#define TURNS \
	"{'schema': 'autopar-graph/1', 'name': 'turns'," \
	"'inputs': [{'name': 'x', 'shape': [4096, 4096], 'dtype': 'float16', 'batch_dim': 0}]," \
	"'parameters': [" WEIGHT("wa1") "," WEIGHT("wb1") "," WEIGHT("wa2") "," WEIGHT("wb2") "," \
	WEIGHT("wa3") "," WEIGHT("wb3") "]," \
	"'operators': [" PRODUCT("a1", "x", "wa1") "," PRODUCT("b1", "x", "wb1") "," \
	PRODUCT("a2", "a1", "wa2") "," PRODUCT("b2", "b1", "wb2") "," PRODUCT("a3", "a2", "wa3") "," \
	PRODUCT("b3", "b2", "wb3") "," OPERATOR("join", "Add", "'a3', 'b3'", "") "], 'outputs': ['join']}"

START_TEST(branches_in_turns)
{
	struct world w;
	const char *stages;

	open_world(&w, TURNS, NULL, "1f1b", 2, 1);
	w.f.step.micro_batches = 8;
	stages = stages_of(&w);
	ck_assert_str_eq(stages, "0001111");
	fixture_close(&w.f);
}
END_TEST

START_LOOP_TEST(what_is_said, AP_COUNT(said))
{
	struct world w;

	open_world(&w, said[_i].graph, said[_i].config, said[_i].scheduler, said[_i].nstage,
		said[_i].nsegment);
	ck_assert_str_eq(stages_of(&w), said[_i].stages);
	fixture_close(&w.f);
}
END_TEST

/* In a V the last stage has two parts that follow one another; both get some of what it is to run. */
START_TEST(the_turn_of_a_v)
{
	struct world w;
	const char *stages;

	open_world(&w, MIX, "{'_backbone.layer1': 0, '_backbone.relu1': 1, '_backbone.layer2': 1,"
		"'_backbone.relu2': 1, '_backbone.layer3': 0}", "zero_bubble_v", 2, 2);
	stages = stages_of(&w);
	ck_assert_int_eq(strncmp(stages, "0.0 0.0 1.0 1.", 14), 0);
	ck_contains(stages, "1.1 0.1 0.1 0.1 0.1 ");
	fixture_close(&w.f);
}
END_TEST

static const struct {
	const char *graph, *config;
	int32_t nstage, nsegment;
	const char *message;
} wrong[] = {
	{MIX, "{'_backbone.layer1': 0, '_backbone.layr2': 1}", 2, 1,
		"stages.json:1:44: /_backbone.layr2: no operator is in a cell \"_backbone.layr2\"; did you mean "
		"\"_backbone.layer2\"? [stage-cell]"},
	{MIX, "{'_backbone.layer': 0}", 2, 1,
		"did you mean \"_backbone.layer1\", \"_backbone.layer2\" or \"_backbone.layer3\"?"},
	{MIX, "{'layer1': 0}", 2, 1, "did you mean \"_backbone.layer1\"? [stage-cell]"},
	{MIX, "{'_backbone.layer1': 2}", 2, 1,
		"/_backbone.layer1: cell \"_backbone.layer1\" is in stage 2; --pipeline-stages 2 allows 0 to "
		"1 [stage-range]"},
	{MIX, "{'_backbone.layer1': -1}", 2, 1, "is in stage -1; --pipeline-stages 2 allows 0 to 1 [stage-range]"},
	{MIX, "{'_backbone.layer1': 1}", 1, 1, "is in stage 1; --pipeline-stages 1 allows only 0 [stage-range]"},
	{MIX, "{'_backbone.layer1': 0.5}", 2, 1,
		"expected the stage of cell \"_backbone.layer1\", an integer [key-type]"},
	{MIX, "['_backbone.layer1']", 2, 1, "expected an object of cells and their stages [key-type]"},
	{CELLS("{'name': '_backbone', 'stage': 4}"), NULL, 4, 1,
		"graph.json: /cells/0: cell \"_backbone\" is in stage 4; --pipeline-stages 4 allows 0 to 3 [stage-range]"},
	{CELLS("{'name': '_backbone', 'segment': 1}"), NULL, 2, 1,
		"cell \"_backbone\" is in segment 1; 1 segment in a stage allows only 0 [stage-range]"},
	{MIX, "{'_backbone': 0, '_loss_fn': 1}", 4, 1, "no operator is in stage 2, of 4 stages [stage-empty]"},
	{MIX, "{'_backbone.layer1': 1, '_backbone.layer2': 0, '_loss_fn': 1}", 2, 1,
		"(operator \"" SCOPE "layer2-Dense/MatMul-op0\"): it is in stage 0, but needs what operator \""
		SCOPE "layer1-Dense/MatMul-op0\" in stage 1 makes"},
	{MIX, "{'_backbone': 0, '_loss_fn': 1}", 2, 2,
		"no operator is in segment 1 of stage 0, of 2 stages of several segments [stage-empty]"},
};

START_LOOP_TEST(what_cannot_be, AP_COUNT(wrong))
{
	struct world w;

	open_world(&w, wrong[_i].graph, wrong[_i].config, wrong[_i].nsegment > 1 ? "interleaved" : "1f1b",
		wrong[_i].nstage, wrong[_i].nsegment);
	ck_contains(stages_of(&w), wrong[_i].message);
	ck_assert_int_eq(ap_diag_status(w.f.ctx.diag), AP_MEANING);
	fixture_close(&w.f);
}
END_TEST

START_LOOP_TEST(stages_and_devices, 5)
{
	static const struct {
		int64_t ndevice;
		int32_t nstage, nsegment;
		enum ap_status status;
		const char *message;
	} rows[] = {
		{8, 2, 1, AP_OK, ""},
		{8, 9, 1, AP_USAGE, "--pipeline-stages 9: there are 8 devices"},
		{8, 3, 1, AP_USAGE, "--pipeline-stages 3 does not divide the 8 devices"},
		{64, 16, 1, AP_MEANING, "16 stages need an operator each; the graph has 9"},
		{64, 4, 3, AP_MEANING, "4 stages of 3 segments need an operator each; the graph has 9"},
	};
	struct world w;
	struct ap_str s;

	open_world(&w, MIX, NULL, "1f1b", 2, 1);
	ck_assert_int_eq(ap_stages_check(&w.f.ctx, w.f.graph, rows[_i].ndevice, rows[_i].nstage,
		rows[_i].nsegment), rows[_i].status);
	ap_str_init(&s, w.f.ctx.arena);
	ap_diag_render(w.f.ctx.diag, AP_ERROR, 5, &s);
	ck_contains(s.s, rows[_i].message);
	fixture_close(&w.f);
}
END_TEST

/* What is written reads back as the same stages. */
START_LOOP_TEST(written_and_read, 3)
{
	static const struct {
		const char *config, *written;
	} rows[] = {
		{SEED_CONFIG, "{\n  \"_backbone.flatten\": 0,\n  \"_backbone.layer1\": 0,\n  \"_backbone.relu1\": 0,"
			"\n  \"_backbone.layer2\": 1,\n  \"_backbone.relu2\": 1,\n"
			"  \"_backbone.layer3\": 1,\n  \"_loss_fn\": 1\n}\n"},
		{"{'_backbone': 0, '_loss_fn': 1}", "{\n  \"_backbone\": 0,\n  \"_loss_fn\": 1\n}\n"},
		{NULL, NULL},
	};
	const struct ap_graph *staged;
	const struct ap_spot *spot;
	const char *before;
	struct ap_str text;
	struct world w, again;

	open_world(&w, MIX, rows[_i].config, "1f1b", 2, 1);
	before = stages_of(&w);
	ck_assert_int_eq(ap_stages_make(&w.f.ctx, &w.rq, &spot, NULL), AP_OK);
	ap_graph_staged(&w.f.ctx, w.f.graph, spot, &staged);
	ap_str_init(&text, w.f.ctx.arena);
	ap_stages_write_config(&w.f.ctx, staged, &text);
	if (rows[_i].written)
		ck_assert_str_eq(text.s, rows[_i].written);
	open_world(&again, MIX, text.s, "1f1b", 2, 1);
	ck_assert_str_eq(stages_of(&again), before);
	fixture_close(&again.f);
	fixture_close(&w.f);
}
END_TEST

#define RELU_IN(cell, name, in, out) \
	"{'name': '" name "', 'cell': '" cell "', 'type': 'ReLU', 'inputs': ['" in "']," \
	"'outputs': [{'name': '" out "'}]}"

/* Four operators one after the other, the second and the third in no cell but that of all. */
#define CHAIN \
	"{'schema': 'autopar-graph/1', 'name': 'chain'," \
	"'inputs': [{'name': 'x', 'shape': [32, 64], 'dtype': 'float32', 'batch_dim': 0}]," \
	"'operators': [" RELU_IN("net.a", "a", "x", "p") "," RELU_IN("net", "b", "p", "q") "," \
	RELU_IN("net", "c", "q", "r") "," RELU_IN("net.d", "d", "r", "s") "], 'outputs': ['s']}"

/* Stages of a to d, and what then is where MindSpore does not put it: with what it reads. */
static const struct {
	int32_t stage[4];
	const char *astray;
} loose[] = {
	{{0, 0, 0, 1}, ""},
	{{0, 0, 1, 1}, "c"},
	{{0, 1, 1, 1}, "b c"},
	{{0, 0, 0, 0}, ""}, /* all are in one cell of one stage */
};

START_LOOP_TEST(what_no_cell_places, AP_COUNT(loose))
{
	const struct ap_graph *staged;
	struct ap_spot spot[4];
	struct fixture f;
	struct ap_str s;
	const ap_id *op;
	uint32_t n;

	fixture_open(&f, 8, 8, "ascend910b");
	fixture_graph(&f, CHAIN);
	for (int i = 0; i < 4; i++)
		spot[i] = (struct ap_spot){loose[_i].stage[i], 0, loose[_i].stage[i]};
	ap_graph_staged(&f.ctx, f.graph, spot, &staged);
	ap_stages_astray(&f.ctx, staged, &n, &op);
	ap_str_init(&s, f.ctx.arena);
	for (uint32_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%s", i ? " " : "", staged->node[op[i]].name);
	ck_assert_str_eq(s.s, loose[_i].astray);
	fixture_close(&f);
}
END_TEST

/* Two segments of each of two stages, in the form of a stage configuration. */
START_TEST(segments_are_written)
{
	static const struct ap_spot spot[] = {{0, 0, 0}, {1, 0, 1}, {0, 1, 2}, {1, 1, 3}};
	const struct ap_graph *staged;
	struct ap_str stages, segments;
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910b");
	fixture_graph(&f, CHAIN);
	ap_graph_staged(&f.ctx, f.graph, spot, &staged);
	ap_str_init(&stages, f.ctx.arena);
	ap_str_init(&segments, f.ctx.arena);
	ap_stages_write_config(&f.ctx, staged, &stages);
	ap_stages_write_segments(&f.ctx, staged, &segments);
	ck_assert_str_eq(stages.s, "{\n  \"net.a\": 0,\n  \"net.d\": 1\n}\n");
	ck_assert_str_eq(segments.s, "{\n  \"net.a\": 0,\n  \"net.d\": 1\n}\n");
	fixture_close(&f);
}
END_TEST
