/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps of a network under Pipeline or GradAccumulation hold a copy per micro-batch: slices of the
 * inputs, copies of the network, sums of the results. Keeps the first copy, with inputs of a
 * micro-batch's size. */
#include "import/micro.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"

enum { NONE = -1 };

struct fold {
	struct ap_ctx *ctx;
	struct ap_flat *f;
	int64_t copies; /* in the dump */
	int64_t line; /* of an operator in the last copy */
	int64_t *micro; /* by tensor; NONE */
	ap_id *alias; /* by tensor: its replacement in the first copy */
	struct { /* by operator: which part of how many it slices from an input; parts 0: none */
		int64_t part, parts;
	} *piece;
	int64_t *count; /* [copies] operators in each */
};

static enum ap_status fault(struct fold *m, int64_t line, const char *text)
{
	return ap_diag_add(m->ctx->diag, AP_ERROR, AP_MEANING,
		&(struct ap_where){.file = m->f->ir->file, .line = line}, "micro-batches", "%s", text);
}

/* Does an operator slice an input along dimension 0 into equal parts? *part of *parts. */
static bool takes_part(const struct ap_flat *f, const struct ap_flat_op *op, int64_t *part, int64_t *parts)
{
	const struct ap_ir_type *whole, *piece = &f->tensors.v[op->out].type;
	const struct ap_flat_tensor *from;
	const struct ap_ir_value *begin;

	if (strcmp(op->node->prim, "StridedSlice") || op->nin < 2 || op->in[0].kind != AP_FLAT_TENSOR ||
		op->in[1].kind != AP_FLAT_CONST)
		return false;
	from = &f->tensors.v[op->in[0].id]; /* or a result of a dataset node */
	if (from->kind != AP_TENSOR_INPUT && (from->kind != AP_TENSOR_ACT ||
		strcmp(f->ops.v[from->op].node->prim, "_VirtualDataset")))
		return false;
	whole = &f->tensors.v[op->in[0].id].type;
	begin = op->in[1].c;
	if (!whole->shaped || !piece->shaped || whole->rank < 1 || whole->rank > AP_MAX_RANK ||
		piece->rank != whole->rank || begin->kind != AP_IR_LIST || !begin->n ||
		begin->v[0].kind != AP_IR_INT || piece->dim[0] < 1 || whole->dim[0] / 2 < piece->dim[0] ||
		whole->dim[0] % piece->dim[0] || begin->v[0].i < 0 || begin->v[0].i % piece->dim[0])
		return false;
	for (uint8_t i = 1; i < whole->rank; i++)
		if (whole->dim[i] != piece->dim[i])
			return false;
	*part = begin->v[0].i / piece->dim[0];
	*parts = whole->dim[0] / piece->dim[0];
	return *part < *parts;
}

/* Counts copies from marks, or from inputs all of whose parts are sliced. */
static void count_copies(struct fold *m)
{
	uint32_t *taken = AP_NEW_N(m->ctx->arena, uint32_t, m->f->tensors.n);

	m->piece = ap_arena_alloc(m->ctx->arena, m->f->ops.n, sizeof *m->piece);
	m->copies = 1;
	for (size_t i = 0; i < m->f->ops.n; i++) {
		const struct ap_flat_op *op = &m->f->ops.v[i];
		int64_t seen = op->micro + 1;

		if (!takes_part(m->f, op, &m->piece[i].part, &m->piece[i].parts))
			m->piece[i].parts = 0;
		else if (++taken[op->in[0].id] == m->piece[i].parts)
			seen = m->piece[i].parts;
		if (seen > m->copies) {
			m->copies = seen;
			m->line = op->node->line;
		}
	}
}

/* Finds the micro-batch of a value. *several: it uses more than one. */
static void look(const struct fold *m, const struct ap_flat_value *v, int64_t *micro, bool *several)
{
	for (uint32_t i = 0; v->kind == AP_FLAT_TUPLE && i < v->n; i++)
		look(m, &v->v[i], micro, several);
	if (v->kind != AP_FLAT_TENSOR || m->micro[v->id] == NONE)
		return;
	*several |= *micro != NONE && *micro != m->micro[v->id];
	if (*micro == NONE || m->micro[v->id] < *micro)
		*micro = m->micro[v->id];
}

/* The operand of a sum that belongs to the first copy. */
static ap_id first_of(const struct fold *m, const struct ap_flat_op *op)
{
	ap_id best = AP_NONE;

	for (uint32_t i = 0; i < op->nin; i++) {
		const struct ap_flat_value *v = &op->in[i];
		uint32_t n = v->kind == AP_FLAT_TUPLE ? v->n : 1;

		for (uint32_t k = 0; k < n; k++) {
			const struct ap_flat_value *e = v->kind == AP_FLAT_TUPLE ? &v->v[k] : v;

			if (e->kind == AP_FLAT_TENSOR && m->micro[e->id] != NONE &&
				(best == AP_NONE || m->micro[e->id] < m->micro[best]))
				best = e->id;
		}
	}
	return best;
}

