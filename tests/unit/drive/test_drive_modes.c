/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of strategies that are given: which ones may be, how propagation and semi_auto_parallel
 * go on from them. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/pins.h"
#include "drive/drive.h"
#include "fixture.h"
#include "graph/staged.h"
#include "harness.h"
#include "plan/plan.h"
#include "route/semi_auto.h"
#include "shard/layout.h"
#include "shard/space.h"
#include "shard/strategy.h"
#include "table/table.h"

#define MATMUL(name, x, w, y, more) \
	"{'name':'" name "','type':'MatMul','inputs':['" x "','" w "'],'outputs':[{'name':'" y "'}]" \
	more "},"
#define RESHAPE(name, x, shape, y) \
	"{'name':'" name "','type':'Reshape','inputs':['" x "'],'attrs':{'shape':" shape "}," \
	"'outputs':[{'name':'" y "'}]},"
#define TURN(name, x, y) \
	"{'name':'" name "','type':'Transpose','inputs':['" x "'],'attrs':{'perm':[0,2,1,3]}," \
	"'outputs':[{'name':'" y "'}]},"
#define HEADS(q, w) \
	MATMUL(q "_mm", "x0", w, q "0", ",'in_strategy':[[2,1],[1,4]]") \
	RESHAPE(q "_split", q "0", "[8,16,4,8]", q "1") TURN(q "_turn", q "1", q "2")
#define WEIGHT(name, shape) "{'name':'" name "','shape':" shape ",'dtype':'float32'}"

/* One layer of a transformer, 8 sequences of 16, 4 heads of 8, pinned as Megatron does for 2 x 4. */
static const char layer[] =
	"{'schema':'autopar-graph/1','name':'layer',"
	"'inputs':[{'name':'x','shape':[128,32],'dtype':'float32','batch_dim':0}],"
	"'parameters':[" WEIGHT("b", "[32]") "," WEIGHT("wq", "[32,32]") "," WEIGHT("wk", "[32,32]") ","
	WEIGHT("wv", "[32,32]") "," WEIGHT("wo", "[32,32]") "," WEIGHT("up", "[32,128]") ","
	WEIGHT("down", "[128,32]") "],'operators':["
	"{'name':'bias','type':'Add','inputs':['x','b'],'outputs':[{'name':'x0'}]},"
	HEADS("q", "wq") HEADS("k", "wk") HEADS("v", "wv")
	"{'name':'scores','type':'BatchMatMul','inputs':['q2','k2'],'attrs':{'transpose_b':true},"
	"'outputs':[{'name':'s'}]},"
	"{'name':'soft','type':'Softmax','inputs':['s'],'outputs':[{'name':'p'}]},"
	"{'name':'context','type':'BatchMatMul','inputs':['p','v2'],'outputs':[{'name':'c'}]},"
	TURN("back", "c", "c1") RESHAPE("join", "c1", "[128,32]", "c2")
	MATMUL("out", "c2", "wo", "a", ",'in_strategy':[[2,4],[4,1]]")
	"{'name':'residual','type':'Add','inputs':['x0','a'],'outputs':[{'name':'r'}]},"
	MATMUL("up_mm", "r", "up", "u", ",'in_strategy':[[2,1],[1,4]]")
	"{'name':'gelu','type':'GeLU','inputs':['u'],'outputs':[{'name':'g'}]},"
	MATMUL("down_mm", "g", "down", "d", ",'in_strategy':[[2,4],[4,1]]")
	"{'name':'loss','type':'ReduceMean','inputs':['d'],'outputs':[{'name':'l'}]}],"
	"'outputs':['l']}";

/* "[2,1][1,4]": the strategy that counts stand for. */
static const char *strategy(struct fixture *f, const char *name, const int32_t *count)
{
	ap_id node = fixture_node(f, name);
	int32_t cut[8][AP_MAX_RANK];
	struct ap_placement p;
	uint8_t rank[8];
	struct ap_str s;
	uint32_t n;

	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	n = ap_space_to_strategy(&p, rank, cut, 8);
	ap_str_init(&s, f->ctx.arena);
	for (uint32_t v = 0; v < n; v++) {
		ap_str_addc(&s, '[');
		for (int d = 0; d < rank[v]; d++)
			ap_str_addf(&s, "%s%d", d ? "," : "", cut[v][d]);
		ap_str_addc(&s, ']');
	}
	return s.s;
}

