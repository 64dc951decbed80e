/* SPDX-License-Identifier: Apache-2.0 */
/* Random products of matrices. */
#include "make_parts.h"

/* Rows x columns, or the other way round where the attribute is drawn true. */
static void add_typed(struct ex_sample *s, const char *dtype, const char *flag, uint8_t batches,
	const int64_t *batch, int64_t rows, int64_t columns)
{
	bool turned = flag && ex_once_in(s, 2);
	int64_t size[AP_MAX_RANK] = {0};

	for (uint8_t d = 0; d < batches; d++)
		size[d] = batch[d];
	size[batches] = turned ? columns : rows;
	size[batches + 1] = turned ? rows : columns;
	if (flag && (turned || ex_once_in(s, 2)))
		ex_add_bool(s, flag, turned);
	ex_add_in(s, dtype, (uint8_t)(batches + 2), size);
}

static void add_matrix(struct ex_sample *s, const char *flag, uint8_t batches,
	const int64_t *batch, int64_t rows, int64_t columns)
{
	add_typed(s, "float32", flag, batches, batch, rows, columns);
}

static bool has_flags(const struct ex_sample *s)
{
	size_t n = 0;

	while (s->type[n])
		n++;
	return s->type[n - 1] != 't'; /* ..Ext takes none */
}

void ex_make_product(struct ex_sample *s)
{
	bool flags = has_flags(s);
	int64_t m[3];

	ex_draw_shape(s, 3, 4000, m);
	add_matrix(s, flags ? "transpose_a" : NULL, 0, NULL, m[0], m[1]);
	add_matrix(s, flags ? "transpose_b" : NULL, 0, NULL, m[1], m[2]);
}

/* Batch dimensions broadcast: of one side each may have length one, or the first be left out. */
void ex_make_products(struct ex_sample *s)
{
	uint8_t n = (uint8_t)(1 + ex_draw(s, 2)), gone[2] = {0};
	int64_t size[5], batch[2][2];
	bool flags = has_flags(s);
	int64_t narrow = ex_draw(s, 3); /* 2: neither */

	ex_draw_shape(s, (uint8_t)(3 + n), 4000, size);
	for (int i = 0; i < 2; i++)
		for (uint8_t d = 0; d < n; d++)
			batch[i][d] = flags && narrow == i && ex_once_in(s, 2) ? 1 : size[d];
	if (flags && narrow < 2 && ex_once_in(s, 3))
		gone[narrow] = (uint8_t)(1 + ex_draw(s, n));
	add_matrix(s, flags ? "transpose_a" : NULL, (uint8_t)(n - gone[0]), batch[0] + gone[0],
		size[n], size[n + 1]);
	add_matrix(s, flags ? "transpose_b" : NULL, (uint8_t)(n - gone[1]), batch[1] + gone[1],
		size[n + 1], size[n + 2]);
}

/* Of matrices, or of batches that broadcast. */
void ex_make_product_ext(struct ex_sample *s)
{
	if (ex_once_in(s, 2))
		ex_make_product(s);
	else
		ex_make_products(s);
}

/* A vector of n numbers, or one, or none. */
static void add_channels(struct ex_sample *s, int64_t n, bool must)
{
	if (!must && ex_once_in(s, 2))
		ex_skip_in(s);
	else
		ex_add_in(s, "float32", 1, ex_once_in(s, 4) ? (const int64_t[]){1} : &n);
}

/* Scale; offset, bias and scale of rows, none of them for half. */
void ex_make_quantised(struct ex_sample *s)
{
	int64_t size[4];

	ex_draw_shape(s, 4, 4000, size);
	add_typed(s, "int8", "transpose_x1", 1, size, size[1], size[2]);
	add_typed(s, "int8", "transpose_x2", 1, size, size[2], size[3]);
	add_channels(s, size[3], true);
	if (ex_once_in(s, 2)) {
		ex_skip_in(s);
		ex_skip_in(s);
	} else {
		add_channels(s, size[3], false);
		add_channels(s, size[3], false);
	}
	add_channels(s, size[1], false);
	ex_add_text(s, "dtype", "float16");
}

void ex_make_quantised_weight(struct ex_sample *s)
{
	int64_t size[4];

	ex_draw_shape(s, 4, 1500, size);
	add_typed(s, "float16", "transpose_x", 1, size, size[1], size[2]);
	add_typed(s, "int8", "transpose_weight", 0, NULL, size[2], size[3]);
	add_channels(s, size[3], true);
	add_channels(s, size[3], false);
	if (ex_once_in(s, 2))
		return;
	for (int i = 0; i < 3; i++)
		add_channels(s, size[3], false);
}
