/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives derived from the rules, with bytes and ranks, in both gradient conventions. */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/cost.h"
#include "fixture.h"
#include "cost/opcost.h"
#include "harness.h"
#include "cost/comms.h"
#include "cost/move.h"
#include "cost/task.h"
#include "hw/coll.h"
#include "hw/group.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/space.h"

static const char *const phases[] = {"forward", "backward", "gradient", "optimizer", "recompute"};

static void write_group(struct ap_str *s, const struct ap_axes *axes)
{
	int64_t ranks[64], size = ap_axes_size(axes);

	ap_axes_group(axes, 0, ranks);
	for (int64_t r = 0; r < size; r++)
		ap_str_addf(s, "%s%lld", r ? "," : " {", (long long)ranks[r]);
	ap_str_addc(s, '}');
}

static void write_comm(void *user, const struct ap_comm *c)
{
	struct ap_str *s = user;

	ap_str_addf(s, "%s%s %s %lld", s->len ? "; " : "", phases[c->phase], ap_coll_name(c->kind),
		(long long)c->bytes);
	write_group(s, &c->axes);
}

/* "partial 0 {0,1,2,3}; forward AllReduce 512 {0,1,2,3}; ...": first operands whose gradient is partial. */
static const char *derived(struct fixture *f, const char *name, const char *cut)
{
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	const struct ap_task *tasks;
	struct ap_placement p;
	struct ap_str s;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &tasks);
	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, f->machine->ndev, &p);
	ap_str_init(&s, f->ctx.arena);
	for (int i = 0; i < tasks[node].bound->nin; i++) {
		struct ap_axes partial;

		ap_gradient_partial(&tasks[node], i, &p, &f->step, &partial);
		if (partial.n == 0)
			continue;
		ap_str_addf(&s, "%spartial %d", s.len ? "; " : "", i);
		write_group(&s, &partial);
	}
	ap_comms_derive(&tasks[node], &p, &f->step, write_comm, &s);
	return s.s;
}

static void expect(const char *graph, const char *node, const char *cut, bool shard,
	const char *mindspore, const char *generic)
{
	for (int e = 0; e < 2; e++) {
		struct fixture f;

		fixture_open(&f, 4, 4, "a100-80");
		f.step.executor = e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
		f.step.optimizer_sharding = shard;
		f.step.shard_threshold_bytes = 1024;
		fixture_graph(&f, graph);
		ck_assert_str_eq(derived(&f, node, cut), e ? generic : mindspore);
		fixture_close(&f);
	}
}

START_TEST(column_then_row)
{
	expect(FIXTURE_PAIR, "up", "n=4", false, "", "partial 0 {0,1,2,3}");
	expect(FIXTURE_PAIR, "down", "k=4", false,
		"forward AllReduce 512 {0,1,2,3}; backward AllReduce 512 {0,1,2,3}",
		"forward AllReduce 512 {0,1,2,3}");
}
END_TEST

/* A product and a look-up whose partial sums are dealt along dimension 0; pinned so for 4 devices. */
#define DEALT \
	"{'schema':'autopar-graph/1','name':'dealt'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}," \
	"{'name':'ids','shape':[16],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'b','shape':[8],'dtype':'float32'}," \
	"{'name':'w','shape':[8,32],'dtype':'float32'}," \
	"{'name':'table','shape':[64,32],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b'],'outputs':[{'name':'x0'}]}," \
	"{'name':'mm','type':'MatMul','inputs':['x0','w'],'outputs':[{'name':'y'}]," \
	"'in_strategy':[[1,4],[4,1]],'out_strategy':[[4,1]]}," \
	"{'name':'look','type':'Gather','inputs':['table','ids'],'outputs':[{'name':'e'}]," \
	"'in_strategy':[[4,1],[1]],'out_strategy':[[4,1]]}," \
	"{'name':'sum','type':'Add','inputs':['y','e'],'outputs':[{'name':'s'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['s'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* The sizes are those of the whole buffer: an AllReduce would move twice as much. Nobody needs an
 * exchange of the weight's gradient: every rank has rows of its own. */
START_TEST(dealt_sums)
{
	expect(DEALT, "mm", "k=4", false,
		"forward ReduceScatter 2048 {0,1,2,3}; backward AllGather 2048 {0,1,2,3}",
		"forward ReduceScatter 2048 {0,1,2,3}; backward AllGather 2048 {0,1,2,3}");
	expect(DEALT, "mm", "m=2 k=2", false,
		"forward ReduceScatter 1024 {0,1}; backward AllGather 1024 {0,1}; "
		"gradient AllReduce 512 {0,2}",
		"forward ReduceScatter 1024 {0,1}; backward AllGather 1024 {0,1}; "
		"gradient AllReduce 512 {0,2}");
	expect(DEALT, "look", "v=4", false,
		"forward ReduceScatter 2048 {0,1,2,3}; backward AllGather 2048 {0,1,2,3}",
		"forward ReduceScatter 2048 {0,1,2,3}; backward AllGather 2048 {0,1,2,3}");
	/* Without a cut of what is summed there is nothing to deal. */
	expect(DEALT, "mm", "m=4", false, "gradient AllReduce 1024 {0,1,2,3}",
		"gradient AllReduce 1024 {0,1,2,3}");
}
END_TEST

START_TEST(dealt_results_lie_in_parts)
{
	struct ap_layout plain = {.rank = 2, .dim = {{4, 1}, {1, 0}}}, l;
	int32_t count[AP_MAX_FACTOR];
	struct ap_placement p;
	struct ap_op_cost c;
	struct fixture f;
	const struct ap_task *tasks;
	const char *why;
	ap_id mm;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, DEALT);
	mm = fixture_node(&f, "mm");
	fixture_counts(&f, mm, "k=4", count);
	ap_placement_make(&f.graph->node[mm].bound, count, 4, &p);
	ck_assert(ap_layout_make(&p, &f.graph->node[mm].bound.out[0], &l));
	ck_assert(ap_layout_equal(&l, &plain));
	ap_tasks_make(&f.ctx, f.graph, &f.step, &tasks);
	ap_op_cost_make(ap_pricer_create(f.ctx.arena, f.machine, &f.step), &tasks[mm], &p, &c);
	/* Backward: the gradient of this rank's part, all of it once gathered, that of x0's slice. */
	ck_assert_int_eq(c.temporary_bytes, 512 + 2048 + 128);
	f.step.micro_batches = 8; /* two rows each: no four parts */
	ck_assert(!ap_space_legal(&f.ctx, &f.graph->node[mm].bound, count, 4, &f.step, &why));
	ck_assert_str_eq(why, "result 0, dimension 0 of length 16 = 16 x 8 (2 in a micro-batch): 4 parts with those "
		"of the sum dealt; 1, 2 are allowed");
	fixture_close(&f);
}
END_TEST

START_TEST(data_parallel)
{
	expect(FIXTURE_PAIR, "up", "m=4", false, "gradient AllReduce 1024 {0,1,2,3}",
		"gradient AllReduce 1024 {0,1,2,3}");
	expect(FIXTURE_PAIR, "add", "A=4", false, "gradient AllReduce 32 {0,1,2,3}",
		"gradient AllReduce 32 {0,1,2,3}");
	/* Two parts and a repeat on the right: MindSpore mirrors over the repeat as well. */
	expect(FIXTURE_PAIR, "up", "m=2", false, "gradient AllReduce 1024 {0,1,2,3}",
		"gradient AllReduce 1024 {0,2}");
	expect(FIXTURE_PAIR, "up", "m=2 n=2", false, "gradient AllReduce 512 {0,2}",
		"partial 0 {0,1}; gradient AllReduce 512 {0,2}");
}
END_TEST

START_TEST(optimizer_sharding)
{
	expect(FIXTURE_PAIR, "up", "m=4", true,
		"gradient ReduceScatter 1024 {0,1,2,3}; optimizer AllGather 1024 {0,1,2,3}",
		"gradient ReduceScatter 1024 {0,1,2,3}; optimizer AllGather 1024 {0,1,2,3}");
	/* 32 bytes are below the threshold. */
	expect(FIXTURE_PAIR, "add", "A=4", true, "gradient AllReduce 32 {0,1,2,3}",
		"gradient AllReduce 32 {0,1,2,3}");
	expect(FIXTURE_PAIR, "up", "n=4", true, "", "partial 0 {0,1,2,3}");
}
END_TEST

