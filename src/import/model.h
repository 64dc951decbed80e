/* SPDX-License-Identifier: Apache-2.0 */
/* A graph to be written as autopar-graph/1. */
#ifndef AP_IMPORT_MODEL_H
#define AP_IMPORT_MODEL_H

#include "base/map.h"
#include "base/vec.h"
#include "import/import.h"

struct ap_import_tensor {
	const char *name;
	enum ap_tensor_kind kind;
	bool shaped; /* shape is known */
	struct ap_shape shape;
	bool batch; /* INPUT: dimension 0 is the batch */
	bool learned; /* of a PARAM */
	enum ap_dtype read_as; /* type in which operators read a PARAM; AP_DTYPE_COUNT: its own */
};

struct ap_import_pin {
	bool given;
	uint32_t n;
	struct {
		uint32_t n;
		const int64_t *v;
	} *v;
};

struct ap_import_op {
	int64_t line;
	const char *name, *type;
	const char *cell; /* NULL: given by the name */
	const char *instance; /* attribute of its cell; "": none; NULL: the dump gives no instances */
	const char *cell_class; /* scope with classes; "": none */
	uint32_t nin, nout;
	const ap_id *in; /* AP_NONE: omitted */
	ap_id out; /* first of nout */
	struct ap_attrs attrs;
	struct ap_import_pin in_pin, out_pin;
	int64_t stage, segment, fusion; /* -1: not given */
	int8_t recompute; /* of the primitive; -1: not given */
	bool in_recomputed; /* in a recomputed cell */
	bool keeps_comm, slices; /* arguments of that cell's recompute() */
	bool cross_batch;
};

struct ap_import_cell { /* a recomputed cell */
	const char *name;
	bool keeps_comm, slices;
};

struct ap_import {
	const char *name, *optimizer; /* optimizer NULL: unknown */
	bool inference;
	AP_VEC(struct ap_import_tensor) tensors;
	AP_VEC(struct ap_import_op) ops;
	AP_VEC(ap_id) outputs;
	AP_VEC(struct ap_import_cell) cells;
};

#endif
