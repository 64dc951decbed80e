/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/op_template.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

const char *const ap_op_map_key[AP_OP_MAP_COUNT] = {
	[AP_OP_LAYOUT] = "parallel_layout_value_item",
	[AP_OP_NESTED] = "parallel_newshape_layout_value_item",
	[AP_OP_OUT_LAYOUT] = "parallel_out_layout_value_item",
	[AP_OP_OUT_NESTED] = "parallel_out_newshape_layout_value_item",
	[AP_OP_OUT_STRATEGY] = "parallel_out_strategy_item",
	[AP_OP_STRATEGY] = "parallel_strategy_item",
};

struct reader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	struct ap_map *ids;
	AP_VEC(struct ap_op_name) names;
	const char *oper; /* being read */
};

#define REPORT(r, v, check, ...) \
	ap_json_report((r)->ctx, (r)->doc, v, AP_ERROR, AP_MEANING, (r)->oper, check, __VA_ARGS__)

static enum ap_status need_array(struct reader *r, const struct ap_jv *v)
{
	return ap_jv_type(v) == AP_JARRAY ? AP_OK : REPORT(r, v, "key-type", "should be an array");
}

static enum ap_status read_strategy(struct reader *r, const struct ap_jv *v)
{
	static const char *const known[] = {"parallel_strategy", "stage", NULL};
	const struct ap_jv *vectors;
	int64_t stage, *parts;
	size_t n;

	AP_TRY(ap_json_known(r->ctx, r->doc, v, known));
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "stage", 0, INT32_MAX, &stage));
	AP_TRY(ap_json_get_arr(r->ctx, r->doc, v, "parallel_strategy", &vectors));
	for (v = ap_jv_first(vectors); v; v = ap_jv_next(v)) {
		AP_TRY(need_array(r, v));
		AP_TRY(ap_json_ints(r->ctx, r->doc, v, 1, INT32_MAX, &parts, &n));
	}
	return AP_OK;
}

/* Reads the axes that cut a dimension. used: axes taken by others. */
static enum ap_status read_axes(struct reader *r, const struct ap_jv *v, int64_t naxis, bool *used)
{
	int64_t *axis;
	size_t n;

	AP_TRY(need_array(r, v));
	AP_TRY(ap_json_ints(r->ctx, r->doc, v, -1, naxis - 1, &axis, &n));
	for (size_t i = 0; i < n; i++) {
		if (axis[i] >= 0 && used[axis[i]])
			return REPORT(r, v, "op-strategy-axis", "axis %" PRId64 " is there twice; an axis "
				"cuts one dimension", axis[i]);
		if (axis[i] >= 0)
			used[axis[i]] = true;
	}
	return AP_OK;
}

/* Reads a layout; MindSpore's reader throws unless all four members are there. */
static enum ap_status read_layout(struct reader *r, const struct ap_jv *v)
{
	static const char *const known[] = {"alias_name", "dev_matrix", "interleaved_parallel", "tensor_map",
		NULL};
	const struct ap_jv *names, *matrix, *map, *interleaved = ap_jv_get(v, "interleaved_parallel");
	int64_t *size;
	bool *used;
	size_t n;

	AP_TRY(ap_json_known(r->ctx, r->doc, v, known));
	AP_TRY(ap_json_get_arr(r->ctx, r->doc, v, "alias_name", &names));
	AP_TRY(ap_json_get_arr(r->ctx, r->doc, v, "dev_matrix", &matrix));
	AP_TRY(ap_json_get_arr(r->ctx, r->doc, v, "tensor_map", &map));
	if (!interleaved || ap_jv_type(interleaved) != AP_JBOOL)
		return REPORT(r, interleaved ? interleaved : v, interleaved ? "key-type" : "key-missing",
			"\"interleaved_parallel\" should be true or false");
	AP_TRY(ap_json_ints(r->ctx, r->doc, matrix, 1, INT32_MAX, &size, &n));
	if (ap_jv_count(names) != n)
		return REPORT(r, names, "op-strategy-axis", "%zu names; dev_matrix has %zu axes",
			ap_jv_count(names), n);
	for (v = ap_jv_first(names); v; v = ap_jv_next(v))
		if (ap_jv_type(v) != AP_JSTRING)
			return REPORT(r, v, "key-type", "should be a string");
	used = AP_NEW_N(r->ctx->arena, bool, n);
	for (v = ap_jv_first(map); v; v = ap_jv_next(v))
		AP_TRY(read_axes(r, v, (int64_t)n, used));
	return AP_OK;
}

