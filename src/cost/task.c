/* SPDX-License-Identifier: Apache-2.0 */
/* data_parallel's parallel optimizer: parameters are whole on every device. Of the trained
 * parameters, in the graph's order, device i updates i, i + n, i + 2 n, .. and broadcasts them. */
#include "cost/task.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "cost/chain.h"
#include "cost/comms.h"
#include "cost/float8.h"
#include "cost/optimizer.h"
#include "cost/recompute.h"
#include "rule/attr.h"
#include "rule/op.h"
#include "shard/layout.h"
#include "shard/space.h"
#include "shard/strategy.h"

struct filling {
	const struct ap_graph *g;
	struct ap_task *task;
	struct ap_task_operand **in; /* [nnode] mutable views of task[].in */
	struct ap_task_result **out;
	const struct ap_again *again; /* [nnode] */
	const bool *dealt; /* [ntensor] ap_dealt_params(); NULL: not dealt whole */
	ap_id *reader; /* [ntensor] the latest operator that reads it, or AP_NONE */
	uint16_t *first; /* [ntensor] the first of its operands that does */
	int64_t gradients_bytes[AP_DTYPE_COUNT]; /* by type on the wire: of those that go in buckets */
	int64_t weights_bytes[AP_DTYPE_COUNT]; /* by type */
};

bool ap_task_fuses(const struct ap_graph *g, const struct ap_tensor *t)
{
	const struct ap_tensor *first = NULL;

	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ap_node *n = &g->node[t->use[u].node];
		const struct ap_tensor *result;

		if (n->bound.nout == 0)
			continue;
		result = &g->tensor[n->out[0]];
		first = first ? first : result;
		if (result->shape.dtype != first->shape.dtype)
			return false;
	}
	return true;
}

int32_t ap_task_fusion(const struct ap_graph *g, const struct ap_tensor *t)
{
	return t->comm_fusion >= 0 ? t->comm_fusion : g->node[t->owner.node].fusion;
}

static bool is_trained(const struct ap_tensor *t)
{
	return t->kind == AP_TENSOR_PARAM && t->trainable && t->needs_grad && t->nuse > 0;
}

/* What may be exchanged in buckets, in a stage, in the mean of all. */
static void count_exchanged(struct filling *k, const struct ap_step *step)
{
	int64_t nstage = step->pipe ? step->pipe->nstage : 1;

	for (ap_id i = 0; i < k->g->ntensor; i++) {
		const struct ap_tensor *t = &k->g->tensor[i];
		enum ap_dtype own = t->shape.dtype, wire = ap_gradient_wire(own, step);

		if (!is_trained(t) || !ap_task_fuses(k->g, t))
			continue;
		k->gradients_bytes[wire] += ap_tensor_bytes(t) / ap_dtype_bytes(own) * ap_dtype_bytes(wire);
		k->weights_bytes[own] += ap_tensor_bytes(t);
	}
	for (int d = 0; d < AP_DTYPE_COUNT; d++) {
		k->gradients_bytes[d] /= nstage;
		k->weights_bytes[d] /= nstage;
	}
}

static void fill_operand(const struct filling *k, const struct ap_step *step, ap_id node, uint16_t i)
{
	struct ap_task_operand *o = &k->in[node][i];
	const struct ap_node *n = &k->g->node[node];
	const struct ap_tensor *t = &k->g->tensor[n->in[i]];

	o->kind = t->kind;
	o->batch = t->batch;
	o->uneven = t->uneven != 0;
	if (o->uneven)
		k->task[node].imbalance = step->expert_imbalance > 0 ? step->expert_imbalance : t->imbalance;
	if (k->reader[n->in[i]] != node) {
		k->reader[n->in[i]] = node;
		k->first[n->in[i]] = i;
	}
	o->twin = k->first[n->in[i]];
	o->trainable = t->kind == AP_TENSOR_PARAM && t->trainable;
	o->cast = n->bound.in[i].dtype != t->shape.dtype;
	o->stored = t->shape.dtype;
	o->grad = step->training && n->backward && t->needs_grad && n->bound.in[i].differentiable;
	o->owner = t->owner.node == node && t->owner.operand == i;
	o->returns = o->grad && step->executor == AP_EXECUTOR_GENERIC && !n->once &&
		t->kind == AP_TENSOR_ACT && k->g->node[t->producer].once;
	o->alone = o->trainable && step->layerwise && t->layerwise_parallel;
	o->shardable = o->trainable && t->parallel_optimizer && !o->alone &&
		ap_tensor_bytes(t) >= step->shard_threshold_bytes;
	o->regather = o->shardable && (step->optimizer_level >= 3 || k->again[node].regather);
	o->stays = o->shardable && !o->regather && step->optimizer_level == 2 && step->gathers_each;
	o->regather |= o->stays;
	if (is_trained(t) && !o->alone && ap_task_fuses(k->g, t)) {
		o->gradients_bytes = k->gradients_bytes[ap_gradient_wire(t->shape.dtype, step)];
		o->weights_bytes = k->weights_bytes[t->shape.dtype];
		o->unfused = ap_task_fusion(k->g, t) == 0;
	}
	o->updated = !k->dealt || k->dealt[n->in[i]];
	o->sharer = AP_NONE;
}

