/* SPDX-License-Identifier: Apache-2.0 */
#include "import/onnx_ops.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "rule/binding.h"

#define MAKER(name) static void make_##name(struct ap_onnx_walk *w, const struct ap_onnx_op *row)

static const struct ap_shape *shape_of(const struct ap_onnx_walk *w, ap_id id)
{
	return &ap_onnx_val(w, id)->shape;
}

static bool is_const(const struct ap_onnx_walk *w, ap_id id)
{
	return ap_onnx_val(w, id)->kind == AP_ONNX_CONST;
}

/* Operand i, which must be there. */
static ap_id need(struct ap_onnx_walk *w, uint32_t i)
{
	ap_id id = ap_onnx_in(w, i);

	return id == AP_ONNX_LEFT_OUT ? ap_onnx_fail(w, "operand %" PRIu32 " is missing", i + 1) : id;
}

static bool axis_of(struct ap_onnx_walk *w, int64_t axis, uint8_t rank, uint8_t *out)
{
	int64_t at = axis + (axis < 0 ? rank : 0);

	*out = (uint8_t)at;
	if (at >= 0 && at < rank)
		return true;
	(void)ap_onnx_fail(w, "axis %" PRId64 " is not among %d dimensions", axis, rank);
	return false;
}

static ap_id unary(struct ap_onnx_walk *w, const char *type, ap_id x)
{
	return ap_onnx_emit(w, type, AP_IN(x), AP_NO_ATTRS, 1);
}

static ap_id reshaped(struct ap_onnx_walk *w, ap_id x, uint8_t rank, const int64_t *dim)
{
	const struct ap_shape *s;

	if (x == AP_NONE)
		return x;
	s = shape_of(w, x);
	if (s->rank == rank && !memcmp(s->dim, dim, rank * sizeof *dim))
		return x;
	return ap_onnx_emit(w, "Reshape", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("shape", dim, rank)), 1);
}

static ap_id transposed(struct ap_onnx_walk *w, ap_id x, uint8_t rank, const int64_t *perm)
{
	bool moves = false;

	for (uint8_t d = 0; d < rank; d++)
		moves |= perm[d] != d;
	return moves ? ap_onnx_emit(w, "Transpose", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("perm", perm, rank)), 1)
			: x;
}

static ap_id summed(
	struct ap_onnx_walk *w, const char *type, ap_id x, const int64_t *axes, uint32_t n, bool keep)
{
	return ap_onnx_emit(w, type, AP_IN(x),
		AP_ATTRS(AP_INTS_ATTR("axis", axes, n), AP_FLAG_ATTR("keep_dims", keep)), 1);
}

/* ---- element by element ---- */

MAKER(unary)
{
	ap_onnx_out(w, 0, unary(w, row->type, need(w, 0)));
}

/* Constants whose operands are none. */
MAKER(unfolded)
{
	(void)ap_onnx_fail(w,
		"depends on what the network computes%s; what follows from shapes is expected", row->type);
}

MAKER(alias)
{
	(void)row;
	ap_onnx_out(w, 0, need(w, 0));
}

/* x * HardSigmoid(x) */
MAKER(hard_swish)
{
	ap_id x = need(w, 0);

	ap_onnx_out(w, 0, ap_onnx_binary(w, "Mul", x, unary(w, row->type, x)));
}

MAKER(is_nan)
{
	ap_id x = need(w, 0);

	ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x, x), AP_NO_ATTRS, 1));
}

MAKER(cast)
{
	ap_id x = need(w, 0), like = !strcmp(row->name, "CastLike") ? need(w, 1) : AP_ONNX_LEFT_OUT;
	const struct ap_onnx_attr *to = ap_onnx_attr(w, "to");
	enum ap_dtype t = AP_DTYPE_COUNT;

	if (w->failed)
		return;
	if (like != AP_ONNX_LEFT_OUT)
		t = shape_of(w, like)->dtype;
	else if (to)
		t = ap_onnx_dtype(w, to->i);
	if (t == AP_DTYPE_COUNT) {
		(void)ap_onnx_fail(w, "casts to an element type that no graph knows");
		return;
	}
	ap_onnx_out(w, 0, t == shape_of(w, x)->dtype ? x : ap_onnx_emit(w, row->type, AP_IN(x),
		AP_ATTRS(AP_TEXT_ATTR("dst_type", ap_dtype_name(t))), 1));
}

MAKER(clip)
{
	ap_id x = need(w, 0);
	double least = ap_onnx_real(w, "min", -INFINITY), most = ap_onnx_real(w, "max", INFINITY);
	bool six;

	(void)ap_onnx_number(w, ap_onnx_in(w, 1), &least);
	(void)ap_onnx_number(w, ap_onnx_in(w, 2), &most);
	six = least == 0 && most == 6;
	ap_onnx_out(w, 0, unary(w, six ? "ReLU6" : least == 0 && most == INFINITY ? "ReLU" : row->type, x));
}

/* What an inference export holds does nothing. */
MAKER(dropout)
{
	ap_id x = need(w, 0), y = x;
	double share = ap_onnx_real(w, "ratio", 0.5), trains = 0;

	(void)ap_onnx_number(w, ap_onnx_in(w, 1), &share);
	(void)ap_onnx_number(w, ap_onnx_in(w, 2), &trains);
	if (trains != 0 && share > 0 && share < 1)
		y = ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_REAL_ATTR("keep_prob", 1 - share)), 2);
	ap_onnx_out(w, 0, y);
	if (w->node->nout > 1 && x != AP_NONE) {
		struct ap_shape mask = *shape_of(w, x);

		mask.dtype = AP_BOOL;
		ap_onnx_out(w, 1, y != x && y != AP_NONE ? y + 1 : ap_onnx_filled(w, mask, 1));
	}
}

MAKER(prelu)
{
	ap_id x = need(w, 0), slope = need(w, 1);
	int64_t count;

	if (w->failed)
		return;
	ap_onnx_weigh(w, slope);
	if (!ap_product(shape_of(w, slope)->dim, shape_of(w, slope)->rank, &count))
		return;
	ap_onnx_out(
		w, 0, ap_onnx_emit(w, row->type, AP_IN(x, reshaped(w, slope, 1, &count)), AP_NO_ATTRS, 1));
}

/* Are all lengths of b, broadcast, also those of a, so that b may be one number? */
static bool covers(const struct ap_shape *a, const struct ap_shape *b)
{
	if (b->rank > a->rank)
		return false;
	for (uint8_t d = 0; d < b->rank; d++)
		if (b->dim[d] != 1 && b->dim[d] != a->dim[d + a->rank - b->rank])
			return false;
	return true;
}

/* A constant beside others, as small as it can be. */
static ap_id small(struct ap_onnx_walk *w, ap_id x, const struct ap_shape *beside)
{
	const struct ap_onnx_val *v = ap_onnx_val(w, x);
	double number;

	if (v->kind != AP_ONNX_CONST || !covers(beside, &v->shape))
		return x;
	if (ap_onnx_number(w, x, &number) && (v->uniform || v->shape.rank || !v->name || !v->values->i))
		return isnan(number) ? x : ap_onnx_scalar(w, v->shape.dtype, number);
	return v->base != AP_NONE ? v->base : x;
}

ap_id ap_onnx_binary(struct ap_onnx_walk *w, const char *type, ap_id x, ap_id y)
{
	if (x == AP_NONE || y == AP_NONE)
		return AP_NONE;
	return ap_onnx_emit(
		w, type, AP_IN(small(w, x, shape_of(w, y)), small(w, y, shape_of(w, x))), AP_NO_ATTRS, 1);
}

/* A vector that scales or shifts what is computed is a weight, also one that an exporter has folded into
 * another shape, under a name of its own. */
static void weigh_vector(struct ap_onnx_walk *w, ap_id x, ap_id beside)
{
	const struct ap_onnx_val *v = ap_onnx_val(w, x);
	int long_dims = 0;

	for (uint8_t d = 0; d < v->shape.rank; d++)
		long_dims += v->shape.dim[d] > 1;
	if (long_dims == 1 && v->initial && !v->uniform && !is_const(w, beside))
		ap_onnx_weigh(w, x);
}

MAKER(binary)
{
	ap_id x = need(w, 0), y = need(w, 1);

	if (!w->failed && (!strcmp(row->type, "Mul") || !strcmp(row->type, "Add"))) {
		weigh_vector(w, x, y);
		weigh_vector(w, y, x);
	}
	ap_onnx_out(w, 0, x == y && !strcmp(row->type, "Mul") ? unary(w, "Square", x)
		: ap_onnx_binary(w, row->type, x, y));
}

/* Torch and TensorFlow give exponents in other types than the base. */
MAKER(power)
{
	ap_id x = need(w, 0), y = need(w, 1);
	double by;

	if (w->failed)
		return;
	if (ap_onnx_number(w, y, &by) && covers(shape_of(w, x), shape_of(w, y))) {
		if (by == 1 || by == 2 || by == 0.5) {
			ap_onnx_out(w, 0, by == 1 ? x : unary(w, by == 2 ? "Square" : "Sqrt", x));
			return;
		}
		y = ap_onnx_scalar(w, shape_of(w, x)->dtype, by);
	}
	ap_onnx_out(w, 0, ap_onnx_binary(w, row->type, x, y));
}

/* Max, Min, Sum, Mean of any number of operands. */
MAKER(several)
{
	ap_id x = need(w, 0);

	for (uint32_t i = 1; i < w->node->nin && x != AP_NONE; i++)
		x = ap_onnx_binary(w, row->type, x, need(w, i));
	if (!strcmp(row->name, "Mean") && x != AP_NONE)
		x = ap_onnx_binary(w, "Mul", x, ap_onnx_scalar(w, shape_of(w, x)->dtype, 1.0 / w->node->nin));
	ap_onnx_out(w, 0, x);
}

