/* SPDX-License-Identifier: Apache-2.0 */
/* What operands stand for: results of nodes, parameters, constants, free variables. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "import/flat_parts.h"
#include "import/ir_parse.h"
#include "rule/binding.h"

enum { NAME_COPIES = 16 }; /* of a name made of another: each takes as long as the text up to it */

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
		for (uint32_t i = 0; i < type->n; i++) { /* no larger and deeper than its text */
			v.size += ap_flat_size(&part[i]);
			v.depth = part[i].depth > v.depth ? part[i].depth : v.depth;
		}
		v.depth++;
	}
	return v;
}

enum ap_status ap_flat_assume(struct flat *e, int64_t line, const char *name,
	const struct ap_ir_type *type, struct ap_flat_value *out)
{
	struct ap_where where = {.file = e->ir->file, .line = line};
	bool fresh;
	ap_id id;

	AP_TRY(ap_flat_charge(e, line, NAME_COPIES * strlen(name)));
	id = ap_map_put_str(e->assumed, name, &fresh);
	if (fresh)
		AP_PUSH(e->ctx->arena, e->assumptions, assumption(e, line, name, type));
	*out = e->assumptions.v[id];
	if (!fresh || out->kind == AP_FLAT_NOTHING)
		return AP_OK;
	return ap_diag_add(e->ctx->diag, AP_WARNING, AP_OK, &where, "dump-partial",
		"%s is not in this piece of a dump; it is taken for %s", shown(e, name),
		type->ref ? "a parameter" : "an input");
}

static enum ap_status unknown(struct flat *e, const struct ap_ir_node *n, const char *name,
	const struct ap_ir_type *type, struct ap_flat_value *out)
{
	if (!n->typed)
		return ap_flat_no_types(e, n);
	if (e->params->partial && type)
		return ap_flat_assume(e, n->line, name, type, out);
	return ap_flat_fault(e, n->line, AP_MEANING, "%s is not defined before it is used", shown(e, name));
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

/* The frame of a sub-graph from here outwards; NULL where it does not run. */
static const struct ap_flat_frame *frame_of(const struct flat *e, const struct ap_flat_frame *frame,
	ap_id func)
{
	while (frame && frame->func != &e->ir->funcs.v[func])
		frame = frame->around;
	return frame;
}

/* A parameter by name: of the frame's sub-graph, else of the entry. */
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
		*out = ap_flat_param(e, id);
	return id != AP_NONE;
}

/* Names of sub-graphs are long, and labels many. */
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

static enum ap_status labelled_value(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, struct ap_flat_value *out)
{
	const struct ap_ir_node *from;
	ap_id id;

	if (!e->labels)
		index_labels(e);
	id = ap_map_get_str(e->labels,
		label_key(e, (size_t)(frame->func - e->ir->funcs.v), v->s));
	from = id == AP_NONE ? NULL : e->labelled.v[id];
	if (!from)
		return ap_flat_fault(e, n->line, AP_MEANING, "$(@%s:%s) is %s", shown(e, v->of),
			shown(e, v->s), id == AP_NONE ? "no node of that sub-graph"
				: "the label of several nodes");
	*out = frame->node[from - frame->func->nodes.v];
	return AP_OK;
}

/* "$(@sub-graph:para3_name)", "$(@sub-graph:label)" */
static enum ap_status free_value(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	ap_id func = ap_map_get_str(e->funcs, v->of);
	const struct ap_flat_frame *at = func == AP_NONE ? NULL : frame_of(e, frame, func);

	if (!strncmp(v->s, "para", 4) && param_value(e, at, v->s, out))
		return AP_OK;
	if (at)
		return labelled_value(e, at, n, v, out);
	return unknown(e, n, v->s, type, out);
}

static enum ap_status func_value(struct flat *e, const struct ap_ir_node *n,
	const struct ap_flat_frame *frame, const char *name, struct ap_flat_value *out)
{
	ap_id func = ap_map_get_str(e->funcs, name);

	if (func == AP_NONE && e->params->partial)
		return AP_OK;
	if (func == AP_NONE)
		return ap_flat_fault(e, n->line, AP_MEANING, "sub-graph @%s is not in the dump",
			shown(e, name));
	*out = (struct ap_flat_value){.kind = AP_FLAT_FUNC, .id = func, .frame = frame};
	return AP_OK;
}

