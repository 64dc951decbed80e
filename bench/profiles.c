/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/builtin.h"

struct edit { /* of a number in a profile; pointer NULL: the end */
	const char *pointer;
	double value;
};

static const struct edit neutral[] = { /* what of the software was fitted, or is a guess: as if it were not */
	{"/gradient_exposed", 1},
	{"/overlap_slowdown", 1},
	{NULL, 0},
};

static void write_edited(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_json *doc,
	const struct ap_jv *v, const struct edit *edits)
{
	enum ap_jtype type = ap_jv_type(v);

	if (type == AP_JNUMBER) {
		const char *pointer = ap_jv_pointer(ctx->arena, v);

		for (; edits->pointer; edits++)
			if (!strcmp(edits->pointer, pointer)) {
				ap_jw_num(w, edits->value);
				return;
			}
	}
	if (type != AP_JOBJECT && type != AP_JARRAY) {
		ap_jw_value(w, doc, v);
		return;
	}
	type == AP_JOBJECT ? ap_jw_obj(w) : ap_jw_arr(w);
	for (const struct ap_jv *c = ap_jv_first(v); c; c = ap_jv_next(c)) {
		if (type == AP_JOBJECT)
			ap_jw_key(w, ap_jv_key(c));
		write_edited(ctx, w, doc, c, edits);
	}
	ap_jw_end(w);
}

/* NAME.json in the folder of profiles to take instead of built-in ones; NAME where there is none. */
static const char *file_of(const struct profiles *p, const char *name)
{
	const char *path = p->given ? ap_arena_printf(p->ctx->arena, "%s/%s.json", p->given, name) : name;

	return p->given && access(path, R_OK) == 0 ? path : name;
}

/* The profile that a name stands for; it has to be there. */
static const struct ap_json *profile(const struct profiles *p, const struct ap_builtin *b, const char *name)
{
	const char *path = file_of(p, name);
	struct ap_json *doc;
	char *text = NULL;
	size_t len = 0;

	while (b->name && strcmp(b->name, name) != 0)
		b++;
	if (path != name && ap_file_read(p->ctx, path, AP_FILE_MAX_BYTES, &text, &len) != AP_OK)
		die(EXIT_IO, path, "it cannot be read");
	if (!text && !b->name)
		die(EXIT_IO, name, "there is no such profile");
	if (ap_json_parse(p->ctx, name, text ? text : b->text, text ? len : strlen(b->text), 0,
			&doc) != AP_OK)
		die(EXIT_IO, path, "it is no JSON");
	return doc;
}

/* The name of a profile that is the built-in one with other numbers; key tells it from others. */
static const char *edited(struct profiles *p, const struct ap_json *doc, const char *key,
	const struct edit *edits)
{
	struct ap_arena *arena = p->ctx->arena;
	const char *path;
	struct ap_str text;
	struct ap_jw w;
	FILE *out;

	for (size_t i = 0; i < p->keys.n; i++)
		if (!strcmp(p->keys.v[i], key))
			return p->files.v[i];
	if (!p->folder) {
		const char *tmp = getenv("TMPDIR");

		p->folder = ap_arena_printf(arena, "%s/fidelity-XXXXXX", tmp ? tmp : "/tmp");
		if (!mkdtemp(p->folder))
			die(EXIT_IO, p->folder, strerror(errno));
	}
	path = ap_arena_printf(arena, "%s/%zu.json", p->folder, p->files.n);
	ap_jw_str_init(&w, &text, 1);
	ap_str_init(&text, arena);
	write_edited(p->ctx, &w, doc, ap_json_root(doc), edits);
	ap_jw_finish(&w);
	out = fopen(path, "wb");
	if (!out || fwrite(text.s, 1, text.len, out) != text.len || fclose(out))
		die(EXIT_IO, path, strerror(errno));
	AP_PUSH(arena, p->keys, ap_arena_strdup(arena, key));
	AP_PUSH(arena, p->files, path);
	return path;
}

void remove_profiles(struct profiles *p)
{
	for (size_t i = 0; i < p->files.n; i++)
		unlink(p->files.v[i]);
	if (p->folder)
		rmdir(p->folder);
	p->keys.n = p->files.n = 0;
	p->folder = NULL;
}

/* The level of the network between servers: the outermost. */
static int network_level(const struct ap_json *doc)
{
	return (int)ap_jv_count(ap_jv_get(ap_json_root(doc), "levels")) - 1;
}

/*
 * Products of layers in 4 bits, which have no name in a profile, run at a higher peak, but neither attention
 * nor the head does, nor the share of layers that NVIDIA's recipe of NVFP4 leaves in 16 bits (15 %,
 * arXiv:2509.25149): the gain of all products together, by their FLOPs.
 */
#define WIDE_LAYERS 0.15
static double narrow_gain(const struct run *run)
{
	const struct ap_model_params *p = &run->params;
	double peak = run->precision->bits == 4 ? run->device->fp4 : 1;
	double h = (double)p->hidden, width = (double)(p->heads * p->head_size);
	double matrices = ap_model_activation_gated(p->activation) ? 3 : 2;
	double layers = 2 * h * (2 * width + 2 * width * (double)p->kv_heads / (double)p->heads +
		matrices * (double)(p->inner * (p->active ? p->active : 1))) * (double)p->layers;
	double others = 4 * width * (double)p->sequence * (p->flash ? 0.5 : 1) * (double)p->layers +
		2 * h * (double)p->vocabulary;

	if (peak > 1)
		layers *= 1 - WIDE_LAYERS, others += layers * WIDE_LAYERS / (1 - WIDE_LAYERS);
	return p->heads ? (layers + others) / (layers / peak + others) : peak;
}

const char *chip_of(struct profiles *p, const struct run *run)
{
	const char *name = run->device->chip;
	const struct ap_json *doc = profile(p, ap_builtin_chips, name);
	struct ap_arena *arena = p->ctx->arena;
	const struct ap_jv *cube = ap_jv_get(ap_jv_get(ap_json_root(doc), "peak_flops"), "cube");
	struct edit edits[4] = {0};
	double narrow = narrow_gain(run);
	int n = 0;

	if (run->network_Bps > 0)
		edits[n++] = (struct edit){ap_arena_printf(arena, "/levels/%d/bandwidth_Bps",
			network_level(doc)), run->network_Bps};
	if (run->fabric)
		edits[n++] = (struct edit){ap_arena_printf(arena, "/levels/%d/efficiency",
			network_level(doc)), run->fabric->efficiency};
	if (narrow > 1)
		edits[n++] = (struct edit){"/peak_flops/cube/bfloat16",
			ap_jv_double(ap_jv_get(cube, "bfloat16")) * narrow};
	return n ? edited(p, doc, ap_arena_printf(arena, "%s %.17g %s %.17g", name, run->network_Bps,
		run->fabric ? run->fabric->word : "", narrow), edits) : file_of(p, name);
}

const char *software_of(struct profiles *p, const struct run *run, bool is_neutral)
{
	const char *name = run->framework->software;

	return is_neutral ? edited(p, profile(p, ap_builtin_software, name), name, neutral)
		: file_of(p, name);
}
