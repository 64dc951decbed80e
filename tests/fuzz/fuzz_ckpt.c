/* SPDX-License-Identifier: Apache-2.0 */
/* Strategy checkpoints, either form: checked, converted there and back, held against a graph, searched from. */
#include <string.h>

#include "base/vec.h"

#include "fuzz.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"current_stage", "parallel_strategy_item", "parallel_layout_item",
		"parallel_strategys", "stage", "parallel_strategy", "dim", "dev_matrix", "tensor_map", "item",
		"param_split_shape", "indices_offset", "field", "opt_weight_shard_step", "opt_weight_shard_size",
		"tensor_shape", "param_name", "node_name", "MatMul_w1", "MatMul_w2", "Add_b0", "w1", "w2", "b0",
		"moments.w1", "accu_grads.w1", "0-w1", "1-w1"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

/* What is well-formed survives both forms, and the way there and back. */
static void there_and_back(const char *in, const char *other, const char *back)
{
	if (fuzz_run("convert %s %s", in, other) != AP_OK)
		return;
	fuzz_must("check %s", other);
	fuzz_must("convert %s %s", other, back);
	fuzz_must("diff %s %s -q", other, back);
}

static int try_input(const uint8_t *data, size_t size)
{
	int json = size && memchr(" \t\r\n{[\xef", *data, 7) != NULL;
	const char *in = json ? "in.json" : "in.ckpt";

	fuzz_file(in, data, size);
	if (fuzz_run("check %s", in) != AP_OK)
		return 0;
	there_and_back(in, json ? "out.ckpt" : "out.json", json ? "back.json" : "back.ckpt");
	(void)fuzz_run("evaluate pair.json --device-num 4 --chip ascend910b --strategy %s -q", in);
	(void)fuzz_run("search pair.json --device-num 4 --chip ascend910b --strategy-ckpt-load-file %s -q", in);
	(void)fuzz_run("check %s --against pair.json --device-num 4 --chip ascend910b", in);
	return 0;
}

FUZZ_TARGET(ckpt, word, try_input)
