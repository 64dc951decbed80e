/* SPDX-License-Identifier: Apache-2.0 */
/* Finds profiles by name: built in, or in files. */
#include "hw/chip.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/builtin.h"
#include "hw/coll.h"
#include "hw/constant.h"
#include "hw/hccl.h"
#include "hw/topo.h"

static const double most = 1e24; /* above any real figure; products do not overflow */

static const char *const unit_names[AP_UNIT_COUNT] = {"cube", "vector", "memory"};

static const char *const link_kinds[] = {
	[AP_LINK_SWITCH] = "switch",
	[AP_LINK_MESH] = "mesh",
	[AP_LINK_BUS] = "bus",
	[AP_LINK_NIC] = "nic",
};

static const char *const withins[] = {
	[AP_WITHIN_SERVER] = "server",
	[AP_WITHIN_POD] = "pod",
	[AP_WITHIN_CLUSTER] = "cluster",
	[AP_WITHIN_MACHINE] = "machine",
};

static const char *const attention_kernels[] = {
	[AP_ATTENTION_UNKNOWN] = NULL,
	[AP_ATTENTION_FLASH_1] = "flash-1",
	[AP_ATTENTION_FLASH_2] = "flash-2",
	[AP_ATTENTION_FLASH_3] = "flash-3",
	[AP_ATTENTION_NPU] = "npu",
	[AP_ATTENTION_COUNT] = NULL,
};

static const char *const gradient_sums[] = {
	[AP_SUM_UNKNOWN] = NULL,
	[AP_SUM_FUSED] = "fused",
	[AP_SUM_APART] = "apart",
};

static const char *const chains[] = {
#define CHAIN(id, name) name,
	AP_CHAINS(CHAIN)
#undef CHAIN
};

const char *ap_chain_name(enum ap_chain chain)
{
	return chains[chain];
}

const char *ap_link_name(enum ap_link kind)
{
	return link_kinds[kind];
}

const char *ap_within_name(enum ap_within within)
{
	return withins[within];
}

const char *ap_attention_name(enum ap_attention_kernel kernel)
{
	return attention_kernels[kernel];
}

const char *ap_gradient_sum_name(enum ap_gradient_sum sum)
{
	return gradient_sums[sum];
}

/* Gets the root if it is an object of this schema. */
static enum ap_status get_root(struct ap_ctx *ctx, const struct ap_json *doc, const char *schema,
	const struct ap_jv **root)
{
	const char *is = NULL;

	*root = ap_json_root(doc);
	if (ap_jv_type(*root) != AP_JOBJECT)
		return ap_json_report(ctx, doc, *root, AP_ERROR, AP_MEANING, NULL, "profile-schema",
			"a profile is an object");
	AP_TRY(ap_json_get_str(ctx, doc, *root, "schema", &is));
	if (strcmp(is, schema) != 0)
		return ap_json_report(ctx, doc, ap_jv_get(*root, "schema"), AP_ERROR, AP_MEANING,
			NULL, "profile-schema", "schema \"%s\"; expected \"%s\"", is, schema);
	return AP_OK;
}

static enum ap_status get_peaks(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, struct ap_chip *out)
{
	static const char *const known[] = {"cube", "vector", NULL};
	const struct ap_jv *peaks, *unit;

	AP_TRY(ap_json_get_obj(ctx, doc, root, "peak_flops", &peaks));
	AP_TRY(ap_json_known(ctx, doc, peaks, known));
	for (int u = AP_UNIT_CUBE; u <= AP_UNIT_VECTOR; u++) {
		AP_TRY(ap_json_get_obj(ctx, doc, peaks, unit_names[u], &unit));
		for (const struct ap_jv *v = ap_jv_first(unit); v; v = ap_jv_next(v)) {
			enum ap_dtype t = ap_dtype_find(ap_jv_key(v));

			if (t == AP_DTYPE_COUNT)
				return ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL,
					"dtype-known", "unknown type \"%s\"", ap_jv_key(v));
			AP_TRY(ap_json_get_num(
				ctx, doc, unit, ap_jv_key(v), 1, most, &out->peak_flops[u][t]));
		}
	}
	/* types that no unit supports are computed as float32 */
	return ap_json_get_num(ctx, doc, unit, "float32", 1, most,
		&out->peak_flops[AP_UNIT_VECTOR][AP_FLOAT32]);
}

/* Reads the rates of attention's kernels, by name. */
static enum ap_status get_attention(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *root,
	struct ap_chip *out)
{
	const struct ap_jv *kernels = NULL;

