/* SPDX-License-Identifier: Apache-2.0 */
/* Which dimensions of a network an operator is cut in, for people: a plan knows factors and sizes, not
 * that one of them is the sequence. What they mean is concluded from the operators' types, the places of
 * the factors, and sizes that only one dimension of the network has. */
#ifndef AP_PLANFILE_DIMENSION_H
#define AP_PLANFILE_DIMENSION_H

#include "plan/plan.h"
#include "planfile/plan_read.h"

enum ap_dimension {
	AP_DIMENSION_BATCH,
	AP_DIMENSION_SEQUENCE,
	AP_DIMENSION_HEADS,
	AP_DIMENSION_HIDDEN, /* features, channels */
	AP_DIMENSION_VOCABULARY,
	AP_DIMENSION_EXPERT,
	AP_DIMENSION_OTHER,
	AP_DIMENSION_COUNT
};

struct ap_dimension_look {
	const char *name; /* "sequence" */
	const char *fill; /* "#d9efe3", behind black text */
	const char *strong; /* the same hue, behind white text */
	const char *legend;
};

/* Hues that people who see no red or no green tell apart. */
extern const struct ap_dimension_look ap_dimension_look[AP_DIMENSION_COUNT];

/* What sizes mean in a network; 0: not known. */
struct ap_dimensions {
	int64_t batch, micro_batches; /* samples of a step, and into how many parts they are divided */
	int64_t sequence, vocabulary, experts;
	bool images;
};

/* Sets an operator's factors as a plan file has them, in arena. */
void ap_dimensions_factors(struct ap_arena *arena, const struct ap_placement *p, struct ap_saved_op *op);

/* Learns from an operator; call it for all of them before any is asked about. Reads type and factors. */
void ap_dimensions_learn(struct ap_dimensions *d, const struct ap_saved_op *op);

/* Sets into how many parts each dimension is cut, 1: it is not. Reads type, cell and factors. */
void ap_dimensions_parts(
	const struct ap_dimensions *d, const struct ap_saved_op *op, int64_t parts[AP_DIMENSION_COUNT]);

/* The dimensions of a plan file. */
void ap_dimensions_of_saved(const struct ap_saved *plan, struct ap_dimensions *out);

struct ap_str;

/* Adds "batch 8, sequence 4"; "not cut" if nothing is. */
void ap_dimensions_add(struct ap_str *out, const int64_t parts[AP_DIMENSION_COUNT]);

enum { AP_DIMENSION_VOTES = 16 };

/* How the network is cut for the most part: for each dimension the number of parts that most time of
 * products, convolutions and attention is cut in. Numbers after the first AP_DIMENSION_VOTES do not count.
 */
struct ap_dimension_votes {
	double all_s;
	int n[AP_DIMENSION_COUNT];
	struct {
		int64_t parts;
		double time_s;
	} v[AP_DIMENSION_COUNT][AP_DIMENSION_VOTES];
};
void ap_dimensions_vote(struct ap_dimension_votes *votes, const char *type,
	const int64_t parts[AP_DIMENSION_COUNT], double time_s);
void ap_dimensions_elect(const struct ap_dimension_votes *votes, int64_t parts[AP_DIMENSION_COUNT]);

/* Adds a plan in words: "batch over 8, hidden over 4, 8 pipeline stages, 64 micro-batches". */
void ap_dimensions_message(struct ap_str *out, const int64_t parts[AP_DIMENSION_COUNT], int64_t devices,
	int64_t stages, int64_t micro_batches);

/* The same of a plan that is not written. O(operators). */
void ap_dimensions_of_plan(struct ap_ctx *ctx, const struct ap_plan *p, struct ap_str *out);

#endif
