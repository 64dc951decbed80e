/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: constant operands, those of the primitive, and marks of the node. */
#include "import/lower.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "graph/cell.h"
#include "graph/check.h"
#include "import/dtype.h"
#include "import/ir_parse.h"
#include "rule/attr.h"
#include "rule/bind.h"
#include "rule/binding.h"
#include "rule/op.h"

static bool is_int(const struct ap_ir_value *v)
{
	return v->kind == AP_IR_INT || v->kind == AP_IR_BOOL;
}

static bool to_ints(struct lower *l, const struct ap_ir_value *v, struct ap_attr *a)
{
	int64_t *list;

	if (is_int(v)) {
		a->type = AP_ATTR_INT;
		a->i = v->i;
		return true;
	}
	if (v->kind != AP_IR_LIST)
		return false;
	list = AP_NEW_N(l->ctx->arena, int64_t, v->n);
	for (uint32_t i = 0; i < v->n; i++) {
		if (!is_int(&v->v[i]))
			return false;
		list[i] = v->v[i].i;
	}
	a->type = AP_ATTR_INTS;
	a->list = list;
	a->n = v->n;
	return true;
}

/* Converts a word, or a number that stands for one in this attribute. */
static bool to_word(struct ap_attr *a, const struct ap_ir_value *v)
{
	bool dtype = strstr(a->name, "type") != NULL;
	enum ap_dtype t = AP_DTYPE_COUNT;

	a->s = v->kind == AP_IR_WORD ? v->s : is_int(v) ? ap_prim_number(a->name, v->i) : NULL;
	if (dtype)
		t = v->kind == AP_IR_WORD ? ap_import_dtype(v->s)
			: is_int(v) ? ap_import_type_id(v->i) : AP_DTYPE_COUNT;
	if (t != AP_DTYPE_COUNT)
		a->s = ap_dtype_name(t);
	return a->s != NULL;
}

/* Converts a value to the attribute's type; false if impossible. */
static bool convert(struct lower *l, const struct ap_ir_value *v, enum ap_attr_type type,
	struct ap_attr *a)
{
	if (v->kind == AP_IR_LIST && v->n == 1 && type != AP_ATTR_INTS && type != AP_ATTR_PAIR)
		v = v->v;
	a->type = type;
	switch (type) {
	case AP_ATTR_INT:
	case AP_ATTR_BOOL:
		a->i = v->i;
		return is_int(v);
	case AP_ATTR_FLOAT:
		a->f = v->f;
		return v->kind == AP_IR_FLOAT || v->kind == AP_IR_INT;
	case AP_ATTR_STRING:
		return to_word(a, v);
	case AP_ATTR_INTS:
	case AP_ATTR_PAIR:
		return to_ints(l, v, a);
	default:
		return true;
	}
}

/* Marks of a node, which do not change what its primitive computes: target field and conversion. */
static const struct {
	const char *key;
	size_t to; /* offset in struct ap_import_op */
	enum { NOTHING, FLAG, NO_FLAG, NUMBER, NUMBER_OF_SOME } as; /* NUMBER_OF_SOME: 0 means none */
} marks[] = {
	{"recompute", offsetof(struct ap_import_op, recompute), FLAG},
	{"recompute_comm_op", offsetof(struct ap_import_op, keeps_comm), NO_FLAG},
	{"slice_activation", offsetof(struct ap_import_op, slices), FLAG},
	{"cross_batch", offsetof(struct ap_import_op, cross_batch), FLAG},
	{"fusion", offsetof(struct ap_import_op, fusion), NUMBER_OF_SOME},
	{"stage", offsetof(struct ap_import_op, stage), NUMBER},
	{"pipeline_stage", offsetof(struct ap_import_op, stage), NUMBER},
	{"chunk", offsetof(struct ap_import_op, segment), NUMBER},
	{"segment", offsetof(struct ap_import_op, segment), NUMBER},
	{"in_strategy", 0, NOTHING}, /* see pins() */
	{"out_strategy", 0, NOTHING},
	{"BatchParallel", 0, NOTHING}, /* MindSpore has no rule; if we have one, it is searched */
	{"StandAlone", 0, NOTHING},
	{"micro", 0, NOTHING}, /* micro.c */
};

/* Reports at a line of the dump, prefixed "operator: " if given. */
static enum ap_status __attribute__((format(printf, 7, 8))) say(struct lower *l, enum ap_level level,
	enum ap_status st, int64_t line, const char *check, const char *oper, const char *fmt, ...)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = line};
	struct ap_str text;
	va_list ap;

	ap_str_init(&text, l->ctx->arena);
	if (oper)
		ap_str_addf(&text, "%s: ", ap_diag_name(l->ctx->diag, oper));
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	return ap_diag_add(l->ctx->diag, level, st, &where, check, "%s", text.s);
}

