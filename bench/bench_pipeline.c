/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How near the bounds of pipeline problems come to the plans that are found, and how long both take:
 * transformers of equal layers between an embedding and a head, and the published case of three segments.
 *
 *   bench_pipeline [WORK]   WORK: the limit of each search, in steps; 0: bounds alone
 *   bench_pipeline NAME --write > problem.json
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/vec.h"
#include "partition/partition.h"
#include "pipeline/schedule.h"

enum { MOST_STAGES = 64, KINDS = 4, CLASSES = 3 };

struct shape {
	const char *name, *scheduler;
	int32_t p, v;
	int64_t m, layers;
	uint32_t nkind;
	double room; /* share of the activations without recomputation, evenly cut, that fit; 0: no limit */
	enum ap_partition_counts counts;
	enum ap_partition_kinds kinds;
};

#define FREE AP_COUNTS_FREE
#define EQUAL AP_COUNTS_EQUAL

static const struct shape shapes[] = {
	{"sapp", "interleaved", 16, 3, 16, 96, 4, 0, FREE, AP_KINDS_FREE}, /* as published */
	{"p8v12", "interleaved", 8, 12, 48, 96, 1, 0, FREE, AP_KINDS_FREE},
	{"p8v12=", "interleaved", 8, 12, 48, 96, 1, 0, EQUAL, AP_KINDS_FREE},
	{"p16v8", "interleaved", 16, 8, 128, 128, 1, 0, FREE, AP_KINDS_FREE},
	{"p16v6", "interleaved", 16, 6, 96, 96, 3, 0, FREE, AP_KINDS_FREE},
	{"p4v2", "interleaved", 4, 2, 8, 32, 1, 0, FREE, AP_KINDS_FREE},
	{"p4v4", "interleaved", 4, 4, 64, 61, 1, 0, FREE, AP_KINDS_FREE},
	{"p8v2", "interleaved", 8, 2, 8, 80, 1, 0, FREE, AP_KINDS_FREE},
	{"p8v2l", "interleaved", 8, 2, 128, 80, 1, 0, FREE, AP_KINDS_FREE},
	{"p8v5", "interleaved", 8, 5, 64, 80, 1, 0, FREE, AP_KINDS_FREE},
	{"p16v2", "interleaved", 16, 2, 64, 61, 1, 0, FREE, AP_KINDS_FREE},
	{"p16v4", "interleaved", 16, 4, 512, 126, 1, 0, FREE, AP_KINDS_FREE},
	{"p64v2", "interleaved", 64, 2, 128, 128, 1, 0, FREE, AP_KINDS_FREE},
	{"p32v3", "interleaved", 32, 3, 96, 126, 1, 0, FREE, AP_KINDS_FREE},
	{"p4v2m", "interleaved", 4, 2, 16, 32, 2, 0.5, FREE, AP_KINDS_FREE},
	{"p4v3m", "interleaved", 4, 3, 16, 24, 3, 0.3, FREE, AP_KINDS_FREE},
	{"p8v2m", "interleaved", 8, 2, 32, 80, 3, 0.5, FREE, AP_KINDS_FREE},
	{"p8v2u", "interleaved", 8, 2, 32, 80, 3, 0.5, FREE, AP_KINDS_UNIFORM},
	{"p8v2l=", "interleaved", 8, 2, 32, 80, 3, 0.5, EQUAL, AP_KINDS_LIST},
	{"p8v2u=", "interleaved", 8, 2, 32, 80, 3, 0.5, EQUAL, AP_KINDS_UNIFORM},
	{"p8v12m", "interleaved", 8, 12, 48, 96, 2, 0.6, FREE, AP_KINDS_FREE},
	{"p8v12u=", "interleaved", 8, 12, 48, 96, 2, 0.6, EQUAL, AP_KINDS_UNIFORM},
	{"p16v2m", "interleaved", 16, 2, 64, 96, 3, 0.4, FREE, AP_KINDS_LIST},
	{"p16v8m", "interleaved", 16, 8, 128, 128, 2, 0.5, FREE, AP_KINDS_FREE},
	{"p4z", "zero_bubble_v", 4, 2, 16, 32, 1, 0, FREE, AP_KINDS_FREE},
	{"p8z", "zero_bubble_v", 8, 2, 64, 61, 1, 0, FREE, AP_KINDS_FREE},
	{"p16z", "zero_bubble_v", 16, 2, 64, 96, 2, 0, FREE, AP_KINDS_FREE},
	{"p8zm", "zero_bubble_v", 8, 2, 32, 80, 3, 0.5, FREE, AP_KINDS_FREE},
	{"p8", "1f1b", 8, 1, 64, 61, 1, 0, FREE, AP_KINDS_FREE},
	{"p16m", "1f1b", 16, 1, 64, 96, 3, 0.5, FREE, AP_KINDS_FREE},
	{"p16=", "1f1b", 16, 1, 64, 96, 3, 0.5, EQUAL, AP_KINDS_FREE},
	{"p32", "1f1b", 32, 1, 512, 126, 1, 0, FREE, AP_KINDS_FREE},
};

