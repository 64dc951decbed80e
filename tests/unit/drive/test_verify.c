/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts that are legal one by one and no plan together: of a parameter with several users, of operators
 * that share a checkpoint key. And what the verifier makes of layouts of several factors. */
#include <string.h>

#include "base/arena.h"
#include "cost/conflict.h"
#include "drive/drive.h"
#include "drive/verify.h"
#include "harness.h"
#include "hw/group.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/layout.h"
#include "fixture.h"

/* w is read twice by one operator: rows and columns of its product. */
#define TWICE \
	"{'schema':'autopar-graph/1','name':'twice'," \
	"'inputs':[{'name':'x','shape':[8192,8192],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[8192,8192],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'square','type':'MatMul','inputs':['w','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'use','type':'MatMul','inputs':['x','y'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* Both products have the key MatMul_w; in one of them w comes first and no batch is there to cut. */
#define KEY \
	"{'schema':'autopar-graph/1','name':'key'," \
	"'inputs':[{'name':'x','shape':[16,80],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[80,48],'dtype':'float32'}]," \
	"'constants':[{'name':'c','shape':[160,48],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'first','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'second','type':'MatMul','inputs':['w','c'],'outputs':[{'name':'z'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l','y']}"

#define SPLIT \
	"{'schema':'autopar-graph/1','name':'split'," \
	"'inputs':[{'name':'x','shape':[4,6],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'b','shape':[6],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b'],'outputs':[{'name':'y'}]}," \
	"{'name':'merge','type':'Reshape','inputs':['y'],'attrs':{'shape':[24]}," \
	"'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

static struct ap_request request(struct fixture *f)
{
	return (struct ap_request){.graph = f->graph, .machine = f->machine, .step = &f->step,
		.capacity_bytes = INT64_C(1) << 40, .search_mode = "auto", .prune = true};
}

static const int32_t **counts_new(struct fixture *f, const char *const *cuts)
{
	const int32_t **counts = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);

	for (ap_id i = 0; i < f->graph->nnode; i++) {
		int32_t *count = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);

		fixture_counts(f, i, cuts[i], count);
		counts[i] = count;
	}
	return counts;
}

static const char *conflict(struct fixture *f, const char *const *cuts, ap_id *node)
{
	return ap_plan_conflict(&f->ctx, f->graph, f->machine->ndev, counts_new(f, cuts), node);
}

START_TEST(parameter_read_twice)
{
	static const char *const apart[] = {"m=4", "m=4", ""}, *const whole[] = {"", "m=4", ""};
	struct fixture f;
	struct ap_request rq;
	struct ap_plan p;
	ap_id node;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, TWICE);
	rq = request(&f);
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &p, NULL), AP_OK);
	ck_assert(ap_layout_equal(&p.op[0].in[0], &p.op[0].in[1]));
	ck_assert_ptr_null(conflict(&f, whole, &node));
	ck_assert_str_eq(conflict(&f, apart, &node),
		"users of a shared parameter would hold it in different layouts");
	ck_assert_uint_eq(node, 0);
	ck_assert_int_eq(ap_drive_evaluate(&f.ctx, &rq, counts_new(&f, apart), &p), AP_INFEASIBLE);
	fixture_close(&f);
}
END_TEST

START_TEST(data_parallel_of_one_key)
{
	/* of second, loss, first: the order of the graph's outputs */
	static const char *const batch[] = {"", "", "m=8"}, *const alike[] = {"m=2", "", "m=2"};
	static const char *const rest[] = {"m=2 k=2", "", "k=2 n=2"};
	struct fixture f;
	struct ap_request rq;
	struct ap_plan p;
	ap_id node;

	fixture_open(&f, 8, 4, "ascend910b3");
	f.step.executor = AP_EXECUTOR_GENERIC;
	fixture_graph(&f, KEY);
	rq = request(&f);
	ck_assert_str_eq(conflict(&f, batch, &node),
		"operators that share a checkpoint key would have different strategies");
	ck_assert_uint_eq(node, 2);
	ck_assert_str_eq(conflict(&f, alike, &node),
		"users of a shared parameter would hold it in different layouts");
	ck_assert_str_eq(conflict(&f, rest, &node),
		"operators that share a checkpoint key would have different strategies");
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &p, NULL), AP_OK);
	ck_assert(!p.baseline[0].applicable);
	ck_assert_str_eq(p.baseline[0].why_not,
		"operators that share a checkpoint key would have different strategies");
	fixture_close(&f);
}
END_TEST

