/* SPDX-License-Identifier: Apache-2.0 */
/* Faults put in on purpose, and what was covered. See exec.h. */
#ifndef AP_TEST_EXEC_FAULT_H
#define AP_TEST_EXEC_FAULT_H

#include "program.h"

struct ex_pipeline;

/* ---- faults*.c ---------------------------------------------------------------------------------- */

struct ex_comms {
	uint32_t n;
	struct ap_comm v[EX_MAX_COMM];
};

/* A fault breaks what passes one of these hooks; false: nothing here to break. */
struct ex_fault {
	const char *name, *what;
	const char *types; /* operator types or graphs it is tried on, "A B C" */
	bool relaxes; /* all it does is to allow more strategies */
	bool (*bound)(struct ex_world *w, struct ap_bound *b, struct ap_op_row *row); /* before counts */
	bool (*place)(struct ex_world *w, struct ap_placement *p);
	bool (*layout)(struct ex_world *w, const struct ex_oper *o, struct ap_layout *in,
		struct ap_layout *out);
	bool (*comms)(struct ex_world *w, const struct ex_oper *o, struct ex_comms *c);
	/* slot: of an operand, or EX_MAX_IN and the number of a result */
	bool (*box)(struct ex_world *w, const char *type, unsigned slot, int64_t rank, struct ex_box *b);
	bool (*halo)(struct ex_world *w, int64_t parts, int64_t part, int64_t *before, int64_t *after);
	bool (*group)(struct ex_world *w, int64_t rank, int64_t n, int64_t *ranks);
	bool (*steps)(struct ex_world *w, int *n, struct ap_reshard_step *s);
	bool (*seed)(struct ex_world *w, uint64_t *seed); /* gradient of the loss */
	bool (*program)(struct ex_world *w, struct ex_program *p);
	bool (*text)(struct ex_world *w, struct ap_str *plan_file);
	bool (*ckpt)(struct ex_world *w, struct ap_str *checkpoint);
	bool (*pipe)(struct ex_world *w, struct ex_pipeline *l);
	bool (*letter)(struct ex_world *w, int64_t *to_rank); /* of a slice that goes to another stage */
	bool (*count)(struct ex_world *w, int64_t micro, int *times); /* of a gradient, in the sum */
};
const struct ex_fault *ex_fault_at(size_t i); /* NULL past the end */

struct ex_fault_tally { /* of one fault */
	uint32_t enough; /* runs of a type with the fault at work, when some are caught */
	uint32_t runs, applied, caught; /* it found something to break; that made a difference */
	const char *first; /* the first difference that it made */
	const char *missed; /* a type or graph on which it passed whenever it applied; NULL: none */
	const char *unsound; /* what differs without it; NULL: nothing */
};
/* Puts a fault into operators, redistributions or plans of what it names, until it has been at work
 * often enough. */
struct ex_fault_tally ex_fault_try(struct ap_ctx *ctx, const struct ex_fault *f, uint64_t seed);

/* ---- catalogue.c -------------------------------------------------------------------------------- */

struct ex_catalogue {
	const char *type;
	const char *section; /* "4.2", "4.3", "1.x", "ours" */
	const char *canonical; /* type whose rows it has; NULL: none */
	const char *why_not; /* NULL: no reason against it is known */
};

/* Type i that MindSpore has, or only our table; false past the end. */
bool ex_catalogue_at(size_t i, struct ex_catalogue *out);

/* ---- coverage.c --------------------------------------------------------------------------------- */

/* docs/operators.md: how many types of each section are covered; a line per type of the catalogue with
 * rule, communication, source, strategies that are executed and faults that are put in, or the reason
 * why it is not planned with. Samples are those of the seed. */
void ex_coverage_write(struct ap_ctx *ctx, uint64_t seed, struct ap_str *out);

#endif