static const int32_t *const *pins(struct fixture *f)
{
	const int32_t *const *fixed;

	ck_assert_int_eq(ap_pins_make(&f->ctx, f->graph, f->machine->ndev, &f->step, NULL, &fixed),
		AP_OK);
	return fixed;
}

/* Propagation over the whole table. */
static const struct ap_table *propagate(struct fixture *f, struct ap_choice *c)
{
	struct ap_table_params params = {.fixed = pins(f)};
	struct ap_budget budget = {0};
	const struct ap_table *t;

	ck_assert_int_eq(ap_table_make(&f->ctx, f->graph, f->machine, &f->step, &params, &t), AP_OK);
	ap_engine_find("sharding_propagation")->solve(&f->ctx, t->problem, &budget, c);
	ck_assert_int_eq(c->outcome, AP_OUT_FEASIBLE);
	return t;
}

/* The heads of the attention follow the columns of its weights, what lies between the pairs stays
 * whole within a row of devices: Megatron's layer, from its six products. */
START_TEST(columns_become_heads)
{
	static const char *const expected[][2] = {
		{"q_split", "[2,4]"}, {"k_turn", "[2,1,4,1]"}, {"v_turn", "[2,1,4,1]"},
		{"scores", "[2,4,1,1][2,4,1,1]"}, {"soft", "[2,4,1,1]"},
		{"context", "[2,4,1,1][2,4,1,1]"}, {"back", "[2,4,1,1]"}, {"join", "[2,1,4,1]"},
		{"residual", "[2,1][2,1]"}, {"gelu", "[2,4]"}, {"bias", "[2,1][1]"},
	};
	const struct ap_table *t;
	struct ap_choice c;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, layer);
	t = propagate(&f, &c);
	for (size_t i = 0; i < AP_COUNT(expected); i++) {
		ap_id node = fixture_node(&f, expected[i][0]);

		ck_assert_msg(!strcmp(strategy(&f, expected[i][0],
						ap_table_counts(t, node, c.pick[node])),
				      expected[i][1]),
			"%s is %s", expected[i][0],
			strategy(&f, expected[i][0], ap_table_counts(t, node, c.pick[node])));
	}
	fixture_close(&f);
}
END_TEST

#define TIED(pin) \
	"{'schema':'autopar-graph/1','name':'tied'," \
	"'inputs':[{'name':'ids','shape':[8],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'table','shape':[64,16],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'look','type':'Gather','inputs':['table','ids'],'outputs':[{'name':'e'}]" pin "}," \
	"{'name':'act','type':'ReLU','inputs':['e'],'outputs':[{'name':'r'}]}," \
	"{'name':'head','type':'MatMul','inputs':['r','table'],'outputs':[{'name':'y'}]," \
	"'attrs':{'transpose_b':true}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* The table cut by the vocabulary in the look-up is cut so in the product, which is not even near. */
START_TEST(users_of_one_parameter_stay_equal)
{
	const struct ap_table *t;
	struct ap_choice c;
	struct fixture f;
	ap_id head;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, TIED(",'in_strategy':[[4,1],[1]]"));
	t = propagate(&f, &c);
	head = fixture_node(&f, "head");
	ck_assert_str_eq(strategy(&f, "head", ap_table_counts(t, head, c.pick[head])), "[1,1][4,1]");
	fixture_close(&f);
}
END_TEST

static enum ap_status complete(struct fixture *f, const int32_t *const **counts)
{
	return ap_semi_auto_complete(&f->ctx, f->graph, f->machine, &f->step, pins(f), counts);
}

START_TEST(semi_auto_cuts_the_rest_by_the_batch)
{
	static const char *const expected[][2] = {
		{"q_mm", "[2,1][1,4]"}, {"k_turn", "[8,1,1,1]"}, {"scores", "[8,1,1,1][8,1,1,1]"},
		{"soft", "[8,1,1,1]"}, {"residual", "[8,1][8,1]"}, {"bias", "[8,1][1]"},
		{"loss", "[8,1]"}, {"down_mm", "[2,4][4,1]"}, {"q_split", "[8,1]"},
		{"join", "[2,1,4,1]"},
	};
	const int32_t *const *counts;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, layer);
	ck_assert_int_eq(complete(&f, &counts), AP_OK);
	for (size_t i = 0; i < AP_COUNT(expected); i++)
		ck_assert_str_eq(strategy(&f, expected[i][0],
					 counts[fixture_node(&f, expected[i][0])]),
			expected[i][1]);
	fixture_close(&f);
}
END_TEST

