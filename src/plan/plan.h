/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan: everything that was decided and predicted, ready to be written. Made once from counts
 * per operator by ap_plan_make(); immutable. All strings and arrays in the run arena.
 */
#ifndef AP_PLAN_PLAN_H
#define AP_PLAN_PLAN_H

#include "route/route.h"
#include "cost/cost.h"

struct ap_plan_comm {
	struct ap_comm comm;
	double time_s; /* of one execution */
	const char *algorithm; /* "ring", "tree", "hierarchical" */
};

struct ap_plan_op { /* one per graph node, same index */
	struct ap_placement place;
	struct ap_op_cost cost;
	uint32_t ncomm;
	const struct ap_plan_comm *comm;
	const struct ap_layout *in, *out; /* [nin], [nout] */
	bool in_checkpoint; /* the strategy checkpoint pins it (it has a parameter) */
	bool fixed; /* given by the user, not searched */
	uint32_t joined; /* mask of parameters whose gradient is added to the owner's, in front of its
	                    exchange, and has none of its own (generic) */
};

struct ap_plan_move { /* one per edge whose layouts differ, or whose gradient is summed on its way back */
	ap_id tensor;
	ap_id from, to; /* nodes; from AP_NONE: a graph input */
	uint32_t operand; /* of to */
	struct ap_layout a, b;
	bool sent; /* to a stage with another number of devices, piece by piece (shard/pieces.h): without
	              steps */
	int nstep, nback; /* nstep 0: only the gradient moves, or it is sent */
	const struct ap_reshard_step *step;
	const struct ap_reshard_step *back; /* of the gradient (generic); mindspore: none, the
	                                       adjoints of step are taken */
	uint32_t shares; /* index of the redistribution, before this one, whose copy is read instead, and
	                    whose way back the gradient is added to: then there are no steps, and of the
	                    cost only a part in the objective; AP_NONE: none */
	struct ap_move_cost cost;
};

struct ap_plan_exchange { /* a collective of the gradient of a parameter */
	ap_id node; /* the parameter's owner; generic: any user */
	const struct ap_comm *comm;
};

struct ap_plan_param { /* one per parameter in use, in graph order */
	ap_id tensor, node; /* node: its owner, which is charged */
	uint32_t operand;
	struct ap_layout layout;
	struct ap_dev_matrix dev; /* standardised */
	int32_t map[AP_MAX_RANK];
	int64_t slice[AP_MAX_RANK]; /* before optimizer sharding */
	struct ap_opt_shard shard;
	struct ap_axes gradient; /* group of the owner's gradient exchange; empty: none */
	uint32_t nexchange;
	const struct ap_plan_exchange *exchange; /* the owner's, then each user's, in execution order */
	uint32_t nsum;
	const struct ap_plan_sum { /* uses whose gradient the owner's exchange has, ascending */
		ap_id node;
		uint32_t operand;
		double time_s; /* of an exchange of its own, in a step; as the objective has it */
	} *sum;
};

struct ap_memory { /* bytes on one rank, by kind */
	int64_t weights; /* parameters and constants, after optimizer sharding */
	int64_t gathered; /* gathered copies of dealt weights, held through the step */
	int64_t gradients, optimizer;
	int64_t activations; /* kept, of all micro-batches in flight, at the worst instant */
	int64_t recompute; /* largest set of activations recomputed at once */
	int64_t temporary, context, buffers;
	int64_t total;
};

struct ap_plan_stage { /* one per pipeline stage; ranks [first_rank, first_rank + devices) */
	int64_t first_rank, devices;
	uint32_t noperator;
	int64_t in_flight; /* most activations held at once, counted in passes of a segment over a
	                      micro-batch */
	struct ap_memory memory; /* additive: compared with the limit */
	int64_t peak_bytes; /* by simulated liveness; at most memory.total */
	double forward_s, backward_s; /* simulated, of one micro-batch, all segments */
	double idle_s; /* neither computing nor waiting for its own communication */
	uint32_t instant; /* the worst of step->pipe->instants: with most bytes of activations */
	const int64_t *held; /* [segments] micro-batches whose activations are held then */
	const int64_t *late; /* [segments] those that wait for their pass for weights; NULL: none */
};

