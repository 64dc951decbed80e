/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"
#include "tools/models.h"

#include <assert.h>
#include <string.h>

#define TRANSFORMER (MODEL_LAYERS | MODEL_HIDDEN | MODEL_HEADS | MODEL_HEAD_SIZE | MODEL_INNER | \
	MODEL_DTYPE | MODEL_FUSED)
#define CNN (MODEL_CLASSES | MODEL_DTYPE)
#define TEXT (TRANSFORMER | MODEL_SEQUENCE | MODEL_VOCABULARY)
#define LLAMA (TEXT | MODEL_KV_HEADS | MODEL_ATTENTION)

static const struct model_kind kinds[] = {
	{"multiple_mix", model_multiple_mix, 0, {.batch = 32}},
	{"resnet50", model_resnet, CNN, {.batch = 256, .layers = 50, .classes = 1000,
		.dtype = AP_FLOAT32}},
	{"resnet", model_resnet, CNN | MODEL_LAYERS, {.batch = 256, .layers = 50, .classes = 1000,
		.dtype = AP_FLOAT32}},
	{"vgg16", model_vgg16, CNN, {.batch = 256, .classes = 1000, .dtype = AP_FLOAT32}},
	{"wide_deep", model_wide_deep, MODEL_VOCABULARY | MODEL_HIDDEN,
		{.batch = 16000, .vocabulary = 200000, .hidden = 80}},
	{"gpt3", model_gpt, TEXT | MODEL_ATTENTION | MODEL_ACTIVATION | MODEL_DROPOUT, {.batch = 64,
		.layers = 24, .hidden = 2048, .heads = 16, .sequence = 2048, .vocabulary = 50304,
		.dtype = AP_FLOAT16}},
	{"bert", model_bert, TEXT | MODEL_ACTIVATION | MODEL_DROPOUT, {.batch = 256, .layers = 24,
		.hidden = 1024, .heads = 16, .sequence = 512, .vocabulary = 30522, .dtype = AP_FLOAT16}},
	{"vit", model_vit, TRANSFORMER | MODEL_CLASSES | MODEL_ATTENTION | MODEL_ACTIVATION | MODEL_DROPOUT,
		{.batch = 4096, .layers = 24, .hidden = 1024, .heads = 16, .classes = 1000,
		.dtype = AP_FLOAT16}},
	{"llama", model_llama, LLAMA | MODEL_ACTIVATION, {.batch = 512, .layers = 32, .hidden = 4096,
		.heads = 32, .kv_heads = 32, .inner = 11008, .activation = MODEL_SWIGLU,
		.sequence = 4096, .vocabulary = 32000,
		.dtype = AP_FLOAT16}},
	{"mixtral", model_mixtral, LLAMA | MODEL_EXPERTS | MODEL_ACTIVE | MODEL_CAPACITY,
		{.batch = 512, .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8,
		.inner = 14336, .sequence = 4096, .vocabulary = 32000, .experts = 8, .active = 2,
		.capacity = 1.25, .dtype = AP_FLOAT16}},
};
enum { NKIND = AP_COUNT(kinds) };

enum model_activation model_activation_find(const char *name)
{
	static const char *const names[] = {"gelu", "relu", "squared_relu", "swiglu", "geglu"};
	int a = 0;

	static_assert(AP_COUNT(names) == MODEL_ACTIVATIONS, "an activation without a name");
	while (a < MODEL_ACTIVATIONS && strcmp(names[a], name) != 0)
		a++;
	return (enum model_activation)a;
}

bool model_activation_gated(enum model_activation a)
{
	return a == MODEL_SWIGLU || a == MODEL_GEGLU;
}

const struct model_kind *model_kind_at(size_t i)
{
	return i < NKIND ? &kinds[i] : NULL;
}

const struct model_kind *model_kind_find(const char *name)
{
	for (size_t i = 0; i < NKIND; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}