static bool is_weight(const struct ap_graph *g, ap_id tensor)
{
	const struct ap_tensor *t = &g->tensor[tensor];

	return t->kind == AP_TENSOR_PARAM || (t->kind == AP_TENSOR_ACT && g->node[t->producer].once);
}

/* Is an operand of the backward pass made again for it, and freed after it? */
static bool comes_again(const struct filling *k, ap_id node, uint32_t i)
{
	const struct ap_tensor *t = &k->g->tensor[k->g->node[node].in[i]];
	bool again = k->in[node][i].again;

	for (; t->producer != AP_NONE; t = &k->g->tensor[k->g->node[t->producer].in[0]]) {
		again |= k->out[t->producer][t->result].again;
		if (k->g->node[t->producer].bound.row->unit != AP_OP_VIEW)
			break;
		again |= k->in[t->producer][0].again;
	}
	return k->in[node][i].kept && again;
}

static double weight_share(const struct filling *k, ap_id node)
{
	const struct ap_task *t = &k->task[node];
	int wanted = 0, weights = 0;

	for (uint32_t i = 0; t->backward && i < t->bound->nin; i++) {
		wanted += k->in[node][i].grad;
		weights += k->in[node][i].grad && is_weight(k->g, k->g->node[node].in[i]);
		if (comes_again(k, node, i))
			return 0;
	}
	if (weights == 0 || (weights < wanted && t->bound->row->unit != AP_OP_CUBE))
		return 0;
	return (double)weights / wanted;
}

static void fill_task(struct filling *k, const struct ap_step *step, ap_id node)
{
	const struct ap_node *n = &k->g->node[node];
	struct ap_task *t = &k->task[node];

	t->bound = &n->bound;
	t->backward = step->training && n->backward;
	t->once = n->once;
	t->stage = n->peer < 0 ? 0 : n->stage;
	t->peer = n->peer;
	t->block = k->g->devices && n->stage > 0 ? k->g->devices[n->stage].like : 0;
	t->across = k->g->devices && n->peer >= 0 &&
		k->g->devices[n->stage].n != k->g->devices[n->peer].n;
	t->received = t->across && strcmp(n->type, "Receive") == 0;
	t->in_flight = n->once || !step->pipe ? 1
		: ap_step_in_flight(step, n->stage > 0 ? n->stage : 0, n->segment > 0 ? n->segment : 0);
	t->cross_batch = ap_op_takes_cross_batch(n->bound.row) &&
		(n->cross_batch || ap_attr_bool(&n->attrs, "cross_batch", false));
	t->measured = n->measured;
	if (n->measured) {
		t->measured_forward_s = n->measured_forward_s / n->measured_share;
		t->measured_backward_s = n->measured_backward_s / n->measured_share;
	}
	for (uint16_t i = 0; i < n->bound.nin; i++)
		fill_operand(k, step, node, i);
	for (uint16_t o = 0; o < n->bound.nout; o++) {
		const struct ap_tensor *r = &k->g->tensor[n->out[o]];

		k->out[node][o].batch = r->batch;
		k->out[node][o].uneven = r->uneven != 0;
		k->out[node][o].grad = t->backward && r->needs_grad;
	}
}

struct keeping {
	const struct ap_graph *g;
	bool lends;
	const struct ap_again *mark;
	struct ap_task *task;
	struct ap_task_operand *const *in;
	struct ap_task_result *const *out;
	bool *saved; /* [ntensor] read by a backward pass */
	bool *reread; /* [ntensor] read by an operator that is recomputed */
	bool *whole; /* [ntensor] some reader wants it whole, not in parts */
	bool *firm; /* [ntensor] must be held, whatever layout its readers want */
	uint16_t *readers; /* [ntensor] operands read by a backward pass, its own and its views' */
	bool *in_8_bits, *in_full; /* [ntensor] kept for products in 8 bits; for others */
};

/* A product needs an operand only for the other operand's gradient. */
static bool saved_for_another(const struct ap_task *t, const struct ap_task_operand *in, uint16_t i)
{
	const struct ap_bound *b = t->bound;
	bool another = !ap_op_is_product(b->row);

	for (uint16_t j = 0; j < b->nin; j++)
		another |= j != i && b->in[j].saved && in[j].grad;
	return another;
}

static void add_readers(struct keeping *k, ap_id tensor, uint16_t n)
{
	k->readers[tensor] = n > UINT16_MAX - k->readers[tensor] ? UINT16_MAX
		: (uint16_t)(k->readers[tensor] + n);
}

/* Is the operand kept as a copy in 8 bits? What runs again makes it anew. */
static bool is_eighth(const struct ap_task *t, const struct ap_task_operand *in)
{
	return in->float8_readers > 0 && !t->recomputed && !t->repeated;
}

