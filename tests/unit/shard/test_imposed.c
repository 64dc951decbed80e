/* SPDX-License-Identifier: Apache-2.0 */
/* What MindSpore decides of operators that it has no class for, or the one for batch parallel operators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/cost.h"
#include "fixture.h"
#include "harness.h"
#include "cost/comms.h"
#include "cost/task.h"
#include "route/propagation.h"
#include "route/semi_auto.h"
#include "rule/op.h"
#include "shard/imposed.h"
#include "shard/layout.h"
#include "shard/legal.h"
#include "shard/space.h"

/* Formats 4.3: all types that MindSpore 2.7 registers a class for. */
static const char registered[] =
	" ACos AShardIdentity Abs Acosh Activation Add AddExt AddN AddcmulExt AntiQuant "
	"ApplyRotaryPosEmb ApproximateEqual Arange ArgMaxWithValue ArgMinWithValue Argmax Argmin Asin "
	"Asinh Assign AssignAdd AssignSub Atan Atan2 Atanh AvgPool AvgPool3D BatchMatMul BatchMatMulExt "
	"BatchNorm BatchParallel BesselI0 BesselI0e BesselI1 BesselI1e BesselJ0 BesselJ1 Betainc BiasAdd "
	"BitwiseAnd BitwiseOr BitwiseXor BoundingBoxEncode BroadcastTo Cast Cdist Ceil CheckValid Cholesky "
	"ClampScalar Concat Conv2D Conv2DBackpropInput Conv2DTranspose Conv3D Convolution Cos Cosh "
	"CropAndResize CumProd CumSum Cummax Cummin CumsumExt Custom DCT DCTN DSDMatmul Dequant Div DivMod "
	"DivNoNan Dropout DropoutDoMask DropoutExt DynamicQuantExt Elu EluExt Embedding EmbeddingLookup "
	"Equal Erf Erfc Erfinv Exp ExpandDims Expm1 FFN FFNExt FFT FFT2 FFTN FFTShift FakeQuantPerChannel "
	"FakeQuantPerLayer FastGeLU FillV2 FlashAttentionScore Floor FloorDiv FloorMod FmodScalar "
	"FmodTensor FusedInferAttentionScore Gamma Gather GatherD GatherNd Gcd GeLU GenerateEodMaskV2 "
	"GetNext Greater GreaterEqual GridSampler2D GroupNorm GroupedMatmul HFFT HFFT2 HFFTN HShrink "
	"HSigmoid Hypot IDCT IDCTN IFFT IFFT2 IFFTN IFFTShift IHFFT IHFFT2 IHFFTN IOU IRFFT IRFFT2 IRFFTN "
	"Identity Igamma Igammac IncreFlashAttention Index IndexSelect InplaceAdd InplaceCopy InplaceSub "
	"InplaceUpdate Inv Invert IsClose IsFinite KLDivLoss KVCacheMgr KVCacheScatterUpdate L2Loss "
	"L2Normalize LayerNorm LayerNormV3 LeakyReLUExt LeftShift Lerp Less LessEqual Lgamma LinSpace "
	"LinSpaceExt Log Log1p LogSoftmax LogicalAnd LogicalNot LogicalOr LstsqV2 MaskedFill MatMul "
	"MatMulExt MatmulDDS Max MaxDim MaxPool MaxPool3D Maximum MeanExt MinMaxUpdatePerChannel "
	"MinMaxUpdatePerLayer Minimum Mish Mod MoeComputeExpertTokens MoeFinalizeRouting "
	"MoeGatingTopKSoftmax MoeInitRouting Mul MulNoNan Muls NanToNum Neg NextAfter NotEqual OneHot "
	"OneHotExt OnesLike Outer PReLU PadV3 PagedAttention PagedAttentionMask Polar PopulationCount Pow "
	"PromptFlashAttention Quant QuantBatchMatmul QuantLinearSparse QuantV2 RFFT RFFT2 RFFTN ROIAlign "
	"RandomChoiceWithMask Range ReLU ReLU6 RealDiv Reciprocal ReduceAll ReduceAny ReduceMax ReduceMean "
	"ReduceMin ReduceProd ReduceSum RemainderScalarTensor RemainderTensorScalar RemainderTensorTensor "
	"RepeatElements RepeatInterleave RepeatInterleaveInt RepeatInterleaveTensor Reshape "
	"ReshapeAndCache ResizeBilinearV2 ResizeNearestNeighbor ReverseV2 RightShift Rint RmsNorm "
	"RotaryPositionEmbedding Round Rsqrt ScatterAdd ScatterDiv ScatterMax ScatterMin ScatterMul "
	"ScatterNdAdd ScatterNdSub ScatterNdUpdate ScatterSub ScatterUpdate SeLU Select SelfDefineShard "
	"SiLU Sigmoid SigmoidCrossEntropyWithLogits Sign Sin Sinh Slice SliceExt SoftShrink Softmax "
	"SoftmaxCrossEntropyWithLogits Softplus SoftplusExt Softsign SolveTriangular Sort SortExt "
	"SparseGatherV2 SparseSoftmaxCrossEntropyWithLogits Split SplitTensor SplitV SplitWithSize Sqrt "
	"Square SquareSumAll SquaredDifference Squeeze Stack StackExt StandAlone StridedSlice Sub SubExt "
	"SumExt Swiglu Tan Tanh TensorDot TensorScatterAdd TensorScatterDiv TensorScatterMax "
	"TensorScatterMin TensorScatterMul TensorScatterSub TensorScatterUpdate Tile TopK TopKRouter "
	"TopPRouter TopkExt TraceV2 Transpose Tril Triu Trunc TruncateDiv TruncateMod "
	"UniformCandidateSampler Unique UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd "
	"UnsortedSegmentSum VirtualDataset VirtualOutput WKV WeightQuantBatchMatmul Xdivy Xlogy ZerosLike "
	"Zeta ";

