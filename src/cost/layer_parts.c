/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/layer_parts.h"

#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "rule/op.h"

struct finding {
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	const int32_t *layer;
	const bool *data;
	enum ap_layer_part *part;
	ap_id *group, *norm;
	bool *activation, *latent;
	bool *sum; /* [nnode] a residual sum, or one that only such a sum reads */
};

const bool *ap_layer_data(struct ap_ctx *ctx, const struct ap_graph *g)
{
	bool *data = AP_NEW_N(ctx->scratch, bool, g->ntensor);

	for (ap_id t = 0; t < g->ntensor; t++)
		data[t] = g->tensor[t].kind == AP_TENSOR_INPUT;
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		bool any = false;

		for (uint16_t x = 0; x < n->bound.nin; x++)
			any |= data[n->in[x]];
		for (uint16_t o = 0; o < n->bound.nout; o++)
			data[n->out[o]] = any;
	}
	return data;
}

static bool is_cube(const struct ap_node *n)
{
	return n->bound.row->unit == AP_OP_CUBE;
}

static bool reads_weight(const struct ap_graph *g, const bool *data, const struct ap_node *n)
{
	for (uint16_t x = 0; x < n->bound.nin; x++)
		if (!data[n->in[x]] && g->tensor[n->in[x]].needs_grad)
			return true;
	return false;
}

bool ap_layer_has_weight(const struct ap_graph *g, const bool *data, const struct ap_node *n)
{
	return is_cube(n) && reads_weight(g, data, n);
}

static bool is_weight_product(const struct finding *f, ap_id i)
{
	return ap_layer_has_weight(f->g, f->data, &f->g->node[i]);
}

static bool is_in_family(const struct ap_node *n, const char *family)
{
	return strcmp(ap_op_family(n->bound.row), family) == 0;
}

static bool is_view(const struct ap_node *n)
{
	return ap_op_is_view(n->bound.row);
}

static bool is_cast(const struct ap_node *n)
{
	return strcmp(n->type, "Cast") == 0;
}

/* The tensor behind views and casts. */
static ap_id root_of(const struct ap_graph *g, ap_id tensor)
{
	for (ap_id from; (from = g->tensor[tensor].producer) != AP_NONE &&
		(is_view(&g->node[from]) || is_cast(&g->node[from]));)
		tensor = g->node[from].in[0];
	return tensor;
}

/* The producer of a node's operand, if it is in the same layer; else AP_NONE. */
static ap_id before(const struct finding *f, ap_id node, uint16_t x)
{
	ap_id from = f->g->tensor[f->g->node[node].in[x]].producer;

	return from != AP_NONE && f->layer[from] == f->layer[node] ? from : AP_NONE;
}

/* ---- norms ---- */

static void find_norms(struct finding *f)
{
	const struct ap_graph *g = f->g;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		ap_id from = n->bound.nin ? g->tensor[n->in[0]].producer : AP_NONE;
		bool behind = from != AP_NONE && f->layer[from] >= 0 &&
			(is_view(&g->node[from]) || is_cast(&g->node[from]) || f->part[from] == AP_PART_NORM);

		f->norm[i] = !behind ? AP_NONE
			: f->part[from] == AP_PART_NORM && is_in_family(&g->node[from], "norms") ? from
			: f->norm[from];
		if (f->layer[i] < 0)
			continue;
		if (is_in_family(n, "norms") && reads_weight(g, f->data, n))
			f->part[i] = AP_PART_NORM;
		else if (f->norm[i] != AP_NONE && f->layer[f->norm[i]] == f->layer[i] &&
			(is_view(n) || (is_cast(n) && g->tensor[n->in[0]].nuse == 1)))
			f->part[i] = AP_PART_NORM;
	}
	for (ap_id i = g->nnode; i-- > 0;) { /* casts that only a norm reads */
		const struct ap_node *n = &g->node[i];
		bool only = is_cast(n) && f->layer[i] >= 0 && g->tensor[n->out[0]].nuse > 0;

		for (uint32_t u = 0; only && u < g->tensor[n->out[0]].nuse; u++) {
			ap_id user = g->tensor[n->out[0]].use[u].node;

			only = f->layer[user] == f->layer[i] && f->part[user] == AP_PART_NORM &&
				is_in_family(&g->node[user], "norms");
		}
		if (only)
			f->part[i] = AP_PART_NORM;
	}
}

