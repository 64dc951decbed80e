/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>

#include "base/decimal.h"
#include "base/num.h"

START_TEST(checked_arithmetic)
{
	int64_t r = 77;

	ck_assert(ap_mul(3037000499, 3037000499, &r));
	ck_assert_int_eq(r, INT64_C(9223372030926249001));
	ck_assert(!ap_mul(3037000500, 3037000500, &r));
	ck_assert_int_eq(r, INT64_C(9223372030926249001));
	ck_assert(ap_add(INT64_MAX - 1, 1, &r));
	ck_assert_int_eq(r, INT64_MAX);
	ck_assert(!ap_add(INT64_MAX, 1, &r));
	ck_assert(!ap_add(INT64_MIN, -1, &r));
	ck_assert(!ap_mul(INT64_MIN, -1, &r));
	ck_assert_int_eq(r, INT64_MAX);
}
END_TEST

START_TEST(product_of_extents)
{
	int64_t r = 77;

	ck_assert(ap_product(NULL, 0, &r));
	ck_assert_int_eq(r, 1);
	ck_assert(ap_product((int64_t[]){32, 1, 28, 28}, 4, &r));
	ck_assert_int_eq(r, 25088);
	ck_assert(!ap_product((int64_t[]){65536, 65536, 65536, 65536}, 4, &r));
	ck_assert_int_eq(r, 25088);
	ck_assert(ap_product((int64_t[]){65536, 65536, 65536, 65536, 0}, 5, &r));
	ck_assert_int_eq(r, 0);
	ck_assert(ap_product((int64_t[]){INT64_MAX, 1}, 2, &r));
	ck_assert_int_eq(r, INT64_MAX);
}
END_TEST

START_TEST(greatest_common_divisor)
{
	ck_assert_int_eq(ap_gcd(12, 18), 6);
	ck_assert_int_eq(ap_gcd(17, 5), 1);
	ck_assert_int_eq(ap_gcd(0, 5), 5);
	ck_assert_int_eq(ap_gcd(5, 0), 5);
	ck_assert_int_eq(ap_gcd(0, 0), 0);
	ck_assert_int_eq(ap_gcd(-12, 18), 6);
	ck_assert_int_eq(ap_gcd(INT64_C(1) << 62, 6), 2);
}
END_TEST

START_TEST(parse_int)
{
	static const struct {
		const char *s;
		int64_t lo, hi;
		bool ok;
		int64_t value;
	} rows[] = {
		{"0", 0, 10, true, 0},
		{"10", 0, 10, true, 10},
		{"007", 0, 10, true, 7},
		{"11", 0, 10, false, 0},
		{"0", 1, 10, false, 0},
		{"-3", -5, 5, true, -3},
		{"-0", -5, 5, true, 0},
		{"-3", 0, 5, false, 0},
		{"-0", 0, 5, false, 0},
		{"9223372036854775807", 0, INT64_MAX, true, INT64_MAX},
		{"9223372036854775808", 0, INT64_MAX, false, 0},
		{"-9223372036854775808", INT64_MIN, 0, true, INT64_MIN},
		{"-9223372036854775809", INT64_MIN, 0, false, 0},
		{"18446744073709551616", 0, INT64_MAX, false, 0},
		{"4294967296", 0, UINT32_MAX, false, 0},
		{"", 0, 10, false, 0},
		{"-", -10, 10, false, 0},
		{"--1", -10, 10, false, 0},
		{"+1", -10, 10, false, 0},
		{" 1", 0, 10, false, 0},
		{"1 ", 0, 10, false, 0},
		{"1x", 0, 10, false, 0},
		{"0x1", 0, 10, false, 0},
		{"1e0", 0, 10, false, 0},
		{"1.0", 0, 10, false, 0},
		{"two", 0, 10, false, 0},
		{"\xEF\xBC\x91", 0, 10, false, 0}, /* a full-width 1 */
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		int64_t r = 77;
		bool ok = ap_parse_int(rows[i].s, rows[i].lo, rows[i].hi, &r);

		ck_assert_msg(ok == rows[i].ok, "\"%s\"", rows[i].s);
		ck_assert_int_eq(r, ok ? rows[i].value : 77);
	}
}
END_TEST

