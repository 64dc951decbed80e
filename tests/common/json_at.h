/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into JSON by path, for tests. */
#ifndef AP_TEST_JSON_AT_H
#define AP_TEST_JSON_AT_H

#include "emit_test.h"

/* The value at a path like "operators/1/name". */
static inline const struct ap_jv *json_at(struct ap_ctx *ctx, const struct ap_json *doc,
	const char *path)
{
	const struct ap_jv *v = ap_json_root(doc);
	char *key = ap_arena_strdup(ctx->arena, path), *end;

	for (; *key; key = *end ? end + 1 : end) {
		end = key + strcspn(key, "/");
		if (ap_jv_type(v) == AP_JOBJECT) {
			v = ap_jv_get(v, ap_arena_strndup(ctx->arena, key, (size_t)(end - key)));
		} else {
			long i = strtol(key, NULL, 10);

			for (v = ap_jv_first(v); v && i; i--)
				v = ap_jv_next(v);
		}
		ck_assert_msg(v != NULL, "no %s", path);
	}
	return v;
}

/* The value's own text in compact form. */
static inline void json_compact(struct ap_jw *w, const struct ap_json *doc, const struct ap_jv *v)
{
	bool object = ap_jv_type(v) == AP_JOBJECT;
	int64_t i;

	switch (ap_jv_type(v)) {
	case AP_JNULL:
		ap_jw_null(w);
		return;
	case AP_JBOOL:
		ap_jw_bool(w, ap_jv_bool(v));
		return;
	case AP_JSTRING:
		ap_jw_str(w, ap_jv_str(v));
		return;
	case AP_JNUMBER:
		if (ap_jv_int(doc, v, &i))
			ap_jw_int(w, i);
		else
			ap_jw_num(w, ap_jv_double(v));
		return;
	case AP_JARRAY:
	case AP_JOBJECT:
		break;
	}
	if (object)
		ap_jw_obj(w);
	else
		ap_jw_arr(w);
	for (v = ap_jv_first(v); v; v = ap_jv_next(v)) {
		if (object)
			ap_jw_key(w, ap_jv_key(v));
		json_compact(w, doc, v);
	}
	ap_jw_end(w);
}

static inline const char *json_text_at(struct ap_ctx *ctx, const struct ap_json *doc, const char *path)
{
	struct ap_str s = new_str(ctx);
	struct ap_jw w;

	ap_jw_str_init(&w, &s, 0);
	json_compact(&w, doc, json_at(ctx, doc, path));
	return s.s;
}

#endif
