/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where MindSpore places the parts of an operator, from its strategy alone: which dimension comes
 * first in the dev_matrix, and on which side operators are repeated. Layouts that are consistent among
 * themselves but lie elsewhere give the right numbers, and a plan of another program.
 */
#include <inttypes.h>
#include <string.h>

#include "base/vec.h"
#include "rule/attr.h"

#include "oper.h"

/*
 * Dimensions in the order of the dev_matrix, outermost first: a letter, a b .. of operands, o p .. of
 * results, and * for all its dimensions, : for all but the last two, or a number from the last one, 1.
 * What is not named is cut with what is.
 */
static const struct placed {
	const char *type;
	const char *with; /* attribute that must be set; NULL: the row holds where none before does */
	const char *without; /* attributes that must be missing or 0, parted by blanks; NULL: none */
	const char *order;
	bool left; /* repeats go left where the first dimension of operand 0 is cut */
} rows[] = {
	{"MatMul", "transpose_a", NULL, "a1 a2 o1", false},
	{"MatMul", NULL, NULL, "a2 a1 o1", false},
	{"BatchMatMul", "transpose_a", NULL, "o: a1 a2 o1", false},
	{"BatchMatMul", NULL, NULL, "o: a2 a1 o1", false},
	{"Conv2D", NULL, NULL, "a4 a3 o2 o1 o3", false},
	{"Gather", NULL, "axis batch_dims", "b* a*", true},
	{"SparseGatherV2", NULL, "axis batch_dims", "b* a*", true},
	{"EmbeddingLookup", NULL, "axis batch_dims", "b* a*", true},
	{"IndexSelect", NULL, "axis batch_dims", "b* a*", true},
	{"FlashAttentionScore", NULL, NULL, "a*", false},
	{"BatchNorm", NULL, NULL, "a*", false},
	{"LayerNorm", NULL, NULL, "a*", false},
	{"RmsNorm", NULL, NULL, "a*", false},
	{"BiasAdd", NULL, NULL, "a*", false},
	{"Add", NULL, NULL, "o*", false},
	{"Mul", NULL, NULL, "o*", false},
	{"ReLU", NULL, NULL, "a*", false},
	{"Softmax", NULL, NULL, "a*", false},
	{"Transpose", NULL, NULL, "a*", false},
	{"ReduceSum", NULL, NULL, "a*", false},
	{"SoftmaxCrossEntropyWithLogits", NULL, NULL, "a*", false},
	{"SigmoidCrossEntropyWithLogits", NULL, NULL, "a*", false},
	{"Abs", NULL, NULL, "a*", false},
	{"Cast", NULL, NULL, "a*", false},
	{"Concat", NULL, NULL, "a*", false},
	{"CumSum", NULL, NULL, "a*", false},
	{"Div", NULL, NULL, "o*", false},
	{"Exp", NULL, NULL, "a*", false},
	{"Flatten", NULL, NULL, "a*", false},
	{"GeLU", NULL, NULL, "a*", false},
	{"Less", NULL, NULL, "o*", false},
	{"Log", NULL, NULL, "a*", false},
	{"MaxPool", NULL, NULL, "a*", false},
	{"Neg", NULL, NULL, "a*", false},
	{"ReduceMax", NULL, NULL, "a*", false},
	{"ReduceMean", NULL, NULL, "a*", false},
	{"SiLU", NULL, NULL, "a*", false},
	{"StridedSlice", NULL, NULL, "a*", false},
	{"Sub", NULL, NULL, "o*", false},
	{"Tanh", NULL, NULL, "a*", false},
	{"Tile", NULL, NULL, "o*", false},
	{"TopK", NULL, NULL, "a*", false},
};

static bool is_without(const struct ap_attrs *attrs, const char *names)
{
	for (uint32_t i = 0; i < attrs->n && names; i++)
		if (ap_attr_int(attrs, attrs->v[i].name, 0) != 0 &&
			strstr(names, attrs->v[i].name))
			return false;
	return true;
}

static const struct placed *row_of(const struct ex_oper *o)
{
	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (strcmp(rows[i].type, o->type) == 0 &&
			(!rows[i].with || ap_attr_bool(o->attrs, rows[i].with, false)) &&
			is_without(o->attrs, rows[i].without))
			return &rows[i];
	return NULL;
}

static const struct ap_layout *tensor_of(const struct ex_oper *o, char letter)
{
	return letter >= 'o' ? &o->out[letter - 'o'] : &o->in[letter - 'a'];
}

/* The dimensions from *first up to *end that a word names. */
static void dims_of(char which, int rank, int *first, int *end)
{
	int d = which - '0';

	*first = which == '*' || which == ':' || d > rank ? 0 : rank - d;
	*end = which == '*' ? rank : which == ':' ? rank - 2 : d > rank ? 0 : *first + 1;
}

static int64_t repeats_of(const struct ex_oper *o, const struct placed *row, int64_t ndev)
{
	int64_t parts = 1;

	for (const char *c = row->order; *c; c += strcspn(c, " "), c += *c == ' ') {
		const struct ap_layout *l = tensor_of(o, c[0]);
		int first, end;

		dims_of(c[1], l->rank, &first, &end);
		for (int d = first; d < end; d++)
			parts *= l->dim[d].cut;
	}
	return ndev / parts;
}

/* Each dimension where it must be, those that come later inside. */
bool ex_is_placed(const struct ex_oper *o, int64_t ndev)
{
	const struct placed *row = row_of(o);
	bool left = row && row->left && o->in[0].dim[0].cut > 1;
	int64_t outside;

	if (!row)
		return true;
	outside = left ? ndev / repeats_of(o, row, ndev) : ndev;
	for (const char *c = row->order; *c; c += strcspn(c, " "), c += *c == ' ') {
		const struct ap_layout *l = tensor_of(o, c[0]);
		int first, end;

		dims_of(c[1], l->rank, &first, &end);
		for (int d = first; d < end; d++) {
			if (l->dim[d].cut == 1)
				continue;
			outside /= l->dim[d].cut;
			if (l->dim[d].stride != outside)
				return false;
		}
	}
	return true;
}
