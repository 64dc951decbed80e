/* SPDX-License-Identifier: Apache-2.0 */
#include "model/vit.h"

#include "base/arena.h"

#define TOP "Default/network-ViTForImageClassification/"
#define BACKBONE TOP "vit-ViTModel"
#define LOSS TOP "loss-SoftmaxCrossEntropyExpand"

struct vit {
	struct ap_model_encoder e;
	const struct ap_vit *p;
	const struct ap_vit_names *names;
};

/* A convolution with adjacent windows: [B,C,I,I] to [B,patches,h]. */
static ap_id patches(const struct vit *l)
{
	static const int64_t channels_last[] = {0, 2, 1};
	static const char scope[] = BACKBONE "/patch_embed-PatchEmbed";
	const struct ap_vit *p = l->p;
	int64_t size[] = {p->patch, p->patch}, grid = p->image / p->patch;
	struct ap_model *m = l->e.m;
	ap_id image = ap_model_input(m, "image",
		AP_MODEL_SHAPE(p->dtype, p->batch, p->channels, p->image, p->image));
	ap_id w = ap_model_param(m, ap_model_name(m, l->names->projection, "weight"),
		AP_MODEL_SHAPE(p->dtype, p->hidden, p->channels, p->patch, p->patch));
	ap_id b = ap_model_param(m, ap_model_name(m, l->names->projection, "bias"),
		AP_MODEL_SHAPE(p->dtype, p->hidden));
	const int64_t *window = ap_arena_memdup(ap_model_arena(m), size, sizeof size);
	struct ap_model_op conv = {.scope = BACKBONE "/patch_embed-PatchEmbed/proj-Conv2d",
		.type = "Conv2D", .nin = 2, .in = {image, w}, .nattr = 3, .attr = {
			AP_MODEL_INTS("kernel_size", window, 2), AP_MODEL_INTS("stride", window, 2),
			AP_MODEL_TEXT("pad_mode", "valid")}};
	ap_id x = ap_model_op_one(m, conv, "patches.conv",
		AP_MODEL_SHAPE(p->dtype, p->batch, p->hidden, grid, grid));
	struct ap_model_op bias = {.scope = conv.scope, .type = "BiasAdd", .nin = 2, .in = {x, b}};

	x = ap_model_op_one(m, bias, "patches.grid", ap_model_shape(m, x));
	x = ap_model_reshape(m, scope, x, AP_MODEL_SHAPE(p->dtype, p->batch, p->hidden, grid * grid),
		"patches.row");
	return ap_model_transpose(m, scope, x, channels_last, "patches");
}

/* Adds the class token before the patches, and a learned position to each. */
static ap_id embed(const struct vit *l)
{
	const struct ap_vit *p = l->p;
	struct ap_model *m = l->e.m;
	ap_id x = patches(l);
	ap_id token = ap_model_param(m, l->names->token, AP_MODEL_SHAPE(p->dtype, 1, 1, p->hidden));
	ap_id places = ap_model_param(m, l->names->positions,
		AP_MODEL_SHAPE(p->dtype, 1, l->e.sequence, p->hidden));

	token = ap_model_repeat(m, BACKBONE, token, 0, p->batch, "class");
	x = ap_model_concat(m, BACKBONE, token, x, 1, "tokens");
	x = ap_model_binary(m, BACKBONE, "Add", x, places, "embedding");
	return ap_model_encoder_dropout(&l->e, BACKBONE, x, "embedding.dropped");
}

/* The mean of what the pooler makes of the class token. */
static void mean(const struct vit *l, ap_id x)
{
	struct ap_model *m = l->e.m;

	x = ap_model_dense(m, BACKBONE "/pooler-Dense", l->names->pooler, x, l->p->hidden, "pooled");
	x = ap_model_unary(m, BACKBONE "/pooler-Dense/activation-Tanh", "Tanh", x, "pooled.tanh");
	x = ap_model_cast(m, LOSS, x, AP_FLOAT32, "pooled.float32");
	x = ap_model_reduce(m, LOSS, "ReduceMean", x, 1, false, "means");
	ap_model_reduce(m, LOSS, "ReduceMean", x, 1, false, "loss");
}

struct ap_model *ap_model_vit_of(struct ap_arena *arena, const struct ap_vit *p)
{
	struct ap_model *m = ap_model_create(arena, p->name, "adam_weight_decay");
	int64_t grid = p->image / p->patch;
	struct vit l = {.p = p, .names = p->names, .e = {.m = m, .names = &p->names->block, .batch = p->batch,
		.sequence = grid * grid + 1, .hidden = p->hidden, .inner = p->inner, .dtype = p->dtype,
		.fused = p->flash, .activation = p->activation, .no_qkv_bias = p->no_qkv_bias,
		.torch = p->torch, .dropout = p->dropout, .memory = AP_NONE,
		.attention = {.heads = p->heads, .size = p->hidden / p->heads, .dropout = p->dropout}}};
	ap_id x, labels = AP_NONE;

	if (p->fused)
		ap_model_fuse(m);
	x = embed(&l);
	if (p->classes)
		labels = ap_model_input(m, "label", AP_MODEL_SHAPE(AP_INT32, p->batch));
	ap_model_attention_constants(m, &l.e.attention, p->flash, l.e.sequence, p->dtype);
	for (int64_t i = 0; i < p->layers; i++)
		x = ap_model_encoder_block(&l.e, ap_model_scope(m, BACKBONE, p->names->blocks_cell),
			p->names->blocks, i, x);
	x = ap_model_encoder_norm(&l.e, BACKBONE, p->names->norm, x, "norm");
	x = ap_model_first(m, BACKBONE, x, "norm.class");
	if (!p->classes) {
		mean(&l, x);
		return m;
	}
	x = ap_model_dense(m, TOP "head-Dense", p->names->head, x, p->classes, "logits");
	(void)ap_model_mean_loss(m, LOSS, p->loss, x, labels);
	return m;
}

struct ap_model *ap_model_vit(struct ap_arena *arena, const struct ap_model_params *p)
{
	struct ap_model_encoder e = ap_model_encoder_of(NULL, p, 0);
	struct ap_vit_names names = {.block = *e.names, .projection = "vit.patch_embed.proj",
		.token = "vit.cls_tokens", .positions = "vit.pos_embed", .blocks_cell = "blocks-CellList",
		.blocks = "vit.blocks", .norm = "vit.fc_norm", .head = "head"};
	struct ap_vit v = {.name = p->name, .names = &names, .batch = p->batch, .layers = p->layers,
		.hidden = p->hidden, .heads = p->heads, .inner = e.inner, .image = 224, .patch = 16,
		.channels = 3, .classes = p->classes, .activation = p->activation, .flash = p->flash,
		.fused = p->fused, .dropout = p->dropout, .dtype = p->dtype};

	return ap_model_vit_of(arena, &v);
}
