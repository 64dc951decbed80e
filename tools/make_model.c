/* SPDX-License-Identifier: Apache-2.0 */
/* make_model MODEL [OPTIONS]: writes the operator graph of a model of given dimensions to standard
 * output. models/README.md lists the commands for the bundled ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "tools/models.h"

enum { EXIT_USAGE = 2, EXIT_IO = 6 };

struct options {
	struct model_params params;
	const char *attention, *dtype, *activation, *kernels;
};

enum value { SIZE, TEXT, SHARE, FACTOR };

static const struct option {
	const char *name;
	enum value value;
	uint32_t bit; /* of model_kind.takes; 0: all models take it */
	size_t offset; /* in struct options */
	const char *help;
} options[] = {
#define PARAM(field) offsetof(struct options, params.field)
	{"--name", TEXT, 0, PARAM(name), "what the graph is called"},
	{"--batch", SIZE, 0, PARAM(batch), "samples of a step"},
	{"--layers", SIZE, MODEL_LAYERS, PARAM(layers), "blocks"},
	{"--hidden", SIZE, MODEL_HIDDEN, PARAM(hidden), "units of a layer or row"},
	{"--heads", SIZE, MODEL_HEADS, PARAM(heads), "of the attention"},
	{"--kv-heads", SIZE, MODEL_KV_HEADS, PARAM(kv_heads), "of keys and values"},
	{"--head-size", SIZE, MODEL_HEAD_SIZE, PARAM(head_size), "else --hidden / --heads"},
	{"--inner", SIZE, MODEL_INNER, PARAM(inner), "units of the feed-forward part"},
	{"--sequence", SIZE, MODEL_SEQUENCE, PARAM(sequence), "tokens of a sample"},
	{"--vocabulary", SIZE, MODEL_VOCABULARY, PARAM(vocabulary), "rows of the table"},
	{"--classes", SIZE, MODEL_CLASSES, PARAM(classes), "results of the classifier"},
	{"--experts", SIZE, MODEL_EXPERTS, PARAM(experts), "of a block"},
	{"--active", SIZE, MODEL_ACTIVE, PARAM(active), "experts of a token"},
	{"--capacity", FACTOR, MODEL_CAPACITY, PARAM(capacity), "room of an expert / its share"},
	{"--attention", TEXT, MODEL_ATTENTION, offsetof(struct options, attention),
		"small or flash"},
	{"--activation", TEXT, MODEL_ACTIVATION, offsetof(struct options, activation),
		"gelu or relu; of llama squared_relu, swiglu or geglu, too"},
	{"--dtype", TEXT, MODEL_DTYPE, offsetof(struct options, dtype),
		"float16, bfloat16 or float32"},
	{"--kernels", TEXT, MODEL_FUSED, offsetof(struct options, kernels), "single or fused"},
	{"--dropout", SHARE, MODEL_DROPOUT, PARAM(dropout), "0 leaves it out"},
#undef PARAM
};
enum { NOPTION = AP_COUNT(options) };

static bool takes(const struct model_kind *kind, const struct option *row)
{
	return !row->bit || (kind->takes & row->bit);
}

/* Prints the options of a model, or all models. */
static _Noreturn void usage(const struct model_kind *kind, const char *what, const char *name)
{
	if (what)
		fprintf(stderr, "make_model: %s: %s\n", name, what);
	fputs("usage: make_model MODEL [OPTION VALUE]...\n", stderr);
	for (size_t i = 0; !kind && model_kind_at(i); i++)
		fprintf(stderr, "  %s\n", model_kind_at(i)->name);
	for (size_t i = 0; kind && i < NOPTION; i++)
		if (takes(kind, &options[i]))
			fprintf(stderr, "  %-13s %s\n", options[i].name, options[i].help);
	exit(EXIT_USAGE);
}

