/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/attempt.h"

#include <setjmp.h>

#include "base/vec.h"

struct oom {
	jmp_buf jump;
	size_t wanted;
};

static void on_oom(void *user, size_t wanted)
{
	struct oom *oom = user;

	oom->wanted = wanted;
	longjmp(oom->jump, 1);
}

START_TEST(memory_is_zeroed_aligned_and_apart)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	unsigned char *p[200];

	for (size_t i = 0; i < 200; i++) {
		p[i] = ap_arena_alloc(a, i, 7);
		ck_assert_uint_eq((uintptr_t)p[i] % 16, 0);
		for (size_t j = 0; j < 7 * i; j++)
			ck_assert_uint_eq(p[i][j], 0);
		memset(p[i], (int)i, 7 * i);
	}
	for (size_t i = 0; i < 200; i++)
		for (size_t j = 0; j < 7 * i; j++)
			ck_assert_uint_eq(p[i][j], i);
	ap_arena_destroy(a);
	ap_arena_destroy(NULL);
}
END_TEST

START_TEST(copies)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	int numbers[] = {1, 2, 3};

	ck_assert_str_eq(ap_arena_strdup(a, "abc"), "abc");
	ck_assert_str_eq(ap_arena_strndup(a, "abc", 2), "ab");
	ck_assert_str_eq(ap_arena_strndup(a, NULL, 0), "");
	ck_assert_str_eq(ap_arena_printf(a, "%d-%s", 7, "x"), "7-x");
	ck_assert_mem_eq(ap_arena_memdup(a, numbers, sizeof numbers), numbers, sizeof numbers);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(release_gives_back_what_came_after_the_mark)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	char *kept = ap_arena_strdup(a, "kept");
	struct ap_mark m = ap_arena_mark(a);
	void *first = ap_arena_alloc(a, 1, 100);
	size_t held;

	ap_arena_release(a, m);
	ck_assert_ptr_eq(ap_arena_alloc(a, 1, 100), first);
	ap_arena_release(a, m);
	for (int i = 0; i < 100; i++)
		ap_arena_alloc(a, 1, 1 << 20);
	ck_assert_uint_gt(ap_arena_bytes(a), (size_t)100 << 20);
	ap_arena_release(a, m);
	ck_assert_uint_lt(ap_arena_bytes(a), (size_t)40 << 20); /* some is kept for later */
	ck_assert_str_eq(kept, "kept");

	held = ap_arena_bytes(a);
	for (int i = 0; i < 1000; i++) { /* a loop of mark and release does not grow */
		m = ap_arena_mark(a);
		memset(ap_arena_alloc(a, 1, 100000), 0xEE, 100000);
		ap_arena_release(a, m);
	}
	ck_assert_uint_le(ap_arena_bytes(a), held + 200000);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(release_to_empty_then_zeroed_again)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	struct ap_mark m = ap_arena_mark(a);
	unsigned char *p = ap_arena_alloc_raw(a, 64, 1);

	memset(p, 0xAA, 64);
	ap_arena_release(a, m);
	p = ap_arena_alloc(a, 64, 1);
	for (int i = 0; i < 64; i++)
		ck_assert_uint_eq(p[i], 0);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(budget_is_kept_and_its_end_reported)
{
	static struct oom oom;
	struct ap_arena *volatile a = ap_arena_create(100000, on_oom, &oom);
	volatile size_t count = 0;

	if (!setjmp(oom.jump)) {
		for (;; count = count + 1)
			ap_arena_alloc(a, 1, 1000);
	}
	ck_assert_uint_eq(oom.wanted, 1008);
	ck_assert_uint_ge(count, 95);
	ck_assert_uint_le(ap_arena_bytes(a), 100000);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(another_like_it_shares_budget_and_hook)
{
	static struct oom oom;
	struct ap_arena *a = ap_arena_create(100000, on_oom, &oom);
	struct ap_arena *volatile like;
	volatile size_t count = 0;

	ap_arena_alloc(a, 1, 50000);
	like = ap_arena_create_like(a);
	ck_assert_uint_eq(ap_arena_bytes(like), 0);
	if (!setjmp(oom.jump)) {
		for (;; count = count + 1)
			ap_arena_alloc(like, 1, 1000);
	}
	ck_assert_uint_ge(count, 30);
	ck_assert_uint_le(ap_arena_bytes(a) + ap_arena_bytes(like), 100000);
	ap_arena_destroy(like);
	if (!setjmp(oom.jump))
		ap_arena_alloc(a, 1, 40000); /* there is room again */
	else
		ck_abort_msg("what a destroyed arena held is not given back");
	ap_arena_destroy(a);
}
END_TEST

/* Pages once obtained go from one to the other and back. */
START_TEST(another_like_it_shares_what_is_to_spare)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL), *like = ap_arena_create_like(a);
	void *first = ap_arena_alloc(like, 1, 1 << 20);
	size_t held = ap_arena_bytes(like);

	ap_arena_destroy(like);
	ck_assert_uint_eq(ap_arena_bytes(a), held);
	ck_assert_ptr_eq(ap_arena_alloc(a, 1, 1 << 20), first);
	ap_arena_release(a, (struct ap_mark){0});
	like = ap_arena_create_like(a);
	ck_assert_uint_eq(ap_arena_bytes(a), 0);
	ck_assert_uint_eq(ap_arena_bytes(like), held);
	ck_assert_ptr_eq(ap_arena_alloc(like, 1, 1 << 20), first);
	ap_arena_destroy(like);
	ap_arena_destroy(a);
}
END_TEST

