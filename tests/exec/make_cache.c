/* SPDX-License-Identifier: Apache-2.0 */
/* Random caches of inference, and rows on their way to experts. */
#include "make_parts.h"

#include <string.h>

static int64_t little(struct ex_sample *s)
{
	static const int64_t lengths[] = {1, 2, 3, 4, 6};

	return lengths[ex_draw(s, 5)];
}

static void add_index(struct ex_sample *s, uint8_t rank, const int64_t *size, int64_t limit)
{
	unsigned i = ex_add_in(s, "int32", rank, size);

	s->draw[i] = EX_DRAW_INDEX;
	s->limit[i] = limit;
}

void ex_make_reshape_and_cache(struct ex_sample *s)
{
	int64_t b = little(s), length = little(s), n = little(s), blocks = 1 + ex_draw(s, 4);

	for (int i = 0; i < 2; i++)
		ex_add_in(s, "float16", 3, (int64_t[]){b, length, 2 * n});
	for (int i = 0; i < 2; i++)
		ex_add_in(s, "float16", 4, (int64_t[]){blocks, 3, n, 2});
	add_index(s, 1, (int64_t[]){b * length}, 3 * blocks);
}

/* A cache, and rows or columns that are put into it. */
void ex_make_cache(struct ex_sample *s)
{
	int64_t cache[4] = {little(s), little(s), 2 + ex_draw(s, 5), 4}, rows[4], places = cache[0];
	bool scatter = strcmp(s->type, "KVCacheScatterUpdate") == 0, across = scatter && ex_once_in(s, 2);
	int dim = across ? 3 : 2;

	memcpy(rows, cache, sizeof rows);
	rows[dim] = 1 + ex_draw(s, 2);
	if (!scatter && ex_once_in(s, 2))
		places = 1;
	ex_add_in(s, "float16", 4, cache);
	if (!scatter)
		ex_add_in(s, "float16", 4, rows);
	add_index(s, 1, &places, cache[dim] - rows[dim] + 1);
	if (scatter)
		ex_add_in(s, "float16", 4, rows);
	if (across || (scatter && ex_once_in(s, 2)))
		ex_add_number(s, "axis", dim - 4);
}

/* Queries and keys with composed heads, or not. */
void ex_make_places(struct ex_sample *s)
{
	int64_t b = little(s), n = little(s), g = 1 + ex_draw(s, 2), length = little(s), d = 4;
	int64_t rows = length + ex_draw(s, 4);
	bool composed = ex_once_in(s, 2);

	for (int i = 0; i < 2; i++) {
		int64_t heads = i ? n : n * g;

		if (composed)
			ex_add_in(s, "float16", 3, (int64_t[]){b, length, heads * d});
		else
			ex_add_in(s, "float16", 4, (int64_t[]){b, heads, length, d});
	}
	for (int i = 0; i < 2; i++)
		ex_add_in(s, "float16", 2, (int64_t[]){rows, d});
	add_index(s, 1, &b, rows - length + 1);
	s->nout = 2;
}

void ex_make_wkv(struct ex_sample *s)
{
	int64_t b = little(s), t = little(s), c = ex_length(s);

	for (int i = 0; i < 2; i++)
		ex_add_in(s, "float32", 1, &c);
	for (int i = 0; i < 2; i++)
		ex_add_in(s, "float32", 3, (int64_t[]){b, t, c});
	for (int i = 0; i < 3; i++)
		ex_add_in(s, "float32", 2, (int64_t[]){b, c});
	s->nout = 4;
}

static void declare(struct ex_sample *s, enum ap_dtype dtype, uint8_t rank, int64_t a, int64_t b)
{
	s->declared[s->nout++] = (struct ap_shape){.rank = rank, .dtype = dtype, .dim = {a, b}};
}

void ex_make_moe_init(struct ex_sample *s)
{
	int64_t n = little(s), k = 1 + ex_draw(s, 3), width = 3, active = 1 + ex_draw(s, 6);

	ex_add_in(s, "float16", 2, (int64_t[]){n, width});
	add_index(s, 2, (int64_t[]){n, k}, n * k);
	add_index(s, 2, (int64_t[]){n, k}, 4);
	ex_add_int(s, "active_num", active);
	declare(s, AP_FLOAT16, 2, (active < n ? active : n) * k, width);
	declare(s, AP_INT32, 1, n * k, 0);
	declare(s, AP_INT32, 1, n * k, 0);
}