/* A dimension that several axes cut has no map of its own to be compared with. */
START_TEST(composed_layout_is_verified)
{
	static const char *const cuts[] = {"", "A=4 B=2", ""};
	struct ap_plan_op op[3];
	struct ap_layout out;
	struct fixture f;
	struct ap_plan p;

	fixture_open(&f, 8, 8, "ascend910a");
	fixture_graph(&f, SPLIT);
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts_new(&f, cuts), INT64_C(1) << 40, &p);
	p.search.status = AP_PLAN_GIVEN;
	ck_assert_int_eq(p.op[1].out[0].dim[0].cut, 8);
	ck_assert_int_eq(ap_verify(&f.ctx, &p), AP_OK);
	memcpy(op, p.op, sizeof op);
	out = op[1].out[0];
	out.dim[0] = (struct ap_cut_dim){2, 4};
	op[1].out = &out;
	p.op = op;
	ck_assert_int_eq(ap_verify(&f.ctx, &p), AP_INTERNAL);
	fixture_close(&f);
}
END_TEST

/* The false count has no axis among the ranks: all of them would say part 0. */
START_TEST(count_without_its_axis_is_verified)
{
	static const char *const cuts[] = {"", "", ""};
	struct ap_plan_op op[3];
	struct fixture f;
	struct ap_plan p;

	fixture_open(&f, 6, 6, "ascend910a");
	fixture_graph(&f, SPLIT);
	ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts_new(&f, cuts), INT64_C(1) << 40, &p);
	p.search.status = AP_PLAN_GIVEN;
	ck_assert_int_eq(ap_verify(&f.ctx, &p), AP_OK);
	memcpy(op, p.op, sizeof op);
	op[1].place.count[0] = 2;
	p.op = op;
	ck_assert_int_eq(ap_verify(&f.ctx, &p), AP_INTERNAL);
	fixture_close(&f);
}
END_TEST

/* The group may have the right size and the wrong ranks; repeats exchange nothing in the generic
 * convention. */
START_TEST(gradient_group_is_verified)
{
	static const char *const cuts[] = {"A=2", "", ""};

	for (int e = 0; e < 2; e++) {
		struct ap_plan_param param;
		struct fixture f;
		struct ap_plan p;

		fixture_open(&f, 4, 4, "ascend910a");
		f.step.executor = e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
		fixture_graph(&f, SPLIT);
		ap_plan_make(&f.ctx, f.graph, f.machine, &f.step, counts_new(&f, cuts),
			INT64_C(1) << 40, &p);
		p.search.status = AP_PLAN_GIVEN;
		ck_assert_int_eq(ap_verify(&f.ctx, &p), AP_OK);
		param = p.param[0];
		ck_assert_int_eq(ap_axes_size(&param.gradient), e ? 2 : 4);
		ck_assert_int_eq(param.gradient.axis[0].stride, e ? 2 : 1);
		p.param = &param;
		param.gradient.axis[0] = (struct ap_axis){e ? 1 : 2, e ? 2 : 4};
		ck_assert_int_eq(ap_verify(&f.ctx, &p), AP_INTERNAL);
		param.gradient.n = 0;
		ck_assert_int_eq(ap_verify(&f.ctx, &p), AP_INTERNAL);
		fixture_close(&f);
	}
}
END_TEST
