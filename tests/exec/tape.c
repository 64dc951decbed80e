/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "exec.h"

void ex_tape_init(struct ex_tape *t, struct ap_arena *a)
{
	*t = (struct ex_tape){.arena = a};
	ex_leaf(t, 0);
}

void ex_tape_grow(struct ex_tape *t)
{
	uint32_t cap = t->cap ? 2 * t->cap : 256;
	struct ex_node *v = ap_arena_alloc_raw(t->arena, cap, sizeof *v);

	if (t->n)
		memcpy(v, t->node, t->n * sizeof *v);
	t->node = v;
	t->cap = cap;
}

ex_id ex_times(struct ex_tape *t, ex_id a, ex_id b)
{
	return ex_mad(t, 0, a, b);
}

ex_id ex_plus(struct ex_tape *t, ex_id a, ex_id b)
{
	return ex_push(t, (struct ex_node){ex_add(t->node[a].v, t->node[b].v), {1, 0}, {a, 0, b}});
}

ex_id ex_minus(struct ex_tape *t, ex_id a, ex_id b)
{
	return ex_push(t, (struct ex_node){ex_sub(t->node[a].v, t->node[b].v), {EX_P - 1, 0}, {b, 0, a}});
}

ex_id ex_scale(struct ex_tape *t, ex_id a, uint64_t c)
{
	return ex_push(t, (struct ex_node){ex_mul(t->node[a].v, c), {c, 0}, {a, 0, 0}});
}

/* d(a/b) = da/b - a/b^2 db */
ex_id ex_over(struct ex_tape *t, ex_id a, ex_id b)
{
	uint64_t y = t->node[b].v, inv, q;

	if (y != t->divisor) {
		t->divisor = y;
		t->inverse = y ? ex_inverse(y) : 0;
	}
	inv = t->inverse;
	q = ex_mul(t->node[a].v, inv);
	return ex_push(t, (struct ex_node){q, {inv, ex_sub(0, ex_mul(q, inv))}, {a, b, 0}});
}

/* A polynomial's value and derivative, by Horner; c[n] the highest coefficient. */
static uint64_t horner(const uint64_t *c, int n, uint64_t x, uint64_t *derivative)
{
	uint64_t v = 0, d = 0;

	for (int i = n; i >= 0; i--) {
		d = ex_add(ex_mul(d, x), v);
		v = ex_add(ex_mul(v, x), c[i]);
	}
	*derivative = d;
	return v;
}

ex_id ex_fn1(struct ex_tape *t, const char *name, ex_id a)
{
	uint64_t h = ex_hash_text(name), c[4], v, d;

	for (int i = 0; i < 4; i++)
		c[i] = ex_hash(h, (uint64_t)i);
	v = horner(c, 3, t->node[a].v, &d);
	return ex_push(t, (struct ex_node){v, {d, 0}, {a, 0, 0}});
}

/* sum of c_ij a^i b^j, i and j up to 2: a polynomial in a whose coefficients are polynomials in b. */
ex_id ex_fn2(struct ex_tape *t, const char *name, ex_id a, ex_id b)
{
	uint64_t h = ex_hash_text(name), in_b[3], slope[3], v, by_a, by_b, unused;

	for (int i = 0; i < 3; i++) {
		uint64_t c[3];

		for (int j = 0; j < 3; j++)
			c[j] = ex_hash(h, (uint64_t)(4 + 3 * i + j));
		in_b[i] = horner(c, 2, t->node[b].v, &slope[i]);
	}
	v = horner(in_b, 2, t->node[a].v, &by_a);
	by_b = horner(slope, 2, t->node[a].v, &unused);
	return ex_push(t, (struct ex_node){v, {by_a, by_b}, {a, b, 0}});
}

bool ex_less(const struct ex_tape *t, ex_id a, ex_id b)
{
	return t->node[a].v < t->node[b].v;
}

void ex_tape_begin_back(struct ex_tape *t)
{
	t->grad = AP_NEW_N(t->arena, uint64_t, t->n);
}

void ex_tape_back(struct ex_tape *t, uint32_t from, uint32_t to)
{
	for (uint32_t i = to; i-- > from;) {
		const struct ex_node *n = &t->node[i];
		uint64_t g = t->grad[i];

		if (g == 0)
			continue;
		for (int k = 0; k < 2; k++)
			if (n->up[k])
				ex_tape_seed(t, n->up[k], ex_mul(g, n->d[k]));
		if (n->up[2])
			ex_tape_seed(t, n->up[2], g);
	}
}

uint64_t ex_tape_grad(const struct ex_tape *t, ex_id a)
{
	return t->grad[a];
}
