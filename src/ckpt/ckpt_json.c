/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of the strategy checkpoint. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/vec.h"
#include "ckpt/ckpt_form.h"

static void write_strategies(struct ap_jw *w, const struct ap_ckpt *c)
{
	ap_jw_obj(w);
	for (uint32_t i = 0; i < c->nitem; i++) {
		const struct ap_ckpt_item *item = &c->item[i];
		/* a name can be a key but once: the last stage's stands, as MindSpore merges */
		bool again = i + 1 < c->nitem && !strcmp(item->node_name, item[1].node_name);

		if (again)
			continue;
		ap_jw_key(w, item->node_name);
		ap_jw_obj(w);
		ap_jw_key(w, "parallel_strategy");
		ap_jw_arr(w);
		for (uint32_t v = 0; v < item->n; v++)
			ap_jw_ints(w, item->strategy[v].v, item->strategy[v].n);
		ap_jw_end(w);
		ap_jw_kint(w, "stage", item->stage);
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

/* Messages of a tensor map one after the other: the map of a shape in which each dimension that
 * several axes cut is as many dimensions. */
static void write_map(struct ap_jw *w, const struct ap_ckpt_layout *l)
{
	ap_jw_key(w, "tensor_map");
	ap_jw_arr(w);
	for (uint32_t i = 0; i < l->nmap; i++)
		for (uint32_t j = 0; j < l->tensor_map[i].n; j++)
			ap_jw_int(w, l->tensor_map[i].v[j]);
	ap_jw_end(w);
}

static void write_shape(struct ap_jw *w, const struct ap_ckpt_layout *l)
{
	ap_jw_key(w, "tensor_shape");
	ap_jw_arr(w);
	for (uint32_t d = 0; d < l->tensor_shape.n; d++) {
		int64_t left = l->tensor_shape.v[d];

		for (uint32_t j = 0; l->nmap > 1 && j + 1 < l->tensor_map[d].n; j++) {
			int64_t axis = l->tensor_map[d].v[j];
			int64_t cut = axis < 0 ? 1 : l->dev_matrix.v[l->dev_matrix.n - 1 - axis];

			ap_jw_int(w, cut);
			left /= cut;
		}
		ap_jw_int(w, left);
	}
	ap_jw_end(w);
}

static void write_layout(struct ap_jw *w, const struct ap_ckpt_layout *l)
{
	bool uneven = l->param_split_shape.n > 0;

	ap_jw_key(w, l->param_name);
	ap_jw_obj(w);
	ap_jw_kints(w, "dev_matrix", l->dev_matrix.v, l->dev_matrix.n);
	ap_jw_kint(w, "field", l->field);
	if (uneven)
		ap_jw_kints(w, "indices_offset", l->indices_offset.v, l->indices_offset.n);
	ap_jw_kint(w, "opt_weight_shard_size", l->weight_size);
	ap_jw_kint(w, "opt_weight_shard_step", l->weight_step);
	if (uneven)
		ap_jw_kints(w, "param_split_shape", l->param_split_shape.v, l->param_split_shape.n);
	write_map(w, l);
	if (l->has_shape)
		write_shape(w, l);
	ap_jw_end(w);
}

void ap_ckpt_write_json(const struct ap_ckpt *c, ap_write_fn *write, void *user)
{
	struct ap_jw w;

	ap_jw_init(&w, write, user, 0);
	ap_jw_obj(&w);
	ap_jw_kint(&w, "current_stage", c->current_stage);
	ap_jw_key(&w, "parallel_layout_item");
	ap_jw_obj(&w);
	for (uint32_t i = 0; i < c->nlayout; i++)
		write_layout(&w, &c->layout[i]);
	ap_jw_end(&w);
	ap_jw_key(&w, "parallel_strategy_item");
	write_strategies(&w, c);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

struct reader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
};

/* Ranges are those of the protobuf form; what the values mean is checked for both forms alike. */
static enum ap_status get_vec(struct reader *r, const struct ap_jv *arr, int64_t lo, int64_t hi,
	struct ap_ckpt_vec *out)
{
	int64_t *v = NULL;
	size_t n = 0;

	AP_TRY(ap_json_ints(r->ctx, r->doc, arr, lo, hi, &v, &n));
	*out = (struct ap_ckpt_vec){(uint32_t)n, v};
	return AP_OK;
}

static enum ap_status get_member(struct reader *r, const struct ap_jv *obj, const char *key,
	int64_t lo, int64_t hi, struct ap_ckpt_vec *out)
{
	const struct ap_jv *arr;

	AP_TRY(ap_json_get_arr(r->ctx, r->doc, obj, key, &arr));
	return get_vec(r, arr, lo, hi, out);
}

static enum ap_status get_optional(struct reader *r, const struct ap_jv *obj, const char *key,
	struct ap_ckpt_vec *out)
{
	const struct ap_jv *arr = NULL;

	AP_TRY(ap_json_opt_arr(r->ctx, r->doc, obj, key, &arr));
	return arr ? get_vec(r, arr, 0, INT64_MAX, out) : AP_OK;
}

static enum ap_status get_int32(struct reader *r, const struct ap_jv *obj, const char *key,
	int32_t *out)
{
	int64_t v = 0;

	AP_TRY(ap_json_get_int(r->ctx, r->doc, obj, key, INT32_MIN, INT32_MAX, &v));
	*out = (int32_t)v;
	return AP_OK;
}

static enum ap_status need_object(struct reader *r, const struct ap_jv *v)
{
	if (ap_jv_type(v) == AP_JOBJECT)
		return AP_OK;
	return ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL, "key-type",
		"should be an object");
}

static enum ap_status read_item(struct reader *r, const struct ap_jv *v, struct ap_ckpt_item *out)
{
	static const char *const known[] = {"stage", "parallel_strategy", NULL};
	const struct ap_jv *vectors;
	struct ap_ckpt_vec *strategy;
	int64_t stage = 0;

	AP_TRY(need_object(r, v));
	AP_TRY(ap_json_known(r->ctx, r->doc, v, known));
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "stage", 0, UINT32_MAX, &stage));
	AP_TRY(ap_json_get_arr(r->ctx, r->doc, v, "parallel_strategy", &vectors));
	*out = (struct ap_ckpt_item){.node_name = ap_jv_key(v), .stage = (uint32_t)stage,
		.n = (uint32_t)ap_jv_count(vectors)};
	out->strategy = strategy = AP_NEW_N(r->ctx->arena, struct ap_ckpt_vec, out->n);
	for (v = ap_jv_first(vectors); v; v = ap_jv_next(v)) {
		if (ap_jv_type(v) != AP_JARRAY)
			return ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL,
				"key-type", "should be an array of integers");
		AP_TRY(get_vec(r, v, 0, UINT32_MAX, strategy++));
	}
	return AP_OK;
}

