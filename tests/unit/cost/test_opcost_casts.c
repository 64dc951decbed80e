/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters that are read in another type than they are stored in: the cast's own seconds and bytes against
 * figures worked out by hand, and against a graph in which it is an operator.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "cost/cost.h"
#include "cost/move.h"
#include "cost/opcost.h"
#include "cost/task.h"
#include "shard/layout.h"
#include "fixture.h"
#include "harness.h"

/* One layer; x0 = x + b0 so that its gradient is wanted, and the weight kept for that. */
#define LAYER(parameter, cast, weight, more) \
	"{'schema':'autopar-graph/1','name':'layer'," \
	"'inputs':[{'name':'x','shape':[4096,1024],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'b0','shape':[1024],'dtype':'float16'}," \
	"{'name':'w','shape':[1024,2048],'dtype':'float32'" parameter "}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'x0'}]}," cast \
	"{'name':'up','type':'MatMul','inputs':['x0','" weight "'],'outputs':[{'name':'h'}]" more "}," \
	"{'name':'loss','type':'ReduceMean','inputs':['h'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"
#define READ_AS LAYER(",'read_as':'float16'", "", "w", "")
#define BY_OPERATOR LAYER("", "{'name':'cast','type':'Cast','inputs':['w'],'outputs':[{'name':'w16'}]," \
	"'attrs':{'dst_type':'float16'}},", "w16", "")

/* The a100-80 profile: 5 us a kernel, 2039 GB/s * 0.75; see test_costs.c. The slice of w has 2^20 elements. */
#define FORWARD 2.7439568498741635e-05 /* 5 us + 2 (2048+144)(1024+144)(1024+112) / 259.23 TF */
#define BACKWARD 5.5174424832153665e-05 /* the same for (2048, 1024, 1024) and (1024, 1024, 2048) */
#define CAST (5e-6 + 1048576 * 6.0 / 1529.25e9) /* 4 bytes are read and 2 written, or the other way */
#define GRADIENT 5.51960701754386e-05 /* 30 us + 2 (3.4 us + 4 MiB / 2 / 228 GB/s) */
#define OPTIMIZER (5e-6 + 1048576 * 28.0 / 1529.25e9) /* gradient; weight and two states there and back */
#define MIB 1048576

static void near(double got, double want)
{
	ck_assert_msg(fabs(got - want) <= 1e-12 * fabs(want), "got %.17g, want %.17g", got, want);
}

static void price(struct fixture *f, const char *name, const char *cut, struct ap_op_cost *c)
{
	struct ap_pricer *pr = ap_pricer_create(f->ctx.arena, f->machine, &f->step);
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	ap_op_cost_make(pr, &tasks[node], &p, c);
}

START_TEST(training)
{
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, READ_AS);
	price(&f, "up", "m=2 n=2", &c);
	near(c.forward_s, FORWARD + CAST);
	near(c.backward_s, BACKWARD + CAST);
	near(c.gradient_s, GRADIENT);
	near(c.optimizer_s, OPTIMIZER);
	/* As it is stored, with its gradient; two states of 4 bytes, no copy in full precision. */
	ck_assert_int_eq(c.weight_bytes, 4 * MIB);
	ck_assert_int_eq(c.gradient_bytes, 4 * MIB);
	ck_assert_int_eq(c.optimizer_bytes, 8 * MIB);
	/* The copy is kept for the gradient of x0; backward the gradients of x0, h and of the copy. */
	ck_assert_int_eq(c.activation_bytes, 2 * MIB);
	ck_assert_int_eq(c.temporary_bytes, (4 + 4 + 2) * MIB);
	fixture_close(&f);
}
END_TEST

