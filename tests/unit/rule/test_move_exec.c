/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts against the meaning of operators: random operators are run as a whole and, for random legal
 * counts, part by part on the slices that the rule gives each part. Put together, with the parts of
 * results that lack a cut factor combined as the row says, both must be equal.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "move_exec.h"
#include "move_made.h"
#include "rule_fixture.h"

enum { ROUNDS = 150 };

static struct tensor *tensors(uint16_t n, const struct ap_operand *o)
{
	struct tensor *t = AP_NEW_N(ctx.arena, struct tensor, n);

	for (uint16_t i = 0; i < n; i++) {
		t[i].rank = o[i].rank;
		memcpy(t[i].size, o[i].size, sizeof t[i].size);
		t[i].v = AP_NEW_N(ctx.arena, int64_t, tensor_count(&t[i]));
	}
	return t;
}

static void no_inner_cuts(const struct ap_operand *o, uint16_t n, const struct ap_bound *b,
	int32_t *count)
{
	for (; n > 0; n--, o++)
		for (uint8_t d = 0; d < o->rank; d++)
			for (uint8_t k = 1; k < o->dim[d].n; k++) {
				uint8_t outer = o->dim[d].factor[k - 1];

				if (count[outer] < b->factor[outer].size)
					count[o->dim[d].factor[k]] = 1;
			}
}

/* Random counts; inner factors are cut only where outer ones are wholly. The number of parts. */
static int64_t draw_counts(struct made *m, const struct ap_bound *b, int32_t *count)
{
	int64_t parts = 1;

	for (uint8_t f = 0; f < b->nfactor; f++) {
		count[f] = b->factor[f].flags & AP_FACTOR_FROZEN ? 1
			: 1 + (int32_t)made_draw(m, (uint32_t)b->factor[f].size);
		if (b->factor[f].size % count[f] != 0)
			count[f] = 1;
	}
	for (uint8_t f = 0; f < b->nfactor; f++) {
		no_inner_cuts(b->in, b->nin, b, count);
		no_inner_cuts(b->out, b->nout, b, count);
	}
	for (uint8_t f = 0; f < b->nfactor; f++)
		parts *= count[f];
	return parts;
}

/* The slice of a tensor that a part holds: its place and extents. */
static void place(const struct ap_operand *o, const int32_t *count, const int64_t *part,
	struct tensor *slice)
{
	slice->rank = o->rank;
	for (uint8_t d = 0; d < o->rank; d++) {
		int64_t cuts = 1, at = 0;

		for (uint8_t k = 0; k < o->dim[d].n; k++) {
			cuts *= count[o->dim[d].factor[k]];
			at = at * count[o->dim[d].factor[k]] + part[o->dim[d].factor[k]];
		}
		ck_assert_int_eq(o->size[d] % cuts, 0);
		slice->size[d] = o->size[d] / cuts;
		slice->first[d] = at * slice->size[d];
	}
	slice->v = AP_NEW_N(ctx.arena, int64_t, tensor_count(slice));
}

/* Where element at of a slice is in the whole. */
static int64_t *in_whole(const struct tensor *whole, const struct tensor *slice, const int64_t *at)
{
	int64_t flat = 0;

	for (uint8_t d = 0; d < whole->rank; d++)
		flat = flat * whole->size[d] + slice->first[d] + at[d];
	return &whole->v[flat];
}

static void cut_out(const struct tensor *whole, struct tensor *slice)
{
	int64_t at[AP_MAX_RANK] = {0}, i = 0;

	do
		slice->v[i++] = *in_whole(whole, slice, at);
	while (tensor_next(slice, at));
}

static int64_t combine(enum ap_reduction how, int64_t a, int64_t b)
{
	return how == AP_REDUCE_MAX ? (a > b ? a : b) : how == AP_REDUCE_MIN ? (a < b ? a : b)
		: how == AP_REDUCE_PROD ? a * b % 10007 : a + b;
}

static void put_back(const struct tensor *slice, enum ap_reduction how, const struct tensor *whole,
	bool *seen)
{
	int64_t at[AP_MAX_RANK] = {0}, i = 0;

	do {
		int64_t *v = in_whole(whole, slice, at);

		*v = seen[v - whole->v] ? combine(how, *v, slice->v[i]) : slice->v[i];
		seen[v - whole->v] = true;
		i++;
	} while (tensor_next(slice, at));
}

