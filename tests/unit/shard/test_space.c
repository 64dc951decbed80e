/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "bound.h"
#include "harness.h"
#include "rule/deal.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/space.h"
#include "shard/strategy.h"

static struct ap_ctx ctx;
static const struct ap_step whole_step = AP_STEP_DEFAULT;

static void setup(void)
{
	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
}

static void teardown(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

TEST_FIXTURE(setup, teardown)

/* "2 3 1" for candidate i, factors in their own order. */
static const char *candidate(const struct ap_space *s, uint32_t i)
{
	char text[256] = "";
	size_t len = 0;

	for (int f = 0; f < s->nfactor; f++)
		len += (size_t)snprintf(text + len, sizeof text - len, f ? " %d" : "%d",
			s->count[i * s->nfactor + f]);
	return ap_arena_strdup(ctx.arena, text);
}

START_TEST(candidates_come_in_descending_order)
{
	static const char *const want[] = {"4 1", "2 2", "2 1", "1 4", "1 2", "1 1"};
	struct made m;
	struct ap_space s;

	make_bound(&m, "mn->mn", "m8 n8", "");
	ap_space_make(&ctx, &m.b, 4, &whole_step, &s);
	ck_assert_uint_eq(s.n, 6);
	ck_assert_uint_eq(s.nfactor, 2);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_str_eq(candidate(&s, i), want[i]);
}
END_TEST

START_TEST(order_follows_the_dev_matrix_not_the_letters)
{
	static const char *const want[] = {"1 4", "2 2", "1 2", "4 1", "2 1", "1 1"};
	struct made m;
	struct ap_space s;

	make_bound(&m, "mn->mn", "m8 n8", "");
	m.b.dev[0] = 1;
	m.b.dev[1] = 0;
	ap_space_make(&ctx, &m.b, 4, &whole_step, &s);
	ck_assert_uint_eq(s.n, 6);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_str_eq(candidate(&s, i), want[i]);
}
END_TEST

static bool offers(const struct ap_space *s, const char *counts)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (!strcmp(candidate(s, i), counts))
			return true;
	return false;
}

START_TEST(every_cut_that_divides_is_offered)
{
	struct made m;
	struct ap_space s;

	make_bound(&m, "bs->bs", "b2 s7", "");
	ap_space_make(&ctx, &m.b, 24, &whole_step, &s);
	ck_assert_uint_eq(s.n, 2);
	ck_assert(offers(&s, "2 1"));

	make_bound(&m, "bs->bs", "b2 s3", "");
	ap_space_make(&ctx, &m.b, 6, &whole_step, &s);
	ck_assert(offers(&s, "2 3"));
	ck_assert_uint_eq(s.n, 4);

	make_bound(&m, "bs->bs", "b1000 s8", "");
	ap_space_make(&ctx, &m.b, 1000, &whole_step, &s);
	ck_assert(offers(&s, "125 8"));
	ck_assert(offers(&s, "1000 1"));
	ck_assert(!offers(&s, "1000 8"));
}
END_TEST

static uint32_t choose3(uint32_t n)
{
	return n * (n - 1) * (n - 2) / 6;
}

/* MatMul with three large extents on 2^k devices: C(k + 3, 3) candidates. */
START_TEST(matmul_counts_are_binomial)
{
	struct made m;

	make_bound(&m, "mk,kn->mn", "m1048576 k1048576 n1048576", "");
	for (uint32_t k = 0; k <= 20; k++) {
		struct ap_space s;

		ap_space_make(&ctx, &m.b, (int64_t)1 << k, &whole_step, &s);
		ck_assert_uint_eq(s.n, choose3(k + 3));
	}
}
END_TEST

/* The figures of a BatchMatMul with five factors: C(k + 5, 5) less what its extents forbid. */
START_TEST(large_spaces_on_65536_devices)
{
	struct made m;
	struct ap_space s;

	make_bound(&m, "abmk,abkn->abmn", "a65536 b65536 m65536 k65536 n65536", "");
	ap_space_make(&ctx, &m.b, 65536, &whole_step, &s);
	ck_assert_uint_eq(s.n, 20349);
	ck_assert_str_eq(candidate(&s, 0), "65536 1 1 1 1");
	ck_assert_str_eq(candidate(&s, s.n - 1), "1 1 1 1 1");
}
END_TEST

