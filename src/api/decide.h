/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings decided together: of all points of a space (decision/space.h) the one whose hybrid has the
 * shortest simulated step within the memory, and a lower bound for all others. The same sources
 * are planned under many settings; a point's plan is that of `evaluate --hybrid`.
 */
#ifndef AP_API_DECIDE_H
#define AP_API_DECIDE_H

#include "api/request.h"
#include "decision/space.h"

struct ap_str;

enum ap_decision_verdict {
	AP_DECISION_OPEN, /* not looked at: the run was stopped */
	AP_DECISION_FITS,
	AP_DECISION_TOO_LARGE, /* for the memory */
	AP_DECISION_REFUSED, /* no such plan: something does not divide */
	AP_DECISION_BOUNDED /* cannot be faster than the best */
};
#define AP_DECISION_VERDICTS (AP_DECISION_BOUNDED + 1)

struct ap_decision_trial {
	struct ap_decision_point point;
	enum ap_decision_verdict verdict;
	double bound_s; /* no plan of the point has a shorter step; 0: not known */
	double step_s; /* simulated; 0: was not */
	int64_t memory_bytes; /* of the fullest stage; 0: not known */
	int32_t by; /* TOO_LARGE, REFUSED: the trial that shows it, itself or another; -1: none */
	const char *why; /* REFUSED */
};

struct ap_decision {
	struct ap_decision_space space;
	uint32_t n;
	const struct ap_decision_trial *trial; /* [n] in the order in which equals are preferred */
	uint32_t best; /* AP_NONE: nothing fits */
	double bound_s; /* no point has a shorter step */
	uint32_t evaluated; /* trials that were made */
	uint32_t count[AP_DECISION_VERDICTS];
	double headroom; /* per cent of a device's usable memory that stays free */
	int64_t usable_bytes; /* of a device, less that */
	bool complete; /* not stopped */
	int64_t sequence; /* tokens of a sample; 0: the graph has none */
};

/* Decisions for several numbers of devices. */
struct ap_decided {
	size_t n; /* at least 1 */
	const struct ap_settings *set; /* [n] the settings, with that number */
	const struct ap_decision *decision; /* [n] best AP_NONE: nothing fits */
	size_t taken;
};

/*
 * Decides what the settings leave open. AP_INFEASIBLE, reported, if no point fits; AP_STOPPED if it was
 * stopped with a best so far. The result is the same for any number of jobs. O(trials made).
 */
enum ap_status ap_decide(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_decision *out);

/*
 * The same for each number of devices that --device-num has. Taken is the shortest step; under
 * --max-step-time or --deadline the fewest devices that keep it, and AP_INFEASIBLE, reported, if none do.
 */
enum ap_status ap_decide_devices(struct ap_ctx *ctx, const struct ap_settings *set,
	const struct ap_sources *src, struct ap_decided *out);

/* The settings of a point: set, with all that the point decides. */
void ap_decision_settings(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_decision *j,
	const struct ap_decision_point *p, struct ap_settings *out);

/* "dp=16 tp=4 pp=8 v=2 mbs=1 m=96 interleaved, selective, level1": what was decided, of a point. */
const char *ap_decision_words(struct ap_ctx *ctx, const struct ap_decision *j,
	const struct ap_decision_point *p);

/*
 * Where the executor can be told the cut of each operator, and no hybrid was asked for, searches cuts
 * under the settings of the fastest hybrids, within the memory less headroom; a search ends at a fraction of
 * the usual work unless the settings say how much. True if a plan is faster than the best hybrid: *out are
 * its settings, those of *trial but for degrees, *step_s its step. False leaves them alone.
 */
bool ap_decide_cuts(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_sources *src,
	const struct ap_decision *d, struct ap_settings *out, double *step_s, uint32_t *trial);

/* What a plan tells of the decision that was taken, in the run arena. O(points * dimensions). */
struct ap_plan_joint *ap_decision_report(struct ap_ctx *ctx, const struct ap_decided *all);

#endif