	AP_TRY(ap_json_opt_obj(ctx, doc, root, "attention", &kernels));
	if (!kernels)
		return AP_OK;
	AP_TRY(ap_json_known(ctx, doc, kernels, attention_kernels + 1));
	for (int k = AP_ATTENTION_UNKNOWN + 1; k < AP_ATTENTION_COUNT; k++) {
		const struct ap_jv *obj = NULL;

		AP_TRY(ap_json_opt_obj(ctx, doc, kernels, attention_kernels[k], &obj));
		if (!obj)
			continue;
		AP_TRY(ap_numbers_known(ctx, doc, obj, AP_NUMBERS_RATE, NULL, NULL));
		AP_TRY(ap_numbers_read(ctx, doc, obj, AP_NUMBERS_RATE, NULL, &out->attention[k]));
	}
	return AP_OK;
}

static enum ap_status get_speeds(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, struct ap_chip *out)
{
	static const char *const objects[] = {"fixed_s", "efficiency"};
	const struct ap_jv *obj, *half;
	int i = 0;

	for (size_t k = 0; k < AP_COUNT(objects); k++) {
		AP_TRY(ap_json_get_obj(ctx, doc, root, objects[k], &obj));
		AP_TRY(ap_numbers_known(ctx, doc, obj, AP_NUMBERS_CHIP, objects[k], NULL));
		AP_TRY(ap_numbers_read(ctx, doc, obj, AP_NUMBERS_CHIP, objects[k], out));
	}
	if (!(out->matmul_float8_efficiency > 0))
		out->matmul_float8_efficiency = out->matmul_efficiency;

	AP_TRY(ap_json_get_arr(ctx, doc, root, "matmul_half", &half));
	for (const struct ap_jv *v = ap_jv_first(half); v; v = ap_jv_next(v), i++)
		if (i < 3 && ap_jv_type(v) == AP_JNUMBER)
			out->matmul_half[i] = ap_jv_double(v);
		else
			i = 3;
	for (int d = 0; d < 3; d++)
		if (i != 3 || !(out->matmul_half[d] >= 0 && out->matmul_half[d] <= 1e6))
			return ap_json_report(ctx, doc, half, AP_ERROR, AP_MEANING, NULL,
				"key-range",
				"matmul_half is three extents from 0 to 1e6 for m, n and k");
	return get_attention(ctx, doc, root, out);
}

static enum ap_status get_memory(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, struct ap_chip *out)
{
	const struct ap_jv *memory;

	AP_TRY(ap_json_get_obj(ctx, doc, root, "memory", &memory));
	AP_TRY(ap_numbers_known(ctx, doc, memory, AP_NUMBERS_CHIP, "memory", NULL));
	AP_TRY(ap_numbers_read(ctx, doc, memory, AP_NUMBERS_CHIP, "memory", out));
	return ap_json_get_int(ctx, doc, memory, "usable_bytes", 1, out->memory_bytes, &out->usable_bytes);
}

/* Default: with a span, within servers; without, the whole machine. */
static enum ap_status get_within(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, struct ap_link_level *out)
{
	const char *within = NULL;
	int64_t span = 0;

	AP_TRY(ap_json_opt_int(ctx, doc, obj, "span", 2, AP_MAX_DEVICES, &span));
	AP_TRY(ap_json_opt_str(ctx, doc, obj, "within", &within));
	out->span = (uint32_t)span;
	out->within = span ? AP_WITHIN_SERVER : AP_WITHIN_MACHINE;
	for (int i = 0; within && i <= AP_WITHIN_MACHINE; i++)
		if (strcmp(within, withins[i]) == 0 && (!span || i == AP_WITHIN_SERVER)) {
			out->within = (enum ap_within)i;
			return AP_OK;
		}
	if (!within)
		return AP_OK;
	return ap_json_report(ctx, doc, ap_jv_get(obj, "within"), AP_ERROR, AP_MEANING, NULL,
		"link-within", "within \"%s\"; expected server, or without a span also pod, cluster "
		"or machine", within);
}

static enum ap_status get_links(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, struct ap_link_level *out)
{
	const struct ap_jv *list = NULL;
	double *links;

