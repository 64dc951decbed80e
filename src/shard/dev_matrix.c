/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/layout.h"

#include <assert.h>

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

/* Number from the right of a factor's axis. */
static int32_t axis_number(const struct ap_placement *p, int factor, bool raw)
{
	const struct ap_bound *b = p->bound;
	int32_t number = p->repeat > 1 && !p->left;

	for (int i = b->ndev; b->dev[--i] != factor;)
		number += raw || p->count[b->dev[i]] > 1;
	return number;
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
		if (raw || ncut)
			map[d] = axis_number(p, factor, raw);
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
