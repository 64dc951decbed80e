/* SPDX-License-Identifier: Apache-2.0 */
/* Reads tensors and operators from the document. */
#include "graph/again.h"
#include "graph/read.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/str.h"
#include "base/vec.h"
#include "rule/attr.h"

#define MAX_EXTENT INT32_MAX

static const char *const top_keys[] = {"schema", "name", "inputs", "parameters", "constants",
	"operators", "outputs", "cells", "optimizer", NULL};

/* Keys that identify other kinds of files. */
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
	if (!ap_load_ok(l, ap_json_ints(l->ctx, l->doc, arr, INT64_MIN, INT64_MAX, &dim, &n))) {
		t->sound = false;
		return;
	}
	if (n > AP_MAX_RANK) {
		t->sound = false;
		ap_load_say(l, AP_CHECK_SHAPE_RANK, arr, NULL,
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
		ap_load_say(l, AP_CHECK_SHAPE_EXTENT, ap_load_element(arr, i), NULL,
			"dimension %zu of tensor \"%s\" is %" PRId64 "; %s", i, ap_load_name(l, t->t.name),
			dim[i], dim[i] == -1 ? "dynamic shapes are not supported"
			: "a length of 1 to 2147483647 is expected");
	}
	if (t->sound)
		t->said.rank = (uint8_t)n;
}

/* Reads the type under a key; AP_DTYPE_COUNT if there is none. */
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

/* Reads name, shape and type of a tensor's object. */
static void load_read_tensor(struct ap_load *l, const struct ap_jv *v, enum ap_tensor_kind kind,
	ap_id node, uint32_t result)
{
	static const char *const keys[] = {"batch_dim", "name", "shape", "dtype", "trainable",
		"layerwise_parallel", "parallel_optimizer", "comm_fusion", "read_as", NULL};
	static const char *const flags[] = {"trainable", "layerwise_parallel", "parallel_optimizer",
		"comm_fusion", "read_as"};
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
		ap_load_ok(l, ap_json_known(l->ctx, l->doc, v, kind == AP_TENSOR_INPUT ? keys : keys + 1));
		read_shape(l, v, required, &t);
		t.said.dtype = read_type(l, v, "dtype", required, &t);
		if (kind == AP_TENSOR_INPUT)
			ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "batch_dim", 0, INT32_MAX,
				&t.batch_dim));
		if (kind == AP_TENSOR_PARAM) {
			read_read_as(l, v, &t);
			read_flags(l, v, &t.t);
		} else {
			for (size_t i = 0; i < AP_COUNT(flags); i++)
				if (ap_jv_get(v, flags[i]))
					ap_load_say(l, AP_CHECK_PARAM_FLAG, ap_jv_get(v, flags[i]), NULL,
						"tensor \"%s\" is no parameter; only parameters have \"%s\"",
						ap_load_name(l, t.t.name), flags[i]);
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
		load_read_tensor(l, v, kind, AP_NONE, 0);
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

static const char *const op_keys[] = {"name", "type", "inputs", "outputs", "attrs", "cell",
	"instance", "in_strategy", "out_strategy", "stage", "segment", "recompute", "cross_batch", "fusion",
	"time_s", "after", NULL};

static bool read_vector(struct ap_load *l, const struct ap_jv *v, uint8_t *rank, int32_t *cut,
	const char *oper)
{
	int64_t *num;
	size_t n;

	if (ap_jv_type(v) != AP_JARRAY) {
		ap_load_say(l, AP_CHECK_KEY_TYPE, v, oper, "expected an array of integers");
		return false;
	}
	if (!ap_load_ok(l, ap_json_ints(l->ctx, l->doc, v, INT32_MIN, INT32_MAX, &num, &n)))
		return false;
	if (n > AP_MAX_RANK) {
		ap_load_say(l, AP_CHECK_PIN_LENGTH, v, oper, "%zu numbers; at most %d are expected",
			n, AP_MAX_RANK);
		return false;
	}
	*rank = (uint8_t)n;
	for (size_t i = 0; i < n; i++)
		cut[i] = (int32_t)num[i];
	return true;
}

static struct ap_pin read_pin(struct ap_load *l, const struct ap_jv *op, const char *key,
	const char *oper)
{
	const struct ap_jv *arr = NULL;
	struct ap_pin pin = {0};
	uint32_t i = 0;

	if (!ap_load_ok(l, ap_json_opt_arr(l->ctx, l->doc, op, key, &arr)) || !arr)
		return pin;
	pin.v = ap_arena_alloc(l->ctx->arena, ap_jv_count(arr), sizeof *pin.v);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), i++)
		if (!read_vector(l, v, &pin.v[i].rank, pin.v[i].cut, oper))
			return (struct ap_pin){0};
	if (i == 0)
		ap_load_say(l, AP_CHECK_PIN_LENGTH, arr, oper,
			"no vectors; one for each operand is expected");
	pin.n = i;
	return pin;
}

