/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/settle.h"
#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "cli/help.h"
#include "cli/run.h"

enum { MOST_WORDS = 64, LINE = 1024, MOST_DEVICES = 64, MOST_WORK = 200000 };
#define BUDGET_BYTES ((size_t)512 << 20)

struct fuzz_target *fuzz_targets;

const char fuzz_pair[] =
	"{\"schema\": \"autopar-graph/1\", \"name\": \"pair\",\n"
	"\"inputs\": [{\"name\": \"x\", \"shape\": [16, 8], \"dtype\": \"float32\", \"batch_dim\": 0}],\n"
	"\"parameters\": [{\"name\": \"b0\", \"shape\": [8], \"dtype\": \"float32\"},\n"
	" {\"name\": \"w1\", \"shape\": [8, 32], \"dtype\": \"float32\"},\n"
	" {\"name\": \"w2\", \"shape\": [32, 8], \"dtype\": \"float32\"}],\n"
	"\"operators\": [\n"
	" {\"name\": \"Default/net/a/Add-op0\", \"type\": \"Add\", \"inputs\": [\"x\", \"b0\"],\n"
	"  \"outputs\": [{\"name\": \"x0\"}], \"cell\": \"a\"},\n"
	" {\"name\": \"Default/net/b/MatMul-op0\", \"type\": \"MatMul\", \"inputs\": [\"x0\", \"w1\"],\n"
	"  \"outputs\": [{\"name\": \"h\"}], \"cell\": \"b\"},\n"
	" {\"name\": \"Default/net/c/MatMul-op1\", \"type\": \"MatMul\", \"inputs\": [\"h\", \"w2\"],\n"
	"  \"outputs\": [{\"name\": \"y\"}], \"cell\": \"c\"},\n"
	" {\"name\": \"Default/net/ReduceMean-op0\", \"type\": \"ReduceMean\", \"inputs\": [\"y\"],\n"
	"  \"outputs\": [{\"name\": \"l\"}]}],\n"
	"\"outputs\": [\"l\"], \"optimizer\": \"adam\"}\n";

static struct ap_arena *pages; /* those of all runs are like it, one after the other */
static jmp_buf out_of_memory;
static char folder[64];

static void leave(void *user, size_t wanted)
{
	(void)wanted;
	longjmp(*(jmp_buf *)user, 1);
}

/* libFuzzer and the driver end by exit(); a fault leaves the folder, and what led to it there. */
static void end(void)
{
	char line[LINE];

	snprintf(line, sizeof line, "rm -rf %s", folder);
	if (chdir("/") || system(line))
		perror(folder);
	ap_arena_destroy(pages);
}

static void ctx_begin(struct ap_ctx *ctx)
{
	*ctx = (struct ap_ctx){.jobs = 1};
	ctx->arena = ap_arena_create_like(pages);
	ctx->scratch = ap_arena_create_like(ctx->arena);
	ctx->diag = ap_diag_create(ctx->arena, false);
}

static void ctx_end(struct ap_ctx *ctx)
{
	ap_arena_destroy(ctx->scratch);
	ap_arena_destroy(ctx->arena);
}

static void begin(void)
{
	const char *root = access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm";
	int null = open("/dev/null", O_WRONLY);

	snprintf(folder, sizeof folder, "%s/autopar-fuzz-XXXXXX", root);
	if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || !mkdtemp(folder) || chdir(folder)) {
		perror(folder);
		exit(EXIT_FAILURE);
	}
	close(null);
	fprintf(stderr, "%s\n", folder);
	atexit(end);
	unsetenv("RANK_TABLE_FILE");
	pages = ap_arena_create(BUDGET_BYTES, leave, &out_of_memory);
	fuzz_file("pair.json", fuzz_pair, sizeof fuzz_pair - 1);
}

void fuzz_file(const char *name, const void *bytes, size_t len)
{
	int fd;

	if (!*folder)
		begin();
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len || close(fd)) {
		perror(name);
		abort();
	}
}

void fuzz_require(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s; the files are in %s\n", what, folder);
	abort();
}

unsigned fuzz_way(const uint8_t *data, size_t size, unsigned n)
{
	uint32_t sum = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ data[i]) * 16777619u;
	return (sum >> 8) % n;
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

int fuzz_many(const uint8_t *data, size_t size, const char *word, int digits)
{
	enum { NEAR = 8 }; /* bytes between */
	size_t len = strlen(word);

	for (size_t i = 0; i + len < size; i++) {
		size_t at = i + len;
		int n = 0;

		if (memcmp(data + i, word, len) != 0)
			continue;
		while (at < size && at < i + len + NEAR && !is_digit(data[at]))
			at++;
		while (at < size && is_digit(data[at++]))
			n++;
		if (n > digits)
			return 1;
	}
	return 0;
}

