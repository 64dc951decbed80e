/* SPDX-License-Identifier: Apache-2.0 */
/* From the document to tensors and operators as they stand there. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/load.h"

#define MAX_EXTENT INT32_MAX

static const char *const top_keys[] = {"schema", "name", "inputs", "parameters", "constants",
	"operators", "outputs", "cells", "optimizer", NULL};

/* What another kind of file has at its top. */
static const struct {
	const char *key, *kind;
} others[] = {
	{"server_list", "rank table"},
	{"group_list", "rank table"},
	{"cluster_list", "rank table"},
	{"parallel_strategy_item", "strategy checkpoint"},
	{"nodes", "problem file"},
};

static bool check_schema(struct ap_load *l, const struct ap_jv *root)
{
	const struct ap_jv *v = ap_jv_get(root, "schema");

	for (size_t i = 0; !v && i < AP_COUNT(others); i++) {
		if (!ap_jv_get(root, others[i].key) || ap_jv_get(root, "operators"))
			continue;
		ap_load_say(l, AP_CHECK_SCHEMA, root, NULL,
			"this looks like a %s; an operator graph is expected", others[i].kind);
		return false;
	}
	if (v && ap_jv_type(v) == AP_JSTRING && strcmp(ap_jv_str(v), "autopar-graph/1") != 0) {
		ap_load_say(l, AP_CHECK_SCHEMA, v, NULL,
			"the schema is \"%s\"; supported: autopar-graph/1",
			ap_load_name(l, ap_jv_str(v)));
		return false;
	}
	return true;
}

static void read_extents(struct ap_load *l, const struct ap_jv *at, const int64_t *dim, size_t n,
	struct ap_raw_tensor *t)
{
	if (n > AP_MAX_RANK) {
		t->sound = false;
		ap_load_say(l, AP_CHECK_SHAPE_RANK, at, NULL,
			"tensor \"%s\" has %zu dimensions; at most %d are supported",
			ap_load_name(l, t->t.name), n, AP_MAX_RANK);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (dim[i] >= 1 && dim[i] <= MAX_EXTENT) {
			t->said.dim[i] = dim[i];
			continue;
		}
		t->sound = false;
		ap_load_say(l, AP_CHECK_SHAPE_EXTENT, ap_load_element(at, i), NULL,
			dim[i] == -1 ? "dimension %zu of tensor \"%s\" is %" PRId64
				"; dynamic shapes are not supported"
			: "dimension %zu of tensor \"%s\" is %" PRId64
				"; a length of 1 to 2147483647 is expected",
			i, ap_load_name(l, t->t.name), dim[i]);
	}
	if (t->sound)
		t->said.rank = (uint8_t)n;
}

static void read_shape(struct ap_load *l, const struct ap_jv *v, bool required,
	struct ap_raw_tensor *t)
{
	const struct ap_jv *arr = NULL;
	int64_t *dim;
	size_t n;

	if (!ap_load_ok(l, required ? ap_json_get_arr(l->ctx, l->doc, v, "shape", &arr)
				    : ap_json_opt_arr(l->ctx, l->doc, v, "shape", &arr)))
		t->sound = false;
	if (!arr)
		return;
	if (ap_load_ok(l, ap_json_ints(l->ctx, l->doc, arr, INT64_MIN, INT64_MAX, &dim, &n)))
		read_extents(l, arr, dim, n, t);
	else
		t->sound = false;
}

/* The type that key names; AP_DTYPE_COUNT where there is none. */
static enum ap_dtype read_type(struct ap_load *l, const struct ap_jv *v, const char *key, bool required,
	struct ap_raw_tensor *t)
{
	const char *name = NULL;
	enum ap_dtype type;

	if (!ap_load_ok(l, required ? ap_json_get_str(l->ctx, l->doc, v, key, &name)
				    : ap_json_opt_str(l->ctx, l->doc, v, key, &name)))
		t->sound = false;
	if (!name)
		return AP_DTYPE_COUNT;
	type = ap_dtype_find(name);
	if (type != AP_DTYPE_COUNT)
		return type;
	t->sound = false;
	ap_load_say(l, AP_CHECK_DTYPE_KNOWN, ap_jv_get(v, key), NULL,
		"the element type \"%s\" of tensor \"%s\" is unknown", ap_load_name(l, name),
		ap_load_name(l, t->t.name));
	return AP_DTYPE_COUNT;
}

