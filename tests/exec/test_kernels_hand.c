/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels against numbers worked out by hand: results, and gradients for dY = 1, 2, 3, .. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "kernel.h"

/* Tensors are "[2,3] 1 2 3 4 5 6", joined by ";"; numbers may be negative or fractions. */
struct pinned {
	const char *type, *attrs, *in, *out, *grad;
};

static const struct pinned pinned[] = {
	{"MatMul", "", "[2,3] 1 2 3 4 5 6; [3,2] 1 0 2 1 0 3", "[2,2] 5 11 14 23",
		"[2,3] 1 4 6 3 10 12; [3,2] 13 18 17 24 21 30"},
	{"MatMul", "transpose_a=1", "[3,2] 1 4 2 5 3 6; [3,2] 1 0 2 1 0 3", "[2,2] 5 11 14 23",
		"[3,2] 1 3 4 10 6 12; [3,2] 13 18 17 24 21 30"},
	{"MatMul", "transpose_b=1", "[2,3] 1 2 3 4 5 6; [2,3] 1 2 0 0 1 3", "[2,2] 5 11 14 23",
		"[2,3] 1 4 6 3 10 12; [2,3] 13 17 21 18 24 30"},
	{"MatMul", "transpose_a=1 transpose_b=1", "[3,2] 1 4 2 5 3 6; [2,3] 1 2 0 0 1 3",
		"[2,2] 5 11 14 23", "[3,2] 1 3 4 10 6 12; [2,3] 13 17 21 18 24 30"},
	{"BatchMatMul", "", "[2,1,2] 1 2 3 4; [1,2,1] 5 6", "[2,1,1] 17 39",
		"[2,1,2] 5 6 10 12; [1,2,1] 7 10"},
	{"BatchMatMul", "transpose_b=1", "[2,1,2] 1 2 3 4; [1,2] 5 6", "[2,1,1] 17 39",
		"[2,1,2] 5 6 10 12; [1,2] 7 10"},
	{"Add", "", "[2,2] 1 2 3 4; [2] 10 20", "[2,2] 11 22 13 24", "[2,2] 1 2 3 4; [2] 4 6"},
	{"SubExt", "alpha=3", "[2] 1 2; [2] 10 20", "[2] -29 -58", "[2] 1 2; [2] -3 -6"},
	{"Mul", "", "[2,1] 2 3; [1,2] 5 7", "[2,2] 10 14 15 21", "[2,1] 19 43; [1,2] 11 16"},
	{"Div", "", "[2] 6 5; [2] 3 2", "[2] 2 5/2", "[2] 1/3 1; [2] -2/3 -5/2"},
	{"RealDiv", "", "[1] 1; [1] 4", "[1] 1/4", "[1] 1/4; [1] -1/16"},
	{"DivNoNan", "", "[2] 6 5; [2] 3 0", "[2] 2 0", "[2] 1/3 0; [2] -2/3 0"},
	{"Xdivy", "", "[2] 0 5; [2] 3 2", "[2] 0 5/2", "[2] 1/3 1; [2] 0 -5/2"},
	{"Reciprocal", "", "[2] 4 -2", "[2] 1/4 -1/2", "[2] -1/16 -1/2"},
	{"Inv", "", "[1] 4", "[1] 1/4", "[1] -1/16"},
	{"Neg", "", "[2] 4 -2", "[2] -4 2", "[2] -1 -2"},
	{"Square", "", "[2] 4 -3", "[2] 16 9", "[2] 8 -12"},
	{"SquaredDifference", "", "[2] 4 1; [] 3", "[2] 1 4", "[2] 2 -8; [] 6"},
	{"Maximum", "", "[3] 4 1 2; [1] 3", "[3] 4 3 3", "[3] 1 0 0; [1] 5"},
	{"Minimum", "", "[3] 4 1 2; [1] 3", "[3] 3 1 2", "[3] 0 2 3; [1] 1"},
	{"AddN", "", "[2] 1 2; [2] 3 4; [2] 5 6", "[2] 9 12", "[2] 1 2; [2] 1 2; [2] 1 2"},
	{"Select", "", "[2] 1 0; [2] 3 4; [2] 5 6", "[2] 3 6", "[2] 0 0; [2] 1 0; [2] 0 2"},
	{"MaskedFill", "", "[2] 1 2; [2] 0 1; [] 9", "[2] 1 9", "[2] 1 0; [2] 0 0; [] 2"},
	{"Lerp", "", "[2] 1 2; [2] 5 4; [] 3", "[2] 13 8", "[2] -2 -4; [2] 3 6; [] 8"},
	{"BiasAdd", "data_format=NCHW", "[1,2,2] 1 2 3 4; [2] 10 20", "[1,2,2] 11 12 23 24",
		"[1,2,2] 1 2 3 4; [2] 3 7"},
	{"BiasAdd", "data_format=NHWC", "[1,2,2] 1 2 3 4; [2] 10 20", "[1,2,2] 11 22 13 24",
		"[1,2,2] 1 2 3 4; [2] 4 6"},
	{"LessEqual", "", "[3] 1 2 3; [] 2", "[3] 1 1 0", "[3] 0 0 0; [] 0"},
	{"LogicalNot", "", "[2] 1 0", "[2] 0 1", "[2] 0 0"},
	{"AssignSub", "", "[2] 9 8; [2] 1 2", "[2] 8 6", "[2] 0 0; [2] 0 0"},

	{"ReduceSum", "axis=[-1]", "[2,2] 1 2 3 4", "[2] 3 7", "[2,2] 1 1 2 2"},
	{"ReduceSum", "axis=[] skip_mode=1", "[2] 1 2", "[2] 1 2", "[2] 1 2"},
	{"ReduceMean", "axis=[0] keep_dims=1", "[2,2] 1 2 3 4", "[1,2] 2 3",
		"[2,2] 1/2 1 1/2 1"},
	{"ReduceMean", "", "[2,2] 1 2 3 4", "[] 5/2", "[2,2] 1/4 1/4 1/4 1/4"},
	{"ReduceMax", "axis=[1]", "[2,2] 1 2 4 3", "[2] 2 4", "[2,2] 0 1 2 0"},
	{"ReduceMin", "axis=[0]", "[2,2] 1 2 4 3", "[2] 1 2", "[2,2] 1 2 0 0"},
	{"ReduceProd", "axis=[0,1]", "[2,2] 1 2 4 3", "[] 24", "[2,2] 24 12 6 8"},
	{"ReduceAll", "axis=[1]", "[2,2] 1 0 1 1", "[2] 0 1", ""},
	{"ReduceAny", "axis=[1]", "[2,2] 1 0 0 0", "[2] 1 0", ""},
	{"MeanExt", "dim=[1] keepdim=1", "[1,2] 4 8", "[1,1] 6", "[1,2] 1/2 1/2"},
	{"L2Loss", "", "[3] 1 2 4", "[] 21/2", "[3] 1 2 4"},
	{"SquareSumAll", "", "[2] 1 2; [2] 3 4", "[] 5; [] 25", "[2] 2 4; [2] 6 8"},
	{"ArgMaxWithValue", "axis=[1]", "[2,3] 1 5 5 7 2 3", "[2] 1 0; [2] 5 7",
		"[2,3] 0 1 0 2 0 0"},
	{"ArgMinWithValue", "keep_dims=1", "[2,2] 1 5 0 7", "[1,2] 1 0; [1,2] 0 5",
		"[2,2] 0 2 1 0"},
	{"Argmax", "", "[2,2] 1 5 9 7", "[2] 1 0", "[2,2] 0 0 0 0"},
	{"Argmin", "axis=[0]", "[2,2] 1 5 9 4", "[2] 0 1", "[2,2] 0 0 0 0"},

	{"CumSum", "axis=[0]", "[3] 1 2 3", "[3] 1 3 6", "[3] 6 5 3"},
	{"CumSum", "axis=[0] exclusive=1", "[3] 1 2 3", "[3] 0 1 3", "[3] 5 3 0"},
	{"CumSum", "axis=[-1] reverse=1", "[3] 1 2 3", "[3] 6 5 3", "[3] 1 3 6"},
	{"CumSum", "axis=[0] exclusive=1 reverse=1", "[3] 1 2 3", "[3] 5 3 0", "[3] 0 1 3"},
	{"CumProd", "axis=[0]", "[3] 2 3 4", "[3] 2 6 24", "[3] 43 28 18"},
	{"CumProd", "axis=[0] exclusive=1", "[3] 2 3 4", "[3] 1 2 6", "[3] 11 6 0"},
	{"Cummax", "axis=[0]", "[4] 2 5 3 5", "[4] 2 5 5 5; [4] 0 1 1 3", "[4] 1 5 0 4"},
	{"Cummin", "axis=[0]", "[3] 4 5 3", "[3] 4 4 3; [3] 0 0 2", "[3] 3 0 3"},
	{"Sort", "", "[4] 3 1 2 1", "[4] 1 1 2 3; [4] 1 3 2 0", "[4] 4 1 3 2"},
	{"Sort", "axis=[0] descending=1", "[3] 3 1 5", "[3] 5 3 1; [3] 2 0 1", "[3] 2 3 1"},

	{"Concat", "axis=[1]", "[2,1] 1 2; [2,2] 3 4 5 6", "[2,3] 1 3 4 2 5 6",
		"[2,1] 1 4; [2,2] 2 3 5 6"},
	{"Stack", "axis=[-1]", "[2] 1 2; [2] 3 4", "[2,2] 1 3 2 4", "[2] 1 3; [2] 2 4"},
	{"Split", "axis=[1] output_num=2", "[2,2] 1 2 3 4", "[2,1] 1 3; [2,1] 2 4",
		"[2,2] 1 1 2 2"},
	{"SplitV", "size_splits=[1,-1] split_dim=0", "[3] 1 2 3", "[1] 1; [2] 2 3",
		"[3] 1 1 2"},
	{"SplitTensor", "split_size=2", "[3] 1 2 3", "[2] 1 2; [1] 3", "[3] 1 2 1"},
	{"Transpose", "perm=[2,0,1]", "[1,2,3] 1 2 3 4 5 6", "[3,1,2] 1 4 2 5 3 6",
		"[1,2,3] 1 3 5 2 4 6"},
	{"Reshape", "shape=[3,-1]", "[2,3] 1 2 3 4 5 6", "[3,2] 1 2 3 4 5 6",
		"[2,3] 1 2 3 4 5 6"},
	{"Flatten", "", "[1,2,2] 1 2 3 4", "[1,4] 1 2 3 4", "[1,2,2] 1 2 3 4"},
	{"ExpandDims", "axis=[0]", "[2] 1 2", "[1,2] 1 2", "[2] 1 2"},
	{"Squeeze", "axis=[0]", "[1,2] 1 2", "[2] 1 2", "[1,2] 1 2"},
	{"BroadcastTo", "shape=[2,-1,2]", "[2,1] 1 2", "[2,2,2] 1 1 2 2 1 1 2 2",
		"[2,1] 14 22"},
	{"Tile", "multiples=[2,2]", "[2] 1 2", "[2,4] 1 2 1 2 1 2 1 2", "[2] 16 20"},
	{"RepeatElements", "rep=2 axis=[0]", "[2] 1 2", "[4] 1 1 2 2", "[2] 3 7"},
	{"ReverseV2", "axis=[-1]", "[2,2] 1 2 3 4", "[2,2] 2 1 4 3", "[2,2] 2 1 4 3"},
	{"Slice", "begin=[0,1] size=[2,-1]", "[2,3] 1 2 3 4 5 6", "[2,2] 2 3 5 6",
		"[2,3] 0 1 2 0 3 4"},
	{"StridedSlice", "begin=[-1] end=[0] strides=[-2]", "[5] 1 2 3 4 5", "[2] 5 3",
		"[5] 0 0 2 0 1"},
	{"StridedSlice", "begin=[0,0,1] end=[0,0,2] strides=[1,1,1] ellipsis_mask=1 "
		"new_axis_mask=2 shrink_axis_mask=4", "[2,2] 1 2 3 4", "[2,1] 2 4",
		"[2,2] 0 1 0 2"},
	{"StridedSlice", "begin=[3] end=[1] begin_mask=1", "[3] 1 2 3", "[1] 1", "[3] 1 0 0"},
};

