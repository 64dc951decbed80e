/* SPDX-License-Identifier: Apache-2.0 */
#include "make_parts.h"

#include <string.h>

enum { MOST = 600 }; /* elements of an operand that is free in this */

int64_t ex_draw(struct ex_sample *s, int64_t n)
{
	return ex_below(&s->rng, (uint32_t)n);
}

bool ex_once_in(struct ex_sample *s, int64_t n)
{
	return ex_draw(s, n) == 0;
}

void ex_draw_shape(struct ex_sample *s, uint8_t rank, int64_t most, int64_t *size)
{
	for (uint8_t d = 0; d < rank; d++) {
		size[d] = ex_once_in(s, 8) ? 1 : ex_length(s);
		while (size[d] > most)
			size[d] /= 2;
		most /= size[d];
	}
}

unsigned ex_add_any(struct ex_sample *s, const char *dtype, uint8_t rank)
{
	int64_t size[AP_MAX_RANK] = {0};

	rank = (uint8_t)(1 + ex_draw(s, rank));
	ex_draw_shape(s, rank, MOST, size);
	return ex_add_in(s, dtype, rank, size);
}

unsigned ex_add_alike(struct ex_sample *s, const char *dtype, unsigned i)
{
	return ex_add_in(s, dtype, s->in[i].rank, s->in[i].dim);
}

unsigned ex_add_narrow(struct ex_sample *s, const char *dtype, unsigned i)
{
	const struct ap_shape *wide = &s->in[i];
	uint8_t gone = ex_once_in(s, 3) ? (uint8_t)ex_draw(s, wide->rank + 1) : 0;
	int64_t size[AP_MAX_RANK] = {0};

	for (uint8_t d = gone; d < wide->rank; d++)
		size[d - gone] = ex_once_in(s, 4) ? 1 : wide->dim[d];
	return ex_add_in(s, dtype, (uint8_t)(wide->rank - gone), size);
}

int ex_add_axis(struct ex_sample *s, const char *name, int rank)
{
	int axis = (int)ex_draw(s, rank);

	ex_add_number(s, name, ex_once_in(s, 2) ? axis : axis - rank);
	return axis;
}

void ex_add_number(struct ex_sample *s, const char *name, int64_t v)
{
	if (strcmp(name, "axis") == 0 || strcmp(name, "dim") == 0)
		ex_add_list(s, name, 1, &v);
	else
		ex_add_int(s, name, v);
}

void ex_add_flag(struct ex_sample *s, const char *name)
{
	if (!ex_once_in(s, 3))
		ex_add_bool(s, name, ex_once_in(s, 2));
}
