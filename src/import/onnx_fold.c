/* SPDX-License-Identifier: Apache-2.0 */
#include "import/onnx_fold.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"

enum { MOST_IN = 64, MOST_EQUAL = 64 }; /* operands; equal integers that are all written down */

struct fold { /* a node whose operands are known */
	struct ap_onnx_walk *w;
	uint32_t n;
	const struct ap_onnx_val *in[MOST_IN]; /* NULL: left out */
	struct ap_shape shape; /* of the result */
	bool real; /* the result's numbers */
	uint32_t count; /* of numbers kept: one of a uniform result */
	int64_t *i;
	double *f;
};

static int64_t int_at(const struct ap_onnx_val *v, uint64_t at)
{
	at = v->values->n == 1 ? 0 : at;
	return v->values->i			  ? v->values->i[at]
		: fabs(v->values->f[at]) < 0x1p62 ? (int64_t)v->values->f[at]
							: 0;
}

static double real_at(const struct ap_onnx_val *v, uint64_t at)
{
	at = v->values->n == 1 ? 0 : at;
	return v->values->i ? (double)v->values->i[at] : v->values->f[at];
}

/* Copies element `from` of an operand. */
static void copy(struct fold *f, uint32_t into, const struct ap_onnx_val *v, uint64_t from)
{
	if (f->real)
		f->f[into] = real_at(v, from);
	else
		f->i[into] = int_at(v, from);
}

/* Makes room for the result: all of it, or one number for all elements. False if it is too large. */
static bool make_room(struct fold *f, bool uniform)
{
	int64_t count;

	if (!ap_product(f->shape.dim, f->shape.rank, &count) || count > (INT64_C(1) << 53))
		return false;
	for (uint8_t k = 0; k < f->shape.rank; k++)
		if (f->shape.dim[k] > INT32_MAX)
			return false;
	count = uniform && count > (ap_dtype_is_float(f->shape.dtype) ? 1 : MOST_EQUAL) ? 1 : count;
	if (count > AP_ONNX_MOST_VALUES)
		return false;
	f->count = (uint32_t)count;
	f->real = ap_dtype_is_float(f->shape.dtype);
	f->i = AP_NEW_N(f->w->ctx->arena, int64_t, count + 1);
	f->f = AP_NEW_N(f->w->ctx->arena, double, count + 1);
	return true;
}

static bool put(struct fold *f, uint32_t result)
{
	struct ap_onnx_numbers *n = AP_NEW(f->w->ctx->arena, struct ap_onnx_numbers);
	int64_t count = 0;
	ap_id id;

	n->n = f->count;
	n->i = f->real ? NULL : f->i;
	n->f = f->real ? f->f : NULL;
	id = ap_onnx_constant(f->w, f->shape, n);
	(void)ap_product(f->shape.dim, f->shape.rank, &count);
	ap_onnx_val(f->w, id)->uniform = count > f->count;
	ap_onnx_out(f->w, result, id);
	return true;
}

/* ---- element by element ---- */

/* The common shape of operands, broadcast as in NumPy. */
static bool broadcast(struct fold *f)
{
	f->shape.rank = 0;
	for (uint32_t k = 0; k < f->n; k++)
		if (f->in[k] && f->in[k]->shape.rank > f->shape.rank)
			f->shape.rank = f->in[k]->shape.rank;
	for (uint8_t d = 0; d < f->shape.rank; d++) {
		f->shape.dim[d] = 1;
		for (uint32_t k = 0; k < f->n; k++) {
			const struct ap_shape *s = f->in[k] ? &f->in[k]->shape : NULL;
			int64_t n =
				s && d + s->rank >= f->shape.rank ? s->dim[d + s->rank - f->shape.rank] : 1;

			if (n != 1 && f->shape.dim[d] != 1 && f->shape.dim[d] != n)
				return false;
			f->shape.dim[d] = n == 1 ? f->shape.dim[d] : n;
		}
	}
	return true;
}

