/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan or a strategy checkpoint read back, as far as two of them can be compared: plain data, kept
 * in the run arena. Values are texts of JSON, so that what is equal is equal as text.
 */
#ifndef AP_PLANFILE_PLAN_READ_H
#define AP_PLANFILE_PLAN_READ_H

#include <stdbool.h>

#include "base/json.h"

struct ap_ckpt;

struct ap_saved_fact { /* one value under a name of its own */
	const char *section; /* "prediction", "memory", "settings", .. */
	const char *key; /* "step_time_s"; "hccs.latency_s" of a level */
	const char *json;
	const char *text; /* of a string; NULL else */
	bool is_number;
	double number;
	int64_t integer; /* 0 unless it is one */
};

/* Fields: plan_fields.def. */
enum ap_saved_op_field {
#define OP(name, ...) AP_SAVED_##name,
#include "planfile/plan_fields.def"
	AP_SAVED_OP_FIELDS
};

enum ap_saved_param_field {
#define PARAM(name, ...) AP_SAVED_##name,
#include "planfile/plan_fields.def"
	AP_SAVED_PARAM_FIELDS
};

enum ap_saved_move_field {
#define MOVE(name, ...) AP_SAVED_##name,
#include "planfile/plan_fields.def"
	AP_SAVED_MOVE_FIELDS
};

/* A field that is NULL is one that the file does not speak of. */
struct ap_saved_comm {
	const char *kind, *phase; /* "AllReduce", "gradient" */
	int64_t ranks; /* of its group */
	int64_t count, bytes; /* executions in a step, and bytes of the buffer of each */
};

struct ap_saved_factor {
	char letter;
	bool batch;
	int32_t parts, stride;
	int64_t size;
};

struct ap_saved_vectors {
	uint32_t n;
	const struct ap_saved_vector {
		size_t n;
		const int64_t *v;
	} *v;
};

struct ap_saved_op {
	const char *name;
	const char *label; /* cell and last part of a long name, for people; the name else */
	const char *type; /* "" unknown */
	const char *cell; /* "" none */
	const char *field[AP_SAVED_OP_FIELDS];
	int64_t stage, segment; /* as numbers */
	double time_s; /* in a step, all in all; 0 not told */
	bool in_checkpoint;
	uint32_t nfactor; /* 0 where their names or parts are not told */
	const struct ap_saved_factor *factor;
	struct ap_saved_vectors in_strategy, out_strategy, out_slice;
	const char *out_shape, *out_dtype; /* of the whole results, JSON; NULL not told */
	uint32_t nin, nout;
	const char *const *in, *const *out; /* names of tensors */
	uint32_t ncomm;
	const struct ap_saved_comm *comm; /* in the order of the file */
};

struct ap_saved_param {
	const char *name;
	bool trainable;
	const char *field[AP_SAVED_PARAM_FIELDS];
};

struct ap_saved_move {
	uint32_t to; /* operator */
	int64_t operand, bytes; /* bytes: of one micro-batch */
	double time_s; /* in a step; 0 not told */
	uint32_t nstep;
	const char *const *step; /* their kinds */
	const char *field[AP_SAVED_MOVE_FIELDS];
};

struct ap_saved {
	const char *file; /* for people: base name */
	bool is_plan; /* else a checkpoint, which has neither collectives nor redistributions */
	uint32_t nfact;
	const struct ap_saved_fact *fact;
	uint32_t ninput;
	const char *const *input; /* names of the inputs of the graph */
	uint32_t nop; /* in topological order; of a checkpoint by name */
	const struct ap_saved_op *op;
	uint32_t nparam;
	const struct ap_saved_param *param;
	uint32_t nmove;
	const struct ap_saved_move *move;
};

/* The fact of a section under a key; of figures that each stage has, as "stage 1.total_bytes", the greatest.
 * NULL: there is none. */
const struct ap_saved_fact *ap_saved_fact(const struct ap_saved *s, const char *section, const char *key);

/* Reads autopar-plan/1. AP_MEANING, every fault located, where it is no such plan; members that are
 * not known are facts or are left alone. O(document). */
enum ap_status ap_saved_of_plan(struct ap_ctx *ctx, const struct ap_json *doc,
	struct ap_saved *out);

/* A strategy checkpoint that was read, and need not stay. */
void ap_saved_of_ckpt(struct ap_ctx *ctx, const struct ap_ckpt *c, struct ap_saved *out);

/* A plan as far as a strategy checkpoint speaks of it: operators by their checkpoint keys, with
 * their strategies, and their parameters. */
void ap_saved_strategies(struct ap_ctx *ctx, const struct ap_saved *plan, struct ap_saved *out);

#endif
