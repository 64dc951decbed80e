/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "runlog/runlog.h"

static struct ap_ctx ctx;

static void setup(void)
{
	ctx = ctx_create(false);
}

static void teardown(void)
{
	ctx_destroy(&ctx);
}

TEST_FIXTURE(setup, teardown)

static struct ap_runlog read_log(const char *text)
{
	struct ap_runlog log;

	ck_assert_msg(ap_runlog_read(&ctx, "train.log", text, strlen(text), &log) == AP_OK, "%s",
		messages(&ctx));
	return log;
}

static const char *said(const struct ap_runlog *log, const char *key)
{
	for (size_t i = 0; i < log->said.n; i++)
		if (!strcmp(log->said.v[i].key, key))
			return log->said.v[i].value;
	return "";
}

/* Each form: steps, what the last one says, and memory where there is any. */
static const struct {
	const char *format, *text;
	size_t steps;
	int64_t number;
	double time_s, samples_per_s, tokens_per_s;
	size_t memories;
	int64_t rank, bytes; /* of the first one */
	const char *key, *value; /* said */
} logs[] = {
	{"Megatron-LM",
		"  tensor_model_parallel_size ...................... 8\n"
		" [2026-09-01 10:00:07.123456] iteration       20/     500 | consumed samples:         5120 | "
		"elapsed time per iteration (ms): 6123.4 | learning rate: 1.000000E-05 | global batch size:   256 | "
		"lm loss: 9.123456E+00 |\n"
		"[Rank 32] (after 2 iterations) memory (MB) | allocated: 41234.56 | max allocated: 60123.50 | "
		"reserved: 63210.00 | max reserved: 63210.00\n",
		1, 20, 6.1234, 0, 0, 2, 32, INT64_C(60123) * 1048576 + 524288, "batch", "256"},
	{"Megatron-LM", " iteration        2/   10 | elapsed time per iteration (s): 105.07 | lm loss: 1 |\n",
		1, 2, 105.07, 0, 0, 0, 0, 0, "batch", ""},
	{"Megatron-Bridge",
		"  tensor_model_parallel_size: 4\n"
		"Step Time : 6.12s GPU utilization: 512.6MODEL_TFLOP/s/GPU\n"
		" [2026-09-01 10:00:07] iteration       20/     500 | consumed samples:         5120 | elapsed time "
		"per iteration (ms): 6123.4 | global batch size:   256 |\n"
		"Number of virtual stages per pipeline stage: 5\n",
		1, 20, 6.1234, 0, 0, 0, 0, 0, "tp", "4"},
	{"Megatron-Bridge", "Step Time : 6.12s GPU utilization: 512.6MODEL_TFLOP/s/GPU\n",
		1, -1, 6.12, 0, 0, 0, 0, 0, "vpp", ""},
	{"Megatron-Bridge",
		"  pipeline_model_parallel_size: 4\n  sequence_parallel: true\n"
		"  virtual_pipeline_model_parallel_size: 5\n"
		"Step Time : 6.12s GPU utilization: 512.6MODEL_TFLOP/s/GPU\n",
		1, -1, 6.12, 0, 0, 0, 0, 0, "pp", "4"},
	{"Megatron-Bridge",
		"  sequence_parallel: False\nStep Time : 6.12s GPU utilization: 512.6MODEL_TFLOP/s/GPU\n",
		1, -1, 6.12, 0, 0, 0, 0, 0, "sp", "0"},
	{"MindFormers",
		"2026-09-01 10:00:07,123 - mindformers - INFO - { Epoch:[  1/  2], step:[   20/  500], "
		"loss:[9.123456/9.123456], per_step_time: 6123ms, lr: 1e-05\n"
		"2026-09-01 10:00:07,124 - mindformers - INFO -    4.0% |##     | 0.32661 samples/s/p  0:48:57 }\n",
		1, 20, 6.123, 0, 0, 0, 0, 0, "dp", ""},
	{"MindSpore", "epoch: 3 step: 1251, loss is 3.64\nEpoch time: 520274.060, per step time: 415.887\n",
		1, -1, 0.415887, 0, 0, 0, 0, 0, "dp", ""},
	{"MindSpore", "epoch: [2/90] loss: 1.0, epoch time: 2.413 s, per step time: 1.5 s\n",
		1, 2, 1.5, 0, 0, 0, 0, 0, "dp", ""},
	{"torchtitan",
		"[rank3]:[titan] 2026-09-01 10:00:07,123 - root - INFO - \x1b[31mstep: 20  \x1b[32mloss:  9.12345  "
		"\x1b[34mmemory: 60.50GiB(76.00%)  \x1b[36mtps: 1,024  \x1b[0mtflops: 470.12  mfu: 47.53%\n"
		"[titan] INFO - Building device mesh with parallelism: pp=4, dp_replicate=2, dp_shard=4, cp=1, "
		"tp=8, ep=1\n",
		1, 20, 0, 0, 1024, 1, 3, INT64_C(121) << 29, "dp", "8"},
	{"DeepSpeed", "steps: 20 loss: 9.1235 iter time (s): 6.123 samples/sec: 41.810\n"
		"  train_micro_batch_size_per_gpu  2\n  train_batch_size ............. 256\n"
		"MA 41.2 GB         Max_MA 60.5 GB         CA 63.0 GB         Max_CA 63 GB\n",
		1, 20, 6.123, 0, 0, 2, -1, INT64_C(121) << 29, "batch", "256"},
	{"DeepSpeed", "epoch=0/micro_step=1280/global_step=20, RunningAvgSamplesPerSec=41.79, "
		"CurrSamplesPerSec=41.81, MemAllocated=41.2GB, MaxMemAllocated=60.5GB\n",
		1, 20, 0, 41.81, 0, 1, -1, INT64_C(121) << 29, "batch", ""},
	{"DeepSpeed", "[2024-07-10 14:14:51,806] [INFO] [config.py:1000:print]   zero_enabled ................. True\n"
		"[2024-07-10 14:14:51,806] [INFO] [config.py:1000:print]   zero_optimization_stage ...... 2\n"
		"steps: 20 loss: 9.1235 iter time (s): 6.123 samples/sec: 41.810\n",
		1, 20, 6.123, 0, 0, 0, 0, 0, "zero", "2"},
	{"DeepSpeed", "  zero_optimization_stage ...... 0\nsteps: 20 iter time (s): 6.123 samples/sec: 41.810\n",
		1, 20, 6.123, 0, 0, 0, 0, 0, "zero", "0"},
	{"NeMo", "[NeMo I 2024-11-14 19:42:15 megatron_init:422] Rank 0 has data parallel group : [0, 4, 8]\n"
		"[NeMo I 2024-11-14 19:42:15 megatron_init:439] Rank 0 has tensor model parallel group: [0, 1, 2, 3]\n"
		"[NeMo I 2024-11-14 19:42:15 megatron_init:443] All tensor model parallel group ranks: [[0, 1], [2]]\n"
		"Training epoch 0, iteration 19/499 | train_step_timing in s: 6.123\n",
		1, 19, 6.123, 0, 0, 0, 0, 0, "tp", "4"},
	{"NeMo", "[NeMo I 2024-11-14 19:42:15 megatron_init:422] Rank 0 has data parallel group : [0, 4, 8]\n"
		"[NeMo I 2024-11-14 19:42:15 megatron_init:464] Rank 0 has pipeline model parallel group: [0, 1\n"
		"Training epoch 0, iteration 19/499 | train_step_timing in s: 6.123\n",
		1, 19, 6.123, 0, 0, 0, 0, 0, "dp", "3"},
	{"NeMo", "Training epoch 0, iteration 19/499 | lr: 1e-05 | global_batch_size: 256 | global_step: 19 | "
		"train_step_timing in s: 6.123\nValidation: iteration 1/10\n",
		1, 19, 6.123, 0, 0, 0, 0, 0, "batch", "256"},
	{"nanotron", "[default0]:09/01/2026 10:00:07 [INFO|DP=0|PP=0|TP=0]: iteration: 20 / 100 | "
		"consumed_tokens: 10.5M | elapsed_time_per_iteration_ms: 1.05K | tokens_per_sec: 120K | "
		"global_batch_size: 512 |\n",
		1, 20, 1.05, 0, 0, 0, 0, 0, "batch", "512"},
	{"nanotron's table", "iteration_step,time_per_iteration_ms,tokens_per_sec\n1,2000,5\n2,1000.5,10\n",
		2, 2, 1.0005, 0, 0, 0, 0, 0, "batch", ""},
	{"table", "Step,Rank,step_time_ms,peak_memory_GiB\n1,0,2000,40\n1,8,1990,30.5\n",
		2, 1, 1.99, 0, 0, 2, 0, INT64_C(40) << 30, "batch", ""},
};