static void read_options(struct ap_load *l, const struct ap_jv *v, struct ap_node *n)
{
	int64_t stage = -1, segment = -1, fusion = -1;
	bool recompute = false;
	static const char *const keys[] = {"forward", "backward", "share", NULL};
	const struct ap_jv *t = NULL;

	ap_load_ok(l, ap_json_opt_str(l->ctx, l->doc, v, "cell", &n->cell));
	ap_load_ok(l, ap_json_opt_str(l->ctx, l->doc, v, "instance", &n->instance));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "stage", 0, INT32_MAX, &stage));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "segment", 0, INT32_MAX, &segment));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "fusion", 0, INT32_MAX, &fusion));
	ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, v, "recompute", &recompute));
	ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, v, "cross_batch", &n->cross_batch));
	n->recompute = (int8_t)(ap_jv_get(v, "recompute") ? recompute : -1);
	n->stage = (int32_t)stage;
	n->segment = (int32_t)segment;
	n->peer = -1;
	n->in_cell = n->recompute_cell = AP_NONE;
	n->fusion = (int32_t)fusion;
	n->in_pin = read_pin(l, v, "in_strategy", n->name);
	n->out_pin = read_pin(l, v, "out_strategy", n->name);
	n->measured_share = 1;
	if (!ap_load_ok(l, ap_json_opt_obj(l->ctx, l->doc, v, "time_s", &t)) || !t)
		return;
	ap_load_ok(l, ap_json_known(l->ctx, l->doc, t, keys));
	n->measured = ap_load_ok(l, ap_json_get_num(l->ctx, l->doc, t, "forward", 0, 1e9,
		&n->measured_forward_s));
	ap_load_ok(l, ap_json_opt_num(l->ctx, l->doc, t, "backward", 0, 1e9,
		&n->measured_backward_s));
	ap_load_ok(l, ap_json_opt_num(l->ctx, l->doc, t, "share", 1e-9, 1, &n->measured_share));
}

static size_t count(const struct ap_jv *root, const char *key)
{
	const struct ap_jv *arr = ap_jv_get(root, key);

	return arr ? ap_jv_count(arr) : 0;
}

/* Reads names of operands; null is an omitted optional one. */
static bool read_operands(struct ap_load *l, const struct ap_jv *arr, struct ap_raw_node *n)
{
	size_t count = ap_jv_count(arr), at = 0;
	bool sound = true;

	if (count > AP_MAX_OPERAND) {
		ap_load_say(l, AP_CHECK_OPERATOR_INPUTS, arr, n->n.name,
			"%zu operands; at most %d are supported", count, AP_MAX_OPERAND);
		return false;
	}
	n->operand = AP_NEW_N(l->ctx->arena, const char *, count);
	n->slot = AP_NEW_N(l->ctx->arena, uint16_t, count);
	n->in = AP_NEW_N(l->ctx->arena, ap_id, count);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), at++) {
		if (ap_jv_type(v) == AP_JNULL)
			continue;
		if (ap_jv_type(v) != AP_JSTRING) {
			ap_load_say(l, AP_CHECK_KEY_TYPE, v, n->n.name,
				"expected the name of a tensor, or null for an operand left out");
			sound = false;
			continue;
		}
		n->slot[n->nin] = (uint16_t)at;
		n->operand[n->nin++] = ap_jv_str(v);
	}
	return sound;
}

/* Reads names of tensors that an operator runs behind. */
static void read_after(struct ap_load *l, const struct ap_jv *op, struct ap_raw_node *n)
{
	const struct ap_jv *arr = NULL;
	size_t count;

	if (!ap_load_ok(l, ap_json_opt_arr(l->ctx, l->doc, op, "after", &arr)) || !arr)
		return;
	count = ap_jv_count(arr);
	if (count > AP_MAX_OPERAND) {
		ap_load_say(l, AP_CHECK_OPERATOR_INPUTS, arr, n->n.name,
			"%zu tensors to run behind; at most %d are supported", count, AP_MAX_OPERAND);
		return;
	}
	n->after_name = AP_NEW_N(l->ctx->arena, const char *, count);
	n->after = AP_NEW_N(l->ctx->arena, ap_id, count);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v)) {
		if (ap_jv_type(v) == AP_JSTRING)
			n->after_name[n->nafter++] = ap_jv_str(v);
		else
			ap_load_say(l, AP_CHECK_KEY_TYPE, v, n->n.name, "expected the name of a tensor");
	}
}

