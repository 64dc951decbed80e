/* SPDX-License-Identifier: Apache-2.0 */
/* Broken, huge and malicious texts: no crash, no wrong reading, no quadratic time. */
#include "unit.h"

#include <setjmp.h>
#include <time.h>

#include "base/json.h"

static const char sample[] =
	"{\"name\": \"\\u00e4\\ud83d\\ude00\xC3\xA4\", \"shape\": [32, 1e1, -0.5],\n"
	" \"list\": [{\"a\": null}, true, [[]], {}], \"z\": \"\\\"\\\\/\"} \n";

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Status of parsing exactly these bytes. */
static enum ap_status status_of(const char *text, size_t len, unsigned flags)
{
	struct ap_ctx ctx = ctx_create(false);
	char *exact = malloc(len + 1);
	struct ap_json *doc;
	enum ap_status st;

	memcpy(exact, text, len);
	exact[len] = '\0';
	st = ap_json_parse(&ctx, "f", exact, len, flags, &doc);
	ck_assert_int_eq(ap_diag_status(ctx.diag), st);
	free(exact);
	ctx_destroy(&ctx);
	return st;
}

START_TEST(every_truncation)
{
	size_t end = (size_t)(strrchr(sample, '}') + 1 - sample);

	for (size_t len = 0; len < sizeof sample; len++)
		ck_assert_int_eq(status_of(sample, len, 0), len < end ? AP_SYNTAX : AP_OK);
}
END_TEST

START_TEST(every_bit_flip)
{
	char text[sizeof sample];
	size_t outcomes[AP_STATUS_COUNT] = {0};

	for (size_t bit = 0; bit < 8 * (sizeof sample - 1); bit++) {
		enum ap_status st;

		memcpy(text, sample, sizeof sample);
		text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
		st = status_of(text, sizeof sample - 1, AP_JSON_TRAILING_COMMA);
		ck_assert(st == AP_OK || st == AP_SYNTAX || st == AP_MEANING);
		outcomes[st]++;
	}
	ck_assert_uint_gt(outcomes[AP_OK], 50); /* a letter of a name is changed */
	ck_assert_uint_gt(outcomes[AP_SYNTAX], 300);
}
END_TEST

/* A second reader of the same grammar, by recursive descent: returns the end of the value at s,
 * NULL where there is none. */
static const char *reference_value(const char *s, const char *end, int depth);

static const char *reference_blanks(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r'))
		s++;
	return s;
}

static bool reference_hex(const char *s, const char *end, unsigned *code)
{
	char digits[5] = {0};

	if (end - s < 4 || strspn(memcpy(digits, s, 4), "0123456789abcdefABCDEF") != 4)
		return false;
	*code = (unsigned)strtoul(digits, NULL, 16);
	return true;
}

static const char *reference_string(const char *s, const char *end)
{
	unsigned high, low;

	for (s++; s < end && *s != '"'; s++) {
		if ((unsigned char)*s < 0x20)
			return NULL;
		if (*s != '\\')
			continue;
		if (++s == end || !*s || !strchr("\"\\/bfnrtu", *s))
			return NULL;
		if (*s != 'u')
			continue;
		if (!reference_hex(s + 1, end, &high) || (high & 0xFC00) == 0xDC00)
			return NULL;
		s += 4;
		if ((high & 0xFC00) != 0xD800)
			continue;
		if (end - s < 3 || s[1] != '\\' || s[2] != 'u' || !reference_hex(s + 3, end, &low) ||
			(low & 0xFC00) != 0xDC00)
			return NULL;
		s += 6;
	}
	return s < end ? s + 1 : NULL;
}

static const char *reference_digits(const char *s, const char *end)
{
	const char *start = s;

	while (s < end && *s >= '0' && *s <= '9')
		s++;
	return s > start ? s : NULL;
}

static const char *reference_number(const char *s, const char *end)
{
	const char *whole = *s == '-' ? s + 1 : s;

	s = reference_digits(whole, end);
	if (!s || (*whole == '0' && s > whole + 1))
		return NULL;
	if (s < end && *s == '.' && !(s = reference_digits(s + 1, end)))
		return NULL;
	if (s < end && (*s == 'e' || *s == 'E')) {
		s++;
		if (s < end && (*s == '-' || *s == '+'))
			s++;
		return reference_digits(s, end);
	}
	return s;
}

