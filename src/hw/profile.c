/* SPDX-License-Identifier: Apache-2.0 */
/* Finding profiles by name: those built in, and files. */
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/str.h"
#include "hw/builtin.h"
#include "hw/chip.h"

enum { NEAR = 3 }; /* edits at which a name is still suggested */

/* A profile's text before it is parsed; file is what messages call it. */
struct source {
	const char *file, *text;
	size_t len;
};

static struct source builtin_source(struct ap_ctx *ctx, const struct ap_builtin *b)
{
	return (struct source){
		.file = ap_arena_printf(ctx->arena, "%s.json", b->name),
		.text = b->text,
		.len = strlen(b->text),
	};
}

static const char *hash(struct ap_ctx *ctx, struct source s)
{
	char hex[AP_SHA256_HEX + 1];

	ap_sha256_hex(s.text, s.len, hex);
	return ap_arena_strdup(ctx->arena, hex);
}

static enum ap_status load_chip(struct ap_ctx *ctx, struct source s, const struct ap_chip **out)
{
	struct ap_chip *chip = AP_NEW(ctx->arena, struct ap_chip);
	struct ap_json *doc;

	AP_TRY(ap_json_parse(ctx, s.file, s.text, s.len, 0, &doc));
	AP_TRY(ap_chip_parse(ctx, doc, chip));
	chip->file = ap_file_base(ap_json_file(doc));
	chip->sha256 = hash(ctx, s);
	*out = chip;
	return AP_OK;
}

static enum ap_status load_software(
	struct ap_ctx *ctx, struct source s, const struct ap_software **out)
{
	struct ap_software *software = AP_NEW(ctx->arena, struct ap_software);
	struct ap_json *doc;

	AP_TRY(ap_json_parse(ctx, s.file, s.text, s.len, 0, &doc));
	AP_TRY(ap_software_parse(ctx, doc, software));
	software->file = ap_file_base(ap_json_file(doc));
	software->sha256 = hash(ctx, s);
	*out = software;
	return AP_OK;
}

static enum ap_status file_source(struct ap_ctx *ctx, const char *path, struct source *out)
{
	char *text;

	*out = (struct source){.file = path};
	AP_TRY(ap_file_read(ctx, path, AP_FILE_MAX_BYTES, &text, &out->len));
	out->text = text;
	return AP_OK;
}

static bool has_alias(const struct ap_chip *chip, const char *name)
{
	for (int i = 0; i < chip->nalias; i++)
		if (strcasecmp(chip->alias[i], name) == 0)
			return true;
	return false;
}

/* The best name seen so far in a search for one like `wanted`. */
struct nearest {
	const char *wanted, *name;
	int distance;
};

static void consider(struct nearest *n, const char *name)
{
	int distance = ap_str_distance(n->wanted, name, n->distance - 1);

	if (distance < n->distance) {
		n->distance = distance;
		n->name = name;
	}
}

/* AP_USAGE: the names there are, and the nearest. */
static enum ap_status unknown(struct ap_ctx *ctx, const char *what, const struct ap_builtin *list,
	const struct nearest *n)
{
	struct ap_str names;

	ap_str_init(&names, ctx->arena);
	for (const struct ap_builtin *b = list; b->name; b++)
		ap_str_addf(&names, "%s%s", b == list ? "" : ", ", b->name);
	if (n->name)
		ap_str_addf(&names, "; did you mean \"%s\"?", n->name);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"unknown %s \"%s\"; expected a file NAME.json or one of %s", what,
		ap_diag_name(ctx->diag, n->wanted), names.s);
}

enum ap_status ap_chip_get(struct ap_ctx *ctx, const char *name, const struct ap_chip **out)
{
	struct nearest near = {.wanted = name, .distance = NEAR};
	struct source s;

	if (ap_file_suffix(name, ".json")) {
		AP_TRY(file_source(ctx, name, &s));
		return load_chip(ctx, s, out);
	}
	for (const struct ap_builtin *b = ap_builtin_chips; b->name; b++) {
		AP_TRY(load_chip(ctx, builtin_source(ctx, b), out));
		if (strcasecmp(b->name, name) == 0 || has_alias(*out, name))
			return AP_OK;
		consider(&near, b->name);
		for (int i = 0; i < (*out)->nalias; i++)
			consider(&near, (*out)->alias[i]);
	}
	return unknown(ctx, "chip", ap_builtin_chips, &near);
}

enum ap_status ap_software_get(struct ap_ctx *ctx, const char *name, const struct ap_software **out)
{
	struct nearest near = {.wanted = name, .distance = NEAR};
	struct source s;

	if (ap_file_suffix(name, ".json")) {
		AP_TRY(file_source(ctx, name, &s));
		return load_software(ctx, s, out);
	}
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		if (strcmp(b->name, name) == 0)
			return load_software(ctx, builtin_source(ctx, b), out);
		consider(&near, b->name);
	}
	return unknown(ctx, "software profile", ap_builtin_software, &near);
}

enum ap_status ap_chip_by_info(
	struct ap_ctx *ctx, const char *chip_info, const struct ap_chip **out)
{
	for (const struct ap_builtin *b = ap_builtin_chips; b->name; b++) {
		AP_TRY(load_chip(ctx, builtin_source(ctx, b), out));
		if (strcasecmp(b->name, chip_info) == 0 || has_alias(*out, chip_info))
			return AP_OK;
	}
	*out = NULL;
	return AP_OK;
}

const char *ap_chip_at(size_t i, const char **text)
{
	size_t n = 0;

	while (ap_builtin_chips[n].name)
		n++;
	if (i >= n)
		return NULL;
	if (text)
		*text = ap_builtin_chips[i].text;
	return ap_builtin_chips[i].name;
}
