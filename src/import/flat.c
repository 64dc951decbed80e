/* SPDX-License-Identifier: Apache-2.0 */
/* Expands calls of sub-graphs, starting at the forward graph. */
#include "import/flat.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/str.h"
#include "import/ir_parse.h"
#include "import/ir_value.h"
#include "import/source.h"
#include "rule/binding.h"
#include "rule/op.h"

enum flat_role {
	FLAT_OPERATOR,
	FLAT_PASS,
	FLAT_DROP,
	FLAT_GET,
	FLAT_TUPLE,
	FLAT_SHAPE,
	FLAT_BIND,
	FLAT_CHOOSE,
	FLAT_GRAD,
	FLAT_SLICED,
	FLAT_EARLY
};

struct ap_flat_frame { /* a call of a sub-graph */
	const struct ap_ir_func *func;
	const struct ap_flat_frame *around; /* frame of its free variables; NULL: the entry's parameters */
	const struct ap_flat_value *arg; /* [nparam] */
	struct ap_flat_value *node; /* [nodes.n] values of nodes */
};

struct flat {
	struct ap_ctx *ctx;
	const struct ap_ir *ir;
	const struct ap_import_params *params;
	struct ap_flat *flat;
	struct ap_map *funcs, *roles; /* ids: sub-graphs of the dump; rows of plumbing.def */
	struct ap_map *param_names; /* the entry's parameters; ids are tensor ids */
	struct ap_map *places; /* parameter names of sub-graphs */
	uint32_t *place; /* by id of places: index in its sub-graph */
	struct ap_map *labels; /* "3/label", 3 being the sub-graph; NULL: not yet made */
	AP_VEC(const struct ap_ir_node *) labelled; /* by id of labels; NULL: ambiguous */
	struct ap_map *assumed;
	AP_VEC(struct ap_flat_value) assumptions; /* by id of assumed */
	const struct ap_ir_node *grad, *grad_call; /* J of the forward graph and its call; NULL: none */
	const bool **wanted; /* by sub-graph: nodes needed for that call; NULL: all */
	bool done; /* grad_call was run */
	bool ended; /* reading of a piece stopped at a fault */
	struct ap_flat_value result; /* value of the forward graph */
	bool *running; /* by sub-graph */
	size_t made, most; /* bytes of the dump with all calls expanded; see charge() */
	unsigned depth;
};

enum { NAME_COPIES = 16 }; /* cost of a derived name: each repeats the text before it */

static const char *shown(struct flat *e, const char *name)
{
	return ap_diag_name(e->ctx->diag, name);
}

/* "layer1.weight" of "para3_layer1.weight" */
static const char *plain(const char *name)
{
	const char *at = strchr(name, '_');

	return !strncmp(name, "para", 4) && at && at[1] ? at + 1 : name;
}

/* Number of numbers and tensors in a value, tuples included. */
static uint32_t flat_size(const struct ap_flat_value *v)
{
	return v->kind == AP_FLAT_TUPLE ? v->size : v->kind == AP_FLAT_CONST ? v->c->size : 1;
}

static struct ap_flat_value assumption(struct flat *e, int64_t line, const char *name,
	const struct ap_ir_type *type)
{
	struct ap_flat_tensor t = {.kind = type->ref ? AP_TENSOR_PARAM : AP_TENSOR_INPUT, .line = line,
		.name = type->ref_key ? type->ref_key : plain(name), .type = *type};
	struct ap_flat_value v = {.kind = AP_FLAT_NOTHING}, *part;

	if (type->form == AP_IR_TYPE_TENSOR) {
		v = (struct ap_flat_value){.kind = AP_FLAT_TENSOR, .id = (ap_id)e->flat->tensors.n};
		AP_PUSH(e->ctx->arena, e->flat->tensors, t);
	} else if (type->form == AP_IR_TYPE_TUPLE) {
		part = AP_NEW_N(e->ctx->arena, struct ap_flat_value, type->n);
		for (uint32_t i = 0; i < type->n; i++)
			part[i] = assumption(e, line, ap_arena_printf(e->ctx->arena, "%s.%" PRIu32, name,
				i), &type->v[i]);
		v = (struct ap_flat_value){.kind = AP_FLAT_TUPLE, .n = type->n, .v = part, .size = 1};
		for (uint32_t i = 0; i < type->n; i++) { /* no larger or deeper than its text */
			v.size += flat_size(&part[i]);
			v.depth = part[i].depth > v.depth ? part[i].depth : v.depth;
		}
		v.depth++;
	}
	return v;
}

/* Warns of what is odd at a line. */
static enum ap_status __attribute__((format(printf, 4, 5))) warn(struct flat *e, int64_t line,
	const char *check, const char *fmt, ...)
{
	struct ap_where where = {.file = e->ir->file, .line = line};
	enum ap_status st;
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(e->ctx->diag, AP_WARNING, AP_OK, &where, check, fmt, ap);
	va_end(ap);
	return st;
}