static bool is_real(enum ap_dtype t)
{
	return ap_dtype_is_float(t) && !ap_dtype_is_complex(t);
}

static void read_read_as(struct ap_load *l, const struct ap_jv *v, struct ap_raw_tensor *t)
{
	enum ap_dtype type = read_type(l, v, "read_as", false, t), own = t->said.dtype;

	if (type == AP_DTYPE_COUNT || own == AP_DTYPE_COUNT)
		return;
	t->t.read_as = type;
	if (is_real(type) && is_real(own) && type != own)
		return;
	t->sound = false;
	ap_load_say(l, AP_CHECK_PARAM_READ, ap_jv_get(v, "read_as"), NULL,
		"parameter \"%s\" is %s and read as %s; expected %s", ap_load_name(l, t->t.name),
		ap_dtype_name(own), ap_dtype_name(type), is_real(own) ? "another floating type"
		: "that only of floating parameters");
}

static void read_flags(struct ap_load *l, const struct ap_jv *v, struct ap_tensor *t)
{
	struct ap_ctx *ctx = l->ctx;
	int64_t fusion = -1;

	t->trainable = t->parallel_optimizer = true;
	ap_load_ok(l, ap_json_opt_bool(ctx, l->doc, v, "trainable", &t->trainable));
	ap_load_ok(l, ap_json_opt_bool(ctx, l->doc, v, "layerwise_parallel",
		&t->layerwise_parallel));
	ap_load_ok(l, ap_json_opt_bool(ctx, l->doc, v, "parallel_optimizer",
		&t->parallel_optimizer));
	ap_load_ok(l, ap_json_opt_int(ctx, l->doc, v, "comm_fusion", 0, INT32_MAX, &fusion));
	t->comm_fusion = (int32_t)fusion;
}

static void refuse_flags(struct ap_load *l, const struct ap_jv *v, const char *name)
{
	static const char *const flags[] = {"trainable", "layerwise_parallel",
		"parallel_optimizer", "comm_fusion", "read_as"};

	for (size_t i = 0; i < AP_COUNT(flags); i++)
		if (ap_jv_get(v, flags[i]))
			ap_load_say(l, AP_CHECK_PARAM_FLAG, ap_jv_get(v, flags[i]), NULL,
				"tensor \"%s\" is no parameter; only parameters have \"%s\"",
				ap_load_name(l, name), flags[i]);
}

static void read_batch_dim(struct ap_load *l, const struct ap_jv *v, struct ap_raw_tensor *t)
{
	t->batch_dim = -1;
	if (t->t.kind == AP_TENSOR_INPUT && ap_jv_get(v, "batch_dim"))
		ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "batch_dim", 0, INT32_MAX,
			&t->batch_dim));
}

static enum ap_status known_keys(struct ap_load *l, const struct ap_jv *v,
	enum ap_tensor_kind kind)
{
	static const char *const input[] = {"name", "shape", "dtype", "batch_dim", "trainable",
		"layerwise_parallel", "parallel_optimizer", "comm_fusion", "read_as", NULL};
	static const char *const other[] = {"name", "shape", "dtype", "trainable",
		"layerwise_parallel", "parallel_optimizer", "comm_fusion", "read_as", NULL};

	return ap_json_known(l->ctx, l->doc, v, kind == AP_TENSOR_INPUT ? input : other);
}

