/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests of a folder are one program; a file of tests is START_TEST() .. END_TEST blocks and no main(): what is
 * written is registered, and runs in the order in which it is written.
 *
 *     PROGRAM FILE              the tests of FILE.c ("test_map"); several files, or none: all of them
 *     PROGRAM FILE PART PARTS   every PARTS-th piece of work, beginning with number PART, of a file that asks
 *     PROGRAM FILE=NAME         one piece, by name
 *
 * CK_RUN_CASE=TEST runs one test, CK_FORK=no all in one process. Nothing here ends a test that hangs: meson does.
 */
#ifndef AP_TESTS_HARNESS_H
#define AP_TESTS_HARNESS_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

struct test_entry {
	const char *file;
	const TTest *test;
	int (*times)(void); /* NULL: once */
	SFun setup, teardown; /* of a fixture: test is NULL */
	struct test_entry *next;
};

void test_register(struct test_entry *e);

/* Is this piece of work asked for? All are where the command line says nothing. */
bool test_asked(size_t number, const char *name);

#define TEST_REGISTER(entry, ...) \
	__attribute__((constructor)) static void entry##_register(void) \
	{ \
		static struct test_entry e = {__VA_ARGS__}; \
		test_register(&e); \
	}

#define TEST_BLOCK(name, how_often) \
	static void name##_body(int _i); \
	static const TTest name = {#name, name##_body, __FILE__, __LINE__}; \
	TEST_REGISTER(name, .file = __FILE__, .test = &name, .times = how_often) \
	static void name##_body(int _i __attribute__((unused)))

#undef START_TEST
#define START_TEST(name) TEST_BLOCK(name, NULL)

/* Run for each _i below n, which may be an expression of what stands above. */
#define START_LOOP_TEST(name, n) \
	static int name##_times(void) \
	{ \
		return (int)(n); \
	} \
	TEST_BLOCK(name, name##_times)

/* Before and after each test of this file. */
#define TEST_FIXTURE(before, after) \
	TEST_REGISTER(test_fixture, .file = __FILE__, .setup = before, .teardown = after)

#endif
