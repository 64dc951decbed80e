/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that conditions are about. Private to diff/limit*.c. */
#ifndef AP_DIFF_LIMIT_PARTS_H
#define AP_DIFF_LIMIT_PARTS_H

#include "diff/limit.h"

enum ap_metric_kind { AP_METRIC_TIME, AP_METRIC_BYTES, AP_METRIC_RATE, AP_METRIC_SHARE };

struct ap_metric {
	const char *name;
	const char *section, *key; /* of the fact in a plan */
	const char *whole; /* the metric that it is a part of; NULL: none */
	enum ap_metric_kind kind;
	bool searched; /* a figure of the search, which no evaluation has */
	const char *text;
};

/* NULL: there is none. */
const struct ap_metric *ap_metric_find(const char *name);

#endif