/* Sharding by two of four ranks, or by all where only some have parts of the gradient. */
static void expect_shard_of(int64_t ndev, int64_t size, const char *cut, const char *mindspore,
	const char *generic)
{
	for (int e = 0; e < 2; e++) {
		struct fixture f;

		fixture_open(&f, ndev, ndev, "a100-80");
		f.step.executor = e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;
		f.step.optimizer_sharding = true;
		f.step.shard_size = size;
		f.step.shard_threshold_bytes = 1024;
		fixture_graph(&f, FIXTURE_PAIR);
		ck_assert_str_eq(derived(&f, "up", cut), e ? generic : mindspore);
		fixture_close(&f);
	}
}

START_TEST(sharding_by_some)
{
	/* The ranks that deal the update are neighbours; the others hold the same shards. */
	expect_shard_of(4, 2, "m=4",
		"gradient ReduceScatter 1024 {0,1}; gradient AllReduce 512 {0,2}; "
		"optimizer AllGather 1024 {0,1}",
		"gradient ReduceScatter 1024 {0,1}; gradient AllReduce 512 {0,2}; "
		"optimizer AllGather 1024 {0,1}");
	/* Two parts of the rows, repeated by neighbours: those have the same gradient in the generic
	 * convention, and update a part each. */
	expect_shard_of(4, 2, "m=2",
		"gradient ReduceScatter 1024 {0,1}; gradient AllReduce 512 {0,2}; "
		"optimizer AllGather 1024 {0,1}",
		"gradient AllReduce 512 {0,2}; optimizer AllGather 1024 {0,1}");
	/* All four deal the update, two have parts of the gradient: the sum is needed whole. */
	expect_shard_of(4, -1, "m=2",
		"gradient ReduceScatter 1024 {0,1,2,3}; optimizer AllGather 1024 {0,1,2,3}",
		"gradient AllReduce 1024 {0,2}; optimizer AllGather 1024 {0,1,2,3}");
	/* Pairs of neighbours deal the update; of the two with parts of a sum, three ranks apart, one has
	 * an even number and one an odd one: they update different rows, so both need all. */
	expect_shard_of(6, 2, "m=2",
		"gradient ReduceScatter 1024 {0,1}; gradient AllReduce 512 {0,2,4}; "
		"optimizer AllGather 1024 {0,1}",
		"gradient AllReduce 1024 {0,3}; optimizer AllGather 1024 {0,1}");
}
END_TEST

#define TIED \
	"{'schema':'autopar-graph/1','name':'tied'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[8,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'first','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'second','type':'MatMul','inputs':['y','w'],'outputs':[{'name':'z'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['z'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* The sum of all uses is mirrored over all holders, once; in the generic convention each use sums what
 * it has parts of: with two parts of the rows, repeated, one of them. */
START_TEST(shared_parameter)
{
	expect(TIED, "first", "m=4", false, "gradient AllReduce 256 {0,1,2,3}",
		"gradient AllReduce 256 {0,1,2,3}");
	expect(TIED, "second", "m=4", false, "", "gradient AllReduce 256 {0,1,2,3}");
	expect(TIED, "first", "m=2", false, "gradient AllReduce 256 {0,1,2,3}",
		"gradient AllReduce 256 {0,2}");
	expect(TIED, "second", "m=2", false, "", "gradient AllReduce 256 {0,2}");
}
END_TEST

START_TEST(reduction)
{
	expect(FIXTURE_PAIR, "loss", "A=4", false,
		"forward AllReduce 4 {0,1,2,3}; backward AllReduce 4 {0,1,2,3}",
		"forward AllReduce 4 {0,1,2,3}");
}
END_TEST

#define GATHER \
	"{'schema':'autopar-graph/1','name':'gather'," \
	"'inputs':[{'name':'ids','shape':[4,6],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'table','shape':[64,8],'dtype':'float32'}," \
	"{'name':'gamma','shape':[8],'dtype':'float32'},{'name':'beta','shape':[8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'look','type':'Gather','inputs':['table','ids'],'outputs':[{'name':'e'}]," \
	"'attrs':{'axis':0}}," \
	"{'name':'norm','type':'LayerNorm','inputs':['e','gamma','beta']," \
	"'outputs':[{'name':'y'}],'attrs':{'begin_norm_axis':-1,'begin_params_axis':-1}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

