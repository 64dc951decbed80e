/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the installed library. Usage: library_threads DEVICES RANK_TABLE FOLDER GRAPH...
 * Plans all graphs at once, a thread and a context each, and leaves FOLDER/I.plan.json, I.ckpt, I.dot and I.txt of
 * graph I. What can go wrong is told, and what was made before stays as it is. */
#include <autopar/autopar.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct job {
	pthread_t thread;
	const char *devices, *table, *folder, *graph;
	int number, jobs, failed;
};

static pthread_barrier_t all; /* jobs */

static void check(struct job *job, int holds, const char *what)
{
	if (!holds)
		fprintf(stderr, "%s: %s\n", job->graph, what);
	job->failed |= !holds;
}

#define CHECK(holds) check(job, holds, #holds)

static void save(struct job *job, struct autopar_plan *p, const char *output, const char *suffix, const char *end)
{
	char path[512];
	const char *data;
	size_t bytes;
	FILE *f;

	snprintf(path, sizeof path, "%s/%d%s", job->folder, job->number, end);
	CHECK(autopar_plan_memory(p, output, suffix, &data, &bytes) == AUTOPAR_OK);
	f = fopen(path, "wb");
	CHECK(f && fwrite(data, 1, bytes, f) == bytes && !fclose(f));
}

/* The strategy that was found, evaluated from memory, on a machine of a rank table, is the same plan. */
static void evaluate(struct job *job, struct autopar_plan *p)
{
	static const char config[] = "{\"chip\": \"ascend910b\", \"plan_out\": \"no matter here\"}";
	struct autopar *a = autopar_create();
	struct autopar_plan *again = NULL;
	const char *data;
	size_t bytes;

	CHECK(autopar_plan_memory(p, "strategy_ckpt_save_file", ".json", &data, &bytes) == AUTOPAR_OK && *data == '{');
	CHECK(autopar_strategy_memory(a, "found.json", data, bytes) == AUTOPAR_OK);
	CHECK(autopar_graph_file(a, job->graph) == AUTOPAR_OK);
	CHECK(autopar_rank_table_file(a, job->table) == AUTOPAR_OK);
	CHECK(autopar_config(a, config, sizeof config - 1) == AUTOPAR_OK);
	CHECK(autopar_evaluate(a, &again) == AUTOPAR_OK && !strcmp(autopar_plan_status(again), "given"));
	CHECK(again && autopar_plan_step_time_s(again) <= autopar_plan_step_time_s(p));
	CHECK(again && autopar_plan_memory_bytes(again) == autopar_plan_memory_bytes(p));
	autopar_plan_destroy(again);
	autopar_destroy(a);
}

static int stop_at_once(void *user, const char *phase)
{
	(void)user;
	return !strcmp(phase, "planning");
}

static int ends_with(const char *text, const char *end)
{
	return text && strlen(text) >= strlen(end) && !strcmp(text + strlen(text) - strlen(end), end);
}

static void expect_faults(struct job *job, struct autopar *a)
{
	static const char broken[] = "{\n  \"schema\": \"autopar-graph/1\",,\n}";
	struct autopar_plan *p;
	int64_t devices, bytes;

	CHECK(autopar_set(a, "device_numb", "8") == AUTOPAR_USAGE && autopar_messages(a) == 1);
	CHECK(!strcmp(autopar_message(a, 0, "level"), "error") && !autopar_message(a, 1, "text"));
	CHECK(autopar_set(a, "micro_batches", "none") == AUTOPAR_USAGE);
	CHECK(autopar_set(a, "plan_out", "x") == AUTOPAR_USAGE && autopar_set(a, "time_limit", "1") == AUTOPAR_USAGE);
	CHECK(autopar_min_devices(a, &devices, &bytes) == AUTOPAR_USAGE);
	autopar_progress(a, stop_at_once, NULL);
	CHECK(autopar_search(a, &p) == AUTOPAR_STOPPED && !strcmp(autopar_plan_status(p), "stopped"));
	autopar_plan_destroy(p);
	autopar_progress(a, NULL, NULL);
	autopar_stop(a);
	CHECK(autopar_search(a, &p) == AUTOPAR_STOPPED);
	autopar_plan_destroy(p);
	CHECK(autopar_set(a, "memory", "1MB") == AUTOPAR_OK && autopar_search(a, &p) == AUTOPAR_INFEASIBLE && !p);
	CHECK(autopar_set(a, "memory", "60GB") == AUTOPAR_OK && autopar_set(a, "planner_memory", "120KB") == AUTOPAR_OK);
	CHECK(autopar_search(a, &p) == AUTOPAR_LIMIT && !p);
	CHECK(ends_with(autopar_message(a, autopar_messages(a) - 1, "text"), "see planner_memory"));
	CHECK(autopar_graph_memory(a, "broken.json", broken, sizeof broken - 1) == AUTOPAR_OK);
	CHECK(autopar_set(a, "planner_memory", "1GB") == AUTOPAR_OK && autopar_search(a, &p) == AUTOPAR_SYNTAX);
	CHECK(ends_with(autopar_message(a, 0, "file"), "broken.json") && autopar_message_line(a, 0) == 2);
	CHECK(autopar_config(a, "{\"batch\": 0}", 12) == AUTOPAR_MEANING);
	CHECK(!strcmp(autopar_message(a, 0, "pointer"), "/batch") && autopar_message_column(a, 0) == 11);
}

