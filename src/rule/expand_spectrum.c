/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms along dimensions, which stay whole: each result element depends on a whole line. */
#include <inttypes.h>
#include <string.h>

#include "rule/attr.h"
#include "rule/binding.h"
#include "rule/expand.h"

enum last { /* length of the last transformed dimension */
	AS_IT_IS,
	HALF, /* the spectrum of real numbers is symmetric, half is left out */
	DOUBLED /* a half becomes the whole */
};

struct transform {
	uint8_t n; /* number of dimensions, in the order they are named */
	uint8_t dim[AP_MAX_RANK];
	uint32_t mask;
	int64_t length[AP_MAX_RANK]; /* length that dim[i] is cut or padded to */
};

/* The attribute under its names for one or for several dimensions. */
static const struct ap_attr *first_of(const struct ap_binding *b, const char *const names[3])
{
	const struct ap_attr *a = NULL;

	for (int i = 0; !a && i < 3; i++)
		a = ap_attr_get(b->in->attrs, names[i]);
	return a && a->type == AP_ATTR_INTS && a->n == 0 ? NULL : a;
}

static uint32_t values_of(const struct ap_attr *a, const int64_t **v)
{
	*v = a->type == AP_ATTR_INTS ? a->list : &a->i;
	return a->type == AP_ATTR_INTS ? a->n : 1;
}

static bool add_dim(struct ap_binding *b, struct transform *t, const char *name, int64_t v)
{
	uint8_t rank = b->bin[0].rank;

	if (v < -(int64_t)rank || v >= rank)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRId64
			"; with %d dimensions %d..%d is allowed", name, v, rank, -rank, rank - 1);
	v += v < 0 ? rank : 0;
	if (t->mask >> v & 1)
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %s names dimension %" PRId64 " twice; once is allowed", name,
			v);
	t->mask |= UINT32_C(1) << v;
	t->dim[t->n++] = (uint8_t)v;
	return true;
}

/* Number of dimensions that a type's name implies; 0: any. */
static unsigned usual_dims(const char *type)
{
	switch (type[strlen(type) - 1]) {
	case '2':
		return 2;
	case 'N':
		return 0;
	default:
		return 1;
	}
}

/* The named dimensions; else the last ones, one per length given, or all. */
static bool read_dims(struct ap_binding *b, struct transform *t, const struct ap_attr *lengths)
{
	const struct ap_attr *a = first_of(b, (const char *const[]){"dim", "axis", "axes"});
	unsigned usual = usual_dims(b->row->name);
	uint8_t rank = b->bin[0].rank;
	const int64_t *v = NULL;
	int64_t n = a ? values_of(a, &v) : usual ? usual : lengths ? values_of(lengths, &v) : rank;

	if (!ap_expand_rank(b, 0, usual ? (uint8_t)usual : 1))
		return false;
	if (n > rank || (usual && n != usual))
		return ap_bind_fail(b, "operator-attr", -1,
			"attribute %s has %" PRId64 " values; %s%u is allowed",
			a ? a->name : lengths->name, n, usual ? "" : "up to ",
			usual ? usual : rank);
	for (int64_t i = 0; i < n; i++)
		if (!add_dim(b, t, a ? a->name : "", a ? v[i] : i - n))
			return false;
	return true;
}

static bool read_lengths(struct ap_binding *b, struct transform *t, const struct ap_attr *a,
	enum last last)
{
	const int64_t *v = NULL;
	uint32_t n = a ? values_of(a, &v) : t->n;

	if (n != t->n)
		return ap_bind_fail(b, "operator-attr", -1, "attribute %s has %" PRIu32
			" values; there are %d dimensions to transform", a->name, n, t->n);
	for (uint8_t i = 0; i < t->n; i++) {
		int64_t size = b->bin[0].size[t->dim[i]];
		bool doubled = last == DOUBLED && i + 1 == t->n;

		t->length[i] = a ? v[i] : doubled ? 2 * (size - 1) : size;
		if (a && v[i] < 1)
			return ap_bind_fail(b, "operator-attr", -1,
				"attribute %s has %" PRId64 "; at least 1 is expected", a->name, v[i]);
		if (t->length[i] < 1)
			return ap_bind_fail(b, "operator-shape", 0, "dimension %d of operand 0 is 1; at "
				"least 2 is expected where no length is given", t->dim[i]);
	}
	return true;
}

static bool expand(struct ap_binding *b, enum last last)
{
	const struct ap_attr *lengths = first_of(b, (const char *const[]){"n", "s", "s"});
	struct ap_operand *in = &b->bin[0];
	uint8_t id[AP_MAX_RANK];
	struct transform t = {0};
	int64_t size[AP_MAX_RANK];

	if (!read_dims(b, &t, lengths) || !read_lengths(b, &t, lengths, last))
		return false;
	memcpy(size, in->size, sizeof size);
	b->bound.flops *= t.n;
	for (uint8_t i = 0; i < t.n; i++) {
		size[t.dim[i]] = last == HALF && i + 1 == t.n ? t.length[i] / 2 + 1 : t.length[i];
		b->bound.flops *= (double)t.length[i];
	}
	if (!ap_expand_dims(b, in, t.mask, id))
		return false;
	for (uint8_t i = 0; i < in->rank; i++)
		if (!ap_expand_add(b, &b->bout[0], size[i], id[i]))
			return false;
	return true;
}

bool ap_expand_spectrum(struct ap_binding *b)
{
	return expand(b, AS_IT_IS);
}

bool ap_expand_half_spectrum(struct ap_binding *b)
{
	return expand(b, HALF);
}

bool ap_expand_from_half(struct ap_binding *b)
{
	return expand(b, DOUBLED);
}
