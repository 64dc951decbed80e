/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs in folders of their own, and files that go when others come. */
#include "folder.h"

START_TEST(a_folder_is_made_for_what_is_put_in)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	ck_assert_int_eq(ap_outputs_folder(&ctx, o, "a.stages"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "a.stages/0", "zero"), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_file("a.stages/0", "zero");
	ck_assert_int_eq(folder_count("a.stages"), 1);
	ck_assert_int_eq(ap_outputs_folder(&ctx, o, "a.stages"), AP_OK); /* there already */
	ap_outputs_discard(o);
	ck_file("a.stages/0", "zero");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(a_folder_goes_with_what_is_discarded)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	ck_assert_int_eq(ap_outputs_folder(&ctx, o, "new"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "new/0", "zero"), AP_OK);
	ap_outputs_discard(o);
	ck_assert_int_eq(folder_count("."), 0);
	put_file("file", "");
	ck_assert_int_eq(ap_outputs_folder(&ctx, o, "file"), AP_USAGE);
	ck_assert_int_eq(ap_outputs_folder(&ctx, o, "none/new"), AP_IO);
	ck_contains(messages(&ctx), "file: is no folder\n");
	ck_contains(messages(&ctx), "none/new: cannot write: No such file or directory\n");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(what_is_removed_goes_at_commit)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	put_file("keep", "kept");
	put_file("old", "old");
	ck_assert_int_eq(symlink("keep", "link"), 0);
	ck_assert_int_eq(ap_outputs_remove(&ctx, o, "old"), AP_OK);
	ck_assert_int_eq(ap_outputs_remove(&ctx, o, "link"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "new", "new"), AP_OK);
	ck_file("old", "old");
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_file("new", "new");
	ck_file("keep", "kept");
	ck_assert_int_eq(folder_count("."), 2);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* A rename after the removal fails: what was removed is back, and the folder gone. */
START_TEST(a_late_failure_brings_back_what_was_removed)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	struct stat before, after;

	put_file("old", "old");
	ck_assert_int_eq(stat("old", &before), 0);
	ck_assert_int_eq(ap_outputs_folder(&ctx, o, "new"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "new/0", "zero"), AP_OK);
	ck_assert_int_eq(ap_outputs_remove(&ctx, o, "old"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "blocked", "1"), AP_OK);
	ck_assert_int_eq(mkdir("blocked", 0777), 0);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_IO);
	ck_file("old", "old");
	ck_assert_int_eq(stat("old", &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ck_assert_int_eq(folder_count("."), 2);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* A folder that is to be empty goes at commit, unless it is not, or the commit fails. */
START_TEST(an_emptied_folder_goes_at_commit)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	ck_assert_int_eq(mkdir("a", 0777), 0);
	ck_assert_int_eq(mkdir("b", 0777), 0);
	put_file("a/old", "old");
	put_file("b/old", "old");
	put_file("b/mine", "mine");
	for (int commit = 0; commit < 2; commit++) {
		ap_outputs_empty(&ctx, o, "a");
		ap_outputs_empty(&ctx, o, "b");
		ck_assert_int_eq(ap_outputs_remove(&ctx, o, "a/old"), AP_OK);
		ck_assert_int_eq(ap_outputs_remove(&ctx, o, "b/old"), AP_OK);
		if (commit) {
			ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
		} else {
			ap_outputs_discard(o);
			ck_file("a/old", "old");
			ck_file("b/old", "old");
		}
	}
	ck_assert_int_eq(folder_count("."), 1);
	ck_assert_int_eq(folder_count("b"), 1);
	ck_file("b/mine", "mine");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* What is to be removed is a name that no output can have. */
START_TEST(one_name_is_written_or_removed)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	put_file("a", "old");
	ck_assert_int_eq(ap_outputs_remove(&ctx, o, "a"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "./a", "new"), AP_USAGE);
	ap_outputs_discard(o);
	ck_file("a", "old");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(names_in_a_folder)
{
	static const char *const expected[] = {"B", "a", "b.ckpt"};
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	const char *const *name;
	size_t n;

	put_file("b.ckpt", "");
	put_file("B", "");
	put_file(".hidden", "");
	ck_assert_int_eq(mkdir("a", 0777), 0);
	ck_assert(ap_file_is_folder("a"));
	ck_assert(!ap_file_is_folder("B"));
	ck_assert(!ap_file_is_folder("none"));
	ck_assert_int_eq(ap_folder_names(&ctx, ".", &n, &name), AP_OK);
	ck_assert_uint_eq(n, 3);
	for (size_t i = 0; i < n; i++)
		ck_assert_str_eq(name[i], expected[i]);
	ck_assert_int_eq(ap_folder_names(&ctx, "none", &n, &name), AP_IO);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: none: cannot read: No such file or directory\n");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST
