/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator-strategy file says of one operator: vectors of parts, or layouts. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json_write.h"
#include "ckpt/op_strategy_parts.h"
#include "cost/cost.h"
#include "shard/space.h"

struct ap_op_cuts ap_op_cuts_of_node(struct ap_ctx *ctx, const struct ap_plan *p, ap_id node)
{
	const struct ap_placement *place = &p->op[node].place;
	uint32_t cap = place->bound->nin + (uint32_t)strlen(place->bound->row->strategy);
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, cap);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->scratch, cap, sizeof *cut);
	uint32_t n = ap_space_to_strategy(place, rank, cut, cap);

	return (struct ap_op_cuts){n, rank, (const int32_t(*)[AP_MAX_RANK])cut};
}

/* How input i of the graph arrives. */
static struct ap_layout input_layout(const struct ap_plan *p, uint32_t i)
{
	const struct ap_tensor *t = &p->graph->tensor[p->graph->input[i]];
	struct ap_arrival given = {0};
	struct ap_layout layout;

	if (i < p->step->narrival)
		given = p->step->arrival[i];
	ap_input_layout(&t->shape, t->batch, given, p->machine->ndev, p->step, &layout);
	return layout;
}

struct ap_op_cuts ap_op_cuts_of_inputs(struct ap_ctx *ctx, const struct ap_plan *p)
{
	uint32_t n = p->graph->ninput;
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, n);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->scratch, n, sizeof *cut);

	for (uint32_t i = 0; i < n; i++) {
		struct ap_layout layout = input_layout(p, i);

		rank[i] = (uint8_t)layout.rank;
		for (int d = 0; d < layout.rank; d++)
			cut[i][d] = layout.dim[d].cut;
	}
	return (struct ap_op_cuts){n, rank, (const int32_t(*)[AP_MAX_RANK])cut};
}

bool ap_op_inputs_need_layouts(const struct ap_plan *p)
{
	for (uint32_t i = 0; i < p->graph->ninput; i++) {
		struct ap_layout layout = input_layout(p, i);

		for (int d = 0; d < layout.rank; d++)
			if (layout.dim[d].cut > 1 && layout.dim[d].stride != 1)
				return true;
	}
	return false;
}

static void write_ints(struct ap_jw *w, const int32_t *v, int n)
{
	ap_jw_arr_flat(w);
	for (int i = 0; i < n; i++)
		ap_jw_int(w, v[i]);
	ap_jw_end(w);
}

static void write_strategy(struct ap_jw *w, const struct ap_op_cuts *c, int64_t stage)
{
	ap_jw_obj_flat(w);
	ap_jw_key(w, "parallel_strategy");
	ap_jw_arr_flat(w);
	for (uint32_t i = 0; i < c->n; i++)
		write_ints(w, c->cut[i], c->rank[i]);
	ap_jw_end(w);
	ap_jw_kint(w, "stage", stage);
	ap_jw_end(w);
}

/* The axes of dev, counted from the right, that cut a dimension; outermost first. */
static void write_axes(struct ap_jw *w, const struct ap_dev_matrix *dev, struct ap_cut_dim dim)
{
	int64_t stride = 1, bound = (int64_t)dim.stride * dim.cut;
	int32_t axes[AP_MAX_FACTOR + 1];
	int n = 0;

	for (int i = 0; i < dev->n; i++)
		stride *= dev->axis[i];
	for (int i = 0; dim.cut > 1 && i < dev->n; i++) {
		stride /= dev->axis[i];
		if (stride >= dim.stride && stride < bound)
			axes[n++] = dev->n - 1 - i;
	}
	if (!n)
		axes[n++] = -1;
	write_ints(w, axes, n);
}

/* Axes have no names of their own; they are named by their numbers. */
static void write_alias(struct ap_jw *w, const struct ap_dev_matrix *dev)
{
	char name[16];

	ap_jw_key(w, "alias_name");
	ap_jw_arr_flat(w);
	for (int i = dev->n; i-- > 0;) {
		snprintf(name, sizeof name, "axis%d", i);
		ap_jw_str(w, name);
	}
	ap_jw_end(w);
}

/* What comes after a key among those of n layouts, as texts are ordered: 0, 1, 10, 11, 2. MindSpore takes
 * the layouts in that order. */
static uint32_t next_key(uint32_t key, uint32_t n)
{
	if (!key)
		return 1;
	if (key < n && key * (uint64_t)10 < n)
		return key * 10;
	while (key % 10 == 9 || key + 1 == n)
		key /= 10;
	return key + 1;
}

static void write_layout(struct ap_jw *w, uint32_t key, const struct ap_dev_matrix *dev,
	const struct ap_layout *layout)
{
	char text[16];

	snprintf(text, sizeof text, "%" PRIu32, key);
	ap_jw_key(w, text);
	ap_jw_obj_flat(w);
	write_alias(w, dev);
	ap_jw_key(w, "dev_matrix");
	write_ints(w, dev->axis, dev->n);
	ap_jw_kbool(w, "interleaved_parallel", false);
	ap_jw_key(w, "tensor_map");
	ap_jw_arr_flat(w);
	for (int d = 0; d < layout->rank; d++)
		write_axes(w, dev, layout->dim[d]);
	ap_jw_end(w);
	ap_jw_end(w);
}