/* Reports a fault at a line; returns st. If part of a piece was read, warns and ends it instead. */
static enum ap_status __attribute__((format(printf, 4, 5))) fault(struct flat *e, int64_t line,
	enum ap_status st, const char *fmt, ...)
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
		warn(e, line, "dump-partial", "the piece is read up to here: %s", text.s);
		return st;
	}
	return ap_diag_add(e->ctx->diag, AP_ERROR, st, &where, NULL, "%s", text.s);
}

/* Counts what grows beyond the text: expanded sub-graphs, bound arguments, derived names. Returns
 * AP_LIMIT, reported at the line, above a multiple of the dump's size: memory and time are
 * proportional to it. */
static enum ap_status charge(struct flat *e, int64_t line, size_t bytes)
{
	e->made += bytes;
	if (e->made <= e->most)
		return AP_OK;
	return fault(e, line, AP_LIMIT, "the dump takes more than %zu MB where every call is "
		"replaced by the sub-graph, though its file has %zu kB; at most %d MB and %d times the file "
		"are read", e->most >> 20, e->ir->bytes >> 10, AP_IR_SPARE_BYTES >> 20, AP_IR_MOST_COPIES);
}

/* Makes a tensor for a value missing in a partial dump. */
static enum ap_status assume(struct flat *e, int64_t line, const char *name,
	const struct ap_ir_type *type, struct ap_flat_value *out)
{
	bool fresh;
	ap_id id;

	AP_TRY(charge(e, line, NAME_COPIES * strlen(name)));
	id = ap_map_put_str(e->assumed, name, &fresh);
	if (fresh)
		AP_PUSH(e->ctx->arena, e->assumptions, assumption(e, line, name, type));
	*out = e->assumptions.v[id];
	if (!fresh || out->kind == AP_FLAT_NOTHING)
		return AP_OK;
	return warn(e, line, "dump-partial",
		"%s is not in this piece of a dump; it is taken for %s", shown(e, name),
		type->ref ? "a parameter" : "an input");
}

static enum ap_status no_types(struct flat *e, const struct ap_ir_node *n)
{
	return fault(e, n->line, AP_MEANING, "\"%s\" has no types; expected a dump written with "
		"MS_DEV_DUMP_IR_FORMAT=2, or without that variable", shown(e, n->prim ? n->prim : "call"));
}

static enum ap_status unknown(struct flat *e, const struct ap_ir_node *n, const char *name,
	const struct ap_ir_type *type, struct ap_flat_value *out)
{
	if (!n->typed)
		return no_types(e, n);
	if (e->params->partial && type)
		return assume(e, n->line, name, type, out);
	return fault(e, n->line, AP_MEANING, "%s is not defined before it is used", shown(e, name));
}

static enum ap_status node_value(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, int64_t id, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	const struct ap_ir_node *from = ap_ir_node(frame->func, id);

	if (!from || from >= n)
		return unknown(e, n, ap_arena_printf(e->ctx->arena, "%%%" PRId64, id), type, out);
	*out = frame->node[from - frame->func->nodes.v];
	return AP_OK;
}

/* The frame of a sub-graph, searched outwards; NULL if it is not running. */
static const struct ap_flat_frame *frame_of(const struct flat *e, const struct ap_flat_frame *frame,
	ap_id func)
{
	while (frame && frame->func != &e->ir->funcs.v[func])
		frame = frame->around;
	return frame;
}

/* The tensor of an entry parameter; nothing for a monad. */
static struct ap_flat_value flat_param(const struct flat *e, ap_id param)
{
	return e->flat->tensors.v[param].type.form == AP_IR_TYPE_TENSOR
		? (struct ap_flat_value){.kind = AP_FLAT_TENSOR, .id = param}
		: (struct ap_flat_value){.kind = AP_FLAT_NOTHING};
}

/* Finds a parameter by name: of the frame's sub-graph, else of the entry. */
static bool param_value(const struct flat *e, const struct ap_flat_frame *frame, const char *name,
	struct ap_flat_value *out)
{
	ap_id id = ap_map_get_str(e->places, name);
	uint32_t k = id == AP_NONE ? 0 : e->place[id];

	if (frame && id != AP_NONE) {
		if (k >= frame->func->nparam || strcmp(frame->func->param[k], name))
			for (k = 0; k < frame->func->nparam && strcmp(frame->func->param[k], name); k++)
				;
		if (k < frame->func->nparam) {
			*out = frame->arg[k];
			return true;
		}
	}
	id = ap_map_get_str(e->param_names, name);
	if (id != AP_NONE)
		*out = flat_param(e, id);
	return id != AP_NONE;
}

/* Uses the index of func: names are long, and labels many. */
static const char *label_key(struct flat *e, size_t func, const char *label)
{
	return ap_arena_printf(e->ctx->arena, "%zu/%s", func, label);
}

static void index_labels(struct flat *e)
{
	e->labels = ap_map_create(e->ctx->arena);
	for (size_t f = 0; f < e->ir->funcs.n; f++)
		for (size_t i = 0; i < e->ir->funcs.v[f].nodes.n; i++) {
			const struct ap_ir_node *n = &e->ir->funcs.v[f].nodes.v[i];
			bool fresh;
			ap_id id = ap_map_put_str(e->labels, label_key(e, f, n->label), &fresh);

			if (fresh)
				AP_PUSH(e->ctx->arena, e->labelled, n);
			else
				e->labelled.v[id] = NULL;
		}
}