static void run_part(const struct ap_bound *b, const struct job *whole, const int32_t *count,
	const int64_t *part, struct tensor *back, bool **seen)
{
	struct tensor in[MADE_OPERANDS] = {{0}}, out[MADE_OPERANDS] = {{0}};
	struct job j = *whole;

	for (uint16_t i = 0; i < b->nin; i++) {
		place(&b->in[i], count, part, &in[i]);
		cut_out(&whole->in[i], &in[i]);
	}
	for (uint16_t i = 0; i < j.nout; i++)
		place(&b->out[i], count, part, &out[i]);
	j.in = in;
	j.out = out;
	ck_assert(job_run(&j));
	for (uint16_t i = 0; i < j.nout; i++)
		put_back(&out[i], b->row->reduce, &back[i], seen[i]);
}

static bool next_part(const struct ap_bound *b, const int32_t *count, int64_t *part)
{
	for (uint8_t f = 0; f < b->nfactor; f++) {
		if (++part[f] < count[f])
			return true;
		part[f] = 0;
	}
	return false;
}

static void compare(const struct ap_bound *b, const struct job *whole, const int32_t *count)
{
	struct tensor *back = tensors(whole->nout, b->out);
	int64_t part[AP_MAX_FACTOR] = {0};
	bool *seen[MADE_OPERANDS];

	for (uint16_t i = 0; i < whole->nout; i++)
		seen[i] = AP_NEW_N(ctx.arena, bool, tensor_count(&back[i]));
	do
		run_part(b, whole, count, part, back, seen);
	while (next_part(b, count, part));
	for (uint16_t i = 0; i < whole->nout; i++)
		ck_assert_msg(memcmp(back[i].v, whole->out[i].v,
			(size_t)tensor_count(&back[i]) * sizeof(int64_t)) == 0,
			"result %d of %s: %s", i, whole->type, ap_rule_text(&ctx, b));
}

/* One random operator; true where it was cut. */
static bool one_round(struct made *m, const struct made_kind *kind)
{
	struct ap_bind_in want;
	int32_t count[AP_MAX_FACTOR];
	struct ap_bind_fault fault;
	struct tensor *in, *out;
	struct ap_bound b;
	int64_t parts;

	made_make(m, kind);
	want = (struct ap_bind_in){.type = m->type, .attrs = &m->attrs, .nin = m->nin,
		.nout = m->nout, .in = m->in};
	ck_assert_msg(ap_rule_bind(&ctx, &want, &b, &fault) == AP_OK, "%s: %s", m->type, fault.text);
	in = tensors(b.nin, b.in);
	out = tensors(m->nout, b.out);
	for (uint16_t i = 0; i < b.nin; i++)
		for (int64_t k = 0; k < tensor_count(&in[i]); k++)
			in[i].v[k] = made_draw(m, 100);
	ck_assert(job_run(&(struct job){m->type, &m->attrs, b.nin, m->nout, in, out}));
	parts = draw_counts(m, &b, count);
	if (parts == 1 || !ap_rule_legal(&b, count, parts, NULL))
		return false;
	compare(&b, &(struct job){m->type, &m->attrs, b.nin, m->nout, in, out}, count);
	return true;
}

START_TEST(parts_give_the_whole)
{
	const char *s = getenv("AP_SEED");
	struct made m = {.rng = s ? strtoull(s, NULL, 10) | 1 : 20261121};
	int cut = 0;

	if (_i == 0)
		printf("AP_SEED=%" PRIu64 "\n", m.rng);
	m.rng *= (uint64_t)_i + 1;
	for (int round = 0; round < ROUNDS; round++) {
		struct ap_mark mark = ap_arena_mark(ctx.arena);

		cut += one_round(&m, &made_kinds[_i]);
		ap_arena_release(ctx.arena, mark);
	}
	ck_assert_msg(cut > ROUNDS / 8, "%s was cut %d times", made_kinds[_i].type, cut);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("move_exec");
	TCase *t = tcase_create("move_exec");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, fixture_setup, fixture_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, parts_give_the_whole, 0, (int)made_nkind);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
