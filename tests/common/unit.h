/* SPDX-License-Identifier: Apache-2.0 */
/* What tests share: a context of their own, its messages, random numbers. */
#ifndef UNIT_H
#define UNIT_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ctx.h"
#include "base/diag.h"
#include "base/str.h"
#include "harness.h"
#include "base/vec.h"

static inline struct ap_ctx ctx_create(bool strict)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL),
		.scratch = ap_arena_create(0, NULL, NULL), .jobs = 1};

	ctx.diag = ap_diag_create(ctx.arena, strict);
	return ctx;
}

static inline void ctx_destroy(struct ap_ctx *ctx)
{
	ap_arena_destroy(ctx->scratch);
	ap_arena_destroy(ctx->arena);
}

/* All messages, as the program would print them. */
static inline const char *messages(const struct ap_ctx *ctx)
{
	struct ap_str out;

	ap_str_init(&out, ctx->arena);
	ap_diag_render(ctx->diag, AP_NOTE, 20, &out);
	return out.s;
}

static inline void ck_contains(const char *text, const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in \"%s\"", part, text);
}

/* xorshift64*: seed from AP_SEED or fixed, printed so that a failure can be repeated. */
static inline uint64_t random_seed(void)
{
	const char *text = getenv("AP_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 0) : 20240229;

	printf("AP_SEED=%" PRIu64 "\n", seed);
	return seed ? seed : 1;
}

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
	return (random_next(state) >> 11) % n;
}

#endif
