/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files: those of killed runs go with the next run, those of others stay; locks. */
#include "folder.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/file_lock.h"
#include "base/file_temp.h"
#include "base/vec.h"

/* A process that stages text for path, and says so through a pipe; it is killed when it is told. */
static pid_t stage_apart(const char *path)
{
	int said[2];
	pid_t child;
	char byte;

	ck_assert_int_eq(pipe(said), 0);
	child = fork();
	if (!child) {
		struct ap_ctx ctx = ctx_create(false);

		if (stage(&ctx, ap_outputs_create(&ctx), path, "cut") == AP_OK && write(said[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(said[1]);
	ck_assert_int_eq(read(said[0], &byte, 1), 1);
	close(said[0]);
	return child;
}

static void end(pid_t child)
{
	int status;

	ck_assert_int_eq(kill(child, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status));
}

static void put(const char *path, const char *text)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	ck_assert_int_eq(stage(&ctx, o, path, text), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ctx_destroy(&ctx);
}

START_TEST(leftovers_of_killed_runs_go)
{
	struct folder f = folder_enter();

	put_file("a", "old");
	end(stage_apart("a"));
	end(stage_apart("b"));
	ck_file("a", "old");
	ck_assert_int_eq(folder_count("."), 2); /* the second cleared what the first left */
	put("c", "new");
	ck_assert_int_eq(folder_count("."), 2);
	ck_file("a", "old");
	ck_file("c", "new");
	folder_leave(&f);
}
END_TEST

START_TEST(what_a_run_works_on_stays)
{
	struct folder f = folder_enter();
	pid_t child = stage_apart("a");

	ck_assert_int_eq(folder_count("."), 1);
	put("a", "first");
	put("b", "second");
	ck_assert_int_eq(folder_count("."), 3);
	end(child);
	put("b", "third");
	ck_assert_int_eq(folder_count("."), 2);
	ck_file("a", "first");
	folder_leave(&f);
}
END_TEST

/* Our own locks do not keep us off, so what is staged already has to be known. */
START_TEST(what_we_stage_stays)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	ck_assert_int_eq(stage(&ctx, o, "a", "1"), AP_OK);
	ap_outputs_clear(o, ".");
	ck_assert_int_eq(stage(&ctx, o, "b", "2"), AP_OK);
	ck_assert_int_eq(folder_count("."), 2);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_file("a", "1");
	ck_file("b", "2");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

static const struct {
	const char *name;
	bool is;
} names[] = {
	{".a.autopar-00zz19.tmp", true},
	{"..autopar-00zz19.tmp", false},
	{".a.b.json.autopar-abcdef.tmp", true},
	{"a.autopar-abcdef.tmp", false},
	{".a.autopar-abcdeF.tmp", false},
	{".a.autopar-abcde.tmp", false},
	{".a.autopar-abcdefg.tmp", false},
	{".a.autopar-abcdef.old", false},
	{".a.abcdef", false},
	{".tmp", false},
	{"", false},
};

START_TEST(names_that_are_ours)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);

	for (size_t i = 0; i < AP_COUNT(names); i++) {
		const char *name = names[i].name;

		ck_assert_msg(ap_temp_is(name) == names[i].is, "%s", name);
		if (!*name)
			continue;
		put_file(name, "somebody's");
		ap_outputs_clear(ap_outputs_create(&ctx), ".");
		ck_assert_int_eq(folder_count("."), !names[i].is);
		if (!names[i].is)
			ck_assert_int_eq(unlink(name), 0);
	}
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(links_and_folders_of_such_names_stay)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);

	put_file("mine", "mine");
	ck_assert_int_eq(symlink("mine", ".a.autopar-abcdef.tmp"), 0);
	ck_assert_int_eq(mkdir(".b.autopar-abcdef.tmp", 0777), 0);
	ck_assert_int_eq(mkfifo(".c.autopar-abcdef.tmp", 0666), 0);
	ap_outputs_clear(ap_outputs_create(&ctx), ".");
	ck_assert_int_eq(folder_count("."), 4);
	ck_file("mine", "mine");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* The second name of what a commit replaces is locked while it is needed. */
START_TEST(second_names_are_locked)
{
	struct folder f = folder_enter();
	char link_name[] = "./.a.autopar-XXXXXX.tmp", move_name[] = "./.b.autopar-XXXXXX.tmp";
	int fd[2], status;
	pid_t child;

	put_file("a", "a");
	put_file("b", "b");
	ck_assert_int_eq(ap_temp_link(link_name, "a", &fd[0]), 0);
	ck_assert_int_eq(ap_temp_move(move_name, "b", &fd[1]), 0);
	ck_assert_int_eq(access("b", F_OK), -1);
	child = fork();
	if (!child) {
		struct ap_ctx ctx = ctx_create(false);

		ap_outputs_clear(ap_outputs_create(&ctx), ".");
		_exit(folder_count("."));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(WEXITSTATUS(status), 3);
	ap_temp_keep(move_name);
	ck_assert_str_eq(move_name + strlen(move_name) - 4, ".old");
	ck_file(move_name, "b");
	close(fd[0]);
	close(fd[1]);
	ap_temp_clear(".", NULL, NULL);
	ck_assert_int_eq(folder_count("."), 2);
	ck_file("a", "a");
	folder_leave(&f);
}
END_TEST

static int take_apart(const char *path)
{
	int status, fd;
	pid_t child = fork();

	if (!child)
		_exit(ap_lock_take(path, &fd));
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

START_TEST(locks)
{
	struct folder f = folder_enter();
	int fd;

	ck_assert_int_eq(ap_lock_take("lock", &fd), 0);
	ck_assert_int_eq(take_apart("lock"), EAGAIN);
	ap_lock_give("lock", fd);
	ck_assert_int_eq(folder_count("."), 0);
	ck_assert_int_eq(take_apart("lock"), 0); /* left by a process that has ended */
	ck_assert_int_eq(folder_count("."), 1);
	ck_assert_int_eq(ap_lock_take("lock", &fd), 0);
	ap_lock_give("lock", fd);
	ck_assert_int_eq(mkdir("lock", 0777), 0);
	ck_assert_int_eq(ap_lock_take("lock", &fd), EEXIST);
	ck_assert_int_eq(rmdir("lock"), 0);
	ck_assert_int_eq(symlink("nowhere", "lock"), 0);
	ck_assert_int_eq(ap_lock_take("lock", &fd), EEXIST);
	ck_assert_int_eq(unlink("lock"), 0);
	ck_assert_int_eq(mkfifo("lock", 0666), 0);
	ck_assert_int_eq(ap_lock_take("lock", &fd), EEXIST);
	ck_assert_int_eq(ap_lock_take("none/lock", &fd), ENOENT);
	folder_leave(&f);
}
END_TEST

static int lock_apart(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct ap_ctx ctx = ctx_create(false);
		const char *notes;

		_exit(ap_outputs_lock(&ctx, ap_outputs_create(&ctx), ".", "lock", &notes) == AP_IO &&
				strstr(messages(&ctx), ".: another run of autopar-plan is at work on it")
			? 0 : 1);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return WEXITSTATUS(status);
}

/* A set of outputs has its folder for itself until it is put in place, and notes for who comes after it. */
START_TEST(locks_of_outputs)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	const char *notes;
	struct ap_file_sum sum;
	size_t id;

	put_file("lock", "first\nsecond\ncut");
	ck_assert_int_eq(ap_outputs_lock(&ctx, o, ".", "lock", &notes), AP_OK);
	ck_assert_str_eq(notes, "first\nsecond\n");
	ck_assert_int_eq(lock_apart(), 0);
	ck_assert_int_eq(ap_outputs_note(&ctx, o, "third\n", 6), AP_OK);
	ck_file("lock", "first\nsecond\nthird\n");
	ck_assert_int_eq(ap_outputs_open(&ctx, o, "a", &id), AP_OK);
	write_text(o, id, "abc");
	ap_outputs_sum(o, id, &sum);
	ck_assert_int_eq(sum.bytes, 3);
	ck_assert_str_eq(sum.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_assert_int_eq(folder_count("."), 1);
	ck_assert_int_eq(ap_file_sum("a", &sum), 0);
	ck_assert_str_eq(sum.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	ck_assert_int_eq(ap_file_sum("none", &sum), ENOENT);
	ck_assert_int_eq(ap_file_sum(".", &sum), EINVAL);
	ck_assert_int_eq(ap_outputs_lock(&ctx, o, ".", "lock", &notes), AP_OK);
	ck_assert_str_eq(notes, "");
	ap_outputs_discard(o);
	ck_assert_int_eq(folder_count("."), 1);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(folders_that_are_free)
{
	struct folder f = folder_enter();

	ck_assert(ap_folder_is_free("."));
	put_file(".a.autopar-abcdef.tmp", "");
	ck_assert(ap_folder_is_free("."));
	put_file(".hidden", "");
	ck_assert(!ap_folder_is_free("."));
	ck_assert(!ap_folder_is_free("none"));
	folder_leave(&f);
}
END_TEST
