/* SPDX-License-Identifier: Apache-2.0 */
/* MindSpore's own figures, worked out by hand from formats 5.3 and 6.1. */
#include <math.h>
#include <string.h>

#include "base/vec.h"
#include "cost/ms_cost.h"
#include "fixture.h"
#include "harness.h"
#include "shard/layout.h"
#include "shard/reshard.h"

#define RANKS 8

/* A layout of [64, 32] or another tensor; {1, 0}: not cut. */
#define DIM(size, cut, stride) size, {cut, stride}
struct dim {
	int64_t size;
	struct ap_cut_dim axis;
};

static struct ap_ms_end end_of(int64_t ndev, int rank, const struct dim *d)
{
	int64_t size[AP_MAX_RANK] = {0};
	struct ap_layout l;
	struct ap_ms_end e;

	memset(&l, 0, sizeof l);
	l.rank = rank;
	for (int i = 0; i < rank; i++) {
		size[i] = d[i].size;
		l.dim[i] = d[i].axis;
	}
	ap_ms_end_bare(&l, size, ndev, &e);
	return e;
}

static const struct {
	const char *what;
	int64_t ndev;
	int rank[2];
	struct dim from[2], to[2];
	bool alltoall;
	struct ap_ms_move sum;
} moves[] = {
	{"nothing", 8, {2, 2}, {{DIM(64, 2, 4)}, {DIM(32, 1, 0)}}, {{DIM(64, 2, 4)}, {DIM(32, 1, 0)}},
		true, {0, 0, 0}},
	{"concat of dimension 0, s 1024, 2 parts", 8, {2, 2}, {{DIM(64, 2, 4)}, {DIM(32, 1, 0)}},
		{{DIM(64, 1, 0)}, {DIM(32, 1, 0)}}, true, {1024, 512, 2048}},
	{"concat of dimension 1, s 512, 4 parts", 8, {2, 2}, {{DIM(64, 1, 0)}, {DIM(32, 4, 1)}},
		{{DIM(64, 1, 0)}, {DIM(32, 1, 0)}}, true, {1024, 256, 5120}},
	{"two splits, s 2048 for both", 8, {2, 2}, {{DIM(64, 1, 0)}, {DIM(32, 1, 0)}},
		{{DIM(64, 2, 4)}, {DIM(32, 4, 1)}}, true, {0, 0, 4096}},
	{"permute, concat of dimension 0", 8, {2, 2}, {{DIM(64, 2, 4)}, {DIM(32, 1, 0)}},
		{{DIM(64, 1, 0)}, {DIM(32, 2, 4)}}, true, {2048, 2048, 2048}},
	{"the same without AlltoAll", 8, {2, 2}, {{DIM(64, 2, 4)}, {DIM(32, 1, 0)}},
		{{DIM(64, 1, 0)}, {DIM(32, 2, 4)}}, false, {1024, 512, 3072}},
	{"permute, concat of dimension 1", 8, {2, 2}, {{DIM(64, 1, 0)}, {DIM(32, 2, 4)}},
		{{DIM(64, 2, 4)}, {DIM(32, 1, 0)}}, true, {2048, 2048, 6144}},
	{"swap: concat, permute, split", 8, {2, 2}, {{DIM(64, 2, 4)}, {DIM(32, 4, 1)}},
		{{DIM(64, 4, 1)}, {DIM(32, 2, 4)}}, true, {768, 640, 3328}},
	{"expanded, so with a Reshape", 8, {2, 2}, {{DIM(64, 8, 1)}, {DIM(32, 1, 0)}},
		{{DIM(64, 1, 0)}, {DIM(32, 4, 1)}}, true, {768, 640, 3584}},
	{"a Reshape and nothing else", 8, {2, 1}, {{DIM(64, 8, 1)}, {DIM(32, 1, 0)}},
		{{DIM(2048, 8, 1)}}, true, {0, 0, 512}},
	{"a Reshape of another part: permute", 8, {2, 1}, {{DIM(8, 1, 0)}, {DIM(32, 8, 1)}},
		{{DIM(256, 8, 1)}}, true, {64, 64, 640}},
	{"not expandable", 6, {1, 1}, {{DIM(12, 2, 3)}}, {{DIM(12, 3, 2)}}, true, {6, 3, 24}},
};

