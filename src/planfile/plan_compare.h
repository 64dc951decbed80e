/* SPDX-License-Identifier: Apache-2.0 */
/* Two plan files value by value, as far as the classes of plan_form.def go. */
#ifndef AP_PLANFILE_PLAN_COMPARE_H
#define AP_PLANFILE_PLAN_COMPARE_H

#include "planfile/plan_form.h"

struct ap_plan_value { /* that is another one; kept in the run arena */
	const char *pointer; /* JSON pointer */
	const char *was, *is; /* JSON; NULL: absent. Of a list or an object a string says how long it is */
};

struct ap_plan_values {
	uint32_t n; /* of all that differ */
	uint32_t nlisted; /* the first of them */
	const struct ap_plan_value *v;
};

/* Compares documents whose form is right. Values of AP_PLAN_STATED are left out, those of AP_PLAN_SEARCHED
 * unless searched; settings are the same where they read the same. Numbers are equal as numbers.
 * O(documents). */
void ap_plan_compare(struct ap_ctx *ctx, const struct ap_json *was, const struct ap_json *is, bool searched,
	struct ap_plan_values *out);

#endif
