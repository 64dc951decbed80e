/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/machine.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/num.h"

/* The unit of kind `within` that holds a server. */
static uint32_t unit_of(const struct ap_topo *topo, enum ap_within within, uint32_t server)
{
	switch (within) {
	case AP_WITHIN_SERVER:
		return server;
	case AP_WITHIN_POD:
		return topo->pod.n ? topo->pod.of[server] : server;
	case AP_WITHIN_CLUSTER:
		return topo->cluster.n ? topo->cluster.of[server] : 0;
	case AP_WITHIN_MACHINE:
		break;
	}
	return 0;
}

/* Numbers the blocks of another level, kept only if it joins several inner blocks. */
static void add_level(struct ap_ctx *ctx, struct ap_machine *m, const struct ap_link_level *level,
	const uint32_t *local)
{
	int l = m->nlevel;
	uint32_t *block = AP_NEW_N(ctx->arena, uint32_t, m->total);
	struct ap_map *ids = ap_map_create(ctx->scratch);
	uint32_t *held = AP_NEW_N(ctx->scratch, uint32_t, m->total);

	m->level[l] = *level;
	m->ranks[l] = 0;
	for (uint32_t r = 0; r < m->total; r++) {
		uint32_t key[2] = {unit_of(m->topo, level->within, m->topo->place[r].server),
			level->span ? local[r] / level->span : 0};

		block[r] = ap_map_put(ids, key, sizeof key, NULL);
		if (++held[block[r]] > m->ranks[l])
			m->ranks[l] = held[block[r]];
	}
	m->block[l] = block;
	m->nblock[l] = (uint32_t)ap_map_size(ids);
	m->nlevel += m->nblock[l] < (l ? m->nblock[l - 1] : m->total);
}

static bool names_link(const struct ap_chip *chip, enum ap_within within)
{
	for (int l = 0; l < chip->nlevel; l++)
		if (chip->level[l].within == within)
			return true;
	return false;
}

static enum ap_status remark(
	struct ap_ctx *ctx, const struct ap_topo *topo, const char *check, const char *text)
{
	struct ap_where where = {.file = *topo->name ? topo->name : NULL};

	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &where, check, "%s", text);
}

/* Links between clusters default to those between servers. */
static enum ap_status make_levels(struct ap_ctx *ctx, struct ap_machine *m)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const uint32_t *local = ap_topo_local_ids(ctx->scratch, m->topo);
	const struct ap_chip *chip = m->chip;
	struct ap_link_level last = chip->level[chip->nlevel - 1];

	for (int c = 0; c + 1 < chip->nlevel; c++)
		add_level(ctx, m, &chip->level[c], local);
	if (m->topo->cluster.n > 1 && !names_link(chip, AP_WITHIN_CLUSTER)) {
		last.within = AP_WITHIN_CLUSTER;
		add_level(ctx, m, &last, local);
		last.within = AP_WITHIN_MACHINE;
		last.name = "cluster";
		AP_TRY(remark(ctx, m->topo, "cluster-level",
			"the network between clusters is taken for that between servers"));
	}
	add_level(ctx, m, &last, local);
	if (m->topo->pod.n && !names_link(chip, AP_WITHIN_POD))
		AP_TRY(remark(ctx, m->topo, "pod-level",
			ap_arena_printf(ctx->scratch, "%s has no links of super pods; servers are "
				"joined by %s", chip->name, last.name)));
	ap_arena_release(ctx->scratch, mark);
	return AP_OK;
}

static bool is_regular(const struct ap_machine *m)
{
	for (int l = 0; l < m->nlevel; l++)
		for (uint32_t r = 0; r < m->total; r++)
			if (m->block[l][r] != r / m->ranks[l])
				return false;
	for (int l = 0; l < m->nlevel; l++)
		if (m->total % m->ranks[l] || (l && m->ranks[l] % m->ranks[l - 1]))
			return false;
	for (int l = 0; l < m->nlevel; l++)
		if (m->ndev % m->ranks[l] && m->ranks[l] % m->ndev)
			return false;
	return true;
}

/* The innermost level at which each group of the axis is in one block. */
static int axis_level(const struct ap_machine *m, struct ap_prime_axis axis)
{
	uint32_t stride = (uint32_t)axis.stride, size = (uint32_t)axis.size;

	for (int l = 0; l + 1 < m->nlevel; l++) {
		const uint32_t *block = m->block[l];
		uint32_t r = 0;

		while (r < m->total && block[r] == block[r - r / stride % size * stride])
			r++;
		if (r == m->total)
			return l;
	}
	return m->nlevel - 1;
}

/* Adds prime axes of count ranks, stride apart; axes are still inner to outer. */
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

/* On a regular machine no axis crosses a block boundary; else uses the primes of a stage's
 * ranks. */
static void make_axes(struct ap_machine *m)
{
	uint32_t stride = 1;

	for (int l = 0; m->regular && l < m->nlevel && m->ranks[l] <= m->ndev; l++) {
		add_primes(m, m->ranks[l] / stride, stride);
		stride = m->ranks[l];
	}
	add_primes(m, m->ndev / stride, stride);
	for (int i = 0, j = m->naxis - 1; i < j; i++, j--) {
		struct ap_prime_axis swap = m->axis[i];

		m->axis[i] = m->axis[j];
		m->axis[j] = swap;
	}
	for (int i = 0; i < m->naxis; i++)
		m->axis[i].level = axis_level(m, m->axis[i]);
}

