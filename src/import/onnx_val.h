/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a walk over a model of ONNX knows so far: the tensors of the model with their shapes, by name, and
 * the operators that nodes have become.
 */
#ifndef AP_IMPORT_ONNX_VAL_H
#define AP_IMPORT_ONNX_VAL_H

#include "import/import.h"
#include "import/model.h"
#include "import/onnx_model.h"

enum ap_onnx_kind {
	AP_ONNX_BROKEN, /* nothing is known, as a fault or an unknown operator lies before it */
	AP_ONNX_INPUT,
	AP_ONNX_WEIGHT, /* what training may change */
	AP_ONNX_CONST, /* depends on no input and no weight */
	AP_ONNX_RESULT /* of an operator of the graph */
};

struct ap_onnx_source;

struct ap_onnx_val { /* a tensor of the model, as the walk knows it */
	const char *name; /* NULL: the model has none for it */
	enum ap_onnx_kind kind;
	struct ap_shape shape; /* but of BROKEN */
	const struct ap_onnx_numbers *values; /* of CONST; NULL: not known. One number of a uniform one */
	bool uniform; /* CONST: all elements are the same number */
	bool initial; /* an initializer */
	bool state; /* WEIGHT: no gradient reaches it, as of running means */
	bool shared; /* WEIGHT: the file states it once for several, for their values are equal */
	ap_id base; /* CONST: a smaller one that it repeats; AP_NONE */
	ap_id tensor; /* of the graph; AP_NONE: not yet */
	ap_id op; /* RESULT: of the walk's ops */
};

struct ap_onnx_made { /* an operator of the graph while it is made; values in place of tensors */
	const struct ap_onnx_node *node; /* where it comes from; NULL: the loss */
	const char *type; /* canonical */
	const char *cell; /* NULL: not known yet */
	uint32_t nin, nout;
	ap_id *in; /* values; AP_NONE: left out */
	ap_id out; /* the first of nout values */
	struct ap_attrs attrs;
	bool gone;
};

struct ap_onnx_walk {
	struct ap_ctx *ctx;
	const struct ap_onnx *model;
	const struct ap_onnx_params *params;
	const struct ap_onnx_source *from;
	AP_VEC(struct ap_onnx_val) vals;
	AP_VEC(struct ap_onnx_made) ops;
	struct ap_map *names; /* of tensors, with the prefix of a call of a function */
	AP_VEC(ap_id) named; /* by id of names: a value */
	struct ap_map *said; /* names in value_info */
	AP_VEC(const struct ap_onnx_value *) said_values;
	struct ap_map *bound; /* operators with all that their results' shapes depend on */
	AP_VEC(struct ap_shape) shapes; /* of results, from first[id of bound] on */
	AP_VEC(uint32_t) first;
	struct ap_map *scalars; /* constants of one number */
	AP_VEC(ap_id) scalar_vals;
	struct ap_map *unknown; /* types without a row */
	AP_VEC(uint32_t) counts; /* by id of unknown */
	AP_VEC(ap_id) outputs; /* of the model */
	const struct ap_onnx_node *node; /* at work */
	const char *prefix; /* of names, in a call */
	const char *scope; /* cell of the node that calls; NULL: none */
	const struct ap_onnx_attr *args; /* of the call */
	uint32_t nargs;
	const char *batch_symbol; /* what the file calls it; NULL: it has a number */
	int64_t batch_from, batch_to; /* the batch of the file, and that which is asked for */
	uint32_t nodes, folded; /* of the model, and those that only compute constants */
	uint32_t turned; /* matrices that are others turned */
	uint32_t joined; /* matrices that were equal to others, and are taken for them */
	uint32_t convs; /* convolutions whose weights an exporter made */
	int depth; /* calls and branches around */
	uint32_t calls; /* so far */
	bool stopped; /* a limit was hit */
	enum ap_status status;
	bool failed; /* the node at work */
};

#define AP_ONNX_LEFT_OUT (AP_NONE - 1) /* an operand that an operator goes without */

