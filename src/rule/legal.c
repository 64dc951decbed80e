/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions on cuts that go beyond single factors, by name (column `legal` of ops.def):
 * what MindSpore's implementation of an operator refuses, or computes wrongly.
 */
#include "rule/rule.h"

#include <assert.h>
#include <string.h>

static int64_t count_of(const struct ap_bound *b, const int32_t *count, char letter)
{
	for (uint8_t f = 0; f < b->nfactor; f++)
		if (b->factor[f].letter == letter)
			return count[f];
	return 1;
}

/* Parts that dimensions first..rank-1 of an operand are cut in. */
static int64_t parts(const struct ap_operand *o, const int32_t *count, uint8_t first)
{
	int64_t n = 1;

	for (uint8_t i = first; i < o->rank; i++)
		for (uint8_t k = 0; k < o->dim[i].n; k++)
			n *= count[o->dim[i].factor[k]];
	return n;
}

/* The operand of a look-up that is no table. */
static const struct ap_operand *indices_of(const struct ap_bound *b)
{
	uint32_t lookup = 0;

	for (uint8_t f = 0; f < b->nfactor; f++)
		if (b->factor[f].flags & AP_FACTOR_LOOKUP)
			lookup |= UINT32_C(1) << f;
	return b->in[1].factors & lookup ? &b->in[0] : &b->in[1];
}

/* With a cut vocabulary: whole indices, the row cut only where nothing is repeated; or the first
 * two dimensions of the indices cut, whole rows and nothing repeated. */
static bool gather(const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	int64_t v = count_of(b, count, 'v'), d = count_of(b, count, 'd');
	const struct ap_operand *index = indices_of(b);
	int64_t indices = parts(index, count, 0);

	if (v == 1)
		return true;
	if (indices == 1)
		return d == 1 || v * d == ndev;
	return d == 1 && parts(index, count, 2) == 1 && v * indices == ndev;
}

/* The depth may be cut for a vector of indices; otherwise only the first dimension. */
static bool onehot(const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	(void)ndev;
	return b->in[0].rank == 1 ||
		(count_of(b, count, 'd') == 1 && parts(&b->in[0], count, 1) == 1);
}

/* Queries that share a head of the keys are parted only where there is a single such head: the
 * keys and values are then whole on every part. */
static bool grouped_heads(const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	(void)ndev;
	if (count_of(b, count, 'g') == 1)
		return true;
	for (uint8_t f = 0; f < b->nfactor; f++)
		if (b->factor[f].letter == 'n')
			return false;
	return true;
}

static bool fits(const struct ap_halo *h, int64_t slice)
{
	return h->before >= 0 && h->before <= slice && h->after >= 0 && h->after <= slice;
}

/* Every part has whole windows of its own: nothing is exchanged. */
static bool whole_windows(const struct ap_window *w, int64_t parts)
{
	return w->kernel <= w->stride && w->before + w->after == 0 &&
		w->size / parts % w->stride == 0;
}

/* Windows reach into the next part, no further. Halos grow or shrink evenly from part to part, so
 * that the ends of the row of parts decide. */
static bool near_halos(const struct ap_window *w, int64_t parts)
{
	const int64_t part[] = {0, parts > 2, parts - 1 - (parts > 2), parts - 1};
	int64_t padded = w->size + w->before + w->after;

	if (w->inside || w->kernel <= w->stride || (padded - w->kernel) % w->stride != 0)
		return false;
	for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
		struct ap_halo h = ap_window_halo(w, parts, part[i]);

		if (!fits(&h, w->size / parts))
			return false;
	}
	return (w->count * w->stride - w->size) % parts == 0;
}

static bool cut_windows(const struct ap_bound *b, const int32_t *count, bool halos)
{
	for (uint8_t i = 0; i < b->nwindow; i++) {
		const struct ap_window *w = &b->window[i];
		int64_t parts = w->factor == AP_NO_FACTOR ? 1 : count[w->factor];

		if (parts == 1)
			continue;
		if (w->size % parts != 0 || w->count % parts != 0)
			return false;
		if (!whole_windows(w, parts) && !(halos && near_halos(w, parts)))
			return false;
	}
	return true;
}

static bool convolution(const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	(void)ndev;
	return cut_windows(b, count, true);
}

static bool pooling(const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	(void)ndev;
	return cut_windows(b, count, false);
}

static const struct {
	const char *name;
	bool (*legal)(const struct ap_bound *b, const int32_t *count, int64_t ndev);
} conditions[] = {
	{"gather", gather},
	{"onehot", onehot},
	{"grouped-heads", grouped_heads},
	{"convolution", convolution},
	{"pooling", pooling},
};

bool ap_rule_is_inner(const struct ap_bound *b, unsigned o, uint32_t mask)
{
	uint32_t lacks = mask & ~b->out[o].factors;

	for (uint16_t r = 0; r < b->nout && lacks && !b->out[o].silent; r++)
		if (b->out[r].factors & lacks)
			return true;
	return false;
}

bool ap_rule_legal(const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	size_t i = 0;

	if (!*b->row->legal)
		return true;
	while (strcmp(conditions[i].name, b->row->legal) != 0) {
		i++;
		assert(i < sizeof conditions / sizeof *conditions);
	}
	return conditions[i].legal(b, count, ndev);
}
