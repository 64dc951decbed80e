/* SPDX-License-Identifier: Apache-2.0 */
/* Times of collectives and of sends between stages. */
#include "hw/coll.h"

#include <assert.h>
#include <math.h>

#include "base/vec.h"

static const struct {
	const char *name;
	int passes;
	enum ap_coll adjoint;
} colls[AP_COLL_COUNT] = {
#define COLL(id, name_, passes_, adjoint_) [AP_COLL_##id] = {name_, passes_, AP_COLL_##adjoint_},
#include "hw/coll.def"
#undef COLL
};

/* One collective over groups of one shape. */
struct call {
	const struct ap_machine *m;
	const struct ap_group_shape *s;
	enum ap_coll coll;
	double size; /* ranks per group */
	double bytes;
};

const char *ap_coll_name(enum ap_coll c)
{
	return colls[c].name;
}

enum ap_coll ap_coll_adjoint(enum ap_coll c)
{
	return colls[c].adjoint;
}

/* Send rate of a rank to `members` - 1 others across the level, while `sharers` ranks of its block
 * send. */
static double link_rank_Bps(const struct ap_link_level *level, uint32_t members, uint32_t sharers)
{
	double Bps = level->bandwidth_Bps * level->efficiency;
	int last = level->nlinks - 1, i = (int)members - 2;

	if (level->kind == AP_LINK_MESH)
		Bps *= level->nlinks ? level->links[i < 0 ? 0 : i > last ? last : i] : members - 1;
	return level->kind == AP_LINK_BUS ? Bps / sharers : Bps;
}

/* Send rate of a rank at level l while all groups of the machine communicate. */
static double rank_Bps(const struct call *x, int l)
{
	return link_rank_Bps(&x->m->level[l], x->s->few[l], x->m->ranks[l]);
}

/* Throughput of a ring through a group: it crosses a level once per sub-block, over the links of
 * all members in it. The slowest level decides. */
static double ring_Bps(const struct call *x)
{
	double least = -1;

	for (int l = 0; l < x->m->nlevel; l++) {
		double Bps = rank_Bps(x, l) * x->s->members[l];

		if (x->s->fan[l] > 1 && (least < 0 || Bps < least))
			least = Bps;
	}
	assert(least > 0);
	return least;
}

/* Fewest members of the group in a block of level l. */
static double reach(const struct call *x, int l)
{
	return l + 1 < x->m->nlevel ? x->s->members[l + 1] : x->size;
}

/* Steps to halve n ranks down to one. */
static int halvings(uint32_t n)
{
	int steps = 0;

	for (uint64_t reach = 1; reach < n; reach *= 2)
		steps++;
	return steps;
}

/* Share of the buffer that a rank forwards in a ring. */
static double ring_part(const struct call *x)
{
	return x->coll == AP_COLL_BROADCAST ? 1 : (x->size - 1) / x->size;
}

/* Latencies of what goes around a ring once: it leaves each sub-block but the last for the next one. */
static double hops_s(const struct call *x)
{
	double left = x->size - 1, sum = 0;

	for (int l = x->m->nlevel - 1; l >= 0; l--) {
		double hops = fmin(left, x->size / reach(x, l) * (x->s->fan[l] - 1));

		sum += hops * x->m->level[l].latency_s;
		left -= hops;
	}
	return sum;
}

static double ring_s(const struct call *x)
{
	return colls[x->coll].passes * (hops_s(x) + ring_part(x) * x->bytes / ring_Bps(x));
}

/* In each pass of an AllReduce a tree moves the whole buffer; for gather and scatter, recursive
 * doubling moves as much as a ring. */
static double tree_s(const struct call *x)
{
	double latency = 0;
	double part = x->coll == AP_COLL_ALLREDUCE ? 1 : ring_part(x);

	for (int l = 0; l < x->m->nlevel; l++)
		latency += halvings(x->s->fan[l]) * x->m->level[l].latency_s;
	return colls[x->coll].passes * (latency + part * x->bytes / ring_Bps(x));
}