static struct ap_ctx ctx;

static void begin(void)
{
	ctx = (struct ap_ctx){
		.arena = ap_arena_create(0, NULL, NULL),
		.scratch = ap_arena_create(0, NULL, NULL),
		.jobs = 1,
	};
	ctx.diag = ap_diag_create(ctx.arena, false);
}

static void end(void)
{
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
}

static int64_t read_int(const char **p)
{
	char *rest;
	int64_t v = strtoll(*p, &rest, 10);

	ck_assert_ptr_ne(rest, *p);
	*p = rest;
	return v;
}

/* "[2,3]" to a list. */
static uint32_t read_list(const char **p, int64_t *v)
{
	uint32_t n = 0;

	ck_assert_int_eq(**p, '[');
	for (++*p; **p != ']'; *p += **p == ',')
		v[n++] = read_int(p);
	++*p;
	return n;
}

static uint64_t read_number(const char **p)
{
	uint64_t v = ex_of_int(read_int(p));

	if (**p != '/')
		return v;
	++*p;
	return ex_mul(v, ex_inverse(ex_of_int(read_int(p))));
}

static uint16_t read_tensors(const char *p, struct ex_tensor *t)
{
	uint16_t n = 0;

	for (; *p; p += strspn(p, "; ")) {
		struct ap_shape s = {.dtype = AP_FLOAT32};

		s.rank = (uint8_t)read_list(&p, s.dim);
		t[n] = (struct ex_tensor){.box = ex_box_whole(&s)};
		t[n] = ex_tensor_new(ctx.arena, &t[n].box);
		for (int64_t k = 0; k < ex_count(&t[n].box); k++)
			t[n].v[k] = read_number(&p);
		n++;
	}
	return n;
}

