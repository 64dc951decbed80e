/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/pass.h"

#include "base/arena.h"
#include "plan/blocks.h"
#include "plan/terms.h"

struct running {
	struct ap_pass_maker *m;
	struct ap_pass_run *run;
	int32_t part;
	bool last, least, apart, beside;
	double start; /* of the block, from which times below count, all but that of gradients */
	double compute, comm; /* when each stream is free */
	double host; /* when the host has started the kernels so far */
	double awaited; /* when comm is free but for reductions of dealt gradients behind */
	double gradient; /* the same, from the start of the pass */
	double recorded; /* end of the last event of comm, from the start of the pass */
	int64_t held; /* beyond what was held at the start */
	struct ap_pass_block block; /* until it ends, bytes are those of the run */
};

static inline double later(double a, double b)
{
	return a > b ? a : b;
}

static double since(const struct running *r, const struct ap_pass_time *t)
{
	return t->when == r->m->when ? t->at_s : 0;
}

static struct ap_pass_time at_time(const struct running *r, double at)
{
	return (struct ap_pass_time){at, r->m->when};
}

static void record(struct running *r, enum ap_stream stream, enum ap_event_kind kind, uint32_t index,
	uint32_t sub, double start, double end)
{
	struct ap_pass_event e = {stream, kind, index, sub, r->start + start, r->start + end};

	if (!r->m->record)
		return;
	if (stream == AP_STREAM_COMMUNICATION) { /* what runs on from block to block is rounded in each */
		e.start_s = later(e.start_s, r->recorded);
		e.end_s = r->recorded = later(e.end_s, e.start_s);
	}
	AP_PUSH(r->m->ctx->scratch, r->run->events, e);
}

static void sample(struct running *r, double at, int64_t bytes)
{
	struct ap_pass_sample s = {r->start + at, bytes};

	if (bytes > r->block.most_bytes)
		r->block.most_bytes = bytes;
	if (r->m->record)
		AP_PUSH(r->m->ctx->scratch, r->run->samples, s);
}

/* Seconds of a kernel in a pass, on the device and for the host to start it. */
struct work {
	double device_s, host_s;
};

/* Runs a kernel, slowed while gradients are exchanged, once the host has started it. It allocates at its
 * start, with its temporaries, and frees at its end. */
static double kernel(struct running *r, enum ap_event_kind kind, ap_id node, struct work w, double from,
	int64_t allocated, int64_t freed)
{
	double free_at = later(r->compute, from), work = w.device_s, start, beside, end;

	r->host += w.host_s;
	start = later(free_at, r->host);
	beside = later(0, r->gradient - r->start - start);
	if (beside > work * r->m->slowdown)
		beside = work * r->m->slowdown;
	end = start + beside + (work - beside / r->m->slowdown);
	r->compute = end;
	r->run->compute_s += end - free_at;
	record(r, AP_STREAM_COMPUTE, kind, node, 0, start, end);
	r->held += allocated;
	sample(r, start, r->held + r->m->p->op[node].cost.temporary_bytes);
	r->held -= freed;
	sample(r, end, r->held);
	return end;
}

static double collective(struct running *r, enum ap_event_kind kind, uint32_t index, uint32_t sub,
	double time_s, double from, bool awaited)
{
	double start = later(r->comm, from);

	r->comm = start + time_s;
	r->awaited = awaited ? r->comm : r->awaited;
	r->run->communication_s += time_s;
	r->block.collectives_s += time_s;
	record(r, AP_STREAM_COMMUNICATION, kind, index, sub, start, r->comm);
	return r->comm;
}

static double some_collectives(struct running *r, ap_id node, enum ap_phase phase, bool of_results,
	double from)
{
	const struct ap_plan_op *op = &r->m->p->op[node];

	for (uint32_t i = 0; i < op->ncomm; i++) {
		const struct ap_comm *c = &op->comm[i].comm;

		if (c->phase == phase && c->kind != AP_COLL_SEND && (c->result >= 0) == of_results)
			from = collective(r, AP_EVENT_COMM, node, i, op->comm[i].time_s, from, true);
	}
	return from;
}

