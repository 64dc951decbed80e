/* SPDX-License-Identifier: Apache-2.0 */
#include "api/network.h"

#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/str.h"
#include "cost/layer_parts.h"
#include "graph/family.h"
#include "graph/work.h"
#include "rule/attr.h"
#include "rule/op.h"

/* What one layer is made of. */
struct layer {
	int64_t elements; /* of its parameters */
	int64_t nproduct[AP_PART_OTHER + 1]; /* products with a matrix of weights, by part */
	int64_t wide[AP_PART_OTHER + 1]; /* columns of all of them but the last */
	int64_t rows; /* of the last in attention: what its heads give */
	int64_t narrow[AP_PART_OTHER + 1]; /* columns of the last */
	int64_t bias[AP_PART_OTHER + 1]; /* elements of vectors */
	int64_t heads, head; /* of attention; units of a head */
	int64_t norms[2]; /* of the state, and of a head */
	int64_t experts, active, inner; /* inner: units of an expert; 0: not plain */
	bool flash, turns; /* turns: queries are multiplied by constants for each position */
	bool silu, gelu; /* activations */
	bool ahead; /* norms stand in front of both parts, the second behind the sum of the first */
	bool rms;
};

struct reading {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	struct ap_family family;
	const bool *data;
	struct ap_layer_parts parts;
	struct ap_decoder *d;
	struct layer *layer; /* [family.n] */
	struct ap_str missing;
};

static void miss(struct reading *r, const char *what)
{
	ap_str_addf(&r->missing, "%s%s", r->missing.len ? ", " : "", what);
}

static const struct ap_tensor *tensor(const struct reading *r, ap_id t)
{
	return t == AP_NONE ? NULL : &r->g->tensor[t];
}

static int64_t last_of(const struct ap_tensor *t)
{
	return t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
}

static int64_t elements(const struct ap_tensor *t)
{
	int64_t n = 1;

	for (int i = 0; i < t->shape.rank; i++)
		n *= t->shape.dim[i];
	return n;
}

/* The parameter of this rank that a node reads, by itself or through views and casts; NULL: none. */
static const struct ap_tensor *weight(const struct reading *r, const struct ap_node *n, int rank)
{
	for (uint16_t k = 0; k < n->bound.nin; k++) {
		ap_id t = n->in[k];

		while (t != AP_NONE && r->g->tensor[t].producer != AP_NONE && !r->data[t])
			t = r->g->node[r->g->tensor[t].producer].in[0];
		if (t != AP_NONE && r->g->tensor[t].kind == AP_TENSOR_PARAM && r->g->tensor[t].shape.rank ==
			rank)
			return &r->g->tensor[t];
	}
	return NULL;
}

/* ---- layers ---- */

static bool is_like(const char *type, const char *word)
{
	return strstr(type, word) != NULL;
}

/* A product of matrices; one element by element is a product, too. */
static bool is_product(const struct ap_node *n)
{
	return ap_op_is_product(n->bound.row) && is_like(n->type, "Mat");
}

static void read_attention(struct layer *l, const struct reading *r, const struct ap_node *n)
{
	bool flash = !strcmp(n->type, "FlashAttentionScore");
	const struct ap_tensor *a = tensor(r, n->bound.nin > 0 ? n->in[0] : AP_NONE);
	const struct ap_tensor *b = tensor(r, n->bound.nin > 1 ? n->in[1] : AP_NONE);

	if (flash) {
		l->flash = true;
		l->heads = ap_attr_int(&n->attrs, "head_num", 0);
	} else if (is_product(n) && a && b && r->data[n->in[0]] && r->data[n->in[1]] &&
		a->shape.rank == 4 && !l->heads) {
		l->heads = r->g->tensor[n->out[0]].shape.dim[1];
	}
	/* Positions turn queries and keys by constants for each position and unit of a head. */
	l->turns |= is_like(n->type, "Rotary");
	if (!strcmp(n->type, "Mul") && a && b &&
		(a->kind == AP_TENSOR_CONST) != (b->kind == AP_TENSOR_CONST)) {
		const struct ap_tensor *c = a->kind == AP_TENSOR_CONST ? a : b;

		l->turns |= c->shape.rank >= 2 && last_of(c) > 1 && elements(c) == last_of(c) *
			r->d->sequence;
	}
}

