/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

enum { MAX_DEPTH = 64 };

static void put(struct ap_jw *w, const char *s)
{
	w->write(w->user, s, strlen(s));
}

static uint64_t top(const struct ap_jw *w)
{
	return UINT64_C(1) << (w->depth - 1);
}

static void new_line(struct ap_jw *w, int depth)
{
	static const char blanks[] = "                                ";
	int left = depth * w->indent;

	put(w, "\n");
	while (left > 0) {
		int n = left < (int)sizeof blanks - 1 ? left : (int)sizeof blanks - 1;

		w->write(w->user, blanks, (size_t)n);
		left -= n;
	}
}

static bool on_one_line(const struct ap_jw *w)
{
	return !w->indent || w->flat & top(w);
}

/* What stands before a key or an element. */
static void begin_item(struct ap_jw *w)
{
	bool follows = w->comma & top(w);

	if (follows)
		put(w, ",");
	if (!on_one_line(w))
		new_line(w, w->depth);
	else if (follows && w->indent)
		put(w, " ");
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

static void put_escaped(struct ap_jw *w, unsigned char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = strchr(from, c);
	char text[8];

	if (at)
		snprintf(text, sizeof text, "\\%c", to[at - from]);
	else
		snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
	put(w, text);
}

static void put_string(struct ap_jw *w, const char *s)
{
	const char *plain = s;

	put(w, "\"");
	for (; *s; s++) {
		if ((unsigned char)*s >= ' ' && *s != '"' && *s != '\\')
			continue;
		w->write(w->user, plain, (size_t)(s - plain));
		put_escaped(w, (unsigned char)*s);
		plain = s + 1;
	}
	w->write(w->user, plain, (size_t)(s - plain));
	put(w, "\"");
}

static void put_int(struct ap_jw *w, int64_t v)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, v);
	put(w, text);
}

void ap_jw_init(struct ap_jw *w, ap_write_fn *write, void *user, int indent)
{
	*w = (struct ap_jw){.write = write, .user = user, .indent = indent};
}

static void write_to_str(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

void ap_jw_str_init(struct ap_jw *w, struct ap_str *out, int indent)
{
	ap_jw_init(w, write_to_str, out, indent);
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
	put(w, object ? "{" : "[");
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
	put(w, w->object & top(w) ? "}" : "]");
	w->depth--;
}

void ap_jw_key(struct ap_jw *w, const char *key)
{
	assert(w->depth && w->object & top(w) && !w->have_key);
	begin_item(w);
	put_string(w, key);
	put(w, w->indent ? ": " : ":");
	w->have_key = true;
}

void ap_jw_str(struct ap_jw *w, const char *s)
{
	begin_value(w);
	put_string(w, s);
}

void ap_jw_int(struct ap_jw *w, int64_t v)
{
	begin_value(w);
	put_int(w, v);
}

void ap_jw_num(struct ap_jw *w, double v)
{
	char text[32];

	begin_value(w);
	put(w, isfinite(v) ? ap_format_double(v, text) : "null");
}

void ap_jw_bool(struct ap_jw *w, bool v)
{
	begin_value(w);
	put(w, v ? "true" : "false");
}

void ap_jw_null(struct ap_jw *w)
{
	begin_value(w);
	put(w, "null");
}

void ap_jw_raw(struct ap_jw *w, const char *json)
{
	begin_value(w);
	put(w, json);
}

void ap_jw_ints(struct ap_jw *w, const int64_t *v, size_t n)
{
	ap_jw_arr_flat(w);
	for (size_t i = 0; i < n; i++)
		ap_jw_int(w, v[i]);
	ap_jw_end(w);
}

void ap_jw_kstr(struct ap_jw *w, const char *key, const char *s)
{
	ap_jw_key(w, key);
	ap_jw_str(w, s);
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

void ap_jw_finish(struct ap_jw *w)
{
	assert(!w->depth && !w->have_key);
	put(w, "\n");
}
