/* SPDX-License-Identifier: Apache-2.0 */
/* Constants fitted: what was planted is found, among wrong measurements too; what rows do not say stays. */
#include "base/fit.h"

#include <math.h>

#include "unit.h"

enum { ROWS = 60 };

/* Steps of a machine: work at a rate, kernels that a host starts, bytes over a link. */
struct bench {
	double work[ROWS], kernels[ROWS], bytes[ROWS], measured[ROWS];
	bool is_hidden; /* the host runs beside the device: the longer of both counts */
};

static enum ap_status predict(void *user, const double *c, double *out)
{
	const struct bench *b = user;

	for (size_t i = 0; i < ROWS; i++) {
		double device = b->work[i] / c[0] + b->bytes[i] / c[2], host = b->kernels[i] * c[1];

		out[i] = b->is_hidden ? fmax(device, host) : device + host;
	}
	return AP_OK;
}

static void make(struct bench *b, uint64_t seed, const double *planted)
{
	uint64_t state = seed;

	for (size_t i = 0; i < ROWS; i++) {
		double *to[] = {&b->work[i], &b->kernels[i], &b->bytes[i]};
		static const double least[] = {1e13, 1e4, 1e8};

		for (size_t k = 0; k < AP_COUNT(to); k++)
			*to[k] = least[k] * exp((double)(random_next(&state) % 1000) / 1000 * 4);
	}
	predict(b, planted, b->measured);
}

static struct ap_fit problem(struct bench *b, struct ap_fit_constant *constants)
{
	const struct ap_fit_constant c[] = {{1e12, 1e15, 3e13, 0}, {1e-7, 1e-3, 2e-6, 0},
		{1e8, 1e12, 1e11, 0}};

	memcpy(constants, c, sizeof c);
	return (struct ap_fit){.constant = constants, .nconstant = AP_COUNT(c), .measured = b->measured,
		.nrow = ROWS, .predict = predict, .user = b};
}

/* Of 60 rows of a sum a fifth is measured wrong by half or more, always too slow: the others decide. */
START_TEST(planted_constants_are_found)
{
	uint64_t seed = random_seed();

	for (int round = 0; round < 40; round++) {
		double planted[3] = {1e14, 2e-5, 2e10};
		struct ap_fit_constant constants[3];
		struct ap_ctx ctx = ctx_create(false);
		struct bench b = {.is_hidden = round % 2};
		struct ap_fit_result r;
		struct ap_fit fit;

		for (size_t c = 0; c < AP_COUNT(planted); c++)
			planted[c] *= exp((double)(random_next(&seed) % 1000) / 500 - 1);
		make(&b, random_next(&seed), planted);
		for (size_t i = 0; round % 4 == 2 && i < ROWS; i += 5)
			b.measured[i] *= 1.5 + (double)(i % 3);
		fit = problem(&b, constants);
		for (size_t c = 0; b.is_hidden && c < AP_COUNT(planted); c++) /* to be seen */
			constants[c].value = planted[c] * (c == 1 ? 0.6 : 1.3);
		ck_assert_int_eq(ap_fit_least(&ctx, &fit, &r), AP_OK);
		for (size_t c = 0; c < AP_COUNT(planted); c++)
			ck_assert_msg(fabs(r.value[c] / planted[c] - 1) < 2e-3,
				"round %d: constant %zu is %g of %g", round, c, r.value[c], planted[c]);
		ck_assert_double_le(r.error, r.before);
		ck_assert_int_le(r.evaluations, 160);
		ctx_destroy(&ctx);
	}
}
END_TEST

START_TEST(the_same_problem_gives_the_same_bits)
{
	const double planted[] = {1e14, 2e-5, 2e10};
	struct ap_fit_constant constants[3];
	struct ap_ctx ctx = ctx_create(false);
	struct ap_fit_result a = {0}, b = {0};
	struct bench bench = {0};
	struct ap_fit fit;

	make(&bench, 7, planted);
	for (size_t i = 0; i < ROWS; i++)
		bench.measured[i] *= 1 + 0.1 * sin((double)i);
	fit = problem(&bench, constants);
	ck_assert_int_eq(ap_fit_least(&ctx, &fit, &a), AP_OK);
	ck_assert_int_eq(ap_fit_least(&ctx, &fit, &b), AP_OK);
	ck_assert_mem_eq(a.value, b.value, 3 * sizeof *a.value);
	ck_assert_int_eq(a.evaluations, b.evaluations);
	ck_assert_double_eq(a.error, b.error);
	ctx_destroy(&ctx);
}
END_TEST

