/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limits that not even the least temporary keeps to. */
#include <check.h>
#include <stdlib.h>

#include "fixture.h"
#include "hw/chip.h"
#include "plan/drive.h"

/* Nothing is kept and there are no weights: all memory is temporary. */
#define BARE \
	"{'schema':'autopar-graph/1','name':'bare'," \
	"'inputs':[{'name':'x','shape':[5,160],'dtype':'float32','batch_dim':0}]," \
	"'operators':[" \
	"{'name':'soft','type':'Softmax','inputs':['x'],'outputs':[{'name':'y'}]}]," \
	"'outputs':['y']}"

START_TEST(below_the_least_temporary)
{
	struct fixture f;
	struct ap_request rq;
	struct ap_plan p;
	int64_t taken;

	fixture_open(&f, 2, 2, "a100-80");
	fixture_graph(&f, BARE);
	taken = f.step.software->context_bytes + f.step.software->comm_buffer_bytes;
	rq = (struct ap_request){.graph = f.graph, .machine = f.machine, .step = &f.step,
		.search_mode = "auto", .prune = true};
	rq.capacity_bytes = taken + 5 * 160 * 4 * 2; /* operand and result, whole */
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &p, NULL), AP_OK);
	rq.capacity_bytes = taken + 5 * 160 * 4; /* as the rows are odd, nothing less will do */
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &p, NULL), AP_INFEASIBLE);
	fixture_close(&f);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fit");
	TCase *tc = tcase_create("fit");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_test(tc, below_the_least_temporary);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