START_TEST(micro_batches)
{
	struct fixture f;
	struct ap_op_cost once, c;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, LAYER(",'read_as':'float16'", "", "w",
		",'time_s':{'forward':8e-5,'backward':16e-5,'share':1}"));
	price(&f, "up", "m=2 n=2", &once);
	near(once.forward_s, 2e-5 + CAST); /* beside what was measured of the operator */
	near(once.backward_s, 4e-5 + CAST);
	f.step.micro_batches = 4;
	fixture_in_flight(&f, 3);
	price(&f, "up", "m=2 n=2", &c);
	near(c.forward_s, 2e-5 + 4 * CAST);
	near(c.backward_s, 4e-5 + 4 * CAST);
	near(c.gradient_s, once.gradient_s);
	near(c.optimizer_s, once.optimizer_s);
	ck_assert_int_eq(c.weight_bytes, 4 * MIB);
	ck_assert_int_eq(c.activation_bytes, 2 * MIB);
	fixture_close(&f);
}
END_TEST

START_TEST(inference)
{
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 4, 4, "a100-80");
	f.step.training = false;
	f.step.optimizer = NULL;
	fixture_graph(&f, READ_AS);
	price(&f, "up", "m=2 n=2", &c);
	near(c.forward_s, FORWARD + CAST);
	ck_assert_double_eq(c.backward_s + c.gradient_s + c.optimizer_s, 0);
	ck_assert_int_eq(c.weight_bytes, 4 * MIB);
	ck_assert_int_eq(c.activation_bytes, 0);
	ck_assert_int_eq(c.temporary_bytes, (4 + 4 + 2) * MIB); /* x0, h, the copy */
	fixture_close(&f);
}
END_TEST

/* The operator runs again, its cast does not. */
START_TEST(recomputed)
{
	struct fixture f;
	struct ap_op_cost c;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, "{'schema':'autopar-graph/1','name':'layer',"
		"'inputs':[{'name':'x','shape':[4096,1024],'dtype':'float16','batch_dim':0}],"
		"'parameters':[{'name':'b0','shape':[1024],'dtype':'float16'},"
		"{'name':'w','shape':[1024,2048],'dtype':'float32','read_as':'float16'}],"
		"'operators':[{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'x0'}]},"
		"{'name':'up','type':'MatMul','inputs':['x0','w'],'outputs':[{'name':'h'}],'recompute':true},"
		"{'name':'act','type':'GeLU','inputs':['h'],'outputs':[{'name':'g'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['g'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}");
	price(&f, "up", "m=2 n=2", &c);
	near(c.recompute_s, FORWARD);
	near(c.backward_s, BACKWARD + FORWARD + CAST);
	ck_assert_int_eq(c.activation_bytes, 2 * MIB);
	ck_assert_int_eq(c.recompute_bytes, 4 * MIB); /* h */
	fixture_close(&f);
}
END_TEST

static void add(struct ap_op_cost *a, const struct ap_op_cost *b)
{
	a->forward_s += b->forward_s;
	a->backward_s += b->backward_s;
	a->gradient_s += b->gradient_s;
	a->optimizer_s += b->optimizer_s;
	a->weight_bytes += b->weight_bytes;
	a->gradient_bytes += b->gradient_bytes;
	a->optimizer_bytes += b->optimizer_bytes;
	a->gathered_bytes += b->gathered_bytes;
	a->activation_bytes += b->activation_bytes;
}

/* Where nothing moves between them, a cast costs as much as an operator of its own; also with the optimizer's
 * shards, which gather the weight as it is stored. */
