/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of another size: by the nearest point, or between the points around. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

/* A place between two points, num / den of the way from the first. */
struct place {
	int64_t first, second, num, den;
};

/* Point i of `out` in a row of `in` points. */
static struct place place_of(const struct ex_job *j, int64_t i, int64_t in, int64_t out)
{
	bool corners = ap_attr_bool(j->attrs, "align_corners", false);
	bool centers = ap_attr_bool(j->attrs, "half_pixel_centers", false);
	struct place p = {.num = i * in, .den = out};

	if (corners) {
		p.num = i * (in - 1);
		p.den = out > 1 ? out - 1 : 1;
	} else if (centers) {
		p.num = (2 * i + 1) * in - out;
		p.num = p.num < 0 ? 0 : p.num;
		p.den = 2 * out;
	}
	p.first = p.num / p.den;
	p.second = p.first + 1 < in ? p.first + 1 : p.first;
	p.num %= p.den;
	return p;
}

static int64_t nearest(const struct ex_job *j, int64_t i, int64_t in, int64_t out)
{
	struct place p = place_of(j, i, in, out);

	if (ap_attr_bool(j->attrs, "align_corners", false))
		return 2 * p.num >= p.den ? p.second : p.first;
	if (ap_attr_bool(j->attrs, "half_pixel_centers", false))
		return (2 * i + 1) * in / (2 * out);
	return p.first;
}

static ex_id between(const struct ex_job *j, const struct place *p, ex_id a, ex_id b)
{
	uint64_t w = ex_mul((uint64_t)p->num, ex_inverse((uint64_t)p->den));

	return ex_plus(j->tape, ex_scale(j->tape, a, ex_sub(1, w)), ex_scale(j->tape, b, w));
}

static ex_id point(const struct ex_job *j, const int64_t *at, int64_t y, int64_t x)
{
	return ex_get(&j->in[0], (const int64_t[AP_MAX_RANK]){at[0], at[1], y, x});
}

static ex_id linear_at(const struct ex_job *j, const int64_t *at)
{
	const int64_t *in = j->in[0].box.size, *out = j->out[0].box.size;
	struct place y = place_of(j, at[2], in[2], out[2]), x = place_of(j, at[3], in[3], out[3]);
	ex_id above = between(j, &x, point(j, at, y.first, x.first), point(j, at, y.first, x.second));
	ex_id below = between(j, &x, point(j, at, y.second, x.first), point(j, at, y.second, x.second));

	return between(j, &y, above, below);
}

static bool resize(const struct ex_job *j)
{
	const struct ex_box *in = &j->in[0].box, *out = &j->out[0].box;
	bool linear = ex_begins(j, "ResizeBilinear");
	int64_t at[AP_MAX_RANK] = {0};

	if (in->size[0] != out->size[0] || in->size[1] != out->size[1])
		return false;
	do
		ex_put(&j->out[0], at, linear ? linear_at(j, at) : point(j, at,
			nearest(j, at[2], in->size[2], out->size[2]),
			nearest(j, at[3], in->size[3], out->size[3])));
	while (ex_step(out, at));
	return true;
}

#define RESIZE(name) \
	{.type = name, .forward = resize, .make = ex_make_resize, .no_grad = 2}

const struct ex_kernel ex_kernels_resize[] = {
	RESIZE("ResizeBilinearV2"), RESIZE("ResizeNearestNeighbor"),
	{0}
};