/* BatchParallel has a class, which is the one that the others are taken for; Send and Receive are put in
 * for a plan and have no strategy. */
START_TEST(types_without_a_class)
{
	const struct ap_op_row *row;
	char name[64];

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		snprintf(name, sizeof name, " %s ", row->name);
		if (row->unit == AP_OP_LINK || strcmp(row->name, "BatchParallel") == 0)
			continue;
		ck_assert_msg(ap_op_is_fallback(row) == !strstr(registered, name), "%s", row->name);
	}
}
END_TEST

#define F "'dtype':'float32','shape':"
#define GRAPH(inputs, type, of, more) \
	"{'schema':'autopar-graph/1','name':'one','inputs':[" inputs "],'operators':[{'name':'one'," \
	"'type':'" type "','inputs':[" of "]," more "}],'outputs':['y']}"
#define ONE(type, shape, more) GRAPH("{'name':'x'," F shape ",'batch_dim':0}", type, "'x'", more)
#define Y "'outputs':[{'name':'y'}]"
#define POOLED "'attrs':{'kernel_size':2,'strides':2}," Y
#define MASKED "'outputs':[{'name':'y'},{'name':'m','dtype':'uint8','shape':[16,4]}]"
#define SAID(shape) "'outputs':[{'name':'y'," F shape "}]"
#define CONVOLUTION GRAPH("{'name':'x'," F "[16,8,6,6],'batch_dim':0},{'name':'w'," F "[32,8,3,3]}", \
	"Conv2DExt", "'x','w'", "'attrs':{'kernel_size':3,'pad':1}," Y)
#define LOSS GRAPH("{'name':'x'," F "[16,8],'batch_dim':0},{'name':'n','dtype':'int32','shape':[16]," \
	"'batch_dim':0}", "SparseSoftmaxCrossEntropyWithLogits", "'x','n'", Y)
