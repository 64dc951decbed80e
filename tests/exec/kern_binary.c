/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise operators of two and more operands, broadcast against one another. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

static ex_id surface_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_fn2(j->tape, j->type, ex_operand(j, 0, at), ex_operand(j, 1, at));
}

static ex_id terrace_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	return ex_leaf(j->tape, ex_value_of(j->tape, surface_at(j, r, at)));
}

static uint64_t factor(const struct ex_job *j, const char *name)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, name);

	return ex_of_int(a ? (int64_t)a->f : 1);
}

static ex_id sum_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id y = ex_scale(j->tape, ex_operand(j, 1, at), factor(j, "alpha"));

	(void)r;
	return ex_plus(j->tape, ex_operand(j, 0, at), y);
}

static ex_id difference_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id y = ex_scale(j->tape, ex_operand(j, 1, at), factor(j, "alpha"));

	(void)r;
	return ex_minus(j->tape, ex_operand(j, 0, at), y);
}

static ex_id product_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_times(j->tape, ex_operand(j, 0, at), ex_operand(j, 1, at));
}

static ex_id quotient_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_over(j->tape, ex_operand(j, 0, at), ex_operand(j, 1, at));
}

static ex_id larger_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id x = ex_operand(j, 0, at), y = ex_operand(j, 1, at);

	(void)r;
	return ex_less(j->tape, x, y) ? y : x;
}

static ex_id smaller_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id x = ex_operand(j, 0, at), y = ex_operand(j, 1, at);

	(void)r;
	return ex_less(j->tape, y, x) ? y : x;
}

static ex_id distance_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id d = ex_minus(j->tape, ex_operand(j, 0, at), ex_operand(j, 1, at));

	(void)r;
	return ex_times(j->tape, d, d);
}

/* The new value of a variable, operand 0: no gradient flows. */
static ex_id stored_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	uint64_t x = ex_value_of(j->tape, ex_operand(j, 0, at));
	uint64_t y = ex_value_of(j->tape, ex_operand(j, 1, at));

	(void)r;
	return ex_leaf(j->tape, ex_ends(j, "Add") ? ex_add(x, y) : ex_ends(j, "Sub") ? ex_sub(x, y)
		: y);
}

/* Comparisons by their name; a mixture of the two where it says nothing of order. */
static bool holds(const char *type, uint64_t x, uint64_t y)
{
	if (strcmp(type, "Greater") == 0)
		return x > y;
	if (strcmp(type, "GreaterEqual") == 0)
		return x >= y;
	if (strcmp(type, "Less") == 0)
		return x < y;
	if (strcmp(type, "LessEqual") == 0)
		return x <= y;
	if (strcmp(type, "NotEqual") == 0)
		return x != y;
	if (strcmp(type, "LogicalAnd") == 0)
		return x && y;
	if (strcmp(type, "LogicalOr") == 0)
		return x || y;
	if (strcmp(type, "Equal") == 0)
		return x == y;
	return x <= y + 1 && y <= x + 1; /* IsClose, ApproximateEqual: a tolerance of one */
}

static ex_id verdict_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	uint64_t x = ex_value_of(j->tape, ex_operand(j, 0, at));
	uint64_t y = ex_value_of(j->tape, ex_operand(j, 1, at));

	(void)r;
	return ex_leaf(j->tape, holds(j->type, x, y));
}

static ex_id total_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id sum = 0;

	(void)r;
	for (unsigned i = 0; i < j->nin; i++)
		sum = ex_plus(j->tape, sum, ex_operand(j, i, at));
	return sum;
}

static ex_id choice_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_operand(j, ex_value_of(j->tape, ex_operand(j, 0, at)) ? 1 : 2, at);
}

/* Without an operand for the value it is a constant. */
static ex_id filled_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	if (!ex_value_of(j->tape, ex_operand(j, 1, at)))
		return ex_operand(j, 0, at);
	return j->nin > 2 ? ex_operand(j, 2, at) : ex_leaf(j->tape, 7);
}

/* x + weight (y - x) */
static ex_id between_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id x = ex_operand(j, 0, at);

	(void)r;
	return ex_mad(j->tape, x, ex_operand(j, 2, at),
		ex_minus(j->tape, ex_operand(j, 1, at), x));
}

