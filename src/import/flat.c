/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-graphs put in place of their calls, from the forward graph on. */
#include "import/flat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/flat_parts.h"
#include "import/ir_parse.h"
#include "import/source.h"

enum { MOST_CALLS = 128, MOST_OPS = 1 << 20 };
enum { NODE_BYTES = 128, VALUE_BYTES = sizeof(struct ap_flat_value) }; /* what one takes beside its text */

enum ap_status ap_flat_fault(struct flat *e, int64_t line, enum ap_status st, const char *fmt, ...)
{
	struct ap_where where = {.file = e->ir->file, .line = line};
	struct ap_str text;
	va_list ap;

	ap_str_init(&text, e->ctx->arena);
	va_start(ap, fmt);
	ap_str_vaddf(&text, fmt, ap);
	va_end(ap);
	if (e->params->partial && st == AP_MEANING && e->flat->ops.n) {
		e->ended = true;
		ap_diag_add(e->ctx->diag, AP_WARNING, AP_OK, &where, "dump-partial",
			"the piece is read up to here: %s", text.s);
		return st;
	}
	return ap_diag_add(e->ctx->diag, AP_ERROR, st, &where, NULL, "%s", text.s);
}

enum ap_status ap_flat_charge(struct flat *e, int64_t line, size_t bytes)
{
	e->made += bytes;
	if (e->made <= e->most)
		return AP_OK;
	return ap_flat_fault(e, line, AP_LIMIT, "the dump takes more than %zu MB where every call is "
		"replaced by the sub-graph, though its file has %zu kB; at most %d MB and %d times the file "
		"are read", e->most >> 20, e->ir->bytes >> 10, AP_IR_SPARE_BYTES >> 20, AP_IR_MOST_COPIES);
}

static enum ap_status refuse(struct flat *e, int64_t line, const char *why)
{
	if (e->params->partial && e->flat->ops.n)
		return ap_flat_fault(e, line, AP_MEANING, "what follows %s", why);
	return ap_source_refuse(e->ctx, e->ir->file, line, why);
}

static const char *shown(struct flat *e, const char *name)
{
	return ap_diag_name(e->ctx->diag, name);
}

/* What an operator gives: a tensor, or a tuple of tensors. */
static enum ap_status add_results(struct flat *e, ap_id op, const struct ap_ir_node *n,
	struct ap_flat_value *out)
{
	const struct ap_ir_type *t = &n->out;
	uint32_t count = t->form == AP_IR_TYPE_TUPLE ? t->n : 1;
	struct ap_flat_value *v = AP_NEW_N(e->ctx->arena, struct ap_flat_value, count);

	e->flat->ops.v[op].out = (ap_id)e->flat->tensors.n;
	e->flat->ops.v[op].nout = count;
	for (uint32_t i = 0; i < count; i++) {
		const struct ap_ir_type *r = t->form == AP_IR_TYPE_TUPLE ? &t->v[i] : t;
		struct ap_flat_tensor tensor = {.kind = AP_TENSOR_ACT, .name = "", .type = *r,
			.line = n->line, .op = op, .result = i};

		if (r->form != AP_IR_TYPE_TENSOR)
			return ap_flat_fault(e, n->line, AP_MEANING, "result %" PRIu32 " of \"%s\" is no "
				"tensor; what computes numbers, shapes or sub-graphs is not planned", i,
				shown(e, n->prim));
		v[i] = (struct ap_flat_value){.kind = AP_FLAT_TENSOR, .id = (ap_id)e->flat->tensors.n};
		AP_PUSH(e->ctx->arena, e->flat->tensors, tensor);
	}
	*out = t->form == AP_IR_TYPE_TUPLE
		? (struct ap_flat_value){.kind = AP_FLAT_TUPLE, .n = count, .v = v, .size = count + 1,
			.depth = 1} : v[0];
	return AP_OK;
}

