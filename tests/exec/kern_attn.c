/* SPDX-License-Identifier: Apache-2.0 */
#include "kern_attn.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "rule/attr.h"

uint64_t ex_fraction(const struct ex_job *j, const char *name, double otherwise)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, name);

	return ex_mul(ex_of_int(lround((a ? a->f : otherwise) * 1024)), ex_inverse(1024));
}

static int dim_of(const struct ex_heads *h, char letter)
{
	const char *p = strchr(h->layout, letter);

	if (!p && letter == 'S')
		p = strchr(h->layout, 'T');
	return p ? (int)(p - h->layout) : -1;
}

int64_t ex_heads_size(const struct ex_heads *h, char letter)
{
	int d = dim_of(h, letter);

	if (d < 0 && letter == 'N')
		return h->t->box.size[dim_of(h, 'H')] / h->depth;
	return d < 0 ? 1 : h->t->box.size[d];
}

int64_t ex_heads_first(const struct ex_heads *h, char letter)
{
	int d = dim_of(h, letter);

	if (d < 0 && letter == 'N')
		return h->t->box.first[dim_of(h, 'H')] / h->depth;
	return d < 0 ? 0 : h->t->box.first[d];
}

bool ex_heads_of(const struct ex_value *t, const char *layout, int64_t depth, struct ex_heads *out)
{
	int composed;

	*out = (struct ex_heads){t, layout, depth};
	if (t->box.rank != strlen(layout))
		return false;
	composed = dim_of(out, 'H');
	return composed < 0 ? t->box.size[dim_of(out, 'D')] == depth :
		t->box.size[composed] % depth == 0;
}

void ex_heads_at(const struct ex_heads *h, int64_t b, int64_t s, int64_t n, int64_t d, int64_t *at)
{
	for (int i = 0; h->layout[i]; i++)
		switch (h->layout[i]) {
		case 'B':
			at[i] = b;
			break;
		case 'N':
			at[i] = n;
			break;
		case 'D':
			at[i] = d;
			break;
		case 'H':
			at[i] = n * h->depth + d;
			break;
		default:
			at[i] = s;
		}
}

static ex_id element(const struct ex_heads *h, int64_t b, int64_t s, int64_t n, int64_t d)
{
	int64_t at[AP_MAX_RANK];

	ex_heads_at(h, b, s, n, d, at);
	return ex_get(h->t, at);
}

/* One query of one head: its row of probabilities, then of the result. */
struct query {
	const struct ex_attention *a;
	int64_t b, n, i, own; /* own: head of keys and values */
};

static ex_id score(const struct query *x, int64_t t, ex_id shift)
{
	struct ex_tape *tape = x->a->j->tape;
	ex_id sum = 0;

	for (int64_t d = 0; d < x->a->q.depth; d++)
		sum = ex_mad(tape, sum, element(&x->a->q, x->b, x->i, x->n, d),
			element(&x->a->k, x->b, t, x->own, d));
	sum = ex_scale(tape, sum, x->a->scale);
	return shift ? ex_plus(tape, sum, shift) : sum;
}

static void weigh(const struct query *x, int64_t keys, ex_id *p)
{
	const struct ex_attention *a = x->a;
	struct ex_tape *tape = a->j->tape;
	ex_id sum = 0, most = 0;

	for (int64_t t = 0; t < keys; t++) {
		ex_id shift = 0;

		p[t] = 0;
		if (a->sees && !a->sees(a, x->b, x->n, x->i, t, &shift))
			continue;
		shift = score(x, t, shift);
		most = ex_less(tape, most, shift) ? shift : most;
		p[t] = ex_fn1(tape, "exp", shift);
		sum = ex_plus(tape, sum, p[t]);
	}
	for (int64_t t = 0; t < keys; t++)
		if (p[t]) {
			p[t] = ex_over(tape, p[t], sum);
			p[t] = a->keeps ? a->keeps(a, x->b, x->n, x->i, t, p[t]) : p[t];
		}
	if (a->sums)
		a->sums(a, x->b, x->n, x->i, ex_leaf(tape, ex_value_of(tape, most)), sum);
}

static void attend_one(const struct query *x, int64_t keys, ex_id *p)
{
	const struct ex_attention *a = x->a;
	int64_t at[AP_MAX_RANK];

	weigh(x, keys, p);
	for (int64_t d = 0; d < a->v.depth; d++) {
		ex_id sum = 0;

		for (int64_t t = 0; t < keys; t++)
			if (p[t])
				sum = ex_mad(a->j->tape, sum, p[t],
					element(&a->v, x->b, t, x->own, d));
		ex_heads_at(&a->out, x->b, x->i, x->n, d, at);
		a->out.t->id[ex_at(&a->out.t->box, at)] = sum;
	}
}

static bool agree(const struct ex_attention *a)
{
	int64_t heads = ex_heads_size(&a->q, 'N'), own = ex_heads_size(&a->k, 'N');

	return own > 0 && heads % own == 0 && ex_heads_size(&a->v, 'N') == own &&
		ex_heads_size(&a->out, 'N') == heads &&
		ex_heads_size(&a->q, 'B') == ex_heads_size(&a->k, 'B') &&
		ex_heads_size(&a->q, 'B') == ex_heads_size(&a->v, 'B') &&
		ex_heads_size(&a->q, 'B') == ex_heads_size(&a->out, 'B') &&
		ex_heads_size(&a->q, 'S') == ex_heads_size(&a->out, 'S') &&
		ex_heads_size(&a->k, 'S') == ex_heads_size(&a->v, 'S');
}

bool ex_attend(const struct ex_attention *a)
{
	int64_t keys = ex_heads_size(&a->k, 'S'), heads = ex_heads_size(&a->q, 'N');
	ex_id *p = AP_NEW_N(a->j->arena, ex_id, keys);

	if (!agree(a))
		return false;
	for (int64_t b = 0; b < ex_heads_size(&a->q, 'B'); b++)
		for (int64_t n = 0; n < heads; n++)
			for (int64_t i = 0; i < ex_heads_size(&a->q, 'S'); i++) {
				struct query x = {a, b, n, i,
					n / (heads / ex_heads_size(&a->k, 'N'))};

				attend_one(&x, keys, p);
			}
	return true;
}

bool ex_in_reach(const struct ex_job *j, int64_t queries, int64_t keys, int64_t i, int64_t t,
	bool masked)
{
	int64_t pre = ap_attr_int(j->attrs, "pre_tokens", INT32_MAX);
	int64_t next = ap_attr_int(j->attrs, "next_tokens", INT32_MAX);
	int64_t shift = keys - queries;

	switch (ap_attr_int(j->attrs, "sparse_mode", 0)) {
	case 0:
		return !masked || (t >= i - pre && t <= i + next);
	case 1:
		return true;
	case 2:
		return t <= i;
	case 3:
		return t <= i + shift;
	default:
		return t >= i + shift - pre && t <= i + shift + next;
	}
}
