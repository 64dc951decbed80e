/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cells.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

static const int64_t last_axis[] = {-1}, last_two[] = {-2, -1};

/* Copies a list for an attribute, which borrows it. */
static const int64_t *keep(struct ap_model *m, const int64_t v[], int n)
{
	return ap_arena_memdup(ap_model_arena(m), v, (size_t)n * sizeof *v);
}

ap_id ap_model_unary(struct ap_model *m, const char *scope, const char *type, ap_id x, const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = type, .nin = 1, .in = {x}};

	return ap_model_op_one(m, op, name, ap_model_shape(m, x));
}

/* Aligns extents right; repeats those that are missing or one. */
static struct ap_shape broadcast(struct ap_shape a, struct ap_shape b)
{
	struct ap_shape s = a.rank >= b.rank ? a : b, t = a.rank >= b.rank ? b : a;

	assert(a.dtype == b.dtype);
	for (int i = 1; i <= t.rank; i++) {
		int64_t *have = &s.dim[s.rank - i], other = t.dim[t.rank - i];

		assert(*have == other || *have == 1 || other == 1);
		*have = *have > other ? *have : other;
	}
	return s;
}

ap_id ap_model_binary(struct ap_model *m, const char *scope, const char *type, ap_id x, ap_id y,
	const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = type, .nin = 2, .in = {x, y}};

	return ap_model_op_one(m, op, name, broadcast(ap_model_shape(m, x), ap_model_shape(m, y)));
}

ap_id ap_model_less(struct ap_model *m, const char *scope, ap_id x, ap_id y, const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = "Less", .nin = 2, .in = {x, y}};
	struct ap_shape s = broadcast(ap_model_shape(m, x), ap_model_shape(m, y));

	s.dtype = AP_BOOL;
	return ap_model_op_one(m, op, name, s);
}

ap_id ap_model_cast(struct ap_model *m, const char *scope, ap_id x, enum ap_dtype to, const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = "Cast", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {AP_MODEL_TEXT("dst_type", ap_dtype_name(to))}};
	struct ap_shape s = ap_model_shape(m, x);

	s.dtype = to;
	return ap_model_op_one(m, op, name, s);
}

static int64_t elements(struct ap_shape s)
{
	int64_t n = 1;

	for (int i = 0; i < s.rank; i++)
		n *= s.dim[i];
	return n;
}

ap_id ap_model_reshape(struct ap_model *m, const char *scope, ap_id x, struct ap_shape shape,
	const char *name)
{
	struct ap_shape to = shape;
	struct ap_model_op op = {.scope = scope, .type = "Reshape", .nin = 1, .in = {x}, .nattr = 1};

	assert(shape.rank && elements(shape) == elements(ap_model_shape(m, x)));
	to.dim[0] = -1;
	op.attr[0] = (struct ap_attr)AP_MODEL_INTS("shape", keep(m, to.dim, to.rank), to.rank);
	return ap_model_op_one(m, op, name, shape);
}

ap_id ap_model_transpose(struct ap_model *m, const char *scope, ap_id x, const int64_t perm[],
	const char *name)
{
	struct ap_shape from = ap_model_shape(m, x), to = from;
	struct ap_model_op op = {.scope = scope, .type = "Transpose", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {AP_MODEL_INTS("perm", perm, from.rank)}};

	for (int i = 0; i < from.rank; i++)
		to.dim[i] = from.dim[perm[i]];
	return ap_model_op_one(m, op, name, to);
}

ap_id ap_model_gather(struct ap_model *m, const char *scope, ap_id table, ap_id indices,
	const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = "Gather", .nin = 2, .in = {table, indices},
		.nattr = 1, .attr = {AP_MODEL_INT("axis", 0)}};
	struct ap_shape t = ap_model_shape(m, table), s = ap_model_shape(m, indices);

	assert(t.rank == 2 && s.rank < AP_MAX_RANK);
	s.dtype = t.dtype;
	s.dim[s.rank++] = t.dim[1];
	return ap_model_op_one(m, op, name, s);
}

