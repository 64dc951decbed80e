/* SPDX-License-Identifier: Apache-2.0 */
/* What a stage of a pipeline holds in the course of a step, by segment. */
#include "base/file.h"
#include "base/json.h"
#include "pipeline/schedule.h"
#include "unit.h"

enum { MOST_COUNTS = 24 };

static int64_t sum_of(const int64_t *count, int64_t n)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += count[i];
	return sum;
}

static bool holds_as_much(const int64_t *a, const int64_t *b, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (a[i] < b[i])
			return false;
	return true;
}

static void take_most(int64_t *most, const int64_t *count, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		most[i] = count[i] > most[i] ? count[i] : most[i];
}

/* ---- counted elsewhere, of Megatron's order ---- */

static int64_t number(const struct ap_json *doc, const struct ap_jv *obj, const char *key)
{
	int64_t r = -1;

	ck_assert(ap_jv_int(doc, ap_jv_get(obj, key), &r));
	return r;
}

static bool is_list(const struct ap_json *doc, const struct ap_jv *v, const int64_t *count, int64_t n)
{
	const struct ap_jv *x = ap_jv_first(v);
	bool same = ap_jv_count(v) == (size_t)n;

	for (int64_t i = 0; same && i < n; i++, x = ap_jv_next(x)) {
		int64_t is = -1;

		same = ap_jv_int(doc, x, &is) && is == count[i];
	}
	return same;
}

static bool is_listed(const struct ap_json *doc, const struct ap_jv *list, const int64_t *count, int64_t n)
{
	for (const struct ap_jv *v = ap_jv_first(list); v; v = ap_jv_next(v))
		if (is_list(doc, v, count, n))
			return true;
	return false;
}

static void check_stage(const struct ap_json *doc, const struct ap_jv *v, const struct ap_pipe *pipe)
{
	int64_t stage = number(doc, v, "stage"), n = pipe->nsegment, total = 0, most[MOST_COUNTS] = {0};
	const struct ap_instants *x = &pipe->instants[stage];
	const struct ap_jv *list = ap_jv_get(v, "not_dominated");

	for (uint32_t i = 0; i < x->n; i++) {
		const int64_t *held = x->held + i * n;

		total = sum_of(held, n) > total ? sum_of(held, n) : total;
		take_most(most, held, n);
		ck_assert(ap_jv_type(list) == AP_JNULL || is_listed(doc, list, held, n));
	}
	if (ap_jv_type(list) != AP_JNULL)
		ck_assert_uint_eq(ap_jv_count(list), x->n);
	ck_assert_int_eq(total, number(doc, v, "most_held_at_once"));
	ck_assert_int_eq(sum_of(&pipe->in_flight[stage * n], n), total);
	ck_assert(is_list(doc, ap_jv_get(v, "most_held_per_segment"), most, n));
}

