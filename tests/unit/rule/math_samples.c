/* SPDX-License-Identifier: Apache-2.0 */
/* Element by element; those of one or two broadcast operands need no sample. */
#include "move_samples.h"

#include "base/vec.h"

const struct move_sample math_samples[] = {
	{"ReLUV2", "float16[4,6]", "", "? ?", "[A B] -> [A B], [A B]; A=4 B=6",
		"float16[4,6] uint8[4,6]", "AB"},
	{"AddcmulExt", "float32[4,6] float32[6] float32[4,1]", "value=0.5", "",
		"[A B], [B], [A 1] -> [A B]; A=4 B=6", "float32[4,6]", "AB"},
	{"MoeGate", "float32[4,6] float32[4,6] float32[4,1]", "", "",
		"[A B], [A B], [A 1] -> [A B]; A=4 B=6", "float32[4,6]", "AB"},
	{"Betainc", "float32[4] float32[4] float32[4]", "", "", "[A], [A], [A] -> [A]; A=4",
		"float32[4]", "A"},
	{"Polar", "float32[4,6] float32[4,6]", "", "", "[A B], [A B] -> [A B]; A=4 B=6",
		"complex64[4,6]", "AB"},
	{"Polar", "float64[4] float64[4]", "", "", "[A], [A] -> [A]; A=4", "complex128[4]", "A"},
	{"GenerateEodMaskV2", "float16[4,6] int64[1] int64[1] int64[1] int64[1]", "", "",
		"[A B], [1], [1], [1], [1] -> [A B]; A=4 B=6", "float16[4,6]", "AB"},
	{"PopulationCount", "int16[4,6]", "", "", "[A B] -> [A B]; A=4 B=6", "uint8[4,6]", "AB"},
	{"Assign", "float32[4,6] float32[4,6]", "", "", "[A B], [A B] -> [A B]; A=4 B=6",
		"float32[4,6]", "AB"},
	{"AssignAdd", "float32[4] float32[4]", "", "", "[A], [A] -> [A]; A=4", "float32[4]", "A"},
	{"AssignSub", "int32[] int32[]", "", "", "[], [] -> []", "int32[]", ""},
	{"InplaceCopy", "float32[4,6] float32[4,6]", "", "", "[A B], [A B] -> [A B]; A=4 B=6",
		"float32[4,6]", "AB"},
	{"InplaceCopy", "float32[2,4,6] float32[4,1]", "", "",
		"[A B C], [B 1] -> [A B C]; A=2 B=4 C=6", "float32[2,4,6]", "ABC"},
	{"InplaceAdd", "float32[8,6] float32[2,6]", "indices=1,3", "",
		"[8 B], [2 B] -> [8 B]; B=6", "float32[8,6]", "B"},
	{"InplaceSub", "float32[8] float32[2]", "indices=0,7", "", "[8], [2] -> [8]",
		"float32[8]", ""},
	{"InplaceUpdate", "float16[8,4,6] float16[1,4,6]", "indices=5", "",
		"[8 B C], [1 B C] -> [8 B C]; B=4 C=6", "float16[8,4,6]", "BC"},
};

const size_t math_nsample = AP_COUNT(math_samples);
