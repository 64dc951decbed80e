/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files, and the small questions about paths. */
#include "folder.h"

#include "base/vec.h"

enum { MAX = 1000 };

static enum ap_status read_text(struct ap_ctx *ctx, const char *path, char **text, size_t *len)
{
	*text = NULL;
	*len = 0;
	return ap_file_read(ctx, path, MAX, text, len);
}

START_TEST(a_whole_file)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	int fd = open("nul", O_WRONLY | O_CREAT, 0666);
	char *text;
	size_t len;

	put_file("a", "text\n");
	ck_assert_int_eq(read_text(&ctx, "a", &text, &len), AP_OK);
	ck_assert_str_eq(text, "text\n");
	ck_assert_uint_eq(len, 5);
	ck_assert_int_eq(write(fd, "a\0b", 3), 3);
	close(fd);
	ck_assert_int_eq(read_text(&ctx, "nul", &text, &len), AP_OK);
	ck_assert_uint_eq(len, 3);
	ck_assert_mem_eq(text, "a\0b", 4);
	ck_assert_int_eq(symlink("a", "link"), 0);
	ck_assert_int_eq(read_text(&ctx, "link", &text, &len), AP_OK);
	ck_assert_str_eq(text, "text\n");
	ck_assert_str_eq(messages(&ctx), "");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(what_cannot_be_read)
{
	static const struct {
		const char *path;
		enum ap_status st;
		const char *message;
	} rows[] = {
		{"missing", AP_IO, "error: missing: cannot open: No such file or directory\n"},
		{"", AP_IO, "error: \"\": cannot open: No such file or directory\n"},
		{"a/b", AP_IO, "error: a/b: cannot open: Not a directory\n"},
		{"loop", AP_IO, "error: loop: cannot open: Too many levels of symbolic links\n"},
		{"dir", AP_IO, "error: dir: is a folder\n"},
		{"fifo", AP_IO, "error: fifo: is not a regular file (use - for standard input)\n"},
		{"/dev/null", AP_IO, "error: /dev/null: is not a regular file (use -"},
		{"/proc/self/status", AP_IO, "error: /proc/self/status: changed while it was read\n"},
		{"empty", AP_SYNTAX, "error: empty: empty\n"},
		{"large", AP_LIMIT, "error: large: larger than the limit of 1000 bytes\n"},
		{"sparse", AP_LIMIT, "error: sparse: larger than the limit of 1000 bytes\n"},
	};
	struct folder f = folder_enter();
	char large[MAX + 2] = {0};

	memset(large, 'x', MAX + 1);
	put_file("a", "x");
	put_file("empty", "");
	put_file("large", large);
	put_file("sparse", "");
	ck_assert_int_eq(truncate("sparse", (off_t)1 << 30), 0);
	ck_assert_int_eq(mkdir("dir", 0777), 0);
	ck_assert_int_eq(mkfifo("fifo", 0666), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);
		char *text;
		size_t len;

		ck_assert_msg(read_text(&ctx, rows[i].path, &text, &len) == rows[i].st, "%s: %s",
			rows[i].path, messages(&ctx));
		ck_contains(messages(&ctx), rows[i].message);
		ck_assert_ptr_null(text);
		ctx_destroy(&ctx);
	}
	folder_leave(&f);
}
END_TEST

START_TEST(exactly_the_limit)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	char full[MAX + 1] = {0}, *text;
	size_t len;

	memset(full, 'x', MAX);
	put_file("full", full);
	ck_assert_int_eq(read_text(&ctx, "full", &text, &len), AP_OK);
	ck_assert_uint_eq(len, MAX);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(no_permission)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	char *text;
	size_t len;

	put_file("secret", "x");
	ck_assert_int_eq(chmod("secret", 0), 0);
	if (geteuid() != 0) {
		ck_assert_int_eq(read_text(&ctx, "secret", &text, &len), AP_IO);
		ck_contains(messages(&ctx), "secret: cannot open: Permission denied\n");
	}
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

static enum ap_status read_stdin(struct ap_ctx *ctx, int fd, size_t max, char **text, size_t *len)
{
	int old = stream_replace(STDIN_FILENO, fd);
	enum ap_status st = ap_file_read(ctx, "-", max, text, len);