struct ap_bucket { /* collectives of gradients or weights that run as one */
	enum ap_coll kind;
	int32_t stage;
	struct ap_axes axes;
	int64_t bytes;
	double time_s;
	uint32_t n;
	const ap_id *tensor; /* [n] parameters, in execution order */
	const struct ap_bucket_part { /* [n] their collectives */
		ap_id node;
		uint32_t comm; /* index in the node's collectives */
	} *part;
};

/* Simulated seconds of a device, means over the stages: step = compute + exposed communication +
 * bubble + optimizer. */
struct ap_prediction {
	double step_time_s;
	double compute_s; /* kernels, with recomputation */
	double communication_s; /* all collectives of the passes and of the gradient exchange */
	double exposed_communication_s; /* the part not overlapped by kernels */
	double bubble_s; /* stages waiting for one another and for sends */
	double optimizer_s; /* updates, and the gathering of weights */
	double samples_per_s; /* batch / step time; 0 without a batch */
	struct ap_memory memory; /* of the stage that needs most */
};

struct ap_baseline {
	const char *name; /* "data parallel" */
	bool applicable;
	const char *why_not; /* when not applicable */
	double step_time_s, objective_s;
	int64_t memory_bytes;
	bool fits;
};

enum ap_plan_status { AP_PLAN_OPTIMAL, AP_PLAN_FEASIBLE, AP_PLAN_GIVEN, AP_PLAN_STOPPED };

enum ap_event_kind {
	AP_EVENT_FORWARD,
	AP_EVENT_BACKWARD,
	AP_EVENT_COMM,
	AP_EVENT_MOVE,
	AP_EVENT_MOVE_BACK,
	AP_EVENT_OPTIMIZER,
	/* Only in the trace (plan/simulate.h): */
	AP_EVENT_AGAIN, /* a recomputed kernel of the forward pass */
	AP_EVENT_WEIGHT, /* gradients of weights, if they have a pass of their own */
	AP_EVENT_BUCKET, /* index: the bucket */
	AP_EVENT_SEND /* to another stage; index, sub: the sending and the receiving part */
};

/* The schedule: the last micro-batch and the optimizer step of each stage, by start per stream. A
 * bucket's time is divided among its collectives by bytes. Recomputation, passes for weights and
 * sends between stages are in the trace only. */
struct ap_event {
	enum ap_event_kind kind;
	uint32_t index; /* node; index of the redistribution for MOVE and MOVE_BACK */
	uint32_t sub; /* COMM: index in the node's collectives */
	double start_s, end_s; /* from the start of the stage's first pass over that micro-batch */
};

#define AP_DEFAULT_STEP_GAP 0.1 /* per cent: a step so near its bound is called proven */

enum ap_step_status { /* of the simulated step, among all plans of the space searched */
	AP_STEP_OPEN, /* no bound is known */
	AP_STEP_BOUNDED,
	AP_STEP_PROVEN /* the gap is within what was asked for */
};

struct ap_search_info {
	const char *mode; /* engine that found it; "given" for evaluate */
	enum ap_plan_status status;
	bool complete;
	double objective_s, lower_bound_s, gap; /* of the additive objective */
	double step_bound_s, step_gap; /* no plan has a shorter step; 0 if open */
	enum ap_step_status step_status;
	const char *ended; /* why the search went no further; NULL: unknown, or given */
	uint64_t work;
	const struct ap_certificate *certificate; /* NULL: not requested */
	const char *hybrid; /* of whose own graph the plan is: "dp=8,tp=4,sp=1"; NULL: of the request's */
};