static void read_product(struct layer *l, const struct reading *r, ap_id node, enum ap_layer_part part)
{
	const struct ap_node *n = &r->g->node[node];
	const struct ap_tensor *w = weight(r, n, 2), *cube = weight(r, n, 3);
	int64_t columns = last_of(&r->g->tensor[n->out[0]]);

	if (cube && part == AP_PART_EXPERTS) {
		l->experts = cube->shape.dim[0];
		l->inner = columns == r->d->hidden ? elements(cube) / l->experts / columns : l->inner;
	}
	if (!w || !columns)
		return;
	l->wide[part] += l->narrow[part];
	l->narrow[part] = columns;
	l->nproduct[part]++;
	if (part == AP_PART_ATTENTION)
		l->rows = elements(w) / columns;
}

/* Does the norm read a sum of its own layer? */
static bool follows_sum(const struct reading *r, ap_id norm, int32_t layer)
{
	ap_id t = r->g->node[norm].in[0];

	while (t != AP_NONE && r->g->tensor[t].producer != AP_NONE) {
		ap_id i = r->g->tensor[t].producer;
		const char *type = r->g->node[i].type;

		if (r->family.member[i] != layer)
			return false;
		if (!strcmp(type, "Add") && r->parts.part[i] == AP_PART_NONE)
			return true;
		if (strcmp(type, "Cast") != 0 && !ap_op_is_view(r->g->node[i].bound.row))
			return false;
		t = r->g->node[i].in[0];
	}
	return false;
}

static void read_layer_node(struct reading *r, struct layer *l, ap_id i, bool *sequential)
{
	const struct ap_node *n = &r->g->node[i];
	enum ap_layer_part part = r->parts.part[i];
	ap_id norm = r->parts.norm[i];
	const struct ap_tensor *vector = weight(r, n, 1);

	if (part == AP_PART_NORM && vector) {
		l->norms[last_of(vector) != r->d->hidden]++;
		l->rms |= is_like(n->type, "Rms") || is_like(n->type, "RMS");
		return;
	}
	if (part == AP_PART_ATTENTION)
		read_attention(l, r, n);
	if (is_product(n)) {
		bool first = l->nproduct[part] == 0;

		read_product(l, r, i, part);
		if (first && part == AP_PART_ATTENTION)
			l->ahead = norm != AP_NONE && r->family.member[norm] == r->family.member[i];
		else if (first && (part == AP_PART_DENSE || part == AP_PART_EXPERTS))
			*sequential = norm != AP_NONE && follows_sum(r, norm, r->family.member[i]);
	}
	l->silu |= part != AP_PART_ATTENTION && (is_like(n->type, "SiLU") || is_like(n->type, "Silu") ||
		is_like(n->type, "SwiGLU") || is_like(n->type, "Swiglu"));
	l->gelu |= part == AP_PART_DENSE && (!strcmp(n->type, "GeLU") || !strcmp(n->type, "Gelu"));
	if (!strcmp(n->type, "TopK"))
		l->active = ap_attr_int(&n->attrs, "k", 0);
	if (vector)
		l->bias[part] += elements(vector);
}

static void read_layers(struct reading *r)
{
	bool *sequential = AP_NEW_N(r->ctx->scratch, bool, r->family.n);

	for (ap_id i = 0; i < r->g->nnode; i++) {
		int32_t k = r->family.member[i];

		if (k >= 0)
			read_layer_node(r, &r->layer[k], i, &sequential[k]);
	}
	for (uint32_t k = 0; k < r->family.n; k++)
		r->layer[k].ahead &= sequential[k];
	for (ap_id t = 0; t < r->g->ntensor; t++) {
		const struct ap_tensor *p = &r->g->tensor[t];
		int32_t k = p->kind == AP_TENSOR_PARAM && p->nuse ? r->family.member[p->use[0].node] : -1;

		if (k >= 0)
			r->layer[k].elements += elements(p);
	}
}

