/* SPDX-License-Identifier: Apache-2.0 */
/* Typed access to the members of objects, with the messages that go with it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_tree.h"
#include "base/num.h"
#include "base/str.h"

enum { TOKEN_CHARS = 40, POWER_MAX = 19 };

enum whole { WHOLE, FRACTION, TOO_LARGE };

/* A decimal number as digits times a power of ten, without zeros at either end. */
struct decimal {
	bool negative;
	const char *first, *last; /* digits that are not zero; NULL: the number is 0 */
	int64_t power; /* of ten, of the last digit */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool in_mantissa(char c)
{
	return is_digit(c) || c == '.';
}

/* The exponent at s ("e+12"), 0 where there is none; saturates far beyond any length of a text. */
static int64_t read_exponent(const char *s)
{
	const int64_t most = INT64_C(1) << 40;
	int64_t v = 0;
	bool negative;

	if (*s != 'e' && *s != 'E')
		return 0;
	negative = *++s == '-';
	s += negative || *s == '+';
	for (; is_digit(*s); s++)
		v = v < most ? v * 10 + (*s - '0') : most;
	return negative ? -v : v;
}

/* token is a number in JSON's grammar. */
static struct decimal read_decimal(const char *token)
{
	struct decimal d = {.negative = *token == '-'};
	int64_t after_last = 0; /* digits behind the last that is not zero */
	int64_t fraction = 0; /* digits behind the point */
	bool point = false;
	const char *s = token + d.negative;

	for (; in_mantissa(*s); s++) {
		if (*s == '.') {
			point = true;
			continue;
		}
		fraction += point;
		after_last++;
		if (*s == '0')
			continue;
		if (!d.first)
			d.first = s;
		d.last = s;
		after_last = 0;
	}
	d.power = after_last - fraction + read_exponent(s);
	return d;
}

static enum whole whole_number(const char *token, int64_t *r)
{
	struct decimal d = read_decimal(token);
	int64_t v = 0;

	if (!d.first) {
		*r = 0;
		return WHOLE;
	}
	if (d.power < 0)
		return FRACTION;
	if (d.power > POWER_MAX)
		return TOO_LARGE;
	for (const char *s = d.first; s <= d.last; s++) {
		int64_t digit = *s - '0';

		if (*s == '.')
			continue;
		if (!ap_mul(v, 10, &v) || !ap_add(v, d.negative ? -digit : digit, &v))
			return TOO_LARGE;
	}
	for (int64_t i = 0; i < d.power; i++)
		if (!ap_mul(v, 10, &v))
			return TOO_LARGE;
	*r = v;
	return WHOLE;
}

bool ap_jv_int(const struct ap_json *doc, const struct ap_jv *v, int64_t *r)
{
	return v->type == AP_JNUMBER && whole_number(doc->text + v->offset, r) == WHOLE;
}

/* What v is, for messages: "a string", "the number 8.5". */
static const char *describe(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v)
{
	static const char *const names[] = {"null", "a boolean", "", "a string", "an array",
		"an object"};
	const char *token = doc->text + v->offset;
	size_t n;

	if (v->type != AP_JNUMBER)
		return names[v->type];
	n = strspn(token, "+-.0123456789eE");
	return ap_arena_printf(ctx->scratch, "the number %.*s%s",
		n > TOKEN_CHARS ? TOKEN_CHARS : (int)n, token, n > TOKEN_CHARS ? "..." : "");
}

static enum ap_status wrong_type(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *v, const char *expected)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	enum ap_status st = ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-type",
		"expected %s, got %s", expected, describe(ctx, doc, v));

	ap_arena_release(ctx->scratch, mark);
	return st;
}

static enum ap_status out_of_range(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *v, const char *range)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	enum ap_status st = ap_json_report(ctx, doc, v, AP_ERROR, AP_MEANING, NULL, "key-range",
		"expected %s, got %s", range, describe(ctx, doc, v));

	ap_arena_release(ctx->scratch, mark);
	return st;
}

