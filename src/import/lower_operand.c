/* SPDX-License-Identifier: Apache-2.0 */
/* Operands by the table of primitives: tensors, what is left out, constants that are attributes. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "import/dtype.h"
#include "import/lower.h"

static void add_operand(struct lower *l, struct lower_op *o, ap_id tensor, bool number)
{
	AP_PUSH(l->ctx->arena, o->in, tensor);
	AP_PUSH(l->ctx->arena, o->number, number);
}

/* The name of a constant tells it from others: equal ones are one, where the dump tells their values. */
static ap_id constant(struct lower *l, const struct ap_flat_op *op, const struct ap_shape *shape,
	const char *text)
{
	struct ap_import_tensor t = {.kind = AP_TENSOR_CONST, .shape = *shape, .shaped = true,
		.read_as = AP_DTYPE_COUNT};
	const char *key = text;
	bool fresh;
	ap_id id;

	if (strstr(text, "[...]"))
		key = ap_arena_printf(l->ctx->arena, "%s/%" PRId64, text, op->node->line);
	id = ap_map_put_str(l->constants, ap_arena_printf(l->ctx->arena, "%s %s",
		ap_dtype_name(shape->dtype), key), &fresh);
	t.name = ap_arena_printf(l->ctx->arena, "constant.%" PRIu32, id);
	if (fresh) {
		ap_map_put_str(l->tensor_names, t.name, NULL);
		AP_PUSH(l->ctx->arena, l->constant_tensors, (ap_id)l->g->tensors.n);
		AP_PUSH(l->ctx->arena, l->g->tensors, t);
	}
	return l->constant_tensors.v[id];
}

/* The element type of the first operand that is a tensor, which a number among them takes. */
static enum ap_dtype type_beside(const struct lower *l, const struct ap_flat_op *op)
{
	for (uint32_t i = 0; i < op->nin; i++)
		if (op->in[i].kind == AP_FLAT_TENSOR)
			return l->flat->tensors.v[op->in[i].id].type.dtype;
	return AP_DTYPE_COUNT;
}

/* A constant in the place of a tensor. */
static enum ap_status add_constant(struct lower *l, struct lower_op *o,
	const struct ap_flat_value *v, uint32_t k)
{
	struct ap_shape shape = {.dtype = ap_import_dtype(v->c->of)};
	bool number = v->c->kind == AP_IR_INT || v->c->kind == AP_IR_FLOAT || v->c->kind == AP_IR_BOOL;

	if (number && type_beside(l, o->from) != AP_DTYPE_COUNT)
		shape.dtype = type_beside(l, o->from);
	if ((!number && v->c->kind != AP_IR_TENSOR) || v->c->n > AP_MAX_RANK ||
		shape.dtype == AP_DTYPE_COUNT)
		return ap_lower_fault(l, o->from, "operator-inputs",
			"operand %" PRIu32 " is a constant that is no tensor", k + 1);
	if (v->c->kind == AP_IR_TENSOR)
		shape.rank = (uint8_t)v->c->n;
	for (uint8_t i = 0; i < shape.rank; i++) {
		shape.dim[i] = v->c->v[i].kind == AP_IR_INT ? v->c->v[i].i : 0;
		if (shape.dim[i] < 1 || shape.dim[i] > INT32_MAX)
			return ap_lower_fault(l, o->from, "shape-extent",
				"operand %" PRIu32 " has a length that is none", k + 1);
	}
	add_operand(l, o, constant(l, o->from, &shape, v->c->s), number);
	return AP_OK;
}

static enum ap_status add_tensor(struct lower *l, struct lower_op *o, const struct ap_flat_value *v,
	uint32_t k, bool fixed)
{
	if (v->kind == AP_FLAT_CONST)
		return add_constant(l, o, v, k);
	if (v->kind != AP_FLAT_TENSOR)
		return ap_lower_fault(l, o->from, "operator-inputs",
			"operand %" PRIu32 " is no tensor", k + 1);
	if (l->tensor[v->id] == AP_NONE) /* what is wrong with it has been told */
		return AP_MEANING;
	if (!l->g->tensors.v[l->tensor[v->id]].shaped)
		return ap_lower_fault(l, o->from, "operator-inputs",
			"the dump does not tell the shape of operand %" PRIu32, k + 1);
	l->learned_use[v->id] |= !fixed;
	add_operand(l, o, l->tensor[v->id], false);
	return AP_OK;
}