/*
 * NCCL's trees have servers as nodes, within which they are chains: in one server no better than a ring.
 * There, few hops are those of its protocol for small buffers, LL, which sends 4 bytes of flags with each 4
 * bytes.
 */
static double nccl_tree_s(const struct call *x)
{
	bool is_one_server = true;
	struct call y = *x;

	for (int l = 0; l < x->m->nlevel; l++)
		is_one_server &= x->s->fan[l] == 1 || x->m->level[l].within == AP_WITHIN_SERVER;
	y.bytes *= is_one_server ? 2 : 1;
	return tree_s(&y);
}

/* Time of a ring among sub-blocks of level l, each rank with its own part of the buffer; for an
 * AllReduce at the outermost level, of a tree if faster. */
static double level_s(const struct call *x, int l, bool outermost)
{
	/* share of the buffer that crosses into a sub-block; if unequal, the one with the fewest
	 * members gathers most */
	double even = 1 - 1. / x->s->fan[l], uneven = 1 - x->s->members[l] / reach(x, l);
	double crossing = x->coll == AP_COLL_ALLREDUCE || even > uneven ? even : uneven;
	double latency_s = x->m->level[l].latency_s;
	double part_s = x->bytes / x->s->members[l] / rank_Bps(x, l);
	double ring = (x->s->fan[l] - 1) * latency_s + crossing * part_s;
	double tree = halvings(x->s->fan[l]) * latency_s + part_s;

	if (x->coll != AP_COLL_ALLREDUCE || !outermost)
		tree = ring;
	return colls[x->coll].passes * (ring < tree ? ring : tree);
}

/* AllReduce: scatters inside, reduces across, gathers inside; others: one way only. */
static double hierarchical_s(const struct call *x)
{
	double total = 0;
	bool outermost = true;

	for (int l = x->m->nlevel - 1; l >= 0; l--)
		if (x->s->fan[l] > 1) {
			total += level_s(x, l, outermost);
			outermost = false;
		}
	return total;
}

/* Each rank sends every other rank its part, level by level. */
static double pairwise_s(const struct call *x)
{
	double total = 0;

	for (int l = 0; l < x->m->nlevel; l++) {
		double peers = reach(x, l) - x->s->members[l];

		if (peers > 0)
			total += peers *
				 (x->m->level[l].latency_s + x->bytes / x->size / rank_Bps(x, l));
	}
	return total;
}

/* Each rank sends to both sides at once; if a sub-block has several members, only one neighbour of
 * a rank is outside. The slowest level decides. */
static double neighbours_s(const struct call *x)
{
	double worst = 0;

	for (int l = 0; l < x->m->nlevel; l++) {
		double crossing_bytes = x->s->members[l] > 1 ? x->bytes / 2 : x->bytes;
		double links = x->s->few[l] - 1, Bps = rank_Bps(x, l), t;

		if (x->m->level[l].kind == AP_LINK_MESH && links > 2)
			Bps = Bps * 2 / links; /* the two links to neighbours */
		t = x->m->level[l].latency_s + crossing_bytes / Bps;
		if (x->s->fan[l] > 1 && t > worst)
			worst = t;
	}
	return worst;
}

/* Each rank passes a part on to the next, as often as there are other ranks; each time is a call. Of a
 * block's members one has its neighbour outside. */
static double rounds_s(const struct call *x)
{
	double worst = 0, part = x->bytes / x->size;

	for (int l = 0; l < x->m->nlevel; l++) {
		double t = x->m->level[l].latency_s +
			part / link_rank_Bps(&x->m->level[l], 2, x->m->ranks[l]);

		if (x->s->fan[l] > 1 && t > worst)
			worst = t;
	}
	return (x->size - 1) * worst + (x->size - 2) * x->m->chip->collective_fixed_s;
}

