/* SPDX-License-Identifier: Apache-2.0 */
#include "runlog/format.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"

#define MOST_NUMBER 0x1p53

/* ---- what stands in a line ---- */

/* What follows a text in a line, without blanks; NULL: the text is not there. */
static const char *behind(const char *line, const char *text)
{
	const char *at = strstr(line, text);

	return at ? at + strlen(text) + strspn(at + strlen(text), " \t") : NULL;
}

/* A number that may have commas between thousands, and a letter for thousands, as "1.05K" or "1,024";
 * *end: behind it. False: there is none that counts, or it is not above 0. */
static bool read_number(const char *s, double *value, const char **end)
{
	static const struct { char letter; double times; } letters[] = {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}};
	char text[64];
	size_t n = 0, skipped = 0;
	char *rest;

	for (; n + 1 < sizeof text && s[n + skipped]; n++) {
		const char *c = s + n + skipped;

		if (*c == ',' && n && isdigit((unsigned char)c[1]) && isdigit((unsigned char)c[2]) &&
			isdigit((unsigned char)c[3]) && !isdigit((unsigned char)c[4])) {
			skipped++;
			c++;
		}
		if (!isdigit((unsigned char)*c) && !strchr("+-.eE", *c))
			break;
		text[n] = *c;
	}
	text[n] = '\0';
	*value = ap_strtod(text, &rest);
	if (rest == text || !(*value > 0) || *value > MOST_NUMBER)
		return false;
	s += (size_t)(rest - text) + skipped;
	for (size_t i = 0; i < AP_COUNT(letters); i++)
		if (*s == letters[i].letter && !isalpha((unsigned char)s[1])) {
			*value *= letters[i].times;
			s++;
			break;
		}
	*end = s;
	return true;
}

static double number_behind(const char *line, const char *text)
{
	const char *at = behind(line, text), *end;
	double value;

	return at && read_number(at, &value, &end) ? value : 0;
}

/* A whole number of at most 18 digits, or -1. */
static int64_t whole_at(const char *s)
{
	int64_t value = 0;
	size_t digits = strspn(s, "0123456789");

	if (!digits || digits > 18)
		return -1;
	for (size_t i = 0; i < digits; i++)
		value = value * 10 + (s[i] - '0');
	return value;
}

static int64_t whole_behind(const char *line, const char *text)
{
	const char *at = behind(line, text);

	return at ? whole_at(at) : -1;
}

/* Bytes of a figure with its unit behind it, "60.12GiB", "41.2 GB", both of powers of 1024; 0: none. */
static int64_t bytes_behind(const char *line, const char *text)
{
	const char *at = behind(line, text), *end;
	double value;
	char unit[8];
	size_t n = 0;
	int shift;

	if (!at || !read_number(at, &value, &end))
		return 0;
	end += strspn(end, " ");
	for (; n + 1 < sizeof unit && isalpha((unsigned char)end[n]); n++)
		unit[n] = end[n];
	unit[n] = '\0';
	shift = ap_unit_shift(unit);
	return shift < 0 || value > ldexp(1, 50 - shift) ? 0 : (int64_t)ldexp(value, shift);
}

/* ---- what lines add ---- */

static void add_step(struct ap_run_reading *r, struct ap_run_step step)
{
	step.line = r->line;
	step.rank = r->rank;
	if (step.time_s > 0 || step.samples_per_s > 0 || step.tokens_per_s > 0)
		AP_PUSH(r->arena, r->log.steps, step);
}

static void add_memory(struct ap_run_reading *r, int64_t rank, enum ap_run_bytes kind, int64_t bytes)
{
	if (bytes > 0)
		AP_PUSH(r->arena, r->log.memory, ((struct ap_run_memory){rank, -1, kind, bytes, r->line}));
}

static void say(struct ap_run_reading *r, const char *key, const char *value)
{
	struct ap_run_said said = {key, value, r->line};

	for (size_t i = 0; i < r->log.said.n; i++)
		if (!strcmp(r->log.said.v[i].key, key)) {
			r->log.said.v[i] = said;
			return;
		}
	AP_PUSH(r->arena, r->log.said, said);
}

