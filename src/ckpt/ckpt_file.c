/* SPDX-License-Identifier: Apache-2.0 */
#include "ckpt/ckpt_file.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/vec.h"
#include "ckpt/ckpt_layouts.h"
#include "ckpt/ckpt_pb.h"

/* ---- writing JSON ---- */

static void write_shape(struct ap_jw *w, const struct ap_ckpt_layout *l)
{
	ap_jw_karr(w, "tensor_shape");
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

	ap_jw_kobj(w, l->param_name);
	ap_jw_kints(w, "dev_matrix", l->dev_matrix.v, l->dev_matrix.n);
	ap_jw_kint(w, "field", l->field);
	if (uneven)
		ap_jw_kints(w, "indices_offset", l->indices_offset.v, l->indices_offset.n);
	ap_jw_kint(w, "opt_weight_shard_size", l->weight_size);
	ap_jw_kint(w, "opt_weight_shard_step", l->weight_step);
	if (uneven)
		ap_jw_kints(w, "param_split_shape", l->param_split_shape.v, l->param_split_shape.n);
	/* concatenates the messages: a map of a shape in which a dimension cut by several axes is
	 * split into as many dimensions */
	ap_jw_karr(w, "tensor_map");
	for (uint32_t i = 0; i < l->nmap; i++)
		for (uint32_t j = 0; j < l->tensor_map[i].n; j++)
			ap_jw_int(w, l->tensor_map[i].v[j]);
	ap_jw_end(w);
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
	ap_jw_kobj(&w, "parallel_layout_item");
	for (uint32_t i = 0; i < c->nlayout; i++)
		write_layout(&w, &c->layout[i]);
	ap_jw_end(&w);
	ap_jw_kobj(&w, "parallel_strategy_item");
	for (uint32_t i = 0; i < c->nitem; i++) {
		const struct ap_ckpt_item *item = &c->item[i];

		/* JSON keys are unique: keep the last stage, as MindSpore does when merging */
		if (i + 1 < c->nitem && !strcmp(item->node_name, item[1].node_name))
			continue;
		ap_jw_kobj(&w, item->node_name);
		ap_jw_karr(&w, "parallel_strategy");
		for (uint32_t v = 0; v < item->n; v++)
			ap_jw_ints(&w, item->strategy[v].v, item->strategy[v].n);
		ap_jw_end(&w);
		ap_jw_kint(&w, "stage", item->stage);
		ap_jw_end(&w);
	}
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}

/* ---- reading JSON ---- */

struct reader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
};

/* Ranges are those of protobuf types; settle() checks values of both forms. */
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
	/* MindSpore's Python loader does not need the shape, so files without it exist */
	AP_TRY(get_optional(r, v, "tensor_shape", &out->tensor_shape));
	out->has_shape = ap_jv_get(v, "tensor_shape");
	if (out->has_shape && out->tensor_shape.n != map->n)
		return ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL, "ckpt-layout",
			"tensor_map of %" PRIu32 " entries for a tensor_shape of %" PRIu32,
			map->n, out->tensor_shape.n);
	return AP_OK;
}

/* Reads values unchecked, in file order. */
static enum ap_status read_json(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	struct ap_ckpt *out)
{
	/* the operator-strategy file of sharding propagation has two keys in common with a
	 * checkpoint */
	static const char *const others[] = {"parallel_out_strategy_item",
		"parallel_layout_value_item", "parallel_out_layout_value_item",
		"parallel_newshape_layout_value_item", "parallel_out_newshape_layout_value_item"};
	static const char *const known[] = {"current_stage", "parallel_strategy_item",
		"parallel_layout_item", NULL};
	const struct ap_jv *root, *items, *layouts;
	struct ap_ckpt_item *item;
	struct ap_ckpt_layout *layout;
	struct reader r = {.ctx = ctx};
	enum ap_status items_st = AP_OK, layouts_st = AP_OK, one;
	int64_t current = 0;
	struct ap_json *doc;

