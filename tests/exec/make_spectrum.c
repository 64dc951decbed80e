/* SPDX-License-Identifier: Apache-2.0 */
/* Random transforms along dimensions. */
#include <string.h>

#include "make_parts.h"

static bool begins(const struct ex_sample *s, const char *text)
{
	return strncmp(s->type, text, strlen(text)) == 0;
}

static char last_of(const struct ex_sample *s)
{
	return s->type[strlen(s->type) - 1];
}

/* Some dimensions in any order, from the front or the back. */
static uint32_t draw_dims(struct ex_sample *s, uint32_t n, int rank, int64_t *v)
{
	uint32_t used = 0;

	for (uint32_t i = 0; i < n; i++) {
		int64_t d = ex_draw(s, rank);

		while (used >> d & 1)
			d = (d + 1) % rank;
		used |= UINT32_C(1) << d;
		v[i] = ex_once_in(s, 2) ? d : d - rank;
	}
	return n;
}

static void add_values(struct ex_sample *s, const char *one, const char *several, uint32_t n,
	const int64_t *v)
{
	if (last_of(s) == 'T' && strcmp(one, "n") == 0)
		ex_add_int(s, one, *v);
	else
		ex_add_list(s, last_of(s) == 'T' ? one : several, n, v);
}

/* One, two or any dimensions, by the type's name; those of a half are not of length one. */
void ex_make_spectrum(struct ex_sample *s)
{
	bool cosine = strstr(s->type, "DCT"), real = cosine || begins(s, "RFFT") || begins(s, "IHFFT");
	uint32_t n = last_of(s) == 'N' ? 0 : last_of(s) == '2' ? 2 : 1;
	uint8_t rank = (uint8_t)((n ? n : 1) + (uint32_t)ex_draw(s, 3));
	int64_t size[AP_MAX_RANK], v[AP_MAX_RANK];

	ex_draw_shape(s, rank, 150, size);
	for (uint8_t d = 0; d < rank; d++)
		size[d] += size[d] == 1;
	ex_add_in(s, real ? "float32" : "complex64", rank, size);
	if (ex_once_in(s, 2)) {
		n = draw_dims(s, n ? n : 1 + (uint32_t)ex_draw(s, rank), rank, v);
		add_values(s, cosine ? "axis" : "dim", cosine ? "axes" : "dim", n, v);
	} else if (n == 0) {
		n = rank;
	}
	if (ex_once_in(s, 2)) {
		for (uint32_t i = 0; i < n; i++)
			v[i] = 1 + ex_draw(s, 8);
		add_values(s, "n", "s", n, v);
	}
	if (ex_once_in(s, 3))
		ex_add_text(s, "norm", "ortho");
}
