/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/map.h"

START_TEST(ids_count_up_in_order_of_appearance)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	struct ap_map *m = ap_map_create(a);
	bool fresh;

	ck_assert_uint_eq(ap_map_size(m), 0);
	ck_assert_uint_eq(ap_map_get_str(m, "x"), AP_NONE);
	ck_assert_uint_eq(ap_map_put_str(m, "x", &fresh), 0);
	ck_assert(fresh);
	ck_assert_uint_eq(ap_map_put_str(m, "y", NULL), 1);
	ck_assert_uint_eq(ap_map_put_str(m, "x", &fresh), 0);
	ck_assert(!fresh);
	ck_assert_uint_eq(ap_map_get_str(m, "y"), 1);
	ck_assert_uint_eq(ap_map_get_str(m, "z"), AP_NONE);
	ck_assert_uint_eq(ap_map_size(m), 2);
	ck_assert_str_eq(ap_map_key(m, 1, NULL), "y");
	ap_arena_destroy(a);
}
END_TEST

START_TEST(keys_are_bytes)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	struct ap_map *m = ap_map_create(a);
	char key[] = "a\0b";
	size_t len;

	ck_assert_uint_eq(ap_map_put(m, key, 3, NULL), 0);
	ck_assert_uint_eq(ap_map_put(m, key, 1, NULL), 1);
	ck_assert_uint_eq(ap_map_put(m, "", 0, NULL), 2);
	ck_assert_uint_eq(ap_map_put(m, NULL, 0, NULL), 2);
	ck_assert_uint_eq(ap_map_put(m, "\0", 1, NULL), 3);
	key[0] = 'z'; /* keys are copies */
	ck_assert_mem_eq(ap_map_key(m, 0, &len), "a\0b", 4);
	ck_assert_uint_eq(len, 3);
	ck_assert_uint_eq(ap_map_get(m, "a\0b", 3), 0);
	ap_arena_destroy(a);
}
END_TEST

START_TEST(many_keys)
{
	struct ap_arena *a = ap_arena_create(0, NULL, NULL);
	struct ap_map *m = ap_map_create(a);
	char key[32];

	for (ap_id i = 0; i < 200000; i++) {
		bool fresh;

		snprintf(key, sizeof key, "Default/layer%u-op", (unsigned)i);
		if (ap_map_put_str(m, key, &fresh) != i || !fresh)
			ck_abort_msg("%s", key);
	}
	for (ap_id i = 0; i < 200000; i += 7) {
		snprintf(key, sizeof key, "Default/layer%u-op", (unsigned)i);
		ck_assert_uint_eq(ap_map_get_str(m, key), i);
		ck_assert_str_eq(ap_map_key(m, i, NULL), key);
	}
	ck_assert_uint_eq(ap_map_get_str(m, "Default/layer200000-op"), AP_NONE);
	ck_assert_uint_eq(ap_map_size(m), 200000);
	ap_arena_destroy(a);
}
END_TEST

/* The values are part of what must not change from machine to machine. */
START_TEST(hash_is_fixed)
{
	ck_assert_uint_eq(ap_hash("", 0, 0), ap_hash(NULL, 0, 0));
	ck_assert_uint_ne(ap_hash("", 0, 0), ap_hash("", 0, 1));
	ck_assert_uint_ne(ap_hash("a", 1, 0), ap_hash("a\0", 2, 0));
	ck_assert_uint_eq(ap_hash("ap", 2, 0), UINT64_C(0x4DCEE59218A8C0B4));
	ck_assert_uint_eq(ap_hash("autopar", 7, 0), UINT64_C(0xE25854AEC15880CB));
	ck_assert_uint_eq(ap_hash("autopar-plan", 12, 42), UINT64_C(0x721FB907D6949597));
}
END_TEST

/* One changed bit of the input changes about half of the bits of the hash. */
START_TEST(hash_spreads)
{
	unsigned char key[24] = "0123456789abcdefghijklm";
	uint64_t base = ap_hash(key, sizeof key, 0);

	for (size_t bit = 0; bit < 8 * sizeof key; bit++) {
		int differing;

		key[bit / 8] ^= (unsigned char)(1u << bit % 8);
		differing = __builtin_popcountll(base ^ ap_hash(key, sizeof key, 0));
		key[bit / 8] ^= (unsigned char)(1u << bit % 8);
		ck_assert_int_ge(differing, 12);
		ck_assert_int_le(differing, 52);
	}
}
END_TEST
