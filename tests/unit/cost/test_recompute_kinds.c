/* SPDX-License-Identifier: Apache-2.0 */
/* Words for what layers recompute: read, held against stages, and the operators that they mean. */
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/recompute.h"
#include "cost/task.h"
#include "fixture.h"
#include "harness.h"
#include "shard/recompute_parse.h"

/* ---- words ---- */

/* "all:full unit 4; mlp: 2 1/1 0" */
static const char *read_back(struct fixture *f, const char *text)
{
	struct ap_step *s = &f->step;
	struct ap_str out;

	ck_assert_msg(ap_recompute_parse(&f->ctx, "--recompute", text, s) == AP_OK, "%s", text);
	ap_str_init(&out, f->ctx.arena);
	ap_str_add(&out, ap_again_text(f->ctx.arena, s->recompute));
	if (s->recompute_unit)
		ap_str_addf(&out, " by %d", (int)s->recompute_unit);
	for (uint32_t i = 0; i < s->nrecompute_first; i++) {
		const struct ap_recompute_first *r = &s->recompute_first[i];

		ap_str_addf(&out, "; %s", ap_again_text(f->ctx.arena, r->what));
		for (int32_t k = 0; k < r->nrow * r->ncol; k++)
			ap_str_addf(&out, "%s%d", k % r->ncol ? "," : k ? "/" : " ", (int)r->count[k]);
	}
	return out.s;
}

START_TEST(words_are_read)
{
	static const char *const cases[][2] = {
		{"none", "none"}, {"selective", "selective"}, {"attention", "selective"}, {"full", "full"},
		{"core_attn", "selective"}, {"both", "both"}, {"selective+communication", "both"},
		{"mlp+layernorm", "layernorm+mlp"}, {"both+mlp", "selective+communication+mlp"},
		{"products", "products"}, {"products/2", "products/2"}, {"products/2+mlp", "mlp+products/2"},
		{"mlp,layernorm", "layernorm+mlp"}, {"full:8", "none; full 8"},
		{"full:13,5", "none; full 13,5"}, {"full:2,1/1,0", "none; full 2,1/1,0"},
		{"full:13,5,selective:4,0,mlp", "mlp; full 13,5; selective 4,0"},
		{"uniform:4", "full by 4"}, {"none:3", "none"},
	};
	struct fixture f;

	fixture_open(&f, 1, 1, "a100-80");
	for (size_t i = 0; i < AP_COUNT(cases); i++)
		ck_assert_str_eq(read_back(&f, cases[i][0]), cases[i][1]);
	fixture_close(&f);
}
END_TEST

static const char *last_error(struct fixture *f)
{
	const char *text = "", *t;

	for (size_t i = 0; (t = ap_diag_text(f->ctx.diag, i, NULL, NULL)); i++)
		text = t;
	return text;
}