	AP_TRY(ap_json_opt_arr(ctx, doc, obj, "links", &list));
	if (!list)
		return AP_OK;
	if (out->kind != AP_LINK_MESH || !ap_jv_first(list))
		return ap_json_report(ctx, doc, list, AP_ERROR, AP_MEANING, NULL, "key-range",
			"links are those of a mesh, for groups of 2, 3 and more ranks");
	out->links = links = AP_NEW_N(ctx->arena, double, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		double n = ap_jv_type(v) == AP_JNUMBER ? ap_jv_double(v) : 0;

		if (!(n > 0 && n <= AP_MAX_DEVICES && (!out->nlinks || n >= links[out->nlinks - 1])))
			return ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-range",
				"links are numbers above 0 that do not fall");
		links[out->nlinks++] = n;
	}
	return AP_OK;
}

/* Reads the name of a profile or level, which plans use. */
static enum ap_status get_name(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	const char **out)
{
	AP_TRY(ap_json_get_str(ctx, doc, obj, "name", out));
	if (!**out)
		return ap_json_report(ctx, doc, ap_jv_get(obj, "name"), AP_ERROR, AP_MEANING, NULL,
			"key-range", "the name is empty; expected what it is called");
	return AP_OK;
}

static enum ap_status get_level(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, struct ap_link_level *out)
{
	static const char *const others[] = {"name", "kind", "within", "span", "links", NULL};
	const char *kind;
	size_t i = 0;

	if (ap_jv_type(obj) != AP_JOBJECT)
		return ap_json_report(ctx, doc, obj, AP_ERROR, AP_MEANING, NULL, "key-type",
			"a level is an object");
	AP_TRY(ap_numbers_known(ctx, doc, obj, AP_NUMBERS_LEVEL, NULL, others));
	AP_TRY(get_name(ctx, doc, obj, &out->name));
	AP_TRY(ap_json_get_str(ctx, doc, obj, "kind", &kind));
	while (i < AP_COUNT(link_kinds) && strcmp(kind, link_kinds[i]) != 0)
		i++;
	if (i == AP_COUNT(link_kinds))
		return ap_json_report(ctx, doc, ap_jv_get(obj, "kind"), AP_ERROR, AP_MEANING, NULL,
			"link-kind", "kind \"%s\"; expected switch, mesh, bus or nic", kind);
	out->kind = (enum ap_link)i;
	AP_TRY(get_within(ctx, doc, obj, out));
	AP_TRY(get_links(ctx, doc, obj, out));
	return ap_numbers_read(ctx, doc, obj, AP_NUMBERS_LEVEL, NULL, out);
}

/* Does each block consist of whole blocks of the previous level, and the last level span the
 * machine? */
static bool levels_nest(const struct ap_chip *chip)
{
	for (int l = 0; l + 1 < chip->nlevel; l++) {
		const struct ap_link_level *a = &chip->level[l], *b = a + 1;
		bool whole = a->span && (!b->span || (b->span > a->span && b->span % a->span == 0));

		if (a->within > b->within || (a->within == b->within && !whole))
			return false;
	}
	return chip->level[chip->nlevel - 1].within == AP_WITHIN_MACHINE;
}

static enum ap_status get_levels(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, struct ap_chip *out)
{
	const struct ap_jv *levels;
	size_t n;

	AP_TRY(ap_json_get_arr(ctx, doc, root, "levels", &levels));
	n = ap_jv_count(levels);
	if (n < 1 || n >= AP_MAX_LEVELS)
		return ap_json_report(ctx, doc, levels, AP_ERROR, AP_MEANING, NULL, "key-range",
			"%zu levels; expected 1 to %d, inner to outer", n, AP_MAX_LEVELS - 1);
	for (const struct ap_jv *v = ap_jv_first(levels); v; v = ap_jv_next(v))
		AP_TRY(get_level(ctx, doc, v, &out->level[out->nlevel++]));
	if (!levels_nest(out))
		return ap_json_report(ctx, doc, levels, AP_ERROR, AP_MEANING, NULL, "level-nesting",
			"each level must hold whole blocks of the one before, and the last the "
			"whole machine");
	return AP_OK;
}

#define MOST_CURVE_BYTES 0x1p50
#define MOST_CURVE_S 1e6

/* Reads a pair of bytes and seconds. */
static enum ap_status get_point(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	struct ap_curve_point *out)
{
	const struct ap_jv *x = ap_jv_type(v) == AP_JARRAY && ap_jv_count(v) == 2 ? ap_jv_first(v) : NULL;
	const struct ap_jv *y = x ? ap_jv_next(x) : NULL;

