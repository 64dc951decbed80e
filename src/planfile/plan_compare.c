/* SPDX-License-Identifier: Apache-2.0 */
#include "planfile/plan_compare.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "base/str.h"
#include "base/vec.h"

enum { MOST_LISTED = 1000 };

struct comparing {
	struct ap_ctx *ctx;
	const struct ap_json *doc[2];
	const struct ap_plan_keys *keys;
	bool searched;
	uint32_t n;
	AP_VEC(struct ap_plan_value) values;
};

static const char *text_of(struct comparing *c, int side, const struct ap_jv *v)
{
	struct ap_str s;
	struct ap_jw w;

	if (!v)
		return NULL;
	ap_str_init(&s, c->ctx->arena);
	ap_jw_str_init(&w, &s, 0);
	if (ap_jv_type(v) == AP_JARRAY)
		ap_str_addf(&s, "\"%zu values\"", ap_jv_count(v));
	else if (ap_jv_type(v) == AP_JOBJECT)
		ap_str_addf(&s, "\"%zu keys\"", ap_jv_count(v));
	else
		ap_jw_value(&w, c->doc[side], v);
	return s.s;
}

static void differ(struct comparing *c, const char *pointer, const struct ap_jv *was, const struct ap_jv *is)
{
	struct ap_plan_value v = {.pointer = pointer};

	if (c->n++ >= MOST_LISTED)
		return;
	if (!pointer)
		v.pointer = ap_jv_pointer(c->ctx->arena, was);
	v.was = text_of(c, 0, was);
	v.is = text_of(c, 1, is);
	AP_PUSH(c->ctx->arena, c->values, v);
}

static bool same_number(struct comparing *c, const struct ap_jv *was, const struct ap_jv *is)
{
	int64_t a, b;

	if (ap_jv_int(c->doc[0], was, &a) && ap_jv_int(c->doc[1], is, &b))
		return a == b;
	return ap_jv_double(was) == ap_jv_double(is);
}

static bool same_plain(struct comparing *c, const struct ap_jv *was, const struct ap_jv *is)
{
	switch (ap_jv_type(was)) {
	case AP_JBOOL:
		return ap_jv_bool(was) == ap_jv_bool(is);
	case AP_JNUMBER:
		return same_number(c, was, is);
	case AP_JSTRING:
		return !strcmp(ap_jv_str(was), ap_jv_str(is));
	default:
		return true;
	}
}

/* Compares two values. Keys of an object are children of row parent; any: unknown keys count
 * too. */
static void compare_value(struct comparing *c, const struct ap_jv *was, const struct ap_jv *is, ap_id row,
	bool any);

static bool counts(const struct comparing *c, ap_id row)
{
	const struct ap_plan_key *key = ap_plan_key_at(row);

	return key->form == AP_PLAN_SETTINGS || key->class == AP_PLAN_COMPUTED ||
		(key->class == AP_PLAN_SEARCHED && c->searched);
}

static const struct ap_jv *next_or_first(const struct ap_jv *obj, const struct ap_jv *last, const char *key)
{
	const struct ap_jv *next = last ? ap_jv_next(last) : ap_jv_first(obj);

	return next && !strcmp(ap_jv_key(next), key) ? next : ap_jv_get(obj, key);
}

/* Compares members of both sides, reporting added ones; then reports those that are gone. */
static void compare_objects(struct comparing *c, const struct ap_jv *was, const struct ap_jv *is,
	ap_id parent, bool any)
{
	for (int gone = 0; gone < 2; gone++) {
		const struct ap_jv *of = gone ? was : is, *other = gone ? is : was, *last = NULL, *v;
		ap_id hint = AP_NONE;

		for (const struct ap_jv *m = ap_jv_first(of); m; m = ap_jv_next(m)) {
			ap_id row = any ? AP_NONE : ap_plan_keys_find(c->keys, parent, ap_jv_key(m), hint);

			hint = row == AP_NONE ? hint : row;
			if (!any && (row == AP_NONE || !counts(c, row)))
				continue;
			v = next_or_first(other, last, ap_jv_key(m));
			last = v ? v : last;
			if (v && !gone)
				compare_value(c, v, m, row,
					any || ap_plan_key_at(row)->form == AP_PLAN_SETTINGS);
			else if (!v && gone)
				differ(c, NULL, m, NULL);
			else if (!v)
				differ(c, ap_arena_printf(c->ctx->arena, "%s/%s",
					ap_jv_pointer(c->ctx->arena, was), ap_jv_key(m)), NULL, m);
		}
	}
}

static void compare_value(struct comparing *c, const struct ap_jv *was, const struct ap_jv *is, ap_id row,
	bool any)
{
	const struct ap_jv *v = ap_jv_first(was), *w = ap_jv_first(is);

	if (ap_jv_type(was) != ap_jv_type(is)) {
		differ(c, NULL, was, is);
	} else if (ap_jv_type(was) == AP_JOBJECT) {
		compare_objects(c, was, is, row, any);
	} else if (ap_jv_type(was) == AP_JARRAY) {
		if (ap_jv_count(was) != ap_jv_count(is))
			differ(c, NULL, was, is);
		for (; v && w; v = ap_jv_next(v), w = ap_jv_next(w))
			compare_value(c, v, w, row, any);
	} else if (!same_plain(c, was, is)) {
		differ(c, NULL, was, is);
	}
}

void ap_plan_compare(struct ap_ctx *ctx, const struct ap_json *was, const struct ap_json *is, bool searched,
	struct ap_plan_values *out)
{
	struct comparing c = {.ctx = ctx, .doc = {was, is}, .searched = searched,
		.keys = ap_plan_keys_make(ctx)};

	compare_objects(&c, ap_json_root(was), ap_json_root(is), AP_NONE, false);
	*out = (struct ap_plan_values){.n = c.n, .nlisted = (uint32_t)c.values.n, .v = c.values.v};
}