/* Runs the node's collectives of a phase, of results or of operands, in sequence. Few nodes have any. */
static inline double collectives(struct running *r, ap_id node, enum ap_phase phase, bool of_results,
	double from)
{
	return r->m->p->op[node].ncomm > 0 ? some_collectives(r, node, phase, of_results, from) : from;
}

enum way { THERE, BACK, AGAIN };

/* Seconds for one micro-batch. backward_s includes the repeated forward move, AGAIN. */
static double move_s(const struct running *r, const struct ap_plan_move *move, enum way way)
{
	const struct ap_move_cost *c = &move->cost;
	bool again = r->m->p->task[move->to].in[move->operand].again;

	switch (way) {
	case THERE:
		return c->forward_s * r->m->per_micro;
	case BACK:
		if (r->m->p->task[move->to].in[move->operand].returns) /* but for the way there again */
			return (again ? 0 : c->again_s) * r->m->per_micro;
		return (again ? c->backward_s - c->forward_s : c->backward_s) * r->m->per_micro;
	case AGAIN:
		break;
	}
	return again ? c->forward_s * r->m->per_micro : 0;
}

/* Runs the redistributions to operand i; a node's are in the order of operands. */
static double moves(struct running *r, ap_id node, uint32_t i, enum way way, double at)
{
	const struct ap_parts *x = r->m->x;
	uint32_t k = x->first_move[node], end = x->first_move[node + 1];

	for (uint32_t n = end - k; n > 8; n = end - k) { /* operands may be thousands */
		uint32_t mid = k + n / 2;

		if (x->p->move[mid].operand < i)
			k = mid + 1;
		else if (x->p->move[mid].operand > i)
			end = mid;
		else
			break;
	}
	while (k < end && x->p->move[k].operand < i)
		k++;
	for (; k < x->first_move[node + 1] && x->p->move[k].operand == i; k++) {
		double time_s = move_s(r, &x->p->move[k], way);

		if (x->p->move[k].sent)
			continue; /* between stages: not part of a pass */
		if (x->p->move[k].shares != AP_NONE) {
			at = way == BACK ? at : later(at, since(r, &r->m->copied[x->p->move[k].shares]));
			continue;
		}
		if (way == BACK && time_s <= 0 && r->m->p->task[node].in[i].returns)
			continue;
		if (way == BACK || x->p->move[k].nstep > 0) {
			bool hides = r->beside && ap_parts_moves_tokens(x->p->graph, node, i);

			at = collective(r, way == BACK ? AP_EVENT_MOVE_BACK : AP_EVENT_MOVE, k, 0,
				hides ? 0 : time_s, at, true);
			r->run->communication_s += hides ? time_s : 0;
		}
		if (way != BACK)
			r->m->copied[k] = at_time(r, at);
	}
	return at;
}

static void forward(struct running *r, ap_id node)
{
	const struct ap_node *n = &r->m->p->graph->node[node];
	const struct ap_op_cost *c = &r->m->p->op[node].cost;
	double at = 0;

	for (uint32_t i = 0; i < n->bound.nin; i++)
		at = later(at, moves(r, node, i, THERE, since(r, &r->m->ready[n->in[i]])));
	at = collectives(r, node, AP_PHASE_FORWARD, false, at);
	at = kernel(r, AP_EVENT_FORWARD, node, (struct work){c->forward_s * r->m->per_micro,
		c->forward_launch_s * r->m->per_micro}, at, r->m->live->kept[node], 0);
	at = collectives(r, node, AP_PHASE_FORWARD, true, at);
	for (uint32_t o = 0; o < n->bound.nout; o++)
		r->m->ready[n->out[o]] = at_time(r, at);
}

static struct ap_pass_time *again_at(const struct running *r, ap_id tensor)
{
	return &r->m->again[r->m->root[tensor]];
}

