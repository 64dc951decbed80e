/* SPDX-License-Identifier: Apache-2.0 */
/* How inputs arrive: the setting dataset_strategy, and what it costs. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/cost.h"
#include "fixture.h"
#include "cost/opcost.h"
#include "harness.h"
#include "cost/move.h"
#include "cost/task.h"
#include "shard/arrival.h"
#include "shard/layout.h"

#define GRAPH \
	"{'schema':'autopar-graph/1','name':'two'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}," \
	"{'name':'y','shape':[16],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'b','shape':[8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b'],'outputs':[{'name':'z'}]}," \
	"{'name':'hot','type':'Cast','inputs':['y'],'outputs':[{'name':'f'}]," \
	"'attrs':{'dst_type':'float32'}}," \
	"{'name':'sum','type':'ReduceSum','inputs':['z'],'outputs':[{'name':'s'}],'attrs':{'axis':[1]}}," \
	"{'name':'mul','type':'Mul','inputs':['s','f'],'outputs':[{'name':'m'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['m'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

static void begin(struct fixture *f)
{
	fixture_open(f, 8, 8, "ascend910b3");
	fixture_graph(f, GRAPH);
}

static enum ap_status parse(struct fixture *f, const char *text)
{
	return ap_arrival_parse_text(&f->ctx, "--dataset-strategy", text, f->graph, f->machine->ndev,
		&f->step);
}

static const struct {
	const char *text;
	bool full;
	struct ap_arrival x, y; /* x.cut 0: not given one by one */
} good[] = {
	{"data_parallel", false, {0}, {0}},
	{"full_batch", true, {0}, {0}},
	{"\"full_batch\"", false, {-1}, {0}}, /* a word is no array: refused as text, a value of JSON */
	{"((8, 1), (8,))", false, {0, 8, 1}, {0, 8, 1}},
	{"[[1, 4], [4]]", false, {1, 4, 1}, {0, 4, 1}},
	{" ((1,1),(2,),)", false, {0, 1, 0}, {0, 2, 1}},
	{"[[1,1],[1]]", false, {0, 1, 0}, {0, 1, 0}},
	{"[[8,1],[8],[8,1],[8,1]]", false, {0, 8, 1}, {0, 8, 1}}, /* columns that the graph leaves out */
	{"[{\"device_matrix\": [2,4], \"alias_name\": [\"dp\",\"mp\"], \"tensor_map\": [\"dp\",\"None\"]},"
		"[2]]", false, {0, 2, 4}, {0, 2, 1}},
	{"[{\"device_matrix\": [2,2,2], \"alias_name\": [\"a\",\"b\",\"c\"],"
		"\"tensor_map\": [\"None\",\"b\"]}, [1]]", false, {1, 2, 2}, {0, 1, 0}},
};

static void assert_arrival(const struct ap_arrival *a, const struct ap_arrival *want)
{
	ck_assert_int_eq(a->dim, want->dim);
	ck_assert_int_eq(a->cut, want->cut);
	ck_assert_int_eq(a->stride, want->stride);
}

START_LOOP_TEST(what_can_be_said, AP_COUNT(good))
{
	struct fixture f;

	begin(&f);
	f.step.full_batch = true;
	if (good[_i].x.dim < 0) {
		ck_assert_int_eq(parse(&f, good[_i].text), AP_USAGE);
	} else {
		ck_assert_int_eq(parse(&f, good[_i].text), AP_OK);
		ck_assert_int_eq(f.step.full_batch, good[_i].full);
		ck_assert_uint_eq(f.step.narrival, good[_i].x.cut ? 2 : 0);
		if (good[_i].x.cut) {
			assert_arrival(&f.step.arrival[0], &good[_i].x);
			assert_arrival(&f.step.arrival[1], &good[_i].y);
		}
	}
	fixture_close(&f);
}
END_TEST

