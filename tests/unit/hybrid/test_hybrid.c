/* SPDX-License-Identifier: Apache-2.0 */
/* Hybrids of experts: the cuts and collectives are those of Megatron. */
#include "fixture.h"
#include "drive/baseline.h"
#include "drive/verify.h"
#include "graph/staged.h"
#include "hw/group.h"
#include "hybrid/hybrid.h"
#include "plan/make.h"
#include "plan/plan.h"
#include "shard/strategy.h"
#include "unit.h"

/* ---- a layer of GPT ------------------------------------------------------------------------------ */

enum { BATCH = 8, SEQUENCE = 16, HIDDEN = 32, WORDS = 64 };

#define NODE(type, in, name, attrs) \
	"{'type':'" type "','inputs':[" in "],'name':'" name "','outputs':[{'name':'" name "'}],'attrs':{" \
	attrs "}},"
#define LINEAR(x, w, name) NODE("MatMul", "'" x "','" w "'", name, "'transpose_b':true")
#define BIAS(x, b, name) NODE("BiasAdd", "'" x "','" b "'", name, "")
#define RESHAPE(x, name, shape) NODE("Reshape", "'" x "'", name, "'shape':[" shape "]")
#define TURN(x, name) NODE("Transpose", "'" x "'", name, "'perm':[0,2,1,3]")
#define NORM(x, g, o, name) NODE("LayerNorm", "'" x "','" g "','" o "'", name, \
	"'begin_norm_axis':-1,'begin_params_axis':-1")
#define HEADS(q, heads, size) RESHAPE(q ".rows", q ".split", "8,16," heads "," size) TURN(q ".split", q)
#define WEIGHT(name, shape) "{'name':'" name "','shape':[" shape "],'dtype':'float32'},"
#define IDS(name) "{'name':'" name "','shape':[8,16],'dtype':'int32','batch_dim':0},"
#define NUMBER(name) "{'name':'" name "','shape':[],'dtype':'float32'},"

#define LAYER_BEGIN(words) \
	"{'schema':'autopar-graph/1','name':'gpt','inputs':[" IDS("ids") IDS("places") \
	"{'name':'labels','shape':[128],'dtype':'int32','batch_dim':0}],'parameters':[" \
	WEIGHT("words", words ",32") WEIGHT("positions", "16,32") WEIGHT("wq", "32,32") \
	WEIGHT("bq", "32") WEIGHT("wk", "32,32") WEIGHT("wv", "32,32") WEIGHT("wo", "32,32") \
	WEIGHT("bo", "32") WEIGHT("up", "96,32") WEIGHT("down", "32,96") WEIGHT("g1", "32") \
	WEIGHT("o1", "32") WEIGHT("g2", "32") WEIGHT("o2", "32") \
	"{'name':'last','shape':[32],'dtype':'float32'}],'constants':[" NUMBER("on") \
	"{'name':'off','shape':[],'dtype':'float32'}],'operators':["
#define EMBED \
	NODE("Gather", "'words','ids'", "word", "'axis':0") \
	NODE("Gather", "'positions','places'", "place", "'axis':0") \
	NODE("Add", "'word','place'", "x", "")
#define ATTENTION(heads, size) \
	NORM("x", "g1", "o1", "x.norm") RESHAPE("x.norm", "rows", "128,32") \
	LINEAR("rows", "wq", "q.product") BIAS("q.product", "bq", "q.rows") HEADS("q", heads, size) \
	LINEAR("rows", "wk", "k.rows") HEADS("k", heads, size) \
	LINEAR("rows", "wv", "v.rows") HEADS("v", heads, size) \
	NODE("BatchMatMul", "'q','k'", "scores", "'transpose_b':true") \
	NODE("Softmax", "'scores'", "probs", "") \
	NODE("BatchMatMul", "'probs','v'", "context", "") \
	TURN("context", "context.split") RESHAPE("context.split", "context.rows", "128,32") \
	LINEAR("context.rows", "wo", "a.product") BIAS("a.product", "bo", "a.rows") \
	RESHAPE("a.rows", "a", "8,16,32") NODE("Add", "'x','a'", "middle", "")
