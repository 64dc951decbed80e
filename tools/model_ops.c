/* SPDX-License-Identifier: Apache-2.0 */
/* Operators and cells that models are built of, with the shapes of their results. */
#include "tools/model.h"

#include <assert.h>

#include "base/arena.h"

static const int64_t last_axis[] = {-1}, last_two[] = {-2, -1};

static struct ap_attr attr_flag(const char *name, bool v)
{
	return (struct ap_attr){.name = name, .type = AP_ATTR_BOOL, .i = v};
}

static struct ap_attr attr_int(const char *name, int64_t v)
{
	return (struct ap_attr){.name = name, .type = AP_ATTR_INT, .i = v};
}

static struct ap_attr attr_num(const char *name, double v)
{
	return (struct ap_attr){.name = name, .type = AP_ATTR_FLOAT, .f = v};
}

static struct ap_attr attr_str(const char *name, const char *v)
{
	return (struct ap_attr){.name = name, .type = AP_ATTR_STRING, .s = v};
}

static struct ap_attr attr_ints(const char *name, const int64_t *v, uint32_t n)
{
	return (struct ap_attr){.name = name, .type = AP_ATTR_INTS, .list = v, .n = n};
}

/* Adds op, which lacks only its single result. */
static ap_id finish(struct model *m, struct model_op op, const char *name, struct ap_shape shape)
{
	op.nout = 1;
	op.out[0].name = name;
	op.out[0].shape = shape;
	return model_op(m, &op);
}

static struct model_op begin(const char *scope, const char *type, uint32_t nin, ap_id a, ap_id b)
{
	return (struct model_op){.scope = scope, .type = type, .nin = nin, .in = {a, b}};
}

static void add_attr(struct model_op *op, struct ap_attr a)
{
	assert(op->nattr < MODEL_MAX_ATTR);
	op->attr[op->nattr++] = a;
}

ap_id model_unary(struct model *m, const char *scope, const char *type, ap_id x, const char *name)
{
	return finish(m, begin(scope, type, 1, x, 0), name, model_shape(m, x));
}

/* Extents right-aligned; those missing or one are repeated. */
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
	return finish(m, begin(scope, type, 2, x, y), name,
		broadcast(model_shape(m, x), model_shape(m, y)));
}

ap_id model_cast(struct model *m, const char *scope, ap_id x, enum ap_dtype to, const char *name)
{
	struct model_op op = begin(scope, "Cast", 1, x, 0);
	struct ap_shape s = model_shape(m, x);

	add_attr(&op, attr_str("dst_type", ap_dtype_name(to)));
	s.dtype = to;
	return finish(m, op, name, s);
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
	struct model_op op = begin(scope, "Reshape", 1, x, 0);
	int64_t *dim = ap_arena_memdup(model_arena(m), shape.dim, sizeof shape.dim);

	assert(shape.rank && elements(shape) == elements(model_shape(m, x)));
	dim[0] = -1;
	add_attr(&op, attr_ints("shape", dim, shape.rank));
	return finish(m, op, name, shape);
}

ap_id model_transpose(struct model *m, const char *scope, ap_id x, const int64_t perm[],
	const char *name)
{
	struct model_op op = begin(scope, "Transpose", 1, x, 0);
	struct ap_shape from = model_shape(m, x), to = from;

	for (int i = 0; i < from.rank; i++)
		to.dim[i] = from.dim[perm[i]];
	add_attr(&op, attr_ints("perm", perm, from.rank));
	return finish(m, op, name, to);
}

ap_id model_gather(struct model *m, const char *scope, ap_id table, ap_id indices,
	const char *name)
{
	struct model_op op = begin(scope, "Gather", 2, table, indices);
	struct ap_shape t = model_shape(m, table), s = model_shape(m, indices);

	assert(t.rank == 2 && s.rank < AP_MAX_RANK);
	s.dtype = t.dtype;
	s.dim[s.rank++] = t.dim[1];
	add_attr(&op, attr_int("axis", 0));
	return finish(m, op, name, s);
}

ap_id model_softmax(struct model *m, const char *scope, ap_id x, const char *name)
{
	struct model_op op = begin(scope, "Softmax", 1, x, 0);

	add_attr(&op, attr_ints("axis", last_axis, 1));
	return finish(m, op, name, model_shape(m, x));
}

ap_id model_dropout(struct model *m, const char *scope, ap_id x, double keep, const char *name)
{
	struct model_op op = begin(scope, "Dropout", 1, x, 0);

	add_attr(&op, attr_num("keep_prob", keep));
	return finish(m, op, name, model_shape(m, x));
}

ap_id model_matmul(struct model *m, const char *scope, ap_id x, ap_id w, bool transpose_w,
	const char *name)
{
	struct ap_shape s = model_shape(m, x), t = model_shape(m, w);
	struct model_op op = begin(scope, s.rank == 2 ? "MatMul" : "BatchMatMul", 2, x, w);
	int k = s.rank - 1;

	assert(s.rank >= 2 && s.rank == t.rank && s.dim[k] == t.dim[transpose_w ? k : k - 1]);
	s.dim[k] = t.dim[transpose_w ? k - 1 : k];
	if (transpose_w)
		add_attr(&op, attr_flag("transpose_b", true));
	return finish(m, op, name, s);
}

ap_id model_reduce(struct model *m, const char *scope, const char *type, ap_id x, int n,
	bool keep_dims, const char *name)
{
	struct model_op op = begin(scope, type, 1, x, 0);
	struct ap_shape s = model_shape(m, x);

	assert(n >= 1 && n <= 2 && n <= s.rank);
	for (int i = 1; i <= n && keep_dims; i++)
		s.dim[s.rank - i] = 1;
	if (!keep_dims)
		s.rank = (uint8_t)(s.rank - n);
	add_attr(&op, attr_ints("axis", n == 1 ? last_axis : last_two, (uint32_t)n));
	if (keep_dims)
		add_attr(&op, attr_flag("keep_dims", true));
	return finish(m, op, name, s);
}

ap_id model_dense(struct model *m, const char *scope, const char *param, ap_id x, int64_t out,
	const char *name)
{
	struct ap_shape s = model_shape(m, x);
	ap_id w = model_param(m, model_name(m, param, "weight"),
		MODEL_SHAPE(s.dtype, out, s.dim[s.rank - 1]));
	ap_id b = model_param(m, model_name(m, param, "bias"), MODEL_SHAPE(s.dtype, out));
	ap_id y = model_matmul(m, scope, x, w, true, model_name(m, name, "product"));

	return model_binary(m, scope, "BiasAdd", y, b, name);
}

ap_id model_layer_norm(struct model *m, const char *scope, const char *param, ap_id x,
	const char *name)
{
	struct model_op op = begin(scope, "LayerNorm", 3, x, 0);
	struct ap_shape s = model_shape(m, x), one = MODEL_SHAPE(s.dtype, s.dim[s.rank - 1]);

	op.in[1] = model_param(m, model_name(m, param, "gamma"), one);
	op.in[2] = model_param(m, model_name(m, param, "beta"), one);
	add_attr(&op, attr_int("begin_norm_axis", -1));
	add_attr(&op, attr_int("begin_params_axis", -1));
	add_attr(&op, attr_num("epsilon", 1e-5));
	return finish(m, op, name, s);
}
