/* SPDX-License-Identifier: Apache-2.0 */
/* Element types in foreign files. */
#ifndef AP_IMPORT_DTYPE_H
#define AP_IMPORT_DTYPE_H

#include <stdint.h>

#include "base/dtype.h"

/* "Float32", "F32", "float32"; AP_DTYPE_COUNT if unknown. */
enum ap_dtype ap_import_dtype(const char *text);

/* The type of a MindSpore TypeId (2.x: Float32 is 43); AP_DTYPE_COUNT if unknown. */
enum ap_dtype ap_import_type_id(int64_t id);

#endif
