/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_write.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "base/json.h"
#include "base/num.h"
#include "base/str.h"

enum { MAX_DEPTH = 64 };

static void flush(struct ap_jw *w)
{
	if (w->len)
		w->write(w->user, w->buf, w->len);
	w->len = 0;
}

static void put(struct ap_jw *w, const char *s, size_t len)
{
	if (len > sizeof w->buf - w->len) {
		flush(w);
		if (len > sizeof w->buf) {
			w->write(w->user, s, len);
			return;
		}
	}
	memcpy(w->buf + w->len, s, len);
	w->len += len;
}

static void put_char(struct ap_jw *w, char c)
{
	if (w->len == sizeof w->buf)
		flush(w);
	w->buf[w->len++] = c;
}

static uint64_t top(const struct ap_jw *w)
{
	return UINT64_C(1) << (w->depth - 1);
}

static void new_line(struct ap_jw *w, int depth)
{
	static const char blanks[] = "                                ";
	int left = depth * w->indent;

	put_char(w, '\n');
	while (left > 0) {
		int n = left < (int)sizeof blanks - 1 ? left : (int)sizeof blanks - 1;

		put(w, blanks, (size_t)n);
		left -= n;
	}
}

static bool on_one_line(const struct ap_jw *w)
{
	return !w->indent || w->flat & top(w);
}

/* Writes what precedes a key or element. */
static void begin_item(struct ap_jw *w)
{
	bool follows = w->comma & top(w);

	if (follows)
		put_char(w, ',');
	if (!on_one_line(w))
		new_line(w, w->depth);
	else if (follows && w->indent)
		put_char(w, ' ');
	w->comma |= top(w);
}

static void begin_value(struct ap_jw *w)
{
	if (!w->depth)
		return;
	assert(!(w->object & top(w)) == !w->have_key);
	if (!w->have_key)
		begin_item(w);
	w->have_key = false;
}

/* Flushes after the outermost value. */
static void end_value(struct ap_jw *w)
{
	if (!w->depth)
		flush(w);
}

static void put_value(struct ap_jw *w, const char *text)
{
	begin_value(w);
	put(w, text, strlen(text));
	end_value(w);
}

static void put_string(struct ap_jw *w, const char *s)
{
	const char *plain = s;

	put_char(w, '"');
	for (; *s; s++) {
		unsigned char c;
		static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
		const char *at;
		char text[8];
		int len;

		if ((unsigned char)*s >= ' ' && *s != '"' && *s != '\\')
			continue;
		put(w, plain, (size_t)(s - plain));
		c = (unsigned char)*s;
		at = strchr(from, c);
		if (at)
			len = snprintf(text, sizeof text, "\\%c", to[at - from]);
		else
			len = snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
		put(w, text, (size_t)len);
		plain = s + 1;
	}
	put(w, plain, (size_t)(s - plain));
	put_char(w, '"');
}

void ap_jw_init(struct ap_jw *w, ap_write_fn *write, void *user, int indent)
{
	w->write = write;
	w->user = user;
	w->indent = indent;
	w->depth = 0;
	w->object = w->comma = w->flat = 0;
	w->have_key = false;
	w->len = 0;
}

void ap_jw_str_init(struct ap_jw *w, struct ap_str *out, int indent)
{
	ap_jw_init(w, ap_str_take, out, indent);
}

static void open_container(struct ap_jw *w, bool object, bool flat)
{
	begin_value(w);
	assert(w->depth < MAX_DEPTH);
	flat = flat || (w->depth && w->flat & top(w));
	w->depth++;
	w->object = object ? w->object | top(w) : w->object & ~top(w);
	w->flat = flat ? w->flat | top(w) : w->flat & ~top(w);
	w->comma &= ~top(w);
	put_char(w, object ? '{' : '[');
}

void ap_jw_obj(struct ap_jw *w)
{
	open_container(w, true, false);
}

void ap_jw_arr(struct ap_jw *w)
{
	open_container(w, false, false);
}

void ap_jw_obj_flat(struct ap_jw *w)
{
	open_container(w, true, true);
}

void ap_jw_arr_flat(struct ap_jw *w)
{
	open_container(w, false, true);
}

void ap_jw_end(struct ap_jw *w)
{
	assert(w->depth && !w->have_key);
	if (w->comma & top(w) && !on_one_line(w))
		new_line(w, w->depth - 1);
	put_char(w, w->object & top(w) ? '}' : ']');
	w->depth--;
	end_value(w);
}

void ap_jw_key(struct ap_jw *w, const char *key)
{
	assert(w->depth && w->object & top(w) && !w->have_key);
	begin_item(w);
	put_string(w, key);
	put_char(w, ':');
	if (w->indent)
		put_char(w, ' ');
	w->have_key = true;
}