	*out = (struct ap_curve_point){0};
	if (y && ap_jv_type(x) == AP_JNUMBER && ap_jv_type(y) == AP_JNUMBER)
		*out = (struct ap_curve_point){ap_jv_double(x), ap_jv_double(y)};
	if (out->bytes > 0 && out->bytes <= MOST_CURVE_BYTES && out->time_s > 0 &&
		out->time_s <= MOST_CURVE_S)
		return AP_OK;
	return ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-range",
		"a point is [bytes, seconds], both above 0");
}

/* Reads a measured curve: {"collective": "AllReduce", "ranks": 8, "servers": 1, "curve": [[bytes, s]]}. */
static enum ap_status get_curve(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	struct ap_curve *out)
{
	static const char *const keys[] = {"collective", "ranks", "servers", "curve", "source", NULL};
	struct ap_curve_point *v;
	const struct ap_jv *list;
	const char *name;
	size_t n = 0;

	*out = (struct ap_curve){.servers = 1, .source = ""};
	if (ap_jv_type(obj) != AP_JOBJECT)
		return ap_json_report(ctx, doc, obj, AP_ERROR, AP_MEANING, NULL, "key-type",
			"a measured collective is an object");
	AP_TRY(ap_json_known(ctx, doc, obj, keys));
	AP_TRY(ap_json_get_str(ctx, doc, obj, "collective", &name));
	while (out->coll < AP_COLL_COUNT && strcmp(name, ap_coll_name((enum ap_coll)out->coll)) != 0)
		out->coll++;
	if (out->coll == AP_COLL_COUNT || out->coll == AP_COLL_SEND)
		return ap_json_report(ctx, doc, ap_jv_get(obj, "collective"), AP_ERROR, AP_MEANING, NULL,
			"profile-collective", "\"%s\"; expected AllReduce, AllGather, ReduceScatter or "
			"AlltoAll", name);
	AP_TRY(ap_json_get_int(ctx, doc, obj, "ranks", 2, AP_MAX_DEVICES, &out->ranks));
	AP_TRY(ap_json_opt_int(ctx, doc, obj, "servers", 1, AP_MAX_DEVICES, &out->servers));
	if (out->ranks % out->servers)
		return ap_json_report(ctx, doc, ap_jv_get(obj, "servers"), AP_ERROR, AP_MEANING, NULL,
			"key-range", "%" PRId64 " servers of %" PRId64
			" ranks; expected a number that divides them", out->servers, out->ranks);
	AP_TRY(ap_json_opt_str(ctx, doc, obj, "source", &out->source));
	AP_TRY(ap_json_get_arr(ctx, doc, obj, "curve", &list));
	if (ap_jv_count(list) < 2 || ap_jv_count(list) > AP_MOST_CURVE_POINTS)
		return ap_json_report(ctx, doc, list, AP_ERROR, AP_MEANING, NULL, "key-range",
			"a curve has 2 to %d points", AP_MOST_CURVE_POINTS);
	v = AP_NEW_N(ctx->arena, struct ap_curve_point, ap_jv_count(list));
	for (const struct ap_jv *p = ap_jv_first(list); p; p = ap_jv_next(p))
		AP_TRY(get_point(ctx, doc, p, &v[n++]));
	ap_curve_set(ctx->arena, v, n, out);
	return out->npoint > 1 ? AP_OK : ap_json_report(ctx, doc, list, AP_ERROR, AP_MEANING, NULL,
		"key-range", "all points are of one size");
}

static enum ap_status get_curves(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *root,
	struct ap_chip *out)
{
	const struct ap_jv *list = NULL;
	struct ap_curve *curve;

	AP_TRY(ap_json_opt_arr(ctx, doc, root, "collectives", &list));
	if (!list)
		return AP_OK;
	if (ap_jv_count(list) > AP_MOST_CURVES)
		return ap_json_report(ctx, doc, list, AP_ERROR, AP_MEANING, NULL, "key-range",
			"at most %d measured collectives", AP_MOST_CURVES);
	out->curve = curve = AP_NEW_N(ctx->arena, struct ap_curve, ap_jv_count(list) + 1);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		struct ap_curve *c = &curve[out->ncurve];

		AP_TRY(get_curve(ctx, doc, v, c));
		for (int i = 0; i < out->ncurve; i++)
			if (ap_curve_is_like(c, &curve[i]))
				return ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-twice",
					"the same group has a curve already");
		out->ncurve++;
	}
	return AP_OK;
}

static enum ap_status get_aliases(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, const char *const **out, int *nout)
{
	const struct ap_jv *aliases = NULL;
	const char **alias;

