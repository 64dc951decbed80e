/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families.h"

#include <assert.h>

#include "base/arena.h"
#include "base/vec.h"
#include "model/cells.h"

#define NET "Default/network-WithLossCell/_backbone-ResNet"
#define VGG "Default/network-WithLossCell/_backbone-Vgg"
#define CONVNEXT "Default/network-WithLossCell/_backbone-ConvNeXt"
#define LOSS "Default/network-WithLossCell/_loss_fn-SoftmaxCrossEntropyExpand"

enum { IMAGE = 224, STAGES = 4, EXPANSION = 4, DEEP = 50 };

/* A cell in the network; its name prefixes the parameters. */
struct place {
	struct ap_model *m;
	const char *scope, *param; /* of the enclosing cell; "" */
};

static const char *scope_of(const struct place *p, const char *cell, const char *class)
{
	return ap_arena_printf(ap_model_arena(p->m), "%s/%s-%s", p->scope, cell, class);
}

static const char *param_of(const struct place *p, const char *cell, const char *name)
{
	return ap_arena_printf(ap_model_arena(p->m), "%s%s.%s", p->param, cell, name);
}

/* One result element per step over height and width, with padded edges. Channels in groups, each of
 * which sees its own alone. */
static ap_id conv_of_groups(const struct place *p, const char *cell, ap_id x, int64_t out, int64_t kernel,
	int64_t stride, int64_t groups)
{
	struct ap_model *m = p->m;
	struct ap_shape s = ap_model_shape(m, x);
	ap_id w = ap_model_param(m, param_of(p, cell, "weight"),
		AP_MODEL_SHAPE(s.dtype, out, s.dim[1] / groups, kernel, kernel));
	int64_t *sizes = AP_NEW_N(ap_model_arena(m), int64_t, 4);
	struct ap_model_op op = {.scope = scope_of(p, cell, "Conv2d"), .type = "Conv2D", .nin = 2,
		.in = {x, w}, .nattr = 3, .attr = {AP_MODEL_INTS("kernel_size", sizes, 2),
			AP_MODEL_INTS("stride", sizes + 2, 2), AP_MODEL_TEXT("pad_mode", "same")}};

	if (groups > 1)
		op.attr[op.nattr++] = (struct ap_attr)AP_MODEL_INT("group", groups);
	sizes[0] = sizes[1] = kernel;
	sizes[2] = sizes[3] = stride;
	return ap_model_op_one(m, op, cell, AP_MODEL_SHAPE(s.dtype, s.dim[0], out,
		(s.dim[2] + stride - 1) / stride, (s.dim[3] + stride - 1) / stride));
}

static ap_id conv(const struct place *p, const char *cell, ap_id x, int64_t out, int64_t kernel,
	int64_t stride)
{
	return conv_of_groups(p, cell, x, out, kernel, stride, 1);
}

/* Results: normalised tensor, new moving averages, statistics for the backward pass. Whatever the type of x,
 * parameters and statistics are float32: averages over a batch, which kernels keep in that type. */
static ap_id batch_norm(const struct place *p, const char *cell, ap_id x)
{
	struct ap_model *m = p->m;
	struct ap_shape s = ap_model_shape(m, x), one = AP_MODEL_SHAPE(AP_FLOAT32, s.dim[1]);
	ap_id gamma = ap_model_param(m, param_of(p, cell, "gamma"), one);
	ap_id beta = ap_model_param(m, param_of(p, cell, "beta"), one);
	ap_id mean = ap_model_state(m, param_of(p, cell, "moving_mean"), one);
	ap_id variance = ap_model_state(m, param_of(p, cell, "moving_variance"), one);
	struct ap_model_op op = {.scope = scope_of(p, cell, "BatchNorm2d"), .type = "BatchNorm",
		.nin = 5, .in = {x, gamma, beta, mean, variance}, .nout = 5,
		.out = {{cell, s}, {ap_model_name(m, cell, "mean"), one},
			{ap_model_name(m, cell, "variance"), one},
			{ap_model_name(m, cell, "saved_mean"), one},
			{ap_model_name(m, cell, "saved_variance"), one}},
		.nattr = 3, .attr = {AP_MODEL_FLAG("is_training", true), AP_MODEL_REAL("epsilon", 1e-4),
			AP_MODEL_REAL("momentum", 0.1)}};

	return ap_model_op(m, &op);
}

static ap_id relu(const struct place *p, ap_id x, const char *name)
{
	return ap_model_unary(p->m, scope_of(p, "relu", "ReLU"), "ReLU", x, name);
}

