/* SPDX-License-Identifier: Apache-2.0 */
/* Memory limits that not even the least temporary keeps to. */
#include <string.h>

#include "base/diag.h"
#include "base/str.h"
#include "drive/drive.h"
#include "fixture.h"
#include "harness.h"
#include "hw/chip.h"
#include "plan/plan.h"

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

/* A weight and its states, which an odd length keeps whole, besides. */
#define WEIGHTED \
	"{'schema':'autopar-graph/1','name':'weighted'," \
	"'inputs':[{'name':'x','shape':[5,16001],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[16001,16001],'dtype':'float32'}]," \
	"'operators':[{'name':'mm','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'h'}]}," \
	"{'name':'soft','type':'Softmax','inputs':['h'],'outputs':[{'name':'y'}]}]," \
	"'outputs':['y']}"

/* What the message says is needed, under a limit of so much besides what is always taken. */
static void needed(int64_t bytes, char *text, size_t size)
{
	struct fixture f;
	struct ap_request rq;
	struct ap_plan p;
	struct ap_str said;
	const char *at;

	fixture_open(&f, 2, 2, "a100-80");
	fixture_graph(&f, WEIGHTED);
	rq = (struct ap_request){.graph = f.graph, .machine = f.machine, .step = &f.step,
		.search_mode = "auto", .prune = true};
	rq.capacity_bytes = f.step.software->context_bytes +
		f.step.software->comm_buffer_bytes + bytes;
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &p, NULL), AP_INFEASIBLE);
	ap_str_init(&said, f.ctx.arena);
	ap_diag_render(f.ctx.diag, AP_ERROR, 20, &said);
	at = strstr(said.s, "at least ");
	ck_assert_ptr_nonnull(at);
	ck_assert_uint_lt(strcspn(at, ","), size);
	memcpy(text, at, strcspn(at, ","));
	text[strcspn(at, ",")] = '\0';
	fixture_close(&f);
}

/* The need does not hang on the limit, also where that is below a single operator's temporary. */
START_TEST(need_is_the_same_under_any_limit)
{
	char below[64], above[64];

	needed(100, below, sizeof below);
	needed(INT64_C(3) << 30, above, sizeof above);
	ck_assert_str_eq(below, above);
}
END_TEST