/* Where the element of a result at `at` comes from in an operand that is broadcast to it. */
static uint64_t source(const struct ap_shape *out, const struct ap_shape *in, uint64_t at)
{
	uint64_t from = 0, step = 1;

	for (int d = out->rank - 1, k = in->rank - 1; k >= 0; d--, k--) {
		uint64_t index = at % (uint64_t)out->dim[d];

		at /= (uint64_t)out->dim[d];
		if (in->dim[k] > 1)
			from += index * step;
		step *= (uint64_t)in->dim[k];
	}
	return from;
}

enum calculation {
	ADD,
	SUB,
	MUL,
	DIV,
	MOD,
	POW,
	MIN,
	MAX,
	EQUAL,
	LESS,
	GREATER,
	LESS_EQUAL,
	GREATER_EQUAL,
	AND,
	OR,
	XOR,
	NEG,
	ABS,
	SQRT,
	FLOOR,
	CEIL,
	NOT,
	RECIPROCAL,
	EXP,
	LOG,
	SIGN,
	CAST,
	WHERE
};

static const struct {
	const char *type;
	enum calculation how;
	uint8_t operands; /* 0: any number */
	bool truth; /* the result is bool */
} calculations[] = {
	{"Add", ADD, 2, false},
	{"Sub", SUB, 2, false},
	{"Mul", MUL, 2, false},
	{"Div", DIV, 2, false},
	{"Mod", MOD, 2, false},
	{"Pow", POW, 2, false},
	{"Min", MIN, 0, false},
	{"Max", MAX, 0, false},
	{"Sum", ADD, 0, false},
	{"Equal", EQUAL, 2, true},
	{"Less", LESS, 2, true},
	{"Greater", GREATER, 2, true},
	{"LessOrEqual", LESS_EQUAL, 2, true},
	{"GreaterOrEqual", GREATER_EQUAL, 2, true},
	{"And", AND, 2, true},
	{"Or", OR, 2, true},
	{"Xor", XOR, 2, true},
	{"Not", NOT, 1, true},
	{"Neg", NEG, 1, false},
	{"Abs", ABS, 1, false},
	{"Sqrt", SQRT, 1, false},
	{"Floor", FLOOR, 1, false},
	{"Ceil", CEIL, 1, false},
	{"Reciprocal", RECIPROCAL, 1, false},
	{"Exp", EXP, 1, false},
	{"Log", LOG, 1, false},
	{"Sign", SIGN, 1, false},
	{"Cast", CAST, 1, false},
	{"CastLike", CAST, 2, false},
	{"Where", WHERE, 3, false},
};

static double real_of(enum calculation how, double a, double b)
{
	switch (how) {
	case ADD: return a + b;
	case SUB: return a - b;
	case MUL: return a * b;
	case DIV: return a / b;
	case MOD: return fmod(a, b);
	case POW: return pow(a, b);
	case MIN: return a < b ? a : b;
	case MAX: return a > b ? a : b;
	case EQUAL: return a == b;
	case LESS: return a < b;
	case GREATER: return a > b;
	case LESS_EQUAL: return a <= b;
	case GREATER_EQUAL: return a >= b;
	case AND: return a != 0 && b != 0;
	case OR: return a != 0 || b != 0;
	case XOR: return (a != 0) != (b != 0);
	case NEG: return -a;
	case ABS: return fabs(a);
	case SQRT: return sqrt(a);
	case FLOOR: return floor(a);
	case CEIL: return ceil(a);
	case NOT: return a == 0;
	case RECIPROCAL: return 1 / a;
	case EXP: return exp(a);
	case LOG: return log(a);
	case SIGN: return (a > 0) - (a < 0);
	default: return a;
	}
}

/* Integers as the file means them, whatever double holds; what overflows wraps. */
static int64_t int_of(enum calculation how, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;

	switch (how) {
	case ADD: return (int64_t)(x + y);
	case SUB: return (int64_t)(x - y);
	case MUL: return (int64_t)(x * y);
	case DIV: return b == 0 || (a == INT64_MIN && b == -1) ? 0 : a / b;
	case MOD: return b == 0 || b == -1 ? 0 : a % b + ((a % b != 0 && (a < 0) != (b < 0)) ? b : 0);
	case MIN: return a < b ? a : b;
	case MAX: return a > b ? a : b;
	case EQUAL: return a == b;
	case LESS: return a < b;
	case GREATER: return a > b;
	case LESS_EQUAL: return a <= b;
	case GREATER_EQUAL: return a >= b;
	case NEG: return (int64_t)-x;
	case ABS: return a < 0 ? (int64_t)-x : a;
	case CAST: return a;
	default: {
		double v = real_of(how, (double)a, (double)b);

		return fabs(v) < 0x1p62 ? (int64_t)v : 0;
	}
	}
}