static bool leads_away(const char *path)
{
	return strchr(path, '/') || path[0] == '.' || path[0] == '-';
}

/* An input may ask for any file and for any amount of work; these are not what is tested. */
static void tame(struct ap_settings *o)
{
	for (int i = 0; i < AP_SET_COUNT; i++) {
		const struct ap_setting_row *row = ap_setting_at((enum ap_setting_id)i);
		const char **text = (const char **)((char *)o + row->offset);

		if ((row->type >= AP_SET_DICT || row->type == AP_SET_TEXT) && *text && **text != '{' &&
			leads_away(*text)) {
			*text = NULL;
			o->origin[i] = AP_FROM_DEFAULT;
		}
	}
	if (o->device_num > MOST_DEVICES)
		o->device_num = MOST_DEVICES;
	if (o->micro_batches > MOST_DEVICES)
		o->micro_batches = MOST_DEVICES;
	if (!o->work_limit || o->work_limit > MOST_WORK)
		o->work_limit = MOST_WORK;
	o->jobs = 1;
	o->time_limit = -1;
	o->certify = false;
}

static enum ap_status answer(struct ap_run *run)
{
	struct ap_str text;

	if (run->set->help || run->set->version)
		return AP_OK;
	if (!run->set->print_config) {
		AP_TRY(ap_settings_note(&run->ctx, run->set, ap_cli_uses(run->cli)));
		return run->cli->command->run(run);
	}
	ap_str_init(&text, run->ctx.arena);
	ap_help_config(run->cli, &text);
	return ap_stdout_write(&run->ctx, text.s, text.len);
}

static enum ap_status carry_out(struct ap_ctx *ctx, int argc, char **argv)
{
	struct ap_cli cli;
	struct ap_run run;
	enum ap_status st = ap_cli_parse(ctx, argc, argv, &cli);

	if (st != AP_OK)
		return st;
	tame(&cli.set);
	ctx->diag = ap_diag_create(ctx->arena, cli.set.strict);
	run = (struct ap_run){.ctx = *ctx, .cli = &cli, .set = &cli.set};
	run.to = (struct ap_writing){.ctx = &run.ctx, .set = &cli.set, .nread = cli.narg, .read = cli.arg};
	st = answer(&run);
	ap_outputs_discard(run.to.staged);
	return st;
}

/* Is it an outcome that any input may have? The messages of it, too, have to be writable. */
static void judge(const struct ap_ctx *ctx, enum ap_status st, const char *line, bool must)
{
	bool told = ap_diag_count(ctx->diag, AP_ERROR) > 0;
	struct ap_str text;

	ap_str_init(&text, ctx->arena);
	ap_diag_render(ctx->diag, AP_NOTE, 20, &text);
	if (must ? st == AP_OK
		: st == AP_OK ? !told
		: st != AP_INTERNAL && (told || st == AP_DIFFERS || st == AP_STOPPED))
		return;
	fprintf(stderr, "%sautopar-plan %s: %s, exit code %d\n", text.s, line, ap_status_text(st),
		ap_status_exit(st));
	fuzz_require(0, "no input may lead to this");
}

static enum ap_status run_line(const char *line, bool must)
{
	static char words[LINE];
	static char *argv[MOST_WORDS];
	static struct ap_ctx ctx;
	static enum ap_status st;
	int argc = 0;

	if (!*folder)
		begin();
	snprintf(words, sizeof words, "autopar-plan %s", line);
	for (char *word = strtok(words, " "); word && argc + 1 < MOST_WORDS; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	fuzz_require(!setjmp(out_of_memory), "no small input may need more than 512 MiB");
	ctx_begin(&ctx);
	st = carry_out(&ctx, argc, argv);
	judge(&ctx, st, line, must);
	ctx_end(&ctx);
	return st;
}

void fuzz_with(void (*fn)(struct ap_ctx *ctx, const char *text, size_t len), const uint8_t *data, size_t size)
{
	static struct ap_ctx ctx;

	if (!*folder)
		begin();
	fuzz_require(!setjmp(out_of_memory), "no small input may need more than 512 MiB");
	ctx_begin(&ctx);
	fn(&ctx, ap_arena_strndup(ctx.arena, (const char *)data, size), size);
	ctx_end(&ctx);
}

enum ap_status fuzz_run(const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	return run_line(line, false);
}

void fuzz_must(const char *fmt, ...)
{
	char line[LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	(void)run_line(line, true);
}