	stream_restore(STDIN_FILENO, old);
	return st;
}

static int pipe_with(const char *text)
{
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], text, strlen(text)), strlen(text));
	close(fds[1]);
	return fds[0];
}

START_TEST(standard_input)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	char *text;
	size_t len;

	ck_assert_int_eq(read_stdin(&ctx, pipe_with("{}\n"), MAX, &text, &len), AP_OK);
	ck_assert_str_eq(text, "{}\n");
	ck_assert_uint_eq(len, 3);
	put_file("a", "from a file");
	ck_assert_int_eq(read_stdin(&ctx, open("a", O_RDONLY), MAX, &text, &len), AP_OK);
	ck_assert_str_eq(text, "from a file");
	ck_assert_str_eq(messages(&ctx), "");

	ck_assert_int_eq(read_stdin(&ctx, pipe_with(""), MAX, &text, &len), AP_SYNTAX);
	ck_assert_int_eq(read_stdin(&ctx, pipe_with("12345"), 4, &text, &len), AP_LIMIT);
	ck_assert_int_eq(read_stdin(&ctx, open("/dev/zero", O_RDONLY), 1 << 20, &text, &len),
		AP_LIMIT);
	ck_assert_int_eq(read_stdin(&ctx, open(".", O_RDONLY), MAX, &text, &len), AP_IO);
	ck_assert_int_eq(read_stdin(&ctx, -1, MAX, &text, &len), AP_IO);
	ck_assert_str_eq(messages(&ctx), "autopar-plan: error: standard input: empty\n"
		"autopar-plan: error: standard input: larger than the limit of 4 bytes\n"
		"autopar-plan: error: standard input: larger than the limit of 1048576 bytes\n"
		"autopar-plan: error: standard input: cannot read: Is a directory\n"
		"autopar-plan: error: standard input: cannot read: Bad file descriptor\n");
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(large_standard_input)
{
	struct folder f = folder_enter();
	struct ap_ctx ctx = ctx_create(false);
	char *text;
	size_t len;
	FILE *out = fopen("a", "w");

	for (int i = 0; i < 100000; i++)
		fprintf(out, "%07d\n", i);
	fclose(out);
	ck_assert_int_eq(read_stdin(&ctx, open("a", O_RDONLY), 1 << 20, &text, &len), AP_OK);
	ck_assert_uint_eq(len, 800000);
	for (int i = 0; i < 100000; i++)
		if (atoi(text + 8 * i) != i)
			ck_abort_msg("%d", i);
	ctx_destroy(&ctx);
	folder_leave(&f);
}
END_TEST

START_TEST(parts_of_paths)
{
	ck_assert_str_eq(ap_file_base("a.json"), "a.json");
	ck_assert_str_eq(ap_file_base("/x/y/a.json"), "a.json");
	ck_assert_str_eq(ap_file_base("./a"), "a");
	ck_assert_str_eq(ap_file_base("x/"), "");
	ck_assert_str_eq(ap_file_base("-"), "-");
	ck_assert(ap_file_suffix("plan.json", ".json"));
	ck_assert(ap_file_suffix("x/y.tar.gz", ".gz"));
	ck_assert(!ap_file_suffix("plan.JSON", ".json"));
	ck_assert(!ap_file_suffix("plan.jsonx", ".json"));
	ck_assert(!ap_file_suffix("json", ".json"));
	ck_assert(!ap_file_suffix("", ".json"));
}
END_TEST

START_TEST(same_files)
{
	struct folder f = folder_enter();

	put_file("a", "x");
	put_file("b", "x");
	ck_assert_int_eq(symlink("a", "soft"), 0);
	ck_assert_int_eq(link("a", "hard"), 0);
	ck_assert(ap_file_same("a", "a"));
	ck_assert(ap_file_same("a", "./a"));
	ck_assert(ap_file_same("a", "soft"));
	ck_assert(ap_file_same("hard", "a"));
	ck_assert(!ap_file_same("a", "b"));
	ck_assert(!ap_file_same("a", "missing"));
	ck_assert(!ap_file_same("missing", "missing"));
	folder_leave(&f);
}
END_TEST