static void write_layouts(struct ap_jw *w, const struct ap_placement *place, const struct ap_layout *layout,
	uint32_t n)
{
	struct ap_dev_matrix dev;

	ap_dev_matrix_standard(place, &dev);
	ap_jw_obj_flat(w);
	for (uint32_t i = 0, key = 0; i < n; i++, key = next_key(key, n))
		write_layout(w, key, &dev, &layout[i]);
	ap_jw_end(w);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* One arrangement that all inputs can be told by; n 0 where there is none. */
static struct ap_dev_matrix common_matrix(struct ap_ctx *ctx, int64_t ndev, const struct ap_layout *layout,
	uint32_t ninput)
{
	int64_t *bound = AP_NEW_N(ctx->scratch, int64_t, 2 * (size_t)ninput * AP_MAX_RANK + 2);
	struct ap_dev_matrix dev = {0};
	size_t n = 0;

	bound[n++] = 1;
	bound[n++] = ndev;
	for (uint32_t i = 0; i < ninput; i++)
		for (int d = 0; d < layout[i].rank; d++)
			if (layout[i].dim[d].cut > 1) {
				bound[n++] = layout[i].dim[d].stride;
				bound[n++] = (int64_t)layout[i].dim[d].stride * layout[i].dim[d].cut;
			}
	qsort(bound, n, sizeof *bound, by_value);
	for (size_t i = n - 1; i > 0; i--) {
		if (bound[i] == bound[i - 1])
			continue;
		if (bound[i] % bound[i - 1] || dev.n > AP_MAX_FACTOR)
			return (struct ap_dev_matrix){0};
		dev.axis[dev.n++] = (int32_t)(bound[i] / bound[i - 1]);
	}
	return dev;
}

static void write_input_layouts(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p)
{
	uint32_t n = p->graph->ninput;
	struct ap_layout *layout = AP_NEW_N(ctx->scratch, struct ap_layout, n);
	struct ap_dev_matrix common;

	for (uint32_t i = 0; i < n; i++)
		layout[i] = input_layout(p, i);
	common = common_matrix(ctx, p->machine->ndev, layout, n);
	ap_jw_obj_flat(w);
	for (uint32_t i = 0, key = 0; i < n; i++, key = next_key(key, n)) {
		struct ap_dev_matrix own = common;
		int32_t map[AP_MAX_RANK];

		if (!common.n)
			ap_layout_dev_matrix(&layout[i], p->machine->ndev, &own, map);
		write_layout(w, key, &own, &layout[i]);
	}
	ap_jw_end(w);
}

/* Of the first n results. */
static void write_results(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_placement *place,
	struct ap_op_said said)
{
	uint8_t *rank = AP_NEW_N(ctx->scratch, uint8_t, said.nout);
	int32_t(*cut)[AP_MAX_RANK] = ap_arena_alloc(ctx->scratch, said.nout, sizeof *cut);

	for (uint32_t i = 0; i < said.nout; i++) {
		rank[i] = place->bound->out[i].rank;
		ap_strategy_vector(place, &place->bound->out[i], cut[i]);
	}
	write_strategy(w, &(struct ap_op_cuts){said.nout, rank, (const int32_t(*)[AP_MAX_RANK])cut},
		said.stage);
}

static void write_operator(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p, ap_id node,
	enum ap_op_map map, struct ap_op_said said)
{
	const struct ap_plan_op *op = &p->op[node];
	struct ap_op_cuts cuts;

	switch (map) {
	case AP_OP_STRATEGY:
		cuts = ap_op_cuts_of_node(ctx, p, node);
		write_strategy(w, &cuts, said.stage);
		break;
	case AP_OP_OUT_STRATEGY:
		write_results(ctx, w, &op->place, said);
		break;
	case AP_OP_LAYOUT:
		write_layouts(w, &op->place, op->in, op->place.bound->nin);
		break;
	default:
		assert(map == AP_OP_OUT_LAYOUT);
		write_layouts(w, &op->place, op->out, said.nout);
	}
}

void ap_op_write_value(struct ap_ctx *ctx, struct ap_jw *w, const struct ap_plan *p, ap_id node,
	enum ap_op_map map, struct ap_op_said said)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct ap_op_cuts cuts;

	if (node != AP_NONE) {
		write_operator(ctx, w, p, node, map, said);
	} else if (map == AP_OP_STRATEGY) {
		cuts = ap_op_cuts_of_inputs(ctx, p);
		write_strategy(w, &cuts, said.stage);
	} else {
		write_input_layouts(ctx, w, p);
	}
	ap_arena_release(ctx->scratch, mark);
}
