/* SPDX-License-Identifier: Apache-2.0 */
#include "planfile/plan_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "ckpt/ckpt.h"
#include "plan/terms.h"
#include "planfile/plan_form.h"

struct reader {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	int64_t micro_batches;
	struct ap_map *oper; /* operator names; ids are indices */
	uint32_t ninput;
	const char *const *input;
	const char *decided, *given;
	AP_VEC(int64_t) first_ranks; /* of stages */
	AP_VEC(struct ap_saved_fact) facts;
	AP_VEC(struct ap_saved_op) ops;
	AP_VEC(struct ap_saved_param) params;
	AP_VEC(struct ap_saved_move) moves;
};

enum { MOST_NESTED = 3, MOST_COMMS = 1024 /* per operator */ };

static enum ap_status fault(struct reader *r, const struct ap_jv *v, const char *text)
{
	return ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL, "plan-file", "%s",
		text);
}

/* Returns AP_MEANING if v has another type. */
static enum ap_status expect(struct reader *r, const struct ap_jv *v, enum ap_jtype type)
{
	static const char *const expected[] = {
		[AP_JNULL] = "expected null",
		[AP_JBOOL] = "expected true or false",
		[AP_JNUMBER] = "expected a number",
		[AP_JSTRING] = "expected a string",
		[AP_JARRAY] = "expected an array",
		[AP_JOBJECT] = "expected an object",
	};

	return ap_jv_type(v) == type ? AP_OK : fault(r, v, expected[type]);
}

/* Gets a required member of this type. */
static enum ap_status member(struct reader *r, const struct ap_jv *obj, const char *key,
	enum ap_jtype type, const struct ap_jv **out)
{
	*out = ap_jv_get(obj, key);
	if (!*out)
		return ap_json_report(r->ctx, r->doc, obj, AP_ERROR, AP_MEANING, NULL, "key-missing",
			"no key \"%s\"", key);
	return expect(r, *out, type);
}

/* Reads a value as compact JSON, nested at most three deep. */
static enum ap_status read_json(struct reader *r, const struct ap_jv *v, const char **out)
{
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, r->ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	if (!ap_jv_is_shallow(v, MOST_NESTED))
		return fault(r, v, "expected a plain value");
	ap_jw_value(&w, r->doc, v);
	*out = text.s;
	return AP_OK;
}

static enum ap_status add_fact(struct reader *r, const char *section, const char *prefix,
	const char *key, const struct ap_jv *v)
{
	struct ap_saved_fact fact = {.section = section, .key = key};

	AP_TRY(read_json(r, v, &fact.json));
	fact.is_number = ap_jv_type(v) == AP_JNUMBER;
	fact.number = fact.is_number ? ap_jv_double(v) : 0;
	if (!fact.is_number || !ap_jv_int(r->doc, v, &fact.integer))
		fact.integer = 0;
	fact.text = ap_jv_type(v) == AP_JSTRING ? ap_jv_str(v) : NULL;
	if (*prefix)
		fact.key = ap_arena_printf(r->ctx->arena, "%s.%s", prefix, key);
	AP_PUSH(r->ctx->arena, r->facts, fact);
	return AP_OK;
}

/* Adds every member of obj but `except` as a fact. What a search found out about the prediction is a fact of
 * the search. */
static enum ap_status add_facts(struct reader *r, const char *section, const char *prefix,
	const struct ap_jv *obj, const char *except)
{
	bool predicts = !strcmp(section, "prediction");

	for (const struct ap_jv *v = ap_jv_first(obj); v; v = ap_jv_next(v)) {
		bool found = predicts && ap_plan_key_searched(section, ap_jv_key(v));

		if (strcmp(ap_jv_key(v), except) != 0)
			AP_TRY(add_fact(r, found ? "search" : section, prefix, ap_jv_key(v), v));
	}
	return AP_OK;
}

static enum ap_status read_names(struct reader *r, const struct ap_jv *obj, const char *key,
	uint32_t *n, const char *const **out)
{
	const struct ap_jv *list;
	const char **name;

	AP_TRY(member(r, obj, key, AP_JARRAY, &list));
	name = AP_NEW_N(r->ctx->arena, const char *, ap_jv_count(list));
	*n = 0;
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(expect(r, v, AP_JSTRING));
		name[(*n)++] = ap_jv_str(v);
	}
	*out = name;
	return AP_OK;
}

/* Required members of sections. */
static const struct need {
	const char *section, *key;
	enum ap_jtype type;
} needs[] = {
	{"graph", "name", AP_JSTRING},
	{"graph", "inputs", AP_JARRAY},
	{"graph", "outputs", AP_JARRAY},
	{"machine", "devices", AP_JNUMBER},
	{"machine", "chip", AP_JSTRING},
	{"machine", "capacity_bytes", AP_JNUMBER},
	{"machine", "levels", AP_JARRAY},
	{"search", "mode", AP_JSTRING},
	{"search", "status", AP_JSTRING},
	{"search", "complete", AP_JBOOL},
	{"search", "objective_s", AP_JNUMBER},
	{"search", "lower_bound_s", AP_JNUMBER},
	{"search", "gap", AP_JNUMBER},
	{"prediction", "step_time_s", AP_JNUMBER},
	{"prediction", "compute_s", AP_JNUMBER},
	{"prediction", "communication_s", AP_JNUMBER},
	{"prediction", "exposed_communication_s", AP_JNUMBER},
	{"prediction", "memory", AP_JARRAY},
};

