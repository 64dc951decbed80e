/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/reshard_unify.h"

#include <assert.h>
#include <string.h>

#include "base/num.h"
#include "base/vec.h"

/* A tensor dimension that lies differently in the two layouts. */
struct change {
	struct ap_cut_dim side[2];
	uint8_t dim;
};

struct changes {
	int n;
	struct change v[AP_MAX_RANK];
};

static void find_changes(const struct ap_layout *a, const struct ap_layout *b, struct changes *out)
{
	out->n = 0;
	for (int d = 0; d < a->rank; d++) {
		const struct ap_cut_dim x = a->dim[d], y = b->dim[d];

		if (x.cut != y.cut || x.stride != y.stride)
			out->v[out->n++] = (struct change){{x, y}, (uint8_t)d};
	}
}

struct chain { /* numbers that divide one another, ascending */
	int n;
	int32_t v[AP_MAX_CHAIN];
};

/* Adds v unless it is there; false where it and a neighbour do not divide. */
static bool chain_add(struct chain *c, int32_t v)
{
	int at = c->n;

	while (at > 0 && c->v[at - 1] > v)
		at--;
	if (at > 0 && c->v[at - 1] == v)
		return true;
	if ((at > 0 && v % c->v[at - 1]) || (at < c->n && c->v[at] % v))
		return false;
	assert(c->n < AP_MAX_CHAIN);
	for (int i = c->n++; i > at; i--)
		c->v[i] = c->v[i - 1];
	c->v[at] = v;
	return true;
}

struct boundaries {
	struct chain dev; /* where axes begin and end, as strides */
	struct chain parts[AP_MAX_RANK]; /* per change, prefix products of its parts */
};

static bool outer_boundaries(struct boundaries *b, const struct changes *changes)
{
	b->dev.n = 0;
	for (int i = 0; i < changes->n; i++) {
		b->parts[i].n = 0;
		for (int s = 0; s < 2; s++) {
			const struct ap_cut_dim *axis = &changes->v[i].side[s];

			if (axis->cut > 1 && (!chain_add(&b->parts[i], axis->cut) ||
				!chain_add(&b->dev, axis->stride) ||
				!chain_add(&b->dev, axis->stride * axis->cut)))
				return false;
		}
	}
	return true;
}

/* An axis that the device matrix divides further cuts its dimension in as many steps. */
static bool refine_parts(const struct chain *dev, struct chain *parts,
	const struct ap_cut_dim *axis)
{
	int32_t end = axis->stride * axis->cut;

	for (int i = 0; i < dev->n && dev->v[i] < end; i++)
		if (dev->v[i] > axis->stride && !chain_add(parts, end / dev->v[i]))
			return false;
	return true;
}

/* And a dimension that is cut in steps divides its axis. */
static bool refine_dev(struct chain *dev, const struct chain *parts, const struct ap_cut_dim *axis)
{
	for (int i = 0; i < parts->n && parts->v[i] < axis->cut; i++)
		if (!chain_add(dev, axis->stride * (axis->cut / parts->v[i])))
			return false;
	return true;
}

static bool refine(struct boundaries *b, const struct changes *changes)
{
	for (int i = 0; i < changes->n; i++) {
		const struct ap_cut_dim *side = changes->v[i].side;

		if (!refine_parts(&b->dev, &b->parts[i], &side[0]) ||
			!refine_parts(&b->dev, &b->parts[i], &side[1]) ||
			!refine_dev(&b->dev, &b->parts[i], &side[0]) ||
			!refine_dev(&b->dev, &b->parts[i], &side[1]))
			return false;
	}
	return true;
}

/* The part of an axis that ends with this prefix product, as a bit; 0 where it does not reach. */
static uint32_t axis_at(const struct chain *dev, const struct ap_cut_dim *axis, int32_t product)
{
	int number = 0;

	if (product > axis->cut)
		return 0;
	while (dev->v[number] != axis->stride * (axis->cut / product))
		number++;
	return 1u << number;
}

static void add_sub(struct ap_unified *u, int32_t size, uint32_t in, uint32_t out, uint32_t dim)
{
	assert(u->n < AP_MAX_SUBS);
	u->sub[u->n++] = (struct ap_sub){size, in, out, dim};
	u->in |= in;
	u->out |= out;
}

