/* SPDX-License-Identifier: Apache-2.0 */
/* README.txt: the steps for this plan, what its executor takes of it, its limits, and how to check
 * the result. */
#ifndef AP_BUNDLE_BUNDLE_README_H
#define AP_BUNDLE_BUNDLE_README_H

#include "bundle/bundle.h"

/* file_at: the files of the bundle. */
void ap_bundle_write_readme(struct ap_ctx *ctx, const struct ap_bundle *b,
	const struct ap_bundle_file *file_at(size_t i), ap_write_fn *write, void *user);

#endif
