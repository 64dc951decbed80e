/* SPDX-License-Identifier: Apache-2.0 */
/* Settings with several values: from texts and from files, against those of other origins, printed and read back. */
#include "api/config.h"
#include "api/settings.h"
#include "api/settle.h"
#include "base/json.h"
#include "shard/recompute_parse.h"
#include "unit.h"

static const struct ap_setting_row *row_of(const char *key)
{
	const struct ap_setting_row *row = ap_setting_of_key(key);

	ck_assert_msg(row, "%s", key);
	return row;
}

static void give(struct ap_ctx *ctx, struct ap_settings *s, const char *key, const char *text)
{
	const char *why;

	ck_assert_msg(ap_setting_give(ctx->arena, row_of(key), s, text, AP_FROM_OPTION, key, &why), "%s %s: %s",
		key, text, why);
}

static void refuse(struct ap_ctx *ctx, const char *key, const char *text, const char *expected)
{
	struct ap_settings s;
	const char *why;

	ap_settings_init(&s);
	ck_assert_msg(!ap_setting_give(ctx->arena, row_of(key), &s, text, AP_FROM_OPTION, key, &why), "%s %s", key,
		text);
	ck_assert_msg(strstr(why, expected), "%s %s: %s", key, text, why);
}

static const char *text_of(struct ap_ctx *ctx, const struct ap_settings *s, const char *key)
{
	return ap_setting_text(ctx->arena, row_of(key), s);
}

static struct ap_settings read_config(struct ap_ctx *ctx, const char *text)
{
	struct ap_settings s;
	struct ap_json *doc;

	ap_settings_init(&s);
	ck_assert_int_eq(ap_json_parse(ctx, "c.json", text, strlen(text), 0, &doc), AP_OK);
	ck_assert_msg(ap_config_set(ctx, doc, AP_FOR_ALL, &s) == AP_OK, "%s", messages(ctx));
	return s;
}