/* Python's loader does without the shape, so files without it exist. */
static enum ap_status read_shape(struct reader *r, const struct ap_jv *v,
	struct ap_ckpt_layout *out)
{
	AP_TRY(get_optional(r, v, "tensor_shape", &out->tensor_shape));
	out->has_shape = ap_jv_get(v, "tensor_shape");
	if (out->has_shape && out->tensor_shape.n != out->tensor_map->n)
		return ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL, "ckpt-layout",
			"tensor_map of %" PRIu32 " entries for a tensor_shape of %" PRIu32,
			out->tensor_map->n, out->tensor_shape.n);
	return AP_OK;
}

static enum ap_status read_layout(struct reader *r, const struct ap_jv *v,
	struct ap_ckpt_layout *out)
{
	static const char *const known[] = {"dev_matrix", "tensor_map", "tensor_shape", "field",
		"opt_weight_shard_step", "opt_weight_shard_size", "param_split_shape",
		"indices_offset", NULL};
	struct ap_ckpt_vec *map = AP_NEW(r->ctx->arena, struct ap_ckpt_vec);

	AP_TRY(need_object(r, v));
	AP_TRY(ap_json_known(r->ctx, r->doc, v, known));
	*out = (struct ap_ckpt_layout){.param_name = ap_jv_key(v), .nmap = 1, .tensor_map = map};
	AP_TRY(get_member(r, v, "dev_matrix", 0, UINT32_MAX, &out->dev_matrix));
	AP_TRY(get_member(r, v, "tensor_map", INT32_MIN, INT32_MAX, map));
	AP_TRY(get_int32(r, v, "field", &out->field));
	AP_TRY(get_int32(r, v, "opt_weight_shard_step", &out->weight_step));
	AP_TRY(get_int32(r, v, "opt_weight_shard_size", &out->weight_size));
	AP_TRY(get_optional(r, v, "param_split_shape", &out->param_split_shape));
	AP_TRY(get_optional(r, v, "indices_offset", &out->indices_offset));
	return read_shape(r, v, out);
}

