/* SPDX-License-Identifier: Apache-2.0 */
/* Reading YAML as the values that JSON has (base/json.h). */
#ifndef AP_BASE_YAML_READ_H
#define AP_BASE_YAML_READ_H

#include "base/json.h"

enum { AP_YAML_MOST_BYTES = 1 << 20 };

/*
 * Parses the first document of a YAML text. Every value keeps its place, so that ap_json_report() names the
 * line of the YAML file. Plain scalars are null, true, false (also yes, no, on, off) and numbers as JSON
 * writes them, all others texts; aliases are values of their own, and what a "<<" merges stands beside the
 * other members. AP_SYNTAX with the line for what is no YAML; AP_MEANING for a key twice or a key that is no
 * scalar; AP_LIMIT for more than AP_YAML_MOST_BYTES, for aliases that multiply to more than 2^16 values, and
 * for nesting deeper than 64, which an alias of what it is part of is. O(bytes + values).
 */
enum ap_status ap_yaml_parse(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_json **out);

#endif
