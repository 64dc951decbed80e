/* SPDX-License-Identifier: Apache-2.0 */
/* Writes autopar-graph/1, a line per tensor and operator. */
#include "import/write.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/json_write.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"

static int64_t batch_of(const struct ap_import *g)
{
	for (size_t i = 0; i < g->tensors.n; i++)
		if (g->tensors.v[i].batch)
			return g->tensors.v[i].shape.dim[0];
	return 0;
}

static void take_shapes(struct ap_ctx *ctx, struct ap_import *g, const struct ap_graph *from)
{
	struct ap_map *names = ap_map_create(ctx->arena);

	for (ap_id t = 0; t < g->tensors.n; t++)
		ap_map_put_str(names, g->tensors.v[t].name, NULL);
	for (uint32_t t = 0; t < from->ntensor; t++) {
		ap_id id = ap_map_get_str(names, from->tensor[t].name);

		if (id != AP_NONE)
			g->tensors.v[id].shape = from->tensor[t].shape;
	}
}

static void take_attrs(struct ap_ctx *ctx, struct ap_import *g, const struct ap_graph *from)
{
	struct ap_map *names = ap_map_create(ctx->arena);

	for (size_t i = 0; i < g->ops.n; i++)
		ap_map_put_str(names, g->ops.v[i].name, NULL);
	for (uint32_t i = 0; i < from->nnode; i++) {
		struct ap_import_op *op = &g->ops.v[ap_map_get_str(names, from->node[i].name)];

		if (op->attrs.n == from->node[i].attrs.n)
			op->attrs = from->node[i].attrs;
	}
}

enum ap_status ap_import_scale(struct ap_ctx *ctx, struct ap_import *g, const char *file,
	int64_t micro_batches, bool unknown_batch_parallel)
{
	struct ap_ctx inner = ap_diag_apart(ctx);
	struct ap_graph_params params = {
		.batch = INT64_MAX, .unknown_batch_parallel = unknown_batch_parallel};
	const struct ap_graph *scaled;
	struct ap_json *doc;
	struct ap_str text;
	const char *why;

	(void)ap_mul(batch_of(g), micro_batches, &params.batch); /* on overflow: above the limit
			of graphs */
	ap_str_init(&text, ctx->arena);
	ap_import_write(ctx, g, ap_str_take, &text);
	if (ap_json_parse(&inner, file, text.s, text.len, 0, &doc) == AP_OK &&
		ap_graph_load(&inner, doc, NULL, &params, &scaled) == AP_OK) {
		take_shapes(ctx, g, scaled);
		take_attrs(ctx, g, scaled);
		return AP_OK;
	}
	why = ap_diag_text(inner.diag, 0, NULL, NULL);
	return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = file},
		"micro-batches", "the micro-batch cannot be multiplied by %" PRId64 ": %s", micro_batches,
		why ? why : "its operators do not follow the batch");
}

static void write_shape(struct ap_jw *w, const struct ap_import_tensor *t)
{
	if (t->shaped)
		ap_jw_kints(w, "shape", t->shape.dim, t->shape.rank);
	ap_jw_kstr(w, "dtype", ap_dtype_name(t->shape.dtype));
}

static void write_tensors(struct ap_jw *w, const struct ap_import *g, const char *key,
	enum ap_tensor_kind kind)
{
	ap_jw_karr(w, key);
	for (size_t i = 0; i < g->tensors.n; i++)
		if (g->tensors.v[i].kind == kind) {
			const struct ap_import_tensor *t = &g->tensors.v[i];

			ap_jw_obj_flat(w);
			ap_jw_kstr(w, "name", t->name);
			write_shape(w, t);
			if (t->read_as != AP_DTYPE_COUNT)
				ap_jw_kstr(w, "read_as", ap_dtype_name(t->read_as));
			if (t->batch)
				ap_jw_kint(w, "batch_dim", 0);
			if (t->kind == AP_TENSOR_PARAM && !t->learned)
				ap_jw_kbool(w, "trainable", false);
			ap_jw_end(w);
		}
	ap_jw_end(w);
}

static void write_attrs(struct ap_jw *w, const struct ap_attrs *attrs)
{
	if (!attrs->n)
		return;
	ap_jw_kobj_flat(w, "attrs");
	for (uint32_t i = 0; i < attrs->n; i++) {
		const struct ap_attr *a = &attrs->v[i];

		switch (a->type) {
		case AP_ATTR_BOOL:
			ap_jw_kbool(w, a->name, a->i != 0);
			break;
		case AP_ATTR_INT:
			ap_jw_kint(w, a->name, a->i);
			break;
		case AP_ATTR_FLOAT:
			ap_jw_knum(w, a->name, a->f);
			break;
		case AP_ATTR_STRING:
			ap_jw_kstr(w, a->name, a->s);
			break;
		default:
			ap_jw_kints(w, a->name, a->list, a->n);
		}
	}
	ap_jw_end(w);
}

