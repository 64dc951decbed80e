/* SPDX-License-Identifier: Apache-2.0 */
#include "base/xml.h"

#include <expat.h>
#include <limits.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"

struct reading {
	struct ap_ctx *ctx;
	const char *file;
	XML_Parser parser;
	struct ap_xml *root, *open; /* the innermost element that has not ended */
	struct ap_xml *last[AP_XML_MOST_DEPTH + 1]; /* by depth: the last element there of the open one */
	uint32_t depth, elements;
	enum ap_status status; /* of the first fault that is ours to report */
};

static enum ap_status fault(struct reading *r, enum ap_status st, const char *text)
{
	const struct ap_where where = {.file = r->file, .line = (int64_t)XML_GetCurrentLineNumber(r->parser),
		.col = (int64_t)XML_GetCurrentColumnNumber(r->parser) + 1};

	return ap_diag_add(r->ctx->diag, AP_ERROR, st, &where, NULL, "%s", text);
}

static void stop(struct reading *r, enum ap_status st, const char *text)
{
	if (r->status == AP_OK)
		r->status = fault(r, st, text);
	(void)XML_StopParser(r->parser, XML_FALSE);
}

static const struct ap_xml_attribute *keep_attributes(struct ap_arena *arena, const XML_Char **pairs)
{
	const struct ap_xml_attribute *first = NULL;
	size_t n = 0;

	while (pairs[n])
		n += 2;
	for (; n; n -= 2) {
		struct ap_xml_attribute *a = AP_NEW(arena, struct ap_xml_attribute);

		*a = (struct ap_xml_attribute){ap_arena_strdup(arena, pairs[n - 2]),
			ap_arena_strdup(arena, pairs[n - 1]), first};
		first = a;
	}
	return first;
}

static void start(void *user, const XML_Char *name, const XML_Char **pairs)
{
	struct reading *r = user;
	struct ap_xml *x;

	if (r->status != AP_OK)
		return;
	if (r->depth == AP_XML_MOST_DEPTH || r->elements == AP_XML_MOST_ELEMENTS) {
		stop(r, AP_LIMIT, r->depth == AP_XML_MOST_DEPTH ? "nests deeper than 64 elements"
			: "holds more than 65536 elements");
		return;
	}
	x = AP_NEW(r->ctx->arena, struct ap_xml);
	*x = (struct ap_xml){
		.name = ap_arena_strdup(r->ctx->arena, name),
		.line = (int64_t)XML_GetCurrentLineNumber(r->parser),
		.col = (int64_t)XML_GetCurrentColumnNumber(r->parser) + 1,
		.attribute = keep_attributes(r->ctx->arena, pairs),
		.parent = r->open,
	};
	if (r->last[r->depth])
		r->last[r->depth]->next = x;
	else if (r->open)
		r->open->first = x;
	else
		r->root = x;
	r->last[r->depth++] = x;
	r->last[r->depth] = NULL;
	r->open = x;
	r->elements++;
}

static void end(void *user, const XML_Char *name)
{
	struct reading *r = user;

	(void)name;
	if (r->status != AP_OK)
		return;
	r->depth--;
	r->open = r->depth ? r->last[r->depth - 1] : NULL;
}

static void start_doctype(void *user, const XML_Char *name, const XML_Char *system, const XML_Char *public,
	int internal)
{
	(void)name;
	(void)system;
	(void)public;
	(void)internal;
	stop(user, AP_MEANING, "has a document type declaration (<!DOCTYPE); expected XML without, as "
		"entities are not expanded and no other file is read");
}

static enum ap_status parse(struct reading *r, const char *text, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf"; /* would count as a column */
	const XML_Char *what;

	if (len >= strlen(mark) && !memcmp(text, mark, strlen(mark))) {
		text += strlen(mark);
		len -= strlen(mark);
	}
	if (len > INT_MAX)
		return fault(r, AP_LIMIT, "is larger than 2 GB");
	XML_SetUserData(r->parser, r);
	XML_SetElementHandler(r->parser, start, end);
	XML_SetStartDoctypeDeclHandler(r->parser, start_doctype);
	if (XML_Parse(r->parser, text, (int)len, XML_TRUE) == XML_STATUS_OK)
		return r->status;
	if (r->status != AP_OK)
		return r->status;
	if (XML_GetErrorCode(r->parser) == XML_ERROR_NO_MEMORY)
		return fault(r, AP_LIMIT, "memory ran out while the XML was read");
	what = XML_ErrorString(XML_GetErrorCode(r->parser));
	return fault(r, AP_SYNTAX, ap_arena_printf(r->ctx->arena, "is no XML: %s", what ? what : "unknown"));
}

struct attempt { /* memory of the arena may end inside, and the parser must be freed then */
	struct reading *r;
	const char *text;
	size_t len;
	enum ap_status status;
};

static void try_parse(void *user)
{
	struct attempt *a = user;

	a->status = parse(a->r, a->text, a->len);
}

enum ap_status ap_xml_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_xml **out)
{
	struct reading r = {.ctx = ctx, .file = file, .parser = XML_ParserCreate(NULL)};
	struct attempt a = {.r = &r, .text = text, .len = len};
	struct ap_refusal refusal;
	bool done;

	if (!r.parser)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, &(struct ap_where){.file = file}, NULL,
			"memory ran out while the XML was read");
	(void)XML_SetHashSalt(r.parser, 1); /* else it is drawn from the clock */
	done = ap_arena_try(ctx->arena, try_parse, NULL, &a, &refusal);
	XML_ParserFree(r.parser);
	if (!done)
		ap_arena_refuse(&refusal);
	*out = r.root;
	return a.status;
}

const char *ap_xml_get(const struct ap_xml *x, const char *name)
{
	for (const struct ap_xml_attribute *a = x->attribute; a; a = a->next)
		if (!strcmp(a->name, name))
			return a->value;
	return NULL;
}

const struct ap_xml *ap_xml_child(const struct ap_xml *x, const char *name)
{
	for (const struct ap_xml *c = x->first; c; c = c->next)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}
