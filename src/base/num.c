/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <assert.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/vec.h"

bool ap_mul(int64_t a, int64_t b, int64_t *r)
{
	int64_t product;

	if (__builtin_mul_overflow(a, b, &product))
		return false;
	*r = product;
	return true;
}

bool ap_add(int64_t a, int64_t b, int64_t *r)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return false;
	*r = sum;
	return true;
}

bool ap_product(const int64_t *v, size_t n, int64_t *r)
{
	int64_t product = 1;
	bool fits = true;

	for (size_t i = 0; i < n; i++) {
		assert(v[i] >= 0);
		if (v[i] == 0) { /* even if others overflow */
			*r = 0;
			return true;
		}
		fits = fits && ap_mul(product, v[i], &product);
	}
	if (fits)
		*r = product;
	return fits;
}

int64_t ap_gcd(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a < 0 ? -a : a;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *s)
{
	while (is_digit(*s))
		s++;
	return s;
}

bool ap_parse_int(const char *s, int64_t lo, int64_t hi, int64_t *r)
{
	bool negative = lo < 0 && *s == '-';
	int64_t v = 0;

	s += negative;
	if (!is_digit(*s))
		return false;
	for (; is_digit(*s); s++) {
		int64_t digit = *s - '0';

		if (!ap_mul(v, 10, &v) || !ap_add(v, negative ? -digit : digit, &v))
			return false;
	}
	if (*s || v < lo || v > hi)
		return false;
	*r = v;
	return true;
}

/* strtod and snprintf use the locale's decimal point: switch to "C". */
struct c_locale {
	locale_t c, old; /* c is 0 if not needed */
};

static struct c_locale c_locale_enter(void)
{
	struct c_locale l = {0};

	if (strcmp(nl_langinfo(RADIXCHAR), ".") != 0)
		l.c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (l.c)
		l.old = uselocale(l.c);
	return l;
}

static void c_locale_leave(struct c_locale l)
{
	if (!l.c)
		return;
	uselocale(l.old);
	freelocale(l.c);
}

double ap_strtod(const char *s, char **end)
{
	struct c_locale l = c_locale_enter();
	double v = strtod(s, end);

	c_locale_leave(l);
	return v;
}

static void c_format(char buf[32], char style, int precision, double v, const char *unit)
{
	struct c_locale l = c_locale_enter();

	snprintf(buf, 32, style == 'g' ? "%.*g%s" : "%.*f%s", precision, v, unit);
	c_locale_leave(l);
}

/* The end of a decimal number at s; NULL if there is none. */
static const char *skip_number(const char *s)
{
	const char *digits = *s == '-' ? s + 1 : s;
	const char *end = skip_digits(digits);
	size_t count = (size_t)(end - digits);

	if (*end == '.') {
		const char *fraction = end + 1;

		end = skip_digits(fraction);
		count += (size_t)(end - fraction);
	}
	if (!count)
		return NULL;
	if (*end == 'e' || *end == 'E') {
		const char *exponent = end + 1;

		exponent += *exponent == '-' || *exponent == '+';
		if (!is_digit(*exponent))
			return NULL;
		end = skip_digits(exponent);
	}
	return end;
}

bool ap_parse_double(const char *s, double *r)
{
	const char *end = skip_number(s);
	char *read;
	double v;

	if (!end || *end)
		return false;
	v = ap_strtod(s, &read);
	if (read != end || !isfinite(v))
		return false;
	*r = v;
	return true;
}

/* Is c this letter in either case, in any locale? */
static bool is_letter(char c, char upper)
{
	return c == upper || c == upper - 'A' + 'a';
}

int ap_unit_shift(const char *unit)
{
	static const char prefixes[] = "KMGT";
	int shift = 0;

	for (int i = 0; prefixes[i]; i++)
		if (is_letter(*unit, prefixes[i]))
			shift = 10 * (i + 1);
	if (shift) {
		unit++;
		if (is_letter(*unit, 'I'))
			unit++;
	}
	if (is_letter(*unit, 'B'))
		unit++;
	return *unit ? -1 : shift;
}

bool ap_parse_bytes(const char *s, int64_t *r)
{
	const int64_t most = INT64_C(1) << 62;
	const char *end = skip_digits(s), *point = end;
	int64_t whole = 0, scale, part = 0;
	int shift;

	if (end == s)
		return false;
	if (*point == '.') {
		end = skip_digits(point + 1);
		if (end == point + 1 || !*end)
			return false;
	}
	shift = ap_unit_shift(end);
	if (shift < 0)
		return false;
	scale = INT64_C(1) << shift;
	for (; s < point; s++)
		if (!ap_mul(whole, 10, &whole) || !ap_add(whole, *s - '0', &whole))
			return false;
	if (*point == '.')
		part = (int64_t)(ap_strtod(point, NULL) * (double)scale);
	if (!ap_mul(whole, scale, &whole) || !ap_add(whole, part, &whole) || whole > most)
		return false;
	*r = whole;
	return true;
}

bool ap_parse_count(const char *s, int64_t *r)
{
	static const char units[] = "KMGT";
	const char *point = skip_digits(s), *end = point;
	int64_t v = 0;
	int zeros = 0;

	if (*point == '.')
		end = skip_digits(point + 1);
	if (point == s || (*point == '.' && end == point + 1))
		return false;
	for (int i = 0; units[i]; i++)
		if (is_letter(*end, units[i]) || (units[i] == 'G' && is_letter(*end, 'B')))
			zeros = 3 * (i + 1);
	if (zeros ? end[1] : *end)
		return false;
	while (end[-1] == '0' && end > point + 1) /* of a fraction */
		end--;
	for (; s < end; s++) {
		if (s != point && (!ap_mul(v, 10, &v) || !ap_add(v, *s - '0', &v)))
			return false;
		zeros -= s > point;
	}
	for (int i = 0; i < zeros; i++)
		if (!ap_mul(v, 10, &v))
			return false;
	if (zeros < 0 || v > INT64_C(1) << 62)
		return false;
	*r = v;
	return true;
}

static const struct {
	const char *unit;
	double seconds;
} times[] = {{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}};

bool ap_parse_time(const char *s, double *seconds)
{
	char number[64];
	size_t len = strlen(s);
	double v;

	while (len && (is_letter(s[len - 1], 'D') || (s[len - 1] >= 'f' && s[len - 1] <= 'z')))
		len--;
	if (len >= sizeof number || !is_digit(*s))
		return false;
	memcpy(number, s, len);
	number[len] = '\0';
	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		if (!strcmp(s + len, times[i].unit) && ap_parse_double(number, &v) &&
			isfinite(v * times[i].seconds)) {
			*seconds = v * times[i].seconds;
			return true;
		}
	return false;
}

const char *ap_format_time(double seconds, char buf[32])
{
	size_t i = 0;
	double v = seconds;

	while (i < sizeof times / sizeof *times) {
		v = round(seconds / times[i].seconds);
		if (v >= 1 && v < 1e9 && v * times[i].seconds == seconds)
			break;
		i++;
	}
	if (i == sizeof times / sizeof *times) {
		v = seconds;
		i = 3;
	}
	ap_format_double(v, buf);
	strcat(buf, times[i].unit);
	return buf;
}

size_t ap_primes(int64_t n, int64_t primes[63])
{
	size_t count = 0;

	assert(n >= 1);
	for (int64_t p = 2; p <= n / p; p += p == 2 ? 1 : 2)
		for (; n % p == 0; n /= p)
			primes[count++] = p;
	if (n > 1)
		primes[count++] = n;
	return count;
}

size_t ap_divisors(int64_t n, int64_t *out, size_t cap)
{
	size_t count = 0;
	int64_t d = 1;

	assert(n >= 1);
	for (; d <= n / d; d++)
		if (n % d == 0 && count++ < cap)
			out[count - 1] = d;
	while (--d >= 1)
		if (n % d == 0 && d != n / d && count++ < cap)
			out[count - 1] = n / d;
	return count;
}

const char *ap_format_double(double v, char buf[32])
{
	assert(isfinite(v));
	if (ap_decimal_double(v, buf))
		return buf;
	for (int precision = 15; precision <= 17; precision++) {
		c_format(buf, 'g', precision, v, "");
		if (ap_strtod(buf, NULL) == v)
			break;
	}
	return buf;
}

/* Formats three significant digits and a unit. */
static const char *format_unit(double v, const char *unit, char buf[32])
{
	double size = fabs(v);

	c_format(buf, 'f', size < 9.995 ? 2 : size < 99.95 ? 1 : 0, v, unit);
	return buf;
}

const char *ap_format_bytes(int64_t bytes, char buf[32])
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
	double v = (double)bytes;
	size_t unit = 0;

	for (; fabs(v) >= 1024 && unit + 1 < AP_COUNT(units); unit++)
		v /= 1024;
	if (unit)
		return format_unit(v, units[unit], buf);
	c_format(buf, 'f', 0, v, units[0]);
	return buf;
}

const char *ap_format_seconds(double s, char buf[32])
{
	double size = fabs(s);

	if (size == 0)
		return strcpy(buf, "0 s");
	if (size < 0.9995e-6)
		return format_unit(s * 1e9, " ns", buf);
	if (size < 0.9995e-3)
		return format_unit(s * 1e6, " us", buf);
	if (size < 0.9995)
		return format_unit(s * 1e3, " ms", buf);
	if (size < 1e15)
		return format_unit(s, " s", buf);
	c_format(buf, 'g', 3, s, " s");
	return buf;
}

double ap_quantise_s(double seconds, double quantum_s)
{
	assert(seconds >= 0);
	if (seconds >= 0x1p53 * quantum_s) /* already a multiple */
		return seconds;
	return rint(seconds / quantum_s) * quantum_s;
}
