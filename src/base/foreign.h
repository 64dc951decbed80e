/* SPDX-License-Identifier: Apache-2.0 */
/* Files of other programs: recognised, and named where JSON is expected. */
#ifndef AP_BASE_FOREIGN_H
#define AP_BASE_FOREIGN_H

#include <stddef.h>

#include "base/ctx.h"

/* Describes a text in a foreign format and what is expected, for a message: "is a hostfile, ..;
 * ..". Returns NULL if it is not recognized, which includes anything that begins like JSON, and
 * binary text such as protobuf. In the run arena. O(len). */
const char *ap_foreign(struct ap_ctx *ctx, const char *text, size_t len);

enum ap_machine_text { /* texts of other programs from which a machine is read */
	AP_TEXT_OTHER, /* none of them */
	AP_TEXT_NCCL_XML, /* a server: hw/server.h */
	AP_TEXT_LINK_MATRIX, /* a server, as nvidia-smi and npu-smi print it */
	AP_TEXT_HOSTS /* servers: hw/hosts.h */
};
enum ap_machine_text ap_foreign_machine(struct ap_ctx *ctx, const char *text, size_t len);

/* The same of files that hold networks or their weights, known by their first bytes: safetensors, GGUF,
 * torch's .pt, pickles, SavedModel, HDF5, MindIR and others. len may be less than the file's; 512 are
 * enough. */
const char *ap_foreign_model(const char *text, size_t len);

#endif
