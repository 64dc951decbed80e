/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which operator runs in which part of a pipeline: as the user says, of operators or of cells, or by a
 * cut of our own.
 *
 * What is said of an operator goes before what is said of its cells, an inner cell before the ones
 * around it, --stage-config before the graph file. An operator of which nothing is said goes with
 * those that use its results, the earliest of them; where nothing is said of these either, with those
 * whose results it uses. Where only stages are said and a stage has several segments, an operator is in
 * the first segment that comes after what it needs.
 *
 * Where nothing is said at all, the operators are cut, in the graph's order, into contiguous parts, so
 * that the part with the highest cost costs as little as can be, then so that sending takes the least
 * time. An operator counts with what it costs at least on a stage's devices. What crosses a border
 * counts with the time of its sends, there and of the gradient back, each device sending its share of
 * a tensor that is cut as far as its lengths allow: for the parts on both sides half of it, or all
 * of it, or nothing; of these three cuts the one is taken whose step the schedule says is the shortest.
 */
#ifndef AP_PIPELINE_STAGES_H
#define AP_PIPELINE_STAGES_H

#include "graph/staged.h"
#include "hw/machine.h"
#include "pipeline/schedule.h"

struct ap_str;

struct ap_stages_request {
	const struct ap_graph *graph; /* as loaded */
	const struct ap_machine *machine; /* of the pipeline: with nstage stages */
	const struct ap_step *step; /* operators are priced in it; its pipe does not matter */
	const struct ap_scheduler *scheduler; /* that does not refuse it */
	int32_t nstage, nsegment; /* >= 1 */
	const struct ap_json *doc; /* where the stage configuration is from */
	const struct ap_jv *config; /* an object of cells and their stages; NULL: none */
};

/* Can a graph run in so many parts on so many devices? AP_USAGE, or AP_MEANING where the graph has too
 * few operators; told. To be asked before the machine is dealt to stages. */
enum ap_status ap_stages_check(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndevice,
	int32_t nstage, int32_t nsegment);

/* spot[node] of every node. AP_MEANING, told, where what is said cannot be: [stage-cell] no such cell,
 * [stage-range] no such stage or segment, [stage-order] a stage needs a result of a later one,
 * [stage-empty] nothing runs in one. With one part nothing that is said of stages in the graph file
 * matters. O(operators * parts), and the candidates' costs where we cut. */
enum ap_status ap_stages_make(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_spot **spot);

/* The stages of a staged graph as a stage configuration: of each cell whose operators are all in one
 * stage, and that is in no other such cell. JSON; operators of cells in several stages are in none
 * of it. */
void ap_stages_write_config(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out);

/* Operators [*n], in the run arena, that such a configuration cannot place: they are in no cell of one
 * stage, and MindSpore, which puts these with the latest of what they read, puts them into another stage
 * than the graph has them in. */
void ap_stages_astray(struct ap_ctx *ctx, const struct ap_graph *staged, uint32_t *n, const ap_id **out);

/* Its segments in the same form: what pipeline_segment of a cell is. */
void ap_stages_write_segments(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out);

#endif