static void operands_of(struct keeping *k, ap_id node)
{
	const struct ap_node *n = &k->g->node[node];
	const struct ap_task *t = &k->task[node];
	bool view = ap_op_is_view(t->bound->row);
	bool anew = ((k->mark[node].group != AP_NONE || t->repeated) && !k->mark[node].keep_comm) ||
		k->mark[node].gathers != AP_NONE;
	bool view_saved = view && k->saved[n->out[0]];
	bool view_reread = view && k->reread[n->out[0]];

	for (uint16_t i = 0; i < n->bound.nin; i++) {
		struct ap_task_operand *in = &k->in[node][i];
		bool saved = view_saved || (t->backward && n->bound.in[i].saved &&
			saved_for_another(t, k->in[node], i));
		/* a cast for what is only repeated is made once more, too */
		bool reread = view_reread || t->recomputed || (t->repeated && !in->cast);

		in->kept = saved || reread;
		if (in->cast) /* the copy is held, even if recomputed */
			continue;
		in->again = in->kept && anew;
		k->whole[n->in[i]] |= view_saved || view_reread ? k->whole[n->out[0]]
			: in->kept && !(in->again && k->mark[node].slice);
		k->saved[n->in[i]] |= saved;
		k->reread[n->in[i]] |= reread;
		k->firm[n->in[i]] |= in->again || reread || (view && k->firm[n->out[0]]);
		k->in_8_bits[n->in[i]] |= in->kept && (view ? k->in_8_bits[n->out[0]] : is_eighth(t, in));
		k->in_full[n->in[i]] |= in->kept && (view ? k->in_full[n->out[0]] : !is_eighth(t, in));
		add_readers(k, n->in[i], !in->kept ? 0 : view ? k->readers[n->out[0]] : 1);
	}
}

/* The result behind a tensor, through views; AP_NONE for an input of the graph. */
static ap_id shown_by(const struct ap_graph *g, ap_id tensor)
{
	while (g->tensor[tensor].producer != AP_NONE &&
		ap_op_is_view(g->node[g->tensor[tensor].producer].bound.row))
		tensor = g->node[g->tensor[tensor].producer].in[0];
	return g->tensor[tensor].producer == AP_NONE ? AP_NONE : tensor;
}

/* Charges lent results to their readers, directly or through views. */
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

static ap_id root_of(ap_id *up, ap_id node)
{
	while (up[node] != node)
		node = up[node] = up[up[node]];
	return node;
}

static bool is_member(const struct keeping *k, ap_id node)
{
	bool member = k->task[node].recomputed;

	for (uint16_t i = 0; i < k->g->node[node].bound.nin; i++)
		member |= k->in[node][i].again;
	return member;
}

/* Does the producer make a tensor again for those who read it? */
static bool hands_on(const struct keeping *k, ap_id tensor)
{
	const struct ap_tensor *t = &k->g->tensor[tensor];

	return is_member(k, t->producer) && !k->out[t->producer][t->result].twice;
}

/* The smaller id represents both. */
static void unite(ap_id *up, ap_id a, ap_id b)
{
	a = root_of(up, a);
	b = root_of(up, b);
	up[a > b ? a : b] = a < b ? a : b;
}

/* Unites operators that are recomputed together: those of a group in one part of a pipeline, and
 * those of which one reads what another makes again, directly or through a view. */
static void join_sets(struct ap_ctx *ctx, const struct keeping *k, ap_id *up)
{
	struct ap_map *groups = ap_map_create(ctx->scratch);
	ap_id *first = AP_NEW_N(ctx->scratch, ap_id, k->g->nnode);

	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *n = &k->g->node[i];
		const struct ap_again *mark = &k->mark[i];
		const int64_t key[] = {mark->group != AP_NONE ? mark->group
			: mark->repeats != AP_NONE ? mark->repeats : mark->gathers, n->stage, n->segment};
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

			if (from != AP_NONE && hands_on(k, n->in[x]))
				unite(up, from, i);
			if (shown != AP_NONE && hands_on(k, shown))
				unite(up, k->g->tensor[shown].producer, i);
		}
	}
}