#define LOSS_GRADIENT GRAPH("{'name':'x'," F "[16,8],'batch_dim':0},{'name':'n','dtype':'int32'," \
	"'shape':[16],'batch_dim':0}", "SparseSoftmaxCrossEntropyWithLogits", "'x','n'", \
	"'attrs':{'is_grad':true}," Y)
#define SYSTEMS GRAPH("{'name':'x'," F "[16,4,4],'batch_dim':0},{'name':'z'," F "[16,4,2],'batch_dim':0}", \
	"SolveTriangular", "'x','z'", SAID("[16,4,2]"))
#define TWO(second, result) GRAPH("{'name':'x'," F "[16,8]},{'name':'z'," F second "}", \
	"BatchParallel", "'x','z'", SAID(result))

/* parts: of dimension 0 of operand 0, all that there are, the first the one that is written down. */
static const struct {
	const char *graph;
	int ndev;
	int64_t micro_batches;
	const char *parts, *free; /* with the executor mindspore, with generic */
} cases[] = {
	{ONE("Flatten", "[32,1,28,28]", Y), 8, 1, "8", NULL},
	{ONE("Flatten", "[32,1,28,28]", Y), 2, 1, "2", NULL},
	{ONE("Flatten", "[32,1,28,28]", Y), 1, 1, "1", "1"},
	{ONE("Flatten", "[32,1,28,28]", Y), 64, 1, "1", NULL},
	{ONE("Flatten", "[32,1,28,28]", Y), 8, 4, "8", NULL},
	{ONE("Flatten", "[32,1,28,28]", Y), 8, 8, "1", NULL}, /* of a micro-batch of 4 */
	{ONE("Flatten", "[12,6]", Y), 8, 1, "1", NULL},
	{ONE("Flatten", "[12,6]", Y), 6, 1, "6", NULL},
	{ONE("Flatten", "[8]", Y), 8, 1, "8", "8 4 2 1"},
	{ONE("MaxPoolV2", "[16,4,6,6]", POOLED), 8, 1, "8", NULL},
	{ONE("MaxPoolV2", "[16,4,6,6]", POOLED), 32, 1, "1", NULL},
	{ONE("ReLUV2", "[16,4]", MASKED), 4, 1, "4", NULL},
	{CONVOLUTION, 8, 1, "8", NULL},
	{CONVOLUTION, 32, 1, "1", NULL},
	{ONE("DropoutGenMask", "[4]", "'outputs':[{'name':'y','dtype':'uint8','shape':[64]}]"), 4, 1, "1", "1"},
	{ONE("BatchParallel", "[16,8]", SAID("[8,3]")), 8, 1, "8", "1"} /* the batch of two lengths */,
	{ONE("BatchParallel", "[16,8]", SAID("[8,3]")), 16, 1, "1", "1"},
	{ONE("BatchParallel", "[16,8]", SAID("[]")), 8, 1, "1", "1"},
	{TWO("[16,8]", "[16]"), 8, 1, "8", "8 1"},
	{TWO("[4,8]", "[16]"), 8, 1, "1", "1"},
	{ONE("StandAlone", "[16,8]", SAID("[16]")), 8, 1, "1", "1"},
	/* the class without the fallback: what has samples in its result is taken for cut */
	{SYSTEMS, 8, 1, "8", "8 1"},
	{LOSS_GRADIENT, 8, 1, "1", "1"} /* a mean of all samples */,
	{LOSS, 8, 1, "8 1", "8 4 2 1"},
	{LOSS, 12, 1, "1", NULL},
};