static void read_results(struct ap_load *l, const struct ap_jv *arr, struct ap_raw_node *n)
{
	size_t count = ap_jv_count(arr);

	if (count == 0 || count > AP_MAX_OPERAND) {
		ap_load_say(l, AP_CHECK_OPERATOR_OUTPUTS, arr, n->n.name,
			"%zu results are declared; 1 to %d are expected", count, AP_MAX_OPERAND);
		return;
	}
	n->out = AP_NEW_N(l->ctx->arena, ap_id, count);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v), n->nout++) {
		n->out[n->nout] = (ap_id)l->tensors.n;
		load_read_tensor(l, v, AP_TENSOR_ACT, (ap_id)l->nodes.n, n->nout);
		n->sound &= l->tensors.v[l->tensors.n - 1].sound;
	}
}

static const char *const type_texts[] = {
	[AP_ATTR_INT] = "an integer",
	[AP_ATTR_FLOAT] = "a number",
	[AP_ATTR_BOOL] = "true or false",
	[AP_ATTR_STRING] = "a string",
	[AP_ATTR_INTS] = "an integer or an array of integers",
	[AP_ATTR_PAIR] = "an integer, an array of integers or two of one length",
};

static bool read_ints(struct ap_load *l, const struct ap_jv *v, struct ap_attr *a)
{
	size_t count = ap_jv_type(v) == AP_JARRAY ? ap_jv_count(v) : 1, i = 0;
	int64_t *list = AP_NEW_N(l->ctx->arena, int64_t, count);

	a->list = list;
	a->n = (uint32_t)count;
	if (ap_jv_type(v) != AP_JARRAY)
		return ap_jv_int(l->doc, v, &list[0]);
	for (const struct ap_jv *e = ap_jv_first(v); e; e = ap_jv_next(e))
		if (!ap_jv_int(l->doc, e, &list[i++]))
			return false;
	return true;
}

/* Reads [[1, 2], [0, 1]]. */
static bool read_pair(struct ap_load *l, const struct ap_jv *v, struct ap_attr *a)
{
	const struct ap_jv *half = ap_jv_first(v);
	struct ap_attr inner, outer;
	int64_t *list;

	a->type = AP_ATTR_INTS;
	if (ap_jv_type(v) != AP_JARRAY || !half || ap_jv_type(half) != AP_JARRAY)
		return read_ints(l, v, a);
	if (ap_jv_count(v) != 2 || !read_ints(l, half, &outer) ||
		!read_ints(l, ap_jv_next(half), &inner) || outer.n != inner.n)
		return false;
	list = AP_NEW_N(l->ctx->arena, int64_t, 2 * (size_t)outer.n);
	memcpy(list, outer.list, outer.n * sizeof *list);
	memcpy(list + outer.n, inner.list, inner.n * sizeof *list);
	a->list = list;
	a->n = 2 * outer.n;
	return true;
}

static bool read_value(struct ap_load *l, const struct ap_jv *v, struct ap_attr *a)
{
	switch (a->type) {
	case AP_ATTR_INT:
		if (!ap_jv_int(l->doc, v, &a->i))
			return false;
		a->f = (double)a->i;
		return true;
	case AP_ATTR_FLOAT:
		if (ap_jv_type(v) != AP_JNUMBER)
			return false;
		a->f = ap_jv_double(v);
		return true;
	case AP_ATTR_BOOL:
		if (ap_jv_type(v) != AP_JBOOL)
			return false;
		a->i = ap_jv_bool(v);
		return true;
	case AP_ATTR_STRING:
		if (ap_jv_type(v) != AP_JSTRING)
			return false;
		a->s = ap_jv_str(v);
		return true;
	case AP_ATTR_PAIR:
		return read_pair(l, v, a);
	case AP_ATTR_ANY:
		return true;
	default:
		return read_ints(l, v, a);
	}
}

static bool read_attr(struct ap_load *l, const struct ap_jv *v, const struct ap_node *op,
	struct ap_attr *a)
{
	enum ap_attr_type wanted;

