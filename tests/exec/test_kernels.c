/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of elements, products, reductions and movement on random operators: samples bind, results
 * have the inferred extents and are filled, and the tape's gradient is the true one: along a random
 * direction the weighted sum of the results is a polynomial, whose derivative follows exactly from
 * its values.
 */
#include "base/vec.h"
#include "rule/bind.h"
#include "kernel.h"
#include "unit.h"

static const struct ex_kernel *const families[] = {
	ex_kernels_elem, ex_kernels_binary, ex_kernels_product, ex_kernels_reduce,
	ex_kernels_running, ex_kernels_move, ex_kernels_slice, ex_kernels_whole,
	ex_kernels_fill,
};

struct trial {
	const struct ex_kernel *kernel;
	struct ex_sample sample;
	struct ap_bound bound;
	uint64_t *x[EX_MAX_IN], *direction[EX_MAX_IN], *weight[EX_MAX_OUT];
	uint16_t nout;
};

static struct ap_ctx ctx;

static void begin(void)
{
	ctx = ctx_create(false);
}

static void end(void)
{
	ctx_destroy(&ctx);
}
TEST_FIXTURE(begin, end)

static const char *bind(struct trial *t)
{
	struct ex_sample *s = &t->sample;
	struct ap_bind_in in = {s->type, &s->attrs, s->nin, s->nout, s->in, s->slot, s->declared};
	struct ap_bind_fault fault;

	if (ap_rule_bind(&ctx, &in, &t->bound, &fault) != AP_OK)
		return fault.text;
	t->nout = s->nout ? s->nout : 1;
	return NULL;
}

static int64_t elements(const struct ap_operand *o)
{
	int64_t n = 1;

	for (int d = 0; d < o->rank; d++)
		n *= o->size[d];
	return n;
}

static uint64_t value(struct trial *t, unsigned i)
{
	uint64_t v = ex_next(&t->sample.rng);

	switch (t->sample.draw[i]) {
	case EX_DRAW_SMALL:
		return v >> 61;
	case EX_DRAW_BOOL:
		return v >> 63;
	default:
		return 1 + ex_hash(v, 0) % (EX_P - 1);
	}
}

static bool moves(const struct trial *t, unsigned i)
{
	return ap_dtype_is_float(t->bound.in[i].dtype) &&
		!(t->kernel->no_grad >> t->sample.slot[i] & 1);
}

/* Numbers so far apart that steps along the direction do not change their order. */
static void spread(struct trial *t, unsigned i, uint64_t *n)
{
	for (int64_t k = 0; k < elements(&t->bound.in[i]); k++) {
		t->x[i][k] = (1 + (*n * 7919 + 5) % 10007) << 40;
		t->direction[i][k] >>= 41;
		++*n;
	}
}

static void draw(struct trial *t)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < t->bound.nin; i++) {
		int64_t count = elements(&t->bound.in[i]);

		t->x[i] = AP_NEW_N(ctx.scratch, uint64_t, count);
		t->direction[i] = AP_NEW_N(ctx.scratch, uint64_t, count);
		for (int64_t k = 0; k < count; k++) {
			t->x[i][k] = value(t, i);
			t->direction[i][k] = moves(t, i) ? ex_next(&t->sample.rng) >> 4 : 0;
		}
		if (t->kernel->ordered)
			spread(t, i, &n);
	}
	for (unsigned r = 0; r < t->nout; r++) {
		t->weight[r] = AP_NEW_N(ctx.scratch, uint64_t, elements(&t->bound.out[r]));
		for (int64_t k = 0; k < elements(&t->bound.out[r]) &&
			ap_dtype_is_float(t->bound.out[r].dtype); k++)
			t->weight[r][k] = ex_next(&t->sample.rng) >> 4;
	}
}

static struct ex_value tensor(const struct ap_operand *o)
{
	struct ap_shape s = {.rank = o->rank, .dtype = o->dtype};
	struct ex_value v;

	memcpy(s.dim, o->size, sizeof s.dim);
	v.box = ex_box_whole(&s);
	v.id = AP_NEW_N(ctx.scratch, ex_id, ex_count(&v.box));
	memset(v.id, 0xff, (size_t)ex_count(&v.box) * sizeof *v.id);
	return v;
}

/* The kernel at x + step direction; false where it refuses, or leaves a result unfilled. */
static bool run(const struct trial *t, uint64_t step, struct ex_tape *tape, struct ex_value *in,
	struct ex_value *out)
{
	struct ex_job j = {.tape = tape, .arena = ctx.scratch, .type = t->sample.type,
		.attrs = &t->sample.attrs, .nin = t->bound.nin, .nout = t->nout,
		.slot = t->sample.slot, .in = in, .out = out, .share = 1};
	bool filled = true;

