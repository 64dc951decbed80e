/* SPDX-License-Identifier: Apache-2.0 */
/* The operator graph, autopar-graph/1 (contract section 3): flat arrays indexed by ids; immutable
 * once loaded. Operators and tensors are in an order that depends on the structure alone, neither on
 * names nor on the order of the file's lists but that of "outputs" (graph/canonical.h). */
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
	struct ap_shape shape; /* of the whole step, in its stored type */
	enum ap_dtype read_as; /* type in which operators read a parameter, each with its own
			cast; AP_DTYPE_COUNT: as stored */
	uint8_t batch; /* mask of batch dimensions */
	int64_t batch_outer[AP_MAX_RANK]; /* place of the batch in such a dimension: number of
			parts before it. 1: outermost, as in [batch * tokens]; tokens in [tokens
			* batch] */
	uint8_t uneven; /* mask of dimensions of experts with uneven numbers of tokens */
	double imbalance; /* tokens of the expert with most of them / the mean, where uneven; else 0 */
	bool needs_grad; /* trainable parameter, or activation on a path from one to the loss */
	bool trainable, layerwise_parallel, parallel_optimizer; /* of parameters */
	int32_t comm_fusion; /* -1: not given */
	ap_id producer; /* AP_NONE unless ACT */
	uint32_t result; /* index among the producer's results */
	uint32_t nuse;
	const struct ap_use *use; /* ascending (node, operand) */
	struct ap_use owner; /* the use that counts where only one may: among those with a
			gradient, if any, the nearest to the inputs, then the first; a Send only if
			there is no other; node AP_NONE if unused */
};

struct ap_pin { /* in_strategy: one vector per strategy operand */
	uint32_t n; /* 0: not given */
	struct {
		uint8_t rank;
		int32_t cut[AP_MAX_RANK];
	} *v;
};

/* Settings of a cell and all in it, as in MindSpore's Cell. Settings of inner cells, and of
 * operators and parameters themselves, take precedence. */
struct ap_cell {
	const char *name; /* "_backbone.layer1": for operators whose cell is this, or starts with
			this and a dot */
	int32_t stage, segment; /* -1: not given */
	int8_t recompute; /* -1: not given; 0, 1: Cell.recompute(), with these arguments */
	unsigned again; /* enum ap_recompute, bits: what the layers in it, or that it is, compute again
			beside what the step asks; 0: not given */
	bool mp_comm_recompute; /* also recomputes communication of tensor parallelism */
	bool parallel_optimizer_comm_recompute; /* also gathers dealt weights again */
	bool recompute_slice_activation; /* what is kept is cut among the ranks */
	int32_t comm_fusion; /* for parameters first used in it; -1: not given */
	ap_id parent; /* innermost enclosing cell of the list; AP_NONE */
};

struct ap_node {
	const char *name; /* full scope name */
	const char *type; /* canonical; as in the file if unknown */
	const char *cell; /* given or derived from the scope name; may be "" */
	const char *instance; /* attribute of its cell that holds its primitive, "matmul",
			"list.0"; "": none; NULL: not given */
	struct ap_attrs attrs;
	struct ap_bound bound;
	const ap_id *in, *out; /* tensors: bound.nin and bound.nout */
	ap_id param; /* first trainable parameter operand; AP_NONE: not in checkpoints */
	int32_t peer; /* receiving stage of a Send, sending stage of a Receive; else -1 */
	int32_t stage, segment; /* in a pipeline: as given, -1: not given; in a staged graph
			(graph/staged.h) resolved, 0 without a pipeline */
	int8_t recompute; /* of the primitive; -1: not given; cells: see struct ap_cell */
	ap_id in_cell; /* innermost listed cell; AP_NONE */
	ap_id recompute_cell; /* innermost cell that sets recompute, if it sets 1; else AP_NONE */
	bool cross_batch;
	bool once; /* runs once per step, not per micro-batch: a Send or Receive of a parameter */
	int32_t fusion; /* -1: not given */
	struct ap_pin in_pin, out_pin;
	uint32_t same; /* number that operators share whose counts are to be equal; 0: none */
	bool undealt; /* sums of result 0 are not dealt: it may not be cut there */
	bool backward; /* has any backward work */
	bool measured; /* time_s was given */
	double measured_forward_s, measured_backward_s, measured_share;
};

/* Where the stages of a pipeline have unequal numbers of devices. */
struct ap_stage_devices {
	int64_t n; /* devices of the stage */
	int32_t like; /* the first stage with as many, which lie as these on the machine */
};

struct ap_family_chain;

struct ap_graph {
	const char *name;
	const char *file; /* base name */
	const char *sha256;
	const char *source, *source_sha256; /* file that the graph was made of, base name; NULL: none */
	const char *optimizer; /* "": not given */
	uint32_t ntensor, nnode;
	const struct ap_tensor *tensor;
	const struct ap_node *node; /* topological order, as they run */
	uint32_t ncell;
	const struct ap_cell *cell; /* those with settings, in file order */
	uint32_t ninput, noutput;
	const ap_id *input; /* tensors of kind INPUT, file order: by place is said how they arrive */
	const ap_id *output;
	ap_id loss; /* first output if a scalar; else AP_NONE */
	int64_t batch; /* extent of the inputs' batch dimension; 0: not marked */
	int64_t parameters; /* elements of all parameters */
	const struct ap_stage_devices *devices; /* [stages] of a staged graph; NULL: each has as many */
	const struct ap_family_chain *layers; /* ap_family_chain(), found before; NULL: it was not */
};

/* The number of devices that a node runs on: `usual` where stages are equal. */
static inline int64_t ap_graph_devices(const struct ap_graph *g, ap_id node, int64_t usual)
{
	return g->devices ? g->devices[g->node[node].stage].n : usual;
}

/* Reads, checks and binds a graph. Reports all findings (named checks, with JSON pointer and
 * operator). batch > 0 (--batch) multiplies all batch extents by batch / graph batch and infers
 * shapes again. micro_batches must divide the batch. O(bytes). */
struct ap_graph_params {
	int64_t batch; /* 0: as in the file */
	int64_t micro_batches; /* above 1: notes if the result would change, errors if a batch
			length is not divisible */
	bool inference; /* --run-phase inference: no gradients */
	bool unknown_batch_parallel; /* allow operators of unknown types: dimension 0 of all
			operands and results is cut, or nothing */
	const char *source, *source_sha256; /* of ap_graph; borrowed */
};
enum ap_status ap_graph_load(struct ap_ctx *ctx, const struct ap_json *doc, const char *sha256,
	const struct ap_graph_params *params, const struct ap_graph **out);

/* A graph like g with nodes of its own, *node, which the caller may still change; all else is shared. */
struct ap_graph *ap_graph_with_nodes(struct ap_ctx *ctx, const struct ap_graph *g, struct ap_node **node);

/* The type in which operators read a tensor, to which rules are bound. */
enum ap_dtype ap_tensor_read_type(const struct ap_tensor *t);

/* Bytes of a whole tensor as stored. */
int64_t ap_tensor_bytes(const struct ap_tensor *t);

/* Checkpoint key of an operator, "<type>_<first trainable parameter>"; NULL if it has none. */
const char *ap_node_key(struct ap_ctx *ctx, const struct ap_graph *g, ap_id node);

#endif
