/* SPDX-License-Identifier: Apache-2.0 */
/* Every type that MindSpore plans with has rows and can be carried out, or a reason why not. */
#include <string.h>

#include "fault.h"
#include "harness.h"
#include "rule/op.h"

START_TEST(each_type_is_planned_with_or_refused_with_a_reason)
{
	struct ex_catalogue c;

	for (size_t i = 0; ex_catalogue_at(i, &c); i++) {
		if (c.why_not) {
			ck_assert_msg(!c.canonical, "%s is refused and has rows", c.type);
			ck_assert_msg(strlen(c.why_not) > 20, "%s: %s", c.type, c.why_not);
			continue;
		}
		ck_assert_msg(c.canonical != NULL, "%s is unknown", c.type);
		ck_assert_ptr_nonnull(ap_op_next(NULL, c.canonical));
		ck_assert_msg(ex_kernel_find(c.canonical) != NULL, "%s is not executed", c.type);
	}
}
END_TEST

START_TEST(no_type_stands_there_twice)
{
	struct ex_catalogue a, b;

	for (size_t i = 0; ex_catalogue_at(i, &a); i++)
		for (size_t k = 0; k < i; k++) {
			ex_catalogue_at(k, &b);
			if (strcmp(a.type, b.type) == 0)
				ck_abort_msg("%s stands there twice", a.type);
		}
}
END_TEST

static bool is_listed(const char *type)
{
	struct ex_catalogue c;

	for (size_t i = 0; ex_catalogue_at(i, &c); i++)
		if (strcmp(c.type, type) == 0)
			return true;
	return false;
}

START_TEST(each_row_alias_and_refusal_is_listed)
{
	const struct ap_op_row *row;
	const char *name, *meant;

	for (size_t i = 0; (row = ap_op_at(i)); i++)
		ck_assert_msg(is_listed(row->name), "row %s", row->name);
	for (size_t i = 0; ap_op_alias_at(i, &name, &meant); i++)
		ck_assert_msg(is_listed(name), "alias %s", name);
	for (size_t i = 0; ap_op_unsupported_at(i, &name, &meant); i++)
		ck_assert_msg(is_listed(name), "refused %s", name);
}
END_TEST

START_TEST(old_names_mean_todays_types)
{
	ck_assert_str_eq(ap_op_canonical("TensorAdd", NULL), "Add");
	ck_assert_str_eq(ap_op_canonical("GatherV2", NULL), "Gather");
	ck_assert_str_eq(ap_op_canonical("Gelu", NULL), "GeLU");
	ck_assert_ptr_null(ap_op_canonical("Custom", NULL));
}
END_TEST
