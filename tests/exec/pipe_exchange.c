/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of parameters: added up over micro-batches, exchanged in the plan's buckets. */
#include <inttypes.h>

#include "base/arena.h"
#include "hw/group.h"
#include "fault.h"
#include "pipe_parts.h"

/* Are gradients of the parameter dealt after every micro-batch? */
static bool is_dealt(const struct ex_pipe_run *p, const struct ex_program_param *param)
{
	return p->l->program.step.optimizer_level >= 2 && p->l->program.step.micro_batches > 1 &&
		param && param->shard.shards > 1;
}

/* How often a micro-batch's gradient counts. */
static int times(struct ex_pipe_run *p, int64_t b)
{
	int n = 1;

	if (b != EX_ONCE && p->w->fault && p->w->fault->count)
		p->w->faulted |= p->w->fault->count(p->w, b, &n);
	return n;
}

static void deal(struct ex_pipe_run *p, int64_t b, ap_id node, int i)
{
	ap_id tensor = p->g->node[node].in[i];
	const struct ap_use *owner = &p->g->tensor[tensor].owner;
	struct ex_graph_run *r = &p->batch[b == EX_ONCE ? 0 : b];
	struct ex_shards *own = &r->use_grad[node][i];
	const struct ex_program_param *param = ex_program_param_of(&p->l->program, tensor);
	bool mirrored = p->w->executor == AP_EXECUTOR_MINDSPORE;

	if (!own->of)
		return;
	if (is_dealt(p, param))
		ex_exchange_gradient_when(p->w, &p->l->program.oper[mirrored ? owner->node : node],
			mirrored ? (int)owner->operand : i, &param->shard, EX_EACH_TIME, own);
	for (int k = times(p, b); k-- > 0;)
		ex_graph_add(r, &p->total[node][i], own);
	own->of = NULL;
}

void ex_deal_returned(struct ex_pipe_run *p, ap_id node)
{
	for (int i = 0; i < p->g->node[node].bound.nin; i++)
		deal(p, EX_ONCE, node, i);
}

void ex_deal_gradients(struct ex_pipe_run *p, int64_t b, int32_t stage, int32_t segment)
{
	for (uint32_t i = 0; i < p->l->program.nparam; i++) {
		const struct ex_program_param *param = &p->l->program.param[i];

		if (ex_is_in(&p->g->node[p->g->tensor[param->tensor].owner.node], stage, segment))
			ex_graph_join(&p->batch[b], param);
	}
	for (ap_id node = 0; node < p->g->nnode; node++)
		for (int i = 0; ex_is_in(&p->g->node[node], stage, segment) &&
			i < p->g->node[node].bound.nin; i++)
			deal(p, b, node, i);
}

/* The largest of the sums that the users of a parameter have. */
static int64_t gradient_bytes(const struct ex_pipe_run *p, const struct ap_tensor *t)
{
	int64_t most = 0;

	for (uint32_t u = 0; u < t->nuse; u++) {
		const struct ex_shards *s = &p->total[t->use[u].node][t->use[u].operand];
		int64_t n = s->of ? ex_most_bytes(s) : 0;

		most = n > most ? n : most;
	}
	return most;
}

/* A weight as it lies there between its uses. */
static int64_t weight_bytes(struct ex_pipe_run *p, const struct ex_program_param *param)
{
	const struct ap_tensor *t = &p->g->tensor[param->tensor];
	bool anew = p->task[t->owner.node].in[t->owner.operand].regather;
	struct ex_shards s = ex_cut(p->w->ctx->scratch, &p->batch[0].truth->batch[0].value[param->tensor],
		&param->layout, p->w->ndev);

	if (p->w->executor == AP_EXECUTOR_MINDSPORE || anew)
		ex_keep_own_rows(p->w, &param->shard, &s);
	return ex_most_bytes(&s);
}