START_LOOP_TEST(forms, AP_COUNT(logs))
{
	const struct ap_runlog log = read_log(logs[_i].text);
	const struct ap_run_step *last = &log.steps.v[log.steps.n - 1];

	ck_assert_str_eq(log.format, logs[_i].format);
	ck_assert_uint_eq(log.steps.n, logs[_i].steps);
	ck_assert_int_eq(last->number, logs[_i].number);
	ck_assert_double_eq_tol(last->time_s, logs[_i].time_s, 1e-9);
	ck_assert_double_eq_tol(last->samples_per_s, logs[_i].samples_per_s, 1e-9);
	ck_assert_double_eq_tol(last->tokens_per_s, logs[_i].tokens_per_s, 1e-9);
	ck_assert_uint_eq(log.memory.n, logs[_i].memories);
	if (log.memory.n) {
		ck_assert_int_eq(log.memory.v[0].rank, logs[_i].rank);
		ck_assert_int_eq(log.memory.v[0].bytes, logs[_i].bytes);
	}
	ck_assert_str_eq(said(&log, logs[_i].key), logs[_i].value);
}
END_TEST

START_TEST(lines_of_several_ranks)
{
	struct ap_settled s;
	const struct ap_runlog log = read_log(
		"0:  iteration 1/9 | elapsed time per iteration (ms): 9000.0 |\n"
		"4:  iteration 1/9 | elapsed time per iteration (ms): 9100.0 |\n"
		"0:  iteration 2/9 | elapsed time per iteration (ms): 1000.0 |\n"
		"0:  iteration 3/9 | elapsed time per iteration (ms): 1010.0 |\n"
		"4:  iteration 2/9 | elapsed time per iteration (ms): 1020.0 |\n"
		"4:  iteration 3/9 | elapsed time per iteration (ms): 1005.0 |\n");

	ck_assert_uint_eq(log.steps.n, 6);
	ck_assert(ap_runlog_settle(&ctx, &log, 0, 0, &s));
	ck_assert_uint_eq(s.read, 3);
	ck_assert_uint_eq(s.left_out, 1);
	ck_assert_double_eq_tol(s.least_s, 1.01, 1e-12);
	ck_assert_double_eq_tol(s.most_s, 1.02, 1e-12);
	ck_assert_double_eq_tol(s.median_s, 1.015, 1e-12);
}
END_TEST

