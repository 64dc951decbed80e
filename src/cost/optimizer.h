/* SPDX-License-Identifier: Apache-2.0 */
/* What an optimizer keeps per parameter. A row each in optimizer.def. */
#ifndef AP_COST_OPTIMIZER_H
#define AP_COST_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

#define AP_MAX_STATES 4

struct ap_optimizer {
	const char *name;
	const char *prefixes; /* of the state parameters, separated by a blank */
	int nstate;
	int state_bytes; /* per element of each */
	bool deals_whole; /* in data_parallel, whole parameters can be dealt to devices */
};

/* The row of that name, or NULL. */
const struct ap_optimizer *ap_optimizer_find(const char *name);

/* Row i, NULL past the end. */
const struct ap_optimizer *ap_optimizer_at(size_t i);

/* Prefix number i of o into buf of 32; i < o->nstate. */
const char *ap_optimizer_prefix(const struct ap_optimizer *o, int i, char buf[32]);

#endif
