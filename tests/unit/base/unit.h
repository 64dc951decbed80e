/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the base layer share: a context of their own, and main(). */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/ctx.h"
#include "base/diag.h"
#include "base/str.h"
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

static inline int run_tests(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *tc = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tc, tests[i]);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define RUN_TESTS(name, tests) run_tests((name), (tests), AP_COUNT(tests))

#endif