	*a = (struct ap_attr){.name = ap_attr_find(op->type, ap_jv_key(v),
		&wanted)};
	if (!a->name) {
		const char *oper = op->name;
		const char *near = NULL;
		const char *name = ap_jv_key(v);
		int least = 3;

		for (size_t i = 0; ap_attr_at(i); i++) {
			int d = ap_str_distance(ap_attr_at(i), name, least - 1);

			if (d < least) {
				least = d;
				near = ap_attr_at(i);
			}
		}
		ap_load_say(l, AP_CHECK_ATTR_UNKNOWN, v, oper, "attribute \"%s\" is unknown%s%s%s",
			ap_load_name(l, ap_jv_key(v)), near ? "; did you mean \"" : "", near ? near : "",
			near ? "\"?" : "");
		return false;
	}
	a->type = wanted;
	if (ap_attr_get(&op->attrs, a->name)) {
		ap_load_say(l, AP_CHECK_ATTR_TYPE, v, op->name, "attribute %s is given twice, by "
			"two of its names", a->name);
		return false;
	}
	if (read_value(l, v, a))
		return true;
	ap_load_say(l, AP_CHECK_ATTR_TYPE, v, op->name, "attribute %s must be %s", ap_jv_key(v),
		type_texts[wanted]);
	return false;
}

/* Reads an operator. */
static void load_read_op(struct ap_load *l, const struct ap_jv *v)
{
	struct ap_raw_node n = {.at = v, .sound = true};
	struct ap_ctx *ctx = l->ctx;

	n.n.name = n.n.type = "";
	n.n.param = AP_NONE;
	if (!ap_load_ok(l, ap_json_get_str(ctx, l->doc, v, "name", &n.n.name)))
		n.sound = false;
	else if (!*n.n.name)
		ap_load_say(l, AP_CHECK_NAME_EMPTY, ap_jv_get(v, "name"), NULL,
			"the name of an operator is empty");
	if (ap_jv_type(v) == AP_JOBJECT) {
		const struct ap_jv *in = NULL, *out = NULL, *attrs = NULL;

		n.sound &= ap_load_ok(l, ap_json_get_str(ctx, l->doc, v, "type", &n.n.type));
		ap_load_ok(l, ap_json_known(ctx, l->doc, v, op_keys));
		if (!ap_load_ok(l, ap_json_get_arr(l->ctx, l->doc, v, "inputs", &in)) ||
			!read_operands(l, in, &n))
			n.sound = false;
		if (ap_load_ok(l, ap_json_get_arr(l->ctx, l->doc, v, "outputs", &out)))
			read_results(l, out, &n);
		if (!n.out) {
			n.sound = false;
			l->incomplete = true;
		}
		if (!ap_load_ok(l, ap_json_opt_obj(l->ctx, l->doc, v, "attrs", &attrs)))
			n.sound = false;
		if (attrs) {
			struct ap_attr *list = AP_NEW_N(ctx->arena, struct ap_attr, ap_jv_count(attrs));

			n.n.attrs.v = list;
			for (const struct ap_jv *a = ap_jv_first(attrs); a; a = ap_jv_next(a))
				n.n.attrs.n += read_attr(l, a, &n.n, &list[n.n.attrs.n]);
		}
		read_options(l, v, &n.n);
		read_after(l, v, &n);
	} else {
		l->incomplete = true;
	}
	if (!n.n.cell)
		n.n.cell = ap_graph_cell(ctx, n.n.name);
	AP_PUSH(ctx->scratch, l->nodes, n);
}

static void read_operators(struct ap_load *l, const struct ap_jv *root)
{
	const struct ap_jv *arr = NULL;

	if (!ap_load_ok(l, ap_json_get_arr(l->ctx, l->doc, root, "operators", &arr)))
		l->incomplete = true;
	if (!arr)
		return;
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v))
		load_read_op(l, v);
}

static void read_recompute(struct ap_load *l, const struct ap_jv *v, struct ap_cell *c)
{
	static const char *const keys[] = {"mp_comm_recompute", "parallel_optimizer_comm_recompute",
		"recompute_slice_activation", NULL};
	const struct ap_jv *r = ap_jv_get(v, "recompute");
	const char *bad;
	size_t len;

	if (!r)
		return;
	switch (ap_jv_type(r)) {
	case AP_JBOOL:
		c->recompute = ap_jv_bool(r);
		return;
	case AP_JSTRING:
		if (!ap_again_read(ap_jv_str(r), strlen(ap_jv_str(r)), &c->again, &bad, &len))
			ap_load_say(l, AP_CHECK_KEY_TYPE, r, NULL, "\"%s\" is nothing that layers recompute; "
				"expected words such as selective, mlp+layernorm or full",
				ap_diag_name(l->ctx->diag, ap_arena_strndup(l->ctx->arena, bad, len)));
		else if (!c->again)
			c->recompute = 0;
		return;
	case AP_JOBJECT:
		c->recompute = 1;
		ap_load_ok(l, ap_json_known(l->ctx, l->doc, r, keys));
		ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, r, keys[0], &c->mp_comm_recompute));
		ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, r, keys[1],
			&c->parallel_optimizer_comm_recompute));
		ap_load_ok(l, ap_json_opt_bool(l->ctx, l->doc, r, keys[2],
			&c->recompute_slice_activation));
		return;
	default:
		ap_load_say(l, AP_CHECK_KEY_TYPE, r, NULL,
			"expected a boolean, words for what its layers recompute, or an object of the "
			"arguments of Cell.recompute()");
	}
}

