/* SPDX-License-Identifier: Apache-2.0 */
/* Interning: byte strings (names, signatures) to dense ids 0, 1, 2, .. in order of first
 * appearance. Iteration counts ids, so no hash order can reach a result. O(1) expected per
 * operation. */
#ifndef AP_BASE_MAP_H
#define AP_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"

struct ap_map; /* keys are copied into the arena */

struct ap_map *ap_map_create(struct ap_arena *arena);

/* Adds key[0..len) if missing; returns its id. *fresh (may be NULL): it was missing. */
ap_id ap_map_put(struct ap_map *m, const void *key, size_t len, bool *fresh);

/* The id of key, or AP_NONE. */
ap_id ap_map_get(const struct ap_map *m, const void *key, size_t len);

/* The key of an id (NUL-terminated copy); *len (may be NULL): its length. */
const char *ap_map_key(const struct ap_map *m, ap_id id, size_t *len);

size_t ap_map_size(const struct ap_map *m);

ap_id ap_map_put_str(struct ap_map *m, const char *s, bool *fresh);
ap_id ap_map_get_str(const struct ap_map *m, const char *s);

/* 64-bit hash, equal on all machines. */
uint64_t ap_hash(const void *p, size_t len, uint64_t seed);

#endif
