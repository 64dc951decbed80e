/* SPDX-License-Identifier: Apache-2.0 */
/* What operators must bind to, shared by several tests; a list for each family. */
#ifndef AP_TEST_MOVE_SAMPLES_H
#define AP_TEST_MOVE_SAMPLES_H

#include <stddef.h>

struct move_sample {
	const char *type, *shapes, *attrs, *declared; /* as for bind_text() */
	const char *text; /* of ap_rule_text() */
	const char *results; /* types and shapes */
	const char *dev; /* letters in dev_matrix order */
};

extern const struct move_sample math_samples[];
extern const struct move_sample move_samples[];
extern const struct move_sample norm_samples[];
extern const struct move_sample other_samples[];
extern const struct move_sample product_samples[];
extern const struct move_sample quant_samples[];
extern const struct move_sample reduce_samples[];
extern const struct move_sample window_samples[];
extern const size_t math_nsample;
extern const size_t move_nsample;
extern const size_t norm_nsample;
extern const size_t other_nsample;
extern const size_t reduce_nsample;
extern const size_t product_nsample;
extern const size_t quant_nsample;
extern const size_t window_nsample;
extern const struct move_sample look_samples[], attention_samples[];
extern const size_t look_nsample, attention_nsample;

/* samples.c: sample i of all lists, NULL past the end; and how many there are. */
const struct move_sample *sample_at(size_t i);
size_t sample_count(void);

#endif
