/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/notes.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "cost/comms.h"
#include "cost/opcost.h"
#include "graph/graph.h"
#include "hw/group.h"
#include "rule/attr.h"
#include "rule/op.h"

#define NOTE(ctx, check, ...) \
	((void)ap_diag_add((ctx)->diag, AP_NOTE, AP_OK, NULL, check, __VA_ARGS__))

struct tally { /* of trained parameters */
	uint32_t all, dealt;
	uint32_t single; /* no two devices hold the same slice */
	uint32_t small, kept, uneven;
	uint32_t exchanged, narrow; /* exchanged gradients, and those of 16 bits among them */
	uint32_t layerwise;
};

static const struct ap_task_operand *operand_of(const struct ap_plan *p, const struct ap_plan_param *param)
{
	return &p->task[param->node].in[param->operand];
}

static void count_shards(const struct ap_plan *p, const struct ap_plan_param *param, struct tally *t)
{
	const struct ap_tensor *tensor = &p->graph->tensor[param->tensor];

	t->dealt += param->shard.shards > 1;
	if (param->shard.shards > 1)
		return;
	if (ap_axes_size(&param->shard.replicas) == 1)
		t->single++;
	else if (!tensor->parallel_optimizer || operand_of(p, param)->alone)
		t->kept++;
	else if (ap_tensor_bytes(tensor) < p->step->shard_threshold_bytes)
		t->small++;
	else
		t->uneven++;
}

static struct tally count(const struct ap_plan *p)
{
	struct tally t = {0};

	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct ap_plan_param *param = &p->param[i];
		const struct ap_tensor *tensor = &p->graph->tensor[param->tensor];
		bool exchanged = param->nexchange > 0;

		t.layerwise += tensor->layerwise_parallel;
		if (!operand_of(p, param)->trainable)
			continue;
		t.all++;
		t.exchanged += exchanged;
		t.narrow += exchanged && ap_dtype_is_narrow(tensor->shape.dtype);
		count_shards(p, param, &t);
	}
	return t;
}

static void add_reason(struct ap_str *s, uint32_t n, const char *one, const char *many)
{
	if (n)
		ap_str_addf(s, "%s%" PRIu32 " %s", s->len ? ", " : "", n, n == 1 ? one : many);
}

struct dealing {
	uint32_t n; /* trained parameters that are dealt */
	int64_t bytes; /* of them that a device does not hold */
};

/* What optimizer groups of `size` devices would deal, with the plan's cuts. */
static struct dealing dealt_by(const struct ap_plan *p, int64_t size)
{
	struct ap_step step = *p->step;
	struct dealing d = {0};

	step.shard_size = size;
	for (uint32_t i = 0; i < p->nparam; i++) {
		const struct ap_plan_param *param = &p->param[i];
		const struct ap_tensor *tensor = &p->graph->tensor[param->tensor];
		struct ap_opt_shard s;

		ap_opt_shard_make(&p->task[param->node], (int)param->operand, &p->op[param->node].place,
			&step, &s);
		if (!operand_of(p, param)->trainable || s.shards == 1)
			continue;
		d.n++;
		d.bytes += ap_tensor_bytes(tensor) - ap_tensor_bytes(tensor) / s.shards;
	}
	return d;
}

static void note_shards(struct ap_ctx *ctx, const struct ap_plan *p, const struct tally *t)
{
	struct ap_str why;
	struct dealing most = {0};
	int64_t best = 0;

	ap_str_init(&why, ctx->arena);
	add_reason(&why, t->single, "lies on one device alone, slice by slice",
		"lie on one device alone, slice by slice");
	if (t->small) {
		add_reason(&why, t->small, "has", "have");
		ap_str_addf(&why, " fewer than %" PRId64 " bytes, the threshold",
			p->step->shard_threshold_bytes);
	}
	add_reason(&why, t->kept, "has a flag that keeps it whole", "have a flag that keeps them whole");
	add_reason(&why, t->uneven, "has rows that do not divide", "have rows that do not divide");
	/* The smallest size of groups that would save most. */
	for (int64_t size = 2; size <= p->machine->ndev; size++) {
		struct dealing d = p->machine->ndev % size ? most : dealt_by(p, size);

		if (d.bytes <= most.bytes)
			continue;
		most = d;
		best = size;
	}
	if (best)
		ap_str_addf(&why, "; --optimizer-weight-shard-size %" PRId64 " would deal %" PRIu32
			" of them", best, most.n);
	NOTE(ctx, "optimizer-shard", "enable_parallel_optimizer deals none of %" PRIu32 " parameters: %s",
		t->all, why.s);
}

/* The most gradients of a stage that an AllReduce sums. */
static int64_t most_allreduces(struct ap_ctx *ctx, const struct ap_plan *p)
{
	int64_t *of = AP_NEW_N(ctx->scratch, int64_t, p->nstage), most = 0;

	for (uint32_t b = 0; b < p->nbucket; b++) {
		const struct ap_bucket *bucket = &p->bucket[b];

		if (bucket->kind != AP_COLL_ALLREDUCE)
			continue;
		of[bucket->stage] += bucket->n;
		most = of[bucket->stage] > most ? of[bucket->stage] : most;
	}
	return most;
}

static void note_positions(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_fusion *f = &p->step->allreduce;
	int64_t most = most_allreduces(ctx, p);

	for (uint32_t i = 0; i < f->nindex; i++)
		if (f->index[i] >= most) {
			NOTE(ctx, "fusion", "position %" PRId64 " of the fusion of AllReduces parts nothing: "
				"%" PRId64 " gradients are summed by them", f->index[i], most);
			return;
		}
}

static void note_training(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_step *step)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct tally t = count(p);

	if (step->optimizer_sharding && t.all && !t.dealt)
		note_shards(ctx, p, &t);
	if (step->gradients_mean && !t.exchanged)
		NOTE(ctx, "gradients", "gradients_mean is without effect: no gradient is exchanged");
	if (!step->gradient_fp32_sync && !t.narrow)
		NOTE(ctx, "gradients", "gradient_fp32_sync is without effect: no gradient of 16 bits is "
			"exchanged");
	if (step->exchange_behind && !t.exchanged)
		NOTE(ctx, "gradients", "overlap_grad_reduce is without effect: no gradient is exchanged");
	note_positions(ctx, p);
	if (t.layerwise && !step->layerwise)
		NOTE(ctx, "layerwise", "layerwise_parallel of %" PRIu32 " parameter%s is without effect: "
			"only hybrid_parallel reads it", t.layerwise, t.layerwise == 1 ? "" : "s");
	ap_arena_release(ctx->scratch, mark);
}

void ap_plan_notes(struct ap_ctx *ctx, const struct ap_plan *p)
{
	const struct ap_step *step = p->step;
	const struct ap_graph *g = p->graph;

	/* Any primitive may have cross_batch; only for reductions it makes a difference. */
	for (ap_id i = 0; i < g->nnode; i++) {
		const struct ap_node *n = &g->node[i];
		const struct ap_where where = {.file = g->file, .oper = n->name};

		if ((n->cross_batch || ap_attr_bool(&n->attrs, "cross_batch", false)) &&
			!ap_op_takes_cross_batch(n->bound.row))
			(void)ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &where, "cross-batch",
				"cross_batch is without effect: %s is no reduction", n->bound.row->name);
	}
	if (step->training)
		note_training(ctx, p, step);
}