MAKER(where)
{
	ap_id c = need(w, 0), x = need(w, 1), y = need(w, 2);
	struct ap_shape s = {0};
	const struct ap_onnx_made *op;

	if (w->failed)
		return;
	op = ap_onnx_maker(w, c);
	if (op && !strcmp(op->type, "NotEqual") && op->in[0] == op->in[1] && op->in[0] == y) {
		/* zeros in the place of what is no number, where there should be none */
		ap_onnx_out(w, 0, y);
		return;
	}
	for (uint32_t i = 0; i < 3; i++) { /* of the largest operand that is computed */
		const struct ap_onnx_val *v = ap_onnx_val(w, i == 0 ? c : i == 1 ? x : y);

		if (v->kind != AP_ONNX_CONST && v->shape.rank >= s.rank)
			s = v->shape;
	}
	ap_onnx_out(w, 0,
		ap_onnx_emit(w, row->type, AP_IN(c, small(w, x, &s), small(w, y, &s)), AP_NO_ATTRS, 1));
}

/* ---- products ---- */

/* What a tensor of matrices was before they were turned as a list of matrices, as torch's newer exporter
 * does it: Reshape, Transpose of the last two of three dimensions, Reshape. AP_NONE if it is none. */
static ap_id turned_as_matrices(const struct ap_onnx_walk *w, const struct ap_onnx_made *op)
{
	const struct ap_onnx_made *turn = ap_onnx_maker(w, op->in[0]), *list;
	const struct ap_shape *to = shape_of(w, op->out), *from;
	const int64_t *perm;

	if (!turn || strcmp(turn->type, "Transpose") || turn->attrs.v[0].n != 3)
		return AP_NONE;
	perm = turn->attrs.v[0].list;
	list = ap_onnx_maker(w, turn->in[0]);
	if (perm[0] != 0 || perm[1] != 2 || !list || strcmp(list->type, "Reshape"))
		return AP_NONE;
	from = shape_of(w, list->in[0]);
	if (from->rank < 3 || from->rank != to->rank || from->dim[from->rank - 1] != to->dim[to->rank - 2] ||
		from->dim[from->rank - 2] != to->dim[to->rank - 1] ||
		memcmp(from->dim, to->dim, (from->rank - 2u) * sizeof *from->dim) ||
		shape_of(w, turn->in[0])->dim[2] != from->dim[from->rank - 1])
		return AP_NONE;
	return list->in[0];
}

/* An operand of a product: the last two dimensions of a transposed one are read the other way round instead.
 * *turned: they are. */
static ap_id unturned(struct ap_onnx_walk *w, ap_id x, bool *turned)
{
	const struct ap_onnx_made *op = ap_onnx_maker(w, x);
	const struct ap_attr *perm;
	int64_t other[AP_MAX_RANK];
	double scale;
	uint32_t n;

	*turned = false;
	if (op && !strcmp(op->type, "Mul") && ap_onnx_number(w, op->in[1], &scale)) {
		ap_id by = op->in[1], y = unturned(w, op->in[0], turned);

		return *turned ? ap_onnx_binary(w, "Mul", y, by) : x; /* scaled behind the turn */
	}
	if (op && !strcmp(op->type, "Reshape")) {
		ap_id y = turned_as_matrices(w, op);

		*turned = y != AP_NONE;
		return *turned ? y : x;
	}
	if (!op || strcmp(op->type, "Transpose"))
		return x;
	perm = &op->attrs.v[0];
	n = perm->n;
	if (n < 2 || perm->list[n - 1] > perm->list[n - 2])
		return x;
	memcpy(other, perm->list, n * sizeof *other);
	other[n - 1] = perm->list[n - 2];
	other[n - 2] = perm->list[n - 1];
	*turned = true;
	return transposed(w, op->in[0], (uint8_t)n, other);
}

static ap_id product(struct ap_onnx_walk *w, ap_id x, ap_id y, bool turn_x, bool turn_y)
{
	bool flat;

	if (x == AP_NONE || y == AP_NONE)
		return AP_NONE;
	flat = shape_of(w, x)->rank == 2 && shape_of(w, y)->rank == 2;
	return ap_onnx_emit(w, flat ? "MatMul" : "BatchMatMul", AP_IN(x, y), AP_ATTRS(
		AP_FLAG_ATTR("transpose_a", turn_x), AP_FLAG_ATTR("transpose_b", turn_y)), 1);
}

MAKER(matmul)
{
	ap_id x = need(w, 0), y = need(w, 1), z;
	uint8_t rx, ry;
	bool turn_x, turn_y;

	(void)row;
	if (w->failed)
		return;
	rx = shape_of(w, x)->rank;
	ry = shape_of(w, y)->rank;
	if (!rx || !ry) {
		(void)ap_onnx_fail(w, "an operand is a number; a vector or matrices are expected");
		return;
	}
	if (!is_const(w, x))
		ap_onnx_weigh(w, y);
	else if (!is_const(w, y))
		ap_onnx_weigh(w, x);
	if (rx == 1)
		x = reshaped(w, x, 2, (int64_t[]){1, shape_of(w, x)->dim[0]});
	if (ry == 1)
		y = reshaped(w, y, 2, (int64_t[]){shape_of(w, y)->dim[0], 1});
	if (w->failed)
		return;
	x = unturned(w, x, &turn_x);
	y = unturned(w, y, &turn_y);
	z = product(w, x, y, turn_x, turn_y);
	if (z != AP_NONE && (rx == 1 || ry == 1)) {
		struct ap_shape s = *shape_of(w, z);
		uint8_t n = 0;

		for (uint8_t d = 0; d < s.rank; d++)
			if (!(rx == 1 && d == s.rank - 2) && !(ry == 1 && d == s.rank - 1))
				s.dim[n++] = s.dim[d];
		z = reshaped(w, z, n, s.dim);
	}
	ap_onnx_out(w, 0, z);
}

/* Scaled by alpha, which is 1 but for odd exporters. */
MAKER(gemm)
{
	ap_id x = need(w, 0), y = need(w, 1), bias = ap_onnx_in(w, 2), z;
	double alpha = ap_onnx_real(w, "alpha", 1), beta = ap_onnx_real(w, "beta", 1);
	bool turn_x, turn_y;

	(void)row;
	if (w->failed)
		return;
	ap_onnx_weigh(w, y);
	x = unturned(w, x, &turn_x);
	y = unturned(w, y, &turn_y);
	z = product(w, x, y, turn_x != (ap_onnx_int(w, "transA", 0) != 0),
		turn_y != (ap_onnx_int(w, "transB", 0) != 0));
	if (z != AP_NONE && alpha != 1)
		z = ap_onnx_binary(w, "Mul", z, ap_onnx_scalar(w, shape_of(w, z)->dtype, alpha));
	if (z != AP_NONE && bias < w->vals.n) {
		const struct ap_shape *s;

		ap_onnx_weigh(w, bias);
		if (beta != 1)
			bias = ap_onnx_binary(w, "Mul", bias, ap_onnx_scalar(w, shape_of(w, z)->dtype, beta));
		if (bias == AP_NONE)
			return;
		s = shape_of(w, bias);
		z = s->rank == 1 && s->dim[0] == shape_of(w, z)->dim[1] && !is_const(w, bias)
			? ap_onnx_emit(w, "BiasAdd", AP_IN(z, bias), AP_NO_ATTRS, 1)
			: ap_onnx_binary(w, "Add", z, bias);
	}
	ap_onnx_out(w, 0, z);
}

/* Letters of an einsum, per operand and of the result. */
struct einsum {
	uint32_t nin;
	char in[2][AP_MAX_RANK + 1], out[AP_MAX_RANK + 1];
	int64_t length[128];
};

static bool read_einsum(struct ap_onnx_walk *w, const char *s, struct einsum *e)
{
	char *into = e->in[0];
	uint32_t part = 0;
	size_t n = 0;

	for (; *s; s++) {
		bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');

		if (letter && n < AP_MAX_RANK && !memchr(into, *s, n)) {
			into[n++] = *s;
		} else if (*s == ',' && part == 0) {
			part = 1;
			into = e->in[1];
			n = 0;
		} else if (*s == '-' && s[1] == '>' && part < 2) {
			e->nin = part + 1;
			part = 2;
			into = e->out;
			n = 0;
			s++;
		} else if (*s != ' ') {
			break;
		}
	}
	if (*s || part != 2 || e->nin != w->node->nin) {
		(void)ap_onnx_fail(w,
			"this equation is not understood; letters of one or two operands and \"->\" are "
			"expected, none twice in an operand");
		return false;
	}
	for (uint32_t k = 0; k < e->nin; k++) {
		ap_id id = need(w, k);
		const struct ap_shape *x = id == AP_NONE ? NULL : shape_of(w, id);

		if (!x || x->rank != strlen(e->in[k])) {
			(void)ap_onnx_fail(w, "an operand has other than the equation's dimensions");
			return false;
		}
		for (uint8_t d = 0; d < x->rank; d++)
			e->length[(int)e->in[k][d]] = x->dim[d];
	}
	return true;
}

/* Sums what neither the other operand nor the result has, then puts dimensions in the order of `want`. */
static ap_id arranged(struct ap_onnx_walk *w, ap_id x, const char *have, const char *want)
{
	int64_t axes[AP_MAX_RANK], perm[AP_MAX_RANK];
	char left[AP_MAX_RANK + 1] = "";
	uint32_t n = 0;
	size_t k = 0;

	for (size_t d = 0; have[d]; d++)
		if (strchr(want, have[d]))
			left[k++] = have[d];
		else
			axes[n++] = (int64_t)d;
	if (n)
		x = summed(w, "ReduceSum", x, axes, n, false);
	for (size_t d = 0; want[d]; d++)
		perm[d] = strchr(left, want[d]) - left;
	return x == AP_NONE ? x : transposed(w, x, (uint8_t)k, perm);
}

