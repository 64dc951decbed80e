/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured times of kernels as times of operators: msprof's op_summary, torch_npu's kernel_details, a CSV.
 *
 * A header names the columns: Op Name or Name, OP Type or Type, Task Duration(us) or Duration(us), Input
 * Shapes and Output Shapes of the profilers; or name, type, input_shapes, output_shapes, share, forward_us
 * (or _ms, _s), backward_us. Shapes are those of the device that was measured, "8,1024;1024,4096": a kernel
 * is of an operator of its type, but for a version at its end (MatMulV2), whose operands have whole multiples
 * of its extents, the nearest if there are several. A row of the CSV with the name of an operator is of that
 * one.
 *
 * Kernels of a type and shapes count as one, with their mean, so that equal layers stay equal. Those of the
 * backward pass (Gradients/.../gradMatMul-expand/...) belong to the operator in whose scope they lie. Where
 * none is known, a product's backward pass takes twice its forward one, two products for one, and others' as
 * long as that.
 */
#ifndef AP_GRAPH_KERNEL_TIMES_H
#define AP_GRAPH_KERNEL_TIMES_H

#include "graph/graph.h"

/*
 * The graph with the times of a table; operators that have time_s keep theirs. Notes say of how many
 * operators times are known, of which types none is, and which kernels are of no operator. AP_SYNTAX,
 * AP_MEANING with the place for what is no such table. O(kernels * operators). In the run arena.
 */
enum ap_status ap_kernel_times_apply(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	const struct ap_graph *g, const struct ap_graph **out);

#endif