static void say_number(struct ap_run_reading *r, const char *key, int64_t value)
{
	if (value > 0)
		say(r, key, ap_arena_printf(r->arena, "%" PRId64, value));
}

/* Words of configurations, each with the number behind it, as our keys. */
struct word {
	const char *text, *key;
};

/* What follows a text that is no part of a longer word, "pipeline_model_parallel_size:" none of
 * "virtual_pipeline_model_parallel_size:"; NULL: it is not there. */
static const char *behind_word(const char *line, const char *text)
{
	for (const char *at = line; (at = strstr(at, text)); at++)
		if (at == line || !(isalnum((unsigned char)at[-1]) || at[-1] == '_'))
			return behind(at, text);
	return NULL;
}

static void say_words(struct ap_run_reading *r, const char *line, const struct word *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *at = behind_word(line, words[i].text);

		say_number(r, words[i].key, at ? whole_at(at) : -1);
	}
}

/* Says 1 or 0 where true or false follows a word. */
static void say_flag(struct ap_run_reading *r, const char *line, const char *text, const char *key)
{
	const char *at = behind_word(line, text);

	if (at && (!strncasecmp(at, "true", 4) || !strncasecmp(at, "false", 5)))
		say(r, key, tolower((unsigned char)*at) == 't' ? "1" : "0");
}

/* ---- Megatron-LM, MindSpeed, Megatron-Bridge ---- */

/* " [2026-09-01 10:00:07.123456] iteration       20/     500 | consumed samples: .. | elapsed time per
 * iteration (ms): 6123.4 | ..". Older ones of Megatron-DeepSpeed have (s). */
static void read_megatron_iteration(struct ap_run_reading *r, const char *line)
{
	double ms = number_behind(line, "elapsed time per iteration (ms):");
	double s = number_behind(line, "elapsed time per iteration (s):");

	if (!strstr(line, "elapsed time per iteration"))
		return;
	add_step(r, (struct ap_run_step){.number = whole_behind(line, "iteration "),
		.time_s = ms > 0 ? ms * 1e-3 : s});
	say_number(r, "batch", whole_behind(line, "global batch size:"));
}

/* Bytes of a number of MB of 2^20; 0: more than any device has. */
static int64_t of_megabytes(double MB)
{
	return MB < 0x1p30 ? (int64_t)(MB * 0x1p20) : 0;
}

/* "[Rank 32] (after 2 iterations) memory (MB) | allocated: 41234.56 | max allocated: 60123.45 | .." */
static void read_megatron_memory(struct ap_run_reading *r, const char *line)
{
	const char *rank = strstr(line, "Rank ");
	const char *figures = behind(line, "memory (MB) |");
	int64_t after = whole_behind(line, "(after ");

	if (!figures || !rank)
		return;
	r->log.after = after > r->log.after ? after : r->log.after;
	add_memory(r, whole_at(rank + strlen("Rank ")), AP_RUN_ALLOCATED,
		of_megabytes(number_behind(figures, "max allocated:")));
	add_memory(r, whole_at(rank + strlen("Rank ")), AP_RUN_RESERVED,
		of_megabytes(number_behind(figures, "max reserved:")));
}

static void read_megatron(struct ap_run_reading *r, const char *line)
{
	read_megatron_iteration(r, line);
	read_megatron_memory(r, line);
}

/* The configuration is YAML, a key on a line. */
static const struct word bridge_words[] = {
	{"tensor_model_parallel_size:", "tp"},
	{"pipeline_model_parallel_size:", "pp"},
	{"context_parallel_size:", "cp"},
	{"expert_model_parallel_size:", "ep"},
	{"expert_tensor_parallel_size:", "etp"},
	{"Number of virtual stages per pipeline stage:", "vpp"},
	{"virtual_pipeline_model_parallel_size:", "vpp"},
	{"micro_batch_size:", "mbs"},
	{"global_batch_size:", "batch"},
};

