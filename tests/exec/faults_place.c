/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of placement: sides, orders, groups, layouts, places of slices, halos. */
#include <string.h>

#include "faults.h"
#include "shard/layout.h"

/* ---- what lies where, the same way for all of an operator ---- */

static bool repeats_right(struct ex_world *w, struct ap_bound *b, struct ap_op_row *row)
{
	(void)w, (void)row;
	b->left = 0;
	return true;
}

static bool repeats_left(struct ex_world *w, struct ap_bound *b, struct ap_op_row *row)
{
	(void)w, (void)row;
	b->left = UINT32_MAX;
	return true;
}

static bool first_two_swapped(struct ex_world *w, struct ap_bound *b, struct ap_op_row *row)
{
	uint8_t first = b->dev[0];

	(void)w, (void)row;
	if (b->ndev < 2)
		return false;
	b->dev[0] = b->dev[1];
	b->dev[1] = first;
	return true;
}

static bool last_two_swapped(struct ex_world *w, struct ap_bound *b, struct ap_op_row *row)
{
	uint8_t last = b->dev[b->ndev - 1];

	(void)w, (void)row;
	if (b->ndev < 2)
		return false;
	b->dev[b->ndev - 1] = b->dev[b->ndev - 2];
	b->dev[b->ndev - 2] = last;
	return true;
}

static bool stride_doubled(struct ex_world *w, struct ap_placement *p)
{
	for (int f = 0; f < p->bound->nfactor; f++)
		if (p->count[f] > 1 && (int64_t)p->stride[f] * p->count[f] * 2 <= w->ndev) {
			p->stride[f] *= 2;
			return true;
		}
	return false;
}

/* ---- layouts, beside groups that are right ---- */

static bool fits(const struct ap_layout *l, const struct ap_shape *s)
{
	for (int d = 0; d < l->rank; d++)
		if (s->dim[d] % l->dim[d].cut != 0)
			return false;
	return true;
}

/* The dimensions of a layout in another order, where that is another layout. */
static bool turn(struct ap_layout *l, const struct ap_shape *s)
{
	struct ap_layout turned = *l;

	for (int d = 0; d < l->rank; d++)
		turned.dim[d] = l->dim[l->rank - 1 - d];
	if (ap_layout_equal(&turned, l) || !fits(&turned, s))
		return false;
	*l = turned;
	return true;
}

#define LAYOUT(name) static bool name(struct ex_world *w, const struct ex_oper *o, \
	struct ap_layout *in, struct ap_layout *out)

LAYOUT(map_from_the_left)
{
	(void)w, (void)out;
	return turn(&in[0], &o->in_shape[0]);
}

LAYOUT(second_map_turned)
{
	(void)w, (void)out;
	return o->nin > 1 && turn(&in[1], &o->in_shape[1]);
}

LAYOUT(result_map_turned)
{
	(void)w, (void)in;
	return turn(&out[0], &o->out_shape[0]);
}

LAYOUT(result_as_operand)
{
	(void)w;
	if (in[0].rank != out[0].rank || ap_layout_equal(&in[0], &out[0]) ||
		!fits(&in[0], &o->out_shape[0]))
		return false;
	out[0] = in[0];
	return true;
}

LAYOUT(result_whole)
{
	(void)w, (void)in, (void)o;
	for (int d = 0; d < out[0].rank; d++)
		if (out[0].dim[d].cut > 1) {
			out[0].dim[d] = (struct ap_cut_dim){1, 0};
			return true;
		}
	return false;
}

static void move_in(struct ap_layout *l, int64_t least)
{
	for (int d = 0; d < l->rank; d++)
		if (l->dim[d].cut > 1)
			l->dim[d].stride /= (int32_t)least;
}

/* Layouts as if repeats were left, groups as they are. */
LAYOUT(layouts_without_repeat)
{
	int64_t least = w->ndev;

	for (int i = 0; i < o->nin; i++)
		for (int d = 0; d < in[i].rank; d++)
			if (in[i].dim[d].cut > 1 && in[i].dim[d].stride < least)
				least = in[i].dim[d].stride;
	if (least == 1 || least == w->ndev)
		return false;
	for (int i = 0; i < o->nin; i++)
		move_in(&in[i], least);
	for (int i = 0; i < o->nout; i++)
		for (int d = 0; d < out[i].rank; d++)
			if (out[i].dim[d].cut > 1 && out[i].dim[d].stride % least != 0)
				return false;
	for (int i = 0; i < o->nout; i++)
		move_in(&out[i], least);
	return true;
}

/* ---- groups ---- */

#define GROUP(name) static bool name(struct ex_world *w, int64_t rank, int64_t n, int64_t *ranks)

GROUP(neighbours_swapped)
{
	int64_t first = ranks[0];

	(void)w, (void)rank;
	if (n < 2)
		return false;
	ranks[0] = ranks[1];
	ranks[1] = first;
	return true;
}

GROUP(group_of_the_next)
{
	(void)rank;
	for (int64_t k = 0; k < n; k++)
		ranks[k] = (ranks[k] + 1) % w->ndev;
	return n < w->ndev;
}

GROUP(next_to_one_another)
{
	bool any = false;

	(void)w;
	for (int64_t k = 0; k < n; k++) {
		any |= ranks[k] != rank - rank % n + k;
		ranks[k] = rank - rank % n + k;
	}
	return any;
}