/* ---- residual sums ---- */

/* Is tensor `of` made, inside the layer, from what `from` shows? seen: [nnode], marked with stamp. */
static bool is_made_from(const struct finding *f, ap_id of, ap_id from, int32_t layer, ap_id *seen,
	ap_id stamp, ap_id *stack)
{
	const struct ap_graph *g = f->g;
	ap_id first = g->tensor[from].producer, n = 0, at = g->tensor[of].producer;

	if (at == AP_NONE || f->layer[at] != layer)
		return false;
	stack[n++] = at;
	seen[at] = stamp;
	while (n > 0) {
		const struct ap_node *node = &g->node[stack[--n]];

		for (uint16_t x = 0; x < node->bound.nin; x++) {
			ap_id next = g->tensor[node->in[x]].producer;

			if (node->in[x] == from)
				return true;
			if (next == AP_NONE || f->layer[next] != layer || seen[next] == stamp ||
				(first != AP_NONE && next < first))
				continue;
			seen[next] = stamp;
			stack[n++] = next;
		}
	}
	return false;
}

static bool is_sum(const struct finding *f, ap_id i)
{
	const struct ap_node *n = &f->g->node[i];

	return f->layer[i] >= 0 && strcmp(n->type, "Add") == 0 && n->bound.nin == 2 && f->data[n->in[0]] &&
		f->data[n->in[1]];
}

/* The operator that alone reads what a node of a layer gives, behind views and casts; AP_NONE: there is none,
 * or not one alone. */
static ap_id only_user(const struct finding *f, ap_id i)
{
	const struct ap_graph *g = f->g;

	do {
		const struct ap_tensor *t = &g->tensor[g->node[i].out[0]];

		if (t->nuse != 1 || f->layer[t->use[0].node] != f->layer[i])
			return AP_NONE;
		i = t->use[0].node;
	} while ((is_view(&g->node[i]) || is_cast(&g->node[i])) && g->node[i].bound.nout);
	return i;
}

static void find_sums(struct finding *f)
{
	const struct ap_graph *g = f->g;
	ap_id *seen = AP_NEW_N(f->ctx->scratch, ap_id, g->nnode);
	ap_id *stack = AP_NEW_N(f->ctx->scratch, ap_id, g->nnode);

	for (ap_id i = 0; i < g->nnode; i++) {
		ap_id a, b;

		if (!is_sum(f, i))
			continue;
		a = root_of(g, g->node[i].in[0]);
		b = root_of(g, g->node[i].in[1]);
		f->sum[i] = is_made_from(f, b, a, f->layer[i], seen, 2 * i + 1, stack) ||
			is_made_from(f, a, b, f->layer[i], seen, 2 * i + 2, stack);
	}
	for (ap_id i = g->nnode; i-- > 0;) /* parts that run beside each other are added up first */
		if (is_sum(f, i) && !f->sum[i]) {
			ap_id user = only_user(f, i);

			f->sum[i] = user != AP_NONE && f->sum[user];
		}
}

/* ---- parts ---- */

static ap_id first_of(ap_id *up, ap_id i)
{
	while (up[i] != i)
		i = up[i] = up[up[i]];
	return i;
}

static bool is_inside(const struct finding *f, ap_id i)
{
	return f->layer[i] >= 0 && f->part[i] != AP_PART_NORM && !f->sum[i] && f->g->node[i].peer < 0;
}

/* The operator inside the layer whose result the norm behind which one comes has normalized; AP_NONE. */
static ap_id behind_norm(const struct finding *f, ap_id i)
{
	const struct ap_graph *g = f->g;
	ap_id norm = f->norm[i], from;

	if (norm == AP_NONE || f->layer[norm] != f->layer[i])
		return AP_NONE;
	from = g->tensor[root_of(g, g->node[norm].in[0])].producer;
	return from != AP_NONE && f->layer[from] == f->layer[i] && is_inside(f, from) ? from : AP_NONE;
}