#define FEED_FORWARD \
	NORM("middle", "g2", "o2", "middle.norm") RESHAPE("middle.norm", "n", "128,32") \
	LINEAR("n", "up", "u") NODE("GeLU", "'u'", "u.act", "") LINEAR("u.act", "down", "d.rows") \
	RESHAPE("d.rows", "d", "8,16,32") NODE("Add", "'middle','d'", "z", "")
#define HEAD \
	NODE("Mul", "'z','last'", "z.scaled", "") RESHAPE("z.scaled", "z.rows", "128,32") \
	LINEAR("z.rows", "words", "logits")
#define LOSS(words) \
	NODE("ReduceMax", "'logits'", "most", "'axis':[-1],'keep_dims':true") \
	NODE("Sub", "'logits','most'", "shifted", "") NODE("Exp", "'shifted'", "exp", "") \
	NODE("ReduceSum", "'exp'", "exp.sum", "'axis':[-1],'keep_dims':true") \
	NODE("Div", "'exp','exp.sum'", "softmax", "") \
	NODE("OneHot", "'labels','on','off'", "hot", "'depth':" words ",'axis':-1") \
	NODE("Mul", "'softmax','hot'", "chosen", "") \
	NODE("ReduceSum", "'chosen'", "likely", "'axis':[-1],'keep_dims':false")
#define LAYER_END \
	"{'type':'ReduceMean','inputs':['likely'],'name':'loss','outputs':[{'name':'loss'}]}]," \
	"'outputs':['loss']}"

static struct ap_hybrid parsed(struct ap_ctx *ctx, const char *text)
{
	struct ap_hybrid h;

	ck_assert_msg(ap_hybrid_parse(ctx, text, &h) == AP_OK, "%s", messages(ctx));
	return h;
}

struct layer {
	struct fixture f;
	struct ap_hybrid h;
	const int32_t *const *counts;
	struct ap_plan plan;
	const char *why;
};

/* Texts are put together from parts, as compilers bound the length of one; commas that macros put before
 * the end of a list go. */
static const char *joined(struct ap_ctx *ctx, const char *const *part)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	for (; *part; part++)
		for (const char *c = *part; *c; c++)
			if (c[0] != ',' || c[1] != ']')
				ap_str_addc(&s, *c);
	return s.s;
}

static const char *const gpt[] = {LAYER_BEGIN("64") EMBED, ATTENTION("4", "8") FEED_FORWARD, HEAD,
	LOSS("64") LAYER_END, NULL};
static const char *const odd_heads[] = {LAYER_BEGIN("64") EMBED, ATTENTION("2", "16") FEED_FORWARD, HEAD,
	LOSS("64") LAYER_END, NULL};
static const char *const odd_words[] = {LAYER_BEGIN("66") EMBED, ATTENTION("4", "8") FEED_FORWARD, HEAD,
	LOSS("66") LAYER_END, NULL};

/* The plan of a hybrid, where there is one. */
static void open_layer(struct layer *l, const char *const *text, int64_t ndev, int64_t micro,
	const char *hybrid, enum ap_executor executor)
{
	*l = (struct layer){0};
	fixture_open(&l->f, ndev, 8, "a100-80");
	l->f.step.executor = executor;
	l->f.step.micro_batches = micro;
	fixture_graph(&l->f, joined(&l->f.ctx, text));
	l->h = parsed(&l->f.ctx, hybrid);
	ck_assert_int_eq(ap_hybrid_fill(&l->f.ctx, ndev, &l->h), AP_OK);
	l->f.graph = ap_hybrid_deal(&l->f.ctx, l->f.graph, ndev, &l->f.step, &l->h, &l->why);
	if (l->f.graph)
		l->counts = ap_hybrid_counts(&l->f.ctx, l->f.graph, ndev, &l->f.step, &l->h, &l->why);
	if (!l->counts)
		return;
	ap_plan_make(&l->f.ctx, l->f.graph, l->f.machine, &l->f.step, l->counts, INT64_C(1) << 50,
		&l->plan);
	ck_assert_msg(ap_verify(&l->f.ctx, &l->plan) == AP_OK, "%s", messages(&l->f.ctx));
}

