/* SPDX-License-Identifier: Apache-2.0 */
#include "model/families.h"

#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "model/bert.h"
#include "model/vit.h"

#define BIT(what) AP_MODEL_##what
#define TRANSFORMER (BIT(LAYERS) | BIT(HIDDEN) | BIT(HEADS) | BIT(HEAD_SIZE) | BIT(INNER) | BIT(DTYPE) | \
	BIT(KERNELS) | BIT(LOSS))
#define CNN (BIT(CLASSES) | BIT(DTYPE) | BIT(LOSS))
#define TEXT (TRANSFORMER | BIT(SEQUENCE) | BIT(VOCABULARY))
#define ENCODER (BIT(ACTIVATION) | BIT(DROPOUT))
#define LLAMA (TEXT | BIT(KV_HEADS) | BIT(ATTENTION))

static const struct ap_model_family families[] = {
	{"multiple_mix", "the three dense layers of MindSpore's multiple_mix sample",
		ap_model_multiple_mix, 0, {.batch = 32}},
	{"resnet50", "ResNet-50 for images of 224x224",
		ap_model_resnet, CNN, {.batch = 256, .layers = 50, .classes = 1000, .dtype = AP_FLOAT32},
		ap_model_resnet_depth},
	{"resnet", "ResNet of 18 to 152 layers for images of 224x224",
		ap_model_resnet, CNN | BIT(LAYERS), {.batch = 256, .layers = 50, .classes = 1000,
		.dtype = AP_FLOAT32}, ap_model_resnet_depth},
	{"vgg16", "VGG-16 for images of 224x224",
		ap_model_vgg, CNN, {.batch = 256, .layers = 16, .classes = 1000, .dtype = AP_FLOAT32},
		ap_model_vgg_depth},
	{"vgg", "VGG of 11 to 19 layers for images of 224x224",
		ap_model_vgg, CNN | BIT(LAYERS), {.batch = 256, .layers = 16, .classes = 1000,
		.dtype = AP_FLOAT32}, ap_model_vgg_depth},
	{"convnext", "ConvNeXt of 18 or 36 blocks for images of 224x224",
		ap_model_convnext, CNN | BIT(LAYERS) | BIT(HIDDEN), {.batch = 4096, .layers = 18,
		.hidden = 96, .classes = 1000, .dtype = AP_FLOAT32}, ap_model_convnext_depth},
	{"wide_deep", "Wide&Deep over 39 fields",
		ap_model_wide_deep, BIT(VOCABULARY) | BIT(HIDDEN),
		{.batch = 16000, .vocabulary = 200000, .hidden = 80}},
	{"gpt3", "GPT-2 and GPT-3: decoder with learned positions",
		ap_model_gpt, TEXT | BIT(ATTENTION) | ENCODER, {.batch = 64,
		.layers = 24, .hidden = 2048, .heads = 16, .sequence = 2048, .vocabulary = 50304,
		.dtype = AP_FLOAT16}},
	{"bert", "BERT with both heads of its pre-training",
		ap_model_bert, TEXT | ENCODER, {.batch = 256, .layers = 24,
		.hidden = 1024, .heads = 16, .sequence = 512, .vocabulary = 30522, .dtype = AP_FLOAT16}},
	{"vit", "ViT of patches of 16x16 of images of 224x224",
		ap_model_vit, TRANSFORMER | BIT(CLASSES) | BIT(ATTENTION) | ENCODER,
		{.batch = 4096, .layers = 24, .hidden = 1024, .heads = 16, .classes = 1000,
		.dtype = AP_FLOAT16}},
	{"llama", "Llama: decoder with rotary positions and grouped queries",
		ap_model_llama, LLAMA | BIT(ACTIVATION), {.batch = 512, .layers = 32, .hidden = 4096,
		.heads = 32, .kv_heads = 32, .inner = 11008, .activation = AP_MODEL_SWIGLU,
		.sequence = 4096, .vocabulary = 32000,
		.dtype = AP_FLOAT16}},
	{"mixtral", "Mixtral: Llama with experts",
		ap_model_mixtral, LLAMA | BIT(EXPERTS) | BIT(ACTIVE) | BIT(CAPACITY),
		{.batch = 512, .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
		.inner = 14336, .sequence = 4096, .vocabulary = 32000, .experts = 8, .active = 2,
		.capacity = 1.25, .dtype = AP_FLOAT16}},
};
enum { NFAMILY = AP_COUNT(families) };

const struct ap_model_family *ap_model_family_at(size_t i)
{
	return i < NFAMILY ? &families[i] : NULL;
}

const struct ap_model_family *ap_model_family_find(const char *name)
{
	for (size_t i = 0; i < NFAMILY; i++)
		if (!strcmp(families[i].name, name))
			return &families[i];
	return NULL;
}

/* Elements of the largest tensor, about; factors that a family lacks are 0. */
static double largest(const struct ap_model_family *f, const struct ap_model_params *p)
{
	double first = (double)p->batch * 56 * 56 * 4, last = 8 * (double)p->hidden;
	double rows = (double)p->batch * (double)(p->sequence ? p->sequence : 1);
	double size = p->head_size ? (double)p->head_size
		: p->heads ? (double)p->hidden / (double)p->heads : 1;
	double width = fmax(fmax((double)p->hidden, (double)p->heads * size), fmax((double)p->inner,
		fmax((double)p->vocabulary, (double)p->classes)));
	double scores = rows * (double)p->heads * (double)p->sequence;
	double tokens = rows * fmax((double)p->active * fmax(p->capacity, 1), 1) + rows * (double)p->experts;
	double weights = fmax((double)p->experts, 1) * width * fmax((double)p->hidden, width);

	if (f->make == ap_model_convnext)
		return fmax(first * (double)p->hidden, last * fmax(4 * last, (double)p->classes));
	return fmax(fmax(4 * tokens * width, scores), fmax(tokens * (double)p->sequence, weights));
}

static const char *heads_refused(const struct ap_model_family *f, const struct ap_model_params *p,
	uint32_t *option)
{
	int64_t size = p->head_size ? p->head_size : p->hidden / p->heads;

	*option = AP_MODEL_HEADS;
	if (!p->head_size && p->hidden % p->heads)
		return "must divide --hidden where --head-size is not given";
	*option = AP_MODEL_KV_HEADS;
	if ((f->takes & AP_MODEL_KV_HEADS) && p->heads % p->kv_heads)
		return "must divide --heads";
	*option = p->head_size ? AP_MODEL_HEAD_SIZE : AP_MODEL_HEADS;
	if ((f->takes & AP_MODEL_KV_HEADS) && size % 2)
		return "makes heads of an odd size; rotary positions turn pairs";
	return NULL;
}

const char *ap_model_refuses(const struct ap_model_family *f, const struct ap_model_params *p,
	uint32_t *option)
{
	const char *why = f->takes & AP_MODEL_HEADS ? heads_refused(f, p, option) : NULL;

	if (why)
		return why;
	*option = AP_MODEL_ACTIVATION;
	if (f->make != ap_model_llama && p->activation > AP_MODEL_RELU && (f->takes & AP_MODEL_ACTIVATION))
		return "expected gelu or relu: this family has no other";
	*option = AP_MODEL_LAYERS;
	if (f->depth && f->depth(p->layers))
		return f->depth(p->layers);
	*option = AP_MODEL_ACTIVE;
	if (p->active > p->experts)
		return "must be at most --experts";
	*option = 0;
	return largest(f, p) > 1e17 ? "these dimensions make a tensor of more than 10^17 elements" : NULL;
}