static void number_sets(struct ap_ctx *ctx, const struct keeping *k)
{
	uint32_t nnode = k->g->nnode, n = 0;
	ap_id *up = AP_NEW_N(ctx->scratch, ap_id, nnode);
	struct ap_map *stages = ap_map_create(ctx->scratch);
	uint32_t *sets = AP_NEW_N(ctx->scratch, uint32_t, nnode); /* number of sets by stage */

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

/* Decides what is kept and what is recomputed, given the marks: sets kept, again, needed and sliced
 * of operands and results (in[node], out[node] of tasks), regather of activations, and recomputed
 * and sets of tasks. lends: data redistributed for a backward pass is held in its new layout,
 * unlike the generic executor's gathered copies. */
static void keep(struct ap_ctx *ctx, const struct ap_graph *g, bool lends, const struct ap_again *mark,
	struct ap_task *task, struct ap_task_operand *const *in, struct ap_task_result *const *out)
{
	struct ap_mark scratch = ap_arena_mark(ctx->scratch);
	struct keeping k = {g, lends, mark, task, in, out, AP_NEW_N(ctx->scratch, bool, g->ntensor),
		AP_NEW_N(ctx->scratch, bool, g->ntensor), AP_NEW_N(ctx->scratch, bool, g->ntensor),
		AP_NEW_N(ctx->scratch, bool, g->ntensor), AP_NEW_N(ctx->scratch, uint16_t, g->ntensor),
		AP_NEW_N(ctx->scratch, bool, g->ntensor), AP_NEW_N(ctx->scratch, bool, g->ntensor)};
	bool *gathered, *copied;

	/* consumers before producers, so that what is known of a result is final */
	for (ap_id i = g->nnode; i-- > 0;) {
		const struct ap_node *n = &k.g->node[i];
		struct ap_task *t = &k.task[i];
		bool view = ap_op_is_view(t->bound->row);
		bool marked = k.mark[i].group != AP_NONE && !view;

		t->repeated = k.mark[i].repeats != AP_NONE && !view;
		for (uint16_t o = 0; o < n->bound.nout; o++) {
			struct ap_task_result *r = &k.out[i][o];
			bool saved = k.saved[n->out[o]] || (t->backward && n->bound.out[o].saved);
			bool needed = saved || k.reread[n->out[o]];

			r->kept = needed && !marked && !view;
			r->twice = t->repeated && !marked;
			r->sliced = r->kept && !t->once && !k.whole[n->out[o]] &&
				!(t->backward && n->bound.out[o].saved);
			r->lent = k.lends && r->kept && r->grad && !t->once && !k.firm[n->out[o]] &&
				k.readers[n->out[o]] < UINT16_MAX &&
				!(t->backward && n->bound.out[o].saved);
			r->float8 = r->kept && k.in_8_bits[n->out[o]] && !k.in_full[n->out[o]] &&
				!(t->backward && n->bound.out[o].saved);
			r->again = saved && marked;
			r->needed = needed && marked;
			t->recomputed |= r->needed;
		}
		operands_of(&k, i);
		t->recomputed |= t->repeated;
	}
	share_lent(&k);
	/* the first operator that reads parts again gathers them */
	gathered = AP_NEW_N(ctx->scratch, bool, k.g->ntensor);
	for (ap_id i = 0; i < k.g->nnode; i++) {
		const struct ap_node *n = &k.g->node[i];

		for (uint16_t x = 0; x < n->bound.nin && !ap_op_is_view(n->bound.row); x++) {
			ap_id t = k.in[i][x].again ? shown_by(k.g, n->in[x]) : AP_NONE;
			const struct ap_tensor *from = t == AP_NONE ? NULL : &k.g->tensor[t];

			if (!from || gathered[t] || !k.out[from->producer][from->result].sliced)
				continue;
			gathered[t] = true;
			k.in[i][x].regather = true;
		}
	}
	/* the first product of those that read a copy beside the whole has it */
	copied = AP_NEW_N(ctx->scratch, bool, k.g->ntensor);
	for (ap_id i = 0; i < k.g->nnode; i++) {
		const struct ap_node *n = &k.g->node[i];

		for (uint16_t x = 0; k.task[i].float8 && x < n->bound.nin; x++) {
			struct ap_task_operand *o = &k.in[i][x];
			ap_id t = o->kept && is_eighth(&k.task[i], o) ? shown_by(k.g, n->in[x]) : AP_NONE;

			if (t == AP_NONE || copied[t] || !k.in_full[t])
				continue;
			copied[t] = o->float8_copy = true;
		}
	}
	number_sets(ctx, &k);
	ap_arena_release(ctx->scratch, scratch);
}

/* Marks products in 8 bits, and counts those that read one copy. */
static void find_float8(struct ap_ctx *ctx, const struct filling *k, const struct ap_step *step)
{
	const bool *narrow = ap_float8_products(ctx, k->g, step);
	bool *others;
	uint16_t *readers;

	if (!narrow)
		return;
	readers = AP_NEW_N(ctx->scratch, uint16_t, k->g->ntensor);
	others = AP_NEW_N(ctx->scratch, bool, k->g->ntensor);
	for (ap_id i = k->g->nnode; i-- > 0;) {
		const struct ap_node *n = &k->g->node[i];
		bool view = ap_op_is_view(n->bound.row);

		for (uint16_t x = 0; x < n->bound.nin; x++) {
			bool only = view ? k->g->tensor[n->out[0]].nuse > 0 && !others[n->out[0]]
				: narrow[i] && x == 0;

			k->in[i][x].float8_only = only && k->in[i][x].kind == AP_TENSOR_ACT;
			others[n->in[x]] |= !only;
		}
	}
	for (int counted = 0; counted < 2; counted++)
		for (ap_id i = 0; i < k->g->nnode; i++) {
			ap_id shown, t;

			if (!narrow[i])
				continue;
			shown = shown_by(k->g, k->g->node[i].in[0]);
			t = shown == AP_NONE ? k->g->node[i].in[0] : shown;
			k->task[i].float8 = true;
			if (!counted && readers[t] < UINT16_MAX)
				readers[t]++;
			k->in[i][0].float8_readers = readers[t];
		}
}

struct sharing { /* what operands that may share a copy have in common; compared by its bytes */
	const struct ap_op_row *row;
	ap_id tensor; /* the first of those alike */
	uint32_t operand, recompute_set;
	int32_t stage, segment;
	uint8_t dtype, batch, grad, kept, again, cast, float8, spare[5];
};

/* What operand x of node i reads, as those that may share it would say; like: see find_likes(). */
static struct sharing sharing_of(const struct filling *k, const ap_id *like, ap_id i, uint16_t x)
{
	const struct ap_node *node = &k->g->node[i];
	const struct ap_task_operand *in = &k->in[i][x];

	return (struct sharing){.row = node->bound.row, .tensor = like[node->in[x]], .operand = x,
		.recompute_set = k->task[i].recompute_set, .stage = node->stage,
		.segment = node->segment, .dtype = (uint8_t)node->bound.in[x].dtype,
		.batch = in->batch, .grad = in->grad, .kept = in->kept, .again = in->again,
		.cast = in->cast, .float8 = in->float8_only};
}

struct view { /* what equal views of one tensor have in common; compared by its bytes */
	struct sharing in;
	int64_t dim[AP_MAX_RANK];
	uint64_t rank, batch;
};

/* Finds equal views; like: the first tensor that holds what each one does, itself or the result of one. */
static void find_likes(struct ap_ctx *ctx, const struct filling *k, ap_id *like)
{
	struct ap_map *seen = ap_map_create(ctx->scratch);
	AP_VEC(ap_id) first = {0};

	for (ap_id t = 0; t < k->g->ntensor; t++)
		like[t] = t;
	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *node = &k->g->node[i];
		const struct ap_tensor *t;
		struct view key;
		bool fresh;
		ap_id id;

		if (!ap_op_is_view(node->bound.row) || node->bound.nin != 1 || node->bound.nout != 1 ||
			node->once || k->in[i][0].kind != AP_TENSOR_ACT || k->in[i][0].returns)
			continue;
		t = &k->g->tensor[node->out[0]];
		memset(&key, 0, sizeof key);
		key.in = sharing_of(k, like, i, 0);
		key.rank = t->shape.rank;
		key.batch = t->batch;
		memcpy(key.dim, t->shape.dim, t->shape.rank * sizeof *key.dim);
		id = ap_map_put(seen, &key, sizeof key, &fresh);
		if (fresh)
			AP_PUSH(ctx->scratch, first, i);
		k->task[i].like = first.v[id];
		like[node->out[0]] = k->g->node[first.v[id]].out[0];
	}
}

