/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What trials tell of one another. Points are kin if they have the same work on a device in a pass of a
 * layer: the same degrees inside a stage but for dp, samples in a micro-batch, recomputation, and ways
 * of dealing parameters that take as long in a pass. A pass is the sum of its layers, so what a
 * micro-batch takes through all stages in one trial, all of them take; spread over the stages, times
 * micro-batches and, where nothing fills the pipeline, with what it takes to fill and drain, it bounds their
 * steps from below. What its layers hold bounds their stages. Kin of which nothing is known is bounded
 * by those with smaller micro-batches, or that recompute or deal less.
 */
#ifndef AP_API_KIN_H
#define AP_API_KIN_H

#include "api/layer_problem.h"
#include "decision/space.h"
#include "plan/plan.h"

struct ap_decision_trial;

struct ap_kin_told { /* what a trial tells */
	bool any; /* something */
	double pass_s; /* of a micro-batch through all stages, forth and back */
	int64_t gathers; /* devices that weights or gradients are gathered from in a pass; else 1 */
	double kept_bytes; /* of a micro-batch, of all layers */
	double static_bytes; /* of all layers, as dealt in the trial */
	double layer_s; /* pass of the quickest layer */
	int64_t context_bytes;
	int64_t dealt; /* devices that it is dealt to, where it is */
	int level;
};

/* What the layers of a priced plan tell, of a point in one kind of recomputation. */
void ap_kin_tell_plan(struct ap_ctx *ctx, const struct ap_plan *p, const struct ap_decision_point *at,
	struct ap_kin_told *out);

/* The same of a point whose layers are not dealt yet. */
void ap_kin_tell_layers(const struct ap_layer_problem *q, const struct ap_decision_point *at,
	struct ap_kin_told *out);

struct ap_kins;

/* Deals trials to kins, in the run arena. O(trials). */
struct ap_kins *ap_kins_make(struct ap_ctx *ctx, const struct ap_decision_space *space, uint32_t n,
	const struct ap_decision_trial *trial);

uint32_t ap_kins_count(const struct ap_kins *all);
uint32_t ap_kins_of(const struct ap_kins *all, uint32_t trial); /* below that number */

/* Learns what trial i told. False: all of it was known. */
bool ap_kins_learn(struct ap_kins *all, uint32_t i, const struct ap_kin_told *told);

/* Was something learnt that tells of trial i, since it was forgotten what was? */
bool ap_kins_is_told(const struct ap_kins *all, uint32_t i);
void ap_kins_forget(struct ap_kins *all);

enum ap_kin_turn {
	AP_KIN_KNOWN, /* something is known of the trial's kin */
	AP_KIN_FIRST, /* nothing is, but the trial may be the first of it */
	AP_KIN_WAITS /* another one comes before it: the one that needs the least memory, or, as it tells
	                something of this one, kin of smaller micro-batches */
};
enum ap_kin_turn ap_kins_turn(const struct ap_kins *all, uint32_t i);

/* Notes whether trial i is open still: some wait for it. */
void ap_kins_note(struct ap_kins *all, uint32_t i, bool open);

/* No plan of the trial needs fewer bytes on the devices of some stage; *by: the trial that shows it. 0:
 * nothing is known. */
double ap_kins_least_bytes(const struct ap_kins *all, uint32_t i, const struct ap_decision_trial *trial,
	int32_t *by);

/* No plan of the trial takes fewer seconds; 0: nothing is known. Not valid where two passes may run as
 * one. */
double ap_kins_least_s(const struct ap_kins *all, uint32_t i, const struct ap_decision_trial *trial);

#endif
