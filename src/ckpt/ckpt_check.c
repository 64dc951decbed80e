/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms of a strategy checkpoint have in common: order, and the checks of the values. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "ckpt/ckpt_form.h"

enum {
	MAX_AXES = 32, /* of a dev_matrix, axes of size one included */
	MOST_SAVES = 64 /* a run saves once for each graph that it compiles */
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
	struct ap_str text;
	va_list ap;

	ap_str_init(&text, k->ctx->arena);
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	k->st = ap_diag_add(k->ctx->diag, AP_ERROR, AP_MEANING, &where, check, "%s", text.s);
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

static void check_item(struct check *k, const struct ap_ckpt_item *item)
{
	if (item->stage >= AP_MAX_DEVICES)
		fault(k, "ckpt-stage", "strategy \"%s\": stage %" PRIu32 " is out of range",
			safe(k, item->node_name), item->stage);
	for (uint32_t i = 0; i < item->n; i++)
		check_vector(k, item, i);
}

/* Product of the dev_matrix; 0 after a message. */
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

int64_t ap_ckpt_parts(const struct ap_ckpt_layout *l, uint32_t d)
{
	bool nested = l->nmap > 1;
	const struct ap_ckpt_vec *map = &l->tensor_map[nested ? d : 0];
	int64_t parts = 1;

	for (uint32_t j = nested ? 0 : d; j < (nested ? map->n : d + 1); j++)
		if (map->v[j] >= 0)
			parts *= l->dev_matrix.v[l->dev_matrix.n - 1 - map->v[j]];
	return parts;
}

uint32_t ap_ckpt_rank(const struct ap_ckpt_layout *l)
{
	uint32_t rank = 0;

	if (l->nmap <= 1)
		return l->nmap ? l->tensor_map->n : 0;
	while (rank < l->nmap && l->tensor_map[rank].n)
		rank++;
	return rank;
}

static void check_shape(struct check *k, const struct ap_ckpt_layout *l)
{
	for (uint32_t d = 0; l->has_shape && d < l->tensor_shape.n; d++) {
		int64_t parts = ap_ckpt_parts(l, d), size = l->tensor_shape.v[d];

		if (size < 1 || size % parts)
			fault(k, "ckpt-shape",
				"layout \"%s\": %" PRId64 " parts of dimension %" PRIu32
				", which is %" PRId64,
				safe(k, l->param_name), parts, d, size);
	}
}

static void check_rest(struct check *k, const struct ap_ckpt_layout *l)
{
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
}

static void check_layouts(struct check *k)
{
	const struct ap_ckpt_layout *first = NULL;
	int64_t devices = 0;

	for (uint32_t i = 0; i < k->c->nlayout; i++) {
		const struct ap_ckpt_layout *l = &k->c->layout[i];
		int64_t product = check_dev_matrix(k, l);

		check_rest(k, l);
		if (!product)
			continue;
		if (check_tensor_map(k, l))
			check_shape(k, l);
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

static int by_node_name(const void *a, const void *b)
{
	const struct ap_ckpt_item *x = a, *y = b;
	int order = strcmp(x->node_name, y->node_name);

	return order ? order : (x->stage > y->stage) - (x->stage < y->stage);
}

static int by_param_name(const void *a, const void *b)
{
	const struct ap_ckpt_layout *x = a, *y = b;

	return strcmp(x->param_name, y->param_name);
}

void ap_ckpt_sort(struct ap_ctx *ctx, struct ap_ckpt *c)
{
	struct ap_ckpt_item *item = ap_arena_memdup(ctx->arena, c->item, c->nitem * sizeof *item);
	struct ap_ckpt_layout *layout =
		ap_arena_memdup(ctx->arena, c->layout, c->nlayout * sizeof *layout);

	if (c->nitem)
		qsort(item, c->nitem, sizeof *item, by_node_name);
	if (c->nlayout)
		qsort(layout, c->nlayout, sizeof *layout, by_param_name);
	c->item = item;
	c->layout = layout;
}

/* Equal names of items are as they should be where a merged file holds several stages. */
static void check_doubles(struct check *k)
{
	const struct ap_ckpt *c = k->c;

	for (uint32_t i = 1; i < c->nitem; i++)
		if (!by_node_name(&c->item[i - 1], &c->item[i]))
			fault(k, "ckpt-duplicate", "strategy \"%s\" is there twice",
				safe(k, c->item[i].node_name));
	for (uint32_t i = 1; i < c->nlayout; i++)
		if (!by_param_name(&c->layout[i - 1], &c->layout[i]))
			fault(k, "ckpt-duplicate", "layout \"%s\" is there twice",
				safe(k, c->layout[i].param_name));
}

enum ap_status ap_ckpt_settle(struct ap_ctx *ctx, struct ap_ckpt *c)
{
	struct check k = {.ctx = ctx, .c = c};

	ap_ckpt_sort(ctx, c);
	check_doubles(&k);
	if (c->current_stage > INT32_MAX)
		fault(&k, "ckpt-stage", "current_stage %" PRIu32 " is out of range",
			c->current_stage);
	else if (c->current_stage > MOST_SAVES)
		fault(&k, "ckpt-stage", "current_stage is %" PRIu32 "; MindSpore counts there how often it "
			"has saved strategies, from 1 on", c->current_stage);
	for (uint32_t i = 0; i < c->nitem; i++)
		check_item(&k, &c->item[i]);
	check_layouts(&k);
	AP_TRY(k.st);
	AP_TRY(ap_ckpt_check_merged(ctx, c));
	return ap_ckpt_check_layouts(ctx, c);
}

const char *ap_ckpt_bare_name(const char *param_name)
{
	uint32_t stage;

	return ap_ckpt_name_stage(param_name, &stage) ? strchr(param_name, '-') + 1 : param_name;
}

bool ap_ckpt_looks_like_json(const char *bytes, size_t len)
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
	bool is_json = ap_ckpt_looks_like_json(bytes, len);

	if (!len)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL, "empty");
	if (is_json && !json)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL,
			"is JSON, but its name does not end in .json, so MindSpore would take it "
			"for protobuf");
	if (json)
		AP_TRY(ap_ckpt_json_parse(ctx, file, bytes, len, out));
	else
		AP_TRY(ap_ckpt_pb_parse(ctx, file, bytes, len, out));
	return ap_ckpt_settle(ctx, out);
}