static bool calculate(struct fold *f, enum calculation how, bool truth)
{
	const struct ap_onnx_attr *to = ap_onnx_attr(f->w, "to");
	bool reals = false, uniform = true;
	uint32_t shown = f->n;

	for (uint32_t k = 0; k < f->n; k++) {
		if (!f->in[k])
			return false;
		reals |= f->in[k]->values->f != NULL;
		uniform &= f->in[k]->values->n == 1;
	}
	f->shape.dtype = truth ? AP_BOOL : f->in[how == WHERE ? 1 : 0]->shape.dtype;
	if (how == CAST && f->n == 1)
		f->shape.dtype = to ? ap_onnx_dtype(f->w, to->i) : AP_DTYPE_COUNT;
	if (how == CAST && f->n == 2) {
		f->shape.dtype = f->in[1]->shape.dtype;
		f->n = 1;
	}
	if (f->shape.dtype == AP_DTYPE_COUNT || !broadcast(f) || !make_room(f, uniform)) {
		f->n = shown;
		return false;
	}
	for (uint32_t at = 0; at < f->count; at++) {
		uint64_t from[MOST_IN] = {0};

		for (uint32_t k = 0; k < f->n; k++)
			from[k] = source(&f->shape, &f->in[k]->shape, at);
		if (how == WHERE) {
			uint32_t chosen = int_at(f->in[0], from[0]) ? 1 : 2;

			copy(f, at, f->in[chosen], from[chosen]);
		} else if (reals || f->real) {
			double v = real_at(f->in[0], from[0]);

			v = f->n == 1 ? real_of(how, v, 0) : v;
			for (uint32_t k = 1; k < f->n; k++)
				v = real_of(how, v, real_at(f->in[k], from[k]));
			if (f->real)
				f->f[at] = v;
			else
				f->i[at] = f->shape.dtype == AP_BOOL ? v != 0
					: fabs(v) < 0x1p62	     ? (int64_t)v
									: 0;
		} else {
			int64_t v = int_at(f->in[0], from[0]);

			v = f->n == 1 ? int_of(how, v, 0) : v;
			for (uint32_t k = 1; k < f->n; k++)
				v = int_of(how, v, int_at(f->in[k], from[k]));
			f->i[at] = f->shape.dtype == AP_BOOL ? v != 0 : v;
		}
	}
	return put(f, 0);
}

/* ---- movement ---- */

static bool axis_of(int64_t axis, uint8_t rank, uint8_t *out)
{
	axis += axis < 0 ? rank : 0;
	if (axis < 0 || axis >= rank)
		return false;
	*out = (uint8_t)axis;
	return true;
}

/* Gather: rows of a constant by a constant. */
static bool gather(struct fold *f)
{
	const struct ap_shape *x = &f->in[0]->shape, *y;
	uint64_t inner = 1, rows;
	uint8_t axis, r = 0;
	int64_t n;

	if (f->n < 2 || !f->in[1] || !axis_of(ap_onnx_int(f->w, "axis", 0), x->rank, &axis))
		return false;
	y = &f->in[1]->shape;
	if (x->rank - 1 + y->rank > AP_MAX_RANK || !f->in[1]->values->i)
		return false;
	f->shape.dtype = x->dtype;
	for (uint8_t d = 0; d < x->rank; d++) {
		if (d != axis)
			f->shape.dim[r++] = x->dim[d];
		for (uint8_t k = 0; d == axis && k < y->rank; k++)
			f->shape.dim[r++] = y->dim[k];
		if (d > axis)
			inner *= (uint64_t)x->dim[d];
	}
	f->shape.rank = r;
	if (!ap_product(y->dim, y->rank, &n) || !make_room(f, false))
		return false;
	rows = (uint64_t)x->dim[axis];
	for (uint32_t at = 0; at < f->count; at++) {
		uint64_t in_row = at % inner, which = at / inner % (uint64_t)n,
			 outer = at / inner / (uint64_t)n;
		int64_t index = int_at(f->in[1], which);

		index += index < 0 ? (int64_t)rows : 0;
		if (index < 0 || (uint64_t)index >= rows)
			return false;
		copy(f, at, f->in[0], (outer * rows + (uint64_t)index) * inner + in_row);
	}
	return put(f, 0);
}