/* One operator each: type, shapes of x and w, attributes, and what it gets on 12 devices. */
#define ONE(type, x, w, operands, attrs) \
	"{'schema':'autopar-graph/1','name':'one'," \
	"'inputs':[{'name':'x','shape':" x ",'dtype':'float32'}," \
	"{'name':'i','shape':[10],'dtype':'int32'}," \
	"{'name':'w','shape':" w ",'dtype':'float32'}],'operators':[" \
	"{'name':'keep','type':'Abs','inputs':['w'],'outputs':[{'name':'w0'}]}," \
	"{'name':'keep1','type':'Abs','inputs':['x'],'outputs':[{'name':'x0'}]}," \
	"{'name':'keep2','type':'Abs','inputs':['i'],'outputs':[{'name':'i0'}]}," \
	"{'name':'one','type':'" type "','inputs':" operands ",'attrs':" attrs "," \
	"'outputs':[{'name':'y'}]}],'outputs':['y','w0','x0','i0']}"

START_TEST(semi_auto_by_operator)
{
	static const struct {
		const char *graph, *strategy;
	} cases[] = {
		{ONE("ReLU", "[8,6]", "[1]", "['x0']", "{}"), "[4,1]"},
		{ONE("ReLU", "[7,6]", "[1]", "['x0']", "{}"), "[1,1]"},
		{ONE("Add", "[6]", "[8,6]", "['x0','w0']", "{}"), "[1][4,1]"},
		{ONE("Mul", "[1,6]", "[8,6]", "['x0','w0']", "{}"), "[1,1][4,1]"},
		{ONE("MatMul", "[5,24]", "[5,6]", "['x0','w0']", "{'transpose_a':true}"), "[1,12][1,1]"},
		{ONE("Transpose", "[8,6]", "[1]", "['x0']", "{'perm':[1,0]}"), "[4,1]"},
		{ONE("ReduceSum", "[8,6]", "[1]", "['x0']", "{'axis':[0]}"), "[4,1]"},
		{ONE("ExpandDims", "[8,6]", "[1]", "['x0']", "{'axis':-1}"), "[4,1]"},
		{ONE("Gather", "[1]", "[24,8]", "['w','i0']", "{'axis':0}"), "[1,1][2]"},
		{ONE("OneHot", "[1]", "[1]", "['i0']", "{'depth':24}"), "[1,1][][]"},
		{ONE("ReLU", "[]", "[1]", "['x0']", "{}"), "[]"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const int32_t *const *counts;
		struct fixture f;

		fixture_open(&f, 12, 12, "a100-80");
		fixture_graph(&f, cases[i].graph);
		ck_assert_int_eq(complete(&f, &counts), AP_OK);
		ck_assert_str_eq(strategy(&f, "one", counts[fixture_node(&f, "one")]),
			cases[i].strategy);
		fixture_close(&f);
	}
}
END_TEST

static const char *only_error(struct fixture *f)
{
	const char *check, *text, *error = NULL;
	enum ap_level level;

	for (size_t i = 0; (text = ap_diag_text(f->ctx.diag, i, &level, &check)); i++)
		if (level == AP_ERROR) {
			ck_assert_ptr_null(error);
			error = text;
		}
	ck_assert_ptr_nonnull(error);
	return error;
}

START_TEST(semi_auto_names_what_it_cannot_complete)
{
	const int32_t *const *counts;
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, TIED(",'in_strategy':[[4,1],[1]]"));
	ck_assert_int_eq(complete(&f, &counts), AP_INFEASIBLE);
	ck_assert_str_eq(only_error(&f), "users of a shared parameter would hold it in different "
		"layouts; in semi_auto_parallel each of them needs an in_strategy");
	fixture_close(&f);
}
END_TEST

/* In a pipeline the sending of a shared parameter follows those that use it, that of a result those
 * that make it. */