START_TEST(what_is_no_word)
{
	static const char *const cases[][2] = {
		{"ful", "--recompute: \"ful\" is nothing that is recomputed; expected none, selective, "},
		{"mlp+norm", "--recompute: \"norm\" is nothing"}, {"", "--recompute: \"\" is nothing"},
		{"full:", "--recompute: \"\"; numbers of layers are expected"},
		{"full:x", "--recompute: \"x\"; numbers"}, {"full:-1", "--recompute: \"-1\"; numbers"},
		{"full:1,2/3", "--recompute: \"1,2/3\" has lists of different lengths"},
		{"full:1,mlp:2;3", "--recompute: \";3\"; a comma is expected"},
		{"uniform", "--recompute: uniform needs a number"}, {"uniform:0", "--recompute: uniform takes one"},
		{"uniform:1,2", "--recompute: uniform takes one"}, {"full,", "--recompute: \"\" is nothing"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		struct fixture f;

		fixture_open(&f, 1, 1, "a100-80");
		f.ctx.diag = ap_diag_create(f.said, false);
		ck_assert_int_eq(ap_recompute_parse(&f.ctx, "--recompute", cases[i][0], &f.step), AP_USAGE);
		ck_assert_msg(strncmp(last_error(&f), cases[i][1], strlen(cases[i][1])) == 0, "%s: %s",
			cases[i][0], last_error(&f));
		fixture_close(&f);
	}
}
END_TEST

/* ---- operators ---- */

static void open_model(struct fixture *f, const char *name)
{
	char *text;
	size_t len;

	fixture_open(f, 1, 1, "a100-80");
	ck_assert_int_eq(ap_file_read(&f->ctx, ap_arena_printf(f->ctx.arena, AP_SOURCE_ROOT
		"/models/%s.json", name), AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	fixture_graph(f, text);
}

static bool is_view(const struct ap_node *n)
{
	return strcmp(n->type, "Reshape") == 0;
}

/* Types that a word marks in layer 1; all other layers mark as many. '>' before what is gathered for it. */
static const char *marked(struct fixture *f, const char *word)
{
	const struct ap_graph *g = f->graph;
	struct ap_again *mark = AP_NEW_N(f->ctx.arena, struct ap_again, g->nnode);
	struct ap_again_layers l;
	struct ap_str s;
	uint32_t *n;

	ck_assert(ap_recompute_parse(&f->ctx, "--recompute", word, &f->step) == AP_OK);
	ap_recompute_mark(&f->ctx, g, &f->step, mark);
	ap_recompute_layers(&f->ctx, g, &f->step, &l);
	n = AP_NEW_N(f->ctx.arena, uint32_t, l.n);
	ap_str_init(&s, f->ctx.arena);
	for (ap_id i = 0; i < g->nnode; i++) {
		bool gathers = mark[i].gathers != AP_NONE, again = mark[i].group != AP_NONE;

		if (is_view(&g->node[i]) || !(gathers || again))
			continue;
		ck_assert_int_ge(l.layer[i], 0);
		n[l.layer[i]]++;
		if (l.layer[i] == 1)
			ap_str_addf(&s, "%s%s%s", s.len ? " " : "", gathers ? ">" : "", g->node[i].type);
	}
	for (uint32_t k = 2; k + 1 < l.n; k++)
		ck_assert_uint_eq(n[k], n[1]);
	return s.s;
}

#define ROTARY "Mul StridedSlice Neg StridedSlice Concat Mul Add "
#define NORM "Cast RmsNorm Cast"
#define ROUTER "MatMul Softmax TopK OneHot ReduceSum CumSum Less Cast Mul Mul Cast OneHot Cast Mul ReduceSum Div Mul " \
	"ReduceSum "

static const struct {
	const char *model, *word, *types;
} meant[] = {
	{"gpt3_1.3b", "selective", "BatchMatMul Mul Add Softmax"},
	{"gpt3_1.3b", "layernorm", "LayerNorm LayerNorm"},
	{"gpt3_1.3b", "communication", ">MatMul >MatMul >MatMul >MatMul"},
	{"gpt3_1.3b", "mlp", "MatMul BiasAdd GeLU MatMul"},
	{"gpt3_1.3b", "activation", "GeLU"},
	{"gpt3_1.3b", "moe", ""},
	{"gpt3_1.3b", "shared_experts", ""},
	{"gpt3_1.3b", "full", "LayerNorm MatMul BiasAdd Transpose MatMul BiasAdd Transpose BatchMatMul Mul Add Softmax "
		"MatMul BiasAdd Transpose BatchMatMul Transpose MatMul BiasAdd Add LayerNorm MatMul BiasAdd "
		"GeLU MatMul BiasAdd"},
	{"gpt3_1.3b", "products", "LayerNorm BiasAdd Transpose BiasAdd Transpose BatchMatMul Mul Add Softmax BiasAdd "
		"Transpose BatchMatMul Transpose BiasAdd Add LayerNorm BiasAdd GeLU BiasAdd"},
	{"gpt3_1.3b", "products/2", "LayerNorm BiasAdd Transpose MatMul BiasAdd Transpose BatchMatMul Mul Add Softmax "
		"BiasAdd Transpose BatchMatMul Transpose MatMul BiasAdd Add LayerNorm BiasAdd GeLU MatMul "
		"BiasAdd"},
	{"gpt3_13b_flash", "products", "LayerNorm BiasAdd BiasAdd BiasAdd BiasAdd Add LayerNorm BiasAdd GeLU "
		"BiasAdd"},
	{"bert_large", "layernorm", "LayerNorm LayerNorm"},
	{"bert_large", "mlp", "MatMul BiasAdd GeLU MatMul"},
	{"bert_large", "activation", "GeLU"},
	{"vit_l", "mlp", "MatMul BiasAdd GeLU MatMul"},
	{"llama2_7b", "layernorm", NORM " " NORM},
	{"llama2_7b", "communication", ">Cast >MatMul >MatMul >MatMul >Cast >MatMul >MatMul"},
	{"llama2_7b", "selective", "BatchMatMul Mul Add Softmax"},
	{"llama2_7b", "mlp", "MatMul MatMul SiLU Mul"},
	{"llama2_7b", "activation", "SiLU Mul"},
	{"llama2_7b", "moe_act", ""},
	{"llama2_7b", "mlp+layernorm", NORM " " NORM " MatMul MatMul SiLU Mul"},
	{"llama2_7b", "products/2", NORM " Transpose " ROTARY "MatMul Transpose " ROTARY "BatchMatMul Mul Add "
		"Softmax Transpose BatchMatMul Transpose MatMul Add " NORM " MatMul SiLU Mul"},
	{"mixtral_8x7b", "mlp", ""},
	{"mixtral_8x7b", "layernorm", NORM " " NORM},
	{"mixtral_8x7b", "moe", "Cast " ROUTER "Cast Mul BatchMatMul BatchMatMul BatchMatMul SiLU Mul BatchMatMul"},
	{"mixtral_8x7b", "moe_act", "SiLU Mul"},
};

START_LOOP_TEST(words_mean_operators, AP_COUNT(meant))
{
	struct fixture f;

	open_model(&f, meant[_i].model);
	ck_assert_msg(strcmp(marked(&f, meant[_i].word), meant[_i].types) == 0, "%s of %s: %s", meant[_i].word,
		meant[_i].model, marked(&f, meant[_i].word));
	fixture_close(&f);
}
END_TEST

/* ---- experts beside chosen ones ---- */

/* Layers of experts, of which one is chosen, and one that all tokens go to. views: of rows, with views behind the
 * norm and behind the sum of both. */
static void open_experts(struct fixture *f, bool views)
{
	struct ap_str s;

	fixture_open(f, 1, 1, "a100-80");
	ap_str_init(&s, f->ctx.arena);
	ap_str_addf(&s, "{'schema':'autopar-graph/1','name':'n','inputs':[{'name':'x','shape':%s,"
		"'dtype':'float32','batch_dim':0}],'parameters':[{'name':'b','shape':[8],'dtype':'float32'}",
		views ? "[16,8,8]" : "[128,8]");
	for (int i = 0; i < 4; i++)
		ap_str_addf(&s, ",{'name':'g%d','shape':[8],'dtype':'float32'},{'name':'r%d','shape':[8,4],"
			"'dtype':'float32'},{'name':'e%d','shape':[8,8],'dtype':'float32'},{'name':'u%d',"
			"'shape':[8,32],'dtype':'float32'},{'name':'d%d','shape':[32,8],'dtype':'float32'}",
			i, i, i, i, i);
	ap_str_add(&s, "],'operators':[{'name':'in','type':'BiasAdd','inputs':['x','b'],"
		"'outputs':[{'name':'x0'}],'cell':'in'}");
#define OP(name, type, inputs, outputs, more) \
	ap_str_addf(&s, ",{'name':'" name "%d','type':'" type "','inputs':[" inputs "],'outputs':[" outputs "]" \
		more ",'cell':'net.%d'}", i
	for (int i = 0; i < 4; i++) {
		const char *sum = views ? "rows" : "sum";

		OP("norm", "RmsNorm", "'x%d','g%d'", "{'name':'n%d'},{'name':'q%d'}", ""), i, i, i, i, i);
		OP("view", "Reshape", "'n%d'", "{'name':'v%d'}", ",'attrs':{'shape':[128,8]}"), i, i, i);
		OP("router", "MatMul", "'v%d','r%d'", "{'name':'p%d'}", ""), i, i, i, i);
		OP("best", "TopK", "'p%d'", "{'name':'w%d'},{'name':'i%d'}", ",'attrs':{'k':1}"), i, i, i, i);
		OP("expert", "MatMul", "'v%d','e%d'", "{'name':'y%d'}", ""), i, i, i, i);
		OP("weighted", "Mul", "'y%d','w%d'", "{'name':'z%d'}", ""), i, i, i, i);
		OP("up", "MatMul", "'v%d','u%d'", "{'name':'h%d'}", ""), i, i, i, i);
		OP("act", "SiLU", "'h%d'", "{'name':'a%d'}", ""), i, i, i);
		OP("down", "MatMul", "'a%d','d%d'", "{'name':'s%d'}", ""), i, i, i, i);
		OP("sum", "Add", "'z%d','s%d'", "{'name':'sum%d'}", ""), i, i, i, i);
		if (views)
			OP("back", "Reshape", "'sum%d'", "{'name':'rows%d'}", ",'attrs':{'shape':[16,8,8]}"),
				i, i, i);
		OP("residual", "Add", "'x%d','%s%d'", "{'name':'x%d'}", ""), i, sum, i, i + 1, i);
	}
