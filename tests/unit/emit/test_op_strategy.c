/* SPDX-License-Identifier: Apache-2.0 */
/* Operator-strategy files. */
#include "emit/op_strategy.h"
#include "json_at.h"
#include "pipe_test.h"

static const char *file_of(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_op_template *t)
{
	struct ap_str s = new_str(ctx);

	ap_op_strategy_write(ctx, p, t, to_str, &s);
	return s.s;
}

/* All stages are in one file, what sends between them is not; names are in order. */
START_TEST(all_operators)
{
	struct ap_plan plan;
	struct fixture f;

	open_pipe(&f, &plan);
	ck_assert_str_eq(file_of(&f.ctx, &plan, NULL),
		"{\n"
		" \"current_stage\": 0,\n"
		" \"parallel_out_strategy_item\": {},\n"
		" \"parallel_strategy_item\": {\n"
		"  \"Default/_VirtualDataset-op0\": {\"parallel_strategy\": [[4, 1]], \"stage\": 0},\n"
		"  \"bias\": {\"parallel_strategy\": [[1, 1], [1]], \"stage\": 0},\n"
		"  \"down\": {\"parallel_strategy\": [[4, 1], [1, 1]], \"stage\": 0},\n"
		"  \"loss\": {\"parallel_strategy\": [[1, 1]], \"stage\": 0},\n"
		"  \"up\": {\"parallel_strategy\": [[2, 1], [1, 2]], \"stage\": 0}\n"
		" }\n"
		"}\n");
	fixture_close(&f);
}
END_TEST

int main(void)
{
	const TTest *tests[] = {all_operators};

	return run_tests("op_strategy", tests, NULL, sizeof tests / sizeof *tests);
}
