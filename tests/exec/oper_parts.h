/* SPDX-License-Identifier: Apache-2.0 */
/* An execution of an operator, between its forward and its backward pass. Shared by oper*.c. */
#ifndef AP_TEST_EXEC_OPER_PARTS_H
#define AP_TEST_EXEC_OPER_PARTS_H

#include "oper.h"

struct ex_run_rank {
	struct ex_tape tape;
	uint32_t staged; /* length of the tape after stage 0 */
	struct ex_value *in; /* [nin] with their halos */
	struct ex_value *part; /* [nout] what stage 0 made */
	struct ex_value *leaf; /* [nout] statistics as stage 1 finds them */
	struct ex_value *out; /* [nout] what the last stage made */
};

struct ex_grown { /* an operand that got rows of the neighbours */
	int operand, dim;
	struct ap_axes axes;
	int64_t before[EX_MAX_DEV], after[EX_MAX_DEV];
};

struct ex_run {
	const struct ex_oper *o;
	const struct ex_kernel *kernel;
	struct ex_run_rank rank[EX_MAX_DEV];
	int ngrown;
	struct ex_grown grown[AP_MAX_WINDOW];
	struct ex_shards made[EX_MAX_OUT], reduced[EX_MAX_OUT]; /* before and after collectives */
};

static inline bool ex_is_inner(const struct ex_run *r, int result)
{
	return r->kernel->stages == 2 && r->kernel->inner >> result & 1;
}

/* Is it a collective of this phase for this result? */
static inline bool ex_is_of_result(const struct ap_comm *c, enum ap_phase phase, int result)
{
	return c->phase == phase && c->operand < 0 && c->result == result;
}

#endif