static enum ap_status read_section(struct reader *r, const struct ap_jv *root,
	const char *section, const char *except, const struct ap_jv **out)
{
	const struct ap_jv *v;

	AP_TRY(member(r, root, section, AP_JOBJECT, out));
	for (size_t i = 0; i < AP_COUNT(needs); i++)
		if (!strcmp(needs[i].section, section))
			AP_TRY(member(r, *out, needs[i].key, needs[i].type, &v));
	return add_facts(r, section, "", *out, except);
}

/* Adds the hash of each input; its name does not count. */
static enum ap_status read_inputs(struct reader *r, const struct ap_jv *root)
{
	const struct ap_jv *inputs, *hash;

	AP_TRY(member(r, root, "inputs", AP_JOBJECT, &inputs));
	for (const struct ap_jv *v = ap_jv_first(inputs); v; v = ap_jv_next(v)) {
		if (!strcmp(ap_jv_key(v), "settings")) /* compared one by one */
			continue;
		hash = v;
		if (ap_jv_type(v) != AP_JNULL) {
			AP_TRY(expect(r, v, AP_JOBJECT));
			AP_TRY(member(r, v, "sha256", AP_JSTRING, &hash));
		}
		AP_TRY(add_fact(r, "inputs", "", ap_jv_key(v), hash));
	}
	return AP_OK;
}

/* Adds the members of named objects as "name.key". */
static enum ap_status read_named(struct reader *r, const char *section,
	const struct ap_jv *list)
{
	const struct ap_jv *name;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(expect(r, v, AP_JOBJECT));
		AP_TRY(member(r, v, "name", AP_JSTRING, &name));
		AP_TRY(add_facts(r, section, ap_jv_str(name), v, "name"));
	}
	return AP_OK;
}

/* Adds memory figures, as "stage 1.key" if there are several stages. */
static enum ap_status read_memory(struct reader *r, const struct ap_jv *list)
{
	const struct ap_jv *total;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const char *prefix = "";
		int64_t stage;

		AP_TRY(expect(r, v, AP_JOBJECT));
		AP_TRY(member(r, v, "total_bytes", AP_JNUMBER, &total));
		AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "stage", 0, INT32_MAX, &stage));
		if (ap_jv_count(list) > 1)
			prefix = ap_arena_printf(r->ctx->arena, "stage %" PRId64, stage);
		AP_TRY(add_facts(r, "memory", prefix, v, "stage"));
	}
	return AP_OK;
}

/* Adds figures of stages; those of a single stage equal figures of the whole. */
static enum ap_status read_stages(struct reader *r, const struct ap_jv *root)
{
	const struct ap_jv *stages;

	AP_TRY(member(r, root, "stages", AP_JARRAY, &stages));
	if (!ap_jv_first(stages))
		return fault(r, stages, "expected a stage at least");
	for (const struct ap_jv *v = ap_jv_first(stages); v; v = ap_jv_next(v)) {
		const char *prefix;
		int64_t id, first_rank = 0;

		AP_TRY(expect(r, v, AP_JOBJECT));
		AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "first_rank", 0, INT32_MAX, &first_rank));
		AP_PUSH(r->ctx->arena, r->first_ranks, first_rank);
		AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "micro_batches", 1, INT32_MAX, &r->micro_batches));
		if (ap_jv_count(stages) == 1)
			break;
		AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "id", 0, INT32_MAX, &id));
		prefix = ap_arena_printf(r->ctx->arena, "stage %" PRId64, id);
		for (const struct ap_jv *m = ap_jv_first(v); m; m = ap_jv_next(m))
			if (ap_jv_type(m) == AP_JNUMBER && strcmp(ap_jv_key(m), "id") != 0)
				AP_TRY(add_fact(r, "stages", prefix, ap_jv_key(m), m));
	}
	return AP_OK;
}

/* Reads a section that is null if unused, and missing in older plans. */
static enum ap_status read_optional(struct reader *r, const struct ap_jv *root, const char *section,
	const char *except)
{
	const struct ap_jv *v = ap_jv_get(root, section);

	if (!v || ap_jv_type(v) == AP_JNULL)
		return AP_OK;
	AP_TRY(expect(r, v, AP_JOBJECT));
	return add_facts(r, section, "", v, except);
}

/* Only the words: what was found beside them belongs to the search, not to the plan. */
static enum ap_status read_joint(struct reader *r, const struct ap_jv *root)
{
	const struct ap_jv *joint = ap_jv_get(root, "joint"), *words;

	if (!joint || ap_jv_type(joint) == AP_JNULL)
		return AP_OK;
	AP_TRY(expect(r, joint, AP_JOBJECT));
	AP_TRY(member(r, joint, "decided", AP_JSTRING, &words));
	r->decided = ap_jv_str(words);
	AP_TRY(member(r, joint, "given", AP_JSTRING, &words));
	r->given = ap_jv_str(words);
	return AP_OK;
}

static enum ap_status read_facts(struct reader *r, const struct ap_jv *root)
{
	const struct ap_jv *tool, *section, *list;