/* "Step Time : 6.12s GPU utilization: 512.6MODEL_TFLOP/s/GPU" stands before the line of the iteration, which
 * has more digits. */
static void read_bridge(struct ap_run_reading *r, const char *line)
{
	const char *at = behind(line, "Step Time :"), *end;
	size_t n = r->log.steps.n;
	double s;

	if (at && read_number(at, &s, &end) && *end == 's') {
		r->marked = true;
		add_step(r, (struct ap_run_step){.number = -1, .time_s = s});
		return;
	}
	if (n && r->log.steps.v[n - 1].number < 0 && strstr(line, "elapsed time per iteration"))
		r->log.steps.n--;
	read_megatron(r, line);
	say_words(r, line, bridge_words, AP_COUNT(bridge_words));
	say_flag(r, line, "sequence_parallel:", "sp");
}

/* ---- MindFormers, MindSpore ---- */

/* "{ Epoch:[  1/  2], step:[   20/  500], loss:[..], per_step_time: 6123ms, lr: .." and a line behind it with
 * what a device gets done, "0.32661 samples/s/p". */
static void read_mindformers(struct ap_run_reading *r, const char *line)
{
	static const struct word words[] = {{"data_parallel:", "dp"}, {"model_parallel:", "tp"},
		{"pipeline_stage:", "pp"}, {"context_parallel:", "cp"}, {"expert_parallel:", "ep"},
		{"micro_batch_num:", "micro_batches"}, {"global_batch_size:", "batch"}};
	double ms = number_behind(line, "per_step_time:");
	const char *step = behind(line, "step:[");

	if (step && ms > 0) {
		r->marked = true;
		add_step(r, (struct ap_run_step){.number = whole_at(step), .time_s = ms * 1e-3});
	}
	say_words(r, line, words, AP_COUNT(words));
}

/* "epoch time: 228752.4 ms, per step time: 499.4 ms, avg loss: 2.301": the mean of an epoch; ms where no
 * unit is given. */
static void read_mindspore(struct ap_run_reading *r, const char *line)
{
	const char *at = behind(line, "per step time:"), *end;
	const char *epoch = behind(line, "epoch");
	double value;

	if (!at || !read_number(at, &value, &end))
		return;
	end += strspn(end, " ");
	add_step(r, (struct ap_run_step){.number = epoch ? whole_at(epoch + strspn(epoch, ":[ ")) : -1,
		.time_s = *end == 's' && !isalpha((unsigned char)end[1]) ? value : value * 1e-3});
}

/* ---- torchtitan ---- */

static void read_torchtitan(struct ap_run_reading *r, const char *line)
{
	static const struct word words[] = {{"pp=", "pp"}, {"cp=", "cp"}, {"tp=", "tp"}, {"ep=", "ep"}};
	const char *mesh = behind(line, "device mesh with parallelism:");
	double tps = number_behind(line, " tps:");
	int64_t dealt, copies;

	if (tps > 0 && strstr(line, "step:")) {
		r->marked = true;
		add_step(r, (struct ap_run_step){.number = whole_behind(line, "step:"), .tokens_per_s = tps});
		add_memory(r, r->rank, AP_RUN_RESERVED, bytes_behind(line, " memory:"));
	}
	say_number(r, "batch", whole_behind(line, "global batch size "));
	say_number(r, "sequence", whole_behind(line, "sequence length "));
	if (!mesh)
		return;
	say_words(r, mesh, words, AP_COUNT(words));
	dealt = whole_behind(mesh, "dp_shard=");
	copies = whole_behind(mesh, "dp_replicate=");
	if (dealt > 0 && copies > 0 && dealt < INT32_MAX && copies < INT32_MAX)
		say_number(r, "dp", dealt * copies);
}

/* ---- DeepSpeed ---- */

