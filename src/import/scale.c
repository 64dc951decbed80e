/* SPDX-License-Identifier: Apache-2.0 */
/* From a micro-batch to the whole step: the graph's own rules tell what carries the batch. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/str.h"
#include "graph/graph.h"
#include "import/model.h"

static int64_t batch_of(const struct ap_import *g)
{
	for (size_t i = 0; i < g->tensors.n; i++)
		if (g->tensors.v[i].batch)
			return g->tensors.v[i].shape.dim[0];
	return 0;
}

static void take_shapes(struct ap_ctx *ctx, struct ap_import *g, const struct ap_graph *from)
{
	struct ap_map *names = ap_map_create(ctx->arena);

	for (ap_id t = 0; t < g->tensors.n; t++)
		ap_map_put_str(names, g->tensors.v[t].name, NULL);
	for (uint32_t t = 0; t < from->ntensor; t++) {
		ap_id id = ap_map_get_str(names, from->tensor[t].name);

		if (id != AP_NONE)
			g->tensors.v[id].shape = from->tensor[t].shape;
	}
}

static void take_attrs(struct ap_ctx *ctx, struct ap_import *g, const struct ap_graph *from)
{
	struct ap_map *names = ap_map_create(ctx->arena);

	for (size_t i = 0; i < g->ops.n; i++)
		ap_map_put_str(names, g->ops.v[i].name, NULL);
	for (uint32_t i = 0; i < from->nnode; i++) {
		struct ap_import_op *op = &g->ops.v[ap_map_get_str(names, from->node[i].name)];

		if (op->attrs.n == from->node[i].attrs.n)
			op->attrs = from->node[i].attrs;
	}
}

enum ap_status ap_import_scale(struct ap_ctx *ctx, struct ap_import *g, const char *file,
	int64_t micro_batches, bool unknown_batch_parallel)
{
	struct ap_ctx inner = *ctx;
	struct ap_graph_params params = {
		.batch = INT64_MAX, .unknown_batch_parallel = unknown_batch_parallel};
	const struct ap_graph *scaled;
	struct ap_json *doc;
	struct ap_str text;
	const char *why;

	(void)ap_mul(batch_of(g), micro_batches, &params.batch); /* else more than any graph takes */
	ap_str_init(&text, ctx->arena);
	ap_import_write(ctx, g, ap_str_take, &text);
	inner.diag = ap_diag_create(ctx->arena, false);
	if (ap_json_parse(&inner, file, text.s, text.len, 0, &doc) == AP_OK &&
		ap_graph_load(&inner, doc, NULL, &params, &scaled) == AP_OK) {
		take_shapes(ctx, g, scaled);
		take_attrs(ctx, g, scaled);
		return AP_OK;
	}
	why = ap_diag_text(inner.diag, 0, NULL, NULL);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = file},
		"micro-batches", "the micro-batch cannot be multiplied by %" PRId64 ": %s", micro_batches,
		why ? why : "its operators do not follow the batch");
}