/* "$(@sub-graph:para3_name)", "$(@sub-graph:label)" */
static enum ap_status free_value(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	ap_id func = ap_map_get_str(e->funcs, v->of), id;
	const struct ap_flat_frame *at = func == AP_NONE ? NULL : frame_of(e, frame, func);
	const struct ap_ir_node *from;

	if (!strncmp(v->s, "para", 4) && param_value(e, at, v->s, out))
		return AP_OK;
	if (!at)
		return unknown(e, n, v->s, type, out);
	if (!e->labels)
		index_labels(e);
	id = ap_map_get_str(e->labels, label_key(e, func, v->s));
	from = id == AP_NONE ? NULL : e->labelled.v[id];
	if (!from)
		return fault(e, n->line, AP_MEANING, "$(@%s:%s) is %s", shown(e, v->of),
			shown(e, v->s), id == AP_NONE ? "no node of that sub-graph"
				: "the label of several nodes");
	*out = at->node[from - at->func->nodes.v];
	return AP_OK;
}

static enum ap_status func_value(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_frame *frame, const char *name, struct ap_flat_value *out)
{
	ap_id func = ap_map_get_str(e->funcs, name);

	if (func == AP_NONE && e->params->partial)
		return AP_OK;
	if (func == AP_NONE)
		return fault(e, n->line, AP_MEANING, "sub-graph @%s is not in the dump",
			shown(e, name));
	*out = (struct ap_flat_value){.kind = AP_FLAT_FUNC, .id = func, .frame = frame};
	return AP_OK;
}

static uint8_t depth_of(const struct ap_flat_value *v)
{
	return v->kind == AP_FLAT_TUPLE ? v->depth : v->kind == AP_FLAT_CONST ? v->c->depth : 0;
}

/* Makes a constant of a list of constants. */
static struct ap_flat_value constant_list(struct flat *e, uint32_t n, const struct ap_ir_value *v)
{
	struct ap_ir_value *list = AP_NEW(e->ctx->arena, struct ap_ir_value);

	*list = (struct ap_ir_value){.kind = AP_IR_LIST, .n = n, .v = v, .s = "", .of = ""};
	ap_ir_measure_list(list);
	return (struct ap_flat_value){.kind = AP_FLAT_CONST, .c = list};
}

/* Makes a tuple, a constant if all parts are. Returns AP_LIMIT if it is too large or deep. */
static enum ap_status tuple(struct flat *e, int64_t line, uint32_t n,
	const struct ap_flat_value *part, struct ap_flat_value *out)
{
	bool constant = true;
	uint8_t depth = 0;
	size_t size = 1;

	for (uint32_t i = 0; i < n; i++) {
		constant &= part[i].kind == AP_FLAT_CONST;
		size += flat_size(&part[i]);
		depth = depth_of(&part[i]) > depth ? depth_of(&part[i]) : depth;
	}
	if (size > AP_IR_MOST_PARTS)
		return fault(e, line, AP_LIMIT, "a tuple of more than %d parts, those of tuples in "
			"it counted", AP_IR_MOST_PARTS);
	if (depth >= AP_IR_MOST_NESTED)
		return fault(e, line, AP_LIMIT, "tuples are nested deeper than %d",
			AP_IR_MOST_NESTED);
	if (constant) {
		struct ap_ir_value *v = AP_NEW_N(e->ctx->arena, struct ap_ir_value, n);

		for (uint32_t i = 0; i < n; i++)
			v[i] = *part[i].c;
		*out = constant_list(e, n, v);
	} else {
		*out = (struct ap_flat_value){.kind = AP_FLAT_TUPLE, .n = n, .v = part,
			.size = (uint32_t)size, .depth = depth + 1};
	}
	return AP_OK;
}

static enum ap_status list_value(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out);

static enum ap_status resolve(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	*out = (struct ap_flat_value){.kind = AP_FLAT_NOTHING};
	switch (v->kind) {
	case AP_IR_NODE:
		return node_value(e, frame, n, v->i, type, out);
	case AP_IR_PARAM:
		return param_value(e, frame, v->s, out) ? AP_OK : unknown(e, n, v->s, type, out);
	case AP_IR_FREE:
		return free_value(e, frame, n, v, type, out);
	case AP_IR_FUNC:
		return func_value(e, n, frame, v->s, out);
	case AP_IR_LIST:
		return list_value(e, frame, n, v, type, out);
	case AP_IR_NONE:
	case AP_IR_MONAD:
		return AP_OK;
	default:
		*out = (struct ap_flat_value){.kind = AP_FLAT_CONST, .c = v, .type = type};
		return AP_OK;
	}
}

