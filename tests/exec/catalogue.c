/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator types that MindSpore 2.7 registers a parallel operator for: those whose parallel form
 * is described one by one (4.2) and the further ones (4.3); names of version 1 (1.x); then what only our table
 * has. A type that is added to the table need not be added here.
 */
#include <string.h>

#include "fault.h"

#include "base/vec.h"
#include "rule/op.h"

static const char *const described[] = {
	"_MirrorOperator", "Abs", "ACos", "Acosh", "Add", "AddExt", "AddN", "ApplyRotaryPosEmb",
	"Argmax", "ArgMaxWithValue", "Argmin", "ArgMinWithValue", "Asin", "Asinh", "Assign",
	"AssignAdd", "AssignSub", "Atan", "Atan2", "Atanh", "AvgPool", "AvgPool3D", "BatchMatMul",
	"BatchMatMulExt", "BatchNorm", "BesselI0", "BesselI0e", "BesselI1", "BesselI1e",
	"BesselJ0", "BesselJ1", "BiasAdd", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BroadcastTo",
	"Cast", "Ceil", "CheckValid", "Concat", "Conv2D", "Conv2DBackpropInput",
	"Conv2DTranspose", "Conv3D", "Cos", "Cosh", "Cummax", "Cummin", "CumProd", "CumSum",
	"DCT", "DCTN", "Depend", "Div", "DivNoNan", "Dropout", "DropoutDoMask", "DropoutExt",
	"DropoutGenMask", "Elu", "EluExt", "Embedding", "EmbeddingLookup", "Equal", "Erf", "Erfc",
	"Erfinv", "Exp", "ExpandDims", "Expm1", "FastGeLU", "FFT", "FFT2", "FFTN", "FFTShift",
	"FlashAttentionScore", "Flatten", "Floor", "FloorDiv", "FloorMod",
	"FusedInferAttentionScore", "Gather", "GatherD", "GatherNd", "Gcd", "GeLU", "GetNext",
	"Greater", "GreaterEqual", "GroupedMatmul", "GroupNorm", "HFFT", "HFFT2", "HFFTN",
	"HShrink", "HSigmoid", "Hypot", "IDCT", "IDCTN", "Identity", "IFFT", "IFFT2", "IFFTN",
	"IFFTShift", "IHFFT", "IHFFT2", "IHFFTN", "IncreFlashAttention", "IndexSelect", "Inv",
	"Invert", "IRFFT", "IRFFT2", "IRFFTN", "IsClose", "IsFinite", "KLDivLoss", "KVCacheMgr",
	"KVCacheScatterUpdate", "L2Loss", "L2Normalize", "LayerNorm", "LayerNormV3",
	"LeakyReLUExt", "LeftShift", "Lerp", "Less", "LessEqual", "Lgamma", "Load", "Log",
	"Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "LogSoftmax", "LstsqV2", "MaskedFill",
	"MatMul", "MatMulExt", "MaxDim", "Maximum", "MaxPool", "MaxPool3D", "MaxPoolV2",
	"MeanExt", "Minimum", "Mish", "Mod", "MoeComputeExpertTokens", "MoeFinalizeRouting",
	"MoeGatingTopKSoftmax", "MoeInitRouting", "Mul", "MulNoNan", "Neg", "NextAfter",
	"NotEqual", "OneHot", "OnesLike", "Outer", "PadV3", "PagedAttention",
	"PagedAttentionMask", "Pow", "PReLU", "PromptFlashAttention", "QuantBatchMatmul",
	"RandomChoiceWithMask", "RealDiv", "Receive", "Reciprocal", "ReduceAll", "ReduceAny",
	"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReLU", "ReLU6",
	"RepeatElements", "RepeatInterleave", "RepeatInterleaveInt", "RepeatInterleaveTensor",
	"Reshape", "ReshapeAndCache", "ReverseV2", "RFFT", "RFFT2", "RFFTN", "RightShift", "Rint",
	"RmsNorm", "RotaryPositionEmbedding", "Round", "Rsqrt", "ScatterAdd", "ScatterDiv",
	"ScatterMax", "ScatterMin", "ScatterMul", "ScatterNdAdd", "ScatterNdSub",
	"ScatterNdUpdate", "ScatterSub", "ScatterUpdate", "Select", "SeLU", "Send", "Sigmoid",
	"SigmoidCrossEntropyWithLogits", "Sign", "SiLU", "Sin", "Sinh", "Slice", "SliceExt",
	"Softmax", "SoftmaxCrossEntropyWithLogits", "Softplus", "SoftplusExt", "SoftShrink",
	"Softsign", "SolveTriangular", "Sort", "SparseGatherV2",
	"SparseSoftmaxCrossEntropyWithLogits", "Split", "SplitTensor", "SplitV", "SplitWithSize",
	"Sqrt", "Square", "SquaredDifference", "SquareSumAll", "Squeeze", "Stack", "StridedSlice",
	"Sub", "SubExt", "SumExt", "Swiglu", "Tan", "Tanh", "TensorDot", "TensorScatterAdd",
	"TensorScatterDiv", "TensorScatterMax", "TensorScatterMin", "TensorScatterMul",
	"TensorScatterSub", "TensorScatterUpdate", "Tile", "TopK", "TopkExt", "TopKRouter",
	"TopPRouter", "Transpose", "Trunc", "TruncateDiv", "TruncateMod", "Unique",
	"UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum",
	"VirtualDataset", "VirtualOutput", "WeightQuantBatchMatmul", "Xdivy", "Xlogy",
	"ZerosLike",
};

