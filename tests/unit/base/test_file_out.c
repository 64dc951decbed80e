/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs: all of them or none, nothing left behind, nothing replaced that is no file. */
#include "folder.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "base/vec.h"

START_TEST(commit_makes_all)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	mode_t mask = umask(027);
	struct stat st;
	size_t a, b;

	ck_assert_int_eq(mkdir("dir", 0777), 0);
	put_file("a", "old");
	ck_assert_int_eq(ap_outputs_open(&ctx, o, "a", &a), AP_OK);
	ck_assert_int_eq(ap_outputs_open(&ctx, o, "dir/b", &b), AP_OK);
	write_text(o, a, "new ");
	write_text(o, b, "other");
	write_text(o, a, "text");
	ck_file("a", "old");
	ck_assert_int_eq(access("dir/b", F_OK), -1);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	umask(mask);

	ck_file("a", "new text");
	ck_file("dir/b", "other");
	ck_assert_int_eq(stat("a", &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0640);
	ck_assert_int_eq(folder_count("."), 2);
	ck_assert_int_eq(folder_count("dir"), 1);
	ap_outputs_discard(o);
	ck_file("a", "new text");
	ck_assert_str_eq(messages(&ctx), "");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(discard_leaves_nothing)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	put_file("a", "old");
	ck_assert_int_eq(stage(&ctx, o, "a", "new"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "b", "new"), AP_OK);
	ck_assert_int_eq(folder_count("."), 3); /* staged beside their targets, hidden */
	ap_outputs_discard(o);
	ck_assert_int_eq(folder_count("."), 1);
	ck_file("a", "old");
	ap_outputs_discard(o);
	ap_outputs_discard(NULL);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(nothing_to_write)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	size_t id;

	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_assert_int_eq(ap_outputs_open(&ctx, o, "empty", &id), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_file("empty", "");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* Pieces of every size around the size of the buffer. */
START_TEST(long_streams)
{
	struct folder f = folder_enter();
	size_t len = 3 << 20; /* more than an arena takes at once */
	char *text = malloc(len + 1);

	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i * i / 7 % 26);
	text[len] = '\0';
	for (size_t piece = 1; piece <= len; piece = piece * 3 + 1) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_outputs *o = ap_outputs_create(&ctx);
		struct ap_output_sink sink = {.o = o};

		ck_assert_int_eq(ap_outputs_open(&ctx, o, "long", &sink.id), AP_OK);
		for (size_t at = 0; at < len; at += piece)
			ap_output_write_fn(&sink, text + at, len - at < piece ? len - at : piece);
		ck_assert_uint_lt(ap_arena_bytes(ctx.arena), len);
		ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
		ck_file("long", text);
		ctx_destroy(&ctx);
	}
	free(text);
	folder_leave(&f);
}
END_TEST

