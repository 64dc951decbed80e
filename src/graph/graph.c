/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the immutable graph from what was read and bound. */
#include "graph/graph.h"

#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/num.h"
#include "graph/batch.h"
#include "graph/bind.h"
#include "graph/canonical.h"
#include "graph/check.h"
#include "graph/index.h"
#include "graph/load.h"
#include "graph/read.h"
#include "graph/uneven.h"
#include "rule/deal.h"

struct finish {
	struct ap_load *l;
	struct ap_graph *g;
	struct ap_tensor *tensor;
	struct ap_node *node;
	ap_id *id; /* new id of a tensor: leaves, then results by their producers */
};

static void place(struct finish *f, ap_id old)
{
	f->id[old] = f->g->ntensor;
	f->tensor[f->g->ntensor++] = f->l->tensors.v[old].t;
}

static const ap_id *renumber(struct finish *f, const ap_id *old, uint32_t n)
{
	ap_id *v = AP_NEW_N(f->l->ctx->arena, ap_id, n);

	for (uint32_t i = 0; i < n; i++)
		v[i] = f->id[old[i]];
	return v;
}

/* The parameter that names an operator in a checkpoint: its first trainable one, looking through
 * Cast, as MindSpore does. */
static ap_id first_param(const struct finish *f, const struct ap_node *n)
{
	for (uint16_t k = 0; k < n->bound.nin; k++) {
		const struct ap_tensor *t = &f->tensor[n->in[k]];

		while (t->kind == AP_TENSOR_ACT && strcmp(f->node[t->producer].type, "Cast") == 0)
			t = &f->tensor[f->node[t->producer].in[0]];
		if (t->kind == AP_TENSOR_PARAM && t->trainable)
			return (ap_id)(t - f->tensor);
	}
	return AP_NONE;
}

static int64_t elements(const struct ap_tensor *t)
{
	int64_t n = 0;

	ap_product(t->shape.dim, t->shape.rank, &n);
	return n;
}

enum ap_dtype ap_tensor_read_type(const struct ap_tensor *t)
{
	return t->read_as == AP_DTYPE_COUNT ? t->shape.dtype : t->read_as;
}

int64_t ap_tensor_bytes(const struct ap_tensor *t)
{
	return elements(t) * ap_dtype_bytes(t->shape.dtype);
}

static void place_ends(struct finish *f)
{
	struct ap_load *l = f->l;
	ap_id *input = AP_NEW_N(l->ctx->arena, ap_id, f->g->ntensor);
	ap_id *output = AP_NEW_N(l->ctx->arena, ap_id, l->outputs.n);

	for (ap_id t = 0; t < l->tensors.n; t++) {
		if (l->tensors.v[t].t.kind == AP_TENSOR_INPUT)
			input[f->g->ninput++] = f->id[t];
		if (l->tensors.v[t].t.kind == AP_TENSOR_PARAM)
			f->g->parameters += elements(&l->tensors.v[t].t);
	}
	for (size_t i = 0; i < l->outputs.n; i++)
		output[i] = f->id[ap_load_tensor(l, ap_jv_str(l->outputs.v[i]))];
	f->g->input = input;
	f->g->output = output;
	f->g->noutput = (uint32_t)l->outputs.n;
	f->g->loss = elements(&f->tensor[output[0]]) == 1 ? output[0] : AP_NONE;
	if (f->g->loss == AP_NONE && !l->params->inference)
		ap_load_say(l, AP_CHECK_LOSS, l->outputs.v[0], NULL,
			"\"%s\" is no scalar and so no loss; gradients start at every output",
			ap_load_name(l, f->tensor[output[0]].name));
}

