/* SPDX-License-Identifier: Apache-2.0 */
/* A plan or strategy checkpoint read back for comparison: plain data in the run arena. Values are
 * JSON texts, equal if and only if the values are. */
#ifndef AP_PLANFILE_PLAN_READ_H
#define AP_PLANFILE_PLAN_READ_H

#include <stdbool.h>

#include "base/json.h"

struct ap_ckpt;

struct ap_saved_fact { /* a named value */
	const char *section; /* "prediction", "memory", "settings", .. */
	const char *key; /* "step_time_s"; "hccs.latency_s" of a level */
	const char *json;
	const char *text; /* the string; NULL for other types */
	bool is_number;
	double number;
	int64_t integer; /* 0 if not an integer */
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

/* A field is NULL if the file does not contain it. */
struct ap_saved_comm {
	const char *kind, *phase; /* "AllReduce", "gradient" */
	int64_t ranks; /* group size */
	int64_t count, bytes; /* executions per step; buffer bytes of each */
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
	const char *label; /* cell and last part of a long name for display, else the name */
	const char *type; /* "": unknown */
	const char *cell; /* "": none */
	const char *field[AP_SAVED_OP_FIELDS];
	int64_t stage, segment; /* as numbers */
	double time_s; /* total per step; 0: unknown */
	bool in_checkpoint;
	uint32_t nfactor; /* 0 if names or parts are missing */
	const struct ap_saved_factor *factor;
	struct ap_saved_vectors in_strategy, out_strategy, out_slice;
	const char *out_shape, *out_dtype; /* of whole results, JSON; NULL: unknown */
	uint32_t nin, nout;
	const char *const *in, *const *out; /* tensor names */
	uint32_t ncomm;
	const struct ap_saved_comm *comm; /* in file order */
};

struct ap_saved_axis { /* of the ranks of a stage: coordinate = rank / stride % size */
	int64_t stride, size;
};

struct ap_saved_param {
	const char *name;
	bool trainable;
	int64_t stage, first_rank; /* of the stage; 0 of a checkpoint */
	/* How it lies, as the plan says it; nothing is checked. Of a checkpoint: none. */
	const char *dtype; /* "float16" */
	struct ap_saved_vector shape, slice, dev_matrix, tensor_map;
	int64_t shards; /* that the slice is dealt in; 1: it is not dealt */
	int64_t part; /* elements of one of them, row by row, where the last ones have fewer
	                 (shard/dealing.h); 0: rows of dimension 0, equally many */
	uint32_t nshard_axis; /* of the group that it is dealt to, outermost first */
	const struct ap_saved_axis *shard_axis;
	const char *field[AP_SAVED_PARAM_FIELDS];
};

struct ap_saved_move {
	uint32_t to; /* operator */
	int64_t operand, bytes; /* bytes per micro-batch */
	double time_s; /* per step; 0: unknown */
	uint32_t nstep;
	const char *const *step; /* kinds of its steps; of those back if it has none there; "shared" */
	const char *field[AP_SAVED_MOVE_FIELDS];
};

struct ap_saved {
	const char *file; /* base name, for display */
	bool is_plan; /* a checkpoint has neither collectives nor redistributions */
	const char *decided, *given; /* settings in words, where `plan` decided them; else NULL */
	uint32_t nfact;
	const struct ap_saved_fact *fact;
	uint32_t ninput;
	const char *const *input; /* names of graph inputs */
	uint32_t nop; /* in topological order; by name in a checkpoint */
	const struct ap_saved_op *op;
	uint32_t nparam;
	const struct ap_saved_param *param;
	uint32_t nmove;
	const struct ap_saved_move *move;
};

/* The fact of a section under a key; if each stage has one ("stage 1.total_bytes"), the greatest.
 * NULL if there is none. */
const struct ap_saved_fact *ap_saved_fact(const struct ap_saved *s, const char *section, const char *key);

/* Reads autopar-plan/1. Returns AP_MEANING, the fault located, if it is not such a plan; unknown
 * members become facts or are ignored. O(document). */
enum ap_status ap_saved_of_plan(struct ap_ctx *ctx, const struct ap_json *doc,
	struct ap_saved *out);

/* Converts a strategy checkpoint, which need not outlive *out. */
void ap_saved_of_ckpt(struct ap_ctx *ctx, const struct ap_ckpt *c, struct ap_saved *out);

/* Reduces a plan to what a strategy checkpoint contains: operators by checkpoint key, their
 * strategies and parameters. */
void ap_saved_strategies(struct ap_ctx *ctx, const struct ap_saved *plan, struct ap_saved *out);

#endif
