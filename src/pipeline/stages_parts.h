/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a pipeline while they are being found. Shared by the files of stages.h. */
#ifndef AP_PIPELINE_STAGES_PARTS_H
#define AP_PIPELINE_STAGES_PARTS_H

#include "pipeline/stages.h"

struct ap_stages {
	struct ap_ctx *ctx;
	const struct ap_stages_request *rq;
	const struct ap_graph *g;
	int32_t npart;
	int32_t *stage, *segment; /* [nnode] that an operator is said to run in, or its cells; -1 nothing */
	int32_t *part; /* [nnode] what is looked for */
};

/* AP_MEANING, told of an operator (AP_NONE: of none). */
enum ap_status ap_stages_fault(const struct ap_stages *s, ap_id node, const char *check,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* stages_spread.c: parts by what is said, of all operators. */
enum ap_status ap_stages_spread(struct ap_stages *s);

/* stages_cut.c: parts of all operators, where nothing is said. */
void ap_stages_cut(struct ap_stages *s);

/* stages_cut.c: these operators, in this order, to parts first_part and the one behind it, which are
 * of one stage. n >= 2. */
void ap_stages_halve(struct ap_stages *s, const ap_id *node, uint32_t n, int32_t first_part);

#endif
