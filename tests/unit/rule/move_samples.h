/* SPDX-License-Identifier: Apache-2.0 */
/* What operators that move, join and choose must bind to, shared by several tests. */
#ifndef AP_TEST_MOVE_SAMPLES_H
#define AP_TEST_MOVE_SAMPLES_H

#include <stddef.h>

struct move_sample {
	const char *type, *shapes, *attrs, *declared; /* as for bind_text() */
	const char *text; /* of ap_rule_text() */
	const char *results; /* types and shapes */
	const char *dev; /* letters in dev_matrix order */
};

extern const struct move_sample move_samples[];
extern const size_t move_nsample;

#endif
