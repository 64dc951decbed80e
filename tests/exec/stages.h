/* SPDX-License-Identifier: Apache-2.0 */
/* Random pipelines of graphs. Shared by the tests of staged graphs. */
#ifndef AP_TEST_EXEC_STAGES_H
#define AP_TEST_EXEC_STAGES_H

#include "graph/staged.h"

struct ex_pipe {
	int32_t nstage, nsegment;
	bool vee; /* odd segments go back through the stages */
};

/* 1 to most stages of 1 or 2 segments. */
struct ex_pipe ex_random_pipe(uint64_t *rng, uint32_t most);

/* Parts ascend along every edge; some may stay empty. */
const struct ap_spot *ex_random_spots(struct ap_ctx *ctx, const struct ap_graph *g,
	const struct ex_pipe *pipe, uint64_t *rng);

#endif
