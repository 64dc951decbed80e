/* SPDX-License-Identifier: Apache-2.0 */
#include "draw/graphviz.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "base/vec.h"
#include "draw/dot.h"

extern char **environ;

enum { POLL_MS = 50, MAX_SAID = 4096 };

/* Waits for a child; returns its exit status, or -1 if a signal ended it. If our parent made us
 * ignore SIGCHLD the status is lost: 0, and callers must check the output. */
static int reap(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- DOT from a child process: cgraph does not survive a failed allocation ---- */

enum { LACKS_MEMORY = 1, BUG }; /* exit codes of the child */

struct head { /* sent before the text */
	uint64_t len;
	uint32_t nbox;
};

struct job {
	struct ap_ctx *ctx;
	const struct ap_picture *pic;
	enum ap_pic_detail detail;
	bool stopped_before; /* work requested after a stop is still done */
	pid_t pid;
	int fd;
	struct head head;
	char *text;
	bool whole; /* all of it has arrived */
};

/* ---- in the child ---- */

static void send_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno != EINTR)
			_exit(LACKS_MEMORY);
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
}

static void draw(void *user)
{
	struct job *j = user;
	struct ap_ctx own = {.jobs = 1};
	struct head head;
	const char *text;
	size_t len;

	own.arena = ap_arena_create_like(j->ctx->arena);
	own.scratch = ap_arena_create_like(j->ctx->arena);
	own.diag = ap_diag_create(own.arena, false);
	memset(&head, 0, sizeof head);
	if (ap_emit_dot(&own, j->pic, j->detail, &text, &len, &head.nbox) != AP_OK)
		_exit(BUG);
	head.len = len;
	send_all(j->fd, &head, sizeof head);
	send_all(j->fd, text, len);
}

/* cgraph may call exit(), which would flush the parent's buffers twice. */
static void leave(void)
{
	_exit(LACKS_MEMORY);
}

static _Noreturn void be_child(struct job *j)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT, SIGALRM};
	const struct rlimit none = {0, 0};
	struct ap_refusal refusal;

	for (size_t i = 0; i < AP_COUNT(caught); i++) {
		struct sigaction act;

		if (sigaction(caught[i], NULL, &act) || act.sa_handler == SIG_IGN)
			continue;
		memset(&act, 0, sizeof act);
		act.sa_handler = SIG_DFL;
		sigemptyset(&act.sa_mask);
		(void)sigaction(caught[i], &act, NULL);
	}
	(void)setrlimit(RLIMIT_CORE, &none); /* it may crash */
	(void)atexit(leave);
	_exit(ap_arena_try(j->ctx->arena, draw, NULL, j, &refusal) ? 0 : LACKS_MEMORY);
}

/* ---- in the parent ---- */

static bool job_stopped(const struct job *j)
{
	return ap_ctx_stopped(j->ctx) && !j->stopped_before;
}