	AP_TRY(ap_json_opt_arr(ctx, doc, root, "aliases", &aliases));
	if (!aliases)
		return AP_OK;
	alias = AP_NEW_N(ctx->arena, const char *, ap_jv_count(aliases) + 1);
	for (const struct ap_jv *v = ap_jv_first(aliases); v; v = ap_jv_next(v)) {
		if (ap_jv_type(v) != AP_JSTRING)
			return ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-type",
				"an alias is a string");
		alias[(*nout)++] = ap_jv_str(v);
	}
	*out = alias;
	return AP_OK;
}

/* Reads what says where numbers are from. */
static enum ap_status get_sources(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *root,
	struct ap_profile_sources *out)
{
	const struct ap_jv *sources = NULL;
	struct ap_profile_source *v;

	AP_TRY(ap_json_opt_obj(ctx, doc, root, "sources", &sources));
	if (!sources)
		return AP_OK;
	out->v = v = AP_NEW_N(ctx->arena, struct ap_profile_source, ap_jv_count(sources) + 1);
	for (const struct ap_jv *s = ap_jv_first(sources); s; s = ap_jv_next(s), out->n++) {
		v[out->n].path = ap_jv_key(s);
		AP_TRY(ap_json_get_str(ctx, doc, sources, ap_jv_key(s), &v[out->n].text));
	}
	return AP_OK;
}

/* Reads the layout of servers, used without a rank table, and their HCCL rules. */
static enum ap_status get_server(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, struct ap_chip *out)
{
	out->hccl = "";
	AP_TRY(ap_numbers_read(ctx, doc, root, AP_NUMBERS_CHIP, NULL, out));
	if (out->pod_devices % out->server_devices)
		return ap_json_report(ctx, doc, ap_jv_get(root, "devices_per_pod"), AP_ERROR,
			AP_MEANING, NULL, "key-range",
			"devices_per_pod must be a multiple of devices_per_server");
	AP_TRY(ap_json_opt_str(ctx, doc, root, "hccl", &out->hccl));
	if (*out->hccl && !ap_hccl_known(out->hccl))
		return ap_json_report(ctx, doc, ap_jv_get(root, "hccl"), AP_ERROR, AP_MEANING, NULL,
			"hccl-family", "hccl \"%s\"; expected 910, 910b or 910_93", out->hccl);
	return AP_OK;
}

enum ap_status ap_chip_parse(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_chip *out)
{
	static const char *const others[] = {"schema", "name", "aliases", "peak_flops", "fixed_s",
		"efficiency", "matmul_half", "attention", "memory", "levels", "collectives", "hccl",
		"sources", NULL};
	const struct ap_jv *root;

	*out = (struct ap_chip){.file = ap_json_file(doc), .sha256 = ""};
	AP_TRY(get_root(ctx, doc, "autopar-chip/1", &root));
	AP_TRY(ap_numbers_known(ctx, doc, root, AP_NUMBERS_CHIP, NULL, others));
	AP_TRY(get_sources(ctx, doc, root, &out->sources));
	AP_TRY(get_name(ctx, doc, root, &out->name));
	AP_TRY(get_aliases(ctx, doc, root, &out->alias, &out->nalias));
	AP_TRY(get_peaks(ctx, doc, root, out));
	AP_TRY(get_speeds(ctx, doc, root, out));
	AP_TRY(get_memory(ctx, doc, root, out));
	AP_TRY(get_levels(ctx, doc, root, out));
	AP_TRY(get_curves(ctx, doc, root, out));
	return get_server(ctx, doc, root, out);
}

static enum ap_status get_gradient_sum(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, struct ap_software *out)
{
	const char *given = NULL;

	AP_TRY(ap_json_opt_str(ctx, doc, root, "gradient_sum", &given));
	for (size_t i = AP_SUM_FUSED; given && i < AP_COUNT(gradient_sums); i++)
		if (!strcmp(given, gradient_sums[i]))
			out->gradient_sum = (enum ap_gradient_sum)i;
	if (given && out->gradient_sum == AP_SUM_UNKNOWN)
		return ap_json_report(ctx, doc, ap_jv_get(root, "gradient_sum"), AP_ERROR, AP_MEANING,
			NULL, "profile-sum", "\"%s\"; expected \"fused\" or \"apart\"", given);
	return AP_OK;
}

static enum ap_status get_attention_kernel(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *root, struct ap_software *out)
{
	const char *given = NULL;

