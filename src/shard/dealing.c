/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/dealing.h"

static int64_t row_elements(int rank, const int64_t *slice)
{
	int64_t n = 1;

	for (int d = 1; d < rank; d++)
		n *= slice[d];
	return n;
}

static int64_t ceil_of(int64_t n, int64_t by)
{
	return n / by + (n % by > 0);
}

int64_t ap_dealing_part(enum ap_dealing rule, int rank, const int64_t *slice, int64_t ranks)
{
	int64_t row = row_elements(rank, slice);

	if (rank == 0)
		return 0;
	if (slice[0] % ranks == 0 || rule == AP_DEALING_PADDED_ROWS)
		return ceil_of(slice[0], ranks) * row;
	return rule == AP_DEALING_FLAT ? ceil_of(slice[0] * row, ranks) : 0;
}

int64_t ap_dealing_first_row(int rank, const int64_t *slice, int64_t part, int64_t i)
{
	int64_t row = row_elements(rank, slice);

	return i > slice[0] * row / part ? slice[0] : i * part / row;
}
