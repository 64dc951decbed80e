/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hybrids of experts on virtual ranks: every grid of dp x cp x tp that a graph takes, with experts cut
 * and tokens too, gives what one rank gives. With AP_SEED: again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "game.h"
#include "graph/sequence_first.h"
#include "graph_text.h"
#include "harness.h"
#include "hybrid/hybrid.h"
#include "rule/attr.h"
#include "shard/imposed.h"

#define HEADS(in, name, heads) \
	SHAPED(in, name ".split", "-1,4," heads ",2") AND \
	OP_WITH("Transpose", "'" name ".split'", name, "'perm':[0,2,1,3]")
#define ATTEND(q, k, v) \
	OP_WITH("BatchMatMul", "'" q "','" k "'", "scores", "'transpose_b':true") AND \
	OP("Mul", "'scores','scale'", "scaled") AND \
	OP_WITH("Softmax", "'scaled'", "probs", "'axis':[-1]") AND \
	OP("BatchMatMul", "'probs','" v "'", "context") AND \
	OP_WITH("Transpose", "'context'", "context.split", "'perm':[0,2,1,3]") AND \
	ROWS("'context.split'", "context.rows", "8")
#define LOSS(logits) \
	ROWS("'labels'", "labels.rows", "1") AND \
	SHAPED("'labels.rows'", "labels.row", "-1") AND \
	OP_WITH("ReduceSum", logits, "most", "'axis':[-1],'keep_dims':true") AND \
	OP("Sub", logits ",'most'", "shifted") AND \
	OP("Exp", "'shifted'", "exp") AND \
	OP_WITH("ReduceSum", "'exp'", "exp.sum", "'axis':[-1],'keep_dims':true") AND \
	OP("Div", "'exp','exp.sum'", "softmax") AND \
	OP_WITH("OneHot", "'labels.row','on','off'", "hot", "'depth':16,'axis':-1") AND \
	OP("Log", "'softmax'", "softmax.log") AND \
	OP("Mul", "'softmax.log','hot'", "chosen") AND \
	OP_WITH("ReduceSum", "'chosen'", "losses", "'axis':[-1],'keep_dims':false") AND \
	MEAN_OF("'losses'", "loss")
#define CONSTANTS TENSOR("scale", "") AND TENSOR("on", "") AND TENSOR("off", "")

/* Texts are put together from parts, as compilers bound the length of one. */
#define HEAD(inputs, parameters, constants) \
	"{'schema':'autopar-graph/1','name':'hybrid','inputs':[" inputs "],'parameters':[" parameters \
	"],'constants':[" constants "],'operators':["
#define END "],'outputs':['loss']}"

/* GPT: places, norms, biases, dropout left out, one table for words and logits. */
static const char *const language[] = {HEAD(
	LABEL("ids", "12,4") AND LABEL("places", "12,4") AND LABEL("labels", "12,4"),
	TENSOR("words", "16,8") AND TENSOR("positions", "4,8") AND TENSOR("g1", "8") AND
	TENSOR("o1", "8") AND TENSOR("wq", "8,8") AND TENSOR("bq", "8") AND TENSOR("wk", "8,8") AND
	TENSOR("wv", "8,8") AND TENSOR("wo", "8,8") AND TENSOR("bo", "8") AND TENSOR("g2", "8") AND
	TENSOR("o2", "8") AND TENSOR("up", "24,8") AND TENSOR("bu", "24") AND TENSOR("down", "8,24") AND
	TENSOR("bd", "8"), CONSTANTS),
	OP_WITH("Gather", "'words','ids'", "word", "'axis':0") AND
	OP_WITH("Gather", "'positions','places'", "place", "'axis':0") AND
	OP("Add", "'word','place'", "e") AND
	LAYER_NORM("'e','g1','o1'", "e.norm") AND
	ROWS("'e.norm'", "rows", "8") AND
	LINEAR("'rows','wq'", "q.product") AND
	OP("BiasAdd", "'q.product','bq'", "q.rows") AND HEADS("'q.rows'", "q", "4") AND
	LINEAR("'rows','wk'", "k.rows") AND HEADS("'k.rows'", "k", "4") AND
	LINEAR("'rows','wv'", "v.rows") AND HEADS("'v.rows'", "v", "4") AND
	ATTEND("q", "k", "v") AND
	LINEAR("'context.rows','wo'", "a.product") AND
	OP("BiasAdd", "'a.product','bo'", "a.rows") AND
	SHAPED("'a.rows'", "a", "-1,4,8") AND
	OP("Add", "'e','a'", "middle") AND,
	LAYER_NORM("'middle','g2','o2'", "middle.norm") AND
	ROWS("'middle.norm'", "n", "8") AND
	LINEAR("'n','up'", "u.product") AND
	OP("BiasAdd", "'u.product','bu'", "u") AND
	OP("GeLU", "'u'", "u.act") AND
	LINEAR("'u.act','down'", "d.product") AND
	OP("BiasAdd", "'d.product','bd'", "d.rows") AND
	SHAPED("'d.rows'", "d", "-1,4,8") AND
	OP("Add", "'middle','d'", "z") AND
	ROWS("'z'", "z.rows", "8") AND
	LINEAR("'z.rows','words'", "logits") AND
	LOSS("'logits'"), END, NULL};

#define REPEATED(name) \
	SHAPED("'" name "'", name ".once", "-1,2,1,8") AND \
	OP_WITH("Tile", "'" name ".once'", name ".copies", "'multiples':[1,1,2,1]") AND \
	SHAPED("'" name ".copies'", name ".repeated", "-1,4,4,2")

/* Llama: two heads of keys and values for four of queries, a gate, tokens in three dimensions. */
static const char *const gated[] = {HEAD(
	LABEL("ids", "8,4") AND LABEL("labels", "8,4"),
	TENSOR("words", "16,8") AND TENSOR("g1", "8") AND TENSOR("wq", "8,8") AND TENSOR("wk", "4,8") AND
	TENSOR("wv", "4,8") AND TENSOR("wo", "8,8") AND TENSOR("w1", "8,12") AND TENSOR("w3", "8,12") AND
	TENSOR("w2", "12,8") AND TENSOR("head", "16,8"), CONSTANTS),
	OP_WITH("Gather", "'words','ids'", "e", "'axis':0") AND
	OPER("RmsNorm", "'e','g1'", "e.norm", "," RESULT("e.rstd") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'e.norm'", "rows", "8") AND
	LINEAR("'rows','wq'", "q.rows") AND HEADS("'q.rows'", "q", "4") AND
	LINEAR("'rows','wk'", "k.rows") AND HEADS("'k.rows'", "k", "2") AND
	LINEAR("'rows','wv'", "v.rows") AND HEADS("'v.rows'", "v", "2") AND
	REPEATED("k") AND REPEATED("v") AND
	ATTEND("q", "k.repeated", "v.repeated") AND
	LINEAR("'context.rows','wo'", "a.rows") AND
	SHAPED("'a.rows'", "a", "-1,4,8") AND
	OP("Add", "'e','a'", "middle") AND,
	OP("BatchMatMul", "'middle','w1'", "gate") AND
	OP("BatchMatMul", "'middle','w3'", "wide") AND
	OP("SiLU", "'gate'", "gate.act") AND
	OP("Mul", "'gate.act','wide'", "both") AND
	OP("BatchMatMul", "'both','w2'", "d") AND
	OP("Add", "'middle','d'", "z") AND
	ROWS("'z'", "z.rows", "8") AND
	LINEAR("'z.rows','head'", "logits") AND
	LOSS("'logits'"), END, NULL};

/* Words, and attention by one operator, with half as many heads of keys: what cp can have go round. */
static const char *const attending[] = {HEAD(
	LABEL("ids", "8,4") AND LABEL("labels", "8,4"),
	TENSOR("words", "16,8") AND TENSOR("wq", "16,8") AND TENSOR("wk", "8,8") AND TENSOR("wv", "8,8") AND
	TENSOR("wo", "8,16") AND TENSOR("head", "16,8"), CONSTANTS),
	OP_WITH("Gather", "'words','ids'", "e", "'axis':0") AND
	ROWS("'e'", "rows", "8") AND
	LINEAR("'rows','wq'", "q.rows") AND SHAPED("'q.rows'", "q", "-1,4,16") AND
	LINEAR("'rows','wk'", "k.rows") AND SHAPED("'k.rows'", "k", "-1,4,8") AND
	LINEAR("'rows','wv'", "v.rows") AND SHAPED("'v.rows'", "v", "-1,4,8") AND
	OPER("FlashAttentionScore", "'q','k','v'", "c.max", "," RESULT("c.sum") "," RESULT("c.unused") ","
		RESULT("c") "],'attrs':{'head_num':4,'scale_value':0.5,'input_layout':'BSH'}}") AND
	ROWS("'c'", "c.rows", "16") AND
	LINEAR("'c.rows','wo'", "a") AND
	SHAPED("'a'", "a.tokens", "-1,4,8") AND
	OP("Add", "'e','a.tokens'", "z") AND
	ROWS("'z'", "z.rows", "8") AND
	LINEAR("'z.rows','head'", "logits") AND
	LOSS("'logits'"), END, NULL};

/* One product for query, key and value, one for gate and width: features are put apart. */
static const char *const fused[] = {HEAD(
	INPUT("x", "12,4,8"),
	TENSOR("w0", "8,8") AND TENSOR("wqkv", "24,8") AND TENSOR("wo", "8,8") AND TENSOR("w13", "24,8") AND
	TENSOR("w2", "8,12"), TENSOR("scale", "")),
	ROWS("'x'", "x.rows", "8") AND
	LINEAR("'x.rows','w0'", "rows") AND
	LINEAR("'rows','wqkv'", "qkv") AND
	OPER("Split", "'qkv'", "q.rows", "," RESULT("k.rows") "," RESULT("v.rows")
		"],'attrs':{'axis':1,'output_num':3}}") AND
	HEADS("'q.rows'", "q", "4") AND HEADS("'k.rows'", "k", "4") AND HEADS("'v.rows'", "v", "4") AND
	ATTEND("q", "k", "v") AND
	LINEAR("'context.rows','wo'", "a") AND
	OP("Add", "'rows','a'", "middle") AND,
	LINEAR("'middle','w13'", "wide") AND
	OP_WITH("Swiglu", "'wide'", "both", "'dim':-1") AND
	LINEAR("'both','w2'", "d") AND
	OP("Add", "'middle','d'", "z") AND
	MEAN_OF("'z'", "loss"), END, NULL};

#define COLUMN(in, name, first, next) \
	OP_WITH("StridedSlice", in, name ".column", "'begin':[0,0,0,0," first "],'end':[0,0,0,0," next \
		"],'strides':[1,1,1,1,1],'begin_mask':15,'end_mask':15") AND \
	SHAPED("'" name ".column'", name, "-1,4,2,12")

/* Experts behind a layer, whose tokens a mask deals out; the two columns of a unit stand side by side. */
static const char *const mixture[] = {HEAD(
	INPUT("x", "8,4,8") AND INPUT("deal", "8,4,8"),
	TENSOR("w0", "8,8") AND TENSOR("w13", "4,8,24") AND TENSOR("b13", "4,1,24") AND
	TENSOR("w2", "4,12,8") AND TENSOR("last", "8,8"), ""),
	ROWS("'x'", "rows", "8") AND
	LINEAR("'rows','w0'", "h") AND
	SHAPED("'h'", "tokens", "-1,4,8") AND
	OP_WITH("BatchMatMul", "'deal','tokens'", "dealt", "'transpose_a':true") AND
	SHAPED("'dealt'", "sorted", "-1,4,2,8") AND
	OP("BatchMatMul", "'sorted','w13'", "pair.product") AND
	OP("Add", "'pair.product','b13'", "pair") AND
	SHAPED("'pair'", "pair.split", "-1,4,2,12,2") AND
	COLUMN("'pair.split'", "gate", "0", "1") AND
	COLUMN("'pair.split'", "wide", "1", "2") AND
	OP("SiLU", "'gate'", "act") AND
	OP("Mul", "'act','wide'", "both") AND
	OP("BatchMatMul", "'both','w2'", "down") AND
	SHAPED("'down'", "joined", "-1,8,8") AND
	OP("BatchMatMul", "'deal','joined'", "out") AND
	OP("Add", "'out','tokens'", "z") AND
	ROWS("'z'", "z.rows", "8") AND
	LINEAR("'z.rows','last'", "y") AND
	MEAN_OF("'y'", "loss"), END, NULL};

/* The same of words, whose sequence can be cut, and without rows of tokens; with two products. */
static const char *const routed[] = {HEAD(
	LABEL("ids", "8,4") AND INPUT("deal", "8,4,8"),
	TENSOR("words", "16,8") AND TENSOR("w0", "8,8") AND TENSOR("w1", "4,8,12") AND
	TENSOR("w3", "4,8,12") AND TENSOR("w2", "4,12,8") AND TENSOR("last", "8,8"), ""),
	OP_WITH("Gather", "'words','ids'", "x", "'axis':0") AND
	OP("BatchMatMul", "'x','w0'", "tokens") AND
	OP_WITH("BatchMatMul", "'deal','tokens'", "dealt", "'transpose_a':true") AND
	SHAPED("'dealt'", "sorted", "-1,4,2,8") AND
	OP("BatchMatMul", "'sorted','w1'", "gate") AND
	OP("BatchMatMul", "'sorted','w3'", "wide") AND
	OP("SiLU", "'gate'", "act") AND
	OP("Mul", "'act','wide'", "both") AND
	OP("BatchMatMul", "'both','w2'", "down") AND
	SHAPED("'down'", "joined", "-1,8,8") AND
	OP("BatchMatMul", "'deal','joined'", "out") AND
	OP("Add", "'out','tokens'", "z") AND
	OP("BatchMatMul", "'z','last'", "y") AND
	MEAN_OF("'y'", "loss"), END, NULL};

static const struct {
	const char *name;
	const char *const *part; /* NULL-terminated */
} samples[] = {{"language", language}, {"gated", gated}, {"attending", attending}, {"fused", fused},
	{"mixture", mixture}, {"routed", routed}};

enum { SAMPLES = AP_COUNT(samples) };

/* Sample i, its text in the buffer where it is one of ours; false past the end. */
static bool sample_at(int i, char text[8192], struct ex_graph_sample *out)
{
	if (i >= SAMPLES) {
		const struct ex_graph_sample *other = ex_graph_at((size_t)(i - SAMPLES));

		if (other)
			*out = *other;
		return other != NULL;
	}
	*text = '\0';
	for (const char *const *p = samples[i].part; *p; p++)
		strcat(text, *p);
	*out = (struct ex_graph_sample){.name = samples[i].name, .text = text};
	return true;
}

struct tally {
	uint32_t taken, refused;
	uint32_t ordered; /* of those taken, with rows token by token */
	uint32_t round, swapped; /* with keys that go round, with heads exchanged for the sequence */
};

/* Has the graph rows that stand token by token? */
static bool is_sequence_first(const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		if (ap_attr_get(&g->node[i].attrs, AP_SEQUENCE_FIRST))
			return true;
	return false;
}

/* One rank then has other rows, and nothing else than it had: parameters become the same. */
static bool try_in_order(struct ex_game *g, const char *how, const int32_t *const *counts)
{
	struct ex_graph_truth before = g->truth;
	bool good = ex_graph_truth_make(&g->w, g->f.graph, &g->f.step, g->seed, &g->truth);

	for (ap_id t = 0; t < g->f.graph->ntensor; t++) {
		const struct ex_tensor *a = &before.new_param[t], *b = &g->truth.new_param[t];

		good &= !a->v == !b->v && (!a->v ||
			!memcmp(a->v, b->v, (size_t)ex_count(&a->box) * sizeof *a->v));
	}
	ck_assert_msg(good, "%s: one rank computes something else where rows stand token by token", how);
	good = ex_game_given(g, how, counts);
	g->truth = before;
	return good;
}

/* With sp on a graph whose sums are dealt. */
static bool try_hybrid(struct ex_game *g, struct ap_hybrid h, struct tally *tally)
{
	struct ap_ctx *ctx = &g->f.ctx;
	const struct ap_graph *given = g->f.graph;
	const char *why, *how = ap_arena_printf(ctx->arena, "tp=%" PRId64 ",cp=%" PRId64 ",ep=%" PRId64
		",etp=%" PRId64 ",sp=%d,%s", h.tp, h.cp, h.ep, h.etp, h.sp, h.cp_algo ? ap_cp_algo_name(h.cp_algo) : "");
	const int32_t *const *counts = NULL;
	bool good;

	g->f.graph = ap_hybrid_deal(ctx, given, g->f.machine->ndev, &g->f.step, &h, &why);
	if (g->f.graph)
		counts = ap_hybrid_counts(ctx, g->f.graph, g->f.machine->ndev, &g->f.step, &h, &why);
	for (ap_id i = 0; counts && i < g->f.graph->nnode; i++) {
		const struct ap_bound *b = &g->f.graph->node[i].bound;

		tally->round += b->rounds && counts[i][b->round] > 1;
		tally->swapped += b->swaps && counts[i][b->round] > 1;
	}
	tally->taken += counts != NULL;
	tally->refused += counts == NULL;
	if (counts && is_sequence_first(g->f.graph)) {
		tally->ordered++;
		good = try_in_order(g, how, counts);
	} else {
		good = !counts || ex_game_given(g, how, counts);
	}
	g->f.graph = given;
	return good;
}

/* Of cp ascending, and experts whole, or cut by tp, wherever they can be dealt. */
static bool try_experts(struct ex_game *g, bool sp, struct tally *tally)
{
	int64_t ndev = g->f.machine->ndev;

	for (int64_t cp = 1; cp <= 2; cp++)
		for (int64_t tp = 1; tp <= ndev; tp++)
			for (int64_t k = 0; ndev % (tp * cp) == 0 && k < 2 * ndev; k++) {
				struct ap_hybrid h = {.dp = ndev / tp / cp, .tp = tp, .pp = 1, .cp = cp,
					.ep = k / 2 + 1, .etp = k % 2 ? 1 : tp, .vpp = 1, .sp = sp};

				if (h.ep > 1 && ap_hybrid_expert_stride(&h) > 0 && !try_hybrid(g, h, tally))
					return false;
			}
	return true;
}

static bool try_grids(struct ex_game *g, int64_t cp, int64_t ep, bool sp, struct tally *tally)
{
	int64_t ndev = g->f.machine->ndev;

	for (int64_t tp = 1; tp <= ndev; tp++)
		for (int a = AP_CP_ALL_GATHER; a <= (cp > 1 ? AP_CP_ALL_TO_ALL : AP_CP_ALL_GATHER); a++) {
			struct ap_hybrid h = {.dp = ndev / tp / cp, .tp = tp, .pp = 1, .cp = cp, .ep = ep,
				.vpp = 1, .sp = sp, .cp_algo = (enum ap_cp_algo)a};

			if (ndev % (tp * cp) == 0 && h.dp % ep == 0 && !try_hybrid(g, h, tally))
				return false;
		}
	return true;
}

static bool try_devices(struct ex_game *g, int64_t ndev, struct tally *tally)
{
	fixture_open(&g->f, ndev, 4, "ascend910b");
	g->w.ctx = &g->f.ctx;
	g->w.ndev = ndev;
	g->w.rng = 1 + ex_hash(g->seed ^ ex_hash_text(g->sample->name), (uint64_t)ndev) / 2;
	fixture_graph(&g->f, g->sample->text);
	g->f.graph = ap_graph_deal_if_asked(&g->f.ctx, g->f.graph);
	for (int k = 0; k < EX_SETTINGS && !g->failed; k++) {
		struct ap_mark mark = ap_arena_mark(g->f.ctx.arena);

		if (ex_cases(200) < 100 && k % 2 == (int)(ndev / 4 % 2)) /* few: settings in turns */
			continue;
		if (!ex_game_begin(g, k))
			break;
		if (try_grids(g, 1, 1, false, tally) && try_grids(g, 1, 1, true, tally) &&
			try_grids(g, 2, 1, k % 2, tally) && try_grids(g, 1, 2, k % 2, tally) &&
			try_experts(g, k % 2, tally))
			ap_arena_release(g->f.ctx.arena, mark);
	}
	fixture_close(&g->f);
	return !g->failed;
}

START_LOOP_TEST(hybrids_are_those_of_one_rank, SAMPLES + ex_graph_count())
{
	static const int64_t devices[] = {2, 4, 6, 8};
	char text[8192];
	struct ex_graph_sample s;
	struct ex_game g = {.sample = &s, .seed = ex_seed("hybrids"), .repeat = "test_hybrids"};
	struct tally tally = {0};

	ck_assert(sample_at(_i, text, &s));
	if (s.pinned)
		return;
	for (size_t i = 0; i < AP_COUNT(devices); i += ex_cases(200) < 100 ? 2 : 1)
		ck_assert(try_devices(&g, devices[i], &tally));
	printf("%s: %" PRIu32 " hybrids, %" PRIu32 " refused, %" PRIu32 " with rows token by token"
		", %" PRIu32 " with keys that go round, %" PRIu64 " collectives\n", s.name, tally.taken,
		tally.refused, tally.ordered, tally.round, g.w.ncollective);
	ck_assert_uint_gt(tally.taken, 0);
	if (strcmp(s.name, "language") == 0 || strcmp(s.name, "gated") == 0)
		ck_assert_uint_gt(tally.ordered, 0);
	if (strcmp(s.name, "attending") == 0)
		ck_assert_uint_gt(tally.round * tally.swapped, 0);
}
END_TEST
