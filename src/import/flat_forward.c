/* SPDX-License-Identifier: Apache-2.0 */
/* Where the forward pass is in a dump, and that the dump is whole. */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "import/flat_parts.h"
#include "import/ir_parse.h"
#include "import/source.h"
#include "rule/op.h"

enum { MOST_SOUGHT = 256 }; /* sub-graphs looked through for the forward pass */

static const struct {
	const char *prim;
	enum flat_role role;
} plumbing[] = {
#define NODE(name, what) {#name, FLAT_##what},
#include "import/plumbing.def"
};

enum flat_role ap_flat_role(const struct flat *e, const char *prim)
{
	ap_id id = ap_map_get_str(e->roles, prim);

	return id == AP_NONE ? FLAT_OPERATOR : plumbing[id].role;
}

struct ap_flat_value ap_flat_param(const struct flat *e, ap_id param)
{
	return e->flat->tensors.v[param].type.form == AP_IR_TYPE_TENSOR
		? (struct ap_flat_value){.kind = AP_FLAT_TENSOR, .id = param}
		: (struct ap_flat_value){.kind = AP_FLAT_NOTHING};
}

/* What is missing: an error, or a warning where a piece was asked for. */
static enum ap_status missing(struct flat *e, int64_t line, const char *text)
{
	struct ap_where where = {.file = e->ir->file, .line = line};

	if (e->params->partial)
		return ap_diag_add(e->ctx->diag, AP_WARNING, AP_OK, &where, "dump-partial", "%s", text);
	return ap_diag_add(e->ctx->diag, AP_ERROR, AP_SYNTAX, &where, NULL, "%s; --partial reads what is "
		"there", text);
}

/* More than the header counts: nothing is missing, but neither is all of it a dump. */
static void check_more(struct flat *e, int64_t n, int64_t said, const char *what)
{
	if (said >= 0 && n > said)
		ap_diag_add(e->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = e->ir->file},
			"dump-count", "holds %" PRId64 " %s, but its header counts %" PRId64, n, what, said);
}

static enum ap_status check_counts(struct flat *e)
{
	const struct ap_ir *ir = e->ir;
	int64_t nodes = 0;

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

static enum ap_status check_whole(struct flat *e)
{
	const struct ap_ir *ir = e->ir;

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
	return check_counts(e);
}

/* Sub-graphs and their parameters by name. */
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
			return ap_flat_fault(e, func->line, AP_MEANING, "there are two sub-graphs @%s",
				ap_diag_name(e->ctx->diag, func->name));
		for (uint32_t k = 0; k < func->nparam; k++)
			e->place[ap_map_put_str(e->places, func->param[k], NULL)] = k;
	}
	return AP_OK;
}

/* A tensor for each of the entry's parameters, ids alike. */
static enum ap_status index_params(struct flat *e)
{
	for (size_t i = 0; i < e->ir->params.n; i++) {
		const struct ap_ir_param *p = &e->ir->params.v[i];
		const char *at = strchr(p->name, '_');
		struct ap_flat_tensor t = {.line = p->line, .type = p->type,
			.kind = p->has_default || p->type.ref ? AP_TENSOR_PARAM : AP_TENSOR_INPUT,
			.name = p->type.ref_key ? p->type.ref_key : at ? at + 1 : p->name};
		bool fresh;

		ap_map_put_str(e->param_names, p->name, &fresh);
		if (!fresh)
			return ap_flat_fault(e, p->line, AP_MEANING, "there are two parameters %%%s",
				ap_diag_name(e->ctx->diag, p->name));
		AP_PUSH(e->ctx->arena, e->flat->tensors, t);
	}
	return AP_OK;
}

/* Before types are inferred, networks are still Python's objects and names. */
static enum ap_status check_late(struct flat *e)
{
	for (size_t f = 0; f < e->ir->funcs.n; f++)
		for (size_t i = 0; i < e->ir->funcs.v[f].nodes.n; i++) {
			const struct ap_ir_node *n = &e->ir->funcs.v[f].nodes.v[i];

			if (n->out.form == AP_IR_TYPE_NULL ||
				(n->prim && ap_flat_role(e, n->prim) == FLAT_EARLY))
				return ap_source_refuse(e->ctx, e->ir->file, n->line,
					"was written before types are known");
		}
	return AP_OK;
}

enum ap_status ap_flat_prepare(struct flat *e)
{
	struct ap_arena *a = e->ctx->arena;

