/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The importer of ONNX on any bytes: it ends with a graph that is JSON, and that loads or is refused with a
 * message, or with a message of its own. What else happens is a fault, and aborts.
 */
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "fuzz.h"
#include "graph/graph.h"
#include "import/import.h"
#include "import/write.h"

static void check_graph(struct ap_ctx *ctx, const struct ap_import *g)
{
	static const struct ap_graph_params loaded = {.unknown_batch_parallel = true};
	const struct ap_graph *graph;
	struct ap_json *doc;
	struct ap_str json;

	ap_str_init(&json, ctx->arena);
	ap_import_write(ctx, g, ap_str_take, &json);
	fuzz_require(ap_json_parse(ctx, "graph.json", json.s, json.len, 0, &doc) == AP_OK, "the importer keeps no promise");
	if (ap_graph_load(ctx, doc, NULL, &loaded, &graph) != AP_OK)
		fuzz_require(ap_diag_count(ctx->diag, AP_ERROR) > 0, "the importer keeps no promise");
}

static const struct ap_onnx_length lengths[] = {{"batch", 8}, {"seq", 16}, {"NonZero", 4}};

static const struct ap_onnx_params params[] = {
	{.batch = 8, .dtype = AP_DTYPE_COUNT, .flash = true, .dim = lengths, .ndim = AP_COUNT(lengths)},
	{.dtype = AP_BFLOAT16, .loss = AP_ONNX_LOSS_VOCABULARY_PARALLEL, .unknown_batch_parallel = true, .dim = lengths,
		.ndim = AP_COUNT(lengths)},
};

static void import_once(struct ap_ctx *ctx, const char *text, size_t len, const struct ap_onnx_params *how)
{
	const struct ap_import *g;
	enum ap_status st = ap_import_onnx(ctx, "net.onnx", text, len, 16 << 20, how, &g);

	if (st == AP_OK)
		check_graph(ctx, g);
	else
		fuzz_require(ap_diag_count(ctx->diag, AP_ERROR) > 0 && ap_diag_status(ctx->diag) == st, "the importer keeps no promise");
}

static void import_training(struct ap_ctx *ctx, const char *text, size_t len)
{
	import_once(ctx, text, len, &params[0]);
}

static void import_other(struct ap_ctx *ctx, const char *text, size_t len)
{
	import_once(ctx, text, len, &params[1]);
}

static const char *word(size_t i)
{
	static const char *const words[] = {"MatMul", "Gemm", "Reshape", "Shape", "Gather", "Concat", "Slice", "Split",
		"Expand", "Where", "Einsum", "TopK", "ScatterElements", "NonZero", "If", "Constant", "Identity", "axis",
		"perm", "pads", "to", "value", "equation", "ij,jk->ik", "LayerNormalization", "ConstantOfShape"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static int try_input(const uint8_t *data, size_t size)
{
	if (fuzz_way(data, size, 2))
		fuzz_with(import_other, data, size);
	else
		fuzz_with(import_training, data, size);
	return 0;
}

FUZZ_TARGET(onnx, word, try_input)
