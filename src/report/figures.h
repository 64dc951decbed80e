/* SPDX-License-Identifier: Apache-2.0 */
/* What a report shows, read from a plan file: its figures, and sums of them. Nothing is priced or simulated
 * anew. Names are raw. */
#ifndef AP_REPORT_FIGURES_H
#define AP_REPORT_FIGURES_H

#include "planfile/dimension.h"
#include "plan/terms.h"
#include "planfile/plan_read.h"

enum ap_figures_pass { AP_FIGURES_FORWARD, AP_FIGURES_BACKWARD, AP_FIGURES_WEIGHT };

struct ap_figures_slot { /* a pass over one micro-batch */
	enum ap_figures_pass pass;
	int64_t segment, micro_batch;
	double start_s, end_s;
};

struct ap_figures_stage {
	int64_t first_rank, ranks, operators, in_flight;
	int64_t layers; /* -1: not known */
	int64_t kind_bytes[AP_MEMORY_KINDS], total_bytes, peak_bytes;
	double forward_s, backward_s, idle_s; /* of a micro-batch; of the step */
	uint32_t nslot; /* 0 without a pipeline */
	const struct ap_figures_slot *slot; /* in running order */
};

/* What a device does on a stream, of a plan without a pipeline. */
struct ap_figures_run {
	enum ap_figures_work {
		AP_FIGURES_WORK_FORWARD,
		AP_FIGURES_WORK_BACKWARD,
		AP_FIGURES_WORK_OPTIMIZER,
		AP_FIGURES_WORK_COLLECTIVE, /* that computation waits for, redistributions too */
		AP_FIGURES_WORK_GRADIENTS /* exchanged, or weights gathered */
	} work;
	double start_s, end_s;
};

struct ap_figures_class { /* kernels by kind of work, all stages together */
	const char *name;
	uint32_t operators;
	double time_s; /* of a step */
};

struct ap_figures_collective { /* collectives alike */
	const char *phase; /* "forward", "redistribution", "gradients", .. */
	const char *kind, *level; /* "AllReduce"; "hccs", "": not known */
	int64_t ranks; /* of a group */
	int64_t count; /* a step, all stages */
	int64_t bytes; /* of all */
	double time_s; /* of all */
};

struct ap_figures_group { /* operators whose names differ only in numbers, and that lie alike */
	const char *label, *type, *cut; /* cut: JSON, a vector for each operand */
	const char *collectives; /* "AllReduce over 8" */
	uint32_t n;
	int64_t first_stage, last_stage;
	int64_t parts[AP_DIMENSION_COUNT];
	double kernel_s, communication_s, time_s; /* of a step; time_s is all of it */
};

struct ap_figures_move { /* redistributions alike */
	const char *label, *steps;
	uint32_t n;
	int64_t bytes;
	double time_s;
};

struct ap_figures {
	const struct ap_json *doc;
	const struct ap_saved *saved;
	struct ap_dimensions dimensions;
	const char *name, *chip, *mode, *status, *step_status, *scheduler;
	int64_t devices, servers, batch, parameters, capacity_bytes, micro_batches, segments;
	int64_t fullest_bytes;
	uint32_t fullest; /* stage */
	double step_s, bound_s, step_gap, compute_s, communication_s, exposed_s, bubble_s, optimizer_s;
	double rate; /* tokens or samples per second */
	uint32_t nstage;
	const struct ap_figures_stage *stage;
	uint32_t nrun;
	const struct ap_figures_run *run; /* by start; none with a pipeline */
	uint32_t nclass;
	const struct ap_figures_class *class; /* longest first, as are those below */
	uint32_t ncollective;
	const struct ap_figures_collective *collective;
	uint32_t ngroup;
	const struct ap_figures_group *group;
	uint32_t nmove;
	const struct ap_figures_move *move;
	double kernels_s, operators_s,
		collectives_s; /* sums: of classes; of groups and moves; of collectives */
	int64_t parts[AP_DIMENSION_COUNT]; /* as most of the time of products and attention is cut */
	bool ahead; /* decided by `plan`: "joint" */
};

/* Reads a plan whose form was checked (planfile/plan_form.h); doc and saved must outlive *out. O(document).
 */
void ap_figures_read(struct ap_ctx *ctx, const struct ap_json *doc, const struct ap_saved *saved,
	struct ap_figures *out);

/* Members of objects of the plan; what is not there is 0 or "". */
double ap_figures_number(const struct ap_jv *object, const char *key);
int64_t ap_figures_integer(const struct ap_figures *f, const struct ap_jv *object, const char *key);
const char *ap_figures_text(const struct ap_jv *object, const char *key);

/* A section of the plan; NULL if it has none. */
const struct ap_jv *ap_figures_section(const struct ap_figures *f, const char *key);

/* Adds the plan in words: "batch over 8 and hidden over 4, 8 stages, 64 micro-batches". */
void ap_figures_message(const struct ap_figures *f, struct ap_str *out);

#endif