	AP_TRY(ap_json_opt_str(ctx, doc, root, "attention", &given));
	for (int i = AP_ATTENTION_UNKNOWN + 1; given && i < AP_ATTENTION_COUNT; i++)
		if (!strcmp(given, attention_kernels[i]))
			out->attention = (enum ap_attention_kernel)i;
	if (given && out->attention == AP_ATTENTION_UNKNOWN)
		return ap_json_report(ctx, doc, ap_jv_get(root, "attention"), AP_ERROR, AP_MEANING, NULL,
			"profile-attention",
			"\"%s\"; expected \"flash-1\", \"flash-2\", \"flash-3\" or \"npu\"", given);
	return AP_OK;
}

static enum ap_status get_chains(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *root,
	struct ap_software *out)
{
	const struct ap_jv *list = NULL;

	AP_TRY(ap_json_opt_arr(ctx, doc, root, "chains", &list));
	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v)) {
		const char *given = ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : "";
		size_t i = 0;

		while (i < AP_CHAIN_COUNT && strcmp(given, chains[i]) != 0)
			i++;
		if (i == AP_CHAIN_COUNT)
			return ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "profile-chain",
				"expected a name of chains, such as \"bias+activation\": "
				"autopar-cost(7), Chains");
		out->chains |= 1u << i;
	}
	return AP_OK;
}

static const struct ap_curve *slowed(struct ap_arena *arena, const struct ap_curve *curve, int n,
	double times)
{
	struct ap_curve *out = n ? ap_arena_memdup(arena, curve, (size_t)n * sizeof *out) : NULL;

	for (int i = 0; i < n; i++) {
		struct ap_curve_point *v = ap_arena_memdup(arena, curve[i].point,
			(size_t)curve[i].npoint * sizeof *v);

		for (int k = 0; k < curve[i].npoint; k++)
			v[k].time_s *= times;
		ap_curve_set(arena, v, (size_t)curve[i].npoint, &out[i]);
	}
	return out;
}

const struct ap_chip *ap_chip_driven(struct ap_arena *arena, const struct ap_chip *chip,
	const struct ap_software *software)
{
	double kernels = software->kernel_slowdown, collectives = software->collective_slowdown;
	struct ap_chip *c;

	if (!(kernels > 1 || kernels < 1 || collectives > 1 || collectives < 1))
		return chip;
	c = ap_arena_memdup(arena, chip, sizeof *chip);
	for (int u = 0; u < AP_UNIT_COUNT; u++)
		c->fixed_s[u] *= kernels;
	c->matmul_efficiency /= kernels;
	c->matmul_float8_efficiency /= kernels;
	c->vector_efficiency /= kernels;
	c->memory_efficiency /= kernels;
	for (int k = 0; k < AP_ATTENTION_COUNT; k++) {
		c->attention[k].forward /= kernels;
		c->attention[k].backward /= kernels;
	}
	c->collective_fixed_s *= collectives;
	c->curve = slowed(arena, c->curve, c->ncurve, collectives);
	for (int l = 0; l < c->nlevel; l++) {
		struct ap_link_level *level = &c->level[l];
		double share = level->efficiency / collectives;

		level->latency_s *= collectives;
		level->efficiency = fmin(share, 1); /* a share of what links carry; the rest is the links' */
		level->bandwidth_Bps *= share / level->efficiency;
	}
	return c;
}

struct ap_attention_rate ap_chip_attention(const struct ap_chip *chip, enum ap_attention_kernel kernel)
{
	int k = kernel;

	while (k > AP_ATTENTION_UNKNOWN && !(chip->attention[k].forward > 0))
		k--;
	if (k == AP_ATTENTION_UNKNOWN && kernel != AP_ATTENTION_UNKNOWN)
		for (k = kernel + 1; k < AP_ATTENTION_COUNT && !(chip->attention[k].forward > 0); k++)
			;
	return k < AP_ATTENTION_COUNT ? chip->attention[k] : (struct ap_attention_rate){0};
}

enum ap_status ap_software_parse(
	struct ap_ctx *ctx, const struct ap_json *doc, struct ap_software *out)
{
	static const char *const others[] = {"schema", "name", "aliases", "versions", "dates", "attention",
		"chains", "gradient_sum", "sources", NULL};
	const struct ap_jv *root;