void ap_load_read_tensor(struct ap_load *l, const struct ap_jv *v, enum ap_tensor_kind kind,
	ap_id node, uint32_t result)
{
	bool required = kind != AP_TENSOR_ACT;
	struct ap_raw_tensor t = {.at = v, .sound = true, .batch_dim = -1,
		.said = {AP_RANK_UNKNOWN, AP_DTYPE_COUNT, {0}}};

	t.t = (struct ap_tensor){.name = "", .kind = kind, .read_as = AP_DTYPE_COUNT, .comm_fusion = -1,
		.producer = node, .result = result};
	if (!ap_load_ok(l, ap_json_get_str(l->ctx, l->doc, v, "name", &t.t.name))) {
		t.sound = false;
		l->incomplete = true;
	} else if (!*t.t.name) {
		ap_load_say(l, AP_CHECK_NAME_EMPTY, ap_jv_get(v, "name"), NULL,
			"the name of a tensor is empty");
	}
	if (ap_jv_type(v) == AP_JOBJECT) {
		ap_load_ok(l, known_keys(l, v, kind));
		read_shape(l, v, required, &t);
		t.said.dtype = read_type(l, v, "dtype", required, &t);
		read_batch_dim(l, v, &t);
		if (kind == AP_TENSOR_PARAM) {
			read_read_as(l, v, &t);
			read_flags(l, v, &t.t);
		} else {
			refuse_flags(l, v, t.t.name);
		}
	}
	t.t.shape = t.said;
	if (!t.sound)
		t.t.shape.rank = AP_RANK_UNKNOWN;
	AP_PUSH(l->ctx->scratch, l->tensors, t);
}

static void read_list(struct ap_load *l, const struct ap_jv *root, const char *key,
	enum ap_tensor_kind kind)
{
	const struct ap_jv *arr = NULL;

	if (!ap_load_ok(l, ap_json_opt_arr(l->ctx, l->doc, root, key, &arr)))
		l->incomplete = true;
	if (!arr)
		return;
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v))
		ap_load_read_tensor(l, v, kind, AP_NONE, 0);
}

static void read_outputs(struct ap_load *l, const struct ap_jv *root)
{
	const struct ap_jv *arr = NULL;

	if (!ap_load_ok(l, ap_json_get_arr(l->ctx, l->doc, root, "outputs", &arr)))
		return;
	if (!ap_jv_first(arr))
		ap_load_say(l, AP_CHECK_OUTPUT_KNOWN, arr, NULL, "there are no outputs");
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v)) {
		if (ap_jv_type(v) == AP_JSTRING)
			AP_PUSH(l->ctx->arena, l->outputs, v);
		else
			ap_load_say(l, AP_CHECK_KEY_TYPE, v, NULL,
				"expected the name of a tensor");
	}
}

static void read_operators(struct ap_load *l, const struct ap_jv *root)
{
	const struct ap_jv *arr = NULL;

	if (!ap_load_ok(l, ap_json_get_arr(l->ctx, l->doc, root, "operators", &arr)))
		l->incomplete = true;
	if (!arr)
		return;
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v))
		ap_load_read_op(l, v);
}

static size_t count(const struct ap_jv *root, const char *key)
{
	const struct ap_jv *arr = ap_jv_get(root, key);

	return arr ? ap_jv_count(arr) : 0;
}

/* Room for what most graphs have: one result an operator. */
static void reserve(struct ap_load *l, const struct ap_jv *root)
{
	AP_RESERVE(l->ctx->scratch, l->nodes, count(root, "operators"));
	AP_RESERVE(l->ctx->scratch, l->tensors, count(root, "inputs") +
		count(root, "parameters") + count(root, "constants") + count(root, "operators"));
}

bool ap_load_read(struct ap_load *l)
{
	const struct ap_jv *root = ap_json_root(l->doc);
	const char *schema;

	if (ap_jv_type(root) == AP_JOBJECT && !check_schema(l, root))
		return false;
	if (!ap_load_ok(l, ap_json_get_str(l->ctx, l->doc, root, "schema", &schema)) &&
		ap_jv_type(root) != AP_JOBJECT)
		return false;
	ap_load_ok(l, ap_json_known(l->ctx, l->doc, root, top_keys));
	l->name = ap_json_file(l->doc);
	ap_load_ok(l, ap_json_opt_str(l->ctx, l->doc, root, "name", &l->name));
	ap_load_ok(l, ap_json_opt_str(l->ctx, l->doc, root, "optimizer", &l->optimizer));
	reserve(l, root);
	read_list(l, root, "inputs", AP_TENSOR_INPUT);
	read_list(l, root, "parameters", AP_TENSOR_PARAM);
	read_list(l, root, "constants", AP_TENSOR_CONST);
	read_operators(l, root);
	read_outputs(l, root);
	ap_load_read_cells(l, root);
	return true;
}
