/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an operator-strategy file, of which everything is checked that needs no plan. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "ckpt/op_strategy_parts.h"

struct reader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	struct ap_op_template *t;
	struct ap_map *ids;
	AP_VEC(struct ap_op_name) names;
	const char *oper; /* being read */
};

#define REPORT(r, v, check, ...) \
	ap_json_report((r)->ctx, (r)->doc, v, AP_ERROR, AP_MEANING, (r)->oper, check, __VA_ARGS__)

const char *ap_op_name_at(const struct ap_op_template *t, ap_id id)
{
	return ap_map_key(t->ids, id, NULL);
}

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

/* One dimension: the axes that cut it. used: those that cut another one. */
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

static enum ap_status read_names(struct reader *r, const struct ap_jv *names, size_t naxis)
{
	if (ap_jv_count(names) != naxis)
		return REPORT(r, names, "op-strategy-axis", "%zu names; dev_matrix has %zu axes",
			ap_jv_count(names), naxis);
	for (const struct ap_jv *v = ap_jv_first(names); v; v = ap_jv_next(v))
		if (ap_jv_type(v) != AP_JSTRING)
			return REPORT(r, v, "key-type", "should be a string");
	return AP_OK;
}

/* All four members, without which MindSpore's reader throws. */
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
	AP_TRY(read_names(r, names, n));
	used = AP_NEW_N(r->ctx->arena, bool, n);
	for (v = ap_jv_first(map); v; v = ap_jv_next(v))
		AP_TRY(read_axes(r, v, (int64_t)n, used));
	return AP_OK;
}

/* {"0": .., "1": ..}, a layout per tensor. */
static enum ap_status read_layouts(struct reader *r, const struct ap_jv *v)
{
	size_t n = ap_jv_count(v);

	for (size_t i = 0; i < n; i++) {
		const struct ap_jv *layout;
		char key[24];

		snprintf(key, sizeof key, "%zu", i);
		AP_TRY(ap_json_get_obj(r->ctx, r->doc, v, key, &layout));
		AP_TRY(read_layout(r, layout));
	}
	return AP_OK;
}

static enum ap_status read_value(struct reader *r, const struct ap_jv *v, enum ap_op_map map)
{
	if (ap_jv_type(v) != AP_JOBJECT)
		return REPORT(r, v, "key-type", "should be an object");
	switch (map) {
	case AP_OP_STRATEGY:
	case AP_OP_OUT_STRATEGY:
		return read_strategy(r, v);
	case AP_OP_LAYOUT:
	case AP_OP_OUT_LAYOUT:
		return read_layouts(r, v);
	default:
		return AP_OK; /* is kept as it is, or refused */
	}
}

static void note_name(struct reader *r, const struct ap_jv *v, enum ap_op_map map)
{
	struct ap_op_name none = {{NULL}};
	bool fresh;
	ap_id id;

	if (!ap_op_map_is_asked(map)) {
		id = ap_map_get_str(r->ids, ap_jv_key(v));
		if (id != AP_NONE)
			r->names.v[id].at[map] = v;
		return;
	}
	id = ap_map_put_str(r->ids, ap_jv_key(v), &fresh);
	if (fresh)
		AP_PUSH(r->ctx->arena, r->names, none);
	r->names.v[id].at[map] = v;
}

/* Reports the faults of all its operators. */
static enum ap_status read_map(struct reader *r, enum ap_op_map map)
{
	const struct ap_jv *obj = NULL;
	enum ap_status st = AP_OK, one;

	AP_TRY(ap_json_opt_obj(r->ctx, r->doc, ap_json_root(r->doc), ap_op_map_key(map), &obj));
	r->t->map[map] = obj;
	for (const struct ap_jv *v = obj ? ap_jv_first(obj) : NULL; v; v = ap_jv_next(v)) {
		r->oper = ap_jv_key(v);
		one = read_value(r, v, map);
		st = st == AP_OK ? one : st;
		note_name(r, v, map);
	}
	r->oper = NULL;
	return st;
}

static enum ap_status read_maps(struct reader *r)
{
	enum ap_status st = AP_OK, one;

	for (int asked = 1; asked >= 0; asked--) /* those of results speak of names of the others */
		for (int map = 0; map < AP_OP_MAP_COUNT; map++) {
			if (ap_op_map_is_asked((enum ap_op_map)map) != asked)
				continue;
			one = read_map(r, (enum ap_op_map)map);
			st = st == AP_OK ? one : st;
		}
	return st;
}

static enum ap_status read_root(struct reader *r)
{
	static const char *const known[] = {"current_stage", "parallel_layout_value_item",
		"parallel_newshape_layout_value_item", "parallel_out_layout_value_item",
		"parallel_out_newshape_layout_value_item", "parallel_out_strategy_item",
		"parallel_strategy_item", NULL};
	const struct ap_jv *root = ap_json_root(r->doc);

	if (ap_jv_type(root) != AP_JOBJECT)
		return REPORT(r, root, "key-type", "should be an object");
	if (ap_jv_get(root, "parallel_layout_item"))
		return REPORT(r, ap_jv_get(root, "parallel_layout_item"), "op-strategy-kind",
			"this is a strategy checkpoint; operator strategies are what "
			"save_operator_strategy_file() writes");
	AP_TRY(ap_json_known(r->ctx, r->doc, root, known));
	return ap_json_opt_int(r->ctx, r->doc, root, "current_stage", 0, INT32_MAX, &r->t->current_stage);
}

enum ap_status ap_op_template_read(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_op_template **out)
{
	struct ap_op_template *t = AP_NEW(ctx->arena, struct ap_op_template);
	struct reader r = {.ctx = ctx, .doc = doc, .t = t, .ids = ap_map_create(ctx->arena)};

	t->doc = doc;
	AP_TRY(read_root(&r));
	AP_TRY(read_maps(&r));
	if (!r.names.n)
		return REPORT(&r, ap_json_root(doc), "op-strategy-empty", "names no operator");
	t->ids = r.ids;
	t->n = (uint32_t)r.names.n;
	t->name = r.names.v;
	*out = t;
	return AP_OK;
}

uint32_t ap_op_template_size(const struct ap_op_template *t)
{
	return t->n;
}
