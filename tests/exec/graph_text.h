/* SPDX-License-Identifier: Apache-2.0 */
/* Words that texts of graphs are made of; operators are named after their first result. */
#ifndef AP_TEST_EXEC_GRAPH_TEXT_H
#define AP_TEST_EXEC_GRAPH_TEXT_H

#define GRAPH(name, inputs, parameters, constants, operators, output) \
	"{'schema':'autopar-graph/1','name':'" name "','inputs':[" inputs "],'parameters':[" parameters \
	"],'constants':[" constants "],'operators':[" operators "],'outputs':['" output "']}"
#define TENSOR(name, shape) "{'name':'" name "','shape':[" shape "],'dtype':'float32'}"
#define INPUT(name, shape) \
	"{'name':'" name "','shape':[" shape "],'dtype':'float32','batch_dim':0}"
#define LABEL(name, shape) \
	"{'name':'" name "','shape':[" shape "],'dtype':'int32','batch_dim':0}"
#define RESULT(name) "{'name':'" name "'}"
#define OPER(type, in, name, more) \
	"{'type':'" type "','inputs':[" in "],'name':'" name "','outputs':[" RESULT(name) more
#define OP(type, in, name) OPER(type, in, name, "]}")
#define OP_WITH(type, in, name, attrs) OPER(type, in, name, "],'attrs':{" attrs "}}")
#define AND ","

#define SHAPED(in, name, shape) OP_WITH("Reshape", in, name, "'shape':[" shape "]")
#define ROWS(in, name, width) SHAPED(in, name, "-1," width)
#define LINEAR(in, name) OP_WITH("MatMul", in, name, "'transpose_b':true")
#define MEAN_OF(in, name) OP("ReduceMean", in, name)
#define LAYER_NORM(in, name) \
	OP_WITH("LayerNorm", in, name, "'begin_norm_axis':-1,'begin_params_axis':-1")

#endif
