/* SPDX-License-Identifier: Apache-2.0 */
/* A plan file read back: operators with their collectives, redistributions, parameters. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "plan/terms.h"
#include "planfile/plan_read_parts.h"

struct field {
	const char *key;
	enum ap_jtype type;
	bool optional; /* plans of before have none */
};

static enum ap_status read_fields(struct ap_plan_reader *r, const struct ap_jv *obj,
	const struct field *known, size_t n, const char **field)
{
	const struct ap_jv *v;

	for (size_t i = 0; i < n; i++) {
		if (!known[i].key || (known[i].optional && !ap_jv_get(obj, known[i].key)))
			continue;
		AP_TRY(ap_plan_read_member(r, obj, known[i].key, known[i].type, &v));
		AP_TRY(ap_plan_read_json(r, v, &field[i]));
	}
	return AP_OK;
}

static enum ap_status read_names(struct ap_plan_reader *r, const struct ap_jv *obj, const char *key,
	uint32_t *n, const char *const **out)
{
	const struct ap_jv *list;
	const char **name;

	AP_TRY(ap_plan_read_member(r, obj, key, AP_JARRAY, &list));
	name = AP_NEW_N(r->ctx->arena, const char *, ap_jv_count(list));
	*n = 0;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(ap_plan_read_type(r, v, AP_JSTRING));
		name[(*n)++] = ap_jv_str(v);
	}
	*out = name;
	return AP_OK;
}

/* The pair [stride, size] of an axis. */
static enum ap_status read_axis(struct ap_plan_reader *r, const struct ap_jv *v, int64_t *size)
{
	int64_t *pair;
	size_t n;

	AP_TRY(ap_plan_read_type(r, v, AP_JARRAY));
	AP_TRY(ap_json_ints(r->ctx, r->doc, v, 0, INT32_MAX, &pair, &n));
	if (n != 2)
		return ap_plan_read_fault(r, v, "expected a stride and a size");
	*size = pair[1];
	return AP_OK;
}

static enum ap_status read_group(struct ap_plan_reader *r, const struct ap_jv *obj, int64_t *ranks)
{
	const struct ap_jv *axes;
	int64_t size = 0;

	*ranks = 1;
	AP_TRY(ap_plan_read_member(r, obj, "axes", AP_JARRAY, &axes));
	for (const struct ap_jv *v = ap_jv_first(axes); v; v = ap_jv_next(v)) {
		AP_TRY(read_axis(r, v, &size));
		if (!ap_mul(*ranks, size, ranks))
			return ap_plan_read_fault(r, axes, "expected fewer devices");
	}
	return AP_OK;
}

/* What happens in each micro-batch happens so often in a step. */
static enum ap_status per_step(struct ap_plan_reader *r, const struct ap_jv *v, bool each,
	int64_t *count, int64_t *bytes)
{
	*count = each ? r->micro_batches : 1;
	if (!ap_mul(*bytes, *count, bytes))
		return ap_plan_read_fault(r, v, "expected fewer bytes");
	return AP_OK;
}

static enum ap_status read_comm(struct ap_plan_reader *r, const struct ap_jv *v, bool once,
	struct ap_saved_comm *c)
{
	bool each = false;

	AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "kind", &c->kind));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "phase", &c->phase));
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "bytes", 0, INT64_MAX, &c->bytes));
	AP_TRY(read_group(r, v, &c->ranks));
	AP_TRY(ap_json_opt_bool(r->ctx, r->doc, v, "each_micro_batch", &each));
	each |= !once && strcmp(c->phase, "gradient") != 0 && strcmp(c->phase, "optimizer") != 0;
	return per_step(r, v, each, &c->count, &c->bytes);
}

static enum ap_status read_comms(struct ap_plan_reader *r, const struct ap_jv *oper,
	struct ap_saved_op *op)
{
	struct ap_saved_comm *comm;
	const struct ap_jv *list;
	bool once = false;