/* Reports a fault in an operator; returns AP_MEANING. */
static enum ap_status __attribute__((format(printf, 4, 5))) lower_fault(struct lower *l,
	const struct ap_flat_op *op, const char *check, const char *fmt, ...)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = op->node->line};
	struct ap_str text;
	va_list ap;

	ap_str_init(&text, l->ctx->arena);
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	return ap_diag_add(l->ctx->diag, AP_ERROR, AP_MEANING, &where, check, "%s: %s",
		ap_diag_name(l->ctx->diag, op->node->prim), text.s);
}

static enum ap_status mark(struct lower *l, struct lower_op *o, const struct ap_ir_attr *a, bool *done)
{
	unsigned char *to = (unsigned char *)&o->out;
	const int64_t none = -1;

	for (size_t i = 0; i < AP_COUNT(marks); i++) {
		if (strcmp(marks[i].key, a->key))
			continue;
		*done = true;
		if (marks[i].as == NOTHING)
			return AP_OK;
		if (!is_int(&a->value) || a->value.i > INT32_MAX || a->value.i < -1)
			return lower_fault(l, o->from, "attr-type",
				"%s has a value that is not understood", a->key);
		if (marks[i].as == FLAG || marks[i].as == NO_FLAG)
			to[marks[i].to] = !a->value.i == (marks[i].as == NO_FLAG);
		else
			memcpy(to + marks[i].to,
				marks[i].as == NUMBER || a->value.i > 0 ? &a->value.i : &none, sizeof none);
	}
	return AP_OK;
}

/* Sets an attribute from a constant. Constants without a name in any rule are dropped; the first
 * value stays. */
static enum ap_status attr(struct lower *l, struct lower_op *o, const char *name,
	const struct ap_ir_value *v)
{
	const struct ap_attrs given = {.n = (uint32_t)o->attrs.n, .v = o->attrs.v};
	struct ap_attr a = {0};
	enum ap_attr_type type;

	a.name = ap_attr_find(o->type, name, &type);
	if (!a.name || type == AP_ATTR_ANY || v->kind == AP_IR_NONE || ap_attr_get(&given, a.name))
		return AP_OK;
	if (!convert(l, v, type, &a))
		return lower_fault(l, o->from, "attr-type",
			"%s has a value that is not understood: %s", name,
			v->kind == AP_IR_LIST ? "a list" : ap_diag_name(l->ctx->diag, v->s));
	AP_PUSH(l->ctx->arena, o->attrs, a);
	return AP_OK;
}

static enum ap_status add_attr(struct lower *l, struct lower_op *o, const struct ap_ir_attr *a)
{
	enum ap_attr_type type;
	const char *key = ap_prim_attr(a->key);
	bool done = false, fresh;

	AP_TRY(mark(l, o, a, &done));
	if (done || ap_prim_ignores(o->type, key))
		return AP_OK;
	if (o->known && ap_attr_find(o->type, key, &type))
		return attr(l, o, key, &a->value);
	ap_map_put_str(l->unknown, ap_arena_printf(l->ctx->arena, "%s %s", o->type, a->key), &fresh);
	return !fresh ? AP_OK : say(l, AP_WARNING, AP_OK, o->from->node->line, "attr-unknown", o->type,
		"attribute %s is not known and is left out", ap_diag_name(l->ctx->diag, a->key));
}

/* Reads attributes; of those of the node itself only marks matter. */
static enum ap_status lower_attrs(struct lower *l, struct lower_op *o)
{
	const struct ap_ir_node *n = o->from->node;
	const struct ap_ir_attrs *bookkeeping[] = {&n->node_attrs, &n->primal_attrs};
	bool done;

	for (size_t i = 0; i < n->prim_attrs.n; i++)
		AP_TRY(add_attr(l, o, &n->prim_attrs.v[i]));
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < bookkeeping[k]->n; i++)
			AP_TRY(mark(l, o, &bookkeeping[k]->v[i], &done));
	return AP_OK;
}

/* The tensor of a constant: one for equal constants whose values the dump gives in full. */
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

static void add_operand(struct lower *l, struct lower_op *o, ap_id tensor, bool number)
{
	AP_PUSH(l->ctx->arena, o->in, tensor);
	AP_PUSH(l->ctx->arena, o->number, number);
}

/* Element type of the first tensor operand, for numbers among operands. */
static enum ap_dtype type_beside(const struct lower *l, const struct ap_flat_op *op)
{
	for (uint32_t i = 0; i < op->nin; i++)
		if (op->in[i].kind == AP_FLAT_TENSOR)
			return l->flat->tensors.v[op->in[i].id].type.dtype;
	return AP_DTYPE_COUNT;
}