	*out = (struct ap_software){.file = ap_json_file(doc), .sha256 = "", .versions = "", .dates = ""};
	AP_TRY(get_root(ctx, doc, "autopar-software/1", &root));
	AP_TRY(ap_numbers_known(ctx, doc, root, AP_NUMBERS_SOFTWARE, NULL, others));
	AP_TRY(get_sources(ctx, doc, root, &out->sources));
	AP_TRY(get_name(ctx, doc, root, &out->name));
	AP_TRY(get_aliases(ctx, doc, root, &out->alias, &out->nalias));
	AP_TRY(ap_json_opt_str(ctx, doc, root, "versions", &out->versions));
	AP_TRY(ap_json_opt_str(ctx, doc, root, "dates", &out->dates));
	AP_TRY(get_attention_kernel(ctx, doc, root, out));
	AP_TRY(get_chains(ctx, doc, root, out));
	AP_TRY(get_gradient_sum(ctx, doc, root, out));
	return ap_numbers_read(ctx, doc, root, AP_NUMBERS_SOFTWARE, NULL, out);
}

enum { NEAR = 3 }; /* edits; closer names are suggested */
enum { FIRST_YEAR = 2000, LAST_YEAR = 2999 };

/* Parses a built-in profile or, if b is NULL, file `name`; sets its name for messages and its
 * digest. */
static enum ap_status open_profile(struct ap_ctx *ctx, const struct ap_builtin *b, const char *name,
	struct ap_json **doc, const char **file, const char **sha256)
{
	const char *path = b ? ap_arena_printf(ctx->arena, "%s.json", b->name) : name;
	char hex[AP_SHA256_HEX + 1], *read;
	const char *text = b ? b->text : NULL;
	size_t len = b ? strlen(text) : 0;

	if (!b) {
		AP_TRY(ap_file_read(ctx, path, AP_FILE_MAX_BYTES, &read, &len));
		text = read;
	}
	AP_TRY(ap_json_parse(ctx, path, text, len, 0, doc));
	ap_sha256_hex(text, len, hex);
	*file = ap_file_base(ap_json_file(*doc));
	*sha256 = ap_arena_strdup(ctx->arena, hex);
	return AP_OK;
}

static enum ap_status load_chip(struct ap_ctx *ctx, const struct ap_builtin *b, const char *name,
	const struct ap_chip **out)
{
	struct ap_chip *chip = AP_NEW(ctx->arena, struct ap_chip);
	const char *file, *sha256;
	struct ap_json *doc;

	AP_TRY(open_profile(ctx, b, name, &doc, &file, &sha256));
	AP_TRY(ap_chip_parse(ctx, doc, chip));
	chip->file = file;
	chip->sha256 = sha256;
	*out = chip;
	return AP_OK;
}

static enum ap_status load_software(struct ap_ctx *ctx, const struct ap_builtin *b, const char *name,
	const struct ap_software **out)
{
	struct ap_software *software = AP_NEW(ctx->arena, struct ap_software);
	const char *file, *sha256;
	struct ap_json *doc;

	AP_TRY(open_profile(ctx, b, name, &doc, &file, &sha256));
	AP_TRY(ap_software_parse(ctx, doc, software));
	software->file = file;
	software->sha256 = sha256;
	*out = software;
	return AP_OK;
}

/* The nearest name so far to `wanted`. */
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

/* Reports known names and the nearest; returns AP_USAGE. */
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

/* Finds the built-in chip of a name or alias; *out NULL if there is none: near has the nearest. */
static enum ap_status find_chip(struct ap_ctx *ctx, struct nearest *near, const struct ap_chip **out)
{
	for (const struct ap_builtin *b = ap_builtin_chips; b->name; b++)
		if (strcasecmp(b->name, near->wanted) == 0)
			return load_chip(ctx, b, NULL, out);
	for (const struct ap_builtin *b = ap_builtin_chips; b->name; b++) { /* they have to be read */
		bool is = false;

		AP_TRY(load_chip(ctx, b, NULL, out));
		for (int i = 0; i < (*out)->nalias; i++)
			is |= strcasecmp((*out)->alias[i], near->wanted) == 0;
		if (is)
			return AP_OK;
		consider(near, b->name);
		for (int i = 0; i < (*out)->nalias; i++)
			consider(near, (*out)->alias[i]);
	}
	*out = NULL;
	return AP_OK;
}

enum ap_status ap_chip_get(struct ap_ctx *ctx, const char *name, const struct ap_chip **out)
{
	struct nearest near = {.wanted = name, .distance = NEAR};