	AP_TRY(member(r, root, "tool", AP_JOBJECT, &tool));
	AP_TRY(member(r, tool, "version", AP_JSTRING, &section));
	AP_TRY(add_fact(r, "tool", "", "version", section));
	AP_TRY(read_inputs(r, root));
	AP_TRY(read_section(r, root, "settings", "", &section));
	AP_TRY(read_section(r, root, "graph", "", &section));
	AP_TRY(read_names(r, section, "inputs", &r->ninput, &r->input));
	AP_TRY(read_section(r, root, "machine", "levels", &section));
	AP_TRY(read_named(r, "machine", ap_jv_get(section, "levels")));
	AP_TRY(read_section(r, root, "search", "", &section));
	AP_TRY(read_section(r, root, "prediction", "memory", &section));
	AP_TRY(read_memory(r, ap_jv_get(section, "memory")));
	AP_TRY(member(r, root, "baselines", AP_JARRAY, &list));
	AP_TRY(read_named(r, "baselines", list));
	AP_TRY(read_optional(r, root, "route", "differs")); /* "differs" follows from strategies */
	AP_TRY(read_optional(r, root, "pipeline", ""));
	AP_TRY(read_optional(r, root, "recompute", ""));
	AP_TRY(read_joint(r, root));
	return read_stages(r, root);
}

struct field {
	const char *key;
	enum ap_jtype type;
	bool optional; /* missing in older plans */
};

static enum ap_status read_fields(struct reader *r, const struct ap_jv *obj,
	const struct field *known, size_t n, const char **field)
{
	const struct ap_jv *v;

	for (size_t i = 0; i < n; i++) {
		if (known[i].type == AP_JNULL || (known[i].optional && !ap_jv_get(obj, known[i].key)))
			continue;
		AP_TRY(member(r, obj, known[i].key, known[i].type, &v));
		AP_TRY(read_json(r, v, &field[i]));
	}
	return AP_OK;
}

/* Reads an axis [stride, size]. */
static enum ap_status read_axis(struct reader *r, const struct ap_jv *v, int64_t *size)
{
	int64_t *pair;
	size_t n;

	AP_TRY(expect(r, v, AP_JARRAY));
	AP_TRY(ap_json_ints(r->ctx, r->doc, v, 0, INT32_MAX, &pair, &n));
	if (n != 2)
		return fault(r, v, "expected a stride and a size");
	*size = pair[1];
	return AP_OK;
}

/* Reads collectives; the axes give the size of the group. */
static enum ap_status read_comms(struct reader *r, const struct ap_jv *oper,
	struct ap_saved_op *op)
{
	const struct ap_jv *list, *axes;
	struct ap_saved_comm *c;
	int64_t size = 0, all;
	bool once = false;

	AP_TRY(ap_json_opt_bool(r->ctx, r->doc, oper, "once", &once));
	AP_TRY(member(r, oper, "communications", AP_JARRAY, &list));
	op->comm = c = AP_NEW_N(r->ctx->arena, struct ap_saved_comm, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), c++) {
		bool each = false;

		if (op->ncomm++ == MOST_COMMS)
			return fault(r, v, "too many collectives");
		AP_TRY(expect(r, v, AP_JOBJECT));
		AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "kind", &c->kind));
		AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "phase", &c->phase));
		AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "bytes", 0, INT64_MAX, &c->bytes));
		AP_TRY(member(r, v, "axes", AP_JARRAY, &axes));
		c->ranks = 1;
		for (const struct ap_jv *axis = ap_jv_first(axes); axis; axis = ap_jv_next(axis)) {
			AP_TRY(read_axis(r, axis, &size));
			if (!ap_mul(c->ranks, size, &c->ranks))
				return fault(r, axes, "expected fewer devices");
		}
		AP_TRY(ap_json_opt_bool(r->ctx, r->doc, v, "each_micro_batch", &each));
		each |= !once && strcmp(c->phase, "gradient") != 0 && strcmp(c->phase, "optimizer") != 0;
		c->count = each ? r->micro_batches : 1;
		if (!ap_mul(c->bytes, c->count, &all))
			return fault(r, v, "expected fewer bytes");
	}
	return AP_OK;
}

/* Reads factors, and their strides as text; no factors if one lacks its name or parts. */
static enum ap_status read_factors(struct reader *r, const struct ap_jv *oper,
	struct ap_saved_op *op)
{
	struct ap_saved_factor *factor;
	const struct ap_jv *list;
	struct ap_str strides;
	bool told = true;
	uint32_t n = 0;

	AP_TRY(member(r, oper, "factors", AP_JARRAY, &list));
	factor = AP_NEW_N(r->ctx->arena, struct ap_saved_factor, ap_jv_count(list));
	ap_str_init(&strides, r->ctx->arena);
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), n++) {
		int64_t stride, parts = 0;
		const char *name = "";

		AP_TRY(expect(r, v, AP_JOBJECT));
		AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "stride", 0, INT32_MAX, &stride));
		AP_TRY(ap_json_opt_str(r->ctx, r->doc, v, "factor", &name));
		AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "parts", 1, INT32_MAX, &parts));
		AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "size", 1, INT64_MAX, &factor[n].size));
		AP_TRY(ap_json_opt_bool(r->ctx, r->doc, v, "batch", &factor[n].batch));
		told &= strlen(name) == 1 && parts;
		factor[n].letter = *name;
		factor[n].parts = (int32_t)parts;
		factor[n].stride = (int32_t)stride;
		ap_str_addf(&strides, "%c%" PRId64, strides.len ? ',' : '[', stride);
	}
	ap_str_add(&strides, strides.len ? "]" : "[]");
	op->field[AP_SAVED_STRIDES] = strides.s;
	op->nfactor = told ? n : 0;
	op->factor = factor;
	return AP_OK;
}

/* Reads lists of integers; none if there is no such key. */
static enum ap_status read_vectors(struct reader *r, const struct ap_jv *oper, const char *key,
	struct ap_saved_vectors *out)
{
	const struct ap_jv *list = ap_jv_get(oper, key);
	struct ap_saved_vector *vector = AP_NEW_N(r->ctx->arena, struct ap_saved_vector,
		list ? ap_jv_count(list) : 0);

