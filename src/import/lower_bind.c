/* SPDX-License-Identifier: Apache-2.0 */
/* Every operator is held against its rule, so that what does not fit is told with its line. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "import/lower.h"
#include "rule/bind.h"
#include "rule/binding.h"

/* Old dumps have no shapes of what is in a tuple: they follow from the rule. */
static void complete(struct ap_import_tensor *t, const struct ap_operand *r)
{
	t->shape.rank = r->rank;
	memcpy(t->shape.dim, r->size, r->rank * sizeof *r->size);
	t->shaped = true;
}

static enum ap_status compare(struct lower *l, const struct lower_op *o, const struct ap_bound *b)
{
	for (uint32_t k = 0; k < o->out.nout && k < b->nout; k++) {
		struct ap_import_tensor *t = &l->g->tensors.v[o->out.out + k];
		const struct ap_operand *r = &b->out[k];
		struct ap_arena *scratch = l->ctx->scratch;

		if (!t->shaped)
			complete(t, r);
		if (t->shape.rank != r->rank ||
			memcmp(t->shape.dim, r->size, r->rank * sizeof *r->size))
			return ap_lower_fault(l, o->from, "output-shape",
				"result %" PRIu32 " has the shape %s; from its operands follows %s", k,
				ap_shape_text(scratch, t->shape.dim, t->shape.rank),
				ap_shape_text(scratch, r->size, r->rank));
		if (t->shape.dtype != r->dtype)
			return ap_lower_fault(l, o->from, "output-dtype",
				"result %" PRIu32 " is %s; from its operands follows %s", k,
				ap_dtype_name(t->shape.dtype), ap_dtype_name(r->dtype));
	}
	return AP_OK;
}

/* Operands and results as rules see them: those that are left out are only missing. */
static void fill(struct lower *l, const struct lower_op *o, struct ap_bind_in *want)
{
	struct ap_arena *a = l->ctx->scratch;
	struct ap_shape *in = AP_NEW_N(a, struct ap_shape, o->in.n);
	struct ap_shape *out = AP_NEW_N(a, struct ap_shape, o->out.nout);
	uint16_t *slot = AP_NEW_N(a, uint16_t, o->in.n);

	for (uint32_t i = 0; i < o->in.n; i++) {
		if (o->in.v[i] == AP_NONE)
			continue;
		in[want->nin] = l->g->tensors.v[o->in.v[i]].shape;
		slot[want->nin++] = (uint16_t)i;
	}
	for (uint32_t k = 0; k < o->out.nout; k++) {
		out[k] = l->g->tensors.v[o->out.out + k].shape;
		if (!l->g->tensors.v[o->out.out + k].shaped)
			out[k].rank = AP_RANK_UNKNOWN;
	}
	want->nout = (uint16_t)o->out.nout;
	want->in = in;
	want->slot = slot;
	want->declared = out;
}

enum ap_status ap_lower_bind(struct lower *l, const struct lower_op *o)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_ctx ctx = *l->ctx;
	struct ap_attrs attrs = {.n = (uint32_t)o->attrs.n, .v = o->attrs.v};
	struct ap_bind_in want = {.type = o->type, .attrs = &attrs};
	struct ap_bind_fault fault = {0};
	struct ap_bound bound;
	enum ap_status st = AP_OK;

	if (o->in.n > AP_MAX_OPERAND || o->out.nout > AP_MAX_OPERAND)
		return ap_lower_fault(l, o->from, "operator-inputs", "more than %d operands", AP_MAX_OPERAND);
	if (!o->known)
		return AP_OK;
	ctx.arena = ctx.scratch;
	fill(l, o, &want);
	if (ap_rule_bind(&ctx, &want, &bound, &fault) != AP_OK)
		st = ap_lower_fault(l, o->from, fault.check, "%s", fault.text);
	else
		st = compare(l, o, &bound);
	ap_arena_release(l->ctx->scratch, mark);
	return st;
}
