/* SPDX-License-Identifier: Apache-2.0 */
#include "move_samples.h"

const struct move_sample reduce_samples[] = {
	{"ReduceSum", "float32[4,8]", "skip_mode=true", "", "[A B] -> [A B]; A=4 B=8",
		"float32[4,8]", "AB"},
	{"ReduceSum", "float32[4,8]", "skip_mode=true axis=", "", "[A B] -> [A B]; A=4 B=8",
		"float32[4,8]", "AB"},
	{"ReduceSum", "float32[4,8]", "skip_mode=true axis=0", "", "[A B] -> [B]; A=4 B=8",
		"float32[8]", "AB"},
	{"Max", "int32[4,8]", "", "", "[A B] -> []; A=4 B=8", "int32[]", "AB"},
	{"MaxDim", "float16[4,8]", "dim=-1", "? ?", "[A B!] -> [A], [A]; A=4 B=8",
		"float16[4] int32[4]", "AB"},
	{"MaxDim", "float16[4,8]", "dim=0 keepdim=true", "? int64[1,8]",
		"[A! B] -> [1 B], [1 B]; A=4 B=8", "float16[1,8] int64[1,8]", "AB"},
	{"Argmax", "float16[4,8]", "output_type=int64", "", "[A B!] -> [A]; A=4 B=8", "int64[4]",
		"AB"},
	{"Argmin", "float16[4,8]", "axis=0 output_type=int64", "", "[A! B] -> [B]; A=4 B=8",
		"int64[8]", "AB"},
	{"CumsumExt", "int32[4,8]", "dim=0 dtype=int64", "", "[A! B] -> [A! B]; A=4 B=8",
		"int64[4,8]", "AB"},
	{"SortExt", "float32[4,8]", "descending=true stable=true", "? int64[4,8]",
		"[A B!] -> [A B!], [A B!]; A=4 B=8", "float32[4,8] int64[4,8]", "AB"},
	{"SumExt", "float16[4,8]", "dim=1 dtype=float32", "", "[A B] -> [A]; A=4 B=8",
		"float32[4]", "AB"},
	{"MeanExt", "float16[4,8]", "keepdim=true dtype=float32", "",
		"[A B] -> [1 1]; A=4 B=8", "float32[1,1]", "AB"},
};

const size_t reduce_nsample = sizeof reduce_samples / sizeof *reduce_samples;
