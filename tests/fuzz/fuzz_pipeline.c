/* SPDX-License-Identifier: Apache-2.0 */
/* Pipeline problems: the exact engine's plans are checked, and held against every plan there is. */
#include "base/json.h"
#include "base/vec.h"
#include "fuzz.h"
#include "partition/partition.h"

enum { MOST_WORK = 50000, MOST_PLANS = 300, MOST_LAYERS = 64 };

static const char *word(size_t i)
{
	static const char *const words[] = {"schema", "objective", "stages", "segments", "micro_batches", "scheduler",
		"capacity_bytes", "fixed_bytes", "degrees", "kinds", "classes", "layers", "rules", "rows", "count", "at",
		"counts", "least_layers", "degree_by_stage", "uniform", "list", "equal", "interleaved", "gpipe",
		"zero_bubble_v", "weight_s", "late_bytes", "largest_stage", "beside_s", "left_s", "exchange_s", "slowed_s", "shared",
		"send_back_s", "least_at_ends", "devices", "receive_s"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static void solve_both(struct ap_ctx *ctx, const char *text, size_t len)
{
	struct ap_partition_budget little = {.work = MOST_WORK}, plans = {.work = MOST_PLANS};
	struct ap_partition_choice a, b;
	const struct ap_partition *p;
	struct ap_json *doc;

	if (ap_json_parse(ctx, "in.json", text, len, 0, &doc) != AP_OK || ap_partition_load(ctx, doc, &p) != AP_OK ||
		ap_partition_layers(p) > MOST_LAYERS || p->nmicro > MOST_LAYERS || p->nstage > MOST_LAYERS)
		return;
	ap_partition_solve(ctx, p, &little, &a);
	ap_partition_brute(ctx, p, &plans, &b);
	fuzz_require(!b.plan || a.lower_bound <= b.cost * (1 + 1e-9), "a bound above a plan");
	fuzz_require(a.outcome != AP_OUT_INFEASIBLE || !b.plan, "no plan, but there is one");
	fuzz_require(b.outcome != AP_OUT_INFEASIBLE || !a.plan, "a plan, but there is none");
}

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in.json", data, size);
	if (fuzz_run("check in.json") == AP_OK)
		fuzz_with(solve_both, data, size);
	return 0;
}

FUZZ_TARGET(pipeline, word, try_input)