/* Finds sharers of activations that a pass over a micro-batch reads. */
static void find_sharers(struct ap_ctx *ctx, const struct filling *k)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	ap_id *like = AP_NEW_N(ctx->scratch, ap_id, k->g->ntensor);
	struct ap_map *seen = ap_map_create(ctx->scratch);
	struct {
		struct ap_task_operand *in;
		ap_id id;
	} *found;
	struct several {
		ap_id first, tensor; /* the first node, and what it reads */
		uint32_t n;
		bool apart;
	};
	uint32_t *uses = AP_NEW_N(ctx->scratch, uint32_t, k->g->ntensor); /* of all tensors alike */
	AP_VEC(struct several) groups = {0};
	size_t n = 0, operands = 0;

	find_likes(ctx, k, like);
	for (ap_id t = 0; t < k->g->ntensor; t++)
		uses[like[t]] += k->g->tensor[t].nuse;
	for (ap_id i = 0; i < k->g->nnode; i++)
		operands += k->g->node[i].bound.nin;
	found = ap_arena_alloc_raw(ctx->scratch, operands + 1, sizeof *found);
	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *node = &k->g->node[i];

		for (uint16_t x = 0; x < node->bound.nin; x++) {
			struct ap_task_operand *in = &k->in[i][x];
			struct sharing key;
			bool fresh;
			ap_id id;

			if (in->kind != AP_TENSOR_ACT || node->once || node->peer >= 0 || in->returns ||
				uses[like[node->in[x]]] < 2)
				continue;
			key = sharing_of(k, like, i, x);
			id = ap_map_put(seen, &key, sizeof key, &fresh);
			if (fresh) {
				struct several of = {i, node->in[x], 0, false};

				AP_PUSH(ctx->scratch, groups, of);
			}
			groups.v[id].n++;
			groups.v[id].apart |= groups.v[id].tensor != node->in[x];
			found[n].in = in;
			found[n++].id = id;
		}
	}
	for (size_t j = 0; j < n; j++) {
		const struct several *of = &groups.v[found[j].id];

		if (of->n == 1)
			continue;
		found[j].in->sharers = of->n < UINT16_MAX ? (uint16_t)of->n : UINT16_MAX;
		found[j].in->sharer = of->first;
		found[j].in->apart = of->apart;
	}
	ap_arena_release(ctx->scratch, mark);
}

