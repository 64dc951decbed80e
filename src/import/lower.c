/* SPDX-License-Identifier: Apache-2.0 */
#include "import/lower.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/cell.h"
#include "graph/check.h"
#include "import/ir_parse.h"
#include "rule/op.h"

#define RECOMPUTED "recompute_"

enum { MOST_CELLS = 128 }; /* one in the other */

enum ap_status ap_lower_fault(struct lower *l, const struct ap_flat_op *op, const char *check,
	const char *fmt, ...)
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

static bool is_recomputed(const struct ap_ir_node *n)
{
	return n->scope && !strncmp(n->scope, RECOMPUTED, strlen(RECOMPUTED));
}

/* The scope or full name without what marks it as recomputed. */
static const char *plain_scope(const struct ap_ir_node *n)
{
	const char *scope = n->scope && *n->scope ? n->scope : "Default";

	return scope + (is_recomputed(n) ? strlen(RECOMPUTED) : 0);
}

/* "scope/MatMul", without the number of a full name. */
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

/* As in the dump, byte for byte, where it has full names and nobody has taken this one; else the next
 * number, which is counted as made up. */
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

static enum ap_status tell_names(struct lower *l)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = l->made_line};

	if (!l->made)
		return AP_OK;
	return ap_diag_add(l->ctx->diag, AP_NOTE, AP_OK, &where, "dump-names",
		"%" PRIu32 " of %zu operators have no full name of their own here, so that their numbers "
		"are made up; MindSpore's operator strategies may call them otherwise. "
		"NN_pre_auto_parallel and NN_insert-virtual-dataset have full names", l->made,
		l->g->ops.n);
}

/* A name that no tensor has yet. */
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

