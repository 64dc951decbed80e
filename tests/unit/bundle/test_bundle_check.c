/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a bundle that come back from a user. */
#include "base/vec.h"
#include "bundle/bundle_check.h"
#include "emit_test.h"

#define CELL(more) "{'cell':'a'," more "'parallel_optimizer_comm_recompute':false," \
	"'recompute_slice_activation':false}"

#define MEAN "{'api':'AutoParallel','name':'enable_gradients_mean','type':'none','value':null}"

static const struct {
	ap_bundle_check_fn *check;
	const char *text, *what; /* what is said where nothing is wrong; else NULL */
	const char *named, *says; /* the first message */
} files[] = {
	{ap_bundle_check_settings,
		"[{'api':'AutoParallel','name':'parallel_mode','type':'str','value':'semi_auto'},"
		"{'api':'AutoParallel','name':'enable_gradients_mean','type':'none','value':null},"
		"{'api':'set_auto_parallel_context','name':'device_num','type':'int','value':8},"
		"{'api':'AutoParallel','name':'dataset_strategy','type':'tuple','value':[[1],[8]]},"
		"{'api':'AutoParallel','name':'hsdp','type':'kwargs','value':{'shard_size':-1}}]", "5 calls",
		NULL, NULL},
	{ap_bundle_check_settings, "[3]", NULL, "key-type", "should be an object"},
	{ap_bundle_check_settings,
		"[{'api':'AutoParallel','name':'full','type':'none','value':null}]", NULL, "settings-known",
		"full of AutoParallel is no call that a bundle makes"},
	{ap_bundle_check_settings, "[" MEAN "," MEAN "]", NULL, "settings-once",
		"enable_gradients_mean of AutoParallel is called twice"},
	{ap_bundle_check_settings,
		"[{'api':'AutoParallel','name':'enable_gradients_mean','type':'bool','value':true}]", NULL,
		"settings-type", "enable_gradients_mean of AutoParallel takes no bool"},
	{ap_bundle_check_settings, "[{'api':'AutoParallel','name':'hsdp','type':'kwargs','value':{'shard':-1}}]",
		NULL, "settings-known", "\"shard\" is no argument of this call, which has: shard_size threshold"},
	{ap_bundle_check_settings, "[{'name':'x','type':'bool','value':true}]", NULL, "key-missing", "api"},
	{ap_bundle_check_settings, "[{'api':'a','name':'x','type':'bool'}]", NULL, "key-missing", "value"},
	{ap_bundle_check_settings, "[{'api':'a','name':'x','type':'bool','value':1}]", NULL, "key-type",
		"should be true or false"},
	{ap_bundle_check_settings, "[{'api':'a','name':'x','type':'int','value':1.5}]", NULL, "key-type",
		"should be a whole number"},
	{ap_bundle_check_settings, "[{'api':'a','name':'x','type':'set','value':[]}]", NULL, "settings-type",
		"\"set\"; none, bool, int, str, list, tuple, dict or kwargs is expected"},

	{ap_bundle_check_cells, "{'net.a':0,'net.b':1,'net.c':1}", "3 cells, parts 2", NULL, NULL},
	{ap_bundle_check_cells, "{'net.a':0,'net.b':'1'}", NULL, "key-type", "should be a number"},
	{ap_bundle_check_cells, "{'net.a':-1}", NULL, "key-range", "should be a whole number from 0 on"},
	{ap_bundle_check_cells, "{'net.a':0,'net.b':2}", NULL, "cells-gap", "no cell has 1, though one has 2"},
	{ap_bundle_check_cells, "{'net.a':0,'net.b':9000000000}", NULL, "cells-gap",
		"no cell has 1, though one has 9000000000"},
	{ap_bundle_check_cells, "{'net.a':0,'net.b':9223372036854775807}", NULL, "cells-gap",
		"no cell has 1, though one has 9223372036854775807"},

	{ap_bundle_check_recompute, "{'cells':[" CELL("'mp_comm_recompute':true,") "],'primitives':["
		"{'cell':'a','type':'MatMul','recompute':true}],'communications':["
		"{'cell':'b','type':'LayerNorm','recompute_comm_op':true}],'not_applicable':["
		"{'operator':'c','recompute_comm_op':true,'why':'d'}]}",
		"cells 1, primitives 1, communications 1, not_applicable 1", NULL, NULL},
	{ap_bundle_check_recompute, "{'cells':[],'primitives':[],'communications':[{'cell':'b','type':'LayerNorm',"
		"'recompute_comm_op':1}],'not_applicable':[]}", NULL, "key-type", "should be true or false"},
	{ap_bundle_check_recompute, "{'cells':[],'primitives':[],'not_applicable':[]}", NULL, "key-missing",
		"communications"},
	{ap_bundle_check_recompute, "{'cells':[" CELL("") "],'primitives':[],'not_applicable':[]}", NULL,
		"key-missing", "no key \"mp_comm_recompute\""},
	{ap_bundle_check_recompute, "{'cells':[],'not_applicable':[]}", NULL, "key-missing", "primitives"},
	{ap_bundle_check_recompute, "{'cells':[],'primitives':[{'cell':'a','recompute':1,'type':'B'}],"
		"'not_applicable':[]}", NULL, "key-type", "should be true or false"},

	{ap_bundle_check_shard, "{'shards':[{'cell':'a','instance':'b','in_strategy':[[2,1],[]],"
		"'out_strategy':[[2]]}],'not_applicable':[{'operator':'c','in_strategy':[[1]]}]}",
		"shards 1, not_applicable 1", NULL, NULL},
	{ap_bundle_check_shard, "{'shards':[]}", NULL, "key-missing", "not_applicable"},
	{ap_bundle_check_shard, "{'shards':[{'cell':'a','in_strategy':[]}],'not_applicable':[]}", NULL,
		"key-missing", "instance"},
	{ap_bundle_check_shard, "{'shards':[{'cell':'a','instance':'b'}],'not_applicable':[]}", NULL,
		"key-missing", "in_strategy"},
	{ap_bundle_check_shard, "{'shards':[{'cell':'a','instance':'b','in_strategy':[2]}],"
		"'not_applicable':[]}", NULL, "key-type", "should be an array"},
	{ap_bundle_check_shard, "{'shards':[],'not_applicable':[{'operator':'c','in_strategy':[[0]]}]}",
		NULL, "key-range", "should be a whole number from 1 on"},
	{ap_bundle_check_shard, "{'shards':[],'not_applicable':[{'operator':'c','in_strategy':[[1]],"
		"'out_strategy':[['x']]}]}", NULL, "key-type", "should be a number"},

	{ap_bundle_check_switches, "{'a':true,'b':2}", "switches 2", NULL, NULL},
	{ap_bundle_check_switches, "{'a':true,'b':'x'}", NULL, "key-type",
		"should be true, false or a whole number"},

	{ap_bundle_check_trace, "{'traceEvents':[{'ph':'M'},{'ph':'X','name':'a','ts':0.5,'dur':0}]}",
		"1 events", NULL, NULL},
	{ap_bundle_check_trace, "{'traceEvents':[{'name':'a'}]}", NULL, "key-missing", "ph"},
	{ap_bundle_check_trace, "{'traceEvents':[{'ph':'X','name':'a','ts':0,'dur':-1}]}", NULL, "key-range",
		"should not be negative"},
};

START_LOOP_TEST(forms, AP_COUNT(files))
{
	struct ap_ctx ctx = new_ctx();
	struct ap_str what = new_str(&ctx);
	char *text = ap_arena_strdup(ctx.arena, files[_i].text);
	const char *check = NULL, *said;
	struct ap_json *doc;
	enum ap_status st;

	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	ck_assert_int_eq(ap_json_parse(&ctx, "file", text, strlen(text), 0, &doc), AP_OK);
	st = files[_i].check(&ctx, doc, &what);
	if (files[_i].what) {
		ck_assert_int_eq(st, AP_OK);
		ck_assert_str_eq(what.s, files[_i].what);
		ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 0);
	} else {
		ck_assert_int_eq(st, AP_MEANING);
		said = ap_diag_text(ctx.diag, 0, NULL, &check);
		ck_assert_str_eq(check, files[_i].named);
		ck_assert_msg(strstr(said, files[_i].says) != NULL, "%s", said);
	}
	free_ctx(&ctx);
}
END_TEST
