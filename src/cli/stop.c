/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "autopar/status.h"

/* Signal handlers get no user data: the only global state of the program. */
static volatile sig_atomic_t stopped_by; /* the signal, SIGALRM for the time limit; 0 if none */
static volatile sig_atomic_t armed;

void ap_streams_secure(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)open("/dev/null", fd ? O_RDONLY : O_WRONLY);
}

static void on_stop(int sig)
{
	if (!armed || (stopped_by && stopped_by != SIGALRM))
		_exit(128 + sig);
	stopped_by = sig;
}

static void on_alarm(int sig)
{
	if (!stopped_by)
		stopped_by = sig;
}

static void on_abort(int sig)
{
	(void)sig;
	_exit(ap_status_exit(AP_INTERNAL));
}

static void handle(int sig, void (*handler)(int))
{
	struct sigaction act;

	memset(&act, 0, sizeof act);
	act.sa_handler = handler;
	act.sa_flags = SA_RESTART;
	sigemptyset(&act.sa_mask);
	(void)sigaction(sig, &act, NULL);
}

static void handle_unless_ignored(int sig, void (*handler)(int))
{
	struct sigaction old;

	if (!sigaction(sig, NULL, &old) && old.sa_handler != SIG_IGN)
		handle(sig, handler);
}

void ap_stop_install(void)
{
	handle(SIGPIPE, SIG_IGN);
	handle(SIGXFSZ, SIG_IGN);
	handle(SIGABRT, on_abort);
	handle(SIGALRM, on_alarm);
	handle_unless_ignored(SIGINT, on_stop);
	handle_unless_ignored(SIGTERM, on_stop);
	handle_unless_ignored(SIGHUP, on_stop);
}

void ap_stop_arm(void)
{
	armed = 1;
}

void ap_stop_after(double seconds)
{
	struct sigevent event;
	struct itimerspec when = {.it_value.tv_sec = (time_t)seconds};
	timer_t timer;

	memset(&event, 0, sizeof event);
	event.sigev_notify = SIGEV_SIGNAL;
	event.sigev_signo = SIGALRM;
	when.it_value.tv_nsec = (long)((seconds - (double)when.it_value.tv_sec) * 1e9);
	if ((!when.it_value.tv_sec && !when.it_value.tv_nsec) ||
		timer_create(CLOCK_MONOTONIC, &event, &timer) ||
		timer_settime(timer, 0, &when, NULL))
		stopped_by = SIGALRM;
}

const volatile sig_atomic_t *ap_stop_flag(void)
{
	return &stopped_by;
}

int ap_stop_signal(void)
{
	return stopped_by == SIGALRM ? 0 : stopped_by;
}