static enum ap_status add_tensor(struct lower *l, const struct ap_flat_tensor *t, const char *name,
	ap_id *id)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = t->line};
	struct ap_import_tensor out = {.name = free_name(l, name), .kind = t->kind,
		.shape = {.dtype = t->type.dtype}, .shaped = t->type.shaped, .read_as = AP_DTYPE_COUNT};

	if (t->type.rank > AP_MAX_RANK || t->type.dtype == AP_DTYPE_COUNT ||
		(!t->type.shaped && t->kind != AP_TENSOR_ACT))
		return ap_diag_add(l->ctx->diag, AP_ERROR, AP_MEANING, &where, NULL,
			"%s has %s", ap_diag_name(l->ctx->diag, out.name), t->type.rank > AP_MAX_RANK
			? "more than 8 dimensions" : t->type.dtype == AP_DTYPE_COUNT
			? "an element type that is not planned with" : "no shape");
	out.shape.rank = t->type.rank;
	for (uint8_t i = 0; i < t->type.rank; i++) {
		if (t->type.dim[i] < 1 || t->type.dim[i] > INT32_MAX)
			return ap_diag_add(l->ctx->diag, AP_ERROR, AP_MEANING, &where, "shape-extent",
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

/* "layer1.MatMul-op0": the operator's name without classes. */
static const char *result_name(struct lower *l, const char *name, const char *cell)
{
	const char *last = strrchr(name, '/');

	last = last ? last + 1 : name;
	return *cell ? ap_arena_printf(l->ctx->arena, "%s.%s", cell, last) : last;
}

static enum ap_status add_results(struct lower *l, struct lower_op *o)
{
	const char *cell = o->out.cell ? o->out.cell : ap_graph_cell(l->ctx, o->out.name);
	const char *name = result_name(l, o->out.name, cell);

	o->out.nout = o->from->nout;
	o->out.out = (ap_id)l->g->tensors.n;
	for (uint32_t k = 0; k < o->from->nout; k++) {
		ap_id t = o->from->out + k;

		AP_TRY(add_tensor(l, &l->flat->tensors.v[t], k ? ap_arena_printf(l->ctx->arena,
			"%s:%" PRIu32, name, k) : name, &l->tensor[t]));
	}
	return AP_OK;
}

/* The name that our rules have for a type; NULL where they do not know it. */
static const char *canonical(struct lower *l, const char *prim)
{
	bool fresh;
	ap_id id = ap_map_put_str(l->types, prim, &fresh);

	if (fresh)
		AP_PUSH(l->ctx->arena, l->canonical, ap_op_canonical(prim, NULL));
	return l->canonical.v[id];
}

/* What type it is of ours. */
static enum ap_status find_type(struct lower *l, struct lower_op *o)
{
	const char *prim = o->from->node->prim, *nearest = NULL, *why;
	bool fresh;

	o->type = canonical(l, prim);
	o->known = o->type != NULL;
	if (o->known)
		return AP_OK;
	o->type = prim;
	ap_op_canonical(prim, &nearest);
	why = ap_op_unsupported(prim);
	if (why)
		return ap_lower_fault(l, o->from, "operator-known", "%s", why);
	if (!l->params->unknown_batch_parallel)
		return ap_lower_fault(l, o->from, "operator-known",
			"no operator of this type is known%s%s%s; --unknown-operators "
			"batch-parallel takes it as MindSpore does",
			nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
	ap_map_put_str(l->unknown, prim, &fresh);
	return !fresh ? AP_OK : ap_diag_add(l->ctx->diag, AP_WARNING, AP_OK,
		&(struct ap_where){.file = l->flat->ir->file, .line = o->from->node->line},
		"operator-assumed", "%s: no operator of this type is known; it is taken to work on each "
		"sample by itself", ap_diag_name(l->ctx->diag, prim));
}

/* The attribute that holds the primitive, as the dump tells it. */
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
	return ap_diag_add(l->ctx->diag, AP_WARNING, AP_OK,
		&(struct ap_where){.file = l->flat->ir->file, .line = n->line}, "instance-path",
		"%s: the instance name \"%s\" is left out; expected an attribute of Python",
		ap_diag_name(l->ctx->diag, n->prim), ap_diag_name(l->ctx->diag, n->instance));
}

static bool tells_instances(const struct ap_flat *flat)
{
	for (size_t i = 0; i < flat->ops.n; i++)
		if (flat->ops.v[i].node->instance)
			return true;
	return false;
}

/* What an operator is written with: a name in the dump's long scope is repeated by all that read it. */
static enum ap_status check_written(struct lower *l, const struct lower_op *o)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = o->out.line};

	l->written += strlen(o->out.name);
	for (uint32_t k = 0; k < o->out.nout; k++)
		l->written += strlen(l->g->tensors.v[o->out.out + k].name);
	for (uint32_t k = 0; k < o->out.nin; k++)
		l->written += o->out.in[k] == AP_NONE ? 4 : strlen(l->g->tensors.v[o->out.in[k]].name);
	for (uint32_t k = 0; k < o->out.attrs.n; k++)
		l->written += 4 * o->out.attrs.v[k].n;
	if (l->written <= l->most)
		return AP_OK;
	return ap_diag_add(l->ctx->diag, AP_ERROR, AP_LIMIT, &where, NULL, "the graph takes more than %zu MB "
		"up to here, though its file has %zu kB: long names are repeated; at most %d MB and %d times "
		"the file are written", l->most >> 20, l->flat->ir->bytes >> 10, AP_IR_SPARE_BYTES >> 20,
		AP_IR_MOST_COPIES);
}

/* Every cell around an operator has its name, which is as long as those around it. */
static enum ap_status check_scope(struct lower *l, const struct ap_ir_node *n)
{
	struct ap_where where = {.file = l->flat->ir->file, .line = n->line};
	size_t cells = 0;

	for (const char *at = n->scope; at && (at = strchr(at, '/')); at++)
		cells++;
	if (cells <= MOST_CELLS)
		return AP_OK;
	return ap_diag_add(l->ctx->diag, AP_ERROR, AP_LIMIT, &where, NULL, "%s: %zu cells, one in the other; "
		"at most %d are read", ap_diag_name(l->ctx->diag, n->prim), cells, MOST_CELLS);
}

static enum ap_status lower_op(struct lower *l, const struct ap_flat_op *op)
{
	struct lower_op o = {.from = op, .out = {.line = op->node->line, .recompute = -1, .stage = -1,
		.segment = -1, .fusion = -1}};