struct algorithm {
	const char *name;
	double (*time_s)(const struct call *x);
	uint32_t nccl, hccl; /* masks of collectives */
};

/* HCCL takes the levels of a machine one after another; NCCL's rings and trees go through all ranks. */
static double best_s(const struct call *x, const struct algorithm **by)
{
	enum {
		PIECES = 1 << AP_COLL_ALLREDUCE | 1 << AP_COLL_ALLGATHER | 1 << AP_COLL_REDUCESCATTER |
			1 << AP_COLL_SEND,
		BROADCAST = 1 << AP_COLL_BROADCAST
	};
	static const struct algorithm algorithms[] = {
		/* broadcast in pieces along a chain */
		{"ring", ring_s, PIECES | BROADCAST, PIECES | BROADCAST},
		{"tree", tree_s, 0, PIECES | BROADCAST},
		{"tree", nccl_tree_s, PIECES | BROADCAST, 0},
		{"hierarchical", hierarchical_s, 0, PIECES},
		{"pairwise", pairwise_s, 1u << AP_COLL_ALLTOALL, 1u << AP_COLL_ALLTOALL},
		{"rounds", rounds_s, 1u << AP_COLL_RING, 1u << AP_COLL_RING},
		{"neighbours", neighbours_s, 1u << AP_COLL_NEIGHBOREXCHANGE,
			1u << AP_COLL_NEIGHBOREXCHANGE},
	};
	bool is_hccl = *x->m->chip->hccl != '\0';
	double best = -1;

	for (size_t i = 0; i < AP_COUNT(algorithms); i++) {
		uint32_t of = is_hccl ? algorithms[i].hccl : algorithms[i].nccl;
		double t = of >> x->coll & 1 ? algorithms[i].time_s(x) : -1;

		if (t >= 0 && (best < 0 || t < best)) {
			best = t;
			*by = &algorithms[i];
		}
	}
	return best;
}

/* The curve that was measured of the collective on such a group; NULL: there is none. Groups of all
 * shapes that the measured one can have are as fast, but where a level's links are shared with others. */
static const struct ap_curve *measured(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g)
{
	int64_t all = 1, each = 1; /* ranks, and those on a server */

	if (!m->chip->ncurve || g->nshape != 1)
		return NULL;
	for (int l = 0; l < m->nlevel; l++) {
		all *= g->shape->fan[l];
		each *= m->level[l].within == AP_WITHIN_SERVER ? g->shape->fan[l] : 1;
		if (m->level[l].kind == AP_LINK_BUS && g->shape->fan[l] > 1 && all < m->ranks[l])
			return NULL;
	}
	for (int i = 0; i < m->chip->ncurve; i++) {
		const struct ap_curve *curve = &m->chip->curve[i];

		if (curve->coll == (int)c && curve->ranks == g->size && all == g->size &&
			curve->servers * each == g->size)
			return curve;
	}
	return NULL;
}

/* The slowest of the group's shapes, how it is done there, and what it takes; *by NULL: there is
 * nothing to do. */
static double slowest_s(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g, double bytes,
	struct call *slowest, const struct algorithm **by)
{
	const struct algorithm *how = NULL;
	double worst = 0;

	assert(bytes >= 0);
	*by = NULL;
	for (int i = 0; i < g->nshape && g->size > 1; i++) {
		struct call x = {m, &g->shape[i], c, (double)g->size, bytes};
		double t = m->chip->collective_fixed_s + best_s(&x, &how);

		if (t > worst) {
			worst = t;
			*slowest = x;
			*by = how;
		}
	}
	return worst;
}

double ap_coll_time_s(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g,
	double bytes, const char **algorithm)
{
	const struct ap_curve *curve = measured(m, c, g);
	const struct algorithm *by;
	struct call slowest;
	double s;

	if (curve) {
		if (algorithm)
			*algorithm = "measured";
		return ap_curve_time_s(curve, bytes);
	}
	s = slowest_s(m, c, g, bytes, &slowest, &by);
	if (algorithm)
		*algorithm = by ? by->name : "none";
	return s;
}

