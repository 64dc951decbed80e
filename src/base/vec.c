/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

#include <string.h>

#include "base/arena.h"

enum { FIRST_CAP = 8 };

void *ap_vec_reserve(struct ap_arena *arena, void *old, size_t n, size_t *cap, size_t size,
	size_t wanted)
{
	void *v;

	if (wanted <= *cap)
		return old;
	v = ap_arena_alloc_raw(arena, wanted, size);
	if (n)
		memcpy(v, old, n * size);
	*cap = wanted;
	return v;
}

void *ap_vec_grow(struct ap_arena *arena, void *old, size_t n, size_t *cap, size_t size)
{
	return ap_vec_reserve(arena, old, n, cap, size, *cap ? *cap * 2 : FIRST_CAP);
}
