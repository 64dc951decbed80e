/* SPDX-License-Identifier: Apache-2.0 */
/* DOT from a child process: cgraph, and the dictionaries that it is made of, do not survive a failed
 * allocation, so that whatever happens there is not to happen here. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/vec.h"
#include "draw/draw.h"

enum { POLL_MS = 50, LACKS_MEMORY = 1, BUG }; /* exit codes of the child */

struct head { /* what comes before the text */
	uint64_t len;
	uint32_t nbox;
};

struct job {
	struct ap_ctx *ctx;
	const struct ap_picture *pic;
	enum ap_pic_detail detail;
	bool stopped_before; /* what is asked for after a stop is still made */
	pid_t pid;
	int fd;
	struct head head;
	char *text;
	bool whole; /* all of it has come */
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
	(void)setrlimit(RLIMIT_CORE, &none); /* that it dies is foreseen */
	_exit(ap_arena_try(j->ctx->arena, draw, NULL, j, &refusal) ? 0 : LACKS_MEMORY);
}

/* ---- in the parent ---- */

static bool told_to_stop(const struct job *j)
{
	return ap_ctx_stopped(j->ctx) && !j->stopped_before;
}

/* Reads len bytes; false where the child has no more, or we are told to stop. */
static bool receive(struct job *j, void *bytes, size_t len)
{
	char *at = bytes;

	while (len) {
		struct pollfd p = {.fd = j->fd, .events = POLLIN};
		ssize_t n;

		if (told_to_stop(j))
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

/* Did it see a fault of cgraph's that is no lack of memory? */
static bool bury(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == BUG;
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
		bug = bury(j.pid);
	*text = j.text;
	*len = j.head.len;
	*nbox = j.head.nbox;
	if (bug)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_INTERNAL, NULL, NULL,
			"cgraph could not make the picture");
	return j.whole ? AP_OK : told_to_stop(&j) ? AP_STOPPED : AP_LIMIT;
}