/* The member, NULL where it is absent (AP_OK unless it is required). */
static enum ap_status find(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	const char *key, bool required, const struct ap_jv **v)
{
	*v = NULL;
	if (obj->type != AP_JOBJECT)
		return wrong_type(ctx, doc, obj, "an object");
	*v = ap_jv_get(obj, key);
	if (*v || !required)
		return AP_OK;
	return ap_json_report(ctx, doc, obj, AP_ERROR, AP_MEANING, NULL, "key-missing",
		"no key \"%s\"", key);
}

static enum ap_status to_int(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	int64_t lo, int64_t hi, int64_t *r)
{
	enum whole whole;
	char range[96];
	int64_t n;

	if (v->type != AP_JNUMBER)
		return wrong_type(ctx, doc, v, "an integer");
	whole = whole_number(doc->text + v->offset, &n);
	if (whole == FRACTION)
		return wrong_type(ctx, doc, v, "an integer");
	if (whole == WHOLE && n >= lo && n <= hi) {
		*r = n;
		return AP_OK;
	}
	if (hi == INT64_MAX && lo > INT64_MIN && whole == WHOLE)
		snprintf(range, sizeof range, "at least %" PRId64, lo);
	else
		snprintf(range, sizeof range, "an integer from %" PRId64 " to %" PRId64, lo, hi);
	return out_of_range(ctx, doc, v, range);
}

static enum ap_status to_num(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	double lo, double hi, double *r)
{
	char low[32], high[32], range[96];

	if (v->type != AP_JNUMBER)
		return wrong_type(ctx, doc, v, "a number");
	if (v->u.number >= lo && v->u.number <= hi) {
		*r = v->u.number;
		return AP_OK;
	}
	if (isfinite(lo))
		ap_format_double(lo, low);
	if (isfinite(hi))
		ap_format_double(hi, high);
	if (isfinite(lo) && isfinite(hi))
		snprintf(range, sizeof range, "a number from %s to %s", low, high);
	else if (isfinite(lo))
		snprintf(range, sizeof range, "at least %s", low);
	else
		snprintf(range, sizeof range, "at most %s", high);
	return out_of_range(ctx, doc, v, range);
}

/* The member with a type that needs no conversion; *v is NULL where it is absent. */
static enum ap_status get_typed(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, bool required, enum ap_jtype type,
	const struct ap_jv **v)
{
	static const char *const names[] = {"null", "true or false", "a number", "a string",
		"an array", "an object"};

	AP_TRY(find(ctx, doc, obj, key, required, v));
	return !*v || (*v)->type == type ? AP_OK : wrong_type(ctx, doc, *v, names[type]);
}

enum ap_status ap_json_get_str(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const char **r)
{
	const struct ap_jv *v;

	AP_TRY(get_typed(ctx, doc, obj, key, true, AP_JSTRING, &v));
	*r = v->u.string;
	return AP_OK;
}

enum ap_status ap_json_get_int(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, int64_t lo, int64_t hi, int64_t *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, true, &v));
	return to_int(ctx, doc, v, lo, hi, r);
}

enum ap_status ap_json_get_num(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, double lo, double hi, double *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, true, &v));
	return to_num(ctx, doc, v, lo, hi, r);
}

enum ap_status ap_json_get_arr(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	const struct ap_jv *v;

	AP_TRY(get_typed(ctx, doc, obj, key, true, AP_JARRAY, &v));
	*r = v;
	return AP_OK;
}

enum ap_status ap_json_get_obj(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	const struct ap_jv *v;

	AP_TRY(get_typed(ctx, doc, obj, key, true, AP_JOBJECT, &v));
	*r = v;
	return AP_OK;
}

enum ap_status ap_json_opt_str(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const char **r)
{
	const struct ap_jv *v;

