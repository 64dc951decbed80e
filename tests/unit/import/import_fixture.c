/* SPDX-License-Identifier: Apache-2.0 */
#include "import_fixture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "graph/graph.h"
#include "import/write.h"

struct ap_ctx ctx;

const char fixture_dump[] =
	"# IR entry: @1_step\n"
	"# Total subgraphs: 3\n"
	"\n"
	"# Attrs:\n"
	"training: 1\n"
	"\n"
	"# Total params: 4\n"
	"# Params:\n"
	"%para1_x: <Tensor[Float32], (16, 8)>\n"
	"%para2_fc.weight: <Ref[Tensor[Float32]], (4, 8), ref_key=fc.weight, is_parameter>  :  has_default\n"
	"%para3_fc.bias: <Ref[Tensor[Float32]], (4), ref_key=fc.bias, is_parameter>  :  has_default\n"
	"%para4_moments.fc.weight: <Ref[Tensor[Float32]], (4, 8), ref_key=moments.fc.weight>  :  has_default\n"
	"\n"
	"subgraph instance: 1_step : 0x1\n"
	"subgraph @1_step() {\n"
	"  %0(CNode_1) = J(@2_net)\n"
	"      : (<Func, NoShape>) -> (<Func, NoShape>)\n"
	"  %1(CNode_2) = %0(%para1_x, UMonad[U])\n"
	"      : (<Tensor[Float32], (16, 8)>, <UMonad, NoShape>) -> (<Tuple[Tensor[Float32],Func], "
	"TupleShape((), NoShape)>)\n"
	"  %2(CNode_3) = TupleGetItem(%1, I64(0))\n"
	"      : (<Tuple[Tensor[Float32],Func], TupleShape((), NoShape)>, <Int64, NoShape>) -> "
	"(<Tensor[Float32], ()>)\n"
	"  Return(%2)\n"
	"      : (<Tensor[Float32], ()>)\n"
	"}\n"
	"\n"
	"subgraph attr:\n"
	"training: 1\n"
	"subgraph instance: 2_net : 0x2\n"
	"# Parameters: 2, (<Tensor[Float32], (16, 8)>, <UMonad, NoShape>)\n"
	"subgraph @2_net parent: [subgraph @1_step](%para5_x, %para6_u) {\n"
	"  %0(w) = Load($(@1_step:para2_fc.weight), %para6_u)\n"
	"      : (<Ref[Tensor[Float32]], (4, 8), ref_key=fc.weight, is_parameter>, <UMonad, NoShape>) -> "
	"(<Tensor[Float32], (4, 8)>)\n"
	"      # Scope: (Default/network-Net/fc-Dense)\n"
	"  %1(x) = PrimFunc_MatMul(%para5_x, %0, Bool(0), Bool(1)) {instance name: matmul} "
	"primitive_attrs: {in_strategy: ((2, 1), (4, 1))}\n"
	"      : (<Tensor[Float32], (16, 8)>, <Tensor[Float32], (4, 8)>, <Bool, NoShape>, <Bool, NoShape>) -> "
	"(<Tensor[Float32], (16, 4)>)\n"
	"      # Scope: (Default/network-Net/fc-Dense)\n"
	"  %2(b) = Load($(@1_step:para3_fc.bias), %para6_u)\n"
	"      : (<Ref[Tensor[Float32]], (4), ref_key=fc.bias, is_parameter>, <UMonad, NoShape>) -> "
	"(<Tensor[Float32], (4)>)\n"
	"      # Scope: (Default/network-Net/fc-Dense)\n"
	"  %3(y) = PrimFunc_BiasAdd(%1, %2, I64(0))\n"
	"      : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (4)>, <Int64, NoShape>) -> "
	"(<Tensor[Float32], (16, 4)>)\n"
	"      # Scope: (Default/network-Net/fc-Dense)\n"
	"  %4(z) = call @3_act(%3)\n"
	"      : (<Tensor[Float32], (16, 4)>) -> (<Tensor[Float32], (16, 4)>)\n"
	"      # Scope: (Default/network-Net/act-Act)\n"
	"  %5(l) = PrimFunc_ReduceMean(%4, (I64(0), I64(1)), Bool(0))\n"
	"      : (<Tensor[Float32], (16, 4)>, <Tuple[Int64*2], TupleShape(NoShape, NoShape), "
	"elements_use_flags={[const vector]{1, 1}}>, <Bool, NoShape>) -> (<Tensor[Float32], ()>)\n"
	"      # Scope: (Default/network-Net)\n"
	"  Return(%5)\n"
	"      : (<Tensor[Float32], ()>)\n"
	"}\n"
	"\n"
	"subgraph attr:\n"
	"output_no_recompute: 1\n"
	"subgraph instance: 3_act : 0x3\n"
	"subgraph @3_act(%para7_x) {\n"
	"  %0(e) = PrimFunc_Exp(%para7_x)\n"
	"      : (<Tensor[Float32], (16, 4)>) -> (<Tensor[Float32], (16, 4)>)\n"
	"      # Scope: (recompute_Default/network-Net/act-Act)\n"
	"  %1(m) = PrimFunc_Mul(%0, Tensor(shape=[], dtype=Float32, value=0.5))\n"
	"      : (<Tensor[Float32], (16, 4)>, <Tensor[Float32], (), value=...>) -> (<Tensor[Float32], (16, 4)>)\n"
	"      # Scope: (recompute_Default/network-Net/act-Act)\n"
	"  Return(%1)\n"
	"      : (<Tensor[Float32], (16, 4)>)\n"
	"}\n";

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

const char *edited(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	ck_assert_msg(at != NULL, "no \"%s\"", from);
	return ap_arena_printf(ctx.arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

const char *imported(const char *text, const struct ap_import_params *params, enum ap_status *st)
{
	static const struct ap_import_params plain = {.micro_batches = 1};
	const struct ap_import *g;
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	*st = ap_import_ir(&ctx, "net.ir", text, strlen(text), params ? params : &plain, &g);
	if (*st == AP_OK)
		ap_import_write(&ctx, g, ap_str_take, &s);
	return s.s;
}

const char *imported_ok(const char *text)
{
	enum ap_status st;
	const char *json = imported(text, NULL, &st);

	ck_assert_msg(st == AP_OK, "%s", messages());
	return json;
}

const struct ap_graph *graph_of(const char *json)
{
	static const struct ap_graph_params plain;
	const struct ap_graph *g = NULL;
	struct ap_json *doc;

	ck_assert_int_eq(ap_json_parse(&ctx, "g.json", json, strlen(json), 0, &doc), AP_OK);
	ck_assert_msg(ap_graph_load(&ctx, doc, "00", &plain, &g) == AP_OK, "%s", messages());
	return g;
}

const struct ap_node *node_of_type(const struct ap_graph *g, const char *type, uint32_t k)
{
	for (uint32_t i = 0; i < g->nnode; i++)
		if (!strcmp(g->node[i].type, type) && !k--)
			return &g->node[i];
	ck_abort_msg("no %s", type);
	return NULL;
}

char *file_text(const char *path, size_t *len)
{
	char *text;

	ck_assert_int_eq(ap_file_read(&ctx, ap_arena_printf(ctx.arena, "%s/%s", AP_SOURCE_ROOT, path),
		AP_FILE_MAX_BYTES, &text, len), AP_OK);
	return text;
}

const char *messages(void)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_diag_render(ctx.diag, AP_NOTE, 100, &s);
	return s.s;
}

void holds(const char *json, const char *text)
{
	ck_assert_msg(strstr(json, text) != NULL, "no %s in\n%s", text, json);
}