	AP_TRY(ap_json_parse(ctx, file, bytes, len, 0, &doc));
	r.doc = doc;
	root = ap_json_root(doc);
	AP_TRY(need_object(&r, root));
	for (size_t i = 0; i < AP_COUNT(others); i++)
		if (ap_jv_get(root, others[i]))
			return ap_json_report(ctx, doc, root, AP_ERROR, AP_MEANING, NULL, "ckpt-kind",
				"is an operator-strategy file (sharding propagation), not a "
				"strategy checkpoint");
	AP_TRY(ap_json_known(ctx, doc, root, known));
	AP_TRY(ap_json_get_int(ctx, doc, root, "current_stage", 0, UINT32_MAX, &current));
	AP_TRY(ap_json_get_obj(ctx, doc, root, "parallel_strategy_item", &items));
	AP_TRY(ap_json_get_obj(ctx, doc, root, "parallel_layout_item", &layouts));
	item = AP_NEW_N(ctx->arena, struct ap_ckpt_item, ap_jv_count(items));
	layout = AP_NEW_N(ctx->arena, struct ap_ckpt_layout, ap_jv_count(layouts));
	*out = (struct ap_ckpt){.file = ap_json_file(doc), .current_stage = (uint32_t)current,
		.nitem = (uint32_t)ap_jv_count(items), .item = item,
		.nlayout = (uint32_t)ap_jv_count(layouts), .layout = layout};
	for (const struct ap_jv *v = ap_jv_first(items); v; v = ap_jv_next(v))
		if ((one = read_item(&r, v, item++)) != AP_OK)
			items_st = one;
	for (const struct ap_jv *v = ap_jv_first(layouts); v; v = ap_jv_next(v))
		if ((one = read_layout(&r, v, layout++)) != AP_OK)
			layouts_st = one;
	return layouts_st != AP_OK ? layouts_st : items_st;
}

/* ---- checks of values, for both forms ---- */

enum {
	MAX_AXES = 32, /* per dev_matrix, axes of size one included */
	MOST_SAVES = 64 /* a run saves once per compiled graph */
};

struct check {
	struct ap_ctx *ctx;
	struct ap_ckpt *c;
	enum ap_status st;
};

