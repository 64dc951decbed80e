/* SPDX-License-Identifier: Apache-2.0 */
/* What an optimizer keeps per parameter; a row each in optimizer.def. */
#ifndef AP_COST_OPTIMIZER_H
#define AP_COST_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

#define AP_MAX_STATES 4

struct ap_optimizer {
	const char *name;
	const char *prefixes; /* of state parameters, separated by blanks */
	int nstate;
	int state_bytes; /* per element of each state */
	bool deals_whole; /* can deal whole parameters to devices in data_parallel */
};

/* The row of a name, or NULL. */
const struct ap_optimizer *ap_optimizer_find(const char *name);

/* Row i; NULL past the end. */
const struct ap_optimizer *ap_optimizer_at(size_t i);

/* Copies prefix i of o into buf; i < o->nstate. */
const char *ap_optimizer_prefix(const struct ap_optimizer *o, int i, char buf[32]);

#endif
