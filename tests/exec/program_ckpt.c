/* SPDX-License-Identifier: Apache-2.0 */
/* A program from a strategy checkpoint, and what its layout fields mean (formats 1.5). */
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "ckpt/ckpt.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_match.h"
#include "drive/drive.h"
#include "hw/group.h"
#include "plan/plan.h"
#include "rule/op.h"
#include "program_read.h"

static int64_t holders(const struct ap_shape *shape, const struct ap_layout *l, int64_t ndev, int64_t rank,
	int64_t out[EX_MAX_DEV])
{
	struct ex_box whole = ex_box_whole(shape), own = ex_box_slice(&whole, l, rank);
	int64_t n = 0;

	for (int64_t r = 0; r < ndev; r++) {
		struct ex_box b = ex_box_slice(&whole, l, r);

		if (memcmp(b.first, own.first, sizeof b.first) == 0)
			out[n++] = r;
	}
	return n;
}

/* Axes of ranks that ascend from rank 0: digits of a number, innermost first. False where they are
 * none. */
static bool axes_of(const int64_t *ranks, int64_t n, struct ap_axes *out)
{
	int64_t done = 1;

	*out = (struct ap_axes){0};
	while (done < n) {
		int64_t stride = ranks[done], size = 1;

		while (done * size < n && ranks[done * size] == stride * size)
			size++;
		if (n % (done * size) != 0)
			return false;
		ap_axes_add(out, (struct ap_axis){(int32_t)stride, (int32_t)size});
		done *= size;
	}
	return true;
}

/* Is the group of every rank, by the axes, the chunk of its holders that it is in? */
static bool are_chunks(const struct ap_shape *shape, const struct ap_layout *l, int64_t ndev,
	const struct ap_axes *axes)
{
	int64_t size = ap_axes_size(axes);

	for (int64_t r = 0; r < ndev; r++) {
		int64_t all[EX_MAX_DEV], group[EX_MAX_DEV], own = 0;

		holders(shape, l, ndev, r, all);
		while (all[own] != r)
			own++;
		ap_axes_group(axes, r, group);
		if (memcmp(group, all + own / size * size, (size_t)size * sizeof *group) != 0)
			return false;
	}
	return true;
}

bool ex_shard_of(const struct ap_shape *shape, const struct ap_layout *l, int64_t ndev, int64_t step,
	int64_t size, int64_t part, struct ap_opt_shard *out)
{
	int64_t all[EX_MAX_DEV], n = holders(shape, l, ndev, 0, all);
	int64_t group = size < 0 ? n : size;

	*out = (struct ap_opt_shard){.shards = 1, .weight_step = (int32_t)step,
		.weight_size = (int32_t)size, .part = part};
	if (step == 0 && size == 0)
		return true;
	if (n < 2 || size < -1 || size == 0 || size > n || n % group != 0 || shape->rank == 0 ||
		step != (all[n - 1] - all[0]) / (n - 1) ||
		(shape->dim[0] / l->dim[0].cut % group != 0) != (part > 0))
		return false;
	out->shards = group;
	out->by_rows = part == 0;
	return axes_of(all, group, &out->group) && are_chunks(shape, l, ndev, &out->group);
}

/* A checkpoint cannot say parts that are no rows: then it says that all is there. */
static void want_whole(struct ex_reader *r, const struct ap_ckpt_layout *item)
{
	if (item->weight_step || item->weight_size)
		ex_read_fault(r, "opt_weight_shard_step and _size of parts that are no rows");
}

/* One parameter of the checkpoint, over what the plan says of it. */
static void take_layout(struct ex_reader *r, const struct ap_ckpt_layout *item, const struct ap_tensor *t,
	int64_t ndev, struct ex_program_param *out)
{
	int64_t axes[AP_MAX_RANK][AP_MAX_DIM_FACTOR] = {{0}};
	uint8_t n[AP_MAX_RANK] = {0};
	const struct ap_ckpt_vec *map = item->tensor_map;

	r->about = item->param_name;
	for (uint32_t d = 0; item->nmap == 1 && d < map->n && d < AP_MAX_RANK; d++) {
		axes[d][0] = map->v[d];
		n[d] = map->v[d] >= 0;
	}
	if (item->nmap != 1 || map->n != t->shape.rank ||
		!ex_layout_of_map((int)item->dev_matrix.n, item->dev_matrix.v, t->shape.rank, n,
			(const int64_t(*)[AP_MAX_DIM_FACTOR])axes, &out->layout))
		ex_read_fault(r, "dev_matrix and tensor_map give no layout");
	else if (out->shard.shards > 1 && !out->shard.by_rows)
		want_whole(r, item);
	else if (!ex_shard_of(&t->shape, &out->layout, ndev, item->weight_step, item->weight_size, 0,
			 &out->shard))
		ex_read_fault(r, "opt_weight_shard_step and _size mean no shard");
	if (item->has_shape && (item->tensor_shape.n != t->shape.rank ||
		memcmp(item->tensor_shape.v, t->shape.dim, t->shape.rank * sizeof(int64_t)) != 0))
		ex_read_fault(r, "tensor_shape");
}