/* "name=number", "name=[list]" or "name=word", joined by blanks. */
static void read_attrs(const char *p, struct ex_sample *s)
{
	for (; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, "=");
		const char *name = ap_arena_strndup(ctx.arena, p, n);
		int64_t v[2 * AP_MAX_RANK];

		p += n + 1;
		n = strcspn(p, " ");
		if (*p == '[') {
			uint32_t count = read_list(&p, v);

			ex_add_list(s, name, count, v);
		} else if (strspn(p, "-0123456789") == n) {
			ex_add_int(s, name, read_int(&p));
		} else {
			ex_add_text(s, name, ap_arena_strndup(ctx.arena, p, n));
			p += n;
		}
	}
}

static struct ex_value on_tape(struct ex_tape *tape, const struct ex_tensor *t)
{
	struct ex_value v = {t->box, AP_NEW_N(ctx.arena, ex_id, ex_count(&t->box))};

	for (int64_t k = 0; k < ex_count(&t->box); k++)
		v.id[k] = ex_leaf(tape, t->v[k]);
	return v;
}

static void check(const struct pinned *c, const char *what, unsigned i, int64_t k, uint64_t got,
	uint64_t want)
{
	if (got != want)
		ck_abort_msg("%s %s of %s: %s %u, element %d: %lld, want %lld", c->type, c->attrs,
			c->in, what, i, (int)k, (long long)ex_to_int(got),
			(long long)ex_to_int(want));
}