#undef OP
	ap_str_add(&s, ",{'name':'loss','type':'ReduceMean','inputs':['x4'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}");
	fixture_graph(f, s.s);
}

START_LOOP_TEST(experts_beside_chosen_ones_lie_behind_views, 2)
{
	static const struct {
		const char *word, *types;
	} cases[] = {{"shared_experts", "MatMul SiLU"}, {"moe_act", ""}, {"mlp", ""},
		{"moe", "MatMul MatMul TopK MatMul SiLU"}, {"layernorm", "RmsNorm"}};
	struct fixture f;

	open_experts(&f, _i);
	for (size_t i = 0; i < AP_COUNT(cases); i++)
		ck_assert_msg(strcmp(marked(&f, cases[i].word), cases[i].types) == 0, "%s: %s", cases[i].word,
			marked(&f, cases[i].word));
	fixture_close(&f);
}
END_TEST

/* ---- attention without feed-forward parts ---- */

/* Layers of attention, what weights its result, and a residual sum; scores as they are or with a softmax of them. */
static void open_attention(struct fixture *f, bool softmax)
{
	const char *scores = softmax ? "p" : "s";
	struct ap_str s;

	fixture_open(f, 1, 1, "a100-80");
	f->ctx.diag = ap_diag_create(f->said, false);
	ap_str_init(&s, f->ctx.arena);
	ap_str_add(&s, "{'schema':'autopar-graph/1','name':'n','inputs':[{'name':'x','shape':[16,4,8],'dtype':'float32',"
		"'batch_dim':0}],'parameters':[{'name':'b','shape':[8],'dtype':'float32'}");
	for (int i = 0; i < 4; i++)
		ap_str_addf(&s, ",{'name':'g%d','shape':[8],'dtype':'float32'}", i);
	ap_str_add(&s, "],'operators':[{'name':'in','type':'Add','inputs':['x','b'],'outputs':[{'name':'x0'}],'cell':'in'}");
	for (int i = 0; i < 4; i++) {
		ap_str_addf(&s, ",{'name':'scores%d','type':'BatchMatMul','inputs':['x%d','x%d'],'outputs':[{'name':'s%d'}],"
			"'attrs':{'transpose_b':true},'cell':'net.%d'}", i, i, i, i, i);
		if (softmax)
			ap_str_addf(&s, ",{'name':'softmax%d','type':'Softmax','inputs':['s%d'],'outputs':"
				"[{'name':'p%d'}],'attrs':{'axis':[-1]},'cell':'net.%d'}", i, i, i, i);
		ap_str_addf(&s, ",{'name':'mix%d','type':'BatchMatMul','inputs':['%s%d','x%d'],'outputs':[{'name':'y%d'}],"
			"'cell':'net.%d'},{'name':'weigh%d','type':'Mul','inputs':['y%d','g%d'],'outputs':[{'name':'z%d'}],"
			"'cell':'net.%d'},{'name':'add%d','type':'Add','inputs':['x%d','z%d'],'outputs':"
			"[{'name':'x%d'}],'cell':'net.%d'}", i, scores, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i);
	}
	ap_str_add(&s, ",{'name':'loss','type':'ReduceMean','inputs':['x4'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}");
	fixture_graph(f, s.s);
}