/* Adds a constant as a tensor operand. */
static enum ap_status add_constant(struct lower *l, struct lower_op *o,
	const struct ap_flat_value *v, uint32_t k)
{
	struct ap_shape shape = {.dtype = ap_import_dtype(v->c->of)};
	bool number = v->c->kind == AP_IR_INT || v->c->kind == AP_IR_FLOAT || v->c->kind == AP_IR_BOOL;

	if (number && type_beside(l, o->from) != AP_DTYPE_COUNT)
		shape.dtype = type_beside(l, o->from);
	if ((!number && v->c->kind != AP_IR_TENSOR) || v->c->n > AP_MAX_RANK ||
		shape.dtype == AP_DTYPE_COUNT)
		return lower_fault(l, o->from, "operator-inputs",
			"operand %" PRIu32 " is a constant that is no tensor", k + 1);
	if (v->c->kind == AP_IR_TENSOR)
		shape.rank = (uint8_t)v->c->n;
	for (uint8_t i = 0; i < shape.rank; i++) {
		shape.dim[i] = v->c->v[i].kind == AP_IR_INT ? v->c->v[i].i : 0;
		if (shape.dim[i] < 1 || shape.dim[i] > INT32_MAX)
			return lower_fault(l, o->from, "shape-extent",
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
		return lower_fault(l, o->from, "operator-inputs",
			"operand %" PRIu32 " is no tensor", k + 1);
	if (l->tensor[v->id] == AP_NONE) /* already reported */
		return AP_MEANING;
	if (!l->g->tensors.v[l->tensor[v->id]].shaped)
		return lower_fault(l, o->from, "operator-inputs",
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

static enum ap_status add_slot(struct lower *l, struct lower_op *o, const struct ap_prim_slot *s,
	uint32_t k)
{
	const struct ap_flat_value *v = &o->from->in[k];

	if (s->constant) {
		if (v->kind == AP_FLAT_NOTHING)
			return AP_OK;
		if (v->kind == AP_FLAT_CONST)
			return attr(l, o, s->name, v->c);
		return lower_fault(l, o->from, "operator-inputs",
			"operand %" PRIu32 " (%s) is computed while "
			"the network runs; expected a constant", k + 1, s->name);
	}
	if (v->kind == AP_FLAT_NOTHING && s->optional) {
		add_operand(l, o, AP_NONE, false);
		return AP_OK;
	}
	return s->many ? add_many(l, o, v, k) : add_tensor(l, o, v, k, s->fixed);
}

/* Does the number of operands fit: all, or, before 2.3, without constants that were attributes? */
static bool fits(const struct ap_prim_slot *slot, uint32_t n, bool all, uint32_t given)
{
	uint32_t most = 0, least = 0;

	for (uint32_t i = 0; i < n; i++) {
		most += all || !slot[i].constant || slot[i].always;
		least += (all || !slot[i].constant || slot[i].always) && !(slot[i].optional && !all);
	}
	return given >= least && given <= most;
}

/* Adds tensors of an operator without a row, in order. Old dumps have no constants there. */
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
				return lower_fault(l, o->from, "operator-inputs", "operand %" PRIu32
					" is a constant, of which it is not known what it says", k + 1);
			AP_TRY(say(l, AP_WARNING, AP_OK, o->from->node->line, "dump-constant",
				o->from->node->prim, "constant operand %" PRIu32 " is left out", k + 1));
			continue;
		}
		AP_TRY(add_many(l, o, v, k));
	}
	while (o->in.n && o->in.v[o->in.n - 1] == AP_NONE)
		o->in.n--;
	return AP_OK;
}

/* Reads operands, and attributes among them. */
static enum ap_status lower_operands(struct lower *l, struct lower_op *o)
{
	uint32_t n, k = 0, given = o->from->nin;
	const struct ap_prim_slot *slot = ap_prim_slots(l->prims, o->from->node->prim, &n);
	bool all;

	if (!slot)
		slot = ap_prim_slots(l->prims, o->type, &n);
	if (!slot)
		return add_untold(l, o);
	all = o->from->node->listed || fits(slot, n, true, given);
	if (!fits(slot, n, all, given)) {
		struct ap_str names;

		ap_str_init(&names, l->ctx->arena);
		for (uint32_t i = 0; i < n; i++)
			ap_str_addf(&names, "%s%s", i ? ", " : "", slot[i].name);
		return lower_fault(l, o->from, "operator-inputs",
			"%" PRIu32 " operands; expected %s", given, names.s);
	}
	for (uint32_t i = 0; i < n && k < given; i++)
		if (all || !slot[i].constant || slot[i].always)
			AP_TRY(add_slot(l, o, &slot[i], k++));
	while (o->in.n && o->in.v[o->in.n - 1] == AP_NONE)
		o->in.n--;
	return AP_OK;
}

static bool is_vector(const struct ap_ir_value *v)
{
	for (uint32_t i = 0; i < v->n; i++)
		if (v->v[i].kind != AP_IR_INT)
			return false;
	return v->kind == AP_IR_LIST;
}

/* Counts vectors in nested lists: tuple operands have lists of their own. */
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

static enum ap_status read_pin(struct lower *l, const struct lower_op *o, const char *key,
	const struct ap_ir_value *v, struct ap_import_pin *pin)
{
	uint32_t n = 0;

	if (!count_vectors(v, &n) || !n)
		return lower_fault(l, o->from, "pin-length", "%s is not a list of vectors", key);
	pin->given = true;
	pin->v = ap_arena_alloc(l->ctx->arena, n, sizeof *pin->v);
	add_vectors(l, v, pin);
	return AP_OK;
}

/* Adds empty vectors for number operands, which have none in MindSpore. */
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

/* Checks that a vector's parts divide the dimensions of its tensor. */
static enum ap_status check_vector(struct lower *l, const struct lower_op *o, size_t i, uint32_t k)
{
	const struct ap_import_tensor *t = &l->g->tensors.v[o->in.v[i]];
	uint32_t n = o->out.in_pin.v[k].n;
	const int64_t *cut = o->out.in_pin.v[k].v;

	if (!t->shaped || o->number.v[i])
		return AP_OK;
	if (n != t->shape.rank)
		return lower_fault(l, o->from, "pin-length", "vector %" PRIu32 " of in_strategy has %"
			PRIu32 " numbers; its tensor has %d dimensions", k, n, t->shape.rank);
	for (uint32_t d = 0; d < n; d++)
		if (cut[d] < 1 || t->shape.dim[d] % cut[d])
			return lower_fault(l, o->from, "pin-value", "vector %" PRIu32 " of in_strategy "
				"cuts a length of %" PRId64 " in %" PRId64 " parts", k, t->shape.dim[d],
				cut[d]);
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
	if (pin->n == operands) {
		uint32_t k = 0;

		for (size_t i = 0; i < o->in.n; i++)
			if (o->in.v[i] != AP_NONE)
				AP_TRY(check_vector(l, o, i, k++));
		return AP_OK;
	}
	return lower_fault(l, o->from, "pin-length", "in_strategy has %" PRIu32 " vectors for %" PRIu32
		" tensors", pin->n, operands);
}

static bool is_given(const struct ap_ir_value *v)
{
	return v && v->kind != AP_IR_NONE && !(v->kind == AP_IR_LIST && !v->n);
}

/* Reads in_strategy and out_strategy. */
static enum ap_status pins(struct lower *l, struct lower_op *o)
{
	const struct ap_ir_node *n = o->from->node;
	const struct ap_ir_value *in = ap_ir_attr(&n->prim_attrs, "in_strategy"),
		*out = ap_ir_attr(&n->prim_attrs, "out_strategy");
	const struct ap_op_row *row;

	if (l->flat->sliced)
		return AP_OK;
	row = o->known ? ap_op_next(NULL, o->type) : NULL;
	if (!is_given(in) && l->params->searched && row && ap_op_has_strategy(row) && !ap_op_follows(row)) {
		in = ap_ir_attr(&n->derived, "in_strategy");
		out = ap_ir_attr(&n->derived, "out_strategy");
	}
	if (is_given(in))
		AP_TRY(read_in_pin(l, o, in));
	if (is_given(in) && is_given(out))
		AP_TRY(read_pin(l, o, "out_strategy", out, &o->out.out_pin));
	if (!ap_ir_attr(&n->prim_attrs, "in_layout"))
		return AP_OK;
	return say(l, AP_WARNING, AP_OK, n->line, "pin-layout", o->type,
		"a strategy given as layouts is left out; expected in_strategy");
}

static enum ap_status compare(struct lower *l, const struct lower_op *o, const struct ap_bound *b)
{
	for (uint32_t k = 0; k < o->out.nout && k < b->nout; k++) {
		struct ap_import_tensor *t = &l->g->tensors.v[o->out.out + k];
		const struct ap_operand *r = &b->out[k];
		struct ap_arena *scratch = l->ctx->scratch;

		if (!t->shaped) {
			/* old dumps lack shapes in tuples: take the rule's */
			t->shape.rank = r->rank;
			memcpy(t->shape.dim, r->size, r->rank * sizeof *r->size);
			t->shaped = true;
		}
		if (t->shape.rank != r->rank ||
			memcmp(t->shape.dim, r->size, r->rank * sizeof *r->size))
			return lower_fault(l, o->from, "output-shape",
				"result %" PRIu32 " has the shape %s; from its operands follows %s", k,
				ap_shape_text(scratch, t->shape.dim, t->shape.rank),
				ap_shape_text(scratch, r->size, r->rank));
		if (t->shape.dtype != r->dtype)
			return lower_fault(l, o->from, "output-dtype",
				"result %" PRIu32 " is %s; from its operands follows %s", k,
				ap_dtype_name(t->shape.dtype), ap_dtype_name(r->dtype));
	}
	return AP_OK;
}

/* Checks that a rule fits, and that results have the shapes it gives. */
static enum ap_status lower_bind(struct lower *l, const struct lower_op *o)
{
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct ap_ctx ctx = *l->ctx;
	struct ap_attrs attrs = {.n = (uint32_t)o->attrs.n, .v = o->attrs.v};
	struct ap_bind_in want = {.type = o->type, .attrs = &attrs};
	struct ap_bind_fault fault = {0};
	struct ap_bound bound;
	enum ap_status st = AP_OK;
	struct ap_arena *a;
	struct ap_shape *in, *out;
	uint16_t *slot;

	if (o->in.n > AP_MAX_OPERAND || o->out.nout > AP_MAX_OPERAND)
		return lower_fault(l, o->from, "operator-inputs", "more than %d operands", AP_MAX_OPERAND);
	if (!o->known)
		return AP_OK;
	ctx.arena = ctx.scratch;
	/* rules do not see operands that are left out */
	a = l->ctx->scratch;
	in = AP_NEW_N(a, struct ap_shape, o->in.n);
	out = AP_NEW_N(a, struct ap_shape, o->out.nout);
	slot = AP_NEW_N(a, uint16_t, o->in.n);
	for (uint32_t i = 0; i < o->in.n; i++) {
		if (o->in.v[i] == AP_NONE)
			continue;
		in[want.nin] = l->g->tensors.v[o->in.v[i]].shape;
		slot[want.nin++] = (uint16_t)i;
	}
	for (uint32_t k = 0; k < o->out.nout; k++) {
		out[k] = l->g->tensors.v[o->out.out + k].shape;
		if (!l->g->tensors.v[o->out.out + k].shaped)
			out[k].rank = AP_RANK_UNKNOWN;
	}
	want.nout = (uint16_t)o->out.nout;
	want.in = in;
	want.slot = slot;
	want.declared = out;
	if (ap_rule_bind(&ctx, &want, &bound, &fault) != AP_OK)
		st = lower_fault(l, o->from, fault.check, "%s", fault.text);
	else
		st = compare(l, o, &bound);
	ap_arena_release(l->ctx->scratch, mark);
	return st;
}

#define RECOMPUTED "recompute_"

static bool is_recomputed(const struct ap_ir_node *n)
{
	return n->scope && !strncmp(n->scope, RECOMPUTED, strlen(RECOMPUTED));
}

/* The scope or full name without "recompute_". */
static const char *plain_scope(const struct ap_ir_node *n)
{
	const char *scope = n->scope && *n->scope ? n->scope : "Default";

	return scope + (is_recomputed(n) ? strlen(RECOMPUTED) : 0);
}

/* "scope/MatMul", without a full name's number. */
static const char *base_of(struct lower *l, const struct ap_ir_node *n)
{
	const char *scope = plain_scope(n);
	size_t len;

	if (!n->full)
		return ap_arena_printf(l->ctx->arena, "%s/%s", scope, n->prim);
	for (len = strlen(scope); len && isdigit((unsigned char)scope[len - 1]); len--)
		;
	if (len > 3 && scope[len] && !strncmp(scope + len - 3, "-op", 3))
		return ap_arena_strndup(l->ctx->arena, scope, len - 3);
	return scope;
}

/* The name in the dump if it is full and unused; else one with the next free number, counted in
 * l->made. */
static const char *name_of(struct lower *l, const struct ap_ir_node *n)
{
	const char *base, *name;
	bool fresh;
	ap_id id;

	if (n->full && *n->scope) {
		ap_map_put_str(l->op_names, n->scope, &fresh);
		if (fresh)
			return n->scope;
	}
	l->made_line = l->made ? l->made_line : n->line;
	l->made++;
	base = base_of(l, n);
	id = ap_map_put_str(l->bases, base, &fresh);
	if (fresh)
		AP_PUSH(l->ctx->arena, l->numbers, 0);
	do {
		name = ap_arena_printf(l->ctx->arena, "%s-op%" PRIu32, base, l->numbers.v[id]++);
		ap_map_put_str(l->op_names, name, &fresh);
	} while (!fresh);
	return name;
}

/* A tensor name not yet used. */
static const char *free_name(struct lower *l, const char *name)
{
	const char *tried = name;
	bool fresh;
	ap_id wanted = ap_map_put_str(l->tensor_names, tried, &fresh), id = wanted;

	for (;;) {
		while (l->tensor_numbers.n <= id)
			AP_PUSH(l->ctx->arena, l->tensor_numbers, 1);
		if (fresh)
			return tried;
		tried = ap_arena_printf(l->ctx->arena, "%s.%" PRIu32, name, l->tensor_numbers.v[wanted]++);
		id = ap_map_put_str(l->tensor_names, tried, &fresh);
	}
}

static enum ap_status add_plain_tensor(struct lower *l, const struct ap_flat_tensor *t, const char *name,
	ap_id *id)
{
	struct ap_import_tensor out = {.name = free_name(l, name), .kind = t->kind,
		.shape = {.dtype = t->type.dtype}, .shaped = t->type.shaped, .read_as = AP_DTYPE_COUNT};

	if (t->type.rank > AP_MAX_RANK || t->type.dtype == AP_DTYPE_COUNT ||
		(!t->type.shaped && t->kind != AP_TENSOR_ACT))
		return say(l, AP_ERROR, AP_MEANING, t->line, NULL, NULL, "%s has %s",
			ap_diag_name(l->ctx->diag, out.name), t->type.rank > AP_MAX_RANK
			? "more than 8 dimensions" : t->type.dtype == AP_DTYPE_COUNT
			? "an element type that is not planned with" : "no shape");
	out.shape.rank = t->type.rank;
	for (uint8_t i = 0; i < t->type.rank; i++) {
		if (t->type.dim[i] < 1 || t->type.dim[i] > INT32_MAX)
			return say(l, AP_ERROR, AP_MEANING, t->line, "shape-extent", NULL,
				"%s has a length of %" PRId64 "%s; expected a network whose shapes are fixed",
				ap_diag_name(l->ctx->diag, out.name), t->type.dim[i],
				t->type.dim[i] < 0 ? ", which is not known before it runs" : "");
		out.shape.dim[i] = t->type.dim[i];
	}
	out.learned = t->kind == AP_TENSOR_PARAM && ap_dtype_is_float(t->type.dtype);
	*id = (ap_id)l->g->tensors.n;
	AP_PUSH(l->ctx->arena, l->g->tensors, out);
	return AP_OK;
}

/* Adds results named "layer1.MatMul-op0": the operator's name without classes. */
static enum ap_status add_results(struct lower *l, struct lower_op *o)
{
	const char *cell = o->out.cell ? o->out.cell : ap_graph_cell(l->ctx, o->out.name);
	const char *last = strrchr(o->out.name, '/'), *name = last ? last + 1 : o->out.name;

	if (*cell)
		name = ap_arena_printf(l->ctx->arena, "%s.%s", cell, name);
	o->out.nout = o->from->nout;
	o->out.out = (ap_id)l->g->tensors.n;
	for (uint32_t k = 0; k < o->from->nout; k++) {
		ap_id t = o->from->out + k;

		AP_TRY(add_plain_tensor(l, &l->flat->tensors.v[t], k ? ap_arena_printf(l->ctx->arena,
			"%s:%" PRIu32, name, k) : name, &l->tensor[t]));
	}
	return AP_OK;
}

/* Finds the operator type of a primitive. */
static enum ap_status find_type(struct lower *l, struct lower_op *o)
{
	const char *prim = o->from->node->prim, *nearest = NULL, *why;
	bool fresh;
	ap_id id = ap_map_put_str(l->types, prim, &fresh);

	if (fresh)
		AP_PUSH(l->ctx->arena, l->canonical, ap_op_canonical(prim, NULL));
	o->type = l->canonical.v[id];
	o->known = o->type != NULL;
	if (o->known)
		return AP_OK;
	o->type = prim;
	ap_op_canonical(prim, &nearest);
	why = ap_op_unsupported(prim);
	if (why)
		return lower_fault(l, o->from, "operator-known", "%s", why);
	if (!l->params->unknown_batch_parallel)
		return lower_fault(l, o->from, "operator-known",
			"no operator of this type is known%s%s%s; --unknown-operators "
			"batch-parallel takes it as MindSpore does",
			nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
	ap_map_put_str(l->unknown, prim, &fresh);
	return !fresh ? AP_OK : say(l, AP_WARNING, AP_OK, o->from->node->line, "operator-assumed", prim,
		"no operator of this type is known; it is taken to work on each sample by itself");
}

/* Sets the attribute of the cell that holds the primitive. */
static enum ap_status find_instance(struct lower *l, struct lower_op *o)
{
	const struct ap_ir_node *n = o->from->node;

	o->out.instance = l->instances ? "" : NULL;
	if (!n->instance)
		return AP_OK;
	if (ap_instance_is_path(n->instance)) {
		o->out.instance = n->instance;
		return AP_OK;
	}
	return say(l, AP_WARNING, AP_OK, n->line, "instance-path", n->prim,
		"the instance name \"%s\" is left out; expected an attribute of Python",
		ap_diag_name(l->ctx->diag, n->instance));
}

/* Counts the size of the output: long names are repeated by all readers. */
static enum ap_status check_written(struct lower *l, const struct lower_op *o)
{
	l->written += strlen(o->out.name);
	for (uint32_t k = 0; k < o->out.nout; k++)
		l->written += strlen(l->g->tensors.v[o->out.out + k].name);
	for (uint32_t k = 0; k < o->out.nin; k++)
		l->written += o->out.in[k] == AP_NONE ? 4 : strlen(l->g->tensors.v[o->out.in[k]].name);
	for (uint32_t k = 0; k < o->out.attrs.n; k++)
		l->written += 4 * o->out.attrs.v[k].n;
	if (l->written <= l->most)
		return AP_OK;
	return say(l, AP_ERROR, AP_LIMIT, o->out.line, NULL, NULL, "the graph takes more than %zu MB "
		"up to here, though its file has %zu kB: long names are repeated; at most %d MB and %d times "
		"the file are written", l->most >> 20, l->flat->ir->bytes >> 10, AP_IR_SPARE_BYTES >> 20,
		AP_IR_MOST_COPIES);
}

enum { MOST_CELLS = 128 }; /* nested */

static enum ap_status lower_op(struct lower *l, const struct ap_flat_op *op)
{
	struct lower_op o = {.from = op, .out = {.line = op->node->line, .recompute = -1, .stage = -1,
		.segment = -1, .fusion = -1}};
	size_t cells = 0;

	/* names of enclosing cells repeat each other */
	for (const char *at = op->node->scope; at && (at = strchr(at, '/')); at++)
		cells++;
	if (cells > MOST_CELLS)
		return say(l, AP_ERROR, AP_LIMIT, op->node->line, NULL, op->node->prim,
			"%zu cells, one in the other; at most %d are read", cells, MOST_CELLS);
	o.out.name = name_of(l, op->node);
	if (o.out.name == op->node->scope && is_recomputed(op->node)) /* the name does not give the cell */
		o.out.cell = ap_graph_cell(l->ctx, plain_scope(op->node));
	AP_TRY(add_results(l, &o));
	AP_TRY(find_type(l, &o));
	o.out.type = o.type;
	o.out.in_recomputed = is_recomputed(op->node);
	o.out.cell_class = base_of(l, op->node);
	AP_TRY(find_instance(l, &o));
	AP_TRY(lower_operands(l, &o));
	AP_TRY(lower_attrs(l, &o));
	AP_TRY(pins(l, &o));
	o.out.nin = (uint32_t)o.in.n;
	o.out.in = o.in.v;
	o.out.attrs = (struct ap_attrs){.n = (uint32_t)o.attrs.n, .v = o.attrs.v};
	AP_TRY(check_written(l, &o));
	AP_TRY(lower_bind(l, &o));
	AP_PUSH(l->ctx->arena, l->g->ops, o.out);
	return AP_OK;
}

static enum ap_status tell_names(struct lower *l)
{
	if (!l->made)
		return AP_OK;
	return say(l, AP_NOTE, AP_OK, l->made_line, "dump-names", NULL,
		"%" PRIu32 " of %zu operators have no full name of their own here, so that their numbers "
		"are made up; MindSpore's operator strategies may call them otherwise. "
		"NN_pre_auto_parallel and NN_insert-virtual-dataset have full names", l->made,
		l->g->ops.n);
}

/* Adds inputs and parameters that the forward pass uses, in the dump's order. */
static enum ap_status add_sources(struct lower *l)
{
	static const enum ap_tensor_kind kinds[] = {AP_TENSOR_INPUT, AP_TENSOR_PARAM};

	for (size_t k = 0; k < 2; k++)
		for (ap_id t = 0; t < l->flat->tensors.n; t++) {
			const struct ap_flat_tensor *from = &l->flat->tensors.v[t];

			if (from->kind == kinds[k] && from->used)
				AP_TRY(add_plain_tensor(l, from, from->name, &l->tensor[t]));
		}
	return AP_OK;
}

/* Marks dimension 0 of the first input, and of inputs of equal length, as batch. */
static enum ap_status mark_batch(struct lower *l)
{
	struct ap_import_tensor *first = NULL;
	int64_t batch;

	for (size_t i = 0; i < l->g->tensors.n; i++) {
		struct ap_import_tensor *t = &l->g->tensors.v[i];

		if (t->kind != AP_TENSOR_INPUT || t->shape.rank == 0)
			continue;
		if (!first)
			first = t;
		t->batch = t->shape.dim[0] == first->shape.dim[0];
	}
	if (!first || !ap_mul(first->shape.dim[0], l->params->micro_batches, &batch))
		return AP_OK;
	return say(l, AP_NOTE, AP_OK, 0, "dump-batch", NULL, "the batch is %" PRId64 ", dimension 0 of input "
		"%s", batch, ap_diag_name(l->ctx->diag, first->name));
}

/* Marks parameters that are not learned, such as statistics. */
static void mark_learned(struct lower *l)
{
	for (ap_id t = 0; t < l->flat->tensors.n; t++)
		if (l->flat->tensors.v[t].kind == AP_TENSOR_PARAM && l->tensor[t] != AP_NONE &&
			!l->learned_use[t])
			l->g->tensors.v[l->tensor[t]].learned = false;
}

/* Detects the optimizer by its states, parameters unused in the forward pass. */
static void find_optimizer(struct lower *l)
{
	static const struct {
		const char *prefix, *optimizer;
	} states[] = {{"stat.", "sgd"}, {"moment1.", "adam"}, {"adam_m.", "adam_weight_decay"},
		{"lamb_m.", "lamb"}, {"linear.", "ftrl"}, {"mean_square.", "rmsprop"},
		{"moments.", "momentum"}, {"accum.", "adagrad"}};

	for (size_t i = 0; i < AP_COUNT(states); i++)
		for (ap_id t = 0; t < l->flat->tensors.n && !l->g->optimizer; t++) {
			const struct ap_flat_tensor *from = &l->flat->tensors.v[t];

			if (from->kind == AP_TENSOR_PARAM && !from->used &&
				!strncmp(from->name, states[i].prefix, strlen(states[i].prefix)))
				l->g->optimizer = states[i].optimizer;
		}
}

static enum ap_status add_outputs(struct lower *l)
{
	for (size_t i = 0; i < l->flat->outputs.n; i++) {
		ap_id t = l->flat->outputs.v[i];

		if (l->tensor[t] == AP_NONE)
			return say(l, AP_ERROR, AP_MEANING, l->flat->tensors.v[t].line, NULL, NULL,
				"a result of the network is that of one micro-batch alone");
		AP_PUSH(l->ctx->arena, l->g->outputs, l->tensor[t]);
	}
	return AP_OK;
}

enum ap_status ap_lower(struct ap_ctx *ctx, const struct ap_flat *flat,
	const struct ap_import_params *params, struct ap_import *g)
{
	const char *base = ap_file_base(flat->ir->file), *dot = strrchr(base, '.');
	struct ap_arena *a = ctx->arena;
	struct lower l = {.ctx = ctx, .params = params, .flat = flat, .g = g,
		.prims = ap_prims_create(ctx), .tensor_names = ap_map_create(a),
		.op_names = ap_map_create(a), .bases = ap_map_create(a), .constants = ap_map_create(a),
		.unknown = ap_map_create(a), .types = ap_map_create(a),
		.tensor = AP_NEW_N(a, ap_id, flat->tensors.n),
		.learned_use = AP_NEW_N(a, ap_id, flat->tensors.n),
		.most = ap_ir_most_bytes(flat->ir)};
	enum ap_status first = AP_OK;

	memset(l.tensor, 0xff, flat->tensors.n * sizeof *l.tensor);
	for (size_t i = 0; i < flat->ops.n; i++)
		l.instances |= flat->ops.v[i].node->instance != NULL;
	g->name = ap_arena_strndup(a, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
	g->inference = flat->inference;
	AP_RESERVE(a, g->tensors, flat->tensors.n);
	AP_RESERVE(a, g->ops, flat->ops.n);
	AP_TRY(add_sources(&l));
	for (size_t i = 0; i < flat->ops.n; i++) {
		enum ap_status st = flat->ops.v[i].gone ? AP_OK : lower_op(&l, &flat->ops.v[i]);

		if (st == AP_LIMIT || ap_ctx_stopped(ctx))
			return st;
		first = first == AP_OK ? st : first;
	}
	AP_TRY(first);
	mark_learned(&l);
	find_optimizer(&l);
	AP_TRY(add_outputs(&l));
	AP_TRY(tell_names(&l));
	return mark_batch(&l);
}