/* The shortcut of a block whose result has another shape than x. */
static ap_id shortcut(const struct place *block, ap_id x, int64_t out, int64_t stride)
{
	struct ap_model *m = block->m;
	struct place p = {m, scope_of(block, "down_sample_layer", "SequentialCell"),
		ap_arena_printf(ap_model_arena(m), "%sdown_sample_layer.", block->param)};

	return batch_norm(&p, "1", conv(&p, "0", x, out, 1, stride));
}

/* 1x1, 3x3 with the stride, 1x1 to the full number of channels; if not deep, 3x3 with the stride,
 * 3x3. */
static ap_id residual(const struct place *p, bool deep, ap_id x, int64_t width, int64_t stride)
{
	struct ap_model *m = p->m;
	int64_t out = deep ? width * EXPANSION : width;
	ap_id y = relu(p, batch_norm(p, "bn1", conv(p, "conv1", x, width, deep ? 1 : 3, deep ? 1 : stride)),
		"relu1");

	if (deep) {
		y = relu(p, batch_norm(p, "bn2", conv(p, "conv2", y, width, 3, stride)), "relu2");
		y = batch_norm(p, "bn3", conv(p, "conv3", y, out, 1, 1));
	} else {
		y = batch_norm(p, "bn2", conv(p, "conv2", y, width, 3, 1));
	}
	if (stride != 1 || ap_model_shape(m, x).dim[1] != out)
		x = shortcut(p, x, out, stride);
	return relu(p, ap_model_binary(m, p->scope, "Add", y, x, "sum"), "relu3");
}

static ap_id stage(struct ap_model *m, int number, int blocks, bool deep, ap_id x)
{
	struct ap_arena *arena = ap_model_arena(m);

	for (int i = 0; i < blocks; i++) {
		const char *name = ap_arena_printf(arena, "layer%d.%d.", number, i);
		struct place p = {m, ap_arena_printf(arena,
			NET "/layer%d-SequentialCell/%d-ResidualBlock", number, i), name};

		ap_model_prefix(m, name);
		x = residual(&p, deep, x, INT64_C(64) << (number - 1), i == 0 && number > 1 ? 2 : 1);
	}
	ap_model_prefix(m, "");
	return x;
}

/* Windows of 3x3 or 2x2 with stride 2. */
static ap_id max_pool(const struct place *p, const char *cell, const int64_t size[2], ap_id x)
{
	static const int64_t stride[] = {2, 2};
	struct ap_shape s = ap_model_shape(p->m, x);
	struct ap_model_op op = {.scope = scope_of(p, cell, "MaxPool2d"), .type = "MaxPool",
		.nin = 1, .in = {x}, .nattr = 3, .attr = {AP_MODEL_INTS("kernel_size", size, 2),
			AP_MODEL_INTS("strides", stride, 2), AP_MODEL_TEXT("pad_mode", "same")}};

	return ap_model_op_one(p->m, op, cell, AP_MODEL_SHAPE(s.dtype, s.dim[0], s.dim[1],
		(s.dim[2] + 1) / 2, (s.dim[3] + 1) / 2));
}

struct depth {
	int64_t layers;
	int blocks[5]; /* of the stages */
};

static const struct depth resnets[] = {{18, {2, 2, 2, 2}}, {34, {3, 4, 6, 3}}, {DEEP, {3, 4, 6, 3}},
	{101, {3, 4, 23, 3}}, {152, {3, 8, 36, 3}}, {0}};
static const struct depth vggs[] = {{11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}},
	{19, {2, 2, 4, 4, 4}}, {0}};
static const struct depth convnexts[] = {{18, {3, 3, 9, 3}}, {36, {3, 3, 27, 3}}, {0}};

/* NULL if the table, which a row of 0 ends, does not have it. */
static const struct depth *depth_of(const struct depth *table, int64_t layers)
{
	while (table->layers && table->layers != layers)
		table++;
	return table->layers ? table : NULL;
}

const char *ap_model_resnet_depth(int64_t layers)
{
	return depth_of(resnets, layers) ? NULL : "expected 18, 34, 50, 101 or 152";
}

const char *ap_model_vgg_depth(int64_t layers)
{
	return depth_of(vggs, layers) ? NULL : "expected 11, 13, 16 or 19";
}

const char *ap_model_convnext_depth(int64_t layers)
{
	return depth_of(convnexts, layers) ? NULL : "expected 18 (tiny) or 36 (small, base, large)";
}

