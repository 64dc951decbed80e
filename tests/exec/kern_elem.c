/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise operators of one operand. What has no exact meaning for integers is the fixed curve
 * of its name; a step function is the curve without its gradient.
 */
#include "kern_parts.h"
#include "make_parts.h"

static ex_id curve_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_fn1(j->tape, j->type, ex_operand(j, 0, at));
}

static ex_id level_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	return ex_leaf(j->tape, ex_value_of(j->tape, curve_at(j, r, at)));
}

static ex_id same_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_operand(j, 0, at);
}

static ex_id negative_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_minus(j->tape, 0, ex_operand(j, 0, at));
}

static ex_id square_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id x = ex_operand(j, 0, at);

	(void)r;
	return ex_times(j->tape, x, x);
}

static ex_id inverse_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_over(j->tape, ex_leaf(j->tape, 1), ex_operand(j, 0, at));
}

static ex_id zero_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)j;
	(void)r;
	(void)at;
	return 0;
}

static ex_id one_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	(void)at;
	return ex_leaf(j->tape, 1);
}

/* Some property that half of the numbers have. */
static ex_id property_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	uint64_t v = ex_value_of(j->tape, ex_operand(j, 0, at));

	(void)r;
	return ex_leaf(j->tape, ex_hash(v, 0) & 1);
}

static ex_id not_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_leaf(j->tape, 1 - ex_value_of(j->tape, ex_operand(j, 0, at)));
}

EX_EACH(curve)
EX_EACH(level)
EX_EACH(same)
EX_EACH(negative)
EX_EACH(square)
EX_EACH(inverse)
EX_EACH(zero)
EX_EACH(one)
EX_EACH(property)
EX_EACH(not)

/* The curve and where it rises. */
static bool masked(const struct ex_job *j)
{
	int64_t at[AP_MAX_RANK] = {0};

	for (unsigned r = 0; r < j->nout; r++)
		if (ex_count(&j->out[r].box) != ex_count(&j->in[0].box))
			return false;
	do {
		ex_put(&j->out[0], at, curve_at(j, 0, at));
		if (j->nout > 1)
			ex_put(&j->out[1], at, property_at(j, 0, at));
	} while (ex_step(&j->in[0].box, at));
	return true;
}

/* Product of the curve of one half and the other half. */
static bool halves(const struct ex_job *j)
{
	const struct ex_box *in = &j->in[0].box, *out = &j->out[0].box;
	int axis = ex_axis(j, "dim", -1, out->rank);
	int64_t at[AP_MAX_RANK] = {0}, own[AP_MAX_RANK];

	for (int d = 0; d < out->rank; d++)
		if (in->size[d] != (d == axis ? 2 : 1) * out->size[d])
			return false;
	do {
		ex_id x = ex_get(&j->in[0], at);

		for (int d = 0; d < out->rank; d++)
			own[d] = at[d] + (d == axis ? out->size[d] : 0);
		ex_put(&j->out[0], at, ex_times(j->tape, ex_fn1(j->tape, "silu", x),
			ex_get(&j->in[0], own)));
	} while (ex_step(out, at));
	return true;
}

#define CURVE(name) {.type = name, .forward = curve, .make = ex_make_unary}
#define LEVEL(name) {.type = name, .forward = level, .make = ex_make_unary, .no_grad = 1}
#define EXACT(name, how) {.type = name, .forward = how, .make = ex_make_unary}
#define BARE(name, how) {.type = name, .forward = how, .make = ex_make_unary, .no_grad = 1}

const struct ex_kernel ex_kernels_elem[] = {
	CURVE("ReLU"), CURVE("ReLU6"), CURVE("Sigmoid"), CURVE("Tanh"), CURVE("GeLU"),
	CURVE("FastGeLU"), CURVE("SiLU"), CURVE("Elu"), CURVE("EluExt"), CURVE("SeLU"),
	CURVE("HSigmoid"), CURVE("HShrink"), CURVE("SoftShrink"), CURVE("Mish"),
	CURVE("Softplus"), CURVE("SoftplusExt"), CURVE("Softsign"), CURVE("LeakyReLUExt"),
	CURVE("Abs"), CURVE("Exp"), CURVE("Expm1"), CURVE("Log"), CURVE("Log1p"), CURVE("Sqrt"),
	CURVE("Rsqrt"), CURVE("Sin"), CURVE("Cos"), CURVE("Tan"), CURVE("Sinh"), CURVE("Cosh"),
	CURVE("Asin"), CURVE("ACos"), CURVE("Atan"), CURVE("Asinh"), CURVE("Acosh"),
	CURVE("Atanh"), CURVE("Erf"), CURVE("Erfc"), CURVE("Erfinv"), CURVE("Lgamma"),
	CURVE("BesselI0"), CURVE("BesselI0e"), CURVE("BesselI1"), CURVE("BesselI1e"),
	CURVE("BesselJ0"), CURVE("BesselJ1"),
	LEVEL("Floor"), LEVEL("Ceil"), LEVEL("Round"), LEVEL("Rint"), LEVEL("Trunc"),
	LEVEL("Sign"),
	EXACT("Neg", negative), EXACT("Square", square), EXACT("Reciprocal", inverse),
	EXACT("Inv", inverse), EXACT("Identity", same),
	BARE("ZerosLike", zero), BARE("OnesLike", one), BARE("IsFinite", property),
	{.type = "LogicalNot", .forward = not, .make = ex_make_logic, .no_grad = 1},
	{.type = "Invert", .forward = level, .make = ex_make_integer, .no_grad = 1},
	{.type = "Cast", .forward = same, .make = ex_make_cast},
	{.type = "Swiglu", .forward = halves, .make = ex_make_halves},
	CURVE("Activation"), CURVE("ClampScalar"), CURVE("FmodScalar"), CURVE("Muls"),
	CURVE("RemainderTensorScalar"), CURVE("RemainderScalarTensor"), CURVE("NanToNum"),
	EXACT("AShardIdentity", same), BARE("VirtualOutput", same),
	EXACT("Send", same), EXACT("Receive", same),
	{.type = "PopulationCount", .forward = level, .make = ex_make_integer, .no_grad = 1},
	{.type = "ReLUV2", .forward = masked, .make = ex_make_masked},
	{0}
};
