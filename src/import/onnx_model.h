/* SPDX-License-Identifier: Apache-2.0 */
/* A model of ONNX (IR versions 3 to 11) as its file states it. Only small constants have values. */
#ifndef AP_IMPORT_ONNX_MODEL_H
#define AP_IMPORT_ONNX_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/dtype.h"
#include "base/vec.h"

enum { AP_ONNX_MOST_VALUES = 1024 }; /* of a constant whose values are kept */

/* Values of a constant, row by row: either integers (bool as 0 and 1) or reals. */
struct ap_onnx_numbers {
	uint32_t n;
	const int64_t *i; /* NULL: reals */
	const double *f; /* NULL: integers */
};

struct ap_onnx_tensor { /* an initializer, or the value of an attribute */
	const char *name;
	int64_t type; /* TensorProto.DataType */
	uint32_t rank;
	const int64_t *dim;
	const struct ap_onnx_numbers *values; /* NULL: too many, in another file, or none */
	uint64_t at; /* where its elements stand in the file, row by row; 0: not known */
};

struct ap_onnx_graph;

struct ap_onnx_attr {
	const char *name;
	const char *of; /* the function's attribute that it refers to; NULL: none */
	int64_t i;
	double f;
	const char *s; /* NULL: no string */
	uint32_t nints, nfloats;
	const int64_t *ints;
	const double *floats;
	const struct ap_onnx_tensor *tensor;
	const struct ap_onnx_graph *graph;
};

struct ap_onnx_node {
	const char *name; /* "": none */
	const char *type, *domain; /* domain "" for ai.onnx */
	const char *cell; /* "layer1.0.conv1", of torch's metadata; NULL: not given */
	uint32_t nin, nout, nattr;
	const char *const *in, *const *out; /* "": left out */
	const struct ap_onnx_attr *attr;
};

struct ap_onnx_dim {
	int64_t length; /* -1: not given */
	const char *symbol; /* NULL: none */
};

struct ap_onnx_value { /* an input, an output, or what the file says of a tensor between */
	const char *name;
	int64_t type; /* 0: unknown, or no tensor */
	bool shaped;
	uint32_t rank;
	const struct ap_onnx_dim *dim;
};

struct ap_onnx_nodes {
	struct ap_onnx_node *v;
	size_t n, cap;
};

struct ap_onnx_values {
	struct ap_onnx_value *v;
	size_t n, cap;
};

struct ap_onnx_graph {
	const char *name;
	struct ap_onnx_nodes nodes;
	AP_VEC(struct ap_onnx_tensor) initializers;
	struct ap_onnx_values inputs, outputs, values;
};

struct ap_onnx_function { /* an operator that the model itself defines */
	const char *name, *domain;
	uint32_t nin, nout;
	const char *const *in, *const *out;
	struct ap_onnx_nodes nodes;
	uint32_t nattr; /* with values where a call gives none */
	const struct ap_onnx_attr *attr;
};

struct ap_onnx {
	const char *file, *producer;
	int64_t ir_version, opset; /* opset of ai.onnx; 0: not given */
	struct ap_onnx_graph graph;
	AP_VEC(struct ap_onnx_function) functions;
};

#endif
