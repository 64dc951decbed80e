/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain pipeline problem: a sequence of layers is cut into the parts of a pipeline, and each layer says
 * how it runs, so that the simulated step is as short as possible and every stage fits its memory at every
 * instant. It knows neither operators nor machines.
 *
 * Layers that do not count (`at`) stay at the ends; the others, the body, are numbered from 0. A plan uses
 * one degree (a way to cut layers over the devices of a stage) for all stages, or one for each. Degrees may
 * be of different numbers of devices, of which the stages have so many together.
 */
#ifndef AP_PARTITION_PARTITION_H
#define AP_PARTITION_PARTITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json.h"
#include "base/json_write.h"
#include "problem/problem.h"

struct ap_scheduler; /* pipeline/schedule.h */

struct ap_partition_row { /* one layer of a class, in one degree and one kind */
	bool absent; /* the class does not run like this */
	double forward_s, backward_s, weight_s; /* of one micro-batch; backward with what it computes again;
	                                           weight: 0 unless the scheduler splits */
	double beside_s; /* beside the backward (weight) pass, but for the last one of its part: it takes as
	                    long as its layers' passes, or as these, whichever is more */
	double exchange_s; /* of its gradients, in a stream of the stage: behind those of the parts before it,
	                      in the order of the parts' last backward (weight) passes, from the start of its
	                      part's on */
	double slowed_s; /* by which the last backward (weight) pass of its part takes longer, as gradients
	                    are exchanged beside it */
	double update_s; /* after the last pass of its stage, and its exchanges */
	int64_t kept_bytes; /* of each micro-batch in flight */
	int64_t late_bytes; /* more, of each that has run back and waits for its pass for weights */
	int64_t weights_bytes; /* whatever is in flight */
	int64_t temporary_bytes; /* while a pass runs; the largest of a stage counts, once */
};

struct ap_partition_class {
	const char *name;
	const struct ap_partition_row *row; /* [degree * nkind + kind] */
};

struct ap_partition_run { /* equal layers in a row */
	uint32_t cls;
	int64_t count; /* at least 1 */
	enum ap_partition_at {
		AP_AT_BODY,
		AP_AT_FIRST, /* in the first part, and no layer by any rule of counts or kinds */
		AP_AT_LAST
	} at;
};

struct ap_partition_degree {
	const char *name;
	double send_s, send_back_s; /* of results, and of gradients, by a part of this degree */
	double receive_s, receive_back_s; /* and to it: what is sent takes as long as the slower end */
	double left_s; /* added to beside_s of each part but the first one, if it has a layer of the body */
	int64_t devices; /* of a stage of this degree, at least 1 where stages share devices */
};

struct ap_partition_shared { /* what the first and the last part both use, in stages of their own */
	double send_s; /* to the last part, once a step: its first pass, and all other sends on this link,
	                  come after it; 0: nothing */
	double send_back_s; /* its gradient, after the last part's last pass and all other sends on this link:
	                       the update of the first part's stage comes after it; 0: nothing */
};

struct ap_partition_border { /* between two parts, behind so many layers of the body */
	double send_s, send_back_s;
};

enum ap_partition_counts {
	AP_COUNTS_FREE,
	AP_COUNTS_EQUAL, /* of all parts */
	AP_COUNTS_GIVEN
};

enum ap_partition_kinds {
	AP_KINDS_FREE, /* each layer its own */
	AP_KINDS_LIST, /* of a part, the first layers take the last kind, the next ones the last but one, ...;
	                  how many is said by part. Layers whose class lacks a kind take its first */
	AP_KINDS_UNIFORM /* as a list, with the same numbers for all parts, of all kinds but the first, which
	                    takes what is left */
};

enum ap_partition_objective {
	AP_OBJECTIVE_STEP, /* the simulated schedule, from the first pass to the last stage's update */
	AP_OBJECTIVE_STAGE /* the passes over one micro-batch of the largest stage */
};

