/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/model_ops.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"

static const int64_t last_axis[] = {-1}, last_two[] = {-2, -1};

/* Copies a list for an attribute, which borrows it. */
static const int64_t *keep(struct model *m, const int64_t v[], int n)
{
	return ap_arena_memdup(model_arena(m), v, (size_t)n * sizeof *v);
}

ap_id model_unary(struct model *m, const char *scope, const char *type, ap_id x, const char *name)
{
	struct model_op op = {.scope = scope, .type = type, .nin = 1, .in = {x}};

	return model_op_one(m, op, name, model_shape(m, x));
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

ap_id model_binary(struct model *m, const char *scope, const char *type, ap_id x, ap_id y,
	const char *name)
{
	struct model_op op = {.scope = scope, .type = type, .nin = 2, .in = {x, y}};

	return model_op_one(m, op, name, broadcast(model_shape(m, x), model_shape(m, y)));
}

ap_id model_less(struct model *m, const char *scope, ap_id x, ap_id y, const char *name)
{
	struct model_op op = {.scope = scope, .type = "Less", .nin = 2, .in = {x, y}};
	struct ap_shape s = broadcast(model_shape(m, x), model_shape(m, y));

	s.dtype = AP_BOOL;
	return model_op_one(m, op, name, s);
}

ap_id model_cast(struct model *m, const char *scope, ap_id x, enum ap_dtype to, const char *name)
{
	struct model_op op = {.scope = scope, .type = "Cast", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {MODEL_TEXT("dst_type", ap_dtype_name(to))}};
	struct ap_shape s = model_shape(m, x);

	s.dtype = to;
	return model_op_one(m, op, name, s);
}

static int64_t elements(struct ap_shape s)
{
	int64_t n = 1;

	for (int i = 0; i < s.rank; i++)
		n *= s.dim[i];
	return n;
}

ap_id model_reshape(struct model *m, const char *scope, ap_id x, struct ap_shape shape,
	const char *name)
{
	struct ap_shape to = shape;
	struct model_op op = {.scope = scope, .type = "Reshape", .nin = 1, .in = {x}, .nattr = 1};

	assert(shape.rank && elements(shape) == elements(model_shape(m, x)));
	to.dim[0] = -1;
	op.attr[0] = (struct ap_attr)MODEL_INTS("shape", keep(m, to.dim, to.rank), to.rank);
	return model_op_one(m, op, name, shape);
}

ap_id model_transpose(struct model *m, const char *scope, ap_id x, const int64_t perm[],
	const char *name)
{
	struct ap_shape from = model_shape(m, x), to = from;
	struct model_op op = {.scope = scope, .type = "Transpose", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {MODEL_INTS("perm", perm, from.rank)}};

	for (int i = 0; i < from.rank; i++)
		to.dim[i] = from.dim[perm[i]];
	return model_op_one(m, op, name, to);
}

ap_id model_gather(struct model *m, const char *scope, ap_id table, ap_id indices,
	const char *name)
{
	struct model_op op = {.scope = scope, .type = "Gather", .nin = 2, .in = {table, indices},
		.nattr = 1, .attr = {MODEL_INT("axis", 0)}};
	struct ap_shape t = model_shape(m, table), s = model_shape(m, indices);

	assert(t.rank == 2 && s.rank < AP_MAX_RANK);
	s.dtype = t.dtype;
	s.dim[s.rank++] = t.dim[1];
	return model_op_one(m, op, name, s);
}

ap_id model_softmax(struct model *m, const char *scope, ap_id x, const char *name)
{
	struct model_op op = {.scope = scope, .type = "Softmax", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {MODEL_INTS("axis", last_axis, 1)}};

	return model_op_one(m, op, name, model_shape(m, x));
}

ap_id model_dropout(struct model *m, const char *scope, ap_id x, double kept, const char *name)
{
	struct model_op op = {.scope = scope, .type = "Dropout", .nin = 1, .in = {x}, .nattr = 1,
		.attr = {MODEL_REAL("keep_prob", kept)}};

	return model_op_one(m, op, name, model_shape(m, x));
}

ap_id model_one_hot(struct model *m, const char *scope, ap_id indices, int64_t depth,
	enum ap_dtype dtype, const char *name)
{
	const char *on = ap_arena_printf(model_arena(m), "on_value.%s", ap_dtype_name(dtype));
	const char *off = ap_arena_printf(model_arena(m), "off_value.%s", ap_dtype_name(dtype));
	struct model_op op = {.scope = scope, .type = "OneHot", .nin = 3,
		.in = {indices, model_number(m, on, dtype), model_number(m, off, dtype)},
		.nattr = 2, .attr = {MODEL_INT("depth", depth), MODEL_INT("axis", -1)}};
	struct ap_shape s = model_shape(m, indices);

	s.dtype = dtype;
	s.dim[s.rank++] = depth;
	return model_op_one(m, op, name, s);
}

/* A StridedSlice with step one of from..to in one dimension; masks select all of the others, so the
 * batch may have any length. */
static struct model_op strided_slice(struct model *m, const char *scope, ap_id x, int axis,
	int64_t from, int64_t to)
{
	int rank = model_shape(m, x).rank;
	int64_t begin[AP_MAX_RANK] = {0}, end[AP_MAX_RANK] = {0}, step[AP_MAX_RANK];
	int64_t others = ((INT64_C(1) << rank) - 1) & ~(INT64_C(1) << axis);

	begin[axis] = from;
	end[axis] = to;
	for (int i = 0; i < rank; i++)
		step[i] = 1;
	return (struct model_op){.scope = scope, .type = "StridedSlice", .nin = 1, .in = {x},
		.nattr = 5, .attr = {
			MODEL_INTS("begin", keep(m, begin, rank), (uint32_t)rank),
			MODEL_INTS("end", keep(m, end, rank), (uint32_t)rank),
			MODEL_INTS("strides", keep(m, step, rank), (uint32_t)rank),
			MODEL_INT("begin_mask", others),
			MODEL_INT("end_mask", others),
		}};
}

ap_id model_slice(struct model *m, const char *scope, ap_id x, int axis, int64_t from, int64_t to,
	const char *name)
{
	struct ap_shape s = model_shape(m, x);

	assert(axis < s.rank && from < to && to <= s.dim[axis]);
	s.dim[axis] = to - from;
	return model_op_one(m, strided_slice(m, scope, x, axis, from, to), name, s);
}

ap_id model_first(struct model *m, const char *scope, ap_id x, const char *name)
{
	struct model_op op = strided_slice(m, scope, x, 1, 0, 1);
	struct ap_shape s = model_shape(m, x);

	assert(s.rank >= 2);
	op.attr[op.nattr++] = (struct ap_attr)MODEL_INT("shrink_axis_mask", 2);
	s.rank--;
	memmove(&s.dim[1], &s.dim[2], (s.rank - 1u) * sizeof *s.dim);
	return model_op_one(m, op, name, s);
}

ap_id model_repeat(struct model *m, const char *scope, ap_id x, int axis, int64_t n,
	const char *name)
{
	struct ap_shape s = model_shape(m, x);
	int64_t copies[AP_MAX_RANK];
	struct model_op op = {.scope = scope, .type = "Tile", .nin = 1, .in = {x}, .nattr = 1};

	for (int i = 0; i < s.rank; i++)
		copies[i] = i == axis ? n : 1;
	op.attr[0] = (struct ap_attr)MODEL_INTS("multiples", keep(m, copies, s.rank), s.rank);
	s.dim[axis] *= n;
	return model_op_one(m, op, name, s);
}

ap_id model_concat(struct model *m, const char *scope, ap_id x, ap_id y, int axis,
	const char *name)
{
	struct model_op op = {.scope = scope, .type = "Concat", .nin = 2, .in = {x, y}, .nattr = 1,
		.attr = {MODEL_INT("axis", axis)}};
	struct ap_shape s = model_shape(m, x);

	s.dim[axis] += model_shape(m, y).dim[axis];
	return model_op_one(m, op, name, s);
}

ap_id model_matmul(struct model *m, const char *scope, ap_id x, ap_id w, bool transpose_w,
	const char *name)
{
	struct ap_shape s = model_shape(m, x), t = model_shape(m, w);
	struct model_op op = {.scope = scope, .type = s.rank == 2 ? "MatMul" : "BatchMatMul",
		.nin = 2, .in = {x, w}, .nattr = transpose_w,
		.attr = {MODEL_FLAG("transpose_b", true)}};
	int in = t.rank - (transpose_w ? 1 : 2), out = t.rank - (transpose_w ? 2 : 1);

	assert(t.rank >= 2 && s.rank >= t.rank && s.dim[s.rank - 1] == t.dim[in]);
	for (int i = 3; i <= t.rank; i++)
		assert(s.dim[s.rank - i] == t.dim[t.rank - i]);
	s.dim[s.rank - 1] = t.dim[out];
	return model_op_one(m, op, name, s);
}

ap_id model_matmul_tn(struct model *m, const char *scope, ap_id x, ap_id w, const char *name)
{
	struct ap_shape s = model_shape(m, x), t = model_shape(m, w);
	struct model_op op = {.scope = scope, .type = s.rank == 2 ? "MatMul" : "BatchMatMul",
		.nin = 2, .in = {x, w}, .nattr = 1, .attr = {MODEL_FLAG("transpose_a", true)}};
	int k = s.rank - 1;

	assert(s.rank >= 2 && s.rank == t.rank && s.dim[k - 1] == t.dim[k - 1]);
	s.dim[k - 1] = s.dim[k];
	s.dim[k] = t.dim[k];
	return model_op_one(m, op, name, s);
}

static struct model_op reduction(const char *scope, const char *type, ap_id x,
	const int64_t axes[], int n, bool keep_dims)
{
	return (struct model_op){.scope = scope, .type = type, .nin = 1, .in = {x},
		.nattr = 1 + keep_dims, .attr = {MODEL_INTS("axis", axes, (uint32_t)n),
			MODEL_FLAG("keep_dims", true)}};
}

ap_id model_reduce(struct model *m, const char *scope, const char *type, ap_id x, int n,
	bool keep_dims, const char *name)
{
	struct ap_shape s = model_shape(m, x);

	assert(n >= 1 && n <= 2 && n <= s.rank);
	for (int i = 1; i <= n && keep_dims; i++)
		s.dim[s.rank - i] = 1;
	if (!keep_dims)
		s.rank = (uint8_t)(s.rank - n);
	return model_op_one(m, reduction(scope, type, x, n == 1 ? last_axis : last_two, n,
		keep_dims), name, s);
}

ap_id model_reduce_axis(struct model *m, const char *scope, const char *type, ap_id x, int axis,
	bool keep_dims, const char *name)
{
	const int64_t *axes = keep(m, (int64_t[]){axis}, 1);
	struct ap_shape s = model_shape(m, x);

	assert(axis >= 0 && axis < s.rank);
	s.dim[axis] = 1;
	if (!keep_dims) {
		s.rank--;
		memmove(&s.dim[axis], &s.dim[axis + 1],
			(size_t)(s.rank - axis) * sizeof *s.dim);
	}
	return model_op_one(m, reduction(scope, type, x, axes, 1, keep_dims), name, s);
}