static enum ap_status read_value(struct reader *r, const struct ap_jv *v, enum ap_op_map map)
{
	if (ap_jv_type(v) != AP_JOBJECT)
		return REPORT(r, v, "key-type", "should be an object");
	if (map == AP_OP_STRATEGY || map == AP_OP_OUT_STRATEGY)
		return read_strategy(r, v);
	if (map != AP_OP_LAYOUT && map != AP_OP_OUT_LAYOUT)
		return AP_OK; /* kept as it is, or refused */
	for (size_t i = 0; i < ap_jv_count(v); i++) { /* {"0": .., "1": ..}, a layout per tensor */
		const struct ap_jv *layout;
		char key[24];

		snprintf(key, sizeof key, "%zu", i);
		AP_TRY(ap_json_get_obj(r->ctx, r->doc, v, key, &layout));
		AP_TRY(read_layout(r, layout));
	}
	return AP_OK;
}

/* Reads a map, reporting the faults of all operators. */
static enum ap_status read_map(struct reader *r, enum ap_op_map map, const struct ap_jv **obj)
{
	enum ap_status st = AP_OK, one;

	AP_TRY(ap_json_opt_obj(r->ctx, r->doc, ap_json_root(r->doc), ap_op_map_key[map], obj));
	for (const struct ap_jv *v = *obj ? ap_jv_first(*obj) : NULL; v; v = ap_jv_next(v)) {
		bool fresh = false;
		ap_id id;

		r->oper = ap_jv_key(v);
		one = read_value(r, v, map);
		st = st == AP_OK ? one : st;
		id = ap_op_map_is_asked(map) ? ap_map_put_str(r->ids, r->oper, &fresh)
			: ap_map_get_str(r->ids, r->oper);
		if (fresh)
			AP_PUSH(r->ctx->arena, r->names, ((struct ap_op_name){{NULL}}));
		if (id != AP_NONE)
			r->names.v[id].at[map] = v;
	}
	r->oper = NULL;
	return st;
}

enum ap_status ap_op_template_read(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_op_template **out)
{
	const char *known[AP_OP_MAP_COUNT + 2] = {"current_stage"};
	struct ap_op_template *t = AP_NEW(ctx->arena, struct ap_op_template);
	struct reader r = {.ctx = ctx, .doc = doc, .ids = ap_map_create(ctx->arena)};
	const struct ap_jv *root = ap_json_root(doc);
	enum ap_status st = AP_OK, one;

	if (ap_jv_type(root) != AP_JOBJECT)
		return REPORT(&r, root, "key-type", "should be an object");
	if (ap_jv_get(root, "parallel_layout_item"))
		return REPORT(&r, ap_jv_get(root, "parallel_layout_item"), "op-strategy-kind",
			"this is a strategy checkpoint; operator strategies are what "
			"save_operator_strategy_file() writes");
	memcpy(known + 1, ap_op_map_key, sizeof ap_op_map_key);
	AP_TRY(ap_json_known(ctx, doc, root, known));
	AP_TRY(ap_json_opt_int(ctx, doc, root, "current_stage", 0, INT32_MAX, &t->current_stage));
	for (int asked = 1; asked >= 0; asked--) /* maps of results come last: they only add to
			names of the others */
		for (enum ap_op_map map = 0; map < AP_OP_MAP_COUNT; map++)
			if (ap_op_map_is_asked(map) == asked) {
				one = read_map(&r, map, &t->map[map]);
				st = st == AP_OK ? one : st;
			}
	AP_TRY(st);
	if (!r.names.n)
		return REPORT(&r, root, "op-strategy-empty", "names no operator");
	t->doc = doc;
	t->ids = r.ids;
	t->n = (uint32_t)r.names.n;
	t->name = r.names.v;
	*out = t;
	return AP_OK;
}