/* Two operands: the letters that both have and the result too are batches; both, but not the result:
 * summed. */
MAKER(einsum)
{
	const char *equation = ap_onnx_word(w, "equation", "");
	struct einsum e = {0};
	char batch[AP_MAX_RANK + 1] = "", inner[AP_MAX_RANK + 1] = "", rows[AP_MAX_RANK + 1] = "";
	char columns[AP_MAX_RANK + 1] = "", a[2 * AP_MAX_RANK + 1], made[2 * AP_MAX_RANK + 1];
	int64_t dim[2 * AP_MAX_RANK], nb = 0, m = 1, k = 1, n = 1;
	ap_id x, y;

	(void)row;
	if (!read_einsum(w, equation, &e))
		return;
	for (const char *c = e.out; *c; c++)
		if (!strchr(e.in[0], *c) && (e.nin == 1 || !strchr(e.in[1], *c))) {
			(void)ap_onnx_fail(w, "the result has dimensions that no operand has");
			return;
		}
	if (e.nin == 1) {
		ap_onnx_out(w, 0, arranged(w, need(w, 0), e.in[0], e.out));
		return;
	}
	for (const char *s = e.in[0]; *s; s++) {
		bool other = strchr(e.in[1], *s), kept = strchr(e.out, *s);

		if (other && kept)
			batch[strlen(batch)] = *s;
		else if (other)
			inner[strlen(inner)] = *s;
		else if (kept)
			rows[strlen(rows)] = *s;
	}
	for (const char *s = e.in[1]; *s; s++)
		if (!strchr(e.in[0], *s) && strchr(e.out, *s))
			columns[strlen(columns)] = *s;
	for (const char *s = rows; *s; s++)
		m *= e.length[(int)*s];
	for (const char *s = columns; *s; s++)
		n *= e.length[(int)*s];
	for (const char *s = inner; *s; s++)
		k *= e.length[(int)*s];
	for (const char *s = batch; *s; s++)
		dim[nb++] = e.length[(int)*s];
	(void)strcat(strcat(strcpy(a, batch), rows), inner);
	x = arranged(w, need(w, 0), e.in[0], a);
	(void)strcat(strcat(strcpy(made, batch), inner), columns);
	y = arranged(w, need(w, 1), e.in[1], made);
	if (nb > AP_MAX_RANK - 2) {
		(void)ap_onnx_fail(w, "has more than %d batch dimensions", AP_MAX_RANK - 2);
		return;
	}
	dim[nb] = m;
	dim[nb + 1] = k;
	x = reshaped(w, x, (uint8_t)(nb + 2), dim);
	dim[nb] = k;
	dim[nb + 1] = n;
	y = reshaped(w, y, (uint8_t)(nb + 2), dim);
	x = product(w, x, y, false, false);
	(void)strcat(strcat(strcpy(made, batch), rows), columns);
	if (strlen(made) > AP_MAX_RANK || strlen(made) != strlen(e.out)) {
		(void)ap_onnx_fail(w, "the result has dimensions that no operand has");
		return;
	}
	for (size_t d = 0; made[d]; d++)
		dim[d] = e.length[(int)made[d]];
	x = reshaped(w, x, (uint8_t)strlen(made), dim);
	ap_onnx_out(w, 0, x == AP_NONE ? x : arranged(w, x, made, e.out));
}

/* Attention of opset 23: heads in their own dimension, or beside each other. */
MAKER(attention)
{
	ap_id q = need(w, 0), k = need(w, 1), v = need(w, 2), mask = ap_onnx_in(w, 3);
	const struct ap_shape *s;
	bool apart, causal = ap_onnx_int(w, "is_causal", 0) != 0;
	int64_t heads;

	if (w->failed)
		return;
	s = shape_of(w, q);
	apart = s->rank == 4;
	heads = apart ? s->dim[1] : ap_onnx_int(w, "q_num_heads", 0);
	if (heads < 1 || (!apart && s->rank != 3)) {
		(void)ap_onnx_fail(w, "has no number of heads, neither in a dimension nor as q_num_heads");
		return;
	}
	if (mask != AP_ONNX_LEFT_OUT)
		causal = false;
	ap_onnx_out(w, 0,
		ap_onnx_emit(w, row->type,
			AP_IN(q, k, v, AP_ONNX_LEFT_OUT, AP_ONNX_LEFT_OUT, AP_ONNX_LEFT_OUT, mask),
			AP_ATTRS(AP_INT_ATTR("head_num", heads),
				AP_TEXT_ATTR("input_layout", apart ? "BNSD" : "BSH"),
				AP_INT_ATTR("sparse_mode", causal ? 2 : 0)),
			1));
}

/* ---- windows ---- */

enum { MOST_SPACE = 3, MOST_WINDOW = 1 << 24 }; /* dimensions that windows slide over; their lengths */

struct windows {
	uint8_t n;
	int64_t kernel[MOST_SPACE], stride[MOST_SPACE], dilation[MOST_SPACE], pad[2 * MOST_SPACE];
	const char *mode; /* of pad_mode */
	bool same; /* padded as pad_mode same does */
};

static bool read_list(struct ap_onnx_walk *w, const char *name, uint32_t n, int64_t least, int64_t otherwise,
	int64_t *out)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(w, name);

	for (uint32_t i = 0; i < n; i++)
		out[i] = a && i < a->nints ? a->ints[i] : otherwise;
	for (uint32_t i = 0; i < n; i++)
		if ((a && a->nints != n) || out[i] < least || out[i] > MOST_WINDOW) {
			(void)ap_onnx_fail(w,
				"attribute %s has %" PRIu32 " values; %" PRIu32 " of at least %" PRId64
				" and at most 2^24 are expected",
				name, a ? a->nints : 0, n, least);
			return false;
		}
	return true;
}

/* Reads windows over what follows the second dimension. kernel: of the weight, or NULL. */
static bool read_windows(
	struct ap_onnx_walk *w, const struct ap_shape *x, const int64_t *kernel, struct windows *out)
{
	const char *how = ap_onnx_word(w, "auto_pad", "NOTSET");
	int64_t pads[2 * MOST_SPACE];
	bool none = true, same = true;

	*out = (struct windows){.n = (uint8_t)(x->rank - 2)};
	if (x->rank < 3 || x->rank > 2 + MOST_SPACE) {
		(void)ap_onnx_fail(w, "has windows over %d dimensions; 1 to 3 are expected", x->rank - 2);
		return false;
	}
	if (kernel)
		memcpy(out->kernel, kernel, out->n * sizeof *kernel);
	else if (!ap_onnx_attr(w, "kernel_shape") ||
		!read_list(w, "kernel_shape", out->n, 1, 1, out->kernel)) {
		(void)ap_onnx_fail(w, "attribute kernel_shape is missing");
		return false;
	}
	if (!read_list(w, "strides", out->n, 1, 1, out->stride) ||
		!read_list(w, "dilations", out->n, 1, 1, out->dilation) ||
		!read_list(w, "pads", 2u * out->n, 0, 0, pads))
		return false;
	for (uint8_t d = 0; d < out->n; d++) {
		int64_t len = x->dim[2 + d], reach = (out->kernel[d] - 1) * out->dilation[d] + 1;
		int64_t before = pads[d], after = pads[d + out->n];
		int64_t count = (len - 1) / out->stride[d] + 1,
			lacks = (count - 1) * out->stride[d] + reach - len;

		if (ap_onnx_int(w, "ceil_mode",
				0)) { /* windows that reach over the end, where one more begins */
			int64_t rest = (len + before + after - reach) % out->stride[d];

			if (rest > 0 &&
				len + before >
					(len + before + after - reach) / out->stride[d] * out->stride[d] +
						out->stride[d])
				after += out->stride[d] - rest;
		}
		lacks = lacks < 0 ? 0 : lacks;
		out->pad[2 * d] = before;
		out->pad[2 * d + 1] = after;
		none &= !before && !after;
		same &= before == lacks / 2 && after == lacks - lacks / 2;
	}
	if (!strncmp(how, "SAME", 4))
		out->mode = "same";
	else if (!strcmp(how, "VALID") || none)
		out->mode = "valid";
	else
		out->mode = same ? "same" : "pad";
	out->same = !strcmp(out->mode, "same");
	return true;
}

/* A vector is a picture of height 1. */
static ap_id raised(struct ap_onnx_walk *w, ap_id x)
{
	return ap_onnx_emit(w, "ExpandDims", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){2}, 1)), 1);
}

static ap_id lowered(struct ap_onnx_walk *w, ap_id x)
{
	return ap_onnx_emit(w, "Squeeze", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){2}, 1)), 1);
}

static void raise_windows(struct windows *win)
{
	win->kernel[1] = win->kernel[0];
	win->stride[1] = win->stride[0];
	win->dilation[1] = win->dilation[0];
	win->pad[2] = win->pad[0];
	win->pad[3] = win->pad[1];
	win->kernel[0] = win->stride[0] = win->dilation[0] = 1;
	win->pad[0] = win->pad[1] = 0;
	win->n = 2;
}

static ap_id with_bias(struct ap_onnx_walk *w, ap_id x, ap_id bias, bool volume)
{
	if (bias >= w->vals.n || x == AP_NONE)
		return x;
	ap_onnx_weigh(w, bias);
	return volume ? ap_onnx_emit(w, "BiasAdd", AP_IN(x, bias),
				AP_ATTRS(AP_TEXT_ATTR("data_format", "NCDHW")), 1)
			: ap_onnx_emit(w, "BiasAdd", AP_IN(x, bias), AP_NO_ATTRS, 1);
}

