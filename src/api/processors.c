/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* for sched_getaffinity(), which is not in POSIX */

#include "api/processors.h"

#include <sched.h>
#include <unistd.h>

int ap_processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef CPU_COUNT
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof set, &set))
		n = CPU_COUNT(&set);
#endif
	return n < 1 ? 1 : n > 256 ? 256 : (int)n;
}