void ap_coll_parts(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g, double bytes,
	struct ap_coll_parts *out)
{
	const struct ap_curve *curve = measured(m, c, g);
	const struct algorithm *by;
	struct call x;
	double s;

	if (curve) {
		*out = (struct ap_coll_parts){"measured", 0, ap_curve_time_s(curve, 0)};
		out->transfer_s = ap_curve_time_s(curve, bytes) - out->latency_s;
		return;
	}
	s = slowest_s(m, c, g, bytes, &x, &by);
	*out = (struct ap_coll_parts){.algorithm = by ? by->name : "none"};
	if (!by)
		return;
	x.bytes = 0;
	out->fixed_s = m->chip->collective_fixed_s;
	out->latency_s = by->time_s(&x);
	out->transfer_s = s - out->fixed_s - out->latency_s;
}

double ap_coll_least_slope(const struct ap_machine *m, enum ap_coll c, const struct ap_group *g, double most,
	double *none_s)
{
	const struct ap_curve *curve = measured(m, c, g);

	/* the formulas' times are concave of one shape, and of several in proportion at least */
	*none_s = g->nshape > 1 ? 0 : ap_coll_time_s(m, c, g, 0, NULL);
	return curve ? ap_curve_least_slope(curve, most)
		: (ap_coll_time_s(m, c, g, most, NULL) - *none_s) / most;
}

static double relayed_s(const struct call *x, const struct ap_relay *relay)
{
	double longest = 0, latency = 0;

	for (int l = 0; l < x->m->nlevel; l++) {
		double members = x->s->members[l], blocks = reach(x, l) / members;
		double parts = relay->reached(relay->of, (int64_t)(x->size / members));
		double bytes = x->bytes * parts * (1 - 1 / blocks);

		if (blocks <= 1)
			continue;
		latency += x->m->level[l].latency_s;
		if (bytes / rank_Bps(x, l) > longest)
			longest = bytes / rank_Bps(x, l);
	}
	return latency + longest;
}

double ap_relay_time_s(const struct ap_machine *m, const struct ap_group *g, const struct ap_relay *relay)
{
	double worst = 0;

	for (int i = 0; i < g->nshape && g->size > 1; i++) {
		struct call x = {m, &g->shape[i], AP_COLL_ALLTOALL, (double)g->size, relay->bytes};
		double t = m->chip->collective_fixed_s + relayed_s(&x, relay);

		worst = t > worst ? t : worst;
	}
	return worst;
}

enum { CHUNK = 256 }; /* blocks counted in one scan */

struct sends {
	const struct ap_machine *m;
	uint32_t from, to; /* first ranks of the two stages */
	uint32_t n; /* ranks of each */
};

/* The innermost level with a block that holds both ranks of pair r. */
static int level_of(const struct sends *x, uint32_t r)
{
	int l = 0;

	while (l + 1 < x->m->nlevel && x->m->block[l][x->from + r] != x->m->block[l][x->to + r])
		l++;
	return l;
}

/* The most pairs in one block of level l, among blocks [first, first + CHUNK). */
static uint32_t most_in_chunk(const struct sends *x, int l, uint32_t first)
{
	uint32_t pairs[CHUNK] = {0}, most = 0;

	for (uint32_t r = 0; r < x->n; r++) {
		uint32_t at = x->m->block[l][x->from + r] - first;

		if (at < CHUNK && level_of(x, r) == l && ++pairs[at] > most)
			most = pairs[at];
	}
	return most;
}

/* The most pairs that level l joins in one of its blocks; 0 if none. */
static uint32_t most_sharers(const struct sends *x, int l)
{
	uint32_t low = UINT32_MAX, high = 0, most = 0;

	for (uint32_t r = 0; r < x->n; r++)
		if (level_of(x, r) == l) {
			uint32_t b = x->m->block[l][x->from + r];

			low = b < low ? b : low;
			high = b > high ? b : high;
		}
	if (low > high)
		return 0;
	if (x->m->level[l].kind != AP_LINK_BUS)
		return 1; /* not shared */
	for (uint32_t first = low; first <= high; first += CHUNK) {
		uint32_t n = most_in_chunk(x, l, first);

		most = n > most ? n : most;
	}
	return most;
}