START_TEST(parse_double)
{
	static const char *const bad[] = {"", ".", "-", "-.", "1e", "1e+", "e5", "nan", "inf", "-inf",
		"infinity", "0x10", "1,5", " 1", "1 ", "+1", "1e400", "-1e400", "1.5.2", "1_000", "--1",
		"1e5x"};
	static const struct {
		const char *s;
		double value;
	} good[] = {{"0", 0}, {"-0", 0}, {"1.5", 1.5}, {".5", .5}, {"5.", 5}, {"-2.25e-2", -0.0225},
		{"1E3", 1000}, {"1e+3", 1000}, {"0.1", 0.1}, {"1e308", 1e308}, {"1e-400", 0},
		{"4.9e-324", 0x1p-1074}, {"9007199254740993", 9007199254740992.0}};
	double r = 77;

	for (size_t i = 0; i < AP_COUNT(bad); i++)
		ck_assert_msg(!ap_parse_double(bad[i], &r), "\"%s\"", bad[i]);
	ck_assert(r == 77);
	for (size_t i = 0; i < AP_COUNT(good); i++) {
		ck_assert_msg(ap_parse_double(good[i].s, &r), "\"%s\"", good[i].s);
		ck_assert_msg(r == good[i].value, "\"%s\": %a", good[i].s, r);
	}
}
END_TEST

static const struct {
	const char *s;
	int64_t bytes; /* -1: refused */
} sizes[] = {
	{"0", 0},
	{"1000", 1000},
	{"1000B", 1000},
	{"64KB", 65536},
	{"512MB", INT64_C(512) << 20},
	{"25GB", INT64_C(25) << 30},
	{"1TB", INT64_C(1) << 40},
	{"1.5GB", INT64_C(1610612736)},
	{"0.25KB", 256},
	{"0.1KB", 102},
	{"0.000000000931322574615478515625GB", 1},
	{"4194304TB", INT64_C(1) << 62},
	{"4194304.5TB", -1},
	{"4194305TB", -1},
	{"4611686018427387904", INT64_C(1) << 62},
	{"4611686018427387905", -1},
	{"99999999999999999999", -1},
	{"99999999999999999999GB", -1},
	{"1e30GB", -1},
	{"", -1},
	{"GB", -1},
	{"-1", -1},
	{"-1GB", -1},
	{"+1GB", -1},
	{"25 GB", -1},
	{"25 gb", -1},
	{"25gb", INT64_C(25) << 30},
	{"25GiB", INT64_C(25) << 30},
	{"25gib", INT64_C(25) << 30},
	{"25Gi", INT64_C(25) << 30},
	{"25iB", -1},
	{"25G", INT64_C(25) << 30},
	{"25g", INT64_C(25) << 30},
	{"64K", 65536},
	{"64KiB", 65536},
	{"512m", INT64_C(512) << 20},
	{"1.5T", INT64_C(3) << 39},
	{"8b", 8},
	{"25GBs", -1},
	{"25GG", -1},
	{"25P", -1},
	{" 25GB", -1},
	{"25GB ", -1},
	{"1.5", -1},
	{"1.GB", -1},
	{".5GB", -1},
	{"1.5.5GB", -1},
	{"1,5GB", -1},
};