static bool concat(struct fold *f)
{
	const struct ap_shape *x = &f->in[0]->shape;
	uint64_t inner = 1, start = 0;
	uint8_t axis;
	int64_t joined = 0;

	if (!axis_of(ap_onnx_int(f->w, "axis", 0), x->rank, &axis))
		return false;
	f->shape = *x;
	for (uint32_t k = 0; k < f->n; k++) {
		if (!f->in[k] || f->in[k]->shape.rank != x->rank)
			return false;
		joined += f->in[k]->shape.dim[axis];
	}
	f->shape.dim[axis] = joined;
	if (!make_room(f, false))
		return false;
	for (uint8_t d = axis + 1; d < x->rank; d++)
		inner *= (uint64_t)x->dim[d];
	for (uint32_t k = 0; k < f->n; k++) {
		uint64_t part = (uint64_t)f->in[k]->shape.dim[axis] * inner, from = 0;

		if (!part)
			continue;
		for (uint64_t at = start; at < f->count; at += (uint64_t)joined * inner)
			for (uint64_t e = 0; e < part && at + e < f->count; e++)
				copy(f, (uint32_t)(at + e), f->in[k], from++);
		start += part;
	}
	return put(f, 0);
}

/* Slice with constant bounds along one dimension of a constant. */
static bool slice(struct fold *f)
{
	const int64_t *starts, *ends, *axes = NULL, *steps = NULL;
	uint32_t ns, ne, na = 0, np = 0;
	int64_t from, to, step, n;
	uint64_t inner = 1;
	uint8_t axis;

	if (!ap_onnx_ints(f->w, 1, "starts", &starts, &ns) || !ap_onnx_ints(f->w, 2, "ends", &ends, &ne))
		return false;
	(void)ap_onnx_ints(f->w, 3, "axes", &axes, &na);
	(void)ap_onnx_ints(f->w, 4, NULL, &steps, &np);
	if (ns != 1 || ne != 1 || na > 1 || np > 1 || !axis_of(na ? axes[0] : 0, f->in[0]->shape.rank, &axis))
		return false;
	f->shape = f->in[0]->shape;
	n = f->shape.dim[axis];
	step = np ? steps[0] : 1;
	if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
		return false;
	from = starts[0] < -n ? -n : starts[0] > n ? n : starts[0];
	to = ends[0] < -n - 1 ? -n - 1 : ends[0] > n ? n : ends[0];
	from += from < 0 ? n : 0;
	to += to < 0 ? n : 0;
	from = step < 0 && from > n - 1 ? n - 1 : from;
	f->shape.dim[axis] = step > 0 ? (to > from ? (to - from - 1) / step + 1 : 0)
		: (from > to ? (from - to - 1) / -step + 1 : 0);
	if (!make_room(f, f->in[0]->uniform))
		return false;
	for (uint8_t d = axis + 1; d < f->shape.rank; d++)
		inner *= (uint64_t)f->shape.dim[d];
	for (uint32_t at = 0; at < f->count; at++) {
		uint64_t e = at % inner, k = at / inner % (uint64_t)f->shape.dim[axis];
		uint64_t outer = at / inner / (uint64_t)f->shape.dim[axis];

		copy(f, at, f->in[0],
			(outer * (uint64_t)n + (uint64_t)(from + (int64_t)k * step)) * inner + e);
	}
	return put(f, 0);
}

