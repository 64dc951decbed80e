/* SPDX-License-Identifier: Apache-2.0 */
#include "import/ir_read.h"

#include <stdarg.h>
#include <string.h>

#include "base/diag.h"
#include "base/str.h"

bool ap_ir_fault(struct ap_ir_read *r, int64_t line, enum ap_status st, const char *fmt, ...)
{
	struct ap_where where = {.file = r->file, .line = line};
	struct ap_str text;
	va_list ap;

	if (r->status != AP_OK)
		return false;
	r->status = st;
	ap_str_init(&text, r->ctx->arena);
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	r->ended = r->piece && (st == AP_SYNTAX || st == AP_MEANING);
	if (r->ended)
		ap_diag_add(r->ctx->diag, AP_WARNING, AP_OK, &where, "dump-partial",
			"the piece is read up to here: %s", text.s);
	else
		ap_diag_add(r->ctx->diag, AP_ERROR, st, &where, NULL, "%s", text.s);
	return false;
}

bool ap_ir_expected(struct ap_ir_read *r, const char *what)
{
	const char *p = r->p;
	size_t n = 0;

	if (p == r->end)
		return ap_ir_fault(r, r->line, AP_SYNTAX, "the dump ends here; expected %s", what);
	if (*p == '\n')
		return ap_ir_fault(r, r->line, AP_SYNTAX, "the line ends here; expected %s", what);
	while (p + n < r->end && n < 24 && p[n] != '\n')
		n++;
	return ap_ir_fault(r, r->line, AP_SYNTAX, "\"%s\" is not understood; expected %s",
		ap_diag_name(r->ctx->diag, ap_ir_copy(r, p, n)), what);
}

void ap_ir_blanks(struct ap_ir_read *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
}

void ap_ir_space(struct ap_ir_read *r)
{
	ap_ir_blanks(r);
	while (r->p < r->end && *r->p == '\n') {
		r->p++;
		r->line++;
		ap_ir_blanks(r);
	}
}

void ap_ir_skip_line(struct ap_ir_read *r)
{
	const char *nl = memchr(r->p, '\n', (size_t)(r->end - r->p));

	if (nl)
		r->line++;
	r->p = nl ? nl + 1 : r->end;
}

bool ap_ir_at(const struct ap_ir_read *r, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(r->end - r->p) >= n && !memcmp(r->p, text, n);
}

bool ap_ir_take(struct ap_ir_read *r, const char *text)
{
	if (!ap_ir_at(r, text))
		return false;
	r->p += strlen(text);
	return true;
}

bool ap_ir_need(struct ap_ir_read *r, const char *text)
{
	char what[40] = "\"";

	if (ap_ir_take(r, text))
		return true;
	strncat(what, text, sizeof what - 3);
	strcat(what, "\"");
	return ap_ir_expected(r, what);
}

const char *ap_ir_copy(struct ap_ir_read *r, const char *p, size_t n)
{
	return ap_arena_strndup(r->ctx->arena, p, n);
}

void ap_ir_pass(struct ap_ir_read *r, const char *ends)
{
	const char *nl = *ends ? NULL : memchr(r->p, '\n', (size_t)(r->end - r->p));

	while (*ends && r->p < r->end && *r->p != '\n' && !strchr(ends, *r->p))
		r->p++;
	if (!*ends)
		r->p = nl ? nl : r->end;
}

const char *ap_ir_until(struct ap_ir_read *r, const char *ends)
{
	const char *from = r->p;

	ap_ir_pass(r, ends);
	return ap_ir_copy(r, from, (size_t)(r->p - from));
}

void *ap_ir_keep(struct ap_ir_read *r, struct ap_mark mark, const void *v, size_t bytes)
{
	void *kept = bytes ? ap_arena_memdup(r->ctx->arena, v, bytes) : NULL;

	ap_arena_release(r->ctx->scratch, mark);
	return kept;
}

int64_t ap_ir_digits(struct ap_ir_read *r)
{
	int64_t v = 0;
	const char *from = r->p;

	for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
		if (r->p - from < 15)
			v = v * 10 + (*r->p - '0');
	return r->p == from || r->p - from > 15 ? -1 : v;
}

bool ap_ir_balanced(struct ap_ir_read *r, const char **text)
{
	const char *from = r->p;
	int64_t line = r->line, depth = 0;

	for (; r->p < r->end; r->p++) {
		if (strchr("([{", *r->p) && *r->p)
			depth++;
		else if (strchr(")]}", *r->p) && *r->p)
			depth--;
		else if (*r->p == '\n')
			r->line++;
		if (depth == 0) {
			r->p++;
			*text = ap_ir_copy(r, from, (size_t)(r->p - from));
			return true;
		}
	}
	return ap_ir_fault(r, line, AP_SYNTAX, "the bracket is never closed");
}