/* Are all layers made as the first is? */
static bool are_alike(const struct reading *r)
{
	for (uint32_t k = 1; k < r->family.n; k++)
		if (memcmp(&r->layer[k], &r->layer[0], sizeof r->layer[0]) != 0)
			return false;
	return true;
}

/* ---- what is outside layers ---- */

/* Extents of tables that numbers look up, and of the product that makes words of a state. */
static void read_outside(struct reading *r)
{
	const struct ap_tensor *words = NULL, *head = NULL;
	struct ap_decoder *d = r->d;

	for (ap_id i = 0; i < r->g->nnode; i++) {
		const struct ap_node *n = &r->g->node[i];
		const struct ap_tensor *w = weight(r, n, 2);

		if (r->family.member[i] < 0 && w && is_product(n) &&
			last_of(&r->g->tensor[n->out[0]]) != d->hidden)
			head = w;
	}
	for (ap_id i = 0; head && i < r->g->nnode; i++) {
		const struct ap_node *n = &r->g->node[i];
		const struct ap_tensor *w = weight(r, n, 2);

		if (r->family.member[i] >= 0 || !w || !is_like(n->type, "Gather") || last_of(w) != d->hidden)
			continue;
		if (w == head || elements(w) == elements(head))
			words = w;
		else
			d->positions = elements(w) / d->hidden;
	}
	d->vocabulary = words ? elements(words) / d->hidden : 0;
	d->tied = words && words == head;
	d->dtype = words ? words->shape.dtype : AP_DTYPE_COUNT;
}

/* ---- the decoder ---- */

/* Elements of the parameters that a decoder of these sizes has. */
static int64_t count(const struct ap_decoder *d, bool normed_heads)
{
	int64_t query = d->heads * d->head_size, key = d->kv_heads * d->head_size, h = d->hidden;
	int64_t norm = d->norm == AP_NORM_LAYER ? 2 * h : h, wide = d->activation == AP_MODEL_SWIGLU ? 2 : 1;
	int64_t attention = h * (2 * query + 2 * key) + (d->qkv_bias ? query + 2 * key : 0) +
		(d->output_bias ? h : 0) + (normed_heads ? 2 * d->head_size : 0);
	int64_t part = (wide + 1) * h * d->inner * (d->experts.count ? d->experts.count : 1) +
		(d->inner_bias ? wide * d->inner + h : 0) + h * d->experts.count;

	return d->vocabulary * h * (d->tied ? 1 : 2) + d->positions * h + norm + d->layers * (2 * norm +
		attention + part);
}

static void find_heads(struct reading *r, const struct layer *l)
{
	struct ap_decoder *d = r->d;
	int64_t keys = l->wide[AP_PART_ATTENTION] - l->rows, bias = l->bias[AP_PART_ATTENTION];

	d->heads = l->heads;
	d->head_size = l->heads > 0 && l->rows % l->heads == 0 ? l->rows / l->heads : 0;
	if (d->head_size && keys > 0 && keys % (2 * d->head_size) == 0 && (l->nproduct[AP_PART_ATTENTION] ==
		4 || l->nproduct[AP_PART_ATTENTION] == 2))
		d->kv_heads = keys / 2 / d->head_size;
	if (!d->heads || !d->head_size || !d->kv_heads || d->heads % d->kv_heads) {
		d->heads = d->head_size = d->kv_heads = 0;
		miss(r, "heads");
	}
	d->output_bias = bias == d->hidden || bias == l->wide[AP_PART_ATTENTION] + d->hidden;
	d->qkv_bias = bias - (d->output_bias ? d->hidden : 0) == l->wide[AP_PART_ATTENTION];
	d->inner_bias = l->bias[AP_PART_DENSE] > 0;
	d->rotary = l->turns && !d->positions;
	d->flash = l->flash;
	if (!d->rotary && !d->positions)
		miss(r, "how positions enter");
}

