/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: constants among the operands, those of the primitive, and what marks a node. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "import/dtype.h"
#include "import/lower.h"
#include "rule/attr.h"

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

/* A word; where a number stands for one, what it says in this attribute. */
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

/* A value of the attribute's declared type; false where it is none. */
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

static const struct ap_attr *given(const struct lower_op *o, const char *name)
{
	const struct ap_attrs attrs = {.n = (uint32_t)o->attrs.n, .v = o->attrs.v};

	return ap_attr_get(&attrs, name);
}

enum ap_status ap_lower_attr(struct lower *l, struct lower_op *o, const char *name,
	const struct ap_ir_value *v)
{
	struct ap_attr a = {0};
	enum ap_attr_type type;

	a.name = ap_attr_find(o->type, name, &type);
	if (!a.name || type == AP_ATTR_ANY || v->kind == AP_IR_NONE || given(o, a.name))
		return AP_OK;
	if (!convert(l, v, type, &a))
		return ap_lower_fault(l, o->from, "attr-type",
			"%s has a value that is not understood: %s", name,
			v->kind == AP_IR_LIST ? "a list" : ap_diag_name(l->ctx->diag, v->s));
	AP_PUSH(l->ctx->arena, o->attrs, a);
	return AP_OK;
}

static void mark_recompute(struct lower_op *o, const struct ap_ir_value *v)
{
	o->out.recompute = v->i != 0;
}

static void mark_comm(struct lower_op *o, const struct ap_ir_value *v)
{
	o->out.keeps_comm = !v->i;
}

static void mark_slices(struct lower_op *o, const struct ap_ir_value *v)
{
	o->out.slices = v->i != 0;
}

static void mark_cross_batch(struct lower_op *o, const struct ap_ir_value *v)
{
	o->out.cross_batch = v->i != 0;
}

static void mark_fusion(struct lower_op *o, const struct ap_ir_value *v)
{
	o->out.fusion = v->i > 0 ? v->i : -1;
}

static void mark_stage(struct lower_op *o, const struct ap_ir_value *v)
{
	o->out.stage = v->i;
}

static void mark_segment(struct lower_op *o, const struct ap_ir_value *v)
{
	o->out.segment = v->i;
}

static void mark_nothing(struct lower_op *o, const struct ap_ir_value *v)
{
	(void)o;
	(void)v;
}

/* What is said of a node, and not of what its primitive computes. */
static const struct {
	const char *key;
	void (*mark)(struct lower_op *o, const struct ap_ir_value *v);
} marks[] = {
	{"recompute", mark_recompute},
	{"recompute_comm_op", mark_comm},
	{"slice_activation", mark_slices},
	{"cross_batch", mark_cross_batch},
	{"fusion", mark_fusion},
	{"stage", mark_stage},
	{"pipeline_stage", mark_stage},
	{"chunk", mark_segment},
	{"segment", mark_segment},
	{"in_strategy", mark_nothing}, /* lower_pin.c */
	{"out_strategy", mark_nothing},
	{"BatchParallel", mark_nothing}, /* MindSpore knows no rule; where we know one, it is searched */
	{"StandAlone", mark_nothing},
	{"micro", mark_nothing}, /* micro.c */
};

static enum ap_status mark(struct lower *l, struct lower_op *o, const struct ap_ir_attr *a, bool *done)
{
	for (size_t i = 0; i < AP_COUNT(marks); i++) {
		if (strcmp(marks[i].key, a->key))
			continue;
		*done = true;
		if (marks[i].mark != mark_nothing && (!is_int(&a->value) || a->value.i > INT32_MAX ||
			a->value.i < -1))
			return ap_lower_fault(l, o->from, "attr-type",
				"%s has a value that is not understood", a->key);
		marks[i].mark(o, &a->value);
	}
	return AP_OK;
}

static enum ap_status add_attr(struct lower *l, struct lower_op *o, const struct ap_ir_attr *a)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = o->from->node->line};
	enum ap_attr_type type;
	const char *key = ap_prim_attr(a->key);
	bool done = false, fresh;

	AP_TRY(mark(l, o, a, &done));
	if (done || ap_prim_ignores(o->type, key))
		return AP_OK;
	if (o->known && ap_attr_find(o->type, key, &type))
		return ap_lower_attr(l, o, key, &a->value);
	ap_map_put_str(l->unknown, ap_arena_printf(l->ctx->arena, "%s %s", o->type, a->key), &fresh);
	return !fresh ? AP_OK : ap_diag_add(l->ctx->diag, AP_WARNING, AP_OK, &where, "attr-unknown",
		"%s: attribute %s is not known and is left out", ap_diag_name(l->ctx->diag, o->type),
		ap_diag_name(l->ctx->diag, a->key));
}

/* Of a node itself only marks are of interest: the rest is MindSpore's bookkeeping. */
enum ap_status ap_lower_attrs(struct lower *l, struct lower_op *o)
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
