/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator graphs: a small search on each, all of whose files must be accepted again and say the same.
 */
#include "fuzz.h"
#include "base/vec.h"
#include "rule/op.h"
#include "rule/rule.h"

/* Names of operators, and of attributes. */
static const char *word(size_t i)
{
	static const char *const words[] = {"float16", "bfloat16", "int8", "int32", "bool", "complex64", "batch_dim",
		"trainable", "layerwise_parallel", "parallel_optimizer", "comm_fusion", "in_strategy", "out_strategy",
		"stage", "recompute", "cross_batch", "fusion", "cell", "time_s", "forward", "backward", "share",
		"transpose_a", "transpose_b", "axis", "keep_dims", "begin", "end", "perm", "shape", "strides", "pad_mode",
		"kernel_size", "stride", "group", "attrs", "dtype", "inputs", "outputs", "constants", "parameters"};
	size_t n = AP_COUNT(words);

	return i < n ? words[i] : ap_op_at(i - n) ? ap_op_at(i - n)->name : NULL;
}

static const char machine[] = "--device-num 4 --chip ascend910b --no-hccl-rules";

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in.json", data, size);
	if (fuzz_run("check in.json --unknown-operators batch-parallel") != AP_OK)
		return 0;
	if (fuzz_run("search in.json %s --pipeline-stages 2 --micro-batches 2 --recompute selective -q "
			"--trace-out trace.json --plan-out staged.json", machine) == AP_OK)
		fuzz_must("check trace.json staged.json");
	(void)fuzz_run("search in.json %s --executor generic --enable-parallel-optimizer --optimizer lamb -q "
		"--search-mode recursive_programming", machine);
	if (fuzz_run("search in.json %s -o out.ckpt --plan-out plan.json --dot-out out.dot --problem-out problem.json "
			"--json", machine) != AP_OK)
		return 0;
	fuzz_must("check plan.json problem.json");
	if (fuzz_way(data, size, 4) == 0)
		fuzz_must("check plan.json --against in.json %s", machine);
	if (fuzz_run("check out.ckpt --strict") != AP_OK)
		return 0; /* nothing in it */
	fuzz_must("evaluate in.json %s --strategy out.ckpt -q", machine);
	return 0;
}

FUZZ_TARGET(graph, word, try_input)