uint32_t ap_flat_size(const struct ap_flat_value *v)
{
	return v->kind == AP_FLAT_TUPLE ? v->size : v->kind == AP_FLAT_CONST ? v->c->size : 1;
}

static uint8_t depth_of(const struct ap_flat_value *v)
{
	return v->kind == AP_FLAT_TUPLE ? v->depth : v->kind == AP_FLAT_CONST ? v->c->depth : 0;
}

static struct ap_flat_value constant_list(struct flat *e, uint32_t n, const struct ap_flat_value *part)
{
	struct ap_ir_value *list = AP_NEW(e->ctx->arena, struct ap_ir_value);
	struct ap_ir_value *v = AP_NEW_N(e->ctx->arena, struct ap_ir_value, n);

	for (uint32_t i = 0; i < n; i++)
		v[i] = *part[i].c;
	*list = (struct ap_ir_value){.kind = AP_IR_LIST, .n = n, .v = v, .s = "", .of = ""};
	ap_ir_measure_list(list);
	return (struct ap_flat_value){.kind = AP_FLAT_CONST, .c = list};
}

enum ap_status ap_flat_tuple(struct flat *e, int64_t line, uint32_t n,
	const struct ap_flat_value *part, struct ap_flat_value *out)
{
	bool constant = true;
	uint8_t depth = 0;
	size_t size = 1;

	for (uint32_t i = 0; i < n; i++) {
		constant &= part[i].kind == AP_FLAT_CONST;
		size += ap_flat_size(&part[i]);
		depth = depth_of(&part[i]) > depth ? depth_of(&part[i]) : depth;
	}
	if (size > AP_IR_MOST_PARTS)
		return ap_flat_fault(e, line, AP_LIMIT, "a tuple of more than %d parts, those of tuples in "
			"it counted", AP_IR_MOST_PARTS);
	if (depth >= AP_IR_MOST_NESTED)
		return ap_flat_fault(e, line, AP_LIMIT, "tuples are nested deeper than %d",
			AP_IR_MOST_NESTED);
	if (constant)
		*out = constant_list(e, n, part);
	else
		*out = (struct ap_flat_value){.kind = AP_FLAT_TUPLE, .n = n, .v = part,
			.size = (uint32_t)size, .depth = depth + 1};
	return AP_OK;
}

/* A tuple that is written out, with references in it. */
static enum ap_status list_value(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	struct ap_flat_value *part = AP_NEW_N(e->ctx->arena, struct ap_flat_value, v->n);

	for (uint32_t i = 0; i < v->n; i++)
		AP_TRY(ap_flat_resolve(e, frame, n, &v->v[i], NULL, &part[i]));
	AP_TRY(ap_flat_tuple(e, n->line, v->n, part, out));
	out->type = type;
	return AP_OK;
}

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

/* A node's types repeat those of what it reads. */
static enum ap_status check_type(struct flat *e, const struct ap_ir_node *n, const struct ap_ir_type *type,
	const struct ap_flat_value *v)
{
	struct ap_where where = {.file = e->ir->file, .line = n->line};
	const struct ap_flat_tensor *from;

	if (!type || !type->shaped || type->rank > AP_MAX_RANK || v->kind != AP_FLAT_TENSOR)
		return AP_OK;
	from = &e->flat->tensors.v[v->id];
	if (!from->type.shaped || from->type.rank > AP_MAX_RANK || (from->type.rank == type->rank &&
		!memcmp(from->type.dim, type->dim, type->rank * sizeof *type->dim)))
		return AP_OK;
	return ap_diag_add(e->ctx->diag, AP_WARNING, AP_OK, &where, "dump-types",
		"\"%s\" reads the shape %s here, but line %" PRId64 " gives %s",
		shown(e, n->prim ? n->prim : "call"), ap_shape_text(e->ctx->arena, type->dim, type->rank),
		from->line, ap_shape_text(e->ctx->arena, from->type.dim, from->type.rank));
}

enum ap_status ap_flat_resolve(struct flat *e, const struct ap_flat_frame *frame,
	const struct ap_ir_node *n, const struct ap_ir_value *v, const struct ap_ir_type *type,
	struct ap_flat_value *out)
{
	AP_TRY(resolve(e, frame, n, v, type, out));
	return check_type(e, n, type, out);
}