/* Shrinks an input to the size of its part. */
static void take(struct fold *m, struct ap_flat_op *op, int64_t part)
{
	struct ap_flat_tensor *whole = &m->f->tensors.v[op->in[0].id];

	op->gone = true;
	m->alias[op->out] = op->in[0].id;
	m->micro[op->out] = part;
	if (part || m->alias[op->in[0].id] != op->in[0].id)
		return;
	whole->type = m->f->tensors.v[op->out].type;
	if (whole->kind == AP_TENSOR_ACT) {
		const struct ap_flat_op *set = &m->f->ops.v[whole->op];
		const struct ap_flat_value *v = set->nin == 1 && set->in[0].kind == AP_FLAT_TUPLE
			? &set->in[0].v[whole->result] : &set->in[whole->result];

		if (v->kind == AP_FLAT_TENSOR)
			m->f->tensors.v[v->id].type = whole->type;
	}
}

static enum ap_status visit(struct fold *m, size_t at)
{
	struct ap_flat_op *op = &m->f->ops.v[at];
	int64_t micro = NONE;
	bool several = false;

	if (m->piece[at].parts == m->copies) {
		take(m, op, m->piece[at].part);
		return AP_OK;
	}
	for (uint32_t i = 0; i < op->nin; i++)
		look(m, &op->in[i], &micro, &several);
	if (several) {
		const char *prim = op->node->prim;

		/* a sum over micro-batches is replaced by its first operand */
		if (strcmp(prim, "Add") && strcmp(prim, "AddN") && strcmp(prim, "Concat") &&
			strcmp(prim, "AddExt"))
			return fault(m, op->node->line,
				"puts several micro-batches together; expected a sum");
		op->gone = true;
		m->alias[op->out] = m->alias[first_of(m, op)];
		m->micro[op->out] = 0;
		return AP_OK;
	}
	if (op->micro >= 0)
		micro = op->micro;
	for (uint32_t k = 0; k < op->nout; k++)
		m->micro[op->out + k] = micro;
	op->gone = micro > 0;
	if (micro >= 0 && micro < m->copies)
		m->count[micro]++;
	return AP_OK;
}

static void rewrite(struct fold *m, const struct ap_flat_value *from, uint32_t n,
	const struct ap_flat_value **out)
{
	struct ap_flat_value *v = AP_NEW_N(m->ctx->arena, struct ap_flat_value, n);

	for (uint32_t i = 0; i < n; i++) {
		v[i] = from[i];
		if (v[i].kind == AP_FLAT_TENSOR)
			v[i].id = m->alias[v[i].id];
		else if (v[i].kind == AP_FLAT_TUPLE)
			rewrite(m, from[i].v, from[i].n, &v[i].v);
	}
	*out = v;
}

enum ap_status ap_flat_fold_micro(struct ap_ctx *ctx, struct ap_flat *f, int64_t micro_batches)
{
	struct fold m = {.ctx = ctx, .f = f};

	count_copies(&m);
	if (m.copies == 1)
		return AP_OK;
	if (m.copies != micro_batches)
		return fault(&m, m.line, ap_arena_printf(ctx->arena, micro_batches == 1
			? "the dump holds the network for %" PRId64 " micro-batches; expected "
			"--micro-batches %" PRId64 : "the dump holds the network for %" PRId64
			" micro-batches, --micro-batches says %" PRId64, m.copies,
			micro_batches == 1 ? m.copies : micro_batches));
	m.micro = AP_NEW_N(ctx->arena, int64_t, f->tensors.n);
	m.alias = AP_NEW_N(ctx->arena, ap_id, f->tensors.n);
	m.count = AP_NEW_N(ctx->arena, int64_t, m.copies);
	for (ap_id t = 0; t < f->tensors.n; t++) {
		m.micro[t] = NONE;
		m.alias[t] = t;
	}
	for (size_t i = 0; i < f->ops.n; i++)
		AP_TRY(visit(&m, i));
	for (int64_t k = 1; k < m.copies; k++)
		if (m.count[k] != m.count[0])
			return fault(&m, m.line, ap_arena_printf(ctx->arena, "micro-batch %" PRId64
				" has %" PRId64 " operators, micro-batch 0 has %" PRId64, k, m.count[k],
				m.count[0]));
	for (size_t i = 0; i < f->ops.n; i++)
		rewrite(&m, f->ops.v[i].in, f->ops.v[i].nin, &f->ops.v[i].in);
	for (size_t i = 0; i < f->outputs.n; i++)
		f->outputs.v[i] = m.alias[f->outputs.v[i]];
	return AP_OK;
}