START_TEST(vocabulary_cut)
{
	expect(GATHER, "look", "v=4", false,
		"forward AllReduce 768 {0,1,2,3}; backward AllReduce 768 {0,1,2,3}",
		"forward AllReduce 768 {0,1,2,3}");
	/* Cut by the batch: the whole table's gradient is exchanged. */
	expect(GATHER, "look", "A=4", false, "gradient AllReduce 2048 {0,1,2,3}",
		"gradient AllReduce 2048 {0,1,2,3}");
	/* Half the vocabulary each, repeats on the left: stride of v is 1. */
	expect(GATHER, "look", "v=2", false,
		"forward AllReduce 768 {0,1}; backward AllReduce 768 {0,1}; "
		"gradient AllReduce 1024 {0,2}",
		"forward AllReduce 768 {0,1}");
}
END_TEST

START_TEST(layer_norm_parameters)
{
	expect(GATHER, "norm", "A=2 B=2", false,
		"gradient AllReduce 32 {0,1,2,3}; gradient AllReduce 32 {0,1,2,3}",
		"gradient AllReduce 32 {0,1,2,3}; gradient AllReduce 32 {0,1,2,3}");
}
END_TEST

#define THREE \
	"{'schema':'autopar-graph/1','name':'three'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'b0','shape':[8],'dtype':'float32'}," \
	"{'name':'wq','shape':[8,8],'dtype':'float32'},{'name':'wk','shape':[8,8],'dtype':'float32'}," \
	"{'name':'wv','shape':[8,8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','b0'],'outputs':[{'name':'t'}]}," \
	"{'name':'q','type':'MatMul','inputs':['t','wq'],'outputs':[{'name':'tq'}]}," \
	"{'name':'k','type':'MatMul','inputs':['t','wk'],'outputs':[{'name':'tk'}]}," \
	"{'name':'v','type':'MatMul','inputs':['t','wv'],'outputs':[{'name':'tv'}]}," \
	"{'name':'qk','type':'Add','inputs':['tq','tk'],'outputs':[{'name':'u'}]}," \
	"{'name':'qkv','type':'Add','inputs':['u','tv'],'outputs':[{'name':'w'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['w'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

START_TEST(three_consumers)
{
	const char *const names[] = {"q", "k", "v"};

	for (int i = 0; i < 3; i++)
		expect(THREE, names[i], "m=2 n=2", false, "gradient AllReduce 128 {0,2}",
			"partial 0 {0,1}; gradient AllReduce 128 {0,2}");
}
END_TEST

/* A sum and a mean over the batch, marked by the key and by the attribute. */
#define CROSS_BATCH(key, attr) \
	"{'schema':'autopar-graph/1','name':'cross'," \
	"'inputs':[{'name':'x','shape':[16,8],'dtype':'float32','batch_dim':0}]," \
	"'parameters':[{'name':'p','shape':[8],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','p'],'outputs':[{'name':'y'}]," key "}," \
	"{'name':'sum','type':'ReduceSum','inputs':['y'],'outputs':[{'name':'s'}]," key "," \
	"'attrs':{'axis':0" attr "}}," \
	"{'name':'mean','type':'ReduceMean','inputs':['y'],'outputs':[{'name':'m'}]," key "," \
	"'attrs':{'axis':0" attr "}}," \
	"{'name':'both','type':'Mul','inputs':['s','m'],'outputs':[{'name':'b'}]}," \
	"{'name':'loss','type':'ReduceMean','inputs':['b'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

#define SUMMED(ranks) "forward AllReduce 32 {" ranks "}"
#define SUMMED_BACK(ranks) SUMMED(ranks) "; backward AllReduce 32 {" ranks "}"