ap_id ap_model_softmax(struct ap_model *m, const char *scope, ap_id x, const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = "Softmax", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {AP_MODEL_INTS("axis", last_axis, 1)}};

	return ap_model_op_one(m, op, name, ap_model_shape(m, x));
}

ap_id ap_model_dropout(struct ap_model *m, const char *scope, ap_id x, double kept, const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = "Dropout", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {AP_MODEL_REAL("keep_prob", kept)}};

	return ap_model_op_one(m, op, name, ap_model_shape(m, x));
}

ap_id ap_model_one_hot(struct ap_model *m, const char *scope, ap_id indices, int64_t depth,
	enum ap_dtype dtype, const char *name)
{
	const char *on = ap_arena_printf(ap_model_arena(m), "on_value.%s", ap_dtype_name(dtype));
	const char *off = ap_arena_printf(ap_model_arena(m), "off_value.%s", ap_dtype_name(dtype));
	struct ap_model_op op = {.scope = scope, .type = "OneHot", .nin = 3,
		.in = {indices, ap_model_number(m, on, dtype), ap_model_number(m, off, dtype)},
		.nattr = 2, .attr = {AP_MODEL_INT("depth", depth), AP_MODEL_INT("axis", -1)}};
	struct ap_shape s = ap_model_shape(m, indices);

	s.dtype = dtype;
	s.dim[s.rank++] = depth;
	return ap_model_op_one(m, op, name, s);
}

/* A StridedSlice with step one of from..to in one dimension; masks select all of the others, so the
 * batch may have any length. */
static struct ap_model_op strided_slice(struct ap_model *m, const char *scope, ap_id x, int axis,
	int64_t from, int64_t to)
{
	int rank = ap_model_shape(m, x).rank;
	int64_t begin[AP_MAX_RANK] = {0}, end[AP_MAX_RANK] = {0}, step[AP_MAX_RANK];
	int64_t others = ((INT64_C(1) << rank) - 1) & ~(INT64_C(1) << axis);

	begin[axis] = from;
	end[axis] = to;
	for (int i = 0; i < rank; i++)
		step[i] = 1;
	return (struct ap_model_op){.scope = scope, .type = "StridedSlice", .nin = 1, .in = {x},
		.nattr = 5, .attr = {
			AP_MODEL_INTS("begin", keep(m, begin, rank), (uint32_t)rank),
			AP_MODEL_INTS("end", keep(m, end, rank), (uint32_t)rank),
			AP_MODEL_INTS("strides", keep(m, step, rank), (uint32_t)rank),
			AP_MODEL_INT("begin_mask", others),
			AP_MODEL_INT("end_mask", others),
		}};
}

ap_id ap_model_slice(struct ap_model *m, const char *scope, ap_id x, int axis, int64_t from, int64_t to,
	const char *name)
{
	struct ap_shape s = ap_model_shape(m, x);

	assert(axis < s.rank && from < to && to <= s.dim[axis]);
	s.dim[axis] = to - from;
	return ap_model_op_one(m, strided_slice(m, scope, x, axis, from, to), name, s);
}

ap_id ap_model_first(struct ap_model *m, const char *scope, ap_id x, const char *name)
{
	struct ap_model_op op = strided_slice(m, scope, x, 1, 0, 1);
	struct ap_shape s = ap_model_shape(m, x);

	assert(s.rank >= 2);
	op.attr[op.nattr++] = (struct ap_attr)AP_MODEL_INT("shrink_axis_mask", 2);
	s.rank--;
	memmove(&s.dim[1], &s.dim[2], (s.rank - 1u) * sizeof *s.dim);
	return ap_model_op_one(m, op, name, s);
}

