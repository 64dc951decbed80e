/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/machine.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/num.h"

/* Where a rank stands in its server: its device, or where unknown its place among those there. */
static uint32_t *local_ids(struct ap_arena *arena, const struct ap_topo *topo)
{
	uint32_t *local = AP_NEW_N(arena, uint32_t, topo->ndev);
	uint32_t *seen = AP_NEW_N(arena, uint32_t, topo->nserver);

	for (uint32_t r = 0; r < topo->ndev; r++) {
		const struct ap_place *p = &topo->place[r];
		uint32_t place = seen[p->server]++;

		local[r] = p->device_id >= 0 ? (uint32_t)p->device_id : place;
	}
	return local;
}

/* Numbers the blocks of level l, whose span is devices of a server (0: all ranks). */
static void make_blocks(struct ap_ctx *ctx, struct ap_machine *m, int l, const uint32_t *local)
{
	uint32_t span = m->level[l].span;
	uint32_t *block = AP_NEW_N(ctx->arena, uint32_t, m->ndev);
	struct ap_map *ids = ap_map_create(ctx->scratch);
	uint32_t *held = AP_NEW_N(ctx->scratch, uint32_t, m->ndev);

	for (uint32_t r = 0; r < m->ndev; r++) {
		uint32_t key[2] = {0, 0};

		if (span) {
			key[0] = m->topo->place[r].server;
			key[1] = local[r] / span;
		}
		block[r] = ap_map_put(ids, key, sizeof key, NULL);
		if (++held[block[r]] > m->ranks[l])
			m->ranks[l] = held[block[r]];
	}
	m->block[l] = block;
	m->nblock[l] = (uint32_t)ap_map_size(ids);
}

/* Does a block of level l join several of the blocks (or ranks) inside it? */
static bool joins(const struct ap_machine *m, int l)
{
	return m->nblock[l] < (l ? m->nblock[l - 1] : m->ndev);
}

static void make_levels(struct ap_ctx *ctx, struct ap_machine *m)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const uint32_t *local = local_ids(ctx->scratch, m->topo);

	for (int c = 0; c < m->chip->nlevel; c++) {
		int l = m->nlevel;

		m->level[l] = m->chip->level[c];
		m->ranks[l] = 0;
		make_blocks(ctx, m, l, local);
		if (joins(m, l))
			m->nlevel++;
	}
	ap_arena_release(ctx->scratch, mark);
}

static bool is_regular(const struct ap_machine *m)
{
	for (int l = 0; l < m->nlevel; l++)
		for (uint32_t r = 0; r < m->ndev; r++)
			if (m->block[l][r] != r / m->ranks[l])
				return false;
	for (int l = 0; l < m->nlevel; l++)
		if (m->ndev % m->ranks[l] || (l && m->ranks[l] % m->ranks[l - 1]))
			return false;
	return true;
}

/* The innermost level at which each group of this axis lies in one block. */
static int axis_level(const struct ap_machine *m, struct ap_prime_axis axis)
{
	uint32_t stride = (uint32_t)axis.stride, size = (uint32_t)axis.size;

	for (int l = 0; l + 1 < m->nlevel; l++) {
		const uint32_t *block = m->block[l];
		uint32_t r = 0;

		while (r < m->ndev && block[r] == block[r - r / stride % size * stride])
			r++;
		if (r == m->ndev)
			return l;
	}
	return m->nlevel - 1;
}

/* Adds the primes of count ranks, each of stride ranks, outside the axes there are (which are still
 * in reverse order: inner first). */
static void add_primes(struct ap_machine *m, uint32_t count, uint32_t stride)
{
	int64_t primes[63];
	size_t n = ap_primes(count, primes);

	for (size_t i = 0; i < n; i++) {
		m->axis[m->naxis++] = (struct ap_prime_axis){
			.size = (int32_t)primes[i],
			.stride = (int32_t)stride,
		};
		stride *= (uint32_t)primes[i];
	}
}

static void reverse_axes(struct ap_machine *m)
{
	for (int i = 0, j = m->naxis - 1; i < j; i++, j--) {
		struct ap_prime_axis swap = m->axis[i];

		m->axis[i] = m->axis[j];
		m->axis[j] = swap;
	}
}

/* On a regular machine no axis crosses the border of a block; else the primes of the rank count. */
static void make_axes(struct ap_machine *m)
{
	uint32_t stride = 1;

	for (int l = 0; m->regular && l < m->nlevel; l++) {
		add_primes(m, m->ranks[l] / stride, stride);
		stride = m->ranks[l];
	}
	add_primes(m, m->ndev / stride, stride);
	reverse_axes(m);
	for (int i = 0; i < m->naxis; i++)
		m->axis[i].level = axis_level(m, m->axis[i]);
}

enum ap_status ap_machine_make(struct ap_ctx *ctx, const struct ap_topo *topo,
	const struct ap_chip *chip, const struct ap_machine **out)
{
	struct ap_machine *m = AP_NEW(ctx->arena, struct ap_machine);

	m->chip = chip;
	m->topo = topo;
	m->ndev = topo->ndev;
	make_levels(ctx, m);
	m->regular = is_regular(m);
	make_axes(m);
	*out = m;
	return AP_OK;
}
