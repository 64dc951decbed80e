/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention in training, and the rotation of positions. Which keys a query sees follows from its
 * place in the whole sequence; sequences that stand one behind the other (layouts TND, TH) see only
 * themselves.
 */
#include <string.h>

#include "kern_attn.h"
#include "make_parts.h"
#include "rule/attr.h"

enum { SHIFT = 3, DROP = 4, MASK = 6 };
enum { LANES = 8 };

struct sequence { /* of packed ones the one that a query is of; otherwise the whole */
	int64_t number, query, queries, key, keys; /* first places and lengths */
};

/* Ends of packed sequences; the last is the end of all where the attribute is missing. */
static int64_t end_of(const struct ex_job *j, const char *name, uint32_t n, int64_t all)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, name);

	return a && n < a->n ? a->list[n] : all;
}

static struct sequence sequence_of(const struct ex_attention *a, int64_t place)
{
	const struct ex_box *q = &a->q.t->box, *k = &a->k.t->box;
	int64_t queries = q->whole[0], keys = k->size[0], end;
	struct sequence s = {0};

	if (*a->q.layout != 'T') {
		const char *p = strchr(a->q.layout, 'S');

		return (struct sequence){.queries = q->whole[p - a->q.layout],
			.keys = ex_heads_size(&a->k, 'S')};
	}
	for (uint32_t n = 0; (end = end_of(a->j, "actual_seq_qlen", n, queries)) <= place; n++) {
		s.number = n + 1;
		s.query = end;
		s.key = end_of(a->j, "actual_seq_kvlen", n, keys);
	}
	s.queries = end - s.query;
	s.keys = end_of(a->j, "actual_seq_kvlen", (uint32_t)s.number, keys) - s.key;
	return s;
}

/* Element [b, n, i, t] of what has a dimension for the last of these, whole or of length one. */
static ex_id at_score(const struct ex_value *v, int64_t b, int64_t n, int64_t i, int64_t t)
{
	int64_t at[] = {b, n, i, t};

	return ex_get_broadcast(v, at, 4);
}

static bool sees(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, int64_t t,
	ex_id *shift)
{
	const struct ex_value *mask = ex_in(a->j, MASK), *add = ex_in(a->j, SHIFT);
	int64_t place = ex_heads_first(&a->q, 'S') + i, mode;
	struct sequence s = sequence_of(a, place);
	bool packed = *a->q.layout == 'T';

	place -= s.query;
	t -= s.key;
	if (t < 0 || t >= s.keys || !ex_in_reach(a->j, s.queries, s.keys, place, t, mask))
		return false;
	i = packed ? place : i;
	b = packed ? s.number : b;
	mode = ap_attr_int(a->j->attrs, "sparse_mode", 0);
	if (mask && mode < 2 && ex_value_of(a->j->tape, at_score(mask, b, n, i, t)))
		return false;
	*shift = add ? at_score(add, b, n, i, t) : 0;
	return true;
}

/* A bit for each element; packed sequences have them in a row. */
static ex_id keeps(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, int64_t t, ex_id p)
{
	const struct ex_value *drop = ex_in(a->j, DROP);
	uint64_t keep = ex_fraction(a->j, "keep_prob", 1);

	if (*a->q.layout == 'T') {
		int64_t row = (ex_heads_first(&a->q, 'N') + n) * a->q.t->box.whole[0] +
			ex_heads_first(&a->q, 'S') + i;
		int64_t bit = row * ex_heads_size(&a->k, 'S') + t;
		int64_t byte = bit / 8;

		if (!(ex_value_of(a->j->tape, ex_get(drop, &byte)) >> bit % 8 & 1))
			return 0;
	} else if (!(ex_value_of(a->j->tape, at_score(drop, b, n, i, t / 8)) >> t % 8 & 1)) {
		return 0;
	}
	return ex_scale(a->j->tape, p, ex_inverse(keep));
}

/* Maximum and sum, in eight equal lanes; they stand first where all results are declared. */
static void sums(const struct ex_attention *a, int64_t b, int64_t n, int64_t i, ex_id most, ex_id sum)
{
	struct ex_value *out = &a->j->out[a->j->nout == 4 ? 0 : 1];
	bool packed = *a->q.layout == 'T';

	for (int64_t l = 0; l < LANES; l++) {
		int64_t alone[] = {i, n, l}, batched[] = {b, n, i, l};

		ex_put(&out[0], packed ? alone : batched, most);
		ex_put(&out[1], packed ? alone : batched, sum);
	}
}

static bool statistics_fit(const struct ex_attention *a)
{
	const struct ex_box *o = &a->j->out[a->j->nout == 4 ? 0 : 1].box;
	int head = 1, query = *a->q.layout == 'T' ? 0 : 2;

	return o->size[head] == ex_heads_size(&a->q, 'N') && o->size[query] == ex_heads_size(&a->q, 'S');
}

static bool flash(const struct ex_job *j)
{
	const char *layout = ap_attr_str(j->attrs, "input_layout", "BSH");
	struct ex_attention a = {.j = j, .sees = sees, .sums = sums};
	int last = j->in[0].box.rank - 1;
	int64_t depth = j->in[0].box.whole[last], values;

	if (layout[last] == 'H')
		depth /= ap_attr_int(j->attrs, "head_num", 1);
	values = layout[last] == 'H' || j->in[2].box.rank <= last ? depth : j->in[2].box.whole[last];
	a.scale = ex_fraction(j, "scale_value", 1);
	a.keeps = ex_in(j, DROP) ? keeps : NULL;
	if (j->nout == 4)
		ex_put(&j->out[2], (int64_t[]){0}, 0);
	return ex_heads_of(&j->in[0], layout, depth, &a.q) && ex_heads_of(&j->in[1], layout, depth, &a.k) &&
		ex_heads_of(&j->in[2], layout, values, &a.v) &&
		ex_heads_of(&j->out[j->nout == 4 ? 3 : 0], layout, values, &a.out) &&
		statistics_fit(&a) && ex_attend(&a);
}

/* x cos + turned x sin: halves against each other (mode 0), or neighbours. */
static ex_id rotate_at(const struct ex_job *j, unsigned r, const int64_t *at)
{
	const struct ex_box *x = &j->in[0].box;
	int last = x->rank - 1;
	int64_t other[AP_MAX_RANK], half = x->size[last] / 2, i = at[last];
	bool pairs = ap_attr_int(j->attrs, "mode", 0) == 1, second = pairs ? i % 2 : i >= half;
	ex_id turned, sum;

	(void)r;
	memcpy(other, at, sizeof other);
	other[last] = pairs ? i ^ 1 : (i + half) % (2 * half);
	turned = ex_get(&j->in[0], other);
	turned = second ? turned : ex_minus(j->tape, 0, turned);
	sum = ex_times(j->tape, ex_get(&j->in[0], at), ex_operand(j, 1, at));
	return ex_mad(j->tape, sum, turned, ex_operand(j, 2, at));
}

static bool rotate(const struct ex_job *j)
{
	const struct ex_box *x = &j->in[0].box;

	return x->size[x->rank - 1] % 2 == 0 && ex_each(j, rotate_at);
}

const struct ex_kernel ex_kernels_attn[] = {
	{.type = "FlashAttentionScore", .forward = flash, .make = ex_make_flash,
		.no_grad = 1u << DROP | 1u << MASK},
	{.type = "RotaryPositionEmbedding", .forward = rotate, .make = ex_make_rotary},
	{0}
};
