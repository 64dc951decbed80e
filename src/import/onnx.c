/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/vec.h"
#include "import/import.h"
#include "import/onnx_chain.h"
#include "import/onnx_graph.h"
#include "import/onnx_read.h"
#include "import/onnx_walk.h"

bool ap_import_is_onnx(const char *text, size_t len)
{
	return ap_onnx_begins(text, len);
}

/* Weights that the file states once for several, as exporters do where values are equal. */
static uint32_t shared_weights(const struct ap_onnx_walk *w)
{
	uint32_t n = 0;

	for (size_t i = 0; i < w->vals.n; i++)
		n += w->vals.v[i].shared && w->vals.v[i].tensor != AP_NONE;
	return n;
}

static enum ap_status tell(const struct ap_onnx_walk *w, const struct ap_import *g)
{
	const struct ap_where where = {.file = w->model->file};
	uint32_t shared = shared_weights(w);
	int64_t parameters = 0, n;

	for (size_t i = 0; i < g->tensors.n; i++)
		if (g->tensors.v[i].kind == AP_TENSOR_PARAM &&
			ap_product(g->tensors.v[i].shape.dim, g->tensors.v[i].shape.rank, &n))
			(void)ap_add(parameters, n, &parameters);

	AP_TRY(ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &where, "onnx-nodes",
		"%" PRIu32 " nodes, of which %" PRIu32
		" only make constants or give names, become %zu operators with %" PRId64
		" parameter elements",
		w->nodes, w->folded, g->ops.n, parameters));
	if (w->turned)
		AP_TRY(ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &where, "onnx-equal",
			"%" PRIu32 " matrices that are "
			"others turned share their parameters",
			w->turned));
	if (w->joined)
		AP_TRY(ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &where, "onnx-equal",
			"%" PRIu32 " matrices that were equal to others when the file was made share their "
			"parameters; copies that are trained apart are so in an export with "
			"do_constant_folding=False", w->joined));
	if (w->convs)
		AP_TRY(ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &where, "onnx-folded",
			"%" PRIu32 " convolutions have "
			"weights that the exporter made, with norms folded into them; for the network as "
			"it trains, "
			"export it with training=TrainingMode.TRAINING",
			w->convs));
	if (!shared)
		return AP_OK;
	return ap_diag_add(w->ctx->diag, AP_NOTE, AP_OK, &where, "onnx-equal",
		"%" PRIu32 " vectors that were equal to "
		"others when the file was made are parameters of their own",
		shared);
}

enum ap_status ap_import_onnx(struct ap_ctx *ctx, const char *file, const char *text, size_t len, size_t most,
	const struct ap_onnx_params *params, const struct ap_import **out)
{
	const struct ap_onnx_source source = {file, text, len, most};
	struct ap_import *g = AP_NEW(ctx->arena, struct ap_import);
	struct ap_onnx model;
	struct ap_onnx_walk w = {.ctx = ctx, .model = &model, .params = params, .from = &source};

	AP_TRY(ap_onnx_read(ctx, &source, &model));
	AP_TRY(ap_onnx_walk(&w));
	ap_onnx_join_chains(&w, params->flash);
	AP_TRY(ap_onnx_add_loss(&w));
	AP_TRY(ap_onnx_graph_make(&w, g));
	AP_TRY(tell(&w, g));
	*out = g;
	return AP_OK;
}
