/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/bundle_check.h"

#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "bundle/bundle_settings.h"

struct checking {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	enum ap_status st; /* the first that is not AP_OK */
};

#define REPORT(c, v, check, ...) \
	note(c, ap_json_report((c)->ctx, (c)->doc, v, AP_ERROR, AP_MEANING, NULL, check, __VA_ARGS__))

static bool note(struct checking *c, enum ap_status st)
{
	c->st = c->st == AP_OK ? st : c->st;
	return st == AP_OK;
}

static bool is_type(struct checking *c, const struct ap_jv *v, enum ap_jtype type)
{
	static const char *const names[] = {
		[AP_JNULL] = "null",
		[AP_JBOOL] = "true or false",
		[AP_JNUMBER] = "a number",
		[AP_JSTRING] = "a string",
		[AP_JARRAY] = "an array",
		[AP_JOBJECT] = "an object",
	};

	return ap_jv_type(v) == type || REPORT(c, v, "key-type", "should be %s", names[type]);
}

/* The first element of an array member; NULL, reported, if there is no such array. */
static const struct ap_jv *first_of(struct checking *c, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *arr;

	return note(c, ap_json_get_arr(c->ctx, c->doc, obj, key, &arr)) ? ap_jv_first(arr) : NULL;
}

static bool has_text(struct checking *c, const struct ap_jv *obj, const char *key)
{
	const char *text;

	return note(c, ap_json_get_str(c->ctx, c->doc, obj, key, &text));
}

static bool has_flag(struct checking *c, const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = ap_jv_get(obj, key);

	return v ? is_type(c, v, AP_JBOOL) : REPORT(c, obj, "key-missing", "no key \"%s\"", key);
}

static const struct {
	const char *name; /* in "type"; Python's name */
	enum ap_jtype type;
} argument_types[] = {
	{"none", AP_JNULL}, {"bool", AP_JBOOL}, {"int", AP_JNUMBER}, {"str", AP_JSTRING},
	{"list", AP_JARRAY}, {"tuple", AP_JARRAY}, {"dict", AP_JOBJECT}, {"kwargs", AP_JOBJECT},
};

/* keys: the known ones, separated by blanks. */
static void check_keys(struct checking *c, const struct ap_jv *value, const char *keys)
{
	for (const struct ap_jv *v = ap_jv_first(value); v; v = ap_jv_next(v)) {
		const char *key = ap_jv_key(v), *at = keys;
		size_t len = strlen(key), word;

		for (; *at; at += word + (at[word] == ' ')) {
			word = strcspn(at, " ");
			if (word == len && !strncmp(at, key, len))
				break;
		}
		if (!*at)
			REPORT(c, v, "settings-known", "\"%s\" is no argument of this call, which has: %s",
				ap_diag_name(c->ctx->diag, key), keys);
	}
}

static void check_known(struct checking *c, const struct ap_jv *call, const char *api, const char *name,
	const char *type)
{
	struct ap_diag *names = c->ctx->diag;
	const struct ap_jv *value = ap_jv_get(call, "value");
	const char *keys;

	if (!ap_bundle_call_known(api, name, NULL, &keys))
		REPORT(c, call, "settings-known", "%s of %s is no call that a bundle makes",
			ap_diag_name(names, name), ap_diag_name(names, api));
	else if (!ap_bundle_call_known(api, name, type, &keys))
		REPORT(c, ap_jv_get(call, "type"), "settings-type", "%s of %s takes no %s",
			ap_diag_name(names, name), ap_diag_name(names, api), ap_diag_name(names, type));
	else if (keys && value && ap_jv_type(value) == AP_JOBJECT)
		check_keys(c, value, keys);
}

static void check_argument(struct checking *c, const struct ap_jv *call, const char *type)
{
	const struct ap_jv *value = ap_jv_get(call, "value");
	size_t i = 0, n = AP_COUNT(argument_types);
	int64_t whole;

	while (i < n && strcmp(argument_types[i].name, type) != 0)
		i++;
	if (i == n)
		REPORT(c, ap_jv_get(call, "type"), "settings-type",
			"\"%s\"; none, bool, int, str, list, tuple, dict or kwargs is expected",
			ap_diag_name(c->ctx->diag, type));
	else if (!value)
		REPORT(c, call, "key-missing", "no key \"value\"");
	else if (is_type(c, value, argument_types[i].type) && argument_types[i].type == AP_JNUMBER &&
		!ap_jv_int(c->doc, value, &whole))
		REPORT(c, value, "key-type", "should be a whole number");
}