/* Parts of dimension 0 of operand 0, of all candidates. */
static const char *parts(struct fixture *f)
{
	const struct ap_bound *b = &f->graph->node[0].bound;
	struct ap_space space;
	struct ap_str s;

	ap_str_init(&s, f->ctx.arena);
	ap_space_make(&f->ctx, b, f->machine->ndev, &f->step, &space);
	for (uint32_t c = 0; c < space.n; c++) {
		int32_t cut[AP_MAX_RANK], count[AP_MAX_FACTOR] = {0};
		struct ap_placement p;

		memcpy(count, space.count + (size_t)c * space.nfactor, space.nfactor * sizeof *count);
		ck_assert(ap_space_legal(&f->ctx, b, count, f->machine->ndev, &f->step, NULL));
		ap_placement_make(b, count, f->machine->ndev, &p);
		ap_strategy_vector(&p, &b->in[0], cut);
		ap_str_addf(&s, "%s%d", c ? " " : "", cut[0]);
	}
	return s.s;
}

/* Each count of each factor on its own is legal where it is enumerated, and nowhere else. */
static void others_are_refused(struct fixture *f)
{
	const struct ap_bound *b = &f->graph->node[0].bound;
	int64_t ndev = f->machine->ndev;
	struct ap_space space;

	ap_space_make(&f->ctx, b, ndev, &f->step, &space);
	for (int i = 0; i < b->nfactor; i++)
		for (int32_t n = 1; n <= ndev; n++) {
			int32_t count[AP_MAX_FACTOR];
			bool among = false;
			const char *why = NULL;

			if (ndev % n)
				continue;
			for (int k = 0; k < AP_MAX_FACTOR; k++)
				count[k] = k == i ? n : 1;
			for (uint32_t c = 0; c < space.n; c++)
				among |= memcmp(count, space.count + (size_t)c * space.nfactor,
					space.nfactor * sizeof *count) == 0;
			ck_assert_int_eq(ap_space_legal(&f->ctx, b, count, ndev, &f->step, &why), among);
			ck_assert(among || *why);
		}
}

START_LOOP_TEST(candidates, AP_COUNT(cases))
{
	struct fixture f;

	fixture_open(&f, cases[_i].ndev, cases[_i].ndev < 8 ? cases[_i].ndev : 8, "a100-80");
	f.step.micro_batches = cases[_i].micro_batches;
	fixture_graph(&f, cases[_i].graph);
	fixture_impose(&f);
	ck_assert_str_eq(parts(&f), cases[_i].parts);
	others_are_refused(&f);
	f.step.executor = AP_EXECUTOR_GENERIC;
	fixture_graph(&f, cases[_i].graph);
	fixture_impose(&f);
	if (cases[_i].free)
		ck_assert_str_eq(parts(&f), cases[_i].free);
	fixture_close(&f);
}
END_TEST

/* Both completions of MindSpore's come to the only candidate, and start there. */
START_LOOP_TEST(completions, AP_COUNT(cases))
{
	const int32_t *const *semi, *const *propagated;
	int32_t start[AP_MAX_FACTOR];
	const struct ap_bound *b;
	struct fixture f;

	if (strchr(cases[_i].parts, ' '))
		return;
	fixture_open(&f, cases[_i].ndev, cases[_i].ndev < 8 ? cases[_i].ndev : 8, "a100-80");
	f.step.micro_batches = cases[_i].micro_batches;
	fixture_graph(&f, cases[_i].graph);
	fixture_impose(&f);
	b = &f.graph->node[0].bound;
	ap_space_start(b, cases[_i].ndev, start);
	if (!ap_space_is_imposed(b) && cases[_i].ndev == 12) { /* the batch strategy's 4 parts are refused */
		f.ctx.diag = ap_diag_create(f.ctx.arena, false);
		ck_assert_int_eq(ap_semi_auto_complete(&f.ctx, f.graph, f.machine, &f.step, NULL, &semi),
			AP_INFEASIBLE);
		fixture_close(&f);
		return;
	}
	ck_assert(ap_space_legal(&f.ctx, b, start, cases[_i].ndev, &f.step, NULL));
	ck_assert_int_eq(ap_semi_auto_complete(&f.ctx, f.graph, f.machine, &f.step, NULL, &semi), AP_OK);
	ck_assert_mem_eq(semi[0], start, b->nfactor * sizeof *start);
	ck_assert_int_eq(ap_propagation_complete(&f.ctx, f.graph, f.machine, &f.step, NULL, &propagated),
		AP_OK);
	ck_assert_mem_eq(propagated[0], start, b->nfactor * sizeof *start);
	fixture_close(&f);
}
END_TEST

