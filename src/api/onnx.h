/* SPDX-License-Identifier: Apache-2.0 */
/* Models of ONNX as operator graphs, under the settings that say what the file leaves open. */
#ifndef AP_API_ONNX_H
#define AP_API_ONNX_H

#include "api/files.h"

struct ap_import;

/* Reads a model. in->text NULL: from the file of that name. AP_USAGE for settings that say nothing of it. */
enum ap_status ap_onnx_load(struct ap_ctx *ctx, const struct ap_settings *set, const struct ap_input *in,
	const struct ap_import **out);

/* AP_USAGE if --dim is given for a file that is something else (what: "a dump"). */
enum ap_status ap_onnx_alone(struct ap_ctx *ctx, const struct ap_settings *set, const char *path,
	const char *what);

#endif