	if (ap_file_suffix(name, ".json"))
		return load_chip(ctx, NULL, name, out);
	AP_TRY(find_chip(ctx, &near, out));
	return *out ? AP_OK : unknown(ctx, "chip", ap_builtin_chips, &near);
}

/* Is a profile of the software of a name: "megatron-2021" of "megatron"? */
static bool is_of_family(const struct ap_software *s, const char *name, size_t len)
{
	bool is = strlen(s->name) >= len && !strncmp(s->name, name, len) &&
		(!s->name[len] || s->name[len] == '-');

	for (int i = 0; i < s->nalias; i++)
		is |= strlen(s->alias[i]) == len && !strncmp(s->alias[i], name, len);
	return is;
}

/* The profile of a family whose dates hold a year and say it most closely, else are the nearest to it. */
static enum ap_status software_of_year(struct ap_ctx *ctx, const char *name, const char *at,
	const struct ap_software **out)
{
	size_t len = (size_t)(at - name);
	int64_t year, least = INT64_MAX;

	*out = NULL;
	if (!ap_parse_int(at + 1, FIRST_YEAR, LAST_YEAR, &year))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
			"software profile \"%s\": a year is expected behind @, as in megatron@2022",
			ap_diag_name(ctx->diag, name));
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		const struct ap_software *s;
		int64_t from, to, off;

		AP_TRY(load_software(ctx, b, NULL, &s));
		from = strtol(s->dates, NULL, 10);
		if (from < FIRST_YEAR || !is_of_family(s, name, len))
			continue;
		to = strtol(strrchr(s->dates, ' ') ? strrchr(s->dates, ' ') : s->dates, NULL, 10);
		off = year < from ? from - year : year > to ? year - to : 0;
		off = off * LAST_YEAR + (to - from);
		if (off < least) {
			least = off;
			*out = s;
		}
	}
	return *out ? AP_OK : ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"software profile \"%s\": none of this name says of which years it is",
		ap_diag_name(ctx->diag, name));
}

enum ap_status ap_software_get(struct ap_ctx *ctx, const char *name, const struct ap_software **out)
{
	struct nearest near = {.wanted = name, .distance = NEAR};
	const char *at = strrchr(name, '@');

	if (ap_file_suffix(name, ".json"))
		return load_software(ctx, NULL, name, out);
	if (at)
		return software_of_year(ctx, name, at, out);
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		if (strcmp(b->name, name) == 0)
			return load_software(ctx, b, NULL, out);
		consider(&near, b->name);
	}
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		AP_TRY(load_software(ctx, b, NULL, out));
		for (int i = 0; i < (*out)->nalias; i++) {
			if (strcmp((*out)->alias[i], name) == 0)
				return AP_OK;
			consider(&near, (*out)->alias[i]);
		}
	}
	*out = NULL;
	return unknown(ctx, "software profile", ap_builtin_software, &near);
}

enum ap_status ap_chip_by_info(
	struct ap_ctx *ctx, const char *chip_info, const struct ap_chip **out)
{
	struct nearest near = {.wanted = chip_info, .distance = NEAR};

	return find_chip(ctx, &near, out);
}

static void add_card(const struct ap_chip *chip, struct ap_str *out)
{
	char peak[32], memory[32];

	ap_str_addf(out, "%s%s (%s TF, %s)", out->len ? ", " : "", chip->name,
		ap_format_double(chip->peak_flops[AP_UNIT_CUBE][AP_FLOAT16] / 1e12, peak),
		ap_format_bytes(chip->memory_bytes, memory));
}

enum ap_status ap_chip_note_family(struct ap_ctx *ctx, const char *name, const struct ap_chip *chip)
{
	static const char maker[] = "ascend";
	const char *family = strncasecmp(name, maker, strlen(maker)) ? name : name + strlen(maker);
	struct ap_str taken, others;

	if (!*chip->hccl || strcasecmp(family, chip->hccl) != 0)
		return AP_OK;
	ap_str_init(&taken, ctx->arena);
	ap_str_init(&others, ctx->arena);
	add_card(chip, &taken);
	for (const struct ap_builtin *b = ap_builtin_chips; b->name; b++) {
		const struct ap_chip *other;

		AP_TRY(load_chip(ctx, b, NULL, &other));
		if (!strcmp(other->hccl, chip->hccl) && strcmp(other->name, chip->name) != 0)
			add_card(other, &others);
	}
	if (!others.len)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, NULL, "chip-family",
		"%s is the name of several cards: %s is taken; others are %s", name, taken.s, others.s);
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
