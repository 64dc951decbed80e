/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/expert_load.h"

#include <math.h>

double ap_expert_load(double imbalance, int64_t experts, int64_t parts)
{
	if (imbalance <= 1 || parts <= 1 || experts <= 1)
		return 1;
	return fmin((double)parts, 1 + (imbalance - 1) * sqrt((double)(parts - 1) / (double)(experts - 1)));
}