	ex_tape_init(tape, ctx.scratch);
	for (unsigned i = 0; i < j.nin; i++) {
		in[i] = tensor(&t->bound.in[i]);
		for (int64_t k = 0; k < ex_count(&in[i].box); k++)
			in[i].id[k] = ex_leaf(tape, ex_add(t->x[i][k],
				ex_mul(step, t->direction[i][k])));
	}
	for (unsigned r = 0; r < j.nout; r++)
		out[r] = tensor(&t->bound.out[r]);
	if (!t->kernel->forward(&j))
		return false;
	for (unsigned r = 0; r < j.nout; r++)
		for (int64_t k = 0; k < ex_count(&out[r].box); k++)
			filled &= out[r].id[k] < tape->n;
	return filled;
}

/* The weighted sum of results at x + step direction. */
static uint64_t weighted(const struct trial *t, uint64_t step)
{
	struct ap_mark mark = ap_arena_mark(ctx.scratch);
	struct ex_value in[EX_MAX_IN], out[EX_MAX_OUT];
	struct ex_tape tape;
	uint64_t sum = 0;

	if (run(t, step, &tape, in, out))
		for (unsigned r = 0; r < t->nout; r++)
			for (int64_t k = 0; k < ex_count(&out[r].box); k++)
				sum = ex_add(sum, ex_mul(t->weight[r][k],
					ex_value_of(&tape, out[r].id[k])));
	ap_arena_release(ctx.scratch, mark);
	return sum;
}

/* Its derivative at x by the tape. */
static uint64_t by_tape(const struct trial *t)
{
	struct ex_value in[EX_MAX_IN], out[EX_MAX_OUT];
	struct ex_tape tape;
	uint64_t sum = 0;

	if (!run(t, 0, &tape, in, out))
		return 0;
	ex_tape_begin_back(&tape);
	for (unsigned r = 0; r < t->nout; r++)
		for (int64_t k = 0; k < ex_count(&out[r].box); k++)
			ex_tape_seed(&tape, out[r].id[k], t->weight[r][k]);
	ex_tape_back(&tape, 1, tape.n);
	for (unsigned i = 0; i < t->bound.nin; i++)
		for (int64_t k = 0; k < ex_count(&in[i].box); k++)
			sum = ex_add(sum, ex_mul(t->direction[i][k],
				ex_tape_grad(&tape, in[i].id[k])));
	return sum;
}

/* Of a polynomial of at most this degree, from its values at 0, 1, ..: by forward differences D,
 * f' = D f - D^2 f / 2 + D^3 f / 3 - .. */
static uint64_t by_differences(const struct trial *t, int degree)
{
	uint64_t *f = AP_NEW_N(ctx.scratch, uint64_t, degree + 1), sum = 0;

	for (int i = 0; i <= degree; i++)
		f[i] = weighted(t, (uint64_t)i);
	for (int n = 1; n <= degree; n++) {
		uint64_t term;

		for (int i = 0; i <= degree - n; i++)
			f[i] = ex_sub(f[i + 1], f[i]);
		term = ex_mul(f[0], ex_inverse((uint64_t)n));
		sum = n % 2 ? ex_add(sum, term) : ex_sub(sum, term);
	}
	return sum;
}

/* Of the sum along a line; -1 where it is no polynomial. */
static int degree_of(const struct trial *t)
{
	static const char *const quotients[] = {"Div", "RealDiv", "DivNoNan", "Xdivy",
		"Reciprocal", "Inv", "DivMod", "SolveTriangular"};

	for (size_t i = 0; i < AP_COUNT(quotients); i++)
		if (strcmp(t->sample.type, quotients[i]) == 0)
			return -1;
	if (strstr(t->sample.type, "Prod"))
		return (int)elements(&t->bound.in[0]) + 1;
	return 6;
}

static const char *one(struct trial *t)
{
	struct ex_value in[EX_MAX_IN], out[EX_MAX_OUT];
	struct ex_tape tape;
	const char *why = bind(t);

	if (why)
		return why;
	draw(t);
	if (!run(t, 0, &tape, in, out))
		return "the kernel refuses or leaves results unfilled";
	if (tape.n > 40000)
		return "too large";
	if (degree_of(t) >= 0 && by_tape(t) != by_differences(t, degree_of(t)))
		return "another gradient";
	return NULL;
}

START_LOOP_TEST(gradients_are_those_of_the_results, AP_COUNT(families))
{
	uint64_t seed = ex_seed("test_kernels"), samples = ex_cases(30);

	for (const struct ex_kernel *k = families[_i]; k->type; k++)
		for (uint64_t i = 0; i < samples; i++) {
			struct ap_mark mark = ap_arena_mark(ctx.scratch);
			struct trial t = {.kernel = k};
			const char *why;

			ex_sample_begin(&t.sample, k->type, ex_hash(seed, i));
			k->make(&t.sample);
			why = one(&t);
			if (why)
				ck_abort_msg("%s: %s", ex_sample_text(&ctx, &t.sample), why);
			ap_arena_release(ctx.scratch, mark);
		}
}
END_TEST
