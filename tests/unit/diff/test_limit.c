/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on the figures of plans. */
#include "base/vec.h"
#include "diff/limit.h"
#include "diff_test.h"

static const struct ap_limit *parse(struct ap_ctx *ctx, const char *text, uint32_t *n)
{
	const struct ap_limit *limit;

	ck_assert_int_eq(ap_limits_parse(ctx, "--fail-if", text, n, &limit), AP_OK);
	return limit;
}

/* The first message that a text gets. */
static const char *message(const char *text, struct ap_ctx *ctx)
{
	const struct ap_limit *limit;
	uint32_t n;

	ck_assert_int_eq(ap_limits_parse(ctx, "--fail-if", text, &n, &limit), AP_USAGE);
	ck_assert_int_eq(ap_diag_status(ctx->diag), AP_USAGE);
	return ap_diag_text(ctx->diag, 0, NULL, NULL);
}

START_TEST(test_parse)
{
	struct ap_ctx ctx = new_ctx();
	const struct ap_limit *l;
	uint32_t n;

	l = parse(&ctx, " step_time  >  + 2.5 % ,memory<=95%,gap>=1%,bubble<-3ms", &n);
	ck_assert_uint_eq(n, 4);
	ck_assert_str_eq(l[0].text, "step_time>+2.5%");
	ck_assert(l[0].op == AP_ABOVE && l[0].change && l[0].share);
	ck_assert_double_eq(l[0].value, 0.025);
	ck_assert(l[1].op == AP_AT_MOST && !l[1].change && l[1].share);
	ck_assert_double_eq(l[1].value, 0.95);
	ck_assert(l[2].op == AP_AT_LEAST && !l[2].change && !l[2].share); /* it is a share by itself */
	ck_assert_double_eq(l[2].value, 0.01);
	ck_assert(l[3].op == AP_BELOW && l[3].change && !l[3].share);
	ck_assert_double_eq(l[3].value, -0.003);
	l = parse(&ctx, "memory>1.5GB", &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_double_eq(l[0].value, 1.5 * 1024 * 1024 * 1024);
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_faults)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"stp_time>1s", "character 1: no figure \"stp_time\"; did you mean step_time?"},
		{"memory>1GB,", "character 12: expected one of step_time,"},
		{"", "character 1: expected one of step_time,"},
		{"memory", "character 7: expected >, >=, < or <="},
		{"memory==1GB", "character 7: expected >, >=, < or <="},
		{"memory>", "character 8: expected a number"},
		{"memory>+", "character 9: expected a number"},
		{"memory>1.2.3GB", "character 8: expected a number"},
		{"memory>1", "character 9: the unit of memory is B, KB, MB, GB or TB (or KiB, K and so on), or % of "
			"the device"},
		{"step_time>2%", "character 12: the unit of step_time is s, ms or us; a change in %"},
		{"bubble>2", "character 9: the unit of bubble is s, ms or us, or % of the step's time"},
		{"gap>1", "character 6: the unit of gap is %"},
		{"samples_per_s>1s", "character 16: the unit of samples_per_s is none"},
		{"gap>1% memory>1%", "character 8: expected a comma or the end"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct ap_ctx ctx = new_ctx();
		const char *text = message(cases[i].text, &ctx);

		ck_assert_msg(strstr(text, cases[i].part) != NULL, "%s: %s", cases[i].text, text);
		free_ctx(&ctx);
	}
}
END_TEST

/* Of plans with these step times and this memory of 1024 bytes. */
static bool judge(struct ap_ctx *ctx, const char *condition, const char *was, const char *is,
	struct ap_verdict *v)
{
	struct ap_saved old, new;
	uint32_t n;
	const struct ap_limit *l = parse(ctx, condition, &n);

	read_spec(ctx, &(struct plan_spec){.step_time_s = was, .total_bytes = "512"}, &old);
	read_spec(ctx, &(struct plan_spec){.step_time_s = is, .total_bytes = "768"}, &new);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(ap_limit_judge(ctx, l, &old, &new, v), AP_OK);
	return v->holds;
}