/* What selective marks needs no activation function in the layer, nor anything between the two products; that another
 * word adds nothing is told. */
START_LOOP_TEST(attention_alone, 2)
{
	const char *core = _i ? "BatchMatMul Softmax" : "BatchMatMul";
	const struct {
		const char *word, *types, *note;
	} cases[] = {
		{"selective", core, NULL}, {"attention", core, NULL},
		{"activation", "", "activation recompute adds nothing: no layer has operators element by element between "
			"two products with weights"},
		{"selective+activation", core, "activation recompute adds nothing: no layer has operators element by "
			"element between two products with weights"},
	};
	struct fixture f;

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		open_attention(&f, _i);
		ck_assert_msg(strcmp(marked(&f, cases[i].word), cases[i].types) == 0, "%s: %s", cases[i].word,
			marked(&f, cases[i].word));
		ck_assert_int_eq(ap_recompute_check(&f.ctx, f.graph, &f.step, "--recompute"), AP_OK);
		ck_assert_str_eq(last_error(&f), cases[i].note ? cases[i].note : "");
		fixture_close(&f);
	}
}
END_TEST

/* ---- layers of stages ---- */

/* Layers of y = x + W2 relu(W1 x) with a norm; the parts of a pipeline are given to each. */
static void open_layers_with(struct fixture *f, int layers, const char *cells)
{
	struct ap_str s;

	fixture_open(f, 1, 1, "a100-80");
	f->ctx.diag = ap_diag_create(f->said, false);
	ap_str_init(&s, f->ctx.arena);
	ap_str_addf(&s, "{'schema':'autopar-graph/1','name':'n','cells':[%s],", cells);
	ap_str_add(&s, "'inputs':[{'name':'x','shape':[16,8],"
		"'dtype':'float32','batch_dim':0}],'parameters':[{'name':'b','shape':[8],'dtype':'float32'}");
	for (int i = 0; i < layers; i++)
		ap_str_addf(&s, ",{'name':'u%d','shape':[8,32],'dtype':'float32'},{'name':'d%d',"
			"'shape':[32,8],'dtype':'float32'}", i, i);
	ap_str_add(&s, "],'operators':[{'name':'in','type':'BiasAdd','inputs':['x','b'],"
		"'outputs':[{'name':'x0'}],'cell':'in'}");
	for (int i = 0; i < layers; i++)
		ap_str_addf(&s, ",{'name':'up%d','type':'MatMul','inputs':['x%d','u%d'],'outputs':"
			"[{'name':'h%d'}],'cell':'net.%d.a'},"
			"{'name':'act%d','type':'ReLU','inputs':['h%d'],'outputs':[{'name':'r%d'}],"
			"'cell':'net.%d.a'},"
			"{'name':'down%d','type':'MatMul','inputs':['r%d','d%d'],'outputs':[{'name':'y%d'}],"
			"'cell':'net.%d.a'},"
			"{'name':'add%d','type':'Add','inputs':['x%d','y%d'],'outputs':[{'name':'x%d'}],"
			"'cell':'net.%d'}",
			i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i + 1, i);
	ap_str_addf(&s, ",{'name':'loss','type':'ReduceMean','inputs':['x%d'],'outputs':[{'name':'l'}]}],"
		"'outputs':['l']}", layers);
	fixture_graph(f, s.s);
}