/* Recomputes what a set has of a node: redistributed operands, and results; none before `from`. */
static void again(struct running *r, ap_id node, double from)
{
	const struct ap_node *n = &r->m->p->graph->node[node];
	const struct ap_task *t = &r->m->p->task[node];
	const struct ap_op_cost *c = &r->m->p->op[node].cost;
	struct work work = {c->recompute_s * r->m->per_micro, c->recompute_launch_s * r->m->per_micro};
	double at = 0;

	for (uint32_t i = 0; i < n->bound.nin; i++) {
		struct ap_pass_time *ready = again_at(r, n->in[i]);

		if (t->in[i].again)
			*ready = at_time(r, moves(r, node, i, AGAIN, later(since(r, ready), from)));
		at = later(at, since(r, ready));
	}
	at = collectives(r, node, AP_PHASE_RECOMPUTE, false, at);
	if (work.device_s > 0)
		at = kernel(r, AP_EVENT_AGAIN, node, work, at, r->m->live->again[node], 0);
	else
		r->held += r->m->live->again[node];
	at = collectives(r, node, AP_PHASE_RECOMPUTE, true, at);
	for (uint32_t o = 0; o < n->bound.nout; o++)
		*again_at(r, n->out[o]) = at_time(r, at);
}

/* at: from the start of the pass. */
static void complete(struct running *r, uint32_t gradient, double at);

/* Runs a bucket whose gradients are all complete. */
static void launch(struct running *r, uint32_t bucket)
{
	struct ap_pass_maker *m = r->m;

	if (!m->p->step->exchange_behind)
		r->gradient = later(r->gradient, m->bucket_ready[bucket]) + m->buckets->v[bucket].time_s;
	AP_PUSH(m->ctx->scratch, m->launched, bucket);
	for (uint32_t k = m->bucket_first[bucket]; k < m->bucket_first[bucket + 1]; k++) {
		uint32_t next = m->bucket_gradient[k] + 1;

		if (next < m->x->first_gradient[m->p->graph->nnode] && m->x->gradient[next].chained)
			complete(r, next, r->gradient);
	}
}

static void complete(struct running *r, uint32_t gradient, double at)
{
	struct ap_pass_maker *m = r->m;
	uint32_t bucket = m->buckets->of[gradient];

	m->gradient_ready[gradient] = at;
	m->gradient_part[gradient] = r->part;
	if (m->bucket_part[bucket] != r->part)
		m->bucket_ready[bucket] = at;
	m->bucket_part[bucket] = r->part;
	m->bucket_ready[bucket] = later(m->bucket_ready[bucket], at);
	if (--m->bucket_left[bucket] == 0)
		launch(r, bucket);
}

static void exchange(struct running *r, ap_id node, double at)
{
	const struct ap_parts *x = r->m->x;

	if (!r->last && !r->least) {
		const struct ap_plan_op *op = &r->m->p->op[node];

		/* Dealt gradients are reduced with every micro-batch. */
		for (uint32_t i = 0; i < op->ncomm; i++)
			if (op->comm[i].comm.each)
				collective(r, AP_EVENT_COMM, node, i, op->comm[i].time_s, at, false);
		return;
	}
	for (uint32_t i = x->first_gradient[node]; i < x->first_gradient[node + 1]; i++)
		if (!x->gradient[i].chained)
			complete(r, i, r->start + at);
}

/* When all inputs of the node's backward pass are ready: gradients of its results, and recomputed
 * tensors. */
static double backward_ready(const struct running *r, ap_id node)
{
	const struct ap_node *n = &r->m->p->graph->node[node];
	bool some = r->m->live->nset > 0;
	double at = 0;

	for (uint32_t o = 0; o < n->bound.nout; o++)
		at = later(at, since(r, &r->m->ready[n->out[o]]));
	for (uint32_t o = 0; some && o < n->bound.nout; o++)
		at = later(at, since(r, again_at(r, n->out[o])));
	for (uint32_t i = 0; some && i < n->bound.nin; i++)
		if (r->m->p->task[node].in[i].kept)
			at = later(at, since(r, again_at(r, n->in[i])));
	return at;
}

/* A share of the gradient kernels for one micro-batch. */
static struct work backward_work(const struct running *r, ap_id node, double share)
{
	const struct ap_op_cost *c = &r->m->p->op[node].cost;

	return (struct work){(c->backward_s - c->recompute_s) * r->m->per_micro * share,
		(c->backward_launch_s - c->recompute_launch_s) * r->m->per_micro * share};
}

/* When a set may begin at a node's backward pass. What is only gathered again follows the gradient, as a
 * graph's executor orders what it runs again; what is computed again waits for the processor. */