	AP_TRY(ap_json_opt_bool(r->ctx, r->doc, oper, "once", &once));
	AP_TRY(ap_plan_read_member(r, oper, "communications", AP_JARRAY, &list));
	comm = AP_NEW_N(r->ctx->arena, struct ap_saved_comm, ap_jv_count(list));
	op->comm = comm;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		AP_TRY(read_comm(r, v, once, &comm[op->ncomm++]));
	return AP_OK;
}

static enum ap_status read_strides(struct ap_plan_reader *r, const struct ap_jv *oper,
	const char **out)
{
	const struct ap_jv *list;
	struct ap_str text;
	int64_t stride;

	ap_str_init(&text, r->ctx->arena);
	AP_TRY(ap_plan_read_member(r, oper, "factors", AP_JARRAY, &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
		AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "stride", 0, INT32_MAX, &stride));
		ap_str_addf(&text, "%c%" PRId64, text.len ? ',' : '[', stride);
	}
	ap_str_add(&text, text.len ? "]" : "[]");
	*out = text.s;
	return AP_OK;
}

/* The factors' names and parts; none where one of them does not tell both. */
static enum ap_status read_factors(struct ap_plan_reader *r, const struct ap_jv *oper,
	struct ap_saved_op *op)
{
	const struct ap_jv *list = ap_jv_get(oper, "factors");
	struct ap_saved_factor *factor =
		AP_NEW_N(r->ctx->arena, struct ap_saved_factor, ap_jv_count(list));
	uint32_t n = 0;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const char *name = "";
		int64_t parts = 0;

		AP_TRY(ap_json_opt_str(r->ctx, r->doc, v, "factor", &name));
		AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "parts", 1, INT32_MAX, &parts));
		if (strlen(name) != 1 || !parts)
			return AP_OK;
		factor[n++] = (struct ap_saved_factor){*name, (int32_t)parts};
	}
	op->nfactor = n;
	op->factor = factor;
	return AP_OK;
}

/* Plans of before do not tell them. */
static enum ap_status read_results(struct ap_plan_reader *r, const struct ap_jv *oper,
	struct ap_saved_op *op)
{
	static const struct field fields[] = {
		{"out_shape", AP_JARRAY, true},
		{"out_dtype", AP_JARRAY, true},
	};
	const char *text[2] = {NULL, NULL};

	AP_TRY(read_fields(r, oper, fields, 2, text));
	op->out_shape = text[0];
	op->out_dtype = text[1];
	return AP_OK;
}

static const char *label_of(struct ap_ctx *ctx, const char *name, const char *cell)
{
	const char *last = ap_short_name(name);

	return last == name || !*cell ? name : ap_arena_printf(ctx->arena, "%s/%s", cell, last);
}

static enum ap_status read_operator(struct ap_plan_reader *r, const struct ap_jv *v)
{
	static const struct field fields[AP_SAVED_OP_FIELDS] = {
		[AP_SAVED_TYPE] = {"type", AP_JSTRING, false},
		[AP_SAVED_IN_STRATEGY] = {"in_strategy", AP_JARRAY, false},
		[AP_SAVED_OUT_STRATEGY] = {"out_strategy", AP_JARRAY, false},
		[AP_SAVED_STAGE] = {"stage", AP_JNUMBER, false},
		[AP_SAVED_SEGMENT] = {"segment", AP_JNUMBER, true},
		[AP_SAVED_RECOMPUTE] = {"recompute", AP_JBOOL, false},
	};
	struct ap_saved_op op = {0};
	const struct ap_jv *pinned;
	const char *cell;
	bool fresh;

	AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "name", &op.name));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "type", &op.type));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "cell", &cell));
	AP_TRY(read_fields(r, v, fields, AP_SAVED_OP_FIELDS, op.field));
	AP_TRY(read_strides(r, v, &op.field[AP_SAVED_STRIDES]));
	AP_TRY(read_factors(r, v, &op));
	AP_TRY(read_results(r, v, &op));
	AP_TRY(read_names(r, v, "inputs", &op.nin, &op.in));
	AP_TRY(read_names(r, v, "outputs", &op.nout, &op.out));
	AP_TRY(ap_plan_read_member(r, v, "in_checkpoint", AP_JBOOL, &pinned));
	AP_TRY(read_comms(r, v, &op));
	op.in_checkpoint = ap_jv_bool(pinned);
	op.label = label_of(r->ctx, op.name, cell);
	ap_map_put_str(r->oper, op.name, &fresh);
	if (!fresh)
		return ap_plan_read_fault(r, v, "an operator of this name is there already");
	AP_PUSH(r->ctx->arena, r->ops, op);
	return AP_OK;
}

enum ap_status ap_plan_read_operators(struct ap_plan_reader *r, const struct ap_jv *root)
{
	const struct ap_jv *list;

	AP_TRY(ap_plan_read_member(r, root, "operators", AP_JARRAY, &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		AP_TRY(read_operator(r, v));
	return AP_OK;
}

/* "AllGather over 8, Slice over 2" as a string of JSON. */
static enum ap_status read_steps(struct ap_plan_reader *r, const struct ap_jv *move,
	const char **out)
{
	const struct ap_jv *list, *axis;
	struct ap_str names, text;
	const char *kind;
	int64_t size = 0;
	struct ap_jw w;

	ap_str_init(&names, r->ctx->scratch);
	AP_TRY(ap_plan_read_member(r, move, "steps", AP_JARRAY, &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
		AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "kind", &kind));
		AP_TRY(ap_plan_read_member(r, v, "axis", AP_JARRAY, &axis));
		AP_TRY(read_axis(r, axis, &size));
		ap_str_addf(&names, "%s%s over %" PRId64, names.len ? ", " : "", kind, size);
	}
	ap_str_init(&text, r->ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	ap_jw_str(&w, names.s);
	*out = text.s;
	return AP_OK;
}

static enum ap_status read_move(struct ap_plan_reader *r, const struct ap_jv *v)
{
	static const struct field fields[AP_SAVED_MOVE_FIELDS] = {
		[AP_SAVED_FROM_LAYOUT] = {"from_layout", AP_JARRAY, false},
		[AP_SAVED_TO_LAYOUT] = {"to_layout", AP_JARRAY, false},
	};
	struct ap_saved_move m = {0};
	const struct ap_jv *to;
	int64_t bytes, count;

	AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
	AP_TRY(ap_plan_read_member(r, v, "to", AP_JSTRING, &to));
	m.to = ap_map_get_str(r->oper, ap_jv_str(to));
	if (m.to == AP_NONE)
		return ap_plan_read_fault(r, to, "is no operator of this plan");
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "operand", 0, INT32_MAX, &m.operand));
	if (m.operand >= r->ops.v[m.to].nin)
		return ap_plan_read_fault(r, v, "\"operand\" is none of this operator");
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "bytes", 0, INT64_MAX, &bytes));
	AP_TRY(per_step(r, v, true, &count, &bytes));
	AP_TRY(read_steps(r, v, &m.field[AP_SAVED_STEPS]));
	AP_TRY(read_fields(r, v, fields, AP_SAVED_MOVE_FIELDS, m.field));
	m.field[AP_SAVED_BYTES] = ap_arena_printf(r->ctx->arena, "%" PRId64, bytes);
	AP_PUSH(r->ctx->arena, r->moves, m);
	return AP_OK;
}

enum ap_status ap_plan_read_moves(struct ap_plan_reader *r, const struct ap_jv *root)
{
	struct ap_map *seen = ap_map_create(r->ctx->scratch);
	const struct ap_jv *list;
	bool fresh;

