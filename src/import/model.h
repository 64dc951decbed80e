/* SPDX-License-Identifier: Apache-2.0 */
/* A graph that is to be written: what autopar-graph/1 holds, before it is JSON. */
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
	bool batch; /* an INPUT whose dimension 0 is the batch */
	bool learned; /* a PARAM */
	enum ap_dtype read_as; /* a PARAM that operators see in this type; AP_DTYPE_COUNT: in its own */
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
	const char *cell; /* NULL: as the name says */
	const char *instance; /* attribute of its cell; "" none; NULL: the dump tells none of any */
	const char *cell_class; /* the scope, with classes; "" none */
	uint32_t nin, nout;
	const ap_id *in; /* AP_NONE: left out */
	ap_id out; /* first of nout */
	struct ap_attrs attrs;
	struct ap_import_pin in_pin, out_pin;
	int64_t stage, segment, fusion; /* -1 not given */
	int8_t recompute; /* -1 not given; of the primitive */
	bool in_recomputed; /* in a cell that is recomputed */
	bool keeps_comm, slices; /* arguments of that cell's recompute() */
	bool cross_batch;
};

struct ap_import_cell { /* that is recomputed */
	const char *name;
	bool keeps_comm, slices;
};

struct ap_import {
	const char *name, *optimizer; /* optimizer NULL: not told */
	bool inference;
	AP_VEC(struct ap_import_tensor) tensors;
	AP_VEC(struct ap_import_op) ops;
	AP_VEC(ap_id) outputs;
	AP_VEC(struct ap_import_cell) cells;
};

#endif