static const char *reference_container(const char *s, const char *end, int depth)
{
	char close = *s == '{' ? '}' : ']';

	if (depth == 256)
		return NULL;
	s = reference_blanks(s + 1, end);
	if (s < end && *s == close)
		return s + 1;
	for (;; s++) {
		if (close == '}') {
			s = reference_blanks(s, end);
			if (s == end || *s != '"' || !(s = reference_string(s, end)))
				return NULL;
			s = reference_blanks(s, end);
			if (s == end || *s++ != ':')
				return NULL;
		}
		s = reference_value(s, end, depth + 1);
		if (!s)
			return NULL;
		s = reference_blanks(s, end);
		if (s == end || (*s != ',' && *s != close))
			return NULL;
		if (*s == close)
			return s + 1;
	}
}

static const char *reference_value(const char *s, const char *end, int depth)
{
	static const char *const words[] = {"null", "true", "false"};

	s = reference_blanks(s, end);
	if (s == end)
		return NULL;
	if (*s == '"')
		return reference_string(s, end);
	if (*s == '{' || *s == '[')
		return reference_container(s, end, depth);
	for (int i = 0; i < 3; i++)
		if ((size_t)(end - s) >= strlen(words[i]) && !memcmp(s, words[i], strlen(words[i])))
			return s + strlen(words[i]);
	return *s == '-' || (*s >= '0' && *s <= '9') ? reference_number(s, end) : NULL;
}

static bool reference_accepts(const char *s, size_t len)
{
	const char *end = s + len;
	size_t bad;

	if (!ap_str_utf8(s, len, &bad))
		return false;
	s = reference_value(s, end, 0);
	return s && reference_blanks(s, end) == end;
}

/* Replaces, inserts, deletes or doubles pieces of the text; returns its new length. */
static size_t mutate(uint64_t *state, char *text, size_t len, size_t cap)
{
	static const char pieces[] = "{}[],:\"\\ntf01-+.eEu\n /\xC3\xA4";
	size_t at = random_below(state, len), n = 1 + random_below(state, 4);

	switch (random_below(state, 4)) {
	case 0:
		text[at] = pieces[random_below(state, sizeof pieces - 1)];
		return len;
	case 1:
		if (len + 1 > cap)
			return len;
		memmove(text + at + 1, text + at, len - at);
		text[at] = pieces[random_below(state, sizeof pieces - 1)];
		return len + 1;
	case 2:
		if (len <= n || at + n > len)
			return len;
		memmove(text + at, text + at + n, len - at - n);
		return len - n;
	default:
		if (at + n > len || len + n > cap)
			return len;
		memmove(text + at + n, text + at, len - at);
		return len + n;
	}
}

START_TEST(agrees_with_a_second_reader)
{
	uint64_t state = random_seed();
	size_t accepted = 0;

	for (int round = 0; round < 30000; round++) {
		char text[2 * sizeof sample];
		size_t len = sizeof sample - 1;
		int changes = 1 + (int)random_below(&state, 3);
		enum ap_status st;
		bool valid;

		memcpy(text, sample, sizeof sample);
		while (changes--)
			len = mutate(&state, text, len, sizeof text);
		st = status_of(text, len, 0);
		valid = reference_accepts(text, len);
		accepted += valid;
		if ((st == AP_SYNTAX) == valid)
			ck_abort_msg("status %d for %.*s", st, (int)len, text);
	}
	ck_assert_uint_gt(accepted, 1000);
}
END_TEST

/* text repeated n times, between head and tail. */
static char *repeat(const char *head, const char *text, size_t n, const char *tail, size_t *len)
{
	size_t unit = strlen(text);
	char *s = malloc(strlen(head) + n * unit + strlen(tail) + 1), *at = s;

	at = memcpy(at, head, strlen(head));
	at += strlen(head);
	for (size_t i = 0; i < n; i++, at += unit)
		memcpy(at, text, unit);
	strcpy(at, tail);
	*len = (size_t)(at - s) + strlen(tail);
	return s;
}

