/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/route.h"

static const struct ap_route routes[] = {
	{"mindspore", "mindspore",
		"every operator as planned: by an operator strategy file, or shard() of each operator",
		AP_EXECUTOR_MINDSPORE, NULL, NULL},
	{"generic", "generic",
		"every operator as planned, gradients of replicated activations summed where they arise",
		AP_EXECUTOR_GENERIC, NULL, NULL},
};

const struct ap_route *ap_route_at(size_t i)
{
	return i < sizeof routes / sizeof *routes ? &routes[i] : NULL;
}
