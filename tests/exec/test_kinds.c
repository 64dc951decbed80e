/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What layers recompute, on virtual ranks: GPT's and Llama's blocks in a pipeline, under hybrids of
 * experts, with each kind, set of modules and list of layers. Ranks have what the plan says they keep
 * and noise for the rest; gradients are those of one rank, and no more is held than is said. One network has products in
 * 8 bits, of rounded numbers. AP_CASES above 500:
 * all grids.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/float8.h"
#include "cost/optimizer.h"
#include "graph_text.h"
#include "harness.h"
#include "hybrid/hybrid.h"
#include "pipe_game.h"
#include "pipeline/stages.h"
#include "plan/make.h"
#include "shard/recompute_parse.h"

/* ---- networks: '$' is the number of a layer, '<' what it reads, '>' what it makes ---- */

#define HEADS(in, name, heads) \
	SHAPED(in, name ".split.$", "-1,4," heads ",2") AND \
	OP_WITH("Transpose", "'" name ".split.$'", name ".$", "'perm':[0,2,1,3]")
#define ATTEND(width) \
	OP_WITH("BatchMatMul", "'q.$','k.$'", "scores.$", "'transpose_b':true") AND \
	OP("Mul", "'scores.$','scale'", "scaled.$") AND \
	OP_WITH("Softmax", "'scaled.$'", "probs.$", "'axis':[-1]") AND \
	OP("BatchMatMul", "'probs.$','v.$'", "context.$") AND \
	OP_WITH("Transpose", "'context.$'", "context.split.$", "'perm':[0,2,1,3]") AND \
	ROWS("'context.split.$'", "context.rows.$", width) AND \
	LINEAR("'context.rows.$','wo.$'", "a.rows.$") AND \
	SHAPED("'a.rows.$'", "a.$", "-1,4," width) AND \
	OP("Add", "'<','a.$'", "middle.$")

static const char gpt[] =
	LAYER_NORM("'<','g1.$','o1.$'", "norm.$") AND
	ROWS("'norm.$'", "rows.$", "8") AND
	LINEAR("'rows.$','wq.$'", "q.product.$") AND
	OP("BiasAdd", "'q.product.$','bq.$'", "q.rows.$") AND HEADS("'q.rows.$'", "q", "4") AND
	LINEAR("'rows.$','wk.$'", "k.rows.$") AND HEADS("'k.rows.$'", "k", "4") AND
	LINEAR("'rows.$','wv.$'", "v.rows.$") AND HEADS("'v.rows.$'", "v", "4") AND
	ATTEND("8") AND
	LAYER_NORM("'middle.$','g2.$','o2.$'", "norm2.$") AND
	ROWS("'norm2.$'", "n.$", "8") AND
	LINEAR("'n.$','up.$'", "u.product.$") AND
	OP("BiasAdd", "'u.product.$','bu.$'", "u.$") AND
	OP("GeLU", "'u.$'", "u.act.$") AND
	LINEAR("'u.act.$','down.$'", "d.product.$") AND
	OP("BiasAdd", "'d.product.$','bd.$'", "d.rows.$") AND
	SHAPED("'d.rows.$'", "d.$", "-1,4,8") AND
	OP("Add", "'middle.$','d.$'", ">");

static const char gpt_weights[] =
	TENSOR("g1.$", "8") AND TENSOR("o1.$", "8") AND TENSOR("wq.$", "8,8") AND TENSOR("bq.$", "8") AND
	TENSOR("wk.$", "8,8") AND TENSOR("wv.$", "8,8") AND TENSOR("wo.$", "8,8") AND TENSOR("g2.$", "8") AND
	TENSOR("o2.$", "8") AND TENSOR("up.$", "24,8") AND TENSOR("bu.$", "24") AND TENSOR("down.$", "8,24") AND
	TENSOR("bd.$", "8");

static const char llama[] =
	OPER("RmsNorm", "'<','g1.$'", "norm.$", "," RESULT("r1.$") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'norm.$'", "rows.$", "8") AND
	LINEAR("'rows.$','wq.$'", "q.rows.$") AND HEADS("'q.rows.$'", "q", "4") AND
	LINEAR("'rows.$','wk.$'", "k.rows.$") AND HEADS("'k.rows.$'", "k", "4") AND
	LINEAR("'rows.$','wv.$'", "v.rows.$") AND HEADS("'v.rows.$'", "v", "4") AND
	ATTEND("8") AND
	OPER("RmsNorm", "'middle.$','g2.$'", "norm2.$", "," RESULT("r2.$") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'norm2.$'", "n.$", "8") AND
	LINEAR("'n.$','w1.$'", "gate.$") AND
	LINEAR("'n.$','w3.$'", "wide.$") AND
	OP("SiLU", "'gate.$'", "gate.act.$") AND
	OP("Mul", "'wide.$','gate.act.$'", "both.$") AND
	LINEAR("'both.$','w2.$'", "d.rows.$") AND
	SHAPED("'d.rows.$'", "d.$", "-1,4,8") AND
	OP("Add", "'middle.$','d.$'", ">");

static const char llama_weights[] =
	TENSOR("g1.$", "8") AND TENSOR("wq.$", "8,8") AND TENSOR("wk.$", "8,8") AND TENSOR("wv.$", "8,8") AND
	TENSOR("wo.$", "8,8") AND TENSOR("g2.$", "8") AND TENSOR("w1.$", "12,8") AND TENSOR("w3.$", "12,8") AND
	TENSOR("w2.$", "8,12");

/* Queries, keys and values are products of norms within attention. */
static const char latent[] =
	OPER("RmsNorm", "'<','g1.$'", "norm.$", "," RESULT("r1.$") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'norm.$'", "rows.$", "8") AND
	LINEAR("'rows.$','qa.$'", "q.low.$") AND
	OPER("RmsNorm", "'q.low.$','gq.$'", "q.norm.$", "," RESULT("rq.$") "],'attrs':{'epsilon':1e-05}}") AND
	LINEAR("'q.norm.$','wq.$'", "q.rows.$") AND HEADS("'q.rows.$'", "q", "4") AND
	LINEAR("'rows.$','ka.$'", "k.low.$") AND
	OPER("RmsNorm", "'k.low.$','gk.$'", "k.norm.$", "," RESULT("rk.$") "],'attrs':{'epsilon':1e-05}}") AND
	LINEAR("'k.norm.$','wk.$'", "k.rows.$") AND HEADS("'k.rows.$'", "k", "4") AND
	LINEAR("'k.norm.$','wv.$'", "v.rows.$") AND HEADS("'v.rows.$'", "v", "4") AND
	ATTEND("8") AND
	OPER("RmsNorm", "'middle.$','g2.$'", "norm2.$", "," RESULT("r2.$") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'norm2.$'", "n.$", "8") AND
	LINEAR("'n.$','up.$'", "u.rows.$") AND
	OP("ReLU", "'u.rows.$'", "u.act.$") AND
	LINEAR("'u.act.$','down.$'", "d.rows.$") AND
	SHAPED("'d.rows.$'", "d.$", "-1,4,8") AND
	OP("Add", "'middle.$','d.$'", ">");

static const char latent_weights[] =
	TENSOR("g1.$", "8") AND TENSOR("qa.$", "4,8") AND TENSOR("gq.$", "4") AND TENSOR("wq.$", "8,4") AND
	TENSOR("ka.$", "6,8") AND TENSOR("gk.$", "6") AND TENSOR("wk.$", "8,6") AND TENSOR("wv.$", "8,6") AND
	TENSOR("wo.$", "8,8") AND TENSOR("g2.$", "8") AND TENSOR("up.$", "12,8") AND TENSOR("down.$", "8,12");

/* Of 16 bits and extents that are multiples of 16; something else reads what the products of gate and width read. */
static const char eighths[] =
	OPER("RmsNorm", "'<','g1.$'", "norm.$", "," RESULT("r1.$") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'norm.$'", "rows.$", "16") AND
	LINEAR("'rows.$','wq.$'", "q.rows.$") AND HEADS("'q.rows.$'", "q", "8") AND
	LINEAR("'rows.$','wk.$'", "k.rows.$") AND HEADS("'k.rows.$'", "k", "8") AND
	LINEAR("'rows.$','wv.$'", "v.rows.$") AND HEADS("'v.rows.$'", "v", "8") AND
	ATTEND("16") AND
	OPER("RmsNorm", "'middle.$','g2.$'", "norm2.$", "," RESULT("r2.$") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'norm2.$'", "n.$", "16") AND
	LINEAR("'n.$','w1.$'", "gate.$") AND
	LINEAR("'n.$','w3.$'", "wide.$") AND
	OP("SiLU", "'gate.$'", "gate.act.$") AND
	OP("Mul", "'wide.$','gate.act.$'", "both.$") AND
	LINEAR("'both.$','w2.$'", "d.rows.$") AND
	SHAPED("'d.rows.$'", "d.$", "-1,4,16") AND
	OP("Add", "'middle.$','d.$'", ">");

static const char eighths_weights[] =
	TENSOR("g1.$", "16") AND TENSOR("wq.$", "16,16") AND TENSOR("wk.$", "16,16") AND TENSOR("wv.$", "16,16") AND
	TENSOR("wo.$", "16,16") AND TENSOR("g2.$", "16") AND TENSOR("w1.$", "32,16") AND TENSOR("w3.$", "32,16") AND
	TENSOR("w2.$", "16,32");

static const struct network {
	const char *name, *layer, *weights;
	int width;
	const char *in_8_bits; /* the recipe of its products; NULL: they run in the graph's type */
} networks[] = {{"gpt", gpt, gpt_weights, 8}, {"llama", llama, llama_weights, 8},
	{"latent", latent, latent_weights, 8},
	{"eighths", eighths, eighths_weights, 16, "blockwise"}};

/* Adds a text for each layer; operators get their layer's cell. */
static void repeat(struct ap_str *s, const char *text, int layers, bool cells)
{
	for (int i = 0; i < layers; i++) {
		ap_str_addc(s, ',');
		for (const char *c = text; *c; c++) {
			if (*c == '$')
				ap_str_addf(s, "%d", i);
			else if (*c == '<' || *c == '>')
				ap_str_addf(s, "x%d", i + (*c == '>'));
			else
				ap_str_addc(s, *c);
			if (cells && *c == '{' && strncmp(c, "{'type'", 7) == 0)
				ap_str_addf(s, "'cell':'net.blocks.%d',", i);
		}
	}
}

static const char *network_text(struct ap_ctx *ctx, const struct network *n, int layers)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	ap_str_add(&s, "{'schema':'autopar-graph/1','name':'kinds','inputs':[" LABEL("ids", "24,4")
		"],'constants':[" TENSOR("scale", "") "],'parameters':[");
	ap_str_addf(&s, n->in_8_bits ? TENSOR("words", "16,%d") AND TENSOR("head", "16,16") : TENSOR("words", "16,%d"), n->width);
	repeat(&s, n->weights, layers, false);
	ap_str_add(&s, "],'operators':[" OP_WITH("Gather", "'words','ids'", "x0", "'axis':0"));
	repeat(&s, n->layer, layers, true);
	ap_str_addf(&s, "," ROWS("'x%d'", "z", "%d") AND LINEAR("'z','%s'", "logits") AND
		MEAN_OF("'logits'", "loss") "],'outputs':['loss']}", layers, n->width, n->in_8_bits ? "head" : "words");
	for (char *c = n->in_8_bits ? strstr(s.s, "float32") : NULL; c; c = strstr(c, "float32"))
		memcpy(c, "float16", 7);
	return s.s;
}

/* ---- their runs ---- */

struct run {
	const char *kinds, *scheduler;
	int layers;
	int32_t nstage, nsegment;
	int64_t micro;
};

static const struct run runs[] = {
	{"none", "1f1b", 4, 2, 1, 3}, {"selective", "1f1b", 4, 2, 1, 3}, {"communication", "1f1b", 4, 2, 1, 3},
	{"both", "1f1b", 4, 2, 1, 3}, {"full", "1f1b", 4, 2, 1, 3}, {"layernorm", "1f1b", 4, 2, 1, 3},
	{"activation", "1f1b", 4, 2, 1, 3}, {"mlp", "1f1b", 4, 2, 1, 3},
	{"core_attn+mlp+layernorm", "1f1b", 4, 2, 1, 3}, {"mla_up_proj", "1f1b", 4, 2, 1, 3},
	{"layernorm+mla_up_proj", "1f1b", 4, 2, 1, 3}, {"products", "1f1b", 4, 2, 1, 3},
	{"products/2", "1f1b", 4, 2, 1, 3}, {"products/2+communication", "gpipe", 4, 2, 1, 2},
	{"uniform:2", "1f1b", 4, 2, 1, 3}, {"uniform:3", "gpipe", 8, 2, 1, 2},
	/* lists: [13,5] and [4,0] in small, and of segments */
	{"full:3,1", "1f1b", 6, 2, 1, 3}, {"full:2,0", "1f1b", 6, 2, 1, 3}, {"full:2", "1f1b", 5, 2, 1, 2},
	{"full:1,0,selective:2,1,communication:3,3", "1f1b", 6, 2, 1, 3},
	{"full:1,0/0,2,mlp:1,1/2,1", "interleaved", 8, 2, 2, 2}, {"products:2,1", "interleaved", 4, 2, 2, 2},
	{"full:1,1/1,0", "zero_bubble_v", 4, 2, 2, 6},
};

/* Counts of the hybrid; NULL: it is refused. */
static const int32_t *const *counts_of(struct ex_pipe_game *p, const struct ap_hybrid *h)
{
	const char *why;

	p->g = ap_hybrid_deal(&p->f.ctx, p->g, p->w.ndev, &p->f.step, h, &why);
	return p->g ? ap_hybrid_counts(&p->f.ctx, p->g, p->w.ndev, &p->f.step, h, &why) : NULL;
}

static const struct ap_scheduler *scheduler_of(const char *name)
{
	size_t i = 0;

	while (strcmp(ap_scheduler_at(i)->name, name) != 0)
		i++;
	return ap_scheduler_at(i);
}

static const struct ap_float8_recipe *recipe_of(const char *name)
{
	size_t i = 0;

	while (strcmp(ap_float8_recipe_at(i)->name, name) != 0)
		i++;
	return ap_float8_recipe_at(i);
}

static void play(const struct network *net, const struct run *r, enum ap_executor executor, int64_t tp, bool sp,
	struct ex_pipe_game *sums)
{
	const struct ap_scheduler *s = scheduler_of(r->scheduler);
	struct ex_pipe_game p = {.w = {.ndev = 4, .rng = 1 + ex_seed("kinds") / 2}};
	struct ap_hybrid h = {.dp = 4 / tp, .tp = tp, .pp = r->nstage, .cp = 1, .ep = 1, .vpp = r->nsegment,
		.sp = sp, .layers = {.kind = AP_LAYERS_EVEN}};
	struct ap_stages_request rq = {.step = &p.f.step, .scheduler = s, .nstage = r->nstage,
		.nsegment = r->nsegment, .layers = h.layers};
	uint64_t seed = ex_seed("kinds") ^ ex_hash_text(r->kinds);
	const int32_t *const *counts;
	const struct ap_spot *spot;
	struct ex_graph_truth whole;
	struct ap_step at_once;
	struct ap_plan plan;

	fixture_open(&p.f, p.w.ndev * r->nstage, 4, net->in_8_bits ? "h100-80" : "ascend910b");
	p.w.ctx = &p.f.ctx;
	ap_machine_staged(&p.f.ctx, p.f.machine, (uint32_t)r->nstage, &p.f.machine);
	fixture_graph(&p.f, network_text(&p.f.ctx, net, r->layers));
	p.f.step.executor = executor;
	p.f.step.recompute_whole = executor == AP_EXECUTOR_GENERIC;
	p.f.step.micro_batches = r->micro;
	p.f.step.float8 = net->in_8_bits ? recipe_of(net->in_8_bits) : NULL;
	p.f.step.optimizer = ap_optimizer_find("adam");
	ck_assert_int_eq(ap_recompute_parse(&p.f.ctx, "", r->kinds, &p.f.step), AP_OK);
	ap_schedule_pipe(&p.f.ctx, s, r->nstage, r->nsegment, r->micro, &p.pipe);
	p.f.step.pipe = &p.pipe;
	rq.graph = p.f.graph;
	rq.machine = p.f.machine;
	ck_assert_int_eq(ap_stages_make(&p.f.ctx, &rq, &spot, NULL), AP_OK);
	ap_graph_staged(&p.f.ctx, p.f.graph, spot, &p.g);
	counts = counts_of(&p, &h);
	ck_assert_msg(counts != NULL, "%s tp=%d sp=%d", net->name, (int)tp, sp);
	at_once = p.f.step;
	at_once.micro_batches = 1;
	ck_assert(ex_graph_truth_make(&p.w, p.g, &at_once, seed, &whole));
	ck_assert(ex_graph_truth_of_parts(&p.w, p.g, &p.f.step, seed, &whole, &p.truth));
	ap_plan_make(&p.f.ctx, p.g, p.f.machine, &p.f.step, counts, INT64_C(1) << 60, &plan);
	plan.search.mode = "given";
	plan.search.status = AP_PLAN_GIVEN;
	ck_assert_msg(ex_pipe_game_play(&p, &plan), "%s %s tp=%d sp=%d: %s", net->name, r->kinds, (int)tp, sp,
		p.why);
	sums->runs += p.runs;
	sums->again += p.again;
	fixture_close(&p.f);
}

START_LOOP_TEST(kinds_are_one_rank, AP_COUNT(runs))
{
	static const struct {
		int64_t tp;
		bool sp;
	} cuts[] = {{2, true}, {4, false}, {1, false}, {4, true}, {2, false}};
	struct ex_pipe_game sums = {0};
	bool all = ex_cases(200) > 500, few = ex_cases(200) < 100;

	for (size_t n = 0; n < AP_COUNT(networks); n++)
		for (int e = 0; e < 2; e++)
			for (size_t c = 0; c < AP_COUNT(cuts); c++) {
				/* MindSpore's products run in the graph's types; of every third of the kinds */
				if (networks[n].in_8_bits && (!e || (!all && _i % 3)))
					continue;
				/* MindSpore's gathers, else one in turns; of few cases each network for one executor */
				if (few && (n + (size_t)e + (size_t)_i) % 2)
					continue;
				if (!all && c != (e ? ((size_t)_i + n) % AP_COUNT(cuts) : n ? (size_t)_i % 3 : 0))
					continue;
				play(&networks[n], &runs[_i], e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE,
					cuts[c].tp, cuts[c].sp, &sums);
			}
	printf("%s: %" PRIu32 " runs, %" PRIu32 " stages that compute again\n", runs[_i].kinds, sums.runs,
		sums.again);
	ck_assert((sums.again > 0) == (strcmp(runs[_i].kinds, "none") != 0));
}
END_TEST