/* Resolves an operand of node n. type: from the node's types; NULL: unknown. */
static enum ap_status flat_resolve(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	const struct ap_flat_tensor *from;

	AP_TRY(resolve(e, frame, n, v, type, out));
	/* a node's types repeat those of its operands */
	if (!type || !type->shaped || type->rank > AP_MAX_RANK || out->kind != AP_FLAT_TENSOR)
		return AP_OK;
	from = &e->flat->tensors.v[out->id];
	if (!from->type.shaped || from->type.rank > AP_MAX_RANK || (from->type.rank == type->rank &&
		!memcmp(from->type.dim, type->dim, type->rank * sizeof *type->dim)))
		return AP_OK;
	return warn(e, n->line, "dump-types", "\"%s\" reads the shape %s here, but line %" PRId64 " gives %s",
		shown(e, n->prim ? n->prim : "call"), ap_shape_text(e->ctx->arena, type->dim, type->rank),
		from->line, ap_shape_text(e->ctx->arena, from->type.dim, from->type.rank));
}

/* Resolves a literal tuple that contains references. */
static enum ap_status list_value(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	struct ap_flat_value *part = AP_NEW_N(e->ctx->arena, struct ap_flat_value, v->n);

	for (uint32_t i = 0; i < v->n; i++)
		AP_TRY(flat_resolve(e, frame, n, &v->v[i], NULL, &part[i]));
	AP_TRY(tuple(e, n->line, v->n, part, out));
	out->type = type;
	return AP_OK;
}

enum { MOST_SOUGHT = 256 }; /* sub-graphs searched for the forward pass */

static const struct {
	const char *prim;
	enum flat_role role;
} plumbing[] = {
#define NODE(name, what) {#name, FLAT_##what},
#include "import/plumbing.def"
};

static enum flat_role ap_flat_role(const struct flat *e, const char *prim)
{
	ap_id id = ap_map_get_str(e->roles, prim);

	return id == AP_NONE ? FLAT_OPERATOR : plumbing[id].role;
}

/* Reports that something is missing: an error, or a warning if a piece was requested. */
static enum ap_status missing(struct flat *e, int64_t line, const char *text)
{
	struct ap_where where = {.file = e->ir->file, .line = line};

	if (e->params->partial)
		return warn(e, line, "dump-partial", "%s", text);
	return ap_diag_add(e->ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL, "%s; --partial reads what is "
		"there", text);
}

/* Warns if there is more than the header counts. */
static void check_more(struct flat *e, int64_t n, int64_t said, const char *what)
{
	if (said >= 0 && n > said)
		warn(e, 0, "dump-count", "holds %" PRId64 " %s, but its header counts %" PRId64, n, what,
			said);
}

static enum ap_status check_whole(struct flat *e)
{
	const struct ap_ir *ir = e->ir;
	int64_t nodes = 0;

	if (!ir->headed)
		AP_TRY(missing(e, 1, "does not begin as a dump does, with \"# IR entry: @\""));
	if (ir->gap)
		AP_TRY(missing(e, ir->gap, "a piece of the dump is left out here"));
	if (ir->anew)
		AP_TRY(missing(e, ir->anew, "another piece begins here; what follows is not read"));
	for (size_t f = 0; f < ir->funcs.n; f++)
		if (*ir->funcs.v[f].name && !ir->funcs.v[f].closed)
			return missing(e, ir->funcs.v[f].end, ap_arena_printf(e->ctx->arena,
				"the dump ends here, within sub-graph @%s that begins in line %" PRId64,
				ap_diag_name(e->ctx->diag, ir->funcs.v[f].name), ir->funcs.v[f].line));
	for (size_t f = 0; f < ir->funcs.n; f++)
		nodes += (int64_t)ir->funcs.v[f].nodes.n;
	if (ir->said_funcs > (int64_t)ir->funcs.n)
		return missing(e, ir->lines, ap_arena_printf(e->ctx->arena, "the dump ends here with %zu "
			"sub-graphs, but its header counts %" PRId64, ir->funcs.n, ir->said_funcs));
	if (ir->said_nodes > nodes)
		return missing(e, ir->lines, ap_arena_printf(e->ctx->arena, "the dump ends here with %"
			PRId64 " nodes, but its header counts %" PRId64, nodes, ir->said_nodes));
	check_more(e, (int64_t)ir->funcs.n, ir->said_funcs, "sub-graphs");
	check_more(e, nodes, ir->said_nodes, "nodes");
	return AP_OK;
}

/* Indexes sub-graphs and their parameters by name. */
static enum ap_status index_funcs(struct flat *e)
{
	size_t most = 0;

	for (size_t f = 0; f < e->ir->funcs.n; f++)
		most += e->ir->funcs.v[f].nparam;
	e->place = AP_NEW_N(e->ctx->arena, uint32_t, most);
	for (size_t f = 0; f < e->ir->funcs.n; f++) {
		const struct ap_ir_func *func = &e->ir->funcs.v[f];
		bool fresh;

		ap_map_put_str(e->funcs, func->name, &fresh);
		if (!fresh)
			return fault(e, func->line, AP_MEANING, "there are two sub-graphs @%s",
				ap_diag_name(e->ctx->diag, func->name));
		for (uint32_t k = 0; k < func->nparam; k++)
			e->place[ap_map_put_str(e->places, func->param[k], NULL)] = k;
	}
	return AP_OK;
}

/* Checks that the dump is complete; indexes sub-graphs; makes tensors of parameters. */
static enum ap_status prepare(struct flat *e)
{
	struct ap_arena *a = e->ctx->arena;