MAKER(conv)
{
	ap_id x = need(w, 0), weight = need(w, 1), y;
	int64_t group = ap_onnx_int(w, "group", 1);
	struct windows win;
	struct ap_attr attr[7];
	uint32_t n = 0;
	bool flat;

	(void)row;
	if (w->failed)
		return;
	ap_onnx_weigh(w, weight);
	w->convs += !strncmp(w->node->in[1], "onnx::Conv_", 11);
	if (shape_of(w, weight)->rank != shape_of(w, x)->rank) {
		(void)ap_onnx_fail(w, "operand and weight have different numbers of dimensions");
		return;
	}
	if (!read_windows(w, shape_of(w, x), shape_of(w, weight)->dim + 2, &win))
		return;
	flat = win.n == 1;
	if (flat) {
		x = raised(w, x);
		weight = raised(w, weight);
		raise_windows(&win);
	}
	if (w->failed)
		return;
	attr[n++] = (struct ap_attr)AP_INTS_ATTR("kernel_size", win.kernel, win.n);
	attr[n++] = (struct ap_attr)AP_INTS_ATTR("stride", win.stride, win.n);
	attr[n++] = (struct ap_attr)AP_TEXT_ATTR("pad_mode", win.mode);
	if (!strcmp(win.mode, "pad"))
		attr[n++] = (struct ap_attr)AP_INTS_ATTR("pad", win.pad, 2u * win.n);
	for (uint8_t d = 0; d < win.n; d++)
		if (win.dilation[d] != 1) {
			attr[n++] = (struct ap_attr)AP_INTS_ATTR("dilation", win.dilation, win.n);
			break;
		}
	if (group != 1) {
		attr[n++] = (struct ap_attr)AP_INT_ATTR("group", group);
		attr[n++] = (struct ap_attr)AP_INT_ATTR("out_channel", shape_of(w, weight)->dim[0]);
	}
	y = ap_onnx_emit(w, win.n == 3 ? "Conv3D" : "Conv2D", AP_IN(x, weight), n, attr, 1);
	if (flat && y != AP_NONE)
		y = lowered(w, y);
	ap_onnx_out(w, 0, with_bias(w, y, ap_onnx_in(w, 2), win.n == 3));
}

MAKER(conv_transpose)
{
	ap_id x = need(w, 0), weight = need(w, 1), y;
	int64_t size[4], extra[MOST_SPACE], pads[2 * MOST_SPACE];
	struct windows win;
	bool flat;

	if (w->failed)
		return;
	ap_onnx_weigh(w, weight);
	if (shape_of(w, weight)->rank != shape_of(w, x)->rank || shape_of(w, x)->rank > 4) {
		(void)ap_onnx_fail(w, "has windows over other than 1 or 2 dimensions");
		return;
	}
	if (!read_windows(w, shape_of(w, x), shape_of(w, weight)->dim + 2, &win) ||
		!read_list(w, "output_padding", win.n, 0, 0, extra))
		return;
	flat = win.n == 1;
	if (flat) {
		x = raised(w, x);
		weight = raised(w, weight);
		raise_windows(&win);
		extra[1] = extra[0];
		extra[0] = 0;
	}
	if (w->failed)
		return;
	memcpy(pads, win.pad, sizeof pads);
	size[0] = shape_of(w, x)->dim[0];
	size[1] = shape_of(w, weight)->dim[1];
	for (uint8_t d = 0; d < 2; d++)
		size[2 + d] = (shape_of(w, x)->dim[2 + d] - 1) * win.stride[d] - pads[2 * d] -
			pads[2 * d + 1] + (win.kernel[d] - 1) * win.dilation[d] + 1 + extra[d];
	y = ap_onnx_emit(w, row->type, AP_IN(x, weight), AP_ATTRS(AP_INTS_ATTR("kernel_size", win.kernel, 2),
		AP_INTS_ATTR("stride", win.stride, 2), AP_TEXT_ATTR("pad_mode", "pad"),
		AP_INTS_ATTR("pad", pads, 4), AP_INTS_ATTR("dilation", win.dilation, 2),
		AP_INTS_ATTR("input_size", size, 4)), 1);
	if (flat && y != AP_NONE)
		y = lowered(w, y);
	ap_onnx_out(w, 0, with_bias(w, y, ap_onnx_in(w, 2), false));
}

MAKER(pool)
{
	ap_id x = need(w, 0), y;
	bool mean = !strcmp(row->name, "AveragePool"), whole = true, flat;
	struct windows win;
	struct ap_attr attr[4];
	uint32_t n = 0;

	if (w->failed || !read_windows(w, shape_of(w, x), NULL, &win))
		return;
	if (w->node->nout > 1 && *w->node->out[1])
		ap_onnx_out(w, 1, AP_NONE); /* where maxima are: a fault only if it is read */
	for (uint8_t d = 0; d < win.n; d++)
		whole &= win.kernel[d] == shape_of(w, x)->dim[2 + d] && !win.pad[2 * d] &&
			!win.pad[2 * d + 1];
	if (mean && whole) {
		ap_onnx_out(w, 0, summed(w, "ReduceMean", x, (int64_t[]){2, 3, 4}, win.n, true));
		return;
	}
	flat = win.n == 1;
	if (flat) {
		x = raised(w, x);
		raise_windows(&win);
	}
	attr[n++] = (struct ap_attr)AP_INTS_ATTR("kernel_size", win.kernel, win.n);
	attr[n++] = (struct ap_attr)AP_INTS_ATTR("strides", win.stride, win.n);
	attr[n++] = (struct ap_attr)AP_TEXT_ATTR("pad_mode", win.mode);
	if (!strcmp(win.mode, "pad"))
		attr[n++] = (struct ap_attr)AP_INTS_ATTR("pad", win.pad, 2u * win.n);
	y = ap_onnx_emit(w, win.n == 3 ? mean ? "AvgPool3D" : "MaxPool3D" : row->type, AP_IN(x), n, attr, 1);
	ap_onnx_out(w, 0, flat && y != AP_NONE ? lowered(w, y) : y);
}

MAKER(global_pool)
{
	ap_id x = need(w, 0);
	uint8_t rank = w->failed ? 0 : shape_of(w, x)->rank;

	if (!w->failed)
		ap_onnx_out(w, 0,
			summed(w, row->type, x, (int64_t[]){2, 3, 4, 5, 6, 7}, rank > 2 ? rank - 2u : 0,
				true));
}

/* Of pictures; the size comes as numbers, or as factors. */
MAKER(resize)
{
	bool old = !strcmp(row->name, "Upsample");
	ap_id x = need(w, 0), sizes = old ? AP_ONNX_LEFT_OUT : ap_onnx_in(w, 3),
		scales = ap_onnx_in(w, old ? 1 : 2);
	bool nearest = !strcmp(ap_onnx_word(w, "mode", "nearest"), "nearest");
	const struct ap_onnx_attr *a = ap_onnx_attr(w, "scales");
	const struct ap_onnx_numbers *v = NULL;
	const struct ap_shape *s;
	int64_t size[2];

	if (w->failed)
		return;
	if (!old && w->node->nin == 2)
		scales = ap_onnx_in(w, 1); /* of opset 10 */
	s = shape_of(w, x);
	if (sizes < w->vals.n && ap_onnx_val(w, sizes)->values)
		v = ap_onnx_val(w, sizes)->values;
	else if (scales < w->vals.n && ap_onnx_val(w, scales)->values)
		v = ap_onnx_val(w, scales)->values;
	else if (a)
		v = &(struct ap_onnx_numbers){.n = a->nfloats, .f = a->floats};
	if (s->rank != 4 || !v || v->n != 4) {
		(void)ap_onnx_fail(w, "sizes are not known, or the operand is no picture of 4 dimensions");
		return;
	}
	for (int d = 0; d < 2; d++) {
		double wanted = v->i ? (double)v->i[2 + d] : floor((double)s->dim[2 + d] * v->f[2 + d]);

		if (!(wanted >= 1 && wanted <= INT32_MAX)) {
			(void)ap_onnx_fail(w, "gives pictures of no size that is possible");
			return;
		}
		size[d] = (int64_t)wanted;
	}
	ap_onnx_out(w, 0, ap_onnx_emit(w, nearest ? "ResizeNearestNeighbor" : row->type, AP_IN(x),
		AP_ATTRS(AP_INTS_ATTR("size", size, 2)), 1));
}

/* ---- norms ---- */

static void take_state(struct ap_onnx_walk *w, ap_id id)
{
	ap_onnx_weigh(w, id);
	if (id < w->vals.n)
		ap_onnx_val(w, id)->state = true;
}

/* In training, whatever the export was made for. */
MAKER(batch_norm)
{
	ap_id x = need(w, 0), in[5] = {x};
	double momentum = 1 - ap_onnx_real(w, "momentum", 0.9);

	for (uint32_t i = 1; i < 5; i++) {
		in[i] = need(w, i);
		if (i < 3)
			ap_onnx_weigh(w, in[i]);
		else
			take_state(w, in[i]);
	}
	ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, 5, in, AP_ATTRS(AP_FLAG_ATTR("is_training", true),
		AP_REAL_ATTR("epsilon", (float)ap_onnx_real(w, "epsilon", 1e-5)),
		AP_REAL_ATTR("momentum", round(momentum * 1e6) / 1e6)), 5)); /* and statistics */
	for (uint32_t i = 1; i < w->node->nout && i < 3; i++)
		if (*w->node->out[i])
			ap_onnx_out(w, i, in[i + 2]);
}

