/* SPDX-License-Identifier: Apache-2.0 */
/* Small whole graphs. */
#include "graph_text.h"
#include "program.h"

#include "base/vec.h"

/* Two layers with their biases, as in the first seeds: data, tensor and hybrid parallel. */
static const char mlp[] = GRAPH("mlp",
	INPUT("x", "24,8") AND INPUT("y", "24,6"),
	TENSOR("w1", "12,8") AND TENSOR("b1", "12") AND TENSOR("w2", "6,12") AND TENSOR("b2", "6"), "",
	LINEAR("'x','w1'", "h.product") AND
	OP("BiasAdd", "'h.product','b1'", "h.sum") AND
	OP("ReLU", "'h.sum'", "h") AND
	LINEAR("'h','w2'", "o.product") AND
	OP("BiasAdd", "'o.product','b2'", "o") AND
	OP("Sub", "'o','y'", "error") AND
	OP("Square", "'error'", "squares") AND
	MEAN_OF("'squares'", "loss"), "loss");

#define HEADS(in, name) \
	OP_WITH("Reshape", in, name ".split", "'shape':[-1,6,2,4]") AND \
	OP_WITH("Transpose", "'" name ".split'", name, "'perm':[0,2,1,3]")

/* Attention and a feed-forward layer, softmax and the norm in single operators. */
static const char attention[] = GRAPH("attention",
	INPUT("x", "4,6,8"),
	TENSOR("pos", "6,8") AND TENSOR("wq", "8,8") AND TENSOR("wk", "8,8") AND TENSOR("wv", "8,8") AND
	TENSOR("wo", "8,8") AND TENSOR("gain", "8") AND TENSOR("up", "12,8") AND TENSOR("down", "8,12"),
	TENSOR("scale", ""),
	OP("Add", "'x','pos'", "e") AND
	ROWS("'e'", "rows", "8") AND
	LINEAR("'rows','wq'", "q.rows") AND HEADS("'q.rows'", "q") AND
	LINEAR("'rows','wk'", "k.rows") AND HEADS("'k.rows'", "k") AND
	LINEAR("'rows','wv'", "v.rows") AND HEADS("'v.rows'", "v") AND
	OP_WITH("BatchMatMul", "'q','k'", "s", "'transpose_b':true") AND
	OP("Mul", "'s','scale'", "s.scaled") AND
	OP("Exp", "'s.scaled'", "s.exp") AND
	OP_WITH("ReduceSum", "'s.exp'", "s.sum", "'axis':[-1],'keep_dims':true") AND
	OP("Div", "'s.exp','s.sum'", "p") AND
	OP("BatchMatMul", "'p','v'", "c") AND
	OP_WITH("Transpose", "'c'", "c.split", "'perm':[0,2,1,3]") AND
	ROWS("'c.split'", "c.rows", "8") AND
	LINEAR("'c.rows','wo'", "a") AND
	OP("Add", "'rows','a'", "r") AND
	OP("Mul", "'r','gain'", "n") AND
	LINEAR("'n','up'", "f") AND
	OP("GeLU", "'f'", "f.act") AND
	LINEAR("'f.act','down'", "f.down") AND
	OP("Add", "'r','f.down'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

/* The same with LayerNorm and Softmax. */
static const char transformer[] = GRAPH("transformer",
	INPUT("x", "4,6,8"),
	TENSOR("pos", "6,8") AND TENSOR("g1", "8") AND TENSOR("o1", "8") AND TENSOR("wq", "8,8") AND
	TENSOR("wk", "8,8") AND TENSOR("wv", "8,8") AND TENSOR("wo", "8,8") AND TENSOR("g2", "8") AND
	TENSOR("o2", "8") AND TENSOR("up", "12,8") AND TENSOR("down", "8,12"), "",
	OP("Add", "'x','pos'", "e") AND
	OP_WITH("LayerNorm", "'e','g1','o1'", "e.norm", "'begin_norm_axis':-1,'begin_params_axis':-1") AND
	ROWS("'e.norm'", "rows", "8") AND
	LINEAR("'rows','wq'", "q.rows") AND HEADS("'q.rows'", "q") AND
	LINEAR("'rows','wk'", "k.rows") AND HEADS("'k.rows'", "k") AND
	LINEAR("'rows','wv'", "v.rows") AND HEADS("'v.rows'", "v") AND
	OP_WITH("BatchMatMul", "'q','k'", "s", "'transpose_b':true") AND
	OP_WITH("Softmax", "'s'", "p", "'axis':[-1]") AND
	OP("BatchMatMul", "'p','v'", "c") AND
	OP_WITH("Transpose", "'c'", "c.split", "'perm':[0,2,1,3]") AND
	ROWS("'c.split'", "c.rows", "8") AND
	LINEAR("'c.rows','wo'", "a") AND
	OP_WITH("Reshape", "'a'", "a.tokens", "'shape':[-1,6,8]") AND
	OP("Add", "'e','a.tokens'", "r") AND
	OP_WITH("LayerNorm", "'r','g2','o2'", "r.norm", "'begin_norm_axis':-1,'begin_params_axis':-1") AND
	ROWS("'r.norm'", "n", "8") AND
	LINEAR("'n','up'", "f") AND
	OP("GeLU", "'f'", "f.act") AND
	LINEAR("'f.act','down'", "f.down") AND
	OP_WITH("Reshape", "'f.down'", "f.tokens", "'shape':[-1,6,8]") AND
	OP("Add", "'r','f.tokens'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

/* Grouped queries: four heads, two of keys and values; a gated feed-forward layer. */
static const char flash[] = GRAPH("flash",
	INPUT("x", "4,6,8"),
	TENSOR("pos", "6,8") AND TENSOR("g1", "8") AND TENSOR("wq", "16,8") AND TENSOR("wk", "8,8") AND
	TENSOR("wv", "8,8") AND TENSOR("wo", "8,16") AND TENSOR("g2", "8") AND TENSOR("w1", "12,8") AND
	TENSOR("w3", "12,8") AND TENSOR("w2", "8,12"), "",
	OP("Add", "'x','pos'", "e") AND
	OPER("RmsNorm", "'e','g1'", "e.norm", "," RESULT("e.rstd") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'e.norm'", "rows", "8") AND
	LINEAR("'rows','wq'", "q.rows") AND
	OP_WITH("Reshape", "'q.rows'", "q", "'shape':[-1,6,16]") AND
	LINEAR("'rows','wk'", "k.rows") AND
	OP_WITH("Reshape", "'k.rows'", "k", "'shape':[-1,6,8]") AND
	LINEAR("'rows','wv'", "v.rows") AND
	OP_WITH("Reshape", "'v.rows'", "v", "'shape':[-1,6,8]") AND
	OPER("FlashAttentionScore", "'q','k','v'", "c.max", "," RESULT("c.sum") "," RESULT("c.unused") ","
		RESULT("c") "],'attrs':{'head_num':4,'scale_value':0.5,'input_layout':'BSH'}}") AND
	ROWS("'c'", "c.rows", "16") AND
	LINEAR("'c.rows','wo'", "a") AND
	OP_WITH("Reshape", "'a'", "a.tokens", "'shape':[-1,6,8]") AND
	OP("Add", "'e','a.tokens'", "r") AND
	OPER("RmsNorm", "'r','g2'", "r.norm", "," RESULT("r.rstd") "],'attrs':{'epsilon':1e-05}}") AND
	ROWS("'r.norm'", "n", "8") AND
	LINEAR("'n','w1'", "gate") AND
	OP("SiLU", "'gate'", "gate.act") AND
	LINEAR("'n','w3'", "f") AND
	OP("Mul", "'gate.act','f'", "f.gated") AND
	LINEAR("'f.gated','w2'", "f.down") AND
	OP_WITH("Reshape", "'f.down'", "f.tokens", "'shape':[-1,6,8]") AND
	OP("Add", "'r','f.tokens'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

/* Products that read equal views of one tensor, one through two of them; of one view there are other readers. */
static const char views[] = GRAPH("views",
	INPUT("x", "12,2,8"),
	TENSOR("gain", "8") AND TENSOR("wq", "8,8") AND TENSOR("wk", "8,8") AND TENSOR("wv", "8,8") AND
	TENSOR("wg", "8,8") AND TENSOR("wo", "8,8"), "",
	OP("Mul", "'x','gain'", "n") AND
	ROWS("'n'", "n.q", "8") AND LINEAR("'n.q','wq'", "q") AND
	ROWS("'n'", "n.k", "8") AND LINEAR("'n.k','wk'", "k") AND
	SHAPED("'n'", "n.flat", "-1,16") AND ROWS("'n.flat'", "n.v", "8") AND LINEAR("'n.v','wv'", "v") AND
	SHAPED("'n'", "n.even", "-1,16") AND ROWS("'n.even'", "n.g", "8") AND LINEAR("'n.g','wg'", "g") AND
	OP("Square", "'n.k'", "k.square") AND
	OP("Mul", "'q','k'", "s") AND
	OP("Mul", "'v','g'", "t") AND
	OP("Add", "'s','t'", "u") AND
	OP("Add", "'u','k.square'", "y") AND
	LINEAR("'y','wo'", "o") AND
	OP("Add", "'n.k','o'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

#define CONV(in, name, kernel, stride) OP_WITH("Conv2D", in, name, \
	"'kernel_size':[" kernel "," kernel "],'stride':[" stride "," stride "],'pad_mode':'same'")
#define NORM(in, name, of) \
	OPER("BatchNorm", "'" in "','" of ".gamma','" of ".beta','" of ".mean','" of ".variance'", name, \
		"," RESULT(name ".mean") "," RESULT(name ".variance") "," RESULT(name ".saved_mean") "," \
		RESULT(name ".saved_variance") "],'attrs':{'is_training':true}}")
#define NORM_PARAMETERS(of) \
	TENSOR(of ".gamma", "2") AND TENSOR(of ".beta", "2") AND \
	"{'name':'" of ".mean','shape':[2],'dtype':'float32','trainable':false}" AND \
	"{'name':'" of ".variance','shape':[2],'dtype':'float32','trainable':false}"

/* A residual block: halos, strides, statistics over the batch, pooling, a loss of labels. */
static const char residual[] = GRAPH("residual",
	INPUT("x", "4,2,12,12") AND LABEL("label", "4"),
	TENSOR("c1", "2,2,3,3") AND NORM_PARAMETERS("n1") AND TENSOR("c2", "2,2,3,3") AND
	TENSOR("c3", "2,2,1,1") AND TENSOR("w", "6,2"), "",
	CONV("'x','c1'", "y1", "3", "1") AND
	NORM("y1", "y2", "n1") AND
	OP("ReLU", "'y2'", "y3") AND
	CONV("'y3','c2'", "y4", "3", "1") AND
	CONV("'x','c3'", "short", "1", "1") AND
	OP("Add", "'y4','short'", "y5") AND
	OP("ReLU", "'y5'", "y6") AND
	OP_WITH("MaxPool", "'y6'", "y7", "'kernel_size':[2,2],'strides':[2,2],'pad_mode':'valid'") AND
	OP_WITH("ReduceMean", "'y7'", "features", "'axis':[2,3],'keep_dims':false") AND
	LINEAR("'features','w'", "logits") AND
	OP("SparseSoftmaxCrossEntropyWithLogits", "'logits','label'", "loss"), "loss");

/* A convolution with stride, and one over its result: halos of both passes. */
static const char strides[] = GRAPH("strides",
	INPUT("x", "2,2,12,12"),
	TENSOR("c1", "4,2,3,3") AND TENSOR("c2", "4,4,3,3"), "",
	CONV("'x','c1'", "y1", "3", "1") AND
	OP("ReLU", "'y1'", "y2") AND
	CONV("'y2','c2'", "y3", "3", "2") AND
	MEAN_OF("'y3'", "loss"), "loss");

/* Experts are cut between devices, tokens too: between them everything changes hands. */
static const char experts[] = GRAPH("experts",
	INPUT("x", "4,6,8") AND INPUT("deal", "4,6,8"),
	TENSOR("w0", "8,8") AND TENSOR("w1", "2,8,12") AND TENSOR("w2", "2,12,8"), "",
	ROWS("'x'", "rows", "8") AND
	LINEAR("'rows','w0'", "h") AND
	OP_WITH("Reshape", "'h'", "tokens", "'shape':[-1,6,8]") AND
	OPER("BatchMatMul", "'deal','tokens'", "dealt",
		"],'attrs':{'transpose_a':true},'in_strategy':[[2,1,1],[2,1,1]]}") AND
	OP_WITH("Reshape", "'dealt'", "sorted", "'shape':[-1,2,4,8]") AND
	OPER("BatchMatMul", "'sorted','w1'", "up", "],'in_strategy':[[1,2,1,1],[2,1,1]]}") AND
	OP("SiLU", "'up'", "act") AND
	OPER("BatchMatMul", "'act','w2'", "down", "],'in_strategy':[[1,2,1,1],[2,1,1]]}") AND
	OP_WITH("Reshape", "'down'", "joined", "'shape':[-1,8,8]") AND
	OPER("BatchMatMul", "'deal','joined'", "out", "],'in_strategy':[[2,1,1],[2,1,1]]}") AND
	OP("Add", "'out','tokens'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

/* The same dealt by a gate: the two best of four experts, with room for four tokens each. */
static const char routed[] = GRAPH("routed",
	INPUT("x", "4,6,8"),
	TENSOR("w0", "8,8") AND TENSOR("gate", "4,8") AND TENSOR("w1", "4,8,12") AND
	TENSOR("w2", "4,12,8"),
	TENSOR("on", "") AND TENSOR("off", "") AND TENSOR("room", "1,1,1,3"),
	ROWS("'x'", "rows", "8") AND
	LINEAR("'rows','w0'", "h") AND
	LINEAR("'h','gate'", "scores") AND
	OP_WITH("Reshape", "'scores'", "scores.tokens", "'shape':[-1,6,4]") AND
	OP_WITH("Softmax", "'scores.tokens'", "probs", "'axis':[-1]") AND
	OPER("TopK", "'probs'", "best", "," RESULT("expert") "],'attrs':{'k':2,'sorted':true}}") AND
	OP_WITH("OneHot", "'expert','on','off'", "chosen", "'depth':4,'axis':-1") AND
	OP_WITH("ReduceSum", "'chosen'", "mask", "'axis':[2],'keep_dims':false") AND
	OP_WITH("CumSum", "'mask'", "before", "'axis':1,'exclusive':true") AND
	OP("Mul", "'before','probs'", "weight") AND
	OP_WITH("Reshape", "'weight'", "weight.wide", "'shape':[-1,6,4,1]") AND
	OP("Mul", "'weight.wide','room'", "slots") AND
	OP_WITH("Reshape", "'slots'", "deal", "'shape':[-1,6,12]") AND
	OP_WITH("Reshape", "'h'", "tokens", "'shape':[-1,6,8]") AND
	OP_WITH("BatchMatMul", "'deal','tokens'", "dealt", "'transpose_a':true") AND
	OP_WITH("Reshape", "'dealt'", "sorted", "'shape':[-1,4,3,8]") AND
	OPER("BatchMatMul", "'sorted','w1'", "up", "],'in_strategy':[[1,2,1,1],[2,1,1]]}") AND
	OP("SiLU", "'up'", "act") AND
	OP("BatchMatMul", "'act','w2'", "down") AND
	OP_WITH("Reshape", "'down'", "joined", "'shape':[-1,12,8]") AND
	OP("BatchMatMul", "'deal','joined'", "out") AND
	OP("Add", "'out','tokens'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

/* Tokens sent to the two best of four experts with their weights, which are in what the last product reads: nobody
 * needs what it gives. */
static const char weighed[] = GRAPH("weighed",
	INPUT("x", "4,6,8"),
	TENSOR("w0", "8,8") AND TENSOR("gate", "4,8") AND TENSOR("w1", "4,8,12") AND
	TENSOR("w2", "4,8,12") AND TENSOR("w3", "4,12,8"), "",
	ROWS("'x'", "rows", "8") AND
	LINEAR("'rows','w0'", "h") AND
	LINEAR("'h','gate'", "scores") AND
	OP_WITH("Reshape", "'scores'", "scores.tokens", "'shape':[-1,6,4]") AND
	OP_WITH("Softmax", "'scores.tokens'", "probs", "'axis':[-1]") AND
	OPER("TopK", "'probs'", "best", "," RESULT("expert") "],'attrs':{'k':2,'sorted':true}}") AND
	OP_WITH("Reshape", "'h'", "tokens", "'shape':[-1,6,8]") AND
	OPER("MoeDispatch", "'tokens','expert'", "dealt", "],'in_strategy':[[2,1,1],[2,1,1]],"
		"'attrs':{'num_groups':2,'capacity':2,'expert_num':4}}") AND
	OP_WITH("MoeWeights", "'best','expert'", "weights",
		"'num_groups':2,'capacity':2,'expert_num':4") AND
	OPER("BatchMatMul", "'dealt','w1'", "up", "],'in_strategy':[[1,2,1,1],[2,1,1]]}") AND
	OPER("BatchMatMul", "'dealt','w2'", "wide", "],'in_strategy':[[1,2,1,1],[2,1,1]]}") AND
	OP("MoeGate", "'up','wide','weights'", "gated") AND
	OP("BatchMatMul", "'gated','w3'", "down") AND
	OP_WITH("MoeCombine", "'down','expert'", "out", "'num_groups':2,'capacity':2") AND
	OP("Add", "'out','tokens'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

/* One table looks tokens up and scores them; both exchange its gradient. */
static const char tied[] = GRAPH("tied",
	LABEL("ids", "12,4"), TENSOR("table", "12,8") AND TENSOR("w", "8,8"), "",
	OP_WITH("Gather", "'table','ids'", "e", "'axis':0") AND
	ROWS("'e'", "rows", "8") AND
	LINEAR("'rows','w'", "h") AND
	OP("Tanh", "'h'", "h.act") AND
	LINEAR("'h.act','table'", "logits") AND
	OP("Square", "'logits'", "squares") AND
	MEAN_OF("'squares'", "loss"), "loss");

/* A weight that cannot be cut: where both uses are cut alike, one exchange has both gradients. */
static const char together[] = GRAPH("together",
	INPUT("x", "24,7"), TENSOR("w", "7"), "",
	OP("Mul", "'x','w'", "h") AND
	OP("Tanh", "'h'", "h.act") AND
	OP("Add", "'h.act','w'", "q") AND
	OP("Square", "'q'", "squares") AND
	MEAN_OF("'squares'", "loss"), "loss");

/* The vocabulary is cut, the sum of the masked parts dealt to those who summed. */
static const char vocabulary[] = GRAPH("vocabulary",
	LABEL("ids", "12,4"), TENSOR("table", "24,8") AND TENSOR("w", "6,8"), "",
	OPER("Gather", "'table','ids'", "e",
		"],'attrs':{'axis':0},'in_strategy':[[2,1],[1,1]],'out_strategy':[[2,1,1]]}") AND
	ROWS("'e'", "rows", "8") AND
	LINEAR("'rows','w'", "h") AND
	MEAN_OF("'h'", "loss"), "loss");

/* A product whose partial sums are dealt, and one whose are not. */
static const char dealt[] = GRAPH("dealt",
	INPUT("x", "24,8"), TENSOR("w0", "8,8") AND TENSOR("w1", "8,12") AND TENSOR("w2", "12,4"), "",
	OP("MatMul", "'x','w0'", "h0") AND
	OPER("MatMul", "'h0','w1'", "h1",
		"],'in_strategy':[[1,2],[2,1]],'out_strategy':[[2,1]]}") AND
	OP("ReLU", "'h1'", "h2") AND
	OPER("MatMul", "'h2','w2'", "h3", "],'in_strategy':[[1,2],[2,1]]}") AND
	MEAN_OF("'h3'", "loss"), "loss");

/* A tensor with five users, that are free to want it in five layouts; two outputs, no loss. */
static const char five[] = GRAPH("five",
	INPUT("x", "12,6,8"), TENSOR("b", "8") AND TENSOR("w", "8,4") AND TENSOR("v", "6,1"), "",
	OP("Add", "'x','b'", "e") AND
	OP("ReLU", "'e'", "u1") AND
	OP_WITH("ReduceSum", "'e'", "u2", "'axis':[1],'keep_dims':true") AND
	OP("Mul", "'e','v'", "u3") AND
	OP("BatchMatMul", "'e','w'", "u4") AND
	OP_WITH("Transpose", "'e'", "u5", "'perm':[0,2,1]") AND
	OP("Add", "'u1','u2'", "s1") AND
	OP("Sub", "'s1','u3'", "s2") AND
	OP("BatchMatMul", "'s2','u5'", "s3") AND
	OP("BatchMatMul", "'s3','u4'", "y"), "y','s2");

/* Parameters that a product and an element-wise operator use: in the generic convention each use is
 * partial over ranks of its own. The product is the owner of one, the other of the other. */
static const char twice[] = GRAPH("twice",
	INPUT("x", "24,8"), TENSOR("w", "8,8") AND TENSOR("v", "8,8") AND TENSOR("b", "8"), "",
	OP("Mul", "'w','b'", "w.scaled") AND
	OP("MatMul", "'x','w'", "h") AND
	OP("MatMul", "'h','w.scaled'", "o") AND
	OP("Mul", "'v','b'", "a.scaled") AND
	OP("MatMul", "'o','v'", "q") AND
	OP("MatMul", "'q','a.scaled'", "r") AND
	OP("ReLU", "'r'", "act") AND
	MEAN_OF("'act'", "loss"), "loss");

/* Operators that read one tensor, and one parameter, twice. */
static const char same[] = GRAPH("same",
	INPUT("x", "12,6,8"), TENSOR("b", "8") AND TENSOR("w", "8,8"), "",
	OP("Add", "'x','b'", "e") AND
	OP("Mul", "'e','e'", "square") AND
	OP_WITH("BatchMatMul", "'square','square'", "gram", "'transpose_b':true") AND
	OP_WITH("MatMul", "'w','w'", "ww", "'transpose_b':true") AND
	OP("BatchMatMul", "'gram','square'", "z") AND
	ROWS("'z'", "rows", "8") AND
	OP("MatMul", "'rows','ww'", "o") AND
	MEAN_OF("'o'", "loss"), "loss");

/* Lengths that 2 and 4 do not divide. */
static const char odd[] = GRAPH("odd",
	INPUT("x", "18,15"), TENSOR("w1", "9,15") AND TENSOR("b1", "9") AND TENSOR("w2", "3,27") AND
	TENSOR("g", "3"), "",
	LINEAR("'x','w1'", "h") AND
	OP("BiasAdd", "'h','b1'", "h.sum") AND
	OP("Tanh", "'h.sum'", "h.act") AND
	OP_WITH("Reshape", "'h.act'", "cube", "'shape':[-1,3,9]") AND
	OP_WITH("Transpose", "'cube'", "turned", "'perm':[0,2,1]") AND
	OP_WITH("Reshape", "'turned'", "flat", "'shape':[-1,27]") AND
	LINEAR("'flat','w2'", "o") AND
	OP("Mul", "'o','g'", "scaled") AND
	OP_WITH("ReduceSum", "'scaled'", "sums", "'axis':[1],'keep_dims':false") AND
	MEAN_OF("'sums'", "loss"), "loss");

#define HALF(name, shape) "{'name':'" name "','shape':[" shape "],'dtype':'float16'}"

/* Half precision, with a cast on the way and a loss in full; a table that is not trained, and one that no
 * optimizer shard may take. */
static const char half[] = GRAPH("half",
	"{'name':'x','shape':[24,8],'dtype':'float16','batch_dim':0}" AND LABEL("ids", "24"),
	HALF("w1", "12,8") AND HALF("b1", "12") AND HALF("w2", "8,12") AND
	"{'name':'table','shape':[12,8],'dtype':'float16','trainable':false}" AND
	"{'name':'g','shape':[8],'dtype':'float32','parallel_optimizer':false}", "",
	LINEAR("'x','w1'", "h") AND
	OP("BiasAdd", "'h','b1'", "h.sum") AND
	OP("Sigmoid", "'h.sum'", "h.act") AND
	LINEAR("'h.act','w2'", "o") AND
	OP_WITH("Gather", "'table','ids'", "e", "'axis':0") AND
	OP("Mul", "'o','e'", "oe") AND
	OP_WITH("Cast", "'oe'", "wide", "'dst_type':'float32'") AND
	OP("Mul", "'wide','g'", "scaled") AND
	OP_WITH("ReduceSum", "'scaled'", "sums", "'axis':[1],'keep_dims':false") AND
	MEAN_OF("'sums'", "loss"), "loss");

/* Several results, of which one is not used and one is used twice, and what puts tensors together. */
static const char branches[] = GRAPH("branches",
	INPUT("x", "12,6,8"), TENSOR("b", "8") AND TENSOR("c", "6,4") AND TENSOR("w", "8,4"), "",
	OP("Add", "'x','b'", "e") AND
	OPER("Split", "'e'", "left", "," RESULT("right") "],'attrs':{'axis':2,'output_num':2}}") AND
	OPER("Split", "'left'", "l1", "," RESULT("l2") "," RESULT("l3")
		"],'attrs':{'axis':1,'output_num':3}}") AND
	OP("Mul", "'right','c'", "r") AND
	OP_WITH("Concat", "'l1','r','l1'", "wide", "'axis':1") AND
	OP_WITH("StridedSlice", "'wide'", "some",
		"'begin':[0,1,0],'end':[12,7,4],'strides':[1,1,1],'begin_mask':5,'end_mask':5") AND
	OP_WITH("Stack", "'some','r'", "two", "'axis':1") AND
	OP_WITH("ReduceMax", "'two'", "most", "'axis':[1],'keep_dims':false") AND
	OP("BatchMatMul", "'e','w'", "p") AND
	OP("Maximum", "'most','p'", "m") AND
	OP_WITH("Tile", "'m'", "tiled", "'multiples':[1,2,1]") AND
	MEAN_OF("'tiled'", "loss"), "loss");

/* Weights in full that are used in half precision: operators are named after parameters behind a cast. */
static const char halved[] = GRAPH("halved",
	"{'name':'x','shape':[24,8],'dtype':'float16','batch_dim':0}",
	TENSOR("w1", "12,8") AND TENSOR("b1", "12") AND TENSOR("w2", "8,12"), "",
	OP_WITH("Cast", "'w1'", "w1.half", "'dst_type':'float16'") AND
	LINEAR("'x','w1.half'", "h") AND
	OP_WITH("Cast", "'b1'", "b1.half", "'dst_type':'float16'") AND
	OP("BiasAdd", "'h','b1.half'", "h.sum") AND
	OP("Sigmoid", "'h.sum'", "h.act") AND
	OP_WITH("Cast", "'w2'", "w2.half", "'dst_type':'float16'") AND
	LINEAR("'h.act','w2.half'", "o") AND
	OP_WITH("Cast", "'o'", "wide", "'dst_type':'float32'") AND
	MEAN_OF("'wide'", "loss"), "loss");

/* A parameter of several users that no checkpoint tells of: it is not trained. */
static const char frozen[] = GRAPH("frozen",
	INPUT("x", "24,8"),
	TENSOR("w1", "12,8") AND TENSOR("w2", "12,12") AND
	"{'name':'g','shape':[12],'dtype':'float32','trainable':false}", "",
	LINEAR("'x','w1'", "h") AND
	OP("Mul", "'h','g'", "h.scaled") AND
	OP("ReLU", "'h.scaled'", "h.act") AND
	LINEAR("'h.act','w2'", "o") AND
	OP("Mul", "'o','g'", "o.scaled") AND
	OP("Tanh", "'o.scaled'", "o.act") AND
	OP("Add", "'o.act','h.act'", "z") AND
	MEAN_OF("'z'", "loss"), "loss");

#define READ_AS(name, shape, type, read) \
	"{'name':'" name "','shape':[" shape "],'dtype':'" type "','read_as':'" read "'}"

/* The same without operators for it: each reader casts, a view among them; one is read twice. */
static const char read_as[] = GRAPH("read_as",
	"{'name':'x','shape':[24,8],'dtype':'float16','batch_dim':0}",
	READ_AS("w1", "8,8", "float32", "float16") AND READ_AS("w2", "8,8", "float32", "float16") AND
	READ_AS("b1", "8", "float32", "float16") AND READ_AS("turn", "8,8", "float32", "float16") AND
	READ_AS("g", "8", "float16", "float32"), "",
	LINEAR("'x','w1'", "h") AND
	OP("BiasAdd", "'h','b1'", "h.sum") AND
	OP_WITH("Reshape", "'turn'", "turn.flat", "'shape':[-1]") AND
	OP_WITH("Reshape", "'turn.flat'", "turned", "'shape':[8,8]") AND
	OP("MatMul", "'h.sum','turned'", "t") AND
	OP("Sigmoid", "'t'", "t.act") AND
	LINEAR("'t.act','w2'", "o") AND
	OP("Add", "'o','b1'", "o.sum") AND
	OP_WITH("Cast", "'o.sum'", "wide", "'dst_type':'float32'") AND
	OP("Mul", "'wide','g'", "scaled") AND
	MEAN_OF("'scaled'", "loss"), "loss");

static const struct ex_graph_sample graphs[] = {
	{"mlp", mlp, false, NULL},
	{"attention", attention, false, NULL},
	{"five", five, false, NULL},
	{"experts", experts, true, "AlltoAll"},
	{"weighed", weighed, true, "AlltoAll"},
	{"twice", twice, false, NULL},
	{"half", half, false, NULL},
	{"dealt", dealt, true, NULL},
	{"odd", odd, false, NULL},
	{"residual", residual, false, NULL},
	{"branches", branches, false, NULL},
	{"transformer", transformer, false, NULL},
	{"tied", tied, false, NULL},
	{"together", together, false, NULL},
	{"strides", strides, false, NULL},
	{"same", same, false, NULL},
	{"vocabulary", vocabulary, true, NULL},
	{"flash", flash, false, NULL},
	{"routed", routed, true, NULL},
	{"halved", halved, false, NULL},
	{"frozen", frozen, false, NULL},
	{"read_as", read_as, false, NULL},
	{"views", views, false, NULL},
};

const struct ex_graph_sample *ex_graph_at(size_t i)
{
	size_t own = AP_COUNT(graphs);

	return i < own ? &graphs[i] : ex_graph_batch_at(i - own);
}

size_t ex_graph_count(void)
{
	size_t n = 0;

	while (ex_graph_at(n))
		n++;
	return n;
}