static void fault(struct check *k, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void fault(struct check *k, const char *check, const char *fmt, ...)
{
	struct ap_where where = {.file = k->c->file};
	va_list ap;

	va_start(ap, fmt);
	k->st = ap_diag_addv(k->ctx->diag, AP_ERROR, AP_MEANING, &where, check, fmt, ap);
	va_end(ap);
}

static const char *safe(struct check *k, const char *name)
{
	return ap_diag_name(k->ctx->diag, name);
}

static void check_vector(struct check *k, const struct ap_ckpt_item *item, uint32_t v)
{
	const struct ap_ckpt_vec *vec = &item->strategy[v];

	if (vec->n > AP_MAX_RANK)
		fault(k, "ckpt-strategy",
			"strategy \"%s\": vector %" PRIu32 " has %" PRIu32
			" dimensions; at most %d",
			safe(k, item->node_name), v, vec->n, AP_MAX_RANK);
	for (uint32_t i = 0; i < vec->n && i < AP_MAX_RANK; i++)
		if (vec->v[i] < 1 || vec->v[i] > AP_MAX_DEVICES)
			fault(k, "ckpt-strategy",
				"strategy \"%s\": vector %" PRIu32 " cuts dimension %" PRIu32
				" into %" PRId64 " parts",
				safe(k, item->node_name), v, i, vec->v[i]);
}

/* The product of dev_matrix; 0 after a message. */
static int64_t check_dev_matrix(struct check *k, const struct ap_ckpt_layout *l)
{
	int64_t product;

	if (l->dev_matrix.n < 1 || l->dev_matrix.n > MAX_AXES) {
		fault(k, "ckpt-layout", "layout \"%s\": dev_matrix of %" PRIu32 " axes; 1 to %d",
			safe(k, l->param_name), l->dev_matrix.n, MAX_AXES);
		return 0;
	}
	for (uint32_t i = 0; i < l->dev_matrix.n; i++)
		if (l->dev_matrix.v[i] < 1) {
			fault(k, "ckpt-layout",
				"layout \"%s\": dev_matrix holds an axis of size %" PRId64,
				safe(k, l->param_name), l->dev_matrix.v[i]);
			return 0;
		}
	if (!ap_product(l->dev_matrix.v, l->dev_matrix.n, &product) || product > AP_MAX_DEVICES) {
		fault(k, "ckpt-layout", "layout \"%s\": dev_matrix of more than %d devices",
			safe(k, l->param_name), AP_MAX_DEVICES);
		return 0;
	}
	return product;
}

static bool check_tensor_map(struct check *k, const struct ap_ckpt_layout *l)
{
	enum ap_status before = k->st;
	uint64_t used = 0;

	k->st = AP_OK;
	if (!l->nmap)
		fault(k, "ckpt-layout", "layout \"%s\": no tensor_map", safe(k, l->param_name));
	for (uint32_t i = 0; i < l->nmap; i++)
		for (uint32_t j = 0; j < l->tensor_map[i].n; j++) {
			int64_t m = l->tensor_map[i].v[j];

			if (m < -1 || m >= (int64_t)l->dev_matrix.n)
				fault(k, "ckpt-layout",
					"layout \"%s\": tensor_map names axis %" PRId64
					" of a dev_matrix of %" PRIu32 " axes",
					safe(k, l->param_name), m, l->dev_matrix.n);
			else if (m >= 0 && used >> m & 1)
				fault(k, "ckpt-layout",
					"layout \"%s\": tensor_map names axis %" PRId64 " twice",
					safe(k, l->param_name), m);
			else if (m >= 0)
				used |= UINT64_C(1) << m;
		}
	if (k->st != AP_OK)
		return false;
	k->st = before;
	return true;
}

static void check_layouts(struct check *k)
{
	const struct ap_ckpt_layout *first = NULL;
	int64_t devices = 0;

	for (uint32_t i = 0; i < k->c->nlayout; i++) {
		const struct ap_ckpt_layout *l = &k->c->layout[i];
		int64_t product = check_dev_matrix(k, l);
		const char *dash = strchr(l->param_name, '-');

		if (dash && strchr(dash + 1, '-'))
			fault(k, "ckpt-dash", "layout \"%s\": more than one '-' in the name",
				safe(k, l->param_name));
		if (l->weight_step < 0 || l->weight_size < -1 || !l->weight_step != !l->weight_size)
			fault(k, "ckpt-layout",
				"layout \"%s\": opt_weight_shard_step %" PRId32
				" and opt_weight_shard_size %" PRId32 " do not go together",
				safe(k, l->param_name), l->weight_step, l->weight_size);
		if (l->param_split_shape.n != l->indices_offset.n)
			fault(k, "ckpt-layout",
				"layout \"%s\": %" PRIu32 " values of param_split_shape, %" PRIu32
				" of indices_offset",
				safe(k, l->param_name), l->param_split_shape.n, l->indices_offset.n);
		if (!product)
			continue;
		if (check_tensor_map(k, l))
			for (uint32_t d = 0; l->has_shape && d < l->tensor_shape.n; d++) {
				int64_t parts = ap_ckpt_parts(l, d), size = l->tensor_shape.v[d];

				if (size < 1 || size % parts)
					fault(k, "ckpt-shape",
						"layout \"%s\": %" PRId64 " parts of dimension %" PRIu32
						", which is %" PRId64,
						safe(k, l->param_name), parts, d, size);
			}
		if (!first) {
			first = l;
			devices = product;
		} else if (product != devices) {
			fault(k, "ckpt-devices",
				"layout \"%s\" is for %" PRId64
				" devices, layout \"%s\" for %" PRId64,
				safe(k, first->param_name), devices, safe(k, l->param_name),
				product);
		}
	}
}

/* Checks that all layouts name a stage, or that none does and there is one stage. Reports the first
 * fault. */
static void check_merged(struct check *k)
{
	const struct ap_ckpt *c = k->c;
	bool merged = ap_ckpt_is_merged(c);
	uint32_t stage;

	for (uint32_t i = 1; i < c->nlayout && k->st == AP_OK; i++)
		if (ap_ckpt_name_stage(c->layout[i].param_name, &stage) != merged)
			fault(k, "ckpt-stage", "layout \"%s\" names %s pipeline stage, layout \"%s\" %s",
				safe(k, c->layout[0].param_name), merged ? "a" : "no",
				safe(k, c->layout[i].param_name), merged ? "none" : "one");
	for (uint32_t i = 1; i < c->nitem && c->nlayout && !merged && k->st == AP_OK; i++)
		if (c->item[i].stage != c->item[0].stage)
			fault(k, "ckpt-stage", "holds operators of stages %" PRIu32 " and %" PRIu32
				", and layouts that name no stage",
				c->item[0].stage, c->item[i].stage);
}

/* Sorts items and layouts, and checks all values that can be checked without a graph. */
static enum ap_status settle(struct ap_ctx *ctx, struct ap_ckpt *c)
{
	struct check k = {.ctx = ctx, .c = c};

	ap_ckpt_sort(ctx, c);
	/* in a merged file, items of different stages may have equal names */
	for (uint32_t i = 1; i < c->nitem; i++)
		if (!ap_ckpt_compare_items(&c->item[i - 1], &c->item[i]))
			fault(&k, "ckpt-duplicate", "strategy \"%s\" is there twice",
				safe(&k, c->item[i].node_name));
	for (uint32_t i = 1; i < c->nlayout; i++)
		if (!ap_ckpt_compare_layouts(&c->layout[i - 1], &c->layout[i]))
			fault(&k, "ckpt-duplicate", "layout \"%s\" is there twice",
				safe(&k, c->layout[i].param_name));
	if (c->current_stage > INT32_MAX)
		fault(&k, "ckpt-stage", "current_stage %" PRIu32 " is out of range",
			c->current_stage);
	else if (c->current_stage > MOST_SAVES)
		fault(&k, "ckpt-stage", "current_stage is %" PRIu32 "; MindSpore counts there how often it "
			"has saved strategies, from 1 on", c->current_stage);
	for (uint32_t i = 0; i < c->nitem; i++) {
		const struct ap_ckpt_item *item = &c->item[i];

		if (item->stage >= AP_MAX_DEVICES)
			fault(&k, "ckpt-stage", "strategy \"%s\": stage %" PRIu32 " is out of range",
				safe(&k, item->node_name), item->stage);
		for (uint32_t v = 0; v < item->n; v++)
			check_vector(&k, item, v);
	}
	check_layouts(&k);
	AP_TRY(k.st);
	check_merged(&k);
	AP_TRY(k.st);
	return ap_ckpt_check_layouts(ctx, c);
}

/* Does the text begin like a JSON object? No protobuf checkpoint does. */
static bool looks_like_json(const char *bytes, size_t len)
{
	size_t i = 0;

	if (len >= 3 && !memcmp(bytes, "\xEF\xBB\xBF", 3))
		i = 3;
	while (i < len && strchr(" \t\r\n", bytes[i]) && bytes[i])
		i++;
	return i < len && bytes[i] == '{';
}

enum ap_status ap_ckpt_read(struct ap_ctx *ctx, const char *file, const char *bytes, size_t len,
	bool json, struct ap_ckpt *out)
{
	struct ap_where where = {.file = file};

	if (!len)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL, "empty");
	if (!json && looks_like_json(bytes, len))
		return ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
			"is JSON, but its name does not end in .json, so MindSpore would take it "
			"for protobuf");
	AP_TRY(json ? read_json(ctx, file, bytes, len, out)
		    : ap_ckpt_pb_parse(ctx, file, bytes, len, out));
	return settle(ctx, out);
}

enum ap_status ap_ckpt_check_empty(struct ap_ctx *ctx, const char *file, const struct ap_ckpt *c)
{
	struct ap_where where = {.file = file};

	for (uint32_t i = 0; i < c->nitem; i++)
		if (c->item[i].n == 0)
			AP_TRY(ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &where, "ckpt-strategy",
				"strategy \"%s\" holds no vectors; without a script that gives the operator "
				"layouts MindSpore does not load it", ap_diag_name(ctx->diag,
				c->item[i].node_name)));
	if (c->nitem && c->nlayout)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_WARNING, AP_OK, &where, "ckpt-empty",
		"holds no operator with a trainable parameter; MindSpore's tools refuse such a file");
}