static double set_from(const struct running *r, uint32_t set, ap_id node)
{
	const struct ap_node *n = &r->m->p->graph->node[node];
	double from = 0;

	for (uint32_t k = r->m->live->set_first[set]; k < r->m->live->set_first[set + 1]; k++)
		if (r->m->p->task[r->m->live->set_node[k]].recomputed)
			return 0;
	for (uint32_t o = 0; o < n->bound.nout; o++)
		from = later(from, since(r, &r->m->ready[n->out[o]]));
	return from;
}

static void backward(struct running *r, ap_id node)
{
	const struct ap_live *live = r->m->live;

	for (uint32_t s = live->sets_at[node]; s != AP_NONE; s = live->next_set[s]) {
		double from = set_from(r, s, node);

		for (uint32_t k = live->set_first[s]; k < live->set_first[s + 1]; k++)
			again(r, live->set_node[k], from);
	}
	if (r->m->p->task[node].backward) {
		const struct ap_node *n = &r->m->p->graph->node[node];
		const struct ap_task *t = &r->m->p->task[node];
		double share = r->m->live->weight_share[node];
		double at = backward_ready(r, node);
		int64_t freed = r->m->live->freed[node] - r->m->live->late[node];

		if (t->recompute_set == AP_NONE) /* weights gathered anew */
			at = collectives(r, node, AP_PHASE_RECOMPUTE, false, at);
		at = collectives(r, node, AP_PHASE_BACKWARD, true, at);
		if (share < 1)
			at = kernel(r, AP_EVENT_BACKWARD, node, backward_work(r, node, 1 - share), at, 0,
				freed);
		else
			r->held -= freed;
		if (!r->m->splits)
			exchange(r, node, at);
		at = collectives(r, node, AP_PHASE_BACKWARD, false, at);
		for (uint32_t i = 0; i < n->bound.nin; i++)
			if (t->in[i].grad && t->in[i].kind == AP_TENSOR_ACT)
				r->m->ready[n->in[i]] = at_time(r, later(since(r, &r->m->ready[n->in[i]]),
					moves(r, node, i, BACK, at)));
	} else {
		r->held -= live->freed[node];
	}
}

/* A node in the pass for weights. The exchange waits for all kernels so far, as a node without one
 * here may share its parameter with a node that has one. */
static void weights(struct running *r, ap_id node)
{
	double share = r->m->live->weight_share[node];

	if (share > 0)
		kernel(r, AP_EVENT_WEIGHT, node, backward_work(r, node, share), 0, 0,
			r->m->live->freed_late[node] + r->m->live->late[node]);
	exchange(r, node, r->compute);
}

static void begin(struct running *r, uint32_t block)
{
	r->m->when++;
	r->gradient = r->least ? r->start : r->gradient;
	r->block = (struct ap_pass_block){.block = block, .most_bytes = r->held, .net_bytes = r->held};
}

/* The streams meet. last: nothing is left for the next block. */
static void end(struct running *r, bool last)
{
	struct ap_pass_run *run = r->run;
	int64_t before = r->block.net_bytes;

	r->block.own_s = later(r->compute, r->awaited);
	r->block.left_s = later(0, r->comm - r->block.own_s);
	r->block.span_s = last ? later(r->compute, r->comm) : r->block.own_s;
	if (r->block.most_bytes > run->most_bytes)
		run->most_bytes = r->block.most_bytes;
	r->block.most_bytes -= before;
	r->block.net_bytes = r->held - before;
	AP_PUSH(r->m->ctx->scratch, run->blocks, r->block);
	r->start += r->block.span_s;
	r->comm = r->apart ? 0 : later(0, r->comm - r->block.span_s);
	r->compute = r->host = r->awaited = 0;
}

/* Calls run for the part's nodes that run with every micro-batch. */
static void each(struct running *r, bool back, void (*run)(struct running *r, ap_id node))
{
	const struct ap_parts *x = r->m->x;
	const uint32_t *of = x->p->blocks->of;
	uint32_t lo = x->first[r->part], n = x->first[r->part + 1] - lo, at = AP_NONE;

	for (uint32_t k = 0; k < n; k++) {
		ap_id node = x->node[lo + (back ? n - 1 - k : k)];

		if (r->m->p->task[node].once)
			continue;
		if (of[node] != at) {
			if (at != AP_NONE)
				end(r, false);
			at = of[node];
			begin(r, at);
		}
		run(r, node);
	}
	if (at != AP_NONE)
		end(r, true);
}

