/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transforms along dimensions: each number is a fixed sum of all of its line. What the factors are
 * follows from the type, the length and the places alone.
 */
#include <string.h>

#include "base/arena.h"
#include "rule/attr.h"
#include "kern_parts.h"
#include "make_parts.h"

struct dims {
	int n, at[AP_MAX_RANK];
};

static const struct ap_attr *listed(const struct ex_job *j, const char *name)
{
	const struct ap_attr *a = ap_attr_get(j->attrs, name);

	return a && (a->type == AP_ATTR_INT || a->n > 0) ? a : NULL;
}

static int64_t value_at(const struct ap_attr *a, int i)
{
	return a->type == AP_ATTR_INT ? a->i : a->list[i];
}

static int count_of(const struct ap_attr *a)
{
	return a->type == AP_ATTR_INT ? 1 : (int)a->n;
}

static const struct ap_attr *lengths_of(const struct ex_job *j)
{
	const struct ap_attr *n = listed(j, "n");

	return n ? n : listed(j, "s");
}

/* Named, or the last ones: one, two, or as many as there are lengths or dimensions. */
static struct dims dims_of(const struct ex_job *j)
{
	static const char *const names[] = {"dim", "axis", "axes"};
	const struct ap_attr *a = NULL, *lengths = lengths_of(j);
	int rank = j->in[0].box.rank;
	struct dims d = {ex_ends(j, "2") ? 2 : 1, {0}};

	if (ex_ends(j, "N"))
		d.n = lengths ? count_of(lengths) : rank;
	for (int i = 0; i < 3 && !a; i++)
		a = listed(j, names[i]);
	if (a)
		d.n = count_of(a);
	for (int i = 0; i < d.n; i++) {
		d.at[i] = a ? (int)value_at(a, i) : i - d.n;
		d.at[i] += d.at[i] < 0 ? rank : 0;
	}
	return d;
}

static uint64_t factor(const struct ex_job *j, int64_t n, int64_t from, int64_t to)
{
	uint64_t seed = ex_hash_text(j->type) ^ ex_hash_text(ap_attr_str(j->attrs, "norm", "backward"));

	return ex_hash(seed + (uint64_t)n, (uint64_t)(from * 4096 + to));
}

/* Lines of length n, of which `keep` numbers are made; what a line lacks is zero. */
static struct ex_value along(const struct ex_job *j, const struct ex_value *in, int dim, int64_t n,
	int64_t keep)
{
	struct ex_value out = {.box = in->box};
	int64_t at[AP_MAX_RANK] = {0}, own[AP_MAX_RANK];
	int64_t length = in->box.size[dim] < n ? in->box.size[dim] : n;

	out.box.size[dim] = keep;
	out.id = AP_NEW_N(j->arena, ex_id, ex_count(&out.box));
	do {
		ex_id sum = 0;

		memcpy(own, at, sizeof own);
		for (int64_t i = 0; i < length; i++) {
			own[dim] = i;
			sum = ex_plus(j->tape, sum, ex_scale(j->tape, ex_get(in, own),
				factor(j, n, i, at[dim])));
		}
		ex_put(&out, at, sum);
	} while (ex_step(&out.box, at));
	return out;
}

static bool transform(const struct ex_job *j)
{
	bool half = ex_begins(j, "RFFT") || ex_begins(j, "IHFFT");
	bool doubled = ex_begins(j, "IRFFT") || ex_begins(j, "HFFT");
	const struct ap_attr *lengths = lengths_of(j);
	struct dims d = dims_of(j);
	struct ex_value v = j->in[0];

	for (int i = 0; i < d.n; i++) {
		int64_t size = v.box.size[d.at[i]], n = size;
		bool last = i + 1 == d.n;

		if (lengths)
			n = value_at(lengths, i);
		else if (last && doubled)
			n = 2 * (size - 1);
		v = along(j, &v, d.at[i], n, last && half ? n / 2 + 1 : n);
	}
	memcpy(j->out[0].id, v.id, (size_t)ex_count(&v.box) * sizeof *v.id);
	return memcmp(v.box.size, j->out[0].box.size, sizeof v.box.size) == 0;
}

#define SPECTRUM(name) {.type = name, .forward = transform, .make = ex_make_spectrum}

const struct ex_kernel ex_kernels_spectrum[] = {
	SPECTRUM("FFT"), SPECTRUM("IFFT"), SPECTRUM("HFFT"), SPECTRUM("IHFFT"), SPECTRUM("RFFT"),
	SPECTRUM("IRFFT"), SPECTRUM("FFT2"), SPECTRUM("IFFT2"), SPECTRUM("HFFT2"), SPECTRUM("IHFFT2"),
	SPECTRUM("RFFT2"), SPECTRUM("IRFFT2"), SPECTRUM("FFTN"), SPECTRUM("IFFTN"), SPECTRUM("HFFTN"),
	SPECTRUM("IHFFTN"), SPECTRUM("RFFTN"), SPECTRUM("IRFFTN"), SPECTRUM("DCT"), SPECTRUM("IDCT"),
	SPECTRUM("DCTN"), SPECTRUM("IDCTN"),
	{0}
};