	e->funcs = ap_map_create(a);
	e->roles = ap_map_create(a);
	e->param_names = ap_map_create(a);
	e->places = ap_map_create(a);
	e->assumed = ap_map_create(a);
	for (size_t i = 0; i < AP_COUNT(plumbing); i++)
		ap_map_put_str(e->roles, plumbing[i].prim, NULL);
	for (size_t f = 0; f < e->ir->funcs.n; f++)
		for (size_t i = 0; i < e->ir->funcs.v[f].nodes.n; i++) {
			const struct ap_ir_node *n = &e->ir->funcs.v[f].nodes.v[i];

			/* networks are still Python objects and names */
			if (n->out.form == AP_IR_TYPE_NULL ||
				(n->prim && ap_flat_role(e, n->prim) == FLAT_EARLY))
				return ap_source_refuse(e->ctx, e->ir->file, n->line,
					"was written before types are known");
		}
	AP_TRY(check_whole(e));
	e->running = AP_NEW_N(a, bool, e->ir->funcs.n);
	AP_TRY(index_funcs(e));
	/* a tensor for each entry parameter, with the same id */
	for (size_t i = 0; i < e->ir->params.n; i++) {
		const struct ap_ir_param *p = &e->ir->params.v[i];
		const char *at = strchr(p->name, '_');
		struct ap_flat_tensor t = {.line = p->line, .type = p->type,
			.kind = p->has_default || p->type.ref ? AP_TENSOR_PARAM : AP_TENSOR_INPUT,
			.name = p->type.ref_key ? p->type.ref_key : at ? at + 1 : p->name};
		bool fresh;

		ap_map_put_str(e->param_names, p->name, &fresh);
		if (!fresh)
			return fault(e, p->line, AP_MEANING, "there are two parameters %%%s",
				ap_diag_name(e->ctx->diag, p->name));
		AP_PUSH(e->ctx->arena, e->flat->tensors, t);
	}
	return AP_OK;
}

/* Counts matrix products and the like in a sub-graph and its callees, each once. */
static int64_t products(struct flat *e, ap_id func, uint32_t *seen, uint32_t turn)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[func];
	int64_t n = 0;

	if (seen[func] == turn)
		return 0;
	seen[func] = turn;
	for (size_t i = 0; i < f->nodes.n; i++) {
		const struct ap_ir_node *node = &f->nodes.v[i];
		const char *type = node->prim ? ap_op_canonical(node->prim, NULL) : NULL;
		const struct ap_op_row *row = type ? ap_op_next(NULL, type) : NULL;
		ap_id to = !node->prim && node->callee.kind == AP_IR_FUNC
			? ap_map_get_str(e->funcs, node->callee.s) : AP_NONE;

		n += row && row->unit == AP_OP_CUBE;
		if (to != AP_NONE && e->depth++ < MOST_SOUGHT)
			n += products(e, to, seen, turn);
	}
	return n;
}

/* Finds the gradient whose forward graph has the most products. *of: the sub-graph that contains
 * it. */
static enum ap_status find_grad(struct flat *e, ap_id *of)
{
	uint32_t found = 0, *seen = AP_NEW_N(e->ctx->arena, uint32_t, e->ir->funcs.n);
	int64_t most = -1;

	for (ap_id f = 0; f < e->ir->funcs.n; f++)
		for (size_t i = 0; i < e->ir->funcs.v[f].nodes.n; i++) {
			const struct ap_ir_node *n = &e->ir->funcs.v[f].nodes.v[i];
			ap_id to;
			int64_t count;

			if (!n->prim || ap_flat_role(e, n->prim) != FLAT_GRAD || !n->nin)
				continue;
			to = n->in[0].kind == AP_IR_FUNC ? ap_map_get_str(e->funcs, n->in[0].s) : AP_NONE;
			e->depth = 0;
			found++;
			count = to == AP_NONE ? 0 : products(e, to, seen, found);
			if (count > most) {
				most = count;
				e->grad = n;
				*of = f;
			}
		}
	e->depth = 0;
	if (found < 2)
		return AP_OK;
	return warn(e, e->grad->line, "dump-gradients", "gradients of %" PRIu32 " sub-graphs are "
		"taken; the graph is that of this one, which has most products of matrices", found);
}