/* Marks what lies between an operand and its producer, with the views in between. */
static void fuse(const struct filling *k, ap_id node, uint16_t operand, enum ap_fused how)
{
	for (;;) {
		const struct ap_tensor *t = &k->g->tensor[k->g->node[node].in[operand]];

		k->in[node][operand].fused = (uint8_t)how;
		if (!ap_op_is_view(k->g->node[t->producer].bound.row))
			return;
		node = t->producer;
		operand = 0;
	}
}

/* Products that run beside what gathers their first operand, an activation, and what deals its gradient. */
static void find_beside(const struct filling *k)
{
	for (ap_id i = 0; i < k->g->nnode; i++) {
		const struct ap_node *n = &k->g->node[i];

		if (ap_op_is_product(n->bound.row) && n->bound.nin == 2 && !n->measured)
			k->in[i][0].beside = k->g->tensor[n->in[0]].kind == AP_TENSOR_ACT;
	}
	for (ap_id i = k->g->nnode; i-- > 0;) { /* views: as all who read what they show */
		const struct ap_node *n = &k->g->node[i];
		const struct ap_tensor *t = n->bound.nout > 0 ? &k->g->tensor[n->out[0]] : NULL;
		bool all = t && t->nuse > 0;

		if (!ap_op_is_view(n->bound.row) || k->g->tensor[n->in[0]].kind != AP_TENSOR_ACT)
			continue;
		for (uint32_t u = 0; all && u < t->nuse; u++)
			all = k->in[t->use[u].node][t->use[u].operand].beside;
		k->in[i][0].beside = all;
	}
}

/* Operators that the software computes in one kernel. */
static void find_chains(struct ap_ctx *ctx, const struct filling *k, uint32_t chains)
{
	const struct ap_chain_node *of = ap_chain_nodes(ctx, k->g);

	for (ap_id i = 0; i < k->g->nnode; i++)
		for (uint16_t x = 0; x < k->g->node[i].bound.nin; x++) {
			ap_id from;
			enum ap_chain_kind kind = ap_op_is_view(k->g->node[i].bound.row) ? AP_CHAIN_NONE
				: ap_chain_between(k->g, of, chains, i, x, &from);
			struct ap_task_result *r;

			if (kind == AP_CHAIN_NONE)
				continue;
			r = &k->out[from][0];
			if (kind == AP_CHAIN_STRIDED) {
				k->task[from].strided = true;
				fuse(k, i, x, AP_FUSED_ORDER);
				continue;
			}
			r->fused = !r->kept && !r->again && !r->needed && !r->twice;
			fuse(k, i, x, r->fused ? AP_FUSED_WHOLE : AP_FUSED_READ);
			k->task[i].joins = true;
		}
}

/* Products that the software makes one of. */
static void find_products(struct ap_ctx *ctx, const struct filling *k)
{
	const double *part = ap_chain_products(ctx, k->g);

	for (ap_id i = 0; i < k->g->nnode; i++)
		k->task[i].part = part[i];
}

void ap_tasks_make(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step,
	const struct ap_task **out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_again *again = AP_NEW_N(ctx->scratch, struct ap_again, g->nnode);
	struct filling k = {.g = g, .again = again, .dealt = ap_dealt_params(ctx, g, step)};

	k.reader = ap_arena_alloc_raw(ctx->scratch, g->ntensor, sizeof *k.reader);
	k.first = ap_arena_alloc_raw(ctx->scratch, g->ntensor, sizeof *k.first);
	memset(k.reader, 0xff, g->ntensor * sizeof *k.reader);
	k.task = AP_NEW_N(ctx->arena, struct ap_task, g->nnode);
	k.in = AP_NEW_N(ctx->scratch, struct ap_task_operand *, g->nnode);
	k.out = AP_NEW_N(ctx->scratch, struct ap_task_result *, g->nnode);
	ap_recompute_mark(ctx, g, step, again);
	count_exchanged(&k, step);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_bound *b = &g->node[i].bound;

		k.in[i] = AP_NEW_N(ctx->arena, struct ap_task_operand, b->nin);
		k.out[i] = AP_NEW_N(ctx->arena, struct ap_task_result, b->nout);
		k.task[i].in = k.in[i];
		k.task[i].out = k.out[i];
		k.task[i].keep_comm = again[i].keep_comm;
		k.task[i].like = AP_NONE;
		fill_task(&k, step, i);
	}
	/* how inputs arrive, if given */
	for (uint32_t i = 0; i < step->narrival && i < g->ninput; i++) {
		const struct ap_tensor *t = &g->tensor[g->input[i]];

		for (uint32_t u = 0; u < t->nuse; u++)
			k.in[t->use[u].node][t->use[u].operand].arrival = step->arrival[i];
	}
	find_float8(ctx, &k, step);
	keep(ctx, g, step->executor == AP_EXECUTOR_MINDSPORE, again, k.task, k.in, k.out);
	if (step->executor == AP_EXECUTOR_GENERIC)
		find_sharers(ctx, &k);
	if (step->product_overlap)
		find_beside(&k);
	if (step->software && step->software->chains)
		find_chains(ctx, &k, step->software->chains);
	if (step->software && step->software->chains >> AP_CHAIN_PRODUCTS & 1)
		find_products(ctx, &k);
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &k.g->node[i];
		struct ap_task *t = &k.task[i];
		int64_t late = ap_step_late(step, n->stage > 0 ? n->stage : 0, n->segment > 0 ?
			n->segment : 0);

		/* work of a pass for weights */
		t->weight_share = step->pipe && step->pipe->late && !n->once ? weight_share(&k, i) : 0;
		t->waits = t->weight_share > 0;
		t->late = t->waits ? late : 0;
	}
	ap_arena_release(ctx->scratch, mark);
	*out = k.task;
}