static const struct {
	const char *s;
	int64_t n; /* -1: refused */
} counts[] = {
	{"0", 0}, {"1000", 1000}, {"1K", 1000}, {"15T", INT64_C(15000000000000)}, {"15t", INT64_C(15000000000000)},
	{"300B", INT64_C(300000000000)}, {"300G", INT64_C(300000000000)}, {"2.5b", INT64_C(2500000000)},
	{"800M", 800000000}, {"1.5K", 1500}, {"1.0", 1}, {"2.50", -1}, {"0.001K", 1}, {"0.0010K", 1},
	{"0.0001K", -1}, {"1.2345K", -1}, {"1.5", -1}, {"4611686018427387904", INT64_C(1) << 62},
	{"4611686018427387905", -1}, {"4611686T", INT64_C(4611686000000000000)}, {"4611687T", -1},
	{"99999999999999999999", -1}, {"99999999999999999999T", -1}, {"", -1}, {"T", -1}, {".5T", -1}, {"1.T", -1},
	{"-1", -1}, {"+1", -1}, {" 1", -1}, {"1 T", -1}, {"1TB", -1}, {"1P", -1}, {"1e12", -1}, {"1.5.5T", -1},
};

START_TEST(parse_count)
{
	for (size_t i = 0; i < AP_COUNT(counts); i++) {
		int64_t r = -1;
		bool ok = ap_parse_count(counts[i].s, &r);

		ck_assert_msg(ok == (counts[i].n >= 0), "\"%s\"", counts[i].s);
		ck_assert_msg(r == counts[i].n, "\"%s\": %" PRId64, counts[i].s, r);
	}
}
END_TEST

START_TEST(times)
{
	static const struct {
		const char *s;
		double seconds; /* -1: refused */
		const char *text;
	} rows[] = {
		{"20s", 20, "20s"}, {"300ms", 0.3, "300ms"}, {"0.3s", 0.3, "300ms"}, {"60d", 5184000, "60d"},
		{"36h", 129600, "36h"}, {"24h", 86400, "1d"}, {"90s", 90, "90s"}, {"1.5h", 5400, "90min"},
		{"12us", 12e-6, "12us"}, {"1e-9s", 1e-9, "1e-09s"}, {"1e3s", 1000, "1000s"}, {"0s", 0, "0s"},
		{"0.1234567s", 0.1234567, "0.1234567s"}, {"20", -1, NULL}, {"", -1, NULL}, {"s", -1, NULL},
		{"20 s", -1, NULL}, {" 20s", -1, NULL}, {"-1s", -1, NULL}, {"+1s", -1, NULL}, {"20S", -1, NULL},
		{"20m", -1, NULL}, {"20sec", -1, NULL}, {"infs", -1, NULL}, {"nans", -1, NULL}, {"1e400s", -1, NULL},
		{"1e308d", -1, NULL}, {"0x10s", -1, NULL}, {"1,5s", -1, NULL}, {"5es", -1, NULL},
	};
	unsigned seed = 5;
	char buf[32];

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		double r = -1;

		ck_assert_msg(ap_parse_time(rows[i].s, &r) == (rows[i].seconds >= 0), "\"%s\"", rows[i].s);
		ck_assert_msg(r == rows[i].seconds, "\"%s\": %a", rows[i].s, r);
		if (rows[i].text)
			ck_assert_str_eq(ap_format_time(r, buf), rows[i].text);
	}
	for (int i = 0; i < 2000; i++) { /* what is written reads back as the same number */
		double v = (double)rand_r(&seed) * (i % 2 ? 1e-6 : 0.731), r = -1;

		ck_assert(ap_parse_time(ap_format_time(v, buf), &r));
		ck_assert_msg(r == v, "%s: %a, %a", buf, v, r);
	}
}
END_TEST

START_TEST(parse_bytes)
{
	for (size_t i = 0; i < AP_COUNT(sizes); i++) {
		int64_t r = -1;
		bool ok = ap_parse_bytes(sizes[i].s, &r);

		ck_assert_msg(ok == (sizes[i].bytes >= 0), "\"%s\"", sizes[i].s);
		ck_assert_msg(r == sizes[i].bytes, "\"%s\": %" PRId64, sizes[i].s, r);
	}
}
END_TEST

