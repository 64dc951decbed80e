/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan gets into its executor. */
#ifndef AP_BUNDLE_BUNDLE_WAY_H
#define AP_BUNDLE_BUNDLE_WAY_H

#include "bundle/bundle.h"

#define AP_BUNDLE_OPERATORS "operator_strategies.json"
#define AP_BUNDLE_CKPT "strategy.ckpt"

struct ap_bundle_way {
	const char *name; /* of the route, or of a parallel mode that has no route */
	const char *mode; /* parallel_mode of set_auto_parallel_context; NULL: not MindSpore */
	const char *search; /* its search_mode, or NULL */
	const char *of_class; /* parallel_mode of AutoParallel; NULL: not in the class */
	const char *file; /* of the bundle, with the strategies; NULL: none */
	const char *honours; /* lines on what is taken from where */
};
const struct ap_bundle_way *ap_bundle_way(const struct ap_bundle *b);

/* Does the executor load this file of the bundle? */
bool ap_bundle_loads(const struct ap_bundle *b, const char *file);

/* The devices of all stages. */
int64_t ap_bundle_devices(const struct ap_bundle *b);

#endif