static bool transpose(struct fold *f)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(f->w, "perm");
	const struct ap_shape *x = &f->in[0]->shape;
	uint64_t step[AP_MAX_RANK], all = 1;

	if (a && a->nints != x->rank)
		return false;
	for (int d = x->rank - 1; d >= 0; d--) {
		step[d] = all;
		all *= (uint64_t)x->dim[d];
	}
	f->shape = *x;
	for (uint8_t d = 0; d < x->rank; d++) {
		uint8_t from;

		if (!axis_of(a ? a->ints[d] : x->rank - 1 - d, x->rank, &from))
			return false;
		f->shape.dim[d] = x->dim[from];
	}
	if (!make_room(f, f->in[0]->uniform))
		return false;
	for (uint32_t at = 0; at < f->count; at++) {
		uint64_t rest = at, from = 0;

		for (int d = x->rank - 1; d >= 0; d--) {
			uint8_t source_dim = 0;

			(void)axis_of(a ? a->ints[d] : x->rank - 1 - d, x->rank, &source_dim);
			from += rest % (uint64_t)f->shape.dim[d] * step[source_dim];
			rest /= (uint64_t)f->shape.dim[d];
		}
		if (from >= all)
			return false; /* a dimension that is named twice */
		copy(f, at, f->in[0], from);
	}
	return put(f, 0);
}

/* Expand, ConstantOfShape: a number, or few, in the shape that an operand says. */
static bool expand(struct fold *f)
{
	const struct ap_onnx_val *x = f->in[0];
	const int64_t *v;
	uint32_t n;

	if (!ap_onnx_ints(f->w, 1, NULL, &v, &n) || n > AP_MAX_RANK)
		return false;
	f->shape = x->shape;
	f->shape.rank = (uint8_t)(n > x->shape.rank ? n : x->shape.rank);
	for (uint8_t d = 0; d < f->shape.rank; d++) {
		int a = d - (f->shape.rank - x->shape.rank), b = d - (f->shape.rank - (int)n);
		int64_t have = a >= 0 ? x->shape.dim[a] : 1, want = b >= 0 ? v[b] : 1;

		if (have != 1 && want != 1 && have != want)
			return false;
		f->shape.dim[d] = have == 1 ? want : have;
		if (f->shape.dim[d] < 0)
			return false;
	}
	if (!make_room(f, x->values->n == 1))
		return false;
	for (uint32_t at = 0; at < f->count; at++)
		copy(f, at, x, source(&f->shape, &x->shape, at));
	return put(f, 0);
}

static bool constant_of_shape(struct fold *f)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(f->w, "value");
	const int64_t *v;
	double value = 0;
	uint32_t n;

	if (!ap_onnx_ints(f->w, 0, NULL, &v, &n) || n > AP_MAX_RANK)
		return false;
	f->shape.rank = (uint8_t)n;
	f->shape.dtype = ap_onnx_dtype(f->w, a && a->tensor ? a->tensor->type : 1);
	if (f->shape.dtype == AP_DTYPE_COUNT)
		return false;
	for (uint32_t d = 0; d < n; d++) {
		f->shape.dim[d] = v[d];
		if (v[d] < 0)
			return false;
	}
	if (a && a->tensor && a->tensor->values && a->tensor->values->n)
		value = a->tensor->values->i ? (double)a->tensor->values->i[0] : a->tensor->values->f[0];
	if (!make_room(f, true))
		return false;
	for (uint32_t at = 0; at < f->count; at++) {
		f->f[at] = value;
		f->i[at] = fabs(value) < 0x1p62 ? (int64_t)value : 0;
	}
	return put(f, 0);
}