/* "[2,1][4,1]": the strategy of an operator. */
static const char *strategy(const struct layer *l, const char *name)
{
	uint8_t rank[8];
	int32_t cut[8][AP_MAX_RANK];
	struct ap_str s;
	uint32_t n = ap_space_to_strategy(&l->plan.op[fixture_node(&l->f, name)].place, rank, cut, 8);

	ap_str_init(&s, l->f.ctx.arena);
	for (uint32_t k = 0; k < n; k++) {
		ap_str_addc(&s, '[');
		for (int d = 0; d < rank[k]; d++)
			ap_str_addf(&s, d ? ",%" PRId32 : "%" PRId32, cut[k][d]);
		ap_str_addc(&s, ']');
	}
	return s.s;
}

static void expect_cuts(const struct layer *l, const char *const (*cuts)[2])
{
	for (; (*cuts)[0]; cuts++) {
		const char *is = strategy(l, (*cuts)[0]);

		ck_assert_msg(strcmp(is, (*cuts)[1]) == 0, "%s is %s", (*cuts)[0], is);
	}
}

START_TEST(columns_and_rows_alternate)
{
	static const char *const cuts[][2] = {
		{"word", "[4,1][2,1]"}, {"place", "[1,1][2,1]"}, {"x", "[2,1,1][2,1,1]"},
		{"x.norm", "[2,1,1][1][1]"}, {"rows", "[2,1,1]"},
		{"q.product", "[2,1][4,1]"}, {"q.rows", "[2,4][4]"}, {"q.split", "[2,4]"},
		{"q", "[2,1,4,1]"}, {"k.rows", "[2,1][4,1]"}, {"k", "[2,1,4,1]"},
		{"v.rows", "[2,1][4,1]"}, {"v", "[2,1,4,1]"},
		{"scores", "[2,4,1,1][2,4,1,1]"}, {"probs", "[2,4,1,1]"},
		{"context", "[2,4,1,1][2,4,1,1]"}, {"context.split", "[2,4,1,1]"},
		{"context.rows", "[2,1,4,1]"}, {"a.product", "[2,4][1,4]"}, {"a.rows", "[2,1][1]"},
		{"a", "[2,1]"}, {"middle", "[2,1,1][2,1,1]"}, {"middle.norm", "[2,1,1][1][1]"},
		{"u", "[2,1][4,1]"}, {"u.act", "[2,4]"}, {"d.rows", "[2,4][1,4]"}, {"d", "[2,1]"},
		{"z", "[2,1,1][2,1,1]"}, {"z.scaled", "[2,1,1][1]"}, {"z.rows", "[2,1,1]"},
		{"logits", "[2,1][4,1]"}, {"most", "[2,4]"}, {"shifted", "[2,4][2,1]"},
		{"exp.sum", "[2,4]"}, {"softmax", "[2,4][2,1]"}, {"hot", "[2,4][][]"},
		{"chosen", "[2,4][2,4]"}, {"likely", "[2,4]"}, {"loss", "[2]"}, {NULL, NULL},
	};
	struct layer l;

	open_layer(&l, gpt, 8, 1, "dp=2,tp=4", AP_EXECUTOR_MINDSPORE);
	ck_assert_msg(l.counts != NULL, "%s", l.why);
	expect_cuts(&l, cuts);
	fixture_close(&l.f);
}
END_TEST

START_TEST(tokens_are_cut_between_the_pairs)
{
	static const char *const cuts[][2] = {
		{"place", "[1,1][2,4]"}, {"x", "[2,4,1][2,4,1]"}, {"x.norm", "[2,4,1][1][1]"},
		{"rows", "[2,1,1]"}, {"q.product", "[2,1][4,1]"}, {"context.rows", "[2,1,4,1]"},
		{"a.product", "[2,4][1,4]"}, {"a.rows", "[8,1][1]"}, {"a", "[8,1]"},
		{"middle", "[2,4,1][2,4,1]"}, {"middle.norm", "[2,4,1][1][1]"}, {"n", "[2,1,1]"},
		{"u", "[2,1][4,1]"}, {"d.rows", "[2,4][1,4]"}, {"d", "[8,1]"},
		{"z", "[2,4,1][2,4,1]"}, {"z.scaled", "[2,4,1][1]"}, {"z.rows", "[2,1,1]"},
		{"logits", "[2,1][4,1]"}, {NULL, NULL},
	};
	struct layer l;

	open_layer(&l, gpt, 8, 4, "dp=2,tp=4,sp=1", AP_EXECUTOR_MINDSPORE); /* one sample on a rank */
	ck_assert_msg(l.counts != NULL, "%s", l.why);
	expect_cuts(&l, cuts);
	ck_assert(l.f.graph->node[fixture_node(&l.f, "a.product")].bound.dealt != 0);
	ck_assert(l.f.graph->node[fixture_node(&l.f, "u")].bound.dealt == 0);
	fixture_close(&l.f);
}
END_TEST

/* ---- what goes between the ranks ----------------------------------------------------------------- */

struct traffic { /* of the activations, between the first operator of the layer and the last */
	int allreduce[2], reducescatter[2], allgather[2], gathers; /* forward, backward */
	int64_t bytes[2]; /* of their buffers; of gathers what they end with */
	int moves; /* redistributions that are paid for */
};

static void count_comms(const struct layer *l, ap_id node, struct traffic *t)
{
	for (uint32_t k = 0; k < l->plan.op[node].ncomm; k++) {
		const struct ap_comm *c = &l->plan.op[node].comm[k].comm;

		if (c->phase > AP_PHASE_BACKWARD)
			continue;
		t->bytes[c->phase] += c->bytes;
		t->allreduce[c->phase] += c->kind == AP_COLL_ALLREDUCE;
		t->reducescatter[c->phase] += c->kind == AP_COLL_REDUCESCATTER;
		t->allgather[c->phase] += c->kind == AP_COLL_ALLGATHER;
		ck_assert_int_eq(ap_axes_size(&c->axes), l->h.tp);
	}
}

/* Of operators first to last; of redistributions what leads to them. */
static struct traffic traffic_of(const struct layer *l, const char *first, const char *last)
{
	ap_id from = fixture_node(&l->f, first), to = fixture_node(&l->f, last);
	struct traffic t = {{0}, {0}, {0}, 0, {0}, 0};

	for (ap_id i = from; i <= to; i++)
		count_comms(l, i, &t);
	for (uint32_t m = 0; m < l->plan.nmove; m++) {
		const struct ap_plan_move *move = &l->plan.move[m];

		if (move->to < from || move->to > to || move->from == AP_NONE ||
			move->cost.forward_s + move->cost.backward_s == 0)
			continue;
		t.moves += move->nstep > 0;
		for (int k = 0; k < move->nstep; k++)
			t.gathers += move->step[k].move == AP_MOVE_GATHER;
		for (int k = 0; k < move->nback; k++) {
			bool all = move->back[k].move == AP_MOVE_ALLREDUCE;
			bool part = move->back[k].move == AP_MOVE_REDUCESCATTER;

			t.allreduce[1] += all;
			t.reducescatter[1] += part;
			t.bytes[1] += all || part ? 4 * move->back[k].before : 0;
		}
	}
	return t;
}

/* s b h of one micro-batch on each of dp parts. */
static int64_t slice_bytes(const struct layer *l)
{
	return INT64_C(4) * BATCH * SEQUENCE * HIDDEN / l->h.dp / l->f.step.micro_batches;
}

