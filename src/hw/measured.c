/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/measured.h"

#include <stddef.h>
#include <string.h>

#include "base/vec.h"

static const struct ap_measured measured[] = {
#define MEASURED(chip, software, network, times, step_percent) {chip, software, network, times, step_percent},
#include "hw/measured.def"
#undef MEASURED
};

int ap_measured_steps(const char *chip)
{
	int steps = 0;

	for (size_t i = 0; i < AP_COUNT(measured); i++)
		steps += strcmp(measured[i].chip, chip) ? 0 : measured[i].times;
	return steps;
}

const struct ap_measured *ap_measured_nearest(const char *chip, const char *software, const char *network,
	bool *is_like)
{
	enum { OF_SOFTWARE = 4, OF_NETWORK = 2, OF_CHIP = 1, ALL = 7 };
	const struct ap_measured *best = NULL;
	int best_like = 0;

	for (size_t i = 0; i < AP_COUNT(measured); i++) {
		const struct ap_measured *m = &measured[i];
		int like = (strcmp(m->software, software) ? 0 : OF_SOFTWARE) +
			(strcmp(m->network, network) ? 0 : OF_NETWORK) + (strcmp(m->chip,
				chip) ? 0 : OF_CHIP);

		if (like < (OF_NETWORK | OF_CHIP) || like < best_like ||
			(like == best_like && m->times <= best->times))
			continue;
		best = m;
		best_like = like;
	}
	*is_like = best_like == ALL;
	return best;
}