START_TEST(nesting)
{
	static const size_t depths[] = {255, 256, 257, 1001, 100000, 1000000};

	for (size_t i = 0; i < AP_COUNT(depths); i++) {
		size_t n = depths[i], len;
		char *open = repeat("", "[", n, "", &len);
		char *both = malloc(2 * n), *objects;

		memset(both, '[', n);
		memset(both + n, ']', n);
		ck_assert_int_eq(status_of(both, 2 * n, 0), n > 256 ? AP_LIMIT : AP_OK);
		ck_assert_int_eq(status_of(open, len, 0), n > 256 ? AP_LIMIT : AP_SYNTAX);
		free(open);
		free(both);
		objects = repeat("", "{\"a\":", n, "", &len);
		ck_assert_int_eq(status_of(objects, len, 0), n > 256 ? AP_LIMIT : AP_SYNTAX);
		free(objects);
	}
}
END_TEST

START_TEST(a_million_brackets_cost_little)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	double start;
	size_t len;
	char *text = repeat("", "[", 1000000, "", &len);

	start = now_s();
	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_LIMIT);
	ck_assert(now_s() - start < 1);
	ck_assert_str_eq(messages(&ctx),
		"autopar-plan: error: f:1:257: nesting deeper than 256\n");
	ck_assert_uint_lt(ap_arena_bytes(ctx.arena) + ap_arena_bytes(ctx.scratch), 8u << 20);
	free(text);
	ctx_destroy(&ctx);
}
END_TEST

static char *numbered_keys(size_t n, const char *more, size_t *len)
{
	char *text = malloc(n * 20 + 100);
	int at = sprintf(text, "{");

	for (size_t i = 0; i < n; i++)
		at += sprintf(text + at, "\"key%zu\":0,%s", i, i % 1000 ? "" : "\n");
	at += sprintf(text + at, "%s}", more);
	*len = (size_t)at;
	return text;
}

START_TEST(many_keys)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	double start = now_s();
	size_t len;
	char *text = numbered_keys(200000, "\"last\":1", &len);

	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	ck_assert_uint_eq(ap_jv_count(ap_json_root(doc)), 200001);
	ck_assert(ap_jv_double(ap_jv_get(ap_json_root(doc), "last")) == 1);
	free(text);
	text = numbered_keys(200000, "\"key123456\":1", &len);
	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_MEANING);
	ck_contains(messages(&ctx), "duplicate key \"key123456\"; it is already on line 125");
	ck_assert(now_s() - start < 5);
	free(text);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(many_duplicates_are_not_all_told)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	size_t len;
	char *text = repeat("{", "\"a\":0,", 100000, "\"b\":0}", &len);

	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_MEANING);
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_ERROR), 20);
	free(text);
	ctx_destroy(&ctx);
}
END_TEST

/* Messages about late elements of long arrays on one line: no search from the start for each. */
START_TEST(many_reports)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	double start = now_s();
	const struct ap_jv *last = NULL;
	size_t len;
	char *text = repeat("[", "{\"\xC3\xA4\":1},", 100000, "0]", &len);

	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	for (const struct ap_jv *v = ap_jv_first(ap_json_root(doc)); v; v = ap_jv_next(v)) {
		ap_json_report(&ctx, doc, v, AP_WARNING, AP_OK, NULL, NULL, "w");
		last = v;
	}
	ck_assert_uint_eq(ap_diag_count(ctx.diag, AP_WARNING), 100001);
	ap_json_report(&ctx, doc, last, AP_ERROR, AP_MEANING, NULL, NULL, "x");
	ck_contains(messages(&ctx), "error: f:1:800002: /100000: x\n");
	ck_assert(now_s() - start < 10);
	free(text);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(long_strings_and_keys)
{
	size_t len, n = 8u << 20;
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	char *text = repeat("[\"", "x", n, "\"]", &len);

	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	ck_assert_uint_eq(strlen(ap_jv_str(ap_jv_first(ap_json_root(doc)))), n);
	free(text);
	text = repeat("{\"", "x", n, "\":0}", &len);
	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	ck_assert_uint_eq(strlen(ap_jv_key(ap_jv_first(ap_json_root(doc)))), n);
	ap_json_report(&ctx, doc, ap_jv_first(ap_json_root(doc)), AP_ERROR, AP_MEANING, NULL, NULL,
		"x");
	ck_assert_uint_lt(strlen(messages(&ctx)), 1000);
	free(text);
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(long_numbers)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	size_t len;
	int64_t r;
	char *text = repeat("", "1", 100, "", &len);

	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	ck_assert(ap_jv_double(ap_json_root(doc)) == strtod(text, NULL));
	ck_assert(!ap_jv_int(doc, ap_json_root(doc), &r));
	free(text);
	text = repeat("", "9", 9999, "", &len);
	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_MEANING);
	ck_contains(messages(&ctx), "f:1:1: number is not finite");
	free(text);
	text = repeat("12.", "0", 9999, "", &len);
	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	ck_assert(ap_jv_int(doc, ap_json_root(doc), &r));
	ck_assert_int_eq(r, 12);
	free(text);
	text = repeat("0.", "0", 9998, "7e9999", &len);
	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	ck_assert(ap_jv_int(doc, ap_json_root(doc), &r));
	ck_assert_int_eq(r, 7);
	free(text);
	ctx_destroy(&ctx);
}
END_TEST