static void read_deepspeed(struct ap_run_reading *r, const char *line)
{
	static const struct word words[] = {{"train_batch_size ....", "batch"},
		{"\"train_batch_size\":", "batch"},
		{"train_micro_batch_size_per_gpu ....", "mbs"},
		{"\"train_micro_batch_size_per_gpu\":", "mbs"},
		{"gradient_accumulation_steps ....", "micro_batches"},
		{"\"gradient_accumulation_steps\":", "micro_batches"}};
	double s = number_behind(line, "iter time (s):"), rate = number_behind(line, "CurrSamplesPerSec=");
	const char *stage;

	if (s > 0 && strstr(line, "steps:"))
		add_step(r, (struct ap_run_step){.number = whole_behind(line, "steps:"), .time_s = s});
	else if (rate > 0)
		add_step(r, (struct ap_run_step){.number = whole_behind(line, "global_step="),
			.samples_per_s = rate});
	add_memory(r, r->rank, AP_RUN_ALLOCATED, bytes_behind(line, "MaxMemAllocated="));
	add_memory(r, r->rank, AP_RUN_ALLOCATED, bytes_behind(line, "Max_MA "));
	add_memory(r, r->rank, AP_RUN_RESERVED, bytes_behind(line, "Max_CA "));
	for (size_t i = 0; i < AP_COUNT(words); i++) {
		const char *at = strstr(line, words[i].text);

		if (at) { /* as many dots as fill a column */
			at += strlen(words[i].text);
			say_number(r, words[i].key, whole_at(at + strspn(at, ". ")));
		}
	}
	stage = behind(line, "zero_optimization_stage ..");
	if (stage && strchr("0123", stage[strspn(stage, ". ")]) && stage[strspn(stage, ". ")])
		say(r, "zero", ap_arena_strndup(r->arena, stage + strspn(stage, ". "), 1));
}

/* ---- NeMo ---- */

/* "Rank 0 has tensor model parallel group: [0, 1]", which it prints as it starts; older ones a blank more. */
static void read_nemo_groups(struct ap_run_reading *r, const char *line)
{
	static const struct word groups[] = {{"Rank 0 has data parallel group", "dp"},
		{"Rank 0 has tensor model parallel group", "tp"},
		{"Rank 0 has pipeline model parallel group", "pp"},
		{"Rank 0 has context parallel group", "cp"},
		{"Rank 0 has expert model parallel group", "ep"}};

	for (size_t i = 0; i < AP_COUNT(groups); i++) {
		const char *at = behind(line, groups[i].text);
		int64_t ranks = 1;

		at = at && *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
		if (!at || *at != '[' || !strchr(at, ']'))
			continue;
		for (; *at != ']'; at++)
			ranks += *at == ',';
		say_number(r, groups[i].key, ranks);
	}
}

/* "Training epoch 0, iteration 19/499 | .. | global_batch_size: 256 | .. | train_step_timing in s: 6.123" */
static void read_nemo(struct ap_run_reading *r, const char *line)
{
	double s = number_behind(line, "train_step_timing in s:");

	read_nemo_groups(r, line);
	if (!(s > 0))
		s = number_behind(line, "train_step_timing in s=");
	if (!(s > 0))
		return;
	add_step(r, (struct ap_run_step){.number = whole_behind(line, "iteration "), .time_s = s});
	say_number(r, "batch", whole_behind(line, "global_batch_size:"));
}

/* ---- nanotron ---- */

/* "iteration: 20 / 100 | consumed_tokens: 10.5M | elapsed_time_per_iteration_ms: 1.05K | .." */
static void read_nanotron(struct ap_run_reading *r, const char *line)
{
	double ms = number_behind(line, "elapsed_time_per_iteration_ms:");

	if (!(ms > 0))
		ms = number_behind(line, "time_per_iteration_ms:");
	if (ms > 0)
		add_step(r, (struct ap_run_step){.number = whole_behind(line, "iteration:"),
			.time_s = ms * 1e-3});
	if (ms > 0)
		say_number(r, "batch", (int64_t)number_behind(line, "global_batch_size:"));
	add_memory(r, r->rank, AP_RUN_ALLOCATED, bytes_behind(line, "Peak allocated"));
	add_memory(r, r->rank, AP_RUN_RESERVED, bytes_behind(line, "Peak reserved:"));
}