static bool unify_any(const struct ap_layout *a, const struct ap_layout *b, struct ap_unified *out)
{
	struct boundaries bs;
	struct changes changes;
	int before;

	find_changes(a, b, &changes);
	if (!outer_boundaries(&bs, &changes))
		return false;
	do {
		before = bs.dev.n;
		if (!refine(&bs, &changes))
			return false;
	} while (bs.dev.n > before);
	for (int i = 0; i < changes.n; i++) {
		const struct change *c = &changes.v[i];
		int32_t outer = 1;

		for (int k = 0; k < bs.parts[i].n; k++) {
			int32_t product = bs.parts[i].v[k];

			add_sub(out, product / outer, axis_at(&bs.dev, &c->side[0], product),
				axis_at(&bs.dev, &c->side[1], product), c->dim);
			outer = product;
		}
	}
	memcpy(out->own_stride, bs.dev.v, (size_t)bs.dev.n * sizeof *out->own_stride);
	out->stride = out->own_stride;
	return true;
}

/*
 * The same for powers of two, many times as fast: they always divide one another, and a set of them is an
 * integer. The prefix products of a dimension are the boundaries of an axis that cuts it, shifted to where
 * that starts.
 */
struct pair {
	const struct ap_reshard_axis *a, *b; /* of one dimension */
	uint32_t parts; /* prefix products */
	uint32_t dim;
};

static int find_pairs(const struct ap_reshard_end *a, const struct ap_reshard_end *b, struct pair *out)
{
	int n = 0;

	for (int d = 0; d < a->layout.rank; d++) {
		const struct ap_reshard_axis *x = &a->dim[d], *y = &b->dim[d];

		if (x->ends == y->ends)
			continue;
		out[n++] = (struct pair){x, y, (x->ends >> x->start | y->ends >> y->start) & ~1u,
			(uint32_t)d};
	}
	return n;
}

/* Where an axis is divided its dimension is, and the other way round. Returns where axes begin and
 * end. */
static uint32_t divide(struct pair *v, int n)
{
	uint32_t dev = 0, before;

	for (int i = 0; i < n; i++)
		dev |= v[i].a->ends | v[i].b->ends;
	do {
		before = dev;
		for (struct pair *p = v; p < v + n; p++) {
			const struct ap_reshard_axis *a = p->a, *b = p->b;
			uint32_t parts = p->parts | (dev & a->inside) >> a->start |
				(dev & b->inside) >> b->start;

			dev |= (parts << a->start & a->inside) | (parts << b->start & b->inside);
			p->parts = parts;
		}
	} while (dev != before);
	return dev;
}

/* The bit of an axis is where it ends. */
static struct ap_sub *add_subs(struct ap_sub *sub, const struct pair *p)
{
	const struct ap_reshard_axis a = *p->a, b = *p->b;
	int outer = 0;

	for (uint32_t rest = p->parts; rest; rest &= rest - 1) {
		uint32_t product = rest & -rest;
		int log = ap_lowest_bit(rest);

		*sub++ = (struct ap_sub){1 << (log - outer), product << a.start & a.parts,
			product << b.start & b.parts, p->dim};
		outer = log;
	}
	return sub;
}

static void unify_binary(const struct ap_reshard_end *a, const struct ap_reshard_end *b,
	struct ap_unified *out)
{
	static const int32_t stride[] = {1 << 20, 1 << 19, 1 << 18, 1 << 17, 1 << 16, 1 << 15, 1 << 14,
		1 << 13, 1 << 12, 1 << 11, 1 << 10, 1 << 9, 1 << 8, 1 << 7, 1 << 6, 1 << 5, 1 << 4,
		1 << 3, 1 << 2, 1 << 1, 1};
	struct pair pairs[AP_MAX_RANK];
	int n = find_pairs(a, b, pairs);
	struct ap_sub *sub = out->sub;
	uint32_t from = 0, to = 0, dev;

	static_assert(AP_COUNT(stride) == AP_MAX_CHAIN, "a stride for each boundary");
	dev = divide(pairs, n);
	for (int i = 0; i < n; i++) {
		sub = add_subs(sub, &pairs[i]);
		from |= dev & pairs[i].a->parts;
		to |= dev & pairs[i].b->parts;
	}
	out->n = (int)(sub - out->sub);
	out->in = from;
	out->out = to;
	assert(out->n <= AP_MAX_SUBS);
	out->stride = stride;
}

/* Is every dimension that lies differently cut by powers of two? */
static bool is_binary(const struct ap_reshard_end *a, const struct ap_reshard_end *b)
{
	for (uint32_t rest = a->other | b->other; rest; rest &= rest - 1) {
		int d = ap_lowest_bit(rest);

		if (a->layout.dim[d].cut != b->layout.dim[d].cut ||
			a->layout.dim[d].stride != b->layout.dim[d].stride)
			return false;
	}
	return true;
}

bool ap_reshard_unify(const struct ap_reshard_end *a, const struct ap_reshard_end *b,
	struct ap_unified *out)
{
	out->n = 0;
	out->in = out->out = 0;
	if (!is_binary(a, b))
		return unify_any(&a->layout, &b->layout, out);
	unify_binary(a, b, out);
	return true;
}
