/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_model MODEL [OPTIONS]: writes the operator graph of a model, made from its dimensions, to
 * standard output. models/README.md says how the bundled ones are made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "tools/models.h"

enum { EXIT_USAGE = 2, EXIT_IO = 6 };

struct options {
	struct model_gpt_params gpt;
	const char *attention, *dtype;
};

enum kind { SIZE, TEXT, FRACTION };

static const struct option {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct options */
	bool mix; /* multiple_mix takes it too */
	const char *help;
} options[] = {
	{"--name", TEXT, offsetof(struct options, gpt.name), true, "what the graph is called"},
	{"--batch", SIZE, offsetof(struct options, gpt.batch), true, "samples of a step"},
	{"--layers", SIZE, offsetof(struct options, gpt.layers), false, "transformer blocks"},
	{"--hidden", SIZE, offsetof(struct options, gpt.hidden), false, "units of a layer"},
	{"--heads", SIZE, offsetof(struct options, gpt.heads), false, "of the attention"},
	{"--sequence", SIZE, offsetof(struct options, gpt.sequence), false, "tokens of a sample"},
	{"--vocabulary", SIZE, offsetof(struct options, gpt.vocabulary), false, "rows of the table"},
	{"--attention", TEXT, offsetof(struct options, attention), false, "small or flash"},
	{"--dtype", TEXT, offsetof(struct options, dtype), false, "float16, bfloat16 or float32"},
	{"--dropout", FRACTION, offsetof(struct options, gpt.dropout), false, "0 leaves it out"},
};
enum { NOPTION = sizeof options / sizeof *options };

static _Noreturn void usage(const char *what, const char *name)
{
	if (what)
		fprintf(stderr, "make_model: %s: %s\n", name, what);
	fputs("usage: make_model multiple_mix|gpt3 [OPTION VALUE]...\n", stderr);
	for (size_t i = 0; i < NOPTION; i++)
		fprintf(stderr, "  %-13s %s%s\n", options[i].name, options[i].help,
			options[i].mix ? "" : " (gpt3)");
	exit(EXIT_USAGE);
}

static void set(struct options *o, const struct option *row, const char *value)
{
	void *at = (char *)o + row->offset;
	double fraction;

	switch (row->kind) {
	case SIZE:
		if (!ap_parse_int(value, 1, 1 << 24, at))
			usage("a whole number from 1 to 16777216 is expected", row->name);
		break;
	case FRACTION:
		if (!ap_parse_double(value, &fraction) || fraction < 0 || fraction >= 1)
			usage("a number from 0 to below 1 is expected", row->name);
		memcpy(at, &fraction, sizeof fraction);
		break;
	case TEXT:
		memcpy(at, &value, sizeof value);
		break;
	}
}

static void parse(struct options *o, bool mix, int argc, char **argv)
{
	for (int i = 2; i < argc; i += 2) {
		size_t k = 0;

		while (k < NOPTION && strcmp(argv[i], options[k].name) != 0)
			k++;
		if (k == NOPTION || (mix && !options[k].mix))
			usage("no such option for this model", argv[i]);
		if (i + 1 == argc)
			usage("needs a value", argv[i]);
		set(o, &options[k], argv[i + 1]);
	}
}

static void check_gpt(struct options *o)
{
	struct model_gpt_params *p = &o->gpt;
	bool small = !strcmp(o->attention, "small");

	p->flash = !strcmp(o->attention, "flash");
	p->dtype = ap_dtype_find(o->dtype);
	if (!small && !p->flash)
		usage("small or flash is expected", "--attention");
	if (p->dtype == AP_DTYPE_COUNT || !ap_dtype_is_float(p->dtype))
		usage("a floating type is expected", "--dtype");
	if (p->hidden % p->heads)
		usage("must divide --hidden", "--heads");
	if (p->layers > 1000)
		usage("at most 1000 are possible", "--layers");
}

static void write_out(void *user, const char *bytes, size_t len)
{
	fwrite(bytes, 1, len, user);
}

int main(int argc, char **argv)
{
	struct options o = {
		.gpt = {.layers = 24, .hidden = 2048, .heads = 16, .sequence = 2048,
			.vocabulary = 50304},
		.attention = "small", .dtype = "float16"};
	bool mix = argc > 1 && !strcmp(argv[1], "multiple_mix");
	struct ap_arena *arena;
	const struct model *m;

	if (argc < 2 || (!mix && strcmp(argv[1], "gpt3") != 0))
		usage(NULL, NULL);
	o.gpt.name = argv[1];
	o.gpt.batch = mix ? 32 : 64;
	parse(&o, mix, argc, argv);
	check_gpt(&o);
	arena = ap_arena_create(0, NULL, NULL);
	m = mix ? model_multiple_mix(arena, o.gpt.name, o.gpt.batch) : model_gpt(arena, &o.gpt);
	model_write(m, write_out, stdout);
	ap_arena_destroy(arena);
	if (ferror(stdout) | fflush(stdout)) {
		perror("make_model: standard output");
		return EXIT_IO;
	}
	return EXIT_SUCCESS;
}
