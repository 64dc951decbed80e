/* SPDX-License-Identifier: Apache-2.0 */
/* Measured collectives and kernels, as profilers and benchmarks print them: what is read makes a plan. */
#include "base/vec.h"
#include "fuzz.h"

static const char *word(size_t i)
{
	static const char *const words[] = {"./build/all_reduce_perf -g 4\n", "mpirun -n 4 ./all_gather_test -p 4\n",
		"./reduce_scatter_perf -g 2\n", "alltoall_perf", "#  Rank  0 Group  0 Pid 7 on   n1 device  0 [0x07] A\n",
		"  1048576  262144  float  sum  -1  50.0  20.9  31.4  0\n", "1048576 | 100 | 10.48 | success\n",
		"collective,ranks,bytes,time_us\n", "all_reduce,4,1048576,50\n", "servers", "busbw_GBps", "time_s",
		"Op Name,OP Type,Task Duration(us),Input Shapes,Output Shapes\n",
		"type,input_shapes,forward_us,backward_us,share\n", "MatMul,\"8,4;4,4\",5,10,1\n", "MatMulV2", "Add", "name",
		"Gradients/Default/a/gradMatMul-expand/MatMul-op7", "N/A", "\"", "\"\"\"", ";", ",", "0", "-1", "1e308", "nan",
		"99999999999999999999", "\xef\xbb\xbf"};

	return i < AP_COUNT(words) ? words[i] : NULL;
}

static int try_input(const uint8_t *data, size_t size)
{
	fuzz_file("in.csv", data, size);
	(void)fuzz_run("evaluate pair.json --device-num 4 --chip a100-80 --hybrid dp=2,tp=2 --link-curve in.csv -q");
	(void)fuzz_run("evaluate pair.json --device-num 4 --chip ascend910b --hybrid dp=2,tp=2 --kernel-times in.csv -q");
	return 0;
}

FUZZ_TARGET(measured, word, try_input)
