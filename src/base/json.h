/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON: strict RFC 8259, each value with its position, so that errors can be located.
 * Parsing is O(bytes), locating an error O(depth). */
#ifndef AP_BASE_JSON_H
#define AP_BASE_JSON_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/diag.h"

struct ap_json; /* a document */
struct ap_jv; /* a value in it */

enum ap_jtype { AP_JNULL, AP_JBOOL, AP_JNUMBER, AP_JSTRING, AP_JARRAY, AP_JOBJECT };

enum { AP_JSON_TRAILING_COMMA = 1 }; /* warn of trailing commas instead */

/* Parses text[0..len), which must outlive the document; text[len] is NUL. Returns AP_SYNTAX, with
 * line and column or with the foreign format (base/foreign.h), for anything but strict RFC 8259 in
 * UTF-8 (a BOM is a warning); AP_MEANING for duplicate keys (both lines named), \u0000 in a string,
 * and non-finite numbers; AP_LIMIT for nesting deeper than 256 and more than 2^23 values (in files
 * above 64 MiB: one per eight bytes). file: name for messages (copied). *out is set on AP_OK only;
 * it lives in the run arena, which must not be the scratch arena. */
enum ap_status ap_json_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	unsigned flags, struct ap_json **out);

const struct ap_jv *ap_json_root(const struct ap_json *doc);
const char *ap_json_file(const struct ap_json *doc);

enum ap_jtype ap_jv_type(const struct ap_jv *v);
size_t ap_jv_count(const struct ap_jv *v); /* elements or members; O(1) */
bool ap_jv_is_shallow(const struct ap_jv *v, int depth); /* nests at most depth deep */
const struct ap_jv *ap_jv_first(const struct ap_jv *v); /* NULL if empty or no container */
const struct ap_jv *ap_jv_next(const struct ap_jv *v); /* NULL after the last */
const char *ap_jv_key(const struct ap_jv *v); /* of a member; NULL in an array */
const struct ap_jv *ap_jv_get(const struct ap_jv *obj, const char *key); /* case-sensitive; O(n) */
const char *ap_jv_str(const struct ap_jv *v); /* v is a string */
bool ap_jv_bool(const struct ap_jv *v); /* v is a bool */
double ap_jv_double(const struct ap_jv *v); /* v is a number */

/* v as an exact integer (from its text: 8, 8.0 and 8e0 are 8; 8.5 and 2^63 are none). */
bool ap_jv_int(const struct ap_json *doc, const struct ap_jv *v, int64_t *r);

/* JSON pointer (RFC 6901) of v, kept in arena. O(depth). */
const char *ap_jv_pointer(struct ap_arena *arena, const struct ap_jv *v);

/* Reports at v (NULL: the document): FILE:LINE:COL: /pointer (operator "oper"): text [check]. */
enum ap_status ap_json_report(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	enum ap_level level, enum ap_status st, const char *oper, const char *check, const char *fmt,
	...) __attribute__((format(printf, 8, 9)));
enum ap_status ap_json_reportv(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	enum ap_level level, enum ap_status st, const char *oper, const char *check, const char *fmt,
	va_list ap) __attribute__((format(printf, 8, 0)));

/* Typed members of an object. Returns AP_MEANING after reporting a missing or ill-typed member
 * (check "key-missing", "key-type", "key-range"). The opt_ forms leave *r unchanged if it is
 * absent. lo..hi: allowed range. */
enum ap_status ap_json_get_str(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const char **r);
enum ap_status ap_json_get_int(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, int64_t lo, int64_t hi, int64_t *r);
enum ap_status ap_json_get_num(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, double lo, double hi, double *r);
enum ap_status ap_json_get_arr(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r);
enum ap_status ap_json_get_obj(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r);
enum ap_status ap_json_opt_str(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const char **r);
enum ap_status ap_json_opt_int(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, int64_t lo, int64_t hi, int64_t *r);
enum ap_status ap_json_opt_num(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, double lo, double hi, double *r);
enum ap_status ap_json_opt_bool(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, bool *r);
enum ap_status ap_json_opt_arr(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r);
enum ap_status ap_json_opt_obj(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r);

/* Reads an array of integers in [lo, hi] into the run arena. Errors as above. */
enum ap_status ap_json_ints(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *arr,
	int64_t lo, int64_t hi, int64_t **r, size_t *n);

/* Warns [key-unknown] of members of obj not in known (NULL-terminated), suggesting a similar key.
 * Returns the sink's status (AP_OK; strict: AP_MEANING). */
enum ap_status ap_json_known(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	const char *const *known);

/* Its two parts, to warn once of frequent keys: is member v in known; the warning about v, for n
 * such members. */
bool ap_json_is_known(const struct ap_jv *v, const char *const *known);
enum ap_status ap_json_unknown(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	const char *const *known, size_t n);

#endif