	out->v = vector;
	for (const struct ap_jv *v = list ? ap_jv_first(list) : NULL; v; v = ap_jv_next(v), out->n++) {
		int64_t *ints;

		AP_TRY(expect(r, v, AP_JARRAY));
		AP_TRY(ap_json_ints(r->ctx, r->doc, v, 0, INT64_MAX, &ints, &vector[out->n].n));
		vector[out->n].v = ints;
	}
	return AP_OK;
}

/* Reads an operator's time in a step; 0 if it has no costs. */
static enum ap_status read_time(struct reader *r, const struct ap_jv *oper, double *time_s)
{
	struct ap_op_cost c = {0};
	const struct {
		const char *key;
		double *s;
	} times[] = {
		{"forward_s", &c.forward_s},
		{"backward_s", &c.backward_s},
		{"forward_launch_s", &c.forward_launch_s},
		{"backward_launch_s", &c.backward_launch_s},
		{"forward_communication_s", &c.forward_comm_s},
		{"backward_communication_s", &c.backward_comm_s},
		{"gradient_s", &c.gradient_s},
		{"optimizer_s", &c.optimizer_s},
		{"input_s", &c.input_s},
	};
	const struct ap_jv *cost = ap_jv_get(oper, "cost");

	if (!cost)
		return AP_OK;
	AP_TRY(expect(r, cost, AP_JOBJECT));
	for (size_t i = 0; i < AP_COUNT(times); i++)
		AP_TRY(ap_json_opt_num(r->ctx, r->doc, cost, times[i].key, 0, 1e300, times[i].s));
	*time_s = ap_plan_op_time_s(&c);
	return AP_OK;
}

static enum ap_status read_operator(struct reader *r, const struct ap_jv *v, struct ap_map *made)
{
	static const struct field fields[AP_SAVED_OP_FIELDS] = {
#define OP(name, key, type, may, ...) {key, type, may},
#include "planfile/plan_fields.def"
	};
	static const struct field results[] = {
		{"out_shape", AP_JARRAY, true},
		{"out_dtype", AP_JARRAY, true},
	};
	const char *last, *result[2] = {NULL, NULL};
	struct ap_saved_op op = {0};
	const struct ap_jv *pinned;
	bool fresh;

	AP_TRY(expect(r, v, AP_JOBJECT));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "name", &op.name));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "type", &op.type));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "cell", &op.cell));
	AP_TRY(read_fields(r, v, fields, AP_SAVED_OP_FIELDS, op.field));
	AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "stage", 0, INT32_MAX, &op.stage));
	AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "segment", 0, INT32_MAX, &op.segment));
	AP_TRY(read_factors(r, v, &op));
	AP_TRY(read_vectors(r, v, "in_strategy", &op.in_strategy));
	AP_TRY(read_vectors(r, v, "out_strategy", &op.out_strategy));
	AP_TRY(read_vectors(r, v, "out_slice", &op.out_slice));
	AP_TRY(read_time(r, v, &op.time_s));
	AP_TRY(read_fields(r, v, results, AP_COUNT(results), result));
	op.out_shape = result[0];
	op.out_dtype = result[1];
	AP_TRY(read_names(r, v, "inputs", &op.nin, &op.in));
	AP_TRY(read_names(r, v, "outputs", &op.nout, &op.out));
	AP_TRY(member(r, v, "in_checkpoint", AP_JBOOL, &pinned));
	AP_TRY(read_comms(r, v, &op));
	op.in_checkpoint = ap_jv_bool(pinned);
	last = ap_short_name(op.name);
	op.label = last == op.name || !*op.cell ? op.name
		: ap_arena_printf(r->ctx->arena, "%s/%s", op.cell, last);
	ap_map_put_str(r->oper, op.name, &fresh);
	if (!fresh)
		return fault(r, v, "an operator of this name is there already");
	for (uint32_t i = 0; i < op.nout; i++) {
		ap_map_put_str(made, op.out[i], &fresh);
		if (!fresh)
			return fault(r, v, "two operators make one of its outputs");
	}
	AP_PUSH(r->ctx->arena, r->ops, op);
	return AP_OK;
}

/* Reads steps, with their text as a JSON string: "AllGather over 8, Slice over 2". Those of the gradient
 * where only that moves: "back AllReduce over 8"; "shared" where it shares another one's. */
static enum ap_status read_steps(struct reader *r, const struct ap_jv *move, struct ap_saved_move *m)
{
	const struct ap_jv *list, *axis;
	struct ap_str names, text;
	const char **kind;
	int64_t size = 0;
	struct ap_jw w;

	ap_str_init(&names, r->ctx->scratch);
	AP_TRY(member(r, move, "steps", AP_JARRAY, &list));
	if (ap_jv_get(move, "shares")) {
		m->step = kind = AP_NEW(r->ctx->arena, const char *);
		kind[m->nstep++] = "shared";
		m->field[AP_SAVED_STEPS] = "\"shared\"";
		return AP_OK;
	}
	if (!ap_jv_first(list) && ap_jv_get(move, "back_steps")) {
		AP_TRY(member(r, move, "back_steps", AP_JARRAY, &list));
		ap_str_add(&names, "back ");
	}
	m->step = kind = AP_NEW_N(r->ctx->arena, const char *, ap_jv_count(list));
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v), m->nstep++) {
		AP_TRY(expect(r, v, AP_JOBJECT));
		AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "kind", &kind[m->nstep]));
		AP_TRY(member(r, v, "axis", AP_JARRAY, &axis));
		AP_TRY(read_axis(r, axis, &size));
		ap_str_addf(&names, "%s%s over %" PRId64, m->nstep ? ", " : "", kind[m->nstep], size);
	}
	ap_str_init(&text, r->ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	ap_jw_str(&w, names.s);
	m->field[AP_SAVED_STEPS] = text.s;
	return AP_OK;
}

