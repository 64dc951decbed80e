/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output as an output among others, and by itself. */
#include "folder.h"

#include <signal.h>

#include "base/vec.h"

/* Commits "-", which is fd meanwhile, and beside it the file "a". */
static enum ap_status commit_to(struct ap_ctx *ctx, int fd, const char *name)
{
	struct ap_outputs *o = ap_outputs_create(ctx);
	int old = stream_replace(STDOUT_FILENO, fd);
	enum ap_status st = stage(ctx, o, name, "out");

	if (st == AP_OK)
		st = stage(ctx, o, "a", "new");
	if (st == AP_OK)
		st = ap_outputs_commit(ctx, o);
	ap_outputs_discard(o);
	stream_restore(STDOUT_FILENO, old);
	return st;
}

static int closed_pipe(void)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	close(fds[0]);
	return fds[1];
}

START_TEST(standard_output)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);

	sigaction(SIGPIPE, &ignore, &before);
	ck_assert_int_eq(commit_to(&ctx, open("to", O_WRONLY | O_CREAT, 0666), "-"), AP_OK);
	ck_file("to", "out");
	ck_file("a", "new");
	put_file("a", "old");

	ck_assert_int_eq(commit_to(&ctx, open("/dev/full", O_WRONLY), "-"), AP_IO);
	ck_assert_int_eq(commit_to(&ctx, closed_pipe(), "-"), AP_IO);
	ck_assert_int_eq(commit_to(&ctx, open("/dev/null", O_RDONLY), "-"), AP_IO);
	ck_file("a", "old");
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: standard output: cannot write: No space left on device\n"
		"autopar-plan: error: standard output: cannot write: Broken pipe\n"
		"autopar-plan: error: standard output: cannot write: Bad file descriptor\n");
	ck_assert_int_eq(folder_count("."), 2);
	sigaction(SIGPIPE, &before, NULL);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* Standard output under another name is written to, not replaced: its file keeps what it has. */
START_TEST(standard_output_by_its_other_names)
{
	static const char *const names[] = {"/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "to"};
	struct folder f = folder_enter();

	for (size_t i = 0; i < AP_COUNT(names); i++) {
		struct ap_ctx ctx = ctx_create(false);

		put_file("to", "before ");
		ck_assert_int_eq(commit_to(&ctx, open("to", O_WRONLY | O_APPEND), names[i]), AP_OK);
		ck_file("to", "before out");
		ck_file("a", "new");
		ctx_destroy(&ctx);
	}
	ck_assert_int_eq(folder_count("."), 2);
	folder_leave(&f);
}
END_TEST

START_TEST(write_to_standard_output)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	enum ap_status good, full, gone;
	int old;

	sigaction(SIGPIPE, &ignore, &before);
	old = stream_replace(STDOUT_FILENO, open("to", O_WRONLY | O_CREAT, 0666));
	good = ap_stdout_write(&ctx, "text", 4);
	stream_restore(STDOUT_FILENO, old);
	old = stream_replace(STDOUT_FILENO, open("/dev/full", O_WRONLY));
	full = ap_stdout_write(&ctx, "text", 4);
	stream_restore(STDOUT_FILENO, old);
	old = stream_replace(STDOUT_FILENO, closed_pipe());
	gone = ap_stdout_write(&ctx, "text", 4);
	stream_restore(STDOUT_FILENO, old);
	sigaction(SIGPIPE, &before, NULL);
	ck_assert_int_eq(good, AP_OK);
	ck_assert_int_eq(full, AP_IO);
	ck_assert_int_eq(gone, AP_IO);
	ck_file("to", "text");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST
