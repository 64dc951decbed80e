/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over the links between two plans, worked out by hand. */
#include "base/vec.h"
#include "diff_test.h"

#define LEVELS "\"levels\":[{\"name\":\"near\",\"span\":4,\"bandwidth_Bps\":1000,\"efficiency\":0.5," \
	"\"latency_s\":0.25},{\"name\":\"far\",\"span\":8,\"bandwidth_Bps\":100,\"efficiency\":1,\"latency_s\":2}]"

#define LYING(name, map, slice, shards, group) \
	"{\"name\":\"" name "\",\"dtype\":\"float16\",\"trainable\":true,\"dev_matrix\":[8]," \
	"\"tensor_map\":" map ",\"tensor_shape\":[64,32],\"slice_shape\":" slice "," \
	"\"optimizer_shards\":" shards ",\"optimizer_group\":" group ",\"opt_weight_shard_step\":0," \
	"\"opt_weight_shard_size\":0}"

#define CUT(name) LYING(name, "[0,-1]", "[8,32]", "1", "null")
#define COLUMNS(name) LYING(name, "[-1,0]", "[64,4]", "1", "null")
#define WHOLE(name) LYING(name, "[-1,-1]", "[64,32]", "1", "null")
#define DEALT(name) LYING(name, "[-1,-1]", "[64,32]", "8", "{\"axes\":[[1,8]],\"ranks\":[0]}")

/* A plan on 8 devices in two blocks of four. */
static void read_plan(struct ap_ctx *ctx, const char *params, const char *optimizer, struct ap_saved *out)
{
	struct plan_spec spec = {.params = params,
		.settings = ap_arena_printf(ctx->arena, "\"optimizer\":\"%s\"", optimizer)};
	const char *text = plan_text(ctx, &spec), *from = strstr(text, "\"levels\""), *to = strchr(from, ']');

	text = ap_arena_printf(ctx->arena, "%.*s%s%s", (int)(from - text), text, LEVELS, to + 1);
	ck_assert_int_eq(read_text(ctx, text, out), AP_OK);
}

static struct ap_transfer transfer(struct ap_ctx *ctx, const char *was, const char *old_optimizer, const char *is,
	const char *optimizer)
{
	struct ap_saved a, b;
	struct ap_transfer t;
	struct ap_diff d;

	read_plan(ctx, was, old_optimizer, &a);
	read_plan(ctx, is, optimizer, &b);
	ap_diff_make(ctx, &a, &b, &d);
	ap_transfer_make(ctx, &a, &b, d.old_param, &t);
	return t;
}

static bool near(double a, double b)
{
	return a - b < 1e-12 * b && b - a < 1e-12 * b;
}

START_TEST(test_gather)
{
	struct ap_ctx ctx = new_ctx();
	/* 2 bytes of the weight, two states of 4: each rank has 8 x 32 x 10 = 2560 bytes of 20480 */
	struct ap_transfer t = transfer(&ctx, CUT("w"), "adam", WHOLE("w"), "adam");

	ck_assert(t.states);
	ck_assert_uint_eq(t.nparam, 1);
	ck_assert_int_eq(t.nlink, 2);
	ck_assert_str_eq(t.link[0].name, "near");
	ck_assert_int_eq(t.stays_bytes, 8 * 2560);
	ck_assert_int_eq(t.link[0].bytes, 8 * 3 * 2560);
	ck_assert_int_eq(t.link[0].most_bytes, 3 * 2560);
	ck_assert_int_eq(t.link[1].bytes, 8 * 4 * 2560);
	ck_assert_int_eq(t.link[1].most_bytes, 4 * 2560);
	ck_assert(near(t.link[0].time_s, 0.25 + 3 * 2560 / 500.0));
	ck_assert(near(t.link[1].time_s, 2 + 4 * 2560 / 100.0));
	ck_assert(near(t.time_s, t.link[0].time_s + t.link[1].time_s));
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_stays)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_transfer t = transfer(&ctx, WHOLE("w") "," CUT("v"), "adam", DEALT("w") "," CUT("v"), "adam");

	ck_assert_int_eq(t.stays_bytes, 2 * 8 * 2560);
	ck_assert_int_eq(t.link[0].bytes + t.link[1].bytes, 0);
	ck_assert(t.time_s == 0);
	/* rows that are dealt lie as rows that are cut */
	t = transfer(&ctx, DEALT("w"), "adam", CUT("w"), "adam");
	ck_assert_int_eq(t.stays_bytes, 8 * 2560);
	ck_assert(t.time_s == 0);
	free_ctx(&ctx);
}
END_TEST

#define PARTS(part) \
	"{\"name\":\"w\",\"dtype\":\"float16\",\"trainable\":true,\"dev_matrix\":[8],\"tensor_map\":[-1,-1]," \
	"\"tensor_shape\":[10,32],\"slice_shape\":[10,32],\"optimizer_shards\":8," part "\"optimizer_group\":" \
	"{\"axes\":[[1,8]],\"ranks\":[0]},\"opt_weight_shard_step\":1,\"opt_weight_shard_size\":-1}"

/* Ten rows of 32 numbers, 10 bytes each. Two rows a rank, the last three have none; or 40 numbers, of which 1, 1,
 * 1, 2, 1, 1, 1 and 2 rows are counted. */
START_TEST(test_rows_that_do_not_divide)
{
	static const char padded[] = PARTS("\"optimizer_part\":64,"), flat[] = PARTS("\"optimizer_part\":40,");
	struct ap_ctx ctx = new_ctx();
	struct ap_transfer t = transfer(&ctx, padded, "adam", padded, "adam");

	ck_assert_uint_eq(t.nparam, 1);
	ck_assert_int_eq(t.stays_bytes, 10 * 320);
	ck_assert(t.time_s == 0);
	t = transfer(&ctx, flat, "adam", flat, "adam");
	ck_assert_int_eq(t.stays_bytes, 10 * 320);
	ck_assert(t.time_s == 0);
	/* rank 0 has rows 0 and 1, then row 0; no other has a row that it had */
	t = transfer(&ctx, padded, "adam", flat, "adam");
	ck_assert_int_eq(t.stays_bytes, 10 * 32);
	ck_assert_int_eq(t.link[0].bytes + t.link[1].bytes, 9 * 10 * 32);
	/* within a block: rows 1 to 4 from ranks 0 to 2 to ranks 1 to 3, rows 8 and 9 from rank 4 to rank 7 */
	ck_assert_int_eq(t.link[0].bytes, (4 + 2) * 10 * 32);
	t = transfer(&ctx, PARTS(""), "adam", flat, "adam"); /* of rows that do not divide */
	ck_assert_uint_eq(t.nodd, 1);
	t = transfer(&ctx, PARTS("\"optimizer_part\":39,"), "adam", flat, "adam"); /* 312 of 320 numbers */
	ck_assert_uint_eq(t.nodd, 1);
	t = transfer(&ctx, PARTS("\"optimizer_part\":9223372036854775807,"), "adam", flat, "adam");
	ck_assert_uint_eq(t.nodd, 1);
	free_ctx(&ctx);
}
END_TEST

/* Other states are begun anew; a rank keeps an eighth of its rows when columns are cut. */
START_TEST(test_states)
{
	struct ap_ctx ctx = new_ctx();
	struct ap_transfer t = transfer(&ctx, CUT("w"), "adam", COLUMNS("w"), "lamb");

	ck_assert(!t.states);
	ck_assert_int_eq(t.stays_bytes, 8 * 8 * 4 * 2);
	ck_assert_int_eq(t.link[0].bytes, 8 * 3 * 8 * 4 * 2);
	ck_assert_int_eq(t.link[1].bytes, 8 * 4 * 8 * 4 * 2);
	free_ctx(&ctx);
}
END_TEST

START_TEST(test_new_and_odd)
{
	static const char *const odd[] = {
		LYING("w", "[1,-1]", "[8,32]", "1", "null"), /* no such axis */
		LYING("w", "[0,-1]", "[16,32]", "1", "null"), /* another slice than the map tells */
		LYING("w", "[0,0]", "[8,4]", "1", "null"), /* an axis twice */
		LYING("w", "[0,-1]", "[8,32]", "8", "{\"axes\":[[1,8]],\"ranks\":[0]}"), /* cut and dealt by it */
		LYING("w", "[-1,-1]", "[64,32]", "4", "{\"axes\":[[1,8]],\"ranks\":[0]}"), /* another number */
		LYING("w", "[-1,-1]", "[64,32]", "8", "{\"axes\":[[3,8]],\"ranks\":[0]}"), /* beyond the ranks */
	};
	struct ap_ctx ctx = new_ctx();
	struct ap_transfer t = transfer(&ctx, CUT("w"), "adam", CUT("w") "," CUT("v"), "adam");

	ck_assert_uint_eq(t.nparam, 1);
	ck_assert_uint_eq(t.nnew, 1);
	for (size_t i = 0; i < AP_COUNT(odd); i++) {
		t = transfer(&ctx, odd[i], "adam", CUT("w"), "adam");
		ck_assert_msg(t.nodd == 1 && !t.nparam && t.time_s == 0, "%s", odd[i]);
	}
	free_ctx(&ctx);
}
END_TEST