static enum ap_status read_move(struct reader *r, const struct ap_jv *v, struct ap_map *seen)
{
	static const struct field fields[AP_SAVED_MOVE_FIELDS] = {
#define MOVE(name, key, type, may, ...) {key, type, may},
#include "planfile/plan_fields.def"
	};
	struct ap_saved_move m = {0};
	const struct ap_jv *to;
	int64_t bytes;
	bool fresh;

	AP_TRY(expect(r, v, AP_JOBJECT));
	AP_TRY(member(r, v, "to", AP_JSTRING, &to));
	m.to = ap_map_get_str(r->oper, ap_jv_str(to));
	if (m.to == AP_NONE)
		return fault(r, to, "is no operator of this plan");
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "operand", 0, INT32_MAX, &m.operand));
	if (m.operand >= r->ops.v[m.to].nin)
		return fault(r, v, "\"operand\" is none of this operator");
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "bytes", 0, INT64_MAX, &m.bytes));
	AP_TRY(ap_json_opt_num(r->ctx, r->doc, v, "time_s", 0, 1e300, &m.time_s));
	if (!ap_mul(m.bytes, r->micro_batches, &bytes))
		return fault(r, v, "expected fewer bytes");
	AP_TRY(read_steps(r, v, &m));
	AP_TRY(read_fields(r, v, fields, AP_SAVED_MOVE_FIELDS, m.field));
	m.field[AP_SAVED_BYTES] = ap_arena_printf(r->ctx->arena, "%" PRId64, bytes);
	AP_PUSH(r->ctx->arena, r->moves, m);
	ap_map_put(seen, (const int64_t[]){m.to, m.operand}, 2 * sizeof(int64_t), &fresh);
	return fresh ? AP_OK : fault(r, v, "this operand is redistributed already");
}

/* Parts of each dimension: shape / slice. */
static enum ap_status read_parts(struct reader *r, const struct ap_jv *v, const char **out)
{
	const struct ap_jv *list;
	int64_t *whole, *slice;
	size_t nwhole, nslice;
	struct ap_str text;

	AP_TRY(member(r, v, "tensor_shape", AP_JARRAY, &list));
	AP_TRY(ap_json_ints(r->ctx, r->doc, list, 1, INT64_MAX, &whole, &nwhole));
	AP_TRY(member(r, v, "slice_shape", AP_JARRAY, &list));
	AP_TRY(ap_json_ints(r->ctx, r->doc, list, 1, INT64_MAX, &slice, &nslice));
	if (nwhole != nslice)
		return fault(r, list, "expected as many dimensions as in tensor_shape");
	ap_str_init(&text, r->ctx->arena);
	ap_str_addc(&text, '[');
	for (size_t d = 0; d < nwhole; d++)
		ap_str_addf(&text, "%s%" PRId64, d ? "," : "", whole[d] / slice[d]);
	ap_str_addc(&text, ']');
	*out = text.s;
	return AP_OK;
}

static enum ap_status read_layout(struct reader *r, const struct ap_jv *v, struct ap_saved_param *p)
{
	const struct {
		const char *key;
		int64_t least;
		struct ap_saved_vector *out;
	} lists[] = {
		{"tensor_shape", 1, &p->shape},
		{"slice_shape", 1, &p->slice},
		{"dev_matrix", 1, &p->dev_matrix},
		{"tensor_map", -1, &p->tensor_map},
	};
	const struct ap_jv *group = ap_jv_get(v, "optimizer_group"), *axes;
	struct ap_saved_axis *axis;
	const struct ap_jv *dtype;

	AP_TRY(member(r, v, "dtype", AP_JSTRING, &dtype));
	p->dtype = ap_jv_str(dtype);
	for (size_t i = 0; i < AP_COUNT(lists); i++) {
		const struct ap_jv *list = ap_jv_get(v, lists[i].key);
		int64_t *ints;

		AP_TRY(expect(r, list, AP_JARRAY));
		AP_TRY(ap_json_ints(r->ctx, r->doc, list, lists[i].least, INT64_MAX, &ints,
			&lists[i].out->n));
		lists[i].out->v = ints;
	}
	p->shards = 1;
	AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "stage", 0, INT32_MAX, &p->stage));
	p->first_rank = (size_t)p->stage < r->first_ranks.n ? r->first_ranks.v[p->stage] : 0;
	AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "optimizer_shards", 1, INT32_MAX, &p->shards));
	AP_TRY(ap_json_opt_int(r->ctx, r->doc, v, "optimizer_part", 1, INT64_MAX, &p->part));
	if (!group || ap_jv_type(group) == AP_JNULL)
		return AP_OK;
	AP_TRY(expect(r, group, AP_JOBJECT));
	AP_TRY(member(r, group, "axes", AP_JARRAY, &axes));
	p->shard_axis = axis = AP_NEW_N(r->ctx->arena, struct ap_saved_axis, ap_jv_count(axes));
	for (const struct ap_jv *a = ap_jv_first(axes); a; a = ap_jv_next(a), p->nshard_axis++) {
		int64_t *pair;
		size_t n;

		AP_TRY(expect(r, a, AP_JARRAY));
		AP_TRY(ap_json_ints(r->ctx, r->doc, a, 1, INT32_MAX, &pair, &n));
		if (n != 2)
			return fault(r, a, "expected a stride and a size");
		axis[p->nshard_axis] = (struct ap_saved_axis){pair[0], pair[1]};
	}
	return AP_OK;
}

