/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/profile_write.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "hw/coll.h"
#include "hw/constant.h"

struct numbers {
	const struct ap_constant *v;
	size_t n;
	struct ap_profile_sources sources;
};

/* Is it to be written: does it differ from what holds otherwise, or is something said of it? */
static bool is_stated(const struct numbers *all, const struct ap_constant *c)
{
	double value = ap_constant_get(c);

	if (isnan(c->otherwise) || value < c->otherwise || value > c->otherwise)
		return true;
	for (int i = 0; i < all->sources.n; i++)
		if (!strcmp(all->sources.v[i].path, c->path))
			return true;
	return false;
}

/* Writes the numbers of an object as members: those whose paths are the prefix and a key. */
static void write_members(struct ap_jw *w, const struct numbers *all, const char *prefix)
{
	size_t len = strlen(prefix);

	for (size_t i = 0; i < all->n; i++) {
		const struct ap_constant *c = &all->v[i];
		const char *key = c->path + len;

		if (strncmp(c->path, prefix, len) != 0 || strchr(key, '.') || !is_stated(all, c))
			continue;
		if (c->type == AP_CONSTANT_INT64)
			ap_jw_kint(w, key, *(const int64_t *)c->at);
		else if (c->type == AP_CONSTANT_INT)
			ap_jw_kint(w, key, *(const int *)c->at);
		else
			ap_jw_knum(w, key, ap_constant_get(c));
	}
}

static void write_head(struct ap_jw *w, const char *schema, const char *name, const char *const *alias,
	int nalias)
{
	ap_jw_kstr(w, "schema", schema);
	ap_jw_kstr(w, "name", name);
	if (!nalias)
		return;
	ap_jw_karr_flat(w, "aliases");
	for (int i = 0; i < nalias; i++)
		ap_jw_str(w, alias[i]);
	ap_jw_end(w);
}

static void write_sources(struct ap_jw *w, struct ap_profile_sources sources)
{
	if (!sources.n)
		return;
	ap_jw_kobj(w, "sources");
	for (int i = 0; i < sources.n; i++)
		ap_jw_kstr(w, sources.v[i].path, sources.v[i].text);
	ap_jw_end(w);
}

static void write_level(struct ap_jw *w, struct ap_arena *arena, const struct numbers *all,
	const struct ap_link_level *level)
{
	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", level->name);
	ap_jw_kstr(w, "kind", ap_link_name(level->kind));
	if (level->span)
		ap_jw_kint(w, "span", level->span);
	else if (level->within != AP_WITHIN_MACHINE)
		ap_jw_kstr(w, "within", ap_within_name(level->within));
	if (level->nlinks) {
		ap_jw_karr(w, "links");
		for (int i = 0; i < level->nlinks; i++)
			ap_jw_num(w, level->links[i]);
		ap_jw_end(w);
	}
	write_members(w, all, ap_arena_printf(arena, "levels.%s.", level->name));
	ap_jw_end(w);
}

static void write_curves(struct ap_jw *w, const struct ap_chip *chip)
{
	if (chip->ncurve)
		ap_jw_karr(w, "collectives");
	for (int i = 0; i < chip->ncurve; i++) {
		const struct ap_curve *c = &chip->curve[i];

		ap_jw_obj(w);
		ap_jw_kstr(w, "collective", ap_coll_name((enum ap_coll)c->coll));
		ap_jw_kint(w, "ranks", c->ranks);
		ap_jw_kint(w, "servers", c->servers);
		ap_jw_karr_flat(w, "curve");
		for (int k = 0; k < c->npoint; k++) {
			ap_jw_arr_flat(w);
			ap_jw_num(w, c->point[k].bytes);
			ap_jw_num(w, c->point[k].time_s);
			ap_jw_end(w);
		}
		ap_jw_end(w);
		if (*c->source)
			ap_jw_kstr(w, "source", c->source);
		ap_jw_end(w);
	}
	if (chip->ncurve)
		ap_jw_end(w);
}