static enum ap_status add_many(struct lower *l, struct lower_op *o, const struct ap_flat_value *v,
	uint32_t k)
{
	if (v->kind == AP_FLAT_CONST && v->c->kind == AP_IR_LIST) {
		for (uint32_t i = 0; i < v->c->n; i++) {
			struct ap_flat_value one = {.kind = AP_FLAT_CONST, .c = &v->c->v[i]};

			AP_TRY(add_constant(l, o, &one, k));
		}
		return AP_OK;
	}
	if (v->kind != AP_FLAT_TUPLE)
		return add_tensor(l, o, v, k, false);
	for (uint32_t i = 0; i < v->n; i++)
		AP_TRY(add_tensor(l, o, &v->v[i], k, false));
	return AP_OK;
}

static enum ap_status add_attr(struct lower *l, struct lower_op *o, const struct ap_prim_slot *s,
	const struct ap_flat_value *v, uint32_t k)
{
	if (v->kind == AP_FLAT_NOTHING)
		return AP_OK;
	if (v->kind == AP_FLAT_CONST)
		return ap_lower_attr(l, o, s->name, v->c);
	return ap_lower_fault(l, o->from, "operator-inputs", "operand %" PRIu32 " (%s) is computed while "
		"the network runs; expected a constant", k + 1, s->name);
}

static enum ap_status add_slot(struct lower *l, struct lower_op *o, const struct ap_prim_slot *s,
	uint32_t k)
{
	const struct ap_flat_value *v = &o->from->in[k];

	if (s->constant)
		return add_attr(l, o, s, v, k);
	if (v->kind == AP_FLAT_NOTHING && s->optional) {
		add_operand(l, o, AP_NONE, false);
		return AP_OK;
	}
	return s->many ? add_many(l, o, v, k) : add_tensor(l, o, v, k, s->fixed);
}

/* Operands in the dump: all, or, as before 2.3, without the constants that are attributes there. */
static bool fits(const struct ap_prim_slot *slot, uint32_t n, bool all, uint32_t given)
{
	uint32_t most = 0, least = 0;

	for (uint32_t i = 0; i < n; i++) {
		most += all || !slot[i].constant || slot[i].always;
		least += (all || !slot[i].constant || slot[i].always) && !(slot[i].optional && !all);
	}
	return given >= least && given <= most;
}

static const char *slot_names(struct lower *l, const struct ap_prim_slot *slot, uint32_t n)
{
	struct ap_str s;

	ap_str_init(&s, l->ctx->arena);
	for (uint32_t i = 0; i < n; i++)
		ap_str_addf(&s, "%s%s", i ? ", " : "", slot[i].name);
	return s.s;
}

/* An operator that the table does not know: its tensors, in order. Old dumps have no constants there. */
static enum ap_status add_untold(struct lower *l, struct lower_op *o)
{
	for (uint32_t k = 0; k < o->from->nin; k++) {
		const struct ap_flat_value *v = &o->from->in[k];

		if (v->kind == AP_FLAT_NOTHING) {
			if (o->from->node->in[k].kind == AP_IR_NONE)
				add_operand(l, o, AP_NONE, false);
			continue;
		}
		if (v->kind == AP_FLAT_CONST && v->c->kind != AP_IR_TENSOR) {
			if (o->known)
				return ap_lower_fault(l, o->from, "operator-inputs", "operand %" PRIu32
					" is a constant, of which it is not known what it says", k + 1);
			AP_TRY(ap_diag_add(l->ctx->diag, AP_WARNING, AP_OK,
				&(struct ap_where){.file = l->flat->ir->file, .line = o->from->node->line},
				"dump-constant", "%s: constant operand %" PRIu32 " is left out",
				ap_diag_name(l->ctx->diag, o->from->node->prim), k + 1));
			continue;
		}
		AP_TRY(add_many(l, o, v, k));
	}
	while (o->in.n && o->in.v[o->in.n - 1] == AP_NONE)
		o->in.n--;
	return AP_OK;
}

enum ap_status ap_lower_operands(struct lower *l, struct lower_op *o)
{
	uint32_t n, k = 0, given = o->from->nin;
	const struct ap_prim_slot *slot = ap_prim_slots(l->prims, o->from->node->prim, &n);
	bool all;

	if (!slot)
		slot = ap_prim_slots(l->prims, o->type, &n);
	if (!slot)
		return add_untold(l, o);
	all = o->from->node->listed || fits(slot, n, true, given);
	if (!fits(slot, n, all, given))
		return ap_lower_fault(l, o->from, "operator-inputs",
			"%" PRIu32 " operands; expected %s", given, slot_names(l, slot, n));
	for (uint32_t i = 0; i < n && k < given; i++)
		if (all || !slot[i].constant || slot[i].always)
			AP_TRY(add_slot(l, o, &slot[i], k++));
	while (o->in.n && o->in.v[o->in.n - 1] == AP_NONE)
		o->in.n--;
	return AP_OK;
}
