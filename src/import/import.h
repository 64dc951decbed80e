/* SPDX-License-Identifier: Apache-2.0 */
/* Imports operator graphs from foreign files: text dumps of MindSpore's intermediate representation
 * (NN_pre_auto_parallel_IIII.ir and the like). */
#ifndef AP_IMPORT_IMPORT_H
#define AP_IMPORT_IMPORT_H

#include "base/json_write.h"
#include "graph/graph.h"

struct ap_import_params {
	int64_t micro_batches; /* the dump has one micro-batch of this many, or all; 1: the whole step */
	bool partial; /* read a truncated dump or a piece as far as possible */
	bool searched; /* keep strategies that MindSpore derived or searched, like those of shard() */
	bool unknown_batch_parallel; /* accept operators of unknown types */
};

struct ap_import; /* a graph to be written */

/* Reads a dump. file: name for messages; its base name also identifies the kind of dump. Reports
 * with its line all that is not understood: returns AP_SYNTAX if the text is no dump or is
 * truncated, AP_MEANING for unsuitable dumps, operators without a rule, and contents that a graph
 * cannot hold. O(bytes + operators). */
enum ap_status ap_import_ir(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_import_params *params, const struct ap_import **out);

/* Number of operators. */
size_t ap_import_size(const struct ap_import *g);

#endif