void ex_make_moe_gating(struct ex_sample *s)
{
	int64_t n = little(s), experts = 4, k = 1 + ex_draw(s, 3);

	ex_add_in(s, "float16", 2, (int64_t[]){n, experts});
	if (ex_once_in(s, 2))
		s->draw[ex_add_in(s, "bool", 1, &n)] = EX_DRAW_BOOL;
	ex_add_int(s, "k", k);
	declare(s, AP_FLOAT16, 2, n, k);
	declare(s, AP_INT32, 2, n, k);
	declare(s, AP_INT32, 2, n, k);
}

void ex_make_expert_tokens(struct ex_sample *s)
{
	int64_t experts = 1 + ex_draw(s, 6);

	add_index(s, 1, (int64_t[]){ex_length(s)}, experts);
	ex_add_int(s, "num_experts", experts);
	declare(s, AP_INT32, 1, experts, 0);
}

void ex_make_moe_finalize(struct ex_sample *s)
{
	int64_t n = little(s), k = 1 + ex_draw(s, 3), width = ex_length(s), experts = 3;

	ex_add_in(s, "float16", 2, (int64_t[]){n * k, width});
	ex_add_in(s, "float16", 2, (int64_t[]){n, width});
	if (ex_once_in(s, 2))
		ex_add_in(s, "float16", 2, (int64_t[]){n, width});
	else
		ex_skip_in(s);
	ex_add_in(s, "float16", 2, (int64_t[]){experts, width});
	ex_add_in(s, "float16", 2, (int64_t[]){n, k});
	add_index(s, 1, (int64_t[]){n * k}, n * k);
	add_index(s, 2, (int64_t[]){n, k}, experts);
}

void ex_make_route(struct ex_sample *s)
{
	int64_t size[] = {ex_length(s), little(s), 1 + ex_draw(s, 2)}, experts = 1 + ex_draw(s, 4);

	add_index(s, 3, size, experts);
	if (strcmp(s->type, "TopPRouter") == 0 && ex_once_in(s, 2))
		ex_add_in(s, "float32", 3, size);
	ex_add_int(s, "capacity", 1 + ex_draw(s, 3));
	ex_add_int(s, "expert_num", experts);
	s->nout = 2;
}

/* Samples of few groups of few tokens, which choose k of some experts with few places. */
void ex_make_dispatch(struct ex_sample *s)
{
	int64_t groups = little(s), tokens = groups * (1 + ex_draw(s, 3)), k = 1 + ex_draw(s, 2);
	int64_t size[] = {little(s), tokens, 1 + ex_draw(s, 2)}, experts = 1 + ex_draw(s, 4);

	ex_add_in(s, "float16", 3, size);
	size[2] = k;
	add_index(s, 3, size, experts);
	ex_add_int(s, "num_groups", groups);
	ex_add_int(s, "capacity", 1 + ex_draw(s, 2));
	ex_add_int(s, "expert_num", experts);
}

void ex_make_weights(struct ex_sample *s)
{
	int64_t groups = little(s), tokens = groups * (1 + ex_draw(s, 3)), experts = 1 + ex_draw(s, 4);
	int64_t chosen[] = {little(s), tokens, 1 + ex_draw(s, 2)};

	ex_add_in(s, "float16", 3, chosen);
	add_index(s, 3, chosen, experts);
	ex_add_int(s, "num_groups", groups);
	ex_add_int(s, "capacity", 1 + ex_draw(s, 2));
	ex_add_int(s, "expert_num", experts);
}

void ex_make_combine(struct ex_sample *s)
{
	int64_t groups = little(s), tokens = groups * (1 + ex_draw(s, 3)), capacity = 1 + ex_draw(s, 2);
	int64_t experts = 1 + ex_draw(s, 4), b = little(s);
	int64_t chosen[] = {b, tokens, 1 + ex_draw(s, 2)};
	int64_t places[] = {b, experts, groups * capacity, 1 + ex_draw(s, 2)};

	ex_add_in(s, "float16", 4, places);
	add_index(s, 3, chosen, experts);
	if (ex_once_in(s, 2))
		ex_add_in(s, "float16", 3, chosen);
	ex_add_int(s, "num_groups", groups);
	ex_add_int(s, "capacity", capacity);
}
