/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of each file, and what those of collectives share. */
#ifndef AP_TEST_EXEC_FAULTS_H
#define AP_TEST_EXEC_FAULTS_H

#include "fault.h"

/* Each ends with a row without a name. */
extern const struct ex_fault ex_faults_comm[], ex_faults_gradient[], ex_faults_rule[],
	ex_faults_place[], ex_faults_move[], ex_faults_program[];

/* ---- faults_parts.c ---- */

enum ex_of { EX_OF_RESULT, EX_OF_OPERAND };

/* The n-th collective of this phase and kind of operands or results; NULL where there are fewer. */
struct ap_comm *ex_nth_comm(struct ex_comms *c, enum ap_phase phase, enum ap_coll kind,
	enum ex_of of, int n);
/* The first of a phase, whatever its kind. */
struct ap_comm *ex_first_comm(struct ex_comms *c, enum ap_phase phase);

/* Each is false, and changes nothing, where `which` is NULL or cannot be changed so. */
bool ex_drop_comm(struct ex_comms *c, const struct ap_comm *which);
bool ex_double_comm(struct ex_comms *c, const struct ap_comm *which);
bool ex_change_comm(struct ap_comm *which, enum ap_coll kind);
bool ex_regroup_comm(struct ap_comm *which, const struct ap_axes *axes);
/* Over an axis of as many ranks beside the true one. */
bool ex_move_comm(struct ex_world *w, struct ap_comm *which);
/* Of the next operand. */
bool ex_misname_comm(const struct ex_oper *o, struct ap_comm *which);

/* ---- faults_gradient.c ---- */

/* Nothing is exchanged with neighbours. */
bool ex_fault_no_halo(struct ex_world *w, const struct ex_oper *o, struct ex_comms *c);

/* ---- fault_run.c, fault_move.c, fault_graph.c ---- */

/* A run and what it said: with the fault or without; did the fault find something to break? */
void ex_fault_note(struct ex_fault_tally *t, const char *why, bool with, bool faulted);
void ex_fault_move(struct ap_ctx *ctx, const struct ex_fault *f, uint64_t seed,
	struct ex_fault_tally *t);
/* NULL where no graph has this name. */
const struct ex_graph_sample *ex_graph_find(const char *name);
void ex_fault_graph(struct ap_ctx *ctx, const struct ex_fault *f,
	const struct ex_graph_sample *sample, uint64_t seed, struct ex_fault_tally *t);

#endif