static void open_layers(struct fixture *f, int layers)
{
	open_layers_with(f, layers, "");
}

/* Layers of `text` in stages of so many layers each; "f" full, "s" selective, "-" none, by layer. */
static const char *kinds(struct fixture *f, const char *text, int32_t nstage, int32_t nsegment, const int *layers,
	enum ap_status *st)
{
	struct ap_graph *g = ap_arena_memdup(f->ctx.arena, f->graph, sizeof *g);
	struct ap_node *node = ap_arena_memdup(f->ctx.arena, g->node, g->nnode * sizeof *node);
	struct ap_pipe pipe = {.nstage = nstage, .nsegment = nsegment};
	struct ap_again_layers l;
	struct ap_str s;
	int32_t part = 0;

	g->node = node;
	f->step.pipe = &pipe;
	ap_recompute_layers(&f->ctx, g, &f->step, &l);
	for (int at = 0, k = 0; k < (int)l.n; k++, at++) {
		for (; at == layers[part]; at = 0)
			part++;
		for (ap_id i = 0; i < g->nnode; i++)
			if (l.layer[i] == k) {
				node[i].stage = part % nstage;
				node[i].segment = part / nstage;
			}
	}
	for (ap_id i = 0; i < g->nnode; i++)
		node[i].stage = node[i].stage < 0 ? 0 : node[i].stage;
	ck_assert(ap_recompute_parse(&f->ctx, "--recompute", text, &f->step) == AP_OK);
	*st = ap_recompute_check(&f->ctx, g, &f->step, "--recompute");
	ap_recompute_layers(&f->ctx, g, &f->step, &l);
	f->step.pipe = NULL;
	ap_str_init(&s, f->ctx.arena);
	for (uint32_t k = 0; k < l.n; k++)
		ap_str_add(&s, l.at[k].what == AP_RECOMPUTE_FULL ? "f" : l.at[k].what == AP_RECOMPUTE_SELECTIVE ? "s"
			: l.at[k].what == AP_RECOMPUTE_NONE ? "-" : "+");
	return s.s;
}

