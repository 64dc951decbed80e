/* SPDX-License-Identifier: Apache-2.0 */
/* How far predictions were from measured runs, by chip, software and kind of network: hw/measured.def, which
 * `fidelity --errors` makes of the rows of data/fidelity.csv. */
#ifndef AP_HW_MEASURED_H
#define AP_HW_MEASURED_H

#include <stdbool.h>

struct ap_measured {
	const char *chip, *software; /* names of profiles */
	const char *network; /* "dense": transformers without experts; "moe"; "cnn" */
	int times; /* measured steps */
	int step_percent; /* the mean amount of predicted / measured - 1 of these, in whole per cent */
};

/* The measurements that are most like such a run: of its software rather than of its kind of network, and of
 * that rather than of its chip; of equal ones the most. *is_like: all three are the same. NULL: none are of
 * this software, or of this network on this chip. O(rows). */
const struct ap_measured *ap_measured_nearest(const char *chip, const char *software, const char *network,
	bool *is_like);

/* Training steps measured on a chip, in all. O(rows). */
int ap_measured_steps(const char *chip);

#endif