	AP_TRY(check_scope(l, op->node));
	o.out.name = name_of(l, op->node);
	if (o.out.name == op->node->scope && is_recomputed(op->node)) /* of which the name tells no cell */
		o.out.cell = ap_graph_cell(l->ctx, plain_scope(op->node));
	AP_TRY(add_results(l, &o));
	AP_TRY(find_type(l, &o));
	o.out.type = o.type;
	o.out.in_recomputed = is_recomputed(op->node);
	o.out.cell_class = base_of(l, op->node);
	AP_TRY(find_instance(l, &o));
	AP_TRY(ap_lower_operands(l, &o));
	AP_TRY(ap_lower_attrs(l, &o));
	AP_TRY(ap_lower_pins(l, &o));
	o.out.nin = (uint32_t)o.in.n;
	o.out.in = o.in.v;
	o.out.attrs = (struct ap_attrs){.n = (uint32_t)o.attrs.n, .v = o.attrs.v};
	AP_TRY(check_written(l, &o));
	AP_TRY(ap_lower_bind(l, &o));
	AP_PUSH(l->ctx->arena, l->g->ops, o.out);
	return AP_OK;
}

/* Inputs and parameters that the forward pass uses, in the dump's order. */
static enum ap_status add_sources(struct lower *l)
{
	static const enum ap_tensor_kind kinds[] = {AP_TENSOR_INPUT, AP_TENSOR_PARAM};

	for (size_t k = 0; k < 2; k++)
		for (ap_id t = 0; t < l->flat->tensors.n; t++) {
			const struct ap_flat_tensor *from = &l->flat->tensors.v[t];

			if (from->kind == kinds[k] && from->used)
				AP_TRY(add_tensor(l, from, from->name, &l->tensor[t]));
		}
	return AP_OK;
}

/* Dimension 0 of the first input is the batch, and that of all others of the same length. */
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
	return ap_diag_add(l->ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = l->flat->ir->file},
		"dump-batch", "the batch is %" PRId64 ", dimension 0 of input %s", batch,
		ap_diag_name(l->ctx->diag, first->name));
}

/* Statistics and the like, which are parameters but learn nothing. */
static void mark_learned(struct lower *l)
{
	for (ap_id t = 0; t < l->flat->tensors.n; t++)
		if (l->flat->tensors.v[t].kind == AP_TENSOR_PARAM && l->tensor[t] != AP_NONE &&
			!l->learned_use[t])
			l->g->tensors.v[l->tensor[t]].learned = false;
}

/* The optimizer is known by its states, parameters that the forward pass does not use. */
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

static const char *graph_name(struct lower *l)
{
	const char *base = ap_file_base(l->flat->ir->file), *dot = strrchr(base, '.');

	return ap_arena_strndup(l->ctx->arena, base, dot && dot > base ? (size_t)(dot - base)
		: strlen(base));
}

static enum ap_status add_outputs(struct lower *l)
{
	for (size_t i = 0; i < l->flat->outputs.n; i++) {
		ap_id t = l->flat->outputs.v[i];

		if (l->tensor[t] == AP_NONE)
			return ap_diag_add(l->ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){
				.file = l->flat->ir->file, .line = l->flat->tensors.v[t].line}, NULL,
				"a result of the network is that of one micro-batch alone");
		AP_PUSH(l->ctx->arena, l->g->outputs, l->tensor[t]);
	}
	return AP_OK;
}

enum ap_status ap_lower(struct ap_ctx *ctx, const struct ap_flat *flat,
	const struct ap_import_params *params, struct ap_import *g)
{
	struct ap_arena *a = ctx->arena;
	struct lower l = {.ctx = ctx, .params = params, .flat = flat, .g = g,
		.prims = ap_prims_create(ctx), .tensor_names = ap_map_create(a),
		.op_names = ap_map_create(a), .bases = ap_map_create(a), .constants = ap_map_create(a),
		.unknown = ap_map_create(a), .types = ap_map_create(a),
		.tensor = AP_NEW_N(a, ap_id, flat->tensors.n),
		.learned_use = AP_NEW_N(a, ap_id, flat->tensors.n),
		.instances = tells_instances(flat), .most = ap_ir_most_bytes(flat->ir)};
	enum ap_status first = AP_OK;

	memset(l.tensor, 0xff, flat->tensors.n * sizeof *l.tensor);
	g->name = graph_name(&l);
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
