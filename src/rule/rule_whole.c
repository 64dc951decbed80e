/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose inside is not known: cut along the batch, or not at all; tensors from nothing. */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "rule/expand.h"

/* The results have the shapes and types that they are declared with. */
static bool take_declared(struct ap_binding *b)
{
	for (uint16_t i = 0; i < b->nout; i++) {
		const struct ap_shape *said = ap_bind_declared(b, i);

		if (!said || said->dtype == AP_DTYPE_COUNT)
			return ap_bind_fail(b, "operator-outputs", -1,
				"shape and type of result %u do not follow from the operands; they must "
				"be declared", i);
		b->bout[i].rank = said->rank;
		memcpy(b->bout[i].size, said->dim, sizeof said->dim);
	}
	return true;
}

/* Operands, then results. */
static struct ap_operand *tensor_at(struct ap_binding *b, unsigned i)
{
	return i < b->in->nin ? &b->bin[i] : &b->bout[i - b->in->nin];
}

static unsigned tensor_count(const struct ap_binding *b)
{
	return b->in->nin + (unsigned)b->nout;
}

/* Work for each element of the largest tensor; a factor of this size is a part of it. */
static void count_elements(struct ap_binding *b, int64_t size)
{
	double most = 1;

	for (unsigned i = 0; i < tensor_count(b); i++) {
		const struct ap_operand *o = tensor_at(b, i);
		double n = 1;

		for (uint8_t k = 0; k < o->rank; k++)
			n *= (double)o->size[k];
		most = n > most ? n : most;
	}
	b->bound.flops *= most / (double)size;
}

bool ap_expand_whole(struct ap_binding *b)
{
	if (!take_declared(b))
		return false;
	count_elements(b, 1);
	return true;
}

/* Two numbers for each channel of operand 0: what they become, all of it must tell. */
bool ap_expand_channel_range(struct ap_binding *b)
{
	const struct ap_operand *x = &b->bin[0];
	uint8_t axis;

	if (!ap_expand_axis(b, "channel_axis", 1, x->rank, &axis))
		return false;
	for (unsigned i = 1; i < 3; i++) {
		const struct ap_operand *o = &b->bin[i];

		if (o->rank != 1)
			return ap_bind_fail(b, "operator-rank", (int)i,
				"operand %u has shape %s; 1 dimension is expected", i,
				ap_bind_shape(b, o->size, o->rank));
		if (o->size[0] != x->size[axis])
			return ap_bind_fail(b, "operator-shape", (int)i, "dimension 0 of operand %u is %"
				PRId64 "; %" PRId64 ", the length of dimension %d of operand 0, is expected",
				i, o->size[0], x->size[axis], axis);
	}
	for (uint16_t i = 0; i < b->nout; i++)
		if (!ap_expand_add(b, &b->bout[i], x->size[axis], AP_NO_FACTOR))
			return false;
	count_elements(b, 1);
	return true;
}

/* Is dimension 0 of o one that the samples lie along? Scalars and lengths of one stay whole where
 * that is allowed. */
static bool has_samples(const struct ap_operand *o)
{
	return o->rank > 0 && o->size[0] > 1;
}

/* One factor b, the samples, along dimension 0 of every tensor that has some. Where the lengths
 * differ it is what divides them all, and a part has as many times more of the longer ones: mixed says
 * what that makes of it. */
static bool cut_samples(struct ap_binding *b, uint8_t mixed)
{
	int64_t size = 0;
	uint8_t flags = 0, id;

	for (unsigned i = 0; i < tensor_count(b); i++) {
		const struct ap_operand *o = tensor_at(b, i);

		if (!has_samples(o))
			continue;
		flags = size && o->size[0] != size ? mixed : flags;
		size = ap_gcd(size, o->size[0]);
	}
	if (!ap_expand_factor(b, 'b', flags, size ? size : 1, &id))
		return false;
	for (unsigned i = 0; i < tensor_count(b); i++)
		if (has_samples(tensor_at(b, i)))
			ap_expand_put(&tensor_at(b, i)->dim[0], id);
	count_elements(b, size ? size : 1);
	return true;
}

/* All that go in and come out have samples, or nothing is cut. */
bool ap_expand_batch(struct ap_binding *b)
{
	if (!take_declared(b))
		return false;
	for (unsigned i = 0; i < tensor_count(b); i++)
		if (!has_samples(tensor_at(b, i))) {
			count_elements(b, 1);
			return true;
		}
	return cut_samples(b, AP_FACTOR_MIXED);
}