	AP_TRY(ap_plan_read_member(r, root, "redistributions", AP_JARRAY, &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		int64_t key[2];

		AP_TRY(read_move(r, v));
		key[0] = r->moves.v[r->moves.n - 1].to;
		key[1] = r->moves.v[r->moves.n - 1].operand;
		ap_map_put(seen, key, sizeof key, &fresh);
		if (!fresh)
			return ap_plan_read_fault(r, v, "this operand is redistributed already");
	}
	return AP_OK;
}

/* Parts of each dimension, from its whole and its slice. */
static enum ap_status read_parts(struct ap_plan_reader *r, const struct ap_jv *v, const char **out)
{
	const struct ap_jv *list;
	int64_t *whole, *slice;
	size_t nwhole, nslice;
	struct ap_str text;

	AP_TRY(ap_plan_read_member(r, v, "tensor_shape", AP_JARRAY, &list));
	AP_TRY(ap_json_ints(r->ctx, r->doc, list, 1, INT64_MAX, &whole, &nwhole));
	AP_TRY(ap_plan_read_member(r, v, "slice_shape", AP_JARRAY, &list));
	AP_TRY(ap_json_ints(r->ctx, r->doc, list, 1, INT64_MAX, &slice, &nslice));
	if (nwhole != nslice)
		return ap_plan_read_fault(r, list, "expected as many dimensions as in tensor_shape");
	ap_str_init(&text, r->ctx->arena);
	ap_str_addc(&text, '[');
	for (size_t d = 0; d < nwhole; d++)
		ap_str_addf(&text, "%s%" PRId64, d ? "," : "", whole[d] / slice[d]);
	ap_str_addc(&text, ']');
	*out = text.s;
	return AP_OK;
}

static enum ap_status read_param(struct ap_plan_reader *r, const struct ap_jv *v)
{
	static const struct field fields[AP_SAVED_PARAM_FIELDS] = {
		[AP_SAVED_DTYPE] = {"dtype", AP_JSTRING, false},
		[AP_SAVED_READ_AS] = {"read_as", AP_JSTRING, true},
		[AP_SAVED_TRAINABLE] = {"trainable", AP_JBOOL, false},
		[AP_SAVED_TENSOR_SHAPE] = {"tensor_shape", AP_JARRAY, false},
		[AP_SAVED_SLICE_SHAPE] = {"slice_shape", AP_JARRAY, false},
		[AP_SAVED_DEV_MATRIX] = {"dev_matrix", AP_JARRAY, false},
		[AP_SAVED_TENSOR_MAP] = {"tensor_map", AP_JARRAY, false},
		[AP_SAVED_SHARDS] = {"optimizer_shards", AP_JNUMBER, false},
		[AP_SAVED_SHARD_STEP] = {"opt_weight_shard_step", AP_JNUMBER, false},
		[AP_SAVED_SHARD_SIZE] = {"opt_weight_shard_size", AP_JNUMBER, false},
		[AP_SAVED_PARAM_STAGE] = {"stage", AP_JNUMBER, true},
	};
	struct ap_saved_param p = {0};

	AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "name", &p.name));
	AP_TRY(read_fields(r, v, fields, AP_SAVED_PARAM_FIELDS, p.field));
	AP_TRY(read_parts(r, v, &p.field[AP_SAVED_PARTS]));
	p.trainable = !strcmp(p.field[AP_SAVED_TRAINABLE], "true");
	AP_PUSH(r->ctx->arena, r->params, p);
	return AP_OK;
}

enum ap_status ap_plan_read_params(struct ap_plan_reader *r, const struct ap_jv *root)
{
	struct ap_map *seen = ap_map_create(r->ctx->scratch);
	const struct ap_jv *list;
	bool fresh;

	AP_TRY(ap_plan_read_member(r, root, "parameters", AP_JARRAY, &list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(read_param(r, v));
		ap_map_put_str(seen, r->params.v[r->params.n - 1].name, &fresh);
		if (!fresh)
			return ap_plan_read_fault(r, v, "a parameter of this name is there already");
	}
	return AP_OK;
}
