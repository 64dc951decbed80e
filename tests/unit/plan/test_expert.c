/* SPDX-License-Identifier: Apache-2.0 */
/* What experts' words say of a plan: its own hybrid, or the nearest one. */
#include "expert_test.h"
#include "unit.h"

/* Each is found again, and costs what it costs. */
static const struct expert_case own[] = {
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 1}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 4}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 16}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 4, .sp = true}},
	{.model = "gpt3_1.3b", .devices = 16, .hybrid = {.tp = 4, .vocab = AP_VOCAB_WHOLE}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 16, .hybrid = {.tp = 2, .cp = 2}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 32, .hybrid = {.tp = 2, .cp = 4, .sp = true}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8, .hybrid = {.tp = 2, .pp = 4}},
	{.model = "gpt3_1.3b", .devices = 16, .micro_batches = 8,
		.hybrid = {.tp = 4, .pp = 2, .vpp = 2, .sp = true}},
	{.model = "llama2_7b", .devices = 32, .hybrid = {.tp = 8}},
	{.model = "llama2_7b", .devices = 32, .hybrid = {.tp = 8, .sp = true}},
	{.model = "llama2_7b", .devices = 32, .micro_batches = 256,
		.hybrid = {.tp = 4, .cp = 2, .pp = 2, .vocab = AP_VOCAB_WHOLE}},
	{.model = "mixtral_8x7b", .devices = 32, .hybrid = {.tp = 2, .ep = 8}},
	{.model = "mixtral_8x7b", .devices = 32, .hybrid = {.tp = 4, .ep = 2, .sp = true}},
	{.model = "mixtral_8x7b", .devices = 32, .micro_batches = 4,
		.hybrid = {.tp = 4, .ep = 4, .pp = 2}},
	{.model = "resnet50", .devices = 8, .hybrid = {.tp = 1}},
	{.model = "multiple_mix", .devices = 8, .hybrid = {.tp = 2}},
};

START_TEST(own_hybrid_is_found)
{
	struct fixture f;
	struct ap_hybrid h;
	struct ap_plan p;
	struct ap_expert x;

	expert_plan(&f, &own[_i], &h, &p);
	ap_expert_find(&f.ctx, &p, &x);
	ck_assert(x.same);
	ck_assert(x.loss == 0.0);
	ck_assert(x.step_time_s == p.prediction.step_time_s);
	ck_assert_int_eq(x.memory_bytes, p.prediction.memory.total);
	ck_assert(x.fits);
	ck_assert_int_eq(x.hybrid.dp, h.dp);
	ck_assert_int_eq(x.hybrid.tp, h.tp);
	ck_assert_int_eq(x.hybrid.cp, h.cp);
	ck_assert_int_eq(x.hybrid.ep, h.ep);
	ck_assert_int_eq(x.hybrid.pp, h.pp);
	ck_assert_int_eq(x.hybrid.vpp, h.vpp);
	ck_assert_int_eq(x.hybrid.sp, h.sp);
	ck_assert_int_eq(x.hybrid.mbs, h.mbs);
	ck_assert_int_eq(x.hybrid.micro_batches, h.micro_batches);
	fixture_close(&f);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("expert");
	Suite *s = suite_create("plan");
	SRunner *sr;
	int failed;

	tcase_set_timeout(tc, 100);
	tcase_add_loop_test(tc, own_hybrid_is_found, 0, sizeof own / sizeof *own);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed != 0;
}
