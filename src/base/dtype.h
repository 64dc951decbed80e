/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, one per row: name as in MindSpore, bytes, has gradients. */
#ifndef AP_BASE_DTYPE_H
#define AP_BASE_DTYPE_H

#include <stdbool.h>
#include <stdint.h>

#define AP_DTYPE_ROWS(X) \
	X(BOOL, "bool", 1, false) \
	X(INT8, "int8", 1, false) \
	X(INT16, "int16", 2, false) \
	X(INT32, "int32", 4, false) \
	X(INT64, "int64", 8, false) \
	X(UINT8, "uint8", 1, false) \
	X(UINT16, "uint16", 2, false) \
	X(UINT32, "uint32", 4, false) \
	X(UINT64, "uint64", 8, false) \
	X(FLOAT8_E4M3FN, "float8_e4m3fn", 1, true) \
	X(FLOAT8_E5M2, "float8_e5m2", 1, true) \
	X(FLOAT16, "float16", 2, true) \
	X(BFLOAT16, "bfloat16", 2, true) \
	X(FLOAT32, "float32", 4, true) \
	X(FLOAT64, "float64", 8, true) \
	X(COMPLEX64, "complex64", 8, true) \
	X(COMPLEX128, "complex128", 16, true)

enum ap_dtype {
#define AP_DTYPE_ENUM(id, name, bytes, real) AP_##id,
	AP_DTYPE_ROWS(AP_DTYPE_ENUM)
#undef AP_DTYPE_ENUM
	AP_DTYPE_COUNT
};

/* The type of a name; AP_DTYPE_COUNT if unknown. */
enum ap_dtype ap_dtype_find(const char *name);

const char *ap_dtype_name(enum ap_dtype t);
int ap_dtype_bytes(enum ap_dtype t);

/* Does the type have gradients, being floating or complex? */
bool ap_dtype_is_float(enum ap_dtype t);

bool ap_dtype_is_complex(enum ap_dtype t);

/* A floating type of 8 bits: products read it and add up in a wider type; no collective sums it. */
bool ap_dtype_is_float8(enum ap_dtype t);

/* A floating type of 8 or 16 bits: a trained parameter of it has a full-precision copy. */
bool ap_dtype_is_narrow(enum ap_dtype t);

#endif
