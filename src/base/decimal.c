/* SPDX-License-Identifier: Apache-2.0 */
/* A double is m 2^e with an integer m, and m 2^e 10^k = m 5^k / 2^s with s = -(e + k). If k is
 * chosen to give 17 digits before the point, m 5^k fits in two words for all usual sizes. So the
 * digits, their rounding errors, and whether a rounded number reads back (it is nearer to v than
 * half the distance to v's neighbours, 5^k / 2) are exact. Reading divides by 5^k; the remainder
 * decides the rounding. */
#include "base/decimal.h"

#include <math.h>
#include <string.h>

enum { DIGITS = 17, MANTISSA_BITS = 52, EXPONENT_BIAS = 1075, MOST_K = 27, MOST_S = 60 };

#define TEN_16 UINT64_C(10000000000000000)
#define TEN_17 UINT64_C(100000000000000000)

static const uint64_t fives[MOST_K + 1] = { /* powers of five */
	1, 5, 25, 125, 625, 3125, 15625, 78125, 390625, 1953125, 9765625, 48828125, 244140625,
	1220703125, UINT64_C(6103515625), UINT64_C(30517578125), UINT64_C(152587890625),
	UINT64_C(762939453125), UINT64_C(3814697265625), UINT64_C(19073486328125),
	UINT64_C(95367431640625), UINT64_C(476837158203125), UINT64_C(2384185791015625),
	UINT64_C(11920928955078125), UINT64_C(59604644775390625), UINT64_C(298023223876953125),
	UINT64_C(1490116119384765625), UINT64_C(7450580596923828125),
};

struct scaled { /* (digits + rest / 2^s) 10^-k */
	uint64_t digits, rest, five; /* five: 5^k */
	int k, s;
};

size_t ap_decimal_int(int64_t v, char buf[24])
{
	uint64_t left = v < 0 ? -(uint64_t)v : (uint64_t)v;
	char text[24], *at = text + sizeof text;
	size_t len;

	*--at = '\0';
	do
		*--at = (char)('0' + left % 10);
	while (left /= 10);
	if (v < 0)
		*--at = '-';
	len = (size_t)(text + sizeof text - at) - 1;
	memcpy(buf, at, len + 1);
	return len;
}

/* m 5^k, shifted right by s. */
static void scale(uint64_t m, struct scaled *d)
{
	uint64_t a = m >> 32, b = m & UINT32_MAX, c = d->five >> 32, e = d->five & UINT32_MAX;
	uint64_t low = b * e, mid = a * e + (low >> 32), high = a * c;
	uint64_t cross = b * c + (mid & UINT32_MAX);

	high += (mid >> 32) + (cross >> 32);
	low = cross << 32 | (low & UINT32_MAX);
	d->digits = high << (64 - d->s) | low >> d->s;
	d->rest = low & ((UINT64_C(1) << d->s) - 1);
}

/* Returns the integer part of high 2^64 / by, 32 bits at a time; `by` has its top bit set, high <
 * by. *rest: remainder. Estimates from the upper half of `by` are at most two too large. */
static uint64_t divide(uint64_t high, uint64_t by, uint64_t *rest)
{
	uint64_t upper = by >> 32, lower = by & UINT32_MAX, quotient = 0;

	for (int i = 0; i < 2; i++) {
		uint64_t digit = high / upper, left = high % upper;

		while (!(left >> 32) && (digit >> 32 || digit * lower > left << 32)) {
			digit--;
			left += upper;
		}
		high = (left << 32) - digit * lower;
		quotient = quotient << 32 | digit;
	}
	*rest = high;
	return quotient;
}

/* digits / 10^k: the quotient by 5^k to 62 bits or more, and its remainder, decide the rounding. */
static double quotient_of(uint64_t digits, int k)
{
	int up = __builtin_clzll(digits) - 1, up_five = 63 - (k * 1189 >> 9); /* log2 5 = 1189 / 512 */
	uint64_t rest, q = divide(digits << up, fives[k] << up_five, &rest);
	int drop = q >> 63 ? 11 : 10;
	uint64_t half = UINT64_C(1) << (drop - 1), over = q & (2 * half - 1), kept = q >> drop;

	kept += over > half || (over == half && (rest || kept % 2));
	return ldexp((double)kept, drop + up_five - up - k - 64);
}