const char *ap_task_tie(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node)
{
	const struct ap_node *node_of = &g->node[node];
	uint32_t most = (uint32_t)node_of->bound.nin + node_of->bound.nout; /* number of vectors */
	int32_t ones[AP_MAX_FACTOR], (*cut)[AP_MAX_RANK];
	uint8_t *rank;
	struct ap_placement p;
	struct ap_str s;
	uint32_t n;

	if (node_of->param == AP_NONE)
		return NULL;
	cut = ap_arena_alloc_raw(ctx->scratch, most, sizeof *cut);
	rank = ap_arena_alloc_raw(ctx->scratch, most, sizeof *rank);
	for (int f = 0; f < AP_MAX_FACTOR; f++)
		ones[f] = 1;
	ap_placement_make(&node_of->bound, ones, 1, &p);
	n = ap_space_to_strategy(&p, rank, cut, most);
	ap_str_init(&s, ctx->scratch);
	for (uint32_t i = 0; i < n && i < most; i++)
		ap_str_addc(&s, (char)('0' + rank[i]));
	ap_str_addc(&s, ' ');
	ap_str_add(&s, node_of->type);
	ap_str_addc(&s, ' ');
	ap_str_add(&s, g->tensor[node_of->param].name);
	return s.s;
}

/* Write position in a signature, which has room for everything. */
struct signing {
	char *at;
};

#define SIGN(s, x) ((s)->at = (char *)memcpy((s)->at, &(x), sizeof(x)) + sizeof(x))

static void sign_bytes(struct signing *s, const void *p, size_t len)
{
	memcpy(s->at, p, len);
	s->at += len;
}

static void sign_operand(struct signing *s, const struct ap_operand *o)
{
	const uint8_t head[] = {o->rank, (uint8_t)o->dtype, o->saved, o->differentiable, o->silent};

	SIGN(s, head);
	for (int d = 0; d < o->rank; d++) {
		SIGN(s, o->size[d]);
		SIGN(s, o->dim[d].n);
		sign_bytes(s, o->dim[d].factor, o->dim[d].n);
	}
}

static void sign_window(struct signing *s, const struct ap_window *w)
{
	const int64_t all[] = {w->operand, w->dim, w->factor, w->inside, w->transposed, w->size,
		w->count, w->kernel, w->stride, w->before, w->after};

	SIGN(s, all);
}

static void sign_use(struct signing *s, const struct ap_task *t)
{
	for (int i = 0; i < t->bound->nin; i++) {
		const struct ap_task_operand *o = &t->in[i];
		const uint8_t flags[] = {(uint8_t)o->kind, o->grad, o->owner, o->trainable,
			o->shardable, o->stays, o->regather, o->returns, o->alone, o->updated,
			o->unfused, o->kept, o->again, (uint8_t)o->twin, (uint8_t)(o->twin >> 8), o->batch,
			o->cast, o->uneven, (uint8_t)ap_task_stored(t, i), o->float8_only, o->float8_copy,
			o->fused, o->beside};

		SIGN(s, flags);
		SIGN(s, o->share);
		SIGN(s, o->gradients_bytes);
		SIGN(s, o->weights_bytes);
		SIGN(s, o->float8_readers);
	}
	for (int r = 0; r < t->bound->nout; r++) {
		const uint8_t flags[] = {t->out[r].kept, t->out[r].lent, t->out[r].sliced, t->out[r].again,
			t->out[r].needed, t->out[r].twice, t->out[r].grad, t->out[r].batch,
			t->out[r].uneven, t->out[r].float8, t->out[r].fused};

		SIGN(s, flags);
	}
}

