/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in inference: whole sequences, of which some are shorter than the tensor. */
#include <string.h>

#include "base/arena.h"
#include "rule/attr.h"
#include "kern_attn.h"
#include "make_parts.h"

enum { NONE = 255 };

/* Which operand of the definition is what. */
static const struct roles {
	const char *type;
	unsigned mask, queries, keys, shift;
} roles[] = {
	{"PromptFlashAttention", 3, 4, 5, 6},
	{"FusedInferAttentionScore", 4, 5, 6, 3},
	{"IncreFlashAttention", 3, NONE, 4, 5},
	{"PagedAttention", NONE, NONE, 4, NONE},
	{"PagedAttentionMask", NONE, NONE, 4, 5},
};

static const struct roles *roles_of(const struct ex_job *j)
{
	const struct roles *r = roles;

	while (strcmp(r->type, j->type) != 0)
		r++;
	return r;
}

/* Length of batch b, of which there is one, or one for all; otherwise the whole. */
static int64_t length_of(const struct ex_job *j, unsigned slot, int64_t b, int64_t whole)
{
	const struct ex_value *v = ex_in(j, slot);

	return v ? (int64_t)ex_value_of(j->tape, ex_get_broadcast(v, &b, 1)) : whole;
}

/* [queries, keys], or with a batch in front and one or two dimensions of length one; where there is
 * one query it has no dimension of its own. */
static bool is_masked(const struct ex_attention *a, const struct ex_value *mask, int64_t b, int64_t i,
	int64_t t)
{
	bool one = strcmp(a->j->type, "IncreFlashAttention") == 0;
	int64_t plain[] = {one ? b : i, t}, batch[] = {b, i, t}, heads[] = {b, 0, i, t};
	int rank = mask->box.rank;

	return ex_value_of(a->j->tape, ex_get_broadcast(mask,
		rank == 2 ? plain : rank == 3 ? batch : heads, rank)) != 0;
}

static bool sees(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, int64_t t,
	ex_id *shift)
{
	const struct roles *r = roles_of(a->j);
	const struct ex_value *mask = ex_in(a->j, r->mask), *add = ex_in(a->j, r->shift);
	int64_t queries = ex_heads_size(&a->q, 'S'), keys = ex_heads_size(&a->k, 'S');
	int64_t place[] = {b, n, i, t};

	if (i >= length_of(a->j, r->queries, b, queries) || t >= length_of(a->j, r->keys, b, keys) ||
		!ex_in_reach(a->j, queries, keys, i, t, mask))
		return false;
	if (mask && ap_attr_int(a->j->attrs, "sparse_mode", 0) < 2 && is_masked(a, mask, b, i, t))
		return false;
	*shift = add ? ex_get_broadcast(add, place, 4) : 0;
	return true;
}

static void logarithm(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, ex_id most,
	ex_id sum)
{
	int64_t at[] = {b, n, i, 0};

	(void)most;
	ex_put(&a->j->out[1], at, ex_fn1(a->j->tape, "log", sum));
}

static bool infer(const struct ex_job *j)
{
	const char *layout = ap_attr_str(j->attrs, "input_layout", "BSH");
	struct ex_attention a = {.j = j, .sees = sees, .sums = j->nout > 1 ? logarithm : NULL};
	int last = j->in[0].box.rank - 1;
	int64_t depth = j->in[0].box.whole[last];

	if (layout[last] == 'H')
		depth /= ap_attr_int(j->attrs, "num_heads", 1);
	a.scale = ex_fraction(j, "scale_value", 1);
	return ex_heads_of(&j->in[0], layout, depth, &a.q) && ex_heads_of(&j->in[1], layout, depth, &a.k) &&
		ex_heads_of(&j->in[2], layout, depth, &a.v) &&
		ex_heads_of(&j->out[0], layout, depth, &a.out) && ex_attend(&a);
}

/* Blocks [., rows, N, D] that the tables name, one behind the other: [B, ., N, D]. */
static bool collect(const struct ex_job *j, const struct ex_value *blocks, struct ex_value *out)
{
	const struct ex_value *tables = &j->in[3];
	int64_t batches = tables->box.size[0], each = tables->box.size[1], rows = blocks->box.size[1];
	int64_t row = blocks->box.size[2] * blocks->box.size[3];

	out->box = blocks->box;
	out->box.size[0] = batches;
	out->box.size[1] = each * rows;
	out->id = AP_NEW_N(j->arena, ex_id, ex_count(&out->box));
	for (int64_t i = 0; i < batches * each; i++) {
		int64_t block = (int64_t)ex_value_of(j->tape, tables->id[i]);

		if (block >= blocks->box.size[0])
			return false;
		memcpy(out->id + i * rows * row, blocks->id + block * rows * row,
			(size_t)(rows * row) * sizeof *out->id);
	}
	return true;
}

static bool paged(const struct ex_job *j)
{
	struct ex_attention a = {.j = j, .sees = sees, .scale = ex_fraction(j, "scale_value", 1)};
	struct ex_value k, v;
	int64_t depth = j->in[1].box.size[3];

	return collect(j, &j->in[1], &k) && collect(j, &j->in[2], &v) &&
		ex_heads_of(&j->in[0], "BSH", depth, &a.q) && ex_heads_of(&k, "BSND", depth, &a.k) &&
		ex_heads_of(&v, "BSND", depth, &a.v) && ex_heads_of(&j->out[0], "BSH", depth, &a.out) &&
		ex_attend(&a);
}

static int64_t size_of(const struct ap_node *n, int operand, int dim)
{
	return n->bound.in[operand].size[dim];
}

/* Lengths are at most those of the keys, which lie behind the batch, or behind it and the heads. */
static int64_t limit_infer(const struct ap_node *n, unsigned slot)
{
	const char *layout = ap_attr_str(&n->attrs, "input_layout", "BSH");

	return slot < 3 ? 0 : size_of(n, 1, (int)(strchr(layout, 'S') - layout)) + 1;
}

static int64_t limit_paged(const struct ap_node *n, unsigned slot)
{
	return slot == 3 ? size_of(n, 1, 0) :
		slot == 4 ? size_of(n, 1, 1) * size_of(n, 3, 1) + 1 : 0;
}

#define INFER(name, how) {.type = name, .forward = infer, .make = how, .limit = limit_infer, \
	.no_grad = UINT32_MAX}
#define PAGED(name) {.type = name, .forward = paged, .make = ex_make_paged, \
	.limit = limit_paged, .no_grad = UINT32_MAX}

const struct ex_kernel ex_kernels_infer[] = {
	INFER("PromptFlashAttention", ex_make_prompt),
	INFER("FusedInferAttentionScore", ex_make_prompt),
	INFER("IncreFlashAttention", ex_make_incre),
	PAGED("PagedAttention"), PAGED("PagedAttentionMask"),
	{0}
};
