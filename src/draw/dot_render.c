/* SPDX-License-Identifier: Apache-2.0 */
/* Graphviz' dot as a child process: DOT in through its standard input, the picture out through its
 * standard output, what it says through its standard error; no shell and no files. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "draw/draw.h"

extern char **environ;

enum { OURS, THEIRS, STOP_POLL_MS = 50, MAX_SAID = 4096 };

struct child {
	struct ap_ctx *ctx;
	bool stopped_before; /* what is asked for after a stop (the best plan so far) is still made */
	pid_t pid;
	int in[2], out[2], err[2]; /* [OURS], [THEIRS]; -1 closed */
	const char *left; /* of the input */
	size_t nleft;
	struct ap_str picture, said;
	bool done; /* it has said all that it had to say */
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

/* A pair of sockets, not inherited and above the standard streams. Sockets and not pipes, for a
 * write to a reader that has gone need not raise a signal. */
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

/* That we ignore a closed pipe or block signals does not pass to the child. */
static int spawn_with(struct child *c, posix_spawn_file_actions_t *files, posix_spawnattr_t *attr,
	const char *option)
{
	char *argv[] = {(char *)"dot", (char *)option, NULL};
	sigset_t none, pipe_signal;
	int e;

	sigemptyset(&none);
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	if ((e = posix_spawn_file_actions_adddup2(files, c->in[THEIRS], STDIN_FILENO)) ||
		(e = posix_spawn_file_actions_adddup2(files, c->out[THEIRS], STDOUT_FILENO)) ||
		(e = posix_spawn_file_actions_adddup2(files, c->err[THEIRS], STDERR_FILENO)) ||
		(e = posix_spawnattr_setsigmask(attr, &none)) ||
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

/* A reader that has gone is no fault here: the child's exit tells what happened. */
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

static bool told_to_stop(const struct child *c)
{
	return ap_ctx_stopped(c->ctx) && !c->stopped_before;
}

/* Until the child has closed its ends, or we are told to stop. */
static void talk(void *user)
{
	struct child *c = user;

	while (c->out[OURS] >= 0 || c->err[OURS] >= 0) {
		struct pollfd fds[] = {
			{.fd = c->in[OURS], .events = POLLOUT},
			{.fd = c->out[OURS], .events = POLLIN},
			{.fd = c->err[OURS], .events = POLLIN},
		};

		if (told_to_stop(c))
			return;
		if (poll(fds, 3, STOP_POLL_MS) <= 0)
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

/* Its exit status, -1 when a signal ended it. Where our parent had us ignore SIGCHLD the status is
 * lost; the picture has to speak for itself. */
static int reap(struct child *c)
{
	int status = 0;

	while (waitpid(c->pid, &status, 0) < 0)
		if (errno != EINTR)
			return 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
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
	status = reap(c);
	if (!memory)
		return AP_LIMIT;
	if (!c->done || (status < 0 && told_to_stop(c))) /* ^C on a terminal ends the child as well */
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
