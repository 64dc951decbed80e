/* SPDX-License-Identifier: Apache-2.0 */
/* Imports operator graphs from foreign files: text dumps of MindSpore's intermediate representation
 * (NN_pre_auto_parallel_IIII.ir and the like), and models of ONNX. */
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

struct ap_onnx_length { /* of what a model leaves open */
	const char *name;
	int64_t length;
};

enum ap_onnx_loss { /* what is put behind the scores of classes */
	AP_ONNX_LOSS_EXPANDED, /* an operator per step of the formula */
	AP_ONNX_LOSS_FUSED, /* one operator, on float32 */
	AP_ONNX_LOSS_KERNEL, /* one operator, on the scores' own type */
	AP_ONNX_LOSS_VOCABULARY_PARALLEL /* sums of rows whose classes may be cut */
};

struct ap_onnx_params {
	int64_t batch; /* samples of a step; 0: as the file says */
	enum ap_dtype
		dtype; /* of what is float32, float16 or bfloat16 in the file; AP_DTYPE_COUNT: as it is */
	enum ap_onnx_loss loss;
	bool flash; /* attention becomes FlashAttentionScore */
	bool unknown_batch_parallel; /* accept operators without a row */
	size_t ndim, nfrozen;
	const struct ap_onnx_length *dim; /* [ndim] lengths that the file calls by a name */
	const char *const *frozen; /* [nfrozen] patterns of fnmatch(3): parameters that nothing trains */
};

/* Reads a model of ONNX: the forward pass, and, unless its first output is a scalar, a loss. text: its bytes;
 * NULL: they are read from the regular file of that name, and weights are skipped. most: bytes that may be
 * kept of it. Faults as of ap_onnx_read() (onnx_read.h); AP_MEANING for operators without a row, all at once,
 * and what no graph can hold; notes say what was recognised and put in. O(nodes * rows). */
enum ap_status ap_import_onnx(struct ap_ctx *ctx, const char *file, const char *text, size_t len, size_t most,
	const struct ap_onnx_params *params, const struct ap_import **out);

/* Do bytes begin like a model of ONNX? 64 are enough for what tools write. */
bool ap_import_is_onnx(const char *text, size_t len);

/* Reads a dump. file: name for messages; its base name also identifies the kind of dump. Reports
 * with its line all that is not understood: returns AP_SYNTAX if the text is no dump or is
 * truncated, AP_MEANING for unsuitable dumps, operators without a rule, and contents that a graph
 * cannot hold. O(bytes + operators). */
enum ap_status ap_import_ir(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_import_params *params, const struct ap_import **out);

/* Number of operators. */
size_t ap_import_size(const struct ap_import *g);

#endif