START_TEST(values_that_are_taken)
{
	static const struct {
		const char *key, *given, *text, *json;
	} rows[] = {
		{"within", "0.5%", "0.5", "0.5"},
		{"pipeline_stages", "4", "4", "4"},
		{"pipeline_stages", "4..4", "4", "4"},
		{"pipeline_stages", "16,1,2,4..6", "1,2,4..6,16", "[1,2,4,5,6,16]"},
		{"pipeline_stages", "auto", "auto", "\"auto\""},
		{"device_num", "8..64", "8..64", "[8,16,32,64]"},
		{"micro_batches", "6..8", "6..8", "[6,7,8]"},
		{"pipeline_segments", "1,3", "1,3", "[1,3]"},
		{"optimizer_weight_shard_size", "-1,2..8", "-1,2..8", "[-1,2,4,8]"},
		{"pipeline_scheduler", "1f1b,gpipe", "gpipe,1f1b", "[\"gpipe\",\"1f1b\"]"},
		{"pipeline_scheduler", "1f1b,1f1b", "1f1b", "\"1f1b\""},
		{"pipeline_scheduler", "auto", "auto", "\"auto\""},
		{"optimizer_level", "none,1,level2", "level1,level2,none", "[\"level1\",\"level2\",\"none\"]"},
		{"optimizer_level", "none", "none", "\"none\""},
		{"recompute", "none,selective", "none|selective", "\"none|selective\""},
		{"recompute", "selective,mlp", "selective,mlp", "\"selective,mlp\""},
		{"recompute", "full:13,5,selective:2,1", "full:13,5,selective:2,1", "\"full:13,5,selective:2,1\""},
		{"recompute", "full:13,5,none", "full:13,5|none", "\"full:13,5|none\""},
		{"recompute", "selective|selective,mlp|full", "selective|selective,mlp|full",
			"\"selective|selective,mlp|full\""},
		{"recompute", "full|full", "full", "\"full\""},
		{"recompute", "auto", "auto", "\"auto\""},
		{"tokens", "15T", "15000000000000", "15000000000000"},
		{"tokens", "2.5b", "2500000000", "2500000000"},
		{"price", "2.10/h", "2.1", "2.1"},
		{"price", "0", "0", "0"},
		{"max_step_time", "0.3s", "300ms", "\"300ms\""},
		{"deadline", "60d", "60d", "\"60d\""},
		{"headroom", "7.5", "7.5", "7.5"},
	};
	struct ap_ctx ctx = ctx_create(false);

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_setting_row *row = row_of(rows[i].key);
		struct ap_settings s, again;

		ap_settings_init(&s);
		give(&ctx, &s, rows[i].key, rows[i].given);
		ck_assert_str_eq(ap_setting_text(ctx.arena, row, &s), rows[i].text);
		ck_assert_str_eq(ap_setting_json(ctx.arena, row, &s), rows[i].json);
		ck_assert_int_eq(s.among[row - ap_setting_at(0)] == NULL, !strchr(rows[i].text, '|') &&
			*rows[i].json != '[' && strcmp(rows[i].text, "auto") != 0);
		/* what is printed is read back, as an option and as JSON */
		ap_settings_init(&again);
		give(&ctx, &again, rows[i].key, rows[i].text);
		ck_assert_str_eq(ap_setting_json(ctx.arena, row, &again), rows[i].json);
		again = read_config(&ctx, ap_arena_printf(ctx.arena, "{\"%s\":%s}", rows[i].key, rows[i].json));
		ck_assert_str_eq(ap_setting_json(ctx.arena, row, &again), rows[i].json);
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(values_that_are_refused)
{
	struct ap_ctx ctx = ctx_create(false);

	refuse(&ctx, "pipeline_stages", "0,1", "an integer from 1 to 1048576, a list such as 1,2,4, a range such as "
		"4..16, or auto");
	refuse(&ctx, "pipeline_stages", "4..2", "4..2 goes down");
	refuse(&ctx, "micro_batches", "1..5000", "more than 4096 values");
	refuse(&ctx, "optimizer_weight_shard_size", "-1..4", "-1 cannot be doubled");
	refuse(&ctx, "pipeline_scheduler", "gpipe,", "one of gpipe, ");
	refuse(&ctx, "pipeline_scheduler", "", "several, with commas between them; or auto");
	refuse(&ctx, "pipeline_scheduler", "gpipe,seqvpp", "\"seqvpp\" is not supported: ");
	refuse(&ctx, "pipeline_scheduler", "auto,gpipe", "one of gpipe, ");
	refuse(&ctx, "optimizer_level", "0", "one of level1, level2, level3, none");
	refuse(&ctx, "recompute", "", "several, as none|selective|full; or auto");
	refuse(&ctx, "batch", "8,16", "expected an integer from");
	refuse(&ctx, "batch", "auto", "expected an integer from");
	refuse(&ctx, "tokens", "0", "expected a number above 0, such as 800M, 300B or 15T");
	refuse(&ctx, "tokens", "1.5", "expected a number above 0");
	refuse(&ctx, "price", "2.10/d", "expected a price by the hour, such as 2.10 or 2.10/h");
	refuse(&ctx, "price", "-1", "expected a price");
	refuse(&ctx, "price", "/h", "expected a price");
	refuse(&ctx, "price", "1e400/h", "expected a price");
	refuse(&ctx, "max_step_time", "20", "expected a time above 0 with its unit, such as 300ms, 20s, 12h or 60d");
	refuse(&ctx, "deadline", "0d", "expected a time");
	refuse(&ctx, "headroom", "91", "expected a number from 0 to 90");
	refuse(&ctx, "headroom", "5%%", "expected a number from 0 to 90");
	ctx_destroy(&ctx);
}
END_TEST

/* The field holds the first value, of auto the default; options win over files, and names must agree. */
START_TEST(origins)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_settings s = read_config(&ctx, "{\"pipeline_stages\": [8, \"2..4\"], \"micro_batches\": \"auto\","
		"\"pipeline_scheduler\": [\"1f1b\", \"gpipe\"], \"recompute\": [\"selective\", \"mlp\"]}");
	const char *why;

	ck_assert_str_eq(text_of(&ctx, &s, "pipeline_stages"), "2..4,8");
	ck_assert_int_eq(s.pipeline_stages, 2);
	ck_assert_str_eq(text_of(&ctx, &s, "recompute"), "selective,mlp");
	ck_assert_ptr_null(s.among[AP_SET_recompute]);
	ck_assert(s.micro_batches == 1 && s.among[AP_SET_micro_batches]->any);
	ck_assert_int_eq(s.pipeline_scheduler, AP_SCHEDULER_GPIPE);
	give(&ctx, &s, "pipeline_stages", "16");
	ck_assert(s.pipeline_stages == 16 && !s.among[AP_SET_pipeline_stages]);
	give(&ctx, &s, "micro_batches", "4,8");
	ck_assert_str_eq(text_of(&ctx, &s, "micro_batches"), "4,8");
	ck_assert(ap_setting_give(ctx.arena, row_of("micro_batches"), &s, "2", AP_FROM_CONFIG, "micro_size", &why));
	ck_assert_str_eq(text_of(&ctx, &s, "micro_batches"), "4,8");
	give(&ctx, &s, "micro_batches", "8,4,8");
	ck_assert(!ap_setting_give(ctx.arena, row_of("micro_batches"), &s, "4..8", AP_FROM_OPTION, "--micro-size",
		&why));
	ck_assert_str_eq(why, "\"4..8\" contradicts micro_batches, which says 4,8");
	give(&ctx, &s, "recompute", "none");
	give(&ctx, &s, "recompute", "selective"); /* given twice, they are joined */
	ck_assert_str_eq(text_of(&ctx, &s, "recompute"), "none|selective");
	ap_setting_unset(&s, AP_SET_micro_batches);
	ck_assert(s.micro_batches == 1 && !s.among[AP_SET_micro_batches]);
	ctx_destroy(&ctx);
}
END_TEST

