/* SPDX-License-Identifier: Apache-2.0 */
/* MindSpore's propagation of strategies, rule by rule, by examples that are worked out by hand. */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "fixture.h"
#include "harness.h"
#include "plan/plan.h"
#include "route/propagation.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/space.h"
#include "shard/strategy.h"
#include "unit.h"

/* The network of the r1.7 page on sharding_propagation: dense1, relu, dense2. */
#define FFN \
	"{'schema':'autopar-graph/1','name':'ffn'," \
	"'inputs':[{'name':'x','shape':[64,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w1','shape':[64,64],'dtype':'float32'}," \
	"{'name':'b1','shape':[64],'dtype':'float32'}," \
	"{'name':'w2','shape':[64,64],'dtype':'float32'}," \
	"{'name':'b2','shape':[64],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'matmul1','type':'MatMul','inputs':['x','w1'],'outputs':[{'name':'a'}]}," \
	"{'name':'add1','type':'Add','inputs':['a','b1'],'outputs':[{'name':'b'}]}," \
	"{'name':'relu','type':'ReLU','inputs':['b'],'outputs':[{'name':'c'}]}," \
	"{'name':'matmul2','type':'MatMul','inputs':['c','w2'],'outputs':[{'name':'d'}]}," \
	"{'name':'add2','type':'Add','inputs':['d','b2'],'outputs':[{'name':'e'}]}]," \
	"'outputs':['e']}"

/* Every operator in a row, [64, 64] each. */
#define CHAIN(head) \
	"{'schema':'autopar-graph/1','name':'chain'," head \
	"'operators':[" \
	"{'name':'relu1','type':'ReLU','inputs':['x'],'outputs':[{'name':'a'}]}," \
	"{'name':'relu2','type':'ReLU','inputs':['a'],'outputs':[{'name':'b'}]}," \
	"{'name':'relu3','type':'ReLU','inputs':['b'],'outputs':[{'name':'c'}]}," \
	"{'name':'soft','type':'Softmax','inputs':['c'],'outputs':[{'name':'d'}]}]," \
	"'outputs':['d']}"
#define X_INPUT "'inputs':[{'name':'x','shape':[64,64],'dtype':'float32','batch_dim':0}],"
#define X_PARAMETER "'inputs':[],'parameters':[{'name':'x','shape':[64,64],'dtype':'float32'}],"

/* Two branches that meet, and a part that hangs on nothing. */
#define MEET \
	"{'schema':'autopar-graph/1','name':'meet'," \
	"'inputs':[{'name':'x','shape':[64,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[12,6],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'left','type':'ReLU','inputs':['x'],'outputs':[{'name':'a'}]}," \
	"{'name':'right','type':'ReLU','inputs':['x'],'outputs':[{'name':'b'}]}," \
	"{'name':'add','type':'Add','inputs':['a','b'],'outputs':[{'name':'c'}]}," \
	"{'name':'far','type':'ReLU','inputs':['w'],'outputs':[{'name':'d'}]}]," \
	"'outputs':['c','d']}"

/* A Reshape between two operators. */
#define FOLD \
	"{'schema':'autopar-graph/1','name':'fold'," \
	"'inputs':[{'name':'x','shape':[8,16,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[64,32],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'relu','type':'ReLU','inputs':['x'],'outputs':[{'name':'a'}]}," \
	"{'name':'fold','type':'Reshape','inputs':['a'],'attrs':{'shape':[128,64]}," \
	"'outputs':[{'name':'b'}]}," \
	"{'name':'fold2','type':'Reshape','inputs':['b'],'attrs':{'shape':[64,128]}," \
	"'outputs':[{'name':'e'}]}," \
	"{'name':'last','type':'ReLU','inputs':['e'],'outputs':[{'name':'f'}]}," \
	"{'name':'matmul','type':'MatMul','inputs':['b','w'],'outputs':[{'name':'c'}]}]," \
	"'outputs':['c','f']}"

/* One weight in two products. */
#define TIED \
	"{'schema':'autopar-graph/1','name':'tied'," \
	"'inputs':[{'name':'x','shape':[64,64],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[64,64],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'up','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'a'}]}," \
	"{'name':'relu','type':'ReLU','inputs':['a'],'outputs':[{'name':'b'}]}," \
	"{'name':'down','type':'MatMul','inputs':['b','w'],'outputs':[{'name':'c'}]}]," \
	"'outputs':['c']}"

