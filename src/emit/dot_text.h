/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in DOT. Private to emit/dot*.c. */
#ifndef AP_EMIT_DOT_TEXT_H
#define AP_EMIT_DOT_TEXT_H

#include "base/str.h"

/*
 * Appends a name (UTF-8) for a label or tooltip: the backslash doubled, a newline as \n; control
 * and bidi characters become visible, as \x1b or \u202e; cut to 3000 bytes with "...", for dot does
 * not read longer ones. Quotes are left to cgraph.
 */
void ap_dot_add_name(struct ap_str *out, const char *name);

#endif
