/* SPDX-License-Identifier: Apache-2.0 */
#include "api/onnx.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/num.h"
#include "base/vec.h"
#include "import/import.h"
#include "model/loss.h"

struct parts {
	const char **v;
	size_t n, cap;
};

static struct parts split(struct ap_arena *arena, const char *text)
{
	struct parts parts = {0};

	for (const char *end; text && *text; text = *end ? end + 1 : end) {
		end = text + strcspn(text, ",");
		AP_PUSH(arena, parts, ap_arena_strndup(arena, text, (size_t)(end - text)));
	}
	return parts;
}

/* "batch=64,seq=128" */
static enum ap_status read_dims(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_onnx_params *out)
{
	struct parts parts = split(ctx->arena, set->dim);
	struct ap_onnx_length *dim = AP_NEW_N(ctx->arena, struct ap_onnx_length, parts.n + 1);

	for (size_t i = 0; i < parts.n; i++) {
		const char *is = strrchr(parts.v[i], '=');

		if (!is || is == parts.v[i] || !ap_parse_int(is + 1, 1, INT32_MAX, &dim[i].length))
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: expected NAME=N, a name "
				"that the file gives to a length, and 1 to 2147483647",
				ap_setting_said(ctx, set, AP_SET_dim));
		dim[i].name = ap_arena_strndup(ctx->arena, parts.v[i], (size_t)(is - parts.v[i]));
	}
	out->dim = dim;
	out->ndim = parts.n;
	return AP_OK;
}

/* Settings that describe samples of other files. */
static enum ap_status refuse_others(struct ap_ctx *ctx, const struct ap_settings *set, const char *path)
{
	static const enum ap_setting_id ids[] = {AP_SET_sequence, AP_SET_names, AP_SET_mtp,
		AP_SET_masked_positions, AP_SET_moe_shared_expert_overlap, AP_SET_lora,
		AP_SET_micro_batches, AP_SET_partial, AP_SET_searched_strategies};

	for (size_t i = 0; i < AP_COUNT(ids); i++)
		if (ap_setting_given(set, ids[i]))
			(void)ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
				"%s: says nothing of %s, a model of ONNX; --dim and --batch say lengths "
				"that it leaves open",
				ap_setting_said(ctx, set, ids[i]), ap_diag_path(ctx->diag, path));
	return ap_diag_status(ctx->diag);
}

enum ap_status ap_onnx_load(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_input *in,
	const struct ap_import **out)
{
	struct parts frozen = split(ctx->arena, set->freeze);
	struct ap_onnx_params params = {
		.batch = set->batch,
		.dtype = set->dtype < 0 ? AP_DTYPE_COUNT
			: ap_dtype_find(ap_setting_at(AP_SET_dtype)->choices((size_t)set->dtype)),
		.loss = set->loss < 0 ? AP_ONNX_LOSS_EXPANDED : (enum ap_onnx_loss)set->loss,
		.flash = set->attention != AP_ATTENTION_SMALL,
		.unknown_batch_parallel = set->unknown_operators == AP_UNKNOWN_BATCH_PARALLEL,
		.frozen = frozen.v,
		.nfrozen = frozen.n,
	};

	static_assert((int)AP_ONNX_LOSS_EXPANDED == AP_LOSS_EXPANDED &&
			(int)AP_ONNX_LOSS_FUSED == AP_LOSS_FUSED &&
			(int)AP_ONNX_LOSS_KERNEL == AP_LOSS_KERNEL &&
			(int)AP_ONNX_LOSS_VOCABULARY_PARALLEL == AP_LOSS_VOCABULARY_PARALLEL,
		"losses in another order");
	AP_TRY(refuse_others(ctx, set, in->path));
	AP_TRY(read_dims(ctx, set, &params));
	return ap_import_onnx(ctx, in->path, in->text, in->len, (size_t)set->max_input, &params, out);
}

enum ap_status ap_onnx_alone(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const char *what)
{
	if (!set->dim)
		return AP_OK;
	return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, NULL, NULL,
		"%s: %s is %s, which leaves no lengths open; only a model of ONNX takes it",
		ap_setting_said(ctx, set, AP_SET_dim), ap_diag_path(ctx->diag, path), what);
}