START_LOOP_TEST(redistributions, AP_COUNT(moves))
{
	struct ap_ms_end a = end_of(moves[_i].ndev, moves[_i].rank[0], moves[_i].from);
	struct ap_ms_end b = end_of(moves[_i].ndev, moves[_i].rank[1], moves[_i].to);
	struct ap_ms_move sum;

	ap_ms_move_make(&a, &b, moves[_i].alltoall, &sum);
	ck_assert_msg(sum.forward == moves[_i].sum.forward && sum.backward == moves[_i].sum.backward &&
		sum.computation == moves[_i].sum.computation, "%s: %g %g %g", moves[_i].what,
		sum.forward, sum.backward, sum.computation);
}
END_TEST

/* An axis that cuts nothing here divides one that does: two AllGathers, not one. */
START_TEST(unused_axes_count)
{
	const struct dim cut[] = {{DIM(64, 8, 1)}}, whole[] = {{DIM(64, 1, 0)}};
	struct ap_ms_end a = end_of(8, 1, cut), b = end_of(8, 1, whole);
	struct ap_ms_move sum;

	ap_ms_move_make(&a, &b, true, &sum);
	ck_assert_double_eq(sum.forward + sum.backward, 0.5 * 8 * (8 + 1));
	b.dev.n = 2;
	b.dev.axis[0] = 2;
	b.dev.axis[1] = 4;
	ap_ms_move_make(&a, &b, true, &sum);
	ck_assert_double_eq(sum.forward + sum.backward, 0.5 * 8 * (2 + 1) + 0.5 * 8 * (4 + 1));
}
END_TEST

/* ---- the same communication as the plan's own redistributions have ---- */

static struct ap_ms_move charged(const struct ap_reshard_step *step, int n)
{
	struct ap_ms_move sum = {0};

	for (int i = 0; i < n; i++) {
		double s = (double)step[0].before, parts = step[i].axis.size;

		if (step[i].move == AP_MOVE_SLICE)
			continue;
		sum.forward += step[i].move == AP_MOVE_GATHER ? 0.5 * s * parts : 2 * s;
		sum.backward += step[i].move == AP_MOVE_GATHER ? 0.5 * s : 2 * s;
	}
	return sum;
}

static int list_axes(struct ap_cut_dim *out)
{
	int n = 0;

	out[n++] = (struct ap_cut_dim){1, 0};
	for (int32_t cut = 2; cut <= RANKS; cut *= 2)
		for (int32_t stride = 1; stride * cut <= RANKS; stride *= 2)
			out[n++] = (struct ap_cut_dim){cut, stride};
	return n;
}

static bool apart(struct ap_cut_dim a, struct ap_cut_dim b)
{
	return a.cut == 1 || b.cut == 1 || a.stride >= b.stride * b.cut || b.stride >= a.stride * a.cut;
}

static int list_ends(struct ap_ms_end *out)
{
	struct ap_cut_dim axis[16];
	int axes = list_axes(axis), n = 0;

	for (int i = 0; i < axes; i++)
		for (int j = 0; j < axes; j++)
			if (apart(axis[i], axis[j])) {
				const struct dim d[] = {{64, axis[i]}, {32, axis[j]}};

				out[n++] = end_of(RANKS, 2, d);
			}
	return n;
}

/* Neither layout cuts a dimension that the other one cuts otherwise: the plan's own redistributions then
 * divide no dimension that MindSpore does not. */
static bool is_plain(const struct ap_layout *a, const struct ap_layout *b)
{
	for (int d = 0; d < a->rank; d++)
		if (a->dim[d].cut > 1 && b->dim[d].cut > 1 &&
			memcmp(&a->dim[d], &b->dim[d], sizeof a->dim[d]) != 0)
			return false;
	return true;
}

START_TEST(communication_is_that_of_reshard)
{
	static struct ap_ms_end end[200];
	int n = list_ends(end), compared = 0;

	for (int i = 0; i < n * n; i++) {
		const struct ap_ms_end *a = &end[i / n], *b = &end[i % n];
		struct ap_reshard_step step[AP_RESHARD_MAX];
		struct ap_ms_move want, sum;

		if (!is_plain(&a->layout, &b->layout))
			continue;
		ap_ms_move_make(a, b, true, &sum);
		want = charged(step, ap_reshard(&a->layout, &b->layout, a->size, RANKS, true, step));
		ck_assert_double_eq(sum.forward, want.forward);
		ck_assert_double_eq(sum.backward, want.backward);
		compared++;
	}
	ck_assert_int_gt(compared, 100);
}
END_TEST

START_TEST(small_messages)
{
	ck_assert_double_eq(ap_ms_refine(0), 0);
	ck_assert_double_eq(ap_ms_refine(1), 3072);
	ck_assert_double_eq(ap_ms_refine(2048), 3072);
	ck_assert_double_eq(ap_ms_refine(2049), 3073);
}
END_TEST