enum ap_status ap_bundle_check_settings(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what)
{
	static const char *const known[] = {"api", "name", "type", "value", NULL};
	struct checking c = {.ctx = ctx, .doc = doc};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_map *seen = ap_map_create(ctx->scratch);
	const struct ap_jv *root = ap_json_root(doc);

	for (const struct ap_jv *v = ap_jv_first(root); v; v = ap_jv_next(v)) {
		const char *api, *name, *type;
		bool fresh = true;

		if (!is_type(&c, v, AP_JOBJECT))
			continue;
		note(&c, ap_json_known(ctx, doc, v, known));
		if (!note(&c, ap_json_get_str(ctx, doc, v, "api", &api)) ||
			!note(&c, ap_json_get_str(ctx, doc, v, "name", &name)) ||
			!note(&c, ap_json_get_str(ctx, doc, v, "type", &type)))
			continue;
		check_argument(&c, v, type);
		check_known(&c, v, api, name, type);
		ap_map_put_str(seen, ap_arena_printf(ctx->scratch, "%s\n%s", api, name), &fresh);
		if (!fresh)
			REPORT(&c, v, "settings-once", "%s of %s is called twice",
				ap_diag_name(ctx->diag, name), ap_diag_name(ctx->diag, api));
	}
	ap_arena_release(ctx->scratch, mark);
	ap_str_addf(what, "%zu calls", ap_jv_count(root));
	return c.st;
}

/* Are all stages from 0 to last used? */
static void check_gaps(struct checking *c, const struct ap_jv *root, int64_t last)
{
	size_t n = ap_jv_count(root);
	bool *used = AP_NEW_N(c->ctx->scratch, bool, n);
	int64_t part;

	for (const struct ap_jv *v = ap_jv_first(root); v; v = ap_jv_next(v))
		if (ap_jv_int(c->doc, v, &part) && part < (int64_t)n)
			used[part] = true;
	for (part = 0; part < last && part < (int64_t)n; part++)
		if (!used[part]) {
			REPORT(c, root, "cells-gap", "no cell has %" PRId64 ", though one has %" PRId64, part,
				last);
			return;
		}
}

enum ap_status ap_bundle_check_cells(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what)
{
	struct checking c = {.ctx = ctx, .doc = doc};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_jv *root = ap_json_root(doc);
	int64_t part, last = 0;

	for (const struct ap_jv *v = ap_jv_first(root); v; v = ap_jv_next(v)) {
		if (!is_type(&c, v, AP_JNUMBER))
			continue;
		if (!ap_jv_int(doc, v, &part) || part < 0)
			REPORT(&c, v, "key-range", "should be a whole number from 0 on");
		else
			last = part > last ? part : last;
	}
	if (c.st == AP_OK)
		check_gaps(&c, root, last);
	ap_arena_release(ctx->scratch, mark);
	if (c.st == AP_OK)
		ap_str_addf(what, "%zu cells, parts %" PRId64, ap_jv_count(root), last + 1);
	return c.st;
}

struct member { /* of the objects in a list of the file */
	const char *list, *key;
	enum { TEXT, FLAG, FLAG_IF_ANY, VECTORS, VECTORS_IF_ANY } type;
};

/* Checks for a vector of parts for each operand. */
static void has_vectors(struct checking *c, const struct ap_jv *obj, const char *key)
{
	int64_t part;

	for (const struct ap_jv *v = first_of(c, obj, key); v; v = ap_jv_next(v)) {
		if (!is_type(c, v, AP_JARRAY))
			continue;
		for (const struct ap_jv *p = ap_jv_first(v); p; p = ap_jv_next(p))
			if (is_type(c, p, AP_JNUMBER) && (!ap_jv_int(c->doc, p, &part) || part < 1))
				REPORT(c, p, "key-range", "should be a whole number from 1 on");
	}
}

static void check_members(struct checking *c, const struct ap_jv *v, const struct member *first,
	const struct member *end)
{
	for (const struct member *m = first; m < end; m++)
		if (m->type == TEXT)
			has_text(c, v, m->key);
		else if (m->type == FLAG || (m->type == FLAG_IF_ANY && ap_jv_get(v, m->key)))
			has_flag(c, v, m->key);
		else if (m->type == VECTORS || (m->type == VECTORS_IF_ANY && ap_jv_get(v, m->key)))
			has_vectors(c, v, m->key);
}