enum ap_status ap_machine_make(struct ap_ctx *ctx, const struct ap_topo *topo,
	const struct ap_chip *chip, const struct ap_machine **out)
{
	struct ap_machine *m = AP_NEW(ctx->arena, struct ap_machine);

	m->chip = chip;
	m->topo = topo;
	m->ndev = m->total = topo->ndev;
	m->nstage = 1;
	AP_TRY(make_levels(ctx, m));
	m->regular = is_regular(m);
	make_axes(m);
	*out = m;
	return AP_OK;
}

void ap_machine_staged(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t nstage,
	const struct ap_machine **out)
{
	struct ap_machine *staged = AP_NEW(ctx->arena, struct ap_machine);

	assert(nstage >= 1 && m->total % nstage == 0);
	*staged = *m;
	staged->nstage = nstage;
	staged->ndev = m->total / nstage;
	staged->naxis = 0;
	staged->regular = is_regular(staged);
	make_axes(staged);
	*out = staged;
}

/* Do the ranks of two parts lie on the blocks of all levels alike? */
static bool lie_alike(const struct ap_machine *a, const struct ap_machine *b)
{
	if (a->ndev != b->ndev)
		return false;
	for (int l = 0; l < a->nlevel; l++)
		if (memcmp(a->block[l], b->block[l], a->ndev * sizeof *a->block[l]) != 0)
			return false;
	return true;
}

/* The ranks [first, first + n) alone; blocks are numbered anew. Levels keep the number of ranks that share
 * their links, so that groups of other stages count. */
static const struct ap_machine *part_of(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t first,
	uint32_t n)
{
	struct ap_machine *one = ap_arena_memdup(ctx->arena, m, sizeof *m);

	one->nstage = 1;
	one->ndev = one->total = n;
	one->naxis = 0;
	for (int l = 0; l < m->nlevel; l++) {
		struct ap_mark mark = ap_arena_mark(ctx->scratch);
		uint32_t *block = AP_NEW_N(ctx->arena, uint32_t, n);
		struct ap_map *ids = ap_map_create(ctx->scratch);

		for (uint32_t r = 0; r < n; r++)
			block[r] = ap_map_put(ids, &m->block[l][first + r], sizeof *block, NULL);
		one->block[l] = block;
		one->nblock[l] = (uint32_t)ap_map_size(ids);
		ap_arena_release(ctx->scratch, mark);
	}
	one->regular = false; /* groups are counted rank by rank */
	make_axes(one);
	return one;
}

/* The mesh of stages that differ: the prime axes of the least common multiple of their devices, but for
 * their places. */
static void join_axes(struct ap_machine *m, const uint32_t *devices)
{
	m->naxis = 0;
	for (uint32_t s = 0; s < m->nstage; s++) {
		int64_t primes[63];
		size_t n = ap_primes(devices[s], primes);

		for (size_t i = 0, first = 0; i < n; i++) {
			int have = 0;

			first = i > 0 && primes[i] == primes[i - 1] ? first : i;
			for (int k = 0; k < m->naxis; k++)
				have += m->axis[k].size == primes[i];
			if (i - first + 1 > (size_t)have && m->naxis < AP_MAX_AXES)
				m->axis[m->naxis++] = (struct ap_prime_axis){.size = (int32_t)primes[i]};
		}
	}
}

void ap_machine_divided(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t nstage,
	const uint32_t *devices, const struct ap_machine **out)
{
	struct ap_machine *divided = ap_arena_memdup(ctx->arena, m, sizeof *m);
	struct ap_machine_part *part = AP_NEW_N(ctx->arena, struct ap_machine_part, nstage);
	uint32_t first = 0, most = 0;
	bool equal = true;

	for (uint32_t s = 0; s < nstage; s++) {
		equal &= devices[s] == devices[0];
		first += devices[s];
	}
	assert(first == m->total);
	if (equal) {
		ap_machine_staged(ctx, m, nstage, out);
		return;
	}
	first = 0;
	for (uint32_t s = 0; s < nstage; s++) {
		most = devices[s] > most ? devices[s] : most;
		part[s] = (struct ap_machine_part){first, 0, part_of(ctx, m, first, devices[s])};
		while (!lie_alike(part[part[s].like].machine, part[s].machine))
			part[s].like++;
		part[s].machine = part[part[s].like].machine;
		first += devices[s];
	}
	divided->nstage = nstage;
	divided->ndev = most;
	divided->regular = false;
	divided->part = part;
	join_axes(divided, devices);
	*out = divided;
}

void ap_machine_split_as(struct ap_ctx *ctx, const struct ap_machine *m, const struct ap_machine *like,
	const struct ap_machine **out)
{
	uint32_t *devices = AP_NEW_N(ctx->scratch, uint32_t, like->nstage);

	for (uint32_t s = 0; s < like->nstage; s++)
		devices[s] = ap_machine_at(like, (int32_t)s)->ndev;
	ap_machine_divided(ctx, m, like->nstage, devices, out);
}

void ap_machine_stage(struct ap_ctx *ctx, const struct ap_machine *m, uint32_t nstage,
	const struct ap_machine **out)
{
	const struct ap_machine *staged;
	struct ap_machine *one;

	ap_machine_staged(ctx, m, nstage, &staged);
	one = ap_arena_memdup(ctx->arena, staged, sizeof *staged);
	one->nstage = 1;
	*out = one;
}