START_TEST(test_judge)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_verdict v;

	ck_assert(!judge(&ctx, "step_time>+25%", "2", "2.5", &v));
	ck_assert(judge(&ctx, "step_time>=+25%", "2", "2.5", &v));
	ck_assert(judge(&ctx, "step_time>+24.9%", "2", "2.5", &v));
	ck_assert_str_eq(v.was, "2.00 s");
	ck_assert_str_eq(v.is, "2.50 s");
	ck_assert_str_eq(v.note, "+25.0 %");
	ck_assert_str_eq(v.metric, "step time");
	ck_assert_double_eq(v.was_number, 2);
	ck_assert(judge(&ctx, "step_time>+499ms", "2", "2.5", &v));
	ck_assert(!judge(&ctx, "step_time>+500ms", "2", "2.5", &v));
	ck_assert(judge(&ctx, "step_time<-20%", "2", "1.5", &v));
	ck_assert(!judge(&ctx, "step_time<-25%", "2", "1.5", &v));
	ck_assert(judge(&ctx, "step_time>2.4s", "2", "2.5", &v));
	ck_assert_str_eq(v.was, "");
	ck_assert(!judge(&ctx, "step_time>2500ms", "2", "2.5", &v));
	ck_assert(!judge(&ctx, "memory>75%", "2", "2.5", &v)); /* 768 of 1024 bytes */
	ck_assert(judge(&ctx, "memory>=75%", "2", "2.5", &v));
	ck_assert_str_eq(v.note, "75 % of 1.00 KiB");
	ck_assert(judge(&ctx, "memory>+49%", "2", "2.5", &v));
	ck_assert(!judge(&ctx, "memory>+50%", "2", "2.5", &v));
	ck_assert(judge(&ctx, "memory>+255B", "2", "2.5", &v));
	ck_assert(!judge(&ctx, "memory>+0.25KB", "2", "2.5", &v));
	ck_assert(judge(&ctx, "compute>=40%", "2", "2.5", &v)); /* 1 s of 2.5 s */
	ck_assert(!judge(&ctx, "compute>40%", "2", "2.5", &v));
	ck_assert(!judge(&ctx, "objective_gap>0%", "2", "2.5", &v));
	ck_assert(!judge(&ctx, "step_time>+0%", "2", "2", &v));
	ck_assert_str_eq(v.was, "2.00 s");
	free_ctx(&ctx);
}
END_TEST

/* Of several stages the one that needs most counts. */
START_TEST(test_stages)
{
	struct ap_ctx ctx = new_ctx();
	const char *text = plan_text(&ctx, &(struct plan_spec){0});
	const char *one = "{\"stage\":0,\"total_bytes\":1048576}", *at = strstr(text, one);
	struct ap_saved plan;
	struct ap_verdict v;
	uint32_t n;

	ck_assert_ptr_nonnull(at);
	text = ap_arena_printf(ctx.arena, "%.*s{\"stage\":0,\"total_bytes\":300},"
		"{\"stage\":1,\"total_bytes\":700},{\"stage\":2,\"total_bytes\":400}%s",
		(int)(at - text), text, at + strlen(one));
	ck_assert_int_eq(read_text(&ctx, text, &plan), AP_OK);
	ck_assert_int_eq(ap_limit_judge(&ctx, parse(&ctx, "memory>699B", &n), NULL, &plan, &v), AP_OK);
	ck_assert(v.holds);
	ck_assert_double_eq(v.is_number, 700);
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_missing)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_saved plan;
	struct ap_verdict v;
	uint32_t n;

	read_spec(&ctx, &(struct plan_spec){0}, &plan);
	ck_assert_int_eq(ap_limit_judge(&ctx, parse(&ctx, "bubble>1s", &n), NULL, &plan, &v),
		AP_MEANING);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"this plan holds no prediction.bubble_s, which bubble is");
	free_ctx(&ctx);
}
END_TEST
