/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator graph, autopar-graph/1 (contract section 3): flat arrays indexed by ids; immutable
 * once loaded. Operators are kept in a topological order that does not depend on the file's order
 * of operators beyond ties (Kahn's algorithm, smallest file index first).
 */
#ifndef AP_GRAPH_GRAPH_H
#define AP_GRAPH_GRAPH_H

#include "base/json.h"
#include "rule/rule.h"

enum ap_tensor_kind { AP_TENSOR_INPUT, AP_TENSOR_PARAM, AP_TENSOR_CONST, AP_TENSOR_ACT };

struct ap_use { /* one operand slot that reads a tensor */
	ap_id node;
	uint32_t operand;
};

struct ap_tensor {
	const char *name;
	enum ap_tensor_kind kind;
	struct ap_shape shape; /* of the whole step, in the type in which it is stored */
	enum ap_dtype read_as; /* of a parameter: what operators see, each with a cast of its own;
	                        * AP_DTYPE_COUNT: as it is stored */
	uint8_t batch; /* mask of dimensions that carry the batch */
	int64_t batch_outer[AP_MAX_RANK]; /* of such a dimension its place: so many parts of the
	                                     dimension are before that of the batch. 1: it is the
	                                     outermost, as in [batch * tokens]; tokens in [tokens *
	                                     batch] */
	bool needs_grad; /* trainable parameter, or activation on a path from one to the loss */
	bool trainable, layerwise_parallel, parallel_optimizer; /* parameters */
	int32_t comm_fusion; /* -1 not given */
	ap_id producer; /* node; AP_NONE unless ACT */
	uint32_t result; /* which result of the producer */
	uint32_t nuse;
	const struct ap_use *use; /* ascending (node, operand) */
	struct ap_use owner; /* the use that stands for all where something is counted once: of those
	                        that give a gradient, or else of all, the one nearest to the inputs,
	                        then by name; a Send only where nobody else can; node AP_NONE without
	                        uses */
};

struct ap_pin { /* in_strategy: one vector per strategy operand */
	uint32_t n; /* 0: not given */
	struct {
		uint8_t rank;
		int32_t cut[AP_MAX_RANK];
	} *v;
};

/* What is said of a cell and all in it, as MindSpore's Cell has it. What is said of a cell inside it, or of
 * an operator or parameter itself, goes before. */
struct ap_cell {
	const char *name; /* "_backbone.layer1": all operators whose cell this is, or begins with this and
	                     a dot */
	int32_t stage, segment; /* -1 not given */
	int8_t recompute; /* -1 not given, 0, 1: Cell.recompute(), with these arguments */
	bool mp_comm_recompute; /* and communication of tensor parallelism */
	bool parallel_optimizer_comm_recompute; /* and gathering of dealt weights */
	bool recompute_slice_activation; /* what is kept is cut between the ranks */
	int32_t comm_fusion; /* of the parameters that are first used in it; -1 not given */
	ap_id parent; /* the innermost other one that it is in; AP_NONE */
};

struct ap_node {
	const char *name; /* full scope name */
	const char *type; /* canonical; as in the file where it is unknown */
	const char *cell; /* given or derived from the scope name; may be "" */
	const char *instance; /* the attribute of its cell that holds its primitive, "matmul", "list.0"; "" no
	                         attribute does; NULL not given */
	struct ap_attrs attrs;
	struct ap_bound bound;
	const ap_id *in, *out; /* tensors, bound.nin and bound.nout of them */
	ap_id param; /* first trainable parameter operand; AP_NONE: not in the checkpoint */
	int32_t peer; /* of a Send the stage that receives, of a Receive the one that sends; else -1 */
	int32_t stage, segment; /* of a pipeline: as given, -1 not given; in a staged graph (graph/staged.h)
	                           as resolved, 0 without a pipeline */
	int8_t recompute; /* -1 not given, 0, 1: of the primitive; cells come in struct ap_cell */
	ap_id in_cell; /* the innermost of the graph's cells that it is in; AP_NONE */
	ap_id recompute_cell; /* the innermost that says anything of recompute, where that says 1; AP_NONE */
	bool cross_batch;
	bool once; /* runs once a step, not once a micro-batch: a Send or Receive of a parameter */
	int32_t fusion; /* -1 not given */
	struct ap_pin in_pin, out_pin;
	bool backward; /* has any backward work */
	bool measured; /* time_s given */
	double measured_forward_s, measured_backward_s, measured_share;
};

struct ap_graph {
	const char *name;
	const char *file; /* base name */
	const char *sha256;
	const char *optimizer; /* "" when not given */
	uint32_t ntensor, nnode;
	const struct ap_tensor *tensor;
	const struct ap_node *node; /* topological order */
	uint32_t ncell;
	const struct ap_cell *cell; /* those of which something is said, file order */
	uint32_t ninput, noutput;
	const ap_id *input; /* tensors of kind INPUT, file order */
	const ap_id *output;
	ap_id loss; /* first output when it is a scalar, else AP_NONE */
	int64_t batch; /* extent of the inputs' batch dimension; 0: none is marked */
	int64_t parameters; /* elements of all parameters */
};

/*
 * Reads, checks and binds a graph. All findings are reported (named checks, each with its JSON
 * pointer and operator), not only the first. batch > 0 rescales (--batch): every extent that
 * carries the batch is multiplied by batch / graph batch, shapes are inferred anew.
 * micro_batches must divide the batch. O(bytes).
 */
struct ap_graph_params {
	int64_t batch; /* 0: as in the file */
	int64_t micro_batches; /* above 1: notes say where they would change the result, errors where
	                        * a length of the batch cannot be divided */
	bool inference; /* --run-phase inference: nothing needs a gradient */
	bool unknown_batch_parallel; /* operators of unknown types are no error: dimension 0 of all
	                              * that goes in and comes out, or nothing, is cut */
};
enum ap_status ap_graph_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_graph_params *params, const struct ap_graph **out);

/* The type in which operators read a tensor: what their rules are bound to. */
enum ap_dtype ap_tensor_read_type(const struct ap_tensor *t);

/* Bytes of a whole tensor as it is stored. */
int64_t ap_tensor_bytes(const struct ap_tensor *t);

/* Checkpoint key of an operator, "<type>_<first trainable parameter>"; NULL when it has none. */
const char *ap_node_key(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node);

#endif