/* A log of so many milliseconds. */
static struct ap_runlog log_of(const int *ms, size_t n)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	ap_str_add(&s, "step_time_ms\n");
	for (size_t i = 0; i < n; i++)
		ap_str_addf(&s, "%d\n", ms[i]);
	return read_log(s.s);
}

START_TEST(settled)
{
	static const int slow[] = {9000, 1300, 1200, 1000, 1004, 5000, 1008, 1012, 1016, 1020};
	static const int even[] = {1000, 1000, 1000}, one[] = {1234};
	const struct ap_runlog first = log_of(slow, AP_COUNT(slow));
	const struct ap_runlog second = log_of(even, AP_COUNT(even)), third = log_of(one, 1);
	struct ap_settled s;

	ck_assert(ap_runlog_settle(&ctx, &first, 0, 0, &s));
	ck_assert_uint_eq(s.left_out, 3); /* above 1.1 * 1016 */
	ck_assert_uint_eq(s.n, 7);
	ck_assert_double_eq_tol(s.median_s, 1.012, 1e-12);
	ck_assert_double_eq_tol(s.quarter_s, 1.006, 1e-12);
	ck_assert_double_eq_tol(s.three_quarters_s, 1.018, 1e-12);
	ck_assert_double_eq_tol(s.most_s, 5, 1e-12);
	ck_assert(ap_runlog_settle(&ctx, &second, 0, 0, &s));
	ck_assert_uint_eq(s.left_out, 1);
	ck_assert_double_eq_tol(s.median_s, 1, 1e-12);
	ck_assert(ap_runlog_settle(&ctx, &third, 0, 0, &s));
	ck_assert_uint_eq(s.left_out, 0);
	ck_assert_double_eq_tol(s.median_s, 1.234, 1e-12);
}
END_TEST