static const char *const further[] = {
	"Activation", "AddcmulExt", "AntiQuant", "ApproximateEqual", "Arange", "AShardIdentity",
	"BatchParallel", "Betainc", "BoundingBoxEncode", "Cdist", "Cholesky", "ClampScalar",
	"Conv2DExt", "Convolution", "CropAndResize", "CumsumExt", "Custom", "Dequant", "DivMod",
	"DSDMatmul", "DynamicQuantExt", "FakeQuantPerChannel", "FakeQuantPerLayer", "FFN",
	"FFNExt", "FillV2", "FmodScalar", "FmodTensor", "Gamma", "GenerateEodMaskV2",
	"GridSampler2D", "Igamma", "Igammac", "Index", "InplaceAdd", "InplaceCopy", "InplaceSub",
	"InplaceUpdate", "IOU", "LinSpace", "LinSpaceExt", "MatmulDDS", "Max",
	"MinMaxUpdatePerChannel", "MinMaxUpdatePerLayer", "Muls", "NanToNum", "OneHotExt",
	"Polar", "PopulationCount", "Quant", "QuantLinearSparse", "QuantV2", "Range",
	"RemainderScalarTensor", "RemainderTensorScalar", "RemainderTensorTensor",
	"ResizeBilinearV2", "ResizeNearestNeighbor", "ROIAlign", "SelfDefineShard", "SortExt",
	"StackExt", "StandAlone", "TraceV2", "Tril", "Triu", "UniformCandidateSampler", "WKV",
	"Zeta",
};

static const char *const old[] = {
	"_VirtualDataset", "Acos", "ELU", "FastGelu", "GatherV2", "GatherV2P", "Gelu", "ReLUV2",
	"TensorAdd",
};

static const struct {
	const char *name;
	const char *const *type;
	size_t n;
} sections[] = {
	{"4.2", described, AP_COUNT(described)},
	{"4.3", further, AP_COUNT(further)},
	{"1.x", old, AP_COUNT(old)},
};

static bool is_listed(const char *type)
{
	for (size_t s = 0; s < AP_COUNT(sections); s++)
		for (size_t i = 0; i < sections[s].n; i++)
			if (strcmp(sections[s].type[i], type) == 0)
				return true;
	return false;
}

/* Type i of the table, by rows, other names and refusals, that no section lists. */
static const char *ours(size_t i)
{
	const char *name, *meant;
	const struct ap_op_row *row;

	for (size_t r = 0; (row = ap_op_at(r)); r++)
		if (ap_op_next(NULL, row->name) == row && !is_listed(row->name) && i-- == 0)
			return row->name;
	for (size_t r = 0; ap_op_alias_at(r, &name, &meant); r++)
		if (!is_listed(name) && i-- == 0)
			return name;
	for (size_t r = 0; ap_op_unsupported_at(r, &name, &meant); r++)
		if (!is_listed(name) && i-- == 0)
			return name;
	return NULL;
}

static void fill(struct ex_catalogue *c, const char *type, const char *section)
{
	*c = (struct ex_catalogue){.type = type, .section = section,
		.canonical = ap_op_canonical(type, NULL), .why_not = ap_op_unsupported(type)};
}

bool ex_catalogue_at(size_t i, struct ex_catalogue *out)
{
	const char *type;

	for (size_t s = 0; s < AP_COUNT(sections); s++) {
		if (i >= sections[s].n) {
			i -= sections[s].n;
			continue;
		}
		fill(out, sections[s].type[i], sections[s].name);
		return true;
	}
	type = ours(i);
	if (type)
		fill(out, type, "ours");
	return type != NULL;
}
