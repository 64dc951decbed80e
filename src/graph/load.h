/* SPDX-License-Identifier: Apache-2.0 */
/* A graph while it is being read and checked; shared by the files of graph/. */
#ifndef AP_GRAPH_LOAD_H
#define AP_GRAPH_LOAD_H

#include "base/map.h"
#include "base/vec.h"
#include "graph/cell.h"
#include "graph/graph.h"

#define AP_MAX_ELEMENTS (INT64_C(1) << 53) /* of a tensor: exact as a double */

enum ap_check {
#define CHECK(id, name, level, needs, run, text) AP_CHECK_##id,
#include "graph/checks.def"
#undef CHECK
	AP_CHECK_COUNT
};

struct ap_raw_tensor {
	struct ap_tensor t; /* shape.rank AP_RANK_UNKNOWN, shape.dtype AP_DTYPE_COUNT: not known */
	const struct ap_jv *at; /* its object; NULL: a result that the file does not name */
	struct ap_shape said; /* as declared in the file */
	int64_t batch_dim; /* -1 not given */
	bool sound; /* no fault found in its declaration */
};

struct ap_raw_node {
	struct ap_node n; /* bound.row NULL: not bound */
	const char *rows; /* type whose rows it is bound to */
	const struct ap_jv *at;
	uint16_t nin, nout; /* operands given, results declared */
	const char **operand; /* [nin] names */
	uint16_t *slot; /* [nin] position in the file's list, where null stands for one left out */
	ap_id *in, *out; /* in: AP_NONE where unknown; out: bound.nout, before binding nout */
	bool sound;
};

struct ap_raw_cell {
	struct ap_cell c;
	const struct ap_jv *at;
};

struct ap_load {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_graph_params *params;
	enum ap_status status; /* of the first finding that stops us */
	uint64_t failed; /* checks that reported, by bit */
	uint32_t found; /* findings so far */
	bool incomplete; /* a tensor may be missing because its declaration could not be read */
	/* these two in scratch, until the graph is finished */
	AP_VEC(struct ap_raw_tensor) tensors;
	AP_VEC(struct ap_raw_node) nodes;
	AP_VEC(const struct ap_jv *) outputs; /* strings */
	AP_VEC(struct ap_raw_cell) cells;
	struct ap_map *names; /* of tensors */
	struct ap_map *bound_ids; /* operators bound so far, by all that decides a binding */
	AP_VEC(struct ap_bound) bounds; /* by bound_ids */
	ap_id *by_name; /* tensor of a name's id: the first that bears it */
	ap_id *order; /* nodes in topological order; NULL while there is a cycle */
	const char *name, *optimizer;
	int64_t batch;
};

/* Reports a finding at `at` (NULL: the document) about operator oper (NULL: none). */
void ap_load_say(struct ap_load *l, enum ap_check c, const struct ap_jv *at, const char *oper,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Takes note of the status of a call that reports by itself. True when it was AP_OK. */
bool ap_load_ok(struct ap_load *l, enum ap_status st);

/* A name from the file, fit to print. */
const char *ap_load_name(struct ap_load *l, const char *raw);

/* The check of that name, as ap_rule_bind() tells it. */
enum ap_check ap_check_find(const char *name);

/* Runs checks first..last of the table that have a function. */
void ap_load_check(struct ap_load *l, enum ap_check first, enum ap_check last);

/* Tensor of that name; AP_NONE when there is none. */
ap_id ap_load_tensor(const struct ap_load *l, const char *name);

/* Element i of an array, or NULL. O(i). */
const struct ap_jv *ap_load_element(const struct ap_jv *array, size_t i);

/* read.c: the whole document but the operators. False: nothing can be checked. */
bool ap_load_read(struct ap_load *l);

/* read.c: name, shape and type of a tensor's object. */
void ap_load_read_tensor(struct ap_load *l, const struct ap_jv *v, enum ap_tensor_kind kind,
	ap_id node, uint32_t result);

/* read_op.c: one operator. */
void ap_load_read_op(struct ap_load *l, const struct ap_jv *v);

/* read_attr.c: attributes of an operator, whose name and type are there. */
void ap_load_read_attrs(struct ap_load *l, const struct ap_jv *obj, struct ap_node *op);

/* read_cell.c: what is said of cells. */
void ap_load_read_cells(struct ap_load *l, const struct ap_jv *root);

/* read_cell.c: which cells operators are in, what follows from it; g is complete but for that. */
void ap_load_place_cells(struct ap_load *l, struct ap_graph *g, struct ap_tensor *tensor,
	struct ap_node *node);

/* order.c: topological order into l->order, or the shortest cycle that is found. */
void ap_check_edge_cycle(struct ap_load *l);

/* bind.c: binds all operators in order, infers shapes, compares with declared ones. */
void ap_load_bind(struct ap_load *l);

/* bind.c: --batch: extents that carry the batch times batch / l->batch, everything bound anew. */
void ap_load_rescale(struct ap_load *l, int64_t batch);

/* batch.c: which dimensions and factors carry the batch. */
void ap_load_mark_batch(struct ap_load *l);

/* batch.c: notes where a micro-batch would not compute what the whole batch does. */
void ap_load_judge_batch(struct ap_load *l);

/* finish.c: the immutable graph. */
const struct ap_graph *ap_load_finish(struct ap_load *l, const char *sha256);

/* check_pin.c: does out_strategy ask for the partial sums to be dealt? Requires a checked pin. */
bool ap_pin_deals(const struct ap_node *n);

/* check.c, check_bound.c, check_instance.c, check_pin.c, read_cell.c: the functions of checks.def. */
void ap_check_graph_empty(struct ap_load *l);
void ap_check_tensor_unique(struct ap_load *l);
void ap_check_operator_unique(struct ap_load *l);
void ap_check_shape_size(struct ap_load *l);
void ap_check_batch_dim(struct ap_load *l);
void ap_check_operator_known(struct ap_load *l);
void ap_check_cell_unique(struct ap_load *l);
void ap_check_cell_known(struct ap_load *l);
void ap_check_edge_known(struct ap_load *l);
void ap_check_output_known(struct ap_load *l);
void ap_check_pin_length(struct ap_load *l);
void ap_check_pin_value(struct ap_load *l);
void ap_check_pin_out(struct ap_load *l);
void ap_check_pin_view(struct ap_load *l);
void ap_check_instance_path(struct ap_load *l);
void ap_check_instance_shared(struct ap_load *l);
void ap_check_graph_size(struct ap_load *l);
void ap_check_tensor_unused(struct ap_load *l);
void ap_check_operator_unused(struct ap_load *l);

#endif
