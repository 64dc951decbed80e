/* SPDX-License-Identifier: Apache-2.0 */
#include "move_samples.h"

const struct move_sample other_samples[] = {
	{"BatchParallel", "float32[8,6] int32[8]", "", "float16[8,3] int64[8]",
		"[b 6], [b] -> [b 3], [b]; b=8", "float16[8,3] int64[8]", "b"},
	{"BatchParallel", "float32[8,6] int32[12]", "", "float16[4]",
		"[b 6], [b] -> [b]; b=4", "float16[4]", "b"},
	{"BatchParallel", "float32[8,6] - float32[]", "", "float32[8]",
		"[8 6], [] -> [8]", "float32[8]", ""},
	{"BatchParallel", "float32[8,6]", "stand_alone=true", "float32[8]",
		"[8 6] -> [8]", "float32[8]", ""},
	{"StandAlone", "float32[8,6]", "", "bool[2,3]", "[8 6] -> [2 3]", "bool[2,3]", ""},
};

const size_t other_nsample = sizeof other_samples / sizeof *other_samples;
