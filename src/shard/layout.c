/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/layout.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "hw/group.h"
#include "rule/deal.h"

static void arrange(const struct ap_placement *p, bool raw, struct ap_dev_matrix *out)
{
	const struct ap_bound *b = p->bound;

	out->n = 0;
	if (p->left)
		out->axis[out->n++] = p->repeat;
	for (int i = 0; i < b->ndev; i++)
		if (raw || p->count[b->dev[i]] > 1)
			out->axis[out->n++] = p->count[b->dev[i]];
	if (p->repeat > 1 && !p->left)
		out->axis[out->n++] = p->repeat;
	if (!out->n)
		out->axis[out->n++] = 1;
}

void ap_dev_matrix_raw(const struct ap_placement *p, struct ap_dev_matrix *out)
{
	arrange(p, true, out);
}

void ap_dev_matrix_standard(const struct ap_placement *p, struct ap_dev_matrix *out)
{
	arrange(p, false, out);
}

/* Is dev the raw form? Where the two forms are one, so are the maps; [1] counts as standard. */
static bool is_raw(const struct ap_placement *p, const struct ap_dev_matrix *dev)
{
	bool one = dev->n == 1 && dev->axis[0] == 1;

	return dev->n == p->bound->ndev + (p->repeat > 1) && !one;
}

/* The outermost cut factor of a dimension, else its outermost one; *ncut of them are cut. */
static int leading_factor(const struct ap_placement *p, const struct ap_operand *t,
	const struct ap_dim *dim, int *ncut)
{
	int leading = dim->factor[0];

	*ncut = 0;
	for (int i = dim->n; i-- > 0;)
		if (ap_placement_parts(p, t, dim->factor[i]) > 1) {
			leading = dim->factor[i];
			++*ncut;
		}
	return leading;
}

bool ap_tensor_map(const struct ap_placement *p, const struct ap_operand *t,
	const struct ap_dev_matrix *dev, int32_t map[AP_MAX_RANK])
{
	bool raw = is_raw(p, dev), single = true;

	for (int d = 0; d < t->rank; d++) {
		int ncut, factor;

		map[d] = -1;
		if (!t->dim[d].n)
			continue;
		factor = leading_factor(p, t, &t->dim[d], &ncut);
		single = single && ncut <= 1;
		if (raw || ncut) {
			const struct ap_bound *b = p->bound;
			int32_t number = p->repeat > 1 && !p->left;

			/* Number from the right of a factor's axis. */
			for (int i = b->ndev; b->dev[--i] != factor;)
				number += raw || p->count[b->dev[i]] > 1;
			map[d] = number;
		}
	}
	return single;
}

/* Puts v into the ascending list of n values unless it is there; returns the new length. */
static int insert(int64_t *list, int n, int64_t v)
{
	int at = n;

	while (at > 0 && list[at - 1] >= v)
		at--;
	if (at < n && list[at] == v)
		return n;
	for (int i = n; i > at; i--)
		list[i] = list[i - 1];
	list[at] = v;
	return n + 1;
}

void ap_layout_dev_matrix(const struct ap_layout *l, int64_t ndev, struct ap_dev_matrix *dev,
	int32_t map[AP_MAX_RANK])
{
	int64_t bound[2 * AP_MAX_RANK + 2] = {1};
	int n = insert(bound, 1, ndev);

	for (int d = 0; d < l->rank; d++)
		if (l->dim[d].cut > 1) {
			n = insert(bound, n, l->dim[d].stride);
			n = insert(bound, n, (int64_t)l->dim[d].stride * l->dim[d].cut);
		}

	dev->n = n > 1 ? n - 1 : 1;
	dev->axis[0] = 1;
	for (int i = 0; i + 1 < n; i++) {
		assert(bound[i + 1] % bound[i] == 0);
		dev->axis[n - 2 - i] = (int32_t)(bound[i + 1] / bound[i]);
	}
	for (int d = 0; d < l->rank; d++) {
		map[d] = -1;
		for (int i = 0; l->dim[d].cut > 1 && i + 1 < n; i++)
			if (bound[i] == l->dim[d].stride)
				map[d] = i;
	}
}

