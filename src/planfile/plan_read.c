/* SPDX-License-Identifier: Apache-2.0 */
/* A plan file read back: its values, all but the lists of operators and what belongs to them. */
#include "planfile/plan_read.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"
#include "planfile/plan_read_parts.h"

enum { MOST_NESTED = 3 };

enum ap_status ap_plan_read_fault(struct ap_plan_reader *r, const struct ap_jv *v, const char *text)
{
	return ap_json_report(r->ctx, r->doc, v, AP_ERROR, AP_MEANING, NULL, "plan-file", "%s",
		text);
}

enum ap_status ap_plan_read_type(struct ap_plan_reader *r, const struct ap_jv *v, enum ap_jtype type)
{
	static const char *const expected[] = {
		[AP_JNULL] = "expected null",
		[AP_JBOOL] = "expected true or false",
		[AP_JNUMBER] = "expected a number",
		[AP_JSTRING] = "expected a string",
		[AP_JARRAY] = "expected an array",
		[AP_JOBJECT] = "expected an object",
	};

	return ap_jv_type(v) == type ? AP_OK : ap_plan_read_fault(r, v, expected[type]);
}

enum ap_status ap_plan_read_member(struct ap_plan_reader *r, const struct ap_jv *obj, const char *key,
	enum ap_jtype type, const struct ap_jv **out)
{
	*out = ap_jv_get(obj, key);
	if (!*out)
		return ap_json_report(r->ctx, r->doc, obj, AP_ERROR, AP_MEANING, NULL, "key-missing",
			"no key \"%s\"", key);
	return ap_plan_read_type(r, *out, type);
}

enum ap_status ap_plan_read_json(struct ap_plan_reader *r, const struct ap_jv *v, const char **out)
{
	struct ap_str text;
	struct ap_jw w;

	ap_str_init(&text, r->ctx->arena);
	ap_jw_str_init(&w, &text, 0);
	if (!ap_jv_is_shallow(v, MOST_NESTED))
		return ap_plan_read_fault(r, v, "expected a plain value");
	ap_jw_value(&w, r->doc, v);
	*out = text.s;
	return AP_OK;
}

static enum ap_status add_fact(struct ap_plan_reader *r, const char *section, const char *prefix,
	const char *key, const struct ap_jv *v)
{
	struct ap_saved_fact fact = {.section = section, .key = key};

	AP_TRY(ap_plan_read_json(r, v, &fact.json));
	fact.is_number = ap_jv_type(v) == AP_JNUMBER;
	fact.number = fact.is_number ? ap_jv_double(v) : 0;
	if (*prefix)
		fact.key = ap_arena_printf(r->ctx->arena, "%s.%s", prefix, key);
	AP_PUSH(r->ctx->arena, r->facts, fact);
	return AP_OK;
}

/* Every member of obj is a fact, but for one. */
static enum ap_status add_facts(struct ap_plan_reader *r, const char *section, const char *prefix,
	const struct ap_jv *obj, const char *except)
{
	for (const struct ap_jv *v = ap_jv_first(obj); v; v = ap_jv_next(v))
		if (strcmp(ap_jv_key(v), except) != 0)
			AP_TRY(add_fact(r, section, prefix, ap_jv_key(v), v));
	return AP_OK;
}

/* What a section must have at least. */
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

static enum ap_status read_section(struct ap_plan_reader *r, const struct ap_jv *root,
	const char *section, const char *except, const struct ap_jv **out)
{
	const struct ap_jv *v;

	AP_TRY(ap_plan_read_member(r, root, section, AP_JOBJECT, out));
	for (size_t i = 0; i < AP_COUNT(needs); i++)
		if (!strcmp(needs[i].section, section))
			AP_TRY(ap_plan_read_member(r, *out, needs[i].key, needs[i].type, &v));
	return add_facts(r, section, "", *out, except);
}

/* The hash of each input says what it was; its name does not count. */
static enum ap_status read_inputs(struct ap_plan_reader *r, const struct ap_jv *root)
{
	const struct ap_jv *inputs, *hash;

	AP_TRY(ap_plan_read_member(r, root, "inputs", AP_JOBJECT, &inputs));
	for (const struct ap_jv *v = ap_jv_first(inputs); v; v = ap_jv_next(v)) {
		if (!strcmp(ap_jv_key(v), "settings")) /* they are compared one by one */
			continue;
		hash = v;
		if (ap_jv_type(v) != AP_JNULL) {
			AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
			AP_TRY(ap_plan_read_member(r, v, "sha256", AP_JSTRING, &hash));
		}
		AP_TRY(add_fact(r, "inputs", "", ap_jv_key(v), hash));
	}
	return AP_OK;
}

/* Objects of a list, each under its name. */
static enum ap_status read_named(struct ap_plan_reader *r, const char *section,
	const struct ap_jv *list)
{
	const struct ap_jv *name;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
		AP_TRY(ap_plan_read_member(r, v, "name", AP_JSTRING, &name));
		AP_TRY(add_facts(r, section, ap_jv_str(name), v, "name"));
	}
	return AP_OK;
}

/* A figure of one stage stands for itself, of several each has its number before it. */
static enum ap_status read_memory(struct ap_plan_reader *r, const struct ap_jv *list)
{
	const struct ap_jv *total;

	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v)) {
		const char *prefix = "";
		int64_t stage;

		AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
		AP_TRY(ap_plan_read_member(r, v, "total_bytes", AP_JNUMBER, &total));
		AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "stage", 0, INT32_MAX, &stage));
		if (ap_jv_count(list) > 1)
			prefix = ap_arena_printf(r->ctx->arena, "stage %" PRId64, stage);
		AP_TRY(add_facts(r, "memory", prefix, v, "stage"));
	}
	return AP_OK;
}