ap_id ap_model_repeat(struct ap_model *m, const char *scope, ap_id x, int axis, int64_t n,
	const char *name)
{
	struct ap_shape s = ap_model_shape(m, x);
	int64_t copies[AP_MAX_RANK];
	struct ap_model_op op = {.scope = scope, .type = "Tile", .nin = 1, .in = {x}, .nattr = 1};

	for (int i = 0; i < s.rank; i++)
		copies[i] = i == axis ? n : 1;
	op.attr[0] = (struct ap_attr)AP_MODEL_INTS("multiples", keep(m, copies, s.rank), s.rank);
	s.dim[axis] *= n;
	return ap_model_op_one(m, op, name, s);
}

ap_id ap_model_concat(struct ap_model *m, const char *scope, ap_id x, ap_id y, int axis,
	const char *name)
{
	struct ap_model_op op = {.scope = scope, .type = "Concat", .nin = 2, .in = {x, y}, .nattr = 1,
		.attr = {AP_MODEL_INT("axis", axis)}};
	struct ap_shape s = ap_model_shape(m, x);

	s.dim[axis] += ap_model_shape(m, y).dim[axis];
	return ap_model_op_one(m, op, name, s);
}

ap_id ap_model_matmul(struct ap_model *m, const char *scope, ap_id x, ap_id w, bool transpose_w,
	const char *name)
{
	struct ap_shape s = ap_model_shape(m, x), t = ap_model_shape(m, w);
	struct ap_model_op op = {.scope = scope, .type = s.rank == 2 ? "MatMul" : "BatchMatMul",
		.nin = 2, .in = {x, w}, .nattr = transpose_w,
		.attr = {AP_MODEL_FLAG("transpose_b", true)}};
	int in = t.rank - (transpose_w ? 1 : 2), out = t.rank - (transpose_w ? 2 : 1);

	assert(t.rank >= 2 && s.rank >= t.rank && s.dim[s.rank - 1] == t.dim[in]);
	for (int i = 3; i <= t.rank; i++)
		assert(s.dim[s.rank - i] == t.dim[t.rank - i]);
	s.dim[s.rank - 1] = t.dim[out];
	return ap_model_op_one(m, op, name, s);
}

ap_id ap_model_matmul_tn(struct ap_model *m, const char *scope, ap_id x, ap_id w, const char *name)
{
	struct ap_shape s = ap_model_shape(m, x), t = ap_model_shape(m, w);
	struct ap_model_op op = {.scope = scope, .type = s.rank == 2 ? "MatMul" : "BatchMatMul",
		.nin = 2, .in = {x, w}, .nattr = 1, .attr = {AP_MODEL_FLAG("transpose_a", true)}};
	int k = s.rank - 1;

	assert(s.rank >= 2 && s.rank == t.rank && s.dim[k - 1] == t.dim[k - 1]);
	s.dim[k - 1] = s.dim[k];
	s.dim[k] = t.dim[k];
	return ap_model_op_one(m, op, name, s);
}

static struct ap_model_op reduction(const char *scope, const char *type, ap_id x,
	const int64_t axes[], int n, bool keep_dims)
{
	return (struct ap_model_op){.scope = scope, .type = type, .nin = 1, .in = {x},
		.nattr = 1 + keep_dims, .attr = {AP_MODEL_INTS("axis", axes, (uint32_t)n),
			AP_MODEL_FLAG("keep_dims", true)}};
}

ap_id ap_model_reduce(struct ap_model *m, const char *scope, const char *type, ap_id x, int n,
	bool keep_dims, const char *name)
{
	struct ap_shape s = ap_model_shape(m, x);

	assert(n >= 1 && n <= 2 && n <= s.rank);
	for (int i = 1; i <= n && keep_dims; i++)
		s.dim[s.rank - i] = 1;
	if (!keep_dims)
		s.rank = (uint8_t)(s.rank - n);
	return ap_model_op_one(m, reduction(scope, type, x, n == 1 ? last_axis : last_two, n,
		keep_dims), name, s);
}