START_TEST(frozen_factors_and_scalars)
{
	struct made m;
	struct ap_space s;

	make_bound(&m, "bh->bh", "b4 h8!", "");
	ap_space_make(&ctx, &m.b, 8, &whole_step, &s);
	ck_assert_uint_eq(s.n, 3);
	ck_assert_str_eq(candidate(&s, 0), "4 1");
	make_bound(&m, "->", "", "");
	ap_space_make(&ctx, &m.b, 8, &whole_step, &s);
	ck_assert_uint_eq(s.n, 1);
	ck_assert_uint_eq(s.nfactor, 0);
}
END_TEST

/* Extents are those of a micro-batch for factors with the batch, and only for those. */
START_TEST(micro_batches_leave_less_to_cut)
{
	struct ap_step step = AP_STEP_DEFAULT;
	struct made m;
	struct ap_space s;

	step.micro_batches = 4;
	make_bound(&m, "bs->bs", "b16* s16", "");
	ck_assert_int_eq(ap_factor_extent(&m.b, 0, &step), 4);
	ck_assert_int_eq(ap_factor_extent(&m.b, 1, &step), 16);
	ap_space_make(&ctx, &m.b, 16, &step, &s);
	ck_assert(!offers(&s, "8 1"));
	ck_assert(offers(&s, "4 4"));
	ck_assert(offers(&s, "1 16"));
	ck_assert_uint_eq(s.n, 5 + 4 + 3);
}
END_TEST

START_TEST(inner_factors_wait_for_outer_ones)
{
	struct made m;
	struct ap_space s;

	make_bound(&m, "bsh->(bs)h", "b2 s6 h4", "");
	ap_space_make(&ctx, &m.b, 12, &whole_step, &s);
	ck_assert(offers(&s, "2 6 1"));
	ck_assert(offers(&s, "2 3 2"));
	ck_assert(offers(&s, "1 1 4"));
	ck_assert(!offers(&s, "1 3 1"));
	ck_assert(!offers(&s, "1 3 4"));
	/* b 1: h 4 2 1; b 2: s 1 2 3 6 with h | 6, 3, 2, 1 of 4 2 1 */
	ck_assert_uint_eq(s.n, 3 + 2 + 1 + 2 + 1);
}
END_TEST

/* Makes counts ask for sums that would not be dealt otherwise; false where they cannot. */
static bool ask(const struct ap_bound *b, int32_t *count)
{
	bool any = false;

	for (int f = 0; f < b->nfactor && b->deal_asked && !ap_rule_dealt(b, count); f++)
		if (b->dealt >> f & 1 && count[f] > 1) {
			count[f] = -count[f];
			any = true;
		}
	return any;
}

/* Every vector of counts up to ndev, judged by ap_space_legal(), against the enumeration. */
static uint32_t asked;

static void check_against_brute_force(const struct ap_bound *b, int64_t ndev,
	const struct ap_step *step)
{
	int32_t count[AP_MAX_FACTOR] = {0}, asking[AP_MAX_FACTOR];
	struct ap_space s;
	uint32_t found = 0;
	const char *why;
	bool more = true;

	ap_space_make(&ctx, b, ndev, step, &s);
	for (int f = 0; f < b->nfactor; f++)
		count[f] = (int32_t)ndev;
	while (more) {
		if (ap_space_legal(&ctx, b, count, ndev, step, &why)) {
			REQUIRE(found < s.n);
			REQUIRE(!memcmp(&s.count[found * s.nfactor], count,
				s.nfactor * sizeof *count));
			found++;
		}
		memcpy(asking, count, sizeof asking);
		if (ask(b, asking) && ap_space_legal(&ctx, b, asking, ndev, step, &why)) {
			struct ap_placement p;

			REQUIRE(found < s.n);
			REQUIRE(!memcmp(&s.count[found * s.nfactor], asking, s.nfactor * sizeof *asking));
			ap_placement_make(b, asking, ndev, &p);
			REQUIRE(p.dealt == b->dealt);
			REQUIRE(!memcmp(ap_placement_counts(ctx.arena, &p), asking,
				s.nfactor * sizeof *asking));
			found++;
			asked++;
		}
		more = false;
		for (int i = b->ndev; i-- > 0 && !more;) {
			more = --count[b->dev[i]] > 0;
			if (!more)
				count[b->dev[i]] = (int32_t)ndev;
		}
	}
	ck_assert_uint_eq(found, s.n);
}