/* No other constants near the ones found are better: tried along each and along pairs. */
START_TEST(nothing_nearby_is_better)
{
	uint64_t seed = random_seed();

	for (int round = 0; round < 20; round++) {
		const double planted[] = {1e14, 2e-5, 2e10};
		struct ap_fit_constant constants[3];
		struct ap_ctx ctx = ctx_create(false);
		struct bench b = {.is_hidden = round % 2};
		double predicted[ROWS];
		struct ap_fit_result r;
		struct ap_fit fit;

		make(&b, random_next(&seed), planted);
		for (size_t i = 0; i < ROWS; i++)
			b.measured[i] *= exp((double)(random_next(&seed) % 1000) / 2500 - 0.2);
		fit = problem(&b, constants);
		ck_assert_int_eq(ap_fit_least(&ctx, &fit, &r), AP_OK);
		predict(&b, r.value, predicted);
		ck_assert_double_eq_tol(ap_fit_error(b.measured, predicted, NULL, ROWS), r.error, 1e-12);
		for (int k = 0; k < 200; k++) {
			double value[3];

			for (size_t c = 0; c < AP_COUNT(value); c++)
				value[c] = r.value[c] *
					exp(((double)(random_next(&seed) % 1000) / 1000 - 0.5) * 0.2);
			predict(&b, value, predicted);
			ck_assert_double_ge(ap_fit_error(b.measured, predicted, NULL, ROWS),
				r.error * (1 - 1e-2));
		}
		ctx_destroy(&ctx);
	}
}
END_TEST

/* A constant at its bound, one on which nothing depends, rows of no weight, and one that is dear to move. */
START_TEST(bounds_weights_and_what_stays)
{
	const double planted[] = {1e14, 2e-5, 2e10};
	struct ap_fit_constant constants[3];
	struct ap_ctx ctx = ctx_create(false);
	struct ap_fit_result r;
	double weight[ROWS];
	struct bench b = {0};
	struct ap_fit fit;

	make(&b, 3, planted);
	fit = problem(&b, constants);
	constants[2].from = constants[2].value = 5e10;
	ck_assert_int_eq(ap_fit_least(&ctx, &fit, &r), AP_OK);
	ck_assert_double_eq_tol(r.value[2], 5e10, 1);

	fit = problem(&b, constants);
	for (size_t i = 0; i < ROWS; i++) {
		weight[i] = (double)(i % 2);
		b.measured[i] *= i % 2 ? 1 : 100;
	}
	fit.weight = weight;
	ck_assert_int_eq(ap_fit_least(&ctx, &fit, &r), AP_OK);
	for (size_t c = 0; c < AP_COUNT(planted); c++)
		ck_assert_double_eq_tol(r.value[c] / planted[c], 1, 2e-3);

	memset(b.kernels, 0, sizeof b.kernels);
	predict(&b, planted, b.measured);
	fit = problem(&b, constants);
	ck_assert_int_eq(ap_fit_least(&ctx, &fit, &r), AP_OK);
	ck_assert_double_eq_tol(r.value[1], 2e-6, 1e-18);
	ck_assert_double_eq_tol(r.value[0] / planted[0], 1, 2e-3);

	constants[0].stay = 1000;
	ck_assert_int_eq(ap_fit_least(&ctx, &fit, &r), AP_OK);
	ck_assert_double_eq_tol(r.value[0] / 3e13, 1, 1e-9);

	fit.nrow = 0; /* nothing was measured: nothing moves */
	ck_assert_int_eq(ap_fit_least(&ctx, &fit, &r), AP_OK);
	ck_assert_double_eq_tol(r.value[2] / 1e11, 1, 1e-9);
	ctx_destroy(&ctx);
}
END_TEST
