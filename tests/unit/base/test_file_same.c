/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs whose target holds the same bytes already: it is not touched. */
#include "folder.h"

#include <sys/time.h>

#include "base/vec.h"

/* An old time, so that any touch shows. */
static void make_old(const char *path)
{
	const struct timeval old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};

	ck_assert_int_eq(utimes(path, old), 0);
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st;
}

static void write_file(const char *path, const char *text)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	ck_assert_int_eq(stage(&ctx, o, path, text), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_assert_str_eq(messages(&ctx), "");
	ctx_destroy(&ctx);
}

static void ck_untouched(const char *path, const struct stat *before)
{
	struct stat now = stat_of(path);

	ck_assert_uint_eq(now.st_ino, before->st_ino);
	ck_assert_int_eq(now.st_mtime, before->st_mtime);
	ck_assert_uint_eq(now.st_mode, before->st_mode);
	ck_assert_uint_eq(now.st_nlink, before->st_nlink);
}

START_TEST(the_same_stays)
{
	struct folder f = folder_enter();
	struct stat before;

	put_file("a", "as it was");
	ck_assert_int_eq(chmod("a", 0600), 0);
	make_old("a");
	before = stat_of("a");
	write_file("a", "as it was");
	ck_untouched("a", &before);
	ck_file("a", "as it was");
	ck_assert_int_eq(folder_count("."), 1);
	folder_leave(&f);
}
END_TEST

/* One byte more, less or another, at either end. */
START_TEST(what_changed_is_replaced)
{
	static const char *const texts[] = {"as it wa", "as it was.", "as it waS", "As it was", ""};

	for (size_t i = 0; i < AP_COUNT(texts); i++) {
		struct folder f = folder_enter();
		struct stat before;

		put_file("a", "as it was");
		make_old("a");
		before = stat_of("a");
		write_file("a", texts[i]);
		ck_file("a", texts[i]);
		ck_assert_int_gt(stat_of("a").st_mtime, before.st_mtime);
		folder_leave(&f);
	}
}
END_TEST

/* Around the piece that is compared at once, and around the buffer that is written at once. */
START_TEST(long_files)
{
	static const size_t sizes[] = {8191, 8192, 8193, 16384, 65535, 65536, 65537, 200000};
	struct folder f = folder_enter();

	for (size_t i = 0; i < AP_COUNT(sizes); i++) {
		char *text = malloc(sizes[i] + 1);
		struct stat before;

		memset(text, 'x', sizes[i]);
		text[sizes[i]] = '\0';
		put_file("a", text);
		make_old("a");
		before = stat_of("a");
		write_file("a", text);
		ck_untouched("a", &before);
		text[sizes[i] - 1] = 'y';
		write_file("a", text);
		ck_file("a", text);
		ck_assert_int_gt(stat_of("a").st_mtime, before.st_mtime);
		free(text);
	}
	folder_leave(&f);
}
END_TEST

START_TEST(through_a_link)
{
	struct folder f = folder_enter();
	struct stat before, link_before, link_now;

	ck_assert_int_eq(mkdir("dir", 0777), 0);
	put_file("dir/real", "text");
	ck_assert_int_eq(link("dir/real", "dir/second"), 0);
	ck_assert_int_eq(symlink("dir/real", "name"), 0);
	make_old("dir/real");
	before = stat_of("dir/real");
	ck_assert_int_eq(lstat("name", &link_before), 0);
	write_file("name", "text");
	ck_untouched("dir/real", &before);
	ck_assert_int_eq(lstat("name", &link_now), 0);
	ck_assert_uint_eq(link_now.st_ino, link_before.st_ino);
	ck_assert_int_eq(folder_count("dir"), 2);
	write_file("name", "other");
	ck_file("dir/real", "other");
	ck_file("dir/second", "text");
	folder_leave(&f);
}
END_TEST

START_TEST(each_for_itself)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	struct stat before;

	put_file("a", "same");
	put_file("b", "old");
	make_old("a");
	before = stat_of("a");
	ck_assert_int_eq(stage(&ctx, o, "a", "same"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "b", "new"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "c", "first"), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_untouched("a", &before);
	ck_file("b", "new");
	ck_file("c", "first");
	ck_assert_int_eq(folder_count("."), 3);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* What may be written but not read is written. */
START_TEST(a_target_that_cannot_be_read)
{
	struct folder f = folder_enter();
	ino_t before;

	put_file("a", "text");
	ck_assert_int_eq(chmod("a", 0200), 0);
	before = stat_of("a").st_ino;
	write_file("a", "text");
	if (geteuid()) /* root reads everything */
		ck_assert_uint_ne(stat_of("a").st_ino, before);
	ck_assert_int_eq(chmod("a", 0600), 0);
	ck_file("a", "text");
	folder_leave(&f);
}
END_TEST
