/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of formats 4.2, row by row: which dimensions are cut together, which are not cut, what is combined
 * afterwards, in which order the devices are arranged. Every type that a bundled model uses is here, and others.
 */
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/cost.h"
#include "fixture.h"
#include "harness.h"
#include "cost/comms.h"
#include "cost/task.h"
#include "hw/coll.h"
#include "shard/layout.h"
#include "shard/space.h"

/*
 * A letter for each dimension, '.' where it is not cut; operands, '>', results, parted by commas. Dimensions of one
 * letter are cut together, on two devices one letter alone. sums: letters that are combined over, by the collective
 * that stands behind, for instance "K:AllReduce". arranged: letters as the dev_matrix has them, outermost first;
 * NULL: not all of them can be cut together.
 */
static const struct fact {
	const char *type, *inputs, *more, *dims, *sums, *arranged;
} facts[] = {
#define F "float32"
#define Y "'outputs':[{'name':'y'}]"
#define A(attrs) "'attrs':{" attrs "}," Y
	{"MatMul", F "[8,8] " F "[8,8]", Y, "I K,K J>I J", "K:AllReduce", "IKJ"},
	{"MatMul", F "[8,8] " F "[8,8]", A("'transpose_b':true"), "I K,J K>I J", "K:AllReduce", "IKJ"},
	{"MatMul", F "[8,8] " F "[8,8]", A("'transpose_a':true"), "K I,K J>I J", "K:AllReduce", "IKJ"},
	{"MatMul", F "[8,8] " F "[8,8]", A("'transpose_a':true,'transpose_b':true"), "K I,J K>I J", "K:AllReduce",
		"IKJ"},
	{"BatchMatMul", F "[8,8,8,8] " F "[8,8,8,8]", Y, "A B I K,A B K J>A B I J", "K:AllReduce", "ABIKJ"},
	{"BatchMatMul", F "[8,8,8,8] " F "[8,8,8,8]", A("'transpose_b':true"), "A B I K,A B J K>A B I J",
		"K:AllReduce", "ABIKJ"},
	{"BatchMatMul", F "[8,8,8] " F "[8,8]", Y, "B I K,K J>B I J", "K:AllReduce", "BIKJ"},
	{"BatchMatMul", F "[8,8,8] " F "[1,8,8]", Y, "B I K,. K J>B I J", "K:AllReduce", "BIKJ"},
	{"BiasAdd", F "[8,8] " F "[8]", Y, "N C,C>N C", "", "NC"},
	{"BiasAdd", F "[8,8,8,8] " F "[8]", Y, "N C H W,C>N C H W", "", "NCHW"},
	{"Conv2D", F "[8,8,8,8] " F "[8,8,3,3]", A("'kernel_size':3,'out_channel':8,'pad_mode':'same'"),
		"N I H W,O I . .>N O H W", "I:AllReduce H:NeighborExchange W:NeighborExchange", "NIHWO"},
	{"Conv2D", F "[8,8,8,8] " F "[8,8,2,2]", A("'kernel_size':2,'out_channel':8,'stride':2"),
		"N I H W,O I . .>N O H W", "I:AllReduce", "NIHWO"},
	{"Conv2D", F "[8,8,8,8] " F "[8,8,3,3]", A("'kernel_size':3,'out_channel':8"), "N I . .,O I . .>N O . .",
		"I:AllReduce", "NIO"}, /* valid: windows reach over */
	{"MaxPool", F "[8,8,8,8]", A("'kernel_size':2,'strides':2"), "N C H W>N C H W", "", "NCHW"},
	{"MaxPool", F "[8,8,8,8]", A("'kernel_size':3,'strides':2,'pad_mode':'same'"), "N C . .>N C . .", "", "NC"},
	{"AvgPool", F "[8,8,8,8]", A("'kernel_size':2,'strides':2"), "N C H W>N C H W", "", "NCHW"},
	{"BatchNorm", F "[8,8,8,8] " F "[8] " F "[8] " F "[8] " F "[8]", A("'is_training':true"),
		"N C H W,C,C,C,C>N C H W", "N:AllReduce H:AllReduce W:AllReduce C:", "NCHW"},
	{"BatchNorm", F "[8,8,8,8] " F "[8] " F "[8] " F "[8] " F "[8]", Y, "N C H W,C,C,C,C>N C H W", "", "NCHW"},
	{"LayerNorm", F "[8,8,8] " F "[8] " F "[8]", A("'begin_norm_axis':-1,'begin_params_axis':-1"),
		"A B .,.,.>A B .", "", "AB"},
	{"LayerNorm", F "[8,8,8] " F "[8,8] " F "[8,8]", A("'begin_norm_axis':1,'begin_params_axis':1"),
		"A . .,. .,. .>A . .", "", "A"},
	{"RmsNorm", F "[8,8,8] " F "[8]", Y, "A B .,.>A B .", "", "AB"},
	{"L2Normalize", F "[8,8]", A("'axis':[1]"), "A .>A .", "", "A"},
	{"Softmax", F "[8,8,8]", Y, "A B .>A B .", "", "AB"},
	{"Softmax", F "[8,8,8]", A("'axis':1"), "A . C>A . C", "", "AC"},
	{"LogSoftmax", F "[8,8]", Y, "A .>A .", "", "A"},
	{"Abs", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"Exp", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"Log", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"Neg", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"ReLU", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"GeLU", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"SiLU", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"Tanh", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"Cast", F "[8,8]", A("'dst_type':'float16'"), "A B>A B", "", "AB"},
	{"Add", F "[8,8] " F "[8,8]", Y, "A B,A B>A B", "", "AB"},
	{"Add", F "[8,8] " F "[8]", Y, "A B,B>A B", "", "AB"},
	{"Mul", F "[8,1,8] " F "[8,8,1]", Y, "A . C,A B .>A B C", "", "ABC"},
	{"Sub", F "[8,1] " F "[8]", Y, "A .,B>A B", "", "AB"},
	{"Div", F "[8,8] " F "[1]", Y, "A B,.>A B", "", "AB"},
	{"Less", F "[8,8] " F "[8,8]", Y, "A B,A B>A B", "", "AB"},
	{"Select", "bool[8,8] " F "[8,8] " F "[8,8]", Y, "A B,A B,A B>A B", "", "AB"},
	{"AddN", F "[8,8] " F "[8,8] " F "[8,8]", Y, "A B,A B,A B>A B", "", "AB"},
	{"Concat", F "[8,8] " F "[8,8]", A("'axis':1"), "A .,A .>A .", "", "A"},
	{"Stack", F "[8,8] " F "[8,8]", A("'axis':0"), "A B,A B>. A B", "", "AB"},
	{"ReduceSum", F "[8,8,8]", A("'axis':[1]"), "A B C>A C", "B:AllReduce", "ABC"},
	{"ReduceSum", F "[8,8,8]", A("'axis':[1],'keep_dims':true"), "A B C>A . C", "B:AllReduce", "ABC"},
	{"ReduceMax", F "[8,8]", A("'axis':[0]"), "A B>B", "A:AllReduce", "AB"},
	{"ReduceMean", F "[8,8]", Y, "A B>", "A:AllReduce B:AllReduce", "AB"},
	{"CumSum", F "[8,8]", A("'axis':1"), "A .>A .", "", "A"},
	{"TopK", F "[8,8]", "'attrs':{'k':2},'outputs':[{'name':'y'},{'name':'z'}]", "A .>A .,A .", "", "A"},
	{"Transpose", F "[8,8,8]", A("'perm':[2,0,1]"), "A B C>C A B", "", "ABC"},
	{"ExpandDims", F "[8,8]", A("'axis':1"), "A B>A . B", "", "AB"},
	{"Squeeze", F "[8,1,8]", A("'axis':1"), "A . B>A B", "", "AB"},
	{"Split", F "[8,8]", "'attrs':{'axis':1,'output_num':2},'outputs':[{'name':'y'},{'name':'z'}]",
		"A .>A .,A .", "", "A"},
	{"StridedSlice", F "[8,8,8]", A("'begin':[0,0,2],'end':[8,8,4],'strides':[1,1,1]"), "A B .>A B .", "", "AB"},
	{"StridedSlice", F "[8,8,8]", A("'begin':[0,0,0],'end':[8,8,8],'strides':[1,2,1]"), "A . C>A . C", "", "AC"},
	{"StridedSlice", F "[8,8,8]", A("'begin':[0,3,0],'end':[8,4,8],'strides':[1,1,1],'shrink_axis_mask':2"),
		"A . C>A C", "", "AC"},
	{"Tile", F "[8,8]", A("'multiples':[1,4]"), "A .>A B", "", "AB"},
	{"Gather", F "[8,8] int32[8,8]", A("'axis':0"), "V D,A B>A B D", "V:ReduceScatter", NULL},
	{"Gather", F "[8,8,8] int32[8]", A("'axis':0"), ". D E,A>A D E", "", "ADE"}, /* more than two dimensions */
	{"Gather", F "[8,8] int32[8]", A("'axis':1"), "D V,A>D A", "V:ReduceScatter", NULL},
	{"Gather", F "[8,8,8] int32[8,4]", A("'axis':1,'batch_dims':1"), "B . E,B A>B A E", "", NULL},
	{"EmbeddingLookup", F "[8,8] int32[8,8]", Y, "V D,A B>A B D", "V:ReduceScatter", NULL},
	{"IndexSelect", F "[8,8] int32[8]", Y, "V D,A>A D", "V:ReduceScatter", NULL},
	{"GatherNd", F "[8,8] int32[8,8,1]", Y, ". .,A B .>A B .", "", "AB"},
	{"OneHot", "int32[8,8] " F "[] " F "[]", A("'depth':8"), "A .,,>A . .", "", "A"},
	{"OneHot", "int32[8] " F "[] " F "[]", A("'depth':8"), "A,,>A V", "", "AV"},
	{"SoftmaxCrossEntropyWithLogits", F "[8,8] " F "[8,8]", "'outputs':[{'name':'y'},{'name':'z'}]",
		"N .,N .>N,N .", "", "N"},
	{"SigmoidCrossEntropyWithLogits", F "[8,8] " F "[8,8]", Y, "A B,A B>A B", "", "AB"},
	{"FlashAttentionScore", F "[8,8,8] " F "[8,8,8] " F "[8,8,8]", A("'head_num':4"), "B S N,B . N,B . N>B S N", "",
		"BSN"},
	{"FlashAttentionScore", F "[8,8,8] " F "[8,8,8] " F "[8,8,8]", A("'head_num':4,'input_layout':'SBH'"),
		"S B N,. B N,. B N>S B N", "", "SBN"},
	{"FlashAttentionScore", F "[8,8,8,4] " F "[8,8,8,4] " F "[8,8,8,4]",
		A("'head_num':8,'input_layout':'BNSD'"), "B N S .,B N . .,B N . .>B N S .", "", "BNS"},
	{"UnsortedSegmentSum", F "[8,8] int32[8]", A("'num_segments':8"), "A R,A>. R", "A:AllReduce", "AR"},
	{"Dropout", F "[8,8]", Y, "A B>A B", "", "AB"},
	{"Flatten", F "[8,8,8]", Y, "A . .>A .", "", "A"}, /* on all devices, or not at all: test_imposed */
};

/* "float32[8,6] int32[8]" */
static void open_fact(struct fixture *f, const struct fact *fact, int64_t ndev)
{
	struct ap_str in, names;
	const char *p = fact->inputs;

	fixture_open(f, ndev, ndev < 8 ? ndev : 8, "ascend910b");
	ap_str_init(&in, f->ctx.arena);
	ap_str_init(&names, f->ctx.arena);
	for (int i = 0; *p; i++) {
		size_t dtype = strcspn(p, "["), shape = strcspn(p + dtype, " ");

		ap_str_addf(&in, "%s{'name':'i%d','dtype':'%.*s','shape':%.*s}", i ? "," : "", i, (int)dtype, p,
			(int)shape, p + dtype);
		ap_str_addf(&names, "%s'i%d'", i ? "," : "", i);
		p += dtype + shape;
		p += *p == ' ';
	}
	fixture_graph(f, ap_arena_printf(f->ctx.arena, "{'schema':'autopar-graph/1','name':'one','inputs':[%s],"
		"'operators':[{'name':'one','type':'%s','inputs':[%s],%s}],'outputs':['y']}", in.s, fact->type,
		names.s, fact->more));
	fixture_impose(f);
}

/* The dims of a fact where letter is cut in two and all else whole: "2 1,1 2>2 1"; with the sums dealt also
 * dimension 0 of the first result. */
static const char *expected(struct fixture *f, const struct fact *fact, char letter, bool dealt)
{
	bool results = false;
	struct ap_str s;

	ap_str_init(&s, f->ctx.arena);
	for (const char *c = fact->dims; *c; c++) {
		bool first = results && c[-1] == '>';

		if (*c == '>' || *c == ',' || *c == ' ')
			ap_str_addc(&s, *c);
		else
			ap_str_addc(&s, *c == letter || (first && dealt) ? '2' : '1');
		results |= *c == '>';
	}
	return s.s;
}

static void add_cuts(struct ap_str *s, const struct ap_placement *p, uint16_t n, const struct ap_operand *t)
{
	int32_t cut[AP_MAX_RANK];

	for (uint16_t i = 0; i < n; i++) {
		ap_str_add(s, i ? "," : "");
		ap_strategy_vector(p, &t[i], cut);
		for (int d = 0; d < t[i].rank; d++)
			ap_str_addf(s, "%s%d", d ? " " : "", cut[d]);
	}
}

/* As many results as the fact names. */
static const char *cuts(struct fixture *f, const struct fact *fact, const struct ap_placement *p)
{
	uint16_t nout = 1;
	struct ap_str s;

	for (const char *c = strchr(fact->dims, '>'); *c; c++)
		nout = (uint16_t)(nout + (*c == ','));
	ap_str_init(&s, f->ctx.arena);
	add_cuts(&s, p, p->bound->nin, p->bound->in);
	ap_str_addc(&s, '>');
	add_cuts(&s, p, nout, p->bound->out);
	return s.s;
}