START_TEST(prime_factors)
{
	int64_t p[63];

	ck_assert_uint_eq(ap_primes(1, p), 0);
	ck_assert_uint_eq(ap_primes(360, p), 6);
	ck_assert_mem_eq(p, ((int64_t[]){2, 2, 2, 3, 3, 5}), 6 * sizeof *p);
	ck_assert_uint_eq(ap_primes(1021, p), 1);
	ck_assert_int_eq(p[0], 1021);
	ck_assert_uint_eq(ap_primes(INT64_C(1) << 62, p), 62);
	ck_assert_int_eq(p[61], 2);
	ck_assert_uint_eq(ap_primes(INT64_C(46337) * 46337, p), 2);
	ck_assert_int_eq(p[1], 46337);
	ck_assert_uint_eq(ap_primes(INT64_C(2147483647), p), 1);
	for (int64_t n = 1; n < 500; n++) {
		size_t count = ap_primes(n, p);
		int64_t product = 1;

		for (size_t i = 0; i < count; i++) {
			product *= p[i];
			ck_assert_int_ge(p[i], i ? p[i - 1] : 2);
			for (int64_t d = 2; d < p[i]; d++)
				ck_assert_int_ne(p[i] % d, 0);
		}
		ck_assert_int_eq(product, n);
	}
}
END_TEST

START_TEST(divisors)
{
	int64_t d[64];

	ck_assert_uint_eq(ap_divisors(12, d, 64), 6);
	ck_assert_mem_eq(d, ((int64_t[]){1, 2, 3, 4, 6, 12}), 6 * sizeof *d);
	ck_assert_uint_eq(ap_divisors(36, d, 64), 9);
	ck_assert_uint_eq(ap_divisors(1, d, 64), 1);
	d[2] = -1;
	ck_assert_uint_eq(ap_divisors(36, d, 2), 9); /* the count says what was left out */
	ck_assert_int_eq(d[1], 2);
	ck_assert_int_eq(d[2], -1);
	for (int64_t n = 1; n < 1000; n++) {
		size_t count = ap_divisors(n, d, 64), at = 0;

		for (int64_t k = 1; k <= n; k++)
			if (n % k == 0)
				ck_assert_int_eq(d[at++], k);
		ck_assert_uint_eq(at, count);
	}
}
END_TEST

START_TEST(format_double)
{
	static const struct {
		double v;
		const char *text;
	} rows[] = {{0, "0"}, {3, "3"}, {-3, "-3"}, {0.1, "0.1"}, {1e-7, "1e-07"}, {1e15, "1e+15"},
		{1.0 / 3, "0.3333333333333333"}, {0.1 + 0.2, "0.30000000000000004"},
		{123456789012, "123456789012"}, {0x1p-1074, "4.94065645841247e-324"},
		{1.7976931348623157e308, "1.797693134862316e+308"}};
	char buf[32];

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (i + 1 < AP_COUNT(rows)) /* the last only has to read back */
			ck_assert_str_eq(ap_format_double(rows[i].v, buf), rows[i].text);
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		ck_assert(strtod(ap_format_double(rows[i].v, buf), NULL) == rows[i].v);
}
END_TEST

START_TEST(format_double_reads_back)
{
	uint64_t state = random_seed();
	char buf[32];

	for (int i = 0; i < 200000; i++) {
		uint64_t bits = random_next(&state);
		double v, back;

		memcpy(&v, &bits, sizeof v);
		if (!isfinite(v))
			continue;
		if (!ap_parse_double(ap_format_double(v, buf), &back) || back != v ||
			strlen(buf) >= 25)
			ck_abort_msg("%a is written %s", v, buf);
	}
}
END_TEST

