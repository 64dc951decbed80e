/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for autopar-plan-glpk, and does badly what the folder it is called from says. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ilp/lp.h"
#include "ilp/lp_wire.h"

static const char *mode;

static bool is(const char *name)
{
	return !strcmp(mode, name);
}

static void *receive(size_t bytes)
{
	char *data = malloc(bytes + 1);
	for (size_t have = 0; have < bytes;) {
		ssize_t n = recv(STDIN_FILENO, data + have, bytes - have, 0);
		if (n <= 0)
			exit(0);
		have += (size_t)n;
	}
	return data;
}

static void reply(const void *data, size_t bytes)
{
	if (send(STDIN_FILENO, data, bytes, MSG_NOSIGNAL) < 0)
		exit(1);
}

/* Numbers that look like an answer and are none. */
static double made_up(size_t i)
{
	static const double odd[] = {0.5, -3, 1e300, 0, -1e300, 1, 7e15, -2e-9};
	if (is("zeros"))
		return 0;
	if (is("nan"))
		return strtod("nan", NULL);
	return is("huge") ? (i % 2 ? -1e308 : 1e308) : odd[i % (sizeof odd / sizeof *odd)];
}

int main(int argc, char **argv)
{
	char *slash = strrchr(argv[0], '/');
	if (argc != 1 || !slash)
		return 2;
	*slash = '\0';
	mode = strrchr(argv[0], '/') + 1;
	if (is("quits"))
		return 0;
	for (;;) {
		struct ap_lp_request *q = receive(sizeof *q);
		struct ap_lp_reply r = {.magic = AP_LP_REPLY, .iterations = 1};
		size_t bytes = q->columns * 8 + q->rows * 9 + (q->cells + 1) * 16;
		free(receive(bytes));
		if (is("hangs"))
			for (;;)
				pause();
		if (is("dies"))
			abort();
		r.magic += is("another-version");
		r.end = is("infeasible") ? AP_LP_INFEASIBLE : is("stopped") ? AP_LP_STOPPED
			: is("bad-end") ? AP_LP_UNANSWERED : AP_LP_OPTIMAL;
		if (is("busy"))
			r.iterations = UINT64_MAX;
		reply(&r, is("short") ? sizeof r / 2 : sizeof r);
		if (is("short"))
			return 0;
		for (size_t i = 0; i < q->columns + q->rows; i++)
			reply(&(double){made_up(i)}, sizeof(double));
		free(q);
	}
}
