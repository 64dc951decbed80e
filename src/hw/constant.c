/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/constant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "hw/topo.h"

struct number { /* a row of the tables */
	const char *object, *key;
	size_t field;
	enum ap_constant_type type;
	const char *unit;
	double least, most, otherwise, from, to;
	enum ap_constant_more more;
};

#define MUST NAN

static const struct number chip_numbers[] = {
#define NUMBER(object, key, field, type, unit, least, most, otherwise, from, to, more) \
	{object, key, offsetof(struct ap_chip, field), AP_CONSTANT_##type, unit, least, most, otherwise, \
		from, to, AP_CONSTANT_##more},
#include "hw/chip.def"
#undef NUMBER
};

static const struct number software_numbers[] = {
#define NUMBER(object, key, field, type, unit, least, most, otherwise, from, to, more) \
	{object, key, offsetof(struct ap_software, field), AP_CONSTANT_##type, unit, least, most, \
		otherwise, from, to, AP_CONSTANT_##more},
#include "hw/software.def"
#undef NUMBER
};

/* Numbers of each level, of the rates of each kernel, and of each peak. */
static const struct number level_numbers[] = {
	{NULL, "bandwidth_Bps", offsetof(struct ap_link_level, bandwidth_Bps), AP_CONSTANT_REAL, "B/s", 1,
		1e24, MUST, 0, 0, AP_CONSTANT_FASTER},
	{NULL, "latency_s", offsetof(struct ap_link_level, latency_s), AP_CONSTANT_REAL, "s", 0, 1, MUST,
		1e-7, 1e-3, AP_CONSTANT_SLOWER},
	{NULL, "efficiency", offsetof(struct ap_link_level, efficiency), AP_CONSTANT_REAL, "share", 1e-6, 1,
		MUST, 0.05, 1, AP_CONSTANT_FASTER},
};
static const struct number rate_numbers[] = {
	{NULL, "forward", offsetof(struct ap_attention_rate, forward), AP_CONSTANT_REAL, "share", 1e-6, 1,
		MUST, 0.01, 1, AP_CONSTANT_FASTER},
	{NULL, "backward", offsetof(struct ap_attention_rate, backward), AP_CONSTANT_REAL, "share", 1e-6, 1,
		MUST, 0.01, 1, AP_CONSTANT_FASTER},
	{NULL, "half", offsetof(struct ap_attention_rate, half), AP_CONSTANT_REAL, "elements", 0, 1e6, 0, 0,
		0, AP_CONSTANT_SLOWER}, /* of tables of kernels: runs do not tell it from the rates */
};
static const struct number peak_number = {NULL, "", 0, AP_CONSTANT_REAL, "FLOP/s", 1, 1e24, 0, 0, 0,
	AP_CONSTANT_FASTER};
static const struct number half_number = {NULL, "", 0, AP_CONSTANT_REAL, "elements", 0, 1e6, MUST, 1, 1e4,
	AP_CONSTANT_SLOWER};

static const struct { const struct number *v; size_t n; } tables[] = {
	[AP_NUMBERS_CHIP] = {chip_numbers, AP_COUNT(chip_numbers)},
	[AP_NUMBERS_SOFTWARE] = {software_numbers, AP_COUNT(software_numbers)},
	[AP_NUMBERS_LEVEL] = {level_numbers, AP_COUNT(level_numbers)},
	[AP_NUMBERS_RATE] = {rate_numbers, AP_COUNT(rate_numbers)},
};

struct list {
	struct ap_arena *arena;
	struct ap_constant *v;
	size_t n, cap;
};

static void add(struct list *list, const char *path, const struct number *row, void *at)
{
	struct ap_constant c = {path, row->unit, row->least, row->most, row->otherwise, row->from, row->to,
		row->type, row->more, at};

	AP_PUSH(list->arena, *list, c);
}

/* Adds numbers of the object at `at` whose paths begin with a prefix. */
static void add_all(struct list *list, const char *prefix, enum ap_numbers of, void *at)
{
	for (size_t i = 0; i < tables[of].n; i++) {
		const struct number *row = &tables[of].v[i];
		const char *object = row->object ? ap_arena_printf(list->arena, "%s.", row->object) : "";

		add(list, ap_arena_printf(list->arena, "%s%s%s", prefix, object, row->key), row,
			(char *)at + row->field);
	}
}

size_t ap_chip_constants(struct ap_arena *arena, struct ap_chip *chip, struct ap_constant **out)
{
	static const char *const units[] = {"cube", "vector"}, *const extents[] = {"m", "n", "k"};
	struct list list = {.arena = arena};

	for (size_t u = 0; u < AP_COUNT(units); u++)
		for (int t = 0; t < AP_DTYPE_COUNT; t++)
			if (chip->peak_flops[u][t] > 0)
				add(&list, ap_arena_printf(arena, "peak_flops.%s.%s", units[u],
					ap_dtype_name((enum ap_dtype)t)), &peak_number,
					&chip->peak_flops[u][t]);
	add_all(&list, "", AP_NUMBERS_CHIP, chip);
	for (size_t i = 0; i < list.n; i++) /* in 8 bits as in others where nothing is said */
		if (list.v[i].at == &chip->matmul_float8_efficiency)
			list.v[i].otherwise = chip->matmul_efficiency;
	for (size_t d = 0; d < AP_COUNT(extents); d++)
		add(&list, ap_arena_printf(arena, "matmul_half.%s", extents[d]), &half_number,
			&chip->matmul_half[d]);
	for (int k = AP_ATTENTION_UNKNOWN + 1; k < AP_ATTENTION_COUNT; k++)
		if (chip->attention[k].forward > 0)
			add_all(&list, ap_arena_printf(arena, "attention.%s.",
				ap_attention_name((enum ap_attention_kernel)k)), AP_NUMBERS_RATE,
				&chip->attention[k]);
	for (int l = 0; l < chip->nlevel; l++)
		add_all(&list, ap_arena_printf(arena, "levels.%s.", chip->level[l].name), AP_NUMBERS_LEVEL,
			&chip->level[l]);
	*out = list.v;
	return list.n;
}

size_t ap_software_constants(struct ap_arena *arena, struct ap_software *software, struct ap_constant **out)
{
	struct list list = {.arena = arena};

	add_all(&list, "", AP_NUMBERS_SOFTWARE, software);
	*out = list.v;
	return list.n;
}

const struct ap_constant *ap_constant_find(const struct ap_constant *list, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].path, path))
			return &list[i];
	return NULL;
}