START_TEST(times_of_rates)
{
	const struct ap_runlog samples = read_log("samples_per_s\n100\n50\n");
	const struct ap_runlog tokens = read_log("tokens_per_s_per_device\n1000\n1024\n");
	struct ap_settled s;

	ck_assert(!ap_runlog_settle(&ctx, &samples, 0, 0, &s));
	ck_assert(ap_runlog_settle(&ctx, &samples, 200, 0, &s));
	ck_assert_double_eq_tol(s.median_s, 4, 1e-12);
	ck_assert(ap_runlog_settle(&ctx, &tokens, 0, 4096, &s));
	ck_assert_double_eq_tol(s.median_s, 4, 1e-12);
}
END_TEST

/* An epoch counts its steps anew: they are no other ranks' lines. */
START_TEST(epochs)
{
	const struct ap_runlog log = read_log(
		"{ Epoch:[  1/  2], step:[    1/    2], per_step_time: 900ms, }\n"
		"{ Epoch:[  1/  2], step:[    2/    2], per_step_time: 100ms, }\n"
		"{ Epoch:[  2/  2], step:[    1/    2], per_step_time: 110ms, }\n"
		"{ Epoch:[  2/  2], step:[    2/    2], per_step_time: 105ms, }\n");
	struct ap_settled s;

	ck_assert(ap_runlog_settle(&ctx, &log, 0, 0, &s));
	ck_assert_uint_eq(s.read, 4);
	ck_assert_double_eq_tol(s.median_s, 0.105, 1e-12);
}
END_TEST

START_TEST(what_is_cut_or_strange)
{
	static const char utf16[] = "\xff\xfes\0t\0e\0p\0_\0t\0i\0m\0e\0_\0s\0\n\0" "2\0.\0" "5\0\n\0";
	struct ap_runlog log = read_log(
		" iteration 1/9 | elapsed time per iteration (ms): 10\xff\xfe 9000.0 |\n"
		" iteration 2/9 | elapsed time per iteration (ms): nan |\n"
		" iteration 3/9 | elapsed time per iteration (ms): -5 |\n"
		" iteration 4/9 | elapsed time per iteration (ms): 1e999 |\n"
		"[Rank 0] memory (MB) | max allocated: 9007199254740992 | max reserved: 1e300\n"
		" 10%|#\r 20%|##\r iteration 5/9 | elapsed time per iteration (ms): 2000.0 |\r\n"
		" iteration 99999999999999999999/9 | elapsed time per iteration (ms): 2001.0 |\n"
		" iteration 6/9 | elapsed time per iteration (ms): 20");

	ck_assert_uint_eq(log.steps.n, 3);
	ck_assert_uint_eq(log.memory.n, 0);
	ck_assert_double_eq_tol(log.steps.v[1].time_s, 2, 1e-12);
	ck_assert_int_eq(log.steps.v[1].line, 6);
	ck_assert_int_eq(log.steps.v[2].number, -1);
	ck_assert(ap_runlog_read(&ctx, "t.csv", utf16, sizeof utf16 - 1, &log) == AP_OK);
	ck_assert_uint_eq(log.steps.n, 1);
	ck_assert_double_eq_tol(log.steps.v[0].time_s, 2.5, 1e-12);
	log = read_log("step_time_s,rank\n2.5,0\n2.25,1\n2"); /* the last record is cut */
	ck_assert_uint_eq(log.steps.n, 2);
}
END_TEST

START_TEST(unknown_ones_are_told)
{
	static const char *const texts[] = {"", "\n", "nothing\n", "a,b\n1,2\n", "step_time_s\n", "step_time_s\n0\n",
		"elapsed time per iteration (ms): 5"};
	struct ap_runlog log;

	for (size_t i = 0; i < AP_COUNT(texts); i++)
		ck_assert_int_eq(ap_runlog_read(&ctx, "x.log", texts[i], strlen(texts[i]), &log), AP_MEANING);
	ck_contains(messages(&ctx), "x.log: has no line about an iteration in a form that is known; expected a "
		"log of Megatron-Bridge");
}
END_TEST
