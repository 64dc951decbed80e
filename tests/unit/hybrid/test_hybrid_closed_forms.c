/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations of a GPT layer against the closed forms of Korthikanti et al., "Reducing Activation
 * Recomputation in Large Transformer Models": 16-bit elements, masks of dropout of a byte, b samples of
 * s tokens, h features, a heads, t devices.
 */
#include <math.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "fixture.h"
#include "harness.h"
#include "hybrid/hybrid.h"
#include "plan/make.h"
#include "plan/plan.h"

enum { B = 2, S = 512, H = 1024, A = 16, T = 8 };

#define ROWS "[1024,1024]" /* B S, H */
#define TOKENS "[2,512,1024]"

/* $ is the number of the layer, < what it reads, > what it gives. */
static const char *const layer[] = {
	"{'name':'ln1.$','type':'LayerNorm','inputs':['<','g1.$','e1.$'],"
	"'attrs':{'begin_norm_axis':-1,'begin_params_axis':-1},'outputs':[{'name':'n1.$'}]",
	"{'name':'rows1.$','type':'Reshape','inputs':['n1.$'],'attrs':{'shape':" ROWS "},"
	"'outputs':[{'name':'r1.$'}]",
	"{'name':'q.$','type':'MatMul','inputs':['r1.$','wq.$'],'outputs':[{'name':'q0.$'}]",
	"{'name':'qs.$','type':'Reshape','inputs':['q0.$'],'attrs':{'shape':[2,512,16,64]},"
	"'outputs':[{'name':'q1.$'}]",
	"{'name':'qt.$','type':'Transpose','inputs':['q1.$'],'attrs':{'perm':[0,2,1,3]},"
	"'outputs':[{'name':'q2.$'}]",
	"{'name':'k.$','type':'MatMul','inputs':['r1.$','wk.$'],'outputs':[{'name':'k0.$'}]",
	"{'name':'ks.$','type':'Reshape','inputs':['k0.$'],'attrs':{'shape':[2,512,16,64]},"
	"'outputs':[{'name':'k1.$'}]",
	"{'name':'kt.$','type':'Transpose','inputs':['k1.$'],'attrs':{'perm':[0,2,1,3]},"
	"'outputs':[{'name':'k2.$'}]",
	"{'name':'v.$','type':'MatMul','inputs':['r1.$','wv.$'],'outputs':[{'name':'v0.$'}]",
	"{'name':'vs.$','type':'Reshape','inputs':['v0.$'],'attrs':{'shape':[2,512,16,64]},"
	"'outputs':[{'name':'v1.$'}]",
	"{'name':'vt.$','type':'Transpose','inputs':['v1.$'],'attrs':{'perm':[0,2,1,3]},"
	"'outputs':[{'name':'v2.$'}]",
	"{'name':'scores.$','type':'BatchMatMul','inputs':['q2.$','k2.$'],'attrs':{'transpose_b':true},"
	"'outputs':[{'name':'s0.$'}]",
	"{'name':'scale.$','type':'Mul','inputs':['s0.$','scale'],'outputs':[{'name':'s1.$'}]",
	"{'name':'mask.$','type':'Add','inputs':['s1.$','mask'],'outputs':[{'name':'s2.$'}]",
	"{'name':'softmax.$','type':'Softmax','inputs':['s2.$'],'outputs':[{'name':'s3.$'}]",
	"{'name':'drop0.$','type':'Dropout','inputs':['s3.$'],'outputs':[{'name':'s4.$'},{'name':'m0.$'}]",
	"{'name':'values.$','type':'BatchMatMul','inputs':['s4.$','v2.$'],'outputs':[{'name':'c0.$'}]",
	"{'name':'ct.$','type':'Transpose','inputs':['c0.$'],'attrs':{'perm':[0,2,1,3]},"
	"'outputs':[{'name':'c1.$'}]",
	"{'name':'cs.$','type':'Reshape','inputs':['c1.$'],'attrs':{'shape':" ROWS "},"
	"'outputs':[{'name':'c2.$'}]",
	"{'name':'proj.$','type':'MatMul','inputs':['c2.$','wo.$'],'outputs':[{'name':'o0.$'}]",
	"{'name':'projb.$','type':'BiasAdd','inputs':['o0.$','bo.$'],'outputs':[{'name':'o1.$'}]",
	"{'name':'tok1.$','type':'Reshape','inputs':['o1.$'],'attrs':{'shape':" TOKENS "},"
	"'outputs':[{'name':'o2.$'}]",
	"{'name':'drop1.$','type':'Dropout','inputs':['o2.$'],'outputs':[{'name':'o3.$'},{'name':'m1.$'}]",
	"{'name':'add1.$','type':'Add','inputs':['<','o3.$'],'outputs':[{'name':'y.$'}]",
	"{'name':'ln2.$','type':'LayerNorm','inputs':['y.$','g2.$','e2.$'],"
	"'attrs':{'begin_norm_axis':-1,'begin_params_axis':-1},'outputs':[{'name':'n2.$'}]",
	"{'name':'rows2.$','type':'Reshape','inputs':['n2.$'],'attrs':{'shape':" ROWS "},"
	"'outputs':[{'name':'r2.$'}]",
	"{'name':'up.$','type':'MatMul','inputs':['r2.$','wu.$'],'outputs':[{'name':'u0.$'}]",
	"{'name':'upb.$','type':'BiasAdd','inputs':['u0.$','bu.$'],'outputs':[{'name':'u1.$'}]",
	"{'name':'gelu.$','type':'GeLU','inputs':['u1.$'],'outputs':[{'name':'u2.$'}]",
	"{'name':'down.$','type':'MatMul','inputs':['u2.$','wd.$'],'outputs':[{'name':'d0.$'}]",
	"{'name':'downb.$','type':'BiasAdd','inputs':['d0.$','bd.$'],'outputs':[{'name':'d1.$'}]",
	"{'name':'tok2.$','type':'Reshape','inputs':['d1.$'],'attrs':{'shape':" TOKENS "},"
	"'outputs':[{'name':'d2.$'}]",
	"{'name':'drop2.$','type':'Dropout','inputs':['d2.$'],'outputs':[{'name':'d3.$'},{'name':'m2.$'}]",
	"{'name':'add2.$','type':'Add','inputs':['y.$','d3.$'],'outputs':[{'name':'>'}]",
};

static const struct {
	const char *name, *shape;
} weights[] = {
	{"g1", "[1024]"}, {"e1", "[1024]"}, {"wq", ROWS}, {"wk", ROWS}, {"wv", ROWS}, {"wo", ROWS},
	{"bo", "[1024]"}, {"g2", "[1024]"}, {"e2", "[1024]"}, {"wu", "[1024,4096]"}, {"bu", "[4096]"},
	{"wd", "[4096,1024]"}, {"bd", "[1024]"},
};

static void add_layer(struct ap_str *s, int i)
{
	for (size_t o = 0; o < AP_COUNT(layer); o++) {
		for (const char *c = layer[o]; *c; c++)
			if (*c == '$')
				ap_str_addf(s, "%d", i);
			else if (*c == '<' || *c == '>')
				ap_str_addf(s, "x%d", i + (*c == '>'));
			else
				ap_str_addc(s, *c);
		ap_str_addf(s, ",'cell':'net.blocks.%d'},", i);
	}
}

static const char *network(struct ap_ctx *ctx, int layers)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	ap_str_add(&s, "{'schema':'autopar-graph/1','name':'layers','inputs':["
		"{'name':'x','shape':" TOKENS ",'dtype':'float16','batch_dim':0}],'constants':["
		"{'name':'scale','shape':[1],'dtype':'float16'},"
		"{'name':'mask','shape':[512,512],'dtype':'float16'}],"
		"'parameters':[{'name':'b','shape':[1024],'dtype':'float16'}");
	for (int i = 0; i < layers; i++)
		for (size_t w = 0; w < AP_COUNT(weights); w++)
			ap_str_addf(&s, ",{'name':'%s.%d','shape':%s,'dtype':'float16'}", weights[w].name, i,
				weights[w].shape);
	ap_str_add(&s, "],'operators':["
		"{'name':'in','type':'Add','inputs':['x','b'],'outputs':[{'name':'x0'}]},");
	for (int i = 0; i < layers; i++)
		add_layer(&s, i);
	ap_str_addf(&s, "{'name':'loss','type':'ReduceMean','inputs':['x%d'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}", layers);
	return s.s;
}

/* Bytes kept of so many layers, by s b h. */
static double kept_of(int layers, enum ap_executor executor, int tp, bool sp,
	enum ap_recompute recompute)
{
	struct ap_hybrid h = {.dp = 1, .tp = tp, .sp = sp};
	const int32_t *const *counts;
	const struct ap_graph *g;
	const char *why = NULL;
	struct ap_plan p;
	struct fixture f;
	double each;

	fixture_open(&f, tp, tp, "a100-80");
	f.step.executor = executor;
	f.step.recompute = recompute;
	fixture_graph(&f, network(&f.ctx, layers));
	ck_assert(ap_hybrid_fill(&f.ctx, tp, &h) == AP_OK);
	g = ap_hybrid_deal(&f.ctx, f.graph, tp, &f.step, &h, &why);
	ck_assert_msg(g != NULL, "%s", why);
	counts = ap_hybrid_counts(&f.ctx, g, tp, &f.step, &h, &why);
	ck_assert_msg(counts != NULL, "%s", why);
	ap_plan_price(ap_plan_maker_create(&f.ctx, g, f.machine, &f.step, (int64_t)1 << 60), counts, &p);
	each = (double)p.prediction.memory.activations / ((double)S * B * H);
	fixture_close(&f);
	return each;
}

/* Of one layer more. */
static double kept(enum ap_executor executor, int tp, bool sp, enum ap_recompute recompute)
{
	return kept_of(3, executor, tp, sp, recompute) - kept_of(2, executor, tp, sp, recompute);
}

static void near(double got, double want)
{
	ck_assert_msg(fabs(got / want - 1) < 0.02, "%g s b h, %g wanted", got, want);
}

START_TEST(one_device)
{
	near(kept(AP_EXECUTOR_MINDSPORE, 1, false, AP_RECOMPUTE_NONE), 34 + 5. * A * S / H);
	near(kept(AP_EXECUTOR_GENERIC, 1, false, AP_RECOMPUTE_NONE), 34 + 5. * A * S / H);
	near(kept(AP_EXECUTOR_MINDSPORE, 1, false, AP_RECOMPUTE_SELECTIVE), 34);
	near(kept(AP_EXECUTOR_MINDSPORE, 1, false, AP_RECOMPUTE_FULL), 2);
}
END_TEST

START_TEST(tensor_parallel)
{
	near(kept(AP_EXECUTOR_MINDSPORE, T, false, AP_RECOMPUTE_NONE), 10 + 24. / T + 5. * A * S / H / T);
	near(kept(AP_EXECUTOR_GENERIC, T, false, AP_RECOMPUTE_NONE), 10 + 24. / T + 5. * A * S / H / T);
	near(kept(AP_EXECUTOR_GENERIC, T, false, AP_RECOMPUTE_SELECTIVE), 10 + 24. / T);
	near(kept(AP_EXECUTOR_GENERIC, T, false, AP_RECOMPUTE_FULL), 2);
}
END_TEST

/* MindSpore holds what products read whole, in the layout in which they read it: of the norms' results
 * the gathered copies, 2 + 2, and not their own slices beside them; the rest is dealt. */
START_TEST(sequence_parallel_gathered)
{
	near(kept(AP_EXECUTOR_MINDSPORE, T, true, AP_RECOMPUTE_NONE), 4 + (30 + 5. * A * S / H) / T);
	near(kept(AP_EXECUTOR_MINDSPORE, T, true, AP_RECOMPUTE_SELECTIVE), 4 + 30. / T);
}
END_TEST

START_TEST(sequence_parallel)
{
	near(kept(AP_EXECUTOR_GENERIC, T, true, AP_RECOMPUTE_NONE), (34 + 5. * A * S / H) / T);
	near(kept(AP_EXECUTOR_GENERIC, T, true, AP_RECOMPUTE_SELECTIVE), 34. / T);
	near(kept(AP_EXECUTOR_GENERIC, T, true, AP_RECOMPUTE_FULL), 2. / T);
}
END_TEST

/*
 * What parts of a layer keep no more: both norms' results 2 + 2; GeLU's result 8; of the feed-forward
 * part GeLU's operand and result 8 + 8. With products kept: the layer's input 2, queries, keys and
 * values 6, what attention gives 2, GeLU's operand 8 and, for its dropout, the last product's result 2;
 * where every second one of the six products runs again, keys and the two results that drop elements
 * are not kept.
 */
START_TEST(parts_of_layers)
{
	const double scores = 5. * A * S / H;

	for (int e = 0; e < 2; e++) {
		enum ap_executor who = e ? AP_EXECUTOR_GENERIC : AP_EXECUTOR_MINDSPORE;

		near(kept(who, 1, false, AP_RECOMPUTE_NORM), 30 + scores);
		near(kept(who, 1, false, AP_RECOMPUTE_ACTIVATION), 26 + scores);
		near(kept(who, 1, false, AP_RECOMPUTE_MLP), 18 + scores);
		near(kept(who, 1, false, AP_RECOMPUTE_SELECTIVE | AP_RECOMPUTE_NORM), 30);
		near(kept(who, 1, false, AP_RECOMPUTE_SELECTIVE | AP_RECOMPUTE_MLP | AP_RECOMPUTE_NORM), 14);
		near(kept(who, T, true, AP_RECOMPUTE_SELECTIVE | AP_RECOMPUTE_NORM), 30. / T);
		near(kept(who, 1, false, AP_RECOMPUTE_COMMUNICATION), 34 + scores);
		near(kept(who, 1, false, AP_RECOMPUTE_PRODUCTS), 2 + 6 + 2 + 8 + 2);
		near(kept(who, 1, false, AP_RECOMPUTE_PRODUCTS | AP_RECOMPUTE_HALF), 2 + 4 + 8);
	}
	/* the copies gathered behind both norms are made anew */
	near(kept(AP_EXECUTOR_MINDSPORE, T, true, AP_RECOMPUTE_COMMUNICATION), (34 + scores) / T);
	near(kept(AP_EXECUTOR_MINDSPORE, T, true, AP_RECOMPUTE_COMMUNICATION | AP_RECOMPUTE_SELECTIVE), 34. / T);
}
END_TEST
