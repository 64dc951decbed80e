/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the form of a bundle's JSON files, and of traces, that a user passes. Each function
 * reports every fault, AP_MEANING; if there are none, it adds a summary to what: "14 calls".
 */
#ifndef AP_BUNDLE_BUNDLE_CHECK_H
#define AP_BUNDLE_BUNDLE_CHECK_H

#include "base/json.h"
#include "base/str.h"

typedef enum ap_status ap_bundle_check_fn(struct ap_ctx *ctx, const struct ap_json *doc, struct ap_str *what);

/* An array of {"api", "name", "type", "value"}: calls that a bundle makes, each at most once, with
 * an argument of the type. */
ap_bundle_check_fn ap_bundle_check_settings;

/* {cell: stage}, or segment: whole numbers without a gap from 0 to the largest. */
ap_bundle_check_fn ap_bundle_check_cells;

/* {"cells", "primitives", "communications", "not_applicable"}: arrays of calls. */
ap_bundle_check_fn ap_bundle_check_recompute;

/* {"shards", "not_applicable"}: arrays of calls, whose strategies are arrays of arrays of parts. */
ap_bundle_check_fn ap_bundle_check_shard;

/* {switch: true} or {switch: level}, for transformer_opt(). */
ap_bundle_check_fn ap_bundle_check_switches;

/* Chrome's trace JSON: {"traceEvents": [{"ph": "X", "name", "pid", "ts", "dur", ..}, ..], ..} */
ap_bundle_check_fn ap_bundle_check_trace;

#endif