/* -1: of none, or a mark that no plan of MindSpore sets. */
static int64_t micro_of(const struct ap_ir_node *n)
{
	const int64_t most = 1 << 20; /* as --micro-batches */
	const struct ap_ir_value *v = ap_ir_attr(&n->primal_attrs, "micro");

	return v && v->kind == AP_IR_INT && v->i < most ? v->i : -1;
}

enum ap_status ap_flat_no_types(struct flat *e, const struct ap_ir_node *n)
{
	return ap_flat_fault(e, n->line, AP_MEANING, "\"%s\" has no types; expected a dump written with "
		"MS_DEV_DUMP_IR_FORMAT=2, or without that variable", shown(e, n->prim ? n->prim : "call"));
}

/* Of a piece also slices are read: it is no plan's source anyway. */
static enum ap_status check_sliced(struct flat *e, const struct ap_ir_node *n)
{
	struct ap_where where = {.file = e->ir->file, .line = n->line};

	if (!e->params->partial)
		return refuse(e, n->line, "holds what each device runs");
	if (e->flat->sliced)
		return AP_OK;
	e->flat->sliced = true;
	return ap_diag_add(e->ctx->diag, AP_WARNING, AP_OK, &where, "dump-partial",
		"holds what each device runs: shapes are those of its slices, and strategies are left out");
}

static enum ap_status check_op(struct flat *e, const struct ap_ir_node *n)
{
	if (!n->typed)
		return ap_flat_no_types(e, n);
	if (n->scope && !strncmp(n->scope, "Gradients/", 10))
		return refuse(e, n->line, "holds the backward pass");
	if (ap_ir_attr(&n->primal_attrs, "forward_node_name") || ap_ir_attr(&n->node_attrs, "duplicated"))
		return refuse(e, n->line, "holds the backward pass");
	if (ap_ir_attr(&n->primal_attrs, "origin_output_shape"))
		AP_TRY(check_sliced(e, n));
	if (e->flat->ops.n == MOST_OPS)
		return ap_flat_fault(e, n->line, AP_LIMIT, "more than %d operators, those of "
			"sub-graphs counted at each call", MOST_OPS);
	return AP_OK;
}

static enum ap_status add_op(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	struct ap_flat_op op = {.node = n, .nin = n->nin, .in = in, .micro = micro_of(n)};
	size_t tensors = e->flat->tensors.n;
	enum ap_status st;

	AP_TRY(check_op(e, n));
	for (uint32_t i = 0; i < n->nin; i++)
		AP_TRY(ap_flat_charge(e, n->line, (size_t)VALUE_BYTES * (ap_flat_size(&in[i]) - 1)));
	while (op.nin && n->in_type[op.nin - 1].monad) /* behind the operands of what has side effects */
		op.nin--;
	AP_PUSH(e->ctx->arena, e->flat->ops, op);
	st = add_results(e, (ap_id)e->flat->ops.n - 1, n, out);
	if (st != AP_OK) { /* a piece ends before it */
		e->flat->ops.n--;
		e->flat->tensors.n = tensors;
	}
	return st;
}

static enum ap_status get_element(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	int64_t k = n->nin == 2 && in[1].kind == AP_FLAT_CONST && in[1].c->kind == AP_IR_INT
		? in[1].c->i : -1;

	if (n->nin == 2 && in[0].kind == AP_FLAT_NOTHING) {
		*out = in[0];
		return AP_OK;
	}
	if (k >= 0 && in[0].kind == AP_FLAT_CONST && in[0].c->kind == AP_IR_LIST && k < in[0].c->n) {
		*out = (struct ap_flat_value){.kind = AP_FLAT_CONST, .c = &in[0].c->v[k]};
		return AP_OK;
	}
	if (n->nin == 2 && in[0].kind == AP_FLAT_TENSOR && e->params->partial && k >= 0 && n->typed)
		return ap_flat_assume(e, n->line, ap_arena_printf(e->ctx->arena, "%s.%" PRId64,
			e->flat->tensors.v[in[0].id].name, k), &n->out, out);
	if (k < 0 || in[0].kind != AP_FLAT_TUPLE || k >= in[0].n)
		return ap_flat_fault(e, n->line, AP_MEANING,
			"\"%s\" takes an element that is not there", shown(e, n->prim));
	*out = in[0].v[k];
	return AP_OK;
}

