/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "base/map.h"
#include "cost/recompute.h"

struct keeping {
	const struct ap_graph *g;
	bool lends;
	const struct ap_again *mark;
	struct ap_task *task;
	struct ap_task_operand *const *in;
	struct ap_task_result *const *out;
	bool *saved; /* [ntensor] a backward pass reads it */
	bool *reread; /* [ntensor] an operator that is computed again reads it */
	bool *whole; /* [ntensor] one of them wants it held as it is, not in parts */
	bool *firm; /* [ntensor] it must be held, in whatever layout they want it */
	uint16_t *readers; /* [ntensor] operands that a backward pass reads, of it and of its views */
};

static bool is_view(const struct ap_bound *b)
{
	return b->row->unit == AP_OP_VIEW;
}

/* An operand of a product is needed for the other's gradient only. */
static bool saved_for_another(const struct ap_task *t, const struct ap_task_operand *in, uint16_t i)
{
	const struct ap_bound *b = t->bound;
	bool another = !ap_op_is_product(b->row);

	for (uint16_t j = 0; j < b->nin; j++)
		another |= j != i && b->in[j].saved && in[j].grad;
	return another;
}

static void results_of(struct keeping *k, ap_id node)
{
	const struct ap_node *n = &k->g->node[node];
	struct ap_task *t = &k->task[node];
	bool marked = k->mark[node].group != AP_NONE && !is_view(t->bound);

	for (uint16_t o = 0; o < n->bound.nout; o++) {
		struct ap_task_result *r = &k->out[node][o];
		bool saved = k->saved[n->out[o]] || (t->backward && n->bound.out[o].saved);
		bool needed = saved || k->reread[n->out[o]];

		r->kept = needed && !marked && !is_view(t->bound);
		r->sliced = r->kept && !t->once && !k->whole[n->out[o]] &&
			!(t->backward && n->bound.out[o].saved);
		r->lent = k->lends && r->kept && r->grad && !t->once && !k->firm[n->out[o]] &&
			k->readers[n->out[o]] < UINT16_MAX &&
			!(t->backward && n->bound.out[o].saved);
		r->again = saved && marked;
		r->needed = needed && marked;
		t->recomputed |= r->needed;
	}
}

static void add_readers(struct keeping *k, ap_id tensor, uint16_t n)
{
	k->readers[tensor] = n > UINT16_MAX - k->readers[tensor] ? UINT16_MAX
		: (uint16_t)(k->readers[tensor] + n);
}

static void operands_of(struct keeping *k, ap_id node)
{
	const struct ap_node *n = &k->g->node[node];
	const struct ap_task *t = &k->task[node];
	bool anew = k->mark[node].group != AP_NONE && !k->mark[node].keep_comm;
	bool view_saved = is_view(t->bound) && k->saved[n->out[0]];
	bool view_reread = is_view(t->bound) && k->reread[n->out[0]];

	for (uint16_t i = 0; i < n->bound.nin; i++) {
		struct ap_task_operand *in = &k->in[node][i];
		bool saved = view_saved || (t->backward && n->bound.in[i].saved &&
			saved_for_another(t, k->in[node], i));
		bool reread = view_reread || t->recomputed;

		in->kept = saved || reread;
		if (in->cast) /* the copy is held, whatever is recomputed */
			continue;
		in->again = in->kept && anew;
		k->whole[n->in[i]] |= view_saved || view_reread ? k->whole[n->out[0]]
			: in->kept && !(in->again && k->mark[node].slice);
		k->saved[n->in[i]] |= saved;
		k->reread[n->in[i]] |= reread;
		k->firm[n->in[i]] |= in->again || reread || (is_view(t->bound) && k->firm[n->out[0]]);
		add_readers(k, n->in[i], !in->kept ? 0 : is_view(t->bound) ? k->readers[n->out[0]] : 1);
	}
}

/* The result that a tensor shows, through views; AP_NONE: one of the graph's inputs. */
static ap_id shown_by(const struct ap_graph *g, ap_id tensor)
{
	while (g->tensor[tensor].producer != AP_NONE &&
		is_view(&g->node[g->tensor[tensor].producer].bound))
		tensor = g->node[g->tensor[tensor].producer].in[0];
	return g->tensor[tensor].producer == AP_NONE ? AP_NONE : tensor;
}

/* What is lent is charged to those that read it, itself or through views. */
static void share_lent(const struct keeping *k)
{
	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *n = &k->g->node[i];

		for (uint16_t x = 0; x < n->bound.nin; x++) {
			struct ap_task_operand *in = &k->in[i][x];
			ap_id t = in->kept && !in->cast ? shown_by(k->g, n->in[x]) : AP_NONE;
			const struct ap_tensor *from = t == AP_NONE ? NULL : &k->g->tensor[t];

			if (from && k->out[from->producer][from->result].lent)
				in->share = k->readers[t];
		}
	}
}

