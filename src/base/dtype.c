/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include <string.h>

static const struct {
	const char *name;
	int bytes;
	bool real;
} rows[] = {
#define AP_DTYPE_ROW(id, name, bytes, real) {name, bytes, real},
	AP_DTYPE_ROWS(AP_DTYPE_ROW)
#undef AP_DTYPE_ROW
};

enum ap_dtype ap_dtype_find(const char *name)
{
	int i = 0;

	while (i < AP_DTYPE_COUNT && strcmp(rows[i].name, name) != 0)
		i++;
	return (enum ap_dtype)i;
}

const char *ap_dtype_name(enum ap_dtype t)
{
	return rows[t].name;
}

int ap_dtype_bytes(enum ap_dtype t)
{
	return rows[t].bytes;
}

bool ap_dtype_is_float(enum ap_dtype t)
{
	return rows[t].real;
}

bool ap_dtype_is_complex(enum ap_dtype t)
{
	return t == AP_COMPLEX64 || t == AP_COMPLEX128;
}

bool ap_dtype_is_float8(enum ap_dtype t)
{
	return ap_dtype_is_float(t) && ap_dtype_bytes(t) == 1;
}

bool ap_dtype_is_narrow(enum ap_dtype t)
{
	return ap_dtype_is_float(t) && ap_dtype_bytes(t) <= 2;
}