/* Rounded it has no gradient. */
static ex_id divided_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	bool rounded = ap_attr_get(j->attrs, "rounding_mode");

	return rounded ? terrace_at(j, r, at) : quotient_at(j, r, at);
}

static ex_id copied_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	(void)r;
	return ex_operand(j, 1, at);
}

/* x + value y z */
static ex_id sum_of_product_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id y = ex_scale(j->tape, ex_operand(j, 1, at), factor(j, "value"));

	(void)r;
	return ex_mad(j->tape, ex_operand(j, 0, at), y, ex_operand(j, 2, at));
}

static ex_id solid_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	return ex_fn2(j->tape, "third", surface_at(j, r, at), ex_operand(j, 2, at));
}

static ex_id triple_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	ex_id y = ex_times(j->tape, ex_operand(j, 0, at), ex_operand(j, 1, at));

	(void)r;
	return ex_times(j->tape, y, ex_operand(j, 2, at));
}

EX_EACH(surface)
EX_EACH(terrace)
EX_EACH(sum)
EX_EACH(difference)
EX_EACH(product)
EX_EACH(quotient)
EX_EACH(larger)
EX_EACH(smaller)
EX_EACH(distance)
EX_EACH(stored)
EX_EACH(verdict)
EX_EACH(total)
EX_EACH(choice)
EX_EACH(filled)
EX_EACH(between)
EX_EACH(triple)
EX_EACH(divided)
EX_EACH(copied)
EX_EACH(sum_of_product)
EX_EACH(solid)

/* Rows of x that the attribute names are replaced, or changed by those of v. */
static bool change_rows(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *v = &j->in[1];
	const struct ap_attr *a = ap_attr_get(j->attrs, "indices");
	int64_t size = ex_count(&x->box) / x->box.size[0];

	if (ex_count(&x->box) != ex_count(&j->out[0].box) || a->n != v->box.size[0] ||
		ex_count(&v->box) != a->n * size)
		return false;
	memcpy(j->out[0].id, x->id, (size_t)ex_count(&x->box) * sizeof *x->id);
	for (int64_t k = 0; k < a->n * size; k++) {
		int64_t row = a->list[k / size];
		ex_id *to = &j->out[0].id[row * size + k % size];

		if (row >= x->box.size[0])
			return false;
		*to = ex_ends(j, "Add") ? ex_plus(j->tape, *to, v->id[k])
			: ex_ends(j, "Sub") ? ex_minus(j->tape, *to, v->id[k]) : v->id[k];
	}
	return true;
}

/* Dimension of the operand that has the channels. */
static int channel(const struct ex_job *j)
{
	const char *format = ap_attr_str(j->attrs, "data_format", "NCHW");

	return format[strlen(format) - 1] == 'C' ? j->in[0].box.rank - 1 : 1;
}

/* A number per channel, or one for all: BiasAdd adds it, PReLU scales a part of x by it. */
static bool per_channel(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0], *c = &j->in[1];
	int64_t at[AP_MAX_RANK] = {0}, n = c->box.size[0];
	int axis = channel(j);

	if (n != x->box.size[axis] && (n != 1 || c->box.whole[0] != 1))
		return false;
	do {
		ex_id v = ex_get(x, at), k = c->id[n == 1 ? 0 : at[axis]];

		ex_put(&j->out[0], at, ex_begins(j, "Bias") ? ex_plus(j->tape, v, k)
			: ex_mad(j->tape, v, k, ex_fn1(j->tape, "negative part", v)));
	} while (ex_step(&x->box, at));
	return memcmp(x->box.size, j->out[0].box.size, sizeof x->box.size) == 0;
}

#define SMOOTH(name) {.type = name, .forward = surface, .make = ex_make_binary}
#define EXACT(name, how) {.type = name, .forward = how, .make = ex_make_binary}
#define LEVEL(name) {.type = name, .forward = terrace, .make = ex_make_binary, .no_grad = 3}
#define BITS(name) {.type = name, .forward = terrace, .make = ex_make_bits, .no_grad = 3}
#define STORE(name) {.type = name, .forward = stored, .make = ex_make_store, .no_grad = 3}
#define COMPARE(name) {.type = name, .forward = verdict, .make = ex_make_compare, .no_grad = 3}
#define LOGIC(name) {.type = name, .forward = verdict, .make = ex_make_logics, .no_grad = 3}
#define ORDER(name, how) \
	{.type = name, .forward = how, .make = ex_make_order, .ordered = true}

