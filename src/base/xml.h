/* SPDX-License-Identifier: Apache-2.0 */
/* Reading XML as a tree of elements and attributes. */
#ifndef AP_BASE_XML_H
#define AP_BASE_XML_H

#include <stdint.h>

#include "base/ctx.h"

enum { AP_XML_MOST_DEPTH = 64, AP_XML_MOST_ELEMENTS = 1 << 16 };

struct ap_xml_attribute {
	const char *name, *value;
	const struct ap_xml_attribute *next;
};

struct ap_xml { /* an element; text between elements is not kept */
	const char *name;
	int64_t line, col; /* of its start, from 1 */
	const struct ap_xml_attribute *attribute; /* the first; NULL: none */
	const struct ap_xml *parent, *first, *next; /* around it, in it and behind it; NULL: none */
};

/*
 * Parses a text into the tree of its root element, in the run arena. Nothing but the text is ever read: a
 * document type declaration, with which entities and references to other files come, is refused
 * (AP_MEANING). AP_SYNTAX with line and column for what is no XML, a NUL included; AP_LIMIT for elements
 * nested deeper than AP_XML_MOST_DEPTH, or more than AP_XML_MOST_ELEMENTS. O(len).
 */
enum ap_status ap_xml_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_xml **out);

/* Value of an attribute; NULL if the element has none of this name. */
const char *ap_xml_get(const struct ap_xml *x, const char *name);

/* The first element of this name in x; NULL: none. */
const struct ap_xml *ap_xml_child(const struct ap_xml *x, const char *name);

#endif
