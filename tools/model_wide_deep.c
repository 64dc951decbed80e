/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/models.h"

#include "base/arena.h"
#include "tools/model_ops.h"

#define TOP "Default/network-NetWithLossClass"
#define NET TOP "/network-WideDeepModel"

enum { FIELDS = 39, LAYERS = 5 };

/* Matrix product and bias in float16; tensors and parameters are float32. */
static ap_id dense_layer(struct model *m, int number, ap_id x, int64_t out)
{
	struct ap_arena *arena = model_arena(m);
	const char *scope = ap_arena_printf(arena, NET "/dense_layer_%d-DenseLayer", number);
	const char *param = ap_arena_printf(arena, "dense_layer_%d", number);
	ap_id w = model_param(m, model_name(m, param, "weight"),
		MODEL_SHAPE(AP_FLOAT32, model_shape(m, x).dim[1], out));
	ap_id b = model_param(m, model_name(m, param, "bias"), MODEL_SHAPE(AP_FLOAT32, out));

	model_prefix(m, ap_arena_printf(arena, "deep%d.", number));
	x = model_cast(m, scope, x, AP_FLOAT16, "in");
	w = model_cast(m, scope, w, AP_FLOAT16, "weight");
	b = model_cast(m, scope, b, AP_FLOAT16, "bias");
	x = model_matmul(m, scope, x, w, false, "product");
	x = model_binary(m, scope, "BiasAdd", x, b, "sum");
	if (number < LAYERS)
		x = model_unary(m, scope, "ReLU", x, "relu");
	x = model_cast(m, scope, x, AP_FLOAT32, "out");
	model_prefix(m, "");
	return x;
}

static ap_id look_up(struct model *m, const char *cell, int64_t rows, int64_t columns, ap_id ids,
	const char *name)
{
	ap_id table = model_param(m, model_name(m, cell, "embedding_table"),
		MODEL_SHAPE(AP_FLOAT32, rows, columns));

	return model_gather(m, ap_arena_printf(model_arena(m), NET "/%s-EmbeddingLookup", cell),
		table, ids, name);
}

/* A linear model over the fields: one weight per entry of the table. */
static ap_id wide(struct model *m, ap_id ids, ap_id weights, int64_t rows)
{
	ap_id bias = model_param(m, "wide_b", MODEL_SHAPE(AP_FLOAT32, 1));
	ap_id x = look_up(m, "wide_embeddinglookup", rows, 1, ids, "wide.entries");

	x = model_binary(m, NET, "Mul", x, weights, "wide.weighted");
	x = model_reduce_axis(m, NET, "ReduceSum", x, 1, false, "wide.sum");
	return model_binary(m, NET, "Add", x, bias, "wide");
}

static ap_id deep(struct model *m, ap_id ids, ap_id weights, int64_t rows, int64_t width)
{
	static const int64_t out[LAYERS] = {1024, 512, 256, 128, 1};
	ap_id x = look_up(m, "deep_embeddinglookup", rows, width, ids, "deep.entries");

	x = model_binary(m, NET, "Mul", x, weights, "deep.weighted");
	x = model_reshape(m, NET, x, MODEL_SHAPE(AP_FLOAT32, model_shape(m, ids).dim[0],
		FIELDS * width), "deep.in");
	for (int i = 0; i < LAYERS; i++)
		x = dense_layer(m, i + 1, x, out[i]);
	return x;
}

struct model *model_wide_deep(struct ap_arena *arena, const struct model_params *p)
{
	struct model *m = model_create(arena, p->name, "adam");
	ap_id ids = model_input(m, "id_hldr", MODEL_SHAPE(AP_INT32, p->batch, FIELDS));
	ap_id weights = model_input(m, "wt_hldr", MODEL_SHAPE(AP_FLOAT32, p->batch, FIELDS));
	ap_id labels = model_input(m, "label", MODEL_SHAPE(AP_FLOAT32, p->batch, 1));
	ap_id x, y;

	weights = model_reshape(m, NET, weights, MODEL_SHAPE(AP_FLOAT32, p->batch, FIELDS, 1),
		"weights");
	x = wide(m, ids, weights, p->vocabulary);
	y = deep(m, ids, weights, p->vocabulary, p->hidden);
	x = model_binary(m, NET, "Add", x, y, "logits");
	x = model_binary(m, TOP, "SigmoidCrossEntropyWithLogits", x, labels, "losses");
	model_reduce(m, TOP, "ReduceMean", x, 2, false, "loss");
	return m;
}
