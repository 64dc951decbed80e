/* SPDX-License-Identifier: Apache-2.0 */
/* A node: %3(x) = PrimFunc_MatMul(%1, %2, Bool(0)) {..} primitive_attrs: {..}, and its line of types. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "import/ir_read.h"

bool ap_ir_at_node(const struct ap_ir_read *r)
{
	if (ap_ir_at(r, "Return(") || ap_ir_at(r, "return(")) /* up to 1.5 in lower case */
		return true;
	return r->end - r->p > 1 && *r->p == '%' && r->p[1] >= '0' && r->p[1] <= '9';
}

/* "%3(label) = "; the label may hold anything but what closes it. */
static bool read_head(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const char *from;

	out->id = -1;
	out->label = "";
	if (!ap_ir_take(r, "%"))
		return true;
	out->id = ap_ir_digits(r);
	if (out->id < 0)
		return ap_ir_expected(r, "the number of a node");
	if (ap_ir_take(r, "(")) {
		for (from = r->p; r->p < r->end && *r->p != '\n'; r->p++)
			if (ap_ir_at(r, ") = "))
				break;
		out->label = ap_ir_copy(r, from, (size_t)(r->p - from));
		if (!ap_ir_take(r, ") = "))
			return ap_ir_expected(r, "\") = \" behind the node's label");
		return true;
	}
	ap_ir_blanks(r);
	return ap_ir_need(r, "= ");
}

static bool read_operator(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const char *targets;

	if (ap_ir_take(r, "call ") || *r->p == '%' || *r->p == '$') {
		if (!ap_ir_read_value(r, true, &out->callee))
			return false;
		return !ap_ir_at(r, "[") || ap_ir_balanced(r, &targets);
	}
	out->listed = ap_ir_take(r, "PrimFunc_");
	out->prim = ap_ir_until(r, "(");
	return *out->prim || ap_ir_expected(r, "the name of a primitive");
}

/* "key: value, key: value}", the brace being open. */
static bool read_attrs(struct ap_ir_read *r, struct ap_ir_attrs *out)
{
	AP_VEC(struct ap_ir_attr) list = {0};
	struct ap_mark mark = ap_arena_mark(r->ctx->scratch);

	for (;;) {
		struct ap_ir_attr a;

		ap_ir_space(r);
		if (ap_ir_take(r, "}"))
			break;
		if (list.n && ap_ir_take(r, ","))
			ap_ir_space(r);
		a.key = ap_ir_until(r, ":,{}()[] ");
		ap_ir_blanks(r);
		if (!*a.key || !ap_ir_take(r, ":"))
			return ap_ir_expected(r, "an attribute and \":\"");
		if (!ap_ir_read_value(r, false, &a.value))
			return false;
		AP_PUSH(r->ctx->scratch, list, a);
	}
	out->n = (uint32_t)list.n;
	out->v = ap_ir_keep(r, mark, list.v, list.n * sizeof *list.v);
	return true;
}

static bool read_brace(struct ap_ir_read *r, struct ap_ir_node *out)
{
	r->p++;
	if (!ap_ir_take(r, "instance name:"))
		return read_attrs(r, &out->derived);
	ap_ir_blanks(r);
	out->instance = ap_ir_until(r, "}");
	return ap_ir_need(r, "}");
}

static bool read_named_attrs(struct ap_ir_read *r, struct ap_ir_node *out)
{
	struct ap_ir_attrs *list;

	if (ap_ir_take(r, "primitive_attrs:"))
		list = &out->prim_attrs;
	else if (ap_ir_take(r, "cnode_attrs:"))
		list = &out->node_attrs;
	else if (ap_ir_take(r, "cnode_primal_attrs:"))
		list = &out->primal_attrs;
	else
		return ap_ir_expected(r, "attributes, or the types of the node");
	ap_ir_blanks(r);
	return ap_ir_need(r, "{") && read_attrs(r, list);
}

static bool read_type_line(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const struct ap_ir_type *t;
	uint32_t n;

	r->p++;
	ap_ir_blanks(r);
	if (!ap_ir_read_types(r, &n, &out->in_type))
		return false;
	if (n != out->nin)
		return ap_ir_fault(r, r->line, AP_MEANING, "%" PRIu32 " types for %" PRIu32
			" operands of \"%s\"", n, out->nin,
			ap_diag_name(r->ctx->diag, out->prim ? out->prim : "call"));
	out->typed = true;
	ap_ir_blanks(r);
	if (!ap_ir_take(r, "->"))
		return true;
	ap_ir_blanks(r);
	if (!ap_ir_read_types(r, &n, &t))
		return false;
	if (n != 1)
		return ap_ir_fault(r, r->line, AP_SYNTAX, "expected one type of the result");
	out->out = *t;
	return true;
}

/* To what a next line brings of this node: braces, or its types. False where there is none. */
static bool go_on(struct ap_ir_read *r)
{
	struct ap_ir_read ahead = *r;

	if (ap_ir_at(&ahead, "#"))
		ap_ir_skip_line(&ahead);
	ap_ir_space(&ahead);
	if (!ap_ir_at(&ahead, ":") && !ap_ir_at(&ahead, "{"))
		return false;
	r->p = ahead.p;
	r->line = ahead.line;
	return true;
}

bool ap_ir_read_node(struct ap_ir_read *r, struct ap_ir_node *out)
{
	const char *from = r->p;

	*out = (struct ap_ir_node){.line = r->line,
		.out = {.form = AP_IR_TYPE_OTHER, .dtype = AP_DTYPE_COUNT}};
	if (!read_head(r, out) || r->p == r->end)
		return ap_ir_expected(r, "an operator");
	if (!read_operator(r, out) || !ap_ir_need(r, "(") ||
		!ap_ir_read_values(r, true, ')', &out->nin, &out->in))
		return false;
	while (!out->typed) {
		ap_ir_blanks(r);
		if (r->p == r->end || *r->p == '\n' || *r->p == '#') {
			if (!go_on(r))
				break;
		} else if (*r->p == ':') {
			if (!read_type_line(r, out))
				return false;
		} else if (!(*r->p == '{' ? read_brace(r, out) : read_named_attrs(r, out))) {
			return false;
		}
	}
	ap_ir_blanks(r);
	if (r->p < r->end && *r->p != '\n' && *r->p != '#')
		return ap_ir_expected(r, "the end of the line");
	out->bytes = (size_t)(r->p - from);
	return true;
}