struct ap_model *ap_model_resnet(struct ap_arena *arena, const struct ap_model_params *params)
{
	static const int64_t window[] = {3, 3};
	const struct depth *depth = depth_of(resnets, params->layers);
	struct ap_model *m = ap_model_create(arena, params->name, "momentum");
	struct place net = {m, NET, ""};
	ap_id image = ap_model_input(m, "image",
		AP_MODEL_SHAPE(params->dtype, params->batch, 3, IMAGE, IMAGE));
	ap_id labels = ap_model_input(m, "label", AP_MODEL_SHAPE(AP_INT32, params->batch));
	ap_id x = relu(&net, batch_norm(&net, "bn1", conv(&net, "conv1", image, 64, 7, 2)), "relu");
	struct ap_model_op flatten = {.scope = NET "/flatten-Flatten", .type = "Flatten", .nin = 1};

	assert(depth);
	x = max_pool(&net, "maxpool", window, x);
	for (int i = 0; i < STAGES; i++)
		x = stage(m, i + 1, depth->blocks[i], depth->layers >= DEEP, x);
	x = ap_model_reduce(m, NET, "ReduceMean", x, 2, true, "mean");
	flatten.in[0] = x;
	x = ap_model_op_one(m, flatten, "features",
		AP_MODEL_SHAPE(params->dtype, params->batch, ap_model_shape(m, x).dim[1]));
	x = ap_model_dense(m, NET "/end_point-Dense", "end_point", x, params->classes, "logits");
	(void)ap_model_mean_loss(m, LOSS, params->loss, x, labels);
	return m;
}

/* Adds a number to each channel. */
static ap_id bias(const struct place *p, const char *cell, ap_id x)
{
	struct ap_model *m = p->m;
	struct ap_shape s = ap_model_shape(m, x);
	ap_id b = ap_model_param(m, param_of(p, cell, "bias"), AP_MODEL_SHAPE(s.dtype, s.dim[1]));
	struct ap_model_op add = {.scope = scope_of(p, cell, "Conv2d"), .type = "BiasAdd", .nin = 2,
		.in = {x, b}};

	return ap_model_op_one(m, add, ap_model_name(m, cell, "sum"), s);
}

struct ap_model *ap_model_vgg(struct ap_arena *arena, const struct ap_model_params *params)
{
	static const int64_t window[] = {2, 2};
	enum { UNITS = 4096, VGG_STAGES = 5, WIDEST = 512 };
	const struct depth *depth = depth_of(vggs, params->layers);
	struct ap_model *m = ap_model_create(arena, params->name, "momentum");
	struct place net = {m, VGG, ""};
	struct ap_model_op flatten = {.scope = VGG "/flatten-Flatten", .type = "Flatten", .nin = 1};
	ap_id x = ap_model_input(m, "image", AP_MODEL_SHAPE(params->dtype, params->batch, 3, IMAGE, IMAGE));
	ap_id labels = ap_model_input(m, "label", AP_MODEL_SHAPE(AP_INT32, params->batch));
	struct ap_shape s;
	int number = 0;

	assert(depth);
	for (int i = 0; i < VGG_STAGES; i++) {
		int64_t width = INT64_C(64) << i;

		for (int j = 0; j < depth->blocks[i]; j++) {
			const char *cell = ap_arena_printf(arena, "layers.%d", number++);

			x = conv(&net, cell, x, width < WIDEST ? width : WIDEST, 3, 1);
			x = relu(&net, bias(&net, cell, x), ap_model_name(m, cell, "relu"));
		}
		x = max_pool(&net, ap_arena_printf(arena, "layers.%d", number++), window, x);
	}
	s = ap_model_shape(m, x);
	flatten.in[0] = x;
	x = ap_model_op_one(m, flatten, "features",
		AP_MODEL_SHAPE(params->dtype, params->batch, s.dim[1] * s.dim[2] * s.dim[3]));
	x = ap_model_dense(m, VGG "/classifier.0-Dense", "classifier.0", x, UNITS, "classifier.0");
	x = ap_model_unary(m, VGG "/classifier.1-ReLU", "ReLU", x, "classifier.1");
	x = ap_model_dense(m, VGG "/classifier.3-Dense", "classifier.3", x, UNITS, "classifier.3");
	x = ap_model_unary(m, VGG "/classifier.4-ReLU", "ReLU", x, "classifier.4");
	x = ap_model_dense(m, VGG "/classifier.6-Dense", "classifier.6", x, params->classes, "logits");
	(void)ap_model_mean_loss(m, LOSS, params->loss, x, labels);
	return m;
}

/* A norm over the channels, which stand last; channels_first: before it and after they stand behind the
 * batch. */
