/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in DOT. Private to emit/dot*.c. */
#ifndef AP_EMIT_DOT_TEXT_H
#define AP_EMIT_DOT_TEXT_H

#include "base/str.h"

/*
 * Appends a name (UTF-8) for a label or tooltip: the backslash doubled, a newline as \n; control and
 * bidi characters become visible, as \x1b or \u202e. Quotes are left to cgraph. No two names that
 * differ in printable characters get equal texts.
 */
void ap_dot_add_name(struct ap_str *out, const char *name);

/* The part of an operator's name that is shown: of a full scope name ("Default/..") the last one. */
const char *ap_dot_short_name(const char *name);

#endif