/* Marks what node `to` of sub-graph `of` needs; then the same for the callers, up to the entry. */
static void want(struct flat *e, ap_id of, const struct ap_ir_node *to)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[of];
	bool *wanted = AP_NEW_N(e->ctx->arena, bool, f->nodes.n);
	struct ap_map *labels;

	if (e->wanted[of])
		return;
	e->wanted[of] = wanted;
	wanted[to - f->nodes.v] = true;
	/* other sub-graphs may use labelled nodes as free variables */
	labels = ap_map_create(e->ctx->arena);
	for (size_t g = 0; g < e->ir->funcs.n; g++)
		for (size_t i = 0; i < e->ir->funcs.v[g].nodes.n; i++) {
			const struct ap_ir_node *n = &e->ir->funcs.v[g].nodes.v[i];

			for (uint32_t k = 0; k < n->nin; k++)
				if (n->in[k].kind == AP_IR_FREE && !strcmp(n->in[k].of, f->name))
					ap_map_put_str(labels, n->in[k].s, NULL);
		}
	for (size_t i = 0; i < f->nodes.n; i++)
		if (ap_map_get_str(labels, f->nodes.v[i].label) != AP_NONE && *f->nodes.v[i].label)
			wanted[i] = true;
	/* backwards from marked nodes */
	for (size_t i = f->nodes.n; i-- > 0;) {
		const struct ap_ir_node *n = &f->nodes.v[i], *from;

		if (!wanted[i])
			continue;
		for (uint32_t k = 0; k < n->nin + !n->prim; k++) {
			const struct ap_ir_value *v = k < n->nin ? &n->in[k] : &n->callee;

			from = v->kind == AP_IR_NODE ? ap_ir_node(f, v->i) : NULL;
			if (from && from < n)
				wanted[from - f->nodes.v] = true;
		}
	}
	for (ap_id g = 0; g < e->ir->funcs.n; g++)
		for (size_t i = 0; i < e->ir->funcs.v[g].nodes.n; i++) {
			const struct ap_ir_node *n = &e->ir->funcs.v[g].nodes.v[i];

			if (!n->prim && n->callee.kind == AP_IR_FUNC && !strcmp(n->callee.s, f->name) &&
				e->depth++ < MOST_SOUGHT) {
				want(e, g, n);
				return;
			}
		}
}

/* Finds the call of the gradient function. */
static enum ap_status find_call(struct flat *e, ap_id of)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[of];
	const struct ap_ir_value *to = &e->grad->in[0];

	if (to->kind == AP_IR_FUNC && ap_map_get_str(e->funcs, to->s) == AP_NONE)
		return fault(e, e->grad->line, AP_MEANING, "sub-graph @%s is not in the dump",
			ap_diag_name(e->ctx->diag, to->s));
	for (size_t i = 0; i < f->nodes.n; i++) {
		const struct ap_ir_node *n = &f->nodes.v[i];

		if (!n->prim && n->callee.kind == AP_IR_NODE && n->callee.i == e->grad->id) {
			e->grad_call = n;
			e->wanted = AP_NEW_N(e->ctx->arena, const bool *, e->ir->funcs.n);
			want(e, of, n);
			e->depth = 0;
			return AP_OK;
		}
	}
	return fault(e, e->grad->line, AP_MEANING, "the gradient is never asked for");
}

enum { MOST_CALLS = 128, MOST_OPS = 1 << 20 };
enum { NODE_BYTES = 128, VALUE_BYTES = sizeof(struct ap_flat_value) }; /* memory beside the text */