/* Ones for a scale, zeros for a shift: as if they were not there. */
static ap_id unless_idle(struct ap_onnx_walk *w, ap_id id, double idle)
{
	double v;

	if (id < w->vals.n && ap_onnx_number(w, id, &v) && v == idle)
		return AP_ONNX_LEFT_OUT;
	if (id < w->vals.n && ap_onnx_val(w, id)->values && is_const(w, id)) {
		const struct ap_onnx_numbers *n = ap_onnx_val(w, id)->values;
		bool all = n->f != NULL;

		for (uint32_t i = 0; all && i < n->n; i++)
			all = n->f[i] == idle;
		if (all)
			return AP_ONNX_LEFT_OUT;
	}
	ap_onnx_weigh(w, id);
	return id;
}

MAKER(group_norm)
{
	ap_id x = need(w, 0), scale = ap_onnx_in(w, 1), shift = ap_onnx_in(w, 2);
	bool each = !strcmp(row->name, "InstanceNormalization");

	if (w->failed)
		return;
	if (each) {
		scale = unless_idle(w, scale, 1);
		shift = unless_idle(w, shift, 0);
	} else {
		ap_onnx_weigh(w, scale);
		ap_onnx_weigh(w, shift);
	}
	if (shape_of(w, x)->rank < 2) {
		(void)ap_onnx_fail(w, "has no channels");
		return;
	}
	ap_onnx_out(w, 0,
		ap_onnx_emit(w, row->type, AP_IN(x, scale, shift),
			AP_ATTRS(AP_INT_ATTR("num_groups",
				each ? shape_of(w, x)->dim[1] : ap_onnx_int(w, "num_groups", 1))),
			1));
}

/* The shift that a norm lacks: zeros, which nothing trains. */
static ap_id zeros(struct ap_onnx_walk *w, const struct ap_shape *like)
{
	ap_id id = ap_onnx_filled(w, *like, 0);

	ap_onnx_val(w, id)->name = ap_arena_printf(w->ctx->arena, "zeros.%s",
		ap_shape_text(w->ctx->arena, like->dim, like->rank));
	return id;
}

MAKER(layer_norm)
{
	ap_id x = need(w, 0), scale = need(w, 1), shift = ap_onnx_in(w, 2);
	uint8_t axis;

	if (w->failed || !axis_of(w, ap_onnx_int(w, "axis", -1), shape_of(w, x)->rank, &axis))
		return;
	ap_onnx_weigh(w, scale);
	ap_onnx_weigh(w, shift);
	if (shift == AP_ONNX_LEFT_OUT)
		shift = zeros(w, shape_of(w, scale));
	ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x, scale, shift), AP_ATTRS(
		AP_INT_ATTR("begin_norm_axis", axis), AP_INT_ATTR("begin_params_axis", axis),
		AP_REAL_ATTR("epsilon", (float)ap_onnx_real(w, "epsilon", 1e-5))), 1));
}

MAKER(rms_norm)
{
	ap_id x = need(w, 0), scale = need(w, 1);

	ap_onnx_weigh(w, scale);
	ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x, scale), AP_ATTRS(
		AP_REAL_ATTR("epsilon", (float)ap_onnx_real(w, "epsilon", 1e-5))), 1));
}

/* Before opset 13, over all dimensions from the axis on. */
MAKER(softmax)
{
	bool old = w->model->opset < 13;
	ap_id x = need(w, 0);
	int64_t axes[AP_MAX_RANK];
	uint32_t n = 0;
	uint8_t axis;

	if (w->failed || !axis_of(w, ap_onnx_int(w, "axis", old ? 1 : -1), shape_of(w, x)->rank, &axis))
		return;
	axes[n++] = axis;
	for (uint8_t d = axis + 1; old && d < shape_of(w, x)->rank; d++)
		if (shape_of(w, x)->dim[d] != 1)
			axes[n++] = d;
	ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", axes, n)), 1));
}

MAKER(lp_norm)
{
	ap_id x = need(w, 0);
	uint8_t axis;

	if (!w->failed && axis_of(w, ap_onnx_int(w, "axis", -1), shape_of(w, x)->rank, &axis))
		ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x),
			AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){axis}, 1)), 1));
}

/* x / (bias + alpha * mean of squares over near channels) ^ beta; the mean is a pooling along the channels.
 */
MAKER(lrn)
{
	ap_id x = need(w, 0), y;
	int64_t size = ap_onnx_int(w, "size", 1), count;
	struct ap_shape s;

	if (w->failed)
		return;
	s = *shape_of(w, x);
	if (s.rank < 2 || !ap_product(s.dim + 2, s.rank - 2u, &count) || size < 1) {
		(void)ap_onnx_fail(w, "has no channels, or windows of no length");
		return;
	}
	y = reshaped(w, unary(w, "Square", x), 4, (int64_t[]){s.dim[0], 1, s.dim[1], count});
	if (y != AP_NONE)
		y = ap_onnx_emit(w, row->type, AP_IN(y), AP_ATTRS(AP_INTS_ATTR("kernel_size",
			((int64_t[]){size, 1}), 2), AP_INTS_ATTR("strides", ((int64_t[]){1, 1}), 2),
			AP_TEXT_ATTR("pad_mode", "same")), 1);
	y = reshaped(w, y, s.rank, s.dim);
	y = ap_onnx_binary(w, "Mul", y, ap_onnx_scalar(w, s.dtype, ap_onnx_real(w, "alpha", 1e-4)));
	y = ap_onnx_binary(w, "Add", y, ap_onnx_scalar(w, s.dtype, ap_onnx_real(w, "bias", 1)));
	y = ap_onnx_binary(w, "Pow", y, ap_onnx_scalar(w, s.dtype, ap_onnx_real(w, "beta", 0.75)));
	ap_onnx_out(w, 0, ap_onnx_binary(w, "Div", x, y));
}

/* Scores [n, classes, ...] and classes [n, ...]: rows of scores. */
MAKER(loss)
{
	ap_id x = need(w, 0), labels = need(w, 1);
	int64_t perm[AP_MAX_RANK], rows = 1;
	struct ap_shape s;

	if (w->failed)
		return;
	s = *shape_of(w, x);
	if (s.rank < 2 || strcmp(ap_onnx_word(w, "reduction", "mean"), "mean")) {
		(void)ap_onnx_fail(w, "is no mean over rows of scores");
		return;
	}
	for (uint8_t d = 0; d < s.rank; d++) {
		perm[d] = d == 0 ? 0 : d + 1 < s.rank ? d + 1 : 1;
		rows *= d == 1 ? 1 : s.dim[d];
	}
	x = reshaped(w, transposed(w, x, s.rank, perm), 2, (int64_t[]){rows, s.dim[1]});
	labels = reshaped(w, labels, 1, &rows);
	if (x != AP_NONE && labels != AP_NONE)
		x = ap_onnx_emit(w, row->type, AP_IN(x, labels), AP_NO_ATTRS, 1);
	ap_onnx_out(w, 0, x);
	if (w->node->nout > 1 && *w->node->out[1])
		ap_onnx_out(w, 1, AP_NONE);
}

/* ---- reductions ---- */

/* The axes of a reduction, as an attribute or an operand; none mean all. False: nothing is reduced. */
static bool read_axes(struct ap_onnx_walk *w, uint8_t rank, int64_t *axes, uint32_t *n)
{
	const int64_t *v;
	uint8_t axis;

	*n = 0;
	if (ap_onnx_ints(w, 1, "axes", &v, n) && *n) {
		for (uint32_t i = 0; i < *n; i++) {
			if (*n > AP_MAX_RANK || !axis_of(w, v[i], rank, &axis))
				return false;
			axes[i] = axis;
		}
		return true;
	}
	if (ap_onnx_int(w, "noop_with_empty_axes", 0))
		return false;
	for (*n = 0; *n < rank; (*n)++)
		axes[*n] = *n;
	return true;
}

MAKER(reduce)
{
	static const struct {
		const char *name, *before, *behind;
	} around[] = {{"ReduceL1", "Abs", NULL}, {"ReduceL2", "Square", "Sqrt"},
		{"ReduceLogSum", NULL, "Log"}, {"ReduceLogSumExp", "Exp", "Log"},
		{"ReduceSumSquare", "Square", NULL}};
	ap_id x = need(w, 0);
	const char *before = NULL, *behind = NULL;
	int64_t axes[AP_MAX_RANK];
	uint32_t n;

	if (w->failed)
		return;
	for (size_t i = 0; i < AP_COUNT(around); i++)
		if (!strcmp(around[i].name, row->name)) {
			before = around[i].before;
			behind = around[i].behind;
		}
	if (!read_axes(w, shape_of(w, x)->rank, axes, &n)) {
		ap_onnx_out(w, 0, x);
		return;
	}
	if (before)
		x = unary(w, before, x);
	x = x == AP_NONE ? x : summed(w, row->type, x, axes, n, ap_onnx_int(w, "keepdims", 1) != 0);
	ap_onnx_out(w, 0, behind && x != AP_NONE ? unary(w, behind, x) : x);
}

static void is_int64(struct ap_onnx_walk *w, ap_id id)
{
	if (id != AP_NONE)
		ap_onnx_val(w, id)->shape.dtype = AP_INT64;
}

MAKER(extreme)
{
	ap_id x = need(w, 0);
	uint8_t axis;

	if (w->failed || !axis_of(w, ap_onnx_int(w, "axis", 0), shape_of(w, x)->rank, &axis))
		return;
	x = ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){axis}, 1)), 1);
	is_int64(w, x);
	if (x != AP_NONE && ap_onnx_int(w, "keepdims", 1))
		x = ap_onnx_emit(
			w, "ExpandDims", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){axis}, 1)), 1);
	ap_onnx_out(w, 0, x);
}