/* Has dimension d of operand 1 the length of operand 0's? */
static bool same_length(struct ap_binding *b, uint8_t d)
{
	return b->bin[1].size[d] == b->bin[0].size[d] || ap_bind_fail(b, "operator-shape", 1,
		"dimension %d of operand 1 is %" PRId64 ", that of operand 0 is %" PRId64
		"; equal lengths are expected", d, b->bin[1].size[d], b->bin[0].size[d]);
}

/* Right sides of systems of equations: matrices, or vectors, with a row for each row of operand 0. */
static bool are_right_sides(struct ap_binding *b)
{
	uint8_t rank = b->bin[0].rank;

	if (!ap_expand_rank(b, 0, 2))
		return false;
	if (b->bin[1].rank != rank && b->bin[1].rank != rank - 1)
		return ap_bind_fail(b, "operator-rank", 1, "operand 1 has %d dimensions; %d or %d are "
			"expected", b->bin[1].rank, rank - 1, rank);
	for (uint8_t d = 0; d < rank - 1; d++)
		if (!same_length(b, d))
			return false;
	return true;
}

/* Their solutions, with a row for each column of operand 0. */
static bool are_solutions(struct ap_binding *b)
{
	const struct ap_operand *a = &b->bin[0], *y = &b->bin[1], *x = &b->bout[0];
	uint8_t rank = a->rank;

	for (uint8_t d = 0; d < y->rank && x->rank == y->rank; d++) {
		int64_t want = d == rank - 2 ? a->size[rank - 1] : y->size[d];

		if (x->size[d] != want)
			return ap_bind_fail(b, "operator-shape", 0, "with operands of %s and %s, "
				"dimension %d of result 0 is declared as %" PRId64 "; %" PRId64
				" is expected", ap_bind_shape(b, a->size, rank),
				ap_bind_shape(b, y->size, y->rank), d, x->size[d], want);
	}
	return x->rank == y->rank || ap_bind_fail(b, "operator-rank", 1,
		"operand 1 has %d dimensions; %d, as many as result 0, are expected", y->rank, x->rank);
}

/* A single matrix is no batch of anything. */
bool ap_expand_matrices(struct ap_binding *b)
{
	return are_right_sides(b) &&
		(b->bin[0].rank > 2 ? ap_expand_batch(b) : ap_expand_whole(b)) && are_solutions(b);
}

/* What is read is handed on as it is, or the results are what is read. */
bool ap_expand_dataset(struct ap_binding *b)
{
	if (b->in->nin > 0 && b->nout > b->in->nin)
		return ap_bind_fail(b, "operator-outputs", -1,
			"%d results are declared; %s has one for each of its %d operands", b->nout,
			b->row->name, b->in->nin);
	if (b->in->nin == 0 && !take_declared(b))
		return false;
	for (uint16_t i = 0; b->in->nin > 0 && i < b->nout; i++) {
		b->bout[i].rank = b->bin[i].rank;
		memcpy(b->bout[i].size, b->bin[i].size, sizeof b->bin[i].size);
	}
	for (uint16_t i = 0; i < b->nout; i++)
		b->bout[i].silent = true; /* nothing of the others enters it */
	return cut_samples(b, 0); /* each for itself */
}

/* Numbers that say what is made; the first operand may be its shape. */
static bool are_numbers(struct ap_binding *b)
{
	for (unsigned i = 0; i < b->in->nin; i++) {
		const struct ap_operand *o = &b->bin[i];
		bool shape = ap_bind_slot(b, i) == 0 && o->rank == 1 && o->size[0] == b->bout[0].rank;

		if (!shape && (o->rank > 1 || (o->rank == 1 && o->size[0] != 1)))
			return ap_bind_fail(b, "operator-rank", (int)i,
				"operand %u has shape %s; one number is expected", i,
				ap_bind_shape(b, o->size, o->rank));
	}
	return true;
}

/* A tensor of numbers that follow from their places. */
bool ap_expand_fill(struct ap_binding *b)
{
	uint8_t id[AP_MAX_RANK];

	return take_declared(b) && are_numbers(b) && ap_expand_dims(b, &b->bout[0], 0, id);
}
