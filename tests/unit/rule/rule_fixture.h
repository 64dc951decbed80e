/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and attributes written as text, so that a case is one line. */
#ifndef AP_TEST_RULE_FIXTURE_H
#define AP_TEST_RULE_FIXTURE_H

#include "base/ctx.h"
#include "rule/rule.h"

extern struct ap_ctx ctx; /* set up and torn down by the checked fixture */

void fixture_setup(void);
void fixture_teardown(void);

/* "float32[2,3] int32[] -": a "-" is an operand left out. attrs: "axis=0,1 keep_dims=true".
 * declared: as shapes, "" none; "?" a result that is declared without a shape. */
enum ap_status bind_text(const char *type, const char *shapes, const char *attrs,
	const char *declared, struct ap_bound *b, struct ap_bind_fault *fault);

/* Binds or fails the test. */
struct ap_bound bind_ok(const char *type, const char *shapes, const char *attrs,
	const char *declared);

/* Binding must fail; its fault. */
struct ap_bind_fault bind_bad(const char *type, const char *shapes, const char *attrs,
	const char *declared);

#endif
