/* SPDX-License-Identifier: Apache-2.0 */
#include "graph_fixture.h"

#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "graph/graph.h"

struct ap_ctx ctx;

const char fixture_mlp[] =
	"{\"schema\": \"autopar-graph/1\", \"name\": \"mlp\", \"optimizer\": \"sgd\",\n"
	" \"inputs\": [{\"name\": \"x\", \"shape\": [32,1,28,28], \"dtype\": \"float32\","
	"   \"batch_dim\": 0},\n"
	"  {\"name\": \"y\", \"shape\": [32,1], \"dtype\": \"float32\", \"batch_dim\": 0}],\n"
	" \"parameters\": [{\"name\": \"layer1.weight\", \"shape\": [512,784],"
	"   \"dtype\": \"float32\", \"comm_fusion\": 2},\n"
	"  {\"name\": \"layer1.bias\", \"shape\": [512], \"dtype\": \"float32\","
	"   \"trainable\": false},\n"
	"  {\"name\": \"layer2.weight\", \"shape\": [1,512], \"dtype\": \"float32\","
	"   \"layerwise_parallel\": true, \"parallel_optimizer\": false}],\n"
	" \"operators\": [\n"
	"  {\"name\": \"" FIXTURE_SCOPE "flatten-Flatten/Flatten-op0\", \"type\": \"Flatten\","
	"   \"inputs\": [\"x\"], \"outputs\": [{\"name\": \"flat\"}]},\n"
	"  {\"name\": \"" FIXTURE_SCOPE "layer1-Dense/MatMul-op0\", \"type\": \"MatMul\","
	"   \"inputs\": [\"flat\", \"layer1.weight\"], \"outputs\": [{\"name\": \"h\","
	"   \"shape\": [32,512], \"dtype\": \"float32\"}], \"attrs\": {\"transpose_b\": true},"
	"   \"in_strategy\": [[2,1],[4,1]], \"stage\": 1, \"fusion\": 3,"
	"   \"time_s\": {\"forward\": 0.5, \"backward\": 1.0, \"share\": 0.25}},\n"
	"  {\"name\": \"" FIXTURE_SCOPE "layer1-Dense/BiasAdd-op0\", \"type\": \"BiasAdd\","
	"   \"inputs\": [\"h\", \"layer1.bias\"], \"outputs\": [{\"name\": \"hb\"}]},\n"
	"  {\"name\": \"" FIXTURE_SCOPE "relu1-ReLU/ReLU-op0\", \"type\": \"ReLU\", \"inputs\": [\"hb\"],"
	"   \"outputs\": [{\"name\": \"r\"}], \"recompute\": true, \"cell\": \"given\"},\n"
	"  {\"name\": \"" FIXTURE_SCOPE "layer2-Dense/MatMul-op1\", \"type\": \"MatMul\","
	"   \"inputs\": [\"r\", \"layer2.weight\"], \"outputs\": [{\"name\": \"out\"}],"
	"   \"attrs\": {\"transpose_b\": true}},\n"
	"  {\"name\": \"sub\", \"type\": \"Sub\", \"inputs\": [\"out\", \"y\"],"
	"   \"outputs\": [{\"name\": \"d\"}]},\n"
	"  {\"name\": \"abs\", \"type\": \"Abs\", \"inputs\": [\"d\"],"
	"   \"outputs\": [{\"name\": \"a\"}]},\n"
	"  {\"name\": \"mean\", \"type\": \"ReduceMean\", \"inputs\": [\"a\"],"
	"   \"outputs\": [{\"name\": \"loss\", \"shape\": []}], \"attrs\": {\"axis\": []}}],\n"
	" \"outputs\": [\"loss\"]}";

void fixture_setup(void)
{
	ctx = (struct ap_ctx){.jobs = 1};
	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
	ctx.diag = ap_diag_create(ctx.arena, false);
}

void fixture_teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

enum ap_status load_text(const char *json, const struct ap_graph_params *params,
	const struct ap_graph **g)
{
	static const struct ap_graph_params plain;
	struct ap_json *doc;

	*g = NULL;
	AP_TRY(ap_json_parse(&ctx, "g.json", json, strlen(json), 0, &doc));
	return ap_graph_load(&ctx, doc, "00", params ? params : &plain, g);
}

const char *messages(void)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_diag_render(ctx.diag, AP_NOTE, 100, &s);
	return s.s;
}

const struct ap_graph *load_ok(const char *json)
{
	const struct ap_graph *g;

	ck_assert_msg(load_text(json, NULL, &g) == AP_OK, "%s", messages());
	return g;
}

const struct ap_node *node_of(const struct ap_graph *g, const char *name)
{
	for (uint32_t i = 0; i < g->nnode; i++)
		if (strcmp(g->node[i].name, name) == 0)
			return &g->node[i];
	ck_abort_msg("no operator %s", name);
	return NULL;
}

const struct ap_tensor *tensor_of(const struct ap_graph *g, const char *name)
{
	for (uint32_t i = 0; i < g->ntensor; i++)
		if (strcmp(g->tensor[i].name, name) == 0)
			return &g->tensor[i];
	ck_abort_msg("no tensor %s", name);
	return NULL;
}

const char *shape_of(const struct ap_graph *g, const char *tensor)
{
	const struct ap_shape *s = &tensor_of(g, tensor)->shape;
	struct ap_str text;

	ap_str_init(&text, ctx.arena);
	ap_str_addc(&text, '[');
	for (uint8_t i = 0; i < s->rank; i++)
		ap_str_addf(&text, "%s%" PRId64, i ? "," : "", s->dim[i]);
	ap_str_addc(&text, ']');
	return text.s;
}
