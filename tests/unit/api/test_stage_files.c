/* SPDX-License-Identifier: Apache-2.0 */
/* Stage files of earlier runs, as a run finds them where it is short of memory. */
#include "api/stage_files.h"
#include "base/arena.h"
#include "base/attempt.h"
#include "base/diag.h"
#include "ckpt/ckpt_file.h"
#include "ckpt/ckpt_make.h"
#include "folder.h"
#include "pipe_test.h"

struct looking {
	struct ap_ctx *ctx;
	struct ap_written written;
};

static void look(void *user)
{
	struct looking *l = user;

	l->written = (struct ap_written){0};
	ap_ckpt_written(l->ctx, "a.json", &l->written);
}

/* Files that runs left of `merged`, or of a text that is none. */
static void leave(struct fixture *f, const struct ap_ckpt *merged)
{
	struct ap_str s = new_str(&f->ctx);

	if (merged)
		ap_ckpt_write_json(merged, to_str, &s);
	else
		for (int i = 0; i < 20000; i++)
			ap_str_add(&s, "[1, 2, ");
	put_file("a.json", s.s);
}

/* Wherever memory runs out, messages go on to where they went before. */
START_TEST(a_lack_of_memory_leaves_the_sink)
{
	struct ap_ckpt merged;
	struct ap_plan plan;
	struct folder folder = folder_enter();
	struct fixture f;

	open_pipe(&f, &plan);
	ap_ckpt_of_plan(&f.ctx, &plan, false, &merged);
	ck_assert_int_eq(mkdir("a.stages", 0700), 0);
	for (int whole = 0; whole < 2; whole++) {
		bool done = false;
		int lacked = 0;

		leave(&f, whole ? &merged : NULL);
		for (size_t kib = 4; !done; kib += 4) {
			struct ap_arena *run = ap_arena_create(kib << 10, NULL, NULL), *made;
			struct ap_ctx ctx = {.arena = run, .jobs = 1};
			struct looking l = {.ctx = &ctx};

			ck_assert_uint_lt(kib, 64 << 10);
			ctx.diag = f.ctx.diag;
			ctx.scratch = ap_arena_create_like(run);
			done = ap_attempt_apart(&ctx, look, NULL, &l, &made);
			lacked += !done;
			ck_assert_ptr_eq(ctx.diag, f.ctx.diag);
			ck_assert_ptr_eq(ctx.arena, run);
			ck_assert_uint_eq(done ? l.written.n : 0, done && whole ? 2 : 0);
			ap_arena_destroy(made);
			ap_arena_destroy(ctx.scratch);
			ap_arena_destroy(run);
		}
		ck_assert_int_ge(lacked, 8);
	}
	ck_assert_uint_eq(ap_diag_count(f.ctx.diag, AP_ERROR), 0);
	fixture_close(&f);
	folder_leave(&folder);
}
END_TEST
