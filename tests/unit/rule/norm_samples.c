/* SPDX-License-Identifier: Apache-2.0 */
#include "move_samples.h"

#include "base/vec.h"

const struct move_sample norm_samples[] = {
	{"RmsNorm", "float16[2,8,6,4] float16[6,4]", "", "? ?",
		"[A B w! x!], [w! x!] -> [A B w! x!], [A B 1 1]; A=2 B=8 w=6 x=4",
		"float16[2,8,6,4] float32[2,8,1,1]", "ABwx"},
	{"RmsNorm", "float16[2,8,6,4] float16[8,6,4]", "", "? ?",
		"[A v! w! x!], [v! w! x!] -> [A v! w! x!], [A 1 1 1]; A=2 v=8 w=6 x=4",
		"float16[2,8,6,4] float32[2,1,1,1]", "Avwx"},
	{"GroupNorm", "float32[2,6,4]", "num_groups=3", "? ? ?",
		"[b (g! c!) w!] -> [b (g! c!) w!], [b g!], [b g!]; b=2 g=3 c=2 w=4",
		"float32[2,6,4] float32[2,3] float32[2,3]", "bgcw"},
	{"GroupNorm", "float32[2,6,4] - float32[6]", "num_groups=3", "",
		"[b (g! c!) w!], [(g! c!)] -> [b (g! c!) w!], [b g!], [b g!]; b=2 g=3 c=2 w=4",
		"float32[2,6,4] float32[2,3] float32[2,3]", "bgcw"},
};

const size_t norm_nsample = AP_COUNT(norm_samples);