/* A larger file may hold more of them: the text after the fault is not looked at. */
START_TEST(too_many_values)
{
	static const struct {
		size_t len; /* 0: as it is */
		const char *message;
	} rows[] = {
		{0, "autopar-plan: error: f:1:16777216: more than 8388608 values in a file of 18874370 "
			"bytes\n"},
		{72 << 20, "autopar-plan: error: f:1:18874368: more than 9437184 values in a file of "
			"75497472 bytes\n"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_json *doc;
		size_t len, whole;
		char *text = repeat("[", "1,", 9u << 20, "1", &len);

		whole = rows[i].len ? rows[i].len : len;
		text = realloc(text, whole + 1);
		ck_assert_ptr_nonnull(text);
		memset(text + len, ' ', whole - len);
		text[whole] = '\0';
		ck_assert_int_eq(ap_json_parse(&ctx, "f", text, whole, 0, &doc), AP_LIMIT);
		ck_assert_str_eq(messages(&ctx), rows[i].message);
		free(text);
		ctx_destroy(&ctx);
	}
}
END_TEST

/* A node for each value, and no copy of the text or of its numbers. */
START_TEST(memory_by_value)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	size_t n = 500000, len, before = ap_arena_bytes(ctx.arena);
	char *text = repeat("[", "1.25e2,", n - 1, "1.25e2]", &len);

	ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
	ck_assert_uint_eq(ap_jv_count(ap_json_root(doc)), n);
	ck_assert_uint_lt(ap_arena_bytes(ctx.arena) - before, 93 * n);
	free(text);
	ctx_destroy(&ctx);
}
END_TEST

struct oom {
	jmp_buf jump;
	int calls;
};

static void on_oom(void *user, size_t wanted)
{
	struct oom *oom = user;

	(void)wanted;
	oom->calls++;
	longjmp(oom->jump, 1);
}

/* Out of memory at every stage; leaks are for the sanitizer to see. */
START_TEST(small_budgets)
{
	static struct oom oom;
	size_t len;
	char *text = repeat("[", "{\"key\":\"value\",\"x\":[1,2]},", 3000, "0]", &len);
	volatile size_t budget = 1000;
	volatile bool fits = false;

	for (; !fits; budget = budget + budget / 2) {
		struct ap_arena *volatile run = ap_arena_create(budget + 4096, on_oom, &oom);
		struct ap_arena *volatile scratch = ap_arena_create(budget, on_oom, &oom);
		struct ap_arena *volatile diag = ap_arena_create(0, NULL, NULL);

		if (!setjmp(oom.jump)) {
			struct ap_ctx ctx = {.arena = run, .scratch = scratch};
			struct ap_json *doc;

			ctx.diag = ap_diag_create(diag, false);
			ck_assert_int_eq(ap_json_parse(&ctx, "f", text, len, 0, &doc), AP_OK);
			fits = true;
		}
		ap_arena_destroy(run);
		ap_arena_destroy(scratch);
		ap_arena_destroy(diag);
	}
	ck_assert_int_gt(oom.calls, 5);
	free(text);
}
END_TEST
