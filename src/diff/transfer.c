/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/transfer.h"

#include <string.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/map.h"
#include "base/num.h"
#include "cost/optimizer.h"
#include "shard/dealing.h"

/* Do axes tell the ranks of a stage apart, so that each cell is on some rank? */
static bool are_apart(const struct ap_transfer_side *s)
{
	struct ap_saved_axis axis[2 * AP_TRANSFER_RANK];
	uint32_t n = 0;

	for (uint32_t d = 0; d < s->rank; d++)
		if (s->cut[d] > 1)
			axis[n++] = (struct ap_saved_axis){s->stride[d], s->cut[d]};
	for (uint32_t i = 0; i < s->naxis; i++)
		if (s->axis[i].size > 1)
			axis[n++] = s->axis[i];
	for (uint32_t i = 0; i < n; i++) {
		if (axis[i].stride > s->ndev || s->ndev % (axis[i].stride * axis[i].size))
			return false;
		for (uint32_t j = 0; j < n; j++)
			if (j != i && axis[i].stride % (axis[j].stride * axis[j].size) &&
				axis[j].stride % (axis[i].stride * axis[i].size))
				return false;
	}
	return true;
}

/* Is a slice dealt in parts that have all of it, of rows or of elements? */
static bool has_parts(const struct ap_saved_param *p)
{
	int64_t elements = 1, dealt;

	if (!p->part)
		return p->slice.v[0] % p->shards == 0;
	for (size_t d = 0; d < p->slice.n; d++)
		if (!ap_mul(elements, p->slice.v[d], &elements))
			return false;
	return ap_mul(p->part, p->shards, &dealt) && dealt >= elements;
}

bool ap_transfer_side_make(const struct ap_saved_param *p, struct ap_transfer_side *out)
{
	int64_t dealt = 1;

	memset(out, 0, sizeof *out); /* padding too: sides are keys */
	out->rank = (uint32_t)p->shape.n;
	out->ndev = 1;
	out->shards = p->shards;
	out->part = p->part;
	out->naxis = p->nshard_axis;
	if (p->shape.n > AP_TRANSFER_RANK || p->slice.n != p->shape.n || p->tensor_map.n != p->shape.n ||
		p->nshard_axis > AP_TRANSFER_RANK)
		return false;
	for (size_t i = 0; i < p->dev_matrix.n; i++)
		if (!ap_mul(out->ndev, p->dev_matrix.v[i], &out->ndev) || out->ndev > INT32_MAX)
			return false;
	for (uint32_t d = 0; d < out->rank; d++) {
		int64_t map = p->tensor_map.v[d];

		out->size[d] = p->shape.v[d];
		out->cut[d] = 1;
		if (map >= 0) {
			if (map >= (int64_t)p->dev_matrix.n)
				return false;
			out->cut[d] = p->dev_matrix.v[p->dev_matrix.n - 1 - (size_t)map];
			out->stride[d] = 1;
			for (int64_t i = 0; i < map; i++)
				out->stride[d] *= p->dev_matrix.v[p->dev_matrix.n - 1 - (size_t)i];
		}
		if (out->size[d] % out->cut[d] || out->size[d] / out->cut[d] != p->slice.v[d])
			return false;
	}
	for (uint32_t i = 0; i < out->naxis; i++) {
		out->axis[i] = p->shard_axis[i];
		if (!ap_mul(dealt, out->axis[i].size, &dealt))
			return false;
	}
	out->first = p->first_rank;
	if (out->shards == 1) {
		out->naxis = 0;
		out->part = 0;
	}
	return are_apart(out) && (out->shards == 1 ||
		(out->rank && dealt == out->shards && has_parts(p)));
}

/* Parts of dimension d, dealt ones included. */
static int64_t parts_of(const struct ap_transfer_side *s, uint32_t d)
{
	return s->cut[d] * (d ? 1 : s->shards);
}

/* Where the n-th of them begins, or the one before ends. */
static int64_t edge_of(const struct ap_transfer_side *s, uint32_t d, int64_t n)
{
	int64_t slice[AP_TRANSFER_RANK];

	if (d || !s->part)
		return s->size[d] / parts_of(s, d) * n;
	for (uint32_t i = 0; i < s->rank; i++)
		slice[i] = s->size[i] / s->cut[i];
	return n / s->shards * slice[0] + ap_dealing_first_row((int)s->rank, slice, s->part, n % s->shards);
}