void ap_pass_make(struct ap_pass_maker *m, int32_t part, enum ap_pass pass, enum ap_pass_way way,
	struct ap_pass_run *out)
{
	bool last = way == AP_PASS_LAST;
	struct running r = {.m = m, .run = out, .part = part, .last = last && pass != AP_PASS_FORWARD,
		.least = way == AP_PASS_LEAST, .apart = way == AP_PASS_APART,
		.beside = way == AP_PASS_BESIDE};

	*out = (struct ap_pass_run){0};
	if (pass == AP_PASS_FORWARD)
		each(&r, false, forward);
	if (pass == AP_PASS_BACKWARD) {
		r.last = last && !m->splits;
		each(&r, true, backward);
		r.held -= m->live->rest[part];
		sample(&r, 0, r.held);
	}
	if (pass == AP_PASS_WEIGHT)
		each(&r, true, weights);
	out->span_s = r.start;
	out->net_bytes = r.held;
}

void ap_pass_maker_init(struct ap_ctx *ctx, const struct ap_parts *x, const struct ap_live *live,
	const struct ap_buckets *buckets, bool splits, bool record, struct ap_pass_maker *out)
{
	const struct ap_step *step = x->p->step;
	uint32_t ngradient = x->first_gradient[x->p->graph->nnode];
	uint32_t *first = AP_NEW_N(ctx->scratch, uint32_t, buckets->n + 1);
	uint32_t *list = AP_NEW_N(ctx->scratch, uint32_t, ngradient);

	*out = (struct ap_pass_maker){.ctx = ctx, .p = x->p, .x = x, .live = live,
		.buckets = buckets, .splits = splits, .record = record,
		.per_micro = 1.0 / (double)step->micro_batches,
		.slowdown = step->software ? step->software->overlap_slowdown : 1};
	out->ready = AP_NEW_N(ctx->scratch, struct ap_pass_time, x->p->graph->ntensor);
	out->again = AP_NEW_N(ctx->scratch, struct ap_pass_time, x->p->graph->ntensor);
	out->copied = AP_NEW_N(ctx->scratch, struct ap_pass_time, x->p->nmove);
	out->bucket_ready = AP_NEW_N(ctx->scratch, double, buckets->n);
	out->bucket_part = AP_NEW_N(ctx->scratch, int32_t, buckets->n);
	out->gradient_ready = AP_NEW_N(ctx->scratch, double, ngradient);
	out->gradient_part = AP_NEW_N(ctx->scratch, int32_t, ngradient);
	if (live->nset > 0) {
		ap_id *root = ap_arena_alloc_raw(ctx->scratch, x->p->graph->ntensor, sizeof *root);

		for (ap_id t = 0; t < x->p->graph->ntensor; t++)
			root[t] = ap_live_root(x->p->graph, t);
		out->root = root;
	}
	for (uint32_t b = 0; b < buckets->n; b++)
		out->bucket_part[b] = -1;
	for (uint32_t i = 0; i < ngradient; i++)
		out->gradient_part[i] = -1;
	/* Gradients of each bucket, as they become ready. */
	out->bucket_left = AP_NEW_N(ctx->scratch, uint32_t, buckets->n);
	for (uint32_t i = 0; i < ngradient; i++) {
		first[buckets->of[i] + 1]++;
		out->bucket_left[buckets->of[i]]++;
	}
	for (uint32_t b = 0; b < buckets->n; b++)
		first[b + 1] += first[b];
	for (uint32_t i = ngradient; i-- > 0;)
		list[first[buckets->of[i] + 1] - out->bucket_left[buckets->of[i]]--] = i;
	for (uint32_t b = 0; b < buckets->n; b++)
		out->bucket_left[b] = first[b + 1] > first[b] ? buckets->v[b].n : 0; /* none: it gathers */
	out->bucket_first = first;
	out->bucket_gradient = list;
}
