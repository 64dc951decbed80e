/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct test_entry *first, **last = &first;

static struct { /* what the command line asks for */
	const char *name;
	size_t part, parts;
} asked = {NULL, 0, 1};

void test_register(struct test_entry *e)
{
	*last = e;
	last = &e->next;
}

bool test_asked(size_t number, const char *name)
{
	return asked.name ? strcmp(asked.name, name) == 0 : number % asked.parts == asked.part;
}

/* Does a path end with this name and ".c"? */
static bool is_file(const char *path, const char *name, size_t len)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;

	return strncmp(base, name, len) == 0 && strcmp(base + len, ".c") == 0;
}

static const struct test_entry *fixture_of(const char *file)
{
	const struct test_entry *e = first;

	while (e && (e->test || strcmp(e->file, file) != 0))
		e = e->next;
	return e;
}

/* A case for each test, so that CK_RUN_CASE picks one. A loop runs at least once, so that none is lost. */
static void add(Suite *suite, const struct test_entry *e)
{
	const struct test_entry *fixture = fixture_of(e->file);
	int times = e->times ? e->times() : 1;
	TCase *c = tcase_create(e->test->name);

	tcase_set_timeout(c, 0);
	if (fixture)
		tcase_add_checked_fixture(c, fixture->setup, fixture->teardown);
	if (e->times)
		tcase_add_loop_test(c, e->test, 0, times > 0 ? times : 1);
	else
		tcase_add_test(c, e->test);
	suite_add_tcase(suite, c);
}

/* Adds the tests of a file ("" all); how many. */
static size_t add_file(Suite *suite, const char *name)
{
	size_t n = 0, len = strcspn(name, "=");

	if (name[len])
		asked.name = name + len + 1;
	for (const struct test_entry *e = first; e; e = e->next)
		if (e->test && (!*name || is_file(e->file, name, len))) {
			add(suite, e);
			n++;
		}
	if (n == 0)
		fprintf(stderr, "no tests in a file %.*s.c\n", (int)len, name);
	return n;
}

int main(int argc, char **argv)
{
	Suite *suite = suite_create(argc > 1 ? argv[1] : "all");
	SRunner *runner = srunner_create(suite);
	bool good = true;

	if (argc == 4 && strspn(argv[2], "0123456789") == strlen(argv[2])) {
		asked.part = strtoul(argv[2], NULL, 10);
		asked.parts = strtoul(argv[3], NULL, 10);
		argc = 2;
	}
	for (int i = 1; i < argc; i++)
		good &= add_file(suite, argv[i]) > 0;
	if (argc < 2)
		good = add_file(suite, "") > 0;
	srunner_run_all(runner, CK_ENV);
	good &= srunner_ntests_failed(runner) == 0;
	srunner_free(runner);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
