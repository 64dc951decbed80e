/* SPDX-License-Identifier: Apache-2.0 */
#include "rule/binding.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "rule/attr.h"

bool ap_bind_fail(struct ap_binding *b, const char *check, int operand, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	b->fault.check = check;
	b->fault.text = ap_arena_strdup(b->ctx->arena, text);
	b->fault.operand = operand;
	return false;
}

unsigned ap_bind_slot(const struct ap_binding *b, unsigned i)
{
	return b->in->slot ? b->in->slot[i] : i;
}

const struct ap_shape *ap_bind_declared(const struct ap_binding *b, unsigned i)
{
	const struct ap_shape *s = b->in->declared;

	return s && i < b->in->nout && s[i].rank != AP_RANK_UNKNOWN ? &s[i] : NULL;
}

const char *ap_shape_text(struct ap_arena *arena, const int64_t *dim, uint8_t rank)
{
	struct ap_str s;

	ap_str_init(&s, arena);
	ap_str_addc(&s, '[');
	for (uint8_t i = 0; i < rank; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? ", " : "", dim[i]);
	ap_str_addc(&s, ']');
	return s.s;
}

const char *ap_bind_shape(struct ap_binding *b, const int64_t *dim, uint8_t rank)
{
	return ap_shape_text(b->ctx->arena, dim, rank);
}

bool ap_bind_factor(struct ap_binding *b, char letter, uint8_t flags, int64_t size, uint8_t *id)
{
	struct ap_bound *o = &b->bound;

	if (o->nfactor == AP_MAX_FACTOR)
		return ap_bind_fail(b, "operator-rank", -1,
			"more than %d different dimensions in one operator", AP_MAX_FACTOR);
	*id = o->nfactor;
	o->factor[o->nfactor++] = (struct ap_factor){letter, flags, size};
	return true;
}

const struct ap_attr *ap_bind_attr(const struct ap_binding *b, struct ap_name name)
{
	char buf[32];

	snprintf(buf, sizeof buf, "%.*s", (int)name.len, name.s);
	return ap_attr_get(b->in->attrs, buf);
}