/* An operator that a route cuts otherwise than the free optimum, and what that costs. */
struct ap_route_differ {
	ap_id node;
	const int32_t *free_count; /* of the free optimum, [factor] */
	double operator_s; /* difference in the objective: the operator's own share */
	double moves_s; /* and redistributions to it, and from it to operators that do not differ */
};

struct ap_plan_route { /* what the route made of a plan */
	const struct ap_route *route;
	double free_objective_s, free_step_time_s; /* of the free optimum */
	double loss_s; /* objective less the free one's: the sum over differ */
	uint32_t n;
	const struct ap_route_differ *differ; /* [n], in the graph's order */
};

/* What layers compute again as the step and words of cells ask, beside the graph's flags. A part is a
 * segment of a stage. */
struct ap_plan_recompute {
	const char *layers; /* their cells, "network.blocks.N" */
	int32_t nstage, nsegment;
	uint32_t nkind; /* different ones, in the order of the layers */
	const char *const *kind; /* [nkind] in the words of graph/again.h; "none" */
	const int64_t *count; /* [kind][segment * nstage + stage] layers */
};

/* How settings were decided together (api/decide.h); texts as people read them. */
struct ap_plan_joint {
	const char *decided, *given; /* "dp=16 tp=4 pp=8 .."; "batch=1536", "" */
	bool complete; /* nothing was left open */
	double step_s; /* of the best hybrid */
	double bound_s; /* no plan of any combination has a shorter step; 0: not known */
	double least_hybrid_s; /* no hybrid has, where other plans can be told; else 0: bound_s is that */
	double cuts_s; /* the shorter step of a plan that cuts operators one by one; 0: of a hybrid */
	/* Hybrids that the executor cannot be told; step_s 0: none was found that is faster than the plan */
	struct ap_plan_free {
		const char *executor; /* NULL: not looked at, or it can be told any */
		const char *decided;
		double step_s;
		double bound_s; /* no plan at all, told or not, has a shorter step; 0: not known */
	} free;
	struct ap_plan_unequal { /* stages of unequal numbers of devices, by what their layers take alone */
		bool asked;
		const char *why; /* nothing is known of them; else NULL */
		const char *said; /* the fastest, "devices=8,4 dp=4,2 tp=2,2 layers=5,3"; NULL: equal ones are
		                     as fast */
		double step_s; /* of it */
		double equal_s; /* of the fastest equal ones, likewise by their layers; 0: not known */
		double bound_s; /* none has a shorter step; 0: not known */
		const char *plan; /* the fastest that was priced whole, as decided; NULL: none */
		double plan_s; /* its step */
		bool taken; /* it is the plan */
		const char *not_taken; /* why it is not, though it is faster; NULL */
	} unequal;
	double headroom; /* per cent of a device's usable memory that stays free */
	bool headroom_given; /* else it is the memory_error, or what is usual where that is not known */
	int64_t usable_bytes; /* of a device, less that */
	uint32_t n, evaluated; /* combinations; those whose plans were made */
	uint32_t fit, too_large, refused, slower, open; /* of n; slower: by a bound */
	/* Mean errors of predictions, measured, in per cent; 0: nothing was measured. Of the plans that
	 * fit, near take at most so much longer than the fastest, which is one of them; maybe further
	 * ones, by their bounds, may. common: what all of near have, and not every combination; "". */
	double step_error, memory_error;
	double memory_within; /* what nine of ten errors of memory are within; 0 likewise */
	uint32_t near, maybe;
	const char *common;
	uint32_t nrejected;
	const char *const *rejected; /* by reason: how many, and what would be next */
	const char *ranks; /* which degree is inside a server; NULL: of a plan that is no hybrid */
	double mfu; /* model FLOPs of a step by what the devices could do in it, 0..1; 0: not known */
	const char *peak; /* type of the products that could be done */
	bool priced; /* a price is given: machines are compared by what a step costs, else by devices */
	const char *unit; /* of rates: "tokens", "samples" */
	uint32_t nmachine;
	const struct ap_plan_machine { /* that were decided among, or the one there is */
		int64_t devices;
		const char *chip; /* name; as given where nothing fits */
		const char *table; /* rank table; NULL: none */
		const char *decided; /* NULL: nothing fits */
		const char *why; /* nothing fits; else NULL */
		double step_s, rate; /* units a second of a device */
		int64_t memory_bytes;
		double days, cost; /* of the training; 0: no tokens, or no price, are given */
		bool taken;
		bool undominated; /* no other is as fast and as cheap; without a price: has as few devices */
	} *machine;
	uint32_t ntop;
	const struct ap_plan_decision { /* the fastest, the one taken first */
		const char *decided;
		double step_s;
		int64_t memory_bytes;
	} *top;
	const char *settings; /* file with the settings of a strategy checkpoint; NULL: there is none */
	const char *bundles; /* where the fastest lie as bundles; NULL: nowhere */
	uint32_t ninstead;
	const struct ap_plan_instead { /* if one of the settings were another */
		const char *name, *taken, *value; /* "pp", "8"; of the fastest that was made */
		double step_s, least_s; /* of it; no other value has a shorter step */
	} *instead;
};

