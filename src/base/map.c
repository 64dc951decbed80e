/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/vec.h"

enum { FIRST_SLOTS = 16, MANY_BYTES = 64, LANES = 4 };

struct entry {
	const char *key;
	size_t len;
	uint64_t hash;
};

struct ap_map {
	struct ap_arena *arena;
	ap_id *slots; /* open addressing, at most half full; AP_NONE: free */
	size_t nslot; /* a power of two */
	AP_VEC(struct entry) entries; /* by id */
};

static uint64_t mix(uint64_t h)
{
	h ^= h >> 32;
	h *= UINT64_C(0xD6E8FEB86659FD93);
	h ^= h >> 32;
	h *= UINT64_C(0xD6E8FEB86659FD93);
	return h ^ h >> 32;
}

/* n <= 8 bytes in little-endian order on any machine. */
static inline uint64_t word_of(const unsigned char *s, int n)
{
	static const union {
		uint16_t number;
		unsigned char first;
	} one = {1};
	uint64_t word = 0;

	if (one.first)
		memcpy(&word, s, (size_t)n);
	else
		for (int i = 0; i < n; i++)
			word |= (uint64_t)s[i] << 8 * i;
	return word;
}

/* len <= 8 bytes as a word; pieces may overlap. */
static uint64_t short_word(const unsigned char *s, size_t len)
{
	if (len >= 4)
		return word_of(s, 4) | word_of(s + len - 4, 4) << 32;
	return len ? (uint64_t)s[0] | (uint64_t)s[len / 2] << 8 | (uint64_t)s[len - 1] << 16 : 0;
}

static uint64_t step(uint64_t h, uint64_t word)
{
	h = (h ^ word) * UINT64_C(0xD6E8FEB86659FD93);
	return h ^ h >> 32;
}

uint64_t ap_hash(const void *p, size_t len, uint64_t seed)
{
	const unsigned char *s = p;
	uint64_t h = seed ^ (uint64_t)len * UINT64_C(0x9E3779B97F4A7C15);

	if (len <= 8)
		return mix(step(h, short_word(s, len)));
	if (len >= MANY_BYTES) { /* several at once: a multiplication takes the next one's time */
		uint64_t lane[LANES] = {h, h + 1, h + 2, h + 3};

		for (; len >= 8 * LANES; s += 8 * LANES, len -= 8 * LANES)
			for (int k = 0; k < LANES; k++)
				lane[k] = step(lane[k], word_of(s + 8 * k, 8));
		for (int k = 0; k < LANES; k++)
			h = step(h, lane[k]);
		if (len < 8)
			return mix(step(h, short_word(s, len)));
	}
	for (size_t i = 0; i + 8 < len; i += 8)
		h = step(h, word_of(s + i, 8));
	return mix(step(h, word_of(s + len - 8, 8)));
}

/* Avoids calling memcmp() for short keys, which are most. */
static bool same_bytes(const void *a, const void *b, size_t len)
{
	const unsigned char *s = a, *t = b;

	if (len <= 8)
		return short_word(s, len) == short_word(t, len);
	if (len > MANY_BYTES)
		return !memcmp(s, t, len);
	for (size_t i = 0; i + 8 < len; i += 8)
		if (word_of(s + i, 8) != word_of(t + i, 8))
			return false;
	return word_of(s + len - 8, 8) == word_of(t + len - 8, 8);
}

static ap_id *slots_create(struct ap_arena *arena, size_t n)
{
	ap_id *slots = ap_arena_alloc_raw(arena, n, sizeof *slots);

	return memset(slots, 0xFF, n * sizeof *slots);
}

struct ap_map *ap_map_create(struct ap_arena *arena)
{
	struct ap_map *m = AP_NEW(arena, struct ap_map);

	m->arena = arena;
	m->nslot = FIRST_SLOTS;
	m->slots = slots_create(arena, m->nslot);
	return m;
}

/* The slot of a key, or the free slot for it. */
static size_t find_slot(const struct ap_map *m, const void *key, size_t len, uint64_t hash)
{
	size_t at = hash & (m->nslot - 1);

	for (; m->slots[at] != AP_NONE; at = (at + 1) & (m->nslot - 1)) {
		const struct entry *e = &m->entries.v[m->slots[at]];

		if (e->hash == hash && e->len == len && same_bytes(e->key, key, len))
			break;
	}
	return at;
}

ap_id ap_map_put(struct ap_map *m, const void *key, size_t len, bool *fresh)
{
	uint64_t hash = ap_hash(key, len, 0);
	size_t at = find_slot(m, key, len, hash);
	bool is_new = m->slots[at] == AP_NONE;
	ap_id id;

	if (fresh)
		*fresh = is_new;
	if (!is_new)
		return m->slots[at];
	assert(m->entries.n < AP_NONE);
	id = (ap_id)m->entries.n;
	AP_PUSH(m->arena, m->entries, ((struct entry){
		.key = ap_arena_strndup(m->arena, key, len), .len = len, .hash = hash}));
	m->slots[at] = id;
	if (m->entries.n * 2 <= m->nslot)
		return id;
	m->nslot *= 2;
	m->slots = slots_create(m->arena, m->nslot);
	for (ap_id i = 0; i < m->entries.n; i++) {
		at = m->entries.v[i].hash & (m->nslot - 1);
		while (m->slots[at] != AP_NONE)
			at = (at + 1) & (m->nslot - 1);
		m->slots[at] = i;
	}
	return id;
}

ap_id ap_map_get(const struct ap_map *m, const void *key, size_t len)
{
	return m->slots[find_slot(m, key, len, ap_hash(key, len, 0))];
}

const char *ap_map_key(const struct ap_map *m, ap_id id, size_t *len)
{
	assert(id < m->entries.n);
	if (len)
		*len = m->entries.v[id].len;
	return m->entries.v[id].key;
}

size_t ap_map_size(const struct ap_map *m)
{
	return m->entries.n;
}

ap_id ap_map_put_str(struct ap_map *m, const char *s, bool *fresh)
{
	return ap_map_put(m, s, strlen(s), fresh);
}

ap_id ap_map_get_str(const struct ap_map *m, const char *s)
{
	return ap_map_get(m, s, strlen(s));
}