START_LOOP_TEST(as_an_operator, 4)
{
	struct fixture f;
	struct ap_op_cost a, b, cast;

	fixture_open(&f, 4, 4, "a100-80");
	f.step.executor = AP_EXECUTOR_MINDSPORE;
	f.step.optimizer_sharding = _i > 0;
	f.step.optimizer_level = _i > 0 ? _i : 1;
	f.step.micro_batches = 2;
	fixture_graph(&f, READ_AS);
	price(&f, "up", "m=4", &a);
	fixture_graph(&f, BY_OPERATOR);
	price(&f, "up", "m=4", &b);
	price(&f, "cast", "", &cast);
	add(&b, &cast);
	near(a.forward_s, b.forward_s);
	near(a.backward_s, b.backward_s);
	near(a.gradient_s, b.gradient_s);
	near(a.optimizer_s, b.optimizer_s);
	near(a.forward_comm_s, cast.forward_comm_s);
	near(a.backward_comm_s, cast.backward_comm_s);
	ck_assert_int_eq(a.forward_comm_s > 0, _i == 3);
	ck_assert_int_eq(a.weight_bytes, b.weight_bytes);
	ck_assert_int_eq(a.weight_bytes, _i ? 2 * MIB : 8 * MIB);
	ck_assert_int_eq(a.gradient_bytes, b.gradient_bytes);
	ck_assert_int_eq(a.optimizer_bytes, b.optimizer_bytes);
	ck_assert_int_eq(a.gathered_bytes, b.gathered_bytes);
	ck_assert_int_eq(a.activation_bytes, b.activation_bytes);
	fixture_close(&f);
}
END_TEST

/* The threshold of the optimizer's shards is about what is stored. */
START_TEST(threshold)
{
	const struct ap_task *tasks;
	struct fixture f;
	ap_id up;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, READ_AS);
	up = fixture_node(&f, "up");
	f.step.shard_threshold_bytes = 8 * MIB;
	ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
	ck_assert(tasks[up].in[1].cast && tasks[up].in[1].shardable);
	ck_assert_int_eq(ap_task_stored(&tasks[up], 1), AP_FLOAT32);
	ck_assert_int_eq(tasks[up].bound->in[1].dtype, AP_FLOAT16);
	ck_assert(!tasks[up].in[0].cast);
	f.step.shard_threshold_bytes = 8 * MIB + 1;
	ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
	ck_assert(!tasks[up].in[1].shardable);
	fixture_close(&f);
}
END_TEST

/* Two readers cast each, one that reads it twice casts once; two types of storage are two classes. */
START_TEST(readers)
{
	struct fixture f;
	struct ap_op_cost once, twice;
	const struct ap_task *tasks;
	const uint32_t *class_of;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, "{'schema':'autopar-graph/1','name':'same',"
		"'inputs':[{'name':'x','shape':[1024,1024],'dtype':'float16','batch_dim':0}],"
		"'parameters':[{'name':'w','shape':[1024,1024],'dtype':'float32','read_as':'float16'},"
		"{'name':'v','shape':[1024,1024],'dtype':'float16'}],"
		"'operators':[{'name':'one','type':'Add','inputs':['x','w'],'outputs':[{'name':'a'}]},"
		"{'name':'two','type':'Add','inputs':['w','w'],'outputs':[{'name':'b'}]},"
		"{'name':'own','type':'Add','inputs':['x','v'],'outputs':[{'name':'c'}]},"
		"{'name':'ab','type':'Add','inputs':['a','b'],'outputs':[{'name':'s'}]},"
		"{'name':'abc','type':'Add','inputs':['s','c'],'outputs':[{'name':'t'}]},"
		"{'name':'loss','type':'ReduceMean','inputs':['t'],'outputs':[{'name':'l'}]}],'outputs':['l']}");
	price(&f, "own", "", &once);
	price(&f, "one", "", &twice);
	near(twice.forward_s, once.forward_s + CAST);
	near(twice.backward_s, once.backward_s + CAST);
	price(&f, "two", "", &twice);
	near(twice.forward_s, once.forward_s + CAST);
	near(twice.backward_s, once.backward_s + CAST + 1048576 * 2.0 / 1529.25e9);
	ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
	class_of = ap_task_classes(&f.ctx, tasks, f.graph->nnode);
	ck_assert_uint_ne(class_of[fixture_node(&f, "one")], class_of[fixture_node(&f, "own")]);
	fixture_close(&f);
}
END_TEST