/* What is no longer given is as if it had never been, whatever it was. */
START_TEST(unset_settings_are_as_at_first)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_settings s, first;

	ap_settings_init(&first);
	memset(&s, 0x5a, sizeof s);
	for (int id = 0; id < AP_SET_COUNT; id++)
		ap_setting_unset(&s, (enum ap_setting_id)id);
	for (int id = 0; id < AP_SET_COUNT; id++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)id);
		const char *got = ap_setting_text(ctx.arena, row, &s);
		const char *want = ap_setting_text(ctx.arena, row, &first);

		ck_assert_msg(!got == !want && (!got || strcmp(got, want) == 0), "%s: %s", row->key,
			got ? got : "not given");
		ck_assert(!s.among[id] && !s.name[id] && !ap_setting_given(&s, (enum ap_setting_id)id));
	}
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(arrays_of_wrong_values)
{
	static const char *const texts[] = {"{\"pipeline_stages\": []}", "{\"pipeline_stages\": [1, [2]]}",
		"{\"pipeline_stages\": [1.5]}", "{\"pipeline_stages\": [true]}", "{\"pipeline_stages\": {}}",
		"{\"pipeline_stages\": [\"\"]}", "{\"pipeline_stages\": \"4 .. 8\"}", "{\"batch\": [8]}",
		"{\"batch\": \"8\"}", "{\"max_step_time\": 20}", "{\"tokens\": 1.5}", "{\"price\": [[2]]}", "{\"recompute\": [1]}", "{\"pipeline_scheduler\": [\"gpipe\", null]}"};

	for (size_t i = 0; i < AP_COUNT(texts); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_settings s;
		struct ap_json *doc;

		ap_settings_init(&s);
		ck_assert_int_eq(ap_json_parse(&ctx, "c.json", texts[i], strlen(texts[i]), 0, &doc), AP_OK);
		ck_assert_msg(ap_config_set(&ctx, doc, AP_FOR_ALL, &s) == AP_MEANING, "%s", texts[i]);
		ck_assert_msg(strstr(messages(&ctx), "expected "), "%s", messages(&ctx));
		ctx_destroy(&ctx);
	}
}
END_TEST