/* Reads len bytes; false if the child sends no more, or on a stop. */
static bool receive(struct job *j, void *bytes, size_t len)
{
	char *at = bytes;

	while (len) {
		struct pollfd p = {.fd = j->fd, .events = POLLIN};
		ssize_t n;

		if (job_stopped(j))
			return false;
		if (poll(&p, 1, POLL_MS) <= 0)
			continue;
		n = read(j->fd, at, len);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
			return false;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
	return true;
}

static void listen_to(void *user)
{
	struct job *j = user;

	if (!receive(j, &j->head, sizeof j->head))
		return;
	j->text = ap_arena_alloc_raw(j->ctx->arena, j->head.len + 1, 1);
	j->whole = receive(j, j->text, j->head.len);
	j->text[j->whole ? j->head.len : 0] = '\0';
}

enum ap_status ap_emit_dot_apart(struct ap_ctx *ctx, const struct ap_picture *pic,
	enum ap_pic_detail detail, const char **text, size_t *len, uint32_t *nbox)
{
	struct job j = {.ctx = ctx, .pic = pic, .detail = detail, .stopped_before = ap_ctx_stopped(ctx)};
	struct ap_refusal refusal;
	bool bug = false;
	int fds[2];

	if (pipe(fds))
		return AP_LIMIT;
	j.pid = fork();
	if (j.pid == 0) {
		(void)close(fds[0]);
		j.fd = fds[1];
		be_child(&j);
	}
	(void)close(fds[1]);
	j.fd = fds[0];
	if (j.pid > 0)
		(void)ap_arena_try(ctx->arena, listen_to, NULL, &j, &refusal);
	(void)close(j.fd);
	if (j.pid > 0 && !j.whole)
		(void)kill(j.pid, SIGKILL);
	if (j.pid > 0)
		bug = reap(j.pid) == BUG;
	*text = j.text;
	*len = j.head.len;
	*nbox = j.head.nbox;
	if (bug)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_INTERNAL, NULL, NULL,
			"cgraph could not make the picture");
	return j.whole ? AP_OK : job_stopped(&j) ? AP_STOPPED : AP_LIMIT;
}

/* ---- Graphviz' dot as a child process: DOT on its standard input, the picture on its standard
 * output, messages on its standard error; no shell and no files ---- */

enum { OURS, THEIRS };

struct child {
	struct ap_ctx *ctx;
	bool stopped_before; /* work requested after a stop (the best plan so far) is still done */
	pid_t pid;
	int in[2], out[2], err[2]; /* [OURS], [THEIRS]; -1: closed */
	const char *left; /* unsent input */
	size_t nleft;
	struct ap_str picture, said;
	bool done; /* it has closed its output */
};

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void shut_all(struct child *c)
{
	for (int i = OURS; i <= THEIRS; i++) {
		shut(&c->in[i]);
		shut(&c->out[i]);
		shut(&c->err[i]);
	}
}

/* Opens a pair of sockets, close-on-exec and above the standard streams. Not pipes: a write to a
 * closed socket can be told not to raise a signal. */
static bool open_pair(int pair[2])
{
	int raw[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, raw) != 0)
		return false;
	for (int i = OURS; i <= THEIRS; i++) {
		pair[i] = fcntl(raw[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(raw[i]);
	}
	return pair[OURS] >= 0 && pair[THEIRS] >= 0 &&
		fcntl(pair[OURS], F_SETFL, fcntl(pair[OURS], F_GETFL) | O_NONBLOCK) == 0;
}

/* Spawns dot with default SIGPIPE and no blocked signals, unlike ours. */
static int spawn_with(struct child *c, posix_spawn_file_actions_t *files, posix_spawnattr_t *attr,
	const char *option)
{
	char *argv[] = {(char *)"dot", (char *)option, NULL};
	const int ends[] = {c->in[THEIRS], c->out[THEIRS], c->err[THEIRS]};
	sigset_t none, pipe_signal;
	int e = 0;

	sigemptyset(&none);
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && !e; fd++)
		e = posix_spawn_file_actions_adddup2(files, ends[fd], fd);
	if (e || (e = posix_spawnattr_setsigmask(attr, &none)) ||
		(e = posix_spawnattr_setsigdefault(attr, &pipe_signal)) ||
		(e = posix_spawnattr_setflags(attr,
			 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)))
		return e;
	return posix_spawnp(&c->pid, "dot", files, attr, argv, environ);
}

static int start(struct child *c, const char *option)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int e = posix_spawn_file_actions_init(&files);

	if (e)
		return e;
	e = posix_spawnattr_init(&attr);
	if (!e) {
		e = spawn_with(c, &files, &attr, option);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&files);
	return e;
}

