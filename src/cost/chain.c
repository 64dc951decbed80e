/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/chain.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"
#include "hw/chip.h"
#include "rule/attend.h"
#include "rule/op.h"

enum role {
	BIAS = 1 << 0, /* adds a vector */
	ACTIVATION = 1 << 1,
	DROPOUT = 1 << 2,
	ADD = 1 << 3,
	GATE = 1 << 4, /* the part of a gated activation that multiplies */
	CAST = 1 << 5,
	SOFTMAX = 1 << 6,
	NORM = 1 << 7,
	ELEMENTS = 1 << 8, /* element by element, whatever it computes */
	TURN = 1 << 9, /* rotary positions */
	ORDER = 1 << 10, /* dimensions in another order */
	ATTENTION = 1 << 11, /* the whole of it, or one of its batched products */
	FLASH = 1 << 12
};

/* Operators by name. */
static const struct named {
	const char *type;
	unsigned roles;
} named[] = {
	{"BiasAdd", BIAS | ELEMENTS},
	{"Dropout", DROPOUT | ELEMENTS},
	{"Add", ADD},
	{"GeLU", ACTIVATION},
	{"FastGeLU", ACTIVATION},
	{"ReLU", ACTIVATION},
	{"SiLU", ACTIVATION},
	{"Sigmoid", ACTIVATION},
	{"Mul", GATE},
	{"Cast", CAST},
	{"Softmax", SOFTMAX},
	{"LayerNorm", NORM},
	{"LayerNormV3", NORM},
	{"RmsNorm", NORM},
	{"Neg", TURN},
	{"Concat", TURN},
	{"StridedSlice", TURN},
	{"Transpose", ORDER},
};

/* Which two that follow one another are one kernel. */
static const struct link {
	enum ap_chain chain;
	unsigned from, to;
} links[] = {
	{AP_CHAIN_BIAS_ACTIVATION, BIAS, ACTIVATION},
	{AP_CHAIN_BIAS_DROPOUT_ADD, BIAS, DROPOUT | ADD},
	{AP_CHAIN_BIAS_DROPOUT_ADD, DROPOUT, ADD},
	{AP_CHAIN_SOFTMAX, ELEMENTS | CAST, SOFTMAX},
	{AP_CHAIN_SOFTMAX, SOFTMAX, CAST},
	{AP_CHAIN_NORM, CAST, NORM},
	{AP_CHAIN_NORM, NORM, CAST},
	{AP_CHAIN_ROTARY, TURN, TURN | GATE},
	{AP_CHAIN_GATE, ACTIVATION, GATE},
	{AP_CHAIN_CAST, CAST, ELEMENTS},
	{AP_CHAIN_CAST, ELEMENTS, CAST},
	{AP_CHAIN_COMPILER, ELEMENTS | CAST | NORM | SOFTMAX, ELEMENTS | CAST | NORM | SOFTMAX},
	{AP_CHAIN_STRIDES, ORDER, ELEMENTS | ATTENTION},
	{AP_CHAIN_STRIDES, FLASH, ORDER},
};

static bool is_elementwise(const struct ap_bound *b)
{
	const struct ap_operand *out = &b->out[0];
	uint32_t there = 0;

	if (b->row->unit != AP_OP_VECTOR || b->nwindow > 0 || b->nout < 1 || out->rank == 0)
		return false;
	for (int d = 0; d < out->rank; d++)
		for (int i = 0; i < out->dim[d].n; i++)
			there |= 1u << out->dim[d].factor[i];
	for (int f = 0; f < b->nfactor; f++)
		if (!(there >> f & 1) || b->factor[f].flags & (AP_FACTOR_FROZEN | AP_FACTOR_MIXED))
			return false;
	return true;
}

static unsigned roles_of(const struct ap_node *n)
{
	struct ap_attention factors;
	unsigned roles = is_elementwise(&n->bound) ? ELEMENTS : 0;

	for (size_t i = 0; i < AP_COUNT(named); i++)
		if (n->type[0] == named[i].type[0] && !strcmp(n->type, named[i].type)) /* few begin alike */
			roles |= named[i].roles;
	if (ap_rule_attends(&n->bound, &factors))
		roles |= ATTENTION | FLASH;
	if (!strcmp(n->type, "BatchMatMul"))
		roles |= ATTENTION;
	return roles;
}

/* The length of the part of a cell's name that says its layer: to the end of the first number in it. */
static size_t layer_len(const char *cell)
{
	for (const char *p = cell; *p; p += strcspn(p, "."), p += *p == '.')
		if (isdigit((unsigned char)*p) && strspn(p, "0123456789") == strcspn(p, "."))
			return (size_t)(p - cell) + strcspn(p, ".");
	return 0;
}

/* Is it read, step by step and by nobody else, on the way to a softmax? */
static bool leads_to_softmax(const struct ap_graph *g, const struct ap_chain_node *of, ap_id node)
{
	enum { STEPS = 4 }; /* a cast, a scale, a mask, a view */

	for (int i = 0; i < STEPS; i++) {
		const struct ap_tensor *t = &g->tensor[g->node[node].out[0]];

		if (t->nuse != 1)
			return false;
		node = t->use[0].node;
		if (of[node].roles & SOFTMAX)
			return true;
		if (!(of[node].roles & (ELEMENTS | CAST)) &&
			!ap_op_is_view(g->node[node].bound.row))
			return false;
	}
	return false;
}

