/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/bind.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"

/* Is value one of the words of list, which are parted by '|'? */
static bool listed(const char *list, size_t len, const char *value)
{
	const char *end = list + len;
	size_t n = strlen(value);

	for (const char *p = list; p < end;) {
		const char *bar = memchr(p, '|', (size_t)(end - p));
		size_t w = (size_t)((bar ? bar : end) - p);

		if (w == n && memcmp(p, value, n) == 0)
			return true;
		p += w + 1;
	}
	return false;
}

/* The attribute's value as a word of a condition; a missing one is "0". */
static const char *value_of(const struct ap_attrs *attrs, const char *name, char buf[32])
{
	const char *s = ap_attr_str(attrs, name, NULL);

	if (s)
		return s;
	snprintf(buf, 32, "%" PRId64, ap_attr_int(attrs, name, 0));
	return buf;
}

static bool is_set(const struct ap_attrs *attrs, const char *name)
{
	const struct ap_attr *a = ap_attr_get(attrs, name);

	return a && (a->type == AP_ATTR_BOOL || a->type == AP_ATTR_INT ? a->i != 0 : true);
}

/* One condition, text[0..len): attr, !attr, attr=v|w, attr?=v, outputs=n. */
static bool holds(const struct ap_bind_in *in, const char *text, size_t len)
{
	const char *eq = memchr(text, '=', len);
	char name[32], buf[32];
	bool negated = *text == '!';
	size_t n = eq ? (size_t)(eq - text) : len;
	bool missing_ok = eq && n > 0 && text[n - 1] == '?';
	size_t vlen = eq ? len - n - 1 : 0;

	snprintf(name, sizeof name, "%.*s", (int)(n - negated - missing_ok), text + negated);
	if (!eq)
		return is_set(in->attrs, name) != negated;
	if (strcmp(name, "outputs") == 0) {
		snprintf(buf, sizeof buf, "%d", in->nout ? in->nout : 1);
		return listed(eq + 1, vlen, buf);
	}
	if (missing_ok && !ap_attr_get(in->attrs, name))
		return true;
	return listed(eq + 1, vlen, value_of(in->attrs, name, buf));
}

bool ap_bind_when(struct ap_binding *b)
{
	const char *p = b->row->when;

	while (*p) {
		const char *amp = strstr(p, " & ");
		size_t len = amp ? (size_t)(amp - p) : strlen(p);

		if (!holds(b->in, p, len))
			return ap_bind_fail(b, "operator-attr", -1, "%s is supported with %s only",
				b->row->name, b->row->when);
		p += len + (amp ? 3 : 0);
	}
	return true;
}