const char *ap_op_name_at(const struct ap_op_template *t, ap_id id)
{
	return ap_map_key(t->ids, id, NULL);
}

bool ap_op_says_recomputed(const char *name)
{
	return !strncmp(name, AP_OP_RECOMPUTED, strlen(AP_OP_RECOMPUTED));
}

/* Parts of a full name without "recompute_"; for "Default/fc1-Dense/MatMul-op12": base, all before
 * "-op12"; prim, "MatMul"; number, 12, or -1 if there is none. */
struct spelling {
	const char *base, *prim;
	size_t nbase, nprim;
	int64_t number;
};

static struct spelling spell(const char *name)
{
	struct spelling s = {.number = -1};
	const char *end, *digits;

	if (ap_op_says_recomputed(name))
		name += strlen(AP_OP_RECOMPUTED);
	end = digits = name + strlen(name);
	while (digits > name && isdigit((unsigned char)digits[-1]))
		digits--;
	if (digits < end && end - digits < 10 && digits - name > 3 && !strncmp(digits - 3, "-op", 3)) {
		s.number = strtoll(digits, NULL, 10);
		end = digits - 3;
	}
	s.base = name;
	s.nbase = (size_t)(end - name);
	for (s.prim = end; s.prim > name && s.prim[-1] != '/'; s.prim--)
		;
	s.nprim = (size_t)(end - s.prim);
	return s;
}

bool ap_op_prim_is(const char *name, const char *prim)
{
	struct spelling s = spell(name);

	return s.nprim == strlen(prim) && !strncmp(s.prim, prim, s.nprim);
}

struct side { /* a name of template or plan */
	ap_id group; /* scope and primitive */
	bool plan;
	int64_t number;
	ap_id index; /* of the name or node */
};

static int by_group(const void *a, const void *b)
{
	const struct side *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->plan != y->plan)
		return x->plan ? 1 : -1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static struct side make_side(struct ap_map *groups, const char *name, bool plan, ap_id index)
{
	struct spelling s = spell(name);

	return (struct side){ap_map_put(groups, s.base, s.nbase, NULL), plan, s.number, index};
}

/* Pairs names of a group with operators. */
static void pair_group(struct ap_op_match *out, const struct side *name, size_t nname,
	const struct side *node, size_t nnode)
{
	bool in_order = nname == nnode;

	for (size_t i = 0, j = 0; i < nname && j < nnode;)
		if (in_order || name[i].number == node[j].number) {
			out->node[name[i].index] = node[j].index;
			out->found[node[j].index] = true;
			out->renumbered += name[i++].number != node[j++].number;
		} else if (name[i].number < node[j].number) {
			i++;
		} else {
			j++;
		}
}

void ap_op_match_make(struct ap_ctx *ctx, const struct ap_op_template *t, const struct ap_graph *g,
	struct ap_op_match *out)
{
	struct ap_mark mark;
	struct side *side;
	struct ap_map *groups;
	size_t n = 0;

	*out = (struct ap_op_match){.node = AP_NEW_N(ctx->arena, ap_id, t->n),
		.found = AP_NEW_N(ctx->arena, bool, g->nnode)};
	mark = ap_arena_mark(ctx->scratch);
	side = AP_NEW_N(ctx->scratch, struct side, t->n + (size_t)g->nnode);
	groups = ap_map_create(ctx->scratch);
	for (ap_id i = 0; i < t->n; i++) {
		out->node[i] = AP_NONE;
		side[n++] = make_side(groups, ap_op_name_at(t, i), false, i);
	}
	for (ap_id i = 0; i < g->nnode; i++)
		if (g->node[i].peer < 0)
			side[n++] = make_side(groups, g->node[i].name, true, i);
	qsort(side, n, sizeof *side, by_group);
	for (size_t from = 0, middle, to; from < n; from = to) {
		for (middle = from; middle < n && !side[middle].plan &&
			side[middle].group == side[from].group; middle++)
			;
		for (to = middle; to < n && side[to].group == side[from].group; to++)
			;
		pair_group(out, side + from, middle - from, side + middle, to - middle);
	}
	ap_arena_release(ctx->scratch, mark);
}
