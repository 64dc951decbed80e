/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/vec.h"
#include "hw/hccl.h"

#include "hw_test.h"

TEST_FIXTURE(setup, teardown)

START_TEST(counts_that_hccl_takes_on_910)
{
	static const struct {
		int64_t ndev, per_server;
		bool legal;
	} rows[] = {
		{1, 8, true}, {2, 8, true}, {3, 8, false}, {4, 8, true}, {5, 8, false}, {6, 8, false},
		{7, 8, false}, {8, 8, true}, {9, 9, false}, {12, 12, false}, {16, 16, false},
		{16, 8, true}, {24, 8, true}, {1000, 8, true}, {4096, 8, true}, {12, 8, false},
		{13, 8, false}, {8, 4, false}, {4, 2, false}, {2, 1, false},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_topo *t = make_topo(rows[i].ndev, rows[i].per_server);

		ctx.diag = ap_diag_create(ctx.arena, false);
		ck_assert_msg((ap_hccl_check(&ctx, t, "910", false) == AP_OK) == rows[i].legal,
			"%" PRId64 " cards, %" PRId64 " a server", rows[i].ndev, rows[i].per_server);
		ck_assert_int_eq(said(AP_ERROR, "hccl-cards") > 0, !rows[i].legal);
		ck_assert_int_eq(ap_hccl_check(&ctx, t, "910", true), AP_OK);
		ck_assert_int_eq(said(AP_WARNING, "hccl-cards") > 0, !rows[i].legal);
	}
}
END_TEST

/* Does HCCL take this set of devices (a bit each) on one server? */
static bool takes(const char *family, unsigned ids)
{
	static const char *const server[] = {"a"};
	struct ap_place place[16] = {{0}};
	uint32_t n = 0, first = 0;
	struct ap_topo t = {
		.name = "", .nserver = 1, .server = server, .first = &first, .place = place};

	for (int id = 0; id < 16; id++)
		if (ids >> id & 1) {
			place[n] = (struct ap_place){.device_id = id, .next = n + 1};
			n++;
		}
	place[n - 1].next = AP_NONE;
	t.ndev = n;
	return ap_hccl_check(&ctx, &t, family, false) == AP_OK;
}

static int bits(unsigned ids)
{
	int n = 0;

	for (; ids; ids &= ids - 1)
		n++;
	return n;
}

/* The 255 sets of a server: eight of four, the pairs inside a group, any one, and all. */
START_TEST(sets_on_910)
{
	static const unsigned fours[] = {0x0F, 0xF0, 0x33, 0x55, 0x99, 0x66, 0xAA, 0xCC};
	int taken[9] = {0};

	for (unsigned ids = 1; ids < 256; ids++)
		taken[bits(ids)] += takes("910", ids);
	for (size_t i = 0; i < AP_COUNT(fours); i++)
		ck_assert(takes("910", fours[i]));
	ck_assert_int_eq(taken[1], 8);
	ck_assert_int_eq(taken[2], 12); /* six in each group */
	ck_assert_int_eq(taken[4], 8);
	ck_assert_int_eq(taken[8], 1);
	ck_assert_int_eq(taken[3] + taken[5] + taken[6] + taken[7], 0);
	ck_assert(!takes("910", 0x100)); /* there is no device 8 */
}
END_TEST

/* Of the 65,535 sets of a server of two modules: any of one, or the same of both. */
START_TEST(sets_on_910b)
{
	int taken = 0;

	for (unsigned ids = 1; ids < 65536; ids++)
		taken += takes("910b", ids);
	ck_assert_int_eq(taken, 255 + 255 + 255);
	ck_assert(takes("910b", 0x00E0));
	ck_assert(takes("910b", 0x2121));
	ck_assert(!takes("910b", 0x2221)); /* three, one of them without its partner */
	ck_assert(!takes("910b", 0x4121)); /* two and two, but others */
}
END_TEST

/* One device, or whole NPUs. */
START_TEST(sets_on_a3)
{
	int taken[17] = {0};

	for (unsigned ids = 1; ids < 65536; ids++)
		taken[bits(ids)] += takes("910_93", ids);
	ck_assert_int_eq(taken[1], 16);
	for (int n = 3; n < 16; n += 2)
		ck_assert_int_eq(taken[n], 0);
	ck_assert_int_eq(taken[2], 8); /* of eight NPUs, one */
	ck_assert_int_eq(taken[4], 28);
	ck_assert_int_eq(taken[6], 56);
	ck_assert_int_eq(taken[8], 70);
	ck_assert_int_eq(taken[16], 1);
}
END_TEST

START_TEST(rules_hold_for_their_family_only)
{
	const struct ap_topo *t = make_topo(12, 9); /* nine and three */

	ck_assert_int_eq(ap_hccl_check(&ctx, t, "", false), AP_OK);
	ck_assert_int_eq(said(AP_ERROR, NULL), 0);
	ck_assert_int_eq(ap_hccl_check(&ctx, t, "910b", false), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "hccl-module"), 1);
	ck_assert_int_eq(ap_hccl_check(&ctx, t, "910_93", false), AP_MEANING);
	ck_assert_int_eq(said(AP_ERROR, "hccl-cards"), 2);
	ck_assert(ap_hccl_known("910") && ap_hccl_known("910b") && ap_hccl_known("910_93"));
	ck_assert(!ap_hccl_known("") && !ap_hccl_known("910B"));
}
END_TEST

START_TEST(messages_name_server_and_devices)
{
	static const struct {
		const char *family, *check, *text;
		unsigned ids;
	} rows[] = {
		{"910", "hccl-group",
			"server \"a\": device ids 3, 4; HCCL on Ascend 910 takes two inside 0-3 or "
			"inside 4-7",
			0x18},
		{"910", "hccl-group",
			"server \"a\": device ids 0, 1, 2, 4; HCCL on Ascend 910 takes 0-3, 4-7, or "
			"two pairs i and i + 4",
			0x17},
		{"910", "hccl-device-id",
			"server \"a\": device ids 0, 9; a server of Ascend 910 has 0 to 7", 0x201},
		{"910", "hccl-cards",
			"server \"a\": 3 cards; HCCL on Ascend 910 takes 1, 2, 4 or 8 on one server",
			0x07},
		{"910b", "hccl-module",
			"server \"a\": device ids 0, 9; HCCL on Ascend 910B takes devices of both "
			"modules, 0-7 and 8-15, only in pairs i and i + 8",
			0x201},
		{"910_93", "hccl-pair",
			"server \"a\": device ids 1, 2; HCCL on Atlas A3 takes both devices, 2 i and "
			"2 i + 1, of each NPU",
			0x06},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const char *check;

		ctx.diag = ap_diag_create(ctx.arena, false);
		ck_assert(!takes(rows[i].family, rows[i].ids));
		ck_assert_str_eq(ap_diag_text(ctx.diag, 0, NULL, &check), rows[i].text);
		ck_assert_str_eq(check, rows[i].check);
		ck_assert_ptr_null(ap_diag_text(ctx.diag, 1, NULL, NULL));
	}
}
END_TEST