static double get(enum ap_constant_type type, const void *at)
{
	switch (type) {
	case AP_CONSTANT_INT:
		return *(const int *)at;
	case AP_CONSTANT_INT64:
		return (double)*(const int64_t *)at;
	default:
		return *(const double *)at;
	}
}

static void set(enum ap_constant_type type, void *at, double value)
{
	switch (type) {
	case AP_CONSTANT_INT:
		*(int *)at = (int)lround(value);
		break;
	case AP_CONSTANT_INT64:
		*(int64_t *)at = llround(value);
		break;
	default:
		*(double *)at = value;
	}
}

double ap_constant_get(const struct ap_constant *c)
{
	return get(c->type, c->at);
}

void ap_constant_set(const struct ap_constant *c, double value)
{
	assert(value >= c->least && value <= c->most);
	set(c->type, c->at, value);
}

/* ---- where numbers are from ---- */

const char *ap_source_of(struct ap_profile_sources sources, const char *path)
{
	for (size_t len = strlen(path); len; len--)
		for (int i = 0; i < sources.n && (!path[len] || path[len] == '.'); i++)
			if (strlen(sources.v[i].path) == len && !strncmp(sources.v[i].path, path, len))
				return sources.v[i].text;
	return NULL;
}

struct ap_profile_sources ap_sources_with(struct ap_arena *arena, struct ap_profile_sources sources,
	const char *path, const char *text)
{
	struct ap_profile_source *v = AP_NEW_N(arena, struct ap_profile_source, sources.n + 1);
	int k = 0;

	while (k < sources.n && strcmp(sources.v[k].path, path) != 0)
		k++;
	for (int i = 0; i < sources.n; i++)
		v[i] = sources.v[i];
	v[k] = (struct ap_profile_source){path, text};
	return (struct ap_profile_sources){v, k < sources.n ? sources.n : sources.n + 1};
}

enum ap_basis ap_basis_of(const char *text)
{
	static const struct { const char *begins, *holds; enum ap_basis basis; } words[] = {
		{"fitted ", " runs", AP_BASIS_FITTED},
		{"assumed: ", "", AP_BASIS_ASSUMED},
		{"inferred: ", "", AP_BASIS_ASSUMED},
	};

	if (!text)
		return AP_BASIS_NONE;
	for (size_t i = 0; i < AP_COUNT(words); i++)
		if (!strncmp(text, words[i].begins, strlen(words[i].begins)) && strstr(text, words[i].holds))
			return words[i].basis;
	return AP_BASIS_PUBLISHED;
}

const char *ap_basis_name(enum ap_basis basis)
{
	static const char *const names[] = {"", "published", "fitted", "assumed"};

	return names[basis];
}

/* ---- numbers read ---- */

static bool is_of(const struct number *row, const char *object)
{
	return object ? row->object && !strcmp(row->object, object) : !row->object;
}

enum ap_status ap_numbers_read(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	enum ap_numbers of, const char *object, void *out)
{
	for (size_t i = 0; i < tables[of].n; i++) {
		const struct number *row = &tables[of].v[i];
		void *at = (char *)out + row->field;
		double real = 0;
		int64_t whole = 0;

		if (!is_of(row, object))
			continue;
		if (!isnan(row->otherwise) && !ap_jv_get(obj, row->key)) {
			set(row->type, at, row->otherwise);
			continue;
		}
		if (row->type == AP_CONSTANT_REAL)
			AP_TRY(ap_json_get_num(ctx, doc, obj, row->key, row->least, row->most, &real));
		else
			AP_TRY(ap_json_get_int(ctx, doc, obj, row->key, (int64_t)row->least,
				(int64_t)row->most, &whole));
		if (row->type == AP_CONSTANT_INT64)
			*(int64_t *)at = whole;
		else
			set(row->type, at, row->type == AP_CONSTANT_REAL ? real : (double)whole);
	}
	return AP_OK;
}

enum ap_status ap_numbers_known(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	enum ap_numbers of, const char *object, const char *const *others)
{
	AP_VEC(const char *) known = {0};

	for (; others && *others; others++)
		AP_PUSH(ctx->arena, known, *others);
	for (size_t i = 0; i < tables[of].n; i++)
		if (is_of(&tables[of].v[i], object))
			AP_PUSH(ctx->arena, known, tables[of].v[i].key);
	AP_PUSH(ctx->arena, known, NULL);
	return ap_json_known(ctx, doc, obj, known.v);
}
