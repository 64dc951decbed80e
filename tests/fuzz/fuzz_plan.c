/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: checked, drawn, shown, compared with themselves, judged, held against their graph. */
#include "fuzz.h"

#include "base/vec.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"AllReduce", "ReduceScatter", "AllGather", "AllToAll", "Broadcast",
		"Send", "Receive", "forward", "backward", "gradient", "optimizer", "recompute", "optimal", "feasible",
		"infeasible", "stopped", "NeighborExchange", "pair", "x", "w1", "mindspore", "generic", "sum", "mean"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

/* The graph that the first sample is of. */
static const char graph[] =
	"{\"schema\": \"autopar-graph/1\", \"name\": \"one\",\n"
	"\"inputs\": [{\"name\": \"x\", \"shape\": [8, 4], \"dtype\": \"float32\", \"batch_dim\": 0}],\n"
	"\"parameters\": [{\"name\": \"w\", \"shape\": [4, 4], \"dtype\": \"float32\"}],\n"
	"\"operators\": [{\"name\": \"m\", \"type\": \"MatMul\", \"inputs\": [\"x\", \"w\"], \"outputs\": [{\"name\": \"y\"}]}],\n"
	"\"outputs\": [\"y\"], \"optimizer\": \"sgd\"}\n";

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in.json", data, size);
	switch (fuzz_way(data, size, 6)) {
	case 0:
		(void)fuzz_run("check in.json --fail-if step_time>1s,memory>50%%");
		break;
	case 1:
		(void)fuzz_run("diff in.json in.json --reshard --json");
		break;
	case 2:
		(void)fuzz_run("render in.json --dot-out out.dot");
		break;
	case 3:
		(void)fuzz_run("show in.json");
		break;
	case 4:
		(void)fuzz_run("render in.json --report out.html --against in.json");
		break;
	default:
		fuzz_file("one.json", graph, sizeof graph - 1);
		(void)fuzz_run("check in.json --against one.json --device-num 2 --chip ascend910b");
	}
	return 0;
}

FUZZ_TARGET(plan, word, try_input)
