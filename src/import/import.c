/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include "base/arena.h"
#include "import/cast.h"
#include "import/cells.h"
#include "import/flat.h"
#include "import/ir_parse.h"
#include "import/lower.h"
#include "import/micro.h"
#include "import/model.h"
#include "import/source.h"
#include "import/write.h"

enum ap_status ap_import_ir(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_import_params *params, const struct ap_import **out)
{
	struct ap_import *g = AP_NEW(ctx->arena, struct ap_import);
	struct ap_flat flat;
	struct ap_ir ir;

	AP_TRY(ap_source_check(ctx, file));
	AP_TRY(ap_ir_parse(ctx, file, text, len, params->partial, &ir));
	AP_TRY(ap_flat_make(ctx, &ir, params, &flat));
	AP_TRY(ap_flat_fold_micro(ctx, &flat, params->micro_batches));
	AP_TRY(ap_lower(ctx, &flat, params, g));
	AP_TRY(ap_import_fold_casts(ctx, g, ir.file));
	ap_import_find_cells(ctx, g);
	if (params->micro_batches > 1)
		AP_TRY(ap_import_scale(ctx, g, file, params->micro_batches,
			params->unknown_batch_parallel));
	*out = g;
	return AP_OK;
}

size_t ap_import_size(const struct ap_import *g)
{
	return g->ops.n;
}