/* What a Reshape hands nothing to, and then the same as a ReLU. */
#define ENDS(type) \
	"{'schema':'autopar-graph/1','name':'ends'," \
	"'inputs':[{'name':'x','shape':[8,16,64],'dtype':'float32','batch_dim':0}]," \
	"'operators':[" \
	"{'name':'relu','type':'ReLU','inputs':['x'],'outputs':[{'name':'a'}]}," \
	"{'name':'fold','type':'Reshape','inputs':['a'],'attrs':{'shape':[128,64]}," \
	"'outputs':[{'name':'b'}]}," \
	"{'name':'end','type':'" type "','inputs':['b'],'outputs':[{'name':'c'}]}," \
	"{'name':'last','type':'ReLU','inputs':['c'],'outputs':[{'name':'d'}]}]," \
	"'outputs':['d']}"

struct given { /* a configured operator */
	const char *name, *cut;
};

static const int32_t **held_of(struct fixture *f, const struct given *given, size_t n)
{
	const int32_t **held = AP_NEW_N(f->ctx.arena, const int32_t *, f->graph->nnode);

	for (size_t i = 0; i < n; i++) {
		ap_id node = fixture_node(f, given[i].name);
		int32_t *count = AP_NEW_N(f->ctx.arena, int32_t, AP_MAX_FACTOR);

		fixture_counts(f, node, given[i].cut, count);
		held[node] = count;
	}
	return held;
}

/* Opens a machine, propagates; the counts of all operators. */
static const int32_t *const *propagate(struct fixture *f, const struct given *given, size_t n)
{
	const int32_t *const *out;

	ck_assert_int_eq(ap_propagation_complete(&f->ctx, f->graph, f->machine, &f->step,
		held_of(f, given, n), &out), AP_OK);
	for (ap_id i = 0; i < f->graph->nnode; i++)
		ck_assert(ap_space_legal(&f->ctx, &f->graph->node[i].bound, out[i], f->machine->ndev,
			&f->step, NULL));
	return out;
}

/* "(2,4)(4)": the strategy as shard() takes it. */
static const char *strategy(struct fixture *f, const int32_t *const *counts, const char *name)
{
	static char text[200];
	ap_id node = fixture_node(f, name);
	struct ap_placement p;
	uint8_t rank[8];
	int32_t cut[8][AP_MAX_RANK];
	uint32_t n;
	size_t at = 0;

	ap_placement_make(&f->graph->node[node].bound, counts[node], f->machine->ndev, &p);
	n = ap_space_to_strategy(&p, rank, cut, 8);
	for (uint32_t v = 0; v < n; v++) {
		for (int d = 0; d < rank[v]; d++)
			at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", d ? "," : "(",
				(int)cut[v][d]);
		at += (size_t)snprintf(text + at, sizeof text - at, "%s", rank[v] ? ")" : "()");
	}
	return text;
}

static void open(struct fixture *f, int64_t ndev, const char *graph)
{
	fixture_open(f, ndev, ndev, "a100-80");
	fixture_graph(f, graph);
}

START_TEST(what_mindspore_printed)
{
	static const struct given given[] = {{"matmul1", "m=2 n=4"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, FFN);
	f.step.fully_use = true; /* the default of 1.7 */
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "matmul1"), "(2,1)(1,4)");
	ck_assert_str_eq(strategy(&f, out, "add1"), "(2,4)(4)");
	ck_assert_str_eq(strategy(&f, out, "relu"), "(2,4)");
	ck_assert_str_eq(strategy(&f, out, "matmul2"), "(2,4)(4,1)");
	ck_assert_str_eq(strategy(&f, out, "add2"), "(2,4)(4)");
	f.step.fully_use = false; /* of 2.7: nothing is split any more that costs time */
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "matmul2"), "(2,4)(4,1)");
	ck_assert_str_eq(strategy(&f, out, "add2"), "(2,1)(1)");
	fixture_close(&f);
}
END_TEST

/* The dataset is the first that is configured; what it reaches is decided. */
START_TEST(dataset_comes_first)
{
	static const struct given given[] = {{"relu2", "A=2 B=4"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, CHAIN(X_INPUT));
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "relu1"), "(8,1)");
	ck_assert_str_eq(strategy(&f, out, "relu2"), "(2,4)");
	f.step.full_batch = true;
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "relu1"), "(1,1)");
	ck_assert_str_eq(strategy(&f, out, "relu3"), "(2,4)");
	out = propagate(&f, NULL, 0);
	ck_assert_str_eq(strategy(&f, out, "soft"), "(1,1)");
	fixture_close(&f);
}
END_TEST

