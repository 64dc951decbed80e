/* SPDX-License-Identifier: Apache-2.0 */
/* Caches of keys and values, places that turn queries and keys, and the recurrence of RWKV. */
#include <string.h>

#include "kern_parts.h"
#include "make_parts.h"
#include "rule/attr.h"

static bool same_size(const struct ex_value *a, const struct ex_value *b)
{
	return memcmp(a->box.size, b->box.size, sizeof a->box.size) == 0;
}

/* What is put into the blocks is handed on; each slot must be one of the cache. */
static bool reshape_and_cache(const struct ex_job *j)
{
	const struct ex_value *key = &j->in[0], *cache = &j->in[2], *slots = &j->in[4];
	int64_t row = cache->box.size[2] * cache->box.size[3];

	if (key->box.size[2] != row || !same_size(key, &j->out[0]) || !same_size(key, &j->in[1]) ||
		ex_count(&slots->box) != key->box.size[0] * key->box.size[1])
		return false;
	for (int64_t i = 0; i < ex_count(&slots->box); i++)
		if ((int64_t)ex_value_of(j->tape, slots->id[i]) >= cache->box.size[0] * cache->box.size[1])
			return false;
	memcpy(j->out[0].id, key->id, (size_t)ex_count(&key->box) * sizeof *key->id);
	return true;
}

/* Rows [B, N, ., D] over those of a cache along `dim` from the batch's place on. */
static bool put_rows(const struct ex_job *j, const struct ex_value *rows, const struct ex_value *place,
	int dim)
{
	const struct ex_value *cache = &j->in[0];
	int64_t at[AP_MAX_RANK] = {0};

	if (!same_size(cache, &j->out[0]))
		return false;
	for (int d = 0; d < 4; d++)
		if (d != dim && rows->box.size[d] != cache->box.size[d])
			return false;
	memcpy(j->out[0].id, cache->id, (size_t)ex_count(&cache->box) * sizeof *cache->id);
	do {
		int64_t to[AP_MAX_RANK];

		memcpy(to, at, sizeof to);
		to[dim] += (int64_t)ex_value_of(j->tape, ex_get_broadcast(place, at, 1));
		if (to[dim] < cache->box.size[dim])
			ex_put(&j->out[0], to, ex_get(rows, at));
	} while (ex_step(&rows->box, at));
	return true;
}

static bool manage(const struct ex_job *j)
{
	return put_rows(j, &j->in[1], &j->in[2], 2);
}

static bool scatter(const struct ex_job *j)
{
	return put_rows(j, &j->in[2], &j->in[1], ex_axis(j, "axis", -2, 4));
}

/* Element d of a head at place s of batch b against the other half of the head. */
static bool turn(const struct ex_job *j, unsigned r)
{
	const struct ex_value *x = &j->in[r], *cos = &j->in[2], *sin = &j->in[3];
	int64_t depth = cos->box.size[1], at[AP_MAX_RANK] = {0};
	int last = x->box.rank - 1, sequence = last - 1;

	if (!same_size(x, &j->out[r]) || x->box.size[last] % depth != 0 || depth % 2 != 0 ||
		x->box.size[0] != j->in[4].box.size[0])
		return false;
	do {
		int64_t d = at[last] % depth, other[AP_MAX_RANK], row[2];
		ex_id sum, turned;

		memcpy(other, at, sizeof other);
		other[last] += d < depth / 2 ? depth / 2 : -(depth / 2);
		row[0] = at[sequence] + (int64_t)ex_value_of(j->tape, j->in[4].id[at[0]]);
		row[1] = d;
		if (row[0] >= cos->box.size[0])
			return false;
		turned = ex_get(x, other);
		turned = d < depth / 2 ? ex_minus(j->tape, 0, turned) : turned;
		sum = ex_times(j->tape, ex_get(x, at), ex_get(cos, row));
		ex_put(&j->out[r], at, ex_mad(j->tape, sum, turned, ex_get(sin, row)));
	} while (ex_step(&x->box, at));
	return true;
}

static bool rotary(const struct ex_job *j)
{
	return turn(j, 0) && turn(j, 1);
}

/* A channel of a batch: sums that decay from place to place. */
static void recur(const struct ex_job *j, int64_t b, int64_t c)
{
	struct ex_tape *t = j->tape;
	int64_t channels = j->in[2].box.size[2], places = j->in[2].box.size[1];
	int64_t state = b * channels + c;
	ex_id decay = ex_fn1(t, "exp", j->in[0].id[c]), bonus = j->in[1].id[c];
	ex_id sum = j->in[4].id[state], weights = j->in[5].id[state], most = j->in[6].id[state];

	for (int64_t i = 0; i < places; i++) {
		int64_t at = (b * places + i) * channels + c;
		ex_id k = j->in[2].id[at], v = j->in[3].id[at];
		ex_id own = ex_fn1(t, "exp", ex_plus(t, bonus, k)), weight = ex_fn1(t, "exp", k);

		j->out[0].id[at] = ex_over(t, ex_mad(t, sum, own, v), ex_plus(t, weights, own));
		sum = ex_mad(t, ex_times(t, sum, decay), weight, v);
		weights = ex_plus(t, ex_times(t, weights, decay), weight);
		most = ex_plus(t, ex_fn1(t, "most", most), k);
	}
	j->out[1].id[state] = sum;
	j->out[2].id[state] = weights;
	j->out[3].id[state] = most;
}

static bool wkv(const struct ex_job *j)
{
	const struct ex_box *k = &j->in[2].box;

	if (j->in[0].box.size[0] != k->size[2] || j->in[4].box.size[0] != k->size[0] ||
		j->in[4].box.size[1] != k->size[2] || !same_size(&j->in[2], &j->in[3]))
		return false;
	for (int64_t b = 0; b < k->size[0]; b++)
		for (int64_t c = 0; c < k->size[2]; c++)
			recur(j, b, c);
	return true;
}

static int64_t limit_slots(const struct ap_node *n, unsigned slot)
{
	return slot == 4 ? n->bound.in[2].size[0] * n->bound.in[2].size[1] : 0;
}

static int64_t limit_manage(const struct ap_node *n, unsigned slot)
{
	return slot == 2 ? n->bound.in[0].size[2] : 0;
}

static int64_t limit_scatter(const struct ap_node *n, unsigned slot)
{
	return slot == 1 ? n->bound.in[0].size[ap_attr_int(&n->attrs, "axis", -2) == -1 ? 3 : 2] : 0;
}

/* So that the last place of the sequence has a row. */
static int64_t limit_places(const struct ap_node *n, unsigned slot)
{
	const struct ap_operand *x = &n->bound.in[0];

	return slot == 4 ? n->bound.in[2].size[0] - x->size[x->rank - 2] + 1 : 0;
}

const struct ex_kernel ex_kernels_cache[] = {
	{.type = "ReshapeAndCache", .forward = reshape_and_cache, .make = ex_make_reshape_and_cache,
		.limit = limit_slots, .no_grad = UINT32_MAX},
	{.type = "KVCacheMgr", .forward = manage, .make = ex_make_cache, .limit = limit_manage,
		.no_grad = UINT32_MAX},
	{.type = "KVCacheScatterUpdate", .forward = scatter, .make = ex_make_cache,
		.limit = limit_scatter, .no_grad = UINT32_MAX},
	{.type = "ApplyRotaryPosEmb", .forward = rotary, .make = ex_make_places,
		.limit = limit_places, .no_grad = UINT32_MAX},
	{.type = "WKV", .forward = wkv, .make = ex_make_wkv, .no_grad = 7 << 4},
	{0}
};
