/* SPDX-License-Identifier: Apache-2.0 */
/* What training runs print, of any framework: held against a plan, and a profile fitted to it. */
#include "base/vec.h"
#include "fuzz.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"iteration ", "elapsed time per iteration (ms): 9.5 |",
		"elapsed time per iteration (s): 1e-3 |", "[Rank 3] (after 2 iterations) memory (MB) | max allocated: 9 |",
		"max reserved: 1e12", "Step Time : 0.01s GPU", "step:[ 3/ 9], per_step_time: 12ms", "per step time: 1.5 ms",
		"per step time: 0.01 s", "[rank1]:", "[default2]:", "3: ", "step: 4  memory: 0.1GiB(1%)  tps: 1,024",
		"device mesh with parallelism: pp=1, dp_replicate=2, dp_shard=2, cp=1, tp=2, ep=1",
		"steps: 3 iter time (s): 0.01", "global_step=3, CurrSamplesPerSec=41.81", "MaxMemAllocated=0.1GB",
		"Max_MA 0.1 GB", "train_step_timing in s: 0.01", "elapsed_time_per_iteration_ms: 1.05K |",
		"step_time_s", "step_time_ms", "samples_per_s", "tokens_per_s_per_device", "rank", "stage",
		"peak_memory_gib", "global_batch_size", "global batch size:", "tensor_model_parallel_size: 2",
		"------------------------ arguments ------------------------\n", "--tensor-model-parallel-size 2",
		"  tensor_model_parallel_size ...................... 8\n", "  world_size ...................... 4\n",
		"\x1b[31m", "\x1b[", "\r", "\xff\xfe", "\xef\xbb\xbf", ",", "\"", "99999999999999999999", "1e308", "-1",
		"nan", "0"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static int try_input(const uint8_t *data, size_t size)
{
	static int planned;

	if (!planned++)
		fuzz_must("evaluate pair.json --device-num 4 --chip ascend910b --hybrid dp=2,tp=2 --plan-out of.json -q");
	fuzz_file("in.log", data, size);
	(void)fuzz_run("compare of.json in.log --json");
	if (fuzz_way(data, size, 8) == 0 && fuzz_run("compare of.json in.log --profile own.json") == AP_OK)
		fuzz_must("check own.json");
	return 0;
}

FUZZ_TARGET(log, word, try_input)