static const char *const rules[] = {"mk,kn->mn", "abmk,abkn->abmn", "abc->abc", "abc->(ab)c",
	"abc->a(bc)", "(abc)d->a(bc)d", "abc->(ac)b", "(ab)c,c->(bc)a", "ab,b->ab,a", "a->a",
	"(ba)c->abc"};
#define RULES AP_COUNT(rules)

static void random_bound(struct made *m, uint64_t *seed, int64_t micro)
{
	const char *rule = rules[random_next(seed) % RULES];
	char lengths[128] = "";
	size_t len = 0;

	for (const char *c = rule; *c; c++)
		if (*c >= 'a' && *c <= 'z' && !memchr(rule, *c, (size_t)(c - rule))) {
			static const int64_t extents[] = {1, 2, 3, 4, 6, 8, 12, 36};
			bool batch = random_next(seed) % 4 == 0;

			len += (size_t)snprintf(lengths + len, sizeof lengths - len, "%s%c%d%s%s",
				len ? " " : "", *c,
				(int)(extents[random_next(seed) % 8] * (batch ? micro : 1)),
				batch ? "*" : "", random_next(seed) % 8 ? "" : "!");
		}
	make_bound(m, rule, lengths, "");
	for (int i = m->b.ndev - 1; i > 0 && random_next(seed) % 2; i--) {
		int j = (int)(random_next(seed) % (uint64_t)(i + 1));
		uint8_t f = m->b.dev[i];

		m->b.dev[i] = m->b.dev[j];
		m->b.dev[j] = f;
	}
}

START_TEST(enumeration_equals_brute_force)
{
	static const int64_t ndevs[] = {1, 2, 3, 4, 6, 8, 12};
	uint64_t seed = random_seed("enumeration_equals_brute_force");
	struct ap_step step = AP_STEP_DEFAULT;

	for (int round = 0; round < 150; round++) {
		struct made m;
		int64_t ndev = ndevs[random_next(&seed) % 7];

		step.micro_batches = 1 + (int64_t)(random_next(&seed) % 3);
		random_bound(&m, &seed, step.micro_batches);
		if (m.b.nfactor > 4)
			ndev = ndev > 4 ? 6 : ndev;
		if (m.b.nin == 2 && random_next(&seed) % 4) {
			m.row.name = "MatMul";
			ap_rule_deal_if_asked(&ctx, &m.b);
		}
		check_against_brute_force(&m.b, ndev, &step);
		teardown();
		setup();
	}
	ck_assert_uint_gt(asked, 15);
}
END_TEST

/* Counts -> vectors -> counts, for every candidate. */
START_TEST(strategies_read_back)
{
	uint64_t seed = random_seed("strategies_read_back");
	struct ap_step step = AP_STEP_DEFAULT;

	step.micro_batches = 2;
	for (int round = 0; round < 200; round++) {
		struct made m;
		struct ap_space s;

		random_bound(&m, &seed, 2);
		ap_space_make(&ctx, &m.b, 24, &step, &s);
		for (uint32_t i = 0; i < s.n; i++) {
			struct ap_placement p;
			uint8_t rank[4];
			int32_t cut[4][AP_MAX_RANK], count[AP_MAX_FACTOR];
			const char *why = "";
			uint32_t n;

			ap_placement_make(&m.b, &s.count[i * s.nfactor], 24, &p);
			n = ap_space_to_strategy(&p, rank, cut, 4);
			ck_assert_uint_eq(n, m.b.nin);
			ck_assert_msg(ap_space_from_strategy(&ctx, &m.b, 24, &step, n, rank,
					      (const int32_t(*)[AP_MAX_RANK])cut, count, &why),
				"%s: %s", m.row.rule, why);
			ck_assert_mem_eq(count, &s.count[i * s.nfactor],
				s.nfactor * sizeof *count);
		}
		teardown();
		setup();
	}
}
END_TEST

/* OneHot is cut by its result; its scalars take empty vectors. */
START_TEST(strategy_column_names_the_tensors)
{
	struct made m;
	struct ap_placement p;
	uint8_t rank[4];
	int32_t cut[4][AP_MAX_RANK], count[AP_MAX_FACTOR];
	const char *why;

	make_bound(&m, "b,,->bv", "b16 v32", "");
	m.row.strategy = "o,-,-";
	ap_placement_make(&m.b, (int32_t[]){4, 2}, 8, &p);
	ck_assert_uint_eq(ap_space_to_strategy(&p, rank, cut, 4), 3);
	ck_assert_uint_eq(rank[0], 2);
	ck_assert_int_eq(cut[0][0], 4);
	ck_assert_int_eq(cut[0][1], 2);
	ck_assert_uint_eq(rank[1], 0);
	ck_assert_uint_eq(rank[2], 0);
	ck_assert(ap_space_from_strategy(&ctx, &m.b, 8, &whole_step, 3, rank,
		(const int32_t(*)[AP_MAX_RANK])cut, count, &why));
	ck_assert_int_eq(count[0], 4);
	ck_assert_int_eq(count[1], 2);
}
END_TEST