GROUP(group_of_rank_0)
{
	int64_t first = ranks[0];

	(void)w, (void)rank;
	for (int64_t k = 0; k < n; k++)
		ranks[k] -= first;
	return first > 0;
}

GROUP(one_is_missing)
{
	(void)w;
	if (n < 2)
		return false;
	for (int64_t k = 0; k < n; k++)
		if (k == n - 1)
			ranks[k] = rank;
	return true;
}

/* ---- places and halos ---- */

#define BOX(name) static bool name(struct ex_world *w, const char *type, unsigned slot, \
	int64_t rank, struct ex_box *b)

/* As if the slice were the first one. */
BOX(from_the_first)
{
	bool any = false;

	(void)w, (void)type, (void)slot, (void)rank;
	for (int d = 0; d < b->rank; d++) {
		any |= b->first[d] != 0;
		b->first[d] = 0;
	}
	return any;
}

/* The table of a look-up. */
static bool is_table(const char *type, unsigned slot)
{
	return slot == (strcmp(type, "Embedding") == 0 ? 1 : 0);
}

BOX(table_from_0)
{
	return is_table(type, slot) && from_the_first(w, type, slot, rank, b);
}

BOX(result_from_0)
{
	return slot >= EX_MAX_IN && from_the_first(w, type, slot, rank, b);
}

/* As if it were the next one. */
BOX(table_of_the_next)
{
	(void)w, (void)rank;
	if (!is_table(type, slot) || b->rank == 0 || b->size[0] == b->whole[0])
		return false;
	b->first[0] = (b->first[0] + b->size[0]) % b->whole[0];
	return true;
}

#define HALO(name) static bool name(struct ex_world *w, int64_t parts, int64_t part, \
	int64_t *before, int64_t *after)

HALO(one_row_less_after)
{
	(void)w, (void)parts, (void)part, (void)before;
	return *after > 0 && ((*after)--, true);
}

HALO(one_row_less_before)
{
	(void)w, (void)parts, (void)part, (void)after;
	return *before > 0 && ((*before)--, true);
}

HALO(sides_swapped)
{
	int64_t kept = *before;

	(void)w, (void)parts, (void)part;
	if (*before == *after)
		return false;
	*before = *after;
	*after = kept;
	return true;
}

const struct ex_fault ex_faults_place[] = {
	{"repeats-right", "repeats on the right where the vocabulary is cut", "Gather",
		.bound = repeats_right},
	{"repeats-left", "repeats on the left", "MatMul ReLU LayerNorm Conv2D", .bound = repeats_left},
	{"first-axes-swapped", "the dev_matrix begins with its second axis",
		"MatMul FlashAttentionScore Conv2D Gather", .bound = first_two_swapped},
	{"last-axes-swapped", "the last axes of the dev_matrix in the other order",
		"MatMul BatchMatMul BatchNorm", .bound = last_two_swapped},
	{"stride-doubled", "a factor strides too far", "MatMul Softmax", .place = stride_doubled},
	{"map-from-the-left", "a tensor_map is read from the left", "MatMul Softmax ReduceSum",
		.layout = map_from_the_left},
	{"second-map-turned", "the second operand's map is not transposed", "MatMul BatchMatMul",
		.layout = second_map_turned},
	{"result-map-turned", "the result's map is transposed", "MatMul Exp",
		.layout = result_map_turned},
	{"result-as-operand", "the result has the operand's map", "Transpose",
		.layout = result_as_operand},
	{"result-whole", "a cut dimension of the result is said to be whole", "ReLU MatMul Transpose",
		.layout = result_whole},
	{"layouts-without-repeat", "layouts as if repeats were left, groups right", "ReduceMean L2Loss",
		.layout = layouts_without_repeat},
	{"group-order", "two ranks of a group stand in the wrong order", "Conv2D MatMul",
		.group = neighbours_swapped},
	{"group-of-the-next", "each rank in the group of the next one", "MatMul ReduceSum",
		.group = group_of_the_next},
	{"group-stride-1", "ranks of a group next to one another", "MatMul ReduceSum LayerNorm",
		.group = next_to_one_another},
	{"group-of-rank-0", "each group is that of rank 0", "MatMul ReduceSum",
		.group = group_of_rank_0},
	{"group-member-missing", "a rank takes itself for another one", "MatMul ReduceMax",
		.group = one_is_missing},
	{"table-from-0", "masked look-ups without the part's offset", "Gather Embedding",
		.box = table_from_0},
	{"table-of-the-next", "masked look-ups with another part's offset", "Gather",
		.box = table_of_the_next},
	{"depth-from-0", "each part of OneHot's depth begins at 0", "OneHot", .box = result_from_0},
	{"mask-from-0", "a causal mask that begins at 0 on each part", "FlashAttentionScore",
		.box = from_the_first},
	{"seed-by-part", "random masks by the place in the part", "Dropout", .box = from_the_first},
	{"short-halo-after", "a row too few of the next part", "Conv2D", .halo = one_row_less_after},
	{"short-halo-before", "a row too few of the part before", "Conv2D",
		.halo = one_row_less_before},
	{"halo-sides", "a halo's sides swapped", "Conv2D", .halo = sides_swapped},
	{0},
};
