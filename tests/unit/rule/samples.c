/* SPDX-License-Identifier: Apache-2.0 */
#include "move_samples.h"

#include "base/vec.h"

static const struct {
	const struct move_sample *v;
	const size_t *n;
} sets[] = {
	{math_samples, &math_nsample},
	{move_samples, &move_nsample},
	{norm_samples, &norm_nsample},
	{other_samples, &other_nsample},
	{reduce_samples, &reduce_nsample},
	{product_samples, &product_nsample},
	{quant_samples, &quant_nsample},
	{window_samples, &window_nsample},
	{look_samples, &look_nsample},
	{attention_samples, &attention_nsample},
};

const struct move_sample *sample_at(size_t i)
{
	for (size_t k = 0; k < AP_COUNT(sets); k++) {
		if (i < *sets[k].n)
			return &sets[k].v[i];
		i -= *sets[k].n;
	}
	return NULL;
}

size_t sample_count(void)
{
	size_t n = 0;

	for (size_t k = 0; k < AP_COUNT(sets); k++)
		n += *sets[k].n;
	return n;
}