void ap_jw_str(struct ap_jw *w, const char *s)
{
	begin_value(w);
	put_string(w, s);
	end_value(w);
}

void ap_jw_int(struct ap_jw *w, int64_t v)
{
	char text[24];

	begin_value(w);
	put(w, text, ap_decimal_int(v, text));
	end_value(w);
}

void ap_jw_num(struct ap_jw *w, double v)
{
	char text[32];

	put_value(w, isfinite(v) ? ap_format_double(v, text) : "null");
}

void ap_jw_bool(struct ap_jw *w, bool v)
{
	put_value(w, v ? "true" : "false");
}

void ap_jw_null(struct ap_jw *w)
{
	put_value(w, "null");
}

void ap_jw_raw(struct ap_jw *w, const char *json)
{
	put_value(w, json);
}

void ap_jw_value(struct ap_jw *w, const struct ap_json *doc, const struct ap_jv *v)
{
	int64_t whole;

	switch (ap_jv_type(v)) {
	case AP_JNULL:
		ap_jw_null(w);
		return;
	case AP_JBOOL:
		ap_jw_bool(w, ap_jv_bool(v));
		return;
	case AP_JNUMBER:
		if (ap_jv_int(doc, v, &whole))
			ap_jw_int(w, whole);
		else
			ap_jw_num(w, ap_jv_double(v));
		return;
	case AP_JSTRING:
		ap_jw_str(w, ap_jv_str(v));
		return;
	case AP_JARRAY:
		ap_jw_arr_flat(w);
		break;
	case AP_JOBJECT:
		ap_jw_obj_flat(w);
		break;
	}
	for (const struct ap_jv *m = ap_jv_first(v); m; m = ap_jv_next(m)) {
		if (ap_jv_type(v) == AP_JOBJECT)
			ap_jw_key(w, ap_jv_key(m));
		ap_jw_value(w, doc, m);
	}
	ap_jw_end(w);
}

void ap_jw_ints(struct ap_jw *w, const int64_t *v, size_t n)
{
	ap_jw_arr_flat(w);
	for (size_t i = 0; i < n; i++)
		ap_jw_int(w, v[i]);
	ap_jw_end(w);
}

void ap_jw_int32s(struct ap_jw *w, const int32_t *v, size_t n)
{
	ap_jw_arr_flat(w);
	for (size_t i = 0; i < n; i++)
		ap_jw_int(w, v[i]);
	ap_jw_end(w);
}

void ap_jw_kobj(struct ap_jw *w, const char *key)
{
	ap_jw_key(w, key);
	ap_jw_obj(w);
}

void ap_jw_karr(struct ap_jw *w, const char *key)
{
	ap_jw_key(w, key);
	ap_jw_arr(w);
}

void ap_jw_kobj_flat(struct ap_jw *w, const char *key)
{
	ap_jw_key(w, key);
	ap_jw_obj_flat(w);
}

void ap_jw_karr_flat(struct ap_jw *w, const char *key)
{
	ap_jw_key(w, key);
	ap_jw_arr_flat(w);
}

void ap_jw_kstr(struct ap_jw *w, const char *key, const char *s)
{
	ap_jw_key(w, key);
	ap_jw_str(w, s);
}

void ap_jw_kraw(struct ap_jw *w, const char *key, const char *json)
{
	ap_jw_key(w, key);
	ap_jw_raw(w, json ? json : "null");
}

void ap_jw_kint(struct ap_jw *w, const char *key, int64_t v)
{
	ap_jw_key(w, key);
	ap_jw_int(w, v);
}

void ap_jw_knum(struct ap_jw *w, const char *key, double v)
{
	ap_jw_key(w, key);
	ap_jw_num(w, v);
}

void ap_jw_kbool(struct ap_jw *w, const char *key, bool v)
{
	ap_jw_key(w, key);
	ap_jw_bool(w, v);
}

void ap_jw_kints(struct ap_jw *w, const char *key, const int64_t *v, size_t n)
{
	ap_jw_key(w, key);
	ap_jw_ints(w, v, n);
}

void ap_jw_fork(struct ap_jw *fork, const struct ap_jw *w, struct ap_str *out)
{
	assert(w->depth && !w->have_key);
	ap_jw_str_init(fork, out, w->indent);
	fork->depth = w->depth;
	fork->object = w->object;
	fork->comma = w->comma;
	fork->flat = w->flat;
}

void ap_jw_fork_end(struct ap_jw *fork)
{
	assert(fork->depth && !fork->have_key);
	flush(fork);
}

void ap_jw_join(struct ap_jw *w, const char *text, size_t len)
{
	assert(w->depth && !w->have_key);
	put(w, text, len);
	w->comma |= top(w);
}

void ap_jw_finish(struct ap_jw *w)
{
	assert(!w->depth && !w->have_key);
	put_char(w, '\n');
	flush(w);
}
