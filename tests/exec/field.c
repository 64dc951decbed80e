/* SPDX-License-Identifier: Apache-2.0 */
#include "exec.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t ex_pow(uint64_t a, uint64_t n)
{
	uint64_t r = 1;

	for (; n; n >>= 1, a = ex_mul(a, a))
		if (n & 1)
			r = ex_mul(r, a);
	return r;
}

uint64_t ex_inverse(uint64_t a)
{
	assert(a != 0);
	return ex_pow(a, EX_P - 2);
}

uint64_t ex_of_int(int64_t v)
{
	uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v, folded = size % EX_P;

	return v < 0 ? ex_sub(0, folded) : folded;
}

int64_t ex_to_int(uint64_t v)
{
	return v > EX_P / 2 ? -(int64_t)(EX_P - v) : (int64_t)v;
}

/* The mixing of splitmix64. */
uint64_t ex_hash(uint64_t seed, uint64_t i)
{
	uint64_t x = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);

	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return ex_fold((x ^ x >> 31) >> 1);
}

/* FNV-1a. */
uint64_t ex_hash_text(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return h;
}

uint64_t ex_seed(const char *test)
{
	const char *text = getenv("AP_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : EX_USUAL_SEED;

	printf("%s: AP_SEED=%" PRIu64 "\n", test, seed);
	return seed ? seed : 1;
}

uint64_t ex_cases(uint64_t otherwise)
{
	const char *text = getenv("AP_CASES");

	return text ? strtoull(text, NULL, 0) : otherwise;
}

uint64_t ex_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

uint32_t ex_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)((ex_next(state) >> 11) % n);
}