START_TEST(numbers_are_as_worked_out)
{
	const struct pinned *c = &pinned[_i];
	const struct ex_kernel *k = ex_kernel_find(c->type);
	struct ex_tensor x[4], y[4], dx[4];
	struct ex_value in[4], out[4];
	struct ex_tape tape;
	struct ex_sample s;
	struct ex_job j = {.tape = &tape, .arena = ctx.arena, .type = c->type, .attrs = &s.attrs,
		.slot = s.slot, .in = in, .out = out, .share = 1};
	uint16_t n;

	ck_assert_msg(k, "%s", c->type);
	ex_sample_begin(&s, c->type, 1);
	read_attrs(c->attrs, &s);
	ex_tape_init(&tape, ctx.arena);
	j.nin = read_tensors(c->in, x);
	for (uint8_t i = 0; i < j.nin; i++) {
		in[i] = on_tape(&tape, &x[i]);
		s.slot[i] = i;
	}
	j.nout = read_tensors(c->out, y);
	for (int i = 0; i < j.nout; i++)
		out[i] = (struct ex_value){y[i].box,
			AP_NEW_N(ctx.arena, ex_id, ex_count(&y[i].box))};
	ck_assert_msg(k->forward(&j), "%s %s", c->type, c->attrs);
	ex_tape_begin_back(&tape);
	for (unsigned i = 0; i < j.nout; i++)
		for (int64_t e = 0; e < ex_count(&y[i].box); e++) {
			check(c, "result", i, e, ex_value_of(&tape, out[i].id[e]), y[i].v[e]);
			ex_tape_seed(&tape, out[i].id[e], (uint64_t)e + 1);
		}
	ex_tape_back(&tape, 1, tape.n);
	n = read_tensors(c->grad, dx);
	for (unsigned i = 0; i < n; i++)
		for (int64_t e = 0; e < ex_count(&dx[i].box); e++)
			check(c, "gradient", i, e, ex_tape_grad(&tape, in[i].id[e]), dx[i].v[e]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kernels_hand");
	TCase *t = tcase_create("kernels_hand");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, begin, end);
	tcase_add_loop_test(t, numbers_are_as_worked_out, 0, sizeof pinned / sizeof *pinned);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
