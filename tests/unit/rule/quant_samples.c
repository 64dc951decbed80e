/* SPDX-License-Identifier: Apache-2.0 */
#include "move_samples.h"

#include "base/vec.h"

const struct move_sample quant_samples[] = {
	{"Quant", "float16[8,6]", "", "", "[A c] -> [A c]; A=8 c=6", "int8[8,6]", "Ac"},
	{"QuantV2", "float16[8,6] float16[6] float16[1]", "dtype=int8", "",
		"[A c], [c], [1] -> [A c]; A=8 c=6", "int8[8,6]", "Ac"},
	{"AntiQuant", "int8[8,6] - float32[6]", "dtype=bfloat16", "",
		"[A c], [c] -> [A c]; A=8 c=6", "bfloat16[8,6]", "Ac"},
	{"Dequant", "int32[2,8,6] float32[6]", "dtype=float16", "",
		"[A B c], [c] -> [A B c]; A=2 B=8 c=6", "float16[2,8,6]", "ABc"},
	{"DynamicQuantExt", "float16[8,6] float32[6]", "", "? ?",
		"[A x!], [x!] -> [A x!], [A]; A=8 x=6", "int8[8,6] float32[8]", "Ax"},
	{"FakeQuantPerLayer", "float16[8,6] float32[1] float32[1]", "", "",
		"[A B], [1], [1] -> [A B]; A=8 B=6", "float16[8,6]", "AB"},
	{"FakeQuantPerChannel", "float16[8,6,4] float32[6] float32[6]", "", "",
		"[A B C], [B], [B] -> [A B C]; A=8 B=6 C=4", "float16[8,6,4]", "ABC"},
	{"FakeQuantPerChannel", "float16[8,6,4] float32[4] float32[4]", "channel_axis=-1", "",
		"[A B C], [C], [C] -> [A B C]; A=8 B=6 C=4", "float16[8,6,4]", "ABC"},
	{"MinMaxUpdatePerLayer", "float32[8,6] float32[1] float32[1]", "", "? ?",
		"[8 6], [1], [1] -> [1], [1]", "float32[1] float32[1]", ""},
	{"MinMaxUpdatePerChannel", "float32[8,6] float32[6] float32[6]", "", "? ?",
		"[8 6], [6], [6] -> [6], [6]", "float32[6] float32[6]", ""},
	{"MinMaxUpdatePerChannel", "float32[8,6] float32[8] float32[8]", "channel_axis=0", "? ?",
		"[8 6], [8], [8] -> [8], [8]", "float32[8] float32[8]", ""},
};

const size_t quant_nsample = AP_COUNT(quant_samples);