/* ---- tables ---- */

enum target { NUMBER, TIME, SAMPLES, TOKENS, RANK, STAGE, MEMORY, BATCH, SEQUENCE };

/* Columns, by their names without case; what is in a unit is multiplied. */
static const struct column {
	const char *name;
	enum target target;
	double times;
	enum ap_run_bytes kind;
} columns[] = {
	{"step", NUMBER, 1, 0}, {"iteration", NUMBER, 1, 0}, {"iteration_step", NUMBER, 1, 0},
	{"step_time_s", TIME, 1, 0}, {"time_s", TIME, 1, 0}, {"iter_time_s", TIME, 1, 0},
	{"iteration_time_s", TIME, 1, 0}, {"step_time_ms", TIME, 1e-3, 0}, {"time_ms", TIME, 1e-3, 0},
	{"iter_time_ms", TIME, 1e-3, 0}, {"iteration_time_ms", TIME, 1e-3, 0},
	{"time_per_iteration_ms", TIME, 1e-3, 0}, {"elapsed_time_per_iteration_ms", TIME, 1e-3, 0},
	{"samples_per_s", SAMPLES, 1, 0}, {"samples_per_sec", SAMPLES, 1, 0},
	{"tokens_per_s_per_device", TOKENS, 1, 0}, {"tokens_per_sec_per_gpu", TOKENS, 1, 0},
	{"tokens_per_s_per_dev", TOKENS, 1, 0},
	{"rank", RANK, 1, 0}, {"stage", STAGE, 1, 0},
	{"peak_memory_bytes", MEMORY, 1, AP_RUN_USED}, {"memory_bytes", MEMORY, 1, AP_RUN_USED},
	{"peak_memory_mib", MEMORY, 0x1p20, AP_RUN_USED}, {"peak_memory_gib", MEMORY, 0x1p30, AP_RUN_USED},
	{"memory_gib", MEMORY, 0x1p30, AP_RUN_USED},
	{"max_allocated_bytes", MEMORY, 1, AP_RUN_ALLOCATED},
	{"max_allocated_mib", MEMORY, 0x1p20, AP_RUN_ALLOCATED},
	{"max_allocated_gib", MEMORY, 0x1p30, AP_RUN_ALLOCATED},
	{"memory_allocated", MEMORY, 1, AP_RUN_ALLOCATED},
	{"max_reserved_bytes", MEMORY, 1, AP_RUN_RESERVED},
	{"max_reserved_mib", MEMORY, 0x1p20, AP_RUN_RESERVED},
	{"max_reserved_gib", MEMORY, 0x1p30, AP_RUN_RESERVED},
	{"global_batch_size", BATCH, 1, 0}, {"sequence_length", SEQUENCE, 1, 0},
};

static bool same_name(const char *a, const char *b)
{
	for (; *a && tolower((unsigned char)*a) == *b; a++, b++)
		;
	return !*a && !*b;
}

static const struct column *column_of(const char *name)
{
	const char *base = strrchr(name, '/'); /* nanotron's may have a group before them */

	for (size_t i = 0; i < AP_COUNT(columns); i++)
		if (same_name(base ? base + 1 : name, columns[i].name))
			return &columns[i];
	return NULL;
}

