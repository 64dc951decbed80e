/* SPDX-License-Identifier: Apache-2.0 */
#include "ilp/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"

enum { POLL_MS = 20 }; /* a signal may come between looking at the flag and waiting */

struct ap_child {
	int fd;
	size_t bytes; /* of a report */
};

struct watch {
	struct ap_ctx *ctx;
	pid_t pid;
	int fd;
	unsigned char *part; /* of a report, as far as it has come */
	size_t have, bytes;
	void *report;
};

static void end_child(void *user, size_t wanted)
{
	(void)user;
	(void)wanted;
	_exit(1);
}

void ap_child_report(const struct ap_child *c, const void *report)
{
	const unsigned char *at = report;
	size_t left = c->bytes;

	while (left > 0) {
		ssize_t n = write(c->fd, at, left);

		if (n < 0 && errno != EINTR)
			_exit(1);
		if (n > 0) {
			at += n;
			left -= (size_t)n;
		}
	}
}

bool ap_child_wanted(const struct ap_child *c)
{
	struct pollfd p = {.fd = c->fd};

	return poll(&p, 1, 0) <= 0 || !(p.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* The handlers of the program are not for its children. */
static void default_signals(void)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT, SIGALRM};

	for (size_t i = 0; i < AP_COUNT(caught); i++) {
		struct sigaction act;

		if (sigaction(caught[i], NULL, &act) || act.sa_handler == SIG_IGN)
			continue;
		memset(&act, 0, sizeof act);
		act.sa_handler = SIG_DFL;
		sigemptyset(&act.sa_mask);
		(void)sigaction(caught[i], &act, NULL);
	}
}

static void run_child(int fd, size_t bytes, ap_child_job *job, void *user)
{
	struct ap_child c = {fd, bytes};
	struct ap_ctx own = {.jobs = 1};

	default_signals();
	own.arena = ap_arena_create(0, end_child, NULL);
	own.scratch = ap_arena_create(0, end_child, NULL);
	own.diag = ap_diag_create(own.arena, false);
	job(&own, &c, user);
	_exit(0);
}

/* False at the end of what the child has to say. */
static bool take(struct watch *w)
{
	ssize_t n = read(w->fd, w->part + w->have, w->bytes - w->have);

	if (n <= 0)
		return n < 0 && errno == EINTR;
	w->have += (size_t)n;
	if (w->have == w->bytes) {
		memcpy(w->report, w->part, w->bytes);
		w->have = 0;
	}
	return true;
}

static void listen_to(struct watch *w)
{
	while (!ap_ctx_stopped(w->ctx)) {
		struct pollfd p = {.fd = w->fd, .events = POLLIN};

		if (poll(&p, 1, POLL_MS) > 0 && !take(w))
			return;
	}
	(void)kill(w->pid, SIGKILL);
}

static bool bury(const struct watch *w)
{
	int status;
	pid_t got;

	do
		got = waitpid(w->pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got == w->pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool ap_child_run(struct ap_ctx *ctx, ap_child_job *job, void *user, void *report, size_t bytes)
{
	struct watch w = {.ctx = ctx, .bytes = bytes, .report = report};
	int fds[2];

	w.part = AP_NEW_N(ctx->scratch, unsigned char, bytes);
	if (ap_ctx_stopped(ctx) || pipe(fds))
		return false;
	w.fd = fds[0];
	w.pid = fork();
	if (w.pid == 0) {
		(void)close(fds[0]);
		run_child(fds[1], bytes, job, user);
	}
	(void)close(fds[1]);
	if (w.pid > 0)
		listen_to(&w);
	(void)close(w.fd);
	return w.pid > 0 && bury(&w);
}