struct ap_partition {
	int32_t nstage, nsegment;
	int64_t nmicro;
	const struct ap_scheduler *scheduler; /* takes these numbers */
	const struct ap_pipe *pipe; /* what ap_schedule_pipe() makes of these; NULL: it is made */
	enum ap_partition_objective objective;
	uint32_t ndegree, nkind, nclass, nrun; /* all but nrun at least 1 */
	const struct ap_partition_degree *degree;
	bool degree_by_stage;
	int64_t devices; /* that all stages have together, at most; 0: each has what its degree asks for */
	struct ap_partition_shared shared;
	const struct ap_partition_border *border; /* [body + 1] what sends take at least, whatever the degrees
	                                             say; NULL: no more than these say */
	const char *const *kind;
	const struct ap_partition_class *cls;
	const struct ap_partition_run *run; /* those at the first part, the body's, those at the last one */
	const int64_t *capacity_bytes; /* [nstage] AP_NO_LIMIT: none */
	const int64_t *fixed_bytes; /* [nstage] */
	enum ap_partition_counts counts;
	const int64_t *count; /* [parts in data order] if given */
	int64_t least_layers; /* of the body, in every part but the first and the last one */
	int64_t least_at_ends; /* in these two; of a single part as well */
	enum ap_partition_kinds kinds;
};

/* Limits of a problem: all sizes together stay workable. */
#define AP_PARTITION_LAYERS 65536
#define AP_PARTITION_PARTS 4096
#define AP_PARTITION_SLOTS (1 << 23) /* passes of all stages */
#define AP_PARTITION_CELLS (1 << 22) /* parts times layers */
#define AP_PARTITION_DEVICES (1 << 20)
#define AP_PARTITION_SHARING (1 << 10) /* layers, where stages share devices */

/* What the numbers of a problem break, of the limits above and in overflow: text for a message; NULL if
 * they are sound. For problems that are made, not read. O(layers). */
const char *ap_partition_fault(const struct ap_partition *p);

/* Are there devices enough for all stages to be of this degree? */
bool ap_partition_has_room(const struct ap_partition *p, uint32_t degree);

/* Seconds that results take from a part of degree `from` to the next one, of degree `to`, and gradients
 * from a part of degree `from` to the one before it, over a border behind so many layers of the body. */
double ap_partition_send_s(const struct ap_partition *p, uint32_t from, uint32_t to, int64_t layers);
double ap_partition_send_back_s(const struct ap_partition *p, uint32_t from, uint32_t to, int64_t layers);

int64_t ap_partition_layers(const struct ap_partition *p); /* of all runs */
int64_t ap_partition_body(const struct ap_partition *p); /* that count */

/* Layers of the body that part q has at least; that the parts before it have together: of q = parts, all.
 * O(1). */
int64_t ap_partition_least(const struct ap_partition *p, int32_t q);
int64_t ap_partition_least_before(const struct ap_partition *p, int32_t q);

struct ap_partition_plan {
	const int64_t *first; /* [parts + 1] in data order: part q has layers first[q] .. first[q + 1] - 1 of
	                         the body */
	const uint32_t *degree; /* [nstage] */
	const uint32_t *kind; /* [layers of all runs] */
	const int64_t *number; /* [nkind] if uniform: layers of each part that take a kind, from the last one
	                          on; of the first: 0 */
};

struct ap_partition_stage { /* of a plan */
	double busy_s; /* passes over one micro-batch */
	double end_s; /* with its update */
	int64_t memory_bytes; /* at its fullest instant */
};

struct ap_partition_worth {
	const char *fault; /* the rule that the plan breaks; NULL: it keeps all */
	int32_t at; /* the part, or the stage if it does not fit, where it does */
	double step_s, largest_s;
	const struct ap_partition_stage *stage; /* [nstage] */
};

/* What a plan takes and needs, from the problem alone: by ap_schedule_run(), at every instant of the
 * schedule. Times are valid unless the plan breaks a rule of shape. O(slots), arena. */
void ap_partition_judge(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_partition_plan *plan, struct ap_partition_worth *out);