double ap_send_time_s(const struct ap_machine *m, uint32_t from, uint32_t to, double bytes)
{
	struct sends x = {m, ap_machine_first(m, (int32_t)from), ap_machine_first(m, (int32_t)to),
		ap_machine_at(m, (int32_t)from)->ndev};
	double worst = 0;

	assert(from < m->nstage && to < m->nstage && bytes >= 0);
	assert(ap_machine_at(m, (int32_t)to)->ndev == x.n);
	if (from == to || bytes == 0)
		return 0;
	for (int l = 0; l < m->nlevel; l++) {
		uint32_t sharers = most_sharers(&x, l);
		const struct ap_link_level *level = &m->level[l];
		double t;

		if (sharers == 0)
			continue;
		t = level->latency_s + bytes / link_rank_Bps(level, 2, sharers);
		worst = t > worst ? t : worst;
	}
	return m->chip->collective_fixed_s + worst;
}

struct end { /* what a rank sends, or receives, over a level */
	uint32_t peers;
	double bytes;
};

/* Seconds of a rank's end of sends: latencies one after the other, bytes side by side. */
static double end_s(const struct ap_machine *m, const struct end *end, uint32_t rank,
	double *const *shared_bytes)
{
	double latency = 0, longest = 0;

	for (int l = 0; l < m->nlevel; l++) {
		const struct ap_link_level *level = &m->level[l];
		double bytes = level->kind == AP_LINK_BUS ? shared_bytes[l][m->block[l][rank]] : end[l].bytes;

		if (end[l].peers == 0)
			continue;
		latency += end[l].peers * level->latency_s;
		longest = fmax(longest, bytes / link_rank_Bps(level, end[l].peers + 1, 1));
	}
	return latency + longest;
}

double ap_sends_time_s(struct ap_arena *scratch, const struct ap_machine *m, const struct ap_sent *sent,
	size_t n)
{
	struct ap_mark mark = ap_arena_mark(scratch);
	size_t ends = (size_t)m->total * (size_t)m->nlevel;
	struct end *out = AP_NEW_N(scratch, struct end, ends), *in = AP_NEW_N(scratch, struct end, ends);
	double **shared = AP_NEW_N(scratch, double *, m->nlevel), worst = 0;

	for (int l = 0; l < m->nlevel; l++)
		shared[l] = AP_NEW_N(scratch, double, m->nblock[l]);
	for (size_t i = 0; i < n; i++) {
		const struct ap_sent *s = &sent[i];
		int l = 0;

		assert(s->from < m->total && s->to < m->total && s->from != s->to && s->bytes >= 0);
		while (l + 1 < m->nlevel && m->block[l][s->from] != m->block[l][s->to])
			l++;
		out[(size_t)s->from * (size_t)m->nlevel + (size_t)l].peers++;
		out[(size_t)s->from * (size_t)m->nlevel + (size_t)l].bytes += s->bytes;
		in[(size_t)s->to * (size_t)m->nlevel + (size_t)l].peers++;
		in[(size_t)s->to * (size_t)m->nlevel + (size_t)l].bytes += s->bytes;
		shared[l][m->block[l][s->from]] += s->bytes;
	}
	for (uint32_t r = 0; r < m->total; r++) {
		worst = fmax(worst, end_s(m, &out[(size_t)r * (size_t)m->nlevel], r, shared));
		worst = fmax(worst, end_s(m, &in[(size_t)r * (size_t)m->nlevel], r, shared));
	}
	ap_arena_release(scratch, mark);
	return worst > 0 ? m->chip->collective_fixed_s + worst : 0;
}