static enum ap_status read_param(struct reader *r, const struct ap_jv *v, struct ap_map *seen)
{
	static const struct field fields[AP_SAVED_PARAM_FIELDS] = {
#define PARAM(name, key, type, may, ...) {key, type, may},
#include "planfile/plan_fields.def"
	};
	struct ap_saved_param p = {0};
	bool fresh;

	AP_TRY(expect(r, v, AP_JOBJECT));
	AP_TRY(ap_json_get_str(r->ctx, r->doc, v, "name", &p.name));
	AP_TRY(read_fields(r, v, fields, AP_SAVED_PARAM_FIELDS, p.field));
	AP_TRY(read_parts(r, v, &p.field[AP_SAVED_PARTS]));
	p.trainable = !strcmp(p.field[AP_SAVED_TRAINABLE], "true");
	AP_TRY(read_layout(r, v, &p));
	AP_PUSH(r->ctx->arena, r->params, p);
	ap_map_put_str(seen, p.name, &fresh);
	return fresh ? AP_OK : fault(r, v, "a parameter of this name is there already");
}

static enum ap_status read_plan(struct reader *r, const struct ap_jv *root)
{
	static const struct {
		const char *key;
		enum ap_status (*read)(struct reader *r, const struct ap_jv *v, struct ap_map *seen);
	} lists[] = { /* redistributions name operators */
		{"operators", read_operator},
		{"redistributions", read_move},
		{"parameters", read_param},
	};
	const struct ap_jv *schema, *list;

	AP_TRY(expect(r, root, AP_JOBJECT));
	AP_TRY(member(r, root, "schema", AP_JSTRING, &schema));
	if (strcmp(ap_jv_str(schema), "autopar-plan/1") != 0)
		return fault(r, schema, "expected \"autopar-plan/1\"");
	AP_TRY(read_facts(r, root));
	for (size_t i = 0; i < AP_COUNT(lists); i++) {
		struct ap_map *seen = ap_map_create(r->ctx->scratch);

		AP_TRY(member(r, root, lists[i].key, AP_JARRAY, &list));
		for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
			AP_TRY(lists[i].read(r, v, seen));
	}
	return AP_OK;
}

enum ap_status ap_saved_of_plan(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_saved *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct reader r = {.ctx = ctx, .doc = doc, .oper = ap_map_create(ctx->scratch)};
	enum ap_status st = read_plan(&r, ap_json_root(doc));

	ap_arena_release(ctx->scratch, mark);
	*out = (struct ap_saved){
		.file = ap_file_base(ap_json_file(doc)),
		.is_plan = true,
		.decided = r.decided,
		.given = r.given,
		.nfact = (uint32_t)r.facts.n,
		.fact = r.facts.v,
		.ninput = r.ninput,
		.input = r.input,
		.nop = (uint32_t)r.ops.n,
		.op = r.ops.v,
		.nparam = (uint32_t)r.params.n,
		.param = r.params.v,
		.nmove = (uint32_t)r.moves.n,
		.move = r.moves.v,
	};
	return st;
}

const struct ap_saved_fact *ap_saved_fact(const struct ap_saved *s, const char *section, const char *key)
{
	const struct ap_saved_fact *best = NULL;

	for (uint32_t i = 0; i < s->nfact; i++) {
		const struct ap_saved_fact *f = &s->fact[i];
		const char *dot = strcmp(section, "memory") ? NULL : strrchr(f->key, '.');

		if (!strcmp(f->section, section) && (!best || f->number > best->number) &&
			(!strcmp(f->key, key) || (dot && !strcmp(dot + 1, key))))
			best = f;
	}
	return best;
}

/* ---- a strategy checkpoint, and a plan as one ---- */

/* Keeps each text once: many parameters share a few. */
struct texts {
	struct ap_ctx *ctx;
	struct ap_map *map;
};

static const char *keep(struct texts *t, const char *text)
{
	return ap_map_key(t->map, ap_map_put_str(t->map, text, NULL), NULL);
}

static const char *vecs_text(struct texts *t, const struct ap_ckpt_vec *v, uint32_t n, bool list)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	struct ap_str text;
	struct ap_jw w;
	const char *kept;

	ap_str_init(&text, t->ctx->scratch);
	ap_jw_str_init(&w, &text, 0);
	if (list)
		ap_jw_arr(&w);
	for (uint32_t i = 0; i < n; i++)
		ap_jw_ints(&w, v[i].v, v[i].n);
	if (list)
		ap_jw_end(&w);
	kept = keep(t, text.s);
	ap_arena_release(t->ctx->scratch, mark);
	return kept;
}

static const char *vec_text(struct texts *t, const struct ap_ckpt_vec *v)
{
	return vecs_text(t, v, 1, false);
}

static const char *int_text(struct texts *t, int64_t v)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, v);
	return keep(t, text);
}

/* Parts, or slice sizes, per dimension. */
static const char *dims_text(struct texts *t, const struct ap_ckpt_layout *l, bool slice)
{
	struct ap_mark mark = ap_arena_mark(t->ctx->scratch);
	uint32_t rank = ap_ckpt_rank(l);
	struct ap_ckpt_vec dims = {rank, NULL};
	int64_t *v = AP_NEW_N(t->ctx->scratch, int64_t, rank);
	const char *kept;

	for (uint32_t d = 0; d < rank; d++)
		v[d] = slice ? l->tensor_shape.v[d] / ap_ckpt_parts(l, d) : ap_ckpt_parts(l, d);
	dims.v = v;
	kept = vec_text(t, &dims);
	ap_arena_release(t->ctx->scratch, mark);
	return kept;
}