START_TEST(edges_in_bytes)
{
	struct ap_ms_end a = end_of(8, 2, moves[1].from), b = end_of(8, 2, moves[1].to);
	struct ap_ms_cost c;

	ap_ms_edge_cost(&a, &b, AP_FLOAT32, true, &c);
	ck_assert_double_eq(c.communication, 4096 + 1024 + 3072);
	ck_assert_double_eq(c.computation, 4 * 2048);
	ap_ms_edge_cost(&a, &b, AP_BOOL, true, &c);
	ck_assert(isinf(c.communication) && isinf(c.computation));
	ap_ms_edge_cost(&b, &a, AP_BOOL, true, &c);
	ck_assert_double_eq(c.communication, 0);
	ck_assert_double_eq(c.computation, 2048);
}
END_TEST

/* ---- operators ---- */

#define OPERATORS \
	"{'schema':'autopar-graph/1','name':'operators'," \
	"'inputs':[{'name':'x','shape':[64,32],'dtype':'float32','batch_dim':0}," \
	"{'name':'i','shape':[64],'dtype':'int32','batch_dim':0}]," \
	"'parameters':[{'name':'w','shape':[32,128],'dtype':'float32'}," \
	"{'name':'t','shape':[1024,16],'dtype':'float32'}," \
	"{'name':'g','shape':[32],'dtype':'float32'},{'name':'b','shape':[32],'dtype':'float32'}]," \
	"'operators':[" \
	"{'name':'product','type':'MatMul','inputs':['x','w'],'outputs':[{'name':'y'}]}," \
	"{'name':'relu','type':'ReLU','inputs':['x'],'outputs':[{'name':'r'}]}," \
	"{'name':'softmax','type':'Softmax','inputs':['x'],'outputs':[{'name':'s'}]}," \
	"{'name':'add','type':'Add','inputs':['r','g'],'outputs':[{'name':'a'}]}," \
	"{'name':'norm','type':'LayerNorm','inputs':['x','g','b'],'outputs':[{'name':'n'}]}," \
	"{'name':'drop','type':'Dropout','inputs':['x'],'outputs':[{'name':'d'}]}," \
	"{'name':'sum','type':'ReduceSum','inputs':['x'],'attrs':{'axis':1},'outputs':[{'name':'u'}]}," \
	"{'name':'mean','type':'ReduceMean','inputs':['x'],'attrs':{'axis':1}," \
	"'outputs':[{'name':'m'}]}," \
	"{'name':'find','type':'Gather','inputs':['t','i'],'attrs':{'axis':0}," \
	"'outputs':[{'name':'f'}]}]," \
	"'outputs':['y','s','a','n','d','u','m','f']}"

static const struct {
	const char *name, *cut;
	struct ap_ms_cost cost;
} operators[] = {
	{"product", "m=2 n=2", {4 * (32 * 32 + 32 * 64), 0}},
	{"product", "k=2", {4 * (64 * 16 + 16 * 128 + 64 * 128), 4 * 64 * 128 + 1024}},
	{"product", "m=8", {4 * (8 * 32 + 32 * 128) - 1, 0}}, /* all devices: preferred */
	{"relu", "A=2", {4 * 32 * 32, 0}},
	{"softmax", "A=4", {4 * 16 * 32, 0}},
	{"add", "A=2 B=2", {4 * (32 * 16 + 16), 0}},
	{"drop", "A=2", {4 * 32 * 32 * 1.125, 0}},
};

static ap_id cost_of(const struct fixture *f, const char *name, const char *cut, struct ap_ms_cost *out)
{
	ap_id node = fixture_node(f, name);
	int32_t count[AP_MAX_FACTOR];
	struct ap_placement p;

	fixture_counts(f, node, cut, count);
	ap_placement_make(&f->graph->node[node].bound, count, RANKS, &p);
	ap_ms_operator_cost(&p, &f->step, false, out);
	return node;
}

START_LOOP_TEST(operators_in_bytes, AP_COUNT(operators))
{
	struct fixture f;
	struct ap_ms_cost c;

	fixture_open(&f, RANKS, RANKS, "a100-80");
	fixture_graph(&f, OPERATORS);
	cost_of(&f, operators[_i].name, operators[_i].cut, &c);
	ck_assert_msg(c.computation == operators[_i].cost.computation &&
		c.communication == operators[_i].cost.communication, "%s %s: %g %g", operators[_i].name,
		operators[_i].cut, c.computation, c.communication);
	fixture_close(&f);
}
END_TEST