struct made {
	struct ap_partition p;
	struct ap_partition_row row[CLASSES][KINDS];
	struct ap_partition_class cls[CLASSES];
	struct ap_partition_run run[CLASSES];
	struct ap_partition_degree degree;
	int64_t capacity[MOST_STAGES], fixed[MOST_STAGES];
};

static void add_published(struct made *x)
{
	static const double back[KINDS] = {180, 187.20000000000002, 202.5, 209.70000000000002};
	static const int64_t kept[KINDS] = {852, 767, 535, 511};

	for (uint32_t k = 0; k < KINDS; k++) {
		x->row[0][k] = (struct ap_partition_row){.absent = k > 0, .forward_s = 90, .backward_s = 180,
			.weights_bytes = 4245};
		x->row[1][k] = (struct ap_partition_row){.forward_s = 90, .backward_s = back[k],
			.weights_bytes = 2141, .kept_bytes = kept[k]};
		x->row[2][k] = (struct ap_partition_row){.absent = k > 0, .forward_s = 180, .backward_s = 360,
			.weights_bytes = 1203};
	}
	for (int32_t s = 0; s < x->p.nstage; s++)
		x->capacity[s] = 62000;
}

static void add_rows(struct made *x, const struct shape *s)
{
	static const double again[KINDS] = {0, 0.1, 1};
	static const int64_t kept[KINDS] = {34000, 20000, 2000};
	bool splits = x->p.scheduler->splits;
	double layers = (double)s->layers / s->p;

	for (uint32_t k = 0; k < s->nkind; k++) {
		uint32_t i = s->nkind == 2 ? 2 * k : k;

		x->row[0][k] = (struct ap_partition_row){.absent = k > 0, .forward_s = 0.02,
			.backward_s = 0.04,
			.update_s = 0.5, .weights_bytes = 180000, .kept_bytes = 2000};
		x->row[1][k] = (struct ap_partition_row){.forward_s = 1,
			.backward_s = (splits ? 1 : 2) + again[i],
			.weight_s = splits ? 1 : 0, .update_s = 0.3, .kept_bytes = kept[i],
			.late_bytes = splits ? 3000 : 0, .weights_bytes = 120000, .temporary_bytes = 40000};
		x->row[2][k] = (struct ap_partition_row){.absent = k > 0, .forward_s = 0.6,
			.backward_s = splits ? 0.6 : 1.2, .weight_s = splits ? 0.6 : 0, .update_s = 0.5,
			.weights_bytes = 180000, .kept_bytes = 4000};
	}
	x->degree.send_s = x->degree.send_back_s = 0.02;
	for (int32_t i = 0; i < s->p; i++)
		x->capacity[i] = s->room > 0 ? 230000 + (int64_t)(layers * (120000 + s->room * 34000 * s->p))
					     : AP_NO_LIMIT;
}