struct refusal {
	const char *rule, *lengths;
	int64_t ndev;
	uint32_t n;
	uint8_t rank[3];
	int32_t cut[3][AP_MAX_RANK];
	const char *why;
};

static const struct refusal refusals[] = {
	{"mk,kn->mn", "m128 k64 n32", 8, 1, {2}, {{2, 2}}, "1 vectors; Made takes 2"},
	{"mk,kn->mn", "m128 k64 n32", 8, 2, {2, 3}, {{2, 2}, {2, 1, 1}},
		"vector 1 has 3 values; input 1 has 2 dimensions"},
	{"mk,kn->mn", "m128 k64 n32", 8, 2, {2, 2}, {{2, 0}, {2, 1}},
		"input 0, dimension 1 of length 64: 0 parts; at least 1 is needed"},
	{"mk,kn->mn", "m128 k64 n32", 8, 2, {2, 2}, {{-2, 1}, {1, 1}},
		"input 0, dimension 0 of length 128: -2 parts; at least 1 is needed"},
	{"mk,kn->mn", "m128 k60 n32", 16, 2, {2, 2}, {{2, 8}, {8, 1}},
		"input 0, dimension 1 of length 60: 8 parts; 1, 2, 4 are allowed"},
	{"mk,kn->mn", "m128 k60 n32", 16, 2, {2, 2}, {{1, 3}, {3, 1}},
		"input 0, dimension 1 of length 60: 3 parts are no power of two, which "
		"16 devices need; 1, 2, 4 are allowed"},
	{"mk,kn->mn", "m128 k64 n32", 8, 2, {2, 2}, {{2, 2}, {4, 1}},
		"input 1, dimension 0 of length 64: 4 parts; 2 are allowed, as many as "
		"of input 0, dimension 1 of length 64"},
	{"mk,kn->mn", "m128 k64 n32", 8, 2, {2, 2}, {{4, 2}, {2, 2}},
		"4 x 2 x 2 parts; a divisor of the 8 devices is allowed"},
	{"mk,kn->mn", "m27 k64 n32", 6, 2, {2, 2}, {{9, 1}, {1, 1}},
		"9 parts; a divisor of the 6 devices is allowed"},
	{"bh,h->bh", "b128 h64!", 8, 2, {2, 1}, {{4, 2}, {2}},
		"input 0, dimension 1 of length 64: 2 parts; 1 is allowed"},
	{"bh,1h->bh", "b128 h64", 8, 2, {2, 2}, {{4, 2}, {2, 2}},
		"input 1, dimension 0 of length 1: 2 parts; 1 is allowed"},
	{"(bs)h->bsh", "b2 s6 h4", 12, 1, {2}, {{3, 1}},
		"input 0, dimension 0 of length 12 = 2 x 6: 3 parts would cut across "
		"its factor of 2"},
	{"bsh->(bs)h", "b2 s6 h4", 12, 1, {3}, {{1, 3, 1}},
		"result 0, dimension 0 of length 12 = 2 x 6: 3 parts of its factor of "
		"6; 1 is allowed unless its factor of 2 outside that is cut wholly"},
	{"bsh->(bh)s", "b2 s6 h4", 24, 1, {3}, {{2, 3, 2}},
		"result 0, dimension 0 of length 8 = 2 x 4: its factors of 2 and 4 are "
		"both cut, and no neighbours in the dev_matrix; one of them is allowed"},
};

START_LOOP_TEST(wrong_strategies_are_refused_with_the_reason, AP_COUNT(refusals))
{
	const struct refusal *r = &refusals[_i];
	int32_t count[AP_MAX_FACTOR];
	const char *why = "accepted";
	struct made m;

	make_bound(&m, r->rule, r->lengths, "");
	ck_assert(!ap_space_from_strategy(&ctx, &m.b, r->ndev, &whole_step, r->n, r->rank, r->cut,
		count, &why));
	ck_assert_str_eq(why, r->why);
}
END_TEST

