/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types, as dumps since 1.1 write them: <Tensor[Float32], (32, 64)>, <Tensor[Float32]x(32, 64)>,
 * <Tensor[Float32]x[const vector][32, 64]>, <Ref[Tensor[Float32]], (8), ref_key=w>,
 * <Tuple[Tensor[Float32]*2,Int64], TupleShape((8), (8), NoShape)>, <UMonad, NoShape>, <null>.
 */
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "import/dtype.h"
#include "import/ir_read.h"

enum { MOST_ALIKE = 1 << 16 }; /* elements of a tuple */

static void set_shape(struct ap_ir_type *t, const struct ap_ir_value *v)
{
	if (v->kind != AP_IR_LIST)
		return;
	t->shaped = true;
	t->rank = (uint8_t)(v->n < UINT8_MAX ? v->n : UINT8_MAX);
	for (uint32_t i = 0; i < v->n && i < AP_MAX_RANK; i++)
		t->dim[i] = v->v[i].kind == AP_IR_INT ? v->v[i].i : -1;
}

/* Shapes of a tuple's elements, where they can be matched. */
static void set_shapes(struct ap_ir_type *t, const struct ap_ir_value *v, uint32_t n)
{
	struct ap_ir_type *element = (struct ap_ir_type *)t->v; /* made by us */

	if (t->form != AP_IR_TYPE_TUPLE || n != t->n)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (element[i].form == AP_IR_TYPE_TENSOR)
			set_shape(&element[i], &v[i]);
}

static bool read_form(struct ap_ir_read *r, struct ap_ir_type *out);

static bool read_elements(struct ap_ir_read *r, struct ap_ir_type *out)
{
	struct {
		struct ap_ir_type *v;
		size_t n, cap;
	} list = {0};
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);

	while (!ap_ir_take(r, "]")) {
		struct ap_ir_type t;
		int64_t times = 1;

		if (!read_form(r, &t))
			return false;
		if (ap_ir_take(r, "*"))
			times = ap_ir_digits(r);
		if (times < 1 || times + (int64_t)list.n > MOST_ALIKE)
			return ap_ir_fault(r, r->line, AP_SYNTAX, "a tuple has an odd number of elements");
		while (times--)
			AP_PUSH(r->ctx->scratch, list, t);
		ap_ir_take(r, ",");
		ap_ir_blanks(r);
		if (r->p == r->end || *r->p == '\n')
			return ap_ir_expected(r, "\"]\"");
	}
	*out = (struct ap_ir_type){.form = AP_IR_TYPE_TUPLE, .dtype = AP_DTYPE_COUNT,
		.n = (uint32_t)list.n, .v = ap_ir_keep(r, mark, list.v, list.n * sizeof *list.v)};
	return true;
}

static bool read_inner(struct ap_ir_read *r, const char *word, struct ap_ir_type *out)
{
	char open = *r->p, close[2] = {open == '(' ? ')' : ']', '\0'};
	const char *text;

	if (!strcmp(word, "Tensor") || !strcmp(word, "Ref")) {
		r->p++;
		if (!strcmp(word, "Ref")) {
			if (!read_form(r, out))
				return false;
			out->ref = true;
		} else {
			*out = (struct ap_ir_type){.form = AP_IR_TYPE_TENSOR,
				.dtype = ap_import_dtype(ap_ir_until(r, ")],>"))};
		}
		return ap_ir_need(r, close);
	}
	if (open == '[' && (!strcmp(word, "Tuple") || !strcmp(word, "List"))) {
		r->p++;
		return read_elements(r, out);
	}
	return ap_ir_balanced(r, &text);
}

/* "Tensor[Float32]", "Tuple[..]", "Func" */
static bool read_form(struct ap_ir_read *r, struct ap_ir_type *out)
{
	const char *word = ap_ir_until(r, "[](){}<>,* ");
	bool ok = true;

	*out = (struct ap_ir_type){.form = AP_IR_TYPE_OTHER, .dtype = AP_DTYPE_COUNT};
	if (r->depth == AP_IR_MOST_NESTED)
		return ap_ir_fault(r, r->line, AP_LIMIT, "types are nested too deep");
	if (r->p < r->end && (*r->p == '[' || *r->p == '(')) {
		r->depth++;
		ok = read_inner(r, word, out);
		r->depth--;
	}
	if (ok && !*word)
		return ap_ir_expected(r, "a type");
	return ok;
}

static bool read_shape(struct ap_ir_read *r, struct ap_ir_type *out)
{
	struct ap_ir_value v;

	ap_ir_take(r, "[const vector]");
	if (!ap_ir_at(r, "(") && !ap_ir_at(r, "["))
		return true;
	if (!ap_ir_read_value(r, false, &v))
		return false;
	set_shape(out, &v);
	return true;
}

/* What follows the form: shapes, the parameter's name; the rest is nothing to us. */
static bool read_rest(struct ap_ir_read *r, struct ap_ir_type *out)
{
	const struct ap_ir_value *v;
	const char *text;
	uint32_t n;

	if (ap_ir_take(r, "x"))
		return read_shape(r, out);
	r->p++;
	ap_ir_blanks(r);
	if (ap_ir_at(r, "("))
		return read_shape(r, out);
	if (ap_ir_take(r, "TupleShape(")) {
		if (!ap_ir_read_values(r, false, ')', &n, &v))
			return false;
		set_shapes(out, v, n);
	} else if (ap_ir_take(r, "ref_key=")) {
		ap_ir_take(r, ":");
		out->ref_key = ap_ir_until(r, ",>");
	} else {
		ap_ir_pass(r, ",>([{");
		if (r->p < r->end && strchr("([{", *r->p))
			return ap_ir_balanced(r, &text);
	}
	return true;
}

bool ap_ir_read_type(struct ap_ir_read *r, struct ap_ir_type *out)
{
	ap_ir_space(r);
	if (!ap_ir_need(r, "<"))
		return false;
	if (ap_ir_take(r, "null>")) {
		*out = (struct ap_ir_type){.form = AP_IR_TYPE_NULL, .dtype = AP_DTYPE_COUNT};
		return true;
	}
	if (!read_form(r, out))
		return false;
	while (r->p < r->end && (*r->p == 'x' || *r->p == ','))
		if (!read_rest(r, out))
			return false;
	return ap_ir_need(r, ">");
}

bool ap_ir_read_types(struct ap_ir_read *r, uint32_t *n, const struct ap_ir_type **out)
{
	struct {
		struct ap_ir_type *v;
		size_t n, cap;
	} list = {0};
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);

	if (!ap_ir_need(r, "("))
		return false;
	for (;;) {
		struct ap_ir_type t;

		ap_ir_space(r);
		if (ap_ir_take(r, ")"))
			break;
		if (list.n && !ap_ir_need(r, ","))
			return false;
		if (!ap_ir_read_type(r, &t))
			return false;
		AP_PUSH(r->ctx->scratch, list, t);
	}
	*n = (uint32_t)list.n;
	*out = ap_ir_keep(r, mark, list.v, list.n * sizeof *list.v);
	return true;
}