START_TEST(two_sums_forward_and_two_backward)
{
	struct layer l;
	struct traffic t;

	open_layer(&l, gpt, 8, 1, "dp=2,tp=4", AP_EXECUTOR_MINDSPORE);
	t = traffic_of(&l, "x.norm", "z");
	ck_assert_int_eq(t.allreduce[0], 2);
	ck_assert_int_eq(t.allreduce[1], 2);
	ck_assert_int_eq(t.bytes[0], 2 * slice_bytes(&l));
	ck_assert_int_eq(t.bytes[1], 2 * slice_bytes(&l));
	ck_assert_int_eq(t.moves, 0);
	t = traffic_of(&l, "word", "x"); /* the embedding: one sum */
	ck_assert_int_eq(t.allreduce[0], 1);
	ck_assert_int_eq(t.bytes[0], slice_bytes(&l));
	ck_assert_int_eq(t.moves, 0);
	t = traffic_of(&l, "z.scaled", "likely"); /* the loss: a number for each token, three times */
	ck_assert_int_eq(t.allreduce[0], 3);
	ck_assert_int_eq(t.bytes[0], 3 * slice_bytes(&l) / HIDDEN);
	ck_assert_int_eq(t.moves, 0);
	fixture_close(&l.f);
}
END_TEST

/* Gathers and scatters of as much, each half of a sum. */
START_TEST(sequence_parallelism_moves_as_much)
{
	struct layer l;
	struct traffic t;

	open_layer(&l, gpt, 8, 4, "dp=2,tp=4,sp=1", AP_EXECUTOR_MINDSPORE);
	t = traffic_of(&l, "x.norm", "z");
	ck_assert_int_eq(t.allreduce[0] + t.allreduce[1], 0);
	ck_assert_int_eq(t.reducescatter[0], 2);
	ck_assert_int_eq(t.allgather[1], 2);
	ck_assert_int_eq(t.bytes[0], 2 * slice_bytes(&l));
	ck_assert_int_eq(t.bytes[1], 2 * slice_bytes(&l));
	ck_assert_int_eq(t.moves, 2); /* before columns: query, key and value share one */
	ck_assert_int_eq(t.gathers, 2);
	fixture_close(&l.f);
}
END_TEST

/* What sums the gradients of products with columns sums those of one tensor together: query, key and value;
 * the first of the feed-forward layer. */
START_TEST(megatron_sums_gradients_of_columns)
{
	struct layer l;
	struct traffic t;

	open_layer(&l, gpt, 8, 1, "dp=2,tp=4", AP_EXECUTOR_GENERIC);
	t = traffic_of(&l, "x.norm", "z");
	ck_assert_int_eq(t.allreduce[0], 2);
	ck_assert_int_eq(t.allreduce[1], 2);
	ck_assert_int_eq(t.bytes[1], 2 * slice_bytes(&l));
	ck_assert_int_eq(t.moves, 0);
	fixture_close(&l.f);
	open_layer(&l, gpt, 8, 4, "dp=2,tp=4,sp=1", AP_EXECUTOR_GENERIC);
	t = traffic_of(&l, "x.norm", "z");
	ck_assert_int_eq(t.allreduce[0] + t.allreduce[1], 0);
	ck_assert_int_eq(t.reducescatter[0], 2);
	ck_assert_int_eq(t.allgather[1], 2);
	ck_assert_int_eq(t.reducescatter[1], 2);
	ck_assert_int_eq(t.moves, 2);
	ck_assert_int_eq(t.gathers, 2);
	ck_assert_int_eq(t.bytes[0], 2 * slice_bytes(&l));
	ck_assert_int_eq(t.bytes[1], 4 * slice_bytes(&l));
	fixture_close(&l.f);
}
END_TEST