static void make(struct made *x, const struct shape *s)
{
	static const char *const kinds[] = {"none", "select", "comm", "both"};
	static const char *const names[] = {"embedding", "block", "head"};

	memset(x, 0, sizeof *x);
	x->p = (struct ap_partition){.nstage = s->p, .nsegment = s->v, .nmicro = s->m,
		.scheduler = ap_scheduler_find(s->scheduler), .ndegree = 1, .nkind = s->nkind,
		.nclass = CLASSES,
		.nrun = CLASSES, .degree = &x->degree, .kind = kinds, .cls = x->cls, .run = x->run,
		.capacity_bytes = x->capacity, .fixed_bytes = x->fixed, .least_layers = 1, .least_at_ends = 1,
		.counts = s->counts,
		.kinds = s->kinds};
	x->degree.name = "";
	for (uint32_t c = 0; c < CLASSES; c++)
		x->cls[c] = (struct ap_partition_class){names[c], x->row[c]};
	x->run[0] = (struct ap_partition_run){0, 1, AP_AT_FIRST};
	x->run[1] = (struct ap_partition_run){1, s->layers, AP_AT_BODY};
	x->run[2] = (struct ap_partition_run){2, 1, AP_AT_LAST};
	if (s == shapes)
		add_published(x);
	else
		add_rows(x, s);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void out_of_memory(void *user, size_t wanted)
{
	(void)user;
	fprintf(stderr, "no memory for %zu bytes\n", wanted);
	exit(7);
}

static double measure(const struct shape *s, uint64_t work)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, out_of_memory, NULL),
		.scratch = ap_arena_create(0, out_of_memory, NULL), .jobs = 1};
	struct ap_partition_budget budget = {.work = work};
	struct ap_partition_choice c = {.cost = NAN, .lower_bound = NAN};
	struct made x;
	double from, bound, bound_ms, gap;

	make(&x, s);
	from = now_ms();
	bound = ap_partition_bound(&ctx, &x.p);
	bound_ms = now_ms() - from;
	from = now_ms();
	if (work)
		ap_partition_solve(&ctx, &x.p, &budget, &c);
	gap = c.cost > 0 ? 100 * (1 - bound / c.cost) : 0;
	printf("%-8s %12.6g %8.2f ms", s->name, bound, bound_ms);
	if (work)
		printf(" %12.6g %12.6g %8.1f ms  gap %6.2f %%, of the bound alone %6.2f %%", c.cost,
			c.lower_bound,
			now_ms() - from, c.cost > 0 ? 100 * (1 - c.lower_bound / c.cost) : 0, gap);
	puts("");
	fflush(stdout);
	ap_arena_destroy(ctx.arena);
	ap_arena_destroy(ctx.scratch);
	return gap;
}

static void show(void *user, const char *bytes, size_t len)
{
	fwrite(bytes, 1, len, user);
}

int main(int argc, char **argv)
{
	int64_t work = 100000000;
	double sum = 0;

	if (argc > 2 && !strcmp(argv[2], "--write")) {
		for (size_t i = 0; i < AP_COUNT(shapes); i++)
			if (!strcmp(argv[1], shapes[i].name)) {
				struct made x;

				make(&x, &shapes[i]);
				ap_partition_write_json(&x.p, show, stdout);
			}
		return 0;
	}
	if (argc > 1 && !ap_parse_int(argv[1], 0, INT64_MAX, &work)) {
		fputs("usage: bench_pipeline [WORK] | NAME --write\n", stderr);
		return 2;
	}
	for (size_t i = 0; i < AP_COUNT(shapes); i++)
		sum += argc > 2 && strcmp(argv[2], shapes[i].name) ? 0 : measure(&shapes[i], (uint64_t)work);
	printf("mean gap of the bound alone %.2f %%\n", sum / (double)AP_COUNT(shapes));
	return 0;
}
