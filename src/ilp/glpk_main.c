/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autopar-plan-glpk: solves the linear programs that autopar-plan sends (lp_wire.h) with GLPK. It
 * is a program of its own because GLPK is under the GPL, and because GLPK ends the process on
 * internal errors. It has no options, uses no file but the socket that is its standard input, and
 * exits as soon as the other end closes, even while GLPK runs.
 */
#include <errno.h>
#include <glpk.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "autopar/version.h"
#include "ilp/lp.h"
#include "ilp/lp_wire.h"

enum { FAILED = 70 }; /* exit status */

static void leave(void *user)
{
	(void)user;
	_exit(FAILED);
}

static void *leave_when_alone(void *user)
{
	struct pollfd p = {.fd = STDIN_FILENO};

	(void)user;
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static void receive(void *data, size_t bytes)
{
	unsigned char *at = data;

	while (bytes > 0) {
		ssize_t n = recv(STDIN_FILENO, at, bytes, 0);

		if (n == 0 || (n < 0 && errno != EINTR))
			_exit(n ? FAILED : 0);
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
}

static void reply(const void *data, size_t bytes)
{
	const unsigned char *at = data;

	while (bytes > 0) {
		ssize_t n = send(STDIN_FILENO, at, bytes, MSG_NOSIGNAL);

		if (n < 0 && errno != EINTR)
			_exit(FAILED);
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
}

/* Allocates n items and receives them. */
static void *receive_items(size_t n, size_t size)
{
	void *items = calloc(n ? n : 1, size);

	if (!items)
		leave(NULL);
	receive(items, n * size);
	return items;
}

static glp_prob *receive_program(const struct ap_lp_request *q)
{
	double *cost = receive_items(q->columns, sizeof *cost);
	double *right = receive_items(q->rows, sizeof *right);
	uint8_t *loose = receive_items(q->rows, sizeof *loose);
	int32_t *row = receive_items(q->cells + 1, sizeof *row);
	int32_t *column = receive_items(q->cells + 1, sizeof *column);
	double *value = receive_items(q->cells + 1, sizeof *value);
	glp_prob *p = glp_create_prob();

	glp_add_rows(p, (int)q->rows);
	glp_add_cols(p, (int)q->columns);
	for (size_t i = 0; i < q->rows; i++)
		glp_set_row_bnds(p, (int)i + 1, loose[i] ? GLP_UP : GLP_FX, right[i], right[i]);
	for (size_t j = 0; j < q->columns; j++) {
		glp_set_col_bnds(p, (int)j + 1, GLP_LO, 0, 0);
		glp_set_obj_coef(p, (int)j + 1, cost[j]);
	}
	glp_load_matrix(p, (int)q->cells, row, column, value);
	free(cost);
	free(right);
	free(loose);
	free(row);
	free(column);
	free(value);
	return p;
}

static enum ap_lp_end end_of(glp_prob *p)
{
	switch (glp_get_status(p)) {
	case GLP_OPT:
		return AP_LP_OPTIMAL;
	case GLP_NOFEAS:
		return AP_LP_INFEASIBLE;
	default:
		return AP_LP_STOPPED;
	}
}

int main(void)
{
	static const int of_terminals[] = {SIGHUP, SIGINT, SIGQUIT};
	struct ap_lp_request q;
	pthread_t watch;
	int type;
	socklen_t len = sizeof type;

	if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &len)) {
		fputs(AP_LP_PROGRAM " " AP_VERSION ": solves linear programs for autopar-plan, which "
			"starts it\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < sizeof of_terminals / sizeof *of_terminals; i++)
		(void)signal(of_terminals[i], SIG_IGN);
	if (pthread_create(&watch, NULL, leave_when_alone, NULL))
		return FAILED;
	for (;;) {
		struct ap_lp_reply r = {.magic = AP_LP_REPLY};
		double *values;
		glp_prob *p;
		glp_smcp how;

		receive(&q, sizeof q);
		if (q.magic != AP_LP_REQUEST || q.columns >= INT_MAX || q.rows >= INT_MAX ||
			q.cells >= INT_MAX)
			return FAILED;
		glp_term_out(GLP_OFF);
		glp_error_hook(leave, NULL);
		if (q.bytes)
			glp_mem_limit(q.bytes >> 20 < INT_MAX ? (int)(q.bytes >> 20) + 1 : INT_MAX);
		p = receive_program(&q);
		glp_init_smcp(&how);
		how.meth = GLP_DUALP;
		how.msg_lev = GLP_MSG_OFF;
		if (q.iterations && q.iterations < INT_MAX)
			how.it_lim = (int)q.iterations;
		r.end = glp_simplex(p, &how) ? AP_LP_STOPPED : end_of(p);
		r.iterations = (uint64_t)glp_get_it_cnt(p);
		values = malloc((q.columns + q.rows + 1) * sizeof *values);
		if (!values)
			leave(NULL);
		for (size_t j = 0; j < q.columns; j++)
			values[j] = glp_get_col_prim(p, (int)j + 1);
		for (size_t i = 0; i < q.rows; i++)
			values[q.columns + i] = glp_get_row_dual(p, (int)i + 1);
		glp_free_env();
		reply(&r, sizeof r);
		reply(values, (q.columns + q.rows) * sizeof *values);
		free(values);
	}
}