static void save_all(struct job *job, struct autopar_plan *p)
{
	save(job, p, "plan_out", "", ".plan.json");
	save(job, p, "strategy_ckpt_save_file", "", ".ckpt");
	save(job, p, "dot_out", "", ".dot");
	save(job, p, "summary", "", ".txt");
}

/* With AddressSanitizer one after the other, the rest waiting: see autopar.h of pictures. */
static void save_with_others(struct job *job, struct autopar_plan *p)
{
#ifdef __SANITIZE_ADDRESS__
	for (int turn = 0; turn < job->jobs; turn++) {
		pthread_barrier_wait(&all);
		if (p && turn == job->number)
			save_all(job, p);
	}
#endif
	pthread_barrier_wait(&all);
#ifndef __SANITIZE_ADDRESS__
	if (p)
		save_all(job, p);
#endif
}

static void *run(void *user)
{
	struct job *job = user;
	struct autopar *a = autopar_create();
	struct autopar_plan *p = NULL;
	double bound = 0, best = 0, parts = 0;

	CHECK(autopar_set(a, "device_num", "3") == AUTOPAR_OK); /* to be replaced */
	CHECK(autopar_set(a, "device_num", job->devices) == AUTOPAR_OK);
	CHECK(autopar_config(a, "{\"chip\": \"ascend910b\"}", 22) == AUTOPAR_OK);
	CHECK(autopar_graph_file(a, job->graph) == AUTOPAR_OK);
	CHECK(autopar_search(a, &p) == AUTOPAR_OK);
	if (!job->failed) {
		evaluate(job, p);
		expect_faults(job, a);
	}
	save_with_others(job, job->failed ? NULL : p);
	if (!job->failed) {
		CHECK(autopar_plan_number(p, "/search/lower_bound_s", &bound) && bound > 0);
		CHECK(autopar_plan_number(p, "/search/objective_s", &best) && bound <= best);
		CHECK(autopar_plan_step_time_s(p) > 0 && autopar_plan_memory_bytes(p) > 0);
		CHECK(autopar_plan_number(p, "/operators/0/in_strategy/0/0", &parts) && parts >= 1);
		CHECK(autopar_plan_count(p, "/operators") > 10 && autopar_plan_text(p, "/operators/0/name"));
		CHECK(autopar_plan_count(p, "/baselines") && !autopar_plan_text(p, "/operators/x/name"));
		CHECK(autopar_plan_file(p, "plan_out", "/nowhere/plan.json") == AUTOPAR_IO);
		CHECK(autopar_plan_file(p, "plan_out", "-") == AUTOPAR_USAGE);
	}
	autopar_plan_destroy(p);
	autopar_destroy(a);
	return NULL;
}

int main(int argc, char **argv)
{
	struct job *job = calloc((size_t)argc, sizeof *job);
	int failed = 0;

	pthread_barrier_init(&all, NULL, (unsigned)argc - 4);
	for (int i = 4; i < argc; i++) {
		job[i] = (struct job){.devices = argv[1], .table = argv[2], .folder = argv[3], .graph = argv[i],
			.number = i - 4, .jobs = argc - 4};
		failed |= pthread_create(&job[i].thread, NULL, run, &job[i]);
	}
	for (int i = 4; i < argc; i++) {
		failed |= pthread_join(job[i].thread, NULL);
		failed |= job[i].failed;
	}
	pthread_barrier_destroy(&all);
	free(job);
	return failed;
}
