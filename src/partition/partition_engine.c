/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/vec.h"
#include "partition/partition.h"

static const struct ap_partition_engine engines[] = {
	{"auto", ap_partition_solve},
	{"dynamic_programming", ap_partition_solve},
	{"brute_force", ap_partition_brute},
};

const struct ap_partition_engine *ap_partition_engine(const char *name)
{
	for (size_t i = 0; i < AP_COUNT(engines); i++)
		if (strcmp(engines[i].name, name) == 0)
			return &engines[i];
	return NULL;
}
