/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a space (decision/space.h) as settings, and settings as a space. */
#ifndef AP_API_POINTS_H
#define AP_API_POINTS_H

#include "api/request.h"
#include "decision/space.h"

/* What the settings leave open, of a graph that was loaded with ap_points_undecided(): of what the executor
 * can be told or, free, of what a language without limits can. AP_USAGE, reported, if --hybrid cannot be
 * read, or if the executor can be told none of the given levels of the optimizer. */
enum ap_status ap_points_space(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, const struct ap_inputs *in, bool free, struct ap_decision_space *s);

/* The settings without what is to be decided: of one stage, with which graph and machine are made. */
struct ap_settings ap_points_undecided(struct ap_ctx *ctx, const struct ap_settings *set);

/* The settings of a point: set, with all that the point decides. */
void ap_points_settings(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_decision_space *s, const struct ap_decision_point *p, struct ap_settings *out);

/* Is a setting one that points decide? */
bool ap_points_decide(enum ap_setting_id id);

/* Is a number of segments, which is not given, open beside a scheduler that has several values? */
bool ap_points_turn(const struct ap_settings *set);

/*
 * The settings with what is not given as a search has it, so that nothing but what is auto, or has
 * several values, is left to be decided, and ap_points_turn(). Hybrids stand for cuts that are
 * searched, or given. Keys that a --hybrid does not name are 1, but for what --hybrid auto leaves
 * open. AP_USAGE, reported, if --hybrid cannot be read.
 */
enum ap_status ap_points_narrow(struct ap_ctx *ctx, const struct ap_settings *set, struct ap_settings *out);

/* The settings of a search under what a point decides: set, whose several values are one then. */
void ap_points_answer(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision_space *s,
	const struct ap_decision_point *p, struct ap_settings *out);

/* What a point recomputes, as --recompute takes it; where that is still to be decided, its least kind. */
const char *ap_points_recompute(const struct ap_decision_space *s, const struct ap_decision_point *p);

/* Gives a setting the text that was decided, whatever it was before. */
void ap_points_give(struct ap_ctx *ctx, struct ap_settings *o, enum ap_setting_id id, const char *text);

/* "dp=16 tp=4 pp=8 v=2 mbs=1 micro-batches=96 interleaved recompute=none level1 shard=2": what is decided */
const char *ap_points_words(struct ap_ctx *ctx, const struct ap_decision_space *space,
	const struct ap_decision_point *p);

/* What a text of --hybrid says of layers, "layers=7,8,8,7", which it does: from its key to the next one. */
const char *ap_points_layers(struct ap_ctx *ctx, const char *hybrid);

/* Tokens of a sample: the longest dimension of indices beside the batch; 0: none. */
int64_t ap_points_sequence(const struct ap_graph *g);

#endif
