/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors that shard() takes, and the dimensions that MindSpore's batch strategy cuts. */
#include "rule/batch.h"

#include <string.h>

#include "base/vec.h"

static const struct {
	const char *name, *notation;
} rows[] = {
#define BATCH(name, notation) {#name, notation},
#include "rule/ops.def"
};

uint32_t ap_op_vectors(const struct ap_bound *b)
{
	uint32_t n = 1;

	if (!*b->row->strategy)
		return b->nin;
	for (const char *c = b->row->strategy; *c; c++)
		n += *c == ',';
	return n;
}

const struct ap_operand *ap_op_vector(const struct ap_bound *b, uint32_t v)
{
	char letter;

	if (!*b->row->strategy)
		return &b->in[v];
	letter = b->row->strategy[2 * v];
	if (letter == '-')
		return NULL;
	return letter >= 'o' ? &b->out[letter - 'o'] : &b->in[letter - 'a'];
}

const char *ap_op_batch_notation(const struct ap_op_row *row)
{
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (strcmp(rows[i].name, row->name) == 0)
			return rows[i].notation;
	return NULL;
}

/* May dimension 0 of t be cut by the rule? */
static bool is_open(const struct ap_bound *b, const struct ap_operand *t)
{
	const struct ap_dim *dim = &t->dim[0];

	return t->rank > 0 && dim->n > 0 && !(b->factor[dim->factor[0]].flags & AP_FACTOR_FROZEN);
}

static int dim_of(const struct ap_bound *b, const struct ap_operand *t, char letter)
{
	for (int d = 0; d < t->rank; d++)
		for (int i = 0; i < t->dim[d].n; i++)
			if (b->factor[t->dim[d].factor[i]].letter == letter)
				return d;
	return -1;
}

/* Marks dimension 0 of all vectors; for '#' of those with the most dimensions if these are more
 * than two, else of the first; for '~' of those where it is longer than one, aligned right. */
static void mark_all(const struct ap_bound *b, char form, uint8_t *mask)
{
	uint8_t rank = 0;

	for (uint32_t v = 0; v < b->nin; v++)
		rank = b->in[v].rank > rank ? b->in[v].rank : rank;
	for (uint32_t v = 0; v < ap_op_vectors(b); v++) {
		const struct ap_operand *t = ap_op_vector(b, v);

		if (!t || t->rank == 0)
			continue;
		if (form == '~' && (t->rank < rank || t->size[0] == 1))
			continue;
		if (form == '#' && (t->rank < rank || (v > 0 && rank == 2)))
			continue;
		mask[v] = 1;
	}
}

/* Marks named vectors even if they have no dimensions; the result is then no strategy. */
static void mark_named(const struct ap_bound *b, const char *letters, uint8_t *mask)
{
	for (; *letters >= 'a' && *letters <= 'n'; letters++) {
		uint32_t v = (uint32_t)(*letters - 'a');
		int d = letters[1] == '/' ? dim_of(b, ap_op_vector(b, v), letters[2]) : 0;

		if (d >= 0)
			mask[v] |= (uint8_t)(1 << d);
		letters += letters[1] == '/' ? 2 : 0;
	}
}

static int factor_of(const struct ap_operand *t, int d)
{
	return t && d < t->rank && t->dim[d].n > 0 ? t->dim[d].factor[0] : -1;
}

/* Marks dimensions that share a factor with dimension 0 of the first marked vector. */
static void mark_along(const struct ap_bound *b, uint8_t *mask)
{
	int f = -1;

	for (uint32_t v = 0; v < ap_op_vectors(b) && f < 0; v++)
		f = mask[v] & 1 ? factor_of(ap_op_vector(b, v), 0) : -1;
	for (uint32_t v = 0; v < ap_op_vectors(b) && f >= 0; v++)
		for (int d = 0; d < AP_MAX_RANK; d++)
			if (factor_of(ap_op_vector(b, v), d) == f)
				mask[v] |= (uint8_t)(1 << d);
}

static void mark_first(const struct ap_bound *b, uint8_t *mask)
{
	const struct ap_operand *t = ap_op_vectors(b) > 0 ? ap_op_vector(b, 0) : NULL;

	if (t && t->rank > 0)
		mask[0] = 1;
}

static enum ap_batch way_of(const char *notation)
{
	if (strchr(notation, '!'))
		return AP_BATCH_DATA;
	if (strstr(notation, "=="))
		return AP_BATCH_SAMPLES;
	return strchr(notation, '=') ? AP_BATCH_WHOLLY : AP_BATCH_COMMON;
}

enum ap_batch ap_op_batch_positions(const struct ap_bound *b, uint8_t *mask)
{
	const char *notation = ap_op_batch_notation(b->row);

	memset(mask, 0, ap_op_vectors(b));
	if (b->nfactor == 0)
		return AP_BATCH_COMMON;
	if (!notation)
		mark_first(b, mask);
	else if (*notation && strchr("*~#", *notation))
		mark_all(b, *notation, mask);
	else
		mark_named(b, notation, mask);
	if (notation && strchr(notation, '&'))
		mark_along(b, mask);
	if (notation && strchr(notation, '?') && !is_open(b, &b->in[0]))
		memset(mask, 0, ap_op_vectors(b));
	return notation ? way_of(notation) : AP_BATCH_COMMON;
}
