/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places operators in the parts of a pipeline: as the user gives it, per operator or per cell, or
 * by a cut of our own.
 *
 * An operator's own stage has precedence over those of its cells, an inner cell over the cells
 * around it, --stage-config over the graph file. An operator without a given stage goes with the
 * earliest of the operators that use its results; if these have none either, with the latest of
 * those whose results it uses. If only stages are given and a stage has several segments, an
 * operator is in the first segment that comes after everything it needs.
 *
 * If nothing is given, a hybrid's stages are cut between layers (graph/family.h): each part has equally
 * many, or as many as given for it. Operators outside the layers follow: the embedding is in the first
 * part, head and loss are in the last; these two parts may be given no layers at all. If the layers do
 * not divide evenly, stages before the last have one more, counted back from the last: 30 layers in 4
 * stages are 7, 8, 8, 7. Stages with unequal numbers of devices have layers in proportion to them.
 *
 * Where a strategy file says the stages of some operators, the cut is one along an order (pipeline/order.h)
 * in which they stand so; each part begins where the least is sent between the last operator that is said to
 * be before and the first that is said to be in it. If they stand so in no order, they are given stages.
 *
 * Otherwise, or if there are fewer layers than parts, the operators are cut, along an order of them, into
 * contiguous parts such that the highest cost of a part is as low as possible, then the time of the sends.
 * An operator's cost is its lower bound on a stage's devices. A tensor that crosses a border costs its send
 * and the send of its gradient back; each device sends its share of a tensor cut as far as its lengths
 * allow. The parts on both sides each count half of that, or all, or nothing; of these three cuts along each
 * of several orders (pipeline/order.h) the one with the shortest step under the schedule is taken, the first
 * of equals.
 */
#ifndef AP_PIPELINE_STAGES_H
#define AP_PIPELINE_STAGES_H

#include "graph/staged.h"
#include "hw/machine.h"
#include "pipeline/cut.h"
#include "pipeline/schedule.h"

struct ap_str;

struct ap_stages_request {
	const struct ap_graph *graph; /* as loaded */
	const struct ap_machine *machine; /* of the pipeline: with nstage stages */
	const struct ap_step *step; /* operators are priced in it; its pipe does not matter */
	const struct ap_scheduler *scheduler; /* one that does not refuse these numbers */
	int32_t nstage, nsegment; /* >= 1 */
	const struct ap_json *doc; /* that config is part of */
	const struct ap_jv *config; /* --stage-config, cell: stage; NULL: none */
	struct ap_layer_cut layers; /* what --hybrid asks for */
	const int32_t *known; /* [nnode] stages that a strategy file says, -1: none; NULL: there is no
	                       * such file. What the user gives has precedence. */
};

/* Can the graph run in nstage * nsegment parts on ndevice devices? AP_USAGE, or AP_MEANING if it
 * has too few operators; reported. To be called before the machine is split into stages. */
enum ap_status ap_stages_check(struct ap_ctx *ctx, const struct ap_graph *g, int64_t ndevice,
	int32_t nstage, int32_t nsegment);

/* Sets spot[node] of every node, in the run arena, and *how (may be NULL) to how they were found.
 * AP_USAGE, reported, if layers cannot be cut as asked, or stages are given as well. AP_MEANING,
 * reported, if the given stages are impossible: [stage-cell] no such cell, [stage-range] no such
 * stage or segment, [stage-order] a stage needs a result of a later one, [stage-empty] nothing runs
 * in one. With a single part, stages in the graph file are ignored. O(operators * parts) at most for each
 * order, and pricing all candidates for a cut of our own. */
enum ap_status ap_stages_make(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_spot **spot, struct ap_pipe_cut *how);

/* What operators take in some ways of cutting them, of which a stage may mix two. */
struct ap_stage_ways {
	uint32_t n; /* 1 to AP_CUT_WAYS; the first is the fastest */
	const struct ap_cut_way *way; /* [n] by operator of the graph as loaded; times of a step */
	int64_t limit_bytes; /* that a stage may take */
};

/*
 * The cut by cost that knows memory: contiguous parts in the graph's order such that the slowest is as fast
 * as it can be within its memory, by ways (pipeline/cut.h). Earlier stages have more micro-batches in flight,
 * and get less to do. A stage of several segments shares its memory among them by what even parts would
 * need. Of three cuts, as those by cost, the one with the shortest step is taken. rq must ask for a cut by
 * cost. False if none was found that fits.
 */
bool ap_stages_within(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_stage_ways *ways, const struct ap_spot **spot);

/* Seconds of a step in which each part mixes ways as the memory asks for; INFINITY if one does not fit. */
double ap_stages_step_s(struct ap_ctx *ctx, const struct ap_stages_request *rq,
	const struct ap_stage_ways *ways, const struct ap_spot *spot);

/* Writes the stages of a staged graph as a stage configuration (JSON): each cell that is all in one
 * stage, and inside no other such cell. Operators in no such cell are left out. */
void ap_stages_write_config(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out);

/* Operators [*n], in the run arena, that such a configuration misplaces: no cell in one stage has
 * them, and MindSpore, which then puts an operator with the latest that it reads from, puts them
 * into another stage than the graph does. */
void ap_stages_astray(struct ap_ctx *ctx, const struct ap_graph *staged, uint32_t *n, const ap_id **out);

/* Writes the segments in the same form: pipeline_segment of each cell. */
void ap_stages_write_segments(struct ap_ctx *ctx, const struct ap_graph *staged, struct ap_str *out);

#endif