static struct ap_placement placed(struct fixture *f, const struct ap_space *space, uint32_t c, int64_t ndev)
{
	int32_t count[AP_MAX_FACTOR] = {0};
	struct ap_placement p;

	memcpy(count, space->count + (size_t)c * space->nfactor, space->nfactor * sizeof *count);
	ap_placement_make(&f->graph->node[0].bound, count, ndev, &p);
	return p;
}

/* Letters of the fact, each once. */
static const char *letters(struct fixture *f, const struct fact *fact)
{
	struct ap_str s;

	ap_str_init(&s, f->ctx.arena);
	for (const char *c = fact->dims; *c; c++)
		if (*c >= 'A' && *c <= 'Z' && !strchr(s.s, *c))
			ap_str_addc(&s, *c);
	return s.s;
}

static void hear(void *user, const struct ap_comm *c)
{
	struct ap_str *s = user;

	if (c->phase == AP_PHASE_FORWARD && !strstr(s->s, ap_coll_name(c->kind)))
		ap_str_add(s, ap_coll_name(c->kind));
}

/* What runs forward: the collective's name, "" none. */
static const char *heard(struct fixture *f, const struct ap_placement *p)
{
	const struct ap_task *task;
	struct ap_str s;

	ap_str_init(&s, f->ctx.arena);
	ap_tasks_make(&f->ctx, f->graph, &f->step, &task);
	ap_comms_derive(&task[0], p, &f->step, hear, &s);
	return s.s;
}