START_TEST(semi_auto_sends_as_it_lies)
{
	const int32_t *const *counts;
	struct ap_spot spot[4] = {{0, 0, 0}, {0, 0, 0}, {1, 0, 1}, {1, 0, 1}};
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, TIED(""));
	ap_graph_staged(&f.ctx, f.graph, spot, &f.graph);
	ck_assert_int_eq(complete(&f, &counts), AP_OK);
	ck_assert_str_eq(strategy(&f, "look", counts[fixture_node(&f, "look")]), "[1,1][4]");
	ck_assert_str_eq(strategy(&f, "Send/r/0.0->1.0", counts[fixture_node(&f, "Send/r/0.0->1.0")]),
		"[4,1]");
	ck_assert_str_eq(strategy(&f, "Receive/r/0.0->1.0", counts[fixture_node(&f, "Receive/r/0.0->1.0")]),
		"[4,1]");
	ck_assert_str_eq(strategy(&f, "Send/table/0.0->1.0",
				 counts[fixture_node(&f, "Send/table/0.0->1.0")]),
		"[1,1]");
	ck_assert_str_eq(strategy(&f, "Receive/table/0.0->1.0",
				 counts[fixture_node(&f, "Receive/table/0.0->1.0")]),
		"[1,1]");
	fixture_close(&f);
}
END_TEST

START_TEST(given_strategies_that_exclude_each_other)
{
	const int32_t *const *fixed;
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, "{'schema':'autopar-graph/1','name':'two',"
		"'inputs':[{'name':'x','shape':[8,4],'dtype':'float32'}],"
		"'parameters':[{'name':'w','shape':[4,4],'dtype':'float32'}],'operators':["
		MATMUL("a", "x", "w", "y", ",'in_strategy':[[1,1],[1,4]]")
		"{'name':'b','type':'Add','inputs':['y','w0'],'outputs':[{'name':'z'}]},"
		"{'name':'c','type':'ReduceSum','inputs':['w'],'attrs':{'axis':[0],'keep_dims':true},"
		"'outputs':[{'name':'w0'}],'in_strategy':[[4,1]]}],'outputs':['z']}");
	ck_assert_int_eq(ap_pins_make(&f.ctx, f.graph, 4, &f.step, NULL, &fixed), AP_INFEASIBLE);
	ck_assert_str_eq(only_error(&f), "the strategies that are given cannot stand together: users "
		"of a shared parameter would hold it in different layouts");
	fixture_close(&f);
}
END_TEST

/* Pins of one product [24,60] x [60,18] and of a OneHot of depth 12 on some devices: the reason where
 * they are none, NULL where they are. What no length allows at all is found earlier, by the graph. */
#define PINNED(pin) \
	"{'schema':'autopar-graph/1','name':'pinned'," \
	"'inputs':[{'name':'x','shape':[24,60],'dtype':'float32','batch_dim':0}," \
	"{'name':'i','shape':[24],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[60,18],'dtype':'float32'}],'operators':[" \
	MATMUL("mm", "x", "w", "y", pin) \
	"{'name':'hot','type':'OneHot','inputs':['i'],'attrs':{'depth':12}," \
	"'outputs':[{'name':'h'}],'in_strategy':[[1,1],[],[]]}],'outputs':['y','h']}"

START_TEST(which_strategies_may_be_given)
{
#define NOT "in_strategy is not possible on "
	static const struct {
		int64_t ndev;
		const char *graph, *why;
	} cases[] = {
		{8, PINNED(",'in_strategy':[[2,2],[2,2]]"), NULL},
		{8, PINNED(",'in_strategy':[[2,1],[1,1]]"), NULL}, /* the rest repeats */
		{12, PINNED(",'in_strategy':[[3,2],[2,2]]"), NULL},
		{12, PINNED(",'in_strategy':[[6,1],[1,1]]"), NULL},
		{24, PINNED(",'in_strategy':[[4,1],[1,6]]"), NULL},
		{12, PINNED(",'in_strategy':[[4,2],[2,2]]"),
			NOT "12 devices: 4 x 2 x 2 parts; a divisor of the 12 devices is allowed"},
		{8, PINNED(",'in_strategy':[[3,1],[1,1]]"),
			NOT "8 devices: input 0 (\"x\"), dimension 0 of length 24: 3 parts are no "
			    "power of two, which 8 devices need; 1, 2, 4, 8 are allowed"},
		{8, PINNED(",'in_strategy':[[2,2],[4,1]]"),
			NOT "8 devices: input 1 (\"w\"), dimension 0 of length 60: 4 parts; 2 are "
			    "allowed, as many as of input 0 (\"x\"), dimension 1 of length 60"},
		{4, PINNED(",'in_strategy':[[8,1],[1,1]]"),
			NOT "4 devices: 8 parts; a divisor of the 4 devices is allowed"},
		{8, PINNED(",'in_strategy':[[4,2],[2,1]],'out_strategy':[[8,1]]"), NULL},
		{8, PINNED(",'in_strategy':[[4,2],[2,1]],'out_strategy':[[4,1]]"), NULL},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const int32_t *const *fixed;
		enum ap_status st;
		struct fixture f;

		fixture_open(&f, cases[i].ndev, cases[i].ndev, "a100-80");
		fixture_graph(&f, cases[i].graph);
		st = ap_pins_make(&f.ctx, f.graph, cases[i].ndev, &f.step, NULL, &fixed);
		ck_assert_int_eq(st, cases[i].why ? AP_MEANING : AP_OK);
		if (cases[i].why)
			ck_assert_str_eq(only_error(&f), cases[i].why);
		fixture_close(&f);
	}
#undef NOT
}
END_TEST

