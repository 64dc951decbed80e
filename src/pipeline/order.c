/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/order.h"

#include <assert.h>

#include "base/arena.h"
#include "base/vec.h"

static void fill_given(struct ap_ctx *ctx, const struct ap_graph *g, const int64_t *bytes, ap_id *node)
{
	(void)ctx;
	(void)bytes;
	for (ap_id i = 0; i < g->nnode; i++)
		node[i] = i;
}

static void fill_need(struct ap_ctx *ctx, const struct ap_graph *g, const int64_t *bytes, ap_id *node)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t *next = AP_NEW_N(ctx->scratch, uint32_t, g->nnode); /* operand to walk along; 0: not seen */
	ap_id *open = AP_NEW_N(ctx->scratch, ap_id, g->nnode);
	uint32_t n = 0;

	(void)bytes;
	for (ap_id end = 0; end < g->nnode; end++) {
		uint32_t depth = 0;
		bool used = false;

		for (uint16_t o = 0; o < g->node[end].bound.nout; o++)
			used |= g->tensor[g->node[end].out[o]].nuse > 0;
		if (used)
			continue;
		open[depth++] = end;
		while (depth > 0) {
			const struct ap_node *top = &g->node[open[depth - 1]];
			uint32_t k = next[open[depth - 1]]++;
			ap_id from;

			if (k >= top->bound.nin) {
				node[n++] = open[--depth];
				continue;
			}
			from = g->tensor[top->in[k]].producer;
			if (from != AP_NONE && next[from] == 0)
				open[depth++] = from;
		}
	}
	assert(n == g->nnode);
	ap_arena_release(ctx->scratch, mark);
}

/* [nnode] operands that operators make. */
static uint32_t *count_missing(struct ap_ctx *ctx, const struct ap_graph *g)
{
	uint32_t *missing = AP_NEW_N(ctx->scratch, uint32_t, g->nnode);

	for (ap_id i = 0; i < g->nnode; i++)
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++)
			missing[i] += g->tensor[g->node[i].in[k]].producer != AP_NONE;
	return missing;
}

static void fill_depth(struct ap_ctx *ctx, const struct ap_graph *g, const int64_t *bytes, ap_id *node)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t *missing = count_missing(ctx, g);
	ap_id *open = AP_NEW_N(ctx->scratch, ap_id, g->nnode); /* ready, the next one last */
	uint32_t n = 0, top = 0;

	(void)bytes;
	for (ap_id i = g->nnode; i-- > 0;)
		if (missing[i] == 0)
			open[top++] = i;
	while (top > 0) {
		ap_id i = node[n++] = open[--top];

		for (uint16_t o = g->node[i].bound.nout; o-- > 0;) {
			const struct ap_tensor *t = &g->tensor[g->node[i].out[o]];

			for (uint32_t u = t->nuse; u-- > 0;)
				if (--missing[t->use[u].node] == 0)
					open[top++] = t->use[u].node;
		}
	}
	assert(n == g->nnode);
	ap_arena_release(ctx->scratch, mark);
}

struct ready {
	int64_t more; /* bytes per device that live on once it has run, beyond those that live before */
	ap_id node;
};

struct releasing { /* an order in the making, operator by operator */
	struct ap_ctx *ctx;
	const struct ap_graph *g;
	const int64_t *bytes;
	uint32_t *missing; /* [nnode] operands that no operator so far made; of those made ready, 0 */
	uint32_t *unread; /* [ntensor] uses by operators that are not yet in the order */
	AP_VEC(struct ready) heap; /* also outdated entries */
	bool *done; /* [nnode] */
};

