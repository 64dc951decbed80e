/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/liveness.h"

#include "base/arena.h"
#include "base/dtype.h"
#include "rule/op.h"

/* The nodes that read a tensor's values in the backward pass, which runs from high to low; AP_NONE:
 * no node. */
struct readers {
	ap_id first, last; /* in the pass for activations, or the whole pass */
	ap_id last_late; /* in the pass for weights */
};

struct living {
	const struct ap_parts *x;
	const struct ap_plan *p;
	int64_t *kept, *again, *freed, *freed_again, *freed_late, *late, *rest, *fixed;
	double *share;
	struct readers *of; /* [ntensor] */
	struct readers *of_copy; /* [redistributions] those of others that share the copy */
	ap_id *needed; /* [nnode] the first reader of what is recomputed for the node */
};

static const struct readers nobody = {AP_NONE, AP_NONE, AP_NONE};

static void join(struct readers *a, const struct readers *b)
{
	if (b->first != AP_NONE && (a->first == AP_NONE || b->first > a->first))
		a->first = b->first;
	if (b->last < a->last)
		a->last = b->last;
	if (b->last_late < a->last_late)
		a->last_late = b->last_late;
}

static struct readers self(const struct living *l, ap_id node)
{
	return (struct readers){node, node, l->share[node] > 0 ? node : AP_NONE};
}

/* Does the operator keep something that only its own backward pass reads: a result, a graph input,
 * an operand that is cast, has a halo or is gathered? */
static bool reads_its_own(const struct ap_task *t)
{
	for (int o = 0; o < t->bound->nout; o++)
		if (t->bound->out[o].saved)
			return true;
	for (int i = 0; i < t->bound->nin; i++)
		if (t->in[i].kept && (t->in[i].kind == AP_TENSOR_INPUT || t->in[i].cast ||
				t->bound->nwindow > 0 ||
				(t->in[i].kind == AP_TENSOR_ACT && t->in[i].regather)))
			return true;
	return false;
}

/* Frees bytes that a node allocated after the last reader's pass. */
static void free_after(struct living *l, ap_id node, int64_t bytes, const struct readers *r)
{
	if (r->last_late != AP_NONE)
		l->freed_late[r->last_late] += bytes;
	else if (r->last != AP_NONE)
		l->freed[r->last] += bytes;
	else
		l->rest[l->x->part_of[node]] += bytes;
}

static void free_again_after(struct living *l, ap_id node, int64_t bytes, const struct readers *r)
{
	const struct readers early = {r->first, r->last, AP_NONE};

	if (r->last == AP_NONE)
		return;
	l->again[node] += bytes;
	l->freed_again[r->last] += bytes;
	free_after(l, node, bytes, &early);
}

/* Copies that redistributions to the node's operands keep or recompute. A shared one is that of the first
 * node, which comes here last. */
static void copies(struct living *l, ap_id node, const struct readers *r)
{
	const struct ap_task *t = &l->p->task[node];

	for (uint32_t m = l->x->first_move[node]; m < l->x->first_move[node + 1]; m++) {
		const struct ap_plan_move *move = &l->p->move[m];
		bool again = t->in[move->operand].again && move->nstep > 0;
		int64_t bytes = move->cost.kept_bytes;
		struct readers all = *r;

		if (again) /* of which the cost has a share, rounded down */
			bytes = move->step[move->nstep - 1].after *
				ap_dtype_bytes(l->p->graph->tensor[move->tensor].shape.dtype);
		if (move->shares != AP_NONE && t->in[move->operand].kept)
			join(&l->of_copy[move->shares], r);
		if (move->from == AP_NONE || bytes == 0)
			continue;
		join(&all, &l->of_copy[m]);
		if (again) {
			free_again_after(l, node, bytes, &all);
			continue;
		}
		l->kept[node] += bytes;
		free_after(l, node, bytes, &all);
	}
}

/* Do others read what its first run left, so that the second time only its own backward pass does? */
static bool is_twice(const struct ap_task *t)
{
	return t->bound->nout > 0 && t->out[0].twice;
}

