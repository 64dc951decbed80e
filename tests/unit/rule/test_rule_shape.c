/* SPDX-License-Identifier: Apache-2.0 */
/* Reshapes at random: factors of both sides must say the same about every element. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "harness.h"
#include "rule_fixture.h"

static uint64_t seed_of(void)
{
	const char *s = getenv("AP_SEED");
	uint64_t seed = s ? strtoull(s, NULL, 10) : 20240607;

	printf("AP_SEED=%" PRIu64 "\n", seed);
	return seed | 1;
}

static uint32_t draw(uint64_t *state, uint32_t n)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32) % n;
}

/* A shape with the product of the given factors: neighbours merged at random, ones put between. */
static uint8_t merge(uint64_t *rng, const int64_t *factor, int n, int64_t *dim)
{
	uint8_t rank = 0;

	for (int i = 0; i < n; i++) {
		if (rank > 0 && (rank == AP_MAX_RANK || draw(rng, 2)))
			dim[rank - 1] *= factor[i];
		else
			dim[rank++] = factor[i];
	}
	if (rank < AP_MAX_RANK && draw(rng, 3) == 0)
		dim[rank++] = 1;
	return rank;
}

static const char *shape_text(const int64_t *dim, uint8_t rank)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (uint8_t i = 0; i < rank; i++)
		ap_str_addf(&s, "%s%" PRId64, i ? "," : "", dim[i]);
	return s.s;
}

/* Sizes of the factors of a side, in order; -1 and the length for a dimension that stays whole. */
static int side(const struct ap_bound *b, const struct ap_operand *o, uint8_t *order)
{
	int n = 0;

	for (uint8_t i = 0; i < o->rank; i++) {
		int64_t size = 1;

		for (uint8_t k = 0; k < o->dim[i].n; k++) {
			size *= b->factor[o->dim[i].factor[k]].size;
			order[n++] = o->dim[i].factor[k];
		}
		ck_assert_msg(o->dim[i].n == 0 || size == o->size[i], "dimension %d of %s", i,
			shape_text(o->size, o->rank));
	}
	return n;
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

/* Where both sides merge the same factors, all dimensions can be cut, and the factors stand in the
 * same order on both sides: row-major indices then agree. */
START_TEST(refinable_shapes_are_factored_whole)
{
	static const int64_t sizes[] = {1, 2, 2, 3, 4, 5, 7, 12};
	uint64_t rng = seed_of();

	for (int round = 0; round < 2000; round++) {
		int64_t factor[7], in[AP_MAX_RANK], out[AP_MAX_RANK];
		uint8_t x[32], y[32], rin, rout;
		int n = 1 + (int)draw(&rng, 7), nx, ny;
		struct ap_bound b;
		char shapes[128], attrs[128];

		for (int i = 0; i < n; i++)
			factor[i] = sizes[draw(&rng, 8)];
		rin = merge(&rng, factor, n, in);
		rout = merge(&rng, factor, n, out);
		snprintf(shapes, sizeof shapes, "float16[%s]", shape_text(in, rin));
		snprintf(attrs, sizeof attrs, "shape=%s", shape_text(out, rout));
		b = bind_ok("Reshape", shapes, attrs, "");
		nx = side(&b, &b.in[0], x);
		ny = side(&b, &b.out[0], y);
		ck_assert_int_eq(nx, ny);
		ck_assert_int_eq(nx, b.nfactor);
		ck_assert_mem_eq(x, y, (size_t)nx);
		for (uint8_t i = 0; i < rin; i++)
			ck_assert_msg((b.in[0].dim[i].n > 0) == (in[i] > 1), "%s %s", shapes,
				attrs);
	}
}
END_TEST

static int64_t whole_part(const struct ap_operand *o)
{
	int64_t n = 1;

	for (uint8_t i = 0; i < o->rank; i++)
		n *= o->dim[i].n == 0 ? o->size[i] : 1;
	return n;
}

/* Any two shapes of one element count: never a wrong factor; what cannot be factored stays whole on
 * both sides. */
START_TEST(other_shapes_keep_order_and_wholes)
{
	uint64_t rng = seed_of();

	for (int round = 0; round < 2000; round++) {
		int64_t factor[8], in[AP_MAX_RANK], out[AP_MAX_RANK];
		static const int64_t primes[] = {2, 2, 3, 3, 5};
		uint8_t x[32], y[32], rin, rout;
		int n = 2 + (int)draw(&rng, 6), nx, ny;
		struct ap_bound b;
		char shapes[128], attrs[128];

		for (int i = 0; i < n; i++)
			factor[i] = primes[draw(&rng, 5)];
		rin = merge(&rng, factor, n, in);
		for (int i = n - 1; i > 0; i--) {
			uint32_t k = draw(&rng, (uint32_t)i + 1);
			int64_t t = factor[i];

			factor[i] = factor[k];
			factor[k] = t;
		}
		rout = merge(&rng, factor, n, out);
		snprintf(shapes, sizeof shapes, "float16[%s]", shape_text(in, rin));
		snprintf(attrs, sizeof attrs, "shape=%s", shape_text(out, rout));
		b = bind_ok("Reshape", shapes, attrs, "");
		nx = side(&b, &b.in[0], x);
		ny = side(&b, &b.out[0], y);
		ck_assert_int_eq(nx, ny);
		ck_assert_mem_eq(x, y, (size_t)nx);
		ck_assert_int_eq(whole_part(&b.in[0]), whole_part(&b.out[0]));
	}
}
END_TEST