struct ap_plan {
	const struct ap_graph *graph; /* staged if there are several stages */
	const struct ap_machine *machine;
	const struct ap_step *step;
	const struct ap_task *task;
	const struct ap_blocks *blocks; /* plan/blocks.h */
	const struct ap_plan_op *op; /* [graph->nnode] */
	uint32_t nmove;
	const struct ap_plan_move *move;
	uint32_t nparam;
	const struct ap_plan_param *param;
	uint32_t nbucket;
	const struct ap_bucket *bucket;
	uint32_t nevent;
	const struct ap_event *event;
	uint32_t nstage;
	const struct ap_plan_stage *stage; /* [nstage], at least one */
	const struct ap_timeline *timeline; /* of the passes, pipeline/schedule.h */
	const struct ap_plan_recompute *recompute; /* NULL: nothing is asked, or there are no layers */
	int64_t capacity_bytes; /* usable memory of a device */
	struct ap_search_info search;
	struct ap_prediction prediction;
	const struct ap_plan_route *route; /* NULL: made without a route */
	const struct ap_plan_joint *joint; /* NULL: its settings were given */
	uint32_t nrule; /* rules of the user about cuts */
	const struct ap_plan_rule {
		const char *text; /* "pin layer1*=[8,1],[1,8]" */
		double without_s; /* step of what is found without it; 0: not looked for */
	} *rule;
	const struct ap_plan_kept { /* what an old plan had to do with it */
		uint32_t of, changes; /* operators that the old plan has, too; those cut otherwise now */
		uint32_t least; /* no plan whose sum is within the tolerance changes fewer; 0: none need be,
		                   or nothing is known */
		uint32_t moved; /* operators that are in another part of the pipeline than in the old plan,
		                 * where that is as long a pipeline */
		double stages_step_s; /* the fastest plan found with the old plan's stages; INFINITY: none
		                       * fits; 0: the best found has them, or there are none */
		double within; /* the tolerance, of 1 */
		double best_step_s; /* the best step found, */
		uint32_t best_changes; /* and what its plan changes; AP_NONE: not known */
		double old_step_s; /* of the old plan, priced anew; INFINITY: it is no plan, or does not
				      fit */
		const char *file; /* of the old plan */
		/* Where settings are decided: what the old plan had decided, "dp=8 tp=4 ..", why that was
		 * left, NULL: it was not, and the best decision found. NULL: they are given. */
		const char *decision, *left, *best_decision;
	} *kept; /* NULL: none was to be kept */
	const char *hint; /* what other settings would gain, for people; NULL: not known */
	uint32_t nbaseline;
	const struct ap_baseline *baseline;
	uint32_t nsetting; /* effective settings, for the echo */
	const struct ap_setting {
		const char *name, *value; /* value as JSON text */
	} *setting;
};

#endif
