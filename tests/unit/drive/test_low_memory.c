/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of little memory, and what takes the room of those that are too large. */
#include <string.h>

#include "base/diag.h"
#include "drive/drive.h"
#include "drive/low_memory.h"
#include "fixture.h"
#include "graph/staged.h"
#include "harness.h"
#include "pipeline/schedule.h"
#include "plan/memory.h"
#include "plan/plan.h"

#define GIB (INT64_C(1) << 30)

static struct ap_request request_of(const struct fixture *f, int64_t capacity)
{
	return (struct ap_request){.graph = f->graph, .machine = f->machine, .step = &f->step,
		.search_mode = "auto", .prune = true, .capacity_bytes = capacity};
}

/* The least that any plan needs, by halving; what is found at each capacity fits it. */
static int64_t least_need(struct fixture *f)
{
	int64_t lo = 0, hi = GIB;

	while (hi - lo > 1) {
		int64_t mid = lo + (hi - lo) / 2;
		struct ap_request rq = request_of(f, mid);
		struct ap_plan p;

		if (ap_low_memory_plan(&f->ctx, &rq, NULL, &p)) {
			ck_assert_int_le(p.prediction.memory.total, mid);
			hi = mid;
		} else {
			ck_assert_ptr_nonnull(p.graph);
			ck_assert_int_gt(p.prediction.memory.total, mid);
			lo = mid;
		}
	}
	return hi;
}

/* Where it ends the exact search says that nothing fits, and says nothing itself; but a result that all its
 * readers have copies of, which a plan does not hold and the recursion counts, may be saved. */
static void is_least(struct fixture *f)
{
	const int64_t copy = 8 * 32 * 4 / 4; /* the widest result on one of four devices, bytes */
	int64_t least = least_need(f);
	struct ap_request rq = request_of(f, least);
	struct ap_plan p;

	ck_assert_uint_eq(ap_diag_count(f->ctx.diag, AP_ERROR), 0);
	ck_assert_int_eq(ap_drive_search(&f->ctx, &rq, &p, NULL), AP_OK);
	rq.capacity_bytes = least - 1 - copy;
	ck_assert_int_eq(ap_drive_search(&f->ctx, &rq, &p, NULL), AP_INFEASIBLE);
}

START_TEST(what_fits_is_found)
{
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, FIXTURE_PAIR);
	is_least(&f);
	fixture_close(&f);
}
END_TEST

/* The first of two stages holds the activations of two micro-batches, the second has the large weight:
 * what all stages need together says little of either. */
START_TEST(each_stage_counts)
{
	struct ap_spot spot[] = {{0, 0, 0}, {0, 0, 0}, {1, 0, 1}, {1, 0, 1}};
	struct fixture f;

	fixture_open(&f, 4, 4, "a100-80");
	fixture_graph(&f, FIXTURE_PAIR);
	ap_machine_staged(&f.ctx, f.machine, 2, &f.machine);
	ap_graph_staged(&f.ctx, f.graph, spot, &f.graph);
	ap_schedule_pipe(&f.ctx, ap_scheduler_find("1f1b"), 2, 1, 2, &f.pipe);
	f.step.pipe = &f.pipe;
	f.step.micro_batches = 2;
	is_least(&f);
	fixture_close(&f);
}
END_TEST

/* The widest part first, of kinds and of operators; only what there is. */
START_TEST(contributors_are_named)
{
	struct fixture f;
	struct ap_request rq;
	struct ap_plan p;
	const char *text, *states, *weights;

	fixture_open(&f, 1, 1, "a100-80");
	fixture_graph(&f, FIXTURE_PAIR);
	rq = request_of(&f, GIB);
	ck_assert(ap_low_memory_plan(&f.ctx, &rq, NULL, &p));
	ck_assert_int_eq(p.prediction.memory.weights, (8 + 8 * 32 + 32 * 8) * 4);
	text = ap_memory_contributors(&f.ctx, &p);
	ck_assert_ptr_nonnull(strstr(text, "; of operators \""));
	ck_assert_ptr_null(strstr(text, "gathered weights"));
	ck_assert_ptr_null(strstr(text, "recomputed"));
	rq.capacity_bytes = 1; /* not even what no plan can save */
	ck_assert(!ap_low_memory_plan(&f.ctx, &rq, NULL, &p));
	ck_assert_int_ge(p.prediction.memory.total, f.step.software->context_bytes);
	states = strstr(text, "context");
	weights = strstr(text, "weights ");
	ck_assert(states == text && (!weights || weights > text));
	fixture_close(&f);
}
END_TEST
