/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan gets into its executor. */
#ifndef AP_BUNDLE_BUNDLE_WAY_H
#define AP_BUNDLE_BUNDLE_WAY_H

#include "bundle/bundle.h"

#define AP_BUNDLE_OPERATORS "operator_strategies.json"
#define AP_BUNDLE_CKPT "strategy.ckpt"

struct ap_bundle_way {
	const char *name; /* of the route, or of the parallel mode where that leaves no route */
	const char *mode; /* parallel_mode of set_auto_parallel_context; NULL: not MindSpore */
	const char *search; /* its search_mode; NULL: none */
	const char *of_class; /* parallel_mode of AutoParallel; NULL: the class does not have it */
	const char *file; /* of the bundle, that holds the strategies; NULL: none is read */
	const char *honours; /* lines about what is taken from where */
};
const struct ap_bundle_way *ap_bundle_way(const struct ap_bundle *b);

/* Is this the file of the bundle that the way into the executor loads? */
bool ap_bundle_loads(const struct ap_bundle *b, const char *file);

/* All stages together. */
int64_t ap_bundle_devices(const struct ap_bundle *b);

#endif