START_TEST(first_layers_of_parts)
{
	static const struct {
		const char *text;
		int nstage, nsegment, layers[6];
		const char *kinds, *fault;
	} cases[] = {
		{"full:2", 1, 1, {6}, "ff----", NULL},
		{"full:2", 2, 1, {3, 3}, "ff-ff-", NULL},
		{"full:2,1", 2, 1, {3, 3}, "ff-f--", NULL},
		{"full:1,0,selective:2,2", 2, 1, {3, 3}, "fs-ss-", NULL},
		{"selective:2,full:1", 2, 1, {3, 3}, "fs-fs-", NULL},
		{"mlp,selective:1", 2, 1, {3, 3}, "++++++", NULL},
		{"full:2", 3, 1, {1, 3, 2}, "fff-ff", NULL},
		{"full:4,2", 2, 1, {4, 2}, "ffffff", NULL},
		{"full:1,0/0,1", 2, 2, {2, 1, 1, 2}, "f---f-", NULL},
		/* of a stage's three layers two, from segments in turns: MindFormers' own deal */
		{"full:2,1", 2, 2, {2, 1, 1, 2}, "f-ff--", NULL},
		{"full:3,0", 2, 2, {2, 1, 1, 2}, "ff-f--", NULL},
		{"full:4,0", 2, 1, {3, 3}, "", "4 layers are to be recomputed, but stage 0 has 3"},
		{"full:0,4", 2, 1, {3, 3}, "", "4 layers are to be recomputed, but stage 1 has 3"},
		{"full:4", 2, 1, {3, 3}, "", "4 layers are to be recomputed, but stage 0 has 3"},
		{"full:7", 1, 1, {6}, "", "7 layers are to be recomputed, but the network has 6"},
		{"full:4,0", 2, 2, {2, 1, 1, 2}, "", "4 layers are to be recomputed, but stage 0 has 3"},
		{"full:0,0/2,0", 2, 2, {2, 1, 1, 2}, "",
			"2 layers are to be recomputed, but segment 1 of stage 0 has 1"},
		{"full:1,1,1", 2, 1, {3, 3}, "", "a list of 1 by 3 numbers, but there are 2 stages of 1 segments"},
		{"full:1,1/1,1", 2, 1, {3, 3}, "",
			"a list of 2 by 2 numbers, but there are 2 stages of 1 segments"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		enum ap_status st;
		struct fixture f;
		const char *got;

		open_layers(&f, 6);
		got = kinds(&f, cases[i].text, cases[i].nstage, cases[i].nsegment, cases[i].layers, &st);
		if (cases[i].fault) {
			ck_assert_int_eq(st, AP_USAGE);
			ck_assert_str_eq(last_error(&f), ap_arena_printf(f.ctx.arena, "--recompute: %s",
				cases[i].fault));
		} else {
			ck_assert_int_eq(st, AP_OK);
			ck_assert_msg(strcmp(got, cases[i].kinds) == 0, "%s: %s", cases[i].text, got);
		}
		fixture_close(&f);
	}
}
END_TEST

/* Of layers that run again as one, only what leaves the last is kept; parts have units of their own. */
START_TEST(units_of_layers)
{
	struct ap_again *mark;
	struct fixture f;

	open_layers(&f, 5);
	mark = AP_NEW_N(f.ctx.arena, struct ap_again, f.graph->nnode);
	ck_assert(ap_recompute_parse(&f.ctx, "--recompute", "uniform:2", &f.step) == AP_OK);
	ap_recompute_mark(&f.ctx, f.graph, &f.step, mark);
	for (int i = 0; i < 5; i++) {
		ap_id add = fixture_node(&f, ap_arena_printf(f.ctx.arena, "add%d", i));
		ap_id up = fixture_node(&f, ap_arena_printf(f.ctx.arena, "up%d", i));

		ck_assert((mark[add].group == AP_NONE) == (i % 2 == 1 || i == 4));
		ck_assert_uint_eq(mark[up].group, f.graph->nnode + (ap_id)(i - i % 2));
	}
	fixture_close(&f);
}
END_TEST

/* Words of the graph's cells, of a layer itself or of what it is in; an inner cell's go before; with the step's. */
START_TEST(words_of_cells)
{
	static const struct {
		const char *cells, *text, *kinds, *note;
	} cases[] = {
		{"{'name':'net.1','recompute':'full'}", "none", "-f--", NULL},
		{"{'name':'net','recompute':'full'}", "none", "ffff", NULL},
		{"{'name':'net','recompute':'selective'},{'name':'net.2','recompute':'full'}", "none", "ssfs", NULL},
		{"{'name':'net.3','recompute':'mlp+layernorm'}", "full:1", "f--+", NULL},
		{"{'name':'net.0','recompute':'selective'}", "full:2", "ff--", NULL},
		{"{'name':'net.0.a','recompute':'full'}", "none", "----",
			"nothing of cell \"net.0.a\" is recomputed: it is no layer NAME.0, NAME.1, .. and none is "
			"in it"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		enum ap_status st;
		struct fixture f;
		const char *got;

		open_layers_with(&f, 4, cases[i].cells);
		got = kinds(&f, cases[i].text, 1, 1, (const int[]){4}, &st);
		ck_assert_int_eq(st, AP_OK);
		ck_assert_msg(strcmp(got, cases[i].kinds) == 0, "%s: %s", cases[i].cells, got);
		f.ctx.diag = ap_diag_create(f.said, false);
		ck_assert(ap_recompute_notes(&f.ctx, f.graph, &f.step) == AP_OK);
		ck_assert_str_eq(last_error(&f), cases[i].note ? cases[i].note : "");
		fixture_close(&f);
	}
}
END_TEST

/* What no layer has is said word by word, and the rest is marked. */
START_TEST(words_that_find_nothing)
{
	static const char *const want[] = {"moe recompute adds nothing: no layer chooses experts",
		"selective recompute adds nothing: there is no attention made of two products of activations; "
		"fused attention recomputes its scores itself"};
	struct fixture f;
	size_t n = 0;
	const char *t;

	open_layers(&f, 2);
	ck_assert(ap_recompute_parse(&f.ctx, "--recompute", "selective+mlp+moe", &f.step) == AP_OK);
	ck_assert(ap_recompute_check(&f.ctx, f.graph, &f.step, "") == AP_OK);
	for (size_t i = 0; (t = ap_diag_text(f.ctx.diag, i, NULL, NULL)); i++)
		for (size_t k = 0; k < AP_COUNT(want); k++)
			n += strcmp(t, want[k]) == 0;
	ck_assert_uint_eq(n, AP_COUNT(want));
	fixture_close(&f);
}
END_TEST