/* Activations that a node keeps or recomputes itself. */
static void results(struct living *l, ap_id node, const struct readers *r, const struct readers *mine)
{
	const struct ap_task *t = &l->p->task[node];
	const struct ap_op_cost *c = &l->p->op[node].cost;

	if (t->once) {
		l->fixed[l->x->stage[l->x->part_of[node]]] += c->activation_bytes;
		return;
	}
	l->kept[node] += c->activation_bytes;
	l->late[node] = c->late_bytes;
	free_after(l, node, c->activation_bytes, r);
	free_again_after(l, node, c->recompute_bytes, is_twice(t) ? mine : r);
}

/* Called for users before producers, so readers of results are final. */
static void live_of_node(struct living *l, ap_id node)
{
	const struct ap_node *n = &l->p->graph->node[node];
	const struct ap_task *t = &l->p->task[node];
	struct readers of_results = nobody, mine = self(l, node);
	const struct readers *of_operands;

	for (uint32_t o = 0; o < n->bound.nout; o++)
		join(&of_results, &l->of[n->out[o]]);
	of_operands = ap_op_is_view(t->bound->row) ? &of_results : &mine;
	for (uint32_t i = 0; i < n->bound.nin; i++) {
		if (!t->in[i].kept)
			continue;
		join(&l->of[n->in[i]], of_operands);
		if (t->in[i].again)
			l->needed[node] = of_operands->first;
	}
	copies(l, node, of_operands);
	if (t->backward && !ap_op_is_view(t->bound->row) && reads_its_own(t))
		join(&of_results, &mine);
	results(l, node, &of_results, &mine);
	if (is_twice(t) || (t->repeated && of_results.first == AP_NONE))
		of_results = mine;
	if (t->recomputed && (l->needed[node] == AP_NONE || l->needed[node] < of_results.first))
		l->needed[node] = of_results.first;
}

static uint32_t count_sets(const struct ap_plan *p)
{
	uint32_t n = 0;

	for (ap_id i = 0; i < p->graph->nnode; i++)
		if (p->task[i].recompute_set != AP_NONE && p->task[i].recompute_set >= n)
			n = p->task[i].recompute_set + 1;
	return n;
}

/* Numbers sets by part: a set with operators in two parts is recomputed in each separately. */
static uint32_t number_sets(struct ap_arena *scratch, const struct ap_parts *x, uint32_t *set_of)
{
	uint32_t given = count_sets(x->p), n = 0;
	uint32_t *number = AP_NEW_N(scratch, uint32_t, given);
	int32_t *part = AP_NEW_N(scratch, int32_t, given);

	for (uint32_t s = 0; s < given; s++)
		part[s] = -1;
	for (uint32_t k = 0; k < x->first[x->npart]; k++) {
		ap_id node = x->node[k];
		uint32_t s = x->p->task[node].recompute_set;

		set_of[node] = AP_NONE;
		if (s == AP_NONE)
			continue;
		if (part[s] != x->part_of[node])
			number[s] = n++;
		part[s] = x->part_of[node];
		set_of[node] = number[s];
	}
	return n;
}