void ap_chip_write(const struct ap_chip *chip, struct ap_str *out)
{
	struct ap_arena *arena = out->arena;
	struct ap_chip copy = *chip;
	struct ap_constant *list;
	size_t n = ap_chip_constants(arena, &copy, &list);
	const struct numbers all = {list, n, chip->sources};
	bool attends = false;
	struct ap_jw w;

	ap_jw_str_init(&w, out, 2);
	ap_jw_obj(&w);
	write_head(&w, "autopar-chip/1", chip->name, chip->alias, chip->nalias);
	ap_jw_kobj(&w, "peak_flops");
	ap_jw_kobj_flat(&w, "cube");
	write_members(&w, &all, "peak_flops.cube.");
	ap_jw_end(&w);
	ap_jw_kobj_flat(&w, "vector");
	write_members(&w, &all, "peak_flops.vector.");
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_kobj_flat(&w, "fixed_s");
	write_members(&w, &all, "fixed_s.");
	ap_jw_end(&w);
	ap_jw_kobj_flat(&w, "efficiency");
	write_members(&w, &all, "efficiency.");
	ap_jw_end(&w);
	ap_jw_karr_flat(&w, "matmul_half");
	for (int d = 0; d < 3; d++)
		ap_jw_num(&w, chip->matmul_half[d]);
	ap_jw_end(&w);
	for (int k = AP_ATTENTION_UNKNOWN + 1; k < AP_ATTENTION_COUNT; k++) {
		const char *name = ap_attention_name((enum ap_attention_kernel)k);

		if (!(chip->attention[k].forward > 0))
			continue;
		if (!attends)
			ap_jw_kobj(&w, "attention");
		attends = true;
		ap_jw_kobj_flat(&w, name);
		write_members(&w, &all, ap_arena_printf(arena, "attention.%s.", name));
		ap_jw_end(&w);
	}
	if (attends)
		ap_jw_end(&w);
	ap_jw_kobj_flat(&w, "memory");
	write_members(&w, &all, "memory.");
	ap_jw_end(&w);
	ap_jw_karr(&w, "levels");
	for (int l = 0; l < chip->nlevel; l++)
		write_level(&w, arena, &all, &chip->level[l]);
	ap_jw_end(&w);
	write_curves(&w, chip);
	write_members(&w, &all, "");
	if (*chip->hccl)
		ap_jw_kstr(&w, "hccl", chip->hccl);
	write_sources(&w, chip->sources);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

void ap_software_write(const struct ap_software *software, struct ap_str *out)
{
	struct ap_software copy = *software;
	struct ap_constant *list;
	size_t n = ap_software_constants(out->arena, &copy, &list);
	const struct numbers all = {list, n, software->sources};
	struct ap_jw w;

	ap_jw_str_init(&w, out, 2);
	ap_jw_obj(&w);
	write_head(&w, "autopar-software/1", software->name, software->alias, software->nalias);
	if (*software->versions)
		ap_jw_kstr(&w, "versions", software->versions);
	if (*software->dates)
		ap_jw_kstr(&w, "dates", software->dates);
	if (software->attention != AP_ATTENTION_UNKNOWN)
		ap_jw_kstr(&w, "attention", ap_attention_name(software->attention));
	if (software->chains)
		ap_jw_karr_flat(&w, "chains");
	for (int i = 0; i < AP_CHAIN_COUNT; i++)
		if (software->chains & 1u << i)
			ap_jw_str(&w, ap_chain_name((enum ap_chain)i));
	if (software->chains)
		ap_jw_end(&w);
	if (software->gradient_sum != AP_SUM_UNKNOWN)
		ap_jw_kstr(&w, "gradient_sum", ap_gradient_sum_name(software->gradient_sum));
	write_members(&w, &all, "");
	write_sources(&w, software->sources);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
