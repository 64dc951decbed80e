/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the writers share: a context, and a sink that keeps what is written. */
#ifndef AP_TEST_EMIT_TEST_H
#define AP_TEST_EMIT_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ctx.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/str.h"
#include "harness.h"

static inline struct ap_ctx new_ctx(void)
{
	struct ap_ctx ctx = {.jobs = 1};

	ctx.arena = ap_arena_create(0, NULL, NULL);
	ctx.scratch = ap_arena_create(0, NULL, NULL);
	ctx.diag = ap_diag_create(ctx.arena, false);
	return ctx;
}

static inline void free_ctx(struct ap_ctx *ctx)
{
	ap_arena_destroy(ctx->scratch);
	ap_arena_destroy(ctx->arena);
}

static inline struct ap_str new_str(struct ap_ctx *ctx)
{
	struct ap_str s;

	ap_str_init(&s, ctx->arena);
	return s;
}

static inline void to_str(void *user, const char *bytes, size_t len)
{
	ap_str_addn(user, bytes, len);
}

/* The text of the last message, "" when there is none. */
static inline const char *last_message(struct ap_ctx *ctx, const char **check)
{
	const char *text = "", *next;

	for (size_t i = 0; (next = ap_diag_text(ctx->diag, i, NULL, check)); i++)
		text = next;
	return text;
}

/* A generator of its own, so that a seed means the same everywhere (xorshift64). */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline uint64_t seed_of_run(void)
{
	const char *given = getenv("AP_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 10) : 1;

	printf("AP_SEED=%llu\n", (unsigned long long)seed);
	return seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
}

#endif
