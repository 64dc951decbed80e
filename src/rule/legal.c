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

/* With a cut vocabulary: whole indices, the row cut only where nothing is repeated; or the first
 * two dimensions of the indices cut, whole rows and nothing repeated. */
static bool gather(const struct ap_bound *b, const int32_t *count, int64_t ndev)
{
	int64_t v = count_of(b, count, 'v'), d = count_of(b, count, 'd');
	int64_t indices = parts(&b->in[1], count, 0);

	if (v == 1)
		return true;
	if (indices == 1)
		return d == 1 || v * d == ndev;
	return d == 1 && parts(&b->in[1], count, 2) == 1 && v * indices == ndev;
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

static const struct {
	const char *name;
	bool (*legal)(const struct ap_bound *b, const int32_t *count, int64_t ndev);
} conditions[] = {
	{"gather", gather},
	{"onehot", onehot},
	{"grouped-heads", grouped_heads},
};

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
