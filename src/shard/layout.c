/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/layout.h"

#include <assert.h>
#include <string.h>

#include "hw/group.h"

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
		assert(count[f] >= 1);
		out->count[f] = count[f];
		parts *= count[f];
	}
	assert(ndev % parts == 0);
	out->repeat = (int32_t)(ndev / parts);
	out->left = out->repeat > 1 && repeats_left(b, count);
	out->dealt = ap_rule_dealt(b, count);
	if (out->repeat > 1)
		out->repeat_stride = out->left ? (int32_t)parts : 1;

	stride = out->left ? 1 : out->repeat;
	for (int i = b->ndev; i-- > 0;) {
		int f = b->dev[i];

		out->stride[f] = count[f] > 1 ? (int32_t)stride : 0;
		stride *= count[f];
	}
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