void ex_note_parameters(struct ex_pipe_run *p)
{
	for (uint32_t i = 0; i < p->l->program.nparam; i++) {
		const struct ex_program_param *param = &p->l->program.param[i];
		const struct ap_tensor *t = &p->g->tensor[param->tensor];
		struct ex_peaks *peak = &p->peak[p->g->node[t->owner.node].stage];

		p->w->ndev = ex_devices(&p->l->program, p->g->node[t->owner.node].stage);
		peak->weights += weight_bytes(p, param);
		peak->gradients += gradient_bytes(p, t);
	}
}

/* ---- buckets ---- */

struct bucket_left { /* what no collective has taken */
	bool **left; /* [nbucket][n] */
	int64_t *bytes;
};

static bool takes(const struct ex_pipe_run *p, struct bucket_left *left, ap_id node, const struct ap_comm *c)
{
	ap_id tensor = p->g->node[node].in[c->operand];

	for (uint32_t k = 0; k < p->l->nbucket; k++) {
		const struct ex_bucket *b = &p->l->bucket[k];

		for (uint32_t i = 0; i < b->n; i++)
			if (left->left[k][i] && b->tensor[i] == tensor && b->kind == c->kind &&
				b->stage == p->g->node[node].stage && ap_axes_equal(&b->axes, &c->axes)) {
				left->left[k][i] = false;
				left->bytes[k] -= c->bytes;
				return true;
			}
	}
	return false;
}

/* A collective that is in no bucket does not run. */
static void keep_bucketed(struct ex_pipe_run *p, struct bucket_left *left, ap_id node, struct ex_oper *o)
{
	struct ap_comm *comm = AP_NEW_N(p->w->ctx->scratch, struct ap_comm, o->ncomm);
	uint32_t n = 0;

	for (uint32_t i = 0; i < o->ncomm; i++) {
		bool alone = o->comm[i].phase != AP_PHASE_GRADIENT && o->comm[i].phase != AP_PHASE_OPTIMIZER;

		if (alone || takes(p, left, node, &o->comm[i]))
			comm[n++] = o->comm[i];
	}
	o->comm = comm;
	o->ncomm = n;
}

static void check_left(struct ex_pipe_run *p, const struct bucket_left *left)
{
	for (uint32_t k = 0; k < p->l->nbucket; k++) {
		for (uint32_t i = 0; i < p->l->bucket[k].n; i++)
			if (left->left[k][i])
				ex_trouble(p->w, "a bucket has \"%s\" too often",
					p->g->tensor[p->l->bucket[k].tensor[i]].name);
		if (left->bytes[k])
			ex_trouble(p->w, "a bucket of %" PRId64 " bytes has %" PRId64 " others",
				p->l->bucket[k].bytes, left->bytes[k]);
	}
}

void ex_take_buckets(struct ex_pipe_run *p)
{
	struct ap_arena *a = p->w->ctx->scratch;
	struct bucket_left left = {AP_NEW_N(a, bool *, p->l->nbucket), AP_NEW_N(a, int64_t, p->l->nbucket)};
	struct ex_oper *oper = ap_arena_memdup(a, p->l->program.oper, p->g->nnode * sizeof *oper);

	for (uint32_t k = 0; k < p->l->nbucket; k++) {
		left.bytes[k] = p->l->bucket[k].bytes;
		left.left[k] = AP_NEW_N(a, bool, p->l->bucket[k].n);
		for (uint32_t i = 0; i < p->l->bucket[k].n; i++)
			left.left[k][i] = true;
	}
	for (ap_id i = 0; i < p->g->nnode; i++)
		keep_bucketed(p, &left, i, &oper[i]);
	check_left(p, &left);
	p->bucketed = oper;
}

void ex_finish(struct ex_pipe_run *p)
{
	struct ex_program program = p->l->program;
	struct ex_graph_run r = p->batch[0];

	program.oper = ap_arena_memdup(p->w->ctx->scratch, p->bucketed, p->g->nnode * sizeof *program.oper);
	r.p = &program;
	r.batch = r.truth->nbatch;
	r.use_grad = p->total;
	r.dealt = program.step.optimizer_level >= 2 && program.step.micro_batches > 1;
	ex_graph_update(&r);
	p->batch[0].why = r.why;
}
