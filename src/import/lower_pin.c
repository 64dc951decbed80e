/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies: those of shard(), and, where asked for, those that MindSpore derived. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "import/ir_parse.h"
#include "import/lower.h"
#include "rule/op.h"

static bool is_vector(const struct ap_ir_value *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->v[i].kind != AP_IR_INT)
			return false;
	return v->kind == AP_IR_LIST;
}

/* Vectors in lists of any depth: operands that are tuples have a list of their own. */
static bool count_vectors(const struct ap_ir_value *v, uint32_t *n)
{
	for (uint32_t i = 0; i < v->n; i++) {
		if (v->v[i].kind != AP_IR_LIST)
			return false;
		if (is_vector(&v->v[i]))
			(*n)++;
		else if (!count_vectors(&v->v[i], n))
			return false;
	}
	return v->kind == AP_IR_LIST;
}

static void add_vectors(struct lower *l, const struct ap_ir_value *v, struct ap_import_pin *pin)
{
	for (uint32_t i = 0; i < v->n; i++) {
		int64_t *cut;

		if (!is_vector(&v->v[i])) {
			add_vectors(l, &v->v[i], pin);
			continue;
		}
		cut = AP_NEW_N(l->ctx->arena, int64_t, v->v[i].n);
		for (uint32_t k = 0; k < v->v[i].n; k++)
			cut[k] = v->v[i].v[k].i;
		pin->v[pin->n].n = v->v[i].n;
		pin->v[pin->n++].v = cut;
	}
}

/* Numbers among the operands have no vector in MindSpore; ours are empty. */
static void spread(struct lower *l, const struct lower_op *o, struct ap_import_pin *pin)
{
	struct ap_import_pin whole = {.given = true,
		.v = ap_arena_alloc(l->ctx->arena, o->in.n, sizeof *pin->v)};
	uint32_t k = 0;

	for (size_t i = 0; i < o->in.n; i++) {
		if (o->in.v[i] == AP_NONE)
			continue;
		if (!o->number.v[i])
			whole.v[whole.n] = pin->v[k++];
		whole.n++;
	}
	*pin = whole;
}

static enum ap_status read_pin(struct lower *l, const struct lower_op *o, const char *key,
	const struct ap_ir_value *v, struct ap_import_pin *pin)
{
	uint32_t n = 0;

	if (!count_vectors(v, &n) || !n)
		return ap_lower_fault(l, o->from, "pin-length", "%s is not a list of vectors", key);
	pin->given = true;
	pin->v = ap_arena_alloc(l->ctx->arena, n, sizeof *pin->v);
	add_vectors(l, v, pin);
	return AP_OK;
}

/* A vector has a part of each dimension of its tensor. */
static enum ap_status check_vector(struct lower *l, const struct lower_op *o, size_t i, uint32_t k)
{
	const struct ap_import_tensor *t = &l->g->tensors.v[o->in.v[i]];
	uint32_t n = o->out.in_pin.v[k].n;
	const int64_t *cut = o->out.in_pin.v[k].v;

	if (!t->shaped || o->number.v[i])
		return AP_OK;
	if (n != t->shape.rank)
		return ap_lower_fault(l, o->from, "pin-length", "vector %" PRIu32 " of in_strategy has %"
			PRIu32 " numbers; its tensor has %d dimensions", k, n, t->shape.rank);
	for (uint32_t d = 0; d < n; d++)
		if (cut[d] < 1 || t->shape.dim[d] % cut[d])
			return ap_lower_fault(l, o->from, "pin-value", "vector %" PRIu32 " of in_strategy "
				"cuts a length of %" PRId64 " in %" PRId64 " parts", k, t->shape.dim[d],
				cut[d]);
	return AP_OK;
}

static enum ap_status check_in_pin(struct lower *l, const struct lower_op *o)
{
	uint32_t k = 0;

	for (size_t i = 0; i < o->in.n; i++)
		if (o->in.v[i] != AP_NONE)
			AP_TRY(check_vector(l, o, i, k++));
	return AP_OK;
}

static enum ap_status read_in_pin(struct lower *l, struct lower_op *o, const struct ap_ir_value *v)
{
	struct ap_import_pin *pin = &o->out.in_pin;
	uint32_t operands = 0, numbers = 0;

	AP_TRY(read_pin(l, o, "in_strategy", v, pin));
	for (size_t i = 0; i < o->in.n; i++) {
		operands += o->in.v[i] != AP_NONE;
		numbers += o->in.v[i] != AP_NONE && o->number.v[i];
	}
	if (numbers && pin->n == operands - numbers)
		spread(l, o, pin);
	if (pin->n == operands)
		return check_in_pin(l, o);
	return ap_lower_fault(l, o->from, "pin-length", "in_strategy has %" PRIu32 " vectors for %" PRIu32
		" tensors", pin->n, operands);
}

static bool is_given(const struct ap_ir_value *v)
{
	return v && v->kind != AP_IR_NONE && !(v->kind == AP_IR_LIST && !v->n);
}

/* Does MindSpore keep strategies for this operator at all? */
static bool takes_pin(const struct lower_op *o)
{
	const struct ap_op_row *row = o->known ? ap_op_next(NULL, o->type) : NULL;

	return row && ap_op_has_strategy(row) && !ap_op_follows(row);
}

static enum ap_status warn_layout(struct lower *l, const struct lower_op *o)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = o->from->node->line};

	if (!ap_ir_attr(&o->from->node->prim_attrs, "in_layout"))
		return AP_OK;
	return ap_diag_add(l->ctx->diag, AP_WARNING, AP_OK, &where, "pin-layout",
		"%s: a strategy given as layouts is left out; expected in_strategy",
		ap_diag_name(l->ctx->diag, o->type));
}

enum ap_status ap_lower_pins(struct lower *l, struct lower_op *o)
{
	const struct ap_ir_node *n = o->from->node;
	const struct ap_ir_value *in = ap_ir_attr(&n->prim_attrs, "in_strategy"),
		*out = ap_ir_attr(&n->prim_attrs, "out_strategy");

	if (l->flat->sliced)
		return AP_OK;
	if (!is_given(in) && l->params->searched && takes_pin(o)) {
		in = ap_ir_attr(&n->derived, "in_strategy");
		out = ap_ir_attr(&n->derived, "out_strategy");
	}
	if (is_given(in))
		AP_TRY(read_in_pin(l, o, in));
	if (is_given(in) && is_given(out))
		AP_TRY(read_pin(l, o, "out_strategy", out, &o->out.out_pin));
	return warn_layout(l, o);
}