static void add_operators(struct texts *t, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_saved_op *op = AP_NEW_N(ctx->arena, struct ap_saved_op, c->nitem);
	bool stages = false; /* more than one: each may have the same key */

	for (uint32_t i = 1; i < c->nitem; i++)
		stages |= c->item[i].stage != c->item[0].stage;
	for (uint32_t i = 0; i < c->nitem; i++) {
		const struct ap_ckpt_item *item = &c->item[i];

		op[i].name = !stages ? ap_arena_strdup(ctx->arena, item->node_name)
			: ap_arena_printf(ctx->arena, "%" PRIu32 "-%s", item->stage,
				item->node_name);
		op[i].label = op[i].name;
		op[i].type = "";
		op[i].in_checkpoint = true;
		op[i].field[AP_SAVED_IN_STRATEGY] = vecs_text(t, item->strategy, item->n, true);
		op[i].field[AP_SAVED_STAGE] = int_text(t, item->stage);
	}
	out->op = op;
	out->nop = c->nitem;
}

static void set_fields(struct texts *t, const struct ap_ckpt_layout *l, const char **field)
{
	bool shape = l->has_shape && l->tensor_shape.n == ap_ckpt_rank(l);

	field[AP_SAVED_TENSOR_SHAPE] = shape ? vec_text(t, &l->tensor_shape) : NULL;
	field[AP_SAVED_SLICE_SHAPE] = shape ? dims_text(t, l, true) : NULL;
	field[AP_SAVED_PARTS] = dims_text(t, l, false);
	field[AP_SAVED_DEV_MATRIX] = vec_text(t, &l->dev_matrix);
	field[AP_SAVED_TENSOR_MAP] = vecs_text(t, l->tensor_map, l->nmap, l->nmap != 1);
	field[AP_SAVED_SHARD_STEP] = int_text(t, l->weight_step);
	field[AP_SAVED_SHARD_SIZE] = int_text(t, l->weight_size);
	field[AP_SAVED_FIELD] = int_text(t, l->field);
	field[AP_SAVED_SPLIT_SHAPE] = vec_text(t, &l->param_split_shape);
	field[AP_SAVED_OFFSET] = vec_text(t, &l->indices_offset);
}

static bool lie_alike(const struct ap_saved_param *a, const struct ap_saved_param *b)
{
	for (int f = 0; f < AP_SAVED_PARAM_FIELDS; f++) {
		const char *x = a->field[f], *y = b->field[f];

		if (f != AP_SAVED_STATES && (x ? !y || strcmp(x, y) != 0 : y != NULL))
			return false;
	}
	return true;
}

/* The parameter of which parameter i is an optimizer state in the same layout; AP_NONE: none. */
static ap_id source_of(struct ap_ctx *ctx, const struct ap_map *names,
	const struct ap_saved_param *all, ap_id i, const char **state)
{
	const char *name = all[i].name, *bare = ap_ckpt_bare_name(name), *prefix, *source;
	char buf[32];

	for (size_t p = 0; (prefix = ap_ckpt_state_prefix(p, buf)); p++) {
		ap_id id;

		source = ap_ckpt_state_source(bare, prefix);
		if (!source)
			continue;
		id = ap_map_get_str(names, ap_arena_printf(ctx->scratch, "%.*s%s",
			(int)(bare - name), name, source));
		if (id == AP_NONE || !lie_alike(&all[i], &all[id]))
			continue;
		*state = ap_arena_strdup(ctx->arena, prefix);
		return id;
	}
	return AP_NONE;
}

static void add_params(struct texts *t, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_saved_param *all = AP_NEW_N(ctx->arena, struct ap_saved_param, c->nlayout);
	struct ap_str *states = AP_NEW_N(ctx->scratch, struct ap_str, c->nlayout);
	ap_id *source = AP_NEW_N(ctx->scratch, ap_id, c->nlayout);
	const char **state = AP_NEW_N(ctx->scratch, const char *, c->nlayout);
	bool *folded = AP_NEW_N(ctx->scratch, bool, c->nlayout);
	struct ap_map *names = ap_map_create(ctx->scratch);

	for (uint32_t i = 0; i < c->nlayout; i++) {
		all[i].name = ap_arena_strdup(ctx->arena, c->layout[i].param_name);
		all[i].trainable = true;
		set_fields(t, &c->layout[i], all[i].field);
		ap_map_put_str(names, all[i].name, NULL);
	}
	for (uint32_t i = 0; i < c->nlayout; i++)
		source[i] = source_of(ctx, names, all, i, &state[i]);
	for (uint32_t i = 0; i < c->nlayout; i++) {
		struct ap_str *list = source[i] == AP_NONE ? NULL : &states[source[i]];

		folded[i] = list && source[source[i]] == AP_NONE; /* not for states of states */
		if (!folded[i])
			continue;
		if (!list->s)
			ap_str_init(list, ctx->arena);
		ap_str_addf(list, "%s\"%s\"", list->len ? "," : "", state[i]);
	}
	for (uint32_t i = 0; i < c->nlayout; i++) {
		all[i].field[AP_SAVED_STATES] = keep(t, ap_arena_printf(ctx->scratch, "[%s]",
			states[i].s ? states[i].s : ""));
		if (!folded[i])
			all[out->nparam++] = all[i];
	}
	ap_arena_release(ctx->scratch, mark);
	out->param = all;
}