static void join(struct finding *f, ap_id a, ap_id b)
{
	a = first_of(f->group, a);
	b = first_of(f->group, b);
	f->group[a > b ? a : b] = a < b ? a : b;
}

/* Does it make indices of activations? */
static bool chooses(const struct finding *f, const struct ap_node *n)
{
	bool real = false, index = false;

	for (uint16_t x = 0; x < n->bound.nin; x++)
		real |= f->data[n->in[x]] && ap_dtype_is_float(f->g->tensor[n->in[x]].shape.dtype);
	for (uint16_t o = 0; o < n->bound.nout; o++) {
		enum ap_dtype d = f->g->tensor[n->out[o]].shape.dtype;

		index |= d == AP_INT32 || d == AP_INT64;
	}
	return real && index;
}

static bool is_attention(const struct finding *f, const struct ap_node *n)
{
	int with_gradient = 0;

	if (!is_cube(n) || reads_weight(f->g, f->data, n))
		return false;
	for (uint16_t x = 0; x < n->bound.nin; x++)
		with_gradient += f->data[n->in[x]] && f->g->tensor[n->in[x]].needs_grad;
	return with_gradient >= 2;
}

static void find_parts(struct finding *f)
{
	const struct ap_graph *g = f->g;
	enum { WEIGHT = 1, ATTENTION = 2, CHOICE = 4 };
	uint8_t *has = AP_NEW_N(f->ctx->scratch, uint8_t, g->nnode); /* by first operator */
	bool *experts; /* [layer] */
	int32_t nlayer = 0;

	for (ap_id i = 0; i < g->nnode; i++) {
		f->group[i] = i;
		nlayer = f->layer[i] >= nlayer ? f->layer[i] + 1 : nlayer;
		if (!is_inside(f, i))
			continue;
		for (uint16_t x = 0; x < g->node[i].bound.nin; x++) {
			ap_id from = before(f, i, x);

			if (from != AP_NONE && is_inside(f, from))
				join(f, i, from);
		}
		if (behind_norm(f, i) != AP_NONE)
			join(f, i, behind_norm(f, i));
	}
	experts = AP_NEW_N(f->ctx->scratch, bool, nlayer);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];

		if (!is_inside(f, i))
			continue;
		f->group[i] = first_of(f->group, i);
		has[f->group[i]] |= (uint8_t)((is_weight_product(f, i) ? WEIGHT : 0) |
			(is_attention(f, n) ? ATTENTION : 0) | (chooses(f, n) ? CHOICE : 0));
	}
	for (ap_id i = 0; i < g->nnode; i++)
		if (is_inside(f, i) && f->group[i] == i && (has[i] & WEIGHT) && (has[i] & CHOICE))
			experts[f->layer[i]] = true;
	for (ap_id i = 0; i < g->nnode; i++) {
		uint8_t all = is_inside(f, i) ? has[f->group[i]] : 0;

		if (!is_inside(f, i)) {
			f->group[i] = AP_NONE;
			continue;
		}
		f->part[i] = !(all & WEIGHT) ? AP_PART_OTHER
			: (all & CHOICE) ? AP_PART_EXPERTS
			: (all & ATTENTION) ? AP_PART_ATTENTION
			: experts[f->layer[i]] ? AP_PART_SHARED : AP_PART_DENSE;
	}
}

/* ---- activation functions ---- */

static bool is_elementwise(const struct finding *f, ap_id i)
{
	const struct ap_node *n = &f->g->node[i];

	return is_inside(f, i) && (is_in_family(n, "element by element") || is_view(n));
}

static bool feeds_product(const struct finding *f, const bool *feeds, ap_id i)
{
	const struct ap_node *n = &f->g->node[i];

	for (uint16_t o = 0; o < n->bound.nout; o++) {
		const struct ap_tensor *t = &f->g->tensor[n->out[o]];

		for (uint32_t u = 0; u < t->nuse; u++) {
			ap_id user = t->use[u].node;

			if (f->layer[user] == f->layer[i] && (is_weight_product(f, user) ||
				(is_elementwise(f, user) && feeds[user])))
				return true;
		}
	}
	return false;
}