START_TEST(through_links)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	char link_text[100] = {0};

	ck_assert_int_eq(mkdir("dir", 0777), 0);
	put_file("dir/real", "old");
	ck_assert_int_eq(symlink("real", "dir/second"), 0);
	ck_assert_int_eq(symlink("dir/second", "first"), 0);
	ck_assert_int_eq(symlink("dir/new", "dangling"), 0);
	ck_assert_int_eq(stage(&ctx, o, "first", "1"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "dangling", "2"), AP_OK);
	ck_assert_int_eq(folder_count("dir"), 4); /* two of them staged */
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_file("dir/real", "1");
	ck_file("dir/new", "2");
	ck_assert_int_eq(readlink("first", link_text, 99), strlen("dir/second"));
	ck_assert_str_eq(link_text, "dir/second");
	ck_assert_int_eq(readlink("dir/second", link_text, 99), strlen("real"));
	ck_assert_int_eq(folder_count("dir"), 3);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(hard_links_part)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	put_file("a", "old");
	ck_assert_int_eq(link("a", "b"), 0);
	ck_assert_int_eq(stage(&ctx, o, "a", "new"), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_file("a", "new");
	ck_file("b", "old");
	ck_assert_int_eq(folder_count("."), 2);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(names_that_cannot_be)
{
	char long_name[301], long_path[5001];
	const struct {
		const char *path;
		enum ap_status st;
		const char *message;
	} rows[] = {
		{"", AP_USAGE, "the name of an output is empty"},
		{".", AP_USAGE, ".: is a folder; expected the name of a file"},
		{"dir", AP_USAGE, "dir: is a folder; expected the name of a file"},
		{"dir/", AP_USAGE, "dir/: is a folder"},
		{"new/", AP_USAGE, "new/: is a folder"},
		{"linkdir", AP_USAGE, "linkdir: is a folder"},
		{"missing/x", AP_IO, "missing/x: cannot write: No such file or directory"},
		{"file/x", AP_IO, "file/x: cannot write: Not a directory"},
		{"loop", AP_IO, "loop: cannot write: Too many levels of symbolic links"},
		{"/proc/self/x", AP_IO, "/proc/self/x: cannot write: "},
		{"/proc/self/limits", AP_IO, "/proc/self/limits: cannot write: "},
		{long_name, AP_IO, "cannot write: File name too long"},
		{long_path, AP_IO, "cannot write: File name too long"},
	};
	struct folder f = folder_enter();

	memset(long_name, 'n', 300);
	long_name[300] = '\0';
	for (size_t i = 0; i < 5000; i++)
		long_path[i] = i % 10 ? 'p' : '/';
	long_path[5000] = '\0';
	ck_assert_int_eq(mkdir("dir", 0777), 0);
	ck_assert_int_eq(symlink("dir", "linkdir"), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	put_file("file", "old");
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_outputs *o = ap_outputs_create(&ctx);

		ck_assert_int_eq(stage(&ctx, o, "good", "x"), AP_OK);
		ck_assert_msg(stage(&ctx, o, rows[i].path, "x") == rows[i].st, "%s: %s",
			rows[i].path, messages(&ctx));
		ck_contains(messages(&ctx), rows[i].message);
		ap_outputs_discard(o);
		ck_assert_int_eq(folder_count("."), 4);
		ck_assert_int_eq(folder_count("dir"), 0);
		ctx_destroy(&ctx);
	}
	ck_file("file", "old");
	folder_leave(&f);
}
END_TEST

START_TEST(longest_name)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	ck_assert_int_eq(stage(&ctx, o, name, "x"), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_file(name, "x");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(one_name_twice)
{
	static const char *const others[] = {"a", "./a", "dir/../a", "link", "dir/up/a"};
	struct folder f = folder_enter();

	ck_assert_int_eq(mkdir("dir", 0777), 0);
	ck_assert_int_eq(symlink("a", "link"), 0);
	ck_assert_int_eq(symlink("..", "dir/up"), 0);
	for (size_t i = 0; i < AP_COUNT(others); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_outputs *o = ap_outputs_create(&ctx);

		ck_assert_int_eq(stage(&ctx, o, "a", "1"), AP_OK);
		ck_assert_int_eq(stage(&ctx, o, "dir/a", "2"), AP_OK);
		ck_assert_int_eq(stage(&ctx, o, others[i], "3"), AP_USAGE);
		ck_contains(messages(&ctx), "two outputs have this name");
		ap_outputs_discard(o);
		ctx_destroy(&ctx);
	}
	ck_assert_int_eq(folder_count("."), 2);
	folder_leave(&f);
}
END_TEST

START_TEST(devices_are_written_through)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	struct stat before, after;

	ck_assert_int_eq(stat("/dev/null", &before), 0);
	ck_assert_int_eq(symlink("/dev/null", "link"), 0);
	ck_assert_int_eq(stage(&ctx, o, "/dev/null", "x"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "link", "y"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "a", "z"), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);
	ck_assert_int_eq(stat("/dev/null", &after), 0);
	ck_assert(S_ISCHR(after.st_mode));
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ck_file("a", "z");
	ck_assert_int_eq(folder_count("."), 2);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(a_full_device_stops_all)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	put_file("a", "old");
	ck_assert_int_eq(stage(&ctx, o, "a", "new"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "/dev/full", "x"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "b", "new"), AP_OK);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_IO);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: /dev/full: cannot write: No space left on device\n");
	ck_file("a", "old");
	ck_assert_int_eq(folder_count("."), 1);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(fifo_without_a_reader)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	ck_assert_int_eq(mkfifo("fifo", 0666), 0);
	ck_assert_int_eq(stage(&ctx, o, "fifo", "x"), AP_IO);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: fifo: cannot write: No such device or address\n");
	ap_outputs_discard(o);
	ck_assert_int_eq(folder_count("."), 1);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

struct reader {
	int fd;
	size_t bytes;
	bool ordered;
};

/* Reads slowly what must be the sequence 0, 1, .., 250, 0, 1, .. */
static void *read_slowly(void *arg)
{
	struct reader *r = arg;
	unsigned char buffer[8192];
	ssize_t n;

	r->ordered = true;
	while ((n = read(r->fd, buffer, sizeof buffer)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			r->ordered = r->ordered && buffer[i] == (r->bytes + (size_t)i) % 251;
		r->bytes += (size_t)n;
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	return NULL;
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* A slow reader behind a FIFO while signals interrupt: every byte arrives, once and in order. */
START_TEST(interrupted_writes_go_on)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	struct sigaction interrupt = {.sa_handler = on_alarm}, before;
	struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	size_t len = 1 << 20, id;
	char *bytes = malloc(len);
	struct reader reader = {0};
	sigset_t alarm_only;
	pthread_t thread;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i % 251);
	ck_assert_int_eq(mkfifo("fifo", 0666), 0);
	reader.fd = open("fifo", O_RDONLY | O_NONBLOCK);
	ck_assert_int_eq(ap_outputs_open(&ctx, o, "fifo", &id), AP_OK);
	ck_assert_int_eq(fcntl(reader.fd, F_SETFL, 0), 0);
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL); /* the reader's mask */
	ck_assert_int_eq(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	sigaction(SIGALRM, &interrupt, &before);
	setitimer(ITIMER_REAL, &every, NULL);

	ap_outputs_write(o, id, bytes, len);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_OK);

	setitimer(ITIMER_REAL, &never, NULL);
	pthread_join(thread, NULL);
	sigaction(SIGALRM, &before, NULL);
	ck_assert_uint_eq(reader.bytes, len);
	ck_assert(reader.ordered);
	close(reader.fd);
	free(bytes);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

/* A file size limit stands in for a full disk. It holds for Check's own messages, too: there is none
 * between the two calls. */
START_TEST(no_room)
{
	struct folder f = folder_enter();
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	struct rlimit limit, small;
	char *text = calloc(1, 200001);

	memset(text, 'x', 200000);
	put_file("a", "old");
	sigaction(SIGXFSZ, &ignore, &before);
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	for (rlim_t size = 0; size < 200000; size = size * 7 + 1) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_outputs *o = ap_outputs_create(&ctx);
		enum ap_status st;
		int set;

		ck_assert_int_eq(stage(&ctx, o, "b", "new"), AP_OK);
		ck_assert_int_eq(stage(&ctx, o, "a", ""), AP_OK);
		small = limit;
		small.rlim_cur = size;
		set = setrlimit(RLIMIT_FSIZE, &small);
		for (int i = 0; i < 4; i++)
			ap_outputs_write(o, 1, text + 50000 * i, 50000);
		st = ap_outputs_commit(&ctx, o);
		set |= setrlimit(RLIMIT_FSIZE, &limit);
		ck_assert_int_eq(set, 0);
		ck_assert_int_eq(st, AP_IO);
		ck_contains(messages(&ctx), "a: cannot write: File too large\n");
		ck_file("a", "old");
		ck_assert_int_eq(folder_count("."), 1);
		ctx_destroy(&ctx);
	}
	sigaction(SIGXFSZ, &before, NULL);
	free(text);
	folder_leave(&f);
}
END_TEST

/* The last of three renames fails: the first two are taken back. */
START_TEST(a_late_failure_takes_all_back)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);
	struct stat before, after;

	put_file("old", "old");
	ck_assert_int_eq(stat("old", &before), 0);
	ck_assert_int_eq(stage(&ctx, o, "old", "1"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "new", "2"), AP_OK);
	ck_assert_int_eq(stage(&ctx, o, "blocked", "3"), AP_OK);
	ck_assert_int_eq(mkdir("blocked", 0777), 0);
	ck_assert_int_eq(ap_outputs_commit(&ctx, o), AP_IO);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: blocked: cannot write: Is a directory\n");
	ck_file("old", "old");
	ck_assert_int_eq(stat("old", &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
	ck_assert_int_eq(access("new", F_OK), -1);
	ck_assert_int_eq(folder_count("."), 2);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(no_permission)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	struct ap_outputs *o = ap_outputs_create(&ctx);

	put_file("file", "old");
	ck_assert_int_eq(chmod("file", 0444), 0);
	ck_assert_int_eq(mkdir("dir", 0555), 0);
	if (geteuid() != 0) {
		ck_assert_int_eq(stage(&ctx, o, "file", "new"), AP_IO);
		ck_assert_int_eq(stage(&ctx, o, "dir/a", "new"), AP_IO);
		ck_contains(messages(&ctx), "file: cannot write: Permission denied\n");
		ck_contains(messages(&ctx), "dir/a: cannot write: Permission denied\n");
	}
	ap_outputs_discard(o);
	ck_file("file", "old");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST
