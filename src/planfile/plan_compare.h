/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two plan files value by value, by the classes of plan_form.def. */
#ifndef AP_PLANFILE_PLAN_COMPARE_H
#define AP_PLANFILE_PLAN_COMPARE_H

#include "planfile/plan_form.h"

struct ap_plan_value { /* a difference; kept in the run arena */
	const char *pointer; /* JSON pointer */
	const char *was, *is; /* JSON; NULL: absent; a list or object: a string with its length */
};

struct ap_plan_values {
	uint32_t n; /* all differences */
	uint32_t nlisted; /* the first ones */
	const struct ap_plan_value *v;
};

/* Compares documents whose form is right: no AP_PLAN_STATED values, AP_PLAN_SEARCHED ones only if
 * searched. Settings are compared as values, numbers as numbers. O(documents). */
void ap_plan_compare(struct ap_ctx *ctx, const struct ap_json *was, const struct ap_json *is, bool searched,
	struct ap_plan_values *out);

#endif
