/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/reshard_unify.h"

#include <assert.h>

struct chain { /* ascending */
	int n;
	int32_t v[AP_MAX_CHAIN];
};

/* Adds v unless it is there; false where it and a neighbour do not divide. */
static bool chain_add(struct chain *c, int32_t v)
{
	int at = c->n;

	while (at > 0 && c->v[at - 1] > v)
		at--;
	if (at > 0 && (c->v[at - 1] == v || v % c->v[at - 1]))
		return c->v[at - 1] == v;
	if (at < c->n && c->v[at] % v)
		return false;
	assert(c->n < AP_MAX_CHAIN);
	for (int i = c->n++; i > at; i--)
		c->v[i] = c->v[i - 1];
	c->v[at] = v;
	return true;
}

/* A tensor dimension that lies differently in the two layouts. */
struct change {
	struct ap_cut_dim side[2];
	uint8_t dim;
	struct chain cut; /* prefix products of its parts */
};

struct unify {
	struct chain dev; /* where axes begin and end, as strides */
	int n;
	struct change change[AP_MAX_RANK];
};

static bool start(struct unify *u, const struct ap_layout *a, const struct ap_layout *b)
{
	u->n = 0;
	u->dev.n = 0;
	for (int d = 0; d < a->rank; d++) {
		struct change *c = &u->change[u->n];

		if (a->dim[d].cut == b->dim[d].cut && a->dim[d].stride == b->dim[d].stride)
			continue;
		u->n++;
		c->dim = (uint8_t)d;
		c->side[0] = a->dim[d];
		c->side[1] = b->dim[d];
		c->cut.n = 0;
		for (int s = 0; s < 2; s++)
			if (c->side[s].cut > 1 && (!chain_add(&c->cut, c->side[s].cut) ||
				!chain_add(&u->dev, c->side[s].stride) ||
				!chain_add(&u->dev, c->side[s].stride * c->side[s].cut)))
				return false;
	}
	return true;
}

/* An axis that the device matrix divides further cuts the dimension in as many steps. */
static bool refine_dim(const struct chain *dev, struct chain *cut, const struct ap_cut_dim *axis)
{
	int32_t end = axis->stride * axis->cut;

	for (int i = 0; i < dev->n && dev->v[i] < end; i++)
		if (dev->v[i] > axis->stride && !chain_add(cut, end / dev->v[i]))
			return false;
	return true;
}

/* And a dimension that is cut in steps divides its axis. */
static bool refine_dev(struct chain *dev, const struct chain *cut, const struct ap_cut_dim *axis)
{
	for (int i = 0; i < cut->n && cut->v[i] < axis->cut; i++)
		if (!chain_add(dev, axis->stride * (axis->cut / cut->v[i])))
			return false;
	return true;
}

static bool refine(struct unify *u)
{
	int before;

	do {
		before = u->dev.n;
		for (struct change *c = u->change; c < u->change + u->n; c++)
			if (!refine_dim(&u->dev, &c->cut, &c->side[0]) ||
				!refine_dim(&u->dev, &c->cut, &c->side[1]) ||
				!refine_dev(&u->dev, &c->cut, &c->side[0]) ||
				!refine_dev(&u->dev, &c->cut, &c->side[1]))
				return false;
	} while (u->dev.n > before);
	return true;
}

/* Stride of the part of the axis that ends with this prefix product, 0 where it is not cut so far. */
static int32_t stride_at(const struct ap_cut_dim *axis, int32_t product)
{
	return product > axis->cut ? 0 : axis->stride * (axis->cut / product);
}

static void expand(const struct change *c, bool first, struct ap_unified *out)
{
	int32_t outer = 1;

	for (int i = 0; i < c->cut.n; i++) {
		int32_t product = c->cut.v[i];

		assert(out->n < AP_MAX_SUBS);
		out->sub[out->n++] = (struct ap_sub){.size = product / outer,
			.in = stride_at(&c->side[0], product),
			.out = stride_at(&c->side[1], product),
			.dim = c->dim,
			.first = first && i == 0};
		outer = product;
	}
}

bool ap_reshard_unify(const struct ap_layout *a, const struct ap_layout *b, const int64_t *size,
	struct ap_unified *out)
{
	struct unify u;
	int first = 0;

	out->n = 0;
	if (!start(&u, a, b) || !refine(&u))
		return false;
	while (first < a->rank && size[first] == 1)
		first++;
	for (int i = 0; i < u.n; i++)
		expand(&u.change[i], u.change[i].dim == first, out);
	return true;
}