const void *ap_task_signature(struct ap_ctx *ctx, const struct ap_task *t, size_t *len)
{
	const struct ap_bound *b = t->bound;
	size_t most = sizeof *t + 2 * sizeof *b +
		(b->nin + b->nout) * (sizeof *b->in + sizeof *t->in + sizeof *t->out);
	char *signature = ap_arena_alloc_raw(ctx->scratch, most, 1);
	struct signing s = {signature};

	SIGN(&s, b->row);
	SIGN(&s, b->nfactor);
	for (int f = 0; f < b->nfactor; f++) {
		SIGN(&s, b->factor[f].flags);
		SIGN(&s, b->factor[f].size);
	}
	SIGN(&s, b->nwindow);
	for (int w = 0; w < b->nwindow; w++)
		sign_window(&s, &b->window[w]);
	sign_bytes(&s, b->dev, b->ndev);
	SIGN(&s, b->left);
	SIGN(&s, b->dealt);
	SIGN(&s, b->rounds);
	SIGN(&s, b->swaps);
	SIGN(&s, b->heads);
	SIGN(&s, b->round);
	SIGN(&s, b->even);
	SIGN(&s, b->dealt_rows);
	SIGN(&s, b->dealt_beside);
	SIGN(&s, b->deal_asked);
	SIGN(&s, b->flops);
	SIGN(&s, b->nin);
	SIGN(&s, b->nout);
	for (int i = 0; i < b->nin; i++)
		sign_operand(&s, &b->in[i]);
	for (int o = 0; o < b->nout; o++)
		sign_operand(&s, &b->out[o]);
	SIGN(&s, t->backward);
	SIGN(&s, t->once);
	SIGN(&s, t->float8);
	SIGN(&s, t->joins);
	SIGN(&s, t->part);
	SIGN(&s, t->strided);
	SIGN(&s, t->stage);
	SIGN(&s, t->peer);
	SIGN(&s, t->block);
	SIGN(&s, t->across);
	SIGN(&s, t->in_flight);
	SIGN(&s, t->waits);
	SIGN(&s, t->late);
	SIGN(&s, t->recomputed);
	SIGN(&s, t->keep_comm);
	SIGN(&s, t->recompute_sets);
	SIGN(&s, t->cross_batch);
	SIGN(&s, t->imbalance);
	SIGN(&s, t->measured);
	SIGN(&s, t->measured_forward_s);
	SIGN(&s, t->measured_backward_s);
	sign_use(&s, t);
	for (int i = 0; i < t->bound->nin; i++)
		if (t->in[i].kind == AP_TENSOR_INPUT)
			SIGN(&s, t->in[i].arrival);
	*len = (size_t)(s.at - signature);
	return signature;
}

const uint32_t *ap_task_classes(struct ap_ctx *ctx, const struct ap_task *task, uint32_t n)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	uint32_t *class_of = AP_NEW_N(ctx->arena, uint32_t, n);
	struct ap_map *seen = ap_map_create(ctx->arena);

	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		const void *signature = ap_task_signature(ctx, &task[i], &len);

		class_of[i] = ap_map_put(seen, signature, len, NULL);
		ap_arena_release(ctx->scratch, mark);
	}
	return class_of;
}

static int64_t count_trained(const struct ap_graph *g)
{
	int64_t n = 0;

	for (ap_id t = 0; t < g->ntensor; t++)
		n += is_trained(&g->tensor[t]);
	return n;
}

const char *ap_dealt_refuses(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndev,
	const struct ap_optimizer *optimizer)
{
	int64_t n = count_trained(g);

	if (!optimizer || !optimizer->deals_whole)
		return "only lamb and adam_weight_decay are dealt to devices in data_parallel";
	if (n <= ndev)
		return ap_arena_printf(ctx->arena, "to deal whole parameters to %" PRId64
			" devices takes more than %" PRId64 " of them, the graph trains %" PRId64,
			ndev, ndev, n);
	return NULL;
}

const bool *ap_dealt_params(struct ap_ctx *ctx, const struct ap_graph *g, const struct ap_step *step)
{
	int64_t ndev = step->deal_whole, n = 0, most = 0;
	int64_t *bytes;
	bool *in;

	if (ndev == 0 || !step->training)
		return NULL;
	bytes = AP_NEW_N(ctx->scratch, int64_t, (size_t)ndev);
	in = AP_NEW_N(ctx->scratch, bool, g->ntensor);
	for (ap_id t = 0; t < g->ntensor; t++)
		if (is_trained(&g->tensor[t]))
			bytes[n++ % ndev] += ap_tensor_bytes(&g->tensor[t]);
	for (int64_t d = 0; d < ndev; d++)
		most = bytes[d] > bytes[most] ? d : most;
	n = 0;
	for (ap_id t = 0; t < g->ntensor; t++)
		if (is_trained(&g->tensor[t]))
			in[t] = n++ % ndev == most;
	return in;
}