/* Parts are gathered by the first that reads them again. */
static void gather_parts(struct ap_ctx *ctx, const struct keeping *k)
{
	bool *gathered = AP_NEW_N(ctx->scratch, bool, k->g->ntensor);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *n = &k->g->node[i];

		for (uint16_t x = 0; x < n->bound.nin && !is_view(&n->bound); x++) {
			ap_id t = k->in[i][x].again ? shown_by(k->g, n->in[x]) : AP_NONE;
			const struct ap_tensor *from = t == AP_NONE ? NULL : &k->g->tensor[t];

			if (!from || gathered[t] || !k->out[from->producer][from->result].sliced)
				continue;
			gathered[t] = true;
			k->in[i][x].regather = true;
		}
	}
}

static ap_id root_of(ap_id *up, ap_id node)
{
	while (up[node] != node)
		node = up[node] = up[up[node]];
	return node;
}

/* The one nearer to the inputs stands for both. */
static void unite(ap_id *up, ap_id a, ap_id b)
{
	a = root_of(up, a);
	b = root_of(up, b);
	up[a > b ? a : b] = a < b ? a : b;
}

static bool is_member(const struct keeping *k, ap_id node)
{
	bool member = k->task[node].recomputed;

	for (uint16_t i = 0; i < k->g->node[node].bound.nin; i++)
		member |= k->in[node][i].again;
	return member;
}

/* Together are computed again: a group's operators in one part of a pipeline, and those of which one
 * reads what another has to make anew, by itself or through a view. */
static void join_sets(struct ap_ctx *ctx, const struct keeping *k, ap_id *up)
{
	struct ap_map *groups = ap_map_create(ctx->scratch);
	ap_id *first = AP_NEW_N(ctx->scratch, ap_id, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *n = &k->g->node[i];
		const int64_t key[] = {k->mark[i].group, n->stage, n->segment};
		bool fresh;
		ap_id id;

		up[i] = i;
		if (!is_member(k, i))
			continue;
		id = ap_map_put(groups, key, sizeof key, &fresh);
		if (fresh)
			first[id] = i;
		unite(up, first[id], i);
		for (uint16_t x = 0; x < n->bound.nin; x++) {
			ap_id from = k->g->tensor[n->in[x]].producer, shown = shown_by(k->g, n->in[x]);

			if (from != AP_NONE && is_member(k, from))
				unite(up, from, i);
			if (shown != AP_NONE && is_member(k, k->g->tensor[shown].producer))
				unite(up, k->g->tensor[shown].producer, i);
		}
	}
}

static void number_sets(struct ap_ctx *ctx, const struct keeping *k)
{
	uint32_t nnode = k->g->nnode, n = 0;
	ap_id *up = AP_NEW_N(ctx->scratch, ap_id, nnode);
	struct ap_map *stages = ap_map_create(ctx->scratch);
	uint32_t *sets = AP_NEW_N(ctx->scratch, uint32_t, nnode); /* of a stage */

	join_sets(ctx, k, up);
	for (ap_id i = 0; i < nnode; i++) {
		const struct ap_node *node = &k->g->node[i];
		ap_id stage = ap_map_put(stages, &node->stage, sizeof node->stage, NULL);

		k->task[i].recompute_set = AP_NONE;
		if (!is_member(k, i))
			continue;
		if (up[i] == i) {
			k->task[i].recompute_set = n++;
			sets[stage]++;
		} else {
			k->task[i].recompute_set = k->task[root_of(up, i)].recompute_set;
		}
	}
	for (ap_id i = 0; i < nnode; i++)
		if (k->task[i].recompute_set != AP_NONE)
			k->task[i].recompute_sets = sets[ap_map_put(stages,
				&k->g->node[i].stage, sizeof k->g->node[i].stage, NULL)];
}

void ap_keep(struct ap_ctx *ctx, const struct ap_graph *g, bool lends, const struct ap_again *mark,
	struct ap_task *task, struct ap_task_operand *const *in, struct ap_task_result *const *out)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct keeping k = {g, lends, mark, task, in, out, AP_NEW_N(ctx->scratch, bool, g->ntensor),
		AP_NEW_N(ctx->scratch, bool, g->ntensor), AP_NEW_N(ctx->scratch, bool, g->ntensor),
		AP_NEW_N(ctx->scratch, bool, g->ntensor), AP_NEW_N(ctx->scratch, uint16_t, g->ntensor)};

	/* Consumers before producers, so that what is known of a result is final. */
	for (ap_id i = g->nnode; i-- > 0;) {
		results_of(&k, i);
		operands_of(&k, i);
	}
	share_lent(&k);
	gather_parts(ctx, &k);
	number_sets(ctx, &k);
	ap_arena_release(ctx->scratch, scratch);
}