/* A dump of MindSpore 2.1 has the Flatten of a network on 8 devices. */
START_TEST(as_in_a_dump)
{
	FILE *file = fopen(AP_SOURCE_ROOT "/tests/dumps/2.1_step_parallel_begin_mlp_recursive.ir", "r");
	const struct ap_bound *b;
	int32_t cut[AP_MAX_RANK], start[AP_MAX_FACTOR];
	struct ap_placement p;
	char line[4096], want[64];
	struct fixture f;
	bool found = false;

	fixture_open(&f, 8, 8, "ascend910b");
	fixture_graph(&f, ONE("Flatten", "[32,1,28,28]", Y));
	fixture_impose(&f);
	b = &f.graph->node[0].bound;
	ap_space_start(b, 8, start);
	ap_placement_make(b, start, 8, &p);
	ap_strategy_vector(&p, &b->in[0], cut);
	snprintf(want, sizeof want, "{in_strategy: ((%d, %d, %d, %d))}", cut[0], cut[1], cut[2], cut[3]);
	ck_assert_ptr_nonnull(file);
	while (!found && fgets(line, sizeof line, file))
		found = strstr(line, "= Flatten(") && strstr(line, "BatchParallel: Bool(1)") &&
			strstr(line, want);
	fclose(file);
	ck_assert_msg(found, "%s", want);
	fixture_close(&f);
}
END_TEST

/* Where nothing is to be decided the graph is handed back; a stage counts, not the machine. */
START_TEST(of_a_stage)
{
	const struct ap_graph *imposed;
	int32_t start[AP_MAX_FACTOR];
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910b");
	fixture_graph(&f, FIXTURE_PAIR);
	ck_assert_ptr_eq(ap_graph_imposed(&f.ctx, f.graph, 8, &f.step), f.graph);
	f.step.executor = AP_EXECUTOR_GENERIC;
	fixture_graph(&f, ONE("Flatten", "[32,1,28,28]", Y));
	ck_assert_ptr_eq(ap_graph_imposed(&f.ctx, f.graph, 8, &f.step), f.graph);
	f.step.executor = AP_EXECUTOR_MINDSPORE;
	imposed = ap_graph_imposed(&f.ctx, f.graph, 4, &f.step);
	ap_space_start(&imposed->node[0].bound, 4, start);
	ck_assert_int_eq(start[0], 4);
	fixture_close(&f);
}
END_TEST

/* What MindSpore never takes for batch parallel. */
START_TEST(black_list)
{
	ck_assert_str_eq(ap_op_unknown("Meshgrid"), "StandAlone");
	ck_assert_str_eq(ap_op_unknown("MyOdd"), "BatchParallel");
	ck_assert(!ap_op_is_fallback(ap_op_next(NULL, "Stack")));
	ck_assert(!ap_op_is_fallback(ap_op_next(NULL, "TensorScatterUpdate")));
}
END_TEST

#define LOOK(type, operands, index, table, more) \
	"{'schema':'autopar-graph/1','name':'look','inputs':[{'name':'i','dtype':'int32','shape':" index \
	"}],'parameters':[{'name':'t'," F table "}],'operators':[{'name':'one','type':'" type "','inputs':[" \
	operands "]," more "'outputs':[{'name':'y'}]}],'outputs':['y']}"
#define TABLE_FIRST(type, more) LOOK(type, "'t','i'", "[16,6]", "[64,32]", more)
#define SAYS(in, out) "'in_strategy':" in ",'out_strategy':" out ","

