/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph on a random machine in a random step: what the properties of plans are tried on. */
#ifndef TRIAL_H
#define TRIAL_H

#include "drive/drive.h"
#include "fixture.h"
#include "graph/staged.h"
#include "pipeline/schedule.h"
#include "random_graph.h"
#include "plan/plan.h"
#include "shard/space.h"

#define NO_MEMORY_LIMIT (INT64_C(1) << 60)

struct trial {
	struct fixture f;
	uint64_t seed; /* of this case; AP_SEED with AP_CASES=1 repeats it */
	uint64_t random; /* state of the generator, for what the property draws itself */
	struct random_graph text;
	const char *machine; /* in words */
	int64_t taken_bytes; /* memory that no plan can save: context and buffers */
	const struct ap_topo *topo; /* of a staged machine */
	struct ap_space *space; /* [nnode] */
	bool telling; /* set by the property where the case could have broken it */
};

/* What the executor imposes on the graph; in half of the trials counts may ask for dealt sums. */
void trial_impose(struct trial *t);

/* At most `most` operators and `devices` devices. */
void trial_open(struct trial *t, uint64_t seed, uint32_t most, int64_t devices);
void trial_close(struct trial *t);

/* The generic executor's step of another random graph: layers that choose experts, whose tokens are moved. */
void trial_experts(struct trial *t);

/* Cuts the graph at random places into a pipeline of so many stages, each of the machine's devices; the
 * spaces are those of the staged graph. In some, forward and backward passes run as one. False: fewer operators
 * than stages. */
bool trial_staged(struct trial *t, uint32_t nstage, uint32_t nsegment);

/* Who runs the step from now on, with spaces of his. */
void trial_executor(struct trial *t, enum ap_executor executor);

/* Aborts the test with a message, the case and its graph. */
void trial_fail(const struct trial *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

#define REQUIRE(t, condition, ...) \
	do { \
		if (!(condition)) \
			trial_fail((t), #condition ": " __VA_ARGS__); \
	} while (0)

enum { PRUNED = 1, FOLDED = 2 }; /* short cuts of a search */

/* Searches; AP_OK or AP_INFEASIBLE, anything else fails the test. */
enum ap_status trial_search(struct trial *t, int64_t capacity_bytes, const char *mode, int short_cuts,
	struct ap_plan *out);

/* Random legal counts that users of a parameter agree on; NULL where no agreement was found. */
const int32_t *const *trial_counts(struct trial *t);

/* Plan of counts, with its objective and memory. */
void trial_plan(struct trial *t, const int32_t *const *counts, struct ap_plan *out);

/* A capacity at which between 0 and all of what a plan needs is there. */
int64_t trial_capacity(struct trial *t, const struct ap_plan *p);

/* Runs property on AP_CASES cases, or on so many. Of many, one in ten must be telling. */
void trial_each(uint64_t cases, uint32_t most, int64_t devices, void (*property)(struct trial *t));

#endif