/* Adds the results of an operator: a tensor, or a tuple of tensors. */
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
			return fault(e, n->line, AP_MEANING, "result %" PRIu32 " of \"%s\" is no "
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

static enum ap_status refuse(struct flat *e, int64_t line, const char *why)
{
	if (e->params->partial && e->flat->ops.n)
		return fault(e, line, AP_MEANING, "what follows %s", why);
	return ap_source_refuse(e->ctx, e->ir->file, line, why);
}

static enum ap_status check_op(struct flat *e, const struct ap_ir_node *n)
{
	if (!n->typed)
		return no_types(e, n);
	if (n->scope && !strncmp(n->scope, "Gradients/", 10))
		return refuse(e, n->line, "holds the backward pass");
	if (ap_ir_attr(&n->primal_attrs, "forward_node_name") || ap_ir_attr(&n->node_attrs, "duplicated"))
		return refuse(e, n->line, "holds the backward pass");
	if (ap_ir_attr(&n->primal_attrs, "origin_output_shape") && !e->flat->sliced) {
		if (!e->params->partial)
			return refuse(e, n->line, "holds what each device runs");
		e->flat->sliced = true; /* a piece cannot be planned from anyway */
		AP_TRY(warn(e, n->line, "dump-partial", "holds what each device runs: shapes are those of "
			"its slices, and strategies are left out"));
	}
	if (e->flat->ops.n == MOST_OPS)
		return fault(e, n->line, AP_LIMIT, "more than %d operators, those of "
			"sub-graphs counted at each call", MOST_OPS);
	return AP_OK;
}

static enum ap_status add_op(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	const int64_t most = 1 << 20; /* as for --micro-batches; larger marks are not of a plan */
	const struct ap_ir_value *v = ap_ir_attr(&n->primal_attrs, "micro");
	struct ap_flat_op op = {.node = n, .nin = n->nin, .in = in,
		.micro = v && v->kind == AP_IR_INT && v->i < most ? v->i : -1};
	size_t tensors = e->flat->tensors.n;
	enum ap_status st;

	AP_TRY(check_op(e, n));
	for (uint32_t i = 0; i < n->nin; i++)
		AP_TRY(charge(e, n->line, (size_t)VALUE_BYTES * (flat_size(&in[i]) - 1)));
	while (op.nin && n->in_type[op.nin - 1].monad) /* monads follow the operands of operators
			with side effects */
		op.nin--;
	AP_PUSH(e->ctx->arena, e->flat->ops, op);
	st = add_results(e, (ap_id)e->flat->ops.n - 1, n, out);
	if (st != AP_OK) { /* a piece ends before this operator */
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
		return assume(e, n->line, ap_arena_printf(e->ctx->arena, "%s.%" PRId64,
			e->flat->tensors.v[in[0].id].name, k), &n->out, out);
	if (k < 0 || in[0].kind != AP_FLAT_TUPLE || k >= in[0].n)
		return fault(e, n->line, AP_MEANING,
			"\"%s\" takes an element that is not there", shown(e, n->prim));
	*out = in[0].v[k];
	return AP_OK;
}

static enum ap_status bind_args(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	struct ap_flat_value *v;

	if (!n->nin || in[0].kind != AP_FLAT_FUNC)
		return fault(e, n->line, AP_MEANING, "Partial of what is no sub-graph");
	AP_TRY(charge(e, n->line, (size_t)VALUE_BYTES * in[0].n));
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

/* Is it a known truth value, Bool(1) or Tensor(shape=[], dtype=Bool, value=True)? *yes: the
 * value. */
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

/* Makes a constant of a tensor's shape. */
static enum ap_status measure(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	const struct ap_ir_type *t = n->nin == 1 && in[0].kind == AP_FLAT_TENSOR
		? &e->flat->tensors.v[in[0].id].type : NULL;
	struct ap_ir_value *v;

	if (!t || !t->shaped || t->rank > AP_MAX_RANK)
		return fault(e, n->line, AP_MEANING, "the shape of what is no tensor");
	v = AP_NEW_N(e->ctx->arena, struct ap_ir_value, t->rank);
	for (uint8_t i = 0; i < t->rank; i++)
		v[i] = (struct ap_ir_value){.kind = AP_IR_INT, .size = 1, .i = t->dim[i],
			.f = (double)t->dim[i], .s = "", .of = "I64"};
	*out = constant_list(e, t->rank, v);
	return AP_OK;
}

static enum ap_status plumb(struct flat *e, enum flat_role role, const struct ap_ir_node *n,
	const struct ap_flat_value *in, struct ap_flat_value *out)
{
	bool yes;

	*out = (struct ap_flat_value){.kind = AP_FLAT_NOTHING};
	switch (role) {
	case FLAT_PASS:
		if (n->nin)
			*out = in[0];
		return n->nin ? AP_OK : fault(e, n->line, AP_MEANING, "\"%s\" has no operand",
			shown(e, n->prim));
	case FLAT_GET:
		return get_element(e, n, in, out);
	case FLAT_TUPLE:
		return tuple(e, n->line, n->nin, in, out);
	case FLAT_SHAPE:
		return measure(e, n, in, out);
	case FLAT_BIND:
		return bind_args(e, n, in, out);
	case FLAT_CHOOSE:
		if (n->nin != 3 || !is_known(&in[0], &yes))
			return fault(e, n->line, AP_MEANING, "control flow: which sub-graph runs is only "
				"known when it does; expected a network whose graph is fixed");
		*out = in[yes ? 1 : 2];
		return AP_OK;
	case FLAT_SLICED:
		return refuse(e, n->line,
			ap_arena_printf(e->ctx->arena, "holds what each device runs (%s)", n->prim));
	case FLAT_GRAD:
		if (n == e->grad && n->nin) {
			*out = in[0];
			return AP_OK;
		}
		return fault(e, n->line, AP_MEANING, "a gradient of a gradient is not planned");
	default:
		return AP_OK;
	}
}

static enum ap_status flat_call(struct flat *e, int64_t line, ap_id func,
	const struct ap_flat_frame *around, uint32_t n, const struct ap_flat_value *arg,
	struct ap_flat_value *out);

static enum ap_status run_node(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, struct ap_flat_value *out)
{
	struct ap_flat_value *in = AP_NEW_N(e->ctx->arena, struct ap_flat_value, n->nin);
	enum flat_role role;

	for (uint32_t i = 0; i < n->nin; i++)
		AP_TRY(flat_resolve(e, frame, n, &n->in[i], n->typed ? &n->in_type[i] : NULL, &in[i]));
	if (!n->prim) {
		struct ap_flat_value callee, *args;

		AP_TRY(flat_resolve(e, frame, n, &n->callee, NULL, &callee));
		if (callee.kind == AP_FLAT_NOTHING && e->params->partial && n->typed)
			return assume(e, n->line, ap_arena_printf(e->ctx->arena, "%%%" PRId64, n->id),
				&n->out, out);
		if (callee.kind != AP_FLAT_FUNC)
			return fault(e, n->line, AP_MEANING, "calls what is no sub-graph");
		AP_TRY(charge(e, n->line, (size_t)VALUE_BYTES * callee.n));
		args = AP_NEW_N(e->ctx->arena, struct ap_flat_value, callee.n + n->nin);
		for (uint32_t i = 0; i < callee.n; i++)
			args[i] = callee.v[i];
		for (uint32_t i = 0; i < n->nin; i++)
			args[callee.n + i] = in[i];
		AP_TRY(flat_call(e, n->line, callee.id, callee.frame ? callee.frame : frame,
			callee.n + n->nin, args, out));
		if (out->kind == AP_FLAT_NOTHING && !e->ir->funcs.v[callee.id].closed && n != e->grad_call)
			return fault(e, n->line, AP_MEANING, "the end of sub-graph @%s is not there",
				shown(e, e->ir->funcs.v[callee.id].name));
		if (n == e->grad_call) {
			e->done = true;
			e->result = *out;
		}
		return AP_OK;
	}
	role = ap_flat_role(e, n->prim);
	return role == FLAT_OPERATOR ? add_op(e, n, in, out) : plumb(e, role, n, in, out);
}

/* Adds the operators of a sub-graph in place of its call. */
static enum ap_status flat_call(struct flat *e, int64_t line, ap_id func,
	const struct ap_flat_frame *around, uint32_t n, const struct ap_flat_value *arg,
	struct ap_flat_value *out)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[func];
	struct ap_flat_frame *frame;
	const bool *wanted = e->wanted ? e->wanted[func] : NULL;
	enum ap_status st = AP_OK;

	if (e->running[func] || e->depth == MOST_CALLS)
		return fault(e, line, AP_MEANING, e->running[func] ? "sub-graph @%s calls itself"
			: "sub-graph @%s is called by others that are nested too deep", shown(e, f->name));
	if (n != f->nparam)
		return fault(e, line, AP_MEANING, "%" PRIu32 " arguments for sub-graph @%s, which "
			"has %" PRIu32 " parameters (line %" PRId64 ")", n, shown(e, f->name), f->nparam,
			f->line);
	AP_TRY(charge(e, line, f->bytes + NODE_BYTES * (f->nodes.n + 1)));
	frame = AP_NEW(e->ctx->arena, struct ap_flat_frame);
	*frame = (struct ap_flat_frame){.func = f, .around = around, .arg = arg,
		.node = AP_NEW_N(e->ctx->arena, struct ap_flat_value, f->nodes.n)};
	e->running[func] = true;
	e->depth++;
	*out = (struct ap_flat_value){.kind = AP_FLAT_NOTHING};
	for (size_t i = 0; st == AP_OK && !e->done && i < f->nodes.n; i++) {
		if (wanted && !wanted[i])
			continue;
		st = run_node(e, frame, &f->nodes.v[i], &frame->node[i]);
		if (st == AP_OK && !e->done && f->nodes.v[i].id < 0)
			*out = frame->node[i];
	}
	e->depth--;
	e->running[func] = false;
	return st;
}

static enum ap_status run_entry(struct flat *e, ap_id entry)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[entry];
	struct ap_flat_value *arg = AP_NEW_N(e->ctx->arena, struct ap_flat_value, f->nparam), result;

	for (uint32_t i = 0; i < f->nparam; i++) {
		ap_id id = ap_map_get_str(e->param_names, f->param[i]);

		if (id == AP_NONE && !e->params->partial)
			return fault(e, f->line, AP_MEANING,
				"%%%s is not among the dump's parameters",
				ap_diag_name(e->ctx->diag, f->param[i]));
		if (id != AP_NONE)
			arg[i] = flat_param(e, id);
	}
	AP_TRY(flat_call(e, f->line, entry, NULL, f->nparam, arg, &result));
	if (!e->grad_call)
		e->result = result;
	return AP_OK;
}

/* Finds the forward graph and runs it; sets e->result. */
static enum ap_status forward(struct flat *e)
{
	ap_id of = AP_NONE, entry = e->ir->entry ? ap_map_get_str(e->funcs, e->ir->entry) : AP_NONE;

	if (entry == AP_NONE && !e->params->partial)
		return fault(e, 1, AP_MEANING, "the entry @%s is not in the dump",
			ap_diag_name(e->ctx->diag, e->ir->entry));
	AP_TRY(find_grad(e, &of));
	if (entry == AP_NONE) { /* a piece without header: take the largest sub-graph */
		entry = 0;
		for (ap_id f = 1; f < e->ir->funcs.n; f++)
			if (e->ir->funcs.v[f].nodes.n > e->ir->funcs.v[entry].nodes.n)
				entry = f;
		return run_entry(e, entry);
	}
	if (!e->grad)
		return run_entry(e, entry);
	AP_TRY(find_call(e, of));
	AP_TRY(run_entry(e, entry));
	if (e->done)
		return AP_OK;
	return fault(e, e->grad->line, AP_MEANING,
		"the gradient is not asked for by the entry, nor by what that calls");
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
	AP_TRY(prepare(&e));
	st = forward(&e);
	if (!e.ended)
		AP_TRY(st);
	out->inference = !e.grad;
	for (size_t i = 0; i < out->ops.n; i++)
		for (uint32_t k = 0; k < out->ops.v[i].nin; k++)
			mark_used(&e, &out->ops.v[i].in[k]);
	mark_used(&e, &e.result);
	add_outputs(&e, &e.result);
	for (ap_id t = 0, n = (ap_id)out->outputs.n; !n && params->partial && t < out->tensors.n; t++)
		if (out->tensors.v[t].kind == AP_TENSOR_ACT && !out->tensors.v[t].used &&
			out->tensors.v[t].result == 0) /* a piece without Return has unused
					values as results */
			AP_PUSH(ctx->arena, out->outputs, t);
	if (!out->ops.n || !out->outputs.n)
		return fault(&e, ir->lines, AP_MEANING, "holds no operator of a forward pass");
	return AP_OK;
}