/* Makes the immutable graph. */
static const struct ap_graph *load_finish(struct ap_load *l, const char *sha256)
{
	struct ap_arena *a = l->ctx->arena;
	struct ap_mark mark = ap_arena_mark(l->ctx->scratch);
	struct finish f = {.l = l, .g = AP_NEW(a, struct ap_graph)};

	f.tensor = AP_NEW_N(a, struct ap_tensor, l->tensors.n);
	f.node = AP_NEW_N(a, struct ap_node, l->nodes.n);
	f.id = AP_NEW_N(l->ctx->scratch, ap_id, l->tensors.n);
	*f.g = (struct ap_graph){.name = l->name, .file = ap_file_base(ap_json_file(l->doc)),
		.sha256 = sha256 ? sha256 : "", .source = l->params->source,
		.source_sha256 = l->params->source_sha256, .optimizer = l->optimizer, .tensor = f.tensor,
		.node = f.node, .batch = l->batch};
	for (uint32_t i = 0; i < l->nleaf; i++)
		place(&f, l->leaves[i]);
	for (uint32_t i = 0; i < l->nodes.n; i++) {
		const struct ap_raw_node *n = &l->nodes.v[l->order[i]];

		for (uint16_t k = 0; k < n->n.bound.nout; k++) {
			place(&f, n->out[k]);
			f.tensor[f.id[n->out[k]]].producer = i;
		}
	}
	f.g->nnode = (uint32_t)f.l->nodes.n;
	for (uint32_t i = 0; i < f.g->nnode; i++) {
		const struct ap_raw_node *n = &f.l->nodes.v[f.l->order[i]];

		f.node[i] = n->n;
		f.node[i].in = renumber(&f, n->in, n->nin);
		f.node[i].out = renumber(&f, n->out, n->n.bound.nout);
		f.node[i].param = first_param(&f, &f.node[i]);
		if (ap_pin_deals(&f.node[i]))
			ap_rule_deal(f.l->ctx, &f.node[i].bound);
	}
	place_ends(&f);
	ap_graph_index(l->ctx, f.g, f.tensor, f.node, l->params->inference);
	ap_load_place_cells(l, f.g, f.tensor, f.node);
	ap_arena_release(l->ctx->scratch, mark);
	return f.g;
}

const char *ap_node_key(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node)
{
	const struct ap_node *n = &g->node[node];

	return n->param == AP_NONE ? NULL
		: ap_arena_printf(ctx->arena, "%s_%s", n->type, g->tensor[n->param].name);
}

struct ap_graph *ap_graph_with_nodes(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_node **node)
{
	struct ap_graph *out = ap_arena_memdup(ctx->arena, g, sizeof *g);

	*node = ap_arena_memdup(ctx->arena, g->node, g->nnode * sizeof **node);
	out->node = *node;
	return out;
}

enum ap_status ap_graph_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_graph_params *params, const struct ap_graph **out)
{
	struct ap_load l = {.ctx = ctx, .doc = doc, .params = params, .name = "", .optimizer = ""};
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	size_t errors = ap_diag_count(ctx->diag, AP_ERROR); /* errors before this graph */

	l.names = ap_map_create(ctx->arena);
	l.bound_ids = ap_map_create(ctx->arena);
	if (ap_load_read(&l)) {
		/* checks the whole, then each operator in order; unused tensors only if there is no
		 * error, which might be the cause */
		ap_load_check(&l, AP_CHECK_GRAPH_EMPTY, AP_CHECK_EDGE_CYCLE);
		if (l.order)
			ap_load_bind(&l);
		ap_load_check(&l, AP_CHECK_PIN_LENGTH, AP_CHECK_GRAPH_SIZE);
		if (ap_diag_count(ctx->diag, AP_ERROR) == errors)
			ap_load_check(&l, AP_CHECK_TENSOR_UNUSED, AP_CHECK_OPERATOR_UNUSED);
	}
	if (l.status == AP_OK) {
		ap_load_order(&l);
		ap_load_mark_batch(&l);
	}
	if (l.status == AP_OK && params->batch > 0)
		ap_load_rescale(&l, params->batch);
	if (l.status == AP_OK)
		ap_load_judge_batch(&l);
	if (l.status == AP_OK)
		ap_load_mark_uneven(&l);
	if (l.status == AP_OK)
		*out = load_finish(&l, sha256);
	ap_arena_release(ctx->scratch, mark);
	return l.status;
}