MAKER(cumsum)
{
	ap_id x = need(w, 0);
	const int64_t *v;
	uint32_t n;
	uint8_t axis;

	if (!w->failed && ap_onnx_ints(w, 1, NULL, &v, &n) && n == 1 &&
		axis_of(w, v[0], shape_of(w, x)->rank, &axis))
		ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x),
			AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){axis}, 1)), 1));
}

MAKER(topk)
{
	ap_id x = need(w, 0);
	const int64_t *v;
	uint32_t n;
	uint8_t axis;

	if (w->failed || !axis_of(w, ap_onnx_int(w, "axis", -1), shape_of(w, x)->rank, &axis))
		return;
	if (ap_onnx_attr(w, "k")) {
		v = &ap_onnx_attr(w, "k")->i;
		n = 1;
	} else if (!ap_onnx_ints(w, 1, NULL, &v, &n) || n != 1) {
		(void)ap_onnx_fail(w, "has no number of elements to take");
		return;
	}
	x = ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_INT_ATTR("k", v[0]),
		AP_INTS_ATTR("dim", (int64_t[]){axis}, 1)), 2);
	if (x != AP_NONE)
		is_int64(w, x + 1);
	ap_onnx_out(w, 0, x);
	ap_onnx_out(w, 1, x == AP_NONE ? x : x + 1);
}

/* ---- movement ---- */

/* The batch that the export was made with is no more; a length that stood for it follows. */
static void follow_batch(
	const struct ap_onnx_walk *w, const struct ap_shape *x, int64_t count, uint32_t n, int64_t *v)
{
	int64_t said = 1;
	bool open = false;

	if (w->batch_from < 1 || w->batch_from == w->batch_to || !n || v[0] < 1)
		return;
	for (uint32_t d = 0; d < n; d++) {
		open |= v[d] == -1;
		if (v[d] != -1 && !ap_mul(said, v[d], &said))
			return;
	}
	if (open ? v[0] == w->batch_from && x->rank && x->dim[0] == w->batch_to
		 : said != count && v[0] % w->batch_from == 0 &&
				ap_mul(said / w->batch_from, w->batch_to, &said) && said == count)
		v[0] = v[0] / w->batch_from * w->batch_to;
}

MAKER(reshape)
{
	ap_id x = need(w, 0);
	int64_t dim[AP_MAX_RANK], count = 1, known = 1;
	const int64_t *v;
	const struct ap_shape *s;
	uint32_t n;
	int open = -1;

	(void)row;
	if (w->failed || !ap_onnx_ints(w, 1, "shape", &v, &n))
		return;
	s = shape_of(w, x);
	if (n > AP_MAX_RANK) {
		(void)ap_onnx_fail(
			w, "gives %" PRIu32 " dimensions; at most %d are supported", n, AP_MAX_RANK);
		return;
	}
	for (uint32_t d = 0; d < n; d++)
		dim[d] = v[d] == 0 && d < s->rank ? s->dim[d] : v[d];
	(void)ap_product(s->dim, s->rank, &count);
	follow_batch(w, s, count, n, dim);
	for (uint32_t d = 0; d < n; d++)
		if (dim[d] == -1)
			open = (int)d;
		else if (dim[d] < 1 || !ap_mul(known, dim[d], &known)) {
			(void)ap_onnx_fail(w, "gives a dimension of length %" PRId64, dim[d]);
			return;
		}
	if (open >= 0)
		dim[open] = count / known;
	if (open >= 0 ? count % known || !dim[open] : known != count) {
		(void)ap_onnx_fail(w, "%" PRId64 " elements of shape %s cannot be shaped as %s%s", count,
			ap_shape_text(w->ctx->arena, s->dim, s->rank),
			ap_shape_text(w->ctx->arena, v, (uint8_t)n),
			w->batch_from != w->batch_to
				? "; the batch may be part of that: export with a dynamic one"
				: "");
		return;
	}
	ap_onnx_out(w, 0, reshaped(w, x, (uint8_t)n, dim));
}

MAKER(flatten)
{
	ap_id x = need(w, 0);
	int64_t axis = ap_onnx_int(w, "axis", 1), dim[2] = {1, 1};
	const struct ap_shape *s;

	if (w->failed)
		return;
	s = shape_of(w, x);
	axis += axis < 0 ? s->rank : 0;
	if (axis < 0 || axis > s->rank) {
		(void)ap_onnx_fail(w, "axis %" PRId64 " is not among %d dimensions", axis, s->rank);
		return;
	}
	for (uint8_t d = 0; d < s->rank; d++)
		dim[d >= axis] *= s->dim[d];
	ap_onnx_out(w, 0, axis == 1 && s->rank > 2 ? unary(w, row->type, x) : reshaped(w, x, 2, dim));
}

MAKER(squeeze)
{
	ap_id x = need(w, 0);
	const int64_t *v = NULL;
	int64_t axes[AP_MAX_RANK];
	uint32_t n = 0;
	uint8_t axis;

	if (w->failed)
		return;
	(void)ap_onnx_ints(w, 1, "axes", &v, &n);
	if (w->failed || n > AP_MAX_RANK)
		return;
	for (uint32_t i = 0; i < n; i++) {
		if (!axis_of(w, v[i], shape_of(w, x)->rank, &axis))
			return;
		axes[i] = axis;
	}
	for (uint8_t d = 0; !v && d < shape_of(w, x)->rank; d++)
		if (shape_of(w, x)->dim[d] == 1)
			axes[n++] = d;
	ap_onnx_out(w, 0,
		n ? ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", axes, n)), 1) : x);
}

MAKER(unsqueeze)
{
	ap_id x = need(w, 0);
	const int64_t *v;
	bool is_new[AP_MAX_RANK] = {false};
	uint32_t n;
	uint8_t axis, rank;

	if (w->failed || !ap_onnx_ints(w, 1, "axes", &v, &n))
		return;
	if (shape_of(w, x)->rank + n > AP_MAX_RANK) {
		(void)ap_onnx_fail(w, "gives more than %d dimensions", AP_MAX_RANK);
		return;
	}
	rank = (uint8_t)(shape_of(w, x)->rank + n);
	for (uint32_t i = 0; i < n; i++) {
		if (!axis_of(w, v[i], rank, &axis))
			return;
		is_new[axis] = true;
	}
	for (uint8_t d = 0; d < rank && x != AP_NONE; d++)
		if (is_new[d])
			x = ap_onnx_emit(w, row->type, AP_IN(x),
				AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){d}, 1)), 1);
	ap_onnx_out(w, 0, x);
}

MAKER(transpose)
{
	const struct ap_onnx_attr *a = ap_onnx_attr(w, "perm");
	ap_id x = need(w, 0);
	int64_t perm[AP_MAX_RANK];
	uint8_t rank;

	(void)row;
	if (w->failed)
		return;
	rank = shape_of(w, x)->rank;
	if (a && a->nints != rank) {
		(void)ap_onnx_fail(
			w, "attribute perm has %" PRIu32 " values; %d are expected", a->nints, rank);
		return;
	}
	for (uint8_t d = 0; d < rank; d++)
		perm[d] = a ? a->ints[d] : rank - 1 - d;
	ap_onnx_out(w, 0, transposed(w, x, rank, perm));
}

MAKER(concat)
{
	ap_id *in = AP_NEW_N(w->ctx->arena, ap_id, w->node->nin + 1);
	uint32_t n = 0;
	uint8_t axis;

	for (uint32_t i = 0; i < w->node->nin; i++) {
		in[n] = need(w, i);
		n += in[n] != AP_NONE && !ap_onnx_is_empty(shape_of(w, in[n]));
	}
	if (w->failed || !n || !axis_of(w, ap_onnx_int(w, "axis", 1), shape_of(w, in[0])->rank, &axis))
		return;
	ap_onnx_out(w, 0, n == 1 ? in[0] : ap_onnx_emit(w, row->type, n, in,
		AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){axis}, 1)), 1));
}

MAKER(split)
{
	ap_id x = need(w, 0), first;
	const int64_t *v = NULL;
	int64_t *sizes = AP_NEW_N(w->ctx->arena, int64_t, w->node->nout + 1), total, left;
	uint32_t n = 0, nout = w->node->nout;
	bool equal = true;
	uint8_t axis;

	if (w->failed || !axis_of(w, ap_onnx_int(w, "axis", 0), shape_of(w, x)->rank, &axis))
		return;
	(void)ap_onnx_ints(w, 1, "split", &v, &n);
	if (w->failed)
		return;
	if (!nout || (n && n != nout)) {
		(void)ap_onnx_fail(w, "has %" PRIu32 " lengths for %" PRIu32 " results", n, nout);
		return;
	}
	total = left = shape_of(w, x)->dim[axis];
	for (uint32_t i = 0; i < nout; i++) {
		int64_t each = (total + nout - 1) / nout;

		sizes[i] = n ? v[i] : left < each ? left : each;
		left -= sizes[i];
		equal &= sizes[i] == sizes[0];
	}
	first = nout == 1 ? x : equal ? ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(
		AP_INTS_ATTR("axis", (int64_t[]){axis}, 1), AP_INT_ATTR("output_num", nout)), nout)
		: ap_onnx_emit(w, "SplitV", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("size_splits", sizes, nout),
		AP_INT_ATTR("split_dim", axis), AP_INT_ATTR("num_split", nout)), nout);
	for (uint32_t i = 0; i < nout; i++)
		ap_onnx_out(w, i, first == AP_NONE ? first : first + i);
}

