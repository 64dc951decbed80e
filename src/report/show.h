/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as text that a reviewer reads and a version control system compares: what was decided, the stages,
 * each operator of a repeated layer once, and what is redistributed. */
#ifndef AP_REPORT_SHOW_H
#define AP_REPORT_SHOW_H

#include "planfile/plan_read.h"

struct ap_str;

enum { AP_SHOW_LINES = 100 };

/* Writes at most AP_SHOW_LINES lines about a plan (s->is_plan) onto *out. Operators that lie alike and whose
 * names differ in numbers only are a line, as are those between two products that lie alike; what only shows
 * its operand in another shape is left out. Where there is more than there is room for, the longest stay, and
 * a line says what is left out. figures: with times, bytes and shares of the operators' time, rounded to
 * three digits; else only what was decided, so that the text is the same where only prices differ.
 * O(n log n) for n operators and redistributions. */
void ap_show(struct ap_ctx *ctx, const struct ap_saved *s, bool figures, struct ap_str *out);

#endif