/* What is open is left out when settings are settled, and settled when it is picked. */
START_TEST(picked)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_settings s, one;

	ap_settings_init(&s);
	give(&ctx, &s, "pipeline_scheduler", "gpipe,zero_bubble_v");
	give(&ctx, &s, "pipeline_stages", "1..4");
	give(&ctx, &s, "optimizer_level", "none,level2");
	give(&ctx, &s, "recompute", "none|selective,mlp");
	ck_assert_int_eq(ap_settings_settle(&ctx, &s, AP_FOR_search), AP_OK);
	ck_assert_int_eq(ap_settings_one(&ctx, &s, AP_FOR_plan, "plan"), AP_OK);
	one = s;
	ap_setting_pick(&one, AP_SET_pipeline_scheduler, 1);
	ap_setting_pick(&one, AP_SET_pipeline_stages, 3);
	ap_setting_pick(&one, AP_SET_optimizer_level, 1);
	ap_setting_pick(&one, AP_SET_recompute, 1);
	ck_assert_int_eq(ap_settings_settle(&ctx, &one, AP_FOR_search), AP_OK);
	ck_assert_int_eq(one.pipeline_segments, 2);
	ck_assert_int_eq(one.pipeline_stages, 4);
	ck_assert(one.optimizer_level == AP_LEVEL_NONE && !one.enable_parallel_optimizer);
	ck_assert_str_eq(one.recompute, "selective,mlp");
	ck_assert_int_eq(ap_settings_one(&ctx, &one, AP_FOR_evaluate, "evaluate"), AP_OK);
	one = s;
	ap_setting_pick(&one, AP_SET_optimizer_level, 0);
	ck_assert(one.optimizer_level == AP_LEVEL2 && one.enable_parallel_optimizer);
	ap_setting_pick(&one, AP_SET_pipeline_scheduler, 0);
	ck_assert_int_eq(ap_settings_settle(&ctx, &one, AP_FOR_search), AP_OK);
	ck_assert_int_eq(one.pipeline_segments, 1);
	ck_assert_int_eq(ap_settings_one(&ctx, &one, AP_FOR_evaluate, "evaluate"), AP_USAGE);
	ck_assert_ptr_nonnull(strstr(messages(&ctx), "pipeline_stages 1..4: evaluate takes one value; plan and search "
		"decide among several"));
	ctx_destroy(&ctx);
}
END_TEST

/* A space of hybrids leaves the settings open that its keys imply. */
START_TEST(hybrids)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_settings s;

	ap_settings_init(&s);
	give(&ctx, &s, "hybrid", "tp=1..8,pp=2,4,mbn=auto,vpp=2");
	ck_assert_int_eq(ap_settings_settle(&ctx, &s, AP_FOR_search), AP_OK);
	ck_assert(s.among[AP_SET_hybrid] && s.pipeline_segments == 2 && s.among[AP_SET_micro_batches]->any);
	ck_assert_str_eq(text_of(&ctx, &s, "pipeline_stages"), "2,4");
	ck_assert_str_eq(text_of(&ctx, &s, "hybrid"), "tp=1..8,pp=2,4,mbn=auto,vpp=2");
	ck_assert_int_eq(ap_settings_one(&ctx, &s, AP_FOR_evaluate, "evaluate"), AP_USAGE);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 1); /* not one for each implied setting */
	ap_settings_init(&s);
	give(&ctx, &s, "hybrid", "tp=4,pp=2");
	ck_assert_int_eq(ap_settings_settle(&ctx, &s, AP_FOR_search), AP_USAGE); /* of the error above */
	ck_assert(!s.among[AP_SET_hybrid] && s.pipeline_stages == 2 && !s.among[AP_SET_pipeline_stages]);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(alternatives_of_recompute)
{
	static const struct {
		const char *text;
		size_t n;
		const char *word[4];
	} rows[] = {
		{"none", 1, {"none"}}, {"selective,mlp", 1, {"selective,mlp"}}, {"none,full", 2, {"none", "full"}},
		{"full:8", 1, {"full:8"}}, {"full:2,1/1,0,none", 2, {"full:2,1/1,0", "none"}},
		{"full:2,1,mlp:3,4", 1, {"full:2,1,mlp:3,4"}},
		{"mlp:3,4,selective,full", 3, {"mlp:3,4", "selective", "full"}},
		{"a|b,c|full", 3, {"a", "b,c", "full"}}, {"|", 1, {""}}, {"none|", 2, {"none", ""}},
		{"none,", 2, {"none", ""}}, {"none,none", 1, {"none"}}, {"fuller,none", 2, {"fuller", "none"}},
	};
	struct ap_ctx ctx = ctx_create(false);
	struct ap_str many;
	const char *const *word;

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		ck_assert_msg(ap_recompute_alternatives(ctx.arena, rows[i].text, &word) == rows[i].n, "%s",
			rows[i].text);
		for (size_t k = 0; k < rows[i].n; k++)
			ck_assert_str_eq(word[k], rows[i].word[k]);
	}
	ap_str_init(&many, ctx.arena);
	for (int i = 0; i < 5000; i++)
		ap_str_addf(&many, "full:%d|", i);
	ck_assert_uint_eq(ap_recompute_alternatives(ctx.arena, many.s, &word), AP_CHOICES_MOST + 1);
	refuse(&ctx, "recompute", many.s, "more than 4096 values");
	ctx_destroy(&ctx);
}
END_TEST
