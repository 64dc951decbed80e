/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON files of a bundle, and traces, as they come back from a user: is their form what reads them expects?
 * Each function reports what is not, AP_MEANING, and else adds to what, "14 calls".
 */
#ifndef AP_BUNDLE_BUNDLE_CHECK_H
#define AP_BUNDLE_BUNDLE_CHECK_H

#include "base/json.h"
#include "base/str.h"

typedef enum ap_status ap_bundle_check_fn(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what);

/* An array of {"api", "name", "type", "value"}: calls that a bundle makes, each at most once, with an
 * argument of the type. */
ap_bundle_check_fn ap_bundle_check_settings;

/* {cell: stage}, or segment: whole numbers, of which none up to the largest is missing. */
ap_bundle_check_fn ap_bundle_check_cells;

/* {"cells", "primitives", "not_applicable"}: arrays of calls. */
ap_bundle_check_fn ap_bundle_check_recompute;

/* {"shards", "not_applicable"}: arrays of calls, whose strategies are arrays of arrays of parts. */
ap_bundle_check_fn ap_bundle_check_shard;

/* {switch: true}, or a level: what transformer_opt() reads. */
ap_bundle_check_fn ap_bundle_check_switches;

/* Chrome's JSON: {"traceEvents": [{"ph": "X", "name", "pid", "ts", "dur", ..}, ..], ..} */
ap_bundle_check_fn ap_bundle_check_trace;

#endif