/* Reshape, Flatten, Squeeze, Unsqueeze: the same numbers in another shape. */
static bool reshape(struct fold *f)
{
	const struct ap_onnx_val *x = f->in[0];
	const char *type = f->w->node->type;
	const int64_t *v = NULL;
	int64_t all, known = 1;
	int open = -1;
	bool gone[2 * AP_MAX_RANK] = {false};
	uint32_t n = 0;

	if (!ap_product(x->shape.dim, x->shape.rank, &all))
		return false;
	f->shape.dtype = x->shape.dtype;
	f->shape.rank = 0;
	if (!strcmp(type, "Reshape")) {
		if (!ap_onnx_ints(f->w, 1, "shape", &v, &n) || n > AP_MAX_RANK)
			return false;
		for (uint32_t d = 0; d < n; d++) {
			int64_t len = v[d] == 0 && d < x->shape.rank && !ap_onnx_int(f->w, "allowzero", 0)
				? x->shape.dim[d] : v[d];

			if (len < -1 || (len == -1 && open >= 0))
				return false;
			open = len == -1 ? (int)d : open;
			f->shape.dim[d] = len;
			if (len != -1 && !ap_mul(known, len, &known))
				return false;
		}
		f->shape.rank = (uint8_t)n;
		if (open >= 0)
			f->shape.dim[open] = known ? all / known : 0;
	} else {
		bool grows = !strcmp(type, "Unsqueeze");
		uint8_t rank, at = 0;

		if (!ap_onnx_ints(f->w, 1, "axes", &v, &n) && grows)
			return false;
		if (x->shape.rank + (grows ? n : 0) > AP_MAX_RANK)
			return false;
		rank = (uint8_t)(x->shape.rank + (grows ? n : 0));
		for (uint32_t k = 0; k < n; k++) {
			uint8_t axis;

			if (!axis_of(v[k], rank, &axis))
				return false;
			gone[axis] = true;
		}
		for (uint8_t d = 0; d < rank; d++) {
			if (grows) {
				f->shape.dim[f->shape.rank++] = gone[d] ? 1 : at < x->shape.rank
					? x->shape.dim[at++] : 1;
			} else if (n ? !gone[d] : x->shape.dim[d] != 1) {
				f->shape.dim[f->shape.rank++] = x->shape.dim[d];
			}
		}
	}
	if (!ap_product(f->shape.dim, f->shape.rank, &known) || known != all || !make_room(f, x->uniform))
		return false;
	for (uint32_t at = 0; at < f->count; at++)
		copy(f, at, x, at);
	return put(f, 0);
}

static bool range(struct fold *f)
{
	double from, step, n;

	if (f->n < 3 || !f->in[0] || !f->in[1] || !f->in[2])
		return false;
	from = real_at(f->in[0], 0);
	step = real_at(f->in[2], 0);
	n = ceil((real_at(f->in[1], 0) - from) / step);
	if (!(n <= INT32_MAX))
		return false;
	f->shape = (struct ap_shape){.rank = 1,
		.dtype = f->in[0]->shape.dtype,
		.dim = {n > 0 ? (int64_t)n : 0}};
	if (!make_room(f, false))
		return false;
	for (uint32_t at = 0; at < f->count; at++) {
		f->f[at] = from + at * step;
		f->i[at] = fabs(f->f[at]) < 0x1p62 ? (int64_t)f->f[at] : 0;
	}
	return put(f, 0);
}

/* Sum, product or extreme of all elements of a vector, as sizes are made of shapes. */
static const struct {
	const char *type;
	enum calculation how;
} reductions[] = {{"ReduceMax", MAX}, {"ReduceMin", MIN}, {"ReduceProd", MUL}, {"ReduceSum", ADD}};

static bool reduce(struct fold *f)
{
	const struct ap_onnx_val *x = f->in[0];
	bool keep = ap_onnx_int(f->w, "keepdims", 1) != 0;
	size_t r = 0;
	double v;

	if (x->shape.rank > 1 || x->uniform || !x->values->n)
		return false;
	f->shape.dtype = x->shape.dtype;
	f->shape.rank = keep ? x->shape.rank : 0;
	f->shape.dim[0] = 1;
	if (!make_room(f, false))
		return false;
	while (strcmp(reductions[r].type, f->w->node->type) != 0)
		r++;
	v = real_at(x, 0);
	for (uint32_t at = 1; at < x->values->n; at++)
		v = real_of(reductions[r].how, v, real_at(x, at));
	f->f[0] = v;
	f->i[0] = fabs(v) < 0x1p62 ? (int64_t)v : 0;
	return put(f, 0);
}