/* members: ended by a NULL list, those of a list adjacent. */
static enum ap_status check_lists(struct ap_ctx *ctx, const struct ap_json *doc, const struct member *members,
	struct ap_str *what)
{
	struct checking c = {.ctx = ctx, .doc = doc};
	const struct member *next;

	for (const struct member *m = members; m->list; m = next) {
		const struct ap_jv *v = first_of(&c, ap_json_root(doc), m->list);
		size_t n = 0;

		for (next = m; next->list && !strcmp(next->list, m->list);)
			next++;
		for (; v; v = ap_jv_next(v), n++)
			if (is_type(&c, v, AP_JOBJECT))
				check_members(&c, v, m, next);
		ap_str_addf(what, "%s%s %zu", m == members ? "" : ", ", m->list, n);
	}
	return c.st;
}

enum ap_status ap_bundle_check_recompute(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what)
{
	static const struct member members[] = {
		{"cells", "cell", TEXT},
		{"cells", "mp_comm_recompute", FLAG},
		{"cells", "parallel_optimizer_comm_recompute", FLAG},
		{"cells", "recompute_slice_activation", FLAG},
		{"primitives", "cell", TEXT},
		{"primitives", "type", TEXT},
		{"primitives", "recompute", FLAG},
		{"communications", "cell", TEXT},
		{"communications", "type", TEXT},
		{"communications", "recompute_comm_op", FLAG},
		{"not_applicable", "operator", TEXT},
		{"not_applicable", "recompute", FLAG_IF_ANY},
		{"not_applicable", "recompute_comm_op", FLAG_IF_ANY},
		{NULL},
	};

	return check_lists(ctx, doc, members, what);
}

enum ap_status ap_bundle_check_shard(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what)
{
	static const struct member members[] = {
		{"shards", "cell", TEXT},
		{"shards", "instance", TEXT},
		{"shards", "in_strategy", VECTORS},
		{"shards", "out_strategy", VECTORS_IF_ANY},
		{"not_applicable", "operator", TEXT},
		{"not_applicable", "in_strategy", VECTORS},
		{"not_applicable", "out_strategy", VECTORS_IF_ANY},
		{NULL},
	};

	return check_lists(ctx, doc, members, what);
}

enum ap_status ap_bundle_check_switches(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what)
{
	struct checking c = {.ctx = ctx, .doc = doc};
	const struct ap_jv *root = ap_json_root(doc);
	int64_t level;

	for (const struct ap_jv *v = ap_jv_first(root); v; v = ap_jv_next(v))
		if (ap_jv_type(v) != AP_JBOOL && (ap_jv_type(v) != AP_JNUMBER || !ap_jv_int(doc, v, &level)))
			REPORT(&c, v, "key-type", "should be true, false or a whole number");
	ap_str_addf(what, "switches %zu", ap_jv_count(root));
	return c.st;
}

/* Complete events ('X') need a start and a length. */
static void check_event(struct checking *c, const struct ap_jv *v, size_t *complete)
{
	const char *phase;
	double at, length = 0;

	if (!is_type(c, v, AP_JOBJECT) || !note(c, ap_json_get_str(c->ctx, c->doc, v, "ph", &phase)))
		return;
	if (strcmp(phase, "X") != 0)
		return;
	++*complete;
	has_text(c, v, "name");
	note(c, ap_json_get_num(c->ctx, c->doc, v, "ts", -DBL_MAX, DBL_MAX, &at));
	note(c, ap_json_get_num(c->ctx, c->doc, v, "dur", -DBL_MAX, DBL_MAX, &length));
	if (length < 0)
		REPORT(c, ap_jv_get(v, "dur"), "key-range", "should not be negative");
}

enum ap_status ap_bundle_check_trace(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what)
{
	struct checking c = {.ctx = ctx, .doc = doc};
	size_t complete = 0;

	for (const struct ap_jv *v = first_of(&c, ap_json_root(doc), "traceEvents"); v; v = ap_jv_next(v))
		check_event(&c, v, &complete);
	ap_str_addf(what, "%zu events", complete);
	return c.st;
}
