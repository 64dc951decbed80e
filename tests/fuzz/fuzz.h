/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the targets share: the program's commands carried out in this process on files of a folder in
 * memory, and faults put into inputs. A target is a file fuzz_NAME.c, which ends with FUZZ_TARGET();
 * driver.c or libFuzzer runs it.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"

struct fuzz_target {
	const char *name;
	/* Word i that matters in inputs of this target, apart from those that are in its samples; NULL past the end. */
	const char *(*word)(size_t i);
	int (*input)(const uint8_t *data, size_t size); /* tries one; 0 */
	struct fuzz_target *next;
};

extern struct fuzz_target *fuzz_targets; /* of this program; the first is run */

#define FUZZ_TARGET(name, words, try_input) \
	__attribute__((constructor)) static void add_##name(void) \
	{ \
		static struct fuzz_target t = {#name, words, try_input, NULL}; \
		t.next = fuzz_targets; \
		fuzz_targets = &t; \
	}

/* A file in the folder that the commands run in. */
void fuzz_file(const char *name, const void *bytes, size_t len);

/*
 * Carries out a command line, words between blanks, in the folder, with one thread, small budgets and
 * nothing printed. Paths out of the folder that an input brings in are taken away. Aborts, after a line
 * on standard error, on what no input may lead to: exit code 70, an error that is not told, a
 * success with errors, more than 512 MiB.
 */
enum ap_status fuzz_run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same of what must succeed: aborts, with its messages, where it does not. */
void fuzz_must(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Calls fn with a context for the time of the call, of one thread and 512 MiB, beyond which it aborts. */
void fuzz_with(void (*fn)(struct ap_ctx *ctx, const char *text, size_t len), const uint8_t *data, size_t size);

/* A number below n that an input always gets: which of n ways it goes, where all of them take too long. */
unsigned fuzz_way(const uint8_t *data, size_t size, unsigned n);

/* Does a number of more than `digits` digits stand behind the word, where an input of many takes too long? */
int fuzz_many(const uint8_t *data, size_t size, const char *word, int digits);

/* Aborts unless ok; what: a line on standard error. */
void fuzz_require(int ok, const char *what);

/* A graph of four operators and three parameters that is in the folder as pair.json. */
extern const char fuzz_pair[];

/* Puts faults into data (room for most bytes); other is another input to take parts from. The new size.
 * The same seed does the same. JSON stays JSON as a rule. */
size_t fuzz_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed, const uint8_t *other,
	size_t nother);

#endif
