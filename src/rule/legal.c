/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions on cuts beyond single factors, by name (column `legal` of ops.def): what MindSpore's
 * implementation of an operator refuses or computes wrongly. */
#include "rule/legal.h"

#include <assert.h>
#include <string.h>

#include "base/vec.h"
#include "rule/window.h"

/* A vector of counts being checked. */
struct cut {
	const struct ap_bound *b;
	const int32_t *count;
	int64_t ndev;
	struct ap_legal_why *why;
};

static int factor_of(const struct ap_bound *b, char letter)
{
	for (uint8_t f = 0; f < b->nfactor; f++)
		if (b->factor[f].letter == letter)
			return f;
	return -1;
}

static int64_t count_of(const struct cut *c, char letter)
{
	int f = factor_of(c->b, letter);

	return f < 0 ? 1 : c->count[f];
}

static int64_t dim_parts(const struct cut *c, const struct ap_operand *o, uint8_t dim)
{
	int64_t n = 1;

	for (uint8_t k = 0; k < o->dim[dim].n; k++)
		n *= c->count[o->dim[dim].factor[k]];
	return n;
}

/* Number of parts of dimensions first..rank-1 of an operand. */
static int64_t parts(const struct cut *c, const struct ap_operand *o, uint8_t first)
{
	int64_t n = 1;

	for (uint8_t i = first; i < o->rank; i++)
		n *= dim_parts(c, o, i);
	return n;
}

/* Refuses dimension dim of t. */
static bool refuse(const struct cut *c, const struct ap_operand *t, uint8_t dim,
	const char *allowed)
{
	*c->why = (struct ap_legal_why){t, dim, dim_parts(c, t, dim), allowed};
	return false;
}

/* Refuses the first cut dimension of t at or after `first`, which must exist. */
static bool refuse_from(const struct cut *c, const struct ap_operand *t, uint8_t first,
	const char *allowed)
{
	while (dim_parts(c, t, first) == 1)
		first++;
	return refuse(c, t, first, allowed);
}

/* Refuses the dimension of t with factor f. */
static bool refuse_factor(const struct cut *c, const struct ap_operand *t, int f,
	const char *allowed)
{
	for (uint8_t i = 0; i < t->rank; i++)
		for (uint8_t k = 0; k < t->dim[i].n; k++)
			if (t->dim[i].factor[k] == f)
				return refuse(c, t, i, allowed);
	assert(false);
	return false;
}

/* A lookup with a cut vocabulary: whole indices, and rows cut only if nothing is repeated; or, for
 * a matrix looked up by a matrix of indices, cut indices, whole rows and no repeats. */
static bool gather(const struct cut *c)
{
	int v = factor_of(c->b, 'v'), d = factor_of(c->b, 'd');
	int64_t rows = count_of(c, 'v'), row = count_of(c, 'd'), indices;
	const struct ap_operand *table, *index;

	if (rows == 1)
		return true;
	table = c->b->in[0].factors >> v & 1 ? &c->b->in[0] : &c->b->in[1];
	index = table == c->b->in ? &c->b->in[1] : &c->b->in[0];
	indices = parts(c, index, 0);
	if (indices == 1)
		return row == 1 || rows * row == c->ndev || refuse_factor(c, table, d,
			"with a cut vocabulary 1 is allowed, or what leaves no device over");
	if (row > 1)
		return refuse_factor(c, table, d,
			"with a cut vocabulary and cut indices 1 is allowed");
	if (table->rank != 2 || index->rank != 2)
		return refuse_from(c, index, 0, "with a cut vocabulary 1 is allowed unless table and "
			"indices have two dimensions each");
	return rows * indices == c->ndev || refuse_factor(c, table, v,
		"with cut indices 1 is allowed, or what leaves no device over");
}

/* A matrix with cut rows: indices and columns stay whole. */
static bool gather_axis1(const struct cut *c)
{
	int d = factor_of(c->b, 'd');

	if (count_of(c, 'v') == 1)
		return true;
	if (parts(c, &c->b->in[1], 0) > 1)
		return refuse_from(c, &c->b->in[1], 0, "with a cut vocabulary 1 is allowed");
	return d < 0 || c->count[d] == 1 || refuse_factor(c, &c->b->in[0], d,
		"with a cut vocabulary 1 is allowed");
}

/* The depth may be cut for a vector of indices; otherwise only the first dimension may. */
static bool onehot(const struct cut *c)
{
	static const char allowed[] = "with indices of several dimensions 1 is allowed but in the "
		"first";

	if (c->b->in[0].rank == 1)
		return true;
	if (count_of(c, 'd') > 1)
		return refuse_factor(c, &c->b->out[0], factor_of(c->b, 'd'), allowed);
	return parts(c, &c->b->in[0], 1) == 1 || refuse_from(c, &c->b->in[0], 1, allowed);
}

/* Queries sharing a key head may be divided only if there is a single such head: every part then
 * has the keys and values whole. */
static bool grouped_heads(const struct cut *c)
{
	int g = factor_of(c->b, 'g');

	return g < 0 || c->count[g] == 1 || factor_of(c->b, 'n') < 0 ||
		refuse_factor(c, &c->b->in[0], g,
			"parts that no head of keys and values is divided between are allowed");
}