static void read_record(struct ap_run_reading *r, const struct column *const *of,
	const struct ap_csv_record *row)
{
	struct ap_run_step step = {.number = -1};
	int64_t rank = -1, stage = -1;

	for (size_t i = 0; i < row->n; i++) {
		const char *end;
		double value;

		if (!of[i])
			continue;
		if (of[i]->target == NUMBER || of[i]->target == RANK || of[i]->target == STAGE)
			*(of[i]->target == NUMBER ? &step.number : of[i]->target == RANK ? &rank : &stage) =
				whole_at(row->field[i]);
		else if (read_number(row->field[i], &value, &end) && value * of[i]->times < MOST_NUMBER)
			switch (of[i]->target) {
			case TIME:
				step.time_s = value * of[i]->times;
				break;
			case SAMPLES:
				step.samples_per_s = value;
				break;
			case TOKENS:
				step.tokens_per_s = value;
				break;
			case MEMORY:
				add_memory(r, -1, of[i]->kind, (int64_t)(value * of[i]->times));
				break;
			default:
				say_number(r, of[i]->target == BATCH ? "batch" : "sequence", (int64_t)value);
			}
	}
	for (size_t i = r->log.memory.n; i > 0 && r->log.memory.v[i - 1].line == r->line; i--) {
		r->log.memory.v[i - 1].rank = rank;
		r->log.memory.v[i - 1].stage = stage;
	}
	add_step(r, step);
}

enum ap_status ap_run_table_read(struct ap_ctx *ctx, struct ap_csv *csv, const struct ap_csv_record *header,
	struct ap_runlog *log)
{
	struct ap_run_reading r = {.arena = ctx->arena, .log = *log, .rank = -1};
	const struct column **of = AP_NEW_N(ctx->arena, const struct column *, header->n);
	struct ap_csv_record row;
	bool any;

	for (size_t i = 0; i < header->n; i++)
		of[i] = column_of(header->field[i]);
	for (;;) {
		AP_TRY(ap_csv_next(ctx, csv, &row, &any));
		if (!any)
			break;
		r.line = row.line;
		/* The last record of a run that was ended may be cut, which makes other numbers. */
		if (row.n == header->n && (csv->at < csv->end || csv->end[-1] == '\n'))
			read_record(&r, of, &row);
	}
	r.log.lines = csv->line;
	*log = r.log;
	return AP_OK;
}

/* ---- the forms ---- */

static const char *const nanotron_columns[] = {"time_per_iteration_ms", "elapsed_time_per_iteration_ms",
	"iteration_step", NULL};
static const char *const table_columns[] = {"step_time_s", "step_time_ms", "time_s", "time_ms", "iter_time_s",
	"iter_time_ms", "iteration_time_s", "iteration_time_ms", "samples_per_s", "samples_per_sec",
	"tokens_per_s_per_device", "tokens_per_s_per_dev", "tokens_per_sec_per_gpu", NULL};

static const struct ap_run_format formats[] = {
	{"Megatron-Bridge", "\"Step Time : 6.12s GPU utilization\"", read_bridge, NULL, true},
	{"Megatron-LM", "\"elapsed time per iteration (ms): 6123.4\", as MindSpeed-LLM", read_megatron, NULL,
		false},
	{"MindFormers", "\"step:[  20/ 500], .., per_step_time: 6123ms\"", read_mindformers, NULL, true},
	{"MindSpore", "\"epoch time: 6123.4 ms, per step time: 61.2 ms\"", read_mindspore, NULL, false},
	{"torchtitan", "\"step: 20  loss: ..  memory: 60.12GiB(76.00%)  tps: 1,024\"", read_torchtitan, NULL,
		true},
	{"DeepSpeed", "\"steps: 20 .. iter time (s): 6.123\", or \"CurrSamplesPerSec=41.81\"",
		read_deepspeed, NULL, false},
	{"NeMo", "\"train_step_timing in s: 6.123\"", read_nemo, NULL, false},
	{"nanotron", "\"elapsed_time_per_iteration_ms: 6.12K\"", read_nanotron, NULL, false},
	{"nanotron's table", "log_metrics.csv, with a column time_per_iteration_ms", NULL, nanotron_columns,
		false},
	{"table", "CSV with a column step_time_s, step_time_ms, samples_per_s or tokens_per_s_per_device",
		NULL, table_columns, false},
};

const struct ap_run_format *ap_run_format_at(size_t i)
{
	return i < AP_COUNT(formats) ? &formats[i] : NULL;
}