static bool same_vec(const struct ap_ckpt_vec *a, const struct ap_ckpt_vec *b)
{
	return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof *a->v) == 0);
}

static const struct ap_ckpt_layout *find(const struct ap_ckpt *c, const char *name)
{
	for (uint32_t i = 0; i < c->nlayout; i++)
		if (strcmp(c->layout[i].param_name, name) == 0)
			return &c->layout[i];
	return NULL;
}

/* A state of the optimizer lies as its parameter. */
static void check_state(struct ex_reader *r, const struct ap_ckpt *c, const char *prefix,
	const struct ap_ckpt_layout *param)
{
	const char *name = ap_arena_printf(r->ctx->arena, "%s.%s", prefix, param->param_name);
	const struct ap_ckpt_layout *s = find(c, name);

	r->about = name;
	if (!s)
		ex_read_fault(r, "is missing");
	else if (!same_vec(&s->dev_matrix, &param->dev_matrix) ||
		!same_vec(s->tensor_map, param->tensor_map) ||
		s->weight_step != param->weight_step || s->weight_size != param->weight_size)
		ex_read_fault(r, "does not lie as its parameter");
}

/* Layouts of all parameters that are trained by an operator in the checkpoint, and of their states. */
static void take_layouts(struct ex_reader *r, const struct ap_ckpt *c, const struct ex_program *p)
{
	const struct ap_optimizer *optimizer = p->step.training ? p->step.optimizer : NULL;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < p->nparam && !r->why; i++) {
		const struct ap_tensor *t = &p->graph->tensor[p->param[i].tensor];
		const struct ap_ckpt_layout *item = find(c, t->name);
		char prefix[32];

		if (!item)
			continue;
		taken++;
		take_layout(r, item, t, p->ndev, &p->param[i]);
		for (int s = 0; optimizer && s < optimizer->nstate; s++, taken++)
			check_state(r, c, ap_optimizer_prefix(optimizer, s, prefix), item);
		if (p->step.training && p->step.micro_batches > 1) {
			check_state(r, c, "accu_grads", item);
			taken++;
		}
	}
	r->about = "the checkpoint";
	if (taken != c->nlayout)
		ex_read_fault(r, "%" PRIu32 " of %" PRIu32 " layouts are of parameters and states", taken,
			c->nlayout);
}

/* Every trained parameter of an operator that has a strategy must be there. */
static void check_complete(struct ex_reader *r, const struct ap_ckpt *c, const struct ap_graph *g)
{
	for (ap_id i = 0; i < g->nnode; i++)
		for (int k = 0; k < g->node[i].bound.nin; k++) {
			const struct ap_tensor *t = &g->tensor[g->node[i].in[k]];

			r->about = t->name;
			if (t->kind == AP_TENSOR_PARAM && t->trainable &&
				ap_op_has_strategy(g->node[i].bound.row) && !find(c, t->name))
				ex_read_fault(r, "has no layout");
		}
}

const char *ex_program_of_ckpt(struct ap_ctx *ctx, const char *bytes, size_t len, bool json,
	const struct ap_graph *g, const struct ap_machine *m, const struct ap_step *step,
	const struct ap_route *route, struct ex_program *out)
{
	struct ap_request rq = {.graph = g, .machine = m, .step = step,
		.capacity_bytes = INT64_C(1) << 60, .search_mode = "auto", .route = route, .prune = true};
	struct ex_reader r = {.ctx = ctx, .about = "the checkpoint"};
	const int32_t *const *counts;
	struct ap_ckpt c;
	struct ap_plan plan;

	if (ap_ckpt_read(ctx, "s.ckpt", bytes, len, json, &c) != AP_OK)
		return "the checkpoint cannot be read";
	if (ap_ckpt_counts(ctx, &c, g, m->ndev, step, &counts) != AP_OK)
		return "the checkpoint is not of the graph";
	if (ap_drive_evaluate(ctx, &rq, counts, &plan) != AP_OK)
		return "the checkpoint cannot be evaluated";
	ex_program_of_plan(ctx, &plan, out);
	check_complete(&r, &c, g);
	take_layouts(&r, &c, out);
	return r.why;
}