const struct ap_chain_node *ap_chain_nodes(struct ap_ctx *ctx, const struct ap_graph *g)
{
	struct ap_chain_node *of = ap_arena_alloc_raw(ctx->scratch, g->nnode, sizeof *of);

	for (ap_id i = 0; i < g->nnode; i++) {
		bool again = i > 0 && g->node[i].cell == g->node[i - 1].cell;

		of[i].roles = roles_of(&g->node[i]);
		of[i].layer_len = again ? of[i - 1].layer_len : (uint32_t)layer_len(g->node[i].cell);
	}
	return of;
}

static bool is_one_layer(const struct ap_graph *g, const struct ap_chain_node *of, ap_id a, ap_id b)
{
	return of[a].layer_len == of[b].layer_len && (g->node[a].cell == g->node[b].cell ||
		memcmp(g->node[a].cell, g->node[b].cell, of[a].layer_len) == 0);
}

/* The operator, behind views, whose result an operand is and nobody else reads; AP_NONE: there is none. */
static ap_id producer_of(const struct ap_graph *g, ap_id node, uint32_t operand)
{
	const struct ap_tensor *t = &g->tensor[g->node[node].in[operand]];

	while (t->producer != AP_NONE && t->nuse == 1 && ap_op_is_view(g->node[t->producer].bound.row))
		t = &g->tensor[g->node[t->producer].in[0]];
	return t->nuse == 1 ? t->producer : AP_NONE;
}

enum ap_chain_kind ap_chain_between(const struct ap_graph *g, const struct ap_chain_node *of, uint32_t chains,
	ap_id node, uint32_t operand, ap_id *producer)
{
	const struct ap_node *n = &g->node[node], *from;
	unsigned role, role_from;

	*producer = chains ? producer_of(g, node, operand) : AP_NONE;

	if (*producer == AP_NONE)
		return AP_CHAIN_NONE;
	from = &g->node[*producer];
	if (n->measured || from->measured || n->once != from->once || n->stage != from->stage ||
		n->segment != from->segment || !is_one_layer(g, of, node, *producer))
		return AP_CHAIN_NONE;
	role = of[node].roles;
	role_from = of[*producer].roles;
	if (chains >> AP_CHAIN_SOFTMAX & 1 && role_from & role & ELEMENTS &&
		leads_to_softmax(g, of, node))
		return AP_CHAIN_JOINED;
	for (size_t i = 0; i < AP_COUNT(links); i++)
		if (chains >> links[i].chain & 1 && links[i].from & role_from && links[i].to & role)
			return links[i].from == ORDER ? AP_CHAIN_STRIDED : AP_CHAIN_JOINED;
	return AP_CHAIN_NONE;
}

/* A product of an activation and a weight. */
struct product {
	ap_id node, read; /* read: the tensor, behind views */
	const char *cell;
	size_t len; /* of the part of the layer that it is in: its cell's name but for the last word */
};

static int order_products(const void *a, const void *b)
{
	const struct product *x = a, *y = b;
	int c;

	if (x->read != y->read)
		return x->read < y->read ? -1 : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	c = strncmp(x->cell, y->cell, x->len);
	return c ? c : x->node < y->node ? -1 : x->node > y->node;
}

static bool is_one_product(const struct ap_graph *g, const struct product *x, const struct product *y)
{
	const struct ap_node *a = &g->node[x->node], *b = &g->node[y->node];

	return x->read == y->read && x->len == y->len && strncmp(x->cell, y->cell, x->len) == 0 &&
		a->stage == b->stage && a->segment == b->segment && a->once == b->once &&
		a->bound.row == b->bound.row;
}

static bool has_norm(const struct ap_graph *g, const struct ap_tensor *t)
{
	for (uint32_t u = 0; u < t->nuse; u++)
		if (roles_of(&g->node[t->use[u].node]) & NORM)
			return true;
	return false;
}

static ap_id shown(const struct ap_graph *g, ap_id tensor)
{
	for (ap_id node = g->tensor[tensor].producer; node != AP_NONE &&
		ap_op_is_view(g->node[node].bound.row); node = g->tensor[tensor].producer)
		tensor = g->node[node].in[0];
	return tensor;
}

static double elements(const struct ap_operand *o)
{
	double n = 1;

	for (int d = 0; d < o->rank; d++)
		n *= (double)o->size[d];
	return n;
}

const double *ap_chain_products(struct ap_ctx *ctx, const struct ap_graph *g)
{
	double *part = AP_NEW_N(ctx->scratch, double, g->nnode);
	struct product *v = AP_NEW_N(ctx->scratch, struct product, g->nnode);
	size_t n = 0, last;

	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *node = &g->node[i];
		const char *dot = strrchr(node->cell, '.');

		if (!ap_op_is_product(node->bound.row) || node->bound.nin != 2 || node->measured || !dot ||
			g->tensor[node->in[1]].kind != AP_TENSOR_PARAM ||
			g->tensor[node->in[0]].kind != AP_TENSOR_ACT || has_norm(g, &g->tensor[node->out[0]]))
			continue;
		v[n++] = (struct product){i, shown(g, node->in[0]), node->cell, (size_t)(dot - node->cell)};
	}
	qsort(v, n, sizeof *v, order_products);
	for (size_t first = 0; first < n; first = last) {
		double all = 0;

		for (last = first; last < n && is_one_product(g, &v[first], &v[last]); last++)
			all += elements(&g->node[v[last].node].bound.in[1]);
		for (size_t i = first; last - first > 1 && i < last; i++)
			part[v[i].node] = elements(&g->node[v[i].node].bound.in[1]) / all;
	}
	return part;
}