static enum ap_status bind_args(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	struct ap_flat_value *v;

	if (!n->nin || in[0].kind != AP_FLAT_FUNC)
		return ap_flat_fault(e, n->line, AP_MEANING, "Partial of what is no sub-graph");
	AP_TRY(ap_flat_charge(e, n->line, (size_t)VALUE_BYTES * in[0].n));
	v = AP_NEW_N(e->ctx->arena, struct ap_flat_value, in[0].n + n->nin);
	for (uint32_t i = 0; i < in[0].n; i++)
		v[i] = in[0].v[i];
	for (uint32_t i = 1; i < n->nin; i++)
		v[in[0].n + i - 1] = in[i];
	*out = in[0];
	out->n = in[0].n + n->nin - 1;
	out->v = v;
	return AP_OK;
}

/* Is it a truth value that is known, Bool(1) or Tensor(shape=[], dtype=Bool, value=True)? *yes: which. */
static bool is_known(const struct ap_flat_value *v, bool *yes)
{
	const char *value;

	if (v->kind != AP_FLAT_CONST)
		return false;
	*yes = v->c->kind == AP_IR_BOOL && v->c->i;
	if (v->c->kind == AP_IR_BOOL)
		return true;
	value = v->c->kind == AP_IR_TENSOR && !v->c->n && !strcmp(v->c->of, "Bool")
		? strstr(v->c->s, "value=") : NULL;
	if (!value)
		return false;
	value += strcspn(value, "=") + 1;
	value += strspn(value, " [\n");
	*yes = *value == 'T' || *value == 't' || *value == '1';
	return *yes || *value == 'F' || *value == 'f' || *value == '0';
}

static enum ap_status choose(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	bool yes;

	if (n->nin != 3 || !is_known(&in[0], &yes))
		return ap_flat_fault(e, n->line, AP_MEANING, "control flow: which sub-graph runs is only "
			"known when it does; expected a network whose graph is fixed");
	*out = in[yes ? 1 : 2];
	return AP_OK;
}

/* The lengths of a tensor, as if the dump told them as a constant. */
static enum ap_status measure(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	const struct ap_ir_type *t = n->nin == 1 && in[0].kind == AP_FLAT_TENSOR
		? &e->flat->tensors.v[in[0].id].type : NULL;
	struct ap_ir_value *list = AP_NEW(e->ctx->arena, struct ap_ir_value), *v;

	if (!t || !t->shaped || t->rank > AP_MAX_RANK)
		return ap_flat_fault(e, n->line, AP_MEANING, "the shape of what is no tensor");
	v = AP_NEW_N(e->ctx->arena, struct ap_ir_value, t->rank);
	for (uint8_t i = 0; i < t->rank; i++)
		v[i] = (struct ap_ir_value){.kind = AP_IR_INT, .size = 1, .i = t->dim[i],
			.f = (double)t->dim[i], .s = "", .of = "I64"};
	*list = (struct ap_ir_value){.kind = AP_IR_LIST, .n = t->rank, .v = v, .s = "", .of = ""};
	ap_ir_measure_list(list);
	*out = (struct ap_flat_value){.kind = AP_FLAT_CONST, .c = list};
	return AP_OK;
}