/* Formats 4.2: what is looked up in parts of a table. out: parts of the result's dimensions. */
static const struct {
	const char *graph, *counts;
	int64_t micro_batches;
	const char *out;
	bool needs, says; /* an out_strategy */
} lookups[] = {
	{TABLE_FIRST("Gather", ""), "v=8", 1, "8 1 1", false, false},
	{TABLE_FIRST("Gather", ""), "v=2", 1, "2 1 1", false, false}, /* repeated four times */
	{TABLE_FIRST("Gather", ""), "v=4 d=2", 1, "4 1 2", false, false},
	{TABLE_FIRST("Gather", ""), "A=4", 1, "4 1 1", false, false},
	{TABLE_FIRST("Gather", ""), "A=4 v=2", 1, "4 1 1", false, true}, /* batch and axis */
	{TABLE_FIRST("Gather", ""), "B=2 v=4", 1, "1 2 1", false, true},
	{TABLE_FIRST("GatherV2", ""), "v=8", 1, "8 1 1", false, false},
	{TABLE_FIRST("SparseGatherV2", ""), "v=8", 1, "8 1 1", false, false},
	{TABLE_FIRST("EmbeddingLookup", ""), "v=8", 1, "8 1 1", false, false},
	{LOOK("IndexSelect", "'t','i'", "[16]", "[64,32]", ""), "v=8", 1, "8 1", false, false},
	{LOOK("Embedding", "'i','t'", "[16,6]", "[64,32]", ""), "v=8", 1, "8 1 1", false, false},
	{LOOK("Gather", "'t','i'", "[12,6]", "[64,32]", ""), "v=8", 1, "1 1 1", false, true}, /* 12 / 8 */
	{LOOK("Gather", "'t','i'", "[12,6]", "[64,32]", ""), "v=4", 1, "4 1 1", false, false},
	{LOOK("Gather", "'t','i'", "[1,8]", "[64,32]", ""), "v=8", 1, "1 1 1", false, true},
	{LOOK("Gather", "'t','i'", "[]", "[64,32]", ""), "v=8", 1, "1", false, true}, /* no rows of indices */
	{LOOK("Gather", "'t','i'", "[16,6]", "[64]", ""), "v=8", 1, "8 1", false, false},
	/* said */
	{TABLE_FIRST("Gather", SAYS("[[8,1],[1,1]]", "[[1,1,1]]")), "v=8", 1, "1 1 1", true, true},
	{TABLE_FIRST("Gather", SAYS("[[8,1],[1,1]]", "[[8,1,1]]")), "v=8", 1, "8 1 1", false, true},
	{TABLE_FIRST("Gather", SAYS("[[2,1],[4,1]]", "[[4,1,1]]")), "A=4 v=2", 1, "4 1 1", false, true},
	{TABLE_FIRST("Gather", SAYS("[[2,1],[4,1]]", "[[8,1,1]]")), "A=4 v=2", 1, "8 1 1", true, true},
	{LOOK("Embedding", "'i','t'", "[16,6]", "[64,32]", SAYS("[[1,1],[8,1]]", "[[1,1,1]]")), "v=8", 1,
		"1 1 1", true, true},
};

static struct ap_placement placed(struct fixture *f, const char *counts)
{
	int32_t count[AP_MAX_FACTOR];
	struct ap_placement p;

	fixture_counts(f, 0, counts, count);
	ck_assert(ap_space_legal(&f->ctx, &f->graph->node[0].bound, count, 8, &f->step, NULL));
	ap_placement_make(&f->graph->node[0].bound, count, 8, &p);
	return p;
}

static const char *out_parts(struct fixture *f, const struct ap_placement *p)
{
	const struct ap_operand *out = &p->bound->out[0];
	int32_t cut[AP_MAX_RANK];
	struct ap_layout l;
	struct ap_str s;

	ap_str_init(&s, f->ctx.arena);
	ap_strategy_vector(p, out, cut);
	ck_assert(ap_layout_make(p, out, &l));
	for (int d = 0; d < out->rank; d++) {
		ap_str_addf(&s, "%s%d", d ? " " : "", cut[d]);
		ck_assert_int_eq(cut[d], l.dim[d].cut);
	}
	return s.s;
}