START_TEST(strategies_are_of_the_micro_batch)
{
	struct ap_step step = AP_STEP_DEFAULT;
	int32_t cut[1][AP_MAX_RANK] = {{8}}, count[AP_MAX_FACTOR];
	const uint8_t rank[] = {1};
	const char *why = "";
	struct made m;

	make_bound(&m, "b->b", "b16*", "");
	ck_assert(ap_space_from_strategy(&ctx, &m.b, 8, &step, 1, rank,
		(const int32_t(*)[AP_MAX_RANK])cut, count, &why));
	step.micro_batches = 4;
	ck_assert(!ap_space_from_strategy(&ctx, &m.b, 8, &step, 1, rank,
		(const int32_t(*)[AP_MAX_RANK])cut, count, &why));
	ck_assert_str_eq(why, "input 0, dimension 0 of length 16 (4 in a micro-batch): 8 parts; "
		"1, 2, 4 are allowed");
}
END_TEST

START_TEST(illegal_counts_are_named)
{
	const char *why;
	struct made m;

	make_bound(&m, "mk,kn->mn", "m12 k8 n8", "");
	ck_assert(ap_space_legal(&ctx, &m.b, (int32_t[]){3, 4, 2}, 24, &whole_step, &why));
	ck_assert(!ap_space_legal(&ctx, &m.b, (int32_t[]){1, 0, 1}, 24, &whole_step, &why));
	ck_assert_str_eq(why, "input 0, dimension 1 of length 8: 0 parts; at least 1 is needed");
	ck_assert(!ap_space_legal(&ctx, &m.b, (int32_t[]){1, 3, 1}, 24, &whole_step, &why));
	ck_assert_str_eq(why, "input 0, dimension 1 of length 8: 3 parts; 1, 2, 4, 8 are allowed");
}
END_TEST

START_TEST(all_devices_or_none)
{
	static const char *const want[] = {"4 1", "2 2", "1 4", "1 1"};
	struct ap_step step = whole_step;
	struct made m;
	struct ap_space s;

	step.fully_use = true;
	make_bound(&m, "mn->mn", "m8 n8", "");
	ap_space_make(&ctx, &m.b, 4, &step, &s);
	ck_assert_uint_eq(s.n, 4);
	for (uint32_t i = 0; i < 4; i++)
		ck_assert_str_eq(candidate(&s, i), want[i]);
	ck_assert(!ap_space_wanted(&m.b, (int32_t[]){2, 1}, 4, &step));
	ck_assert(ap_space_legal(&ctx, &m.b, (int32_t[]){2, 1}, 4, &step, NULL)); /* when it is given */
	ck_assert(ap_space_wanted(&m.b, (int32_t[]){2, 1}, 4, &whole_step));
}
END_TEST

/* The last two dimensions of both operands, of a micro-batch; of products only. */
START_TEST(slices_of_products_are_aligned)
{
	struct ap_step step = whole_step;
	struct made m;
	struct ap_space s;

	step.slice_align = 16;
	make_bound(&m, "mk,kn->mn", "m64* k32 n48", "");
	m.row.unit = AP_OP_CUBE;
	ap_space_make(&ctx, &m.b, 8, &step, &s);
	ck_assert(offers(&s, "4 1 1"));
	ck_assert(!offers(&s, "8 1 1"));
	ck_assert(offers(&s, "4 2 1"));
	ck_assert(!offers(&s, "1 4 1"));
	ck_assert(!offers(&s, "1 1 2")); /* 24 */
	ck_assert(offers(&s, "1 1 1"));
	ck_assert_uint_eq(s.n, 6);
	step.micro_batches = 2;
	ap_space_make(&ctx, &m.b, 8, &step, &s);
	ck_assert(offers(&s, "2 1 1"));
	ck_assert(!offers(&s, "4 1 1"));
	m.row.unit = AP_OP_VECTOR;
	ap_space_make(&ctx, &m.b, 8, &step, &s);
	ck_assert(offers(&s, "8 1 1"));
	make_bound(&m, "mk,kn->mn", "m8 k8 n8", ""); /* nothing is aligned: it stays whole */
	m.row.unit = AP_OP_CUBE;
	step.micro_batches = 1;
	ap_space_make(&ctx, &m.b, 8, &step, &s);
	ck_assert_uint_eq(s.n, 1);
}
END_TEST
