/* SPDX-License-Identifier: Apache-2.0 */
/* What one engine's answer says of another's. */
#include <math.h>

#include "base/diag.h"
#include "drive/certify.h"
#include "unit.h"

static uint32_t a_pick[1];

static struct ap_choice found(double bound, double cost)
{
	return (struct ap_choice){.engine = "one", .pick = a_pick, .cost = cost, .lower_bound = bound,
		.outcome = bound < cost ? AP_OUT_FEASIBLE : AP_OUT_OPTIMAL};
}

static struct ap_choice none(void)
{
	return (struct ap_choice){.engine = "one", .cost = INFINITY, .lower_bound = INFINITY,
		.outcome = AP_OUT_INFEASIBLE};
}

static struct ap_choice limit(double bound)
{
	return (struct ap_choice){.engine = "one", .cost = INFINITY, .lower_bound = bound,
		.outcome = AP_OUT_LIMIT};
}

enum verdict { PROVEN, OPEN, BUG };

static void expect(enum verdict want, struct ap_choice a, struct ap_choice b)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_certificate c;
	b.engine = "two";
	enum ap_status st = ap_certify_compare(&ctx, &a, &b, &c);
	ck_assert_int_eq(st, want == BUG ? AP_INTERNAL : AP_OK);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), want == BUG);
	if (want != BUG)
		ck_assert_int_eq(c.proven, want == PROVEN);
	ck_assert_str_eq(c.engine, "two");
	ctx_destroy(&ctx);
}

START_TEST(answers_are_compared)
{
	expect(PROVEN, found(5, 5), found(5, 5));
	expect(PROVEN, found(4, 5), found(5, 5));
	expect(PROVEN, found(4, 5), limit(5)); /* a bound is enough */
	expect(PROVEN, none(), none());
	expect(OPEN, found(5, 5), limit(4));
	expect(OPEN, found(5, 5), found(4, 5));
	expect(OPEN, found(4, 6), found(5, 5));
	expect(OPEN, found(5, 5), found(4, 6)); /* a worse pick says nothing */
	expect(OPEN, none(), limit(1000));
	expect(OPEN, limit(3), found(5, 5));
	expect(BUG, found(5, 5), found(4, 4));
	expect(BUG, found(5, 5), found(6, 6));
	expect(BUG, found(5, 5), limit(5.5));
	expect(BUG, found(5, 5), none());
	expect(BUG, none(), found(4, 5));
	expect(BUG, limit(6), found(5, 5));
}
END_TEST

START_TEST(both_numbers_are_told)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_choice a = found(1.5, 1.5), b = found(1.25, 1.25);
	struct ap_certificate c;
	b.engine = "two";
	ck_assert_int_eq(ap_certify_compare(&ctx, &a, &b, &c), AP_INTERNAL);
	ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, NULL),
		"one finds a choice that costs 1.5 and a bound of 1.5, two finds a choice that costs "
		"1.25 and a bound of 1.25 on the same table: this is a bug");
	ctx_destroy(&ctx);
}
END_TEST
