/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families.h"

#include "base/arena.h"
#include "model/cells.h"

#define TOP "Default/network-NetWithLossClass"
#define NET TOP "/network-WideDeepModel"

enum { FIELDS = 39, LAYERS = 5 };

/* Matrix product and bias in float16; tensors and parameters are float32. */
static ap_id dense_layer(struct ap_model *m, int number, ap_id x, int64_t out)
{
	struct ap_arena *arena = ap_model_arena(m);
	const char *scope = ap_arena_printf(arena, NET "/dense_layer_%d-DenseLayer", number);
	const char *param = ap_arena_printf(arena, "dense_layer_%d", number);
	ap_id w = ap_model_param(m, ap_model_name(m, param, "weight"),
		AP_MODEL_SHAPE(AP_FLOAT32, ap_model_shape(m, x).dim[1], out));
	ap_id b = ap_model_param(m, ap_model_name(m, param, "bias"), AP_MODEL_SHAPE(AP_FLOAT32, out));

	ap_model_prefix(m, ap_arena_printf(arena, "deep%d.", number));
	x = ap_model_cast(m, scope, x, AP_FLOAT16, "in");
	w = ap_model_cast(m, scope, w, AP_FLOAT16, "weight");
	b = ap_model_cast(m, scope, b, AP_FLOAT16, "bias");
	x = ap_model_matmul(m, scope, x, w, false, "product");
	x = ap_model_binary(m, scope, "BiasAdd", x, b, "sum");
	if (number < LAYERS)
		x = ap_model_unary(m, scope, "ReLU", x, "relu");
	x = ap_model_cast(m, scope, x, AP_FLOAT32, "out");
	ap_model_prefix(m, "");
	return x;
}

static ap_id look_up(struct ap_model *m, const char *cell, int64_t rows, int64_t columns, ap_id ids,
	const char *name)
{
	ap_id table = ap_model_param(m, ap_model_name(m, cell, "embedding_table"),
		AP_MODEL_SHAPE(AP_FLOAT32, rows, columns));

	return ap_model_gather(m, ap_arena_printf(ap_model_arena(m), NET "/%s-EmbeddingLookup", cell),
		table, ids, name);
}

/* A linear model over the fields: one weight per entry of the table. */
static ap_id wide(struct ap_model *m, ap_id ids, ap_id weights, int64_t rows)
{
	ap_id bias = ap_model_param(m, "wide_b", AP_MODEL_SHAPE(AP_FLOAT32, 1));
	ap_id x = look_up(m, "wide_embeddinglookup", rows, 1, ids, "wide.entries");

	x = ap_model_binary(m, NET, "Mul", x, weights, "wide.weighted");
	x = ap_model_reduce_axis(m, NET, "ReduceSum", x, 1, false, "wide.sum");
	return ap_model_binary(m, NET, "Add", x, bias, "wide");
}

static ap_id deep(struct ap_model *m, ap_id ids, ap_id weights, int64_t rows, int64_t width)
{
	static const int64_t out[LAYERS] = {1024, 512, 256, 128, 1};
	ap_id x = look_up(m, "deep_embeddinglookup", rows, width, ids, "deep.entries");

	x = ap_model_binary(m, NET, "Mul", x, weights, "deep.weighted");
	x = ap_model_reshape(m, NET, x, AP_MODEL_SHAPE(AP_FLOAT32, ap_model_shape(m, ids).dim[0],
		FIELDS * width), "deep.in");
	for (int i = 0; i < LAYERS; i++)
		x = dense_layer(m, i + 1, x, out[i]);
	return x;
}

struct ap_model *ap_model_wide_deep(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_model *m = ap_model_create(arena, p->name, "adam");
	ap_id ids = ap_model_input(m, "id_hldr", AP_MODEL_SHAPE(AP_INT32, p->batch, FIELDS));
	ap_id weights = ap_model_input(m, "wt_hldr", AP_MODEL_SHAPE(AP_FLOAT32, p->batch, FIELDS));
	ap_id labels = ap_model_input(m, "label", AP_MODEL_SHAPE(AP_FLOAT32, p->batch, 1));
	ap_id x, y;

	weights = ap_model_reshape(m, NET, weights, AP_MODEL_SHAPE(AP_FLOAT32, p->batch, FIELDS, 1),
		"weights");
	x = wide(m, ids, weights, p->vocabulary);
	y = deep(m, ids, weights, p->vocabulary, p->hidden);
	x = ap_model_binary(m, NET, "Add", x, y, "logits");
	x = ap_model_binary(m, TOP, "SigmoidCrossEntropyWithLogits", x, labels, "losses");
	ap_model_reduce(m, TOP, "ReduceMean", x, 2, false, "loss");
	return m;
}