/* To the producer as to the consumer; what may not be cut is gathered, which moves fewer bytes than an
 * AlltoAll: 4096 + 1024 and 1024, of which each is charged at least 3072, to twice 4096 + 1024. */
START_TEST(both_ways)
{
	static const struct given given[] = {{"relu2", "A=2 B=4"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, CHAIN(X_PARAMETER));
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "relu1"), "(2,4)");
	ck_assert_str_eq(strategy(&f, out, "relu3"), "(2,4)");
	ck_assert_str_eq(strategy(&f, out, "soft"), "(2,1)");
	fixture_close(&f);
}
END_TEST

/* Rows and columns: both ways an AlltoAll of the other branch, 4 s; that which concatenates the first
 * dimension computes less, 2 s and not 18 s. */
START_TEST(branches_meet)
{
	static const struct given given[] = {{"left", "A=8"}, {"right", "B=8"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, MEET);
	out = propagate(&f, given, 2);
	ck_assert_str_eq(strategy(&f, out, "left"), "(8,1)");
	ck_assert_str_eq(strategy(&f, out, "right"), "(1,8)");
	ck_assert_str_eq(strategy(&f, out, "add"), "(1,8)(1,8)");
	fixture_close(&f);
}
END_TEST

/* What nothing reaches takes its first candidate: whole, or cut by the odd part of the devices. */
START_TEST(out_of_reach)
{
	struct fixture f;

	open(&f, 8, MEET);
	ck_assert_str_eq(strategy(&f, propagate(&f, NULL, 0), "far"), "(1,1)");
	fixture_close(&f);
	open(&f, 6, MEET);
	ck_assert_str_eq(strategy(&f, propagate(&f, NULL, 0), "far"), "(3,1)");
	fixture_close(&f);
}
END_TEST

/* A Reshape takes its producer's layout and hands on what becomes of it; not to another Reshape. */
START_TEST(reshapes)
{
	static const struct given given[] = {{"relu", "A=4 C=2"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, FOLD);
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "fold"), "(4,1,2)");
	ck_assert_str_eq(strategy(&f, out, "matmul"), "(4,2)(2,1)");
	ck_assert_str_eq(strategy(&f, out, "last"), "(1,1)");
	fixture_close(&f);
}
END_TEST

/* Back through a Reshape: its producer takes what the consumer's layout was before. */
START_TEST(reshape_backward)
{
	static const struct given given[] = {{"last", "A=8"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, FOLD);
	f.step.full_batch = true;
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "last"), "(8,1)");
	ck_assert_str_eq(strategy(&f, out, "relu"), "(1,1,1)");
	fixture_close(&f);
}
END_TEST

/* VirtualOutput gets nothing from a Reshape, and what is behind it nothing from either. */
START_TEST(reshape_ends)
{
	struct fixture f;

	open(&f, 8, ENDS("VirtualOutput"));
	ck_assert_str_eq(strategy(&f, propagate(&f, NULL, 0), "last"), "(1,1)");
	fixture_close(&f);
	open(&f, 8, ENDS("ReLU"));
	ck_assert_str_eq(strategy(&f, propagate(&f, NULL, 0), "last"), "(8,1)");
	fixture_close(&f);
}
END_TEST

START_TEST(shared_parameter)
{
	static const struct given given[] = {{"up", "m=2 n=4"}};
	static const struct given both[] = {{"up", "m=2 n=4"}, {"down", "m=4 n=2"}};
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, TIED);
	out = propagate(&f, given, 1);
	ck_assert_str_eq(strategy(&f, out, "up"), "(2,1)(1,4)");
	ck_assert_str_eq(strategy(&f, out, "down"), "(2,1)(1,4)");
	ck_assert_int_eq(ap_propagation_complete(&f.ctx, f.graph, f.machine, &f.step,
		held_of(&f, both, 2), &out), AP_INFEASIBLE);
	fixture_close(&f);
}
END_TEST

START_TEST(no_strategy_anywhere)
{
	struct fixture f;
	const int32_t *const *out;

	open(&f, 8, CHAIN(X_PARAMETER));
	ck_assert_int_eq(ap_propagation_complete(&f.ctx, f.graph, f.machine, &f.step, NULL, &out),
		AP_INFEASIBLE);
	ck_assert_ptr_nonnull(strstr(messages(&f.ctx), "no operator has a strategy"));
	fixture_close(&f);
}
END_TEST
