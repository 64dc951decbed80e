/* SPDX-License-Identifier: Apache-2.0 */
/* The ground: arithmetic, the tape, boxes, collectives and their adjoints on 2 x 3 ranks. */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "exec.h"
#include "harness.h"

#define NDEV 6

static struct ap_ctx ctx;
static uint64_t rng;

static void begin(void)
{
	ctx = (struct ap_ctx){
		.arena = ap_arena_create(0, NULL, NULL),
		.scratch = ap_arena_create(0, NULL, NULL),
		.jobs = 1,
	};
	rng = ex_seed("test_field");
}

static void end(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

TEST_FIXTURE(begin, end)

static uint64_t any(void)
{
	return ex_hash(ex_next(&rng), 0);
}

/* By doubling and adding, which needs no wide product. */
static uint64_t schoolbook(uint64_t a, uint64_t b)
{
	uint64_t r = 0;

	for (; b; b >>= 1, a = (a + a) % EX_P)
		if (b & 1)
			r = (r + a) % EX_P;
	return r;
}

START_TEST(products_are_those_of_schoolbook)
{
	static const uint64_t edge[] = {0, 1, 2, (UINT64_C(1) << 31) - 1, UINT64_C(1) << 31,
		(UINT64_C(1) << 31) + 1, EX_P / 2, EX_P - 2, EX_P - 1};
	int wrong = 0;

	for (size_t i = 0; i < AP_COUNT(edge); i++)
		for (size_t k = 0; k < AP_COUNT(edge); k++)
			wrong += ex_mul(edge[i], edge[k]) != schoolbook(edge[i], edge[k]);
	for (int i = 0; i < 20000; i++) {
		uint64_t a = any(), b = any();

		wrong += ex_mul(a, b) != schoolbook(a, b);
	}
	ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(field_has_inverses_and_signs)
{
	int wrong = 0;

	for (int i = 0; i < 500; i++) {
		uint64_t a = 1 + any() % (EX_P - 1), b = any();

		wrong += ex_mul(a, ex_inverse(a)) != 1;
		wrong += ex_add(ex_sub(b, a), a) != b;
		wrong += ex_of_int(ex_to_int(b)) != b;
	}
	ck_assert_int_eq(wrong, 0);
	ck_assert_uint_eq(ex_of_int(-3), EX_P - 3);
	ck_assert_uint_eq(ex_of_int(INT64_MIN), EX_P - 4);
	ck_assert_int_eq(ex_to_int(EX_P - 7), -7);
	ck_assert_uint_eq(ex_pow(3, 5), 243);
	ck_assert_uint_eq(ex_pow(2, 61), 1);
}
END_TEST

/* y = (a b + c) / b - 5 a; dy/da = 1 - 5, dy/db = -c / b^2, dy/dc = 1 / b; a used twice. */
START_TEST(tape_has_the_gradients_of_calculus)
{
	struct ex_tape t;
	ex_id a, b, c, y;

	ex_tape_init(&t, ctx.scratch);
	a = ex_leaf(&t, 6);
	b = ex_leaf(&t, 2);
	c = ex_leaf(&t, 8);
	y = ex_minus(&t, ex_over(&t, ex_mad(&t, c, a, b), b), ex_scale(&t, a, 5));
	ck_assert_int_eq(ex_to_int(ex_value_of(&t, y)), (6 * 2 + 8) / 2 - 30);
	ex_tape_begin_back(&t);
	ex_tape_seed(&t, y, 3);
	ex_tape_back(&t, 1, t.n);
	ck_assert_int_eq(ex_to_int(ex_tape_grad(&t, a)), 3 * (1 - 5));
	ck_assert_int_eq(ex_to_int(ex_tape_grad(&t, b)), 3 * -8 / 4);
	ck_assert_uint_eq(ex_tape_grad(&t, c), ex_mul(3, ex_inverse(2)));
	ck_assert(ex_less(&t, b, a) && !ex_less(&t, a, b));
	ck_assert_uint_eq(ex_value_of(&t, ex_over(&t, a, 0)), 0);
}
END_TEST

static uint64_t fn_at(uint64_t x, uint64_t y, bool two)
{
	struct ex_tape t;

	ex_tape_init(&t, ctx.scratch);
	return ex_value_of(&t, two ? ex_fn2(&t, "Atan2", ex_leaf(&t, x), ex_leaf(&t, y)) :
		ex_fn1(&t, "Tanh", ex_leaf(&t, x)));
}

/* Exact for polynomials of degree up to 4. */
static uint64_t slope(uint64_t x, uint64_t y, uint64_t dx, uint64_t dy, bool two)
{
	uint64_t at[5], twice;

	for (uint64_t i = 0; i < 5; i++) {
		uint64_t step = ex_sub(i, 2);

		at[i] = fn_at(ex_add(x, ex_mul(step, dx)), ex_add(y, ex_mul(step, dy)), two);
	}
	twice = ex_sub(ex_mul(8, ex_sub(at[3], at[1])), ex_sub(at[4], at[0]));
	return ex_mul(twice, ex_inverse(12));
}

START_TEST(functions_have_their_formal_derivatives)
{
	uint64_t x = any(), y = any();
	struct ex_tape t;
	ex_id a, b, f1, f2;

	ex_tape_init(&t, ctx.scratch);
	a = ex_leaf(&t, x);
	b = ex_leaf(&t, y);
	f1 = ex_fn1(&t, "Tanh", a);
	f2 = ex_fn2(&t, "Atan2", a, b);
	ex_tape_begin_back(&t);
	ex_tape_seed(&t, f1, 1);
	ex_tape_back(&t, 1, t.n);
	ck_assert_uint_eq(ex_tape_grad(&t, a), slope(x, y, 1, 0, false));
	ex_tape_begin_back(&t);
	ex_tape_seed(&t, f2, 1);
	ex_tape_back(&t, 1, t.n);
	ck_assert_uint_eq(ex_tape_grad(&t, a), slope(x, y, 1, 0, true));
	ck_assert_uint_eq(ex_tape_grad(&t, b), slope(x, y, 0, 1, true));
	ck_assert_uint_ne(fn_at(x, y, true), fn_at(y, x, true));
}
END_TEST

START_TEST(layouts_follow_dev_matrix_and_map)
{
	static const int64_t dev[] = {2, 1, 3, 4};
	static const int64_t axes[3][AP_MAX_DIM_FACTOR] = {{3}, {1, 0}, {3, 0}};
	static const uint8_t n[] = {1, 2, 2}, skip[] = {0, 1, 0};
	struct ap_layout l;

	ck_assert(ex_layout_of_map(4, dev, 2, n, axes, &l));
	ck_assert_int_eq(l.dim[0].cut, 2);
	ck_assert_int_eq(l.dim[0].stride, 12);
	ck_assert_int_eq(l.dim[1].cut, 12);
	ck_assert_int_eq(l.dim[1].stride, 1);
	ck_assert(!ex_layout_of_map(4, dev, 3, n, axes, &l));
	ck_assert(ex_layout_of_map(4, dev, 2, skip, axes, &l));
	ck_assert_int_eq(l.dim[0].cut, 1);
	ck_assert_int_eq(l.dim[1].cut, 3);
	ck_assert_int_eq(l.dim[1].stride, 4);
}
END_TEST

static struct ex_tensor random_tensor(uint8_t rank, const int64_t *size)
{
	struct ap_shape shape = {.rank = rank, .dtype = AP_FLOAT32};
	struct ex_box b;
	struct ex_tensor t;

	memcpy(shape.dim, size, rank * sizeof *size);
	b = ex_box_whole(&shape);
	t = ex_tensor_new(ctx.scratch, &b);
	for (int64_t i = 0; i < ex_count(&b); i++)
		t.v[i] = any();
	return t;
}

static struct ex_shards random_like(const struct ex_shards *s)
{
	struct ex_shards r = ex_like(ctx.scratch, s);

	for (int64_t d = 0; d < r.ndev; d++)
		for (int64_t i = 0; i < ex_count(&r.of[d].box); i++)
			r.of[d].v[i] = any();
	return r;
}

static uint64_t inner_product(const struct ex_shards *a, const struct ex_shards *b)
{
	uint64_t sum = 0;

	for (int64_t d = 0; d < a->ndev; d++) {
		ck_assert_int_eq(ex_count(&a->of[d].box), ex_count(&b->of[d].box));
		for (int64_t i = 0; i < ex_count(&a->of[d].box); i++)
			sum = ex_add(sum, ex_mul(a->of[d].v[i], b->of[d].v[i]));
	}
	return sum;
}

/* Rows by the ranks' first digit (stride 3), columns by the second. */
static const struct ap_layout cut_both = {2, {{2, 3}, {3, 1}}};
static const struct ap_axes axes_of[] = {{0}, {1, {{3, 2}}}, {1, {{1, 3}}}, {1, {{1, 6}}}};

START_TEST(slices_are_put_together_and_dealt)
{
	static const int64_t size[] = {4, 6};
	static const struct ap_layout rows = {2, {{2, 3}, {1, 0}}};
	struct ex_world w = {.ctx = &ctx, .ndev = NDEV};
	struct ex_tensor x = random_tensor(2, size);
	struct ex_shards s = ex_cut(ctx.scratch, &x, &cut_both, NDEV), dealt;

	ck_assert_int_eq(s.of[4].box.first[0], 2);
	ck_assert_int_eq(s.of[4].box.first[1], 2);
	ck_assert_uint_eq(s.of[4].v[1], x.v[2 * 6 + 3]);
	ex_all_gather(&w, &axes_of[2], 1, &s);
	ck_assert_ptr_null(ex_differs(&ctx, &s, &x, &rows, EX_EVERY));
	ck_assert_ptr_nonnull(ex_differs(&ctx, &s, &x, &rows, EX_SUM));
	dealt = ex_deal_partial(ctx.scratch, &x, &rows, NDEV, &rng);
	ck_assert_ptr_nonnull(ex_differs(&ctx, &dealt, &x, &rows, EX_EVERY));
	ck_assert_ptr_null(ex_differs(&ctx, &dealt, &x, &rows, EX_SUM));
	ex_all_reduce(&w, &axes_of[2], AP_REDUCE_SUM, &dealt);
	ck_assert_ptr_null(ex_differs(&ctx, &dealt, &x, &rows, EX_EVERY));
	s.of[3].v[7] = ex_add(s.of[3].v[7], 1);
	ck_assert_ptr_nonnull(strstr(ex_differs(&ctx, &s, &x, &rows, EX_EVERY),
		"rank 3, element [1, 1]: "));
	ck_assert_uint_eq(w.ncollective, 2);
	ck_assert_uint_eq(w.bytes, 2 * 6 * 12 * 4);
	ck_assert_ptr_null(w.trouble);
}
END_TEST

START_TEST(reductions_are_those_of_the_group)
{
	static const int64_t size[] = {1};
	static const struct ap_layout whole = {1, {{1, 0}}};
	static const struct {
		enum ap_reduction how;
		uint64_t want[NDEV];
	} row[] = {
		{AP_REDUCE_SUM, {7 + 2, 1 + 9, 5 + 4, 7 + 2, 1 + 9, 5 + 4}},
		{AP_REDUCE_MEAN, {7 + 2, 1 + 9, 5 + 4, 7 + 2, 1 + 9, 5 + 4}},
		{AP_REDUCE_MAX, {7, 9, 5, 7, 9, 5}},
		{AP_REDUCE_MIN, {2, 1, 4, 2, 1, 4}},
		{AP_REDUCE_PROD, {14, 9, 20, 14, 9, 20}},
	};
	static const uint64_t v[NDEV] = {7, 1, 5, 2, 9, 4};
	struct ex_world w = {.ctx = &ctx, .ndev = NDEV};
	struct ex_tensor x = random_tensor(1, size);

	for (size_t k = 0; k < AP_COUNT(row); k++) {
		struct ex_shards s = ex_cut(ctx.scratch, &x, &whole, NDEV);

		for (int r = 0; r < NDEV; r++)
			s.of[r].v[0] = v[r];
		ex_all_reduce(&w, &axes_of[1], row[k].how, &s);
		for (int r = 0; r < NDEV; r++)
			ck_assert_uint_eq(s.of[r].v[0], row[k].want[r]);
	}
}
END_TEST

static void run(struct ex_world *w, int what, const struct ap_axes *axes, int dim, struct ex_shards *s)
{
	if (what == 0)
		ex_all_reduce(w, axes, AP_REDUCE_SUM, s);
	else if (what == 1)
		ex_all_gather(w, axes, dim, s);
	else
		ex_reduce_scatter(w, axes, dim, s);
}

/* <g, collective(x)> = <adjoint(g), x> */
START_TEST(adjoints_are_adjoint)
{
	static const int64_t size[] = {12, 36};
	static const int adjoint[] = {0, 2, 1};
	struct ex_world w = {.ctx = &ctx, .ndev = NDEV};
	struct ex_tensor whole = random_tensor(2, size);

	for (int k = 0; k < 4 * 2 * 3; k++) {
		const struct ap_axes *axes = &axes_of[k / 6];
		int what = k % 3, dim = k / 3 % 2;
		struct ex_shards shape = ex_cut(ctx.scratch, &whole, &cut_both, NDEV);
		struct ex_shards x = random_like(&shape), y = x, g, back;

		run(&w, what, axes, dim, &y);
		g = random_like(&y);
		back = g;
		run(&w, adjoint[what], axes, dim, &back);
		ck_assert_uint_eq(inner_product(&g, &y), inner_product(&back, &x));
	}
	ck_assert_ptr_null(w.trouble);
}
END_TEST

/* Rows, then columns with the corners that the rows brought; back in the other order. */
START_TEST(neighbours_exchange_rows_and_corners)
{
	static const int64_t size[] = {4, 12}, up[NDEV] = {0, 0, 0, 2, 2, 2}, down[NDEV] = {1, 1, 1},
		left[NDEV] = {0, 1, 3, 0, 1, 3}, right[NDEV] = {2, 0, 0, 2, 0, 0};
	struct ex_world w = {.ctx = &ctx, .ndev = NDEV};
	struct ex_tensor whole = random_tensor(2, size);
	struct ex_shards x = ex_cut(ctx.scratch, &whole, &cut_both, NDEV), y = x, g, back;

	/* the lower ranks get two rows of four */
	ck_assert_int_eq(ex_exchange(&w, &axes_of[1], 0, up, down, &y), 2 * 4);
	/* and of four rows by now, the one in the middle gives two columns to the left, three to the right */
	ck_assert_int_eq(ex_exchange(&w, &axes_of[2], 1, left, right, &y), 5 * 4);
	ck_assert_int_eq(y.of[5].box.size[0], 4);
	ck_assert_int_eq(y.of[5].box.size[1], 7);
	ck_assert_int_eq(y.of[5].box.first[0], 0);
	ck_assert_int_eq(y.of[5].box.first[1], 5);
	for (int64_t r = 0; r < NDEV; r++) {
		struct ex_tensor want = ex_tensor_new(ctx.scratch, &y.of[r].box);

		ex_cut_out(&whole, &want);
		ck_assert_mem_eq(want.v, y.of[r].v,
			(size_t)ex_count(&want.box) * sizeof *want.v);
	}
	g = random_like(&y);
	back = g;
	ck_assert_int_eq(ex_exchange_back(&w, &axes_of[2], 1, left, right, &back), 5 * 4);
	ck_assert_int_eq(ex_exchange_back(&w, &axes_of[1], 0, up, down, &back), 2 * 4);
	ck_assert_uint_eq(inner_product(&g, &y), inner_product(&back, &x));
	ck_assert_ptr_null(w.trouble);
	x = ex_cut(ctx.scratch, &whole, &cut_both, NDEV);
	ex_exchange(&w, &axes_of[2], 1, (int64_t[NDEV]){0, 5, 0, 0, 5, 0}, right, &x);
	ck_assert_ptr_nonnull(w.trouble);
}
END_TEST

START_TEST(bytes_and_groups_are_checked)
{
	struct ap_comm c = {.phase = AP_PHASE_GRADIENT, .kind = AP_COLL_ALLREDUCE, .bytes = 40,
		.operand = 1, .result = -1};
	struct ex_world w = {.ctx = &ctx, .ndev = 4, .gradient_fp32_sync = true};
	int64_t ranks[EX_MAX_DEV];

	ex_check_bytes(&w, &c, 10, AP_FLOAT32);
	ex_check_bytes(&w, &c, 10, AP_BFLOAT16);
	ck_assert_ptr_null(w.trouble);
	w.gradient_fp32_sync = false;
	ex_check_bytes(&w, &c, 20, AP_BFLOAT16);
	ck_assert_ptr_null(w.trouble);
	ex_check_bytes(&w, &c, 20, AP_FLOAT32);
	ck_assert_str_eq(w.trouble,
		"AllReduce of operand 1: 40 bytes are charged, 80 are sent");
	w.trouble = NULL;
	ck_assert_int_eq(ex_group(&w, &axes_of[1], 0, ranks), 2);
	ck_assert_int_eq(ranks[1], 3);
	ck_assert_int_eq(ex_group(&w, &axes_of[1], 2, ranks), 2);
	ck_assert_str_eq(w.trouble, "rank 5 in a group on 4 ranks");
	w.trouble = NULL;
	ex_group(&w, &axes_of[3], 0, ranks);
	ck_assert_str_eq(w.trouble, "a group of 6 on 4 ranks");
}
END_TEST
