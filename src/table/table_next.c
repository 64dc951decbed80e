/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"
#include "table/table.h"
#include "table/table_parts.h"

/* The candidate of a class that has these counts, -1 none. */
static int32_t find(const struct ap_map *seen, const struct ap_table_class *c,
	const int32_t *count)
{
	ap_id id = ap_map_get(seen, count, c->nfactor * sizeof *count);

	return id == AP_NONE ? -1 : (int32_t)id;
}

static void fill_row(const struct ap_map *seen, const struct ap_table_class *c,
	const int32_t *count, int64_t prime, int32_t *row)
{
	int32_t to[AP_MAX_FACTOR];

	memcpy(to, count, c->nfactor * sizeof *to);
	for (uint8_t f = 0; f < c->nfactor; f++) {
		to[f] = count[f] * (int32_t)prime;
		row[f] = find(seen, c, to);
		to[f] = count[f];
	}
}

void ap_table_next(const struct ap_making *mk, struct ap_table_class *c)
{
	struct ap_mark mark = ap_arena_mark(mk->ctx->scratch);
	struct ap_map *seen = ap_map_create(mk->ctx->scratch);
	int64_t primes[63];
	size_t n = ap_primes(mk->m->ndev, primes), different = 0;
	int32_t *row;

	for (size_t i = 0; i < n; i++)
		if (i == 0 || primes[i] != primes[i - 1])
			primes[different++] = primes[i];
	for (uint32_t i = 0; i < c->k; i++)
		ap_map_put(seen, c->count + (size_t)i * c->nfactor, c->nfactor * sizeof *c->count,
			NULL);
	c->nway = (uint32_t)different * c->nfactor;
	c->next = row = AP_NEW_N(mk->ctx->arena, int32_t, (size_t)c->k * c->nway + 1);
	for (uint32_t i = 0; i < c->k; i++)
		for (size_t p = 0; p < different; p++, row += c->nfactor)
			fill_row(seen, c, c->count + (size_t)i * c->nfactor, primes[p], row);
	ap_arena_release(mk->ctx->scratch, mark);
}
