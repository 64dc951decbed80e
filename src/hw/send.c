/* SPDX-License-Identifier: Apache-2.0 */
/* Sends from the ranks of one stage to those of another. */
#include <assert.h>

#include "hw/link.h"

enum { CHUNK = 256 }; /* blocks whose pairs are counted at once */

struct sends {
	const struct ap_machine *m;
	uint32_t from, to; /* first ranks of the two stages */
};

/* The level that joins pair r: the innermost one with a block that holds both. */
static int level_of(const struct sends *x, uint32_t r)
{
	int l = 0;

	while (l + 1 < x->m->nlevel && x->m->block[l][x->from + r] != x->m->block[l][x->to + r])
		l++;
	return l;
}

/* The most pairs that share one block of level l, of its blocks [first, first + CHUNK). */
static uint32_t most_in_chunk(const struct sends *x, int l, uint32_t first)
{
	uint32_t pairs[CHUNK] = {0}, most = 0;

	for (uint32_t r = 0; r < x->m->ndev; r++) {
		uint32_t at = x->m->block[l][x->from + r] - first;

		if (at < CHUNK && level_of(x, r) == l && ++pairs[at] > most)
			most = pairs[at];
	}
	return most;
}

/* The most pairs that level l joins inside one of its blocks; 0 where it joins none. */
static uint32_t most_sharers(const struct sends *x, int l)
{
	uint32_t low = UINT32_MAX, high = 0, most = 0;

	for (uint32_t r = 0; r < x->m->ndev; r++)
		if (level_of(x, r) == l) {
			uint32_t b = x->m->block[l][x->from + r];

			low = b < low ? b : low;
			high = b > high ? b : high;
		}
	if (low > high)
		return 0;
	if (x->m->level[l].kind != AP_LINK_BUS)
		return 1; /* nothing is shared: one is as many as all */
	for (uint32_t first = low; first <= high; first += CHUNK) {
		uint32_t n = most_in_chunk(x, l, first);

		most = n > most ? n : most;
	}
	return most;
}

double ap_send_time_s(const struct ap_machine *m, uint32_t from, uint32_t to, double bytes)
{
	struct sends x = {m, from * m->ndev, to * m->ndev};
	double worst = 0;

	assert(from < m->nstage && to < m->nstage && bytes >= 0);
	if (from == to || bytes == 0)
		return 0;
	for (int l = 0; l < m->nlevel; l++) {
		uint32_t sharers = most_sharers(&x, l);
		const struct ap_link_level *level = &m->level[l];
		double t;

		if (sharers == 0)
			continue;
		t = level->latency_s + bytes / ap_link_rank_Bps(level, 2, sharers);
		worst = t > worst ? t : worst;
	}
	return m->chip->collective_fixed_s + worst;
}