/* The one that has a place. */
static int64_t part_at(const struct ap_transfer_side *s, uint32_t d, int64_t place)
{
	int64_t low = 0, high = parts_of(s, d);

	while (high - low > 1) {
		int64_t middle = low + (high - low) / 2;

		if (edge_of(s, d, middle) <= place)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Which of them a rank has. */
static int64_t part_of(const struct ap_transfer_side *s, int64_t rank, uint32_t d)
{
	int64_t r = rank - s->first, part = s->cut[d] > 1 ? r / s->stride[d] % s->cut[d] : 0, number = 0;

	if (d || s->shards == 1)
		return part;
	for (uint32_t i = 0; i < s->naxis; i++)
		number = number * s->axis[i].size + r / s->axis[i].stride % s->axis[i].size;
	return part * s->shards + number;
}

void ap_transfer_box(const struct ap_transfer_side *s, int64_t rank, int64_t lo[AP_TRANSFER_RANK],
	int64_t hi[AP_TRANSFER_RANK])
{
	for (uint32_t d = 0; d < s->rank; d++) {
		int64_t part = part_of(s, rank, d);

		lo[d] = edge_of(s, d, part);
		hi[d] = edge_of(s, d, part + 1);
	}
}

static int64_t cell_of(const struct ap_transfer_side *s, int64_t rank)
{
	int64_t cell = 0;

	for (uint32_t d = 0; d < s->rank; d++)
		cell = cell * parts_of(s, d) + part_of(s, rank, d);
	return cell;
}

struct holders { /* the ranks of each cell, ascending */
	int64_t *start; /* [ncell + 1] */
	int64_t *rank;
};

static void list_holders(struct ap_ctx *ctx, const struct ap_transfer_side *s, struct holders *out)
{
	int64_t ncell = 1, *fill;

	for (uint32_t d = 0; d < s->rank; d++)
		ncell *= parts_of(s, d);
	out->start = AP_NEW_N(ctx->scratch, int64_t, (size_t)ncell + 1);
	out->rank = AP_NEW_N(ctx->scratch, int64_t, (size_t)s->ndev);
	fill = AP_NEW_N(ctx->scratch, int64_t, (size_t)ncell);
	for (int64_t r = 0; r < s->ndev; r++)
		out->start[cell_of(s, s->first + r) + 1]++;
	for (int64_t c = 0; c < ncell; c++)
		out->start[c + 1] += out->start[c];
	for (int64_t r = 0; r < s->ndev; r++) {
		int64_t c = cell_of(s, s->first + r);

		out->rank[out->start[c] + fill[c]++] = s->first + r;
	}
}

/* The first of the sorted ranks that is at least r. */
static int64_t first_from(const int64_t *rank, int64_t n, int64_t r)
{
	int64_t lo = 0;

	while (lo < n) {
		int64_t middle = lo + (n - lo) / 2;

		if (rank[middle] < r)
			lo = middle + 1;
		else
			n = middle;
	}
	return lo;
}

/* Whom a rank takes a cell from: itself, or a rank of the smallest block that has it. */
static int64_t nearest(const struct holders *h, int64_t cell, int64_t to, int nlevel, const int64_t *span)
{
	const int64_t *rank = h->rank + h->start[cell];
	int64_t n = h->start[cell + 1] - h->start[cell], at = first_from(rank, n, to);

	if (at < n && rank[at] == to)
		return to;
	for (int l = 0; l < nlevel; l++) {
		int64_t block = to / span[l] * span[l];
		int64_t from = first_from(rank, n, block), end = first_from(rank, n, block + span[l]);

		if (from < end)
			return rank[from + to % (end - from)];
	}
	return rank[to % n];
}

void ap_transfer_pieces(struct ap_ctx *ctx, const struct ap_transfer_side *was,
	const struct ap_transfer_side *is, int nlevel, const int64_t *span, ap_transfer_visit *visit,
	void *user)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	struct holders holders;

	list_holders(ctx, was, &holders);
	for (int64_t to = is->first; to < is->first + is->ndev; to++) {
		int64_t lo[AP_TRANSFER_RANK], hi[AP_TRANSFER_RANK], at[AP_TRANSFER_RANK];
		int64_t first[AP_TRANSFER_RANK];
		uint32_t d;

		ap_transfer_box(is, to, lo, hi);
		for (d = 0; d < is->rank; d++)
			at[d] = first[d] = part_at(was, d, lo[d]);
		if (is->part && lo[0] == hi[0]) /* dealt to more ranks than there are rows */
			continue;
		do {
			int64_t from[AP_TRANSFER_RANK], end[AP_TRANSFER_RANK], cell = 0;
			struct ap_transfer_piece piece = {.to = to, .elements = 1, .lo = from, .hi = end};

			for (d = 0; d < is->rank; d++) {
				int64_t begin = edge_of(was, d, at[d]), behind = edge_of(was, d, at[d] + 1);

				from[d] = lo[d] > begin ? lo[d] : begin;
				end[d] = hi[d] < behind ? hi[d] : behind;
				piece.elements *= end[d] - from[d];
				cell = cell * parts_of(was, d) + at[d];
			}
			piece.from = nearest(&holders, cell, to, nlevel, span);
			if (piece.elements > 0)
				visit(user, &piece);
			for (d = is->rank; d-- > 0;) {
				if (edge_of(was, d, ++at[d]) < hi[d])
					break;
				at[d] = first[d];
			}
		} while (d != UINT32_MAX);
	}
	ap_arena_release(ctx->scratch, mark);
}

/* ---- a whole plan ---- */

struct load { /* what goes over the links */
	const struct ap_transfer *t;
	int64_t nrank, each_bytes; /* each_bytes: of an element, with its states, of all parameters alike */
	int64_t *in, *out; /* [level][nrank] */
	int64_t stays_bytes;
};

static int level_of(const struct ap_transfer *t, int64_t a, int64_t b)
{
	for (int l = 0; l < t->nlink; l++)
		if (a / t->link[l].span == b / t->link[l].span)
			return l;
	return t->nlink - 1;
}

static void add_piece(void *user, const struct ap_transfer_piece *p)
{
	struct load *load = user;
	int64_t bytes = p->elements * load->each_bytes;

	if (p->from == p->to) {
		load->stays_bytes += bytes;
	} else {
		int64_t level = level_of(load->t, p->from, p->to) * load->nrank;

		load->in[level + p->to] += bytes;
		load->out[level + p->from] += bytes;
	}
}

/* A plan file may hold any number; machines have up to 2^20 devices. */
static int64_t devices_of(const struct ap_saved *s)
{
	const struct ap_saved_fact *f = ap_saved_fact(s, "machine", "devices");
	int64_t n = f ? f->integer : 1;

	return n < 1 ? 1 : n > 1 << 20 ? 1 << 20 : n;
}

static double number_of(const struct ap_saved *s, const char *section, const char *key)
{
	const struct ap_saved_fact *f = ap_saved_fact(s, section, key);

	return f && f->is_number ? f->number : 0;
}

static void read_links(struct ap_ctx *ctx, const struct ap_saved *s, struct ap_transfer *out)
{
	for (uint32_t i = 0; i < s->nfact && out->nlink < AP_TRANSFER_LEVELS; i++) {
		const struct ap_saved_fact *f = &s->fact[i];
		const char *dot = strrchr(f->key, '.');
		struct ap_transfer_link *link = &out->link[out->nlink];

		if (strcmp(f->section, "machine") != 0 || !dot || strcmp(dot, ".span") != 0 || f->integer < 1)
			continue;
		*link = (struct ap_transfer_link){.span = f->integer,
			.name = ap_arena_strndup(ctx->arena, f->key, (size_t)(dot - f->key))};
#define OF(key) number_of(s, "machine", ap_arena_printf(ctx->scratch, "%s." key, link->name))
		link->bandwidth_Bps = OF("bandwidth_Bps") * OF("efficiency");
		link->latency_s = OF("latency_s");
#undef OF
		out->nlink++;
	}
}

static const struct ap_optimizer *optimizer_of(const struct ap_saved *s)
{
	const struct ap_saved_fact *f = ap_saved_fact(s, "settings", "optimizer");

	return f && f->text ? ap_optimizer_find(f->text) : NULL;
}

/* Parameters with the same key go the same ways. */
static const char *key_of(struct ap_ctx *ctx, const struct ap_transfer_side *was,
	const struct ap_transfer_side *is, int64_t each_bytes, size_t *len)
{
	char *key = ap_arena_alloc(ctx->scratch, 1, 2 * sizeof *was + sizeof each_bytes);

	memcpy(key, was, sizeof *was);
	memcpy(key + sizeof *was, is, sizeof *is);
	memcpy(key + 2 * sizeof *was, &each_bytes, sizeof each_bytes);
	*len = 2 * sizeof *was + sizeof each_bytes;
	return key;
}

struct alike {
	struct ap_transfer_side was, is;
	int64_t each_bytes, n;
};

void ap_transfer_make(struct ap_ctx *ctx, const struct ap_saved *was, const struct ap_saved *is,
	const ap_id *old_param, struct ap_transfer *out)
{
	struct ap_mark mark = ap_arena_mark(ctx->scratch);
	const struct ap_optimizer *optimizer = optimizer_of(is);
	int64_t old_devices = devices_of(was), new_devices = devices_of(is);
	struct load load = {.t = out, .nrank = old_devices > new_devices ? old_devices : new_devices};
	struct alike *alike = AP_NEW_N(ctx->scratch, struct alike, is->nparam);
	struct ap_map *keys = ap_map_create(ctx->scratch);
	int64_t span[AP_TRANSFER_LEVELS];
	size_t nalike = 0;

	*out = (struct ap_transfer){.states = optimizer && optimizer == optimizer_of(was)};
	read_links(ctx, old_devices > new_devices ? was : is, out);
	for (uint32_t i = 0; i < is->nparam; i++) {
		const struct ap_saved_param *p = &is->param[i];
		const struct ap_saved_param *old = old_param[i] == AP_NONE ? NULL : &was->param[old_param[i]];
		struct alike a = {.n = 1};
		enum ap_dtype dtype;
		const char *key;
		bool fresh;
		size_t len;
		ap_id id;

		if (!old) {
			out->nnew++;
			continue;
		}
		if (!ap_transfer_side_make(old, &a.was) || !ap_transfer_side_make(p, &a.is) ||
			a.was.rank != a.is.rank || memcmp(a.was.size, a.is.size, sizeof a.was.size) != 0 ||
			(dtype = ap_dtype_find(p->dtype)) == AP_DTYPE_COUNT ||
			a.was.first + a.was.ndev > load.nrank || a.is.first + a.is.ndev > load.nrank) {
			out->nodd++;
			continue;
		}
		out->nparam++;
		a.each_bytes = ap_dtype_bytes(dtype);
		if (out->states && p->trainable && old->trainable)
			a.each_bytes += (int64_t)optimizer->nstate * optimizer->state_bytes;
		key = key_of(ctx, &a.was, &a.is, a.each_bytes, &len);
		id = ap_map_put(keys, key, len, &fresh);
		if (fresh)
			alike[nalike++] = a;
		else
			alike[id].n++;
	}
	for (int l = 0; l < out->nlink; l++)
		span[l] = out->link[l].span;
	load.in = AP_NEW_N(ctx->scratch, int64_t, (size_t)(load.nrank * AP_TRANSFER_LEVELS));
	load.out = AP_NEW_N(ctx->scratch, int64_t, (size_t)(load.nrank * AP_TRANSFER_LEVELS));
	for (size_t i = 0; i < nalike && out->nlink; i++) {
		load.each_bytes = alike[i].each_bytes * alike[i].n;
		ap_transfer_pieces(ctx, &alike[i].was, &alike[i].is, out->nlink, span, add_piece, &load);
	}
	out->stays_bytes = load.stays_bytes;
	for (int l = 0; l < out->nlink; l++) {
		struct ap_transfer_link *link = &out->link[l];

		for (int64_t r = 0; r < load.nrank; r++) {
			int64_t in = load.in[l * load.nrank + r], sent = load.out[l * load.nrank + r];

			link->bytes += in;
			link->most_bytes = in > link->most_bytes ? in : link->most_bytes;
			link->most_bytes = sent > link->most_bytes ? sent : link->most_bytes;
		}
		if (link->most_bytes && link->bandwidth_Bps > 0)
			link->time_s = link->latency_s + (double)link->most_bytes / link->bandwidth_Bps;
		out->time_s += link->time_s;
	}
	ap_arena_release(ctx->scratch, mark);
}