/* Query, key and value of one product are put apart whole, and cut again by heads. */
static const char *const fused[] = {
	"{'schema':'autopar-graph/1','name':'fused','inputs':[{'name':'x','shape':[128,32],"
	"'dtype':'float32','batch_dim':0}],'parameters':[" WEIGHT("g", "32") WEIGHT("o", "32")
	WEIGHT("wqkv", "96,32") WEIGHT("wo", "32,32") "],'operators':[",
	NORM("x", "g", "o", "rows") LINEAR("rows", "wqkv", "qkv")
	"{'type':'Split','inputs':['qkv'],'name':'parts','outputs':[{'name':'q.rows'},{'name':'k.rows'},"
	"{'name':'v.rows'}],'attrs':{'axis':1,'output_num':3}},"
	HEADS("q", "4", "8") HEADS("k", "4", "8") HEADS("v", "4", "8")
	NODE("BatchMatMul", "'q','k'", "scores", "'transpose_b':true")
	NODE("BatchMatMul", "'scores','v'", "context", "")
	TURN("context", "context.split") RESHAPE("context.split", "context.rows", "128,32")
	LINEAR("context.rows", "wo", "a")
	"{'type':'ReduceMean','inputs':['a'],'name':'loss','outputs':[{'name':'loss'}]}],"
	"'outputs':['loss']}", NULL};

START_TEST(fused_heads_are_gathered_once)
{
	static const char *const cuts[][2] = {{"rows", "[2,1][1][1]"}, {"qkv", "[2,1][4,1]"},
		{"parts", "[2,1]"}, {"q.split", "[2,4]"}, {"v", "[2,1,4,1]"},
		{"scores", "[2,4,1,1][2,4,1,1]"}, {"a", "[2,4][1,4]"}, {NULL, NULL}};
	struct layer l;
	struct traffic t;

	open_layer(&l, fused, 8, 1, "tp=4", AP_EXECUTOR_MINDSPORE);
	ck_assert_msg(l.counts != NULL, "%s", l.why);
	expect_cuts(&l, cuts);
	t = traffic_of(&l, "qkv", "a");
	ck_assert_int_eq(t.gathers, 1); /* the pieces are cut again where they are */
	ck_assert_int_eq(t.allreduce[0], 1);
	fixture_close(&l.f);
}
END_TEST

/* ---- what does not divide ------------------------------------------------------------------------ */

static const struct {
	const char *const *text;
	int64_t ndev, micro;
	const char *hybrid, *says; /* NULL: taken */
} cases[] = {
	{gpt, 8, 1, "tp=8", "operator \"context.rows\": input 0 (\"context.split\"), dimension 2 of length "
		"4: tp=8 parts; 1, 2, 4 are allowed"},
	{odd_heads, 8, 1, "tp=4", "operator \"context.rows\": input 0 (\"context.split\"), dimension 2 of "
		"length 2: tp=4 parts; 1, 2 are allowed"},
	{odd_heads, 8, 1, "tp=2", NULL},
	{gpt, 32, 1, "tp=2", "dp=16 does not divide the 8 samples of a micro-batch"},
	{gpt, 8, 4, "tp=2", "dp=4 does not divide the 2 samples of a micro-batch"},
	{odd_words, 8, 1, "tp=4", NULL},
	{odd_words, 8, 1, "tp=4,vocab_emb_dp=1", NULL},
	{odd_words, 8, 1, "tp=4,vocab_emb_dp=0", "operator \"word\": the table of words has 66 entries, "
		"which tp=4 does not divide; 1, 2 are allowed, or vocab_emb_dp=1"},
	{gpt, 8, 1, "ep=2", "no product has a parameter for each of several experts"},
	{gpt, 8, 8, "tp=4,cp=2", NULL}, /* one sample on a rank: tokens may be cut */
	{gpt, 8, 4, "tp=4,cp=2", "operator \"rows\" cannot be cut by cp: result 0, dimension 0 of length "
		"128 = 8 x 16"},
	{gpt, 16, 8, "tp=1,cp=16", NULL},
	{gpt, 32, 8, "tp=1,cp=32", "operator \"word\": input 1 (\"ids\"), dimension 1 of length 16: cp=32 "
		"parts; 1, 2, 4, 8, 16 are allowed"},
};

START_LOOP_TEST(hybrids_are_taken_or_refused_with_a_reason, AP_COUNT(cases))
{
	struct layer l;

	open_layer(&l, cases[_i].text, cases[_i].ndev, cases[_i].micro, cases[_i].hybrid,
		AP_EXECUTOR_MINDSPORE);
	if (cases[_i].says)
		ck_contains(l.why, cases[_i].says);
	ck_assert_msg(!cases[_i].says == !l.why, "%s", l.why ? l.why : "taken");
	fixture_close(&l.f);
}
END_TEST

