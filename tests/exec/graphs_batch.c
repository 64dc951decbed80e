/* SPDX-License-Identifier: Apache-2.0 */
/* Small whole graphs whose batch is not always outermost. */
#include "graph_text.h"
#include "program.h"

#include "base/vec.h"

#define INSIDE(name, shape, type) \
	"{'name':'" name "','shape':[" shape "],'dtype':'" type "','batch_dim':1}"
#define TURNED(in, name, perm) OP_WITH("Transpose", in, name, "'perm':[" perm "]")

/* Tokens before samples, as Megatron has them: rows of both, heads beside samples, a causal mask without
 * any, labels that come the other way round. */
static const char tokens_first[] = GRAPH("tokens_first",
	INSIDE("x", "3,12,8", "float32") AND LABEL("ids", "12,3"),
	TENSOR("wq", "8,8") AND TENSOR("wk", "8,8") AND TENSOR("wv", "8,8") AND TENSOR("wo", "8,8") AND
	TENSOR("head", "10,8"),
	TENSOR("causal", "1,3,3") AND TENSOR("on", "") AND TENSOR("off", ""),
	ROWS("'x'", "rows", "8") AND
	LINEAR("'rows','wq'", "q.rows") AND SHAPED("'q.rows'", "q.heads", "3,24,4") AND
	TURNED("'q.heads'", "q", "1,0,2") AND
	LINEAR("'rows','wk'", "k.rows") AND SHAPED("'k.rows'", "k.heads", "3,24,4") AND
	TURNED("'k.heads'", "k", "1,0,2") AND
	LINEAR("'rows','wv'", "v.rows") AND SHAPED("'v.rows'", "v.heads", "3,24,4") AND
	TURNED("'v.heads'", "v", "1,0,2") AND
	OP_WITH("BatchMatMul", "'q','k'", "s", "'transpose_b':true") AND
	OP("Add", "'s','causal'", "s.masked") AND
	OP_WITH("Softmax", "'s.masked'", "p", "'axis':[-1]") AND
	OP("BatchMatMul", "'p','v'", "c") AND
	TURNED("'c'", "c.turned", "1,0,2") AND
	ROWS("'c.turned'", "c.rows", "8") AND
	LINEAR("'c.rows','wo'", "a") AND
	OP("Add", "'rows','a'", "y") AND
	LINEAR("'y','head'", "logits") AND
	TURNED("'ids'", "ids.turned", "1,0") AND
	SHAPED("'ids.turned'", "ids.row", "36") AND
	OP_WITH("OneHot", "'ids.row','on','off'", "hot", "'depth':10,'axis':-1") AND
	OP("Sub", "'logits','hot'", "error") AND
	OP("Square", "'error'", "squares") AND
	MEAN_OF("'squares'", "loss"), "loss");

/* Heads before samples, merged and taken apart at other places than before; all in one dimension. */
static const char heads_first[] = GRAPH("heads_first",
	INPUT("x", "12,4,6"), TENSOR("b", "6") AND TENSOR("w", "6,6") AND TENSOR("v", "8"), "",
	OP("Add", "'x','b'", "e") AND
	SHAPED("'e'", "split", "12,4,2,3") AND
	TURNED("'split'", "heads", "2,0,1,3") AND
	SHAPED("'heads'", "many", "24,4,3") AND
	OP_WITH("BatchMatMul", "'many','many'", "gram", "'transpose_b':true") AND
	SHAPED("'gram'", "flat", "384") AND
	OP("Tanh", "'flat'", "flat.act") AND
	SHAPED("'flat.act'", "few", "2,48,4") AND
	SHAPED("'few'", "fours", "2,12,16") AND
	TURNED("'fours'", "samples", "1,0,2") AND
	SHAPED("'samples'", "wide", "12,4,8") AND
	OP("Mul", "'wide','v'", "scaled") AND
	OP_WITH("ReduceSum", "'scaled'", "sums", "'axis':[2],'keep_dims':true") AND
	OP("Add", "'e','sums'", "z") AND
	TURNED("'z'", "z.turned", "1,0,2") AND
	ROWS("'z.turned'", "z.rows", "6") AND
	OP("MatMul", "'z.rows','w'", "o") AND
	OP("GeLU", "'o'", "o.act") AND
	MEAN_OF("'o.act'", "loss"), "loss");

/* A table is looked up for tokens and samples in one dimension; no loss, and the batch last in the output. */
static const char looked_up[] = GRAPH("looked_up",
	INSIDE("ids", "2,12", "int32") AND INSIDE("mask", "2,12", "float32"),
	TENSOR("table", "12,8") AND TENSOR("pos", "2,1,8") AND TENSOR("w", "4,8"), "",
	SHAPED("'ids'", "row", "24") AND
	OP_WITH("Gather", "'table','row'", "rows", "'axis':0") AND
	SHAPED("'rows'", "tokens", "2,12,8") AND
	OP("Add", "'tokens','pos'", "e") AND
	SHAPED("'mask'", "mask.wide", "2,12,1") AND
	OP("Mul", "'e','mask.wide'", "masked") AND
	ROWS("'masked'", "masked.rows", "8") AND
	LINEAR("'masked.rows','w'", "h") AND
	SHAPED("'h'", "h.tokens", "2,12,4") AND
	OP_WITH("ReduceMax", "'h.tokens'", "best", "'axis':[0],'keep_dims':false") AND
	TURNED("'best'", "y", "1,0"), "y");

static const struct ex_graph_sample graphs[] = {
	{"tokens_first", tokens_first, false, NULL},
	{"heads_first", heads_first, false, NULL},
	{"looked_up", looked_up, false, NULL},
};

const struct ex_graph_sample *ex_graph_batch_at(size_t i)
{
	return i < AP_COUNT(graphs) ? &graphs[i] : NULL;
}