/* Bounds as ONNX has them: clamped; a step may be negative only over all of a dimension. */
MAKER(slice)
{
	ap_id x = need(w, 0);
	const int64_t *starts, *ends, *axes = NULL, *steps = NULL;
	int64_t begin[AP_MAX_RANK], end[AP_MAX_RANK], step[AP_MAX_RANK], back[AP_MAX_RANK];
	uint32_t ns, ne, na = 0, np = 0, nback = 0;
	struct ap_shape s;
	bool all = true;

	if (w->failed || !ap_onnx_ints(w, 1, "starts", &starts, &ns) ||
		!ap_onnx_ints(w, 2, "ends", &ends, &ne))
		return;
	(void)ap_onnx_ints(w, 3, "axes", &axes, &na);
	(void)ap_onnx_ints(w, 4, NULL, &steps, &np);
	if (w->failed)
		return;
	s = *shape_of(w, x);
	for (uint8_t d = 0; d < s.rank; d++) {
		begin[d] = 0;
		end[d] = s.dim[d];
		step[d] = 1;
	}
	if (ns != ne || (na && na != ns) || (np && np != ns) || ns > s.rank) {
		(void)ap_onnx_fail(w, "has bounds of different numbers");
		return;
	}
	for (uint32_t i = 0; i < ns; i++) {
		int64_t n, from = starts[i], to = ends[i];
		uint8_t d;

		if (!axis_of(w, na ? axes[i] : i, s.rank, &d))
			return;
		n = s.dim[d];
		step[d] = np ? steps[i] : 1;
		from = from < -n ? 0 : from < 0 ? from + n : from > n ? n : from;
		to = to < -n ? -1 : to < 0 ? to + n : to > n ? n : to;
		if (step[d] == -1 && from >= n - 1 && to < 0) {
			back[nback++] = d;
			step[d] = 1;
			continue;
		}
		to = to < 0 ? 0 : to;
		if (step[d] < 1 || to <= from) {
			(void)ap_onnx_fail(w, "takes nothing of dimension %d, or part of it backwards", d);
			return;
		}
		begin[d] = from;
		end[d] = to;
		all &= from == 0 && to == n && step[d] == 1;
	}
	if (nback)
		x = ap_onnx_emit(w, "ReverseV2", AP_IN(x), AP_ATTRS(AP_INTS_ATTR("axis", back, nback)), 1);
	if (x != AP_NONE && !all)
		x = ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_INTS_ATTR("begin", begin, s.rank),
			AP_INTS_ATTR("end", end, s.rank), AP_INTS_ATTR("strides", step, s.rank)), 1);
	ap_onnx_out(w, 0, x);
}

/* One index of a dimension is a slice; several are looked up. */
MAKER(gather)
{
	ap_id x = need(w, 0), y = need(w, 1);
	int64_t begin[AP_MAX_RANK], end[AP_MAX_RANK], step[AP_MAX_RANK];
	struct ap_shape s;
	double index;
	uint8_t axis;

	if (w->failed || !axis_of(w, ap_onnx_int(w, "axis", 0), shape_of(w, x)->rank, &axis))
		return;
	s = *shape_of(w, x);
	if (ap_onnx_number(w, y, &index) && shape_of(w, y)->rank == 0) {
		index += index < 0 ? (double)s.dim[axis] : 0;
		if (!(index >= 0 && index < (double)s.dim[axis])) {
			(void)ap_onnx_fail(w, "takes an element behind the end of dimension %d", axis);
			return;
		}
		for (uint8_t d = 0; d < s.rank; d++) {
			begin[d] = d == axis ? (int64_t)index : 0;
			end[d] = d == axis ? (int64_t)index + 1 : s.dim[d];
			step[d] = 1;
		}
		ap_onnx_out(w, 0,
			ap_onnx_emit(w, "StridedSlice", AP_IN(x),
				AP_ATTRS(AP_INTS_ATTR("begin", begin, s.rank),
					AP_INTS_ATTR("end", end, s.rank),
					AP_INTS_ATTR("strides", step, s.rank),
					AP_INT_ATTR("shrink_axis_mask", 1 << axis)),
				1));
		return;
	}
	if (!is_const(w, y))
		ap_onnx_weigh(w, x);
	ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x, y),
		AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){axis}, 1)), 1));
}

MAKER(gather_elements)
{
	ap_id x = need(w, 0), y = need(w, 1);
	uint8_t axis;

	if (!w->failed && axis_of(w, ap_onnx_int(w, "axis", 0), shape_of(w, x)->rank, &axis))
		ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x, y),
			AP_ATTRS(AP_INTS_ATTR("dim", (int64_t[]){axis}, 1)), 1));
}

MAKER(gather_points)
{
	ap_id x = need(w, 0), y = need(w, 1);

	if (ap_onnx_int(w, "batch_dims", 0))
		(void)ap_onnx_fail(w, "has batch_dims, for which no rule is known");
	ap_onnx_out(w, 0, ap_onnx_emit(w, row->type, AP_IN(x, y), AP_NO_ATTRS, 1));
}

/* Coordinates [rank, n] of the n largest elements, which are those that are not zero. */
static ap_id places(struct ap_onnx_walk *w, ap_id x, const char *type, int64_t n)
{
	struct ap_shape s = *shape_of(w, x);
	ap_id in[AP_MAX_RANK], at;
	int64_t count = 1, inner;

	(void)ap_product(s.dim, s.rank, &count);
	if (!ap_dtype_is_float(s.dtype))
		x = ap_onnx_emit(w, "Cast", AP_IN(x), AP_ATTRS(AP_TEXT_ATTR("dst_type", "float32")), 1);
	x = reshaped(w, x, 1, &count);
	if (x != AP_NONE)
		x = ap_onnx_emit(w, type, AP_IN(x),
			AP_ATTRS(AP_INT_ATTR("k", n), AP_INTS_ATTR("dim", (int64_t[]){0}, 1)), 2);
	if (x == AP_NONE || !s.rank)
		return AP_NONE;
	at = x + 1;
	ap_onnx_val(w, at)->shape.dtype = AP_INT64;
	for (uint8_t d = 0; d < s.rank; d++) {
		inner = 1;
		for (uint8_t k = d + 1; k < s.rank; k++)
			inner *= s.dim[k];
		in[d] = inner == 1
			? at
			: ap_onnx_binary(w, "FloorDiv", at, ap_onnx_scalar(w, AP_INT64, (double)inner));
		if (d > 0)
			in[d] = ap_onnx_binary(
				w, "FloorMod", in[d], ap_onnx_scalar(w, AP_INT64, (double)s.dim[d]));
	}
	return s.rank == 1 ? ap_onnx_emit(w, "ExpandDims", AP_IN(at),
					AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){0}, 1)), 1)
				: ap_onnx_emit(w, "Stack", s.rank, in,
					AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){0}, 1)), 1);
}

/* As many places as there are elements that are not zero, which the user knows. */
MAKER(nonzero)
{
	ap_id x = need(w, 0);
	const char *name = w->node->nout ? w->node->out[0] : "";
	int64_t found = 0;

	if (w->failed)
		return;
	for (size_t i = 0; i < w->params->ndim; i++)
		if (!strcmp(w->params->dim[i].name, name) || !strcmp(w->params->dim[i].name, row->name))
			found = w->params->dim[i].length;
	if (!found) {
		(void)ap_onnx_fail(w,
			"finds as many elements as the data has; expected --dim %s=N, or --dim NonZero=N "
			"for all such nodes",
			ap_diag_name(w->ctx->diag, name));
		return;
	}
	ap_onnx_out(w, 0, places(w, x, row->type, found));
}

MAKER(one_hot)
{
	ap_id x = need(w, 0), values = need(w, 2), on, off;
	const struct ap_onnx_numbers *v;
	enum ap_dtype t;
	double depth;

	if (w->failed)
		return;
	if (!ap_onnx_number(w, need(w, 1), &depth) || !(depth >= 1 && depth <= INT32_MAX)) {
		(void)ap_onnx_fail(w, "the number of classes is not known");
		return;
	}
	v = ap_onnx_val(w, values)->values;
	t = shape_of(w, values)->dtype;
	off = ap_onnx_scalar(w, t, v && v->n == 2 ? v->i ? (double)v->i[0] : v->f[0] : 0);
	on = ap_onnx_scalar(w, t, v && v->n == 2 ? v->i ? (double)v->i[1] : v->f[1] : 1);
	ap_onnx_out(w, 0,
		ap_onnx_emit(w, row->type, AP_IN(x, on, off),
			AP_ATTRS(AP_INT_ATTR("depth", (int64_t)depth),
				AP_INTS_ATTR("axis", (int64_t[]){ap_onnx_int(w, "axis", -1)}, 1)),
			1));
}

/* paddings: of the last dimension first, before and after. */
MAKER(pad)
{
	ap_id x = need(w, 0);
	const int64_t *v, *axes = NULL;
	int64_t pads[2 * AP_MAX_RANK] = {0};
	uint32_t n, na = 0;
	bool any = false;
	uint8_t rank, d;

	if (w->failed || !ap_onnx_ints(w, 1, "pads", &v, &n))
		return;
	(void)ap_onnx_ints(w, 3, NULL, &axes, &na);
	rank = shape_of(w, x)->rank;
	if (n != 2 * (axes ? na : rank) || !rank) {
		(void)ap_onnx_fail(w, "has %" PRIu32 " paddings of %d dimensions", n, rank);
		return;
	}
	for (uint32_t i = 0; i < n / 2; i++) {
		if (!axis_of(w, axes ? axes[i] : i, rank, &d))
			return;
		pads[2 * (rank - 1 - d)] = v[i];
		pads[2 * (rank - 1 - d) + 1] = v[i + n / 2];
		any |= v[i] || v[i + n / 2];
	}
	ap_onnx_out(w, 0, any ? ap_onnx_emit(w, row->type, AP_IN(x),
		AP_ATTRS(AP_INTS_ATTR("paddings", pads, 2u * rank)), 1) : x);
}