static enum ap_status plumb(struct flat *e, enum flat_role role, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	*out = (struct ap_flat_value){.kind = AP_FLAT_NOTHING};
	switch (role) {
	case FLAT_PASS:
		if (n->nin)
			*out = in[0];
		return n->nin ? AP_OK : ap_flat_fault(e, n->line, AP_MEANING, "\"%s\" has no operand",
			shown(e, n->prim));
	case FLAT_GET:
		return get_element(e, n, in, out);
	case FLAT_TUPLE:
		return ap_flat_tuple(e, n->line, n->nin, in, out);
	case FLAT_SHAPE:
		return measure(e, n, in, out);
	case FLAT_BIND:
		return bind_args(e, n, in, out);
	case FLAT_CHOOSE:
		return choose(e, n, in, out);
	case FLAT_SLICED:
		return refuse(e, n->line,
			ap_arena_printf(e->ctx->arena, "holds what each device runs (%s)", n->prim));
	case FLAT_GRAD:
		if (n == e->grad && n->nin) {
			*out = in[0];
			return AP_OK;
		}
		return ap_flat_fault(e, n->line, AP_MEANING, "a gradient of a gradient is not planned");
	default:
		return AP_OK;
	}
}

static enum ap_status call(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_frame *frame, const struct ap_flat_value *in, struct ap_flat_value *out)
{
	struct ap_flat_value callee, *args;

	AP_TRY(ap_flat_resolve(e, frame, n, &n->callee, NULL, &callee));
	if (callee.kind == AP_FLAT_NOTHING && e->params->partial && n->typed)
		return ap_flat_assume(e, n->line, ap_arena_printf(e->ctx->arena, "%%%" PRId64, n->id),
			&n->out, out);
	if (callee.kind != AP_FLAT_FUNC)
		return ap_flat_fault(e, n->line, AP_MEANING, "calls what is no sub-graph");
	AP_TRY(ap_flat_charge(e, n->line, (size_t)VALUE_BYTES * callee.n));
	args = AP_NEW_N(e->ctx->arena, struct ap_flat_value, callee.n + n->nin);
	for (uint32_t i = 0; i < callee.n; i++)
		args[i] = callee.v[i];
	for (uint32_t i = 0; i < n->nin; i++)
		args[callee.n + i] = in[i];
	AP_TRY(ap_flat_call(e, n->line, callee.id, callee.frame ? callee.frame : frame,
		callee.n + n->nin, args, out));
	if (out->kind == AP_FLAT_NOTHING && !e->ir->funcs.v[callee.id].closed && n != e->grad_call)
		return ap_flat_fault(e, n->line, AP_MEANING, "the end of sub-graph @%s is not there",
			shown(e, e->ir->funcs.v[callee.id].name));
	if (n == e->grad_call) {
		e->done = true;
		e->result = *out;
	}
	return AP_OK;
}

static enum ap_status run_node(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, struct ap_flat_value *out)
{
	struct ap_flat_value *in = AP_NEW_N(e->ctx->arena, struct ap_flat_value, n->nin);
	enum flat_role role;

	for (uint32_t i = 0; i < n->nin; i++)
		AP_TRY(ap_flat_resolve(e, frame, n, &n->in[i], n->typed ? &n->in_type[i] : NULL, &in[i]));
	if (!n->prim)
		return call(e, n, frame, in, out);
	role = ap_flat_role(e, n->prim);
	return role == FLAT_OPERATOR ? add_op(e, n, in, out) : plumb(e, role, n, in, out);
}

static enum ap_status run_nodes(struct flat *e, struct ap_flat_frame *frame, struct ap_flat_value *out)
{
	const struct ap_ir_func *f = frame->func;
	const bool *wanted = e->wanted ? e->wanted[f - e->ir->funcs.v] : NULL;

	*out = (struct ap_flat_value){.kind = AP_FLAT_NOTHING};
	for (size_t i = 0; i < f->nodes.n; i++) {
		if (wanted && !wanted[i])
			continue;
		AP_TRY(run_node(e, frame, &f->nodes.v[i], &frame->node[i]));
		if (e->done)
			break;
		if (f->nodes.v[i].id < 0)
			*out = frame->node[i];
	}
	return AP_OK;
}