struct heard {
	enum ap_coll forward, backward;
	int nforward, nbackward;
};

static void hear(void *user, const struct ap_comm *c)
{
	struct heard *h = user;

	if (c->phase == AP_PHASE_FORWARD) {
		h->forward = c->kind;
		h->nforward++;
	} else if (c->phase == AP_PHASE_BACKWARD) {
		h->backward = c->kind;
		h->nbackward++;
	}
}

static struct heard heard_of(struct fixture *f, const struct ap_placement *p)
{
	struct heard h = {.nforward = 0};
	const struct ap_task *task;

	ap_tasks_make(&f->ctx, f->graph, &f->step, &task);
	ap_comms_derive(&task[0], p, &f->step, hear, &h);
	return h;
}

START_LOOP_TEST(parts_of_tables, AP_COUNT(lookups))
{
	bool cut = strchr(lookups[_i].counts, 'v') != NULL, dealt;
	struct ap_placement p;
	struct fixture f;
	struct heard h;

	fixture_open(&f, 8, 8, "ascend910b");
	f.step.micro_batches = lookups[_i].micro_batches;
	fixture_graph(&f, lookups[_i].graph);
	fixture_impose(&f);
	p = placed(&f, lookups[_i].counts);
	dealt = p.dealt != 0 && cut;
	ck_assert_str_eq(out_parts(&f, &p), lookups[_i].out);
	ck_assert_int_eq(ap_placement_needs_out(&p, &f.step), lookups[_i].needs);
	ck_assert_int_eq(ap_placement_says_out(&p, &f.step), lookups[_i].says);
	h = heard_of(&f, &p);
	ck_assert_int_eq(h.nforward, cut);
	if (cut) {
		ck_assert_int_eq(h.forward, dealt ? AP_COLL_REDUCESCATTER : AP_COLL_ALLREDUCE);
		ck_assert_int_eq(h.nbackward, 1);
		ck_assert_int_eq(h.backward, dealt ? AP_COLL_ALLGATHER : AP_COLL_ALLREDUCE);
	}
	fixture_close(&f);
}
END_TEST

/* Rows of a micro-batch are what the parts have to divide. */
START_LOOP_TEST(rows_of_a_micro_batch, 3)
{
	static const char graph[] = "{'schema':'autopar-graph/1','name':'look','inputs':[{'name':'i',"
		"'dtype':'int32','shape':[16,6],'batch_dim':0}],'parameters':[{'name':'t'," F "[64,32]}],"
		"'operators':[{'name':'one','type':'Gather','inputs':['t','i'],'outputs':[{'name':'y'}]}],"
		"'outputs':['y']}";
	static const char *const out[] = {"8 1 1", "8 1 1", "1 1 1"};
	struct ap_placement p;
	struct fixture f;

	fixture_open(&f, 8, 8, "ascend910b");
	f.step.micro_batches = 1 << _i;
	fixture_graph(&f, graph);
	fixture_impose(&f);
	p = placed(&f, "v=8");
	ck_assert_str_eq(out_parts(&f, &p), out[_i]);
	fixture_close(&f);
}
END_TEST

/* The generic executor sums up, whatever divides. */
START_TEST(generic_sums_up)
{
	struct ap_placement p;
	struct fixture f;
	struct heard h;

	fixture_open(&f, 8, 8, "ascend910b");
	f.step.executor = AP_EXECUTOR_GENERIC;
	fixture_graph(&f, TABLE_FIRST("Gather", ""));
	fixture_impose(&f);
	p = placed(&f, "v=8");
	ck_assert_str_eq(out_parts(&f, &p), "1 1 1");
	h = heard_of(&f, &p);
	ck_assert_int_eq(h.forward, AP_COLL_ALLREDUCE);
	fixture_close(&f);
}
END_TEST
