/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are the same everywhere. */
#ifndef BENCH_DRAW_H
#define BENCH_DRAW_H

#include "base/num.h"

/* Below n, which is not 0; *state is not 0 either (xorshift64*). */
static inline uint64_t draw_below(uint64_t *state, uint64_t n)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return (*state * UINT64_C(2685821657736338717) >> 11) % n;
}

/* Seconds below so many microseconds, on the quantum of tables. */
static inline double draw_seconds(uint64_t *state, uint64_t most_us)
{
	return ap_quantise_s((double)draw_below(state, most_us * 1000) * 1e-9, AP_QUANTUM_S);
}

#endif