static int64_t growth(const struct releasing *r, ap_id i)
{
	const struct ap_graph *g = r->g;
	const struct ap_node *n = &g->node[i];
	int64_t bytes = 0;

	for (uint16_t o = 0; o < n->bound.nout; o++)
		bytes += g->tensor[n->out[o]].nuse > 0 ? r->bytes[n->out[o]] : 0;
	for (uint16_t k = 0; k < n->bound.nin; k++) {
		const struct ap_tensor *t = &g->tensor[n->in[k]];
		uint32_t unread = r->unread[n->in[k]];

		for (uint16_t x = k + 1; unread > 1 && unread <= n->bound.nin && x < n->bound.nin; x++)
			unread -= n->in[x] == n->in[k]; /* those after it: a tensor counts once */
		if (t->kind == AP_TENSOR_ACT && unread == 1)
			bytes -= r->bytes[n->in[k]];
	}
	return bytes;
}

static bool is_before(const struct ready *a, const struct ready *b)
{
	return a->more != b->more ? a->more < b->more : a->node < b->node;
}

static void push_ready(struct releasing *r, ap_id node)
{
	struct ready x = {growth(r, node), node};
	size_t i = r->heap.n;

	AP_PUSH(r->ctx->scratch, r->heap, x);
	for (; i > 0 && is_before(&x, &r->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
		r->heap.v[i] = r->heap.v[(i - 1) / 2];
	r->heap.v[i] = x;
}

static ap_id pop_ready(struct releasing *r)
{
	struct ready top = r->heap.v[0], last = r->heap.v[--r->heap.n];
	size_t i = 0, n = r->heap.n;

	for (size_t k; (k = 2 * i + 1) < n; i = k) {
		k += k + 1 < n && is_before(&r->heap.v[k + 1], &r->heap.v[k]);
		if (!is_before(&r->heap.v[k], &last))
			break;
		r->heap.v[i] = r->heap.v[k];
	}
	r->heap.v[i] = last;
	return top.node;
}

#define FEW 8 /* uses of a tensor that are left, among which to look for the one that frees it */

/* Puts what reads tensor t into the heap: operators made ready, and one that frees it from now on. */
static void note_read(struct releasing *r, ap_id t, bool made)
{
	const struct ap_tensor *x = &r->g->tensor[t];
	ap_id last = AP_NONE;
	uint32_t waiting = 0;

	for (uint32_t u = 0; (made || r->unread[t] <= FEW) && u < x->nuse; u++) {
		ap_id to = x->use[u].node;

		if (made && --r->missing[to] == 0)
			push_ready(r, to);
		if (!r->done[to] && to != last) {
			last = to;
			waiting++;
		}
	}
	if (!made && waiting == 1 && r->missing[last] == 0)
		push_ready(r, last);
}

static void fill_bytes(struct ap_ctx *ctx, const struct ap_graph *g, const int64_t *bytes, ap_id *node)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct releasing r = {.ctx = ctx, .g = g, .bytes = bytes, .missing = count_missing(ctx, g),
		.unread = AP_NEW_N(ctx->scratch, uint32_t, g->ntensor),
		.done = AP_NEW_N(ctx->scratch, bool, g->nnode)};
	uint32_t n = 0;

	for (ap_id t = 0; t < g->ntensor; t++)
		r.unread[t] = g->tensor[t].nuse;
	for (ap_id i = 0; i < g->nnode; i++)
		if (r.missing[i] == 0)
			push_ready(&r, i);
	while (r.heap.n > 0) {
		ap_id i = pop_ready(&r);

		if (r.done[i])
			continue;
		r.done[i] = true;
		node[n++] = i;
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++)
			r.unread[g->node[i].in[k]]--;
		for (uint16_t k = 0; k < g->node[i].bound.nin; k++)
			if (g->tensor[g->node[i].in[k]].kind == AP_TENSOR_ACT)
				note_read(&r, g->node[i].in[k], false);
		for (uint16_t o = 0; o < g->node[i].bound.nout; o++)
			note_read(&r, g->node[i].out[o], true);
	}
	assert(n == g->nnode);
	ap_arena_release(ctx->scratch, mark);
}

const struct ap_order *ap_order_at(size_t i)
{
	static const struct ap_order all[] = {{"given", fill_given}, {"need", fill_need},
		{"depth", fill_depth}, {"bytes", fill_bytes}};

	return i < AP_COUNT(all) ? &all[i] : NULL;
}