/* The first operand, else result, with factor f, which must exist. */
static const struct ap_operand *first_with(const struct ap_bound *b, int f)
{
	for (uint16_t i = 0; i < b->nin; i++)
		if (b->in[i].factors >> f & 1)
			return &b->in[i];
	for (uint16_t i = 0; i < b->nout; i++)
		if (b->out[i].factors >> f & 1)
			return &b->out[i];
	assert(false);
	return NULL;
}

/* Dimension 0 is cut into as many parts as devices, or not at all. */
static bool batch_parallel(const struct cut *c)
{
	int b = factor_of(c->b, 'b');

	return b < 0 || c->count[b] == 1 || c->count[b] == c->ndev ||
		refuse_factor(c, first_with(c->b, b), b, "1 or the number of devices is allowed");
}

static bool fits(const struct ap_halo *h, int64_t slice)
{
	return h->before >= 0 && h->before <= slice && h->after >= 0 && h->after <= slice;
}

/* Does every part have whole windows of its own, without exchange? */
static bool whole_windows(const struct ap_window *w, int64_t n)
{
	bool even = w->transposed ? w->count == w->size * w->stride : w->size / n % w->stride == 0;

	return w->kernel <= w->stride && w->before + w->after == 0 && even;
}

/* Do windows reach no further than the adjacent part? Halos change evenly from part to part, so the
 * parts at the ends decide. */
static bool near_halos(const struct ap_window *w, int64_t n)
{
	const int64_t part[] = {0, n > 2, n - 1 - (n > 2), n - 1};
	int64_t padded = (w->transposed ? w->count : w->size) + w->before + w->after;

	if (w->inside || w->kernel <= w->stride || (padded - w->kernel) % w->stride != 0)
		return false;
	for (size_t i = 0; i < AP_COUNT(part); i++) {
		struct ap_halo h = ap_window_halo(w, n, part[i]);

		if (!fits(&h, w->size / n))
			return false;
	}
	return w->transposed ? w->count / n % w->stride == 0
		: (w->count * w->stride - w->size) % n == 0;
}

static bool cut_windows(const struct cut *c, bool halos)
{
	for (uint8_t i = 0; i < c->b->nwindow; i++) {
		const struct ap_window *w = &c->b->window[i];
		const struct ap_operand *t = &c->b->in[w->operand];
		int64_t n = w->factor == AP_NO_FACTOR ? 1 : c->count[w->factor];

		if (n == 1)
			continue;
		if (w->size % n != 0 || w->count % n != 0)
			return refuse(c, t, w->dim,
				"divisors of its length and of the number of windows are allowed");
		if (!whole_windows(w, n) && !(halos && near_halos(w, n)))
			return refuse(c, t, w->dim, halos ?
				"parts with windows of their own, or with windows that reach into the "
				"next part alone, are allowed" :
				"parts with windows of their own are allowed");
	}
	return true;
}

static bool convolution(const struct cut *c)
{
	return cut_windows(c, true);
}

static bool pooling(const struct cut *c)
{
	return cut_windows(c, false);
}

static const struct {
	const char *name;
	bool (*legal)(const struct cut *c);
	const char *says;
	bool theirs; /* of MindSpore's implementation alone: the definition allows such parts */
} conditions[] = {
	{"gather", gather, "with a cut vocabulary whole indices, rows cut only where no device is left "
		"over; or, of two dimensions each, cut indices, whole rows and no device left over", false},
	{"gather-axis1", gather_axis1, "with a cut axis whole indices and whole other dimensions", false},
	{"onehot", onehot, "with indices of several dimensions MindSpore cuts only the first", true},
	{"grouped-heads", grouped_heads, "queries that share a head of the keys are parted only where "
		"there is a single such head", false},
	{"batch-parallel", batch_parallel, "dimension 0 is cut in as many parts as there are devices, or "
		"not at all", false},
	{"convolution", convolution, "parts divide the length and the number of windows, and have whole "
		"windows of their own or windows that reach into the next part alone", false},
	{"pooling", pooling, "parts divide the length and the number of windows, and have whole windows of "
		"their own", false},
};

static size_t find(const char *name)
{
	size_t i = 0;

	while (strcmp(conditions[i].name, name) != 0) {
		i++;
		assert(i < AP_COUNT(conditions));
	}
	return i;
}

const char *ap_legal_says(const char *name)
{
	return conditions[find(name)].says;
}

bool ap_rule_is_inner(const struct ap_bound *b, unsigned o, uint32_t mask)
{
	uint32_t lacks = mask & ~b->out[o].factors;

	for (uint16_t r = 0; r < b->nout && lacks && !b->out[o].silent; r++)
		if (b->out[r].factors & lacks)
			return true;
	return false;
}

bool ap_rule_legal(const struct ap_bound *b, const int32_t *count, int64_t ndev, bool mindspore,
	struct ap_legal_why *why)
{
	struct ap_legal_why ignored;
	const struct cut c = {b, count, ndev, why ? why : &ignored};

	return !*b->row->legal || (conditions[find(b->row->legal)].theirs && !mindspore) ||
		conditions[find(b->row->legal)].legal(&c);
}