static void make_sets(struct ap_arena *scratch, const struct living *l, struct ap_live *out)
{
	uint32_t nnode = l->p->graph->nnode, *set_of = AP_NEW_N(scratch, uint32_t, nnode);
	uint32_t n = number_sets(scratch, l->x, set_of), *at, *first, *next, *head;
	ap_id *node, *when;

	first = AP_NEW_N(scratch, uint32_t, n + 1);
	at = AP_NEW_N(scratch, uint32_t, n + 1);
	next = AP_NEW_N(scratch, uint32_t, n);
	when = AP_NEW_N(scratch, ap_id, n);
	head = AP_NEW_N(scratch, uint32_t, nnode);
	for (ap_id i = 0; i < nnode; i++) {
		head[i] = AP_NONE;
		if (set_of[i] != AP_NONE)
			first[set_of[i] + 1]++;
	}
	for (uint32_t s = 0; s < n; s++) {
		first[s + 1] += first[s];
		at[s] = first[s];
		when[s] = AP_NONE;
	}
	node = AP_NEW_N(scratch, ap_id, first[n]);
	for (ap_id i = 0; i < nnode; i++) {
		uint32_t s = set_of[i];

		if (s == AP_NONE)
			continue;
		node[at[s]++] = i;
		if (l->needed[i] != AP_NONE && (when[s] == AP_NONE || l->needed[i] > when[s]))
			when[s] = l->needed[i];
	}
	for (uint32_t s = n; s-- > 0;) {
		if (when[s] == AP_NONE)
			continue;
		next[s] = head[when[s]];
		head[when[s]] = s;
	}
	out->nset = n;
	out->set_first = first;
	out->set_node = node;
	out->sets_at = head;
	out->next_set = next;
}

ap_id ap_live_root(const struct ap_graph *g, ap_id tensor)
{
	ap_id from = g->tensor[tensor].producer;

	while (from != AP_NONE && ap_op_is_view(g->node[from].bound.row)) {
		tensor = g->node[from].in[0];
		from = g->tensor[tensor].producer;
	}
	return tensor;
}

const int64_t *ap_live_recomputed(struct ap_ctx *ctx, const struct ap_parts *x,
	const struct ap_live *live)
{
	int64_t *most = AP_NEW_N(ctx->scratch, int64_t, x->nstage);

	for (int32_t part = 0; part < x->npart; part++) {
		int64_t held = 0, *of = &most[x->stage[part]];

		for (uint32_t k = x->first[part + 1]; k-- > x->first[part];) {
			ap_id node = x->node[k];

			for (uint32_t s = live->sets_at[node]; s != AP_NONE; s = live->next_set[s])
				for (uint32_t i = live->set_first[s]; i < live->set_first[s + 1]; i++)
					held += live->again[live->set_node[i]];
			*of = held > *of ? held : *of;
			held -= live->freed_again[node];
		}
	}
	return most;
}

void ap_live_make(struct ap_ctx *ctx, const struct ap_parts *x, bool splits, struct ap_live *out)
{
	struct ap_arena *scratch = ctx->scratch;
	uint32_t n = x->p->graph->nnode;
	struct living l = {.x = x, .p = x->p,
		.kept = AP_NEW_N(scratch, int64_t, n),
		.again = AP_NEW_N(scratch, int64_t, n),
		.freed = AP_NEW_N(scratch, int64_t, n),
		.freed_again = AP_NEW_N(scratch, int64_t, n),
		.freed_late = AP_NEW_N(scratch, int64_t, n),
		.late = AP_NEW_N(scratch, int64_t, n),
		.rest = AP_NEW_N(scratch, int64_t, x->npart),
		.fixed = AP_NEW_N(scratch, int64_t, x->nstage),
		.share = AP_NEW_N(scratch, double, n),
		.of = AP_NEW_N(scratch, struct readers, x->p->graph->ntensor),
		.of_copy = AP_NEW_N(scratch, struct readers, x->p->nmove),
		.needed = AP_NEW_N(scratch, ap_id, n),
	};

	for (ap_id t = 0; t < x->p->graph->ntensor; t++)
		l.of[t] = nobody;
	for (uint32_t m = 0; m < x->p->nmove; m++)
		l.of_copy[m] = nobody;
	for (ap_id i = n; i-- > 0;) {
		l.needed[i] = AP_NONE;
		if (splits)
			l.share[i] = l.p->task[i].weight_share;
		live_of_node(&l, i);
	}
	*out = (struct ap_live){.kept = l.kept, .again = l.again, .freed = l.freed,
		.freed_again = l.freed_again, .freed_late = l.freed_late, .late = l.late, .rest = l.rest,
		.weight_share = l.share, .fixed = l.fixed};
	make_sets(scratch, &l, out);
}