static const struct {
	const char *text;
	int64_t micro_batches;
	const char *says; /* with its place */
} bad[] = {
	{"dp", 1, "--dataset-strategy: \"dp\"; \"data_parallel\", \"full_batch\" or an array"},
	{"[[8,1]]", 1, "--dataset-strategy:1:1: 1 entries; the graph has 2 inputs [dataset-strategy]"},
	{"[[8,1],[8],[8]]", 1, ":1:1: 3 entries; the graph has 2 inputs [dataset-strategy]"},
	{"[[8,1],[8],[8,1],[4,1]]", 1, ":1:1: 4 entries; the graph has 2 inputs [dataset-strategy]"},
	{"[[8],[8]]", 1, ":1:2: /0: input \"x\" has 2 dimensions; so many numbers"},
	{"[[8,1],[0]]", 1, ":1:9: /1/0: the parts of a dimension are a whole number from 1 on"},
	{"[[2,4],[2]]", 1, "/0/1: input \"x\": dimension 1 of length 8 in 4 parts; only one dimension of "
		"an input may be cut"},
	{"[[8,1],[4]]", 1, "/1/0: input \"y\" in 4 parts, input \"x\" in 8; all inputs that are cut have as "
		"many"},
	{"[[16,1],[16]]", 1, "/0/0: input \"x\": dimension 0 of length 16 in 16 parts; the devices of a "
		"stage cannot be shared out so"},
	{"[[8,1],[8]]", 4, "dimension 0 of length 16 in 8 parts; these must divide the length of a "
		"micro-batch"},
	{"[8,[8]]", 1, "/0: input \"x\": the parts of each dimension or a Layout are expected"},
	{"[[8,1],[8]", 1, "--dataset-strategy:1:"},
	{"[{\"device_matrix\":[2,2],\"alias_name\":[\"a\",\"b\"],\"tensor_map\":[\"a\",\"None\"]},[2]]", 1,
		"/0/device_matrix: 8 devices are expected: those of a stage"},
	{"[{\"device_matrix\":[2,4],\"alias_name\":[\"a\",\"b\"],\"tensor_map\":[\"c\",\"None\"]},[2]]", 1,
		"/0/tensor_map/0: \"c\" is no axis that alias_name names"},
	{"[{\"device_matrix\":[2,4],\"alias_name\":[\"a\",\"b\"],\"tensor_map\":[[\"a\",\"b\"],\"None\"]},"
		"[2]]", 1, "a dimension that several axes cut is not planned with"},
	{"[{\"device_matrix\":[2,4],\"alias_name\":[\"a\",\"b\"],\"tensor_map\":[\"a\"]},[2]]", 1,
		"/0/tensor_map: input \"x\" has 2 dimensions; so many names are expected"},
	{"[{\"device_matrix\":[2,4],\"alias_name\":[\"a\"],\"tensor_map\":[\"a\",\"None\"]},[2]]", 1,
		"/0/alias_name: a name for each axis of the device_matrix is expected"},
	{"[{\"device_matrix\":[2,4]},[2]]", 1, "alias_name"},
};

START_LOOP_TEST(what_cannot, AP_COUNT(bad))
{
	struct fixture f;
	struct ap_str s;

	begin(&f);
	f.step.micro_batches = bad[_i].micro_batches;
	ck_assert_int_ne(parse(&f, bad[_i].text), AP_OK);
	ck_assert_ptr_null(f.step.arrival);
	ap_str_init(&s, f.ctx.arena);
	ap_diag_render(f.ctx.diag, AP_ERROR, 9, &s);
	ck_assert_msg(strstr(s.s, bad[_i].says), "%s", s.s);
	fixture_close(&f);
}
END_TEST

/* Seconds to bring x to the operator that wants its rows in eight parts. */
static double input_s(struct fixture *f, const char *text)
{
	ap_id node = fixture_node(f, "add");
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;
	struct ap_pricer *pr;
	struct ap_op_cost c;

	ck_assert_int_eq(parse(f, text), AP_OK);
	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, "A=8", count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	pr = ap_pricer_create(f->ctx.arena, f->machine, &f->step);
	ap_op_cost_make(pr, &tasks[node], &p, &c);
	return c.input_s;
}

START_TEST(what_arrives_as_wanted_is_free)
{
	struct fixture f;
	double slice_s, swap_s;

	begin(&f);
	ck_assert_double_eq(input_s(&f, "data_parallel"), 0);
	ck_assert_double_eq(input_s(&f, "((8,1),(8,))"), 0);
	slice_s = input_s(&f, "full_batch");
	ck_assert_double_gt(slice_s, 0);
	ck_assert_double_eq(input_s(&f, "((1,1),(1,))"), slice_s);
	swap_s = input_s(&f, "((1,8),(8,))"); /* columns become rows: all devices exchange */
	ck_assert_double_gt(swap_s, slice_s);
	fixture_close(&f);
}
END_TEST

START_TEST(another_arrival_is_another_class)
{
	struct fixture f;
	const struct ap_task *a, *b;
	const void *s, *t;
	size_t m, n;
	ap_id add, hot;

	begin(&f);
	add = fixture_node(&f, "add");
	hot = fixture_node(&f, "hot");
	ck_assert_int_eq(parse(&f, "((8,1),(1,))"), AP_OK);
	ap_tasks_make(&f.ctx, f.graph, &f.step, &a);
	ck_assert_int_eq(parse(&f, "((1,8),(1,))"), AP_OK);
	ap_tasks_make(&f.ctx, f.graph, &f.step, &b);
	s = ap_task_signature(&f.ctx, &a[add], &m);
	t = ap_task_signature(&f.ctx, &b[add], &n);
	ck_assert(m == n && memcmp(s, t, n) != 0);
	s = ap_task_signature(&f.ctx, &a[hot], &m);
	t = ap_task_signature(&f.ctx, &b[hot], &n);
	ck_assert(m == n && memcmp(s, t, n) == 0);
	fixture_close(&f);
}
END_TEST
