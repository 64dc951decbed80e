/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TARGET PATH...: a target over files and folders, as libFuzzer would: every file, cut at some places, too;
 * then AP_FUZZ_RUNS times one of them with faults put into it. It prints AP_SEED, and with it and the
 * number of a run that fails in AP_FUZZ_FIRST that run is repeated.
 */
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

enum { CUTS = 16, MOST_BYTES = 1 << 16, MOST_SECONDS = 20 };

struct sample {
	uint8_t *bytes;
	size_t len;
};

static struct {
	struct sample *v;
	size_t n;
} samples;
static uint64_t seed, run; /* for the line that tells of a fault */

static void tell(int sig)
{
	char line[160];
	int len = snprintf(line, sizeof line, "%s: AP_SEED=%" PRIu64 " AP_FUZZ_FIRST=%" PRIu64 " AP_FUZZ_RUNS=1\n",
		sig == SIGALRM ? "too slow" : "fault", seed, run);

	if (write(STDERR_FILENO, line, (size_t)len) < len)
		_exit(EXIT_FAILURE);
	if (sig) {
		signal(SIGABRT, SIG_DFL);
		abort();
	}
}

/* Sanitizers call these before they end the program. */
void __asan_on_error(void);
void __asan_on_error(void)
{
	tell(0);
}

void __ubsan_on_report(void);
void __ubsan_on_report(void)
{
	tell(0);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

/* A copy of its own size, so that reading past it shows. */
static void run_bytes(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len + !len);

	if (!copy)
		exit(EXIT_FAILURE);
	memcpy(copy, bytes, len);
	alarm(MOST_SECONDS);
	fuzz_targets->input(copy, len);
	alarm(0);
	free(copy);
}

static void read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct sample s = {.bytes = malloc(MOST_BYTES)};

	samples.v = realloc(samples.v, (samples.n + 1) * sizeof *samples.v);
	if (!f || !s.bytes || !samples.v) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	s.len = fread(s.bytes, 1, MOST_BYTES, f);
	fclose(f);
	samples.v[samples.n++] = s;
}

static void read_path(const char *path)
{
	struct dirent **entry;
	char inner[4096];
	struct stat st;
	int n;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		read_file(path);
		return;
	}
	n = scandir(path, &entry, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(inner, sizeof inner, "%s/%s", path, entry[i]->d_name);
		if (*entry[i]->d_name != '.')
			read_path(inner);
		free(entry[i]);
	}
	free(entry);
}

static void replay(const struct sample *s)
{
	for (size_t cut = 1; cut <= CUTS; cut++)
		run_bytes(s->bytes, cut == CUTS ? s->len : s->len / CUTS * cut);
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return x ^ x >> 31;
}

/* The shorter of two: long ones take their time. */
static const struct sample *pick(uint64_t at)
{
	const struct sample *a = &samples.v[at % samples.n], *b = &samples.v[(at >> 32) % samples.n];

	return a->len < b->len ? a : b;
}

static void run_one(void)
{
	static uint8_t bytes[MOST_BYTES];
	uint64_t random = mixed(seed * UINT64_C(0x9E3779B97F4A7C15) + run);
	const struct sample *s = pick(random), *other = pick(mixed(random + 1));

	memcpy(bytes, s->bytes, s->len);
	run_bytes(bytes, fuzz_mutate(bytes, s->len, MOST_BYTES, random, other->bytes, other->len));
}

int main(int argc, char **argv)
{
	uint64_t runs = number("AP_FUZZ_RUNS", 0), first = number("AP_FUZZ_FIRST", 1);

	seed = number("AP_SEED", 20240229);
	fprintf(stderr, "AP_SEED=%" PRIu64 "\n", seed);
	signal(SIGABRT, tell);
	signal(SIGALRM, tell);
	while (argc > 1 && fuzz_targets && strcmp(fuzz_targets->name, argv[1]) != 0)
		fuzz_targets = fuzz_targets->next;
	for (int i = 2; i < argc; i++)
		read_path(argv[i]);
	if (!fuzz_targets || !samples.n)
		return EXIT_FAILURE;
	for (size_t i = 0; i < samples.n && first == 1; i++)
		replay(&samples.v[i]);
	for (run = first; run < first + runs; run++)
		run_one();
	for (size_t i = 0; i < samples.n; i++)
		free(samples.v[i].bytes);
	fprintf(stderr, "%zu files, %" PRIu64 " runs\n", samples.n, runs);
	free(samples.v);
	return EXIT_SUCCESS;
}