static void set(struct options *o, const struct model_kind *kind, const struct option *row,
	const char *value)
{
	void *at = (char *)o + row->offset;
	double number;

	switch (row->value) {
	case SIZE:
		if (!ap_parse_int(value, 1, 1 << 28, at))
			usage(kind, "a whole number from 1 to 268435456 is expected", row->name);
		break;
	case SHARE:
	case FACTOR:
		if (!ap_parse_double(value, &number) || number < 0 ||
			(row->value == SHARE ? number >= 1 : number == 0 || number > 1000))
			usage(kind, row->value == SHARE ? "a number from 0 to below 1 is expected" :
				"a number above 0, at most 1000, is expected", row->name);
		memcpy(at, &number, sizeof number);
		break;
	case TEXT:
		memcpy(at, &value, sizeof value);
		break;
	}
}

static void parse(struct options *o, const struct model_kind *kind, int argc, char **argv)
{
	for (int i = 2; i < argc; i += 2) {
		size_t k = 0;

		while (k < NOPTION && strcmp(argv[i], options[k].name) != 0)
			k++;
		if (k == NOPTION || !takes(kind, &options[k]))
			usage(kind, "no such option for this model", argv[i]);
		if (i + 1 == argc)
			usage(kind, "needs a value", argv[i]);
		set(o, kind, &options[k], argv[i + 1]);
	}
}

/* Interprets options given as words, and refuses contradictions. */
static void settle(struct options *o, const struct model_kind *kind)
{
	struct model_params *p = &o->params;

	if (o->attention) {
		p->flash = !strcmp(o->attention, "flash");
		if (!p->flash && strcmp(o->attention, "small") != 0)
			usage(kind, "small or flash is expected", "--attention");
	}
	if (o->dtype) {
		p->dtype = ap_dtype_find(o->dtype);
		if (p->dtype == AP_DTYPE_COUNT || !ap_dtype_is_float(p->dtype))
			usage(kind, "a floating type is expected", "--dtype");
	}
	if (o->kernels) {
		p->fused = !strcmp(o->kernels, "fused");
		if (!p->fused && strcmp(o->kernels, "single") != 0)
			usage(kind, "single or fused is expected", "--kernels");
	}
	if (o->activation) {
		p->activation = model_activation_find(o->activation);
		if (p->activation == MODEL_ACTIVATIONS ||
			(kind->make != model_llama && p->activation > MODEL_RELU))
			usage(kind, "no such activation of this model", "--activation");
	}
	if ((kind->takes & MODEL_HEADS) && !p->head_size && p->hidden % p->heads)
		usage(kind, "must divide --hidden", "--heads");
	if ((kind->takes & MODEL_KV_HEADS) && (p->heads % p->kv_heads ||
		(p->head_size ? p->head_size : p->hidden / p->heads) % 2))
		usage(kind, "must divide --heads, and the size of a head be even", "--kv-heads");
	if (kind->make == model_resnet && !model_resnet_has(p->layers))
		usage(kind, "18, 34, 50, 101 or 152 are possible", "--layers");
	if (p->active > p->experts)
		usage(kind, "more than --experts", "--active");
	if (p->layers > 1000)
		usage(kind, "at most 1000 are possible", "--layers");
}

static void write_out(void *user, const char *bytes, size_t len)
{
	fwrite(bytes, 1, len, user);
}

int main(int argc, char **argv)
{
	const struct model_kind *kind = argc < 2 ? NULL : model_kind_find(argv[1]);
	struct options o = {0};
	struct ap_arena *arena;

	if (!kind)
		usage(NULL, argc < 2 ? NULL : "no such model", argv[1]);
	o.params = kind->standard;
	o.params.name = kind->name;
	parse(&o, kind, argc, argv);
	settle(&o, kind);
	arena = ap_arena_create(0, NULL, NULL);
	model_write(kind->make(arena, &o.params), write_out, stdout);
	ap_arena_destroy(arena);
	if (ferror(stdout) | fflush(stdout)) {
		perror("make_model: standard output");
		return EXIT_IO;
	}
	return EXIT_SUCCESS;
}