bool ap_decimal_value(uint64_t digits, int64_t power, double *r)
{
	for (; power > 0 && digits <= INT64_MAX / 10 && digits; power--)
		digits *= 10;
	if (digits > INT64_MAX || (digits && (power > 0 || power < -MOST_K)))
		return false;
	*r = digits && power ? quotient_of(digits, (int)-power) : (double)(int64_t)digits;
	return true;
}

/* Scales m 2^e to 17 digits. */
static bool find_digits(uint64_t m, int e, struct scaled *d)
{
	/* 78913 / 2^18 is log10 2; may be one less than v's; avoids shifting negative numbers */
	int power = (int)(((int64_t)(e + MANTISSA_BITS) * 78913 + ((int64_t)1 << 40)) >> 18) -
		(1 << 22);

	for (d->k = DIGITS - 1 - power;; d->k--) {
		d->s = -(e + d->k);
		if (d->k < 1 || d->k > MOST_K || d->s < 1 || d->s > MOST_S)
			return false;
		d->five = fives[d->k];
		scale(m, d);
		if (d->digits < TEN_17)
			return d->digits >= TEN_16;
	}
}

/* Rounds to a multiple of unit, half to even. Does the result read back? */
static bool round_digits(const struct scaled *d, uint64_t unit, uint64_t *out)
{
	uint64_t down = d->digits / unit * unit, over = d->digits - down, away;
	uint64_t half = unit == 1 ? UINT64_C(1) << (d->s - 1) : unit / 2;
	uint64_t had = unit == 1 ? d->rest : over;
	bool tie = had == half && (unit == 1 || !d->rest);
	bool up = tie ? down / unit % 2 : had >= half;

	*out = up ? down + unit : down;
	away = up ? unit - over : over;
	if (away > (d->five / 2 >> d->s) + 1) /* also prevents overflow below */
		return false;
	away <<= d->s;
	return (up ? away - d->rest : away + d->rest) <= d->five / 2;
}

/* Writes `precision` of 17 digits like %g: without trailing zeros. */
static void put_digits(uint64_t digits, int power, int precision, char *buf)
{
	char text[24];
	size_t n = ap_decimal_int((int64_t)digits, text);
	bool scientific = power < -4 || power >= precision;
	size_t whole = scientific ? 1 : power < 0 ? 0 : (size_t)power + 1;

	while (n > 1 && text[n - 1] == '0')
		n--;
	if (!whole) {
		memcpy(buf, "0.000", 6);
		buf += 1 - power;
	}
	for (size_t i = 0; i < n || i < whole; i++) {
		if (i == whole && i)
			*buf++ = '.';
		*buf++ = i < n ? text[i] : '0';
	}
	if (scientific) {
		*buf++ = 'e';
		*buf++ = power < 0 ? '-' : '+';
		power = power < 0 ? -power : power;
		*buf++ = (char)('0' + power / 10);
		*buf++ = (char)('0' + power % 10);
	}
	*buf = '\0';
}

bool ap_decimal_double(double v, char buf[32])
{
	double size = v < 0 ? -v : v;
	uint64_t bits, digits, unit = 100;
	int precision = 15;
	struct scaled d;

	if (!(size >= 1e-10 && size < 1e15)) {
		if (v != 0 || 1 / v < 0)
			return false;
		memcpy(buf, "0", 2);
		return true;
	}
	if (size == (double)(int64_t)size) {
		ap_decimal_int((int64_t)v, buf);
		return true;
	}
	memcpy(&bits, &size, sizeof bits);
	if (!(bits << (64 - MANTISSA_BITS)))
		return false; /* its lower neighbour is closer */
	if (!find_digits((bits & ((UINT64_C(1) << MANTISSA_BITS) - 1)) |
			UINT64_C(1) << MANTISSA_BITS, (int)(bits >> MANTISSA_BITS) - EXPONENT_BIAS, &d))
		return false;
	while (!round_digits(&d, unit, &digits) && unit > 1) {
		unit /= 10;
		precision++;
	}
	if (digits == TEN_17) {
		digits = TEN_16;
		d.k--;
	}
	if (v < 0)
		*buf++ = '-';
	put_digits(digits, DIGITS - 1 - d.k, precision, buf);
	return true;
}
