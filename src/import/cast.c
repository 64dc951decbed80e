/* SPDX-License-Identifier: Apache-2.0 */
/* Casts of parameters, which mixed precision puts before each use: MindSpore looks through them, so
 * that the operator after the Cast decides the parameter's layout. They become a property of the
 * parameter. */
#include "import/cast.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"

struct reading { /* how a tensor is used */
	uint32_t uses, casts; /* operands that read it; those of Casts */
	enum ap_dtype type; /* target type of the Casts; AP_DTYPE_COUNT: none, or several */
	int64_t line; /* of the first Cast */
};

struct folding {
	struct ap_ctx *ctx;
	struct ap_import *g;
	struct reading *of; /* [tensors] */
	ap_id *stands_for; /* [tensors] parameter that replaces a Cast's result; AP_NONE */
	uint32_t kept; /* parameters whose Casts stay operators */
	int64_t line; /* of the first Cast that stays */
	const char *name;
};

static bool is_real(enum ap_dtype t)
{
	return ap_dtype_is_float(t) && !ap_dtype_is_complex(t);
}

/* Does the operator cast a parameter of a floating type to another one? */
static bool casts_param(const struct folding *f, const struct ap_import_op *op)
{
	const struct ap_import_tensor *from;

	if (strcmp(op->type, "Cast") != 0 || op->nin != 1 || op->nout != 1)
		return false;
	from = &f->g->tensors.v[op->in[0]];
	return from->kind == AP_TENSOR_PARAM && is_real(from->shape.dtype) &&
		is_real(f->g->tensors.v[op->out].shape.dtype) &&
		f->g->tensors.v[op->out].shape.dtype != from->shape.dtype;
}

/* Counts uses; a result of the network counts as a use other than a Cast. */
static void count(struct folding *f)
{
	for (size_t i = 0; i < f->g->ops.n; i++) {
		const struct ap_import_op *op = &f->g->ops.v[i];

		for (uint32_t k = 0; k < op->nin; k++)
			if (op->in[k] != AP_NONE)
				f->of[op->in[k]].uses++;
		if (casts_param(f, op)) {
			struct reading *r = &f->of[op->in[0]];
			enum ap_dtype to = f->g->tensors.v[op->out].shape.dtype;

			r->type = r->casts == 0 || r->type == to ? to : AP_DTYPE_COUNT;
			r->line = r->casts == 0 ? op->line : r->line;
			r->casts++;
		}
	}
	for (size_t i = 0; i < f->g->outputs.n; i++)
		f->of[f->g->outputs.v[i]].uses++;
}

/* Keeps Casts whose result is unused or a result of the network. */
static void keep_ends(struct folding *f)
{
	for (size_t i = 0; i < f->g->ops.n; i++) {
		const struct ap_import_op *op = &f->g->ops.v[i];
		bool end = casts_param(f, op) && f->of[op->out].uses == 0;

		for (size_t o = 0; casts_param(f, op) && o < f->g->outputs.n; o++)
			end |= f->g->outputs.v[o] == op->out;
		if (end)
			f->of[op->in[0]].type = AP_DTYPE_COUNT;
	}
}

static void judge(struct folding *f)
{
	for (size_t t = 0; t < f->g->tensors.n; t++) {
		const struct reading *r = &f->of[t];

		if (r->casts == 0)
			continue;
		if (r->casts == r->uses && r->type != AP_DTYPE_COUNT) {
			f->g->tensors.v[t].read_as = r->type;
			continue;
		}
		if (f->kept++ == 0 || r->line < f->line) {
			f->line = r->line;
			f->name = f->g->tensors.v[t].name;
		}
	}
}

/* Removes folded Casts; operators come after those whose results they read. */
static void fold(struct folding *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->g->ops.n; i++) {
		struct ap_import_op op = f->g->ops.v[i];
		ap_id *in = NULL;

		if (casts_param(f, &op) && f->g->tensors.v[op.in[0]].read_as != AP_DTYPE_COUNT) {
			f->stands_for[op.out] = op.in[0];
			continue;
		}
		for (uint32_t k = 0; k < op.nin; k++) {
			ap_id param = op.in[k] == AP_NONE ? AP_NONE : f->stands_for[op.in[k]];

			if (param == AP_NONE)
				continue;
			if (!in)
				in = ap_arena_memdup(f->ctx->arena, op.in, op.nin * sizeof *in);
			in[k] = param;
		}
		op.in = in ? in : op.in;
		f->g->ops.v[n++] = op;
	}
	f->g->ops.n = n;
}

enum ap_status ap_import_fold_casts(struct ap_ctx *ctx, struct ap_import *g, const char *file)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct folding f = {.ctx = ctx, .g = g, .of = AP_NEW_N(ctx->scratch, struct reading, g->tensors.n),
		.stands_for = AP_NEW_N(ctx->scratch, ap_id, g->tensors.n)};
	enum ap_status st = AP_OK;

	memset(f.stands_for, 0xff, g->tensors.n * sizeof *f.stands_for);
	count(&f);
	keep_ends(&f);
	judge(&f);
	fold(&f);
	if (f.kept)
		st = ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = file, .line = f.line},
			"dump-casts", "%" PRIu32 " parameter%s, \"%s\" first, %s read in more than one type, "
			"so that each Cast of %s stays an operator", f.kept, f.kept == 1 ? "" : "s",
			ap_diag_name(ctx->diag, f.name), f.kept == 1 ? "is" : "are",
			f.kept == 1 ? "it" : "them");
	ap_arena_release(ctx->scratch, mark);
	return st;
}