/* Sends input. A closed reader is no error here: the child's exit status decides. */
static void feed(struct child *c)
{
	ssize_t n = send(c->in[OURS], c->left, c->nleft, MSG_NOSIGNAL);

	if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
		return;
	if (n > 0) {
		c->left += n;
		c->nleft -= (size_t)n;
	}
	if (n < 0 || !c->nleft)
		shut(&c->in[OURS]);
}

static void drain(int *fd, struct ap_str *into, size_t most)
{
	char buf[16384];
	ssize_t n = read(*fd, buf, sizeof buf);

	if (n > 0 && into->len < most)
		ap_str_addn(into, buf, (size_t)n);
	else if (!n || (n < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
		shut(fd);
}

static bool child_stopped(const struct child *c)
{
	return ap_ctx_stopped(c->ctx) && !c->stopped_before;
}

/* Exchanges data until the child closes its ends, or on a stop. */
static void talk(void *user)
{
	struct child *c = user;

	while (c->out[OURS] >= 0 || c->err[OURS] >= 0) {
		struct pollfd fds[] = {
			{.fd = c->in[OURS], .events = POLLOUT},
			{.fd = c->out[OURS], .events = POLLIN},
			{.fd = c->err[OURS], .events = POLLIN},
		};

		if (child_stopped(c))
			return;
		if (poll(fds, 3, POLL_MS) <= 0)
			continue;
		if (fds[0].revents)
			feed(c);
		if (fds[1].revents)
			drain(&c->out[OURS], &c->picture, SIZE_MAX);
		if (fds[2].revents)
			drain(&c->err[OURS], &c->said, MAX_SAID);
	}
	c->done = true;
}

static enum ap_status fault(struct child *c, const char *what, const char *why)
{
	return ap_diag_add(c->ctx->diag, AP_ERROR, AP_IO, NULL, NULL, "%s: %s", what, why);
}

static enum ap_status run(struct child *c, const char *option)
{
	struct ap_refusal refusal;
	bool memory;
	int e, status;

	if (!open_pair(c->in) || !open_pair(c->out) || !open_pair(c->err))
		return fault(c, "the picture cannot be rendered", strerror(errno));
	e = start(c, option);
	if (e == ENOENT)
		return fault(c, "the picture cannot be rendered",
			"no program dot on the PATH; install Graphviz, or write a .dot file");
	if (e)
		return fault(c, "the program dot could not be started", strerror(e));
	shut(&c->in[THEIRS]);
	shut(&c->out[THEIRS]);
	shut(&c->err[THEIRS]);
	memory = ap_arena_try(c->ctx->arena, talk, NULL, c, &refusal);
	if (!c->done)
		kill(c->pid, SIGKILL);
	shut_all(c);
	status = reap(c->pid);
	if (!memory)
		return AP_LIMIT;
	if (!c->done || (status < 0 && child_stopped(c))) /* ^C on a terminal also ends the child */
		return AP_STOPPED;
	if (!status && c->picture.len)
		return AP_OK;
	c->said.s[strcspn(c->said.s, "\n")] = '\0';
	if (!*c->said.s)
		ap_str_add(&c->said, status < 0 ? "ended by a signal" : "without a word");
	return fault(c, "the program dot failed", c->said.s);
}

enum ap_status ap_emit_rendered(struct ap_ctx *ctx, const char *dot, size_t len, const char *format,
	const char **bytes, size_t *nbytes)
{
	struct child c = {.ctx = ctx, .stopped_before = ap_ctx_stopped(ctx), .in = {-1, -1},
		.out = {-1, -1}, .err = {-1, -1}, .left = dot, .nleft = len};
	enum ap_status st;

	assert(!strcmp(format, "svg") || !strcmp(format, "png") || !strcmp(format, "pdf"));
	ap_str_init(&c.picture, ctx->arena);
	ap_str_init(&c.said, ctx->arena);
	st = run(&c, ap_arena_printf(ctx->arena, "-T%s", format));
	shut_all(&c);
	*bytes = c.picture.s;
	*nbytes = c.picture.len;
	return st;
}