START_TEST(interleaved_as_counted_elsewhere)
{
	struct ap_ctx ctx = ctx_create(false);
	struct ap_json *doc;
	size_t len, cases = 0;
	char *text;

	ck_assert_int_eq(ap_file_read(&ctx, AP_SOURCE_ROOT "/tests/unit/pipeline/interleaved_in_flight.json",
		AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	ck_assert_int_eq(ap_json_parse(&ctx, "in_flight", text, len, 0, &doc), AP_OK);
	for (const struct ap_jv *c = ap_jv_first(ap_jv_get(ap_json_root(doc), "cases")); c;
			c = ap_jv_next(c), cases++) {
		struct ap_pipe pipe;

		ap_schedule_pipe(&ctx, ap_scheduler_find("interleaved"), (int32_t)number(doc, c, "stages"),
			(int32_t)number(doc, c, "segments"), number(doc, c, "micro_batches"), &pipe);
		for (const struct ap_jv *v = ap_jv_first(ap_jv_get(c, "per_stage")); v; v = ap_jv_next(v))
			check_stage(doc, v, &pipe);
		ck_assert_int_eq(sum_of(pipe.in_flight, pipe.nsegment), number(doc, c, "first_stage_formula"));
	}
	ck_assert_uint_eq(cases, 9);
	ctx_destroy(&ctx);
}
END_TEST

/* ---- counted here, pass by pass ---- */

struct states {
	int64_t n, width;
	int64_t *v; /* [n][width] held by segment, then late */
};

static struct states all_states(struct ap_ctx *ctx, const struct ap_scheduler *s, int32_t nstage,
	int32_t nsegment, int32_t stage, int64_t nmicro)
{
	const struct ap_schedule_slot *slot = s->order(ctx->arena, nstage, nsegment, stage, (int32_t)nmicro);
	struct states all = {(int64_t)ap_schedule_slots(s, nsegment, nmicro), 2 * nsegment, NULL};
	int64_t now[MOST_COUNTS] = {0};

	all.v = AP_NEW_N(ctx->arena, int64_t, all.n * all.width);
	for (int64_t i = 0; i < all.n; i++) {
		int32_t c = slot[i].segment;

		now[c] += slot[i].pass == AP_PASS_FORWARD;
		now[nsegment + c] += s->splits && slot[i].pass == AP_PASS_BACKWARD;
		memcpy(all.v + i * all.width, now, (size_t)all.width * sizeof *now);
		now[c] -= slot[i].pass == (s->splits ? AP_PASS_WEIGHT : AP_PASS_BACKWARD);
		now[nsegment + c] -= s->splits && slot[i].pass == AP_PASS_WEIGHT;
	}
	ck_assert_int_eq(sum_of(now, all.width), 0);
	return all;
}

static void join(const struct ap_instants *x, int64_t i, int64_t n, int64_t *out)
{
	memset(out, 0, 2 * (size_t)n * sizeof *out);
	memcpy(out, x->held + i * n, (size_t)n * sizeof *out);
	if (x->late)
		memcpy(out + n, x->late + i * n, (size_t)n * sizeof *out);
}

static void compare(const struct ap_instants *x, const struct states *all, int64_t n)
{
	for (int64_t i = 0; i < all->n; i++) { /* each state is covered */
		bool covered = false;

		for (int64_t k = 0; k < x->n && !covered; k++) {
			int64_t count[MOST_COUNTS];

			join(x, k, n, count);
			covered = holds_as_much(count, all->v + i * all->width, all->width);
		}
		ck_assert(covered);
	}
	for (int64_t k = 0; k < x->n; k++) { /* by one that occurs, and none by another */
		int64_t count[MOST_COUNTS], other[MOST_COUNTS];
		bool occurs = false;

		join(x, k, n, count);
		for (int64_t i = 0; i < all->n && !occurs; i++)
			occurs = memcmp(count, all->v + i * all->width, (size_t)all->width * sizeof *count) == 0;
		ck_assert(occurs);
		for (int64_t j = 0; j < x->n; j++) {
			join(x, j, n, other);
			ck_assert(j == k || !holds_as_much(other, count, all->width));
		}
	}
}

static void check_scheduler(const struct ap_scheduler *s)
{
	int32_t most = s->most_segments ? s->most_segments : 4;

	for (int32_t nstage = 1; nstage <= 6; nstage++)
		for (int32_t n = s->least_segments; n <= most; n++)
			for (int64_t m = 1; m <= 2 * nstage + 3; m++) {
				struct ap_ctx ctx = ctx_create(false);
				struct ap_pipe pipe;

				if (!s->refuses(nstage, n, m))
					ap_schedule_pipe(&ctx, s, nstage, n, m, &pipe);
				for (int32_t i = 0; i < nstage && !s->refuses(nstage, n, m); i++) {
					struct states all = all_states(&ctx, s, nstage, n, i, m);

					ck_assert_int_eq(pipe.instants[i].late != NULL, s->splits);
					compare(&pipe.instants[i], &all, n);
				}
				ctx_destroy(&ctx);
			}
}

START_TEST(every_scheduler_pass_by_pass)
{
	for (size_t i = 0; ap_scheduler_at(i); i++)
		check_scheduler(ap_scheduler_at(i));
}
END_TEST

/* Warm-up passes and one more: min(m v, 2 (p - s - 1) + (v - 1) (p + m mod p) + 1), where the rounds are of
 * p micro-batches, the first of p + m mod p, as MindSpore has it. */
START_TEST(interleaved_warm_up)
{
	struct ap_ctx ctx = ctx_create(false);

	for (int32_t p = 1; p <= 8; p++)
		for (int32_t v = 2; v <= 4; v++)
			for (int64_t m = p; m <= 4 * p; m++) {
				struct ap_pipe pipe;

				ap_schedule_pipe(&ctx, ap_scheduler_find("interleaved"), p, v, m, &pipe);
				for (int32_t s = 0; s < p; s++) {
					int64_t warm = 2 * (p - s - 1) + (v - 1) * (p + m % p) + 1;

					ck_assert_int_eq(sum_of(&pipe.in_flight[s * v], v),
						warm < m * v ? warm : m * v);
				}
			}
	ctx_destroy(&ctx);
}
END_TEST