/* A table that does not divide stays whole, and so does the product that shares it. */
START_TEST(words_that_do_not_divide_stay_whole)
{
	static const char *const cuts[][2] = {{"word", "[1,1][2,1]"}, {"logits", "[2,1][1,1]"},
		{"chosen", "[2,1][2,1]"}, {"u", "[2,1][4,1]"}, {NULL, NULL}};
	struct layer l;

	open_layer(&l, odd_words, 8, 1, "tp=4", AP_EXECUTOR_MINDSPORE);
	ck_assert_msg(l.counts != NULL, "%s", l.why);
	expect_cuts(&l, cuts);
	fixture_close(&l.f);
}
END_TEST

START_TEST(sequences_are_cut_and_keys_gathered)
{
	static const char *const cuts[][2] = {{"word", "[1,1][1,4]"}, {"x.norm", "[1,4,1][1][1]"},
		{"rows", "[1,4,1]"}, {"u", "[4,1][1,1]"}, {"scores", "[1,1,4,1][1,1,1,1]"},
		{"probs", "[1,1,4,1]"}, {"context", "[1,1,4,1][1,1,1,1]"}, {NULL, NULL}};
	struct layer l;
	struct traffic t;

	open_layer(&l, gpt, 4, 8, "cp=4", AP_EXECUTOR_MINDSPORE);
	ck_assert_msg(l.counts != NULL, "%s", l.why);
	expect_cuts(&l, cuts);
	t = traffic_of(&l, "scores", "context");
	ck_assert_int_eq(t.gathers, 2); /* keys and values */
	fixture_close(&l.f);
}
END_TEST

START_TEST(data_parallelism_is_a_hybrid)
{
	struct layer l;
	struct ap_plan plan;
	const int32_t *const *counts;
	const char *why;

	open_layer(&l, gpt, 8, 1, "dp=8", AP_EXECUTOR_MINDSPORE);
	counts = ap_baseline_data_parallel(&l.f.ctx, l.f.graph, 8, &l.f.step, &why);
	ck_assert(counts && l.counts);
	ap_plan_make(&l.f.ctx, l.f.graph, l.f.machine, &l.f.step, counts, INT64_C(1) << 50, &plan);
	ck_assert(ap_plan_objective_s(&plan) == ap_plan_objective_s(&l.plan));
	ck_assert(plan.prediction.step_time_s == l.plan.prediction.step_time_s);
	fixture_close(&l.f);
}
END_TEST

/* In a pipeline: the table is used at both ends, sent once, and cut the same everywhere. */
START_TEST(stages_share_a_cut_table)
{
	struct layer l;
	const int32_t *const *counts;
	const struct ap_graph *staged;
	struct ap_spot spot[64];
	uint32_t links = 0;

	open_layer(&l, gpt, 8, 1, "dp=2,tp=4", AP_EXECUTOR_MINDSPORE);
	ck_assert_uint_le(l.f.graph->nnode, 64);
	for (ap_id i = 0; i < l.f.graph->nnode; i++) {
		int32_t part = i > fixture_node(&l.f, "middle");

		spot[i] = (struct ap_spot){.part = part, .stage = part, .segment = 0};
	}
	ap_graph_staged(&l.f.ctx, l.f.graph, spot, &staged);
	counts = ap_hybrid_counts(&l.f.ctx, staged, 8, &l.f.step, &l.h, &l.why);
	ck_assert_msg(counts != NULL, "%s", l.why);
	for (ap_id i = 0; i < staged->nnode; i++) {
		const struct ap_node *n = &staged->node[i];

		if (!n->once)
			continue;
		links++;
		ck_assert_int_eq(counts[i][n->bound.in[0].dim[0].factor[0]], 4);
	}
	ck_assert_uint_eq(links, 2);
	fixture_close(&l.f);
}
END_TEST