static enum ap_status read_items(struct reader *r, const struct ap_jv *map, struct ap_ckpt *out)
{
	size_t n = ap_jv_count(map);
	struct ap_ckpt_item *item = AP_NEW_N(r->ctx->arena, struct ap_ckpt_item, n);
	enum ap_status st = AP_OK, one;

	out->item = item;
	out->nitem = (uint32_t)n;
	for (const struct ap_jv *v = ap_jv_first(map); v; v = ap_jv_next(v))
		if ((one = read_item(r, v, item++)) != AP_OK)
			st = one;
	return st;
}

static enum ap_status read_layouts(struct reader *r, const struct ap_jv *map, struct ap_ckpt *out)
{
	size_t n = ap_jv_count(map);
	struct ap_ckpt_layout *layout = AP_NEW_N(r->ctx->arena, struct ap_ckpt_layout, n);
	enum ap_status st = AP_OK, one;

	out->layout = layout;
	out->nlayout = (uint32_t)n;
	for (const struct ap_jv *v = ap_jv_first(map); v; v = ap_jv_next(v))
		if ((one = read_layout(r, v, layout++)) != AP_OK)
			st = one;
	return st;
}

/* The operator-strategy file of sharding propagation shares two keys with the checkpoint. */
static enum ap_status check_kind(struct reader *r, const struct ap_jv *root)
{
	static const char *const others[] = {"parallel_out_strategy_item",
		"parallel_layout_value_item", "parallel_out_layout_value_item",
		"parallel_newshape_layout_value_item", "parallel_out_newshape_layout_value_item"};

	AP_TRY(need_object(r, root));
	for (size_t i = 0; i < AP_COUNT(others); i++)
		if (ap_jv_get(root, others[i]))
			return ap_json_report(r->ctx, r->doc, root, AP_ERROR, AP_MEANING, NULL,
				"ckpt-kind",
				"is an operator-strategy file (sharding propagation), not a "
				"strategy checkpoint");
	return AP_OK;
}

enum ap_status ap_ckpt_json_parse(struct ap_ctx *ctx, const char *file, const char *bytes,
	size_t len, struct ap_ckpt *out)
{
	static const char *const known[] = {"current_stage", "parallel_strategy_item",
		"parallel_layout_item", NULL};
	const struct ap_jv *root, *items, *layouts;
	struct reader r = {.ctx = ctx};
	enum ap_status st;
	int64_t current = 0;
	struct ap_json *doc;

	AP_TRY(ap_json_parse(ctx, file, bytes, len, 0, &doc));
	r.doc = doc;
	root = ap_json_root(doc);
	AP_TRY(check_kind(&r, root));
	AP_TRY(ap_json_known(ctx, doc, root, known));
	AP_TRY(ap_json_get_int(ctx, doc, root, "current_stage", 0, UINT32_MAX, &current));
	AP_TRY(ap_json_get_obj(ctx, doc, root, "parallel_strategy_item", &items));
	AP_TRY(ap_json_get_obj(ctx, doc, root, "parallel_layout_item", &layouts));
	*out = (struct ap_ckpt){.file = ap_json_file(doc), .current_stage = (uint32_t)current};
	st = read_items(&r, items, out);
	AP_TRY(read_layouts(&r, layouts, out));
	return st;
}