START_TEST(parts_of_the_batch)
{
	static const char *const marked[] = {CROSS_BATCH("'cross_batch':true", ""),
		CROSS_BATCH("'cross_batch':false", ",'cross_batch':true")};
	static const char plain[] = CROSS_BATCH("'cross_batch':false", "");

	expect(plain, "sum", "A=4", false, SUMMED_BACK("0,1,2,3"), SUMMED("0,1,2,3"));
	expect(plain, "mean", "A=4", false, SUMMED_BACK("0,1,2,3"), SUMMED("0,1,2,3"));
	for (int i = 0; i < 2; i++) {
		expect(marked[i], "sum", "A=4", false, "", "");
		expect(marked[i], "sum", "A=2", false, "", "");
		expect(marked[i], "mean", "A=4", false, "", "");
		/* Not the batch alone, or not among all. */
		expect(marked[i], "mean", "A=2", false, SUMMED_BACK("0,2"), SUMMED("0,2"));
		expect(marked[i], "mean", "A=2 B=2", false,
			"forward AllReduce 16 {0,2}; backward AllReduce 16 {0,2}",
			"forward AllReduce 16 {0,2}");
	}
	/* No reduction: its parameter's gradient is exchanged as ever. */
	expect(marked[0], "add", "A=4", false, "gradient AllReduce 32 {0,1,2,3}",
		"gradient AllReduce 32 {0,1,2,3}");
}
END_TEST

#define FLASH \
	"{'schema':'autopar-graph/1','name':'flash'," \
	"'inputs':[{'name':'x','shape':[4,8,16],'dtype':'float16','batch_dim':0}]," \
	"'parameters':[{'name':'p','shape':[16],'dtype':'float16'}]," \
	"'operators':[" \
	"{'name':'add','type':'Add','inputs':['x','p'],'outputs':[{'name':'q'}]}," \
	"{'name':'fa','type':'FlashAttentionScore','inputs':['q','q','q']," \
	"'outputs':[{'name':'m'},{'name':'s'},{'name':'u'},{'name':'o'}]," \
	"'attrs':{'head_num':4,'input_layout':'BSH','sparse_mode':2}}," \
	"{'name':'loss','type':'ReduceMean','inputs':['o'],'outputs':[{'name':'l'}]}]," \
	"'outputs':['l']}"

/* Heads are independent; a cut sequence makes the gradients of keys and values partial. The third
 * result is a place holder of one element, and is not reduced. */
START_TEST(attention)
{
	expect(FLASH, "fa", "n=4", false, "", "");
	expect(FLASH, "fa", "s=4", false, "",
		"partial 1 {0,1,2,3}; partial 2 {0,1,2,3}");
}
END_TEST

/* What is reduced travels as float32 where that is forced; float32 does anyway. */
START_TEST(reductions_in_float32)
{
	static const struct {
		const char *dtype;
		bool force, sync;
		const char *down, *up;
	} rows[] = {
		{"float16", false, false, "forward AllReduce 256 {0,1,2,3}; backward AllReduce 256 {0,1,2,3}",
			"gradient AllReduce 512 {0,1,2,3}"},
		{"float16", false, true, "forward AllReduce 256 {0,1,2,3}; backward AllReduce 256 {0,1,2,3}",
			"gradient AllReduce 1024 {0,1,2,3}"},
		{"float16", true, false, "forward AllReduce 512 {0,1,2,3}; backward AllReduce 512 {0,1,2,3}",
			"gradient AllReduce 1024 {0,1,2,3}"},
		{"float32", true, false, "forward AllReduce 512 {0,1,2,3}; backward AllReduce 512 {0,1,2,3}",
			"gradient AllReduce 1024 {0,1,2,3}"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct fixture f;
		struct ap_str graph;

		fixture_open(&f, 4, 4, "a100-80");
		f.step.force_fp32 = rows[i].force;
		f.step.gradient_fp32_sync = rows[i].sync;
		ap_str_init(&graph, f.ctx.arena);
		for (const char *at = FIXTURE_PAIR; *at;) {
			size_t len = strlen("float32");

			if (!strncmp(at, "float32", len)) {
				ap_str_add(&graph, rows[i].dtype);
				at += len;
			} else
				ap_str_addc(&graph, *at++);
		}
		fixture_graph(&f, graph.s);
		ck_assert_str_eq(derived(&f, "down", "k=4"), rows[i].down);
		ck_assert_str_eq(derived(&f, "up", "m=4"), rows[i].up);
		fixture_close(&f);
	}
}
END_TEST