static void find_units(struct reading *r, const struct layer *l)
{
	int64_t wide = l->wide[AP_PART_DENSE], n = l->nproduct[AP_PART_DENSE];
	struct ap_decoder *d = r->d;

	d->activation = l->silu ? AP_MODEL_SWIGLU : AP_MODEL_GELU;
	if (l->experts) {
		d->experts = (struct ap_experts){.count = l->experts, .active = l->active, .inner = l->inner,
			.rescale = true, .activation = d->activation};
		d->inner = l->inner;
		if (!l->active || !l->inner)
			miss(r, "units of an expert, or a token's experts");
		if (!l->silu)
			miss(r, "the activation");
		return;
	}
	d->inner = l->silu ? wide / 2 : wide;
	if (l->silu == l->gelu || n < 2 || n > 3 || (n == 3 && !l->silu) || l->narrow[AP_PART_DENSE] !=
		d->hidden)
		miss(r, "the activation");
	if (n < 2)
		d->inner = 0;
}

/* The width of the state: what the norms inside layers scale most often. */
static int64_t find_width(const struct reading *r)
{
	int64_t width = 0;

	for (ap_id i = 0; i < r->g->nnode && !width; i++) {
		const struct ap_tensor *v = r->family.member[i] >= 0 && r->parts.part[i] == AP_PART_NORM
			? weight(r, &r->g->node[i], 1) : NULL;

		width = v ? elements(v) : 0;
	}
	return width;
}

static bool begin(struct reading *r)
{
	struct ap_decoder *d = r->d;

	ap_family_find(r->ctx, r->g, &r->family);
	d->layers = r->family.n;
	d->sequence = ap_graph_work(r->g).tokens;
	d->batch = r->g->batch;
	if (!d->layers || !d->sequence)
		return false;
	r->data = ap_layer_data(r->ctx, r->g);
	ap_layer_parts(r->ctx, r->g, r->family.member, r->data, &r->parts);
	d->hidden = find_width(r);
	return d->hidden > 0;
}

static bool all_train(const struct ap_graph *g)
{
	for (ap_id t = 0; t < g->ntensor; t++)
		if (g->tensor[t].kind == AP_TENSOR_PARAM && !g->tensor[t].trainable)
			return false;
	return true;
}

bool ap_network_find(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_network *out)
{
	static const struct ap_decoder_names plain = {0}, normed = {.query_norm = "", .key_norm = ""};
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct reading r = {.ctx = ctx, .g = g, .d = &out->decoder};
	bool found;

	*out = (struct ap_network){.decoder = {.names = &plain}};
	ap_str_init(&r.missing, ctx->arena);
	found = begin(&r);
	if (found) {
		r.layer = AP_NEW_N(ctx->scratch, struct layer, r.family.n);
		read_layers(&r);
		read_outside(&r);
		out->decoder.names = r.layer[0].norms[1] ? &normed : &plain;
		out->decoder.norm = r.layer[0].rms ? AP_NORM_RMS : AP_NORM_LAYER;
		if (!out->decoder.vocabulary)
			miss(&r, "the vocabulary");
		find_heads(&r, &r.layer[0]);
		find_units(&r, &r.layer[0]);
		if (!are_alike(&r))
			miss(&r, "in what layers differ");
		else if (!r.layer[0].ahead)
			miss(&r, "where norms stand");
		if (!all_train(g))
			miss(&r, "what parameters that are not trained are");
		if (!r.missing.len && count(&out->decoder, r.layer[0].norms[1]) != g->parameters)
			miss(&r, "what its other parameters are");
		out->sizes_alone = r.missing.len > 0;
		if (out->decoder.experts.count)
			miss(&r, "how the router weighs and bounds experts");
		out->missing = r.missing.len ? r.missing.s : NULL;
	}
	ap_arena_release(ctx->scratch, scratch);
	return found;
}
