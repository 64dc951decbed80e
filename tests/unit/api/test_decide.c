/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of a decision's points, held against the simulated steps of the plans that were found of them. */
#include "api/decide.h"
#include "api/settings.h"
#include "api/settle.h"
#include "unit.h"

/* Evenly dealt layers, alone or several of a part; a table of words that the head shares, and none; sums of
 * gradients in each micro-batch, whole and dealt. */
static const struct {
	const char *model, *chip, *executor, *stages, *segments, *level;
} rows[] = {
	{"gpt3_1.3b", "a100-80", "megatron", "4", "6", "level1"},
	{"gpt3_1.3b", "a100-80", "megatron", "4", "1,3", "level2"},
	{"gpt3_1.3b", "h100-80", "megatron", "2,8", "3", "level1"},
	{"gpt3_1.3b", "ascend910b", "mindformers", "4", "2,6", "level1"},
	{"gpt3_1.3b", "ascend910b", "mindspore", "2", "1,4", "level2"},
	{"llama2_7b", "a100-80", "megatron", "4", "8", "level1"},
	{"llama2_7b", "h100-80", "generic", "4", "1,4", "level2"},
};

static void give(struct ap_ctx *ctx, struct ap_settings *s, const char *key, const char *text)
{
	const char *why;

	ck_assert_msg(ap_setting_give(ctx->arena, ap_setting_of_key(key), s, text, AP_FROM_OPTION, key, &why),
		"%s %s: %s", key, text, why);
}

START_LOOP_TEST(no_plan_takes_less_than_the_bound_of_its_point, AP_COUNT(rows))
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_named named = {0};
	struct ap_sources src;
	struct ap_settings set;
	struct ap_decision d;
	uint32_t compared = 0;
	char path[512];

	snprintf(path, sizeof path, "%s/models/%s.json", AP_SOURCE_ROOT, rows[_i].model);
	named.graph.path = path;
	ap_settings_init(&set);
	give(&ctx, &set, "device_num", "64");
	give(&ctx, &set, "chip", rows[_i].chip);
	give(&ctx, &set, "executor", rows[_i].executor);
	give(&ctx, &set, "batch", "256");
	give(&ctx, &set, "pipeline_stages", rows[_i].stages);
	give(&ctx, &set, "pipeline_segments", rows[_i].segments);
	give(&ctx, &set, "optimizer_level", rows[_i].level);
	ck_assert_msg(ap_settings_settle(&ctx, &set, AP_FOR_plan) == AP_OK, "%s", messages(&ctx));
	ck_assert_int_eq(ap_sources_read(&ctx, &set, &named, &src), AP_OK);
	ck_assert_int_eq(ap_decide(&ctx, &set, &src, NULL, &d), AP_OK);
	for (uint32_t i = 0; i < d.n; i++) {
		const struct ap_decision_trial *t = &d.trial[i];

		if (t->verdict != AP_DECISION_FITS || t->bound_s == 0)
			continue;
		compared++;
		ck_assert_msg(t->bound_s <= t->step_s * (1 + 1e-9), "row %d, pp %" PRId64 ", vpp %" PRId64
			", mbs %" PRId64 ": %.9g s, bound %.9g s", _i, t->point.pp, t->point.vpp,
			t->point.mbs, t->step_s, t->bound_s);
	}
	ck_assert_uint_gt(compared, 2);
	ctx_destroy(&ctx);
}
END_TEST
