/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a model of ONNX: the messages of onnx.proto by their field numbers.
 *
 * This is a reader of the wire format of its own, and not protobuf-c: that wants the whole message in memory,
 * copies fields that its description lacks, descends without a limit, and tells of a fault no place. Here a
 * file is read through one small window, and whatever is not asked for, weights before all, is skipped by its
 * length: a model of many gigabytes costs as much as its graph. Files of external data are never opened.
 */
#ifndef AP_IMPORT_ONNX_READ_H
#define AP_IMPORT_ONNX_READ_H

#include <stddef.h>

#include "import/onnx_model.h"

struct ap_onnx_source {
	const char *file; /* name for messages */
	const char *text; /* its bytes; NULL: they are read from the regular file of that name */
	size_t len; /* of text */
	size_t most; /* bytes that may be kept of it */
};

/* Do bytes begin like a model of ONNX? len may be less than its size; 64 are enough for what tools write. */
bool ap_onnx_begins(const char *text, size_t len);

/* AP_SYNTAX, with the offset, for bytes that are no such messages or end early; AP_LIMIT where graphs nest
 * deeper than 16 or more than `most` bytes would be kept; AP_IO. O(bytes, without those skipped). */
enum ap_status ap_onnx_read(struct ap_ctx *ctx, const struct ap_onnx_source *from, struct ap_onnx *out);

/* Is matrix a the other one turned, by 64 of its elements, which are not all the same? */
bool ap_onnx_is_turned(struct ap_ctx *ctx, const struct ap_onnx_source *from, const struct ap_onnx_tensor *a,
	const struct ap_onnx_tensor *b);

#endif