static void add_devices(struct texts *t, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct ap_ctx *ctx = t->ctx;
	struct ap_saved_fact *fact = AP_NEW(ctx->arena, struct ap_saved_fact);
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const uint32_t *stage;
	uint32_t nstage = ap_ckpt_is_merged(c) ? ap_ckpt_stages(ctx, c, &stage) : 1;
	int64_t devices;

	ap_arena_release(ctx->scratch, mark);
	if (!c->nlayout ||
		!ap_product(c->layout[0].dev_matrix.v, c->layout[0].dev_matrix.n, &devices) ||
		!ap_mul(devices, nstage, &devices))
		return;
	*fact = (struct ap_saved_fact){.section = "machine", .key = "devices",
		.json = int_text(t, devices), .is_number = true, .number = (double)devices};
	out->fact = fact;
	out->nfact = 1;
}

void ap_saved_of_ckpt(struct ap_ctx *ctx, const struct ap_ckpt *c, struct ap_saved *out)
{
	struct texts t = {.ctx = ctx, .map = ap_map_create(ctx->arena)};

	*out = (struct ap_saved){.file = c->file ? ap_arena_strdup(ctx->arena, ap_file_base(c->file)) : ""};
	add_devices(&t, c, out);
	add_operators(&t, c, out);
	add_params(&t, c, out);
}

struct params_of {
	struct ap_ctx *ctx;
	const struct ap_saved *plan;
	bool stages; /* more than one: names start with "stage-" */
	const struct ap_map *names; /* ids are indices of plan->param */
	bool *used;
};

static const char *behind_stage(struct ap_ctx *ctx, const char *stage, const char *name)
{
	return ap_arena_printf(ctx->arena, "%s-%s", stage, name);
}

/* Checkpoint key of an operator: "<type>_<first trainable parameter>". */
static const char *key_of(struct params_of *p, const struct ap_saved_op *op)
{
	const char *key = NULL;

	for (uint32_t i = 0; i < op->nin; i++) {
		ap_id id = ap_map_get_str(p->names, op->in[i]);

		if (id == AP_NONE || !p->plan->param[id].trainable)
			continue;
		p->used[id] = true;
		if (!key)
			key = ap_arena_printf(p->ctx->arena, "%s_%s", op->type, op->in[i]);
	}
	if (!key)
		key = op->name;
	return p->stages ? behind_stage(p->ctx, op->field[AP_SAVED_STAGE], key) : key;
}

/* The last of several operators with the same key counts, as in MindSpore. */
static void reduce_operators(struct params_of *p, struct ap_saved *out)
{
	struct ap_saved_op *all = AP_NEW_N(p->ctx->arena, struct ap_saved_op, p->plan->nop);
	struct ap_map *keys = ap_map_create(p->ctx->scratch);

	for (uint32_t i = 0; i < p->plan->nop; i++) {
		const struct ap_saved_op *op = &p->plan->op[i];
		struct ap_saved_op *to;
		const char *key;

		if (!op->in_checkpoint)
			continue;
		key = key_of(p, op);
		to = &all[ap_map_put_str(keys, key, NULL)];
		*to = (struct ap_saved_op){.type = "", .in_checkpoint = true};
		to->name = to->label = key;
		to->field[AP_SAVED_IN_STRATEGY] = op->field[AP_SAVED_IN_STRATEGY];
		to->field[AP_SAVED_STAGE] = op->field[AP_SAVED_STAGE];
	}
	out->op = all;
	out->nop = (uint32_t)ap_map_size(keys);
}

static void reduce_params(struct params_of *p, struct ap_saved *out)
{
	struct ap_saved_param *all =
		AP_NEW_N(p->ctx->arena, struct ap_saved_param, p->plan->nparam);

	for (uint32_t i = 0; i < p->plan->nparam; i++) {
		struct ap_saved_param param = p->plan->param[i];

		if (!p->used[i])
			continue;
		param.field[AP_SAVED_DTYPE] = NULL;
		param.field[AP_SAVED_READ_AS] = NULL;
		param.field[AP_SAVED_TRAINABLE] = NULL;
		param.field[AP_SAVED_SHARDS] = NULL;
		if (p->stages && param.field[AP_SAVED_PARAM_STAGE])
			param.name = behind_stage(p->ctx, param.field[AP_SAVED_PARAM_STAGE], param.name);
		param.field[AP_SAVED_PARAM_STAGE] = NULL;
		all[out->nparam++] = param;
	}
	out->param = all;
}

void ap_saved_strategies(struct ap_ctx *ctx, const struct ap_saved *plan, struct ap_saved *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *names = ap_map_create(ctx->scratch);
	struct params_of p = {.ctx = ctx, .plan = plan, .names = names};

	for (uint32_t i = 1; i < plan->nop; i++)
		p.stages |= strcmp(plan->op[i].field[AP_SAVED_STAGE], plan->op[0].field[AP_SAVED_STAGE]) != 0;
	p.used = AP_NEW_N(ctx->scratch, bool, plan->nparam);
	for (uint32_t i = 0; i < plan->nparam; i++)
		ap_map_put_str(names, plan->param[i].name, NULL);
	*out = (struct ap_saved){.file = plan->file};
	out->fact = ap_saved_fact(plan, "machine", "devices");
	out->nfact = out->fact != NULL;
	reduce_operators(&p, out);
	reduce_params(&p, out);
	ap_arena_release(ctx->scratch, mark);
}