/* Numbers of the sizes that plans are full of, against printf. */
START_TEST(format_double_as_printf)
{
	uint64_t state = random_seed();
	char buf[32], expected[32];

	for (int i = 0; i < 100000; i++) {
		uint64_t r = random_next(&state);
		double v = ldexp((double)(r >> 11), -(int)(r % 90)); /* all 53 bits */

		if (i % 3 == 1) /* short ones */
			v = (double)(r % 1000000) / pow(10, (double)(r >> 32 & 15));
		if (i % 3 == 2) /* next to powers of two and ten */
			v = nextafter(i % 2 ? ldexp(1, (int)(r % 70) - 35) :
					pow(10, (double)(r % 25) - 10), r & 64 ? 0 : 1e30);
		if (r & 128)
			v = -v;
		for (int precision = 15; precision <= 17; precision++) {
			snprintf(expected, sizeof expected, "%.*g", precision, v);
			if (strtod(expected, NULL) == v)
				break;
		}
		if (strcmp(ap_format_double(v, buf), expected) != 0)
			ck_abort_msg("%a is written %s, expected %s", v, buf, expected);
	}
}
END_TEST

/* Digits of any length at any power, and odd multiples of half a last bit, against strtod. */
START_TEST(decimal_value_as_strtod)
{
	uint64_t state = random_seed();
	int done = 0;

	for (int i = 0; i < 300000; i++) {
		uint64_t r = random_next(&state), digits = random_next(&state) >> (r % 64);
		int64_t power = (int64_t)(r >> 8 & 63) - 40;
		double v, expected;
		char text[64];

		if (i % 3 == 1) { /* in the middle of two numbers, and beside it */
			digits = (UINT64_C(1) << 53 | r >> 11 | 1) * (r & 4 ? 1 : 5) + (r & 3) - 1;
			power = r & 4 ? 0 : -1;
		}
		snprintf(text, sizeof text, "%" PRIu64 "e%" PRId64, digits, power);
		expected = strtod(text, NULL);
		if (!ap_decimal_value(digits, power, &v))
			continue;
		done++;
		if (memcmp(&v, &expected, sizeof v) != 0)
			ck_abort_msg("%s is read as %a, expected %a", text, v, expected);
	}
	ck_assert_int_gt(done, 200000);
}
END_TEST

START_TEST(decimal_value_knows_its_limits)
{
	double v = -1;

	ck_assert(ap_decimal_value(0, INT64_MIN, &v) && v == 0 && !signbit(v));
	ck_assert(ap_decimal_value(0, INT64_MAX, &v) && v == 0);
	ck_assert(ap_decimal_value(1, -27, &v) && v == 1e-27);
	ck_assert(ap_decimal_value(INT64_MAX, 0, &v) && v == 0x1p63);
	ck_assert(ap_decimal_value(9, 18, &v) && v == 9e18);
	v = -1;
	ck_assert(!ap_decimal_value(1, -28, &v));
	ck_assert(!ap_decimal_value(1, INT64_MIN, &v));
	ck_assert(!ap_decimal_value((uint64_t)INT64_MAX + 1, 0, &v));
	ck_assert(!ap_decimal_value((uint64_t)INT64_MAX + 1, -1, &v));
	ck_assert(!ap_decimal_value(1, 19, &v));
	ck_assert(!ap_decimal_value(1, INT64_MAX, &v));
	ck_assert(v == -1);
}
END_TEST

/* Where this locale is not installed the test still shows the C locale. */
START_TEST(no_locale_reaches_numbers)
{
	double r = 0;
	char buf[32];
	int64_t bytes;

	setlocale(LC_ALL, "de_DE.UTF-8");
	ck_assert(ap_parse_double("1.5", &r));
	ck_assert(r == 1.5);
	ck_assert(!ap_parse_double("1,5", &r));
	ck_assert_str_eq(ap_format_double(1.5, buf), "1.5");
	ck_assert_str_eq(ap_format_bytes(1536, buf), "1.50 KiB");
	ck_assert(ap_parse_bytes("1.5KB", &bytes));
	ck_assert_int_eq(bytes, 1536);
	setlocale(LC_ALL, "C");
}
END_TEST

START_TEST(format_for_people)
{
	char buf[32];

	ck_assert_str_eq(ap_format_bytes(0, buf), "0 B");
	ck_assert_str_eq(ap_format_bytes(1023, buf), "1023 B");
	ck_assert_str_eq(ap_format_bytes(1024, buf), "1.00 KiB");
	ck_assert_str_eq(ap_format_bytes(INT64_C(3) << 29, buf), "1.50 GiB");
	ck_assert_str_eq(ap_format_bytes(INT64_C(12) << 20, buf), "12.0 MiB");
	ck_assert_str_eq(ap_format_bytes(INT64_C(500) << 20, buf), "500 MiB");
	ck_assert_str_eq(ap_format_bytes(INT64_C(-12582912), buf), "-12.0 MiB");
	ck_assert_str_eq(ap_format_bytes(INT64_MAX, buf), "8.00 EiB");
	ck_assert_str_eq(ap_format_bytes(INT64_MIN, buf), "-8.00 EiB");
	ck_assert_str_eq(ap_format_bytes(10239, buf), "10.0 KiB");

	ck_assert_str_eq(ap_format_seconds(0, buf), "0 s");
	ck_assert_str_eq(ap_format_seconds(0.0123, buf), "12.3 ms");
	ck_assert_str_eq(ap_format_seconds(45e-6, buf), "45.0 us");
	ck_assert_str_eq(ap_format_seconds(1.2, buf), "1.20 s");
	ck_assert_str_eq(ap_format_seconds(0.9999, buf), "1.00 s");
	ck_assert_str_eq(ap_format_seconds(3e-9, buf), "3.00 ns");
	ck_assert_str_eq(ap_format_seconds(1234.5, buf), "1234 s");
	ck_assert_str_eq(ap_format_seconds(-0.0123, buf), "-12.3 ms");
	ck_assert_str_eq(ap_format_seconds(INFINITY, buf), "inf s");
	ck_assert_uint_lt(strlen(ap_format_seconds(1.7e308, buf)), 32);
}
END_TEST

START_TEST(quantise)
{
	ck_assert(ap_quantise_s(0, AP_QUANTUM_S) == 0);
	ck_assert(ap_quantise_s(1, AP_QUANTUM_S) == 1);
	ck_assert(ap_quantise_s(0x1p-40, AP_QUANTUM_S) == 0x1p-40);
	ck_assert(ap_quantise_s(0x1p-41, AP_QUANTUM_S) == 0); /* ties to even */
	ck_assert(ap_quantise_s(0x3p-41, AP_QUANTUM_S) == 0x1p-39);
	ck_assert(ap_quantise_s(0x1.8p-41, AP_QUANTUM_S) == 0x1p-40);
	ck_assert(ap_quantise_s(3, 2) == 4);
	ck_assert(ap_quantise_s(0x1p53 + 2, 1) == 0x1p53 + 2);
	ck_assert(isinf(ap_quantise_s(INFINITY, AP_QUANTUM_S)));
	ck_assert(ap_quantise_s(1e300, AP_QUANTUM_S) == 1e300);
	ck_assert(ap_quantise_s(0.1, AP_QUANTUM_S) != 0.1);
	ck_assert(fabs(ap_quantise_s(0.1, AP_QUANTUM_S) - 0.1) <= 0x1p-41);
	ck_assert(ap_quantise_s(ap_quantise_s(0.1, AP_QUANTUM_S), AP_QUANTUM_S) == ap_quantise_s(0.1, AP_QUANTUM_S));
}
END_TEST

START_TEST(quantised_sums_have_no_order)
{
	uint64_t state = random_seed();
	double up = 0, down = 0, v[1000];

	for (int i = 0; i < 1000; i++)
		v[i] = ap_quantise_s((double)(random_next(&state) >> 11) * 0x1p-53 * 8, AP_QUANTUM_S);
	for (int i = 0; i < 1000; i++)
		up += v[i];
	for (int i = 999; i >= 0; i--)
		down += v[i];
	ck_assert(up == down);
	ck_assert(up > 1000);
}
END_TEST
