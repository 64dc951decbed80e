/* SPDX-License-Identifier: Apache-2.0 */
#include "import/dtype.h"

#include <ctype.h>
#include <string.h>

#include "base/vec.h"

enum ap_dtype ap_import_dtype(const char *text)
{
	static const struct {
		const char *brief, *whole;
	} heads[] = {{"bf", "bfloat"}, {"f", "float"}, {"i", "int"}, {"u", "uint"}};
	static const struct {
		const char *run_on;
		enum ap_dtype dtype;
	} eighths[] = {{"float8e4m3fn", AP_FLOAT8_E4M3FN}, {"float8e5m2", AP_FLOAT8_E5M2}};
	char low[24] = "", whole[32];
	size_t n = strlen(text);

	if (n >= sizeof low)
		return AP_DTYPE_COUNT;
	for (size_t i = 0; i < n; i++)
		low[i] = (char)tolower((unsigned char)text[i]);
	for (size_t i = 0; i < AP_COUNT(eighths); i++)
		if (!strcmp(low, eighths[i].run_on))
			return eighths[i].dtype;
	for (size_t i = 0; i < AP_COUNT(heads); i++) {
		size_t len = strlen(heads[i].brief);

		if (strncmp(low, heads[i].brief, len) || !isdigit((unsigned char)low[len]))
			continue;
		strcpy(whole, heads[i].whole);
		strcat(whole, low + len);
		return ap_dtype_find(whole);
	}
	return ap_dtype_find(low);
}

enum ap_dtype ap_import_type_id(int64_t id)
{
	static const struct {
		int64_t id;
		enum ap_dtype dtype;
	} ids[] = {
		{30, AP_BOOL}, {31, AP_INT64}, {32, AP_INT8}, {33, AP_INT16}, {34, AP_INT32},
		{35, AP_INT64}, {36, AP_UINT64}, {37, AP_UINT8}, {38, AP_UINT16}, {39, AP_UINT32},
		{40, AP_UINT64}, {41, AP_FLOAT32}, {42, AP_FLOAT16}, {43, AP_FLOAT32},
		{44, AP_FLOAT64}, {45, AP_BFLOAT16}, {46, AP_FLOAT8_E4M3FN},
		{47, AP_FLOAT8_E5M2}, {51, AP_COMPLEX64}, {52, AP_COMPLEX128},
	};

	for (size_t i = 0; i < AP_COUNT(ids); i++)
		if (ids[i].id == id)
			return ids[i].dtype;
	return AP_DTYPE_COUNT;
}
