/* SPDX-License-Identifier: Apache-2.0 */
#include "layouts.h"

#include "base/num.h"

static int64_t part_of(const struct ap_cut_dim *dim, int64_t rank)
{
	return dim->cut == 1 ? 0 : rank / dim->stride % dim->cut;
}

bool layouts_nested(const struct ap_layout *a, const struct ap_layout *b, int64_t ndev)
{
	for (int d = 0; d < a->rank; d++) {
		if (b->dim[d].cut % a->dim[d].cut)
			return false;
		for (int64_t r = 0; r < ndev; r++)
			if (part_of(&b->dim[d], r) / (b->dim[d].cut / a->dim[d].cut) !=
				part_of(&a->dim[d], r))
				return false;
	}
	return true;
}

void layouts_sizes(const struct ap_layout *a, const struct ap_layout *b, int spare, int64_t *size)
{
	for (int d = 0; d < a->rank; d++) {
		int64_t x = a->dim[d].cut, y = b->dim[d].cut;

		size[d] = x / ap_gcd(x, y) * y * (spare >> d & 1 ? 2 : 1);
	}
}

static bool apart(const struct ap_cut_dim *x, const struct ap_cut_dim *y)
{
	return x->cut == 1 || y->cut == 1 || x->stride % (y->stride * y->cut) == 0 ||
		y->stride % (x->stride * x->cut) == 0;
}

static bool is_layout(const struct ap_layout *l)
{
	for (int d = 0; d < l->rank; d++)
		for (int e = 0; e < d; e++)
			if (!apart(&l->dim[d], &l->dim[e]))
				return false;
	return true;
}

int layouts_all(int rank, int64_t ndev, struct ap_layout *out, int cap)
{
	struct ap_cut_dim axis[64] = {{1, 0}};
	int naxis = 1, n = 0, at[AP_MAX_RANK] = {0}, d;

	for (int32_t stride = 1; stride < ndev; stride++)
		for (int32_t end = 2 * stride; end <= ndev; end += stride)
			if (ndev % end == 0)
				axis[naxis++] = (struct ap_cut_dim){end / stride, stride};
	do {
		struct ap_layout l = {.rank = rank};

		for (d = 0; d < rank; d++)
			l.dim[d] = axis[at[d]];
		if (is_layout(&l) && n < cap)
			out[n++] = l;
		for (d = 0; d < rank && ++at[d] == naxis; d++)
			at[d] = 0;
	} while (d < rank);
	return n;
}

struct ap_layout layouts_random(int rank, int64_t ndev, uint64_t *seed)
{
	struct ap_layout l = {.rank = rank};
	int64_t stride = 1;

	for (int d = 0; d < rank; d++)
		l.dim[d].cut = 1;
	while (stride < ndev) {
		int64_t divisors[256];
		size_t n = ap_divisors(ndev / stride, divisors, 256);
		int64_t cut = divisors[random_next(seed) % n];
		struct ap_cut_dim *dim = &l.dim[random_next(seed) % (uint64_t)rank];

		if (cut > 1 && dim->cut == 1 && random_next(seed) % 4)
			*dim = (struct ap_cut_dim){(int32_t)cut, (int32_t)stride};
		stride *= cut;
	}
	return l;
}
