/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes, element types, digests: small tables and one-liners. */
#include "unit.h"

#include "base/dtype.h"
#include "base/sha256.h"

START_TEST(exit_codes_are_those_of_the_manual)
{
	static const struct {
		enum ap_status st;
		int code;
	} rows[] = {{AP_OK, 0}, {AP_DIFFERS, 1}, {AP_USAGE, 2}, {AP_SYNTAX, 3}, {AP_MEANING, 4},
		{AP_INFEASIBLE, 5}, {AP_IO, 6}, {AP_LIMIT, 7}, {AP_STOPPED, 8}, {AP_INTERNAL, 70}};

	ck_assert_uint_eq(AP_COUNT(rows), AP_STATUS_COUNT);
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		ck_assert_int_eq(ap_status_exit(rows[i].st), rows[i].code);
		ck_assert_uint_gt(strlen(ap_status_text(rows[i].st)), 3);
	}
	ck_assert_str_eq(ap_status_text(AP_INFEASIBLE), "proven: no strategy fits");
}
END_TEST

START_TEST(element_types)
{
	ck_assert_int_eq(ap_dtype_find("float16"), AP_FLOAT16);
	ck_assert_int_eq(ap_dtype_find("bfloat16"), AP_BFLOAT16);
	ck_assert_int_eq(ap_dtype_find("Float16"), AP_DTYPE_COUNT);
	ck_assert_int_eq(ap_dtype_find(""), AP_DTYPE_COUNT);
	ck_assert_int_eq(ap_dtype_bytes(AP_INT8), 1);
	ck_assert_int_eq(ap_dtype_bytes(AP_BFLOAT16), 2);
	ck_assert_int_eq(ap_dtype_bytes(AP_FLOAT32), 4);
	ck_assert_int_eq(ap_dtype_bytes(AP_INT64), 8);
	ck_assert(ap_dtype_is_float(AP_FLOAT64));
	ck_assert(!ap_dtype_is_float(AP_INT32));
	ck_assert_int_eq(ap_dtype_bytes(AP_COMPLEX64), 8);
	ck_assert_int_eq(ap_dtype_bytes(AP_COMPLEX128), 16);
	ck_assert(ap_dtype_is_float(AP_COMPLEX64) && ap_dtype_is_complex(AP_COMPLEX64));
	ck_assert(!ap_dtype_is_complex(AP_FLOAT64));
	ck_assert_int_eq(ap_dtype_find("float8_e4m3fn"), AP_FLOAT8_E4M3FN);
	ck_assert_int_eq(ap_dtype_find("float8_e5m2"), AP_FLOAT8_E5M2);
	ck_assert_int_eq(ap_dtype_bytes(AP_FLOAT8_E5M2), 1);
	ck_assert(ap_dtype_is_float(AP_FLOAT8_E4M3FN) && ap_dtype_is_float8(AP_FLOAT8_E4M3FN));
	ck_assert(!ap_dtype_is_float8(AP_INT8) && !ap_dtype_is_float8(AP_FLOAT16));
	ck_assert(ap_dtype_is_narrow(AP_FLOAT8_E5M2) && ap_dtype_is_narrow(AP_BFLOAT16));
	ck_assert(!ap_dtype_is_narrow(AP_INT16) && !ap_dtype_is_narrow(AP_FLOAT32));
	for (int t = 0; t < AP_DTYPE_COUNT; t++)
		ck_assert_int_eq(ap_dtype_find(ap_dtype_name((enum ap_dtype)t)), t);
}
END_TEST

/* The examples of FIPS 180-2, appendix B. */
START_TEST(sha256)
{
	char hex[65], *million = malloc(1000000);

	ap_sha256_hex("", 0, hex);
	ck_assert_str_eq(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	ap_sha256_hex("abc", 3, hex);
	ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	ap_sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
	ck_assert_str_eq(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(million, 'a', 1000000);
	ap_sha256_hex(million, 1000000, hex);
	ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(million);
}
END_TEST
