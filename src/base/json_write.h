/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON as events to a sink function. If indent > 0, each member is on its own line, except
 * in containers opened with the _flat forms. Numbers through ap_format_double / PRId64. Misuse (a
 * key outside an object, unbalanced ends) fails an assertion. */
#ifndef AP_BASE_JSON_WRITE_H
#define AP_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ap_json;
struct ap_jv;
struct ap_str;

typedef void ap_write_fn(void *user, const char *bytes, size_t len);

struct ap_jw {
	ap_write_fn *write;
	void *user;
	int indent; /* blanks per level; 0: compact */
	int depth;
	uint64_t object, comma, flat; /* bit per level */
	bool have_key;
	size_t len; /* bytes in buf; 0 after a whole value */
	char buf[1024];
};

void ap_jw_init(struct ap_jw *w, ap_write_fn *write, void *user, int indent);
void ap_jw_str_init(struct ap_jw *w, struct ap_str *out, int indent); /* onto a string */
void ap_jw_obj(struct ap_jw *w);
void ap_jw_arr(struct ap_jw *w);
void ap_jw_obj_flat(struct ap_jw *w);
void ap_jw_arr_flat(struct ap_jw *w);
void ap_jw_end(struct ap_jw *w); /* ends the innermost container */
void ap_jw_key(struct ap_jw *w, const char *key);
void ap_jw_str(struct ap_jw *w, const char *s); /* s is UTF-8 */
void ap_jw_int(struct ap_jw *w, int64_t v);
void ap_jw_num(struct ap_jw *w, double v); /* infinity and NaN become null */
void ap_jw_bool(struct ap_jw *w, bool v);
void ap_jw_null(struct ap_jw *w);
void ap_jw_raw(struct ap_jw *w, const char *json); /* json is the text of one value */
/* A parsed value on one line; at most 64 levels in all. */
void ap_jw_value(struct ap_jw *w, const struct ap_json *doc, const struct ap_jv *v);
void ap_jw_kobj(struct ap_jw *w, const char *key);
void ap_jw_karr(struct ap_jw *w, const char *key);
void ap_jw_kobj_flat(struct ap_jw *w, const char *key);
void ap_jw_karr_flat(struct ap_jw *w, const char *key);
void ap_jw_kstr(struct ap_jw *w, const char *key, const char *s);
void ap_jw_kraw(struct ap_jw *w, const char *key, const char *json); /* NULL: null */
void ap_jw_kint(struct ap_jw *w, const char *key, int64_t v);
void ap_jw_knum(struct ap_jw *w, const char *key, double v);
void ap_jw_kbool(struct ap_jw *w, const char *key, bool v);
void ap_jw_kints(struct ap_jw *w, const char *key, const int64_t *v, size_t n); /* flat array */
void ap_jw_ints(struct ap_jw *w, const int64_t *v, size_t n);
void ap_jw_int32s(struct ap_jw *w, const int32_t *v, size_t n);
void ap_jw_finish(struct ap_jw *w); /* balanced; ends with a newline */

/* Reuses repeated text: a fork of w writes more members or elements of the innermost container of w
 * to a string and ends balanced; join adds this text to w, or to another writer at an equivalent
 * place. */
void ap_jw_fork(struct ap_jw *fork, const struct ap_jw *w, struct ap_str *out);
void ap_jw_fork_end(struct ap_jw *fork);
void ap_jw_join(struct ap_jw *w, const char *text, size_t len);

#endif