static void write_pin(struct ap_jw *w, const char *key, const struct ap_import_pin *pin)
{
	if (!pin->given)
		return;
	ap_jw_karr_flat(w, key);
	for (uint32_t i = 0; i < pin->n; i++)
		ap_jw_ints(w, pin->v[i].v, pin->v[i].n);
	ap_jw_end(w);
}

static void write_op(struct ap_jw *w, const struct ap_import *g, const struct ap_import_op *op)
{
	const struct {
		const char *key;
		int64_t value;
	} marks[] = {{"stage", op->stage}, {"segment", op->segment}, {"fusion", op->fusion}};

	ap_jw_obj_flat(w);
	ap_jw_kstr(w, "name", op->name);
	ap_jw_kstr(w, "type", op->type);
	ap_jw_karr_flat(w, "inputs");
	for (uint32_t i = 0; i < op->nin; i++) {
		if (op->in[i] == AP_NONE)
			ap_jw_null(w);
		else
			ap_jw_str(w, g->tensors.v[op->in[i]].name);
	}
	ap_jw_end(w);
	ap_jw_karr_flat(w, "outputs");
	for (uint32_t k = 0; k < op->nout; k++) {
		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", g->tensors.v[op->out + k].name);
		write_shape(w, &g->tensors.v[op->out + k]);
		ap_jw_end(w);
	}
	ap_jw_end(w);
	write_attrs(w, &op->attrs);
	if (op->cell)
		ap_jw_kstr(w, "cell", op->cell);
	if (op->instance)
		ap_jw_kstr(w, "instance", op->instance);
	write_pin(w, "in_strategy", &op->in_pin);
	write_pin(w, "out_strategy", &op->out_pin);
	for (size_t i = 0; i < AP_COUNT(marks); i++)
		if (marks[i].value >= 0)
			ap_jw_kint(w, marks[i].key, marks[i].value);
	if (op->recompute >= 0)
		ap_jw_kbool(w, "recompute", op->recompute);
	if (op->cross_batch)
		ap_jw_kbool(w, "cross_batch", true);
	ap_jw_end(w);
}

static void write_cells(struct ap_jw *w, const struct ap_import *g)
{
	if (!g->cells.n)
		return;
	ap_jw_karr(w, "cells");
	for (size_t i = 0; i < g->cells.n; i++) {
		const struct ap_import_cell *c = &g->cells.v[i];

		ap_jw_obj_flat(w);
		ap_jw_kstr(w, "name", c->name);
		ap_jw_key(w, "recompute");
		if (c->keeps_comm || c->slices) {
			ap_jw_obj_flat(w);
			ap_jw_kbool(w, "mp_comm_recompute", !c->keeps_comm);
			ap_jw_kbool(w, "recompute_slice_activation", c->slices);
			ap_jw_end(w);
		} else {
			ap_jw_bool(w, true);
		}
		ap_jw_end(w);
	}
	ap_jw_end(w);
}

void ap_import_write(struct ap_ctx *ctx, const struct ap_import *g, ap_write_fn *write, void *user)
{
	struct ap_jw w;

	(void)ctx;
	ap_jw_init(&w, write, user, 1);
	ap_jw_obj(&w);
	ap_jw_kstr(&w, "schema", "autopar-graph/1");
	ap_jw_kstr(&w, "name", g->name);
	if (g->optimizer)
		ap_jw_kstr(&w, "optimizer", g->optimizer);
	write_tensors(&w, g, "inputs", AP_TENSOR_INPUT);
	write_tensors(&w, g, "parameters", AP_TENSOR_PARAM);
	write_tensors(&w, g, "constants", AP_TENSOR_CONST);
	write_cells(&w, g);
	ap_jw_karr(&w, "operators");
	for (size_t i = 0; i < g->ops.n; i++)
		write_op(&w, g, &g->ops.v[i]);
	ap_jw_end(&w);
	ap_jw_karr_flat(&w, "outputs");
	for (size_t i = 0; i < g->outputs.n; i++)
		ap_jw_str(&w, g->tensors.v[g->outputs.v[i]].name);
	ap_jw_end(&w);
	ap_jw_end(&w);
	ap_jw_finish(&w);
}
