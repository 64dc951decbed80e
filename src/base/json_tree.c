/* SPDX-License-Identifier: Apache-2.0 */
/* Values, their places in the text, and reports about them. */
#include "base/json_tree.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_scan.h"
#include "base/num.h"
#include "base/str.h"

enum { BLOCK = 4096 };

/* Characters, not bytes: those inside a character do not count. */
static uint32_t count_chars(const char *s, size_t len)
{
	uint32_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xC0) != 0x80;
	return n;
}

static void place_advance(struct ap_json_place *place, const char *s, size_t len)
{
	const char *end = s + len, *line;

	while ((line = memchr(s, '\n', (size_t)(end - s))) != NULL) {
		*place = (struct ap_json_place){.line = place->line + 1, .col = 1};
		s = line + 1;
	}
	place->col += count_chars(s, (size_t)(end - s));
}

void ap_json_place_index(struct ap_ctx *ctx, struct ap_json *doc)
{
	struct ap_json_place place = {.line = 1, .col = 1};
	size_t n = doc->len / BLOCK;

	doc->blocks = AP_NEW_N(ctx->arena, struct ap_json_place, n + 1);
	for (size_t i = 0; i < n; i++) {
		doc->blocks[i] = place;
		place_advance(&place, doc->text + i * BLOCK, BLOCK);
	}
	doc->blocks[n] = place;
}

struct ap_json_place ap_json_place_of(const struct ap_json *doc, size_t offset)
{
	size_t start = offset - offset % BLOCK;
	struct ap_json_place place = doc->blocks[start / BLOCK];

	assert(offset <= doc->len);
	place_advance(&place, doc->text + start, offset - start);
	return place;
}

static void add_token(struct ap_str *b, const char *key)
{
	for (; *key; key++) {
		if (*key == '~')
			ap_str_add(b, "~0");
		else if (*key == '/')
			ap_str_add(b, "~1");
		else
			ap_str_addc(b, *key);
	}
}

const char *ap_jv_pointer(struct ap_arena *arena, const struct ap_jv *v)
{
	const struct ap_jv *chain[AP_JSCAN_DEPTH];
	struct ap_str b;
	size_t n = 0;

	for (; v->up; v -= v->up)
		chain[n++] = v;
	ap_str_init(&b, arena);
	while (n--) {
		ap_str_addc(&b, '/');
		if (chain[n]->key)
			add_token(&b, chain[n]->key);
		else
			ap_str_addf(&b, "%" PRIu32, chain[n]->key_offset);
	}
	return b.s;
}

static enum ap_status __attribute__((format(printf, 9, 0))) report(struct ap_ctx *ctx,
	const struct ap_json *doc, size_t offset, const struct ap_jv *v, enum ap_level level,
	enum ap_status st, const char *oper, const char *check, const char *fmt, va_list ap)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_where where = {.file = doc->file, .oper = oper};
	struct ap_str text;

	if (offset != SIZE_MAX) {
		struct ap_json_place place = ap_json_place_of(doc, offset);

		where.line = place.line;
		where.col = place.col;
	}
	if (v)
		where.pointer = ap_jv_pointer(ctx->scratch, v);
	ap_str_init(&text, ctx->scratch);
	ap_str_vaddf(&text, fmt, ap);
	st = ap_diag_add(ctx->diag, level, st, &where, check, "%s", text.s);
	ap_arena_release(ctx->scratch, mark);
	return st;
}

enum ap_status ap_json_report_at(struct ap_ctx *ctx, const struct ap_json *doc, size_t offset,
	const struct ap_jv *v, enum ap_level level, enum ap_status st, const char *check,
	const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	st = report(ctx, doc, offset, v, level, st, NULL, check, fmt, ap);
	va_end(ap);
	return st;
}

enum ap_status ap_json_report(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_jv *v,
	enum ap_level level, enum ap_status st, const char *oper, const char *check, const char *fmt,
	...)
{
	va_list ap;

	va_start(ap, fmt);
	st = report(ctx, doc, v ? v->offset : SIZE_MAX, v, level, st, oper, check, fmt, ap);
	va_end(ap);
	return st;
}

const struct ap_jv *ap_json_root(const struct ap_json *doc)
{
	return doc->values;
}

const char *ap_json_file(const struct ap_json *doc)
{
	return doc->file;
}

enum ap_jtype ap_jv_type(const struct ap_jv *v)
{
	return v->type;
}

size_t ap_jv_count(const struct ap_jv *v)
{
	return v->count;
}

bool ap_jv_is_shallow(const struct ap_jv *v, int depth)
{
	if (v->type != AP_JARRAY && v->type != AP_JOBJECT)
		return true;
	for (const struct ap_jv *m = ap_jv_first(v); m && depth; m = ap_jv_next(m))
		if (!ap_jv_is_shallow(m, depth - 1))
			return false;
	return depth > 0;
}

const struct ap_jv *ap_jv_first(const struct ap_jv *v)
{
	return v->count ? v + 1 : NULL;
}

const struct ap_jv *ap_jv_next(const struct ap_jv *v)
{
	return v->skip ? v + v->skip : NULL;
}

const char *ap_jv_key(const struct ap_jv *v)
{
	return v->key;
}

const struct ap_jv *ap_jv_get(const struct ap_jv *obj, const char *key)
{
	const struct ap_jv *v = obj->type == AP_JOBJECT ? ap_jv_first(obj) : NULL;

	while (v && (*v->key != *key || strcmp(v->key, key) != 0))
		v = ap_jv_next(v);
	return v;
}

const char *ap_jv_str(const struct ap_jv *v)
{
	assert(v->type == AP_JSTRING);
	return v->u.string;
}

bool ap_jv_bool(const struct ap_jv *v)
{
	assert(v->type == AP_JBOOL);
	return v->u.flag;
}

double ap_jv_double(const struct ap_jv *v)
{
	assert(v->type == AP_JNUMBER);
	return v->u.number;
}