/* Tells a fault of the node at work, or of the file. Returns AP_MEANING. */
enum ap_status ap_onnx_say(struct ap_onnx_walk *w, const char *check, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Gives a name, of the call at work, to a value; one that is taken is a fault. And the value of a name:
 * AP_NONE if there is none. */
void ap_onnx_put(struct ap_onnx_walk *w, const char *name, ap_id id);
ap_id ap_onnx_find(const struct ap_onnx_walk *w, const char *name);

/* A value of which nothing is known. */
ap_id ap_onnx_broken(struct ap_onnx_walk *w);

struct ap_onnx_val *ap_onnx_val(const struct ap_onnx_walk *w, ap_id id);

/* A fault of the node at work; only the first of a node is told. Returns AP_NONE. */
ap_id ap_onnx_fail(struct ap_onnx_walk *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Operand i of the node at work; AP_ONNX_LEFT_OUT if it is left out. */
ap_id ap_onnx_in(struct ap_onnx_walk *w, uint32_t i);

/* Makes value id result i of the node at work. */
void ap_onnx_out(struct ap_onnx_walk *w, uint32_t i, ap_id id);

/* An attribute of the node at work, or of the call that it refers to; NULL if there is none. */
const struct ap_onnx_attr *ap_onnx_attr(const struct ap_onnx_walk *w, const char *name);
int64_t ap_onnx_int(const struct ap_onnx_walk *w, const char *name, int64_t otherwise);
double ap_onnx_real(const struct ap_onnx_walk *w, const char *name, double otherwise);
const char *ap_onnx_word(const struct ap_onnx_walk *w, const char *name, const char *otherwise);

/* The integers of operand i or, in older versions, of an attribute: false if there are none. A fault if the
 * operand's values are not known. */
bool ap_onnx_ints(struct ap_onnx_walk *w, uint32_t i, const char *attr, const int64_t **v, uint32_t *n);

/* A new value. */
ap_id ap_onnx_add(struct ap_onnx_walk *w, struct ap_onnx_val v);

/* A constant with values, and with one number for all elements. */
ap_id ap_onnx_constant(struct ap_onnx_walk *w, struct ap_shape shape, const struct ap_onnx_numbers *values);
ap_id ap_onnx_filled(struct ap_onnx_walk *w, struct ap_shape shape, double value);

/* The scalar constant of that number. */
ap_id ap_onnx_scalar(struct ap_onnx_walk *w, enum ap_dtype dtype, double value);

/* Adds an operator with nout results; the id of the first. Of constants alone, only a constant of that shape.
 * AP_NONE after a fault, also where an operand is AP_NONE. */
ap_id ap_onnx_emit(struct ap_onnx_walk *w, const char *type, uint32_t nin, const ap_id *in, uint32_t nattr,
	const struct ap_attr *attr, uint32_t nout);

/* The operator that makes a value; NULL if there is none. */
struct ap_onnx_made *ap_onnx_maker(const struct ap_onnx_walk *w, ap_id id);

/* The element type of a DataType, as the graph has it; AP_DTYPE_COUNT if it has none. */
enum ap_dtype ap_onnx_dtype(const struct ap_onnx_walk *w, int64_t type);

/* The one number of a constant; false if it has several or is none. */
bool ap_onnx_number(const struct ap_onnx_walk *w, ap_id id, double *out);

/* Takes a constant or an input for what training changes, since it stands where weights do. */
void ap_onnx_weigh(struct ap_onnx_walk *w, ap_id id);

/* Does the operator's rule give the shape that its first result has? Nothing is told. */
bool ap_onnx_binds(struct ap_onnx_walk *w, const struct ap_onnx_made *op);

/* Operators whose results nobody reads are gone. */
void ap_onnx_drop_unread(struct ap_onnx_walk *w);

/* Has no elements. */
bool ap_onnx_is_empty(const struct ap_shape *s);

#define AP_IN(...) sizeof((ap_id[]){__VA_ARGS__}) / sizeof(ap_id), (ap_id[]){__VA_ARGS__}
#define AP_ATTRS(...) sizeof((struct ap_attr[]){__VA_ARGS__}) / sizeof(struct ap_attr), \
	(struct ap_attr[]){__VA_ARGS__}
#define AP_NO_ATTRS 0, NULL
#define AP_INT_ATTR(key, v) {.name = (key), .type = AP_ATTR_INT, .i = (v), .f = (double)(v)}
#define AP_FLAG_ATTR(key, v) {.name = (key), .type = AP_ATTR_BOOL, .i = (v)}
#define AP_REAL_ATTR(key, v) {.name = (key), .type = AP_ATTR_FLOAT, .f = (v)}
#define AP_TEXT_ATTR(key, v) {.name = (key), .type = AP_ATTR_STRING, .s = (v)}
#define AP_INTS_ATTR(key, v, count) {.name = (key), .type = AP_ATTR_INTS, .list = (v), .n = (count)}

#endif
