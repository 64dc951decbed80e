/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Problems that are hard for elimination, for measurements: autopar-problem/1 on standard output.
 *
 *   make_problem SHAPE A B K [nodes|edges|levels|layout] [planted] [memory]
 *       [forbidden=PERCENT] [seed=N] [optimum]
 *
 * SHAPE and its sizes: hard_problem.h. optimum: of a planted problem the known optimum instead,
 * in seconds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "hard_problem.h"

/* The index of a word in a list of names; false if it is none of them. */
static bool find(const char *(*name)(size_t), const char *word, int *i)
{
	for (*i = 0; name((size_t)*i); ++*i)
		if (!strcmp(name((size_t)*i), word))
			return true;
	return false;
}

static bool read_word(struct hard_spec *s, const char *word, bool *optimum)
{
	int64_t n;
	int i;

	if (find(hard_costs_name, word, &i))
		s->costs = (enum hard_costs)i;
	else if (!strcmp(word, "planted"))
		s->planted = true;
	else if (!strcmp(word, "memory"))
		s->memory = true;
	else if (!strcmp(word, "optimum"))
		*optimum = true;
	else if (!strncmp(word, "forbidden=", 10) && ap_parse_int(word + 10, 0, 99, &n))
		s->forbidden = (uint32_t)n;
	else if (!strncmp(word, "seed=", 5) && ap_parse_int(word + 5, 0, INT64_C(1) << 53, &n))
		s->seed = (uint64_t)n;
	else
		return false;
	return true;
}

static bool read_spec(int argc, char **argv, struct hard_spec *s, bool *optimum)
{
	int64_t a, b, k;
	int shape;

	if (argc < 5 || !find(hard_shape_name, argv[1], &shape) || !ap_parse_int(argv[2], 1, 100000, &a) ||
		!ap_parse_int(argv[3], 1, 100000, &b) || !ap_parse_int(argv[4], 2, 10000, &k))
		return false;
	*s = (struct hard_spec){.shape = (enum hard_shape)shape, .a = (uint32_t)a, .b = (uint32_t)b,
		.k = (uint32_t)k, .seed = 1};
	for (int i = 5; i < argc; i++)
		if (!read_word(s, argv[i], optimum))
			return false;
	return (s->shape != HARD_REGULAR || (a > b && a * b % 2 == 0)) && (!*optimum || s->planted);
}

static void print(void *user, const char *bytes, size_t len)
{
	fwrite(bytes, 1, len, user);
}

int main(int argc, char **argv)
{
	struct ap_ctx ctx = {.arena = ap_arena_create(0, NULL, NULL),
		.scratch = ap_arena_create(0, NULL, NULL), .jobs = 1};
	struct hard_problem made;
	struct hard_spec spec;
	bool optimum = false;
	char text[32];

	if (!read_spec(argc, argv, &spec, &optimum)) {
		fputs("usage: make_problem grid|torus|regular|clique|dag A B K [nodes|edges|levels|layout]\n"
			"       [planted] [memory] [forbidden=PERCENT] [seed=N] [optimum]\n", stderr);
		return 2;
	}
	made = hard_problem_make(&ctx, &spec);
	if (optimum)
		puts(ap_format_double(made.optimum, text));
	else
		ap_problem_write_json(made.p, print, stdout);
	ap_arena_destroy(ctx.scratch);
	ap_arena_destroy(ctx.arena);
	return fflush(stdout) ? 1 : 0;
}