bool ap_layout_equal(const struct ap_layout *a, const struct ap_layout *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

bool ap_layout_is_whole(const struct ap_layout *l)
{
	return ap_layout_parts(l) == 1;
}

int64_t ap_layout_parts(const struct ap_layout *l)
{
	int64_t parts = 1;

	for (int d = 0; d < l->rank; d++)
		parts *= l->dim[d].cut;
	return parts;
}

void ap_layout_slice(const struct ap_layout *l, const int64_t *size, int64_t *slice)
{
	for (int d = 0; d < l->rank; d++) {
		assert(size[d] % l->dim[d].cut == 0);
		slice[d] = size[d] / l->dim[d].cut;
	}
}

static bool repeats_left(const struct ap_bound *b, const int32_t *count)
{
	if (b->left == UINT32_MAX)
		return true;
	for (int f = 0; f < b->nfactor; f++)
		if (b->left >> f & 1 && count[f] > 1)
			return true;
	return false;
}

void ap_placement_make(const struct ap_bound *b, const int32_t *count, int64_t ndev,
	struct ap_placement *out)
{
	int64_t parts = 1, stride;

	*out = (struct ap_placement){.bound = b, .ndev = ndev};
	for (int f = 0; f < b->nfactor; f++) {
		assert(count[f] >= 1 || ap_rule_asks(b, count, f));
		out->count[f] = ap_rule_parts(count[f]);
		parts *= out->count[f];
	}
	assert(ndev % parts == 0);
	out->repeat = (int32_t)(ndev / parts);
	out->left = out->repeat > 1 && repeats_left(b, out->count);
	out->dealt = ap_rule_dealt(b, count);
	if (out->repeat > 1)
		out->repeat_stride = out->left ? (int32_t)parts : 1;

	stride = out->left ? 1 : out->repeat;
	for (int i = b->ndev; i-- > 0;) {
		int f = b->dev[i];

		out->stride[f] = out->count[f] > 1 ? (int32_t)stride : 0;
		stride *= out->count[f];
	}
}

const int32_t *ap_placement_counts(struct ap_arena *arena, const struct ap_placement *p)
{
	int32_t *asking;

	if (ap_rule_dealt(p->bound, p->count) == p->dealt)
		return p->count;
	asking = ap_arena_memdup(arena, p->count, sizeof p->count);
	for (int f = 0; f < p->bound->nfactor; f++)
		if (p->dealt >> f & 1)
			asking[f] = -asking[f];
	return asking;
}

/* The axis of a dimension's factors, outer first; false where they form more than one. */
static bool compose(const struct ap_placement *p, const struct ap_operand *t, const struct ap_dim *dim,
	struct ap_cut_dim *out)
{
	*out = (struct ap_cut_dim){.cut = 1};
	for (int i = 0; i < dim->n; i++) {
		int f = dim->factor[i];

		if (ap_placement_parts(p, t, f) == 1)
			continue;
		if (out->cut > 1 && out->stride != (int64_t)p->stride[f] * p->count[f])
			return false;
		out->cut *= p->count[f];
		out->stride = p->stride[f];
	}
	return true;
}

bool ap_layout_make(const struct ap_placement *p, const struct ap_operand *t,
	struct ap_layout *out)
{
	memset(out, 0, sizeof *out);
	out->rank = t->rank;
	for (int d = 0; d < t->rank; d++)
		if (!compose(p, t, &t->dim[d], &out->dim[d]))
			return false;
	return true;
}

void ap_placement_axes(const struct ap_placement *p, uint32_t mask, bool with_repeat,
	struct ap_axes *out)
{
	out->n = 0;
	for (int f = 0; f < p->bound->nfactor; f++)
		if (mask >> f & 1 && p->count[f] > 1)
			ap_axes_add(out, (struct ap_axis){p->stride[f], p->count[f]});
	if (with_repeat && p->repeat > 1)
		ap_axes_add(out, (struct ap_axis){p->repeat_stride, p->repeat});
}

void ap_placement_replicas(const struct ap_placement *p, const struct ap_operand *t,
	struct ap_axes *out)
{
	ap_placement_axes(p, ~t->factors, true, out);
}

void ap_strategy_vector(const struct ap_placement *p, const struct ap_operand *t,
	int32_t cut[AP_MAX_RANK])
{
	for (int d = 0; d < t->rank; d++) {
		cut[d] = 1;
		for (int i = 0; i < t->dim[d].n; i++)
			cut[d] *= ap_placement_parts(p, t, t->dim[d].factor[i]);
	}
}