ap_id ap_model_reduce_axis(struct ap_model *m, const char *scope, const char *type, ap_id x, int axis,
	bool keep_dims, const char *name)
{
	const int64_t *axes = keep(m, (int64_t[]){axis}, 1);
	struct ap_shape s = ap_model_shape(m, x);

	assert(axis >= 0 && axis < s.rank);
	s.dim[axis] = 1;
	if (!keep_dims) {
		s.rank--;
		memmove(&s.dim[axis], &s.dim[axis + 1],
			(size_t)(s.rank - axis) * sizeof *s.dim);
	}
	return ap_model_op_one(m, reduction(scope, type, x, axes, 1, keep_dims), name, s);
}

/* ---- cells ---- */

ap_id ap_model_linear(struct ap_model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name)
{
	struct ap_shape s = ap_model_shape(m, x);
	ap_id w = ap_model_param(m, ap_model_name(m, param, "weight"),
		AP_MODEL_SHAPE(s.dtype, out, s.dim[s.rank - 1]));

	return ap_model_matmul(m, scope, x, w, true, name);
}

ap_id ap_model_dense(struct ap_model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name)
{
	bool fused = ap_model_is_fused(m);
	const char *product = fused ? name : ap_model_name(m, name, "product");
	ap_id y = ap_model_linear(m, scope, param, x, out, product), b;

	if (fused)
		return y;
	b = ap_model_param(m, ap_model_name(m, param, "bias"),
		AP_MODEL_SHAPE(ap_model_shape(m, x).dtype, out));
	return ap_model_binary(m, scope, "BiasAdd", y, b, name);
}

ap_id ap_model_layer_norm(struct ap_model *m, const char *scope, const char *param, ap_id x,
	const char *name)
{
	struct ap_shape s = ap_model_shape(m, x), one = AP_MODEL_SHAPE(s.dtype, s.dim[s.rank - 1]);
	ap_id gamma = ap_model_param(m, ap_model_name(m, param, "gamma"), one);
	ap_id beta = ap_model_param(m, ap_model_name(m, param, "beta"), one);
	struct ap_model_op op = {.scope = scope, .type = "LayerNorm", .nin = 3,
		.in = {x, gamma, beta}, .nattr = 3, .attr = {AP_MODEL_INT("begin_norm_axis", -1),
			AP_MODEL_INT("begin_params_axis", -1), AP_MODEL_REAL("epsilon", 1e-5)}};

	return ap_model_op_one(m, op, name, s);
}

ap_id ap_model_rms_norm(struct ap_model *m, const char *scope, const char *param, ap_id x,
	const char *name)
{
	struct ap_shape s = ap_model_shape(m, x);
	bool fused = ap_model_is_fused(m);
	ap_id gamma = ap_model_param(m, ap_model_name(m, param, "weight"),
		AP_MODEL_SHAPE(fused ? s.dtype : AP_FLOAT32, s.dim[s.rank - 1]));
	ap_id wide = s.dtype == AP_FLOAT32 || fused ? x :
		ap_model_cast(m, scope, x, AP_FLOAT32, ap_model_name(m, name, "in"));
	struct ap_shape full = ap_model_shape(m, wide), rest = full;
	struct ap_model_op op = {.scope = scope, .type = "RmsNorm", .nin = 2, .in = {wide, gamma},
		.nout = 2, .out = {{.shape = full}, {.name = ap_model_name(m, name, "rstd")}},
		.nattr = 1, .attr = {AP_MODEL_REAL("epsilon", 1e-5)}};
	ap_id y;

	rest.dim[rest.rank - 1] = 1;
	op.out[1].shape = rest;
	op.out[0].name = wide == x ? name : ap_model_name(m, name, "float32");
	y = ap_model_op(m, &op);
	return wide == x ? y : ap_model_cast(m, scope, y, s.dtype, name);
}