	e->funcs = ap_map_create(a);
	e->roles = ap_map_create(a);
	e->param_names = ap_map_create(a);
	e->places = ap_map_create(a);
	e->assumed = ap_map_create(a);
	for (size_t i = 0; i < AP_COUNT(plumbing); i++)
		ap_map_put_str(e->roles, plumbing[i].prim, NULL);
	AP_TRY(check_late(e));
	AP_TRY(check_whole(e));
	e->running = AP_NEW_N(a, bool, e->ir->funcs.n);
	AP_TRY(index_funcs(e));
	return index_params(e);
}

/* Products of matrices and the like in a sub-graph and those that it calls, each counted once. */
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

/* The gradient whose forward graph has most products. *of: the sub-graph that it is in. */
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
	return ap_diag_add(e->ctx->diag, AP_WARNING, AP_OK, &(struct ap_where){.file = e->ir->file,
		.line = e->grad->line}, "dump-gradients", "gradients of %" PRIu32 " sub-graphs are "
		"taken; the graph is that of this one, which has most products of matrices", found);
}

/* Backwards from the nodes that are marked. */
static void spread(const struct ap_ir_func *f, bool *wanted)
{
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
}

/* Nodes of a sub-graph that others use as free variables are wanted as well. */
static void want_free(struct flat *e, const struct ap_ir_func *f, bool *wanted)
{
	struct ap_map *labels = ap_map_create(e->ctx->arena);

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
}

/* Node `to` of sub-graph `of` is all that is wanted of it; then those that call it, up to the entry. */
static void want(struct flat *e, ap_id of, const struct ap_ir_node *to)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[of];
	bool *wanted = AP_NEW_N(e->ctx->arena, bool, f->nodes.n);

	if (e->wanted[of])
		return;
	e->wanted[of] = wanted;
	wanted[to - f->nodes.v] = true;
	want_free(e, f, wanted);
	spread(f, wanted);
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

/* The call of what J gives. */
static enum ap_status find_call(struct flat *e, ap_id of)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[of];
	const struct ap_ir_value *to = &e->grad->in[0];

	if (to->kind == AP_IR_FUNC && ap_map_get_str(e->funcs, to->s) == AP_NONE)
		return ap_flat_fault(e, e->grad->line, AP_MEANING, "sub-graph @%s is not in the dump",
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
	return ap_flat_fault(e, e->grad->line, AP_MEANING, "the gradient is never asked for");
}

/* Of a piece without header: the sub-graph of most nodes. */
static ap_id largest(const struct ap_ir *ir)
{
	ap_id best = 0;

	for (ap_id f = 1; f < ir->funcs.n; f++)
		if (ir->funcs.v[f].nodes.n > ir->funcs.v[best].nodes.n)
			best = f;
	return best;
}

static enum ap_status run_entry(struct flat *e, ap_id entry)
{
	const struct ap_ir_func *f = &e->ir->funcs.v[entry];
	struct ap_flat_value *arg = AP_NEW_N(e->ctx->arena, struct ap_flat_value, f->nparam), result;

	for (uint32_t i = 0; i < f->nparam; i++) {
		ap_id id = ap_map_get_str(e->param_names, f->param[i]);

		if (id == AP_NONE && !e->params->partial)
			return ap_flat_fault(e, f->line, AP_MEANING,
				"%%%s is not among the dump's parameters",
				ap_diag_name(e->ctx->diag, f->param[i]));
		if (id != AP_NONE)
			arg[i] = ap_flat_param(e, id);
	}
	AP_TRY(ap_flat_call(e, f->line, entry, NULL, f->nparam, arg, &result));
	if (!e->grad_call)
		e->result = result;
	return AP_OK;
}

enum ap_status ap_flat_forward(struct flat *e)
{
	ap_id of = AP_NONE, entry = e->ir->entry ? ap_map_get_str(e->funcs, e->ir->entry) : AP_NONE;

	if (entry == AP_NONE && !e->params->partial)
		return ap_flat_fault(e, 1, AP_MEANING, "the entry @%s is not in the dump",
			ap_diag_name(e->ctx->diag, e->ir->entry));
	AP_TRY(find_grad(e, &of));
	if (!e->grad || (e->params->partial && entry == AP_NONE))
		return run_entry(e, entry == AP_NONE ? largest(e->ir) : entry);
	AP_TRY(find_call(e, of));
	AP_TRY(run_entry(e, entry));
	if (e->done)
		return AP_OK;
	return ap_flat_fault(e, e->grad->line, AP_MEANING,
		"the gradient is not asked for by the entry, nor by what that calls");
}