/* The same with the problem's schedule, made by ap_schedule_pipe() once for many plans. */
struct ap_pipe;
void ap_partition_judge_in(struct ap_ctx *ctx, const struct ap_partition *p, const struct ap_pipe *pipe,
	const struct ap_partition_plan *plan, struct ap_partition_worth *out);

struct ap_partition_budget {
	uint64_t work; /* limit in inner steps, the same on every machine; 0: AP_PARTITION_WORK */
	double gap; /* stop once cost <= lower_bound * (1 + gap) is proven; 0: an optimum */
	double below; /* only a plan that takes less is of interest: a bound that reaches it ends the search;
	                 0: any plan is */
};

#define AP_PARTITION_WORK (UINT64_C(1) << 32) /* some ten seconds */

struct ap_partition_choice {
	enum ap_outcome outcome; /* LIMIT also if no plan takes less than `below` */
	enum ap_ended ended;
	const char *engine;
	const struct ap_partition_plan *plan; /* NULL unless OPTIMAL or FEASIBLE */
	struct ap_partition_worth worth; /* of plan */
	double cost; /* of plan, by the objective; INFINITY without one */
	double lower_bound; /* of every plan */
	int64_t short_bytes; /* if infeasible by memory: how much some stage lacks at least; else 0 */
	uint64_t work;
};

/* The exact engine. All in the run arena; single-threaded. */
void ap_partition_solve(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_partition_budget *budget, struct ap_partition_choice *out);

/* Every plan, by the simulator: an oracle. LIMIT if there are more than budget->work. */
void ap_partition_brute(struct ap_ctx *ctx, const struct ap_partition *p,
	const struct ap_partition_budget *budget, struct ap_partition_choice *out);

/* Visits every plan that the oracle would look at, if it keeps all rules and costs less than `below`; *plan
 * ends with the visit. The order is the same for the same problem. False: there are more than `most` plans to
 * look at, and some may have been left out. O(most * slots). */
typedef void ap_partition_visit_fn(void *user, const struct ap_partition_plan *plan, double cost);
bool ap_partition_each(struct ap_ctx *ctx, const struct ap_partition *p, double below, uint64_t most,
	ap_partition_visit_fn *visit, void *user);

/* A bound of the objective from below, far cheaper than a search; INFINITY: no plan exists, for certain.
 * Milliseconds, some hundred replays of the schedule: O(slots) each. */
double ap_partition_bound(struct ap_ctx *ctx, const struct ap_partition *p);

/* The same, but it stops as soon as it is at least `enough` seconds: to ask whether some plan may take
 * less. With `times` the work, which is at least 1, it may be nearer. Adds to *work, in inner steps. */
double ap_partition_bound_to(struct ap_ctx *ctx, const struct ap_partition *p, double enough, uint32_t times,
	uint64_t *work);

/* The same for a problem of which some plan keeps the limits of memory: a bound of `plenty` seconds or more,
 * which is at least `enough`, may be less than it could be. *hurried: it may be. */
double ap_partition_bound_soon(struct ap_ctx *ctx, const struct ap_partition *p, double enough, double plenty,
	bool *hurried);

/* What some stage lacks at least, whatever the plan: 0 if each alone could hold what it has to. */
int64_t ap_partition_lack(struct ap_ctx *ctx, const struct ap_partition *p);

/* Engines by name, a row each; NULL past the end or if unknown. */
struct ap_partition_engine {
	const char *name; /* as given to --search-mode */
	void (*solve)(struct ap_ctx *ctx, const struct ap_partition *p,
		const struct ap_partition_budget *budget, struct ap_partition_choice *out);
};
const struct ap_partition_engine *ap_partition_engine(const char *name);

/* Reads autopar-pipeline/1 (man 5 autopar-pipeline). */
enum ap_status ap_partition_load(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_partition **out);

/* Writes autopar-pipeline/1, and autopar-pipeline-solution/1 for a choice. */
void ap_partition_write_json(const struct ap_partition *p, ap_write_fn *write, void *user);
void ap_partition_choice_write_json(const struct ap_partition *p, const struct ap_partition_choice *c,
	ap_write_fn *write, void *user);

#endif
