/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of file a file is, by what is in it. */
#ifndef AP_CLI_KIND_H
#define AP_CLI_KIND_H

#include "cli/inputs.h"

enum ap_kind {
	AP_KIND_GRAPH,
	AP_KIND_RANK_TABLE,
	AP_KIND_CHIP,
	AP_KIND_SOFTWARE,
	AP_KIND_PLAN,
	AP_KIND_PROBLEM,
	AP_KIND_TRACE,
	AP_KIND_MANIFEST,
	AP_KIND_RECOMPUTE,
	AP_KIND_SHARD,
	AP_KIND_SETTINGS,
	AP_KIND_OP_STRATEGY, /* before the next: they share a key */
	AP_KIND_STRATEGY,
	AP_KIND_SWITCHES, /* before the next: they share keys */
	AP_KIND_CONFIG,
	AP_KIND_CELLS, /* what is nothing else */
	AP_KIND_GROUPS,
	AP_KIND_DUMP,
	AP_KIND_COUNT
};

struct ap_known {
	struct ap_input in;
	enum ap_kind kind;
	struct ap_json *doc; /* NULL for a strategy checkpoint, a group file and a dump */
	bool json; /* a strategy checkpoint in its JSON form */
};

/* Is it meant as JSON, well-formed or not? No protobuf checkpoint begins with a brace or the mark
 * of UTF-16, or is nothing but blanks. */
bool ap_kind_is_json(const struct ap_input *in);

/* Does it begin as MindSpore's text dumps of graphs do? */
bool ap_kind_is_dump(const struct ap_input *in);

/* AP_SYNTAX, with a message, where it is a file of another program's that is known (base/foreign.h). */
enum ap_status ap_kind_check(struct ap_run *run, const struct ap_input *in);

/* "an operator graph", for messages. */
const char *ap_kind_text(enum ap_kind k);

/* Reads a file and finds out its kind: by "schema", else by the keys that only one kind has, or by what is
 * behind them; what is no JSON, and not called so, is a dump, a group file or else a strategy checkpoint.
 * Syntax is checked as the kind wants it. AP_MEANING for JSON of no known kind. */
enum ap_status ap_kind_read(struct ap_run *run, const char *path, struct ap_known *out);

#endif