static void read_cell(struct ap_load *l, const struct ap_jv *v)
{
	static const char *const keys[] = {"name", "stage", "segment", "recompute", "comm_fusion", NULL};
	struct ap_raw_cell cell = {.at = v, .c = {.name = "", .recompute = -1,
		.mp_comm_recompute = true, .parent = AP_NONE}};
	int64_t stage = -1, segment = -1, fusion = -1;

	if (ap_load_ok(l, ap_json_get_str(l->ctx, l->doc, v, "name", &cell.c.name)) && !*cell.c.name)
		ap_load_say(l, AP_CHECK_NAME_EMPTY, ap_jv_get(v, "name"), NULL,
			"the name of a cell is empty");
	if (ap_jv_type(v) != AP_JOBJECT)
		return;
	ap_load_ok(l, ap_json_known(l->ctx, l->doc, v, keys));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "stage", 0, INT32_MAX, &stage));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "segment", 0, INT32_MAX, &segment));
	ap_load_ok(l, ap_json_opt_int(l->ctx, l->doc, v, "comm_fusion", 0, INT32_MAX, &fusion));
	read_recompute(l, v, &cell.c);
	cell.c.stage = (int32_t)stage;
	cell.c.segment = (int32_t)segment;
	cell.c.comm_fusion = (int32_t)fusion;
	AP_PUSH(l->ctx->scratch, l->cells, cell);
}

/* Reads settings of cells. */
static void load_read_cells(struct ap_load *l, const struct ap_jv *root)
{
	const struct ap_jv *arr = NULL;

	if (!ap_load_ok(l, ap_json_opt_arr(l->ctx, l->doc, root, "cells", &arr)) || !arr)
		return;
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v))
		read_cell(l, v);
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
	/* most operators have one result */
	AP_RESERVE(l->ctx->scratch, l->nodes, count(root, "operators"));
	AP_RESERVE(l->ctx->scratch, l->tensors, count(root, "inputs") +
		count(root, "parameters") + count(root, "constants") + count(root, "operators"));
	read_list(l, root, "inputs", AP_TENSOR_INPUT);
	read_list(l, root, "parameters", AP_TENSOR_PARAM);
	read_list(l, root, "constants", AP_TENSOR_CONST);
	read_operators(l, root);
	read_outputs(l, root);
	load_read_cells(l, root);
	return true;
}

void ap_load_place_cells(struct ap_load *l, struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node)
{
	struct ap_cell *cell = AP_NEW_N(l->ctx->arena, struct ap_cell, l->cells.n);
	struct ap_map *named = ap_map_create(l->ctx->arena);

	g->ncell = (uint32_t)l->cells.n;
	g->cell = cell;
	for (uint32_t c = 0; c < g->ncell; c++) {
		cell[c] = l->cells.v[c].c;
		ap_map_put_str(named, cell[c].name, NULL);
	}
	for (uint32_t c = 0; c < g->ncell; c++)
		cell[c].parent = ap_cell_around(named, cell[c].name);
	for (ap_id i = 0; g->ncell > 0 && i < g->nnode; i++) {
		ap_id c = node[i].in_cell = ap_cell_find(named, node[i].cell);

		while (c != AP_NONE && cell[c].recompute < 0) /* enclosing cells may set it */
			c = cell[c].parent;
		node[i].recompute_cell = c != AP_NONE && cell[c].recompute == 1 ? c : AP_NONE;
	}
	for (ap_id i = 0; g->ncell > 0 && i < g->ntensor; i++) {
		struct ap_tensor *t = &tensor[i];
		ap_id c;

		if (t->kind != AP_TENSOR_PARAM || t->comm_fusion >= 0 || t->owner.node == AP_NONE)
			continue;
		for (c = node[t->owner.node].in_cell; c != AP_NONE && cell[c].comm_fusion < 0;)
			c = cell[c].parent;
		if (c != AP_NONE)
			t->comm_fusion = cell[c].comm_fusion;
	}
}