/* What a plan of one stage says of it, it says of the whole elsewhere. */
static enum ap_status read_stage(struct ap_plan_reader *r, const struct ap_jv *v, bool several)
{
	const char *prefix;
	int64_t id;

	AP_TRY(ap_plan_read_type(r, v, AP_JOBJECT));
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "micro_batches", 1, INT32_MAX,
		&r->micro_batches));
	if (!several)
		return AP_OK;
	AP_TRY(ap_json_get_int(r->ctx, r->doc, v, "id", 0, INT32_MAX, &id));
	prefix = ap_arena_printf(r->ctx->arena, "stage %" PRId64, id);
	for (const struct ap_jv *m = ap_jv_first(v); m; m = ap_jv_next(m))
		if (ap_jv_type(m) == AP_JNUMBER && strcmp(ap_jv_key(m), "id") != 0)
			AP_TRY(add_fact(r, "stages", prefix, ap_jv_key(m), m));
	return AP_OK;
}

static enum ap_status read_stages(struct ap_plan_reader *r, const struct ap_jv *root)
{
	const struct ap_jv *stages;
	bool several;

	AP_TRY(ap_plan_read_member(r, root, "stages", AP_JARRAY, &stages));
	several = ap_jv_count(stages) > 1;
	if (!ap_jv_first(stages))
		return ap_plan_read_fault(r, stages, "expected a stage at least");
	for (const struct ap_jv *v = ap_jv_first(stages); v; v = ap_jv_next(v))
		AP_TRY(read_stage(r, v, several));
	return AP_OK;
}

/* Plans without one say null, those of before nothing. */
static enum ap_status read_pipeline(struct ap_plan_reader *r, const struct ap_jv *root)
{
	const struct ap_jv *pipe = ap_jv_get(root, "pipeline");

	if (!pipe || ap_jv_type(pipe) == AP_JNULL)
		return AP_OK;
	AP_TRY(ap_plan_read_type(r, pipe, AP_JOBJECT));
	return add_facts(r, "pipeline", "", pipe, "");
}

/* What operators it decides is told where their strategies are. */
static enum ap_status read_route(struct ap_plan_reader *r, const struct ap_jv *root)
{
	const struct ap_jv *route = ap_jv_get(root, "route");

	if (!route || ap_jv_type(route) == AP_JNULL)
		return AP_OK;
	AP_TRY(ap_plan_read_type(r, route, AP_JOBJECT));
	return add_facts(r, "route", "", route, "differs");
}

static enum ap_status read_facts(struct ap_plan_reader *r, const struct ap_jv *root)
{
	const struct ap_jv *tool, *section, *list;

	AP_TRY(ap_plan_read_member(r, root, "tool", AP_JOBJECT, &tool));
	AP_TRY(ap_plan_read_member(r, tool, "version", AP_JSTRING, &section));
	AP_TRY(add_fact(r, "tool", "", "version", section));
	AP_TRY(read_inputs(r, root));
	AP_TRY(read_section(r, root, "settings", "", &section));
	AP_TRY(read_section(r, root, "graph", "", &section));
	AP_TRY(read_section(r, root, "machine", "levels", &section));
	AP_TRY(read_named(r, "machine", ap_jv_get(section, "levels")));
	AP_TRY(read_section(r, root, "search", "", &section));
	AP_TRY(read_section(r, root, "prediction", "memory", &section));
	AP_TRY(read_memory(r, ap_jv_get(section, "memory")));
	AP_TRY(ap_plan_read_member(r, root, "baselines", AP_JARRAY, &list));
	AP_TRY(read_named(r, "baselines", list));
	AP_TRY(read_route(r, root));
	AP_TRY(read_pipeline(r, root));
	return read_stages(r, root);
}

static enum ap_status read_plan(struct ap_plan_reader *r, const struct ap_jv *root)
{
	const struct ap_jv *schema;

	AP_TRY(ap_plan_read_type(r, root, AP_JOBJECT));
	AP_TRY(ap_plan_read_member(r, root, "schema", AP_JSTRING, &schema));
	if (strcmp(ap_jv_str(schema), "autopar-plan/1") != 0)
		return ap_plan_read_fault(r, schema, "expected \"autopar-plan/1\"");
	AP_TRY(read_facts(r, root));
	AP_TRY(ap_plan_read_operators(r, root));
	AP_TRY(ap_plan_read_moves(r, root));
	return ap_plan_read_params(r, root);
}

enum ap_status ap_saved_of_plan(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_saved *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_plan_reader r = {.ctx = ctx, .doc = doc, .oper = ap_map_create(ctx->scratch)};
	enum ap_status st = read_plan(&r, ap_json_root(doc));

	ap_arena_release(ctx->scratch, mark);
	*out = (struct ap_saved){
		.file = ap_file_base(ap_json_file(doc)),
		.is_plan = true,
		.nfact = (uint32_t)r.facts.n,
		.fact = r.facts.v,
		.nop = (uint32_t)r.ops.n,
		.op = r.ops.v,
		.nparam = (uint32_t)r.params.n,
		.param = r.params.v,
		.nmove = (uint32_t)r.moves.n,
		.move = r.moves.v,
	};
	return st;
}