/* All of the operator's further numbers, however many there are, enter each element. */
static bool disturbed(const struct ex_job *j)
{
	const struct ex_value *x = &j->in[0];
	ex_id sum = 0;

	if (ex_count(&x->box) != ex_count(&j->out[0].box))
		return false;
	for (unsigned i = 1; i < j->nin; i++)
		for (int64_t k = 0; k < ex_count(&j->in[i].box); k++)
			sum = ex_plus(j->tape, sum, j->in[i].id[k]);
	for (int64_t k = 0; k < ex_count(&x->box); k++)
		j->out[0].id[k] = ex_leaf(j->tape,
			ex_value_of(j->tape, ex_fn2(j->tape, j->type, x->id[k], sum)));
	return true;
}

const struct ex_kernel ex_kernels_binary[] = {
	EXACT("Add", sum), EXACT("Sub", difference), EXACT("Mul", product),
	EXACT("MulNoNan", product), EXACT("Div", quotient), EXACT("RealDiv", quotient),
	EXACT("DivNoNan", quotient), EXACT("Xdivy", quotient),
	EXACT("SquaredDifference", distance),
	{.type = "AddExt", .forward = sum, .make = ex_make_scaled},
	{.type = "SubExt", .forward = difference, .make = ex_make_scaled},
	ORDER("Maximum", larger), ORDER("Minimum", smaller),
	SMOOTH("FloorMod"), SMOOTH("TruncateMod"), SMOOTH("Mod"), SMOOTH("Pow"), SMOOTH("Xlogy"),
	SMOOTH("Atan2"), SMOOTH("Hypot"), SMOOTH("FmodTensor"), SMOOTH("RemainderTensorTensor"),
	SMOOTH("Igamma"), SMOOTH("Igammac"),
	LEVEL("FloorDiv"), LEVEL("TruncateDiv"), LEVEL("NextAfter"),
	BITS("Gcd"), BITS("LeftShift"), BITS("RightShift"), BITS("BitwiseAnd"), BITS("BitwiseOr"),
	BITS("BitwiseXor"),
	STORE("Assign"), STORE("AssignAdd"), STORE("AssignSub"),
	COMPARE("Equal"), COMPARE("NotEqual"), COMPARE("Greater"), COMPARE("GreaterEqual"),
	COMPARE("Less"), COMPARE("LessEqual"), COMPARE("IsClose"),
	COMPARE("ApproximateEqual"),
	LOGIC("LogicalAnd"), LOGIC("LogicalOr"),
	{.type = "AddN", .forward = total, .make = ex_make_many},
	{.type = "Select", .forward = choice, .make = ex_make_select, .no_grad = 1},
	{.type = "MaskedFill", .forward = filled, .make = ex_make_fill, .no_grad = 2},
	{.type = "Lerp", .forward = between, .make = ex_make_three},
	{.type = "MoeGate", .forward = triple, .make = ex_make_three},
	{.type = "AddcmulExt", .forward = sum_of_product, .make = ex_make_scaled_three},
	{.type = "Betainc", .forward = solid, .make = ex_make_three, .no_grad = 3},
	{.type = "Zeta", .forward = surface, .make = ex_make_binary, .no_grad = 1},
	{.type = "Polar", .forward = surface, .make = ex_make_real_pair},
	{.type = "GenerateEodMaskV2", .forward = disturbed, .make = ex_make_faulty,
		.no_grad = 31},
	{.type = "DivMod", .forward = divided, .make = ex_make_divided},
	{.type = "InplaceCopy", .forward = copied, .make = ex_make_copy, .no_grad = 3},
	{.type = "InplaceAdd", .forward = change_rows, .make = ex_make_rows, .no_grad = 3},
	{.type = "InplaceSub", .forward = change_rows, .make = ex_make_rows, .no_grad = 3},
	{.type = "InplaceUpdate", .forward = change_rows, .make = ex_make_rows, .no_grad = 3},
	{.type = "BiasAdd", .forward = per_channel, .make = ex_make_bias},
	{.type = "PReLU", .forward = per_channel, .make = ex_make_slope},
	{0}
};