static const char *sum_of(struct fixture *f, const struct fact *fact, char letter)
{
	for (const char *c = fact->sums; *c; c += strcspn(c, " "), c += *c == ' ')
		if (*c == letter)
			return ap_arena_printf(f->ctx.arena, "%.*s", (int)strcspn(c + 2, " "), c + 2);
	return "";
}

/* On two devices each letter alone may be cut, all its dimensions together, and nothing else. */
START_LOOP_TEST(dimensions_and_sums, AP_COUNT(facts))
{
	const struct fact *fact = &facts[_i];
	struct ap_space space;
	struct fixture f;
	const char *all;

	open_fact(&f, fact, 2);
	all = letters(&f, fact);
	ap_space_make(&f.ctx, &f.graph->node[0].bound, 2, &f.step, &space);
	for (const char *l = all; *l; l++) {
		const char *sum = sum_of(&f, fact, *l);
		const char *want = expected(&f, fact, *l, strcmp(sum, "ReduceScatter") == 0);
		bool found = false;

		for (uint32_t c = 0; c < space.n; c++) {
			struct ap_placement p = placed(&f, &space, c, 2);

			if (p.repeat > 1 || strcmp(cuts(&f, fact, &p), want) != 0)
				continue;
			found = true;
			ck_assert_msg(strcmp(heard(&f, &p), sum) == 0, "%s, %c: %s instead of %s", fact->type, *l,
				heard(&f, &p), sum);
		}
		ck_assert_msg(found, "%s, %c: %s is no candidate", fact->type, *l, want);
	}
	if (strcmp(fact->type, "Flatten") == 0)
		ck_assert_uint_eq(space.n, 1);
	else
		ck_assert_msg(space.n == strlen(all) + 1, "%s: %u candidates", fact->type, space.n);
	fixture_close(&f);
}
END_TEST

/* All letters cut in two: the first one's parts lie furthest apart. */
START_LOOP_TEST(arrangement, AP_COUNT(facts))
{
	const struct fact *fact = &facts[_i];
	const struct ap_bound *b;
	struct ap_dev_matrix dev;
	struct ap_placement p;
	struct ap_space space;
	struct fixture f;
	int64_t ndev;
	bool found = false;

	if (!fact->arranged)
		return;
	ndev = (int64_t)1 << strlen(fact->arranged);
	open_fact(&f, fact, ndev);
	b = &f.graph->node[0].bound;
	ap_space_make(&f.ctx, b, ndev, &f.step, &space);
	for (uint32_t c = 0; c < space.n && !found; c++) {
		int32_t most = 1;

		p = placed(&f, &space, c, ndev);
		for (int k = 0; k < b->nfactor; k++)
			most = p.count[k] > most ? p.count[k] : most;
		found = p.repeat == 1 && (most == 2 || ndev == 2);
	}
	ck_assert_msg(found, "%s", fact->type);
	ap_dev_matrix_standard(&p, &dev);
	ck_assert_int_eq(dev.n, (int)strlen(fact->arranged));
	for (uint16_t i = 0; i < b->nin + b->nout; i++) {
		const struct ap_operand *t = i < b->nin ? &b->in[i] : &b->out[i - b->nin];
		const char *at = fact->dims;
		int32_t map[AP_MAX_RANK];

		for (uint16_t k = 0; k < i && *at; k++)
			at += strcspn(at, ",>") + 1;
		ap_tensor_map(&p, t, &dev, map);
		for (int d = 0; d < t->rank && *at; d++, at += 2) {
			const char *place = strchr(fact->arranged, *at);

			if (*at == '.' || !place)
				ck_assert_int_eq(map[d], -1);
			else
				ck_assert_msg(map[d] == (int)strlen(place) - 1, "%s: %c has axis %d", fact->type, *at,
					map[d]);
			if (d + 1 == t->rank)
				break;
		}
		if (i + 1 >= b->nin + 1)
			break; /* the first result; others follow it */
	}
	fixture_close(&f);
}
END_TEST