static bool parts(struct fold *f)
{
	const struct ap_onnx_val *x = f->in[0];
	const int64_t *v = NULL;
	uint32_t n = 0, nout = f->w->node->nout, from = 0;

	if (x->shape.rank != 1 || x->uniform || !nout)
		return false;
	(void)ap_onnx_ints(f->w, 1, "split", &v, &n);
	if (n ? n != nout : x->shape.dim[0] % nout != 0)
		return false;
	for (uint32_t k = 0; k < nout; k++)
		if (n && (v[k] < 0 || v[k] > x->shape.dim[0]))
			return false;
	for (uint32_t k = 0; k < nout; k++) {
		f->shape = x->shape;
		f->shape.dim[0] = n ? v[k] : x->shape.dim[0] / nout;
		if (from + f->shape.dim[0] > x->shape.dim[0] || !make_room(f, false))
			return false;
		for (uint32_t at = 0; at < f->count; at++)
			copy(f, at, x, from++);
		(void)put(f, k);
	}
	return true;
}

/* Shape, Size: of anything whose shape is known. */
static bool of_shape(struct ap_onnx_walk *w, ap_id id)
{
	struct fold f = {.w = w};
	const struct ap_shape *s = &ap_onnx_val(w, id)->shape;
	bool size = !strcmp(w->node->type, "Size");
	int64_t from = ap_onnx_int(w, "start", 0), to = ap_onnx_int(w, "end", s->rank), n = 1;
	struct ap_shape x = *s;

	from += from < 0 ? x.rank : 0;
	to += to < 0 ? x.rank : 0;
	from = from < 0 ? 0 : from > x.rank ? x.rank : from;
	to = to > x.rank ? x.rank : to < from ? from : to;
	f.shape = (struct ap_shape){.rank = !size, .dtype = AP_INT64, .dim = {to - from}};
	if (!ap_product(x.dim, x.rank, &n) || !make_room(&f, false))
		return false;
	f.i[0] = n;
	for (int64_t d = from; !size && d < to; d++)
		f.i[d - from] = x.dim[d];
	return put(&f, 0);
}

static const struct { /* what is no calculation by element */
	const char *type;
	bool (*run)(struct fold *f);
} folds[] = {
	{"Concat", concat}, {"ConstantOfShape", constant_of_shape}, {"Expand", expand}, {"Gather", gather},
	{"Range", range}, {"ReduceMax", reduce}, {"ReduceMin", reduce}, {"ReduceProd", reduce},
	{"ReduceSum", reduce}, {"Reshape", reshape}, {"Slice", slice}, {"Split", parts}, {"Squeeze", reshape},
	{"Transpose", transpose}, {"Unsqueeze", reshape},
};

bool ap_onnx_fold(struct ap_onnx_walk *w)
{
	const char *type = w->node->type;
	struct fold f = {.w = w, .n = w->node->nin};

	if (*w->node->domain || !f.n || f.n > MOST_IN)
		return false;
	for (uint32_t k = 0; k < f.n; k++) {
		ap_id id = ap_onnx_in(w, k);

		if (id == AP_NONE)
			return false;
		f.in[k] = id == AP_ONNX_LEFT_OUT ? NULL : ap_onnx_val(w, id);
	}
	if (f.in[0] && (!strcmp(type, "Shape") || !strcmp(type, "Size")))
		return of_shape(w, ap_onnx_in(w, 0));
	for (uint32_t k = 0; k < f.n; k++)
		if (f.in[k] && (f.in[k]->kind != AP_ONNX_CONST || !f.in[k]->values))
			return false;
	if (!f.in[0])
		return false;
	/* values move when others are made: what is read of them is read first */
	for (uint32_t k = 0; k < f.n; k++)
		if (f.in[k])
			f.in[k] = ap_arena_memdup(w->ctx->arena, f.in[k], sizeof *f.in[k]);
	for (size_t i = 0; i < AP_COUNT(calculations); i++)
		if (!strcmp(calculations[i].type, type) &&
			(!calculations[i].operands || calculations[i].operands == f.n))
			return calculate(&f, calculations[i].how, calculations[i].truth);
	for (size_t i = 0; i < AP_COUNT(folds); i++)
		if (!strcmp(folds[i].type, type))
			return folds[i].run(&f);
	return false;
}