static ap_id channel_norm(const struct place *p, const char *cell, ap_id x, bool channels_first)
{
	static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};
	struct ap_model *m = p->m;
	const char *scope = scope_of(p, cell, "LayerNorm");
	const char *param = ap_arena_printf(ap_model_arena(m), "%s%s", p->param, cell);

	if (!channels_first)
		return ap_model_layer_norm(m, scope, param, x, cell);
	x = ap_model_transpose(m, scope, x, to_last, ap_model_name(m, cell, "in"));
	x = ap_model_layer_norm(m, scope, param, x, ap_model_name(m, cell, "out"));
	return ap_model_transpose(m, scope, x, to_first, cell);
}

/* Each channel's windows of 7x7; a norm and two products over the channels of each point, four times as wide
 * between them; each channel scaled by a number that is learned; the sum with x. */
static ap_id convnext_block(const struct place *p, ap_id x)
{
	static const int64_t to_last[] = {0, 2, 3, 1}, to_first[] = {0, 3, 1, 2};
	struct ap_model *m = p->m;
	struct ap_arena *arena = ap_model_arena(m);
	struct ap_shape s = ap_model_shape(m, x), last;
	ap_id y = bias(p, "dwconv", conv_of_groups(p, "dwconv", x, s.dim[1], 7, 1, s.dim[1])), scale;

	y = channel_norm(p, "norm", ap_model_transpose(m, p->scope, y, to_last, "channels_last"), false);
	last = ap_model_shape(m, y);
	y = ap_model_reshape(m, p->scope, y,
		AP_MODEL_SHAPE(s.dtype, s.dim[0] * s.dim[2] * s.dim[3], s.dim[1]), "points");
	y = ap_model_dense(m, scope_of(p, "pwconv1", "Dense"), ap_arena_printf(arena, "%spwconv1", p->param),
		y, 4 * s.dim[1], "pwconv1");
	y = ap_model_unary(m, scope_of(p, "act", "GELU"), "GeLU", y, "act");
	y = ap_model_dense(m, scope_of(p, "pwconv2", "Dense"), ap_arena_printf(arena, "%spwconv2", p->param),
		y, s.dim[1], "pwconv2");
	scale = ap_model_param(m, ap_arena_printf(arena, "%sgamma", p->param),
		AP_MODEL_SHAPE(s.dtype, s.dim[1]));
	y = ap_model_binary(m, p->scope, "Mul", y, scale, "scaled");
	y = ap_model_reshape(m, p->scope, y, last, "grid");
	y = ap_model_transpose(m, p->scope, y, to_first, "channels_first");
	return ap_model_binary(m, p->scope, "Add", x, y, "sum");
}

struct ap_model *ap_model_convnext(struct ap_arena *arena, const struct ap_model_params *params)
{
	const struct depth *depth = depth_of(convnexts, params->layers);
	struct ap_model *m = ap_model_create(arena, params->name, "adam_weight_decay");
	struct place net = {m, CONVNEXT, ""};
	ap_id x = ap_model_input(m, "image", AP_MODEL_SHAPE(params->dtype, params->batch, 3, IMAGE, IMAGE));
	ap_id labels = ap_model_input(m, "label", AP_MODEL_SHAPE(AP_INT32, params->batch));

	assert(depth);
	for (int i = 0; i < STAGES; i++) {
		const char *down = ap_arena_printf(arena, "downsample_layers.%d.", i);
		struct place p = {m, ap_arena_printf(arena,
			CONVNEXT "/downsample_layers.%d-SequentialCell", i), down};
		const char *first = i ? "1" : "0"; /* the convolution: first before the norm, then behind */
		int64_t step = i ? 2 : 4;

		ap_model_prefix(m, down);
		x = i ? channel_norm(&p, "0", x, true) : x;
		x = bias(&p, first, conv(&p, first, x, params->hidden << i, step, step));
		x = i ? x : channel_norm(&p, "1", x, true);
		for (int j = 0; j < depth->blocks[i]; j++) {
			p.param = ap_arena_printf(arena, "stages.%d.%d.", i, j);
			p.scope = ap_arena_printf(arena, CONVNEXT "/stages.%d-SequentialCell/%d-Block", i, j);
			ap_model_prefix(m, p.param);
			x = convnext_block(&p, x);
		}
	}
	ap_model_prefix(m, "");
	x = ap_model_reduce(m, CONVNEXT, "ReduceMean", x, 2, false, "mean");
	x = channel_norm(&net, "norm", x, false);
	x = ap_model_dense(m, CONVNEXT "/head-Dense", "head", x, params->classes, "logits");
	(void)ap_model_mean_loss(m, LOSS, params->loss, x, labels);
	return m;
}