enum ap_status ap_flat_call(struct flat *e, int64_t line, ap_id func,
	const struct ap_flat_frame *around, uint32_t n, const struct ap_flat_value *arg,
	struct ap_flat_value *out)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[func];
	struct ap_flat_frame *frame;
	enum ap_status st;

	if (e->running[func] || e->depth == MOST_CALLS)
		return ap_flat_fault(e, line, AP_MEANING, e->running[func] ? "sub-graph @%s calls itself"
			: "sub-graph @%s is called by others that are nested too deep", shown(e, f->name));
	if (n != f->nparam)
		return ap_flat_fault(e, line, AP_MEANING, "%" PRIu32 " arguments for sub-graph @%s, which "
			"has %" PRIu32 " parameters (line %" PRId64 ")", n, shown(e, f->name), f->nparam,
			f->line);
	AP_TRY(ap_flat_charge(e, line, f->bytes + NODE_BYTES * (f->nodes.n + 1)));
	frame = AP_NEW(e->ctx->arena, struct ap_flat_frame);
	*frame = (struct ap_flat_frame){.func = f, .around = around, .arg = arg,
		.node = AP_NEW_N(e->ctx->arena, struct ap_flat_value, f->nodes.n)};
	e->running[func] = true;
	e->depth++;
	st = run_nodes(e, frame, out);
	e->depth--;
	e->running[func] = false;
	return st;
}

static void add_outputs(struct flat *e, const struct ap_flat_value *v)
{
	if (v->kind == AP_FLAT_TENSOR)
		AP_PUSH(e->ctx->arena, e->flat->outputs, v->id);
	for (uint32_t i = 0; v->kind == AP_FLAT_TUPLE && i < v->n; i++)
		add_outputs(e, &v->v[i]);
}

static void mark_used(struct flat *e, const struct ap_flat_value *v)
{
	if (v->kind == AP_FLAT_TENSOR)
		e->flat->tensors.v[v->id].used = true;
	for (uint32_t i = 0; v->kind == AP_FLAT_TUPLE && i < v->n; i++)
		mark_used(e, &v->v[i]);
}

/* A piece without Return gives what nobody in it uses. */
static void add_loose_ends(struct flat *e)
{
	for (ap_id t = 0; t < e->flat->tensors.n; t++)
		if (e->flat->tensors.v[t].kind == AP_TENSOR_ACT && !e->flat->tensors.v[t].used &&
			e->flat->tensors.v[t].result == 0)
			AP_PUSH(e->ctx->arena, e->flat->outputs, t);
}

enum ap_status ap_flat_make(struct ap_ctx *ctx, const struct ap_ir *ir,
	const struct ap_import_params *params, struct ap_flat *out)
{
	struct flat e = {.ctx = ctx, .ir = ir, .flat = out, .params = params,
		.most = ap_ir_most_bytes(ir)};
	size_t nodes = 0;
	enum ap_status st;

	*out = (struct ap_flat){.ir = ir};
	for (size_t f = 0; f < ir->funcs.n; f++)
		nodes += ir->funcs.v[f].nodes.n;
	AP_RESERVE(ctx->arena, out->ops, nodes);
	AP_RESERVE(ctx->arena, out->tensors, nodes + ir->params.n);
	AP_TRY(ap_flat_prepare(&e));
	st = ap_flat_forward(&e);
	if (!e.ended)
		AP_TRY(st);
	out->inference = !e.grad;
	for (size_t i = 0; i < out->ops.n; i++)
		for (uint32_t k = 0; k < out->ops.v[i].nin; k++)
			mark_used(&e, &out->ops.v[i].in[k]);
	mark_used(&e, &e.result);
	add_outputs(&e, &e.result);
	if (!out->outputs.n && params->partial)
		add_loose_ends(&e);
	if (!out->ops.n || !out->outputs.n)
		return ap_flat_fault(&e, ir->lines, AP_MEANING, "holds no operator of a forward pass");
	return AP_OK;
}