struct part {
	struct ap_ctx *ctx;
	size_t bytes;
	int undone;
	bool apart; /* try the same with an arena of its own, first */
	char *made;
	struct ap_arena *like; /* whose attempt succeeded has it to give back */
};

static void undo_part(void *user)
{
	struct part *p = user;

	p->undone++;
	ck_assert_str_eq(p->made, "made"); /* still there */
}

static void take_part(void *user)
{
	struct part *p = user;
	struct ap_arena *outer = p->ctx->arena, *made;

	if (p->apart) {
		p->apart = false;
		ck_assert(!ap_attempt_apart(p->ctx, take_part, undo_part, p, &made));
		ck_assert_ptr_null(made);
		ck_assert_ptr_eq(p->ctx->arena, outer);
		p->bytes = 1 << 20; /* there is room for that again */
	}
	p->made = ap_arena_strdup(p->ctx->arena, "made");
	ap_arena_alloc(p->ctx->scratch, 1, 1000);
	p->like = ap_arena_create_like(p->ctx->arena); /* goes with what fails */
	ap_arena_alloc(p->ctx->arena, 1, p->bytes);
}

static bool attempt(struct ap_ctx *ctx, struct part *p)
{
	bool done = ap_attempt(ctx, take_part, p);

	if (done)
		ap_arena_destroy(p->like);
	return done;
}

START_TEST(an_attempt_ends_where_memory_does)
{
	struct ap_arena *a = ap_arena_create(8 << 20, NULL, NULL), *made;
	struct ap_ctx ctx = {.arena = a, .scratch = ap_arena_create_like(a), .jobs = 1};
	struct part part = {.ctx = &ctx, .bytes = 5 << 20};
	size_t used;

	ap_arena_alloc(ctx.scratch, 1, 1000);
	used = ap_arena_mark(ctx.scratch).used;
	ck_assert(ap_attempt_apart(&ctx, take_part, undo_part, &part, &made));
	ap_arena_destroy(part.like);
	ck_assert_ptr_ne(made, a);
	ck_assert_ptr_eq(ctx.arena, a);
	ck_assert_str_eq(part.made, "made");
	ck_assert_uint_eq(ap_arena_mark(ctx.scratch).used, used + 1008);
	ck_assert(!attempt(&ctx, &part)); /* twice 5 MiB are too much */
	ck_assert_ptr_null(ap_arena_mark(ctx.arena).chunk);
	ck_assert_uint_eq(ap_arena_mark(ctx.scratch).used, used + 1008);
	part.apart = true;
	ck_assert(attempt(&ctx, &part));
	ck_assert_int_eq(part.undone, 1);
	ap_arena_own(a, made);
	while (attempt(&ctx, &part))
		continue;
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(a); /* and what it owns */
}
END_TEST

START_TEST(overflowing_size_is_out_of_memory)
{
	static struct oom oom;
	struct ap_arena *volatile a = ap_arena_create(0, on_oom, &oom);
	volatile int caught = 0;

	if (!setjmp(oom.jump))
		ap_arena_alloc(a, SIZE_MAX / 2, 3);
	else
		caught = caught + 1;
	if (!setjmp(oom.jump))
		ap_arena_alloc(a, SIZE_MAX - 3, 1);
	else
		caught = caught + 1;
	ck_assert_int_eq(caught, 2);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(vector_grows_and_keeps_its_values)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	AP_VEC(int) squares = {0};

	for (int i = 0; i < 1000; i++)
		AP_PUSH(a, squares, i * i);
	ck_assert_uint_eq(squares.n, 1000);
	ck_assert_uint_ge(squares.cap, 1000);
	ck_assert_uint_le(squares.cap, 2000);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(squares.v[i], i * i);
	ap_arena_destroy(a);
}
END_TEST