/* Two products that do not fit together are redistributed between: all of h gathered along its columns,
 * then dealt by rows is one AlltoAll of what a rank holds. */
START_TEST(given_strategies_that_differ_along_an_edge)
{
	struct fixture f;
	struct ap_request rq;
	struct ap_plan p;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, "{'schema':'autopar-graph/1','name':'edge',"
		"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32'}],"
		"'parameters':[" WEIGHT("a", "[8,32]") "," WEIGHT("b", "[32,8]") "],'operators':["
		MATMUL("up", "x", "a", "h", ",'in_strategy':[[1,1],[1,4]]")
		"{'name':'down','type':'MatMul','inputs':['h','b'],'outputs':[{'name':'y'}],"
		"'in_strategy':[[4,1],[1,1]]}],'outputs':['y']}");
	rq = (struct ap_request){.graph = f.graph, .machine = f.machine, .step = &f.step,
		.capacity_bytes = INT64_C(1) << 40, .search_mode = "sharding_propagation",
		.prune = true};
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &p, NULL), AP_OK);
	ck_assert_str_eq(p.search.mode, "sharding_propagation");
	ck_assert_uint_eq(p.nmove, 1);
	ck_assert_int_eq(p.move[0].nstep, 1);
	ck_assert_int_eq(p.move[0].cost.bytes, 16 * 8 * 4 * 3 / 4);
	ck_assert(p.search.objective_s >= p.search.lower_bound_s);
	fixture_close(&f);
}
END_TEST

/* What was found, given back: the graph's own pin wins, the rest stays. */
START_TEST(the_graph_wins_over_what_is_given)
{
	const int32_t *given[2] = {0}, *const *fixed;
	int32_t count[2][AP_MAX_FACTOR];
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, PINNED(",'in_strategy':[[2,2],[2,2]]"));
	for (ap_id i = 0; i < 2; i++) {
		fixture_counts(&f, i, "", count[i]);
		given[i] = count[i];
	}
	ck_assert_int_eq(ap_pins_make(&f.ctx, f.graph, 8, &f.step, given, &fixed), AP_OK);
	ck_assert_str_eq(strategy(&f, "mm", fixed[fixture_node(&f, "mm")]), "[2,2][2,2]");
	fixture_close(&f);
}
END_TEST

static bool was_noted(struct fixture *f, const char *name)
{
	enum ap_level level;
	const char *check;
	bool found = false;

	for (size_t i = 0; ap_diag_text(f->ctx.diag, i, &level, &check); i++)
		found |= check && strcmp(check, name) == 0;
	return found;
}

/* Propagation does not look at memory. One byte less than its plan needs: the exact engine's. */
START_TEST(what_does_not_fit_is_left_to_the_exact_engine)
{
	struct ap_plan wide, narrow;
	struct ap_request rq;
	struct fixture f;

	fixture_open(&f, 8, 8, "a100-80");
	fixture_graph(&f, layer);
	rq = (struct ap_request){.graph = f.graph, .machine = f.machine, .step = &f.step,
		.capacity_bytes = INT64_C(1) << 40, .search_mode = "sharding_propagation",
		.prune = true};
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &wide, NULL), AP_OK);
	ck_assert(!was_noted(&f, "mode-fits"));
	rq.capacity_bytes = wide.prediction.memory.total - 1;
	ck_assert_int_eq(ap_drive_search(&f.ctx, &rq, &narrow, NULL), AP_OK);
	ck_assert(was_noted(&f, "mode-fits"));
	ck_assert_int_le(narrow.prediction.memory.total, rq.capacity_bytes);
	ck_assert_str_eq(narrow.search.mode, "sharding_propagation");
	fixture_close(&f);
}
END_TEST
