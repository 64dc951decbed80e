/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/reshard_unify.h"

#include <assert.h>

/* A tensor dimension that lies differently in the two layouts. */
struct change {
	struct ap_cut_dim side[2];
	uint8_t dim;
};

struct changes {
	int n;
	struct change v[AP_MAX_RANK];
	bool binary; /* all cuts and strides are powers of two */
};

static void find_changes(const struct ap_layout *a, const struct ap_layout *b, struct changes *out)
{
	int32_t other = 0;

	out->n = 0;
	for (int d = 0; d < a->rank; d++) {
		const struct ap_cut_dim x = a->dim[d], y = b->dim[d];

		if (x.cut == y.cut && x.stride == y.stride)
			continue;
		out->v[out->n++] = (struct change){{x, y}, (uint8_t)d};
		other |= (x.cut & (x.cut - 1)) | (y.cut & (y.cut - 1));
		other |= (x.stride & (x.stride - 1)) | (y.stride & (y.stride - 1));
	}
	out->binary = !other;
}

/* Stride of the part of an axis that ends with this prefix product; 0 where it does not reach. */
static int32_t stride_at(const struct ap_cut_dim *axis, int32_t product)
{
	return product > axis->cut ? 0 : axis->stride * (axis->cut / product);
}

/* Adds the sub-dimension of a change between two prefix products of its parts. */
static void add_sub(struct ap_unified *u, const struct change *c, int32_t outer, int32_t product)
{
	assert(u->n < AP_MAX_SUBS);
	u->sub[u->n++] = (struct ap_sub){.size = product / outer,
		.in = stride_at(&c->side[0], product),
		.out = stride_at(&c->side[1], product),
		.dim = c->dim};
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

static bool unify_any(const struct changes *changes, struct ap_unified *out)
{
	struct boundaries b;
	int before;

	if (!outer_boundaries(&b, changes))
		return false;
	do {
		before = b.dev.n;
		if (!refine(&b, changes))
			return false;
	} while (b.dev.n > before);
	for (int i = 0; i < changes->n; i++) {
		int32_t outer = 1;

		for (int k = 0; k < b.parts[i].n; k++) {
			add_sub(out, &changes->v[i], outer, b.parts[i].v[k]);
			outer = b.parts[i].v[k];
		}
	}
	return true;
}

/*
 * The same for powers of two, several times as fast: they always divide one another, and a set of
 * them is an integer, their sum. Boundaries of axes are counted from the outermost rank here: the
 * parts of an axis that starts at s have theirs at s times their prefix products.
 */
static void unify_binary(const struct changes *changes, struct ap_unified *out)
{
	const uint32_t ranks = 1u << 30; /* any power of two that no stride exceeds */
	uint32_t start[2 * AP_MAX_RANK], cut[2 * AP_MAX_RANK], parts[AP_MAX_RANK] = {0};
	uint32_t dev = 0, before;

	for (int i = 0; i < 2 * changes->n; i++) {
		const struct ap_cut_dim *axis = &changes->v[i / 2].side[i % 2];

		cut[i] = (uint32_t)axis->cut;
		start[i] = axis->cut > 1 ? ranks / (uint32_t)(axis->stride * axis->cut) : 1;
		parts[i / 2] |= cut[i] & ~1u;
		dev |= start[i] | start[i] * cut[i];
	}
	do {
		before = dev;
		for (int i = 0; i < 2 * changes->n; i++) {
			uint32_t inside = dev & (start[i] * cut[i] - 1) & ~(2 * start[i] - 1);

			if (inside)
				parts[i / 2] |= inside / start[i];
		}
		for (int i = 0; i < 2 * changes->n; i++)
			dev |= (parts[i / 2] & (cut[i] - 1)) * start[i];
	} while (dev != before);
	for (int i = 0; i < changes->n; i++) {
		uint32_t outer = 1, rest = parts[i];

		for (; rest; rest &= rest - 1) {
			uint32_t product = rest & ~(rest - 1);

			add_sub(out, &changes->v[i], (int32_t)outer, (int32_t)product);
			outer = product;
		}
	}
}

bool ap_reshard_unify(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	struct ap_unified *out)
{
	struct changes changes;
	int first = 0;

	out->n = 0;
	find_changes(a, b, &changes);
	if (changes.binary)
		unify_binary(&changes, out);
	else if (!unify_any(&changes, out))
		return false;
	while (first < a->rank && size[first] == 1)
		first++;
	if (out->n)
		out->sub[0].first = out->sub[0].dim == first;
	return true;
}
