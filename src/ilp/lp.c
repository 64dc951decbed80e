/* SPDX-License-Identifier: Apache-2.0 */
#include "ilp/lp.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "ilp/lp_wire.h"

enum { POLL_MS = 20 }; /* a signal may arrive between checking the flag and waiting */

extern char **environ;

void ap_lp_end(struct ap_lp_solver *s)
{
	if (!s->pid)
		return;
	(void)close(s->fd);
	(void)kill(s->pid, SIGKILL);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}

/* The program's path: in ctx->helpers, beside the running program, or where it is installed. */
static const char *path_of(const struct ap_ctx *ctx)
{
	char self[PATH_MAX];
	ssize_t len;

	if (ctx->helpers)
		return ap_arena_printf(ctx->arena, "%s/" AP_LP_PROGRAM, ctx->helpers);
	len = readlink("/proc/self/exe", self, sizeof self);
	while (len > 0 && self[len - 1] != '/')
		len--;
	if (len > 0) {
		const char *beside = ap_arena_printf(ctx->arena, "%.*s" AP_LP_PROGRAM, (int)len, self);

		if (access(beside, X_OK) == 0)
			return beside;
	}
	return AP_LIBEXECDIR "/" AP_LP_PROGRAM;
}

/* Starts the program with one end of a socket as its standard input; returns 0 or an errno. */
static int spawn(const char *path, const int fd[2], pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none;
	int error = posix_spawn_file_actions_init(&files);

	if (error)
		return error;
	error = posix_spawnattr_init(&attr);
	if (!error) {
		char *argv[] = {(char *)path, NULL};

		sigemptyset(&none);
		(void)posix_spawnattr_setsigmask(&attr, &none);
		(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
		error = posix_spawn_file_actions_adddup2(&files, fd[1], STDIN_FILENO);
		if (!error)
			error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null",
				O_WRONLY, 0);
		if (!error)
			error = posix_spawn(pid, path, &files, &attr, argv, environ);
		(void)posix_spawnattr_destroy(&attr);
	}
	(void)posix_spawn_file_actions_destroy(&files);
	return error;
}

bool ap_lp_start(struct ap_lp_solver *s)
{
	const char *path;
	int fd[2], error;

	if (s->pid || s->failed)
		return s->pid && !s->failed;
	path = path_of(s->ctx);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd)) {
		error = errno;
	} else {
		error = spawn(path, fd, &s->pid);
		(void)close(fd[1]);
		s->fd = fd[0];
		if (error) {
			(void)close(fd[0]);
			s->pid = 0;
		}
	}
	if (error)
		s->failed = ap_arena_printf(s->ctx->arena, "cannot run %s: %s", path, strerror(error));
	return !error;
}

/* Sends (there) or receives all bytes. False: told to stop, or the other end is gone. */
static bool transfer(const struct ap_lp_solver *s, void *data, size_t bytes, bool there)
{
	unsigned char *at = data;

	while (bytes > 0) {
		struct pollfd p = {.fd = s->fd, .events = there ? POLLOUT : POLLIN};
		ssize_t n;

		if (ap_ctx_stopped(s->ctx))
			return false;
		if (poll(&p, 1, POLL_MS) <= 0)
			continue;
		n = there ? send(s->fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
			: recv(s->fd, at, bytes, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
			return false;
		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		}
	}
	return true;
}

static bool ask(const struct ap_lp_solver *s, const struct ap_lp *lp, const struct ap_lp_limits *limits)
{
	struct ap_lp_request q = {AP_LP_REQUEST, lp->ncol, lp->nrow, lp->ncell, limits->iterations,
		limits->bytes};
	size_t cells = lp->ncell + 1;

	static_assert(sizeof(bool) == 1, "as it is sent");
	return transfer(s, &q, sizeof q, true) &&
		transfer(s, (void *)lp->cost, lp->ncol * sizeof *lp->cost, true) &&
		transfer(s, (void *)lp->right, lp->nrow * sizeof *lp->right, true) &&
		transfer(s, (void *)lp->loose, lp->nrow * sizeof *lp->loose, true) &&
		transfer(s, (void *)lp->row, cells * sizeof *lp->row, true) &&
		transfer(s, (void *)lp->col, cells * sizeof *lp->col, true) &&
		transfer(s, (void *)lp->value, cells * sizeof *lp->value, true);
}

static bool all_finite(const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(v[i]))
			return false;
	return true;
}

enum ap_lp_end ap_lp_solve(struct ap_lp_solver *s, const struct ap_lp *lp,
	const struct ap_lp_limits *limits, double *x, double *dual, uint64_t *iterations)
{
	struct ap_lp_reply r;
	bool came = ask(s, lp, limits) && transfer(s, &r, sizeof r, false);

	if (came && r.magic == AP_LP_REPLY && r.end < AP_LP_UNANSWERED && r.iterations <= INT_MAX) {
		came = transfer(s, x, lp->ncol * sizeof *x, false) &&
			transfer(s, dual, lp->nrow * sizeof *dual, false);
		if (came && all_finite(x, lp->ncol) && all_finite(dual, lp->nrow)) {
			*iterations += r.iterations;
			return (enum ap_lp_end)r.end;
		}
	}
	memset(x, 0, lp->ncol * sizeof *x);
	memset(dual, 0, lp->nrow * sizeof *dual);
	ap_lp_end(s);
	s->failed = came ? AP_LP_PROGRAM " answers what is no answer; is it of another version?"
		: AP_LP_PROGRAM " ended before it had answered";
	return AP_LP_UNANSWERED;
}
