/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operator graphs out of the files of others. So far one kind: the text dumps of MindSpore's
 * intermediate representation (NN_pre_auto_parallel_IIII.ir and the like).
 */
#ifndef AP_IMPORT_IMPORT_H
#define AP_IMPORT_IMPORT_H

#include "base/json_write.h"
#include "graph/graph.h"

struct ap_import_params {
	int64_t micro_batches; /* the dump is of one of so many, or holds them all; 1: of the whole step */
	bool partial; /* a dump that is cut, or a piece of one, is read as far as it goes */
	bool searched; /* strategies that MindSpore derived or searched are kept, as those of shard() */
	bool unknown_batch_parallel; /* operators of unknown types are no error */
};

struct ap_import; /* a graph as it is to be written */

/*
 * Reads a dump. file: as messages call it; its base name also tells which dump it is. All that is not
 * understood is reported with its line: AP_SYNTAX where the text is no dump or is cut, AP_MEANING for dumps
 * that are no source of graphs, for operators that no rule fits, and for what of a graph cannot be
 * kept. O(bytes + operators).
 */
enum ap_status ap_import_ir(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_import_params *params, const struct ap_import **out);

/* Its operators. */
size_t ap_import_size(const struct ap_import *g);

#endif
