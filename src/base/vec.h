/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays. Growable ones on an arena: AP_VEC(ap_id) ids = {0}; its elements are ids.v[0..ids.n).
 * AP_PUSH(arena, ids, x) appends; growth doubles, the old block stays in the arena.
 * AP_RESERVE(arena, ids, n) makes room for n elements at once. */
#ifndef AP_BASE_VEC_H
#define AP_BASE_VEC_H

#include <stddef.h>

/* Number of elements of an array (not a pointer). */
#define AP_COUNT(array) (sizeof(array) / sizeof *(array))

struct ap_arena;

/* An anonymous type: to pass one to functions, use a tagged struct with these members. */
#define AP_VEC(T) \
	struct { \
		T *v; \
		size_t n, cap; \
	}

void *ap_vec_grow(struct ap_arena *arena, void *old, size_t n, size_t *cap, size_t size);

void *ap_vec_reserve(struct ap_arena *arena, void *old, size_t n, size_t *cap, size_t size,
	size_t wanted);

#define AP_RESERVE(arena, vec, wanted) \
	((vec).v = ap_vec_reserve((arena), (vec).v, (vec).n, &(vec).cap, sizeof *(vec).v, (wanted)))

#define AP_PUSH(arena, vec, x) \
	do { \
		if ((vec).n == (vec).cap) \
			(vec).v = ap_vec_grow((arena), (vec).v, (vec).n, &(vec).cap, \
				sizeof *(vec).v); \
		(vec).v[(vec).n++] = (x); \
	} while (0)

#endif
