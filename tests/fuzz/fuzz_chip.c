/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles of chips and of software: what is accepted prices every graph. */
#include "fuzz.h"
#include "base/vec.h"
#include "hw/chip.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"cube", "vector", "memory", "collective", "matmul", "switch", "mesh",
		"bus", "nic", "server", "pod", "cluster", "machine", "within", "span", "links", "hccl", "910", "910b",
		"910_93", "devices_per_pod", "aliases", "sources", "autopar-chip/1", "autopar-software/1"};
	size_t n = AP_COUNT(words);

	return i < n ? words[i] : i - n < AP_DTYPE_COUNT ? ap_dtype_name((enum ap_dtype)(i - n)) : NULL;
}

/* "--chip", "--software", NULL where the profile is none. */
static const char *kind;

static void find_kind(struct ap_ctx *ctx, const char *text, size_t len)
{
	struct ap_software software;
	struct ap_chip chip;
	struct ap_json *doc;

	kind = NULL;
	if (ap_json_parse(ctx, "in.json", text, len, 0, &doc) != AP_OK)
		return;
	if (ap_chip_parse(ctx, doc, &chip) == AP_OK)
		kind = "--chip";
	else if (ap_software_parse(ctx, doc, &software) == AP_OK)
		kind = "--chip ascend910b --software";
}

/* What fits no memory and what is too much work are outcomes; no fault of the profile is left to be found. */
static int try_input(const uint8_t *data, size_t size)
{
	enum ap_status st;

	fuzz_file("in.json", data, size);
	fuzz_with(find_kind, data, size);
	fuzz_require((fuzz_run("check in.json") == AP_OK) >= !!kind, "check refuses a profile that is taken");
	if (!kind)
		return 0;
	st = fuzz_way(data, size, 2)
		? fuzz_run("search pair.json --no-hccl-rules --device-num 6 --devices-per-server 2 %s in.json -q "
			"--executor generic --enable-parallel-optimizer --plan-out plan.json", kind)
		: fuzz_run("evaluate pair.json --no-hccl-rules --device-num 8 --pipeline-stages 2 "
			"--micro-batches 4 --hybrid dp=2,tp=2 %s in.json -q --plan-out plan.json", kind);
	fuzz_require(st == AP_OK || st == AP_INFEASIBLE || st == AP_LIMIT, "the profile was accepted before");
	if (st == AP_OK)
		fuzz_must("check plan.json");
	return 0;
}

FUZZ_TARGET(chip, word, try_input)