	AP_TRY(get_typed(ctx, doc, obj, key, false, AP_JSTRING, &v));
	if (v)
		*r = v->u.string;
	return AP_OK;
}

enum ap_status ap_json_opt_int(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, int64_t lo, int64_t hi, int64_t *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, false, &v));
	return v ? to_int(ctx, doc, v, lo, hi, r) : AP_OK;
}

enum ap_status ap_json_opt_num(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, double lo, double hi, double *r)
{
	const struct ap_jv *v;

	AP_TRY(find(ctx, doc, obj, key, false, &v));
	return v ? to_num(ctx, doc, v, lo, hi, r) : AP_OK;
}

enum ap_status ap_json_opt_bool(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, bool *r)
{
	const struct ap_jv *v;

	AP_TRY(get_typed(ctx, doc, obj, key, false, AP_JBOOL, &v));
	if (v)
		*r = v->u.flag;
	return AP_OK;
}

enum ap_status ap_json_opt_arr(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	const struct ap_jv *v;

	AP_TRY(get_typed(ctx, doc, obj, key, false, AP_JARRAY, &v));
	if (v)
		*r = v;
	return AP_OK;
}

enum ap_status ap_json_opt_obj(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_jv *obj, const char *key, const struct ap_jv **r)
{
	const struct ap_jv *v;

	AP_TRY(get_typed(ctx, doc, obj, key, false, AP_JOBJECT, &v));
	if (v)
		*r = v;
	return AP_OK;
}

enum ap_status ap_json_ints(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *arr,
	int64_t lo, int64_t hi, int64_t **r, size_t *n)
{
	int64_t *numbers;
	size_t i = 0;

	if (arr->type != AP_JARRAY)
		return wrong_type(ctx, doc, arr, "an array of integers");
	numbers = AP_NEW_N(ctx->arena, int64_t, arr->count);
	for (const struct ap_jv *v = ap_jv_first(arr); v; v = ap_jv_next(v))
		AP_TRY(to_int(ctx, doc, v, lo, hi, &numbers[i++]));
	*r = numbers;
	*n = i;
	return AP_OK;
}

/* The known key that the unknown one was probably meant to be, NULL where none is near. */
static const char *nearest(const char *key, const char *const *known)
{
	int best = (int)(strlen(key) > 60 ? 20 : strlen(key) / 3) + 2; /* must be nearer than this */
	const char *found = NULL;

	for (; *known; known++) {
		int distance = ap_str_distance(key, *known, best - 1);

		if (distance < best) {
			best = distance;
			found = *known;
		}
	}
	return found;
}

bool ap_json_is_known(const struct ap_jv *v, const char *const *known)
{
	while (*known && (**known != *v->key || strcmp(*known, v->key) != 0))
		known++;
	return *known;
}

enum ap_status ap_json_unknown(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	const char *const *known, size_t n)
{
	const char *near = nearest(v->key, known), *name = ap_diag_name(ctx->diag, v->key);
	char such[40] = "";

	if (n > 1)
		snprintf(such, sizeof such, " (%zu such)", n);
	if (near)
		return ap_json_report_at(ctx, doc, v->key_offset, v, AP_WARNING, AP_OK, "key-unknown",
			"unknown key \"%s\"; is \"%s\" meant?%s", name, near, such);
	return ap_json_report_at(ctx, doc, v->key_offset, v, AP_WARNING, AP_OK, "key-unknown",
		"unknown key \"%s\"%s", name, such);
}

enum ap_status ap_json_known(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *obj,
	const char *const *known)
{
	enum ap_status st = AP_OK;

	for (const struct ap_jv *v = ap_jv_first(obj); v; v = ap_jv_next(v)) {
		enum ap_status added;

		if (ap_json_is_known(v, known))
			continue;
		added = ap_json_unknown(ctx, doc, v, known, 1);
		if (st == AP_OK)
			st = added;
	}
	return st;
}