MAKER(expand)
{
	ap_id x = need(w, 0), id;
	struct ap_shape s, y;
	const int64_t *v;
	uint32_t n;

	if (w->failed || !ap_onnx_ints(w, 1, NULL, &v, &n))
		return;
	s = y = *shape_of(w, x);
	if (n > AP_MAX_RANK) {
		(void)ap_onnx_fail(w, "gives more than %d dimensions", AP_MAX_RANK);
		return;
	}
	y.rank = (uint8_t)(n > s.rank ? n : s.rank);
	for (uint8_t d = 0; d < y.rank; d++) {
		int a = d - (y.rank - s.rank), b = d - (y.rank - (int)n);
		int64_t have = a >= 0 ? s.dim[a] : 1, want = b >= 0 ? v[b] : 1;

		if (have != 1 && want != 1 && want != have) {
			(void)ap_onnx_fail(
				w, "a dimension of length %" PRId64 " cannot become %" PRId64, have, want);
			return;
		}
		y.dim[d] = have == 1 ? want : have;
	}
	if (y.rank == s.rank && !memcmp(y.dim, s.dim, s.rank * sizeof *s.dim)) {
		ap_onnx_out(w, 0, x);
		return;
	}
	id = ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_INTS_ATTR("shape", y.dim, y.rank)), 1);
	if (id != AP_NONE && is_const(w, id))
		ap_onnx_val(w, id)->base = x;
	ap_onnx_out(w, 0, id);
}

MAKER(tile)
{
	ap_id x = need(w, 0);
	const int64_t *v;
	bool any = false;
	uint32_t n;

	if (w->failed || !ap_onnx_ints(w, 1, NULL, &v, &n))
		return;
	for (uint32_t i = 0; i < n; i++)
		any |= v[i] != 1;
	ap_onnx_out(w, 0,
		any ? ap_onnx_emit(w, row->type, AP_IN(x), AP_ATTRS(AP_INTS_ATTR("multiples", v, n)), 1)
			: x);
}

MAKER(trilu)
{
	ap_id x = need(w, 0);
	double k = 0;

	(void)row;
	(void)ap_onnx_number(w, ap_onnx_in(w, 1), &k);
	k = k < -INT32_MAX ? -INT32_MAX : k > INT32_MAX ? INT32_MAX : k;
	ap_onnx_out(w, 0, ap_onnx_emit(w, ap_onnx_int(w, "upper", 1) ? "Triu" : "Tril", AP_IN(x),
		AP_ATTRS(AP_INT_ATTR("diagonal", (int64_t)k)), 1));
}

/* DepthToSpace, SpaceToDepth: blocks of a picture become channels, or back. */
MAKER(blocks)
{
	ap_id x = need(w, 0);
	int64_t b = ap_onnx_int(w, "blocksize", 1), c, h, v;
	bool deep = !strcmp(row->name, "SpaceToDepth"), crd = !strcmp(ap_onnx_word(w, "mode", "DCR"), "CRD");
	const struct ap_shape *s;

	if (w->failed)
		return;
	s = shape_of(w, x);
	if (s->rank != 4 || b < 1 || (deep ? s->dim[2] % b || s->dim[3] % b : s->dim[1] % (b * b))) {
		(void)ap_onnx_fail(w, "blocks of %" PRId64 " do not fit", b);
		return;
	}
	c = s->dim[1];
	h = s->dim[2];
	v = s->dim[3];
	if (deep) {
		int64_t n = s->dim[0];

		x = reshaped(w, x, 6, (int64_t[]){n, c, h / b, b, v / b, b});
		x = x == AP_NONE ? x : transposed(w, x, 6, (int64_t[]){0, 3, 5, 1, 2, 4});
		x = reshaped(w, x, 4, (int64_t[]){n, c * b * b, h / b, v / b});
	} else {
		int64_t n = s->dim[0], d = c / (b * b);

		x = crd ? reshaped(w, x, 6, (int64_t[]){n, d, b, b, h, v}) : reshaped(w, x, 6,
			(int64_t[]){n, b, b, d, h, v});
		if (x != AP_NONE)
			x = crd ? transposed(w, x, 6, (int64_t[]){0, 1, 4, 2, 5, 3}) : transposed(w, x, 6,
				(int64_t[]){0, 3, 4, 1, 5, 2});
		x = reshaped(w, x, 4, (int64_t[]){n, d, h * b, v * b});
	}
	ap_onnx_out(w, 0, x);
}

/* What an operand repeats along all dimensions but the axis: a vector of its length; AP_NONE. */
static ap_id repeated_vector(const struct ap_onnx_walk *w, ap_id x, uint8_t axis)
{
	const struct ap_onnx_made *op = ap_onnx_maker(w, x);
	const struct ap_shape *s;

	if (!op || strcmp(op->type, "BroadcastTo"))
		return AP_NONE;
	s = shape_of(w, op->in[0]);
	if (s->rank != shape_of(w, x)->rank)
		return AP_NONE;
	for (uint8_t d = 0; d < s->rank; d++)
		if (d != axis && s->dim[d] != 1)
			return AP_NONE;
	return op->in[0];
}

/*
 * Elements put at indices along an axis. Rows that one vector of indices names, added up, as index_add
 * writes it: sums of segments; or put in the place of others. Else, at indices of the last dimension: ones
 * there, times the elements, summed up.
 */
MAKER(scatter_elements)
{
	ap_id x = need(w, 0), index = need(w, 1), y = need(w, 2), vector, z;
	bool adds = !strcmp(ap_onnx_word(w, "reduction", "none"), "add");
	double empty;
	struct ap_shape s, u;
	uint8_t axis;

	if (w->failed || !axis_of(w, ap_onnx_int(w, "axis", 0), shape_of(w, x)->rank, &axis))
		return;
	s = *shape_of(w, x);
	u = *shape_of(w, index);
	vector = repeated_vector(w, index, axis);
	if (axis == 0 && vector != AP_NONE && (adds || (ap_onnx_number(w, x, &empty) && empty == 0))) {
		z = ap_onnx_emit(w, row->type, AP_IN(y, reshaped(w, vector, 1, &u.dim[0])),
			AP_ATTRS(AP_INT_ATTR("num_segments", s.dim[0])), 1);
	} else if (axis == 0 && vector != AP_NONE) {
		z = ap_onnx_emit(w, "TensorScatterUpdate",
			AP_IN(x, reshaped(w, vector, 2, (int64_t[]){u.dim[0], 1}), y), AP_NO_ATTRS, 1);
		ap_onnx_out(w, 0, z);
		return;
	} else if (axis == s.rank - 1 && s.rank < AP_MAX_RANK) {
		ap_id on = ap_onnx_scalar(w, s.dtype, 1), off = ap_onnx_scalar(w, s.dtype, 0);

		z = ap_onnx_emit(w, "OneHot", AP_IN(index, on, off),
			AP_ATTRS(AP_INT_ATTR("depth", s.dim[axis]),
				AP_INTS_ATTR("axis", (int64_t[]){-1}, 1)),
			1);
		if (!is_const(w, y) && z != AP_NONE) {
			y = ap_onnx_emit(w, "ExpandDims", AP_IN(y),
				AP_ATTRS(AP_INTS_ATTR("axis", (int64_t[]){-1}, 1)), 1);
			z = ap_onnx_binary(w, "Mul", z, y);
		}
		z = z == AP_NONE ? z : summed(w, "ReduceSum", z, (int64_t[]){axis}, 1, false);
	} else {
		(void)ap_onnx_fail(
			w, "has indices along dimension %d that no vector repeats; no rule is known", axis);
		return;
	}
	if (z != AP_NONE && !(ap_onnx_number(w, x, &empty) && empty == 0))
		z = ap_onnx_binary(w, "Add", x, z);
	ap_onnx_out(w, 0, z);
}

MAKER(scatter_points)
{
	static const char *const types[][2] = {{"add", "TensorScatterAdd"}, {"mul", "TensorScatterMul"},
		{"max", "TensorScatterMax"}, {"min", "TensorScatterMin"}};
	ap_id x = need(w, 0), y = need(w, 1), z = need(w, 2);
	const char *how = ap_onnx_word(w, "reduction", "none"), *type = row->type;

	for (size_t i = 0; i < AP_COUNT(types); i++)
		if (!strcmp(types[i][0], how))
			type = types[i][1];
	ap_onnx_out(w, 0, ap_onnx_emit(w, type, AP_IN(x, y, z), AP_NO_ATTRS, 1));
}

/* ---- the table ---- */

static const struct ap_onnx_op rows[] = {
#define CONTRIB(domain, name, maker, type, least) {domain, name, type, least, make_##maker},
#include "import/onnx_ops.def"
};

const struct ap_onnx_op *ap_onnx_op_at(size_t i)
{
	return i < AP_COUNT(rows) ? &rows[i] : NULL;
}

const struct ap_onnx_op *ap_onnx_op_find(const char *domain, const char *name)
{
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (!strcmp(rows[i].name, name) && !strcmp(rows[i].domain, domain))
			return &rows[i];
	return NULL;
}

const char *ap_onnx_ops_near(struct ap_ctx *ctx, const char *name)
{
	enum { MOST_NEAR = 3 };
	const char *dot = strrchr(name, '.');
	struct ap_str near;
	int found = 0;

	name = dot ? dot + 1 : name;
	ap_str_init(&near, ctx->arena);
	for (size_t i = 0; i < AP_COUNT(rows) && found < MOST_NEAR; i++) {
		int far = (int)strlen(name) / 3;
		bool begins = strlen(rows[i].name) > 3 && !strncmp(name, rows[i].name, strlen(rows[i].name));

		if (!begins && ap_str_distance(name, rows[i].name, far) > far)
			continue;
		ap_str_addf(&near, "%s%s", found++ ? ", " : "", rows[i].name);
	}
	return near.s;
}