static void find_activations(struct finding *f)
{
	const struct ap_graph *g = f->g;
	bool *after = AP_NEW_N(f->ctx->scratch, bool, g->nnode);
	bool *feeds = AP_NEW_N(f->ctx->scratch, bool, g->nnode);

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t x = 0; is_elementwise(f, i) && x < g->node[i].bound.nin; x++) {
			ap_id from = before(f, i, x);

			after[i] |= from != AP_NONE && (is_weight_product(f, from) ||
				(is_elementwise(f, from) && after[from]));
		}
	for (ap_id i = g->nnode; i-- > 0;) {
		const struct ap_node *n = &g->node[i];

		if (!is_elementwise(f, i))
			continue;
		feeds[i] = feeds_product(f, feeds, i);
		f->activation[i] = after[i] && feeds[i] && !is_view(n) && !reads_weight(g, f->data, n) &&
			f->part[i] != AP_PART_ATTENTION;
	}
}

/* ---- queries, keys and values of low rank ---- */

/* A product with a weight of what a norm within the part gives. */
static bool goes_up(const struct finding *f, ap_id i)
{
	return f->part[i] == AP_PART_ATTENTION && is_weight_product(f, i) && behind_norm(f, i) != AP_NONE;
}

static void find_latent(struct finding *f)
{
	enum { CORE = 1, NORM = 2 }; /* what comes behind */
	const struct ap_graph *g = f->g;
	uint8_t *behind = AP_NEW_N(f->ctx->scratch, uint8_t, g->nnode);
	bool *goes = AP_NEW_N(f->ctx->scratch, bool, g->nnode); /* by first operator of a part */

	for (ap_id i = 0; i < g->nnode; i++)
		if (goes_up(f, i))
			goes[f->group[i]] = true;
	for (ap_id i = g->nnode; i-- > 0;) {
		const struct ap_node *n = &g->node[i];
		bool core = is_attention(f, n);

		if (f->part[i] != AP_PART_ATTENTION || !goes[f->group[i]])
			continue;
		for (uint16_t o = 0; o < n->bound.nout && !core; o++) {
			const struct ap_tensor *t = &g->tensor[n->out[o]];

			for (uint32_t u = 0; u < t->nuse; u++) {
				ap_id user = t->use[u].node;

				if (f->layer[user] != f->layer[i])
					continue;
				behind[i] |= f->part[user] == AP_PART_NORM ? NORM
					: is_attention(f, &g->node[user]) ? CORE
					: is_weight_product(f, user) ? 0 : behind[user];
			}
		}
		/* What goes down to a norm is what the norm, and all behind it, is made from. */
		f->latent[i] = (behind[i] & CORE) && !(is_weight_product(f, i) && (behind[i] & NORM));
	}
}

void ap_layer_parts(struct ap_ctx *ctx, const struct ap_graph *g, const int32_t *layer, const bool *data,
	struct ap_layer_parts *out)
{
	struct finding f = {.ctx = ctx, .g = g, .layer = layer, .data = data,
		.part = AP_NEW_N(ctx->scratch, enum ap_layer_part, g->nnode),
		.group = AP_NEW_N(ctx->scratch, ap_id, g->nnode),
		.norm = AP_NEW_N(ctx->scratch, ap_id, g->nnode),
		.activation = AP_NEW_N(ctx->scratch, bool, g->nnode),
		.latent = AP_NEW_N(ctx->scratch, bool, g->nnode),
		.sum = AP_NEW_N(ctx->scratch, bool, g->nnode)};

	find_norms(&f);
	find_sums(&f);
	find_parts(&f);
	find_activations(&f);
	find_latent(&f);
	*out = (struct ap_layer_parts){.part = f.part, .group = f.group, .activation = f.activation,
		.latent = f.latent, .norm = f.norm};
}
